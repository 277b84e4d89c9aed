"""Dual steps of the losses: x = argmin s f*(x / s) + C/2 (x - point)^2 for a block of rows.

With x = s xi this is xi = prox of f*/(C s) at point / s, so each function needs only the plain prox
of its conjugate; a row of weight zero has x = 0. `params` holds the loss's own numbers. On entry x is a guess, such
as the row's present value, for those that have no closed form. The functions are compiled to C functions on first use
(see `compiled.py`), one at a time. Those in closed form have a step for a single row too, which the loops over rows
take without a call: on sparse rows the call costs as much as a third of the visit (measured).
"""

from __future__ import annotations

import math

from .caching import njit
from .rows import INLINE

CLOSED = {"margin": 1, "tube": 2}  # the numbers by which the loops over rows know them


def margin(n, x, point, curvature, target, weight, params):
    """f*(x) = t x + params[0]/2 x^2 on t x in [params[1], 0]: the hinge family."""
    for i in range(n):
        x[i] = margin_step(curvature[i] * point[i], curvature[i], target[i], weight[i], params)


@njit(cache=True, **INLINE)
def margin_step(pull, C, t, s, params):
    """One row of :func:`margin`, with pull = C point."""
    if s == 0.0:
        return 0.0
    return s * t * min(max((pull * t - 1.0) / (C * s + params[0]), params[1]), 0.0)


def tube(n, x, point, curvature, target, weight, params):
    """f*(x) = t x + params[0]/2 x^2 + params[1] |x| on [params[2], params[3]]: the residual family."""
    for i in range(n):
        x[i] = tube_step(curvature[i] * point[i], curvature[i], target[i], weight[i], params)


@njit(cache=True, **INLINE)
def tube_step(pull, C, t, s, params):
    """One row of :func:`tube`, with pull = C point."""
    if s == 0.0:
        return 0.0
    value = pull - t
    if value > params[1]:
        value -= params[1]
    elif value < -params[1]:
        value += params[1]
    else:
        value = 0.0
    return s * min(max(value / (C * s + params[0]), params[2]), params[3])


def logistic(n, x, point, curvature, target, weight, params):
    """f*(x) = a log a + (1 - a) log(1 - a) with a = -t x.

    The minimiser solves z + C (sigmoid(z) - b) = 0 in z = logit(a), with b = -t point: increasing in z,
    root in [C (b - 1), C b]. Halley's method, with bisection where it would leave the bracket. After a step of h
    what is left is of the order of h^3.
    """
    for i in range(n):
        s = weight[i]
        if s == 0.0:
            x[i] = 0.0
            continue
        C = curvature[i] * s
        t = target[i]
        b = -t * point[i] / s
        low, high = max(C * (b - 1.0), -700.0), min(C * b, 36.0)
        if low >= 36.0 or high <= -700.0:
            a = 1.0 / (1.0 + math.exp(-min(max(low, -700.0), 36.0)))
        else:
            a = -t * x[i] / s
            z = math.log(a / (1.0 - a)) if 0.0 < a < 1.0 else 0.0
            if not low <= z <= high:
                z = min(max(z, low), high)
                a = 1.0 / (1.0 + math.exp(-z))
            elif not 0.0 < a < 1.0:
                a = 0.5
            for _ in range(100):
                g = z + C * (a - b)
                if g > 0.0:
                    high = z
                else:
                    low = z
                slope = a * (1.0 - a)
                bent = C * slope
                rise = 1.0 + bent
                new = z - 2.0 * g * rise / (2.0 * rise * rise - g * bent * (1.0 - 2.0 * a))
                if not (low <= new <= high):
                    new = 0.5 * (low + high)
                change = new - z
                z = new
                if abs(change) <= 1e-4:
                    a += slope * change * (1.0 + change * (0.5 - a))  # the sigmoid's series
                    break
                a = 1.0 / (1.0 + math.exp(-z))
        x[i] = -s * t * a


def poisson(n, x, point, curvature, target, weight, params):
    """f*(x) = a log a - a with a = x + t > 0.

    The minimiser solves z + C (exp(z) - b) = 0 in z = log(a), with b = t + point: convex and
    increasing, so that Newton descends monotonically from any point right of the root.
    """
    for i in range(n):
        s = weight[i]
        if s == 0.0:
            x[i] = 0.0
            continue
        C = curvature[i] * s
        z = _log_root(C, target[i] + point[i] / s)
        x[i] = s * (math.exp(z) - target[i])


@njit(cache=True, **INLINE)
def _log_root(C, b):
    """The root of z + C (exp(z) - b)."""
    z = C * b
    if b > 1.0:
        z = min(z, math.log(b))
    elif b > 0.0:
        z = min(z, 0.0)
    for _ in range(200):
        e = C * math.exp(z)
        change = (z + e - C * b) / (1.0 + e)
        z -= change
        if abs(change) <= 1e-15 * (1.0 + abs(z)):
            break
    return z


def gamma(n, x, point, curvature, target, weight, params):
    """f*(x) = a log(a / t) - a, up to a constant, with a = 1 - x > 0.

    The minimiser solves z + C (exp(z) - 1 + point) = log t in z = log(a): Poisson's equation.
    """
    for i in range(n):
        s = weight[i]
        if s == 0.0:
            x[i] = 0.0
            continue
        C = curvature[i] * s
        z = _log_root(C, 1.0 - point[i] / s + math.log(target[i]) / C)
        x[i] = s * (1.0 - math.exp(z))


def tweedie(n, x, point, curvature, target, weight, params):
    """f'(u) = exp(q u) - t exp(-r u) with q, r = params; the minimiser is f'(u) where u + C (f'(u) - point) = 0.

    That function of u is increasing, concave up to u = log(t r^2 / q^2) and convex from there on. Newton's method
    begins right of the root where it is convex there, left of it where it is concave, and is monotone from there.
    """
    q, r = params[0], params[1]
    for i in range(n):
        s = weight[i]
        if s == 0.0:
            x[i] = 0.0
            continue
        C, v, t = curvature[i] * s, point[i] / s, target[i]
        convex = True
        if t > 0.0:
            turn = math.log(t) + 2.0 * math.log(r / q)
            convex = turn + C * (math.exp(q * turn) - t * math.exp(-r * turn) - v) <= 0.0
        over = C * (1.0 - t - v)  # at u = 0
        u = 0.0
        if convex and over < 0.0:  # right of 0 exp(-r u) is at most 1
            u = min(-over, math.log(t + v) / q)
        elif not convex and over > 0.0:  # left of 0 exp(q u) is at most 1
            u = max(C * (v - 1.0), -math.log((1.0 - v) / t) / r)
        for _ in range(200):
            up = math.exp(q * u)
            down = t * math.exp(-r * u) if t > 0.0 else 0.0
            change = (u + C * (up - down - v)) / (1.0 + C * (q * up + r * down))
            u -= change
            if abs(change) <= 1e-15 * (1.0 + abs(u)):
                break
        up = math.exp(q * u)
        down = t * math.exp(-r * u) if t > 0.0 else 0.0
        if C * (q * up + r * down) < 1.0:
            x[i] = s * (up - down)
        else:  # u says it better than its slope
            x[i] = s * (v - u / C if t > 0.0 else max(v - u / C, 0.0))


def negative_binomial(n, x, point, curvature, target, weight, params):
    """f'(u) = (t + theta) sigmoid(u - log theta) - t with theta = params[0]; the minimiser is f'(u) where
    u + C (f'(u) - point) = 0."""
    theta = params[0]
    for i in range(n):
        s = weight[i]
        if s == 0.0:
            x[i] = 0.0
            continue
        t = target[i]
        size, C = t + theta, curvature[i] * s
        z, flipped = _sigmoid_root(C * size, C * (t + point[i] / s) - math.log(theta))
        e = math.exp(z)
        a = e / (1.0 + e)
        if C * size * a < 1.0 + e:
            x[i] = s * (theta - size * a) if flipped else s * (size * a - t)
        else:  # u says it better than its slope
            u = math.log(theta) + (-z if flipped else z)
            x[i] = s * min(max(point[i] / s - u / C, -t), theta)


def binomial(n, x, point, curvature, target, weight, params):
    """f'(u) = sigmoid(u) - t for a proportion t; the minimiser is f'(u) where u + C (f'(u) - point) = 0."""
    for i in range(n):
        s = weight[i]
        if s == 0.0:
            x[i] = 0.0
            continue
        t, C = target[i], curvature[i] * s
        z, flipped = _sigmoid_root(C, C * (t + point[i] / s))
        e = math.exp(z)
        a = e / (1.0 + e)
        if C * a < 1.0 + e:
            x[i] = s * ((1.0 - t) - a) if flipped else s * (a - t)
        else:  # u says it better than its slope
            x[i] = s * min(max(point[i] / s - (-z if flipped else z) / C, -t), 1.0 - t)


@njit(cache=True, **INLINE)
def _sigmoid_root(K, goal):
    """The root of z + K sigmoid(z) = goal, and whether its sign was changed so that it is not positive.

    The same equation holds for -z with K - goal: so z may be taken as negative, where the left side is convex. exp(z)
    in place of sigmoid(z), which is at most that and at least a half of it, gives a start left of the root; the first
    step goes beyond the root, the others come back one by one.
    """
    flipped = goal > 0.5 * K
    if flipped:
        goal = K - goal
    z = _log_root(K, goal / K)
    for _ in range(100):
        e = math.exp(z)
        a = e / (1.0 + e)
        change = (z + K * a - goal) / (1.0 + K * a / (1.0 + e))
        z -= change
        if abs(change) <= 1e-15 * (1.0 + abs(z)):
            break
    return z, flipped
