"""Coefficients along a path, and the scores of cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array, Ints, Names
from .base import (
    COLOURS,
    GREY,
    PALE,
    Model,
    colour,
    dots,
    fitted_groups,
    groups_of,
    legend,
    names_of,
    need_matplotlib,
    new_axes,
    output_labels,
    path_of,
    quiet_decades,
    tidy,
    titled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..models.paths import Path


if TYPE_CHECKING:
    pass


def path(
    model: Model,
    *,
    groups: Any = None,
    names: Names | None = None,
    labels: Sequence[str] | None = None,
    top: int = 7,
    ax: Axes | None = None,
) -> Axes:
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


def _classes(
    model: Model,
    coefs: Array,
    p: int,
    groups: Any,
    names: Names | None,
    labels: Sequence[str] | None,
) -> tuple[Ints, list[str], str]:
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


def _draw_rest(ax: Axes, x: Array, lines: Array) -> None:
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


def _mark_unproven(ax: Axes, found: Path, x: Array) -> None:
    late = ~found.converged
    if late.any():
        ax.plot(x[late], np.full(late.sum(), 0.02), "x", color=COLOURS[1], markersize=5, clip_on=False,
                transform=ax.get_xaxis_transform(), zorder=4)  # fmt: skip


def _proof(found: Path) -> str:
    text = f"{len(found)} alphas" if len(found) > 1 else "1 alpha"
    late = int(np.count_nonzero(~found.converged))
    if not late:
        return f"{text}, {'each ' if len(found) > 1 else ''}certified to a relative gap of {found.tol:.0e}"
    worst = found.relative_gaps.max()
    rest = f"largest relative gap {worst:.1e}" if np.isfinite(worst) else "some without a bound"
    return f"{text}, {late} (crosses) not certified to {found.tol:.0e}; {rest}"


def _log_alphas(alphas: Array) -> tuple[Array, float | None]:
    """alphas for a logarithmic axis, and where alpha = 0 is drawn: at a decade below the smallest."""
    positive = alphas[alphas > 0]
    if positive.size == len(alphas):
        return alphas, None
    low = 10.0 ** np.floor(np.log10(positive[-1] if positive.size else 1.0) - 0.5)
    return np.where(alphas > 0, alphas, low), low


def _alpha_axis(ax: Axes, x: Array, zero_at: float | None = None) -> None:
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

        def name(value: Any, _: Any) -> Any:
            return "0" if np.isclose(value, zero_at) else plain(value) if value > zero_at else ""

        ax.xaxis.set_major_formatter(FuncFormatter(name))
        ax.xaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))


def cv_curve(model: Model, *, score: str | None = None, ax: Axes | None = None) -> Axes:
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
    found: Any = getattr(model, "cv_results_", model)
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
    marks: list[tuple[int, str, str, Any]] = [(best, "best", COLOURS[1], "-")]
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
