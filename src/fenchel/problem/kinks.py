r"""The largest useful alpha where many rows sit at a kink of the loss, so that the dual variables are not unique.

At the best answer that the penalty does not see, every row allows an interval of slopes x_i. Each x within them whose
sums along the free directions are zero is a dual answer, and alpha_max is the smallest gauge that one of them needs:

.. math:: \alpha_{\max} = \min_{x, y} \; \gamma(y) \quad\text{where}\quad Z x / n + B y = 0, \; x_i \in [l_i, h_i]
          \;=\; \max_w \min_{x} \frac{-x^\top Z^\top w / n}{\psi(B^\top w)}.

For a guess t, accelerated projected gradients bring Z x / n + B y close to zero for x in its intervals and y in t times
the subdifferential of psi at 0. Each x on the way, repaired, bounds alpha_max from above, the residual is a w that
bounds it from below, and the next guess lies between the bounds.

Symbols: x slopes of the rows; y dual variables of the penalty, divided by n; w the residual, as a direction.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Flags
from ..foundation.numerics import LITTLE, POWER
from ..kernels.rules import LOOK
from ..maps import Gram
from .bounds import NoCertificate

if TYPE_CHECKING:
    from .problem import Problem

_WIDTH = 1e-6  # of a score: how far to both sides of it the slopes of a kink are read; larger: others count as kinks
TIGHT = 0.005  # relative distance of the bounds of alpha_max at which to stop; larger: paths begin with empty answers
_MOST = 3000  # projected gradients, two passes over the data each; more: longer, a little tighter


def kinks(problem: Problem, scores: Array) -> tuple[Array, Array, Flags]:
    """The slopes that every row allows, from and to, and which rows sit at a kink."""
    width = _WIDTH * (1 + np.abs(scores))
    low, high = (problem.slopes_at(scores + side * width) for side in (-1.0, 1.0))
    return low, high, high - low > LITTLE


class Kinks:
    """Bounds on alpha_max over all dual answers x.

    Parameters
    ----------
    problem : Problem
        With its blocks as they look from zero; see ``alpha_max.py``.
    x, y : arrays
        A dual answer, and y with Z x + B y = 0.
    low, high : arrays
        The slopes that the rows allow; the same twice for rows at no kink.
    """

    def __init__(self, problem: Problem, x: Array, y: Array, low: Array, high: Array) -> None:
        self.problem, self.low, self.high = problem, np.minimum(low, x), np.maximum(high, x)
        self.x, self.y = x, y / problem.n
        self.upper, self.lower = problem.gauge(self.y), 0.0
        self.parts = list(problem._parts())
        self.unit = np.concatenate([block.scale * block.function.radius(block.d) for block in problem.blocks])
        self.map = sp.csr_array(sp.diags_array(self.unit) @ problem.map)
        self.gram = Gram(self.map)
        self.free = problem._free[0]

    def tighten(self) -> None:
        """Projected gradients until the bounds meet; `upper`, and `x` and `y` that prove it, are the result."""
        problem = self.problem
        self.weight = self._weights()
        x, y = self.x.copy(), self.y / self.unit
        ahead_x, ahead_y, speed = x, y, 1.0
        for k in range(_MOST):
            if self.upper <= self.lower * (1 + TIGHT):
                break
            guess = math.sqrt(self.lower * self.upper) if self.lower > 0 else 0.7 * self.upper
            across, w = self._residual(ahead_x, ahead_y)
            scores = problem.scores(w)
            self._bound_below(w, scores)
            new_x = np.clip(ahead_x - scores / (problem.n * self.step), self.low, self.high)
            at = self.unit * (ahead_y - 0.5 * across)
            for block, i, j in self.parts:
                at[i:j] -= block.prox(at[i:j], np.full(j - i, guess * block.scale))
            new_y = at / self.unit
            back = (ahead_x - new_x) @ (new_x - x) * self.step + 2 * (ahead_y - new_y) @ (new_y - y) > 0
            faster = 0.5 * (1 + math.sqrt(1 + 4 * speed * speed))
            push = 0.0 if back else (speed - 1) / faster
            ahead_x, ahead_y = new_x + push * (new_x - x), new_y + push * (new_y - y)
            x, y, speed = new_x, new_y, 1.0 if back else faster
            if k % LOOK == 0:
                self._bound_above(x, self.unit * y)

    def _residual(self, x: Array, y: Array) -> tuple[Array, Array]:
        """What is left of Z x / n + B y: its least-squares image in y, and the direction w that it is the slope of."""
        problem = self.problem
        left = problem.gradient_sum(x) / problem.n
        own = left[problem.feature_slots] + self.map.T @ y
        along = self.gram.solve(own)
        w = np.zeros(problem.size)
        w[problem.feature_slots] = along
        if self.free.shape[1]:
            w += self.free @ (self.weight * (self.free.T @ left))
        return self.map @ along, w

    def _weights(self) -> Array:
        """How much the sums along the free directions count: as much as all the others. Sets `step`, too."""
        problem, rng = self.problem, np.random.default_rng(0)
        moves = self.high > self.low
        counts = []
        for penalised in (True, False):
            x, size = np.where(moves, rng.standard_normal(problem.visits), 0.0), 0.0
            for _ in range(POWER):
                length = np.linalg.norm(x)
                if length == 0:
                    break
                left = problem.gradient_sum(x / length) / problem.n
                w = np.zeros(problem.size)
                if penalised:
                    w[problem.feature_slots] = self.gram.solve(left[problem.feature_slots])
                elif self.free.shape[1]:
                    w = self.free @ (self.free.T @ left)
                x = np.where(moves, problem.scores(w) / problem.n, 0.0)
                size = float(np.linalg.norm(x))
            counts.append(size)
        self.step = 4.0 * max(counts[0], 1e-300) * 1.05
        return np.full(self.free.shape[1], counts[0] / counts[1] if counts[1] > 0 else 0.0)

    def _bound_below(self, w: Array, scores: Array) -> None:
        """Every direction bounds alpha_max from below: the least of -x'Z'w over all x, by the penalty of w."""
        for side in (1.0, -1.0):
            gain = -float(np.maximum(side * scores * self.low, side * scores * self.high).sum()) / self.problem.n
            if gain > 0:
                value = self.problem.penalty_value(self.problem.penalised(side * w))
                if 0 < value < math.inf:
                    self.lower = max(self.lower, gain / value)

    def _bound_above(self, x: Array, y: Array) -> None:
        """A dual answer close to x and y, if there is one, and its gauge."""
        problem = self.problem
        try:
            x, zx = problem._balance(x, problem.gradient_sum(x), limits=(self.low, self.high))
            made, violations = problem._repair(x, problem.n * y, zx)
        except NoCertificate:
            return
        gauge = math.inf if violations.size else problem.gauge(made / problem.n)
        if gauge < self.upper:
            self.upper, self.x, self.y = gauge, x, made / problem.n
