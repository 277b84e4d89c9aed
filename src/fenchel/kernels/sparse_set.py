"""The fit of a working set of sparse problems, and its price.

As ``small_set.py``, on columns that stay where they are; which features are in the set is left to that file. Models
have a Gram matrix. A set whose model would be far cheaper without one is left to ``engine/rounds.py``, which can do so.

Symbols are those of ``small_set.py``.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, njit, void

from .apart import INSIDE, apart
from .rules import HARD, LOOSE, SLOW, TURNS
from .small_certificate import (
    AHEAD,
    BEGAN,
    CHANGE,
    COEF,
    DATA,
    FORESEEN,
    HIGH,
    IN_GRAM,
    INDEX,
    LOW,
    MEAN_CURVATURE,
    MODELLED,
    SIZE,
    SLOPE,
    TIGHT,
    WORK,
)  # fmt: skip
from .small_losses import SQUARED
from .small_model import BEFORE, START_SLOPES, STEP, VALUE
from .small_set import (
    error_on_set,
    gap_ahead,
    load,
    prepare,
    refresh,
    score,
    search,
    set_penalty,
    solve_model,
    store,
    take_care,
)  # fmt: skip
from .sparse_layout import (
    DESCENT,
    FACTOR,
    MOVE,
    PAIR,
    PASS,
    ROUND,
    ROW,
    SPARSE,
    SPENT,
    append_gram,
    column_dot,
    combine,
    entries_of,
)  # fmt: skip

_READS = 2.6  # reads of an entry in a pass of descent on columns
_ANEW = 4.0  # times the rounds of a fit: those that know nothing of the alphas before


# -- prices -------------------------------------------------------------------------------------------


@njit(**INSIDE)
def model_price(sparse, size, entries, support):
    """Of the Gram matrix of so many columns with so many entries, and of descent on it."""
    share = entries / max(sparse.places.size, 1)
    made = share * share * sparse.pairs * sparse.price[PAIR] + sparse.price[MOVE] * entries + 4.0 * size * size
    return made + TURNS * size * min(size, max(20.0, 2.0 * support)) * sparse.price[DESCENT]


@apart(int64(DATA, SPARSE))
def first_size(data, sparse):
    """Features that a set may begin with, so that their model costs no more than the look that chose them."""
    p, n, entries = data.l1.size, data.target.size, sparse.places.size
    look = 2.0 * entries * sparse.price[PASS] + n * sparse.price[ROW]
    size = int64(10)
    while size < p and model_price(sparse, 2.0 * size, 2.0 * size / p * entries, 1.0 * size) <= look:
        size *= 2
    return size


@apart(boolean(DATA, WORK, SPARSE, float64, boolean))
def too_dear(data, work, sparse, alpha, warm):
    """Whether somebody else had better go on: there is no room for the Gram matrix of the set, or will likely be none,
    because too many features are pulled much harder than their thresholds hold them; or, where features are more than
    rows, descent on the columns without that matrix is cheaper by more than the rounds in Python that can do it. These
    begin anew where this alpha is not the first, but `warm`."""
    size, support, hard, n, p = work.count[SIZE], 0, 0, data.target.size, data.l1.size
    most = work.gram.shape[0]
    for j in range(p if most < p <= n else 0):
        hard += score(data, work, j) > HARD * alpha
    if hard > most or size == most < p:
        return True
    for k in range(size):
        support += work.feature[COEF, work.place[INDEX, k]] != 0.0
    entries = 1.0 * entries_of(sparse, work.place[INDEX], size)
    priced = model_price(sparse, 1.0 * size, entries, 1.0 * support)
    priced += sparse.price[FACTOR] * support * support / 6.0 * support
    elsewhere = TURNS * _READS * entries * sparse.price[PASS] + (_ANEW if warm else 1.0) * sparse.price[ROUND]
    return p > n and priced > elsewhere


# -- the fit of a working set -------------------------------------------------------------------------


@apart(float64(DATA, WORK, SPARSE))
def _slopes(data, work, sparse):
    """The slopes of the loss on the set, and of the intercept."""
    slope, n, total, ends = work.row[SLOPE], data.target.size, 0.0, sparse.ends
    for k in range(work.count[SIZE]):
        j = work.place[INDEX, k]
        work.member[START_SLOPES, k] = column_dot(sparse.values, sparse.places, ends[j], ends[j + 1], slope) / n
    for i in range(n):
        total += slope[i]
    return total / n if data.intercept else 0.0


@apart(float64(DATA, WORK, SPARSE, float64, float64))
def step(data, work, sparse, shift, promise):
    """As in small_set.py: go along a step as far as the true objective falls; the share of it."""
    combine(sparse, work.place[INDEX], work.count[SIZE], work.member[STEP], shift, work.row[CHANGE])
    return search(data, work, shift, promise)


@apart(float64(DATA, WORK))
def _foresee(data, work):
    """The gap on the set that the x of the last model proves, as in small_set.py; but an x that leaves the domain of
    the conjugate by little is brought back, as rows that are nearly certain ask for. The look at all features takes x
    as it is then, so that nothing unproven enters."""
    row, outside, off = work.row, 0.0, 0.0
    for i in range(data.target.size):
        wanted = row[BEGAN, i] + row[MODELLED, i] * row[CHANGE, i]
        within = min(max(wanted, row[LOW, i]), row[HIGH, i]) if data.weight[i] > 0.0 else wanted
        outside += (within - wanted) * (within - wanted)
        off += (row[SLOPE, i] - wanted) * (row[SLOPE, i] - wanted)
        row[AHEAD, i] = within
    return gap_ahead(data, work) if outside <= LOOSE * off else np.inf


@apart(void(DATA, WORK, SPARSE, float64, float64, float64, int64))
def fit_set(data, work, sparse, alpha, wanted, limit, models):
    """Fit the working set until its estimated gap is at most `limit`, for a gap of `wanted` in the end, by so many
    models at the most."""
    member, number, size, n = work.member, work.number, work.count[SIZE], data.target.size
    load(data, work, alpha)
    fresh, last, entries = False, np.inf, entries_of(sparse, work.place[INDEX], size)
    for turn in range(models):
        intercept_slope = _slopes(data, work, sparse)
        error = error_on_set(data, work, intercept_slope)
        if turn > 0:
            if error <= limit:
                break
            fresh = fresh or error > SLOW * last
        last = error
        refresh(data, work, fresh and data.kind != SQUARED)
        pen = max(set_penalty(member, size, 0.0) if turn == 0 else set_penalty(member, size, 1.0), 1e-300)
        # the model of the squared loss is exact, so that it is solved once and well
        accuracy = 0.5 * wanted / pen if data.kind == SQUARED else 0.03 * max(limit, 0.01 * error) / pen
        known = work.count[IN_GRAM]
        if known < size:
            append_gram(sparse, work, known, size, number[MEAN_CURVATURE] if data.intercept else 0.0)
            work.count[IN_GRAM] = size
            number[SPENT] += model_price(sparse, 1.0 * size, 1.0 * entries, 0.5 * size)
        shift = solve_model(data, work, intercept_slope, number[TIGHT] * min(max(accuracy, 1e-10), 1e-3))
        number[SPENT] += 2.0 * entries * sparse.price[PASS] + 2.0 * n * sparse.price[ROW]
        length = step(data, work, sparse, shift, prepare(work, intercept_slope * shift))
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
