"""What tells one problem from another."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from .._validate import AnyArray
from ..foundation.lazy import lazy
from ..penalties import Block


class Fingerprint:
    """A digest of a problem, made when somebody asks for it: most answers are never continued.

    It keeps the small arrays of the problem and not its data. Fingerprints are equal if their digests are; so are a
    fingerprint and a digest that was saved.
    """

    def __init__(self, head: tuple[Any, ...], arrays: tuple[AnyArray, ...], blocks: list[Block]) -> None:
        self._parts: tuple[Any, ...] | None = (head, arrays, blocks)

    @lazy
    def digest(self) -> str:
        assert self._parts is not None
        (head, arrays, blocks), self._parts = self._parts, None
        digest = hashlib.sha256()
        digest.update(repr(head).encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        for block in blocks:
            digest.update(repr((type(block.function).__name__, block.d, block.scale, block.ridge)).encode())
            digest.update(block.function.params.tobytes() + block.function.index.tobytes())
        return digest.hexdigest()[:32]

    def __str__(self) -> str:
        return self.digest

    def __repr__(self) -> str:
        return f"Fingerprint({self.digest!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint | str) and (self is other or self.digest == str(other))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (self.digest,)
