"""A graph on the features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import AnyArray, Array, Frame, Index, Ints, MatrixLike, Names, finite_vector, sound
from ..foundation.html import Shown, table
from ..foundation.numerics import BESIDE
from .names import _fits, _label, _names, _number, _pandas, _places, _several


class Graph(Shown):
    """An undirected graph whose nodes are the features.

    Parameters
    ----------
    edges : array of shape (m, 2), list of pairs, or data frame
        Feature numbers, or names if `features` is given. A third column holds weights.
    p : int, optional
        The number of features; needed where `features` does not tell it.
    weights : vector of m numbers, optional
        How strongly an edge fuses its ends. A negative one asks for opposite values.
    features : list of str or data frame, optional
        Names of all features, in the order of the columns.

    Attributes
    ----------
    edges : array (m, 2)
    weights : array of m, or None where all are 1
    features, p

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.Graph([("a", "b"), ("b", "c")], features=["a", "b", "c", "d"])
    Graph(2 edges between 4 features)
    """

    def __init__(
        self, edges: Any, p: int | None = None, weights: npt.ArrayLike | None = None, features: Names | None = None
    ) -> None:
        self.features = None if features is None else _names(features)
        number = _number(p, self.features, "features")
        if number is None:
            raise ValueError("p or features is needed: edges alone do not tell the number of features")
        self.p = number
        pairs, own = _pairs(edges)
        self.edges = self._numbers(pairs)
        weights = own if weights is None else weights
        self.weights = None if weights is None else finite_vector("weights", weights, len(self.edges))
        self._check()

    def _numbers(self, pairs: Any) -> Index:
        """Feature numbers of pairs that may be names."""
        numbers = pairs
        if not isinstance(pairs, np.ndarray):
            places = {} if self.features is None else _places(self.features)
            numbers = [[places.get(node, -1) if isinstance(node, str) else node for node in pair] for pair in pairs]
            numbers = np.array(numbers, dtype=float).reshape(-1, 2)
        missing = np.argwhere(~((numbers >= 0) & (numbers < self.p) & (numbers == np.floor(numbers))))
        if len(missing):
            k, end = missing[0]
            a, b = (node.item() if isinstance(node, np.generic) else node for node in pairs[k])
            raise ValueError(
                f"edge {k}, ({a!r}, {b!r}), joins {(a, b)[end]!r}, which is not among the {self.p} features"
            )
        out: Index = numbers.astype(np.int64)
        return out

    def _check(self) -> None:
        loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
        if loops.size:
            raise ValueError(f"edge {loops[0]} joins {_label(self.features, self.edges[loops[0], 0])} to itself")
        low, high = self.edges.min(axis=1, initial=self.p), self.edges.max(axis=1, initial=-1)
        _, first = np.unique(low * self.p + high, return_index=True)
        if first.size < len(self.edges):
            k = np.setdiff1d(np.arange(len(self.edges)), first)[0]
            a, b = (_label(self.features, j) for j in self.edges[k])
            raise ValueError(f"edge {k} joins {a} and {b} a second time")

    @classmethod
    def from_edges(
        cls, edges: Any, p: int | None = None, features: Names | None = None, weights: npt.ArrayLike | None = None
    ) -> Graph:
        """The graph with these edges; parameters as in the class."""
        return cls(edges, p, weights, features)

    @classmethod
    def from_networkx(cls, graph: Any, features: Names | None = None, weight: str | None = "weight") -> Graph:
        """A networkx graph.

        Parameters
        ----------
        graph : networkx graph
            The directions of its edges are ignored.
        features : list of nodes or data frame, optional
            The nodes in the order of the columns; by default in the graph's own order. Those that the graph does not
            hold have no edges.
        weight : str or None
            Attribute of the edges with their weights, 1 where it is missing; None: all are 1.
        """
        nodes = list(graph.nodes if features is None else getattr(features, "columns", features))
        places = {node: k for k, node in enumerate(nodes)}
        edges: dict[tuple[int, int], float] = {}
        for a, b, value in graph.edges(data=weight or "weight", default=1.0):
            for node in (a, b):
                if node not in places:
                    raise ValueError(f"the edge ({a!r}, {b!r}) joins {node!r}, which is not among the "
                                     f"{len(nodes)} features")  # fmt: skip
            # both directions of an edge, and parallel ones, are one
            edges.setdefault((min(places[a], places[b]), max(places[a], places[b])), 1.0 if weight is None else value)
        weights = np.array(list(edges.values()), dtype=float)
        pairs = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
        return cls(pairs, len(nodes), None if np.all(weights == 1) else weights, [str(node) for node in nodes])

    @classmethod
    def from_data(
        cls,
        X: MatrixLike,
        method: str = "glasso",
        *,
        alpha: float = 0.005,
        threshold: float = 0.5,
        neighbours: int | None = None,
        signed: bool = False,
        features: Names | None = None,
    ) -> Graph:
        """A graph that joins features which go together in the data.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
        method : {"glasso", "correlation"}
            The graphical lasso (as in the paper; minutes beyond some hundred features), or the pairs whose
            correlation is large (fast).
        alpha : float
            Penalty of the graphical lasso; a larger one leaves fewer edges.
        threshold : float
            Smallest absolute correlation of an edge.
        neighbours : int, optional
            An edge must also be among this many strongest of one of its ends.
        signed : bool
            Negatively correlated ends are asked for opposite values: weight -1.
        features : list of str, optional
            Names; those of a data frame by default.
        """
        features = X if features is None and hasattr(X, "columns") else features
        X = sound("X", X) if sp.issparse(X) else np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=float)
        if method == "glasso":
            from .covariance import _covariance, graph_edges

            edges = graph_edges(X, alpha)
            correlation = _covariance(X)[edges[:, 0], edges[:, 1]] if signed else None
        elif method == "correlation":
            if not 0 < threshold <= 1:
                raise ValueError(f"threshold is {threshold!r}; it must lie above 0 and at most at 1")
            edges, correlation = _correlated(X, threshold, neighbours)
        else:
            raise ValueError(f"method is {method!r}; it must be 'glasso' or 'correlation'")
        weights = np.where(correlation < 0, -1.0, 1.0) if signed and correlation is not None else None
        return cls(edges, X.shape[1], weights, features)

    def checked(self, p: int | None) -> Graph:
        """Self, for p features."""
        _fits(self, p)
        return self

    def to_plain(self) -> dict[str, Any]:
        """What a file needs to make it again."""
        weights = None if self.weights is None else self.weights.tolist()
        return {"edges": self.edges.tolist(), "p": self.p, "weights": weights, "features": self.features}

    def to_frame(self) -> Frame:
        """A data frame with a row per edge."""
        names = np.array(self.features if self.features else range(self.p), dtype=object)
        columns = {"from": names[self.edges[:, 0]], "to": names[self.edges[:, 1]]}
        return _pandas().DataFrame(columns | ({} if self.weights is None else {"weight": self.weights}))

    def __len__(self) -> int:
        return len(self.edges)

    def _html_title(self) -> str:
        return repr(self)

    def _html_more(self) -> list[str]:
        rows = []
        for k, pair in enumerate(self.edges[:10].tolist()):
            weight = [] if self.weights is None else [float(self.weights[k])]
            rows.append([*(_label(self.features, j).strip("'") for j in pair), *weight])
        return [table(["from", "to", *([] if self.weights is None else ["weight"])], rows, len(self) - 10)]

    def __repr__(self) -> str:
        text = f"{_several(len(self), 'edge')} between {self.p} features"
        negative = 0 if self.weights is None else np.count_nonzero(self.weights < 0)
        text += ", weighted" if self.weights is not None else ""
        return f"Graph({text}{f', {negative} negative' if negative else ''})"


def _pairs(edges: Any) -> tuple[Any, AnyArray | None]:
    """Pairs of nodes, as an array if they are numbers, and weights from a third column."""
    edges = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
    if isinstance(edges, np.ndarray) and edges.dtype.kind in "biuf" and edges.ndim == 2 and edges.shape[1] in (2, 3):
        return edges[:, :2], edges[:, 2] if edges.shape[1] == 3 else None
    edges = [tuple(edge) for edge in edges]
    wrong = next((k for k, edge in enumerate(edges) if len(edge) != len(edges[0]) or len(edge) not in (2, 3)), None)
    if wrong is not None:
        raise ValueError(
            f"edge {wrong} is {edges[wrong]!r}; every edge must be two features, or every one two and a weight"
        )
    weights = np.array([edge[2] for edge in edges], dtype=float) if edges and len(edges[0]) == 3 else None
    return [edge[:2] for edge in edges], weights


def _correlated(X: MatrixLike, threshold: float, neighbours: int | None) -> tuple[Ints, Array]:
    """Pairs i < j with |correlation| >= threshold, and the correlations; a slab of columns at a time."""
    n, p = X.shape
    mean = np.asarray(X.mean(axis=0)).ravel()
    if sp.issparse(X):
        X = sp.csc_array(X)
        largest, square = abs(X).max(axis=0).toarray().ravel(), X.multiply(X).sum(axis=0) - n * mean**2
    else:
        largest, X = np.abs(X).max(axis=0), X - mean
        mean, square = np.zeros(p), np.einsum("ij,ij->j", X, X)
    constant = square <= 1e-13 * n * largest**2
    scale = np.divide(1.0, np.sqrt(np.maximum(square, 0.0)), out=np.zeros(p), where=~constant)
    rows, columns, values = [], [], []
    slab = max(1, BESIDE // p)
    for first in range(0, p, slab):
        some = slice(first, first + slab)
        part = X[:, some].T @ X
        part = part.toarray() if sp.issparse(part) else part
        part = (part - n * np.outer(mean[some], mean)) * np.outer(scale[some], scale)
        part[np.arange(part.shape[0]), first + np.arange(part.shape[0])] = 0.0
        strong = np.abs(part) >= threshold
        if neighbours is not None and neighbours < p:
            weakest = np.partition(np.abs(part), p - neighbours, axis=1)[:, p - neighbours]
            strong &= np.abs(part) >= weakest[:, None]
        i, j = np.nonzero(strong)
        rows.append(i + first)
        columns.append(j)
        values.append(part[i, j])
    i, j, value = np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
    low, high = np.minimum(i, j), np.maximum(i, j)
    _, keep = np.unique(low * p + high, return_index=True)
    return np.column_stack([low[keep], high[keep]]), value[keep]
