"""Ctrl-C: noticed even where Python swallows it."""

from __future__ import annotations

import contextlib
import signal
import threading
import types
from collections.abc import Iterator

# without the detour through enumerations, which takes as long as a small fit
_set = getattr(signal.signal, "__wrapped__", signal.signal)
_get = getattr(signal.getsignal, "__wrapped__", signal.getsignal)


@contextlib.contextmanager
def interrupts_noticed() -> Iterator[list[int]]:
    """The interrupts so far. One that is raised where Python swallows it (in a destructor, say) is not lost."""
    own = threading.current_thread() is threading.main_thread()
    if not own or _get(signal.SIGINT) is not signal.default_int_handler:
        yield []
        return
    caught: list[int] = []

    def handler(number: int, frame: types.FrameType | None) -> None:
        caught.append(number)
        signal.default_int_handler(number, frame)

    _set(signal.SIGINT, handler)
    try:
        yield caught
    finally:
        _set(signal.SIGINT, signal.default_int_handler)
