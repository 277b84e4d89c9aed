"""The certificate of small dense problems, and the state that its finder shares with it.

    D(x) = -(1/n) sum_i (s_i f)*(x_i) + sum_j min over w of [c_j w + penalty_j(w)]   where   c = X'x / n

========== ======================= ==========================================================================
Symbol     Name here               Meaning
========== ======================= ==========================================================================
x          row[DUAL]               s_i f'(u_i), moved so that no unpenalised direction carries a slope
c          feature[GRADIENT]       the slope of the loss in every feature
s          scale                   x is shrunk by it so that c meets the thresholds that nothing else softens
alpha l1_j threshold               of feature j; quadratic is alpha ridge_j
========== ======================= ==========================================================================

A coordinate with a quadratic, or with a bound on the side where the slope pulls, has a finite minimum for every slope.
The others need |c_j| <= alpha l1_j, which scaling provides, and c_j = 0 where they have no threshold, which `_balance`
provides. An intercept is such a coordinate: the sum of x is zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import boolean, float64, int64, njit, types, void

from ..foundation.numerics import NEWTON_STEPS, ROUNDING, TINY
from . import small_losses as losses
from . import small_model as model
from .apart import INLINE, INSIDE, LIST, MATRIX, READ, READ2, READ_LIST, TABLE, VECTOR, Reference, apart, refer
from .rooms import list_at, matrix_at, table_at, vector_at
from .small_losses import COVARIANCES, SQUARED

NO_BOUND = -1.0 / TINY  # in place of minus infinity: the dual bound of a point that has none
# Of all features: those that are looked at alone, if they are no more. To pick numbers out of rows takes about four
# times as long as to read all of them, columns take no longer. Larger: looks that cost more than they save.
_FEW, _FEW_COLUMNS = 0.2, 0.8
_INWARDS = 0.9  # of the way to the end of a domain: how far one move may go

# Rows of `row` (n numbers each), `feature` (p numbers each), `place` (p whole numbers each), and entries of the two
# lists of numbers that the parts share.
SCORE, SLOPE, CURVATURE, DUAL, BEST, CHANGE, TRIAL, MODELLED, SCRATCH, BEGAN, AHEAD, LOW, HIGH, LOOKED = range(14)
ROW_ROWS = LOOKED + 1
COEF, LAST_COEF, GRADIENT, LOOKED_GRADIENT, SCORES, FEATURE_ROWS = range(6)
INDEX, POSITION, FOUND, NEAR_THRESHOLD, PLACE_ROWS = range(5)
SIZE, IN_GRAM, FREE, CURRENT, FEASIBLE, FORESEEN, COUNTS = range(7)
INTERCEPT, LAST_INTERCEPT, LOSS, MEAN_CURVATURE, CARE, AT_ZERO, PRIMAL_BOUND, DUAL_BOUND = range(8)
CROSS, TIGHT, SHARE, PASSES, LEVEL, NUMBERS = range(8, 14)


class Data(NamedTuple):
    """What the caller gives and nobody changes. Where the data are stored `by_column`, X is their transpose.

    Where the kind is COVARIANCES there are no rows: X is the Gram matrix of all features, target their covariances with
    the targets, parameter the variance of these. `length` is at least |X_j| / sqrt(n) for every column.
    """

    X: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    kind: int
    parameter: float
    l1: np.ndarray
    ridge: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    intercept: bool
    blas: np.ndarray
    by_column: bool
    length: np.ndarray


class Work(NamedTuple):
    """What the parts share and change."""

    row: np.ndarray
    feature: np.ndarray
    place: np.ndarray
    member: np.ndarray
    columns: np.ndarray
    gram: np.ndarray
    factor: np.ndarray
    tile: np.ndarray
    support: np.ndarray
    count: np.ndarray
    number: np.ndarray


def work_numbers(rows: int, p: int, most: int) -> int:
    """Numbers of all rooms of a Work, whose set may have `most` members."""
    features = (FEATURE_ROWS + PLACE_ROWS) * p + COUNTS + NUMBERS
    members = (model.MEMBER_ROWS + most) * most + (most + 2) ** 2 + 2 * (most + 1)
    return (ROW_ROWS + most + 1 + min(model.TILE, most)) * rows + features + members


@njit(**INSIDE)
def work_in(memory, rows, p, most):
    """The rooms of a Work, one after another in one piece of memory: to make them in Python takes as long as a fit."""
    tile, wide, members = min(model.TILE, most), most + 2, model.MEMBER_ROWS
    feature = ROW_ROWS * rows
    place = feature + FEATURE_ROWS * p
    member = place + PLACE_ROWS * p
    columns = member + members * most
    gram = columns + (most + 1) * rows
    factor = gram + most * most
    tiles = factor + wide * wide
    support = tiles + tile * rows
    count = support + 2 * (most + 1)
    return Work(
        matrix_at(memory, 0, ROW_ROWS, rows), matrix_at(memory, feature, FEATURE_ROWS, p),
        table_at(memory, place, PLACE_ROWS, p), matrix_at(memory, member, members, most),
        matrix_at(memory, columns, most + 1, rows), matrix_at(memory, gram, most, most),
        matrix_at(memory, factor, wide, wide), matrix_at(memory, tiles, tile, rows),
        table_at(memory, support, 2, most + 1), list_at(memory, count, COUNTS),
        vector_at(memory, count + COUNTS, NUMBERS),
    )  # fmt: skip


class Answer(NamedTuple):
    """What is filled in for every alpha."""

    W: np.ndarray
    b: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    x: np.ndarray
    passes: np.ndarray
    sums: np.ndarray


# as the fields of Data
DATA_FIELDS = (READ2, READ, READ, int64, float64, READ, READ, READ, READ, boolean, READ_LIST, boolean, READ)
WORK_VALUE = types.NamedTuple(
    (MATRIX, MATRIX, TABLE, MATRIX, MATRIX, MATRIX, MATRIX, MATRIX, TABLE, LIST, VECTOR), Work
)  # fmt: skip
ANSWER_VALUE = types.NamedTuple((MATRIX, VECTOR, VECTOR, VECTOR, MATRIX, VECTOR, MATRIX), Answer)
DATA, WORK = Reference(types.NamedTuple(DATA_FIELDS, Data)), Reference(WORK_VALUE)


@apart(void(WORK, Reference(ANSWER_VALUE), int64))
def record(work, answer, k):
    """The answer for the alpha of number k."""
    number = work.number
    for j in range(work.feature.shape[1]):
        answer.W[k, j] = work.feature[COEF, j]
    for i in range(answer.x.shape[1]):
        answer.x[k, i] = work.row[BEST, i]
    # no number where the x is one of an earlier look
    share = number[SHARE] if number[SHARE] > 0.0 else np.nan
    for j in range(answer.sums.shape[1]):
        answer.sums[k, j] = work.row.shape[1] * share * work.feature[GRADIENT, j]
    answer.b[k], answer.primal[k], answer.dual[k] = number[INTERCEPT], number[PRIMAL_BOUND], number[DUAL_BOUND]
    answer.passes[k], number[PASSES] = number[PASSES], 0.0


# -- the certificate ----------------------------------------------------------------------------------


@apart(void(int64, READ, VECTOR))
def balance_intercept(kind, weight, dual):
    """Make the sum of x zero: of the squared loss by its mean, of the others by shrinking the heavier sign, which
    stays in the domain of every conjugate."""
    positive, negative = 0.0, 0.0
    for i in range(dual.size):
        positive += max(dual[i], 0.0)
        negative += max(-dual[i], 0.0)
    if kind == SQUARED:
        shift = (positive - negative) / dual.size  # weights have mean 1
        for i in range(dual.size):
            dual[i] -= shift * weight[i]
    elif positive != negative:
        smaller = min(positive, negative)
        for i in range(dual.size):
            dual[i] *= smaller / positive if dual[i] > 0.0 else smaller / max(negative, 1e-300)


@apart(boolean(READ, MATRIX))
def foresee(weight, row):
    """Fill row[AHEAD] with x as the last model sees it after its whole step; whether it lies in the domain of the
    conjugate, from row[LOW] to row[HIGH].

    The slopes of the model at its answer belong to this very x, so that no product with the data is needed. The slopes
    of the loss itself are only as good as the answer is; the model's are better by an order.
    """
    for i in range(weight.size):
        ahead = row[BEGAN, i] + row[MODELLED, i] * row[CHANGE, i]
        row[AHEAD, i] = ahead
        if not row[LOW, i] <= ahead <= row[HIGH, i] and weight[i] > 0.0:
            return False
    return True


@njit(**INSIDE)
def hard_slope(data, j, slope):
    """Whether neither a quadratic nor a bound softens this slope of feature j."""
    return data.ridge[j] == 0.0 and np.isinf(data.lower[j] if slope > 0.0 else data.upper[j])


@apart(boolean(DATA, WORK, int64))
def _weighted_move(data, work, count):
    """The least move of x, every row weighted by its room, after which the chosen columns carry no slope; False where
    there is none."""
    room, move, scratch, dual = work.row[CHANGE], work.row[TRIAL], work.row[SCRATCH], work.row[DUAL]
    matrix, chosen, top = work.factor, work.support[1], 1e-300
    right = matrix[matrix.shape[0] - 1]
    for a in range(count):
        column = work.columns[chosen[a]]
        right[a] = -model.dot(dual, column)
        for i in range(dual.size):
            scratch[i] = room[i] * column[i]
        for c in range(a + 1):
            matrix[a, c] = model.dot(scratch, work.columns[chosen[c]])
        top = max(top, matrix[a, a])
    if not model.cholesky_solve(matrix, count, 1e-15 * top, right, data.blas):
        return False
    for i in range(dual.size):
        move[i] = 0.0
        for a in range(count):
            move[i] += room[i] * right[a] * work.columns[chosen[a], i]
    return True


@apart(boolean(DATA, WORK))
def _balance(data, work):
    """Move x so that no direction without penalty carries a slope; whether that succeeded.

    The move is least squares with every row weighted by its distance to the ends of its domain, so that it stays
    inside. Coordinates without penalty stand first in the working set; those with a bound at zero on one side only
    take part once their slope has the wrong sign.
    """
    dual, free = work.row[DUAL], work.count[FREE]
    if data.intercept:
        balance_intercept(data.kind, data.weight, dual)
    chosen, directions = work.support[0], work.support[1]
    for k in range(free):
        chosen[k] = 0
    room, move, low, high = work.row[CHANGE], work.row[TRIAL], work.row[LOW], work.row[HIGH]
    for turn in range(NEWTON_STEPS if free > 0 else 0):
        count, far = int64(0), False  # not a literal, for which callees would be compiled again
        for k in range(free):
            column, j = work.columns[k], work.place[INDEX, k]
            # lengths, not the terms of the sum: all of these go to zero where x must vanish on the whole column
            slope, length = model.dot(column, dual), np.sqrt(model.dot(column, column) * model.dot(dual, dual))
            terms = 0.0
            for i in range(dual.size):
                terms += abs(column[i] * dual[i])
            if terms <= ROUNDING * length:
                # rows whose x must vanish (one class has them all, say) get there exactly
                for i in range(dual.size):
                    dual[i] = 0.0 if column[i] != 0.0 else dual[i]
                slope = 0.0
            if hard_slope(data, j, slope):
                chosen[k] = 1
                far = far or abs(slope) > ROUNDING * length
            if chosen[k] == 1:
                directions[count] = k
                count += 1
        # two moves at least: whoever checks this later starts from as little as rounding leaves
        if count == 0 or (turn >= 2 and not far):
            return True
        for i in range(dual.size):
            size = data.weight[i]
            room[i] = max(min(min(dual[i] - low[i], high[i] - dual[i]), size), 0.0) if size > 0.0 else 0.0
        if data.intercept:
            directions[count] = work.columns.shape[0] - 1  # there are the ones
            count += 1
        if not _weighted_move(data, work, count):
            return False
        length = 1.0
        for i in range(dual.size):
            if move[i] != 0.0:
                reach = abs((high[i] if move[i] > 0.0 else low[i]) - dual[i])
                if abs(move[i]) >= reach:
                    length = min(length, _INWARDS * reach / abs(move[i]))
        for i in range(dual.size):
            dual[i] += length * move[i]
    return free == 0


@apart(void(DATA, WORK))
def _sweep_covariances(data, work):
    """The slopes of all features, and the loss, from the Gram matrix."""
    slope, coef = work.feature[GRADIENT], work.feature[COEF]
    for j in range(slope.size):
        slope[j] = -data.target[j]
    for k in range(work.count[SIZE]):
        j = work.place[INDEX, k]
        if coef[j] != 0.0:
            model.add(data.X[j], coef[j], slope)
    cross, square = 0.0, 0.0
    for k in range(work.count[SIZE]):
        j = work.place[INDEX, k]
        cross += coef[j] * data.target[j]
        square += coef[j] * slope[j]
    work.number[LOSS] = max(0.5 * (square - cross + data.parameter), 0.0)
    work.number[CROSS] = cross - data.parameter
    work.count[CURRENT] = work.count[FEASIBLE] = 1


@apart(int64(DATA, WORK, float64))
def _near_threshold(data, work, alpha):
    """List the features whose slope may reach alpha l1_j, and count them.

    The slope of feature j differs from that of the last look at all features by |X_j| |x - x_then| / n at most (Cauchy
    and Schwarz), so that those which stay below their thresholds by more need not be looked at: whatever their slopes
    are, the dual bound is the same.
    """
    dual, then, far, size, count = work.row[DUAL], work.row[LOOKED], 0.0, 0.0, int64(0)
    for i in range(dual.size):
        far += (dual[i] - then[i]) * (dual[i] - then[i])
        size += then[i] * then[i]
    # rounding of products is at most about n eps |X_j| |x|
    reach = np.sqrt(far / dual.size) + 1e-12 * np.sqrt((size + far) / dual.size)
    for j in range(data.l1.size):
        if not abs(work.feature[LOOKED_GRADIENT, j]) + reach * data.length[j] < alpha * data.l1[j]:
            work.place[NEAR_THRESHOLD, count] = j
            count += 1
    return count


@apart(void(DATA, WORK, float64))
def _look(data, work, alpha):
    """X'x / n, of all features or of those that may matter at this alpha; the others keep what they had at the last
    look at all, which is below their thresholds as well."""
    dual, slope, p = work.row[DUAL], work.feature[GRADIENT], data.l1.size
    count = _near_threshold(data, work, alpha) if alpha > 0.0 else p
    if count > (_FEW_COLUMNS if data.by_column else _FEW) * p:
        if data.by_column:
            model.column_gradient(data.X, dual, slope)
        else:
            model.gradient(data.X, dual, slope)
        for j in range(p):
            work.feature[LOOKED_GRADIENT, j] = slope[j]
        for i in range(dual.size):
            work.row[LOOKED, i] = dual[i]
        work.number[LEVEL] = 0.0
        work.number[PASSES] += 1.0
        return
    for j in range(p):
        slope[j] = work.feature[LOOKED_GRADIENT, j]
    model.some_gradients(data.X, data.by_column, dual, work.place[NEAR_THRESHOLD], count, slope)
    work.number[LEVEL] = alpha
    work.number[PASSES] += count / p


@apart(void(DATA, WORK, float64))
def sweep(data, work, alpha):
    """x and X'x / n, as far as it matters at this alpha (everywhere, where that is zero): the one pass over the data of
    a round.

    x are the slopes of the loss at the present scores, or what the last model foresaw of them. Where a model is nearly
    right, the latter prove far more: their error is of second order, and so is that of the bound.
    """
    if data.kind == COVARIANCES:
        _sweep_covariances(data, work)
        return
    dual, slope = work.row[DUAL], work.row[AHEAD if work.count[FORESEEN] else SLOPE]
    for i in range(dual.size):
        dual[i] = slope[i]
    work.count[FORESEEN] = 0
    work.count[FEASIBLE] = _balance(data, work)
    _look(data, work, alpha)
    for k in range(work.count[FREE]):
        j = work.place[INDEX, k]
        slope = work.feature[GRADIENT, j]
        if hard_slope(data, j, slope):
            work.feature[GRADIENT, j] = 0.0  # what is left is rounding, see `_balance`
    work.count[CURRENT] = 1


@njit(**INLINE)
def least(slope, threshold, quadratic, lower, upper):
    """min over lower <= w <= upper of slope w + threshold |w| + quadratic/2 w^2."""
    excess = abs(slope) - threshold
    if excess <= 1e-14 * threshold:
        return 0.0
    end = -lower if slope > 0.0 else upper
    at = min(excess / quadratic, end) if quadratic > 0.0 else end
    return max((0.5 * quadratic * at - excess) * at, NO_BOUND) if at > 0.0 else 0.0


class Rest(NamedTuple):
    """What the dual objective takes besides x, slopes and penalty: the rows of the loss, and for COVARIANCES the two
    numbers that stand for them."""

    kind: int
    parameter: float
    target: np.ndarray
    weight: np.ndarray
    cross: float
    loss: float
    blas: np.ndarray


_REST = Reference(types.NamedTuple((int64, float64, READ, READ, float64, float64, READ_LIST), Rest))


@apart(float64(_REST, READ, READ, float64, READ, READ, READ, READ, float64))
def _dual_at(rest, dual, slope, alpha, l1, ridge, lower, upper, scale):
    """The dual objective at scale times x."""
    total = 0.0
    for j in range(slope.size):
        if abs(scale * slope[j]) > alpha * l1[j]:
            total += least(scale * slope[j], alpha * l1[j], alpha * ridge[j], lower[j], upper[j])
    if rest.kind == COVARIANCES:
        return total - scale * (rest.cross + scale * rest.loss)
    return total - losses.mean_conjugate(rest.blas, rest.parameter, rest.target, rest.weight, dual, scale)


@apart(types.UniTuple(float64, 2)(_REST, READ, READ, float64, READ, READ, READ, READ, float64))
def best_bound(rest, dual, slope, alpha, l1, ridge, lower, upper, enough):
    """The best dual bound that scaling x gives, and the scale. Others than the largest are tried if it is not enough
    and features with a quadratic or a bound may prefer one."""
    hard, soft = 1.0, 1.0
    for j in range(slope.size):
        if not np.isfinite(slope[j]):
            return NO_BOUND, 0.0
        threshold, end = alpha * l1[j], lower[j] if slope[j] > 0.0 else upper[j]
        if abs(slope[j]) > threshold and threshold > 0.0 and end != 0.0:
            ratio = threshold / abs(slope[j])
            soft = min(soft, ratio)
            if ridge[j] == 0.0 and np.isinf(end):
                hard = min(hard, (1.0 - 1e-15) * ratio)
    scale, bound = hard, _dual_at(rest, dual, slope, alpha, l1, ridge, lower, upper, hard)
    if bound >= enough or soft >= hard:
        return bound, scale
    # D is concave in the scale: look at the other end and at the top of the parabola through three points
    at_hard, at_soft, at_middle, middle, top = bound, 0.0, 0.0, 0.5 * (soft + hard), 0.5 * (soft + hard)
    for turn in range(3):
        candidate = soft if turn == 0 else middle if turn == 1 else top
        value = _dual_at(rest, dual, slope, alpha, l1, ridge, lower, upper, candidate)
        if value > bound:
            scale, bound = candidate, value
        if turn == 0:
            at_soft = value
        elif turn == 1:
            at_middle = value
            bend = at_soft - 2.0 * at_middle + at_hard
            if bend < 0.0:
                top = min(max(middle - 0.25 * (hard - soft) * (at_hard - at_soft) / bend, soft), hard)
    return bound, scale


@apart(types.UniTuple(float64, 2)(DATA, WORK, float64, float64))
def dual_bound(data, work, alpha, enough):
    """See :func:`best_bound`; none where x could not be made feasible."""
    if work.count[FEASIBLE] == 0:
        return NO_BOUND, 0.0
    rest = Rest(data.kind, data.parameter, data.target, data.weight, work.number[CROSS], work.number[LOSS], data.blas)
    slope = work.feature[GRADIENT]
    return best_bound(refer(rest), work.row[DUAL], slope, alpha, data.l1, data.ridge, data.lower, data.upper, enough)
