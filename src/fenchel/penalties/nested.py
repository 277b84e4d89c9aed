"""Norms of groups inside one another, and groups along a tree."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Index, Ints, SparseMatrix
from ..maps import Selection
from ..structure import as_groups
from ..structure.by_name import groups_for, holds_names
from .base import UnitForm, _Norm, unbounded
from .separable import L1
from .shorthand import Shorthand, _group_weights, _known

if TYPE_CHECKING:
    from ..penalties.shorthand import GroupWeights
    from ..structure.tree import GroupsLike
    from .base import Penalty


class NestedL2(_Norm):
    r"""The sum of Euclidean norms of ranges that are nested or apart; see TreeGroups.

    Parameters
    ----------
    first, last : vectors
        The ranges, those of a root together, and inner ones before those that hold them.
    parent : vector
        The smallest range that holds another; -1 for a root.
    weights : vector of positive numbers
    """

    def __init__(self, first: Ints, last: Ints, parent: Ints, weights: Array) -> None:
        self.first, self.last, self.parent, self.weights = first, last, parent, weights

    @property
    def kernel(self) -> Any:  # type: ignore[override]  # loaded when it is asked for
        from ..kernels import catalogue

        return catalogue.nested

    @property
    def params(self) -> Array:
        return self.weights

    @property
    def index(self) -> Index:
        return np.concatenate([[len(self.first)], self.first, self.last]).astype(np.int64)

    def size(self) -> int:
        return int(self.last.max())

    def units(self, d: int) -> Ints:
        return np.searchsorted(np.sort(self.first[self.parent < 0]), np.arange(d), side="right") - 1

    def value(self, u: Array) -> float:
        from ..kernels.catalogue import nested_norms

        return float(self.weights @ nested_norms(np.ascontiguousarray(u, dtype=float), self.first, self.last))

    def gauge(self, y: Array) -> float:
        from ..kernels.catalogue import nested_gauge

        y = np.ascontiguousarray(y, dtype=float)
        return float(nested_gauge(y, self.first, self.last, self.parent, self.weights))

    def prox_jacobian(self, u: Array, step: float | Array) -> Array | SparseMatrix:
        # groups shrink one after another, from inner to outer ones: the product of their derivatives
        u, step, d = np.array(u, dtype=float), np.broadcast_to(step, np.shape(u)), len(u)
        roots = np.flatnonzero(self.parent < 0)
        parts = {}
        for first, last in zip(self.first[roots], self.last[roots], strict=True):
            parts[first, last] = np.eye(last - first)
        starts, ends = np.sort(self.first[roots]), np.sort(self.last[roots])
        for first, last, weight in zip(self.first, self.last, self.weights, strict=True):
            k = np.searchsorted(starts, first, side="right") - 1
            rows = parts[starts[k], ends[k]][first - starts[k] : last - starts[k]]
            length, short = float(np.linalg.norm(u[first:last])), weight * step[first]
            if length <= short:
                rows[:] = 0.0
                u[first:last] = 0.0
                continue
            direction = u[first:last] / length
            rows *= 1.0 - short / length
            rows += np.outer((short / (length - short)) * direction, direction @ rows)
            u[first:last] *= 1.0 - short / length
        out = sp.block_diag([parts[key] for key in sorted(parts)], format="csr")
        return out if out.shape[0] == d else sp.csr_array(sp.block_diag([out, sp.eye_array(d - out.shape[0])]))

    def unit_form(self, d: int) -> UnitForm | None:
        several = self.last - self.first > 1
        if np.any(several & (self.parent >= 0)):
            return None  # groups inside groups
        labels = self.units(d)
        single, norms = np.zeros(d), np.zeros(labels.max() + 1)
        np.add.at(single, self.first[~several], self.weights[~several])
        norms[labels[self.first[several]]] = self.weights[several]
        lower, upper = unbounded(d)
        return UnitForm(single, lower, upper, labels=labels, norms=norms, bounded=False)


class TreeGroups(Shorthand):
    r"""Groups nested in a tree, :math:`\sum_g \omega_g \|w_g\|_2`: a node is zero with all that is below it.

    Parameters
    ----------
    tree : Tree, or groups of which any two are nested or apart
    weights : vector, or dict by name, optional
        One per node; the square root of the number of its features by default.

    Notes
    -----
    Prox: the shrinkage of groups, from the leaves to the root (Jenatton et al., 2011). Conjugate: 0 where the prox
    of y with step 1 is zero.
    """

    weights_per = ("group",)

    def __init__(self, tree: GroupsLike, weights: GroupWeights = None) -> None:
        if not holds_names(tree):
            as_groups(tree)
        self.tree, self.weights = tree, weights

    def with_feature_names(self, names: Any) -> Any:
        out = super().with_feature_names(names)
        return copy.copy(out).set_params(tree=groups_for(self.tree, names)) if holds_names(self.tree) else out

    def build(self, p: int | None) -> Penalty:
        groups = as_groups(self.tree, p)
        p = _known(p or groups.p, "TreeGroups")
        weights = _group_weights(self.weights, groups)
        return _nested(np.concatenate(groups.members), groups.sizes, weights, groups.names, p)


def _nested(members: Ints, sizes: Ints, weights: Array, names: list[str], p: int) -> Penalty:
    """The sum of Euclidean norms of nested groups, its features ordered so that every group is a range.

    The groups stand one after another in `members`.
    """
    kept = np.argsort(-sizes, kind="stable")
    kept = kept[weights[kept] > 0]
    if not kept.size:
        return 0.0 * L1()
    count, size = len(kept), sizes[kept]
    rank = np.full(len(sizes), -1)
    rank[kept] = np.arange(count)
    # every feature with the groups that hold it, from large to small: the one before is what holds the group itself
    holder = np.repeat(rank, sizes)
    feature, holder = members[holder >= 0], holder[holder >= 0]
    order = np.lexsort((holder, feature))
    holder, feature = holder[order], feature[order]
    again = np.append(False, feature[1:] == feature[:-1])
    before = np.where(again, np.append(-1, holder[:-1]), -1)
    by_group = np.argsort(holder, kind="stable")
    starts = np.append(0, np.cumsum(size)[:-1])
    parent = np.minimum.reduceat(before[by_group], starts)
    highest = np.maximum.reduceat(before[by_group], starts)
    torn = np.flatnonzero(parent != highest)
    if torn.size:
        a, b = names[kept[torn[0]]], names[kept[highest[torn[0]]]]
        raise ValueError(f"groups {a!r} and {b!r} overlap, and neither holds the other; they must be nested")
    place = _outer_first(parent)
    last = np.append(~again[1:], True)  # the smallest group of a feature
    features = feature[last][np.argsort(place[holder[last]], kind="stable")]
    own = np.bincount(place[holder[last]], minlength=count)
    first = (np.cumsum(own) - own)[place]
    # the prox goes from inner to outer groups
    number = count - 1 - place
    order = np.argsort(number)
    leaf = NestedL2(
        first[order],
        (first + size)[order],
        np.where(parent >= 0, number[parent], -1)[order],
        weights[kept][order],
    )
    return leaf @ Selection(features, p)


def _outer_first(parent: Ints) -> Ints:
    """Places of the nodes of a forest, each before those below it and these all together; a level at a time."""
    levels, nodes = [], np.flatnonzero(parent < 0)
    children = np.argsort(parent, kind="stable")
    begin = np.searchsorted(parent[children], np.arange(len(parent) + 1))
    while nodes.size:
        levels.append(nodes)
        counts = begin[nodes + 1] - begin[nodes]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        nodes = children[np.repeat(begin[nodes], counts) + within]
    below = np.ones(len(parent), dtype=np.int64)
    for nodes in levels[:0:-1]:
        np.add.at(below, parent[nodes], below[nodes])
    place = np.empty(len(parent), dtype=np.int64)
    for nodes in levels:  # children of one node stand together in their level
        total = np.cumsum(below[nodes]) - below[nodes]
        same = np.append(0, np.flatnonzero(np.diff(parent[nodes])) + 1) if nodes is not levels[0] else np.zeros(1, int)
        runs = np.diff(np.append(same, nodes.size))
        start = 0 if nodes is levels[0] else place[parent[nodes]] + 1
        place[nodes] = start + total - np.repeat(total[same], runs)
    return place
