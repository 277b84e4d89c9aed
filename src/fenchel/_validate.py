"""The kinds of arrays, by name, and one place for checking what callers hand over."""

from __future__ import annotations

import numbers
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Floats: TypeAlias = npt.NDArray[np.floating[Any]]  # in single or double precision
Ints: TypeAlias = npt.NDArray[np.integer[Any]]
Index: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]
# scipy, pandas and polars come without types, so these names are for the reader
SparseMatrix: TypeAlias = Any  # of scipy, in any of its formats
MatrixLike: TypeAlias = Any  # an array, a matrix of scipy, a data frame, or lists of numbers
Frame: TypeAlias = Any  # a data frame
Names: TypeAlias = Sequence[str] | Frame  # of features or the like; a data frame stands for those of its columns

Kind = TypeVar("Kind", bound=type)


def _count(name: str, value: Any) -> int:
    real = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not (real and value >= 1 and value == np.floor(value) and np.isfinite(value)):
        raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
    return int(value)


def finite_vector(name: str, values: npt.ArrayLike, length: int, *, minimum: float | None = None) -> Array:
    """A float vector of the given length, finite and not below `minimum`, or a ValueError."""
    if minimum is None:
        return _checked(name, values, length, np.isfinite, "finite")
    rule = f"finite and at least {minimum:g}"
    return _checked(name, values, length, lambda numbers: np.isfinite(numbers) & (numbers >= minimum), rule)


def weight_vector(name: str, values: npt.ArrayLike, length: int) -> Array:
    """A float vector of weights, not negative; infinite ones are allowed. Or a ValueError."""
    return _checked(name, values, length, lambda numbers: numbers >= 0, "at least 0, or infinite")


def _checked(name: str, values: npt.ArrayLike, length: int, good: Callable[[Array], Flags], rule: str) -> Array:
    values = np.asarray(values)
    if values.dtype.kind not in "biuf" or values.ndim != 1:
        raise ValueError(f"{name} has dtype {values.dtype} and shape {values.shape}; it must be a numeric vector")
    values = values.astype(float)
    if len(values) != length:
        raise ValueError(f"{name} has {len(values)} entries; expected {length}")
    bad = np.flatnonzero(~good(values))
    if bad.size:
        raise ValueError(f"{name}[{bad[0]}] is {values[bad[0]]:g}; it must be {rule}")
    return values


def index_array(name: str, values: npt.ArrayLike, p: int) -> Index:
    """An integer array with entries in 0 .. p - 1, or a ValueError that names the first that is not."""
    values = np.asarray(values)
    if values.size == 0:
        return values.astype(np.int64)
    whole = np.issubdtype(values.dtype, np.floating) and np.all(values == np.floor(values))
    if not (np.issubdtype(values.dtype, np.integer) or whole):
        raise ValueError(f"{name} has dtype {values.dtype}; it must hold whole numbers")
    values = values.astype(np.int64)
    bad = np.flatnonzero((values < 0) | (values >= p))
    if bad.size:
        place = ", ".join(str(i) for i in np.unravel_index(bad[0], values.shape))
        raise ValueError(f"{name}[{place}] is {values.flat[bad[0]]}; features are numbered 0 to {p - 1}")
    return values


def repeated(flat: Ints | Floats, bounds: Ints) -> tuple[int, int] | None:
    """The first group (range of `flat` between bounds) that holds a number twice, and that number; or None.

    The numbers are not negative.
    """
    if (flat[1:] > flat[:-1]).all():
        return None
    owner = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    width = int(flat.max(initial=0)) + 1
    both = np.sort(owner * width + flat.astype(np.int64))
    twice = both[1:][both[1:] == both[:-1]]
    return divmod(int(twice[0]), width) if twice.size else None


def sound(name: str, X: Any) -> Any:
    """X itself; or a ValueError where it is a matrix of scipy whose parts do not belong together.

    scipy does not look at all of them, and its compiled code and ours would read and write past the end.
    """
    kind = getattr(X, "format", None)
    if kind in ("csr", "csc", "bsr") and getattr(X, "ndim", 0) == 2:
        _sound_lines(name, X, kind)
    elif kind == "coo":
        _sound_coordinates(name, X, [np.asarray(part) for part in X.coords])
        if any(len(part) != len(X.data) for part in X.coords):
            raise ValueError(f"{name} has {len(X.data)} entries, but {len(X.coords[0])} places for them")
    elif kind == "dok":
        places = np.array(list(X.keys()), dtype=np.int64).reshape(len(X.keys()), -1)
        _sound_coordinates(name, X, list(places.T))
    elif kind == "lil":
        if X.rows.shape != (X.shape[0],) or any(len(a) != len(b) for a, b in zip(X.rows, X.data, strict=True)):
            raise ValueError(f"{name}.rows and {name}.data must hold a list for every row, of the same length")
        _sound_coordinates(name, X, [np.array([j for row in X.rows for j in row], dtype=np.int64)], X.shape[1:])
    elif kind == "dia" and (X.data.ndim != 2 or len(X.offsets) != len(X.data)):
        raise ValueError(f"{name}.offsets names {len(X.offsets)} diagonals; {name}.data has shape {X.data.shape}")
    return X


def _sound_lines(name: str, X: Any, kind: str) -> None:
    """Of rows or columns stored one after another."""
    lines, count = X.shape if kind != "csc" else X.shape[::-1]
    what = "rows" if kind == "csc" else "columns"
    if kind == "bsr":
        if X.data.ndim != 3 or any(size % block for size, block in zip(X.shape, X.data.shape[1:], strict=True)):
            raise ValueError(f"{name} has shape {X.shape}, which blocks of shape {X.data.shape[1:]} do not fill")
        lines, count, what = lines // X.data.shape[1], count // X.data.shape[2], "columns of blocks"
    starts, places = X.indptr, X.indices
    if starts.ndim != 1 or places.ndim != 1 or len(starts) != lines + 1:
        raise ValueError(f"{name}.indptr has shape {starts.shape}; expected {lines + 1} numbers")
    if len(places) != len(X.data):
        raise ValueError(f"{name}.indices has {len(places)} entries, but {name}.data has {len(X.data)}")
    if starts[0] != 0:
        raise ValueError(f"{name}.indptr[0] is {starts[0]}; it must be 0")
    back = np.flatnonzero(starts[1:] < starts[:-1])
    if back.size:
        raise ValueError(f"{name}.indptr[{back[0] + 1}] is below {name}.indptr[{back[0]}]; it must not decrease")
    if starts[-1] > len(places):
        raise ValueError(f"{name}.indptr ends with {starts[-1]}, but there are {len(places)} entries")
    if places.size and (places.min() < 0 or places.max() >= count):
        k = np.flatnonzero((places < 0) | (places >= count))[0]
        raise ValueError(f"{name}.indices[{k}] is {places[k]}; {what} are numbered 0 to {count - 1}")


def _sound_coordinates(name: str, X: Any, coordinates: list[Any], shape: Sequence[int] = ()) -> None:
    for axis, (places, size) in enumerate(zip(coordinates, shape or X.shape, strict=True)):
        bad = np.flatnonzero((places < 0) | (places >= size))
        if bad.size:
            raise ValueError(
                f"{name} has an entry at {places[bad[0]]} of axis {axis}, which is numbered 0 to {size - 1}"
            )


def warn_user(message: str, category: type[Warning]) -> None:
    """A warning that points at the code outside of this package and of those that call it for somebody."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in _BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


_BETWEEN = ("fenchel", "sklearn", "joblib")


def registering(table: dict[str, Any], what: str) -> Callable[[str], Callable[[Kind], Kind]]:
    """A decorator factory that enters a class into a table under a name, once."""

    def register(name: str) -> Callable[[Kind], Kind]:
        if not isinstance(name, str) or not name:
            raise ValueError(f"the name of a {what} is {name!r}; it must be a word")

        def enter(kind: Kind) -> Kind:
            if name in table:
                raise ValueError(f"there is a {what} of the name {name!r} already: {table[name].__name__}")
            table[name] = kind
            return kind

        return enter

    return register
