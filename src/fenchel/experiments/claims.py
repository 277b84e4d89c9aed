"""The paper's claims, each with a criterion and the number that this run gives it.

A claim is shown, not shown, or not measured (a curve that it needs was not run). Criteria are fixed here, before
anything is run; what they decide is computed from the traces.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .settings import DEFAULT, LABELS, ONLINE, PAPER, Settings
from .traces import Traces, decades, median, reach, settle

if TYPE_CHECKING:
    from .traces import Trace


@dataclasses.dataclass(frozen=True)
class Criteria:
    """What counts as shown, fixed before anything is run.

    Attributes
    ----------
    straight : float
        The least share of its decades that a linear method loses in the second half of its way.
    decades : float
        The least number of them to speak of a rate at all.
    comparable : float
        The factor between times up to which they are of one size; from there on one is much longer.
    same : float
        The factor between epochs up to which they count as the same.
    levels, fine_levels : tuple of float
        Relative excesses to which methods race, and those that are looked through for one that is reached.
    loss_band, error_band : float
        How near to its last value a test loss or error stays where it has settled.
    speed_up, no_speed_up : float
        By larger blocks: the share of what is possible for nearly orthogonal rows, and the most for correlated ones.
    """

    straight: float = 0.3
    decades: float = 3.0
    comparable: float = 3.0
    same: float = 1.5
    levels: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    fine_levels: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    loss_band: float = 0.01
    error_band: float = 0.02
    speed_up: float = 0.4
    no_speed_up: float = 2.0


ASKED = Criteria()


@dataclasses.dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    key : str
        Its letter.
    text : str
        What the paper says.
    criterion : str
        What would show it.
    measured : str
        What this run gives.
    shown : bool or None
        None where it was not measured.
    values : dict
        The numbers in `measured`.
    """

    key: str
    text: str
    criterion: str
    measured: str
    shown: bool | None
    values: dict[str, Any]

    @property
    def verdict(self) -> str:
        return "not measured" if self.shown is None else "shown" if self.shown else "not shown"


def make_claims(settings: Settings, traces: Traces, studies: Sequence[dict[str, Any]]) -> list[Claim]:
    """The claims that an experiment is about."""
    if settings.experiment == "real":
        return [fastest(traces), settles_first(traces)]
    names = sorted((data for data in settings.data), key=lambda data: data.rows)
    small, large = names[0].name, names[-1].name
    return [
        linear(traces), batch(traces, small, large, studies), blocks(studies, settings.studies.blocks), order(studies),
        quadratic(studies),
    ]  # fmt: skip


# -- (a), (b): artificial data ------------------------------------------------------------------------


def linear(traces: Traces) -> Claim:
    text = "SDCA-ADMM's excess empirical risk falls linearly; that of the online methods does not."
    criterion = (
        f"Linear: from a relative excess of 0.1 to 1e-10 (or to the end of the window) at least {ASKED.decades:g} "
        f"decades are lost, and at least {ASKED.straight:.0%} of them in the second half of the epochs (a straight "
        "line: 50%). "
        "SDCA-ADMM is linear on every data set, no online method is on any. Medians over repetitions."
    )
    values: dict[str, Any] = {}
    yes: list[Any] = []
    no: list[Any] = []
    for dataset in traces.datasets():
        values[dataset] = {}
        for curve in traces.curves(dataset):
            if curve == PAPER or curve in ONLINE:
                total, share = _straightness(traces.of(dataset, curve))
                values[dataset][curve] = {"decades": total, "second_half": share}
                (yes if curve == PAPER else no).append(total >= ASKED.decades and share >= ASKED.straight)
    if not yes or not no:
        return Claim("a", text, criterion, "", None, {})
    measured = _join(
        f"{traces.title(dataset)}, decades (share of the second half): "
        + ", ".join(f"{_label(c)} {v['decades']:.1f} ({v['second_half']:.0%})" for c, v in found.items())
        for dataset, found in values.items()
    )
    return Claim("a", text, criterion, measured, all(yes) and not any(no), values)


def _straightness(traces: list[Trace]) -> tuple[float, float]:
    return median(traces, lambda t: decades(t)[0]), median(traces, lambda t: decades(t)[1])


def batch(traces: Traces, small: str, large: str, studies: Sequence[dict[str, Any]] = ()) -> Claim:
    text = (
        "Batch-ADMM converges linearly too, and is comparable to SDCA-ADMM for a small sample (n = 512); for a large "
        "one (n = 5120) SDCA-ADMM is much faster."
    )
    of_one_size = ASKED.comparable
    criterion = (
        f"Seconds to the smallest relative excess of 1e-2, ..., 1e-6 that SDCA-ADMM reaches in 1/{of_one_size:g} of "
        f"its window: on the small sample Batch-ADMM takes at most {of_one_size:g} times as long (and at least "
        f"1/{of_one_size:g}) and is linear as in (a); on the large one it takes at least {of_one_size:g} times as "
        "long. Medians over repetitions."
    )
    values: dict[str, Any] = {}
    for dataset in (small, large):
        ours, theirs = traces.of(dataset, PAPER), traces.of(dataset, "batch-admm")
        if not ours or not theirs or small == large:
            return Claim("b", text, criterion, "", None, {})
        window = median(theirs, lambda trace: float(trace.seconds[-1]))
        level = next(
            (x for x in ASKED.fine_levels if median(ours, reach, x) <= window / of_one_size),
            ASKED.fine_levels[-1],
        )
        seconds, other = median(ours, reach, level), median(theirs, reach, level)
        reached = math.isfinite(other)
        other = other if reached else window  # at least that long
        total, share = _straightness(theirs)
        values[dataset] = {
            "level": level, "sdca_admm": seconds, "batch_admm": other, "batch_reached": reached,
            "ratio": other / seconds, "batch_decades": total, "batch_second_half": share,
        }  # fmt: skip
    near, far = values[small], values[large]
    comparable = near["batch_reached"] and 1 / of_one_size <= near["ratio"] <= of_one_size
    straight = near["batch_decades"] >= ASKED.decades and near["batch_second_half"] >= ASKED.straight
    measured = _join(
        f"{traces.title(name)}, to {v['level']:.0e}: SDCA-ADMM {_seconds(v['sdca_admm'])}, Batch-ADMM "
        f"{'' if v['batch_reached'] else 'more than '}{v['batch_admm']:.3g} s, a factor of "
        f"{'' if v['batch_reached'] else 'at least '}{v['ratio']:.1f}"
        for name, v in values.items()
    )
    measured += (
        f". {traces.title(small)}: Batch-ADMM loses {near['batch_decades']:.1f} decades, "
        f"{near['batch_second_half']:.0%} of them in the second half"
    )
    tuned = _tuned_rho(studies)
    if tuned:
        values["tuned_rho"] = tuned
        measured += ". With the best rho for each, on the held-out seed: " + _join(
            f"{traces.title(name)}, to {v['level']:.0e}: SDCA-ADMM {v['sdca-admm'][1]:.3g} s (rho "
            f"{v['sdca-admm'][0]:g}), Batch-ADMM {v['batch-admm'][1]:.3g} s (rho {v['batch-admm'][0]:g}), a factor of "
            f"{v['batch-admm'][1] / v['sdca-admm'][1]:.1f}"
            for name, v in tuned.items()
        )
    return Claim("b", text, criterion, measured, comparable and straight and far["ratio"] >= of_one_size, values)


def _tuned_rho(studies: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Best (rho, seconds) of each method on each data set, where both got there."""
    best: dict[str, Any] = {}
    for row in studies:
        if row["study"] == "rho":
            case = row["case"]
            here = best.setdefault(case["dataset"], {"level": row["level"]})
            if row["seconds"] < here.get(case["method"], (0.0, math.inf))[1]:
                here[case["method"]] = (case["rho"], row["seconds"])
    return {name: found for name, found in best.items() if len(found) == 3}


# -- (c), (d): real data ----------------------------------------------------------------------------


def fastest(traces: Traces) -> Claim:
    text = "On real data SDCA-ADMM's empirical risk converges much faster than that of the other methods."
    levels = ", ".join(f"{level:.0e}" for level in ASKED.levels)
    criterion = (
        f"On every data set SDCA-ADMM is the first of the paper's methods to reach each of the relative excesses "
        f"{levels} (seconds, medians over repetitions)."
    )
    measures = {f"to {level:.0e}": functools.partial(reach, level=level) for level in ASKED.levels}
    return _race("c", text, criterion, traces, measures)


def settles_first(traces: Traces) -> Claim:
    text = "On real data SDCA-ADMM's test loss and test error converge faster than those of the other methods."
    criterion = (
        f"Settled: from then on the test loss stays within {ASKED.loss_band:.0%}, the error within "
        f"{ASKED.error_band:.0%}, of the "
        "value at the optimum. On every data set SDCA-ADMM is the first of the paper's methods to settle in both "
        "(seconds, medians over repetitions)."
    )
    measures = {
        "test loss": functools.partial(settle, metric="test_loss", tolerance=ASKED.loss_band),
        "test error": functools.partial(settle, metric="test_error", tolerance=ASKED.error_band),
    }
    return _race("d", text, criterion, traces, measures)


def _race(key: str, text: str, criterion: str, traces: Traces, measures: Mapping[str, Callable[..., Any]]) -> Claim:
    """SDCA-ADMM with the paper's settings against the best of the others, in seconds."""
    values: dict[str, Any] = {}
    for dataset in traces.datasets():
        ours, others = traces.of(dataset, PAPER), _others(traces, dataset)
        if not ours or not others:
            return Claim(key, text, criterion, "", None, {})
        values[dataset] = {}
        for name, measure in measures.items():
            seconds, best = min((median(traces.of(dataset, curve), measure), curve) for curve in others)
            default = traces.of(dataset, DEFAULT)
            values[dataset][name] = {
                "sdca_admm": median(ours, measure), "best_other_seconds": seconds,
                "best_other": best if math.isfinite(seconds) else None,
                "default": median(default, measure) if default else None,
            }  # fmt: skip
    measured = _join(
        f"{traces.title(dataset)}, {name}: {_seconds(v['sdca_admm'])} against "
        + (f"{_seconds(v['best_other_seconds'])} ({_label(v['best_other'])})" if v["best_other"] else "none")
        + (f"; fenchel's default {_seconds(v['default'])}" if v["default"] is not None else "")
        for dataset, found in values.items()
        for name, v in found.items()
    )
    won = {
        f"{traces.title(dataset)}, {name}": v["sdca_admm"] < v["best_other_seconds"]
        for dataset, found in values.items()
        for name, v in found.items()
    }
    measured += f". First in {sum(won.values())} of {len(won)}"
    lost = [where for where, first in won.items() if not first]
    measured += f"; not first: {' / '.join(lost)}" if lost else ""
    return Claim(key, text, criterion, measured, not lost, values)


def _others(traces: Traces, dataset: str) -> list[str]:
    return [curve for curve in traces.curves(dataset) if curve not in (PAPER, DEFAULT)]


# -- (e), (f), (g): studies -------------------------------------------------------------------------


def blocks(studies: Sequence[dict[str, Any]], sizes: Sequence[int]) -> Claim:
    text = (
        "Theorem 1: larger blocks speed up convergence if the rows are nearly orthogonal, and do not if they are "
        "strongly correlated."
    )
    low, high = min(sizes, default=1), max(sizes, default=1)
    most = high / low
    criterion = (
        f"Iterations to the goal with blocks of {low}, divided by iterations with blocks of {high}: at least "
        f"{ASKED.speed_up * most:g} (of {most:g} possible) for independent rows, at most {ASKED.no_speed_up:g} for "
        "correlated ones."
    )
    efforts = _efforts(studies, "blocks", "iterations")
    correlations = sorted({dict(case)["correlation"] for case in efforts})
    if len(correlations) < 2:
        return Claim("e", text, criterion, "", None, {})
    values = {}
    for correlation in correlations:
        one, many = (efforts[_case(correlation=correlation, block_size=size)] for size in (low, high))
        values[f"correlation {correlation:g}"] = {"one": one, "many": many, "speed_up": one / many}
    ups = [v["speed_up"] for v in values.values()]
    measured = _join(
        f"{key}: {_count(v['one'])} iterations with blocks of {low}, {_count(v['many'])} with blocks of {high}, "
        f"{v['speed_up']:.1f} times fewer"
        for key, v in values.items()
    )
    return Claim(
        "e", text, criterion, measured, ups[0] >= ASKED.speed_up * most and ups[-1] <= ASKED.no_speed_up, values
    )


def order(studies: Sequence[dict[str, Any]]) -> Claim:
    text = "Blocks should be drawn at random: cyclic order carries no guarantee of linear convergence."
    criterion = (
        f"Cyclic order needs at least {ASKED.same:g} times the epochs of random order on one of the two problems "
        f"(independent and correlated rows), and random order never {ASKED.same:g} times those of cyclic order."
    )
    efforts = _efforts(studies, "order", "epochs")
    correlations = sorted({dict(case)["correlation"] for case in efforts})
    if not correlations:
        return Claim("f", text, criterion, "", None, {})
    values = {}
    for correlation in correlations:
        values[f"correlation {correlation:g}"] = {
            kind: efforts[_case(correlation=correlation, order=kind)] for kind in ("random", "shuffle", "cyclic")
        }
    measured = _join(
        f"{key}: {_count(v['random'])} epochs drawn at random, {_count(v['shuffle'])} in a new random order each time, "
        f"{_count(v['cyclic'])} in cyclic order"
        for key, v in values.items()
    )
    worse = any(v["cyclic"] >= ASKED.same * v["random"] for v in values.values())
    better = any(v["random"] >= ASKED.same * v["cyclic"] for v in values.values())
    return Claim("f", text, criterion, measured, worse and not better, values)


def quadratic(studies: Sequence[dict[str, Any]]) -> Claim:
    text = "Without the quadratic term in the regulariser SDCA-ADMM converges with almost the same speed."
    criterion = (
        f"Epochs to the goal without it, divided by epochs with it, lie between 1/{ASKED.same:g} and {ASKED.same:g}."
    )
    efforts = _efforts(studies, "quadratic", "epochs")
    if not efforts:
        return Claim("g", text, criterion, "", None, {})
    with_it, without = (efforts[_case(quadratic=there)] for there in (True, False))
    ratio = without / with_it
    measured = f"{_count(with_it)} epochs with it, {_count(without)} without, a ratio of {ratio:.2f}"
    shown = 1 / ASKED.same <= ratio <= ASKED.same
    return Claim("g", text, criterion, measured, shown, {"with": with_it, "without": without, "ratio": ratio})


def _case(**case: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(case.items())


def _efforts(
    studies: Sequence[dict[str, Any]],
    name: str,
    quantity: str,
) -> dict[Any, Any]:
    """The median over repetitions for every case of a study."""
    found: dict[Any, list[Any]] = {}
    for row in studies:
        if row["study"] == name:
            found.setdefault(tuple(row["case"].items()), []).append(row[quantity])
    return {case: sorted(values)[len(values) // 2] for case, values in found.items()}


# -- words ------------------------------------------------------------------------------------------


def _label(curve: str) -> str:
    return LABELS.get(curve, curve)


def _seconds(value: float) -> str:
    return f"{value:.3g} s" if math.isfinite(value) else "not within the window"


def _count(value: float) -> str:
    return f"{value:,.0f}" if math.isfinite(value) else "more than the limit of"


def _join(parts: Iterable[str]) -> str:
    return ". ".join(parts)
