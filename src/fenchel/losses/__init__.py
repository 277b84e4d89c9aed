"""Losses f(u; t): a base class, and a file per family."""

from __future__ import annotations

from .base import Loss
from .counts import Poisson
from .coupled import CoupledCurvature, CoupledLoss
from .cox import Cox
from .deviances import Gamma, NegativeBinomial, Tweedie
from .margins import Hinge, Logistic, SmoothedHinge, SquaredHinge
from .proportions import Binomial, are_proportions, proportions
from .registry import COUPLED_LOSSES, LOSSES, ROW_LOSSES, known_losses, register, why_unknown
from .several import MulticlassHinge, Multinomial
from .tubes import EpsilonInsensitive, Huber, Quantile, Squared

__all__ = [
    "COUPLED_LOSSES",
    "LOSSES",
    "ROW_LOSSES",
    "Binomial",
    "CoupledCurvature",
    "CoupledLoss",
    "Cox",
    "EpsilonInsensitive",
    "Gamma",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MulticlassHinge",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "Quantile",
    "SmoothedHinge",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "are_proportions",
    "known_losses",
    "proportions",
    "register",
    "why_unknown",
]
