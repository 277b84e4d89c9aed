"""The objective in CVXPY, for the solvers behind it. The clock covers the model, its compilation and the solve."""

from __future__ import annotations

import contextlib

import numpy as np
from solving import Solver

_LARGEST = 3e6  # entries of X, stored


class CvxpySolver(Solver):
    """A conic or quadratic solver behind CVXPY; `inside` is the time that the solver itself reports."""

    package = "cvxpy"
    sampling = "tolerance"
    stops = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11)
    cones = ("second-order", "exponential")  # that it knows
    solver = ""
    inside = None

    def skip(self, objective):
        if "second-order" not in self.cones and any(term.kind == "group" for term in objective.terms):
            return "norms of groups are no quadratic program"
        if "exponential" not in self.cones and objective.loss == "logistic":
            return "it has no exponential cone for the logistic loss"
        if objective.X.size > _LARGEST:
            return "models of more than 3 million numbers take it from half a minute to many"
        return None

    def options(self, tolerance):
        raise NotImplementedError

    def run(self, tolerance):
        import cvxpy as cp

        w, problem = model(cp, self.objective)
        self.inside = None
        with contextlib.suppress(cp.SolverError):  # the judge looks at whatever it left
            problem.solve(solver=self.solver, **self.options(tolerance))
        stats = problem.solver_stats
        if stats is not None and stats.solve_time is not None:
            self.inside = float(stats.solve_time) + float(stats.setup_time or 0.0)
        return np.full(self.objective.p, np.nan) if w.value is None else w.value


def model(cp, objective):
    n, p, y = objective.n, objective.p, objective.y
    w = cp.Variable(p)
    scores, constraints = objective.X @ w, []
    if objective.loss == "squared":
        cost = cp.sum_squares(scores - y) / (2 * n)
    elif objective.loss == "logistic":
        cost = cp.sum(cp.logistic(cp.multiply(-y, scores))) / n
    else:
        # the smoothed hinge of 1 - m is the least h^2/2 + r with h + r >= 1 - m: a quadratic program
        h, r = cp.Variable(n, nonneg=True), cp.Variable(n, nonneg=True)
        constraints.append(cp.multiply(y, scores) + h + r >= 1)
        cost = (cp.sum_squares(h) / 2 + cp.sum(r)) / n
    for term in objective.terms:
        u = w if term.edges is None else term.map @ w
        cost = cost + (term.weights @ cp.abs(u) if term.groups is None else norms(cp, term, u))
        if term.ridge:
            cost = cost + 0.5 * term.ridge * cp.sum_squares(u)
    return w, cp.Problem(cp.Minimize(cost), constraints)


def norms(cp, term, u):
    """Groups of one size in one atom: CVXPY compiles that much faster than a sum over groups."""
    total, sizes = 0, np.array([len(group) for group in term.groups])
    for size in np.unique(sizes):
        some = np.flatnonzero(sizes == size)
        if size == 1:
            members = np.concatenate([term.groups[g] for g in some])
            total = total + term.weights[some] @ cp.abs(u[members])
        else:
            members = np.stack([term.groups[g] for g in some])
            table = cp.reshape(u[members.ravel()], members.shape, order="C")
            total = total + term.weights[some] @ cp.norm(table, axis=1)
    return total
