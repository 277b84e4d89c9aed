"""How the columns of a table become numbers: a column for every word, and something where a value is missing.

What is found in the rows of a fit is kept in the model, so that new rows are read the same way.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from .._validate import AnyArray, MatrixLike
from ..foundation.numerics import FULL
from ..structure import Groups

if TYPE_CHECKING:
    from .frames import _Frame

ONE_HOT, MISSING = ("auto",), ("mean", "drop")  # what the options take
REMEDY = "; --missing mean puts its column's mean there, --missing drop leaves such rows out"
_NO_WORD = "(missing)"  # the level of cells without a word


@dataclasses.dataclass
class Coding:
    """What becomes of every feature column of a table.

    Attributes
    ----------
    columns : names of the columns, in order
    levels : the words of each column that holds words; a column of 0 and 1 is made for every one
    means : what stands where a number is missing
    """

    columns: list[str]
    levels: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    means: dict[str, float] = dataclasses.field(default_factory=dict)

    @classmethod
    def learnt(cls, frame: _Frame, places: Sequence[int], one_hot: str | None, missing: str | None) -> Coding:
        """What the rows of a table call for."""
        coding = cls([frame.names[place] for place in places])
        for name, place in zip(coding.columns, places, strict=True):
            cells = frame.column(place)
            if one_hot is not None and _holds_words(cells):
                coding.levels[name] = _levels(frame, place, cells, missing)
            elif missing == "mean":
                known = frame.numbers(place, missing=True)
                known = known[~np.isnan(known)]
                if not known.size:
                    raise ValueError(f"{frame.path}: column {name!r} has no value in any row; leave it out with --drop")
                coding.means[name] = float(known.mean())
        return coding

    @property
    def names(self) -> list[str]:
        """The names of the columns that are made."""
        return [made for name in self.columns for made in self._made(name)]

    def groups(self) -> dict[str, list[int]]:
        """What is made of each column, by the numbers of its columns."""
        ends = np.cumsum([len(self._made(name)) for name in self.columns])
        return {
            name: list(range(end - len(self._made(name)), end))
            for name, end in zip(self.columns, ends.tolist(), strict=True)
        }

    def as_groups(self) -> Groups:
        """The same as groups of named features."""
        own = self.groups()
        return Groups(list(own.values()), list(own), len(self.names), self.names)

    def _made(self, name: str) -> list[str]:
        return [f"{name}_{word}" for word in self.levels[name]] if name in self.levels else [name]

    def matrix(self, frame: _Frame, places: Sequence[int]) -> MatrixLike:
        """The numbers of these columns; sparse where dense ones would take many times the room."""
        numbers = [(name, place) for name, place in zip(self.columns, places, strict=True) if name not in self.levels]
        rows, width = len(frame.table), len(self.names)
        stored = rows * len(self.columns)
        parts: dict[str, Any] = {}
        for name, place in numbers:
            values = frame.numbers(place, missing=name in self.means)
            parts[name] = np.where(np.isnan(values), self.means.get(name, 0.0), values)
        for name, place in zip(self.columns, places, strict=True):
            if name in self.levels:
                parts[name] = self._indicators(frame, place, name)
        if stored <= FULL * rows * width:
            columns = [sp.csr_array(np.reshape(parts[name], (rows, -1))) if name not in self.levels else parts[name]
                       for name in self.columns]  # fmt: skip
            return sp.csr_array(sp.hstack(columns, format="csr"))
        out = np.empty((rows, width))
        for name, own in self.groups().items():
            part = parts[name]
            out[:, own] = part.toarray() if sp.issparse(part) else part[:, None]
        return out

    def _indicators(self, frame: _Frame, place: int, name: str) -> sp.csr_array:
        """A row of 0 and 1 for every cell; no 1 for a word that no row of the fit had."""
        words, levels = _words(frame.column(place)), np.array(self.levels[name])
        number = np.minimum(np.searchsorted(levels, words), len(levels) - 1)
        known = levels[number] == words
        if not known.all():
            row = int(np.flatnonzero(~known)[0])
            if words[row] == _NO_WORD:
                raise frame.fault(row, place, f"has no value{REMEDY}")
            more = np.count_nonzero(~known) - 1
            warnings.warn(
                f"{frame.path}, {frame.place(row)}: column {name!r} holds {str(words[row])!r}, a word that no row of "
                f"the fit had{f', and so do {more} more rows' if more else ''}; it counts as none of the known ones",
                UserWarning,
                stacklevel=2,
            )
        at = np.flatnonzero(known)
        return sp.csr_array((np.ones(len(at)), (at, number[at])), shape=(len(words), len(levels)))


def check_options(one_hot: str | None, missing: str | None) -> None:
    """A ValueError for what the options do not take."""
    for name, value, known in (("one-hot", one_hot, ONE_HOT), ("missing", missing, MISSING)):
        if value is not None and value not in known:
            raise ValueError(f"--{name} is {value!r}; it must be {' or '.join(known)}")


def _holds_words(cells: Any) -> bool:
    """Whether some cell that is there is no number."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(cells):
        return False
    if pd.api.types.is_datetime64_any_dtype(cells):
        return False  # a date is no level: the error for what is not a number names it
    there = cells[~cells.isna().to_numpy()].astype(str)
    return bool(pd.to_numeric(there, errors="coerce").isna().any())


def _words(cells: Any) -> AnyArray:
    return np.where(cells.isna().to_numpy(), _NO_WORD, cells.astype(object).map(str).to_numpy()).astype(str)


def _levels(frame: _Frame, place: int, cells: Any, missing: str | None) -> list[str]:
    """The words of a column, sorted."""
    gaps = np.flatnonzero(cells.isna().to_numpy())
    if gaps.size and missing is None:
        raise frame.fault(gaps[0], place, f"has no value{REMEDY}")
    found = np.unique(_words(cells))
    if len(found) > max(20, len(cells) // 2):
        raise ValueError(
            f"{frame.path}: column {frame.names[place]!r} holds {len(found)} different words in {len(cells)} rows, "
            f"such as {str(found[0])!r}, too many for groups; leave it out with --drop {frame.names[place]}"
        )
    return [str(word) for word in found]
