"""Working sets of groups where the Gram matrix of all features is known: nobody reads the rows.

    loss(w) = w'Gw / 2 - g'w + v / 2        slopes of the loss = G w - g

The X of the data is G, its target g, its parameter v. Symbols are those of ``small_set.py``.
"""

from __future__ import annotations

import numpy as np
from numba import float64, njit, types, void

from . import small_model as model
from .apart import HOT, INSIDE, apart
from .group_fit import bound_blocks, held_share, solve_model
from .group_set import (
    ASIDE,
    COEF,
    CROSS,
    CURRENT,
    DATA,
    DUAL_LOSS,
    FORESEEN,
    GRADIENT,
    IN_GRAM,
    LOSS,
    MEAN_COLUMN,
    PLAIN_ORDER,
    REPAIR,
    SIZE,
    SLOPES,
    STEP,
    TIGHT,
    UNITS,
    VALUE,
    WORK,
    load,
    set_penalty,
    store,
)  # fmt: skip
from .small_certificate import NO_BOUND

_ROUNDING = 1e-16  # of the targets' variance: what is left of a gap below it is rounding


@apart(void(DATA, WORK))
def sweep_covariances(data, work):
    """The slopes of all features at w, or at w + s beside it where x is repaired, and the loss at either."""
    slope, coef, total = work.feature[PLAIN_ORDER], work.feature[COEF], work.feature[GRADIENT]
    aside, beside = work.feature[ASIDE], work.count[FORESEEN] == 1
    for j in range(slope.size):
        slope[j] = -data.target[j]
    for u in range(work.count[UNITS]):
        g = work.chosen[u]
        for a in range(data.start[g], data.start[g + 1]):
            at = coef[a] + aside[a] if beside else coef[a]
            if at != 0.0:
                model.add(data.X[data.members[a]], at, slope)
    for a in range(total.size):
        total[a] = slope[data.members[a]]
    cross, square, less = 0.0, 0.0, 0.0
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        for a in range(data.start[g], data.start[g + 1]):
            at = coef[a]
            if beside:
                at += aside[a]
                # the loss is quadratic: loss(w) = loss(w + s) - slopes(w + s)'s + s'Gs / 2
                less += aside[a] * (total[a] - 0.5 * _part_of_dot(work.gram[k], work.member[REPAIR], work.count[SIZE]))
            cross += at * data.target[data.members[a]]
            square += at * total[a]
            k += 1
    work.number[DUAL_LOSS] = max(0.5 * (square - cross + data.parameter), 0.0)
    work.number[LOSS] = max(0.5 * (square - cross + data.parameter) - less, 0.0)
    work.number[CROSS] = cross - data.parameter
    work.count[CURRENT] = 1


@apart(types.UniTuple(float64, 2)(DATA, WORK, float64))
def bound_covariances(data, work, alpha):
    """The dual bound of the slopes of the last sweep, and the share of them that proves it."""
    slope, total = work.feature[GRADIENT], 0.0
    for a in range(slope.size):
        total += slope[a]
        work.feature[PLAIN_ORDER, a] = abs(slope[a]) / alpha
    if not np.isfinite(total):
        return NO_BOUND, 0.0
    share = held_share(work.feature[PLAIN_ORDER], data.l1, data.norm, data.start)
    return -share * (work.number[CROSS] + share * work.number[DUAL_LOSS]), share


@apart(void(DATA, WORK))
def _gather(data, work):
    """The rows of the set's Gram matrix that are missing."""
    gram, place, size = work.gram, work.place, work.count[SIZE]
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        for a in range(data.start[g], data.start[g + 1]):
            place[k] = data.members[a]
            k += 1
    for k in range(work.count[IN_GRAM], size):
        row, own = data.X[place[k]], gram[k]
        for l in range(k + 1):
            own[l] = row[place[l]]
        work.member[MEAN_COLUMN, k] = 0.0
    model.mirror(gram, work.member[MEAN_COLUMN], work.count[IN_GRAM], size, 0.0)
    bound_blocks(work)


@njit(**{**INSIDE, **HOT})
def _part_of_dot(a, b, size):
    total = 0.0
    for k in range(size):
        total += a[k] * b[k]
    return total


@njit(**INSIDE)
def _is_near(data, work):
    """Whether the terms of s are no larger than those of w: what is allowed for rounding counts on it."""
    member, own, other = work.member, 0.0, 0.0
    for k in range(work.count[SIZE]):
        size = np.sqrt(work.gram[k, k])
        own, other = own + abs(member[VALUE, k]) * size, other + abs(member[REPAIR, k]) * size
    return other <= own


@apart(void(DATA, WORK, float64, float64))
def fit_covariances(data, work, alpha, wanted):
    """Fit the set: one model, which is exact."""
    load(data, work, alpha)
    _gather(data, work)
    member, size = work.member, work.count[SIZE]
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        for a in range(data.start[g], data.start[g + 1]):
            member[SLOPES, k] = work.feature[GRADIENT, a]
            k += 1
    # the values have moved since the last look at all features, or that was beside them
    if work.count[CURRENT] == 0 or work.count[FORESEEN] == 1:
        for k in range(size):
            member[SLOPES, k] = _part_of_dot(work.gram[k], member[VALUE], size) - data.target[work.place[k]]
    beside = solve_model(data, work, max(work.number[TIGHT] * 0.3 * wanted, _ROUNDING * data.parameter))
    work.count[FORESEEN] = 1 if beside and _is_near(data, work) else 0
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        for a in range(data.start[g], data.start[g + 1]):
            work.feature[ASIDE, a] = member[REPAIR, k]
            k += 1
    store(data, work)


@apart(float64(DATA, WORK))
def gain_of_step(data, work):
    """By how much the objective falls along the whole of a step from the values of the last sweep."""
    member, size = work.member, work.count[SIZE]
    gain = set_penalty(work, 0.0) - set_penalty(work, 1.0)
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        for a in range(data.start[g], data.start[g + 1]):
            if member[STEP, k] != 0.0:
                total = work.feature[GRADIENT, a] + 0.5 * _part_of_dot(work.gram[k], member[STEP], size)
                gain -= total * member[STEP, k]
            k += 1
    return gain
