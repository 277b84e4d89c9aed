"""What is read off the records of `separable.py`: ratios and their distribution, true accuracies, page and picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np

OURS = "fenchel_fit"
ESTIMATOR = "fenchel_estimator"
TARGET = 1e-6  # certified of us, judged of the peers
STEPS = 10  # alphas of the short path by which adelie and glmnet also come to a single one
DEFAULTS = {  # tolerances of the packages, of the model that is asked
    "skglm_fit": 1e-4, "celer_fit": 1e-4, "adelie_fit": 1e-7, "glmnet_fit": 1e-7, "sklearn_fit": 1e-4, OURS: TARGET,
}  # fmt: skip
NAMES = {
    "skglm_fit": "skglm", "celer_fit": "celer", "adelie_fit": "adelie", "glmnet_fit": "glmnet",
    "sklearn_fit": "scikit-learn",
}  # fmt: skip
FEW, OTHERS, PATHS, CV, TINY = "supports below n/2 with p > n", "all other single fits", "whole paths", "CV", "tiny"
KINDS = (FEW, OTHERS, PATHS, CV, TINY)
TARGETS = {  # least ratio and median that the project set itself
    FEW: (1.0, 3.0), OTHERS: (0.5, 1.5), PATHS: (0.8, 2.0), CV: (0.8, 2.0),
}  # fmt: skip
_ACCENT, _GREY = "#c2410c", "#6b7280"


# -- one record -------------------------------------------------------------------------------------------------------


def optimum(record) -> np.ndarray:
    """The least value that anybody reached, for every alpha."""
    return np.min([one["values"] for one in record["runs"]], axis=0)


def suboptimality(record, run) -> float:
    """Relative, at the worst alpha."""
    best = optimum(record)
    return float(np.max((np.array(run["values"]) - best) / np.abs(best)))


def seconds_of(record, solver) -> float:
    """A peer's time: the cheapest tolerance that is within the target in every run of it, the median of its runs.

    Ours, if `solver` is one of ours: the median of the runs that were asked for the target, if all certified it.
    """
    by_stop: dict = {}
    for run in (run for run in record["runs"] if run["solver"] == solver and run["word"] == "run"):
        by_stop.setdefault(str(run["stop"]), []).append(run)
    if solver.startswith("fenchel"):
        runs = by_stop.get(str(TARGET), [])
        certified = runs and all(run.get("gap", np.inf) <= TARGET for run in runs)
        return float(np.median([run["seconds"] for run in runs])) if certified else np.inf
    times = [np.inf]
    for runs in by_stop.values():
        if all(suboptimality(record, run) <= TARGET for run in runs):
            times.append(float(np.median([run["seconds"] for run in runs])))
    return min(times)


def best_peer(record) -> tuple[float, str | None]:
    """(seconds, peer) of the fastest; (inf, None) if none got there.

    A peer that was cut off before it was accurate counts with the seconds that it had used by then: it cannot have
    been faster than that.
    """
    peers = {run["solver"] for run in record["runs"] if not run["solver"].startswith("fenchel")}
    times = []
    for peer in sorted(peers):
        seconds = seconds_of(record, peer)
        times.append((seconds if np.isfinite(seconds) else record["cut"].get(peer, np.inf), peer))
    seconds, peer = min(times, default=(np.inf, None))
    return (seconds, peer) if np.isfinite(seconds) else (np.inf, None)


def is_bound(record) -> bool:
    """Whether the best peer's time is only a lower bound, because it was cut off."""
    peer = best_peer(record)[1]
    return peer is not None and not np.isfinite(seconds_of(record, peer))


def ratio(record) -> float:
    """Best peer's seconds over ours: above 1 we are faster. 0 without our certificate, nan without a peer's answer."""
    theirs, ours = best_peer(record)[0], seconds_of(record, OURS)
    if not np.isfinite(theirs):
        return np.nan
    return theirs / ours if np.isfinite(ours) else 0.0


def kind(record) -> str:
    if record["task"] != "fit":
        return {"path": PATHS, "cv": CV, "tiny": TINY}[record["task"]]
    support = next((run["support"] for run in record["runs"] if run["solver"] == OURS), record["p"])
    return FEW if record["p"] > record["n"] and 2 * support < record["n"] else OTHERS


def doubt(record) -> float:
    """How far, relatively, the true optimum may lie below the best value: our certificate says so."""
    bounds = [run["bounds"] for run in record["runs"] if "bounds" in run and len(run["bounds"]) == len(run["values"])]
    if not bounds:
        return np.nan
    best = optimum(record)
    return float(np.max((best - np.max(bounds, axis=0)) / np.abs(best)))


# -- many records -----------------------------------------------------------------------------------------------------


def distribution(ratios) -> dict:
    """Count, least, quartiles, most; nan are left out."""
    ratios = np.array([value for value in ratios if not np.isnan(value)])
    if not ratios.size:
        return {"count": 0}
    low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
    return {"count": ratios.size, "min": ratios.min(), "low": low, "median": middle, "high": high, "max": ratios.max()}


def worst_first(records) -> list:
    """Those with a ratio, the smallest first."""
    return sorted((one for one in records if not np.isnan(ratio(one))), key=ratio)


def row(record) -> str:
    theirs, peer = best_peer(record)
    ours, value = seconds_of(record, OURS), ratio(record)
    shown = "    -" if np.isnan(value) else f"{value:5.2f}"
    bound = " or more" if is_bound(record) else ""
    return (
        f"{shown}  {record['case']:<28} {record['n']:>6} x {record['p']:<6} ours {milliseconds(ours):>9} ms   "
        f"{NAMES.get(peer, 'no peer'):<12} {milliseconds(theirs):>9} ms{bound}"
    )


def summary(records, alone=False):
    """A plain table: the worst first, then the distribution by kind."""
    ranked = worst_first(records) + [one for one in records if np.isnan(ratio(one))]
    yield from (row(record) for record in ranked)
    if alone:
        return
    yield ""
    for name in KINDS:
        found = distribution([ratio(one) for one in records if kind(one) == name])
        if found["count"]:
            yield (
                f"{name:<32} {found['count']:3d}: min {found['min']:.2f}, quartiles {found['low']:.2f} "
                f"{found['median']:.2f} {found['high']:.2f}, max {found['max']:.2f}"
            )


def accuracies(records) -> dict:
    """Peer and task -> the true suboptimalities that it reached at its own default tolerance."""
    found: dict = {}
    for record in records:
        for solver, default in DEFAULTS.items():
            stops = (default, [default, 1])
            runs = [run for run in record["runs"] if run["solver"] == solver and run["stop"] in stops]
            if runs:
                task = "fit" if record["task"] == "tiny" else record["task"]
                found.setdefault((solver, task), []).append(suboptimality(record, runs[0]))
    return found


# -- the page ---------------------------------------------------------------------------------------------------------


def write_page(records, page: Path, computer: dict, half: str):
    images = page.parent / "images"
    images.mkdir(parents=True, exist_ok=True)
    picture(records, images / "benchmarks-separable.png")
    page.write_text("\n".join(text(records, computer, half)) + "\n", encoding="utf-8")
    print(f"wrote {page}")


def text(records, computer, half):
    halves = {
        "report": "These data sets and seeds are set aside for reporting (a9a and p53 also occur in the general "
        "benchmark, with other penalties). ",
        "choose": "**These are the data sets and seeds on which constants are chosen.** ",
    }[half]
    yield "# Few features among many"
    yield ""
    yield (
        "Penalties that treat features or disjoint groups of them one by one (l1, weighted l1, elastic net, groups, "
        "sparse groups, non-negativity) have specialists: skglm, celer, adelie, glmnet and scikit-learn. This page is "
        f"generated by `python benchmarks/separable.py --half {half} --page docs/benchmarks-separable.md`; "
        "`benchmarks/README.md` has the rules. "
        + halves
        + f"One thread, seconds of the processor, on {computer.get('processor', 'an unknown processor')}; **the ratio "
        "within a line is what counts**."
    )  # fmt: skip
    yield ""
    yield (
        "A ratio is the best peer's time divided by `fenchel`'s: above 1 `fenchel` is faster. `fenchel` is timed to a "
        "*certified* relative gap of 1e-6. A peer is run with several tolerances, and the cheapest counts at which its "
        "answer truly is within 1e-6 of the optimum, which the peer itself cannot know. A path counts at its worst "
        "point. Who was far behind was cut off; then the ratio is a lower bound and stands with a ≥."
    )
    yield ""
    yield "## The distribution of ratios"
    yield ""
    yield "![Sorted ratios of the best peer's time to fenchel's](images/benchmarks-separable.png)"
    yield ""
    yield "| kind | problems | min | first quartile | median | third quartile | max | below 1 | target: min, median |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name in KINDS:
        ratios = [ratio(one) for one in records if kind(one) == name]
        found = distribution(ratios)
        if found["count"]:
            cells = " | ".join(number(found[key]) for key in ("min", "low", "median", "high", "max"))
            target = ", ".join(f"{value:g}" for value in TARGETS[name]) if name in TARGETS else ""
            below = sum(value < 1 for value in ratios)
            yield f"| {name} | {found['count']} | {cells} | {below} | {target} |"
    yield ""
    yield "## All problems, the worst first"
    yield ""
    yield "| problem | kind | n x p | loss | penalty | ratio | fenchel, ms | best peer | its ms |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for record in worst_first(records):
        theirs, peer = best_peer(record)
        value = "not certified" if not np.isfinite(seconds_of(record, OURS)) else number(ratio(record))
        more = "≥ " if is_bound(record) else ""
        ours = milliseconds(seconds_of(record, OURS))
        yield (
            f"| {record['case']} | {kind(record)} | {record['n']:,} x {record['p']:,} | {record['loss']} | "
            f"{record['penalty']} | {more}{value} | {ours} | {NAMES.get(peer, peer)} | {more}{milliseconds(theirs)} |"
        )
    yield ""
    yield from estimator(records)
    alone = [record for record in records if np.isnan(ratio(record))]
    if alone:
        yield "No peer takes these, or none came within 1e-6 of the optimum:"
        yield ""
        for record in alone:
            ours = seconds_of(record, OURS)
            shown = f"{milliseconds(ours)} ms" if np.isfinite(ours) else "no certificate either"
            yield f"- {record['case']} ({record['loss']}, {record['penalty']}): `fenchel` {shown}"
        yield ""
    yield from accuracy(records)
    yield from left_out(records)
    found = {NAMES.get(solver, "fenchel"): version for one in records for solver, version in one["versions"].items()}
    yield ""
    yield "Versions: " + ", ".join(f"{name} {version}" for name, version in sorted(found.items())) + "."


def estimator(records):
    found = [record for record in records if np.isfinite(seconds_of(record, ESTIMATOR))]
    if found:
        yield "Tiny problems through `fenchel`'s estimator, which checks its input as scikit-learn's do:"
        yield ""
        yield "| problem | estimator, ms | `solve`, ms | best peer, ms |"
        yield "|---|---|---|---|"
        for record in found:
            times = (seconds_of(record, ESTIMATOR), seconds_of(record, OURS), best_peer(record)[0])
            yield f"| {record['case']} | {' | '.join(milliseconds(time) for time in times)} |"
        yield ""


def accuracy(records):
    """What everybody's own tolerance is worth."""
    doubts = [value for value in map(doubt, records) if np.isfinite(value)]
    yield "## The accuracy that was reached"
    yield ""
    yield (
        "The true relative suboptimality of the answers at each package's *default* tolerance, at the worst point of a "
        "path. The optimum is the least value that anybody reached, and `fenchel`'s bounds prove that it is at most "
        f"{max(doubts, default=np.nan):.0e} above the true one. Cross-validation is judged by the path on all rows at "
        "the same tolerance."
    )
    yield ""
    yield "| package | task | problems | median | worst | within 1e-6 |"
    yield "|---|---|---|---|---|---|"
    for (solver, task), values in sorted(accuracies(records).items()):
        share = f"{sum(value <= TARGET for value in values)} of {len(values)}"
        name = NAMES.get(solver, "fenchel")
        yield f"| {name} | {task} | {len(values)} | {np.median(values):.0e} | {max(values):.0e} | {share} |"
    yield ""


def left_out(records):
    """Why a peer is missing somewhere, once per reason."""
    reasons: dict = {}
    for record in records:
        for solver, why in record["left"].items():
            if solver != ESTIMATOR:
                reasons.setdefault((NAMES.get(solver, solver), why), []).append(record["case"])
    if not reasons:
        return
    yield "## Who is missing where"
    yield ""
    for (name, why), names in sorted(reasons.items()):
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        yield f"- {name}: {why} ({shown})"


def number(value) -> str:
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def milliseconds(seconds) -> str:
    if not np.isfinite(seconds):
        return "-"
    return f"{1e3 * seconds:.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def picture(records, path: Path):
    """Sorted ratios as dots on a logarithmic axis, a colour for each kind, a line at 1."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullLocator

    colours = dict(zip(KINDS, (_ACCENT, "#1d4ed8", "#0f766e", "#7c3aed", "#b45309"), strict=True))
    ranked = worst_first(records)
    values = np.array([max(ratio(one), 1e-3) for one in ranked])
    figure, axes = plt.subplots(figsize=(8.2, 4.2), layout="constrained")
    for name in KINDS:
        places = [k for k, one in enumerate(ranked) if kind(one) == name]
        if places:
            axes.plot(places, values[places], "o", ms=6, color=colours[name], mec="white", mew=0.6, label=name)
    axes.axhline(1, color="#111827", lw=1)
    axes.set_yscale("log")
    ticks = [tick for tick in (0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
             if values.min(initial=1) / 2 <= tick <= 2 * values.max(initial=1)]  # fmt: skip
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks([])
    axes.grid(axis="y", color="#e5e7eb", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.set_xlabel(f"{len(ranked)} problems, sorted")
    axes.set_ylabel("best peer's time / fenchel's certified time")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    figure.savefig(path, dpi=110)
    plt.close(figure)
