"""Names of features: what they are, where they stand, how a message lists them."""

from __future__ import annotations

from .._validate import _count


def _names(names, what="features") -> list[str] | None:
    """A list of different names, from a list or the columns of a data frame; None stays None."""
    if names is None:
        return None
    names = getattr(names, "columns", names)
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise ValueError(f"{what} is {names!r}; it must be a list of names")
    names = [name if isinstance(name, str) else str(name) for name in names]
    places = _places(names)
    if len(places) < len(names):
        twice = next(name for k, name in enumerate(names) if places[name] != k)
        raise ValueError(f"{what} names {twice!r} twice")
    return names


def _places(names) -> dict:
    return {name: k for k, name in enumerate(names)}


def _number(p, names, what):
    """The number of features that p and the names agree on; None where neither says."""
    if p is not None:
        p = _count("p", p)
        if names is not None and len(names) != p:
            raise ValueError(f"{what} has {len(names)} names for p = {p} features")
        return p
    return None if names is None else len(names)


def _label(names, k):
    return repr(names[k]) if names is not None else str(k)


def _several(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _fits(structure, p):
    """Refuse p features for a structure of another number; returns the number that is known."""
    if structure.p is not None and p is not None and structure.p != p:
        raise ValueError(
            f"{structure!r} describes {structure.p} features, but the penalty acts on {p}; "
            "for several outputs see PerOutput and MultiTaskLasso, for further covariates Unpenalised"
        )
    return structure.p if p is None else p


def _pandas():
    try:
        import pandas
    except ImportError as error:
        raise ImportError("answers by name are pandas data frames; install pandas (pip install fenchel[io])") from error
    return pandas


def _index(names, label):
    return _pandas().Index(names, name=label, dtype=object)
