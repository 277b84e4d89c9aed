"""Losses with parameters of their own, and the targets and offsets that go with them."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..._validate import Array
from ...losses import Loss, known_losses
from .exact_losses import COUPLED_LOSSES, LOSSES, ROW_LOSSES

# losses that the judge with sixty digits knows by formulas of its own
DRAWN = [name for name, kind in known_losses().items() if kind.__name__ in LOSSES | ROW_LOSSES | COUPLED_LOSSES]


@dataclasses.dataclass(frozen=True)
class Shares:
    """How often what is drawn.

    Attributes
    ----------
    parameters, offsets : float
        Of the problems: those whose loss has parameters of its own, and those with offsets.
    rare : float
        Of the targets: those that are not zero, where these are rare.
    """

    parameters: float = 0.5
    offsets: float = 0.15
    rare: float = 0.1


SHARES = Shares()

_OWN: dict[str, Any] = {
    "smoothed-hinge": lambda rng: {"smoothing": float(10.0 ** rng.uniform(-3, 0))},
    "huber": lambda rng: {"delta": float(10.0 ** rng.uniform(-3, 2))},
    "quantile": lambda rng: {"quantile": float(rng.uniform(0.01, 0.99))},
    "epsilon-insensitive": lambda rng: {"epsilon": float(rng.choice([0.0, 10.0 ** rng.uniform(-3, 0)]))},
    "tweedie": lambda rng: {"power": float(rng.uniform(1.05, 1.95))},
    "negative-binomial": lambda rng: {"theta": float(10.0 ** rng.uniform(-2, 3))},
    "cox": lambda rng: {"ties": str(rng.choice(["breslow", "efron"]))},
}


def drawn_loss(rng: np.random.Generator, name: str) -> Loss:
    """A loss of this name."""
    kind: Any = known_losses()[name]
    own = rng.random() < SHARES.parameters
    out: Loss = kind(**_OWN[name](rng)) if own and name in _OWN else kind()
    return out


def offsets_of(rng: np.random.Generator, n: int) -> Array | None:
    """What is known beforehand of a row's score, which may be much."""
    if rng.random() >= SHARES.offsets:
        return None
    out: Array = rng.standard_normal(n) * rng.choice([0.1, 1.0, 5.0])
    return out


def targets_of(rng: np.random.Generator, loss: Loss, score: Array, kind: str) -> Any:
    """Targets for scores of about unit size, (n,) or (n, outputs): numbers of classes, times and events of lives."""
    noise = rng.standard_normal(score.shape)
    name = type(loss).__name__
    if name in COUPLED_LOSSES:
        return _lives(rng, score, kind)
    if name in ROW_LOSSES:
        return _classes(rng, loss, score - 3.0 * (kind == "rare") * np.arange(score.shape[1]), noise)
    if loss.classification:
        return _labels(rng, score + rng.choice([0.0, 0.5]) * noise > (2.0 if kind == "rare" else 0.0))
    mean = np.exp(np.clip(score - (3.0 if kind == "rare" else 0.0), -8, 3))
    if name == "Binomial":
        trials = rng.integers(1, 6, score.shape)
        return rng.binomial(trials, mean / (1 + mean)) / trials
    if name == "Gamma":
        return np.maximum(mean * rng.gamma(rng.choice([0.3, 5.0]), size=score.shape), 1e-12)
    if name == "Tweedie":
        return mean * rng.gamma(2.0, size=score.shape) * (rng.random(score.shape) < 0.5)
    if name in ("Poisson", "NegativeBinomial"):
        return rng.poisson(mean * (rng.gamma(1.0, size=score.shape) if name != "Poisson" else 1.0)).astype(float)
    y = score + 0.3 * noise
    if kind == "rare":
        y *= rng.random(y.shape) < SHARES.rare
    if kind == "heavy-tailed":
        y = y * np.exp(rng.standard_normal(y.shape))
    out: Array = y
    return out


def _labels(rng: np.random.Generator, positive: Any) -> Array:
    """Labels of which both are there in every column."""
    y: Array = np.where(positive, 1.0, -1.0)
    table = y.reshape(len(y), -1)
    for k in range(table.shape[1]):
        if np.all(table[:, k] == table[0, k]):
            table[rng.integers(len(y)), k] *= -1
    return y


def _classes(rng: np.random.Generator, loss: Any, score: Array, noise: Array) -> Array:
    """Class numbers, all of which occur; or shares of the classes, where the loss takes them."""
    if loss.shares and rng.random() < 0.2:
        shares = np.exp(score + noise)
        out: Array = shares / shares.sum(axis=1, keepdims=True)
        return out
    code = np.argmax(score + rng.choice([0.0, 0.5]) * noise, axis=1)
    code[rng.permutation(len(code))[: score.shape[1]]] = np.arange(score.shape[1])
    numbers: Array = code.astype(float)
    return numbers


def _lives(rng: np.random.Generator, score: Array, kind: str) -> Array:
    """Times, events and strata; one event at the least, and often several at one time."""
    n = len(score)
    time = rng.exponential(np.exp(-np.clip(score, -5, 5))) + 1e-9
    if rng.random() < 0.5:
        time = np.ceil(3 * time)
    event = rng.random(n) < (SHARES.rare if kind == "rare" else 0.6)
    event[rng.integers(n)] = True
    strata = rng.integers(0, 3, n) if rng.random() < 0.3 else np.zeros(n)
    out: Array = np.column_stack([time, event, strata])
    return out
