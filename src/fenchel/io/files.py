"""Reading data from files, and what is known about its rows: targets, weights, tasks, offsets.

Formats: LIBSVM (``.svm``, ``.libsvm``, ``.txt`` or no extension), CSV (``.csv``, ``.tsv``), Parquet, npz and npy. A
file that does not parse raises a ValueError that names the file and the first place that is wrong.
:mod:`fenchel.io.structure_files` reads groups, edges, trees, masks and weights of features.

Features are numbered from 0, the target not counted; where the columns have names, a name wins over a
number.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._validate import AnyArray, Array
from ..foundation.files import regular, text_lines
from .arrays import _SURELY, _npy_like, _read_npy, _read_npz
from .coding import Coding, check_options
from .contents import Data, _some_weight
from .frames import _from_frame, _match, _read_frame
from .libsvm import _read_libsvm
from .offsets import from_file
from .text import _numbered

_KINDS = {
    ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm", ".csv": "csv", ".tsv": "csv",
    ".parquet": "parquet", ".pq": "parquet", ".npz": "npz", ".npy": "npy",
}  # fmt: skip


def read_data(
    path: str | Path,
    *,
    target: int | str | Sequence[int | str] | None = None,
    weights: str | None = None,
    drop: Sequence[int | str] | None = (),
    header: bool | None = None,
    task: str | None = None,
    offset: str | None = None,
    max_features: int | None = None,
    together: str | None = None,
    one_hot: str | None = None,
    missing: str | None = None,
) -> Data:
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
    offset : str, optional
        A column (or npz array) with what is added to the scores, else a file with one number per line; log(name) for
        the logarithms of what stands there.
    max_features : int, optional
        The most columns that sparse data may have. By default a million, or a hundred for every entry where that is
        more: a wrong index in a small file would otherwise take all memory.
    together : str, optional
        A column of labels, else a file with one per line: rows of one label stay in one fold.
    one_hot : {"auto"}, optional
        Make a column of 0 and 1 for every word of the columns of a table that hold words.
    missing : {"mean", "drop"}, optional
        Put the mean of its column where a number is missing (a missing word is a word of its own), or leave out the
        rows that miss something.

    Returns
    -------
    Data
    """
    path = regular(path)
    kind = _kind(path)
    targets: list[Any] = [] if target is None else list(target) if isinstance(target, (list, tuple)) else [target]
    check_options(one_hot, missing)
    if kind in ("csv", "parquet"):
        data = _from_frame(
            _read_frame(path, kind, header), targets, weights, drop or (), task, offset, together, one_hot, missing
        )
    else:
        if one_hot is not None or missing is not None:
            raise ValueError(f"{path} is no table; --one-hot and --missing are for CSV and Parquet files")
        if drop:
            raise ValueError(f"{path} has no named columns; drop is for CSV and Parquet files")
        if len(targets) > 1 and kind != "npy":
            raise ValueError(
                f"{len(targets)} targets are named, but {path} has no columns for them; an npz file may hold y with "
                "several columns"
            )
        one = targets[0] if targets else None
        if kind == "npz":
            data = _read_npz(path, one, weights, task, offset, max_features)
        else:
            data = _read_npy(path, targets) if kind == "npy" else _read_libsvm(path, one, max_features=max_features)
        if data.y is None:
            raise ValueError(f"{path} has no array {one or 'y'!r}; it needs one with the targets")
    kept = np.ones(data.X.shape[0], dtype=bool) if data.kept is None else data.kept  # files tell of all rows
    n = len(kept)
    if weights is not None and data.weights is None:
        data.weights = _weights_file(weights, path, n)[kept]
    if task is not None and data.task is None:
        data.task = _tasks_file(task, path, n)[kept]
    if offset is not None and data.offset is None:
        data.offset = from_file(offset, path, n)[kept]
    if together is not None and data.together is None:
        data.together = _tasks_file(together, path, n, "--cv-groups")[kept]
    return data


def read_like(
    path: str | Path,
    *,
    n_features: int,
    features: list[str] | None = None,
    target: list[str] | str | None = None,
    first_index: int | None = None,
    must_have_target: bool = False,
    header: bool | None = None,
    task: str | None = None,
    offset: str | None = None,
    coding: Coding | None = None,
) -> Data:
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
    header, task, offset : as in `read_data`
    coding : what the model makes of words and of missing values, if it does so
    """
    path = regular(path)
    kind = _kind(path)
    targets = [] if target is None else [target] if isinstance(target, str) else list(target)
    if kind in ("csv", "parquet"):
        data = _match(
            _read_frame(path, kind, header), n_features, features, targets, must_have_target, task, offset, coding
        )
    elif kind == "npy":
        data = _npy_like(path, n_features, targets, must_have_target)
    elif kind == "npz":
        data = _read_npz(path, targets[0] if targets else None, None, task, offset, max(n_features, _SURELY))
    else:
        data = _read_libsvm(path, None, first_index, n_features)
    if must_have_target and data.y is None:
        raise ValueError(f"{path} has no array {targets[0]!r}")
    if data.X.shape[1] != n_features:
        raise ValueError(f"{path} has {data.X.shape[1]} features, but the model has {n_features}")
    if task is not None and data.task is None:
        data.task = _tasks_file(task, path, data.X.shape[0])
    if offset is not None and data.offset is None:
        data.offset = from_file(offset, path, data.X.shape[0])
    return data


def _weights_file(weights: str, path: str | Path, rows: int) -> Array:
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


def _tasks_file(task: str, path: str | Path, rows: int, what: str = "task") -> AnyArray:
    if not os.path.isfile(task):
        raise ValueError(f"{what} is {task!r}, which is neither a column of {path} nor a file")
    names = [line.strip() for _, line in text_lines(task)]
    while names and not names[-1]:
        names.pop()
    if "" in names:
        raise ValueError(f"{task}, line {names.index('') + 1}: the {what} has no name")
    if len(names) != rows:
        raise ValueError(f"{task} names {len(names)} tasks, but {path} has {rows} rows")
    return np.array(names)


def _kind(path: str | Path) -> str:
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
