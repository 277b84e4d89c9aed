"""What rows are, wherever they live."""

from __future__ import annotations

from .offsets import as_offset
from .roles import RowData
from .rows import ROUGH, WIDE, Rows, as_weights

__all__ = ["ROUGH", "WIDE", "RowData", "Rows", "as_offset", "as_weights"]
