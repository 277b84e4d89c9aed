"""What a file of data holds."""

from __future__ import annotations

import dataclasses

from .._validate import AnyArray, Array, Flags, MatrixLike
from .coding import Coding


@dataclasses.dataclass
class Data:
    """What a data file holds.

    Attributes
    ----------
    X : array or CSR array (n, p)
    y : array of n labels or numbers, (n, targets) for several, or None
    features : names of the columns of X, or None where the format has none
    named : whether those names come from the file (without a header they are positions)
    target : name of the target column, a list for several, or None
    weights : array of n sample weights, or None
    first_index : 1 or 0, where a LIBSVM file begins to count; None for other formats
    task : array of n task names, or None
    offset : array of n numbers, or None
    together : array of n labels of rows that stay in one fold, or None
    kept : which rows of the file are here, or None for all
    coding : what was made of words and of missing values, or None
    """

    X: MatrixLike
    y: AnyArray | None
    features: list[str] | None = None
    named: bool = False
    target: str | list[str] | None = None
    weights: Array | None = None
    first_index: int | None = None
    task: AnyArray | None = None
    offset: Array | None = None
    together: AnyArray | None = None
    kept: Flags | None = None
    coding: Coding | None = None


def _some_weight(weights: Array, where: str) -> Array:
    if not weights.any():
        raise ValueError(f"{where}: all weights are 0")
    return weights
