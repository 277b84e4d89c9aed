"""Losses of a count."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import xlogy

from .._validate import Array
from .base import _TINY, Loss, _where


class Poisson(Loss):
    r"""Poisson deviance with the log link, :math:`e^u - t u`, for counts :math:`t \ge 0`.

    Notes
    -----
    Conjugate :math:`f^*(x) = a \log a - a` with :math:`a = x + t \ge 0`. The prox solves
    :math:`z + C(e^z - t - u) = 0` in :math:`z = \log a` by Newton.
    """

    kernel = gradient_kernel = "poisson"
    closed_step = False
    deviance = True
    kinked = False

    def small_form(self) -> tuple[str, float]:
        return "poisson", 0.0

    def mean(self, score: Array) -> Array:
        return np.exp(score)

    def value(self, score: Array, target: Array) -> Array:
        score = np.asarray(score, dtype=float)
        with np.errstate(over="ignore"):
            return np.exp(score) - target * score

    def gradient(self, score: Array, target: Array) -> Array:
        with np.errstate(over="ignore"):
            out: Array = np.exp(np.asarray(score, dtype=float)) - target
            return out

    def curvature(self, score: Array, target: Array) -> Array:
        with np.errstate(over="ignore"):
            out: Array = np.exp(np.asarray(score, dtype=float)) + 0.0 * np.asarray(target)
            return out

    def domain(self, target: Array) -> tuple[Array, Array]:
        target = np.asarray(target, dtype=float)
        return -target, np.full_like(target, np.inf)

    def conjugate(self, dual: Array, target: Array) -> Array:
        target = np.asarray(target)
        a = np.asarray(dual) + target
        inside = a >= -_TINY * np.abs(target)
        a = np.maximum(a, 0.0)
        return np.where(inside, xlogy(a, a) - a, np.inf)

    def check_targets(self, target: npt.ArrayLike) -> Array:
        target = super().check_targets(target)
        bad = np.flatnonzero(target < 0)
        if bad.size:
            raise ValueError(
                f"y[{_where(bad[0], target)}] is {target.flat[bad[0]]:g}; Poisson takes counts, not below 0"
            )
        return target
