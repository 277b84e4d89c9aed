"""The ways that are older than the engine, each behind the one protocol of an attempt.

The mathematics is in the modules of this package and in :mod:`fenchel.problem.alpha_max`; who may run when is
decided in ``solver/schedule.py``.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from ...foundation.numerics import DENSE
from ...prices import PRICES, multipliers_nanoseconds
from ...problem import Problem
from ...problem.alpha_max import ZeroAnswer, zero_answer
from ..accuracy import BEYOND, FIRM, ROUNDS_CHEAP
from ..curvatures.step_length import StepLength
from ..curvatures.whole_gram import WholeGram
from ..inner.admm import Admm
from ..models import MANY, MOST, NAME
from ..models import _Fit as Fit
from ..roles import Goal, Iterate, Proposal
from .joint_multipliers import JointMultipliers
from .manifold import Finisher, Point, correct
from .manifold import applies as faces_apply
from .multipliers import Multipliers
from .multipliers import applies as multipliers_apply

_FEWEST_STEPS = 30  # of the method of multipliers, likewise
_JOINED = 2  # features that a zero of B'w may join where faces are fast; the method of multipliers takes the others


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


def _affordable(problem: Problem) -> bool:
    """Whether models suit the problem."""
    fit = (WholeGram.unfit(problem) or Admm.unfit(problem)) is None
    return fit and problem.size <= DENSE and not problem.loss.across_rows


class Rounds:
    """Rounds of the engine with quadratic models (:mod:`fenchel.engine.models`), from where the epochs are: with
    accelerated steps first where models are dear, and these alone where they are too large."""

    name = NAME

    def __init__(self, problem: Problem) -> None:
        self.problem, self.models = problem, _affordable(problem) and problem.p <= MOST
        self.fit = Fit(problem, PRICES, several=problem.n >= problem.p, models=self.models)

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        pairs = problem.widest == 2
        if problem.p > FIRM * problem.n and not pairs:
            return "with few rows others are faster where features are not joined in pairs"
        if _affordable(problem) and problem.p <= MOST:
            return None
        reason = WholeGram.unfit(problem) or StepLength.unfit(problem)
        return reason if reason is not None or pairs else "accelerated steps of such a penalty are slow"

    def price(self, start: Iterate) -> float:
        return self.fit.price() if self.models else MANY * StepLength.price(self.problem, PRICES)

    def run(self, start: Iterate, goal: Goal, budget: float) -> Proposal | None:
        if BEYOND * budget < self.price(start):
            return None
        budget = max(BEYOND * budget, 0.0 if self.models else 3 * MANY * StepLength.price(self.problem, PRICES))
        last, passes, spent = None, 0.0, 0.0
        for found in self.fit.rounds(self.problem, start, dataclasses.replace(goal, nanoseconds=budget)):
            passes, spent, last = passes + found.passes, spent + found.nanoseconds, found
            if found.certificate is not None and goal.reached(found.certificate):
                break
        if last is not None:
            last.passes, last.nanoseconds = passes, spent
        return last


class Correction:
    """Newton's method from a prediction, along a path: models that remember the curvature of the last alpha, or steps
    on the structure of the last answer."""

    name = "newton along the path"

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.fit = Fit(problem, PRICES, several=True) if _affordable(problem) else None
        self.passes = 0.0  # over the data, of all alphas: halves of them are counted in turns

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        return None if _affordable(problem) or faces_apply(problem) else "loss or penalty are not smooth"

    def move_to(self, problem: Problem) -> None:
        """Go on with a problem on the same data at another alpha."""
        self.problem = problem

    def price(self, start: Iterate) -> float:
        return self.fit.price() if self.fit is not None else 0.0

    def run(self, start: Iterate, goal: Goal, budget: float) -> Proposal | None:
        if self.fit is None:
            point = correct(self.problem, start.w, start.u, start.y, tol=goal.tol, deadline=goal.deadline)
            return None if point is None else proposed(point, self.name)
        last, before = None, round(self.passes)
        for last in self.fit.rounds(self.problem, start, dataclasses.replace(goal, nanoseconds=budget)):
            self.passes += last.passes
            if last.certificate is not None and goal.reached(last.certificate):
                break
        if last is not None:
            last.by, last.passes = self.name, max(round(self.passes) - before, 1)
        return last


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
        point = self.method.run(start.w, start.x, start.y, tol=goal.tol, steps=int(min(steps, ROUNDS_CHEAP)))
        return proposed(point, self.name)
