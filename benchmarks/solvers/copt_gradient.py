"""copt's accelerated proximal gradient, for a penalty with a closed prox."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "copt, accelerated gradient"
    package = "copt"
    requirements = ("copt",)

    def skip(self, objective):
        return "its prox must be closed" if objective.split[1] else None

    def run(self, record):
        from copt import minimize_proximal_gradient

        objective = self.objective
        step = 1.0 / objective.lipschitz()
        minimize_proximal_gradient(
            objective.smooth, np.zeros(objective.p), objective.split[0].prox, jac=True, tol=0.0, max_iter=1_000_000,
            step=lambda state: step, accelerated=True, callback=lambda state: record(state["x"]),
        )  # fmt: skip
