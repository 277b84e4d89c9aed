"""One epoch of SDCA-ADMM, blocks and all.

Symbols (the paper's, with a diagonal metric in place of its scalar rho)

===========  ==========================================================================
x            dual variable, one entry per visit (a row seen by one output)
y            dual variable of the penalty, length d
w            primal variable: p features and one intercept slot per output
zx, by       Z x and B y, kept up to date
R            metric, rho times the square of the column scale, one entry per entry of w
c            rho eta_B, one entry per coordinate of B'w, constant on each group
eta          eta_Z without rho, one entry per visit
offset       what is added to the scores, one entry per visit; empty where nothing is
gamma_n      gamma times n
B            B' as CSR: start, column (unsigned, see rows.py), value
psi          bounds of the penalty's blocks; addresses of their prox, params and index; entries
             per row of B' (0 where they vary); bounds of the blocks in the runs, first rows of
             these (a run: rows of B' with one entry each, in columns one after another);
             which blocks have no quadratic term
loss         the number of its closed form (0: none), address of its step, params and their address
===========  ==========================================================================
"""

from __future__ import annotations

import numpy as np

from ..foundation.numerics import CACHE
from .caching import WITHIN, njit
from .calls import call_prox, call_step
from .losses import CLOSED, margin_step, tube_step
from .rows import (
    INLINE,
    KERNEL,
    LEAN,
    four_ahead,
    four_all_products,
    four_products,
    four_size,
    four_subtract,
    four_width,
    locate,
    row_add,
    row_add_scaled,
    row_clear,
    row_dot,
    row_dot_fresh,
)
from .sdca_rows import visit_whole_rows
from .teams import meet

_MARGIN, _TUBE = CLOSED["margin"], CLOSED["tube"]
_AHEAD = 8  # rows: how long before its visit a dense row is asked for,


@njit(cache=True, **LEAN, **WITHIN)
def penalty_step(cy, v, by, u, shrink, step, B, inverse, psi):
    """y-step: c q = c y + B'v with v = w - R r, then c y = c q - prox(c q); refreshes by, leaves the prox in u.

    y is kept multiplied by c, and `inverse` holds one over it, so that nothing is divided here.
    `shrink` and `step` carry a quadratic term: the prox of psi + mu/2 |.|^2 is a prox of psi at a shrunken point with a
    shrunken step. Blocks of B' with one entry (copies) or two (edges) in every row have loops of their own, and so have
    runs. Memory counts here: rows have swept the nearest cache since the last step.
    """
    B_start, B_col, B_val = B
    bounds, prox, params, index, width, in_runs, runs, plain = psi
    by[:] = 0.0
    for b in range(bounds.size - 1):
        first, last = bounds[b], bounds[b + 1]
        base = B_start[first]
        col, val = B_col[base : B_start[last]], B_val[base : B_start[last]]
        y_b, u_b, shrink_b, inverse_b = cy[first:last], u[first:last], shrink[first:last], inverse[first:last]
        if in_runs[b] < in_runs[b + 1]:
            for k in range(in_runs[b], in_runs[b + 1]):
                begin, end = runs[k] - first, min(runs[k + 1], last) - first
                at = np.int64(col[begin])
                y_r, v_r, val_r = y_b[begin:end], v[at : at + end - begin], val[begin:end]
                for e in range(y_r.size):
                    y_r[e] += val_r[e] * v_r[e]
        elif width[b] == 1:
            for e in range(y_b.size):
                y_b[e] += val[e] * v[col[e]]
        elif width[b] == 2:
            for e in range(y_b.size):
                y_b[e] += val[2 * e] * v[col[2 * e]] + val[2 * e + 1] * v[col[2 * e + 1]]
        else:
            for e in range(y_b.size):
                total = 0.0
                for k in range(B_start[first + e] - base, B_start[first + e + 1] - base):
                    total += val[k] * v[col[k]]
                y_b[e] += total
        if plain[b]:
            for e in range(y_b.size):
                u_b[e] = y_b[e]
        else:
            for e in range(y_b.size):
                u_b[e] = y_b[e] * shrink_b[e]
        call_prox(prox[b], last - first, first, u, step, params[b], index[b])
        for e in range(y_b.size):
            y_b[e] -= u_b[e]
        if in_runs[b] < in_runs[b + 1]:
            for k in range(in_runs[b], in_runs[b + 1]):
                begin, end = runs[k] - first, min(runs[k + 1], last) - first
                at = np.int64(col[begin])
                y_r, by_r, val_r, inverse_r = (
                    y_b[begin:end],
                    by[at : at + end - begin],
                    val[begin:end],
                    inverse_b[begin:end],
                )
                for e in range(y_r.size):
                    by_r[e] += val_r[e] * (inverse_r[e] * y_r[e])
        elif width[b] == 1:
            for e in range(y_b.size):
                by[col[e]] += val[e] * (inverse_b[e] * y_b[e])
        elif width[b] == 2:
            add_edges(y_b, inverse_b, col, val, by)
        else:
            for e in range(y_b.size):
                y_e = inverse_b[e] * y_b[e]
                for k in range(B_start[first + e] - base, B_start[first + e + 1] - base):
                    by[col[k]] += val[k] * y_e


@njit(cache=True, **LEAN)
def add_edges(cy, inverse, col, val, by):
    """by += B y for edges, from three places of the list at a time.

    Neighbours in the list share a node, and each sum would wait for the one before it (measured: twice as long).
    """
    part = cy.size // 3
    cy1, cy2, inverse1, inverse2 = cy[part:], cy[2 * part :], inverse[part:], inverse[2 * part :]
    col1, col2, val1, val2 = col[2 * part :], col[4 * part :], val[2 * part :], val[4 * part :]
    for e in range(part):
        y, y1, y2 = inverse[e] * cy[e], inverse1[e] * cy1[e], inverse2[e] * cy2[e]
        by[col[2 * e]] += val[2 * e] * y
        by[col1[2 * e]] += val1[2 * e] * y1
        by[col2[2 * e]] += val2[2 * e] * y2
        by[col[2 * e + 1]] += val[2 * e + 1] * y
        by[col1[2 * e + 1]] += val1[2 * e + 1] * y1
        by[col2[2 * e + 1]] += val2[2 * e + 1] * y2
    for e in range(3 * part, cy.size):
        y = inverse[e] * cy[e]
        by[col[2 * e]] += val[2 * e] * y
        by[col[2 * e + 1]] += val[2 * e + 1] * y


@njit(cache=True, **INLINE)
def one_step(loss, old, product, bend, goal, mass, one):
    """The loss's step for one row, from `old` and the row's product with v."""
    form, address, params, params_address = loss
    if form == _MARGIN:
        return margin_step(bend * old + product, bend, goal, mass, params)
    if form == _TUBE:
        return tube_step(bend * old + product, bend, goal, mass, params)
    new, point, curvature, target, weight = one
    new[0], point[0], curvature[0], target[0], weight[0] = old, old + product / bend, bend, goal, mass
    call_step(address, 1, new, point, curvature, target, weight, params_address)
    return new[0]


@njit(cache=True, **LEAN, **WITHIN)
def visit_one_by_one(rows, layout, target, weight, offset, block, kappa_R, rho, eta, x, v, idle, loss, one):
    """The rows of a block one after another, each seeing in v what those before it changed; see `epoch`."""
    first, last, visits = block
    slot = layout[3]
    single = layout[0] == 1 and layout[2].size == 0
    moved = 0.0
    for at in range(first, last):
        i = visits[at] if visits.size > 0 else at
        row, start = (i, 0) if single else locate(i, layout)
        product = row_dot_fresh(rows, row, v, start) + v[start + slot]
        if offset.size > 0:
            product += offset[i]
        mass = weight[row] if weight.size > 0 else 1.0
        new = one_step(loss, x[i], product, rho * eta[i], target[i], mass, one)
        change = new - x[i]
        if change != 0.0:
            x[i] = new
            moved += eta[i] * change * change
            row_add_scaled(rows, row, -change, v, kappa_R, start)
            v[start + slot] -= kappa_R[start + slot] * change
            idle[i] = 0
        elif idle[i] < 255:
            idle[i] += 1
    return moved


@njit(cache=True, **LEAN, **WITHIN)
def visit_by_fours(rows, layout, target, weight, offset, block, metric, stretch, kappa_R, rho, eta, x, v, idle,
                   loss, team, sums, pairs, one, four, meetings):  # fmt: skip
    """The same for dense rows, four at a time: their products with v and with each other, then the four steps.

    Data is read half as often, and a team can share the columns: they are in as many parts as `sums` has, members add
    up their parts of the products and then all take the same steps, the first for all of them. Fewer members than
    parts (one, where cores are taken) find the same bits. `sums` has two sheets, so that nobody writes where somebody
    may still read.

    The products of the four with each other are in the metric without rho, `stretch` makes up for it. Where all rows
    are visited the fours are always the same, and `pairs` remembers them: a row's with those before it in its four.
    The first row has none, and says with a 1 that they are there.
    """
    first, last, visits = block
    member, members = team[0], team[1]
    slot, p, parts = layout[3], four_width(rows), sums.shape[1]
    which, old, change, total = four
    remembers = visits.size == 0
    far = four_size(rows) > CACHE
    bias, pull = v[slot], kappa_R[slot]
    moved = 0.0
    for begin in range(first, last, 4):
        count = min(4, last - begin)
        for a in range(4):
            at = min(begin + a, last - 1)
            which[a] = visits[at] if visits.size > 0 else at
            old[a] = x[which[a]]
        sheet = sums[meetings % 2]
        known = remembers and pairs[begin, 0] == 1.0
        for part in range(member, parts, members):
            low, high = part * p // parts, (part + 1) * p // parts
            if not known:
                four_all_products(rows, which, low, v[low:high], metric[low:high], sheet[part])
            if remembers:  # the first time, too: the same sums to the same bits
                four_products(rows, which, low, v[low:high], sheet[part])
        meetings = meet(team, meetings)
        for k in range(4 if known else 10):
            total[k] = sheet[0, k]
            for other in range(1, parts):
                total[k] += sheet[other, k]
        if known:
            for a in range(1, count):
                for b in range(a):
                    total[4 + a * (a - 1) // 2 + b] = pairs[begin + a, b]
        elif remembers and member == 0:
            pairs[begin, 0] = 1.0
            for a in range(1, count):
                for b in range(a):
                    pairs[begin + a, b] = total[4 + a * (a - 1) // 2 + b]
        still = True
        for a in range(4):
            change[a] = 0.0
            if far and begin + _AHEAD + a < last:
                later = visits[begin + _AHEAD + a] if visits.size > 0 else begin + _AHEAD + a
                for part in range(member, parts, members):
                    four_ahead(rows, later, part * p // parts, (part + 1) * p // parts)
            if a >= count:
                continue
            i = which[a]
            product = total[a] + bias
            if offset.size > 0:
                product += offset[i]
            for b in range(a):
                product -= (stretch * total[4 + a * (a - 1) // 2 + b] + pull) * change[b]
            mass = weight[i] if weight.size > 0 else 1.0
            new = one_step(loss, old[a], product, rho * eta[i], target[i], mass, one)
            change[a] = new - old[a]
            if change[a] != 0.0:
                still = False
                moved += eta[i] * change[a] * change[a]
            if member == 0:
                x[i] = new
                idle[i] = 0 if change[a] != 0.0 else min(idle[i] + 1, 255)
        if not still:
            for part in range(member, parts, members):
                low, high = part * p // parts, (part + 1) * p // parts
                four_subtract(rows, which, low, change, v[low:high], kappa_R[low:high])
            bias -= pull * (change[0] + change[1] + change[2] + change[3])
    meetings = meet(team, meetings)
    if member == 0:
        v[slot] = bias
    return moved, meetings


@njit(cache=True, **KERNEL, **WITHIN)
def visit_together(rows, layout, target, weight, offset, block, rho, eta, x, zx, v, loss):
    """All rows of a block at once, as in the paper; adds their changes to zx."""
    first, last, visits = block
    slot, size = layout[3], last - first
    point, new, bend, goal, mass = np.empty(size), np.empty(size), np.empty(size), np.empty(size), np.ones(size)
    moved = 0.0
    for at in range(first, last):
        i = visits[at] if visits.size > 0 else at
        row, start = locate(i, layout)
        a = at - first
        bend[a] = rho * eta[i]
        product = row_dot(rows, row, v, start) + v[start + slot]
        if offset.size > 0:
            product += offset[i]
        point[a] = x[i] + product / bend[a]
        goal[a] = target[i]
        new[a] = x[i]
        if weight.size > 0:
            mass[a] = weight[row]
    call_step(loss[1], size, new, point, bend, goal, mass, loss[3])
    for at in range(first, last):
        i = visits[at] if visits.size > 0 else at
        change = new[at - first] - x[i]
        if change != 0.0:
            row, start = locate(i, layout)
            x[i] = new[at - first]
            moved += eta[i] * change * change
            row_add(rows, row, change, zx, start)
            zx[start + slot] += change
    return moved


@njit(cache=True, nogil=True, **KERNEL)
def epoch(
    rows, layout, target, weight, offset, order, bounds, visits, how, kappa, x, y, w, zx, by, u, rho, fixed, eta,
    gamma_n, B, psi, loss, idle, space, fresh, team,
):  # fmt: skip
    """Visit the blocks listed in `order`; returns what moved, as :func:`moves` measures it.

    Block k is made of `visits` from bounds[k] to bounds[k + 1], or of these numbers themselves where the list is
    empty. how: 0, the rows of a block all at once, as in the paper; 1, one after another, each seeing the change of
    those before it (kappa times, the margin that keeps the w-step stable); 2, the same by fours, for dense rows; 3,
    the same with all outputs of a row at once, for losses that see them together. `fixed` are the metric without rho,
    c without rho, and ridge and scale of the penalty times n, one entry per coordinate of B'w. `idle` counts how
    often in a row a visit has changed nothing. Moves are measured from the last call that was `fresh`. `space` is
    scratch memory, shared by the team (see teams.py), of which only the first member takes the penalty's steps; a
    team must visit by fours.
    """
    member, members = team[0], team[1]
    keep = 1.0 - 1.0 / (bounds.size - 1)
    features, entries, sums, pairs = space
    p, d = w.size, y.size
    before, v, start_v, R, KR, undo = (
        features[0][:p], features[1][:p], features[2][:p], features[3][:p], features[4][:p], features[5][:p]
    )  # fmt: skip
    w0, zx0, by0 = features[6][:p], features[7][:p], features[8][:p]
    cy, shrink, step, inverse = entries[0][:d], entries[1][:d], entries[2][:d], entries[3][:d]
    low, high = member * w.size // members, (member + 1) * w.size // members
    if member == 0:
        prepare(fixed, rho, kappa, y, R, KR, undo, cy, shrink, step, inverse)
        if fresh:
            for j in range(w.size):
                w0[j], zx0[j], by0[j] = w[j], zx[j], by[j]
    m = layout[0]
    one = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.ones(m)
    four = np.empty(4, dtype=np.int64), np.empty(4), np.empty(4), np.empty(10)
    moved, meetings = 0.0, 0
    for k in order:
        block = (bounds[k], bounds[k + 1], visits)
        if member == 0:
            for j in range(w.size):
                before[j] = zx[j] + by[j]
                v[j] = w[j] - R[j] * before[j]
            penalty_step(cy, v, by, u, shrink, step, B, inverse, psi)
            for j in range(w.size):
                v[j] = w[j] - R[j] * (zx[j] + by[j])
                start_v[j] = v[j]
        if how == 0:
            moved += visit_together(rows, layout, target, weight, offset, block, rho, eta, x, zx, v, loss)
        elif how == 1:
            moved += visit_one_by_one(rows, layout, target, weight, offset, block, KR, rho, eta, x, v, idle, loss, one)
        elif how == 3:
            moved += visit_whole_rows(rows, layout, target, weight, offset, block, KR, rho, eta, x, v, loss, one)
        else:
            meetings = meet(team, meetings)
            more, meetings = visit_by_fours(
                rows, layout, target, weight, offset, block, fixed[0], kappa * rho, KR, rho, eta, x, v, idle, loss,
                team, sums, pairs, one, four, meetings,
            )  # fmt: skip
            moved += more
            meetings = meet(team, meetings)
        # two loops: one over so many arrays would not be done in vectors
        if how > 0:
            for j in range(low, high):
                zx[j] += undo[j] * (start_v[j] - v[j])
        for j in range(low, high):
            w[j] -= gamma_n * R[j] * (zx[j] + by[j] - keep * before[j])
        meetings = meet(team, meetings)
    if member > 0:
        return moved, 0.0, 0.0, 0.0, 0.0
    for e in range(y.size):
        y[e] = inverse[e] * cy[e]
    return (moved, *moves(w, zx, by, x, w0, zx0, by0, fixed[0], eta))


@njit(cache=True, **LEAN)
def prepare(fixed, rho, kappa, y, R, KR, undo, cy, shrink, step, inverse):
    """What follows from rho: it only scales the metric."""
    metric, c, ridge, scale = fixed
    for j in range(R.size):
        R[j] = rho * metric[j]
        KR[j] = kappa * R[j]
        undo[j] = 1.0 / KR[j] if KR[j] > 0.0 else 0.0
    for e in range(y.size):
        bend = rho * c[e]
        cy[e] = bend * y[e]
        shrink[e] = 1.0 / (1.0 + bend * ridge[e])
        step[e] = bend * scale[e] * shrink[e]
        inverse[e] = 1.0 / bend
        if inverse[e] == np.inf:  # a row of B' without entries, where rho is tiny
            inverse[e] = 0.0


@njit(cache=True, **KERNEL)
def block_bounds(count, size):
    """0, size, 2 size, ... up to count."""
    bounds = np.arange(0, count + size, size)
    bounds[-1] = count
    return bounds


@njit(cache=True, **KERNEL)
def awake(idle, epoch, longest):
    """The visits of an epoch: after every two that changed nothing the next comes half as often, down to 2^-longest."""
    found, count = np.empty(idle.size, dtype=np.int64), 0
    for i in range(idle.size):
        rest = min(np.int64(idle[i]) // 2, longest)
        if (i + epoch) & ((1 << rest) - 1) == 0:
            found[count] = i
            count += 1
    return found[:count].copy()


@njit(cache=True, **LEAN)
def moves(w, zx, by, x, w0, zx0, by0, metric, eta):
    """|w - w0|^2 / metric, |zx - zx0|^2 + |by - by0|^2 times it, |w|^2 / metric, and |x|^2 times eta."""
    primal, dual, size_w, size_x = 0.0, 0.0, 0.0, 0.0
    for j in range(w.size):
        m = metric[j]
        if m > 0.0:
            primal += (w[j] - w0[j]) ** 2 / m
            dual += m * ((zx[j] - zx0[j]) ** 2 + (by[j] - by0[j]) ** 2)
            size_w += w[j] * w[j] / m
    for i in range(x.size):
        size_x += eta[i] * x[i] * x[i]
    return primal, dual, size_w, size_x


@njit(cache=True, nogil=True, **LEAN)
def block_gram(rows, layout, first, last, metric, scale, v, out):
    """S Z_I' M Z_I S for the visits first..last, S the diagonal of `scale`; v is zero before and after."""
    slot = layout[3]
    for i in range(first, last):
        row, start = locate(i, layout)
        row_add_scaled(rows, row, scale[i], v, metric, start)
        v[start + slot] += scale[i] * metric[start + slot]
        for j in range(first, i + 1):
            other, begin = locate(j, layout)
            value = scale[j] * (row_dot(rows, other, v, begin) + v[begin + slot])
            out[i - first, j - first] = value
            out[j - first, i - first] = value
        row_clear(rows, row, v, start)
        v[start + slot] = 0.0


@njit(cache=True, nogil=True, **LEAN)
def block_product(rows, layout, first, last, metric, scale, a, v, out):
    """out = the same matrix times a, without forming it."""
    slot = layout[3]
    v[:] = 0.0
    for i in range(first, last):
        row, start = locate(i, layout)
        weight = a[i - first] * scale[i]
        row_add(rows, row, weight, v, start)
        v[start + slot] += weight
    for j in range(v.size):
        v[j] *= metric[j]
    for i in range(first, last):
        row, start = locate(i, layout)
        out[i - first] = scale[i] * (row_dot(rows, row, v, start) + v[start + slot])
