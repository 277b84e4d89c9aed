"""A column's centre and scale, and how to undo them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .._validate import Array, MatrixLike
from ..solver.columns import Moving, Scaling, centred, chunks, on_other_columns

__all__ = ["Moving", "Scaling", "centred", "on_other_columns", "prepared"]


def prepared(
    X: MatrixLike, weight: Array | None, intercept: bool, standardize: bool
) -> tuple[MatrixLike, Scaling | None]:
    """The columns that a fit works on, and how to undo what was done to them; X itself and None where nothing is.

    Standardised columns have weighted deviation 1. Sparse ones are scaled and not filled: where there is an intercept
    without penalty, centring changes nothing but the intercept. So dense columns are centred where there is one: all of
    them if a copy is made anyway, and otherwise if some lie far from zero.
    """
    if not standardize:
        return centred(X) if intercept else (X, None)
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=not sp.issparse(X)).fit(X, sample_weight=weight)
    scale = np.asarray(scaler.scale_, dtype=float)
    if not isinstance(X, np.ndarray):
        kind = sp.csc_array if X.format == "csc" else sp.csr_array
        columns = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr)) if X.format == "csc" else X.indices
        values = (X.data / scale[columns]).astype(X.dtype, copy=False)
        return kind((values, X.indices, X.indptr), shape=X.shape), Scaling(scale)
    center = np.asarray(scaler.mean_, dtype=float) if intercept else None
    out = np.empty_like(X)
    for rows in chunks(X):
        out[rows] = (X[rows] - center if center is not None else X[rows]) / scale
    return out, Scaling(scale, center)
