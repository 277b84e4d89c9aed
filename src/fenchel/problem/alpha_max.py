r"""The largest useful alpha: from there on the penalised part of the answer is zero.

At the best w that the penalty does not see, let the gradient of the mean loss be -B y. That w stays the answer as long
as some such y lies in alpha times the subdifferential of psi at 0, so that

.. math:: \alpha_{\max} = \min_{B y = c} \gamma(y) = \max_w \frac{c^\top w}{\psi(B^\top w)}

where :math:`\gamma` is the gauge of that subdifferential (of a norm, the dual norm). Where B is injective there is one
such y. Otherwise, for a guess t, accelerated projections look for the point of t times the subdifferential that is
closest to the y with B y = c. Its own projection there is such a y, which bounds alpha_max from above, and the way
between the two is B'w for a w that bounds it from below; the next guess lies between the bounds.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Flags, Ints
from ..foundation.interrupts import interrupts_noticed
from ..foundation.numerics import BALANCED
from ..maps import Gram
from .bounds import NoCertificate
from .kinks import TIGHT, Kinks, kinks
from .problem import Problem
from .row_balance import best_free
from .unpenalised import best_unpenalised

if TYPE_CHECKING:
    from ..penalties.compile import Block

_MOST, _MOST_SLOW = 600, 20  # projections, and those that need conjugate gradients; more: longer, a little tighter


@dataclasses.dataclass
class ZeroAnswer:
    """The answer whose penalised part is zero: B'w = 0. It is one from `alpha` on, and (w, x, y) prove it there."""

    alpha: float
    w: Array
    x: Array
    y: Array


def zero_answer(problem: Problem, *, refine: bool = True, enough: float = math.inf) -> ZeroAnswer:
    """The largest useful alpha, with its answer.

    The smallest alpha with B'w = 0 where B is injective, otherwise a bound from above, close to it; infinite where no
    alpha will do. Raises ValueError where it cannot be found. Without `refine` a bound is not brought down by a look at
    all dual variables, as it is where many rows sit at a kink of the loss. Once the largest useful alpha is known to
    lie above `enough`, the search for it ends.
    """
    with interrupts_noticed() as caught:
        try:
            return _zero_answer(problem, refine, enough)
        finally:
            if caught:  # Python may have swallowed it, and what was found is then not to be trusted
                raise KeyboardInterrupt


def _zero_answer(problem: Problem, refine: bool, enough: float) -> ZeroAnswer:
    unit = problem.with_alpha(1.0)
    try:
        w, scores, x = unit.unpenalised_answer() if unit.pooled else _unpenalised_answer(unit)
        near, rows = _seen_from_zero(unit)
        y = np.zeros(unit.d)
        if (
            near is None or rows is None or _null_count(near) > _null_count(unit)
        ):  # what only quadratics see never becomes zero
            return ZeroAnswer(math.inf, w, x, y)
        slopes = near.gradient_sum(x)
        if np.all(np.abs(slopes[near.feature_slots]) <= BALANCED * near._row_sums * near._length(x)):
            return ZeroAnswer(0.0, w, x, y)  # no feature sees anything that is left
        start, _ = near._repair(x, np.zeros(near.d), slopes)
    except NoCertificate as why:
        raise ValueError(f"alpha_max could not be found ({why}); choose alpha yourself") from why
    bounds = _Bounds(near, start / near.n)
    bounds.tighten(enough)
    y[rows] = near.n * bounds.best
    answer = ZeroAnswer(bounds.upper, w, x, y)
    if refine and 0 < bounds.upper < math.inf:
        _over_kinks(near, answer, rows, scores)
    return answer


def _null_count(problem: Problem) -> int:
    out: int = problem.gram.unseen.size + problem.gram.blind.shape[1]
    return out


def _unpenalised_answer(problem: Problem) -> tuple[Array, Array, Array]:
    """The best w that the penalty does not see, its scores and its x: the answer of a problem with few columns."""
    if problem._free_count == 0:
        scores = np.zeros(problem.visits)
        return np.zeros(problem.size), scores, problem.slopes_at(scores)
    if problem.loss.coupled:
        w, scores, x = best_free(problem)
        return w, scores, problem._balance(x, problem.gradient_sum(x))[0]
    directions, along = problem._free
    weight = np.repeat(problem.weight, problem.layout[0]) if problem.weight.size else problem.weight
    coef, x = best_unpenalised(along, problem.target, problem.loss, weight, problem.offset)
    scores = along @ coef
    if not problem.loss.attained and problem.mean_loss(scores) <= 1e-6 * problem.mean_loss(np.zeros(problem.visits)):
        raise NoCertificate("the columns without penalty separate the rows, so that there is no best answer")
    return directions @ coef, scores, problem._balance(x, problem.gradient_sum(x))[0]


def _over_kinks(near: Problem, answer: ZeroAnswer, rows: Ints, scores: Array) -> None:
    """Lower the alpha of an answer by looking at all its dual variables, where kinks of the loss leave a choice."""
    if not near.loss.kinked or near.loss.coupled or near.pooled:  # a pool has no single rows to look at
        return
    low, high, at_kink = kinks(near, scores)
    if np.count_nonzero(at_kink) <= near._free[1].shape[1] or not all(b.function.homogeneous for b in near.blocks):
        return
    low, high = np.where(at_kink, low, answer.x), np.where(at_kink, high, answer.x)
    search = Kinks(near, answer.x, answer.y[rows], low, high)
    search.tighten()
    bounds = _Bounds(near, search.y)
    bounds.tighten(math.inf)  # the best y for that x
    if bounds.upper < answer.alpha:
        answer.alpha, answer.x = bounds.upper, search.x
        answer.y[rows] = near.n * bounds.best


def _seen_from_zero(unit: Problem) -> tuple[Problem, Ints] | tuple[None, None]:
    """The problem with its blocks as they look from 0, without quadratics and bounds elsewhere, and the rows it keeps.

    None where 0 is out of bounds.
    """
    blocks, rows = [], []
    for block, first, last in unit._parts():
        function, kept = block.function.at_zero(), np.arange(first, last)
        if function is None:
            return None, None
        alive = function.pulled_at_zero(block.d)
        if not alive.any():  # flat at 0, as a square is
            continue
        if not alive.all():
            function, kept = function.restricted(np.flatnonzero(alive)), kept[alive]
            block = dataclasses.replace(block, matrix=block.matrix[alive])
        blocks.append(dataclasses.replace(block, function=function, ridge=0.0))
        rows.append(kept)
    return unit._with_blocks(blocks), np.concatenate([np.zeros(0, dtype=np.int64), *rows])


class _Bounds:
    """Bounds on the smallest gauge of a y with a given B y.

    Coordinates are measured in units of their size in the subdifferential, so that those of a small weight count.
    """

    def __init__(self, problem: Problem, y: Array) -> None:
        self.problem = problem
        self.parts = list(problem._parts())
        self.unit = np.concatenate([b.scale * b.function.radius(b.d) for b in problem.blocks] or [np.ones(0)])
        self.y = y / self.unit
        self.upper, self.lower, self.best = self._gauge(y), 0.0, y

    def tighten(self, enough: float) -> None:
        problem = self.problem
        homogeneous = all(block.function.homogeneous for block in problem.blocks)
        rank = problem.map.shape[1] - _null_count(problem)
        if problem.d == rank or not self.upper or not homogeneous:
            return
        self.map = sp.csr_array(sp.diags_array(self.unit) @ problem.map)
        self.adjoint = sp.csr_array(self.map.T)
        self.gram = problem.gram if np.all(self.unit == 1) else Gram(self.map)
        # coordinates with a bound of zero on one side only cannot take up what a projection is off by
        self.takes = np.concatenate([_takes(block) for block in problem.blocks])
        self.mends = None if self.takes.all() else Gram(self.map[self.takes])
        self._search(_MOST if problem.gram.direct else _MOST_SLOW, enough)

    def _search(self, most: int, enough: float) -> None:
        self._look(self.y)
        point = ahead = self.y
        speed = 1.0
        for _ in range(most):
            if self.upper <= self.lower * (1 + TIGHT) or self.lower > enough:
                break
            at = ahead - self.map @ self._slope(ahead)
            new = at - self._prox(at, self._guess())
            self._look(new)
            faster = 0.5 * (1 + math.sqrt(1 + 4 * speed * speed))
            # where the last step went back, begin anew
            push = 0.0 if (ahead - new) @ (new - point) > 0 else (speed - 1) / faster
            ahead, point, speed = new + push * (new - point), new, faster if push or speed == 1 else 1.0

    def _guess(self) -> float:
        if not np.isfinite(self.upper):
            return 2 * self.lower if self.lower > 0 else float(np.abs(self.y).max())
        return math.sqrt(self.lower * self.upper) if self.lower > 0 else 0.9 * self.upper

    def _slope(self, point: Array) -> Array:
        """w with B'w the shortest way from a y that is wanted to the point."""
        return self.gram.solve(self.adjoint @ (point - self.y))

    def _look(self, point: Array) -> None:
        """Bounds from a point of a multiple of the subdifferential."""
        off = self.adjoint @ (point - self.y)
        across = -(self.map @ self.gram.solve(off))
        value = sum(b.scale * b.function.value((across / self.unit)[i:j]) for b, i, j in self.parts)
        if 0 < value < math.inf:
            self.lower = max(self.lower, float(self.y @ across) / value)
        y = point + across
        if self.mends is not None:
            y = point.copy()
            y[self.takes] -= self.map[self.takes] @ self.mends.solve(off)
            size = abs(self.adjoint) @ (np.abs(y) + np.abs(self.y))
            if np.any(np.abs(self.adjoint @ (y - self.y)) > 1e-9 * size):
                return
        y = self.unit * y
        gauge = self._gauge(y)
        if gauge < self.upper:
            self.upper, self.best = gauge, y

    def _gauge(self, y: Array) -> float:
        return max((block.zero_gauge(y[i:j]) for block, i, j in self.parts), default=0.0)

    def _prox(self, point: Array, t: float) -> Array:
        point, out = self.unit * point, np.empty_like(point)
        for block, i, j in self.parts:
            out[i:j] = block.prox(point[i:j], np.full(j - i, t * block.scale))
        result: Array = out / self.unit
        return result


def _takes(block: Block) -> Flags:
    weights = block.function.entry_weights(block.d)
    return np.ones(block.d, dtype=bool) if weights is None else weights > 0
