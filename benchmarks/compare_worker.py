"""A process that solves problems with the fenchel of its PYTHONPATH when told to; `compare.py` starts two of them.

    python compare_worker.py

Reads one JSON object a line: {"kind", "name", "file" or "seed", "tol", "limit"}; answers in one line: the seconds of
the processor, the passes over the data and the status. It uses only public names that old and new commits share.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import sys
import time
import warnings

import numpy as np
from fenchel_model import problem as problem_of
from objective import Objective
from random_problems import make

import fenchel as fl

_LOADED: dict[str, Objective] = {}  # the last objective that was read


def benchmark_problem(order):
    """One of the benchmark's own: the penalty and the Problem are on the clock, as a user would build them."""
    if order["file"] not in _LOADED:
        _LOADED.clear()
        _LOADED[order["file"]] = Objective.load(order["file"])
    objective = _LOADED[order["file"]]
    return lambda: solve(problem_of(objective), order)


def random_problem(order):
    """One of random_problems.py. It is drawn anew every time, so that no Problem remembers an earlier run."""
    drawn = make(order["seed"]).problem
    return lambda: solve(drawn, order)


def whole_path(order):
    """A path of 30 alphas on small random data of the shape and loss that the order names."""
    rng = np.random.default_rng(order["seed"])
    n, p = order["shape"]
    X = rng.standard_normal((n, p))
    score = X[:, :5].sum(axis=1) + rng.standard_normal(n)
    y = score if order["loss"] == "squared" else np.where(score > 0, 1.0, -1.0)
    penalty = fl.GroupLasso(np.arange(p) // 5) if order["groups"] else fl.L1()

    def run():
        problem = fl.Problem(X, y, loss=order["loss"], penalty=penalty, fit_intercept=True)
        path = fl.path(problem, n_alphas=30, eps=0.01, tol=order["tol"])
        status = "converged" if path.converged.all() else "not all points converged"
        return int(np.sum(path.epochs)), status, float(path.relative_gaps.max())

    return run


def solve(problem, order):
    result = fl.solve(problem, tol=order["tol"], max_epochs=100_000, time_limit=order["limit"])
    return int(result.epochs), str(result.status), float(result.relative_gap)


KINDS = {"benchmark": benchmark_problem, "random": random_problem, "path": whole_path}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what anybody prints goes to the standard error
    warnings.filterwarnings("ignore")
    for line in sys.stdin:
        order = json.loads(line)
        try:
            run = KINDS[order["kind"]](order)
            start = time.process_time()
            passes, status, gap = run()
            answer = {"seconds": time.process_time() - start, "passes": passes, "status": status, "gap": gap}
        except Exception as error:
            answer = {"seconds": float("nan"), "passes": 0, "status": f"{type(error).__name__}: {error}", "gap": 1.0}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
