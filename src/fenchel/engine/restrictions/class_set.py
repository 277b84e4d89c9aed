"""The working set of a loss that sees several classes together: a column serves all classes that look at it."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...data import RowData
from ...kernels.rules import MEMORY
from ..units import Index, Units, Vector
from .columns import DenseColumns, SparseColumns
from .working_set import WorkingSet


class ClassColumns:
    """The columns of one class among those of all; `places` says which they are."""

    def __init__(self, store: Any, sparse: bool) -> None:
        self.store, self.sparse, self.places = store, sparse, np.zeros(0, dtype=np.int64)

    @property
    def count(self) -> int:
        return int(self.places.size)

    @property
    def pairs(self) -> float:
        """Multiply-adds of a Gram matrix of rows, about."""
        return float(self.store.pairs * (self.count / max(self.store.count, 1)) ** 2)

    @property
    def stored(self) -> float:
        """Entries, about."""
        return float(self.store.stored * self.count / max(self.store.count, 1))

    @property
    def means(self) -> Vector:
        """Of dense columns."""
        return np.asarray(self.store.means[self.places])

    def take(self, rows: slice, central: bool) -> Vector:
        """Some rows of dense columns, turned; less the columns' means where these do not matter."""
        made = np.asarray(self.store.rows[self.places, rows])
        if central:
            made -= self.means[:, None]
        return made

    def matrix(self) -> Any:
        """Sparse columns."""
        return sp.csc_array(self.store.csr)[:, self.places]


class _Dense(DenseColumns):
    """With the means of the columns."""

    means: Vector = np.zeros(0)

    def add(self, columns: Index) -> None:
        before = self.count
        super().add(columns)
        self.means = np.concatenate([self.means, self.rows[before : self.count].mean(axis=1)])

    def keep(self, places: Index) -> None:
        super().keep(places)
        self.means = self.means[places]


class _Sparse(SparseColumns):
    """As a matrix of SciPy's too."""

    @property
    def csr(self) -> Any:
        return sp.csr_array(self.by_row, shape=(self.data.n, self.count))


class ClassSet(WorkingSet):
    """As there; the columns of features are kept once, and products are made for all classes together."""

    def __init__(self, data: RowData, outputs: int) -> None:
        super().__init__(data, outputs)
        self.store: Any = _Sparse(data) if data.sparse else _Dense(data)
        self.columns = [ClassColumns(self.store, data.sparse) for _ in range(outputs)]
        self.slot = np.full(data.p, -1, dtype=np.int64)  # of a feature's column among those that are kept

    def fits(self, size: int) -> bool:
        rows = 0 if self.data.sparse else self.data.n * min(size, self.data.p)
        return 8 * (size * size + rows) <= max(2 * MEMORY, self.data.nbytes)

    def add(self, units: Units, new: Index) -> None:
        if not new.size:
            return
        coefs, _ = units.of_coefficients(new)
        self.chosen, self.coefs = np.concatenate([self.chosen, new]), np.concatenate([self.coefs, coefs])
        features = np.unique(coefs % self.data.p)
        missing = features[self.slot[features] < 0]
        if missing.size:
            self.slot[missing] = self.store.count + np.arange(missing.size)
            self.store.add(missing)
        self._place()

    def keep(self, units: Units, some: Index) -> Index:
        _, start = units.of_coefficients(self.chosen)
        sizes = np.diff(start)[some]
        offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.repeat(start[some] - offset[:-1], sizes) + np.arange(offset[-1])
        self.chosen, self.coefs = self.chosen[some], self.coefs[places]
        used = np.zeros(self.data.p, dtype=bool)
        used[self.coefs % self.data.p] = True
        stays = np.flatnonzero(used & (self.slot >= 0))
        kept = np.sort(self.slot[stays])
        if kept.size < self.store.count:
            self.slot[stays] = np.searchsorted(kept, self.slot[stays])
            self.slot[~used] = -1
            self.store.keep(kept)
        self._place()
        return places

    def _place(self) -> None:
        """Which coefficients are whose."""
        output, feature = np.divmod(self.coefs, self.data.p)
        for k, part in enumerate(self.columns):
            self.where[k] = np.flatnonzero(output == k)
            part.places = self.slot[feature[self.where[k]]]

    def scores(self, values: Vector, shift: Vector) -> Vector:
        W = np.zeros((self.outputs, self.store.count))
        for k, places in enumerate(self.where):
            W[k, self.columns[k].places] = values[places]
        if not self.store.count:
            u = np.zeros((self.outputs, self.data.n))
        elif self.data.sparse:
            u = np.ascontiguousarray((self.store.csr @ W.T).T)
        else:
            u = W @ self.store.rows[: self.store.count]
        u += shift[:, None]
        return u

    def slopes(self, x: Vector) -> Vector:
        g = np.empty(self.size)
        if not self.store.count:
            return g
        each = self.store.csr.T @ x.T if self.data.sparse else self.store.rows[: self.store.count] @ x.T
        for k, places in enumerate(self.where):
            g[places] = each[self.columns[k].places, k]
        return g / self.data.n
