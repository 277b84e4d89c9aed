"""Fits and paths of sparse problems in one compiled call: every alpha with its own certificate.

The problem, the rounds and the symbols are those of ``small_path.py``. Here the data are sparse columns, every feature
has a weight, a quadratic or no room to move: ``sparse_layout.py`` has the products, and ``sparse_set.py`` the working
set and its fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float64, int32, int64, njit, types

from .lapack import addresses
from .rows import LEAN
from .small_certificate import (
    AHEAD,
    AT_ZERO,
    BEST,
    CARE,
    COEF,
    CURRENT,
    DUAL,
    DUAL_BOUND,
    FEASIBLE,
    FEATURE_ROWS,
    FORESEEN,
    GRADIENT,
    INDEX,
    INTERCEPT,
    LAST_COEF,
    LAST_INTERCEPT,
    LOSS,
    MODELLED,
    NO_BOUND,
    PASSES,
    PLACE_ROWS,
    POSITION,
    PRIMAL_BOUND,
    ROW_ROWS,
    SCORE,
    SHARE,
    SIZE,
    SLOPE,
    TIGHT,
    Answer,
    balance_intercept,
    dual_bound,
)  # fmt: skip
from .small_model import (
    BEFORE,
    INSIDE,
    LOGISTIC,
    LOWER,
    MEMBER_ROWS,
    SQUARED,
    STEP,
    UPPER,
    VALUE,
    first_intercept,
    smoothness,
)
from .small_set import FLAT, FLOOR, INNER, LOOSE, NEAR, STAGE, STAGE_TOL, load, loss_at, score, set_penalty, store
from .sparse_layout import GIVEN_UP, LINE_ROWS, LONG, PASS, ROW, SPARSE_COUNTS, SPARSE_NUMBERS, SPENT, Rows, look
from .sparse_set import drop, extend, first_size, fit_set, step, too_dear

_MOST_ROUNDS = 60  # working sets for one alpha; an answer takes one to ten of them
_MOST_MODELS = 40  # models for one working set
_PATIENCE = 8  # rounds in which the gap did not halve; then rounding stands in the way
_TIGHTER = 0.03  # of the accuracy of models, after a round that did not halve the gap; more costs passes of descent
LARGEST_GRAM = 2048  # columns of the largest Gram matrix; larger: 64 MiB and more, and descent that misses the cache


class Data(NamedTuple):
    """What the caller gives and nobody changes. `pairs` is half the sum of the squares of the rows' lengths, `price`
    as sparse_layout.py has it."""

    values: np.ndarray
    places: np.ndarray
    ends: np.ndarray
    pairs: float
    target: np.ndarray
    weight: np.ndarray
    kind: int
    parameter: float
    l1: np.ndarray
    ridge: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    intercept: bool
    blas: np.ndarray
    price: np.ndarray


class Work(NamedTuple):
    """What the parts share and change."""

    row: np.ndarray
    feature: np.ndarray
    place: np.ndarray
    member: np.ndarray
    gram: np.ndarray
    factor: np.ndarray
    support: np.ndarray
    count: np.ndarray
    number: np.ndarray
    rows: Rows


# -- one alpha ----------------------------------------------------------------------------------------


@njit(**INSIDE)
def sweep(data, work):
    """x and X'x / n over all features; x as the last model foresaw it, or the slopes of the loss."""
    dual, slope = work.row[DUAL], work.row[AHEAD if work.count[FORESEEN] else SLOPE]
    for i in range(dual.size):
        dual[i] = slope[i]
    work.count[FORESEEN] = 0
    if data.intercept:
        balance_intercept(data.kind, data.weight, dual)
    look(data.values, data.places, data.ends, dual, work.feature[GRADIENT])
    work.count[CURRENT] = work.count[FEASIBLE] = 1
    work.count[PASSES] += 1
    work.number[SPENT] += data.places.size * data.price[PASS] + dual.size * data.price[ROW]


@njit(inline="always")
def _solve(data, work, alpha, last_alpha, tol, rounds, most):
    """Rounds of extending, fitting and certifying; whether the gap became small enough. row[BEST] is the x that proves
    the dual bound."""
    p, n_rows = data.l1.size, data.target.size
    first, added = first_size(data), int64(0)
    work.number[TIGHT] = 1.0
    count, row, best, gap, halved, since = work.count, work.row, NO_BOUND, np.inf, np.inf, 0
    for turn in range(rounds):
        load(data, work, alpha)
        primal = work.number[LOSS] + set_penalty(work.member, count[SIZE], 0.0)
        wanted = tol * max(abs(primal), FLOOR * work.number[AT_ZERO])
        if not np.isfinite(primal) or work.number[SPENT] > most:
            work.count[GIVEN_UP] = 1
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
                work.number[TIGHT] = max(_TIGHTER * work.number[TIGHT], 1e-6)
            if since > _PATIENCE:
                return False
        support = 0
        for k in range(count[SIZE]):
            support += work.feature[COEF, work.place[INDEX, k]] != 0.0
        near = turn == 0 and last_alpha < NEAR * alpha
        level = min(alpha - 0.5 * (last_alpha - alpha), alpha) if near else alpha
        if turn == 0 and count[SIZE] > 2 * support + 32:
            drop(data, work, level)
        # a set that is used up was too small; where features are more than rows, all of them are for a while
        used = 2 * support if p <= n_rows and 10 * support > 9 * count[SIZE] else support
        added = int64(extend(data, work, level, p if near else max(used, first)))
        if too_dear(data, work, alpha):
            work.count[GIVEN_UP] = 1
            return False
        inner = INNER * wanted
        if best > NO_BOUND and (added > 0 or turn == 0):
            inner = max(inner, LOOSE * gap)
        # a set that is still growing is not worth a second model of a curved loss; but where features are more than
        # rows, slopes of a set that is not fit name too many of them
        growing = 4 * added > count[SIZE] and p <= n_rows and not near
        fit_set(data, work, alpha, wanted, inner, 1 if growing else _MOST_MODELS)
        sweep(data, work)
    return False


@njit(**INSIDE)
def _predict(data, work, alpha, reach):
    """Start the next alpha where the last two answers point to, as small_path.py does."""
    member, number, size = work.member, work.number, work.count[SIZE]
    load(data, work, alpha)
    for k in range(size):
        j = work.place[INDEX, k]
        value, last = member[BEFORE, k], work.feature[LAST_COEF, j]
        work.feature[LAST_COEF, j] = value
        if value != 0.0 and last != 0.0 and member[LOWER, k] < value < member[UPPER, k]:
            guess = value + reach * (value - last)
            guess = guess if guess * value > 0.0 else 0.1 * value
            member[VALUE, k] = min(max(guess, member[LOWER, k]), member[UPPER, k])
        member[STEP, k] = member[VALUE, k] - value
    shift = reach * (number[INTERCEPT] - number[LAST_INTERCEPT]) if data.intercept else 0.0
    number[LAST_INTERCEPT] = number[INTERCEPT]
    if reach > 0.0 and step(data, work, shift, 0.0) > 0.0:
        store(work)


# -- the whole path -----------------------------------------------------------------------------------


@njit(**INSIDE)
def _begin(data, work):
    """Zero, its intercept and the slopes there."""
    number = work.number
    for i in range(work.row.shape[1]):
        work.row[SCORE, i] = work.row[MODELLED, i] = 0.0
    for j in range(work.feature.shape[1]):
        work.feature[COEF, j] = work.feature[LAST_COEF, j] = 0.0
        work.place[POSITION, j] = -1
    for k in range(work.count.size):
        work.count[k] = 0
    for k in range(number.size):
        number[k] = 0.0
    at_zero = loss_at(data, work.row, work.row[SCORE])
    number[CARE] = FLAT * smoothness(data.kind, data.parameter)
    number[AT_ZERO], number[LOSS] = 0.0 if data.kind == LOGISTIC else abs(at_zero), at_zero
    if data.intercept:
        number[INTERCEPT] = first_intercept(data.kind, data.target, data.weight)
        for i in range(data.target.size):
            work.row[SCORE, i] = number[INTERCEPT]
        number[LOSS] = loss_at(data, work.row, work.row[SCORE])
    sweep(data, work)


_READ, _PLACES = types.Array(float64, 1, "C", readonly=True), types.Array(int32, 1, "C", readonly=True)
_ENDS = types.Array(int64, 1, "C", readonly=True)
_VECTOR, _MATRIX, _INDEX = float64[::1], float64[:, ::1], int64[:, ::1]
# as the fields of Data
_DATA = (
    _READ,
    _PLACES,
    _ENDS,
    float64,
    _READ,
    _READ,
    int64,
    float64,
    _READ,
    _READ,
    _READ,
    _READ,
    boolean,
    _ENDS,
    _READ,
)
_ROWS = types.NamedTuple((int32[:, ::1], int64[::1], _VECTOR, int32[::1]), Rows)
_WORK = types.NamedTuple(
    (_MATRIX, _MATRIX, _INDEX, _MATRIX, _MATRIX, _MATRIX, _INDEX, int64[::1], _VECTOR, _ROWS), Work
)
_ANSWER = types.NamedTuple((_MATRIX, _VECTOR, _VECTOR, _VECTOR, _MATRIX, _VECTOR, _MATRIX), Answer)


# One compiled function has a signature, as in small_path.py.
@njit(
    int64(*_DATA, _WORK, _READ, int64, int64, float64, float64, _ANSWER), nogil=True, cache=True,
    **{**LEAN, "fastmath": False},
)  # fmt: skip
def _run(values, places, ends, pairs, target, weight, kind, parameter, l1, ridge, lower, upper, intercept, blas, price,
         work, alphas, first, end, tol, most, answer):  # fmt: skip
    """The alphas from `first` to `end`, in rooms where those before it were solved; returns how many are now."""
    data = Data(
        values, places, ends, pairs, target, weight, kind, parameter, l1, ridge, lower, upper, intercept, blas, price
    )
    n, p = work.row.shape[1], l1.size
    if first == 0:
        _begin(data, work)
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
            near = alpha < last < last_but_one < np.inf
            reach = 0.0
            if near and kind == SQUARED:  # between kinks the answer is linear in alpha
                reach = (last - alpha) / (last_but_one - last)
            elif near:
                reach = np.log(last / alpha) / np.log(last_but_one / last)
            _predict(data, work, alpha, min(reach, 2.0))
        done = _solve(data, work, alpha, last, STAGE_TOL if staged else tol, 1 if staged else _MOST_ROUNDS, most)
        last_but_one, last = last if k > 0 else np.inf, alpha
        if staged and not work.count[GIVEN_UP]:
            continue
        if not done:
            break
        work.number[SPENT] = 0.0
        for j in range(p):
            answer.W[k, j] = work.feature[COEF, j]
        for i in range(answer.x.shape[1]):
            answer.x[k, i] = work.row[BEST, i]
        for j in range(answer.sums.shape[1]):  # no number where the x is one of an earlier look
            share = work.number[SHARE] if work.number[SHARE] > 0.0 else np.nan
            answer.sums[k, j] = n * share * work.feature[GRADIENT, j]
        answer.b[k], answer.primal[k], answer.dual[k] = (
            work.number[INTERCEPT], work.number[PRIMAL_BOUND], work.number[DUAL_BOUND],
        )  # fmt: skip
        answer.passes[k], work.count[PASSES] = work.count[PASSES], 0
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
        As in :func:`fenchel.kernels.small_path.follower`; every feature has an l1 weight, a ridge, or no room to move.
    parameter : float
        Of the loss.
    price : vector, see ``sparse_layout.py``
    answer : what is filled in, as in :func:`fenchel.kernels.small_path.follower`
    """
    n, p, stored = target.size, l1.size, columns[0].size
    most_gram = min(p, LARGEST_GRAM)
    # pages of memory that nobody touches cost nothing, so that the set may grow without moving
    work = Work(
        np.empty((ROW_ROWS, n)), np.empty((FEATURE_ROWS, p)), np.empty((PLACE_ROWS, p), np.int64),
        np.empty((MEMBER_ROWS, p)), np.empty((most_gram, most_gram)), np.empty((most_gram + 2, most_gram + 2)),
        np.empty((2, p + 1), np.int64), np.empty(SPARSE_COUNTS, np.int64), np.empty(SPARSE_NUMBERS),
        Rows(np.empty((LINE_ROWS, n), np.int32), np.empty(LONG + 2, np.int64), np.empty(stored),
             np.empty(stored, np.int32)),
    )  # fmt: skip
    data = Data(
        *columns, pairs, target, weight, kind, parameter, l1, ridge, lower, upper, fit_intercept, addresses(), price
    )
    filled = Answer(*answer)
    return lambda first, end: int(_run(*data, work, alphas, first, end, tol, most, filled))
