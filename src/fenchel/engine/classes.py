"""Several classes that the loss sees together: accelerated steps with the whole prox, then working sets.

A step costs two products with the data for all classes at once, which a library of linear algebra makes fast, and a
look at the loss. The penalty falls into units, so that its prox has a closed form. Once the steps have cost as much as
models of the coefficients that are not zero would, these go on (``rounds.py``), so that the whole costs little more
than twice the better of the two. A proof is made where an estimate of the gap says that it may succeed, and now and
then in any case, so that epochs of the method get their turns.

Symbols: w the point and v ahead of it; L curvature, one number; x slopes of the rows and g = Zx/n, both at v.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from ..kernels.rules import PATIENCE, TURNS
from ..prices import Prices
from ..problem import Problem
from .choices import CALLS
from .roles import Goal, Iterate, Proposal
from .rounds import WorkingSets
from .units import Units, Vector, dual_variables, units_of
from .whole import Products, visit_weights

NAME = "accelerated steps"
LOOK, LONGER = 16, 2.0  # steps before the first proof, and times as many before the next one at the most
GRAMS, MODELS = 2, 6  # that working sets take from a point nearby; larger: more accelerated steps before them


class RowClasses:
    """The engine for smooth losses that see several scores of a row together."""

    name = NAME

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self.sets: WorkingSets | None = None
        self.last: _Steps | None = None  # of the alpha before

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if not problem.loss.coupled:
            return f"{type(problem.loss).__name__} sees every score of a row alone"
        if problem.loss.kinked:
            return f"{type(problem.loss).__name__} has kinks"
        if isinstance(units_of(problem), str):
            return "epochs of whole rows are as fast where the prox has no closed form"
        return None if problem.d else "there is no penalty"

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        self.sets, self.last = WorkingSets(self.prices), None
        if self.sets.unfit(problem) is None:
            self.sets.begin(problem, alphas, tol)
        else:
            self.sets = None

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, until somebody stops asking or nothing is gained."""
        if not problem.d:
            return  # alpha = 0 has no penalty
        units = units_of(problem)
        if isinstance(units, str):
            return
        sets = self.sets
        if sets is None or not sets.begun:
            steps = _Steps(problem, units, self.prices)
            steps.begin(start, self.last)
            self.last = steps  # now, for nobody comes back here from a good answer
            yield from self._steps(steps, goal, sets is not None)
            start = steps.iterate()
        if sets is not None:
            yield from sets.rounds(problem, start, goal)

    def _steps(self, steps: _Steps, goal: Goal, models: bool) -> Iterator[Proposal]:
        """Steps, with a proof when one seems to be due; until models seem to cost no more than the steps have."""
        due, best, idle, known, trust = LOOK, math.inf, 0, 0, 1.0
        before: tuple[int, float] | None = None
        while steps.passes < goal.passes and time.perf_counter() < goal.deadline:
            steps.step()
            if steps.count < due and steps.count % 4:
                continue
            if models and steps.spent > self._models_price(steps):
                return
            guess = steps.estimate()
            if steps.count < due and trust * guess > goal.allowed(steps.primal):
                continue
            proposal = steps.proposal(goal)
            yield proposal
            assert proposal.certificate is not None
            gap = proposal.certificate.gap
            trust = max(gap / guess, 1.0) if guess > 0 and gap < math.inf else 2 * trust
            idle = 0 if gap < 0.7 * best else idle + 1
            if idle > PATIENCE or not math.isfinite(steps.value):
                return
            best, wait = min(best, gap), LONGER * steps.count
            if before is not None and 0 < gap < before[1]:  # on the line through the logarithms of the last two gaps
                pace = math.log(before[1] / gap) / (steps.count - before[0])
                left = math.log(max(gap / max(goal.allowed(proposal.primal), 1e-300), 1.0)) / pace
                wait = min(steps.count + max(1.1 * left, 0.1 * steps.count), wait)
                if models and left * steps.price > self._models_price(steps):
                    return
            before, known = (steps.count, gap), steps.count
            due = max(int(wait), known + 3)

    def _models_price(self, steps: _Steps) -> float:
        """Nanoseconds of working sets from here on, by the coefficients that are not zero."""
        problem, prices = steps.problem, self.prices
        size, n, data = float(np.count_nonzero(steps.w)), problem.n, problem.data
        gram = n * size * size / 2 * prices.syrk32 + 2 * n * size * prices.cast
        if data.sparse:
            share = size / max(steps.w.size, 1)
            gram = min(gram, share**2 * data.pairs * problem.vectors**2 * prices.csr_gram)
        solve = size**3 / 6 * prices.potrf + TURNS * size * size * prices.descent
        return float(GRAMS * (gram + solve) + MODELS * (steps.price + CALLS * prices.call))


class _Steps:
    """Accelerated proximal steps with backtracking and restarts (Beck and Teboulle, 2009; O'Donoghue and Candès,
    2015)."""

    def __init__(self, problem: Problem, units: Units, prices: Prices) -> None:
        self.problem, self.units, self.prices, self.products = problem, units, prices, Products(problem)
        self.weight = visit_weights(problem)
        self.count, self.passes, self.looked = 0, 0.0, 0.0
        self.spent = self.offered = 0.0  # nanoseconds
        data = problem.data
        entry = prices.csr_pass if data.sparse else 0.5 * prices.gemv
        # of a step: two products, two looks at the loss
        self.price = float(2 * problem.vectors * entry * data.stored + prices.loss * problem.visits + 30 * prices.call)
        self.w: Vector = np.zeros(problem.size)
        self.L, self.value = 1.0, math.inf
        self.x: Vector | None = None

    def begin(self, start: Iterate | None, last: _Steps | None) -> None:
        """Begin at a point, at the answer for another alpha, or at the best point that the penalty does not see."""
        problem = self.problem
        if start is not None:
            w = start.w
        elif last is not None:
            w = last.w
        else:
            zero = problem.zero_answer
            w = np.zeros(problem.size) if zero is None or zero.w.size != problem.size else zero.w
        self.w = problem.within(np.array(w, dtype=float))
        self.scores = self.products.scores(self.w)
        self.ahead, self.ahead_scores, self.theta = self.w, self.scores, 1.0
        squares = problem.data.mean_squares
        if last is not None:
            self.L = last.L
        else:  # the curvature of uncertain rows, in a direction of many columns at the least
            least = max(float(squares.max(initial=0.0)), float(squares.sum()) / max(min(problem.n, problem.p), 1))
            self.L = max(least, 1.0 if problem.fit_intercept else 0.0, 1e-300) / problem.vectors

    def step(self) -> None:
        """One step; its length is shortened until the model with curvature L is an upper bound."""
        problem, n, loss = self.problem, self.problem.n, self.problem.loss
        value, self.x, _ = loss.sums(problem.seen(self.ahead_scores), problem.target, self.weight)
        self.g = self.products.sums(self.x)
        tried = 0
        while True:
            tried += 1
            new = self.ahead - self.g / self.L
            coefs = self._coefs(new)
            coefs[:] = self.units.prox(coefs.ravel(), 1 / self.L).reshape(coefs.shape)
            move, scores = new - self.ahead, self.products.scores(new)
            square = float(move @ move)
            reached = loss.total(problem.seen(scores), problem.target, self.weight)
            rise = (reached - value) / n - float(self.g @ move)
            if not square or not rise > 0.5 * self.L * square * (1 + 1e-9) + 1e-14 * abs(value) / n:
                break
            self.L *= min(max(1.5, 2 * rise / (self.L * square)), 20.0)
        way = new - self.w
        if float((self.ahead - new) @ way) > 0:
            self.theta = 1.0
        following = 0.5 * (1 + math.sqrt(1 + 4 * self.theta**2))
        share = (self.theta - 1) / following
        self.shown = value / n, self._coefs(self.ahead).ravel()
        self.ahead, self.ahead_scores = new + share * way, scores + share * (scores - self.scores)
        self.w, self.scores, self.theta, self.value = new, scores, following, reached / n
        self.L *= 0.98
        self.count += 1
        self.passes += 0.5 + 0.5 * tried
        self.spent += self.price * (0.5 + 0.5 * tried)

    def _coefs(self, w: Vector) -> Vector:
        """The coefficients without the intercepts, a row for each class."""
        return w.reshape(self.problem.vectors, -1)[:, :-1]

    @property
    def primal(self) -> float:
        w = self._coefs(self.w).ravel()
        return self.value + self.units.value(w) + self.units.quadratic(w)

    def estimate(self) -> float:
        """The gap, about: intercepts are let be, and the loss's conjugate along multiples of the slopes is taken to be
        the parabola through what is known of it, its value and slope here and its value at zero."""
        (value, ahead), slope = self.shown, -self._coefs(self.g).ravel()
        share = self.units.scaling(slope)
        conjugate = (1 - share) ** 2 * (value - self.problem._dual_at_zero) - value - share * float(slope @ ahead)
        return self.primal + conjugate + self.units.conjugate(share * slope)

    def iterate(self) -> Iterate:
        """The point, with the slopes ahead of the one before it."""
        problem, n = self.problem, self.problem.n
        if self.x is None:
            self.x = problem.slopes_at(self.scores)
            self.g = self.products.sums(self.x)
        zx = n * self.g
        return Iterate(self.w, self.x, dual_variables(problem, self.units, zx), zx, problem.penalised(self.w),
                       self.scores)  # fmt: skip

    def proposal(self, goal: Goal) -> Proposal:
        """The point, with its certificate."""
        problem, at, primal = self.problem, self.iterate(), self.primal
        made = problem.certificate(at, fresh=False, primal=primal, enough=primal - goal.allowed(primal))
        self.passes += 1.0
        self.spent += 2 * self.price
        passes, self.looked = self.passes - self.looked, self.passes
        spent, self.offered = self.spent - self.offered, self.spent
        return Proposal(at, primal, passes, NAME, made, exact=True, nanoseconds=spent)
