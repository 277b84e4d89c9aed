"""The objective: what every solver minimises, and how every answer is judged.

    F(w) = (1/n) sum_i loss(x_i'w, y_i) + sum_k penalty_k(A_k w)

Each term of the penalty is a weighted l1 norm or a sum of weighted Euclidean norms of groups, of the features
themselves or of differences along edges, with or without a quadratic. Written with numpy and scipy alone, apart from
`fenchel`, because it runs in the environment of every solver and judges `fenchel` too.
"""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

FORMAT = 1  # of the files; a new one makes the cached problems anew
SMOOTHNESS = {"smoothed-hinge": 1.0, "logistic": 0.25, "squared": 1.0}  # of the loss in the score


class Term:
    """One term: sum_j weights_j |u_j|, or sum_g weights_g |u_g|, plus ridge/2 |u|^2, where u = w or its differences.

    Parameters
    ----------
    p : int
        Features.
    weights : vector
        One per coordinate of u, or one per group; alpha is part of it.
    groups : list of index arrays, optional
        Groups of coordinates of u; they may overlap.
    edges : array (m, 2), optional
        u_e = w_i - w_j for the edge e = (i, j); u = w without.
    ridge : float
    grid : tuple, optional
        If the edges and groups are those of total variation on a grid, its shape: fenchel has a name for that.
    """

    def __init__(self, p, weights, groups=None, edges=None, ridge=0.0, grid=None):
        self.p, self.weights, self.ridge = int(p), np.asarray(weights, dtype=float), float(ridge)
        self.groups = None if groups is None else [np.asarray(group, dtype=np.int64) for group in groups]
        self.edges = None if edges is None else np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        self.grid = None if grid is None else tuple(int(size) for size in grid)

    @property
    def kind(self):
        return "l1" if self.groups is None else "group"

    @functools.cached_property
    def map(self):
        """u = map @ w."""
        if self.edges is None:
            return sp.identity(self.p, format="csr")
        m = len(self.edges)
        rows = np.repeat(np.arange(m), 2)
        return sp.csr_matrix((np.tile([1.0, -1.0], m), (rows, self.edges.ravel())), shape=(m, self.p))

    @functools.cached_property
    def matrix(self):
        """u with a copy of each coordinate for each group that holds it: the groups stand one after another."""
        return self.map if self.groups is None else self.map[np.concatenate(self.groups)]

    @functools.cached_property
    def bounds(self):
        """Group g is u[bounds[g] : bounds[g + 1]] of `matrix @ w`; of an l1 norm every coordinate is a group."""
        sizes = np.ones(self.matrix.shape[0]) if self.groups is None else [len(group) for group in self.groups]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def partition(self):
        """Whether the prox is closed: on the features themselves, none in two groups."""
        members = np.arange(self.p) if self.groups is None else np.concatenate(self.groups)
        return self.edges is None and len(np.unique(members)) == len(members)

    def norms(self, copies):
        if self.groups is None:
            return np.abs(copies)
        return np.sqrt(np.add.reduceat(copies * copies, self.bounds[:-1]))

    def value(self, w):
        quadratic = 0.5 * self.ridge * float(np.sum((self.map @ w) ** 2)) if self.ridge else 0.0
        return float(self.weights @ self.norms(self.matrix @ w)) + quadratic

    def shrink(self, copies, step):
        """The prox of step times the norms, on the coordinates of `matrix @ w`."""
        if self.groups is None:
            return np.sign(copies) * np.maximum(np.abs(copies) - step * self.weights, 0.0)
        norms = np.maximum(self.norms(copies), 1e-300)
        factor = np.maximum(1.0 - step * self.weights / norms, 0.0)
        return copies * np.repeat(factor, np.diff(self.bounds))

    def prox(self, w, step):
        """The prox on the features themselves, where it is closed."""
        if self.groups is None:
            return self.shrink(w, step)
        members = np.concatenate(self.groups)
        out = np.array(w)
        out[members] = self.shrink(out[members], step)
        return out


class Objective:
    """F, its parts and its file."""

    def __init__(self, X, y, loss, terms, name=""):
        if loss not in SMOOTHNESS:
            raise ValueError(f"loss is {loss!r}; it must be one of {', '.join(SMOOTHNESS)}")
        # csr_matrix and not csr_array: older peers know only the former
        self.X = sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=float)
        self.y, self.loss, self.terms, self.name = np.asarray(y, dtype=float), loss, list(terms), name
        self.n, self.p = self.X.shape

    @property
    def sparse(self):
        return sp.issparse(self.X)

    # -- value and gradient -----------------------------------------------------------------------------------------

    def losses(self, scores):
        y = self.y
        if self.loss == "squared":
            return 0.5 * (scores - y) ** 2
        margin = y * scores
        if self.loss == "logistic":
            return np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))  # 4 times faster than logaddexp
        short = 1.0 - margin
        bent = np.clip(short, 0.0, 1.0)
        return bent * (short - 0.5 * bent)

    def slopes(self, scores):
        y = self.y
        if self.loss == "squared":
            return scores - y
        margin = y * scores
        if self.loss == "logistic":
            return -y / (1.0 + np.exp(np.minimum(margin, 700.0)))
        return y * np.clip(margin - 1, -1.0, 0.0)

    def value(self, w):
        """F(w): the judge."""
        return float(self.losses(self.X @ w).mean()) + sum(term.value(w) for term in self.terms)

    def smooth(self, w):
        """Value and gradient of the loss and the quadratics."""
        scores, bent = self.X @ w, self.quadratic @ w
        value = float(self.losses(scores).mean()) + 0.5 * float(w @ bent)
        return value, self.X.T @ self.slopes(scores) / self.n + bent

    def smooth_value(self, w):
        return float(self.losses(self.X @ w).mean()) + 0.5 * float(w @ (self.quadratic @ w))

    def smooth_gradient(self, w):
        return self.X.T @ self.slopes(self.X @ w) / self.n + self.quadratic @ w

    @functools.cached_property
    def quadratic(self):
        """The matrix Q of w'Q w / 2, the sum of all quadratics of the penalty."""
        total = sp.csr_matrix((self.p, self.p))
        for term in self.terms:
            if term.ridge:
                total = total + term.ridge * (term.map.T @ term.map)
        return sp.csr_matrix(total)

    @property
    def ridge(self):
        """mu, if the quadratics amount to mu/2 |w|^2; None otherwise."""
        diagonal = self.quadratic.diagonal()
        alike = np.all(diagonal == diagonal[0]) and (self.quadratic - sp.diags(diagonal)).count_nonzero() == 0
        return float(diagonal[0]) if alike else None

    def lipschitz(self):
        """A bound on the curvature of the smooth part; costs some products with the data."""
        curvature = SMOOTHNESS[self.loss] / self.n
        product = sla.LinearOperator(
            (self.p, self.p), lambda v: curvature * (self.X.T @ (self.X @ v)) + self.quadratic @ v, dtype=float
        )
        start = np.random.default_rng(0).standard_normal(self.p)
        return 1.01 * float(sla.eigsh(product, k=1, v0=start, tol=1e-2, return_eigenvectors=False)[0])

    # -- the penalty as one stack of rows ----------------------------------------------------------------------------

    @property
    def split(self):
        """The part whose prox is closed, and the terms that need a method for a map."""
        closed = [term for term in self.terms if term.partition]
        # an l1 norm and groups on top of it go together: the two proxes one after the other are that of the sum
        nested = [term for kind in ("l1", "group") for term in [one for one in closed if one.kind == kind][:1]]
        return Closed(nested), [term for term in self.terms if not any(term is one for one in nested)]

    # -- kinds of problem that solvers ask for -----------------------------------------------------------------------

    @property
    def plain(self):
        """'l1' or 'group' if the penalty is that and nothing else but mu/2 |w|^2; '' otherwise."""
        if len(self.terms) == 1 and self.terms[0].partition:
            return self.terms[0].kind
        return ""

    # -- smaller, and on disk ----------------------------------------------------------------------------------------

    def tiny(self, rows=40):
        """A few rows of the same problem, both classes among them: a warm-up."""
        order = np.argsort(self.y, kind="stable")
        some = np.sort(np.concatenate([order[: rows // 2], order[-(rows // 2) :]]))
        return Objective(self.X[some], self.y[some], self.loss, self.terms, self.name)

    def save(self, path):
        arrays = {"y": self.y, "loss": np.array(self.loss), "name": np.array(self.name), "shape": [self.n, self.p]}
        if self.sparse:
            arrays |= {"data": self.X.data, "indices": self.X.indices, "indptr": self.X.indptr}
        else:
            arrays["X"] = self.X
        for k, term in enumerate(self.terms):
            arrays |= {f"{k}.weights": term.weights, f"{k}.ridge": np.array(term.ridge)}
            if term.edges is not None:
                arrays[f"{k}.edges"] = term.edges
            if term.grid is not None:
                arrays[f"{k}.grid"] = np.array(term.grid)
            if term.groups is not None:
                arrays |= {f"{k}.members": np.concatenate(term.groups), f"{k}.bounds": term.bounds}
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path):
        with np.load(path, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        n, p = (int(size) for size in arrays["shape"])
        X = arrays.get("X")
        if X is None:
            X = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n, p))
        terms = []
        while f"{len(terms)}.weights" in arrays:
            k = len(terms)
            groups = None
            if f"{k}.members" in arrays:
                groups = np.split(arrays[f"{k}.members"], arrays[f"{k}.bounds"][1:-1])
            edges, grid = arrays.get(f"{k}.edges"), arrays.get(f"{k}.grid")
            terms.append(Term(p, arrays[f"{k}.weights"], groups, edges, arrays[f"{k}.ridge"], grid))
        return cls(X, arrays["y"], str(arrays["loss"]), terms, str(arrays["name"]))


class Closed:
    """Terms whose proxes, one after the other, are the prox of their sum; there may be none."""

    def __init__(self, terms):
        self.terms = terms

    def prox(self, w, step):
        for term in self.terms:
            w = term.prox(w, step)
        return w


class Stack:
    """Several terms behind one map: their matrices one above the other."""

    def __init__(self, terms):
        self.terms = terms
        self.matrix = sp.csr_matrix(sp.vstack([term.matrix for term in terms], format="csr"))
        self.ends = np.cumsum([term.matrix.shape[0] for term in terms])[:-1]

    def shrink(self, copies, step):
        """The prox of step times all norms, on the coordinates of `matrix @ w`."""
        parts = [term.shrink(part, step) for term, part in zip(self.terms, np.split(copies, self.ends), strict=True)]
        return np.concatenate(parts)

    def curvature(self):
        """A bound on the largest eigenvalue of A'A."""
        v = np.random.default_rng(0).standard_normal(self.matrix.shape[1])
        for _ in range(60):
            v /= np.linalg.norm(v)
            v = self.matrix.T @ (self.matrix @ v)
        return 1.05 * float(np.linalg.norm(v))
