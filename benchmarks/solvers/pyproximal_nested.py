"""pyproximal's accelerated proximal gradient, with the composite prox that we wrote as its operator."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "pyproximal, our prox"
    package = "pyproximal"
    requirements = ("pyproximal", "numba")

    def run(self, record):
        from composite_prox import CompositeProx
        from pyproximal import ProxOperator
        from pyproximal.optimization.primal import ProximalGradient

        objective, prox = self.objective, CompositeProx(self.objective)

        class Smooth(ProxOperator):
            def __call__(self, w):
                return objective.smooth_value(w)

            def grad(self, w):
                return objective.smooth_gradient(w)

            def prox(self, w, tau):
                raise NotImplementedError

        class Norms(ProxOperator):
            def __call__(self, w):
                return 0.0  # only for its log

            def prox(self, w, tau):
                return prox(w, tau)

        ProximalGradient(
            Smooth(None, True), Norms(None, False), np.zeros(objective.p), tau=1.0 / objective.lipschitz(),
            niter=1_000_000, acceleration="fista", callback=record,
        )  # fmt: skip
