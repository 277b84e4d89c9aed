"""The quadratic model of a round whose penalty has groups: block descent, and Newton's method on the support.

A pass over all units finds the support. The model is then solved on the support alone, in a compact matrix, and the
next pass over all tells who is missing. On the support descent and its extrapolation come first; Newton's method is
asked whenever descent has cost as much as its factor would, so that both cost at most twice the better of the two.

Symbols: G curvature, q the model's gradient at v.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...kernels.rules import DEPTH, PATIENCE
from ..accuracy import ROUNDS_CHEAP
from ..units import Index, Vector
from .local import JITTER, NESTED, ROOM, LocalPenalty, factor_of

CALLS = 40  # of numpy, that a step of Newton's method takes however small it is
HALVINGS = 5  # of Newton's step; by then descent does better


Roots = Callable[[Index], Vector] | None


class GroupDescent:
    """Minimise  q'd + d'Gd/2 + penalty(v + d); `prices` and `patience` as in :class:`ModelDescent`."""

    def __init__(self, prices: Any, patience: float = 1.0) -> None:
        self.prices, self.patience = prices, patience

    def solve(self, G: Any, q: Vector, v: Vector, penalty: LocalPenalty, target: float, most: int = ROUNDS_CHEAP,
              spare: float = 0.0, finer: float = 0.0, roots: Roots = None, rank: int = 0) -> float:  # fmt: skip
        """Bring v (and q with it) so far that the model's gap is at most `target`; returns the gap that is left.

        Descent that costs at most `spare` nanoseconds goes on beyond it, to a gap of `finer`. `roots` makes A with
        A A' = G on some coefficients, which has `rank` columns.
        """
        run = GroupModel(G, q, v, penalty)
        run.roots, run.rank = roots, rank
        gap = run.settle(target, 1)
        for _ in range(most):
            if gap <= target or not np.isfinite(gap):
                break
            live = run.live()
            active = run.active(live)
            if not active:
                gap = run.settle(target, v.size**2)
            elif v.size > ROOM * active:
                self._on_support(run, live, max(0.3 * gap, 0.5 * target))
                gap = run.settle(target, 1)
            else:
                gap = self._turn(run, active, target)
            if run.is_stuck(gap, target):
                break
        if spare > 0.0 and gap <= target:
            gap = self._go_on(run, gap, finer, int(spare / self.prices.descent))
        return gap

    def _go_on(self, run: GroupModel, gap: float, target: float, budget: int) -> float:
        """Descent within a budget of work, on the support if that is much smaller; returns the gap."""
        live = run.live()
        active = run.active(live)
        if gap <= target or not active or budget <= active * run.m:
            return gap
        if run.m <= ROOM * active:
            return run.settle(target, budget)
        small, some = run.part(live)
        small.settle(target, budget)
        run.take(small, live, some)
        return run.settle(target, 1)

    def _on_support(self, run: GroupModel, live: Index, target: float) -> None:
        """The model on the units that are not zero, in a matrix of its own."""
        small, some = run.part(live)
        for _ in range(NESTED):
            gap = self._turn(small, some.size, target)
            if gap <= target or small.is_stuck(gap, target):
                break
        run.take(small, live, some)

    def _turn(self, run: GroupModel, active: int, target: float) -> float:
        """Descent for as long as a step of Newton's method would take, and that step if there is still something left;
        returns the gap."""
        price, narrow = self._newton_price(run, active)
        price += 2 * active * run.m * self.prices.descent
        budget = run.wait * self.patience * price / self.prices.descent
        gap = run.settle(target, int(min(budget, 2.0**62)))  # a run that waits for ever fits a whole number, too
        if gap > target and run.newton(narrow):
            gap = run.settle(target, 1)
        return gap

    def _newton_price(self, run: GroupModel, active: int) -> tuple[float, bool]:
        """Of a factor, and whether it had better be made in the space of the rows, as these are fewer."""
        prices, n = self.prices, run.rank
        price = active**3 / 6 * prices.potrf + active**2 + CALLS * prices.call
        if run.roots is None or run.live().size >= n:  # the second factor has a unit's row each, of rank n at the most
            return float(price), False
        rows = n * n * (active / 2 * prices.syrk64 + n / 6 * prices.potrf) + 5 * n * active * prices.gemv
        rows += 2 * CALLS * prices.call
        return float(min(price, rows)), bool(rows < price)


class GroupModel:
    """A model and where its descent is; `gained` is what the steps so far have lowered it by."""

    def __init__(self, G: Any, q: Vector, v: Vector, penalty: LocalPenalty, whole: GroupModel | None = None,
                 live: Index | None = None) -> None:  # fmt: skip
        from ...kernels import block_descent, unit_groups

        self.kernels, self.descent = unit_groups, block_descent
        self.G, self.q, self.v, self.penalty, self.m = G, q, v, penalty, v.size
        self.gained, layout = 0.0, penalty.layout
        self.least, self.stuck, self.before = np.inf, 0, 0.0
        self.roots: Roots = None
        self.rank, self.root = 0, np.zeros((0, 0))
        self.wait = 1.0  # times a factor's price: what descent may cost before; it doubles while Newton's steps are cut
        if whole is None:
            self.basis, self.ready = np.empty(layout.room), np.zeros(penalty.norm.size, dtype=np.int64)
            self.bend = np.empty(penalty.norm.size)
            unit_groups.block_bounds(G, penalty.start, self.bend)
        else:  # what is known of a block in the whole; parts of blocks have its bound
            self.basis, self.ready, self.bend = whole.basis, whole.ready[live], whole.bend[live]
            self.ready[~layout.plain] = -1
        self.limits = penalty.l1, penalty.lower, penalty.upper, penalty.start, penalty.norm, self.bend
        space = np.empty((2 * DEPTH + 3, self.m))
        self.space = space[-1]
        self.room = (
            layout.plain, layout.places, self.basis, self.ready, self.space,
            np.empty(layout.widest * (layout.widest + 3)), space[: DEPTH + 1], space[DEPTH + 1 : -1],
            np.empty((DEPTH, DEPTH + 1)),
        )  # fmt: skip

    def is_stuck(self, gap: float, target: float) -> bool:
        """Whether nothing was to be had for some turns: neither did the gap shrink, whose estimate may grow while the
        model falls, nor did the model fall."""
        still = gap > 0.9 * self.least and self.gained <= self.before + 0.1 * target
        self.stuck = self.stuck + 1 if still else 0
        self.least, self.before = min(gap, self.least), self.gained
        return self.stuck > PATIENCE

    def live(self) -> Index:
        """The units that are not zero."""
        return np.flatnonzero(np.add.reduceat(self.v != 0, self.penalty.start[:-1], dtype=np.int64))

    def active(self, live: Index) -> int:
        """Coefficients that a model on these units has, about."""
        layout = self.penalty.layout
        whole = int(layout.sizes[live].sum())
        return whole if layout.plain[live].all() else min(whole, int(1.2 * np.count_nonzero(self.v)))

    def part(self, units: Index) -> tuple[GroupModel, Index]:
        """The model on some units, and their coefficients."""
        from ...kernels.units import gather

        penalty, some = self.penalty.of_units(units, self.v, self.q)
        G = np.empty((some.size, some.size), dtype=self.G.dtype)
        gather(self.G, some, G)
        small, roots = GroupModel(G, self.q[some], self.v[some], penalty, self, units), self.roots
        if roots is not None:
            small.roots, small.rank = lambda few: roots(some[few]), self.rank
        return small, some

    def take(self, small: GroupModel, units: Index, some: Index) -> None:
        """Go where the model on some units is."""
        from ...kernels.units import add_rows

        add_rows(self.G, some, small.v - self.v[some], self.m, self.q)
        self.v[some] = small.v
        plain = small.penalty.layout.plain
        self.ready[units[plain]] = small.ready[plain]
        self.gained += small.gained

    def settle(self, target: float, budget: int) -> float:
        """Passes until the gap is at most `target` or a budget of work is spent, in entries of G that are read; returns
        the gap."""
        gap, gained = self.descent.settle(self.G, self.m, self.q, self.v, *self.limits, *self.room, target, budget)
        self.gained += gained
        return float(gap)

    def gap(self) -> float:
        return float(self.kernels.group_gap(self.q, self.v, *self.limits))

    def newton(self, narrow: bool = False) -> bool:
        """A step of Newton's method on the coefficients that can move, with the curvature of the norms, shortened until
        it descends; returns whether there was one. `narrow` says to work in the space of the rows."""
        v, q, kernels = self.v, self.q, self.kernels
        l1, lower, upper, start, norm, _ = self.limits
        place = np.empty(self.m, dtype=np.int64)
        count = kernels.movable(v, l1, lower, upper, start, norm, place)
        if not count:
            return False
        step = self._narrow_step(place) if narrow else None
        if step is None:
            self.roots = None  # it would fail again
            step = self._step(place, count)
        if step is None:
            return False
        move, share = np.empty(self.m), 1.0
        for _ in range(HALVINGS):
            gained = kernels.try_step(
                self.G, self.m, q, v, l1, lower, upper, start, norm, place, step, share, self.space, move
            )
            if gained > 0.0:
                v[:] = self.space
                q += move
                self.gained += gained
                self.wait = 1.0 if share == 1.0 else 2.0 * self.wait
                return True
            share *= 0.5
        self.wait *= 2.0
        return False

    def _step(self, place: Index, count: int) -> Vector | None:
        """Newton's step by a factor of the curvature."""
        from scipy.linalg.lapack import dpotrs

        l1, _, _, start, norm, _ = self.limits
        H, slope, some = np.empty((count, count)), np.empty(count), np.empty(count, dtype=np.int64)
        largest = self.kernels.newton_system(self.G, self.q, self.v, l1, start, norm, place, H, slope, some)
        factor = factor_of(H, JITTER[self.G.dtype.name] * largest)
        return None if factor is None else np.asarray(dpotrs(factor, -slope, lower=0)[0])

    def _narrow_step(self, place: Index) -> Vector | None:
        """The same by factors as large as there are rows, and as there are units.

        On the coefficients that move the curvature is A A' + E - U C U': E is diagonal, the norms' weights over the
        sizes r of their units, which C holds too; a column of U is v / r on one unit. So its inverse follows from that
        of T = I + A'E^-1 A and of C^-1 - U'(A A' + E)^-1 U (Woodbury's identity, twice).
        """
        from scipy.linalg.lapack import dpotrf, dpotrs, dtrtrs

        assert self.roots is not None
        if not self.root.size:
            self.root = self.roots(np.arange(self.m))
        some = np.flatnonzero(place >= 0)
        start, norm, v = self.penalty.start, self.penalty.norm, self.v
        unit = np.repeat(np.arange(norm.size), np.diff(start))[some]
        size = np.sqrt(np.add.reduceat(v * v, start[:-1]))
        if not np.all((norm[unit] > 0) & (size[unit] > 0)):
            return None  # E would be zero there
        first = np.flatnonzero(np.diff(unit, prepend=-1))
        held, own = norm[unit[first]] / size[unit[first]], np.diff(np.append(first, some.size))
        A = self.root if some.size == self.m else self.root[some]
        jitter = JITTER[self.G.dtype.name] * float(self.G.diagonal()[: self.m].max())
        E = np.repeat(held, own) + jitter
        U, slope = v[some] / size[unit], self.q[some] + self.penalty.l1[some] * np.sign(v[some])
        slope += np.repeat(held, own) * v[some]
        scaled = A / E[:, None]
        T = A.T @ scaled
        T[np.diag_indices(len(T))] += 1.0
        factor, info = dpotrf(T, lower=1)
        if info:
            return None

        def base(z: Vector) -> Vector:
            """(A A' + E)^-1 z"""
            z = z / E
            return np.asarray(z - scaled @ dpotrs(factor, A.T @ z, lower=1)[0])

        W = np.add.reduceat(scaled * U[:, None], first)
        half = dtrtrs(factor, W.T, lower=1)[0]
        S = half.T @ half
        S[np.diag_indices(len(S))] += 1.0 / held - np.add.reduceat(U * U / E, first)
        outer, info = dpotrf(S, lower=1)
        if info:
            return None
        plain = base(slope)
        along = dpotrs(outer, np.add.reduceat(U * plain, first), lower=1)[0]
        step = -(plain + base(U * np.repeat(along, own)))
        return step if np.all(np.isfinite(step)) else None
