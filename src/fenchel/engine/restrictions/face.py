"""A problem on a face of its penalty: what is held at zero is dropped, what is held equal is one coordinate.

The face of a set of units of B'w is the linear set w = N z on which they are zero. Where zeros say that single features
are zero, or two of them equal up to sign, N has one signed entry a feature, and what is left is a problem like any
other with k coefficients: the rows are N'z_i, and the penalty sees B'N z on the units that are free. Rows of B'N that
became parallel are merged. A zero that joins more than two features is not held: its row stays in the smaller problem.

Symbols: z coefficients on the face, w = N z; others as in parts.py.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ...penalties import Block, Separable
from ...problem import Problem, tied_features
from ..parts import Vector

Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def unfit(problem: Problem) -> str | None:
    """Why the penalty cannot be restricted unit by unit; None where it can."""
    for block in problem.blocks:
        if not block.function.restrictable:
            return f"{type(block.function).__name__} is not a sum over units that may be dropped"
    return None


class FaceProblem:
    """The problem on the face where the units of the coordinates `zero` of B'w are held.

    Attributes
    ----------
    problem : the smaller problem; its penalty is multiplied by `factor`
    count : its coefficients, without the intercept
    """

    def __init__(self, whole: Problem, zero: Flags, factor: float = 1.0) -> None:
        self.whole, self.zero, self.factor = whole, zero, factor
        (lone, feature), (pairs, left, right, between), others, _ = whole.links
        tied = zero[pairs]
        joined: Any = tied_features
        label, side, torn = joined(left[tied], right[tied], between[tied], whole.p)
        dead = np.zeros(int(label.max(initial=-1)) + 1, dtype=bool)
        dead[label[torn]] = True
        dead[label[feature[zero[lone]]]] = True
        self.alive: Whole = np.flatnonzero(~dead[label])
        some = np.zeros(dead.size, dtype=np.int64)
        some[label[self.alive]] = 1
        self.column: Whole = np.cumsum(some)[label[self.alive]] - 1
        self.side: Vector = side[self.alive]
        self.count = max(int(some.sum()), 1)  # an empty face has one column, of zeros
        self.shares = np.maximum(np.bincount(self.column, minlength=self.count), 1)
        self.kept = ~zero | others

    # -- the penalty -----------------------------------------------------------------------------------

    def _restrict_map(self) -> None:
        """B'N block by block, with the functions that belong to it, and `merges`, which carry y over."""
        whole = self.whole
        place, sign = np.full(whole.p, -1, dtype=np.int64), np.zeros(whole.p)
        place[self.alive], sign[self.alive] = self.column, self.side
        row = whole.entries[0]
        column = place[whole.map.indices]
        use = self.kept[row] & (column >= 0)
        row, column = row[use], column[use]
        value = whole.map.data[use] * sign[whole.map.indices[use]]
        row, column, value = _summed(row, column, value, self.count)
        self.blocks, merges = [], []
        for block, first, last in whole._parts():
            low, high = np.searchsorted(row, (first, last))
            if low == high:
                continue
            start = low + np.flatnonzero(np.diff(row[low:high], prepend=-1))
            entries = _Entries(row[start] - first, start, np.diff(start, append=high), column, value, self.count)
            made, source, target, weight = _restricted(block, entries)
            self.blocks.append(made.times(self.factor) if self.factor != 1.0 else made)
            merges.append((target, first + source, weight, made.d))
        self.merges = merges

    def merged(self, y: Vector) -> Vector:
        """The dual variables of the smaller penalty that belong to those of the whole one."""
        parts = [np.bincount(target, weight * y[source], d) for target, source, weight, d in self.merges]
        return np.concatenate(parts) if parts else np.zeros(0)

    # -- the problem -----------------------------------------------------------------------------------

    @functools.cached_property
    def problem(self) -> Problem:
        self._restrict_map()
        whole = self.whole
        rows = np.zeros((whole.n, self.count))
        if whole.data.sparse:
            from ...kernels.newton import reduce_sparse

            place, sign = np.full(whole.p, -1, dtype=np.int64), np.zeros(whole.p)
            place[self.alive], sign[self.alive] = self.column, self.side
            reduce_sparse(*whole.data.arrays, 0, place, sign, rows)
        else:
            from ...kernels.newton import reduce_dense

            reduce_dense(whole.data.arrays[0], 0, self.alive, self.column, self.side, rows)
        small: Any = Problem(
            rows, whole.target, loss=whole.loss, fit_intercept=whole.fit_intercept,
            sample_weight=whole.weight if whole.weight.size else None,
            offset=whole.offset if whole.offset.size else None,
        )  # fmt: skip
        small._set_blocks(self.blocks)
        return small  # type: ignore[no-any-return]

    # -- points ----------------------------------------------------------------------------------------

    def lift(self, z: Vector) -> Vector:
        """w = N z, with the intercept."""
        w = np.zeros(self.whole.size)
        w[self.alive] = self.side * z[self.column]
        w[-1] = z[-1]
        return w

    def inside(self, w: Vector) -> Vector:
        """z of the point closest to w."""
        z = np.empty(self.count + 1)
        z[:-1] = np.bincount(self.column, self.side * w[self.alive], self.count) / self.shares
        z[-1] = w[-1]
        return z


def _summed(row: Whole, column: Whole, value: Vector, count: int) -> tuple[Whole, Whole, Vector]:
    """Entries that come row by row, those of one place added up, without zeros."""
    key = row * count + column
    if np.any(key[1:] <= key[:-1]):
        order = np.argsort(key, kind="stable")
        key, value = key[order], value[order]
        first = np.flatnonzero(np.diff(key, prepend=-1))
        key, value = key[first], np.add.reduceat(value, first)
        some = value != 0
        key, value = key[some], value[some]
    return key // count, key % count, value


@dataclasses.dataclass
class _Entries:
    """Rows of a sparse matrix, each with the place of its first entry and their number."""

    rows: Whole
    start: Whole
    counts: Whole
    column: Whole
    value: Vector
    columns: int

    def matrix(self, chosen: Any, scale: Vector | float) -> Any:
        """Some of the rows, divided by their scale."""
        counts = self.counts[chosen]
        ends = np.concatenate([[0], np.cumsum(counts)])
        places = np.repeat(self.start[chosen] - ends[:-1], counts) + np.arange(ends[-1])
        value = self.value[places] / (np.repeat(scale, counts) if isinstance(scale, np.ndarray) else scale)
        return sp.csr_array((value, self.column[places], ends), shape=(counts.size, self.columns))


def _restricted(block: Block, entries: _Entries) -> tuple[Block, Whole, Whole, Vector]:
    """A block on some of its rows; and how y is carried over: from row, to row, by which weight."""
    function = block.function
    rows, first, counts = entries.rows, entries.start, entries.counts
    every, same = np.arange(rows.size), np.ones(rows.size)
    own = function.entry_weights(block.d)
    if own is None or block.ridge > 0 or function.limits(block.d) is not None:
        kept = function.restricted(rows)
        return Block(kept, block.scale, block.ridge, entries.matrix(every, 1.0)), rows, every, same
    # rows that are multiples of one another count as one, whose first entry is 1
    scale, column = entries.value[first], entries.column
    second = np.minimum(first + 1, column.size - 1)
    other = np.where(counts > 1, column[second], -1)
    ratio = np.where(counts > 1, entries.value[second] / scale, 0.0)
    alone = np.where(counts > 2, every, -1)  # longer rows are left as they are
    chosen, target = _distinct((alone, ratio, other, column[first]))
    weights = np.bincount(target, np.abs(scale) * own[rows], chosen.size)
    ends = np.full(chosen.size, np.inf)
    separable: Any = Separable
    made = Block(separable(weights, -ends, ends), block.scale, 0.0, entries.matrix(chosen, scale[chosen]))
    return made, rows, target, scale


def _distinct(keys: tuple[Any, ...]) -> tuple[Whole, Whole]:
    """A place for each of the different columns of keys, and which of them every column is."""
    order = np.lexsort(keys)
    new = np.zeros(order.size, dtype=bool)
    new[:1] = True
    for key in keys:
        new[1:] |= key[order[1:]] != key[order[:-1]]
    target = np.empty(order.size, dtype=np.int64)
    target[order] = np.cumsum(new) - 1
    return order[new], target
