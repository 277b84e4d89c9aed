"""From a formula and a data frame to numbers: features, target, offset, and the groups of the terms."""

from __future__ import annotations

from .design import Design, design

__all__ = ["Design", "design"]
