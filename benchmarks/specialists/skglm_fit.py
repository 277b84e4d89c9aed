"""skglm: proximal Newton, coordinate and block descent with working sets; paths by warm starts."""

import numpy as np
from specialist import Specialist as Base
from specialist import answers, columns_first


class Specialist(Base):
    name = "skglm"
    package = "skglm"
    requirements = ("skglm", "numba")
    stops = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
    default = 1e-4

    def skip(self, problem, task):
        if problem.loss == "smoothed-hinge":
            return "it has no smoothed hinge"
        if problem.grouped and problem.loss == "huber":
            return "it has no groups with Huber's loss"
        if problem.grouped and problem.sparse and problem.loss != "squared":
            return "its proximal Newton method for groups wants dense data"
        if problem.penalty == "sparse groups" and problem.loss != "squared":
            return "its proximal Newton method has no sparse groups"
        if problem.penalty == "weighted l1" and problem.intercept and problem.loss in ("logistic", "poisson"):
            return "its proximal Newton method has no intercept beside weights"
        return None

    def set_problem(self, problem, alphas, folds):
        from skglm import datafits, penalties, solvers
        from skglm.utils.jit_compilation import compiled_clone

        self.problem, self.X = problem, columns_first(problem)
        newton = problem.loss in ("logistic", "poisson")
        if problem.grouped:
            bounds, members = problem.bounds.astype(np.int32), np.arange(problem.p, dtype=np.int32)
            if problem.penalty == "groups":
                penalty = penalties.WeightedGroupL2(1.0, problem.group, bounds, members)
            else:
                penalty = penalties.WeightedL1GroupL2(1.0, problem.group, problem.l1, bounds, members)
            names = {"squared": "QuadraticGroup", "logistic": "LogisticGroup", "poisson": "PoissonGroup"}
            datafit = getattr(datafits, names[problem.loss])(bounds, members)
            self.make = solvers.GroupProxNewton if newton else solvers.GroupBCD
        else:
            if problem.penalty == "weighted l1":
                penalty = penalties.WeightedL1(1.0, problem.l1)
            elif problem.penalty == "elastic net":
                penalty = penalties.L1_plus_L2(1.0, float(problem.l1[0]))
            else:
                penalty = penalties.L1(1.0, positive=problem.nonnegative)
            kinds = {"squared": datafits.Quadratic, "logistic": datafits.Logistic, "poisson": datafits.Poisson}
            datafit = datafits.Huber(1.35) if problem.loss == "huber" else kinds[problem.loss]()
            self.make = solvers.ProxNewton if newton else solvers.AndersonCD
        self.datafit, self.penalty = compiled_clone(datafit), compiled_clone(penalty)

    def path(self, stop, alphas):
        one, p = self.problem, self.problem.p
        # its default numbers of rounds are too few for the small tolerances
        options = {"ws_strategy": "fixpoint"} if one.penalty == "sparse groups" else {}
        solver = self.make(tol=stop, max_iter=1000, fit_intercept=one.intercept, **options)
        w, Xw, coefs, intercepts = None, None, [], []
        for alpha in alphas:
            self.penalty.alpha = float(alpha)
            w = solver._solve(self.X, one.y, self.datafit, self.penalty, w, Xw)[0]
            intercept = float(w[p]) if one.intercept else 0.0
            coefs.append(w[:p].copy())
            intercepts.append(intercept)
            if len(alphas) > 1:
                Xw = self.X @ w[:p] + intercept
        return answers(coefs, intercepts)
