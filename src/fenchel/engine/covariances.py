"""What the squared loss leaves of the data: the Gram matrix of all features, and their covariances with the targets.

    (1/n) sum_i s_i (z_i'w + b - t_i)^2 / 2  =  w'Gw / 2 - g'w + v / 2      at the best intercept b = mean - centre'w

Sums run over the rows, whose weights s have mean 1; with an intercept everything is taken from its mean first.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..foundation.lazy import lazy
from ..foundation.numerics import DIGITS
from ..kernels.rooms import Room
from ..kernels.rules import MEMORY
from ..problem.rounding import STEPS, UNIT
from .choices import CALLS, LARGEST, LOOKS, PRODUCTS_QUADRATIC, expected_support
from .curvatures.blocks import FAR
from .lower_gram import ENTRIES, lower_gram
from .restrictions.columns import SparseColumns
from .units import Units, Vector

if TYPE_CHECKING:
    from ..problem import Problem

_CALLS = 150  # of numpy on tiny arrays, that covariances take besides; larger: small fits go by rows
_CACHE = 1 << 22  # bytes of data that stay in the cache; larger: data that do not count as if they did
_CACHED = 0.3  # of the prices of reading and copying, which are those of larger data: the same in the cache (measured)
_GROWN = 1.3  # times the support: what a working set has grown to in the end


@dataclasses.dataclass(frozen=True)
class Covariances:
    """See the head of this file; `rows` is n."""

    gram: Any
    with_target: Vector
    variance: float
    centre: Vector
    mean: float
    rows: int

    @lazy
    def sizes(self) -> Vector:
        """What the covariances with the targets are at the most."""
        return np.asarray(np.sqrt(self.gram.diagonal() * self.variance))

    def rounding(self, w: Vector, beyond: float, primal: float) -> tuple[float, float, bool]:
        """What rounding may add to a lower bound, what it may do to the loss at w, and whether the objective is so much
        smaller than what it is the difference of that it lacks digits.

        The bound has sums of so many rows, and slopes that pass their weights. Slopes of these `sizes` are up to
        `beyond` times too long for the penalty. Slopes that are too long by a share of their weights cost at most that
        share of the penalty of the answer, which is at most the objective.
        """
        error, terms, variance = self._error, float(np.abs(w) @ self.sizes), self.variance
        # how much larger than the targets such terms may be; those of the point beside w whose slopes prove the bound
        # of groups are twice as large at the most
        reach = 1 + 2 * terms / variance if variance > 0 else 1.0
        over = beyond * primal if math.isfinite(primal) else 0.0
        of_bound, of_loss = error * reach * (variance * reach + over), error * (variance + 2 * terms)
        blurred = 2 * UNIT * variance * (0.5 + 0.5 * reach) ** 2 > DIGITS * primal
        return of_bound, of_loss, blurred

    @lazy
    def _error(self) -> float:
        """Of a sum over all rows, and of one over the features, in units of the lengths of its factors. Errors of
        rows are not independent: where all terms are equal, they are too."""
        return UNIT * (self.rows + self.with_target.size + STEPS)


def covariances_price(problem: Problem, prices: Any) -> float:
    """Nanoseconds that they take to make; infinite where they take too much memory."""
    data, n, p = problem.data, problem.n, problem.p
    if p > LARGEST or 8 * p * p > max(MEMORY, data.nbytes):
        return math.inf
    if data.sparse:
        return float(data.pairs * prices.csr_gram + 2.0 * p * p)
    return float(n * p * prices.cast + n * p * p / 2 * prices.syrk64)


def whole_pays(problem: Problem, units: Units, alphas: int, filled: bool, prices: Any) -> bool:
    """Whether so many alphas, the last of which has the penalty of these units, cost less with the covariances of all
    features than with those of the working sets that slopes at the start foretell; `filled` tells whether the zeros of
    sparse data would be filled in for them.

    A path that comes to a large support makes nearly all of the Gram matrix in the end, set by set, and reads the
    columns of its set besides all of the data.
    """
    data, n, p = problem.data, problem.n, problem.p
    looks = LOOKS if alphas == 1 else alphas + LOOKS

    def by_sets(size: float) -> float:
        if data.sparse and not filled:
            share, look = size / p, 2 * data.stored * prices.csr_pass
            look += 0.0 if units.alone else CALLS * prices.call  # groups have no compiled loops over sparse columns
            return float(looks * look + share * share * data.pairs * prices.csr_gram)
        products = PRODUCTS_QUADRATIC if alphas == 1 else 0.5 * looks  # with a set that grows as alpha falls
        read = n * size * prices.copy + (looks * p + 2 * products * size) * n * prices.gemv
        made = looks * n * prices.loss + n * size * size / 2 * prices.syrk64
        return float(made + read * (_CACHED if 8 * n * p <= _CACHE else 1.0))

    made = covariances_price(problem, prices) + _CALLS * prices.call
    widest = 1 if units.alone else int(np.diff(units.start).max())
    most = min(n * widest, p)

    def known(size: float) -> float:
        # slopes by covariances take one product of a row for every feature that counts, half of the last ones on a path
        return float(made if alphas == 1 else made + looks * p * size / 2 * prices.gemv)

    if known(most) > by_sets(most):
        return False
    weight = problem.weight if problem.weight.size else np.ones(n)
    mean = float(weight @ problem.target) / n if problem.fit_intercept else 0.0
    slope = data.transposed_times(weight * (problem.target - mean)) / n
    size = min(most, _GROWN * expected_support(units.scores(slope), max(n, p), p))
    return bool(known(size) <= by_sets(size))


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
        gram = lower_gram(data.dense, problem.weight if problem.weight.size else None,
                          less=centre if problem.fit_intercept else None)  # fmt: skip
        gram /= n
        mirror(gram, p)
        gram = gram.T  # it is symmetric, and in Fortran's order
    return Covariances(gram, with_target, float(weight @ np.square(target)) / n, centre, mean, n)


def _less_their_means(X: Any, centre: Vector, target: Vector) -> Vector:
    """(X - centre)'target. Products with columns far from zero would lose the digits that their deviations have."""
    total, chunk = np.zeros(centre.size), max(32, ENTRIES // centre.size)
    rows = min(chunk, len(X))
    room = Room(rows * centre.size)
    space = room.take(rows, centre.size)
    for first in range(0, len(X), chunk):
        part = X[first : first + chunk]
        total += target[first : first + chunk] @ np.subtract(part, centre, out=space[: len(part)])
    return total
