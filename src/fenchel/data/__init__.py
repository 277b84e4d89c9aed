"""What rows are, wherever they live."""

from __future__ import annotations

from .offsets import as_offset
from .pools import Pool
from .roles import RowData, RowPool
from .rows import ROUGH, WIDE, Rows, as_weights
from .words import check_numeric, first_word

__all__ = [
    "ROUGH", "WIDE", "Pool", "RowData", "RowPool", "Rows", "as_offset", "as_weights", "check_numeric", "first_word",
]  # fmt: skip
