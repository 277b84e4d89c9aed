"""Sparse data as compiled loops see it: columns of all features, and rows of those in a working set.

Columns are `values`, `places`, `ends` as in CSC; nobody copies them for a working set. Products with them take no
branch that a processor guesses wrong, which short rows do once a row (measured on rows of four entries: five times as
long). Gram matrices want rows. Those of a set are written in the order of their lengths, for the same reason.

========== ======================= ==========================================================================
Symbol     Name here               Meaning
========== ======================= ==========================================================================
X          values, places, ends    the entries of column j, and their rows, are at ends[j] to ends[j + 1]
W          work.place[INDEX]       the columns of X in the working set
h          row[MODELLED]           the curvatures that a Gram matrix is made of
G          work.gram               W'(H - hh'/sum h)W / n: the intercept, if there is one, is eliminated
========== ======================= ==========================================================================
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import float64, int32, int64, njit, types, void

from .apart import INSIDE, LIST, MATRIX, READ, READ_LIST, VECTOR, Reference, apart
from .small_certificate import COUNTS, INDEX, MODELLED, NUMBERS, SCRATCH, WORK
from .small_model import MEAN_COLUMN

LONG = 63  # entries of a row from which on its length no longer matters
# Rows of the array `lines`, of whole numbers for every row of the data: its entries in the set and where the next one
# goes, and the rows that have some in the order of their lengths, with their first entries.
LENGTH, NEXT, ORDER, FIRST, LINE_ROWS = range(5)
# Entries of work.count besides those of small_certificate.py: the set's size when its rows were taken (0: they are of
# another set), how many rows have an entry, and whether somebody else shall go on.
TAKEN, LINES, GIVEN_UP, SPARSE_COUNTS = range(COUNTS, COUNTS + 4)
SPENT, SPARSE_NUMBERS = range(NUMBERS, NUMBERS + 2)  # of work.number: nanoseconds by the prices, for this alpha
COLUMN = 8  # entries that a product with a column costs however short it is
# Entries of sparse.price, nanoseconds: of an entry in a product with a column, of one that is moved to its row, of a
# multiply-add of a Gram matrix by rows, of descent on it, of a factor, of a row's loss, and of some rounds in Python.
PASS, MOVE, PAIR, DESCENT, FACTOR, ROW, ROUND, PRICES = range(8)


class Sparse(NamedTuple):
    """Sparse data, which nobody changes: its columns, half the sum of the squares of the rows' lengths, and prices as
    above. Room for the rows of a working set: `lines` and `buckets` as above, and their entries."""

    values: np.ndarray
    places: np.ndarray
    ends: np.ndarray
    pairs: float
    price: np.ndarray
    lines: np.ndarray
    buckets: np.ndarray
    row_values: np.ndarray
    row_places: np.ndarray


_PLACES = types.Array(int32, 1, "C", readonly=True)
# as the fields of Sparse
SPARSE_FIELDS = (READ, _PLACES, READ_LIST, float64, READ, int32[:, ::1], LIST, VECTOR, int32[::1])
SPARSE = Reference(types.NamedTuple(SPARSE_FIELDS, Sparse))


@njit(**INSIDE)
def column_dot(values, places, first, last, vector):
    """Four sums at a time, so that none waits for the one before it."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    e, end = np.uint64(first), np.uint64(last)
    while e + np.uint64(4) <= end:
        a += values[e] * vector[np.uint32(places[e])]
        b += values[e + np.uint64(1)] * vector[np.uint32(places[e + np.uint64(1)])]
        c += values[e + np.uint64(2)] * vector[np.uint32(places[e + np.uint64(2)])]
        d += values[e + np.uint64(3)] * vector[np.uint32(places[e + np.uint64(3)])]
        e += np.uint64(4)
    while e < end:
        a += values[e] * vector[np.uint32(places[e])]
        e += np.uint64(1)
    return (a + b) + (c + d)


@apart(void(READ, _PLACES, READ_LIST, READ, VECTOR))
def look(values, places, ends, dual, out):
    """X'x / n for all features."""
    for j in range(out.size):
        out[j] = column_dot(values, places, ends[j], ends[j + 1], dual) / dual.size


@njit(**INSIDE)
def column_add(values, places, first, last, factor, out):
    """out += factor * column."""
    for e in range(np.uint64(first), np.uint64(last)):
        out[np.uint32(places[e])] += factor * values[e]


@njit(**INSIDE)
def column_add_weighted(values, places, first, last, factor, weight, out):
    """out += factor * weight * column."""
    for e in range(np.uint64(first), np.uint64(last)):
        i = np.uint32(places[e])
        out[i] += factor * weight[i] * values[e]


@apart(void(SPARSE, LIST, int64, READ, float64, VECTOR))
def combine(sparse, columns, size, factor, shift, out):
    """shift + W v, for every row."""
    for i in range(out.size):
        out[i] = shift
    for k in range(size):
        if factor[k] != 0.0:
            j = columns[k]
            column_add(sparse.values, sparse.places, sparse.ends[j], sparse.ends[j + 1], factor[k], out)


@apart(int64(SPARSE, LIST, int64))
def entries_of(sparse, columns, size):
    """Entries of these columns, and for each column some more that stand for the call."""
    total = int64(COLUMN * size)
    for k in range(size):
        total += sparse.ends[columns[k] + 1] - sparse.ends[columns[k]]
    return total


@apart(int64(SPARSE, LIST, int64, int64))
def _take_rows(sparse, columns, size, n):
    """Write the rows of these columns, the shortest first, and count those that have an entry; in a row the places of
    the columns rise."""
    lines, buckets = sparse.lines, sparse.buckets
    length, following, order, first = lines[LENGTH], lines[NEXT], lines[ORDER], lines[FIRST]
    for i in range(n):
        length[i] = 0
    for k in range(size):
        j = columns[k]
        for e in range(np.uint64(sparse.ends[j]), np.uint64(sparse.ends[j + 1])):
            length[np.uint32(sparse.places[e])] += 1
    for b in range(LONG + 2):
        buckets[b] = 0
    for i in range(n):
        buckets[np.uint32(min(length[i], LONG)) + 1] += 1
    buckets[1] = 0  # rows without an entry
    for b in range(1, LONG + 1):
        buckets[b + 1] += buckets[b]
    count = buckets[LONG + 1]
    for i in range(n):
        if length[i] > 0:
            b = np.uint32(min(length[i], LONG))
            order[buckets[b]] = i
            buckets[b] += 1
    at = 0
    for q in range(count):
        i = np.uint32(order[q])
        first[q] = at
        following[i] = at
        at += length[i]
    for k in range(size):
        j = columns[k]
        for e in range(np.uint64(sparse.ends[j]), np.uint64(sparse.ends[j + 1])):
            i = np.uint32(sparse.places[e])
            own = np.uint32(following[i])
            following[i] = own + 1
            sparse.row_values[own] = sparse.values[e]
            sparse.row_places[own] = k
    return count


@apart(void(SPARSE, int64, READ, int64, MATRIX))
def _gram_by_rows(sparse, count, weight, first, gram):
    """Add the products of the columns from `first` on with those before them, row after row."""
    lines, values, places, n = sparse.lines, sparse.row_values, sparse.row_places, weight.size
    length, order, begin = lines[LENGTH], lines[ORDER], lines[FIRST]
    for q in range(count):
        i = np.uint32(order[q])
        low, high = np.uint32(begin[q]), np.uint32(begin[q] + length[i])
        h = weight[i] / n
        for a in range(low, high):
            k = np.uint32(places[a])
            if k >= first:
                factor, own = h * values[a], gram[k]
                for c in range(low, a + 1):
                    own[np.uint32(places[c])] += factor * values[c]


@apart(void(SPARSE, READ, VECTOR, LIST, int64, int64, MATRIX))
def _gram_by_columns(sparse, weight, spread, columns, first, size, gram):
    """The same, column after column: each is spread over all rows once."""
    n = weight.size
    for i in range(n):
        spread[i] = 0.0
    for k in range(first, size):
        start, end = sparse.ends[columns[k]], sparse.ends[columns[k] + 1]
        column_add_weighted(sparse.values, sparse.places, start, end, 1.0 / n, weight, spread)
        for l in range(k + 1):
            j = columns[l]
            gram[k, l] = column_dot(sparse.values, sparse.places, sparse.ends[j], sparse.ends[j + 1], spread)
        for e in range(np.uint64(start), np.uint64(end)):
            spread[np.uint32(sparse.places[e])] = 0.0


@apart(int64(SPARSE, READ, VECTOR, LIST, int64, int64, int64, MATRIX))
def append_products(sparse, weight, spread, columns, first, size, taken, gram):
    """The weighted products of the columns from `first` on with those before them and with themselves, by the cheaper
    of two ways; `taken` is how many rows of this very set have been written, or 0. Returns that number again."""
    n, entries = weight.size, entries_of(sparse, columns, size)
    by_columns = (size - first) * (0.5 if first == 0 else 1.0) * entries * sparse.price[PASS]
    if by_columns <= sparse.price[MOVE] * (entries + n) and taken == 0:
        _gram_by_columns(sparse, weight, spread, columns, first, size, gram)
        return 0
    for k in range(first, size):
        for l in range(k + 1):
            gram[k, l] = 0.0
    taken = taken if taken > 0 else _take_rows(sparse, columns, size, n)
    _gram_by_rows(sparse, taken, weight, first, gram)
    return taken


@apart(void(SPARSE, WORK, int64, int64, float64))
def append_gram(sparse, work, first, size, mean_curvature):
    """The rows first to size of the Gram matrix of the set, and their mirror image; a mean curvature of 0 says that
    there is no intercept."""
    gram, mean_column, n, columns = work.gram, work.member[MEAN_COLUMN], work.row.shape[1], work.place[INDEX]
    taken = work.count[LINES] if work.count[TAKEN] == size else 0
    taken = append_products(sparse, work.row[MODELLED], work.row[SCRATCH], columns, first, size, taken, gram)
    if taken > 0:
        work.count[TAKEN], work.count[LINES] = size, taken
    for k in range(first, size):
        j = columns[k]
        mean_column[k] = (
            column_dot(sparse.values, sparse.places, sparse.ends[j], sparse.ends[j + 1], work.row[MODELLED]) / n
        )
    for k in range(first, size):
        for l in range(k + 1):
            entry = gram[k, l]
            if mean_curvature > 0.0:
                entry -= mean_column[k] * mean_column[l] / mean_curvature
            gram[k, l] = gram[l, k] = entry


def sparse_rooms(n: int, columns: Any, pairs: float, price: Any) -> Sparse:
    """Sparse data of n rows, with room for the rows of a working set."""
    stored = columns[0].size
    return Sparse(
        *columns, pairs, price, np.empty((LINE_ROWS, n), np.int32), np.empty(LONG + 2, np.int64), np.empty(stored),
        np.empty(stored, np.int32),
    )  # fmt: skip


_LIST = np.zeros(0, np.int64)
NO_COLUMNS = Sparse(
    np.zeros(0), np.zeros(0, np.int32), _LIST, 0.0, np.zeros(0), np.zeros((0, 0), np.int32), _LIST, np.zeros(0),
    np.zeros(0, np.int32),
)  # fmt: skip
