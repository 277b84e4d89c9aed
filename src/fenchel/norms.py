"""Norms with a prox of their own, on their own coordinates: what some entries of the catalogue are made of."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp

from ._validate import finite_vector
from .penalties import _TINY, Penalty, UnitForm, run_prox, unbounded


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

    def prox_jacobian(self, u, step):
        # entries of one size were pooled: they move together, each by the mean
        found = run_prox(self, u, step)
        size = np.abs(found)
        _, pool, count = np.unique(size, return_inverse=True, return_counts=True)
        direction = np.sign(found) / np.sqrt(count[pool])
        across = sp.csr_array((direction, (np.arange(len(found)), pool)), shape=(len(found), count.size))
        return across @ across.T

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

    def prox_jacobian(self, u, step):
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

    def prox_jacobian(self, u, step):
        r"""With v the projection on the balls, :math:`v_j = u_j / D_j` and :math:`D_j = 1 + \sum_{g \ni j} \lambda_g`.

        A move of u changes the multipliers of the balls that hold v so that it stays on their surfaces:
        :math:`dv = D^{-1} du - N M^{-1} N^\top du` with :math:`N_{jg} = v_j / D_j` and
        :math:`M_{gh} = \sum_{j \in g \cap h} v_j^2 / D_j`.
        """
        u, step = np.asarray(u, dtype=float), np.broadcast_to(step, np.shape(u))
        v = u - run_prox(self, u, step)
        owner = np.repeat(np.arange(len(self.members)), np.diff(self._bounds))
        lengths = np.sqrt(np.bincount(owner, v[self._flat] ** 2, len(self.members)))
        radius = self.weights * step[self._flat[self._bounds[:-1]]]
        held = np.flatnonzero(lengths >= (1 - 1e-9) * radius)
        member = sp.csr_array((np.ones(owner.size), (self._flat, owner)), shape=(len(u), len(self.members)))
        member = member[:, held].toarray()
        known = (v != 0) & member.any(axis=1)
        share = np.ones(len(u))
        share[known] = np.clip(v[known] / u[known], 0.0, 1.0)
        normal = member * (v * share)[:, None]
        middle = normal.T @ (member * v[:, None])
        return np.diag(1.0 - share) + normal @ np.linalg.pinv(middle, rcond=1e-10, hermitian=True) @ normal.T

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

    def prox_jacobian(self, u, step):
        # on the support the threshold is the step times the weight times the l1 norm of what is left
        found = run_prox(self, u, step)
        group, sign = self.units(len(found)), np.sign(found)
        rate = np.broadcast_to(step, found.shape)[self._bounds[:-1]] * self.weights
        across = np.sqrt(rate / (1.0 + rate * np.bincount(group, found != 0, len(self.sizes))))
        across = sp.csr_array((sign * across[group], (np.arange(len(found)), group)))
        return sp.csr_array(sp.diags_array(np.abs(sign)) - across @ across.T)

    def conjugate(self, y):
        return 0.5 * float((np.maximum.reduceat(np.abs(y), self._bounds[:-1]) ** 2 / self.weights).sum())

    def gauge(self, y):
        return 0.0

    def zero_gauge(self, y):
        return np.inf if np.any(y) else 0.0

    def __repr__(self):
        return f"ExclusiveL1({len(self.sizes)} groups)"
