"""A piecewise constant signal along an ordered axis, such as a genome: the fused lasso."""

from typing import ClassVar

import numpy as np
from objective import Objective, Term


class Dataset:
    problems: ClassVar = {"fused-lasso": {"n": 1000, "p": 2000, "alpha": 0.02}}
    quick = ()

    def get_data(self, n, p, alpha):
        rng = np.random.default_rng(0)
        truth = np.zeros(p)
        for start in range(100, p, 400):
            truth[start : start + 60] = rng.choice([-1.0, 1.0])
        # neighbours are alike, as copy numbers along a genome are
        X = rng.standard_normal((n, p))
        for j in range(1, p):
            X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * X[:, j]
        score = X @ truth
        y = np.where(score + 0.3 * score.std() * rng.standard_normal(n) >= 0, 1.0, -1.0)
        edges = np.column_stack([np.arange(1, p), np.arange(p - 1)])
        terms = [Term(p, np.full(p, 0.25 * alpha)), Term(p, np.full(p - 1, alpha), edges=edges)]
        return Objective(X, y, "logistic", terms)
