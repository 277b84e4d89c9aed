"""What a run is asked for."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable

from ..methods.roles import Method
from .result import Snapshot


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run is asked for; `make` makes the method, and `engines` tells whether it lets an engine go first."""

    make: Callable[[], Method]
    engines: bool
    tol: float
    max_epochs: int
    time_limit: float | None = None
    callback: Callable[[Snapshot], object] | None = None
    seed: int | None = 0
    check_every: int | None = None
    show: bool = False
    checkpoint: str | None = None  # a file that a run is saved to after every round
    until: float = math.inf  # seconds of the clock by which all alphas must be done

    def sharing(self, left: int) -> Settings:
        """The settings of the first of so many alphas: what one does not use of its share goes to those after it."""
        if self.until == math.inf:
            return self
        share = max(self.until - time.perf_counter(), 0.0) / left
        return dataclasses.replace(self, time_limit=share if self.time_limit is None else min(share, self.time_limit))
