"""Ctrl-C: noticed even where Python swallows it."""

from __future__ import annotations

import contextlib
import signal
import threading
import types
from collections.abc import Iterator


@contextlib.contextmanager
def interrupts_noticed() -> Iterator[list[int]]:
    """The interrupts so far. One that is raised where Python swallows it (in a destructor, say) is not lost."""
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield []
        return
    caught: list[int] = []

    def handler(number: int, frame: types.FrameType | None) -> None:
        caught.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handler)
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
