"""B B' of a map B: its solve, and the directions that the map does not see."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla
from scipy.linalg import cho_factor, cho_solve, qr

from .._validate import Array, Ints, SparseMatrix
from ..foundation.numerics import FULL, LONGEST

_EVEN = 100.0  # condition of B B' up to which these are quick; larger: more rounds
# features up to which a dense form would gain nothing, or is taken at any rate; larger: seconds for singular values
_SMALL = 400
_DIRECT = 30_000  # features up to which B B' has a factor; more: conjugate gradients, where a factor may fill memory
CG_ROUNDS = 2000  # of conjugate gradients that are given up; more: longer before an error, or a factor


def _is_plain(matrix: SparseMatrix) -> bool:
    """Whether a product with the identity would leave it as it is: sums of duplicates made, no zeros."""
    plain = isinstance(matrix, sp.csr_array) and matrix.dtype == float and matrix.has_canonical_format
    return plain and bool(matrix.data.all())


class Gram:
    """B B' with its solve: diagonal, sparse factor or conjugate gradients; and the null space of B'."""

    def __init__(self, matrix: SparseMatrix) -> None:
        self.matrix = matrix = matrix if isinstance(matrix, sp.csr_array) else sp.csr_array(matrix)
        self.p = matrix.shape[1]
        if np.all(np.diff(matrix.indptr) <= 1):
            self.diagonal, self.is_diagonal = np.bincount(matrix.indices, matrix.data**2, self.p).astype(float), True
        else:
            self._gram = squares(matrix)
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
        out: bool = self.p * band**2 > LONGEST
        return out

    @property
    def nnz(self) -> int:
        """Entries of B B'."""
        return int(self._gram.nnz)

    @functools.cached_property
    def _rows(self) -> Ints:
        """The row of every entry of B B'."""
        return np.repeat(np.arange(self.p), np.diff(self._gram.indptr))

    def evened(self, values: Array, rounds: int) -> Array:
        """Every feature's value replaced, so many times, by the mean over it and those it shares a row of B' with."""
        if self.is_diagonal:
            return values
        apart = self.diagonal == 0
        count = np.bincount(self._rows, minlength=self.p) + apart
        for _ in range(rounds):
            values = (np.bincount(self._rows, values[self._gram.indices], self.p) + apart * values) / count
        return values

    @functools.cached_property
    def parts(self) -> Ints:
        """Labels of the features; those that rows of B' connect share one."""
        if self.is_diagonal:
            return np.arange(self.p)
        out: Ints = sp.csgraph.connected_components(self._gram, directed=False)[1]
        return out

    @functools.cached_property
    def _blind_parts(self) -> list[tuple[Any, Any]]:
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
    def _blind_rows(self) -> SparseMatrix:
        return sp.csr_array(self.blind.T)

    @property
    def null(self) -> Array:
        """Orthonormal basis (p, k) of {w : B'w = 0}."""
        basis = np.zeros((self.p, self.unseen.size))
        basis[self.unseen, np.arange(self.unseen.size)] = 1.0
        return np.column_stack([basis, self.blind.toarray()])

    def project(self, r: Array) -> Array:
        """The part of r in the range of B."""
        r = r - self.blind @ (self._blind_rows @ r) if self._blind_parts else r.copy()
        r[self.unseen] = 0.0
        return r

    @functools.cached_property
    def _factor(self) -> Callable[[Array], Array]:
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
            return solve_of(gram)
        rows, scale = gram.T, 1.0 / gram.diagonal()
        precondition = sla.LinearOperator(gram.shape, lambda r: scale * np.ravel(r))
        direct: list[Callable[[Array], Array]] = []

        def solve(r: Array) -> Array:
            if not direct:
                v, failed = sla.cg(rows, r, rtol=1e-14, maxiter=CG_ROUNDS, M=precondition)
                if not failed:
                    out: Array = v
                    return out
                # long chains and grids: many iterations, but little fill
                direct.append(solve_of(gram))
            out = direct[0](r)
            return out

        return solve

    def _grounded(self, ground: Ints) -> SparseMatrix:
        """B B' with more on its diagonal."""
        if self.unseen.size:  # they have no entry there
            return sp.csc_array(self._gram + sp.diags_array(ground))
        values = self._gram.data.copy()
        values[self._gram.indices == self._rows] += ground
        # rows of a symmetric matrix are its columns
        return sp.csc_array((values, self._gram.indices, self._gram.indptr), shape=self._gram.shape)

    def solve(self, r: Array) -> Array:
        if self.is_diagonal:
            out: Array = np.divide(r, self.diagonal, out=np.zeros(self.p), where=self.diagonal > 0)
            return out
        return self.project(self._factor(self.project(r)))


def is_full(matrix: SparseMatrix) -> bool:
    """Whether so many entries are not zero that dense products, some fifty times as fast, take less time."""
    return bool(max(matrix.shape) > _SMALL and matrix.nnz > FULL * matrix.shape[0] * matrix.shape[1])


def squares(matrix: SparseMatrix) -> SparseMatrix:
    """B B' of the matrix B'."""
    if is_full(matrix):
        dense = matrix.toarray()
        return sp.csr_array(dense.T @ dense)
    return matrix.T.tocsr() @ matrix


def _well_conditioned(gram: SparseMatrix) -> bool:
    """Whether conjugate gradients take some dozen rounds, by Gershgorin's bound."""
    diagonal = gram.diagonal()
    others = np.asarray(abs(gram).sum(axis=1)).ravel() - diagonal
    return bool((diagonal + others).max() <= _EVEN * (diagonal - others).min())


def solve_of(gram: SparseMatrix) -> Callable[[Array], Array]:
    """The solve of a sparse factor; where rounding has made it singular, of one shifted by as little."""
    if is_full(gram):
        try:
            factor = cho_factor(gram.toarray(), check_finite=False)
            return lambda r: np.asarray(cho_solve(factor, r, check_finite=False))
        except np.linalg.LinAlgError:
            pass
    try:
        out: Callable[[Array], Array] = sla.splu(gram).solve
        return out
    except RuntimeError:
        diagonal = gram.diagonal()
        out = sla.splu(sp.csc_array(gram + sp.diags_array(1e-14 * np.where(diagonal > 0, diagonal, 1.0)))).solve
        return out


def _null_of_part(matrix: SparseMatrix) -> Array:
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
    if size <= _SMALL:
        return _dense_null(matrix)
    gram = sp.csc_array(squares(matrix))
    shift = 1e-8 * gram.diagonal().mean()
    inverse = sla.LinearOperator(gram.shape, solve_of(sp.csc_array(gram + shift * sp.eye_array(size))), dtype=float)
    count = 8
    while True:
        try:
            _, vectors = sla.eigsh(gram, k=count, sigma=-shift, which="LM", v0=np.ones(size), OPinv=inverse)
        except sla.ArpackNoConvergence:  # many singular values close to zero, as trends have
            return _dense_null(matrix)
        vectors = np.linalg.qr(vectors)[0]
        _, values, mix = np.linalg.svd(matrix @ vectors, full_matrices=False)
        small = values <= 1e-8 * np.sqrt(gram.diagonal().max())
        if not small.all() or count >= 64:
            return np.linalg.qr(vectors @ mix[small].T)[0].T
        count *= 2


def _dense_null(matrix: SparseMatrix) -> Array:
    """The same by all singular values, which always works and takes the cube of the size."""
    rows, size = matrix.shape
    triangle: Any = np.zeros((0, size))
    for first in range(0, rows, 2 * size):
        triangle = np.linalg.qr(np.vstack([triangle, matrix[first : first + 2 * size].toarray()]), mode="r")
    _, values, vectors = np.linalg.svd(triangle)
    out: Array = vectors[np.count_nonzero(values > 1e-15 * max(matrix.shape) * values[0]) :]
    return out


def _polynomial_null(matrix: SparseMatrix) -> Array | None:
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
