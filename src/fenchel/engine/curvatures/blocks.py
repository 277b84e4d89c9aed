r"""The curvature of tasks and outputs: one Gram matrix for each vector of coefficients, or one that all share.

.. math:: H_v = X_v^\top \left(D_v - \frac{h_v h_v^\top}{\sum h_v}\right) X_v / n, \qquad D_v = \mathrm{diag}(h_v)

with the rows that vector v sees (all of them, or those of its task), their curvatures h, and an intercept that follows
the other coefficients. Rows are taken from their means first, so that columns far from zero lose no digits.

Symbols: w and its likes are flat, for every vector its p features and then its intercept, as in ``objective.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from ...foundation.numerics import NOTHING, ROUNDING
from ...kernels.rules import CAREFUL, FLAT, LEAST
from ...prices import Prices
from ...problem import Problem
from ..lower_gram import lower_gram
from ..parts import Vector
from .whole_gram import ROOM, WORTH

Blocks = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

NEAR = 0.9  # of a mean square about the means of all rows: what may be taken off in single precision
FAR = 0.99  # of a column's mean square: the square of its mean, beyond which a difference of both loses digits


class TaskRows:
    """Which rows belong to which task."""

    def __init__(self, problem: Problem) -> None:
        task = problem.layout[2] // problem.layout[1]
        self.task: Index = task
        self.order: Index | None = None if np.all(task[1:] >= task[:-1]) else np.argsort(task, kind="stable")
        self.ends: list[int] = np.searchsorted(task if self.order is None else task[self.order],
                                               np.arange(problem.vectors + 1)).tolist()  # fmt: skip

    @classmethod
    def of(cls, problem: Problem) -> TaskRows:
        """Made once for all problems on the same data."""
        made: TaskRows = problem.shared("rows of tasks", lambda: cls(problem))
        return made

    def __iter__(self) -> Iterator[Any]:
        """The rows of every task, as a slice where they stand together."""
        for first, last in zip(self.ends[:-1], self.ends[1:], strict=True):
            yield slice(first, last) if self.order is None else self.order[first:last]


def has_tasks(problem: Problem) -> bool:
    """Whether the vectors are those of tasks, with rows of their own, and not of outputs, which share all rows."""
    return bool(problem.layout[2].size)


def sums_by_vector(problem: Problem, h: Vector) -> tuple[Vector, Vector]:
    """X_v'h_v (vectors, p) and the sum of h_v (vectors,)."""
    data = problem.data
    if has_tasks(problem) or data.sparse or data.dtype != np.float64:
        sums = problem.combine(h).reshape(problem.vectors, -1)
        return sums[:, :-1].copy(), sums[:, -1].copy()
    each = h.reshape(problem.n, -1)
    return np.asarray(each.T @ data.dense), np.asarray(each.sum(axis=0))


class BlockGram:
    """H; with `exact`, no single precision.

    Attributes
    ----------
    matrices : (vectors, p, p), or (1, p, p) where all share one; None before it is made
    centre, height : X_v'h_v / sum(h_v) and sum(h_v) / n; zero and one without an intercept
    h : the curvatures of the visits that it was made with
    faithful : whether no digits were lost on the way
    """

    def __init__(self, problem: Problem, prices: Prices, exact: bool = False) -> None:
        self.problem, self.prices, self.precise = problem, prices, exact
        self.matrices: Blocks | None = None
        self.h: Vector = np.zeros(0)
        self.centre: Vector = np.zeros((problem.vectors, problem.p))
        self.height: Vector = np.ones(problem.vectors)
        self.floor, self.single, self.faithful, self.constant = 0.0, False, True, False
        self.rows: Any = None  # of dense data in single precision, less their mean
        self.mean: Vector = np.zeros(0)

    def price(self, shared: bool = False) -> float:
        """Nanoseconds of making it; `shared` where one matrix serves all."""
        problem, data, prices = self.problem, self.problem.data, self.prices
        times = 1 if shared or has_tasks(problem) else problem.vectors
        if data.sparse:
            return float(times * data.pairs * prices.csr_gram + prices.cast * problem.vectors * data.p**2)
        work = 0.5 * data.n * data.p**2
        pair = prices.syrk32 if self._single(times) else prices.syrk64
        return float(times * (work * pair + data.stored * prices.cast) + 4 * problem.vectors * prices.call)

    def _single(self, times: int) -> bool:
        """Whether single precision saves something, and will do."""
        data = self.problem.data
        if self.precise or data.sparse:
            return False
        saved = times * 0.5 * data.n * data.p**2 * (self.prices.syrk64 - self.prices.syrk32)
        squares = data.mean_squares
        some = squares[squares > 0]
        return saved > WORTH and bool(some.size) and some.max() * data.n < ROOM and some.min() > 1 / ROOM

    def begin(self, h: Vector) -> None:
        """Look at the curvatures where a fit begins."""
        flat = not self.problem.loss.quadratic and bool((h <= 0).any()) and self.problem.loss.smoothness is not None
        self.floor = FLAT if flat else 0.0

    def refuse(self) -> None:
        """A step was no use: rows count for more in the next model."""
        self.floor = min(1.0, max(10 * self.floor, CAREFUL))

    def trust(self) -> None:
        """A whole step was taken, as foreseen: rows count for what they are, soon."""
        self.floor = 0.0 if self.floor < 1e-2 else 0.2 * self.floor

    # -- making it -----------------------------------------------------------------------------------

    def make(self, curvature: Vector) -> None:
        """H from the curvatures of the visits."""
        problem, n = self.problem, self.problem.n
        h = curvature if problem.loss.quadratic else self._lifted(curvature)
        self.h, self.faithful = h, True
        self.constant = self._is_constant(h)
        if problem.fit_intercept:
            sums, total = sums_by_vector(problem, h)
            self.height = np.maximum(total / n, 1e-300)
            self.centre = sums / (n * self.height)[:, None]
        if problem.data.sparse:
            self.matrices = self._sparse(h / n)
        elif has_tasks(problem):
            self.matrices = self._tasks(h / n)
        else:
            self.matrices = self._outputs(h.reshape(n, -1) / n)

    def _lifted(self, curvature: Vector) -> Vector:
        """Every row counts for something."""
        problem, weight = self.problem, self.problem.weight
        largest = float(curvature.max()) if problem.loss.smoothness is None else problem.loss.smoothness
        least = max(LEAST * max(float(curvature.mean()), NOTHING * largest), self.floor * largest, 1e-300)
        if not weight.size:
            return np.maximum(curvature, least)
        return np.maximum(curvature, least * np.repeat(weight, problem.layout[0]))

    def _is_constant(self, h: Vector) -> bool:
        """Whether all outputs have the same curvatures, each up to a factor."""
        problem = self.problem
        if has_tasks(problem):
            return False
        each = h.reshape(problem.n, -1)
        top = int(each[:, 0].argmax())
        scaled = each[:, :1] * (each[top] / max(each[top, 0], 1e-300))
        return bool(np.all(np.abs(each - scaled) <= ROUNDING * each[top]))

    def _alike(self, one: Blocks, h: Vector) -> Blocks:
        """The blocks of outputs whose curvatures differ by a factor, from that of the first one."""
        top = int(h[:, 0].argmax())
        factor = h[top] / max(h[top, 0], 1e-300)
        return one[None] if np.all(np.abs(factor - 1) <= ROUNDING) else one[None] * factor[:, None, None]

    def _outputs(self, h: Vector) -> Blocks:
        from ...kernels.models import mirrored

        problem, X, p = self.problem, self.problem.data.dense, self.problem.p
        count = 1 if self.constant else problem.vectors
        self.single = self._single(count)
        made = np.empty((count, p, p))
        for k in range(count):
            own = np.ascontiguousarray(h[:, k])
            if self.single and problem.data.halves and self._from_means(own, k, made[k]):
                continue
            out = np.zeros((p, p), dtype=np.float32 if self.single else np.float64, order="F")
            less = self.centre[k] if problem.fit_intercept else None
            mirrored(lower_gram(X, own, out, less=less), made[k])
        return self._alike(made[0], h) if self.constant else made

    def _from_means(self, h: Vector, k: int, out: Any) -> bool:
        """The block of output k from rows in single precision, less the means of all: these are made once for all
        outputs and rounds. What the centre of the output is from there is taken off afterwards; False where that would
        lose digits."""
        from ...kernels.models import mirrored

        problem, X = self.problem, self.problem.data.dense
        if self.rows is None:
            self.mean = X.mean(axis=0, dtype=float) if problem.fit_intercept else np.zeros(problem.p)
            self.rows = np.subtract(X, self.mean, dtype=float, casting="same_kind").astype(np.float32)
        found = np.zeros((problem.p, problem.p), dtype=np.float32, order="F")
        mirrored(lower_gram(self.rows, h, found), out)
        if problem.fit_intercept:
            far = self.centre[k] - self.mean
            diagonal = out.diagonal()
            if np.any(self.height[k] * far * far > NEAR * diagonal):
                return False
            out -= (self.height[k] * far)[:, None] * far
        return True

    def _tasks(self, h: Vector) -> Blocks:
        problem, X, p = self.problem, self.problem.data.dense, self.problem.p
        made, roots = np.empty((problem.vectors, p, p)), np.sqrt(h)
        for k, rows in enumerate(TaskRows.of(problem)):
            part = np.subtract(X[rows], self.centre[k], dtype=float)
            part *= roots[rows, None]
            np.matmul(part.T, part, out=made[k])
        return made

    def _sparse(self, h: Vector) -> Blocks:
        from ...kernels.blocks import sparse_blocks

        problem, p = self.problem, self.problem.p
        outputs, each = problem.layout[0], h.reshape(problem.n, -1)
        task = TaskRows.of(problem).task if has_tasks(problem) else np.zeros(0, dtype=np.int64)
        made = np.zeros((1 if self.constant else problem.vectors, p, p))
        if self.constant:
            sparse_blocks(*problem.data.arrays, task, 1, np.ascontiguousarray(each[:, 0]), made)
        else:
            sparse_blocks(*problem.data.arrays, task, outputs, h, made)
        made += made.transpose(0, 2, 1)
        places = np.arange(p)
        made[:, places, places] /= 2
        if problem.fit_intercept:
            some = self.centre[: len(made)]
            means = np.square(some) * self.height[: len(made), None]
            self.faithful = not np.any(means > FAR * made[:, places, places])
            made -= some[:, :, None] * (some * self.height[: len(made), None])[:, None, :]
            made[:, places, places] = np.maximum(made[:, places, places], 0.0)
        return self._alike(made[0], each) if self.constant else made

    # -- using it ------------------------------------------------------------------------------------

    @property
    def diagonal(self) -> Vector:
        """Of all blocks, (vectors, p)."""
        assert self.matrices is not None
        found = np.einsum("kii->ki", self.matrices)
        return np.broadcast_to(found, (self.problem.vectors, self.problem.p))

    def images(self, each: Vector) -> Vector:
        """H_v d_v for d (vectors, p), intercepts left out."""
        assert self.matrices is not None
        if len(self.matrices) == 1:
            return np.asarray(each @ self.matrices[0])
        return np.asarray(np.matmul(self.matrices, each[:, :, None])[:, :, 0])

    def times(self, d: Vector) -> Vector:
        """H d with intercepts."""
        problem = self.problem
        each = d.reshape(problem.vectors, -1)
        out = np.zeros_like(each)
        out[:, :-1] = self.images(each[:, :-1])
        if problem.fit_intercept:
            tilt = self.height * (each[:, -1] + np.einsum("vj,vj->v", self.centre, each[:, :-1]))
            out[:, :-1] += self.centre * tilt[:, None]
            out[:, -1] = tilt
        return out.ravel()

    def reduced(self, g: Vector) -> Vector:
        """A gradient (vectors, p) where the intercepts follow."""
        each = g.reshape(self.problem.vectors, -1)
        return each[:, :-1] - self.centre * each[:, -1:]

    def with_intercepts(self, each: Vector, g: Vector | None = None) -> Vector:
        """A move of the features (vectors, p) with that of the intercepts which follow; g is the gradient there."""
        problem = self.problem
        out = np.zeros((problem.vectors, problem.p + 1))
        out[:, :-1] = each
        if problem.fit_intercept:
            out[:, -1] = -np.einsum("vj,vj->v", self.centre, each)
            if g is not None:
                out[:, -1] -= g.reshape(problem.vectors, -1)[:, -1] / self.height
        return out.ravel()
