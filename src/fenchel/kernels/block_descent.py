"""Block descent on a quadratic model with groups, every block brought to its least (see ``unit_groups.py``).

A block of G is brought into the form Q T Q' with a tridiagonal T when its unit is first moved. Then the least of the
model along the unit costs a few products with Q and some sweeps along T, and the q of all coordinates is touched once.

Sums stand in loops that write nothing: otherwise their order depends on where in memory the arrays are.

Symbols: the coordinates of unit k are start[k] to start[k + 1]; Q and T are at basis[places[k]:] once ready[k] is
negative, and it counts the visits before;
plain[k] tells whether the unit's penalty is its norm alone.
"""

from __future__ import annotations

import math

import numpy as np
from numba import float64, int64, void

from ..foundation.numerics import DIGITS, ROUNDING
from .apart import HOT, INSIDE, MATRIX, READ, READ2, READ_LIST, VECTOR, apart, load_called
from .caching import njit
from .rows import LEAN
from .rules import LOOSE
from .unit_groups import gap_of_groups

SOLVED = 80  # entries of G that could be read while one coordinate of a unit is solved for (measured: 60 to 100)
RENT = 4  # visits, times its coordinates, after which a unit's block is reduced; larger: sooner
MOST_INSIDE = 10  # proximal steps inside a unit, before the others are looked at; more help nobody if they move


@apart(void(int64, VECTOR, int64, VECTOR), **HOT)
def reduce_block(size, basis, base, work):
    """The block in `work` as Q T Q' with a tridiagonal T, by Householder's reflections I - u u', whose product is Q.

    Q' goes row by row to basis[base:], behind it T's diagonal and what is beside it. `work` has room for a vector
    behind the block.
    """
    main, image = base + size * size, size * size
    side = main + size
    for i in range(size):
        for j in range(size):
            basis[base + i * size + j] = 1.0 if i == j else 0.0
    for k in range(size - 2):
        row, total = k * size, 0.0
        basis[main + k] = work[row + k]
        for j in range(k + 1, size):
            total += work[row + j] * work[row + j]
        lead = work[row + k + 1]
        length = -math.sqrt(total) if lead > 0.0 else math.sqrt(total)
        basis[side + k] = length
        square = total - length * lead  # half of the square of u before it is scaled
        if not square > 0.0:
            for j in range(k + 1, size):
                work[row + j] = 0.0
            continue
        work[row + k + 1] = lead - length
        scale = 1.0 / math.sqrt(square)
        for j in range(k + 1, size):
            work[row + j] *= scale
        half = 0.0
        for i in range(k + 1, size):
            total = 0.0
            for j in range(k + 1, size):
                total += work[i * size + j] * work[row + j]
            work[image + i] = total
            half += 0.5 * total * work[row + i]
        for i in range(k + 1, size):
            work[image + i] -= half * work[row + i]
        for i in range(k + 1, size):
            mine, other = work[row + i], work[image + i]
            for j in range(k + 1, size):
                work[i * size + j] -= mine * work[image + j] + other * work[row + j]
    if size > 1:
        k = size - 2
        basis[main + k] = work[k * size + k]
        basis[side + k] = work[k * size + k + 1]
    basis[main + size - 1] = work[size * size - 1]
    basis[side + size - 1] = 0.0
    for k in range(size - 3, -1, -1):  # Q' = ... H_1 H_0, made from the right
        row = k * size
        for i in range(k + 1, size):
            total, own = 0.0, base + i * size
            for j in range(k + 1, size):
                total += basis[own + j] * work[row + j]
            for j in range(k + 1, size):
                basis[own + j] -= total * work[row + j]


@apart(float64(READ, int64, int64), **HOT)
def largest_eigenvalue(basis, main, size):
    """Of the tridiagonal matrix whose diagonals are at basis[main:], from above to a relative 1e-3: by bisection, in
    which the signs of the pivots of T - c I tell whether an eigenvalue is above c (Sturm)."""
    low, high, side = 0.0, 0.0, main + size
    for i in range(size):
        before = abs(basis[side + i - 1]) if i > 0 else 0.0
        beside = abs(basis[side + i]) if i + 1 < size else 0.0
        high = max(high, basis[main + i] + before + beside)
        low = max(low, basis[main + i])
    while high - low > 1e-3 * high:
        middle = 0.5 * (low + high)
        above, pivot = False, -1.0
        for i in range(size):
            before = basis[side + i - 1] if i > 0 else 0.0
            pivot = basis[main + i] - middle - before * before / pivot
            if pivot >= 0.0:
                above = True
                break
        if above:
            low = middle
        else:
            high = middle
    return high


@apart(void(int64, int64, float64, READ, int64, float64, VECTOR, VECTOR), **HOT)
def least_of_block(first, size, weight, basis, base, start, space, work):
    """The least of  v'Hv/2 - b'v + weight |v|  for the block H = Q T Q' and b in space[first:], where the answer goes.

    With r = |v| it is v = r s, (r H + weight I) s = b, |s| = 1. As 1/|s| is a concave function of r that grows (a power
    mean with exponent -2 of functions that are linear in r), Newton's method for 1/|s| = 1 comes to the left of the
    root in one step and then climbs to it. It begins at r = `start`.

    It may stop before: v = r s is the least of the model with (|v|^2/r + r)/2 for |v|, which is never below |v|, and
    whose least over v is convex in r; so every r between the norm that v had and the root makes the model fall. (From
    the right of the root Newton's method leaps over it; when a twentieth of the miss is left, it is near enough.)
    """
    length, bent, main = 0.0, 0.0, base + size * size
    side, b, inverse, s = main + size, 0, size, 2 * size
    for j in range(first, first + size):
        length += space[j] * space[j]
    length = math.sqrt(length)
    if length <= weight:
        for j in range(first, first + size):
            space[j] = 0.0
        return
    for i in range(size):  # b in the basis of T
        total, row = 0.0, base + i * size
        for j in range(size):
            total += basis[row + j] * space[first + j]
        work[b + i] = total
    widest = 0.0
    for j in range(size):
        widest = max(widest, basis[main + j])
    most = (length - weight) / (ROUNDING * widest)
    # the step from r = 0, where 1/|s| = weight / |b| and its slope is b'Hb / |b|^3, is left of the root too
    for j in range(size):
        total = basis[main + j] * work[b + j]
        if j + 1 < size:
            total += 2.0 * basis[side + j] * work[b + j + 1]
        bent += total * work[b + j]
    low = min((length - weight) * length * length / bent, most) if bent > 0.0 else most
    r = min(max(start, low), most)
    miss = 0.0
    for turn in range(50):
        # (r T + weight) s = b by pivots, which are positive
        pivot = r * basis[main] + weight
        work[inverse] = 1.0 / pivot
        work[s] = work[b]
        for j in range(1, size):
            beside = r * basis[side + j - 1]
            factor = beside * work[inverse + j - 1]
            pivot = max(r * basis[main + j] + weight - factor * beside, ROUNDING * weight)
            work[inverse + j] = 1.0 / pivot
            work[s + j] = work[b + j] - factor * work[s + j - 1]
        work[s + size - 1] *= work[inverse + size - 1]
        for j in range(size - 2, -1, -1):
            beside = r * basis[side + j] * work[inverse + j]
            work[s + j] = work[s + j] * work[inverse + j] - beside * work[s + j + 1]
        square = 0.0
        for j in range(size):
            square += work[s + j] * work[s + j]
        norm = math.sqrt(square)
        if turn == 0:
            miss = abs(norm - 1.0)
        if abs(norm - 1.0) <= max(LOOSE * miss, DIGITS) or turn == 49:
            break
        # s'(r H + weight)^-1 H s = (s's - weight s'(r H + weight)^-1 s) / r
        ahead, along = work[s], work[s] * work[s] * work[inverse]
        for j in range(1, size):
            ahead = work[s + j] - r * basis[side + j - 1] * work[inverse + j - 1] * ahead
            along += ahead * ahead * work[inverse + j]
        bent = (square - weight * along) / r
        if not bent > 0.0:
            break
        r = min(max(r + (norm - 1.0) * square / bent, low), most)
    for j in range(size):
        space[first + j] = 0.0
    for i in range(size):
        value, row = r * work[s + i], base + i * size
        for j in range(size):
            space[first + j] += value * basis[row + j]


@njit(**{**INSIDE, **HOT})
def _take_block(G, first, size, work):
    for i in range(size):
        for j in range(size):
            work[i * size + j] = G[first + i, first + j]


@njit(**{**INSIDE, **HOT})
def step_of_unit(G, at, q, v, l1, lower, upper, start, norm, bend, k, plain, base, basis, ready, space, work):
    """Put the new values of unit k into space: its least with the others as they are, where its penalty is a norm alone
    (`plain`); otherwise some proximal steps inside the unit. The block of a unit that begins at `at` stands at the
    beginning of G."""
    first = start[k]
    size, own = start[k + 1] - first, start[k] - at
    if size == 1:
        h = np.float64(G[own, own])
        goal, cut = h * v[first] - q[first], l1[first] + norm[k]
        new = goal - cut if goal > cut else goal + cut if goal < -cut else 0.0
        space[first] = min(max(new / h, lower[first]), upper[first])
        return
    live, pull = 0.0, 0.0
    for j in range(first, first + size):
        live += v[j] * v[j]
        pull += q[j] * q[j]
    if plain[k] and live == 0.0 and math.sqrt(pull) <= norm[k]:
        for j in range(first, first + size):
            space[j] = 0.0
        return
    # proximal steps cost some products with the block, and its Q about as many as the block has coordinates: a unit
    # that is not visited often does without
    if plain[k] and ready[k] >= 0 and ready[k] < size // RENT:
        ready[k] += 1
    elif plain[k]:
        for i in range(first, first + size):
            total = 0.0
            if live > 0.0:
                for j in range(first, first + size):
                    total += G[i - at, j - at] * v[j]
            space[i] = total - q[i]
        if ready[k] >= 0:
            _take_block(G, own, size, work)
            reduce_block(size, basis, base, work)
            ready[k] = -1
        least_of_block(first, size, norm[k], basis, base, math.sqrt(live), space, work)
        return
    elif ready[k] >= 0:
        _take_block(G, own, size, work)
        reduce_block(size, basis, base, work)
        bend[k] = min(bend[k], largest_eigenvalue(basis, base + size * size, size))
        ready[k] = -1
    L, begun = bend[k], 0.0
    for j in range(size):
        work[j] = q[first + j]
        space[first + j] = v[first + j]
    for turn in range(MOST_INSIDE):
        length = 0.0
        for j in range(size):
            goal, cut = space[first + j] - work[j] / L, l1[first + j] / L
            new = goal - cut if goal > cut else goal + cut if goal < -cut else 0.0
            work[size + j] = min(max(new, lower[first + j]), upper[first + j])
        for j in range(size):
            length += work[size + j] * work[size + j]
        length = math.sqrt(length)
        keep = 1.0 if norm[k] == 0.0 else max(0.0, 1.0 - norm[k] / (L * length)) if length > 0.0 else 0.0
        moved = 0.0
        for j in range(size):
            work[size + j] = keep * work[size + j] - space[first + j]
            space[first + j] += work[size + j]
        for j in range(size):
            moved += work[size + j] * work[size + j]
        if turn == 0:
            begun = moved
        if moved <= LOOSE * LOOSE * begun or turn + 1 == MOST_INSIDE:
            return
        for i in range(size):
            f = work[size + i]
            if f != 0.0:
                for j in range(size):
                    work[j] += f * G[own + i, own + j]


@apart(float64(int64, READ2, MATRIX), **HOT)
def mixture(m, past, products):
    """The weights of the last points but the first, in the last column of `products`, with which their steps are the
    least together; the sum of the weights, 0 where there are none."""
    depth, trace = products.shape[0], 0.0
    for a in range(depth):
        for b in range(a + 1):
            total = 0.0
            for j in range(m):
                total += (past[a + 1, j] - past[a, j]) * (past[b + 1, j] - past[b, j])
            products[a, b] = total
            products[b, a] = total
        trace += products[a, a]
    for a in range(depth):
        products[a, a] += 1e-10 * trace / depth
        products[a, depth] = 1.0
    for a in range(depth):  # elimination; the matrix is positive definite
        if not products[a, a] > 0.0:
            return 0.0
        for b in range(a + 1, depth):
            factor = products[b, a] / products[a, a]
            for c in range(a + 1, depth + 1):
                products[b, c] -= factor * products[a, c]
    total = 0.0
    for a in range(depth - 1, -1, -1):
        for c in range(a + 1, depth):
            products[a, depth] -= products[a, c] * products[c, depth]
        products[a, depth] /= products[a, a]
        total += products[a, depth]
    return total if abs(total) < np.inf else 0.0


@apart(
    float64(int64, VECTOR, VECTOR, READ, READ, READ, READ_LIST, READ, READ2, MATRIX, MATRIX, VECTOR), **HOT
)  # fmt: skip
def extrapolate(m, q, v, l1, lower, upper, start, norm, past, slopes, products, space):
    """The combination of the last points whose step is the least (Anderson, 1965), if the model is lower there and it
    is within the bounds; returns what is gained."""
    depth, total = products.shape[0], mixture(m, past, products)
    if total == 0.0:
        return 0.0
    for j in range(m):
        new = 0.0
        for a in range(depth):
            new += products[a, depth] * past[a + 1, j]
        space[j] = new / total
        if space[j] < lower[j] or space[j] > upper[j]:
            return 0.0
    gain = 0.0
    for k in range(start.size - 1):
        size, before = 0.0, 0.0
        for j in range(start[k], start[k + 1]):
            size += space[j] * space[j]
            before += v[j] * v[j]
            gain += l1[j] * (abs(space[j]) - abs(v[j]))
        gain += norm[k] * (math.sqrt(size) - math.sqrt(before))
    for j in range(m):
        new = 0.0
        for a in range(depth):
            new += products[a, depth] * slopes[a + 1, j]
        slopes[0, j] = new / total
    for j in range(m):
        # the model's value at a point relative to another one follows from its slopes at both
        gain += 0.5 * (space[j] - v[j]) * (slopes[0, j] + q[j])
    if gain < 0.0:
        for j in range(m):
            v[j] = space[j]
            q[j] = slopes[0, j]
        return -gain
    return 0.0


@njit(cache=True, **LEAN)
def settle(G, m, q, v, l1, lower, upper, start, norm, bend, plain, places, basis, ready, space, work, past, slopes,
           products, target, budget):  # fmt: skip
    """Passes of block descent until the model's gap is at most `target`, the work is above a budget, or nothing is
    gained any more; as often as `past` has room for, Anderson's extrapolation is tried, in the room of `products`.
    Returns the gap, and what was gained.

    Work is counted in entries of G that are read, or what takes as long: steps inside a unit take SOLVED for each of
    its coordinates and 3 for each pair of them. (A pass is no function of its own: that took a second to compile.)
    """
    depth, spent, gap, kept, total = past.shape[0] - 1, 0, np.inf, 0, 0.0
    while True:
        if kept == 0:
            for j in range(m):
                past[0, j] = v[j]
                slopes[0, j] = q[j]
        gained = 0.0
        for k in range(start.size - 1):
            if bend[k] <= 0.0:
                continue
            first, last = start[k], start[k + 1]
            step_of_unit(
                G, 0, q, v, l1, lower, upper, start, norm, bend, k, plain, places[k], basis, ready, space, work
            )
            size, before = 0.0, 0.0
            for j in range(first, last):
                size += space[j] * space[j]
                before += v[j] * v[j]
            if size == 0.0 and before == 0.0:
                continue
            spent += (last - first) * (SOLVED + 3 * (last - first))
            gained += norm[k] * (math.sqrt(before) - math.sqrt(size))
            for j in range(first, last):
                new = space[j]
                step = new - v[j]
                if step != 0.0:
                    row = G[j]
                    gained -= step * (q[j] + 0.5 * np.float64(row[j]) * step) + l1[j] * (abs(new) - abs(v[j]))
                    v[j] = new
                    spent += m
                    for i in range(m):
                        q[i] += step * row[i]
        total += gained
        kept += 1
        gap = gap_of_groups(q, v, l1, lower, upper, start, norm, bend)
        if gap <= target or gained <= 0.0 or spent >= budget or not gap < np.inf:
            return gap, total
        for j in range(m):
            past[kept, j] = v[j]
            slopes[kept, j] = q[j]
        if kept == depth:
            kept = 0
            total += extrapolate(m, q, v, l1, lower, upper, start, norm, past, slopes, products, space)


load_called(settle.py_func)  # which is called from Python, with G of either precision, and may come from the cache
