"""The prox of a penalty as it runs: compiled, called from Python, and its derivative where no penalty knows it."""

from __future__ import annotations

import functools
import inspect
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._validate import Array
from ..foundation.numerics import DIFFERENCE, TINY

if TYPE_CHECKING:
    from .base import Penalty


def run_prox(function: Penalty, u: Array, step: float | Array) -> Array:
    """The compiled prox of a sized penalty, from Python."""
    u = np.array(u, dtype=float)
    if function.size() not in (None, len(u)):
        raise ValueError(f"{function!r} acts on {function.size()} coordinates, but there are {len(u)}")
    step = np.asarray(step, dtype=float)
    step = np.ascontiguousarray(step if step.shape == u.shape else np.broadcast_to(step, u.shape))
    arrays = u, step, function.params, function.index
    _by_address(compiled_prox(function).address)(len(u), *(array.ctypes.data for array in arrays))
    return u


@functools.cache
def _by_address(address: int) -> Any:
    """A prox that takes the addresses of its arrays: to make typed pointers takes longer than most proxes do."""
    import ctypes

    return ctypes.CFUNCTYPE(None, ctypes.c_int64, *4 * [ctypes.c_void_p])(address)


def compiled_prox(function: Penalty) -> Any:
    """The prox as a C function (or a callback into Python, which has `check`)."""
    from ..kernels import compiled, penalties

    if function.kernel is not None:
        kernel = function.kernel
        return compiled.compile_prox(getattr(penalties, kernel) if isinstance(kernel, str) else kernel)
    if function.numba_prox is not None:
        return compiled.numba_prox(inspect.getattr_static(function, "numba_prox"))
    return compiled.python_prox(function.prox)


def jacobian_by_differences(function: Penalty, u: Array, step: float | Array) -> Any:
    """The derivative of a prox: the k-th coordinates of all units are moved together."""
    d, out = len(u), sp.lil_array((len(u), len(u)))
    _, labels = np.unique(function.units(d), return_inverse=True)
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(labels.max(initial=-1) + 2))
    parts = [order[first:last] for first, last in itertools.pairwise(bounds.tolist())]
    h = DIFFERENCE * (np.abs(u).max(initial=0.0) + np.max(step) + TINY)
    columns = np.zeros((d, max(map(len, parts), default=0)))
    for k in range(columns.shape[1]):
        move = np.zeros(d)
        move[[part[k] for part in parts if len(part) > k]] = h
        columns[:, k] = (function.prox(u + move, step) - function.prox(u - move, step)) / (2 * h)
    for part in parts:
        own = columns[np.ix_(part, np.arange(len(part)))]
        values, vectors = np.linalg.eigh((own + own.T) / 2)
        out[np.ix_(part, part)] = (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T
    return sp.csr_array(out)
