"""Where the time of a certified 1e-6 goes, on the problems that have a target.

    python benchmarks/breakdown.py                   all of them, a minute
    python benchmarks/breakdown.py --problem digits-tv

Processor seconds, medians of 9 runs, and those of a pair of products (X @ v and X.T @ u, by numpy or scipy), the least
that a first-order method pays for a step. `floor` is what any proven answer costs here: building the problem, preparing
the method and one certificate, no step at all. `steps` is how many steps an accelerated proximal gradient method with
the best prox needs from zero until its objective is there, without proof. `report.py` puts the table on the
page, beside the time that a target leaves, where it lies with the results of the run.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import contextlib
import json
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from structured import Fista

import fenchel as fl
from fenchel.methods import SDCAADMM
from fenchel.solver.schedule import Schedule

FILE = HERE / "results" / "breakdown.json"
REPETITIONS, TOL = 9, 1e-6
LIMIT = 60.0  # seconds for counting the steps of FISTA
PARTS = {
    "set-up": (SDCAADMM, "start"),
    "epochs": (SDCAADMM, "epoch"),
    "Newton": (Schedule, "propose"),
    "certificates": (fl.Problem, "certificate"),
    "objectives": (fl.Problem, "primal_at"),
}


@contextlib.contextmanager
def stopwatches(parts):
    """Adds up the seconds spent in these methods, {name: (class, method)}; inner ones count for the outermost."""
    seconds, busy, before = dict.fromkeys(parts, 0.0), [], {}

    def timed(name, function):
        def wrapper(*args, **options):
            if busy:
                return function(*args, **options)
            busy.append(name)
            start = time.process_time()
            try:
                return function(*args, **options)
            finally:
                seconds[name] += time.process_time() - start
                busy.clear()

        return wrapper

    for name, (kind, method) in parts.items():
        before[name] = getattr(kind, method)
        setattr(kind, method, timed(name, before[name]))
    try:
        yield seconds
    finally:
        for name, (kind, method) in parts.items():
            setattr(kind, method, before[name])


def clocked(function):
    """Processor seconds of a call, and what it returned."""
    start = time.process_time()
    made = function()
    return time.process_time() - start, made


def pair_seconds(problem):
    """X @ v and X.T @ u."""
    X = problem.data.arrays[0]
    if problem.data.sparse:
        X = sp.csr_array(problem.data.arrays, shape=(problem.n, problem.p))
    v, u = np.ones(problem.p), np.ones(problem.n)
    enough = max(9, int(2e7 / problem.data.stored))
    return float(np.median([clocked(lambda: (X @ v, X.T @ u))[0] for _ in range(enough)]))


def accelerated_steps(problem, answer):
    """Steps of FISTA from zero to a relative distance of TOL from the optimum, which it is told."""
    method = Fista(problem)
    method.run([answer.dual + TOL * abs(answer.dual)], LIMIT)
    return method.taken


def measure(build):
    """The parts of a solve, in seconds, where `build` makes the problem."""
    problem = build()
    answer = fl.solve(problem, tol=TOL)  # compiles
    runs, floors = [], []
    for _ in range(REPETITIONS):
        built, problem = clocked(build)
        with stopwatches(PARTS) as parts:
            total, answer = clocked(lambda problem=problem: fl.solve(problem, tol=TOL))
        runs.append({"problem": built} | parts | {"all else": total - sum(parts.values()), "total": built + total})
        method, state = SDCAADMM(), argparse.Namespace(**answer.state)
        started, _ = clocked(lambda method=method, problem=problem: method.start(problem, np.random.default_rng(0)))
        proven, _ = clocked(lambda problem=problem, state=state: problem.certificate(state))
        floors.append(built + started + proven)
    parts = {part: float(np.median([run[part] for run in runs])) for part in runs[0]}
    steps = accelerated_steps(problem, fl.solve(problem, tol=1e-3 * TOL))
    floor = float(np.median(floors))
    return {"passes": answer.epochs, "pair": pair_seconds(problem), "steps": steps, "floor": floor, "parts": parts}


def line(name, found):
    pair, parts = found["pair"], found["parts"]
    text = (
        f"{name}: {1e3 * parts['total']:.1f} ms, {found['passes']} passes, a pair of products {1e6 * pair:.0f} us, "
        f"{found['steps']} accelerated steps\n   "
    )
    return text + ", ".join(f"{part} {1e3 * value:.1f} ms" for part, value in parts.items() if part != "total")


def main(arguments=None):
    from fenchel_model import problem as model
    from report import TARGETS
    from run import find_problems

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem", action="append", choices=list(TARGETS), help="only this one (may be repeated)")
    parser.add_argument("--results", type=Path, default=FILE.parent, metavar="FOLDER", help="of the run's results")
    options = parser.parse_args(arguments)
    problems, found = find_problems(), {}
    for name in options.problem or TARGETS:
        dataset = problems[name].dataset
        try:
            objective = dataset.get_data(**dataset.problems[name])
        except FileNotFoundError as error:
            print(f"{name}: left out, {error}", flush=True)
            continue
        found[name] = measure(lambda objective=objective: model(objective))
        print(line(name, found[name]), flush=True)
    options.results.mkdir(parents=True, exist_ok=True)
    (options.results / FILE.name).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
