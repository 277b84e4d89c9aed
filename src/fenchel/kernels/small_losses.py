"""The losses of the compiled loops: sums over all rows, compiled loss by loss and called by address.

A loss has three kernels (see ``apart.py``). A fit compiles those of its own loss alone, and its loops none: they find
the addresses in the vector that has BLAS and LAPACK too.

========== ==================================== =====================================================================
sums       (parameter, t, s, u, slope, curved)  the mean of s_i f(u_i; t_i); s_i f' and s_i f'' are filled in
conjugate  (parameter, t, s, x, scale)          the mean of (s_i f)*(scale x_i), for x in the domain up to rounding
ends       (parameter, t, s, low, high)         the best intercept for w = 0 where there is a formula, else the mean
                                                of the targets (every model has the intercept in it, so that a start
                                                need not be the best); the ends of the domains of (s_i f)* are filled
                                                in: low_i <= 0 <= high_i
========== ==================================== =====================================================================

Weights s have mean 1; rows of weight 0 play no part, whatever their scores.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numba import float64, njit
from numba.extending import intrinsic

from . import lapack, loss_sums
from .apart import INLINE, INSIDE, READ, VECTOR, address_of, apart, called_at

SUMS, CONJUGATE, ENDS = range(3, 6)  # entries of the vector of addresses, after those of lapack.py
SQUARED, LOGISTIC, SMOOTHED_HINGE, SQUARED_HINGE, HUBER, POISSON, COVARIANCES = range(7)
KINDS = {
    "squared": SQUARED, "logistic": LOGISTIC, "smoothed-hinge": SMOOTHED_HINGE, "squared-hinge": SQUARED_HINGE,
    "huber": HUBER, "poisson": POISSON, "covariances": COVARIANCES,
}  # fmt: skip
"""The number of every loss that the compiled loops take, by its name in the registry of losses. COVARIANCES is the
squared loss of which only the Gram matrix of all features is left."""

_SUMS = float64(float64, READ, READ, READ, VECTOR, VECTOR)
_CONJUGATE = float64(float64, READ, READ, READ, float64)
_ENDS = float64(float64, READ, READ, VECTOR, VECTOR)


# -- calls by address ---------------------------------------------------------------------------------


@intrinsic
def _call_sums(typingctx, address, parameter, target, weight, score, slope, curvature):
    return called_at(_SUMS)


@intrinsic
def _call_conjugate(typingctx, address, parameter, target, weight, dual, scale):
    return called_at(_CONJUGATE)


@intrinsic
def _call_ends(typingctx, address, parameter, target, weight, low, high):
    return called_at(_ENDS)


@njit(**INLINE)
def mean_loss(blas, parameter, target, weight, score, slope, curvature):
    """The mean loss at these scores; its slopes and curvatures are filled in."""
    return _call_sums(blas[SUMS], parameter, target, weight, score, slope, curvature)


@njit(**INLINE)
def mean_conjugate(blas, parameter, target, weight, dual, scale):
    """The mean of (s_i f)*(scale x_i)."""
    return _call_conjugate(blas[CONJUGATE], parameter, target, weight, dual, scale)


@njit(**INLINE)
def first_intercept(blas, parameter, target, weight, low, high):
    """An intercept to start from; the ends of the domains are filled in."""
    return _call_ends(blas[ENDS], parameter, target, weight, low, high)


@njit(**INSIDE)
def smoothness(kind, parameter):
    """The largest curvature of a loss that has flat pieces; 0 for the others."""
    if kind == SMOOTHED_HINGE:
        return 1.0 / parameter
    return 2.0 if kind == SQUARED_HINGE else 1.0 if kind == HUBER else 0.0


@functools.cache
def addresses(kind: int) -> Any:
    """BLAS, LAPACK and the kernels of a loss in this process."""
    own = [0, 0, 0] if kind == COVARIANCES else [address_of(kernel) for kernel in _KERNELS[kind]]
    return np.concatenate([lapack.addresses(), np.array(own, np.int64)])


def as_loss(problem: Any) -> Any:
    """What kernels take of a problem whose loss is one of these: addresses, parameter, targets and weights."""
    kind, parameter = problem.small_form
    weight = problem.weight if problem.weight.size else np.ones(problem.n)
    return addresses(KINDS[kind]), parameter, problem.target, weight


# -- the squared loss ---------------------------------------------------------------------------------


@apart(_SUMS)
def _squared(parameter, target, weight, score, slope, curvature):
    total = 0.0
    for i in range(score.size):
        s = weight[i]
        miss = score[i] - target[i] if s > 0.0 else 0.0
        total += 0.5 * s * miss * miss
        slope[i] = s * miss
        curvature[i] = s
    return total / score.size


@apart(_CONJUGATE)
def _quadratic_conjugate(parameter, target, weight, dual, scale):
    """Of the squared loss, and of Huber's, whose domain is another."""
    total = 0.0
    for i in range(dual.size):
        s = weight[i]
        x = scale * dual[i]
        total += x * target[i] + 0.5 * x * x / s if s > 0.0 else 0.0
    return total / dual.size


@apart(_ENDS)
def _no_ends(parameter, target, weight, low, high):
    mean = 0.0
    for i in range(low.size):
        low[i], high[i] = -np.inf, np.inf
        mean += weight[i] * target[i]
    return mean / low.size


# -- the logistic loss --------------------------------------------------------------------------------


@apart(_SUMS)
def _logistic(parameter, target, weight, score, slope, curvature):
    return loss_sums.weighted_logistic(score, target, weight, slope, curvature) / score.size


@apart(_CONJUGATE)
def _logistic_conjugate(parameter, target, weight, dual, scale):
    return loss_sums.logistic_conjugate(dual, target, weight, scale) / dual.size


@njit(**INLINE)
def _one_side(target, weight, size, low, high):
    """Domains from 0 to -t size; the mean of the targets."""
    mean = 0.0
    for i in range(low.size):
        end = weight[i] * size if weight[i] > 0.0 else 0.0
        low[i] = -end if target[i] > 0.0 else 0.0
        high[i] = 0.0 if target[i] > 0.0 else end
        mean += weight[i] * target[i]
    return mean / low.size


@apart(_ENDS)
def _logistic_ends(parameter, target, weight, low, high):
    mean = _one_side(target, weight, 1.0, low, high)
    return np.log(max(1.0 + mean, 1e-12) / max(1.0 - mean, 1e-12))


# -- losses with flat pieces --------------------------------------------------------------------------


@apart(_SUMS)
def _huber(parameter, target, weight, score, slope, curvature):
    total = 0.0
    for i in range(score.size):
        s = weight[i]
        miss = score[i] - target[i] if s > 0.0 else 0.0
        size = abs(miss)
        if size <= parameter:
            total += 0.5 * s * size * size
            slope[i], curvature[i] = s * miss, s
        else:
            total += s * parameter * (size - 0.5 * parameter)
            slope[i], curvature[i] = s * parameter if miss > 0.0 else -s * parameter, 0.0
    return total / score.size


@apart(_ENDS)
def _huber_ends(parameter, target, weight, low, high):
    mean = 0.0
    for i in range(low.size):
        low[i], high[i] = -weight[i] * parameter, weight[i] * parameter
        mean += weight[i] * target[i]
    return mean / low.size


@apart(_SUMS)
def _smoothed_hinge(parameter, target, weight, score, slope, curvature):
    total = 0.0
    for i in range(score.size):
        s = weight[i]
        short = 1.0 - target[i] * score[i] if s > 0.0 else 0.0
        slope[i] = curvature[i] = 0.0
        if short > parameter:  # where w = 0 and the smoothing is 1, all rows are at this end: they count as curved
            total += s * (short - 0.5 * parameter)
            slope[i] = -s * target[i]
        elif short > 0.0:
            total += 0.5 * s * short * short / parameter
            slope[i], curvature[i] = -s * target[i] * short / parameter, s / parameter
    return total / score.size


@apart(_CONJUGATE)
def _smoothed_hinge_conjugate(parameter, target, weight, dual, scale):
    total = 0.0
    for i in range(dual.size):
        s = weight[i]
        x = scale * dual[i]
        total += x * target[i] + 0.5 * parameter * x * x / s if s > 0.0 else 0.0
    return total / dual.size


@apart(_ENDS)
def _smoothed_hinge_ends(parameter, target, weight, low, high):
    return _one_side(target, weight, 1.0, low, high)


@apart(_SUMS)
def _squared_hinge(parameter, target, weight, score, slope, curvature):
    total = 0.0
    for i in range(score.size):
        s = weight[i]
        short = 1.0 - target[i] * score[i] if s > 0.0 else 0.0
        slope[i] = curvature[i] = 0.0
        if short > 0.0:
            total += s * short * short
            slope[i], curvature[i] = -2.0 * s * target[i] * short, 2.0 * s
    return total / score.size


@apart(_CONJUGATE)
def _squared_hinge_conjugate(parameter, target, weight, dual, scale):
    total = 0.0
    for i in range(dual.size):
        s = weight[i]
        x = scale * dual[i]
        total += x * target[i] + 0.25 * x * x / s if s > 0.0 else 0.0
    return total / dual.size


@apart(_ENDS)
def _squared_hinge_ends(parameter, target, weight, low, high):
    return _one_side(target, weight, np.inf, low, high)


# -- Poisson's loss -----------------------------------------------------------------------------------


@apart(_SUMS)
def _poisson(parameter, target, weight, score, slope, curvature):
    total = 0.0
    for i in range(score.size):
        s = weight[i]
        u = score[i] if s > 0.0 else 0.0
        mean = np.exp(u)
        total += s * (mean - target[i] * u)
        slope[i], curvature[i] = s * (mean - target[i]), s * mean
    return total / score.size


@apart(_CONJUGATE)
def _poisson_conjugate(parameter, target, weight, dual, scale):
    total = 0.0
    for i in range(dual.size):
        s = weight[i]
        mean = max(scale * dual[i] / s + target[i], 0.0) if s > 0.0 else 0.0
        total += s * (mean * np.log(max(mean, 1e-300)) - mean)
    return total / dual.size


@apart(_ENDS)
def _poisson_ends(parameter, target, weight, low, high):
    mean = 0.0
    for i in range(low.size):
        low[i], high[i] = -weight[i] * target[i], np.inf
        mean += weight[i] * target[i]
    return np.log(max(mean / low.size, 1e-30))


_KERNELS = {
    SQUARED: (_squared, _quadratic_conjugate, _no_ends),
    LOGISTIC: (_logistic, _logistic_conjugate, _logistic_ends),
    SMOOTHED_HINGE: (_smoothed_hinge, _smoothed_hinge_conjugate, _smoothed_hinge_ends),
    SQUARED_HINGE: (_squared_hinge, _squared_hinge_conjugate, _squared_hinge_ends),
    HUBER: (_huber, _quadratic_conjugate, _huber_ends),
    POISSON: (_poisson, _poisson_conjugate, _poisson_ends),
}
