"""Two commits side by side: CPU time and passes over the benchmark's problems, 60 random ones and a few paths.

    python benchmarks/compare.py main                         the working tree against the branch main
    python benchmarks/compare.py v0.2.0 --head HEAD           two commits
    python benchmarks/compare.py main --only random --repetitions 5

Both commits solve every problem in turns (A B B A ...), each in a process that stays alive, one thread each, to a
certified relative gap of --tol. The sources of a commit are taken from git into the cache folder. What numba compiled
for the same sources is used again, and never for other sources.

The first run of a problem warms up (it may compile) and is not counted. The exit code is 1 if a problem got slower or
its status got worse:

- slower: more than 1.1 times the seconds of BASE and more than 2 ms longer. Noise only ever adds time, so both the
  medians and the fastest runs must say so. A process can be slow as a whole (where its arrays lie in memory, what ran
  beside it: 1.3 times was seen between two copies of the same commit, over 15 runs each). So what looks slower is run
  again at the end, four times as often, in two fresh processes, and both pairs of processes must agree.
- worse: BASE converged and the head did not. Where one of them was cut off by the limit, times are not compared.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))

from environments import cache_folder

SLOWER = 1.1  # times the seconds of BASE that count as slower; larger: more losses pass unseen
NOTICEABLE = 2e-3  # seconds of difference below which nothing counts as slower; larger: small problems pass unseen
AGAIN = 4  # times the repetitions in fresh processes for what looks slower; larger: a surer verdict, a longer run
LONG = 5.0  # seconds of a warm-up run after which one repetition is saved; larger: long problems take longer still
KEPT = 8  # compiled versions that stay in the cache folder; larger: more disk
RANDOM = 60  # random problems
PATHS = {
    "path-wide-logistic": {"shape": (60, 1500), "loss": "logistic", "groups": False},
    "path-tall-logistic": {"shape": (2000, 60), "loss": "logistic", "groups": False},
    "path-wide-squared": {"shape": (80, 2000), "loss": "squared", "groups": False},
    "path-groups-squared": {"shape": (400, 300), "loss": "squared", "groups": True},
}


# -- the verdict ------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Comparison:
    """The runs of both sides on one problem: lists of {"seconds", "passes", "status"}.

    `again` holds those of a second pair of processes, if the first pair made the head look slower.
    """

    name: str
    base: list
    head: list
    again: Comparison | None = None

    def seconds(self, side) -> float:
        return float(np.median([run["seconds"] for run in getattr(self, side)]))

    @property
    def ratio(self) -> float:
        """Times the seconds of BASE that the head took."""
        return self.seconds("head") / self.seconds("base")

    def status(self, side) -> str:
        """The worst status of the runs of a side."""
        found = [run["status"] for run in getattr(self, side)]
        return next((status for status in found if status != "converged"), "converged")

    def passes(self, side) -> int:
        return int(np.median([run["passes"] for run in getattr(self, side)]))

    @property
    def comparable(self) -> bool:
        """Whether the times say something: neither side was cut off by the limit or failed."""
        cut = "time limit" in (self.status("base"), self.status("head"))
        return not cut and bool(np.isfinite(self.ratio))

    @property
    def slower(self) -> bool:
        """The verdict: every pair of processes says so."""
        return self.looks_slower and (self.again is None or self.again.looks_slower)

    @property
    def looks_slower(self) -> bool:
        fastest = [min(run["seconds"] for run in side) for side in (self.base, self.head)]
        medians = [self.seconds("base"), self.seconds("head")]
        return self.comparable and all(b > SLOWER * a and b - a > NOTICEABLE for a, b in (fastest, medians))

    @property
    def worse(self) -> bool:
        return self.status("base") == "converged" and self.status("head") != "converged"


def row(one: Comparison) -> str:
    status = one.status("head")
    if status != one.status("base"):
        status = f"{one.status('base')} -> {status}"
    marks = (" looks slower" if one.looks_slower else "") + (" WORSE" if one.worse else "")
    times = f"{1e3 * one.seconds('base'):10.2f} {1e3 * one.seconds('head'):10.2f} {one.ratio:7.2f}"
    return f"{one.name:<28} {times} {one.passes('base'):7d} {one.passes('head'):7d}  {status}{marks}"


def heading() -> str:
    return f"{'problem':<28} {'base ms':>10} {'head ms':>10} {'ratio':>7} {'passes':>7} {'passes':>7}  status"


def distribution(comparisons) -> list[str]:
    """Lines: geometric mean, quartiles, and the ten worst. A ratio above 1 means that the head is slower."""
    found = sorted((one for one in comparisons if one.comparable), key=lambda one: -one.ratio)
    if not found:
        return ["no problem whose times can be compared"]
    ratios = np.array([one.ratio for one in found])
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    total = sum(one.seconds("head") for one in found) / sum(one.seconds("base") for one in found)
    lines = [
        f"head / base over {len(found)} problems: geometric mean {np.exp(np.log(ratios).mean()):.3f}, least "
        f"{ratios.min():.2f}, quartiles {low:.2f} {middle:.2f} {high:.2f}, most {ratios.max():.2f}, of all seconds "
        f"together {total:.2f}",
        "the worst ten:",
    ]
    lines += [f"  {one.ratio:6.2f}  {one.name}" for one in found[:10]]
    left_out = [one.name for one in comparisons if not one.comparable]
    return lines + ([f"not compared (cut off or failed): {', '.join(left_out)}"] if left_out else [])


def verdict(comparisons) -> tuple[int, list[str]]:
    """The exit code and its reasons."""
    reasons = [f"slower: {one.name}, {shown(one)} times" for one in comparisons if one.slower]
    reasons += [f"worse: {one.name}, {one.status('base')} -> {one.status('head')}" for one in comparisons if one.worse]
    return (1 if reasons else 0), reasons or ["no problem is slower, no status is worse"]


def shown(one: Comparison) -> str:
    """The ratios of all pairs of processes."""
    return f"{one.ratio:.2f}" if one.again is None else f"{one.ratio:.2f} and {one.again.ratio:.2f}"


# -- the two sides ----------------------------------------------------------------------------------------------------


def git(*arguments) -> bytes:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True)
    if done.returncode:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout


def sources(revision: str | None, cache: Path) -> Path:
    """The folder src of a commit; None means the working tree.

    It comes from `git archive` and not from a worktree: there is nothing to clean up, and the times of its files are
    those of the commit, so that compiled code stays valid.
    """
    if revision is None:
        return ROOT / "src"
    commit = git("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    folder = cache / "commits" / commit
    if not folder.is_dir():
        part = folder.with_name(f"{commit}-{os.getpid()}")
        with tarfile.open(fileobj=io.BytesIO(git("archive", commit, "src"))) as archive:
            archive.extractall(part, filter="data")
        part.rename(folder)
    return folder / "src"


def compiled_folder(src: Path, cache: Path) -> Path:
    """A folder for numba that belongs to these very sources: numba itself does not see edits of imported files."""
    content = hashlib.sha256(str(src).encode())
    for file in sorted(src.rglob("*.py")):
        content.update(file.read_bytes())
    folder = cache / "compiled" / content.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for old in sorted(folder.parent.iterdir(), key=lambda f: -f.stat().st_mtime)[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)
    return folder


class Side:
    """The process of one commit."""

    def __init__(self, src: Path, cache: Path, data: Path | None):
        environment = os.environ | {"PYTHONPATH": str(src), "NUMBA_CACHE_DIR": str(compiled_folder(src, cache))}
        if data is not None:
            environment["FENCHEL_DATA"] = str(data)
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "compare_worker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def run(self, order: dict) -> dict:
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"the process of a side ended by itself on {order['name']}")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def orders(options):
    """What both sides are told to solve."""
    from run import find_problems

    for name, problem in find_problems().items():
        if not problem.hidden and options.only in name:
            try:
                yield {"kind": "benchmark", "name": name, "file": str(problem.make(options.cache / "problems"))}
            except FileNotFoundError as error:
                print(f"{name}: left out, {error}", flush=True)
    for name, facts in PATHS.items():
        if options.only in name:
            yield {"kind": "path", "name": name, "seed": 0} | facts
    for seed in range(RANDOM):
        if options.only in f"random-{seed}":
            yield {"kind": "random", "name": f"random-{seed}", "seed": seed}


def take_turns(sides, order, repetitions):
    """Runs of both sides, A B B A ..., after one each that is not counted."""
    comparison = Comparison(order["name"], [], [])
    first = {name: side.run(order) for name, side in sides.items()}
    if max(run["seconds"] for run in first.values()) > LONG:
        repetitions = max(1, repetitions - 1)
    if any(run["status"] != "converged" for run in first.values()):
        repetitions = 1  # an answer that is not there does not come by repeating, and it takes long
    for turn in range(repetitions):
        for name in ("base", "head") if turn % 2 == 0 else ("head", "base"):
            getattr(comparison, name).append(sides[name].run(order))
    return comparison


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("base", metavar="BASE", help="a commit, branch or tag")
    add("--head", metavar="REV", help="what is compared with it (the working tree)")
    add("--repetitions", type=int, default=3, metavar="N", help="counted runs of each problem (3)")
    add("--only", default="", metavar="SUBSTRING", help="problems whose name holds it: random-, path-, l1, ...")
    add("--tol", type=float, default=1e-6)
    add("--limit", type=float, default=20.0, metavar="SECONDS", help="of one solve (20)")
    add("--cache", type=Path, default=cache_folder(), metavar="FOLDER")
    options = parser.parse_args(arguments)
    if options.repetitions < 1:
        parser.error(f"--repetitions is {options.repetitions}; it must be at least 1")
    return options


class Pair:
    """The processes of both sides while a with block lasts."""

    def __init__(self, options, names=("base", "head")):
        from fenchel.datasets import data_folder

        revisions = {"base": options.base, "head": options.head}
        self.folders = {name: sources(revisions[name], options.cache) for name in names}
        self.cache, self.data = options.cache, data_folder()

    def __enter__(self):
        self.sides = {name: Side(src, self.cache, self.data) for name, src in self.folders.items()}
        return self.sides

    def __exit__(self, *_):
        for side in self.sides.values():
            side.close()


def main(arguments=None) -> int:
    options = parse(arguments)
    comparisons, suspects = [], []
    print(heading(), flush=True)
    with Pair(options) as sides:
        for order in orders(options):
            order |= {"tol": options.tol, "limit": options.limit}
            one = take_turns(sides, order, options.repetitions)
            comparisons.append(one)
            if one.looks_slower:
                suspects.append((order, one))
            print(row(one), flush=True)
    if not comparisons:
        sys.exit(f"--only {options.only!r} matches no problem")
    if suspects:
        print("\nagain, in fresh processes:", flush=True)
        with Pair(options, ("head", "base")) as sides:
            for order, one in suspects:
                one.again = take_turns(sides, order, AGAIN * options.repetitions)
                print(row(one.again), flush=True)
    code, reasons = verdict(comparisons)
    print("", *distribution(comparisons), "", *reasons, sep="\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
