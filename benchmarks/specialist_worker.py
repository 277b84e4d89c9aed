"""A process that holds one specialist and solves what it is told to; `separable.py` starts one for each.

    python specialist_worker.py specialists/NAME.py

Reads and answers lines of JSON. {"load": FILE, "task": ..., "alphas": [...], "folds": K} takes a problem and warms up;
{"run": STOP} runs once, and again and again if it was short; the answer has the seconds of the processor for one run,
and F of every answer by the judge, who works while the clock stands. {"judge": STOP} is the same, but for "cv" only the
path on all rows is made: it stands for the accuracy of the folds, whose answers most packages do not show.
"""

from __future__ import annotations

import os

for variable in (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS",
):  # fmt: skip
    os.environ[variable] = "1"

import importlib.util
import json
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np
from separable_problem import Separable

SHORT = 0.03  # seconds that the runs of one measurement take together at least; larger: less noise, more time


def specialist_class(path):
    spec = importlib.util.spec_from_file_location(f"specialist_{Path(path).stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Specialist


def folds_of(n, count):
    """Pairs of (training rows, held-out rows): the same for everybody who lets them be given."""
    order = np.random.default_rng(0).permutation(n)
    return [(np.sort(np.setdiff1d(order, part)), np.sort(part)) for part in np.array_split(order, count)]


class Session:
    """One specialist and, at a time, one problem."""

    def __init__(self, specialist):
        self.specialist, self.problem = specialist, None

    def load(self, order):
        specialist, task = self.specialist, order["task"]
        self.problem, self.task = Separable.load(order["load"]), task
        self.alphas = np.array(order["alphas"])
        needed = "fit" if task == "tiny" else task
        why = (
            f"it is not asked for this task ({task})"
            if needed not in specialist.tasks
            else specialist.skip(self.problem, task)
        )
        if why:
            return {"skip": why}
        small = self.problem.tiny()
        self.folds = folds_of(small.n, 3)
        specialist.set_problem(small, self.alphas[:3], self.folds)
        self.once(specialist.stops[0], self.alphas[:3], task)
        self.folds = folds_of(self.problem.n, order["folds"])
        specialist.set_problem(self.problem, self.alphas, self.folds)
        return {"ready": True, "version": specialist.version()}

    def once(self, stop, alphas, task):
        if task == "cv":
            return self.specialist.cv(stop, alphas, self.folds)
        return self.specialist.path(stop, alphas) if task == "path" else self.specialist.fit(stop)

    def run(self, stop, task):
        specialist = self.specialist
        start, runs = time.process_time(), 1
        found = self.once(stop, self.alphas, task)
        spent = time.process_time() - start
        if specialist.seconds is None and spent < SHORT:  # a short first call finds cold caches: it does not count
            start, runs, spent = time.process_time(), 0, 0.0
            while spent < SHORT:
                found = self.once(stop, self.alphas, task)
                runs, spent = runs + 1, time.process_time() - start
        seconds = spent / runs if specialist.seconds is None else specialist.seconds
        facts = dict(getattr(specialist, "facts", {}))
        if task == "cv":
            found = specialist.path(stop, self.alphas)
        coefs, intercepts = found
        alphas = self.alphas if task in ("path", "cv") else [self.problem.alpha]
        if len(coefs) != len(alphas):
            return {"error": f"{len(coefs)} answers for {len(alphas)} alphas"}
        values = [self.problem.value(*one) for one in zip(coefs, intercepts, alphas, strict=True)]
        return {"seconds": seconds, "values": values, "support": int(np.count_nonzero(coefs[-1])), **facts}

    def answer(self, order):
        if "load" in order:
            return self.load(order)
        if "judge" in order:
            return self.run(order["judge"], "path" if self.task == "cv" else self.task)
        return self.run(order["run"], self.task)


def main(path):
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    session = Session(specialist_class(path)())
    for line in sys.stdin:
        order = json.loads(line)
        try:
            answer = session.answer(order)
        except Exception as error:
            traceback.print_exc()
            text = f"{type(error).__name__}: {error}".strip().splitlines()
            answer = {"error": text[0][:200] if text else type(error).__name__}
        out.write(json.dumps(answer) + "\n")
        out.flush()


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    main(sys.argv[1])
