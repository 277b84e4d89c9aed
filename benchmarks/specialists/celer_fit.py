"""celer: working sets and dual extrapolation, single fits and its own paths."""

import numpy as np
from specialist import Specialist as Base
from specialist import answers, columns_first


class Specialist(Base):
    name = "celer"
    package = "celer"
    requirements = ("celer",)
    stops = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
    default = 1e-4

    def skip(self, problem, task):
        taken = {"squared": ("l1", "weighted l1", "elastic net", "groups", "nonnegative"), "logistic": ("l1",)}
        if problem.penalty not in taken.get(problem.loss, ()):
            return f"it has no {problem.penalty} with the {problem.loss} loss"
        if problem.intercept and problem.loss == "logistic":
            return "its logistic regression has no intercept"
        if problem.intercept and problem.sparse:
            return "it is not asked to centre sparse columns"
        return None

    def set_problem(self, problem, alphas, folds):
        self.problem, self.X, self.y = problem, columns_first(problem), problem.y
        self.means = np.zeros(problem.p)
        if problem.intercept:  # centred columns are its favourite layout, so they are free
            self.means = problem.X.mean(axis=0)
            self.X, self.y = np.asfortranarray(self.X - self.means), self.y - self.y.mean()

    def path(self, stop, alphas):
        from celer.homotopy import celer_path

        one = self.problem
        options = {"tol": stop, "max_iter": 1000, "prune": 1}
        if one.penalty == "groups":
            sizes = np.diff(one.bounds).tolist()
            found = celer_path(self.X, self.y, "grouplasso", alphas=alphas, groups=sizes, weights=one.group, **options)
        elif one.loss == "logistic":  # its loss is a sum
            found = celer_path(self.X, self.y, "logreg", alphas=one.n * alphas, use_PN=True, **options)
        else:
            ratio = float(one.l1[0]) if one.penalty == "elastic net" else 1.0
            weights = one.l1 if one.penalty == "weighted l1" else None
            found = celer_path(self.X, self.y, "lasso", alphas=alphas, l1_ratio=ratio, weights=weights,
                               positive=one.nonnegative, **options)  # fmt: skip
        coefs = found[1].T
        return answers(coefs, one.y.mean() - coefs @ self.means if one.intercept else 0.0)
