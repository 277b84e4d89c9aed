"""The working set of dense problems with groups: which units are in it, and the state that the parts share.

Features are numbered unit by unit: feature a is column members[a] of X, and unit g has the features start[g] to
start[g + 1]. The set numbers its own coordinates in the same way, unit by unit, in the order in which they came.

Symbols are those of ``small_set.py``; rows of `row` are those of ``small_certificate.py``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64, njit, types, void

from . import small_model as model
from .apart import INSIDE, LIST, MATRIX, READ, READ2, READ_LIST, VECTOR, Reference, apart
from .small_losses import COVARIANCES
from .sparse_layout import SPARSE_FIELDS

COEF, LAST_COEF, GRADIENT, PLAIN_ORDER, ASIDE, FEATURE_ROWS = range(6)
VALUE, BEFORE, STEP, SLOPES, START_SLOPES, L1, LOWER, UPPER, MEAN_COLUMN, SPACE, MOVE, REPAIR, MISS, MEMBER_ROWS = (
    range(14)
)
UNITS, SIZE, IN_GRAM, BLOCKED, CURRENT, PASSES, FORESEEN, FACTORED, COUNTS = range(9)
INTERCEPT, LAST_INTERCEPT, LOSS, MEAN_CURVATURE, CARE, AT_ZERO = range(6)
PRIMAL, DUAL_BOUND, TIGHT, SHARE, CROSS, MODELS, GAINED, PASSES_TAKEN, DUAL_LOSS, RENT, NUMBERS = range(6, 17)


class Data(NamedTuple):
    """What the caller gives and nobody changes. Where the data are stored `by_column`, X is their transpose. What is
    known of the block of unit g stands at basis[base[g]:].

    Where the kind is COVARIANCES there are no rows (see ``group_covariances.py``). Where the data are sparse there is
    no X, and the fields from `values` on are those of ``sparse_layout.Sparse``.
    """

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    kind: int
    parameter: float
    members: np.ndarray
    start: np.ndarray
    base: np.ndarray
    l1: np.ndarray
    norm: np.ndarray
    intercept: bool
    blas: np.ndarray
    by_column: bool
    values: np.ndarray
    places: np.ndarray
    ends: np.ndarray
    pairs: float
    price: np.ndarray
    lines: np.ndarray
    buckets: np.ndarray
    row_values: np.ndarray
    row_places: np.ndarray
    sparse: bool


class Work(NamedTuple):
    """What the parts share and change. `chosen` are the units of the set, `first` where each begins in it, and `at` the
    place of every unit in the set, -1 outside; `column` has the column of X of every member,
    and the rest is room for models. The first IN_GRAM members have rows in `gram`, the first BLOCKED ones are in
    `blocks`, and the Gram matrix of the first FACTORED ones has its factor in `factor`."""

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
    blocks: np.ndarray
    block: np.ndarray
    past: np.ndarray
    slopes: np.ndarray
    place: np.ndarray
    column: np.ndarray
    columns: np.ndarray
    gram: np.ndarray
    factor: np.ndarray
    tile: np.ndarray
    count: np.ndarray
    number: np.ndarray
    products: np.ndarray


DATA_FIELDS = (
    READ2, READ, READ, int64, float64, READ_LIST, READ_LIST, READ_LIST, READ, READ, boolean, READ_LIST, boolean,
    *SPARSE_FIELDS, boolean,
)  # fmt: skip
WORK_VALUE = types.NamedTuple(
    (MATRIX, MATRIX, VECTOR, LIST, LIST, LIST, MATRIX, VECTOR, VECTOR, boolean[::1], LIST, LIST, VECTOR, VECTOR, VECTOR,
     MATRIX, MATRIX, LIST, LIST, MATRIX, MATRIX, MATRIX, MATRIX, LIST, VECTOR, MATRIX), Work
)  # fmt: skip
DATA, WORK = Reference(types.NamedTuple(DATA_FIELDS, Data)), Reference(WORK_VALUE)


@apart(void(DATA, WORK, float64))
def scores(data, work, alpha):
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
    """Number the coordinates of a unit; `column` has their columns, which somebody must fetch where data are dense."""
    units, k = work.count[UNITS], work.count[SIZE]
    work.chosen[units], work.at[g] = g, units
    for a in range(data.start[g], data.start[g + 1]):
        work.column[k] = data.members[a]
        work.member[LOWER, k], work.member[UPPER, k] = -np.inf, np.inf
        k += 1
    work.count[UNITS], work.count[SIZE], work.first[units + 1] = units + 1, k, k


@njit(**INSIDE)
def live(data, work, g):
    live = False
    for a in range(data.start[g], data.start[g + 1]):
        live = live or work.feature[COEF, a] != 0.0
    return live


@apart(void(DATA, WORK, float64))
def drop(data, work, level):
    """Take units out of the set that are zero and far from their thresholds."""
    units, in_gram, blocked, kept, at = work.count[UNITS], work.count[IN_GRAM], work.count[BLOCKED], 0, 0
    gram = work.gram
    for u in range(units):
        g, begin, end = work.chosen[u], work.first[u], work.first[u + 1]
        if not live(data, work, g) and work.score[g] < 0.9 * level:
            work.at[g] = -1
            for a in range(data.start[g], data.start[g + 1]):
                work.feature[LAST_COEF, a] = 0.0
            work.count[IN_GRAM] -= end - begin if begin < in_gram else 0
            work.count[BLOCKED] -= end - begin if begin < blocked else 0
            work.count[FACTORED] = min(work.count[FACTORED], at)
            continue
        for k in range(begin, end):
            if at != k:
                work.member[MEAN_COLUMN, at], work.column[at] = work.member[MEAN_COLUMN, k], work.column[k]
                old, new = work.columns[k], work.columns[at]
                for i in range(new.size):
                    new[i] = old[i]
                if k < in_gram:
                    for l in range(in_gram):
                        gram[at, l] = gram[k, l]
                    for l in range(in_gram):
                        gram[l, at] = gram[l, k]
            at += 1
        work.chosen[kept], work.at[g], work.first[kept + 1] = g, kept, at
        work.bend[kept], work.ready[kept] = work.bend[u], work.ready[u]
        kept += 1
    work.count[UNITS], work.count[SIZE] = kept, at


@apart(boolean(DATA, WORK, float64, int64))
def extend(data, work, level, most):
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
    size, room = work.count[SIZE], True
    for g in range(data.norm.size):
        if room and work.at[g] < 0 and work.score[g] > low:
            room = work.count[SIZE] + data.start[g + 1] - data.start[g] <= work.columns.shape[0]
            if room:
                _enter(data, work, g)
    if room and work.count[SIZE] == size:  # no unit is small enough: the first one enters
        g = 0
        while work.at[g] >= 0 or work.score[g] <= level:
            g += 1
        room = size + data.start[g + 1] - data.start[g] <= work.columns.shape[0]
        if room:
            _enter(data, work, g)
    if data.kind != COVARIANCES and not data.sparse:
        model.take_columns(data.X, data.by_column, work.column, size, work.count[SIZE], work.columns)
    return room


@apart(void(DATA, WORK, float64))
def load(data, work, alpha):
    """The coefficients and penalties of the set, for this alpha."""
    member = work.member
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        plain = data.norm[g] > 0.0
        for a in range(data.start[g], data.start[g + 1]):
            member[VALUE, k] = member[BEFORE, k] = work.feature[COEF, a]
            member[STEP, k], member[L1, k] = 0.0, alpha * data.l1[a]
            plain = plain and data.l1[a] == 0.0
            k += 1
        work.norm[u], work.plain[u], work.places[u] = alpha * data.norm[g], plain, data.base[g]


@apart(void(DATA, WORK))
def store(data, work):
    for u in range(work.count[UNITS]):
        g, k = work.chosen[u], work.first[u]
        for a in range(data.start[g], data.start[g + 1]):
            work.feature[COEF, a] = work.member[VALUE, k]
            k += 1
    work.count[CURRENT] = 0


@apart(float64(WORK, float64))
def set_penalty(work, length):
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
