"""The proximal operator of penalties on chains and grids, prepared for the kernel; see ``kernels/lattice.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array, Ints
from .block_sum import BlockSum
from .groups import GroupL2
from .separable import Separable
from .structured_prox import StructuredProx

if TYPE_CHECKING:
    from .base import Penalty
    from .compile import Block

_DIRECTIONS = 4  # that edges may have; more: sweeps in turns take longer than another prox


def has_directions(problem: BlockSum) -> bool:
    """Whether the edges of a problem have few directions; a look that costs little."""
    start = problem.map.indptr[:-1][problem.widths == 2]
    reach = np.abs(problem.map.indices[start + 1] - problem.map.indices[start])
    return bool(_distinct(reach)[0].size <= _DIRECTIONS)


class LatticeProx:
    """The prox of norms of differences along a chain or grid, with an l1 norm beside them; see :meth:`make`."""

    exact = False  # whether it takes no iterations

    @classmethod
    def make(cls, prox: StructuredProx) -> LatticeProx | None:
        """None where the penalty is not of the kind."""
        problem = prox.problem
        kept = [b for b, first in zip(problem.blocks, problem.bounds, strict=False) if prox._rows[first]]
        edges = np.flatnonzero(prox._dual_rows)
        if prox.separated or prox.ridge[prox._rows].any() or not all(_is_norm(block.function) for block in kept):
            return None
        if np.any(problem.widths[edges] != 2) or not has_directions(problem):
            return None
        made = cls(prox, edges)
        if not made._fits():
            return None
        return ChainProx.of(made) or made

    def __init__(self, prox: StructuredProx, edges: Ints) -> None:
        self.prox, self.edges = prox, edges
        problem = prox.problem
        start, slots, data = prox.map
        slots, entries = slots.astype(np.int64), start[edges] + np.arange(2)[:, None]
        backwards = slots[entries[0]] > slots[entries[1]]
        entries = np.where(backwards, entries[::-1], entries)
        self.origin, self.end = slots[entries]
        self.shift, direction = _distinct(self.end - self.origin)
        self.places = direction, self.origin  # of the edges in s
        self.shape = self.shift.size, problem.size
        self.values = data[entries]
        self.lone = np.flatnonzero(prox._rows & ~prox._dual_rows)
        own = start[self.lone]
        self.lone_features, self.lone_values = slots[own], data[own]

    def _fits(self) -> bool:
        """Whether no two edges have one place, and balls hold one edge each or all from a feature; then the kernel's
        arrays are made."""
        prox, count = self.prox, self.edges.size
        units, place = _distinct(prox._units[self.edges])
        self.together = bool(units.size < count)
        if _count(self.places[0] * self.shape[1] + self.origin) < count:
            return False
        if self.together:
            first = np.zeros(units.size, dtype=np.int64)
            first[place] = self.origin
            # every ball has one origin, and every origin one ball
            if not (np.array_equal(first[place], self.origin) and _count(first) == units.size):
                return False
        radius = prox.scale * np.concatenate([_weights(block) for block in prox.problem.blocks])
        low, high, bound, ball = (np.zeros(self.shape) for _ in range(4))
        low[self.places], high[self.places] = self.values
        bound[:], ball[:] = 1.0, 1.0
        bound[self.places] = prox.bound[self.edges]
        ball[(0, self.origin) if self.together else self.places] = radius[self.edges]
        lone = np.zeros(self.shape[1])
        lone[self.lone_features] = np.abs(self.lone_values) * radius[self.lone]
        self.solver: tuple[Any, ...] = (
            self.shift.astype(np.int64),
            low,
            high,
            ball,
            self.together,
            bound,
            lone,
            prox.quadratic,
        )
        return True

    def __call__(self, v: Array, eta: float, slope: Array, rule: tuple[float, float, int] | None, info: Array) -> Array:
        """The prox at v; `slope` on the edges is where it begins, and what it leaves. `rule` and info as the kernel has
        them."""
        w = np.empty_like(v)
        far, slope[self.edges] = self._solve(v, eta, w, slope[self.edges], rule, info)
        self.last = v, eta, w, far
        return w

    def structure(self, slope: Array) -> Array:
        """u = B'w of the last prox, with exact zeros, and its slope beside the edges."""
        v, eta, w, far = self.last
        return self._beside_edges(v, eta, w, far, slope)

    def as_dual(self, slope: Array) -> Array:
        """The kernel's dual variable from slopes of all rows of B'."""
        s = np.zeros(self.shape)
        s[self.places] = slope[self.edges]
        return s.ravel()

    def of_dual(self, dual: Array, far: Array, v: Array, eta: float, w: Array) -> tuple[Array, Array]:
        """u = B'w with exact zeros, and the slopes of all rows, where the kernel has left these at the prox w of v."""
        slope = np.zeros(self.prox.problem.d)
        slope[self.edges] = dual.reshape(self.shape)[self.places]
        return self._beside_edges(v, eta, w, far.reshape(self.shape)[self.places], slope), slope

    def _beside_edges(self, v: Array, eta: float, w: Array, far: Array, slope: Array) -> Array:
        """u, and the slopes beside the edges, which are filled in."""
        u = np.zeros_like(slope)
        u[self.edges] = far
        if self.lone.size:
            u[self.lone] = self.lone_values * w[self.lone_features]
            pulls, places = self.values * slope[self.edges], (self.origin, self.end)
            pull = sum(np.bincount(places[k], pulls[k], self.shape[1]) for k in range(2))
            left = v - eta * pull - (1 + eta * self.prox.quadratic) * w
            slope[self.lone] = left[self.lone_features] / (eta * self.lone_values)
        return u

    def _solve(
        self, v: Array, eta: float, w: Array, slope: Array, rule: tuple[float, float, int] | None, info: Array
    ) -> Any:
        """w receives the prox; B'w on the edges with exact zeros, and the slopes there."""
        from ..kernels.lattice import lattice_prox

        s, far = np.zeros(self.shape), np.zeros(self.shape)
        s[self.places] = slope
        lattice_prox(v, eta, s, w, far, self.solver, rule, info)
        return far[self.places], s[self.places]


class ChainProx(LatticeProx):
    """The same on chains, without iterations; see ``kernels/chain.py``."""

    exact = True

    @classmethod
    def of(cls, lattice: LatticeProx) -> ChainProx | None:
        """None where the edges are not differences of neighbours, or where features of a chain differ in their other
        weights."""
        if lattice.together or not np.array_equal(lattice.shift, [1]) or np.any(lattice.values.sum(axis=0) != 0):
            return None
        _, _, high, ball, _, _, lone, mu = lattice.solver
        exists = np.zeros(lattice.shape[1] + 1, dtype=bool)
        exists[lattice.origin + 1] = True  # edges, by the later of their features
        first = np.flatnonzero(exists[1:] & ~exists[:-1])
        last = np.flatnonzero(exists[:-1] & ~exists[1:]) + 1
        if any(np.any((values[1:] != values[:-1]) & exists[1:-1]) for values in (lone, mu)):
            return None
        made = cls.__new__(cls)
        made.__dict__.update(lattice.__dict__)
        made.solver = (first, last, np.abs(high[0]) * ball[0], lone, mu)
        return made

    def as_dual(self, slope: Array) -> Array:
        pull = np.zeros(self.shape[1])
        pull[self.origin] = self.values[1] * slope[self.edges]
        return pull

    def of_dual(self, dual: Array, far: Array, v: Array, eta: float, w: Array) -> tuple[Array, Array]:
        slope, value = np.zeros(self.prox.problem.d), self.values[1]
        slope[self.edges] = dual[self.origin] / value
        return self._beside_edges(v, eta, w, value * (w[self.origin + 1] - w[self.origin]), slope), slope

    def _solve(
        self, v: Array, eta: float, w: Array, slope: Array, rule: tuple[float, float, int] | None, info: Array
    ) -> Any:
        from ..kernels.chain import chain_prox

        pull = np.empty_like(w)
        chain_prox(v, eta, self.solver, w, pull)
        info[:] = 0.0, np.nan, 1.0, 1.0
        value = self.values[1]
        return value * (w[self.origin + 1] - w[self.origin]), pull[self.origin] / value


def _distinct(numbers: Ints) -> tuple[Ints, Ints]:
    """Different numbers of some that are not negative, and for every one its place among them."""
    some = np.bincount(numbers) > 0
    return np.flatnonzero(some), (np.cumsum(some) - 1)[numbers]


def _count(numbers: Ints) -> int:
    """How many of them differ."""
    return int(np.count_nonzero(np.bincount(numbers)))


def _is_norm(function: Penalty) -> bool:
    if isinstance(function, Separable):
        return bool(np.all(np.isinf(function.lower) & np.isinf(function.upper)) and np.all(function.weights > 0))
    return type(function) is GroupL2 and bool(np.all(function.weights > 0))


def _weights(block: Block) -> Array:
    """The weight of every row."""
    function = block.function
    if isinstance(function, Separable):
        out: Array = function.weights
        return out
    return np.repeat(function.weights, np.diff(function.bounds)) if type(function) is GroupL2 else np.zeros(block.d)
