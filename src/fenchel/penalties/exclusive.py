"""The squared L1 norms of groups: few features in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Index, Ints, SparseMatrix
from ..maps import Copies
from .base import Penalty
from .group_lasso import _Grouped
from .run import run_prox
from .separable import L1
from .shorthand import _known

if TYPE_CHECKING:
    from ..structure.groups import Groups


class ExclusiveL1(Penalty):
    r"""Half the weighted squares of the l1 norms of groups that stand one after another; see ExclusiveLasso.

    Parameters
    ----------
    sizes : vector
        Of the groups.
    weights : vector of positive numbers
    """

    def __init__(self, sizes: list[int], weights: Array) -> None:
        self.sizes, self.weights = np.asarray(sizes), np.asarray(weights, dtype=float)
        self._bounds = np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def kernel(self) -> Any:  # type: ignore[override]  # loaded when it is asked for
        from ..kernels import catalogue

        return catalogue.exclusive

    @property
    def params(self) -> Array:
        return self.weights

    @property
    def index(self) -> Index:
        return np.concatenate([[len(self.sizes)], self._bounds]).astype(np.int64)

    def size(self) -> int:
        return int(self._bounds[-1])

    def units(self, d: int) -> Ints:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    def value(self, u: Array) -> float:
        return 0.5 * float(self.weights @ np.add.reduceat(np.abs(u), self._bounds[:-1]) ** 2)

    def prox_jacobian(self, u: Array, step: float | Array) -> Array | SparseMatrix:
        # on the support the threshold is the step times the weight times the l1 norm of what is left
        found = run_prox(self, u, step)
        group, sign = self.units(len(found)), np.sign(found)
        rate = np.broadcast_to(step, found.shape)[self._bounds[:-1]] * self.weights
        across = np.sqrt(rate / (1.0 + rate * np.bincount(group, found != 0, len(self.sizes))))
        across = sp.csr_array((sign * across[group], (np.arange(len(found)), group)))
        return sp.csr_array(sp.diags_array(np.abs(sign)) - across @ across.T)

    def conjugate(self, y: Array) -> float:
        return 0.5 * float((np.maximum.reduceat(np.abs(y), self._bounds[:-1]) ** 2 / self.weights).sum())

    def gauge(self, y: Array) -> float:
        return 0.0

    def zero_gauge(self, y: Array) -> float:
        return np.inf if np.any(y) else 0.0

    def __repr__(self) -> str:
        return f"ExclusiveL1({len(self.sizes)} groups)"


class ExclusiveLasso(_Grouped):
    r"""Competition within groups, :math:`\tfrac12 \sum_g \omega_g \|w_g\|_1^2`: some of each group, never all alike.

    Parameters
    ----------
    groups, by, rest
        As in :class:`GroupLasso`.
    weights : vector, or dict by name, optional
        One per group; 1 by default.

    Notes
    -----
    Prox: soft threshold at :math:`s \omega_g \|z_g\|_1`, which follows from the sorted :math:`|u_g|`.
    Conjugate: :math:`\tfrac12 \sum_g \|y_g\|_\infty^2 / \omega_g`.
    """

    def _usual_weights(self, groups: Groups) -> Array:
        return np.ones(len(groups))

    def build(self, p: int | None) -> Penalty:
        groups = self._groups(p)
        weights = self._weights(groups)
        alive = np.flatnonzero(weights)
        if not alive.size:
            return 0.0 * L1()
        members = [groups.members[k] for k in alive]
        p = _known(p or groups.p, "ExclusiveLasso")
        return ExclusiveL1([len(group) for group in members], weights[alive]) @ Copies(np.concatenate(members), p)
