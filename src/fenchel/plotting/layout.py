"""Where the nodes of a graph stand in a drawing: distances on paper follow distances in the graph."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from .._validate import Array, Ints, SparseMatrix

_DENSE = 600  # nodes up to which every pair is looked at; more: seconds for a drawing


def graph_layout(edges: Ints, p: int) -> Array:
    """Places (p, 2) of p nodes, an edge about 1 long; connected parts stand side by side, the largest first.

    Small parts by stress majorisation over the lengths of shortest ways, large ones by multidimensional scaling from
    some pivots. The same graph always gets the same places.
    """
    edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    table = sp.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(p, p))
    table = table + table.T
    _, label = csgraph.connected_components(table, directed=False)
    order = np.argsort(label, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(label))[:-1])
    parts.sort(key=lambda part: (-len(part), part[0]))
    return _packed([(part, _place(_with_short_indices(table[part][:, part]))) for part in parts], p)


def _with_short_indices(table: SparseMatrix) -> SparseMatrix:
    """The same graph as older versions of scipy want it, whose shortest ways know indices of 32 bits alone."""
    return sp.csr_array((table.data, table.indices.astype(np.int32), table.indptr.astype(np.int32)), shape=table.shape)


def _place(table: SparseMatrix) -> Array:
    """Places of the nodes of a connected graph."""
    n = table.shape[0]
    if n == 1:
        return np.zeros((1, 2))
    degrees = np.diff(table.indptr)
    ends, wide = np.flatnonzero(degrees == 1), math.ceil(math.sqrt(n))
    if degrees.max() == 2 and ends.size and n > 2 * wide:
        return _snake(csgraph.breadth_first_order(table, ends[0], directed=False, return_predecessors=False), wide)
    places = _by_stress(table) if n <= _DENSE else _by_pivots(table)
    # the longest axis lies flat, since pages and screens are wide
    places = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    out: Array = places @ axes.T
    return out


def _snake(order: Ints, wide: int) -> Array:
    """A chain in lines that turn at their ends: one line of many nodes leaves no room for their names."""
    line, place = np.divmod(np.arange(len(order)), wide)
    out = np.empty((len(order), 2))
    out[order] = np.column_stack([np.where(line % 2 == 0, place, wide - 1 - place), -line])
    return out


def _by_stress(table: SparseMatrix, rounds: int = 120) -> Array:
    goal = csgraph.shortest_path(table, directed=False, unweighted=True)
    n = len(goal)
    off = ~np.eye(n, dtype=bool)
    weight = np.divide(1.0, goal**2, out=np.zeros((n, n)), where=off)
    inverse = np.linalg.inv(np.diag(weight.sum(axis=1)) - weight + 1.0 / n) - 1.0 / n
    places = _scaling(goal, np.arange(n))
    for _ in range(rounds):
        length = np.linalg.norm(places[:, None] - places[None], axis=2)
        pull = np.divide(weight * goal, length, out=np.zeros((n, n)), where=off & (length > 1e-9))
        moved = inverse @ (pull.sum(axis=1)[:, None] * places - pull @ places)
        done = np.abs(moved - places).max() < 1e-3
        places = moved
        if done:
            break
    return places


def _by_pivots(table: Any, count: int = 60) -> Any:
    n = table.shape[0]
    pivots = np.unique(np.linspace(0, n - 1, count).astype(int))
    places = _scaling(csgraph.shortest_path(table, directed=False, unweighted=True, indices=pivots), pivots)
    ends = sp.coo_array(table)
    length = np.median(np.linalg.norm(places[ends.row] - places[ends.col], axis=1))
    return places / max(length, 1e-9)


def _scaling(goal: Array, pivots: Ints) -> Array:
    """Classical scaling from the distances (pivots, n)."""
    n = goal.shape[1]
    square = goal.T**2
    inner = -0.5 * (square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean())
    left, size, _ = np.linalg.svd(inner, full_matrices=False)
    places = np.zeros((n, 2))
    places[:, : min(2, left.shape[1])] = left[:, :2] * np.sqrt(size[:2] * np.sqrt(n / len(pivots)))
    # nodes that look the same from everywhere must not stand on one spot
    return places + 0.05 * np.random.default_rng(0).standard_normal((n, 2))


def _packed(parts: list[tuple[Ints, Array]], p: int) -> Array:
    """Parts in rows, like words on a page."""
    gap = 0.9
    sizes = [np.ptp(places, axis=0) + gap for _, places in parts]
    width = max(max(size[0] for size in sizes), 1.25 * np.sqrt(sum(size[0] * size[1] for size in sizes)))
    out = np.empty((p, 2))
    x = y = height = 0.0
    for (part, places), size in zip(parts, sizes, strict=True):
        if x > 0 and x + size[0] > width + 1e-9:
            x, y, height = 0.0, y - height, 0.0
        corner = np.array([places[:, 0].min(), places[:, 1].max()])
        out[part] = places - corner + [x + gap / 2, y - gap / 2]
        x, height = x + size[0], max(height, size[1])
    return out
