"""The benchmark against the peers: time to a relative suboptimality of 1e-3, 1e-6 and 1e-9, in one run.

    python benchmarks/run.py                    everything, medians of 5
    python benchmarks/run.py --quick            a few small problems, once
    python benchmarks/run.py --problem a9a-graph --solver regreg --solver skglm_fista
    python benchmarks/run.py --report           only write the page from the results that are there

An interrupted run goes on where it stopped when the same command is given again; --fresh starts anew.
See README.md for the rules.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from environments import CannotInstall, Environments, cache_folder
from objective import FORMAT, Objective
from results import EPSILONS, OURS, Results, machine

LIMIT, QUICK = 10.0, 3.0  # seconds of a solver on a problem, unless the data set says otherwise; with --quick
_GRACE = 10.0  # seconds beyond the limit until a process that does not answer is ended
_WARM_UP = 240.0  # seconds for imports and compiling
_REFERENCE = 120.0  # seconds for the reference optimum
_CONTENDER = 4.0  # after the first repetition only peers within this factor of the best peer go on


def main(arguments=None):
    options = parse(arguments)
    solvers, problems = find_solvers(), find_problems()
    listed = [name for name, problem in problems.items() if not options.quick or problem.quick]
    names = chosen("--problem", options.problem, problems, [n for n in listed if not problems[n].hidden])
    stems = chosen("--solver", options.solver, solvers, list(solvers))
    stems = [OURS, *(stem for stem in stems if stem != OURS)]  # ratios are to fenchel, in the same run
    results = Results(options.results)
    if not options.report:
        if options.fresh:
            results.clear()
        results.describe(machine() | {"clock": options.clock})
        environments = Environments(options.cache / "environments", [solvers[stem] for stem in stems], options.current)
        for name in names:
            play(problems[name], stems, solvers, environments, results, options)
        results.write_csv()
    print(results.table())
    if options.page is not None:
        from report import write_page

        write_page(results, options.page)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--problem", action="append", metavar="NAME", help="only this problem (may be repeated)")
    add("--solver", action="append", metavar="FILE", help="only this solver, by its file in solvers/ (may be repeated)")
    add("--quick", action="store_true", help=f"a few small problems, one repetition, at most {QUICK:g} s each")
    add("--repetitions", type=int, metavar="N", help="medians of N (5; 1 with --quick)")
    add("--limit", type=float, metavar="SECONDS", help=f"of a solver on a problem ({LIMIT:g}, more on large ones)")
    add("--clock", choices=("wall", "processor"), default="wall",
        help="what a second is: of the wall, or of the processor (for a machine that others use too)")  # fmt: skip
    add("--results", type=Path, default=HERE / "results", metavar="FOLDER")
    add("--cache", type=Path, default=cache_folder(), metavar="FOLDER", help="for environments and problems")
    add("--current", action="store_true", help="make no environments: run every solver in this one")
    add("--fresh", action="store_true", help="throw earlier results away")
    add("--report", action="store_true", help="run nothing")
    add("--page", type=Path, metavar="FILE", help="write the results page there (docs/benchmarks.md)")
    options = parser.parse_args(arguments)
    if options.repetitions is None:
        options.repetitions = 1 if options.quick else 5
    if options.repetitions < 1:
        parser.error(f"--repetitions is {options.repetitions}; it must be at least 1")
    if options.limit is not None and not options.limit > 0:
        parser.error(f"--limit is {options.limit}; it must be positive")
    if options.report and options.page is None:
        options.page = HERE.parent / "docs" / "benchmarks.md"
    return options


def chosen(flag, names, known, default):
    unknown = set(names or ()) - set(known)
    if unknown:
        sys.exit(f"{flag} {sorted(unknown)[0]!r} is unknown; there are {', '.join(known)}")
    return names or default


# -- what there is ----------------------------------------------------------------------------------------------------


def load(path):
    spec = importlib.util.spec_from_file_location(f"benchmark_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_solvers():
    """Solvers by the name of their file."""
    return {path.stem: load(path).Solver() for path in sorted((HERE / "solvers").glob("*.py"))}


class Problem:
    """One problem of a data set: its name, how it is made, and its place in the cache."""

    def __init__(self, name, path, dataset):
        self.name, self.path, self.dataset = name, path, dataset
        self.quick = name in dataset.quick
        self.hidden = getattr(dataset, "hidden", False)
        self.limit = getattr(dataset, "limits", {}).get(name, LIMIT)

    def make(self, folder):
        """The file of the problem, from the cache if it is there. FileNotFoundError without the data."""
        options = self.dataset.problems[self.name]
        source = self.path.read_text() + repr(options) + str(FORMAT)
        file = folder / f"{self.name}-{hashlib.sha256(source.encode()).hexdigest()[:12]}.npz"
        if not file.is_file():
            folder.mkdir(parents=True, exist_ok=True)
            objective = self.dataset.get_data(**options)
            objective.name = self.name
            part = file.with_name(f"part-{file.name}")  # a run that is interrupted here leaves no half of a file
            objective.save(part)
            part.replace(file)
        return file

    def prepare(self, folder):
        """The file and the facts, its reference optimum among them, from the cache if they are there."""
        file = self.make(folder)
        facts = file.with_suffix(".json")
        if not facts.is_file():
            print(f"{self.name}: making its reference optimum", flush=True)
            objective = Objective.load(file)
            known = {"n": objective.n, "p": objective.p, "loss": objective.loss, "sparse": objective.sparse,
                     "rows": sum(term.matrix.shape[0] for term in objective.terms)}  # fmt: skip
            command = [sys.executable, str(HERE / "reference.py"), str(file), str(_REFERENCE)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{self.name}: the reference optimum failed\n{done.stderr}")
            facts.write_text(json.dumps(known | json.loads(done.stdout.splitlines()[-1])))
        return file, json.loads(facts.read_text())


def find_problems():
    """Problems by name."""
    found = {}
    for path in sorted((HERE / "datasets").glob("*.py")):
        dataset = load(path).Dataset()
        found |= {name: Problem(name, path, dataset) for name in dataset.problems}
    return found


# -- one problem ------------------------------------------------------------------------------------------------------


def play(problem, stems, solvers, environments, results, options):
    """All solvers on one problem, turn by turn, so that a ratio compares runs of the same minutes."""
    try:
        file, facts = problem.prepare(options.cache / "problems")
    except FileNotFoundError as error:
        print(f"{problem.name}: left out, {error}", flush=True)
        return
    limit = options.limit or (QUICK if options.quick else problem.limit)
    objective = Objective.load(file)
    skipped = {stem: solvers[stem].skip(objective) for stem in stems}
    del objective
    stems = [stem for stem in stems if not skipped[stem]]
    reasons = {solvers[stem].name: why for stem, why in skipped.items() if why}
    results.add_problem(problem.name, facts | {"limit": limit, "skipped": reasons})
    workers = {}
    try:
        for repetition in range(options.repetitions):
            order = stems if repetition % 2 == 0 else stems[::-1]
            for stem in order:
                patience = min(limit, needed(results, problem.name, stem))
                if repetition in results.done(problem.name, stem) or not patience:
                    continue
                if stem not in workers or not workers[stem].alive:
                    workers[stem] = Worker(stem, solvers[stem], environments, file, facts["value"], options)
                run = workers[stem].run(patience) | {
                    "problem": problem.name,
                    "solver": stem,
                    "name": solvers[stem].name,
                    "repetition": repetition,
                }
                results.add(run)
                tell(results, run)
                for idle in [stem for stem in workers if not needed(results, problem.name, stem)]:
                    workers.pop(idle).close()
    finally:
        for worker in workers.values():
            worker.close()


def needed(results, problem, stem):
    """Seconds worth giving a solver in its next run; 0 if it is not worth another.

    At first as many as there are. Then fenchel goes on, and so does every peer that came near the best one at some
    accuracy, until twice the time that it took to get there.
    """
    if stem == OURS or not results.of(problem, stem):
        return float("inf")
    near = [0.0]
    for epsilon in EPSILONS:
        mine, best = results.median(problem, stem, epsilon), results.best_peer(problem, epsilon)[0]
        if mine <= _CONTENDER * best and mine < float("inf"):
            near.append(mine)
    return 2.0 * max(near)


def tell(results, run):
    times = [results.seconds(run["problem"], run, epsilon) for epsilon in EPSILONS]
    shown = " / ".join("-" if t == float("inf") else f"{t:.3g}" for t in times)
    proven = " / ".join(f"{entry[0]:.3g}" for entry in run["certified"].values())
    print(f"{run['problem']:<26} {run['name']:<26} #{run['repetition'] + 1}  {shown} s"
          f"{'   certified ' + proven + ' s' if proven else ''}"
          f"{'' if run['status'] == 'done' else '   ' + run['status']}", flush=True)  # fmt: skip


class Worker:
    """The process of one solver on one problem (worker.py)."""

    def __init__(self, stem, solver, environments, file, optimum, options):
        self.stem, self.alive, self.failure = stem, True, None
        self.pace = 1 if options.clock == "wall" else 4  # seconds of the processor pass more slowly on a busy machine
        self.versions, self.warm_up, self.process = {}, float("nan"), None
        try:
            python = environments.interpreter(solver)
        except CannotInstall as why:
            self.failure = f"cannot be installed: {why}"
            return
        log = options.results / "logs"
        log.mkdir(parents=True, exist_ok=True)
        with open(log / f"{file.stem}-{stem}.txt", "w") as errors:
            self.process = subprocess.Popen(
                [python, str(HERE / "worker.py"), str(HERE / "solvers" / f"{stem}.py"), str(file), repr(optimum),
                 options.clock],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        self.events = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        ready = self._next(_WARM_UP)
        if ready["event"] == "ready":
            self.versions, self.warm_up = ready["versions"], ready["seconds"]
        else:
            self.failure = ready["reason"]

    def _listen(self):
        for line in self.process.stdout:
            self.events.put(json.loads(line))
        self.events.put({"event": "error", "reason": "the process ended by itself"})

    def _next(self, seconds):
        try:
            return self.events.get(timeout=seconds)
        except queue.Empty:
            self.close()
            return {"event": "error", "reason": "time limit"}

    def run(self, limit):
        """One run, as results.py keeps it."""
        run = {"points": [], "certified": {}, "status": self.failure, "versions": self.versions,
               "warm_up": self.warm_up, "at": time.strftime("%Y-%m-%d %H:%M")}  # fmt: skip
        if self.failure is not None:
            return run
        self.process.stdin.write(f"run {limit!r}\n")
        self.process.stdin.flush()
        while run["status"] is None:
            event = self._next(_GRACE + limit * self.pace)
            if event["event"] == "point":
                extra = [event["inside"]] if "inside" in event else []
                run["points"].append([event["seconds"], event["value"], *extra])
            elif event["event"] == "certified":
                run["certified"][f"{event['tolerance']:g}"] = [event["seconds"], event["gap"], event["value"]]
            elif event["event"] == "end":
                run["status"] = event["status"]
            else:
                run["status"] = event["reason"]
                self.alive = False
        return run

    def close(self):
        self.alive = False
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


if __name__ == "__main__":
    main()
