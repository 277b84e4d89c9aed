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
from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from ..problem import Certificate, Problem
from .parts import Matrix, Vector
from .roles import Iterate
from .whole import Maps, Products

KAPPA, KAPPA_WIDE = 1e-6, 1e-4  # share of the work that y does; the latter where features are more than rows
FLAT = 0.1  # of the mean curvature of a feature: none has less where R is chosen
CLIPPED = 1e-3  # of the length of x's move: what the domain may cut off before the others are solved for again
AGAIN = 3  # times that rows are put on the boundary
ENOUGH = 3e-4  # of e, in the metric of a factor: what conjugate gradients may leave
LEFT, FINEST = 0.3, 1e-4  # the same without a factor: of the share that is allowed of the gap, and at the least
MOST, MOST_FACTORED = 24, 8  # of their steps
TRIED = 4  # of them, after which their pace is known


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
        self.expected = math.inf  # what a repair of the last point would prove, about
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
        seen = problem.map_squares @ (1.0 / np.maximum(diagonal, FLAT * diagonal.mean()))
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

    def _by_diagonal(self, h: Vector) -> Callable[[Vector], Vector]:
        problem = self.problem
        diagonal = np.append(problem.data.mean_squares, 1.0) * max(float(h.mean()), 1e-300)
        diagonal = np.maximum(diagonal, 1e-6 * diagonal.mean())
        self.step, self.made = self._steps(diagonal), None
        diagonal = diagonal + problem.map_squares.T @ self.step
        return lambda e: e / diagonal

    def _by_factor(self, e: Vector) -> Vector:
        return np.asarray(lapack.dpotrs(self.factor, e, lower=1)[0])

    def _solve(
        self, h: Vector, e: Vector, precondition: Callable[[Vector], Vector], most: int, enough: float, allowed: float
    ) -> tuple[Vector, Vector, float]:
        """q with (H + kappa B R B') q = -e, about, with Z'q and the gap e'q / 2 that it leaves at the least.

        `enough` is the share of e that may be left, in the metric of the preconditioner. Where the gap exceeds what is
        `allowed`, or at the pace of the first steps `most` of them would not suffice, the search ends at once, and the
        gap is more than that.
        """
        problem = self.problem
        q, along, left, gap = np.zeros_like(e), np.zeros(problem.visits), -e, 0.0
        z = precondition(left)
        size = first = float(left @ z)
        p = z
        for number in range(most):
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
            z = precondition(left)
            before, size = size, float(left @ z)
            if size <= enough * enough * first or (gap > allowed and number > 0):
                break
            # what is left seems to take too long
            if number == TRIED and (size / first) ** (most / (TRIED + 1)) > enough * enough:
                gap = max(gap, 2 * allowed)
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
        problem, n = self.problem, self.problem.n
        x = at.x + h * self.products.scores(foreseen.q)
        x = np.minimum(np.maximum(x, self.low), self.high)
        self.passes += 1.0
        iterate = Iterate(at.w, x, n * foreseen.y, n * self.products.sums(x), at.u, at.scores)
        return iterate, problem.certificate(iterate, fresh=False, primal=primal, enough=primal - allowed)

    def model_gap(self, x: Vector, move: Vector, scores: Vector, loss: float) -> float:
        """What slopes x, brought into their domain after a move, cost where the scores have the mean loss given."""
        inside = np.minimum(np.maximum(x, self.low), self.high)
        cost = loss + self.problem.mean_conjugate(inside) - float(inside @ scores) / self.problem.n
        far = float(np.abs(inside - x).sum()) > CLIPPED * float(np.abs(move).sum())
        return math.inf if far else max(cost, 0.0)

    def prove(
        self, at: Iterate, g: Vector, h: Vector, primal: float, allowed: float, factored: bool = False,
        hasty: bool = False,
    ) -> tuple[Iterate, Certificate]:  # fmt: skip
        """The point `at` with better dual variables, if they are, and their certificate; a gap of `allowed` will do.

        `at.x` and g = Z x / n are slopes at some point near w, where the rows have the curvatures h. A `hasty` proof
        ends where conjugate gradients see that it will not suffice: the gap that they see only grows.
        """
        problem, n, bound = self.problem, self.problem.n, primal - allowed
        plain = None
        enough = ENOUGH
        if not factored:
            plain = problem.certificate(at, fresh=False, primal=primal, enough=bound)
            self.expected = plain.gap
            if plain.gap <= allowed:
                return at, plain
            enough = max(LEFT * allowed / plain.gap, FINEST)
        low, high = self.low, self.high
        x, y, zx = at.x, at.y / n, n * g
        precondition = self._by_factor if factored else self._by_diagonal(h)
        for _ in range(AGAIN):
            e = zx / n + self.maps.up(y)
            most = MOST_FACTORED if factored else MOST
            most_gap = math.inf if factored and not hasty else allowed
            q, along, gap = self._solve(h, e, precondition, most, enough, most_gap)
            if gap > most_gap:
                if plain is None:
                    plain = problem.certificate(at, fresh=False, primal=primal, enough=bound)
                self.expected = min(gap, plain.gap)
                return at, plain
            wanted = x + h * along
            inside = np.minimum(np.maximum(wanted, low), high)
            cut = inside != wanted
            y = y + self.step * self.maps.down(q)
            far = float(np.linalg.norm(inside - wanted)) > CLIPPED * float(np.linalg.norm(wanted - x))
            x, zx = inside, n * self.products.sums(inside)
            self.passes += 0.5
            if not far:
                break
            h = np.where(cut, 0.0, h)
        iterate = Iterate(at.w, x, n * y, zx, at.u, at.scores)
        made = problem.certificate(iterate, fresh=False, primal=primal, enough=bound)
        self.expected = made.gap
        return (at, plain) if plain is not None and plain.dual >= made.dual else (iterate, made)
