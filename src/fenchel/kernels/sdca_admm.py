"""One epoch of SDCA-ADMM, blocks and all.

Symbols (the paper's, with a diagonal metric in place of its scalar rho)

===========  ==========================================================================
x            dual variable, one entry per visit (a row seen by one output)
y            dual variable of the penalty, length d
w            primal variable: p features and one intercept slot per output
zx, by       Z x and B y, kept up to date
R            metric, rho times the square of the column scale, one entry per entry of w
c            rho eta_B, one entry per coordinate of B'w, constant on each group
eta          eta_Z without rho, one entry per visit
gamma_n      gamma times n
B            B' as CSR: start, column (unsigned, see rows.py), value
psi          bounds of the penalty's blocks; addresses of their prox, params and index; entries
             per row of B' (0 where they vary)
===========  ==========================================================================
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .calls import call_prox, call_step
from .rows import FAST, locate, row_add, row_add_scaled, row_clear, row_dot


@njit(fastmath=FAST, cache=True)
def penalty_step(cy, v, by, u, pull, shrink, step, B, back, psi):
    """y-step: c q = c y + B'v with v = w - R r, then c y = c q - prox(c q); refreshes by, leaves the prox in u.

    y is kept multiplied by c, and `back` holds the entries of B divided by it, so that nothing is divided here.
    `pull` receives c q. `shrink` and `step` carry a quadratic term: the prox of
    psi + mu/2 |.|^2 is a prox of psi at a shrunken point with a shrunken step.
    Blocks of B' with one entry (copies) or two (edges) in every row have loops of their own.
    """
    B_start, B_col, B_val = B
    bounds, prox, params, index, width = psi
    by[:] = 0.0
    for b in range(bounds.size - 1):
        first, last = bounds[b], bounds[b + 1]
        base = B_start[first]
        col, val, ret = B_col[base : B_start[last]], B_val[base : B_start[last]], back[base : B_start[last]]
        y_b, u_b, pull_b, shrink_b = cy[first:last], u[first:last], pull[first:last], shrink[first:last]
        if width[b] == 1:
            for e in range(y_b.size):
                pull_b[e] = y_b[e] + val[e] * v[col[e]]
        elif width[b] == 2:
            for e in range(y_b.size):
                pull_b[e] = y_b[e] + val[2 * e] * v[col[2 * e]] + val[2 * e + 1] * v[col[2 * e + 1]]
        else:
            for e in range(y_b.size):
                total = 0.0
                for k in range(B_start[first + e] - base, B_start[first + e + 1] - base):
                    total += val[k] * v[col[k]]
                pull_b[e] = y_b[e] + total
        for e in range(y_b.size):
            u_b[e] = pull_b[e] * shrink_b[e]
        call_prox(prox[b], last - first, first, u, step, params[b], index[b])
        for e in range(y_b.size):
            y_b[e] = pull_b[e] - u_b[e]
        if width[b] == 1:
            for e in range(y_b.size):
                by[col[e]] += ret[e] * y_b[e]
        elif width[b] == 2:
            for e in range(y_b.size):
                by[col[2 * e]] += ret[2 * e] * y_b[e]
                by[col[2 * e + 1]] += ret[2 * e + 1] * y_b[e]
        else:
            for e in range(y_b.size):
                for k in range(B_start[first + e] - base, B_start[first + e + 1] - base):
                    by[col[k]] += ret[k] * y_b[e]


@njit(fastmath=FAST, cache=True, nogil=True)
def epoch(
    rows, layout, target, weight, order, bounds, visits, sequential, kappa,
    x, y, w, zx, by, u, rho, R, c, shrink, step, eta, gamma_n, B, psi, loss, loss_params, idle,
):  # fmt: skip
    """Visit the blocks listed in `order`; returns the sum of eta times the squared changes of x.

    Block k is made of `visits` from bounds[k] to bounds[k + 1], or of these numbers themselves where the list is
    empty. sequential: the rows of a block one after another, each seeing the change of those before it
    (kappa times, the margin that keeps the w-step stable); otherwise all at once, as in the paper.
    `idle` counts how often in a row a visit has changed nothing.
    """
    outputs, slot = layout[0], layout[3]
    blocks = bounds.size - 1
    keep = 1.0 - 1.0 / blocks
    size = 1
    if not sequential:
        for k in range(blocks):
            size = max(size, bounds[k + 1] - bounds[k])
    point, new, bend, goal, mass = np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.ones(size)
    pull, before, v, start_v = np.empty(y.size), np.empty(w.size), np.empty(w.size), np.empty(w.size)
    KR, undo = kappa * R, np.zeros(w.size)
    for j in range(w.size):
        if KR[j] > 0.0:
            undo[j] = 1.0 / KR[j]
    cy, back = np.empty(y.size), np.empty(B[2].size)
    for e in range(y.size):
        cy[e] = c[e] * y[e]
        for k in range(B[0][e], B[0][e + 1]):
            back[k] = B[2][k] / c[e]
    moved = 0.0
    for k in order:
        first, last = bounds[k], bounds[k + 1]
        for j in range(w.size):
            before[j] = zx[j] + by[j]
            v[j] = w[j] - R[j] * before[j]
        penalty_step(cy, v, by, u, pull, shrink, step, B, back, psi)
        for j in range(w.size):
            v[j] = w[j] - R[j] * (zx[j] + by[j])
        if sequential:
            start_v[:] = v
            for at in range(first, last):
                i = visits[at] if visits.size > 0 else at
                row, start = (i, 0) if outputs == 1 and layout[2].size == 0 else locate(i, layout)
                bend[0] = rho * eta[i]
                point[0] = x[i] + (row_dot(rows, row, v, start) + v[start + slot]) / bend[0]
                goal[0] = target[i]
                if weight.size > 0:
                    mass[0] = weight[row]
                new[0] = x[i]
                call_step(loss, 1, new, point, bend, goal, mass, loss_params)
                change = new[0] - x[i]
                if change != 0.0:
                    x[i] = new[0]
                    moved += eta[i] * change * change
                    row_add_scaled(rows, row, -change, v, KR, start)
                    v[start + slot] -= KR[start + slot] * change
                    idle[i] = 0
                elif idle[i] < 255:
                    idle[i] += 1
            for j in range(w.size):
                zx[j] += undo[j] * (start_v[j] - v[j])
        else:
            for at in range(first, last):
                i = visits[at] if visits.size > 0 else at
                row, start = locate(i, layout)
                a = at - first
                bend[a] = rho * eta[i]
                point[a] = x[i] + (row_dot(rows, row, v, start) + v[start + slot]) / bend[a]
                goal[a] = target[i]
                new[a] = x[i]
                if weight.size > 0:
                    mass[a] = weight[row]
            call_step(loss, last - first, new, point, bend, goal, mass, loss_params)
            for at in range(first, last):
                i = visits[at] if visits.size > 0 else at
                change = new[at - first] - x[i]
                if change != 0.0:
                    row, start = locate(i, layout)
                    x[i] = new[at - first]
                    moved += eta[i] * change * change
                    row_add(rows, row, change, zx, start)
                    zx[start + slot] += change
        for j in range(w.size):
            w[j] -= gamma_n * R[j] * (zx[j] + by[j] - keep * before[j])
    for e in range(y.size):
        y[e] = cy[e] / c[e]
    return moved


@njit(fastmath=FAST, cache=True, nogil=True)
def block_gram(rows, layout, first, last, metric, scale, v, out):
    """S Z_I' M Z_I S for the visits first..last, S the diagonal of `scale`; v is zero before and after."""
    slot = layout[3]
    for i in range(first, last):
        row, start = locate(i, layout)
        row_add_scaled(rows, row, scale[i], v, metric, start)
        v[start + slot] += scale[i] * metric[start + slot]
        for j in range(first, i + 1):
            other, begin = locate(j, layout)
            value = scale[j] * (row_dot(rows, other, v, begin) + v[begin + slot])
            out[i - first, j - first] = value
            out[j - first, i - first] = value
        row_clear(rows, row, v, start)
        v[start + slot] = 0.0


@njit(fastmath=FAST, cache=True, nogil=True)
def block_product(rows, layout, first, last, metric, scale, a, v, out):
    """out = the same matrix times a, without forming it."""
    slot = layout[3]
    v[:] = 0.0
    for i in range(first, last):
        row, start = locate(i, layout)
        weight = a[i - first] * scale[i]
        row_add(rows, row, weight, v, start)
        v[start + slot] += weight
    for j in range(v.size):
        v[j] *= metric[j]
    for i in range(first, last):
        row, start = locate(i, layout)
        out[i - first] = scale[i] * (row_dot(rows, row, v, start) + v[start + slot])
