"""Products with the columns of a working set of groups: dense ones that were copied, or sparse ones where they are.

Symbols are those of ``small_set.py``; rows of `row` are those of ``small_certificate.py``.
"""

from __future__ import annotations

from numba import float64, int64, njit, void

from . import small_model as model
from .apart import HOT, INSIDE, MATRIX, READ, VECTOR, apart, refer
from .group_set import DATA, IN_GRAM, MEAN_COLUMN, MEAN_CURVATURE, SIZE, WORK
from .small_certificate import MODELLED, SCRATCH
from .sparse_layout import COLUMN, Sparse, append_products, column_add, column_add_weighted, column_dot


@njit(**INSIDE)
def dot_with(data, work, k, vector):
    """The product of member k of the set with a vector."""
    if data.sparse:
        j = work.column[k]
        return column_dot(data.values, data.places, data.ends[j], data.ends[j + 1], vector)
    return model.dot(work.columns[k], vector)


@njit(**{**INSIDE, **HOT})
def _add_weighted(out, weight, column, factor):
    for i in range(out.size):
        out[i] += factor * weight[i] * column[i]


@njit(**{**INSIDE, **HOT})
def _weighted_dot(weight, a, b):
    total = 0.0
    for i in range(weight.size):
        total += weight[i] * a[i] * b[i]
    return total


@njit(**INSIDE)
def add_weighted(data, work, k, factor, out):
    """out += factor * h * member k."""
    if data.sparse:
        j = work.column[k]
        start, end = data.ends[j], data.ends[j + 1]
        column_add_weighted(data.values, data.places, start, end, factor, work.row[MODELLED], out)
    else:
        _add_weighted(out, work.row[MODELLED], work.columns[k], factor)


@njit(**INSIDE)
def entries_of(data, work, k):
    """Numbers that a product with member k reads, about."""
    if data.sparse:
        j = work.column[k]
        return 1.0 * (data.ends[j + 1] - data.ends[j] + COLUMN)
    return 1.0 * data.target.size


@apart(void(DATA, WORK, READ, float64, VECTOR))
def combine_set(data, work, factor, shift, out):
    """shift + the sum of the members times their factors, for every row."""
    if not data.sparse:
        model.combine(work.columns, work.count[SIZE], factor, shift, out)
        return
    for i in range(out.size):
        out[i] = shift
    for k in range(work.count[SIZE]):
        if factor[k] != 0.0:
            j = work.column[k]
            column_add(data.values, data.places, data.ends[j], data.ends[j + 1], factor[k], out)


@apart(void(DATA, WORK, int64, MATRIX))
def products_of_unit(data, work, u, block):
    """The products of the members of a unit, weighted by h: the lower triangle."""
    first, size, h, spread = work.first[u], work.first[u + 1] - work.first[u], work.row[MODELLED], work.row[SCRATCH]
    if not data.sparse:
        for a in range(size):
            for b in range(a + 1):
                block[a, b] = _weighted_dot(h, work.columns[first + a], work.columns[first + b])
        return
    for i in range(spread.size):
        spread[i] = 0.0
    for a in range(size):
        add_weighted(data, work, first + a, 1.0, spread)
        for b in range(a + 1):
            block[a, b] = dot_with(data, work, first + b, spread)
        j = work.column[first + a]
        for e in range(data.ends[j], data.ends[j + 1]):
            spread[data.places[e]] = 0.0


@apart(void(DATA, WORK))
def append_rows(data, work):
    """The rows of the set's Gram matrix that are missing, and their mirror image."""
    mean_column, first, size, n = work.member[MEAN_COLUMN], work.count[IN_GRAM], work.count[SIZE], data.target.size
    mean = work.number[MEAN_CURVATURE] if data.intercept else 0.0
    if not data.sparse:
        model.append_gram(
            work.columns, work.row[MODELLED], work.tile, work.gram, mean_column, first, size, mean, data.blas
        )
        return
    sparse = refer(
        Sparse(data.values, data.places, data.ends, data.pairs, data.price, data.lines, data.buckets, data.row_values,
               data.row_places)
    )  # fmt: skip
    append_products(sparse, work.row[MODELLED], work.row[SCRATCH], work.column, first, size, 0, work.gram)
    for k in range(first, size):
        mean_column[k] = dot_with(data, work, k, work.row[MODELLED]) / n
    model.mirror(work.gram, mean_column, first, size, mean)
