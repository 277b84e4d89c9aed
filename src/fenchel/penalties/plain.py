"""Penalties as plain lists, dicts and numbers, for files; and back."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..structure import Graph, Grid, Groups, Tree
from .base import Penalty, Scaled, Sum
from .catalogue import CATALOGUE, PENALTIES


def to_plain(penalty: Penalty | None) -> dict[str, Any] | None:
    """The penalty for a file; None where it holds what no file can: a function, a map, a class of one's own."""
    try:
        found = _plain(penalty)
    except TypeError:
        return None
    return found if isinstance(found, dict) else None


def from_plain(content: Any) -> Any:
    """What `to_plain` was given."""
    if isinstance(content, list):
        return [from_plain(one) for one in content]
    if not isinstance(content, dict):
        return content
    if "penalty" in content:
        name, given = content["penalty"], {key: from_plain(one) for key, one in content["params"].items()}
        if name == "sum":
            return Sum(*given.values())
        kinds = {**PENALTIES, **CATALOGUE, "scaled": Scaled}
        if name not in kinds:
            raise ValueError(f"its penalty is {name!r}, which this fenchel does not know; import what registers it")
        return kinds[name](**given)
    if "number" in content:
        return float(content["number"])
    if "structure" in content:
        return _STRUCTURES[content["structure"]](**content["params"])
    return {key: from_plain(one) for key, one in content["dict"].items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, (numbers.Integral, np.integer)):
        return int(value)
    if isinstance(value, numbers.Real):
        number = float(value)
        return number if np.isfinite(number) else {"number": str(number)}  # JSON has no word for infinity
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {"dict": {str(key): _plain(one) for key, one in value.items()}}
    if isinstance(value, Penalty):
        kinds = {**PENALTIES, **CATALOGUE, "sum": Sum, "scaled": Scaled}
        name = next((name for name, kind in kinds.items() if type(value) is kind), None)
        if name is None:
            raise TypeError(f"{value!r} has no name")
        return {"penalty": name, "params": {key: _plain(one) for key, one in value.get_params(deep=False).items()}}
    if hasattr(value, "to_plain"):
        return {"structure": type(value).__name__, "params": _plain(value.to_plain())["dict"]}
    raise TypeError(f"{value!r} cannot be written")


def _grid(shape: list[int], mask: list[Any] | None = None) -> Grid:
    return Grid(tuple(shape), None if mask is None else np.array(mask, dtype=bool))


def _graph(edges: list[Any], p: int, weights: list[float] | None, features: list[str] | None) -> Graph:
    return Graph(np.array(edges, dtype=np.int64).reshape(-1, 2), p, weights, features)


def _groups(members: list[list[int]], names: list[str], p: int | None, features: list[str] | None) -> Groups:
    return Groups([np.array(group) for group in members], names, p, features)


def _tree(names: list[str], parents: list[int], features: list[str]) -> Tree:
    above = {name: names[up] if up >= 0 else None for name, up in zip(names, parents, strict=True)}
    return Tree(above, features)


_STRUCTURES: dict[str, Any] = {"Groups": _groups, "Graph": _graph, "Grid": _grid, "Tree": _tree}
