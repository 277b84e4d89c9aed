"""Runs on disk, and what is read off them: times to an accuracy, medians, ratios."""

from __future__ import annotations

import csv
import json
import os
import platform
from pathlib import Path

import numpy as np

OUR_PROX = "our prox"  # in the names of peers that were given it
OURS = "fenchel_default"
EPSILONS = (1e-3, 1e-6, 1e-9)


def machine():
    """The computer, as far as it matters for times."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"processor": model, "cores": os.cpu_count(), "system": platform.system()}


class Results:
    """A folder of results: `runs.jsonl`, one line per run; `problems.json`; `times.csv`, derived.

    A run is {problem, solver, name, repetition, points, certified, status, versions, warm_up}; a point is
    (seconds, objective) or (seconds, objective, seconds inside the solver).
    """

    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.runs = [json.loads(line) for line in self._lines("runs.jsonl")]
        self.about = json.loads("".join(self._lines("problems.json")) or '{"machine": {}, "problems": {}}')

    def _lines(self, name):
        path = self.folder / name
        return path.read_text().splitlines() if path.is_file() else []

    # -- writing ------------------------------------------------------------------------------------------------------

    def clear(self):
        self.runs, self.about = [], {"machine": {}, "problems": {}}
        for name in ("runs.jsonl", "problems.json", "times.csv"):
            (self.folder / name).unlink(missing_ok=True)

    def add(self, run):
        self.runs.append(run)
        with open(self.folder / "runs.jsonl", "a") as file:
            file.write(json.dumps(run) + "\n")

    def describe(self, computer):
        self.about["machine"] = computer
        self._save()

    def add_problem(self, name, facts):
        self.about["problems"][name] = facts
        self._save()

    def _save(self):
        (self.folder / "problems.json").write_text(json.dumps(self.about, indent=1))

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def problems(self):
        return [name for name in self.about["problems"] if any(run["problem"] == name for run in self.runs)]

    def of(self, problem, solver=None):
        return [r for r in self.runs if r["problem"] == problem and solver in (None, r["solver"])]

    def done(self, problem, solver):
        """Repetitions that are there."""
        return {run["repetition"] for run in self.of(problem, solver)}

    def solvers(self, problem):
        """Stems of the solvers that were run, with their names."""
        return {run["solver"]: run["name"] for run in self.of(problem)}

    def optimum(self, problem):
        """The least value that anybody reached; the reference's own included."""
        values = [point[1] for run in self.of(problem) for point in run["points"]]
        values += [entry[2] for run in self.of(problem) for entry in run["certified"].values()]
        return min([self.about["problems"][problem]["value"], *(v for v in values if np.isfinite(v))])

    def doubt(self, problem):
        """How far, relatively, the optimum may still lie below `optimum`."""
        best = self.optimum(problem)
        return max(best - self.about["problems"][problem]["bound"], 0.0) / abs(best)

    def seconds(self, problem, run, epsilon, inside=False):
        """Time of one run to a relative suboptimality; infinite if it was not reached."""
        best = self.optimum(problem)
        goal = best + epsilon * abs(best)
        times = [(point[2] if inside and len(point) > 2 else point[0]) for point in run["points"] if point[1] <= goal]
        return min(times, default=np.inf)

    def median(self, problem, solver, epsilon, inside=False):
        """Median time to a suboptimality. Only the first run had all the time there is (see `needed` in run.py): later
        ones that were cut off before an accuracy that the first one reached say nothing about it."""
        runs = sorted(self.of(problem, solver), key=lambda run: run["repetition"])
        times = [self.seconds(problem, run, epsilon, inside) for run in runs]
        if times and np.isfinite(times[0]):
            times = [time for time in times if np.isfinite(time)]
        return float(np.median(times)) if times else np.inf

    def certified(self, problem, epsilon, solver=OURS):
        """Median time to a proven relative gap; infinite if it was not proven."""
        times = []
        for run in self.of(problem, solver):
            entry = run["certified"].get(f"{epsilon:g}")
            times.append(entry[0] if entry is not None and entry[1] <= epsilon else np.inf)
        return float(np.median(times)) if times else np.inf

    def judged(self, problem, epsilon):
        """fenchel's median time to a suboptimality: along a run, or at the end of one that was told to stop there."""
        times = []
        for run in self.of(problem, OURS):
            best = self.optimum(problem)
            goal = best + epsilon * abs(best)
            stops = [entry[0] for entry in run["certified"].values() if entry[2] <= goal]
            times.append(min([self.seconds(problem, run, epsilon), *stops]))
        return float(np.median(times)) if times else np.inf

    def peers(self, problem):
        return [solver for solver in self.solvers(problem) if solver != OURS]

    def best_peer(self, problem, epsilon, inside=False, as_it_comes=False):
        """(seconds, solver) of the fastest peer; (inf, None) if none got there.

        `as_it_comes` leaves out those that were given the composite prox that was written for this benchmark.
        """
        names = self.solvers(problem)
        peers = [solver for solver in self.peers(problem) if not (as_it_comes and OUR_PROX in names[solver])]
        times = [(self.median(problem, solver, epsilon, inside), solver) for solver in peers]
        seconds, solver = min(times, default=(np.inf, None))
        return (seconds, solver) if np.isfinite(seconds) else (np.inf, None)

    def ratio(self, problem, epsilon):
        """How many times fenchel's certified time the best peer needs; nan if neither got there."""
        ours, theirs = self.certified(problem, epsilon), self.best_peer(problem, epsilon)[0]
        if not np.isfinite(ours):
            return np.nan if not np.isfinite(theirs) else 0.0
        return theirs / ours

    # -- out ----------------------------------------------------------------------------------------------------------

    def table(self, epsilons=EPSILONS):
        """A plain table: seconds at each accuracy, and the ratio."""
        lines = []
        for problem in self.problems:
            lines.append(f"\n{problem}   (optimum {self.optimum(problem):.10g}, doubt {self.doubt(problem):.0e})")
            certified = [self.certified(problem, epsilon) for epsilon in epsilons]
            lines.append(_row("fenchel, certified", certified))
            lines.append(_row("fenchel, judged", [self.judged(problem, epsilon) for epsilon in epsilons]))
            rows = []
            for solver, name in self.solvers(problem).items():
                if solver != OURS:
                    rows.append(([self.median(problem, solver, epsilon) for epsilon in epsilons], name, solver))
            rows.sort(key=lambda row: row[0][::-1])
            for times, name, solver in sorted(rows, key=lambda row: (row[0][1], row[0][0])):
                status = {run["status"] for run in self.of(problem, solver)} - {"done"}
                lines.append(_row(name, times) + ("   " + "; ".join(sorted(status)) if status else ""))
            lines.append(_row("best peer / fenchel certified", [self.ratio(problem, e) for e in epsilons], "x"))
        return "\n".join(lines)

    def write_csv(self):
        with open(self.folder / "times.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["problem", "solver", "repetitions", "accuracy", "seconds", "seconds_inside", "status"])
            for problem in self.problems:
                for solver, name in self.solvers(problem).items():
                    runs = self.of(problem, solver)
                    status = "; ".join(sorted({run["status"] for run in runs}))
                    for epsilon in EPSILONS:
                        times = [self.median(problem, solver, epsilon, inside) for inside in (False, True)]
                        out.writerow([problem, name, len(runs), f"{epsilon:g}", *(f"{t:.6g}" for t in times), status])
                        if solver == OURS:
                            proven = f"{self.certified(problem, epsilon):.6g}"
                            out.writerow([problem, f"{name}, certified", len(runs), f"{epsilon:g}", proven, "", status])


def _row(name, numbers, unit="s"):
    cells = [f"{number:10.4g} {unit}" if np.isfinite(number) else f"{'-':>10}  " for number in numbers]
    return f"  {name:<34}" + "".join(cells)
