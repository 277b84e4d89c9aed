"""Whose turn it is: an engine's, or the epochs' of the method.

Both are paid in nanoseconds of the price model (:mod:`fenchel.prices`), never by the clock, so that the same problem
goes the same way everywhere. The engine may spend up to 3/2 of what the epochs will surely cost; beyond that they
catch up. Let E and S be what engine and epochs would cost alone. If the epochs get there, the engine has spent at most
3/2 S; if the engine does, they have spent at most 2/3 E. Either way the whole costs at most 5/2 of the better one, and
a last round. What the epochs will surely cost is

- before the first of them: log(1 / tol) of them, for an epoch closes the gap by less than a factor of e nearly always;
- later what they have cost, and half of what seems to be left at their own pace.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .progress import Progress

RATIO = 1.5  # of what the epochs surely cost: the engine's share; larger: the bound above is 1 + this
SURELY = 0.5  # of what seems to be left; larger: a pace that improves makes the bound untrue
_FINEST = 1e-12  # relative gap beyond which nothing is to be gained


class Turns:
    """One alpha's; `epoch` tells the price of an epoch, once it matters."""

    def __init__(self, epoch: Callable[[], float], tol: float) -> None:
        self.epoch, self.tol = epoch, max(tol, _FINEST)

    def engine_goes(self, progress: Progress) -> bool:
        """Whether the next turn is the engine's."""
        if not progress.engine_nanoseconds:
            return True
        epoch, least = self.epoch(), max(math.log(1 / self.tol), 1.0)
        left = progress.epochs_left(self.tol) if progress.paced else 0.0
        spent = progress.epochs_nanoseconds
        surely = max(least * epoch, spent + SURELY * left * progress.share * epoch)
        return progress.engine_nanoseconds <= RATIO * surely
