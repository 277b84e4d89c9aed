"""Newton's method on the faces that a prox shows, with dual variables from the prox itself.

A prox of the whole penalty at w - eta g, a step along the gradient of the loss, says which units of B'w are zero near
the answer. Newton's method finds the best point of that face (``manifold.py``). A prox there gives the dual variables
of the units that are zero, and where one of them is free after all, the next face. At the right face the prox returns
the point itself, so that its dual variables are in balance with the slopes of the rows.

Symbols: eta step of the prox; others as in parts.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from .attempts.manifold import Finisher, Point
from .curvatures.step_length import Steps
from .parts import Vector

FINE = 400  # rounds of a prox that is to tell zeros; fewer: units that are zero are set free


class SeenFaces(Finisher):
    """See the head of this file; `steps` has the prox, and `eta` is to be set before a run."""

    beyond, grace = 1.0, 0.0  # whoever has a budget has it from steps that may well arrive by themselves

    def __init__(self, problem: Problem, steps: Steps) -> None:
        super().__init__(problem)
        self.steps: Any = steps
        self.eta = 0.0
        self.seen: Vector = np.zeros(0)
        self.lone = lone_rows(problem)

    def _complete(self, at: Vector, zx: Vector, y: Vector, w: Vector) -> Vector:
        """The dual variables of the prox at a point, and `seen`, the B'w that it leads to."""
        problem, steps, n = self.problem, self.steps, self.problem.n
        slope, info = y / n - steps.prox.folded * problem.penalised(w), np.zeros(4)
        enough = max(1e-12 * float(w @ w), 1e-300)
        steps._prox(w - self.eta / n * zx, self.eta, slope, enough, info, FINE)
        self.spent += info[2] * steps._round
        self.seen = steps.u.copy() if steps.lattice is None else steps.lattice.structure(slope)
        return self.mended(zx, n * np.asarray(steps.prox.dual(slope, w)))

    def mended(self, zx: Vector, y: Vector) -> Vector:
        """y in balance with x, where that takes no solve."""
        return y if self.lone is None else by_lone_rows(self.problem, self.lone, zx, y)

    def _outside(self, point: Point) -> Any:
        """Units at zero that the prox sets free."""
        zero = np.bincount(self.units, point.u * point.u, self.unit_count) == 0
        return zero & (np.bincount(self.units, self.seen * self.seen, self.unit_count) > 0)

    def _balancing_price(self) -> float:
        return 0.0

    @property
    def _dual_rounds(self) -> int:
        """What the prox costs, in rounds between balance and ball."""
        return 4


def lone_rows(problem: Problem) -> Any:
    """For every feature a row of B' that sees it alone; None where some feature has none, or where a solve with BB' is
    as cheap."""
    if problem.gram.is_diagonal:
        return None
    rows, features = problem.links[0]
    found = np.full(problem.map.shape[1], -1, dtype=np.int64)
    found[features] = rows
    return None if np.any(found < 0) else found


def by_lone_rows(problem: Problem, rows: Any, zx: Vector, y: Vector) -> Vector:
    """y with what is left of Zx + By = 0 put on those rows, which takes no solve; y is overwritten."""
    left = (zx + problem.spread(y))[problem.feature_slots]
    y[rows] -= left / problem.map.data[problem.map.indptr[rows]]
    return y
