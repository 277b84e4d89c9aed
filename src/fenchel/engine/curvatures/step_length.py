"""A step length alone as the model of the loss: accelerated proximal steps on the data, the cheap start.

A step costs two products with the data and one prox of the whole penalty (Beck and Teboulle, 2009, with backtracking
and the restarts of O'Donoghue and Candès, 2015). The gradient is taken ahead of the point, and the slopes of the rows
there, with the prox's dual variable, are a dual point for free.

Symbols: w the point, `ahead` where it points to; L curvature, one number; e = L (ahead - w), by which the dual point
misses the constraint; y dual variables of the penalty, divided by n.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...prices import Prices
from ...problem import Problem
from ...proximal import StructuredProx
from ..attempts.accelerated import Accelerated
from ..parts import Vector
from ..whole import Maps, Products

GROW, JUMP, SHRINK = 1.5, 20.0, 0.98  # of L: where a step was too long (at least and at most), and after every step
CALLS = 120  # of the interpreter's, in a step
SLOW = 4.0  # times the price of a logistic loss, which is compiled: those that are not
TRIES = 60  # of one step, each shorter than the one before
ROUNDS, SWIFT = 30, 100  # of a prox that has no closed form: general maps, and grids, whose rounds are cheap
ROUNDING = 1e-14  # of the loss: what its change may be wrong by
CACHED, NEARBY = 1 << 24, 0.3  # bytes of data that stay in a cache, and what an entry costs there as a share
PREPARE = 1.2e6  # nanoseconds that the prox takes to prepare, about


class QuickProx(StructuredProx):
    """The prox with a bound on B'B that costs a product, as good as the norm where maps are copies, chains or grids."""

    def _bounds(self) -> Vector:
        size = abs(self._kept)
        c = size @ np.asarray(size.sum(axis=0)).ravel()
        largest = np.zeros(self._units.max(initial=-1) + 1)
        np.maximum.at(largest, self._units, c)
        c = largest[self._units] * (1 + 1e-9)
        return np.asarray(np.maximum(c, max(1e-12 * c.max(initial=0.0), 1e-300)))


class Steps(Accelerated):
    """What accelerated steps need of the penalty."""

    @functools.cached_property
    def prox(self) -> QuickProx:
        return QuickProx(self.problem)


class StepLength:
    """The steps; one object goes on from step to step."""

    def __init__(self, problem: Problem, prices: Prices) -> None:
        self.problem, self.prices = problem, prices
        self.steps: Any = Steps(problem)
        self.products = Products(problem)
        self.count, self.passes, self.failed, self.still = 0, 0.0, False, False

    @staticmethod
    def price(problem: Problem, prices: Prices) -> float:
        """Nanoseconds of one step without its prox, which must be prepared before its price is known."""
        data = problem.data
        entry = prices.csr_pass if data.sparse else prices.gemv
        if data.nbytes <= CACHED and not data.sparse:
            entry *= NEARBY
        row = prices.loss if problem.loss.fast_sums else SLOW * prices.loss
        return 2 * entry * data.stored + 2 * row * problem.n + CALLS * prices.call

    @property
    def step_nanoseconds(self) -> float:
        """What a step costs with some twenty rounds of its prox."""
        prox: float = self.steps.step_nanoseconds - self.steps._bare_step
        return self.price(self.problem, self.prices) + prox

    def begin(self, w: Vector, scores: Vector, y: Vector) -> None:
        """Begin at w, whose scores and dual variables are known."""
        problem = self.problem
        self.swift = self.steps.lattice is not None
        self.w = self.ahead = w
        self.scores = self.ahead_scores = scores
        self.slope = y - self.steps.prox.folded * Maps.of(problem).down(w)
        self.before, self.theta, self.share = self.slope, 1.0, 0.0
        self.moved: float | None = None
        self.info = np.zeros(4)
        squares = problem.data.mean_squares
        bend = problem.loss.smoothness
        if bend is None:
            bend = float(problem.loss.sums(scores, problem.target, problem.weight)[2].mean())
        # the largest eigenvalue is no less than this
        self.L = bend * max(float(squares.max()), float(squares.sum()) / min(problem.n, problem.p), 1e-300)

    def step(self) -> None:
        """One step; `failed` tells that there is no such step."""
        problem, n = self.problem, self.problem.n
        sums, target, weight = problem.loss.sums, problem.target, problem.weight
        value, self.x, self.h = sums(self.ahead_scores, target, weight)
        value /= n
        self.gradient = self.products.sums(self.x)
        start, self.before = self.slope + (self.share if self.swift else 0.0) * (self.slope - self.before), self.slope
        for _ in range(TRIES):
            slope = start.copy()
            new = self.steps._prox(
                self.ahead - self.gradient / self.L, 1 / self.L, slope, self.moved, self.info,
                SWIFT if self.swift else ROUNDS,
            )  # fmt: skip
            move = new - self.ahead
            scores = self.products.scores(new)
            self.passes += 0.5
            reached, square = sums(scores, target, weight)[0] / n, float(move @ move)
            rise = reached - value - float(self.gradient @ move)
            self.still = self.L * square <= 100 * ROUNDING * abs(value)  # then the rise says nothing
            if self.still or rise <= 0.5 * self.L * square * (1 + 1e-9) + ROUNDING * abs(value):
                break
            grown = 2 * rise / (self.L * square) if square > 0 else JUMP
            self.L *= min(max(GROW, grown if grown == grown else JUMP), JUMP)
        else:
            self.failed = True
            return
        self.passes += 0.5
        self.count += 1
        step = new - self.w
        self.moved, self.miss = float(step @ step), self.L * math.sqrt(square)
        theta = 1.0 if float((self.ahead - new) @ step) > 0 else self.theta
        self.theta = 0.5 * (1 + math.sqrt(1 + 4 * theta * theta))
        self.share = (theta - 1) / self.theta
        self.loss, self.slope = reached, slope
        self.ahead, self.ahead_scores = new + self.share * step, scores + self.share * (scores - self.scores)
        self.w, self.scores, self.L = new, scores, SHRINK * self.L

    def structure(self) -> tuple[Vector, Vector]:
        """u = B'w with the zeros of the last prox, and y."""
        lattice = self.steps.lattice
        u = self.steps.u.copy() if lattice is None else lattice.structure(self.slope)
        return u, self.steps.prox.dual(self.slope, self.w)
