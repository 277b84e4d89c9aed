"""What readers of text share: cells, separators, headers, and how a message says where it is wrong."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..foundation.files import regular, text_lines

_MISSING = {"na", "n/a", "null", "none", "?"}


def _cells(path: str | Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is not blank."""
    with open(regular(path), encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        try:
            for cells in reader:
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield reader.line_num, [cell.strip() for cell in cells]
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text: line {reader.line_num + 1} is not UTF-8") from error
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}") from error


def _separator(path: str | Path) -> str:
    """The one of comma, semicolon and tab that the first line has most of."""
    if Path(path).suffix.lower() == ".tsv":
        return "\t"
    line = next((line for _, line in text_lines(path) if line.strip()), "")
    return max((",", ";", "\t"), key=line.count)


def _looks_like_header(first: list[str], second: list[str] | None) -> bool:
    """The first line has a word where the second has a number, or has words only, or counts as pandas does: 0, 1, 2."""
    words = [not (_is_number(cell) or cell.lower() in _MISSING) for cell in first]
    if second is not None and any(
        word and (_is_number(below) or not below) for word, below in zip(words, second, strict=False)
    ):
        return True
    counted = [cell for cell, word in zip(first, words, strict=True) if not word]
    return all(words) or (len(counted) > 2 and counted == [str(j) for j in range(len(counted))])


def _is_number(cell: float | str) -> bool:
    try:
        float(cell)
    except (ValueError, OverflowError):  # the latter for whole numbers of hundreds of digits
        return False
    return True


def _is_finite(word: float | str) -> bool:
    return _is_number(word) and bool(np.isfinite(float(word)))


def _numbered(path: str | Path) -> Iterator[tuple[int, float]]:
    """Line number and number of every line that is not blank."""
    for line, cells in _cells(path, ","):
        if len(cells) != 1 or not _is_finite(cells[0]):
            raise ValueError(f"{path}, line {line}: expected one finite number, found {','.join(cells)[:40]!r}")
        yield line, float(cells[0])


def _pandas(path: str | Path) -> Any:
    try:
        import pandas
    except ImportError:
        raise ImportError(f"reading {path} needs pandas: pip install 'fenchel[io]'") from None
    return pandas


def _exact_floats(pd: Any) -> dict[str, Any]:
    """The option that makes pandas read floats to the last bit; since 3.1 that is its default."""
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
