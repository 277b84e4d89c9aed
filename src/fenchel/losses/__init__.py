"""Losses f(u; t): a base class, and a file per family."""

from __future__ import annotations

from .base import Loss
from .counts import Poisson
from .deviances import Gamma, NegativeBinomial, Tweedie
from .margins import Hinge, Logistic, SmoothedHinge, SquaredHinge
from .registry import LOSSES, register, why_unknown
from .tubes import EpsilonInsensitive, Huber, Quantile, Squared

__all__ = [
    "LOSSES",
    "EpsilonInsensitive",
    "Gamma",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "NegativeBinomial",
    "Poisson",
    "Quantile",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "register",
    "why_unknown",
]
