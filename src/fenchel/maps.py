"""Linear maps B': w -> u = B'w, as sparse matrices of shape (d, p).

Overlap, fusion, graphs, grids and trends are a choice of B. Each map knows its matrix, a tight bound
on its norm, the solve with B B' that a certificate needs, and the directions it does not see.
"""

from __future__ import annotations

import collections
import functools
import itertools
import numbers
import weakref

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from scipy.linalg import qr

_identities: weakref.WeakValueDictionary[int, sp.csr_array] = weakref.WeakValueDictionary()
_last: collections.deque[sp.csr_array] = collections.deque(maxlen=4)  # kept for the next problem of that size
_SMALL = 1 << 16  # features up to which they are: a MiB of memory
_LONG = 1e9  # multiply-adds of a factor of a band: more take longer than dozens of solves by conjugate gradients
_EVEN = 100.0  # condition of B B' up to which these are quick; larger: more rounds
_DIRECT = 30_000  # above this many features B B' is solved by conjugate gradients


class Map:
    """A linear map with `d` outputs and `p` inputs; `p` is None for maps that take any size."""

    p: int | None = None

    def matrix(self, p: int) -> sp.csr_array:
        """B' for p features."""
        if self.p is not None and p != self.p:
            raise ValueError(f"{type(self).__name__} acts on {self.p} features, but there are {p}")
        return self._matrix(p)

    def _matrix(self, p):
        raise TypeError(f"{type(self).__name__} must define _matrix(p)")

    def _size(self):
        if self.p is None:
            raise ValueError(f"{type(self).__name__} takes any number of features; use matrix(p)")
        return self.p

    def apply(self, w):
        """B'w."""
        return self.matrix(len(w)) @ np.asarray(w)

    def adjoint(self, u):
        """B u."""
        return self.matrix(self._size()).T @ np.asarray(u)

    def norm(self) -> float:
        """An upper bound on the largest singular value of B, tight to 1 %."""
        return spectral_norm(self.matrix(self._size()))

    def gram_solve(self, r):
        """The least-norm solution v of B B' v = r, for r in the range of B."""
        return self._gram.solve(np.asarray(r, dtype=float))

    def null_space(self) -> np.ndarray:
        """Orthonormal basis (p, k) of the directions w with B'w = 0."""
        return self._gram.null

    @functools.cached_property
    def _gram(self):
        return Gram(self.matrix(self._size()))

    def __matmul__(self, other):
        if not isinstance(other, Map):
            return NotImplemented
        return Composed(self, other)

    def __repr__(self):
        return f"{type(self).__name__}({'' if self.p is None else self.p})"


class Identity(Map):
    """u = w."""

    def __init__(self, p: int | None = None):
        self.p = None if p is None else _count("p", p)

    def _matrix(self, p):
        kind = np.int32 if p < 2**31 - 1 else np.int64
        out = sp.csr_array((np.ones(p), np.arange(p, dtype=kind), np.arange(p + 1, dtype=kind)), shape=(p, p))
        out.has_canonical_format = True  # which scipy would have to find out
        return out

    def shared(self, p: int) -> sp.csr_array:
        """Its matrix, the same object for all who hold it at a time; nobody may change it."""
        found = _identities.get(p)
        if found is None:
            found = _identities[p] = self.matrix(p)
            if p <= _SMALL:
                _last.append(found)
        return found

    def norm(self):
        return 1.0


def is_shared_identity(matrix) -> bool:
    """Whether this is the very matrix of :meth:`Identity.shared`."""
    return _identities.get(matrix.shape[1]) is matrix


class Matrix(Map):
    """u = M w for a dense or sparse matrix M = B' of shape (d, p)."""

    def __init__(self, M):
        M = M if sp.issparse(M) else np.asarray(M)
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

    def _matrix(self, p):
        return self._values


class MadeMap(Map):
    """A map whose matrix was made, for all who ask for it."""

    def __init__(self, made: sp.csr_array):
        self.made, self.p = made, made.shape[1]

    def _matrix(self, p):
        return self.made


class Incidence(Map):
    """u_e = weight_e (w_i - w_j) for the edges e = (i, j) of a graph on p features.

    Parameters
    ----------
    edges : array of shape (m, 2)
    p : int
    weights : array of m numbers, optional
        A negative weight joins features of opposite sign: u_e = |weight| (w_i + w_j).
    """

    def __init__(self, edges, p: int, weights=None):
        self.p = _count("p", p)
        self.edges = index_array("edges", edges, self.p)
        if self.edges.size == 0:
            self.edges = self.edges.reshape(0, 2)
        if self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise ValueError(f"edges has shape {self.edges.shape}; it must be (number of edges, 2)")
        loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
        if loops.size:
            raise ValueError(f"edges[{loops[0]}] joins feature {self.edges[loops[0], 0]} to itself")
        self.weights = None if weights is None else finite_vector("weights", weights, len(self.edges))

    def _matrix(self, p):
        m = len(self.edges)
        size = np.ones(m) if self.weights is None else np.abs(self.weights)
        sign = np.ones(m) if self.weights is None else np.where(self.weights < 0, -1.0, 1.0)
        values = np.column_stack([size, -sign * size]).ravel()
        # a copy, since scipy sorts indices in place whenever it likes
        out = sp.csr_array((values, self.edges.flatten(), 2 * np.arange(m + 1)), shape=(m, p))
        out.sort_indices()
        return out


class Difference(Map):
    """The `order`-th differences of w along a line of p features."""

    def __init__(self, p: int, order: int = 1):
        self.p = _count("p", p)
        self.order = _count("order", order)

    def _matrix(self, p):
        out = sp.eye_array(p, format="csr")
        for _ in range(self.order):
            m = out.shape[0]
            if m < 2:
                return sp.csr_array((0, p))
            out = sp.csr_array(
                sp.diags_array([-np.ones(m - 1), np.ones(m - 1)], offsets=[0, 1], shape=(m - 1, m)) @ out
            )
        return out

    def norm(self):
        # a first difference of m points has norm 2 cos(pi / 2m); orders multiply
        if self.p <= self.order:
            return 0.0
        sizes = self.p - np.arange(self.order)
        product = float(np.prod(2 * np.cos(np.pi / (2 * sizes))))
        return product if self.order == 1 or self.p > 1000 else min(product, super().norm())


class Gradient(Map):
    """Forward differences of w on a grid, C-ordered; all differences of a cell stand together.

    A cell on the far border has fewer differences. `cells` lists, for each cell that has any, its
    rows of u: the groups of the isotropic total variation.
    """

    def __init__(self, shape):
        self.shape = tuple(_count("shape", s) for s in np.atleast_1d(shape).tolist())
        self.p = int(np.prod(self.shape))

    @functools.cached_property
    def _pairs(self):
        index = np.arange(self.p).reshape(self.shape)
        here, there = [], []
        for axis in range(len(self.shape)):
            here.append(np.take(index, range(self.shape[axis] - 1), axis=axis).ravel())
            there.append(np.take(index, range(1, self.shape[axis]), axis=axis).ravel())
        here, there = np.concatenate(here), np.concatenate(there)
        order = np.argsort(here, kind="stable")
        return here[order], there[order]

    @property
    def cells(self):
        """Groups of rows of u, one per cell: pass to GroupL2 for the isotropic total variation."""
        here, _ = self._pairs
        return np.split(np.arange(len(here)), np.flatnonzero(np.diff(here)) + 1) if len(here) else []

    def _matrix(self, p):
        here, there = self._pairs
        m = len(here)
        values = np.tile([-1.0, 1.0], m)
        return sp.csr_array((values, np.column_stack([here, there]).ravel(), 2 * np.arange(m + 1)), shape=(m, p))

    def norm(self):
        return float(np.sqrt(sum(4 * np.cos(np.pi / (2 * s)) ** 2 for s in self.shape)))

    def __repr__(self):
        return f"Gradient({self.shape})"


class Selection(Map):
    """u = w[index], an index at most once."""

    def __init__(self, index, p: int):
        self.p = _count("p", p)
        self.index = index_array("index", index, self.p).ravel()
        values, counts = np.unique(self.index, return_counts=True)
        if np.any(counts > 1):
            raise ValueError(f"index names feature {values[counts > 1][0]} twice; use Copies for overlap")

    def _matrix(self, p):
        m = len(self.index)
        return sp.csr_array((np.ones(m), self.index.copy(), np.arange(m + 1)), shape=(m, p))

    def norm(self):
        return 1.0 if len(self.index) else 0.0


class Copies(Map):
    """u = w[index] where an index may repeat: the copies that split overlapping groups."""

    def __init__(self, index, p: int):
        self.p = _count("p", p)
        self.index = index_array("index", index, self.p).ravel()

    _matrix = Selection._matrix

    def norm(self):
        return float(np.sqrt(np.bincount(self.index, minlength=1).max())) if len(self.index) else 0.0


class Stack(Map):
    """Several maps of the same features, one under the other."""

    def __init__(self, *maps: Map):
        if not maps:
            raise ValueError("Stack needs at least one map")
        self.maps = maps
        sizes = {m.p for m in maps if m.p is not None}
        if len(sizes) > 1:
            raise ValueError(f"Stack holds maps of different numbers of features: {sorted(sizes)}")
        self.p = sizes.pop() if sizes else None

    def _matrix(self, p):
        return sp.csr_array(sp.vstack([m.matrix(p) for m in self.maps], format="csr"))


class Composed(Map):
    """outer applied to the result of inner."""

    def __init__(self, outer: Map, inner: Map):
        self.outer, self.inner = outer, inner
        self.p = inner.p

    def _matrix(self, p):
        inner = self.inner.matrix(p)
        if type(self.outer) is Identity and self.outer.p in (None, inner.shape[0]) and _is_plain(inner):
            return inner
        return sp.csr_array(self.outer.matrix(inner.shape[0]) @ inner)

    def __repr__(self):
        return f"{self.outer!r} @ {self.inner!r}"


def _is_plain(matrix):
    """Whether a product with the identity would leave it as it is: sums of duplicates made, no zeros."""
    plain = isinstance(matrix, sp.csr_array) and matrix.dtype == float and matrix.has_canonical_format
    return plain and bool(matrix.data.all())


class Gram:
    """B B' with its solve: diagonal, sparse factor or conjugate gradients; and the null space of B'."""

    def __init__(self, matrix: sp.csr_array):
        self.matrix = matrix = matrix if isinstance(matrix, sp.csr_array) else sp.csr_array(matrix)
        self.p = matrix.shape[1]
        if np.all(np.diff(matrix.indptr) <= 1):
            self.diagonal, self.is_diagonal = np.bincount(matrix.indices, matrix.data**2, self.p).astype(float), True
        else:
            self._gram = matrix.T.tocsr() @ matrix
            self.diagonal = self._gram.diagonal()
            self._gram.eliminate_zeros()
            self._gram.sort_indices()
            self.is_diagonal = self._gram.nnz == np.count_nonzero(self.diagonal)
        self.unseen = np.flatnonzero(self.diagonal == 0)

    @property
    def direct(self) -> bool:
        """Whether a solve is a quick one: by a factor, not by conjugate gradients."""
        return self.is_diagonal or self.p <= _DIRECT

    @property
    def _wide_band(self) -> bool:
        """Whether a factor may take very long: on graphs without an order, most of it fills up."""
        band = int(np.abs(self._rows - self._gram.indices).max(initial=0))
        return self.p * band**2 > _LONG

    @property
    def nnz(self) -> int:
        """Entries of B B'."""
        return int(self._gram.nnz)

    @functools.cached_property
    def _rows(self):
        """The row of every entry of B B'."""
        return np.repeat(np.arange(self.p), np.diff(self._gram.indptr))

    def evened(self, values, rounds):
        """Every feature's value replaced, so many times, by the mean over it and those it shares a row of B' with."""
        if self.is_diagonal:
            return values
        apart = self.diagonal == 0
        count = np.bincount(self._rows, minlength=self.p) + apart
        for _ in range(rounds):
            values = (np.bincount(self._rows, values[self._gram.indices], self.p) + apart * values) / count
        return values

    @functools.cached_property
    def parts(self) -> np.ndarray:
        """Labels of the features; those that rows of B' connect share one."""
        if self.is_diagonal:
            return np.arange(self.p)
        return sp.csgraph.connected_components(self._gram, directed=False)[1]

    @functools.cached_property
    def _blind_parts(self) -> list:
        """Parts of the features with null directions that mix them: their indices, and orthonormal rows."""
        if self.is_diagonal:
            return []
        # a row of B' with one entry pins its feature; only parts of the graph without a pin can be blind
        counts = np.diff(self.matrix.indptr)
        pinned = self.diagonal == 0
        single = self.matrix.indptr[:-1][counts == 1]
        pinned[self.matrix.indices[single][self.matrix.data[single] != 0]] = True
        if pinned.all():
            return []
        # where the other rows are differences of two features, one pin holds the whole part
        totals = np.asarray(self.matrix.sum(axis=1)).ravel()
        odd = (counts > 2) | ((counts == 2) & (totals != 0))
        size = np.bincount(self.parts)
        pins = np.bincount(self.parts, pinned)
        plain = np.bincount(self.parts[self.matrix.indices[self.matrix.indptr[:-1][odd]]], minlength=size.size) == 0
        order, ends = np.argsort(self.parts, kind="stable"), np.cumsum(size)
        found = []
        for k in np.flatnonzero((pins < size) & ~(plain & (pins > 0))):
            part = order[ends[k] - size[k] : ends[k]]
            constant = np.full((1, part.size), part.size**-0.5)
            vectors = constant if plain[k] else np.asarray(_null_of_part(self.matrix[:, part]))
            if len(vectors):
                found.append((part, vectors))
        return found

    @property
    def blind_count(self) -> int:
        """The number of null directions that mix several features."""
        return sum(len(vectors) for _, vectors in self._blind_parts)

    @functools.cached_property
    def blind(self) -> sp.csc_array:
        """Orthonormal basis (p, k) of the null directions that mix several features, e.g. constants.

        Sparse, since a graph may fall into thousands of parts with a constant each.
        """
        parts = self._blind_parts
        lengths = [part.size for part, vectors in parts for _ in vectors]
        ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        rows = np.concatenate([part for part, vectors in parts for _ in vectors] or [np.zeros(0, dtype=np.int64)])
        values = np.concatenate([vector for _, vectors in parts for vector in vectors] or [np.zeros(0)])
        return sp.csc_array((values, rows, ends), shape=(self.p, len(lengths)))

    @functools.cached_property
    def _blind_rows(self):
        return sp.csr_array(self.blind.T)

    @property
    def null(self) -> np.ndarray:
        """Orthonormal basis (p, k) of {w : B'w = 0}."""
        basis = np.zeros((self.p, self.unseen.size))
        basis[self.unseen, np.arange(self.unseen.size)] = 1.0
        return np.column_stack([basis, self.blind.toarray()])

    def project(self, r):
        """The part of r in the range of B."""
        r = r - self.blind @ (self._blind_rows @ r) if self._blind_parts else r.copy()
        r[self.unseen] = 0.0
        return r

    @functools.cached_property
    def _factor(self):
        """Solve with B B' grounded at one feature per null direction.

        With E the chosen features, (B B' + E E') v = r and r orthogonal to the null space N give
        N'E E'v = 0, so E'v = 0 and B B' v = r exactly, without making the matrix dense.
        """
        ground = np.where(self.diagonal == 0, 1.0, 0.0)
        for part, vectors in self._blind_parts:
            if len(vectors) == 1:  # there may be thousands of these
                pivot = [np.argmax(np.abs(vectors[0]))]
            else:
                _, _, pivot = qr(vectors, mode="economic", pivoting=True)
            ground[part[pivot[: len(vectors)]]] = self.diagonal.max()
        gram = self._grounded(ground)
        if self.direct and not (self._wide_band and _well_conditioned(gram)):
            return _sparse_solve(gram)
        rows, scale = gram.T, 1.0 / gram.diagonal()
        precondition = sla.LinearOperator(gram.shape, lambda r: scale * np.ravel(r))
        direct = []

        def solve(r):
            if not direct:
                v, failed = sla.cg(rows, r, rtol=1e-14, maxiter=2000, M=precondition)
                if not failed:
                    return v
                # long chains and grids: many iterations, but little fill
                direct.append(_sparse_solve(gram))
            return direct[0](r)

        return solve

    def _grounded(self, ground):
        """B B' with more on its diagonal."""
        if self.unseen.size:  # they have no entry there
            return sp.csc_array(self._gram + sp.diags_array(ground))
        values = self._gram.data.copy()
        values[self._gram.indices == self._rows] += ground
        # rows of a symmetric matrix are its columns
        return sp.csc_array((values, self._gram.indices, self._gram.indptr), shape=self._gram.shape)

    def solve(self, r):
        if self.is_diagonal:
            return np.divide(r, self.diagonal, out=np.zeros(self.p), where=self.diagonal > 0)
        return self.project(self._factor(self.project(r)))


def _well_conditioned(gram):
    """Whether conjugate gradients take some dozen rounds, by Gershgorin's bound."""
    diagonal = gram.diagonal()
    others = np.asarray(abs(gram).sum(axis=1)).ravel() - diagonal
    return bool((diagonal + others).max() <= _EVEN * (diagonal - others).min())


def _sparse_solve(gram):
    """The solve of a sparse factor; where rounding has made it singular, of one shifted by as little."""
    try:
        return sla.splu(gram).solve
    except RuntimeError:
        diagonal = gram.diagonal()
        return sla.splu(sp.csc_array(gram + sp.diags_array(1e-14 * np.where(diagonal > 0, diagonal, 1.0)))).solve


def _null_of_part(matrix):
    """Orthonormal null vectors of B' restricted to one connected part of its features.

    Rows are brought to length 1, which leaves the null space as it is and makes weak rows count; and it is
    the singular values of B' that are looked at, since the eigenvalues of B B' lose half the digits.
    """
    matrix = sp.csr_array(matrix)
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    rows = np.flatnonzero(length)
    matrix = sp.csr_array(sp.diags_array(1.0 / length[rows]) @ matrix[rows])
    size = matrix.shape[1]
    polynomials = _polynomial_null(matrix)
    if polynomials is not None:
        return polynomials
    if size <= 400:
        triangle = np.zeros((0, size))
        for first in range(0, rows.size, 2 * size):
            triangle = np.linalg.qr(np.vstack([triangle, matrix[first : first + 2 * size].toarray()]), mode="r")
        _, values, vectors = np.linalg.svd(triangle)
        return vectors[np.count_nonzero(values > 1e-15 * max(matrix.shape) * values[0]) :]
    gram = sp.csc_array(matrix.T @ matrix)
    shift = 1e-8 * gram.diagonal().mean()
    count = 8
    while True:
        _, vectors = sla.eigsh(gram, k=count, sigma=-shift, which="LM", v0=np.ones(size))
        vectors = np.linalg.qr(vectors)[0]
        _, values, mix = np.linalg.svd(matrix @ vectors, full_matrices=False)
        small = values <= 1e-8 * np.sqrt(gram.diagonal().max())
        if not small.all() or count >= 64:
            return np.linalg.qr(vectors @ mix[small].T)[0].T
        count *= 2


def _polynomial_null(matrix):
    """Differences along a line: rows that begin further and further right are independent, so that the null space
    has one dimension per missing row; if low polynomials lie in it they are all of it."""
    rows, size = matrix.shape
    degree = size - rows
    if not 0 < degree <= 8 or np.any(np.diff(matrix.indptr) == 0):
        return None
    first = np.minimum.reduceat(matrix.indices, matrix.indptr[:-1])
    if np.any(np.diff(first) <= 0):
        return None
    basis = np.linalg.qr(np.polynomial.legendre.legvander(np.linspace(-1, 1, size), degree - 1))[0]
    return basis.T if np.abs(matrix @ basis).max() <= 1e-12 else None


def spectral_norm(matrix) -> float:
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


def row_width(matrix) -> int:
    """Entries in every row, or 0 where rows differ."""
    counts = np.diff(matrix.indptr)
    return int(counts[0]) if counts.size and np.all(counts == counts[0]) else 0


def runs_of_rows(matrix, bounds) -> tuple[np.ndarray, np.ndarray]:
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


def _count(name, value):
    real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not (real and value >= 1 and value == np.floor(value) and np.isfinite(value)):
        raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
    return int(value)


def finite_vector(name, values, length, *, minimum=None):
    """A float vector of the given length, finite and not below `minimum`, or a ValueError."""
    if minimum is None:
        return _checked(name, values, length, np.isfinite, "finite")
    rule = f"finite and at least {minimum:g}"
    return _checked(name, values, length, lambda numbers: np.isfinite(numbers) & (numbers >= minimum), rule)


def weight_vector(name, values, length):
    """A float vector of weights, not negative; infinite ones are allowed. Or a ValueError."""
    return _checked(name, values, length, lambda numbers: numbers >= 0, "at least 0, or infinite")


def _checked(name, values, length, good, rule):
    values = np.asarray(values)
    if values.dtype.kind not in "biuf" or values.ndim != 1:
        raise ValueError(f"{name} has dtype {values.dtype} and shape {values.shape}; it must be a numeric vector")
    values = values.astype(float)
    if len(values) != length:
        raise ValueError(f"{name} has {len(values)} entries; expected {length}")
    bad = np.flatnonzero(~good(values))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {values[bad[0]]:g}; it must be {rule}")
    return values


def index_array(name, values, p):
    """An integer array with entries in 0 .. p - 1, or a ValueError that names the first that is not."""
    values = np.asarray(values)
    if values.size == 0:
        return values.astype(np.int64)
    whole = np.issubdtype(values.dtype, np.floating) and np.all(values == np.floor(values))
    if not (np.issubdtype(values.dtype, np.integer) or whole):
        raise ValueError(f"{name} has dtype {values.dtype}; it must hold whole numbers")
    values = values.astype(np.int64)
    bad = np.flatnonzero((values < 0) | (values >= p))
    if bad.size:
        place = ", ".join(str(i) for i in np.unravel_index(bad[0], values.shape))
        raise ValueError(f"{name}[{place}] is {values.flat[bad[0]]}; features are numbered 0 to {p - 1}")
    return values


def repeated(flat, bounds):
    """The first group (range of `flat` between bounds) that holds a number twice, and that number; or None.

    The numbers are not negative.
    """
    if (flat[1:] > flat[:-1]).all():
        return None
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    width = int(flat.max(initial=0)) + 1
    both = np.sort(owner * width + flat.astype(np.int64))
    twice = both[1:][both[1:] == both[:-1]]
    return divmod(int(twice[0]), width) if twice.size else None


MAPS = {
    "identity": Identity,
    "matrix": Matrix,
    "incidence": Incidence,
    "difference": Difference,
    "gradient": Gradient,
    "copies": Copies,
    "selection": Selection,
    "stack": Stack,
}
