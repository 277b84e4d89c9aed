"""The working set of sparse problems: which features are in it, and their fit.

As ``small_set.py``, on columns that stay where they are. Models have a Gram matrix. A set whose model would be far
cheaper without one is left to ``engine/rounds.py``, which can do so.

Symbols are those of ``small_set.py``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from . import small_model as model
from .small_certificate import (
    AHEAD,
    BEGAN,
    CARE,
    CHANGE,
    COEF,
    CURVATURE,
    FORESEEN,
    FOUND,
    IN_GRAM,
    INDEX,
    INTERCEPT,
    LAST_COEF,
    LOSS,
    MEAN_CURVATURE,
    MODELLED,
    POSITION,
    SCORE,
    SCRATCH,
    SIZE,
    SLOPE,
    TIGHT,
    TRIAL,
    hard_slope,
    least,
)  # fmt: skip
from .small_model import (
    BEFORE,
    INSIDE,
    LOWER,
    MEAN_COLUMN,
    QUADRATIC,
    SLOPES,
    SQUARED,
    START_SLOPES,
    STEP,
    THRESHOLD,
    UPPER,
    VALUE,
)  # fmt: skip
from .small_set import (
    ARMIJO,
    CAREFUL,
    KEEP_GRAM,
    LEAST_CURVATURE,
    MOST_HALVINGS,
    SLOW,
    _error,
    _solve_model,
    load,
    loss_at,
    score,
    set_penalty,
    store,
)  # fmt: skip
from .sparse_layout import (
    DESCENT,
    FACTOR,
    MOVE,
    PAIR,
    PASS,
    ROUND,
    ROW,
    SPENT,
    TAKEN,
    append_gram,
    column_dot,
    combine,
    entries_of,
)  # fmt: skip

_TURNS = 12  # passes of descent that a model takes
_READS = 2.6  # reads of an entry in a pass of descent on columns
_HARD = 3.0  # score at the start from which a feature likely stays; smaller: problems that would fit are left
_OUTSIDE = 0.1  # of the squared error of the slopes: how far outside the domain of x a model may be


# -- the working set ----------------------------------------------------------------------------------


@njit(**INSIDE)
def enter(data, work, j):
    k = work.count[SIZE]
    work.place[INDEX, k], work.place[POSITION, j] = j, k
    work.member[LOWER, k], work.member[UPPER, k] = data.lower[j], data.upper[j]
    work.count[SIZE], work.count[TAKEN] = k + 1, 0


@njit(**INSIDE)
def drop(data, work, level):
    """Take those out of the set that are zero and far from their thresholds."""
    kept, size, in_gram = 0, work.count[SIZE], work.count[IN_GRAM]
    gram, member, known = work.gram, work.member, 0
    for k in range(size):
        j = work.place[INDEX, k]
        if work.feature[COEF, j] == 0.0 and score(data, work, j) < 0.9 * level:
            work.place[POSITION, j], work.feature[LAST_COEF, j] = -1, 0.0
            continue
        if kept != k:
            work.place[INDEX, kept], work.place[POSITION, j] = j, kept
            for what in (LOWER, UPPER, MEAN_COLUMN):
                member[what, kept] = member[what, k]
            if k < in_gram:
                for l in range(in_gram):
                    gram[kept, l] = gram[k, l]
                for l in range(in_gram):
                    gram[l, kept] = gram[l, k]
        known += k < in_gram
        kept += 1
    work.count[SIZE], work.count[IN_GRAM], work.count[TAKEN] = kept, known, 0


@njit(**INSIDE)
def extend(data, work, level, most):
    """Add the features outside whose scores pass the level, at most so many, the largest first; how many were added.
    The threshold is found by bisection, which compiles faster than a partition."""
    found, count, high = work.place[FOUND], 0, level
    for j in range(found.size):
        if work.place[POSITION, j] < 0:
            own = score(data, work, j)
            if own > level:
                found[count] = j
                count += 1
                high = max(high, own)
    low = level
    if count > most:
        for _ in range(30):
            middle, above = 0.5 * (low + high), 0
            for k in range(count):
                above += score(data, work, found[k]) > middle
            if above > most:
                low = middle
            else:
                high = middle
            if above == most:
                break
        low = high
    before = work.count[SIZE]
    for k in range(count):
        if score(data, work, found[k]) > low:
            enter(data, work, found[k])
    if count > 0 and work.count[SIZE] == before:
        enter(data, work, found[0])  # more than `most` have the very same score
    return work.count[SIZE] - before


# -- prices -------------------------------------------------------------------------------------------


@njit(**INSIDE)
def model_price(data, size, entries, support):
    """Of the Gram matrix of so many columns with so many entries, and of descent on it."""
    share = entries / max(data.places.size, 1)
    made = share * share * data.pairs * data.price[PAIR] + data.price[MOVE] * entries + 4.0 * size * size
    return made + _TURNS * size * min(size, max(20.0, 2.0 * support)) * data.price[DESCENT]


@njit(**INSIDE)
def first_size(data):
    """Features that a set may begin with, so that their model costs no more than the look that chose them."""
    p, n, entries = data.l1.size, data.target.size, data.places.size
    look = 2.0 * entries * data.price[PASS] + n * data.price[ROW]
    size = 10
    while size < p and model_price(data, 2.0 * size, 2.0 * size / p * entries, 1.0 * size) <= look:
        size *= 2
    return size


@njit(**INSIDE)
def too_dear(data, work, alpha):
    """Whether somebody else had better go on: there is no room for the Gram matrix of the set, or will likely be none,
    because too many features are pulled much harder than their thresholds hold them; or, where features are more than
    rows, descent on the columns without that matrix is cheaper by more than the rounds in Python that can do it."""
    size, support, hard, n, p = work.count[SIZE], 0, 0, data.target.size, data.l1.size
    most = work.gram.shape[0]
    for j in range(p if most < p <= n else 0):
        hard += score(data, work, j) > _HARD * alpha
    if size > most or hard > most:
        return True
    for k in range(size):
        support += work.feature[COEF, work.place[INDEX, k]] != 0.0
    entries = 1.0 * entries_of(data, work.place[INDEX], size)
    priced = model_price(data, 1.0 * size, entries, 1.0 * support)
    priced += data.price[FACTOR] * support * support / 6.0 * support
    return p > n and priced > _TURNS * _READS * entries * data.price[PASS] + data.price[ROUND]


# -- the fit of a working set -------------------------------------------------------------------------


@njit(**INSIDE)
def _refresh(data, work, fresh):
    """Take the present curvatures for the next model, if they have changed so much that the last ones will not do."""
    row, n = work.row, data.target.size
    change, modelled = 0.0, 0.0
    least_curvature = max(LEAST_CURVATURE * model.smoothness(data.kind, data.parameter), work.number[CARE])
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


@njit(**INSIDE)
def _slopes(data, work):
    """The slopes of the loss on the set, and of the intercept."""
    slope, n, total = work.row[SLOPE], data.target.size, 0.0
    for k in range(work.count[SIZE]):
        j = work.place[INDEX, k]
        work.member[START_SLOPES, k] = column_dot(data.values, data.places, data.ends[j], data.ends[j + 1], slope) / n
    for i in range(n):
        total += slope[i]
    return total / n if data.intercept else 0.0


@njit(**INSIDE)
def step(data, work, shift, promise):
    """Go along a step as far as the true objective falls by a part of what was promised for the whole of it; returns
    the share, 0 where it never does."""
    member, row, size = work.member, work.row, work.count[SIZE]
    start = work.number[LOSS] + set_penalty(member, size, 0.0)
    combine(data, work, size, member[STEP], shift, row[CHANGE])
    length = 1.0
    for _ in range(MOST_HALVINGS):
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


@njit(**INSIDE)
def _foresee(data, work):
    """The gap on the set that the x of the last model proves, as in small_set.py; but an x that leaves the domain of
    the conjugate by little is brought back, as rows that are nearly certain ask for. The look at all features takes x
    as it is then, so that nothing unproven enters."""
    row, member, size, n = work.row, work.member, work.count[SIZE], data.target.size
    outside, off, ratio, total = 0.0, 0.0, 1.0, 0.0
    for i in range(n):
        low, high = model.row_domain(data.kind, data.parameter, data.target[i])
        wanted = row[BEGAN, i] + row[MODELLED, i] * row[CHANGE, i]
        within = wanted
        if data.weight[i] > 0.0:
            within = min(max(wanted, data.weight[i] * low), data.weight[i] * high)
        outside += (within - wanted) * (within - wanted)
        off += (row[SLOPE, i] - wanted) * (row[SLOPE, i] - wanted)
        row[AHEAD, i] = within
    if not outside <= _OUTSIDE * off:
        return np.inf
    for k in range(size):
        if member[THRESHOLD, k] > 0.0 and hard_slope(data, work.place[INDEX, k], member[SLOPES, k]):
            ratio = max(ratio, abs(member[SLOPES, k]) / member[THRESHOLD, k])
    for k in range(size):
        total += least(
            member[SLOPES, k] / ratio, member[THRESHOLD, k], member[QUADRATIC, k], member[LOWER, k], member[UPPER, k]
        )
    total -= model.mean_conjugate(data.kind, data.parameter, data.target, data.weight, row[AHEAD], 1.0 / ratio)
    return work.number[LOSS] + set_penalty(member, size, 1.0) - total


@njit(**INSIDE)
def fit_set(data, work, alpha, wanted, limit, models):
    """Fit the working set until its estimated gap is at most `limit`, for a gap of `wanted` in the end, by so many
    models at the most."""
    member, number, size, n = work.member, work.number, work.count[SIZE], data.target.size
    load(data, work, alpha)
    fresh, last, entries = False, np.inf, entries_of(data, work.place[INDEX], size)
    for turn in range(models):
        intercept_slope = _slopes(data, work)
        error = _error(data, work, intercept_slope)
        if turn > 0:
            if error <= limit:
                break
            fresh = fresh or error > SLOW * last
        last = error
        _refresh(data, work, fresh and data.kind != SQUARED)
        pen = max(set_penalty(member, size, 0.0) if turn == 0 else set_penalty(member, size, 1.0), 1e-300)
        # the model of the squared loss is exact, so that it is solved once and well
        accuracy = 0.5 * wanted / pen if data.kind == SQUARED else 0.03 * max(limit, 0.01 * error) / pen
        accuracy = number[TIGHT] * min(max(accuracy, 1e-10), 1e-3)
        known = work.count[IN_GRAM]
        if known < size:
            append_gram(data, work, known, size, number[MEAN_CURVATURE] if data.intercept else 0.0)
            work.count[IN_GRAM] = size
            number[SPENT] += model_price(data, 1.0 * size, 1.0 * entries, 0.5 * size)
        shift = _solve_model(data, work, intercept_slope, accuracy)
        number[SPENT] += 2.0 * entries * data.price[PASS] + 2.0 * n * data.price[ROW]
        promise = set_penalty(member, size, 1.0) - set_penalty(member, size, 0.0) + intercept_slope * shift
        for k in range(size):
            promise += member[START_SLOPES, k] * member[STEP, k]
        for i in range(n):
            work.row[BEGAN, i] = work.row[SLOPE, i]
        length = step(data, work, shift, promise)
        fresh = length < 1.0
        if length <= 0.1:
            top = model.smoothness(data.kind, data.parameter)
            number[CARE] = min(max(10.0 * number[CARE], CAREFUL * top), top)
        elif length == 1.0:
            number[CARE] *= 0.3
        if data.kind == SQUARED:
            break
        foreseen = length == 1.0 and _foresee(data, work) <= limit
        for k in range(size):
            member[BEFORE, k], member[STEP, k] = member[VALUE, k], 0.0
        if foreseen:
            work.count[FORESEEN] = 1
            break
    store(work)
