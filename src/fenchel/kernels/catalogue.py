"""Proximal operators of the catalogue's own penalties, and what their values and gauges need.

The operators have the form of those in ``penalties.py``: u = argmin step psi(z) + 1/2 |z - u|^2 in place, with
`step` constant on each unit. Compiled to C functions on first use.
"""

from __future__ import annotations

import math

import numpy as np
from numba import carray

from .caching import njit

# a division by zero inside a C function must not raise: the error would be lost, and the result with it
_jit = njit(cache=True, error_model="numpy")

# -- nested groups ----------------------------------------------------------------------------------


def nested(d, u, step, params, index):
    """psi(u) = sum over nested ranges of weight |u_g|_2; index: their number m, first (m), last (m), inner ones first.

    The prox of a sum over nested groups is the composition of their proxes from the inside out
    (Jenatton, Mairal, Obozinski and Bach, 2011).
    """
    m = index[0]
    for g in range(m):
        first, last = index[1 + g], index[1 + m + g]
        total = 0.0
        for j in range(first, last):
            total += u[j] * u[j]
        norm = math.sqrt(total)
        threshold = step[first] * params[g]
        factor = 1.0 - threshold / norm if norm > threshold else 0.0
        for j in range(first, last):
            u[j] *= factor


@_jit
def nested_norms(u, first, last):
    """|u_g| of every range."""
    out = np.empty(first.size)
    for g in range(first.size):
        total = 0.0
        for j in range(first[g], last[g]):
            total += u[j] * u[j]
        out[g] = math.sqrt(total)
    return out


@_jit
def nested_gauge(y, first, last, parent, weights):
    """The largest, over the roots, of the smallest t whose prox takes y to zero.

    What is left of y in a group after its own and the inner proxes has norm max(0, N(t) - t weight), N(t) the norm of
    what the inner groups leave: convex and decreasing in t, so that Newton's method climbs to the root from the left.
    """
    m = first.size
    own = np.zeros(m)  # squares of the entries that no inner group holds
    owner = np.empty(y.size, dtype=np.int64)
    for g in range(m - 1, -1, -1):
        owner[first[g] : last[g]] = g
    for j in range(y.size):
        own[owner[j]] += y[j] * y[j]
    left, slope = np.empty(m), np.empty(m)
    gauge, begin = 0.0, 0
    for root in range(m):
        if parent[root] >= 0:
            continue
        t = 0.0
        for _ in range(200):
            for g in range(begin, root + 1):
                left[g], slope[g] = own[g], 0.0
            for g in range(begin, root + 1):
                norm = math.sqrt(left[g])
                drop = slope[g] / norm if norm > 0.0 else 0.0
                rest, fall = norm - t * weights[g], drop - weights[g]
                if g < root and rest > 0.0:
                    left[parent[g]] += rest * rest
                    slope[parent[g]] += rest * fall
            following = t - rest / fall  # of the root, which came last
            if not following > t * (1.0 + 1e-16):
                break
            t = following
        gauge = max(gauge, t)
        begin = root + 1
    return gauge


# -- latent groups ----------------------------------------------------------------------------------


def latent(d, u, step, params, index):
    """psi(u) = min sum over groups of weight |v_g|_2 with sum v_g = u, v_g zero outside its group.

    index: number of parts that share no feature, of groups and of members; bounds of the parts in the groups and in
    the features; bounds of the groups in the members; members.
    """
    in_groups, in_features, bounds, members = _latent_table(carray(index, 6 + 2 * index[0] + index[1] + index[2]))
    values, weights = carray(u, d), carray(params, bounds.size - 1)
    for k in range(index[0]):
        a, b = in_groups[k], in_groups[k + 1]
        first, last = in_features[k], in_features[k + 1]
        if step[first] == 0.0:
            continue
        part, radius, multiplier = values[first:last], np.empty(b - a), np.zeros(b - a)
        for g in range(b - a):
            radius[g] = step[first] * weights[a + g]
        total = latent_multipliers(part, radius, bounds[a : b + 1], members, first, 1.0, multiplier)
        for j in range(part.size):
            part[j] *= total[j] / (1.0 + total[j])


@_jit
def _latent_table(index):
    a = 4 + index[0]
    b = a + 1 + index[0]
    c = b + 1 + index[1]
    return index[3:a], index[a:b], index[b:c], index[c:]


@_jit
def latent_value(u, weights, index):
    """The norm itself: the cost of the best parts v_g, which add up to u."""
    in_groups, in_features, bounds, members = _latent_table(index)
    value, scale = 0.0, 0.0
    for j in range(u.size):
        scale = max(scale, abs(u[j]))
        if math.isnan(u[j]):
            return math.nan
    if not 0.0 < scale < math.inf:
        return scale
    own = np.zeros(u.size)
    for j in range(u.size):
        if abs(u[j]) > 1e-100 * scale:  # squares of less are lost
            own[j] = u[j] / scale
    for part in range(in_groups.size - 1):
        a, b, first = in_groups[part], in_groups[part + 1], in_features[part]
        here, multiplier = own[first : in_features[part + 1]], np.zeros(b - a)
        total = latent_multipliers(here, weights[a:b], bounds[a : b + 1], members, first, 0.0, multiplier)
        for g in range(b - a):
            square = 0.0
            for k in range(bounds[a + g], bounds[a + g + 1]):
                j = members[k] - first
                if here[j] != 0.0:
                    square += (here[j] * multiplier[g] / total[j]) ** 2
            value += weights[a + g] * math.sqrt(square)
    return value * scale


@_jit
def latent_multipliers(u, radius, bounds, members, offset, floor, multiplier):
    """Minimise over the multipliers >= 0 the sum of u_j^2 / (floor + a_j) and of radius_g^2 multiplier_g.

    a_j, which is returned, is the sum of the multipliers of the groups that hold feature j. With floor 1 this is the
    dual of the projection on the balls |u_g| <= radius_g, which is u / (1 + a) (Villa, Rosasco, Mosci and Verri,
    2014); with floor 0 it gives the norm itself: the part of group g in u is u_j multiplier_g / a_j. Exact
    minimisation in one multiplier after another, and Newton steps where these lower the cost or halve the error.
    """
    m = radius.size
    active = np.ones(m, dtype=np.bool_)
    for g in range(m):
        square = 0.0
        for k in range(bounds[g], bounds[g + 1]):
            square += u[members[k] - offset] ** 2
        norm = math.sqrt(square)
        if floor > 0.0:
            # the projection only shrinks, so that a ball which holds u already stays idle
            active[g] = norm > radius[g]
        else:
            multiplier[g] = norm / radius[g]
    total, norms, plain, trial = np.zeros(u.size), np.zeros(m), np.zeros(m), np.zeros(m)
    best, waited = math.inf, 0
    for _ in range(300):
        latent_sums(multiplier, bounds, members, offset, total)
        for g in range(m):
            if active[g]:
                _minimise_one(g, u, radius[g], bounds, members, offset, floor, multiplier, total)
        latent_sums(multiplier, bounds, members, offset, total)
        error = _latent_error(u, radius, bounds, members, offset, floor, multiplier, total, active, norms)
        waited = 0 if error < 0.9 * best else waited + 1
        best = min(best, error)
        if error <= 2e-14 or (waited > 10 and best < 1e-11):
            break
        here = _latent_cost(u, radius, floor, multiplier, total)
        _newton(u, radius, bounds, members, offset, floor, multiplier, total, active, norms, plain, trial)
        share = 1.0
        for attempt in range(4):
            if attempt > 0:
                _to_the_border(multiplier, plain, share, trial)
                share *= 0.3
            latent_sums(trial, bounds, members, offset, total)
            error = _latent_error(u, radius, bounds, members, offset, floor, trial, total, active, norms)
            # near the end costs agree to rounding, and only the error tells
            if error < 0.5 * best or _latent_cost(u, radius, floor, trial, total) < here * (1.0 - 1e-13):
                for g in range(m):
                    multiplier[g] = trial[g]
                break
    latent_sums(multiplier, bounds, members, offset, total)
    return total


@_jit
def _latent_cost(u, radius, floor, multiplier, total):
    """What is minimised."""
    cost = 0.0
    for j in range(u.size):
        if u[j] != 0.0:
            cost += u[j] * u[j] / (floor + total[j]) if floor + total[j] > 0.0 else math.inf
    for g in range(radius.size):
        cost += radius[g] * radius[g] * multiplier[g]
    return cost


@_jit
def latent_sums(multiplier, bounds, members, offset, total):
    """total_j = the sum of the multipliers of the groups that hold j."""
    for j in range(total.size):
        total[j] = 0.0
    for g in range(multiplier.size):
        if multiplier[g] != 0.0:
            for k in range(bounds[g], bounds[g + 1]):
                total[members[k] - offset] += multiplier[g]


@_jit
def _minimise_one(g, u, radius, bounds, members, offset, floor, multiplier, total):
    """The best multiplier of group g, the others fixed: Newton on 1 / norm, which is concave and almost linear."""
    old, value = multiplier[g], multiplier[g]
    for step in range(50):
        square, cube = 0.0, 0.0
        for k in range(bounds[g], bounds[g + 1]):
            j = members[k] - offset
            if u[j] != 0.0:
                bottom = floor + max(total[j] - old, 0.0) + value
                if bottom == 0.0:
                    square = math.inf
                    break
                part = u[j] / bottom
                square += part * part
                cube += part * part / bottom
        if square == 0.0:
            value = 0.0
            break
        if square == math.inf:
            value = 1e-3 * old
            continue
        norm = math.sqrt(square)
        following = max(value + (norm / radius - 1.0) * square / cube, 0.0)
        if abs(following - value) <= 1e-15 * value or (following == 0.0 and value == 0.0):
            break
        # from the right of the root the first step lands on its left; from there on it climbs
        if step > 1 and following < value:
            break
        value = following
    multiplier[g] = value
    for k in range(bounds[g], bounds[g + 1]):
        total[members[k] - offset] += value - old


@_jit
def _latent_error(u, radius, bounds, members, offset, floor, multiplier, total, active, norms):
    """The relative error of the optimality conditions; `norms` receives |u_g / (floor + a)|."""
    error = 0.0
    for g in range(radius.size):
        if not active[g]:
            continue
        square = 0.0
        for k in range(bounds[g], bounds[g + 1]):
            j = members[k] - offset
            if u[j] != 0.0:
                square += (u[j] / (floor + total[j])) ** 2 if floor + total[j] > 0.0 else math.inf
        norms[g] = math.sqrt(square)
        away = norms[g] / radius[g] - 1.0
        error = max(error, abs(away) if multiplier[g] > 0.0 else away)
    return error


@_jit
def _newton(u, radius, bounds, members, offset, floor, multiplier, total, active, norms, plain, held):
    """plain: a Newton step. held: the multipliers after one that holds at zero what it took below.

    Loops in place of array expressions, here and below: they compile in a fraction of the time.
    """
    m = radius.size
    bend, free, scale = np.zeros(u.size), np.zeros(m, dtype=np.bool_), np.ones(m)
    for j in range(u.size):
        if u[j] != 0.0:
            bend[j] = (u[j] / (floor + total[j])) ** 2 / (floor + total[j])
    for g in range(m):
        held[g] = 0.0
        diagonal = 0.0
        for k in range(bounds[g], bounds[g + 1]):
            diagonal += bend[members[k] - offset]
        if active[g] and diagonal > 0.0 and (multiplier[g] > 0.0 or norms[g] > radius[g]):
            free[g], scale[g] = True, diagonal
    _solve(radius, bounds, members, offset, bend, norms, free, scale, held)
    for g in range(m):
        plain[g] = held[g]
    for _ in range(m):
        below = False
        for g in range(m):
            if free[g] and multiplier[g] + held[g] < 0.0:
                free[g], held[g], below = False, -multiplier[g], True
        if not below:
            break
        _solve(radius, bounds, members, offset, bend, norms, free, scale, held)
    for g in range(m):
        held[g] = max(multiplier[g] + held[g], 0.0)


@_jit
def _solve(radius, bounds, members, offset, bend, norms, free, scale, move):
    """Solve for the free moves, the others given, by conjugate gradients that begin at `move`."""
    m = radius.size
    spread, image, rest, ahead = np.empty(bend.size), np.zeros(m), np.zeros(m), np.zeros(m)
    _curve(move, bounds, members, offset, bend, free, spread, image)
    size = 0.0
    for g in range(m):
        if free[g]:
            rest[g] = 0.5 * (norms[g] ** 2 - radius[g] ** 2) - image[g]
            ahead[g] = rest[g] / scale[g]
            size += rest[g] * ahead[g]
    enough = 1e-28 * size
    for _ in range(2 * m + 10):
        _curve(ahead, bounds, members, offset, bend, free, spread, image)
        curve = 0.0
        for g in range(m):
            curve += ahead[g] * image[g]
        if size <= enough or not curve > 0.0:
            break
        before, size = size, 0.0
        for g in range(m):
            move[g] += before / curve * ahead[g]
            rest[g] -= before / curve * image[g]
            size += rest[g] * rest[g] / scale[g]
        for g in range(m):
            ahead[g] = rest[g] / scale[g] + size / before * ahead[g]


@_jit
def _curve(move, bounds, members, offset, bend, free, spread, image):
    """image = the second derivative times `move`, on the free multipliers."""
    latent_sums(move, bounds, members, offset, spread)
    for g in range(move.size):
        image[g] = 0.0
        if free[g]:
            for k in range(bounds[g], bounds[g + 1]):
                j = members[k] - offset
                image[g] += bend[j] * spread[j]


@_jit
def _to_the_border(multiplier, move, share, out):
    """The multipliers after a share of the move, which ends where the first of them becomes zero."""
    length, first = 1.0, -1
    for g in range(move.size):
        if multiplier[g] + length * move[g] < 0.0:
            length, first = multiplier[g] / -move[g], g
    for g in range(move.size):
        out[g] = 0.0 if g == first and share == 1.0 else max(multiplier[g] + share * length * move[g], 0.0)


# -- sorted and exclusive l1 norms ------------------------------------------------------------------


def sorted_l1(d, u, step, params, index):
    """psi(u) = sum of params_k times the k-th largest |u|; params do not increase.

    Isotonic regression of the sorted |u| minus the weights by a stack of blocks (Bogdan et al., 2015); every entry of
    a block receives the same bits.
    """
    size = np.empty(d)
    for j in range(d):
        size[j] = abs(u[j])
    order = np.argsort(-size)
    first, total, level = np.empty(d, dtype=np.int64), np.empty(d), np.empty(d)
    top = -1
    for k in range(d):
        top += 1
        first[top] = k
        total[top] = size[order[k]] - step[0] * params[k]
        level[top] = total[top]
        while top > 0 and level[top] >= level[top - 1]:
            total[top - 1] += total[top]
            top -= 1
            level[top] = total[top] / (k + 1 - first[top])
    for block in range(top + 1):
        last = first[block + 1] if block < top else d
        value = max(level[block], 0.0)
        for k in range(first[block], last):
            j = order[k]
            u[j] = value if u[j] > 0.0 else -value if value > 0.0 else 0.0


def exclusive(d, u, step, params, index):
    """psi(u) = 1/2 sum over groups of weight |u_g|_1^2; index: number of groups, then their bounds.

    Soft threshold at step weight |z_g|_1, where |z_g|_1 follows from how many entries stick out.
    """
    for g in range(index[0]):
        first, last = index[1 + g], index[2 + g]
        factor = step[first] * params[g]
        if factor == 0.0:
            continue
        size = np.empty(last - first)
        for j in range(first, last):
            size[j - first] = abs(u[j])
        size.sort()
        above, threshold = 0.0, 0.0
        for k in range(1, size.size + 1):
            above += size[size.size - k]
            threshold = factor * above / (1.0 + k * factor)
            if k == size.size or size[size.size - k - 1] <= threshold:
                break
        for j in range(first, last):
            if u[j] > threshold:
                u[j] -= threshold
            elif u[j] < -threshold:
                u[j] += threshold
            else:
                u[j] = 0.0
