"""Reading a table with few rows and very many columns.

pandas makes an array, and more, for every column: 50 to 100 microseconds each, minutes for a million of them. Here a
row is read at a time, at about a quarter of a microsecond for a cell.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import Array
from .text import _cells, _is_number

_MANY = 1000  # columns from which on it matters; fewer: no time to save
_FEW = 200  # rows: with more of them the time that pandas takes for a column is less than that for its cells here


def _is_wide(path: str | Path, first: list[str]) -> bool:
    """Whether a file has many columns, and few rows by its size: a cell and what parts it from the next take two bytes
    at least."""
    return len(first) >= _MANY and os.path.getsize(path) <= _FEW * max(sum(map(len, first)), 2 * len(first))


def _read_wide(path: str | Path, separator: str, header: bool, count: int) -> tuple[Array, dict[int, list[str]]]:
    """The numbers, nan where there is none; and the cells of the columns that have words, by number."""
    rows: list[Array] = []
    words: dict[int, dict[int, str]] = {}
    lines = _cells(path, separator)
    if header:
        next(lines)
    for number, cells in lines:
        if len(cells) > count:
            raise ValueError(f"{path}, line {number}: {len(cells)} cells, but the first line has {count}")
        rows.append(_numbers(cells, count, len(rows), words))
    values = np.array(rows).reshape(len(rows), count)
    return values, {j: _whole_column(values[:, j], found) for j, found in words.items()}


def _numbers(cells: list[str], count: int, row: int, words: dict[int, dict[int, str]]) -> Array:
    values = np.full(count, np.nan)
    if not any("_" in cell for cell in cells):  # Python reads 1_000 as a number, and nobody else does
        try:
            values[: len(cells)] = np.fromiter(map(float, cells), float, len(cells))
            return values
        except ValueError:
            pass
    for j, cell in enumerate(cells):
        if "_" not in cell and _is_number(cell):
            values[j] = float(cell)
        elif cell:
            words.setdefault(j, {})[row] = cell
    return values


def _whole_column(values: Array, found: dict[int, str]) -> list[str]:
    """A column with words, as text."""
    cells: list[Any] = ["" if np.isnan(value) else repr(float(value)) for value in values]
    for row, cell in found.items():
        cells[row] = cell
    return cells
