"""Sums of weighted outer products of dense rows, at the speed of BLAS."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk

_ENTRIES = 1 << 18  # numbers weighted at a time: they stay in the cache for the product


def lower_gram(rows, weights, out=None):
    """The lower triangle of the sum of weights_i rows_i rows_i', zeros above it; added to `out` if that is given.

    Rows of any dtype, weights that are not negative; `out` is in Fortran's order.
    """
    n, k = rows.shape
    out = np.zeros((k, k), order="F") if out is None else out
    if not k:
        return out
    some = np.flatnonzero(weights)
    every = some.size == n
    roots = np.sqrt(weights if every else weights[some])
    chunk = max(32, _ENTRIES // k)
    for first in range(0, some.size, chunk):
        here = slice(first, min(first + chunk, some.size))
        part = rows[here] if every else rows[some[here]]
        dsyrk(1.0, (part * roots[here, None]).T, beta=1.0, c=out, lower=1, overwrite_c=1)
    return out
