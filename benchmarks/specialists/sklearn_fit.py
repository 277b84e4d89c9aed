"""scikit-learn: Lasso, ElasticNet and their paths, LogisticRegression by liblinear, LassoCV, LogisticRegressionCV."""

import numpy as np
from specialist import Specialist as Base
from specialist import answers, columns_first


class Specialist(Base):
    name = "scikit-learn"
    package = "scikit-learn"
    requirements = ("scikit-learn>=1.8",)
    stops = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12)
    default = 1e-4
    tasks = ("fit", "path", "cv")

    def skip(self, problem, task):
        taken = {"squared": ("l1", "elastic net", "nonnegative"), "logistic": ("l1",)}
        if problem.penalty not in taken.get(problem.loss, ()):
            return f"coordinate descent and liblinear have no {problem.penalty} with the {problem.loss} loss"
        if problem.loss == "logistic" and problem.intercept:
            return "liblinear penalises the intercept"
        return None

    def set_problem(self, problem, alphas, folds):
        # liblinear reads rows, the lasso reads columns
        self.problem, self.X = problem, problem.X if problem.loss == "logistic" else columns_first(problem)

    def _lasso(self, stop, alpha, **more):
        from sklearn.linear_model import ElasticNet, Lasso

        one = self.problem
        options = {"tol": stop, "max_iter": 100_000, "fit_intercept": one.intercept, "positive": one.nonnegative}
        if one.penalty == "elastic net":
            return ElasticNet(alpha=alpha, l1_ratio=float(one.l1[0]), **options, **more)
        return Lasso(alpha=alpha, **options, **more)

    def path(self, stop, alphas):
        one, coefs, intercepts = self.problem, [], []
        if one.loss == "logistic":
            from sklearn.linear_model import LogisticRegression

            for alpha in alphas:
                model = LogisticRegression(C=1.0 / (alpha * one.n), l1_ratio=1.0, solver="liblinear", tol=stop,
                                           fit_intercept=False, max_iter=100_000, random_state=0)  # fmt: skip
                coefs.append(model.fit(self.X, one.y).coef_.ravel())
            return answers(coefs, 0.0)
        if len(alphas) > 1 and not (one.sparse and one.intercept):
            return self._lasso_path(stop, alphas)
        model = self._lasso(stop, alphas[0], warm_start=True)
        for alpha in alphas:
            model.set_params(alpha=alpha).fit(self.X, one.y)
            coefs.append(np.array(model.coef_))
            intercepts.append(model.intercept_)
        return answers(coefs, intercepts)

    def _lasso_path(self, stop, alphas):
        """Its own path, which makes use of the Gram matrix where n > p, as its cross-validation does."""
        from sklearn.linear_model import enet_path

        one = self.problem
        means, centre = (one.X.mean(axis=0), one.y.mean()) if one.intercept else (np.zeros(one.p), 0.0)
        X = np.asfortranarray(self.X - means) if one.intercept else self.X
        ratio = float(one.l1[0]) if one.penalty == "elastic net" else 1.0
        coefs = enet_path(X, one.y - centre, l1_ratio=ratio, alphas=alphas, tol=stop, max_iter=100_000,
                          positive=one.nonnegative)[1].T  # fmt: skip
        return answers(coefs, centre - coefs @ means)

    def cv(self, stop, alphas, folds):
        from sklearn.linear_model import ElasticNetCV, LassoCV, LogisticRegressionCV

        one = self.problem
        if one.loss == "logistic":
            LogisticRegressionCV(Cs=1.0 / (alphas * one.n), l1_ratios=[1.0], solver="liblinear", tol=stop, cv=folds,
                                 fit_intercept=False, max_iter=100_000, scoring="neg_log_loss", random_state=0,
                                 use_legacy_attributes=False).fit(self.X, one.y)  # fmt: skip
            return
        options = {"alphas": alphas, "tol": stop, "max_iter": 100_000, "fit_intercept": one.intercept, "cv": folds}
        if one.penalty == "elastic net":
            ElasticNetCV(l1_ratio=float(one.l1[0]), **options).fit(self.X, one.y)
        else:
            LassoCV(positive=one.nonnegative, **options).fit(self.X, one.y)
