"""The quadratic model of a round on sparse columns, solved by passes over the columns instead of their Gram matrix.

A pass costs as much as some products with the columns. Three of four passes visit only coefficients that are not zero.
Then Newton's method on the support, by products (``products.py``), goes on for as long as the passes took, or longer
where it crosses nothing: both together cost at most about twice the better of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..accuracy import ROUNDS_CHEAP
from ..curvatures.gram import centred
from ..units import Vector
from .local import LocalPenalty
from .products import SupportProducts

_COPY = 10  # passes over entries that cost as much as to copy and turn them; larger: the copy comes later


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
        self.rows, self.passes = weight.size, 0.0
        self.inverse = np.divide(1.0, weight, out=np.zeros(weight.size), where=weight > 0)
        self.height = max(float(weight.sum()), 1e-300)
        self.total = self.height if intercept else 0.0
        self.centres = np.zeros(ridge.size)
        if intercept:
            sparse_columns.rows_times(self.values, self.places, self.ends, weight, self.centres)

    def follow(self, push: Vector) -> Callable[[Vector], Vector]:
        """The step of the intercept, whose slope is `push`, that goes with a change of the coefficients."""
        return lambda change: -(push + float(self.centres @ change)) / self.height

    def _bends(self, penalty: LocalPenalty) -> Vector:
        """The curvature along every coefficient, or a bound of it for every group."""
        if penalty.grouped:
            bends = np.empty(penalty.norm.size)
            self.kernels.block_bends(
                self.values, self.places, self.ends, self.weight, self.ridge, self.centres, self.total, penalty.start,
                np.zeros(self.rows), bends,
            )  # fmt: skip
            return bends
        bends = np.empty(self.ridge.size)
        self.kernels.rows_times(self.values**2, self.places, self.ends, self.weight, bends)
        if self.total:
            bends = centred(bends, self.centres**2 / self.total)
        return bends + self.ridge

    def solve(self, slope: Vector, v: Vector, penalty: LocalPenalty, target: float, most: float = math.inf) -> None:
        """Bring v so far that the model's gap is at most `target`, by passes alone up to `most` of them where these are
        what a Gram matrix costs; `slope` is the gradient where v begins."""
        start, rest, sums, space = v.copy(), np.zeros(self.rows), np.zeros(1), np.empty(v.size)
        columns, bends = (self.values, self.places, self.ends, self.weight), self._bends(penalty)
        model = (slope, self.ridge, self.centres, self.total, start, v, penalty.l1, penalty.lower, penalty.upper,
                 rest, sums)  # fmt: skip

        def visit(active: bool, moving: bool) -> float:
            if not moving:
                self.passes += 1
            if penalty.grouped:
                groups = penalty.start, penalty.norm, space
                return float(self.kernels.descend_group_columns(*columns, bends, *model, active, moving, *groups))
            return float(self.kernels.descend_columns(*columns, bends, *model, active, moving))

        spent = 0.0
        for turn in range(ROUNDS_CHEAP):
            active = turn % 4 != 0
            left = visit(active, True)
            if not active:
                support = penalty.support(v)
                entries = float((self.ends[support + 1] - self.ends[support]).sum())
            read = entries if active else float(self.values.size)
            self.passes += read / max(self.values.size, 1)
            spent += read
            # what a pass sees while it moves is too small where its first columns do the work of all
            if not active and left <= target and visit(False, False) <= target:
                break
            if not active and self.passes > most:
                break
            if active or spent < _COPY * entries or not support.size or most < math.inf:
                continue
            each = np.repeat(bends, np.diff(penalty.start)) if penalty.grouped else bends
            newton = SupportProducts(self, support, each[support], penalty.part(support))
            least = math.ceil(spent / max(newton.entries, 1))  # an iteration reads twice, a pass reads and writes
            count = newton.descend(slope, start, v, rest, sums, 0.3 * target, least)
            self.passes += count * newton.entries / max(self.values.size, 1)
            spent = 0.0
