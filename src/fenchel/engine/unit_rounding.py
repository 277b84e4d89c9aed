"""What rounding may do to the bounds that compiled loops prove.

See ``problem/rounding.py`` for the mathematics. Here the penalty falls into units, and the scaling that rounding of the
slopes may cost is not made but bounded: it takes at most a share of the penalty of the optimum. With p(w) the penalty,
x feasible and 0 < t < 1, the dual bound of (1 - t) x says that p at the optimum is at most (P - D((1 - t) x)) / t,
about p(w) + gap / t + t P: it is at most p(w) + 4 sqrt(gap P) for the best t, and at most P in any case. Where that is
too much, whoever asks makes a certificate; and so he does where a coefficient has no weight on a side without a limit.

An intercept asks for sums of zero: see ``problem/corrections.py``. The loops balance x to twice what its sum rounds.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..problem.rounding import SCORE, STEPS, UNIT
from .units import Units, Vector

if TYPE_CHECKING:
    from ..problem import Problem


class UnitRounding:
    """For one problem whose penalty falls into `units`, those of the alpha `base`."""

    def __init__(self, problem: Problem, units: Units) -> None:
        self.problem, self.units = problem, units
        self.lengths = np.sqrt(problem.data.mean_squares)
        self.gauge, self.held, self.stake = units.share_of_weights(self.lengths), 0.0, 0.0
        if problem.fit_intercept:
            self.stake = problem._loss_at_zero + problem._conjugate_at_zero
        if units._bounded:
            limits = np.zeros(units.l1.size)
            for end in (units.lower, units.upper):
                np.maximum(limits, np.where(np.isfinite(end), np.abs(end), 0.0), out=limits)
            self.held = float(limits @ self.lengths)

    def of(self, w: Vector, primal: float, dual: float, multiple: float, x: Vector | None = None) -> float:
        """What a lower bound may have too much, and an objective too little, for an answer w (the intercept behind it)
        at so many times the alpha of the units; `x` are the slopes of the loss there, where they are known."""
        problem, coef = self.problem, w[:-1]
        sizes, count = np.abs(coef), int(np.count_nonzero(w))
        reach = float(sizes @ self.lengths) + abs(float(w[-1]))
        steep, target, size = problem.steepest_near(primal, reach, 0.0, x), problem._target_size, abs(primal)
        within = problem.within_values(reach)
        if not problem.loss.knows_least:
            size += within / (problem.visits + STEPS)
        far = (count + SCORE) * (reach + target)
        up = far * problem.steepest_near(primal, reach, UNIT * far, x) + (problem.n + count + STEPS) * size + within
        scaling = 0.0
        if self.gauge > 0 and size > 0:
            penalty = multiple * self.units.value(coef) + 4 * math.sqrt(max(primal - dual, 0.0) * size)
            scaling = self.gauge / multiple * min(penalty, size) if multiple > 0 else math.inf
        down, level = scaling + self.held, 0.0
        if problem.fit_intercept:  # x is shrunk by no more than four times its rounding
            stake = min(self.stake, steep * target) if problem.loss.of_residual else self.stake
            down, level = 5 * down, 4 * stake
        down = (problem.n + SCORE) * (steep * down + level)
        down += (problem.n + STEPS) * steep * (target + reach + steep)
        return UNIT * (up + down) + problem.zero_rounding(problem._conjugate_at_zero)
