"""The quadratic model of a round on sparse columns, solved without its Gram matrix by passes over the columns.

A pass costs as much as some products with the columns. Three of four passes visit only coefficients that are not zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..units import Vector
from .descent import LocalPenalty

_PASSES = 200  # at the most; what is left then is the next model's


class ColumnDescent:
    """A model with one output. `weight` is the curvature of the rows over n, `ridge` the penalty's quadratic.

    Attributes
    ----------
    centres, height : X'weight and the sum of the weights, where an intercept follows the coefficients
    passes : over the columns, so far
    """

    def __init__(self, columns: Any, weight: Vector, ridge: Vector, intercept: bool) -> None:
        from ...kernels import sparse_columns

        self.kernels, self.weight, self.ridge = sparse_columns, weight, ridge
        self.values, self.places, self.ends = columns.by_column
        self.rows, self.passes = weight.size, 0
        self.height = max(float(weight.sum()), 1e-300)
        self.bend, self.centres = ridge.copy(), np.zeros(ridge.size)
        bend = np.empty(ridge.size)
        sparse_columns.rows_times(self.values**2, self.places, self.ends, weight, bend)
        self.bend += bend
        if intercept:
            sparse_columns.rows_times(self.values, self.places, self.ends, weight, self.centres)
            self.bend -= self.centres**2 / self.height
        self.total = self.height if intercept else 0.0

    def solve(self, slope: Vector, v: Vector, penalty: LocalPenalty, target: float) -> None:
        """Bring v so far that the model's gap is at most `target`; `slope` is the gradient where v begins."""
        rest, sums, space = np.zeros(self.rows), np.zeros(1), np.empty(v.size)
        columns = self.values, self.places, self.ends, self.weight
        model = (slope, self.ridge, self.centres, self.total, v.copy(), v, penalty.l1, penalty.lower, penalty.upper,
                 rest, sums)  # fmt: skip
        # the sum of a block's diagonal bounds its curvature
        bend = np.add.reduceat(self.bend, penalty.start[:-1]) if penalty.grouped else self.bend
        def visit(active: bool, moving: bool) -> float:
            self.passes += 1
            if penalty.grouped:
                groups = penalty.start, penalty.norm, space
                return float(self.kernels.descend_group_columns(*columns, bend, *model, active, moving, *groups))
            return float(self.kernels.descend_columns(*columns, bend, *model, active, moving))

        for turn in range(_PASSES):
            active = turn % 4 != 0
            left = visit(active, True)
            if not active and left <= target and visit(False, False) <= target:
                break
