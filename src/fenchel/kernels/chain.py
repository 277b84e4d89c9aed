"""The proximal operator of differences along chains, in one sweep: no iterations.

Dynamic programming (Johnson, 2013). The best value of all features up to one, as a function of that one, has a
derivative of straight pieces; the penalty of the next edge cuts it off at both its ends. On the way back every feature
is its successor, clipped to where the cuts were. An l1 norm beside the differences shrinks the answer afterwards
(Friedman et al., 2007), where all features of a chain have the same weight.
"""

from __future__ import annotations

import numpy as np

from .caching import WITHIN, njit
from .rows import KERNEL, LEAN


@njit(cache=True, nogil=True, **KERNEL)
def chain_prox(v, eta, chains, w, s):
    """w = argmin 1/2 |w - v|^2 + eta (sum of height |w_j+1 - w_j| + lone |w_j| + mu/2 w_j^2); s its dual variable.

    `chains` is (first, last, height, lone, mu): features and the weights of the edges to the next one. s[j] is the pull
    of that edge on feature j + 1, divided by eta. Features outside all chains are only shrunk.
    """
    first, last, height, lone, mu = chains
    s[:] = 0.0
    for j in range(w.size):
        w[j] = v[j] / (1.0 + eta * mu[j])
    knots = np.empty((3, 2 * w.size + 2))
    low, high, pull = np.empty_like(w), np.empty_like(w), np.empty_like(w)
    for k in range(first.size):
        here = slice(first[k], last[k])
        _sweep(v[here], eta, 1.0 + eta * mu[first[k]], height[here], w[here], low[here], high[here], knots, pull[here])
        for j in range(first[k], last[k]):
            s[j] = pull[j]
    for j in range(w.size):
        threshold = eta * lone[j] / (1.0 + eta * mu[j])
        above, below = w[j] - threshold, w[j] + threshold
        w[j] = (above if above > 0.0 else 0.0) + (below if below < 0.0 else 0.0)


@njit(cache=True, **LEAN, **WITHIN)
def _sweep(v, eta, curvature, height, w, low, high, knots, pull):
    """One chain. A knot has a place, and by how much slope and level of the derivative change there; those that were
    made from the right have the other sign, so that they are added on the way to the left."""
    place, slope, level = knots[0], knots[1], knots[2]
    count = v.size
    left = place.size // 2
    right = left - 1  # no knots yet
    cut = 0.0
    for j in range(count - 1):
        before, cut = cut, eta * height[j]
        a, b = curvature, -v[j] - before
        begin = left
        while begin <= right and a * place[begin] + b <= -cut:
            a += slope[begin]
            b += level[begin]
            begin += 1
        low[j] = (-cut - b) / a
        c, d = -curvature, v[j] - before
        end = right
        while end >= begin and -(c * place[end] + d) >= cut:
            c += slope[end]
            d += level[end]
            end -= 1
        high[j] = -(cut + d) / c
        left, right = begin - 1, end + 1
        place[left], slope[left], level[left] = low[j], a, b + cut
        place[right], slope[right], level[right] = high[j], c, d + cut
    a, b = curvature, -v[count - 1] - cut
    while left <= right and a * place[left] + b <= 0.0:
        a += slope[left]
        b += level[left]
        left += 1
    w[count - 1] = -b / a
    for j in range(count - 2, -1, -1):
        w[j] = min(max(w[j + 1], low[j]), high[j])
    total = 0.0
    for j in range(count - 1):
        total += curvature * w[j] - v[j]
        pull[j] = min(max(total / eta, -height[j]), height[j])
    pull[count - 1] = 0.0
