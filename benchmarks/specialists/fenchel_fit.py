"""fenchel as a user calls it: the penalty, the Problem and every certificate are on the clock."""

import numpy as np
from fenchel_separable import penalty_of
from specialist import Specialist as Base
from specialist import answers


class Specialist(Base):
    name = "fenchel"
    package = "fenchel"
    environment = None
    stops = (1e-6, 1e-9)
    default = 1e-6
    tasks = ("fit", "path", "cv")
    limit = 30.0  # seconds of a fit

    def skip(self, problem, task):
        return None

    def set_problem(self, problem, alphas, folds):
        self.problem = problem

    def _problem(self, alpha=1.0):
        import fenchel as fl

        one = self.problem
        options = {"penalty": penalty_of(one), "alpha": alpha, "fit_intercept": one.intercept}
        return fl.Problem(one.X, one.y, loss=one.loss, **options)

    def fit(self, stop):
        import fenchel as fl

        result = fl.solve(self._problem(self.problem.alpha), tol=stop, max_epochs=1_000_000, time_limit=self.limit)
        self.facts = {"gap": result.relative_gap, "status": str(result.status), "bounds": [result.dual]}
        return answers(result.coef, result.intercept)

    def path(self, stop, alphas):
        import fenchel as fl

        path = fl.path(self._problem(), alphas=alphas, tol=stop)
        self.facts = {"gap": float(path.relative_gaps.max()), "bounds": path.duals.tolist()}
        return answers(path.coefs, path.intercepts)

    def cv(self, stop, alphas, folds):
        import fenchel as fl

        found = fl.cross_validate_path(self._problem(), cv=folds, alphas=alphas, tol=stop)
        self.facts = {"gap": float(np.max(found.relative_gaps))}
