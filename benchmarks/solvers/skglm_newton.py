"""skglm's own solvers where the penalty is separable: proximal Newton with working sets."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "skglm"
    package = "skglm"
    requirements = ("skglm", "numba")
    sampling = "tolerance"
    stops = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)

    def skip(self, objective):
        if not objective.plain:
            return "its solvers want one separable penalty"
        if objective.loss == "smoothed-hinge":
            return "it has no smoothed hinge"
        if objective.plain == "group" and objective.ridge:
            return "it has no group elastic net"
        return None

    def set_objective(self, objective):
        import scipy.sparse as sp
        from skglm import datafits, penalties, solvers
        from skglm.utils.jit_compilation import compiled_clone

        self.objective, logistic = objective, objective.loss == "logistic"
        term = objective.terms[0]
        if objective.plain == "l1":
            alpha, ridge = float(term.weights[0]), objective.ridge
            if not np.all(term.weights == alpha):
                penalty = penalties.WeightedL1(1.0, term.weights)
            elif ridge:
                penalty = penalties.L1_plus_L2(alpha + ridge, alpha / (alpha + ridge))
            else:
                penalty = penalties.L1(alpha)
            datafit = datafits.Logistic() if logistic else datafits.Quadratic()
            self.make = solvers.ProxNewton if logistic else solvers.AndersonCD
        else:
            bounds, members = term.bounds.astype(np.int32), np.concatenate(term.groups).astype(np.int32)
            penalty = penalties.WeightedGroupL2(1.0, term.weights, bounds, members)
            datafit = (datafits.LogisticGroup if logistic else datafits.QuadraticGroup)(bounds, members)
            self.make = solvers.GroupProxNewton if logistic else solvers.GroupBCD
        self.datafit, self.penalty = compiled_clone(datafit), compiled_clone(penalty)
        # skglm works column by column
        self.X = sp.csc_matrix(objective.X) if objective.sparse else np.asfortranarray(objective.X)

    def run(self, tolerance):
        # its default of 20 outer rounds is too few for the small tolerances
        solver = self.make(tol=tolerance, max_iter=1000, fit_intercept=False)
        return solver._solve(self.X, self.objective.y, self.datafit, self.penalty)[0]
