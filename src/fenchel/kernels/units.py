"""Coordinate descent on a quadratic model whose penalty acts on single coordinates, and what goes with it.

The model is  g'(v - v0) + (v - v0)'G(v - v0)/2 + sum_j l1_j |v_j|  on  lower <= v <= upper.

Symbols: G the curvature, of which the first m rows and columns count; q its gradient at v, kept for all coordinates; l1
the weights. The loops are plain, without BLAS, which takes long to compile.
"""

from __future__ import annotations

import numpy as np

from .caching import njit
from .rows import KERNEL


@njit(cache=True, **KERNEL)
def descend(G, m, q, v, l1, lower, upper, passes):
    """So many passes over all coordinates; fewer where nothing moves any more.

    Returns what the last pass gained, how many coordinates entered or left zero in it, and how many moved in all.
    """
    gained, changed, moved = 0.0, 0, 0
    for _ in range(passes):
        gained, changed = 0.0, 0
        for j in range(m):
            row = G[j]
            bend = np.float64(row[j])
            if bend <= 0.0:
                continue
            old = v[j]
            goal = old * bend - q[j]
            new = 0.0
            if goal > l1[j]:
                new = (goal - l1[j]) / bend
            elif goal < -l1[j]:
                new = (goal + l1[j]) / bend
            new = min(max(new, lower[j]), upper[j])
            step = new - old
            if step != 0.0:
                gained -= step * (q[j] + 0.5 * bend * step) + l1[j] * (abs(new) - abs(old))
                if new == 0.0 or old == 0.0:
                    changed += 1
                v[j] = new
                moved += 1
                for k in range(m):
                    q[k] += step * row[k]
        if gained <= 0.0:
            break
    return gained, changed, moved


@njit(cache=True, **KERNEL)
def model_gap(G, m, q, v, l1, lower, upper):
    """An estimate of how far the model's value is from its least: the penalty's Fenchel-Young gap at the slope,
    shortened where it is too steep, and the gain of the best single step."""
    ratio, single = 1.0, 0.0
    for j in range(m):
        slope = -q[j]
        bend = np.float64(G[j, j])
        over = 0.0
        if slope > l1[j] and upper[j] == np.inf:
            over = slope - l1[j]
        elif slope < -l1[j] and lower[j] == -np.inf:
            over = -slope - l1[j]
        if over > 0.0:
            if l1[j] > 0.0:
                ratio = max(ratio, abs(slope) / l1[j])
            if bend > 0.0:
                single = max(single, 0.5 * over * over / bend)
    scale = 1.0 / ratio
    total, size = 0.0, 0.0
    for j in range(m):
        slope = -scale * q[j]
        own = l1[j] * abs(v[j])
        size += own
        best = 0.0  # the conjugate of the weight and the bounds
        if slope > l1[j] and upper[j] < np.inf:
            best = upper[j] * (slope - l1[j])
        elif slope < -l1[j] and lower[j] > -np.inf:
            best = lower[j] * (slope + l1[j])
        if l1[j] > 0.0 or best > 0.0:
            total += own - v[j] * slope + best
    return max(total, 0.0) + (1.0 - scale) * size + single


@njit(cache=True, **KERNEL)
def gather_lower(G, some, out):
    """The lower triangle of the rows and columns in `some`."""
    for i in range(some.size):
        row, own = G[some[i]], out[i]
        for j in range(i + 1):
            own[j] = row[some[j]]


@njit(cache=True, **KERNEL)
def gather(G, some, out):
    """The rows and columns in `some`."""
    for i in range(some.size):
        row, own = G[some[i]], out[i]
        for j in range(some.size):
            own[j] = row[some[j]]


@njit(cache=True, **KERNEL)
def add_rows(G, some, factor, m, out):
    """out[:m] += the rows in `some`, times their factors."""
    for i in range(some.size):
        f = factor[i]
        if f != 0.0:
            row = G[some[i]]
            for k in range(m):
                out[k] += f * row[k]


@njit(cache=True, **KERNEL)
def mirror(G, m):
    """Copy the lower triangle to the upper one, in tiles that stay in the cache."""
    for top in range(0, m, 64):
        for left in range(0, top + 1, 64):
            for i in range(top, min(m, top + 64)):
                row = G[i]
                for j in range(left, min(i, left + 64)):
                    G[j, i] = row[j]


@njit(cache=True, **KERNEL)
def take_columns(X, columns, out, first):
    """out[first + k] = X[:, columns[k]]: columns of row-major data as rows, sixteen rows of the data at a time."""
    n = X.shape[0]
    for top in range(0, n, 16):
        end = min(n, top + 16)
        for k in range(columns.size):
            j, own = columns[k], out[first + k]
            for i in range(top, end):
                own[i] = X[i, j]
