r"""The method of multipliers for losses that see several scores of a row together; see ``multipliers.py``.

The curvature of a row, and of the envelope of a loss over the simplex where that has kinks, is
:math:`\mathrm{diag}(h) - h h^\top / \sum h`, see ``losses/several.py``: for the softmax h are the probabilities, and
for a projection onto the simplex h is one number for all classes that keep a share. That is the Laplacian of a graph of
the classes with the weights :math:`c_{kl} = h_k h_l / \sum h`, so that the curvature of all coefficients is made of
:math:`C_{kl} = \sum_i c_{kl,i} z_i z_i^\top`, one for every pair of classes: each is added to the blocks of both and
taken off the block between them. Rows of which one class alone is left have none.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._validate import Array, Index
from ...problem import Problem
from ..lower_gram import lower_gram
from .multipliers import Multipliers


class JointMultipliers(Multipliers):
    """The method for one problem with such a loss. A run goes on where the last one ended, with its steps, as long as
    these gain something: between epochs it has few Newton steps at a time, too few to begin anew every time."""

    ended: Any = None
    goes_on = False

    def run(self, w: Array, x: Array, y: Array, *, tol: float, steps: int) -> Any:
        made: Any = super()
        before = math.inf
        if self.goes_on:
            w, x, y, before = self.ended.w, self.ended.x, self.ended.y, self.ended.made.gap
        self.ended = point = made.run(w, x, y, tol=tol, steps=steps)
        self.goes_on = point.made is not None and point.made.gap < before
        return point

    def _first_steps(self) -> None:
        if not self.goes_on:
            made: Any = super()
            made._first_steps()

    def _rows(self, scores: Array, *, bend: bool = False) -> Any:
        problem: Any = self.problem
        made: Any = super()
        loss, step = problem.loss, made._dual_step
        if not loss.kinked:
            return made._rows(scores, bend=bend)
        x = step(self.r * problem.seen(scores) + self.x)
        return (x, loss.reached(x, problem.target, self.weights, self.r)) if bend else x

    def _add_loss_curvature(self, bend: Array, matrix: Array) -> None:
        add_pairs(self.problem, bend.reshape(self.problem.n, -1), matrix)


def add_pairs(problem: Problem, h: Array, matrix: Array) -> None:
    """Add the curvature for h (rows, classes) to the lower triangle of a matrix of all coefficients."""
    total, size = h.sum(axis=1), problem.p + 1
    blocks = [slice(first, first + size) for first in range(0, problem.size, size)]
    for k in range(1, problem.vectors):
        mine = np.flatnonzero(h[:, k])
        for other in range(k):
            rows = mine[h[mine, other] > 0]
            if rows.size:
                pair = _pair(problem, rows, h[rows, k] / total[rows] * h[rows, other])
                matrix[blocks[k], blocks[k]] += pair
                matrix[blocks[other], blocks[other]] += pair
                matrix[blocks[k], blocks[other]] -= pair + np.tril(pair, -1).T


def _pair(problem: Problem, rows: Index, weights: Array) -> Array:
    """The lower triangle of the sum of weights_i z_i z_i' over some rows, zeros above it."""
    p = problem.p
    out = np.zeros((p + 1, p + 1))
    if problem.data.sparse:
        from ...kernels.newton import sparse_curvature

        bend = np.zeros(problem.n)
        bend[rows] = weights
        sparse_curvature(*problem.data.arrays, (1, p + 1, np.zeros(0, dtype=np.int64), p), bend, out)
        if not problem.fit_intercept:
            out[p], out[:, p] = 0.0, 0.0
        return np.tril(out) + np.triu(out, 1).T  # the entries of a row may stand in any order
    X = problem.data.arrays[0]
    X = X if rows.size == problem.n else X[rows]
    out[:p, :p] = lower_gram(X, weights)
    if problem.fit_intercept:
        out[p, :p], out[p, p] = weights @ X, weights.sum()
    return out
