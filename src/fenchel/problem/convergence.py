"""What "converged" means: one rule for a fit, a path, a fold and everybody on the way.

An answer is good enough where its gap is at most tol times the objective. Where the optimum is zero no gap is small
beside it, so that a trace of the objective at w = 0 stands in for it; but only where the loss attains its least value
(the logistic loss of rows that can be separated goes to zero as w goes to infinity, and there is no answer to be near).
"""

from __future__ import annotations

import dataclasses
import math

from ..foundation.numerics import NOTHING, TINY
from .bounds import Bounds
from .problem import Problem


@dataclasses.dataclass(frozen=True)
class Convergence:
    """The rule for one problem.

    Attributes
    ----------
    tol : float
    at_zero : float
        The objective at w = 0; 0 where it is infinite, or where the loss does not attain its least value.
    """

    tol: float
    at_zero: float

    @classmethod
    def of(cls, problem: Problem, tol: float) -> Convergence:
        """The rule for a problem."""
        loss = problem.loss
        falls = not loss.attained
        if not problem.pooled and not loss.coupled:  # proportions that are mixed attain it, and those of 0 or 1 do not
            side = loss.falls_towards(problem.target)
            falls = bool(side.any() if falls else side.all())
        if falls:
            return cls(tol, 0.0)
        primal = problem.objective_at_zero()
        return cls(tol, abs(primal) if math.isfinite(primal) else 0.0)

    def allowed(self, primal: float) -> float:
        """The largest gap, in units of the objective, of an answer with this objective."""
        return self.tol * max(abs(primal), NOTHING * self.at_zero, TINY)

    def reached(self, bounds: Bounds) -> bool:
        """Whether these bounds prove a good enough answer."""
        return bounds.certified and bounds.gap <= self.allowed(bounds.primal)
