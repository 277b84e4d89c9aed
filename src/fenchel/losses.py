"""Losses f(u; t): value, gradient, conjugate, dual step, and the targets they take.

A loss is convex in the score u = z'w. The solver works on the conjugate f*, one variable per row; what
it asks of a loss is the *dual step*

    argmin_x  s f*(x / s; t) + C/2 (x - v)^2

for a row of weight s. The built-in losses name a compiled function for it (`kernel`); a loss of your own
may instead override :meth:`Loss.dual_step` in plain Python, or set `scalar_step` to a numba function.
`fenchel.testing.check_loss` proves any of them.
"""

from __future__ import annotations

import functools
import inspect

import numpy as np
from scipy.special import xlogy

_TINY = 1e-12  # rounding slack, relative to the size of a domain
_DIFFERENCE = 1e-5  # in the scores, for a second derivative that nobody told


@functools.cache
def _definer(cls: type, name: str) -> type:
    """The class that an attribute is inherited from."""
    return next(one for one in cls.__mro__ if name in vars(one))


class Loss:
    """A convex loss of the score, with its conjugate.

    Subclasses define `value`, `gradient`, `conjugate` and `domain`, and one of `kernel` (the name of a
    compiled function and its `params`), `scalar_step` (a numba function of point, curvature and target)
    or `dual_step` (plain Python over arrays).
    """

    classification = False
    kernel: str | None = None
    scalar_step = None
    smoothness: float | None = None  # L: the gradient is L-Lipschitz; None where it is not
    quadratic = False  # whether the curvature is 1 everywhere
    attained = True  # whether some score has the least value
    least: float | None = (
        None  # inf f, where it is the same for every target; defined beside `conjugate`, or not at all
    )

    @property
    def knows_least(self) -> bool:
        """Whether `least` may be believed: whoever redefines the conjugate, -inf f at 0, has not inherited it."""
        return self.least is not None and _definer(type(self), "least") is _definer(type(self), "conjugate")

    def small_form(self) -> tuple[str, float] | None:
        """Its name among the losses of the compiled path (``kernels/small_losses.py``), and its parameter there."""
        return None

    @property
    def kinked(self) -> bool:
        """Whether the loss has points without a slope."""
        return self.smoothness is None

    @property
    def params(self) -> np.ndarray:
        return np.zeros(1)

    def value(self, score, target):
        """f(u; t), elementwise."""
        raise TypeError(f"{type(self).__name__} must define value(score, target)")

    def gradient(self, score, target):
        """A (sub)gradient in u, elementwise."""
        raise TypeError(f"{type(self).__name__} must define gradient(score, target)")

    def curvature(self, score, target):
        """The second derivative in u, elementwise; by differences where a loss does not define it. Newton's steps take
        it, so that it need not be exact."""
        score = np.asarray(score, dtype=float)
        h = _DIFFERENCE * np.maximum(np.abs(score), 1.0)
        return np.maximum(self.gradient(score + h, target) - self.gradient(score - h, target), 0.0) / (2 * h)

    def sums(self, score, target, weight) -> tuple[float, np.ndarray, np.ndarray]:
        """The weighted sum of f over vectors, with weighted slopes and curvatures; an empty `weight` counts as ones."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope = self.value(score, target), self.gradient(score, target)
            bend = self.curvature(score, target)
        if not weight.size:
            return float(np.sum(value)), np.asarray(slope, dtype=float), np.asarray(bend, dtype=float)
        some = weight > 0  # elsewhere the loss may overflow
        value, slope, bend = (weight * np.where(some, part, 0.0) for part in (value, slope, bend))
        return float(np.sum(value)), slope, bend

    def conjugate(self, dual: np.ndarray, target: np.ndarray) -> np.ndarray:
        """f*(x; t), elementwise; infinite outside the domain."""
        raise TypeError(f"{type(self).__name__} must define conjugate(dual, target)")

    def domain(self, target):
        """Lower and upper end of the domain of f*, elementwise."""
        raise TypeError(f"{type(self).__name__} must define domain(target)")

    def dual_step(self, point, curvature, target):
        """Prox of f*/curvature at point, elementwise."""
        if self.kernel is None and self.scalar_step is None:
            raise TypeError(f"{type(self).__name__} must define dual_step, scalar_step or kernel")
        point, curvature, target = (np.array(a, dtype=float) for a in np.broadcast_arrays(point, curvature, target))
        out, weight, params = np.zeros_like(point), np.ones_like(point), self.params
        self.compiled().ctypes(point.size, *(_pointer(a) for a in (out, point, curvature, target, weight, params)))
        return out

    def compiled(self):
        """The dual step as a C function."""
        from .kernels import compiled, losses

        if self.kernel is not None:
            return compiled.compile_step(getattr(losses, self.kernel) if isinstance(self.kernel, str) else self.kernel)
        if self.scalar_step is not None:
            return compiled.numba_step(inspect.getattr_static(self, "scalar_step"))
        return compiled.python_step(self._weighted_step)

    def _weighted_step(self, point, curvature, target, weight):
        out = np.zeros_like(point)
        some = weight > 0
        s = weight[some]
        out[some] = s * self.dual_step(point[some] / s, curvature[some] * s, target[some])
        return out

    def check_targets(self, target) -> np.ndarray:
        """The targets as a float array, or a ValueError that names the first one this loss cannot take."""
        target = np.asarray(target)
        if target.dtype.kind not in "biuf":
            raise ValueError(f"y has dtype {target.dtype}; {type(self).__name__} takes numbers")
        target = np.ascontiguousarray(target, dtype=float)
        good = np.isfinite(target)
        if not good.all():
            bad = np.flatnonzero(~good)
            raise ValueError(f"y[{_where(bad[0], target)}] is {target.flat[bad[0]]}; y must be finite")
        if self.classification:
            good = np.abs(target) == 1
            if not good.all():
                bad = np.flatnonzero(~good)
                raise ValueError(
                    f"y[{_where(bad[0], target)}] is {target.flat[bad[0]]:g}; {type(self).__name__} takes labels -1 "
                    "and +1 (for 0/1 labels pass 2 * y - 1)"
                )
            columns = target.reshape(len(target), -1)
            for j in range(columns.shape[1]):
                if len(target) and (columns[:, j] == columns[0, j]).all():
                    raise ValueError(
                        f"y holds one class only ({columns[0, j]:+g}); {type(self).__name__} needs both -1 and +1"
                    )
        return target

    def __repr__(self):
        inner = ", ".join(f"{key}={value:g}" for key, value in vars(self).items() if isinstance(value, (int, float)))
        return f"{type(self).__name__}({inner})"


def _where(flat, array):
    return ", ".join(str(i) for i in np.unravel_index(flat, array.shape))


def _pointer(array):
    import ctypes

    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def _number(name, value, low, high=np.inf, *, open_low=False, open_high=False):
    """A finite number in an interval, or a ValueError."""
    try:
        value = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; it must be a number") from None
    inside = (low < value if open_low else low <= value) and (value < high if open_high else value <= high)
    if not inside or not np.isfinite(value):
        left, right = "(" if open_low else "[", ")" if open_high or high == np.inf else "]"
        raise ValueError(f"{name} is {value:g}; it must lie in {left}{low:g}, {high:g}{right}")
    return value


class _Margin(Loss):
    """f*(x) = t x + s/2 x^2 on t x in [-bound, 0]."""

    least = 0.0

    classification = True
    kernel = "margin"
    _smoothing, _bound = 0.0, 1.0

    @property
    def params(self):
        return np.array([self._smoothing, -self._bound])

    def domain(self, target):
        ends = -self._bound * np.asarray(target, dtype=float)
        return np.minimum(ends, 0.0), np.maximum(ends, 0.0)

    def conjugate(self, dual: np.ndarray, target: np.ndarray) -> np.ndarray:
        a = np.asarray(dual) * np.asarray(target)
        slack = _TINY * min(self._bound, 1.0)
        inside = (a <= slack) & (a >= -self._bound - slack)
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

    def __init__(self, smoothing: float = 1.0):
        self.smoothing = _number("smoothing", smoothing, 0, open_low=True)

    @property
    def _smoothing(self):
        return self.smoothing

    @property
    def smoothness(self):
        return 1.0 / self.smoothing

    def small_form(self):
        return "smoothed-hinge", self.smoothing

    def value(self, score, target):
        short = np.maximum(1.0 - np.asarray(score) * target, 0.0)
        s = self.smoothing
        return np.where(short >= s, short - 0.5 * s, np.minimum(short, s) ** 2 / (2 * s))

    def gradient(self, score, target):
        short = np.clip((1.0 - np.asarray(score) * target) / self.smoothing, 0.0, 1.0)
        return -np.asarray(target) * short

    def curvature(self, score, target):
        short = 1.0 - np.asarray(score) * target
        return np.where((short > 0) & (short < self.smoothing), 1.0 / self.smoothing, 0.0)


class Hinge(_Margin):
    r"""The support vector machine's loss, :math:`\max(0, 1 - t u)`.

    Notes
    -----
    Conjugate :math:`f^*(x) = t x` on :math:`t x \in [-1, 0]`; prox: the clip of :math:`u - t/C`.
    """

    def value(self, score, target):
        return np.maximum(1.0 - np.asarray(score) * target, 0.0)

    def gradient(self, score, target):
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

    def small_form(self):
        return "squared-hinge", 0.0

    def value(self, score, target):
        return np.maximum(1.0 - np.asarray(score) * target, 0.0) ** 2

    def gradient(self, score, target):
        return -2.0 * np.asarray(target) * np.maximum(1.0 - np.asarray(score) * target, 0.0)

    def curvature(self, score, target):
        return np.where(np.asarray(score) * target < 1, 2.0, 0.0)


class Logistic(Loss):
    r"""Logistic loss, :math:`\log(1 + e^{-t u})`.

    Notes
    -----
    With :math:`a = -t x`: :math:`f^*(x) = a \log a + (1 - a) \log (1 - a)` on :math:`a \in [0, 1]`.
    The prox has no closed form; a safeguarded Newton in :math:`\operatorname{logit} a` finds it.
    """

    classification = True
    kernel = "logistic"
    smoothness = 0.25
    attained = False
    least = 0.0

    def small_form(self):
        return "logistic", 0.0

    def value(self, score, target):
        margin = np.asarray(score) * target
        return np.log1p(np.exp(-np.abs(margin))) - np.minimum(margin, 0.0)

    def gradient(self, score, target):
        margin = np.asarray(score) * target
        small = np.exp(-np.abs(margin))
        return -np.asarray(target) * (np.where(margin > 0, small, 1.0) / (1.0 + small))

    def curvature(self, score, target):
        small = np.exp(-np.abs(np.asarray(score) * target))
        return small / (1.0 + small) ** 2

    def sums(self, score, target, weight):
        from .kernels.loss_sums import logistic

        slope, bend = np.empty_like(score), np.empty_like(score)
        return logistic(score, target, weight, slope, bend), slope, bend

    def domain(self, target):
        target = np.asarray(target, dtype=float)
        return np.minimum(-target, 0.0), np.maximum(-target, 0.0)

    def conjugate(self, dual: np.ndarray, target: np.ndarray) -> np.ndarray:
        a = -np.asarray(dual) * np.asarray(target)
        inside = (a >= -_TINY) & (a <= 1 + _TINY)
        a = np.minimum(np.maximum(a, 0.0), 1.0)
        b = 1.0 - a
        # in place of the logarithm of zero any number will do
        entropy = a * np.log(np.maximum(a, 1e-300)) + b * np.log(np.maximum(b, 1e-300))
        return np.where(inside, entropy, np.inf)


class _Tube(Loss):
    """f*(x) = t x + s/2 x^2 + e |x| on [low, high]."""

    kernel = "tube"
    least = 0.0
    _smoothing, _width, _low, _high = 0.0, 0.0, -np.inf, np.inf

    @property
    def params(self):
        return np.array([self._smoothing, self._width, self._low, self._high])

    def domain(self, target):
        shape = np.shape(target)
        return np.full(shape, self._low), np.full(shape, self._high)

    def conjugate(self, dual: np.ndarray, target: np.ndarray) -> np.ndarray:
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

    def small_form(self):
        return "squared", 0.0

    def value(self, score, target):
        return 0.5 * (np.asarray(score) - target) ** 2

    def gradient(self, score, target):
        return np.asarray(score) - target

    def curvature(self, score, target):
        return np.ones(np.broadcast_shapes(np.shape(score), np.shape(target)))

    def sums(self, score, target, weight):
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

    def __init__(self, delta: float = 1.35):
        self.delta = _number("delta", delta, 0, open_low=True)

    @property
    def _low(self):
        return -self.delta

    @property
    def _high(self):
        return self.delta

    def small_form(self):
        return "huber", self.delta

    def value(self, score, target):
        size = np.abs(np.asarray(score) - target)
        return np.where(size <= self.delta, 0.5 * size**2, self.delta * (size - 0.5 * self.delta))

    def gradient(self, score, target):
        return np.clip(np.asarray(score) - target, -self.delta, self.delta)

    def curvature(self, score, target):
        return np.where(np.abs(np.asarray(score) - target) < self.delta, 1.0, 0.0)


class Quantile(_Tube):
    r"""The pinball loss of the `quantile`: :math:`q (t - u)_+ + (1 - q) (u - t)_+`.

    Notes
    -----
    Conjugate :math:`f^*(x) = t x` on :math:`[-q, 1 - q]`; prox: the clip of :math:`u - t/C`.
    """

    def __init__(self, quantile: float = 0.5):
        self.quantile = _number("quantile", quantile, 0, 1, open_low=True, open_high=True)

    @property
    def _low(self):
        return -self.quantile

    @property
    def _high(self):
        return 1.0 - self.quantile

    def value(self, score, target):
        over = np.asarray(score) - target
        return np.where(over < 0, -self.quantile * over, (1 - self.quantile) * over)

    def gradient(self, score, target):
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

    def __init__(self, epsilon: float = 0.1):
        self.epsilon = _number("epsilon", epsilon, 0)

    @property
    def _width(self):
        return self.epsilon

    def value(self, score, target):
        return np.maximum(np.abs(np.asarray(score) - target) - self.epsilon, 0.0)

    def gradient(self, score, target):
        over = np.asarray(score) - target
        return np.where(np.abs(over) > self.epsilon, np.sign(over), 0.0)


class Poisson(Loss):
    r"""Poisson deviance with the log link, :math:`e^u - t u`, for counts :math:`t \ge 0`.

    Notes
    -----
    Conjugate :math:`f^*(x) = a \log a - a` with :math:`a = x + t \ge 0`. The prox solves
    :math:`z + C(e^z - t - u) = 0` in :math:`z = \log a` by Newton.
    """

    kernel = "poisson"
    kinked = False

    def small_form(self):
        return "poisson", 0.0

    def value(self, score, target):
        score = np.asarray(score, dtype=float)
        with np.errstate(over="ignore"):
            return np.exp(score) - target * score

    def gradient(self, score, target):
        with np.errstate(over="ignore"):
            return np.exp(np.asarray(score, dtype=float)) - target

    def curvature(self, score, target):
        with np.errstate(over="ignore"):
            return np.exp(np.asarray(score, dtype=float)) + 0.0 * np.asarray(target)

    def domain(self, target):
        target = np.asarray(target, dtype=float)
        return -target, np.full_like(target, np.inf)

    def conjugate(self, dual: np.ndarray, target: np.ndarray) -> np.ndarray:
        target = np.asarray(target)
        a = np.asarray(dual) + target
        inside = a >= -_TINY * (1 + np.abs(target))
        a = np.maximum(a, 0.0)
        return np.where(inside, xlogy(a, a) - a, np.inf)

    def check_targets(self, target):
        target = super().check_targets(target)
        bad = np.flatnonzero(target < 0)
        if bad.size:
            raise ValueError(
                f"y[{_where(bad[0], target)}] is {target.flat[bad[0]]:g}; Poisson takes counts, not below 0"
            )
        return target


LOSSES = {
    "smoothed-hinge": SmoothedHinge,
    "hinge": Hinge,
    "squared-hinge": SquaredHinge,
    "logistic": Logistic,
    "squared": Squared,
    "huber": Huber,
    "quantile": Quantile,
    "epsilon-insensitive": EpsilonInsensitive,
    "poisson": Poisson,
}
