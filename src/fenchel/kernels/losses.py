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
        b = target[i] + point[i] / s
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
        x[i] = s * (math.exp(z) - target[i])
