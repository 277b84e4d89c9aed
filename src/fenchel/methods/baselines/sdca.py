"""Proximal SDCA (S. Shalev-Shwartz and T. Zhang, 2012), for penalties with a closed prox and a quadratic.

Symbols: psi~ = psi(B'.) with the quadratic mu_j/2 w_j^2; x the dual variables; Z_I the rows of a block; M = 1/mu.

    w = gradient of psi~* at -Z x / n
    x_i+ = prox of f_i*/c at x_i + z_i'w / c for all i in the block,   c = sigma_max(Z_I' M Z_I) / n
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._validate import Ints
from ...problem import Problem
from ...proximal import StructuredProx
from ..blocks import block_norms
from ..common import DualState, Method, live_slots


class SimpleDual(Method):
    """A dual method that needs the gradient of the penalty's conjugate, so a simple penalty with a quadratic."""

    state_type = DualState
    penalty: StructuredProx

    def supports(self, problem: Problem) -> str | None:
        if problem.fit_intercept:
            return "it needs a quadratic on every coefficient, and an intercept has none"
        structured = self.structured(problem)
        if not structured.separated:
            return (
                "it needs a penalty with a closed proximal operator, and this one joins features in several of its "
                "parts (overlap, differences or a general matrix); use sdca-admm"
            )
        without = np.flatnonzero(structured.quadratic[problem.feature_slots] == 0)
        if without.size:
            return f"it needs a quadratic on every feature, e.g. + 0.1 * Ridge(), and feature {without[0]} has none"
        return None

    def prepare(self, problem: Problem) -> None:
        self.penalty = self.structured(problem)
        quadratic = self.penalty.quadratic
        self.metric = np.divide(1.0, quadratic, out=live_slots(problem), where=quadratic > 0)


class SDCA(SimpleDual):
    """Proximal stochastic dual coordinate ascent.

    Parameters
    ----------
    block_size, order
        See :class:`fenchel.methods.common.Method`; 1 is the one-sample method.
    """

    name = "sdca"
    OPTIONS = ("block_size", "order")

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        norms = block_norms(problem, self.bounds, self.metric, np.ones(problem.visits))
        norms = np.maximum(norms, 1e-12 * norms.max() or 1.0)
        self.bend = np.repeat(norms, np.diff(self.bounds)) / problem.n

    def advance(self, state: Any, order: Ints) -> None:
        from ...kernels.baselines import sdca_epoch

        sdca_epoch(
            self.data, order, self.loss, self.problem.n, self.penalty.solver, self.metric, self.bend, state.x, state.zx,
            state.w, state.u,
        )  # fmt: skip
