"""One runner for the comparisons whose problems are drawn by a seed: fenchel, certified, against the best rival.

A script says how a seed's problem is drawn, and who else solves it; times, lines, files and distributions are the same
for all of them. Times are processor seconds of one thread, medians.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import fenchel as fl

LONG = 5.0  # seconds of a run that is not repeated, and beside which compiling does not count; more: longer benchmarks


@dataclasses.dataclass
class Duel:
    """A problem of a seed. `make` makes it anew, with nothing prepared; `rivals` gives, for objectives that are to be
    reached, the seconds of everybody else by name (infinite where one was not)."""

    text: str
    make: Callable[[], fl.Problem]
    rivals: Callable[[Sequence[float]], dict[str, Sequence[float]]]
    optimum: Callable[[], float] | None = None  # known beforehand


def measure(duel: Duel, seed: int, goals: Sequence[float], limit: float, repetitions: int, peer: bool) -> dict:
    """Seconds of both, for all goals."""
    row: dict = {"seed": seed, "text": duel.text, "fenchel": [], "peer": [], "who": [], "say": [], "epochs": []}
    for goal in goals:
        seconds, result = timed(duel.make, goal, limit, repetitions)
        row["fenchel"].append(seconds)
        row["epochs"].append(int(result.epochs))
        reached = result.relative_gap <= goal or result.status is fl.Status.CONVERGED
        row["say"].append("" if reached else f"{result.status.value}, gap {result.relative_gap:.0e}")
    if peer:
        optimum = duel.optimum() if duel.optimum else found(duel.make, seed)
        runs = duel.rivals([optimum + goal * abs(optimum) for goal in goals])
        row["peer"] = [min(run[k] for run in runs.values()) for k in range(len(goals))]
        row["who"] = [min(runs, key=lambda name: runs[name][k]) for k in range(len(goals))]
    return row


def timed(make: Callable[[], fl.Problem], goal: float, limit: float, repetitions: int) -> tuple[float, fl.Result]:
    """The median of the seconds, and the last result; the first run may compile, and counts only if it is long."""
    times: list[float] = []
    for repetition in range(repetitions + 1):
        problem = make()
        began = time.process_time()
        result = fl.solve(problem, tol=goal, time_limit=limit)
        took = time.process_time() - began
        if repetition or took > LONG:
            times.append(took)
        if took > LONG:
            break
    return float(np.median(times)), result


def found(make: Callable[[], fl.Problem], seed: int, seconds: float = 60.0) -> float:
    """The optimum."""
    result = fl.solve(make(), tol=1e-9, time_limit=seconds)
    if result.relative_gap > 1e-7:
        print(f"seed {seed}: the optimum is known to {result.relative_gap:.1e} only", file=sys.stderr)
    return result.primal


def shown(row: dict, other: dict | None) -> str:
    """A line: milliseconds and epochs of fenchel; milliseconds of the best rival, and how many times ours that is;
    the same of numbers that were kept."""
    parts = [f"{row['seed']:5d}"]
    for k, seconds in enumerate(row["fenchel"]):
        cell = f"{1e3 * seconds:8.1f} ({row['epochs'][k]:3d})"
        if row["peer"]:
            cell += f" {1e3 * row['peer'][k]:8.1f} {row['who'][k]:5} {row['peer'][k] / seconds:6.2f}"
        if other is not None:
            cell += f" {1e3 * other['fenchel'][k]:8.1f} {other['fenchel'][k] / seconds:6.2f}"
        parts.append(f"{cell} {row['say'][k]}".rstrip())
    return " | ".join(parts) + f"  {row['text']}"


def distribution(name: str, ratios: Sequence[float]) -> str:
    ratios = np.sort([value for value in ratios if math.isfinite(value)])
    if not ratios.size:
        return f"{name}: none"
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    worst = ", ".join(f"{value:.2f}" for value in ratios[:6])
    return f"{name}: median {middle:.2f}, quartiles {low:.2f} {high:.2f}, worst {worst} (of {ratios.size})"


def main(
    about: str,
    draw: Callable[[int], Duel],
    goals: Sequence[float],
    limit: float,
    *,
    rival: str = "FISTA",
    seeds: tuple[int, int] = (0, 24),
    repetitions: int = 3,
    warm: Sequence[int] = (),
    argv: list[str] | None = None,
) -> list[dict]:
    """A command line: a line a problem, then the distributions. `warm` are seeds that are solved roughly beforehand,
    so that compiling is over; a rival that never arrives counts with the limit."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs=2, default=seeds, help="first, and one beyond the last")
    parser.add_argument("--only", type=int, nargs="*", help="these seeds instead")
    parser.add_argument("--goals", type=float, nargs="*", default=list(goals))
    parser.add_argument("--repetitions", type=int, default=repetitions)
    parser.add_argument("--no-peer", "--no-fista", action="store_true", help="fenchel alone")
    parser.add_argument("--save", type=Path, help="keep the numbers in this file")
    parser.add_argument("--against", type=Path, help="compare with numbers that were kept")
    options = parser.parse_args(argv)
    others = {row["seed"]: row for row in json.loads(options.against.read_text())} if options.against else {}
    rows: list[dict] = []
    print("fenchel", fl.__file__)
    for seed in warm:
        fl.solve(draw(seed).make(), tol=1e-2, time_limit=LONG)
    for seed in options.only or range(*options.seeds):
        rows.append(measure(draw(seed), seed, options.goals, limit, options.repetitions, not options.no_peer))
        print(shown(rows[-1], others.get(seed)), flush=True)
        if options.save:
            options.save.write_text(json.dumps(rows))
    for k, goal in enumerate(options.goals):
        if not options.no_peer:
            ratios = [min(row["peer"][k], limit) / row["fenchel"][k] for row in rows]
            print(distribution(f"{rival}'s time / ours, {goal:g}", ratios))
        if others:
            ratios = [others[row["seed"]]["fenchel"][k] / row["fenchel"][k] for row in rows if row["seed"] in others]
            print(distribution(f"the other's time / ours, {goal:g}", ratios))
    return rows
