"""Maps that pick or repeat features."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import Ints, SparseMatrix, _count, index_array
from .base import Map


class Selection(Map):
    """u = w[index], an index at most once."""

    def __init__(self, index: npt.ArrayLike, p: int) -> None:
        self.p = _count("p", p)
        self.index = index_array("index", index, self.p).ravel()
        values, counts = np.unique(self.index, return_counts=True)
        if np.any(counts > 1):
            raise ValueError(f"index names feature {values[counts > 1][0]} twice; use Copies for overlap")

    def selected(self) -> Ints | None:
        return self.index

    def _matrix(self, p: int) -> SparseMatrix:
        m = len(self.index)
        return sp.csr_array((np.ones(m), self.index.copy(), np.arange(m + 1)), shape=(m, p))

    def norm(self) -> float:
        return 1.0 if len(self.index) else 0.0


class Copies(Map):
    """u = w[index] where an index may repeat: the copies that split overlapping groups."""

    def __init__(self, index: npt.ArrayLike, p: int) -> None:
        self.p = _count("p", p)
        self.index = index_array("index", index, self.p).ravel()

    _matrix = Selection._matrix

    def norm(self) -> float:
        return float(np.sqrt(np.bincount(self.index, minlength=1).max())) if len(self.index) else 0.0
