"""adelie's group elastic net: one alpha, at once or at the end of a short path; whole paths; cv_grpnet."""

import numpy as np
from specialist import Specialist as Base
from specialist import answers, columns_first


class Specialist(Base):
    name = "adelie"
    package = "adelie"
    requirements = ("adelie",)
    environment = "adelie"  # it asks for numpy 1
    stops = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12, 1e-14)
    default = 1e-7
    tasks = ("fit", "path", "cv")
    steps = True

    def skip(self, problem, task):
        if problem.loss in ("smoothed-hinge", "huber"):
            return f"it has no {problem.loss} loss"
        if problem.penalty == "sparse groups":
            return "it has no sparse groups"
        if problem.nonnegative:
            return "it was not set up for bounds"
        if task == "cv" and problem.penalty not in ("l1", "elastic net"):
            return "its cross-validation chooses its alphas without the groups"
        return None

    def set_problem(self, problem, alphas, folds):
        self.problem, self.X = problem, columns_first(problem)
        self.top = problem.alpha_max()
        grouped = problem.penalty == "groups"
        self.weights = problem.group if grouped else problem.l1
        self.starts = problem.bounds[:-1] if grouped else np.arange(problem.p)
        self.scale = float(self.weights.mean()) + problem.ridge  # alpha times this is its lambda
        self.mix = float(self.weights.mean()) / self.scale

    def _glm(self):
        import adelie as ad

        y = self.problem.y
        if self.problem.loss == "logistic":
            return ad.glm.binomial((y + 1) / 2, dtype=np.float64)
        return {"poisson": ad.glm.poisson, "squared": ad.glm.gaussian}[self.problem.loss](y, dtype=np.float64)

    def _options(self, tolerance):
        return {
            "groups": self.starts, "penalty": self.weights / self.weights.mean(), "alpha": self.mix, "tol": tolerance,
            "irls_tol": tolerance, "intercept": self.problem.intercept, "progress_bar": False,
        }  # fmt: skip

    def _matrix(self):
        import adelie as ad

        return ad.matrix.sparse(self.X, n_threads=1) if self.problem.sparse else ad.matrix.dense(self.X, n_threads=1)

    def fit(self, stop):
        tolerance, steps = stop if isinstance(stop, list) else (stop, 1)
        alpha = self.problem.alpha
        alphas = np.geomspace(self.top, alpha, steps + 1)[1:]
        coefs, intercepts = self.path(tolerance, alphas)
        return coefs[-1:], intercepts[-1:]

    def path(self, stop, alphas):
        import adelie as ad

        state = ad.grpnet(
            self._matrix(), self._glm(), lmda_path=self.scale * alphas, early_exit=False, n_threads=1,
            **self._options(stop),
        )  # fmt: skip
        return answers(state.betas.toarray(), state.intercepts)

    def cv(self, stop, alphas, folds):
        import adelie as ad

        options = {"min_ratio": float(alphas[-1] / alphas[0]), "lmda_path_size": len(alphas), "n_folds": len(folds)}
        ad.cv_grpnet(self._matrix(), self._glm(), n_threads=1, seed=0, **options, **self._options(stop))
