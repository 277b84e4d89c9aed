"""The whole prox of a penalty behind a map, as accelerated proximal steps ask for it, and what a step costs."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...prices import accelerated_nanoseconds, prox_nanoseconds, prox_round_nanoseconds
from ...problem import Problem
from ...proximal import CompiledPenalty, LatticeProx, StructuredProx, has_directions

_INEXACT = 0.02  # of the square of the last move: gap that a prox may leave; larger: steps that go astray
_ROUNDS, _MORE = 10, 30  # for the dual variables of a certificate; on grids


class Accelerated:
    """The prox for one problem, to the accuracy that the last move of w makes worthwhile."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @functools.cached_property
    def prox(self) -> Any:
        return StructuredProx(self.problem)

    @functools.cached_property
    def lattice(self) -> Any:
        """The prox for chains and grids; None elsewhere."""
        return LatticeProx.make(self.prox) if has_directions(self.problem) else None

    @property
    def exact(self) -> bool:
        """Whether the prox has no error, so that its zeros and ties are those of the answer early on."""
        return self.lattice is not None and self.lattice.exact

    @functools.cached_property
    def penalty(self) -> Any:
        return CompiledPenalty(self.problem)

    @property
    def step_nanoseconds(self) -> float:
        """What a step costs, by a model, with some twenty rounds of its prox."""
        return self._bare_step + prox_nanoseconds(self._round)

    @property
    def _bare_step(self) -> float:
        """The same without the prox, which has to be prepared before its price is known."""
        return accelerated_nanoseconds(self.problem)

    @property
    def _round(self) -> float:
        """Nanoseconds of a round of the prox."""
        return prox_round_nanoseconds(self.problem, chain=self.exact, grid=self.lattice is not None)

    def _prox(self, v: Any, eta: float, slope: Any, moved: float | None, info: Any, most: int) -> Any:
        """The prox at v; `slope` is where it begins, and what it leaves."""
        from ...kernels.prox import structured_prox

        enough = max(_INEXACT * (1e-4 * float(v @ v) if moved is None else moved), 1e-300)
        if self.lattice is not None:
            return self.lattice(v, eta, slope, (enough, most), info)
        new, self.u = np.empty_like(v), np.zeros(self.problem.d)
        structured_prox(v, eta, slope, new, self.u, self.prox.solver, (1e-15, enough / (eta * 1e-15), most), info)
        self.prox.check()
        return new

    def _balanced(self, zx: Any, y: Any) -> Any:
        """y with Zx + By = 0, as far inside the ball of the penalty as some rounds between the two bring it
        (Douglas and Rachford)."""
        from ...kernels.prox import block_prox

        problem, penalty = self.problem, self.penalty
        if not problem.gram.direct or penalty.ridge.any():
            return y
        middle, best, least = y, y, np.inf
        for _ in range(_ROUNDS if self.lattice is None or self.exact else _MORE):
            gap = (zx + problem.spread(middle))[problem.feature_slots]
            balanced = middle - problem.map @ problem.gram.solve(gap)
            outside = 2 * balanced - middle
            shrunk = outside / problem.n
            block_prox(penalty.blocks, shrunk, penalty.scale)
            penalty.check()
            middle = middle + (outside - problem.n * shrunk) - balanced
            size = problem.gauge(balanced / problem.n)
            if size < least:
                best, least = balanced, size
            if least <= 1.0:
                break
        return best
