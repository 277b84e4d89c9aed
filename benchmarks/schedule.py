"""The schedule on the clock: automatic runs beside each of their members alone, on random problems.

    python benchmarks/schedule.py --seeds 1000 1040        one line a problem, then the distribution of auto / best

The members are the epochs alone (`method="sdca-admm"`) and the engine alone, which is never told to wait for epochs; an
engine that gives up is no member that gets there. By the price model an automatic run costs at most 5/2 of the better
one (see solver/turns.py). Here the ratio is measured in processor seconds of one thread, medians, and beside it by the
price model. Problems that no engine fits, or that the engine alone or epochs alone do not solve within the limit, count
with the other one.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import contextlib
import math
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

import structured
from random_problems import make

import fenchel as fl
from fenchel.engine.registry import fitting
from fenchel.solver.turns import Turns

LIMIT = 10.0  # seconds of one run
BOUND = 2.5  # of the better member: what the price model promises


@contextlib.contextmanager
def engine_alone():
    """While it lasts, epochs never have a turn before the engine has given up."""
    kept, Turns.engine_goes = Turns.engine_goes, lambda self, progress: True
    try:
        yield
    finally:
        Turns.engine_goes = kept


def run(problem: fl.Problem, member: str, tol: float) -> tuple[float, float]:
    """Seconds and the price model's nanoseconds until the goal; infinite where the member does not get there."""
    method = "sdca-admm" if member == "epochs" else "auto"
    with engine_alone() if member == "engine" else contextlib.nullcontext():
        began = time.process_time()
        result = fl.solve(problem, tol=tol, method=method, time_limit=LIMIT, max_epochs=100_000)
        seconds = time.process_time() - began
    record = result.history.records[-1]
    alone = member != "engine" or (result.history.records and not _had_epochs(result))
    reached = result.status is fl.Status.CONVERGED and alone
    return (seconds, record.nanoseconds) if reached else (math.inf, math.inf)


def _had_epochs(result: fl.Result) -> bool:
    return any(record.by == "sdca-admm" for record in result.history.records)


def measure(draw, repetitions: int, tol: float) -> dict[str, tuple[float, float]]:
    """Of every member, medians; `draw` makes the problem anew, so that nothing is remembered."""
    found: dict[str, list[tuple[float, float]]] = {"auto": [], "epochs": [], "engine": []}
    if fitting(draw()) is None:
        del found["engine"]
    for _ in range(repetitions + 1):
        for member, times in found.items():
            times.append(run(draw(), member, tol))
    return {member: tuple(np.median(times[1:], axis=0)) for member, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=(1000, 1020), help="first, and one beyond the last")
    parser.add_argument("--repetitions", type=int, default=2)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--structured", action="store_true", help="the problems of structured.py, not the random ones")
    options = parser.parse_args()
    clock, model = [], []
    for seed in range(*options.seeds):
        draw = structured.draw(seed).make if options.structured else lambda seed=seed: make(seed).problem
        found = measure(draw, options.repetitions, options.tol)
        best = [min(found[member][k] for member in found if member != "auto") for k in (0, 1)]
        ratio = [found["auto"][k] / best[k] if 0 < best[k] < math.inf else math.nan for k in (0, 1)]
        cells = "  ".join(f"{member} {1e3 * seconds:9.2f}" for member, (seconds, _) in found.items())
        print(f"{seed:5d}  {cells} ms  auto / best {ratio[0]:5.2f}, by the model {ratio[1]:5.2f}", flush=True)
        if "engine" in found:
            clock.append(ratio[0])
            model.append(ratio[1])
    for name, ratios in (("the clock", clock), ("the price model", model)):
        known = np.sort([one for one in ratios if math.isfinite(one)])
        if not known.size:
            continue
        low, middle, high = np.quantile(known, [0.25, 0.5, 0.75])
        beyond = int(np.count_nonzero(known > BOUND))
        print(
            f"auto / best by {name}, {known.size} problems with an engine: quartiles {low:.2f} {middle:.2f} "
            f"{high:.2f}, most {known[-1]:.2f}, above {BOUND:g}: {beyond}"
        )


if __name__ == "__main__":
    main()
