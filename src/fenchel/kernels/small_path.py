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

``small_model.py`` has the quadratic model and its solver, ``small_certificate.py`` the dual bound.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, njit, types

from . import small_model as model
from .rows import LEAN
from .small_certificate import (
    AT_ZERO, BEST, CARE, CHANGE, COEF, COUNTS, CURRENT, CURVATURE, DUAL, DUAL_BOUND, FEATURE_ROWS, FOUND, FREE, GRADIENT,
    IN_GRAM, INDEX, INTERCEPT, LAST_COEF, LAST_INTERCEPT, LOSS, MEAN_CURVATURE, MODELLED, NO_BOUND, NUMBERS, PASSES,
    PLACE_ROWS, POSITION, PRIMAL_BOUND, ROW_ROWS, SCORE, SCRATCH, SIZE, SLOPE, TRIAL, Answer, Data, Work, dual_bound, hard_slope, least,
    sweep,
)  # fmt: skip
from .small_model import (
    BEFORE, HUBER, INSIDE, LOGISTIC, LOWER, MEAN_COLUMN, MEMBER_ROWS, POISSON, QUADRATIC, SLOPES, SMOOTHED_HINGE, SQUARED,
    SQUARED_HINGE, START_SLOPES, STEP, THRESHOLD, UPPER, VALUE,
)  # fmt: skip

LARGEST_SET = 400  # coordinates in a working set; beyond, Gram matrices without BLAS cost more than calls of it save
LARGEST_SUPPORT = 160  # coordinates that are not zero; beyond, the same holds for Cholesky factors
_MOST_ROUNDS = 60  # working sets for one alpha; an answer takes one to ten of them
_PATIENCE = 8  # rounds in which the gap did not halve; then rounding stands in the way
_MOST_MODELS = 40  # models for one working set
_MOST_HALVINGS = 30  # of one step; shorter ones no longer change the objective
_FIRST_SET = 40  # at most so many features enter a set that knows nothing; more make Gram matrices that nobody needs
_TAKE_ALL = 32  # features of the data; with fewer, all that break their thresholds enter at once
_NEAR = 1.3  # ratio of two alphas up to which the strong rule foresees the next support; beyond, it names too many
_STAGE = 3.0  # ratio of the alphas that lead to a first alpha far below the largest; larger saves fits, costs rounds
_STAGE_TOL = 1e-2  # relative accuracy of the fit at such an alpha
_KEEP_GRAM = 0.15  # relative change of the rows' curvatures up to which a Gram matrix is kept; more costs models
_SLOW = 0.3  # the error must fall to this share of itself, or the next model gets a new Gram matrix
_INNER = 0.2  # of the wanted gap: the error at which the fit of a working set ends; more costs passes over X
_LOOSE = 0.1  # of the gap over all features: more accurate fits of a set that will change are wasted
_LEAST_CURVATURE = 1e-3  # of the smoothness: what every row gets where the loss has flat pieces; more makes steps shorter
_CAREFUL = 0.03  # of the loss's smoothness: the same, after a step that was cut to a tenth
_ARMIJO = 0.01  # of the decrease that the slope promises: what a step must keep
_FLOOR = 1e-10  # of the objective at zero: an objective below has no meaning, nor has a gap relative to it


# -- the working set ----------------------------------------------------------------------------------


@njit(**INSIDE)
def _score(data, work, j):
    """The alpha at which feature j would begin to move, by its present slope."""
    slope = work.feature[GRADIENT, j]
    if (data.lower[j] if slope > 0.0 else data.upper[j]) == 0.0 or data.l1[j] == 0.0:
        return 0.0
    return abs(slope) / data.l1[j]


@njit(**INSIDE)
def _enter(data, work, j):
    k = work.count[SIZE]
    work.place[INDEX, k], work.place[POSITION, j] = j, k
    column = work.columns[k]
    for i in range(column.size):
        column[i] = data.X[i, j]
    work.member[LOWER, k], work.member[UPPER, k] = data.lower[j], data.upper[j]
    work.count[SIZE] = k + 1


@njit(**INSIDE)
def _drop(data, work, level):
    """Take those out of the set that are zero and far from their thresholds; what has no threshold stays."""
    kept, size, in_gram = work.count[FREE], work.count[SIZE], work.count[IN_GRAM]
    gram, member = work.gram, work.member
    for k in range(kept, size):
        j = work.place[INDEX, k]
        if work.feature[COEF, j] == 0.0 and _score(data, work, j) < 0.9 * level:
            work.place[POSITION, j], work.feature[LAST_COEF, j] = -1, 0.0
            work.count[IN_GRAM] -= k < in_gram
            continue
        if kept != k:
            work.place[INDEX, kept], work.place[POSITION, j] = j, kept
            for what in (LOWER, UPPER, model.MEAN_COLUMN):
                member[what, kept] = member[what, k]
            old, new = work.columns[k], work.columns[kept]
            for i in range(new.size):
                new[i] = old[i]
            for l in range(size):
                gram[kept, l] = gram[k, l]
            for l in range(size):
                gram[l, kept] = gram[l, k]
        kept += 1
    work.count[SIZE] = kept


@njit(**INSIDE)
def _extend(data, work, level, most):
    """Add the features outside whose scores pass the level, at most so many, the largest first; False where the set is
    full. The threshold is found by bisection, which compiles faster than a partition."""
    found, count, high = work.place[FOUND], 0, level
    for j in range(found.size):
        if work.place[POSITION, j] < 0:
            score = _score(data, work, j)
            if score > level:
                found[count] = j
                count += 1
                high = max(high, score)
    if count == 0:
        return True
    most = min(most, work.gram.shape[0] - work.count[SIZE])
    if most <= 0:
        return False
    low = level
    if count > most:
        for _ in range(30):
            middle, above = 0.5 * (low + high), 0
            for k in range(count):
                above += _score(data, work, found[k]) > middle
            if above > most:
                low = middle
            else:
                high = middle
            if above == most:
                break
        low = high
    before = work.count[SIZE]
    for k in range(count):
        if _score(data, work, found[k]) > low:
            _enter(data, work, found[k])
    if work.count[SIZE] == before:
        _enter(data, work, found[0])  # more than `most` have the very same score
    return True


# -- the fit of a working set -------------------------------------------------------------------------


@njit(**INSIDE)
def _loss(data, row, score):
    """The mean loss at these scores, which may be a row of `row`; its slopes and curvatures are kept there."""
    return model.mean_loss(data.kind, data.parameter, data.target, data.weight, score, row[SLOPE], row[CURVATURE])


@njit(**INSIDE)
def _penalty(member, size, length):
    """The penalty of the set after a step of this length."""
    total = 0.0
    for k in range(size):
        value = member[BEFORE, k] + length * member[STEP, k]
        total += member[THRESHOLD, k] * abs(value) + 0.5 * member[QUADRATIC, k] * value * value
    return total


@njit(**INSIDE)
def _load(data, work, alpha):
    """The coefficients and penalties of the set, for this alpha."""
    for k in range(work.count[SIZE]):
        j = work.place[INDEX, k]
        work.member[VALUE, k] = work.member[BEFORE, k] = work.feature[COEF, j]
        work.member[STEP, k] = 0.0
        work.member[THRESHOLD, k] = alpha * data.l1[j]
        work.member[QUADRATIC, k] = alpha * data.ridge[j]


@njit(**INSIDE)
def _error(data, work, intercept_slope):
    """An estimate of the gap on the working set, to first order, from the slopes there: what a certificate would find
    if no other feature mattered."""
    member, gram, total, pen, ratio, free = work.member, work.gram, 0.0, 0.0, 1.0, 0.0
    for k in range(work.count[SIZE]):
        value, slope, threshold, quadratic = (
            member[VALUE, k], member[START_SLOPES, k], member[THRESHOLD, k], member[QUADRATIC, k],
        )  # fmt: skip
        own = threshold * abs(value) + 0.5 * quadratic * value * value
        pen += own
        total += own + value * slope
        if not hard_slope(data, work.place[INDEX, k], slope):
            total -= least(slope, threshold, quadratic, member[LOWER, k], member[UPPER, k])
        elif threshold > 0.0:
            ratio = max(ratio, abs(slope) / threshold)
        elif k < work.count[IN_GRAM] and gram[k, k] > 0.0:
            total -= value * slope
            free = max(free, slope * slope / gram[k, k])
    if data.intercept and work.number[MEAN_CURVATURE] > 0.0:
        free = max(free, intercept_slope * intercept_slope / work.number[MEAN_CURVATURE])
    # slopes without a threshold are mended by moving x, which costs more than their second-order error
    return max(abs(total) + (ratio - 1.0) * pen, 100.0 * free)


@njit(**INSIDE)
def _smoothness(data):
    """The largest curvature of a loss that has flat pieces; 0 for the others."""
    if data.kind == SMOOTHED_HINGE:
        return 1.0 / data.parameter
    return 2.0 if data.kind == SQUARED_HINGE else 1.0 if data.kind == HUBER else 0.0


@njit(**INSIDE)
def _update_gram(data, work, fresh):
    """A Gram matrix of the whole set: its last rows are new, or all are, where the curvatures have changed."""
    row, n = work.row, data.target.size
    change, modelled = 0.0, 0.0
    least_curvature = max(_LEAST_CURVATURE * _smoothness(data), work.number[CARE])
    for i in range(n):
        row[SCRATCH, i] = max(row[CURVATURE, i], data.weight[i] * least_curvature)
        change += abs(row[SCRATCH, i] - row[MODELLED, i])
        modelled += row[MODELLED, i]
    if fresh or change > _KEEP_GRAM * modelled:
        work.count[IN_GRAM], mean = 0, 0.0
        for i in range(n):
            row[MODELLED, i] = row[SCRATCH, i]
            mean += row[SCRATCH, i] / n
        work.number[MEAN_CURVATURE] = max(mean, 1e-300)
    model.append_gram(
        work.columns, row[MODELLED], row[SCRATCH], work.gram, work.member[MEAN_COLUMN], work.count[IN_GRAM],
        work.count[SIZE], work.number[MEAN_CURVATURE] if data.intercept else 0.0,
    )  # fmt: skip
    work.count[IN_GRAM] = work.count[SIZE]


@njit(**INSIDE)
def _slopes(data, work):
    """The slopes of the loss on the set, and of the intercept."""
    slope, n, total = work.row[SLOPE], data.target.size, 0.0
    for k in range(work.count[SIZE]):
        work.member[START_SLOPES, k] = model.dot(work.columns[k], slope) / n
    for i in range(n):
        total += slope[i]
    return total / n if data.intercept else 0.0


@njit(**INSIDE)
def _solve_model(data, work, intercept_slope, accuracy):
    """Move the values to the model's minimum; returns the intercept's move."""
    member, size, unit, mean = work.member, work.count[SIZE], 0.0, work.number[MEAN_CURVATURE]
    steepest = 1e-300
    for k in range(size):
        member[BEFORE, k] = member[VALUE, k]
        member[SLOPES, k] = member[START_SLOPES, k] - member[MEAN_COLUMN, k] * intercept_slope / mean
        unit, steepest = max(unit, member[THRESHOLD, k]), max(steepest, abs(member[SLOPES, k]))
    model.minimise_model(work.gram, size, member, work.factor, work.support[0], unit if unit > 0.0 else steepest, accuracy)
    shift = -intercept_slope
    for k in range(size):
        member[STEP, k] = member[VALUE, k] - member[BEFORE, k]
        shift -= member[MEAN_COLUMN, k] * member[STEP, k]
    return shift / mean if data.intercept else 0.0


@njit(**INSIDE)
def _store(work):
    """The values of the set become coefficients; the slopes over all features are then those of another point."""
    for k in range(work.count[SIZE]):
        work.feature[COEF, work.place[INDEX, k]] = work.member[VALUE, k]
    work.count[CURRENT] = 0


@njit(**INSIDE)
def _step(data, work, shift, promise):
    """Go along a step as far as the true objective falls by a part of what was promised for the whole of it; returns
    the share, 0 where it never does."""
    member, row, size = work.member, work.row, work.count[SIZE]
    before = _penalty(member, size, 0.0)
    start = work.number[LOSS] + before
    model.combine(work.columns, size, member[STEP], shift, row[CHANGE])
    length = 1.0
    for _ in range(_MOST_HALVINGS):
        for i in range(data.target.size):
            row[TRIAL, i] = row[SCORE, i] + length * row[CHANGE, i]
        loss = _loss(data, row, row[TRIAL])
        if loss + _penalty(member, size, length) <= start + _ARMIJO * length * promise + 1e-15 * abs(start):
            for i in range(data.target.size):
                row[SCORE, i] = row[TRIAL, i]
            if length < 1.0:
                for k in range(size):
                    member[VALUE, k] = member[BEFORE, k] + length * member[STEP, k]
            work.number[LOSS] = loss
            work.number[INTERCEPT] += length * shift
            return length
        length *= 0.5
    for k in range(size):
        member[VALUE, k] = member[BEFORE, k]
    _loss(data, row, row[SCORE])
    return 0.0


@njit(inline="always")
def _fit_set(data, work, alpha, wanted, limit):
    """Fit the working set until its estimated gap is at most `limit`, for a gap of `wanted` in the end."""
    member, number, size = work.member, work.number, work.count[SIZE]
    _load(data, work, alpha)
    fresh, last = False, np.inf
    for turn in range(_MOST_MODELS):
        intercept_slope = _slopes(data, work)
        error = _error(data, work, intercept_slope)
        if turn > 0:
            if error <= limit:
                break
            fresh = fresh or error > _SLOW * last
        last = error
        _update_gram(data, work, fresh and data.kind != SQUARED)
        pen = max(_penalty(member, size, 0.0) if turn == 0 else _penalty(member, size, 1.0), 1e-300)
        # the model of the squared loss is exact, so that it is solved once and well
        accuracy = 0.5 * wanted / pen if data.kind == SQUARED else 0.03 * max(limit, 0.01 * error) / pen
        shift = _solve_model(data, work, intercept_slope, min(max(accuracy, 1e-10), 1e-3))
        promise = _penalty(member, size, 1.0) - _penalty(member, size, 0.0) + intercept_slope * shift
        for k in range(size):
            promise += member[START_SLOPES, k] * member[STEP, k]
        length = _step(data, work, shift, promise)
        fresh = length < 1.0
        if length <= 0.1:
            number[CARE] = min(max(10.0 * number[CARE], _CAREFUL * _smoothness(data)), _smoothness(data))
        elif length == 1.0:
            number[CARE] *= 0.3
        if data.kind == SQUARED:
            break
        for k in range(size):
            member[BEFORE, k], member[STEP, k] = member[VALUE, k], 0.0
    _store(work)


# -- one alpha ----------------------------------------------------------------------------------------


@njit(inline="always")
def _solve(data, work, alpha, last_alpha, tol, rounds):
    """Rounds of extending, fitting and certifying; whether the gap became small enough. row[BEST] is the x
    that proves the dual bound."""
    n, p = data.X.shape
    count, row, best, gap, halved, since = work.count, work.row, NO_BOUND, np.inf, np.inf, 0
    for turn in range(rounds):
        _load(data, work, alpha)
        primal = work.number[LOSS] + _penalty(work.member, count[SIZE], 0.0)
        wanted = tol * max(abs(primal), _FLOOR * work.number[AT_ZERO])
        if not np.isfinite(primal):
            return False
        if count[CURRENT] == 1:
            bound, scale = dual_bound(data, work, alpha, primal - wanted)
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
            if since > _PATIENCE:
                return False
        support = 0
        for k in range(count[SIZE]):
            support += work.feature[COEF, work.place[INDEX, k]] != 0.0
        if support > LARGEST_SUPPORT:
            return False
        near = turn == 0 and last_alpha < _NEAR * alpha
        level = min(alpha - 0.5 * (last_alpha - alpha), alpha) if near else alpha
        if turn == 0 and count[SIZE] > 2 * support + 32 + count[FREE]:
            _drop(data, work, level)
        first = max(10, min(_FIRST_SET, int64(2.0 * np.sqrt(p))))
        if not _extend(data, work, level, p if near or p <= _TAKE_ALL else max(support, first)):
            return False
        _fit_set(data, work, alpha, wanted, max(_INNER * wanted, _LOOSE * gap if np.isfinite(gap) else 0.0))
        sweep(data, work)
    return False


@njit(**INSIDE)
def _predict(data, work, alpha, reach):
    """Start the next alpha where the last two answers point to, `reach` times as far again, or on the way there if that
    is better. Coefficients that would cross zero stop short of it."""
    member, number, size = work.member, work.number, work.count[SIZE]
    _load(data, work, alpha)
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
    if reach > 0.0 and _step(data, work, shift, 0.0) > 0.0:
        _store(work)


# -- the whole path -----------------------------------------------------------------------------------


@njit(**INSIDE)
def _first_intercept(data):
    """The best intercept for w = 0 where there is a formula for it, and the mean of the targets elsewhere: every model
    has the intercept in it, so that a start need not be the best."""
    mean = 0.0
    for i in range(data.target.size):
        mean += data.weight[i] * data.target[i] / data.target.size
    if data.kind == LOGISTIC:
        return np.log(max(1.0 + mean, 1e-12) / max(1.0 - mean, 1e-12))
    return np.log(max(mean, 1e-30)) if data.kind == POISSON else mean


@njit(**INSIDE)
def _clear(work):
    for i in range(work.row.shape[1]):
        work.row[SCORE, i] = work.row[MODELLED, i] = 0.0
        work.columns[-1, i] = 1.0
    for j in range(work.feature.shape[1]):
        work.feature[COEF, j] = work.feature[LAST_COEF, j] = 0.0
        work.place[POSITION, j] = -1
    for k in range(COUNTS):
        work.count[k] = 0
    for k in range(NUMBERS):
        work.number[k] = 0.0


@njit(inline="always")
def _begin(data, work):
    """Zero, its intercept and the slopes there; features without a threshold enter the set. False if they are too
    many."""
    number = work.number
    _clear(work)
    at_zero = _loss(data, work.row, work.row[SCORE])
    number[AT_ZERO] = 0.0 if data.kind == LOGISTIC else abs(at_zero)
    if data.intercept:
        number[INTERCEPT] = _first_intercept(data)
        for i in range(data.target.size):
            work.row[SCORE, i] = number[INTERCEPT]
    number[LOSS] = _loss(data, work.row, work.row[SCORE])
    for j in range(data.l1.size):
        if data.l1[j] == 0.0 and data.lower[j] < data.upper[j]:
            if work.count[SIZE] == work.gram.shape[0]:
                return False
            _enter(data, work, j)
    work.count[FREE] = work.count[SIZE]
    sweep(data, work)
    return True


_READ, _READ2 = types.Array(float64, 1, "C", readonly=True), types.Array(float64, 2, "C", readonly=True)
_VECTOR, _MATRIX, _INDEX = float64[::1], float64[:, ::1], int64[:, ::1]
_DATA = (_READ2, _READ, _READ, int64, float64, _READ, _READ, _READ, _READ, boolean)  # as the fields of Data
_WORK = types.NamedTuple(
    (_MATRIX, _MATRIX, _INDEX, _MATRIX, _MATRIX, _MATRIX, _MATRIX, _INDEX, int64[::1], _VECTOR), Work
)
_ANSWER = types.NamedTuple((_MATRIX, _VECTOR, _VECTOR, _VECTOR, _MATRIX, _VECTOR), Answer)


# One compiled function has a signature. The others are compiled with it, and a process that finds it in the cache loads
# nothing else.
@njit(int64(*_DATA, _WORK, _READ, float64, _ANSWER), nogil=True, cache=True, **{**LEAN, "fastmath": False})
def _run(X, target, weight, kind, parameter, l1, ridge, lower, upper, intercept, work, alphas, tol, answer):
    """What `follow` does, in rooms that it was given."""
    data = Data(X, target, weight, kind, parameter, l1, ridge, lower, upper, intercept)
    n, p = X.shape
    if not _begin(data, work):
        return 0
    last, last_but_one, stage = np.inf, np.inf, 0.0
    for j in range(p if p > n else 0):
        stage = max(stage, _score(data, work, j) / _STAGE)
    k = int64(0)
    while k < alphas.size:
        alpha = alphas[k]
        if not 0.0 < alpha < np.inf:
            break
        staged = k == 0 and np.sqrt(_STAGE) * alpha < stage < np.inf
        if staged:
            alpha, stage = stage, stage / _STAGE
        elif k > 0:
            near = alpha < last < last_but_one < np.inf
            _predict(data, work, alpha, min(np.log(last / alpha) / np.log(last_but_one / last), 2.0) if near else 0.0)
        done = _solve(data, work, alpha, last, _STAGE_TOL if staged else tol, 1 if staged else _MOST_ROUNDS)
        last_but_one, last = last if k > 0 else np.inf, alpha
        if staged:
            continue
        if not done:
            break
        for j in range(p):
            answer.W[k, j] = work.feature[COEF, j]
        for i in range(n):
            answer.x[k, i] = work.row[BEST, i]
        answer.b[k], answer.primal[k], answer.dual[k] = (
            work.number[INTERCEPT], work.number[PRIMAL_BOUND], work.number[DUAL_BOUND],
        )  # fmt: skip
        answer.passes[k], work.count[PASSES] = work.count[PASSES], 0
        k += 1
    return k


def follow(
    X, target, weight, kind, params, alphas, l1, ridge, lower, upper, tol, fit_intercept, W, b, primal, dual, x, passes
):  # fmt: skip
    """Solve for falling alphas and certify every answer; returns how many were finished.

    It stops before an alpha whose working set or support is too large for plain loops, whose gap does not become small
    enough, or where a number is not finite: the caller goes on from there by other means.

    Parameters
    ----------
    X : (n, p) array, C-ordered
    target, weight : vectors of n numbers
        Weights have mean 1; rows of weight 0 play no part.
    kind : int
        Of :data:`fenchel.kernels.small_model.KINDS`.
    params : vector
        Its first entry is the smoothing of the smoothed hinge or the delta of Huber's loss; others take no notice.
    alphas : vector of positive numbers
    l1, ridge, lower, upper : vectors of p numbers
        A feature with lower = upper = 0 stays out; one with l1 = 0 is always in the working set.
    tol : float
        Every gap is at most tol * |primal|.
    fit_intercept : bool
    W, b, primal, dual, x, passes : arrays, one row or number for every alpha
        They are filled in: coefficients, intercept, bounds of the optimum, the n dual variables that prove the lower
        one (their sum is zero if there is an intercept), and the number of products with the whole of X.
    """
    n, p = X.shape
    most = max(min(p, LARGEST_SET), 1)
    # pages of memory that nobody touches cost nothing, so that the set may grow without moving
    work = Work(
        np.empty((ROW_ROWS, n)), np.empty((FEATURE_ROWS, p)), np.empty((PLACE_ROWS, p), np.int64),
        np.empty((MEMBER_ROWS, most)), np.empty((most + 1, n)), np.empty((most, most)), np.empty((most + 2, most + 2)),
        np.empty((2, most + 1), np.int64), np.empty(COUNTS, np.int64), np.empty(NUMBERS),
    )  # fmt: skip
    answer = Answer(W, b, primal, dual, x, passes)
    return _run(
        X, target, weight, kind, params[0], l1, ridge, lower, upper, fit_intercept, work, alphas, tol, answer
    )
