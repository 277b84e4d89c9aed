"""Reading data, groups, edges and weights from files.

Data: LIBSVM (``.svm``, ``.libsvm``, ``.txt`` or no extension), CSV (``.csv``, ``.tsv``), Parquet and npz.
Groups and edges: JSON or CSV. A file that does not parse raises a ValueError that names the file and the
first place that is wrong.

Features are numbered from 0, the target not counted; where the columns have names, a name wins over a
number.
"""

from __future__ import annotations

import csv
import dataclasses
import difflib
import itertools
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse as sp

_KINDS = {
    ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm", ".csv": "csv", ".tsv": "csv",
    ".parquet": "parquet", ".pq": "parquet", ".npz": "npz",
}  # fmt: skip
_MISSING = {"na", "n/a", "null", "none", "?"}
_GROUP_HEADERS = {"feature", "features", "column", "name", "variable", "index"}
_EDGE_HEADERS = {"i", "j", "source", "target", "from", "to", "a", "b", "feature", "feature1", "feature2"}


@dataclasses.dataclass
class Data:
    """What a data file holds.

    Attributes
    ----------
    X : array or CSR array (n, p)
    y : array of n labels or numbers, or None
    features : names of the columns of X, or None where the format has none
    named : whether those names come from the file (without a header they are positions)
    target : name of the target column, or None
    weights : array of n sample weights, or None
    first_index : 1 or 0, where a LIBSVM file begins to count; None for other formats
    """

    X: np.ndarray | sp.csr_array
    y: np.ndarray | None
    features: list[str] | None = None
    named: bool = False
    target: str | None = None
    weights: np.ndarray | None = None
    first_index: int | None = None


def read_data(path, *, target=None, weights=None, drop=(), header: bool | None = None) -> Data:
    """Read rows and their target.

    Parameters
    ----------
    path : path of a LIBSVM, CSV, Parquet or npz file
    target : str or int, optional
        Name or position of the target column, the last by default; in an npz the name of its array ("y").
    weights : str, optional
        A column (or npz array) with sample weights, else a file with one number per line.
    drop : sequence of str or int
        Columns to leave out.
    header : bool, optional
        Whether a CSV begins with a line of names; by default that is seen from its first two lines.

    Returns
    -------
    Data
    """
    path = _existing(path)
    kind = _kind(path)
    if kind in ("csv", "parquet"):
        data = _from_frame(_read_frame(path, kind, header), target, weights, drop)
    else:
        if drop:
            raise ValueError(f"{path} has no named columns; drop is for CSV and Parquet files")
        data = _read_npz(path, target, weights) if kind == "npz" else _read_libsvm(path, target)
        if data.y is None:
            raise ValueError(f"{path} has no array {target or 'y'!r}; it needs one with the targets")
    if weights is not None and data.weights is None:
        if not os.path.isfile(weights):
            raise ValueError(f"weights is {weights!r}, which is neither a column of {path} nor a file")
        data.weights = read_vector(weights)
    return data


def read_like(path, *, n_features: int, features=None, target=None, first_index=None, must_have_target=False,
              header: bool | None = None) -> Data:  # fmt: skip
    """Read rows for a model of `n_features` features; a target is optional.

    Named columns are matched by name, in any order; others by position. A LIBSVM file may end before
    the last feature.

    Parameters
    ----------
    path : path of a data file
    n_features, features : the model's number of features, and their names if it has them
    target : name of the target column
    first_index : where the model's LIBSVM file began to count
    must_have_target : bool
        Raise if the file has no such column.
    header : bool, optional
        As in `read_data`.
    """
    path = _existing(path)
    kind = _kind(path)
    if kind in ("csv", "parquet"):
        frame = _read_frame(path, kind, header)
        return _match(frame, n_features, features, target, must_have_target)
    data = _read_npz(path, target, None) if kind == "npz" else _read_libsvm(path, None, first_index, n_features)
    if must_have_target and data.y is None:
        raise ValueError(f"{path} has no array {target!r}")
    if data.X.shape[1] != n_features:
        raise ValueError(f"{path} has {data.X.shape[1]} features, but the model has {n_features}")
    return data


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
    """The first line has a word where the second has a number, or has words only."""
    words = [not (_is_number(cell) or cell.lower() in _MISSING) for cell in first]
    if second is not None and any(
        word and (_is_number(below) or not below) for word, below in zip(words, second, strict=False)
    ):
        return True
    return all(words)


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


def _from_frame(frame, target, weights, drop) -> Data:
    place = frame.position(-1 if target is None else target, "target")
    dropped = {frame.position(name, "drop") for name in drop}
    if place in dropped:
        raise ValueError(f"drop names {frame.names[place]!r}, which is the target; name another with target")
    left_out = {place, *dropped}
    sample_weight = None
    if weights is not None and weights in frame.names:
        column = frame.names.index(weights)
        left_out.add(column)
        sample_weight = frame.numbers(column)
    columns = [j for j in range(len(frame.names)) if j not in left_out]
    if not columns:
        raise ValueError(f"{frame.path} has no feature columns besides the target {frame.names[place]!r}")
    names = [frame.names[j] for j in columns]
    return Data(frame.matrix(columns), frame.labels(place), names, frame.header, frame.names[place], sample_weight)


def _match(frame, n_features, features, target, must_have_target) -> Data:
    """The model's features among the columns of a frame, and the target if it is there."""
    place = None
    if must_have_target:
        place = frame.position(target, "target")
    elif target is not None and target in frame.names and target not in (features or ()):
        place = frame.names.index(target)
    if features is not None and set(features) <= set(frame.names):
        columns = [frame.names.index(name) for name in features]
    elif features is None or not frame.header:
        if len(frame.names) == n_features and not must_have_target:
            place = None
        columns = [j for j in range(len(frame.names)) if j != place]
        if features is None and len(columns) == n_features + 1 and place is None:
            columns, place = columns[:-1], columns[-1]
        if len(columns) != n_features:
            raise ValueError(f"{frame.path} has {len(columns)} feature columns, but the model has {n_features}")
    else:
        missing = [name for name in features if name not in frame.names]
        raise ValueError(
            f"{frame.path} has {n_features - len(missing)} of the model's {n_features} features; "
            f"missing: {_listed(missing)}"
        )
    y = None if place is None else frame.labels(place)
    return Data(frame.matrix(columns), y, features, frame.header, target)


# -- matrices: LIBSVM and npz -----------------------------------------------------------------------


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
    if np.all(y == np.floor(y)) and np.abs(y).max() < 2**53:
        y = y.astype(np.int64)  # so that labels print as 1, not 1.0
    return Data(X, y, first_index=first_index)


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


def _read_npz(path, target, weights) -> Data:
    arrays = _npz_arrays(path)
    X = _npz_matrix(path, arrays)
    name = "y" if target is None else str(target)
    y = arrays.get(name)
    if y is not None and y.shape != X.shape[:1]:
        raise ValueError(f"{path}: {name} has shape {y.shape}, but X has {X.shape[0]} rows")
    if y is not None and np.issubdtype(y.dtype, np.floating) and not np.isfinite(y).all():
        row = np.flatnonzero(~np.isfinite(y))[0]
        raise ValueError(f"{path}: {name}[{row}] is {y[row]}; targets must be finite")
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        bad = sp.coo_array(X) if sp.issparse(X) else None
        row, column = (
            np.argwhere(~np.isfinite(X))[0] if bad is None else np.transpose(bad.coords)[~np.isfinite(bad.data)][0]
        )
        raise ValueError(f"{path}: X[{row}, {column}] is not a finite number")
    names = arrays.get("feature_names")
    return Data(
        X, y, None if names is None else [str(n) for n in names], names is not None, name,
        arrays.get(weights),
    )  # fmt: skip


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


# -- groups, edges, weights -------------------------------------------------------------------------


def read_groups(path, p: int, features: list[str] | None = None) -> tuple[list[np.ndarray], list[str]]:
    """Groups of features.

    Parameters
    ----------
    path : JSON ({"name": [features, ...], ...} or a list of lists) or CSV (group,feature on every line)
    p : int
        Number of features.
    features : list of str, optional
        Their names.

    Returns
    -------
    groups : list of index arrays
    names : list of str
    """
    path = _existing(path)
    find = _Finder(p, features)
    read = _groups_from_json if Path(path).suffix.lower() == ".json" else _groups_from_csv
    members = read(path, find)
    if not members:
        raise ValueError(f"{path} holds no groups")
    return [np.array(group, dtype=np.int64) for group in members.values()], list(members)


def _groups_from_json(path, find) -> dict[str, list[int]]:
    content = _read_json(path)
    if isinstance(content, list):
        content = {str(k): group for k, group in enumerate(content)}
    if not isinstance(content, dict):
        raise ValueError(f'{path} must hold {{"name": [features, ...]}} or a list of lists of features')
    members = {}
    for name, group in content.items():
        where = f"{path}, group {name!r}"
        if not isinstance(group, list) or not group:
            raise ValueError(f"{where}: expected a list of features, found {json.dumps(group)[:40]}")
        members[name] = []
        for k, feature in enumerate(group):
            _add(members[name], find(feature, f"{where}, entry {k}"), feature, where)
    return members


def _groups_from_csv(path, find) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for k, (line, cells) in enumerate(_cells(path, _separator(path))):
        where = f"{path}, line {line}"
        if len(cells) != 2:
            raise ValueError(f"{where}: expected group,feature, found {len(cells)} cells")
        if k == 0 and cells[1].lower() in _GROUP_HEADERS and not find.knows(cells[1]):
            continue
        _add(members.setdefault(cells[0], []), find(cells[1], where), cells[1], f"{where}, group {cells[0]!r}")
    return members


def _add(group, index, feature, where):
    if index in group:
        raise ValueError(f"{where}: feature {feature} stands in it twice")
    group.append(index)


def read_edges(path, p: int, features: list[str] | None = None) -> tuple[np.ndarray, np.ndarray | None]:
    """Edges between features, each with or without a weight.

    Parameters
    ----------
    path : JSON (a list of [i, j] or [i, j, weight]) or CSV (i,j or i,j,weight on every line)
    p, features : as in `read_groups`

    Returns
    -------
    edges : array (m, 2)
    weights : array (m,) or None
    """
    path = _existing(path)
    find = _Finder(p, features)
    edges, weights = [], []
    for where, cells in _edge_cells(path, find):
        if len(cells) not in (2, 3):
            raise ValueError(f"{where}: expected i,j or i,j,weight, found {len(cells)} entries")
        if edges and (len(cells) == 3) != bool(weights):
            raise ValueError(f"{where}: either every edge has a weight or none")
        i, j = (find(cell, where) for cell in cells[:2])
        if i == j:
            raise ValueError(f"{where}: the edge joins feature {cells[0]} to itself")
        edges.append((i, j))
        weights.extend(_weight(cell, where) for cell in cells[2:])
    if not edges:
        raise ValueError(f"{path} holds no edges")
    return np.array(edges, dtype=np.int64), np.array(weights) if weights else None


def _edge_cells(path, find) -> Iterator[tuple[str, list]]:
    if Path(path).suffix.lower() == ".json":
        content = _read_json(path)
        if not isinstance(content, list):
            raise ValueError(f"{path} must hold a list of [i, j] or [i, j, weight]")
        for k, edge in enumerate(content):
            if not isinstance(edge, list):
                raise ValueError(f"{path}, edge {k}: expected [i, j] or [i, j, weight], found {json.dumps(edge)[:40]}")
            yield f"{path}, edge {k}", edge
        return
    for k, (line, cells) in enumerate(_cells(path, _separator(path))):
        header = k == 0 and all(cell.lower() in _EDGE_HEADERS and not find.knows(cell) for cell in cells[:2])
        if not header:
            yield f"{path}, line {line}", cells


def _weight(cell, where) -> float:
    if isinstance(cell, bool) or not isinstance(cell, (str, int, float)) or not _is_finite(cell):
        raise ValueError(f"{where}: the weight {cell!r} is not a finite number")
    return float(cell)


class _Finder:
    """Features by name or number."""

    def __init__(self, p, features):
        self.p = p
        self.numbers = {} if features is None else {name: j for j, name in enumerate(features)}

    def knows(self, word) -> bool:
        return word in self.numbers

    def __call__(self, feature, where) -> int:
        if isinstance(feature, str) and feature in self.numbers:
            return self.numbers[feature]
        if isinstance(feature, bool) or not isinstance(feature, (str, int)) or not _is_whole(feature):
            close = difflib.get_close_matches(str(feature), self.numbers, 1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            raise ValueError(f"{where}: {feature!r} is neither a feature's name nor its number{hint}")
        number = int(feature)
        if not 0 <= number < self.p:
            raise ValueError(f"{where}: feature {number} does not exist; features are numbered 0 to {self.p - 1}")
        return number


def _is_whole(feature) -> bool:
    try:
        int(feature)
    except ValueError:
        return False
    return True


def read_vector(path) -> np.ndarray:
    """Numbers, one per line."""
    path = _existing(path)
    values = []
    for line, cells in _cells(path, ","):
        if len(cells) != 1 or not _is_finite(cells[0]):
            raise ValueError(f"{path}, line {line}: expected one finite number, found {','.join(cells)[:40]!r}")
        values.append(float(cells[0]))
    return np.array(values)


def _read_json(path):
    def no_repeats(pairs):
        content = {}
        for name, value in pairs:
            if name in content:
                raise ValueError(f"{path} names {name!r} twice")
            content[name] = value
        return content

    try:
        with open(path, encoding="utf-8-sig") as file:
            return json.load(file, object_pairs_hook=no_repeats)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not text in UTF-8") from error


# -- small things -----------------------------------------------------------------------------------


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
