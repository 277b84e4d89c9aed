"""Norms with a prox of their own, on their own coordinates: what some entries of the catalogue are made of."""

from __future__ import annotations

import functools

import numpy as np

from .maps import finite_vector
from .penalties import _TINY, Penalty, UnitForm, unbounded


class _Norm(Penalty):
    """A norm, through the gauge of its dual ball."""

    def conjugate(self, y):
        return 0.0 if self.gauge(y) <= 1 + _TINY else np.inf

    def __repr__(self):
        return f"{type(self).__name__}({self.size()})"


class SortedL1(_Norm):
    r"""The sorted l1 norm on its own coordinates; see Slope.

    Parameters
    ----------
    weights : vector of numbers that do not increase
    """

    def __init__(self, weights):
        weights = finite_vector("weights", weights, np.size(weights), minimum=0)
        rise = np.flatnonzero(np.diff(weights) > 0)
        if rise.size:
            k = rise[0]
            raise ValueError(f"weights[{k + 1}] is {weights[k + 1]:g}, above weights[{k}] = {weights[k]:g}; "
                             "they must not increase")  # fmt: skip
        if not weights[:1].any():
            raise ValueError("weights are all 0; the first must be positive")
        self.weights = weights

    @property
    def kernel(self):
        from .kernels import catalogue

        return catalogue.sorted_l1

    @property
    def params(self):
        return self.weights

    def size(self):
        return len(self.weights)

    def value(self, u):
        return float(self.weights @ np.sort(np.abs(u))[::-1])

    def gauge(self, y):
        return float(np.max(np.cumsum(np.sort(np.abs(y))[::-1]) / np.cumsum(self.weights)))

    def ties(self, u):
        size = np.abs(u)
        order = np.argsort(size, kind="stable")
        i, j = order[:-1], order[1:]
        same = (size[i] == size[j]) & (size[i] > 0)
        return i[same], j[same], np.sign(u[i] * u[j])[same]


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

    def __init__(self, first, last, parent, weights):
        self.first, self.last, self.parent, self.weights = first, last, parent, weights

    @property
    def kernel(self):
        from .kernels import catalogue

        return catalogue.nested

    @property
    def params(self):
        return self.weights

    @property
    def index(self):
        return np.concatenate([[len(self.first)], self.first, self.last]).astype(np.int64)

    def size(self):
        return int(self.last.max())

    def units(self, d):
        return np.searchsorted(np.sort(self.first[self.parent < 0]), np.arange(d), side="right") - 1

    def value(self, u):
        from .kernels.catalogue import nested_norms

        return float(self.weights @ nested_norms(np.ascontiguousarray(u, dtype=float), self.first, self.last))

    def gauge(self, y):
        from .kernels.catalogue import nested_gauge

        y = np.ascontiguousarray(y, dtype=float)
        return float(nested_gauge(y, self.first, self.last, self.parent, self.weights))

    def unit_form(self, d):
        several = self.last - self.first > 1
        if np.any(several & (self.parent >= 0)):
            return None  # groups inside groups
        labels = self.units(d)
        single, norms = np.zeros(d), np.zeros(labels.max() + 1)
        np.add.at(single, self.first[~several], self.weights[~several])
        norms[labels[self.first[several]]] = self.weights[several]
        return UnitForm(single, *unbounded(d), labels=labels, norms=norms, bounded=False)


class LatentL2(_Norm):
    r"""The latent group norm on its own coordinates; see LatentGroupLasso.

    Parameters
    ----------
    members : list of index arrays
    weights : vector of positive numbers
    in_groups, in_features : vectors
        Bounds, in the groups and in the coordinates, of the parts that share no coordinate.
    """

    def __init__(self, members, weights, in_groups, in_features):
        self.members, self.weights, self.in_groups, self.in_features = members, weights, in_groups, in_features

    @property
    def kernel(self):
        from .kernels import catalogue

        return catalogue.latent

    @property
    def params(self):
        return self.weights

    @functools.cached_property
    def _bounds(self):
        return np.concatenate([[0], np.cumsum([len(group) for group in self.members])]).astype(np.int64)

    @functools.cached_property
    def _flat(self):
        return np.concatenate(self.members)

    @functools.cached_property
    def index(self):
        sizes = [len(self.in_groups) - 1, len(self.members), self._bounds[-1]]
        return np.concatenate([sizes, self.in_groups, self.in_features, self._bounds, self._flat]).astype(np.int64)

    def size(self):
        return int(self.in_features[-1])

    def units(self, d):
        return np.repeat(np.arange(len(self.in_features) - 1), np.diff(self.in_features))

    def value(self, u):
        from .kernels.catalogue import latent_value

        u = np.ascontiguousarray(u, dtype=float)
        return float(latent_value(u, self.weights, self.index))

    def gauge(self, y):
        squares = np.asarray(y, dtype=float)[self._flat] ** 2
        return float(np.max(np.sqrt(np.add.reduceat(squares, self._bounds[:-1])) / self.weights))


class ExclusiveL1(Penalty):
    r"""Half the weighted squares of the l1 norms of groups that stand one after another; see ExclusiveLasso.

    Parameters
    ----------
    sizes : vector
        Of the groups.
    weights : vector of positive numbers
    """

    def __init__(self, sizes, weights):
        self.sizes, self.weights = np.asarray(sizes), np.asarray(weights, dtype=float)
        self._bounds = np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def kernel(self):
        from .kernels import catalogue

        return catalogue.exclusive

    @property
    def params(self):
        return self.weights

    @property
    def index(self):
        return np.concatenate([[len(self.sizes)], self._bounds]).astype(np.int64)

    def size(self):
        return int(self._bounds[-1])

    def units(self, d):
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def value(self, u):
        return 0.5 * float(self.weights @ np.add.reduceat(np.abs(u), self._bounds[:-1]) ** 2)

    def conjugate(self, y):
        return 0.5 * float((np.maximum.reduceat(np.abs(y), self._bounds[:-1]) ** 2 / self.weights).sum())

    def gauge(self, y):
        return 0.0

    def zero_gauge(self, y):
        return np.inf if np.any(y) else 0.0

    def __repr__(self):
        return f"ExclusiveL1({len(self.sizes)} groups)"
