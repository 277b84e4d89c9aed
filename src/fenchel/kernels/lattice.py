"""The proximal operator of a penalty on the edges of a chain or grid.

The same method as in ``prox.py`` (FISTA with restarts on the dual; v, w, M, eta and mu as there), for norms of
differences and a weighted l1 norm of the features beside them. The edges of one direction join features j and
j + shift, so that all arrays are read in order and every loop runs in vectors: the general kernel, which looks up the
ends of every edge, takes some three times as long.

Symbols

=========  ============================================================================
s          dual variable, s[a, j] for the edge in direction a from feature j; zero where there is none
low, high  what the edge multiplies its two features by, likewise
radius     of the balls; together: whether the edges from a feature share one, that of the first direction
bound      diag(bound) >= B'B, constant on each ball
lone       threshold of a feature
=========  ============================================================================
"""

from __future__ import annotations

import math

import numpy as np

from .caching import WITHIN, njit
from .rows import KERNEL, LEAN


@njit(cache=True, nogil=True, **KERNEL)
def lattice_prox(v, eta, s, w, far, lattice, rule, info):
    """w = argmin 1/2 |w - v|^2 + eta (sum of radius |B'w| over the balls + lone |w| + mu/2 w^2).

    s is the warm start and receives the answer's dual variable, both divided by eta; `far` receives the prox point of
    every edge, with exact zeros. `rule` is (enough, most): stop when the duality gap is at most so much, or after so
    many steps. info[0], info[2] and info[3] receive gap, steps, and 1.0 where it stopped by the gap.
    """
    shift, low, high, radius, together, bound, lone, mu = lattice
    enough, most = rule
    M, threshold, back, widest = np.empty_like(w), np.empty_like(w), np.empty_like(w), 0.0
    for j in range(w.size):
        M[j] = 1.0 / (1.0 + eta * mu[j])
        threshold[j] = eta * M[j] * lone[j]
        widest = max(widest, M[j])
    ahead, new, factor = np.empty_like(s), np.empty_like(s), np.empty_like(s)
    ball, c, undo = np.empty_like(s), np.empty_like(s), np.empty_like(s)
    for a in range(shift.size):  # expressions of whole arrays take longer to compile
        for e in range(s.shape[1]):
            s[a, e] = ahead[a, e] = eta * s[a, e]
            ball[a, e], c[a, e] = eta * radius[a, e], widest * bound[a, e]
            undo[a, e] = 1.0 / c[a, e]
    theta, look = 1.0, 4
    info[3] = 0.0
    for iteration in range(most):
        _primal(v, M, threshold, shift, low, high, ahead, back, w)
        _climb(shift, low, high, w, ahead, undo, new)
        _factors(new, ball, together, factor)
        turn = 0.0
        for a in range(shift.size):
            turn += _shrink(new[a], factor[0 if together else a], ahead[a], s[a], c[a])
        last = iteration == most - 1
        if iteration == look or last:
            look += max(10, iteration // 4)
            for a in range(shift.size):
                _beyond(new[a], factor[0 if together else a], c[a], far[a])
            _primal(v, M, threshold, shift, low, high, new, back, w)
            info[0] = _gap(shift, low, high, w, new, ball, together, factor)
            info[2] = iteration + 1.0
            info[3] = 1.0 if info[0] <= enough else 0.0
            if last or info[0] <= enough:
                for a in range(shift.size):
                    for e in range(s.shape[1]):
                        s[a, e] = new[a, e]
                break
        if turn > 0.0:
            theta = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * theta * theta))
        for a in range(shift.size):
            _extrapolate(new[a], s[a], (theta - 1.0) / following, ahead[a])
        theta = following
    for a in range(shift.size):
        for e in range(s.shape[1]):
            s[a, e] *= 1.0 / eta


@njit(cache=True, **LEAN, **WITHIN)
def _primal(v, M, threshold, shift, low, high, s, back, w):
    """w = the minimiser that belongs to s; back = v - B s."""
    for j in range(w.size):
        back[j] = v[j]
    for a in range(shift.size):
        _take(back, low[a], s[a])
        _take(back[shift[a] :], high[a], s[a])
    for j in range(w.size):
        value = M[j] * back[j]
        above, below = value - threshold[j], value + threshold[j]
        w[j] = (above if above > 0.0 else 0.0) + (below if below < 0.0 else 0.0)


@njit(cache=True, **LEAN, **WITHIN)
def _take(back, share, s):
    for j in range(back.size):
        back[j] -= share[j] * s[j]


@njit(cache=True, **LEAN, **WITHIN)
def _climb(shift, low, high, w, ahead, undo, new):
    """new = the way ahead after a gradient step."""
    for a in range(shift.size):
        _difference(low[a], high[a], w, w[shift[a] :], new[a])
        _add_scaled(new[a], undo[a], ahead[a])


@njit(cache=True, **LEAN, **WITHIN)
def _difference(low, high, w, later, out):
    """B'w, for the edges of one direction."""
    for j in range(later.size):
        out[j] = low[j] * w[j] + high[j] * later[j]
    out[later.size :] = 0.0


@njit(cache=True, **LEAN, **WITHIN)
def _add_scaled(new, undo, ahead):
    for j in range(new.size):
        new[j] = ahead[j] + undo[j] * new[j]


@njit(cache=True, **LEAN, **WITHIN)
def _factors(new, ball, together, factor):
    """What the projection on the balls multiplies by: exactly 1 inside."""
    _lengths(new, together, factor)
    for a in range(1 if together else new.shape[0]):
        _ratio(ball[a], factor[a])


@njit(cache=True, **LEAN, **WITHIN)
def _ratio(ball, size):
    for j in range(ball.size):
        size[j] = ball[j] / (size[j] if size[j] > ball[j] else ball[j])


@njit(cache=True, **LEAN, **WITHIN)
def _lengths(s, together, out):
    """The norms of s on the balls."""
    if not together:
        for a in range(s.shape[0]):
            _absolute(s[a], out[a])
        return
    out[0][:] = 0.0
    for a in range(s.shape[0]):
        _add_squares(s[a], out[0])
    _roots(out[0])


@njit(cache=True, **LEAN, **WITHIN)
def _absolute(s, out):
    for j in range(s.size):
        out[j] = abs(s[j])


@njit(cache=True, **LEAN, **WITHIN)
def _add_squares(s, out):
    for j in range(s.size):
        out[j] += s[j] * s[j]


@njit(cache=True, **LEAN, **WITHIN)
def _roots(out):
    for j in range(out.size):
        out[j] = math.sqrt(out[j])


@njit(cache=True, **LEAN, **WITHIN)
def _shrink(new, factor, ahead, s, c):
    """new is projected; how far the way ahead and the step point in different directions."""
    turn = 0.0
    for j in range(new.size):
        new[j] *= factor[j]
        turn += c[j] * (ahead[j] - new[j]) * (new[j] - s[j])
    return turn


@njit(cache=True, **LEAN, **WITHIN)
def _beyond(new, factor, c, far):
    """far = c times what the projection has taken away."""
    for j in range(new.size):
        far[j] = c[j] * new[j] * (1.0 / factor[j] - 1.0)


@njit(cache=True, **LEAN, **WITHIN)
def _extrapolate(new, s, share, ahead):
    """ahead = new + share (new - s); then s = new."""
    for j in range(s.size):
        ahead[j] = new[j] + share * (new[j] - s[j])
        s[j] = new[j]


@njit(cache=True, **KERNEL, **WITHIN)
def _gap(shift, low, high, w, s, ball, together, factor):
    """The duality gap at w, the minimiser that belongs to s: what the norms of B'w are above its product with s."""
    at = np.empty_like(s)
    product = total = 0.0
    for a in range(shift.size):
        _difference(low[a], high[a], w, w[shift[a] :], at[a])
        product += _inner(at[a], s[a])
    _lengths(at, together, factor)
    for a in range(1 if together else shift.size):
        total += _inner(factor[a], ball[a])
    return abs(total - product)


@njit(cache=True, **LEAN, **WITHIN)
def _inner(one, two):
    total = 0.0
    for j in range(one.size):
        total += one[j] * two[j]
    return total
