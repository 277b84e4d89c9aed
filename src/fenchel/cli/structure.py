"""What the options say about the features, read when a penalty asks for it."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._validate import Array, MatrixLike
from ..io import read_edges, read_groups, read_mask, read_tree, read_weights
from ..io.coding import Coding
from ..io.structure_files import _Finder
from ..structure import Graph, Grid, Groups, Tree

if TYPE_CHECKING:
    from .options import ModelOptions


class Structure:
    """Groups, graph, grid, tree and weights of the penalised features.

    The penalised features are numbered by themselves: what files say about unpenalised ones is left out.

    Attributes
    ----------
    kept, free : numbers of the penalised and the unpenalised features
    names : of the penalised features, or None
    """

    def __init__(
        self, options: ModelOptions, X: MatrixLike, names: list[str] | None, coding: Coding | None = None
    ) -> None:
        self.options, self._X, self._p, self._names = options, X, X.shape[1], names
        find = _Finder(self._p, names)
        self._columns = {} if coding is None else coding.groups()  # a column of words is all that is made of it
        free = [self._columns.get(column) or [find(column, "--unpenalised")] for column in options.unpenalised or ()]
        self.free = np.unique([j for places in free for j in places]).astype(np.int64)
        self.kept = np.setdiff1d(np.arange(self._p), self.free)
        if not self.kept.size:
            raise ValueError("--unpenalised names every feature; nothing is left for the penalty")
        self.p = len(self.kept)
        self.names = None if names is None else [names[j] for j in self.kept]
        self._place = np.full(self._p, -1)
        self._place[self.kept] = np.arange(self.p)

    # -- what joins features ------------------------------------------------------------------------

    @functools.cached_property
    def groups(self) -> Groups:
        file, separator = self.options.groups, self.options.groups_by
        if file is not None and separator is not None:
            raise ValueError("give --groups or --groups-by, not both")
        if file is None and separator is None:
            if not self._columns:
                raise ValueError("this penalty needs --groups, --groups-by, or --one-hot auto on columns of words")
            own = {name: self._place[places] for name, places in self._columns.items()}
            own = {name: places for name, places in own.items() if (places >= 0).all()}
            return Groups(list(own.values()), list(own), self.p, self.names)
        if separator is not None:
            if self.names is None:
                raise ValueError("--groups-by needs named columns, which this file does not have; use --groups")
            groups = Groups.from_columns(self.names, separator)
        else:
            members, names = read_groups(cast(str, file), self._p, self._names)
            members = [self._place[group] for group in members]
            pairs = [(name, group[group >= 0]) for name, group in zip(names, members, strict=True)]
            pairs = [(name, group) for name, group in pairs if group.size]
            if not pairs:
                raise ValueError(f"{file}: every feature of its groups is unpenalised")
            groups = Groups([group for _, group in pairs], [name for name, _ in pairs], self.p, self.names)
        return groups.complete(self.p) if self.options.complete_groups else groups

    @functools.cached_property
    def tree(self) -> Tree:
        file = self.options.tree
        if file is None:
            raise ValueError("this penalty needs --tree")
        names = [str(j) for j in self.kept] if self.names is None else self.names
        try:
            return Tree(read_tree(file), names)
        except ValueError as error:
            raise ValueError(str(error) if str(error).startswith(file) else f"{file}: {error}") from None

    @functools.cached_property
    def graph(self) -> Graph:
        text = self.options.edges
        if text is None:
            raise ValueError("this penalty needs --edges")
        method, _, value = text.partition(":")
        if method in ("correlation", "glasso") and not os.path.exists(text):
            return self._graph_from_data(text, method, value)
        edges, weights = read_edges(text, self._p, self._names)
        edges = self._place[edges]
        inside = (edges >= 0).all(axis=1)
        return Graph(edges[inside], self.p, None if weights is None else weights[inside], self.names)

    def _graph_from_data(self, text: str, method: str, value: str) -> Graph:
        option = {"correlation": "threshold", "glasso": "alpha"}[method]
        try:
            given: dict[str, Any] = {option: float(value)} if value else {}
        except ValueError:
            raise ValueError(f"--edges is {text!r}; write it as {method}:0.5") from None
        X = self._X[:, self.kept] if self.free.size else self._X
        graph = Graph.from_data(X, method, features=self.names, **given)
        if not len(graph):
            raise ValueError(f"--edges {text} joins no features; try a smaller number")
        return graph

    @functools.cached_property
    def shape(self) -> tuple[int, ...]:
        text = self.options.shape
        if text is None:
            raise ValueError("this penalty needs --shape")
        try:
            shape = tuple(int(part) for part in text.lower().split("x"))
        except ValueError:
            shape = ()
        if not shape or min(shape) < 1:
            raise ValueError(f"--shape is {text!r}; write it as HxW, e.g. 32x32")
        if self.options.mask is None and int(np.prod(shape)) != self.p:
            raise ValueError(f"--shape is {text}, which is {int(np.prod(shape))} features, but {self._count()}")
        return shape

    @functools.cached_property
    def grid(self) -> Grid:
        if self.options.mask is None:
            return Grid(self.shape)
        mask = read_mask(self.options.mask, self.shape)
        if np.count_nonzero(mask) != self.p:
            count = np.count_nonzero(mask)
            raise ValueError(f"{self.options.mask} has {count} cells with 1, but {self._count()}")
        return Grid(self.shape, mask)

    def _count(self) -> str:
        return f"the data has {self._p}" + (f", {self.free.size} of them unpenalised" if self.free.size else "")

    # -- weights in the penalty ---------------------------------------------------------------------

    def feature_weights(self) -> Array:
        file = cast(str, self.options.feature_weights)
        names = [str(j) for j in range(self._p)] if self._names is None else self._names
        found = read_weights(file, names)
        if isinstance(found, dict):
            found = np.array([found.get(name, 1.0) for name in names])
        if len(found) != self._p:
            raise ValueError(f"{file} holds {len(found)} weights, but the data has {self._p} features")
        out: Array = found[self.kept]
        return out

    def group_weights(self, groups: Groups) -> Array | dict[str, float]:
        file = cast(str, self.options.group_weights)
        found = read_weights(file, groups.names)
        if not isinstance(found, dict) and len(found) != len(groups):
            raise ValueError(f"{file} holds {len(found)} weights, but there are {len(groups)} groups")
        return found

    def term_weights(self) -> Any:
        found = read_weights(cast(str, self.options.term_weights))
        if isinstance(found, dict):
            raise ValueError(f"{self.options.term_weights}: expected a number on every line")
        return found

    # -- what was used, for tables and pictures -----------------------------------------------------

    def used(self, name: str) -> Any:
        """A part of the structure, if the penalty asked for it."""
        return self.__dict__.get(name)
