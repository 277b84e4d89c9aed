"""Slopes that the penalty can hold, beside those of the last values of a working set of groups.

The dual bound scales slopes that are too long for the penalty down, and loses as large a share of the objective as the
worst unit misses its norm by. Values that are right to nearly all of their digits still miss it by the square root of
their error, so that most passes of descent serve the bound alone. But x may move by the curvature as well:

    e = what the slopes miss,   G s = e,   x~ = x + h (C s + shift)      has the slopes q + e on the set

and costs the bound no more than e's / 2: about as much as is left to gain (SPEED.md 4 F in short: the error is of
second order). G's factor is kept, and grows with the set.

Symbols are those of ``small_set.py``.
"""

from __future__ import annotations

import math

from numba import boolean, float64, int64, void

from .apart import HOT, MATRIX, READ2, READ_LIST, apart
from .group_set import FACTORED, L1, MISS, RENT, REPAIR, SIZE, SLOPES, UNITS, VALUE, WORK
from .lapack import POTRF, POTRS, factorise, solve_factored
from .rules import FACTOR, JITTER


@apart(void(READ2, MATRIX, int64, int64), **HOT)
def extend_factor(gram, factor, known, size):
    """Rows `known` to `size` of the Cholesky factor of a Gram matrix, which grew by them."""
    for j in range(known):  # row by row of the old part, which is read once for all new ones
        other = factor[j]
        for i in range(known, size):
            own, total = factor[i], gram[i, j]
            for k in range(j):
                total -= own[k] * other[k]
            own[j] = total / other[j]
    for i in range(known, size):
        row, own = gram[i], factor[i]
        for j in range(known, i):
            other, total = factor[j], row[j]
            for k in range(j):
                total -= own[k] * other[k]
            own[j] = total / other[j]
        left = row[i]
        for k in range(i):
            left -= own[k] * own[k]
        own[i] = math.sqrt(max(left, JITTER * row[i], 1e-300))


@apart(boolean(WORK, READ_LIST))
def _factored(work, blas):
    """Bring the factor up to date, if that costs no more than descent has cost since it last was, in number[RENT] as
    entries that it read; whether it is."""
    m, known, gram, factor = work.count[SIZE], work.count[FACTORED], work.gram, work.factor
    if known == m:
        return True
    whole, more = FACTOR / 6.0 * m * m * m, 0.5 * (m - known) * m * m
    if min(whole, more) > work.number[RENT]:
        return False
    work.number[RENT] = 0.0
    if whole <= more:
        for i in range(m):
            for j in range(i + 1):
                factor[i, j] = gram[i, j]
            factor[i, i] += JITTER * gram[i, i] + 1e-300
        if factorise(blas[POTRF], factor, m) != 0:
            return False
    else:
        extend_factor(gram, factor, known, m)
    work.count[FACTORED] = m
    return True


@apart(void(WORK), **HOT)
def _miss(work):
    """By how much the slopes miss those with which the values would be an answer."""
    member = work.member
    v, q, l1, miss = member[VALUE], member[SLOPES], member[L1], member[MISS]
    for u in range(work.count[UNITS]):
        first, last, norm = work.first[u], work.first[u + 1], work.norm[u]
        size, over = 0.0, 0.0
        for k in range(first, last):
            size += v[k] * v[k]
            beyond = max(abs(q[k]) - l1[k], 0.0)
            over += beyond * beyond
        size, over = math.sqrt(size), math.sqrt(over)
        for k in range(first, last):
            held = min(max(q[k], -l1[k]), l1[k])  # what the weight takes of the slope
            if size > 0.0:
                if v[k] != 0.0:
                    held = -l1[k] if v[k] > 0.0 else l1[k]
                miss[k] = held - norm * v[k] / size - q[k]
            elif over > norm:
                miss[k] = (held - q[k]) * (1.0 - norm / over)
            else:
                miss[k] = 0.0


@apart(boolean(WORK, float64, float64, READ_LIST))
def repair(work, target, gap, blas):
    """Put s into member[REPAIR]; whether it costs the bound at most `target`. If it costs more than the `gap` that
    there is, nothing but the penalty bends the model in some directions, and no later s shall be looked for."""
    m, total = work.count[SIZE], 0.0
    if not _factored(work, blas):
        return False
    _miss(work)
    step, miss = work.member[REPAIR, :m], work.member[MISS]
    for k in range(m):
        step[k] = miss[k]
    solve_factored(blas[POTRS], work.factor, m, step)
    for k in range(m):
        total += 0.5 * step[k] * miss[k]
    if not total <= gap:
        work.number[RENT] = -math.inf
    return 0.0 <= total <= target
