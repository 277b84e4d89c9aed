"""The cheap start for many features behind a map: accelerated steps, and Newton's method on the faces that they show.

Accelerated proximal steps need no curvature, and show early which units of B'w are zero; but a proof from them needs
the square of the accuracy that it proves. Newton's method on their face (``seen_faces.py``) brings both together. It is
tried whenever the steps have cost as much as it may, so that the whole costs at most twice what the steps alone would,
and less than that wherever the face is right before they arrive.

Symbols: as in step_length.py.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

from ..prices import Prices
from ..problem import Problem
from .attempts.manifold import Point, applies
from .curvatures.step_length import PREPARE, StepLength
from .parts import Vector
from .roles import Goal, Iterate, Proposal
from .seen_faces import SeenFaces
from .whole import Maps, WholePoint

LOOK, MORE = 8, 1.3  # steps before the first look, and times as many before the next: looks cost about two steps each
SHARE = 1.0  # of what the steps have cost: what all attempts on faces may; larger: the bound above grows by it


class FirstSteps:
    """One alpha's. `spent` counts nanoseconds by the price model, and `point` is the best that was found."""

    def __init__(self, problem: Problem, prices: Prices, name: str) -> None:
        self.problem, self.prices, self.name = problem, prices, name
        self.steps = StepLength(problem, prices)
        self.faces = SeenFaces(problem, self.steps.steps) if applies(problem) else None
        self.spent = self.attempts = self.passes = self.read = 0.0
        self.offered = 0.0  # of what was spent: how much the loop was told

    def rounds(self, w: Vector, y: Vector, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, until nothing moves any more; y is divided by n."""
        problem, steps = self.problem, self.steps
        point = WholePoint(problem, w)
        self._count(point.passes)
        steps.begin(point.w, point.scores, y)
        self.one = StepLength.price(problem, self.prices)
        self.spent, due = PREPARE, LOOK
        while True:
            steps.step()
            if steps.failed:
                return
            self.spent += self.one + steps.info[2] * steps.steps._round
            self._count(steps.passes)
            steps.passes = 0.0
            over = self.read >= goal.passes or time.perf_counter() > goal.deadline
            if not (steps.count >= due or over or steps.still):
                continue
            due = math.ceil(MORE * steps.count)
            yield from self._look(goal)
            if over or steps.still:
                return

    def _look(self, goal: Goal) -> Iterator[Proposal]:
        """A proof of the present point, if it is one; an attempt on its face, if that is affordable."""
        problem, steps, n = self.problem, self.steps, self.problem.n
        u, y = steps.structure()
        primal = steps.loss + problem.penalty_value(Maps.of(problem).down(steps.w))
        zx = n * steps.gradient
        y = n * y if self.faces is None else self.faces.mended(zx, n * y)
        at = Iterate(steps.w, steps.x, y, zx, u, steps.scores)
        made = problem.certificate(at, fresh=False, primal=primal, enough=primal - goal.allowed(primal))
        yield self._offered(Proposal(at, primal, 0.0, self.name, made))
        if self.faces is None:
            return
        found = self._attempt(at, goal)
        if found is None:
            return
        if found.made is None:
            found.made = problem.certificate(found, fresh=False, primal=found.primal)
        iterate = Iterate(found.w, found.x, found.y, found.zx, found.u, found.scores)
        yield self._offered(Proposal(iterate, found.primal, 0.0, self.name, found.made))
        if found.primal < primal:
            point = WholePoint(problem, found.w)
            self._count(point.passes)
            steps.move_to(point.w, point.scores, found.y / n)

    def _attempt(self, at: Iterate, goal: Goal) -> Point | None:
        """Newton's method on the face of the last prox."""
        faces = self.faces
        assert faces is not None
        faces.eta, faces.deadline = 1.0 / self.steps.L, goal.deadline
        found: Point | None = faces.run(at.w, at.u, at.y, tol=goal.tol, budget=SHARE * self.spent - self.attempts)
        self.attempts += faces.spent
        self._count(faces.passes)
        return found

    def _count(self, passes: float) -> None:
        self.passes += passes
        self.read += passes

    def _offered(self, proposal: Proposal) -> Proposal:
        total = self.spent + self.attempts
        proposal.passes, self.passes = self.passes, 0.0
        proposal.nanoseconds, self.offered = total - self.offered, total
        return proposal
