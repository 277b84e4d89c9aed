"""The quadratic model of a round on sparse columns, solved by passes over the columns instead of their Gram matrix.

A pass costs as much as some products with the columns. Three of four passes visit only coefficients that are not zero.
Every few passes the point that they tend to is foreseen (Anderson's extrapolation), and taken where the model is lower:
the products with the columns there are the same combination of those after the passes, so that no column is read. Once
the passes have cost as much as the Gram matrix of the support would, that is made, and the model is solved there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernels.rules import DEPTH
from ..curvatures.gram import centred
from ..set_parts import InnerSolver
from ..units import Index, Vector
from .local import LocalPenalty

_PASSES = 200  # at the most; what is left then is the next model's
_LEAST = 4  # passes before the support is worth a look

_FLAT = 1e-10  # of the squares of the steps: what makes their Gram matrix regular
_NOTHING = np.zeros(0, dtype=np.int64)


class ColumnDescent:
    """A model with one output. `weight` is the curvature of the rows over n, `ridge` the penalty's quadratic.

    Attributes
    ----------
    centres, height : X'weight and the sum of the weights, where an intercept follows the coefficients
    passes : over the columns, so far
    """

    def __init__(self, columns: Any, weight: Vector, ridge: Vector, intercept: bool, inner: InnerSolver) -> None:
        from ...kernels import sparse_columns

        self.kernels, self.weight, self.ridge, self.inner = sparse_columns, weight, ridge, inner
        self.values, self.places, self.ends = columns.by_column
        self.pairs, self.prices = columns.pairs, inner.prices
        self.rows, self.passes = weight.size, 0.0
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

    def solve(self, slope: Vector, v: Vector, penalty: LocalPenalty, target: float) -> None:
        """Bring v so far that the model's gap is at most `target`; `slope` is the gradient where v begins."""
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

        spent, support, entries, past = 0.0, _NOTHING, 0.0, _Past(self, slope, start, penalty)
        for turn in range(_PASSES):
            active = turn % 4 != 0
            left = visit(active, True)
            if not active:
                support = penalty.support(v)
                entries = float((self.ends[support + 1] - self.ends[support]).sum())
            past.extrapolate(v, rest, sums)
            read = entries if active else float(self.values.size)
            self.passes += read / max(self.values.size, 1)
            spent += 1.3 * self.prices.csc_pass * read
            # what a pass sees while it moves is too small where its first columns do the work of all
            if not active and left <= target and visit(False, False) <= target:
                break
            if active or turn < _LEAST or not support.size or spent < self._price(support.size, entries):
                continue
            self._on_support(support, slope, start, v, penalty, rest, sums, max(0.3 * left, 0.5 * target))
            past.forget()
            spent = 0.0

    def _price(self, size: int, entries: float) -> float:
        """The Gram matrix of so many columns with these entries, and the model on it."""
        share = entries / max(self.values.size, 1)
        matrix = share**2 * self.pairs * self.prices.csr_gram + 4 * entries * self.prices.csc_pass
        return float(matrix + size**3 / 6 * self.prices.potrf + size**2 * (2.0 + 12 * self.prices.descent))

    def _on_support(self, some: Index, slope: Vector, start: Vector, v: Vector, penalty: LocalPenalty, rest: Vector,
                    sums: Vector, target: float) -> None:  # fmt: skip
        """The model on coefficients that are not zero (with the rest of their groups), by their Gram matrix."""
        counts = self.ends[some + 1] - self.ends[some]
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.repeat(self.ends[some] - ends[:-1], counts) + np.arange(ends[-1])
        columns = self.values[entries], self.places[entries], ends
        rows = np.empty(ends[-1]), np.empty(ends[-1], np.int32), np.empty(self.rows + 1, np.int64)
        self.kernels.turn(*columns, *rows)
        G = np.empty((some.size, some.size))
        self.kernels.gram(*rows, self.weight, G, some.size)
        q = np.empty(some.size)
        self.kernels.rows_times(*columns, rest, q)
        q += slope[some] + self.ridge[some] * (v[some] - start[some])
        G[np.diag_indices(some.size)] += self.ridge[some]
        if self.total:
            centre = self.centres[some]
            G -= np.outer(centre / self.total, centre)
            q -= centre * (sums[0] / self.total)
        new = v[some]
        self.inner.solve(G, q, new, penalty.part(some), target, most=60)
        change = new - v[some]
        v[some] = new
        along = np.empty(self.rows)
        self.kernels.rows_times(*rows, change, along)
        rest += self.weight * along
        sums[0] += float(self.centres[some] @ change)


class _Past:
    """The last points of the passes over a model, with their products rest = diag(weight) X (v - start)."""

    def __init__(self, model: ColumnDescent, slope: Vector, start: Vector, penalty: LocalPenalty) -> None:
        self.model, self.slope, self.start, self.penalty = model, slope, start, penalty
        self.points: list[tuple[Vector, Vector, float]] = []
        weight = model.weight
        self.inverse = np.divide(1.0, weight, out=np.zeros(weight.size), where=weight > 0)

    def forget(self) -> None:
        self.points.clear()

    def extrapolate(self, v: Vector, rest: Vector, sums: Vector) -> None:
        """Remember this point; after some of them go to where they tend to, if the model is lower there."""
        self.points.append((v.copy(), rest.copy(), float(sums[0])))
        if len(self.points) <= DEPTH:
            return
        points, products, totals = (np.array(part) for part in zip(*self.points, strict=True))
        self.points = self.points[-1:]
        steps = np.diff(points, axis=0)
        squares = steps @ steps.T
        scale = float(np.trace(squares))
        if not scale > 0.0:
            return
        share = np.linalg.solve(squares + _FLAT * scale * np.eye(DEPTH), np.ones(DEPTH))
        if not math.isfinite(1.0 / share.sum()):
            return
        share /= share.sum()
        ahead, product, total = share @ points[1:], share @ products[1:], float(share @ totals[1:])
        inside = not self.penalty.bounded or bool(
            (ahead >= self.penalty.lower).all() and (ahead <= self.penalty.upper).all()
        )
        if inside and self._value(ahead, product, total) < self._value(v, rest, float(sums[0])):
            v[:], rest[:], sums[0] = ahead, product, total
            self.points.clear()

    def _value(self, v: Vector, rest: Vector, total: float) -> float:
        """The model and the penalty, less what all points share."""
        move, model = v - self.start, self.model
        value = self.slope @ move + 0.5 * (rest @ (rest * self.inverse)) + 0.5 * (model.ridge @ (move * move))
        if model.total:
            value -= 0.5 * total**2 / model.total
        return float(value) + self.penalty.value(v)
