r"""What the squared loss leaves of the data of tasks and outputs: Gram matrices, and covariances with the targets.

.. math:: \frac1n \sum_i \tfrac{s_i}{2} (z_i^\top w + b - t_i)^2
          = \sum_v \tfrac12 w_v^\top G_v w_v - c_v^\top w_v + \tfrac12 \sigma_v \quad\text{at the best intercepts}

Objective, dual bound and everything between follow from these, so that the data are read once. Sums over many rows are
wrong by rounding; :meth:`Moments.slack` bounds what that may do to a lower bound.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..prices import Prices
from ..problem import Problem
from ..problem.rounding import STEPS, UNIT
from .curvatures.blocks import BlockGram, TaskRows, has_tasks
from .lower_gram import ENTRIES
from .parts import Vector


@dataclasses.dataclass(frozen=True)
class Moments:
    """See the head of this file; `gram` holds G with the centres, `mean` the targets' means."""

    gram: BlockGram
    with_target: Vector
    variance: Vector
    mean: Vector
    rows: int

    def gradient(self, each: Vector) -> Vector:
        """G_v w_v - c_v, for w (vectors, p) without intercepts."""
        return np.asarray(self.gram.images(each) - self.with_target)

    def loss(self, each: Vector, gradient: Vector) -> float:
        """The mean loss there, of which the gradient is known."""
        return 0.5 * (float(np.sum(each * (gradient - self.with_target))) + float(self.variance.sum()))

    def with_intercepts(self, each: Vector) -> Vector:
        """w with the best intercepts, flat."""
        w = self.gram.with_intercepts(each)
        if self.gram.problem.fit_intercept:
            w.reshape(len(each), -1)[:, -1] += self.mean
        return w

    def spread(self, each: Vector) -> tuple[float, Vector]:
        """By how much rounding may change the mean loss at w, and its gradient (vectors, p).

        A sum over n rows of products a_i b_i is wrong by at most n units in the last place of |a| |b|, and it may be:
        where all terms are equal, so are their errors.
        """
        error = UNIT * (self.rows + each.shape[1] + STEPS)
        size = np.sqrt(self.gram.diagonal)
        reach = np.sqrt(self.variance) + np.sum(np.abs(each) * size, axis=1)
        return error * float(reach @ reach), error * size * reach[:, None]


def moments(problem: Problem, prices: Prices) -> Moments:
    """Those of a problem with the squared loss."""
    gram, n, V = BlockGram(problem, prices, exact=True), problem.n, problem.vectors
    outputs = problem.layout[0]
    weight = problem.weight if problem.weight.size else np.ones(n)
    gram.make(np.repeat(weight, outputs))
    target, mean, data = problem.target.reshape(n, -1), np.zeros(V), problem.data
    if has_tasks(problem):
        task = TaskRows.of(problem).task
        flat = target[:, 0]
        if problem.fit_intercept:
            mean = np.bincount(task, weight * flat, V) / np.maximum(np.bincount(task, weight, V), 1e-300)
            flat = flat - mean[task]
        variance = np.bincount(task, weight * flat * flat, V) / n
        found = _by_task(problem, gram, weight * flat / n)
    else:
        if problem.fit_intercept:
            mean = weight @ target / n
            target = target - mean
        variance = weight @ np.square(target) / n
        scaled = target * (weight / n)[:, None]
        if data.sparse:
            found = problem.combine(np.ascontiguousarray(scaled).ravel()).reshape(V, -1)[:, :-1].copy()
            found -= gram.centre * scaled.sum(axis=0)[:, None]
        else:
            found, chunk = np.zeros((V, problem.p)), max(32, ENTRIES // problem.p)
            for first in range(0, n, chunk):
                part = data.dense[first : first + chunk]
                part = part - gram.centre[0] if problem.fit_intercept else part.astype(float, copy=False)
                found += scaled[first : first + chunk].T @ part
    return Moments(gram, found, variance, mean, n)


def _by_task(problem: Problem, gram: BlockGram, scaled: Vector) -> Vector:
    """(X_v - centre_v)' scaled_v for every task."""
    found = np.empty((problem.vectors, problem.p))
    if problem.data.sparse:
        sums = problem.combine(scaled).reshape(problem.vectors, -1)
        return np.asarray(sums[:, :-1] - gram.centre * sums[:, -1:])
    X = problem.data.dense
    for k, rows in enumerate(TaskRows.of(problem)):
        found[k] = scaled[rows] @ np.subtract(X[rows], gram.centre[k], dtype=float)
    return found
