"""Block descent on a quadratic model whose penalty acts on groups of coordinates (see ``units.py``).

The coordinates of unit k are start[k] to start[k + 1]. Its penalty is  norm[k] |v_k|_2 + sum_j l1_j |v_j|  on
lower <= v <= upper; a unit of one coordinate may have any bounds, a group only bounds of zero and none.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .rows import KERNEL


@njit(cache=True, **KERNEL)
def block_bounds(G, start, out):
    """For every unit an upper bound of the largest eigenvalue of its own block of G."""
    for k in range(start.size - 1):
        square, widest = 0.0, 0.0
        for i in range(start[k], start[k + 1]):
            total = 0.0
            for j in range(start[k], start[k + 1]):
                square += np.float64(G[i, j]) ** 2
                total += abs(np.float64(G[i, j]))
            widest = max(widest, total)
        out[k] = min(math.sqrt(square), widest)


@njit(cache=True, **KERNEL)
def descend_groups(G, m, q, v, l1, lower, upper, start, norm, bend, space, passes):
    """So many passes over all units. Returns what the last pass gained, how many units entered or left zero in it, and
    how many coordinates moved in all."""
    gained, changed, moved = 0.0, 0, 0
    for _ in range(passes):
        gained, changed = 0.0, 0
        for k in range(start.size - 1):
            if bend[k] <= 0.0:
                continue
            first, last, size, before = start[k], start[k + 1], 0.0, 0.0
            for j in range(first, last):
                goal = v[j] - q[j] / bend[k]
                cut = l1[j] / bend[k]
                new = goal - cut if goal > cut else goal + cut if goal < -cut else 0.0
                space[j] = min(max(new, lower[j]), upper[j])
            # sums in a loop that writes nothing: otherwise their order depends on where in memory the arrays are
            for j in range(first, last):
                size += space[j] * space[j]
                before += v[j] * v[j]
            if size == 0.0 and before == 0.0:
                continue
            size, before = math.sqrt(size), math.sqrt(before)
            keep = 1.0 if norm[k] == 0.0 else max(0.0, 1.0 - norm[k] / (bend[k] * size)) if size > 0.0 else 0.0
            if (keep * size == 0.0) != (before == 0.0):
                changed += 1
            gained += norm[k] * (before - keep * size)
            for j in range(first, last):
                new = keep * space[j]
                step = new - v[j]
                if step != 0.0:
                    row = G[j]
                    # the block's bound, for the descent that is sure whatever the coordinates of the unit do together
                    gained -= step * (q[j] + 0.5 * np.float64(row[j]) * step) + l1[j] * (abs(new) - abs(v[j]))
                    v[j] = new
                    moved += 1
                    for i in range(m):
                        q[i] += step * row[i]
        if gained <= 0.0:
            break
    return gained, changed, moved


@njit(cache=True, **KERNEL)
def group_gap(G, m, q, v, l1, lower, upper, start, norm, bend):
    """As :func:`fenchel.kernels.units.model_gap`, with groups."""
    scale, single = 1.0, 0.0
    for k in range(start.size - 1):
        over = 0.0
        for j in range(start[k], start[k + 1]):
            beyond = _beyond(-q[j], l1[j], lower[j], upper[j])
            over += beyond * beyond
        over = math.sqrt(over)
        if over > norm[k]:
            if norm[k] > 0.0:
                scale = min(scale, norm[k] / over)
            elif l1[start[k]] > 0.0:
                scale = min(scale, l1[start[k]] / (l1[start[k]] + over))
            if bend[k] > 0.0:
                single = max(single, 0.5 * (over - norm[k]) ** 2 / bend[k])
    total, whole = 0.0, 0.0
    for k in range(start.size - 1):
        size = 0.0
        for j in range(start[k], start[k + 1]):
            size += v[j] * v[j]
            own = l1[j] * abs(v[j])
            whole += own
            slope, best = -scale * q[j], 0.0
            if slope > l1[j] and upper[j] < np.inf:
                best = upper[j] * (slope - l1[j])
            elif slope < -l1[j] and lower[j] > -np.inf:
                best = lower[j] * (slope + l1[j])
            if norm[k] > 0.0 or l1[j] > 0.0 or best > 0.0:
                total += own - v[j] * slope + best
        whole += norm[k] * math.sqrt(size)
        total += norm[k] * math.sqrt(size)
    return max(total, 0.0) + (1.0 - scale) * whole + single


@njit(cache=True, **KERNEL)
def largest_share(size, l1, norm, start):
    """The largest s <= 1 with |(s size - l1)_+| <= norm for every unit, by bisection from above; never above it."""
    share = 1.0
    for k in range(norm.size):
        low, high = 0.0, share
        middle = share
        while high - low > 1e-15:
            total = 0.0
            for j in range(start[k], start[k + 1]):
                over = max(middle * size[j] - l1[j], 0.0)
                total += over * over
            if math.sqrt(total) <= norm[k]:
                low = middle
            else:
                high = middle
            if low == share:
                break
            middle = 0.5 * (low + high)
        share = low
    return share


@njit(cache=True, **KERNEL)
def _beyond(slope, weight, lower, upper):
    """What the weight of a coordinate and its bounds of zero leave of a slope."""
    if slope > weight:
        return slope - weight if upper == np.inf else 0.0
    if slope < -weight:
        return -slope - weight if lower == -np.inf else 0.0
    return 0.0


@njit(cache=True, **KERNEL)
def group_curvature(v, start, norm, place, H, slope):
    """Add the norm's curvature to the lower triangle of H, and its slope. `place` is where a coordinate stands in H, -1
    where it does not."""
    for k in range(start.size - 1):
        size = 0.0
        if norm[k] == 0.0:
            continue
        for j in range(start[k], start[k + 1]):
            size += v[j] * v[j]
        if size == 0.0:
            continue
        size = math.sqrt(size)
        for i in range(start[k], start[k + 1]):
            a = place[i]
            if a < 0:
                continue
            slope[a] += norm[k] * v[i] / size
            H[a, a] += norm[k] / size
            for j in range(start[k], i + 1):
                if place[j] >= 0:
                    H[a, place[j]] -= norm[k] * v[i] * v[j] / size**3
