"""Several threads in one kernel: they meet at a barrier, without Python and without locks.

Each member calls the same compiled function (which releases the interpreter's lock) with a team of its own number:
``(member, members, flags, pause)``. `flags` is a shared int64 array of zeros, `pause` the address of the system's
function that lets another thread run. Members do the same sums in the same order, so the answer depends on their number
but not on who comes first.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .caching import WITHIN, njit
from .rows import LEAN

_PATIENCE = 2_000  # turns of waiting before the processor is offered to somebody else
ALONE = (0, 1, np.zeros(1, dtype=np.int64), 0)  # a team of one, which meets nobody
_AGAIN = 16  # calls, until the slower way is tried again


@intrinsic
def _arrive(typingctx, flags):
    """Add one to flags[0], at once for all threads."""
    signature = types.void(flags)

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        builder.atomic_rmw("add", data, ir.Constant(ir.IntType(64), 1), "seq_cst")
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _arrived(typingctx, flags):
    """flags[0] as it is now."""
    signature = types.int64(flags)

    def codegen(context, builder, sig, args):
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return builder.load_atomic(data, "seq_cst", 8)

    return signature, codegen


@intrinsic
def _call(typingctx, address):
    """Call a C function without arguments."""
    signature = types.void(types.int64)

    def codegen(context, builder, sig, args):
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def _relax(typingctx):
    """Tell the core that this thread only waits: a sibling on the same core then runs at full speed."""

    def codegen(context, builder, sig, args):
        if platform.machine().lower() in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse2.pause", (), kind), [])
        return context.get_dummy_value()

    return types.void(), codegen


@njit(cache=True, **LEAN, **WITHIN)
def meet(team, meetings):
    """Wait until everybody is here; `meetings` is the number of meetings before. Returns that number now."""
    _member, members, flags, pause = team
    meetings += 1
    if members > 1:
        _arrive(flags)
        turns = 0
        while _arrived(flags) < members * meetings:
            turns += 1
            _relax()
            if turns % _PATIENCE == 0:
                _call(pause)
    return meetings


@functools.cache
def pause_address() -> int:
    """The system's function that gives up the processor for a moment."""
    name = "SwitchToThread" if os.name == "nt" else "sched_yield"
    library = ctypes.WinDLL("kernel32") if os.name == "nt" else ctypes.CDLL(None)
    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value


class Crew:
    """Threads that stay, and the habit of leaving the work to one of them where together they are slower.

    Together they are faster on cores of their own. Where others have work there too, everybody waits at every meeting
    for whoever was put off, which can take ten times as long as no help at all.
    """

    def __init__(self, members: int):
        self.members, self.pool, self.calls = members, ThreadPoolExecutor(members - 1), 0
        self.seconds = {True: None, False: None}  # per unit of work, together and alone, when last tried

    def run(self, function, work: int):
        """function(team) by every member at the same time, or by one for all; the answer of the first."""
        together = self._choose()
        start = time.perf_counter()
        answer = run(self.pool, self.members, function) if together else function(ALONE)
        self.seconds[together] = (time.perf_counter() - start) / max(work, 1)
        self.calls += 1
        return answer

    def _choose(self):
        """The way that was faster when last tried; the other one is tried again now and then."""
        for together, seconds in self.seconds.items():
            if seconds is None:
                return together
        faster = self.seconds[True] <= self.seconds[False]
        return faster if self.calls % _AGAIN else not faster


def run(pool, members, function):
    """function(team) by every member at the same time, the caller being the first; its answer."""
    flags, pause = np.zeros(1, dtype=np.int64), pause_address()
    try:
        others = [pool.submit(function, (member, members, flags, pause)) for member in range(1, members)]
    except RuntimeError:  # no more threads: let those that are there not wait for ever
        flags[0] = np.iinfo(np.int64).max // 2
        raise
    answer = function((0, members, flags, pause))
    for other in others:
        other.result()
    return answer
