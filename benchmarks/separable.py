"""Separable problems against their specialists: single fits, whole paths, cross-validation, tiny problems.

    python benchmarks/separable.py                               the report half, medians of 3, under 25 minutes
    python benchmarks/separable.py --half choose --seeds 40      where constants are chosen
    python benchmarks/separable.py --only leukemia --only tiny --half choose --results /tmp/some
    python benchmarks/separable.py --report --page docs/benchmarks-separable.md      only the page

`fenchel` is timed to a certified relative gap of 1e-6, building the Problem included. A peer is run with several
tolerances, and the cheapest one counts at which its answer is within 1e-6 of the optimum, relatively, by the judge, who
computes the objective in float64 (on a path: at the worst point of it; cross-validation: of the path on all rows). A
peer that is cut off because it is far behind counts with the time that it had used: the ratio is a lower bound. Single
fits by those who follow paths (adelie, glmnet) are tried at once and along a short path. One thread, seconds of the
processor, everybody's favourite memory layout for free, solvers in turns. A run that was interrupted goes on where it
stopped; --fresh starts anew.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from environments import CannotInstall, Environments, cache_folder
from results import machine
from separable_cases import FOLDS, Case, cases
from separable_report import OURS, STEPS, TARGET, seconds_of, suboptimality, summary, write_page
from specialist_worker import specialist_class

DEEP = 1e-7  # relative suboptimality at which a ladder of tolerances ends; smaller: longer runs, a surer optimum
BEHIND = (
    6.0  # times our time, or the best peer's, at which a peer is cut off; larger: slower peers are followed further
)
SHORT = 0.5  # seconds of a run below which nobody is cut off; larger: longer runs
PATIENCE = 20.0  # seconds of a run at which everybody is cut off; larger: longer runs
LONGEST = {True: 120.0, False: 45.0}  # seconds of the wall for one answer of ours, of a peer; larger: longer runs
WARM_UP = 240.0  # seconds of the wall for taking a problem, compiling included
ENOUGH = 10.0  # seconds of a run beyond which it is not repeated; larger: longer runs
CONTENDER = 2.0  # times the best peer's time within which a peer is run again; larger: longer runs


class Worker:
    """The process of one specialist."""

    def __init__(self, stem, python, log: Path):
        self.stem, self.alive = stem, True
        with open(log, "a") as errors:
            self.process = subprocess.Popen(
                [python, str(HERE / "specialist_worker.py"), str(HERE / "specialists" / f"{stem}.py")],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
            )  # fmt: skip
        self.lines = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put({"error": "the process ended by itself (see the log)"})

    def ask(self, order, seconds) -> dict:
        try:
            self.process.stdin.write(json.dumps(order) + "\n")
            self.process.stdin.flush()
            answer = self.lines.get(timeout=seconds)
        except (BrokenPipeError, queue.Empty) as error:
            why = f"no answer in {seconds:g} s" if isinstance(error, queue.Empty) else "the process ended by itself"
            self.close()
            return {"error": why}
        if "ended by itself" in answer.get("error", ""):
            self.alive = False
        return answer

    def close(self):
        self.alive = False
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # glmnet's is a process of the worker's
            self.process.wait()


class Field:
    """All specialists and their processes, started when they are first needed."""

    def __init__(self, stems, options):
        self.specialists, self.missing = {}, {}
        self.options, self.workers = options, {}
        for stem in stems:
            if stem == "glmnet_fit" and shutil.which("Rscript") is None:
                self.missing[stem] = "there is no Rscript on the path; install r-cran-glmnet by hand"
            else:
                self.specialists[stem] = specialist_class(HERE / "specialists" / f"{stem}.py")
        known = [kind for kind in self.specialists.values() if kind.environment]
        self.environments = Environments(options.cache / "environments", known, options.current)
        self.log = options.results / "logs"
        self.log.mkdir(parents=True, exist_ok=True)

    def worker(self, stem) -> Worker:
        if stem not in self.workers or not self.workers[stem].alive:
            python = self.environments.interpreter(self.specialists[stem])
            self.workers[stem] = Worker(stem, python, self.log / f"{stem}.txt")
        return self.workers[stem]

    def close(self):
        for worker in self.workers.values():
            worker.close()


def play(case: Case, field: Field, file: Path, repetitions: int) -> dict:
    """Everybody on one case; what is written down of it."""
    problem, alphas = case.problem, case.alphas()
    problem.save(file)
    record = {
        "case": case.name, "task": case.task, "n": problem.n, "p": problem.p, "loss": problem.loss,
        "penalty": problem.penalty, "sparse": problem.sparse, "intercept": problem.intercept, "runs": [], "left": {},
        "cut": {}, "versions": {}, "at": time.strftime("%Y-%m-%d %H:%M"),
    }  # fmt: skip
    order = {"load": str(file), "task": case.task, "alphas": alphas.tolist(), "folds": FOLDS}
    taking = []
    for stem in field.specialists:
        try:
            answer = field.worker(stem).ask(order, WARM_UP)
        except CannotInstall as why:
            answer = {"error": f"cannot be installed: {why}"}
        if "ready" in answer:
            taking.append(stem)
            record["versions"][stem] = answer["version"]
        else:
            record["left"][stem] = answer.get("skip") or f"failed: {answer['error']}"
    record["left"] |= field.missing

    def run(stem, stop, word="run"):
        if stem in record["left"]:
            return None
        answer = field.workers[stem].ask({word: stop}, LONGEST[stem.startswith("fenchel")])
        if "error" in answer:
            record["left"][stem] = f"failed: {answer['error']}"
            return None
        one = {"solver": stem, "stop": stop, "word": word, **answer}
        record["runs"].append(one)
        return one

    peers = [stem for stem in taking if not stem.startswith("fenchel")]
    ours = [stem for stem in taking if stem.startswith("fenchel")]
    run(OURS, 1e-9, "judge")  # the optimum and a bound on it; whatever is still to be compiled is compiled here
    first = {stem: run(stem, TARGET) for stem in ours}
    for stem in peers:
        climb(record, stem, field.specialists[stem], run)
    for repetition in range(1, repetitions):
        turn = [(stem, TARGET) for stem in ours if first[stem] and first[stem]["seconds"] < ENOUGH]
        turn += chosen(record, peers)
        for stem, stop in turn if repetition % 2 == 0 else turn[::-1]:
            run(stem, stop)
    return record


def climb(record, stem, specialist, run):
    """One peer's tolerances from loose to tight, until its answer is good or it is far behind.

    A cross-validation is judged by the path on all rows, so its ladder is one of paths, and only the first tolerance
    that is good enough is timed.
    """
    task = record["task"]
    word = "judge" if task == "cv" else "run"
    times = FOLDS if task == "cv" else 1
    steps = [1, STEPS] if getattr(specialist, "steps", False) and task in ("fit", "tiny") else [None]
    for step in steps:
        default, timed, last = False, task != "cv", 0.0
        for stop in specialist.stops:
            one = run(stem, stop if step is None else [stop, step], word)
            if one is None:
                if "no answer in" in record["left"][stem] and last:  # it takes longer than its last run
                    record["cut"][stem] = min(last, record["cut"].get(stem, float("inf")))
                return
            default = default or stop == specialist.default
            accuracy, seconds = suboptimality(record, one), times * one["seconds"]
            last = seconds
            late = seconds > SHORT and seconds > min(PATIENCE, BEHIND * time_to_beat(record))
            if late and accuracy > TARGET:  # its time would be more than this; the page says so
                record["cut"][stem] = min(seconds, record["cut"].get(stem, float("inf")))
            if not timed and accuracy <= TARGET and not late:
                timed = True
                run(stem, stop)
            # the package's own tolerance is always among them: the page says what it was worth
            if late or (accuracy <= DEEP and default):
                break


def time_to_beat(record) -> float:
    """Our seconds or the best peer's, whichever is less."""
    return min(seconds_of(record, OURS), *(seconds for seconds, _ in reached(record).values()), float("inf"))


def reached(record) -> dict:
    """Solver -> (seconds, stop) of its cheapest run within the target, peers only."""
    found = {}
    for one in record["runs"]:
        stem = one["solver"]
        if not stem.startswith("fenchel") and one["word"] == "run" and suboptimality(record, one) <= TARGET:
            found[stem] = min(found.get(stem, (float("inf"), None)), (one["seconds"], one["stop"]), key=lambda x: x[0])
    return found


def chosen(record, peers):
    """The peers that can still be the best, each with its tolerance."""
    found = reached(record)
    most = min(ENOUGH, CONTENDER * min((seconds for seconds, _ in found.values()), default=0.0))
    return [(stem, found[stem][1]) for stem in peers if stem in found and found[stem][0] <= most]


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--half", choices=("choose", "report"), default="report")
    add("--seeds", type=int, default=24, metavar="N", help="how many random problems of that half (24)")
    add("--only", action="append", metavar="SUBSTRING", help="cases whose name or task holds it (may be repeated)")
    add("--solver", action="append", metavar="FILE", help="only this peer, by its file in specialists/")
    add("--repetitions", type=int, default=3, metavar="N", help="medians of N (3)")
    add("--results", type=Path, metavar="FOLDER", help="(benchmarks/results/separable-HALF)")
    add("--cache", type=Path, default=cache_folder(), metavar="FOLDER", help="for the peers' environments")
    add("--current", action="store_true", help="make no environments: run every peer in this one")
    add("--fresh", action="store_true", help="throw earlier results away")
    add("--report", action="store_true", help="run nothing")
    add("--page", type=Path, metavar="FILE", help="write the page there (docs/benchmarks-separable.md)")
    options = parser.parse_args(arguments)
    if options.repetitions < 1:
        parser.error(f"--repetitions is {options.repetitions}; it must be at least 1")
    if options.results is None:
        options.results = HERE / "results" / f"separable-{options.half}"
    return options


def find_specialists() -> list[str]:
    """The files of specialists/, fenchel's first."""
    stems = sorted(path.stem for path in (HERE / "specialists").glob("*.py"))
    return sorted(stems, key=lambda stem: (stem != OURS, not stem.startswith("fenchel"), stem))


def read(folder: Path) -> list[dict]:
    file = folder / "records.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def main(arguments=None):
    options = parse(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    file = options.results / "records.jsonl"
    if not options.report:
        if options.fresh:
            file.unlink(missing_ok=True)
        measure(options, file)
    records = read(options.results)
    if not records:
        sys.exit(f"there are no results in {options.results}")
    print("\n".join(summary(records)))
    if options.page is not None:
        write_page(records, options.page, machine(), options.half)


def measure(options, file):
    from fenchel.datasets import data_folder

    stems = find_specialists()
    unknown = set(options.solver or ()) - set(stems)
    if unknown:
        sys.exit(f"--solver {sorted(unknown)[0]!r} is unknown; there are {', '.join(stems)}")
    wanted = [stem for stem in stems if not options.solver or stem.startswith("fenchel") or stem in options.solver]
    done = {record["case"] for record in read(options.results)}
    field = Field(wanted, options)
    start = time.perf_counter()
    try:
        with tempfile.TemporaryDirectory() as folder:
            for case in cases(options.half, options.seeds, data_folder()):
                named = not options.only or any(part in case.name or part == case.task for part in options.only)
                if not named or case.name in done:
                    continue
                record = play(case, field, Path(folder) / "problem.npz", options.repetitions)
                with open(file, "a") as out:
                    out.write(json.dumps(record) + "\n")
                print(f"{time.perf_counter() - start:6.0f} s  {next(iter(summary([record], alone=True)))}", flush=True)
    finally:
        field.close()


if __name__ == "__main__":
    main()
