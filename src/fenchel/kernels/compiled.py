"""C functions for the kernels: built-in ones compiled once and cached, a user's compiled or called back."""

from __future__ import annotations

import contextlib
import ctypes
import functools

import numpy as np
from numba import carray
from numba.core.dispatcher import Dispatcher

from ..foundation import interrupts
from .caching import cfunc
from .calls import PROX_CTYPE, PROX_SIGNATURE, STEP_CTYPE, STEP_SIGNATURE
from .rows import KERNEL

# a dual step that takes the addresses of its arrays: to make typed pointers takes longer than a step on few rows
STEP_BY_ADDRESS = ctypes.CFUNCTYPE(None, ctypes.c_int64, *6 * [ctypes.c_void_p])


@functools.cache
def compile_step(function):
    """A loss's dual step, written over pointers as in `losses.py`, as a C function."""
    return cfunc(STEP_SIGNATURE, cache=True, **KERNEL)(function)


@functools.cache
def compile_prox(function):
    """A penalty's prox, written over pointers as in `penalties.py`, as a C function."""
    return cfunc(PROX_SIGNATURE, cache=True, **KERNEL)(function)


def interrupts_held(functions):
    """Keep Ctrl-C back while a kernel calls back into Python, where ctypes would swallow it; raise it afterwards."""
    return interrupts.interrupts_held() if any(map(calls_python, functions)) else contextlib.nullcontext()


class Callback:
    """A plain Python function behind a C address; an exception inside is kept for the solver to raise."""

    def __init__(self, kind, function):
        self.error: BaseException | None = None

        def guarded(*args):
            if self.error is None:
                try:
                    function(*args)
                except BaseException as error:
                    self.error = error

        self._keep = kind(guarded)
        self.address = ctypes.cast(self._keep, ctypes.c_void_p).value

    def check(self):
        if self.error is not None:
            error, self.error = self.error, None
            raise error


def calls_python(function) -> bool:
    """Whether a C function is a callback into Python, which is slow and may raise."""
    return isinstance(function, Callback)


def raise_errors(*functions) -> None:
    """Raise what functions written in Python have raised inside a kernel."""
    for function in functions:
        if calls_python(function):
            function.check()


def python_step(function):
    """function(point, curvature, target, weight) -> x, over arrays."""

    def step(n, x, point, curvature, target, weight, params):
        view = functools.partial(np.ctypeslib.as_array, shape=(n,))
        view(x)[:] = function(view(point), view(curvature), view(target), view(weight))

    return Callback(STEP_CTYPE, step)


def python_prox(function):
    """function(u, step) -> prox, over arrays; step has one entry per coordinate."""

    def prox(d, u, step, params, index):
        values = np.ctypeslib.as_array(u, shape=(d,))
        finite = np.isfinite(values).all()
        values[:] = function(values.copy(), np.ctypeslib.as_array(step, shape=(d,)))
        if finite and not np.isfinite(values).all():
            place = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(f"the prox of a penalty returned {values[place]} at coordinate {place} for a finite point")

    return Callback(PROX_CTYPE, prox)


@functools.cache
def numba_step(scalar: Dispatcher):
    """A user's numba function (point, curvature, target) -> x, the plain prox of f*/curvature."""

    def step(n, x, point, curvature, target, weight, params):
        for i in range(n):
            s = weight[i]
            x[i] = 0.0 if s == 0.0 else s * scalar(point[i] / s, curvature[i] * s, target[i])

    return cfunc(STEP_SIGNATURE)(step)


@functools.cache
def numba_prox(function: Dispatcher):
    """A user's numba function (u, step) that overwrites u, both arrays, with the prox."""

    def prox(d, u, step, params, index):
        function(carray(u, d), carray(step, d))

    return cfunc(PROX_SIGNATURE)(prox)
