"""SDCA-ADMM (T. Suzuki): the method, its state, and the rooms it works in."""

from __future__ import annotations

from .method import SDCAADMM
from .state import State

__all__ = ["SDCAADMM", "State"]
