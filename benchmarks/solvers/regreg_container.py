"""regreg: the container of a smooth part and atoms, whose joint prox it solves in the dual; FISTA with restarts."""

import numpy as np
from objective import Stack
from regreg_model import recorded, smooth_part
from solving import Solver as Base


class Solver(Base):
    name = "regreg"
    package = "regreg"
    requirements = ("regreg",)

    def run(self, record):
        import regreg.api as rr

        objective = self.objective
        smooth, atoms = smooth_part(rr, objective), [atom(rr, term) for term in objective.terms]
        if objective.plain:
            problem = recorded(rr.simple_problem, record)(smooth, atoms[0])
        else:
            problem = recorded(rr.container, record)(smooth, *atoms)
            warm_prox(rr, problem, Stack(objective.terms).curvature())
        problem.solve(tol=0.0, max_its=1_000_000, start_step=1.0 / objective.lipschitz())


def warm_prox(rr, problem, curvature):
    """Let each dual of the prox start where the last one ended, and bound A A' once: by default it does neither."""
    from regreg.algorithms import FISTA

    class Warm(FISTA):
        def fit(self, **options):
            history = super().fit(**options)
            problem.dual_minimizer = self.composite.coefs
            return history

    rr.container.default_solver = Warm
    solve = problem.proximal
    problem.proximal = lambda quadratic, prox_control=None: solve(
        quadratic, prox_control={"dual_reference_lipschitz": curvature}
    )


def atom(rr, term):
    """A term as an atom, behind a linear map where it is not one of the features themselves."""
    if term.groups is None:
        inside = rr.weighted_l1norm(term.weights, lagrange=1.0)
        return inside if term.edges is None else rr.linear_atom(inside, rr.astransform(term.map))
    sizes = np.diff(term.bounds)
    labels, weights = np.repeat(np.arange(len(sizes)), sizes), dict(enumerate(term.weights))
    if term.partition and len(labels) == term.p:
        ordered = np.empty(term.p, dtype=int)
        ordered[np.concatenate(term.groups)] = labels
        return rr.group_lasso(ordered, weights=weights, lagrange=1.0)
    return rr.linear_atom(rr.group_lasso(labels, weights=weights, lagrange=1.0), rr.astransform(term.matrix))
