"""Batch-ADMM: every row at every step, in three forms.

Symbols: x, y dual variables of rows and penalty, w primal, rho the step, eta_Z and eta_B the linearisation.

dual
    The paper's, linearised: SDCA-ADMM with one block (K = 1, gamma = 1/n).

        q = y + B'(w - rho (Z x + B y)) / (rho eta_B),   y+ = q - prox of n rho eta_B psi at rho eta_B q, / (rho eta_B)
        x+ = prox of f*/(rho eta_Z) at x + Z'(w - rho (Z x + B y+)) / (rho eta_Z)
        w+ = w - rho (Z x+ + B y+)
exact
    The same without linearisation, as in the paper's equations for the batch method: y and x are the minimisers of the
    augmented Lagrangian. y by the prox of the whole penalty, x by sweeps over the rows until their duality gap is
    closed; an epoch is one step, of several sweeps.
primal
    OPG-ADMM with the full gradient and the constant step 1/L.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._validate import Ints
from ...proximal import StructuredProx
from ..blocks import block_norms
from ..common import (
    DualState,
    Method,
    PerCoordinate,
    choice,
    constraint_reason,
    live_slots,
    positive,
    prox_rule,
    smooth_reason,
    smoothness,
    squared_norms,
)
from .opg_admm import OPGADMM

if TYPE_CHECKING:
    from ...problem.problem import Problem


@dataclasses.dataclass(kw_only=True)
class BatchState(DualState):
    dual: PerCoordinate  # of the exact form: warm start of the prox
    sweeps: int = 0  # of the exact form: passes over the rows so far


class BatchADMM:
    """Batch-ADMM; makes the form that is asked for.

    Parameters
    ----------
    form : {"dual", "exact", "primal"}
    rho : float
        Step; 0.1 is the paper's. A strong influence, except in the primal form.
    eta_z : float, optional
        Of the dual form: eta_Z in units of sigma_max(Z'Z), 1.1 by default.
    eta_b : float, optional
        Of the dual form: eta_B itself, sigma_max(BB') + 1 by default.
    inner_tol : float
        Of the exact form: duality gap at which the steps of x and y are taken as solved, on the scale of the mean loss.
    """

    name = "batch-admm"
    OPTIONS = ("form", "rho", "eta_z", "eta_b", "inner_tol")

    def __new__(
        cls,
        form: str = "dual",
        rho: float = 0.1,
        eta_z: float | None = None,
        eta_b: float | None = None,
        inner_tol: float = 1e-10,
    ) -> Any:
        choice("form", form, ("dual", "exact", "primal"))
        rho, eta_z, eta_b = positive("rho", rho), positive("eta_z", eta_z), positive("eta_b", eta_b)
        if form == "dual":
            return DualBatchADMM(rho, eta_z or 1.1, eta_b)
        return ExactBatchADMM(rho, positive("inner_tol", inner_tol)) if form == "exact" else PrimalBatchADMM(rho)


class DualBatchADMM(Method):
    """See :class:`BatchADMM`."""

    name = "batch-admm (dual)"
    state_type = BatchState

    def __init__(self, rho: float, eta_z: float, eta_b: float | None) -> None:
        super().__init__(None, "cyclic")
        self.rho, self.eta_z, self.eta_b = rho, eta_z, eta_b

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        norm = block_norms(problem, self.bounds, live_slots(problem), np.ones(problem.visits))[0]
        self.bend = np.full(problem.visits, self.rho * max(self.eta_z * norm, 1e-12))
        self.c = self.eta_b or self.penalty.norm + 1.0
        if problem.d and self.c < self.penalty.norm * (1 - 0.02):
            raise ValueError(f"eta_b is {self.c:g}; it must exceed sigma_max(BB') = {self.penalty.norm:g}")
        steps = self.penalty.steps(problem.n * self.rho * self.c)
        self.split = (self.penalty.map, self.penalty.blocks, *steps)

    def advance(self, state: Any, order: Ints) -> None:
        from ...kernels.baselines import batch_admm_epoch

        batch_admm_epoch(
            self.data, self.loss, self.split, self.rho, self.c, self.bend, state.x, state.y, state.w, state.zx, state.u
        )


class ExactBatchADMM(Method):
    """See :class:`BatchADMM`."""

    name = "batch-admm (exact)"
    penalty: StructuredProx
    state_type = BatchState

    def __init__(self, rho: float, inner_tol: float) -> None:
        super().__init__(None, "cyclic")
        self.rho, self.inner_tol = rho, inner_tol

    def prepare(self, problem: Problem) -> None:
        self.penalty = self.structured(problem)
        self.squares = squared_norms(problem, live_slots(problem))
        self.rule = prox_rule(problem, self.inner_tol, 1000)

    def advance(self, state: Any, order: Ints) -> None:
        from ...kernels.baselines import exact_admm_epoch

        state.sweeps += exact_admm_epoch(
            self.data, self.loss, self.problem.n, self.penalty.solver, self.rho, self.squares, self.rule,
            self.inner_tol, 100, state.x, state.dual, state.w, state.zx, state.u,
        )  # fmt: skip

    def finish(self, state: Any) -> None:
        state.y[:] = self.problem.n * self.penalty.dual(state.dual, state.w)


class PrimalBatchADMM(OPGADMM):
    """See :class:`BatchADMM`."""

    name = "batch-admm (primal)"

    def __init__(self, rho: float) -> None:
        super().__init__(rho, schedule="constant", report="last", block_size=None, order="cyclic")

    def supports(self, problem: Problem) -> str | None:
        return smooth_reason(problem) or constraint_reason(problem)

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        self.eta0 = 1.0 / smoothness(problem, self.bounds)
