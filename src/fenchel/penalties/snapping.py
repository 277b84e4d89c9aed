"""Answers near an answer whose zeros, ties and ranks are exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_solve_banded, cholesky_banded

from .._validate import Array, Flags, Ints, SparseMatrix
from ..foundation.numerics import BALANCED
from ..maps.gram import is_full, solve_of, squares
from .block_sum import _NONE, BlockSum, _once_per_map


class Snapping(BlockSum):
    """A sum of blocks that makes the structure of an answer exact: zeros, ties, ranks, limits."""

    def snaps(self, w: Array, u: Array, *, brief: bool = False) -> Iterator[Array]:
        """Answers close to w in which the structure of u = prox(...) is exact, the plainest first; `brief` leaves out
        what takes a system of equations."""
        yield self.snap(w, u)
        yield from self.restored(w, u, brief=brief)

    def restored(self, w: Array, u: Array, *, brief: bool = False) -> Iterator[Array]:
        """Answers close to w in which that structure is exact beyond zeros and ties."""
        if self.renames:
            # u is w itself: whatever a penalty does to it is exact
            exact = w.copy()
            exact[self.entry_slots] = u / self.map.data
            yield exact
        restored = self._restore(w, u, brief)
        if restored is not w:
            yield self.snap(restored, u)

    @_once_per_map
    def links(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints, Ints, Array], Flags, list[Any] | list[bool]]:
        """What zeros of B'w say of features: rows with one entry, and its feature; rows that join two features by
        entries of one size, these, and the sign between them; whether a row says anything else; and per block whether
        all its rows have one entry."""
        counts, start = self.widths, self.map.indptr[:-1]
        lone, pairs = np.flatnonzero(counts == 1), np.flatnonzero(counts == 2)
        left, right = self.map.data[start[pairs]], self.map.data[start[pairs] + 1]
        even = np.abs(left) == np.abs(right)
        others = counts > 1
        others[pairs[even]] = False
        pairs, first = pairs[even], start[pairs[even]]
        sign = -np.sign(left[even] * right[even])
        alone = [last > first and bool(np.all(counts[first:last] == 1)) for _, first, last in self._parts()]
        joined = pairs, self.map.indices[first], self.map.indices[first + 1], sign
        return (lone, self.map.indices[start[lone]]), joined, others, alone

    def _restore(self, w: Array, u: Array, brief: bool) -> Array:
        """w moved to the ranks of u and, where zero rows of B' join more than two features, to its zeros."""
        values, counts, changed = w[self.feature_slots], self.widths, False
        for block, first, last in self._parts():
            if np.all(counts[first:last] == 1):
                entries = slice(self.map.indptr[first], self.map.indptr[last])
                column, entry = self.map.indices[entries], self.map.data[entries]
                at = entry * values[column]
                restored = block.function.restore(at, u[first:last])
                if restored is not at:
                    values[column], changed = restored / entry, True
        zero = np.flatnonzero((u == 0) & (counts > 0))  # an empty row asks for nothing
        if not brief and np.any(counts[zero] > 2):
            values, changed = self._without(zero, values), True
        if not changed:
            return w
        w = w.copy()
        w[self.feature_slots] = values
        return w

    def _without(self, zero: Ints, values: Array) -> Array:
        """The values nearest to the given ones for which these rows of B' are zero."""
        place = np.full(self.d, -1)
        place[zero] = np.arange(zero.size)
        row = place[self.entries[0]]
        own = row >= 0
        row, column, entry = row[own], self.map.indices[own], self.map.data[own]
        entry = entry / np.sqrt(np.bincount(row, entry**2).astype(float))[row]
        rows = sp.csr_array((entry, (row, column)), shape=(zero.size, values.size))
        solve = None if is_full(rows) else _by_band(row, column, entry, zero.size)
        if solve is None:
            solve = _by_pivots(rows)
        for _ in range(3):
            left = solve(np.bincount(row, entry * values[column], zero.size).astype(float, copy=False))
            values = values - np.bincount(column, entry * left[row], values.size)
        return values

    def snap(self, w: Array, u: Array) -> Array:
        """w with the zeros and ties of u = prox(...) made exact: zero features are 0.0, equal ones equal bits."""
        zero = u == 0
        (lone, feature), (pairs, left, right, between), _, alone = self.links
        joined = np.flatnonzero(zero[pairs])
        a, b, sign = [left[joined]], [right[joined]], [between[joined]]
        # and the ties that a penalty finds among its own
        for (block, first, last), own in zip(self._parts(), alone, strict=True):
            i, j, kind = block.function.ties(u[first:last]) if own else (_NONE, _NONE, _NONE)
            if i.size:
                entries = slice(self.map.indptr[first], self.map.indptr[last])
                entry, column = self.map.data[entries], self.map.indices[entries]
                even = np.abs(entry[i]) == np.abs(entry[j])
                a.append(column[i[even]])
                b.append(column[j[even]])
                sign.append((kind * np.sign(entry[i] * entry[j]))[even])
        values, gone = w[self.feature_slots], feature[zero[lone]]
        if joined.size or len(a) > 1:
            label, side, torn = tied_features(np.concatenate(a), np.concatenate(b), np.concatenate(sign), values.size)
            total, size = np.bincount(label, side * values), np.bincount(label)
            tied = size[label] > 1
            values[tied] = (side * (total / np.maximum(size, 1))[label])[tied]
            dead = np.zeros(size.size, dtype=bool)
            dead[label[torn]] = True
            dead[label[gone]] = True
            gone = dead[label]
        values[gone] = 0.0
        w = w.copy()
        w[self.feature_slots] = values
        return w

    def within(self, w: Array) -> Array:
        """w brought inside the limits that the penalty sets to features, and to differences of two of them; it is
        changed in place."""
        for block, first in zip(self.blocks, self.bounds, strict=False):
            limits = block.function.limits(block.d)
            if limits is not None:
                rows = self.map_slots[first : first + block.d]
                if np.all(np.diff(rows.indptr) == 1):
                    _clip_products(w, rows.indices, rows.data, *limits)
        if self._orders is not None:
            _put_in_order(w, *self._orders)
        return w

    @_once_per_map
    def _orders(self) -> tuple[Ints, Ints] | None:
        """Pairs of slots the first of which may not be below the second; None where there are none."""
        counts, start = self.widths, self.map.indptr[:-1]
        above, below = [], []
        for block, first, last in self._parts():
            limits = block.function.limits(block.d)
            pairs = first + np.flatnonzero(counts[first:last] == 2)
            if limits is None or not pairs.size:
                continue
            left, right = self.entry_slots[start[pairs]], self.entry_slots[start[pairs] + 1]
            difference = self.map.data[start[pairs]] == -self.map.data[start[pairs] + 1]
            rising = self.map.data[start[pairs]] > 0  # whether the first of the two counts as it is
            for limit, up in zip(limits, (True, False), strict=True):
                some = difference & (limit[pairs - first] == 0)
                above.append(np.where(rising == up, left, right)[some])
                below.append(np.where(rising == up, right, left)[some])
        if not any(part.size for part in above):
            return None
        return np.concatenate(above), np.concatenate(below)


def _by_band(row: Ints, column: Ints, entry: Array, count: int) -> Callable[[Array], Array] | None:
    """A solve with R R' for rows R, where rows that share features are neighbours; None where they are not, or some
    depend on others. Sparse matrices take longer to make than such a band to solve."""
    order = np.argsort(column, kind="stable")
    row, column, entry = row[order], column[order], entry[order]
    pairs, sums = [], []
    for apart in range(int(np.bincount(column).max())):
        shared = np.flatnonzero(column[apart:] == column[: column.size - apart])
        low, high = row[shared], row[shared + apart]
        pairs.append((high - low) * count + low)
        sums.append(entry[shared] * entry[shared + apart])
    width = max(int(each.max(initial=0)) for each in pairs) // count + 1
    if width * count > 2 * sum(map(len, pairs)):
        return None
    band = np.bincount(np.concatenate(pairs), np.concatenate(sums), width * count).reshape(width, count)
    band[0] += BALANCED
    try:
        factor = cholesky_banded(band, overwrite_ab=True, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    if factor[0].min() <= math.sqrt(BALANCED):
        return None
    return lambda right: np.asarray(cho_solve_banded((factor, True), right, check_finite=False))


def _by_pivots(rows: SparseMatrix) -> Callable[[Array], Array]:
    """The same for any rows."""
    gram = squares(sp.csr_array(rows.T))
    return solve_of(sp.csc_array(gram + sp.diags_array(np.full(rows.shape[0], BALANCED))))


def _clip_products(w: Array, slots: Ints, factor: Array, low: Array, high: Array) -> None:
    """Bring w there that the products factor * w lie within limits, rounding included."""
    at = np.clip(factor * w[slots], low, high) / factor
    for _ in range(2):  # a quotient may be wrong in its last digit
        product = factor * at
        out = (product < low) | (product > high)
        if not out.any():
            break
        towards = np.where((product < low) == (factor > 0), np.inf, -np.inf)
        at = np.where(out, np.nextafter(at, towards), at)
    w[slots] = at


def _put_in_order(w: Array, above: Ints, below: Ints) -> None:
    """Raise w where an order is broken, until none is; what rounding breaks is mended in a few passes."""
    for _ in range(above.size + 1):
        broken = w[above] < w[below]
        if not broken.any():
            break
        np.maximum.at(w, above[broken], w[below[broken]])


def tied_features(a: Ints, b: Ints, sign: Array, count: int) -> tuple[Ints, Array, Ints]:
    """Components of features joined by w_a = sign w_b: their labels, each feature's side (1 or -1), and the features
    of components that ask for w = -w."""
    if not a.size:
        return np.arange(count), np.ones(count), np.zeros(0, dtype=np.int64)
    from ..kernels.ties import join

    label, side, torn = join(a.astype(np.int64), b.astype(np.int64), sign, count)
    return label, side, np.flatnonzero(torn[label])
