"""Memory that one solve leaves to the next: to get fresh memory from the system takes longer than to fill it."""

from __future__ import annotations

import contextlib
import math
import weakref
from typing import Any

import numpy as np
from numba import boolean, float64, int64, types
from numba.core import cgutils, imputils, typing
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from ..foundation.numerics import BESIDE

_ROOMS = 2  # that are kept, one for every thread of a small machine
_spare: list[Any] = []


class Room:
    """Arrays without content, which belong to whoever holds the room; afterwards they are used again."""

    def __init__(self, numbers: int) -> None:
        memory = np.empty(0)
        if numbers <= BESIDE:  # whoever needs more would only lose what is kept
            with contextlib.suppress(IndexError):
                memory = _spare.pop()
        # pages that nobody touches cost nothing, so that a new one may be large
        self._memory = memory if memory.size >= numbers else np.empty(numbers)
        self._used = 0
        if numbers <= BESIDE:
            weakref.finalize(self, _leave, self._memory)

    def take(self, *shape: int, kind: Any = np.float64) -> Any:
        """An array of this shape, of numbers that take eight bytes each."""
        size = math.prod(shape)
        self._used += size
        return self._memory[self._used - size : self._used].view(kind).reshape(shape)


def _leave(memory: Any) -> None:
    if len(_spare) < _ROOMS:
        _spare.append(memory)


# -- arrays inside of a kernel's memory ---------------------------------------------------------------


def _array_at(kind: Any) -> Any:
    """What makes an array of this kind of a part of a vector, which begins at its number `first`. Slices and `reshape`
    do the same, but take seconds to compile."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        memory, array = make_array(sig.args[0])(context, builder, args[0]), make_array(kind)(context, builder)
        shape, size = args[2:], context.get_constant(types.intp, 1 if kind.dtype == boolean else 8)
        strides = [size] if kind.ndim == 1 else [builder.mul(size, shape[1]), size]
        data = builder.bitcast(builder.gep(memory.data, [args[1]]), array.data.type)
        populate_array(
            array, data, cgutils.pack_array(builder, shape), cgutils.pack_array(builder, strides), size, meminfo=None
        )
        return imputils.impl_ret_borrowed(context, builder, kind, array._getvalue())

    return typing.signature(kind, float64[::1], int64, *(int64 for _ in range(kind.ndim))), codegen


@intrinsic
def vector_at(typingctx: Any, memory: Any, first: Any, size: Any) -> Any:
    return _array_at(float64[::1])


@intrinsic
def list_at(typingctx: Any, memory: Any, first: Any, size: Any) -> Any:
    return _array_at(int64[::1])


@intrinsic
def flags_at(typingctx: Any, memory: Any, first: Any, size: Any) -> Any:
    return _array_at(boolean[::1])


@intrinsic
def matrix_at(typingctx: Any, memory: Any, first: Any, rows: Any, columns: Any) -> Any:
    return _array_at(float64[:, ::1])


@intrinsic
def table_at(typingctx: Any, memory: Any, first: Any, rows: Any, columns: Any) -> Any:
    return _array_at(int64[:, ::1])
