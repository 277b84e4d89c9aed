"""Many more features than rows behind a map: fenchel (certified) against FISTA with the best prox (not certified).

    python benchmarks/wide.py --seeds 0 24                      one line a problem, then the distribution
    python benchmarks/wide.py --seeds 0 24 --save here.json     keep the numbers
    python benchmarks/wide.py --seeds 0 24 --against here.json  compare with numbers that were kept

A seed draws 40 to 2000 rows, 1000 to 20,000 columns (SNPs in blocks, as they are or centred; gene expression with
common factors; independent columns), loss, penalty (chains, overlapping pathways, graphs, trends, latent groups, sums)
and alpha (1/3 to 1/300 of the largest). FISTA, its judge and the clock are those of ``structured.py``.

Seeds below 1000 are for choosing; the others are for judging what was chosen.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import json
import math
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from environments import cache_folder
from rivals import Duel, main
from structured import Drawn, Fista

import fenchel as fl

GOALS = (1e-3, 1e-6)  # relative accuracy
EXACT = 1e-8  # relative gap of the answers that FISTA is judged by
ENTRIES = 4_000_000  # of the data, at the most
LIMIT = 12.0  # seconds of one run
LOSSES = ("logistic", "squared", "huber", "poisson")
PENALTIES = ("chain", "chain", "pathways", "pathways", "pathways + l1", "graph", "trend", "latent groups")
DATA = ("snps", "centred snps", "expression", "plain")


def draw(seed: int) -> Drawn:
    """The problem of a seed."""
    rng = np.random.default_rng([11, seed])
    p = round(10 ** rng.uniform(3.0, 4.3))
    n = int(min(10 ** rng.uniform(math.log10(40), math.log10(2000)), ENTRIES / p))
    kind, data, loss = str(rng.choice(PENALTIES)), str(rng.choice(DATA)), str(rng.choice(LOSSES))
    X = _columns(data, n, p, rng)
    segments = np.zeros(p)
    for _ in range(8):
        first = int(rng.integers(0, p - 30))
        segments[first : first + int(rng.integers(5, 30))] = rng.standard_normal()
    score = (X - X.mean(axis=0)) @ segments
    score /= max(score.std(), 1e-12)
    if loss == "logistic":
        y = np.where(score + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(score, -3, 3))).astype(float)
    else:
        y = score + 0.3 * rng.standard_normal(n) + rng.choice([0.0, 3.0])
    penalty, intercept = _penalty(kind, p, rng), bool(rng.random() < 0.5)
    share = 10 ** -rng.uniform(math.log10(3), math.log10(300))
    largest = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=intercept).alpha_max()
    what = f"{n} x {p} {data}, {loss}, {kind}, 1/{1 / share:.0f}{', intercept' if intercept else ''}"
    return Drawn(seed, X, y, loss, penalty, intercept, share * largest, what)


def _columns(data: str, n: int, p: int, rng) -> np.ndarray:
    if "snps" in data:
        # two strands, each a Gaussian walk with a threshold per place, that starts anew now and then
        X, rho = np.zeros((n, p)), rng.uniform(0.8, 0.98)
        cut, breaks = rng.uniform(-0.2, 1.5, p), rng.random(p) < 0.02
        for _ in range(2):
            strand = rng.standard_normal(n)
            for j in range(p):
                fresh = rng.standard_normal(n)
                strand = fresh if breaks[j] else rho * strand + math.sqrt(1 - rho * rho) * fresh
                X[:, j] += strand > cut[j]
        return X - X.mean(axis=0) if data == "centred snps" else X
    X = rng.standard_normal((n, p))
    if data == "expression":
        factors = int(rng.integers(3, 20))
        X += rng.standard_normal((n, factors)) @ rng.standard_normal((factors, p)) * rng.uniform(0.2, 0.7)
        X *= np.exp(0.3 * rng.standard_normal(p))
    return X


def _pathways(p: int, rng) -> list[np.ndarray]:
    """Random sets of 5 to 300 features, until every feature is in one."""
    order, groups, first = rng.permutation(p), [], 0
    while first < p:
        size = round(math.exp(rng.uniform(math.log(5), math.log(300))))
        own = order[first : first + max(size // 2, 1)]
        groups.append(np.unique(np.concatenate([own, rng.integers(0, p, size - own.size)])))
        first += own.size
    return groups


def _penalty(kind: str, p: int, rng):
    if kind == "chain":
        return fl.L1() @ fl.Difference(p) + float(rng.choice([0.1, 1.0])) * fl.L1()
    if kind == "graph":
        edges = np.sort(rng.integers(0, p, (int(rng.choice([1, 2])) * p, 2)), axis=1)
        edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
        return fl.L1() + fl.L1() @ fl.Incidence(edges, p)
    if kind == "trend":
        return fl.L1() @ fl.Difference(p, order=2) + float(rng.choice([0.1, 1.0])) * fl.L1()
    groups = _pathways(p, rng)
    if kind == "latent groups":
        return fl.LatentGroupLasso(groups)
    weights = np.sqrt([len(group) for group in groups])
    penalty = fl.GroupL2(groups, weights)
    return penalty + 0.5 * fl.L1() if kind == "pathways + l1" else penalty


def exact(drawn: Drawn) -> float:
    """The optimum, from the cache folder if it was found before."""
    kept = cache_folder() / "wide" / f"{drawn.seed}.json"
    if kept.exists():
        known = json.loads(kept.read_text())
        if known["text"] == drawn.text:
            return float(known["optimum"])
    result = fl.solve(drawn.make(), tol=EXACT, time_limit=60.0)
    if result.relative_gap > 1e-7:
        print(f"seed {drawn.seed}: the optimum is known to {result.relative_gap:.1e} only", file=sys.stderr)
        return result.primal - 0.9 * result.gap  # FISTA may stop early rather than late
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"text": drawn.text, "optimum": result.primal}))
    return result.primal


def duel(seed: int) -> Duel:
    drawn = draw(seed)
    return Duel(
        drawn.text, drawn.make, lambda goals: {"FISTA": Fista(drawn.make()).run(goals, LIMIT)}, lambda: exact(drawn)
    )


if __name__ == "__main__":
    main(__doc__, duel, GOALS, LIMIT, repetitions=1, warm=range(6))
