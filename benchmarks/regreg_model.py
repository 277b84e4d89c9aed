"""The smooth part in regreg's words, and problems of its that show their iterates."""

from __future__ import annotations

import numpy as np


def recorded(kind, record):
    """A problem that shows every iterate it accepts."""

    class Recorded(kind):
        @property
        def coefs(self):
            return self._coefs

        @coefs.setter
        def coefs(self, w):
            self._coefs = w
            if np.any(w):  # not the start
                record(w)

    return Recorded


def smooth_part(rr, objective):
    class Smooth(rr.smooth_atom):
        def smooth_objective(self, w, mode="both", check_feasibility=False):
            if mode == "func":
                return objective.smooth_value(w)
            value, gradient = objective.smooth(w)
            return gradient if mode == "grad" else (value, gradient)

    return Smooth((objective.p,))
