"""Ctrl-C: noticed even where Python swallows it, and held back where it would do harm."""

from __future__ import annotations

import importlib.util
import signal
import threading
import types
from typing import Any

# `signal` makes a detour through enumerations, which takes as long as a small fit
_plain = importlib.import_module("_signal") if importlib.util.find_spec("_signal") else signal
_listening: list[list[int]] = []  # of the main thread, from the outermost `with` to the innermost


class interrupts_noticed:
    """The interrupts so far, within a `with`, which may stand inside of another. One that is raised where Python
    swallows it (in a destructor or a callback of C, say) is not lost."""

    def __enter__(self) -> list[int]:
        own = threading.current_thread() is threading.main_thread()
        self.caught: list[int] = []
        self.ours = own and _plain.getsignal(signal.SIGINT) in (signal.default_int_handler, _notice)
        if self.ours:
            _listening.append(self.caught)
            _plain.signal(signal.SIGINT, _notice)
        return self.caught

    def __exit__(self, *raised: object) -> None:
        if self.ours:
            _listening[:] = [other for other in _listening if other is not self.caught]
            if not _listening:
                _plain.signal(signal.SIGINT, signal.default_int_handler)


def _notice(number: int, frame: types.FrameType | None) -> None:
    for caught in _listening:
        caught.append(number)
    signal.default_int_handler(number, frame)


class interrupts_held:
    """Keep Ctrl-C back within a `with`, where C calls back into Python and ctypes would swallow it; then hand it on."""

    def __enter__(self) -> None:
        self.caught: list[tuple[int, types.FrameType | None]] = []
        self.before: Any = None
        if threading.current_thread() is threading.main_thread():
            before = _plain.getsignal(signal.SIGINT)
            if callable(before):  # else it is ignored, or ends the process at once
                self.before = before
                _plain.signal(signal.SIGINT, lambda *interrupt: self.caught.append(interrupt))

    def __exit__(self, *raised: object) -> None:
        if self.before is not None:
            _plain.signal(signal.SIGINT, self.before)
            if self.caught:
                self.before(*self.caught[0])
