"""Values of the penalties: out[0] = psi(u).

They have the signature of the proximal operators in ``penalties.py`` (`out` stands where the step does), so
that the kernels call them by address in the same way, and the same `params` and `index`.
"""

from __future__ import annotations

import math


def separable(d, u, out, params, index):
    """psi(u) = sum weight |u| on [lower, upper]."""
    total = 0.0
    for j in range(d):
        if u[j] < params[d + j] or u[j] > params[2 * d + j]:
            total = math.inf
            break
        total += params[j] * abs(u[j])
    out[0] = total


def group_l2(d, u, out, params, index):
    """psi(u) = sum over groups of weight |u_g|_2."""
    total = 0.0
    for g in range(index[0]):
        square = 0.0
        for j in range(index[1 + g], index[2 + g]):
            square += u[j] * u[j]
        total += params[g] * math.sqrt(square)
    out[0] = total


def group_linf(d, u, out, params, index):
    """psi(u) = sum over groups of weight max |u_g|."""
    total = 0.0
    for g in range(index[0]):
        largest = 0.0
        for j in range(index[1 + g], index[2 + g]):
            largest = max(largest, abs(u[j]))
        total += params[g] * largest
    out[0] = total
