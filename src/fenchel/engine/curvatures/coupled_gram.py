r"""The Gram matrix of a loss of all scores at once.

It has the curvature :math:`L^\top \mathrm{diag}(\omega) L`, see ``losses/coupled.py``, so that the model's is the
Gram matrix of the columns L X, which are made once and kept with it:

.. math:: G = (L X)^\top \mathrm{diag}(\omega) (L X) / n + \mathrm{diag}(r)

Sparse columns would be filled by that. They have the diagonal bound of the curvature instead, centred as if there were
an intercept, for the loss does not change along a constant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..restrictions.columns import Columns, DenseColumns
from ..units import Index, Vector
from .gram import LaggedGram

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...losses import CoupledCurvature
    from ..point import Point


class CoupledGram(LaggedGram):
    """G at the scores that a point had when it was made; see :class:`LaggedGram`."""

    def __init__(self, point: Point, dtype: type = np.float64) -> None:
        super().__init__(point.n, point.data.sparse, False, dtype)
        self.point, self.lowered = point, DenseColumns(point.data)
        self.curved: CoupledCurvature | None = None

    def keep(self, places: Index) -> None:
        super().keep(places)
        if self.count:
            self.lowered.keep(places)

    def extend(self, parts: list[Columns], where: list[Index], curvature: Vector, ridge: Vector) -> bool:
        if self.count == 0:
            self.curved, self.lowered.count = self.point.curvature(), 0
        return super().extend(parts, where, curvature, ridge)

    def _make(self, part: Columns, places: Index, curvature: Vector, output: int, alone: bool) -> None:
        if self.point.data.sparse:
            super()._make(part, places, curvature, output, alone)
            return
        assert self.curved is not None
        self._lower(part)
        super()._make(self.lowered, places, self.curved.squares, output, alone)

    def _lower(self, part: Any) -> None:
        """L X for the columns that are new."""
        assert self.curved is not None
        known, count = self.lowered.count, part.count
        kept = self.lowered.rows
        if len(kept) < count:
            room = np.empty((max(count, min(2 * len(kept), self.point.p)), self.n))
            room[:known] = kept[:known]
            self.lowered.rows = kept = room
        kept[known:count] = self.curved.down(part.rows[known:count])
        self.lowered.count = count

    def roots(self, part: Any) -> Callable[[Index], Vector] | None:
        """As there, of the columns L X."""
        if self.curved is None or self.point.data.sparse or self.ridge.any():
            return None
        rows, root = self.lowered.rows, np.sqrt(self.curved.squares / self.n)
        return lambda some: np.asarray(rows[some] * root)
