"""Half deviances with the log link, for what is positive or counted: Gamma, Tweedie, negative binomial.

The mean is e^u. Each loss is half the deviance of its family, as scikit-learn has it, with its constants: it is zero
where the mean meets the target, and nowhere below.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit, xlog1py, xlogy

from .._validate import Array, Flags
from ..foundation.numerics import UNIT
from .base import _TINY, Loss, _number, _where

_EPS = 2 * UNIT


class _LogLink(Loss):
    """What these losses share: means e^u, and a step without closed form."""

    closed_step = False
    kinked = False  # there is no Lipschitz constant, but there are slopes
    deviance = True
    _takes = ""

    def falls_towards(self, target: Array) -> Array:
        """Zeros ask for a mean that is as small as can be."""
        return np.where(np.asarray(target) == 0, -1.0, 0.0)

    def mean(self, score: Array) -> Array:
        with np.errstate(over="ignore"):
            out: Array = np.exp(score)
            return out

    def _good(self, target: Array) -> Flags:
        """Which targets the family can have."""
        return np.greater_equal(target, 0.0)

    def check_targets(self, target: npt.ArrayLike) -> Array:
        target = super().check_targets(target)
        bad = np.flatnonzero(~self._good(target))
        if bad.size:
            raise ValueError(
                f"y[{_where(bad[0], target)}] is {target.flat[bad[0]]:g}; {type(self).__name__} takes {self._takes}"
            )
        return target


class Gamma(_LogLink):
    r"""Half the Gamma deviance with the log link, :math:`u - \log t + t e^{-u} - 1`, for :math:`t > 0`.

    For positive numbers whose deviation grows with their mean: claims, prices, durations.

    Notes
    -----
    Conjugate :math:`f^*(x) = a \log (a/t) - a + \log t + 1` with :math:`a = 1 - x \ge 0`. The prox solves
    :math:`z + C(e^z - 1 + v) = \log t` in :math:`z = \log a` by Newton.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> claims = np.exp(7 + 0.5 * X[:, 0]) * rng.gamma(2.0, 0.5, 200)
    >>> model = fl.StructuredRegressor("gamma", fl.L1(), alpha=0.05).fit(X, claims)
    >>> np.flatnonzero(model.coef_).tolist(), bool(model.score(X, claims) > 0.2)
    ([0], True)
    """

    kernel = gradient_kernel = "gamma"
    least = 0.0
    _takes = "numbers above 0 (Tweedie takes zeros, too)"

    def _good(self, target: Array) -> Flags:
        return np.greater(target, 0.0)

    def value_terms(self, target: Array) -> tuple[Any, Any]:
        return 1.0 + np.abs(np.log(target)), 1.0

    def value(self, score: Array, target: Array) -> Array:
        over = np.asarray(score, dtype=float) - np.log(target)
        with np.errstate(over="ignore"):
            return np.asarray(over + np.expm1(-over))

    def gradient(self, score: Array, target: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(-np.expm1(np.log(target) - np.asarray(score, dtype=float)))

    def curvature(self, score: Array, target: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(np.log(target) - np.asarray(score, dtype=float)))

    def domain(self, target: Array) -> tuple[Array, Array]:
        target = np.asarray(target, dtype=float)
        return np.full_like(target, -np.inf), np.ones_like(target)

    def conjugate(self, dual: Array, target: Array) -> Array:
        dual, target = np.asarray(dual, dtype=float), np.asarray(target, dtype=float)
        inside = dual <= 1 + _TINY
        a = np.maximum(1.0 - dual, 0.0)
        # a log a + x + x log t: nothing cancels where x is small
        value = xlog1py(a, np.maximum(-dual, -1.0)) + np.minimum(dual, 1.0) * (1.0 + np.log(target))
        return np.where(inside, value, np.inf)


class Tweedie(_LogLink):
    r"""Half the Tweedie deviance with the log link, for :math:`t \ge 0` and a power between 1 and 2.

    .. math:: \frac{e^{(2-p) u}}{2 - p} + \frac{t e^{-(p-1) u}}{p - 1} - \frac{t^{2-p}}{(p-1)(2-p)}

    For amounts that are often exactly zero, such as the claims of a year: sums of a Poisson number of Gamma amounts,
    whose variance is the mean to the power p.

    Parameters
    ----------
    power : float
        p, above 1 (Poisson counts) and below 2 (Gamma). Outside, the deviance with the log link is not convex.

    Notes
    -----
    With :math:`q = 2 - p`, :math:`r = p - 1` and :math:`u = s + \log t` the loss is :math:`t^q \varphi(s)`,
    :math:`\varphi(s) = e^{qs}/q + e^{-rs}/r - 1/qr`, so that :math:`f^*(x) = x \log t + t^q \varphi^*(x / t^q)`; for
    :math:`t = 0` it is :math:`(x \log x - x)/q`. The slope of :math:`\varphi` is concave up to
    :math:`s_0 = 2 \log (r/q)` and convex from there on: Newton's method begins on the side from which it is monotone.
    At a point s with slope :math:`\xi - \varepsilon` in place of :math:`\xi`, the convexity of the conjugate says

    .. math:: \varphi^*(\xi) \le \xi s - \varphi(s) + \varepsilon (s^* - s)
              \le \xi s - \varphi(s) + 2 \varepsilon^2 / \varphi''(s)

    where s* is the root: :math:`\log \varphi''` changes by less than 1 over a step of 1. So what is returned is above
    the conjugate, never below, and the certificate stays a proof.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X, exposure = rng.standard_normal((400, 5)), rng.uniform(0.5, 1.0, 400)
    >>> number = rng.poisson(exposure * np.exp(0.5 * X[:, 0]))
    >>> amount = rng.gamma(np.maximum(number, 1), 100.0) * (number > 0)
    >>> model = fl.StructuredRegressor(fl.Tweedie(1.5), fl.L1(), alpha=2.0).fit(X, amount, offset=np.log(exposure))
    >>> np.flatnonzero(model.coef_).tolist(), bool((amount == 0).mean() > 0.3)
    ([0], True)
    """

    kernel = gradient_kernel = "tweedie"
    least = 0.0
    _takes = "numbers not below 0"

    def __init__(self, power: float = 1.5) -> None:
        self.power = _power(power)

    @property
    def params(self) -> Array:
        return np.array([2.0 - self.power, self.power - 1.0])

    def _parts(self, score: Array, target: Array) -> tuple[Array, Array]:
        """e^(qu) and t e^(-ru)."""
        q, r = self.params
        score, target = np.asarray(score, dtype=float), np.asarray(target, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.exp(q * score), np.where(target > 0, target * np.exp(-r * score), 0.0)

    def value_terms(self, target: Array) -> tuple[Any, Any]:
        q, r = self.params
        return np.asarray(target, dtype=float) ** q / (q * r), 0.0

    def value(self, score: Array, target: Array) -> Array:
        q, r = self.params
        up, down = self._parts(score, target)
        return np.asarray(up / q + down / r - np.asarray(target, dtype=float) ** q / (q * r))

    def gradient(self, score: Array, target: Array) -> Array:
        up, down = self._parts(score, target)
        return up - down

    def curvature(self, score: Array, target: Array) -> Array:
        q, r = self.params
        up, down = self._parts(score, target)
        return np.asarray(q * up + r * down)

    def domain(self, target: Array) -> tuple[Array, Array]:
        target = np.asarray(target, dtype=float)
        return np.where(target > 0, -np.inf, 0.0), np.full_like(target, np.inf)

    def conjugate(self, dual: Array, target: Array) -> Array:
        q, _ = self.params
        dual, target = np.broadcast_arrays(np.asarray(dual, dtype=float), np.asarray(target, dtype=float))
        some = target > 0
        unit = np.where(some, target, 1.0)
        size = unit**q
        s, rest = self._unit_root(dual / size)
        positive = dual * (np.log(unit) + s) + size * rest
        at_zero = np.where(dual >= -_TINY, (xlogy(np.maximum(dual, 0.0), np.maximum(dual, 0.0)) - dual) / q, np.inf)
        return np.where(some, positive, at_zero)

    def _unit_root(self, dual: Array) -> tuple[Array, Array]:
        """The s where phi has this slope, and the conjugate of phi from above, less s times the slope; see Notes."""
        q, r = self.params
        turn = 2.0 * np.log(r / q)
        right = dual >= np.exp(q * turn) - np.exp(-r * turn)
        # bounds of the root: above 0 its e^(-rs) is at most 1, below 0 its e^(qs) is
        high = np.where(dual > 0, np.log1p(np.maximum(dual, 0.0)) / q, 0.0)
        low = np.where(dual < 0, -np.log1p(np.maximum(-dual, 0.0)) / r, 0.0)
        s = np.where(right, high, low)
        for _ in range(100):
            up, down = np.exp(q * s), np.exp(-r * s)
            move = (dual - (up - down)) / (q * up + r * down)
            s = s + move
            if np.all(np.abs(move) <= 4 * _EPS * (1.0 + np.abs(s))):
                break
        up, down = np.exp(q * s), np.exp(-r * s)
        bend = q * up + r * down
        off = np.abs(dual - (up - down)) + 4 * _EPS * (up + down)
        least = q * (r / q) ** (2 * q) + r * (r / q) ** (-2 * r)  # of the curvature, where its logarithm has slope 0
        rest = off * (off / np.where(off <= 0.25 * bend, 0.5 * bend, least))
        return s, rest - (np.expm1(q * s) / q + np.expm1(-r * s) / r)


class NegativeBinomial(_LogLink):
    r"""Half the deviance of the negative binomial with the log link, for counts that vary more than Poisson's.

    .. math:: (t + \theta) \log \frac{e^u + \theta}{t + \theta} - t (u - \log t)

    Parameters
    ----------
    theta : float
        The variance of a count of mean m is m + m²/theta; a large one is Poisson's.

    Notes
    -----
    Conjugate :math:`f^*(x) = a \log a - t \log t + (\theta - x) \log (1 - x/\theta)` with :math:`a = x + t`, on
    :math:`-t \le x \le \theta`. With :math:`e^u = \theta e^z` the prox solves
    :math:`z + \log\theta + C((t + \theta) \sigma(z) - t - v) = 0`, as that of the logistic loss.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((400, 5))
    >>> visits = rng.poisson(np.exp(1 + 0.5 * X[:, 0]) * rng.gamma(2.0, 0.5, 400))
    >>> model = fl.StructuredRegressor(fl.NegativeBinomial(2.0), fl.L1(), alpha=0.1).fit(X, visits)
    >>> np.flatnonzero(model.coef_).tolist(), bool(model.predict(X).min() > 0)
    ([0], True)
    """

    kernel = gradient_kernel = "negative_binomial"
    least = 0.0
    _takes = "counts, not below 0"

    def __init__(self, theta: float = 1.0) -> None:
        self.theta = _number("theta", theta, 0, open_low=True)

    @property
    def params(self) -> Array:
        return np.array([self.theta])

    def value_terms(self, target: Array) -> tuple[Any, Any]:
        target = np.asarray(target, dtype=float)
        both, some = target + self.theta, np.where(target > 0, target, 1.0)
        return both * (1.0 + abs(np.log(self.theta)) + np.abs(np.log(some)) + np.log1p(target / self.theta)), both

    def value(self, score: Array, target: Array) -> Array:
        score, target = np.asarray(score, dtype=float), np.asarray(target, dtype=float)
        theta, z = self.theta, self._over(score)
        some = np.where(target > 0, target, 1.0)
        # log(t + theta) in units of either; and log(1 + e^z) without its straight part, which most of t u cancels
        from_theta, from_target = np.log1p(target / theta), np.log1p(theta / some)
        curved = (target + theta) * np.log1p(np.exp(-np.abs(z))) - theta * from_theta
        below = np.where(target < theta, score - np.log(some) + from_theta, z + from_target)
        return curved + np.where(z > 0, theta * z - target * from_target, -target * below)

    def gradient(self, score: Array, target: Array) -> Array:
        target, z = np.asarray(target, dtype=float), self._over(score)
        share = (target + self.theta) * expit(-np.abs(z))
        return np.asarray(np.where(z > 0, self.theta - share, share - target))

    def curvature(self, score: Array, target: Array) -> Array:
        z = self._over(score)
        return np.asarray((np.asarray(target, dtype=float) + self.theta) * expit(z) * expit(-z))

    def _over(self, score: Array) -> Array:
        """log of the mean in units of theta."""
        return np.asarray(np.asarray(score, dtype=float) - np.log(self.theta))

    def domain(self, target: Array) -> tuple[Array, Array]:
        target = np.asarray(target, dtype=float)
        return -target, np.full_like(target, self.theta)

    def conjugate(self, dual: Array, target: Array) -> Array:
        dual, target = np.asarray(dual, dtype=float), np.asarray(target, dtype=float)
        slack = _TINY * (target + min(self.theta, 1.0))
        inside = (dual >= -target - slack) & (dual <= self.theta + slack)
        a, rest = np.maximum(dual + target, 0.0), np.maximum(self.theta - dual, 0.0)
        some = np.where(target > 0, target, 1.0)
        own = np.where(target > 0, xlog1py(a, np.maximum(dual / some, -1.0)) + dual * np.log(some), xlogy(a, a))
        value = own + xlog1py(rest, np.maximum(-dual / self.theta, -1.0))
        return np.where(inside, value, np.inf)


def _power(power: float) -> float:
    """A power between 1 and 2, or a ValueError that says what to take instead."""
    try:
        value = float(power)
    except (TypeError, ValueError):
        raise ValueError(f"power is {power!r}; it must be a number between 1 and 2") from None
    if 1 < value < 2:
        return value
    instead = {0.0: "for power 0 take Squared", 1.0: "power 1 is Poisson", 2.0: "power 2 is Gamma"}
    why = "with the log link the deviance is not convex outside, so that nothing could be proven of an answer"
    raise ValueError(f"power is {value:g}; it must lie between 1 and 2 ({instead.get(value, why)})")
