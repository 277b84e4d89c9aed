"""How a run came to its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array
from ..foundation.numerics import UNIT
from .base import (
    COLOURS,
    GREY,
    Model,
    halo,
    is_path,
    need_matplotlib,
    new_axes,
    quiet_decades,
    result_of,
    tidy,
    titled,
    tol_of,
    whole_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def convergence(model: Model, *, against: str = "epochs", tol: float | None = None, ax: Axes | None = None) -> Axes:
    """The certified relative gap, certificate by certificate.

    Parameters
    ----------
    model : Result, fitted estimator, Path, or dict of these by name
        Along a path the work of its points is added up, and each alpha has a line of its own. Where most of them took
        no pass over the data of their own (a Gram matrix answers them all), its certificates are counted instead.
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
    counted = against == "epochs" and any(is_path(one) and _coincide(tracks[name][0]) for name, one in models.items())
    if counted:
        tracks = {name: (np.cumsum(np.isfinite(x)) + 0.0 * x, gap) for name, (x, gap) in tracks.items()}
    for k, (name, one) in enumerate(models.items()):
        lone = _alone(tracks[name][1])  # a line shows nothing of these
        few: dict[str, Any] = {"marker": "o", "markersize": 3.5}
        if np.count_nonzero(np.isfinite(tracks[name][1])) > 60:
            few = few | {"markevery": lone.tolist()} if lone.size else {}
        ax.plot(*tracks[name], color=COLOURS[k % len(COLOURS)], linewidth=1.9, label=name, **few)
        tol = tol_of(one) if tol is None else tol
    ax.set_yscale("log")
    quiet_decades(ax.yaxis, *ax.get_ylim())
    work = "epochs (passes over the data)" if against == "epochs" else "seconds"
    ax.set_xlabel("certificates, alpha after alpha" if counted else work)
    ax.set_ylabel("certified relative gap")
    tidy(ax)
    if against == "epochs":
        low, high = ax.get_xlim()
        if high - low < 1:  # certificates of one epoch, which has no decimals
            ax.set_xlim(np.floor(low), np.ceil(high))
        whole_ticks(ax.xaxis)
    if tol:
        ax.axhline(tol, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)), zorder=1)
        ax.annotate(f"goal {tol:.0e}", (0.008, tol), xycoords=("axes fraction", "data"), xytext=(0, 3),
                    textcoords="offset points", color=GREY, fontsize=8.5, path_effects=halo())  # fmt: skip
    if several:
        ax.legend(frameon=False, fontsize=9)
    titled(ax, "Certified convergence", "" if several else _story(model))
    return ax


def _track(model: Model, against: str) -> tuple[Array, Array]:
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
        xs += [before + x, np.array([np.nan])]
        gaps += [np.where(np.isfinite(gap), np.maximum(gap, UNIT), np.nan), np.array([np.nan])]
        before += result.epochs if against == "epochs" else result.seconds
    return np.concatenate(xs)[:-1], np.concatenate(gaps)[:-1]


def _coincide(x: Array) -> bool:
    """Whether most of the points cannot be told apart by where they stand."""
    seen = x[np.isfinite(x)]
    return 2 * np.unique(seen).size < seen.size


def _alone(gap: Array) -> Any:
    """The places of points with none on either side."""
    there = np.concatenate([[False], np.isfinite(gap), [False]])
    return np.flatnonzero(there[1:-1] & ~there[:-2] & ~there[2:])


def _story(model: Model) -> str:
    if is_path(model):
        return (f"{len(model)} alphas, {model.epochs.sum():,} epochs, {model.seconds.sum():.2f} s; largest gap "
                f"{model.relative_gaps.max():.1e}")  # fmt: skip
    result = result_of(model)
    proof = f"relative gap {result.relative_gap:.1e}" if result.certified else "no certificate"
    return f"{result.status}: {proof} after {result.epochs:,} epochs, {result.seconds:.2f} s"
