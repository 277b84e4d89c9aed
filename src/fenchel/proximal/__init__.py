"""The proximal operator of a whole penalty, behind its maps: the public place of what ``penalties/`` holds."""

from __future__ import annotations

from ..penalties.lattice_prox import ChainProx, LatticeProx, has_directions
from ..penalties.structured_prox import CompiledPenalty, StructuredProx, check_callbacks, feature_quadratic
from ..penalties.whole_prox import ProxInfo, prox

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
