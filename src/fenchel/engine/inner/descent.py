"""The quadratic model of a round, solved by coordinate descent and Newton's method on the support.

Descent finds the support; Anderson's extrapolation shortens it where the support is large. Newton's method is asked
once the descent has cost as much as its factor would, so that both together cost at most twice the better of the two.

Symbols: G curvature, q the model's gradient at v, l1 weights. Penalties with groups are left to ``groups.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrs

from ...kernels.rules import DEPTH, MANY
from ..accuracy import ROUNDS_CHEAP
from ..units import Vector
from .groups import GroupDescent
from .local import JITTER, NESTED, ROOM, LocalPenalty, factor_of


class ModelDescent:
    """Minimise  q'd + d'Gd/2 + penalty(v + d).

    `prices` are nanoseconds of the operations; `patience` is the share of a factor's price that descent may cost before
    Newton's method is asked.
    """

    def __init__(self, prices: Any, patience: float = 1.0) -> None:
        self.prices, self.patience, self.groups = prices, patience, GroupDescent(prices, patience)

    def solve(self, G: Any, q: Vector, v: Vector, penalty: LocalPenalty, target: float, most: int = ROUNDS_CHEAP,
              **groups: Any) -> float:  # fmt: skip
        """Bring v (and q with it) so far that the model's gap is at most `target`; returns the gap that is left.

        `groups` are further wishes of :meth:`GroupDescent.solve`.
        """
        if penalty.grouped:
            return self.groups.solve(G, q, v, penalty, target, most, **groups)
        m, spent, gap, run = v.size, 0.0, np.inf, _Single(G, q, v, penalty)
        nested, stuck, before = most > NESTED, 0, np.inf
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
        gap = self.solve(small, slopes, values, penalty.part(some), target, most=NESTED)
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
        factor = factor_of(H, JITTER[self.G.dtype.name] * H.diagonal().max())
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
