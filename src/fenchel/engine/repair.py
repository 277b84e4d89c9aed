r"""Dual variables by the curvature: a proof whose gap is of second order in the error, as the error itself is.

With x the slopes of the loss at w and y in the domain of psi*, e = Zx/n + By is what keeps them from being feasible.
Moving y alone costs a gap of first order. Here x moves as well, along the data:

.. math:: (H + \kappa B R B^\top) q = -e, \quad \tilde x = x + h \circ Z^\top q, \quad \tilde y = y + \kappa R B^\top q

Then Zx~/n + By~ = 0, and the gap is about e'(H + kappa B R B')^-1 e / 2 and what y~ loses by leaving the domain. The
system is solved by conjugate gradients, a read of the data each: preconditioned by its diagonal some of them gain one
or two digits, and by the factor of a curvature that was made nearby two or three of them gain all. Rows that leave the
domain of the loss are put on its boundary, stay there, and the others are solved for again.

With such a factor the gap can be foreseen without data, so that a proof is tried where it promises to suffice.

Symbols: H the curvature with the rows' h; R a step of every coordinate, constant on units; others as in parts.py.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from scipy.linalg import lapack

from ..foundation.lazy import lazy
from ..foundation.numerics import LITTLE
from ..penalties import Block
from ..problem import Certificate, Problem
from .curvatures.whole_gram import WholeGram
from .inner.admm import FLAT
from .parts import Matrix, Vector
from .roles import Iterate
from .whole import Maps, Products

KAPPA, KAPPA_WIDE = 1e-6, 1e-4  # share of the work that y does; the latter where features are more than rows
AGAIN = 3  # times that rows are put on the boundary
ENOUGH = 3e-4  # of e, in the metric of a factor: what conjugate gradients may leave
LEFT = 0.3  # the same without a factor: of the gap that is allowed, what the rest of e may cost; larger: fewer proofs
LEFT_GUESSED = 0.03  # the same where a guess tells what the rest costs
MOST_FACTORED = 8  # of their steps
BANDED = 16.0  # products with the data that a banded factor may cost; more: rounds without one are as good


@dataclasses.dataclass
class Foreseen:
    """What a repair promises: its gap, and the moves."""

    gap: float
    q: Vector
    y: Vector


class Repair:
    """For one problem; the preconditioner may change."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.products, self.passes = problem, Products(problem), 0.0
        self.maps = Maps.of(problem)
        self.made: Matrix | None = None
        self.factor: Matrix | None = None
        self.kappa = KAPPA if problem.n > problem.p else KAPPA_WIDE
        self.step = np.zeros(problem.d)
        self.low, self.high = problem._domain()

    # -- the system --------------------------------------------------------------------------------

    def _steps(self, diagonal: Vector) -> Vector:
        """kappa R, from the curvature that every coordinate of B'w sees."""
        problem = self.problem
        seen = self.maps.squares_down(1.0 / np.maximum(diagonal, FLAT * diagonal.mean()))
        labels, count = problem.units
        unit = np.bincount(labels, seen, count) / np.maximum(np.bincount(labels, minlength=count), 1)
        return np.asarray((self.kappa / np.maximum(unit, 1e-300))[labels])

    def use(self, H: Matrix) -> bool:
        """Precondition by a curvature; whether that is possible."""
        from ..kernels.models import coupled

        if self.made is not H:
            self.step = self._steps(np.diag(H))
            matrix = np.empty_like(H)
            coupled(H, self.maps.arrays, self.step, matrix)
            factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
            self.factor, self.made = (None if failed else factor), H
        return self.factor is not None

    def _by_factor(self, e: Vector) -> Vector:
        return np.asarray(lapack.dpotrs(self.factor, e, lower=1)[0])

    def _solve(self, h: Vector, e: Vector, most: float) -> tuple[Vector, Vector, float]:
        """q with (H + kappa B R B') q = -e, about, with Z'q and the gap e'q / 2 that it leaves at the least: conjugate
        gradients, preconditioned by the factor. They end where that gap exceeds `most`."""
        problem = self.problem
        q, along, left, gap = np.zeros_like(e), np.zeros(problem.visits), -e, 0.0
        z = self._by_factor(left)
        size = first = float(left @ z)
        p = z
        for _ in range(MOST_FACTORED):
            if not size > 0:
                break
            scores = self.products.scores(p)
            image = self.products.sums(h * scores) + self.maps.up(self.step * self.maps.down(p))
            self.passes += 1.0
            bend = float(p @ image)
            if not bend > 0:
                break
            share = size / bend
            gap += 0.5 * share * size
            q += share * p
            along += share * scores
            left = left - share * image
            z = self._by_factor(left)
            before, size = size, float(left @ z)
            if size <= ENOUGH * ENOUGH * first or gap > most:
                break
            p = z + (size / before) * p
        return q, along, gap

    # -- proofs ------------------------------------------------------------------------------------

    def foresee(self, g: Vector, y: Vector, at: Vector, penalty: float) -> Foreseen | None:
        """What is promised by the factor where the loss has the gradient g and B'w is `at`, whose penalty is known."""
        if self.factor is None:
            return None
        problem = self.problem
        e = g + self.maps.up(y)
        q = -self._by_factor(e)
        moved = y + self.step * self.maps.down(q)
        size = problem.gauge(moved)
        share = 1.0 if size <= 1 else (1 - 1e-15) / size
        held = penalty + problem.penalty_conjugate(share * moved) - share * float(moved @ at)
        return Foreseen(max(-0.5 * float(q @ e), 0.0) + max(held, 0.0), q, moved)

    def prove_ahead(
        self, at: Iterate, foreseen: Foreseen, h: Vector, primal: float, allowed: float
    ) -> tuple[Iterate, Certificate]:
        """The point `at`, where a step of a model led, with the slopes `at.x` that the model foresees there, repaired
        as :meth:`foresee` says; the curvature that it was given was made with the rows' h."""
        x = at.x + h * self.products.scores(foreseen.q)
        x = np.minimum(np.maximum(x, self.low), self.high)
        self.passes += 1.0
        return self._certified(at, x, foreseen.y, self.products.sums(x), primal, allowed)

    def model_gap(self, x: Vector, move: Vector, scores: Vector, loss: float) -> float:
        """What slopes x, brought into their domain after a move, cost where the scores have the mean loss given."""
        inside = np.minimum(np.maximum(x, self.low), self.high)
        cost = loss + self.problem.mean_conjugate(inside) - float(inside @ scores) / self.problem.n
        far = float(np.abs(inside - x).sum()) > LITTLE * float(np.abs(move).sum())
        return math.inf if far else max(cost, 0.0)

    def prove(
        self, at: Iterate, g: Vector, h: Vector, primal: float, allowed: float, hasty: bool = False
    ) -> tuple[Iterate, Certificate]:
        """The point `at` with better dual variables and their certificate, by the factor in use; a gap of `allowed`
        will do. `at.x` and g = Z x / n are slopes at some point near w, where the rows have the curvatures h. A `hasty`
        proof ends where conjugate gradients see that it will not suffice: the gap that they see only grows."""
        n, most = self.problem.n, allowed if hasty else math.inf
        x, y, zx = at.x, at.y / n, n * g
        for _ in range(AGAIN):
            q, along, gap = self._solve(h, zx / n + self.maps.up(y), most)
            if gap > most:
                return at, self.problem.certificate(at, fresh=False, primal=primal, enough=primal - allowed)
            x, y, zx, free = self._moved(x, y, h, q, along)
            if free is None:
                break
            h = free
        return self._certified(at, x, y, zx / n, primal, allowed)

    def _certified(
        self, at: Iterate, x: Vector, y: Vector, g: Vector, primal: float, allowed: float
    ) -> tuple[Iterate, Certificate]:
        """x and y, whose g = Z x / n is known, with what separates them from a feasible point given to y."""
        problem, n = self.problem, self.problem.n
        if self.maps.pins and problem.vectors == 1:
            if problem.fit_intercept:
                x = problem.centred(x)
                g = self.products.sums(x)
                self.passes += 0.5
            y = y - self.maps.back(g + self.maps.up(y))
        iterate = Iterate(at.w, x, n * y, n * g, at.u, at.scores)
        return iterate, problem.certificate(iterate, fresh=False, primal=primal, enough=primal - allowed)

    def _moved(
        self, x: Vector, y: Vector, h: Vector, q: Vector, along: Vector
    ) -> tuple[Vector, Vector, Vector, Vector | None]:
        """x and y after a move by q, with Z x; and the curvatures of the rows that are still free, where the domain of
        the loss has cut off much."""
        wanted = x + h * along
        inside = np.minimum(np.maximum(wanted, self.low), self.high)
        far = float(np.linalg.norm(inside - wanted)) > LITTLE * float(np.linalg.norm(wanted - x))
        zx = self.problem.n * self.products.sums(inside)
        self.passes += 0.5
        y = y + self.step * self.maps.down(q)
        return inside, y, zx, np.where(inside != wanted, 0.0, h) if far else None

    def prove_by_rounds(
        self, at: Iterate, h: Vector, primal: float, allowed: float, most: int,
        gram: WholeGram | None = None, worth: float = math.inf,
    ) -> tuple[Iterate, Certificate] | None:  # fmt: skip
        """The same without a factor, in at most so many rounds of conjugate gradients (``kernels/repair.py``); None
        where these do not suffice. at.x are the slopes at w, whose sums need not be known; h is changed.

        A `gram` that is not made yet is made as soon as there were as many rounds as it is `worth`: a few do then.
        """
        from ..kernels import repair as kernel
        from ..kernels.lapack import addresses
        from ..kernels.products import as_data
        from ..kernels.small_losses import as_loss

        problem, n, maps = self.problem, self.problem.n, self.maps
        own = np.append(problem.data.mean_squares, 1.0) * max(float(h.mean()), 1e-300)
        own = np.maximum(own, 1e-6 * own.mean())
        x, y, g, info = at.x.copy(), at.y / n, np.empty(problem.size), np.zeros(4)
        data, loss, units = as_data(problem), as_loss(problem), (*problem.units, self._radius)
        even = self._steps(own) / self.kappa

        def rounds(most: float, H: Matrix) -> bool:
            good = kernel.repair(
                data, loss, maps.arrays, maps.rows, units, maps.back_rows, self._band, own, even, self.kappa,
                (self.low, self.high), at.u, x, y, g, h, primal, allowed, LEFT if maps.pins else LEFT_GUESSED, most,
                H, addresses(), info,
            )  # fmt: skip
            self.passes += 0.5 * info[kernel.PRODUCTS]
            return bool(good)

        self.made = None
        none, few = np.empty((0, 0)), math.ceil(min(most, worth))
        known = none if gram is None or gram.exact is None else gram.exact
        good = rounds(few if known is none else most, known)
        spent = info[kernel.PRODUCTS] >= 2.0 * few and info[kernel.GAP] <= allowed  # with hope left
        if gram is not None and known is none and not good and spent and few < most:
            gram.floor, floor = 0.0, gram.floor  # steps may want rows that count for more, proofs do not
            gram.make(h)
            gram.floor = floor
            good = rounds(most, none if gram.exact is None else gram.exact)
        if not good:
            return None
        return self._certified(at, x, y, g, primal, allowed)

    @lazy
    def _band(self) -> int:
        """How far apart features are that a row of B' joins, 0 where a factor of such a band takes too long."""
        start, slots, _ = self.maps.arrays
        joins = np.flatnonzero(np.diff(start) > 1)
        reach = slots[start[joins + 1] - 1].astype(np.int64) - slots[start[joins]].astype(np.int64)
        widest = int(np.abs(reach).max(initial=0))  # entries of a row are in order
        return widest if widest**2 <= BANDED * self.problem.data.stored / self.problem.p else 0

    @lazy
    def _radius(self) -> Vector:
        """Of the ball of every coordinate's unit, zero where it has none."""
        return np.concatenate([_ball(block) for block in self.problem.blocks] or [np.zeros(0)])


def _ball(block: Block) -> Vector:
    """The radius of the ball that a coordinate's dual variable lies in, zero where it is none or of another kind."""
    return np.zeros(block.d) if block.ridge > 0 else block.scale * block.function.dual_balls(block.d)
