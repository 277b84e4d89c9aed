r"""Quadratic models of all coefficients: proximal Newton rounds for any map, smooth losses, single fits and paths.

A round makes or keeps a curvature H of the loss, minimises the model with the penalty (ADMM with one factor), goes as
far as the true objective falls, and foresees what gap a repair through the curvature would prove. Where that suffices
it is proven, over all rows, by ``Problem.certificate``.

A curvature is dear. Before the first one accelerated proximal steps are made on the data, which need none, until they
have cost about as much; they go on where the rest of the way seems cheaper than that. So the whole costs little more
than twice the better of the two.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ..foundation.numerics import BALANCED, DIGITS
from ..kernels.rules import LONGER, LOOK, ROUNDS, STAGE_TOL
from ..penalties import Block
from ..prices import Prices, epoch_nanoseconds
from ..problem import Certificate, Problem
from .accuracy import CHANGED, FINE, FINEST, FIRM, HOPE, IDLE
from .curvatures.step_length import PREPARE, StepLength
from .curvatures.whole_gram import WholeGram
from .inner.admm import Admm
from .line_search import shortened
from .parts import Answer, InnerSolver, Model, Step, Vector
from .repair import AGAIN, Repair
from .roles import Goal, Iterate, Proposal
from .whole import WholePoint

NAME = "quadratic models"
MOST = 1024  # features; more: factors take too long
STALE = 0.35  # share of the gradient's change that H may miss before it is made anew; larger: fewer and worse models
MANY = 32  # steps that tell something of their pace
RETRY, WAIT = 1.2, 0.5  # times the steps at a proof that failed, and more for every pass it took: when to try again
ROUNDS_AT_LEAST, ROUNDS_EACH = 40, 2.0  # of conjugate gradients for a proof, and more for every step that was made
REPAIR = 8.0  # passes that such a repair takes, about
# curvatures and models of a fit, medians over 58 random problems: with a quadratic loss, and with others
USUAL_QUADRATIC, USUAL = (1, 2), (3, 7)
TURNING = 2.0  # times as much where the loss has flat parts: a fifth of such fits cost 4 to 20 times; less: they do
HOPELESS = 2.5  # times the price of models: if the rest seems to cost more, steps end; larger: they end late
SEVERAL = 4  # alphas that share a curvature and are worth it


class QuadraticModels:
    """The engine for any penalty and smooth losses, where models with all coefficients are affordable."""

    name = NAME

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self._fit: _Fit | None = None
        self._several = False

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if problem.loss.across_rows:
            return f"{type(problem.loss).__name__} is no sum over rows"
        if problem.p > MOST:
            return f"{problem.p} features are too many for a model of all of them"
        if any(_bounds_several(block) for block in problem.blocks):
            return "bounds on sums or differences of features are not met by what a model leads to"
        unfit = WholeGram.unfit(problem) or Admm.unfit(problem)
        if unfit is not None:
            return unfit
        if _spoils_models(problem, several=False) and StepLength.unfit(problem) is not None:
            return "rows without curvature, or few rows where groups overlap, make models that change too much"
        return None

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        # along a path the curvature is kept, which pays for it
        self._fit, self._several = None, len(alphas) >= SEVERAL

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, until somebody stops asking or nothing is gained."""
        if Admm.unfit(problem) is not None:
            return  # alpha = 0 has no penalty
        if self._fit is None or self._fit.problem.d != problem.d:
            self._fit = _Fit(problem, self.prices, self._several, not _spoils_models(problem, self._several))
        yield from self._fit.rounds(problem, start, goal)


def _bounds_several(block: Block) -> bool:
    """Whether a block sets bounds to more than single features."""
    return block.function.limits(block.d) is not None and bool(np.any(np.diff(block.matrix.indptr) > 1))


def _spoils_models(problem: Problem, several: bool) -> bool:
    """Whether rows without curvature change their minds, and models with them; or Newton's method on faces is faster
    than they are. Along a path answers are near each other, and many rows change little."""
    if problem.n < problem.p and problem.widest <= 1:
        return True
    if not _has_flat_parts(problem):
        return False
    few = problem.n < FIRM * problem.p
    return (problem.data.sparse and (few or not several)) or (problem.loss.classification and few)


def _has_flat_parts(problem: Problem) -> bool:
    """Whether the loss has no curvature in places, as far as three looks tell."""
    loss = cast(Any, problem.loss)

    def look() -> bool:
        bends = loss.curvature(np.array([-10.0, 0.0, 10.0]), np.repeat(problem.target[:1], 3))
        return not loss.quadratic and not bool(np.all(bends))

    found: bool = problem.remembered("flat parts of the loss", look)
    return found


@dataclasses.dataclass
class _Known:
    """The answer at an alpha."""

    alpha: float
    w: Vector
    y: Vector
    scores: Vector


class _Fit:
    """The memory of an engine: the curvature, the inner solver's pace, the last answers along a path."""

    def __init__(self, problem: Problem, prices: Prices, several: bool, models: bool = True) -> None:
        self.problem, self.prices, self.several, self.models = problem, prices, several, models
        self.spent = self.before = 0.0  # nanoseconds: since the last proposal, and at this alpha before that
        self.gram = WholeGram(problem, prices)
        self._inner: InnerSolver | None = None
        self.step: Step = shortened
        self.known: list[_Known] = []
        self.ahead = 0.0  # accelerated steps until another proof by balance
        self.passes = self.read = 0.0  # over the data: since the last proposal, and at this alpha

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        if self.problem is not problem:
            self.problem = problem
            if self._inner is not None:
                self._inner.move_to(problem)
        self.repair, self.read, self.before = Repair(problem), 0.0, 0.0
        point, answer = self._begin(start)
        if self.gram.matrix is None and start is None:  # near an answer rows count for what they are
            self.gram.begin(point.h)
        # what epochs surely cost, and Newton's method on faces between them, which are fast where groups overlap
        epochs = epoch_nanoseconds(problem) * max(math.log(1 / max(goal.tol, DIGITS)), 1.0)
        models, apart = self.models, problem.widest <= 1
        if apart and not self.several and self.gram.matrix is None and self.gram.price() > epochs:
            if problem.n >= problem.p:
                return  # an epoch goes further than a step that reads as much
            models = False
        if self.gram.matrix is None and not (self.several and models) and StepLength.unfit(problem) is None:
            buy = self.price() if models else HOPELESS * epochs if apart else math.inf
            least = LOOK * StepLength.price(problem, self.prices)
            if buy > PREPARE and not (apart and not models and least > epochs):
                steps = StepLength(problem, self.prices)
                patience = HOPELESS * (buy if models else epochs)
                if goal.nanoseconds < math.inf:  # somebody has said what steps may cost
                    patience = max(patience, goal.nanoseconds)
                yield from self._rent(steps, point, answer, goal, buy, patience)
                if not steps.failed:
                    u, y = steps.structure()
                    point = WholePoint(problem, steps.w, steps.scores)
                    answer = Answer(point.w, u, y)
        if models:
            yield from self._models(point, answer, goal)

    @property
    def inner(self) -> InnerSolver:
        """Made when it is first asked for: small problems do without it."""
        if self._inner is None:
            self._inner = Admm(self.problem, self.prices)
        return self._inner

    def price(self) -> float:
        """Nanoseconds of an answer by models: one curvature, or some where it changes, and what is solved with them."""
        grams, models = USUAL_QUADRATIC if self.problem.loss.quadratic else USUAL
        inner = Admm.price_for(self.problem, self.prices) + models * self.prices.newton_call
        return (grams * self.gram.price() + inner) * (TURNING if _has_flat_parts(self.problem) else 1.0)

    def _begin(self, start: Iterate | None) -> tuple[WholePoint, Answer]:
        """The point to start at: given, foreseen from the answers before, or zero."""
        problem = self.problem
        scores: Vector | None = None
        if start is not None:
            w, y, scores = start.w, start.y / problem.n, start.scores
        elif self.known:
            w, y, scores = self._predicted()
        else:
            w, y = np.zeros(problem.size), np.zeros(problem.d)
        inside = problem.within(w.copy())
        point = WholePoint(problem, inside, scores if np.array_equal(inside, w) else None)
        return point, Answer(point.w, point.at.copy(), y.copy())

    def _predicted(self) -> tuple[Vector, Vector, Vector]:
        """On the line through the last two answers: between kinks they are nearly linear in alpha."""
        first, last = self.known[0], self.known[-1]
        if first is last or first.alpha == last.alpha:
            return last.w, last.y, last.scores
        ahead = (self.problem.alpha - last.alpha) / (last.alpha - first.alpha)
        ahead = min(max(ahead, 0.0), 1.0)
        w, y = last.w + ahead * (last.w - first.w), last.y + ahead * (last.y - first.y)
        return w, y, last.scores + ahead * (last.scores - first.scores)

    def _remember(self, point: WholePoint | Iterate, y: Vector) -> None:
        known = [one for one in self.known if one.alpha != self.problem.alpha]
        assert point.scores is not None
        self.known = [*known[-1:], _Known(self.problem.alpha, point.w, y.copy(), point.scores)]

    def _count(self, passes: float) -> None:
        self.passes += passes
        self.read += passes

    def _made(self, curvature: Vector, rough: bool = False) -> None:
        """A curvature is made and paid for."""
        share = self.gram.make(curvature, rough)
        self._count(share)
        self.spent += share * self.gram.price()

    @property
    def _pass_nanoseconds(self) -> float:
        """Of a pass over the data."""
        return StepLength.price(self.problem, self.prices)

    def _read(self, passes: float) -> None:
        """Passes over the data, beside those of accelerated steps, are paid for."""
        self._count(passes)
        self.spent += passes * self._pass_nanoseconds

    def _offered(self, proposal: Proposal) -> Proposal:
        proposal.passes, self.passes = self.passes, 0.0
        proposal.nanoseconds, self.spent = self.spent, 0.0
        self.before += proposal.nanoseconds
        return proposal

    def _over(self, goal: Goal) -> bool:
        """Whether a limit is reached."""
        spent = self.before + self.spent > goal.nanoseconds
        return spent or self.read >= goal.passes or time.perf_counter() > goal.deadline

    # -- accelerated steps -----------------------------------------------------------------------------

    def _rent(
        self, steps: StepLength, point: WholePoint, answer: Answer, goal: Goal, buy: float, patience: float
    ) -> Iterator[Proposal]:
        """Accelerated steps until they have cost what models would, or seem to cost more than `patience` in all."""
        repair, offered = self.repair, 0.0
        steps.begin(point.w, point.scores, answer.y)
        spent = proofs = 0.0
        again = 0  # steps before which no proof is tried
        while not steps.failed:
            batch = max(LOOK, int((LONGER - 1) * steps.count))
            if steps.count and spent < buy < math.inf:
                batch = min(batch, math.ceil((buy - spent) / (steps.nanoseconds / steps.count)))
            if steps.count < again:
                steps.go(0.0, min(batch, again - steps.count))
            else:
                steps.go(goal.allowed(steps.primal if steps.count else point.primal), batch)
            if steps.failed:
                return
            before, spent = spent, PREPARE + proofs + steps.nanoseconds
            self.spent += spent - before
            primal, last = steps.primal, self._over(goal) or steps.still
            allowed, left = goal.allowed(primal), steps.left
            found: tuple[Iterate, Certificate] | None = None
            late = time.perf_counter() > goal.deadline
            if not late and (last or (left <= allowed and steps.count >= again)):
                made = self.gram.matrix
                found = self._proof(steps, allowed, last)
                proofs += steps.pass_nanoseconds * repair.passes
                if self.gram.matrix is not made:
                    proofs += self._proof_price
                    self._count(1.0)
                again = steps.count + math.ceil(max((RETRY - 1) * steps.count, WAIT * repair.passes, self.ahead))
            one = steps.nanoseconds / steps.count
            rest = max(steps.steps_left(allowed), again - steps.count) * one
            # others may be faster: whatever the steps promise, they give a sign whenever they have cost as much again
            slow = steps.count >= MANY and spent > 2 * max(offered, USUAL[1] * self.prices.newton_call)
            if found is None and (last or (buy == math.inf and slow)):
                at = self._of_steps(steps)
                found = at, self.problem.certificate(at, primal=primal, enough=primal - allowed)
            self._count(steps.passes + repair.passes)
            steps.passes = repair.passes = 0.0
            if found is not None:
                if goal.reached(found[1]):
                    self._remember(found[0], found[0].y / self.problem.n)
                offered = spent
                yield self._offered(Proposal(found[0], primal, 0.0, NAME, found[1], steps.exact))
            if last:
                return
            if spent + one > buy:
                return
            if rest > max(patience - spent, spent):
                return

    def _proof(self, steps: StepLength, allowed: float, last: bool) -> tuple[Iterate, Certificate] | None:
        """Of where the steps are, by the curvature; None where that does not suffice.

        Where there are no models to turn to, a dual point that is brought into balance is tried first. Its gap is about
        the root of what is left: where steps until that suffices cost less than a proof by the curvature, they come
        before it.
        """
        at, most = self._of_steps(steps), ROUNDS_AT_LEAST + int(ROUNDS_EACH * steps.count)
        by_curvature, self.ahead = most * steps.pass_nanoseconds, 0.0
        if not self.models and self.problem.gram.direct:
            zx = self.problem.gradient_sum(at.x)
            self.repair.passes += 1.0
            near = Iterate(at.w, at.x, steps.balanced(zx, at.y), zx, at.u, at.scores)
            made = self.problem.certificate(near, fresh=False, primal=steps.primal, enough=steps.primal - allowed)
            if made.gap <= allowed:
                return near, made
            rest = steps.steps_left(max(steps.left, BALANCED * allowed) * (allowed / made.gap) ** 2)
            if not last and rest * steps.nanoseconds / steps.count < by_curvature:
                self.ahead = min(rest, steps.count)
                return None
        if not self.problem.loss.quadratic:
            self.gram.matrix = self.gram.exact = None
        worth = self._proof_price / steps.pass_nanoseconds
        return self.repair.prove_by_rounds(at, steps.h.copy(), steps.primal, allowed, most, self.gram, worth)

    @property
    def _proof_price(self) -> float:
        """Nanoseconds of a curvature that a proof is made by, and of some factors."""
        factors = AGAIN * self.prices.potrf * self.problem.size**3 / 6
        return self.gram.price() + factors + self.prices.newton_call

    def _of_steps(self, steps: StepLength) -> Iterate:
        """Where accelerated steps are; nobody knows the sums of the slopes there."""
        u, y = steps.structure()
        n, none = self.problem.n, np.zeros(self.problem.size)
        return Iterate(steps.w.copy(), steps.x.copy(), n * y, none, u, steps.scores.copy())

    # -- models ----------------------------------------------------------------------------------------

    def _models(self, point: WholePoint, answer: Answer, goal: Goal) -> Iterator[Proposal]:
        """Rounds until a limit is reached or nothing is gained."""
        problem, gram, inner, repair = self.problem, self.gram, self.inner, self.repair
        quadratic = problem.loss.quadratic
        # from a prediction one model may do
        accuracy = FINE if quadratic or self.known else STAGE_TOL
        least, idle, kept, distrust, near = math.inf, 0, self.gram.matrix is not None, 1.0, False
        for number in range(ROUNDS):
            if gram.matrix is not None and not quadratic and gram.renewal(point.h) < self._pass_nanoseconds:
                gram.matrix = None
            if gram.matrix is None:
                self._made(point.h, rough=least > FINE * abs(point.primal))
                kept = False
            assert gram.matrix is not None and gram.exact is not None
            paid = inner.nanoseconds
            answer = inner.solve(Model(point.w, point.g, gram.matrix), answer, accuracy)
            self.spent += inner.nanoseconds - paid + self.prices.newton_call
            foreseen = gram.times(answer.v - point.w)
            taken = self.step(point, answer, foreseen)
            self._read(taken.passes)
            if taken.point is None:
                if not quadratic and not kept:
                    gram.refuse()
                if not quadratic or gram.single:
                    gram.precise, gram.matrix = quadratic, None
                accuracy = max(0.1 * accuracy, FINEST)
                idle += 1
                if idle > IDLE or self._over(goal):
                    return
                continue
            new, share = taken.point, taken.share
            foreseen = share * foreseen
            d, allowed = new.w - point.w, goal.allowed(new.primal)
            slopes = gram.along(d, new.scores - point.scores)
            if share == 1.0 and not gram.rough and (least <= HOPE * allowed or quadratic or self.known):
                proposal = self._ahead(point, new, answer, foreseen, slopes, allowed)
                if proposal is not None:
                    yield proposal
            change = new.g - point.g
            moved = new.x - point.x
            self._read(point.passes + new.passes)
            point.passes = new.passes = 0.0
            gained, point = point.primal - new.primal, new
            miss = 0.0
            if d.any():
                miss = float(np.linalg.norm(change - foreseen)) / max(float(np.linalg.norm(foreseen)), 1e-300)
            promise = repair.foresee(point.g, answer.y, point.at, point.penalty) if repair.use(gram.exact) else None
            gap = math.inf if promise is None else promise.gap
            over, late = self._over(goal), time.perf_counter() > goal.deadline
            idle, slow = (0 if gap < 0.7 * least else idle + 1), gap > 0.3 * least
            least = min(least, gap)
            # the next step is so short that the slopes which its model foresees are likely a proof, for fewer reads
            ready = distrust * gap <= allowed and not gram.rough and (near or gram.floor > 0.0)
            near = distrust * gap <= allowed
            if near and not gram.rough and gap <= FINE * allowed:
                plain = self._plain(point, answer, allowed)
                if plain is not None:
                    yield plain
            if ready and not quadratic and self._outdated(point):
                gram.floor = 0.0
                self._made(point.h)
                kept = False
                promise = repair.foresee(point.g, answer.y, point.at, point.penalty) if repair.use(gram.exact) else None
                gap = math.inf if promise is None else promise.gap
            if (ready and distrust * gap <= allowed) or over or idle > IDLE or number in (7, 15, 31):
                at = Iterate(point.w, point.x, problem.n * answer.y, problem.n * point.g, answer.u, point.scores)
                if promise is not None and not late:
                    at, made = repair.prove(at, point.g, point.h, point.primal, allowed)
                else:
                    made = problem.certificate(at, fresh=False, primal=point.primal, enough=point.primal - allowed)
                self._read(repair.passes)
                repair.passes = 0.0
                self._remember(point, at.y / problem.n)
                yield self._offered(Proposal(at, point.primal, 0.0, NAME, made))
                if distrust * gap <= allowed:
                    distrust = max(distrust, min(0.3 * made.gap / max(gap, 1e-300), 1e3 * distrust))
            if over or idle > IDLE:
                return
            accuracy = FINE if gap <= FINE * abs(point.primal) or quadratic else STAGE_TOL
            if idle > 1:  # the model's own error may be what is left
                accuracy = max(accuracy * 0.1 ** (idle - 1), FINEST)
            if gained <= BALANCED * abs(point.primal) or (quadratic and number):
                accuracy = FINEST
            if quadratic:
                if miss > STALE and gram.single:
                    gram.precise, gram.matrix = True, None
                continue
            if gram.floor and share == 1.0 and miss < 1.0:
                gram.trust()
            if miss > STALE or (gram.rough and (slow or gap <= FINE * abs(point.primal))):
                gram.matrix = None
            elif d.any():
                learnt = gram.learn(d, change, foreseen, moved, slopes)
                if learnt is not None:
                    inner.learn(gram.matrix, *learnt)

    def _ahead(
        self, point: WholePoint, new: WholePoint, answer: Answer, foreseen: Vector, slopes: Vector, allowed: float
    ) -> Proposal | None:
        """A proof of the new point by the slopes that the model foresaw there, which takes no gradient: they differ
        from the true ones by the square of the step. None where it seems not to suffice."""
        problem, repair = self.problem, self.repair
        assert self.gram.exact is not None
        if not repair.use(self.gram.exact):
            return None
        promise = repair.foresee(point.g + foreseen, answer.y, new.at, new.penalty)
        if promise is None or promise.gap > allowed:
            return None
        x = point.x + slopes
        if promise.gap + repair.model_gap(x, slopes, new.scores, new.loss) > allowed:
            return None
        at = Iterate(new.w, x, problem.n * answer.y, np.zeros(0), answer.u, new.scores)
        if promise.gap <= FINE * allowed:  # nearly in balance as they are
            at.x = np.clip(x, repair.low, repair.high)
            at.zx = problem.gradient_sum(at.x)
            repair.passes += 0.5
            made = problem.certificate(at, fresh=False, primal=new.primal, enough=new.primal - allowed)
        if promise.gap > FINE * allowed or not made.gap <= allowed:
            at, made = repair.prove_ahead(at, promise, self.gram.h, new.primal, allowed)
        self._read(point.passes + new.passes + repair.passes)
        point.passes = new.passes = repair.passes = 0.0
        self._remember(new, at.y / problem.n)
        return self._offered(Proposal(at, new.primal, 0.0, NAME, made))

    def _plain(self, point: WholePoint, answer: Answer, allowed: float) -> Proposal | None:
        """A proof by the slopes at a point, which takes no pass: their gap is of first order in what is left, so it
        is tried where next to nothing seems to be."""
        problem = self.problem
        at = Iterate(point.w, point.x, problem.n * answer.y, problem.n * point.g, answer.u, point.scores)
        made = problem.certificate(at, fresh=False, primal=point.primal, enough=point.primal - allowed)
        if not made.gap <= allowed:
            return None
        self._remember(point, answer.y)
        return self._offered(Proposal(at, point.primal, 0.0, NAME, made))

    def _outdated(self, point: WholePoint) -> bool:
        """Whether a curvature made here would save a proof more reads of the data than it costs."""
        change = float(np.abs(point.h - self.gram.h).sum()) / max(float(point.h.sum()), 1e-300)
        return change > CHANGED and self.gram.price() < REPAIR * StepLength.price(self.problem, self.prices)
