"""Linear models with structured sparsity, solved by SDCA-ADMM, each answer with a certified duality gap.

    min_w  (1/n) sum_i f_i(z_i'w) + psi(B'w)

The public names are loaded on first use, so that `import fenchel` stays light.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.2.0"

_HOME = {
    "losses": [
        "Loss", "SmoothedHinge", "Hinge", "SquaredHinge", "Logistic", "Squared", "Huber", "Quantile",
        "EpsilonInsensitive", "Poisson", "Gamma", "Tweedie", "NegativeBinomial",
        "Binomial", "proportions", "Multinomial", "MulticlassHinge", "Cox",
    ],
    "penalties": ["Penalty", "L1", "Ridge", "GroupL2", "GroupLinf", "TraceNorm", "NonNegative", "Box"],
    "penalties.catalogue": [
        "Lasso", "ElasticNet", "GroupLasso", "LatentGroupLasso", "SparseGroupLasso", "TreeGroups", "GroupMax",
        "ExclusiveLasso", "FusedLasso", "TrendFilter", "TotalVariation", "GraphFused", "LowRank", "TensorTraceNorm",
        "MultiTaskLasso", "MultiTaskLowRank", "Slope", "Oscar", "Monotone", "PerOutput", "Unpenalised",
    ],
    "maps": ["Map", "Identity", "Matrix", "Incidence", "Difference", "Gradient", "Copies", "Selection", "Stack",
             "Operator"],
    "problem": ["Problem", "Certificate"],
    "formulas": ["design", "Design"],
    "solver.result": ["Result", "Status", "History"],
    "solver": ["solve"],
    "io": ["open_data"],
    "proximal": ["prox"],
    "models": ["path", "Path", "cross_validate_path", "CrossValidation"],
    "models.saved_estimator": ["load_model"],
    "models.adaptive": ["adaptive"],
    "models.stability": ["StabilitySelection"],
    "models.estimators": ["StructuredClassifier", "StructuredRegressor"],
    "models.cv_estimators": ["StructuredClassifierCV", "StructuredRegressorCV"],
    "models.survival": ["CoxRegressor", "CoxRegressorCV", "concordance"],
    "structure": ["Groups", "Graph", "Grid", "Tree", "active_groups", "segments", "support"],
}  # fmt: skip
_MODULES = ("losses", "penalties", "maps", "data", "problem", "methods", "theory", "testing", "datasets",
            "structure", "plotting")  # fmt: skip
_NAMES = {name: module for module, names in _HOME.items() for name in names}

__all__ = [*sorted(_NAMES), "theory", "testing"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(importlib.import_module(f"{__name__}.{_NAMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'fenchel' has no attribute {name!r}{_missing(name)}")


def _missing(name: str) -> str:
    """Why there is none of this name, or which one may be meant; nothing where nobody knows."""
    if name.startswith("_"):
        return ""
    import difflib

    if name == "InverseGaussian":
        from .losses import why_unknown

        return f": {why_unknown('inverse-gaussian')}"
    import sklearn.linear_model

    if hasattr(sklearn.linear_model, name):
        return (
            "; its estimators are StructuredRegressor, StructuredClassifier, CoxRegressor and those with CV, e.g. "
            "StructuredRegressorCV(penalty=fenchel.Lasso())"
        )
    close = difflib.get_close_matches(name.lower(), known := {one.lower(): one for one in _NAMES}, 1)
    return f"; did you mean {known[close[0]]!r}?" if close else ""


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
