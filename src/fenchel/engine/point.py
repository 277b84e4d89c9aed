"""Where a fit is: coefficients and intercepts, and what the rows say there.

Symbols: w coefficients, b intercepts, u scores, f the mean loss, x slopes and h curvatures of the rows (both times
their weights). Arrays of rows are (outputs, n).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..foundation.numerics import HALVINGS, TINY
from ..kernels.rules import CAREFUL, FLAT
from .curvatures.several_gram import crossed
from .units import Index, Units, Vector

if TYPE_CHECKING:
    from ..losses import CoupledCurvature
    from ..problem import Problem

CARELESS = 1e-4  # of the largest curvature: what a row counts for at least, in the end


class Point:
    """A point of a problem's primal side; its rows are read through products with columns that others keep."""

    def __init__(self, problem: Problem) -> None:
        self.data, self.n, self.p = problem.data, problem.n, problem.p
        self.loss: Any = problem.loss
        self.outputs, self.intercept = problem.vectors, problem.fit_intercept
        self.target, self.offset, self.weight = problem.target, problem.offset, problem.weight
        if self.loss.coupled:  # it sees rows, one after another
            self.weight = np.repeat(problem.weight, self.outputs)
        elif self.outputs > 1:
            self.target = np.ascontiguousarray(problem.target.reshape(self.n, self.outputs).T).ravel()
            self.offset = problem.offset.reshape(-1, self.outputs).T.ravel()
            self.weight = np.tile(problem.weight, self.outputs)
        self.smooth = float(self.loss.smoothness or 1.0)
        self.w, self.b = np.zeros(self.outputs * self.p), np.zeros(self.outputs)
        self.move(np.zeros((self.outputs, self.n)))
        self.floor = FLAT if self._flat else 0.0

    @property
    def _flat(self) -> bool:
        """Whether rows that count have no curvature here."""
        if self.loss.quadratic or self.loss.across_rows or self.loss.coupled:
            return False
        if not self.weight.size:
            return not self.h.all()
        return bool(((self.h.ravel() == 0) & (self.weight > 0)).any())

    def look(self, u: Vector) -> tuple[float, Vector, Vector]:
        """The mean loss, slopes and curvatures at these scores."""
        total, x, h = self.loss.sums(self._seen(u), self.target, self.weight)
        if self.loss.coupled:
            x, h = (np.ascontiguousarray(part.reshape(self.n, self.outputs).T) for part in (x, h))
        return total / self.n, x.reshape(u.shape), h.reshape(u.shape)

    def curvature(self) -> CoupledCurvature:
        """That of a loss of all scores at once."""
        made: CoupledCurvature = self.loss.curvature_at(self._seen(self.u), self.target, self.weight)
        return made

    def _seen(self, u: Vector) -> Vector:
        """What the loss sees of these scores: with their offsets."""
        seen = self._visits(u)
        return seen + self.offset if self.offset.size else seen

    def _visits(self, values: Vector) -> Vector:
        """An array (outputs, n) as the loss sees it."""
        return np.ascontiguousarray(values.T).ravel() if self.loss.coupled else values.ravel()

    def move(self, u: Vector) -> None:
        """Go to these scores."""
        self.u = u
        self.f, self.x, self.h = self.look(u)

    def fit_intercepts(self) -> None:
        """Newton's method for the intercepts alone, each step halved until the loss falls."""
        if not self.intercept:
            return
        for _ in range(20):
            push, before = self.push(), self.f
            if (np.abs(push) <= 1e-13 * (np.abs(self.x).sum(axis=1) / self.n)).all():
                return
            step = -self.intercept_steps(push, 1e-3 * self.smooth)
            for _ in range(HALVINGS):
                f, x, h = self.look(self.u + step[:, None])
                if f < before:
                    break
                step = 0.5 * step
            else:
                return
            self.u, self.b = self.u + step[:, None], self.b + step
            self.f, self.x, self.h = f, x, h
            if before - f <= 1e-10 * abs(before):
                return

    def intercept_steps(self, push: Vector, least: float = TINY) -> Vector:
        """Their curvature's inverse times the slopes of the intercepts; it is taken to be no less than `least`."""
        if self.loss.coupled:
            return np.asarray(np.linalg.pinv(crossed(self.h), rcond=1e-12, hermitian=True) @ push)
        return np.asarray(push / np.maximum(self.h.sum(axis=1) / self.n, least))

    def slopes(self, x: Vector) -> Vector:
        """X'x / n for every coefficient: half a pass over the data."""
        if self.loss.coupled and not self.data.sparse and self.data.dtype == np.float64:
            return np.asarray(x @ self.data.dense / self.n).ravel()
        if self.outputs == 1:
            return self.data.transposed_times(x[0]) / self.n
        return np.concatenate([self.data.transposed_times(part) for part in x]) / self.n

    def push(self) -> Vector:
        """The slope along every intercept."""
        return np.asarray(self.x.sum(axis=1) / self.n) if self.intercept else np.zeros(self.outputs)

    def objective(self, units: Units) -> float:
        return self.f + units.value(self.w) + units.quadratic(self.w)

    def gap(self, units: Units, slope: Vector, v: Vector, columns: Index | None = None) -> float:
        """The duality gap of coefficients v whose slopes are -`slope`.

        `units` is their penalty. `columns` are their columns, where they are not all of them.
        """
        share = units.scaling(slope)
        own = units.value(v) + units.quadratic(v)
        own += units.conjugate(share * slope) - share * float(v @ slope)
        if share < 1.0:
            own = max(own, 0.0) + self._shortened(share)
        unheld = units.unheld(slope)
        if unheld.any():
            squares = (
                np.tile(self.data.mean_squares, self.outputs) if columns is None else self.data.mean_squares[columns]
            )
            with np.errstate(over="ignore"):
                own += 0.5 * float(np.sum(np.square(unheld) / np.maximum(squares * float(self.h.mean()), 1e-300)))
        return max(own, 0.0)

    def _shortened(self, share: float) -> float:
        """What the loss's conjugate costs at a share of the slopes: to second order, which is cheap, but for losses
        with flat parts. There a slope at the end of its domain costs as much as its row is far from the other parts."""
        if self.loss.across_rows or self.loss.coupled:
            x = share * self._visits(self.x)
            left: float = self.loss.total_conjugate(x, self.target, self.weight) - float(x @ self._seen(self.u))
            return max(self.f + left / self.n, 0.0)
        if not self.floor:
            curved = self.h > 0
            bent = self.h if curved.all() else np.where(curved, self.h, self.smooth)
            return 0.5 * (1 - share) ** 2 * float((np.square(self.x) / bent).sum()) / self.n
        x, u, target, weight = self.x.ravel(), self._seen(self.u), self.target, self.weight
        if weight.size:
            some = weight > 0
            x, u, target, weight = x[some], u[some], target[some], weight[some]
            costs = weight * self.loss.conjugate(share * x / weight, target)
        else:
            costs = self.loss.conjugate(share * x, target)
        return max(self.f + float(np.sum(costs - share * x * u)) / self.n, 0.0)

    def bend(self) -> Vector:
        """The curvature of the rows, with a floor where the loss has flat parts: steps stay bounded there."""
        if not self.floor:
            return self.h
        least = self.floor * self.smooth
        return np.maximum(self.h, least * self.weight.reshape(self.h.shape) if self.weight.size else least)

    def learn(self, taken: float) -> None:
        """Where the loss has flat parts: a shortened step asks for a more careful model, a whole one for less of it."""
        if self.floor or self._flat:
            careful = min(1.0, max(10 * self.floor, CAREFUL))
            self.floor = max(0.3 * self.floor, CARELESS) if taken == 1.0 else careful
