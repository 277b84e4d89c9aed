"""What the squared loss leaves of the data: the Gram matrix of all features, and their covariances with the targets.

    (1/n) sum_i s_i (z_i'w + b - t_i)^2 / 2  =  w'Gw / 2 - g'w + v / 2      at the best intercept b = mean - centre'w

Sums run over the rows, whose weights s have mean 1; with an intercept everything is taken from its mean first.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .choices import LARGEST
from .lower_gram import lower_gram
from .restrictions.columns import SparseColumns
from .restrictions.working_set import BUDGET
from .units import Vector

if TYPE_CHECKING:
    from ..problem import Problem

FAR = 0.99  # of a column's mean square: the square of its mean, beyond which a difference of both loses digits
DIGITS = 1e-13  # relative error up to which an objective is as good as one by rows
_ENTRIES = 1 << 17  # numbers whose means are taken off at a time: they stay in the cache
_EPS = 2.0**-52


@dataclasses.dataclass(frozen=True)
class Covariances:
    """See the head of this file; `rows` is n."""

    gram: Any
    with_target: Vector
    variance: float
    centre: Vector
    mean: float
    rows: int

    @functools.cached_property
    def sizes(self) -> Vector:
        """What the covariances with the targets are at the most."""
        return np.asarray(np.sqrt(self.gram.diagonal() * self.variance))

    def rounding(self, w: Vector, weights: Vector, primal: float) -> float:
        """What rounding may add to a lower bound: sums of so many rows, and slopes that pass their weights by it.

        Slopes that are too long by a share of their weights cost at most that share of the penalty of the answer, which
        is at most the objective.
        """
        error = self._error
        with np.errstate(divide="ignore", invalid="ignore"):
            beyond = float(np.max(self.sizes / weights, initial=0.0, where=weights > 0))
        beyond = beyond if math.isfinite(primal) else 0.0
        return float(self.of_loss(w) + error * beyond * primal)

    @property
    def _error(self) -> float:
        """Of a sum over all rows, in units of the lengths of its factors: errors of rows are independent."""
        return _EPS * (8 + math.sqrt(self.rows))

    def of_loss(self, w: Vector) -> float:
        """What rounding may do to the loss at w."""
        return float(self._error * (self.variance + 2 * float(np.abs(w) @ self.sizes)))

    def blurred(self, w: Vector, primal: float) -> bool:
        """Whether the objective is so much smaller than what it is the difference of that it lacks digits."""
        return bool(_EPS * (self.variance + 2 * float(np.abs(w) @ self.sizes)) > DIGITS * primal)


def covariances_price(problem: Problem, prices: Any) -> float:
    """Nanoseconds that they take to make; infinite where they take too much memory."""
    data, n, p = problem.data, problem.n, problem.p
    if p > LARGEST or 8 * p * p > max(BUDGET, data.nbytes):
        return math.inf
    if data.sparse:
        return float(data.pairs * prices.csr_gram + 2.0 * p * p)
    return float(n * p * prices.cast + n * p * p / 2 * prices.syrk64)


def covariances(problem: Problem) -> Covariances | None:
    """Those of a problem; None where they cannot be had to rounding."""
    from ..kernels.units import mirror

    data, n, p = problem.data, problem.n, problem.p
    weight = problem.weight if problem.weight.size else np.ones(n)
    centre, mean = np.zeros(p), 0.0
    if problem.fit_intercept:
        centre, mean = data.transposed_times(weight) / n, float(weight @ problem.target) / n
    target = problem.target - mean
    if data.sparse:
        if np.any(np.square(centre) > FAR * data.mean_squares):
            return None
        with_target = data.transposed_times(weight * target) / n - centre * (float(weight @ target) / n)
        columns, gram = SparseColumns(data), np.empty((p, p))
        columns.add(np.arange(p))
        columns.gram(weight / n, centre if problem.fit_intercept else None, 0, gram, False)
        # the same with the weights of the rows, which are in the matrix; its diagonal is below zero where none is left
        if np.any((1 - FAR) * np.square(centre) > FAR * gram.diagonal()):
            return None
    else:
        with_target = _less_their_means(data.dense, centre, weight * target / n)
        gram = lower_gram(data.dense, weight / n, less=centre if problem.fit_intercept else None)
        mirror(gram, p)
        gram = gram.T  # it is symmetric, and in Fortran's order
    return Covariances(gram, with_target, float(weight @ np.square(target)) / n, centre, mean, n)


def _less_their_means(X: Any, centre: Vector, target: Vector) -> Vector:
    """(X - centre)'target. Products with columns far from zero would lose the digits that their deviations have."""
    total, chunk = np.zeros(centre.size), max(32, _ENTRIES // centre.size)
    for first in range(0, len(X), chunk):
        total += target[first : first + chunk] @ (X[first : first + chunk] - centre)
    return total
