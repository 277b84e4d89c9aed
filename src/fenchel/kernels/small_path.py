"""Whole paths of small dense problems in one compiled call: every alpha with its own certificate.

    min over w, b of   (1/n) sum_i s_i f(z_i'w + b; t_i) + sum_j [ alpha l1_j |w_j| + 1/2 alpha ridge_j w_j^2 ]
    subject to         lower_j <= w_j <= upper_j,  where  lower_j <= 0 <= upper_j

For every alpha, until the gap is small enough: extend the working set by the features whose slopes break their
thresholds most, fit the set (quadratic models whose Gram matrix is kept while it is good enough, steps halved on the
true objective), and certify over all features, which is the only pass over X.

========== ======================= ==========================================================================
Symbol     Name here               Meaning
========== ======================= ==========================================================================
w, b       feature[COEF],          the answer so far; w is zero outside the working set
           number[INTERCEPT]
v          member[VALUE]           w on the working set
u, x, h    row[SCORE], row[SLOPE], scores z_i'w + b, slopes s_i f'(u_i), curvatures s_i f''(u_i)
           row[CURVATURE]
h_G        row[MODELLED]           the curvatures that the Gram matrix was made of
P, D       primal, dual            proven bounds: D <= optimum <= P
========== ======================= ==========================================================================

``small_set.py`` has the working set and its fit, ``small_model.py`` the quadratic model and its solver, and
``small_certificate.py`` the dual bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import boolean, float64, int64, void

from ..foundation.numerics import BESIDE, NOTHING
from .apart import READ, VECTOR, apart, door, refer
from .rooms import Room
from .rules import INNER, LOOSE, NEAR, PATIENCE, ROUNDS, STAGE, STAGE_TOL, TIGHTER
from .small_certificate import (
    ANSWER_VALUE,
    AT_ZERO,
    BEST,
    COEF,
    COUNTS,
    CURRENT,
    DATA,
    DATA_FIELDS,
    DUAL,
    DUAL_BOUND,
    FREE,
    INDEX,
    LEVEL,
    LOSS,
    NO_BOUND,
    NUMBERS,
    PRIMAL_BOUND,
    SHARE,
    SIZE,
    TIGHT,
    WORK,
    Answer,
    Data,
    dual_bound,
    record,
    sweep,
    work_in,
    work_numbers,
)  # fmt: skip
from .small_losses import COVARIANCES, addresses
from .small_set import (
    FIRST_SET,
    drop,
    enter,
    extend,
    fit_set,
    largest_set,
    lines_of,
    load,
    score,
    set_penalty,
    step,
    store,
)  # fmt: skip
from .small_start import guess, reach_of, start

_TAKE_ALL = 32  # features of the data; with fewer, all that break their thresholds enter at once


# -- one alpha ----------------------------------------------------------------------------------------


@apart(boolean(DATA, WORK, float64, float64, float64, int64))
def _solve(data, work, alpha, last_alpha, tol, rounds):
    """Rounds of extending, fitting and certifying; whether the gap became small enough. row[BEST] is the x
    that proves the dual bound."""
    n, p = work.row.shape[1], data.l1.size
    work.number[TIGHT] = 1.0
    count, row, best, gap, halved, since = work.count, work.row, NO_BOUND, np.inf, np.inf, 0
    for turn in range(rounds):
        load(data, work, alpha)
        primal = work.number[LOSS] + set_penalty(work.member, count[SIZE], 0.0)
        wanted = tol * max(abs(primal), NOTHING * work.number[AT_ZERO])
        if not np.isfinite(primal):
            return False
        if count[CURRENT] == 1 and work.number[LEVEL] <= alpha:  # slopes that were left out may matter at smaller ones
            bound, scale = dual_bound(data, work, alpha, primal - wanted)
            work.number[SHARE] = scale if bound > best else 0.0
            if bound > best:
                best = bound
                for i in range(n):
                    row[BEST, i] = scale * row[DUAL, i]
            gap = primal - best
            work.number[PRIMAL_BOUND], work.number[DUAL_BOUND] = primal, best
            if gap <= wanted:
                return True
            since += 1
            if gap <= 0.5 * halved:
                halved, since = gap, 0
            elif turn > 0:
                # descent that moves little may still be far from the end: the models want more of it
                work.number[TIGHT] = max(TIGHTER * work.number[TIGHT], 1e-6)
            if since > PATIENCE:
                return False
        support = 0
        for k in range(count[SIZE]):
            support += work.feature[COEF, work.place[INDEX, k]] != 0.0
        near = turn == 0 and last_alpha < NEAR * alpha
        level = min(alpha - 0.5 * (last_alpha - alpha), alpha) if near else alpha
        first = max(10, min(FIRST_SET, int64(2.0 * np.sqrt(p))))
        full = count[SIZE] + max(support, first) > work.gram.shape[0]
        if (turn == 0 or full) and count[SIZE] > 2 * support + 32 + count[FREE]:
            drop(data, work, level)
        if not extend(data, work, level, p if near or p <= _TAKE_ALL else max(support, first)):
            return False
        fit_set(data, work, alpha, wanted, max(INNER * wanted, LOOSE * gap if best > NO_BOUND else 0.0))
        sweep(data, work, alpha)
    return False


@apart(void(DATA, WORK, float64, float64))
def _predict(data, work, alpha, reach):
    """Start the next alpha where the last two answers point to, `reach` times as far again, or on the way there if that
    is better."""
    shift = guess(data, work, alpha, reach)
    if reach > 0.0 and step(data, work, shift, 0.0) > 0.0:
        store(work)


# -- the whole path -----------------------------------------------------------------------------------


@apart(boolean(DATA, WORK))
def _begin(data, work):
    """Zero, its intercept and the slopes there; features without a threshold enter the set. False if they are too
    many."""
    for i in range(work.columns.shape[1]):
        work.columns[-1, i] = 1.0
    start(data, work)
    for j in range(data.l1.size):
        if data.l1[j] == 0.0 and data.lower[j] < data.upper[j]:
            if work.count[SIZE] == work.gram.shape[0]:
                return False
            enter(data, work, j)
    work.count[FREE] = work.count[SIZE]
    sweep(data, work, 0.0)
    return True


@door(int64(*DATA_FIELDS, VECTOR, int64, READ, int64, int64, float64, ANSWER_VALUE))
def _run(X, target, weight, kind, parameter, l1, ridge, lower, upper, intercept, blas, by_column, length, memory, most,
         alphas, first, end, tol, answer):  # fmt: skip
    """The alphas from `first` to `end`, in rooms where those before it were solved; returns how many are now."""
    data = refer(Data(X, target, weight, kind, parameter, l1, ridge, lower, upper, intercept, blas, by_column, length))
    n, p = 0 if kind == COVARIANCES else target.size, l1.size
    work = refer(work_in(memory, n, p, most))
    if first == 0 and not _begin(data, work):
        return 0
    k, stage = first, 0.0
    last, last_but_one = alphas[k - 1] if k > 0 else np.inf, alphas[k - 2] if k > 1 else np.inf
    for j in range(p if p > n and k == 0 and kind != COVARIANCES else 0):
        stage = max(stage, score(data, work, j) / STAGE)
    while k < end:
        alpha = alphas[k]
        if not 0.0 < alpha < np.inf:
            break
        staged = k == 0 and np.sqrt(STAGE) * alpha < stage < np.inf
        if staged:
            alpha, stage = stage, stage / STAGE
        elif k > 0:
            _predict(data, work, alpha, reach_of(kind, alpha, last, last_but_one))
        done = _solve(data, work, alpha, last, STAGE_TOL if staged else tol, 1 if staged else ROUNDS)
        last_but_one, last = last if k > 0 else np.inf, alpha
        if staged:
            continue
        if not done:
            break
        record(work, refer(answer), k)
        k += 1
    return k


def _fitting(rows: int, p: int, most: int) -> int:
    """The members of a set, up to `most`, whose rooms are left to the next solve; `most` where these would be too few
    for features that are half as many as the rows."""
    fewer = most
    while work_numbers(rows, p, fewer) > BESIDE and 2 * fewer > rows:
        fewer = int(0.9 * fewer)
    return fewer if 2 * fewer > rows else most


def follow(
    X: Any, target: Any, weight: Any, kind: int, params: Any, alphas: Any, l1: Any, ridge: Any, lower: Any, upper: Any,
    tol: float, fit_intercept: bool, W: Any, b: Any, primal: Any, dual: Any, x: Any, passes: Any,
) -> int:  # fmt: skip
    """Solve for falling alphas and certify every answer; returns how many were finished."""
    return follower(
        X, target, weight, kind, params, alphas, l1, ridge, lower, upper, tol, fit_intercept, W, b, primal, dual, x,
        passes,
    )(0, len(alphas))  # fmt: skip


def follower(
    X: Any, target: Any, weight: Any, kind: int, params: Any, alphas: Any, l1: Any, ridge: Any, lower: Any, upper: Any,
    tol: float, fit_intercept: bool, W: Any, b: Any, primal: Any, dual: Any, x: Any, passes: Any,
    sums: Any = None, length: Any = None,
) -> Callable[[int, int], int]:  # fmt: skip
    """What solves for falling alphas and certifies every answer: called with the first alpha and the end of those that
    are wanted next, it returns how many are finished.

    It stops before an alpha whose working set or support is too large for plain loops, whose gap does not become small
    enough, or where a number is not finite: the caller goes on from there by other means.

    Parameters
    ----------
    X : (n, p) array, in C's or Fortran's order
    target, weight : vectors of n numbers
        Weights have mean 1; rows of weight 0 play no part.
    kind : int
        Of :data:`fenchel.kernels.small_losses.KINDS`.
    params : vector
        Its first entry is the smoothing of the smoothed hinge or the delta of Huber's loss; others take no notice.
    alphas : vector of positive numbers
    l1, ridge, lower, upper : vectors of p numbers
        A feature with lower = upper = 0 stays out; one with l1 = 0 is always in the working set.
    tol : float
        Every gap is at most tol * |primal|.
    fit_intercept : bool
    W, b, primal, dual, x, passes : arrays, one row or number for every alpha (x may have no columns)
        They are filled in: coefficients, intercept, bounds of the optimum, the n dual variables that prove the lower
        one (their sum is zero if there is an intercept), and the number of products with the whole of X.
    sums : array, one row for every alpha, optional
        It becomes X'x, or no number where x is known and its product is not. Numbers whose feature could not matter are
        those of an earlier look.
    length : vector of p numbers, optional
        At least the lengths of the columns, divided by sqrt(n).
    """
    p, rows = l1.size, 0 if kind == COVARIANCES else target.size
    # The largest that it may be, so that the set may grow without moving. A single fit begins in a room that solves
    # leave to each other, where that is smaller: fresh pages of memory take longer than what few features write there.
    most = largest_set(rows, p)
    if len(alphas) == 1:
        most = _fitting(rows, p, most)
    answer = Answer(W, b, primal, dual, x, passes, np.zeros((len(alphas), 0)) if sums is None else sums)
    if length is None:
        length = np.sqrt(np.square(X).mean(axis=0))
    X, by_column = lines_of(X)
    data = Data(
        X, target, weight, kind, params[0], l1, ridge, lower, upper, fit_intercept, addresses(kind), by_column, length
    )

    def within(most: int) -> Callable[[int, int], int]:
        numbers = work_numbers(rows, p, most)
        room = Room(numbers)
        memory = room.take(numbers)

        def follow_on(first: int, end: int, room: Room = room) -> int:
            """The room is held for as long as somebody may ask."""
            done = int(_run(*data, memory, most, alphas, first, end, tol, answer))
            full = done < end and memory[-NUMBERS - COUNTS : -NUMBERS].view(np.int64)[SIZE] == most
            largest = largest_set(rows, p)
            return within(largest)(first, end) if full and first == 0 and most < largest else done

        return follow_on

    return within(most)
