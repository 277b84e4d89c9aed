r"""Dual variables of tasks and outputs by the curvature in blocks; see ``repair.py`` for what that is.

With the squared loss a repair is the gradient at another point: x = slopes at w + q, where G q = -e, and everything
about it follows from the moments (``moments.py``), the lower bound included.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import lapack

from ..problem import Problem
from .curvatures.blocks import BlockGram
from .inner.block_admm import FeatureMaps, inverses
from .moments import Moments
from .parts import Vector
from .repair import KAPPA, KAPPA_WIDE, Foreseen, Repair
from .restrictions.columns import SINGLE_FROM


class BlockSolve:
    """(H_v + kappa D)^-1 for the blocks of a curvature, D a diagonal in the units of the penalty."""

    def __init__(self, gram: BlockGram, step: Vector, kappa: float) -> None:
        assert gram.matrices is not None
        problem, maps = gram.problem, FeatureMaps.of(gram.problem)
        self.matrices, self.p = gram.matrices, problem.p
        self.step = kappa * step  # of every coordinate of B'w
        added = maps.bound(self.step).reshape(-1, problem.p)
        if len(self.matrices) == 1 and np.ptp(added, axis=0).any():
            self.matrices = np.broadcast_to(self.matrices, (len(added), *self.matrices.shape[1:]))
        self.factors: list[Any] = []
        self.inverse: Any = None
        if problem.p >= SINGLE_FROM:
            self._factor(added)
        if len(self.factors) < len(self.matrices):
            self.inverse = inverses(self.matrices, added, False)

    def _factor(self, added: Vector) -> None:
        places = np.arange(self.p)
        for matrix, more in zip(self.matrices, added, strict=False):
            work = matrix.copy()
            work[places, places] += more + 1e-12 * matrix.diagonal() + 1e-300
            factor, failed = lapack.dpotrf(work.T, lower=1, overwrite_a=1, clean=0)
            if failed:
                return
            self.factors.append(factor)

    def __call__(self, e: Vector) -> Vector:
        """For e (vectors, p)."""
        if self.inverse is None:
            if len(self.factors) == 1:
                return np.ascontiguousarray(lapack.dpotrs(self.factors[0], e.T, lower=1)[0].T)
            return np.array(
                [lapack.dpotrs(factor, line, lower=1)[0] for factor, line in zip(self.factors, e, strict=True)]
            )
        if len(self.inverse) == 1:
            return np.asarray(e @ self.inverse[0])
        return np.asarray(np.matmul(self.inverse, e[:, :, None])[:, :, 0])


def kappa_of(problem: Problem) -> float:
    """The share of the work that y does: more where a vector sees fewer rows than it has features."""
    seen = problem.n if not problem.layout[2].size else problem.n / problem.vectors
    return KAPPA if seen > problem.p else KAPPA_WIDE


class SquaredProof:
    """Bounds for the squared loss from the moments alone."""

    def __init__(self, problem: Problem, moments: Moments, step: Vector) -> None:
        self.problem, self.moments, self.maps = problem, moments, FeatureMaps.of(problem)
        self.solve = BlockSolve(moments.gram, step, kappa_of(problem))

    @staticmethod
    def suits(problem: Problem, moments: Moments) -> bool:
        """Whether the moments prove as much as the data: every feature is penalised, by rows of B' with one entry each
        (then rounding passes through B as it is), nothing has a sign to keep, and psi* is 0 in its domain (otherwise
        rounding of y counts too)."""
        if any(block.ridge > 0 for block in problem.blocks):
            return False
        free = problem.vectors if problem.fit_intercept else 0
        return moments.gram.faithful and problem._picks and problem.constraint_count == free

    def bound(self, each: Vector, gradient: Vector, y: Vector, primal: float) -> tuple[float, Vector, Vector]:
        """A lower bound from the point w (vectors, p) and y in the domain of psi*; and the point w + q and the y that
        prove it."""
        problem, moments = self.problem, self.moments
        e = gradient + self.maps.up(y).reshape(gradient.shape)
        at = each - self.solve(e)
        slope = moments.gradient(at)
        # y is brought to B y = -slope: by its own share of the work, and by what rounding leaves
        y = y + self.solve.step * self.maps.down((at - each).ravel())
        left = slope.ravel() + self.maps.up(y)
        if problem.renames:
            y = -slope.ravel()[problem.map.indices] / problem.map.data
        else:
            y = y - problem.map @ problem.gram.solve(left)
        size = problem.gauge(y)
        if not math.isfinite(size):
            return -math.inf, at, y
        scale = 1.0 if size <= 1 else (1 - 1e-15) / size
        square = 2 * moments.loss(at, slope)
        with_target = float(np.sum(at * moments.with_target)) - float(moments.variance.sum())
        dual = -(0.5 * scale * scale * square + scale * with_target) - problem.penalty_conjugate(scale * y)
        return dual - self.slack(at, primal), at, y

    def slack(self, at: Vector, primal: float) -> float:
        """What rounding of the moments may have added to the bound: to the dual objective itself, and to slopes that
        pass the domain of psi* by a share, which costs at most that share of the penalty of the answer."""
        problem = self.problem
        of_loss, of_slopes = self.moments.spread(at)
        errors = of_slopes.ravel()
        beyond = errors[problem.map.indices] / np.abs(problem.map.data)
        size = max(problem.gauge(beyond), problem.gauge(-beyond))
        return of_loss + size * max(primal, 0.0)


class BlockRepair(Repair):
    """See :class:`fenchel.engine.repair.Repair`; preconditioned by a curvature in blocks."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.kappa = kappa_of(problem)
        self.gram: BlockGram | None = None
        self.solver: BlockSolve | None = None

    def use_blocks(self, gram: BlockGram, step: Vector) -> None:
        """Precondition by a curvature; `step` is that of every coordinate, in units of the curvature it sees."""
        if self.solver is None or self.made is not gram.matrices:
            self.solver, self.gram, self.made = BlockSolve(gram, step, self.kappa), gram, gram.matrices
            self.step = self.solver.step

    def _by_factor(self, e: Vector) -> Vector:
        assert self.gram is not None and self.solver is not None
        gram = self.gram
        q = self.solver(gram.reduced(e))
        out = gram.with_intercepts(q)
        if gram.problem.fit_intercept:
            each = out.reshape(len(q), -1)
            each[:, -1] += e.reshape(len(q), -1)[:, -1] / gram.height
        return out

    def foresee(self, g: Vector, y: Vector, at: Vector, penalty: float) -> Foreseen | None:
        self.factor = np.zeros(0) if self.solver is not None else None  # the base class asks whether there is one
        return super().foresee(g, y, at, penalty)
