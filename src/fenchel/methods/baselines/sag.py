"""SAG and SAGA with the prox of the whole penalty (Le Roux, Schmidt and Bach, 2012; Defazio et al., 2014).

Symbols: a_i = f_i'(z_i'w) at the row's last visit, S = Z a; Delta the change of S by the block; eta the step; L the
largest smoothness of a block's loss. A linear model keeps one number per row, not one vector.

    SAG     w+ = prox of eta psi(B'.) at w - eta (S + Delta) / n,            eta = 1/L
    SAGA    w+ = prox of eta psi(B'.) at w - eta ((K/n) Delta + S/n),        eta = 1/(3L)
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ...proximal import StructuredProx
from ..common import (
    Method,
    PerCoordinate,
    PerSlot,
    PerVisit,
    State,
    choice,
    constraint_reason,
    positive,
    prox_rule,
    smooth_reason,
    smoothness,
)

if TYPE_CHECKING:
    from ..._validate import Ints
    from ...problem.problem import Problem


@dataclasses.dataclass(kw_only=True)
class SAGState(State):
    slopes: PerVisit
    total: PerSlot
    dual: PerCoordinate


class SAG(Method):
    """Stochastic average gradient.

    Parameters
    ----------
    variant : {"sag", "saga"}
    eta0 : float, optional
        The step; 1/L (SAG) or 1/(3L) (SAGA) by default.
    prox_tol : float
        Duality gap at which the inner prox stops, relative to the mean loss at zero; the answer is about as exact.
    block_size, order
        See :class:`fenchel.methods.common.Method`.
    """

    name = "sag"
    penalty: StructuredProx
    OPTIONS = ("variant", "eta0", "block_size", "order", "prox_tol")
    state_type = SAGState

    def __init__(
        self,
        variant: str = "sag",
        eta0: float | None = None,
        block_size: int = 50,
        order: str = "random",
        prox_tol: float = 1e-10,
    ) -> None:
        super().__init__(block_size, order)
        self.variant = choice("variant", variant, ("sag", "saga"))
        self.eta0, self.prox_tol = positive("eta0", eta0), positive("prox_tol", prox_tol)

    def supports(self, problem: Problem) -> str | None:
        return smooth_reason(problem) or (None if self.structured(problem).separated else constraint_reason(problem))

    def prepare(self, problem: Problem) -> None:
        self.penalty = self.structured(problem)
        share = 1.0 if self.variant == "sag" else 1.0 / 3.0
        self.rule = prox_rule(problem, self.prox_tol, 200)
        self.eta = self.eta0 or share / smoothness(problem, self.bounds)

    def advance(self, state: Any, order: Ints) -> None:
        from ...kernels.baselines import sag_epoch

        sag_epoch(
            self.data, order, self.loss, self.problem.n, self.penalty.solver, self.eta, self.rule, state.w, state.u,
            state.dual, state.slopes, state.total, self.variant == "saga",
        )  # fmt: skip

    def finish(self, state: Any) -> None:
        state.y[:] = self.problem.n * self.penalty.dual(state.dual, state.w)
