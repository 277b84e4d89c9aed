"""Parameters of the estimators, looked at before a fit: one of the wrong type is refused, and its name told."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

_FLAGS = ("fit_intercept", "standardize", "warm_start")
_AT_LEAST_ZERO = ("alpha", "tol", "time_limit")
_SHARES = ("alpha_ratio", "eps")
_OPTIONAL = ("time_limit", "alpha_ratio", "eps")


def check_parameters(model: Any) -> None:
    """A ValueError names the first parameter that is of the wrong type or out of its range."""
    given = model.get_params(deep=False)
    for name, value in given.items():
        if value is None and name in _OPTIONAL:
            continue
        if name in _FLAGS and not isinstance(value, (bool, np.bool_)):
            raise ValueError(f"{name} is {value!r}; it must be True or False")
        if name in _AT_LEAST_ZERO and not (is_number(value) and 0 <= value < np.inf):
            raise ValueError(f"{name} is {value!r}; it must be a number, finite and not negative")
        if name in _SHARES and not (is_number(value) and 0 < value <= 1):
            raise ValueError(f"{name} is {value!r}; it must be a number above 0 and at most 1")
        if name == "verbose" and not (isinstance(value, (bool, np.bool_)) or is_number(value)):
            raise ValueError(f"{name} is {value!r}; it must be True or False")
        if name in ("solver_options", "penalty_grid") and value is not None and not isinstance(value, Mapping):
            if name == "penalty_grid" and isinstance(value, (list, tuple)):
                continue
            raise ValueError(f"{name} is {value!r}; it must be a dict")
    _check_grid(given.get("penalty_grid"))
    _check_alpha(model, given)


def _check_grid(grid: Any) -> None:
    """A grid is a dict from parameters to lists of values, or a list of such."""
    for part in grid if isinstance(grid, (list, tuple)) else [] if grid is None else [grid]:
        if not isinstance(part, Mapping):
            raise ValueError(f"penalty_grid holds {part!r}; it must be a dict such as {{'l1_ratio': [0.1, 0.5]}}")
        for name, values in part.items():
            if isinstance(values, str) or not hasattr(values, "__len__") or not len(values):
                raise ValueError(f"penalty_grid[{name!r}] is {values!r}; it must be a list of values, one at least")


def _check_alpha(model: Any, given: Mapping[str, Any]) -> None:
    """Of two ways to say how strong the penalty is, one: nobody should guess which of them holds."""
    alpha, ratio = given.get("alpha"), given.get("alpha_ratio")
    if alpha is None or ratio is None:
        return
    default = inspect.signature(type(model)).parameters["alpha"].default
    if alpha != default:
        raise ValueError(
            f"alpha is {alpha!r} and alpha_ratio is {ratio!r}; give one of them: alpha_ratio is a share of the largest "
            f"useful alpha (leave alpha at {default!r}, its default), alpha the number itself (alpha_ratio=None)"
        )


def is_number(value: Any) -> bool:
    """Whether it is a real number, and no string, array or truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
