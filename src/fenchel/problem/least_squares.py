"""Linear least squares that always come to an end."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from .._validate import Array


def least_squares(matrix: Array, right: Array, least: float) -> Array:
    """The shortest x for which |matrix x - right| is least, with directions left out that the matrix shortens by more
    than `least`; NaN where there are NaN in what is given.

    By a factorisation with pivots: LAPACK's singular values may fail to converge on matrices of finite numbers, and it
    writes to the terminal where there are NaN.
    """
    if not (np.isfinite(matrix).all() and np.isfinite(right).all()):
        return np.full(matrix.shape[1], np.nan)
    out: Array = scipy.linalg.lstsq(matrix, right, cond=least, lapack_driver="gelsy", check_finite=False)[0]
    return out
