"""The working set of small dense problems: which features are in it, and their fit.

A fit is a sequence of quadratic models of the loss on the set. Their Gram matrix is kept while it is good enough, and
grows with the set; steps are halved on the true objective.

========== ======================= ==========================================================================
Symbol     Name here               Meaning
========== ======================= ==========================================================================
v          member[VALUE]           w on the working set; member[BEFORE] + length * member[STEP] on the way there
u, x, h    row[SCORE], row[SLOPE], scores z_i'w + b, slopes s_i f'(u_i), curvatures s_i f''(u_i)
           row[CURVATURE]
h_G        row[MODELLED]           the curvatures that the Gram matrix was made of
========== ======================= ==========================================================================
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import boolean, float64, int64, njit, void

from ..foundation.numerics import ARMIJO, HALVINGS
from . import small_losses as losses
from . import small_model as model
from .apart import INSIDE, LIST, MATRIX, READ, VECTOR, apart
from .rules import CAREFUL, LEAST, MEMORY, ROUNDS, SLOW
from .small_certificate import (
    AHEAD,
    BEGAN,
    CARE,
    CHANGE,
    COEF,
    CURRENT,
    CURVATURE,
    DATA,
    FORESEEN,
    FOUND,
    FREE,
    GRADIENT,
    IN_GRAM,
    INDEX,
    INTERCEPT,
    LAST_COEF,
    LOSS,
    MEAN_CURVATURE,
    MODELLED,
    POSITION,
    SCORE,
    SCORES,
    SCRATCH,
    SIZE,
    SLOPE,
    TIGHT,
    TRIAL,
    WORK,
    foresee,
    hard_slope,
    least,
)  # fmt: skip
from .small_losses import COVARIANCES, SQUARED
from .small_model import (
    BEFORE,
    LOWER,
    MEAN_COLUMN,
    QUADRATIC,
    SLOPES,
    START_SLOPES,
    STEP,
    THRESHOLD,
    UPPER,
    VALUE,
)  # fmt: skip

FIRST_SET = 40  # at most so many features enter a set that knows nothing; more make Gram matrices that nobody needs
KEEP_GRAM = 0.15  # relative change of the rows' curvatures up to which a Gram matrix is kept; more costs models


def lines_of(X: Any) -> tuple[Any, bool]:
    """The data line by line as they are stored, and whether the lines are their columns."""
    return (X, False) if X.flags.c_contiguous else (X.T, True)


def largest_set(n: int, p: int, most: int = 0) -> int:
    """Coordinates of the largest working set whose columns, Gram matrix and factor stay within the budget; `most` of
    them, or not many more than there are rows, because rows of a large matrix are far apart in memory."""
    # 8 (m n + 2 m^2) = MEMORY
    room = (math.sqrt(n * n + MEMORY) - n) / 4
    most = most or (max(3 * n + 200, 400) if n else p)
    found = max(min(p, int(room), most), 1)
    # the rows of a matrix with a power of two for its length fall into the same few places of the cache
    return found - 1 if found % 64 == 0 and found < p else found


# -- the working set ----------------------------------------------------------------------------------


@njit(**INSIDE)
def score(data, work, j):
    """The alpha at which feature j would begin to move, by its present slope."""
    slope = work.feature[GRADIENT, j]
    if (data.lower[j] if slope > 0.0 else data.upper[j]) == 0.0 or data.l1[j] == 0.0:
        return 0.0
    return abs(slope) / data.l1[j]


@apart(void(DATA, WORK, int64))
def enter(data, work, j):
    k = work.count[SIZE]
    work.place[INDEX, k], work.place[POSITION, j] = j, k
    model.take_column(data.X, data.by_column, j, work.columns[k])
    work.member[LOWER, k], work.member[UPPER, k] = data.lower[j], data.upper[j]
    work.count[SIZE] = k + 1


@apart(void(DATA, WORK, float64))
def drop(data, work, level):
    """Take those out of the set that are zero and far from their thresholds; what has no threshold stays."""
    kept, size, in_gram = work.count[FREE], work.count[SIZE], work.count[IN_GRAM]
    gram, member = work.gram, work.member
    for k in range(kept, size):
        j = work.place[INDEX, k]
        if work.feature[COEF, j] == 0.0 and score(data, work, j) < 0.9 * level:
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


@apart(boolean(DATA, WORK, float64, int64))
def extend(data, work, level, most):
    """Add the features outside whose scores pass the level, at most so many, the largest first; False where the set is
    full."""
    found, scores, count, high = work.place[FOUND], work.feature[SCORES], int64(0), level
    for j in range(found.size):
        if work.place[POSITION, j] < 0:
            own = score(data, work, j)
            if own > level:
                found[count], scores[count] = j, own
                count += 1
                high = max(high, own)
    if count == 0:
        return True
    most = min(most, work.gram.shape[0] - work.count[SIZE])
    if most <= 0:
        return False
    if count > most:
        count = max(_largest(found, scores, count, level, high, most), 1)  # of very equal scores one enters
    first = work.count[SIZE]
    for k in range(count):
        j = found[k]
        work.place[INDEX, first + k], work.place[POSITION, j] = j, first + k
        work.member[LOWER, first + k], work.member[UPPER, first + k] = data.lower[j], data.upper[j]
    work.count[SIZE] = first + count
    if data.kind != COVARIANCES:
        model.take_columns(data.X, data.by_column, work.place[INDEX], first, first + count, work.columns)
    return True


@apart(int64(LIST, VECTOR, int64, float64, float64, int64))
def _largest(found, scores, count, low, high, most):
    """Bring the largest scores to the front, at most so many, and count them: those above a threshold that is found by
    bisection, every step of which looks only at those that the steps before left open."""
    sure, end = int64(0), count
    for _ in range(60):
        middle, above = 0.5 * (low + high), sure
        for k in range(sure, end):
            if scores[k] > middle:
                found[k], found[above] = found[above], found[k]
                scores[k], scores[above] = scores[above], scores[k]
                above += 1
        if above > most:
            low, end = middle, above
        else:
            high, sure = middle, above
        if sure in (most, end):
            break
    return sure


# -- the fit of a working set -------------------------------------------------------------------------


@apart(float64(DATA, MATRIX, READ))
def loss_at(data, row, score):
    """The mean loss at these scores, which may be a row of `row`; its slopes and curvatures are kept there."""
    if data.kind == COVARIANCES:
        return 0.5 * data.parameter  # it is only asked for at zero
    return losses.mean_loss(data.blas, data.parameter, data.target, data.weight, score, row[SLOPE], row[CURVATURE])


@apart(float64(MATRIX, int64, float64))
def set_penalty(member, size, length):
    """The penalty of the set after a step of this length."""
    total = 0.0
    for k in range(size):
        value = member[BEFORE, k] + length * member[STEP, k]
        total += member[THRESHOLD, k] * abs(value) + 0.5 * member[QUADRATIC, k] * value * value
    return total


@apart(void(DATA, WORK, float64))
def load(data, work, alpha):
    """The coefficients and penalties of the set, for this alpha."""
    for k in range(work.count[SIZE]):
        j = work.place[INDEX, k]
        work.member[VALUE, k] = work.member[BEFORE, k] = work.feature[COEF, j]
        work.member[STEP, k] = 0.0
        work.member[THRESHOLD, k] = alpha * data.l1[j]
        work.member[QUADRATIC, k] = alpha * data.ridge[j]


@apart(float64(DATA, WORK, float64))
def error_on_set(data, work, intercept_slope):
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
    # slopes without a threshold are mended by moving x, which costs an error of the first order
    return max(abs(total) + (ratio - 1.0) * pen, max(100.0 * free, 0.1 * np.sqrt(free * abs(work.number[LOSS]))))


@apart(void(DATA, WORK, boolean))
def refresh(data, work, fresh):
    """Take the present curvatures for the next model, if they have changed so much that the last ones will not do."""
    row, n = work.row, data.target.size
    change, modelled = 0.0, 0.0
    least_curvature = max(LEAST * losses.smoothness(data.kind, data.parameter), work.number[CARE])
    for i in range(n):
        row[SCRATCH, i] = max(row[CURVATURE, i], data.weight[i] * least_curvature)
        change += abs(row[SCRATCH, i] - row[MODELLED, i])
        modelled += row[MODELLED, i]
    if fresh or change > KEEP_GRAM * modelled:
        work.count[IN_GRAM], mean = 0, 0.0
        for i in range(n):
            row[MODELLED, i] = row[SCRATCH, i]
            mean += row[SCRATCH, i] / n
        work.number[MEAN_CURVATURE] = max(mean, 1e-300)


@apart(void(DATA, WORK, boolean))
def _update_gram(data, work, fresh):
    """A Gram matrix of the whole set: its last rows are new, or all are, where the curvatures have changed."""
    refresh(data, work, fresh)
    model.append_gram(
        work.columns, work.row[MODELLED], work.tile, work.gram, work.member[MEAN_COLUMN], work.count[IN_GRAM],
        work.count[SIZE], work.number[MEAN_CURVATURE] if data.intercept else 0.0, data.blas,
    )  # fmt: skip
    work.count[IN_GRAM] = work.count[SIZE]


@apart(float64(DATA, WORK))
def _slopes(data, work):
    """The slopes of the loss on the set, and of the intercept."""
    slope, n, total = work.row[SLOPE], data.target.size, 0.0
    for k in range(work.count[SIZE]):
        work.member[START_SLOPES, k] = model.dot(work.columns[k], slope) / n
    for i in range(n):
        total += slope[i]
    return total / n if data.intercept else 0.0


@apart(float64(DATA, WORK, float64, float64))
def solve_model(data, work, intercept_slope, accuracy):
    """Move the values to the model's minimum; returns the intercept's move."""
    member, size, unit, mean = work.member, work.count[SIZE], 0.0, work.number[MEAN_CURVATURE]
    steepest = 1e-300
    for k in range(size):
        member[BEFORE, k] = member[VALUE, k]
        member[SLOPES, k] = member[START_SLOPES, k] - member[MEAN_COLUMN, k] * intercept_slope / mean
        unit, steepest = max(unit, member[THRESHOLD, k]), max(steepest, abs(member[SLOPES, k]))
    model.minimise_model(
        work.gram, size, member, work.factor, work.support[0], unit if unit > 0.0 else steepest, accuracy, data.blas
    )
    shift = -intercept_slope
    for k in range(size):
        member[STEP, k] = member[VALUE, k] - member[BEFORE, k]
        shift -= member[MEAN_COLUMN, k] * member[STEP, k]
    return shift / mean if data.intercept else 0.0


@apart(void(WORK))
def store(work):
    """The values of the set become coefficients; the slopes over all features are then those of another point."""
    for k in range(work.count[SIZE]):
        work.feature[COEF, work.place[INDEX, k]] = work.member[VALUE, k]
    work.count[CURRENT] = 0


@apart(float64(DATA, WORK, float64, float64))
def step(data, work, shift, promise):
    """Go along a step as far as the true objective falls by a part of what was promised for the whole of it; returns
    the share, 0 where it never does."""
    member, row, size = work.member, work.row, work.count[SIZE]
    before = set_penalty(member, size, 0.0)
    if data.kind == COVARIANCES:  # the slopes are those of the start of the step
        gain = set_penalty(member, size, 1.0) - before
        for k in range(size):
            row, total = work.gram[k], work.feature[GRADIENT, work.place[INDEX, k]]
            for l in range(size):
                total += 0.5 * row[l] * member[STEP, l]
            gain += total * member[STEP, k]
        return 1.0 if gain < 0.0 else 0.0
    model.combine(work.columns, size, member[STEP], shift, row[CHANGE])
    return search(data, work, shift, promise)


@apart(float64(DATA, WORK, float64, float64))
def search(data, work, shift, promise):
    """See `step`; row[CHANGE] is how the scores change along the whole of it."""
    member, row, size = work.member, work.row, work.count[SIZE]
    start = work.number[LOSS] + set_penalty(member, size, 0.0)
    length = 1.0
    for _ in range(HALVINGS):
        for i in range(data.target.size):
            row[TRIAL, i] = row[SCORE, i] + length * row[CHANGE, i]
        loss = loss_at(data, row, row[TRIAL])
        if loss + set_penalty(member, size, length) <= start + ARMIJO * length * promise + 1e-15 * abs(start):
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
    loss_at(data, row, row[SCORE])
    return 0.0


@apart(float64(DATA, WORK))
def _foresee(data, work):
    """The gap on the set that the x of the last model proves, which is all of it if no feature outside matters;
    infinite where this x leaves the domain of the conjugate."""
    return gap_ahead(data, work) if foresee(data.weight, work.row) else np.inf


@apart(float64(DATA, WORK))
def gap_ahead(data, work):
    """See `_foresee`; row[AHEAD] is this x, in the domain of the conjugate."""
    row, member, ratio, total = work.row, work.member, 1.0, 0.0
    for k in range(work.count[SIZE]):
        if member[THRESHOLD, k] > 0.0 and hard_slope(data, work.place[INDEX, k], member[SLOPES, k]):
            ratio = max(ratio, abs(member[SLOPES, k]) / member[THRESHOLD, k])
    for k in range(work.count[SIZE]):
        slope, threshold, quadratic = member[SLOPES, k] / ratio, member[THRESHOLD, k], member[QUADRATIC, k]
        if threshold > 0.0 or not hard_slope(data, work.place[INDEX, k], slope):
            total += least(slope, threshold, quadratic, member[LOWER, k], member[UPPER, k])
    total -= losses.mean_conjugate(data.blas, data.parameter, data.target, data.weight, row[AHEAD], 1.0 / ratio)
    return work.number[LOSS] + set_penalty(member, work.count[SIZE], 1.0) - total


@apart(void(DATA, WORK, float64))
def _fit_covariances(data, work, wanted):
    """The fit of a set where the Gram matrix of all features is known: one model, which is exact."""
    member, gram, size, pen = work.member, work.gram, work.count[SIZE], 1e-300
    for k in range(size):
        row = data.X[work.place[INDEX, k]]
        for l in range(k + 1 if k >= work.count[IN_GRAM] else 0):
            gram[k, l] = gram[l, k] = row[work.place[INDEX, l]]
        member[MEAN_COLUMN, k] = 0.0
    for k in range(size):
        own = gram[k]
        total = -data.target[work.place[INDEX, k]]
        for l in range(size):
            total += own[l] * member[VALUE, l]
        member[START_SLOPES, k] = total
        pen += member[THRESHOLD, k] * abs(member[VALUE, k])
    work.count[IN_GRAM], work.number[MEAN_CURVATURE] = size, 1.0
    solve_model(data, work, 0.0, work.number[TIGHT] * min(max(0.5 * wanted / pen, 1e-10), 1e-3))
    store(work)


@apart(float64(WORK, float64))
def prepare(work, total):
    """What a model promises for the whole of its step, where the intercept's part is `total`; the slopes of the rows
    before it are kept."""
    member, size = work.member, work.count[SIZE]
    total += set_penalty(member, size, 1.0) - set_penalty(member, size, 0.0)
    for k in range(size):
        total += member[START_SLOPES, k] * member[STEP, k]
    for i in range(work.row.shape[1]):
        work.row[BEGAN, i] = work.row[SLOPE, i]
    return total


@apart(void(DATA, WORK, float64))
def take_care(data, work, length):
    """After a step that was cut short, rows of flat pieces get more curvature; after a whole one less."""
    number = work.number
    if length <= 0.1:
        top = losses.smoothness(data.kind, data.parameter)
        number[CARE] = min(max(10.0 * number[CARE], CAREFUL * top), top)
    elif length == 1.0:
        number[CARE] *= 0.3


@apart(void(DATA, WORK, float64, float64, float64))
def fit_set(data, work, alpha, wanted, limit):
    """Fit the working set until its estimated gap is at most `limit`, for a gap of `wanted` in the end."""
    member, number, size = work.member, work.number, work.count[SIZE]
    load(data, work, alpha)
    if data.kind == COVARIANCES:
        _fit_covariances(data, work, wanted)
        return
    fresh, last = False, np.inf
    for turn in range(ROUNDS):
        intercept_slope = _slopes(data, work)
        error = error_on_set(data, work, intercept_slope)
        if turn > 0:
            if error <= limit:
                break
            fresh = fresh or error > SLOW * last
        last = error
        _update_gram(data, work, fresh and data.kind != SQUARED)
        pen = max(set_penalty(member, size, 0.0) if turn == 0 else set_penalty(member, size, 1.0), 1e-300)
        # the model of the squared loss is exact, so that it is solved once and well
        accuracy = 0.5 * wanted / pen if data.kind == SQUARED else 0.03 * max(limit, 0.01 * error) / pen
        shift = solve_model(data, work, intercept_slope, number[TIGHT] * min(max(accuracy, 1e-10), 1e-3))
        length = step(data, work, shift, prepare(work, intercept_slope * shift))
        fresh = length < 1.0
        take_care(data, work, length)
        if data.kind == SQUARED:
            break
        foreseen = length == 1.0 and _foresee(data, work) <= limit
        for k in range(size):
            member[BEFORE, k], member[STEP, k] = member[VALUE, k], 0.0
        if foreseen:
            work.count[FORESEEN] = 1
            break
    store(work)
