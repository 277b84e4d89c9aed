"""The group lassos."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._validate import Array, warn_user, weight_vector
from ..structure import as_groups
from ..structure.by_name import groups_by, groups_for, holds_names
from ..structure.names import _several
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

    def __init__(
        self, groups: GroupsLike | None = None, weights: GroupWeights = None, by: Any = None, rest: str | None = None
    ) -> None:
        self.groups, self.weights, self.by, self.rest = groups, weights, by, _checked_rest(rest)
        if (groups is None) == (by is None):
            raise ValueError(f"{type(self).__name__} needs groups, or by to make them from the names of the columns; "
                             f"{'both are' if by is not None else 'neither is'} given")  # fmt: skip
        # what is wrong with them is said here rather than in the middle of a fit
        self._read = (groups, None if groups is None or holds_names(groups) else as_groups(groups))

    def with_feature_names(self, names: Any) -> Any:
        out = super().with_feature_names(names)
        if self._read[1] is not None:
            return out
        made = groups_by(self.by, names) if self.by is not None else groups_for(self.groups, names)
        return copy.copy(out).set_params(groups=made, by=None)

    def _given(self, p: int | None) -> Groups:
        """The groups for p features; they are read once, unless somebody sets others."""
        given, read = self._read
        if given is not self.groups and self.groups is not None:
            return as_groups(self.groups, p)
        if read is None:
            raise ValueError(
                f"{self!r} knows features by name, and the data has no names: fit to a data frame (in a pipeline, "
                "set_output(transform='pandas') makes one), or give Groups(..., features=names)"
            )
        return read.checked(p)

    def feature_groups(self, size: int) -> Groups | None:
        groups = self._given(None)
        return groups.complete(size) if self.rest == "alone" else groups

    def _groups(self, p: int | None) -> Groups:
        """The groups to penalise. Features in none of them carry no penalty, which is told unless it is wanted."""
        groups = self._given(p)
        number = p or groups.p
        if number is None or self.rest == "unpenalised":
            return groups
        if self.rest == "alone":
            return groups.complete(number)
        if self._leaves_free:
            left = number - np.unique(groups.flat).size
            if left:
                warn_user(
                    f"{_several(left, 'feature')} of {number} in no group, and so without penalty; "
                    "groups.complete() or rest='alone' makes each a group of its own, rest='unpenalised' says that it "
                    "is meant",
                    UserWarning,
                )
        return groups

    def adapted(self, coef: Array, dearer: Callable[[Array], Array]) -> Penalty:
        """Weights by the groups' names, for root mean squares of their coefficients (of latent ones, their parts)."""
        groups = self.feature_groups(coef.shape[1])
        if groups is None or len(set(groups.names)) < len(groups):
            return super().adapted(coef, dearer)
        parts = self.group_parts(coef, groups)
        sizes = np.array([np.linalg.norm(part) for part in parts]) / np.sqrt(groups.sizes)
        weights = dict(zip(groups.names, (self._weights(groups) * dearer(sizes)).tolist(), strict=True))
        made: Penalty = copy.copy(self).set_params(weights=weights)
        return made

    _leaves_free = True  # whether nothing else penalises a feature that stands in no group

    def _usual_weights(self, groups: Groups) -> Array:
        """Of groups whose weight nobody gives."""
        return np.sqrt(groups.sizes)

    def _weights(self, groups: Groups, *, infinite: bool = False) -> Array:
        """One weight per group; those that `rest` adds have 1 where the others are given as a vector."""
        weights = self.weights
        if weights is None:
            return self._usual_weights(groups)
        if isinstance(weights, dict):
            usual = dict(zip(groups.names, self._usual_weights(groups).tolist(), strict=True))
            return _group_weights(usual | weights, groups, infinite=infinite)
        if self.rest == "alone":
            added = len(groups) - len(self._given(None))
            weights = np.append(np.asarray(weights), np.ones(added)) if added else weights
        return _group_weights(weights, groups, infinite=infinite)


def _checked_rest(rest: str | None) -> str | None:
    if rest not in (None, "unpenalised", "alone"):
        raise ValueError(f"rest is {rest!r}; it must be 'unpenalised' or 'alone', for features that stand in no group")
    return rest


class GroupLasso(_Grouped):
    r"""The group lasso, :math:`\sum_g \omega_g \|w_g\|_2`: groups are zero as a whole.

    Parameters
    ----------
    groups : Groups, or lists of features, dict, or vector of p labels
        They may overlap; the support is then what is left when some groups are taken out. Features are numbers, or
        names of the columns of a data frame.
    weights : vector, or dict by name, optional
        One per group; the square root of its size by default, and where a dict says nothing. 0 leaves a group without
        penalty, infinity keeps it out.
    by : str, list of str, dict or callable, optional
        In place of `groups`: makes them from the names of the columns at every fit, as
        :meth:`fenchel.Groups.from_columns` does. ``by="_"`` puts "colour_red" and "colour_blue" together.
    rest : {"unpenalised", "alone"}, optional
        Features in no group carry no penalty, with a warning; "unpenalised" says that it is meant, and "alone" makes
        each of them a group of its own.

    Notes
    -----
    Prox: :math:`u_g (1 - s \omega_g / \|u_g\|)_+` on copies of the features. Conjugate: 0 on
    :math:`\|y_g\| \le \omega_g`.
    """

    def build(self, p: int | None) -> Penalty:
        groups = self._groups(p)
        return GroupL2.of_flat(groups.flat, groups.bounds, self._weights(groups, infinite=True))


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
        return GroupLinf(groups.members, self._weights(groups, infinite=True))


class SparseGroupLasso(_Grouped):
    r"""Few groups, and few features in them: :math:`\rho \sum_j \omega_j |w_j| + (1 - \rho) \sum_g \omega_g \|w_g\|_2`.

    Parameters
    ----------
    groups, by, rest
        As in GroupLasso. Groups may overlap.
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
        groups: GroupsLike | None = None,
        l1_ratio: float = 0.5,
        weights: GroupWeights = None,
        feature_weights: npt.ArrayLike | None = None,
        by: Any = None,
        rest: str | None = None,
    ) -> None:
        super().__init__(groups, weights, by, rest)
        self.l1_ratio, self.feature_weights = _ratio(l1_ratio), feature_weights
        self._leaves_free = self.l1_ratio == 0

    def adapted(self, coef: Array, dearer: Callable[[Array], Array]) -> Penalty:
        single = np.ones(coef.shape[1]) if self.feature_weights is None else np.asarray(self.feature_weights, float)
        made: Penalty = super().adapted(coef, dearer)
        return made.set_params(feature_weights=single * dearer(np.linalg.norm(coef, axis=0)))

    def build(self, p: int | None) -> Penalty:
        groups = self._groups(p)
        p = _known(p or groups.p, "SparseGroupLasso")
        single = np.ones(p) if self.feature_weights is None else self.feature_weights
        single = weight_vector("feature_weights", single, p)
        weights = self._weights(groups, infinite=True)
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
