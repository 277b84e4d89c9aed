"""Losses f(u; t): a base class, and a file per family."""

from __future__ import annotations

from .base import Loss
from .counts import Poisson
from .deviances import Gamma, NegativeBinomial, Tweedie
from .margins import Hinge, Logistic, SmoothedHinge, SquaredHinge
from .proportions import Binomial, proportions
from .registry import LOSSES, register, why_unknown
from .tubes import EpsilonInsensitive, Huber, Quantile, Squared

__all__ = [
    "LOSSES",
    "Binomial",
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
    "proportions",
    "register",
    "why_unknown",
]
