"""Maps that are given by their products: SciPy's linear operators, and whatever looks like one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from .._validate import SparseMatrix
from .base import Map

_MOST = 100_000_000  # entries that are kept, 1.2 GB; a map that mixes more features than that needs a form of its own
_TRIES = 3  # random vectors by which the two products are compared
_DIGITS = 1e4  # units of rounding by which these may differ, relative to the lengths of the vectors


class Operator(Map):
    """u = A w for a linear operator A = B' of shape (d, p): an object with `matvec` and `rmatvec`.

    Parameters
    ----------
    operator : scipy.sparse.linalg.LinearOperator, or an object with shape, matvec and rmatvec
        A product with every unit vector is asked for once, and what is not zero is kept: certificates need the solves
        with B B' and the directions that the map does not see, which products alone do not give.

    Raises
    ------
    ValueError
        Where `rmatvec` is not the adjoint of `matvec`, since nothing could be proven then, or where more entries are
        not zero than memory has room for (a hundred million).

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
        self._values, self.p = _read(made), made.shape[1]

    def _matrix(self, p: int) -> SparseMatrix:
        return self._values

    def __repr__(self) -> str:
        return f"Operator{self._values.shape}"


def _check_adjoint(made: Any) -> None:
    """<A w, u> = <w, A'u>, for a few vectors."""
    rng = np.random.default_rng(0)
    kind = np.dtype(made.dtype) if made.dtype is not None else np.dtype(float)
    rounding = float(np.finfo(kind if kind.kind == "f" else float).eps)
    for _ in range(_TRIES):
        w, u = rng.standard_normal(made.shape[1]), rng.standard_normal(made.shape[0])
        try:
            forth, back = made.matvec(w), made.rmatvec(u)
        except NotImplementedError:
            raise ValueError("operator has no rmatvec; a certificate needs products with the adjoint") from None
        lengths = np.linalg.norm(forth) * np.linalg.norm(u) + np.linalg.norm(w) * np.linalg.norm(back)
        if not abs(forth @ u - w @ back) <= _DIGITS * rounding * lengths:
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
        if ends[j + 1] > _MOST:
            raise ValueError(
                f"operator has more than {_MOST:,} entries that are not zero in {j + 1:,} of {p:,} features; a "
                "certificate would need all of them. Take a map with few entries a row, such as fenchel.Difference, "
                "fenchel.Gradient or a sparse matrix"
            )
    if not p:
        return sp.csr_array((d, p))
    matrix = sp.csr_array(sp.csc_array((np.concatenate(values), np.concatenate(rows), ends), shape=(d, p)))
    w = np.random.default_rng(1).standard_normal(p)
    off = np.linalg.norm(matrix @ w - operator.matvec(w))
    if not off <= 1e-3 * np.linalg.norm(matrix @ w):
        raise ValueError("operator is not linear: its product with a sum is not the sum of its products")
    return matrix
