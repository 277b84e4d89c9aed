"""Memory that one solve leaves to the next: to get fresh memory from the system takes longer than to fill it."""

from __future__ import annotations

import contextlib
import math
import weakref
from typing import Any

import numpy as np

_MOST = 1 << 22  # numbers of a room that is kept: 32 MiB; larger: memory that nobody uses for a while
_KEPT = 2  # rooms, one for every thread of a small machine
_spare: list[Any] = []


class Room:
    """Arrays without content, which belong to whoever holds the room; afterwards they are used again."""

    def __init__(self, numbers: int) -> None:
        memory = np.empty(0)
        if numbers <= _MOST:  # whoever needs more would only lose what is kept
            with contextlib.suppress(IndexError):
                memory = _spare.pop()
        # pages that nobody touches cost nothing, so that a new one may be large
        self._memory = memory if memory.size >= numbers else np.empty(numbers)
        self._used = 0
        if numbers <= _MOST:
            weakref.finalize(self, _leave, self._memory)

    def take(self, *shape: int, kind: Any = np.float64) -> Any:
        """An array of this shape, of numbers that take eight bytes each."""
        size = math.prod(shape)
        self._used += size
        return self._memory[self._used - size : self._used].view(kind).reshape(shape)


def _leave(memory: Any) -> None:
    if len(_spare) < _KEPT:
        _spare.append(memory)
