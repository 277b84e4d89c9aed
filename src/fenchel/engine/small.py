"""Small dense problems: a whole path in one compiled call.

Where a product with the data takes microseconds, Python between the products is what takes the time. The compiled loops
of ``kernels/small_path.py`` go through all alphas by themselves. What they find is certified here as everything is, and
the working sets go on from the first alpha that they leave (supports that are large are better left to BLAS).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .roles import Goal, Iterate, Proposal
from .units import Units, Vector, dual_variables, units_of

if TYPE_CHECKING:
    from ..problem import Problem

ENTRIES = 1 << 21  # of the data, beyond which a product with it takes longer than Python around it
ROWS = 256  # up to which Gram matrices by plain loops keep up with BLAS, whatever the number of columns
FEW = 1 << 17  # entries up to which they do with more rows
FEW_QUADRATIC = 1 << 19  # the same for a quadratic loss, which makes one Gram matrix
ONCE = 1 << 16  # entries from which a single fit is worth their compiling: below, both ways take about two milliseconds
ALWAYS = 100  # features that nothing holds at zero, beyond which factors are better left to LAPACK


class SmallPath:
    """The answers of all alphas, as far as the compiled loops get.

    Attributes
    ----------
    answers : for an alpha (w with its intercept, x, passes over the data)
    """

    def __init__(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        from ..kernels.small_model import KINDS
        from ..kernels.small_path import follow

        form = problem.loss.small_form()
        assert form is not None
        one = problem.with_alpha(1.0)
        units, data = units_of(one), problem.data
        assert isinstance(units, Units)
        X, target, weight = data.dense, problem.target, problem.weight
        rows = np.flatnonzero(weight > 0) if weight.size else np.arange(0)
        some = bool(weight.size) and rows.size < problem.n
        if some:  # a fold: its rows alone
            X, target, weight = X[rows], target[rows], weight[rows]
        X = np.ascontiguousarray(X, dtype=float)
        n, p, count = len(X), problem.p, len(alphas)
        scale = problem.n / n  # weights have mean 1 over the rows that are left
        weight = weight / scale if weight.size else np.ones(n)
        W, x = np.zeros((count, p)), np.zeros((count, n))
        b, primal, dual, passes = np.zeros(count), np.zeros(count), np.zeros(count), np.zeros(count)
        found = follow(
            X, target, weight, KINDS[form[0]], np.array([form[1]]), np.array(alphas, dtype=float), units.l1,
            units.ridge, units.lower, units.upper, tol, problem.fit_intercept, W, b, primal, dual, x, passes,
        )  # fmt: skip
        self.answers: dict[float, tuple[Vector, Vector, float]] = {}
        for k in range(found):
            w = np.append(W[k], b[k])
            dual_x = x[k]
            if some:
                dual_x = np.zeros(problem.n)
                dual_x[rows] = scale * x[k]
            self.answers[float(alphas[k])] = w, dual_x, 0.5 * float(passes[k])

    def proposal(self, problem: Problem, goal: Goal) -> Proposal:
        """What was found for the problem's alpha, certified on all of its data."""
        w, x, passes = self.answers[problem.alpha]
        units = units_of(problem)
        assert isinstance(units, Units)
        scores = problem.data.times_sparse(w[:-1]) + w[-1]
        zx = np.append(problem.data.transposed_times(x), x.sum() if problem.fit_intercept else 0.0)
        iterate = Iterate(w, x, dual_variables(problem, units, zx), zx, problem.map_slots @ w)
        primal = problem.primal_at(w, scores)
        made = problem.certificate(iterate, fresh=False, primal=primal, enough=primal - goal.allowed(primal))
        return Proposal(iterate, primal, passes + 1.0, "compiled path", made, exact=True)


def is_small(problem: Problem, alphas: Sequence[float]) -> bool:
    """Whether the compiled loops suit a problem: one output of dense data, few numbers, units of one coefficient."""
    data, units = problem.data, units_of(problem)
    if data.sparse or problem.vectors > 1 or problem.loss.small_form() is None or data.stored > ENTRIES:
        return False
    if isinstance(units, str) or not units.alone or min(alphas) <= 0:
        return False
    if np.count_nonzero(units.always) > ALWAYS:
        return False
    if len(alphas) == 1 and (data.stored < ONCE or problem.p <= problem.n):
        return False
    return problem.n <= ROWS or data.stored <= (FEW_QUADRATIC if problem.loss.quadratic else FEW)
