"""Step sizes of the baselines: the best of a grid, on a seed that no curve uses."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np

from ..methods import METHODS
from .data import Instance
from .measure import run_method
from .settings import Curve, Tuning

# of every method's schedules: the one of its general theory, and the one for strongly convex penalties
_SCHEDULES = ("sqrt", "strong", "linear")


def grid(curve: Curve, tuning: Tuning) -> list[dict[str, Any]]:
    """The options to try."""
    schedules = [name for name in cast(Any, METHODS[curve.method]).SCHEDULES if name in _SCHEDULES]
    return [
        {"schedule": schedule, "report": report, "eta0": eta0}
        for schedule, report, eta0 in itertools.product(schedules, tuning.reports, tuning.eta0)
    ]


def tune(instance: Instance, curve: Curve, tuning: Tuning, window: float, max_epochs: int) -> dict[str, Any]:
    """Search the grid (see :class:`.settings.Tuning`).

    Returns
    -------
    dict
        `tried`, one entry per run with its options, window and objective; `chosen`, the options.
    """

    def attempt(point: dict[str, Any], seconds: float) -> dict[str, Any]:
        return _try(instance, curve, point, seconds, max_epochs, tuning.held_out)

    short = [attempt(point, tuning.share * window) for point in grid(curve, tuning)]
    if not tuning.long:
        return {"tried": short, "chosen": _options(min(short, key=_objective))}
    kinds: dict[tuple[Any, Any], dict[str, Any]] = {}
    for entry in sorted(short, key=_objective):
        kinds.setdefault((entry["schedule"], entry["report"]), entry)
    long = [attempt(_options(entry), window) for entry in kinds.values()]
    best = min(long, key=_objective)
    for step in (-1, 1):
        before, k = best, tuning.eta0.index(best["eta0"]) + step
        while 0 <= k < len(tuning.eta0):
            long.append(attempt(_options(best) | {"eta0": tuning.eta0[k]}, window))
            if not long[-1]["objective"] < best["objective"]:
                break
            best, k = long[-1], k + step
        if best is not before:  # it fell on this side, so it does not on the other
            break
    return {"tried": short + long, "chosen": _options(best)}


def _objective(entry: dict[str, Any]) -> float:
    out: float = entry["objective"]
    return out


def _options(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in ("schedule", "report", "eta0")}


def _try(
    instance: Instance, curve: Curve, point: dict[str, Any], window: float, max_epochs: int, seed: int
) -> dict[str, Any]:
    trace = run_method(
        instance, curve.method, dict(curve.options) | point, seed=seed, window=window, points=8,
        max_epochs=max_epochs,
    )  # fmt: skip
    last = trace["objective"][-1]
    return point | {"window": window, "epochs": trace["epoch"][-1], "objective": last if np.isfinite(last) else np.inf}
