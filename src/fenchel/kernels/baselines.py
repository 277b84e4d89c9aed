"""One epoch of each method that SDCA-ADMM is compared with.

Symbols (those of the methods' papers; ``kernels/prox.py`` has B, psi, s, mu)

===========  ==========================================================================
data         rows, layout, target, weight, bounds of the K blocks of visits, 1.0 with
             an intercept (0.0: the intercept's slot stays zero), offset (may be empty)
loss         addresses: dual step, gradient, params
x            dual variable, one entry per visit; zx = Z x
w            primal variable: p features and one intercept slot per output
g, gbar      unbiased mini-batch gradient (K/n) sum over the block, and its mean
u, lam       split variable B'w = u, and its multiplier
t            steps taken so far
eta, rho     step of w, and of the multiplier
penalty      B, psi, and the factors of the prox with step 1/rho
mean_*       averages over the iterates 1 .. t
===========  ==========================================================================
"""

from __future__ import annotations

import math

import numpy as np

from .caching import WITHIN, njit
from .calls import call_step
from .prox import apply_adjoint, apply_map, block_prox, separated_prox, structured_prox
from .rows import KERNEL, LEAN, locate, row_add, row_dot

# codes of the step sizes; the first three are for descent, the others for dual averaging
STEP_SIZES = {"sqrt": 0, "strong": 1, "constant": 2, "dual-sqrt": 3, "dual-linear": 4}


@njit(cache=True)
def step_size(kind, eta0, mu, t):
    if kind == 0:
        return eta0 / math.sqrt(t)
    if kind == 1:
        return 1.0 / (1.0 / eta0 + mu * t)
    if kind == 2:
        return eta0
    return eta0 * (math.sqrt(t) if kind == 3 else t)


# -- blocks of rows ---------------------------------------------------------------------------------


@njit(cache=True)
def buffers(bounds):
    """Scratch space for the longest block: scores, result, curvature, targets, weights."""
    size = 1
    for k in range(bounds.size - 1):
        size = max(size, bounds[k + 1] - bounds[k])
    return np.empty(size), np.empty(size), np.ones(size), np.empty(size), np.ones(size)


@njit(cache=True, **LEAN, **WITHIN)
def block_scores(data, first, last, w, space):
    """Scores, targets and weights of the visits first .. last."""
    rows, layout, target, weight, _bounds, _bias, offset = data
    score, _result, _curvature, goal, mass = space
    for i in range(first, last):
        row, start = locate(i, layout)
        score[i - first] = row_dot(rows, row, w, start) + w[start + layout[3]]
        if offset.size > 0:
            score[i - first] += offset[i]
        goal[i - first] = target[i]
        if weight.size > 0:
            mass[i - first] = weight[row]


@njit(cache=True, **WITHIN)
def block_slopes(data, loss, first, last, w, space):
    """s_i f'(z_i'w) of the visits first .. last, in the second buffer."""
    block_scores(data, first, last, w, space)
    score, slope, curvature, goal, mass = space
    call_step(loss[1], last - first, slope, score, curvature, goal, mass, loss[2])
    return slope


@njit(cache=True, **LEAN)
def add_rows(data, first, last, x, scale, out):
    """out += scale Z_I x for the visits I = first .. last; x is indexed from `first`."""
    rows, layout, _target, _weight, _bounds, bias, _offset = data
    for i in range(first, last):
        a = scale * x[i - first]
        if a != 0.0:
            row, start = locate(i, layout)
            row_add(rows, row, a, out, start)
            out[start + layout[3]] += bias * a


@njit(cache=True)
def gradient(data, loss, n, k, w, g, space):
    """g = (K/n) sum over block k of s_i f'(z_i'w) z_i: unbiased also where the last block is short."""
    bounds = data[4]
    first, last = bounds[k], bounds[k + 1]
    slope = block_slopes(data, loss, first, last, w, space)
    g[:] = 0.0
    add_rows(data, first, last, slope, (bounds.size - 1) / n, g)


@njit(cache=True, **LEAN)
def average(mean, new, t):
    for j in range(mean.size):
        mean[j] += (new[j] - mean[j]) / t


@njit(cache=True, **KERNEL, **WITHIN)
def solve_rows(data, loss, first, last, x, v, tau, squares, tol, most, space):
    """min over x_I of sum (s f)*(x_i) + |Z_I x_I|^2 tau/2 - c'Z_I x_I, by sweeps over the coordinates.

    v = c - tau Z_I x_I is kept up to date. Ends when the duality gap of all rows together is at most `tol`, or
    after `most` sweeps; returns their number. After its own step a row has f(a) + f*(x) = x a at its score a, so
    that at the score b when the sweep is over its gap is at most (f'(b) - x)(b - a).
    """
    rows, layout, target, weight, _bounds, bias, offset = data
    slot = layout[3]
    point, new, bend, goal, mass = np.empty(1), np.empty(1), np.empty(1), np.empty(1), np.ones(1)
    own = np.empty(last - first)
    for sweep in range(most):
        for i in range(first, last):
            row, start = locate(i, layout)
            bend[0] = tau * squares[i]
            product = row_dot(rows, row, v, start) + v[start + slot]
            if offset.size > 0:
                product += offset[i]
            point[0] = x[i] + product / bend[0]
            goal[0] = target[i]
            if weight.size > 0:
                mass[0] = weight[row]
            new[0] = x[i]
            call_step(loss[0], 1, new, point, bend, goal, mass, loss[2])
            own[i - first] = bend[0] * (point[0] - new[0])
            change = new[0] - x[i]
            if change != 0.0:
                x[i] = new[0]
                row_add(rows, row, -tau * change, v, start)
                v[start + slot] -= bias * tau * change
        slope = block_slopes(data, loss, first, last, v, space)
        gap = 0.0
        for i in range(last - first):
            gap += (slope[i] - x[first + i]) * (space[0][i] - own[i])
        if gap <= tol:
            return sweep + 1
    return most


# -- methods that split w and u = B'w -----------------------------------------------------------------


@njit(cache=True, **KERNEL, **WITHIN)
def multiplier_pull(B, psi, w, u, lam, rho, room, out):
    """out = B (lam - rho (B'w - u)); `room` is scratch space of u's length."""
    apply_map(B, psi, w, room)
    for e in range(u.size):
        room[e] = lam[e] - rho * (room[e] - u[e])
    apply_adjoint(B, psi, room, out)


@njit(cache=True, **KERNEL, **WITHIN)
def split_step(w, u, lam, rho, penalty, room):
    """u = prox of psi/rho at B'w - lam/rho, and lam -= rho (B'w - u)."""
    B, psi, shrink, step = penalty
    apply_map(B, psi, w, room)
    for e in range(u.size):
        u[e] = (room[e] - lam[e] / rho) * shrink[e]
    block_prox(psi, u, step)
    for e in range(u.size):
        lam[e] -= rho * (room[e] - u[e])


@njit(cache=True, nogil=True, **KERNEL)
def opg_admm_epoch(data, order, loss, n, penalty, rule, t, w, u, lam, mean_w, mean_lam):
    """OPG-ADMM. rule: kind of step size, eta0, mu, rho, largest eigenvalue of BB'."""
    kind, eta0, mu, rho, top = rule
    space, g, pull, room = buffers(data[4]), np.empty(w.size), np.empty(w.size), np.empty(u.size)
    for k in order:
        t += 1
        gradient(data, loss, n, k, w, g, space)
        multiplier_pull(penalty[0], penalty[1], w, u, lam, rho, room, pull)
        e = 1.0 / (1.0 / step_size(kind, eta0, mu, t) + rho * top)
        for j in range(w.size):
            w[j] -= e * (g[j] - pull[j])
        split_step(w, u, lam, rho, penalty, room)
        average(mean_w, w, t)
        average(mean_lam, lam, t)


@njit(cache=True, nogil=True, **KERNEL)
def ol_admm_epoch(data, order, loss, n, penalty, rule, t, w, u, lam, mean_w, mean_lam, x, squares, tol, most):
    """OL-ADMM: as OPG-ADMM with the loss of the block itself; x remembers each block's last dual variables."""
    kind, eta0, mu, rho, top = rule
    bounds = data[4]
    blocks = bounds.size - 1
    space, pull, room = buffers(bounds), np.empty(w.size), np.empty(u.size)
    for k in order:
        t += 1
        first, last = bounds[k], bounds[k + 1]
        h = 1.0 / step_size(kind, eta0, mu, t) + rho * top
        multiplier_pull(penalty[0], penalty[1], w, u, lam, rho, room, pull)
        for j in range(w.size):
            w[j] += pull[j] / h
        tau = blocks / (n * h)
        add_rows(data, first, last, x[first:last], -tau, w)
        solve_rows(data, loss, first, last, x, w, tau, squares, tol * n / blocks, most, space)
        split_step(w, u, lam, rho, penalty, room)
        average(mean_w, w, t)
        average(mean_lam, lam, t)


@njit(cache=True, nogil=True, **KERNEL)
def rda_admm_epoch(data, order, loss, n, penalty, rule, t, w, u, lam, mean_w, mean_lam, gbar, mean_u):
    """RDA-ADMM: the w-step sees the means of everything, the steps of u and lam do not."""
    kind, eta0, mu, rho, top = rule
    space, g, pull, room = buffers(data[4]), np.empty(w.size), np.empty(w.size), np.empty(u.size)
    for k in order:
        t += 1
        gradient(data, loss, n, k, w, g, space)
        average(gbar, g, t)
        average(mean_w, w, t)
        average(mean_u, u, t)
        average(mean_lam, lam, t)
        multiplier_pull(penalty[0], penalty[1], mean_w, mean_u, mean_lam, rho, room, pull)
        e = 1.0 / (1.0 / step_size(kind, eta0, mu, t) + rho * top / t)
        for j in range(w.size):
            w[j] = -e * (gbar[j] - pull[j])
        split_step(w, u, lam, rho, penalty, room)


# -- methods with the proximal operator of the whole penalty -------------------------------------------


@njit(cache=True, nogil=True, **KERNEL)
def proximal_epoch(data, order, loss, n, solver, rule, t, w, u, slope, mean_w, mean_slope, gbar, dual_averaging):
    """FOBOS, or with dual averaging RDA. rule: kind of step size, eta0, mu, and the rule of the prox."""
    kind, eta0, mu, prox_rule = rule
    space, g, v, info = buffers(data[4]), np.empty(w.size), np.empty(w.size), np.empty(4)
    for k in order:
        t += 1
        gradient(data, loss, n, k, w, g, space)
        eta = step_size(kind, eta0, mu, t)
        if dual_averaging:
            average(gbar, g, t)
        for j in range(w.size):
            v[j] = -eta * gbar[j] if dual_averaging else w[j] - eta * g[j]
        structured_prox(v, eta, slope, w, u, solver, prox_rule, info)
        average(mean_w, w, t)
        average(mean_slope, slope, t)


@njit(cache=True, nogil=True, **KERNEL)
def sag_epoch(data, order, loss, n, solver, eta, prox_rule, w, u, slope, a, total, unbiased):
    """Proximal SAG, or SAGA where unbiased. a: the last slope of every visit; total = Z a."""
    bounds = data[4]
    blocks = bounds.size - 1
    space, change, v, info = buffers(bounds), np.empty(w.size), np.empty(w.size), np.empty(4)
    weight = blocks / n if unbiased else 1.0 / n
    for k in order:
        first, last = bounds[k], bounds[k + 1]
        new = block_slopes(data, loss, first, last, w, space)
        for i in range(first, last):
            fresh = new[i - first]
            new[i - first] = fresh - a[i]
            a[i] = fresh
        change[:] = 0.0
        add_rows(data, first, last, new, 1.0, change)
        for j in range(w.size):
            v[j] = w[j] - eta * (weight * change[j] + total[j] / n)
            total[j] += change[j]
        structured_prox(v, eta, slope, w, u, solver, prox_rule, info)


# -- dual methods -------------------------------------------------------------------------------------


@njit(cache=True, **KERNEL, **WITHIN)
def joint_step(data, loss, first, last, x, zx, v, bend, space):
    """x_i = prox of (s f)*/bend_i at x_i + z_i'v / bend_i for all visits of the block at once; updates zx."""
    block_scores(data, first, last, v, space)
    score, new, curvature, goal, mass = space
    for i in range(first, last):
        curvature[i - first] = bend[i]
        score[i - first] = x[i] + score[i - first] / bend[i]
        new[i - first] = x[i]
    call_step(loss[0], last - first, new, score, curvature, goal, mass, loss[2])
    for i in range(first, last):
        change = new[i - first] - x[i]
        x[i] = new[i - first]
        new[i - first] = change
    add_rows(data, first, last, new, 1.0, zx)


@njit(cache=True, nogil=True, **KERNEL)
def batch_admm_epoch(data, loss, penalty, rho, eta_b, bend, x, y, w, zx, u):
    """Linearised ADMM on the dual: all rows, then w -= rho (Z x + B y)."""
    B, psi, shrink, step = penalty
    c = rho * eta_b
    by, v = np.empty(w.size), np.empty(w.size)
    apply_adjoint(B, psi, y, by)
    for j in range(w.size):
        v[j] = w[j] - rho * (zx[j] + by[j])
    q = np.empty(y.size)
    apply_map(B, psi, v, q)
    for e in range(y.size):
        q[e] += c * y[e]
        u[e] = q[e] * shrink[e]
    block_prox(psi, u, step)
    for e in range(y.size):
        y[e] = (q[e] - u[e]) / c
    apply_adjoint(B, psi, y, by)
    for j in range(w.size):
        v[j] = w[j] - rho * (zx[j] + by[j])
    joint_step(data, loss, 0, x.size, x, zx, v, bend, buffers(data[4]))
    for j in range(w.size):
        w[j] -= rho * (zx[j] + by[j])


@njit(cache=True, nogil=True, **KERNEL)
def exact_admm_epoch(data, loss, n, solver, rho, squares, prox_rule, tol, most, x, slope, w, zx, u):
    """ADMM on the dual with both steps exact; returns the sweeps over the rows.

    The y-step is a prox: with v = w - rho Z x and h the prox of rho n psi(B'.) at v, B y = (v - h) / rho. So
    w - rho (Z x + B y) = h, and the steps of x and w go on from there.
    """
    v, info = np.empty(w.size), np.empty(4)
    for j in range(w.size):
        v[j] = w[j] - rho * zx[j]
    structured_prox(v, rho * n, slope, w, u, solver, prox_rule, info)
    sweeps = solve_rows(data, loss, 0, x.size, x, w, rho, squares, tol * n, most, buffers(data[4]))
    zx[:] = 0.0
    add_rows(data, 0, x.size, x, 1.0, zx)
    return sweeps


@njit(cache=True, **KERNEL)
def conjugate_gradient(zx, n, v, w, u, slope, solver, M, step):
    """w = gradient of the conjugate of psi(B'.) at -Z x / n, for a penalty with a quadratic 1/M and a simple B."""
    for j in range(w.size):
        v[j] = -zx[j] / n
    separated_prox(v, M, 1.0, w, u, slope, solver[0], solver[1], solver[2], step)


@njit(cache=True, nogil=True, **KERNEL)
def sdca_epoch(data, order, loss, n, solver, M, bend, x, zx, w, u):
    """Proximal SDCA, the rows of a block together."""
    bounds = data[4]
    space, v, slope, step = buffers(bounds), np.empty(w.size), np.empty(u.size), np.zeros(u.size)
    for k in order:
        conjugate_gradient(zx, n, v, w, u, slope, solver, M, step)
        joint_step(data, loss, bounds[k], bounds[k + 1], x, zx, w, bend, space)
    conjugate_gradient(zx, n, v, w, u, slope, solver, M, step)


@njit(cache=True, nogil=True, **KERNEL)
def asdca_epoch(data, order, loss, n, solver, M, theta, x, zx, w, u):
    """Accelerated mini-batch SDCA: slopes at a point between w and the dual's own, mixed into x and w."""
    bounds = data[4]
    space, v, slope, step = buffers(bounds), np.empty(w.size), np.empty(u.size), np.zeros(u.size)
    own, between = np.empty(w.size), np.empty(w.size)
    conjugate_gradient(zx, n, v, own, u, slope, solver, M, step)
    for k in order:
        first, last = bounds[k], bounds[k + 1]
        for j in range(w.size):
            between[j] = (1.0 - theta) * w[j] + theta * own[j]
        change = block_slopes(data, loss, first, last, between, space)
        for i in range(first, last):
            change[i - first] = theta * (change[i - first] - x[i])
            x[i] += change[i - first]
        add_rows(data, first, last, change, 1.0, zx)
        conjugate_gradient(zx, n, v, own, u, slope, solver, M, step)
        for j in range(w.size):
            w[j] = (1.0 - theta) * w[j] + theta * own[j]
