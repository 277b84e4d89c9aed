"""How often units are selected on halves of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .base import COLOURS, GREY, need_matplotlib, new_axes, short, tidy, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def stability(selection: Any, *, units: str = "features", top: int = 20, ax: Axes | None = None) -> Axes:
    """The selection probabilities of the units that are selected most often, with the threshold.

    Parameters
    ----------
    selection : fitted StabilitySelection
    units : {"features", "groups", "edges"}
    top : int
        Units to show.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    need_matplotlib()
    table = selection.table(units)
    shown = table[table["probability"] > 0].iloc[:top]
    ax = new_axes(ax, (6.4, max(1.9, 1.25 + 0.25 * max(len(shown), 3))))
    places = np.arange(len(shown))
    paint = [COLOURS[0] if stable else GREY for stable in shown["stable"]]
    ax.barh(places, shown["probability"], 0.68, color=paint)
    ax.axvline(selection.threshold, color=COLOURS[1], linewidth=1.3, linestyle=(0, (4, 2)))
    ax.set_yticks(places, [short(str(name), 32) for name in shown.index])
    ax.set_ylim(max(len(shown), 1) - 0.4, -0.6)
    ax.set_xlim(0, 1.02)
    ax.set_xlabel("share of the fits to halves of the rows that select it")
    tidy(ax, "x")
    ax.tick_params(axis="y", length=0)
    count = int(table["stable"].sum())
    bound = selection.expected_false(units=units)
    titled(
        ax, "Stability selection",
        f"{count} of {len(table)} {units} are stable (threshold {selection.threshold:g}); "
        f"at most {bound:.2g} expected by chance",
    )  # fmt: skip
    return ax
