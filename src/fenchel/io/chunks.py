"""Files of any format as chunks of rows, one after another, each small enough for memory."""

from __future__ import annotations

import dataclasses
import functools
import io
import itertools
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validate import AnyArray, Array
from ..data.streamed import PARTITION, Chunk, rows_together
from .arrays import _checked_targets
from .frames import _Frame, _from_frame, _header_names
from .libsvm import _libsvm_fault
from .text import _cells, _exact_floats, _first_line, _looks_like_header, _pandas, _separator


@dataclasses.dataclass
class Columns:
    """Which columns, or arrays, are what."""

    targets: list[Any]
    weights: str | None
    offset: str | None
    task: str | None
    drop: Sequence[int | str]
    header: bool | None
    dtype: str | None

    names: list[str] | None = None  # of the features, once they are known
    named: bool = False
    target: Any = None

    def chunk(self, frame: _Frame, path: str, first: int, dtype: str | None = None) -> Chunk:
        """A part of a table."""
        drop, offset = list(self.drop), None
        if self.offset is not None and self.offset in frame.names:
            offset = frame.numbers(frame.names.index(self.offset))
            drop.append(self.offset)
        data = _from_frame(frame, self.targets, self.weights, drop, self.task)
        if self.names is not None and self.names != data.features:
            raise ValueError(f"{path} has other feature columns than the first file")
        self.names, self.named, self.target = data.features, data.named, data.target
        kind = dtype or self.dtype
        X = data.X if kind is None else data.X.astype(kind)
        assert data.y is not None
        return Chunk(X, data.y, data.weights, offset, data.task, path, first)


def parquet_chunks(path: str, columns: Columns) -> Iterator[Chunk]:
    """By batches within row groups; a whole file is never in memory."""
    try:
        import pyarrow.parquet as pq
    except ImportError:
        raise ImportError(f"reading {path} needs pyarrow: pip install 'fenchel[io]'") from None
    _pandas(path)
    try:
        file = pq.ParquetFile(path)
    except Exception as error:  # pyarrow has its own family of errors
        raise ValueError(f"{path} is not a Parquet file ({_first_line(error)})") from error
    with file:
        names, first = [str(name) for name in file.schema_arrow.names], 0
        rows = rows_together(8.0 * len(names))
        single = all(str(field.type) == "float" for field in file.schema_arrow if field.name not in _others(columns))
        kind = columns.dtype or ("float32" if single else None)
        try:
            for batch in file.iter_batches(batch_size=rows):
                table = batch.to_pandas()
                frame = _Frame(path, table, names, True, functools.partial(_counted, first), piece=True)
                yield columns.chunk(frame, path, first, kind)
                first += len(table)
        except (OSError, RuntimeError) as error:
            raise ValueError(f"{path} cannot be read beyond row {first} ({_first_line(error)})") from error


def _others(columns: Columns) -> set[str]:
    """Columns that are no features, as far as names tell."""
    return {str(one) for one in (*columns.targets, columns.weights, columns.offset, columns.task, *columns.drop)}


def csv_chunks(path: str, columns: Columns) -> Iterator[Chunk]:
    """By lines, through pandas."""
    pd = _pandas(path)
    separator = _separator(path)
    start = list(itertools.islice(_cells(path, separator), 2))
    if not start:
        raise ValueError(f"{path} is empty")
    (line, cells), second = start[0], start[1][1] if len(start) > 1 else None
    header = _looks_like_header(cells, second) if columns.header is None else columns.header
    names = _header_names(path, line, cells) if header else [str(j) for j in range(len(cells))]

    def place(row: int) -> str:
        number, _ = next(itertools.islice(_cells(path, separator), int(row) + header, None))
        return f"line {number}"

    first = 0
    try:
        with pd.read_csv(
            path, sep=separator, header=0 if header else None, names=names, index_col=False, encoding="utf-8-sig",
            skipinitialspace=True, chunksize=rows_together(8.0 * len(names)), **_exact_floats(pd),
        ) as tables:  # fmt: skip
            for table in tables:
                start_row = first
                frame = _Frame(path, table, names, header, lambda row, at=start_row: place(at + row), piece=True)  # type: ignore[misc]
                yield columns.chunk(frame, path, first)
                first += len(table)
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        for number, cells in _cells(path, separator):
            if len(cells) > len(names):
                raise ValueError(
                    f"{path}, line {number}: {len(cells)} cells, but the first line has {len(names)}"
                ) from error
        raise ValueError(f"{path} is not a CSV file ({_first_line(error)})") from error


def libsvm_chunks(path: str, columns: Columns) -> Iterator[Chunk]:
    """By ranges of bytes that end where a line does."""
    from sklearn.datasets import load_svmlight_file

    first = 0
    with open(path, "rb") as file:
        while True:
            text = file.read(PARTITION)
            if not text:
                return
            text += file.readline()
            try:
                X, y = load_svmlight_file(io.BytesIO(text), zero_based=True)
                good = np.isfinite(y).all() and np.isfinite(X.data).all()
            except (ValueError, OverflowError, IndexError) as error:
                line, what = _libsvm_fault(path)
                raise ValueError(f"{path}{line}: {what or _first_line(error)}") from error
            if not good:
                line, what = _libsvm_fault(path)
                raise ValueError(f"{path}{line}: {what}")
            if y.size:
                X = X if columns.dtype is None else X.astype(columns.dtype)
                yield Chunk(sp.csr_array(X), y, source=path, first=first)
            first += y.size


def npy_chunks(path: str, columns: Columns) -> Iterator[Chunk]:
    """Of a matrix that does not lie as it should: other numbers, columns first, or with its targets inside."""
    X = np.load(path, mmap_mode="r", allow_pickle=False)
    for target in columns.targets:
        if not -X.shape[1] <= int(target) < X.shape[1]:
            raise ValueError(f"target is {target}, but {path} has columns 0 to {X.shape[1] - 1}")
    places = [int(target) % X.shape[1] for target in columns.targets or [-1]]
    columns.target = [str(k) for k in places] if len(places) > 1 else str(places[0])
    rows, kind = rows_together(8.0 * X.shape[1]), columns.dtype or (X.dtype if X.dtype.char in "fd" else float)
    for first in range(0, len(X), rows):
        part = np.array(X[first : first + rows])
        y = _checked_targets(part[:, places], f"{path}: the target")
        yield Chunk(np.ascontiguousarray(np.delete(part, places, axis=1), dtype=kind), y, source=path, first=first)


def plain_chunks(path: str, columns: Columns, vectors: dict[str, Any]) -> Iterator[Chunk]:
    """Of an npy matrix of other numbers, or with columns first, whose targets lie elsewhere."""
    X = np.load(path, mmap_mode="r", allow_pickle=False)
    rows, kind = rows_together(8.0 * X.shape[1]), columns.dtype or (X.dtype if X.dtype.char in "fd" else float)
    for first in range(0, len(X), rows):
        part = slice(first, first + rows)
        others: dict[str, Any] = {name: None if one is None else one.cut(part) for name, one in vectors.items()}
        target = others.pop("target")
        yield Chunk(np.ascontiguousarray(X[part], dtype=kind), target, source=path, first=first, **others)


def npz_chunks(path: str, columns: Columns) -> Iterator[Chunk]:
    """Arrays of an npz file, read as streams; a CSR matrix as scipy saves it, or a dense X."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError) as error:
        raise ValueError(f"{path} is not an npz file ({_first_line(error)})") from error
    with archive:
        first = 0
        try:
            for chunk in _archived(archive, path, columns):
                yield chunk
                first += len(chunk.target)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{path} cannot be read beyond row {first} ({_first_line(error)})") from error


def _archived(archive: zipfile.ZipFile, path: str, columns: Columns) -> Iterator[Chunk]:
    names = {name.removesuffix(".npy") for name in archive.namelist()}
    target = str(columns.targets[0]) if columns.targets else "y"
    if target not in names:
        raise ValueError(f"{path} has no array {target!r}; it has {', '.join(sorted(names))}")
    y, weight, offset, task = (
        _array(archive, name) if name is not None and name in names else None
        for name in (target, columns.weights, columns.offset, columns.task)
    )
    assert y is not None
    columns.target = target
    if "feature_names" in names:
        columns.names, columns.named = [str(one) for one in _array(archive, "feature_names")], True
    for first, X in _dense(archive, path) if "X" in names else _sparse(archive, path, names):
        part = slice(first, first + X.shape[0])
        if len(y) < first + X.shape[0]:
            raise ValueError(f"{path}: {target} has {len(y)} entries, but X has more rows")
        cut: list[Any] = [None if one is None else one[part] for one in (weight, offset, task)]
        X = X if columns.dtype is None else X.astype(columns.dtype)
        checked = _checked_targets(y[part], f"{path}: {target}")
        yield Chunk(X, checked, cut[0], cut[1], cut[2], path, first)


def _array(archive: zipfile.ZipFile, name: str) -> AnyArray:
    with archive.open(f"{name}.npy") as file:
        out: AnyArray = np.lib.format.read_array(file, allow_pickle=False)
    return out


class _Stream:
    """The numbers of an array in an archive, from the first on."""

    def __init__(self, archive: zipfile.ZipFile, name: str) -> None:
        self.file = archive.open(f"{name}.npy")
        version = np.lib.format.read_magic(self.file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        self.shape, self.by_column, self.dtype = read(self.file)

    def take(self, count: int) -> AnyArray:
        parts, size = [], count * self.dtype.itemsize
        while size:
            part = self.file.read(size)
            if not part:
                raise ValueError("an array of the archive ends too early")
            parts.append(part)
            size -= len(part)
        return np.frombuffer(b"".join(parts), dtype=self.dtype)


def _dense(archive: zipfile.ZipFile, path: str) -> Iterator[tuple[int, Array]]:
    stream = _Stream(archive, "X")
    if len(stream.shape) != 2 or stream.dtype.kind not in "biuf":
        raise ValueError(f"{path}: X has dtype {stream.dtype} and shape {stream.shape}; it must be a numeric matrix")
    n, p = stream.shape
    if stream.by_column:
        raise ValueError(f"{path}: X is stored by columns; save np.ascontiguousarray(X), or an npy file")
    kind = stream.dtype if stream.dtype.char in "fd" else np.dtype(float)
    rows = rows_together(8.0 * p)
    for first in range(0, n, rows):
        count = min(rows, n - first)
        yield first, stream.take(count * p).reshape(count, p).astype(kind)


def _sparse(archive: zipfile.ZipFile, path: str, names: set[str]) -> Iterator[tuple[int, Any]]:
    missing = {"data", "indices", "indptr", "shape"} - names
    if missing:
        raise ValueError(f"{path} has neither X nor the arrays of a CSR matrix; {sorted(missing)[0]!r} is missing")
    indptr, shape = _array(archive, "indptr").astype(np.int64), _array(archive, "shape")
    data, indices = _Stream(archive, "data"), _Stream(archive, "indices")
    n, p = int(shape[0]), int(shape[1])
    if indptr.size != n + 1:
        raise ValueError(f"{path}: indptr has {indptr.size} entries; a CSR matrix of {n} rows has {n + 1}")
    kind = data.dtype if data.dtype.char in "fd" else np.dtype(float)
    rows = rows_together(12.0 * max(int(indptr[-1]) / max(n, 1), 1.0))
    for first in range(0, n, rows):
        last = min(first + rows, n)
        count = int(indptr[last] - indptr[first])
        values, places = data.take(count).astype(kind), indices.take(count)
        if places.size and (places.min() < 0 or places.max() >= p):
            raise ValueError(f"{path}: indices reach {places.max()}, but the matrix has {p} columns")
        yield first, sp.csr_array((values, places, indptr[first : last + 1] - indptr[first]), shape=(last - first, p))


def _counted(first: int, row: int) -> str:
    return f"row {first + row} (counted from 0)"
