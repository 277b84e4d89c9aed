"""Does the solver, as a user calls it, ever fail? 200 random problems of widely varying scale.

    python benchmarks/robustness.py                  all of them
    python benchmarks/robustness.py --seeds 14 78    only these
    python benchmarks/robustness.py --tol 1e-9

The problems are those of `random_problems.py`. Each is solved with default settings to a proven relative gap of --tol,
within --epochs passes over the data and --seconds. The table counts by data, loss and penalty; every problem that did
not converge is listed. Times are of this machine, compiling left out.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import time

import numpy as np
from random_problems import make

import fenchel as fl


def solve_one(seed, arguments):
    """What was drawn, the result and its seconds (a first run compiles what it needs)."""
    drawn = make(seed)
    fl.solve(drawn.problem, tol=arguments.tol, max_epochs=1)
    start = time.perf_counter()
    result = fl.solve(drawn.problem, tol=arguments.tol, max_epochs=arguments.epochs, time_limit=arguments.seconds)
    return drawn, result, time.perf_counter() - start


def table(outcomes):
    """Lines of counts, passes and seconds by data, loss and penalty."""
    yield f"{'':24}{'problems':>10}{'failed':>8}{'passes: median':>16}{'most':>8}{'seconds: median':>17}{'most':>8}"
    for key in ("data", "loss", "penalty", None):
        kinds = sorted({getattr(drawn, key) for drawn, _, _ in outcomes}) if key else ["all"]
        for kind in kinds:
            some = [one for one in outcomes if key is None or getattr(one[0], key) == kind]
            passes, seconds = [result.epochs for _, result, _ in some], [spent for _, _, spent in some]
            failed = sum(result.status is not fl.Status.CONVERGED for _, result, _ in some)
            yield (
                f"{kind:24}{len(some):10d}{failed:8d}{np.median(passes):16.0f}{max(passes):8d}"
                f"{np.median(seconds):17.3f}{max(seconds):8.2f}"
            )
        yield ""


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=range(200))
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--epochs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args(argv)
    outcomes = [solve_one(seed, arguments) for seed in arguments.seeds]
    print("\n".join(table(outcomes)))
    failed = [(drawn, result) for drawn, result, _ in outcomes if result.status is not fl.Status.CONVERGED]
    for drawn, result in failed:
        print(f"{drawn}: {result.status}, relative gap {result.relative_gap:.1e} {result.reason}")
    print(f"{len(outcomes) - len(failed)} of {len(outcomes)} converged to a proven relative gap of {arguments.tol:g}")


if __name__ == "__main__":
    main()
