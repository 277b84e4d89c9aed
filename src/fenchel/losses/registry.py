"""Losses by name."""

from __future__ import annotations

import difflib

from .._validate import registering
from .base import Loss
from .counts import Poisson
from .deviances import Gamma, NegativeBinomial, Tweedie
from .margins import Hinge, Logistic, SmoothedHinge, SquaredHinge
from .proportions import Binomial
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
    "gamma": Gamma,
    "tweedie": Tweedie,
    "negative-binomial": NegativeBinomial,
    "binomial": Binomial,
}

register = registering(LOSSES, "loss")  # a decorator: @register("name") enters a loss of your own

_NOT_CONVEX = {
    "inverse-gaussian": "its deviance with the log link is not convex where the mean is above twice the target, and "
    "nothing could be proven of an answer; take Gamma, or Tweedie with a power near 2"
}


def why_unknown(name: str) -> str:
    """Why there is no loss of this name, and which there are."""
    family = name.lower().replace("_", "-").replace(" ", "-")
    if family in _NOT_CONVEX:
        return _NOT_CONVEX[family]
    close = difflib.get_close_matches(family, LOSSES, 1)
    return f"did you mean {close[0]!r}?" if close else f"known losses: {', '.join(LOSSES)}"
