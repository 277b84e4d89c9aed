"""Theorem 1 in numbers: the constants of SDCA-ADMM's linear rate, and the distance that contracts."""

from __future__ import annotations

from .rate import Constants, constants, distance

__all__ = ["Constants", "constants", "distance"]
