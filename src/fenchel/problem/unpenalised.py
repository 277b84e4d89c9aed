r"""The best answer among few directions that carry no penalty: min over c of the weighted sum of f(a_i'c + o_i; t_i).

Where the loss has slopes everywhere this is Newton's method with a line search. Where it has kinks, the augmented
Lagrangian of the dual problem (max over x of the sum of -(s f)*(x), A'x = 0) has them smoothed,

.. math:: \varphi(c) = \max_x \; x^\top (A c + o) - \sum_i (s_i f)^*(x_i) - \frac{1}{2\sigma} \|x - x_k\|^2,

and the same steps find its minimum: the slope of phi at c is A'x, where x is the dual step of the loss at
x_k + sigma (A c + o). With x as the next x_k and a larger sigma this ends after a few rounds; for losses made of
straight pieces at the answer itself.

Symbols: A the data along the directions; c coefficients; x dual variables; s weights; o offsets; sigma the Lagrangian's
weight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from .._validate import Array
from ..foundation.numerics import ARMIJO, BALANCED, DIFFERENCE, DIGITS, NEWTON_STEPS, ROUNDING
from ..losses import Loss

GROWTH = 4.0  # of sigma, from round to round; larger: fewer rounds, each of them harder

Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray, np.ndarray]]


def best_unpenalised(A: Array, target: Array, loss: Loss, weight: Array, offset: Array) -> tuple[Array, Array]:
    """The coefficients c, and dual variables x with A'x = 0 up to rounding; an empty `weight` counts as ones, an empty
    `offset` as zeros."""
    known: Array | float = offset if offset.size else 0.0
    if loss.across_rows:
        coupled: Any = loss
        best: tuple[Array, Array] = coupled.along(A, np.zeros(len(A)) + known, target, weight)
        return best
    span = _Span(A)
    along, x = _best_along(span.basis, target, loss, weight, known)
    return span.coefficients(along), x


class _Span:
    """What columns span, by columns of length 1 at right angles. Those given may be in any units, or equal."""

    def __init__(self, A: Array) -> None:
        lengths = np.sqrt(np.einsum("ij,ij->j", A, A))
        self._lengths = np.where(lengths > 0, lengths, 1.0)
        basis, corner, self._order = scipy.linalg.qr(A / self._lengths, mode="economic", pivoting=True)
        size = np.abs(np.diagonal(corner))
        rank = int(np.count_nonzero(size > DIGITS * size.max(initial=0.0)))
        self.basis, self._corner = np.ascontiguousarray(basis[:, :rank]), corner[:rank, :rank]

    def coefficients(self, along: Array) -> Array:
        """Of the columns, for the same point of the span."""
        out, rank = np.zeros(len(self._order)), len(along)
        out[self._order[:rank]] = scipy.linalg.solve_triangular(self._corner, along)
        return out / self._lengths

    def sums(self, wanted: Array) -> Array:
        """Sums along the basis, for sums along the columns."""
        first = self._order[: len(self._corner)]
        return np.asarray(scipy.linalg.solve_triangular(self._corner, (wanted / self._lengths)[first], trans="T"))


def _best_along(A: Array, target: Array, loss: Loss, weight: Array, known: Array | float) -> tuple[Array, Array]:
    """The same for columns of length 1 at right angles, from scores of zero."""
    c = np.zeros(A.shape[1])
    if not loss.kinked:
        steepest = (loss.smoothness or 0.0) * float(weight.max(initial=1.0))
        return _newton(A, lambda score: loss.sums(score + known, target, weight), c, steepest)
    weight = weight if weight.size else np.ones(len(target))
    low, high = loss.domain(target)
    x = weight * np.clip(0.0, low, high)
    sigma = float(np.mean(weight) / (1.0 + np.abs(target).mean()))
    for _ in range(NEWTON_STEPS):
        smoothed = _smoothed(loss, target, weight, x, sigma)
        c, x = _newton(A, lambda score, smoothed=smoothed: smoothed(score + known), c, sigma)  # type: ignore[misc]
        primal = float(weight @ np.where(weight > 0, loss.value(A @ c + known, target), 0.0))
        if primal + _conjugate(loss, x, target, weight) - float(np.sum(known * x)) <= DIGITS * abs(primal):
            break
        sigma *= GROWTH
    return c, x


def _smoothed(loss: Loss, target: Array, weight: Array, centre: Array, sigma: float) -> Evaluate:
    """phi, its slopes x and its curvatures, from the scores."""
    curvature = np.full(len(target), 1.0 / sigma)

    def step(score: Array) -> Array:
        return np.asarray(loss._weighted_step(centre + sigma * score, curvature, target, weight))

    def evaluate(score: Array) -> tuple[float, Array, Array]:
        x = step(score)
        h = DIFFERENCE * (1.0 + np.abs(score))
        bend = np.clip((step(score + h) - step(score - h)) / (2 * h), 0.0, sigma)
        away = x - centre
        value = float(x @ score) - _conjugate(loss, x, target, weight) - float(away @ away) / (2 * sigma)
        return value, x, bend

    return evaluate


def _conjugate(loss: Loss, x: Array, target: Array, weight: Array) -> float:
    some = weight > 0
    return float(weight[some] @ loss.conjugate(x[some] / weight[some], target[some]))


def projected(x: Array, A: Array, wanted: Array, low: Array, high: Array) -> Array:
    """The point of a box that is closest to x and adds up to what is wanted along the columns of A, by the dual problem

    .. math:: \\min_c \\; \\sum_i \tfrac12 u_i^2 - \tfrac12 (u_i - P(u_i))^2 - w^\top c
              \\quad\text{where}\\quad u = x + A c,

    whose slope is A'P(u) - w. As close as a hundred steps of Newton's method get; where no point of the box does, the
    sums of what is returned are not those.
    """

    def evaluate(score: Array) -> tuple[float, Array, Array]:
        at = x + score
        inside = np.clip(at, low, high)
        return float(inside @ (at - 0.5 * inside)), inside, ((low < at) & (at < high)).astype(float)

    span = _Span(A)
    return _newton(span.basis, evaluate, np.zeros(span.basis.shape[1]), 1.0, span.sums(wanted))[1]


def _newton(
    A: Array, evaluate: Evaluate, c: Array, steepest: float, wanted: Array | float = 0.0
) -> tuple[Array, Array]:
    """The c that makes a convex function of the scores A c, less wanted'c, small, and the function's slopes there.

    Damping grows until the function falls. It is measured in units of the largest curvature that a row can have,
    `steepest`, with which it always falls; of the largest one at hand where that is not known (0).
    """
    value, slope, bend = evaluate(A @ c)
    value -= float(np.sum(wanted * c))
    gradient, size = A.T @ slope - wanted, np.abs(A).T
    damping = ROUNDING
    for _ in range(NEWTON_STEPS):
        if np.all(np.abs(gradient) <= BALANCED * (size @ np.abs(slope))):
            break
        largest = steepest or float(bend.max(initial=0.0))
        taken = None
        while taken is None and damping < 1e12:
            matrix = A.T @ ((bend + damping * largest)[:, None] * A)
            move = -np.linalg.lstsq(matrix, gradient, rcond=None)[0]
            foreseen = -float(gradient @ move)
            with np.errstate(over="ignore", invalid="ignore"):
                made = evaluate(A @ (c + move))
            reached = made[0] - float(np.sum(wanted * (c + move)))
            fell = reached <= value - ARMIJO * foreseen
            # where rounding hides the fall of the function its slope tells
            tiny = foreseen <= DIGITS * abs(value) and np.linalg.norm(A.T @ made[1] - wanted) < np.linalg.norm(gradient)
            if (fell and foreseen > 0) or tiny:
                taken = move
            else:
                damping = max(10.0 * damping, 1e-6)
        if taken is None:
            break
        c, damping = c + taken, max(0.1 * damping, ROUNDING)
        value, (_, slope, bend) = reached, made
        gradient = A.T @ slope - wanted
    return c, slope
