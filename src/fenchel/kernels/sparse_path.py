"""Fits and paths of sparse problems in one compiled call: every alpha with its own certificate.

The problem, the rounds and the symbols are those of ``small_path.py``. Here the data are sparse columns, every feature
has an l1 weight or no room to move: ``sparse_layout.py`` has the products, and ``sparse_set.py`` the fit of a
working set. What does not touch the data is shared with the loops for dense data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import boolean, float64, int64, void

from ..foundation.numerics import NOTHING
from .apart import READ, apart, door, refer
from .rooms import Room
from .rules import INNER, LOOSE, NEAR, PATIENCE, ROUNDS, STAGE, STAGE_TOL, TIGHTER
from .small_certificate import (
    AHEAD,
    ANSWER_VALUE,
    AT_ZERO,
    BEST,
    COEF,
    CURRENT,
    DATA,
    DATA_FIELDS,
    DUAL,
    DUAL_BOUND,
    FEASIBLE,
    FEATURE_ROWS,
    FORESEEN,
    GRADIENT,
    INDEX,
    LOSS,
    NO_BOUND,
    PASSES,
    PLACE_ROWS,
    PRIMAL_BOUND,
    ROW_ROWS,
    SHARE,
    SIZE,
    SLOPE,
    TIGHT,
    WORK,
    WORK_VALUE,
    Answer,
    Data,
    Work,
    balance_intercept,
    dual_bound,
    record,
)  # fmt: skip
from .small_losses import addresses
from .small_model import MEMBER_ROWS
from .small_set import drop, extend, load, score, set_penalty, store
from .small_start import guess, reach_of, start
from .sparse_layout import (
    GIVEN_UP,
    LINE_ROWS,
    LONG,
    PASS,
    ROW,
    SPARSE,
    SPARSE_COUNTS,
    SPARSE_FIELDS,
    SPARSE_NUMBERS,
    SPENT,
    TAKEN,
    Sparse,
    look,
)  # fmt: skip
from .sparse_set import first_size, fit_set, step, too_dear

LARGEST_GRAM = (
    1280  # columns of the largest Gram matrix; larger: rooms that nobody keeps, and descent that misses the cache
)


# -- one alpha ----------------------------------------------------------------------------------------


@apart(void(DATA, WORK, SPARSE))
def _sweep(data, work, sparse):
    """x and X'x / n over all features; x as the last model foresaw it, or the slopes of the loss."""
    dual, slope = work.row[DUAL], work.row[AHEAD if work.count[FORESEEN] else SLOPE]
    for i in range(dual.size):
        dual[i] = slope[i]
    work.count[FORESEEN] = 0
    if data.intercept:
        balance_intercept(data.kind, data.weight, dual)
    look(sparse.values, sparse.places, sparse.ends, dual, work.feature[GRADIENT])
    work.count[CURRENT] = work.count[FEASIBLE] = 1
    work.number[PASSES] += 1.0
    work.number[SPENT] += sparse.places.size * sparse.price[PASS] + dual.size * sparse.price[ROW]


@apart(boolean(DATA, WORK, SPARSE, float64, float64, float64, int64, float64, boolean))
def _solve(data, work, sparse, alpha, last_alpha, tol, rounds, most, warm):
    """Rounds of extending, fitting and certifying; whether the gap became small enough. row[BEST] is the x that proves
    the dual bound. An alpha is `warm` if it is not the first."""
    p, n_rows = data.l1.size, data.target.size
    first, added = first_size(data, sparse), int64(0)
    work.number[TIGHT] = 1.0
    count, row, best, gap, halved, since = work.count, work.row, NO_BOUND, np.inf, np.inf, 0
    for turn in range(rounds):
        load(data, work, alpha)
        primal = work.number[LOSS] + set_penalty(work.member, count[SIZE], 0.0)
        wanted = tol * max(abs(primal), NOTHING * work.number[AT_ZERO])
        if not np.isfinite(primal) or work.number[SPENT] > most:
            count[GIVEN_UP] = 1
            return False
        if count[CURRENT] == 1:
            bound, scale = dual_bound(data, work, alpha, primal - wanted)
            work.number[SHARE] = scale if bound > best else 0.0
            if bound > best:
                best = bound
                for i in range(row.shape[1]):
                    row[BEST, i] = scale * row[DUAL, i]
            gap = primal - best
            work.number[PRIMAL_BOUND], work.number[DUAL_BOUND] = primal, best
            if gap <= wanted:
                return True
            since += 1
            if gap <= 0.5 * halved:
                halved, since = gap, 0
            elif turn > 0 and added == 0:
                # descent that moves little may still be far from the end: the models want more of it
                work.number[TIGHT] = max(TIGHTER * work.number[TIGHT], 1e-6)
            if since > PATIENCE:
                return False
        support = 0
        for k in range(count[SIZE]):
            support += work.feature[COEF, work.place[INDEX, k]] != 0.0
        near = turn == 0 and last_alpha < NEAR * alpha
        level = min(alpha - 0.5 * (last_alpha - alpha), alpha) if near else alpha
        if turn == 0 and count[SIZE] > 2 * support + 32:
            drop(data, work, level)
            count[TAKEN] = 0
        # a set that is used up was too small; where features are more than rows, all of them are for a while
        used = 2 * support if p <= n_rows and 10 * support > 9 * count[SIZE] else support
        before = count[SIZE]
        room = extend(data, work, level, p if near else max(used, first))
        if not room or too_dear(data, work, sparse, alpha, warm):
            count[GIVEN_UP] = 1
            return False
        added = count[SIZE] - before
        if added > 0:
            count[TAKEN] = 0
        inner = INNER * wanted
        if best > NO_BOUND and (added > 0 or turn == 0):
            inner = max(inner, LOOSE * gap)
        # a set that is still growing is not worth a second model of a curved loss; but where features are more than
        # rows, slopes of a set that is not fit name too many of them
        growing = 4 * added > count[SIZE] and p <= n_rows and not near
        fit_set(data, work, sparse, alpha, wanted, inner, 1 if growing else ROUNDS)
        _sweep(data, work, sparse)
    return False


# -- the whole path -----------------------------------------------------------------------------------


@door(int64(*DATA_FIELDS, WORK_VALUE, *SPARSE_FIELDS, READ, int64, int64, float64, float64, ANSWER_VALUE))
def _run(X, target, weight, kind, parameter, l1, ridge, lower, upper, intercept, blas, by_column, length, rooms, values,
         places, ends, pairs, price, lines, buckets, row_values, row_places, alphas, first, end, tol, most,
         answer):  # fmt: skip
    """The alphas from `first` to `end`, in rooms where those before it were solved; returns how many are now."""
    data = refer(Data(X, target, weight, kind, parameter, l1, ridge, lower, upper, intercept, blas, by_column, length))
    sparse = refer(Sparse(values, places, ends, pairs, price, lines, buckets, row_values, row_places))
    work = refer(rooms)
    n, p = target.size, l1.size
    if first == 0:
        start(data, work)
        _sweep(data, work, sparse)
    k, stage = first, 0.0
    last, last_but_one = alphas[k - 1] if k > 0 else np.inf, alphas[k - 2] if k > 1 else np.inf
    for j in range(p if p > n and k == 0 else 0):
        stage = max(stage, score(data, work, j) / STAGE)
    while k < end:
        alpha = alphas[k]
        if not 0.0 < alpha < np.inf:
            break
        staged = k == 0 and np.sqrt(STAGE) * alpha < stage < np.inf
        if staged:
            alpha, stage = stage, stage / STAGE
        elif k > 0:
            reach = reach_of(kind, alpha, last, last_but_one)
            shift = guess(data, work, alpha, reach)
            if reach > 0.0 and step(data, work, sparse, shift, 0.0) > 0.0:
                store(work)
        rounds, accuracy = (1, STAGE_TOL) if staged else (ROUNDS, tol)
        done = _solve(data, work, sparse, alpha, last, accuracy, rounds, most, k > 0)
        last_but_one, last = last if k > 0 else np.inf, alpha
        if staged and not work.count[GIVEN_UP]:
            continue
        if not done:
            break
        work.number[SPENT] = 0.0
        record(work, refer(answer), k)
        k += 1
    return k


def follower(
    columns: Any, pairs: float, target: Any, weight: Any, kind: int, parameter: float, alphas: Any, l1: Any, ridge: Any,
    lower: Any, upper: Any, tol: float, fit_intercept: bool, price: Any, most: float, answer: Any,
) -> Callable[[int, int], int]:  # fmt: skip
    """What solves for falling alphas and certifies every answer: called with the first alpha and the end of those that
    are wanted next, it returns how many are finished.

    It stops before an alpha that costs more than `most` nanoseconds by the model of `price`, whose gap does not become
    small enough, or where a number is not finite: the caller goes on from there by other means.

    Parameters
    ----------
    columns : values, places (int32) and ends (int64) of the data as CSC
    pairs : half the sum of the squares of the rows' lengths
    target, weight, kind, alphas, l1, ridge, lower, upper, tol, fit_intercept
        As in :func:`fenchel.kernels.small_path.follower`; every feature has an l1 weight or no room to move.
    parameter : float
        Of the loss.
    price : vector, see ``sparse_layout.py``
    answer : what is filled in, as in :func:`fenchel.kernels.small_path.follower`
    """
    n, p, stored = target.size, l1.size, columns[0].size
    size = min(p, LARGEST_GRAM, max(3 * n + 200, 400))
    # the largest that it may be, so that the set may grow without moving; columns stay where they are
    shapes = {
        "row": (ROW_ROWS, n), "feature": (FEATURE_ROWS, p), "place": (PLACE_ROWS, p), "member": (MEMBER_ROWS, size),
        "columns": (size + 1, 0), "gram": (size, size), "factor": (size + 2, size + 2), "tile": (0, 0),
        "support": (2, size + 1), "count": (SPARSE_COUNTS,), "number": (SPARSE_NUMBERS,),
    }  # fmt: skip
    half_rows, half_stored = (n + 1) // 2, (stored + 1) // 2  # two short numbers take the place of a long one
    rows = LINE_ROWS * half_rows + LONG + 2 + stored + half_stored
    room = Room(sum(math.prod(shape) for shape in shapes.values()) + rows)
    whole = ("place", "support", "count")
    work = Work(*(room.take(*shapes[name], kind=np.int64 if name in whole else float) for name in Work._fields))
    sparse = Sparse(
        *columns, pairs, price, room.take(LINE_ROWS, half_rows).view(np.int32), room.take(LONG + 2, kind=np.int64),
        room.take(stored), room.take(half_stored).view(np.int32),
    )  # fmt: skip
    data = Data(
        np.zeros((0, 0)), target, weight, kind, parameter, l1, ridge, lower, upper, fit_intercept, addresses(kind),
        False, np.zeros(0),
    )  # fmt: skip
    filled = Answer(*answer)

    def follow_on(first: int, end: int, room: Room = room) -> int:
        """The room is held for as long as somebody may ask."""
        return int(_run(*data, work, *sparse, alphas, first, end, tol, most, filled))

    return follow_on
