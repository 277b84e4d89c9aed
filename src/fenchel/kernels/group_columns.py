"""Block descent on the columns of a working set of groups, where a Gram matrix of them would cost more.

    q = q_0 + G d,   G d = C (H - h h' / sum h) C' d / n      so that   q_j = q_0j + C_j'e - m_j sum(e) / mean(h)

Here d is how far the values have moved, C has the columns of the set one after another, m_j = C_j'h / n, and
e = H C'd / n has a number for every row. A coordinate that moves costs two products with its column, n numbers each;
with a Gram matrix it costs one with a row of that, as many numbers as the set has coordinates. Columns of sparse data
have as many numbers as entries. Units that are zero and stay there are looked at once every few passes.

Symbols are those of ``small_set.py``; rows of `row` are those of ``small_certificate.py``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int64, njit, void

from ..foundation.numerics import LONGEST
from .apart import INSIDE, READ, apart
from .block_descent import SOLVED, mixture, step_of_unit
from .group_products import add_weighted, dot_with, entries_of, products_of_unit
from .group_set import (
    BEFORE,
    BLOCKED,
    DATA,
    GAINED,
    IN_GRAM,
    L1,
    LOWER,
    MEAN_COLUMN,
    MEAN_CURVATURE,
    MODELS,
    MOVE,
    PASSES_TAKEN,
    SIZE,
    SLOPES,
    SPACE,
    UNITS,
    UPPER,
    VALUE,
    WORK,
)  # fmt: skip
from .rooms import matrix_at
from .rules import FACTOR
from .small_certificate import CHANGE, MODELLED
from .sparse_layout import DESCENT, PAIR, PASS
from .sparse_layout import MOVE as MOVED
from .unit_groups import gap_of_groups

FIRST_GUESS = 40.0  # passes of descent on columns that a model takes, before any did; larger: more Gram matrices
_FEWER = 10  # of descent on a Gram matrix, beside Newton's method
# Of an entry that descent reads: what a multiply-add of a Gram matrix costs (see
# prices/calibrated.py: syrk64, descent); larger: descent on columns goes on for longer.
_GRAM = 0.16


@njit(**INSIDE)
def _moving(work):
    """Coordinates of the set in units that are not zero."""
    total = 0
    for u in range(work.count[UNITS]):
        square = 0.0
        for k in range(work.first[u], work.first[u + 1]):
            square += abs(work.member[VALUE, k])
        total += work.first[u + 1] - work.first[u] if square > 0.0 else 0
    return total


@njit(**INSIDE)
def _gram_price(data, work, entries):
    """What is missing of the Gram matrix of columns with so many entries, in numbers that descent on it reads; infinite
    where it has no room."""
    m, known = work.count[SIZE], work.count[IN_GRAM]
    if m > work.gram.shape[0]:
        return np.inf
    if not data.sparse:
        return 0.5 * _GRAM * data.target.size * (m * m - known * known)
    share, price = entries / max(data.places.size, 1), data.price
    made = share * share * data.pairs * (1.0 - (known / m) ** 2) * price[PAIR]
    return (made + price[MOVED] * (entries + m * m) if known < m else 0.0) / price[DESCENT]


@apart(boolean(DATA, WORK))
def columns_pay(data, work):
    """Whether a model costs less by descent on the columns of the set than by its Gram matrix, which serves so many
    models, descent on that and a factor."""
    m, active, entries = work.count[SIZE], float(max(_moving(work), work.count[SIZE] // 4)), 0.0
    for k in range(m):
        entries += entries_of(data, work, k)
    factor = FACTOR / 6.0 * active * active * active
    gram = _gram_price(data, work, entries) / work.number[MODELS] + factor + _FEWER * active * (m + SOLVED)
    read = 2.0 * entries / m * (data.price[PASS] / data.price[DESCENT] if data.sparse else 1.0)
    return work.number[PASSES_TAKEN] * active * (read + SOLVED) <= gram


@apart(void(DATA, WORK))
def make_blocks(data, work):
    """The blocks of G that belong to single units, for units that have none, and bounds of their eigenvalues."""
    n, mean, h = data.target.size, work.number[MEAN_CURVATURE], work.row[MODELLED]
    for u in range(work.count[UNITS]):
        first, size = work.first[u], work.first[u + 1] - work.first[u]
        if first < work.count[BLOCKED]:
            continue
        block, square, widest = matrix_at(work.blocks, work.places[u], size, size), 0.0, 0.0
        products_of_unit(data, work, u, block)
        for a in range(size):
            work.member[MEAN_COLUMN, first + a] = dot_with(data, work, first + a, h) / n if data.intercept else 0.0
            for b in range(a + 1):
                own = block[a, b] / n - work.member[MEAN_COLUMN, first + a] * work.member[MEAN_COLUMN, first + b] / mean
                block[a, b] = block[b, a] = own
        for a in range(size):
            total = 0.0
            for b in range(size):
                square += block[a, b] * block[a, b]
                total += abs(block[a, b])
            widest = max(widest, total)
        work.bend[u], work.ready[u] = min(math.sqrt(square), widest), 0
    work.count[BLOCKED] = work.count[SIZE]


@apart(float64(DATA, WORK, int64, float64))
def _visit(data, work, u, total):
    """Move unit u to its least; returns the sum of e, which was `total`. What the model falls by is added to
    number[GAINED]."""
    member, e, n, mean = work.member, work.row[CHANGE], data.target.size, work.number[MEAN_CURVATURE]
    first, last = work.first[u], work.first[u + 1]
    v, q, space = member[VALUE], member[SLOPES], member[SPACE]
    for k in range(first, last):
        q[k] = member[MOVE, k] + dot_with(data, work, k, e) - member[MEAN_COLUMN, k] * total / mean
    block = matrix_at(work.blocks, work.places[u], last - first, last - first)
    step_of_unit(
        block, first, q, v, member[L1], member[LOWER], member[UPPER], work.first, work.norm, work.bend, u, work.plain,
        work.places[u], work.basis, work.ready, space, work.block,
    )  # fmt: skip
    size, before, gained = 0.0, 0.0, 0.0
    for k in range(first, last):
        size += space[k] * space[k]
        before += v[k] * v[k]
        gained += member[L1, k] * (abs(v[k]) - abs(space[k]))
        space[k] -= v[k]
    gained += work.norm[u] * (math.sqrt(before) - math.sqrt(size))
    for k in range(first, last):
        change = 0.0
        for l in range(first, last):
            change += block[k - first, l - first] * space[l]
        gained -= space[k] * (q[k] + 0.5 * change)
    for k in range(first, last):
        step = space[k]
        if step != 0.0:
            v[k] += step
            total += step * member[MEAN_COLUMN, k]
            add_weighted(data, work, k, step / n, e)
    work.number[GAINED] += gained
    return total


@apart(float64(DATA, WORK, READ, READ))
def _value(data, work, v, e):
    """The model at these values, whose e is given, without what is the same everywhere."""
    member, h, n, square, total = work.member, work.row[MODELLED], data.target.size, 0.0, 0.0
    for i in range(n):
        square += e[i] * e[i] / h[i] if h[i] > 0.0 else 0.0
        total += e[i]
    value = 0.5 * n * square - (0.5 * total * total / work.number[MEAN_CURVATURE] if data.intercept else 0.0)
    for u in range(work.count[UNITS]):
        size = 0.0
        for k in range(work.first[u], work.first[u + 1]):
            size += v[k] * v[k]
            value += member[MOVE, k] * (v[k] - member[BEFORE, k]) + member[L1, k] * abs(v[k])
        value += work.norm[u] * math.sqrt(size)
    return value


@apart(float64(DATA, WORK, float64))
def _extrapolate(data, work, total):
    """Go to where the last passes seem to lead, if the model is lower there; returns the sum of e."""
    m, depth, e = work.count[SIZE], work.products.shape[0], work.row[CHANGE]
    v, space = work.member[VALUE], work.member[SPACE]
    whole = mixture(m, work.past, work.products)
    if whole == 0.0:
        return total
    ahead = work.tile[depth + 1]
    for k in range(m):
        new = 0.0
        for a in range(depth):
            new += work.products[a, depth] * work.past[a + 1, k]
        space[k] = new / whole
    for i in range(e.size):
        new = 0.0
        for a in range(depth):
            new += work.products[a, depth] * work.tile[a + 1, i]
        ahead[i] = new / whole
    gained = _value(data, work, v, e) - _value(data, work, space, ahead)
    if not gained > 0.0:
        return total
    work.number[GAINED] += gained
    total = 0.0
    for k in range(m):
        v[k] = space[k]
        total += work.member[MEAN_COLUMN, k] * (v[k] - work.member[BEFORE, k])
    for i in range(e.size):
        e[i] = ahead[i]
    return total


@apart(boolean(DATA, WORK, float64))
def solve_on_columns(data, work, target):
    """Bring the values of the set so far that the gap of the model is at most `target`, unless that takes twice as many
    passes as the models before and there is room for a Gram matrix; whether it got there. The slopes belong to the
    values in the end."""
    member, m, units, n = work.member, work.count[SIZE], work.count[UNITS], data.target.size
    v, q, e, first = member[VALUE], member[SLOPES], work.row[CHANGE], work.first[: units + 1]
    mean, total, spent, depth = work.number[MEAN_CURVATURE], 0.0, 0.0, work.products.shape[0]
    passes, entries = 0, 0.0
    longest = LONGEST * data.price[DESCENT] / data.price[PASS] if data.sparse else LONGEST
    for i in range(n):
        e[i] = 0.0
    for k in range(m):
        member[MOVE, k] = q[k]
        entries += entries_of(data, work, k)
    gap = gap_of_groups(q, v, member[L1], member[LOWER], member[UPPER], first, work.norm, work.bend)
    while True:
        if gap <= target:
            work.number[PASSES_TAKEN] = 0.5 * (work.number[PASSES_TAKEN] + passes)
            return True
        limited = m <= work.gram.shape[0] or not data.sparse
        if (limited and passes > max(2.0 * work.number[PASSES_TAKEN], FIRST_GUESS)) or spent > longest:
            work.number[PASSES_TAKEN] = max(work.number[PASSES_TAKEN], passes)
            return False
        chosen = 0
        for u in range(units):
            size, over = 0.0, 0.0
            for k in range(work.first[u], work.first[u + 1]):
                size += abs(v[k])
                beyond = max(abs(q[k]) - member[L1, k], 0.0)
                over += beyond * beyond
            if work.bend[u] > 0.0 and (size > 0.0 or math.sqrt(over) > work.norm[u]):
                work.place[chosen] = u
                chosen += 1
        work.number[GAINED] = 0.0
        for kept in range(depth + 1):
            for k in range(m):
                work.past[kept, k] = v[k]
            for i in range(n):
                work.tile[kept, i] = e[i]
            if kept == depth:
                total = _extrapolate(data, work, total)
                break
            before, passes = work.number[GAINED], passes + 1
            for a in range(chosen):
                total = _visit(data, work, work.place[a], total)
                for k in range(work.first[work.place[a]], work.first[work.place[a] + 1]):
                    spent += 2.0 * entries_of(data, work, k)
            if not work.number[GAINED] > before:
                break
        for k in range(m):
            q[k] = member[MOVE, k] + dot_with(data, work, k, e) - member[MEAN_COLUMN, k] * total / mean
        spent += entries
        gap = gap_of_groups(q, v, member[L1], member[LOWER], member[UPPER], first, work.norm, work.bend)
        if not work.number[GAINED] > 0.0:
            return gap <= target
