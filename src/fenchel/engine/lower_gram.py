"""Sums of weighted outer products of dense rows, at the speed of BLAS."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dsyrk, ssyrk

from ..kernels.rooms import Room

ENTRIES = 1 << 17  # numbers prepared at a time, 1 MiB: they stay in the cache for the product; larger: read from memory


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
    chunk = max(32, ENTRIES // k)
    syrk = ssyrk if out.dtype == np.float32 else dsyrk
    if weights is None and less is None:
        for first in range(0, n, chunk):
            part = np.asarray(rows[first : first + chunk], out.dtype)
            syrk(sign, part.T, beta=1.0, c=out, lower=1, overwrite_c=1)
        return out
    some = np.arange(n) if weights is None else np.flatnonzero(weights)
    every = some.size == n
    roots = None if weights is None else np.sqrt(weights if every else weights[some])
    if roots is not None and rows.dtype == out.dtype:
        roots = roots.astype(out.dtype, copy=False)  # otherwise products are made in double precision, and cast
    # memory that is used again: to get it afresh takes longer than to fill it
    precise = np.result_type(rows.dtype, out.dtype if less is None else less.dtype)
    shape = min(chunk, some.size), k
    room = Room(math.prod(shape)) if precise == np.float64 else None
    buffer = np.empty(shape, precise) if room is None else room.take(*shape)
    weighted = buffer if precise == out.dtype else np.empty(buffer.shape, out.dtype)
    for first in range(0, some.size, chunk):
        last = min(first + chunk, some.size)
        part, mine = rows[first:last] if every else rows[some[first:last]], weighted[: last - first]
        if less is not None:
            part = np.subtract(part, less, out=buffer[: last - first])
        if roots is not None:
            np.multiply(part, roots[first:last, None], out=mine, casting="same_kind")
        elif part is not mine:
            mine[:] = part
        syrk(sign, mine.T, beta=1.0, c=out, lower=1, overwrite_c=1)
    return out
