"""Random separable families: one problem for every seed.

**Seeds below 2000 are for choosing constants, those from 2000 to 4099 for checking what was chosen, and seeds from 4100
on for reporting and for nothing else.** (Those from 1000, 2000, 3000 and 4000 on were reported before. Somebody has
looked at them, so that they are no longer fresh.)

The ratio n/p (.01 to 100), the kind of data (independent, autoregressive columns, heavy tails, sparse, binary with
one-hot blocks), the loss, the penalty, alpha (.9 to 1e-3 of alpha_max) and the intercept are drawn independently of
each other. Nothing is adjusted to what a solver finds easy. The number of entries is such that a specialist takes
between a millisecond and a few seconds.

    python benchmarks/families.py 0 1 2       says what the seeds are
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import scipy.sparse as sp
from separable_problem import Separable, with_penalty

REPORT = 4100  # the first seed that is for reporting
DATA = {"independent": 0.2, "autoregressive": 0.3, "heavy-tailed": 0.15, "sparse": 0.2, "binary": 0.15}
LOSSES = {"squared": 0.4, "logistic": 0.4, "smoothed-hinge": 0.04, "huber": 0.08, "poisson": 0.08}
PENALTIES = {
    "l1": 0.35, "weighted l1": 0.1, "elastic net": 0.15, "groups": 0.2, "sparse groups": 0.1, "nonnegative": 0.1,
}  # fmt: skip
ENTRIES = (4.3, 6.7)  # log10 of n p, dense: 20,000 to five million
SPARSE = 10  # times as many entries, of which a share is stored


@dataclasses.dataclass
class Drawn:
    """A problem and what was drawn for it; `share` is alpha as a share of alpha_max."""

    seed: int
    data: str
    share: float
    problem: Separable

    def __str__(self):
        one = self.problem
        return (
            f"seed {self.seed}: {one.n} x {one.p} {self.data}, {one.loss}, {one.penalty}, alpha {self.share:.1e} of "
            f"the largest{', intercept' if one.intercept else ''}"
        )


def make(seed: int) -> Drawn:
    """The problem of a seed."""
    rng = np.random.default_rng([seed, 18])  # a stream of its own: random_problems.py has the plain seeds
    data, loss, penalty = (_pick(rng, among) for among in (DATA, LOSSES, PENALTIES))
    X = _data(rng, data)
    y = _targets(rng, loss, X)
    options = {"size": int(rng.integers(2, 11)), "weights": rng.uniform(0.5, 2.0, X.shape[1])}
    problem = with_penalty(X, y, loss, penalty, intercept=bool(rng.random() < 0.5), name=f"seed-{seed}", **options)
    share = float(np.exp(rng.uniform(np.log(1e-3), np.log(0.9))))
    return Drawn(seed, data, share, dataclasses.replace(problem, alpha=share * problem.alpha_max()))


def _pick(rng, among):
    return str(rng.choice(list(among), p=list(among.values())))


def _shape(rng, entries):
    """Rows and columns with n/p between .01 and 100."""
    ratio, total = 10.0 ** rng.uniform(-2, 2), 10.0**entries
    return max(20, round(np.sqrt(total * ratio))), max(10, round(np.sqrt(total / ratio)))


def _data(rng, kind):
    entries = rng.uniform(*ENTRIES)
    if kind == "sparse":
        n, p = _shape(rng, entries + np.log10(SPARSE))
        return sp.csr_matrix(sp.random(n, p, 10.0 ** rng.uniform(-2.3, -1), "csr", random_state=rng,
                                       data_rvs=lambda k: np.abs(rng.standard_normal(k)) + 0.1))  # fmt: skip
    n, p = _shape(rng, entries)
    if kind == "binary":
        return _one_hot(rng, n, p)
    X = rng.standard_normal((n, p))
    if kind == "autoregressive":
        rho = rng.uniform(0.3, 0.95)
        for j in range(1, p):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    elif kind == "heavy-tailed":
        # the square root of the size tames the tails of Student's t with two degrees, which has no variance
        tails = rng.standard_t(2, size=(n, p))
        X = np.sign(tails) * np.sqrt(np.abs(tails)) * 10.0 ** rng.uniform(-1, 1, p)
    return X


def _one_hot(rng, n, p):
    """Categories with two to ten values of uneven frequency, a column for each value, stored sparsely."""
    sizes = []
    while sum(sizes) < p:
        sizes.append(int(rng.integers(2, 11)))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    columns = [
        start + rng.choice(size, n, p=rng.dirichlet(np.ones(size))) for start, size in zip(starts, sizes, strict=True)
    ]
    indices = np.column_stack(columns).ravel()
    shape = (n, int(sum(sizes)))
    return sp.csr_matrix((np.ones(indices.size), indices, np.arange(0, indices.size + 1, len(sizes))), shape=shape)


def _targets(rng, loss, X):
    n, p = X.shape
    w, k = np.zeros(p), max(2, min(p // 10, n // 5, 50))
    w[rng.choice(p, k, replace=False)] = rng.standard_normal(k)
    score = np.asarray(X @ w).ravel()
    score = (score - score.mean()) / max(score.std(), 1e-12)
    noise = rng.uniform(0.1, 1.0)
    if loss in ("logistic", "smoothed-hinge"):
        return np.where(score + noise * rng.standard_normal(n) > 0, 1.0, -1.0)
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(score, -3, 2))).astype(float)
    if loss == "huber":
        return score + noise * rng.standard_t(2, size=n)
    return score + noise * rng.standard_normal(n)


if __name__ == "__main__":
    for seed in sys.argv[1:]:
        print(make(int(seed)))
