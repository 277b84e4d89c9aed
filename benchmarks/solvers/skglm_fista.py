"""skglm's FISTA, with a data term and a composite prox that we wrote: it takes any penalty that way."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "skglm FISTA, our prox"
    package = "skglm"
    requirements = ("skglm", "numba")

    def set_objective(self, objective):
        import scipy.sparse as sp

        self.objective, X = objective, objective.X
        if objective.ridge is None:
            # quadratics along edges are rows with a loss of their own; one on the features goes into the prox
            parts = [np.sqrt(term.ridge) * term.map for term in objective.terms if term.ridge]
            X = sp.vstack([sp.csr_matrix(X), *parts])
        # skglm works column by column
        self.X = sp.csc_matrix(X) if sp.issparse(X) else np.asfortranarray(X)

    def run(self, record):
        from composite_prox import CompositeProx
        from skglm.solvers import FISTA

        # _solve and not solve: the latter compiles data term and penalty, and these two are compiled already
        solver, prox, ridge = FISTA(max_iter=1_000_000, tol=0.0), CompositeProx(self.objective), self.objective.ridge

        def with_ridge(v, step):
            scale = 1.0 + step * (ridge or 0.0)
            return prox(v / scale, step / scale)

        solver._solve(self.X, self.objective.y, Datafit(self.objective, self.X.shape[0]), Penalty(with_ridge, record))


class Datafit:
    """The smooth part, as FISTA asks for it; rows beyond the n of the data are those of a quadratic."""

    def __init__(self, objective, rows):
        self.objective, self.rows = objective, rows

    def initialize(self, X, y):
        self.XT = X.T

    def initialize_sparse(self, data, indptr, indices, y):
        import scipy.sparse as sp

        self.XT = sp.csr_matrix((data, indices, indptr), shape=(self.objective.p, self.rows))

    def get_global_lipschitz(self, *_):
        return self.objective.lipschitz()

    get_global_lipschitz_sparse = get_global_lipschitz

    def gradient(self, X, y, scores):
        n = self.objective.n
        slopes = self.objective.slopes(scores[:n]) / n
        return self.XT @ (slopes if len(scores) == n else np.concatenate([slopes, scores[n:]]))

    def gradient_sparse(self, data, indptr, indices, y, scores):
        return self.gradient(None, y, scores)

    def value(self, y, w, scores):
        return 0.0  # only for a log


class Penalty:
    def __init__(self, prox, record):
        self.prox, self.record = prox, record

    def prox_vec(self, v, step):
        return self.prox(v, step)

    def subdiff_distance(self, w, gradient, features):
        return np.ones(1)  # never stop: the record does

    def value(self, w):
        self.record(w)
        return 0.0
