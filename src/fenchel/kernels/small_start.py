"""Where the fits of a path start: at zero, and for every later alpha where the last two answers point to.

Symbols are those of ``small_set.py``.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, void

from .apart import apart
from .rules import FLAT
from .small_certificate import (
    AT_ZERO,
    CARE,
    COEF,
    DATA,
    HIGH,
    INDEX,
    INTERCEPT,
    LAST_COEF,
    LAST_INTERCEPT,
    LOSS,
    LOW,
    MODELLED,
    POSITION,
    SCORE,
    SIZE,
    WORK,
)  # fmt: skip
from .small_losses import COVARIANCES, LOGISTIC, SQUARED, first_intercept, smoothness
from .small_model import BEFORE, LOWER, STEP, UPPER, VALUE
from .small_set import load, loss_at

_FARTHEST = 2.0  # times the last move: how far the next one is guessed; more leaves the line that answers follow


@apart(void(DATA, WORK))
def start(data, work):
    """No features, and the intercept that suits them."""
    number, row = work.number, work.row
    for i in range(row.shape[1]):
        row[SCORE, i] = row[MODELLED, i] = 0.0
    for j in range(work.feature.shape[1]):
        work.feature[COEF, j] = work.feature[LAST_COEF, j] = 0.0
        work.place[POSITION, j] = -1
    for k in range(work.count.size):
        work.count[k] = 0
    for k in range(number.size):
        number[k] = 0.0
    at_zero = loss_at(data, row, row[SCORE])
    number[CARE] = FLAT * smoothness(data.kind, data.parameter)
    number[AT_ZERO] = 0.0 if data.kind == LOGISTIC else abs(at_zero)
    if data.kind != COVARIANCES:
        begin = first_intercept(data.blas, data.parameter, data.target, data.weight, row[LOW], row[HIGH])
        number[INTERCEPT] = begin if data.intercept else 0.0
        for i in range(data.target.size):
            row[SCORE, i] = number[INTERCEPT]
    number[LOSS] = loss_at(data, row, row[SCORE])


@apart(float64(int64, float64, float64, float64))
def reach_of(kind, alpha, last, last_but_one):
    """How far the answer of this alpha is from the last one, as a multiple of the move between the last two."""
    if not alpha < last < last_but_one < np.inf:
        return 0.0
    if kind in (SQUARED, COVARIANCES):  # between kinks the answer is linear in alpha
        return min((last - alpha) / (last_but_one - last), _FARTHEST)
    return min(np.log(last / alpha) / np.log(last_but_one / last), _FARTHEST)


@apart(float64(DATA, WORK, float64, float64))
def guess(data, work, alpha, reach):
    """The values that the last two answers point to, `reach` times as far again; the intercept's move is returned.
    Coefficients that would cross zero stop short of it."""
    member, number = work.member, work.number
    load(data, work, alpha)
    for k in range(work.count[SIZE]):
        j = work.place[INDEX, k]
        value, last = member[BEFORE, k], work.feature[LAST_COEF, j]
        work.feature[LAST_COEF, j] = value
        if value != 0.0 and last != 0.0 and member[LOWER, k] < value < member[UPPER, k]:
            new = value + reach * (value - last)
            new = new if new * value > 0.0 else 0.1 * value
            member[VALUE, k] = min(max(new, member[LOWER, k]), member[UPPER, k])
        member[STEP, k] = member[VALUE, k] - value
    shift = reach * (number[INTERCEPT] - number[LAST_INTERCEPT]) if data.intercept else 0.0
    number[LAST_INTERCEPT] = number[INTERCEPT]
    return shift
