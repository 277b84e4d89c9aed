"""Losses over the simplex: their dual steps for whole rows, and the sums of the softmax.

The steps have the form of those in `losses.py`; params[0] is the number of classes m, and the m entries of a row
stand together. With c = C s and b = t + point / s a step is the v in the simplex with the least

    phi(v) + sum_k c_k / 2 (v_k - b_k)^2,        x = s (v - t)
"""

from __future__ import annotations

import math

import numpy as np

from ..foundation.numerics import TINY
from .caching import njit
from .rows import KERNEL

_LOWEST = math.log(TINY)  # the logarithm of what counts as zero


def softmax(n, x, point, curvature, target, weight, params):
    """phi is the sum of v log v: log v_k + c_k v_k = c_k b_k + nu, for the nu at which the v add up to 1.

    The sum rises with nu, and the root is bracketed: no v is above 1, and one is at least 1/m. Newton's method on the
    logarithm of the sum, with bisection where it would leave the bracket.
    """
    m = int(params[0])
    for first in range(0, n, m):
        s = weight[first]
        if s == 0.0:
            for k in range(first, first + m):
                x[k] = 0.0
            continue
        low, high = math.inf, math.inf
        for k in range(first, first + m):
            c = curvature[k] * s
            a = c * (target[k] + point[k] / s)
            high = min(high, c - a)
            low = min(low, c / m - math.log(m) - a)
        # from the present v: where the linear system has its nu
        top, bottom = 1.0, 0.0
        for k in range(first, first + m):
            c = curvature[k] * s
            v = x[k] / s + target[k]
            if v > 1e-300:
                share = v / (1.0 + c * v)
                top -= v + share * (c * (target[k] + point[k] / s) - math.log(v) - c * v)
                bottom += share
        nu = top / bottom if bottom > 0.0 else high
        if not low <= nu <= high:
            nu = 0.5 * (low + high)
        for k in range(first, first + m):
            v = x[k] / s + target[k]
            x[k] = math.log(v) if v > TINY else _LOWEST  # log v, from here on
        total = 1.0
        for _ in range(100):
            total, slope = 0.0, 0.0
            for k in range(first, first + m):
                c = curvature[k] * s
                A = c * (target[k] + point[k] / s) + nu
                # the root of z + c exp(z) = A; from its right Newton descends without overshooting
                right = min(A, math.log(A / c) if c <= A else 0.0)
                z = min(x[k], right) if x[k] > _LOWEST else right
                for _ in range(60):
                    e = c * math.exp(max(z, _LOWEST))
                    change = (z + e - A) / (1.0 + e)
                    z = min(z - change, right)
                    if abs(change) <= 1e-13 * (1.0 + abs(z)):
                        break
                v = math.exp(max(z, _LOWEST))
                x[k] = z
                total += v
                slope += v / (1.0 + c * v)
            if total > 1.0:
                high = nu
            else:
                low = nu
            if abs(total - 1.0) <= 4e-16 * m or high - low <= 1e-15 * (abs(low) + abs(high)):
                break
            new = nu - math.log(total) * total / slope if slope > 0.0 else low - 1.0
            nu = new if low <= new <= high else 0.5 * (low + high)
        for k in range(first, first + m):
            x[k] = s * (math.exp(max(x[k], _LOWEST)) / total - target[k])


def hinge(n, x, point, curvature, target, weight, params):
    """phi is -v'(1 - t): the point of the simplex closest to b + (1 - t) / c, in the metric c. Classes whose share
    would be negative are left out, until there are none: a class that was left out never comes back."""
    m = int(params[0])
    for first in range(0, n, m):
        s = weight[first]
        if s == 0.0:
            for k in range(first, first + m):
                x[k] = 0.0
            continue
        for k in range(first, first + m):
            x[k] = target[k] + point[k] / s + (1.0 - target[k]) / (curvature[k] * s)
        for _ in range(m):
            total, room = -1.0, 0.0
            for k in range(first, first + m):
                if x[k] > -math.inf:
                    total += x[k]
                    room += 1.0 / curvature[k]
            shift, left_out = total / room, False
            for k in range(first, first + m):
                if x[k] > -math.inf and x[k] - shift / curvature[k] <= 0.0:
                    x[k], left_out = -math.inf, True
            if not left_out:
                break
        total = 0.0
        for k in range(first, first + m):
            x[k] = max(x[k] - shift / curvature[k], 0.0)
            total += x[k]
        for k in range(first, first + m):
            x[k] = s * (x[k] / total - target[k])


@njit(cache=True, nogil=True, **KERNEL)
def softmax_sums(score, target, weight, m, slope, bend):
    """The weighted sum of the loss; slopes s (pi - t) and h = s pi of every visit."""
    total = 0.0
    e = np.empty(m)
    for row in range(score.size // m):
        first = row * m
        s = weight[first] if weight.size > 0 else 1.0
        u, t = score[first : first + m], target[first : first + m]
        top = 0
        for k in range(m):
            if u[k] > u[top]:
                top = k
        rest = 0.0
        for k in range(m):
            e[k] = math.exp(u[k] - u[top])
            if k != top:
                rest += e[k]
        scale, offset = s / (1.0 + rest), math.log1p(rest)
        for k in range(m):
            bend[first + k] = scale * e[k]
            # the slope of a class that is all but certain keeps its digits
            slope[first + k] = -scale * rest if k == top and t[k] == 1.0 else scale * e[k] - s * t[k]
        if s > 0.0:
            own = 0.0
            for k in range(m):
                if t[k] > 0.0:
                    own += t[k] * (offset + (u[top] - u[k]))
            total += s * own
    return total


@njit(cache=True, nogil=True, **KERNEL)
def softmax_total(score, target, weight, m):
    """The weighted sum of the loss alone."""
    total = 0.0
    for row in range(score.size // m):
        s = weight[row * m] if weight.size > 0 else 1.0
        if s == 0.0:
            continue
        u, t = score[row * m : row * m + m], target[row * m : row * m + m]
        top = 0
        for k in range(m):
            if u[k] > u[top]:
                top = k
        rest, own, shares = 0.0, 0.0, 0.0
        for k in range(m):
            if k != top:
                rest += math.exp(u[k] - u[top])
            if t[k] > 0.0:
                own += t[k] * (u[top] - u[k])
                shares += t[k]
        total += s * (own + shares * math.log1p(rest))
    return total


@njit(cache=True, nogil=True, **KERNEL)
def softmax_tilt(logs, move, target, weight, slope, bend):
    """The weighted sum of log(sum(v exp(move))) - t'move, with slopes s (pi - t) and h = s pi. Arrays (rows, classes),
    weights a column; logarithms of v may be minus infinity, but not all of a row."""
    total = 0.0
    for row in range(logs.shape[0]):
        s, v, d, t = weight[row, 0], logs[row], move[row], target[row]
        e, x = bend[row], slope[row]
        top = 0
        for k in range(v.size):
            e[k] = v[k] + d[k]
            if e[k] > e[top]:
                top = k
        most, rest, own = e[top], 0.0, 0.0
        for k in range(v.size):
            e[k] = math.exp(e[k] - most)
            own += t[k] * d[k]
            if k != top:
                rest += e[k]
        scale = s / (1.0 + rest)
        for k in range(v.size):
            e[k] *= scale
            # the slope of a class that is all but certain keeps its digits
            x[k] = -scale * rest if k == top and t[k] == 1.0 else e[k] - s * t[k]
        total += s * (most + math.log1p(rest) - own)
    return total
