"""The quadratic model of sparse columns without its Gram matrix: coordinate descent, and Newton's steps by conjugate
gradients on the support.

The model is that of ``small_model.py``, with G = W'(H - hh'/sum h)W / n read from the columns. A pass of descent or a
product with G costs a few reads of the set's entries. Where a Gram matrix has many more entries than that, or a factor
of it costs more than some dozens of products, this is the better way.

========== ======================= ==========================================================================
Symbol     Name here               Meaning
========== ======================= ==========================================================================
d          v - v0                  what the values have moved since the model was made
r          row[REST]               H W d / n, kept up to date while v moves; m'd is in number[MEAN_MOVE]
m, diag G  member[MEAN_COLUMN],    W'h / n, and the curvature along every coordinate
           member[BEND]
========== ======================= ==========================================================================
"""

from __future__ import annotations

import numpy as np
from numba import int64, njit

from .small_certificate import INDEX, MEAN_CURVATURE, MODELLED, NUMBERS, SCRATCH, SIZE, TRIAL
from .small_model import (
    HOT,
    INSIDE,
    LANDING,
    LOWER,
    MEAN_COLUMN,
    MEMBER_ROWS,
    QUADRATIC,
    SLOPE_CHANGE,
    SLOPES,
    THRESHOLD,
    UPPER,
    VALUE,
    _JITTER as JITTER,
    _piece as piece,
    cholesky_solve,
)  # fmt: skip
from .sparse_layout import COLUMN, FACTOR, MOVE, PAIR, PASS, TAKEN, column_add, column_add_weighted, column_dot, column_squares, lower_gram

REST = TRIAL  # of the rows of `row`: free until a step is tried
# Entries of work.number besides the others': see above, and nanoseconds by the prices, of all work for this alpha and
# of models without a Gram matrix; products that conjugate gradients took the last time.
MEAN_MOVE, SPENT, DESCENDED, PRODUCTS, SPARSE_NUMBERS = range(NUMBERS, NUMBERS + 5)
BEGIN, BEND, RESIDUAL, ALONG, PRODUCT, SPARSE_MEMBERS = range(MEMBER_ROWS, MEMBER_ROWS + 6)  # rows of work.member
_CONSTANT = 1e-13  # of a column's mean square: a smaller variance is rounding, and the column a constant
_MOST_SWEEPS = 60  # pairs of descent and Newton for one model; what is left then is the next model's
_ACTIVE = 3  # passes over the support between two over the whole set; more go on where the support is wrong
_FORCED = 0.1  # of the first residual: how far conjugate gradients go; less wastes products while the support changes
FEWEST_PRODUCTS = 40  # that conjugate gradients are thought to take before they were tried
_MOST_PRODUCTS = 80  # of one Newton step; more are for models that are nearly singular


@njit(**INSIDE)
def begin_model(data, work):
    """The curvatures along the coordinates and the means of the columns; nothing has moved."""
    member, n, mean = work.member, data.target.size, work.number[MEAN_CURVATURE]
    rest, weight = work.row[REST], work.row[MODELLED]
    for i in range(n):
        rest[i] = 0.0
    work.number[MEAN_MOVE] = 0.0
    for k in range(work.count[SIZE]):
        j = work.place[INDEX, k]
        total, squares = column_squares(data.values, data.places, data.ends[j], data.ends[j + 1], weight)
        total, squares = total / n, squares / n
        member[MEAN_COLUMN, k] = total
        if data.intercept:
            squares -= total * total / mean
            squares = squares if squares > _CONSTANT * total * total / mean else 0.0
        member[BEND, k] = squares


@njit(**INSIDE)
def _slope(data, work, k):
    """The slope of the model's loss along coordinate k."""
    j = work.place[INDEX, k]
    slope = work.member[BEGIN, k]
    slope += column_dot(data.values, data.places, data.ends[j], data.ends[j + 1], work.row[REST])
    if data.intercept:
        slope -= work.member[MEAN_COLUMN, k] * work.number[MEAN_MOVE] / work.number[MEAN_CURVATURE]
    return slope


@njit(**HOT)
def _descend(data, work, unit, active):
    """One pass over the set, or over what is not zero: the largest move as a share of its threshold, how many
    coordinates began or ceased to be zero or at a bound, and the entries that were read."""
    member, size, rest, n = work.member, work.count[SIZE], work.row[REST], data.target.size
    value, threshold, quadratic = member[VALUE], member[THRESHOLD], member[QUADRATIC]
    lower, upper, bend = member[LOWER], member[UPPER], member[BEND]
    largest, changes, read = 0.0, 0, 0
    for k in range(size):
        old = value[k]
        curvature = bend[k] + quadratic[k]
        if curvature <= 0.0 or (active and old == 0.0):
            continue
        slope = _slope(data, work, k)
        member[SLOPES, k] = slope
        pull, new = old * bend[k] - slope, 0.0
        if pull > threshold[k]:
            new = min((pull - threshold[k]) / curvature, upper[k])
        elif pull < -threshold[k]:
            new = max((pull + threshold[k]) / curvature, lower[k])
        move = new - old
        j = work.place[INDEX, k]
        read += data.ends[j + 1] - data.ends[j] + COLUMN
        if move == 0.0:
            continue
        read += data.ends[j + 1] - data.ends[j] + COLUMN
        largest = max(largest, abs(move) * curvature / (threshold[k] if threshold[k] > 0.0 else unit))
        if new * old <= 0.0 or new == lower[k] or new == upper[k] or old == lower[k] or old == upper[k]:
            changes += 1
        value[k] = new
        column_add_weighted(
            data.values, data.places, data.ends[j], data.ends[j + 1], move / n, work.row[MODELLED], rest
        )
        work.number[MEAN_MOVE] += move * member[MEAN_COLUMN, k]
    return largest, changes, read


@njit(**HOT)
def _spread(data, work, active, factor, out):
    """W f on the support, for every row; returns m'f."""
    total, support = 0.0, work.support[0]
    for i in range(out.size):
        out[i] = 0.0
    for a in range(active):
        k = support[a]
        j = work.place[INDEX, k]
        total += factor[a] * work.member[MEAN_COLUMN, k]
        column_add(data.values, data.places, data.ends[j], data.ends[j + 1], factor[a], out)
    return total


@njit(**HOT)
def _times_curvature(data, work, active, factor, out):
    """(G + quadratic) f on the support."""
    spread, weight, n = work.row[SCRATCH], work.row[MODELLED], data.target.size
    mean = _spread(data, work, active, factor, spread) / work.number[MEAN_CURVATURE]
    for i in range(n):
        spread[i] *= weight[i] / n
    for a in range(active):
        k = work.support[0, a]
        j = work.place[INDEX, k]
        total = column_dot(data.values, data.places, data.ends[j], data.ends[j + 1], spread)
        if data.intercept:
            total -= work.member[MEAN_COLUMN, k] * mean
        out[a] = total + work.member[QUADRATIC, k] * factor[a]


@njit(**HOT)
def _direction(data, work, active, unit, accuracy):
    """Conjugate gradients for Newton's direction on the support, with the diagonal as preconditioner; how many
    products they took."""
    member, support = work.member, work.support[0]
    step, left, along, product = member[LANDING], member[RESIDUAL], member[ALONG], member[PRODUCT]
    square, first = 0.0, 0.0
    for a in range(active):
        k = support[a]
        diagonal = member[BEND, k] + member[QUADRATIC, k]
        step[a], along[a] = 0.0, left[a] / diagonal
        square += left[a] * along[a]
        first = max(first, abs(left[a]) / (member[THRESHOLD, k] if member[THRESHOLD, k] > 0.0 else unit))
    goal = max(0.3 * accuracy, _FORCED * first)
    for turn in range(_MOST_PRODUCTS):
        _times_curvature(data, work, active, along, product)
        bent = 0.0
        for a in range(active):
            bent += along[a] * product[a]
        if not bent > 0.0:
            return turn + 1
        length, new, largest = square / bent, 0.0, 0.0
        for a in range(active):
            k = support[a]
            step[a] += length * along[a]
            left[a] -= length * product[a]
            largest = max(largest, abs(left[a]) / (member[THRESHOLD, k] if member[THRESHOLD, k] > 0.0 else unit))
            new += left[a] * left[a] / (member[BEND, k] + member[QUADRATIC, k])
        if largest <= goal:
            return turn + 1
        for a in range(active):
            k = support[a]
            along[a] = left[a] / (member[BEND, k] + member[QUADRATIC, k]) + new / square * along[a]
        square = new
    return _MOST_PRODUCTS


@njit(**INSIDE)
def _factor_price(data, work, active, entries):
    """Of the Gram matrix of the support, with its factor."""
    share = entries / max(data.places.size, 1)
    rows = share * share * data.pairs * data.price[PAIR] + data.price[MOVE] * (entries + data.target.size)
    made = min(rows, 0.5 * active * entries * data.price[PASS])
    return made + active * active * (1.0 + data.price[FACTOR] / 6.0 * active)


@njit(**INSIDE)
def _direct(data, work, active):
    """Newton's direction on the support by a factor of its Gram matrix; False where there is none."""
    member, support, columns, matrix, top = work.member, work.support[0], work.support[1], work.factor, 0.0
    for a in range(active):
        columns[a] = work.place[INDEX, support[a]]
    work.count[TAKEN] = 0
    lower_gram(data, work, columns, 0, active, matrix)
    work.count[TAKEN] = 0
    for a in range(active):
        k = support[a]
        if data.intercept:
            own = member[MEAN_COLUMN, k] / work.number[MEAN_CURVATURE]
            for c in range(a + 1):
                matrix[a, c] -= own * member[MEAN_COLUMN, support[c]]
        matrix[a, a] += member[QUADRATIC, k]
        top = max(top, matrix[a, a])
        member[LANDING, a] = member[RESIDUAL, a]
    return cholesky_solve(matrix, active, JITTER * top, member[LANDING], data.blas)


@njit(**HOT)
def _try_step(data, work, active, length):
    """As in small_model.py: where a step of this length leads, stopped at the ends of every coordinate's piece, and by
    how much the model changes on the way. Row SCRATCH becomes W times the moves, member[PRODUCT] the moves."""
    member, support, n, total = work.member, work.support[0], data.target.size, 0.0
    for a in range(active):
        k = support[a]
        old, threshold, quadratic = member[VALUE, k], member[THRESHOLD, k], member[QUADRATIC, k]
        low, high = piece(old, threshold, member[LOWER, k], member[UPPER, k])
        new = min(max(old + length * member[LANDING, a], low), high)
        if abs(new) <= 1e-14 * abs(old):
            new = 0.0
        member[SLOPE_CHANGE, a], member[PRODUCT, a] = new, new - old
        total += member[SLOPES, k] * (new - old) + threshold * (abs(new) - abs(old))
        total += 0.5 * quadratic * (new * new - old * old)
    mean = _spread(data, work, active, member[PRODUCT], work.row[SCRATCH])
    bent = 0.0
    for i in range(n):
        bent += work.row[MODELLED, i] * work.row[SCRATCH, i] * work.row[SCRATCH, i]
    total += 0.5 * bent / n
    if data.intercept:
        total -= 0.5 * mean * mean / work.number[MEAN_CURVATURE]
    return total, mean


@njit(**HOT)
def _newton(data, work, unit, accuracy):
    """One step of Newton's method on the coordinates that are neither zero nor at a bound, which stop where they would
    cross one; nanoseconds that it took, by the prices."""
    member, support, rest, n = work.member, work.support[0], work.row[REST], data.target.size
    active, entries, value = int64(0), 0, member[VALUE]
    for k in range(work.count[SIZE]):
        inside = member[LOWER, k] < value[k] < member[UPPER, k]
        if inside and (value[k] != 0.0 or member[THRESHOLD, k] == 0.0) and member[BEND, k] + member[QUADRATIC, k] > 0.0:
            j = work.place[INDEX, k]
            entries += data.ends[j + 1] - data.ends[j] + COLUMN
            support[active] = k
            active += 1
    if active == 0:
        return 0.0
    for a in range(active):
        k = support[a]
        member[SLOPES, k] = _slope(data, work, k)
        sign = 1.0 if value[k] > 0.0 else -1.0
        member[RESIDUAL, a] = -(member[SLOPES, k] + member[QUADRATIC, k] * value[k] + member[THRESHOLD, k] * sign)
    product, spent, direct = data.price[PASS] * entries + n, 0.0, active < work.factor.shape[0]
    if direct:
        spent = _factor_price(data, work, active, entries)
        direct = spent < work.number[PRODUCTS] * product and _direct(data, work, active)
    if not direct:
        work.number[PRODUCTS] = 2.0 * _direction(data, work, active, unit, accuracy)
        spent = work.number[PRODUCTS] * product
    first = 1.0
    for a in range(active):
        k = support[a]
        low, high = piece(value[k], member[THRESHOLD, k], member[LOWER, k], member[UPPER, k])
        end = high if member[LANDING, a] > 0.0 else low
        if abs(member[LANDING, a]) > abs(end - value[k]):
            first = min(first, (end - value[k]) / member[LANDING, a])
    for attempt in range(4):
        length = max(1.0 if attempt == 0 else 0.5 if attempt == 1 else 0.2 if attempt == 2 else first, first)
        change, mean = _try_step(data, work, active, length)
        spent += product
        if change < 0.0:
            for a in range(active):
                value[support[a]] = member[SLOPE_CHANGE, a]
            for i in range(n):
                rest[i] += work.row[MODELLED, i] * work.row[SCRATCH, i] / n
            work.number[MEAN_MOVE] += mean
            break
        if length == first:
            break
    return spent


@njit(**INSIDE)
def minimise_columns(data, work, unit, accuracy, most):
    """Descent and Newton's steps in turns, until the largest move of a pass over the set is at most `accuracy` of its
    threshold, or models without a Gram matrix have cost `most` nanoseconds; then the slopes of the whole set are those
    of the model's end."""
    price, number = data.price[PASS], work.number
    for _ in range(_MOST_SWEEPS):
        largest, changes, read = _descend(data, work, unit, False)
        spent = price * read
        if largest > accuracy:
            for _turn in range(_ACTIVE):
                largest, changes, read = _descend(data, work, unit, True)
                spent += price * read
                if changes == 0 or largest <= accuracy:
                    break
            if largest > accuracy:
                spent += _newton(data, work, unit, accuracy)
            largest = np.inf
        number[DESCENDED] += spent
        number[SPENT] += spent
        if largest <= accuracy or number[DESCENDED] > most:
            break
    for k in range(work.count[SIZE]):
        work.member[SLOPES, k] = _slope(data, work, k)
