"""When a run ends: the answer is good enough, or rounding leaves no room for a better one.

What "good enough" means is a rule for certificates of a problem, and so stands beside them in
``problem/convergence.py``, where whoever proposes an answer can ask it too. This is where the loop asks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..problem.bounds import Bounds
from ..problem.convergence import Convergence

__all__ = ["Convergence", "stalled"]

_CERTIFICATES = 13  # in a row, the first and the last of which are compared; more: rounding is noticed later
_ROUNDING = 1e-12  # relative gap below which rounding may be all that is left; larger: slow runs count as stalled
_PROGRESS = 0.99  # of the gap: what these certificates must leave at the most


def stalled(records: Sequence[Bounds]) -> bool:
    """Whether the gap has been at the level of rounding, without progress, for twelve certificates of this run."""
    last = records[-_CERTIFICATES:]
    if len(last) < _CERTIFICATES:
        return False
    first, now = last[0].relative_gap, last[-1].relative_gap
    return bool(first < _ROUNDING and now > _PROGRESS * first and np.isfinite(now))
