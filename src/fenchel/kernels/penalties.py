"""Proximal operators of the penalties, in place: u = argmin step psi(z) + 1/2 |z - u|^2.

`step` has one entry per coordinate, constant on each unit (coordinate, group, or all of u).
`params` and `index` hold the penalty's own numbers. Compiled to C functions on first use.
"""

from __future__ import annotations

import math

import numpy as np


def separable(d, u, step, params, index):
    """psi(u) = sum weight |u| on [lower, upper]; params: weights and bounds; index: 1 if none of these is finite.

    Without branches: which coordinates are zero cannot be foretold, and so the loop is done in vectors.
    """
    for j in range(d):
        threshold = step[j] * params[j]
        above, below = u[j] - threshold, u[j] + threshold
        u[j] = (above if above > 0.0 else 0.0) + (below if below < 0.0 else 0.0)
    if index[0] == 0:
        for j in range(d):
            value = u[j] if u[j] > params[d + j] else params[d + j]
            u[j] = value if value < params[2 * d + j] else params[2 * d + j]


def group_l2(d, u, step, params, index):
    """psi(u) = sum over groups of weight |u_g|_2; index: number of groups, then their bounds."""
    for g in range(index[0]):
        first, last = index[1 + g], index[2 + g]
        threshold = step[first] * params[g]
        if last - first == 2:  # grids have many of these
            norm = math.sqrt(u[first] * u[first] + u[first + 1] * u[first + 1])
            factor = 1.0 - threshold / norm if norm > threshold else 0.0
            u[first] *= factor
            u[first + 1] *= factor
            continue
        total = 0.0
        for j in range(first, last):
            total += u[j] * u[j]
        norm = math.sqrt(total)
        factor = 1.0 - threshold / norm if norm > threshold else 0.0
        for j in range(first, last):
            u[j] *= factor


def group_linf(d, u, step, params, index):
    """psi(u) = sum over groups of weight max |u_g|: u minus its projection on an l1 ball (Moreau)."""
    for g in range(index[0]):
        first, last = index[1 + g], index[2 + g]
        radius = step[first] * params[g]
        total = 0.0
        for j in range(first, last):
            total += abs(u[j])
        if total <= radius:
            for j in range(first, last):
                u[j] = 0.0
            continue
        if radius == 0.0:
            continue
        size = np.empty(last - first)
        for j in range(first, last):
            size[j - first] = abs(u[j])
        size.sort()
        # the level at which what sticks out above it sums to the radius
        above, level = 0.0, 0.0
        for k in range(1, size.size + 1):
            above += size[size.size - k]
            level = (above - radius) / k
            if k == size.size or size[size.size - k - 1] <= level:
                break
        for j in range(first, last):
            u[j] = min(max(u[j], -level), level)
