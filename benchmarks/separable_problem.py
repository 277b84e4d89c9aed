"""Separable problems and their judge: `families.py` and `real_data.py` make them, `separable.py` measures on them.

    F(w, b) = (1/n) sum_i loss(x_i'w + b, y_i) + alpha (sum_j l1_j |w_j| + sum_g group_g |w_g| + ridge/2 |w|^2)

with w >= 0 if `nonnegative`, and with b only if `intercept`. Written with numpy and scipy alone, apart from `fenchel`,
because it runs in the environment of every peer and judges `fenchel` too.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import scipy.sparse as sp

LOSSES = ("squared", "logistic", "smoothed-hinge", "huber", "poisson")
PENALTIES = ("l1", "weighted l1", "elastic net", "groups", "sparse groups", "nonnegative")
HUBER = 1.35  # where Huber's loss turns linear, fenchel's default


@dataclasses.dataclass
class Separable:
    """One problem.

    Attributes
    ----------
    X, y : data; X is an array or a CSR matrix
    loss, penalty : one of LOSSES, one of PENALTIES
    alpha : float
    l1 : vector of p weights of the absolute values
    bounds : vector; group g holds the columns bounds[g] ... bounds[g + 1] - 1; without groups, one number
    group : vector of the groups' weights
    ridge : float
    intercept, nonnegative : bool
    name : str
    """

    X: np.ndarray | sp.csr_matrix
    y: np.ndarray
    loss: str
    penalty: str
    alpha: float = 1.0
    l1: np.ndarray | None = None
    bounds: np.ndarray | None = None
    group: np.ndarray | None = None
    ridge: float = 0.0
    intercept: bool = False
    nonnegative: bool = False
    name: str = ""

    def __post_init__(self):
        if self.loss not in LOSSES:
            raise ValueError(f"loss is {self.loss!r}; it must be one of {', '.join(LOSSES)}")
        if self.penalty not in PENALTIES:
            raise ValueError(f"penalty is {self.penalty!r}; it must be one of {', '.join(PENALTIES)}")
        # csr_matrix and not csr_array: older peers know only the former
        self.X = sp.csr_matrix(self.X, dtype=float) if sp.issparse(self.X) else np.ascontiguousarray(self.X, float)
        self.y = np.asarray(self.y, dtype=float)
        self.n, self.p = self.X.shape
        self.l1 = np.ones(self.p) if self.l1 is None else np.asarray(self.l1, dtype=float)
        self.bounds = np.zeros(1, np.int64) if self.bounds is None else np.asarray(self.bounds, dtype=np.int64)
        self.group = np.zeros(0) if self.group is None else np.asarray(self.group, dtype=float)

    @property
    def sparse(self) -> bool:
        return sp.issparse(self.X)

    @property
    def grouped(self) -> bool:
        return self.group.size > 0

    def groups(self) -> list[np.ndarray]:
        """The features of every group."""
        return self._groups

    @functools.cached_property
    def _groups(self) -> list[np.ndarray]:
        # made once: like layouts of the data, lists for somebody's taste are free
        return [np.arange(a, b) for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    # -- the judge ----------------------------------------------------------------------------------------------------

    def losses(self, scores):
        y = self.y
        if self.loss == "squared":
            return 0.5 * (scores - y) ** 2
        if self.loss == "huber":
            size = np.abs(scores - y)
            return np.where(size <= HUBER, 0.5 * size**2, HUBER * (size - 0.5 * HUBER))
        if self.loss == "poisson":
            with np.errstate(over="ignore"):
                return np.exp(scores) - y * scores
        margin = y * scores
        if self.loss == "logistic":
            return np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))
        bent = np.clip(1.0 - margin, 0.0, 1.0)
        return bent * (1.0 - margin - 0.5 * bent)

    def slopes(self, scores):
        y = self.y
        if self.loss == "squared":
            return scores - y
        if self.loss == "huber":
            return np.clip(scores - y, -HUBER, HUBER)
        if self.loss == "poisson":
            return np.exp(scores) - y
        margin = y * scores
        if self.loss == "logistic":
            return -y / (1.0 + np.exp(np.minimum(margin, 700.0)))
        return y * np.clip(margin - 1.0, -1.0, 0.0)

    def penalty_value(self, w) -> float:
        """Without alpha; infinite outside of the bounds."""
        if self.nonnegative and np.any(w < 0):
            return np.inf
        value = float(self.l1 @ np.abs(w)) + 0.5 * self.ridge * float(w @ w)
        if self.grouped:
            value += float(self.group @ np.sqrt(np.add.reduceat(w * w, self.bounds[:-1])))
        return value

    def value(self, w, b=0.0, alpha=None) -> float:
        """F in float64; infinite where the answer is not one."""
        w = np.asarray(w, dtype=np.float64).ravel()
        if not (np.all(np.isfinite(w)) and np.isfinite(b)) or (b and not self.intercept):
            return np.inf
        alpha = self.alpha if alpha is None else alpha
        kept = np.flatnonzero(w)
        scores = self.X[:, kept] @ w[kept] if kept.size < self.p // 4 else self.X @ w
        return float(self.losses(scores + b).mean()) + alpha * self.penalty_value(w)

    # -- alphas -------------------------------------------------------------------------------------------------------

    def null_intercept(self) -> float:
        """The best b with w = 0, by bisection on the slope."""
        if not self.intercept:
            return 0.0
        reach = np.abs(self.y).max() + 40.0
        low, high = -reach, reach
        for _ in range(200):
            b = 0.5 * (low + high)
            low, high = (low, b) if self.slopes(np.full(self.n, b)).sum() > 0 else (b, high)
        return 0.5 * (low + high)

    def alpha_max(self) -> float:
        """The least alpha at which w = 0 is optimal."""
        c = -(self.X.T @ self.slopes(np.full(self.n, self.null_intercept()))) / self.n
        if self.nonnegative:
            c = np.maximum(c, 0.0)
        c = np.abs(c)
        if not self.grouped:
            return float(np.max(c / self.l1))
        low, high = 0.0, float(np.max(np.sqrt(np.add.reduceat(c * c, self.bounds[:-1])) / self.group))
        if not np.any(self.l1):
            return high
        for _ in range(60):  # the l1 norm lowers the threshold of a group: |(c_g - alpha l1)_+| = alpha group_g
            alpha = 0.5 * (low + high)
            rest = np.maximum(c - alpha * self.l1, 0.0)
            inside = np.all(np.sqrt(np.add.reduceat(rest * rest, self.bounds[:-1])) <= alpha * self.group)
            low, high = (low, alpha) if inside else (alpha, high)
        return high

    def alphas(self, count=50) -> np.ndarray:
        """Those of a whole path: down to a hundredth if p > n, else to a thousandth."""
        return self.alpha_max() * np.logspace(0, -2 if self.p > self.n else -3, count)

    # -- smaller, and on disk -----------------------------------------------------------------------------------------

    def rows(self, some) -> Separable:
        return dataclasses.replace(self, X=self.X[some], y=self.y[some])

    def tiny(self, rows=40) -> Separable:
        """A few rows, the largest and the smallest targets among them: a warm-up that compiles."""
        order = np.argsort(self.y, kind="stable")
        return self.rows(np.unique(np.concatenate([order[: rows // 2], order[-(rows // 2) :]])))

    def save(self, path):
        arrays = {key: getattr(self, key) for key in ("y", "l1", "bounds", "group")}
        arrays |= {"facts": np.array([self.loss, self.penalty, self.name])}
        arrays |= {"numbers": np.array([self.alpha, self.ridge, self.intercept, self.nonnegative], dtype=float)}
        if self.sparse:
            arrays |= {"data": self.X.data, "indices": self.X.indices, "indptr": self.X.indptr, "shape": self.X.shape}
        else:
            arrays["X"] = self.X
        np.savez(path, **arrays)

    @classmethod
    def load(cls, path) -> Separable:
        with np.load(path, allow_pickle=False) as file:
            a = {key: file[key] for key in file.files}
        X = a.get("X")
        if X is None:
            X = sp.csr_matrix((a["data"], a["indices"], a["indptr"]), shape=tuple(int(k) for k in a["shape"]))
        loss, penalty, name = (str(text) for text in a["facts"])
        alpha, ridge, intercept, nonnegative = (float(number) for number in a["numbers"])
        return cls(X, a["y"], loss, penalty, alpha, a["l1"], a["bounds"], a["group"], ridge, bool(intercept),
                   bool(nonnegative), name)  # fmt: skip


def with_penalty(X, y, loss, penalty, *, size=5, weights=None, bounds=None, intercept=False, name="") -> Separable:
    """A problem with the penalty of that name, alpha still 1.

    `size` is that of the groups, unless their `bounds` are given; `weights` are those of a weighted l1 norm.
    """
    p = X.shape[1]
    options = {"intercept": intercept, "name": name, "l1": np.ones(p)}
    if penalty == "weighted l1":
        options["l1"] = weights
    elif penalty == "elastic net":
        options |= {"l1": np.full(p, 0.5), "ridge": 0.5}
    elif penalty in ("groups", "sparse groups"):
        bounds = np.append(np.arange(0, p, size), p) if bounds is None else np.asarray(bounds)
        share = 0.0 if penalty == "groups" else 0.5
        options |= {"l1": np.full(p, share), "bounds": bounds, "group": (1 - share) * np.sqrt(np.diff(bounds))}
    options["nonnegative"] = penalty == "nonnegative"
    return Separable(X, y, loss, penalty, **options)
