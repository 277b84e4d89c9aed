"""Names of features: what they are, where they stand, how a message lists them."""

from __future__ import annotations

from typing import Any

from .._validate import Names, _count


def _names(names: Names, what: str = "features") -> list[str]:
    """A list of different names, from a list or the columns of a data frame."""
    names = getattr(names, "columns", names)
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise ValueError(f"{what} is {names!r}; it must be a list of names")
    listed = [name if isinstance(name, str) else str(name) for name in names]
    places = _places(listed)
    if len(places) < len(listed):
        twice = next(name for k, name in enumerate(listed) if places[name] != k)
        raise ValueError(f"{what} names {twice!r} twice")
    return listed


def _places(names: list[str]) -> dict[str, int]:
    return {name: k for k, name in enumerate(names)}


def _number(p: int | None, names: list[str] | None, what: str) -> int | None:
    """The number of features that p and the names agree on; None where neither says."""
    if p is not None:
        p = _count("p", p)
        if names is not None and len(names) != p:
            raise ValueError(f"{what} has {len(names)} names for p = {p} features")
        return p
    return None if names is None else len(names)


def _label(names: list[str] | None, k: int) -> str:
    return repr(names[k]) if names is not None else str(k)


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _fits(structure: Any, p: int | None) -> int | None:
    """Refuse p features for a structure of another number; returns the number that is known."""
    if structure.p is not None and p is not None and structure.p != p:
        raise ValueError(
            f"{structure!r} describes {structure.p} features, but the penalty acts on {p}; "
            "for several outputs see PerOutput and MultiTaskLasso, for further covariates Unpenalised"
        )
    return structure.p if p is None else p


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("answers by name are pandas data frames; install pandas (pip install fenchel[io])") from error
    return pandas


def _index(names: list[str], label: str) -> Any:
    return _pandas().Index(names, name=label, dtype=object)
