"""The norms of groups, in one answer or along a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array, Ints
from .base import (
    COLOURS,
    GREY,
    Model,
    coef_of,
    colour,
    dots,
    fitted_groups,
    groups_of,
    is_path,
    legend,
    need_matplotlib,
    new_axes,
    path_of,
    penalty_of,
    short,
    tidy,
    titled,
)
from .paths import _alpha_axis, _draw_rest, _log_alphas, _mark_unproven, _proof

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..structure.groups import Groups


def group_norms(
    model: Model,
    groups: Any = None,
    *,
    top: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """How much each group weighs: the Euclidean norm of its coefficients, or of its part in them if it is latent.

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
    of_penalty = groups is None and not is_path(model)
    groups = groups_of(model, groups)
    if groups is None:
        raise ValueError("groups is needed: the model does not know any")
    if is_path(model):
        return _norm_lines(model, groups, 7 if top is None else top, ax)
    coef = coef_of(model)
    norms, nonzero, groups = _part_norms(*penalty_of(model).grouped(coef)) if of_penalty else _norms(coef, groups)
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


def _norms(coef: Array, groups: Groups) -> tuple[Array, Ints, Groups]:
    groups, joint = fitted_groups(groups, coef.shape[1])
    coef = coef.reshape(1, -1) if joint else coef
    return _part_norms(groups, [coef[:, group] for group in groups])


def _part_norms(groups: Groups, parts: list[Array]) -> tuple[Array, Ints, Groups]:
    """The norm of what every group has, its features that are not zero, and the groups."""
    counts = np.array([np.count_nonzero(part.any(axis=0)) for part in parts])
    return np.array([np.linalg.norm(part) for part in parts]), counts, groups


def _norm_lines(model: Model, groups: Groups, top: int, ax: Axes | None) -> Axes:
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
