"""Random problems of widely varying scale, shape and kind: one for every seed.

Rows and columns, the units of the data (1e-3 ... 1e3), the kind of data, loss, penalty, alpha (0.0005 ... 0.5 of
alpha_max), intercept and weights are all drawn; nothing is adjusted to what the solver finds easy.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

import fenchel as fl

DATA = ("plain", "correlated", "sparse", "heavy-tailed", "units")
PENALTIES = ("l1", "elastic net", "overlapping groups", "fused", "graph", "total variation", "trend", "sparse groups",
             "group maximum")  # fmt: skip
LOSSES = {
    "logistic": 0.2, "smoothed-hinge": 0.18, "squared": 0.18, "squared-hinge": 0.1, "huber": 0.1, "hinge": 0.08,
    "quantile": 0.06, "epsilon-insensitive": 0.05, "poisson": 0.05,
}  # fmt: skip


@dataclasses.dataclass
class RandomProblem:
    """A problem and what was drawn for it; `share` is alpha as a share of alpha_max."""

    seed: int
    data: str
    loss: str
    penalty: str
    share: float
    problem: fl.Problem

    def __str__(self):
        what = f"{self.problem.n} x {self.problem.p} {self.data}, {self.loss}, {self.penalty}"
        return f"seed {self.seed}: {what}, alpha {self.share:.1e} of the largest"


def make(seed: int) -> RandomProblem:
    """The problem of a seed."""
    rng = np.random.default_rng(seed)
    n, p = _shape(rng)
    X = rng.standard_normal((n, p))
    data = str(rng.choice(DATA))
    X = _coloured(X, data, rng) * 10.0 ** rng.uniform(-3, 3)
    w = np.zeros(p)
    k = max(2, p // 10)
    w[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
    score = X @ w
    score = score / max(score.std(), 1e-12)
    loss = str(rng.choice(list(LOSSES), p=list(LOSSES.values())))
    y = _targets(loss, score, rng)
    kind = str(rng.choice(PENALTIES))
    if kind == "total variation":
        p = int(np.sqrt(p)) ** 2
        X = X[:, :p]
    penalty = _penalty(kind, p, rng)
    share = 10 ** rng.uniform(np.log10(0.0005), np.log10(0.5))
    fit_intercept = bool(rng.random() < 0.5)
    weight = rng.exponential(size=n) if rng.random() < 0.3 else None
    X = sp.csr_array(X) if data == "sparse" else np.ascontiguousarray(X)
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=fit_intercept, sample_weight=weight)
    return RandomProblem(seed, data, loss, kind, share, problem.with_alpha(share * problem.alpha_max()))


def _shape(rng):
    """Many rows, many columns, or as many of the one as of the other."""
    shape = rng.choice(["tall", "wide", "square"])
    sizes = {
        "tall": (int(rng.integers(300, 2000)), int(rng.integers(5, 60))),
        "wide": (int(rng.integers(20, 80)), int(rng.integers(150, 600))),
        "square": (int(rng.integers(80, 250)), int(rng.integers(60, 250))),
    }
    return sizes[str(shape)]


def _coloured(X, data, rng):
    n, p = X.shape
    if data == "correlated":
        return 0.1 * X + np.cumsum(rng.standard_normal((n, p)), axis=1) / np.sqrt(p) + rng.standard_normal((n, 1))
    if data == "sparse":
        return X * (rng.random((n, p)) < max(3 / p, 0.02))
    if data == "heavy-tailed":
        return X * np.exp(1.5 * rng.standard_normal((n, 1))) * (1 + rng.standard_t(2, size=(n, p)) ** 2) ** 0.25
    if data == "units":
        return X * 10.0 ** rng.uniform(-2, 2, p)
    return X


def _targets(loss, score, rng):
    n = score.size
    if loss in ("logistic", "smoothed-hinge", "squared-hinge", "hinge"):
        return np.where(score + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(score, -3, 3))).astype(float)
    return score + 0.3 * rng.standard_normal(n)


def _penalty(kind, p, rng):
    count = max(2, p // 8)
    if kind == "l1":
        return fl.L1()
    if kind == "elastic net":
        return fl.L1() + 0.5 * fl.Ridge()
    if kind == "overlapping groups":
        ends = [(j * p // count - 2, (j + 1) * p // count + 2) for j in range(count)]
        return fl.GroupL2([np.unique(np.clip(np.arange(*end), 0, p - 1)) for end in ends])
    if kind == "fused":
        return fl.L1() + fl.L1() @ fl.Difference(p)
    if kind == "graph":
        edges = np.sort(rng.integers(0, p, (2 * p, 2)), axis=1)
        edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
        return fl.L1() + fl.L1() @ fl.Incidence(edges, p)
    if kind == "total variation":
        grid = fl.Gradient((int(np.sqrt(p)), int(np.sqrt(p))))
        return fl.GroupL2(grid.cells) @ grid + 0.2 * fl.L1()
    if kind == "trend":
        return fl.L1() @ fl.Difference(p, order=2) + 0.1 * fl.L1()
    groups = np.array_split(np.arange(p), count)
    return fl.L1() + fl.GroupL2(groups) if kind == "sparse groups" else fl.GroupLinf(groups)
