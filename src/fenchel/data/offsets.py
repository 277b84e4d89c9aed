"""What is known of the scores beforehand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._validate import Array


def as_offset(offset: npt.ArrayLike | None, n: int, outputs: int) -> Array:
    """One number for every visit, output by output within a row; an empty array where all are zero."""
    if offset is None:
        return np.zeros(0)
    given = np.asarray(offset)
    if given.dtype.kind not in "biuf" or given.ndim not in (1, 2):
        raise ValueError(f"offset has dtype {given.dtype} and shape {given.shape}; it must be a numeric vector")
    if len(given) != n:
        raise ValueError(f"offset has {len(given)} entries, but X has {n} rows")
    given = given.astype(float).reshape(n, -1)
    if given.shape[1] not in (1, outputs):
        raise ValueError(f"offset has {given.shape[1]} columns, but y has {outputs}; give one, or one for each")
    bad = np.argwhere(~np.isfinite(given))
    if bad.size:
        row, column = bad[0]
        place = f"{row}" if given.shape[1] == 1 else f"{row}, {column}"
        way = "; an exposure of 0 has no logarithm: leave such rows out" if given[row, column] == -np.inf else ""
        raise ValueError(f"offset[{place}] is {given[row, column]}; offsets must be finite{way}")
    if not given.any():
        return np.zeros(0)
    return np.ascontiguousarray(np.broadcast_to(given, (n, outputs))).ravel()
