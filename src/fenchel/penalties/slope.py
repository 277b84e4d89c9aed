"""The sorted L1 norm, SLOPE and OSCAR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import Array, Ints, SparseMatrix, finite_vector
from .base import _Norm
from .run import run_prox
from .shorthand import Shorthand, _is_real, _known

if TYPE_CHECKING:
    from ..structure.graph import Graph
    from ..structure.grid import Grid
    from .base import Penalty


class SortedL1(_Norm):
    r"""The sorted l1 norm on its own coordinates; see Slope.

    Parameters
    ----------
    weights : vector of numbers that do not increase
    """

    def __init__(self, weights: Array) -> None:
        weights = finite_vector("weights", weights, np.size(weights), minimum=0)
        rise = np.flatnonzero(np.diff(weights) > 0)
        if rise.size:
            k = rise[0]
            raise ValueError(f"weights[{k + 1}] is {weights[k + 1]:g}, above weights[{k}] = {weights[k]:g}; "
                             "they must not increase")  # fmt: skip
        if not weights[:1].any():
            raise ValueError("weights are all 0; the first must be positive")
        self.weights = weights

    @property
    def kernel(self) -> Any:  # type: ignore[override]  # loaded when it is asked for
        from ..kernels import catalogue

        return catalogue.sorted_l1

    @property
    def params(self) -> Array:
        return self.weights

    def size(self) -> int:
        return len(self.weights)

    def value(self, u: Array) -> float:
        return float(self.weights @ np.sort(np.abs(u))[::-1])

    def gauge(self, y: Array) -> float:
        return float(np.max(np.cumsum(np.sort(np.abs(y))[::-1]) / np.cumsum(self.weights)))

    def prox_jacobian(self, u: Array, step: float | Array) -> Array | SparseMatrix:
        # entries of one size were pooled: they move together, each by the mean
        found = run_prox(self, u, step)
        size = np.abs(found)
        _, pool, count = np.unique(size, return_inverse=True, return_counts=True)
        direction = np.sign(found) / np.sqrt(count[pool])
        across = sp.csr_array((direction, (np.arange(len(found)), pool)), shape=(len(found), count.size))
        return across @ across.T

    def ties(self, u: Array) -> tuple[Ints, Ints, Array]:
        size = np.abs(u)
        order = np.argsort(size, kind="stable")
        i, j = order[:-1], order[1:]
        same = (size[i] == size[j]) & (size[i] > 0)
        return i[same], j[same], np.sign(u[i] * u[j])[same]


class Slope(Shorthand):
    r"""The sorted l1 norm, :math:`\sum_k \lambda_k |w|_{(k)}`: the larger a coefficient, the more it pays.

    Coefficients of correlated features come out with equal absolute values.

    Parameters
    ----------
    weights : vector of p numbers that do not increase, optional
        By default those of Benjamini and Hochberg at level q.
    q : float
        Level of the default weights: the expected share of false discoveries under an orthogonal design.

    Notes
    -----
    Prox: isotonic regression of the sorted :math:`|u|_{(k)} - s \lambda_k`, and its positive part. Conjugate: 0
    where :math:`\sum_{k \le m} |y|_{(k)} \le \sum_{k \le m} \lambda_k` for all m (Bogdan et al., 2015).
    """

    weights_per = ("term",)

    def __init__(self, weights: npt.ArrayLike | None = None, q: float = 0.1) -> None:
        if not (_is_real(q) and 0 < q < 1):
            raise ValueError(f"q is {q!r}; it must be a number between 0 and 1")
        self.weights, self.q = weights, q

    def feature_graph(self, size: int) -> Graph | Grid | str | None:
        return "sizes"

    def build(self, p: int | None) -> Penalty:
        if self.weights is not None:
            return SortedL1(
                finite_vector("weights", self.weights, np.size(self.weights) if p is None else p, minimum=0)
            )
        from scipy.special import ndtri

        p = _known(p, "Slope")
        return SortedL1(-ndtri(self.q * np.arange(1, p + 1) / (2 * p)))


class Oscar(Shorthand):
    r"""OSCAR, :math:`a \|w\|_1 + b \sum_{i<j} \max(|w_i|, |w_j|)`: groups of equal size found by themselves.

    Parameters
    ----------
    a, b : float
        Not negative, and not both 0.

    Notes
    -----
    The sorted l1 norm with :math:`\lambda_k = a + b (p - k)`; see Slope (Bondell and Reich, 2008).
    """

    def __init__(self, a: float = 1.0, b: float = 0.1) -> None:
        for name, value in (("a", a), ("b", b)):
            if not (_is_real(value) and value >= 0):
                raise ValueError(f"{name} is {value!r}; it must be finite and at least 0")
        if a == 0 and b == 0:
            raise ValueError("a and b are both 0; one of them must be positive")
        self.a, self.b = a, b

    def feature_graph(self, size: int) -> Graph | Grid | str | None:
        return "sizes"

    def build(self, p: int | None) -> Penalty:
        return SortedL1(self.a + self.b * np.arange(_known(p, "Oscar") - 1, -1, -1.0))
