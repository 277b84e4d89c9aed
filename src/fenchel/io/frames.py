"""Reading tables: csv and parquet."""

from __future__ import annotations

import csv
import dataclasses
import difflib
import io
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import AnyArray, Array, Flags, Frame
from ..foundation.files import check_unpacked
from ..foundation.words import listed
from .coding import REMEDY, Coding
from .contents import Data, _some_weight
from .offsets import named, taken
from .text import _cells, _exact_floats, _first_line, _is_number, _looks_like_header, _pandas, _separator
from .wide import _is_wide, _read_wide

# names among which one like a name that does not exist is looked for: a second; more: a longer wait for an error
_LOOKED_AT = 10_000


@dataclasses.dataclass
class _Frame:
    """Columns of a table; `place(row)` says where a row stands in the file, `apart` holds the columns that the table
    has no right values for, and `piece` tells that the other rows stay on the disk."""

    path: str | Path
    table: Frame
    names: list[str]
    header: bool
    place: Callable[[int], str]
    apart: dict[int, Frame] = dataclasses.field(default_factory=dict)
    piece: bool = False

    def column(self, number: int) -> Frame:
        return self.apart[number] if number in self.apart else self.table.iloc[:, number]

    def position(self, column: int | str, what: str) -> int:
        """The column of that name or number, or a ValueError that lists what there is."""
        count = len(self.names)
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        try:
            number = int(column)
        except ValueError:
            close = difflib.get_close_matches(str(column), self.names[:_LOOKED_AT], 1)
            hint = f"did you mean {close[0]!r}?" if close else f"its columns are {listed(self.names)}"
            raise ValueError(f"{what} is {column!r}, but {self.path} has no such column; {hint}") from None
        if not -count <= number < count:
            raise ValueError(f"{what} is {number}, but {self.path} has columns 0 to {count - 1}")
        return number % count

    def fault(self, row: int, column: int, what: str) -> ValueError:
        return ValueError(f"{self.path}, {self.place(row)}: column {self.names[column]!r} {what}")

    def numbers(self, column: int, missing: bool = False) -> Array:
        """A column as finite floats, or a ValueError that names the first cell that is not one; with `missing` empty
        cells are nan."""
        import pandas as pd

        cells = self.column(column)
        if pd.api.types.is_numeric_dtype(cells):
            values = cells.to_numpy(dtype=float, na_value=np.nan)
        else:
            cells = cells.astype(object)
            values = pd.to_numeric(cells.map(lambda cell: None if cell is pd.NaT else str(cell), na_action="ignore"),
                                   errors="coerce").to_numpy(dtype=float, na_value=np.nan)  # fmt: skip
        wrong = ~np.isfinite(values)
        bad = np.flatnonzero(wrong & ~cells.isna().to_numpy() if missing else wrong)
        if bad.size:
            cell = cells.iloc[bad[0]]
            if pd.isna(cell):
                remedy = "; fill it or leave its row out of the file" if self.piece else REMEDY
                raise self.fault(bad[0], column, f"has no value{remedy}")
            word = isinstance(cell, str) and not _is_number(cell)
            coded = "" if self.piece else "--one-hot auto makes columns of words, "
            remedy = f"; {coded}--drop {self.names[column]} leaves this one out"
            raise self.fault(bad[0], column, f"holds {cell!s}, which is not a finite number{remedy if word else ''}")
        out: Array = values
        return out

    def labels(self, column: int) -> AnyArray:
        """A column as it stands: numbers, truth values or strings; none may be missing."""
        import pandas as pd

        cells = self.column(column)
        missing = np.flatnonzero(cells.isna())
        if missing.size:
            raise self.fault(missing[0], column, "has no value; --missing drop leaves such rows out")
        if pd.api.types.is_bool_dtype(cells):
            out: AnyArray = cells.to_numpy(dtype=bool)
            return out
        if pd.api.types.is_numeric_dtype(cells):
            values = cells.to_numpy()
            out = values if values.dtype != object else values.astype(float)
            return out
        return np.array([str(cell) for cell in cells])

    def without_gaps(self, columns: Sequence[int]) -> tuple[_Frame, Flags]:
        """The rows in which none of these columns is empty, and which these are."""
        gaps = np.zeros(len(self.table), dtype=bool)
        for column in columns:
            gaps |= self.column(column).isna().to_numpy()
        rows = np.flatnonzero(~gaps)
        if not rows.size:
            raise ValueError(f"{self.path}: every row misses a value, and --missing drop leaves none; try mean")
        apart = {column: cells.iloc[rows] for column, cells in self.apart.items()}
        place = self.place
        return _Frame(
            self.path, self.table.iloc[rows], self.names, self.header, lambda row: place(int(rows[row])), apart
        ), ~gaps

    def matrix(self, columns: list[int]) -> Array:
        out = np.empty((len(self.table), len(columns)))
        plain = self._plain
        together = [j for j, column in enumerate(columns) if plain[column]]
        if together:
            numbers = [columns[j] for j in together]
            some = self.table if len(numbers) == self.table.shape[1] else self.table.iloc[:, numbers]
            out[:, together] = some.to_numpy(dtype=float, na_value=np.nan)
            for k in np.flatnonzero(~np.isfinite(out[:, together].sum(axis=0))):
                self.numbers(numbers[k])  # says what is wrong with it, if anything is
        for j, column in enumerate(columns):
            if not plain[column]:
                out[:, j] = self.numbers(column)
        return out

    @property
    def _plain(self) -> list[bool]:
        """Which columns hold numbers of numpy, and can be taken together."""
        kinds = self.table.dtypes.to_numpy()
        plain = [isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds]
        for column in self.apart:
            plain[column] = False
        return plain


def _read_frame(path: str | Path, kind: str, header: bool | None) -> _Frame:
    frame = _read_csv(path, header) if kind == "csv" else _read_parquet(path)
    if len(frame.table) == 0:
        raise ValueError(f"{path} has no rows")
    return frame


def _read_parquet(path: str | Path) -> _Frame:
    pd = _pandas(path)
    try:
        import pyarrow.parquet

        about = pyarrow.parquet.read_metadata(path)
        check_unpacked(path, 8 * about.num_rows * about.num_columns, "write it as npy")
        table = pd.read_parquet(path)
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow: pip install 'fenchel[io]'") from None
    except Exception as error:  # pyarrow has its own family of errors
        if str(error).startswith(str(path)):
            raise
        raise ValueError(f"{path} is not a Parquet file ({_first_line(error)})") from error
    return _Frame(path, table, [str(name) for name in table.columns], True, lambda row: f"row {row} (counted from 0)")


def _read_csv(path: str | Path, header: bool | None) -> _Frame:
    import warnings

    pd = _pandas(path)
    separator = _separator(path)
    start = list(itertools.islice(_cells(path, separator), 2))
    if not start:
        raise ValueError(f"{path} is empty")
    (line, first), second = start[0], start[1][1] if len(start) > 1 else None
    header = _looks_like_header(first, second) if header is None else header
    names = _header_names(path, line, first) if header else [str(j) for j in range(len(first))]
    if second is not None and len(second) > len(names):
        raise ValueError(f"{path}, line {start[1][0]}: {len(second)} cells, but the first line has {len(names)}")

    def place(row: int) -> str:
        number, _ = next(itertools.islice(_cells(path, separator), int(row) + header, None))
        return f"line {number}"

    if _is_wide(path, first):
        values, words = _read_wide(path, separator, header, len(names))
        apart = {column: _typed(pd, cells) for column, cells in words.items()}
        return _Frame(path, pd.DataFrame(values, copy=False), names, header, place, apart)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                path, sep=separator, header=0 if header else None, names=names, index_col=False, encoding="utf-8-sig",
                skipinitialspace=True, low_memory=False, **_exact_floats(pd),
            )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        for number, cells in _cells(path, separator):
            if len(cells) > len(names):
                raise ValueError(
                    f"{path}, line {number}: {len(cells)} cells, but the first line has {len(names)}"
                ) from error
        raise ValueError(f"{path} is not a CSV file ({_first_line(error)})") from error
    return _Frame(path, table, names, header, place)


def _typed(pd: Any, cells: list[str]) -> Frame:
    """A column with the type that pandas gives it."""
    text = io.StringIO()
    csv.writer(text).writerows([cell] for cell in ["column", *cells])
    return pd.read_csv(io.StringIO(text.getvalue()), skip_blank_lines=False, **_exact_floats(pd)).iloc[:, 0]


def _header_names(path: str | Path, line: int, names: list[str]) -> list[str]:
    seen = set()
    for j, name in enumerate(names):
        if not name:
            raise ValueError(
                f"{path}, line {line}: column {j} has no name; if it holds row numbers, write the file without "
                "them (pandas: to_csv(..., index=False))"
            )
        if name in seen:
            raise ValueError(f"{path}, line {line}: two columns are named {name!r}")
        seen.add(name)
    return names


def _from_frame(
    frame: _Frame,
    targets: list[int | str],
    weights: str | None,
    drop: Sequence[int | str],
    task: str | None,
    offset: str | None = None,
    together: str | None = None,
    one_hot: str | None = None,
    missing: str | None = None,
) -> Data:
    places = [frame.position(target, "target") for target in targets or [-1]]
    twice = next((k for k in places if places.count(k) > 1), None)
    if twice is not None:
        raise ValueError(f"target names {frame.names[twice]!r} twice")
    dropped = {frame.position(name, "drop") for name in drop}
    both = dropped & set(places)
    if both:
        raise ValueError(f"drop names {frame.names[both.pop()]!r}, which is the target; name another with target")
    left_out, kept = {*places, *dropped}, None
    if missing == "drop":
        frame, kept = frame.without_gaps([j for j in range(len(frame.names)) if j not in dropped])
    sample_weight = tasks = None
    if weights is not None and weights in frame.names:
        column = frame.names.index(weights)
        left_out.add(column)
        sample_weight = frame.numbers(column)
        if np.any(sample_weight < 0):
            row = int(np.flatnonzero(sample_weight < 0)[0])
            raise frame.fault(row, column, f"holds {sample_weight[row]:g}; a weight must not be negative")
        _some_weight(sample_weight, f"{frame.path}, column {weights!r}")
    if task is not None and task in frame.names:
        column = frame.names.index(task)
        if column in places:
            raise ValueError(f"task names {task!r}, which is the target")
        left_out.add(column)
        tasks = frame.labels(column)
    offset_at, known = _offset(frame, offset)
    if offset_at is not None:
        if offset_at in places:
            raise ValueError(f"offset names {frame.names[offset_at]!r}, which is the target")
        left_out.add(offset_at)
    labels = None
    if together is not None and together in frame.names:
        column = frame.names.index(together)
        if column in places:
            raise ValueError(f"--cv-groups names {together!r}, which is the target")
        left_out.add(column)
        labels = frame.labels(column)
    columns = [j for j in range(len(frame.names)) if j not in left_out]
    if not columns:
        raise ValueError(f"{frame.path} has no feature columns besides the target {frame.names[places[0]]!r}")
    names = [frame.names[j] for j in columns]
    target = [frame.names[j] for j in places]
    coding = None
    if one_hot is not None or missing == "mean":
        coding = Coding.learnt(frame, columns, one_hot, missing)
    return Data(
        frame.matrix(columns) if coding is None else coding.matrix(frame, columns), _targets(frame, places),
        names if coding is None else coding.names, frame.header, target if len(target) > 1 else target[0],
        sample_weight, task=tasks, offset=known, together=labels, kept=kept, coding=coding,
    )  # fmt: skip


def _offset(frame: _Frame, offset: str | None) -> tuple[int | None, Array | None]:
    """The column of the offset and its values; None twice where it is no column."""
    name, log = (None, False) if offset is None else named(offset, frame.names)
    if name not in frame.names:
        return None, None
    column = frame.names.index(name)
    return column, taken(frame.numbers(column), log, lambda row, what: frame.fault(row, column, what))


def _targets(frame: _Frame, places: list[int]) -> AnyArray | None:
    """One column as it stands, or several as numbers; None for none."""
    if not places:
        return None
    out: AnyArray | None = frame.labels(places[0]) if len(places) == 1 else frame.matrix(places)
    return out


def _match(
    frame: _Frame,
    n_features: int,
    features: list[str] | None,
    targets: list[str],
    must_have_target: bool,
    task: str | None,
    offset: str | None = None,
    coding: Coding | None = None,
) -> Data:
    """The model's features among the columns of a frame, and the targets if they are there; with a coding its columns
    are looked for."""
    made = features
    if coding is not None:
        features, n_features = coding.columns, len(coding.columns)
    places = []
    if must_have_target:
        places = [frame.position(target, "target") for target in targets]
    elif targets and set(targets) <= set(frame.names) and not set(targets) & set(features or ()):
        places = [frame.names.index(target) for target in targets]
    task_at = frame.names.index(task) if task is not None and task in frame.names else None
    offset_at, known = _offset(frame, offset)
    if features is not None and set(features) <= set(frame.names):
        columns = [frame.names.index(name) for name in features]
    elif features is None or not frame.header:
        free = [j for j in range(len(frame.names)) if j not in (task_at, offset_at)]
        if len(free) == n_features and not must_have_target:
            places = []
        columns = [j for j in free if j not in places]
        if features is None and len(columns) == n_features + 1 and not places:
            columns, places = columns[:-1], columns[-1:]
        if len(columns) != n_features:
            raise ValueError(f"{frame.path} has {len(columns)} feature columns, but the model has {n_features}")
    else:
        missing = [name for name in features if name not in frame.names]
        raise ValueError(
            f"{frame.path} has {n_features - len(missing)} of the model's {n_features} features; "
            f"missing: {listed(missing)}"
        )
    tasks = None if task_at is None else frame.labels(task_at)
    X = frame.matrix(columns) if coding is None else coding.matrix(frame, columns)
    return Data(X, _targets(frame, places), made, frame.header,
                targets[0] if len(targets) == 1 else targets or None, task=tasks, offset=known)  # fmt: skip
