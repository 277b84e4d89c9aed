"""Rows on a disk: partitions that are read one after another, by a thread that is one partition ahead."""

from __future__ import annotations

import dataclasses
import errno
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, cast

import numpy as np

from .._validate import AnyArray, Array, Index
from .partitions import Partition
from .pools import Gathering, Outcome, Pool, Reading, ahead
from .roles import Job

PARTITION = 1 << 24  # bytes of rows that are read together; larger: more memory, and no faster
AHEAD = 1  # partitions that wait while one is worked on, and one is being read; more: memory, and no time


def rows_together(row_bytes: float) -> int:
    """Rows of a partition: the same on every machine and for every amount of memory, for bits depend on them."""
    return max(1, int(PARTITION // max(row_bytes, 1.0)))


class Reader(Protocol):
    """One partition on a disk."""

    @property
    def nbytes(self) -> int: ...

    def __call__(self) -> Partition: ...


class Streamed(Pool):
    """Partitions that are read anew for every pass.

    Attributes
    ----------
    readers : list of Reader
    """

    home = "files"

    def __init__(
        self, readers: Sequence[Reader], memory: float | None = None, names: Sequence[str] | None = None,
        tasks: Sequence[Any] | None = None, first_index: int | None = None,
        target: str | list[str] | None = None, named: bool = False, title: str = "",
    ) -> None:  # fmt: skip
        self.readers, self.memory, self.names = list(readers), memory, names
        self.tasks, self.first_index, self.target, self.named, self.title = tasks, first_index, target, named, title
        self.passes = 0

    @property
    def count(self) -> int:
        return len(self.readers)

    @property
    def nbytes(self) -> int:
        """On the disk."""
        return sum(reader.nbytes for reader in self.readers)

    def _parts(self) -> Iterator[Partition]:
        for reader in self.readers:
            yield reader()

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        gathered, done, began = Gathering(jobs), 0, time.perf_counter()
        self.passes += 1
        total = self.nbytes
        for reader, part in zip(self.readers, ahead(self._parts(), AHEAD), strict=True):
            gathered.add(part)
            del part  # its memory is wanted for the next one
            done += reader.nbytes
            if self.watch is not None:
                self.watch(Reading(done, total, time.perf_counter() - began, self.passes))
        return gathered.outcomes()

    def __repr__(self) -> str:
        return f"Streamed({self.title or 'files'}: {self.count} partitions, {self.nbytes / 1e9:.3g} GB)"


@dataclasses.dataclass(frozen=True)
class FileState:
    """What tells that a file is the one it was."""

    path: str
    size: int
    time: int

    @classmethod
    def of(cls, path: str) -> FileState:
        found = os.stat(path)
        return cls(os.path.abspath(path), found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """A ValueError where the file has changed."""
        try:
            now = FileState.of(self.path)
        except FileNotFoundError:
            raise ValueError(f"{self.path} is gone; it was there when the rows were opened") from None
        if now != self:
            raise ValueError(f"{self.path} has changed since the rows were opened; open them again")


class Vectors:
    """A number for every row, or several: in memory, or in an npy file of which parts are read."""

    def __init__(self, values: AnyArray | None = None, path: str = "") -> None:
        self.values, self.path = values, path

    def cut(self, part: slice) -> AnyArray:
        if self.values is None:
            return np.array(np.load(self.path, mmap_mode="r", allow_pickle=False)[part])
        return self.values[part]


@dataclasses.dataclass(frozen=True)
class NpyReader:
    """Rows of an npy file in C order, as they lie there; what belongs to them lies in files of its own."""

    number: int
    state: FileState
    begin: int  # the byte where the first row of the file lies
    dtype: str
    p: int
    first: int
    rows: int
    target: Vectors
    weight: Vectors | None = None
    offset: Vectors | None = None
    task: Vectors | None = None

    @property
    def nbytes(self) -> int:
        return self.rows * self.p * np.dtype(self.dtype).itemsize

    def __call__(self) -> Partition:
        self.state.check()
        X = np.empty((self.rows, self.p), dtype=self.dtype)
        with open(self.state.path, "rb", buffering=0) as file:
            file.seek(self.begin + self.first * self.p * X.itemsize)
            view, got = memoryview(cast(Any, X.reshape(-1).view(np.uint8))), 0
            while got < len(view):
                more = file.readinto(view[got:])
                if not more:
                    row = self.first + got // max(self.p * X.itemsize, 1)
                    raise ValueError(f"{self.state.path} ends at row {row}; it must have {self.first + self.rows}")
                got += more
        part = slice(self.first, self.first + self.rows)
        weight, offset, task = (None if one is None else one.cut(part) for one in (self.weight, self.offset, self.task))
        return Partition.of(self.number, X, self.target.cut(part), weight, offset, task, self.state.path, self.first)


# -- shards: rows of other formats, converted once ----------------------------------------------------------

_ORDER = ("target", "weight", "offset", "task")


@dataclasses.dataclass
class Chunk:
    """Rows as they come from a file of any format."""

    X: Any
    target: AnyArray
    weight: Array | None = None
    offset: Array | None = None
    task: AnyArray | None = None
    source: str = ""
    first: int = 0


def write_shard(path: str, chunk: Chunk, codes: Index | None) -> dict[str, Any]:
    """One chunk as a file of arrays, one after another; returns what a reader must know of it."""
    sparse = not isinstance(chunk.X, np.ndarray)
    rows = [chunk.X.data, chunk.X.indices.astype(np.int32), chunk.X.indptr.astype(np.int64)] if sparse else [chunk.X]
    kept = [chunk.target, chunk.weight, chunk.offset, codes]
    with open(path, "wb") as file:
        for array in (*rows, *(one for one in kept if one is not None)):
            try:
                np.save(file, np.ascontiguousarray(array), allow_pickle=False)
            except OSError as error:
                if error.errno is None:  # numpy tells of a write that was cut short in words alone
                    raise OSError(errno.ENOSPC, str(error)) from error
                raise
    has = [name for name, one in zip(_ORDER, kept, strict=True) if one is not None]
    return {
        "sparse": sparse, "has": has, "source": chunk.source, "first": chunk.first, "bytes": os.path.getsize(path),
    }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class ShardReader:
    """One shard."""

    number: int
    path: str
    p: int
    known: dict[str, Any]
    shift: int = 0  # what column numbers are less by
    codes: Index | None = None  # of tasks, in the order of their names

    @property
    def nbytes(self) -> int:
        return int(self.known["bytes"])

    def __call__(self) -> Partition:
        import scipy.sparse as sp

        try:
            with open(self.path, "rb") as file:
                arrays = [np.load(file, allow_pickle=False) for _ in range(3 if self.known["sparse"] else 1)]
                kept = {name: np.load(file, allow_pickle=False) for name in self.known["has"]}
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(
                f"{self.path}, a shard of {self.known['source']}, cannot be read ({error}); remove its folder, and it "
                "is made anew"
            ) from error
        X = arrays[0]
        if self.known["sparse"]:
            indices = arrays[1] - np.int32(self.shift) if self.shift else arrays[1]
            X = sp.csr_array((X, indices, arrays[2]), shape=(arrays[2].size - 1, self.p))
        task = kept.get("task")
        if task is not None and self.codes is not None:
            task = self.codes[task]
        return Partition.of(
            self.number, X, kept["target"], kept.get("weight"), kept.get("offset"), task, self.known["source"],
            self.known["first"],
        )  # fmt: skip
