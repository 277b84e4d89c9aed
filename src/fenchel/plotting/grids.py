"""Weights on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from .._validate import Array
from ..structure import Grid
from .base import (
    COLOURS,
    GREY,
    LINES,
    PALE,
    SIGNED,
    Model,
    coef_of,
    colour,
    dots,
    grid_of,
    legend,
    need_matplotlib,
    new_axes,
    output_labels,
    quiet_bar,
    short,
    tidy,
    titled,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def weights_on_grid(
    model: Model,
    grid: Grid | int | tuple[int, ...] | None = None,
    *,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
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


def _draw_line(grid: Grid, coef: Array, labels: list[str], ax: Axes | None) -> Axes:
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


def _draw_tiles(tiles: list[Array], titles: list[str], grid: Grid, ax: Axes | None) -> Axes:
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
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0.0, 0.03, 1.0)))
    quiet_bar(bar, "weight")
    return ax


def _tiles_across(count: int, height: int, width: int) -> int:
    """About 1.6 times as wide as high, and few places left empty."""
    ideal = np.sqrt(1.6 * count * height / width)

    def badness(across: int) -> float:
        empty = -count % across
        out: float = abs(np.log(across / ideal)) + 1.5 * empty / count
        return out

    return min(range(1, count + 1), key=badness)


def _cell_ticks(ax: Axes) -> None:
    for axis in (ax.xaxis, ax.yaxis):
        whole_ticks(axis)
    ax.set_xlabel("column")
    ax.set_ylabel("row")
    ax.tick_params(labelsize=9, color=PALE, length=2.5)


def _as_grid(grid: Grid | int | tuple[int, ...]) -> Grid:
    if grid is None:
        raise ValueError("grid is needed: the model does not know any; give a Grid, a shape or a mask")
    if isinstance(grid, Grid):
        return grid
    if isinstance(grid, np.ndarray) and grid.dtype == bool:
        return Grid(grid.shape, grid)
    return Grid(grid)
