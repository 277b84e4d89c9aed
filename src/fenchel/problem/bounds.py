"""What a certificate says: bounds of the optimum."""

from __future__ import annotations

import dataclasses
import math


class Bounds:
    """dual <= optimum <= primal, for whatever carries the two."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), 1e-300)

    @property
    def certified(self) -> bool:
        return math.isfinite(self.gap)


@dataclasses.dataclass
class Certificate(Bounds):
    """What is proven about an answer: dual <= optimum <= primal.

    `dual` is -inf, and `gap` infinite, where no dual feasible point could be made; `reason` then says why.
    """

    primal: float
    dual: float
    residual: float
    reason: str = ""


class NoCertificate(Exception):
    """No dual feasible point near the given one; the message says why."""
