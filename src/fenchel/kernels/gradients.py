"""Gradients of the losses: x = s f'(score; t) for a block of rows.

They have the signature of the dual steps in ``losses.py`` (the curvature is not used), so that the kernels
call them by address in the same way, and the same `params`. At a kink any subgradient will do; these are
the ones of :meth:`fenchel.Loss.gradient`.
"""

from __future__ import annotations

import math


def margin(n, x, score, curvature, target, weight, params):
    """f*(x) = t x + params[0]/2 x^2 on t x in [params[1], 0]: the hinge family."""
    for i in range(n):
        short = target[i] * score[i] - 1.0
        kink = params[1] if short < 0.0 else 0.0
        slope = max(min(short / params[0], 0.0), params[1]) if params[0] > 0.0 else kink
        x[i] = weight[i] * target[i] * slope


def tube(n, x, score, curvature, target, weight, params):
    """f*(x) = t x + params[0]/2 x^2 + params[1] |x| on [params[2], params[3]]: the residual family."""
    for i in range(n):
        over = score[i] - target[i]
        side = 1.0 if over > params[1] else -1.0 if over < -params[1] else 0.0
        if params[0] > 0.0:
            slope = max(min((over - side * params[1]) * abs(side) / params[0], params[3]), params[2])
        else:
            slope = params[3] if side > 0.0 else params[2] if side < 0.0 else 0.0
        x[i] = weight[i] * slope


def logistic(n, x, score, curvature, target, weight, params):
    """f(u) = log(1 + exp(-t u)); the exponential never overflows."""
    for i in range(n):
        margin = target[i] * score[i]
        small = math.exp(-abs(margin))
        share = small / (1.0 + small) if margin > 0.0 else 1.0 / (1.0 + small)
        x[i] = -weight[i] * target[i] * share


def poisson(n, x, score, curvature, target, weight, params):
    """f(u) = exp(u) - t u."""
    for i in range(n):
        x[i] = weight[i] * (math.exp(score[i]) - target[i]) if weight[i] > 0.0 else 0.0


def gamma(n, x, score, curvature, target, weight, params):
    """f(u) = u + t exp(-u), up to a constant."""
    for i in range(n):
        x[i] = -weight[i] * math.expm1(math.log(target[i]) - score[i]) if weight[i] > 0.0 else 0.0


def tweedie(n, x, score, curvature, target, weight, params):
    """f(u) = exp(q u) / q + t exp(-r u) / r, up to a constant, with q, r = params."""
    for i in range(n):
        x[i] = 0.0
        if weight[i] > 0.0:
            down = target[i] * math.exp(-params[1] * score[i]) if target[i] > 0.0 else 0.0
            x[i] = weight[i] * (math.exp(params[0] * score[i]) - down)


def negative_binomial(n, x, score, curvature, target, weight, params):
    """f(u) = (t + theta) log(1 + exp(u) / theta) - t u, up to a constant, with theta = params[0]."""
    shift = math.log(params[0])
    for i in range(n):
        z = score[i] - shift
        small = math.exp(-abs(z))
        share = 1.0 / (1.0 + small) if z > 0.0 else small / (1.0 + small)
        x[i] = weight[i] * ((target[i] + params[0]) * share - target[i])


def binomial(n, x, score, curvature, target, weight, params):
    """f(u) = log(1 + exp(u)) - t u, up to a constant, for a proportion t."""
    for i in range(n):
        small = math.exp(-abs(score[i]))
        share, rest = 1.0 / (1.0 + small), small / (1.0 + small)
        if score[i] < 0.0:
            share, rest = rest, share
        x[i] = weight[i] * ((1.0 - target[i]) * share - target[i] * rest)
