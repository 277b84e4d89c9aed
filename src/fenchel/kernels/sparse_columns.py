"""Some columns of sparse data: taken out of all rows, their products, their Gram matrix, and descent without one.

A compact matrix has the rows of the data (or, turned, its columns) and entries `values`, `places`, `ends` as in CSR.
Places are read as unsigned numbers: otherwise numba tests every one for being negative.
"""

from __future__ import annotations

import numpy as np

from .caching import njit
from .rows import KERNEL


@njit(cache=True, **KERNEL)
def compact(data, indices, indptr, place, values, places, ends):
    """The entries whose column has a place (not -1), row by row; returns how many they are."""
    count = 0
    ends[0] = 0
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            at = place[np.uint32(indices[k])]
            values[count] = data[k]
            places[count] = at
            count += np.int64(at >= 0)
        ends[i + 1] = count
    return count


@njit(cache=True, **KERNEL)
def turn(values, places, ends, out_values, out_places, out_ends):
    """Rows to columns, or back; `out_ends` has one entry more than there are columns."""
    out_ends[:] = 0
    last = ends.size - 1
    for k in range(ends[last]):
        out_ends[np.uint32(places[k]) + 1] += 1
    for j in range(out_ends.size - 1):
        out_ends[j + 1] += out_ends[j]
    for i in range(last):
        for k in range(ends[i], ends[i + 1]):
            j = np.uint32(places[k])
            at = out_ends[j]
            out_values[at] = values[k]
            out_places[at] = i
            out_ends[j] = at + 1
    for j in range(out_ends.size - 1, 0, -1):
        out_ends[j] = out_ends[j - 1]
    out_ends[0] = 0


@njit(cache=True, **KERNEL)
def rows_times(values, places, ends, vector, out):
    """out_i = row i times the vector."""
    for i in range(ends.size - 1):
        total = 0.0
        for k in range(np.uint32(ends[i]), np.uint32(ends[i + 1])):
            total += values[k] * vector[np.uint32(places[k])]
        out[i] = total


@njit(cache=True, **KERNEL)
def sum_rows(values, places, ends, factor, out):
    """out = the sum of the rows, times their factors."""
    out[:] = 0.0
    for i in range(ends.size - 1):
        f = factor[i]
        for k in range(np.uint32(ends[i]), np.uint32(ends[i + 1])):
            out[np.uint32(places[k])] += f * values[k]


@njit(cache=True, **KERNEL)
def gram(values, places, ends, weight, G, m):
    """G[:m, :m] = the weighted sum of the rows' outer products."""
    for i in range(m):
        G[i, :m] = 0.0
    for i in range(ends.size - 1):
        first, last = np.uint32(ends[i]), np.uint32(ends[i + 1])
        for k in range(first, last):
            f = weight[i] * values[k]
            row = G[np.uint32(places[k])]
            for l in range(first, k + 1):
                row[np.uint32(places[l])] += f * values[l]
    # the columns of a row come in any order, so that both triangles hold parts
    for i in range(m):
        for j in range(i):
            both = G[i, j] + G[j, i]
            G[i, j] = both
            G[j, i] = both


@njit(cache=True, **KERNEL)
def block_bends(values, places, ends, weight, ridge, centre, total, units, space, out):
    """For every unit a bound of the curvature of its block: the largest sum of sizes in a row, or the root of the sum
    of squares. `space` has an entry per row of the data, all zero."""
    for u in range(out.size):
        widest, square = 0.0, 0.0
        for j in range(units[u], units[u + 1]):
            for k in range(ends[j], ends[j + 1]):
                space[places[k]] = weight[places[k]] * values[k]
            row = 0.0
            for l in range(units[u], units[u + 1]):
                entry = ridge[j] if l == j else 0.0
                for k in range(ends[l], ends[l + 1]):
                    entry += values[k] * space[places[k]]
                if total > 0.0:
                    entry -= centre[j] * centre[l] / total
                row += abs(entry)
                square += entry * entry
            widest = max(widest, row)
            for k in range(ends[j], ends[j + 1]):
                space[places[k]] = 0.0
        out[u] = min(widest, np.sqrt(square))


@njit(cache=True, **KERNEL)
def descend_columns(values, places, ends, weight, bend, slope, ridge, centre, total, start, v, l1, lower, upper, rest,
                    sums, active, moving):  # fmt: skip
    """One pass of coordinate descent on the model of ``units.py`` whose curvature is not made: it is the columns'
    X'diag(weight)X + diag(ridge) - centre centre'/total (no last term where total is zero).

    `slope` is the gradient at `start`. `rest` is diag(weight) X (v - start), and sums[0] is centre'(v - start); both
    are kept up to date. `active` says to visit only what is not zero. Returns an estimate of the model's gap, as in
    :func:`fenchel.kernels.units.model_gap`: of the pass as a whole, which looks smaller than it is where the first
    coordinates do the work of all, or of v itself where nothing is `moving`.
    """
    loose, size, ratio, single = 0.0, 0.0, 1.0, 0.0
    for j in range(v.size):
        old = v[j]
        if bend[j] <= 0.0 or (active and old == 0.0):
            continue
        q = slope[j] + ridge[j] * (old - start[j])
        first, last = np.uint32(ends[j]), np.uint32(ends[j + 1])
        for k in range(first, last):
            q += values[k] * rest[np.uint32(places[k])]
        if total > 0.0:
            q -= centre[j] * sums[0] / total
        own = l1[j] * abs(old)
        size += own
        over = abs(q) - l1[j]
        end = upper[j] if q < 0.0 else -lower[j]
        if over > 0.0 and end < np.inf:
            loose += own + old * q + end * over
        elif l1[j] > 0.0:
            loose += own + old * q
            if over > 0.0:
                ratio = max(ratio, abs(q) / l1[j])
                single = max(single, 0.5 * over * over / bend[j])
        elif ridge[j] > 0.0:
            loose += 0.5 * q * q / ridge[j]
        goal = old * bend[j] - q
        new = 0.0
        if goal > l1[j]:
            new = (goal - l1[j]) / bend[j]
        elif goal < -l1[j]:
            new = (goal + l1[j]) / bend[j]
        new = min(max(new, lower[j]), upper[j])
        step = new - old
        if l1[j] == 0.0 and ridge[j] == 0.0 and end == np.inf:
            loose += 0.5 * bend[j] * step * step
        if moving and step != 0.0:
            v[j] = new
            for k in range(first, last):
                i = np.uint32(places[k])
                rest[i] += step * weight[i] * values[k]
            sums[0] += step * centre[j]
    return max(loose, 0.0) + (1.0 - 1.0 / ratio) * size + single


@njit(cache=True, **KERNEL)
def descend_group_columns(values, places, ends, weight, bend, slope, ridge, centre, total, start, v, l1, lower, upper,
                          rest, sums, active, moving, units, norm, space):  # fmt: skip
    """The same for groups: unit k is units[k] to units[k + 1], and bend[k] bounds the curvature of its block."""
    loose, size, ratio, single = 0.0, 0.0, 1.0, 0.0
    for k in range(norm.size):
        before, after, over = 0.0, 0.0, 0.0
        for j in range(units[k], units[k + 1]):
            before += v[j] * v[j]
        if bend[k] <= 0.0 or (active and before == 0.0):
            continue
        before = np.sqrt(before)
        size += norm[k] * before
        loose += norm[k] * before
        for j in range(units[k], units[k + 1]):
            q = slope[j] + ridge[j] * (v[j] - start[j])
            for e in range(np.uint32(ends[j]), np.uint32(ends[j + 1])):
                q += values[e] * rest[np.uint32(places[e])]
            if total > 0.0:
                q -= centre[j] * sums[0] / total
            loose += l1[j] * abs(v[j]) + v[j] * q
            size += l1[j] * abs(v[j])
            goal, cut = v[j] - q / bend[k], l1[j] / bend[k]
            new = goal - cut if goal > cut else goal + cut if goal < -cut else 0.0
            new = min(max(new, lower[j]), upper[j])
            space[j] = new
            after += new * new
            beyond, end = max(abs(q) - l1[j], 0.0), upper[j] if q < 0.0 else -lower[j]
            if end < np.inf:
                loose += end * beyond
            else:
                over += beyond * beyond
        after, over = np.sqrt(after), np.sqrt(over)
        if over > norm[k]:
            ratio = max(ratio, over / norm[k]) if norm[k] > 0.0 else ratio
            single = max(single, 0.5 * (over - norm[k]) ** 2 / bend[k])
        if not moving:
            continue
        keep = 1.0 if norm[k] == 0.0 else max(0.0, 1.0 - norm[k] / (bend[k] * after)) if after > 0.0 else 0.0
        for j in range(units[k], units[k + 1]):
            step = keep * space[j] - v[j]
            if step != 0.0:
                v[j] += step
                if keep == 0.0:
                    v[j] = 0.0
                for e in range(np.uint32(ends[j]), np.uint32(ends[j + 1])):
                    i = np.uint32(places[e])
                    rest[i] += step * weight[i] * values[e]
                sums[0] += step * centre[j]
    return max(loose, 0.0) + (1.0 - 1.0 / ratio) * size + single
