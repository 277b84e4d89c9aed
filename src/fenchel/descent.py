r"""Descent over coordinates and groups, for the squared loss.

Its curvature is the same everywhere: :math:`H = \tfrac1n X^\top D X` is made once, in one pass, and from then on a
sweep over all units of the penalty reads H instead of the data (the covariance updates of Friedman, Hastie and
Tibshirani, 2010). That is quick where the columns are not too many for H, and the penalty is a sum over units that
share no feature.

H is made in single precision where that saves time. Each answer's exact gradient is the start of the next model, so
that rounding in H costs a pass over the data and nothing else. Nothing is believed without a certificate.
"""

from __future__ import annotations

import functools
import math
import time

import numpy as np

from ._gram import lower_gram
from .losses import Squared
from .manifold import Point
from .penalties import GroupL2, Separable
from .problem import Problem
from .solver.convergence import Convergence
from .solver.prices import descent_nanoseconds, descent_row_nanoseconds

_WIDEST, _SHARE = 2000, 0.25  # features: so many, and of the rows: H must be small beside the data
_SINGLE = 256  # features from which H is made in single precision
_CENTRED = 0.5  # of a column's mean square, the square of its mean: above it single precision would not do
_MODELS = 6  # from exact gradients, each after the one before
_GAINS = 0.3  # of the gap: what a model must leave at the most, for another one
_ACCURACY = 0.03  # of tol: slopes that a model may leave, relatively


def applies(problem: Problem) -> bool:
    """Whether the loss is the squared one, and every feature stands in one unit of the penalty, alone there or not."""
    if type(problem.loss) is not Squared or not problem.single or problem.d != problem.p:
        return False
    if problem.p > min(_WIDEST, _SHARE * problem.n) or not all(_simple(block.function) for block in problem.blocks):
        return False
    return problem.map.nnz == problem.d and problem.gram.is_diagonal and bool(np.all(problem.gram.diagonal > 0))


def _simple(function):
    return type(function) in (Separable, GroupL2)


class Descent:
    """The method for one problem; see :meth:`run`."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.deadline = math.inf  # by the clock of time.perf_counter
        self.passes, self.slow = 0.0, False
        self.feature, self.entry = problem.map.indices, problem.map.data

    @property
    def nanoseconds(self) -> float:
        """What H and the answer from it cost, by a model."""
        return descent_nanoseconds(self.problem, single=self.problem.p >= _SINGLE)

    def many(self, u) -> bool:
        """Whether most units of the penalty play a part in u."""
        active = np.add.reduceat(u * u, self._units()[0][:-1]) > 0
        return np.count_nonzero(active) > 0.5 * active.size

    def _coordinates(self, w):
        return self.entry * w[self.problem.feature_slots][self.feature]

    def run(self, w, *, tol: float) -> Point | None:
        """The best point that models from w on lead to; None where numbers are not finite."""
        self.passes = 0.0
        best = self._models(w.copy(), tol, self._curvature(np.float32 if self._single else float))
        if best is not None:
            best.passes = self.passes
        return best

    @property
    def _single(self):
        """Whether single precision will do: H is large, and centring does not cancel what counts."""
        problem = self.problem
        if problem.p < _SINGLE or problem.data.sparse:
            return False
        if not problem.fit_intercept:
            return True
        return bool(np.all(self._means[0] ** 2 <= _CENTRED * np.maximum(problem.data.mean_squares, 1e-300)))

    def _curvature(self, dtype):
        """H in the coordinates of B'w, without what an intercept takes care of; kept for problems on the same data with
        the same weights."""
        kept, key = self.problem._of_weights, f"curvature {np.dtype(dtype)}"
        self.passes += 1.0  # whether it is there or not: the same run has the same numbers
        if key not in kept:
            kept[key] = self._make_curvature(dtype)
        return kept[key]

    def _make_curvature(self, dtype):
        from .kernels.descent import mirror
        from .kernels.newton import sparse_curvature

        problem, p = self.problem, self.problem.p
        bend = self._bend()
        if problem.data.sparse:
            whole = np.zeros((problem.size, problem.size))
            sparse_curvature(*problem.data.arrays, problem.layout, bend, whole)
            H = whole[:p, :p] + whole[:p, :p].T
            H[np.diag_indices(p)] /= 2
        else:
            H = lower_gram(problem.data.arrays[0], bend, np.zeros((p, p), dtype, order="F")).T
            mirror(H)
        if problem.fit_intercept:
            mean, total = self._means
            H -= (total * np.outer(mean, mean)).astype(H.dtype)
        if not np.array_equal(self.feature, np.arange(p)):
            H = H[np.ix_(self.feature, self.feature)]
        if np.any(self.entry != 1.0):
            H /= np.outer(self.entry, self.entry).astype(H.dtype)
        return H

    def _bend(self):
        """The second derivative of the loss, divided by n, for every row."""
        return np.broadcast_to(self.problem._weights() / self.problem.n, self.problem.n).copy()

    @functools.cached_property
    def _means(self):
        """Weighted means of the columns, and the sum of the weights over n."""
        problem, sums = self.problem, self.problem.combine(self._bend())
        total = sums[problem.intercept_slots[0]]
        return sums[problem.feature_slots] / total, total

    # -- models -------------------------------------------------------------------------------------

    def _models(self, w, tol, H):
        """Models on H from w on, each at the exact gradient of the one before; the best point with its certificate."""
        from .kernels.descent import bounds_of_units, descend

        problem, rule = self.problem, Convergence.of(self.problem, tol)
        starts, weight, lower, upper, ridge = self._units()
        u = self._coordinates(w)
        H = H.copy() if ridge.any() else H
        H[np.diag_indices_from(H)] += ridge.astype(H.dtype)
        bend = np.empty(starts.size - 1)
        bounds_of_units(H, starts, bend)
        space = np.empty((2, int(np.diff(starts).max(initial=1))))
        best, point = None, self._look(w, self._scores(w), u)
        for _ in range(_MODELS):
            slope = point.zx[problem.feature_slots][self.feature] / (problem.n * self.entry) + ridge * u
            scale = max(weight.max(initial=0.0), 1e-3 * np.abs(slope).max(initial=0.0), 1e-300)
            enough = max(_ACCURACY * tol, 1e-14) * scale
            self.slow = not descend(H, slope, u, starts, weight, lower, upper, bend, enough, self._rows, *space)
            w = np.zeros(problem.size)
            w[problem.feature_slots[self.feature]] = u / self.entry
            w[problem.intercept_slots] = point.w[problem.intercept_slots]
            point = self._look(w, self._scores(w), u)
            if not np.isfinite(point.primal):
                break
            point.made = problem.certificate(point, fresh=False, primal=point.primal)
            gap = np.inf if best is None else best.made.relative_gap
            if best is None or point.made.relative_gap < gap:
                best = point
            if rule.reached(best.made) or not point.made.relative_gap <= _GAINS * gap or self.slow:
                break
            if time.perf_counter() > self.deadline:
                break
        return best

    @property
    def _rows(self):
        """Of H, that a model may read: they cost about as much as all else. If they will not do, others are faster."""
        return self.nanoseconds / descent_row_nanoseconds(self.problem)

    def _units(self):
        """Where they begin; weights and bounds of units, and the quadratic of every coordinate."""
        starts, weight, lower, upper, ridge = [], [], [], [], []
        for block, first, last in self.problem._parts():
            function = block.function
            single = type(function) is Separable
            begin = np.arange(block.d) if single else function.bounds[:-1]
            starts.append(first + begin)
            weight.append(block.scale * function.weights)
            lower.append(function.lower if single else np.full(begin.size, -np.inf))
            upper.append(function.upper if single else np.full(begin.size, np.inf))
            ridge.append(np.full(last - first, block.ridge))
        starts.append([self.problem.d])
        joined = [np.concatenate(part) for part in (starts, weight, lower, upper, ridge)]
        return joined[0].astype(np.int64), *(part.astype(float) for part in joined[1:])

    def _scores(self, w):
        """Of w with the best intercept, which is written to w."""
        problem = self.problem
        scores = problem.scores(w) if w.any() else np.zeros(problem.visits)
        self.passes += 0.5 if w.any() else 0.0
        if problem.fit_intercept:
            bend = self._bend()
            shift = float(bend @ (problem.target - scores)) / bend.sum()
            scores += shift
            w[problem.intercept_slots] += shift
        return scores

    def _look(self, w, scores, u):
        """w with its dual variables: those of the rows are slopes of the loss, the others what they leave."""
        problem = self.problem
        x = problem._gradient(scores)
        zx = problem.gradient_sum(x)
        self.passes += 0.5
        y = -zx[problem.feature_slots][self.feature] / self.entry
        primal = problem.mean_loss(scores) + problem.penalty_value(u)
        return Point(w, x, y, zx, u.copy(), primal)
