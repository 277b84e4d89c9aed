"""The proximal operator of a whole penalty, behind its maps."""

from __future__ import annotations

from .lattice import ChainProx, LatticeProx, has_directions
from .operator import ProxInfo, prox
from .structured import CompiledPenalty, StructuredProx, check_callbacks, feature_quadratic

__all__ = [
    "ChainProx",
    "CompiledPenalty",
    "LatticeProx",
    "ProxInfo",
    "StructuredProx",
    "check_callbacks",
    "feature_quadratic",
    "has_directions",
    "prox",
]
