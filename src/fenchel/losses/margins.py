"""Losses of a margin: the target is a label of -1 or 1."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from .._validate import Array
from .base import _TINY, Loss, _number
from .proportions import Binomial
from .several import Multinomial


class _Margin(Loss):
    """f*(x) = t x + s/2 x^2 on t x in [-bound, 0]."""

    least = 0.0

    classification = True
    kernel = gradient_kernel = "margin"
    _smoothing, _bound = 0.0, 1.0

    @property
    def params(self) -> Array:
        return np.array([self._smoothing, -self._bound])

    def domain(self, target: Array) -> tuple[Array, Array]:
        ends = -self._bound * np.asarray(target, dtype=float)
        return np.minimum(ends, 0.0), np.maximum(ends, 0.0)

    def conjugate(self, dual: Array, target: Array) -> Array:
        a = np.asarray(dual) * np.asarray(target)
        inside = (a <= 0) & (a >= -self._bound * (1 + _TINY))
        a = np.clip(a, -self._bound, 0.0)
        return np.where(inside, a + 0.5 * self._smoothing * a * a, np.inf)


class SmoothedHinge(_Margin):
    r"""The hinge with a quadratic piece of width `smoothing`; the paper's loss at 1.

    Notes
    -----
    With margin :math:`m = t u` and smoothing :math:`s`: :math:`f = 0` for :math:`m \ge 1`,
    :math:`(1 - m)^2 / 2s` for :math:`1 - s \le m \le 1`, :math:`1 - m - s/2` below.
    Conjugate :math:`f^*(x) = t x + s x^2/2` on :math:`t x \in [-1, 0]`; prox of :math:`f^*/C`:
    the clip of :math:`(C u - t)/(C + s)`.
    """

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = _number("smoothing", smoothing, 0, open_low=True)

    @property
    def _smoothing(self) -> float:  # type: ignore[override]  # it follows a parameter
        return self.smoothing

    @property
    def smoothness(self) -> float:  # type: ignore[override]  # it follows a parameter
        return 1.0 / self.smoothing

    def small_form(self) -> tuple[str, float]:
        return "smoothed-hinge", self.smoothing

    def value(self, score: Array, target: Array) -> Array:
        short = np.maximum(1.0 - np.asarray(score) * target, 0.0)
        s = self.smoothing
        return np.where(short >= s, short - 0.5 * s, np.minimum(short, s) ** 2 / (2 * s))

    def gradient(self, score: Array, target: Array) -> Array:
        short = np.clip((1.0 - np.asarray(score) * target) / self.smoothing, 0.0, 1.0)
        return -np.asarray(target) * short

    def curvature(self, score: Array, target: Array) -> Array:
        short = 1.0 - np.asarray(score) * target
        return np.where((short > 0) & (short < self.smoothing), 1.0 / self.smoothing, 0.0)


class Hinge(_Margin):
    r"""The support vector machine's loss, :math:`\max(0, 1 - t u)`.

    Notes
    -----
    Conjugate :math:`f^*(x) = t x` on :math:`t x \in [-1, 0]`; prox: the clip of :math:`u - t/C`.
    """

    def value(self, score: Array, target: Array) -> Array:
        return np.maximum(1.0 - np.asarray(score) * target, 0.0)

    def gradient(self, score: Array, target: Array) -> Array:
        return np.where(np.asarray(score) * target < 1, -np.asarray(target), 0.0)


class SquaredHinge(_Margin):
    r"""The squared hinge, :math:`\max(0, 1 - t u)^2`, on scikit-learn's scale.

    Notes
    -----
    Conjugate :math:`f^*(x) = t x + x^2/4` on :math:`t x \le 0`; prox: :math:`(C u - t)/(C + 1/2)`
    where it has the sign of :math:`-t`, else 0.
    """

    _smoothing, _bound = 0.5, np.inf
    smoothness = 2.0

    def small_form(self) -> tuple[str, float]:
        return "squared-hinge", 0.0

    def value(self, score: Array, target: Array) -> Array:
        return np.maximum(1.0 - np.asarray(score) * target, 0.0) ** 2

    def gradient(self, score: Array, target: Array) -> Array:
        return -2.0 * np.asarray(target) * np.maximum(1.0 - np.asarray(score) * target, 0.0)

    def curvature(self, score: Array, target: Array) -> Array:
        return np.where(np.asarray(score) * target < 1, 2.0, 0.0)


class Logistic(Loss):
    r"""Logistic loss, :math:`\log(1 + e^{-t u})`.

    Targets are labels of -1 and 1, or proportions from 0 to 1, for which :class:`Binomial` stands in: the same loss
    where these are 0 or 1. :func:`fenchel.proportions` makes them, and weights, of successes in trials.

    Notes
    -----
    With :math:`a = -t x`: :math:`f^*(x) = a \log a + (1 - a) \log (1 - a)` on :math:`a \in [0, 1]`.
    The prox has no closed form; a safeguarded Newton in :math:`\operatorname{logit} a` finds it.
    """

    classification = True
    kernel = gradient_kernel = "logistic"
    closed_step = False
    likelihood = True
    smoothness = 0.25
    attained = False
    least = 0.0

    def small_form(self) -> tuple[str, float]:
        return "logistic", 0.0

    def for_classes(self) -> Loss:
        return Multinomial()

    def for_proportions(self) -> Loss:
        return Binomial()

    def probability(self, score: Array) -> Array:
        out: Array = expit(score)
        return out

    def value(self, score: Array, target: Array) -> Array:
        margin = np.asarray(score) * target
        return np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)

    def gradient(self, score: Array, target: Array) -> Array:
        margin = np.asarray(score) * target
        small = np.exp(-np.abs(margin))
        return -np.asarray(target) * (np.where(margin > 0, small, 1.0) / (1.0 + small))

    def curvature(self, score: Array, target: Array) -> Array:
        small = np.exp(-np.abs(np.asarray(score) * target))
        return small / (1.0 + small) ** 2

    def sums(self, score: Array, target: Array, weight: Array) -> tuple[float, Array, Array]:
        from ..kernels.loss_sums import logistic

        slope, bend = np.empty_like(score), np.empty_like(score)
        return logistic(score, target, weight, slope, bend), slope, bend

    def domain(self, target: Array) -> tuple[Array, Array]:
        target = np.asarray(target, dtype=float)
        return np.minimum(-target, 0.0), np.maximum(-target, 0.0)

    def conjugate(self, dual: Array, target: Array) -> Array:
        a = -np.asarray(dual) * np.asarray(target)
        inside = (a >= 0) & (a <= 1 + _TINY)
        a = np.minimum(np.maximum(a, 0.0), 1.0)
        # in place of the logarithm of zero any number will do
        entropy = a * np.log(np.maximum(a, 1e-300)) + (1.0 - a) * np.log1p(-np.minimum(a, 1.0 - 2.0**-53))
        return np.where(inside, entropy, np.inf)
