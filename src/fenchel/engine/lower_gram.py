"""Sums of weighted outer products of dense rows, at the speed of BLAS."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

_ENTRIES = 1 << 17  # numbers weighted at a time: they stay in the cache for the product


def lower_gram(
    rows: np.ndarray,
    weights: np.ndarray | None,
    out: np.ndarray | None = None,
    sign: float = 1.0,
    less: np.ndarray | None = None,
) -> np.ndarray:
    """The lower triangle of the sum of weights_i rows_i rows_i', zeros above it; added to `out` if that is given, with
    this sign.

    With `less` that is taken from every row first. Rows of any dtype, weights that are not negative (None stands for
    ones); `out` is in Fortran's order, and its dtype is the one that is computed with.
    """
    n, k = rows.shape
    out = np.zeros((k, k), order="F") if out is None else out
    if not out.flags.f_contiguous:
        raise ValueError("out is not in Fortran's order; what is added would be lost in a copy")
    if not k:
        return out
    chunk = max(32, _ENTRIES // k)
    syrk = ssyrk if out.dtype == np.float32 else dsyrk
    if weights is None:
        for first in range(0, n, chunk):
            part = rows[first : first + chunk]
            part = np.asarray(part if less is None else part - less, out.dtype)
            syrk(sign, part.T, beta=1.0, c=out, lower=1, overwrite_c=1)
        return out
    some = np.flatnonzero(weights)
    every = some.size == n
    roots = np.sqrt(weights if every else weights[some])
    weighted = np.empty((min(chunk, some.size), k), out.dtype)
    for first in range(0, some.size, chunk):
        last = min(first + chunk, some.size)
        part = rows[first:last] if every else rows[some[first:last]]
        if less is not None:
            part = part - less
        np.multiply(part, roots[first:last, None], out=weighted[: last - first], casting="same_kind")
        syrk(sign, weighted[: last - first].T, beta=1.0, c=out, lower=1, overwrite_c=1)
    return out
