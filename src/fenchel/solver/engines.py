"""The engine of a sequence of alphas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..engine.registry import fitting
from ..engine.roles import Engine, Goal, Iterate, Proposal
from ..problem import Problem
from .settings import Settings

HANDFUL = 8  # passes that an attempt between epochs may well cost: where fewer are allowed in all there is none


class Engines:
    """The engine that fits, for a whole sequence of alphas; None where the method or its options do not allow one."""

    def __init__(self, problem: Problem, settings: Settings, alphas: Sequence[float]) -> None:
        allowed = problem.pooled or (settings.engines and settings.max_epochs >= HANDFUL)
        self.engine: Engine | None = fitting(problem) if allowed else None
        self.alphas, self.tol, self.begun = alphas, settings.tol, False

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """What the engine proposes; it is told of all alphas before its first round."""
        if self.engine is not None:
            if not self.begun:
                self.begun = True
                self.engine.begin(problem, self.alphas, self.tol)
            yield from self.engine.rounds(problem, start, goal)
