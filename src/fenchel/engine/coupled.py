"""Losses of all scores at once behind any map: the method of multipliers, turn after turn."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..foundation.numerics import BESIDE
from ..prices import Prices, multipliers_nanoseconds
from ..problem import Problem
from .accuracy import IDLE
from .attempts.coupled_multipliers import CoupledMultipliers
from .attempts.multipliers import STEPS, applies
from .roles import Goal, Iterate, Proposal

NAME = "multipliers of all scores"


class CoupledModels:
    """The engine for such losses where working sets do not fit."""

    name = NAME

    def __init__(self, prices: Prices) -> None:
        self.last: Iterate | None = None  # at the alpha before

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if not problem.loss.across_rows:
            return f"{type(problem.loss).__name__} is a sum over rows"
        if not problem.d:
            return "there is no penalty"
        if problem.data.sparse and problem.n * problem.p > BESIDE:
            return "sparse columns would be filled"
        return None if applies(problem) else "there are too many coefficients for a matrix of them"

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        self.last = None

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, until somebody stops asking or nothing is gained."""
        if not problem.d:
            return  # alpha = 0 has no penalty
        start = start or self.last
        if start is None or start.y.size != problem.d:
            start = Iterate.zero(problem)
        method, price, best, idle = CoupledMultipliers(problem), multipliers_nanoseconds(problem), math.inf, 0
        method.deadline = goal.deadline
        while idle <= IDLE:
            point = method.run(start.w, start.x, start.y, tol=goal.tol, steps=STEPS)
            self.last = start = Iterate(point.w, point.x, point.y, point.zx, point.u, point.scores)
            yield Proposal(start, point.primal, point.passes, NAME, point.made, nanoseconds=STEPS * price)
            gap = math.inf if point.made is None else point.made.gap
            idle, best = (0 if gap < 0.7 * best else idle + 1), min(best, gap)
