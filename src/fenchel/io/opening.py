"""Rows that stay on the disk: `open_data`."""

from __future__ import annotations

import dataclasses
import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.streamed import AHEAD, PARTITION, Chunk, FileState, NpyReader, Reader, Streamed, Vectors, rows_together
from ..foundation.files import regular
from .arrays import _npy_array, _targets_file
from .chunks import Columns, csv_chunks, libsvm_chunks, npy_chunks, npz_chunks, parquet_chunks, plain_chunks
from .files import _kind
from .shards import cache_folder, key_of, sharded

_UNITS = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_LEAST = (2 + AHEAD) * PARTITION  # bytes: the partition that is worked on, the one that is read, and those that wait
_READERS = {"parquet": parquet_chunks, "csv": csv_chunks, "libsvm": libsvm_chunks, "npz": npz_chunks}


def open_data(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    target: int | str | Sequence[int | str] | None = None,
    weights: str | None = None,
    offset: str | None = None,
    task: str | None = None,
    drop: Sequence[int | str] = (),
    header: bool | None = None,
    memory: int | float | str | None = "1GB",
    dtype: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Streamed:
    """Open rows that stay on the disk, for fits of data larger than memory.

    What is returned stands in place of X and y in :class:`fenchel.Problem`, the estimators, :func:`fenchel.path` and
    cross-validation. The data is read once for every round of the solver, and an answer takes about ten rounds.

    Parameters
    ----------
    path : path, pattern such as ``"rows/*.parquet"``, folder, or list of paths
        LIBSVM, CSV, Parquet, npz or npy files, all of one kind, in the order of their names. An npy matrix in C order
        of float32 or float64 is read as it lies; anything else is converted once, to shards in `cache_dir`.
    target : str or int, or list of them, optional
        Name or position of the target column, the last by default; in an npz the name of its array ("y"); for npy files
        also a file, or a pattern that matches as many.
    weights, offset, task : str, optional
        A column (or npz array), else a file with a number (a name, for tasks) per row. An offset is added to the score
        of its row.
    drop : sequence of str or int
        Columns to leave out.
    header : bool, optional
        Whether a CSV begins with a line of names.
    memory : number of bytes, or a text such as "2GB"
        What a fit may take for rows: a sample of them, and the few that are read ahead. More memory means a larger
        sample, and fewer rounds.
    dtype : {"float32", "float64"}, optional
        Of the shards; by default that of the files.
    cache_dir : path, optional
        Of the shards; FENCHEL_CACHE or a folder of the user's cache by default. They are used again as long as the
        files have the same size and time.

    Returns
    -------
    Streamed
        A pool of rows.

    Examples
    --------
    >>> import numpy as np, tempfile, os, fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((5000, 20))
    >>> folder = tempfile.mkdtemp()
    >>> np.save(os.path.join(folder, "X.npy"), X)
    >>> np.save(os.path.join(folder, "y.npy"), X[:, 0] - X[:, 1])
    >>> rows = fl.open_data(os.path.join(folder, "X.npy"), target=os.path.join(folder, "y.npy"), memory="60MB")
    >>> result = fl.solve(fl.Problem(rows, loss="squared", penalty=fl.L1(), alpha=0.1))
    >>> bool(result.relative_gap < 1e-6), np.flatnonzero(result.coef)
    (True, array([0, 1]))
    """
    paths = _paths(path)
    kinds = {_kind(one) for one in paths}
    if len(kinds) > 1:
        raise ValueError(f"{path} matches files of several kinds: {', '.join(sorted(kinds))}")
    if dtype not in (None, "float32", "float64"):
        raise ValueError(f"dtype is {dtype!r}; it must be 'float32' or 'float64'")
    room = None if memory is None else as_bytes(memory)
    if room is not None and room < _LEAST:
        raise ValueError(f"memory is {memory!r}; reading ahead alone takes {_LEAST / 1e6:.0f}MB, so give at least that")
    targets: list[Any] = [] if target is None else list(target) if isinstance(target, (list, tuple)) else [target]
    columns = Columns(targets, weights, offset, task, tuple(drop), header, dtype)
    kind = kinds.pop()
    if drop and kind not in ("csv", "parquet"):
        raise ValueError(f"{paths[0]} has no named columns; drop is for CSV and Parquet files")
    if kind == "libsvm" and targets:
        raise ValueError(
            f"target is {target!r}, but in the LIBSVM file {paths[0]} the target is the first entry of a line"
        )
    opened = _Opened(paths, kind, columns, cache_folder(cache_dir), room, str(path))
    return opened.npy() if kind == "npy" else opened.shards(_READERS[kind])


def as_bytes(memory: int | float | str) -> float:
    """A number of bytes from "2GB", "500M" or a number."""
    if isinstance(memory, (int, float)) and not isinstance(memory, bool):
        value = float(memory)
    else:
        found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(i?B)?\s*", str(memory), re.IGNORECASE)
        try:
            value = float(found[1]) * _UNITS[found[2].upper()] if found else np.nan
        except ValueError:
            value = np.nan
    if not (np.isfinite(value) and value > 0):
        raise ValueError(f"memory is {memory!r}; write a number of bytes, or such as '2GB' or '500MB'")
    return value


def _paths(path: Any) -> list[str]:
    if not isinstance(path, (str, os.PathLike)):
        return [str(regular(one)) for one in path]
    text = os.fspath(path)
    if os.path.isdir(text):
        found = sorted(
            str(one) for one in Path(text).iterdir() if one.is_file() and not one.name.startswith((".", "_"))
        )
        if not found:
            raise ValueError(f"the folder {text} holds no files")
        return found
    if os.path.isfile(text) or not glob.has_magic(text):
        return [str(regular(text))]
    found = sorted(glob.glob(text))
    if not found:
        raise ValueError(f"no file matches {text!r}")
    return found


@dataclasses.dataclass
class _Opened:
    """Files of one kind."""

    paths: list[str]
    kind: str
    columns: Columns
    folder: Path
    memory: float | None
    title: str
    task_names: list[Any] | None = None
    vectors: dict[str, Any] = dataclasses.field(default_factory=dict)  # from files of their own

    def _pool(self, readers: Sequence[Reader], tasks: Any = None, first_index: int | None = None) -> Streamed:
        columns = self.columns
        return Streamed(
            readers, self.memory, columns.names, tasks, first_index, columns.target, columns.named, self.title
        )

    def shards(self, chunks: Any) -> Streamed:
        """Through converted copies."""
        columns, states = self.columns, [FileState.of(path) for path in self.paths]
        others = {name: getattr(columns, name) for name in ("weights", "offset", "task")}
        states += [FileState.of(str(one)) for one in others.values() if one is not None and os.path.isfile(one)]
        settings = dataclasses.asdict(columns)

        def make() -> Iterator[Chunk]:
            first = 0
            for path in self.paths:
                for chunk in chunks(path, columns):
                    self._fill(chunk, first)
                    first += len(chunk.target)
                    yield chunk

        readers, known = sharded(self.folder, key_of(states, settings), make, states, self.kind == "libsvm")
        self._remember(self.folder / key_of(states, settings))
        return self._pool(readers, known["tasks"], known["shift"] if self.kind == "libsvm" else None)

    def _remember(self, home: Path) -> None:
        """Names of columns: they are seen when files are converted, and wanted when shards are used again."""
        import json

        columns, note = self.columns, home / "columns.json"
        if columns.target is not None or columns.names is not None:
            note.write_text(json.dumps([columns.names, columns.named, columns.target]))
        elif note.is_file():
            columns.names, columns.named, columns.target = json.loads(note.read_text())

    def _fill(self, chunk: Chunk, first: int) -> None:
        """What stands in files of its own."""
        part = slice(first, first + len(chunk.target))
        for name, own in (("weights", "weight"), ("offset", "offset"), ("task", "task")):
            given = getattr(self.columns, name)
            if given is not None and getattr(chunk, own) is None:
                values = self._vector(name, given)[part]
                if len(values) != len(chunk.target):
                    raise ValueError(f"{given} ends before row {part.stop}; {self.title} has more rows")
                setattr(chunk, own, values)

    def _vector(self, name: str, given: str) -> Any:
        if name not in self.vectors:
            if not os.path.isfile(given):
                raise ValueError(f"{name} is {given!r}, which is neither a column of {self.paths[0]} nor a file")
            self.vectors[name] = _whole_vector(given)
        return self.vectors[name]

    def npy(self) -> Streamed:
        """As the files lie, where they lie well."""
        files = self._target_files()
        if files is None:
            return self.shards(npy_chunks)
        columns = self.columns
        readers: list[Reader] = []
        columns.target = str(columns.targets[0])
        heads = [_npy_array(path) for path in self.paths]
        for path, head in zip(self.paths, heads, strict=True):
            if head.ndim != 2 or head.dtype.kind not in "biuf":
                raise ValueError(f"{path} has dtype {head.dtype} and shape {head.shape}; it must be a numeric matrix")
        sizes = [len(head) for head in heads]
        vectors = self._beside(files, sizes)
        if not all(_lies_well(head, columns.dtype) for head in heads):
            own = iter(vectors)
            return self.shards(lambda path, columns: plain_chunks(path, columns, next(own)))
        for path, head, beside in zip(self.paths, heads, vectors, strict=True):
            rows, state = rows_together(head.shape[1] * head.itemsize), FileState.of(path)
            begin = state.size - head.nbytes
            for first in range(0, len(head), rows):
                count = min(rows, len(head) - first)
                readers.append(
                    NpyReader(len(readers), state, begin, head.dtype.str, head.shape[1], first, count, **beside)
                )
        return self._pool(readers, self.task_names)

    def _target_files(self) -> list[str] | None:
        """The files of the targets; None where they are columns."""
        targets = self.columns.targets
        if len(targets) != 1 or isinstance(targets[0], int):
            return None
        text = str(targets[0])
        found = [text] if os.path.isfile(text) else sorted(glob.glob(text)) if glob.has_magic(text) else []
        if not found:
            if text.lstrip("-").isdigit():
                return None
            raise ValueError(f"target is {text!r}, which is neither a file nor a column's number")
        if len(found) != len(self.paths):
            raise ValueError(f"target {text!r} matches {len(found)} files, but there are {len(self.paths)} of rows")
        return found

    def _beside(self, files: list[str], sizes: list[int]) -> list[dict[str, Any]]:
        """What belongs to the rows of every file."""
        columns, out, first = self.columns, [], 0
        for path, file, size in zip(self.paths, files, sizes, strict=True):
            one: dict[str, Any] = {"target": _target_vectors(file, path, size)}
            part = slice(first, first + size)
            for name, own in (("weights", "weight"), ("offset", "offset"), ("task", "task")):
                given = getattr(columns, name)
                if given is not None:
                    values = self._vector(name, given)
                    if len(values) != sum(sizes):
                        raise ValueError(f"{given} has {len(values)} entries, but {self.title} has {sum(sizes)} rows")
                    if name == "task":
                        names, values = np.unique(values, return_inverse=True)
                        self.task_names = names.tolist()
                    one[own] = Vectors(values[part])
            out.append(one)
            first += size
        return out


def _lies_well(head: Any, dtype: str | None) -> bool:
    """Whether rows can be read as they lie."""
    wanted = head.dtype.char in "fd" and head.dtype.isnative and bool(head.flags.c_contiguous)
    return wanted and dtype in (None, head.dtype.name)


def _whole_vector(path: str) -> Any:
    if str(path).endswith(".npy"):
        return np.load(path, allow_pickle=False)
    with open(path, encoding="utf-8-sig") as file:
        words = [line.strip() for line in file]
    while words and not words[-1]:
        words.pop()
    try:
        return np.array([float(word) for word in words])
    except ValueError:
        return np.array(words)


def _target_vectors(file: str, path: str, rows: int) -> Vectors:
    """The targets of a file of rows: parts of an npy file are read when they are wanted, others at once."""
    if file.endswith(".npy"):
        found = _npy_array(file)
        if len(found) != rows or found.ndim not in (1, 2):
            raise ValueError(f"{file} has shape {found.shape}, but {path} has {rows} rows")
        return Vectors(path=file)
    return Vectors(_targets_file(file, path, rows))
