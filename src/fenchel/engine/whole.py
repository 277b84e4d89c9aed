"""A point with all its coefficients, and what the loss looks like there.

Symbols: w primal, with its intercept slot; x slopes and h curvatures of the rows, both times their weights; g = Zx/n.
"""

from __future__ import annotations

import numpy as np

from ..problem import Problem
from ..proximal import compiled_map
from .parts import Vector

CACHED, NEARBY = 1 << 24, 0.3  # bytes of a matrix that stay in a cache, and what an entry costs there as a share


class Maps:
    """B' and B in compiled form: on small problems scipy's products cost more than the arithmetic."""

    def __init__(self, problem: Problem) -> None:
        self.size, self.d = problem.size, problem.d
        self.arrays = compiled_map(problem)
        widths = problem.block_widths
        none = np.zeros(len(widths), dtype=np.int64)
        # what the kernels ask of blocks; these functions never call one
        first, last = problem.bounds[:-1].copy(), problem.bounds[1:].copy()
        self.rows = first, last, np.array(widths, dtype=np.int64), none, none, none, none

        self.pins: bool = problem.pins
        slots, rows, value = problem.entry_slots.astype(np.int64), problem.entries[0], self.arrays[2]
        self._entries = slots, rows, value**2
        # entries, by row and feature, with the factor of the least y on rows of one entry with B y = e; on all rows,
        # which is a guess, where not every feature has such a row
        counts = problem.widths
        some = counts[rows] == 1 if self.pins else counts[rows] > 0
        row, feature, value = rows[some], slots[some], value[some]
        squares = np.bincount(feature, value**2, self.size)
        self.back_rows = row, feature, value / np.maximum(squares, 1e-300)[feature]

    @classmethod
    def of(cls, problem: Problem) -> Maps:
        """Made once for all problems on one map."""
        made: Maps = problem.shared("engine maps", lambda: cls(problem))
        return made

    def down(self, w: Vector) -> Vector:
        """B'w."""
        from ..kernels.prox import apply_map

        out = np.empty(self.d)
        apply_map(self.arrays, self.rows, w, out)
        return out

    def up(self, y: Vector) -> Vector:
        """B y."""
        from ..kernels.prox import apply_adjoint

        out = np.empty(self.size)
        apply_adjoint(self.arrays, self.rows, y, out)
        return out

    def squares_down(self, v: Vector) -> Vector:
        """The squares of the entries of B' times v."""
        slots, rows, squares = self._entries
        return np.bincount(rows, squares * v[slots], self.d).astype(float)

    def back(self, e: Vector) -> Vector:
        """The least y on the rows of B' with one entry for which B y = e, where every feature has such a row."""
        row, feature, factor = self.back_rows
        y = np.zeros(self.d)
        y[row] = factor * e[feature]
        return y


def visit_weights(problem: Problem) -> Vector:
    """The weight of every visit; empty where all are 1."""
    weight, outputs = problem.weight, problem.layout[0]
    if outputs == 1 or not weight.size:
        return np.asarray(weight)
    made: Vector = problem.remembered("visit weights", lambda: np.repeat(weight, outputs))
    return made


class Products:
    """Products with the data: by the library of linear algebra where it can."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.data = problem, problem.data
        self.several = problem.vectors > 1
        self.dense = not problem.data.sparse and problem.data.dtype == np.float64 and not problem.layout[2].size

    def scores(self, w: Vector) -> Vector:
        """Z'w."""
        if not self.dense:
            return self.problem.scores(w)
        if self.several:
            each = w.reshape(self.problem.vectors, -1)
            scores: Vector = self.data.dense @ each[:, :-1].T
            scores += each[:, -1]
            return scores.ravel()
        found: Vector = self.data.times(w[:-1])
        if w[-1] != 0.0:
            found += w[-1]
        return found

    def sums(self, x: Vector) -> Vector:
        """Zx / n, zero in the slot of an intercept that is switched off."""
        problem, n = self.problem, self.problem.n
        if not self.dense:
            return np.asarray(problem.gradient_sum(x) / n)
        if self.several:
            sums, each = np.empty((problem.vectors, problem.p + 1)), x.reshape(n, -1)
            sums[:, :-1] = each.T @ self.data.dense
            sums[:, -1] = each.sum(axis=0) if problem.fit_intercept else 0.0
            sums /= n
            return sums.ravel()
        out = np.empty(problem.size)
        out[:-1] = self.data.transposed_times(x)
        out[-1] = x.sum() if problem.fit_intercept else 0.0
        out /= n
        return out


class WholePoint:
    """A point of the primal side. Its gradient is made when it is first asked for.

    `passes` counts reads of the data, a product each counts as half of one.
    """

    def __init__(self, problem: Problem, w: Vector, scores: Vector | None = None, u: Vector | None = None) -> None:
        self.problem, self.w, self.passes = problem, w, 0.0
        if scores is None:
            if w.any():
                scores = Products(problem).scores(w)
                self.passes += 0.5
            else:
                scores = np.zeros(problem.visits)
        self.scores = scores
        total, self.x, self.h = problem.loss.sums(problem.seen(scores), problem.target, visit_weights(problem))
        self.loss = total / problem.n
        self.at = Maps.of(problem).down(w) if u is None else u  # B'w
        self.penalty = problem.penalty_value(self.at)
        self._g: Vector | None = None

    @property
    def primal(self) -> float:
        return self.loss + self.penalty

    @property
    def g(self) -> Vector:
        """The gradient of the mean loss."""
        if self._g is None:
            self._g = Products(self.problem).sums(self.x)
            self.passes += 0.5
        return self._g


def with_structure(problem: Problem, v: Vector, u: Vector) -> Vector:
    """An answer of features alone, with the zeros and ties of u."""
    if problem.renames:
        out = np.empty_like(v)
        out[problem.map.indices] = u / problem.map.data
        return out
    w = np.zeros(problem.size)
    w[problem.feature_slots] = v
    return np.asarray(problem.within(problem.snap(w, u))[problem.feature_slots])
