"""modopt's Condat-Vu primal-dual method, with the step sizes of its theorem."""

import numpy as np
from objective import Stack
from solving import Solver as Base


class Solver(Base):
    name = "modopt, Condat-Vu"
    package = "modopt"
    requirements = ("modopt",)

    def skip(self, objective):
        if not objective.split[1]:
            return "a penalty without a map needs no primal-dual method"
        return None

    def run(self, record):
        from modopt.opt.algorithms import Condat
        from modopt.opt.gradient import GradParent
        from modopt.opt.linear import LinearParent
        from modopt.opt.proximity import ProximityParent

        objective = self.objective
        closed, others = objective.split
        stack = Stack(others)
        matrix, size = stack.matrix, stack.curvature()
        lipschitz = objective.lipschitz()
        # the theorem asks for 1 / tau - sigma |A|^2 >= L / 2; a large primal step was the best of a grid
        tau = 1.8 / lipschitz
        sigma = (1.0 / tau - 0.5 * lipschitz) / size

        class Gradient(GradParent):
            def get_grad(self, w):
                self.grad = objective.smooth_gradient(w)

        def shrink(u, extra_factor=1.0):
            return stack.shrink(u, extra_factor)

        def prox(w, extra_factor=1.0):
            return closed.prox(w, tau)

        algorithm = Condat(
            x=np.zeros(objective.p), y=np.zeros(matrix.shape[0]),
            grad=Gradient(objective.y, lambda w: w, lambda u: u, data_type=float),
            prox=ProximityParent(prox, lambda *_, **__: 0.0), prox_dual=ProximityParent(shrink, lambda *_, **__: 0.0),
            linear=LinearParent(lambda w: matrix @ w, lambda u: matrix.T @ u), cost=None, rho=1.0, sigma=sigma, tau=tau,
            auto_iterate=False, progress=False,
        )  # fmt: skip
        while True:
            algorithm._update()
            record(algorithm._x_new)
