"""Fits on a Dask cluster: estimators on dask arrays, frames and delayed pieces.

>>> import fenchel.dask as fd  # doctest: +SKIP
>>> model = fd.StructuredClassifier(loss="logistic", penalty=fl.L1(), alpha=0.01).fit(X, y)  # doctest: +SKIP

Needs ``pip install 'fenchel[dask]'``. The rows stay with the workers, which keep nothing else: a worker may die, leave
or join at any time, and the answer has the same bits for any number of them.
"""

from __future__ import annotations

from .estimators import StructuredClassifier, StructuredClassifierCV, StructuredRegressor, StructuredRegressorCV
from .pool import DaskPool, distribute

__all__ = [
    "DaskPool",
    "StructuredClassifier",
    "StructuredClassifierCV",
    "StructuredRegressor",
    "StructuredRegressorCV",
    "distribute",
]
