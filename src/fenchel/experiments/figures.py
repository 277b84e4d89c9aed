"""The paper's figures redrawn: three panels a row, a row per data set; against seconds and against epochs."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .._validate import AnyArray
from .settings import DEFAULT, LABELS, PAPER, Settings
from .tables import make_grid
from .traces import Traces, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .traces import Trace


_INK, _GREY, _LINES = "#1c2733", "#6b7680", "#e6e8ea"
_STYLES = {
    PAPER: ("#c0392b", "-", 2.6),
    DEFAULT: ("#2a5caa", "-", 2.6),
    "batch-admm": ("#1c2733", (0, (5, 1.5)), 1.8),
    "ol-admm": ("#e08214", "-", 1.6),
    "opg-admm": ("#1b8a5a", (0, (6, 1.5, 1.5, 1.5)), 1.6),
    "rda-admm": ("#8e44ad", "-", 1.6),
    "rda": ("#7f8c8d", (0, (2, 1.2)), 1.8),
    "fobos": ("#16a085", (0, (4, 2)), 1.6),
    "sag": ("#b7950b", "-", 1.6),
    "sdca": ("#6e2c00", (0, (4, 2)), 1.6),
    "asdca": ("#cb4f8b", "-", 1.6),
}
_PANELS = (("excess", "Excess empirical risk"), ("test_loss", "Test loss"), ("test_error", "Test error"))
_AXES = {"seconds": "CPU time (s)", "epoch": "epochs (passes over the data)"}
_NAMES = {"seconds": "time", "epoch": "epochs"}


def check_matplotlib() -> None:
    """Fail before the work, not after it, if nothing can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("the figures need matplotlib: pip install 'fenchel[plot]'") from None


def draw(settings: Settings, traces: Traces, studies: list[dict[str, Any]]) -> dict[str, bytes]:
    """All figures as PNG and SVG, by file name."""
    out: dict[str, bytes] = {}
    for axis in _AXES:
        out |= _both(f"{settings.experiment}-{_NAMES[axis]}", _draw_curves(settings, traces, axis))
    if studies:
        out |= _both(f"{settings.experiment}-studies", _draw_studies(studies))
    return out


def _both(name: str, figure: Figure) -> dict[str, bytes]:
    import matplotlib
    from PIL import Image

    png, small, svg = io.BytesIO(), io.BytesIO(), io.BytesIO()
    figure.savefig(png, format="png")
    # a palette halves the size, and lines and shades need no more colours
    Image.open(png).convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE).save(small, "png", optimize=True)
    # a fixed salt and no date: the same results give the same bytes
    with matplotlib.rc_context({"svg.hashsalt": "fenchel"}):
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return {f"{name}.png": small.getvalue(), f"{name}.svg": svg.getvalue()}


def _figure(rows: int, width: float = 13.2, height: float = 3.7) -> tuple[Figure, AnyArray]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows + 0.75), dpi=120, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    room: Any = figure.get_layout_engine()
    room.set(w_pad=0.08, h_pad=0.08, wspace=0.03, hspace=0.04)
    return figure, figure.subplots(rows, 3, squeeze=False)


# -- curves -----------------------------------------------------------------------------------------


def _draw_curves(settings: Settings, traces: Traces, axis: str) -> Figure:
    figure, panels = _figure(len(settings.data))
    for row, data in zip(panels, settings.data, strict=True):
        for axes, (metric, title) in zip(row, _PANELS, strict=True):
            grid = make_grid(settings, traces, data.name, axis)
            if metric != "excess":
                grid = np.geomspace(1 if axis == "epoch" else grid[-1] / 1000, grid[-1], len(grid))
            mine = [trace for trace in traces.all if trace.dataset == data.name]
            floor = max(trace.optimum.floor for trace in mine) if metric == "excess" else -np.inf
            for curve in traces.curves(data.name):
                _draw_one(axes, traces.of(data.name, curve), curve, axis, metric, grid, floor)
            axes.set_title(data.title, loc="left", fontsize=11.5, color=_INK, fontweight="bold")
            axes.set_title(title, loc="right", fontsize=10.5, color=_GREY)
            axes.set_xlabel(_AXES[axis], fontsize=10)
            axes.set_xlim(grid[0], grid[-1])
            _scale_excess(axes, mine, floor) if metric == "excess" else _scale_test(axes, mine, metric)
            _tidy(axes, "both")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 7), frameon=False, fontsize=9.5,
                  handlelength=2.4, columnspacing=1.4)  # fmt: skip
    return figure


def _draw_one(
    axes: Axes, traces: list[Trace], curve: str, axis: str, metric: str, grid: AnyArray, floor: float
) -> None:
    color, style, width = _STYLES.get(curve, (None, "-", 1.6))
    mean, std = summarise(traces, axis, metric, grid)
    mean = np.maximum(mean, floor)
    ours = curve in (PAPER, DEFAULT)
    line: dict[str, Any] = {"color": color, "linestyle": style, "linewidth": width, "zorder": 4 if ours else 3}
    axes.plot(grid, mean, label=LABELS.get(curve, curve), **line)
    if metric == "excess":
        # on a logarithmic axis mean - std may have no place; the band is as far below the mean as above it
        low, high = np.maximum(mean**2 / (mean + std), floor), mean + std
    else:
        low, high = mean - std, mean + std
    axes.fill_between(grid, low, high, color=color, alpha=0.13, linewidth=0, zorder=2)


def _scale_excess(axes: Axes, traces: list[Trace], floor: float) -> None:
    """A logarithmic axis that ends where the optimum is certified."""
    axes.set_yscale("log")
    axes.set_ylim(0.01 * floor, 2 * max(trace.excess[0] for trace in traces))
    axes.axhline(floor, color=_GREY, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    axes.annotate(
        "optimum certified to here",
        (0.99, floor),
        xycoords=("axes fraction", "data"),
        xytext=(0, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        color=_GREY,
        fontsize=8,
    )


def _scale_test(axes: Axes, traces: list[Trace], metric: str) -> None:
    """A logarithmic axis of time, for most of what can be seen is early; the value at the optimum as a line."""
    best = float(np.mean([getattr(trace.optimum, metric) for trace in traces]))
    seen = np.concatenate([line.get_ydata() for line in axes.get_lines()])
    low, high = min(best, np.nanmin(seen)), min(np.nanmax(seen), max(getattr(trace, metric)[0] for trace in traces))
    axes.axhline(best, color=_GREY, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
    axes.set_xscale("log")
    axes.set_ylim(low - 0.12 * (high - low), high + 0.05 * (high - low))


# -- studies ----------------------------------------------------------------------------------------


def _draw_studies(studies: list[dict[str, Any]]) -> Figure:
    figure, panels = _figure(1, height=3.6)
    left, middle, right = panels[0]
    _draw_blocks(left, studies)
    _draw_bars(middle, studies, "order", "Order of the blocks", "epochs",
               lambda case: (case["order"], _rows(case["correlation"])))  # fmt: skip
    _draw_bars(right, studies, "quadratic", "Quadratic term", "epochs",
               lambda case: ("with it" if case["quadratic"] else "without", ""))  # fmt: skip
    return figure


def _goal(quantity: str, studies: list[dict[str, Any]]) -> str:
    return f"{quantity} to a relative excess of {studies[0]['level']:.0e}"


def _rows(correlation: float) -> str:
    return "independent rows" if correlation == 0 else f"rows with correlation {correlation:g}"


def _gather(
    studies: list[dict[str, Any]],
    name: str,
    key: Callable[..., Any],
    quantity: str,
) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for row in studies:
        if row["study"] == name:
            found.setdefault(key(row["case"]), []).append(row[quantity])
    return found


def _draw_blocks(axes: Axes, studies: list[dict[str, Any]]) -> None:
    found = _gather(studies, "blocks", lambda case: (case["correlation"], case["block_size"]), "iterations")
    for color, correlation in zip(("#2a5caa", "#c0392b"), sorted({key[0] for key in found}), strict=False):
        sizes = sorted(size for which, size in found if which == correlation)
        mean = np.array([np.mean(found[correlation, size]) for size in sizes])
        axes.loglog(sizes, mean, color=color, marker="o", markersize=5, linewidth=2, label=_rows(correlation))
        axes.loglog(sizes, mean[0] * sizes[0] / np.array(sizes), color=color, linewidth=1, linestyle=(0, (1, 2)))
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("rows per block (dotted: in proportion)", fontsize=10)
    axes.legend(frameon=False, fontsize=9)
    _finish_study(axes, "Blocks", _goal("iterations", studies))


def _draw_bars(
    axes: Axes,
    studies: list[dict[str, Any]],
    name: str,
    title: str,
    quantity: str,
    key: Callable[..., Any],
) -> None:
    found = _gather(studies, name, key, quantity)
    labels, groups = list(dict.fromkeys(k[0] for k in found)), list(dict.fromkeys(k[1] for k in found))
    width = 0.7 / len(groups)
    for g, (group, color) in enumerate(zip(groups, ("#2a5caa", "#c0392b"), strict=False)):
        places = np.arange(len(labels)) + (g - (len(groups) - 1) / 2) * width
        values = [np.array(found[label, group]) for label in labels]
        heights = [float(v.mean()) for v in values]
        spread = [float(v.std(ddof=1)) if len(v) > 1 else 0.0 for v in values]
        axes.bar(
            places, heights, 0.92 * width, color=color, label=group or None, yerr=spread, ecolor=_GREY, capsize=2.5
        )
        for x, height, reach in zip(places, heights, spread, strict=True):
            axes.annotate(f"{height:,.0f}", (x, height + reach), xytext=(0, 4), textcoords="offset points", ha="center",
                          fontsize=9, color=_INK)  # fmt: skip
    axes.set_xticks(range(len(labels)), labels)
    axes.margins(y=0.15)
    if any(groups):
        axes.legend(frameon=False, fontsize=9)
    _finish_study(axes, title, _goal(quantity, studies))


def _finish_study(axes: Axes, title: str, what: str) -> None:
    axes.set_title(title, loc="left", fontsize=11.5, color=_INK, fontweight="bold")
    axes.set_ylabel(what, fontsize=10)
    _tidy(axes, "y")


def _tidy(axes: Axes, lines: Literal["both", "x", "y"]) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color("#b8bec4")
    axes.tick_params(labelsize=9, color="#b8bec4", which="both")
    axes.grid(True, axis=lines, which="major", color=_LINES, linewidth=0.8)
    axes.set_axisbelow(True)
