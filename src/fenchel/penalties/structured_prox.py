"""A penalty behind its maps, prepared for the kernels that find its prox."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._validate import AnyArray, Array, Flags, Ints, SparseMatrix
from ..foundation.lazy import lazy
from ..foundation.numerics import POWER
from ..maps import spectral_norm
from .base import Penalty
from .block_sum import BlockSum
from .run import compiled_prox
from .separable import Separable

if TYPE_CHECKING:
    pass


def compiled_map(problem: BlockSum) -> tuple[Ints, Ints, Array]:
    """B' on w with its intercept slots, as CSR with the types that the kernels take."""

    def make() -> tuple[Ints, Ints, Array]:
        matrix = problem.map
        slots = problem.entry_slots.astype(np.uint64)
        return matrix.indptr.astype(np.int64), slots, matrix.data.astype(float)

    out: tuple[Ints, Ints, Array] = problem.shared("compiled map", make)
    return out


class CompiledPenalty:
    """The blocks of a problem's penalty as the arrays and addresses that the kernels take.

    Attributes
    ----------
    map, blocks : tuples
        B' as CSR, and per block its rows, entries per row and addresses; see ``kernels/prox.py``.
    scale, ridge : arrays
        Factor and quadratic of the block, one entry per coordinate of B'w.
    norm : float
        An upper bound on the largest eigenvalue of B B'.
    """

    def __init__(self, problem: BlockSum, keep: Sequence[int] | None = None) -> None:
        self.problem = problem
        keep = range(len(problem.blocks)) if keep is None else keep
        bounds = problem.bounds
        counts = np.diff(bounds)
        self.scale = np.repeat([b.scale for b in problem.blocks], counts).astype(float)
        self.ridge = np.repeat([b.ridge for b in problem.blocks], counts).astype(float)
        functions = [problem.blocks[k].function for k in keep]
        self._proxes = [compiled_prox(f) for f in functions]
        self._values = [_compiled_value(f) for f in functions]
        self._arrays = [(f.params, f.index) for f in functions]
        self.blocks = tuple(
            np.array(column, dtype=np.int64)
            for column in (
                [bounds[k] for k in keep],
                [bounds[k + 1] for k in keep],
                [problem.block_widths[k] for k in keep],
                [f.address for f in self._proxes],
                [f.address for f in self._values],
                [params.ctypes.data for params, _ in self._arrays],
                [index.ctypes.data for _, index in self._arrays],
            )
        )

    @lazy
    def map(self) -> tuple[Ints, Ints, Array]:
        return compiled_map(self.problem)

    @lazy
    def norm(self) -> float:
        return spectral_norm(self.problem.map_slots) ** 2

    def steps(self, step: float | Array) -> tuple[Array, Array]:
        """What a prox of all blocks with this step multiplies the point by, and the step of the bare functions."""
        shrink = 1.0 / (1.0 + step * self.ridge)
        return shrink, step * self.scale * shrink

    @property
    def functions(self) -> tuple[Any, ...]:
        """The C functions, some of which may call back into Python."""
        return (*self._proxes, *self._values)

    def check(self) -> None:
        """Raise what a penalty written in Python has raised inside a kernel."""
        check_callbacks(*self.functions)


class StructuredProx(CompiledPenalty):
    """The proximal operator of a problem's whole penalty, prepared for the kernel.

    A quadratic of the features themselves is taken out of the penalty (it only scales the prox), and blocks
    that hold nothing else are left out.

    Attributes
    ----------
    quadratic : array
        The quadratic of w itself, one entry per entry of w.
    separated : bool
        Whether every feature stands in one block at most, so that the prox has a closed form.
    """

    def __init__(self, problem: BlockSum) -> None:
        self.quadratic, self.folded = feature_quadratic(problem)
        joins = problem.block_joins
        keep = [k for k, block in enumerate(problem.blocks) if joins[k] or not block.function.vanishes(block.d)]
        super().__init__(problem, keep)
        self.ridge = self.ridge - self.folded
        counts = np.diff(problem.bounds)
        self._rows = _of_blocks(keep, counts)
        self._units: Ints = problem.units[0]
        self.separated = not any(joins[k] for k in keep) and self._is_separated()
        closed = np.zeros(len(keep), dtype=bool) if self.separated else self._closed_blocks(keep)
        self._dual_rows = _of_blocks(np.array(keep, dtype=int)[~closed], counts)
        self._closed = closed

    @lazy
    def bound(self) -> Array:
        """diag(bound) >= B'B on the rows that have dual variables."""
        return np.ones(self.problem.d) if self.separated else self._bounds()

    @lazy
    def solver(self) -> tuple[Any, ...]:
        """What the kernel takes; see ``kernels/prox.py``. It is compiled for whoever asks."""
        from ..kernels.prox import address

        with_dual, without = (tuple(column[which] for column in self.blocks) for which in (~self._closed, self._closed))
        return (self.map, with_dual, self.scale, self.ridge, self.quadratic, self.bound, self._screened_units(),
                self.separated, without, address(self.separated))  # fmt: skip

    @lazy
    def _kept(self) -> SparseMatrix:
        """B' of the blocks that have dual variables; the other rows are empty."""
        return sp.csr_array(sp.diags_array(self._dual_rows.astype(float)) @ self.problem.map_slots)

    def _closed_blocks(self, keep: list[int]) -> Flags:
        """Which of the blocks that are kept are simple in w itself, beside others that join features.

        Their features must differ; so that of two on the same features the first one is taken.
        """
        problem, taken = self.problem, np.zeros(self.problem.size, dtype=bool)
        closed = np.zeros(len(keep), dtype=bool)
        joins = problem.block_joins
        if not any(joins[k] for k in keep):
            return closed
        for place, k in enumerate(keep):
            if joins[k]:
                continue
            rows = np.arange(problem.bounds[k], problem.bounds[k + 1])
            if self._is_simple(rows):
                features = self.map[1][self.map[0][rows]]
                if not taken[features].any():
                    closed[place] = taken[features] = True
        return closed

    def _is_separated(self) -> bool:
        return self._is_simple(np.flatnonzero(self._rows))

    def _is_simple(self, rows: Ints) -> bool:
        """Whether these rows of B' only rename and scale features, each at most once and alike within a unit."""
        start, column, value = self.map
        if np.any(start[rows + 1] - start[rows] != 1):
            return False
        entries = start[rows]
        features = column[entries].astype(np.int64)
        if not value[entries].all() or np.bincount(features, minlength=1).max() > 1:
            return False
        return all(_constant(values, self._units[rows]) for values in (value[entries] ** 2, self.quadratic[features]))

    def _bounds(self) -> Array:
        """diag(c) >= B'B, constant on each unit: the norm, or the bound of Pock and Chambolle (2011) if smaller."""
        size = abs(self._kept)
        c = size @ np.asarray(size.sum(axis=0)).ravel()
        largest = np.zeros(self._units.max(initial=-1) + 1)
        np.maximum.at(largest, self._units, c)
        c = largest[self._units] * (1 + 1e-9)
        # chains and grids meet the cheap bound, and are where the norm itself is slow to find
        if _rough_square_norm(self._kept) < 0.8 * c[self._dual_rows].mean():
            top = spectral_norm(self._kept) ** 2
            c = np.full_like(c, top) if top < c[self._dual_rows].mean() else c
        return np.maximum(c, max(1e-12 * c.max(initial=0.0), 1e-300))

    def _screened_units(self) -> tuple[AnyArray, ...]:
        """Units that may be found to be zero before the dual is solved; none where the argument does not hold.

        It needs every block to shrink each of its features towards zero.
        """
        kept = [(b, first) for b, first in zip(self.problem.blocks, self.problem.bounds, strict=False)
                if self._rows[first]]  # fmt: skip
        first, last, radius, absolute = [], [], [], []
        if all(_renames(b.matrix) and _shrinks(b.function) for b, _ in kept):
            for block, begin in kept:
                function: Any = block.function
                groups = not isinstance(function, Separable)
                ends = function.bounds if groups else np.arange(block.d + 1)
                first.append(begin + ends[:-1])
                last.append(begin + ends[1:])
                radius.append(block.scale * function.weights)
                absolute.append(np.full(len(ends) - 1, function.kernel == "group_linf"))
        columns = ((first, np.int64), (last, np.int64), (radius, float), (absolute, bool))
        return tuple(np.concatenate([np.zeros(0), *parts]).astype(kind) for parts, kind in columns)

    def dual(self, slope: Array, w: Array) -> Array:
        """Subgradients of all blocks, quadratics included, from the kernel's slope at w."""
        if not self.folded.any():
            return slope
        out: Array = slope + self.folded * self.problem.penalised(w)
        return out


def _of_blocks(which: Any, counts: Ints) -> Flags:
    """The rows of B' that belong to these blocks."""
    some = np.zeros(counts.size, dtype=bool)
    some[which] = True
    return np.repeat(some, counts)


def check_callbacks(*functions: Any) -> None:
    """Raise what a function written in Python has raised inside a kernel."""
    from ..kernels.compiled import raise_errors

    raise_errors(*functions)


def _compiled_value(function: Penalty) -> Any:
    """The value of a penalty as a C function, or a callback into Python."""
    from ..kernels import compiled, values
    from ..kernels.calls import PROX_CTYPE

    if function.kernel is not None and function.value_kernel is not None:
        return compiled.compile_prox(getattr(values, function.value_kernel))

    def value(d: int, u: Any, out: Any, params: Any, index: Any) -> None:
        out[0] = function.value(np.ctypeslib.as_array(u, shape=(d,)).copy())

    return compiled.Callback(PROX_CTYPE, value)


def _renames(matrix: SparseMatrix) -> bool:
    """Whether every row of the map is a multiple of one feature."""
    return bool(np.all(np.diff(matrix.indptr) == 1) and np.all(matrix.data != 0))


def _shrinks(function: Penalty) -> bool:
    """Whether the function pulls every coordinate towards zero, and its units' dual balls are known here."""
    if isinstance(function, Separable):
        return bool(np.all(function.lower <= 0) and np.all(function.upper >= 0))
    return function.kernel in ("group_l2", "group_linf")


def _rough_square_norm(matrix: SparseMatrix) -> float:
    """The square of the largest singular value, from below and to some per cent: power iterations."""
    vector = np.random.default_rng(0).standard_normal(matrix.shape[1])
    value, back = 0.0, sp.csr_array(matrix.T)
    for _ in range(POWER):
        length = np.linalg.norm(vector)
        if length == 0:
            break
        image = matrix @ (vector / length)
        value, vector = float(image @ image), back @ image
    return value


def _constant(values: Array, labels: Ints) -> bool:
    """Whether values agree, up to rounding, wherever labels do."""
    if not values.size or bool((labels[1:] > labels[:-1]).all()):
        return True
    low, high = np.full(labels.max() + 1, np.inf), np.zeros(labels.max() + 1)
    np.minimum.at(low, labels, values)
    np.maximum.at(high, labels, values)
    return bool(np.all(high[labels] <= low[labels] * (1 + 1e-12)))


def feature_quadratic(problem: BlockSum) -> tuple[Array, Array]:
    """The quadratics of single features: their sum per entry of w, and which ridge per row of B' was taken."""
    quadratic, folded = np.zeros(problem.size), np.zeros(problem.d)
    for block, first, joins in zip(problem.blocks, problem.bounds[:-1], problem.block_joins, strict=True):
        if block.ridge > 0 and not joins:
            matrix = problem.map_slots[first : first + block.d]
            quadratic += block.ridge * np.asarray(matrix.power(2).sum(axis=0)).ravel()
            folded[first : first + block.d] = block.ridge
    return quadratic, folded
