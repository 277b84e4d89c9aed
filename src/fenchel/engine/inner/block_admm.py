"""ADMM on a model that falls into blocks: a factor per block serves many rounds, for any map and any simple penalty.

Features of one unit may belong to several blocks; the penalty couples them in its prox, and nothing else does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from ...foundation.numerics import ROUNDING
from ...maps import row_width
from ...prices import Prices
from ...problem import Problem
from ...proximal import CompiledPenalty
from ..curvatures.blocks import BlockGram
from ..curvatures.whole_gram import LIFT_SINGLE, ROOM
from ..parts import Vector
from ..restrictions.columns import SINGLE_FROM
from .admm import FLAT
from .pace import Paced


class FeatureMaps:
    """B' and B on the features alone, in compiled form."""

    def __init__(self, problem: Problem) -> None:
        matrix = problem.map
        self.size, self.d = matrix.shape[1], problem.d
        self.arrays = matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint64), matrix.data.astype(float)
        widths = [row_width(block.matrix) for block in problem.blocks]
        none = np.zeros(len(widths), dtype=np.int64)
        first, last = problem.bounds[:-1].copy(), problem.bounds[1:].copy()
        self.rows = first, last, np.array(widths, dtype=np.int64), none, none, none, none
        counts = np.diff(matrix.indptr)
        self.joined = bool(np.any(counts > 1))
        # rows with one entry each need no sparse algebra
        self.single = (matrix.indices, np.square(matrix.data)) if np.all(counts == 1) else None
        if self.single is None:
            self.squares = matrix.power(2)
            sizes = abs(matrix)
            self.reach = (sizes.multiply(np.asarray(sizes.sum(axis=1)).ravel()[:, None])).T.tocsr()

    @classmethod
    def of(cls, problem: Problem) -> FeatureMaps:
        """Made once for all problems on one map."""
        made: FeatureMaps = problem.shared("feature maps", lambda: cls(problem))
        return made

    def by_squares(self, values: Vector) -> Vector:
        """The sums that the squares of the entries of B' make of values of the features."""
        if self.single is None:
            return np.asarray(self.squares @ values)
        index, square = self.single
        return np.asarray(square * values[index])

    def bound(self, steps: Vector) -> Vector:
        """A diagonal that bounds B diag(steps) B'; equal to it where rows have one entry."""
        if self.single is None:
            return np.asarray(self.reach @ steps)
        index, square = self.single
        return np.bincount(index, square * steps, self.size).astype(float, copy=False)

    def down(self, v: Vector) -> Vector:
        """B'v."""
        from ...kernels.prox import apply_map

        out = np.empty(self.d)
        apply_map(self.arrays, self.rows, v, out)
        return out

    def up(self, y: Vector) -> Vector:
        """B y."""
        from ...kernels.prox import apply_adjoint

        out = np.empty(self.size)
        apply_adjoint(self.arrays, self.rows, y, out)
        return out


def inverses(matrices: Any, added: Vector, single: bool) -> Any:
    """(matrix + diag(added))^-1 for every block; `added` is (blocks, p). In single precision if that is wanted and
    neither the numbers nor their inverses leave its range."""
    from ...kernels.models import mirrored

    single = single and float(added.min(initial=1.0)) > 1 / ROOM and float(added.max(initial=1.0)) < ROOM
    blocks, p = len(matrices), matrices.shape[1]
    places = np.arange(p)
    made = np.empty((blocks, p, p), dtype=np.float32 if single else np.float64)
    lift = LIFT_SINGLE if single else ROUNDING
    potrf, potri = (lapack.spotrf, lapack.spotri) if single else (lapack.dpotrf, lapack.dpotri)
    for k in range(blocks):
        work = matrices[k].astype(made.dtype)
        work[places, places] += added[k] + lift * matrices[k].diagonal() + 1e-300
        factor, failed = potrf(work.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            made[k] = np.linalg.pinv(matrices[k] + np.diag(added[k]), hermitian=True)
        else:
            mirrored(potri(factor, lower=1, overwrite_c=1)[0], made[k])
    return made


class BlockAdmm(Paced):
    """The method, its pace and what it knows of the blocks."""

    def __init__(self, problem: Problem, prices: Prices) -> None:
        self.prices, self.pace, self.fresh = prices, 1.0, True
        self.single = problem.p >= SINGLE_FROM
        self.inverse: Any = None
        self.matrices: Any = None  # whose inverse it is
        self.seen: tuple[Any, Vector] = (np.zeros(0), np.zeros(0))  # curvatures, and what units see of them
        self.info = np.zeros(4)
        self.maps = FeatureMaps.of(problem)
        labels, count = problem.units
        self.labels, self.sizes = labels, np.maximum(np.bincount(labels, minlength=count), 1)
        self.spent = 0.0  # nanoseconds
        self.move_to(problem)

    def move_to(self, problem: Problem) -> None:
        """Go on with another alpha."""
        self.problem = problem
        self.penalty: Any = CompiledPenalty(problem)

    def factor_price(self, blocks: int) -> float:
        """Nanoseconds of the inverses of so many blocks."""
        return float(blocks * (self.prices.potrf * self.problem.p**3 / 2 + 4 * self.prices.call))

    def round_price(self) -> float:
        """Nanoseconds of a round."""
        problem, entry = self.problem, self.prices.gemv * (0.25 if self.single else 0.5)
        return float(entry * problem.vectors * problem.p**2 + 4 * self.prices.penalty_coordinate * problem.d)

    def units_step(self, gram: BlockGram) -> Vector:
        """The mean curvature that the coordinates of every unit see."""
        if self.seen[0] is gram.matrices:
            return self.seen[1]
        diagonal = gram.diagonal
        mean = diagonal.mean(axis=0)
        floor = np.maximum(FLAT * mean, ROUNDING * float(mean.max(initial=0.0)) + 1e-300)
        seen = 1.0 / self.maps.by_squares((1.0 / np.maximum(diagonal, floor)).ravel())
        self.seen = gram.matrices, np.asarray(np.bincount(self.labels, seen, self.sizes.size) / self.sizes)
        return self.seen[1]

    def _factor(self, gram: BlockGram, u: Vector, y: Vector) -> None:
        """The step of every coordinate from the curvature that it sees, and the inverses that go with it."""
        unit = self.units_step(gram)
        if self.fresh:
            self._begin_pace(unit[self.labels], u, y)
        self.step = (self.pace * unit)[self.labels]
        self.added = self.maps.bound(self.step)
        assert gram.matrices is not None
        matrices, added = gram.matrices, self.added.reshape(-1, self.problem.p)
        if len(matrices) == 1 and np.ptp(added, axis=0).any():
            matrices = np.broadcast_to(matrices, (len(added), *matrices.shape[1:]))
        self.inverse, self.matrices = inverses(matrices, added, self.single), gram.matrices
        self.spent += self.factor_price(len(matrices))

    def turn(
        self, gram: BlockGram, g: Vector, w: Vector, v: Vector, u: Vector, y: Vector, accuracy: float, most: int
    ) -> bool:
        """Rounds on the model at w with the gradient g; v, u and y go on. Returns whether they arrived."""
        from ...kernels.blocks import block_admm_steps

        if self.inverse is None or self.matrices is not gram.matrices:
            self._factor(gram, u, y)
        penalty, at, info = self.penalty, self.maps.down(v), self.info
        block_admm_steps(self.inverse, self.added, g, w, v, at, u, y, self.step, penalty.scale, penalty.ridge,
                         self.maps.arrays, penalty.blocks, self.maps.joined, accuracy, most, info)  # fmt: skip
        penalty.check()
        self.spent += info[2] * self.round_price()
        self.forces = float(np.sum(y * y / self.step))
        return bool(max(info[0], info[1]) <= accuracy * accuracy * info[3] + 1e-22 * self.forces)

    def adapt(self, u: Vector) -> None:
        """Change the steps after a turn that did not arrive."""
        ratio = self.info[0] / max(self.info[1], 1e-100)
        self._set_pace(ratio, self.forces / max(float(np.sum(self.step * u * u)), 1e-100))
