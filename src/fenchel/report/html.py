"""Pages of HTML that need nothing beside themselves: style, pictures, tables."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2733; max-width: 72rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
p.lead { color: #55606a; margin: 0 0 1.2rem; } p.note { color: #55606a; font-size: .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .92rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { text-align: left; padding: .35rem .6rem; border-bottom: 1px solid #e6e8ea; vertical-align: top; }
th { color: #55606a; font-weight: 600; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.yes, .no, .na { display: inline-block; padding: .05rem .55rem; border-radius: 1rem; font-size: .85rem; }
.yes, .no, .na { white-space: nowrap; color: #fff; }
.yes { background: #1b7a4b; } .no { background: #b03a2e; } .na { background: #7f8c8d; }
img { width: 100%; height: auto; } figure { margin: 0 0 1.2rem; } figcaption { color: #55606a; font-size: .9rem; }
details { margin: .6rem 0; } summary { cursor: pointer; font-weight: 600; }
pre { background: #f6f7f8; padding: .8rem; overflow: auto; font-size: .82rem; }
.wide { overflow-x: auto; }
"""
_MOST = 40  # rows of a table; more: longer pages


def page(title: str, parts: Iterable[str], style: str = "", script: str = "") -> str:
    """A whole page; `parts` are HTML, the title is text. A script runs when all of it is there."""
    title = html.escape(title)
    after = f"\n<script>{script}</script>" if script else ""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}{style}</style></head><body>\n" + "\n".join(parts) + f"{after}\n</body></html>\n"
    )


def embed(content: bytes, kind: str, caption: str) -> str:
    """A picture as a part of the page."""
    mime = {"svg": "image/svg+xml", "png": "image/png"}[kind]
    text = html.escape(caption)
    source = base64.b64encode(content).decode()
    return f'<figure><img alt="{text}" src="data:{mime};base64,{source}"><figcaption>{text}</figcaption></figure>'


def check_matplotlib() -> None:
    """Fail before the work, not after it, if nothing can be drawn."""
    from ..plotting.base import need_matplotlib

    need_matplotlib()


def picture(
    draw: Callable[..., Any], size: tuple[float, float] = (6.0, 4.1), kind: str = "svg", dpi: int = 150
) -> bytes:
    """What `draw(ax)` draws, as the bytes of a file; without pyplot, and the same for the same drawing."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=dpi, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure.subplots())
    out = io.BytesIO()
    plain: dict[str, Any] = (
        {"metadata": {"Date": None, "Creator": None, "Format": None, "Type": None}} if kind == "svg" else {}
    )
    with matplotlib.rc_context({"svg.hashsalt": "fenchel"}):
        figure.savefig(out, format=kind, bbox_inches="tight", pad_inches=0.06, **plain)
    return out.getvalue()


def _pairs(rows: Sequence[tuple[str, str]]) -> str:
    cells = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>" for name, value in rows)
    return f"<table class=set>{cells}</table>"


def _table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Any]],
    total: int | None = None,
    largest: int | None = None,
) -> str:
    """The first rows; the numbers of the column `largest` also as bars."""
    total = len(rows) if total is None else total
    rows = rows[:_MOST]
    unit = max((abs(row[largest]) for row in rows), default=0.0) or 1.0 if largest is not None else 1.0
    kinds = ["n" if rows and isinstance(cell, (int, float, np.number)) else "" for cell in (rows or [head])[0]]
    top = "".join(
        f'<th class="{kind}">{html.escape(name)}</th>' if kind else f"<th>{html.escape(name)}</th>"
        for name, kind in zip(head, kinds, strict=True)
    )
    lines = []
    for row in rows:
        line = "".join(_cell(cell) for cell in row)
        if largest is not None:
            sign = " minus" if row[largest] < 0 else ""
            line += (
                f'<td class=b><span class="bar{sign}" style="width:{100 * abs(row[largest]) / unit:.1f}%"></span></td>'
            )
        lines.append(f"<tr>{line}</tr>")
    caption += f"; the first {len(rows)} here" if total > len(rows) else ""
    extra = "<th></th>" if largest is not None else ""
    body = f"<tr>{top}{extra}</tr>{''.join(lines)}" if rows else ""
    return f"<div class=wide><table><caption>{html.escape(caption)}</caption>{body}</table></div>"


def _cell(cell: float | str) -> str:
    if isinstance(cell, (int, np.integer)):
        return f"<td class=n>{cell:,}</td>"
    if isinstance(cell, (float, np.floating)):
        return f"<td class=n>{cell:.5g}</td>"
    return f"<td>{html.escape(str(cell))}</td>"
