"""Features that are equal up to their sign, joined pair by pair (union and find)."""

from __future__ import annotations

import numpy as np

from .caching import WITHIN, njit


@njit(cache=True, **WITHIN)
def _root(parent, side, i):
    """The root of i and the sign of i beside it; the way there is made shorter."""
    sign = 1.0
    while parent[i] != i:
        above = parent[i]
        side[i] *= side[above]  # a root's own sign is 1
        parent[i] = parent[above]
        sign *= side[i]
        i = parent[i]
    return i, sign


@njit(cache=True, nogil=True)
def join(a, b, sign, count):
    """Components of w_a = sign w_b among `count` features: labels, signs within them, and whether they ask for 0.

    A component asks for zero where some way around it gives w = -w.
    """
    parent, side, torn = np.arange(count), np.ones(count), np.zeros(count, np.bool_)
    for k in range(a.size):
        i, along_i = _root(parent, side, a[k])
        j, along_j = _root(parent, side, b[k])
        between = along_i * along_j * sign[k]
        if i == j:
            torn[i] |= between < 0
        else:
            parent[j], side[j] = i, between
            torn[i] |= torn[j]
    label = np.empty(count, np.int64)
    for i in range(count):
        label[i], side[i] = _root(parent, side, i)
        parent[i] = label[i]
    return label, side, torn
