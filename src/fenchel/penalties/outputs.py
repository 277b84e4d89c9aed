"""Penalties for many outputs or tasks, and features that are left free."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._validate import Ints, Names, _count, finite_vector, index_array
from ..maps import Selection
from ..structure import Groups, as_groups
from ..structure.by_name import groups_for, holds_names
from ..structure.names import _names, _places
from .base import Sum
from .groups import GroupL2
from .shorthand import Shorthand, _as_penalty, _group_weights, _known

if TYPE_CHECKING:
    from ..penalties.shorthand import GroupWeights
    from ..structure.tree import GroupsLike
    from .base import Penalty


def _features_of(p: int | None, n_outputs: int | None, name: str) -> int:
    """The number of features of each output."""
    if n_outputs is None:
        raise ValueError(f"{name} does not know the number of outputs; give n_outputs")
    features, rest = divmod(_known(p, name), n_outputs)
    if rest:
        raise ValueError(f"{name} has n_outputs = {n_outputs}, which does not divide the {p} coefficients")
    return features


def _outputs(n_outputs: int | None) -> int | None:
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

    weights_per = ("feature", "group")

    def __init__(
        self, n_outputs: int | None = None, groups: GroupsLike | None = None, weights: GroupWeights = None
    ) -> None:
        self.n_outputs, self.groups, self.weights = _outputs(n_outputs), groups, weights

    def with_feature_names(self, names: Any) -> Any:
        out = super().with_feature_names(names)
        return copy.copy(out).set_params(groups=groups_for(self.groups, names)) if holds_names(self.groups) else out

    def feature_groups(self, size: int) -> Groups | None:
        """The groups, or the features themselves, each of which is in or out for all outputs."""
        each = Groups(np.arange(size)[:, None], [str(j) for j in range(size)], size)
        return each if self.groups is None else super().feature_groups(size)

    def build(self, p: int | None) -> Penalty:
        features = _features_of(p, self.n_outputs, "MultiTaskLasso")
        outputs = cast(int, self.n_outputs)
        if self.groups is None and not isinstance(self.weights, dict):
            members = np.arange(outputs * features).reshape(outputs, features).T
            weights = np.ones(features) if self.weights is None else self.weights
            return GroupL2(members, finite_vector("weights", weights, features, minimum=0))
        groups = as_groups(np.arange(features) if self.groups is None else self.groups, features)
        first = features * np.arange(outputs)
        joined = [np.add.outer(first, group).ravel() for group in groups]
        return GroupL2(joined, _group_weights(self.weights, groups))


class PerOutput(Shorthand):
    """The same penalty on the coefficients of every output, class or task.

    Parameters
    ----------
    penalty : Penalty
    n_outputs : int
    """

    def __init__(self, penalty: Penalty, n_outputs: int | None = None) -> None:
        self.penalty, self.n_outputs = _as_penalty(penalty), _outputs(n_outputs)

    def written_parts(self, places: Ints | None, p: int) -> Iterator[tuple[Penalty, Ints | None]]:
        return self.penalty.written_parts(places, p)

    def build(self, p: int | None) -> Penalty:
        features = _features_of(p, self.n_outputs, "PerOutput")
        p = _known(p, "PerOutput")
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

    def __init__(self, penalty: Penalty, features: Sequence[int | str], names: Names | None = None) -> None:
        self.penalty, self.features, self.names = _as_penalty(penalty), features, names

    def written_parts(self, places: Ints | None, p: int) -> Iterator[tuple[Penalty, Ints | None]]:
        rest = self.rest(p if places is None else len(places))
        return self.penalty.written_parts(rest if places is None else places[rest], p)

    def with_feature_names(self, names: Any) -> Any:
        out: Any = self
        if self.names is None and any(isinstance(feature, str) for feature in self.features):
            out = copy.copy(self).set_params(names=list(names))
        own = self.penalty.with_feature_names([names[place] for place in out.rest(len(names))])
        return out if own is self.penalty else copy.copy(out).set_params(penalty=own)

    def rest(self, p: int | None) -> Ints:
        """The features that the penalty acts on."""
        features: list[Any] = list(self.features)
        p = _known(p, "Unpenalised")
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

    def build(self, p: int | None) -> Penalty:
        return self.penalty @ Selection(self.rest(p), _known(p, "Unpenalised"))
