"""One live bar over many fits, with the time that is left; the notebook's own display there, few lines on a pipe."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Self

_PAUSE = 60.0  # seconds between lines where nothing can be drawn; shorter would fill a log


class Bar:
    """Counts steps of a known number: a bar on a terminal and in a notebook, a line a minute elsewhere."""

    def __init__(self, total: int, wanted: bool, noun: str = "fits") -> None:
        self.total, self.wanted, self.noun, self.done = total, wanted, noun, 0
        self._live: Any = None
        self._task: Any = None
        self._note, self._counted = "", False
        self._lock = threading.Lock()  # folds count in threads

    def __enter__(self) -> Self:
        self._began = self._told = time.monotonic()
        self._live = _rich_bar() if self.wanted else None
        if self._live is not None:
            self._live.start()
            self._task = self._live.add_task(self.noun, total=self.total, note="")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
        elif self.wanted and self._counted:
            print(self.line(time.monotonic() - self._began, self._note), file=sys.stderr, flush=True)

    def step(self, note: str = "", count: int = 1) -> None:
        """So many more are done; the note says what."""
        with self._lock:
            self.done, self._note, self._counted = self.done + count, note or self._note, True
            if self._live is not None:
                self._live.update(self._task, completed=self.done, note=note)
            elif self.wanted and time.monotonic() >= self._told + _PAUSE:
                self._told = time.monotonic()
                print(self.line(self._told - self._began, note), file=sys.stderr, flush=True)

    def tell(self, line: str) -> None:
        """One more is done, with a line of its own where nothing can be drawn."""
        if self._live is None and self.wanted:
            self.done += 1
            print(line, file=sys.stderr)
        else:
            self.step(line)

    def fewer(self, count: int) -> None:
        """So many of the steps will not be taken."""
        with self._lock:
            self.total -= count
            if self._live is not None:
                self._live.update(self._task, total=self.total)

    def line(self, seconds: float, note: str) -> str:
        """How far it is, in words."""
        left = seconds * (self.total - self.done) / max(self.done, 1)
        return (
            f"{self.done} of {self.total} {self.noun}, {seconds:.0f} s, about {left:.0f} s left"
            f"{'   ' + note if note else ''}"
        )


def _rich_bar() -> Any:
    """A bar of rich on a terminal or in a notebook; None elsewhere, and where rich is not installed."""
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ImportError:
        return None
    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        return None
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=console, transient=True,
    )  # fmt: skip
