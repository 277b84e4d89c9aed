"""What the mathematics asks of the rows, wherever they live."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from .._validate import AnyArray, Array, Floats, Ints, SparseMatrix

if TYPE_CHECKING:
    from .partitions import Partition
    from .pools import Facts, Outcome, Reading


class RowData(Protocol):
    """The data matrix X (n, p). The objective, the certificate, the engines and the loop ask for nothing else.

    What it must have: the sizes, the products with all of the data, and rows or columns that the kernels can visit.
    What it may say no to: `single` is None where single precision gains nothing, and `arrays` may take a copy where
    columns are stored (`by_column` tells). Sums over rows add up over parts of the data, so that parts may live apart.

    Attributes
    ----------
    n, p : int
    sparse : bool
        Whether zeros are not stored.
    by_column : bool
        Whether columns are stored one after another, and not rows.
    dtype : numpy dtype
        float32 or float64.
    mean_squares : array (p,)
        Mean of the square of each column.
    """

    n: int
    p: int
    sparse: bool
    by_column: bool
    dtype: np.dtype[Any]
    mean_squares: Array

    @property
    def arrays(self) -> tuple[AnyArray, ...]:
        """(X,) or (data, indices, indptr) of the rows, read-only: what the kernels take."""
        ...

    @property
    def single(self) -> tuple[AnyArray, ...] | None:
        """`arrays` in single precision, for work that is far from its goal; None where that gains nothing."""
        ...

    @property
    def halves(self) -> bool:
        """Whether single precision makes the data smaller, and there is room for that."""
        ...

    @property
    def copied(self) -> bool:
        """Whether epochs read single precision first."""
        ...

    @property
    def terms(self) -> Array:
        """How many entries each column has in memory."""
        ...

    @property
    def stored(self) -> int:
        """Entries that are stored."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes that they take."""
        ...

    def times(self, vector: Array) -> Array:
        """X v."""
        ...

    def transposed_times(self, vector: Array) -> Array:
        """X'v."""
        ...

    def rows(self, which: Any) -> Array | SparseMatrix:
        """Some of the rows, as a dense or CSR matrix of float64."""
        ...

    def filled(self) -> Floats:
        """The data as a dense (n, p) matrix."""
        ...

    # -- of the columns: what working sets and covariances ask for ------------------------------------

    @property
    def dense(self) -> Floats:
        """Dense data as (n, p), in whatever order it is stored."""
        ...

    @property
    def columns(self) -> tuple[AnyArray, ...]:
        """Sparse data as the arrays of CSC: float64, int32 and int64."""
        ...

    @property
    def pairs(self) -> float:
        """Multiply-adds of the Gram matrix of all columns of sparse data."""
        ...

    def take_columns(self, columns: Ints, out: Array, first: int) -> None:
        """out[first + k] = column columns[k] of dense data."""
        ...

    def compact_rows(self, columns: Ints) -> tuple[AnyArray, ...]:
        """These columns of sparse data, numbered in their order, as the arrays of CSR."""
        ...


class Job(Protocol):
    """Something to be run on every partition: a small object that can be sent there."""

    @property
    def name(self) -> str:
        """What a dashboard or a progress line calls it."""
        ...

    def __call__(self, part: Partition) -> tuple[Array | None, Any]:
        """A vector that is summed over all partitions, and what is kept of this one; either may be None."""
        ...


class RowPool(Protocol):
    """Rows in partitions, in memory, on disks or on a cluster: what stands in place of X and y in a Problem.

    What it must have is `run`: every job on every partition, for one read of the data. Partitions keep nothing between
    two runs, so that they can be lost and made again. Sums must be those of :class:`fenchel.data.exact_sums.ExactSum`,
    which do not depend on who adds first; then the answer does not either.

    Attributes
    ----------
    count : int
        Partitions.
    facts : Facts
        What one pass tells of the rows.
    home : str
        Where the rows are, for messages.
    memory : float or None
        Bytes that a solver may take for a sample of the rows; None leaves it free.
    held : bool
        Whether these are the rows of a sample, which are read for nothing.
    names : list of str, or None
        Of the features.
    watch : callable or None
        Told how far a pass has come, where somebody waits for it.
    """

    home: str
    memory: float | None
    held: bool
    names: Sequence[str] | None
    watch: Callable[[Reading], None] | None

    @property
    def count(self) -> int: ...

    @property
    def facts(self) -> Facts: ...

    def run(self, jobs: Sequence[Job]) -> list[Outcome]: ...
