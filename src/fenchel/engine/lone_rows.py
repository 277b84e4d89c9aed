"""Dual variables brought into balance without a solve, where every feature has a row of B' to itself.

Beside differences there is often an l1 norm. What is left of Zx + By = 0 then goes to its rows, one number each. That
is as good as the closest balanced y where little is left, and takes no factor of B B', which fills up on graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Problem
from .parts import Vector


def lone_rows(problem: Problem) -> Any:
    """For every feature a row of B' that sees it alone; None where some feature has none."""
    rows, features = problem.links[0]
    found = np.full(problem.map.shape[1], -1, dtype=np.int64)
    found[features] = rows
    return None if np.any(found < 0) else found


def by_lone_rows(problem: Problem, rows: Any, zx: Vector, y: Vector) -> Vector:
    """y with what is left of Zx + By = 0 put on those rows; y is overwritten."""
    left = (zx + problem.spread(y))[problem.feature_slots]
    y[rows] -= left / problem.map.data[problem.map.indptr[rows]]
    return y
