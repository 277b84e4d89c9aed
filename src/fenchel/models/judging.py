"""How good predictions are, by the measure that belongs to the loss: R^2, or the share of the deviance explained."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._validate import Array
from ..losses import Loss
from ..problem.unpenalised import best_unpenalised


def deviance_explained(
    loss: Loss,
    scores: Array,
    target: Array,
    sample_weight: npt.ArrayLike | None = None,
    offset: npt.ArrayLike | None = None,
) -> float:
    """D^2 = 1 - D(scores) / D(the best constant), the mean over outputs; an offset stays in the constant's scores.

    Half a deviance is f(u; t) less its least value, which is minus the conjugate at 0.
    """
    target = loss.check_targets(target)
    n = len(target)
    weight = np.zeros(0) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    shift = np.zeros(1) if offset is None else np.asarray(offset, dtype=float)
    known = np.broadcast_to(shift[:, None] if shift.ndim == 1 else shift, (n, target.size // n))
    parts = []
    for u, t, o in zip(scores.reshape(n, -1).T, target.reshape(n, -1).T, known.T, strict=True):
        best, _ = best_unpenalised(np.ones((n, 1)), t, loss, weight, np.ascontiguousarray(o))
        least = -loss.conjugate(np.zeros(n), t)
        counts = weight if weight.size else None
        own, constant = (np.average(loss.value(at, t) - least, weights=counts) for at in (u, best[0] + o))
        parts.append(1.0 - own / constant if constant > 0 else np.nan)
    return float(np.mean(parts))
