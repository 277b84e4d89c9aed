"""The last digits of an answer whose coefficients stand alone (weights, squares, bounds): Newton's method on those that
are neither zero nor at a bound, with their signs as they are.

This is for small dense data and losses of one score, where ``manifold.py`` finds the same by ways of which each costs
more Python than these steps take altogether.
"""

from __future__ import annotations

import numpy as np

from ...problem import Certificate, Problem
from ...problem.convergence import Convergence
from ..roles import Iterate
from ..units import Units, Vector, dual_variables, units_of


def last_digits(problem: Problem, w: Vector, tol: float) -> tuple[Iterate, Certificate] | None:
    """The answer with the zeros of w and its certificate; None where this does not suit, or leaves a gap
    above `tol` besides what allows for rounding."""
    units = units_of(problem)
    if isinstance(units, str) or not units.alone or problem.vectors > 1 or problem.data.sparse:
        return None
    if problem.loss.kinked or problem.loss.coupled or problem.loss.across_rows:
        return None
    at = _newton(problem, units, w)
    if at is None:
        return None
    x = problem.centred(problem.slopes_at(problem.scores(at)))
    zx = np.append(problem.data.transposed_times(x), x.sum() if problem.fit_intercept else 0.0)
    found = Iterate(at, x, dual_variables(problem, units, zx), zx, problem.penalised(at))
    made = problem.certificate(found, fresh=False)
    left = made.gap - made.rounding
    return (found, made) if left <= Convergence.of(problem, tol).allowed(made.primal) else None


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def _newton(problem: Problem, units: Units, w: Vector) -> Vector | None:
    """Where the steps do not become shorter any more; None where they lead across zero or a bound."""
    coef = w[:-1]
    inside = (units.lower < coef) & (coef < units.upper) & ((coef != 0) | (units.l1 == 0))
    some = np.flatnonzero(inside)
    k, n, intercept = some.size, problem.n, bool(problem.fit_intercept)
    A = np.ones((n, k + intercept))
    A[:, :k] = problem.data.filled()[:, some]
    if not A.shape[1]:
        return None
    sign, at, last = np.sign(coef[some]), w.copy(), np.inf
    slots = np.append(some, coef.size) if intercept else some
    while True:
        _, x, h = problem.loss.sums(problem.seen(problem.scores(at)), problem.target, problem.weight)
        slope, H = A.T @ x / n, A.T @ (h[:, None] * A) / n
        slope[:k] += units.l1[some] * sign + units.ridge[some] * at[some]
        H.flat[: k * (k + intercept) : k + intercept + 1] += units.ridge[some]
        try:
            step = np.linalg.solve(H, slope)
        except np.linalg.LinAlgError:
            return None
        at[slots] -= step
        new = at[some]
        crossed = (new * sign <= 0) & (units.l1[some] > 0)
        if crossed.any() or ((new < units.lower[some]) | (new > units.upper[some])).any():
            return None
        size = float(np.abs(step).max())
        if not np.isfinite(size):
            return None
        if not 0 < size < 0.5 * last:
            return at
        last = size
