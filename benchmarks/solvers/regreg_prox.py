"""regreg's FISTA (backtracking, restarts), with the composite prox that we wrote in place of its own dual."""

from regreg_model import recorded, smooth_part
from solving import Solver as Base


class Solver(Base):
    name = "regreg, our prox"
    package = "regreg"
    requirements = ("regreg", "numba")

    def skip(self, objective):
        if objective.plain:
            return "its own prox is exact here"
        return None

    def run(self, record):
        import regreg.api as rr
        from composite_prox import CompositeProx
        from regreg.problems.composite import nonsmooth

        objective, prox = self.objective, CompositeProx(self.objective)

        class Norms(nonsmooth):
            def nonsmooth_objective(self, w, check_feasibility=False):
                return sum(float(term.weights @ term.norms(term.matrix @ w)) for term in objective.terms)

            def proximal(self, quadratic, prox_control=None):
                total = quadratic + self.quadratic
                centre = total.center - total.linear_term / total.coef
                return prox(centre, 1.0 / total.coef)

        problem = recorded(rr.simple_problem, record)(smooth_part(rr, objective), Norms(objective.p))
        problem.solve(tol=0.0, max_its=1_000_000, start_step=1.0 / objective.lipschitz())
