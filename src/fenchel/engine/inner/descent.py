"""The quadratic model of a round, solved by coordinate descent and Newton's method on the support.

Descent finds the support; Anderson's extrapolation shortens it where the support is large. Newton's method is asked
once the descent has cost as much as its factor would, so that both together cost at most twice the better of the two.

Symbols: G curvature, q the model's gradient at v, l1 weights, norm the weights of groups.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from ..units import Index, Units, Vector

DEPTH = 5  # passes that an extrapolation looks back on; more cost memory and gain little
MANY = 100  # coefficients in the support from which extrapolation pays for its Python
_NESTED = 60  # turns on a support at the most, before all coefficients are looked at again
ROOM = 1.4  # times the support: a larger model is solved on the support first, in a compact matrix
_JITTER = {"float64": 1e-11, "float32": 1e-7}  # of the largest diagonal entry: what makes a factor exist


@dataclasses.dataclass
class LocalPenalty:
    """The penalty on the coefficients of a model; `start` and `norm` are empty where every unit is one coefficient."""

    l1: Vector
    lower: Vector
    upper: Vector
    start: Index
    norm: Vector

    @classmethod
    def of(cls, units: Units) -> LocalPenalty:
        """Of units that stand one after another."""
        none = units.start[:0], units.norm[:0]
        return cls(units.l1, units.lower, units.upper, *(none if units.alone else (units.start, units.norm)))

    @property
    def grouped(self) -> bool:
        return bool(self.norm.size)

    def value(self, v: Vector) -> float:
        total = float(self.l1 @ np.abs(v))
        if self.grouped:
            total += float(self.norm @ np.sqrt(np.add.reduceat(v * v, self.start[:-1])))
        return total

    def support(self, v: Vector) -> Index:
        """The coefficients of the units that are not zero."""
        if not self.grouped:
            return np.flatnonzero(v)
        live = np.add.reduceat(v * v, self.start[:-1]) > 0
        return np.flatnonzero(np.repeat(live, np.diff(self.start)))

    def part(self, some: Index) -> LocalPenalty:
        """On some of the coefficients: whole units of them."""
        limits = self.l1[some], self.lower[some], self.upper[some]
        if not self.grouped:
            return LocalPenalty(*limits, self.start[:0], self.norm[:0])
        units = np.searchsorted(self.start, some, side="right") - 1
        first = np.flatnonzero(np.diff(units, prepend=-1))
        return LocalPenalty(*limits, np.append(first, some.size), self.norm[units[first]])


class ModelDescent:
    """Minimise  q'd + d'Gd/2 + penalty(v + d).

    `prices` are nanoseconds of the operations; `patience` is the share of a factor's price that descent may cost before
    Newton's method is asked.
    """

    def __init__(self, prices: Any, patience: float = 1.0) -> None:
        self.prices, self.patience = prices, patience

    def solve(self, G: Any, q: Vector, v: Vector, penalty: LocalPenalty, target: float, most: int = 400) -> float:
        """Bring v (and q with it) so far that the model's gap is at most `target`; returns the gap that is left."""
        m, spent, gap = v.size, 0.0, np.inf
        run = _Grouped(G, q, v, penalty) if penalty.grouped else _Single(G, q, v, penalty)
        nested, stuck, before = not penalty.grouped and most > _NESTED, 0, np.inf
        start, slope, value = v.copy(), q.copy(), np.inf
        for turn in range(most):
            active = int(np.count_nonzero(v))
            if nested and turn and active > 1.5 * MANY and m > ROOM * active:
                gap = self._on_support(G, q, v, penalty, max(0.3 * gap, 0.5 * target))
                run.passes(1)
            elif active > MANY:
                moved = self._extrapolated(run, q, v, penalty)
                spent += moved * m * self.prices.descent + 55 * self.prices.call
            else:
                moved = run.passes(3)
                spent += 0.5 * moved * m * self.prices.descent + 7 * self.prices.call
            gap = run.gap()
            if gap <= target or not np.isfinite(gap):
                break
            # the estimate of the gap may grow on the way, while the model falls
            value, last = 0.5 * float((v - start) @ (q + slope)) + penalty.value(v), value
            gained = last - value > max(0.1 * target, 1e-13 * abs(value))
            stuck = stuck + 1 if gap > 0.9 * before and not gained else 0
            before = min(gap, before)
            if stuck > 40:
                break  # rounding: nothing more is to be had
            price = (
                active**3 / 6 * self.prices.potrf + 2 * active * m * self.prices.descent + active**2
                + 100 * self.prices.call
            )  # fmt: skip
            if active and spent >= self.patience * price:
                run.newton()
                spent = 0.0
        return gap

    def _on_support(self, G: Any, q: Vector, v: Vector, penalty: LocalPenalty, target: float) -> float:
        """The model on the support, and what is about to join it, in a matrix of its own."""
        from ...kernels.units import add_rows, gather

        some = np.flatnonzero((v != 0) | (np.abs(q) > 0.999 * penalty.l1))
        small = np.empty((some.size, some.size), dtype=G.dtype)
        gather(G, some, small)
        values, slopes = v[some], q[some]
        gap = self.solve(small, slopes, values, penalty.part(some), target, most=_NESTED)
        change = values - v[some]
        v[some] = values
        add_rows(G, some, change, v.size, q)
        return gap

    def _extrapolated(self, run: Any, q: Vector, v: Vector, penalty: LocalPenalty) -> int:
        """Some passes, and where they seem to lead if that is lower; returns how many coefficients moved."""
        points, slopes = np.empty((DEPTH + 1, v.size)), np.empty((DEPTH + 1, v.size))
        points[0], slopes[0], moved = v, q, 0
        for k in range(DEPTH):
            moved += run.passes(1)
            points[k + 1], slopes[k + 1] = v, q
        steps = np.diff(points, axis=0)
        products = steps @ steps.T
        products[np.diag_indices(DEPTH)] += 1e-10 * np.trace(products) / DEPTH
        try:
            mix = np.linalg.solve(products, np.ones(DEPTH))
        except np.linalg.LinAlgError:
            return moved
        total = mix.sum()
        if not np.isfinite(total) or total == 0:
            return moved
        mix /= total
        ahead, ahead_q = mix @ points[1:], mix @ slopes[1:]
        np.clip(ahead, penalty.lower, penalty.upper, out=ahead)
        if np.any(ahead != mix @ points[1:]):
            return moved
        # the model's value at a point relative to another one follows from its slopes at both
        gain = 0.5 * float((ahead - v) @ (ahead_q + q)) + penalty.value(ahead) - penalty.value(v)
        if gain < 0:
            v[:], q[:] = ahead, ahead_q
        return moved


def _factor(H: Any, jitter: float) -> Any:
    """The Cholesky factor of a symmetric matrix given by its lower triangle in C's order; None where there is none."""
    diagonal = np.arange(len(H))
    for _ in range(4):
        H[diagonal, diagonal] += jitter
        factor, info = dpotrf(H.T, lower=0, clean=0, overwrite_a=0)
        if info == 0:
            return factor
        jitter *= 1000
    return None


class _Single:
    """Units of one coefficient."""

    def __init__(self, G: Any, q: Vector, v: Vector, penalty: LocalPenalty) -> None:
        from ...kernels import units

        self.kernels, self.G, self.q, self.v, self.penalty, self.m = units, G, q, v, penalty, v.size
        self.limits = penalty.l1, penalty.lower, penalty.upper

    def passes(self, count: int) -> int:
        return int(self.kernels.descend(self.G, self.m, self.q, self.v, *self.limits, count)[2])

    def gap(self) -> float:
        return float(self.kernels.model_gap(self.G, self.m, self.q, self.v, *self.limits))

    def newton(self) -> None:
        """A step of Newton's method on the coefficients that can move; those that would pass zero or a bound stop."""
        l1, lower, upper = self.limits
        v, q = self.v, self.q
        some = np.flatnonzero(((v != 0) | (l1 == 0)) & (v > lower) & (v < upper))
        if not some.size:
            return
        H = np.empty((some.size, some.size))
        self.kernels.gather_lower(self.G, some, H)
        old, weight = v[some], l1[some]
        factor = _factor(H, _JITTER[self.G.dtype.name] * H.diagonal().max())
        if factor is None:
            return
        step = dpotrs(factor, -(q[some] + weight * np.sign(old)), lower=0)[0]
        low = np.where((weight > 0) & (old > 0), 0.0, lower[some])
        high = np.where((weight > 0) & (old < 0), 0.0, upper[some])
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step > 0, (high - old) / step, np.where(step < 0, (low - old) / step, np.inf))
        nearest = int(reach.argmin())
        first = min(1.0, float(reach[nearest]))
        for share in (1.0, 0.5, 0.2, 0.05, first):
            share = max(share, first)
            new = np.clip(old + share * step, low, high)
            if share == first < 1.0:
                new[nearest] = high[nearest] if step[nearest] > 0 else low[nearest]
            change = new - old
            slope = np.zeros(self.m)
            self.kernels.add_rows(self.G, some, change, self.m, slope)
            if share == first:
                break
            if q[some] @ change + 0.5 * (slope[some] @ change) + weight @ (np.abs(new) - np.abs(old)) < 0:
                break
        v[some] = new
        q += slope


class _Grouped:
    """Units of several coefficients."""

    def __init__(self, G: Any, q: Vector, v: Vector, penalty: LocalPenalty) -> None:
        from ...kernels import unit_groups

        self.kernels, self.G, self.q, self.v, self.penalty, self.m = unit_groups, G, q, v, penalty, v.size
        self.bend = np.empty(penalty.norm.size)
        unit_groups.block_bounds(G, penalty.start, self.bend)
        self.space = np.empty(v.size)
        self.limits = penalty.l1, penalty.lower, penalty.upper, penalty.start, penalty.norm, self.bend

    def passes(self, count: int) -> int:
        found = self.kernels.descend_groups(self.G, self.m, self.q, self.v, *self.limits, self.space, count)
        return int(found[2])

    def gap(self) -> float:
        return float(self.kernels.group_gap(self.G, self.m, self.q, self.v, *self.limits))

    def newton(self) -> None:
        """A step of Newton's method on the support, with the curvature of the norms, shortened until it descends."""
        from ...kernels.units import add_rows, gather_lower

        penalty, v, q = self.penalty, self.v, self.q
        live = np.repeat(np.add.reduceat(v * v, penalty.start[:-1]) > 0, np.diff(penalty.start))
        normed = np.repeat(penalty.norm > 0, np.diff(penalty.start))
        smooth = np.where(normed, live, True) & ((v != 0) | (penalty.l1 == 0)) & ((v != 0) | ~normed | live)
        some = np.flatnonzero(smooth & (v > penalty.lower) & (v < penalty.upper))
        if not some.size:
            return
        H = np.empty((some.size, some.size))
        gather_lower(self.G, some, H)
        place = np.full(self.m, -1, dtype=np.int64)
        place[some] = np.arange(some.size)
        jitter = _JITTER[self.G.dtype.name] * H.diagonal().max()
        slope = q[some] + penalty.l1[some] * np.sign(v[some])
        self.kernels.group_curvature(v, penalty.start, penalty.norm, place, H, slope)
        factor = _factor(H, jitter)
        if factor is None:
            return
        step = dpotrs(factor, -slope, lower=0)[0]
        old, before = v[some], penalty.value(v)
        signed = penalty.l1[some] > 0
        low = np.where(signed & (old > 0), 0.0, penalty.lower[some])
        high = np.where(signed & (old < 0), 0.0, penalty.upper[some])
        new, share = v.copy(), 1.0
        for _ in range(12):
            new[some] = np.clip(old + share * step, low, high)
            change = new[some] - old
            move = np.zeros(self.m)
            add_rows(self.G, some, change, self.m, move)
            if q[some] @ change + 0.5 * (move[some] @ change) + penalty.value(new) - before < 0:
                v[:] = new
                q += move
                return
            share *= 0.5
