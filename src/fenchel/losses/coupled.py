r"""Losses of all scores at once: F(u), convex, that is no sum over rows.

Each row's slope depends on the scores of others, so that nothing visits single rows: what serves such a loss are
quadratic models, and its conjugate F* for certificates. The role is that of :class:`Loss` with

- `sums`: the value, the slopes, and a *diagonal bound* h, the curvature's :math:`H \preceq \mathrm{diag}(h)`;
- `curvature_at`: H itself as an operator, and :math:`L^\top \mathrm{diag}(\omega) L`, which is H or little more: a
  model is a sum of weighted squares: those of L X;
- `total_conjugate` and `scores_of`, the inverse of the slopes;
- `along`: the best scores among few directions, by Newton's method. Its slopes stay within the domain of F* wherever it
  ends, which is what a certificate wants of directions without penalty.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from .._validate import AnyArray, Array, Floats, Index
from ..foundation.numerics import ARMIJO, BALANCED, NEWTON_STEPS, ROUNDING
from .base import Loss


class CoupledCurvature(Protocol):
    """The curvature H of a coupled loss at some scores: H <= diag(bound), and H <= L' diag(squares) L, which is nearer.

    Attributes
    ----------
    bound : array, a number for every row
    """

    bound: Array

    @property
    def squares(self) -> Array:
        """omega."""
        ...

    def times(self, t: Array) -> Array:
        """H t."""
        ...

    def down(self, columns: Array) -> Array:
        """L times every column; columns are rows of the array."""
        ...

    def down_rows(self, X: Floats) -> Floats:
        """L X."""
        ...

    def up(self, z: Array) -> Array:
        """L' z."""
        ...

    def solve_up(self, x: Array) -> Array:
        """The z with L' z = x."""
        ...


class CoupledLoss(Loss):
    """A convex function of all scores. Subclasses define `sums`, `curvature_at`, `total_conjugate` and `scores_of`."""

    across_rows = True
    kinked = False
    attained = False

    def total(self, score: Array, target: AnyArray, weight: Array) -> float:
        """F(u); an empty `weight` counts as ones."""
        return self.sums(score, target, weight)[0]

    def value_terms(self, target: AnyArray) -> tuple[Any, Any]:
        """Logarithms of sums over rows, and scores."""
        return 1.0 + float(np.log(max(len(target), 1))), 2.0

    def value(self, score: Array, target: AnyArray) -> Array:
        raise TypeError(f"{type(self).__name__} is no sum over rows, so that single rows have no value; see total")

    def gradient(self, score: Array, target: AnyArray) -> Array:
        """The slopes of all rows, which are those of one function."""
        return self.sums(np.asarray(score, dtype=float), target, np.zeros(0))[1]

    def curvature(self, score: Array, target: AnyArray) -> Array:
        """The diagonal bound of the curvature."""
        return self.sums(np.asarray(score, dtype=float), target, np.zeros(0))[2]

    def curvature_at(self, score: Array, target: AnyArray, weight: Array) -> CoupledCurvature:
        """The curvature H at these scores."""
        raise TypeError(f"{type(self).__name__} must define curvature_at(score, target, weight)")

    def total_conjugate(self, dual: Array, target: AnyArray, weight: Array) -> float:
        """F*(x), infinite outside its domain."""
        raise TypeError(f"{type(self).__name__} must define total_conjugate(dual, target, weight)")

    def scores_of(self, dual: Array, target: AnyArray, weight: Array) -> Array:
        """Scores whose slopes are x."""
        raise TypeError(f"{type(self).__name__} must define scores_of(dual, target, weight)")

    def ordered(self, target: AnyArray, weight: Array) -> tuple[Index, Index]:
        """Pairs of rows: along scores that grow by no less for the first of every pair the loss does not rise, and it
        falls where some grow by more. No pairs where nothing is known of that."""
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def held_out(self, score: Array, target: AnyArray, weight: Array, rows: Any) -> float:
        """What some rows add to the loss of the others, where all have these scores: F of all less F without them."""
        left = weight.copy() if weight.size else np.ones(len(target))
        left[rows] = 0.0
        return self.total(score, target, weight) - self.total(score, target, left)

    def along(
        self, A: Array, start: Array, target: AnyArray, weight: Array, wanted: Array | float = 0.0
    ) -> tuple[Array, Array]:
        """The c that makes F(start + A c) - wanted'c least, and the slopes x there: A'x = wanted up to rounding, if
        there is a least value."""
        c = np.zeros(A.shape[1])
        wanted, size = np.broadcast_to(wanted, c.shape), np.abs(A).T
        value, x, _ = self.sums(start, target, weight)
        slope, damping = A.T @ x - wanted, ROUNDING
        for _ in range(NEWTON_STEPS):
            if np.all(np.abs(slope) <= BALANCED * (size @ np.abs(x))):
                break
            curved = self.curvature_at(start + A @ c, target, weight)
            H = A.T @ np.column_stack([curved.times(column) for column in A.T])
            diagonal = np.arange(len(H))
            least = max(float(np.max(np.diag(H))), 1e-300)
            taken = False
            while not taken and damping < 1e6:
                damped = H.copy()
                damped[diagonal, diagonal] += damping * least
                move = -np.linalg.lstsq(damped, slope, rcond=None)[0]
                with np.errstate(over="ignore", invalid="ignore"):
                    made = self.sums(start + A @ (c + move), target, weight)
                new, fall = A.T @ made[1] - wanted, value - made[0] + float(wanted @ move)
                # where rounding hides the fall of the function its slope tells
                near = abs(fall) <= 1e-12 * max(abs(value), 1e-300)
                fell = fall > -ARMIJO * float(slope @ move)
                taken = bool(fell or (near and np.linalg.norm(new) < 0.9 * np.linalg.norm(slope)))
                damping = 0.1 * damping if taken else max(100 * damping, 1e-9)
            if not taken:
                break
            c, value, x, slope, damping = c + move, made[0], made[1], new, max(damping, ROUNDING)
        return c, x
