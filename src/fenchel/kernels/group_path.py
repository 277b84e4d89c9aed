"""Whole paths of problems with groups in one compiled call: every alpha with its own certificate.

    min over w, b of   (1/n) sum_i s_i f(z_i'w + b; t_i) + alpha sum_g [ norm_g |w_g|_2 + sum_{j in g} l1_j |w_j| ]

It goes the way of ``small_path.py``: for every alpha, until the gap is small enough, extend the working set by the
groups whose slopes break their thresholds most, fit the set by quadratic models whose Gram matrix is kept while it is
good enough, and certify over all features. The models are solved by the block descent of ``block_descent.py`` and
Newton's method.

Features are numbered unit by unit: feature a of this file is column members[a] of X, and unit g has the features
start[g] to start[g + 1]. The set numbers its own coordinates in the same way, unit by unit, in the order in which they
came.

Symbols are those of ``small_set.py``; rows of `row` are those of ``small_certificate.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, types, void

from ..foundation.numerics import NOTHING
from . import small_losses as losses
from . import small_model as model
from .apart import INSIDE, MATRIX, READ, VECTOR, apart, door, refer
from .group_columns import FIRST_GUESS
from .group_covariances import bound_covariances, fit_covariances, gain_of_step, sweep_covariances
from .group_fit import fit_set, held_share, loss_at, step
from .group_set import (
    AT_ZERO,
    BEFORE,
    CARE,
    COEF,
    COUNTS,
    CURRENT,
    DATA,
    DATA_FIELDS,
    DUAL_BOUND,
    FEATURE_ROWS,
    FORESEEN,
    GRADIENT,
    INTERCEPT,
    LAST_COEF,
    LAST_INTERCEPT,
    LOSS,
    MEMBER_ROWS,
    MODELS,
    NUMBERS,
    PASSES,
    PASSES_TAKEN,
    PLAIN_ORDER,
    PRIMAL,
    SHARE,
    SIZE,
    STEP,
    TIGHT,
    UNITS,
    VALUE,
    WORK,
    Data,
    Work,
    drop,
    extend,
    live,
    load,
    scores,
    set_penalty,
    store,
)  # fmt: skip
from .rooms import Room, flags_at, list_at, matrix_at, vector_at
from .rules import DEPTH, FLAT, HARD, INNER, LOOSE, MEMORY, NEAR, PATIENCE, ROUNDS, STAGE, STAGE_TOL, TIGHTER
from .small_certificate import (
    AHEAD,
    BEST,
    DUAL,
    HIGH,
    LOW,
    MODELLED,
    NO_BOUND,
    ROW_ROWS,
    SCORE,
    SLOPE,
    balance_intercept,
)  # fmt: skip
from .small_losses import COVARIANCES, LOGISTIC, SQUARED, addresses
from .small_model import TILE
from .small_set import FIRST_SET, largest_set, lines_of
from .sparse_layout import NO_COLUMNS, look, sparse_rooms

LARGEST_SUPPORT = 512  # coordinates in live groups of data that were sparse; beyond, their own columns are cheaper
_GROWN = 1.03  # times its size: what a set has grown to if its model need not be solved well
_PASSES = 10  # of descent over the whole set that a coarse model saves, about
_MODELS = 2  # of a curved loss, that one Gram matrix serves


# -- the certificate, and one alpha -------------------------------------------------------------------


@apart(void(DATA, WORK))
def _sweep(data, work):
    """x and X'x / n: the one pass over the data of a round."""
    if data.kind == COVARIANCES:
        sweep_covariances(data, work)
        return
    dual, slope = work.row[DUAL], work.row[AHEAD if work.count[FORESEEN] else SLOPE]
    for i in range(dual.size):
        dual[i] = slope[i]
    work.count[FORESEEN] = 0
    if data.intercept:
        balance_intercept(data.kind, data.weight, dual)
    if data.sparse:
        look(data.values, data.places, data.ends, dual, work.feature[PLAIN_ORDER])
    elif data.by_column:
        model.column_gradient(data.X, dual, work.feature[PLAIN_ORDER])
    else:
        model.gradient(data.X, dual, work.feature[PLAIN_ORDER])
    for a in range(data.members.size):
        work.feature[GRADIENT, a] = work.feature[PLAIN_ORDER, data.members[a]]
    work.count[CURRENT] = 1
    work.count[PASSES] += 1


@apart(types.UniTuple(float64, 2)(DATA, WORK, float64))
def _bound(data, work, alpha):
    """The dual bound of the x of the last sweep, and the share of it that proves it."""
    if data.kind == COVARIANCES:
        return bound_covariances(data, work, alpha)
    slope, total = work.feature[GRADIENT], 0.0
    for a in range(slope.size):
        total += slope[a]
        work.feature[PLAIN_ORDER, a] = abs(slope[a]) / alpha
    if not np.isfinite(total):
        return NO_BOUND, 0.0
    share = held_share(work.feature[PLAIN_ORDER], data.l1, data.norm, data.start)
    dual = work.row[DUAL]
    return -losses.mean_conjugate(data.blas, data.parameter, data.target, data.weight, dual, share), share


@apart(boolean(DATA, WORK, float64, float64, float64, int64))
def _solve(data, work, alpha, last_alpha, tol, rounds):
    """Rounds of extending, fitting and certifying; whether the gap became small enough."""
    n, p, count, number = work.row.shape[1], data.members.size, work.count, work.number
    known = data.kind == COVARIANCES
    best, gap, halved, since = NO_BOUND, np.inf, np.inf, 0
    number[TIGHT] = 1.0
    for turn in range(rounds):
        load(data, work, alpha)
        primal = number[LOSS] + set_penalty(work, 0.0)
        wanted = tol * max(abs(primal), NOTHING * number[AT_ZERO])
        if not np.isfinite(primal):
            return False
        if count[CURRENT] == 1:
            bound, share = _bound(data, work, alpha)
            number[SHARE] = share if bound > best else 0.0
            if bound > best:
                best = bound
                for i in range(n):
                    work.row[BEST, i] = share * work.row[DUAL, i]
            gap = primal - best
            number[PRIMAL], number[DUAL_BOUND] = primal, best
            if gap <= wanted:
                return True
            since += 1
            if gap <= 0.5 * halved:
                halved, since = gap, 0
            elif turn > 0:
                number[TIGHT] = max(TIGHTER * number[TIGHT], 1e-6)
            if since > PATIENCE:
                return False
        support = 0
        for u in range(count[UNITS]):
            if live(data, work, work.chosen[u]):
                support += work.first[u + 1] - work.first[u]
        if support > LARGEST_SUPPORT and not known and number[PASSES_TAKEN] == np.inf:
            return False
        near = turn == 0 and last_alpha < NEAR * alpha
        level = 1.0 - 0.5 * (last_alpha / alpha - 1.0) if near else 1.0
        scores(data, work, alpha)
        first = max(20, min(2 * FIRST_SET, int(4.0 * math.sqrt(p))))
        full = count[SIZE] + max(support, first) > work.columns.shape[0]
        if (turn == 0 or full) and count[SIZE] > 1.5 * support + 32:
            drop(data, work, level)
        before = count[SIZE]
        if not extend(data, work, level, p if near else max(support, first)):
            return False
        limit = max(INNER * wanted, LOOSE * gap if best > NO_BOUND else 0.0)
        # a set that has grown will grow again: the model of the squared loss, which is exact, is solved well later,
        # where that saves more than the look at all features that it may cost
        later = count[SIZE] > _GROWN * before and _PASSES * count[SIZE] * count[SIZE] > (support if known else n) * p
        coarse = LOOSE * limit if later else 0.0
        if known:
            fit_covariances(data, work, alpha, max(wanted, coarse))
        elif not fit_set(data, work, alpha, max(wanted, coarse), limit):
            return False
        _sweep(data, work)
    return False


@apart(void(DATA, WORK, float64, float64))
def _predict(data, work, alpha, reach):
    """Start the next alpha where the last two answers point to, or on the way there if that is better."""
    member, number = work.member, work.number
    load(data, work, alpha)
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        for a in range(data.start[g], data.start[g + 1]):
            value, last = member[BEFORE, k], work.feature[LAST_COEF, a]
            work.feature[LAST_COEF, a] = value
            if value != 0.0 and last != 0.0:
                guess = value + reach * (value - last)
                member[VALUE, k] = guess if guess * value > 0.0 else 0.1 * value
            member[STEP, k] = member[VALUE, k] - value
            k += 1
    shift = reach * (number[INTERCEPT] - number[LAST_INTERCEPT]) if data.intercept else 0.0
    number[LAST_INTERCEPT] = number[INTERCEPT]
    if reach <= 0.0:
        return
    if gain_of_step(data, work) > 0.0 if data.kind == COVARIANCES else step(data, work, shift, 0.0) > 0.0:
        store(data, work)


@apart(void(DATA, WORK, int64, boolean))
def _begin(data, work, alphas, filled):
    """Zero, its intercept and the slopes there; so many alphas follow."""
    number, row, n = work.number, work.row, work.row.shape[1]
    for i in range(n):
        row[SCORE, i] = row[MODELLED, i] = 0.0
    for a in range(data.members.size):
        work.feature[COEF, a] = work.feature[LAST_COEF, a] = 0.0
    for g in range(data.norm.size):
        work.at[g] = -1
    for k in range(COUNTS):
        work.count[k] = 0
    for k in range(NUMBERS):
        number[k] = 0.0
    work.first[0] = 0
    number[CARE] = FLAT * losses.smoothness(data.kind, data.parameter)
    # the squared loss has one Gram matrix for all alphas, and some rounds at the first of them
    # columns of zeros that were filled in are better left to those who know them as sparse
    number[PASSES_TAKEN] = np.inf if filled else FIRST_GUESS
    number[MODELS] = max(alphas, 4) if data.kind == SQUARED else _MODELS
    if data.kind == COVARIANCES:
        _sweep(data, work)
        number[AT_ZERO] = number[LOSS]
        return
    at_zero = loss_at(data, row, row[SCORE])
    number[AT_ZERO] = 0.0 if data.kind == LOGISTIC else abs(at_zero)
    begin = losses.first_intercept(data.blas, data.parameter, data.target, data.weight, row[LOW], row[HIGH])
    if data.intercept:
        number[INTERCEPT] = begin
        for i in range(n):
            row[SCORE, i] = begin
    number[LOSS] = loss_at(data, row, row[SCORE])
    _sweep(data, work)


@apart(boolean(DATA, WORK, float64))
def _counts_all(data, work, alpha):
    """Whether most units are pulled much harder than their thresholds hold them: one Gram matrix of all of them, made
    anew for every curvature, serves such a fit better than those of growing sets."""
    hard = 0
    scores(data, work, alpha)
    for g in range(data.norm.size):
        hard += work.score[g] > HARD
    return 2 * hard > data.norm.size


# -- the whole path -----------------------------------------------------------------------------------


def _work_numbers(n: int, p: int, units: int, most: int, grams: int, blocks: int, block: int, long: int) -> int:
    """Numbers of all rooms of a Work: `most` members of a set, `grams` of one with a Gram matrix, `blocks` numbers for
    all blocks, `block` for one and `long` for a column."""
    members = MEMBER_ROWS + 2 * (DEPTH + 1) + 3 + long
    others = COUNTS + NUMBERS + DEPTH * (DEPTH + 1) + 2 * blocks + block + 2 * grams * grams
    return (ROW_ROWS + TILE) * n + FEATURE_ROWS * p + 9 * units + 1 + members * most + others


@njit(**INSIDE)
def _work_in(memory, n, p, units, most, grams, blocks, block, long):
    """The rooms of a Work, one after another in one piece of memory."""
    row = FEATURE_ROWS * p
    unit = row + ROW_ROWS * n  # lists and numbers of units
    member = unit + 9 * units + 1
    past = member + MEMBER_ROWS * most
    slopes = past + (DEPTH + 1) * most
    place = slopes + (DEPTH + 1) * most
    columns = place + 3 * most
    gram = columns + most * long
    factor = gram + grams * grams
    tile = factor + grams * grams
    own = tile + TILE * n
    last = own + 2 * blocks + block
    return Work(
        matrix_at(memory, row, ROW_ROWS, n), matrix_at(memory, 0, FEATURE_ROWS, p), vector_at(memory, unit, units),
        list_at(memory, unit + units, units), list_at(memory, unit + 2 * units, units + 1),
        list_at(memory, unit + 3 * units + 1, units), matrix_at(memory, member, MEMBER_ROWS, most),
        vector_at(memory, unit + 4 * units + 1, units), vector_at(memory, unit + 5 * units + 1, units),
        flags_at(memory, unit + 6 * units + 1, units), list_at(memory, unit + 7 * units + 1, units),
        list_at(memory, unit + 8 * units + 1, units), vector_at(memory, own, blocks),
        vector_at(memory, own + blocks, blocks), vector_at(memory, own + 2 * blocks, block),
        matrix_at(memory, past, DEPTH + 1, most),
        matrix_at(memory, slopes, DEPTH + 1, most), list_at(memory, place, 2 * most),
        list_at(memory, place + 2 * most, most), matrix_at(memory, columns, most, long),
        matrix_at(memory, gram, grams, grams),
        matrix_at(memory, factor, grams, grams), matrix_at(memory, tile, TILE, n), list_at(memory, last, COUNTS),
        vector_at(memory, last + COUNTS, NUMBERS), matrix_at(memory, last + COUNTS + NUMBERS, DEPTH, DEPTH + 1),
    )  # fmt: skip


@door(
    int64(*DATA_FIELDS, boolean, VECTOR, int64, int64, int64, int64, int64, READ, int64, int64, float64, MATRIX, VECTOR,
          VECTOR, VECTOR, MATRIX, VECTOR, MATRIX)
)  # fmt: skip
def _run(X, target, weight, kind, parameter, members, start, base, l1, norm, intercept, blas, by_column, values, places,
         ends, pairs, price, lines, buckets, row_values, row_places, sparse, filled, memory, most, grams, blocks, block,
         long, alphas, first, end, tol, W, b, primal, dual, x, passes, sums):  # fmt: skip
    """The alphas from `first` to `end`, in rooms where those before it were solved; returns how many are now."""
    data = refer(
        Data(X, target, weight, kind, parameter, members, start, base, l1, norm, intercept, blas, by_column, values,
             places, ends, pairs, price, lines, buckets, row_values, row_places, sparse)
    )  # fmt: skip
    n, p = 0 if kind == COVARIANCES else target.size, members.size
    work = refer(_work_in(memory, n, p, norm.size, most, grams, blocks, block, long))
    if first == 0:
        _begin(data, work, alphas.size, filled)
    k, stage = first, 0.0
    if sparse and alphas.size == 1 and kind != SQUARED and _counts_all(data, work, alphas[0]):
        return 0
    last, last_but_one = alphas[k - 1] if k > 0 else np.inf, alphas[k - 2] if k > 1 else np.inf
    if p > n and k == 0 and kind != COVARIANCES:
        scores(data, work, alphas[0])
        for g in range(data.norm.size):
            stage = max(stage, work.score[g] * alphas[0] / STAGE)
    while k < end:
        alpha = alphas[k]
        if not 0.0 < alpha < np.inf:
            break
        staged = k == 0 and math.sqrt(STAGE) * alpha < stage < np.inf
        if staged:
            alpha, stage = stage, stage / STAGE
        elif k > 0:
            reach = 0.0
            if alpha < last < last_but_one < np.inf:
                reach = math.log(last / alpha) / math.log(last_but_one / last)
            _predict(data, work, alpha, min(reach, 2.0))
        done = _solve(data, work, alpha, last, STAGE_TOL if staged else tol, 1 if staged else ROUNDS)
        last_but_one, last = last if k > 0 else np.inf, alpha
        if staged:
            continue
        if not done:
            break
        for a in range(p):
            W[k, data.members[a]] = work.feature[COEF, a]
        for i in range(x.shape[1]):
            x[k, i] = work.row[BEST, i]
        for a in range(sums.shape[1]):  # no number where the x is one of an earlier look
            share = work.number[SHARE] if work.number[SHARE] > 0.0 else np.nan
            sums[k, data.members[a]] = n * share * work.feature[GRADIENT, a]
        b[k], primal[k], dual[k] = work.number[INTERCEPT], work.number[PRIMAL], work.number[DUAL_BOUND]
        passes[k], work.count[PASSES] = work.count[PASSES], 0
        k += 1
    return k


def follower(
    X: Any, target: Any, weight: Any, kind: int, parameter: float, alphas: Any, members: Any, start: Any, l1: Any,
    norm: Any, tol: float, fit_intercept: bool, W: Any, b: Any, primal: Any, dual: Any, x: Any, passes: Any,
    sums: Any, filled: bool, columns: Any = None,
) -> Callable[[int, int], int]:  # fmt: skip
    """As :func:`fenchel.kernels.small_path.follower`, with groups; l1 has an entry for every feature in the order of
    `members`, norm one for every unit. A unit without a norm is a single feature with a weight. `filled` says that the
    data were sparse: large supports are then left to others. Or there is no X, but `columns` are what
    ``sparse_layout.sparse_rooms`` wants of sparse data."""
    n, p, units = 0 if kind == COVARIANCES else target.size, members.size, norm.size
    sizes = start[1:] - start[:-1]
    widest = int(sizes.max())
    # a set has as many coordinates outside of its support as inside, or not many more than there are rows
    usual = 2 * LARGEST_SUPPORT if columns else max(3 * n + 200, 2 * LARGEST_SUPPORT) if n else 0
    grams = min(max(largest_set(0 if columns else n, p, usual), widest), p)
    most = p if columns else max(min(p, MEMORY // (8 * n)), grams) if n and not filled else grams
    base = np.concatenate([[0], np.cumsum(sizes * (sizes + 2))])
    blocks, block = int(base[-1]), max(widest * (widest + 3), most)
    long = 0 if columns else n
    numbers = _work_numbers(n, p, units, most, grams, blocks, block, long)
    room = Room(numbers)
    memory = room.take(numbers)
    X, by_column = (np.zeros((0, 0)), False) if columns else lines_of(X)
    stored = sparse_rooms(n, *columns) if columns else NO_COLUMNS
    data = Data(
        X, target, weight, kind, parameter, members, start, base, l1[members], norm, fit_intercept, addresses(kind),
        by_column, *stored, columns is not None,
    )  # fmt: skip

    def follow_on(first: int, end: int, room: Room = room) -> int:
        """The room is held for as long as somebody may ask."""
        rooms = memory, most, grams, blocks, block, long
        return int(_run(*data, filled, *rooms, alphas, first, end, tol, W, b, primal, dual, x, passes, sums))

    return follow_on
