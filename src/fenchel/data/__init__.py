"""What rows are, wherever they live."""

from __future__ import annotations

from .rows import ROUGH, WIDE, Rows, as_weights

__all__ = ["ROUGH", "WIDE", "Rows", "as_weights"]
