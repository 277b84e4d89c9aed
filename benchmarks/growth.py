"""How time and memory grow with the data: draws the curves and writes the page docs/growth.md.

    python benchmarks/growth.py --page docs/growth.md     everything: about a quarter of an hour, at most 4 GB
    python benchmarks/growth.py --quick                   small sizes, a minute
    python benchmarks/growth.py --report --page docs/growth.md   only the page, from the results that are there

Every point is measured in a process of its own: processor seconds of one thread, and the high-water mark of memory
beyond the data. The kernels are compiled before the clock starts.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import contextlib
import ctypes
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import fenchel as fl

TOLERANCE = 1e-4
SHARE = 0.2  # of the largest useful alpha
SEGMENT = 10  # features in a row that have one coefficient
MIB = 1 << 20
HERE = Path(__file__).resolve().parent

# name: (label, its points)
CURVES = {
    "dense-100": ("100 dense columns", [{"n": 10**k, "p": 100} for k in (3, 4, 5, 6)]),
    "dense-1000": ("1,000 dense columns", [{"n": 10**k, "p": 1000} for k in (3, 4, 5)]),
    "sparse-1000": ("1,000 columns, 30 entries a row", [{"n": 10**k, "p": 1000, "entries": 30} for k in (3, 4, 5, 6)]),
    "graph": ("100,000 rows, 30 entries each", [{"n": 10**5, "p": 10**k, "entries": 30} for k in (4, 5, 6)]),
}
QUICK = {
    "dense-100": [{"n": n, "p": 100} for n in (1000, 3000, 10_000)],
    "sparse-1000": [{"n": n, "p": 1000, "entries": 30} for n in (1000, 3000, 10_000)],
    "graph": [{"n": 3000, "p": p, "entries": 30} for p in (3000, 10_000)],
}


# -- one point --------------------------------------------------------------------------------------------------------


def data(n, p, entries=None, seed=0):
    """Rows, labels, and the edges of a graph that joins every feature to the next three on a ring.

    Dense rows are standard normal; sparse ones have `entries` normal numbers at random places. Every third segment of
    ten features carries a signal, one coefficient each.
    """
    rng = np.random.default_rng(seed)
    segments = -(-p // SEGMENT)
    truth = np.repeat(rng.standard_normal(segments) * (np.arange(segments) % 3 == 0), SEGMENT)[:p]
    if entries is None:
        X = rng.standard_normal((n, p))
    else:
        places = rng.integers(0, p, n * entries, dtype=np.int32)
        X = sp.csr_array((rng.standard_normal(n * entries), places, np.arange(0, n * entries + 1, entries)), (n, p))
        X.sum_duplicates()
    score = X @ truth
    y = np.where(score + 0.5 * score.std() * rng.standard_normal(n) >= 0, 1.0, -1.0)
    features = np.arange(p, dtype=np.int32)
    edges = np.concatenate([np.column_stack([features, (features + step) % p]) for step in (1, 2, 3)])
    return X, y, edges


def build(X, y, edges, alpha=None):
    """The graph-guided fused lasso with the smoothed hinge; its alpha is a share of the largest useful one."""
    p = X.shape[1]
    penalty = fl.L1() + fl.L1() @ fl.Incidence(edges, p)
    problem = fl.Problem(X, y, loss="smoothed-hinge", penalty=penalty, alpha=1.0 if alpha is None else alpha)
    return problem if alpha is not None else problem.with_alpha(SHARE * problem.alpha_max())


def status(field):
    """A figure of this process's memory, in bytes; None where there is no /proc."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    return int(dict(line.split(":", 1) for line in lines)[field].split()[0]) * 1024


def forget_peak():
    """Begin a new high-water mark, once free memory has gone back to the system."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def measure(n, p, entries=None, repeats=3, tol=TOLERANCE):
    """Build and solve one problem; the median of several runs if they are short."""
    fl.solve(build(*data(200, 20, None if entries is None else 5)), tol=1e-3, max_epochs=20)  # compiles
    X, y, edges = data(n, p, entries)
    size = X.nbytes if entries is None else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    size += y.nbytes + edges.nbytes
    before = status("VmRSS")
    alpha = build(X, y, edges).alpha
    forget_peak()  # what the search for alpha leaves behind counts, if anything, against the solver
    building, solving = [], []
    while len(solving) < repeats and sum(building + solving) < 20:
        start = time.process_time()
        problem = build(X, y, edges, alpha)
        built = time.process_time()
        result = fl.solve(problem, tol=tol, max_epochs=2000)
        building.append(built - start)
        solving.append(time.process_time() - built)
        high, d, passes, gap = status("VmHWM"), problem.d, result.epochs, result.relative_gap
        kept, converged = int(np.count_nonzero(result.coef)), result.gap <= tol * abs(result.primal)
        del problem, result
    return {
        "n": n, "p": p, "d": d, "entries": entries, "data": size, "extra": None if high is None else high - before,
        "build": float(np.median(building)), "solve": float(np.median(solving)), "passes": passes, "gap": gap,
        "kept": kept, "converged": bool(converged),
    }  # fmt: skip


def in_process(point):
    """The same in a process of its own."""
    command = [sys.executable, str(HERE / "growth.py"), "--point", json.dumps(point)]
    run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout.splitlines()[-1])


# -- what the points say ----------------------------------------------------------------------------------------------


def seconds(point):
    return point["build"] + point["solve"]


def slope(points):
    """Of the logarithm of time against the logarithm of n."""
    if len(points) < 2:
        return float("nan")
    return float(np.polyfit(np.log([q["n"] for q in points]), np.log([seconds(q) for q in points]), 1)[0])


def powers(points):
    """The slope over all points, and over the last two."""
    return f"{slope(points):.2f}, at the end {slope(points[-2:]):.2f}"


def vectors(point):
    """Memory beyond the data, in numbers of eight bytes per row, feature and coordinate of the penalty."""
    return point["extra"] / (8 * (point["n"] + point["p"] + point["d"]))


def table(points, first):
    heads = (first, "data", "kept", "passes", "seconds", "to build", "peak memory", "beyond the data")
    yield "| " + " | ".join(heads) + " |"
    yield "|---" * len(heads) + "|"
    for q in points:
        memory = "not known", "not known"
        if q["extra"] is not None:
            memory = (
                f"{size(q['data'] + q['extra'])} ({1 + q['extra'] / q['data']:.2f} times)",
                f"{vectors(q):.0f} (n + p + d)",
            )
        key = f"{q['n']:,}" if first == "n" else f"{q['p']:,} / {q['d'] - q['p']:,}"
        mark = "" if q["converged"] else f" (gap {q['gap']:.0e})"
        times = f"{seconds(q):.3g}", f"{q['build']:.2g}"
        cells = (key, size(q["data"]), f"{q['kept']:,}", f"{q['passes']}{mark}", *times, *memory)
        yield "| " + " | ".join(cells) + " |"


def size(count):
    return f"{count / MIB:.1f} MiB" if count < 10 * MIB else f"{count / MIB:,.0f} MiB"


def page(results, picture):
    yield "# How it grows"
    yield ""
    yield (
        "Time and memory of a certified fit as the data grows: the graph-guided fused lasso with the smoothed hinge, "
        f"default settings, to a proven relative gap of {TOLERANCE:g}. Every feature is joined to the next three, so "
        "that p features have 3 p edges; every third segment of ten features carries a signal; alpha is "
        f"{SHARE:g} of the one at which all coefficients vanish. Times are processor seconds of one thread and "
        "include building the problem and all certificates; memory is the high-water mark of a process of its own, "
        "without the interpreter and its libraries. Generated by `python benchmarks/growth.py --page docs/growth.md`."
    )
    yield ""
    yield f"![Time and memory against the number of rows; time and memory against the number of features]({picture})"
    yield ""
    yield "## More rows"
    yield ""
    yield (
        "With many rows time grows about in proportion to n, or more slowly: a pass is in proportion to n, and the "
        "passes needed hardly change. For few rows it grows more slowly: more rows save passes, and part of the work "
        "does not depend on n. The powers are slopes of log time against log n, over all sizes and between the last "
        "two. Memory is the data plus some vectors of length n + p + d, d being the outputs of the penalty (features "
        "and edges), plus the matrices of Newton's method where it is tried, which can outweigh small data, plus half "
        "the data again where these are wide, dense and of 2 to 64 MiB: the copy in single precision. The last column "
        "says how many numbers beyond the data there are for each of n + p + d."
    )
    for name, (label, _) in CURVES.items():
        if name == "graph" or name not in results:
            continue
        yield ""
        yield f"**{label}**: time grows as n to the power {powers(results[name])}."
        yield ""
        yield from table(results[name], "n")
    if "graph" in results:
        largest = results["graph"][-1]
        yield ""
        yield "## Large graphs"
        yield ""
        rows, entries = largest["n"], largest["entries"]
        text = f"{rows:,} sparse rows of {entries} entries, and more and more features with three edges each."
        if largest["extra"] is not None:
            text += (
                f" The largest has {largest['p']:,} features and {largest['d'] - largest['p']:,} edges and needs "
                f"{(largest['data'] + largest['extra']) / 1024**3:.1f} GiB."
            )
        yield text + (
            " There a step of the penalty costs more than many rows, so that more rows go between two of them. Passes "
            "grow as well here: the rows stay the same, and say less and less about each feature."
        )
        yield ""
        yield from table(results["graph"], "features / edges")


def draw(results, path):
    """Time against n, memory against n, and both against p."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    accent, grey = "#c2410c", "#6b7280"
    colours = {"dense-100": "#1d4ed8", "dense-1000": "#0f766e", "sparse-1000": accent}
    marks = {"dense-100": "o", "dense-1000": "s", "sparse-1000": "D"}
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.6, 4.1), layout="constrained")
    for axes in (left, middle, right):
        axes.set(xscale="log", yscale="log")
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e7eb", linewidth=0.7)
        axes.set_axisbelow(True)
    for name, colour in colours.items():
        points = results.get(name, [])
        if not points:
            continue
        n, label = [q["n"] for q in points], CURVES[name][0]
        style = {"color": colour, "marker": marks[name], "markersize": 5.5, "linewidth": 1.8}
        left.plot(
            n,
            [seconds(q) for q in points],
            **style,
            label=f"{label}: {slope(points):.2f} ({slope(points[-2:]):.2f})",
        )
        if points[0]["extra"] is not None:
            middle.plot(n, [(q["data"] + q["extra"]) / MIB for q in points], **style, label=label)
            middle.plot(n, [q["data"] / MIB for q in points], color=colour, linestyle=":", linewidth=1.3)
    start = results.get("dense-100") or results.get("sparse-1000")
    if start:
        n = np.array([start[0]["n"], start[-1]["n"]], dtype=float)
        guide = 0.35 * seconds(start[-1]) * n / n[-1]
        left.plot(n, guide, color=grey, linestyle="--", linewidth=1.0, label="in proportion to n")
    middle.plot([], [], color=grey, linestyle=":", linewidth=1.3, label="the data alone")
    left.set(title=f"Seconds to a proven gap of {TOLERANCE:g}", xlabel="rows n", ylabel="processor seconds")
    middle.set(title="Peak memory", xlabel="rows n", ylabel="MiB")
    points = results.get("graph", [])
    if points:
        p = [q["p"] for q in points]
        right.plot(p, [seconds(q) for q in points], color=accent, marker="D", markersize=5.5, linewidth=1.8)
        for q in points:
            memory = "" if q["extra"] is None else f"\n{size(q['data'] + q['extra'])}"
            right.annotate(
                f"{seconds(q):.3g} s, {q['passes']} passes{memory}", (q["p"], seconds(q)),
                xytext=(-9, 4), textcoords="offset points", ha="right", fontsize=8, color="#374151",
            )  # fmt: skip
        right.set_xlim(p[0] / 30, 2 * p[-1])  # room for the words
        right.margins(y=0.15)
        right.set(
            title=f"Large graphs: {points[0]['n']:,} sparse rows",
            xlabel="features p, with 3 p edges",
            ylabel="processor seconds",
        )
    for axes, title in ((left, "power of n, over all sizes (the last two)"), (middle, None)):
        axes.set_ylim(top=20 * axes.get_ylim()[1])  # room for the words
        axes.legend(frameon=False, fontsize=8, loc="upper left", title=title, title_fontsize=8, alignment="left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


# -- the command ------------------------------------------------------------------------------------------------------


def run(curves, file, measured=in_process):
    """Measure all points, writing down what there is after each."""
    results = {}
    for name, points in curves.items():
        results[name] = []
        for point in points:
            made = measured(point)
            results[name].append(made)
            extra = "" if made["extra"] is None else f", {size(made['data'] + made['extra'])}"
            print(
                f"{name:12} n = {made['n']:>9,} p = {made['p']:>9,}: {made['passes']:4} passes, {seconds(made):8.3f} s"
                f"{extra}, gap {made['gap']:.1e}",
                flush=True,
            )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(results, indent=1), encoding="utf-8")
    return results


def write(results, target):
    """The page, and its picture in images/ beside it."""
    draw(results, target.parent / "images" / "growth-curves.png")
    target.write_text("\n".join(page(results, "images/growth-curves.png")) + "\n", encoding="utf-8")
    print(f"wrote {target}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, help="write this page, and its picture in images/ beside it")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "growth.json", help="file of the figures")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--report", action="store_true", help="measure nothing; write the page from --results")
    parser.add_argument("--point", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.point:
        print(json.dumps(measure(**json.loads(options.point))))
        return
    if options.report:
        results = json.loads(options.results.read_text(encoding="utf-8"))
    else:
        curves = QUICK if options.quick else {name: points for name, (_, points) in CURVES.items()}
        results = run(curves, options.results)
    if options.page:
        write(results, options.page)


if __name__ == "__main__":
    main()
