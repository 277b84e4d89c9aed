"""psi(B'w) as a sum of blocks: the map, the values and the conjugate, on the flat vector w of all outputs.

`w` is one flat vector: for every output (or task) its p features and then its intercept, which the penalty never sees.
This is all that the prox of a whole penalty needs; a problem adds data and loss to it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Ints, SparseMatrix
from ..foundation.lazy import lazy
from ..foundation.numerics import UNIT
from ..maps import Gram, is_shared_identity
from .base import Penalty
from .compile import Block, scale_blocks, unit_blocks

if TYPE_CHECKING:
    pass

_NONE = np.zeros(0, dtype=np.int64)


def _once_per_map(method: Callable[..., Any]) -> Any:
    """A property that is found once for all problems on the same data and map, whatever their alpha."""

    name = method.__name__

    def get(self: BlockSum) -> Any:
        known = self._of_map
        if name not in known:
            known[name] = method(self)
        return known[name]

    get.__doc__ = method.__doc__
    return property(get)


class BlockSum:
    """alpha psi(B'w) in blocks, for `vectors` outputs of `p` features each.

    Attributes
    ----------
    blocks : list of Block
        The penalty, compiled: see ``penalties/compile.py``.
    map : CSR matrix
        B' on the features alone, block after block.
    single : bool
        Whether coefficients are one vector of shape (p,), and the intercept is a number.
    """

    penalty: Penalty | None
    alpha: float
    p: int
    vectors: int
    single: bool
    size: int
    _unit_blocks: list[Block]

    def _compile(self, penalty: Penalty | None, alpha: float, p: int, vectors: int, single: bool) -> None:
        self.penalty, self.alpha = penalty, alpha
        self.p, self.vectors, self.single, self.size = p, vectors, single, vectors * (p + 1)
        self._unit_blocks = unit_blocks(penalty, vectors * p)
        self._set_blocks(scale_blocks(self._unit_blocks, alpha))

    @lazy
    def blocks(self) -> list[Block]:
        """The penalty, compiled: see ``penalties/compile.py``."""
        return scale_blocks(self._unit_blocks, self.alpha)

    def _set_blocks(self, blocks: list[Block]) -> None:
        self.blocks, features = blocks, self.vectors * self.p
        self._of_map: dict[str, object] = {}  # what follows from data and map alone; see `_once_per_map`
        self.map = _stacked([b.matrix for b in blocks], features)  # B' on the features alone
        ends = [0, *itertools.accumulate([b.d for b in blocks])]
        self.bounds, self._spans = np.array(ends), list(itertools.pairwise(ends))

    @lazy
    def feature_slots(self) -> np.ndarray:
        """The places of the coefficients in w."""
        return np.arange(self.size).reshape(self.vectors, self.p + 1)[:, :-1].flatten()

    @lazy
    def intercept_slots(self) -> np.ndarray:
        """The places of the intercepts in w."""
        return np.arange(self.p, self.size, self.p + 1)

    @_once_per_map
    def widths(self) -> Ints:
        """Entries in every row of B'."""
        out: Ints = np.diff(self.map.indptr)
        return out

    @_once_per_map
    def block_widths(self) -> list[int]:
        """Per block the entries in every row of B', or 0 where rows differ."""
        parts = [self.widths[first:last] for first, last in self._spans]
        return [int(own[0]) if own.size and bool((own == own[0]).all()) else 0 for own in parts]

    @_once_per_map
    def block_joins(self) -> list[bool]:
        """Per block whether some row of B' joins several features."""
        return [bool((self.widths[first:last] > 1).any()) for first, last in self._spans]

    @_once_per_map
    def widest(self) -> int:
        """Features that a row of B' joins, at the most."""
        return int(self.widths.max(initial=0))

    @_once_per_map
    def map_slots(self) -> sp.csr_array:
        """B' on w with its intercept slots."""
        return sp.csr_array(
            (self.map.data.copy(), self.feature_slots[self.map.indices], self.map.indptr.copy()),
            shape=(self.map.shape[0], self.size),
        )

    @_once_per_map
    def adjoint(self) -> sp.csr_array:
        """B, with its intercept slots."""
        return self.map_slots.T.tocsr()

    @_once_per_map
    def entry_slots(self) -> Ints:
        """The slot of w that every entry of B' meets."""
        out: Ints = self.feature_slots[self.map.indices]
        return out

    def penalised(self, w: Array) -> Array:
        """B'w, what the penalty looks at."""
        w = _vector("w", w, self.size)
        if self._is_w:
            return w[: self.p].copy()
        # a sparse matrix takes longer to make than most products with it
        out: Array = self.map.data * w[self.entry_slots]
        if self._picks:
            return out
        out = np.bincount(self.entries[0], out, self.d).astype(float, copy=False)
        if self._rounded_limits is not None:
            self._settle(out, w)
        return out

    @_once_per_map
    def _rounded_limits(self) -> tuple[Ints, Array, Array] | None:
        """Rows of B' whose sums round, and which have limits; None where there are none. A product does not pass a
        limit by rounding, and a difference of two numbers has the right sign."""
        limited = [(block.function.limits(block.d), first, last) for block, first, last in self._parts()]
        if all(limits is None for limits, _, _ in limited):
            return None
        counts, start = self.widths, self.map.indptr[:-1]
        pairs = np.flatnonzero(counts == 2)
        exact = counts <= 1
        exact[pairs[self.map.data[start[pairs]] == -self.map.data[start[pairs] + 1]]] = True
        low, high = np.full(self.d, -np.inf), np.full(self.d, np.inf)
        for limits, first, last in limited:
            if limits is not None:
                low[first:last], high[first:last] = limits
        sign_only = ((low == 0) | np.isinf(low)) & ((high == 0) | np.isinf(high))
        rows = np.flatnonzero(~(exact & sign_only) & (counts > 1) & (np.isfinite(low) | np.isfinite(high)))
        return (rows, low[rows], high[rows]) if rows.size else None

    def _settle(self, u: Array, w: Array) -> None:
        """Put entries of u = B'w that pass a limit by no more than their own rounding on that limit."""
        rows, low, high = self._rounded_limits
        inside = np.clip(u[rows], low, high)
        beyond = np.flatnonzero(inside != u[rows])
        if beyond.size:
            own = self.map_slots[rows[beyond]]
            terms = abs(own) @ np.abs(w)
            near = np.abs(inside - u[rows])[beyond] <= UNIT * (np.diff(own.indptr) + 1) * terms
            u[rows[beyond[near]]] = inside[beyond[near]]

    def spread(self, y: Array) -> Array:
        """B y, on all slots of w."""
        y = _vector("y", y, self.d)
        y = y if self._picks else y[self.entries[0]]
        out: Array = np.bincount(self.entry_slots, self.map.data * y, self.size).astype(float, copy=False)
        return out

    def shared(self, what: str, make: Callable[[], Any]) -> Any:
        """What somebody derives from the data and the map alone, made once for all problems that share them."""
        if what not in self._of_map:
            self._of_map[what] = make()
        return self._of_map[what]

    def remembered(self, what: str, make: Callable[[], Any]) -> Any:
        """What somebody derives from this very problem, made once."""
        store = self.__dict__.setdefault("_remembered", {})
        if what not in store:
            store[what] = make()
        return store[what]

    @property
    def d(self) -> int:
        out: int = self.map.shape[0]
        return out

    def pack(self, coef: Array, intercept: Array | float = 0.0) -> Array:
        """One flat w from coefficients (p,) or (vectors, p) and intercepts."""
        w = np.zeros(self.size)
        coef = np.asarray(coef, dtype=float)
        if coef.size != self.vectors * self.p:
            raise ValueError(f"coef has shape {coef.shape}; expected {self.vectors} vector(s) of {self.p}")
        w[self.feature_slots] = coef.ravel()
        w[self.intercept_slots] = np.asarray(intercept, dtype=float)
        return w

    def unpack(self, w: Array) -> tuple[Array, float | Array]:
        """Coefficients and intercept, as (p,) and a number for one output."""
        if self.single:
            return w[: self.p].copy(), float(w[self.p])
        return w[self.feature_slots].reshape(self.vectors, self.p), w[self.intercept_slots]

    def penalty_value(self, u: Array) -> float:
        """alpha psi at u = B'w."""
        return float(sum(b.value(u[first:last]) for b, first, last in self._parts()))

    @_once_per_map
    def units(self) -> tuple[Ints, int]:
        """The unit that every coordinate of B'w belongs to, counted through all blocks, and how many there are."""
        labels, count = [], 0
        for block in self.blocks:
            own = _numbered(np.asarray(block.function.units(block.d), dtype=np.int64))
            labels.append(count + own)
            count += int(own.max(initial=-1)) + 1
        return np.concatenate(labels or [_NONE]), count

    def feature_units(self) -> Array:
        """The units in which the penalty measures every feature, relative to the others: in other units the numbers
        v = units * w, and the columns divided by them, would be the same.

        The largest entry of B' (times the weight of an l1 norm) that a feature meets; 1 where it meets none.
        """
        size = np.abs(self.map.data)
        for block, first, last in self._parts():
            some = slice(self.map.indptr[first], self.map.indptr[last])
            weights = block.function.entry_weights(block.d)
            if weights is not None and weights.any():
                size[some] *= np.repeat(weights, np.diff(self.map.indptr[first : last + 1]))
            positive = size[some][size[some] > 0]
            size[some] /= np.exp(np.mean(np.log(positive))) if positive.size else 1.0  # every block counts alike
        units = np.zeros(self.map.shape[1])
        np.maximum.at(units, self.map.indices, size)
        return np.where(units > 0, units, 1.0)

    def _parts(self) -> Iterator[tuple[Block, int, int]]:
        return ((block, *span) for block, span in zip(self.blocks, self._spans, strict=True))

    def penalty_conjugate(self, y: Array) -> float:
        """psi*(y), for y already divided by n."""
        return float(sum(b.conjugate(y[first:last]) for b, first, last in self._parts()))

    def gauge(self, y: Array) -> float:
        return max((b.gauge(y[first:last]) for b, first, last in self._parts()), default=0.0)

    @_once_per_map
    def gram(self) -> Gram:
        return Gram(self.map)

    @_once_per_map
    def entries(self) -> tuple[Ints, Array]:
        """The row and the size of every entry of B'."""
        return np.repeat(np.arange(self.d), self.widths), np.abs(self.map.data)

    @_once_per_map
    def map_squares(self) -> SparseMatrix:
        """The squares of the entries of `map_slots`."""
        return self.map_slots.power(2)

    @property
    def _is_w(self) -> bool:
        """Whether the penalty looks at the coefficients of one output as they are."""
        return self.vectors == 1 and is_shared_identity(self.map)

    @property
    def is_plain(self) -> bool:
        """Whether the penalty is one function of the coefficients of one output as they are."""
        return len(self.blocks) == 1 and self._is_w

    @_once_per_map
    def _picks(self) -> bool:
        """Whether every row of B' is a multiple of one feature."""
        return self._is_w or bool((self.map.indptr[1:] - self.map.indptr[:-1] == 1).all())

    @_once_per_map
    def renames(self) -> bool:
        """Whether B' only reorders and scales the features."""
        columns, matrix = self.map.shape[1], self.map
        if self._is_w:
            return True
        if not (self._picks and self.d == columns and np.square(matrix.data).all()):
            return False
        return bool((np.bincount(matrix.indices, minlength=columns) == 1).all())

    @_once_per_map
    def pins(self) -> bool:
        """Whether every feature has a row of B' of its own, so that no direction is without penalty."""
        alone = self.map.indptr[:-1][self.widths == 1]
        alone = alone[np.square(self.map.data[alone]) > 0]
        return bool((np.bincount(self.map.indices[alone], minlength=self.map.shape[1]) > 0).all())

    def gauge_without_ridge(self, y: Array) -> float:
        return max((b.gauge_without_ridge(y[i:j]) for b, i, j in self._parts()), default=0.0)


def _numbered(labels: Ints) -> Ints:
    """Labels numbered from 0 in their order, without gaps."""
    steps = np.diff(labels)
    if labels.size and labels[0] == 0 and steps.min(initial=0) >= 0 and steps.max(initial=0) <= 1:
        return labels
    return np.unique(labels, return_inverse=True)[1]


def _stacked(matrices: list[SparseMatrix], columns: int) -> SparseMatrix:
    """Matrices one under the other, each row in order and without duplicates."""
    if not matrices:
        return sp.csr_array((0, columns))
    if len(matrices) == 1 and (is_shared_identity(matrices[0]) or _is_stacked(matrices[0])):
        return matrices[0]
    data, indices = (np.concatenate([getattr(matrix, name) for matrix in matrices]) for name in ("data", "indices"))
    ends = np.cumsum(np.concatenate([[0], *(np.diff(matrix.indptr) for matrix in matrices)]), dtype=indices.dtype)
    stacked = sp.csr_array((data, indices, ends), shape=(ends.size - 1, columns))
    stacked.sum_duplicates()
    return stacked


def _is_stacked(matrix: SparseMatrix) -> bool:
    """Whether a matrix is such a stack by itself."""
    return type(matrix) is sp.csr_array and matrix.indices.dtype == np.int32 and bool(matrix.has_canonical_format)


def _vector(name: str, values: Array, length: int) -> Array:
    """A float vector of that length: a kernel would read past the end of a shorter one."""
    values = np.ascontiguousarray(values, dtype=float)
    if values.shape != (length,):
        raise ValueError(f"{name} has shape {values.shape}; expected ({length},)")
    return values
