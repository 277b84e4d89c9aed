"""Faces: linear sets on which given coordinates of B'w are zero, and the rows and the penalty as they are seen there.

See :mod:`fenchel.engine.attempts.manifold`, which takes its Newton steps on them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import weakref

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ...foundation.numerics import BESIDE, NOTHING
from ..curvatures.whole_gram import LIFT_SINGLE
from ..lower_gram import lower_gram

DENSE = 1 << 18  # entries up to which B'N is a plain array
_SPARE = 1.25  # of what is needed now: the next face may be somewhat larger
_KEPT = 0.1  # of the data: numbers that may be kept beside it, if they are more than some at any rate


class Face:
    """{N z}, on which the `zero` coordinates of B'w vanish. `map` is B'N.

    Slot `slots[i]` of w is signs[i] v[columns[i]], the others are zero; v is z itself, or v = T z where some zeros
    (`others`) join more than two features. `lean` says on which side of zero units are that were just set free.
    """

    def __init__(self, problem, zero, slots, columns, signs, inner, entries, lean, others, rooms, larger):
        self.zero, self.slots, self.columns, self.signs, self.inner = zero, slots, columns, signs, inner
        self.size, self.lean, self.turn, self.count = problem.size, lean, None, inner
        self.shares = np.maximum(np.bincount(columns, minlength=inner), 1)
        column, sign = self.places()
        row, slot, value = entries
        some = column[slot] >= 0
        row, column, value = row[some], column[slot[some]], value[some] * sign[slot[some]]
        if others.any() or problem.d * inner <= DENSE:
            self.map = np.zeros((problem.d, inner))
            np.add.at(self.map, (row, column), value)
        else:
            self.triplets = row, column, value
            self.map = _in_rows(row, column, value, (problem.d, inner))
        if others.any():
            self.turn = _null_space(self.map[others])
            self.count = self.turn.shape[1]
            self.map = self.map @ self.turn
            self.map[zero] = 0.0
        if lean is not None:
            # what other units hold at zero cannot lean
            size = abs(self.map).sum(axis=1) if sp.issparse(self.map) else np.abs(self.map).sum(axis=1)
            lean = np.where(np.ravel(size) > 1e-12, lean, 0.0)
            # how far a unit that was set free is thought to be from zero
            self.lean = NOTHING * lean / max(np.abs(lean).max(initial=0.0), 1e-300)
        self.data = _View(problem, self, rooms, larger)

    def places(self):
        """The column of v and the sign of every slot; -1 where it plays no part."""
        column, sign = np.full(self.size, -1), np.zeros(self.size)
        column[self.slots], sign[self.slots] = self.columns, self.signs
        return column, sign

    @functools.cached_property
    def back(self):
        """N'B."""
        return self.map.T

    def lift(self, z):
        """w = N z."""
        w = np.zeros(self.size)
        w[self.slots] = self.signs * (z if self.turn is None else self.turn @ z)[self.columns]
        return w

    def pull(self, v):
        """N'v."""
        v = np.bincount(self.columns, self.signs * v[self.slots], self.inner)
        return v if self.turn is None else self.turn.T @ v

    def inside(self, w):
        """z of the point closest to w."""
        if self.turn is None:
            return self.pull(w) / self.shares
        return np.linalg.solve(self.turn.T @ (self.shares[:, None] * self.turn), self.pull(w))

    def diagonal(self, d):
        """The diagonal of N' diag(d) N."""
        d = np.bincount(self.columns, d[self.slots], self.inner)
        return d if self.turn is None else (self.turn**2).T @ d


def _in_rows(row, column, value, shape):
    """The matrix with these entries, which come row by row."""
    ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=shape[0]))])
    out = sp.csr_array((value.copy(), column.copy(), ends), shape=shape)
    out.sum_duplicates()  # in place
    return out


def _room(rooms, use, shape, dtype=float):
    """Memory that may have been used before."""
    size = math.prod(shape)
    if use not in rooms or rooms[use].size < size:
        rooms[use] = np.empty(math.ceil(_SPARE * size))  # memory that is not touched costs nothing
    return rooms[use].view(dtype)[:size].reshape(shape)


def definite(matrix):
    """The solve with a definite matrix, which is overwritten; the units of the unknowns do not matter.

    In single precision a lift makes up for the rounding.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix).astype(float), 1e-300))
    matrix *= scale
    matrix *= scale[:, None]
    if matrix.dtype == np.float32:
        matrix[np.diag_indices_from(matrix)] += LIFT_SINGLE  # of ones
    factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)

    def solve(right):
        right = scale * right
        size = np.abs(right).max(initial=1e-300)
        found = scipy.linalg.cho_solve(factor, (right / size).astype(matrix.dtype), check_finite=False)
        return scale * size * found

    return solve


def _null_space(rows):
    """An orthonormal basis of {v : rows v = 0}."""
    q, r, _ = scipy.linalg.qr(rows.T, pivoting=True)
    size = np.abs(np.diag(r))
    rank = int(np.count_nonzero(size > 1e-12 * size.max(initial=0.0)))
    return np.ascontiguousarray(q[:, rank:])


class _View:
    """The rows as z sees them, N'z_i: kept where they are few numbers, read from the data where they are not."""

    def __init__(self, problem, face, rooms, larger):
        # the face owns the view, and no cycle of the two may keep the memory that they hold
        self.problem, self.face, self.rooms = problem, weakref.proxy(face), rooms
        k = face.count
        plain = larger is not None and larger.turn is None and face.turn is None
        self.larger = larger if plain and larger.data.keeps else None
        self.ones = face.inner - 1 if problem.fit_intercept and problem.single else -1
        width = problem.data.stored / problem.n
        small = problem.visits * k <= max(_KEPT * problem.data.stored, BESIDE)
        small = small and k <= width * (8 if problem.data.sparse else 0.5)  # where that saves time, too
        self.keeps = problem.single and small
        # sparse rows with few entries are better added to the curvature one by one
        self.scattered = problem.data.sparse and (not self.keeps or 5.0 * width**2 < k * (0.02 * k + 2.0))
        self.cost = 0.5 if not self.keeps else min(0.5, 0.5 * k / max(width * (10 if problem.data.sparse else 1), 1))

    @functools.cached_property
    def kept(self):
        if not self.keeps:
            return None
        n, face = self.problem.n, self.face
        if self.larger is None:
            self.stride = face.inner
            return self._reduced(0, _room(self.rooms, "rows", (n, face.inner)))
        # its columns, added up where they are tied now; it is not in use any more
        from ...kernels.newton import merge_columns

        larger, self.larger = self.larger, None
        column, sign = larger.places()
        old, first = np.unique(column[face.slots], return_index=True)
        side = face.signs[first] * sign[face.slots[first]]
        self.stride, rows = larger.data.stride, self.rooms["rows"]
        merge_columns(rows, n, self.stride, old, face.columns[first], side, face.inner)
        return rows[: n * self.stride].reshape(n, -1)[:, : face.inner]

    def made(self):
        """All rows as z sees them, in memory of their own."""
        return self._reduced(0, np.empty((self.problem.n, self.face.inner)))

    def _reduced(self, first, out):
        """As many rows as `out` has."""
        from ...kernels.newton import reduce_dense, reduce_sparse

        problem, face = self.problem, self.face
        if problem.data.sparse:
            reduce_sparse(*problem.data.arrays, first, *self._lookup(), out)
        else:
            some = face.slots < problem.p  # of one vector the features come first
            reduce_dense(
                problem.data.arrays[0], first, face.slots[some], face.columns[some], face.signs[some], out
            )  # fmt: skip
        if self.ones >= 0:
            out[:, self.ones] = 1.0
        return out if face.turn is None else out @ face.turn

    def _lookup(self):
        """Column and sign of every feature."""
        column, sign = self.face.places()
        return column[self.problem.feature_slots], sign[self.problem.feature_slots]

    def scores(self, z):
        return self.problem.scores(self.face.lift(z)) if self.kept is None else self.kept @ z

    def gradient(self, x):
        return self.face.pull(self.problem.gradient_sum(x)) if self.kept is None else self.kept.T @ x

    def product(self, v, bend, free):
        """sum of bend_i (N'z_i)(N'z_i)'v over the free rows."""
        from ...kernels.newton import curvature_product

        if self.kept is not None:
            return self.kept.T @ (bend * (self.kept @ v))
        out = np.zeros(self.problem.size)
        curvature_product(self.rough, self.problem.layout, free, bend, self.face.lift(v), out)
        return self.face.pull(out)

    @property
    def rough(self):
        """The data for directions of steps, which need few digits."""
        data = self.problem.data
        return (data.single if data.copied else None) or data.arrays

    @functools.cached_property
    def plain(self):
        """Whether z is w itself, in dense rows."""
        face, p = self.face, self.problem.p
        whole = not self.problem.data.sparse and face.turn is None and face.inner == p == face.slots.size
        return whole and np.array_equal(face.columns, face.slots) and bool(np.all(face.signs == 1.0))

    def curvature(self, bend, dtype=float):
        """sum of bend_i (N'z_i)(N'z_i)', as a matrix in Fortran's order of which the lower triangle counts."""
        from ...kernels.newton import reduced_sparse_curvature

        problem, k, turn = self.problem, self.face.count, self.face.turn
        if self.scattered:
            out = np.zeros((self.face.inner, self.face.inner))
            reduced_sparse_curvature(*problem.data.arrays, bend, *self._lookup(), self.ones, out)
            return (out if turn is None else turn.T @ out @ turn).T  # it is symmetric
        out = _room(self.rooms, "curvature", (k, k), dtype).T
        out.fill(0.0)
        if self.kept is not None:
            return lower_gram(self.kept, bend, out)
        if self.plain:
            return lower_gram((self.rough if dtype == np.float32 else problem.data.arrays)[0], bend, out)
        chunk = max(64, (1 << 20) // max(k, 1))
        for first in range(0, problem.n, chunk):
            last = min(first + chunk, problem.n)
            if bend[first:last].any():
                part = _room(self.rooms, "part", (last - first, self.face.inner))
                lower_gram(self._reduced(first, part), bend[first:last], out)
        return out


@dataclasses.dataclass
class Bent:
    """A penalty near a point: its slope, and its curvature, a diagonal less strength direction direction' per unit."""

    slope: np.ndarray
    diagonal: np.ndarray
    direction: np.ndarray
    strength: np.ndarray


class Curvature:
    """The penalty's curvature in z: C' D C - A' S A, with D and S diagonal; A may be missing."""

    def __init__(self, C, D, A, S):
        self.C, self.D, self.A, self.S = C, D, A, S
        self.alone = None
        if not D.any():  # a norm of numbers one by one is straight where it is not kinked
            self.alone = np.zeros(C.shape[1])
        elif sp.issparse(C):
            if np.all(np.diff(C.indptr) <= 1):  # no unit couples two entries of z: C' D C is diagonal
                self.alone = np.bincount(C.indices, C.data**2 * D[np.diff(C.indptr) > 0], C.shape[1])
            else:
                self.transposed = sp.csr_array(C.T)

    def product(self, v):
        if self.alone is not None:
            out = self.alone * v
        else:
            back = self.transposed if sp.issparse(self.C) else self.C.T
            out = back @ (self.D * (self.C @ v))
        return out if self.A is None else out - self.A.T @ (self.S * (self.A @ v))

    def add_to(self, matrix):
        """Add it to a matrix of which the lower triangle counts."""
        if self.alone is not None:
            matrix[np.diag_indices_from(matrix)] += self.alone
        else:
            matrix += _gram(self.C, self.D).T  # the same, in the order in which the matrix is stored
        if self.A is None:
            return
        if sp.issparse(self.A):
            matrix -= _gram(self.A, self.S).T
        else:
            lower_gram(self.A, self.S, matrix, sign=-1.0)

    def diagonal(self):
        out = self.alone if self.alone is not None else _squares(self.C).T @ self.D
        return out if self.A is None else out - _squares(self.A).T @ self.S


def _gram(matrix, weights):
    if sp.issparse(matrix):
        return (matrix.T @ sp.diags_array(weights) @ matrix).toarray()
    some = weights != 0
    return (matrix[some] * weights[some, None]).T @ matrix[some]


def _squares(matrix):
    return matrix.power(2) if sp.issparse(matrix) else matrix**2
