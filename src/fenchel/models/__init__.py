"""Fitted models: estimators, paths, cross-validation, and a model as a file.

The names are loaded on first use: a path needs nothing of scikit-learn, which takes long to load.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .columns import Scaling
    from .cross_validation import CrossValidation, cross_validate_path
    from .cv_estimators import StructuredClassifierCV, StructuredRegressorCV
    from .estimators import StructuredClassifier, StructuredRegressor
    from .paths import Path, alpha_grid, path
    from .saved_model import Model, encode_labels

_HOME = {
    "CrossValidation": "cross_validation",
    "Model": "saved_model",
    "Path": "paths",
    "Scaling": "columns",
    "StructuredClassifier": "estimators",
    "StructuredClassifierCV": "cv_estimators",
    "StructuredRegressor": "estimators",
    "StructuredRegressorCV": "cv_estimators",
    "alpha_grid": "paths",
    "cross_validate_path": "cross_validation",
    "encode_labels": "saved_model",
    "path": "paths",
}

__all__ = [
    "CrossValidation",
    "Model",
    "Path",
    "Scaling",
    "StructuredClassifier",
    "StructuredClassifierCV",
    "StructuredRegressor",
    "StructuredRegressorCV",
    "alpha_grid",
    "cross_validate_path",
    "encode_labels",
    "path",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
