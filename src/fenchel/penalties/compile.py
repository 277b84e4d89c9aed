"""What a penalty becomes for the solver: blocks, each a function with a cheap prox behind a sparse matrix.

Parts of a sum on the same coordinates are merged where their sum still has one (the l1 norm, bounds, and a quadratic
with anything); what has no effect is left out.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Ints, SparseMatrix
from ..maps import Identity, is_shared_identity
from .base import Penalty, unbounded
from .groups import _Groups
from .separable import L1, Ridge, Separable, _SeparableLeaf


@dataclasses.dataclass
class Block:
    """scale * function(u) + ridge/2 |u|^2 on the coordinates u = matrix @ w."""

    function: Penalty
    scale: float
    ridge: float
    matrix: SparseMatrix
    before_copies: tuple[SparseMatrix, SparseMatrix] = (
        None,
        None,
    )  # of groups: the map behind the copies, and the copies

    @property
    def d(self) -> int:
        out: int = self.matrix.shape[0]
        return out

    def times(self, factor: float) -> Block:
        """This block multiplied; bounds stay where they are."""
        function, scale = self.function, self.scale
        if isinstance(function, Separable):
            function = function.times(factor)
        else:
            scale = factor * scale
        return Block(function, scale, factor * self.ridge, self.matrix, self.before_copies)

    def smallest(self) -> float:
        """The smallest number by which it could lose a coordinate, if that becomes zero."""
        if self.ridge > 0:
            return self.ridge
        return float(self.function.weights.min()) if isinstance(self.function, Separable) else self.scale

    def value(self, u: Array) -> float:
        return self.scale * self.function.value(u) + 0.5 * self.ridge * float(u @ u)

    def at_zero(self) -> float:
        """The value at u = 0."""
        return self.scale * self.function.value_at_zero(self.d)

    def conjugate(self, y: Array) -> float:
        if self.ridge > 0:
            # the maximiser of u'y - psi(u) - ridge/2 |u|^2 is a prox
            u = self.prox(y / self.ridge, np.full(self.d, self.scale / self.ridge))
            return float(u @ y) - self.value(u)
        if self.scale == 0:
            return 0.0 if not np.any(y) else np.inf
        return self.scale * self.function.conjugate(y / self.scale)

    def prox(self, u: Array, step: float | Array) -> Array:
        return self.function.prox(u, step)

    def gauge(self, y: Array) -> float:
        """The function's gauge; 0 where a quadratic makes every y feasible."""
        return 0.0 if self.ridge > 0 else self.gauge_without_ridge(y)

    def gauge_without_ridge(self, y: Array) -> float:
        if self.scale == 0:
            return 0.0 if not np.any(y) else np.inf
        return self.function.gauge(y) / self.scale

    def zero_gauge(self, y: Array) -> float:
        """The smallest multiple of the block at which y lets u = 0 be the answer."""
        if self.scale == 0:
            return 0.0 if not np.any(y) else np.inf
        return self.function.zero_gauge(y) / self.scale

    def rounding(self, y: Array, moved: Array, at: Array) -> tuple[float, float]:
        """What a move of y by at most `moved` may add to its gauge, and to the conjugate within its domain; the answer
        has u near `at`."""
        if self.ridge > 0:
            u = np.abs(self.prox(y / self.ridge, np.full(self.d, self.scale / self.ridge)))
            return 0.0, float(moved @ (u + 0.5 * moved / self.ridge))
        if self.scale == 0:
            return 0.0, float(moved @ np.abs(at))
        held, rise = self.function.rounding(y / self.scale, moved / self.scale, at)
        return held, self.scale * rise

    def steepest_at(self, sizes: Array) -> float:
        """At least what the value rises by where every coordinate moves by its size, within the limits."""
        return self.scale * self.function.growth(sizes) + self.ridge * float(sizes @ sizes)

    def bound_violations(self, y: Array) -> Ints:
        return self.function.bound_violations(y) if self.ridge == 0 else np.zeros(0, dtype=np.int64)


def compile_penalty(penalty: Penalty | None, p: int, alpha: float) -> list[Block]:
    """The blocks of alpha * penalty on p features, merged where their sum has a cheap prox."""
    return scale_blocks(unit_blocks(penalty, p), alpha)


def scale_blocks(blocks: list[Block], alpha: float) -> list[Block]:
    """Blocks multiplied by alpha, without those that then have no effect; a block that stays whole keeps its matrix."""
    return [pruned for pruned in (_prune(block.times(alpha)) for block in blocks) if pruned is not None]


def unit_blocks(penalty: Penalty | None, p: int) -> list[Block]:
    """The blocks of a penalty on p features, alpha left out."""
    blocks: list[Block] = []
    ridges: list[tuple[float, sp.csr_array]] = []
    for scale, leaf, map_ in [] if penalty is None else penalty.terms(p):
        matrix = map_.shared(p) if type(map_) is Identity else map_.matrix(p)
        if isinstance(leaf, Ridge):
            ridges.append((scale, matrix))
        elif isinstance(leaf, _SeparableLeaf):
            _check_size(leaf, matrix)
            _add_separable(blocks, leaf.separable(matrix.shape[0], scale), matrix)
        elif isinstance(leaf, _Groups):
            held = leaf.held(matrix.shape[0])
            if held is not None:
                _add_separable(blocks, L1(np.where(held, np.inf, 0.0)).separable(matrix.shape[0], scale), matrix)
                kept = leaf.without_held()
                if kept is None:
                    continue
                leaf = kept
            copies = leaf.copies_matrix(matrix.shape[0])
            copied = matrix if is_shared_identity(copies) else copies
            if copied is copies and type(map_) is not Identity:
                copied = sp.csr_array(copies @ matrix)
            blocks.append(Block(leaf.localised(), scale, 0.0, copied, (matrix, copies)))
        else:
            _check_size(leaf, matrix)
            blocks.append(Block(leaf.sized(matrix.shape[0]), scale, 0.0, matrix))
    for scale, matrix in ridges:
        if scale > 0 and not any(_merge_ridge(block, scale, matrix) for block in blocks):
            d = matrix.shape[0]
            blocks.append(Block(Separable(np.zeros(d), *unbounded(d)), 1.0, scale, matrix))
    return [pruned for pruned in map(_prune, blocks) if pruned is not None]


def _add_separable(blocks: list[Block], own: Separable, matrix: SparseMatrix) -> None:
    """A function of single coordinates, in the block that has them if there is one."""
    for block in blocks:
        if isinstance(block.function, Separable) and _same(block.matrix, matrix):
            block.function = block.function + own
            return
    blocks.append(Block(own, 1.0, 0.0, matrix))


def _check_size(leaf: Penalty, matrix: SparseMatrix) -> None:
    size = leaf.size()
    if size is not None and size != matrix.shape[0]:
        weighted = getattr(leaf, "weights", None) is not None
        what = f"{leaf!r} has weights for" if weighted else f"{leaf!r} acts on"
        raise ValueError(
            f"{what} {size} coordinates, but here there are {matrix.shape[0]}: features times outputs or tasks, or the "
            "rows of the map that it stands behind"
        )


def _same(a: SparseMatrix, b: SparseMatrix) -> bool:
    return a is b or (
        a.shape == b.shape
        and a.nnz == b.nnz
        and np.array_equal(a.indptr, b.indptr)
        and np.array_equal(a.indices, b.indices)
        and np.array_equal(a.data, b.data)
    )


def _reorders(matrix: SparseMatrix) -> bool:
    """Whether the map only reorders the features, perhaps with signs: it keeps Euclidean lengths."""
    rows, columns = matrix.shape
    once = rows == columns == matrix.nnz and np.all(np.diff(matrix.indptr) == 1)
    return bool(once and np.all(np.abs(matrix.data) == 1) and np.unique(matrix.indices).size == columns)


def _merge_ridge(block: Block, scale: float, matrix: SparseMatrix) -> bool:
    """Add scale/2 |matrix w|^2 to the block if it can carry it; True on success."""
    if _same(block.matrix, matrix) or (_reorders(block.matrix) and _reorders(matrix)):
        block.ridge += scale
        return True
    inner, copies = block.before_copies
    if inner is not None and _same(inner, matrix):
        # m copies of every feature, each carrying a share 1/m of the quadratic
        counts = np.bincount(copies.indices, minlength=copies.shape[1])
        if np.all(counts == counts[0]) and counts[0] > 0:
            block.ridge += scale / counts[0]
            return True
    return False


def _prune(block: Block) -> Block | None:
    """Drop what has no effect: such coordinates are unpenalised directions for the certificate."""
    if block.d == 0:
        return None
    if block.ridge > 0:
        return block
    function = block.function
    if isinstance(function, Separable):
        if function._weighs_all:
            return block
        alive = (function.weights > 0) | np.isfinite(function.lower) | np.isfinite(function.upper)
        if alive.all():
            return block
        if not alive.any():
            return None
        return Block(function.restricted(alive), 1.0, 0.0, sp.csr_array(block.matrix[alive]))
    if block.scale == 0:
        return None
    if isinstance(function, _Groups) and np.any(function.weights == 0):
        keep = np.flatnonzero(function.weights > 0)
        if keep.size == 0:
            return None
        rows = np.isin(function.units(block.d), keep)
        return Block(function.localised(keep), block.scale, 0.0, sp.csr_array(block.matrix[rows]))
    return block
