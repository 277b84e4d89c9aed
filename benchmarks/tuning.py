"""What tuning would gain: passes over the data of the default, against the best of a grid of rho and block size.

    python benchmarks/tuning.py --page docs/tuning.md    all problems, about an hour, and the page
    python benchmarks/tuning.py --quick                  three of them
    python benchmarks/tuning.py --report --page docs/tuning.md    only the page, from the results that are there
    python benchmarks/tuning.py --problem digits-tv --tol 1e-6 --no-newton

For every problem and accuracy the default is run first. Then 12 x 5 runs have a constant rho, around the one that the
default ended with, and a given block size; all else is as in the default, the spacing of the certificates too. (With
--every-epoch there is a certificate after every epoch on both sides. The counts are then exact, but Newton's method
knows more and is tried at other times than a user's run tries it.) A run of the grid is cut off where it cannot be the
best any more, so that what is found is the best of the grid or, where nothing beats the default, that fact. Where a
ratio exceeds the goal, more runs tell why: the best block size with rho adapting, the best rho with the default's block
size, the processor's time of the default over that of the grid's best (a pass with small blocks is a dear one), and the
ratio with Newton's method switched off on both sides: what rho and the block size alone would gain.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import csv
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import fenchel as fl
from fenchel.methods import SDCAADMM

GOAL = 1.3
MOST = 3000  # passes of a run
TOLERANCES = (1e-3, 1e-6, 1e-9)
FACTORS = 10 ** np.linspace(-2.75, 2.75, 12)  # of rho
SIZES = (12, 25, 50, 100, 200)  # of blocks
FIELDS = ("problem", "tol", "passes", "rho", "block", "best_passes", "best_rho", "best_block", "ratio",
          "best_block_alone", "best_rho_alone", "plain_ratio", "time_ratio")  # fmt: skip

LISTED = ("artificial-512", "artificial-5120", "artificial-5120-logistic", "a9a-graph", "a9a-graph-logistic",
          "20news-graph", "p53-pathways", "overlapping-groups", "digits-fused", "digits-tv", "fused-lasso", "images-tv",
          "l1-logistic", "l1-logistic-sparse", "elastic-net-logistic", "elastic-net-hinge", "group-lasso-logistic",
          "group-lasso-squared", "sparse-group-lasso", "artificial-51200", "million-rows")  # fmt: skip
QUICK = ("artificial-512", "digits-tv", "overlapping-groups")


# -- problems ---------------------------------------------------------------------------------------------------------


def digits_fused():
    """Odd or even digits, pixels in reading order."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    penalty = fl.L1() @ fl.Difference(64) + 0.3 * fl.L1()
    y = np.where(digit % 2, 1.0, -1.0)
    return fl.Problem(X / 16.0, y, loss="logistic", penalty=penalty, alpha=0.003, fit_intercept=True)


def overlapping_groups(n=200, p=60):
    """Small: groups of ten features, each of which shares half of them with the next."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    truth = np.where(np.arange(p) < 15, 1.0, 0.0)
    y = np.where(X @ truth + rng.standard_normal(n) >= 0, 1.0, -1.0)
    groups = [np.arange(first, first + 10) for first in range(0, p - 9, 5)]
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.GroupL2(groups), alpha=1.0)
    return problem.with_alpha(0.1 * problem.alpha_max())


OWN = {"digits-fused": digits_fused, "overlapping-groups": overlapping_groups}


def make(name):
    """A problem by its name: one of ours, or one of the benchmark's."""
    if name in OWN:
        return OWN[name]()
    from fenchel_model import problem
    from run import find_problems

    found = find_problems()
    if name not in found:
        sys.exit(f"--problem {name!r} is unknown; there are {', '.join(sorted({*LISTED, *found}))}")
    dataset = found[name].dataset
    return problem(dataset.get_data(**dataset.problems[name]))


# -- the grid ---------------------------------------------------------------------------------------------------------


def run(problem, tol, most, **options):
    """The result, and its passes: None where it took more than `most`."""
    # not by max_epochs, for there is a certificate at that limit which a run without one does not have
    result = fl.solve(problem, tol=tol, max_epochs=2 * MOST, callback=lambda at: at.epoch > most, **options)
    return result, result.epochs if result.relative_gap <= tol and result.epochs <= most else None


def compare(problem, tol, *, most=MOST, factors=FACTORS, sizes=SIZES, **same):
    """The default and the best of the grid, as a row of the table; options that are the `same` on both sides."""
    result, passes = run(problem, tol, most, **same)
    rho, block = result.state["rho"], block_size(problem)
    row = dict.fromkeys(FIELDS) | {"tol": tol, "passes": passes, "rho": rho, "block": block}
    best = row | grid(problem, tol, passes, rho, block, most, factors, sizes, same)
    if passes is not None:
        best["ratio"] = passes / best["best_passes"]
    elif best["best_passes"] is not None:
        best["ratio"] = np.inf
    if best["ratio"] is not None and best["ratio"] > GOAL:
        best["best_block_alone"] = run(problem, tol, most, block_size=best["best_block"], **same)[1]
        best["best_rho_alone"] = run(problem, tol, most, rho=best["best_rho"], block_size=block, **same)[1]
        chosen = {"rho": best["best_rho"], "block_size": best["best_block"]}
        best["time_ratio"] = seconds(problem, tol, **same) / seconds(problem, tol, **chosen, **same)
        if same.get("newton", True):
            plain = compare(problem, tol, most=most, factors=factors, sizes=sizes, **(same | {"newton": False}))
            best["plain_ratio"] = plain["ratio"]
    return best


def grid(problem, tol, passes, rho, block, most, factors, sizes, same):
    """The best of the grid, if it is better than the default with its `passes`."""
    best = {"best_passes": passes}
    # from the middle outwards, so that the best comes early and cuts off the rest
    for factor in sorted(factors, key=lambda factor: abs(np.log(factor))):
        for size in sorted(sizes, key=lambda size: abs(np.log(size / block))):
            limit = most if best["best_passes"] is None else best["best_passes"] - 1
            if limit < 1:
                continue
            _, found = run(problem, tol, limit, rho=factor * rho, block_size=size, **same)
            if found is not None:
                best = {"best_passes": found, "best_rho": factor * rho, "best_block": size}
    return best


def seconds(problem, tol, **options):
    """Of the processor, median of 5 solves."""
    spent = []
    for _ in range(5):
        start = time.process_time()
        fl.solve(problem, tol=tol, max_epochs=2 * MOST, **options)
        spent.append(time.process_time() - start)
    return float(np.median(spent))


def block_size(problem):
    """The default's."""
    method = SDCAADMM()
    method.start(problem, np.random.default_rng(0))
    return int(method.bounds[1])


# -- the command ------------------------------------------------------------------------------------------------------


def line(row):
    """A row of the table in words."""
    text = f"{row['problem']:20} {row['tol']:5.0e}  {row['passes']!s:>5} passes at block {row['block']:4}"
    if row["best_rho"] is None:
        return text + "   nothing in the grid is better"
    text += f"   best {row['best_passes']:4}: rho x {row['best_rho'] / row['rho']:.3g}, block {row['best_block']:3}"
    text += f"   ratio {row['ratio']:.2f}"
    if row["ratio"] > GOAL:
        text += f"   (its block, our rho: {row['best_block_alone']}; its rho, our block: {row['best_rho_alone']}; "
        text += f"ratio of times {row['time_ratio']:.2f}"
        text += ")" if row["plain_ratio"] is None else f"; without Newton's method {row['plain_ratio']:.2f})"
    return text


def _missed(rows):
    """What to know of the cases in which the goal is missed; nothing where there are none."""
    times = [row["time_ratio"] for row in rows if row["time_ratio"] is not None]
    if not times:
        return ""
    faster = sum(ratio < 1 for ratio in times)
    return (
        " Where the goal is missed the last column has the ratio of the processor's times; below 1 the default is the "
        f"faster one all the same. So it is in {faster} of these {len(times)} cases, and in none does it take more "
        f"than {max(times):.2f} times as long. The column before it has the ratio with Newton's method switched off on "
        "both sides: what rho and the block size alone would gain."
    )


def page(rows):
    """The lines of the page."""
    ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
    within = sum(ratio <= GOAL for ratio in ratios)
    yield "# What tuning would gain"
    yield ""
    yield (
        "Passes over the data until the relative gap is proven to be below 1e-3, 1e-6 and 1e-9: the default, where "
        "nothing is set, against the best of 60 runs with a constant rho (12 values around the one that the default "
        "ended with, half a decade apart) and a given block size (12, 25, 50, 100, 200). All else is the same on both "
        "sides: rows at rest, Newton's method, and the epochs at which certificates are made and Newton's method is "
        "tried (both go by the price of an epoch with the default's blocks, whatever the blocks are). The best of 60 "
        "is a hard opponent: part of what it gains is luck. The page is generated by `python benchmarks/tuning.py "
        "--page docs/tuning.md`."
    )
    yield ""
    yield (
        f"In **{within} of {len(ratios)}** cases the default is within {GOAL:g} times the best of the grid, which is "
        f"the goal; the largest ratio is {max(ratios):.2f}. In {sum(ratio == 1 for ratio in ratios)} cases nothing in "
        "the grid is better. Passes are not time: with smaller blocks the penalty takes more steps, and a pass costs "
        f"more.{_missed(rows)} (A Newton step counts as a pass or two, whatever it costs, so that a run in which it is "
        "tried earlier has fewer passes and may take longer.)"
    )
    yield ""
    head = ("problem", "gap", "passes", "block", "best of the grid", "its rho, in ours", "its block", "ratio")
    more = bool(_missed(rows))
    head += ("without Newton", "of times") if more else ()
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for row in rows:
        start = f"| {row['problem']} | {row['tol']:.0e} | {row['passes']} | {row['block']} |"
        if row["best_rho"] is None:
            yield f"{start} none is better | | | 1 |{' | |' if more else ''}"
            continue
        ratio = f"{row['ratio']:.2f}" if row["ratio"] <= GOAL else f"**{row['ratio']:.2f}**"
        pace = f"{row['best_rho'] / row['rho']:.2g}"
        plain, times = ("" if row[key] is None else f"{row[key]:.2f}" for key in ("plain_ratio", "time_ratio"))
        yield (
            f"{start} {row['best_passes']} | {pace} | {row['best_block']} | {ratio} |"
            f"{f' {plain} | {times} |' if more else ''}"
        )


def read(file):
    """The rows of a table that was written before."""
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            numbers = {key: float(value) if value else None for key, value in row.items() if key != "problem"}
            counts = ("passes", "block", "best_passes", "best_block")
            whole = {key: int(numbers[key]) for key in counts if numbers[key]}
            yield numbers | whole | {"problem": row["problem"]}


def measure(options):
    """Run what was asked for; the table grows row by row."""
    options.results.parent.mkdir(parents=True, exist_ok=True)
    same = {"newton": options.newton, "check_every": 1 if options.every_epoch else None}
    with options.results.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for name in options.problem or (QUICK if options.quick else LISTED):
            try:
                problem = make(name)
            except FileNotFoundError as error:
                print(f"{name}: left out, {error}", flush=True)
                continue
            for tol in options.tol or TOLERANCES:
                row = compare(problem, tol, **same) | {"problem": name}
                print(line(row), flush=True)
                writer.writerow(row)
                file.flush()


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--problem", action="append", metavar="NAME", help="only this problem (may be repeated)")
    add("--tol", action="append", type=float, help="only this accuracy (may be repeated)")
    add("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    add("--newton", action=argparse.BooleanOptionalAction, default=True, help="Newton's method, on both sides")
    add("--every-epoch", action="store_true", help="a certificate after every epoch")
    add("--results", type=Path, default=HERE / "results" / "tuning.csv", metavar="FILE", help="of the table")
    add("--report", action="store_true", help="run nothing, use the table that is there")
    add("--page", type=Path, metavar="FILE", help="write the page")
    options = parser.parse_args(arguments)
    if not options.report:
        measure(options)
    elif not options.results.exists():
        sys.exit(f"--report: there is no table {options.results}; run without it first")
    rows = list(read(options.results))
    some = [row["ratio"] for row in rows if row["ratio"] is not None]
    if some:
        within = sum(ratio <= GOAL for ratio in some)
        print(f"{within} of {len(some)} within {GOAL:g}; the largest ratio is {max(some):.2f}")
    if options.page is not None:
        options.page.write_text("\n".join(page(rows)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
