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

import numpy as np

from .manifold import Point
from .problem import Problem
from .proximal import CompiledPenalty, StructuredProx

_FIRST, _LAST = 10, 5  # steps before the first certificate, and between the last ones
_LONGEST = 1.0  # of the steps so far: without a certificate
_HOPE = 0.8  # of the steps that seem to be left, likewise
_FEWEST = 30  # steps that an attempt must be able to afford
_INEXACT = 0.02  # of the square of the last move: gap that a prox may leave
_BEYOND = 3.5  # times the budget, where the goal is in sight
_INNER = 30  # rounds of a prox: its dual variables go on from step to step, so that more of them gain little
_FINE, _FINE_STEPS = 400, 10  # rounds and steps for zeros and ties that are to be believed
_MOST = 10_000  # steps
_TRIES = 100  # of one step, each shorter than the one before
_ROUNDS = 10  # for the dual variables of a certificate
_GROW, _SHRINK = 1.7, 0.97  # of the curvature, where a step was too long, and after every step


def applies(problem: Problem) -> bool:
    """Whether the loss is smooth and the penalty joins features in pairs; the prox of a trend is too hard itself."""
    return problem.loss.smoothness is not None and np.diff(problem.map.indptr).max(initial=0) == 2


class Accelerated:
    """The method for one problem; see :meth:`run`."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.deadline = math.inf  # by the clock of time.perf_counter

    @functools.cached_property
    def prox(self):
        return StructuredProx(self.problem)

    @functools.cached_property
    def penalty(self):
        return CompiledPenalty(self.problem)

    @property
    def step_nanoseconds(self) -> float:
        """What a step costs, by a model, with some twenty rounds of its prox."""
        problem = self.problem
        work = problem.data.stored * problem.layout[0]
        products = (2.0 if problem.data.sparse else 0.4) * work
        return 3e5 + 2 * products + 60 * problem.visits + 20 * self._round

    @property
    def _round(self):
        return 8.0 * self.problem.d + 4.0 * self.problem.map.nnz

    def run(self, w, y, *, tol: float, gap: float, budget: float) -> Point | None:
        """Steps from (w, y) until the relative gap, `gap` at the start, is at most tol; None where the budget allows
        too few.

        They go on beyond the budget, up to some times, if at their pace so far they are there by then.
        """
        if budget < _FEWEST * self.step_nanoseconds:
            return None
        return self._steps(w, y, tol, gap, budget, _MOST, _INNER)

    def _steps(self, w, y, tol, gap, budget, most, rounds):
        problem = self.problem
        self.spent = self.passes = 0.0
        slope, info = y / problem.n - self.prox.folded * (problem.map_slots @ w), np.zeros(4)
        at, scores = w.copy(), problem.scores(w)
        ahead, ahead_scores = at, scores
        curvature = problem.loss.smoothness * self._mean_square() / 20
        theta, moved, best, due = 1.0, None, None, min(_FIRST, most)
        for step in range(1, most + 1):
            value = problem.mean_loss(ahead_scores)
            gradient = problem.gradient_sum(problem._gradient(ahead_scores)) / problem.n
            for _ in range(_TRIES):
                new, u = self._prox(ahead - gradient / curvature, 1 / curvature, slope, moved, info, rounds)
                move = new - ahead
                square = float(move @ move)
                new_scores = problem.scores(new)
                self.passes += 0.5
                reached = problem.mean_loss(new_scores)
                if reached <= value + gradient @ move + 0.5 * curvature * square + 1e-12 * abs(value):
                    break
                curvature *= _GROW
            else:
                break  # the loss is not what it says, or not finite
            self.passes += 0.5
            self.spent += self.step_nanoseconds + (info[2] - 20) * self._round
            moved = float((new - at) @ (new - at))
            turned = float((ahead - new) @ (new - at)) > 0
            following = 1.0 if turned else 0.5 * (1 + math.sqrt(1 + 4 * theta * theta))
            share = 0.0 if turned else (theta - 1) / following
            ahead, ahead_scores = new + share * (new - at), new_scores + share * (new_scores - scores)
            at, scores, theta, curvature = new, new_scores, following, _SHRINK * curvature
            late = time.perf_counter() > self.deadline
            if step == due or moved == 0 or late:
                point = self._certified(at, scores, u, slope, reached)
                if best is None or point.made.relative_gap < best.made.relative_gap:
                    best = point
                now = max(best.made.relative_gap, 1e-300)
                gained = math.log(max(gap / now, 1.0))
                # of what was spent, until the goal
                share = math.log(max(now / max(tol, 1e-300), 1.0)) / max(gained, 1e-3)
                if now <= tol or moved == 0 or late:
                    break
                if self.spent > budget and (1 + share) * self.spent > _BEYOND * budget:
                    break
                due = step + math.ceil(min(max(_HOPE * share * step, _LAST), _LONGEST * step))
        if best is not None:
            best.passes = self.passes
        return best

    def sharpened(self, point: Point) -> Point | None:
        """Some steps from a point of :meth:`run` with so many rounds of the prox that its zeros and ties are exact.

        None where numbers are not finite any more.
        """
        before = self.passes
        sharp = self._steps(point.w, point.y, 0.0, 1.0, 0.0, _FINE_STEPS, _FINE)
        self.passes += before
        return sharp

    def _prox(self, v, eta, slope, moved, info, most):
        """The prox at v and its u; `slope` is where it begins, and what it leaves."""
        from .kernels.prox import structured_prox

        new, u = np.empty_like(v), np.zeros(self.problem.d)
        enough = max(_INEXACT * (1e-4 * float(v @ v) if moved is None else moved), 1e-300)
        structured_prox(v, eta, slope, new, u, self.prox.solver, (1e-15, enough / (eta * 1e-15), most), info)
        self.prox.check()
        return new, u

    def _certified(self, w, scores, u, slope, loss):
        """w with its dual variables and the certificate; zeros and ties of u are made exact."""
        problem = self.problem
        x = problem._gradient(scores)
        zx = problem.gradient_sum(x)
        y = self._balanced(zx, problem.n * self.prox.dual(slope, w))
        snapped = problem.snap(w, u)
        primal = loss + problem.penalty_value(problem.map_slots @ w)
        exact = problem.primal_at(snapped)
        self.passes += 1.0
        if exact <= primal:
            w, primal = snapped, exact
        point = Point(w, x, y, zx, u.copy(), primal)
        point.made = problem.certificate(point, fresh=False, primal=primal)
        return point

    def _balanced(self, zx, y):
        """y with Zx + By = 0, as far inside the ball of the penalty as some rounds between the two bring it
        (Douglas and Rachford)."""
        from .kernels.prox import block_prox

        problem, penalty = self.problem, self.penalty
        if not problem.gram.direct or penalty.ridge.any():
            return y
        middle, best, least = y, y, np.inf
        for _ in range(_ROUNDS):
            gap = (zx + problem.adjoint @ middle)[problem.feature_slots]
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

    def _mean_square(self):
        """Mean square length of a row."""
        return float(self.problem.data.mean_squares.sum()) + float(self.problem.fit_intercept)
