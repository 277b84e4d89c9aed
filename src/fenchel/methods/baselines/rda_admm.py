"""RDA-ADMM: regularised dual averaging with ADMM (T. Suzuki, 2013).

Symbols: as in ``opg_admm.py``; a bar is the mean over the steps 1 .. t, the current one included.

    w+ = -e_t (gbar - B (lambdabar - rho (B'wbar - ubar))),   e_t = 1 / (1/eta_t + rho sigma_max(BB') / t)
    u+ = prox of psi/rho at B'w+ - lambda/rho
    lambda+ = lambda - rho (B'w+ - u+)
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from ..common import OnlineADMM, OnlineState, PerCoordinate, PerSlot

if TYPE_CHECKING:
    from ..._validate import Ints


@dataclasses.dataclass(kw_only=True)
class RDAADMMState(OnlineState):
    gradient: PerSlot
    mean_u: PerCoordinate


class RDAADMM(OnlineADMM):
    """RDA-ADMM.

    Parameters
    ----------
    schedule : {"sqrt", "linear"}
        eta_t = eta0 sqrt(t), with the default factor 4; or eta0 t, for strongly convex penalties, with 1.5.
    rho, eta0, report, block_size, order
        See :class:`fenchel.methods.common.OnlineADMM`.
    """

    name = "rda-admm"
    SCHEDULES: ClassVar = {"sqrt": ("dual-sqrt", 4.0), "linear": ("dual-linear", 1.5)}
    state_type = RDAADMMState

    def visit(self, state: Any, order: Ints) -> None:
        from ...kernels.baselines import rda_admm_epoch

        rda_admm_epoch(*self.arguments(state, order), state.gradient, state.mean_u)
