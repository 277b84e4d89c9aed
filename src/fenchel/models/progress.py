"""One live bar over many fits, with the time that is left; the notebook's own display there, few lines on a pipe."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..foundation.display import LineAMinute, NotebookLine, in_notebook

if TYPE_CHECKING:
    from typing_extensions import Self


class Bar:
    """Counts steps of a known number: a bar on a terminal and in a notebook, a line a minute elsewhere.

    With `last` there is a line at the end too, for whoever asked to be told.
    """

    def __init__(self, total: int, wanted: bool, noun: str = "fits", last: bool = True) -> None:
        self.total, self.wanted, self.noun, self.done = total, wanted, noun, 0
        self._live: Any = None
        self._task: Any = None
        self._notebook = NotebookLine() if wanted and in_notebook() else None
        self._lines = LineAMinute(last)
        self._lock = threading.Lock()  # folds count in threads

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._live = _rich_bar() if self.wanted and self._notebook is None else None
        if self._live is not None:
            self._live.start()
            self._task = self._live.add_task(self.noun, total=self.total, note="")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._notebook is not None:
            self._notebook.show(self.line(""), self.done / max(self.total, 1), last=True)
        elif self._live is not None:
            self._live.stop()
        else:
            self._lines.end()

    def step(self, note: str = "", count: int = 1) -> None:
        """So many more are done; the note says what."""
        with self._lock:
            self.done += count
            if self._notebook is not None:
                self._notebook.show(self.line(note), self.done / max(self.total, 1))
            elif self._live is not None:
                self._live.update(self._task, completed=self.done, note=note)
            elif self.wanted:
                self._lines.show(self.line(note))

    def fewer(self, count: int) -> None:
        """So many of the steps will not be taken."""
        with self._lock:
            self.total -= count
            if self._live is not None:
                self._live.update(self._task, total=self.total)

    def line(self, note: str) -> str:
        """How far it is, in words."""
        seconds = time.monotonic() - self._began
        left = seconds * (self.total - self.done) / max(self.done, 1)
        rest = f", about {left:.0f} s left" if self.done < self.total else ""
        return f"{self.done} of {self.total} {self.noun}, {seconds:.0f} s{rest}{'   ' + note if note else ''}"


def _rich_bar() -> Any:
    """A bar of rich on a terminal; None elsewhere, and where rich is not installed."""
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
    if not console.is_terminal:
        return None
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=console, transient=True,
    )  # fmt: skip
