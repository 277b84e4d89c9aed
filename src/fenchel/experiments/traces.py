"""What was measured: traces of a method on a problem, and what can be read off them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._validate import AnyArray, Array
from ..foundation.numerics import BALANCED

METRICS = ("excess", "test_loss", "test_error")
AXES = ("seconds", "epoch")


@dataclasses.dataclass(frozen=True)
class Optimum:
    """The certified optimum of one repetition: dual <= optimum <= primal, and its test values."""

    primal: float
    dual: float
    test_loss: float
    test_error: float

    @property
    def floor(self) -> float:
        """The excess below which nothing is proven."""
        return max(self.primal - self.dual, BALANCED * abs(self.primal))


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """One method in one repetition; arrays with one entry per evaluation.

    `still` says that it ended because rounding was all that moved, and not with its window.
    """

    dataset: str
    curve: str
    repetition: int
    epoch: Array
    seconds: Array
    objective: Array
    test_loss: Array
    test_error: Array
    optimum: Optimum
    still: bool = False

    @property
    def excess(self) -> Array:
        """Objective minus optimum, not below what is proven; infinite where the method diverged."""
        excess = np.where(np.isfinite(self.objective), self.objective, np.inf) - self.optimum.primal
        return np.maximum(excess, self.optimum.floor)

    @property
    def relative(self) -> Array:
        return self.excess / abs(self.optimum.primal)

    def at(self, axis: str, metric: str, grid: AnyArray) -> Array:
        """The metric on a grid of seconds or epochs.

        Between two evaluations a straight line (of the logarithm, for the excess). After the last one its value, but
        nothing for epochs that the method had no time for.
        """
        known, values = getattr(self, axis), getattr(self, metric)
        if metric == "excess":
            values = np.log10(np.minimum(values, 1e300))
        after = values[-1] if axis == "seconds" or self.still else np.nan
        found = np.interp(grid, known, values, right=after)
        out: Array = 10**found if metric == "excess" else found
        return out


def reach(trace: Trace, level: float, axis: str = "seconds") -> float:
    """When the relative excess first falls to `level`; infinite if it does not."""
    below = np.flatnonzero(trace.relative <= level)
    return float(getattr(trace, axis)[below[0]]) if below.size else np.inf


def settle(trace: Trace, metric: str, tolerance: float, axis: str = "seconds") -> float:
    """From when on a test value stays within `tolerance` (relative) of its value at the optimum."""
    goal = getattr(trace.optimum, metric)
    outside = np.flatnonzero(~(np.abs(getattr(trace, metric) - goal) <= tolerance * abs(goal)))
    if not outside.size:
        return 0.0
    return float(getattr(trace, axis)[outside[-1] + 1]) if outside[-1] + 1 < len(trace.epoch) else np.inf


def decades(trace: Trace, begin: float = 0.1, goal: float = 1e-10) -> tuple[float, float]:
    """Decades of relative excess lost from `begin` to `goal` (or to the end), and the share of them lost in the
    second half of these epochs.

    A straight line on a logarithmic axis loses half of its decades in the second half; 1/t loses 0.3 of a decade,
    however long it runs.
    """
    relative = trace.relative
    first = int(np.argmax(relative <= begin))
    below = np.flatnonzero(relative <= goal)
    last = int(below[0]) if below.size else len(relative) - 1
    if not (relative[first] <= begin and last > first and np.isfinite(relative[last])):
        return 0.0, 0.0
    half = np.searchsorted(trace.epoch, 0.5 * (trace.epoch[first] + trace.epoch[last]), side="right") - 1
    total = float(np.log10(relative[first] / relative[last]))
    second = float(np.log10(relative[half] / relative[last]))
    return total, second / total if total > 0 else 0.0


def median(traces: Sequence[Trace], measure: Callable[..., Any], *args: Any, **kwargs: Any) -> float:
    """The median of a measure over repetitions; infinite ones count."""
    values = sorted(measure(trace, *args, **kwargs) for trace in traces)
    middle = len(values) // 2
    out: float = values[middle] if len(values) % 2 else 0.5 * (values[middle - 1] + values[middle])
    return out


def summarise(traces: Sequence[Trace], axis: str, metric: str, grid: AnyArray) -> tuple[Array, Array]:
    """Mean and standard deviation over repetitions on a grid."""
    values = np.array([trace.at(axis, metric, grid) for trace in traces])
    spread = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(len(grid))
    return values.mean(axis=0), spread


class Traces:
    """All traces of a run, by data set and curve; `titles` names the data sets in words."""

    def __init__(self, traces: Sequence[Trace], titles: dict[str, str] | None = None) -> None:
        self.all, self._titles = list(traces), titles or {}

    def title(self, dataset: str) -> str:
        return self._titles.get(dataset, dataset)

    def of(self, dataset: str, curve: str) -> list[Trace]:
        return [trace for trace in self.all if (trace.dataset, trace.curve) == (dataset, curve)]

    def curves(self, dataset: str) -> list[str]:
        return list(dict.fromkeys(trace.curve for trace in self.all if trace.dataset == dataset))

    def datasets(self) -> list[str]:
        return list(dict.fromkeys(trace.dataset for trace in self.all))
