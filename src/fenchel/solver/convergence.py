"""When a run ends: the answer is good enough, or rounding leaves no room for a better one.

What "good enough" means is a rule for certificates of a problem, and so stands beside them in
``problem/convergence.py``, where whoever proposes an answer can ask it too. This is where the loop asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..foundation.numerics import NOTHING, ROUNDING, TINY
from ..problem.bounds import Bounds
from ..problem.convergence import Convergence

__all__ = ["Convergence", "stalled"]

_CERTIFICATES = 13  # in a row, the first and the last of which are compared; more: rounding is noticed later
_PROGRESS = 0.99  # of the gap: what these certificates must leave at the most; larger: rounding is waited for


def stalled(records: Sequence[Bounds], inherited: int = 0, at_zero: float = 0.0) -> bool:
    """Whether the gap has been at the level of rounding, without progress, for twelve certificates of this run; the
    first records are `inherited` from another one.

    The sums that an objective next to zero is made of are as large as the one at w = 0, which `at_zero` is, and so are
    their rounding errors.
    """
    if len(records) - inherited < _CERTIFICATES:
        return False
    first, now = records[-_CERTIFICATES], records[-1]
    size = at_zero if abs(first.primal) <= NOTHING * at_zero else max(abs(first.primal), TINY)
    return bool(first.gap < ROUNDING * size and now.gap > _PROGRESS * first.gap and math.isfinite(now.gap))
