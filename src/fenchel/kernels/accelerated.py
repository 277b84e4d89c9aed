"""Accelerated proximal gradients on the data, in one compiled loop.

Steps, backtracking and restarts as Beck and Teboulle (2009) and O'Donoghue and Candès (2015) have them. Data, loss and
prox come as they are stored: the loss by address (``small_losses.py``), the prox by the kind of its arrays, a sweep
along chains, the lattice's dual, or the general one. A step costs two products with the data and nothing of Python.

Symbols

=========  ============================================================================
w, ahead   the point, with `slopes` and curvatures `bends` of its rows, and where it points to
v          the point whose prox w is; STEP is that prox's step
dual       what the prox begins with and leaves, in its own form; `before` the one of the step before
L          curvature of the model, one number
=========  ============================================================================
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, types
from numba.extending import overload

from ..foundation.numerics import BALANCED, ROUNDING
from .apart import HOT, VECTOR, apart, specialised
from .caching import WITHIN, njit
from .chain import chain_prox
from .lattice import lattice_prox
from .products import mean_of, scores_of
from .prox import BLOCKS, MAP, apply_map, block_value, structured_prox
from .rows import KERNEL, LEAN
from .rules import INEXACT, JUMP
from .small_losses import mean_loss

# entries of `numbers`
CURVATURE, THETA, SHARE, MOVED, LOSS, OBJECTIVE, COUNT, PRODUCTS, STATE, ROUNDS, STEP = range(11)
GOING, STILL, FAILED = range(3)  # what STATE tells

_GROW, _SHRINK = 1.5, 0.98  # of L: where a step was too long, at the least, and after every step
# of one step, each shorter by _GROW at the least; by then nothing is left of it
_TRIES = math.ceil(-math.log(ROUNDING) / math.log(_GROW))
_STILL = 1e-18  # of the loss: what a step must promise, or nothing moves any more
_WINDOW = 4  # parts of the way so far: one is what the pace is taken from


def whole_prox(solver, v, eta, dual, w, far, enough, most, info):
    """w = the prox of the whole penalty at v, with the step eta. `far` receives B'w with its zeros in the order of
    `dual`, where the prox knows it."""


@overload(whole_prox, jit_options=KERNEL)
def _whole_prox(solver, v, eta, dual, w, far, enough, most, info):
    if len(solver) == 5:

        def chain(solver, v, eta, dual, w, far, enough, most, info):
            chain_prox(v, eta, solver, w, dual)
            info[2] = 1.0

        return chain
    if len(solver) == 8:

        def lattice(solver, v, eta, dual, w, far, enough, most, info):
            shape = (solver[0].size, w.size)
            lattice_prox(v, eta, dual.reshape(shape), w, far.reshape(shape), solver, (enough, most), info)

        return lattice

    def general(solver, v, eta, dual, w, far, enough, most, info):
        structured_prox(v, eta, dual, w, far, solver, (1e-15, enough / (eta * 1e-15), most), info)

    return general


@specialised(nogil=True, **KERNEL)
def accelerated_steps(data, loss, solver, penalty, point, numbers, trace, leads, rounds, wanted, most):
    """Steps until so many are made, or the objective seems to be within `wanted` of the least.

    `loss` is (addresses, parameter, target, weight); `penalty` (B, psi, scale, ridge, quadratic) as in ``prox.py``.
    `leads`: whether the dual variables go ahead as well. `trace` receives the least objective after every step.
    """
    addresses, parameter, target, weight = loss
    w, ahead, scores, ahead_scores, gradient, slopes, bends, dual, before, far, v = point
    n, size = scores.size, w.size
    new, new_scores, start = np.empty(size), np.empty(n), np.empty(dual.size)
    x, h, at, scratch = np.empty(n), np.empty(n), np.zeros(penalty[2].size), np.empty(penalty[2].size)
    info = np.zeros(4)
    L, theta, share, moved = numbers[CURVATURE], numbers[THETA], numbers[SHARE], numbers[MOVED]
    for _ in range(most):
        count = int(numbers[COUNT])
        value = mean_loss(addresses, parameter, target, weight, ahead_scores, x, h)
        mean_of(data, x, gradient)
        for e in range(dual.size):
            start[e] = dual[e] + share * (dual[e] - before[e]) if leads else dual[e]
            before[e] = dual[e]
        reached, square, failed, still = value, 0.0, True, False
        for _ in range(_TRIES):
            length = 0.0
            for j in range(size):
                v[j] = ahead[j] - gradient[j] / L
                length += v[j] * v[j]
            enough = max(INEXACT * (1e-4 * length if moved < 0.0 else moved), 1e-300)
            for e in range(dual.size):
                dual[e] = start[e]
            whole_prox(solver, v, 1.0 / L, dual, new, far, enough, rounds, info)
            numbers[ROUNDS] += info[2]
            scores_of(data, new, new_scores)
            numbers[PRODUCTS] += 1.0
            reached = mean_loss(addresses, parameter, target, weight, new_scores, slopes, bends)
            square, along = 0.0, 0.0
            for j in range(size):
                square += (new[j] - ahead[j]) ** 2
                along += gradient[j] * (new[j] - ahead[j])
            rise = reached - value - along
            still = L * square <= 100.0 * BALANCED * abs(value)  # then the rise says nothing
            if still or rise <= 0.5 * L * square * (1.0 + 1e-9) + BALANCED * abs(value):
                failed = False
                break
            grown = 2.0 * rise / (L * square) if square > 0.0 else JUMP
            L *= min(max(_GROW, grown if grown == grown else JUMP), JUMP)
        if failed:
            numbers[STATE] = FAILED
            break
        numbers[PRODUCTS] += 1.0
        numbers[COUNT], numbers[STEP] = count + 1, 1.0 / L
        moved, turn = 0.0, 0.0
        for j in range(size):
            moved += (new[j] - w[j]) ** 2
            turn += (ahead[j] - new[j]) * (new[j] - w[j])
        if turn > 0.0:
            theta = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * theta * theta))
        share, theta = (theta - 1.0) / following, following
        _go(new, w, ahead, share)
        _go(new_scores, scores, ahead_scores, share)
        L *= _SHRINK
        objective = reached + _penalty(penalty, w, at, scratch)
        numbers[LOSS], numbers[OBJECTIVE] = reached, objective
        trace[count] = objective if count == 0 else min(objective, trace[count - 1])
        if L * square <= _STILL * abs(value):
            numbers[STATE] = STILL
            break
        if left(trace, count + 1) <= wanted or count + 1 == trace.size:
            break
    numbers[CURVATURE], numbers[THETA], numbers[SHARE], numbers[MOVED] = L, theta, share, moved


@njit(cache=True, **LEAN, **WITHIN)
def _go(new, at, ahead, share):
    """ahead = new + share (new - at); then at = new."""
    for j in range(at.size):
        ahead[j] = new[j] + share * (new[j] - at[j])
        at[j] = new[j]


@njit(cache=True, **LEAN)
def left(trace, count):
    """What seems to be left of the objective after so many steps: infinite where nothing can be said.

    Two stretches of the last half of the way, of equal length, brought `first` and then `second`; at such a pace what
    is left is the sum of a geometric series.
    """
    m = max(count // _WINDOW, 2)
    if count < 2 * m + 1:
        return np.inf
    first = trace[count - 1 - 2 * m] - trace[count - 1 - m]
    second = trace[count - 1 - m] - trace[count - 1]
    if not 0.0 < second < first:
        return np.inf
    return second * second / (first - second)


@apart(float64(types.Tuple((MAP, BLOCKS, VECTOR, VECTOR, VECTOR)), VECTOR, VECTOR, VECTOR), **HOT)
def _penalty(penalty, w, at, scratch):
    B, psi, scale, ridge, quadratic = penalty
    total = 0.0
    for j in range(w.size):
        total += 0.5 * quadratic[j] * w[j] * w[j]
    apply_map(B, psi, w, at)
    for b in range(psi[0].size):
        total += scale[psi[0][b]] * block_value(psi, b, at, scratch)
        for e in range(psi[0][b], psi[1][b]):
            total += 0.5 * ridge[e] * at[e] * at[e]
    return total
