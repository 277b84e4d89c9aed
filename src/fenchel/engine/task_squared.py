"""Tasks and outputs with the squared loss: the data are read once, for their moments.

Rounds of ADMM on the Gram matrices, and after every few of them a proof from the moments.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator

import numpy as np

from ..kernels.rules import LOOK
from ..prices import Prices
from ..problem import Certificate, Problem
from .accuracy import IDLE_CHEAP, ROUNDS_CHEAP
from .inner.block_admm import BlockAdmm, FeatureMaps
from .moments import Moments, moments
from .parts import Vector
from .repair import LEFT
from .roles import Goal, Iterate, Proposal
from .task_repair import SquaredProof
from .whole import with_structure


@dataclasses.dataclass
class Known:
    """The answer at an alpha."""

    alpha: float
    w: Vector
    u: Vector
    y: Vector


def predicted(known: list[Known], alpha: float) -> Known | None:
    """On the line through the last two answers: between kinks they are nearly linear in alpha."""
    if not known:
        return None
    first, last = known[0], known[-1]
    ahead = 0.0
    if first is not last and first.alpha != last.alpha:
        ahead = min(max((alpha - last.alpha) / (last.alpha - first.alpha), 0.0), 1.0)
    w, u, y = (
        getattr(last, name) + ahead * (getattr(last, name) - getattr(first, name)) for name in ("w", "u", "y")
    )  # fmt: skip
    return Known(alpha, w, u, y)


class SquaredTasks:
    """The memory of a fit along a path: moments, pace, the last two answers."""

    def __init__(self, problem: Problem, prices: Prices, name: str) -> None:
        self.prices, self.name = prices, name
        self.moments: Moments = moments(problem, prices)
        self.made = self.moments.gram.price(len(self.moments.gram.matrices) == 1)  # type: ignore[arg-type]
        self.admm = BlockAdmm(problem, prices)
        self.maps = FeatureMaps.of(problem)
        self.step = self.admm.units_step(self.moments.gram)[self.admm.labels]
        self.proof = SquaredProof(problem, self.moments, self.step)
        self.by_moments = SquaredProof.suits(problem, self.moments)
        self.known: list[Known] = []
        self.passes = 1.0

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        if self.admm.problem is not problem:
            self.admm.move_to(problem)
        self.problem = self.proof.problem = problem
        admm, V, p = self.admm, problem.vectors, problem.p
        each, u, y = self._begin(start)
        slope = self.moments.gradient(each)
        v, least, idle = each.copy().ravel(), math.inf, 0
        for turn in range(ROUNDS_CHEAP):
            admm.turn(self.moments.gram, slope.ravel(), each.ravel(), v, u, y, 1e-9, LOOK)
            each = with_structure(problem, v, u).reshape(V, p)
            slope = self.moments.gradient(each)
            at = self.maps.down(each.ravel())
            primal = self.moments.loss(each, slope) + problem.penalty_value(at)
            allowed, over = goal.allowed(primal), self.passes >= goal.passes or time.perf_counter() > goal.deadline
            dual, there, balanced = self.proof.bound(each, slope, y, primal)
            gap = primal - dual
            idle, least = (0 if gap < 0.7 * least else idle + 1), min(least, gap)
            if gap <= allowed or over or idle >= IDLE_CHEAP or turn % 16 == 15:
                proposal = self._proposal(each, u, primal, dual, there, balanced, goal)
                if goal.reached(self._made(proposal)):
                    self._remember(each, u, y)
                yield proposal
                if over or idle >= IDLE_CHEAP:
                    return
            admm.adapt(u)
            v = each.ravel().copy() if not self.maps.joined else v

    def _made(self, proposal: Proposal) -> Certificate:
        assert proposal.certificate is not None
        return proposal.certificate

    def _begin(self, start: Iterate | None) -> tuple[Vector, Vector, Vector]:
        """The point to start at: given, foreseen from the answers before, or zero."""
        problem = self.problem
        if start is not None:
            each = start.w.reshape(problem.vectors, -1)[:, :-1].copy()
            return each, self.maps.down(each.ravel()), start.y / problem.n
        foreseen = predicted(self.known, problem.alpha)
        if foreseen is not None:
            return foreseen.w.reshape(problem.vectors, -1), foreseen.u, foreseen.y
        return np.zeros((problem.vectors, problem.p)), np.zeros(problem.d), np.zeros(problem.d)

    def _remember(self, each: Vector, u: Vector, y: Vector) -> None:
        known = [one for one in self.known if one.alpha != self.problem.alpha]
        self.known = [*known[-1:], Known(self.problem.alpha, each.ravel().copy(), u.copy(), y.copy())]

    def _proposal(
        self, each: Vector, u: Vector, primal: float, dual: float, there: Vector, y: Vector, goal: Goal
    ) -> Proposal:
        problem, moments = self.problem, self.moments
        w, allowed = moments.with_intercepts(each), goal.allowed(primal)
        of_loss = moments.spread(each)[0]
        slack = self.proof.slack(there, primal) + of_loss

        def iterate() -> Iterate:
            """With dual variables by rows, for whoever goes on from here."""
            x = problem.slopes_at(problem.scores(moments.with_intercepts(there)))
            return Iterate(w, x, problem.n * y, problem.gradient_sum(x), u.copy())

        nanoseconds, self.admm.spent, self.made = self.admm.spent + self.made, 0.0, 0.0
        passes, self.passes = self.passes, 0.0
        if self.by_moments and slack <= LEFT * allowed:
            made = Certificate(primal, dual - of_loss, 0.0, rounding=slack)  # the objective is wrong by as much
            return Proposal(iterate, primal, passes, self.name, made, problem.renames, w, nanoseconds)
        at = iterate()
        made = problem.certificate(at, fresh=False, enough=primal - allowed)
        return Proposal(at, made.primal, passes + 2.0, self.name, made, problem.renames, w, nanoseconds)
