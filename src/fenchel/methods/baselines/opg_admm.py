"""OPG-ADMM: online proximal gradient descent with ADMM (T. Suzuki, 2013; H. Ouyang et al., 2013).

Symbols: w primal, u = B'w its split, lambda the multiplier; g the mini-batch gradient; rho, eta_t the steps; e_t the
step after linearisation.

    w+ = w - e_t (g - B (lambda - rho (B'w - u))),   e_t = 1 / (1/eta_t + rho sigma_max(BB'))
    u+ = prox of psi/rho at B'w+ - lambda/rho
    lambda+ = lambda - rho (B'w+ - u+)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..common import DESCENT, OnlineADMM

if TYPE_CHECKING:
    from ..._validate import Ints


class OPGADMM(OnlineADMM):
    """OPG-ADMM, also known as stochastic ADMM.

    Parameters
    ----------
    rho : float
        Step of the multiplier; a weak influence.
    schedule : {"sqrt", "strong", "constant"}
        eta0 / sqrt(t); 1 / (1/eta0 + mu t) with the penalty's strong convexity mu; or eta0 itself. The default factor
        is 1.5.
    eta0, report, block_size, order
        See :class:`fenchel.methods.common.Online`.
    """

    name = "opg-admm"
    SCHEDULES = DESCENT

    def visit(self, state: Any, order: Ints) -> None:
        from ...kernels.baselines import opg_admm_epoch

        opg_admm_epoch(*self.arguments(state, order))
