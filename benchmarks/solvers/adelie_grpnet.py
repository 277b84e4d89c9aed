"""adelie's group elastic net, at one point of the path."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "adelie"
    package = "adelie"
    requirements = ("adelie",)
    environment = "adelie"  # it asks for numpy 1
    sampling = "tolerance"
    stops = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12, 1e-14)

    def skip(self, objective):
        if not objective.plain:
            return "it wants one penalty of groups that do not overlap"
        if objective.loss == "smoothed-hinge":
            return "it has no smoothed hinge"
        if objective.ridge and np.ptp(objective.terms[0].weights) > 0:
            return "its quadratic is weighted as its norms are"
        return None

    def set_objective(self, objective):
        self.objective, term = objective, objective.terms[0]
        # groups must be ranges of columns
        self.order = np.arange(objective.p) if term.groups is None else np.concatenate(term.groups)
        X = objective.X[:, self.order]
        self.X = X.tocsc() if objective.sparse else np.asfortranarray(X)
        self.starts = term.bounds[:-1].astype(int)

    def run(self, tolerance):
        import adelie as ad

        objective, weights = self.objective, self.objective.terms[0].weights
        if objective.loss == "logistic":
            glm = ad.glm.binomial((objective.y + 1) / 2, dtype=np.float64)
        else:
            glm = ad.glm.gaussian(objective.y, dtype=np.float64)
        X = ad.matrix.sparse(self.X, n_threads=1) if objective.sparse else ad.matrix.dense(self.X, n_threads=1)
        scale = float(weights.mean())
        total = scale + objective.ridge
        state = ad.grpnet(
            X, glm, groups=self.starts, penalty=weights / scale, alpha=scale / total, lmda_path=[total],
            intercept=False, tol=tolerance, irls_tol=tolerance, early_exit=False, progress_bar=False, n_threads=1,
        )  # fmt: skip
        w = np.zeros(objective.p)
        w[self.order] = state.betas[-1].toarray().ravel()
        return w
