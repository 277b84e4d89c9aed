"""What the checks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array, Flags

if TYPE_CHECKING:
    pass

_SIZES = 10.0 ** np.arange(-3, 4)
_STEPS = (1e-3, 0.1, 1.0, 20.0, 1e3)
_DENSE = 4_000_000  # entries of a map up to which it is compared with its dense singular values


def _require(
    ok: Flags | np.bool_ | bool, subject: object, law: str, vectors: dict[str, Array] | None = None, **numbers: Any
) -> None:
    """Raise an AssertionError for the first place where `ok` is not true; `vectors` are shown whole."""
    ok = np.asarray(ok, dtype=bool)
    if ok.all():
        return
    ok, *arrays = np.broadcast_arrays(ok, *numbers.values())
    place = np.unravel_index(np.argmin(ok), ok.shape)
    shown = [f"{name} = {array[place]:.12g}" for name, array in zip(numbers, arrays, strict=True)]
    shown += [f"{name} = {np.array2string(np.asarray(v), threshold=20)}" for name, v in (vectors or {}).items()]
    name = subject.__name__ if isinstance(subject, type) else type(subject).__name__
    raise AssertionError(f"{name} breaks the law '{law}' at {', '.join(shown)}")
