"""Columns of the data that a round works on: their products with vectors, and their Gram matrix.

A set of columns is copied into a compact array, so that what follows reads them at the speed of memory; the data itself
is never copied whole or brought into another order. One set serves one output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from ..lower_gram import lower_gram
from ..units import Index, Vector

if TYPE_CHECKING:
    from ...data import RowData

SINGLE_FROM = 200  # columns from which a Gram matrix is made in single precision; fewer cost little either way


class Columns(Protocol):
    """What a round asks of its columns; they are numbered in the order in which they were added."""

    count: int

    def add(self, columns: Index) -> None:
        """Take more columns of the data."""

    def keep(self, places: Index) -> None:
        """Drop all but these."""

    def scores(self, change: Vector) -> Vector:
        """The columns' sum, each times its number."""

    def slopes(self, x: Vector) -> Vector:
        """The product of every column with x."""

    def gram(self, weight: Vector | None, means: Vector | None, first: int, out: Any, single: bool) -> None:
        """Rows `first` on of the weighted Gram matrix and, mirrored, its columns; without weights they are ones.

        With `means`, of the columns less these, which are their weighted means. `single` allows single precision.
        """

    def centre(self, weight: Vector | None, first: int) -> Vector:
        """The weighted sum of every column from `first` on."""


class DenseColumns:
    """Columns of dense data as the rows of a compact array in double precision."""

    def __init__(self, data: RowData) -> None:
        self.data, self.count = data, 0
        self.rows = np.empty((0, data.n))

    def add(self, columns: Index) -> None:
        wanted = self.count + columns.size
        if wanted > len(self.rows):
            rows = np.empty((max(wanted, min(2 * len(self.rows), self.data.p), min(64, self.data.p)), self.data.n))
            rows[: self.count] = self.rows[: self.count]
            self.rows = rows
        self.data.take_columns(columns, self.rows, self.count)
        self.count = wanted

    def keep(self, places: Index) -> None:
        self.rows[: places.size] = self.rows[places]
        self.count = places.size

    def scores(self, change: Vector) -> Vector:
        if 8 * np.count_nonzero(change) < self.count:
            some = np.flatnonzero(change)
            return np.asarray(change[some] @ self.rows[some])
        return np.asarray(change @ self.rows[: self.count])

    def slopes(self, x: Vector) -> Vector:
        return np.asarray(self.rows[: self.count] @ x)

    def gram(self, weight: Vector | None, means: Vector | None, first: int, out: Any, single: bool) -> None:
        from ...kernels.units import mirror

        rows, count = self.rows[: self.count], self.count
        if first:
            new = rows[first:] if means is None else rows[first:] - means[first:, None]
            new = new if weight is None else new * weight
            block = new @ rows.T
            if means is not None:  # what rounding left of the new means, times the others, which may be large
                block -= np.outer(new.sum(axis=1), means)
            out[first:count, :count] = block
            out[:first, first:count] = block[:, :first].T
            return
        narrow = single and weight is not None and count >= SINGLE_FROM
        scaled, kind = rows, np.float32 if narrow else np.float64
        if means is not None:  # before they lose digits: columns far from zero are nearly constant
            scaled = np.subtract(rows, means[:, None], out=np.empty(rows.shape, dtype=kind), casting="same_kind")
        if weight is not None:
            out_of = scaled if means is not None else np.empty(rows.shape, dtype=kind)
            scaled = np.multiply(scaled, np.sqrt(weight), out=out_of, casting="same_kind")
        syrk = ssyrk if narrow else dsyrk
        out[:count, :count] = syrk(1.0, scaled.T, trans=1, lower=0).T
        mirror(out, count)

    def centre(self, weight: Vector | None, first: int) -> Vector:
        rows = self.rows[first : self.count]
        return np.asarray(rows.sum(axis=1) if weight is None else rows @ weight)


class WholeDense:
    """All columns of dense data, as they are; `order` numbers them otherwise than the data does."""

    def __init__(self, data: RowData, order: Index | None) -> None:
        self.data, self.count, self.order = data, data.p, order

    def add(self, columns: Index) -> None:
        raise ValueError("all columns are there")

    def keep(self, places: Index) -> None:
        raise ValueError("all columns stay")

    def scores(self, change: Vector) -> Vector:
        if self.order is not None:
            ordered = np.empty_like(change)
            ordered[self.order] = change
            change = ordered
        return self.data.times(change)

    def slopes(self, x: Vector) -> Vector:
        found = self.data.transposed_times(x)
        return found if self.order is None else found[self.order]

    def gram(self, weight: Vector | None, means: Vector | None, first: int, out: Any, single: bool) -> None:
        from ...kernels.units import mirror

        space = np.zeros((self.count, self.count), dtype=out.dtype, order="F")
        if means is not None and self.order is not None:
            ordered = np.empty_like(means)
            ordered[self.order] = means
            means = ordered
        made = lower_gram(self.data.dense, weight, space, less=means)
        mirror(made, self.count)
        out[: self.count, : self.count] = made if self.order is None else made[np.ix_(self.order, self.order)]

    def centre(self, weight: Vector | None, first: int) -> Vector:
        return self.slopes(np.ones(self.data.n) if weight is None else weight)[first:]


class SparseColumns:
    """Columns of sparse data as compact rows, and turned as compact columns where somebody asks for them."""

    def __init__(self, data: RowData) -> None:
        self.data, self.count = data, 0
        self.columns = np.zeros(0, dtype=np.int64)
        self.stored, self.pairs = 0, 0.0

    def add(self, columns: Index) -> None:
        self.columns = np.concatenate([self.columns, columns])
        self.count = self.columns.size
        self._take()

    def keep(self, places: Index) -> None:
        self.columns = self.columns[places]
        self.count = self.columns.size
        self._take()

    def _take(self) -> None:
        natural = self.count == self.data.p and np.array_equal(self.columns, np.arange(self.count))
        self.by_row = self.data.arrays if natural and not self.data.by_column else self.data.compact_rows(self.columns)
        self.stored = int(self.by_row[2][-1])
        lengths = np.diff(self.by_row[2]).astype(float)
        self.pairs = 0.5 * float(lengths @ lengths)  # multiply-adds of a Gram matrix
        self._by_column: tuple[Any, Any, Any] | None = None

    @property
    def by_column(self) -> tuple[Any, Any, Any]:
        if self._by_column is None:
            from ...kernels.sparse_columns import turn

            values, places, ends = self.by_row
            turned = np.empty(self.stored), np.empty(self.stored, np.int32), np.empty(self.count + 1, np.int64)
            turn(values, places, ends, *turned)
            self._by_column = turned
        return self._by_column

    def scores(self, change: Vector) -> Vector:
        from ...kernels.sparse_columns import rows_times

        out = np.empty(self.data.n)
        rows_times(*self.by_row, change, out)
        return out

    def slopes(self, x: Vector) -> Vector:
        from ...kernels.sparse_columns import sum_rows

        out = np.empty(self.count)
        sum_rows(*self.by_row, x, out)
        return out

    def gram(self, weight: Vector | None, means: Vector | None, first: int, out: Any, single: bool) -> None:
        from ...kernels.sparse_columns import gram

        weights, count = np.ones(self.data.n) if weight is None else weight, self.count
        made = np.empty((count, count), dtype=out.dtype) if first else out
        gram(*self.by_row, weights, made, count)  # of all columns: taking out the new ones would cost as much
        if means is not None:
            made[:count, :count] -= float(weights.sum()) * np.outer(means, means)
        if first:
            out[first:count, :count] = made[first:]
            out[:first, first:count] = made[:first, first:]

    def centre(self, weight: Vector | None, first: int) -> Vector:
        return self.slopes(np.ones(self.data.n) if weight is None else weight)[first:]
