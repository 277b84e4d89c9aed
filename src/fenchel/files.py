"""Reading data from files, and what is known about its rows: targets, weights, tasks.

Formats: LIBSVM (``.svm``, ``.libsvm``, ``.txt`` or no extension), CSV (``.csv``, ``.tsv``), Parquet, npz and npy. A
file that does not parse raises a ValueError that names the file and the first place that is wrong.
:mod:`fenchel.structure_files` reads groups, edges, trees, masks and weights of features.

Features are numbered from 0, the target not counted; where the columns have names, a name wins over a
number.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
import itertools
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

_KINDS = {
    ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm", ".csv": "csv", ".tsv": "csv",
    ".parquet": "parquet", ".pq": "parquet", ".npz": "npz", ".npy": "npy",
}  # fmt: skip
_MISSING = {"na", "n/a", "null", "none", "?"}


@dataclasses.dataclass
class Data:
    """What a data file holds.

    Attributes
    ----------
    X : array or CSR array (n, p)
    y : array of n labels or numbers, (n, targets) for several, or None
    features : names of the columns of X, or None where the format has none
    named : whether those names come from the file (without a header they are positions)
    target : name of the target column, a list for several, or None
    weights : array of n sample weights, or None
    first_index : 1 or 0, where a LIBSVM file begins to count; None for other formats
    task : array of n task names, or None
    """

    X: np.ndarray | sp.csr_array
    y: np.ndarray | None
    features: list[str] | None = None
    named: bool = False
    target: str | list[str] | None = None
    weights: np.ndarray | None = None
    first_index: int | None = None
    task: np.ndarray | None = None


def read_data(path, *, target=None, weights=None, drop=(), header: bool | None = None, task=None) -> Data:
    """Read rows and their target.

    Parameters
    ----------
    path : path of a LIBSVM, CSV, Parquet, npz or npy file
    target : str or int, or list of them, optional
        Name or position of the target column, the last by default; in an npz the name of its array ("y"); for an npy
        file also a file with the targets.
    weights : str, optional
        A column (or npz array) with sample weights, else a file with one number per line.
    drop : sequence of str or int
        Columns to leave out.
    header : bool, optional
        Whether a CSV begins with a line of names; by default that is seen from its first two lines.
    task : str, optional
        A column (or npz array) with the task of every row, else a file with one name per line.

    Returns
    -------
    Data
    """
    path = _existing(path)
    kind = _kind(path)
    targets = [] if target is None else list(target) if isinstance(target, (list, tuple)) else [target]
    if kind in ("csv", "parquet"):
        data = _from_frame(_read_frame(path, kind, header), targets, weights, drop, task)
    else:
        if drop:
            raise ValueError(f"{path} has no named columns; drop is for CSV and Parquet files")
        if len(targets) > 1 and kind != "npy":
            raise ValueError(
                f"{len(targets)} targets are named, but {path} has no columns for them; an npz file may hold y with "
                "several columns"
            )
        one = targets[0] if targets else None
        if kind == "npz":
            data = _read_npz(path, one, weights, task)
        else:
            data = _read_npy(path, targets) if kind == "npy" else _read_libsvm(path, one)
        if data.y is None:
            raise ValueError(f"{path} has no array {one or 'y'!r}; it needs one with the targets")
    if weights is not None and data.weights is None:
        data.weights = _weights_file(weights, path, data.X.shape[0])
    if task is not None and data.task is None:
        data.task = _tasks_file(task, path, data.X.shape[0])
    return data


def read_like(path, *, n_features: int, features=None, target=None, first_index=None, must_have_target=False,
              header: bool | None = None, task=None) -> Data:  # fmt: skip
    """Read rows for a model of `n_features` features; a target is optional.

    Named columns are matched by name, in any order; others by position. A LIBSVM file may end before
    the last feature.

    Parameters
    ----------
    path : path of a data file
    n_features, features : the model's number of features, and their names if it has them
    target : name of the target column, a list for several
    first_index : where the model's LIBSVM file began to count
    must_have_target : bool
        Raise if the file has no such column.
    header, task : as in `read_data`
    """
    path = _existing(path)
    kind = _kind(path)
    targets = [] if target is None else [target] if isinstance(target, str) else list(target)
    if kind in ("csv", "parquet"):
        data = _match(_read_frame(path, kind, header), n_features, features, targets, must_have_target, task)
    elif kind == "npy":
        data = _npy_like(path, n_features, targets, must_have_target)
    elif kind == "npz":
        data = _read_npz(path, targets[0] if targets else None, None, task)
    else:
        data = _read_libsvm(path, None, first_index, n_features)
    if must_have_target and data.y is None:
        raise ValueError(f"{path} has no array {targets[0]!r}")
    if data.X.shape[1] != n_features:
        raise ValueError(f"{path} has {data.X.shape[1]} features, but the model has {n_features}")
    if task is not None and data.task is None:
        data.task = _tasks_file(task, path, data.X.shape[0])
    return data


def _weights_file(weights, path, rows):
    if not os.path.isfile(weights):
        raise ValueError(f"weights is {weights!r}, which is neither a column of {path} nor a file")
    values, line = [], 0
    for line, value in _numbered(weights):
        if value < 0:
            raise ValueError(f"{weights}, line {line}: the weight {value:g} is negative")
        values.append(value)
    if len(values) != rows:
        raise ValueError(f"{weights} ends at line {line} with {len(values)} weights, but {path} has {rows} rows")
    return _some_weight(np.array(values), weights)


def _some_weight(weights, where):
    if not weights.any():
        raise ValueError(f"{where}: all weights are 0")
    return weights


def _tasks_file(task, path, rows):
    if not os.path.isfile(task):
        raise ValueError(f"task is {task!r}, which is neither a column of {path} nor a file")
    with open(task, encoding="utf-8-sig") as file:
        names = [line.strip() for line in file]
    while names and not names[-1]:
        names.pop()
    if "" in names:
        raise ValueError(f"{task}, line {names.index('') + 1}: the task has no name")
    if len(names) != rows:
        raise ValueError(f"{task} names {len(names)} tasks, but {path} has {rows} rows")
    return np.array(names)


def _existing(path) -> str:
    path = os.fspath(path)
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give a file")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist")
    return path


def _kind(path) -> str:
    """The format, by extension, else by its first bytes."""
    kind = _KINDS.get(Path(path).suffix.lower())
    if kind is not None:
        return kind
    with open(path, "rb") as file:
        start = file.read(4096)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK\x03\x04"):
        return "npz"
    if start.startswith(b"\x93NUMPY"):
        return "npy"
    if start.startswith((b"\x1f\x8b", b"BZh", b"\xfd7zXZ")):
        raise ValueError(f"{path} is compressed; unpack it first")
    line = next((line for line in start.split(b"\n") if line.split(b"#")[0].strip()), b"")
    words = line.split(b"#")[0].split()
    if any(mark in line for mark in (b",", b";", b"\t")) and not any(b":" in word for word in words[1:]):
        return "csv"
    return "libsvm"


# -- columns: CSV and Parquet -----------------------------------------------------------------------


@dataclasses.dataclass
class _Frame:
    """Columns of a table; `place(row)` says where a row stands in the file."""

    path: str
    table: object  # a pandas DataFrame
    names: list[str]
    header: bool
    place: Callable[[int], str]

    def position(self, column, what) -> int:
        """The column of that name or number, or a ValueError that lists what there is."""
        count = len(self.names)
        if isinstance(column, str) and column in self.names:
            return self.names.index(column)
        try:
            number = int(column)
        except ValueError:
            close = difflib.get_close_matches(column, self.names, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"its columns are {_listed(self.names)}"
            raise ValueError(f"{what} is {column!r}, but {self.path} has no such column; {hint}") from None
        if not -count <= number < count:
            raise ValueError(f"{what} is {number}, but {self.path} has columns 0 to {count - 1}")
        return number % count

    def fault(self, row, column, what) -> ValueError:
        return ValueError(f"{self.path}, {self.place(row)}: column {self.names[column]!r} {what}")

    def numbers(self, column) -> np.ndarray:
        """A column as finite floats, or a ValueError that names the first cell that is not one."""
        import pandas as pd

        cells = self.table.iloc[:, column]
        if pd.api.types.is_numeric_dtype(cells):
            values = cells.to_numpy(dtype=float, na_value=np.nan)
        else:
            cells = cells.astype(object)
            values = pd.to_numeric(cells.map(lambda cell: None if cell is pd.NaT else str(cell), na_action="ignore"),
                                   errors="coerce").to_numpy(dtype=float, na_value=np.nan)  # fmt: skip
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            cell = cells.iloc[bad[0]]
            what = "has no value" if pd.isna(cell) else f"holds {cell!s}, which is not a finite number"
            raise self.fault(bad[0], column, what)
        return values

    def labels(self, column) -> np.ndarray:
        """A column as it stands: numbers, truth values or strings; none may be missing."""
        import pandas as pd

        cells = self.table.iloc[:, column]
        missing = np.flatnonzero(cells.isna())
        if missing.size:
            raise self.fault(missing[0], column, "has no value")
        if pd.api.types.is_bool_dtype(cells):
            return cells.to_numpy(dtype=bool)
        if pd.api.types.is_numeric_dtype(cells):
            values = cells.to_numpy()
            return values if values.dtype != object else values.astype(float)
        return np.array([str(cell) for cell in cells])

    def matrix(self, columns) -> np.ndarray:
        out = np.empty((len(self.table), len(columns)))
        for j, column in enumerate(columns):
            out[:, j] = self.numbers(column)
        return out


def _read_frame(path, kind, header) -> _Frame:
    frame = _read_csv(path, header) if kind == "csv" else _read_parquet(path)
    if len(frame.table) == 0:
        raise ValueError(f"{path} has no rows")
    return frame


def _read_parquet(path) -> _Frame:
    pd = _pandas(path)
    try:
        table = pd.read_parquet(path)
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow: pip install 'fenchel[io]'") from None
    except Exception as error:  # pyarrow has its own family of errors
        raise ValueError(f"{path} is not a Parquet file ({_first_line(error)})") from error
    return _Frame(path, table, [str(name) for name in table.columns], True, lambda row: f"row {row} (counted from 0)")


def _read_csv(path, header) -> _Frame:
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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(
                path, sep=separator, header=0 if header else None, names=names, index_col=False, encoding="utf-8-sig",
                skipinitialspace=True, low_memory=False, **_exact_floats(pd),
            )  # fmt: skip
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
        for number, cells in _cells(path, separator):
            if len(cells) > len(names):
                raise ValueError(
                    f"{path}, line {number}: {len(cells)} cells, but the first line has {len(names)}"
                ) from error
        raise ValueError(f"{path} is not a CSV file ({_first_line(error)})") from error

    def place(row):
        number, _ = next(itertools.islice(_cells(path, separator), int(row) + header, None))
        return f"line {number}"

    return _Frame(path, table, names, header, place)


def _cells(path, separator) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of every line that is not blank."""
    with open(path, encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator, skipinitialspace=True)
        try:
            for cells in reader:
                if len(cells) > 1 or (cells and cells[0].strip()):
                    yield reader.line_num, [cell.strip() for cell in cells]
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not text: line {reader.line_num + 1} is not UTF-8") from error
        except csv.Error as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}") from error


def _separator(path) -> str:
    """The one of comma, semicolon and tab that the first line has most of."""
    if Path(path).suffix.lower() == ".tsv":
        return "\t"
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        line = next((line for line in file if line.strip()), "")
    return max((",", ";", "\t"), key=line.count)


def _looks_like_header(first, second) -> bool:
    """The first line has a word where the second has a number, or has words only, or counts as pandas does: 0, 1, 2."""
    words = [not (_is_number(cell) or cell.lower() in _MISSING) for cell in first]
    if second is not None and any(
        word and (_is_number(below) or not below) for word, below in zip(words, second, strict=False)
    ):
        return True
    counted = [cell for cell, word in zip(first, words, strict=True) if not word]
    return all(words) or (len(counted) > 2 and counted == [str(j) for j in range(len(counted))])


def _is_number(cell) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _header_names(path, line, names) -> list[str]:
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


def _from_frame(frame, targets, weights, drop, task) -> Data:
    places = [frame.position(target, "target") for target in targets or [-1]]
    twice = next((k for k in places if places.count(k) > 1), None)
    if twice is not None:
        raise ValueError(f"target names {frame.names[twice]!r} twice")
    dropped = {frame.position(name, "drop") for name in drop}
    both = dropped & set(places)
    if both:
        raise ValueError(f"drop names {frame.names[both.pop()]!r}, which is the target; name another with target")
    left_out = {*places, *dropped}
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
    columns = [j for j in range(len(frame.names)) if j not in left_out]
    if not columns:
        raise ValueError(f"{frame.path} has no feature columns besides the target {frame.names[places[0]]!r}")
    names = [frame.names[j] for j in columns]
    target = [frame.names[j] for j in places]
    return Data(frame.matrix(columns), _targets(frame, places), names, frame.header,
                target if len(target) > 1 else target[0], sample_weight, task=tasks)  # fmt: skip


def _targets(frame, places):
    """One column as it stands, or several as numbers; None for none."""
    if not places:
        return None
    return frame.labels(places[0]) if len(places) == 1 else frame.matrix(places)


def _match(frame, n_features, features, targets, must_have_target, task) -> Data:
    """The model's features among the columns of a frame, and the targets if they are there."""
    places = []
    if must_have_target:
        places = [frame.position(target, "target") for target in targets]
    elif targets and set(targets) <= set(frame.names) and not set(targets) & set(features or ()):
        places = [frame.names.index(target) for target in targets]
    task_at = frame.names.index(task) if task is not None and task in frame.names else None
    if features is not None and set(features) <= set(frame.names):
        columns = [frame.names.index(name) for name in features]
    elif features is None or not frame.header:
        free = [j for j in range(len(frame.names)) if j != task_at]
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
            f"missing: {_listed(missing)}"
        )
    tasks = None if task_at is None else frame.labels(task_at)
    return Data(frame.matrix(columns), _targets(frame, places), features, frame.header,
                targets[0] if len(targets) == 1 else targets or None, task=tasks)  # fmt: skip


# -- matrices: LIBSVM, npz and npy -------------------------------------------------------------------


def _read_libsvm(path, target, first_index=None, n_features=0) -> Data:
    from sklearn.datasets import load_svmlight_file

    if target is not None:
        raise ValueError(f"target is {target!r}, but in the LIBSVM file {path} the target is the first entry of a line")
    try:
        X, y = load_svmlight_file(path, zero_based=True)
    except (ValueError, OverflowError, IndexError) as error:
        line, what = _libsvm_fault(path)
        raise ValueError(f"{path}{line}: {what or _first_line(error)}") from error
    if X.shape[0] == 0:
        raise ValueError(f"{path} has no rows")
    bad = np.flatnonzero(~np.isfinite(y))
    bad = bad if bad.size else np.flatnonzero(~np.isfinite(X.data))
    if bad.size:
        line, what = _libsvm_fault(path)
        raise ValueError(f"{path}{line}: {what}")
    has_zero = bool(X.nnz) and X.indices.min() == 0
    if first_index is None:
        first_index = 0 if has_zero else 1
    elif has_zero and first_index == 1:
        raise ValueError(f"{path} has a feature 0, but the model was fitted on a file that counts from 1")
    width = max(X.shape[1] - first_index, n_features)
    X = sp.csr_array((X.data, X.indices - first_index, X.indptr), shape=(X.shape[0], width))
    return Data(X, _whole(y), first_index=first_index)


def _libsvm_fault(path) -> tuple[str, str]:
    """Where and why a LIBSVM file does not parse: the first line that is wrong."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            words = line.split(b"#")[0].decode("utf-8", "replace").split()
            what = _libsvm_line_fault(words)
            if what:
                return f", line {number}", what
    return "", ""


def _libsvm_line_fault(words) -> str:
    if not words:
        return ""
    if not _is_finite(words[0]):
        return f"the target {words[0]!r} is not a finite number"
    before = -1
    for word in words[2:] if len(words) > 1 and words[1].startswith("qid:") else words[1:]:
        index, colon, value = word.partition(":")
        if not colon or not index.isdigit():
            return f"{word!r} is not of the form index:value"
        if not _is_finite(value):
            return f"{word!r} does not hold a finite number"
        if int(index) <= before:
            return f"index {index} follows {before}; the indices of a line must rise"
        before = int(index)
    return ""


def _is_finite(word) -> bool:
    return _is_number(word) and bool(np.isfinite(float(word)))


def _read_npz(path, target, weights, task) -> Data:
    arrays = _npz_arrays(path)
    X = _npz_matrix(path, arrays)
    name = "y" if target is None else str(target)
    y = arrays.get(name)
    if y is not None and (y.ndim not in (1, 2) or len(y) != X.shape[0]):
        raise ValueError(f"{path}: {name} has shape {y.shape}, but X has {X.shape[0]} rows")
    if y is not None:
        y = _checked_targets(y, f"{path}: {name}")
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        bad = sp.coo_array(X) if sp.issparse(X) else None
        row, column = (
            np.argwhere(~np.isfinite(X))[0] if bad is None else np.transpose(bad.coords)[~np.isfinite(bad.data)][0]
        )
        raise ValueError(f"{path}: X[{row}, {column}] is not a finite number")
    names = arrays.get("feature_names")
    sample_weight = arrays.get(weights)
    if sample_weight is not None:
        sample_weight = _npz_weights(path, weights, sample_weight, X.shape[0])
    tasks = arrays.get(task)
    if tasks is not None and tasks.shape != X.shape[:1]:
        raise ValueError(f"{path}: {task} has shape {tasks.shape}, but X has {X.shape[0]} rows")
    return Data(
        X, y, None if names is None else [str(n) for n in names], names is not None, name,
        sample_weight, task=tasks,
    )  # fmt: skip


def _npz_weights(path, name, weights, rows):
    if weights.shape != (rows,) or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"{path}: {name} has dtype {weights.dtype} and shape {weights.shape}; it must hold a weight for each of "
            f"{rows} rows"
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(f"{path}: {name}[{bad[0]}] is {weights[bad[0]]}; a weight must be finite and not negative")
    return _some_weight(weights.astype(float), f"{path}: {name}")


def _checked_targets(y, where):
    if np.issubdtype(y.dtype, np.floating) and not np.isfinite(y).all():
        at = tuple(np.argwhere(~np.isfinite(y))[0])
        place = ", ".join(map(str, at))
        raise ValueError(f"{where}[{place}] is {y[at]}; targets must be finite")
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _read_npy(path, targets) -> Data:
    """A matrix; the targets are columns of it (the last by default), or stand in files of their own."""
    X = _npy_array(path)
    if X.ndim != 2 or not (np.issubdtype(X.dtype, np.number) or X.dtype == bool):
        raise ValueError(f"{path} has dtype {X.dtype} and shape {X.shape}; it must be a numeric matrix")
    if len(targets) == 1 and os.path.isfile(str(targets[0])):
        return Data(_npy_matrix(path, X), _targets_file(targets[0], path, len(X)), target=str(targets[0]))
    places = []
    for target in targets or [-1]:
        try:
            number = int(target)
        except ValueError:
            raise ValueError(
                f"target is {target!r}, which is neither a file nor a column's number; {path} has {X.shape[1]} columns"
            ) from None
        if not -X.shape[1] <= number < X.shape[1]:
            raise ValueError(f"target is {number}, but {path} has columns 0 to {X.shape[1] - 1}")
        places.append(number % X.shape[1])
    y = _checked_targets(np.array(X[:, places]), f"{path}: the target")
    names = [str(k) for k in places]
    return Data(
        _npy_matrix(path, np.delete(X, places, axis=1)), _whole(y), target=names if len(names) > 1 else names[0]
    )


def _npy_like(path, n_features, targets, must_have_target) -> Data:
    X = _npy_array(path)
    width = X.shape[1] if X.ndim == 2 else 0
    own = [target for target in targets if target.lstrip("-").isdigit()]
    if width == n_features and not (must_have_target and own):
        y = _targets_file(targets[0], path, len(X)) if must_have_target and targets else None
        return Data(_npy_matrix(path, X), y)
    if width == n_features + len(own):
        return _read_npy(path, own)
    raise ValueError(f"{path} has {width} columns, but the model has {n_features} features")


def _npy_array(path):
    try:
        # large data stays on disk
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} is not an npy file of plain numbers ({_first_line(error)})") from error


def _npy_matrix(path, X):
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else float)
    if not np.isfinite(X.sum()):  # the sum may overflow where the numbers are fine
        bad = np.argwhere(~np.isfinite(X))
        if len(bad):
            raise ValueError(f"{path}: X[{bad[0][0]}, {bad[0][1]}] is not a finite number")
    return X


def _targets_file(target, path, rows):
    """Targets from an npy file, or one on every line."""
    target = os.fspath(target)
    if target.endswith(".npy"):
        y = np.array(_npy_array(target))
        if y.ndim not in (1, 2):
            raise ValueError(f"{target} has shape {y.shape}; it must hold a target for every row")
        y = _checked_targets(y, target)
    else:
        with open(target, encoding="utf-8-sig") as file:
            words = [line.strip() for line in file if line.strip()]
        y = np.array(words)
        if all(map(_is_finite, words)):
            y = _whole(y.astype(float))
    if len(y) != rows:
        raise ValueError(f"{target} holds {len(y)} targets, but {path} has {rows} rows")
    return y


def _whole(y):
    """Whole numbers as such, so that labels print as 1 and not 1.0."""
    return y.astype(np.int64) if np.all(y == np.floor(y)) and np.abs(y).max(initial=0) < 2**53 else y


def _npz_arrays(path) -> dict[str, np.ndarray]:
    if not zipfile.is_zipfile(path):
        raise ValueError(f"{path} is not an npz file (it is not a zip archive)")
    try:
        with np.load(path, allow_pickle=False) as content:
            return {key: content[key] for key in content.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not an npz file of plain arrays ({_first_line(error)})") from error


def _npz_matrix(path, arrays):
    """X, or the parts of a sparse matrix as scipy.sparse.save_npz writes them."""
    try:
        if "X" in arrays:
            X = arrays["X"]
            if X.ndim != 2 or not (np.issubdtype(X.dtype, np.number) or X.dtype == bool):
                raise ValueError(f"X has dtype {X.dtype} and shape {X.shape}; it must be a numeric matrix")
            return np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else float)
        if "format" in arrays:
            return sp.csr_array(sp.load_npz(path))
        if {"data", "indices", "indptr", "shape"} <= set(arrays):
            parts = tuple(arrays[key] for key in ("data", "indices", "indptr"))
            X = sp.csr_array(parts, shape=tuple(arrays["shape"]))
            X.check_format(full_check=True)
            return X.astype(X.dtype if X.dtype in (np.float32, np.float64) else float)
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"{path}: {_first_line(error)}") from error
    raise ValueError(
        f"{path} holds {_listed(sorted(arrays))}; it needs X, or data, indices, indptr and shape of a CSR matrix"
    )


# -- small things -----------------------------------------------------------------------------------


def read_vector(path) -> np.ndarray:
    """Numbers, one per line."""
    return np.array([value for _, value in _numbered(path)])


def _numbered(path) -> Iterator[tuple[int, float]]:
    """Line number and number of every line that is not blank."""
    path = _existing(path)
    for line, cells in _cells(path, ","):
        if len(cells) != 1 or not _is_finite(cells[0]):
            raise ValueError(f"{path}, line {line}: expected one finite number, found {','.join(cells)[:40]!r}")
        yield line, float(cells[0])


def _pandas(path):
    try:
        import pandas
    except ImportError:
        raise ImportError(f"reading {path} needs pandas: pip install 'fenchel[io]'") from None
    return pandas


def _exact_floats(pd) -> dict:
    """The option that makes pandas read floats to the last bit; since 3.1 that is its default."""
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {} if version >= (3, 1) else {"float_precision": "round_trip"}


def _listed(names, most=8) -> str:
    """The first few names, for an error message."""
    names = [str(name) for name in names]
    return ", ".join(names[:most]) + (f", … ({len(names)} in all)" if len(names) > most else "")


def _first_line(error) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
