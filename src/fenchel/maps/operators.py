"""Maps that are given by their products: SciPy's linear operators, and whatever looks like one."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from .._validate import Array, SparseMatrix
from ..foundation.numerics import NOTHING, ROUNDING, SPACE
from .base import Map, spectral_norm
from .gram import CG_ROUNDS, is_full


class Operator(Map):
    """u = A w for a linear operator A = B' of shape (d, p): an object with `matvec` and `rmatvec`.

    Parameters
    ----------
    operator : scipy.sparse.linalg.LinearOperator, or an object with shape, matvec and rmatvec
        `apply`, `adjoint`, `norm` and `gram_solve` are products and iterations of products. A problem asks for more:
        its certificate needs the directions that the map does not see, which products alone do not give. So a product
        with every unit vector is made when the first problem asks, and what is not zero is kept; where that is a
        quarter of all entries or more, a warning tells how many.

    Raises
    ------
    ValueError
        Where `rmatvec` is not the adjoint of `matvec`, since nothing could be proven then; by a problem, where more
        entries are not zero than memory has room for (a hundred million); by `gram_solve`, where the iterations do not
        arrive.

    Examples
    --------
    >>> import fenchel as fl, numpy as np
    >>> from scipy.sparse.linalg import LinearOperator
    >>> rise = LinearOperator((3, 4), matvec=np.diff, rmatvec=lambda u: -np.diff(u, prepend=0, append=0))
    >>> fl.Operator(rise).apply(np.array([1.0, 1.0, 3.0, 2.0]))
    array([ 0.,  2., -1.])
    """

    def __init__(self, operator: Any) -> None:
        missing = [name for name in ("shape", "matvec", "rmatvec") if not hasattr(operator, name)]
        if missing:
            raise ValueError(f"operator is {operator!r}, which has no {' and no '.join(missing)}")
        self.operator = operator
        made = sla.aslinearoperator(operator)
        if made.dtype is not None and np.dtype(made.dtype).kind not in "biuf":
            raise ValueError(f"operator has dtype {made.dtype}; it must be real")
        _check_adjoint(made)
        self._products, self.p = made, made.shape[1]

    @functools.cached_property
    def _values(self) -> SparseMatrix:
        made = _read(self._products)
        if is_full(made) and made.shape[0] != made.shape[1]:  # a square one gives the features other coordinates
            size = (made.data.nbytes + made.indices.nbytes) >> 20
            warnings.warn(
                f"operator has {made.nnz:,} entries that are not zero, of {made.shape[0]:,} x {made.shape[1]:,} "
                f"({size} MiB): a fit works with all of them, and takes long",
                UserWarning,
                stacklevel=2,
            )
        return made

    def _matrix(self, p: int) -> SparseMatrix:
        return self._values

    def apply(self, w: Array) -> Array:
        return np.asarray(self._products.matvec(np.asarray(w, dtype=float)), dtype=float)

    def adjoint(self, u: Array) -> Array:
        return np.asarray(self._products.rmatvec(np.asarray(u, dtype=float)), dtype=float)

    @property
    def _squared(self) -> Any:
        """B B'."""
        return sla.LinearOperator((self.p, self.p), matvec=lambda w: self.adjoint(self.apply(np.ravel(w))), dtype=float)

    def norm(self) -> float:
        """An upper bound on the largest singular value, tight to 1 %: Lanczos comes near it from below."""
        if self.p == 1:  # Lanczos has nothing to iterate on
            return spectral_norm(self._values)
        start = np.random.default_rng(0).standard_normal(self.p)
        if not self._squared.matvec(start).any():
            return 0.0
        value = sla.eigsh(self._squared, k=1, v0=start, tol=1e-4, return_eigenvectors=False)[0]
        return float(np.sqrt(max(value, 0.0)) * 1.005)

    def gram_solve(self, r: Array) -> Array:
        """The least-norm solution v of B B' v = r, for r in the range of B, by conjugate gradients."""
        r = np.asarray(r, dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            v: Array = sla.cg(self._squared, r, rtol=ROUNDING, maxiter=CG_ROUNDS)[0]
        length = float(np.linalg.norm(r))
        left = float(np.linalg.norm(self._squared.matvec(v) - r))
        if not left <= NOTHING * length:
            raise ValueError(
                f"operator: conjugate gradients leave {left / length:.1g} of B B' v = r, so that no certificate could "
                "be made of v: r is not in the range of B, or the map is too badly conditioned"
            )
        return v

    def __repr__(self) -> str:
        return f"Operator{self._products.shape}"


def _check_adjoint(made: Any) -> None:
    """<A w, u> = <w, A'u> for vectors drawn at random, among which hardly any agree where the products do not; half of
    the digits tell."""
    rng = np.random.default_rng(0)
    kind = np.dtype(made.dtype) if made.dtype is not None else np.dtype(float)
    rounding = float(np.finfo(kind if kind.kind == "f" else float).eps)
    w, u = rng.standard_normal(made.shape[1]), rng.standard_normal(made.shape[0])
    try:
        forth, back = made.matvec(w), made.rmatvec(u)
    except NotImplementedError:
        raise ValueError("operator has no rmatvec; a certificate needs products with the adjoint") from None
    lengths = np.linalg.norm(forth) * np.linalg.norm(u) + np.linalg.norm(w) * np.linalg.norm(back)
    if not abs(forth @ u - w @ back) <= rounding**0.5 * lengths:
        raise ValueError(
            f"operator's rmatvec is not the adjoint of its matvec: <A w, u> is {forth @ u:.6g} where <w, A'u> "
            f"is {w @ back:.6g}, so that no certificate could be made"
        )


def _read(operator: Any) -> SparseMatrix:
    """Its matrix, by a product with every unit vector; entries within rounding of zero count as zero."""
    d, p = operator.shape
    rows, values, ends = [], [], np.zeros(p + 1, dtype=np.int64)
    unit = np.zeros(p)
    for j in range(p):
        unit[j] = 1.0
        column = np.asarray(operator.matvec(unit), dtype=float)
        unit[j] = 0.0
        if not np.isfinite(column).all():
            row = int(np.flatnonzero(~np.isfinite(column))[0])
            raise ValueError(f"operator gives {column[row]} in row {row} for feature {j}")
        own = np.flatnonzero(np.abs(column) > np.finfo(float).eps * np.abs(column).max(initial=0.0))
        rows.append(own)
        values.append(column[own])
        ends[j + 1] = ends[j] + own.size
        if 12 * ends[j + 1] > SPACE:  # eight bytes of a number and four of its place
            raise ValueError(
                f"operator has more than {int(SPACE // 12):,} entries that are not zero in {j + 1:,} of {p:,} "
                "features; a certificate would need all of them. Take a map with few entries a row, such as "
                "fenchel.Difference, fenchel.Gradient or a sparse matrix"
            )
    if not p:
        return sp.csr_array((d, p))
    matrix = sp.csr_array(sp.csc_array((np.concatenate(values), np.concatenate(rows), ends), shape=(d, p)))
    w = np.random.default_rng(1).standard_normal(p)
    off = np.linalg.norm(matrix @ w - operator.matvec(w))
    if not off <= 1e-3 * np.linalg.norm(matrix @ w):
        raise ValueError("operator is not linear: its product with a sum is not the sum of its products")
    return matrix
