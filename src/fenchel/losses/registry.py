"""Losses by name."""

from __future__ import annotations

from .._validate import registering
from .base import Loss
from .counts import Poisson
from .margins import Hinge, Logistic, SmoothedHinge, SquaredHinge
from .several import MulticlassHinge, Multinomial
from .tubes import EpsilonInsensitive, Huber, Quantile, Squared

LOSSES: dict[str, type[Loss]] = {
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

# losses that see several scores of a row together, see `several.py`
ROW_LOSSES: dict[str, type[Loss]] = {"multinomial": Multinomial, "multiclass-hinge": MulticlassHinge}

register = registering(LOSSES, "loss")  # a decorator: @register("name") enters a loss of your own


def known_losses() -> dict[str, type[Loss]]:
    """All of them by name."""
    return LOSSES | ROW_LOSSES
