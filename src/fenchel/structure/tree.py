"""A tree above the features."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from .._validate import AnyArray, Index, Ints, Names
from ..foundation.html import Shown, table
from .groups import Groups
from .names import _fits, _names, _places, _several

GroupsLike: TypeAlias = "Groups | Tree | Mapping[str, Any] | Sequence[Any] | AnyArray"  # what as_groups reads


def as_groups(groups: GroupsLike, p: int | None = None) -> Groups:
    """Groups from a Groups object, index lists, a dict or a vector of labels, for p features."""
    if isinstance(groups, Tree):
        groups = groups.groups()
    return (groups if isinstance(groups, Groups) else Groups(groups)).checked(p)


class Tree(Shown):
    """A forest over the features: every node stands for the features at and below it.

    Parameters
    ----------
    parents : dict (or Series) child -> parent, or vector with the parent's number of every node
        None, -1 or a missing child mark a root.
    features : "leaves", "all" or list of nodes (or data frame)
        Which nodes are features, in the order of the columns: the leaves (default), every node, or those listed
        (nodes with no feature at or below are left out).

    Attributes
    ----------
    names : list of str
        The nodes, and `parents` the number of each one's parent, -1 for a root.
    features : list of str
    p : int

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.Tree({"cat": "mammal", "dog": "mammal", "trout": "fish", "mammal": "animal", "fish": "animal"})
    Tree(6 nodes over 3 features, 1 root, depth 3)
    """

    def __init__(self, parents: Any, features: Names = "leaves") -> None:
        names, up = _as_forest(parents)
        _refuse_cycle(names, up)
        inner = np.zeros(len(names), dtype=bool)
        inner[up[up >= 0]] = True
        places = _places(names)
        if isinstance(features, str):
            if features not in ("leaves", "all"):
                raise ValueError(f"features is {features!r}; it must be 'leaves', 'all' or a list of nodes")
            nodes = np.flatnonzero(~inner) if features == "leaves" else np.arange(len(names))
        else:
            listed = _names(features)
            unknown = [name for name in listed if name not in places]
            if unknown:
                raise ValueError(f"feature {unknown[0]!r} is not a node of the tree")
            nodes = np.array([places[name] for name in listed], dtype=np.int64)
        ways = list(_levels(nodes, up))
        holders, held = (np.concatenate(parts) for parts in zip(*ways, strict=True))
        order = np.lexsort((held, holders))
        kept = np.bincount(holders, minlength=len(names)) > 0
        number = np.cumsum(kept) - 1
        self.features = [names[node] for node in nodes.tolist()]
        self.p = len(nodes)
        self.names = [name for name, keep in zip(names, kept.tolist(), strict=True) if keep]
        self.parents = np.where(up[kept] >= 0, number[up[kept]], -1)
        self._below = np.split(held[order], np.flatnonzero(np.diff(holders[order])) + 1)

    @classmethod
    def from_parents(cls, parents: Any, features: Names = "leaves") -> Tree:
        """The tree with these parents; parameters as in the class."""
        return cls(parents, features)

    def groups(self) -> Groups:
        """One group for every node: the features at and below it."""
        out: Groups = self._groups
        return out

    @functools.cached_property
    def _groups(self) -> Groups:
        return Groups(self._below, self.names, self.p, self.features)

    def to_plain(self) -> dict[str, Any]:
        """What a file needs to make it again."""
        return {"names": list(self.names), "parents": self.parents.tolist(), "features": list(self.features)}

    def checked(self, p: int | None) -> Tree:
        """Self, for p features."""
        _fits(self, p)
        return self

    @property
    def depth(self) -> int:
        """Nodes on the longest way from a root."""
        return sum(1 for _ in _levels(np.arange(len(self.names)), self.parents))

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Index]:
        return iter(self.groups())

    def __getitem__(self, name: str | int) -> Index:
        """The features at and below a node."""
        return self.groups()[name]

    def _html_title(self) -> str:
        return repr(self)

    def _html_more(self) -> list[str]:
        rows = []
        for k, name in enumerate(self.names[:10]):
            top = int(self.parents[k])
            rows.append((name, "" if top < 0 else self.names[top], len(self[k])))
        return [table(["node", "below", "features"], rows, len(self) - 10)]

    def __repr__(self) -> str:
        roots = _several(int(np.count_nonzero(self.parents < 0)), "root")
        return f"Tree({_several(len(self), 'node')} over {_several(self.p, 'feature')}, {roots}, depth {self.depth})"


def _as_forest(parents: Any) -> tuple[list[str], Ints]:
    """Names of the nodes and the number of each one's parent, -1 for roots."""
    if hasattr(parents, "items"):
        parents = {str(child): None if top is None or top != top else str(top) for child, top in parents.items()}
        names = list(dict.fromkeys([*parents, *(top for top in parents.values() if top is not None)]))
        places = _places(names)
        up = np.array([places.get(parents.get(name), -1) for name in names], dtype=np.int64)
    else:
        parents = [-1 if parent is None else parent for parent in parents]
        for node, parent in enumerate(parents):
            if not (isinstance(parent, numbers.Integral) and -1 <= int(parent) < len(parents)):
                raise ValueError(
                    f"node {node} has the parent {parent!r}; nodes are numbered from 0 to {len(parents) - 1}"
                )
        up = np.array(parents, dtype=np.int64)
        names = [str(k) for k in range(len(up))]
    if not names:
        raise ValueError("parents is empty; give at least one node")
    return names, up


def _levels(nodes: Ints, up: Ints) -> Iterator[tuple[Ints, Ints]]:
    """The nodes, their parents, the parents of these and so on, each with the places in `nodes` where it began."""
    begun = np.arange(len(nodes))
    while begun.size:
        yield nodes, begun
        nodes = up[nodes]
        nodes, begun = nodes[nodes >= 0], begun[nodes >= 0]


def _refuse_cycle(names: list[str], up: Ints) -> None:
    ahead = up  # of 1, 2, 4, … steps: without a circle all have left the tree after as many as there are nodes
    for _ in range(len(up).bit_length()):
        ahead = np.where(ahead >= 0, ahead[ahead], -1)
    if np.all(ahead < 0):
        return
    state = np.zeros(len(up), dtype=np.int8)  # 1: on the way, 2: leads to a root
    for start in range(len(up)):
        way, node = [], start
        while node >= 0 and state[node] == 0:
            state[node] = 1
            way.append(node)
            node = up[node]
        if node >= 0 and state[node] == 1:
            circle = [names[k] for k in way[way.index(node) :]]
            raise ValueError(f"the tree goes round in a circle: {' -> '.join([*circle, circle[0]])}")
        state[way] = 2
