"""A problem on a face of its penalty: what is held at zero is dropped, what is held equal is one coordinate.

The face of a set of units of B'w is the linear set w = N z on which they are zero. Where zeros say that single features
are zero, or two of them equal up to sign, N has one signed entry a feature, and what is left is a problem like any
other with k coefficients: the rows are N'z_i, and the penalty sees B'N z on the units that are free. Rows of B'N that
became parallel are merged. A zero that joins more than two features is not held: its row stays in the smaller problem.

Symbols: z coefficients on the face, w = N z; others as in parts.py.
"""

from __future__ import annotations

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
        self.whole, self.factor = whole, factor
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
        """B'N block by block, with the functions that belong to it, and `merge`, which carries y over."""
        whole = self.whole
        place, sign = np.full(whole.p, -1, dtype=np.int64), np.zeros(whole.p)
        place[self.alive], sign[self.alive] = self.column, self.side
        row = whole.entries[0]
        column = place[whole.map.indices]
        use = self.kept[row] & (column >= 0)
        row, column = row[use], column[use]
        value = whole.map.data[use] * sign[whole.map.indices[use]]
        reduced = sp.csr_array((value, (row, column)), shape=(whole.d, self.count))
        reduced.sum_duplicates()
        reduced.eliminate_zeros()
        self.blocks, merges = [], []
        for block, first, last in whole._parts():
            own = reduced[first:last]
            rows = np.flatnonzero(np.diff(own.indptr))
            if not rows.size:
                continue
            made, source, target, weight = _restricted(block, own[rows], rows)
            self.blocks.append(made.times(self.factor) if self.factor != 1.0 else made)
            merges.append(sp.csr_array((weight, (target, first + source)), shape=(made.d, whole.d)))
        self.merge = sp.vstack(merges, format="csr") if merges else sp.csr_array((0, whole.d))

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


def _restricted(block: Block, matrix: Any, rows: Whole) -> tuple[Block, Whole, Whole, Vector]:
    """A block on some of its rows; and how y is carried over: from row, to row, by which weight."""
    function = block.function
    weights = function.entry_weights(block.d)
    if weights is None or block.ridge > 0 or function.limits(block.d) is not None:
        kept = Block(function.restricted(rows), block.scale, block.ridge, matrix)
        return kept, rows, np.arange(rows.size), np.ones(rows.size)
    first = matrix.indptr[:-1]
    scale = matrix.data[first]
    # rows that are multiples of one another count as one, whose first entry is 1
    counts = np.diff(matrix.indptr)
    second = np.minimum(first + 1, matrix.indices.size - 1)
    other = np.where(counts > 1, matrix.indices[second], -1)
    ratio = np.where(counts > 1, matrix.data[second] / scale, 0.0)
    alone = np.where(counts > 2, np.arange(rows.size), -1)  # longer rows are left as they are
    keys = np.column_stack([matrix.indices[first], other, ratio, alone])
    _, chosen, target = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    target = target.ravel()
    weights = np.bincount(target, np.abs(scale) * weights[rows], chosen.size).astype(float, copy=False)
    merged = sp.csr_array(sp.diags_array(1.0 / scale[chosen]) @ matrix[chosen])
    ends = np.full(chosen.size, np.inf)
    separable: Any = Separable
    made = Block(separable(weights, -ends, ends), block.scale, 0.0, merged)
    return made, rows, target, scale
