"""What the one-line names of the catalogue share: an entry is short for other penalties."""

from __future__ import annotations

import inspect
import numbers
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from .._validate import Array, finite_vector, weight_vector
from ..structure.names import _places
from .base import Penalty
from .compile import compile_penalty

if TYPE_CHECKING:
    from ..structure.groups import Groups


class Shorthand(Penalty):
    """A penalty that `build` writes as an expression of others."""

    def build(self, p: int | None) -> Penalty:
        raise TypeError(f"{type(self).__name__} must define build(p)")

    def value(self, u: Array) -> float:
        """psi(u), for coefficients u."""
        u = np.asarray(u, dtype=float)
        return float(sum(block.value(block.matrix @ u) for block in compile_penalty(self, len(u), 1.0)))

    def prox(self, u: Array, step: float | Array) -> Array:
        """argmin over z of step psi(z) + |z - u|^2 / 2; found by iteration where it has no closed form."""
        from .whole_prox import prox

        return prox(u, self, cast(float, step))  # one number: what it shares has no units

    def __repr__(self) -> str:
        values = self.get_params(deep=False)
        default = {name: one.default for name, one in inspect.signature(type(self)).parameters.items()}
        shown = [f"{name}={_short(value)}" for name, value in values.items() if repr(value) != repr(default[name])]
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    plain = isinstance(value, (list, tuple, dict, np.ndarray))
    return f"<{len(value)} entries>" if plain and len(repr(value)) > 60 else repr(value)


def _is_real(value: float) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_)) and np.isfinite(value)


def _ratio(l1_ratio: float) -> float:
    if not (_is_real(l1_ratio) and 0 <= l1_ratio <= 1):
        raise ValueError(f"l1_ratio is {l1_ratio!r}; it must be a number from 0 to 1")
    return l1_ratio


GroupWeights: TypeAlias = npt.ArrayLike | dict[str, float] | None  # one per group, or by name; None for the usual


def _known(p: int | None, name: str) -> int:
    if p is None:
        raise ValueError(f"{name} needs the number of features; use terms(p)")
    return p


def _feature_weights(weights: npt.ArrayLike | None, p: int | None) -> Array | None:
    return None if weights is None else weight_vector("weights", weights, _known(p, "weights"))


def _group_weights(weights: GroupWeights, groups: Groups, *, infinite: bool = False) -> Array:
    """One weight per group: the root of its size, or as given, or as given by name; `infinite` ones may keep it out."""
    if weights is not None and not isinstance(weights, dict):
        if infinite:
            return weight_vector("weights", weights, len(groups))
        return finite_vector("weights", weights, len(groups), minimum=0)
    default = np.sqrt(groups.sizes)
    if weights is None:
        return default
    places = _places(groups.names)
    for name, weight in weights.items():
        name = str(name)
        if name not in places:
            raise ValueError(f"weights names the group {name!r}, which does not exist")
        if not ((_is_real(weight) and weight >= 0) or (infinite and weight == np.inf)):
            raise ValueError(f"weights[{name!r}] is {weight!r}; it must be finite and at least 0")
        default[places[name]] = weight
    return default


def _as_penalty(penalty: Penalty) -> Penalty:
    if not isinstance(penalty, Penalty):
        raise ValueError(f"penalty is {penalty!r}; it must be a fenchel penalty, e.g. fenchel.L1()")
    return penalty
