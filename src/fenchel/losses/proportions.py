"""The loss of a proportion: so many successes in so many trials."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import entr, expit, xlog1py, xlogy

from .._validate import Array
from .base import _TINY, Loss, _where


class Binomial(Loss):
    r"""Half the binomial deviance with the logit link, for proportions :math:`0 \le t \le 1`.

    .. math:: \log(1 + e^u) - t u + t \log t + (1 - t) \log (1 - t)

    The logistic loss where t is 0 or 1. For counts of successes, :func:`fenchel.proportions` makes the proportions, and
    the weights by which many trials count for more than few.

    Notes
    -----
    Conjugate :math:`f^*(x) = s \log s + (1 - s) \log (1 - s) - t \log t - (1 - t) \log (1 - t)` with
    :math:`s = x + t \in [0, 1]`. The prox solves :math:`u + C(\sigma(u) - t - v) = 0` by Newton.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X, trials = rng.standard_normal((200, 5)), rng.integers(1, 20, 200)
    >>> share, weight = fl.proportions(rng.binomial(trials, 1 / (1 + np.exp(-X[:, 0]))), trials)
    >>> model = fl.StructuredRegressor("binomial", fl.L1(), alpha=0.05).fit(X, share, sample_weight=weight)
    >>> np.flatnonzero(model.coef_).tolist(), bool(0 < model.predict(X).min() and model.predict(X).max() < 1)
    ([0], True)
    """

    kernel = gradient_kernel = "binomial"
    closed_step = False
    smoothness = 0.25
    deviance = True
    attained = False
    least = 0.0

    def value_terms(self, target: Array) -> tuple[Any, Any]:
        """Of a proportion, the entropy cancels most of what the score makes."""
        target = np.asarray(target, dtype=float)
        mixed = (target > 0) & (target < 1)
        return np.where(mixed, entr(target) + entr(1.0 - target), 0.0), np.where(mixed, 1.0, 0.0)

    def falls_towards(self, target: Array) -> Array:
        target = np.asarray(target, dtype=float)
        return np.where(target == 1, 1.0, np.where(target == 0, -1.0, 0.0))

    def mean(self, score: Array) -> Array:
        out: Array = expit(score)
        return out

    def value(self, score: Array, target: Array) -> Array:
        score, target = np.asarray(score, dtype=float), np.asarray(target, dtype=float)
        straight = np.where(score > 0, (1.0 - target) * score, -target * score)
        return np.asarray(np.log1p(np.exp(-np.abs(score))) + straight - entr(target) - entr(1.0 - target))

    def gradient(self, score: Array, target: Array) -> Array:
        target = np.asarray(target, dtype=float)
        return np.asarray((1.0 - target) * expit(score) - target * expit(-np.asarray(score, dtype=float)))

    def curvature(self, score: Array, target: Array) -> Array:
        score = np.asarray(score, dtype=float)
        return np.asarray(expit(score) * expit(-score) + 0.0 * np.asarray(target))

    def domain(self, target: Array) -> tuple[Array, Array]:
        target = np.asarray(target, dtype=float)
        return -target, 1.0 - target

    def conjugate(self, dual: Array, target: Array) -> Array:
        dual, target = np.asarray(dual, dtype=float), np.asarray(target, dtype=float)
        inside = (dual >= -target - _TINY) & (dual <= 1.0 - target + _TINY)
        # s log s - t log t and the same of the rest, which do not cancel where x is small
        value = _rise(dual, target) + _rise(-dual, 1.0 - target)
        return np.where(inside, value, np.inf)

    def check_targets(self, target: npt.ArrayLike) -> Array:
        target = super().check_targets(target)
        bad = np.flatnonzero((target < 0) | (target > 1))
        if bad.size:
            raise ValueError(
                f"y[{_where(bad[0], target)}] is {target.flat[bad[0]]:g}; Binomial takes proportions from 0 to 1 (of "
                "counts, fenchel.proportions(successes, trials) makes these and their weights)"
            )
        return target


def are_proportions(target: npt.ArrayLike) -> bool:
    """Whether targets lie in [0, 1] and are no labels of -1 and 1."""
    found = np.asarray(target)
    if found.dtype.kind not in "biuf" or not found.size:
        return False
    return bool(np.all((found >= 0) & (found <= 1)) and not np.all(found == 1))


def _rise(move: Array, start: Array) -> Array:
    """s log s - t log t for s = t + move, brought to 0 at the least."""
    s, some = np.maximum(start + move, 0.0), np.where(start > 0, start, 1.0)
    return np.asarray(np.where(start > 0, xlog1py(s, np.maximum(move / some, -1.0)) + move * np.log(some), xlogy(s, s)))


def proportions(successes: npt.ArrayLike, trials: npt.ArrayLike) -> tuple[Array, Array]:
    """Counts of successes in trials as the targets and weights that :class:`Logistic` and :class:`Binomial` take.

    Parameters
    ----------
    successes, trials : vectors of n counts
        Rows without trials get weight 0.

    Returns
    -------
    y : array of n proportions
    sample_weight : array of n, the trials

    Examples
    --------
    >>> import fenchel as fl
    >>> y, weight = fl.proportions([3, 0, 5], [4, 2, 5])
    >>> y.tolist(), weight.tolist()
    ([0.75, 0.0, 1.0], [4.0, 2.0, 5.0])
    """
    counts = []
    for name, given in (("successes", successes), ("trials", trials)):
        found = np.asarray(given)
        if found.ndim != 1 or found.dtype.kind not in "biuf":
            raise ValueError(f"{name} has dtype {found.dtype} and shape {found.shape}; it must be a vector of counts")
        found = found.astype(float)
        bad = np.flatnonzero(~(np.isfinite(found) & (found >= 0)))
        if bad.size:
            raise ValueError(f"{name}[{bad[0]}] is {found[bad[0]]:g}; it must be a count, not below 0")
        counts.append(found)
    done, tried = counts
    if len(done) != len(tried):
        raise ValueError(f"successes has {len(done)} entries, but trials has {len(tried)}")
    bad = np.flatnonzero(done > tried)
    if bad.size:
        raise ValueError(f"successes[{bad[0]}] is {done[bad[0]]:g}, more than its {tried[bad[0]]:g} trials")
    return np.divide(done, tried, out=np.zeros_like(done), where=tried > 0), tried
