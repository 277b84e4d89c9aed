"""What the checks share."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._validate import Array, Flags


@dataclasses.dataclass(frozen=True)
class Tried:
    """What the checks try of everything.

    Attributes
    ----------
    sizes : tuple of float
        Of the points at which a function is looked at.
    steps : tuple of float
        Of a prox, and of a dual step.
    row_sizes, spreads : tuple of float
        Of the scores of a row, and of all scores of a coupled loss.
    classes : tuple of int
        Numbers of scores in a row.
    rows : int
        Beside those that show every class once.
    """

    sizes: tuple[float, ...] = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3)
    steps: tuple[float, ...] = (1e-3, 0.1, 1.0, 20.0, 1e3)
    row_sizes: tuple[float, ...] = (1e-2, 1.0, 30.0)
    spreads: tuple[float, ...] = (0.1, 1.0, 6.0)
    classes: tuple[int, ...] = (2, 3, 7)
    rows: int = 8


TRIED = Tried()


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
