"""Maps that take differences: along edges, in a row, on a grid."""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import Array, Ints, SparseMatrix, _count, finite_vector, index_array
from .base import Map


class Incidence(Map):
    """u_e = weight_e (w_i - w_j) for the edges e = (i, j) of a graph on p features.

    Parameters
    ----------
    edges : array of shape (m, 2)
    p : int
    weights : array of m numbers, optional
        A negative weight joins features of opposite sign: u_e = |weight| (w_i + w_j).
    """

    def __init__(self, edges: npt.ArrayLike, p: int, weights: npt.ArrayLike | None = None) -> None:
        self.p = _count("p", p)
        self.edges = index_array("edges", edges, self.p)
        if self.edges.size == 0:
            self.edges = self.edges.reshape(0, 2)
        if self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise ValueError(f"edges has shape {self.edges.shape}; it must be (number of edges, 2)")
        loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
        if loops.size:
            raise ValueError(f"edges[{loops[0]}] joins feature {self.edges[loops[0], 0]} to itself")
        self.weights = None if weights is None else finite_vector("weights", weights, len(self.edges))

    def neighbours(self) -> tuple[Ints, Array | None] | None:
        return self.edges, self.weights

    def _matrix(self, p: int) -> SparseMatrix:
        m = len(self.edges)
        size = np.ones(m) if self.weights is None else np.abs(self.weights)
        sign = np.ones(m) if self.weights is None else np.where(self.weights < 0, -1.0, 1.0)
        values = np.column_stack([size, -sign * size]).ravel()
        # a copy, since scipy sorts indices in place whenever it likes
        out = sp.csr_array((values, self.edges.flatten(), 2 * np.arange(m + 1)), shape=(m, p))
        out.sort_indices()
        return out


class Difference(Map):
    """The `order`-th differences of w along a line of p features."""

    along_line = True

    def __init__(self, p: int, order: int = 1) -> None:
        self.p = _count("p", p)
        self.order = _count("order", order)

    def neighbours(self) -> tuple[Ints, Array | None] | None:
        first = np.arange(self._size() - 1)
        return (np.column_stack([first, first + 1]), None) if self.order == 1 else None

    def _matrix(self, p: int) -> SparseMatrix:
        out = sp.eye_array(p, format="csr")
        for _ in range(self.order):
            m = out.shape[0]
            if m < 2:
                return sp.csr_array((0, p))
            out = sp.csr_array(
                sp.diags_array([-np.ones(m - 1), np.ones(m - 1)], offsets=[0, 1], shape=(m - 1, m)) @ out
            )
        return out

    def norm(self) -> float:
        # a first difference of m points has norm 2 cos(pi / 2m); orders multiply
        p = self._size()
        if p <= self.order:
            return 0.0
        sizes = p - np.arange(self.order)
        product = float(np.prod(2 * np.cos(np.pi / (2 * sizes))))
        return product if self.order == 1 or p > 1000 else min(product, super().norm())


class Gradient(Map):
    """Forward differences of w on a grid, C-ordered; all differences of a cell stand together.

    A cell on the far border has fewer differences. `cells` lists, for each cell that has any, its
    rows of u: the groups of the isotropic total variation.
    """

    def __init__(self, shape: int | tuple[int, ...]) -> None:
        self.shape = tuple(_count("shape", s) for s in np.atleast_1d(shape).tolist())
        self.p = int(np.prod(self.shape))

    def grid_shape(self) -> tuple[int, ...] | None:
        return self.shape

    @functools.cached_property
    def _pairs(self) -> tuple[Ints, Ints]:
        index = np.arange(self._size()).reshape(self.shape)
        here, there = [], []
        for axis in range(len(self.shape)):
            here.append(np.take(index, range(self.shape[axis] - 1), axis=axis).ravel())
            there.append(np.take(index, range(1, self.shape[axis]), axis=axis).ravel())
        cells, ahead = np.concatenate(here), np.concatenate(there)
        order = np.argsort(cells, kind="stable")
        return cells[order], ahead[order]

    @property
    def cells(self) -> list[Ints]:
        """Groups of rows of u, one per cell: pass to GroupL2 for the isotropic total variation."""
        here, _ = self._pairs
        return np.split(np.arange(len(here)), np.flatnonzero(np.diff(here)) + 1) if len(here) else []

    def _matrix(self, p: int) -> SparseMatrix:
        here, there = self._pairs
        m = len(here)
        values = np.tile([-1.0, 1.0], m)
        return sp.csr_array((values, np.column_stack([here, there]).ravel(), 2 * np.arange(m + 1)), shape=(m, p))

    def norm(self) -> float:
        return float(np.sqrt(sum(4 * np.cos(np.pi / (2 * s)) ** 2 for s in self.shape)))

    def __repr__(self) -> str:
        return f"Gradient({self.shape})"
