"""Reading what is known about features from files: groups, edges, trees, masks, weights.

Groups, edges, trees and weights: JSON or CSV; groups also GMT. A file that does not parse raises a ValueError that
names the file and the first place that is wrong. Features are numbered from 0, the target not counted; where the
columns have names, a name wins over a number.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import Array, Flags, Index, Names
from ..foundation.files import read_json, regular, text_lines
from .arrays import _npy_array, read_vector
from .text import _cells, _is_finite, _separator

_GROUP_HEADERS = {"feature", "features", "column", "name", "variable", "index"}
_EDGE_HEADERS = {"i", "j", "source", "target", "from", "to", "a", "b", "feature", "feature1", "feature2"}
_TREE_HEADERS = {"parent", "parents", "above"}
_WEIGHT_HEADERS = {"weight", "weights", "value"}


def read_groups(path: str | Path, p: int, features: list[str] | None = None) -> tuple[list[Index], list[str]]:
    """Groups of features.

    Parameters
    ----------
    path : JSON ({"name": [features, ...], ...} or a list of lists), CSV (group,feature on every line) or GMT
        A GMT file (also .gmt.gz) holds a name, a description and features on every line; those that the data does not
        have are left out.
    p : int
        Number of features.
    features : list of str, optional
        Their names.

    Returns
    -------
    groups : list of index arrays
    names : list of str
    """
    path = regular(path)
    if path.lower().endswith((".gmt", ".gmt.gz")):
        return _groups_from_gmt(path, features)
    find = _Finder(p, features)
    read = _groups_from_json if Path(path).suffix.lower() == ".json" else _groups_from_csv
    members = read(path, find)
    if not members:
        raise ValueError(f"{path} holds no groups")
    return [np.array(group, dtype=np.int64) for group in members.values()], list(members)


def _groups_from_json(path: str | Path, find: _Finder) -> dict[str, list[int]]:
    content = read_json(path, repeats=False)
    if isinstance(content, list):
        content = {str(k): group for k, group in enumerate(content)}
    if not isinstance(content, dict):
        raise ValueError(f'{path} must hold {{"name": [features, ...]}} or a list of lists of features')
    members: dict[str, list[int]] = {}
    for name, group in content.items():
        where = f"{path}, group {name!r}"
        if not isinstance(group, list) or not group:
            raise ValueError(f"{where}: expected a list of features, found {json.dumps(group)[:40]}")
        members[name] = []
        for k, feature in enumerate(group):
            _add(members[name], find(feature, f"{where}, entry {k}"), feature, where)
    return members


def _groups_from_csv(path: str | Path, find: _Finder) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for k, (line, cells) in enumerate(_cells(path, _separator(path))):
        where = f"{path}, line {line}"
        if len(cells) != 2:
            raise ValueError(f"{where}: expected group,feature, found {len(cells)} cells")
        if k == 0 and cells[1].lower() in _GROUP_HEADERS and not find.knows(cells[1]):
            continue
        _add(members.setdefault(cells[0], []), find(cells[1], where), cells[1], f"{where}, group {cells[0]!r}")
    return members


def _groups_from_gmt(path: str | Path, features: Names | None) -> tuple[list[Index], list[str]]:
    from ..structure import Groups

    if features is None:
        raise ValueError(f"{path} names its features, but the data has no named columns; use a CSV or Parquet file")
    try:
        groups = Groups.from_gmt(path, features)
    except (ValueError, OSError) as error:
        raise ValueError(str(error) if str(error).startswith(str(path)) else f"{path}: {error}") from error
    return groups.members, groups.names


def _add(group: list[int], index: int, feature: int | str, where: str) -> None:
    if index in group:
        raise ValueError(f"{where}: feature {feature} stands in it twice")
    group.append(index)


def read_edges(path: str | Path, p: int, features: list[str] | None = None) -> tuple[Index, Array | None]:
    """Edges between features, each with or without a weight.

    Parameters
    ----------
    path : JSON (a list of [i, j] or [i, j, weight]) or CSV (i,j or i,j,weight on every line)
    p, features : as in `read_groups`

    Returns
    -------
    edges : array (m, 2)
    weights : array (m,) or None
    """
    path = regular(path)
    find = _Finder(p, features)
    edges: list[tuple[int, int]] = []
    weights: list[float] = []
    for where, cells in _edge_cells(path, find):
        if len(cells) not in (2, 3):
            raise ValueError(f"{where}: expected i,j or i,j,weight, found {len(cells)} entries")
        if edges and (len(cells) == 3) != bool(weights):
            raise ValueError(f"{where}: either every edge has a weight or none")
        i, j = (find(cell, where) for cell in cells[:2])
        if i == j:
            raise ValueError(f"{where}: the edge joins feature {cells[0]} to itself")
        edges.append((i, j))
        weights.extend(_weight(cell, where) for cell in cells[2:])
    if not edges:
        raise ValueError(f"{path} holds no edges")
    return np.array(edges, dtype=np.int64), np.array(weights) if weights else None


def _edge_cells(path: str | Path, find: _Finder) -> Iterator[tuple[str, list[Any]]]:
    if Path(path).suffix.lower() == ".json":
        content = read_json(path, repeats=False)
        if not isinstance(content, list):
            raise ValueError(f"{path} must hold a list of [i, j] or [i, j, weight]")
        for k, edge in enumerate(content):
            if not isinstance(edge, list):
                raise ValueError(f"{path}, edge {k}: expected [i, j] or [i, j, weight], found {json.dumps(edge)[:40]}")
            yield f"{path}, edge {k}", edge
        return
    for k, (line, cells) in enumerate(_cells(path, _separator(path))):
        header = k == 0 and all(cell.lower() in _EDGE_HEADERS and not find.knows(cell) for cell in cells[:2])
        if not header:
            yield f"{path}, line {line}", cells


def _weight(cell: float | str | None, where: str) -> float:
    if isinstance(cell, bool) or not isinstance(cell, (str, int, float)) or not _is_finite(cell):
        raise ValueError(f"{where}: the weight {cell!r} is not a finite number")
    return float(cell)


def read_tree(path: str | Path) -> dict[str, str | None]:
    """The parent of every node, by name: JSON ({"child": "parent", ...}) or CSV (child,parent on every line).

    A root has no line, or an empty parent (null in JSON).
    """
    path = regular(path)
    parents: dict[str, str | None] = {}
    if Path(path).suffix.lower() == ".json":
        content = read_json(path, repeats=False)
        if not isinstance(content, dict):
            raise ValueError(f'{path} must hold {{"child": "parent", ...}}')
        for child, parent in content.items():
            if isinstance(parent, (list, dict, bool)):
                raise ValueError(f"{path}, node {child!r}: expected its parent, found {json.dumps(parent)[:40]}")
            parents[child] = None if parent in (None, "") else str(parent)
    else:
        for k, (line, cells) in enumerate(_cells(path, _separator(path))):
            if len(cells) != 2:
                raise ValueError(f"{path}, line {line}: expected child,parent, found {len(cells)} cells")
            if k == 0 and cells[1].lower() in _TREE_HEADERS:
                continue
            if cells[0] in parents:
                raise ValueError(f"{path}, line {line}: {cells[0]!r} has a second parent, {cells[1]!r}")
            parents[cells[0]] = cells[1] or None
    if not parents:
        raise ValueError(f"{path} holds no nodes")
    return parents


def read_mask(path: str | Path, shape: Sequence[int]) -> Flags:
    """Which cells of a grid are features: an npy file, or text with 0 and 1 (or false and true), row by row."""
    path = regular(path)
    cells = int(np.prod(shape))
    if path.lower().endswith(".npy"):
        mask = np.array(_npy_array(path))
        if mask.dtype.kind not in "biuf":
            raise ValueError(f"{path} has dtype {mask.dtype}; a mask holds 0 and 1")
        words = mask.ravel().tolist()
        line_of = None
    else:
        words, line_of = [], []
        for number, line in text_lines(path):
            found = line.replace(",", " ").replace(";", " ").split()
            words += found
            line_of += [number] * len(found)
    meaning = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True}
    for k, word in enumerate(words):
        if str(word).lower() not in meaning:
            place = f"cell {k}" if line_of is None else f"line {line_of[k]}"
            raise ValueError(f"{path}, {place}: {str(word)[:40]!r} is neither 0 nor 1")
    if len(words) != cells:
        raise ValueError(f"{path} has {len(words)} cells, but the shape {'x'.join(map(str, shape))} has {cells}")
    return np.array([meaning[str(word).lower()] for word in words]).reshape(shape)


def read_weights(path: str | Path, names: list[str] | None = None) -> Array | dict[str, float]:
    """Weights of features, groups or terms: one number per line, or by name.

    By name: JSON ({"name": weight, ...}) or CSV (name,weight on every line). A weight must not be negative.

    Parameters
    ----------
    path : path of a JSON or CSV file
    names : list of str, optional
        What may be named.

    Returns
    -------
    array, or dict from name to weight
    """
    path = regular(path)
    named: dict[str, float] = {}
    if Path(path).suffix.lower() == ".json":
        content = read_json(path, repeats=False)
        if not isinstance(content, (dict, list)):
            raise ValueError(f'{path} must hold {{"name": weight, ...}} or a list of weights')
        pairs = content.items() if isinstance(content, dict) else enumerate(content)
        named = {str(name): _positive(value, f"{path}, entry {name}") for name, value in pairs}
        if isinstance(content, list):
            return np.array(list(named.values()))
    else:
        lines = list(_cells(path, _separator(path)))
        if lines and all(len(cells) == 1 for _, cells in lines):
            values = read_vector(path)
            for value, (line, _) in zip(values, lines, strict=True):
                _positive(float(value), f"{path}, line {line}")
            return values
        for k, (line, cells) in enumerate(lines):
            if len(cells) != 2:
                raise ValueError(f"{path}, line {line}: expected name,weight, found {len(cells)} cells")
            if k == 0 and cells[1].lower() in _WEIGHT_HEADERS:
                continue
            if cells[0] in named:
                raise ValueError(f"{path}, line {line}: {cells[0]!r} has a second weight")
            named[cells[0]] = _positive(cells[1], f"{path}, line {line}")
    if not named:
        raise ValueError(f"{path} holds no weights")
    unknown = None if names is None else next((name for name in named if name not in names), None)
    if names is not None and unknown is not None:
        close = difflib.get_close_matches(unknown, names, 1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {len(names)} of them, the first {names[0]!r}"
        raise ValueError(f"{path} gives a weight to {unknown!r}, which does not exist; {hint}")
    return named


def _positive(cell: float | str, where: str) -> float:
    value = _weight(cell, where)
    if value < 0:
        raise ValueError(f"{where}: the weight {value:g} is negative")
    return value


class _Finder:
    """Features by name or number."""

    def __init__(self, p: int, features: Names | None) -> None:
        self.p = p
        self.numbers = {} if features is None else {name: j for j, name in enumerate(features)}

    def knows(self, word: str) -> bool:
        return word in self.numbers

    def __call__(self, feature: bool | float | str, where: str) -> int:
        if isinstance(feature, str) and feature in self.numbers:
            return self.numbers[feature]
        if isinstance(feature, bool) or not isinstance(feature, (str, int)) or not _is_whole(feature):
            close = difflib.get_close_matches(str(feature), self.numbers, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"{where}: {feature!r} is neither a feature's name nor its number{hint}")
        number = int(feature)
        if not 0 <= number < self.p:
            raise ValueError(f"{where}: feature {number} does not exist; features are numbered 0 to {self.p - 1}")
        return number


def _is_whole(feature: int | str) -> bool:
    try:
        int(feature)
    except ValueError:
        return False
    return True
