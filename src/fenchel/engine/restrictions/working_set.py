"""The units that a round works on, with their columns.

Units join by their scores, which say how hard the loss pulls at a unit that is zero, and leave at the start of an alpha
where most of the set is zero. A set may also hold all units, whose columns are then the data as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...data import RowData
from ...kernels.rules import MEMORY
from ..units import Index, Units, Vector
from .columns import DenseColumns, SparseColumns, WholeDense

MANY = 8.0  # candidates per unit of the set: so many say that the set should grow faster than by its support


class WorkingSet:
    """Units, and for every output the columns of their coefficients.

    Attributes
    ----------
    chosen : the units
    coefs : their coefficients, one unit after another
    where : for every output the places of its coefficients among these
    columns : for every output their columns, in that order
    """

    def __init__(self, data: RowData, outputs: int) -> None:
        self.data, self.outputs, self.whole = data, outputs, False
        kind: Any = SparseColumns if data.sparse else DenseColumns
        self.columns: list[Any] = [kind(data) for _ in range(outputs)]
        self.where: list[Index] = [np.zeros(0, dtype=np.int64) for _ in range(outputs)]
        self.chosen = np.zeros(0, dtype=np.int64)
        self.coefs = np.zeros(0, dtype=np.int64)

    @property
    def size(self) -> int:
        return int(self.coefs.size)

    def fits(self, size: int) -> bool:
        """Whether a set of that many coefficients stays within the budget of memory, its Gram matrix included."""
        rows = 0 if self.data.sparse else self.data.n
        return 8 * size * (size + rows) <= max(MEMORY, self.data.nbytes)

    def add(self, units: Units, new: Index) -> None:
        if not new.size:
            return
        coefs, _ = units.of_coefficients(new)
        before = self.size
        self.chosen, self.coefs = np.concatenate([self.chosen, new]), np.concatenate([self.coefs, coefs])
        for k in range(self.outputs):
            own = np.flatnonzero(coefs // self.data.p == k) if self.outputs > 1 else np.arange(coefs.size)
            if own.size:
                self.columns[k].add(coefs[own] % self.data.p)
                self.where[k] = np.concatenate([self.where[k], before + own])

    def keep(self, units: Units, some: Index) -> Index:
        """Drop all units but `some`, places among the chosen; returns the places of their coefficients before."""
        _, start = units.of_coefficients(self.chosen)
        sizes = np.diff(start)[some]
        offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.repeat(start[some] - offset[:-1], sizes) + np.arange(offset[-1])
        for k in range(self.outputs):
            own = np.flatnonzero(np.isin(self.where[k], places))
            self.columns[k].keep(own)
            self.where[k] = np.searchsorted(places, self.where[k][own])
        self.chosen, self.coefs = self.chosen[some], self.coefs[places]
        return places

    def take_all(self, units: Units) -> None:
        """Hold every unit, for one output."""
        self.whole = True
        self.chosen, self.coefs = np.arange(units.count), units.members
        self.where = [np.arange(self.size)]
        natural = np.array_equal(units.members, np.arange(self.size))
        if self.data.sparse:
            self.columns = [SparseColumns(self.data)]
            self.columns[0].add(units.members)
        else:
            self.columns = [WholeDense(self.data, None if natural else units.members)]

    def candidates(self, scores: Vector, support: int, level: float, few: int) -> Index:
        """The units to add, by their scores (zero inside the set, and where a unit is surely zero).

        Above a `level` of 1 a unit pulls away from zero. Below it all of them join, which a sequential strong rule asks
        for; otherwise as many as the support has, and at least a `few`.
        """
        found = np.flatnonzero(scores > level)
        if level < 1.0:
            return found
        most = max(support, few)
        if support >= 0.9 * self.chosen.size and found.size > MANY * self.chosen.size:
            most = max(most, 2 * support)
        if found.size > most:
            found = np.sort(found[np.argpartition(scores[found], found.size - most)[found.size - most :]])
        return found

    # -- products -----------------------------------------------------------------------------------

    def scores(self, values: Vector, shift: Vector) -> Vector:
        """The rows' scores of these coefficients of the set, and intercepts."""
        if self.outputs == 1 and self.size:  # the coefficients are in the order of the columns
            return np.asarray(self.columns[0].scores(values) + shift[0])[None]
        u = np.empty((self.outputs, self.data.n))
        for k, (part, places) in enumerate(zip(self.columns, self.where, strict=True)):
            u[k] = part.scores(values[places]) + shift[k] if places.size else shift[k]
        return u

    def slopes(self, x: Vector) -> Vector:
        """X'x / n on the set."""
        if self.outputs == 1 and self.size:
            return np.asarray(self.columns[0].slopes(x[0]) / self.data.n)
        g = np.empty(self.size)
        for k, (part, places) in enumerate(zip(self.columns, self.where, strict=True)):
            if places.size:
                g[places] = part.slopes(x[k])
        return g / self.data.n
