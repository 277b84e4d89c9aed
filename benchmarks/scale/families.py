"""Passes over rows in a pool, for random problems: every smooth loss with penalties of every kind.

    python benchmarks/scale/families.py 0 40                # seeds, the small problems of a first look
    python benchmarks/scale/families.py 0 40 --rows 20000 --features 120

Each problem is solved with its rows in memory, with rows in a pool that all fit, and with rows that have to be read for
every round, of which the solver holds fifty for each feature. Rows are plain, heavy-tailed with columns of other
scales, correlated, or sparse.
"""

from __future__ import annotations

import argparse
import json
import warnings

import numpy as np
import scipy.sparse as sp

import fenchel as fl
from fenchel.data.partitions import partitioned
from fenchel.data.pools import Inline
from fenchel.losses.registry import LOSSES

SMOOTH = [name for name, kind in LOSSES.items() if not kind().kinked]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seeds", type=int, nargs=2)
    parser.add_argument("--rows", type=int, help="of every problem; random by default")
    parser.add_argument("--features", type=int)
    parser.add_argument("--all", action="store_true", help="every loss with every penalty, and not one pair for a seed")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for seed in range(*given.seeds):
        pairs = [(a, b) for a in range(len(SMOOTH)) for b in range(8)] if given.all else [None]
        for pair in pairs:
            one = run(seed, given.rows, given.features, pair)
            if one is not None:
                found.append(one)
                print(json.dumps(one), flush=True)
    for key in ("held", "read"):
        passes = np.array([one[key] for one in found])
        ratio = passes / np.array([one["memory"] for one in found])
        print(json.dumps({
            "what": key, "problems": len(found), "unconverged": sum(not one[f"{key} converged"] for one in found),
            "passes, median": float(np.median(passes)), "90 %": float(np.quantile(passes, 0.9)),
            "most": int(passes.max()),
            "passes over those in memory, median": round(float(np.median(ratio)), 2),
            "90 % of them": round(float(np.quantile(ratio, 0.9)), 2), "largest": round(float(ratio.max()), 2),
        }))  # fmt: skip


def run(seed: int, rows: int | None, features: int | None, pair: tuple[int, int] | None) -> dict[str, object] | None:
    rng = np.random.default_rng(seed)
    n = rows or int(np.exp(rng.uniform(np.log(2000), np.log(30_000))))
    p = features or int(np.exp(rng.uniform(np.log(10), np.log(200))))
    kind = int(rng.integers(4))
    X = data(rng, kind, n, p)
    w = np.where(rng.random(p) < 0.3, rng.standard_normal(p), 0.0)
    if rng.random() < 0.5:
        w = np.repeat(rng.standard_normal(p // 5 + 1) * (rng.random(p // 5 + 1) < 0.5), 5)[:p]
    score = (X @ w) / (np.std(X @ w) + 1e-9) * rng.choice([0.5, 1.0, 2.0])
    loss, which = int(rng.integers(len(SMOOTH))), int(rng.integers(8))
    loss, which = (loss, which) if pair is None else pair
    name, penalty = penalties(p)[which]
    y = targets(SMOOTH[loss], score, rng)
    settings = {"loss": SMOOTH[loss], "penalty": penalty, "fit_intercept": bool(rng.random() < 0.6)}
    memory = fl.Problem(X, y, **settings)
    settings["alpha"] = float(memory.alpha_max() * 10 ** rng.uniform(-2.5, -0.5))
    if not (np.isfinite(settings["alpha"]) and settings["alpha"] > 0):
        return None
    known = fl.solve(memory.with_alpha(settings["alpha"]), time_limit=60)
    out = {"seed": seed, "loss": SMOOTH[loss], "penalty": name, "rows": kind, "n": n, "p": p, "memory": known.epochs}
    parts = partitioned(X, y, rows=max(n // 8, 1))
    for key in ("held", "read"):
        pool = Inline(parts)
        entries = max(pool.facts.stored / n, 1.0) * (pool.facts.dtype.itemsize + (4 if pool.facts.sparse else 0))
        if key == "read":
            pool.memory = 4 * entries * min(n / 3, 50 * p)
        result = fl.solve(fl.Problem(pool, **settings), time_limit=60)
        out |= {key: result.epochs + 1, f"{key} converged": result.status is fl.Status.CONVERGED,
                f"{key} above": float(f"{(result.primal - known.primal) / abs(known.primal):.1e}")}  # fmt: skip
    return out


def data(rng: np.random.Generator, kind: int, n: int, p: int) -> object:
    X = rng.standard_normal((n, p))
    if kind == 1:
        X *= np.exp(rng.uniform(-2, 2, p)) * np.maximum(1.0, np.abs(rng.standard_t(2, size=(n, 1))))
    elif kind == 2:
        X[:, 1:] = 0.9 * X[:, :-1] + 0.44 * X[:, 1:]
    elif kind == 3:
        return sp.csr_array((rng.random((n, p)) < 1 / np.arange(1, p + 1) ** 0.8).astype(float))
    return X


def targets(loss: str, score: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    mean, n = np.exp(np.clip(score, -4, 4)), len(score)
    if loss in ("logistic", "squared-hinge", "smoothed-hinge"):
        return np.where(rng.random(n) < 1 / (1 + np.exp(-2 * score)), 1.0, -1.0)
    if loss == "squared":
        return score + rng.standard_normal(n)
    if loss == "huber":
        return score + rng.standard_t(2, n)
    if loss in ("poisson", "negative-binomial"):
        return rng.poisson(mean).astype(float)
    if loss == "binomial":
        return rng.binomial(5, 1 / (1 + np.exp(-score))) / 5
    amount = rng.gamma(2, mean / 2)
    return amount + 1e-3 if loss == "gamma" else amount * (rng.random(n) < 0.7)


def penalties(p: int) -> list[tuple[str, fl.Penalty]]:
    graph = fl.Incidence([(j, (7 * j + 3) % p) for j in range(p) if j != (7 * j + 3) % p], p)
    return [
        ("l1", fl.L1()), ("fused", fl.FusedLasso()), ("trend + ridge", fl.TrendFilter() + 0.1 * fl.Ridge()),
        ("overlapping groups", fl.GroupLasso([list(range(k, min(k + 6, p))) for k in range(0, p, 4)])),
        ("trend", fl.TrendFilter()), ("l1, non-negative", fl.L1() + fl.NonNegative()),
        ("l1 + graph", fl.L1() + fl.L1() @ graph),
        ("sorted", fl.Slope(np.linspace(2, 1, p))),
    ]  # fmt: skip


if __name__ == "__main__":
    main()
