"""The proximal operator of psi(B'.), and the products with B that the baselines share.

Symbols

=========  ============================================================================
v, w       the point, and its prox
s          dual variable: w = M (v - B s); its slope s / eta is a subgradient of psi at B'w
eta        step of the prox
mu         quadratic of w itself, one entry per entry of w; M = 1 / (1 + eta mu)
c          diag(c) >= B'B, one entry per coordinate, constant on each unit of psi
p          prox point of psi: the value that u = B'w tends to, with exact zeros
B          B' as CSR: start, column (unsigned, see rows.py), value
psi        per block: first and last row of B', entries per row (0 where they vary), addresses
           of the prox, the value, params and index
closed     the same for blocks that need no dual variable
=========  ============================================================================
"""

from __future__ import annotations

import functools
import math

import numpy as np
from numba import boolean, float64, int64, types, uint64, void
from numba.extending import intrinsic

from .apart import HOT, LIST, OWNING, READ, VECTOR, address_of, apart, called_at
from .caching import WITHIN, njit
from .calls import call_prox
from .rows import KERNEL, LEAN

AHEAD = 1.6  # over-relaxation of ADMM, which converges between 0 and 2; larger: it oscillates, smaller: it is slower
LEAST_SQUARE = 1e-6  # of the square length of a step: a difference of two such squares below it is rounding

MAP = types.Tuple((LIST, uint64[::1], VECTOR))
BLOCKS = types.UniTuple(LIST, 7)
_UNITS = types.Tuple((LIST, LIST, VECTOR, boolean[::1]))
_SOLVER = types.Tuple((MAP, BLOCKS, *4 * [VECTOR], _UNITS, boolean, BLOCKS, int64))
_WHOLE = void(READ, float64, VECTOR, VECTOR, VECTOR, _SOLVER, types.Tuple((float64, float64, int64)), VECTOR)


@njit(cache=True, **LEAN)
def apply_map(B, psi, v, out):
    """out = B'v, on the rows of the blocks in psi."""
    for b in range(psi[0].size):
        first, last, width = psi[0][b], psi[1][b], psi[2][b]
        base = B[0][first]
        col, val, o = B[1][base : B[0][last]], B[2][base : B[0][last]], out[first:last]
        if width == 1:
            for e in range(o.size):
                o[e] = val[e] * v[col[e]]
        elif width == 2:
            for e in range(o.size):
                o[e] = val[2 * e] * v[col[2 * e]] + val[2 * e + 1] * v[col[2 * e + 1]]
        else:
            for e in range(o.size):
                total = 0.0
                for k in range(B[0][first + e] - base, B[0][first + e + 1] - base):
                    total += val[k] * v[col[k]]
                o[e] = total


@njit(cache=True, **LEAN)
def apply_adjoint(B, psi, s, out):
    """out = B s, from the rows of the blocks in psi."""
    out[:] = 0.0
    for b in range(psi[0].size):
        first, last, width = psi[0][b], psi[1][b], psi[2][b]
        base = B[0][first]
        col, val, part = B[1][base : B[0][last]], B[2][base : B[0][last]], s[first:last]
        if width == 1:
            for e in range(part.size):
                out[col[e]] += val[e] * part[e]
        elif width == 2:
            for e in range(part.size):
                out[col[2 * e]] += val[2 * e] * part[e]
                out[col[2 * e + 1]] += val[2 * e + 1] * part[e]
        else:
            for e in range(part.size):
                for k in range(B[0][first + e] - base, B[0][first + e + 1] - base):
                    out[col[k]] += val[k] * part[e]


@njit(cache=True, **LEAN)
def block_prox(psi, u, step):
    """u = prox of psi at u, block by block; `step` has one entry per coordinate."""
    for b in range(psi[0].size):
        call_prox(psi[3][b], psi[1][b] - psi[0][b], psi[0][b], u, step, psi[5][b], psi[6][b])


@njit(cache=True, **LEAN, **WITHIN)
def block_value(psi, b, u, out):
    """psi_b(u) without its scale and quadratic; `out` is scratch space of u's length."""
    call_prox(psi[4][b], psi[1][b] - psi[0][b], psi[0][b], u, out, psi[5][b], psi[6][b])
    return out[psi[0][b]]


@njit(cache=True, **LEAN, **WITHIN)
def separated_prox(v, M, eta, w, u, slope, B, psi, scale, step):
    """w = argmin 1/2 |w - M v|^2 in the metric 1/M plus eta psi(B'w), where B' only renames and scales features.

    Every row of B' has one entry, every feature stands in one row at most, and M times the square of the
    entry is constant on each unit of psi; so u = B'w has a prox of its own.
    """
    for j in range(w.size):
        w[j] = M[j] * v[j]
    separated_steps(M, eta, B, psi, scale, step)
    separated_step(w, u, B, psi, step)
    separated_slope(v, M, eta, w, slope, B, psi)


@njit(cache=True, **LEAN, **WITHIN)
def separated_steps(M, eta, B, psi, scale, step):
    """The steps of such blocks, on their rows of B'."""
    for b in range(psi[0].size):
        for e in range(psi[0][b], psi[1][b]):
            a = B[2][B[0][e]]
            step[e] = eta * a * a * M[B[1][B[0][e]]] * scale[e]


@njit(cache=True, **LEAN, **WITHIN)
def separated_step(w, u, B, psi, step):
    """w, which is M v before, becomes the prox; u = B'w."""
    for b in range(psi[0].size):
        base, count = B[0][psi[0][b]], psi[1][b] - psi[0][b]
        col, val, u_b = B[1][base : base + count], B[2][base : base + count], u[psi[0][b] : psi[1][b]]
        for e in range(count):
            u_b[e] = val[e] * w[col[e]]
    block_prox(psi, u, step)
    for b in range(psi[0].size):
        base, count = B[0][psi[0][b]], psi[1][b] - psi[0][b]
        col, val, u_b = B[1][base : base + count], B[2][base : base + count], u[psi[0][b] : psi[1][b]]
        for e in range(count):
            w[col[e]] = u_b[e] / val[e]


@njit(cache=True, **LEAN, **WITHIN)
def separated_slope(v, M, eta, w, slope, B, psi):
    """Their subgradients at w, the prox of v."""
    for b in range(psi[0].size):
        for e in range(psi[0][b], psi[1][b]):
            a, j = B[2][B[0][e]], B[1][B[0][e]]
            slope[e] = (v[j] - w[j] / M[j]) / (a * eta)


@apart(void(VECTOR, float64, MAP, _UNITS, boolean[::1], VECTOR), **OWNING)
def _screen(v, eta, B, units, dead, s):
    """Mark the features that are surely zero, zero them in v, and give the units their dual variable s.

    units: first and last row, radius and kind (0: Euclidean, 1: absolute sum) of the dual ball. A unit whose
    part of v lies in its ball is zero in the prox, whatever overlaps it: the others only shrink w towards zero.
    What is zero no longer counts for the units that share it, so the search goes on until nothing changes. That part
    of v is the unit's s, and its features ask nothing of the other units.
    """
    first, last, radius, absolute = units
    flagged = np.zeros(first.size, dtype=np.bool_)
    found = True
    while found:
        found = False
        for g in range(first.size):
            if flagged[g]:
                continue
            total = 0.0
            for e in range(first[g], last[g]):
                part = v[B[1][e]] / B[2][e]
                total += abs(part) if absolute[g] else part * part
            if (total if absolute[g] else math.sqrt(total)) <= eta * radius[g]:
                flagged[g] = found = True
                for e in range(first[g], last[g]):
                    s[e] = v[B[1][e]] / B[2][e]
                    dead[B[1][e]] = True
                    v[B[1][e]] = 0.0


@apart(_WHOLE, **{**OWNING, **KERNEL})
def _structured_prox(v, eta, slope, w, u, solver, rule, info):
    """w = argmin 1/2 |w - v|^2 + eta (psi(B'w) + mu/2 |w|^2): FISTA with restarts on the dual.

    `slope` is the warm start and receives the answer's; `u` receives p. `solver` is (B, psi, scale, ridge, mu,
    c, units, separated, closed, address): blocks in `closed` stand beside others that join features, and need no dual
    variable, for they are simple in w itself; `address` is this kernel's own. `rule` is (tol, level, most): stop when
    the duality gap is at most tol times the objective, or times eta times `level` (the size of an objective of which
    this is a step), or after `most` steps. info receives gap, objective, steps, and 1.0 where it stopped by the gap.
    """
    B, psi, scale, ridge, mu, bound, units, _, closed, _ = solver
    tol, level, most = rule
    size, d = w.size, slope.size
    M, widest = np.empty(size), 0.0
    for j in range(size):
        M[j] = 1.0 / (1.0 + eta * mu[j])
        widest = max(widest, M[j])
    step = np.zeros(d)
    separated_steps(M, eta, B, closed, scale, step)
    point, dead, fixed = v.copy(), np.zeros(size, dtype=np.bool_), np.zeros(d)
    if units[0].size > 0:
        _screen(point, eta, B, units, dead, fixed)
    c, undo, shrink, s = np.ones(d), np.ones(d), np.ones(d), np.zeros(d)
    for b in range(psi[0].size):
        for e in range(psi[0][b], psi[1][b]):
            c[e] = bound[e] * widest
            undo[e] = 1.0 / c[e]
            shrink[e] = 1.0 / (1.0 + c[e] * eta * ridge[e])
            step[e] = c[e] * eta * scale[e] * shrink[e]
            # rows of a screened penalty have one entry
            s[e] = 0.0 if units[0].size > 0 and dead[B[1][e]] else eta * slope[e]
    ahead, new, q, back = s.copy(), np.zeros(d), np.zeros(d), np.empty(size)
    theta, look = 1.0, 0
    info[3] = 0.0
    for iteration in range(most):
        _primal_point(point, M, ahead, back, w, u, B, psi, closed, step)
        apply_map(B, psi, w, q)
        for b in range(psi[0].size):
            here = slice(psi[0][b], psi[1][b])
            _climb(q[here], c[here], ahead[here], shrink[here], u[here])
        block_prox(psi, u, step)
        turn = 0.0
        for b in range(psi[0].size):
            here = slice(psi[0][b], psi[1][b])
            turn += _turn(q[here], u[here], c[here], undo[here], ahead[here], s[here], new[here])
        if iteration == look or iteration == most - 1:
            look += max(5, iteration // 8)
            _primal_point(point, M, new, back, w, u, B, psi, closed, step)
            apply_map(B, psi, w, q)
            info[2] = iteration + 1.0
            if _closed(point, eta, new, w, q, u, scale, ridge, mu, psi, closed, tol, level, info):
                for e in range(d):
                    s[e] = new[e]
                info[3] = 1.0
                break
        if turn > 0.0:
            theta = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * theta * theta))
        for b in range(psi[0].size):
            here = slice(psi[0][b], psi[1][b])
            _extrapolate(new[here], s[here], (theta - 1.0) / following, ahead[here])
        theta = following
    for e in range(d):
        slope[e] = (s[e] + fixed[e]) / eta
    if closed[0].size > 0:
        apply_adjoint(B, psi, s, back)
        for j in range(size):
            back[j] = point[j] - back[j]
        separated_slope(back, M, eta, w, slope, B, closed)


@apart(_WHOLE, **OWNING)
def _separated_prox(v, eta, slope, w, u, solver, rule, info):
    """The same where no feature stands in two blocks: a kernel of its own, for fits need one of the two."""
    B, psi, scale, _, mu, _, _, _, _, _ = solver
    M, step = np.empty(w.size), np.zeros(slope.size)
    for j in range(w.size):
        M[j] = 1.0 / (1.0 + eta * mu[j])
    separated_prox(v, M, eta, w, u, slope, B, psi, scale, step)
    info[0], info[1], info[2], info[3] = 0.0, math.nan, 0.0, 1.0


@functools.cache
def address(separated: bool) -> int:
    """Where it is in this process. It is compiled once, on its own: whatever calls it is specialised for the data."""
    return address_of(_separated_prox if separated else _structured_prox)


@intrinsic
def _call_whole(typingctx, address, v, eta, slope, w, u, solver, rule, info):
    return called_at(_WHOLE)


@njit(cache=True, nogil=True, **KERNEL)
def structured_prox(v, eta, slope, w, u, solver, rule, info):
    """The same for callers from Python, and in kernels: see above."""
    _call_whole(solver[9], v, eta, slope, w, u, solver, rule, info)


@apart(void(*6 * [VECTOR], MAP, BLOCKS, BLOCKS, VECTOR), **HOT)
def _primal_point(point, M, s, back, w, u, B, psi, closed, step):
    """w = the minimiser that belongs to the dual variable s."""
    apply_adjoint(B, psi, s, back)
    for j in range(w.size):
        w[j] = M[j] * (point[j] - back[j])
    if closed[0].size > 0:
        separated_step(w, u, B, closed, step)


@njit(cache=True, **LEAN, **WITHIN)
def _climb(q, c, ahead, shrink, u):
    for e in range(q.size):
        q[e] += c[e] * ahead[e]
        u[e] = q[e] * shrink[e]


@njit(cache=True, **LEAN, **WITHIN)
def _turn(q, u, c, undo, ahead, s, new):
    """new = (q - u) / c; how far the way ahead and the step point in different directions."""
    for e in range(q.size):
        new[e] = (q[e] - u[e]) * undo[e]
    turn = 0.0
    for e in range(q.size):
        turn += c[e] * (ahead[e] - new[e]) * (new[e] - s[e])
    return turn


@njit(cache=True, **LEAN, **WITHIN)
def _extrapolate(new, s, share, ahead):
    """ahead = new + share (new - s); then s = new."""
    for e in range(s.size):
        ahead[e] = new[e] + share * (new[e] - s[e])
        s[e] = new[e]


@apart(boolean(READ, float64, *5 * [VECTOR], VECTOR, VECTOR, BLOCKS, BLOCKS, float64, float64, VECTOR), **OWNING)
def _closed(v, eta, s, w, at, p, scale, ridge, mu, psi, closed, tol, level, info):
    """Whether the duality gap at w, with at = B'w, is small; fills in gap and objective.

    s / eta is a subgradient of psi at p, so psi*(s / eta) needs no formula of its own. Where psi is infinite at B'w
    (a constraint that is not met yet) its value at p stands in, and B'w must come close to p. Closed blocks have none.
    """
    objective, widest = 0.0, 0.0
    for j in range(w.size):
        objective += 0.5 * ((w[j] - v[j]) ** 2 + eta * mu[j] * w[j] * w[j])
        widest = max(widest, abs(v[j]))
    gap, pairing, short = 0.0, 0.0, 0.0
    scratch = np.empty(s.size)
    for b in range(closed[0].size):
        objective += eta * scale[closed[0][b]] * block_value(closed, b, p, scratch)
    for b in range(psi[0].size):
        here, there = block_value(psi, b, at, scratch), block_value(psi, b, p, scratch)
        if not here < math.inf:
            here = there
            for e in range(psi[0][b], psi[1][b]):
                short = max(short, abs(at[e] - p[e]))
        gap += eta * scale[psi[0][b]] * (here - there)
        objective += eta * scale[psi[0][b]] * here
        for e in range(psi[0][b], psi[1][b]):
            gap += 0.5 * eta * ridge[e] * (at[e] * at[e] - p[e] * p[e]) - (at[e] - p[e]) * s[e]
            objective += 0.5 * eta * ridge[e] * at[e] * at[e]
            pairing += abs(at[e] * s[e]) + abs(p[e] * s[e])
    info[0], info[1] = abs(gap), objective
    if short > 0.01 * math.sqrt(tol) * widest:
        return False
    # below the rounding of its own terms a gap says nothing
    return abs(gap) <= max(tol * max(objective, eta * level), 1e-15 * (pairing + objective))
