"""A column's centre and scale, and how to undo them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from .._validate import Array, MatrixLike

if TYPE_CHECKING:
    from ..solver.result import Result

_FAR = 10.0  # standard deviations between a column's mean and zero
_CHUNK = 1 << 20  # entries looked at together


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused later, with its place
def centred(X: MatrixLike) -> tuple[MatrixLike, Array | None]:
    """X and None; or a copy of dense X with its columns centred, and their means, where some lie far from zero.

    With an intercept this changes nothing but the intercept, and the solver gets there sooner by orders of magnitude.
    """
    if not isinstance(X, np.ndarray):
        return X, None
    step = max(1, _CHUNK // X.shape[1])
    chunks = [slice(first, first + step) for first in range(0, len(X), step)]
    mean = sum(X[rows].sum(axis=0, dtype=float) for rows in chunks) / len(X)
    spread = np.sqrt(sum(((X[rows] - mean) ** 2).sum(axis=0) for rows in chunks) / len(X))
    if not np.any((np.abs(mean) > _FAR * spread) & (spread > 1e-12 * np.abs(mean))):
        return X, None
    out = np.empty_like(X)
    for rows in chunks:
        out[rows] = X[rows] - mean
    return out, mean


def moved_back(result: Result, mean: Array) -> Result:
    """The result with the intercept that belongs to the columns before they were centred."""
    return dataclasses.replace(result, intercept=result.intercept - result.coef @ mean)


@dataclasses.dataclass
class Scaling:
    """Columns brought to mean 0 (if `center` is not None) and standard deviation 1 before the fit."""

    scale: Array
    center: Array | None = None

    def undo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        """Coefficients and intercept for the columns as they stand in the data."""
        coef = coef / self.scale
        return coef, intercept if self.center is None else intercept - coef @ self.center
