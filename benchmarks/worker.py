"""A process that holds one solver and one problem, and runs when told to.

    python worker.py solvers/NAME.py PROBLEM.npz OPTIMUM CLOCK

Answers in lines of JSON: ready (or error), and after each line "run SECONDS" on its input points, certificates and
an end. Whatever the solver prints goes to the standard error.
"""

from __future__ import annotations

import os

for variable in (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS",
):  # fmt: skip
    os.environ[variable] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import importlib.metadata
import importlib.util
import json
import platform
import sys
import time
import traceback
import warnings
from pathlib import Path

from objective import Objective
from solving import CLOCKS, Done, Recorder


def load_solver(path):
    spec = importlib.util.spec_from_file_location(f"solver_{Path(path).stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Solver()


def main(path, problem, optimum, clock):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def emit(event):
        answers.write(json.dumps(event) + "\n")
        answers.flush()

    started = time.perf_counter()
    try:
        solver, objective = load_solver(path), Objective.load(problem)
        solver.warm_up(objective)
        solver.set_objective(objective)
        versions = {"python": platform.python_version()}
        if solver.package:
            versions[solver.package] = importlib.metadata.version(solver.package)
    except Exception as error:
        traceback.print_exc()
        return emit({"event": "error", "reason": describe(error)})
    emit({"event": "ready", "seconds": time.perf_counter() - started, "versions": versions})
    for line in sys.stdin:
        word, _, seconds = line.partition(" ")
        if word == "run":
            once(solver, Recorder(objective, optimum, float(seconds), CLOCKS[clock], emit))


def once(solver, record):
    status = "done"
    try:
        if solver.sampling == "callback":
            record.start()
            solver.run(record)
        else:
            again_and_again(solver, record)
        if hasattr(solver, "certify"):
            certificates(solver, record)
    except Done:
        status = "done"
        if hasattr(solver, "certify"):
            certificates(solver, record)
    except Exception as error:
        traceback.print_exc()
        status = describe(error)
    record.emit({"event": "end", "status": status})


def again_and_again(solver, record):
    """Each stop is a run of its own from the start, timed alone."""
    for stop in solver.stops:
        record.start()
        w = solver.run(stop)
        seconds = record.seconds
        value = record.judge(w)
        extra = {"inside": solver.inside} if getattr(solver, "inside", None) is not None else {}
        record.emit({"event": "point", "seconds": seconds, "value": value, "stop": stop, **extra})
        if record.accurate(value) or seconds > record.limit:
            break


def certificates(solver, record):
    """Time to a proven relative gap: no recording, no judging inside."""
    for tolerance in (1e-3, 1e-6, 1e-9):
        record.start()
        w, gap = solver.certify(tolerance)
        seconds = record.seconds
        event = {"event": "certified", "tolerance": tolerance, "seconds": seconds, "gap": gap, "value": record.judge(w)}
        record.emit(event)
        if seconds > record.limit:
            break


def describe(error):
    text = f"{type(error).__name__}: {error}".strip().splitlines()
    return text[0][:300] if text else type(error).__name__


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
