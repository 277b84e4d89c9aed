"""A live line for a long solve: rich where it is installed, plain text otherwise."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from typing import Any

from ..data.pools import Reading
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
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        yield _Plain()
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Plain()
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


class _Plain(Show):
    """A line of text for every record."""

    def __init__(self) -> None:
        self.read = ""

    def __call__(self, record: Record) -> None:
        print(_line(record, None) + self.read, file=sys.stderr)

    def reading(self, reading: Reading) -> None:
        self.read = f"   {reading.total / 1e9:.2f} GB at {reading.done / max(reading.seconds, 1e-9) / 1e9:.2f} GB/s"


_NOTHING = contextlib.nullcontext(Show())
