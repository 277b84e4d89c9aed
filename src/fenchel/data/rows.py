"""Rows of data: dense, sparse or memory-mapped, checked once and taken as they are.

Products with the data are there for rows stored one after another (C order, CSR) and for columns (Fortran order, CSC).
What visits single rows needs the former: `Rows.arrays` makes them from columns when it is first asked, which is a copy.
Data frames and lists are converted by scikit-learn's validation (that is a copy, and is theirs). `Rows.single` copies
too, in half the size, and dense data of at most 64 MiB.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import AnyArray, Array, Floats, Ints, MatrixLike, SparseMatrix, sound
from ..foundation.lazy import lazy
from ..foundation.numerics import AT_ONCE, COPY

# columns from which dense rows are visited by fours; fewer: the products of four rows cost more than they save
WIDE = 256
ROUGH = 3e-6  # relative gap down to which numbers in single precision will do, as long as certificates become better
# bytes of data up to which reading them takes no time worth mentioning; larger: copies that save nothing are not made
_CACHED = 1 << 21
_spare: list[
    npt.NDArray[np.float32]
] = []  # memory of such numbers that nobody needs any more: fresh memory takes longer than what is written there
_NO_WEIGHTS = np.zeros(0)  # where all are equal


class Rows:
    """The data matrix X (n, p) behind one interface.

    Attributes
    ----------
    by_column : bool
        Whether columns are stored one after another (Fortran order, CSC), and not rows.
    mean_squares : ndarray
        Mean of the square of each column.
    """

    n: int
    p: int
    sparse: bool
    mean_squares: Array

    def __init__(self, X: MatrixLike) -> None:
        X = _as_matrix(X)
        self.n, self.p = X.shape
        if self.n == 0:
            raise ValueError(f"X has shape {X.shape}: there are no rows to learn from")
        if self.p == 0:
            raise ValueError(f"X has shape {X.shape}: there are no features to learn from")
        self.sparse = sp.issparse(X)
        self.by_column = X.format == "csc" if self.sparse else not X.flags.c_contiguous
        parts = (X.data, X.indices, X.indptr) if self.sparse else (X.T if self.by_column else X,)
        self._stored = tuple(_read_only(a) for a in parts)
        self.dtype = self._stored[0].dtype
        self.mean_squares = self._mean_squares()
        if not np.isfinite(self.mean_squares).all():
            _check_finite(X, self.sparse)
            column = int(np.flatnonzero(~np.isfinite(self.mean_squares))[0])
            raise ValueError(
                f"X has numbers in column {column} whose squares overflow (about 1e154 and more); "
                "give that column another unit"
            )

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """(X,) or (data, indices, indptr) of the rows, read-only views: what the kernels take."""
        return self._rows if self.by_column else self._stored

    @lazy
    def _rows(self) -> tuple[AnyArray, ...]:
        """The rows of data whose columns are stored: a copy."""
        if not self.sparse:
            return (_read_only(np.ascontiguousarray(self._stored[0].T)),)
        rows = sp.csc_array(self._stored, shape=(self.n, self.p)).tocsr()
        return tuple(_read_only(a) for a in (rows.data, rows.indices, rows.indptr))

    @lazy
    def terms(self) -> Array:
        """How many entries each column has in memory."""
        if not self.sparse:
            return np.full(self.p, float(self.n))
        if self.by_column:
            return np.diff(self._stored[2]).astype(float)
        counts: Array = np.bincount(self._stored[1], minlength=self.p).astype(float)
        return counts

    @property
    def stored(self) -> int:
        """Entries held in memory."""
        return self._stored[0].size

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in self._stored)

    # -- products with all of the data, in double precision -------------------------------------------

    def times(self, vector: Array) -> Array:
        """X v."""
        return self._product(vector, self.by_column)

    def transposed_times(self, vector: Array) -> Array:
        """X'v."""
        return self._product(vector, not self.by_column)

    def _product(self, vector: Array, summed: bool) -> Array:
        """The sum of what is stored one after another, times the vector; or the product of each with it."""
        vector = np.ascontiguousarray(vector, dtype=float)
        if self.sparse:
            from ..kernels import sparse_columns

            out = np.empty(self.n + self.p - self._lines if summed else self._lines)
            (sparse_columns.sum_rows if summed else sparse_columns.rows_times)(*self._stored, vector, out)
            return out
        (lines,) = self._stored
        if self.dtype == np.float64:
            return vector @ lines if summed else lines @ vector
        out, step = np.zeros(lines.shape[1] if summed else len(lines)), max(1, AT_ONCE // max(lines.shape[1], 1))
        for first in range(0, len(lines), step):
            part = lines[first : first + step].astype(float)
            if summed:
                out += vector[first : first + step] @ part
            else:
                out[first : first + step] = part @ vector
        return out

    @property
    def _lines(self) -> int:
        """Rows or columns, whichever are stored one after another."""
        return self.p if self.by_column else self.n

    @property
    def dense(self) -> Floats:
        """Dense data as (n, p), in whatever order it is stored."""
        return self._stored[0].T if self.by_column else self._stored[0]

    def filled(self) -> Floats:
        """The data as a dense (n, p) matrix; sparse data is copied with its zeros."""
        if not self.sparse:
            return self.dense
        out: Floats = (sp.csc_array if self.by_column else sp.csr_array)(self._stored, shape=(self.n, self.p)).toarray()
        return out

    def rows(self, which: Any) -> Array | SparseMatrix:
        """Some of the rows, as a dense or CSR matrix of float64."""
        if not self.sparse:
            return self.dense[which].astype(float, copy=False)
        return sp.csr_array(self.arrays, shape=(self.n, self.p))[which].astype(float)

    # -- some of the columns --------------------------------------------------------------------------

    def take_columns(self, columns: Ints, out: Array, first: int) -> None:
        """out[first + k] = column columns[k] of dense data."""
        if self.by_column:
            out[first : first + columns.size] = self._stored[0][columns]
            return
        from ..kernels.units import take_columns

        take_columns(self._stored[0], columns, out, first)

    def compact_rows(self, columns: Ints) -> tuple[AnyArray, ...]:
        """These columns of sparse data, numbered in their order, as the arrays of CSR."""
        from ..kernels import sparse_columns

        if not self.by_column:
            place = np.full(self.p, -1, dtype=np.int32)
            place[columns] = np.arange(columns.size)
            # one more than there can be: an entry that is left out is written, and then written over
            room = self._column_counts[columns].sum() + 1
            values, places, ends = np.empty(room), np.empty(room, np.int32), np.empty(self.n + 1, np.int64)
            sparse_columns.compact(*self._stored, place, values, places, ends)
            return values, places, ends
        data, indices, indptr = self._stored
        counts = np.diff(indptr)[columns]
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.repeat(indptr[columns] - ends[:-1], counts) + np.arange(ends[-1])
        turned = np.empty(ends[-1]), np.empty(ends[-1], np.int32), np.empty(self.n + 1, np.int64)
        sparse_columns.turn(data[entries], indices[entries], ends, *turned)
        return turned

    @lazy
    def columns(self) -> tuple[AnyArray, ...]:
        """Sparse data as the arrays of CSC, with the numbers that compiled loops take: float64, int32 and int64. A copy
        where rows are stored."""
        if self.by_column:
            data, indices, indptr = self._stored
            return data.astype(float, copy=False), indices.astype(np.int32, copy=False), indptr.astype(np.int64)
        from ..kernels import sparse_columns

        turned = np.empty(self.stored), np.empty(self.stored, np.int32), np.empty(self.p + 1, np.int64)
        sparse_columns.turn(*self._stored, *turned)
        return turned

    @lazy
    def pairs(self) -> float:
        """Multiply-adds of the Gram matrix of all columns of sparse data."""
        if self.by_column:
            lengths = np.bincount(self._stored[1], minlength=self.n).astype(float)
        else:
            lengths = np.diff(self._stored[2]).astype(float)
        return 0.5 * float(lengths @ lengths)

    @lazy
    def _column_counts(self) -> np.ndarray:
        """Stored entries of every column of CSR data."""
        return np.bincount(self._stored[1], minlength=self.p)

    @property
    def halves(self) -> bool:
        """Whether single precision makes the data smaller, and there is room for that."""
        return not self.sparse and self.dtype != np.float32 and self.nbytes <= COPY

    @property
    def copied(self) -> bool:
        """Whether epochs read single precision first: where rows are wide, and caches too small for all of them."""
        return self.halves and self.p >= WIDE and self.nbytes > _CACHED

    @lazy
    def single(self) -> tuple[AnyArray, ...] | None:
        """`arrays` in single precision, for work that is far from its goal: a copy, made when it is first asked for.

        None where it would gain nothing, or where there are numbers too large or too small for it.
        """
        squares = self.mean_squares
        if not self.halves or self.n * squares.max() > 1e70 or np.any((squares > 0) & (squares < 1e-60)):
            return None
        memory = _spare.pop() if _spare else np.zeros(0, dtype=np.float32)
        if memory.size < self.stored:
            memory = np.empty(self.stored, dtype=np.float32)
        weakref.finalize(self, _keep, memory)
        copy = memory[: self.stored].reshape(self.n, self.p)
        copy[:] = self.dense
        return (_read_only(copy),)

    def __getstate__(self) -> dict[str, Any]:
        """Copies make a copy of their own: the memory of this one is free again when its owner is gone."""
        return {key: value for key, value in vars(self).items() if key != "single"}

    def _mean_squares(self) -> np.ndarray:
        """Mean of the square of each column, without a copy of X."""
        if self.by_column:
            return self._sums_of_columns() / self.n
        total = np.zeros(self.p)
        if self.stored > AT_ONCE:
            from ..kernels import rows

            if self.sparse:
                rows.sparse_column_squares(*self.arrays[:2], total)
            else:
                rows.dense_column_squares(self.arrays[0], total)
        elif self.sparse:
            data, indices, _ = self.arrays
            total += np.bincount(indices, _squares(data), minlength=self.p)
        else:
            X = self.arrays[0]
            total += np.einsum("ij,ij->j", X, X, dtype=float)
        return total / self.n

    def _sums_of_columns(self) -> Array:
        """Sums of squares of the columns, which are stored one after another."""
        if self.sparse:
            squares = _squares(self._stored[0])
            column = np.repeat(np.arange(self.p), np.diff(self._stored[2]))
            return np.bincount(column, squares, minlength=self.p).astype(float, copy=False)
        total, step = np.empty(self.p), max(1, AT_ONCE // max(self.n, 1))
        for first in range(0, self.p, step):
            part = self._stored[0][first : first + step]
            total[first : first + step] = np.einsum("ij,ij->i", part, part, dtype=float)
        return total


@np.errstate(over="ignore")
def _squares(values: AnyArray) -> Array:
    """The squares of numbers; what is too large becomes infinite, and is refused later."""
    wide: Array = values.astype(float)
    squares: Array = wide * wide
    return squares


def _keep(memory: npt.NDArray[np.float32]) -> None:
    """For the next data, unless there is some already."""
    if not _spare:
        _spare.append(memory)


def _as_matrix(X: MatrixLike) -> MatrixLike:
    if isinstance(X, np.ndarray) and X.dtype.hasobject:
        raise ValueError("X has dtype object; convert it to numbers, e.g. X.astype(float)")
    if sp.issparse(X):
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimension(s); it must have two")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X has dtype {X.dtype}; it must be real numbers")
        sound("X", X)
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
        if _has_duplicates(X):
            X = X.copy()
            X.sum_duplicates()
        return X if X.dtype in (np.float32, np.float64) else X.astype(float)
    if isinstance(X, np.ndarray):
        if X.ndim != 2:
            raise ValueError(f"X has shape {X.shape}; it must have two dimensions (reshape one feature to (n, 1))")
        if isinstance(X, np.ma.MaskedArray):
            raise ValueError("X is a masked array; fill its masked entries, e.g. X.filled(0)")
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X has dtype {X.dtype}; it must be real numbers")
        if X.dtype.char not in "fd" or not X.dtype.isnative:
            return np.ascontiguousarray(X, dtype=float)
        return X if X.flags.forc else np.ascontiguousarray(X)  # some columns or every other row of an array
    from sklearn.utils.validation import check_array

    converted = check_array(
        X, dtype=[np.float64, np.float32], order="C", ensure_all_finite=False, ensure_min_samples=0, input_name="X"
    )
    return np.ascontiguousarray(converted)


def _has_duplicates(X: MatrixLike) -> bool:
    """Whether a row names a column twice (or a column a row); the order does not matter."""
    if X.has_canonical_format:
        return False
    lines, count = X.shape if X.format == "csr" else X.shape[::-1]
    step = max(1, AT_ONCE * lines // max(X.nnz, 1))
    for first in range(0, lines, step):
        bounds = X.indptr[first : first + step + 1]
        rows = np.repeat(np.arange(bounds.size - 1), np.diff(bounds))
        keys = rows * np.int64(count) + X.indices[bounds[0] : bounds[-1]]
        if np.unique(keys).size < keys.size:
            return True
    return False


def _read_only(array: AnyArray) -> AnyArray:
    view = array.view(np.ndarray)
    if view.flags.writeable:
        view = view[...]
        view.flags.writeable = False
    return view


def _check_finite(X: MatrixLike, sparse: bool) -> None:
    values = X.data if sparse else X
    step = AT_ONCE if sparse else max(1, AT_ONCE // max(X.shape[1], 1))
    for first in range(0, values.shape[0], step):
        part = values[first : first + step]
        with np.errstate(over="ignore", invalid="ignore"):
            total = part.sum()
        if np.isfinite(total) or np.isfinite(part).all():
            continue
        place = np.argwhere(~np.isfinite(part))[0]
        if sparse:
            k = first + place[0]
            row, column = np.searchsorted(X.indptr, k, side="right") - 1, X.indices[k]
            if X.format == "csc":
                row, column = column, row
        else:
            row, column = first + place[0], place[1]
        raise ValueError(f"X[{row}, {column}] is {part[tuple(place)]}; X must be finite")


def as_weights(sample_weight: npt.ArrayLike | None, n: int) -> Array:
    """Weights scaled to mean 1, or an empty array where all are equal."""
    if sample_weight is None:
        return _NO_WEIGHTS
    weight = np.asarray(sample_weight)
    if weight.dtype.kind not in "biuf" or weight.ndim != 1:
        raise ValueError(
            f"sample_weight has dtype {weight.dtype} and shape {weight.shape}; it must be a numeric vector"
        )
    if len(weight) != n:
        raise ValueError(f"sample_weight has {len(weight)} entries, but X has {n} rows")
    weight = weight.astype(float)
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if bad.size:
        raise ValueError(f"sample_weight[{bad[0]}] is {weight[bad[0]]:g}; weights must be finite and not negative")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row")
    if np.all(weight == weight[0]):
        return np.zeros(0)
    weight /= weight.max()
    out: Array = weight * (n / weight.sum())
    return out
