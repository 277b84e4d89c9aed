"""The norm of overlapping groups by latent parts, and its group lasso."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Index, Ints, SparseMatrix
from ..maps import Selection
from .base import _Norm
from .group_lasso import _Grouped
from .latent_parts import latent_parts
from .run import run_prox
from .separable import L1
from .shorthand import _known

if TYPE_CHECKING:
    from ..penalties.base import Penalty
    from ..structure.groups import Groups


class LatentL2(_Norm):
    r"""The latent group norm on its own coordinates; see LatentGroupLasso.

    Parameters
    ----------
    members : list of index arrays
    weights : vector of positive numbers
    in_groups, in_features : vectors
        Bounds, in the groups and in the coordinates, of the parts that share no coordinate.
    """

    def __init__(self, members: list[Ints], weights: Array, in_groups: Ints, in_features: Ints) -> None:
        self.members, self.weights, self.in_groups, self.in_features = members, weights, in_groups, in_features

    @property
    def kernel(self) -> Any:  # type: ignore[override]  # loaded when it is asked for
        from ..kernels import catalogue

        return catalogue.latent

    @property
    def params(self) -> Array:
        out: Array = self.weights
        return out

    @functools.cached_property
    def _bounds(self) -> Index:
        return np.concatenate([[0], np.cumsum([len(group) for group in self.members])]).astype(np.int64)

    @functools.cached_property
    def _flat(self) -> Ints:
        return np.concatenate(self.members)

    @functools.cached_property
    def index(self) -> Index:
        sizes = [len(self.in_groups) - 1, len(self.members), self._bounds[-1]]
        return np.concatenate([sizes, self.in_groups, self.in_features, self._bounds, self._flat]).astype(np.int64)

    def size(self) -> int:
        return int(self.in_features[-1])

    def latent_groups(self) -> tuple[list[Ints], Array] | None:
        return self.members, self.weights

    def units(self, d: int) -> Ints:
        return np.repeat(np.arange(len(self.in_features) - 1), np.diff(self.in_features))

    def value(self, u: Array) -> float:
        from ..kernels.catalogue import latent_value

        u = np.ascontiguousarray(u, dtype=float)
        return float(latent_value(u, self.weights, self.index))

    def prox_jacobian(self, u: Array, step: float | Array) -> Array | SparseMatrix:
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

    def gauge(self, y: Array) -> float:
        squares = np.asarray(y, dtype=float)[self._flat] ** 2
        return float(np.max(np.sqrt(np.add.reduceat(squares, self._bounds[:-1])) / self.weights))


class LatentGroupLasso(_Grouped):
    r"""Overlapping groups whose union is the support: :math:`\min \sum_g \omega_g \|v_g\|_2`, :math:`\sum_g v_g = w`.

    Parameters
    ----------
    groups, by, rest
        As in :class:`GroupLasso`.
    weights : vector, or dict by name, optional
        One per group; the square root of its size by default. The features of a group of weight 0 carry no penalty.

    Notes
    -----
    Each :math:`v_g` is zero outside its group. Prox: u minus its projection on
    :math:`\{v : \|v_g\| \le s \omega_g\}`, by Newton steps on the multipliers of the balls that u leaves.
    Conjugate: 0 on :math:`\|y_g\| \le \omega_g` (Jacob, Obozinski and Vert, 2009).
    """

    def group_parts(self, coef: Array, groups: Groups) -> list[Array]:
        """The latent parts, every output's for itself."""
        weights = self._weights(groups)
        rows = [latent_parts(one, groups.members, weights) for one in coef]
        return [np.array(parts) for parts in zip(*rows, strict=True)]

    def build(self, p: int | None) -> Penalty:
        groups = self._groups(p)
        weights = self._weights(groups)
        members = groups.members
        if not np.all(weights):
            free = np.unique(np.concatenate([members[k] for k in np.flatnonzero(weights == 0)]))
            members = [np.setdiff1d(group, free) for group in members]
        alive = [k for k, group in enumerate(members) if group.size]
        if not alive:
            return 0.0 * L1()
        out: Penalty = _latent([members[k] for k in alive], weights[alive], _known(p or groups.p, "LatentGroupLasso"))
        return out


def _latent(members: list[Ints], weights: Array, p: int) -> Penalty:
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
