"""The best answer that a penalty does not see, for rows in a pool and a loss with kinks: where paths begin.

Few directions have no penalty, mostly an intercept alone. Along them the method of multipliers finds the answer: steps
of Newton's method on the envelopes of the loss, whose multipliers are dual variables of the rows (see
``data/envelopes.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from .._validate import Array
from ..foundation.numerics import ROUNDING
from ..kernels.rules import LOOSE
from .bounds import NoCertificate
from .looks import EnvelopeView, Slopes
from .unpenalised import GROWTH

if TYPE_CHECKING:
    from .pooled import PooledProblem, Steps

PASSES = 80  # of one search over rows in a pool, which ends where it finds; more: longer before it is given up
_CLOSE = 1e-7  # of the loss: the gap at which the answer is good enough


def best_with_kinks(problem: PooledProblem, directions: Array) -> tuple[Array, Slopes]:
    """The point, and the slopes of the rows there; their sums along the directions are zero up to rounding."""
    c, steps = np.zeros(directions.shape[1]), cast("Steps", ())
    reach = 1.0 / max(problem.largest_target, 1.0)
    (view,) = problem.envelopes(directions @ c, (steps, reach))
    ahead: EnvelopeView | None = None
    growth, longer = GROWTH, reach
    for number in range(PASSES):
        slope, bend = directions.T @ view.gradient, directions.T @ view.gram @ directions
        move = -np.linalg.lstsq(bend, slope, rcond=1e-12)[0]
        promised = -float(slope @ move)
        found = _answer(problem, view)
        if found is not None:
            return view.w, found
        if np.any((np.diag(bend) <= 0) & (np.abs(slope) > ROUNDING)):  # nobody is within reach of a kink
            growth = 2.0 if number else GROWTH
            reach, ahead = reach / GROWTH ** (1 if number else 3), None
            (view,) = problem.envelopes(view.w, (steps, reach))
            continue
        if ahead is not None and promised <= LOOSE * view.moved:
            steps, reach, view, ahead = (*steps, (view.w, reach)), longer, ahead, None
            continue
        share, longer = 1.0, growth * reach
        while True:
            w = directions @ (c + share * move)
            after: Steps = (*steps, (w, reach))
            new, ahead = problem.envelopes(w, (steps, reach), (after, longer))
            if new.envelope <= view.envelope - 1e-4 * share * promised + 1e-14 * abs(view.envelope) or share < 1e-6:
                break
            share *= 0.25
        c, view = c + share * move, new
    raise NoCertificate("the best answer without penalty was not found")


def _answer(problem: PooledProblem, view: EnvelopeView) -> Slopes | None:
    """The slopes, balanced, where they prove that the point is as good as the best."""
    problem.passes.may_balance = False
    try:
        x = problem._balance(view.slopes, problem.gradient_sum(view.slopes))[0]
    except NoCertificate:
        return None
    finally:
        problem.passes.may_balance = True
    return x if view.loss + x.conjugate(1.0) / problem.n <= _CLOSE * max(view.loss, 1e-300) else None
