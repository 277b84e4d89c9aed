"""scikit-learn's logistic regression, for its two solvers with an l1 norm."""

from __future__ import annotations

import numpy as np
from solving import Solver


class SklearnSolver(Solver):
    package = "scikit-learn"
    requirements = ("scikit-learn>=1.8",)
    sampling = "tolerance"
    solver = ""

    def skip(self, objective):
        if objective.loss != "logistic" or objective.plain != "l1":
            return "it is l1 logistic regression"
        if np.ptp(objective.terms[0].weights) > 0:
            return "its weights are equal"
        return None

    def run(self, tolerance):
        from sklearn.linear_model import LogisticRegression

        objective, alpha = self.objective, float(self.objective.terms[0].weights[0])
        total = alpha + objective.ridge
        model = LogisticRegression(
            C=1.0 / (total * objective.n), l1_ratio=alpha / total, solver=self.solver, tol=tolerance,
            fit_intercept=False, max_iter=100_000, random_state=0,
        )  # fmt: skip
        return model.fit(objective.X, objective.y).coef_.ravel()
