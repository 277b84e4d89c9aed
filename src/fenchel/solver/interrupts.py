"""Ctrl-C: noticed even where Python swallows it."""

from __future__ import annotations

import importlib.util
import signal
import threading
import types

# `signal` makes a detour through enumerations, which takes as long as a small fit
_plain = importlib.import_module("_signal") if importlib.util.find_spec("_signal") else signal


class interrupts_noticed:
    """The interrupts so far, within a `with`. One that is raised where Python swallows it (in a destructor, say) is not
    lost."""

    def __enter__(self) -> list[int]:
        own = threading.current_thread() is threading.main_thread()
        self.caught: list[int] = []
        self.ours = own and _plain.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.ours:
            _plain.signal(signal.SIGINT, self._notice)
        return self.caught

    def __exit__(self, *raised: object) -> None:
        if self.ours:
            _plain.signal(signal.SIGINT, signal.default_int_handler)

    def _notice(self, number: int, frame: types.FrameType | None) -> None:
        self.caught.append(number)
        signal.default_int_handler(number, frame)
