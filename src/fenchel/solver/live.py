"""A live line for a long solve: on a terminal by rich where it is installed, in a notebook, or a line a minute."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

from ..data.pools import Reading
from ..foundation.display import LineAMinute, NotebookLine, in_notebook
from .result import Record


class Show:
    """Told of every record, and of how far a pass over rows in a pool has come; this one says nothing."""

    def __call__(self, record: Record) -> None:
        """A certificate was made."""

    def reading(self, reading: Reading) -> None:
        """A part of the data was read."""


def make_progress(wanted: bool, tol: float) -> contextlib.AbstractContextManager[Show]:
    """Something to tell of every record; it does nothing unless progress is wanted."""
    return _live(tol) if wanted else _NOTHING


@contextlib.contextmanager
def _live(tol: float) -> Iterator[Show]:
    if in_notebook():
        notebook = _Notebook(tol)
        yield notebook
        notebook.end()
        return
    try:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True)
    except ImportError:
        console = None
    if console is None or not console.is_terminal:
        plain = _Plain()
        yield plain
        plain.lines.end()
        return
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        yield _Line(live, tol)


class _Line(Show):
    """One line on a terminal; two where the data is read from a disk."""

    def __init__(self, live: Any, tol: float) -> None:
        self.live, self.tol = live, tol
        self.record: Record | None = None
        self.first: Record | None = None
        self.read = ""

    def __call__(self, record: Record) -> None:
        self.record, self.first = record, self.first or record
        self._update()

    def reading(self, reading: Reading) -> None:
        self.read = f"{reading}{passes_left(self.first, self.record, self.tol)}"
        self._update()

    def _update(self) -> None:
        lines = [_line(self.record, self.tol)] if self.record is not None else []
        self.live.update("\n".join([*lines, self.read] if self.read else lines))


def passes_left(first: Record | None, last: Record | None, tol: float) -> str:
    """How many passes seem to be left, at the pace so far; nothing where that is not known."""
    if first is None or last is None or not (0 < last.relative_gap < min(first.relative_gap, math.inf) and tol > 0):
        return ""
    pace = math.log(first.relative_gap / last.relative_gap) / max(last.epoch - first.epoch, 1)
    left = math.ceil(max(math.log(last.relative_gap / tol), 0.0) / pace)
    return f", at most {left} more passes" if left < 1000 else ""


def _line(record: Record, tol: float | None) -> str:
    goal = f" (goal {tol:.0e})" if tol else ""
    return (
        f"epoch {record.epoch:5d}   {record.seconds:8.2f} s   primal {record.primal:.8g}   "
        f"dual {record.dual:.8g}   relative gap {record.relative_gap:.2e}{goal}"
    )


class _Notebook(Show):
    """One output of the cell. Gaps fall by factors, so its bar counts decades."""

    def __init__(self, tol: float) -> None:
        self.line, self.tol, self.read = NotebookLine(), tol, ""
        self.record: Record | None = None

    def __call__(self, record: Record) -> None:
        self.record = record
        self._draw()

    def reading(self, reading: Reading) -> None:
        self.read = f"   {reading}"
        self._draw()

    def end(self) -> None:
        """Draw what came last."""
        self._draw(last=True)

    def _draw(self, last: bool = False) -> None:
        if self.record is None:
            return
        gap, goal = self.record.relative_gap, self.tol
        share = math.log(gap) / math.log(goal) if 0 < gap < 1 and 0 < goal < 1 else float(gap <= goal)
        self.line.show(_line(self.record, self.tol) + self.read, share, last)


class _Plain(Show):
    """Lines of text."""

    def __init__(self) -> None:
        self.read, self.lines = "", LineAMinute()

    def __call__(self, record: Record) -> None:
        self.lines.show(_line(record, None) + self.read)

    def reading(self, reading: Reading) -> None:
        self.read = f"   {reading.total / 1e9:.2f} GB at {reading.done / max(reading.seconds, 1e-9) / 1e9:.2f} GB/s"


_NOTHING = contextlib.nullcontext(Show())
