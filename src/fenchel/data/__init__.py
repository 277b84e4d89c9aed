"""What rows are, wherever they live."""

from __future__ import annotations

from .roles import RowData
from .rows import ROUGH, WIDE, Rows, as_weights

__all__ = ["ROUGH", "WIDE", "RowData", "Rows", "as_weights"]
