"""The fit of a working set of groups: models by block descent and Newton's method, steps on the true objective.

Symbols are those of ``small_set.py``; rows of `row` are those of ``small_certificate.py``.
"""

from __future__ import annotations

import math

import numpy as np
from numba import boolean, float64, int64, types, void

from ..foundation.numerics import ARMIJO, HALVINGS, NEWTON_STEPS, NOTHING
from . import block_descent, unit_groups
from . import small_losses as losses
from .apart import HOT, LIST, MATRIX, READ, READ2, READ_LIST, VECTOR, apart
from .group_columns import columns_pay, make_blocks, solve_on_columns
from .group_products import append_rows, combine_set, dot_with
from .group_repair import repair
from .group_set import (
    BEFORE,
    BLOCKED,
    CARE,
    DATA,
    FACTORED,
    FORESEEN,
    IN_GRAM,
    INTERCEPT,
    L1,
    LOSS,
    LOWER,
    MEAN_COLUMN,
    MEAN_CURVATURE,
    MISS,
    MOVE,
    RENT,
    REPAIR,
    SIZE,
    SLOPES,
    SPACE,
    START_SLOPES,
    STEP,
    TIGHT,
    UNITS,
    UPPER,
    VALUE,
    WORK,
    load,
    set_penalty,
    store,
)  # fmt: skip
from .lapack import POTRF, POTRS, factorise, solve_factored
from .rules import CAREFUL, FACTOR, LEAST, PATIENCE, ROUNDS, SLOW
from .small_certificate import AHEAD, BEGAN, CHANGE, CURVATURE, HIGH, LOW, MODELLED, SCORE, SLOPE, TRIAL, foresee
from .small_losses import COVARIANCES, SQUARED
from .small_set import KEEP_GRAM
from .unit_groups import gap_of_groups, unit_share


@apart(float64(DATA, MATRIX, READ))
def loss_at(data, row, score):
    """The mean loss at these scores, which may be a row of `row`; its slopes and curvatures are kept there."""
    return losses.mean_loss(data.blas, data.parameter, data.target, data.weight, score, row[SLOPE], row[CURVATURE])


# what Python calls too, for the arrays here
_settle = apart(
    types.UniTuple(float64, 2)(
        READ2, int64, VECTOR, VECTOR, READ, READ, READ, READ_LIST, READ, VECTOR, boolean[::1], READ_LIST, VECTOR, LIST,
        VECTOR, VECTOR, MATRIX, MATRIX, MATRIX, float64, int64,
    ), **HOT
)(block_descent.settle.py_func)  # fmt: skip
_block_bounds = apart(void(READ2, READ_LIST, VECTOR))(unit_groups.block_bounds.py_func)
_movable = apart(int64(READ, READ, READ, READ, READ_LIST, READ, LIST))(unit_groups.movable.py_func)
_newton_system = apart(
    float64(READ2, READ, READ, READ, READ_LIST, READ, READ_LIST, MATRIX, VECTOR, LIST)
)(unit_groups.newton_system.py_func)  # fmt: skip
_try_step = apart(
    float64(READ2, int64, READ, READ, READ, READ, READ, READ_LIST, READ, READ_LIST, READ, float64, VECTOR, VECTOR)
)(unit_groups.try_step.py_func)  # fmt: skip


@apart(void(WORK))
def bound_blocks(work):
    """The last rows of the set's Gram matrix have been made: bounds of their blocks, of which nothing else is known."""
    known, units = 0, work.count[UNITS]
    work.count[FACTORED] = min(work.count[FACTORED], work.count[IN_GRAM])
    while known < units and work.first[known] < work.count[IN_GRAM]:
        known += 1
    if known < units:
        _block_bounds(work.gram, work.first[known : units + 1], work.bend[known:])
    for u in range(known, units):
        work.ready[u] = 0
    work.count[IN_GRAM] = work.count[SIZE]


@apart(void(DATA, WORK, boolean))
def _refresh(data, work, fresh):
    """Take the present curvatures for the next model, if they have changed so much that the last ones will not do."""
    row, n, change, modelled = work.row, data.target.size, 0.0, 0.0
    floor = max(LEAST * losses.smoothness(data.kind, data.parameter), work.number[CARE])
    for i in range(n):
        change += abs(max(row[CURVATURE, i], data.weight[i] * floor) - row[MODELLED, i])
        modelled += row[MODELLED, i]
    if fresh or change > KEEP_GRAM * modelled:
        mean = 0.0
        for i in range(n):
            row[MODELLED, i] = max(row[CURVATURE, i], data.weight[i] * floor)
            mean += row[MODELLED, i] / n
        work.number[MEAN_CURVATURE] = max(mean, 1e-300)
        work.count[IN_GRAM] = work.count[BLOCKED] = 0


@apart(void(DATA, WORK))
def _extend_gram(data, work):
    """The rows of the set's Gram matrix that are missing, and bounds of its blocks."""
    append_rows(data, work)
    bound_blocks(work)


@apart(float64(DATA, WORK, int64, int64))
def _newton(data, work, m, units):
    """A step of Newton's method on the coordinates that can move; by how much the model falls."""
    member, first = work.member, work.first[: units + 1]
    v, q, l1 = member[VALUE, :m], member[SLOPES, :m], member[L1]
    count = _movable(v, l1, member[LOWER], member[UPPER], first, work.norm, work.place)
    if count == 0:
        return 0.0
    slope, some = work.block[:count], work.place[work.gram.shape[0] :]
    work.count[FACTORED] = 0
    largest = _newton_system(work.gram, q, v, l1, first, work.norm, work.place, work.factor, slope, some)
    for a in range(count):
        work.factor[a, a] += NOTHING * largest
        slope[a] = -slope[a]
    if factorise(data.blas[POTRF], work.factor, count) != 0:
        return 0.0
    solve_factored(data.blas[POTRS], work.factor, count, slope)
    share = 1.0
    for _ in range(4):
        gained = _try_step(
            work.gram, m, q, v, l1, member[LOWER], member[UPPER], first, work.norm, work.place, slope, share,
            member[SPACE], member[MOVE],
        )  # fmt: skip
        if gained > 0.0:
            for k in range(m):
                v[k] = member[SPACE, k]
                q[k] += member[MOVE, k]
            return gained
        share *= 0.5
    return 0.0


@apart(boolean(DATA, WORK, float64))
def solve_model(data, work, target):
    """Bring the values of the set so far that the gap of the model is at most `target`, by its slopes (False) or by
    those beside them of ``group_repair.py`` (True). Descent comes first, and Newton's method whenever it has cost as
    much as a factor would."""
    member, m, units = work.member, work.count[SIZE], work.count[UNITS]
    v, q, first = member[VALUE, :m], member[SLOPES, :m], work.first[: units + 1]
    gap, gained, still, least, budget, spent = np.inf, 0.0, 0, np.inf, m, 0
    # other losses have models that are better solved well, for the next one; and where coefficients are nearly as many
    # as rows, nothing but the penalty bends the model in some directions
    exact = data.kind == COVARIANCES or (data.kind == SQUARED and 2 * m <= data.target.size)
    exact = exact and work.number[RENT] >= 0.0
    for turn in range(NEWTON_STEPS):
        gap, gained = _settle(
            work.gram, m, q, v, member[L1], member[LOWER], member[UPPER], first, work.norm, work.bend, work.plain,
            work.places, work.basis, work.ready, member[SPACE], work.block, work.past, work.slopes,
            work.products, target, budget,
        )  # fmt: skip
        if gap <= target or not gap < np.inf:
            return False
        active = 0
        for k in range(m):
            active += v[k] != 0.0
        price = int(FACTOR / 6.0 * active * active * active) + 2 * active * m + m
        spent += max(budget, active * m)
        if exact:
            work.number[RENT] += max(budget, active * m)
            if gained <= target and repair(work, target, gap, data.blas):
                return True
            exact = work.number[RENT] >= 0.0
        if turn > 0 and (spent > price or not exact):
            gained += _newton(data, work, m, units)
            spent = 0
        budget = min(max(2 * budget, active * m), price) if exact else price
        still = still + 1 if gap > 0.9 * least and gained <= 0.1 * target else 0
        least = min(least, gap)
        if still > PATIENCE:
            return False
    return False


@apart(float64(DATA, WORK, float64, float64))
def step(data, work, shift, promise):
    """Go along a step as far as the true objective falls by a part of what was promised; returns the share."""
    row, member, size = work.row, work.member, work.count[SIZE]
    start, length = work.number[LOSS] + set_penalty(work, 0.0), 1.0
    combine_set(data, work, member[STEP], shift, row[CHANGE])
    for _ in range(HALVINGS):
        for i in range(data.target.size):
            row[TRIAL, i] = row[SCORE, i] + length * row[CHANGE, i]
        loss = loss_at(data, row, row[TRIAL])
        if loss + set_penalty(work, length) <= start + ARMIJO * length * promise + 1e-15 * abs(start):
            for i in range(data.target.size):
                row[SCORE, i] = row[TRIAL, i]
            if length < 1.0:
                for k in range(size):
                    member[VALUE, k] = member[BEFORE, k] + length * member[STEP, k]
            work.number[LOSS] = loss
            work.number[INTERCEPT] += length * shift
            return length
        length *= 0.5
    for k in range(size):
        member[VALUE, k] = member[BEFORE, k]
    loss_at(data, row, row[SCORE])
    return 0.0


@apart(boolean(DATA, WORK))
def _aside(data, work):
    """Add to row[AHEAD] what its slopes miss (see ``group_repair.py``); whether it stays in the domain."""
    row, member, shift = work.row, work.member, 0.0
    if data.intercept:
        for k in range(work.count[SIZE]):
            shift -= member[MEAN_COLUMN, k] * member[REPAIR, k] / work.number[MEAN_CURVATURE]
    combine_set(data, work, member[REPAIR], shift, row[TRIAL])
    for i in range(data.target.size):
        row[AHEAD, i] += row[MODELLED, i] * row[TRIAL, i]
        if not row[LOW, i] <= row[AHEAD, i] <= row[HIGH, i] and data.weight[i] > 0.0:
            return False
    return True


@apart(float64(DATA, WORK, boolean))
def _foresee(data, work, beside):
    """The gap on the set that the x of the last model, or the one `beside` it, proves; infinite where that leaves the
    domain of the conjugate."""
    row, units, m = work.row, work.count[UNITS], work.count[SIZE]
    if not foresee(data.weight, row) or (beside and not _aside(data, work)):
        return np.inf
    space = work.member[SPACE]
    for k in range(m):
        space[k] = abs(work.member[SLOPES, k] + work.member[MISS, k] if beside else work.member[SLOPES, k])
    share = held_share(space, work.member[L1], work.norm, work.first[: units + 1])
    dual = -losses.mean_conjugate(data.blas, data.parameter, data.target, data.weight, row[AHEAD], share)
    return work.number[LOSS] + set_penalty(work, 1.0) - dual


@apart(float64(READ, READ, READ, READ_LIST))
def held_share(size, l1, norm, start):
    """The largest share of slopes of these sizes that the penalty can hold."""
    share = 1.0
    for g in range(start.size - 1):
        total, weights = 0.0, 0.0
        for a in range(start[g], start[g + 1]):
            over = max(size[a] - l1[a], 0.0)
            total += over * over
            weights = max(weights, l1[a])
        if math.sqrt(total) <= norm[g]:
            continue
        if weights == 0.0:
            share = min(share, (1.0 - 1e-15) * norm[g] / math.sqrt(total))
        elif norm[g] == 0.0:
            share = min(share, (1.0 - 1e-15) * l1[start[g]] / size[start[g]])
        else:
            share = unit_share(size, l1, norm[g], start[g], start[g + 1], share)
    return share


@apart(boolean(DATA, WORK, float64, float64, float64))
def fit_set(data, work, alpha, wanted, limit):
    """Fit the working set until its estimated gap is at most `limit`, for a gap of `wanted` in the end; False where it
    is too large."""
    member, number, row, n = work.member, work.number, work.row, data.target.size
    m, units = work.count[SIZE], work.count[UNITS]
    load(data, work, alpha)
    fresh, last = False, np.inf
    for turn in range(ROUNDS):
        pull = 0.0
        for k in range(m):
            member[START_SLOPES, k] = dot_with(data, work, k, row[SLOPE]) / n
        if data.intercept:
            for i in range(n):
                pull += row[SLOPE, i] / n
        _refresh(data, work, fresh and data.kind != SQUARED)
        on_columns = columns_pay(data, work)
        if on_columns:
            make_blocks(data, work)
        else:
            _extend_gram(data, work)
        mean = number[MEAN_CURVATURE]
        for k in range(m):
            member[BEFORE, k], member[STEP, k] = member[VALUE, k], 0.0
            member[SLOPES, k] = member[START_SLOPES, k] - member[MEAN_COLUMN, k] * pull / mean
        error = 0.5 * pull * pull / mean + gap_of_groups(
            member[SLOPES], member[VALUE], member[L1], member[LOWER], member[UPPER], work.first[: units + 1], work.norm,
            work.bend,
        )  # fmt: skip
        if turn > 0 and error <= limit:
            break
        fresh = turn > 0 and error > SLOW * last  # for the model after this one
        last = error
        # the model of the squared loss is exact, so that it is solved once and well
        target = 0.3 * wanted if data.kind == SQUARED else max(0.3 * limit, 0.05 * error)
        target = max(number[TIGHT] * target, 1e-15 * abs(number[LOSS]))
        solved, beside = on_columns and solve_on_columns(data, work, target), False
        if not solved:
            if m <= work.gram.shape[0]:
                _extend_gram(data, work)
                beside = solve_model(data, work, target)
            elif not data.sparse:
                return False
        shift, promise = -pull, set_penalty(work, 0.0)
        for k in range(m):
            member[STEP, k] = member[VALUE, k] - member[BEFORE, k]
            shift -= member[MEAN_COLUMN, k] * member[STEP, k]
        shift = shift / mean if data.intercept else 0.0
        promise = set_penalty(work, 1.0) - promise + pull * shift
        for k in range(m):
            promise += member[START_SLOPES, k] * member[STEP, k]
        for i in range(n):
            row[BEGAN, i] = row[SLOPE, i]
        length = step(data, work, shift, promise)
        fresh = fresh or length < 1.0
        if length <= 0.1:
            top = losses.smoothness(data.kind, data.parameter)
            number[CARE] = min(max(10.0 * number[CARE], CAREFUL * top), top)
        elif length == 1.0:
            number[CARE] *= 0.3
        # the slopes of the squared loss are its model's
        if (beside or data.kind != SQUARED) and length == 1.0 and _foresee(data, work, beside) <= limit:
            work.count[FORESEEN] = 1
            break
        if data.kind == SQUARED:
            break
    store(data, work)
    return True
