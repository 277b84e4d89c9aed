"""Whole paths of dense problems with groups in one compiled call: every alpha with its own certificate.

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
from typing import Any, NamedTuple

import numpy as np
from numba import boolean, float64, int64, njit, types

from . import small_model as model
from .block_descent import settle
from .lapack import POTRF, POTRS, addresses, factorise, solve_factored
from .rows import KERNEL
from .small_certificate import (
    AHEAD,
    BEGAN,
    BEST,
    CHANGE,
    CURVATURE,
    DUAL,
    MODELLED,
    NO_BOUND,
    ROW_ROWS,
    SCORE,
    SLOPE,
    TRIAL,
    balance_intercept,
    foresee,
)  # fmt: skip
from .small_model import LOGISTIC, SQUARED, TILE
from .small_set import (
    ARMIJO,
    CAREFUL,
    FIRST_SET,
    FLAT,
    FLOOR,
    INNER,
    KEEP_GRAM,
    LEAST_CURVATURE,
    LOOSE,
    MOST_HALVINGS,
    NEAR,
    SLOW,
    STAGE,
    STAGE_TOL,
    largest_set,
    lines_of,
)  # fmt: skip
from .unit_groups import block_bounds, group_gap, largest_share, movable, newton_system, try_step

DEPTH = 5  # passes that an extrapolation looks back on; more cost memory and gain little
_MOST_ROUNDS, _MOST_MODELS, _MOST_TURNS = 60, 40, 200  # working sets of an alpha, models of a set, turns of a model
LARGEST_SUPPORT = (
    512  # coordinates in live groups; beyond, a Newton step in the space of the rows or on parts is cheaper
)
_PATIENCE = 8  # rounds in which the gap did not halve; then rounding stands in the way
_STUCK = 6  # turns of a model in a row that gain nothing; then rounding is all that is left of it
_JITTER = 1e-11  # of the largest diagonal entry of a Gram matrix: what makes a factor exist
_FACTOR = 0.4  # of an entry that descent reads: what a multiply-add of a factor costs

# Only the last function is called from Python: doors to the others would take long to compile.
# Their loops take no time, so that nothing is gained by vectorising them.
INSIDE = {**KERNEL, "fastmath": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "cache": True}

COEF, LAST_COEF, GRADIENT, PLAIN_ORDER, FEATURE_ROWS = range(5)
VALUE, BEFORE, STEP, SLOPES, START_SLOPES, L1, LOWER, UPPER, MEAN_COLUMN, SPACE, MOVE, MEMBER_ROWS = range(12)
UNITS, SIZE, IN_GRAM, CURRENT, PASSES, FORESEEN, COUNTS = range(7)
INTERCEPT, LAST_INTERCEPT, LOSS, MEAN_CURVATURE, CARE, AT_ZERO, PRIMAL, DUAL_BOUND, TIGHT, SHARE, NUMBERS = range(11)


class Data(NamedTuple):
    """What the caller gives and nobody changes. Where the data are stored `by_column`, X is their transpose."""

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    kind: int
    parameter: float
    members: np.ndarray
    start: np.ndarray
    l1: np.ndarray
    norm: np.ndarray
    intercept: bool
    blas: np.ndarray
    by_column: bool


class Work(NamedTuple):
    """What the parts share and change. `chosen` are the units of the set, `first` where each begins in it, and `at` the
    place of every unit in the set, -1 outside; the rest is room for models."""

    row: np.ndarray
    feature: np.ndarray
    score: np.ndarray
    chosen: np.ndarray
    first: np.ndarray
    at: np.ndarray
    member: np.ndarray
    norm: np.ndarray
    bend: np.ndarray
    plain: np.ndarray
    places: np.ndarray
    ready: np.ndarray
    basis: np.ndarray
    block: np.ndarray
    past: np.ndarray
    slopes: np.ndarray
    place: np.ndarray
    columns: np.ndarray
    gram: np.ndarray
    factor: np.ndarray
    tile: np.ndarray
    count: np.ndarray
    number: np.ndarray


# -- the working set ----------------------------------------------------------------------------------


@njit(**INSIDE)
def _scores(data, work, alpha):
    """How hard the slopes pull at every unit, its threshold being 1."""
    slope = work.feature[GRADIENT]
    for g in range(data.norm.size):
        total = 0.0
        for a in range(data.start[g], data.start[g + 1]):
            over = max(abs(slope[a]) - alpha * data.l1[a], 0.0)
            total += over * over
        if data.norm[g] > 0.0:
            work.score[g] = math.sqrt(total) / (alpha * data.norm[g])
        else:  # a unit of one feature
            work.score[g] = abs(slope[data.start[g]]) / (alpha * data.l1[data.start[g]])


@njit(**INSIDE)
def _enter(data, work, g):
    units, k = work.count[UNITS], work.count[SIZE]
    work.chosen[units], work.at[g] = g, units
    for a in range(data.start[g], data.start[g + 1]):
        model.take_column(data.X, data.by_column, data.members[a], work.columns[k])
        work.member[LOWER, k], work.member[UPPER, k] = -np.inf, np.inf
        k += 1
    work.count[UNITS], work.count[SIZE], work.first[units + 1] = units + 1, k, k


@njit(**INSIDE)
def _live(data, work, g):
    live = False
    for a in range(data.start[g], data.start[g + 1]):
        live = live or work.feature[COEF, a] != 0.0
    return live


@njit(**INSIDE)
def _drop(data, work, level):
    """Take units out of the set that are zero and far from their thresholds."""
    units, size, in_gram, kept, at = work.count[UNITS], work.count[SIZE], work.count[IN_GRAM], 0, 0
    gram = work.gram
    for u in range(units):
        g, begin, end = work.chosen[u], work.first[u], work.first[u + 1]
        if not _live(data, work, g) and work.score[g] < 0.9 * level:
            work.at[g] = -1
            for a in range(data.start[g], data.start[g + 1]):
                work.feature[LAST_COEF, a] = 0.0
            work.count[IN_GRAM] -= end - begin if begin < in_gram else 0
            continue
        for k in range(begin, end):
            if at != k:
                work.member[MEAN_COLUMN, at] = work.member[MEAN_COLUMN, k]
                old, new = work.columns[k], work.columns[at]
                for i in range(new.size):
                    new[i] = old[i]
                for l in range(size):
                    gram[at, l] = gram[k, l]
                for l in range(size):
                    gram[l, at] = gram[l, k]
            at += 1
        work.chosen[kept], work.at[g], work.first[kept + 1] = g, kept, at
        kept += 1
    work.count[UNITS], work.count[SIZE] = kept, at


@njit(**INSIDE)
def _extend(data, work, level, most):
    """Add the units outside whose scores pass the level, with at most about so many coordinates, the largest first;
    False where there is no room."""
    high, count = level, 0
    for g in range(data.norm.size):
        if work.at[g] < 0 and work.score[g] > level:
            high, count = max(high, work.score[g]), count + data.start[g + 1] - data.start[g]
    if count == 0:
        return True
    low = level
    if count > most:
        for _ in range(30):
            middle, above = 0.5 * (low + high), 0
            for g in range(data.norm.size):
                if work.at[g] < 0 and work.score[g] > middle:
                    above += data.start[g + 1] - data.start[g]
            if above > most:
                low = middle
            else:
                high = middle
            if 0.9 * most <= above <= most:
                break
        low = high
    for turn in range(2):  # where no unit is small enough, the first one enters
        before = work.count[UNITS]
        for g in range(data.norm.size):
            if work.at[g] < 0 and work.score[g] > (low if turn == 0 else level):
                if work.count[SIZE] + data.start[g + 1] - data.start[g] > work.gram.shape[0]:
                    return False
                _enter(data, work, g)
                if turn == 1:
                    return True
        if work.count[UNITS] > before:
            return True
    return True


@njit(**INSIDE)
def _load(data, work, alpha):
    """The coefficients and penalties of the set, for this alpha."""
    member, base = work.member, 0
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        size, plain = data.start[g + 1] - data.start[g], data.norm[g] > 0.0
        for a in range(data.start[g], data.start[g + 1]):
            member[VALUE, k] = member[BEFORE, k] = work.feature[COEF, a]
            member[STEP, k], member[L1, k] = 0.0, alpha * data.l1[a]
            plain = plain and data.l1[a] == 0.0
            k += 1
        work.norm[u], work.plain[u], work.places[u] = alpha * data.norm[g], plain, base
        base += size * (size + 2)


@njit(**INSIDE)
def _store(data, work):
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        for a in range(data.start[g], data.start[g + 1]):
            work.feature[COEF, a] = work.member[VALUE, k]
            k += 1
    work.count[CURRENT] = 0


@njit(**INSIDE)
def _penalty(work, length):
    """The penalty of the set after a step of this length."""
    member, total = work.member, 0.0
    for u in range(work.count[UNITS]):
        square = 0.0
        for k in range(work.first[u], work.first[u + 1]):
            value = member[BEFORE, k] + length * member[STEP, k]
            square += value * value
            total += member[L1, k] * abs(value)
        total += work.norm[u] * math.sqrt(square)
    return total


# -- the fit of a working set -------------------------------------------------------------------------


@njit(**INSIDE)
def _loss(data, row, score):
    return model.mean_loss(data.kind, data.parameter, data.target, data.weight, score, row[SLOPE], row[CURVATURE])


@njit(**INSIDE)
def _update_gram(data, work, fresh):
    """The Gram matrix of the set: its last rows are new, or all are; and bounds of its blocks."""
    row, n, change, modelled = work.row, data.target.size, 0.0, 0.0
    floor = max(LEAST_CURVATURE * model.smoothness(data.kind, data.parameter), work.number[CARE])
    for i in range(n):
        change += abs(max(row[CURVATURE, i], data.weight[i] * floor) - row[MODELLED, i])
        modelled += row[MODELLED, i]
    if fresh or change > KEEP_GRAM * modelled:
        mean = 0.0
        for i in range(n):
            row[MODELLED, i] = max(row[CURVATURE, i], data.weight[i] * floor)
            mean += row[MODELLED, i] / n
        work.count[IN_GRAM], work.number[MEAN_CURVATURE] = 0, max(mean, 1e-300)
    model.append_gram(
        work.columns, row[MODELLED], work.tile, work.gram, work.member[MEAN_COLUMN], work.count[IN_GRAM],
        work.count[SIZE], work.number[MEAN_CURVATURE] if data.intercept else 0.0, data.blas,
    )  # fmt: skip
    work.count[IN_GRAM] = work.count[SIZE]
    units = work.count[UNITS]
    block_bounds(work.gram, work.first[: units + 1], work.bend)
    for u in range(units):
        work.ready[u] = 0


@njit(**INSIDE)
def _newton(data, work, m, units):
    """A step of Newton's method on the coordinates that can move; by how much the model falls."""
    member, first = work.member, work.first[: units + 1]
    v, q, l1 = member[VALUE, :m], member[SLOPES, :m], member[L1]
    count = movable(v, l1, member[LOWER], member[UPPER], first, work.norm, work.place)
    if count == 0:
        return 0.0
    slope = work.block[:count]
    largest = newton_system(work.gram, q, v, l1, first, work.norm, work.place[:m], work.factor, slope)
    for a in range(count):
        work.factor[a, a] += _JITTER * largest
        slope[a] = -slope[a]
    if factorise(data.blas[POTRF], work.factor, count) != 0:
        return 0.0
    solve_factored(data.blas[POTRS], work.factor, count, slope)
    share = 1.0
    for _ in range(4):
        gained = try_step(
            work.gram, m, q, v, l1, member[LOWER], member[UPPER], first, work.norm, work.place, slope, share,
            member[SPACE], member[MOVE],
        )  # fmt: skip
        if gained > 0.0:
            for k in range(m):
                v[k] = member[SPACE, k]
                q[k] += member[MOVE, k]
            return gained
        share *= 0.5
    return 0.0


@njit(**INSIDE)
def _solve_model(data, work, target):
    """Bring the values of the set so far that the gap of the model is at most `target`. Descent comes first, and
    Newton's method whenever it has cost as much as a factor would."""
    member, m, units = work.member, work.count[SIZE], work.count[UNITS]
    v, q, first = member[VALUE, :m], member[SLOPES, :m], work.first[: units + 1]
    gap, gained, still, least, budget = np.inf, 0.0, 0, np.inf, m
    for turn in range(_MOST_TURNS):
        gap, gained = settle(
            work.gram, m, q, v, member[L1], member[LOWER], member[UPPER], first, work.norm, work.bend, work.plain,
            work.places, work.basis, work.ready, member[SPACE], work.block, work.past, work.slopes, target, budget,
        )  # fmt: skip
        if gap <= target or not gap < np.inf:
            return
        active = 0
        for k in range(m):
            active += v[k] != 0.0
        budget = int(_FACTOR / 6.0 * active * active * active) + 2 * active * m + m
        if turn > 0:
            gained += _newton(data, work, m, units)
        still = still + 1 if gap > 0.9 * least and gained <= 0.1 * target else 0
        least = min(least, gap)
        if still > _STUCK:
            return


@njit(**INSIDE)
def _step(data, work, shift, promise):
    """Go along a step as far as the true objective falls by a part of what was promised; returns the share."""
    row, member, size = work.row, work.member, work.count[SIZE]
    start, length = work.number[LOSS] + _penalty(work, 0.0), 1.0
    model.combine(work.columns, size, member[STEP], shift, row[CHANGE])
    for _ in range(MOST_HALVINGS):
        for i in range(data.target.size):
            row[TRIAL, i] = row[SCORE, i] + length * row[CHANGE, i]
        loss = _loss(data, row, row[TRIAL])
        if loss + _penalty(work, length) <= start + ARMIJO * length * promise + 1e-15 * abs(start):
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


@njit(**INSIDE)
def _foresee(data, work):
    """The gap on the set that the x of the last model proves; infinite where it leaves the domain of the conjugate."""
    row, units, m = work.row, work.count[UNITS], work.count[SIZE]
    if not foresee(data.kind, data.parameter, data.target, data.weight, row):
        return np.inf
    space = work.member[SPACE]
    for k in range(m):
        space[k] = abs(work.member[SLOPES, k])
    share = _share(space, work.member[L1], work.norm, work.first[: units + 1])
    dual = -model.mean_conjugate(data.kind, data.parameter, data.target, data.weight, row[AHEAD], share)
    return work.number[LOSS] + _penalty(work, 1.0) - dual


@njit(**INSIDE)
def _share(size, l1, norm, start):
    """The largest share of slopes of these sizes that the penalty can hold."""
    share = 1.0
    for g in range(start.size - 1):
        total, weights = 0.0, 0.0
        for a in range(start[g], start[g + 1]):
            over = max(size[a] - l1[a], 0.0)
            total += over * over
            weights = max(weights, l1[a])
        if math.sqrt(total) <= norm[g]:
            continue
        if weights == 0.0:
            share = min(share, (1.0 - 1e-15) * norm[g] / math.sqrt(total))
        elif norm[g] == 0.0:
            share = min(share, (1.0 - 1e-15) * l1[start[g]] / size[start[g]])
        else:
            first, last = start[g], start[g + 1]
            begin = start[g : g + 2].copy() - first
            share = min(share, largest_share(size[first:last], l1[first:last], norm[g : g + 1], begin))
    return share


@njit(**INSIDE)
def _fit_set(data, work, alpha, wanted, limit):
    """Fit the working set until its estimated gap is at most `limit`, for a gap of `wanted` in the end."""
    member, number, row, n = work.member, work.number, work.row, data.target.size
    m, units = work.count[SIZE], work.count[UNITS]
    _load(data, work, alpha)
    fresh, last = False, np.inf
    for turn in range(_MOST_MODELS):
        pull = 0.0
        for k in range(m):
            member[START_SLOPES, k] = model.dot(work.columns[k], row[SLOPE]) / n
        if data.intercept:
            for i in range(n):
                pull += row[SLOPE, i] / n
        _update_gram(data, work, fresh and data.kind != SQUARED)
        mean = number[MEAN_CURVATURE]
        for k in range(m):
            member[BEFORE, k], member[STEP, k] = member[VALUE, k], 0.0
            member[SLOPES, k] = member[START_SLOPES, k] - member[MEAN_COLUMN, k] * pull / mean
        error = 0.5 * pull * pull / mean + group_gap(
            work.gram, m, member[SLOPES], member[VALUE], member[L1], member[LOWER], member[UPPER],
            work.first[: units + 1], work.norm, work.bend,
        )  # fmt: skip
        if turn > 0 and error <= limit:
            break
        fresh = turn > 0 and error > SLOW * last  # for the model after this one
        last = error
        # the model of the squared loss is exact, so that it is solved once and well
        target = 0.3 * wanted if data.kind == SQUARED else max(0.3 * limit, 0.05 * error)
        _solve_model(data, work, max(number[TIGHT] * target, 1e-15 * abs(number[LOSS])))
        shift, promise = -pull, _penalty(work, 0.0)
        for k in range(m):
            member[STEP, k] = member[VALUE, k] - member[BEFORE, k]
            shift -= member[MEAN_COLUMN, k] * member[STEP, k]
        shift = shift / mean if data.intercept else 0.0
        promise = _penalty(work, 1.0) - promise + pull * shift
        for k in range(m):
            promise += member[START_SLOPES, k] * member[STEP, k]
        for i in range(n):
            row[BEGAN, i] = row[SLOPE, i]
        length = _step(data, work, shift, promise)
        fresh = fresh or length < 1.0
        if length <= 0.1:
            top = model.smoothness(data.kind, data.parameter)
            number[CARE] = min(max(10.0 * number[CARE], CAREFUL * top), top)
        elif length == 1.0:
            number[CARE] *= 0.3
        if data.kind == SQUARED:
            break
        if length == 1.0 and _foresee(data, work) <= limit:
            work.count[FORESEEN] = 1
            break
    _store(data, work)


# -- the certificate, one alpha, the whole path -------------------------------------------------------


@njit(**INSIDE)
def _sweep(data, work):
    """x and X'x / n: the one pass over the data of a round."""
    dual, slope = work.row[DUAL], work.row[AHEAD if work.count[FORESEEN] else SLOPE]
    for i in range(dual.size):
        dual[i] = slope[i]
    work.count[FORESEEN] = 0
    if data.intercept:
        balance_intercept(data.kind, data.weight, dual)
    if data.by_column:
        model.column_gradient(data.X, dual, work.feature[PLAIN_ORDER])
    else:
        model.gradient(data.X, dual, work.feature[PLAIN_ORDER])
    for a in range(data.members.size):
        work.feature[GRADIENT, a] = work.feature[PLAIN_ORDER, data.members[a]]
    work.count[CURRENT] = 1
    work.count[PASSES] += 1


@njit(**INSIDE)
def _bound(data, work, alpha):
    """The dual bound of the x of the last sweep, and the share of it that proves it."""
    slope, total = work.feature[GRADIENT], 0.0
    for a in range(slope.size):
        total += slope[a]
        work.feature[PLAIN_ORDER, a] = abs(slope[a]) / alpha
    if not np.isfinite(total):
        return NO_BOUND, 0.0
    share = _share(work.feature[PLAIN_ORDER], data.l1, data.norm, data.start)
    dual = work.row[DUAL]
    return -model.mean_conjugate(data.kind, data.parameter, data.target, data.weight, dual, share), share


@njit(**INSIDE)
def _solve(data, work, alpha, last_alpha, tol, rounds):
    """Rounds of extending, fitting and certifying; whether the gap became small enough."""
    n, p, count, number = data.target.size, data.members.size, work.count, work.number
    best, gap, halved, since = NO_BOUND, np.inf, np.inf, 0
    number[TIGHT] = 1.0
    for turn in range(rounds):
        _load(data, work, alpha)
        primal = number[LOSS] + _penalty(work, 0.0)
        wanted = tol * max(abs(primal), FLOOR * number[AT_ZERO])
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
                number[TIGHT] = max(0.03 * number[TIGHT], 1e-6)
            if since > _PATIENCE:
                return False
        support = 0
        for u in range(count[UNITS]):
            if _live(data, work, work.chosen[u]):
                support += work.first[u + 1] - work.first[u]
        if support > LARGEST_SUPPORT:
            return False
        near = turn == 0 and last_alpha < NEAR * alpha
        level = 1.0 - 0.5 * (last_alpha / alpha - 1.0) if near else 1.0
        _scores(data, work, alpha)
        first = max(20, min(2 * FIRST_SET, int(4.0 * math.sqrt(p))))
        full = count[SIZE] + max(support, first) > work.gram.shape[0]
        if (turn == 0 or full) and count[SIZE] > 1.5 * support + 32:
            _drop(data, work, level)
        if not _extend(data, work, level, p if near else max(support, first)):
            return False
        _fit_set(data, work, alpha, wanted, max(INNER * wanted, LOOSE * gap if best > NO_BOUND else 0.0))
        _sweep(data, work)
    return False


@njit(**INSIDE)
def _predict(data, work, alpha, reach):
    """Start the next alpha where the last two answers point to, or on the way there if that is better."""
    member, number = work.member, work.number
    _load(data, work, alpha)
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
    if reach > 0.0 and _step(data, work, shift, 0.0) > 0.0:
        _store(data, work)


@njit(**INSIDE)
def _begin(data, work):
    """Zero, its intercept and the slopes there."""
    number, row, n = work.number, work.row, data.target.size
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
    number[CARE] = FLAT * model.smoothness(data.kind, data.parameter)
    at_zero = _loss(data, row, row[SCORE])
    number[AT_ZERO] = 0.0 if data.kind == LOGISTIC else abs(at_zero)
    if data.intercept:
        number[INTERCEPT] = model.first_intercept(data.kind, data.target, data.weight)
        for i in range(n):
            row[SCORE, i] = number[INTERCEPT]
    number[LOSS] = _loss(data, row, row[SCORE])
    _sweep(data, work)


_READ, _READ2 = types.Array(float64, 1, "C", readonly=True), types.Array(float64, 2, "C", readonly=True)
_PLACES = types.Array(int64, 1, "C", readonly=True)
_VECTOR, _MATRIX, _INDEX = float64[::1], float64[:, ::1], int64[::1]
_DATA = (_READ2, _READ, _READ, int64, float64, _PLACES, _PLACES, _READ, _READ, boolean, _PLACES, boolean)  # of Data
_WORK = types.NamedTuple(
    (_MATRIX, _MATRIX, _VECTOR, _INDEX, _INDEX, _INDEX, _MATRIX, _VECTOR, _VECTOR, boolean[::1], _INDEX, _INDEX,
     _VECTOR, _VECTOR, _MATRIX, _MATRIX, _INDEX, _MATRIX, _MATRIX, _MATRIX, _MATRIX, _INDEX, _VECTOR), Work
)  # fmt: skip


@njit(
    int64(*_DATA, _WORK, _READ, int64, int64, float64, _MATRIX, _VECTOR, _VECTOR, _VECTOR, _MATRIX, _VECTOR, _MATRIX),
    nogil=True, cache=True, **{**KERNEL, "fastmath": False},
)  # fmt: skip
def _run(X, target, weight, kind, parameter, members, start, l1, norm, intercept, blas, by_column, work, alphas, first,
         end, tol, W, b, primal, dual, x, passes, sums):  # fmt: skip
    """The alphas from `first` to `end`, in rooms where those before it were solved; returns how many are now."""
    data = Data(X, target, weight, kind, parameter, members, start, l1, norm, intercept, blas, by_column)
    n, p = data.target.size, data.members.size
    if first == 0:
        _begin(data, work)
    k, stage = first, 0.0
    last, last_but_one = alphas[k - 1] if k > 0 else np.inf, alphas[k - 2] if k > 1 else np.inf
    if p > n and k == 0:
        _scores(data, work, alphas[0])
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
        done = _solve(data, work, alpha, last, STAGE_TOL if staged else tol, 1 if staged else _MOST_ROUNDS)
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
    sums: Any,
) -> Callable[[int, int], int]:  # fmt: skip
    """As :func:`fenchel.kernels.small_path.follower`, with groups; l1 has an entry for every feature in the order of
    `members`, norm one for every unit. A unit without a norm is a single feature with a weight."""
    n, p, units = target.size, members.size, norm.size
    sizes = np.diff(start)
    widest = int(sizes.max())
    most = min(max(largest_set(n, p, p), widest), p)
    work = Work(
        np.empty((ROW_ROWS, n)), np.empty((FEATURE_ROWS, p)), np.empty(units), np.empty(units, np.int64),
        np.empty(units + 1, np.int64), np.empty(units, np.int64), np.empty((MEMBER_ROWS, most)), np.empty(units),
        np.empty(units), np.empty(units, np.bool_), np.empty(units, np.int64), np.empty(units, np.int64),
        np.empty(int((sizes * (sizes + 2)).sum())), np.empty(max(widest * (widest + 3), most)),
        np.empty((DEPTH + 1, most)), np.empty((DEPTH + 1, most)), np.empty(most, np.int64), np.empty((most, n)),
        np.empty((most, most)), np.empty((most, most)), np.empty((min(TILE, most), n)), np.empty(COUNTS, np.int64),
        np.empty(NUMBERS),
    )  # fmt: skip
    X, by_column = lines_of(X)
    data = Data(
        X, target, weight, kind, parameter, members, start, l1[members], norm, fit_intercept, addresses(), by_column
    )
    return lambda first, end: int(_run(*data, work, alphas, first, end, tol, W, b, primal, dual, x, passes, sums))
