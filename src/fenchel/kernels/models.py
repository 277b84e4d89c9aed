"""ADMM on a quadratic model of the loss with the penalty behind its map, in steps from a point that is known.

Symbols

=========  ============================================================================
w, v       the point of the model, and its answer: argmin g'd + 1/2 d'Hd + psi(B'v), d = v - w
u          copy of B'v, the point where the prox is taken; y the multiplier of u = B'v
r          step of ADMM, one entry per coordinate of B'v, constant on each unit of psi
inverse    (H + B diag(r) B')^-1, in single or double precision
B, psi     as in prox.py
=========  ============================================================================

The change d is solved for and not v, so that an inverse in single precision costs no digits of the answer: its error
is one of d, which tends to zero from model to model.
"""

from __future__ import annotations

import numpy as np

from .caching import WITHIN, njit
from .prox import AHEAD, LEAST_SQUARE, apply_adjoint, apply_map, block_prox
from .rows import KERNEL, LEAN


@njit(cache=True, nogil=True, **KERNEL)
def admm_steps(inverse, g, w, Bw, v, u, y, r, scale, ridge, B, psi, accuracy, most, info):
    """Rounds of ADMM from (u, y); v, u and y are overwritten.

    They end when both residuals, measured in r, are at most `accuracy` times the length of the step in the metric of
    H, which a solve knows for free. info receives the squares of both residuals (of B'v - u, and of the last move of
    u), the number of rounds, and that square length.
    """
    d, size = u.size, v.size
    pull, at, new, step = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    back, right = np.empty(size), np.empty(size, inverse.dtype)
    for e in range(d):
        step[e] = scale[e] / (r[e] + ridge[e])
    apart = moved = square = count = 0.0
    for _ in range(most):
        for e in range(d):
            pull[e] = r[e] * (u[e] - Bw[e]) - y[e]
        apply_adjoint(B, psi, pull, back)
        for j in range(size):
            back[j] -= g[j]
            right[j] = back[j]
        change = np.dot(inverse, right)
        square = 0.0
        for j in range(size):
            v[j] = w[j] + change[j]
            square += back[j] * change[j]
        apply_map(B, psi, v, at)
        for e in range(d):
            pull[e] = AHEAD * at[e] + (1.0 - AHEAD) * u[e] + y[e] / r[e]
            new[e] = pull[e] * r[e] / (r[e] + ridge[e])
        block_prox(psi, new, step)
        own = 0.0
        for e in range(d):
            own += r[e] * (at[e] - Bw[e]) ** 2
        square = max(square - own, LEAST_SQUARE * square)
        apart, moved = _settle(r, pull, new, at, u, y)
        count += 1.0
        if apart <= accuracy * accuracy * square and moved <= accuracy * accuracy * square:
            break
    info[0], info[1], info[2], info[3] = apart, moved, count, square


@njit(cache=True, **LEAN, **WITHIN)
def _settle(r, pull, new, at, u, y):
    """y and u after a prox; the squares of both residuals."""
    apart, moved = 0.0, 0.0
    for e in range(r.size):
        y[e] = r[e] * (pull[e] - new[e])
        apart += r[e] * (at[e] - new[e]) ** 2
        moved += r[e] * (new[e] - u[e]) ** 2
        u[e] = new[e]
    return apart, moved


@njit(cache=True, nogil=True, **LEAN)
def coupled(H, B, r, out):
    """out = H + B diag(r) B' (the lower triangle and more); B' is CSR, H symmetric."""
    start, column, value = B
    for i in range(H.shape[0]):
        for j in range(H.shape[0]):
            out[i, j] = H[i, j]
    for e in range(r.size):
        for a in range(start[e], start[e + 1]):
            weight, line = r[e] * value[a], out[column[a]]
            for b in range(start[e], start[e + 1]):
                line[column[b]] += weight * value[b]


@njit(cache=True, nogil=True, **LEAN)
def mirrored(lower, out):
    """out = the symmetric matrix whose lower triangle is given, in any order and precision."""
    for i in range(lower.shape[0]):
        for j in range(i + 1):
            value = lower[i, j]
            out[i, j] = value
            out[j, i] = value


@njit(cache=True, nogil=True, **LEAN)
def add_secant(matrix, a, b):
    """matrix += a a' - b b'."""
    for i in range(a.size):
        line, x, y = matrix[i], a[i], b[i]
        for j in range(a.size):
            line[j] += x * a[j] - y * b[j]


@njit(cache=True, nogil=True, **LEAN)
def add_outer(matrix, a, share):
    """matrix += share a a'."""
    for i in range(a.size):
        line, x = matrix[i], share * a[i]
        for j in range(a.size):
            line[j] += x * a[j]
