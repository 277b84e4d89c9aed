"""A point with all its coefficients, and what the loss looks like there.

Symbols: w primal, with its intercept slot; x slopes and h curvatures of the rows, both times their weights; g = Zx/n.
"""

from __future__ import annotations

import numpy as np

from ..problem import Problem
from .parts import Vector


class WholePoint:
    """A point of the primal side. Its gradient is made when it is first asked for.

    `passes` counts reads of the data, a product each counts as half of one.
    """

    def __init__(self, problem: Problem, w: Vector, scores: Vector | None = None, u: Vector | None = None) -> None:
        self.problem, self.w, self.passes = problem, w, 0.0
        if scores is None:
            if w.any():
                scores = problem.scores(w)
                self.passes += 0.5
            else:
                scores = np.zeros(problem.visits)
        self.scores = scores
        total, self.x, self.h = problem.loss.sums(scores, problem.target, problem.weight)
        self.loss = total / problem.n
        self.at = problem.penalised(w) if u is None else u  # B'w
        self.penalty = problem.penalty_value(self.at)
        self._g: Vector | None = None

    @property
    def primal(self) -> float:
        return self.loss + self.penalty

    @property
    def g(self) -> Vector:
        """The gradient of the mean loss."""
        if self._g is None:
            self._g = self.problem.gradient_sum(self.x) / self.problem.n
            self.passes += 0.5
        return self._g
