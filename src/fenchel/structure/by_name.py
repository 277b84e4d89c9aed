"""Structure that speaks of features by name, and is made when the names of the columns are known.

What a fold, a pipeline or another file brings may lack a rare level or hold its columns in another order. Structure by
name is made for the columns of each fit, whatever they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._validate import Names, warn_user
from ..foundation.words import listed
from .graph import Graph, _pairs
from .groups import Groups
from .names import _names
from .tree import Tree


def holds_names(groups: Any) -> bool:
    """Whether groups, as lists or a dict, name features and do not know all of them."""
    if isinstance(groups, (Groups, Tree)) or not isinstance(groups, (Mapping, list, tuple)):
        return False
    members = groups.values() if isinstance(groups, Mapping) else groups
    return any(
        not isinstance(group, str)
        and isinstance(group, Iterable)
        and any(issubclass(kind, str) for kind in set(map(type, group)))  # there are fewer kinds than members
        for group in members
    )


def joins_names(edges: Any) -> bool:
    """Whether edges, as pairs or a data frame, join features by name."""
    if isinstance(edges, Graph) or not hasattr(edges, "__iter__"):
        return False
    pairs = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
    return any(any(isinstance(node, str) for node in edge) for edge in pairs if hasattr(edge, "__iter__"))


def groups_for(groups: Any, names: Names) -> Groups:
    """Groups of names, for these columns; names that no column has are left out, with a warning."""
    columns = _names(names, "columns")
    known = set(columns)
    listed = groups if isinstance(groups, Mapping) else {f"group {k}": group for k, group in enumerate(groups)}
    absent = [one for group in listed.values() for one in group if isinstance(one, str) and one not in known]
    kept = {
        name: members
        for name, group in listed.items()
        if (members := [one for one in group if not isinstance(one, str) or one in known])
    }
    _tell("groups", absent, bool(kept), columns)
    return Groups(kept, features=columns)


def groups_by(by: Any, names: Names) -> Groups:
    """Groups as :meth:`Groups.from_columns` makes them; names in a dict that no column has are left out."""
    if not isinstance(by, Mapping):
        return Groups.from_columns(names, by)
    if any(not isinstance(value, str) and isinstance(value, Iterable) for value in by.values()):
        return groups_for({str(group): [str(one) for one in columns] for group, columns in by.items()}, names)
    columns = _names(names, "columns")
    known = set(columns)
    kept = {str(column): group for column, group in by.items() if str(column) in known}
    _tell("by", [str(column) for column in by if str(column) not in known], bool(kept), columns)
    return Groups.from_columns(columns, kept)


def graph_for(edges: Any, names: Names) -> Graph:
    """The graph of edges between names, for these columns; an edge to a name that no column has is left out."""
    columns = _names(names, "columns")
    known = set(columns)
    pairs, weights = _pairs(edges)
    inside = [all(not isinstance(node, str) or node in known for node in pair) for pair in pairs]
    _tell("edges", [node for pair in pairs for node in pair if isinstance(node, str) and node not in known],
          any(inside), columns)  # fmt: skip
    kept = [pair for pair, keep in zip(pairs, inside, strict=True) if keep]
    own = None if weights is None else [weight for weight, keep in zip(weights, inside, strict=True) if keep]
    return Graph(kept, weights=own, features=columns)


def _tell(what: str, absent: list[str], some: bool, columns: list[str]) -> None:
    """Warn of names that no column has; a ValueError where nothing is left."""
    absent = list(dict.fromkeys(absent))
    shown = listed(map(repr, absent))
    if not some:
        raise ValueError(
            f"{what} names {shown or 'nothing'}, none of which are among the {len(columns)} columns of X "
            f"(the first is {columns[0]!r})"
        )
    if absent:
        count = "a feature" if len(absent) == 1 else f"{len(absent)} features"
        warn_user(f"{what} names {count} that X does not have, left out: {shown}", UserWarning)
