r"""Proximal Newton steps for few coefficients: what ends a run on small or long data, and carries an answer from one
alpha to the next.

With g the gradient and H the curvature of the mean loss at w, the step

.. math:: w^+ = \operatorname*{argmin}_v \; g^\top (v - w) + \tfrac12 (v - w)^\top H (v - w) + \psi(B^\top v)

is a problem without rows, solved by ADMM with a dense inverse. Besides that a step costs two products with the data,
less than an epoch of SDCA-ADMM, and near the answer it gains several digits where an epoch gains half of one (a factor
e at best). H costs about one epoch more, and is kept as long as it predicts the change of the gradient well.

A step that would raise the objective is shortened. Nothing is believed without the problem's certificate, and whoever
calls goes on with :func:`fenchel.solve` where the steps do not get there.

The certificate wants x with :math:`Zx + By = 0`. The slopes of the loss at :math:`w^+` miss that by the error of the
model, and the bound loses in proportion. The slopes that the model foresees, :math:`x + D Z^\top (w^+ - w)` with
:math:`H = Z D Z^\top / n`, meet it as well as the model was solved; they differ from the true ones by the square of the
step, and the bound loses the square of that. So an answer is proven a step or two earlier.
"""

from __future__ import annotations

import dataclasses
import math
import time
import types

import numpy as np
import scipy.linalg

from ...foundation.numerics import DENSE
from ...kernels.rules import LEAST
from ...prices import epoch_nanoseconds, newton_nanoseconds
from ...problem import Certificate, Problem
from ...problem.convergence import Convergence
from ...proximal import CompiledPenalty
from ..accuracy import FINE, FINEST
from ..curvatures.whole_gram import LIFT
from ..inner.admm import BET, FLAT, ROUNDS, TURNS
from ..lower_gram import lower_gram
from .manifold import Point

_PROMISING = 3.0  # times the root of tol: relative gain of a step after which the goal may be reached
_UNSOLVED = 2  # models in a row that were not solved: the steps are no use
_HOPE = 100.0  # times the gap that is allowed: from there a better dual bound is worth a search
_STALE = 0.05  # share of the gradient's change that H may miss
_WORTH, _SMALL = 3.0, 6e6  # epochs and nanoseconds that a step may cost
_SAME = 0.05  # relative change of a row's curvature that H may leave out
_ROUNDING = 1e-11  # relative gap below which steps that gain little are the last ones


def worthwhile(problem: Problem) -> bool:
    """Whether Newton steps suit the problem: a smooth loss, and a model that is cheap next to the data, or at all."""
    if problem.loss.smoothness is None or problem.loss.coupled or problem.size > DENSE:
        return False
    curvature, model = newton_nanoseconds(problem)
    return 0.3 * curvature + model <= _WORTH * epoch_nanoseconds(problem) + _SMALL


class Newton:
    """Proximal Newton steps on problems that share their data; what was learnt of its curvature is kept."""

    def __init__(self) -> None:
        self.problem = self.curvature = None
        self.pace = 1.0  # of ADMM, in units of the curvature that a coordinate sees
        self.passes = 0.0  # over the data, parts of one for H
        self.deadline = math.inf  # by the clock of time.perf_counter

    def propose(self, problem: Problem, w: np.ndarray, y: np.ndarray, *, tol: float, steps: int) -> Point:
        """Where the steps lead, for a method that has been to w."""
        last = self._points(problem, w, y, tol, steps, None)[-1]
        # with a quadratic a certificate on the way may have saved the search for the best scaling
        if any(block.ridge > 0 for block in problem.blocks):
            last.made = None
        return last

    def correct(
        self, problem: Problem, w: np.ndarray, y: np.ndarray, *, tol: float, steps: int = 20,
        scores: np.ndarray | None = None,
    ) -> Point:  # fmt: skip
        """Up to `steps` steps from w (with its scores, if known) and the dual variables y.

        The point has the best w on the way, the last dual variables, and the best bounds of all certificates, which
        hold for the one optimum. Its passes count two products with the data, as a step needs them, or one reading of
        it for H.
        """
        points = self._points(problem, w, y, tol, steps, scores)
        last, answer = points[-1], min(reversed(points), key=lambda point: point.primal)
        dual = max(point.made.dual for point in points)
        made = dataclasses.replace(last.made, primal=answer.primal, dual=dual)
        return dataclasses.replace(last, w=answer.w, scores=answer.scores, primal=answer.primal, made=made)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def _points(self, problem, w, y, tol, steps, scores) -> list[Point]:
        """The points on the way that were worth a certificate, until one is good enough; at least the last one."""
        self._attach(problem)
        self.unsolved = 0  # models in a row
        rule, best = Convergence.of(problem, tol), Certificate(np.inf, -np.inf, np.inf)
        points, begun, fresh = [], round(self.passes), True
        at = self._look(w, problem.scores(w) if scores is None else scores, problem.penalised(w))
        self._slope(at)
        self.passes += (0.5 if scores is None else 0.0) + self._refresh(at.scores)
        for step in range(1, steps + 1):
            before, at = at, self._advance(at, y)
            y = at.y
            self.passes += 0.5
            move = at.w - before.w
            late = step == steps or self.unsolved >= _UNSOLVED or time.perf_counter() > self.deadline
            far = move @ self.curvature @ move > _PROMISING * math.sqrt(max(tol, 0.0)) * abs(at.primal)
            if far and not late:
                fresh = self._go_on(before, at)
                continue
            proof = self._dual_point(before, at)
            least, gap = min(at.primal, best.primal), best.gap
            allowed = rule.allowed(least)
            made = problem.certificate(
                proof, fresh=False, primal=at.primal, enough=least - allowed, hope=least - _HOPE * allowed
            )
            passes = max(round(self.passes) - begun, 1)
            points.append(Point(at.w, proof.x, y, proof.zx, at.u, at.primal, passes, made, at.scores))
            best.primal, best.dual = (least if least == least else best.primal), max(best.dual, made.dual)
            if rule.reached(best) or (best.relative_gap < _ROUNDING and best.gap > 0.5 * gap):
                break
            if late or (at.w is before.w and fresh):
                break
            fresh = self._go_on(before, at)
        return points

    def _advance(self, at, y):
        """The point that a Newton step leads to, or one on the way there that does not raise the objective."""
        problem = self.problem
        w, u, y = self._step(at.w, at.zx, y)
        scores = problem.scores(w)
        new = self._look(w, scores, u, y)
        limit = at.primal + 1e-4 * abs(at.primal)
        share = 1.0
        while not new.primal <= limit:
            share *= 0.3
            if share < 1e-6:
                return types.SimpleNamespace(**(vars(at) | {"y": y, "whole": False}))
            mixed = at.w + share * (w - at.w)
            new = self._look(mixed, at.scores + share * (scores - at.scores), u, y)
        new.whole = share == 1.0
        return new

    def _slope(self, at):
        """Z x of a point, made once."""
        if at.zx is None:
            at.zx = self.problem.gradient_sum(at.x)
            self.passes += 0.5
        return at.zx

    def _go_on(self, before, at):
        """Prepare the next step; whether its H is a new one."""
        move = at.w - before.w
        if at.w is before.w or self._missed((self._slope(at) - before.zx) / self.problem.n, move) > _STALE:
            self.passes += self._refresh(at.scores)
            return True
        return False

    def _dual_point(self, before, at):
        """x, with its Z x, that proves most of what a step reached: the slopes that the model foresaw there, or the
        true ones, where some of the former are far outside the domain of the loss."""
        problem = self.problem
        if at.whole and not self.flat:
            x = problem.foreseen(before.x, problem.n * self.bend * (at.scores - before.scores), at.x)
            if x is not None:
                self.passes += 0.5
                return types.SimpleNamespace(w=at.w, x=x, y=at.y, zx=problem.gradient_sum(x))
        return types.SimpleNamespace(w=at.w, x=at.x, y=at.y, zx=self._slope(at))

    # -- the data -----------------------------------------------------------------------------------

    def _look(self, w, scores, u, y=None):
        """w with its scores, its objective and the x that belongs to it."""
        problem = self.problem
        primal = problem.mean_loss(scores) + problem.penalty_value(problem.penalised(w))
        return types.SimpleNamespace(w=w, scores=scores, primal=primal, x=problem.slopes_at(scores), u=u, y=y, zx=None)

    def _attach(self, problem):
        if self.problem is None or self.problem.d != problem.d or self.problem.size != problem.size:
            self.curvature = self.inverse = None
            self.bet = np.ones(problem.d)
        self.problem, self.penalty = problem, CompiledPenalty(problem)
        units = [first + b.function.units(b.d) for b, first in zip(problem.blocks, problem.bounds, strict=False)]
        self.units = np.concatenate(units or [np.zeros(0)]).astype(np.int64)

    def _refresh(self, scores) -> float:
        """H where the scores are these, up to rows whose curvature has hardly changed; the share of rows looked at."""
        problem = self.problem
        bend = problem.loss.curvature(problem.seen(scores), problem.target) / problem.n
        mean = float(np.mean(bend))
        self.flat = bool(bend.min(initial=np.inf) < LEAST * mean)  # then what the model foresees leaves the domain
        bend = problem._weights() * np.maximum(bend, max(LEAST * mean, 1e-5 * problem.loss.smoothness / problem.n))
        if self.curvature is None:
            self.bend, self.loaded = np.zeros(bend.size), np.zeros((problem.size, problem.size))
            change = bend
        else:
            change = bend - self.bend
            change[np.abs(change) <= _SAME * np.maximum(bend, self.bend) + 0.1 * _SAME * mean] = 0.0
        rows = np.count_nonzero(change)
        if not rows and self.curvature is not None:
            return 0.0
        self.bend = self.bend + change
        more = np.zeros_like(self.loaded)
        if problem.data.sparse:
            from ...kernels.newton import sparse_curvature

            sparse_curvature(*problem.data.arrays, problem.layout, change, more)
        else:
            dense_curvature(problem, change, more)
        more += more.T
        more[np.diag_indices_from(more)] /= 2
        self.loaded += more
        H = self.loaded.copy()
        slots = problem.intercept_slots
        if not problem.fit_intercept:
            H[slots], H[:, slots] = 0.0, 0.0
            H[slots, slots] = 1.0
        diagonal = np.diag(H)
        H[np.diag_indices_from(H)] += LIFT * diagonal + 1e-14 * diagonal.mean() + 1e-300
        self.curvature, self.inverse, self._cholesky = H, None, None
        return rows / change.size

    def _missed(self, change, move):
        """Share of the gradient's change over a move that H did not foresee, in the norm of its inverse."""
        foreseen = self.curvature @ move
        miss = change - foreseen
        if not self.problem.fit_intercept:
            miss[self.problem.intercept_slots] = 0.0
        size = move @ foreseen
        if self._cholesky is None:
            self._cholesky = scipy.linalg.cho_factor(self.curvature, lower=True)
        return math.sqrt(max(miss @ scipy.linalg.cho_solve(self._cholesky, miss), 0.0) / size) if size > 0 else 0.0

    # -- the model ----------------------------------------------------------------------------------

    def _factor(self):
        """The step of every coordinate from the curvature that it sees, and the inverse that goes with it."""
        from ...kernels.newton import add_coupling

        problem = self.problem
        # a feature that the data hardly see takes its curvature from its neighbours
        diagonal = np.diag(self.curvature)
        seen = problem.map_squares @ (1.0 / np.maximum(diagonal, FLAT * diagonal.mean()))
        if seen.size:
            seen = (np.bincount(self.units, seen) / np.maximum(np.bincount(self.units), 1))[self.units]
        self.step = self.pace * self.bet / np.maximum(seen, 1e-300)
        matrix = self.curvature.copy()
        add_coupling(self.penalty.map, self.step, matrix)
        self.inverse = _inverse(matrix)

    def _step(self, w, zx, y):
        """w, u and y of one Newton step, with the structure of u made exact in w."""
        from ...kernels.newton import solve_model

        problem, penalty, n = self.problem, self.penalty, self.problem.n
        goal = self.curvature @ w - zx / n
        v, u, y = w.copy(), problem.penalised(w), y / n
        info, tol = np.zeros(3), 0.0
        for turn in range(TURNS):
            if self.inverse is None:
                self._factor()
            solve_model(self.inverse, goal, v, u, y, self.step, penalty.scale, penalty.ridge, penalty.map,
                        penalty.blocks, tol, ROUNDS, info)  # fmt: skip
            penalty.check()
            move = v - w
            forces = float(np.sum(y * y / self.step))
            length, rounding = math.sqrt(max(move @ self.curvature @ move, 0.0)), 1e-11 * math.sqrt(forces)
            tol = (FINE if self.flat else FINEST) * length + rounding
            if max(info[0], info[1]) <= tol * tol:
                self.unsolved = 0
                break
            if turn > 1 and turn % 2 == 0:
                self._place_bets(u)
            else:
                self._set_pace(info[0] / max(info[1], 1e-100), forces / max(float(np.sum(self.step * u * u)), 1e-100))
        else:
            solved = max(info[0], info[1]) <= (FINE * length + rounding) ** 2
            self.unsolved = 0 if solved else self.unsolved + 1
        return problem.within(problem.snap(v, u)), u, n * y

    def _set_pace(self, residuals, sizes):
        """Balance the two residuals, each relative to what it is the residual of (Stellato et al., 2020)."""
        ratio = math.sqrt(min(residuals * sizes, 1e12))
        if not 0.2 < ratio < 5:
            self.pace = min(max(self.pace * min(max(ratio, 0.02), 50.0), 1e-4), 1e4)
            self.inverse = None

    def _place_bets(self, u):
        """Long steps for units that are zero, short ones for the others: if they stay so, a few rounds are left."""
        if not u.size:
            return
        zero = (np.bincount(self.units, u != 0) == 0)[self.units]
        bet = np.where(zero, BET, 1 / BET)
        if not np.array_equal(bet, self.bet):
            self.bet, self.inverse = bet, None


def _inverse(matrix):
    """Of a definite matrix; of any other, where rounding has made it one."""
    from ...kernels.newton import mirror_upper

    factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
    if failed:
        return np.linalg.inv(matrix)
    inverse = scipy.linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)[0].T
    mirror_upper(inverse)
    return inverse


def dense_curvature(problem, bend, H):
    """H += sum of bend_i z_i z_i' for dense rows, each pair of different entries in one place only.

    An intercept that is switched off is left out.
    """
    outputs, stride, offset, slot = problem.layout
    X, p = problem.data.arrays[0], problem.p
    bend = bend.reshape(problem.n, outputs)
    for k in range(problem.vectors):
        start = k * stride
        weight = bend[:, k] if offset.size == 0 else np.where(offset == start, bend[:, 0], 0.0)
        # a change of curvature may be negative
        for sign in (1.0, -1.0):
            part = np.maximum(sign * weight, 0.0)
            if part.any():
                H[start : start + p, start : start + p] += sign * lower_gram(X, part)
        if problem.fit_intercept:
            H[start + slot, start : start + p] += weight @ X
            H[start + slot, start + slot] += weight.sum()
