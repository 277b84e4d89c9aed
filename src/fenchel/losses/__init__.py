"""Losses f(u; t): a base class, and a file per family."""

from __future__ import annotations

from .base import Loss
from .counts import Poisson
from .margins import Hinge, Logistic, SmoothedHinge, SquaredHinge
from .registry import LOSSES, ROW_LOSSES, known_losses, register
from .several import MulticlassHinge, Multinomial
from .tubes import EpsilonInsensitive, Huber, Quantile, Squared

__all__ = [
    "LOSSES",
    "ROW_LOSSES",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "Poisson",
    "Quantile",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "known_losses",
    "register",
]
