"""Which kernels an epoch runs on, and on how many threads."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from ..._validate import Array


@functools.cache
def _kernels() -> tuple[Any, Callable[..., Any], Any]:
    """What an epoch needs of the compiled code: imported late, for numba takes long to load, and looked up once."""
    from ...kernels import sdca_admm, teams
    from ...kernels.compiled import interrupts_held

    return teams, interrupts_held, sdca_admm


def _apart(count: int, size: int) -> Array:
    """Rows of at least this size that begin at different places of a page: a load must not wait for an unlike store."""
    return np.empty((count, -(-size // 512) * 512 + 56))


def _threads(n_jobs: int | None) -> int:
    """The number of threads that n_jobs asks for, in joblib's way of counting."""
    if n_jobs is None:
        return 1
    if not (isinstance(n_jobs, numbers.Integral) and not isinstance(n_jobs, bool) and n_jobs != 0):
        raise ValueError(f"n_jobs is {n_jobs!r}; it must be a whole number of threads, or -1 for all cores")
    from joblib import cpu_count

    return int(n_jobs) if n_jobs > 0 else max(1, cpu_count() + 1 + int(n_jobs))
