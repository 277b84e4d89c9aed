"""What "converged" means, and when a run has stalled: one rule for a fit, a path, a fold and everybody on the way.

An answer is good enough where its gap is at most tol times the objective. Where the optimum is zero no gap is small
beside it, so that a trace of the objective at w = 0 stands in for it; but only where the loss attains its least value
(the logistic loss of rows that can be separated goes to zero as w goes to infinity, and there is no answer to be near).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..problem import Bounds

if TYPE_CHECKING:
    from ..problem import Problem

_TRACE = 1e-10  # of the objective at w = 0, what counts as zero; larger: sloppy answers where the optimum is tiny
NOTHING = 1e-9  # of the objective at w = 0: what an objective next to zero is; smaller: rounding may be believed
_TINY = 1e-300  # no objective is smaller
_CERTIFICATES = 13  # in a row, the first and the last of which are compared; more: rounding is noticed later
_ROUNDING = 1e-12  # relative gap below which rounding may be all that is left; larger: slow runs count as stalled
_PROGRESS = 0.99  # of the gap: what these certificates must leave at the most


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
        if not problem.loss.attained:
            return cls(tol, 0.0)
        primal = problem.objective_at_zero()
        return cls(tol, abs(primal) if math.isfinite(primal) else 0.0)

    def allowed(self, primal: float) -> float:
        """The largest gap, in units of the objective, of an answer with this objective."""
        return self.tol * max(abs(primal), _TRACE * self.at_zero, _TINY)

    def reached(self, bounds: Bounds) -> bool:
        """Whether these bounds prove a good enough answer."""
        return bounds.certified and bounds.gap <= self.allowed(bounds.primal)


def stalled(records: Sequence[Bounds], inherited: int = 0, at_zero: float = 0.0) -> bool:
    """Whether the gap has been at the level of rounding, without progress, for twelve certificates of this run; the
    first records are `inherited` from another one.

    The sums that an objective next to zero is made of are as large as the one at w = 0, which `at_zero` is, and so are
    their rounding errors.
    """
    if len(records) - inherited < _CERTIFICATES:
        return False
    first, now = records[-_CERTIFICATES], records[-1]
    size = at_zero if abs(first.primal) <= NOTHING * at_zero else max(abs(first.primal), _TINY)
    return bool(first.gap < _ROUNDING * size and now.gap > _PROGRESS * first.gap and math.isfinite(now.gap))
