"""fenchel through its scikit-learn estimator; only on tiny problems, where what surrounds the solver counts."""

from fenchel_separable import penalty_of
from specialist import Specialist as Base
from specialist import answers


class Specialist(Base):
    name = "fenchel, estimator"
    package = "fenchel"
    environment = None
    stops = (1e-6,)
    default = 1e-6
    tasks = ("fit",)

    def skip(self, problem, task):
        if task != "tiny":
            return "it is only asked on tiny problems"
        return None if problem.loss in ("squared", "logistic") else "only squared and logistic losses are asked of it"

    def set_problem(self, problem, alphas, folds):
        self.problem = problem

    def fit(self, stop):
        import fenchel as fl

        one = self.problem
        kind = fl.StructuredRegressor if one.loss == "squared" else fl.StructuredClassifier
        model = kind(one.loss, penalty_of(one), one.alpha, tol=stop, fit_intercept=one.intercept)
        model.fit(one.X, one.y)
        self.facts = {"gap": model.result_.relative_gap, "status": str(model.result_.status)}
        return answers(model.result_.coef, model.result_.intercept)
