"""Every loss with sixty digits, from its definition.

There are three kinds: losses of one score (`LOSSES`), of the scores of a row together (`ROW_LOSSES`), and of all scores
at once (`COUPLED_LOSSES`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

Numbers = Sequence[Decimal]
ZERO = Decimal()


class NotJudged(Exception):
    """The problem is too large, or of a kind that nobody has written down here."""


def exactly(values: Any) -> list[Decimal]:
    """Doubles as they are."""
    return [Decimal(value) for value in np.ravel(values).astype(float).tolist()]


def _exp(u: Decimal) -> Decimal:
    """e^u, unless no double can hold it."""
    if u > sys.float_info.max_exp:
        raise NotJudged("an exponential beyond all numbers")
    return u.exp()


def _log_sum(u: Numbers) -> Decimal:
    """The logarithm of the sum of exponentials."""
    top = max(u)
    return top + sum(((one - top).exp() for one in u), start=ZERO).ln()


def _t_log_t(t: Decimal) -> Decimal:
    return t * t.ln() if t > 0 else ZERO


# -- of one score -----------------------------------------------------------------------------------


def _softplus(m: Decimal) -> Decimal:
    """log(1 + exp(m))."""
    return _log_sum([ZERO, m])


def _smoothed_hinge(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    s, short = Decimal(loss.smoothing), 1 - t * u
    if short <= 0:
        return ZERO
    return short - s / 2 if short >= s else short * short / (2 * s)


def _huber(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    delta, r = Decimal(loss.delta), abs(u - t)
    return r * r / 2 if r <= delta else delta * (r - delta / 2)


def _quantile(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    q, r = Decimal(loss.quantile), u - t
    return -q * r if r < 0 else Decimal(1.0 - loss.quantile) * r


def _tweedie(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    power = Decimal(loss.power)
    q, r = 2 - power, power - 1
    rest = t * _exp(-r * u) / r - (q * t.ln()).exp() / (q * r) if t > 0 else ZERO
    return _exp(q * u) / q + rest


def _negative_binomial(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    theta = Decimal(loss.theta)
    return (t + theta) * (_log_sum([u, theta.ln()]) - (t + theta).ln()) - t * u + _t_log_t(t)


def _binomial(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    return _softplus(u) - t * u + _t_log_t(t) + _t_log_t(1 - t)


LOSSES: dict[str, Callable[[Any, Decimal, Decimal], Decimal]] = {
    "Squared": lambda loss, u, t: (u - t) ** 2 / 2,
    "SquaredHinge": lambda loss, u, t: max(1 - t * u, ZERO) ** 2,
    "Hinge": lambda loss, u, t: max(1 - t * u, ZERO),
    "Logistic": lambda loss, u, t: _softplus(-t * u),
    "SmoothedHinge": _smoothed_hinge,
    "Huber": _huber,
    "Quantile": _quantile,
    "EpsilonInsensitive": lambda loss, u, t: max(abs(u - t) - Decimal(loss.epsilon), ZERO),
    "Poisson": lambda loss, u, t: _exp(u) - t * u,
    "Gamma": lambda loss, u, t: u - t.ln() + t * _exp(-u) - 1,
    "Tweedie": _tweedie,
    "NegativeBinomial": _negative_binomial,
    "Binomial": _binomial,
}


# -- of the scores of a row -------------------------------------------------------------------------


def _along(t: Numbers, u: Numbers) -> Decimal:
    return sum((one * score for one, score in zip(t, u, strict=True)), start=ZERO)


ROW_LOSSES: dict[str, Callable[[Any, Numbers, Numbers], Decimal]] = {
    "Multinomial": lambda loss, u, t: _log_sum(u) - _along(t, u),
    "MulticlassHinge": lambda loss, u, t: max(score + 1 - one for score, one in zip(u, t, strict=True)) - _along(t, u),
}


# -- of all scores ----------------------------------------------------------------------------------


def _cox(loss: Any, u: Numbers, target: Any, weight: Numbers) -> Decimal:
    """Half the deviance: minus the logarithm of the partial likelihood, stratum by stratum and time by time, less its
    least value, which events of one time that nobody else could have had would have."""
    total = ZERO
    event, time, stratum = (target[name].tolist() for name in ("event", "time", "stratum"))
    alive = [i for i in range(len(u)) if weight[i] > 0]
    for own in sorted({(stratum[i], time[i]) for i in alive if event[i]}):
        risk = [i for i in alive if stratum[i] == own[0] and time[i] >= own[1]]
        now = [i for i in risk if event[i] and time[i] == own[1]]
        top = max(u[i] for i in risk)
        at_risk = sum((weight[i] * (u[i] - top).exp() for i in risk), start=ZERO)
        of_events = sum((weight[i] * (u[i] - top).exp() for i in now), start=ZERO)
        mass, terms = sum((weight[i] for i in now), start=ZERO), len(now) if loss.ties == "efron" else 1
        for r in range(terms):
            gone = Decimal(r) / terms
            total += mass / terms * ((at_risk - gone * of_events).ln() + top - (mass * (1 - gone)).ln())
        total -= sum((weight[i] * u[i] for i in now), start=ZERO)
    return total


COUPLED_LOSSES: dict[str, Callable[[Any, Numbers, Any, Numbers], Decimal]] = {"Cox": _cox}
