"""CVXPY with Clarabel."""

from cvxpy_model import CvxpySolver


class Solver(CvxpySolver):
    name = "CVXPY + Clarabel"
    package = "clarabel"
    requirements = ("cvxpy", "clarabel")
    cones = ("second-order", "exponential")
    solver = "CLARABEL"

    def options(self, tolerance):
        return {"tol_gap_abs": tolerance, "tol_gap_rel": tolerance, "tol_feas": tolerance, "max_threads": 1}
