"""A column's centre and scale, and how to undo them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from .._validate import Array, MatrixLike
from ..engine.registry import fitting
from ..engine.rounds import WorkingSets
from ..foundation.numerics import AT_ONCE, COPY

if TYPE_CHECKING:
    from ..problem import Problem
    from ..solver.result import Result

_FAR = 10.0  # standard deviations between a column's mean and zero
_NEAR = 1.0  # the same, where a copy of the data takes little room: a mean beyond it is most of a column's square


@dataclasses.dataclass
class Scaling:
    """Columns brought to mean 0 (if `center` is not None) and standard deviation 1 before the fit."""

    scale: Array
    center: Array | None = None

    def undo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        """Coefficients and intercept for the columns as they stand in the data."""
        coef = coef / self.scale
        return coef, intercept if self.center is None else intercept - coef @ self.center

    def redo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        """What `undo` undoes."""
        return coef * self.scale, intercept if self.center is None else intercept + coef @ self.center

    def moved_back(self, result: Result) -> Result:
        """The result for the columns as they stand in the data; its bounds are those of the problem that was solved."""
        coef, intercept = self.undo(result.coef, result.intercept)
        return dataclasses.replace(result, coef=coef + 0.0, intercept=intercept)


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
    for rows in _chunks(X):
        out[rows] = (X[rows] - center if center is not None else X[rows]) / scale
    return out, Scaling(scale, center)


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused later, with its place
def centred(X: MatrixLike) -> tuple[MatrixLike, Scaling | None]:
    """X and None; or a copy of dense X with its columns centred, where some lie far from zero.

    With an intercept this changes nothing but the intercept, and the solver gets there sooner, at times by orders of
    magnitude.
    """
    if not isinstance(X, np.ndarray):
        return X, None
    chunks = _chunks(X)
    mean = sum(X[rows].sum(axis=0, dtype=float) for rows in chunks) / len(X)
    spread = np.sqrt(sum(((X[rows] - mean) ** 2).sum(axis=0) for rows in chunks) / len(X))
    far = _NEAR if X.nbytes <= COPY and X.dtype == np.float64 else _FAR  # single precision would lose digits
    if not np.any((np.abs(mean) > far * spread) & (spread > 1e-12 * np.abs(mean))):
        return X, None
    out = np.empty_like(X)
    for rows in chunks:
        out[rows] = X[rows] - mean
    return out, Scaling(np.ones(X.shape[1]), mean)


def on_centred_columns(problem: Problem) -> tuple[Problem, Scaling | None]:
    """The problem on centred columns, and how to undo it; the problem itself and None where that would change nothing.

    Working sets see to their columns themselves. Other engines and epochs need many times the passes where columns lie
    far from zero and an intercept has to make up for it.
    """
    if not problem.fit_intercept or problem.pooled or problem.data.sparse:
        return problem, None
    engine = fitting(problem)
    if engine is not None and engine.name == WorkingSets.name:
        return problem, None
    X, scaling = centred(problem.data.dense)
    return (problem, None) if scaling is None else (problem.with_data(X), scaling)


def _chunks(X: Array) -> list[slice]:
    step = max(1, AT_ONCE // X.shape[1])
    return [slice(first, first + step) for first in range(0, len(X), step)]
