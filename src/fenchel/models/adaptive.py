"""Adaptive penalties: what a first fit found large becomes cheap, and what it found small becomes dear."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validate import Array
from ..penalties import Penalty
from .parameters import is_number


def adaptive(penalty: Penalty, model: Any, gamma: float = 1.0, floor: float = 1e-3) -> Penalty:
    r"""The penalty with weights from a first fit, for features, groups and edges.

    Every weight is multiplied by :math:`(s / s_{\max})^{-\gamma}`, where s is the size in the first fit of what it
    weighs: of a feature, its coefficient (the norm of those of several outputs); of a group, the root mean square of
    its coefficients; of an edge, the difference along it. So the largest keeps its weight, and the penalty its scale.

    Parameters
    ----------
    penalty : Penalty
        A lasso or elastic net, a group penalty, a fused one, a sum or multiple of such.
    model : fitted estimator, Result, or coefficients
        Of a standardised estimator the coefficients that its penalty saw: standardise the next one too.
    gamma : float
        0 changes nothing.
    floor : float
        Share of the largest size below which none counts as smaller: what was zero may still come in, at a price.

    Returns
    -------
    Penalty
        Weights of groups are given by name, so that groups made at every fit (``by=``) stay what they are.

    Examples
    --------
    >>> import fenchel as fl
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> first = fl.StructuredRegressor(penalty=fl.Ridge(), alpha=1e-3, standardize=True).fit(X, y)
    >>> penalty = fl.adaptive(fl.Lasso(), first)
    >>> model = fl.StructuredRegressor(penalty=penalty, alpha_ratio=0.1, standardize=True).fit(X, y)
    >>> bool((model.coef_ != 0).sum() < 10)
    True
    """
    if not isinstance(penalty, Penalty):
        raise ValueError(f"penalty is {penalty!r}; it must be a fenchel penalty, e.g. fenchel.Lasso()")
    if not (is_number(gamma) and 0 <= gamma < np.inf):
        raise ValueError(f"gamma is {gamma!r}; it must be a number, not negative")
    if not (is_number(floor) and 0 < floor <= 1):
        raise ValueError(f"floor is {floor!r}; it must be a number above 0 and at most 1")
    coef = np.atleast_2d(_coefficients(model))
    names = getattr(model, "feature_names_in_", None)
    known: Penalty = penalty if names is None else penalty.for_columns(names)

    def dearer(sizes: Array) -> Array:
        largest = sizes.max(initial=0.0)
        if largest <= 0:
            return np.ones(sizes.size)
        out: Array = np.maximum(sizes / largest, floor) ** -gamma
        return out

    return known.adapted(coef, dearer)


def _coefficients(model: Any) -> Array:
    if hasattr(model, "_plain_coef"):
        check_is_fitted(model)
        seen: Array = model._plain_coef(penalised=True)
        return seen
    for name in ("coef", "coef_"):
        if hasattr(model, name):
            return np.asarray(getattr(model, name), dtype=float)
    return np.asarray(model, dtype=float)
