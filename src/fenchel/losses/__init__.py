"""Losses f(u; t): a base class, and a file per family."""

from __future__ import annotations

from .base import Loss
from .counts import Poisson
from .coupled import CoupledCurvature, CoupledLoss
from .cox import Cox
from .margins import Hinge, Logistic, SmoothedHinge, SquaredHinge
from .registry import COUPLED_LOSSES, LOSSES, known_losses, register
from .tubes import EpsilonInsensitive, Huber, Quantile, Squared

__all__ = [
    "COUPLED_LOSSES",
    "LOSSES",
    "CoupledCurvature",
    "CoupledLoss",
    "Cox",
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Poisson",
    "Quantile",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "known_losses",
    "register",
]
