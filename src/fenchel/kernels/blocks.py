"""ADMM on quadratic models that fall into one block per task or output, and sparse curvatures of such blocks.

Symbols

=========  ============================================================================
w, v       the point of the model, and its answer: argmin g'd + 1/2 d'Hd + psi(B'v), d = v - w
H          block-diagonal: one matrix (p, p) for each vector of coefficients, or one that all share
u          copy of B'v, the point where the prox is taken; y the multiplier of u = B'v
r          step of ADMM, one entry per coordinate of B'v, constant on each unit of psi
D          diagonal, D >= B diag(r) B'; equal where every row of B' has one entry
inverse    (H + D)^-1, in single or double precision, its blocks one after another
B, psi     as in prox.py
=========  ============================================================================

Where B joins coefficients, D - B diag(r) B' is a proximal term: each step stays a solve with the blocks.
"""

from __future__ import annotations

import numpy as np

from .caching import WITHIN, njit
from .prox import AHEAD, LEAST_SQUARE, apply_adjoint, apply_map, block_prox
from .rows import KERNEL, LEAN


@njit(cache=True, nogil=True, **KERNEL)
def block_admm_steps(inverse, D, g, w, v, at, u, y, r, scale, ridge, B, psi, joined, accuracy, most, info):
    """Rounds of ADMM from (v, u, y), where at = B'v; all four are overwritten.

    They end when both residuals, measured in r, are at most `accuracy` times the length of the step in the metric of
    H. info receives the squares of both residuals (of B'v - u, and of the last move of u and v), the number of rounds,
    and that square length. `joined` tells whether a row of B' has several entries.
    """
    d, size, blocks, p = u.size, v.size, inverse.shape[0], inverse.shape[1]
    pull, new, step, before = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    back, right, change = np.empty(size), np.empty(size, inverse.dtype), np.empty(size, inverse.dtype)
    rights, changes = right.reshape((size // p, p)), change.reshape((size // p, p))
    for e in range(d):
        step[e] = scale[e] / (r[e] + ridge[e])
    apart = moved = square = count = 0.0
    for _ in range(most):
        for e in range(d):
            pull[e] = r[e] * (u[e] - at[e]) - y[e]
            before[e] = at[e]
        apply_adjoint(B, psi, pull, back)
        for j in range(size):
            back[j] += D[j] * (v[j] - w[j]) - g[j]
            right[j] = back[j]
        if blocks == 1:
            np.dot(rights, inverse[0], changes)
        else:
            for k in range(blocks):
                np.dot(inverse[k], rights[k], changes[k])
        square = own = drift = 0.0
        for j in range(size):
            move = change[j]
            square += back[j] * move
            own += D[j] * move * move
            drift += D[j] * (w[j] + move - v[j]) ** 2
            v[j] = w[j] + move
        square = max(square - own, LEAST_SQUARE * square)
        apply_map(B, psi, v, at)
        for e in range(d):
            pull[e] = AHEAD * at[e] + (1.0 - AHEAD) * u[e] + y[e] / r[e]
            new[e] = pull[e] * r[e] / (r[e] + ridge[e])
        block_prox(psi, new, step)
        apart, moved = _settle(r, pull, new, at, before, u, y, drift if joined else 0.0)
        count += 1.0
        if apart <= accuracy * accuracy * square and moved <= accuracy * accuracy * square:
            break
    info[0], info[1], info[2], info[3] = apart, moved, count, square


@njit(cache=True, **LEAN, **WITHIN)
def _settle(r, pull, new, at, before, u, y, drift):
    """y and u after a prox; the squares of both residuals. `drift` is the move of v in the metric of D."""
    apart, moved, seen = 0.0, 0.0, 0.0
    for e in range(r.size):
        y[e] = r[e] * (pull[e] - new[e])
        apart += r[e] * (at[e] - new[e]) ** 2
        moved += r[e] * (new[e] - u[e]) ** 2
        seen += r[e] * (at[e] - before[e]) ** 2
        u[e] = new[e]
    return apart, moved + max(drift - seen, 0.0)


@njit(cache=True, nogil=True, **LEAN)
def sparse_blocks(value, column, start, block, outputs, h, out):
    """out[k] += the sum of h x x' over the rows that block k sees, each pair of different entries in one place only.

    Rows are CSR. Without tasks (`block` is empty) h has an entry for each row and output, and all
    rows are seen by all; otherwise block[i] is the one that sees row i.
    """
    for i in range(start.size - 1):
        for k in range(outputs):
            here, bend = out[block[i] if block.size else k], h[i * outputs + k]
            if bend != 0.0:
                for a in range(start[i], start[i + 1]):
                    line, weight = here[column[a]], bend * value[a]
                    for b in range(start[i], a + 1):
                        line[column[b]] += weight * value[b]
