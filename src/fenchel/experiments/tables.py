"""CSV files, tidy: one observation a row, one variable a column."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array
from .settings import PAPER, Settings
from .traces import AXES, METRICS, Traces, summarise

if TYPE_CHECKING:
    from ..experiments.claims import Claim


def _csv(head: tuple[str, ...], rows: Iterable[Iterable[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return buffer.getvalue()


def _cell(value: float | str) -> int | str:
    if isinstance(value, (float, np.floating)):
        return f"{value:.10g}"
    return value


def curves(traces: Traces) -> str:
    """Every evaluation of every run."""
    head = ("dataset", "method", "repetition", "epoch", "seconds", "objective", "excess", "test_loss", "test_error")

    def rows() -> Iterator[tuple[Any, ...]]:
        for trace in traces.all:
            columns = (trace.epoch, trace.seconds, None, trace.excess, trace.test_loss, trace.test_error)
            for k in range(len(trace.epoch)):
                cells = [f"{trace.objective[k]:.16g}" if column is None else column[k] for column in columns]
                yield (trace.dataset, trace.curve, trace.repetition, *cells)

    return _csv(head, rows())


def make_grid(settings: Settings, traces: Traces, dataset: str, axis: str, parts: int = 200) -> Array:
    """Where curves are averaged: the window, or the epochs that SDCA-ADMM had in it, in so many parts."""
    if axis == "seconds":
        return np.linspace(0.0, settings.dataset(dataset).window, parts + 1)
    curve = PAPER if traces.of(dataset, PAPER) else traces.curves(dataset)[0]
    last = min(trace.epoch[-1] for trace in traces.of(dataset, curve))
    return np.unique(np.linspace(0, float(last), parts + 1).round().astype(int))


def summary(settings: Settings, traces: Traces) -> str:
    """Mean and standard deviation over repetitions, on a common grid of seconds and of epochs."""
    head = ("dataset", "method", "axis", "x", "metric", "mean", "std", "repetitions")

    def rows() -> Iterator[tuple[Any, ...]]:
        for dataset in traces.datasets():
            for axis in AXES:
                grid = make_grid(settings, traces, dataset, axis)
                for curve in traces.curves(dataset):
                    these = traces.of(dataset, curve)
                    for metric in METRICS:
                        mean, std = summarise(these, axis, metric, grid)
                        for x, m, s in zip(grid, mean, std, strict=True):
                            if np.isfinite(m):
                                yield dataset, curve, axis, x, metric, m, s, len(these)

    return _csv(head, rows())


def tuning(tuned: dict[tuple[str, str], Any]) -> str:
    """Every point of every grid that was tried, and which one was chosen."""
    head = ("dataset", "method", "schedule", "report", "eta0", "window", "epochs", "objective", "chosen")

    def rows() -> Iterator[tuple[Any, ...]]:
        for (dataset, curve), found in tuned.items():
            longest = max(entry["window"] for entry in found["tried"])
            for entry in found["tried"]:
                is_it = entry["window"] == longest and all(entry[k] == v for k, v in found["chosen"].items())
                cells = (entry[key] for key in head[2:-1])
                yield (dataset, curve, *cells, int(is_it))

    return _csv(head, rows())


def studies(rows: list[dict[str, Any]]) -> str:
    """What the small experiments took; a variable that a study does not set is left blank."""
    cases = ("dataset", "method", "correlation", "block_size", "order", "quadratic", "rho")
    results = ("level", "epochs", "iterations", "seconds")

    def lines() -> Iterator[tuple[Any, ...]]:
        for row in rows:
            case = (row["case"].get(key, "") for key in cases)
            yield (row["study"], row["repetition"], *case, *(row.get(key, "") for key in results))

    return _csv(("study", "repetition", *cases, *results), lines())


def claims(found: list[Claim]) -> str:
    """The claims with their numbers, as JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(item) for key, item in value.items()}
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps([plain(dataclasses.asdict(claim)) for claim in found], indent=1)
