"""A single fit of a tiny dense problem in one compiled call, all features at once.

The same models, steps and bounds as ``small_path.py``, without working sets, paths, or features that nothing holds at
zero: it compiles in a quarter of the time.

Symbols are those of ``small_model.py``; rows of `row` are those of ``small_certificate.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import boolean, float64, int64, types, void

from ..foundation.numerics import ARMIJO, DIGITS, HALVINGS, NEWTON_STEPS, NOTHING
from . import small_losses as losses
from . import small_model as model
from .apart import LIST, MATRIX, READ, READ2, READ_LIST, VECTOR, apart, door, refer
from .rules import CAREFUL, FLAT, LEAST, PATIENCE, ROUNDS, SLOW
from .small_certificate import (
    AHEAD,
    BEGAN,
    CHANGE,
    CURVATURE,
    DUAL,
    HIGH,
    LOW,
    MODELLED,
    NO_BOUND,
    ROW_ROWS,
    SCORE,
    SLOPE,
    TRIAL,
    Rest,
    balance_intercept,
    best_bound,
    foresee,
)  # fmt: skip
from .small_losses import LOGISTIC, SQUARED, addresses
from .small_model import (
    BEFORE,
    LOWER,
    MEAN_COLUMN,
    MEMBER_ROWS,
    QUADRATIC,
    SLOPES,
    START_SLOPES,
    STEP,
    THRESHOLD,
    TILE,
    UPPER,
    VALUE,
)  # fmt: skip
from .small_set import KEEP_GRAM, set_penalty

_CHEAP = 1 << 19  # multiply-adds of a Gram matrix that take no longer than some calls from Python
B, PRIMAL, DUAL_BOUND, TAKEN = range(4)  # entries of the vector `found`


@apart(types.Tuple((float64, boolean))(int64, float64, READ, MATRIX, float64, boolean))
def _curvatures(kind, parameter, weight, row, care, fresh):
    """Take the present curvatures for the next Gram matrix where they differ much from the last ones; the mean of those
    in use, and whether they are new."""
    n, change, modelled = weight.size, 0.0, 0.0
    floor = max(LEAST * losses.smoothness(kind, parameter), care)
    for i in range(n):
        change += abs(max(row[CURVATURE, i], weight[i] * floor) - row[MODELLED, i])
        modelled += row[MODELLED, i]
    if not fresh and change <= KEEP_GRAM * modelled:
        return modelled / n, False
    modelled = 0.0
    for i in range(n):
        row[MODELLED, i] = max(row[CURVATURE, i], weight[i] * floor)
        modelled += row[MODELLED, i]
    return max(modelled / n, 1e-300), True


@apart(void(READ2, MATRIX, MATRIX, LIST, float64, float64, READ_LIST))
def _minimise(gram, member, factor, support, unit, accuracy, blas):
    """As `small_model.minimise_model`, without the extrapolation that large sets need: it would double the time that
    this takes to compile."""
    for _ in range(NEWTON_STEPS):
        for _turn in range(3):
            largest, changes, _moves = model.descend(gram, member.shape[1], member, unit)
            if largest <= accuracy:
                return
            if changes == 0.0:
                break
        model.newton(gram, member.shape[1], member, factor, support, blas)


@apart(types.UniTuple(float64, 2)(READ_LIST, float64, READ, READ, MATRIX, MATRIX, float64, float64))
def _halve(blas, parameter, target, weight, row, member, start, promise):
    """Go along the step as far as the true objective falls by a part of what was promised; its share, and the loss."""
    n, size, length = target.size, member.shape[1], 1.0
    for _ in range(HALVINGS):
        for i in range(n):
            row[TRIAL, i] = row[SCORE, i] + length * row[CHANGE, i]
        loss = losses.mean_loss(blas, parameter, target, weight, row[TRIAL], row[SLOPE], row[CURVATURE])
        if loss + set_penalty(member, size, length) <= start + ARMIJO * length * promise + 1e-15 * abs(start):
            for i in range(n):
                row[SCORE, i] = row[TRIAL, i]
            return length, loss
        length *= 0.5
    loss = losses.mean_loss(blas, parameter, target, weight, row[SCORE], row[SLOPE], row[CURVATURE])
    return 0.0, loss


@door(
    boolean(READ2, READ, READ, int64, float64, float64, READ, READ, READ, READ, boolean, READ_LIST, float64, MATRIX,
            MATRIX, MATRIX, MATRIX, MATRIX, LIST, VECTOR),
)  # fmt: skip
def _fit(columns, target, weight, kind, parameter, alpha, l1, ridge, lower, upper, intercept, blas, tol, row, member,
         gram, factor, tile, support, found):  # fmt: skip
    """What `fit` does, in rooms that it was given."""
    p, n = columns.shape
    rest = refer(Rest(kind, parameter, target, weight, 0.0, 0.0, blas))
    b, unit = 0.0, 0.0
    for i in range(n):
        row[SCORE, i] = row[MODELLED, i] = 0.0
    loss = losses.mean_loss(blas, parameter, target, weight, row[SCORE], row[SLOPE], row[CURVATURE])
    at_zero = 0.0 if kind == LOGISTIC else abs(loss)
    start = losses.first_intercept(blas, parameter, target, weight, row[LOW], row[HIGH])
    if intercept:
        b = start
        for i in range(n):
            row[SCORE, i] = b
        loss = losses.mean_loss(blas, parameter, target, weight, row[SCORE], row[SLOPE], row[CURVATURE])
    for k in range(p):
        member[VALUE, k] = member[BEFORE, k] = member[STEP, k] = member[MEAN_COLUMN, k] = 0.0
        member[THRESHOLD, k], member[QUADRATIC, k] = alpha * l1[k], alpha * ridge[k]
        member[LOWER, k], member[UPPER, k] = lower[k], upper[k]
        unit = max(unit, member[THRESHOLD, k])
    care = FLAT * losses.smoothness(kind, parameter)
    fresh, best, gap, halved, since, reached = True, NO_BOUND, np.inf, np.inf, 0, False
    for turn in range(ROUNDS):  # of one model each
        before = loss + set_penalty(member, p, 1.0)
        if not np.isfinite(before):
            return False
        pull, steepest = 0.0, 1e-300
        if intercept:
            for i in range(n):
                pull += row[SLOPE, i] / n
        for k in range(p):
            member[BEFORE, k], member[STEP, k] = member[VALUE, k], 0.0
            member[START_SLOPES, k] = model.dot(columns[k], row[SLOPE]) / n
        if turn == 0 or kind != SQUARED:
            mean, made = _curvatures(kind, parameter, weight, row, care, fresh)
            if made:
                model.append_gram(
                    columns, row[MODELLED], tile, gram, member[MEAN_COLUMN], 0, p, mean if intercept else 0.0, blas
                )
        for k in range(p):
            member[SLOPES, k] = member[START_SLOPES, k] - member[MEAN_COLUMN, k] * pull / mean
            steepest = max(steepest, abs(member[SLOPES, k]))
        pen = max(set_penalty(member, p, 0.0), 1e-300)
        wanted = tol * max(abs(before), NOTHING * at_zero)
        # the model of the squared loss is exact, so that it is solved well at once
        accuracy = (
            0.3 * min(wanted, DIGITS * abs(before)) / pen
            if kind == SQUARED
            else 0.03 * max(wanted, 0.01 * min(gap, before)) / pen
        )
        accuracy = min(max(accuracy, 1e-10), 1e-3)
        _minimise(gram, member, factor, support, unit if unit > 0.0 else steepest, accuracy, blas)
        shift, promise = -pull, 0.0
        for k in range(p):
            member[STEP, k] = member[VALUE, k] - member[BEFORE, k]
            shift -= member[MEAN_COLUMN, k] * member[STEP, k]
            promise += member[START_SLOPES, k] * member[STEP, k]
        shift = shift / mean if intercept else 0.0
        promise += set_penalty(member, p, 1.0) - set_penalty(member, p, 0.0) + pull * shift
        for i in range(n):
            row[BEGAN, i] = row[SLOPE, i]
        model.combine(columns, p, member[STEP], shift, row[CHANGE])
        length, loss = _halve(blas, parameter, target, weight, row, member, before, promise)
        b += length * shift
        if length < 1.0:
            for k in range(p):
                member[VALUE, k] = member[BEFORE, k] + length * member[STEP, k]
                member[STEP, k] *= length
        ahead = kind != SQUARED and length == 1.0 and foresee(weight, row)
        dual, source = row[DUAL], row[AHEAD if ahead else SLOPE]
        for i in range(n):
            dual[i] = source[i]
        if intercept:
            balance_intercept(kind, weight, dual)
        for k in range(p):
            member[SLOPES, k] = model.dot(columns[k], dual) / n
        primal = loss + set_penalty(member, p, 1.0)
        wanted, last = tol * max(abs(primal), NOTHING * at_zero), gap
        bound, _ = best_bound(rest, dual, member[SLOPES], alpha, l1, ridge, lower, upper, primal - wanted)
        best = max(best, bound)
        gap = primal - best
        if gap <= wanted or reached:
            # the digits that are left cost a model or two: where these are cheap, that is less than anything else
            found[B], found[PRIMAL], found[DUAL_BOUND], found[TAKEN] = b, primal, best, turn + 1.0
            reached = True
            if gap <= DIGITS * abs(primal) or gap > 0.1 * last or length < 1.0 or n * p * p > _CHEAP:
                return True
        since += 1
        if gap <= 0.5 * halved:
            halved, since = gap, 0
        if since > PATIENCE:
            return reached
        fresh = reached or length < 1.0 or gap > SLOW * last
        if length <= 0.1:
            top = losses.smoothness(kind, parameter)
            care = min(max(10.0 * care, CAREFUL * top), top)
        elif length == 1.0:
            care *= 0.3
    return reached


def fit(
    columns: Any, target: Any, weight: Any, kind: int, parameter: float, alpha: float, l1: Any, ridge: Any, lower: Any,
    upper: Any, fit_intercept: bool, tol: float,
) -> tuple[Any, float, float, Any, float] | None:  # fmt: skip
    """Coefficients with the intercept behind them, both bounds of the optimum, the last x, and the number of models;
    None where that takes another way.

    Parameters are those of :func:`fenchel.kernels.small_path.follow`, for one alpha; `columns` is (p, n), every feature
    has a weight, a quadratic, or no room to move.
    """
    p, n = columns.shape
    row, member, found = np.empty((ROW_ROWS, n)), np.empty((MEMBER_ROWS, p)), np.empty(4)
    done = _fit(
        columns, target, weight, kind, parameter, alpha, l1, ridge, lower, upper, fit_intercept, addresses(kind), tol,
        row, member, np.empty((p, p)), np.empty((p + 2, p + 2)), np.empty((min(TILE, p), n)), np.empty(p + 1, np.int64),
        found,
    )  # fmt: skip
    if not done:
        return None
    w = np.empty(p + 1)
    w[:-1] = member[VALUE]
    w[-1], primal, dual, models = found.tolist()
    return w, primal, dual, row[DUAL], models
