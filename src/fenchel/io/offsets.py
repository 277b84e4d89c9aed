"""Offsets of rows: a column, an array or a file of numbers, as they stand or by their logarithm."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import AnyArray, Array
from .text import _numbered

_LOG = re.compile(r"log\((.+)\)")


def named(offset: str, names: Sequence[str] | Mapping[str, Any]) -> tuple[str, bool]:
    """What `offset` names, and whether its logarithm is meant, as in log(exposure)."""
    found = None if offset in names else _LOG.fullmatch(offset.strip())
    return (offset, False) if found is None else (found.group(1).strip(), True)


def taken(values: Array, log: bool, fault: Callable[[int, str], Exception]) -> Array:
    """The values, or their logarithms; `fault` makes the error that names the place of one that has none."""
    bad = np.flatnonzero(~(np.isfinite(values) & ((values > 0) | (not log))))
    if bad.size:
        positive = "an exposure must be above 0 to have a logarithm; leave such rows out"
        what = positive if log else "an offset must be a finite number"
        raise fault(int(bad[0]), f"holds {values[bad[0]]:g}; {what}")
    return np.log(values) if log else values


def from_arrays(offset: str, arrays: Mapping[str, AnyArray], path: str | Path, rows: int) -> Array | None:
    """The offset among the arrays of a file; None where it is not there."""
    name, log = named(offset, arrays)
    if name not in arrays:
        return None
    values = arrays[name]
    if values.shape != (rows,) or values.dtype.kind not in "biuf":
        raise ValueError(
            f"{path}: {name} has dtype {values.dtype} and shape {values.shape}; it must hold a number for each of "
            f"{rows} rows"
        )
    return taken(values.astype(float), log, lambda row, what: ValueError(f"{path}: {name}[{row}] {what}"))


def from_file(offset: str, path: str | Path, rows: int) -> Array:
    """The offset from a file with one number per line."""
    name, log = named(offset, [offset] if os.path.isfile(offset) else [])
    if not os.path.isfile(name):
        raise ValueError(f"offset is {offset!r}, but {name!r} is neither a column of {path} nor a file")
    found = list(_numbered(name))
    if len(found) != rows:
        raise ValueError(f"{name} holds {len(found)} offsets, but {path} has {rows} rows")
    values = np.array([value for _, value in found])
    return taken(values, log, lambda row, what: ValueError(f"{name}, line {found[row][0]} {what}"))
