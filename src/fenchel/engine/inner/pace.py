"""The pace of ADMM: one factor on all of its steps, by which the two residuals are kept alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..parts import Vector

EVEN = 5.0  # ratio of the residuals up to which the pace is left alone; smaller: more factors


class Paced:
    """A solver whose inverse is made for one pace."""

    pace: float
    fresh: bool
    inverse: Any

    def _begin_pace(self, step: Vector, u: Vector, y: Vector) -> None:
        """Both sides of a start that knows them are to count alike."""
        forces, sizes = float(np.sum(y**2 / step)), float(np.sum(step * u**2))
        if forces > 0 and sizes > 0:
            self.pace = min(max(math.sqrt(forces / sizes), 1e-4), 1e4)
        self.fresh = False

    def _set_pace(self, residuals: float, sizes: float) -> None:
        """Balance the two residuals, each relative to what it is the residual of (Stellato et al., 2020)."""
        ratio = math.sqrt(min(residuals * sizes, 1e12))
        if not 1 / EVEN < ratio < EVEN:
            self.pace = min(max(self.pace * min(max(ratio, 0.02), 50.0), 1e-6), 1e6)
            self.inverse = None
