"""Penalties on differences: fused, trends, graphs, grids, monotone."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._validate import Ints, _count, finite_vector
from ..maps import Difference, Incidence
from ..structure import Graph, Grid
from ..structure.by_name import graph_for, joins_names
from .groups import GroupL2
from .separable import L1, NonNegative
from .shorthand import Shorthand, _feature_weights, _known, _ratio

if TYPE_CHECKING:
    from .base import Penalty


class Monotone(Shorthand):
    r"""The constraint :math:`w_1 \le w_2 \le \dots \le w_p` (or :math:`\ge`).

    Parameters
    ----------
    increasing : bool

    Notes
    -----
    Non-negative differences: conjugate 0 where these have multipliers :math:`y \le 0`.
    """

    def __init__(self, increasing: bool = True) -> None:
        self.increasing = increasing

    def feature_graph(self, size: int) -> Graph | Grid | str | None:
        return Graph(Grid(size).edges, size)  # a line

    def build(self, p: int | None) -> Penalty:
        p = _known(p, "Monotone")
        here = np.arange(p - 1)
        steps = np.column_stack([here + 1, here] if self.increasing else [here, here + 1])
        return NonNegative() @ Incidence(steps, p)


class FusedLasso(Shorthand):
    r"""Sparse and piecewise constant along a line.

    .. math:: \rho \sum_j \omega_j |w_j| + (1 - \rho) \sum_j |\Delta^k w|_j

    Parameters
    ----------
    l1_ratio : float
        The share :math:`\rho` of the l1 norm.
    order : int
        Of the differences: 1 for piecewise constant, 2 for piecewise linear coefficients.
    weights : vector of p numbers, optional
        Of the l1 norm.
    difference_weights : vector of p - order numbers, optional

    Notes
    -----
    Prox: soft thresholds of the coefficients and of the differences. Conjugate: 0 on the corresponding bounds.
    """

    def __init__(
        self,
        l1_ratio: float = 0.5,
        order: int = 1,
        weights: npt.ArrayLike | None = None,
        difference_weights: npt.ArrayLike | None = None,
    ) -> None:
        self.l1_ratio, self.order = _ratio(l1_ratio), _count("order", order)
        self.weights, self.difference_weights = weights, difference_weights

    def build(self, p: int | None) -> Penalty:
        p = _known(p, type(self).__name__)
        count = p - self.order
        if count < 1:
            raise ValueError(f"order is {self.order}, but there are only {p} features; it must be below")
        weights = self.difference_weights
        weights = None if weights is None else finite_vector("difference_weights", weights, count, minimum=0)
        fused = (1 - self.l1_ratio) * (L1(weights) @ Difference(p, self.order))
        return fused if self.l1_ratio == 0 else self.l1_ratio * L1(_feature_weights(self.weights, p)) + fused


class TrendFilter(Shorthand):
    r"""Piecewise polynomial along a line, :math:`\sum_j \omega_j |\Delta^k w|_j`.

    Parameters
    ----------
    order : int
        Of the differences: 1 for piecewise constant, 2 for piecewise linear, 3 for piecewise quadratic coefficients.
    weights : vector of p - order numbers, optional

    Notes
    -----
    Prox: soft threshold of the differences. Conjugate: 0 on :math:`|y_j| \le \omega_j`. Polynomials of a degree
    below the order carry no penalty.
    """

    weights_per = ("term",)

    def __init__(self, order: int = 2, weights: npt.ArrayLike | None = None) -> None:
        self.order, self.weights = _count("order", order), weights

    def build(self, p: int | None) -> Penalty:
        return FusedLasso(0, self.order, difference_weights=self.weights).build(p)


class GraphFused(Shorthand):
    r"""Neighbours in a graph share their value.

    .. math:: \rho \sum_j \omega_j |w_j| + (1 - \rho) \sum_{ij} |a_{ij}| |w_i - s_{ij} w_j|

    Parameters
    ----------
    graph : Graph, or array of edges (m, 2), with weights (m, 3), or pairs of names
        :math:`a_{ij}` are its weights and :math:`s_{ij}` their signs. Names are looked up among the columns of the
        data frame at every fit.
    l1_ratio : float
        The share :math:`\rho` of the l1 norm.
    weights : vector of p numbers, optional
        Of the l1 norm.

    Notes
    -----
    Prox: soft thresholds of the coefficients and of the differences. Conjugate: 0 on the corresponding bounds.
    """

    def __init__(
        self, graph: Graph | npt.ArrayLike | Sequence[Any], l1_ratio: float = 0.5, weights: npt.ArrayLike | None = None
    ) -> None:
        self.graph, self.l1_ratio, self.weights = graph, _ratio(l1_ratio), weights

    def with_feature_names(self, names: Any) -> Any:
        out = super().with_feature_names(names)
        return copy.copy(out).set_params(graph=graph_for(self.graph, names)) if joins_names(self.graph) else out

    def build(self, p: int | None) -> Penalty:
        if joins_names(self.graph):
            raise ValueError(
                f"{self!r} joins features by name, and the data has no names: fit to a data frame (in a pipeline, "
                "set_output(transform='pandas') makes one), or give Graph(edges, features=names)"
            )
        graph = self.graph if isinstance(self.graph, Graph) else Graph(self.graph, _known(p, "GraphFused"))
        graph.checked(p)
        edges, weights = graph.edges, graph.weights
        if weights is not None:
            edges, weights = edges[weights != 0], weights[weights != 0]
        fused = (1 - self.l1_ratio) * (L1() @ Incidence(edges, graph.p, weights))
        return fused if self.l1_ratio == 0 else self.l1_ratio * L1(_feature_weights(self.weights, graph.p)) + fused


class TotalVariation(Shorthand):
    r"""Regions of one value on a line, an image or a volume.

    .. math:: \rho \sum_j \omega_j |w_j| + (1 - \rho) \sum_c \|(\nabla w)_c\|

    Parameters
    ----------
    grid : Grid, or its shape
        With a mask the features are its true cells.
    isotropic : bool
        The Euclidean length of the differences of a cell, or (False) the sum of their absolute values.
    l1_ratio : float
        The share :math:`\rho` of the l1 norm.
    weights : vector of p numbers, optional
        Of the l1 norm.

    Notes
    -----
    Prox: soft threshold of the coefficients, and of the differences cell by cell. Conjugate: 0 on the bounds.
    """

    def __init__(
        self,
        grid: Grid | int | tuple[int, ...],
        isotropic: bool = True,
        l1_ratio: float = 0.0,
        weights: npt.ArrayLike | None = None,
    ) -> None:
        self.grid, self.isotropic, self.l1_ratio, self.weights = grid, isotropic, _ratio(l1_ratio), weights

    def build(self, p: int | None) -> Penalty:
        grid = (self.grid if isinstance(self.grid, Grid) else Grid(self.grid)).checked(p)
        if not len(grid.edges):
            raise ValueError(f"{grid!r} has no neighbouring cells")
        kind = _ranges(grid.edges[:, 0]) if self.isotropic else L1()
        fused = (1 - self.l1_ratio) * (kind @ Incidence(grid.edges, grid.p))
        return fused if self.l1_ratio == 0 else self.l1_ratio * L1(_feature_weights(self.weights, grid.p)) + fused


def _ranges(labels: Ints) -> Penalty:
    """The sum of Euclidean norms of the runs of equal labels: groups in one go, since a volume has many."""
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]])
    return GroupL2.of_ranges(bounds, np.ones(len(bounds) - 1))
