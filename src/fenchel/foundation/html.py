"""What objects look like in a notebook: small tables and drawings that follow its colours, light or dark.

Nothing is fetched, no scripts run, and all text is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

_CELL = "padding:1px 10px 1px 0;text-align:left;vertical-align:top"


class Shown:
    """An object with a representation for notebooks: `_html_title`, `_html_rows` and `_html_more` are asked for it."""

    def _repr_html_(self) -> str:
        return card(self._html_title(), self._html_rows(), *self._html_more())

    def _html_title(self) -> str:
        return type(self).__name__

    def _html_rows(self) -> list[tuple[str, Any]]:
        """Names and values."""
        return []

    def _html_more(self) -> Iterable[str]:
        """Further tables and drawings, as HTML."""
        return ()


def card(title: str, rows: Iterable[tuple[str, Any]], *parts: str) -> str:
    """A title, a table of names and values, and whatever comes below it. Values that are shown themselves can be
    opened."""
    faint = f"{_CELL};opacity:.7;white-space:nowrap"
    lines = [
        f'<tr><td style="{faint}">{html.escape(name)}</td><td style="{_CELL}">{_value(value)}</td></tr>'
        for name, value in rows
    ]
    body = f'<table style="border-collapse:collapse;margin:2px 0">{"".join(lines)}</table>' if lines else ""
    return (
        f'<div style="font-family:sans-serif;font-size:13px;max-width:52em"><b>{html.escape(title)}</b>{body}'
        f"{''.join(parts)}</div>"
    )


def _value(value: Any) -> str:
    if isinstance(value, Shown):
        return f"<details><summary>{html.escape(short(value))}</summary>{value._repr_html_()}</details>"
    return html.escape(value if isinstance(value, str) else short(value))


def short(value: Any, most: int = 160) -> str:
    """A value in one line."""
    text = " ".join((f"{value:.6g}" if isinstance(value, float) else repr(value)).split())
    return text if len(text) <= most else text[:most] + "…"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]], left: int = 0) -> str:
    """A table with a line that tells how many rows are not shown."""
    cells = "".join(f'<th style="{_CELL};opacity:.7">{html.escape(name)}</th>' for name in head)
    lines = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{_value(value)}</td>' for value in row) + "</tr>" for row in rows
    )
    more = f'<div style="opacity:.7">… and {left:,} more</div>' if left > 0 else ""
    return (
        f'<table style="border-collapse:collapse;margin:4px 0;font-variant-numeric:tabular-nums"><tr>{cells}</tr>'
        f"{lines}</table>{more}"
    )


def drawing(
    x: npt.ArrayLike,
    curves: npt.ArrayLike,
    *,
    across: str,
    up: str,
    falling: bool = False,
    log: bool = False,
    band: npt.ArrayLike | None = None,
    marks: Sequence[tuple[float, str]] = (),
    most: int = 60,
) -> str:
    """Curves (count, len(x)) over x, in the colour of the text; `falling`: x has a logarithmic axis, large to small.

    `log` has a logarithmic axis upwards; `band` is the half width of a shade around the first curve; `marks` are
    vertical lines with names. Of the curves the `most` largest are drawn: nobody tells more of them apart.
    """
    wide, tall = 460, 194  # pixels
    left, below, top = 64, 34, 20  # of the margins, for numbers and names
    at = np.asarray(x, dtype=float)
    values = np.atleast_2d(np.asarray(curves, dtype=float))
    values = values[np.argsort(-np.nan_to_num(np.abs(values)).max(axis=1), kind="stable")][:most]
    places = -np.log10(np.maximum(at, 1e-300)) if falling else at
    with np.errstate(divide="ignore", invalid="ignore"):
        heights = np.log10(values) if log else values
    width = np.zeros(len(at)) if band is None else np.asarray(band, dtype=float)
    seen = np.concatenate([(heights - width).ravel(), (heights + width).ravel()])
    seen = seen[np.isfinite(seen)]
    if len(at) < 2 or not seen.size or not np.isfinite(places).all():
        return ""
    low, high = float(seen.min()), float(seen.max())
    high = high if high > low else low + 1.0
    first, last = float(places.min()), float(places.max())
    last = last if last > first else first + 1.0

    def across_at(place: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return left + (np.asarray(place) - first) / (last - first) * (wide - left - 12)

    def up_at(height: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return top + (high - np.asarray(height)) / (high - low) * (tall - below - top)

    parts, faint = [], 'opacity=".55"'
    if band is not None:
        edge = [*_points(across_at(places), up_at(heights[0] + width)),
                *reversed(_points(across_at(places), up_at(heights[0] - width)))]  # fmt: skip
        parts.append(f'<polygon points="{" ".join(edge)}" fill="currentColor" opacity=".15"/>')
    for k, height in enumerate(heights):
        there = np.isfinite(height)
        shade = max(0.95 - 0.7 * k / max(len(heights), 1), 0.25)
        points = " ".join(_points(across_at(places[there]), up_at(height[there])))
        parts.append(f'<polyline points="{points}" fill="none" stroke="currentColor" opacity="{shade:.2f}"/>')
    for k, (mark, name) in enumerate(marks):
        place = -np.log10(max(mark, 1e-300)) if falling else mark
        line = f"{float(across_at(place)):.1f}"
        end = "end" if float(across_at(place)) > wide / 2 else "start"
        parts.append(
            f'<line x1="{line}" x2="{line}" y1="{top}" y2="{tall - below}" stroke="currentColor" '
            f'stroke-dasharray="3 3" {faint}/><text x="{line}" y="{tall - below - 6 - 12 * k}" '
            f'dx="{-4 if end == "end" else 4}" text-anchor="{end}">'
            f"{html.escape(name)}</text>"
        )
    bottom = tall - below
    parts.append(f'<path d="M{left} {top}V{bottom}H{wide - 12}" fill="none" stroke="currentColor" {faint}/>')
    for height in (low, high):
        text = f"{10**height:.2g}" if log else f"{height:.3g}"
        parts.append(f'<text x="{left - 5}" y="{float(up_at(height)) + 4:.1f}" text-anchor="end">{text}</text>')
    for place, end in ((first, "start"), (last, "end")):
        text = f"{10**-place:.3g}" if falling else f"{place:.6g}"
        parts.append(f'<text x="{float(across_at(place)):.1f}" y="{bottom + 14}" text-anchor="{end}">{text}</text>')
    middle = (wide + left) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 28}" text-anchor="middle">{html.escape(across)}</text>')
    parts.append(f'<text x="4" y="11" text-anchor="start">{html.escape(up)}</text>')
    return (
        f'<svg width="{wide}" height="{tall}" viewBox="0 0 {wide} {tall}" role="img" '
        f'aria-label="{html.escape(up)} over {html.escape(across)}" style="font-size:11px;display:block" '
        f'fill="currentColor">{"".join(parts)}</svg>'
    )


def _points(across: npt.NDArray[np.float64], up: npt.NDArray[np.float64]) -> list[str]:
    return [f"{a:.1f},{b:.1f}" for a, b in zip(across, up, strict=True)]
