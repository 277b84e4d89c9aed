r"""Accelerated proximal gradients: for penalties that are harder than the data.

Along chains, grids and other graphs the steps of SDCA-ADMM carry news from feature to feature, and where the features
are many that takes many of them. Here every step asks for the whole prox of :math:`\psi(B^\top w)`
(:mod:`fenchel.proximal`), to the accuracy that the last move of w makes worthwhile or in so many rounds, and for two
products with the data (Beck and Teboulle, 2009, with the restarts of O'Donoghue and Candès, 2015). The prox comes with
its dual variables, which are those of the certificate.
"""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from ...data import ROUGH
from ...kernels.rules import INEXACT, JUMP, ROUNDING, TRIES
from ...prices import (
    accelerated_nanoseconds,
    epoch_nanoseconds,
    prox_excess_nanoseconds,
    prox_nanoseconds,
    prox_round_nanoseconds,
)
from ...problem import Problem
from ...problem.convergence import Convergence
from ...proximal import CompiledPenalty, LatticeProx, StructuredProx, has_directions
from .manifold import Point

if TYPE_CHECKING:
    from ..roles import Iterate

_FIRST, _LAST = 20, 5  # steps before the first certificate, and between the last ones
ROUNDS, SWIFT = 30, 100  # of a prox that has no closed form: general maps, and grids, whose rounds are cheap
_LONGEST = 1.0  # of the steps so far: without a certificate
_HOPE = 0.9  # of the steps that seem to be left, likewise
_FEWEST = 30  # steps that an attempt must be able to afford
_BEYOND = 3.5  # times the budget, where the goal is in sight
_FINE, _FINE_STEPS = 400, 10  # rounds and steps for zeros and ties that are to be believed
_MOST = 10_000  # steps
_ROUNDS, _MORE = 10, 30  # for the dual variables of a certificate; on grids
# directions that seem to share the curvature of the loss: for steps that suit any prox, at most, and features for each
_STEEPEST, _FLATTEST, _SPREAD = 20.0, 500.0, 4.0
_GROW, _SHRINK = 1.7, 0.97  # of the curvature: where a step was too long, and after every step


def applies(problem: Problem) -> bool:
    """Whether the loss is smooth and the penalty joins features in pairs; the prox of a trend is too hard itself."""
    return problem.loss.smoothness is not None and problem.widest == 2


class Accelerated:
    """The method for one problem; see :meth:`run`."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.deadline = math.inf  # by the clock of time.perf_counter

    @functools.cached_property
    def prox(self):
        return StructuredProx(self.problem)

    @functools.cached_property
    def lattice(self):
        """The prox for chains and grids; None elsewhere."""
        return LatticeProx.make(self.prox) if has_directions(self.problem) else None

    @property
    def exact(self) -> bool:
        """Whether the prox has no error, so that its zeros and ties are those of the answer early on."""
        return self.lattice is not None and self.lattice.exact

    @functools.cached_property
    def penalty(self):
        return CompiledPenalty(self.problem)

    @property
    def step_nanoseconds(self) -> float:
        """What a step costs, by a model, with some twenty rounds of its prox."""
        return self._bare_step + prox_nanoseconds(self._round)

    @property
    def _bare_step(self) -> float:
        """The same without the prox, which has to be prepared before its price is known."""
        return accelerated_nanoseconds(self.problem)

    @property
    def swift(self) -> bool:
        """Whether a step costs less than an epoch, and its prox is nearly exact."""
        return self.lattice is not None and self.step_nanoseconds < epoch_nanoseconds(self.problem)

    @property
    def _round(self) -> float:
        """Nanoseconds of a round of the prox."""
        return prox_round_nanoseconds(self.problem, chain=self.exact, grid=self.lattice is not None)

    def run(self, w, y, *, tol: float, gap: float, budget: float) -> Point | None:
        """Steps from (w, y) until the relative gap, `gap` at the start, is at most tol; None where the budget allows
        too few.

        They go on beyond the budget, up to some times, if at their pace so far they are there by then.
        """
        if budget < _FEWEST * self._bare_step or budget < _FEWEST * self.step_nanoseconds:
            return None
        rounds, parts = (ROUNDS, _STEEPEST) if self.lattice is None else (SWIFT, self._directions)
        return self._steps(w, y, tol, gap, budget, _MOST, rounds, parts)

    def _steps(self, w, y, tol, gap, budget, most, rounds, parts):
        problem = self.problem
        self.spent = self.passes = 0.0
        rule = Convergence.of(problem, tol)
        slope, info = y / problem.n - self.prox.folded * problem.penalised(w), np.zeros(4)
        data = Products(problem, problem.data.single if gap > ROUGH else None)
        at, scores = w.copy(), data.scores(w)
        ahead, ahead_scores = at, scores
        curvature = problem.loss.smoothness * self._mean_square() / parts
        theta, share, before, moved, best, due = 1.0, 0.0, slope, None, None, min(_FIRST, most)
        for step in range(1, most + 1):
            value = problem.mean_loss(ahead_scores)
            gradient = data.gradient_sum(problem.slopes_at(ahead_scores)) / problem.n
            lead = 0.0 if self.lattice is None else share  # dual variables of few rounds are no guide ahead
            start, before = slope + lead * (slope - before), slope
            for _ in range(TRIES):
                slope = start.copy()
                new = self._prox(ahead - gradient / curvature, 1 / curvature, slope, moved, info, rounds)
                move = new - ahead
                square = float(move @ move)
                new_scores = data.scores(new)
                self.passes += 0.5
                reached = problem.mean_loss(new_scores)
                rise = reached - value - gradient @ move
                if rise <= 0.5 * curvature * square + ROUNDING * abs(value):
                    break
                curvature *= min(max(_GROW, 2 * rise / max(curvature * square, 1e-300)), JUMP)
            else:
                break  # the loss is not what it says, or not finite
            self.passes += 0.5
            self.spent += self.step_nanoseconds + prox_excess_nanoseconds(info[2], self._round)
            moved = float((new - at) @ (new - at))
            turned = float((ahead - new) @ (new - at)) > 0
            following = 1.0 if turned else 0.5 * (1 + math.sqrt(1 + 4 * theta * theta))
            share = 0.0 if turned else (theta - 1) / following
            ahead, ahead_scores = new + share * (new - at), new_scores + share * (new_scores - scores)
            at, scores, theta = new, new_scores, following
            if curvature * square > 100 * ROUNDING * abs(value):  # otherwise the test of the step said nothing
                curvature *= _SHRINK
            late = time.perf_counter() > self.deadline
            if step == due or moved == 0 or late:
                last = gap if best is None else best.made.relative_gap
                point = self._certified(at, slope, reached + problem.penalty_value(problem.penalised(at)))
                if best is None or point.made.relative_gap < best.made.relative_gap:
                    best = point
                now = max(best.made.relative_gap, 1e-300)
                gained = math.log(max(gap / now, 1.0))
                # of what was spent, until the goal
                rest = math.log(max(now / max(tol, 1e-300), 1.0)) / max(gained, 1e-3)
                if rule.reached(best.made) or moved == 0 or late:
                    break
                if self.spent > budget and (1 + rest) * self.spent > _BEYOND * budget:
                    break
                due = step + math.ceil(min(max(_HOPE * rest * step, _LAST), _LONGEST * step))
                stuck = now > 0.5 * last
                if stuck and self.lattice is not None:
                    rounds = min(2 * rounds, _FINE)
                if data.single and (now <= ROUGH or stuck):
                    data = Products(problem)
                    scores, ahead_scores = data.scores(at), data.scores(ahead)
                    self.passes += 1.0
        if best is not None:
            best.passes = self.passes
        return best

    def sharpened(self, point: Point | Iterate) -> Point | None:
        """Some steps from a point of :meth:`run` with so many rounds of the prox that its zeros and ties are exact.

        None where numbers are not finite any more.
        """
        passes, spent = self.passes, self.spent
        sharp = self._steps(point.w, point.y, 0.0, 1.0, 0.0, _FINE_STEPS, _FINE, _STEEPEST)
        self.passes += passes
        self.spent += spent
        return sharp

    def _prox(self, v, eta, slope, moved, info, most):
        """The prox at v; `slope` is where it begins, and what it leaves."""
        from ...kernels.prox import structured_prox

        enough = max(INEXACT * (1e-4 * float(v @ v) if moved is None else moved), 1e-300)
        if self.lattice is not None:
            return self.lattice(v, eta, slope, (enough, most), info)
        new, self.u = np.empty_like(v), np.zeros(self.problem.d)
        structured_prox(v, eta, slope, new, self.u, self.prox.solver, (1e-15, enough / (eta * 1e-15), most), info)
        self.prox.check()
        return new

    def _certified(self, w, slope, primal):
        """w with its dual variables and the certificate; its zeros and ties are made exact unless that costs more than
        `primal`, the objective up to rounding of the data."""
        problem = self.problem
        u = self.u if self.lattice is None else self.lattice.structure(slope)
        exact = problem.within(problem.snap(w, u))
        scores, value = self._objective(exact)
        if value > primal:
            rough_scores, rough = self._objective(w)
            if rough < value:
                exact, scores, value = w, rough_scores, rough
        x = problem.slopes_at(scores)
        zx = problem.gradient_sum(x)
        self.passes += 0.5
        y = self._balanced(zx, problem.n * self.prox.dual(slope, exact))
        point = Point(exact, x, y, zx, u, value)
        point.made = problem.certificate(point, fresh=False, primal=value)
        return point

    def _objective(self, w):
        """The scores at w, and the objective."""
        scores = self.problem.scores(w)
        self.passes += 0.5
        return scores, self.problem.mean_loss(scores) + self.problem.penalty_value(self.problem.penalised(w))

    def _balanced(self, zx, y):
        """y with Zx + By = 0, as far inside the ball of the penalty as some rounds between the two bring it
        (Douglas and Rachford)."""
        from ...kernels.prox import block_prox

        problem, penalty = self.problem, self.penalty
        if not problem.gram.direct or penalty.ridge.any():
            return y
        middle, best, least = y, y, np.inf
        for _ in range(_ROUNDS if self.lattice is None or self.exact else _MORE):
            gap = (zx + problem.spread(middle))[problem.feature_slots]
            balanced = middle - problem.map @ problem.gram.solve(gap)
            outside = 2 * balanced - middle
            shrunk = outside / problem.n
            block_prox(penalty.blocks, shrunk, penalty.scale)
            penalty.check()
            middle = middle + (outside - problem.n * shrunk) - balanced
            size = problem.gauge(balanced / problem.n)
            if size < least:
                best, least = balanced, size
            if least <= 1.0:
                break
        return best

    @property
    def _directions(self):
        """Directions that seem to share the curvature of the loss; where they are fewer, the first step tells."""
        return min(max(self.problem.p / _SPREAD, _STEEPEST), _FLATTEST)

    def _mean_square(self):
        """Mean square length of a row."""
        return float(self.problem.data.mean_squares.sum()) + float(self.problem.fit_intercept)


class Products:
    """Products with the data, or with its numbers in single precision."""

    def __init__(self, problem: Problem, single=None):
        self.problem, self.single = problem, single is not None
        self.arrays = single or problem.data.arrays

    def scores(self, w):
        from ...kernels import rows

        out = np.empty(self.problem.visits)
        rows.scores(self.arrays, self.problem.layout, w, out)
        return out

    def gradient_sum(self, x):
        from ...kernels import rows

        out = np.zeros(self.problem.size)
        rows.combine(self.arrays, self.problem.layout, x, out)
        return self.problem._mask(out)
