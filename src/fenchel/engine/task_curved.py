"""Tasks and outputs with curved losses: proximal Newton rounds whose curvature falls into blocks.

A round minimises a quadratic model with the penalty (ADMM on the blocks), goes as far as the true objective falls, and
foresees what a repair of the dual variables through the curvature would prove. Where that suffices it is proven, over
all rows, by ``Problem.certificate``. The curvature is kept while the rounds that seem to be left cost less than a new
one.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator

import numpy as np

from ..foundation.numerics import BALANCED, NEWTON_STEPS
from ..kernels.rules import ROUNDS, STAGE_TOL
from ..prices import Prices
from ..problem import Problem
from .accuracy import CHANGED, FINE, FINEST, IDLE
from .curvatures.blocks import BlockGram
from .inner.admm import ROUNDS as TURN
from .inner.admm import TURNS
from .inner.block_admm import BlockAdmm, FeatureMaps
from .line_search import shortened
from .parts import Answer, Vector
from .roles import Goal, Iterate, Proposal
from .task_repair import BlockRepair
from .task_squared import Known, predicted
from .whole import WholePoint, visit_weights, with_structure

USUAL = 20.0  # rounds of ADMM that a model takes, about


@dataclasses.dataclass
class _KnownScores(Known):
    """With the scores, so that the next start needs no product with the data."""

    scores: Vector


class CurvedTasks:
    """The memory of a fit along a path: curvature, pace, the last two answers."""

    def __init__(self, problem: Problem, prices: Prices, name: str) -> None:
        self.problem, self.prices, self.name = problem, prices, name
        self.gram, self.admm = BlockGram(problem, prices), BlockAdmm(problem, prices)
        self.maps = FeatureMaps.of(problem)
        self.known: list[_KnownScores] = []
        self.passes = self.read = self.spent = 0.0

    # -- one alpha -----------------------------------------------------------------------------------

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        if self.problem is not problem:
            self.problem = problem
            self.admm.move_to(problem)
        self.repair, self.read = BlockRepair(problem), 0.0
        point, answer = self._begin(start)
        if self.gram.matrices is None:
            self.gram.begin(point.h)
        yield from self._models(point, answer, goal)

    def _begin(self, start: Iterate | None) -> tuple[WholePoint, Answer]:
        """The point to start at: given, foreseen from the answers before, or zero."""
        problem, scores = self.problem, None
        if start is not None:
            w, y = start.w, start.y / problem.n
        elif self.known:
            foreseen = predicted(list(self.known), problem.alpha)
            assert foreseen is not None
            w, y, scores = foreseen.w, foreseen.y, self._scores_ahead()
        else:
            w, y = self._intercepts(), np.zeros(problem.d)
        inside = problem.within(w.copy())
        point = WholePoint(problem, inside, scores if np.array_equal(inside, w) else None)
        return point, Answer(point.w, point.at.copy(), y.copy())

    def _scores_ahead(self) -> Vector:
        first, last, alpha = self.known[0], self.known[-1], self.problem.alpha
        if first is last or first.alpha == last.alpha:
            return last.scores
        ahead = min(max((alpha - last.alpha) / (last.alpha - first.alpha), 0.0), 1.0)
        return last.scores + ahead * (last.scores - first.scores)

    def _intercepts(self) -> Vector:
        """w = 0 with the intercepts that are best there, about: Newton's method on as many numbers."""
        problem = self.problem
        w = np.zeros(problem.size)
        if not problem.fit_intercept:
            return w
        if problem.zero_answer is not None and problem.zero_answer.w.size == w.size:
            return np.asarray(problem.zero_answer.w).copy()
        slots, V = problem.intercept_slots, problem.vectors
        vector = problem.layout[2] // problem.layout[1] if problem.layout[2].size else np.tile(np.arange(V), problem.n)
        weight, best = visit_weights(problem), math.inf
        b = trial = np.zeros(V)
        for _ in range(NEWTON_STEPS):
            total, x, h = problem.loss.sums(problem.seen(trial[vector]), problem.target, weight)
            if not total < best:
                break
            best, b = total, trial
            slope, bend = np.bincount(vector, x, V), np.bincount(vector, h, V)
            trial = b - slope / np.maximum(bend, 1e-3 * max(float(bend.mean()), 1e-300))
            if float(np.abs(slope).sum()) <= 1e-9 * float(np.abs(x).sum()):
                break
        w[slots] = b
        return w

    def _remember(self, point: WholePoint, u: Vector, y: Vector) -> None:
        known = [one for one in self.known if one.alpha != self.problem.alpha]
        self.known = [*known[-1:], _KnownScores(self.problem.alpha, point.w, u.copy(), y.copy(), point.scores)]

    def _count(self, passes: float) -> None:
        self.passes += passes
        self.read += passes
        self.spent += passes * self._pass_price()

    def _pass_price(self) -> float:
        """Nanoseconds of two products with the data and a look at the loss."""
        problem, prices = self.problem, self.prices
        data, outputs = problem.data, problem.layout[0]
        entry = prices.csr_pass if data.sparse else prices.gemv / (2.0 if outputs > 1 else 1.0)
        return float(2 * outputs * entry * data.stored + prices.loss * problem.visits + 30 * prices.call)

    def _round_price(self) -> float:
        return self._pass_price() + USUAL * self.admm.round_price() + 100 * self.prices.call

    def _offered(self, proposal: Proposal) -> Proposal:
        proposal.passes, self.passes = self.passes, 0.0
        proposal.nanoseconds = self.spent + self.admm.spent
        self.spent = self.admm.spent = 0.0
        return proposal

    def _over(self, goal: Goal) -> bool:
        return self.read >= goal.passes or time.perf_counter() > goal.deadline

    # -- rounds --------------------------------------------------------------------------------------

    def _make(self, point: WholePoint) -> None:
        self.gram.make(point.h)
        self.spent += self.gram.price(self.gram.constant)
        self._count(1.0)

    def _solve(self, point: WholePoint, answer: Answer, accuracy: float) -> Answer:
        """The model's answer."""
        problem, gram, admm = self.problem, self.gram, self.admm
        slots = problem.feature_slots
        w, g = point.w[slots], gram.reduced(point.g).ravel()
        v, u, y, solved = w.copy(), answer.u, answer.y, False
        for _ in range(TURNS):
            solved = admm.turn(gram, g, w, v, u, y, accuracy, TURN)
            if solved:
                break
            admm.adapt(u)
        if not solved and admm.single:
            admm.single, admm.inverse = False, None
        move = gram.with_intercepts((with_structure(problem, v, u) - w).reshape(problem.vectors, -1), point.g)
        return Answer(problem.within(point.w + move), u, y, solved)

    def _models(self, point: WholePoint, answer: Answer, goal: Goal) -> Iterator[Proposal]:
        """Rounds until a limit is reached or nothing is gained."""
        problem, gram, repair = self.problem, self.gram, self.repair
        accuracy = FINE if self.known else STAGE_TOL
        least, before, idle, distrust, stale = math.inf, math.inf, 0, 1.0, gram.matrices is None
        for number in range(ROUNDS):
            fresh = stale
            if stale:
                self._make(point)
                stale = False
            answer = self._solve(point, answer, accuracy)
            foreseen = gram.times(answer.v - point.w)
            taken = shortened(point, answer, foreseen)
            self._count(taken.passes)
            if taken.point is None:
                if fresh:
                    gram.refuse()
                stale, accuracy, idle = True, max(0.1 * accuracy, FINEST), idle + 1
                if idle > IDLE or self._over(goal):
                    return
                continue
            new, share = taken.point, taken.share
            allowed = goal.allowed(new.primal)
            repair.use_blocks(gram, self.admm.units_step(gram)[self.admm.labels])
            if share == 1.0:
                proposal = self._ahead(point, new, answer, foreseen, allowed)
                if proposal is not None:
                    yield proposal
            gained = point.primal - new.primal
            new.g  # noqa: B018
            self._count(point.passes + new.passes)
            point.passes = new.passes = 0.0
            point = new
            promise = repair.foresee(point.g, answer.y, point.at, point.penalty)
            gap = math.inf if promise is None else promise.gap
            over = self._over(goal)
            rate = min(gap / before, 1.0) if math.isfinite(before) else 1.0
            before = gap
            idle, least = (0 if gap < 0.7 * least else idle + 1), min(least, gap)
            failed = False
            last, hopeful = over or idle > IDLE, distrust * gap <= allowed
            outdated = hopeful and self._outdated(point)
            if (hopeful and not outdated) or last or number in (7, 15, 31, 63):
                at = Iterate(point.w, point.x, problem.n * answer.y, problem.n * point.g, answer.u, point.scores)
                if (hopeful and not outdated) or last:
                    at, made = repair.prove(at, point.g, point.h, point.primal, allowed, hasty=not last)
                    self._count(repair.passes)
                    repair.passes = 0.0
                else:  # for whoever waits for a sign
                    made = problem.certificate(at, fresh=False, primal=point.primal)
                self._remember(point, answer.u, at.y / problem.n)
                yield self._offered(Proposal(at, point.primal, 0.0, self.name, made))
                failed = made.gap > allowed
                if hopeful and not outdated:
                    distrust = max(distrust, min(0.3 * made.gap / max(gap, 1e-300), 1e3 * distrust))
            if over or idle > IDLE:
                return
            accuracy = FINE if gap <= FINE * abs(point.primal) else STAGE_TOL
            if idle > 1:  # the model's own error may be what is left
                accuracy = max(accuracy * 0.1 ** (idle - 1), FINEST)
            if gained <= BALANCED * abs(point.primal):
                accuracy = FINEST
            if gram.floor and share == 1.0:
                gram.trust()
            # a proof in vain costs about as much as the curvature that it lacks
            worth = failed or self._worth(gap, allowed, rate)
            stale = (not fresh and worth) or (fresh and share < 1.0) or outdated

    def _outdated(self, point: WholePoint) -> bool:
        """Whether the rows' curvatures have changed so much that a proof by conjugate gradients takes long; a step of a
        new model proves itself for less."""
        return float(np.abs(point.h - self.gram.h).sum()) > CHANGED * float(point.h.sum())

    def _worth(self, gap: float, allowed: float, rate: float) -> bool:
        """Whether what is left, at the present rate, costs more than a new curvature."""
        one, admm = self._round_price(), self.admm
        price = self.gram.price() + admm.factor_price(self.problem.vectors)
        left = math.log(max(gap / max(allowed, 1e-300), 1.0001))
        return left * one > (price + one) * math.log(1 / max(rate, 1e-3))

    def _ahead(
        self, point: WholePoint, new: WholePoint, answer: Answer, foreseen: Vector, allowed: float
    ) -> Proposal | None:
        """A proof of the new point by the slopes that the model foresaw there, which takes no gradient: they differ
        from the true ones by the square of the step. None where it seems not to suffice."""
        problem, repair, gram = self.problem, self.repair, self.gram
        promise = repair.foresee(point.g + foreseen, answer.y, new.at, new.penalty)
        if promise is None or promise.gap > allowed:
            return None
        slopes = gram.h * (new.scores - point.scores)
        x = point.x + slopes
        if promise.gap + repair.model_gap(x, slopes, new.scores, new.loss) > allowed:
            return None
        at = Iterate(new.w, x, problem.n * answer.y, np.zeros(0), answer.u, new.scores)
        at, made = repair.prove_ahead(at, promise, gram.h, new.primal, allowed)
        self._count(point.passes + new.passes + repair.passes)
        point.passes = new.passes = repair.passes = 0.0
        self._remember(new, answer.u, at.y / problem.n)
        return self._offered(Proposal(at, new.primal, 0.0, self.name, made))
