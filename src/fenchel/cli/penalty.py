"""The penalty that the options describe: every entry of the catalogue, by its name and its parameters."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..penalties import CATALOGUE, L1, Box, NonNegative, Ridge, Unpenalised
from .common import hint

if TYPE_CHECKING:
    from ..penalties.base import Penalty
    from .options import ModelOptions
    from .structure import Structure

# entries that other options stand for: several targets, and --unpenalised
_BY_OPTION = ("per-output", "unpenalised")
_PLAIN: dict[str, Callable[[], Penalty] | None] = {"ridge": Ridge, "non-negative": NonNegative, "box": None}
SHORT = {
    "l1": "lasso", "group": "group-lasso", "group-linf": "group-max", "graph": "graph-fused", "fused": "fused-lasso",
    "trend": "trend-filter", "tv": "total-variation", "trace": "low-rank",
}  # fmt: skip

# the options that fill each parameter; a parameter that is not here has an option of its own name
_OPTIONS = {
    "groups": ("groups", "groups_by", "complete_groups"), "tree": ("tree",), "graph": ("edges",),
    "grid": ("shape", "mask"), "shape": ("shape",), "difference_weights": ("term_weights",), "n_outputs": (),
}  # fmt: skip
_CHECKED = ("groups", "groups_by", "complete_groups", "tree", "edges", "shape", "mask", "l1_ratio", "order",
            "isotropic", "increasing", "q", "a", "b", "feature_weights", "group_weights", "term_weights")  # fmt: skip


def known_penalties() -> dict[str, Any]:
    """The penalties that --penalty takes, those that were registered last included."""
    return {**{name: kind for name, kind in CATALOGUE.items() if name not in _BY_OPTION}, **_PLAIN}


def full_name(name: str) -> str:
    """The catalogue's name of a penalty, which may be given by a short one."""
    name = SHORT.get(name, name)
    known = known_penalties()
    if name not in known:
        raise ValueError(f"--penalty is {name!r}; {hint(name, known)}")
    return name


def _parameters(name: str) -> list[str]:
    return [] if name in _PLAIN else list(inspect.signature(CATALOGUE[name]).parameters)


def options_of(name: str) -> set[str]:
    """The options that a penalty reads."""
    found = set()
    for parameter in _parameters(name):
        if parameter == "weights":
            found |= set(_weights_of(name))
        else:
            found |= set(_OPTIONS.get(parameter, (parameter,)))
    return found


def _weights_of(name: str) -> tuple[str, ...]:
    """The options that fill the parameter `weights` of a penalty."""
    return tuple(f"{unit}_weights" for unit in CATALOGUE[name].weights_per)


def make_penalty(options: ModelOptions, structure: Structure, outputs: int, p: int) -> Penalty:
    """The penalty on all outputs * p coefficients, with --l1, --ridge and bounds added; None for none."""
    from ..models.preparation import for_outputs

    name = full_name(options.penalty)
    _refuse_unread(name, options)
    parts = [_main_part(name, options, structure)]
    for weight, kind, option in ((options.l1, L1, "--l1"), (options.ridge, Ridge, "--ridge")):
        if weight is not None and not 0 <= weight < float("inf"):
            raise ValueError(f"{option} is {weight:g}; it must be finite and not negative")
        if weight:
            parts.append(kind() if weight == 1 else weight * kind())
    infinity = float("inf")
    if options.lower is not None or options.upper is not None:
        parts.append(
            Box(
                -infinity if options.lower is None else options.lower,
                infinity if options.upper is None else options.upper,
            )
        )
    elif name == "box":
        raise ValueError("the penalty box needs --lower, --upper or both")
    given = [part for part in parts if part is not None]
    whole = for_outputs(functools.reduce(lambda a, b: a + b, given), outputs, structure.p)
    if not structure.free.size:
        return whole
    return Unpenalised(whole, [int(j + k * p) for k in range(outputs) for j in structure.free])


def _refuse_unread(name: str, options: ModelOptions) -> None:
    """An option that the penalty does not read is an error, not ignored."""
    read = options_of(name)
    for option in _CHECKED:
        value = getattr(options, option)
        if option not in read and value is not None and value is not False:
            users = [other for other in known_penalties() if option in options_of(other)]
            raise ValueError(
                f"--{option.replace('_', '-')} goes with the penalty {' or '.join(users)}, not with {name!r}"
            )


def _main_part(name: str, options: ModelOptions, structure: Structure) -> Penalty | None:
    if name in _PLAIN:
        plain = _PLAIN[name]
        return None if plain is None else plain()
    arguments = {}
    for parameter in _parameters(name):
        value = _argument(name, parameter, options, structure)
        if value is not None:
            arguments[parameter] = value
    return CATALOGUE[name](**arguments)


def _argument(name: str, parameter: str, options: ModelOptions, structure: Structure) -> Any:
    """The value of a penalty's parameter; None where nothing is said."""
    given = any(getattr(options, option) for option in _OPTIONS["groups"])
    if parameter == "groups":
        known = inspect.signature(CATALOGUE[name]).parameters
        optional = known[parameter].default is None and "by" not in known
        return None if optional and not given else structure.groups
    if parameter in ("tree", "graph", "grid", "shape"):
        return getattr(structure, parameter)
    if parameter == "n_outputs":
        return None
    if parameter not in ("weights", "feature_weights", "difference_weights"):
        return vars(options).get(parameter)  # a parameter without an option keeps its default
    sources = _weights_of(name) if parameter == "weights" else _OPTIONS.get(parameter, (parameter,))
    for source in sources:
        if getattr(options, source) is None:
            continue
        if source == "group_weights":
            return structure.group_weights(structure.tree.groups() if "tree" in _parameters(name) else structure.groups)
        if "group_weights" in sources and given:
            raise ValueError(f"--feature-weights goes with {name} without groups; use --group-weights")
        return getattr(structure, source)()
    return None
