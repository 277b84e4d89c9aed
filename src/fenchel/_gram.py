"""Sums of weighted outer products of dense rows, at the speed of BLAS."""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dsyrk

_ENTRIES = 1 << 18  # numbers weighted at a time: they stay in the cache for the product


def weighted_gram(rows, weights):
    """sum of weights_i rows_i rows_i', for rows of any dtype and weights that are not negative; zeros are skipped."""
    n, k = rows.shape
    out = np.zeros((k, k), order="F")
    if not k:
        return out
    some = np.flatnonzero(weights)
    every = some.size == n
    roots = np.sqrt(weights if every else weights[some])
    chunk = max(32, _ENTRIES // k)
    for first in range(0, some.size, chunk):
        here = slice(first, min(first + chunk, some.size))
        part = rows[here] if every else rows[some[here]]
        out = dsyrk(1.0, (part * roots[here, None]).T, beta=1.0, c=out, lower=1, overwrite_c=1)
    return np.tril(out) + np.tril(out, -1).T
