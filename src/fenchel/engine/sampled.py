"""Rounds for rows in a pool: one pass over the data each, and a model of the loss that a sample of the rows makes.

A round looks at w (one pass: loss, gradient, diagonal of the curvature, sums of conjugates), certifies it, and solves a
quadratic model with the penalty; that is the next w. The pass is the price, so that the driver may think for long. How
rows are split and who holds them appears nowhere.

Symbols: w primal; g gradient of the mean loss; H its model's curvature; mu what is added to it, as a share of its
diagonal; y dual variables of the penalty, divided by n.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..data.pools import Inline
from ..foundation.numerics import ARMIJO, BALANCED, HALVINGS
from ..kernels.rules import CAREFUL, FLAT, LARGEST, LOOK
from ..prices import PRICES, Prices
from ..problem import Certificate, Problem
from ..problem.looks import View
from ..problem.pooled import PooledProblem
from .accuracy import FINE, IDLE_CHEAP, ROUNDS_CHEAP
from .curvatures.sampled import SampledCurvature
from .inner.admm import Admm
from .parts import Answer, Model, Vector
from .roles import Goal, Iterate, Proposal

NAME = "sampled models"
ASTRAY = 10.0  # of the decrease that a model promised: a rise that says nothing of a loss without a steepest curvature
ACCURACY, FINEST = 1e-4, 1e-7  # of a model's answer; a pass costs more than a model
BENT = 1e-2  # of the largest curvature: where the mean is below, every row counts for more at first


class SampledModels:
    """The engine for rows in a pool and smooth losses."""

    name = NAME

    def __init__(self, prices: Prices, *, holds_all: bool = False) -> None:
        self.prices = prices
        self.holds_all = holds_all  # the rows are those of a sample, and looks at them cost no pass
        self.own: SampledModels | None = None  # serves such rows, where the sample has all of them
        self.curvature: SampledCurvature | None = None
        self.inner: Any = None
        self.known: tuple[Vector, Vector] | None = None  # w and y of the last answer
        self.several = False

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if not problem.pooled:
            return "the rows are in memory"
        if problem.loss.kinked:
            return f"{type(problem.loss).__name__} has kinks"
        if problem.size > LARGEST:
            return f"{problem.size} coefficients are too many for a model of all of them; at most {LARGEST}"
        return None

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas begins; the sample serves them all."""
        self.several = len(alphas) > 1

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, a pass each.

        Linear algebra of the models goes in one thread: several would make other bits on other machines.
        """
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1, user_api="blas"):
            yield from self._fit(cast(PooledProblem, problem), goal).rounds(start)

    def _fit(self, problem: PooledProblem, goal: Goal) -> Fit:
        return Fit(self, problem, goal)

    def _curvature(self, problem: PooledProblem) -> SampledCurvature:
        return SampledCurvature(problem)

    def _solver(self, problem: PooledProblem) -> Any:
        """Of models; it serves a whole path."""
        return Admm(problem, PRICES) if problem.d else None


class Fit:
    """One alpha."""

    def __init__(self, engine: SampledModels, problem: PooledProblem, goal: Goal) -> None:
        self.engine, self.problem, self.goal = engine, problem, goal
        self.mu, self.growth, self.least = 0.05, 4.0, 0.0
        self.accepted = self.refused = 0
        self.lowest = math.inf  # the objective at the point
        self.flat = 0.0  # of the largest curvature: what every row counts for beside its own
        self.due = LOOK  # the round in which a new sample is drawn

    # -- where to begin ---------------------------------------------------------------------------------

    def rounds(self, start: Iterate | None) -> Iterator[Proposal]:
        problem, engine = self.problem, self.engine
        zero = np.zeros(problem.size)
        if engine.curvature is None:
            engine.curvature = engine._curvature(problem)
        if engine.inner is None or engine.inner.problem.d != problem.d:
            engine.inner = engine._solver(problem)
        else:
            engine.inner.move_to(problem)
        self.curvature = engine.curvature
        points = [(zero, np.zeros(problem.d))]
        if start is not None:
            points.insert(0, (problem.within(start.w.copy()), start.y / problem.n))
        elif engine.known is not None and engine.known[1].size == problem.d:
            points.insert(0, engine.known)
        if self._has_all or len(points) == 1:
            found = self._of_sample(points[0])
            if found is not None:
                points.insert(0, found)
        yield from self._begin(points)

    def _begin(self, points: list[tuple[Vector, Vector]]) -> Iterator[Proposal]:
        """Rounds from the first of these points, or from zero if that is known to be better."""
        problem, zero = self.problem, points[-1][0]
        w, y = points[0]
        view = problem.look(w)
        at_zero = problem.known(zero)
        if at_zero is not None and self._primal(at_zero) < self._primal(view):
            (w, y), view = points[-1], at_zero
        yield from self._go(view, Answer(w, problem.penalised(w), y))

    @property
    def _has_all(self) -> bool:
        """Whether the sample has all rows, which lie elsewhere: then passes are saved by going all the way on it."""
        return not self.engine.holds_all and self.curvature.rows >= self.problem.n

    def _of_sample(self, start: tuple[Vector, Vector]) -> tuple[Vector, Vector] | None:
        """The rough answer of the sample's own problem, and its dual variables; the very answer if it has all rows."""
        problem, part, engine, goal = self.problem, self.curvature.part, self.engine, self.goal
        if not self.curvature.rows or (engine.holds_all and self.curvature.rows >= problem.n):
            return None
        held = Inline([part])
        held.held = True
        own = PooledProblem(
            held, loss=problem.loss, penalty=problem.penalty, alpha=problem.alpha,
            fit_intercept=problem.fit_intercept, scale=problem.scale,
        )  # fmt: skip
        if own.size != problem.size or own.d != problem.d:  # some task has no row in it
            return None
        rule, begin = Goal(FINE, goal.deadline, math.inf, lambda primal: FINE * abs(primal)), None
        if self._has_all:
            rule = Goal(goal.tol, goal.deadline, math.inf, lambda primal: 0.5 * goal.allowed(primal))
            w, y = start
            if w.any():
                begin = Iterate(w, np.zeros(0), own.n * y, np.zeros(0), own.penalised(w))
        if engine.own is None or not self._has_all:
            engine.own = type(engine)(engine.prices, holds_all=True)
        best: Proposal | None = None
        for proposal in engine.own.rounds(own, begin, rule):
            if best is None or proposal.primal <= best.primal:
                best = proposal
            if proposal.certificate is not None and rule.reached(proposal.certificate):
                break
        if not self._has_all:
            engine.own = None  # nobody needs it again
        return None if best is None else (best.iterate.w, best.iterate.y / own.n)

    # -- rounds -----------------------------------------------------------------------------------------

    def _go(self, view: View, answer: Answer) -> Iterator[Proposal]:
        problem, goal, idle, accuracy = self.problem, self.goal, 0, ACCURACY
        primal = self._primal(view)
        made = self._certificate(view, answer.y)
        yield self._proposal(view, answer, made)
        best = made.gap
        if view.bend < BENT * self._steepest(view):
            self.flat = FLAT
        for number in range(ROUNDS_CHEAP):
            if self._over():
                return
            H, self.lowest = self._model(view), primal
            answer = self._solve(Model(view.w, view.gradient, H), answer, accuracy)
            # the dual variables of this model belong to the slopes at the old point, too: that costs nothing
            made = self._certificate(view, answer.y)
            if goal.reached(made):
                yield self._proposal(view, answer, made)
                return
            answer = self._shortened(view, answer, H)
            d = answer.v - view.w
            if not d.any():
                if accuracy <= FINEST:
                    return
                accuracy *= 0.1
                continue
            new = self._look(answer.v, view, number)
            value, promised = self._primal(new), self._promised(view, answer, H, d)
            # where curvature has no bound, a step that went far astray tells of places that no step leads to
            if problem.loss.smoothness is not None or value - primal <= ASTRAY * max(promised, 0.0):
                self.curvature.learn(d, new.gradient - view.gradient)
            taken = value <= primal - ARMIJO * max(promised, 0.0) + BALANCED * abs(primal)
            gained = primal - value
            made = self._certificate(new, answer.y, ask=number % LOOK == LOOK - 1)
            yield self._proposal(new, answer, made)
            better = made.gap < 0.9 * best or gained > 1e-3 * goal.allowed(value)
            idle, best = 0 if better else idle + 1, min(best, made.gap)
            accuracy = max(0.3 * accuracy, FINEST) if not better else accuracy
            if idle > IDLE_CHEAP:
                return
            self._adapt(taken, gained, promised)
            if taken:
                view, primal = new, value
                self.engine.known = view.w, answer.y.copy()
            else:
                answer = Answer(view.w, problem.penalised(view.w), answer.y)

    def _model(self, view: View) -> Any:
        """The curvature at a point that was looked at."""
        return self.curvature.make(view, self.problem.floor, self.mu, self._extra(view))

    def _extra(self, view: View) -> float:
        """What every row counts for beside its own curvature."""
        return self.flat * self._steepest(view)

    def _look(self, w: Vector, view: View, number: int) -> View:
        """A look at the next point. Where rounds are many the sample is the likely reason: another one, drawn by the
        curvature where the run is now, comes with the same pass."""
        if number < self.due or self.curvature.rows >= self.problem.n:
            return self.problem.look(w)
        self.due *= 2  # so that few models are lost
        new, drawn = self.problem.look_and_draw(w, view)
        self.curvature.use(drawn)
        return new

    def _solve(self, model: Model, start: Answer, accuracy: float) -> Answer:
        if self.engine.inner is not None:
            found: Answer = self.engine.inner.solve(model, start, accuracy)
            return found
        v = model.w - np.linalg.lstsq(model.H, model.g, rcond=1e-12)[0]
        if not self.problem.fit_intercept:
            v[self.problem.intercept_slots] = 0.0
        return Answer(v, start.u, start.y)

    def _shortened(self, view: View, answer: Answer, H: Any) -> Answer:
        """As much of a step as the sample agrees with, where curvature has no bound: the exact slope and
        what the sample's loss bends by on the way tell whether the objective falls."""
        problem, terms, part = self.problem, self.curvature.terms, self.curvature.part
        d = answer.v - view.w
        if problem.loss.smoothness is not None or not d.any():
            return answer
        target, weight, offset = terms.target(part), terms.weight(part), terms.offset(part)
        at, along = (terms.scores(part, problem.seen_by_rows(w)) for w in (view.w, d))
        at = at + offset if offset.size else at
        before, x, _ = terms.loss.sums(at, target, weight)
        slope = float(view.gradient @ d) - float(x @ along) / problem.n
        penalty, promised = problem.penalty_value(problem.penalised(view.w)), self._promised(view, answer, H, d)
        promised = max(promised, 0.0)
        share, w = 1.0, answer.v
        for _ in range(HALVINGS):
            with np.errstate(over="ignore", invalid="ignore"):
                bent = (terms.loss.sums(at + share * along, target, weight)[0] - before) / problem.n
            fall = penalty - problem.penalty_value(problem.penalised(w)) - bent - share * slope
            if fall >= ARMIJO * share * promised:
                break
            share *= 0.5
            w = view.w + share * d
        return answer if share == 1.0 else Answer(w, problem.penalised(w), answer.y)

    def _adapt(self, taken: bool, gained: float, promised: float) -> None:
        """How much of its diagonal is added to the next curvature."""
        if not taken:
            self.accepted, self.refused = 0, self.refused + 1
            self.least = max(self.mu, 0.01)
            self.mu, self.growth = max(self.growth * self.mu, 0.02), min(2 * self.growth, 16.0)
            if self.problem.loss.smoothness is not None:
                # no curvature is larger than the sum of its diagonal; what is flat here may be bent there, though
                most = float(self.problem.size)
                self.mu, self.least = min(self.mu, most), min(self.least, 0.5 * most)
            self.flat = min(max(10 * self.flat, CAREFUL), 1.0)
            if self.flat >= 1.0 or self.refused % 3 == 0:
                # secants over long steps are means, and say less than what is near; without them the model is no
                # lower than the loss once every row counts for the most that it may
                self.curvature.forget()
            return
        self.refused, self.accepted, self.growth = 0, self.accepted + 1, 2.0
        self.flat = 0.0 if self.flat < 1e-2 else 0.2 * self.flat
        if self.accepted % 5 == 0:
            self.least *= 0.5
        share = gained / promised if promised > 0 else 1.0
        if share > 0.6:
            self.mu = max(0.4 * self.mu, 2 * self.least)
            self.mu = 0.0 if self.mu < 1e-3 else self.mu
        elif share < 0.15:
            self.mu = max(2 * self.mu, 0.01)

    def _promised(self, view: View, answer: Answer, H: Any, d: Vector) -> float:
        """What the model says the objective will fall by."""
        problem = self.problem
        before, after = (problem.penalty_value(problem.penalised(w)) for w in (view.w, answer.v))
        return -(float(view.gradient @ d) + 0.5 * float(d @ (H @ d)) + after - before)

    def _steepest(self, view: View) -> float:
        """The largest curvature of a row, or where there is none the mean."""
        return self.problem.loss.smoothness or view.bend

    def _primal(self, view: View) -> float:
        return view.loss + self.problem.penalty_value(self.problem.penalised(view.w))

    def _certificate(self, view: View, y: Vector, ask: bool = False) -> Certificate:
        """Of a point that was looked at. Where balancing the slopes takes passes of its own, they are made where the
        goal seems to be reached, or where somebody asks."""
        problem, passes = self.problem, self.problem.passes
        own = problem.n * y
        passes.may_balance = False
        try:
            made = problem.certified(view, own, enough=math.inf)
            if made.certified or not math.isfinite(made.primal):
                return made
            if ask or problem.promise(view, own) <= self.goal.allowed(made.primal):
                passes.may_balance = True
                made = problem.certified(view, own)
        finally:
            passes.may_balance = True
        return made

    def _proposal(self, view: View, answer: Answer, made: Certificate) -> Proposal:
        problem = self.problem
        at = Iterate(view.w, np.zeros(0), problem.n * answer.y, problem.n * view.gradient, problem.penalised(view.w))
        counted = problem.passes
        passes, counted.told = counted.count - counted.told, counted.count
        return Proposal(at, made.primal, float(passes), NAME, made, exact=True, nanoseconds=1.0)

    def _over(self) -> bool:
        return time.perf_counter() > self.goal.deadline
