"""Tasks and outputs: quadratic models in blocks, for any penalty over the matrix of coefficients and smooth losses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..foundation.numerics import SPACE
from ..prices import Prices
from ..problem import Problem
from .curvatures.blocks import has_tasks
from .models import MOST
from .roles import Goal, Iterate, Proposal
from .task_curved import CurvedTasks
from .task_squared import SquaredTasks
from .units import units_of

NAME = "blocks"


class BlockModels:
    """The engine for several tasks or outputs."""

    name = NAME

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self._fit: SquaredTasks | CurvedTasks | None = None

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if problem.vectors == 1:
            return "one output"
        if problem.loss.kinked:
            return f"{type(problem.loss).__name__} has kinks"
        if problem.loss.coupled:
            return f"{type(problem.loss).__name__} sees all scores of a row together"
        if problem.p > MOST or 8 * problem.vectors * problem.p**2 > SPACE:
            return f"{problem.p} features are too many for a model of all of them"
        if problem.n < problem.p and not has_tasks(problem) and not isinstance(units_of(problem), str):
            return "with fewer rows than features few of these count, and working sets find them"
        return None if problem.d else "there is no penalty"

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        self._fit = None

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, until somebody stops asking or nothing is gained."""
        if not problem.d:
            return  # alpha = 0 has no penalty
        if self._fit is None or self._fit.admm.problem.d != problem.d:
            kind = SquaredTasks if problem.loss.quadratic else CurvedTasks
            self._fit = kind(problem, self.prices, NAME)
        yield from self._fit.rounds(problem, start, goal)
