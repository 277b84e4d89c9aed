"""Rounds of Douglas and Rachford's method between a ball of dual variables and the balance Zx + By = 0.

Symbols

=========  ============================================================================
rest       the coordinates of y that move; the others stay
middle     what the method iterates on, on `rest`; `balanced` is its point with Zx + By = 0
B          the rows `rest` of B' on the features, as CSR: start, column (unsigned, see rows.py), value
lone       whether every one of them has one entry
psi        as in prox.py; y is inside where the conjugate of the penalty (without its quadratic) is finite at y/n
=========  ============================================================================

No sum is reordered here: a goal of 1e-13 is within reach of rounding.
"""

from __future__ import annotations

import numpy as np

from .caching import njit
from .prox import block_prox


@njit(cache=True, nogil=True)
def pulled(B, lone, middle, need):
    """B middle - need."""
    start, column, value = B
    out = np.zeros(need.size)
    for k in range(middle.size):
        if lone:
            out[column[k]] += value[k] * middle[k]
        else:
            for e in range(start[k], start[k + 1]):
                out[column[e]] += value[e] * middle[k]
    for j in range(out.size):
        out[j] -= need[j]
    return out


@njit(cache=True, nogil=True)
def balance(B, lone, rest, middle, v, balanced, y, psi, scale, n, space):
    """balanced = middle - B'v, also in y. How far it has moved, how far it is outside, and how large it is inside."""
    start, column, value = B
    moved = far = size = 0.0
    for k in range(rest.size):
        total = 0.0
        if lone:
            total = value[k] * v[column[k]]
        else:
            for e in range(start[k], start[k + 1]):
                total += value[e] * v[column[e]]
        new = middle[k] - total
        moved = max(moved, abs(balanced[k] - new))
        balanced[k] = y[rest[k]] = new
    bring_inside(y, psi, scale, n, space)
    for k in range(rest.size):
        inside = space[1, rest[k]]
        far, size = max(far, abs(inside - balanced[k])), max(size, abs(inside))
    return moved, far, size


@njit(cache=True, nogil=True)
def reflect(rest, middle, balanced, mirrored, psi, scale, n, space):
    """The next middle; `mirrored` is y with what is mirrored at the balance."""
    for k in range(rest.size):
        mirrored[rest[k]] = 2 * balanced[k] - middle[k]
    bring_inside(mirrored, psi, scale, n, space)
    for k in range(rest.size):
        middle[k] = middle[k] + space[1, rest[k]] - balanced[k]


@njit(cache=True, nogil=True)
def bring_inside(y, psi, scale, n, space):
    """space[1] = the point closest to y that is inside."""
    part, out = space[0], space[1]
    for e in range(y.size):
        part[e] = out[e] = y[e] / n
    block_prox(psi, out, scale)
    for e in range(y.size):
        out[e] = n * (part[e] - out[e])
