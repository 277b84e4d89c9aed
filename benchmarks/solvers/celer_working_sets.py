"""celer: working sets and dual extrapolation."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "celer"
    package = "celer"
    requirements = ("celer",)
    sampling = "tolerance"
    stops = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10)

    def skip(self, objective):
        kind = objective.plain
        if not kind or objective.ridge:
            return "it has the lasso, the group lasso and l1 logistic regression"
        if (kind, objective.loss) not in (("l1", "logistic"), ("l1", "squared"), ("group", "squared")):
            return f"it has no {kind} penalty with the {objective.loss} loss"
        if np.ptp(objective.terms[0].weights) > 0:
            return "its weights are equal"
        return None

    def set_objective(self, objective):
        self.objective = objective
        self.X = objective.X.tocsc() if objective.sparse else np.asfortranarray(objective.X)

    def run(self, tolerance):
        import celer

        objective, alpha = self.objective, float(self.objective.terms[0].weights[0])
        options = {"tol": tolerance, "fit_intercept": False, "max_iter": 1000}
        if objective.loss == "logistic":
            model = celer.LogisticRegression(C=1.0 / (alpha * objective.n), **options)
        elif objective.plain == "l1":
            model = celer.Lasso(alpha, **options)
        else:
            groups = [group.tolist() for group in objective.terms[0].groups]
            model = celer.GroupLasso(groups, alpha, **options)
        return model.fit(self.X, objective.y).coef_.ravel()
