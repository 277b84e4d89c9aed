"""FOBOS: online proximal gradient descent (J. Duchi and Y. Singer, 2009).

Symbols: g the mini-batch gradient, eta_t the step; the prox is that of the whole penalty, psi(B'.), and is found in
its dual (``kernels/prox.py``).

    w+ = prox of eta_t psi(B'.) at w - eta_t g
"""

from __future__ import annotations

from ..common import DESCENT, OnlineProximal


class FOBOS(OnlineProximal):
    """Forward-backward splitting, one block of rows at a time.

    Parameters
    ----------
    schedule : {"sqrt", "strong", "constant"}
        eta0 / sqrt(t); 1 / (1/eta0 + mu t) with the penalty's strong convexity mu; or eta0 itself. The default factor
        is 1.5.
    eta0, report, block_size, order, prox_tol
        See :class:`fenchel.methods.common.OnlineProximal`.
    """

    name = "fobos"
    SCHEDULES = DESCENT
