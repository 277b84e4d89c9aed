"""OL-ADMM: online ADMM with the loss of the block itself (H. Wang and A. Banerjee, 2012).

Symbols: as in ``opg_admm.py``; h = 1/eta_t + rho sigma_max(BB'); x the dual variables of the block's rows.

    c = w + B (lambda - rho (B'w - u)) / h
    w+ = argmin over w of (K/n) sum over the block of f_i(z_i'w) + h/2 |w - c|^2
    u+ and lambda+ as in OPG-ADMM

The w-step is solved in its dual by sweeps over the block's rows, which remember their x from the last visit.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from ..common import DESCENT, OnlineADMM, OnlineState, PerVisit, live_slots, positive, squared_norms

if TYPE_CHECKING:
    from ..._validate import Ints
    from ...problem.problem import Problem


@dataclasses.dataclass(kw_only=True)
class OLState(OnlineState):
    memory: PerVisit  # x of every row at its last visit: of different w, so no dual point


class OLADMM(OnlineADMM):
    """OL-ADMM.

    Parameters
    ----------
    schedule : {"sqrt", "strong", "constant"}
        As for :class:`fenchel.methods.OPGADMM`; the default factor is 4 for "sqrt" and 1.5 for the others.
    inner_tol : float
        Duality gap, on the scale of the mean loss, at which a w-step is taken as solved.
    rho, eta0, report, block_size, order
        See :class:`fenchel.methods.common.OnlineADMM`.
    """

    name = "ol-admm"
    OPTIONS = (*OnlineADMM.OPTIONS, "inner_tol")
    SCHEDULES: ClassVar = DESCENT | {"sqrt": ("sqrt", 4.0)}
    state_type = OLState

    def __init__(
        self,
        rho: float = 0.1,
        eta0: float | None = None,
        schedule: str = "sqrt",
        report: str = "average",
        block_size: int = 50,
        order: str = "random",
        inner_tol: float = 1e-7,
    ) -> None:
        super().__init__(rho, eta0, schedule, report, block_size, order)
        self.inner_tol = positive("inner_tol", inner_tol)

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        self.squares = squared_norms(problem, live_slots(problem))

    def visit(self, state: Any, order: Ints) -> None:
        from ...kernels.baselines import ol_admm_epoch

        ol_admm_epoch(*self.arguments(state, order), state.memory, self.squares, self.inner_tol, 100)
