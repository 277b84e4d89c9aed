"""Small problems of several kinds, on which methods and engines are tried."""

from __future__ import annotations

import numpy as np

from ..maps import Difference
from ..penalties import L1, GroupL2, Ridge
from ..problem import Problem


def small_problems(rng: int | np.random.Generator = 0) -> dict[str, Problem]:
    """Problems of a few features by name: smooth and kinked losses, plain, grouped and joined features, weights."""
    rng = np.random.default_rng(rng)
    X = rng.standard_normal((60, 8))
    score = X[:, 0] - 2.0 * X[:, 1] + 0.5 * rng.standard_normal(60)
    label, weight = np.where(score > 0, 1.0, -1.0), rng.exponential(size=60)
    groups = [[0, 1, 2], [2, 3, 4], [5, 6, 7]]
    return {
        "lasso": Problem(X, score, loss="squared", penalty=L1(), alpha=0.1),
        "logistic elastic net": Problem(
            X, label, loss="logistic", penalty=L1() + 0.1 * Ridge(), alpha=0.02, fit_intercept=True
        ),
        "weighted huber lasso": Problem(X, score, loss="huber", penalty=L1(), alpha=0.05, sample_weight=weight),
        "overlapping groups": Problem(
            X, score, loss="squared", penalty=GroupL2(groups), alpha=0.05, fit_intercept=True
        ),
        "fused hinge": Problem(X, label, loss="smoothed-hinge", penalty=L1() @ Difference(8) + 0.5 * L1(), alpha=0.02),
        "quantile": Problem(X, score, loss="quantile", penalty=L1() + 0.1 * Ridge(), alpha=0.05, fit_intercept=True),
    }
