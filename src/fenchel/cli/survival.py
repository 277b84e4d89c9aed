"""Survival times from the command line: which columns hold them, and what they look like."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._validate import AnyArray
from ..losses.cox import survival_records

if TYPE_CHECKING:
    from .options import ModelOptions


def survival_columns(options: ModelOptions) -> list[str]:
    """The columns of time and event; none where no time is named."""
    if options.time is None and options.event is None:
        return []
    if options.time is None or options.event is None:
        given, missing = ("--event", "--time") if options.time is None else ("--time", "--event")
        raise ValueError(f"{given} is given without {missing}; survival times need both")
    if options.target:
        raise ValueError(
            f"--target is {options.target[0]!r}, but --time and --event are the target; give one or the other"
        )
    return [options.time, options.event]


def check_survival(options: ModelOptions, name: str, across_rows: bool) -> None:
    """A ValueError where a loss and the options of survival do not go together."""
    if across_rows and options.time is None:
        raise ValueError(f"--loss {name} needs --time and --event, the columns of survival times and events")
    for option in ("time", "strata"):
        if not across_rows and getattr(options, option) is not None:
            raise ValueError(f"--{option} does not go with the loss {name!r}; leave --loss out, or say cox")
    if across_rows and options.task is not None:
        raise ValueError(
            f"--task does not go with the loss {name!r}, which has one vector of coefficients; see --strata"
        )
    if across_rows and options.class_weight:
        raise ValueError(f"--class-weight goes with a loss for labels, not with {name!r}")


def survival_targets(y: AnyArray, strata: AnyArray | None, file: str) -> AnyArray:
    """Times and events as the loss takes them."""
    try:
        return survival_records(y, strata)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
