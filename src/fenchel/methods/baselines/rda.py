"""RDA: regularised dual averaging (L. Xiao, 2009).

Symbols: gbar the mean of the mini-batch gradients so far, eta_t the step; the prox is that of the whole penalty,
psi(B'.), and is found in its dual (``kernels/prox.py``).

    w+ = prox of eta_t psi(B'.) at -eta_t gbar
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

from ..common import OnlineProximal, OnlineState, PerSlot


@dataclasses.dataclass(kw_only=True)
class RDAState(OnlineState):
    gradient: PerSlot


class RDA(OnlineProximal):
    """Regularised dual averaging.

    Parameters
    ----------
    schedule : {"sqrt", "linear"}
        eta_t = eta0 sqrt(t), with the default factor 4; or eta0 t, for strongly convex penalties, with 3.
    eta0, report, block_size, order, prox_tol
        See :class:`fenchel.methods.common.OnlineProximal`.
    """

    name = "rda"
    SCHEDULES: ClassVar = {"sqrt": ("dual-sqrt", 4.0), "linear": ("dual-linear", 3.0)}
    state_type = RDAState
    dual_averaging = True

    def averaged(self, state: Any) -> Any:
        return state.gradient
