"""Weights on a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array, Ints, Names
from ..structure import Graph, Grid
from .base import (
    GREY,
    INK,
    PALE,
    SIGNED,
    Model,
    coef_of,
    graph_of,
    halo,
    names_of,
    need_matplotlib,
    new_axes,
    quiet_bar,
    short,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def weights_on_graph(
    model: Model,
    graph: Any = None,
    *,
    names: Names | None = None,
    top: int = 10,
    output: int = 0,
    places: Array | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The coefficients on the graph of their features.

    A node has the colour of its weight (a small grey one is zero). The width of an edge is its own weight, dashed if
    that is negative; an edge between two features that are fused to one value is dark.

    Parameters
    ----------
    model : Result, fitted estimator, or coefficients (p,) or (outputs, p)
    graph : Graph, Grid, or edges, optional
        That of an estimator's penalty by default.
    names : list of str, optional
        Of the features; the graph's or the estimator's own by default.
    top : int
        The nodes of largest weight that are named.
    output : int
        Which of several outputs.
    places : array (p, 2), optional
        Where the nodes stand; found from the graph by default, the same for the same graph.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    need_matplotlib()
    from .layout import graph_layout

    coef = coef_of(model)
    if not 0 <= output < len(coef):
        raise ValueError(f"output is {output}; there are {len(coef)} outputs, counted from 0")
    coef = coef[output]
    graph = graph_of(model) if graph is None else graph
    if graph is None:
        raise ValueError("graph is needed: the model does not know any; give a Graph or edges")
    graph = (graph if isinstance(graph, (Graph, Grid)) else Graph(graph, len(coef))).checked(len(coef))
    weights = getattr(graph, "weights", None)
    weights = np.ones(len(graph.edges)) if weights is None else weights
    places = graph_layout(graph.edges, graph.p) if places is None else np.asarray(places, dtype=float)
    if places.shape != (graph.p, 2):
        raise ValueError(f"places has shape {places.shape}; it must be ({graph.p}, 2)")
    ax = new_axes(ax, (7.0, 5.2))
    fused = _draw_edges(ax, places, graph.edges, weights, coef)
    _draw_nodes(ax, places, coef)
    _name_nodes(ax, places, coef, names_of(model, names, len(coef), graph), top)
    ax.set_aspect("equal", adjustable="datalim")  # the title stays above a flat graph
    ax.margins(0.06)
    ax.set_axis_off()
    live = f"{np.count_nonzero(coef):,} of {len(coef):,} weights are not zero"
    titled(ax, "Weights on their graph", f"{live}, {fused:,} of {len(weights):,} edges are fused")
    return ax


def _draw_edges(ax: Axes, places: Array, edges: Ints, weights: Array, coef: Array) -> int:
    """Draws the edges; returns how many join two equal (or opposite) weights that are not zero."""
    from matplotlib.collections import LineCollection

    if not len(edges):
        return 0
    first, second = coef[edges[:, 0]], coef[edges[:, 1]]
    fused = (first == np.where(weights < 0, -second, second)) & (first != 0)
    size = np.abs(weights) / max(float(np.abs(weights).max()), 1e-300)
    thin = float(np.clip(12 / np.sqrt(len(edges)), 0.4, 1.4))
    for dark in (False, True):
        for negative in (False, True):
            some = (fused == dark) & ((weights < 0) == negative)
            if not some.any():
                continue
            width = thin * (0.35 + 0.65 * size[some]) * (2.0 if dark else 1.0)
            style = (0, (3, 2)) if negative else "solid"
            lines = LineCollection(places[edges[some]], colors=INK if dark else PALE, linewidths=width,
                                   linestyles=style, alpha=0.85 if dark else 0.6, zorder=2 if dark else 1)  # fmt: skip
            ax.add_collection(lines)
    return int(np.count_nonzero(fused))


def _draw_nodes(ax: Axes, places: Array, coef: Array) -> None:
    zero = coef == 0
    unit = float(np.clip(9000 / len(coef), 6, 90))
    ax.scatter(places[zero, 0], places[zero, 1], s=0.3 * unit, color="white", edgecolors=PALE, linewidths=0.8, zorder=3)
    largest = float(np.abs(coef).max()) or 1.0
    dots = ax.scatter(
        places[~zero, 0],
        places[~zero, 1],
        s=unit,
        c=coef[~zero],
        cmap=SIGNED,
        vmin=-largest,
        vmax=largest,
        edgecolors=GREY,
        linewidths=0.6 if unit > 20 else 0.2,
        zorder=4,
    )
    bar = ax.figure.colorbar(dots, ax=ax, shrink=0.7, pad=0.01, aspect=28)
    quiet_bar(bar, "weight")


def _name_nodes(ax: Axes, places: Array, coef: Array, names: list[str], top: int) -> None:
    """The names of the largest, each at the side of its node where it covers least."""
    order = np.argsort(-np.abs(coef), kind="stable")[: max(top, 0)]
    box = ax.get_position()
    figure: Any = ax.figure  # a part of a figure knows no inches, and is not drawn on
    inches = np.array([box.width, box.height]) * figure.get_size_inches()
    points = places * np.min(72 * inches / np.maximum(np.ptp(places, axis=0) * 1.12, 1.0))
    taken: list[Array] = []
    for k in order[coef[order] != 0]:
        text = short(str(names[k]), 24)
        size = np.array([4.6 * len(text), 9.0])
        # which way the name goes from the node, and where its lower left corner comes to stand
        sides = [((1, 0), "left", "center"), ((-1, 0), "right", "center"), ((0, 1), "center", "bottom"),
                 ((0, -1), "center", "top")]  # fmt: skip
        corners = [points[k] + 6 * np.array(way) + size * (np.array(way) - 1) / 2 for way, _, _ in sides]
        rooms = [np.array([corner, corner + size]) for corner in corners]
        covered = [_covered(room, points, taken) for room in rooms]
        best = int(np.argmin(covered))
        taken.append(rooms[best])
        way, across, upright = sides[best]
        ax.annotate(text, places[k], xytext=(6 * way[0], 6 * way[1]), textcoords="offset points", ha=across,
                    va=upright, fontsize=8, color=INK, zorder=5, path_effects=halo())  # fmt: skip


def _covered(room: Array, points: Array, taken: list[Array]) -> int:
    """Nodes under a rectangle, and (which is worse) its overlap with names that are there already."""
    nodes = int(np.count_nonzero(np.all((points > room[0] - 3) & (points < room[1] + 3), axis=1)))
    shared = [np.prod(np.maximum(np.minimum(room[1], one[1]) - np.maximum(room[0], one[0]), 0)) for one in taken]
    return nodes + 10 * sum(bool(area > 0) for area in shared)
