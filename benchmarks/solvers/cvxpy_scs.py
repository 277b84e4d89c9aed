"""CVXPY with SCS."""

from cvxpy_model import CvxpySolver


class Solver(CvxpySolver):
    name = "CVXPY + SCS"
    package = "scs"
    requirements = ("cvxpy", "scs")
    cones = ("second-order", "exponential")
    solver = "SCS"

    def options(self, tolerance):
        return {"eps_abs": tolerance, "eps_rel": tolerance, "max_iters": 1_000_000}
