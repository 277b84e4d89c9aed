"""CVXPY with QOCO."""

from cvxpy_model import CvxpySolver


class Solver(CvxpySolver):
    name = "CVXPY + QOCO"
    package = "qoco"
    requirements = ("cvxpy", "qoco")
    cones = ("second-order",)
    solver = "QOCO"

    def options(self, tolerance):
        return {"abstol": tolerance, "reltol": tolerance}
