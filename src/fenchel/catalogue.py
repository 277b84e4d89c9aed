"""The catalogue: structured penalties by name, one line each.

An entry is shorthand. `build(p)` turns it, once the number of features p is known, into an expression of the simple
penalties and maps of :mod:`fenchel.penalties` and :mod:`fenchel.maps`, or into a penalty with a prox of its own. Its
parameters stand under their own names, so that scikit-learn can clone and search them (``penalty__l1_ratio``).

Wherever groups, a graph, a grid or a tree are asked for, plain lists and arrays do as well. A weight of 0, and a
feature that stands in no group, means no penalty. `Unpenalised` frees features from any penalty.
"""

from __future__ import annotations

import inspect
import numbers

import numpy as np
import scipy.sparse as sp

from ._validate import _count, finite_vector, index_array, weight_vector
from .maps import Copies, Difference, Incidence, Matrix, Selection
from .norms import ExclusiveL1, LatentL2, NestedL2, SortedL1
from .penalties import (
    L1,
    GroupL2,
    GroupLinf,
    NonNegative,
    Penalty,
    Ridge,
    Sum,
    TraceNorm,
)
from .penalty_blocks import compile_penalty
from .structure import Graph, Grid, as_groups
from .structure.names import _names, _places


class Shorthand(Penalty):
    """A penalty that `build` writes as an expression of others."""

    def build(self, p):
        raise TypeError(f"{type(self).__name__} must define build(p)")

    def value(self, u) -> float:
        """psi(u), for coefficients u."""
        u = np.asarray(u, dtype=float)
        return float(sum(block.value(block.matrix @ u) for block in compile_penalty(self, len(u), 1.0)))

    def prox(self, u, step):
        """argmin over z of step psi(z) + |z - u|^2 / 2; found by iteration where it has no closed form."""
        from .proximal import prox

        return prox(u, self, step)

    def __repr__(self):
        values = self.get_params(deep=False)
        default = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        shown = [f"{name}={_short(value)}" for name, value in values.items() if repr(value) != repr(default[name])]
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value):
    plain = isinstance(value, (list, tuple, dict, np.ndarray))
    return f"<{len(value)} entries>" if plain and len(repr(value)) > 60 else repr(value)


def _is_real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and np.isfinite(value)


def _ratio(l1_ratio):
    if not (_is_real(l1_ratio) and 0 <= l1_ratio <= 1):
        raise ValueError(f"l1_ratio is {l1_ratio!r}; it must be a number from 0 to 1")
    return l1_ratio


def _known(p, name):
    if p is None:
        raise ValueError(f"{name} needs the number of features; use terms(p)")
    return p


def _feature_weights(weights, p):
    return None if weights is None else finite_vector("weights", weights, _known(p, "weights"), minimum=0)


def _group_weights(weights, groups):
    """One weight per group: the root of its size, or as given, or as given by name."""
    default = np.sqrt(groups.sizes)
    if weights is None:
        return default
    if not isinstance(weights, dict):
        return finite_vector("weights", weights, len(groups), minimum=0)
    places = _places(groups.names)
    for name, weight in weights.items():
        name = str(name)
        if name not in places:
            raise ValueError(f"weights names the group {name!r}, which does not exist")
        if not (_is_real(weight) and weight >= 0):
            raise ValueError(f"weights[{name!r}] is {weight!r}; it must be finite and at least 0")
        default[places[name]] = weight
    return default


# -- separable --------------------------------------------------------------------------------------


class Lasso(Shorthand):
    r"""The lasso, :math:`\sum_j \omega_j |w_j|`.

    Parameters
    ----------
    weights : vector of p numbers, optional
        0 leaves a feature without penalty, infinity keeps it out.

    Notes
    -----
    Prox: soft threshold. Conjugate: 0 on :math:`|y_j| \le \omega_j`.
    """

    def __init__(self, weights=None):
        self.weights = weights

    def build(self, p):
        return L1(None if self.weights is None else weight_vector("weights", self.weights, _known(p, "weights")))


class ElasticNet(Shorthand):
    r"""The elastic net, :math:`\sum_j \omega_j (\rho |w_j| + \tfrac{1 - \rho}{2} w_j^2)`, as in scikit-learn.

    Parameters
    ----------
    l1_ratio : float
        The share :math:`\rho` of the l1 norm.
    weights : vector of p numbers, optional
        0 leaves a feature without penalty.

    Notes
    -----
    Prox: soft threshold at :math:`s \omega_j \rho`, then division by :math:`1 + s \omega_j (1 - \rho)`.
    Conjugate: :math:`\sum_j (|y_j| - \omega_j \rho)_+^2 / (2 \omega_j (1 - \rho))`.
    """

    def __init__(self, l1_ratio=0.5, weights=None):
        self.l1_ratio, self.weights = _ratio(l1_ratio), weights

    def build(self, p):
        weights = _feature_weights(self.weights, p)
        if weights is None:
            return self.l1_ratio * L1() + (1 - self.l1_ratio) * Ridge()
        # both terms behind one map, so that they stay one block
        root = np.sqrt(weights[weights > 0])
        scale = Matrix(sp.csr_array((root, np.flatnonzero(weights), np.arange(root.size + 1)), shape=(root.size, p)))
        return (self.l1_ratio * L1(root) + (1 - self.l1_ratio) * Ridge()) @ scale


class Monotone(Shorthand):
    r"""The constraint :math:`w_1 \le w_2 \le \dots \le w_p` (or :math:`\ge`).

    Parameters
    ----------
    increasing : bool

    Notes
    -----
    Non-negative differences: conjugate 0 where these have multipliers :math:`y \le 0`.
    """

    def __init__(self, increasing=True):
        self.increasing = increasing

    def build(self, p):
        here = np.arange(_known(p, "Monotone") - 1)
        steps = np.column_stack([here + 1, here] if self.increasing else [here, here + 1])
        return NonNegative() @ Incidence(steps, p)


# -- groups -----------------------------------------------------------------------------------------


class _Grouped(Shorthand):
    def __init__(self, groups, weights=None):
        # what is wrong with them is said here rather than in the middle of a fit
        self.groups, self.weights, self._read = groups, weights, (groups, as_groups(groups))

    def _groups(self, p):
        """The groups for p features; they are read once, unless somebody sets others."""
        given, read = self._read
        return read.checked(p) if given is self.groups else as_groups(self.groups, p)


class GroupLasso(_Grouped):
    r"""The group lasso, :math:`\sum_g \omega_g \|w_g\|_2`: groups are zero as a whole.

    Parameters
    ----------
    groups : Groups, or lists of feature numbers, dict, or vector of p labels
        They may overlap; the support is then what is left when some groups are taken out. Features in no group
        carry no penalty.
    weights : vector, or dict by name, optional
        One per group; the square root of its size by default, and where a dict says nothing.

    Notes
    -----
    Prox: :math:`u_g (1 - s \omega_g / \|u_g\|)_+` on copies of the features. Conjugate: 0 on
    :math:`\|y_g\| \le \omega_g`.
    """

    def build(self, p):
        groups = self._groups(p)
        return GroupL2.of_flat(groups.flat, groups.bounds, _group_weights(self.weights, groups))


class GroupMax(_Grouped):
    r"""Groups by their largest entry, :math:`\sum_g \omega_g \|w_g\|_\infty`; parameters as in GroupLasso.

    Zero groups, and within the others many entries of one absolute value.

    Notes
    -----
    Prox: u minus its projection on the l1 ball of radius :math:`s \omega_g`. Conjugate: 0 on
    :math:`\|y_g\|_1 \le \omega_g`.
    """

    def build(self, p):
        groups = self._groups(p)
        return GroupLinf(groups.members, _group_weights(self.weights, groups))


class LatentGroupLasso(_Grouped):
    r"""Overlapping groups whose union is the support: :math:`\min \sum_g \omega_g \|v_g\|_2`, :math:`\sum_g v_g = w`.

    Parameters
    ----------
    groups : Groups, or lists of feature numbers, dict, or vector of p labels
        Features in no group carry no penalty; see ``Groups.complete``.
    weights : vector, or dict by name, optional
        One per group; the square root of its size by default. The features of a group of weight 0 carry no penalty.

    Notes
    -----
    Each :math:`v_g` is zero outside its group. Prox: u minus its projection on
    :math:`\{v : \|v_g\| \le s \omega_g\}`, by Newton steps on the multipliers of the balls that u leaves.
    Conjugate: 0 on :math:`\|y_g\| \le \omega_g` (Jacob, Obozinski and Vert, 2009).
    """

    def build(self, p):
        groups = self._groups(p)
        weights = _group_weights(self.weights, groups)
        members = groups.members
        if not np.all(weights):
            free = np.unique(np.concatenate([members[k] for k in np.flatnonzero(weights == 0)]))
            members = [np.setdiff1d(group, free) for group in members]
        alive = [k for k, group in enumerate(members) if group.size]
        if not alive:
            return 0.0 * L1()
        return _latent([members[k] for k in alive], weights[alive], _known(p or groups.p, "LatentGroupLasso"))


def _latent(members, weights, p):
    """The latent norm of these groups, features and groups ordered by the parts that share no feature."""
    holders = np.repeat(np.arange(len(members)), [len(group) for group in members])
    table = sp.csr_array((np.ones(holders.size), (holders, np.concatenate(members))), shape=(len(members), p))
    parts, label = sp.csgraph.connected_components(table @ table.T, directed=False)
    part = np.full(p, parts)
    part[np.concatenate(members)] = label[holders]
    features = np.argsort(part, kind="stable")[: np.count_nonzero(part < parts)]
    place = np.empty(p, dtype=np.int64)
    place[features] = np.arange(features.size)
    order = np.argsort(label, kind="stable")
    leaf = LatentL2(
        [place[members[k]] for k in order],
        weights[order],
        np.searchsorted(label[order], np.arange(parts + 1)),
        np.searchsorted(part[features], np.arange(parts + 1)),
    )
    return leaf @ Selection(features, p)


class SparseGroupLasso(_Grouped):
    r"""Few groups, and few features in them: :math:`\rho \sum_j \omega_j |w_j| + (1 - \rho) \sum_g \omega_g \|w_g\|_2`.

    Parameters
    ----------
    groups : Groups, or lists of feature numbers, dict, or vector of p labels
        They may overlap.
    l1_ratio : float
        The share :math:`\rho` of the l1 norm.
    weights : vector, or dict by name, optional
        One per group; the square root of its size by default.
    feature_weights : vector of p numbers, optional
        Of the l1 norm.

    Notes
    -----
    Prox: soft threshold, then the shrinkage of groups. Conjugate: 0 where the prox of y with step 1 is zero.
    """

    def __init__(self, groups, l1_ratio=0.5, weights=None, feature_weights=None):
        super().__init__(groups, weights)
        self.l1_ratio, self.feature_weights = _ratio(l1_ratio), feature_weights

    def build(self, p):
        groups = self._groups(p)
        p = _known(p or groups.p, "SparseGroupLasso")
        single = np.ones(p) if self.feature_weights is None else self.feature_weights
        single = self.l1_ratio * finite_vector("feature_weights", single, p, minimum=0)
        weights = (1 - self.l1_ratio) * _group_weights(self.weights, groups)
        if groups.overlap:
            return L1(single) + GroupL2(groups.members, weights)
        # single features are nested in anything, so that only groups are ever named
        members, sizes = np.concatenate([groups.flat, np.arange(p)]), np.append(groups.sizes, np.ones(p, dtype=int))
        return _nested(members, sizes, np.concatenate([weights, single]), groups.names, p)


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

    def __init__(self, tree, weights=None):
        as_groups(tree)
        self.tree, self.weights = tree, weights

    def build(self, p):
        groups = as_groups(self.tree, p)
        p = _known(p or groups.p, "TreeGroups")
        weights = _group_weights(self.weights, groups)
        return _nested(np.concatenate(groups.members), groups.sizes, weights, groups.names, p)


def _nested(members, sizes, weights, names, p):
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


def _outer_first(parent):
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


class ExclusiveLasso(_Grouped):
    r"""Competition within groups, :math:`\tfrac12 \sum_g \omega_g \|w_g\|_1^2`: some of each group, never all alike.

    Parameters
    ----------
    groups : Groups, or lists of feature numbers, dict, or vector of p labels
        They may overlap. Features in no group carry no penalty.
    weights : vector, or dict by name, optional
        One per group; 1 by default.

    Notes
    -----
    Prox: soft threshold at :math:`s \omega_g \|z_g\|_1`, which follows from the sorted :math:`|u_g|`.
    Conjugate: :math:`\tfrac12 \sum_g \|y_g\|_\infty^2 / \omega_g`.
    """

    def build(self, p):
        groups = self._groups(p)
        weights = np.ones(len(groups)) if self.weights is None else self.weights
        if isinstance(weights, dict):
            weights = dict.fromkeys(groups.names, 1.0) | weights
        weights = _group_weights(weights, groups)
        alive = np.flatnonzero(weights)
        if not alive.size:
            return 0.0 * L1()
        members = [groups.members[k] for k in alive]
        p = _known(p or groups.p, "ExclusiveLasso")
        return ExclusiveL1([len(group) for group in members], weights[alive]) @ Copies(np.concatenate(members), p)


# -- fusion -----------------------------------------------------------------------------------------


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

    def __init__(self, l1_ratio=0.5, order=1, weights=None, difference_weights=None):
        self.l1_ratio, self.order = _ratio(l1_ratio), _count("order", order)
        self.weights, self.difference_weights = weights, difference_weights

    def build(self, p):
        count = _known(p, type(self).__name__) - self.order
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

    def __init__(self, order=2, weights=None):
        self.order, self.weights = _count("order", order), weights

    def build(self, p):
        return FusedLasso(0, self.order, difference_weights=self.weights).build(p)


class GraphFused(Shorthand):
    r"""Neighbours in a graph share their value.

    .. math:: \rho \sum_j \omega_j |w_j| + (1 - \rho) \sum_{ij} |a_{ij}| |w_i - s_{ij} w_j|

    Parameters
    ----------
    graph : Graph, or array of edges (m, 2), with weights (m, 3)
        :math:`a_{ij}` are its weights and :math:`s_{ij}` their signs.
    l1_ratio : float
        The share :math:`\rho` of the l1 norm.
    weights : vector of p numbers, optional
        Of the l1 norm.

    Notes
    -----
    Prox: soft thresholds of the coefficients and of the differences. Conjugate: 0 on the corresponding bounds.
    """

    def __init__(self, graph, l1_ratio=0.5, weights=None):
        self.graph, self.l1_ratio, self.weights = graph, _ratio(l1_ratio), weights

    def build(self, p):
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

    def __init__(self, grid, isotropic=True, l1_ratio=0.0, weights=None):
        self.grid, self.isotropic, self.l1_ratio, self.weights = grid, isotropic, _ratio(l1_ratio), weights

    def build(self, p):
        grid = (self.grid if isinstance(self.grid, Grid) else Grid(self.grid)).checked(p)
        if not len(grid.edges):
            raise ValueError(f"{grid!r} has no neighbouring cells")
        kind = _ranges(grid.edges[:, 0]) if self.isotropic else L1()
        fused = (1 - self.l1_ratio) * (kind @ Incidence(grid.edges, grid.p))
        return fused if self.l1_ratio == 0 else self.l1_ratio * L1(_feature_weights(self.weights, grid.p)) + fused


def _ranges(labels):
    """The sum of Euclidean norms of the runs of equal labels: groups in one go, since a volume has many."""
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]])
    return GroupL2.of_ranges(bounds, np.ones(len(bounds) - 1))


# -- matrices, tensors, several outputs -------------------------------------------------------------


class LowRank(Shorthand):
    r"""Coefficients as a matrix of low rank: the sum of its singular values (trace norm).

    Parameters
    ----------
    shape : (rows, columns), C-ordered

    Notes
    -----
    Prox: soft threshold of the singular values. Conjugate: 0 where the largest is at most 1.
    """

    def __init__(self, shape):
        TraceNorm(shape)
        self.shape = shape

    def build(self, p):
        return TraceNorm(self.shape)


class TensorTraceNorm(Shorthand):
    r"""Coefficients as a tensor of low rank in every mode: :math:`\sum_k \omega_k \|w_{(k)}\|_*` over its unfoldings.

    Parameters
    ----------
    shape : tuple of int, C-ordered
    weights : vector, optional
        One per mode; 1 by default.

    Notes
    -----
    Prox: soft threshold of the singular values of each unfolding. Conjugate: 0 where the largest of each is at most
    :math:`\omega_k` (Tomioka, Hayashi and Kashima, 2010).
    """

    def __init__(self, shape, weights=None):
        if np.ndim(shape) != 1 or len(shape) < 2:
            raise ValueError(f"shape is {shape!r}; it must be two numbers or more")
        for size in shape:
            _count("shape", size)
        self.shape, self.weights = shape, weights

    def build(self, p):
        modes = len(self.shape)
        weights = np.ones(modes) if self.weights is None else finite_vector("weights", self.weights, modes, minimum=0)
        number = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        if p not in (None, number.size):
            raise ValueError(f"{self!r} acts on {number.size} coefficients, but there are {p}")
        parts = []
        for mode, size in enumerate(self.shape):
            unfolding = np.moveaxis(number, mode, 0).ravel()
            norm = TraceNorm((size, number.size // size)) @ Selection(unfolding, number.size)
            parts.append(weights[mode] * norm)
        return Sum(*parts)


def _features_of(p, n_outputs, name):
    """The number of features of each output."""
    if n_outputs is None:
        raise ValueError(f"{name} does not know the number of outputs; give n_outputs")
    features, rest = divmod(_known(p, name), n_outputs)
    if rest:
        raise ValueError(f"{name} has n_outputs = {n_outputs}, which does not divide the {p} coefficients")
    return features


def _outputs(n_outputs):
    return None if n_outputs is None else _count("n_outputs", n_outputs)


class MultiTaskLasso(Shorthand):
    r"""A feature is in or out for all outputs: :math:`\sum_j \omega_j \|W_{:j}\|_2`.

    Parameters
    ----------
    n_outputs : int
        Outputs, classes or tasks; the coefficients of one stand together.
    groups : Groups, or lists of feature numbers, dict, or vector of labels, optional
        Groups of features that are in or out together; each feature for itself by default.
    weights : vector, or dict by name, optional
        One per feature, or per group. By default 1 per feature, the square root of the number of features of a group.

    Notes
    -----
    Prox: the shrinkage of each feature's coefficients together. Conjugate: 0 on :math:`\|Y_{:j}\| \le \omega_j`.
    """

    def __init__(self, n_outputs=None, groups=None, weights=None):
        self.n_outputs, self.groups, self.weights = _outputs(n_outputs), groups, weights

    def build(self, p):
        features = _features_of(p, self.n_outputs, "MultiTaskLasso")
        if self.groups is None and not isinstance(self.weights, dict):
            members = np.arange(p).reshape(self.n_outputs, features).T
            weights = np.ones(features) if self.weights is None else self.weights
            return GroupL2(members, finite_vector("weights", weights, features, minimum=0))
        groups = as_groups(np.arange(features) if self.groups is None else self.groups, features)
        first = features * np.arange(self.n_outputs)
        members = [np.add.outer(first, group).ravel() for group in groups]
        return GroupL2(members, _group_weights(self.weights, groups))


class MultiTaskLowRank(Shorthand):
    r"""Outputs share a few directions: the trace norm of the outputs x features matrix of coefficients.

    Parameters
    ----------
    n_outputs : int
        Outputs, classes or tasks; the coefficients of one stand together.

    Notes
    -----
    Prox: soft threshold of the singular values. Conjugate: 0 where the largest is at most 1.
    """

    def __init__(self, n_outputs=None):
        self.n_outputs = _outputs(n_outputs)

    def build(self, p):
        return TraceNorm((self.n_outputs, _features_of(p, self.n_outputs, "MultiTaskLowRank")))


class PerOutput(Shorthand):
    """The same penalty on the coefficients of every output, class or task.

    Parameters
    ----------
    penalty : Penalty
    n_outputs : int
    """

    def __init__(self, penalty, n_outputs=None):
        self.penalty, self.n_outputs = _as_penalty(penalty), _outputs(n_outputs)

    def build(self, p):
        features = _features_of(p, self.n_outputs, "PerOutput")
        starts = range(0, p, features)
        return Sum(*(self.penalty @ Selection(np.arange(first, first + features), p) for first in starts))


class Unpenalised(Shorthand):
    """A penalty on all features but some, which carry none.

    Parameters
    ----------
    penalty : Penalty
        Acts on the other features, in their order.
    features : list of feature numbers, or of names
    names : list of str or data frame, optional
        Of all features, if `features` are names. An estimator that is fitted to a data frame knows them by itself.

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.Unpenalised(fl.LowRank((8, 8)), features=[64, 65])  # an image and two covariates
    Unpenalised(penalty=LowRank(shape=(8, 8)), features=[64, 65])
    """

    def __init__(self, penalty, features, names=None):
        self.penalty, self.features, self.names = _as_penalty(penalty), features, names

    def rest(self, p) -> np.ndarray:
        """The features that the penalty acts on."""
        features, p = list(self.features), _known(p, "Unpenalised")
        if any(isinstance(feature, str) for feature in features):
            if self.names is None:
                raise ValueError(f"features holds {features[0]!r}; names need names=, the list of all of them, or a "
                                 "data frame in fit")  # fmt: skip
            places = _places(_names(self.names, "names"))
            unknown = [feature for feature in features if feature not in places]
            if unknown:
                raise ValueError(f"features holds {unknown[0]!r}, which is not among the {len(places)} names")
            features = [places[feature] for feature in features]
        rest = np.setdiff1d(np.arange(p), index_array("features", features, p))
        if not rest.size:
            raise ValueError("features holds every feature; nothing is left for the penalty")
        return rest

    def build(self, p):
        return self.penalty @ Selection(self.rest(p), p)


def _as_penalty(penalty):
    if not isinstance(penalty, Penalty):
        raise ValueError(f"penalty is {penalty!r}; it must be a fenchel penalty, e.g. fenchel.L1()")
    return penalty


# -- sorted norms -----------------------------------------------------------------------------------


class Slope(Shorthand):
    r"""The sorted l1 norm, :math:`\sum_k \lambda_k |w|_{(k)}`: the larger a coefficient, the more it pays.

    Coefficients of correlated features come out with equal absolute values.

    Parameters
    ----------
    weights : vector of p numbers that do not increase, optional
        By default those of Benjamini and Hochberg at level q.
    q : float
        Level of the default weights: the expected share of false discoveries under an orthogonal design.

    Notes
    -----
    Prox: isotonic regression of the sorted :math:`|u|_{(k)} - s \lambda_k`, and its positive part. Conjugate: 0
    where :math:`\sum_{k \le m} |y|_{(k)} \le \sum_{k \le m} \lambda_k` for all m (Bogdan et al., 2015).
    """

    def __init__(self, weights=None, q=0.1):
        if not (_is_real(q) and 0 < q < 1):
            raise ValueError(f"q is {q!r}; it must be a number between 0 and 1")
        self.weights, self.q = weights, q

    def build(self, p):
        if self.weights is not None:
            return SortedL1(
                finite_vector("weights", self.weights, np.size(self.weights) if p is None else p, minimum=0)
            )
        from scipy.special import ndtri

        return SortedL1(-ndtri(self.q * np.arange(1, _known(p, "Slope") + 1) / (2 * p)))


class Oscar(Shorthand):
    r"""OSCAR, :math:`a \|w\|_1 + b \sum_{i<j} \max(|w_i|, |w_j|)`: groups of equal size found by themselves.

    Parameters
    ----------
    a, b : float
        Not negative, and not both 0.

    Notes
    -----
    The sorted l1 norm with :math:`\lambda_k = a + b (p - k)`; see Slope (Bondell and Reich, 2008).
    """

    def __init__(self, a=1.0, b=0.1):
        for name, value in (("a", a), ("b", b)):
            if not (_is_real(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}; it must be finite and at least 0")
        if a == 0 and b == 0:
            raise ValueError("a and b are both 0; one of them must be positive")
        self.a, self.b = a, b

    def build(self, p):
        return SortedL1(self.a + self.b * np.arange(_known(p, "Oscar") - 1, -1, -1.0))


CATALOGUE = {
    "lasso": Lasso,
    "elastic-net": ElasticNet,
    "group-lasso": GroupLasso,
    "latent-group-lasso": LatentGroupLasso,
    "sparse-group-lasso": SparseGroupLasso,
    "tree-groups": TreeGroups,
    "group-max": GroupMax,
    "exclusive-lasso": ExclusiveLasso,
    "fused-lasso": FusedLasso,
    "trend-filter": TrendFilter,
    "total-variation": TotalVariation,
    "graph-fused": GraphFused,
    "low-rank": LowRank,
    "tensor-trace-norm": TensorTraceNorm,
    "multi-task-lasso": MultiTaskLasso,
    "multi-task-low-rank": MultiTaskLowRank,
    "slope": Slope,
    "oscar": Oscar,
    "monotone": Monotone,
    "per-output": PerOutput,
    "unpenalised": Unpenalised,
}
