"""lightning's stochastic dual coordinate ascent, for the elastic net."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "lightning, SDCA"
    package = "sklearn-contrib-lightning"
    requirements = ("sklearn-contrib-lightning", "numpy<2", "scikit-learn<1.6")
    environment = "lightning"  # its wheels end at Python 3.10 and numpy 1
    python = "3.10"
    sampling = "tolerance"
    stops = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)

    def skip(self, objective):
        if objective.plain != "l1" or not objective.ridge:
            return "it is the elastic net, and needs its quadratic"
        if objective.loss != "smoothed-hinge":
            return "of our losses it has the smoothed hinge"
        if np.ptp(objective.terms[0].weights) > 0:
            return "its weights are equal"
        return None

    def run(self, tolerance):
        from lightning.classification import SDCAClassifier

        objective, alpha = self.objective, float(self.objective.terms[0].weights[0])
        total = alpha + objective.ridge
        model = SDCAClassifier(
            alpha=total, l1_ratio=alpha / total, loss="smooth_hinge", tol=tolerance, max_iter=100_000, random_state=0
        )
        return model.fit(objective.X, objective.y).coef_.ravel()
