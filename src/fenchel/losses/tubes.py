"""Losses of a residual: the target is a number."""

from __future__ import annotations

import numpy as np

from .._validate import Array
from .base import _TINY, Loss, _number


class _Tube(Loss):
    """f*(x) = t x + s/2 x^2 + e |x| on [low, high]."""

    kernel = gradient_kernel = "tube"
    of_residual = True
    least = 0.0
    _smoothing, _width, _low, _high = 0.0, 0.0, -np.inf, np.inf

    @property
    def params(self) -> Array:
        return np.array([self._smoothing, self._width, self._low, self._high])

    def domain(self, target: Array) -> tuple[Array, Array]:
        shape = np.shape(target)
        return np.full(shape, self._low), np.full(shape, self._high)

    def conjugate(self, dual: Array, target: Array) -> Array:
        x = np.asarray(dual, dtype=float)
        low, high = self._low, self._high
        inside = (x >= low * (1 + _TINY)) & (x <= high * (1 + _TINY))
        if low > -np.inf or high < np.inf:
            x = np.clip(x, low, high)
        value = x * target + 0.5 * self._smoothing * x * x
        return np.where(inside, value + self._width * np.abs(x) if self._width else value, np.inf)


class Squared(_Tube):
    r"""Least squares, :math:`\tfrac12 (u - t)^2`.

    Notes
    -----
    Conjugate :math:`f^*(x) = t x + x^2/2`; prox of :math:`f^*/C`: :math:`(C u - t)/(C + 1)`.
    """

    _smoothing = 1.0
    smoothness = 1.0
    quadratic = True

    def small_form(self) -> tuple[str, float]:
        return "squared", 0.0

    def value(self, score: Array, target: Array) -> Array:
        return 0.5 * (np.asarray(score) - target) ** 2

    def gradient(self, score: Array, target: Array) -> Array:
        return np.asarray(score) - target

    def curvature(self, score: Array, target: Array) -> Array:
        return np.ones(np.broadcast_shapes(np.shape(score), np.shape(target)))

    def sums(self, score: Array, target: Array, weight: Array) -> tuple[float, Array, Array]:
        if weight.size:
            return super().sums(score, target, weight)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = score - target
            return float((0.5 * slope**2).sum()), slope, np.ones(slope.shape)


class Huber(_Tube):
    r"""Huber's loss: quadratic up to `delta`, linear beyond.

    Notes
    -----
    Conjugate :math:`f^*(x) = t x + x^2/2` on :math:`|x| \le \delta`; prox: the clip of
    :math:`(C u - t)/(C + 1)`.
    """

    _smoothing = 1.0
    smoothness = 1.0

    def __init__(self, delta: float = 1.35) -> None:
        self.delta = _number("delta", delta, 0, open_low=True)

    @property
    def _low(self) -> float:  # type: ignore[override]  # it follows a parameter
        return -self.delta

    @property
    def _high(self) -> float:  # type: ignore[override]  # it follows a parameter
        return self.delta

    def small_form(self) -> tuple[str, float]:
        return "huber", self.delta

    def value(self, score: Array, target: Array) -> Array:
        size = np.abs(np.asarray(score) - target)
        return np.where(size <= self.delta, 0.5 * size**2, self.delta * (size - 0.5 * self.delta))

    def gradient(self, score: Array, target: Array) -> Array:
        return np.clip(np.asarray(score) - target, -self.delta, self.delta)

    def curvature(self, score: Array, target: Array) -> Array:
        return np.where(np.abs(np.asarray(score) - target) < self.delta, 1.0, 0.0)


class Quantile(_Tube):
    r"""The pinball loss of the `quantile`: :math:`q (t - u)_+ + (1 - q) (u - t)_+`.

    Notes
    -----
    Conjugate :math:`f^*(x) = t x` on :math:`[-q, 1 - q]`; prox: the clip of :math:`u - t/C`.
    """

    def __init__(self, quantile: float = 0.5) -> None:
        self.quantile = _number("quantile", quantile, 0, 1, open_low=True, open_high=True)

    @property
    def _low(self) -> float:  # type: ignore[override]  # it follows a parameter
        return -self.quantile

    @property
    def _high(self) -> float:  # type: ignore[override]  # it follows a parameter
        return 1.0 - self.quantile

    def value(self, score: Array, target: Array) -> Array:
        over = np.asarray(score) - target
        return np.where(over < 0, -self.quantile * over, (1 - self.quantile) * over)

    def gradient(self, score: Array, target: Array) -> Array:
        over = np.asarray(score) - target
        return np.where(over < 0, -self.quantile, np.where(over > 0, 1 - self.quantile, 0.0))


class EpsilonInsensitive(_Tube):
    r"""Support vector regression's loss, :math:`\max(|u - t| - \varepsilon, 0)`.

    Notes
    -----
    Conjugate :math:`f^*(x) = t x + \varepsilon |x|` on :math:`|x| \le 1`; prox: soft threshold of
    :math:`u - t/C` at :math:`\varepsilon/C`, clipped.
    """

    _low, _high = -1.0, 1.0

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = _number("epsilon", epsilon, 0)

    @property
    def _width(self) -> float:  # type: ignore[override]  # it follows a parameter
        return self.epsilon

    def value(self, score: Array, target: Array) -> Array:
        return np.maximum(np.abs(np.asarray(score) - target) - self.epsilon, 0.0)

    def gradient(self, score: Array, target: Array) -> Array:
        over = np.asarray(score) - target
        return np.where(np.abs(over) > self.epsilon, np.sign(over), 0.0)
