"""A point that somebody wants a certificate of."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .._validate import Array


@dataclasses.dataclass(slots=True)
class Point:
    """w with what is known of its dual variables.

    Attributes
    ----------
    w : primal variables
    x : dual variables of the rows; None: the slopes of the loss at w
    y : dual variables of the penalty; None: zero
    zx : Z x, where it is known
    """

    w: Array
    x: Array | None = None
    y: Array | None = None
    zx: Array | None = None

    @classmethod
    def of(cls, given: Any) -> Point:
        """What a caller hands over: the state of a result (a mapping), or any object with an array `w`.

        The others may be missing: a method without dual variables has none.
        """
        if isinstance(given, Mapping):
            return cls(given["w"], given.get("x"), given.get("y"), given.get("zx"))
        return cls(given.w, *(getattr(given, name, None) for name in ("x", "y", "zx")))
