r"""The Gram matrix of a round's columns, weighted by the curvature of the loss and kept while that changes little.

With h the curvatures of the rows and an intercept that follows the other coefficients, the model's curvature is

.. math:: G = X^\top \left(D - \frac{h h^\top}{\sum h}\right) X / n + \mathrm{diag}(r), \qquad D = \mathrm{diag}(h)

where r is the quadratic part of the penalty. Columns that join are added at the curvature of the others (it lags), and
the whole is made anew when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...foundation.numerics import DIGITS
from ..restrictions.columns import Columns
from ..units import Index, Vector


def centred(squares: Vector, means: Vector) -> Vector:
    """Squares of columns less those of their means; none where a column is constant, so that nobody divides by it."""
    left = squares - means
    return np.where(left > DIGITS * means, left, 0.0)


class LaggedGram:
    """The matrix G for several outputs, whose coefficients do not meet in the loss.

    Attributes
    ----------
    matrix : array; its first `count` rows and columns are G
    centres : X'h / n for every coefficient, in units of the mean curvature `heights` of its output
    curvature : the row curvatures that G was made with, (outputs, n); None before
    """

    def __init__(self, n: int, intercept: bool, constant: bool, dtype: type = np.float64) -> None:
        self.n, self.intercept, self.constant, self.dtype = n, intercept, constant, dtype
        self.precise = False  # whether single precision will no longer do
        self.matrix: Any = np.empty((0, 0), dtype=dtype)
        self.centres: Vector = np.zeros(0)
        self.ridge = np.zeros(0)
        self.heights: Vector = np.ones(1)
        self.curvature: Vector | None = None
        self.count = 0

    def forget(self) -> None:
        """The next call of `extend` makes all of it."""
        self.count = 0

    def keep(self, places: Index) -> None:
        """Drop all coefficients but these."""
        if places.size and places[-1] >= self.count:
            self.count = 0
        if self.count:
            from ...kernels.units import gather

            small: Any = np.empty((places.size, places.size), dtype=self.dtype)
            gather(self.matrix, places, small)
            self.matrix = small
            self.centres, self.ridge = self.centres[places], self.ridge[places]
            self.count = places.size

    def extend(self, parts: list[Columns], where: list[Index], curvature: Vector, ridge: Vector) -> bool:
        """Make the rows that are missing; returns whether all were. `where` places each output's columns in G."""
        total, fresh = ridge.size, self.count == 0
        if fresh:
            self.curvature = curvature.copy()
            self.heights = np.maximum(curvature.sum(axis=1) / self.n, 1e-300)
        if self.count < total:
            self._grow(total)
            assert self.curvature is not None
            self.centres = np.concatenate([self.centres[: self.count], np.zeros(total - self.count)])
            self.ridge = np.concatenate([self.ridge[: self.count], np.zeros(total - self.count)])
            for output, (part, places) in enumerate(zip(parts, where, strict=True)):
                self._make(part, places, self.curvature[output], output, len(parts) == 1)
                if self.intercept:
                    new = places[places >= self.count]
                    means = np.square(self.centres[new]) / self.heights[output]
                    constant = new[self.matrix[new, new] <= DIGITS * means]
                    self.matrix[constant, constant] = 0.0
            self.count = total
        change = np.flatnonzero(ridge != self.ridge)
        if change.size:
            self.matrix[change, change] += (ridge - self.ridge)[change]
            self.ridge = ridge.copy()
        return fresh

    def _make(self, part: Columns, places: Index, curvature: Vector, output: int, alone: bool) -> None:
        """The rows of one output: its columns are in the order of its coefficients."""
        first, count = int(np.searchsorted(places, self.count)) if self.count else 0, part.count
        if first == count:
            return
        weight = None if self.constant and (curvature == 1.0).all() else curvature
        means = None
        if self.intercept:
            self.centres[places[first:]] = part.centre(weight, first) / self.n
            means = self.centres[places] / self.heights[output]
        if alone:
            part.gram(weight, means, first, self.matrix, not self.precise)
            self.matrix[first:count, :count] /= self.n
            if first:
                self.matrix[:first, first:count] /= self.n
            return
        block: Any = np.empty((count, count), dtype=self.dtype)
        block[:first, :first] = self.matrix[np.ix_(places[:first], places[:first])]
        part.gram(weight, means, first, block, not self.precise)
        block[first:] /= self.n
        block[:first, first:] /= self.n
        self.matrix[places[first:], : self.matrix.shape[1]] = 0.0
        self.matrix[:, places[first:]] = 0.0
        self.matrix[np.ix_(places, places)] = block

    def _grow(self, total: int) -> None:
        if len(self.matrix) >= total:
            return
        size = max(total, min(2 * len(self.matrix), total + 1024)) if self.count else max(total, 16)
        matrix: Any = np.zeros((size, size), dtype=self.dtype)
        matrix[: self.count, : self.count] = self.matrix[: self.count, : self.count]
        self.matrix = matrix

    def lean(self, push: Vector, where: list[Index]) -> Vector:
        """What intercepts with slopes `push`, which follow the coefficients, take off the slopes of these."""
        if len(where) == 1:
            return np.asarray(self.centres * (push[0] / self.heights[0]))
        out = np.empty(self.centres.size)
        for k, places in enumerate(where):
            out[places] = self.centres[places] * (push[k] / self.heights[k])
        return out

    def follow(self, change: Vector, push: Vector, where: list[Index]) -> Vector:
        """The steps of the intercepts that go with a change of the coefficients."""
        return np.array(
            [-(push[k] + float(self.centres[some] @ change[some])) / self.heights[k] for k, some in enumerate(where)]
        )

    def roots(self, part: Any) -> Callable[[Index], Vector] | None:
        """A function of some coefficients that makes A, a row for each of them, with A A' = G there; None where the
        columns are not at hand, or G is more than that."""
        rows, curvature = getattr(part, "rows", None), self.curvature
        if rows is None or curvature is None or self.ridge.any():
            return None

        def take(some: Index) -> Vector:
            made = rows[some]
            if self.intercept:
                made -= (self.centres[some] / self.heights[0])[:, None]
            made *= np.sqrt(curvature[0] / self.n)
            return np.asarray(made)

        return take

    def change(self, curvature: Vector) -> float:
        """By how much the rows' curvatures differ from those in G, as a share of their sum."""
        if self.curvature is None:
            return np.inf
        return float(np.abs(curvature - self.curvature).sum() / max(self.curvature.sum(), 1e-300))
