"""The ways that are older than the engine, each behind the one protocol of an attempt.

The mathematics is in the modules of this package and in :mod:`fenchel.problem.alpha_max`; who may run when is
decided in ``solver/schedule.py``.
"""

from __future__ import annotations

import functools

import numpy as np

from ...prices import PRICES, multipliers_nanoseconds, newton_nanoseconds
from ...problem import Problem
from ...problem.alpha_max import ZeroAnswer, zero_answer
from ..roles import Goal, Iterate, Proposal
from .accelerated import Accelerated
from .accelerated import applies as accelerated_applies
from .joint_multipliers import JointMultipliers
from .manifold import Finisher, Point, correct
from .manifold import applies as faces_apply
from .multipliers import Multipliers
from .multipliers import applies as multipliers_apply
from .newton import Newton, worthwhile

_FEWEST, _MOST = 8, 20  # proximal Newton steps in an attempt; fewer do not get there, more are better spent on epochs
_FEWEST_STEPS, _MOST_STEPS = 30, 400  # of the method of multipliers, likewise
_JOINED = 2  # features that a zero of B'w may join where faces are fast; the method of multipliers takes the others
_STEPS = 20  # proximal Newton steps that carry an answer from one alpha to the next, at the most


def proposed(point: Point, by: str) -> Proposal:
    """A point as a proposal."""
    iterate = Iterate(point.w, point.x, point.y, point.zx, point.u, point.scores)
    return Proposal(iterate, point.primal, point.passes, by, point.made)


class NothingPenalised:
    """The answer whose penalised part is zero, where alpha is so large that it is one."""

    name = "zero answer"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.largest: ZeroAnswer | None = problem.zero_answer  # once somebody asked
        self.unknown = False  # whether nobody can tell

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        return None

    def price(self, start: Iterate) -> float:
        return 0.0

    def run(self, start: Iterate, goal: Goal, budget: float) -> Proposal | None:
        problem = self.problem
        if self.unknown:
            return None
        if self.largest is None:
            try:
                self.largest = zero_answer(problem, refine=False, enough=problem.alpha)
            except ValueError:
                self.unknown = True
                return None
        found = self.largest
        if not found.alpha <= problem.alpha * (1 + 1e-12) or found.y.size != problem.d:  # alpha = 0 has no penalty
            return None
        iterate = Iterate(found.w, found.x, found.y, problem.gradient_sum(found.x), np.zeros(problem.d))
        return Proposal(iterate, problem.primal_at(found.w), 0.0, self.name)


class Faces:
    """Newton's method on the structure that an iterate shows."""

    name = "newton on a face"

    def __init__(self, problem: Problem) -> None:
        self.finisher = Finisher(problem)

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        if not faces_apply(problem):
            return "loss or penalty are not smooth once the structure is fixed"
        if Multiplied.unfit(problem) is None and problem.widest > _JOINED:
            return "zeros that join more than two features make faces on which it is slow"
        return None

    @property
    def alone(self) -> bool:
        """Whether every feature stands in one place of B'w."""
        return self.finisher.alone

    @property
    def bends_everywhere(self) -> bool:
        """Whether the loss has no flat parts."""
        return self.finisher.bends_everywhere

    @property
    def passes(self) -> float:
        """Over the data, by the last run, whatever came of it."""
        return self.finisher.passes

    @property
    def refused(self) -> float:
        """Nanoseconds, the price that was last too high; a run may be told what an earlier one found."""
        return self.finisher.refused

    @refused.setter
    def refused(self, nanoseconds: float) -> None:
        self.finisher.refused = nanoseconds

    def price(self, start: Iterate) -> float:
        return self.finisher.least_nanoseconds

    def run(self, start: Iterate, goal: Goal, budget: float, faces: int = 1) -> Proposal | None:
        self.finisher.deadline = goal.deadline
        point = self.finisher.run(start.w, start.u, start.y, tol=goal.tol, budget=budget, faces=faces)
        return None if point is None else proposed(point, self.name)


class ProximalNewton:
    """Proximal Newton steps, for few coefficients."""

    name = "proximal newton"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        return None if worthwhile(problem) else "the loss is not smooth, or a model has too many coefficients"

    def price(self, start: Iterate) -> float:
        """Of a step; a run makes some."""
        return newton_nanoseconds(self.problem)[1] + PRICES.newton_call

    def run(self, start: Iterate, goal: Goal, budget: float) -> Proposal | None:
        newton = Newton()
        newton.deadline = goal.deadline
        steps = int(np.clip(budget / self.price(start), _FEWEST, _MOST))
        return proposed(newton.propose(self.problem, start.w, start.y, tol=goal.tol, steps=steps), self.name)


class Correction:
    """Newton's method from a prediction, along a path: proximal steps that remember the curvature of the last alpha,
    or steps on the structure of the last answer."""

    name = "newton along the path"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.newton = Newton() if worthwhile(problem) else None

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        return None if worthwhile(problem) or faces_apply(problem) else "loss or penalty are not smooth"

    def move_to(self, problem: Problem) -> None:
        """Go on with a problem on the same data at another alpha."""
        self.problem = problem

    def price(self, start: Iterate) -> float:
        """Of a step."""
        return newton_nanoseconds(self.problem)[1] + PRICES.newton_call

    def run(self, start: Iterate, goal: Goal, budget: float) -> Proposal | None:
        if self.newton is None:
            point = correct(self.problem, start.w, start.u, start.y, tol=goal.tol, deadline=goal.deadline)
            return None if point is None else proposed(point, self.name)
        self.newton.deadline = goal.deadline
        steps = max(int(min(_STEPS, goal.passes)), 1)
        point = self.newton.correct(
            self.problem, start.w, start.y, tol=goal.tol, steps=steps, scores=start.scores
        )  # fmt: skip
        return proposed(point, self.name)


class AcceleratedGradients:
    """Accelerated proximal gradients, for penalties along edges."""

    name = "accelerated gradients"

    def __init__(self, problem: Problem) -> None:
        self.method = Accelerated(problem)

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        return None if accelerated_applies(problem) else "the loss is not smooth, or the penalty joins no pairs"

    @property
    def exact(self) -> bool:
        """Whether the prox has no error."""
        return self.method.exact

    @property
    def swift(self) -> bool:
        """Whether a step costs less than an epoch, and its prox is nearly exact."""
        return self.method.swift

    @property
    def passes(self) -> float:
        """Over the data, by the last run."""
        return self.method.passes

    @property
    def spent(self) -> float:
        """Nanoseconds of the last run, by the model."""
        return self.method.spent

    def price(self, start: Iterate) -> float:
        """Of a step; a run makes some."""
        return self.method.step_nanoseconds

    def run(self, start: Iterate, goal: Goal, budget: float, gap: float = 1.0) -> Proposal | None:
        """`gap` is the relative gap at the start, as far as it is known."""
        self.method.deadline = goal.deadline
        point = self.method.run(start.w, start.y, tol=goal.tol, gap=gap, budget=budget)
        return None if point is None else proposed(point, self.name)

    def sharpened(self, proposal: Proposal) -> Proposal | None:
        """Some more steps, so fine that zeros and ties can be believed."""
        point = self.method.sharpened(proposal.iterate)
        return None if point is None else proposed(point, self.name)


class Multiplied:
    """The method of multipliers with Newton steps, where nothing else helps."""

    name = "method of multipliers"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @functools.cached_property
    def method(self) -> Multipliers:
        return (JointMultipliers if self.problem.loss.coupled else Multipliers)(self.problem)

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        return None if multipliers_apply(problem) else "there are too many coefficients for a matrix of them"

    def price(self, start: Iterate) -> float:
        """Of a step; a run makes some."""
        return multipliers_nanoseconds(self.problem)

    def run(self, start: Iterate, goal: Goal, budget: float) -> Proposal | None:
        steps = budget / self.price(start)
        if steps < _FEWEST_STEPS:
            return None
        self.method.deadline = goal.deadline
        point = self.method.run(start.w, start.x, start.y, tol=goal.tol, steps=int(min(steps, _MOST_STEPS)))
        return proposed(point, self.name)
