"""What rounding may do to the bounds that compiled loops prove, for all alphas of a path at once.

See ``problem/rounding.py`` for the mathematics. Here the penalty falls into units, and the scaling that rounding of the
slopes may cost is not made but bounded: it takes at most a share of the penalty of the optimum. With p(w) the penalty,
x feasible and 0 < t < 1, the dual bound of (1 - t) x says that p at the optimum is at most (P - D((1 - t) x)) / t,
about p(w) + gap / t + t P: it is at most p(w) + 4 sqrt(gap P) for the best t, and at most P in any case. Where that is
too much, whoever asks makes a certificate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..problem.rounding import SCORE, STEPS, UNIT
from .units import Units, Vector

if TYPE_CHECKING:
    from ..problem import Problem


class UnitRounding:
    """For one problem whose penalty falls into `units`, those of the alpha `base`."""

    def __init__(self, problem: Problem, units: Units) -> None:
        self.problem, self.units = problem, units
        self.lengths = np.append(np.sqrt(problem.data.mean_squares), 1.0)
        self.gauge = units.share_of_weights(self.lengths[:-1])
        limits = np.zeros(units.l1.size)
        if units._bounded:
            for end in (units.lower, units.upper):
                np.maximum(limits, np.where(np.isfinite(end), np.abs(end), 0.0), out=limits)
        self.held = float(limits @ self.lengths[:-1])

    def of(self, W: Vector, primal: Vector, dual: Vector, multiples: Vector, x: Vector | None = None) -> Vector:
        """What lower bounds may have too much, and objectives too little, for answers W (one row each, the intercept
        behind it) at so many times the alpha of the units; `x` are the slopes of the loss at the one answer, where they
        are known."""
        problem = self.problem
        reach, count = np.abs(W) @ self.lengths, np.count_nonzero(W, axis=1)
        steep, target, size = problem.steepness(primal, reach, x), problem._target_size, np.abs(primal)
        within = problem.within_values(reach)
        if not problem.loss.knows_least:
            size = size + within / (problem.visits + STEPS)
        far = (count + SCORE) * (reach + target)
        up = far * (steep + problem.steepening(UNIT * far)) + (problem.n + count + STEPS) * size + within
        scaling: Any = 0.0
        if self.gauge > 0:
            share = np.divide(self.gauge, multiples, out=np.full(len(W), np.inf), where=multiples > 0)
            penalty = multiples * self.units.values(W[:, :-1]) + 4 * np.sqrt(np.maximum(primal - dual, 0.0)) * np.sqrt(
                size
            )
            scaling = np.where(size > 0, share * np.minimum(penalty, size), 0.0)
        down = (problem.n + SCORE) * steep * (scaling + self.held + 2 * reach)
        down = down + (problem.n + STEPS) * steep * (target + reach + steep)
        return np.asarray(UNIT * (up + down))
