"""The logistic loss of many rows at once: its sum, slopes and curvatures in one sweep, and the sum of its conjugate.

Exponentials and logarithms are series without branches, which the compiler turns into vector instructions: four times
as fast as the library's functions.

- exp(a) is 2^k exp(r) with |r| <= log(2)/2, and exp(r) its Taylor series to the twelfth power (error below 2e-16).
- log(1 + e) is 2 artanh(e / (2 + e)) by its series, with an argument of at most 1/3 (error below 1e-16).
- log(s) is k log(2) + 2 artanh((m - 1) / (m + 1)) with s = 2^k m and m from sqrt(1/2) to sqrt(2), so that the argument
  is at most 0.172.

They need the bits of numbers. Arrays that are seen as numbers here and as bits there would need room, and the compiler
could not keep them in registers; `_bits` and `_number` cost no instruction.
"""

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .caching import WITHIN, njit
from .rows import KERNEL, LEAN

_LOG2_HIGH, _LOG2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
_STORED = np.finfo(float).nmant  # bits of a number behind the leading one: 52
_SHIFT = 1.5 * 2.0**_STORED  # added to a number, it leaves the nearest whole number in the last bits
_FACTORIALS = tuple(1.0 / math.factorial(k) for k in range(13))
_ODD = tuple(1.0 / k for k in range(1, 35, 2))
_BIAS = 1023  # of the exponent in the bits of a number
_MANTISSA = (1 << _STORED) - 1
_ROOT_BITS = int(np.float64(math.sqrt(0.5)).view(np.int64))
_WHOLE_BITS = (_BIAS + _STORED) << _STORED  # of 2^52, in whose last bits a whole number may be put
_WHOLE = 2.0**_STORED + _BIAS  # 2^52, and the bias of the exponent that was put there

_INSIDE = {**LEAN, **WITHIN, "cache": True}
# Sums over rows may be reordered, but what undoes a rounding on purpose must stay as it is written.
_EXACT = {**_INSIDE, "fastmath": {"contract", "nsz"}, "forceinline": True}


@intrinsic
def _bits(typingctx, number):
    """The 64 bits of a number."""
    return types.int64(types.float64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.IntType(64))


@intrinsic
def _number(typingctx, bits):
    """The number that has these bits."""
    return types.float64(types.int64), lambda context, builder, sig, args: builder.bitcast(args[0], ir.DoubleType())


# -- rows ---------------------------------------------------------------------------------------------

# Few functions, each of several lines: every one that is compiled by itself costs a twentieth of a second. Series are
# summed in parts, so that their terms need not wait for one another where rows are few.


@njit(**_EXACT)
def _logistic_row(u, t):
    """log(1 + exp(-t u)), its slope and its curvature."""
    m = u * t
    a = -700.0 if abs(m) > 700.0 else -abs(m)  # written so that what is not a number stays so
    shifted = a * 1.4426950408889634 + _SHIFT
    k = shifted - _SHIFT
    r = (a - k * _LOG2_HIGH) - k * _LOG2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (_FACTORIALS[2] + _FACTORIALS[3] * r) + r2 * (_FACTORIALS[4] + _FACTORIALS[5] * r)
    middle = (_FACTORIALS[6] + _FACTORIALS[7] * r) + r2 * (_FACTORIALS[8] + _FACTORIALS[9] * r)
    high = (_FACTORIALS[10] + _FACTORIALS[11] * r) + r2 * _FACTORIALS[12]
    e = 1.0 + (r + r2 * (low + r4 * (middle + r4 * high)))
    e *= _number((_bits(shifted) + _BIAS) << _STORED)  # only the last bits of the sum stay
    d = 1.0 / (1.0 + e)
    z = e / (2.0 + e)
    y = z * z
    y2 = y * y
    y4 = y2 * y2
    low = (_ODD[1] + _ODD[2] * y) + y2 * (_ODD[3] + _ODD[4] * y)
    low += y4 * ((_ODD[5] + _ODD[6] * y) + y2 * (_ODD[7] + _ODD[8] * y))
    high = (_ODD[9] + _ODD[10] * y) + y2 * (_ODD[11] + _ODD[12] * y)
    high += y4 * ((_ODD[13] + _ODD[14] * y) + y2 * (_ODD[15] + _ODD[16] * y))
    z += z
    value = z + z * y * (low + y4 * y4 * high)
    return value + (-m if m < 0.0 else 0.0), -t * d * (1.0 if m < 0.0 else e), e * d * d


@njit(**_EXACT)
def _log(s):
    """log(s), where s is at least 1e-300; smaller ones count as that."""
    # the exponent is one less where the mantissa is below sqrt(2)'s: this borrows from it
    moved = _bits(s if s > 1e-300 else 1e-300) - _ROOT_BITS + (_BIAS << _STORED)
    k = _number(((moved >> _STORED) & 0x7FF) | _WHOLE_BITS) - _WHOLE
    m = _number((moved & _MANTISSA) + _ROOT_BITS)
    z = (m - 1.0) / (m + 1.0)
    y = z * z
    y2 = y * y
    y4 = y2 * y2
    low = (_ODD[1] + _ODD[2] * y) + y2 * (_ODD[3] + _ODD[4] * y)
    high = (_ODD[5] + _ODD[6] * y) + y2 * (_ODD[7] + _ODD[8] * y) + y4 * (_ODD[9] + _ODD[10] * y)
    series = low + y4 * high
    z += z
    return k * _LOG2_HIGH + (z + (z * y * series + k * _LOG2_LOW))


@njit(**_EXACT)
def _entropy(share):
    """s log(s) + (1 - s) log(1 - s) of a share, brought into [0, 1]; exactly 0 at both ends."""
    share = 0.0 if share < 0.0 else 1.0 if share > 1.0 else share
    rest = 1.0 - share
    # the rounding of the rest of a tiny share is as large as the share: to first order it counts here
    lost = (1.0 - rest) - share
    log_rest = _log(rest)
    return share * _log(share) + (rest * log_rest + lost * (1.0 + log_rest))


# -- sums ---------------------------------------------------------------------------------------------


@njit(cache=True, **KERNEL)
def logistic(score, target, weight, slope, curvature):
    """The weighted sum of log(1 + exp(-t u)), with weighted slopes and curvatures; no weights count as ones."""
    if weight.size:
        return weighted_logistic(score, target, weight, slope, curvature)
    total = 0.0
    for i in range(score.size):
        value, slope[i], curvature[i] = _logistic_row(score[i], target[i])
        total += value
    return total


# Rows of weight 0 play no part, whatever their scores: these count as 0, because infinity times 0 would spoil the sum.
# To choose between terms instead would keep the compiler from seeing a sum.


@njit(**_INSIDE)
def weighted_logistic(score, target, weight, slope, curvature):
    total = 0.0
    for i in range(score.size):
        s = weight[i]
        value, first, second = _logistic_row(score[i] if s > 0.0 else 0.0, target[i])
        total += s * value
        slope[i] = s * first
        curvature[i] = s * second
    return total


@njit(**_INSIDE)
def logistic_conjugate(dual, target, weight, scale):
    """The sum of (s_i f)*(scale x_i) for the logistic loss, of x in its domain up to rounding."""
    total = 0.0
    for i in range(dual.size):
        s = weight[i]
        x = scale * dual[i] / s if s > 0.0 else 0.0
        total += s * _entropy(-x * target[i])
    return total
