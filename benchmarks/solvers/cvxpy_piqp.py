"""CVXPY with PIQP."""

from cvxpy_model import CvxpySolver


class Solver(CvxpySolver):
    name = "CVXPY + PIQP"
    package = "piqp"
    requirements = ("cvxpy", "piqp")
    cones = ()
    solver = "PIQP"

    def options(self, tolerance):
        gap = {"check_duality_gap": True, "eps_duality_gap_abs": tolerance, "eps_duality_gap_rel": tolerance}
        return {"eps_abs": tolerance, "eps_rel": tolerance, "backend": "sparse"} | gap
