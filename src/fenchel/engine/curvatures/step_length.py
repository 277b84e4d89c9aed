"""A step length alone as the model of the loss: accelerated proximal steps on the data, the cheap start.

The steps themselves are one compiled loop (``kernels/accelerated.py``). The gradient is taken ahead of the point, and
the slopes of the rows there, with the prox's dual variable, are a dual point for free.

Symbols: w the point; L curvature, one number; y dual variables of the penalty, divided by n.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...foundation.lazy import lazy
from ...kernels.rules import INEXACT
from ...prices import Prices, prox_nanoseconds, prox_round_nanoseconds
from ...problem import Problem
from ...proximal import CompiledPenalty, LatticeProx, StructuredProx, has_directions
from ..parts import Vector
from ..whole import CACHED, NEARBY, Maps

PREPARE = 5e5  # nanoseconds that the prox takes to prepare, about
MOST = 4000  # steps in all
ROUNDS, SWIFT = 30, 100  # of a prox that has no closed form: general maps, and grids, whose rounds are cheap
BALANCING = 30  # rounds that bring a dual point into balance and inside; they end where it is
UNITS = 10.0  # ratio of the entries of B' up to which features are in units alike; larger: steps that lead nowhere


class QuickProx(StructuredProx):
    """The prox with a bound on B'B that costs a product, as good as the norm where maps are copies, chains or grids."""

    def _bounds(self) -> Vector:
        rows, size = self.problem.entries
        size, column = size * self._dual_rows[rows], self.map[1].astype(np.int64)
        c: Vector = np.bincount(rows, size * np.bincount(column, size)[column], self.problem.d).astype(float)
        largest = np.zeros(self._units.max(initial=-1) + 1)
        np.maximum.at(largest, self._units, c)
        c = largest[self._units] * (1 + 1e-9)
        return np.asarray(np.maximum(c, max(1e-12 * c.max(initial=0.0), 1e-300)))


class Steps:
    """Single steps of the whole prox, and the dual variables that go with them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.u: Vector = np.zeros(problem.d)  # B'w with exact zeros, after a prox that is neither of chains nor grids

    @lazy
    def prox(self) -> QuickProx:
        return QuickProx(self.problem)

    @lazy
    def penalty(self) -> Any:
        return CompiledPenalty(self.problem)

    @lazy
    def lattice(self) -> Any:
        """The prox for chains and grids; None elsewhere."""
        return LatticeProx.make(self.prox) if has_directions(self.problem) else None

    def go(self, v: Vector, eta: float, slope: Vector, moved: float | None, info: Vector, most: int) -> Vector:
        """The prox at v; `slope` is where it begins, and what it leaves. Its accuracy is what a last move of w, whose
        square is `moved`, makes worthwhile."""
        from ...kernels.prox import structured_prox

        enough = max(INEXACT * (1e-4 * float(v @ v) if moved is None else moved), 1e-300)
        if self.lattice is not None:
            return np.asarray(self.lattice(v, eta, slope, (enough, most), info))
        new, self.u = np.empty_like(v), np.zeros(self.problem.d)
        structured_prox(v, eta, slope, new, self.u, self.prox.solver, (1e-15, enough / (eta * 1e-15), most), info)
        self.prox.check()
        return new

    def balanced(self, zx: Vector, y: Vector) -> Vector:
        """See :func:`balanced`."""
        return balanced(self.problem, self.penalty, zx, y)


def balanced(problem: Problem, penalty: Any, zx: Vector, y: Vector) -> Vector:
    """y with Zx + By = 0, as far inside the ball of the penalty as some rounds between the two bring it (Douglas and
    Rachford)."""
    from ...kernels.prox import block_prox

    if not problem.gram.direct or penalty.ridge.any():
        return y
    middle, best, least = y, y, np.inf
    for _ in range(BALANCING):
        gap = (zx + problem.spread(middle))[problem.feature_slots]
        even = middle - problem.map @ problem.gram.solve(gap)
        outside = 2 * even - middle
        shrunk = outside / problem.n
        block_prox(penalty.blocks, shrunk, penalty.scale)
        penalty.check()
        middle = middle + (outside - problem.n * shrunk) - even
        size = problem.gauge(even / problem.n)
        if size < least:
            best, least = even, size
        if least <= 1.0:
            break
    return best


class StepLength:
    """The steps; one object goes on from step to step."""

    def __init__(self, problem: Problem, prices: Prices) -> None:
        self.problem, self.prices = problem, prices
        self.prox: Any = QuickProx(problem)
        self.lattice: Any = LatticeProx.make(self.prox) if has_directions(problem) else None
        self.passes, self.failed, self.still = 0.0, False, False

    def balanced(self, zx: Vector, y: Vector) -> Vector:
        """See :func:`balanced`."""
        return balanced(self.problem, CompiledPenalty(self.problem), zx, y)

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if problem.vectors > 1 or problem.layout[2].size:
            return "several outputs or tasks"
        size = np.abs(problem.map.data)
        if size.size and size.max() > UNITS * size.min():
            return "steps of one length do not suit features in units that differ"
        return None if problem.small_form is not None else "the loss, or its offset, is not compiled"

    @staticmethod
    def price(problem: Problem, prices: Prices) -> float:
        """Nanoseconds of one step without its prox, which must be prepared before its price is known."""
        data = problem.data
        entry = prices.csr_pass if data.sparse else prices.gemv
        if data.nbytes <= CACHED and not data.sparse:
            entry *= NEARBY
        return 2 * entry * data.stored + 2 * prices.loss * problem.n + prices.call

    @lazy
    def pass_nanoseconds(self) -> float:
        """Of a step without its prox."""
        return self.price(self.problem, self.prices)

    @lazy
    def _round_nanoseconds(self) -> float:
        """Of a round of the prox."""
        chain, grid = self.lattice is not None and self.lattice.exact, self.lattice is not None
        one_round = prox_round_nanoseconds(self.problem, chain=chain, grid=grid)
        return prox_nanoseconds(one_round) if chain else one_round

    @property
    def nanoseconds(self) -> float:
        """Of all steps so far."""
        from ...kernels.accelerated import PRODUCTS, ROUNDS

        numbers = self._numbers
        return float(0.5 * numbers[PRODUCTS] * self.pass_nanoseconds + numbers[ROUNDS] * self._round_nanoseconds)

    def begin(self, w: Vector, scores: Vector, y: Vector) -> None:
        """Begin at w, whose scores and dual variables are known."""
        from ...kernels import accelerated as kernel
        from ...kernels.products import as_data
        from ...kernels.small_losses import as_loss

        problem, prox, lattice = self.problem, self.prox, self.lattice
        self._data = as_data(problem)
        self._loss = as_loss(problem)
        self._solver = prox.solver if lattice is None else lattice.solver
        self._penalty = prox.map, prox.blocks, prox.scale, prox.ridge, prox.quadratic
        self.swift = lattice is not None and not lattice.exact
        slope = y - prox.folded * Maps.of(problem).down(w)
        dual = slope if lattice is None else lattice.as_dual(slope)
        self.w, self.scores = w.copy(), scores.copy()
        self.gradient, self.x, self.h = np.empty(w.size), np.empty(scores.size), np.empty(scores.size)
        self._v, self._far, self._dual = w.copy(), np.zeros(dual.size), dual
        self._point = (self.w, w.copy(), self.scores, scores.copy(), self.gradient, self.x, self.h, dual, dual.copy(),
                       self._far, self._v)  # fmt: skip
        squares = problem.data.mean_squares
        bend = problem.loss.smoothness
        if bend is None:
            bend = float(problem.loss.sums(problem.seen(scores), problem.target, problem.weight)[2].mean())
        self._numbers, self.trace = np.zeros(11), np.empty(MOST)
        # the largest eigenvalue is no less than this
        self._numbers[kernel.CURVATURE] = bend * max(
            float(squares.max()), float(squares.sum()) / min(problem.n, problem.p), 1e-300
        )
        self._numbers[kernel.THETA], self._numbers[kernel.MOVED] = 1.0, -1.0

    def go(self, wanted: float, most: int) -> None:
        """Steps until the objective seems to be within `wanted` of the least, or so many are made."""
        from ...kernels import accelerated as kernel

        numbers = self._numbers
        before = numbers[kernel.PRODUCTS]
        kernel.accelerated_steps(
            self._data, self._loss, self._solver, self._penalty, self._point, numbers, self.trace, self.swift,
            SWIFT if self.swift else ROUNDS, wanted, most,
        )  # fmt: skip
        self.prox.check()
        self.passes += 0.5 * (numbers[kernel.PRODUCTS] - before)
        self.failed, self.still = numbers[kernel.STATE] == kernel.FAILED, numbers[kernel.STATE] == kernel.STILL
        # a column of zeros has no curvature that could hold a step
        self.failed = self.failed or not (np.isfinite(self.primal) and np.isfinite(self.x).all())
        if self.count >= MOST:
            self.still = True

    @property
    def exact(self) -> bool:
        """Whether zeros and ties are exact in w itself: a sweep along chains leaves them so."""
        return self.lattice is not None and self.lattice.exact

    @property
    def count(self) -> int:
        """Steps so far."""
        from ...kernels.accelerated import COUNT

        return int(self._numbers[COUNT])

    @property
    def primal(self) -> float:
        """The objective at w."""
        from ...kernels.accelerated import OBJECTIVE

        return float(self._numbers[OBJECTIVE])

    @property
    def left(self) -> float:
        """What seems to be left of the objective."""
        from ...kernels.accelerated import left

        return float(left(self.trace, self.count))

    def steps_left(self, wanted: float) -> float:
        """How many steps seem to be needed until so little is left, at the pace since the start or the recent one,
        whichever is faster; as many again where nothing can be said."""
        left, trace, count = self.left, self.trace, self.count
        if not 0 < left < math.inf:
            return float(count) if left else 0.0
        each = max(count // 4, 2)
        early, late, last = (float(trace[count - 1 - k * each]) for k in (2, 1, 0))
        recent = math.log((early - late) / (late - last)) / each
        whole = math.log(max((float(trace[0]) - last) / left, 1.0)) / count
        return math.log(max(left / max(wanted, 1e-300), 1.0)) / max(recent, whole)

    def structure(self) -> tuple[Vector, Vector]:
        """u = B'w with the zeros of the last prox, and y."""
        from ...kernels.accelerated import STEP

        if self.lattice is None:
            u, slope = self._far.copy(), self._dual.copy()
        else:
            u, slope = self.lattice.of_dual(self._dual, self._far, self._v, float(self._numbers[STEP]), self.w)
        return u, self.prox.dual(slope, self.w)
