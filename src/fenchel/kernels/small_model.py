"""The quadratic model of small dense problems: Gram matrix, coordinate descent, Newton's steps.

    minimise over v    q'(v - v0) + 1/2 (v - v0)' G (v - v0) + sum_k [ threshold_k |v_k| + 1/2 quadratic_k v_k^2 ]
    subject to         lower_k <= v_k <= upper_k

========== ======================= ==========================================================================
Symbol     Name here               Meaning
========== ======================= ==========================================================================
u, x, h    score, slope, curvature u_i = z_i'w + b, s_i f'(u_i) and s_i f''(u_i) of every row
t, s       target, weight          of the rows; weights have mean 1, and rows of weight 0 play no part
W          columns (size, n)       columns of X in the working set, one after another
G          gram                    W'(H - hh'/sum h)W / n: the intercept, if there is one, is eliminated
W'h / n    mean_column             how the intercept answers to every coordinate
q          slopes                  slopes of the loss's model at v, kept for the whole set while v moves
========== ======================= ==========================================================================

Nearly everything is a plain loop: what sorts, slices or calls BLAS through numba takes long to compile. Gram matrices
and large factors are left to BLAS and LAPACK, whose addresses are in the vector `blas`. What takes the time is compiled
on its own (see ``apart.py``).
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, njit, types, void

from ..foundation.numerics import NEWTON_STEPS, NOTHING
from .apart import HOT, INLINE, INSIDE, LIST, MATRIX, READ, READ2, READ_LIST, VECTOR, apart
from .lapack import GEMM, POTRF, POTRS, add_products, factorise, solve_factored
from .rules import DEPTH, FACTOR, MANY

TILE = (
    48  # rows of a Gram matrix that one product makes; fewer are slow, more compute what is above the diagonal in vain
)
_SQUARE = 16  # rows and columns that are mirrored together: two kilobytes; more leave the fastest cache
_SMALL = 24  # coordinates up to which a factor by plain loops is faster than the call of LAPACK


# -- products with the data ---------------------------------------------------------------------------


@apart(void(READ2, READ, VECTOR), **HOT)
def gradient(X, dual, out):
    """X'x / n for all features. Four rows at a time: `out` is then read and written a quarter as often."""
    n, p = X.shape
    for j in range(p):
        out[j] = 0.0
    i = 0
    while i + 4 <= n:
        a, b, c, d = dual[i] / n, dual[i + 1] / n, dual[i + 2] / n, dual[i + 3] / n
        first, second, third, fourth = X[i], X[i + 1], X[i + 2], X[i + 3]
        for j in range(p):
            out[j] += a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
        i += 4
    while i < n:
        a, first = dual[i] / n, X[i]
        for j in range(p):
            out[j] += a * first[j]
        i += 1


@apart(void(READ2, READ, VECTOR))
def column_gradient(X, dual, out):
    """The same where the columns are stored one after another, as the rows of X."""
    for j in range(out.size):
        out[j] = dot(X[j], dual) / dual.size


@apart(void(READ2, boolean, READ, LIST, int64, VECTOR), **HOT)
def some_gradients(X, by_column, dual, features, count, out):
    """The same for the first `count` of these features alone."""
    n = dual.size
    if by_column:
        for k in range(count):
            out[features[k]] = dot(X[features[k]], dual) / n
        return
    for k in range(count):
        out[features[k]] = 0.0
    i = 0
    while i + 4 <= n:
        a, b, c, d = dual[i] / n, dual[i + 1] / n, dual[i + 2] / n, dual[i + 3] / n
        first, second, third, fourth = X[i], X[i + 1], X[i + 2], X[i + 3]
        for k in range(count):
            j = features[k]
            out[j] += a * first[j] + b * second[j] + c * third[j] + d * fourth[j]
        i += 4
    while i < n:
        a, first = dual[i] / n, X[i]
        for k in range(count):
            out[features[k]] += a * first[features[k]]
        i += 1


@apart(void(READ2, boolean, int64, VECTOR))
def take_column(X, by_column, j, out):
    """out = column j of the data; `by_column` says that it is a row of X."""
    if by_column:
        row = X[j]
        for i in range(out.size):
            out[i] = row[i]
    else:
        for i in range(out.size):
            out[i] = X[i, j]


@apart(void(READ2, boolean, LIST, int64, int64, MATRIX), **HOT)
def take_columns(X, by_column, which, first, end, out):
    """out[k] = column which[k] of the data, for k from `first` to `end`; sixteen rows at a time, which stay in the
    cache."""
    if by_column:
        for k in range(first, end):
            row, own = X[which[k]], out[k]
            for i in range(own.size):
                own[i] = row[i]
        return
    n = out.shape[1]
    for top in range(0, n, 16):
        bottom = min(n, top + 16)
        for k in range(first, end):
            j, own = which[k], out[k]
            for i in range(top, bottom):
                own[i] = X[i, j]


@njit(**{**INSIDE, **HOT})
def dot(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@njit(**{**INSIDE, **HOT})
def add(row, factor, out):
    """out += factor * row."""
    for j in range(out.size):
        out[j] += factor * row[j]


@apart(void(READ2, int64, READ, float64, VECTOR), **HOT)
def combine(columns, size, value, shift, out):
    """shift + W v, for every row."""
    for i in range(out.size):
        out[i] = shift
    for k in range(size):
        if value[k] != 0.0:
            factor, column = value[k], columns[k]
            for i in range(out.size):
                out[i] += factor * column[i]


@njit(**{**INSIDE, **HOT})
def _weigh(column, curvature, share, out, summed):
    """out = share * curvature * column; the sum of it, if it is wanted."""
    for i in range(out.size):
        out[i] = share * curvature[i] * column[i]
    total = 0.0
    if summed:  # in a loop that writes nothing: otherwise its order depends on where in memory the arrays are
        for i in range(out.size):
            total += out[i]
    return total


@apart(void(MATRIX, READ, int64, int64, float64), **HOT)
def mirror(gram, mean_column, first, size, mean_curvature):
    """The intercept taken out of the rows from `first` on, and their mirror image, square by square: places that are
    rows apart are then found in the cache."""
    for top in range(first, size, _SQUARE):
        bottom = min(size, top + _SQUARE)
        for left in range(0, bottom, _SQUARE):
            for k in range(top, bottom):
                share = mean_column[k] / mean_curvature if mean_curvature > 0.0 else 0.0
                for l in range(left, min(left + _SQUARE, k + 1)):
                    gram[k, l] -= share * mean_column[l]
                    gram[l, k] = gram[k, l]


@apart(void(READ2, READ, MATRIX, MATRIX, VECTOR, int64, int64, float64, READ_LIST))
def append_gram(columns, curvature, tile, gram, mean_column, first, size, mean_curvature, blas):
    """The rows first to size of the Gram matrix, and their mirror image; a mean curvature of 0 says that there is no
    intercept."""
    start, share = first, 1.0 / curvature.size
    while start < size:
        count = min(tile.shape[0], size - start)
        for a in range(count):
            mean_column[start + a] = _weigh(columns[start + a], curvature, share, tile[a], mean_curvature > 0.0)
            for l in range(size):
                gram[start + a, l] = 0.0
        add_products(blas[GEMM], tile, 0, count, columns, start + count, curvature.size, gram, start)
        start += count
    mirror(gram, mean_column, first, size, mean_curvature)


@apart(boolean(MATRIX, int64, float64, VECTOR, READ_LIST), **HOT)
def cholesky_solve(matrix, size, jitter, right, blas):
    """right <- (matrix + jitter)^-1 right. The lower triangle is overwritten; False where a number is not finite."""
    if size > _SMALL:
        for i in range(size):
            matrix[i, i] += jitter
        if factorise(blas[POTRF], matrix, size) != 0:
            return False
        solve_factored(blas[POTRS], matrix, size, right)
        total = 0.0
        for i in range(size):
            total += right[i] * right[i]
        return np.isfinite(total)
    for i in range(size):
        row = matrix[i]
        for j in range(i + 1):
            other, total = matrix[j], row[j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = np.sqrt(max(total, 0.0) + jitter) if i == j else total / other[j]
        total = right[i]
        for k in range(i):
            total -= row[k] * right[k]
        right[i] = total / row[i]
    for i in range(size - 1, -1, -1):
        row = matrix[i]
        right[i] /= row[i]
        for k in range(i):
            right[k] -= row[k] * right[i]
    total = 0.0
    for i in range(size):
        total += right[i] * right[i]
    return np.isfinite(total)


# -- the inner solver ---------------------------------------------------------------------------------

# Rows of the array `member`, one number for every coordinate of the working set each.
VALUE, BEFORE, STEP, SLOPES, START_SLOPES, THRESHOLD, QUADRATIC, LOWER, UPPER, MEAN_COLUMN = range(10)
DIRECTION, LANDING, SLOPE_CHANGE, MEMBER_ROWS = range(10, 14)


@apart(types.UniTuple(float64, 3)(READ2, int64, MATRIX, float64), **HOT)
def descend(gram, size, member, unit):
    """One pass of coordinate descent: the largest move, as a share of its threshold, how many coordinates began or
    ceased to be zero or at a bound, and how many moved. `unit` stands in for thresholds of zero."""
    value, slopes, threshold, quadratic = member[VALUE], member[SLOPES], member[THRESHOLD], member[QUADRATIC]
    lower, upper = member[LOWER], member[UPPER]
    largest, changes, moves = 0.0, 0.0, 0.0
    for k in range(size):
        row, old = gram[k], value[k]
        curvature = row[k] + quadratic[k]
        if row[k] < 0.0 or curvature <= 0.0:
            continue
        pull, new = old * row[k] - slopes[k], 0.0
        if pull > threshold[k]:
            new = min((pull - threshold[k]) / curvature, upper[k])
        elif pull < -threshold[k]:
            new = max((pull + threshold[k]) / curvature, lower[k])
        move = new - old
        if move == 0.0:
            continue
        largest = max(largest, abs(move) * curvature / (threshold[k] if threshold[k] > 0.0 else unit))
        if new * old <= 0.0 or new == lower[k] or new == upper[k] or old == lower[k] or old == upper[k]:
            changes += 1.0
        moves += 1.0
        value[k] = new
        for l in range(size):
            slopes[l] += move * row[l]
    return largest, changes, moves


@njit(**INLINE)
def _piece(value, threshold, lower, upper):
    """The interval around a value on which its penalty has no kink."""
    if threshold > 0.0:
        return (max(lower, 0.0), upper) if value > 0.0 else (lower, min(upper, 0.0))
    return lower, upper


@njit(**{**INSIDE, **HOT})
def _try_step(gram, size, member, support, active, direction, length, landing, change):
    """Where a step of this length leads, stopped at the ends of every coordinate's piece, and by how much the model
    changes on the way; `change` becomes that of the slopes."""
    for l in range(size):
        change[l] = 0.0
    total = 0.0
    for a in range(active):
        k = support[a]
        old, threshold, quadratic = member[VALUE, k], member[THRESHOLD, k], member[QUADRATIC, k]
        low, high = _piece(old, threshold, member[LOWER, k], member[UPPER, k])
        new = min(max(old + length * direction[a], low), high)
        # a coordinate that stops at an end shall be there exactly
        if abs(new) <= 1e-14 * abs(old):
            new = 0.0
        landing[a], move, row = new, new - old, gram[k]
        total += member[SLOPES, k] * move + threshold * (abs(new) - abs(old))
        total += 0.5 * quadratic * (new * new - old * old)
        for l in range(size):
            change[l] += move * row[l]
    for a in range(active):
        total += 0.5 * change[support[a]] * (landing[a] - member[VALUE, support[a]])
    return total


@apart(boolean(READ2, int64, MATRIX, MATRIX, LIST, READ_LIST))
def newton(gram, size, member, matrix, support, blas):
    """One step of Newton's method on the coordinates that are neither zero nor at a bound; whether it moved.

    Coordinates that would cross zero or a bound stop there. Where such a step makes the model larger, shorter ones are
    tried, down to the first stop. `matrix` and `support` are room to work in.
    """
    active = int64(0)  # not a literal, for which callees would be compiled again
    value, threshold = member[VALUE], member[THRESHOLD]
    for k in range(size):
        inside = member[LOWER, k] < value[k] < member[UPPER, k]
        if inside and (value[k] != 0.0 or threshold[k] == 0.0) and gram[k, k] + member[QUADRATIC, k] > 0.0:
            support[active] = k
            active += 1
    if active == 0:
        return False
    direction, landing, change, top = member[DIRECTION], member[LANDING], member[SLOPE_CHANGE], 0.0
    for a in range(active):
        k = support[a]
        row, sign = gram[k], 1.0 if value[k] > 0.0 else -1.0
        for c in range(a + 1):
            matrix[a, c] = row[support[c]]
        matrix[a, a] += member[QUADRATIC, k]
        top = max(top, matrix[a, a])
        direction[a] = -(member[SLOPES, k] + member[QUADRATIC, k] * value[k] + threshold[k] * sign)
    if not cholesky_solve(matrix, active, NOTHING * top, direction, blas):
        return False
    first = 1.0
    for a in range(active):
        k = support[a]
        low, high = _piece(value[k], threshold[k], member[LOWER, k], member[UPPER, k])
        end = high if direction[a] > 0.0 else low
        if abs(direction[a]) > abs(end - value[k]):
            first = min(first, (end - value[k]) / direction[a])
    for attempt in range(4):
        length = 1.0 if attempt == 0 else 0.5 if attempt == 1 else 0.2 if attempt == 2 else first
        length = max(length, first)
        if _try_step(gram, size, member, support, active, direction, length, landing, change) < 0.0:
            for a in range(active):
                value[support[a]] = landing[a]
            for l in range(size):
                member[SLOPES, l] += change[l]
            return True
        if length == first:
            break
    return False


@apart(void(int64, MATRIX, MATRIX, READ_LIST), **HOT)
def extrapolate(size, member, history, blas):
    """Go to where the last passes seem to lead, if the model is lower there (Anderson's extrapolation).

    `history` has DEPTH + 1 points, their slopes, and room for a small system below them.
    """
    value, slopes = member[VALUE], member[SLOPES]
    ahead, ahead_slopes = member[LANDING], member[SLOPE_CHANGE]
    first, trace = 2 * (DEPTH + 1), 0.0
    mix = history[first + DEPTH]
    for a in range(DEPTH):
        for c in range(a + 1):
            total = 0.0
            for k in range(size):
                total += (history[a + 1, k] - history[a, k]) * (history[c + 1, k] - history[c, k])
            history[first + a, c] = total
        trace += history[first + a, a]
        mix[a] = 1.0
    if not trace > 0.0:
        return
    if not cholesky_solve(history[first:], DEPTH, 1e-10 * trace / DEPTH, mix, blas):
        return
    total = 0.0
    for a in range(DEPTH):
        total += mix[a]
    if not abs(total) > 0.0:
        return
    for k in range(size):
        ahead[k] = ahead_slopes[k] = 0.0
    for a in range(DEPTH):
        share, point, slope = mix[a] / total, history[a + 1], history[DEPTH + 2 + a]
        for k in range(size):
            ahead[k] += share * point[k]
            ahead_slopes[k] += share * slope[k]
    gain = 0.0
    for k in range(size):
        if not member[LOWER, k] <= ahead[k] <= member[UPPER, k]:
            return
        gain += 0.5 * (ahead[k] - value[k]) * (ahead_slopes[k] + slopes[k])
        gain += member[THRESHOLD, k] * (abs(ahead[k]) - abs(value[k]))
        gain += 0.5 * member[QUADRATIC, k] * (ahead[k] * ahead[k] - value[k] * value[k])
    if gain < 0.0:
        for k in range(size):
            value[k], slopes[k] = ahead[k], ahead_slopes[k]


@apart(void(READ2, int64, MATRIX, MATRIX, LIST, float64, float64, READ_LIST))
def minimise_model(gram, size, member, matrix, support, unit, accuracy, blas):
    """Coordinate descent and Newton's steps, in turns, until the largest move of a pass is at most `accuracy` of its
    threshold. Descent over many coordinates is extrapolated.

    Newton's step is for a support that a pass leaves as it is, or for the third pass; and not before the descent has
    cost as much as the factor will, so that both together cost at most twice the better of the two.
    """
    spent = 0.0
    for _ in range(NEWTON_STEPS):
        passes, kept = 0, -1  # points that are kept, the first of them aside
        while True:
            if kept < 0 and size > MANY:
                kept = 0
                for k in range(size):
                    matrix[0, k], matrix[DEPTH + 1, k] = member[VALUE, k], member[SLOPES, k]
            largest, changes, moves = descend(gram, size, member, unit)
            passes, spent = passes + 1, spent + moves * size
            if largest <= accuracy:
                return
            if kept >= 0:
                kept += 1
                for k in range(size):
                    matrix[kept, k], matrix[DEPTH + 1 + kept, k] = member[VALUE, k], member[SLOPES, k]
                if kept == DEPTH:
                    extrapolate(size, member, matrix, blas)
                    kept = -1
            price = moves * moves * (FACTOR / 6.0 * moves) + 2.0 * moves * size
            if (changes == 0.0 or passes >= 3) and spent >= price:
                break
        newton(gram, size, member, matrix, support, blas)
        spent = 0.0
