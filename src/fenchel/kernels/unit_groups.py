"""A quadratic model whose penalty acts on groups of coordinates (see ``units.py``): its gap, and Newton's method.

The coordinates of unit k are start[k] to start[k + 1]. Its penalty is  norm[k] |v_k|_2 + sum_j l1_j |v_j|  on
lower <= v <= upper; a unit of one coordinate may have any bounds, a group only bounds of zero and none.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64

from .apart import HOT, INSIDE, READ, READ_LIST, apart, load_called
from .caching import njit
from .rows import KERNEL, LEAN


@njit(**{**INSIDE, **HOT})
def _beyond(slope, weight, lower, upper):
    """What the weight of a coordinate and its bounds of zero leave of a slope."""
    if slope > weight:
        return slope - weight if upper == np.inf else 0.0
    if slope < -weight:
        return -slope - weight if lower == -np.inf else 0.0
    return 0.0


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


@apart(float64(READ, READ, READ, READ, READ, READ_LIST, READ, READ))
def gap_of_groups(q, v, l1, lower, upper, start, norm, bend):
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


@njit(cache=True, **LEAN)
def group_gap(q, v, l1, lower, upper, start, norm, bend):
    """The same, for Python."""
    return gap_of_groups(q, v, l1, lower, upper, start, norm, bend)


load_called(group_gap.py_func)  # which may come from the cache


@njit(**{**INSIDE, **HOT})
def unit_share(size, l1, norm, first, last, share):
    """The largest s up to a share with |(s size - l1)_+| <= norm for one unit, by bisection from above; never above
    it."""
    low, high, middle = 0.0, share, share
    while high - low > 1e-15:
        total = 0.0
        for j in range(first, last):
            over = max(middle * size[j] - l1[j], 0.0)
            total += over * over
        if math.sqrt(total) <= norm:
            low = middle
        else:
            high = middle
        if low == share:
            break
        middle = 0.5 * (low + high)
    return low


@njit(cache=True, **KERNEL)
def largest_share(size, l1, norm, start):
    """The largest share up to 1 that every unit can hold."""
    share = 1.0
    for k in range(norm.size):
        share = unit_share(size, l1, norm[k], start[k], start[k + 1], share)
    return share


@njit(cache=True, **KERNEL)
def movable(v, l1, lower, upper, start, norm, place):
    """Where a coordinate stands among those along which the penalty is smooth, -1 where it does not; how many do."""
    count = 0
    for k in range(start.size - 1):
        size = 0.0
        for j in range(start[k], start[k + 1]):
            size += v[j] * v[j]
        live = size > 0.0 or norm[k] == 0.0
        for j in range(start[k], start[k + 1]):
            place[j] = -1
            if live and (v[j] != 0.0 or l1[j] == 0.0) and v[j] > lower[j] and v[j] < upper[j]:
                place[j] = count
                count += 1
    return count


@njit(cache=True, **KERNEL)
def newton_system(G, q, v, l1, start, norm, place, H, slope, some):
    """The lower triangle of the curvature, that of the norms included, and the slope on the coordinates that can move;
    returns the largest entry of G's diagonal there. `some` is room for as many whole numbers."""
    largest, count = 0.0, 0
    for j in range(v.size):
        if place[j] >= 0:
            some[count] = j
            count += 1
            largest = max(largest, np.float64(G[j, j]))
    for a in range(count):
        row, own, j = G[some[a]], H[a], some[a]
        for b in range(a + 1):
            own[b] = row[some[b]]
        slope[a] = q[j] + (l1[j] if v[j] > 0.0 else -l1[j] if v[j] < 0.0 else 0.0)
    for k in range(start.size - 1):
        size = 0.0
        for j in range(start[k], start[k + 1]):
            size += v[j] * v[j]
        if norm[k] == 0.0 or size == 0.0:
            continue
        size = math.sqrt(size)
        bend = norm[k] / size
        for i in range(start[k], start[k + 1]):
            a = place[i]
            if a < 0:
                continue
            slope[a] += bend * v[i]
            H[a, a] += bend
            for j in range(start[k], i + 1):
                if place[j] >= 0:
                    H[a, place[j]] -= bend * (v[i] / size) * (v[j] / size)
    return largest


@njit(cache=True, **KERNEL)
def try_step(G, m, q, v, l1, lower, upper, start, norm, place, step, share, new, move):
    """A share of a step on the coordinates that can move; those that would pass zero against their l1 weight, or a
    bound, stop there. Returns by how much the model falls; `new` is where it leads, `move` is by how much q changes."""
    gained = 0.0
    for i in range(m):
        new[i] = v[i]
        move[i] = 0.0
    for j in range(m):
        if place[j] < 0:
            continue
        low = 0.0 if l1[j] > 0.0 and v[j] > 0.0 else lower[j]
        high = 0.0 if l1[j] > 0.0 and v[j] < 0.0 else upper[j]
        new[j] = min(max(v[j] + share * step[place[j]], low), high)
        change = new[j] - v[j]
        if change != 0.0:
            row = G[j]
            for i in range(m):
                move[i] += change * row[i]
    for k in range(start.size - 1):
        size, before = 0.0, 0.0
        for j in range(start[k], start[k + 1]):
            size += new[j] * new[j]
            before += v[j] * v[j]
            gained -= (new[j] - v[j]) * (q[j] + 0.5 * move[j]) + l1[j] * (abs(new[j]) - abs(v[j]))
        gained -= norm[k] * (math.sqrt(size) - math.sqrt(before))
    return gained
