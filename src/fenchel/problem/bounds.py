"""What a certificate says: bounds of the optimum."""

from __future__ import annotations

import dataclasses
import math


class Bounds:
    """dual <= optimum <= primal, for whatever carries the two; bounds that contradict each other prove nothing."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        return self.primal - self.dual if self.dual <= self.primal else math.inf

    @property
    def contradictory(self) -> bool:
        """Whether the lower bound is above the upper one: one of them is false, and nobody knows which."""
        return self.dual > self.primal

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), 1e-300)

    @property
    def certified(self) -> bool:
        return math.isfinite(self.gap)


@dataclasses.dataclass
class Certificate(Bounds):
    """What is proven about an answer: dual <= optimum <= primal.

    `dual` is -inf, and `gap` infinite, where no dual feasible point could be made; `reason` then says why. The dual
    bound allows for rounding, its own and that of the objective; `rounding` is about what it is lower for that.
    """

    primal: float
    dual: float
    residual: float
    reason: str = ""
    rounding: float = 0.0


class NoCertificate(Exception):
    """No dual feasible point near the given one; the message says why."""
