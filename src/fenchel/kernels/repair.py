"""The repair of dual variables by the curvature, without a matrix; see ``engine/repair.py`` for what is repaired.

The system is (H + B R B') q = -e with H = Z diag(h) Z' / n, solved by conjugate gradients. A round costs two products
with the data. The preconditioner takes a diagonal in place of H; where maps join features that are near, it is banded
and solved exactly, elsewhere it is its diagonal. With H itself, or one nearby, it is the whole system, and a few rounds
do. R is what y follows a move by:

- on units of the penalty that are zero, as much as there is room in their balls;
- on groups that are not, the curvature of their norms, which leaves y on the sphere;
- elsewhere hardly anything.

Symbols: e = Zx/n + By; x slopes and h curvatures of the rows; y dual variables of the penalty, divided by n; `radius`
of the ball of a coordinate's unit, 0 where a unit has none.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, types, void

from ..foundation.numerics import DIFFERENCE, LITTLE
from .apart import HOT, LIST, MATRIX, OWNING, READ, VECTOR, apart, specialised
from .caching import WITHIN, njit
from .lapack import POTRF, POTRS, factorise, solve_factored
from .products import mean_of, scores_of
from .prox import MAP, apply_adjoint, apply_map
from .rows import KERNEL, LEAN
from .rules import LOOSE
from .small_losses import mean_conjugate

GAP, COST, PRODUCTS, TURNS = range(4)  # entries of `info`
_AGAIN = 12  # times that rows and units which came to their ends stay there, and the others are solved for again
# times the curvature that a coordinate sees: R for a unit whose ball is all free; with a band, and at the most
_FREE, _STEEPEST = 3.0, 100.0

_UNITS = types.Tuple((LIST, int64, VECTOR))


@specialised(nogil=True, **KERNEL)
def repair(
    data, loss, B, psi, units, back, band, diagonal, even, kappa, domain, u, x, y, g, h, primal, allowed, share, most,
    H, lapack, info,
):  # fmt: skip
    """x and y are moved towards e = 0, and g = Zx/n is filled in; h is changed too. Returns whether the gap that is
    allowed seems to be reached.

    Where x and y are feasible, the gap is primal + f*(x). What is left of e is given to y, which costs its gauge times
    the slope of f* along x, to first order; the rounds bring that to `share` of what is allowed.

    units: (labels, count, radius). back: (row, feature, factor) of a y that has B y = e. band: how far apart features
    are that B joins; 0 where a banded factor takes too long. H: a matrix near Z diag(h) Z'/n, empty where there is
    none, and the addresses of LAPACK for it. info receives the gap that the moves leave at the least, the cost of what
    is left, products with the data, and turns.
    """
    labels, count, _ = units
    n, size, d = x.size, g.size, y.size
    whole = H.size > 0
    e, q, along, factor = np.empty(size), np.empty(size), np.empty(n), np.empty((size, size if whole else band + 1))
    step, tangent, lengths, dots = np.empty(d), np.empty(d), np.empty(count), np.empty(count)
    seen, wide = np.zeros(d), np.zeros(d)
    info[GAP] = info[TURNS] = 0.0
    mean_of(data, x, g)
    info[PRODUCTS] = 1.0
    addresses, parameter, target, weight = loss
    rough, enough, before = LOOSE, 0.0, 0.0
    for _ in range(_AGAIN):
        _miss(B, psi, g, y, e)
        conjugate = mean_conjugate(addresses, parameter, target, weight, x, 1.0)
        shorter = mean_conjugate(addresses, parameter, target, weight, x, 1.0 - DIFFERENCE)
        cost = abs(shorter - conjugate) / DIFFERENCE * _excess(units, back, y, e, seen, lengths)
        info[COST] = cost
        gap = max(primal + conjugate, info[GAP])
        if gap + cost <= allowed:
            return True
        if info[TURNS] > 0.0:
            info[GAP] = gap
        if info[GAP] > allowed or cost <= LITTLE * allowed or info[PRODUCTS] >= 2.0 * most:
            return False
        info[TURNS] += 1.0
        _follow(units, u, y, even, kappa, _STEEPEST if band > 0 else _FREE, step, tangent, lengths)
        if whole:
            _joined(H, B, labels, count, step, tangent, factor)
            if factorise(lapack[POTRF], factor, size) != 0:
                return False
        else:
            _factorise(B, diagonal, step, tangent, factor)
        # while units and rows come to their ends, a rough solution will do
        if cost <= 2.0 * enough * before:
            rough = 0.0
        enough, before = max(share * allowed / cost, rough), cost
        left = _solve(data, B, psi, labels, dots, h, e, factor, whole, lapack, step, tangent,
                      most - info[PRODUCTS] / 2.0, enough, allowed - info[GAP], q, along, info)  # fmt: skip
        info[GAP] += left
        if info[GAP] > allowed:
            return False
        _move_rows(domain, h, along, x)
        apply_map(B, psi, q, wide)
        _turned(labels, dots, step, tangent, wide)
        for k in range(d):
            y[k] += wide[k]
        _into_balls(units, y, lengths)
        mean_of(data, x, g)
        info[PRODUCTS] += 1.0
    return False


@njit(cache=True, **LEAN, **WITHIN)
def _miss(B, psi, g, y, e):
    apply_adjoint(B, psi, y, e)
    for j in range(e.size):
        e[j] += g[j]


@njit(cache=True, **LEAN, **WITHIN)
def _excess(units, back, y, e, moved, lengths):
    """By how much the gauge of y exceeds 1 after e was given to it."""
    labels, _, radius = units
    row, feature, factor = back
    for k in range(y.size):
        moved[k] = y[k]
    for k in range(row.size):
        moved[row[k]] -= factor[k] * e[feature[k]]
    _norms(labels, moved, lengths)
    worst = 0.0
    for k in range(y.size):
        if radius[k] > 0.0:
            worst = max(worst, lengths[labels[k]] / radius[k] - 1.0)
    return worst


@njit(cache=True, **LEAN, **WITHIN)
def _norms(labels, y, lengths):
    lengths[:] = 0.0
    for k in range(y.size):
        lengths[labels[k]] += y[k] * y[k]
    for g in range(lengths.size):
        lengths[g] = math.sqrt(lengths[g])


@apart(void(_UNITS, READ, READ, READ, float64, float64, VECTOR, VECTOR, VECTOR), **HOT)
def _follow(units, u, y, even, kappa, most, step, tangent, lengths):
    """R = diag(step) (1 - tangent tangent'), unit by unit."""
    labels, _, radius = units
    _norms(labels, u, lengths)
    for k in range(u.size):
        long = lengths[labels[k]]
        step[k], tangent[k] = kappa * even[k], 0.0
        if long > 0.0 and radius[k] > 0.0 and abs(u[k]) < long:
            step[k] = min(radius[k] / long, _STEEPEST * even[k])
            tangent[k] = u[k] / long
    roomy = lengths
    for g in range(roomy.size):
        roomy[g] = -1.0 if roomy[g] > 0.0 else 0.0
    for k in range(u.size):
        if roomy[labels[k]] >= 0.0:
            roomy[labels[k]] += y[k] * y[k]
    for k in range(u.size):
        size = roomy[labels[k]]
        if size >= 0.0 and radius[k] > 0.0:
            room = max(1.0 - math.sqrt(size) / radius[k], 0.0)
            step[k] = even[k] * max(most * room, kappa)


@apart(void(MAP, READ, READ, READ, MATRIX), **HOT)
def _factorise(B, diagonal, step, tangent, factor):
    """Cholesky's factor of diag(diagonal) + B diag(step) B', of which factor[j, k] is entry (j + k, j)."""
    start, column, value = B
    size, band = factor.shape[0], factor.shape[1] - 1
    for j in range(size):
        factor[j, 0] = diagonal[j]
        for k in range(1, band + 1):
            factor[j, k] = 0.0
    for k in range(step.size):
        part = step[k] * (1.0 - tangent[k] * tangent[k])
        for a in range(start[k], start[k + 1]):
            if band == 0:
                factor[column[a], 0] += part * value[a] * value[a]
                continue
            for b in range(start[k], start[k + 1]):
                if column[b] <= column[a]:
                    factor[column[b], column[a] - column[b]] += part * value[a] * value[b]
    if band == 0:
        return
    for j in range(size):
        line = factor[j]
        top = math.sqrt(line[0])
        width = min(band, size - 1 - j)
        for k in range(width + 1):
            line[k] /= top
        for c in range(1, width + 1):
            other, share = factor[j + c], line[c]
            if share != 0.0:
                for k in range(c, width + 1):
                    other[k - c] -= share * line[k]


@apart(void(MATRIX, MAP, LIST, int64, READ, READ, MATRIX), **OWNING)
def _joined(H, B, labels, count, step, tangent, out):
    """out = H + B R B', the lower triangle and more."""
    start, column, value = B
    size = H.shape[0]
    for i in range(size):
        for j in range(size):
            out[i, j] = H[i, j]
    ends = np.zeros(count + 1, dtype=np.int64)
    for k in range(step.size):
        for a in range(start[k], start[k + 1]):
            for b in range(start[k], start[k + 1]):
                out[column[a], column[b]] += step[k] * value[a] * value[b]
        if tangent[k] != 0.0:
            ends[labels[k] + 1] += 1
    for unit in range(count):
        ends[unit + 1] += ends[unit]
    rows, place = np.empty(ends[count], dtype=np.int64), ends.copy()
    for k in range(step.size):
        if tangent[k] != 0.0:
            rows[place[labels[k]]] = k
            place[labels[k]] += 1
    # less what would take a unit off its sphere
    along, some, seen = np.zeros(size), np.empty(size, dtype=np.int64), np.zeros(size, dtype=np.bool_)
    for unit in range(count):
        found = 0
        for r in range(ends[unit], ends[unit + 1]):
            k = rows[r]
            for a in range(start[k], start[k + 1]):
                j = column[a]
                if not seen[j]:
                    seen[j] = True
                    some[found] = j
                    found += 1
                along[j] += math.sqrt(step[k]) * tangent[k] * value[a]
        for a in range(found):
            for b in range(found):
                out[some[a], some[b]] -= along[some[a]] * along[some[b]]
        for a in range(found):
            seen[some[a]], along[some[a]] = False, 0.0


@apart(void(MATRIX, READ, VECTOR), **HOT)
def _by_band(factor, left, z):
    size, band = factor.shape[0], factor.shape[1] - 1
    if band == 0:
        for j in range(size):
            z[j] = left[j] / factor[j, 0]
        return
    for j in range(size):
        z[j] = left[j]
    for j in range(size):
        line = factor[j]
        z[j] /= line[0]
        for k in range(1, min(band, size - 1 - j) + 1):
            z[j + k] -= line[k] * z[j]
    for j in range(size - 1, -1, -1):
        line, total = factor[j], z[j]
        for k in range(1, min(band, size - 1 - j) + 1):
            total -= line[k] * z[j + k]
        z[j] = total / line[0]


@apart(void(LIST, VECTOR, READ, READ, VECTOR), **HOT)
def _turned(labels, dots, step, tangent, seen):
    """seen = R seen."""
    dots[:] = 0.0
    for k in range(seen.size):
        dots[labels[k]] += tangent[k] * seen[k]
    for k in range(seen.size):
        seen[k] = step[k] * (seen[k] - tangent[k] * dots[labels[k]])


@njit(cache=True, **LEAN, **WITHIN)
def _move_rows(domain, h, along, x):
    """x goes along h Z'q within its domain; rows that come to its ends stay there."""
    low, high = domain
    for i in range(x.size):
        wanted = x[i] + h[i] * along[i]
        x[i] = min(max(wanted, low[i]), high[i])
        if x[i] != wanted:
            h[i] = 0.0


@njit(cache=True, **LEAN, **WITHIN)
def _into_balls(units, y, lengths):
    labels, _, radius = units
    _norms(labels, y, lengths)
    for k in range(y.size):
        if radius[k] > 0.0 and lengths[labels[k]] > radius[k]:
            y[k] *= radius[k] / lengths[labels[k]]


@njit(cache=True, **LEAN, **WITHIN)
def _precondition(factor, whole, lapack, left, z):
    if not whole:
        _by_band(factor, left, z)
        return
    for j in range(z.size):
        z[j] = left[j]
    solve_factored(lapack[POTRS], factor, z.size, z)


@njit(cache=True, **KERNEL, **WITHIN)
def _solve(
    data, B, psi, labels, dots, h, e, factor, whole, lapack, step, tangent, most, enough, allowed, q, along, info
):  # fmt: skip
    """Rounds from q = 0 until at most `enough` is left of e, in its length, or the gap e'q / 2 that q leaves at the
    least exceeds what is allowed. along = Z'q. Returns that gap."""
    n, size = along.size, e.size
    left, z, p, image, pulled = np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    scores, bent, seen = np.empty(n), np.empty(n), np.zeros(step.size)
    gap, square, first, made = 0.0, 0.0, 0.0, 0
    q[:] = 0.0
    along[:] = 0.0
    for j in range(size):
        left[j] = -e[j]
        first += e[j] * e[j]
    _precondition(factor, whole, lapack, left, z)
    for j in range(size):
        p[j] = z[j]
        square += left[j] * z[j]
    while square > 0.0 and made < most:
        made += 1
        scores_of(data, p, scores)
        apply_map(B, psi, p, seen)
        _turned(labels, dots, step, tangent, seen)
        apply_adjoint(B, psi, seen, pulled)
        for i in range(n):
            bent[i] = h[i] * scores[i]
        mean_of(data, bent, image)
        info[PRODUCTS] += 2.0
        bend = 0.0
        for j in range(size):
            image[j] += pulled[j]
            bend += p[j] * image[j]
        if not bend > 0.0:
            break
        share = square / bend
        gap += 0.5 * share * square
        before, rest = square, 0.0
        square = 0.0
        for j in range(size):
            q[j] += share * p[j]
            left[j] -= share * image[j]
            rest += left[j] * left[j]
        _precondition(factor, whole, lapack, left, z)
        for j in range(size):
            square += left[j] * z[j]
        for i in range(n):
            along[i] += share * scores[i]
        if rest <= enough * enough * first or gap > allowed:
            break
        for j in range(size):
            p[j] = z[j] + (square / before) * p[j]
    return gap
