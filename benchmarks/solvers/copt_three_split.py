"""copt's three-operator splitting with line search: a smooth part and two proxes."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "copt, three operators"
    package = "copt"
    requirements = ("copt",)

    def skip(self, objective):
        if not objective.split[1]:
            return "a closed prox needs no splitting"
        if len(objective.terms) > 2 or not all(term.partition for term in objective.terms):
            return "it takes two penalties with a closed prox each"
        return None

    def run(self, record):
        from copt import minimize_three_split

        objective = self.objective
        proxes = {f"prox_{k}": term.prox for k, term in enumerate(objective.terms, start=1)}
        minimize_three_split(
            smooth(objective), np.zeros(objective.p), **proxes, tol=0.0, max_iter=1_000_000,
            step_size=1.0 / objective.lipschitz(), h_Lipschitz=steepest(objective.terms),
            callback=lambda state: record(state["x"]),
        )  # fmt: skip


def smooth(objective):
    def value_and_gradient(w, return_gradient=True):
        return objective.smooth(w) if return_gradient else objective.smooth_value(w)

    return value_and_gradient


def steepest(terms):
    """The Lipschitz constant of the second penalty, which lets the step grow."""
    return float(np.linalg.norm(terms[1].weights)) if len(terms) == 2 and terms[1].kind == "group" else None
