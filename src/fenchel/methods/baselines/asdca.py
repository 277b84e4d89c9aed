"""Accelerated mini-batch SDCA (S. Shalev-Shwartz and T. Zhang, 2013).

Symbols: as in ``sdca.py``; b rows per block; R^2 the largest z_i'M z_i times the loss's smoothness; kappa = n / R^2;
theta = 1/4 min(1, sqrt(kappa/b), kappa, kappa^(2/3) / b^(1/3)).

    v = (1 - theta) w + theta (gradient of psi~* at -Z x / n)
    x_i+ = (1 - theta) x_i + theta f_i'(z_i'v) for all i in the block
    w+ = (1 - theta) w + theta (gradient of psi~* at -Z x+ / n)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..._validate import Ints
from ..common import positive, smooth_reason, squared_norms
from .sdca import SimpleDual

if TYPE_CHECKING:
    from ...problem.problem import Problem


class ASDCA(SimpleDual):
    """Accelerated mini-batch stochastic dual coordinate ascent.

    Parameters
    ----------
    theta : float, optional
        Momentum, at most 1. By default 1/4 min(1, sqrt(k/b), k, k^(2/3) / b^(1/3)) for blocks of b rows, where k is n
        over the largest squared length of a row, times the smoothness of the loss.
    block_size, order
        See :class:`fenchel.methods.common.Method`.
    """

    name = "asdca"
    OPTIONS = ("theta", "block_size", "order")

    def __init__(self, theta: float | None = None, block_size: int = 50, order: str = "random") -> None:
        super().__init__(block_size, order)
        self.theta = positive("theta", theta)
        if theta is not None and theta > 1:
            raise ValueError(f"theta is {theta!r}; it must be at most 1")

    def supports(self, problem: Problem) -> str | None:
        return smooth_reason(problem) or super().supports(problem)

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        squares = squared_norms(problem, self.metric)
        if problem.weight.size:
            squares *= np.repeat(problem.weight, problem.layout[0])
        kappa = problem.n / (problem.loss.smoothness * squares.max())
        b = np.diff(self.bounds).max()
        self.momentum = self.theta or 0.25 * min(1.0, np.sqrt(kappa / b), kappa, kappa ** (2 / 3) / b ** (1 / 3))

    def advance(self, state: Any, order: Ints) -> None:
        from ...kernels.baselines import asdca_epoch

        asdca_epoch(
            self.data, order, self.loss, self.problem.n, self.penalty.solver, self.metric, float(self.momentum),
            state.x, state.zx, state.w, state.u,
        )  # fmt: skip
