r"""The Gram matrix of a loss that sees the scores of several classes together.

The curvature of a row is diag(h) - h h' / sum(h), see ``losses/several.py``. With Y the columns of the set, each times
h_k / sqrt(sum(h)) of its class k, and X_k those of class k,

.. math:: G = \frac1n \Bigl(\bigoplus_k X_k^\top \mathrm{diag}(h_k) X_k - Y^\top Y\Bigr) - C M^+ C^\top
              + \mathrm{diag}(r)

where M is the curvature of the intercepts and C that between coefficients and intercepts. M does not see what all
intercepts share, hence the pseudoinverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk, ssyrk

from ...foundation.numerics import BESIDE, FULL
from ..restrictions.columns import SINGLE_FROM
from ..units import Index, Vector
from .gram import LaggedGram
from .whole_gram import LIFT_SINGLE


def crossed(h: Vector) -> Vector:
    """M for curvatures (classes, n): that of the intercepts."""
    total = np.maximum(h.sum(axis=0), 1e-300)
    return np.asarray((np.diag(h.sum(axis=1)) - (h / total) @ h.T) / h.shape[1])


class SeveralGram(LaggedGram):
    """See :class:`LaggedGram`; here `centres` are C, a row for every coefficient, and `heights` M^+.

    Dense columns are taken from their `means` first, so that those far from zero lose no digits: an intercept of such
    columns is another one, by the means times the coefficients of its class (`classes`).
    """

    def __init__(self, n: int, intercept: bool, classes: int) -> None:
        super().__init__(n, intercept, False)
        self.centres: Vector = np.zeros((0, classes))
        self.heights: Vector = np.zeros((classes, classes))
        self.means, self.classes = np.zeros(0), np.zeros(0, dtype=np.int64)

    def keep(self, places: Index) -> None:
        super().keep(places)
        if self.count:
            self.means, self.classes = self.means[places], self.classes[places]

    def extend(self, parts: list[Any], where: list[Index], curvature: Vector, ridge: Vector) -> bool:
        total, fresh, known = ridge.size, self.count == 0, self.count
        if fresh:
            self.curvature = curvature.copy()
            self.heights = np.asarray(np.linalg.pinv(crossed(curvature), rcond=1e-12, hermitian=True), dtype=float)
        if known < total:
            self._grow(total)
            assert self.curvature is not None
            self.ridge = np.concatenate([self.ridge[:known], np.zeros(total - known)])
            made = _Sums(self, parts, where, self.curvature, known, total)
            self.means, self.classes = np.zeros(total), np.empty(total, dtype=np.int64)
            for k, (part, places) in enumerate(zip(parts, where, strict=True)):
                self.classes[places] = k
                if self.intercept and not part.sparse:
                    self.means[places] = part.means
            self.matrix[known:total, :total] = made.matrix
            self.matrix[:known, known:total] = made.matrix[:, :known].T
            if fresh:
                self.centres = made.centres
            else:
                self.centres = np.concatenate([self.centres[:known], made.centres])
            if self.intercept:
                means = self.centres[known:] @ self.heights @ self.centres.T
                self.matrix[known:total, :total] -= means
                self.matrix[:known, known:total] -= means[:, :known].T
            places = np.arange(known, total)
            lift = (LIFT_SINGLE if made.narrow else 0.0) * np.abs(self.matrix[places, places])
            self.matrix[places, places] = np.maximum(self.matrix[places, places], 0.0) + lift
            self.count = total
        change = np.flatnonzero(ridge != self.ridge)
        if change.size:
            self.matrix[change, change] += (ridge - self.ridge)[change]
            self.ridge = ridge.copy()
        return fresh

    def lean(self, push: Vector, where: list[Index]) -> Vector:
        return np.asarray(self.centres @ (self.heights @ push)) + self.means * push[self.classes]

    def follow(self, change: Vector, push: Vector, where: list[Index]) -> Vector:
        moved = np.bincount(self.classes, self.means * change, push.size)
        return np.asarray(-self.heights @ (push + change @ self.centres)) - moved

    def roots(self, part: Any) -> Callable[[Index], Vector] | None:
        return None


class _Sums:
    """The rows of G from `known` on, without intercepts, and C for them."""

    def __init__(self, gram: SeveralGram, parts: list[Any], where: list[Index], h: Vector, known: int, total: int):
        self.n, self.known, self.total, self.where = gram.n, known, total, where
        self.roots = h / np.sqrt(np.maximum(h.sum(axis=0), 1e-300))
        self.h, self.parts, self.intercept = h, parts, gram.intercept
        self.narrow = total >= SINGLE_FROM and not gram.precise
        self.matrix, self.centres = np.zeros((total - known, total)), np.zeros((total - known, len(h)))
        self.less: _Squares | None = None
        if parts[0].sparse:
            self._sparse()
        else:
            self._dense()
        self.matrix /= gram.n
        self.centres /= gram.n

    def _chunks(self) -> Iterator[slice]:
        step = max(BESIDE // max(self.total, 1), 64)
        return (slice(first, min(first + step, self.n)) for first in range(0, self.n, step))

    def _dense(self) -> None:
        """Some rows of the data at a time."""
        kind: Any = np.float32 if self.narrow else np.float64
        own = [_Squares(places.size, kind) for places in self.where]
        for rows in self._chunks():
            Y = np.empty((self.total, rows.stop - rows.start), dtype=kind)
            for k, (part, places) in enumerate(zip(self.parts, self.where, strict=True)):
                if not places.size:
                    continue
                X = part.take(rows, self.intercept)
                Y[places] = X * self.roots[k, rows]
                self._own(k, places, X, self.h[k, rows], own[k])
            self._less(Y)
            if self.intercept:
                self.centres -= Y[self.known :] @ self.roots[:, rows].astype(kind).T
        if self.less is not None:
            self.matrix -= self.less.whole()
        if not self.known:
            for places, squares in zip(self.where, own, strict=True):
                self.matrix[np.ix_(places, places)] += squares.whole()

    def _own(self, k: int, places: Index, X: Any, h: Vector, squares: _Squares) -> None:
        """The block of class k, from these rows."""
        first = int(np.searchsorted(places, self.known)) if self.known else 0
        if first == places.size:
            return
        new = places[first:] - self.known
        if self.known:
            self.matrix[np.ix_(new, places)] += (X[first:] * h) @ X.T
        else:
            squares.add(np.multiply(X, np.sqrt(h), dtype=squares.kind, casting="same_kind"))
        if self.intercept:
            self.centres[new, k] += X[first:] @ h

    def _less(self, Y: Any) -> None:
        """Y'Y taken off."""
        if self.known:
            self.matrix -= Y[self.known :] @ Y.T
            return
        if self.less is None:
            self.less = _Squares(self.total, Y.dtype)
        self.less.add(Y)

    def _sparse(self) -> None:
        """All rows at once, as sparse matrices."""
        blocks, order = [], []
        for k, (part, places) in enumerate(zip(self.parts, self.where, strict=True)):
            if not places.size:
                continue
            X, h = part.matrix(), self.h[k]
            first = int(np.searchsorted(places, self.known)) if self.known else 0
            new = places[first:] - self.known
            if new.size:
                weighed = sp.diags_array(h) @ X
                self.matrix[np.ix_(new, places)] += (X[:, first:].T @ weighed).toarray()
                if self.intercept:
                    self.centres[new, k] += X[:, first:].T @ h
            blocks.append(sp.diags_array(self.roots[k]) @ X)
            order.append(places)
        back = np.argsort(np.concatenate(order))
        Y = sp.csc_array(sp.hstack(blocks, format="csc"))[:, back]
        if Y.nnz > FULL * Y.shape[0] * Y.shape[1]:
            rows = Y.tocsr()
            for some in self._chunks():
                self._less(rows[some].toarray().T.astype(np.float32 if self.narrow else np.float64, order="C"))
            if self.less is not None:
                self.matrix -= self.less.whole()
        else:
            self.matrix -= (Y[:, self.known :].T @ Y).toarray()
        if self.intercept:
            self.centres -= Y[:, self.known :].T @ self.roots.T


class _Squares:
    """The sum of rows @ rows.T, of which half is computed."""

    def __init__(self, size: int, kind: Any) -> None:
        self.kind, self.sum = kind, np.zeros((size, size), dtype=kind, order="F")

    def add(self, rows: Any) -> None:
        syrk = ssyrk if self.kind == np.float32 else dsyrk
        self.sum = syrk(1.0, rows.T, beta=1.0, c=self.sum, trans=1, lower=0, overwrite_c=1)

    def whole(self) -> Any:
        from ...kernels.units import mirror

        turned = self.sum.T
        mirror(turned, len(turned))
        return turned
