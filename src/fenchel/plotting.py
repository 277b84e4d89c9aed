"""Pictures of answers and of how they were found, with matplotlib.

Every function takes what it is about (a :class:`fenchel.Result`, a :class:`fenchel.Path`, a fitted estimator, …),
returns a matplotlib Axes and draws on `ax` if it is given. Without `ax` it makes a figure; nothing else of pyplot's
state is touched. Titles stand at the left: ``ax.set_title("mine", loc="left")`` replaces one.

Colours are told apart by the colour-blind (Okabe and Ito's palette; red and blue for signs). Of many features or
groups only the largest get a colour and a name.
"""

from __future__ import annotations

import numpy as np

from ._plotting_base import (
    COLOURS,
    GREY,
    INK,
    LINES,
    PALE,
    SIGNED,
    coef_of,
    colour,
    dots,
    fitted_groups,
    graph_of,
    grid_of,
    groups_of,
    halo,
    is_path,
    legend,
    names_of,
    need_matplotlib,
    new_axes,
    output_labels,
    path_of,
    quiet_bar,
    quiet_decades,
    result_of,
    short,
    tidy,
    titled,
    tol_of,
    whole_ticks,
)  # fmt: skip
from .structure import Graph, Grid

_FLOOR = 1e-16  # of a relative gap, so that 0 has a place on a logarithmic axis


# -- convergence ------------------------------------------------------------------------------------


def convergence(model, *, against: str = "epochs", tol: float | None = None, ax=None):
    """The certified relative gap, certificate by certificate.

    Parameters
    ----------
    model : Result, fitted estimator, Path, or dict of these by name
        Along a path the work of its points is added up, and each alpha has a line of its own.
    against : {"epochs", "seconds"}
    tol : float, optional
        Drawn as the goal; known for a Path and an estimator.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    need_matplotlib()
    if against not in ("epochs", "seconds"):
        raise ValueError(f"against is {against!r}; it must be 'epochs' or 'seconds'")
    several = isinstance(model, dict)
    models = model if several else {None: model}
    if not models:
        raise ValueError("model is an empty dict; give at least one Result")
    ax = new_axes(ax)
    tracks = {name: _track(one, against) for name, one in models.items()}
    few = {"marker": "o", "markersize": 3.5} if max(len(x) for x, _ in tracks.values()) <= 60 else {}
    for k, (name, one) in enumerate(models.items()):
        ax.plot(*tracks[name], color=COLOURS[k % len(COLOURS)], linewidth=1.9, label=name, **few)
        tol = tol_of(one) if tol is None else tol
    ax.set_yscale("log")
    quiet_decades(ax.yaxis, *ax.get_ylim())
    ax.set_xlabel("epochs (passes over the data)" if against == "epochs" else "seconds")
    ax.set_ylabel("certified relative gap")
    tidy(ax)
    if against == "epochs":
        whole_ticks(ax.xaxis)
    if tol:
        ax.axhline(tol, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        ax.annotate(f"goal {tol:.0e}", (0.008, tol), xycoords=("axes fraction", "data"), xytext=(0, 3),
                    textcoords="offset points", color=GREY, fontsize=8.5, path_effects=halo())  # fmt: skip
    if several:
        ax.legend(frameon=False, fontsize=9)
    titled(ax, "Certified convergence", "" if several else _story(model))
    return ax


def _track(model, against):
    """Work and gap of every certificate; a break between the points of a path."""
    results = model.results if is_path(model) else [result_of(model)]
    xs, gaps, before = [], [], 0.0
    for result in results:
        history = result.history
        if not len(history):
            raise ValueError(f"{result!r} has no history; give a Result of fenchel.solve")
        x = history.epoch if against == "epochs" else history.seconds
        gap = history.relative_gap
        if result.relative_gap < gap[-1]:  # polished after its last certificate
            end = result.epochs if against == "epochs" else result.seconds
            x, gap = np.append(x, max(end, x[-1])), np.append(gap, result.relative_gap)
        xs += [before + x, [np.nan]]
        gaps += [np.where(np.isfinite(gap), np.maximum(gap, _FLOOR), np.nan), [np.nan]]
        before += result.epochs if against == "epochs" else result.seconds
    return np.concatenate(xs)[:-1], np.concatenate(gaps)[:-1]


def _story(model):
    if is_path(model):
        return (f"{len(model)} alphas, {model.epochs.sum():,} epochs, {model.seconds.sum():.2f} s; largest gap "
                f"{model.relative_gaps.max():.1e}")  # fmt: skip
    result = result_of(model)
    proof = f"relative gap {result.relative_gap:.1e}" if result.certified else "no certificate"
    return f"{result.status}: {proof} after {result.epochs:,} epochs, {result.seconds:.2f} s"


# -- paths ------------------------------------------------------------------------------------------


def path(model, *, groups=None, names=None, labels=None, top: int = 7, ax=None):
    """The coefficients along a regularisation path, coloured by group.

    Parameters
    ----------
    model : Path, or fitted cross-validating estimator
    groups : Groups, or what makes one, optional
        Those of an estimator's penalty by default; without groups each feature has its own colour. A feature of
        several groups takes the colour of the largest.
    names : list of str, optional
        Of the features; an estimator's own by default.
    labels : list of str, optional
        Of the outputs, where there are several; the classes or tasks of an estimator by default.
    top : int
        The largest groups (or features) get a colour and a name, the others are grey.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    need_matplotlib()
    found, groups = path_of(model), groups_of(model, groups)
    coefs = found.coefs.reshape(len(found), -1)
    p = found.coefs.shape[-1]
    classes, titles, how = _classes(model, coefs, p, groups, names, labels)
    size = np.array([np.linalg.norm(coefs[:, classes == k], axis=1).max(initial=0.0) for k in range(len(titles))])
    best = [k for k in np.argsort(-size, kind="stable")[: max(top, 0)] if size[k] > 0]
    own = ax is None
    ax = new_axes(ax, (7.2, 4.4))
    x, zero_at = _log_alphas(found.alphas)
    _draw_rest(ax, x, coefs[:, ~np.isin(classes, best) & coefs.any(axis=0)])
    for number, k in reversed(list(enumerate(best))):
        lines = coefs[:, (classes == k) & coefs.any(axis=0)]
        ax.plot(x, lines, color=colour(number), linewidth=1.6, zorder=3, **dots(x))
    _mark_unproven(ax, found, x)
    _alpha_axis(ax, x, zero_at)
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    ax.set_ylabel("coefficient")
    tidy(ax)
    rest = int(np.count_nonzero(size > 0)) - len(best)
    entries = [(titles[k], colour(number)) for number, k in enumerate(best)]
    legend(ax, entries, f"{rest} other {how}" if rest else None, own)
    if not entries:
        ax.set_ylim(-1, 1)
        ax.annotate("all coefficients are zero", (0.5, 0.55), xycoords="axes fraction", ha="center", color=GREY)
    titled(ax, "Regularisation path", _proof(found))
    return ax


def _classes(model, coefs, p, groups, names, labels):
    """For every coefficient the number of its group (or its own), the groups' names, and what they are called."""
    outputs = coefs.shape[1] // p
    if groups is None:
        names = names_of(model, names, p)
        titles = [str(name) for name in names]
        if outputs > 1:
            labels = output_labels(model, outputs, labels)
            titles = [f"{name} ({label})" for label in labels for name in names]
        return np.arange(outputs * p), titles, "features" if outputs == 1 else "coefficients"
    groups, joint = fitted_groups(groups, p)
    largest = np.abs(coefs).max(axis=0)
    width = coefs.shape[1] if joint else p
    weight = largest if joint else largest.reshape(outputs, p).max(axis=0)
    norm = np.array([np.linalg.norm(weight[group]) for group in groups])
    owner = np.full(width, len(groups))
    for k in np.argsort(norm, kind="stable"):  # the largest comes last and wins
        owner[groups.members[k]] = k
    owner = owner if joint else np.tile(owner, outputs)
    return owner, [*groups.names, "in no group"], "groups"


def _draw_rest(ax, x, lines):
    """Many lines at once."""
    from matplotlib.collections import LineCollection

    if not lines.shape[1]:
        return
    if len(x) == 1:
        ax.plot(np.repeat(x, lines.shape[1]), lines[0], "o", color=PALE, markersize=4)
        return
    faint = max(0.25, min(0.9, 40 / lines.shape[1]))
    ax.add_collection(
        LineCollection([np.column_stack([x, line]) for line in lines.T], colors=PALE, linewidths=0.9, alpha=faint)
    )
    ax.update_datalim(np.array([[x[0], lines.min()], [x[-1], lines.max()]]))


def _mark_unproven(ax, found, x):
    late = ~found.converged
    if late.any():
        ax.plot(x[late], np.full(late.sum(), 0.02), "x", color=COLOURS[1], markersize=5, clip_on=False,
                transform=ax.get_xaxis_transform(), zorder=4)  # fmt: skip


def _proof(found):
    text = f"{len(found)} alphas" if len(found) > 1 else "1 alpha"
    late = int(np.count_nonzero(~found.converged))
    if not late:
        return f"{text}, {'each ' if len(found) > 1 else ''}certified to a relative gap of {found.tol:.0e}"
    worst = found.relative_gaps.max()
    rest = f"largest relative gap {worst:.1e}" if np.isfinite(worst) else "some without a bound"
    return f"{text}, {late} (crosses) not certified to {found.tol:.0e}; {rest}"


def _log_alphas(alphas):
    """alphas for a logarithmic axis, and where alpha = 0 is drawn: at a decade below the smallest."""
    positive = alphas[alphas > 0]
    if positive.size == len(alphas):
        return alphas, None
    low = 10.0 ** np.floor(np.log10(positive[-1] if positive.size else 1.0) - 0.5)
    return np.where(alphas > 0, alphas, low), low


def _alpha_axis(ax, x, zero_at=None):
    """Strong penalties at the left."""
    ax.set_xscale("log")
    low, high = x.min(), x.max()
    if low == high:
        low, high = low / 3, high * 3
    margin = (high / low) ** 0.015
    ax.set_xlim(high * margin, low / margin)
    quiet_decades(ax.xaxis, low, high)
    ax.set_xlabel("alpha (a weaker penalty to the right)")
    if zero_at is not None:
        from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation

        plain = LogFormatterSciNotation()
        plain.set_axis(ax.xaxis)

        def name(value, _):
            return "0" if np.isclose(value, zero_at) else plain(value) if value > zero_at else ""

        ax.xaxis.set_major_formatter(FuncFormatter(name))
        ax.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


# -- groups -----------------------------------------------------------------------------------------


def group_norms(model, groups=None, *, top: int | None = None, ax=None):
    """How much each group weighs: the Euclidean norm of its coefficients.

    Parameters
    ----------
    model : Result, fitted estimator, coefficients, or Path
        Along a path each group is a line.
    groups : Groups, or what makes one, optional
        Those of an estimator's penalty by default.
    top : int, optional
        Groups to name, 15 bars or 7 lines by default.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    need_matplotlib()
    groups = groups_of(model, groups)
    if groups is None:
        raise ValueError("groups is needed: the model does not know any")
    if is_path(model):
        return _norm_lines(model, groups, 7 if top is None else top, ax)
    coef = coef_of(model)
    norms, nonzero, groups = _norms(coef, groups)
    top = 15 if top is None else top
    order = np.argsort(-norms, kind="stable")
    order = order[norms[order] > 0]
    shown = order[:top]
    ax = new_axes(ax, (6.4, max(1.9, 1.25 + 0.25 * max(len(shown), 3))))
    places = np.arange(len(shown))
    ax.barh(places, norms[shown], 0.68, color=COLOURS[0])
    for place, k in zip(places, shown, strict=True):
        ax.annotate(f"{nonzero[k]} of {groups.sizes[k]}", (norms[k], place), xytext=(4, 0), textcoords="offset points",
                    va="center", fontsize=8, color=GREY)  # fmt: skip
    ax.set_yticks(places, [short(groups.names[k], 32) for k in shown])
    ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    ax.set_xlim(0, 1.16 * norms.max() or 1.0)
    ax.set_xlabel("norm of the coefficients (and features that are not zero)")
    tidy(ax, "x")
    ax.tick_params(axis="y", length=0)
    live = f"{len(order)} of {len(groups)} groups are not zero"
    if not len(order):
        ax.annotate("all groups are zero", (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=GREY)
    titled(ax, "Group norms", live + (f", the largest {len(shown)} shown" if len(order) > len(shown) else ""))
    return ax


def _norms(coef, groups):
    groups, joint = fitted_groups(groups, coef.shape[1])
    coef = coef.reshape(1, -1) if joint else coef
    live = coef.any(axis=0)
    norms = np.array([np.linalg.norm(coef[:, group]) for group in groups])
    return norms, np.array([np.count_nonzero(live[group]) for group in groups]), groups


def _norm_lines(model, groups, top, ax):
    found = path_of(model)
    norms = np.array([_norms(np.atleast_2d(coef), groups)[0] for coef in found.coefs])
    groups = fitted_groups(groups, found.coefs.shape[-1])[0]
    size = norms.max(axis=0)
    best = [k for k in np.argsort(-size, kind="stable")[:top] if size[k] > 0]
    own = ax is None
    ax = new_axes(ax, (7.2, 4.4))
    x, zero_at = _log_alphas(found.alphas)
    _draw_rest(ax, x, norms[:, [k for k in range(len(groups)) if k not in best and size[k] > 0]])
    for number, k in enumerate(best):
        ax.plot(x, norms[:, k], color=colour(number), linewidth=1.9, zorder=3, **dots(x))
    _mark_unproven(ax, found, x)
    _alpha_axis(ax, x, zero_at)
    ax.set_ylabel("norm of the group's coefficients")
    ax.set_ylim(bottom=0)
    tidy(ax)
    rest = int(np.count_nonzero(size > 0)) - len(best)
    entries = [(groups.names[k], colour(number)) for number, k in enumerate(best)]
    legend(ax, entries, f"{rest} other groups" if rest else None, own)
    titled(ax, "Group norms along the path", _proof(found))
    return ax


# -- grids ------------------------------------------------------------------------------------------


def weights_on_grid(model, grid=None, *, labels=None, ax=None):
    """The coefficients where their features stand: a curve, an image, or the slices of a volume.

    Parameters
    ----------
    model : Result, fitted estimator, or coefficients (p,) or (outputs, p)
        Several outputs (classes, tasks) are drawn side by side.
    grid : Grid, shape, or boolean mask, optional
        That of an estimator's penalty by default.
    labels : list of str, optional
        Of the outputs; the classes or tasks of an estimator by default.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    need_matplotlib()
    grid = _as_grid(grid_of(model) if grid is None else grid)
    coef = coef_of(model)
    if coef.shape[1] != grid.p:
        raise ValueError(
            f"there are {coef.shape[1]} coefficients, but {grid!r} has {grid.p} cells; give the coefficients that lie "
            "on the grid, as an array"
        )
    labels = output_labels(model, len(coef), labels)
    shape = tuple(size for size in grid.shape if size > 1) or (1,)
    if len(shape) > 3:
        raise ValueError(f"{grid!r} has {len(shape)} dimensions; give the weights of a part of it, up to three")
    live = f"{np.count_nonzero(coef):,} of {coef.size:,} weights are not zero"
    if len(shape) == 1:
        ax = _draw_line(grid, coef, labels, ax)
        titled(ax, "Weights on their line", live)
        return ax
    tiles, titles = [], []
    for label, one in zip(labels, coef, strict=True):
        image = grid.image(one).reshape(shape)
        for k, slice_ in enumerate(image if len(shape) == 3 else image[None]):
            tiles.append(slice_)
            part = [label] if len(coef) > 1 else []
            titles.append(", ".join(part + ([f"slice {k}"] if len(shape) == 3 else [])))
    ax = _draw_tiles(tiles, titles, grid, ax)
    titled(ax, "Weights on their grid", live)
    return ax


def _draw_line(grid, coef, labels, ax):
    own = ax is None
    ax = new_axes(ax, (7.2, 3.8))
    x = np.arange(max(grid.shape))
    for k, one in enumerate(coef):
        y = grid.image(one).ravel()
        named = k < len(COLOURS)
        ax.step(x, y, where="mid", color=colour(k) if named else PALE, linewidth=1.7, zorder=3 if named else 2,
                **dots(x))  # fmt: skip
    ax.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    ax.set_xlabel("position")
    ax.set_ylabel("weight")
    tidy(ax)
    if len(coef) > 1:
        rest = len(coef) - len(COLOURS)
        entries = [(label, colour(k)) for k, label in enumerate(labels[: len(COLOURS)])]
        legend(ax, entries, f"{rest} others" if rest > 0 else None, own)
    return ax


def _draw_tiles(tiles, titles, grid, ax):
    """One image, the tiles in rows; cells outside the mask are grey, those between tiles white."""
    from matplotlib.colors import ListedColormap

    height, width = tiles[0].shape
    across = _tiles_across(len(tiles), height, width)
    down = -(-len(tiles) // across)
    space = max(1, round(0.16 * min(height, width))) if len(tiles) > 1 else 0
    canvas = np.full((down * (height + space) - space, across * (width + space) - space), np.nan)
    outside = np.zeros(canvas.shape, dtype=bool)
    corners = []
    for k, tile in enumerate(tiles):
        row, column = (k // across) * (height + space), (k % across) * (width + space)
        canvas[row : row + height, column : column + width] = tile
        outside[row : row + height, column : column + width] = np.isnan(tile)
        corners.append((column - 0.5, row - 0.5))
    tall, wide = canvas.shape
    ax = new_axes(ax, (min(8.0, 1.6 + 4.2 * np.sqrt(wide / tall)), min(7.0, 1.2 + 4.0 * np.sqrt(tall / wide))))
    largest = float(np.nanmax(np.abs(canvas))) or 1.0
    ax.imshow(np.where(outside, 1.0, np.nan), cmap=ListedColormap([LINES]), interpolation="nearest")
    image = ax.imshow(canvas, cmap=SIGNED, vmin=-largest, vmax=largest, interpolation="nearest")
    if len(tiles) == 1:
        _cell_ticks(ax)
    else:
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_ylim(tall - 0.5, -0.5 - space)  # room for the names of the first row
    from matplotlib.patches import Rectangle

    size = float(np.clip(60 / across, 5.5, 8.5))
    for (x, y), title in zip(corners, titles, strict=True):
        ax.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor=PALE, linewidth=0.8, clip_on=False))
        if title:
            ax.annotate(short(title, 16), (x, y), xytext=(1, 1.5), textcoords="offset points", fontsize=size,
                        color=GREY, va="bottom")  # fmt: skip
    for spine in ax.spines.values():
        spine.set_visible(False)
    # beside the image itself, however high that is
    bar = ax.figure.colorbar(image, cax=ax.inset_axes([1.03, 0.0, 0.03, 1.0]))
    quiet_bar(bar, "weight")
    return ax


def _tiles_across(count, height, width):
    """About 1.6 times as wide as high, and few places left empty."""
    ideal = np.sqrt(1.6 * count * height / width)

    def badness(across):
        empty = -count % across
        return abs(np.log(across / ideal)) + 1.5 * empty / count

    return min(range(1, count + 1), key=badness)


def _cell_ticks(ax):
    for axis in (ax.xaxis, ax.yaxis):
        whole_ticks(axis)
    ax.set_xlabel("column")
    ax.set_ylabel("row")
    ax.tick_params(labelsize=9, color=PALE, length=2.5)


def _as_grid(grid):
    if grid is None:
        raise ValueError("grid is needed: the model does not know any; give a Grid, a shape or a mask")
    if isinstance(grid, Grid):
        return grid
    if isinstance(grid, np.ndarray) and grid.dtype == bool:
        return Grid(grid.shape, grid)
    return Grid(grid)


# -- graphs -----------------------------------------------------------------------------------------


def weights_on_graph(model, graph=None, *, names=None, top: int = 10, output: int = 0, places=None, ax=None):
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
    from ._layout import graph_layout

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
    ax.set_aspect("equal")
    ax.margins(0.06)
    ax.set_axis_off()
    live = f"{np.count_nonzero(coef):,} of {len(coef):,} weights are not zero"
    titled(ax, "Weights on their graph", f"{live}, {fused:,} of {len(weights):,} edges are fused")
    return ax


def _draw_edges(ax, places, edges, weights, coef):
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


def _draw_nodes(ax, places, coef):
    zero = coef == 0
    unit = float(np.clip(9000 / len(coef), 6, 90))
    ax.scatter(*places[zero].T, s=0.3 * unit, color="white", edgecolors=PALE, linewidths=0.8, zorder=3)
    largest = float(np.abs(coef).max()) or 1.0
    dots = ax.scatter(*places[~zero].T, s=unit, c=coef[~zero], cmap=SIGNED, vmin=-largest, vmax=largest,
                      edgecolors=GREY, linewidths=0.6 if unit > 20 else 0.2, zorder=4)  # fmt: skip
    bar = ax.figure.colorbar(dots, ax=ax, shrink=0.7, pad=0.01, aspect=28)
    quiet_bar(bar, "weight")


def _name_nodes(ax, places, coef, names, top):
    """The names of the largest, each at the side of its node where it covers least."""
    order = np.argsort(-np.abs(coef), kind="stable")[: max(top, 0)]
    box = ax.get_position()
    inches = np.array([box.width, box.height]) * ax.figure.get_size_inches()
    points = places * np.min(72 * inches / np.maximum(np.ptp(places, axis=0) * 1.12, 1.0))
    taken: list[np.ndarray] = []
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


def _covered(room, points, taken):
    """Nodes under a rectangle, and (which is worse) its overlap with names that are there already."""
    nodes = np.count_nonzero(np.all((points > room[0] - 3) & (points < room[1] + 3), axis=1))
    shared = [np.prod(np.maximum(np.minimum(room[1], one[1]) - np.maximum(room[0], one[0]), 0)) for one in taken]
    return nodes + 10 * sum(area > 0 for area in shared)


# -- cross-validation -------------------------------------------------------------------------------


def cv_curve(model, *, score: str | None = None, ax=None):
    """The mean over the folds and its standard error for every alpha; the best and the one-standard-error choice.

    Parameters
    ----------
    model : CrossValidation, or fitted cross-validating estimator
    score : str, optional
        What the scores are, if not the mean loss of the held-out rows; an estimator's `scoring` by default.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    need_matplotlib()
    found = getattr(model, "cv_results_", model)
    if not hasattr(found, "standard_error"):
        raise ValueError(f"model is {type(model).__name__}; give a CrossValidation or a fitted estimator ending in CV")
    scoring = getattr(model, "scoring", None)
    score = score or (scoring if isinstance(scoring, str) else "score" if scoring is not None else None)
    loss = score is None
    mean = -found.mean if loss else found.mean
    x, zero_at = _log_alphas(found.alphas)
    ax = new_axes(ax)
    ax.fill_between(x, mean - found.standard_error, mean + found.standard_error, color=COLOURS[0], alpha=0.16,
                    linewidth=0, label="mean \u00b1 standard error")  # fmt: skip
    ax.plot(x, mean, color=COLOURS[0], linewidth=1.9, marker="o" if len(x) <= 60 else None, markersize=3.2)
    if len(x) == 1:
        ax.errorbar(x, mean, found.standard_error, color=COLOURS[0], capsize=4)
    best, simple = found.select("min"), found.select("1se")
    marks = [(best, "best", COLOURS[1], "-")]
    marks += [(simple, "one standard error", COLOURS[2], (0, (4, 2)))]
    for index, name, paint, style in marks:
        ax.axvline(x[index], color=paint, linewidth=1.3, linestyle=style, zorder=1,
                   label=f"{name}: alpha {found.alphas[index]:.3g}")  # fmt: skip
        ax.plot(x[index], mean[index], "o", color=paint, markersize=7, zorder=4)
    _alpha_axis(ax, x, zero_at)
    ax.set_ylabel("mean loss of held-out rows" if loss else f"{score} of held-out rows")
    tidy(ax)
    ax.legend(frameon=True, framealpha=0.85, edgecolor="none", fontsize=8.5)
    folds = found.scores.shape[1]
    worst = found.relative_gaps.max()
    proof = f"largest relative gap of a fit {worst:.1e}" if np.isfinite(worst) else "some fits without a bound"
    titled(ax, "Cross-validation", f"{folds} folds, {len(x)} alphas; {proof}")
    return ax
