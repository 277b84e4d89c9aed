"""What the pictures share: what a model knows about itself, and how all of them look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from .._validate import AnyArray, Array, Names
from ..solver.result import Result
from ..structure import Graph, Grid, Groups, Tree, as_groups

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colorbar import Colorbar


INK, GREY, PALE, LINES = "#1c2733", "#66707a", "#c3c9ce", "#e6e8ea"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1c2733")
SIGNED = "RdBu_r"

# -- what a model knows -----------------------------------------------------------------------------


Model: TypeAlias = Any  # a result, a path, an estimator that was fitted, or coefficients: asked for what it has


def is_path(model: Model) -> bool:
    return hasattr(model, "alphas") and hasattr(model, "coefs")


def path_of(model: Model) -> Any:
    found = model if is_path(model) else getattr(model, "path_", None)
    if found is None:
        raise ValueError(f"model is {type(model).__name__}; give a Path or a fitted estimator ending in CV")
    return found


def result_of(model: Model) -> Result:
    result = model if isinstance(model, Result) else getattr(model, "result_", None)
    if result is None:
        raise ValueError(f"model is {type(model).__name__}; give a Result, a Path or a fitted estimator")
    return result


def coef_of(model: Model) -> Array:
    """Coefficients (outputs, p) of a result, an estimator, a saved model or an array."""
    for name in ("coef", "coef_"):
        if hasattr(model, name):
            return np.atleast_2d(np.asarray(getattr(model, name), dtype=float))
    try:
        coef = np.asarray(model, dtype=float)
    except (TypeError, ValueError):
        coef = np.empty(0)
    if coef.ndim not in (1, 2) or not coef.size:
        raise ValueError(f"model is {type(model).__name__}; give a Result, a fitted estimator or coefficients")
    return np.atleast_2d(coef)


def tol_of(model: Model) -> float | None:
    tol = getattr(model, "tol", None)
    return tol if isinstance(tol, float) and tol > 0 else None


def groups_of(model: Model, groups: Any) -> Any:
    if groups is not None:
        out: Any = groups
        return out
    from ..models.preparation import find_groups

    penalty = penalty_of(model)
    return None if penalty is None else find_groups(penalty, coef_of(model).shape[1])


def penalty_of(model: Model) -> Any:
    """The penalty of an estimator, for the columns that it was fitted to; None for anything else."""
    penalty = getattr(model, "penalty_", getattr(model, "penalty", None))
    return None if isinstance(penalty, str) else penalty


def fitted_groups(groups: Groups, p: int) -> tuple[Groups, bool]:
    """The groups, and whether they hold the coefficients of all outputs (numbers beyond p)."""
    groups = groups if isinstance(groups, (Groups, Tree)) else Groups(groups)
    groups = as_groups(groups)
    joint = max(group.max() for group in groups) >= p
    return (groups if joint else groups.checked(p)), joint


def graph_of(model: Model) -> Any:
    from ..models.preparation import find_graph

    found = find_graph(penalty_of(model), coef_of(model).shape[1])
    return found if isinstance(found, (Graph, Grid)) else None


def grid_of(model: Model) -> Any:
    """A grid or a matrix's shape in the terms of an estimator's penalty."""
    penalty = penalty_of(model)
    if penalty is None:
        return None
    p = coef_of(model).shape[1]
    # what acts on some of the features only lies on no grid of all of them
    shapes = (part.feature_shape(p) for part, places in penalty.written_parts(None, p) if places is None)
    return next((shape for shape in shapes if shape is not None), None)


def names_of(model: Model, names: Names | None, p: int, structure: Graph | None = None) -> list[str]:
    for source in (names, getattr(structure, "features", None), getattr(model, "feature_names_in_", None)):
        if source is not None:
            source = list(getattr(source, "columns", source))
            if len(source) != p:
                raise ValueError(f"names has {len(source)} entries for {p} features")
            return source
    return [f"feature {j}" for j in range(p)]


def output_labels(model: Model, outputs: int, labels: Sequence[str] | None = None) -> list[str]:
    """Names of the outputs: as given, the tasks or classes of an estimator, or numbers."""
    if labels is not None:
        if len(labels) != outputs:
            raise ValueError(f"labels has {len(labels)} entries for {outputs} outputs")
        return [str(label) for label in labels]
    for name in ("tasks_", "classes_"):
        labels = getattr(model, name, None)
        if labels is not None and len(labels) == outputs:
            return [str(label) for label in labels]
    return [f"output {k}" for k in range(outputs)]


# -- style ------------------------------------------------------------------------------------------


def need_matplotlib() -> None:
    """An ImportError that says what to install."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ImportError("pictures need matplotlib: pip install 'fenchel[plot]'") from None


def new_axes(ax: Axes | None = None, size: tuple[float, float] = (6.4, 4.2)) -> Axes:
    """The axes themselves, or those of a new figure."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=size, layout="constrained")[1]


def titled(ax: Axes, title: str, subtitle: str = "") -> None:
    """A title at the left, and a smaller line below it."""
    ax.set_title(title, loc="left", fontsize=11.5, color=INK, fontweight="bold", pad=20 if subtitle else 6)
    if subtitle:
        ax.annotate(subtitle, (0, 1), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points", va="bottom",
                    color=GREY, fontsize=8.8)  # fmt: skip


def tidy(ax: Axes, lines: Literal["both", "x", "y"] = "both") -> None:
    """Pale lines behind the data, and no box around it."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(PALE)
    ax.tick_params(labelsize=9, color=PALE, which="both")
    ax.grid(True, axis=lines, which="major", color=LINES, linewidth=0.8)
    ax.set_axisbelow(True)


def whole_ticks(axis: Axis) -> None:
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(7, integer=True))


def quiet_decades(axis: Axis, low: float, high: float) -> None:
    """No words between the decades where there are several: they cost half of the drawing."""
    from matplotlib.ticker import NullFormatter

    if high >= 30 * low:
        axis.set_minor_formatter(NullFormatter())


def halo() -> list[Any]:
    """A white rim, so that letters can be read on lines."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=2.2, foreground="white")]


def colour(number: int) -> str:
    return COLOURS[number] if number < len(COLOURS) else GREY


def dots(x: AnyArray) -> dict[str, Any]:
    """A single point is a dot, for it makes no line."""
    return {"marker": "o", "markersize": 5} if len(x) == 1 else {}


def legend(ax: Axes, entries: list[tuple[str, str]], rest: str | None, own: bool) -> None:
    """Names beside the picture if the figure is ours, otherwise where there is room in it."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=colour, linewidth=2.2, label=short(str(name), 28)) for name, colour in entries]
    if rest:
        handles.append(Line2D([], [], color=PALE, linewidth=2.2, label=rest))
    if not handles:
        return
    where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0} if own else {"loc": "upper left"}
    ax.legend(handles=handles, frameon=not own, framealpha=0.85, edgecolor="none", fontsize=8.5, **where)


def quiet_bar(bar: Colorbar, label: str) -> None:
    bar.set_label(label, fontsize=9)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8.5, color=PALE)


def short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "\u2026"
