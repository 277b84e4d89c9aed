"""The group lassos."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._validate import weight_vector
from ..structure import as_groups
from .groups import GroupL2, GroupLinf
from .nested import _nested
from .separable import L1
from .shorthand import Shorthand, _group_weights, _known, _ratio

if TYPE_CHECKING:
    from .._validate import Array
    from ..penalties.shorthand import GroupWeights
    from ..structure.groups import Groups
    from ..structure.tree import GroupsLike
    from .base import Penalty


class _Grouped(Shorthand):
    """What penalties of groups share."""

    weights_per = ("group",)

    def __init__(self, groups: GroupsLike, weights: GroupWeights = None) -> None:
        # what is wrong with them is said here rather than in the middle of a fit
        self.groups, self.weights, self._read = groups, weights, (groups, as_groups(groups))

    def _groups(self, p: int | None) -> Groups:
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
        One per group; the square root of its size by default, and where a dict says nothing. 0 leaves a group without
        penalty, infinity keeps it out.

    Notes
    -----
    Prox: :math:`u_g (1 - s \omega_g / \|u_g\|)_+` on copies of the features. Conjugate: 0 on
    :math:`\|y_g\| \le \omega_g`.
    """

    def build(self, p: int | None) -> Penalty:
        groups = self._groups(p)
        return GroupL2.of_flat(groups.flat, groups.bounds, _group_weights(self.weights, groups, infinite=True))


class GroupMax(_Grouped):
    r"""Groups by their largest entry, :math:`\sum_g \omega_g \|w_g\|_\infty`; parameters as in GroupLasso.

    Zero groups, and within the others many entries of one absolute value.

    Notes
    -----
    Prox: u minus its projection on the l1 ball of radius :math:`s \omega_g`. Conjugate: 0 on
    :math:`\|y_g\|_1 \le \omega_g`.
    """

    def build(self, p: int | None) -> Penalty:
        groups = self._groups(p)
        return GroupLinf(groups.members, _group_weights(self.weights, groups, infinite=True))


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

    def __init__(
        self,
        groups: GroupsLike,
        l1_ratio: float = 0.5,
        weights: GroupWeights = None,
        feature_weights: npt.ArrayLike | None = None,
    ) -> None:
        super().__init__(groups, weights)
        self.l1_ratio, self.feature_weights = _ratio(l1_ratio), feature_weights

    def build(self, p: int | None) -> Penalty:
        groups = self._groups(p)
        p = _known(p or groups.p, "SparseGroupLasso")
        single = np.ones(p) if self.feature_weights is None else self.feature_weights
        single = weight_vector("feature_weights", single, p)
        weights = _group_weights(self.weights, groups, infinite=True)
        held = np.isinf(single)
        held[groups.flat[np.repeat(np.isinf(weights), groups.sizes)]] = True
        single = self.l1_ratio * np.where(np.isinf(single), 1.0, single)  # what holds a feature is another matter
        weights = (1 - self.l1_ratio) * np.where(np.isinf(weights), 1.0, weights)
        out = self._weighted(groups, single, weights, p)
        return out + L1(np.where(held, np.inf, 0.0)) if held.any() else out

    def _weighted(self, groups: Groups, single: Array, weights: Array, p: int) -> Penalty:
        if groups.overlap:
            return L1(single) + GroupL2(groups.members, weights)
        # single features are nested in anything, so that only groups are ever named
        members, sizes = np.concatenate([groups.flat, np.arange(p)]), np.append(groups.sizes, np.ones(p, dtype=int))
        return _nested(members, sizes, np.concatenate([weights, single]), groups.names, p)
