r"""Newton's method on the support of a model on sparse columns, by conjugate gradients: products instead of a matrix.

Where the signs are kept, the model is smooth on the coefficients that are not zero. Conjugate gradients minimise it
(its second-order expansion, where groups have norms) with two products an iteration, until a sign or a bound would be
crossed. The step there is halved until the model falls, what has reached zero or a bound stays, and the rest goes on:
gradient projection with conjugate gradients (Moré and Toraldo, 1991). Passes of coordinate descent need as many
iterations as the condition number of the columns, this needs its square root.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...foundation.numerics import HALVINGS
from ..units import Index, Vector
from .local import LocalPenalty

LOOK = 4  # iterations after which signs and accuracy are looked at; larger: more of them in vain, fewer looks


class SupportProducts:
    """The model of :class:`.columns.ColumnDescent` on some of its coefficients: whole units that are not zero.

    `bends` is a bound of the curvature of every coefficient among them, and `penalty` the penalty on them.
    """

    def __init__(self, model: Any, some: Index, bends: Vector, penalty: LocalPenalty) -> None:
        counts = model.ends[some + 1] - model.ends[some]
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.repeat(model.ends[some] - ends[:-1], counts) + np.arange(ends[-1])
        self.columns = model.values[entries], model.places[entries], ends
        self.by_row = np.empty(ends[-1]), np.empty(ends[-1], np.int32), np.empty(model.rows + 1, np.int64)
        model.kernels.turn(*self.columns, *self.by_row)
        self.kernels, self.weight, self.inverse = model.kernels, model.weight, model.inverse
        self.some, self.bends, self.penalty = some, bends, penalty
        self.ridge, self.centres, self.total = model.ridge[some], model.centres[some], model.total

    @property
    def entries(self) -> int:
        return int(self.columns[2][-1])

    def times(self, d: Vector) -> Vector:
        """The columns times d."""
        out = np.empty(self.weight.size)
        self.kernels.rows_times(*self.by_row, d, out)
        return out

    def back(self, rest: Vector, total: float) -> Vector:
        """The columns, centred where there is an intercept, times what is on the rows."""
        out = np.empty(self.some.size)
        self.kernels.rows_times(*self.columns, rest, out)
        if self.total:
            out -= self.centres * (total / self.total)
        return out

    def value(self, move: Vector, slope: Vector, v: Vector, rest: Vector, total: float) -> float:
        """The model and the penalty at v = start + move, where rest = diag(weight) X move."""
        value = slope @ move + 0.5 * (rest @ (rest * self.inverse)) + 0.5 * (self.ridge @ (move * move))
        return float(value) - (0.5 * total**2 / self.total if self.total else 0.0) + self.penalty.value(v)

    def descend(self, slope: Vector, start: Vector, v: Vector, rest: Vector, sums: Vector, target: float,
                least: int) -> int:  # fmt: skip
        """Go down from v, with `rest` and `sums` as in :class:`.columns.ColumnDescent`, at most to a gap of `target`;
        all of them change in place. At least `least` iterations, and as many more as cross nothing; how many they
        were."""
        some, penalty = self.some, self.penalty
        now, slope, begin = v[some], slope[some], start[some]
        low, high = penalty.lower, penalty.upper
        held = penalty.l1 > 0
        low = np.where(held & (now >= 0), np.maximum(low, 0.0), low)
        high = np.where(held & (now <= 0), np.minimum(high, 0.0), high)
        free = (now > low) & (now < high)
        total, done, count = float(sums[0]), False, 0
        here = self.value(now - begin, slope, now, rest, total)
        while not done and count < least and free.any():
            smooth = _Smooth(penalty, now)
            r = slope + self.ridge * (now - begin) + self.back(rest, total) + smooth.gradient
            d, product, turns, done = self._conjugate(-r * free, free, now, low, high, smooth, target)
            count += turns
            along, share = self.weight * product, 1.0
            for _ in range(HALVINGS):
                plain = now + share * d
                new = np.clip(plain, low, high)
                cut, move = new != plain, new - now
                ahead = rest + (self.weight * self.times(move) if cut.any() else share * along)
                sum_ahead = total + float(self.centres @ move)
                there = self.value(new - begin, slope, new, ahead, sum_ahead)
                if there < here:
                    break
                share *= 0.5
            else:
                break
            now, total, here = new, sum_ahead, there
            rest[:] = ahead
            free &= ~cut
            done = done and not cut.any() and not penalty.grouped
        v[some], sums[0] = now, total
        return count

    def _conjugate(self, r: Vector, free: Any, now: Vector, low: Vector, high: Vector, smooth: _Smooth,
                   target: float) -> tuple[Vector, Vector, int, bool]:  # fmt: skip
        """A step from `now`, where the slope is -r, its product with the columns, the iterations, and whether nothing
        was crossed before the target was reached."""
        inverse = free / np.maximum(self.bends + self.ridge + smooth.bend, np.finfo(float).tiny)
        d, along = np.zeros(r.size), np.zeros(self.weight.size)
        z = inverse * r
        p, power = z.copy(), float(r @ z)
        least = float(np.finfo(float).eps) ** 2 * power
        for turn in range(1, r.size + 1):
            product = self.times(p)
            bent = self.back(self.weight * product, float(self.centres @ p))
            bent += self.ridge * p + smooth.times(p)
            bent *= free
            curve = float(p @ bent)
            if not curve > 0.0:
                return d, along, turn, True
            step = power / curve
            d += step * p
            along += step * product
            r = r - step * bent
            z = inverse * r
            power, last = float(r @ z), power
            if power <= least:
                return d, along, turn, True
            if turn % LOOK == 0:
                if smooth.gap(r, now + d) <= target:
                    return d, along, turn, True
                ahead = now + d
                if ((ahead < low) | (ahead > high)).any():
                    return d, along, turn, False
            p = z + (power / last) * p
        return d, along, r.size, True


class _Smooth:
    """The penalty where no coefficient changes its sign and no group its being zero."""

    def __init__(self, penalty: LocalPenalty, now: Vector) -> None:
        self.penalty, self.sizes = penalty, np.diff(penalty.start)
        self.scale, self.size = penalty.l1.copy(), max(penalty.value(now), np.finfo(float).tiny)
        self.gradient, self.bend = penalty.l1 * np.sign(now), np.zeros(now.size)
        if penalty.grouped:
            length = np.sqrt(np.add.reduceat(now * now, penalty.start[:-1]))
            # a group that has come to zero stays there
            inverse = np.divide(1.0, length, out=np.zeros(length.size), where=length > 0)
            self.direction = now * np.repeat(inverse, self.sizes)
            norm = np.repeat(penalty.norm, self.sizes)
            self.gradient += norm * self.direction
            self.bend = norm * np.repeat(inverse, self.sizes)
            self.scale += norm

    def times(self, p: Vector) -> Vector:
        """The penalty's curvature times p."""
        if not self.penalty.grouped:
            return self.bend
        inner = np.add.reduceat(self.direction * p, self.penalty.start[:-1])
        across: Vector = p - self.direction * np.repeat(inner, self.sizes)
        return self.bend * across

    def gap(self, r: Vector, v: Vector) -> float:
        """About the model's gap at v, whose slope is r."""
        size = np.abs(r)
        over = np.divide(size, self.scale, out=np.zeros(r.size), where=self.scale > 0).max(initial=0.0)
        return float(np.abs(v) @ size + over / (1 + over) * self.size)
