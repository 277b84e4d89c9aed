r"""Dual variables by the curvature: a proof whose gap is of second order in the error, as the error itself is.

With x the slopes of the loss at w and y in the domain of psi*, e = Zx/n + By is what keeps them from being feasible.
Moving y alone costs a gap of first order. Here x moves as well, along the data:

.. math:: (H + \kappa B R B^\top) q = -e, \quad \tilde x = x + h \circ Z^\top q, \quad \tilde y = y + \kappa R B^\top q

Then Zx~/n + By~ = 0, and the gap is about e'(H + kappa B R B')^-1 e / 2 and what y~ loses by leaving the domain. That
estimate needs no data, so that a bound is evaluated where it promises to suffice.

Symbols: H the exact curvature with the rows' h; R a step of every coordinate, constant on units; others as in parts.py.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.linalg import lapack

from ..problem import Certificate, Problem
from .curvatures.whole_gram import WholeGram
from .parts import Matrix, Vector
from .roles import Iterate
from .whole import WholePoint

KAPPA, KAPPA_WIDE = 1e-6, 1e-4  # share of the work that y does; the latter where features are more than rows
FLAT = 0.1  # of the mean curvature of a feature: none has less where R is chosen
CLIPPED = 1e-3  # of the length of x's move: beyond it what the domain cut off may cost more than it gained


@dataclasses.dataclass
class Foreseen:
    """What a repair promises: its gap, and the moves."""

    gap: float
    q: Vector
    y: Vector


class Repair:
    """For one curvature; the factor is made when it is first needed."""

    def __init__(self, problem: Problem, gram: WholeGram) -> None:
        self.problem, self.gram = problem, gram
        self.made: Matrix | None = None
        self.factor: Matrix | None = None
        self.passes = 0.0

    def _prepare(self) -> None:
        from ..kernels.models import coupled

        problem, H = self.problem, self.gram.exact
        assert H is not None
        diagonal = np.diag(H)
        seen = problem.map_squares @ (1.0 / np.maximum(diagonal, FLAT * diagonal.mean()))
        labels, count = problem.units
        unit = np.bincount(labels, seen, count) / np.maximum(np.bincount(labels, minlength=count), 1)
        kappa = KAPPA if problem.n > problem.p else KAPPA_WIDE
        self.step = (kappa / np.maximum(unit, 1e-300))[labels]
        matrix, B = np.empty_like(H), problem.map_slots
        coupled(H, (B.indptr.astype(np.int64), B.indices.astype(np.uint64), B.data), self.step, matrix)
        factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
        self.factor, self.made = (None if failed else factor), H

    def foresee(self, g: Vector, y: Vector, at: Vector, penalty: float) -> Foreseen | None:
        """What is promised where the loss has the gradient g and B'w is `at`, whose penalty is known."""
        if self.made is not self.gram.exact:
            self._prepare()
        if self.factor is None:
            return None
        problem = self.problem
        e = g + problem.spread(y)
        q = -lapack.dpotrs(self.factor, e, lower=1)[0]
        moved = y + self.step * problem.penalised(q)
        size = problem.gauge(moved)
        share = 1.0 if size <= 1 else 1 / size
        held = penalty + problem.penalty_conjugate(share * moved * (1 - 1e-15)) - share * float(moved @ at)
        return Foreseen(max(-0.5 * float(q @ e), 0.0) + max(held, 0.0), q, moved)

    def prove(
        self, point: WholePoint, u: Vector, foreseen: Foreseen, enough: float = np.inf
    ) -> tuple[Iterate, Certificate]:
        """The point with these dual variables, and their certificate; `enough` is a bound that will do."""
        problem, n = self.problem, self.problem.n
        along = problem.scores(foreseen.q)
        wanted = point.x + self.gram.h * along
        low, high = problem._domain()
        x = np.minimum(np.maximum(wanted, low), high)
        iterate = Iterate(point.w, x, n * foreseen.y, problem.gradient_sum(x), u, point.scores)
        self.passes += 1.0
        made = problem.certificate(iterate, fresh=False, primal=point.primal, enough=enough)
        cut = float(np.linalg.norm(x - wanted)) > CLIPPED * float(np.linalg.norm(wanted - point.x))
        if cut and made.dual < enough:
            other = Iterate(point.w, point.x, n * foreseen.y, n * point.g, u, point.scores)
            plain = problem.certificate(other, fresh=False, primal=point.primal, enough=enough)
            if plain.dual > made.dual:
                return other, plain
        return iterate, made
