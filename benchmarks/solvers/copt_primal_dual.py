"""copt's primal-dual splitting with line search: a smooth part, a closed prox, and one behind a linear map."""

import numpy as np
from objective import Stack
from solving import Solver as Base


class Solver(Base):
    name = "copt, primal-dual"
    package = "copt"
    requirements = ("copt",)

    def skip(self, objective):
        if not objective.split[1]:
            return "a penalty without a map needs no primal-dual method"
        return None

    def run(self, record):
        from copt import minimize_primal_dual

        objective = self.objective
        closed, others = objective.split
        stack, lipschitz = Stack(others), objective.lipschitz()
        steps = {"step_size": 1.0 / lipschitz, "step_size2": lipschitz / stack.curvature()}  # the best of a grid

        def smooth(w, return_gradient=True):
            return objective.smooth(w) if return_gradient else objective.smooth_value(w)

        minimize_primal_dual(
            smooth, np.zeros(objective.p), prox_1=closed.prox, prox_2=stack.shrink,
            L=stack.matrix, tol=0.0, max_iter=1_000_000, callback=lambda state: record(state["x"]), **steps,
        )  # fmt: skip
