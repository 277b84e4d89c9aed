"""The cost model of docs/scale.md: its terms measured here, and what they say of sizes that nobody has run.

    python benchmarks/scale/model.py

Everything is processor time of one thread. The pass is a look at dense float32 rows in memory; the sum is what one
worker's answer takes to be added to another; the driver is a model's curvature, made of 50 rows a feature, and its
minimum with overlapping groups.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time

import numpy as np
from common import overlapping

import fenchel as fl
from fenchel.data.partitions import partitioned
from fenchel.data.pools import Gathering, Inline
from fenchel.engine.sampled import Fit, SampledModels
from fenchel.prices import PRICES

ROUNDS = 10  # of a run, for the predictions
LATENCY = 0.02  # seconds of Dask a round and level of the tree: an assumption, and no measurement


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, nargs="+", default=[256, 1024])
    known: dict[int, dict[str, float]] = {}
    for p in parser.parse_args().features:
        known[p] = found = measure(p)
        print(json.dumps({"p": p, **{key: float(f"{value:.3g}") for key, value in found.items()}}), flush=True)
    rate = float(np.median([found["bytes_per_second"] for found in known.values()]))
    print(f"{'entries':>8} {'p':>5} {'workers':>8} {'pass':>8} {'sum':>8} {'driver':>8} {'a run':>8}  seconds")
    for entries in (1e9, 1e10, 1e11, 1e12):
        for p in known:
            for workers in (1, 8, 100, 1000):
                found = known[p]
                levels = 1 + int(np.ceil(np.log(workers) / np.log(8))) if workers > 1 else 0
                read, add = 4 * entries / workers / rate, levels * (8 * found["seconds_to_add"] + LATENCY)
                run = ROUNDS * (read + add + found["driver_seconds"])
                terms = f"{read:8.2f} {add:8.3f} {found['driver_seconds']:8.2f} {run:8.0f}"
                print(f"{entries:8.0e} {p:5d} {workers:8d} {terms}")


def measure(p: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60 * p, p), dtype=np.float32)
    y = np.where(X[:, : p // 8].sum(axis=1) + rng.standard_normal(len(X)) > 0, 1.0, -1.0)
    settings = {"loss": "logistic", "penalty": fl.GroupLasso(overlapping(p)), "alpha": 0.002}
    problem = fl.Problem(Inline(partitioned(X, y, rows=10_000)), **settings)
    fl.solve(problem, tol=1e-2)
    passes = []
    for k in range(5):
        w = np.append(np.full(p, 1e-3 * (k + 1)), 0.0)
        began = time.process_time()
        problem.look(w)
        passes.append(time.process_time() - began)
    job = problem.look_job(w)
    one, other = Gathering([job]), Gathering([job])
    for part in problem.pool.parts[:1]:
        one.add(part)
        other.add(part)
    one.jobs = other.jobs = ()
    began = time.process_time()
    for _ in range(20):
        pickle.loads(pickle.dumps(one)).merge(other)
    added = (time.process_time() - began) / 20
    driver = _driver(fl.Problem(Inline(partitioned(X, y, rows=10_000)), **settings))
    return {"bytes_per_second": X.nbytes / float(np.median(passes)), "bytes_of_a_sum": len(pickle.dumps(one)),
            "seconds_to_add": added, "driver_seconds": driver}  # fmt: skip


def _driver(problem: fl.Problem) -> float:
    """Processor time of models, for each of them."""
    spent: list[float] = []
    model, solve = Fit._model, Fit._solve

    def timed(call: object) -> object:
        def run(*given: object) -> object:
            began = time.process_time()
            try:
                return call(*given)
            finally:
                spent.append(time.process_time() - began)

        return run

    Fit._model, Fit._solve = timed(model), timed(solve)
    try:
        rounds = SampledModels(PRICES)
        assert rounds.unfit(problem) is None
        fl.solve(problem, tol=1e-6)
    finally:
        Fit._model, Fit._solve = model, solve
    return sum(spent) / max(len(spent) / 2, 1)


if __name__ == "__main__":
    main()
