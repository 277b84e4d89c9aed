"""Linear maps B': w -> u = B'w, as sparse matrices of shape (d, p).

Overlap, fusion, graphs, grids and trends are a choice of B. Each map knows its matrix, a tight bound
on its norm, the solve with B B' that a certificate needs, and the directions it does not see.
"""

from __future__ import annotations

import collections
import functools
import itertools
import weakref

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from .._validate import Array, Ints, MatrixLike, SparseMatrix, _count, sound
from ..foundation.numerics import AT_ONCE
from .gram import Gram, _is_plain

_identities: weakref.WeakValueDictionary[int, SparseMatrix] = weakref.WeakValueDictionary()
_last: collections.deque[SparseMatrix] = collections.deque(maxlen=4)  # kept for the next problem of that size


class Map:
    """A linear map with `d` outputs and `p` inputs; `p` is None for maps that take any size."""

    p: int | None = None
    along_line = False  # whether the features lie on a line, in their order

    def selected(self) -> Ints | None:
        """The features that it picks, each at most once; None where it does anything else."""
        return None

    def neighbours(self) -> tuple[Ints, Array | None] | None:
        """The pairs of features (m, 2) that it joins by differences, and their weights; None where it does not."""
        return None

    def grid_shape(self) -> tuple[int, ...] | None:
        """The shape of the grid whose cells are the features; None where there is none."""
        return None

    def matrix(self, p: int) -> SparseMatrix:
        """B' for p features."""
        if self.p is not None and p != self.p:
            raise ValueError(f"{type(self).__name__} acts on {self.p} features, but there are {p}")
        return self._matrix(p)

    def _matrix(self, p: int) -> SparseMatrix:
        raise TypeError(f"{type(self).__name__} must define _matrix(p)")

    def _size(self) -> int:
        if self.p is None:
            raise ValueError(f"{type(self).__name__} takes any number of features; use matrix(p)")
        return self.p

    def apply(self, w: Array) -> Array:
        """B'w."""
        out: Array = self.matrix(len(w)) @ np.asarray(w)
        return out

    def adjoint(self, u: Array) -> Array:
        """B u."""
        out: Array = self.matrix(self._size()).T @ np.asarray(u)
        return out

    def norm(self) -> float:
        """An upper bound on the largest singular value of B, tight to 1 %."""
        return spectral_norm(self.matrix(self._size()))

    def gram_solve(self, r: Array) -> Array:
        """The least-norm solution v of B B' v = r, for r in the range of B."""
        return self._gram.solve(np.asarray(r, dtype=float))

    def null_space(self) -> Array:
        """Orthonormal basis (p, k) of the directions w with B'w = 0."""
        return self._gram.null

    @functools.cached_property
    def _gram(self) -> Gram:
        return Gram(self.matrix(self._size()))

    def __matmul__(self, other: Map) -> Map:
        if not isinstance(other, Map):
            return NotImplemented
        return Composed(self, other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({'' if self.p is None else self.p})"


class Identity(Map):
    """u = w."""

    def __init__(self, p: int | None = None) -> None:
        self.p = None if p is None else _count("p", p)

    def _matrix(self, p: int) -> SparseMatrix:
        kind = np.int32 if p < 2**31 - 1 else np.int64
        out = sp.csr_array((np.ones(p), np.arange(p, dtype=kind), np.arange(p + 1, dtype=kind)), shape=(p, p))
        out.has_canonical_format = True  # which scipy would have to find out
        return out

    def shared(self, p: int) -> SparseMatrix:
        """Its matrix, the same object for all who hold it at a time; nobody may change it."""
        found = _identities.get(p)
        if found is None:
            found = _identities[p] = self.matrix(p)
            if p <= AT_ONCE:
                _last.append(found)
        return found

    def norm(self) -> float:
        return 1.0


def is_shared_identity(matrix: SparseMatrix) -> bool:
    """Whether this is the very matrix of :meth:`Identity.shared`."""
    return _identities.get(matrix.shape[1]) is matrix


class Matrix(Map):
    """u = M w for a dense or sparse matrix M = B' of shape (d, p)."""

    def __init__(self, M: MatrixLike) -> None:
        M = sound("M", M) if sp.issparse(M) else np.asarray(M)
        if M.dtype.kind not in "biuf" or M.ndim != 2:
            raise ValueError(f"M has dtype {M.dtype} and shape {M.shape}; it must be a real matrix")
        values = sp.csr_array(M, dtype=float, copy=True)
        values.sum_duplicates()
        bad = np.flatnonzero(~np.isfinite(values.data))
        if bad.size:
            row = np.searchsorted(values.indptr, bad[0], side="right") - 1
            raise ValueError(f"M[{row}, {values.indices[bad[0]]}] is {values.data[bad[0]]}; M must be finite")
        self._values = values
        self.p = values.shape[1]

    def _matrix(self, p: int) -> SparseMatrix:
        return self._values


class MadeMap(Map):
    """A map whose matrix was made, for all who ask for it."""

    def __init__(self, made: SparseMatrix) -> None:
        self.made, self.p = made, made.shape[1]

    def _matrix(self, p: int) -> SparseMatrix:
        return self.made


class Stack(Map):
    """Several maps of the same features, one under the other."""

    def __init__(self, *maps: Map) -> None:
        if not maps:
            raise ValueError("Stack needs at least one map")
        self.maps = maps
        sizes = {m.p for m in maps if m.p is not None}
        if len(sizes) > 1:
            raise ValueError(f"Stack holds maps of different numbers of features: {sorted(sizes)}")
        self.p = sizes.pop() if sizes else None

    def _matrix(self, p: int) -> SparseMatrix:
        return sp.csr_array(sp.vstack([m.matrix(p) for m in self.maps], format="csr"))


class Composed(Map):
    """outer applied to the result of inner."""

    def __init__(self, outer: Map, inner: Map) -> None:
        self.outer, self.inner = outer, inner
        self.p = inner.p

    def _matrix(self, p: int) -> SparseMatrix:
        inner = self.inner.matrix(p)
        if type(self.outer) is Identity and self.outer.p in (None, inner.shape[0]) and _is_plain(inner):
            return inner
        return sp.csr_array(self.outer.matrix(inner.shape[0]) @ inner)

    def __repr__(self) -> str:
        return f"{self.outer!r} @ {self.inner!r}"


def spectral_norm(matrix: SparseMatrix) -> float:
    """An upper bound on the largest singular value, tight to 1 %.

    Lanczos approaches it from below, so a margin is added; the row and column sums bound it from above.
    """
    matrix = sp.csr_array(matrix)
    if matrix.nnz == 0:
        return 0.0
    size = abs(matrix)
    above = float(np.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max()))
    small = min(matrix.shape)
    if small <= 200:
        gram = (matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix).toarray()
        return float(min(np.sqrt(max(np.linalg.eigvalsh(gram)[-1], 0.0)) * (1 + 1e-9), above))
    # the top of the spectrum of a chain or grid is crowded and Lanczos is slow there, but the bound is sharp
    gram = matrix @ matrix.T if matrix.shape[0] == small else matrix.T @ matrix
    vector = np.random.default_rng(0).standard_normal(small)
    for _ in range(30):
        vector = gram @ vector
        vector /= np.linalg.norm(vector)
    if np.linalg.norm(gram @ vector) >= (0.98 * above) ** 2:
        return above
    value = sla.eigsh(gram, k=1, v0=vector, tol=1e-4, return_eigenvectors=False)[0]
    return float(min(np.sqrt(value) * 1.005, above))


def row_width(matrix: SparseMatrix) -> int:
    """Entries in every row, or 0 where rows differ."""
    counts = np.diff(matrix.indptr)
    return int(counts[0]) if counts.size and np.all(counts == counts[0]) else 0


def runs_of_rows(matrix: SparseMatrix, bounds: Ints) -> tuple[Array, Array]:
    """Runs: rows with one entry each, in columns one after another. Where the blocks begin in the runs, and these.

    Only for blocks that are made of such runs, of 64 rows or more on average; the others have none.
    """
    in_runs, runs = [0], []
    for first, last in itertools.pairwise(bounds):
        if last > first and np.all(np.diff(matrix.indptr[first : last + 1]) == 1):
            columns = matrix.indices[matrix.indptr[first] : matrix.indptr[last]]
            breaks = np.flatnonzero(np.diff(columns) != 1) + 1
            if 64 * (len(breaks) + 1) <= last - first:
                runs.append(first + np.append(0, breaks))
        in_runs.append(sum(map(len, runs)))
    return np.array(in_runs, dtype=np.int64), np.concatenate([*runs, [bounds[-1]]]).astype(np.int64)
