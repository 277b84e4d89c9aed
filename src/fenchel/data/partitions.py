"""A part of the rows: what a worker holds, or a reader brings from a disk, for one visit."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validate import AnyArray, Array, Index, MatrixLike
from .rows import _as_matrix, _check_finite, _read_only

_NONE = np.zeros(0)
_NO_INDEX = np.zeros(0, dtype=np.int64)


@dataclasses.dataclass(frozen=True)
class Partition:
    """Rows with what belongs to them. It does not change, and can be sent elsewhere.

    Attributes
    ----------
    number : int
        Its place among the partitions. Samples are drawn by it, and not by who holds the rows.
    arrays : (X,) or (data, indices, indptr)
        Rows in C order, or CSR; float32 or float64.
    p : int
        Features.
    target : array (n,) or (n, outputs)
    weight, offset : arrays (n,), or empty
    task : array (n,) of integers, or empty
    source : str
        Where the rows come from, for messages.
    first : int
        The number of its first row there.
    """

    number: int
    arrays: tuple[AnyArray, ...]
    p: int
    target: AnyArray
    weight: Array = dataclasses.field(default_factory=lambda: _NONE)
    offset: Array = dataclasses.field(default_factory=lambda: _NONE)
    task: Index = dataclasses.field(default_factory=lambda: _NO_INDEX)
    source: str = ""
    first: int = 0

    @classmethod
    def of(
        cls, number: int, X: MatrixLike, target: AnyArray, weight: AnyArray | None = None,
        offset: AnyArray | None = None, task: AnyArray | None = None, source: str = "", first: int = 0,
    ) -> Partition:  # fmt: skip
        """A matrix with its targets, in the types that the kernels take."""
        X = _as_matrix(X)
        if sp.issparse(X):
            X = X.tocsr()
            parts: tuple[Any, ...] = X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64)
        else:
            parts = (np.ascontiguousarray(X),)
        tasks = _NO_INDEX if task is None else np.ascontiguousarray(task, dtype=np.int64)
        return cls(
            number, tuple(_read_only(a) for a in parts), X.shape[1], target, _floats(weight), _floats(offset), tasks,
            source, first,
        )  # fmt: skip

    @property
    def sparse(self) -> bool:
        return len(self.arrays) == 3

    @property
    def n(self) -> int:
        return int(self.target.shape[0])

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (*self.arrays, self.target, self.weight, self.offset, self.task))

    def matrix(self) -> MatrixLike:
        """The rows as a matrix."""
        if self.sparse:
            return sp.csr_array(self.arrays, shape=(self.n, self.p))
        return self.arrays[0]

    def place(self, row: int) -> str:
        """A row, as a message names it."""
        where = f"{self.source}, " if self.source else f"partition {self.number}, "
        return f"{where}row {self.first + row}"

    def check(self, finite: bool = False) -> None:
        """A ValueError that names the first number which is not finite, and its place; `finite` tells that the rows
        are known to be."""
        try:
            if not finite:
                _check_finite(self.matrix(), self.sparse)
        except ValueError as error:
            at, column = str(error).split("]")[0].removeprefix("X[").split(", ")
            raise ValueError(
                f"{self.place(int(at))}, column {column} is {str(error).split(' is ')[1].split(';')[0]}; X must be "
                "finite"
            ) from None
        for name, values in (("target", self.target), ("weight", self.weight), ("offset", self.offset)):
            if values.dtype.kind != "f" or np.isfinite(values).all():
                continue
            row = int(np.argwhere(~np.isfinite(values))[0][0])
            raise ValueError(f"{self.place(row)}: the {name} is {values[row]}; it must be finite")
        bad = np.flatnonzero(self.weight < 0)
        if bad.size:
            raise ValueError(
                f"{self.place(int(bad[0]))}: the weight is {self.weight[bad[0]]:g}; weights must not be negative"
            )
        if self.task.size and self.task.min() < 0:
            row = int(np.flatnonzero(self.task < 0)[0])
            raise ValueError(f"{self.place(row)}: the task is {self.task[row]}; tasks are numbered from 0")


def partitioned(
    X: MatrixLike, y: AnyArray, sample_weight: AnyArray | None = None, *, offset: AnyArray | None = None,
    task: AnyArray | None = None, rows: int = 10_000,
) -> list[Partition]:  # fmt: skip
    """Data in memory as partitions of so many rows each."""
    X, y = _as_matrix(X), np.asarray(y)
    if sp.issparse(X):
        X = X.tocsr()
    parts = [slice(first, first + rows) for first in range(0, X.shape[0], rows)]
    return [
        Partition.of(k, X[s], y[s], _cut(sample_weight, s), _cut(offset, s), _cut(task, s), first=s.start)
        for k, s in enumerate(parts)
    ]


def _floats(given: AnyArray | None) -> Array:
    return _NONE if given is None else np.ascontiguousarray(given, dtype=float)


def _cut(values: AnyArray | None, part: slice) -> AnyArray | None:
    return None if values is None else np.asarray(values)[part]
