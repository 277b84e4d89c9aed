r"""The Gram matrix of a loss of all scores at once.

Such a loss has the curvature diag(h) - M'M, see ``losses/coupled.py``, and does not change along a constant. So columns
are centred as if there were an intercept, which is exact and keeps digits, and M of the centred columns is taken off:

.. math:: G = X^\top \left(D - \frac{h h^\top}{\sum h}\right) X / n - (M \bar X)^\top (M \bar X) / n + \mathrm{diag}(r)

Of sparse columns, which centring would fill, the second term is left out: G is then a bound of the curvature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..restrictions.columns import Columns
from ..units import Index, Vector
from .gram import CONSTANT, LaggedGram

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...losses import CoupledCurvature
    from ..point import Point

TOGETHER = 64  # columns whose means are made together where they are taken out of the data; more: more memory


class CoupledGram(LaggedGram):
    """G at the scores that a point had when it was made; see :class:`LaggedGram`."""

    def __init__(self, point: Point, dtype: type = np.float64) -> None:
        super().__init__(point.n, True, False, dtype)
        self.point = point
        self.curved: CoupledCurvature | None = None

    def extend(self, parts: list[Columns], where: list[Index], curvature: Vector, ridge: Vector) -> bool:
        if self.count == 0:
            self.curved = self.point.curvature()
        return super().extend(parts, where, curvature, ridge)

    def _make(self, part: Columns, places: Index, curvature: Vector, output: int, alone: bool) -> None:
        first, count = self.count, part.count
        super()._make(part, places, curvature, output, alone)
        if first == count or self.point.data.sparse:
            return
        means = self._means(part, self.centres[places] / self.heights[output])
        less = means[first:] @ means.T / self.n
        least = CONSTANT * np.diag(self.matrix)[first:count]
        self.matrix[first:count, :count] -= less
        self.matrix[:first, first:count] -= less[:, :first].T
        new = np.arange(first, count)
        self.matrix[new, new] = np.maximum(self.matrix[new, new], least)

    def _means(self, part: Any, centres: Vector) -> Vector:
        assert self.curved is not None
        rows = getattr(part, "rows", None)
        if rows is not None:
            return self.curved.means(rows[: part.count], centres)
        columns, found = np.arange(part.count) if part.order is None else part.order, []
        for low in range(0, part.count, TOGETHER):
            some = columns[low : low + TOGETHER]
            taken = np.empty((some.size, self.n))
            self.point.data.take_columns(some, taken, 0)
            found.append(self.curved.means(taken, centres[low : low + TOGETHER]))
        return np.concatenate(found)

    def roots(self, part: Any) -> Callable[[Index], Vector] | None:
        """G is no product of the columns alone."""
        return None
