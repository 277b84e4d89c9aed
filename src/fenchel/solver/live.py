"""A live line for a long solve: rich where it is installed, plain text otherwise."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

from .result import Record


def make_progress(wanted: bool, tol: float) -> contextlib.AbstractContextManager[Callable[[Record], None]]:
    """A function to call with every record; does nothing unless progress is wanted."""
    return _live(tol) if wanted else _NOTHING


@contextlib.contextmanager
def _live(tol: float) -> Iterator[Callable[[Record], None]]:
    try:
        from rich.console import Console
        from rich.live import Live
    except ImportError:
        yield _plain
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain
        return
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        yield lambda record: live.update(_line(record, tol))


def _line(record: Record, tol: float | None) -> str:
    goal = f" (goal {tol:.0e})" if tol else ""
    return (
        f"epoch {record.epoch:5d}   {record.seconds:8.2f} s   primal {record.primal:.8g}   "
        f"dual {record.dual:.8g}   relative gap {record.relative_gap:.2e}{goal}"
    )


def _plain(record: Record) -> None:
    print(_line(record, None), file=sys.stderr)


def _silent(record: Record) -> None:
    """Nobody wants to know."""


_NOTHING = contextlib.nullcontext(_silent)
