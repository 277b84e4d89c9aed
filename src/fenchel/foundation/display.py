"""Where progress is shown: a terminal, a notebook, or a pipe, which gets a line a minute."""

from __future__ import annotations

import atexit
import html
import importlib
import sys
import threading
import time
from typing import Any

PAUSE = 60.0  # seconds between lines where nothing can be drawn; shorter would fill a log
_STILL = 0.125  # seconds between two pictures in a notebook; shorter: more messages than anybody sees
_PASSED = 1.0  # seconds without news after which a passing line goes; shorter: it flickers between two kernels


def in_notebook() -> bool:
    """Whether what is displayed goes to a notebook."""
    shell = sys.modules.get("IPython")
    running = None if shell is None else shell.get_ipython()
    return running is not None and hasattr(running, "kernel")


class NotebookLine:
    """One output of a notebook cell that is drawn again and again: a bar and a line of text."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._drawn = -_STILL

    def show(self, text: str, share: float | None = None, last: bool = False) -> None:
        """Draw it, unless that was done a moment ago."""
        if not last and time.monotonic() < self._drawn + _STILL:
            return
        self._drawn = time.monotonic()
        bar = "" if share is None else f'<progress max="1" value="{min(max(share, 0.0), 1.0):.4f}"></progress> '
        # both kinds are sent: a page shows the first, a console that follows the notebook the second
        words = f'<span style="font:12px monospace;white-space:pre-wrap">{html.escape(text)}</span>'
        content = {"text/html": f"<div>{bar}{words}</div>", "text/plain": text}
        if self._handle is None:
            display: Any = importlib.import_module("IPython.display").display  # untyped, and not always there
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class Passing:
    """A line of what is being done just now, on a terminal or in a notebook alone; on a terminal it goes by itself."""

    def __init__(self) -> None:
        self._began, self._drawn = time.monotonic(), -_STILL
        self._notebook = NotebookLine() if in_notebook() else None
        self._terminal = self._notebook is None and sys.stderr is not None and sys.stderr.isatty()
        self._end: threading.Timer | None = None
        atexit.register(self._leave)

    def show(self, text: str) -> None:
        """Draw it, unless that was done a moment ago."""
        text = f"{text}, {time.monotonic() - self._began:.0f} s"
        if self._notebook is not None:
            self._notebook.show(text)
        if not self._terminal or _bar_is_live():
            return
        if self._end is not None:
            self._end.cancel()
        if time.monotonic() >= self._drawn + _STILL:
            self._drawn = time.monotonic()
            sys.stderr.write(f"\r{text}\x1b[K")
            sys.stderr.flush()
        self._end = threading.Timer(_PASSED, self._clear)
        self._end.daemon = True
        self._end.start()

    def _leave(self) -> None:
        """Leave nothing behind where the process ends a moment after the last news."""
        if self._end is not None and self._end.is_alive():
            self._end.cancel()
            self._clear()

    def _clear(self) -> None:
        if not _bar_is_live():
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _bar_is_live() -> bool:
    """Whether a bar of rich is being drawn: it puts a file of its own in the place of the standard error, which would
    write a passing line, and the signs that clear it, as lines of text."""
    return type(sys.stderr).__module__.startswith("rich.")


class LineAMinute:
    """Lines on the standard error, none sooner than a minute after the last; with `last` one at the end."""

    def __init__(self, last: bool = True) -> None:
        self.last, self._told, self._text = last, time.monotonic(), ""

    def show(self, text: str) -> None:
        """Say it, or keep it for the end."""
        self._text = text
        if time.monotonic() >= self._told + PAUSE:
            self._told = time.monotonic()
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Say what came last."""
        if self.last and self._text:
            print(self._text, file=sys.stderr, flush=True)
