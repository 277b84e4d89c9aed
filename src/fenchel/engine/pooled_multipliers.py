"""The method of multipliers for rows in a pool and losses with kinks: one pass over the data a round.

A loss with kinks has no curvature that a sample could tell of: what bends are its envelopes, within reach of a kink,
and few rows are there. So every pass brings the exact Gram matrix of those rows, and a round solves the quadratic model
that it makes, with the penalty. Once the envelopes are about as low as they get, the multipliers move and the reach
grows. Multipliers belong to rows, which keep nothing: the driver keeps the points where they moved.

A pass looks at the next point twice, with the multipliers as they are and as they would be if they moved there. So a
move takes no pass of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..data.envelopes import moved
from ..foundation.numerics import ARMIJO, BALANCED, DENSE
from ..prices import Prices
from ..problem import Problem
from ..problem.looks import EnvelopeView
from ..problem.pooled import PooledProblem, Steps
from ..problem.unpenalised import GROWTH
from .accuracy import IDLE_CHEAP, ROUNDS_CHEAP
from .parts import Answer, Matrix, Model, Vector
from .roles import Proposal
from .sampled import ACCURACY, FINEST, Fit, SampledModels

ZONE = 0.2  # of the weight of the sample: rows within reach of a kink at first
FEW = 3.0  # rows within reach for each coefficient that is at work; fewer: models that say little
SLOW = 1.5  # what the reach is multiplied by at the least, GROWTH at the most, where one model was enough
FARTHEST = 1e7  # times the first reach; beyond it, rounding of scores is all that the multipliers see
LIVELY, SETTLED = 0.3, 1e-6  # of how far multipliers go, and of the wanted gap: a model that promises less is solved
LEAST = 1e-4  # of the curvature that a column has in the mean over all rows: what it counts for at the least


class PooledMultipliers(SampledModels):
    """The engine for rows in a pool and losses with kinks."""

    name = "multipliers of rows in a pool"

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if not problem.pooled:
            return "the rows are in memory"
        if not problem.loss.kinked:
            return f"{type(problem.loss).__name__} has no kinks"
        if problem.size > DENSE:
            return f"{problem.size} coefficients are too many for the Gram matrix of all of them; at most {DENSE}"
        return None

    def __init__(self, prices: Prices, *, holds_all: bool = False) -> None:
        super().__init__(prices, holds_all=holds_all)
        self.trail: tuple[Steps, float] | None = None  # of the last proposal: where multipliers moved, and the reach

    def _fit(self, problem: PooledProblem, goal: Any) -> Fit:
        return _KinkedFit(self, problem, goal)


class _KinkedFit(Fit):
    """One alpha."""

    engine: PooledMultipliers

    def _begin(self, points: list[tuple[Vector, Vector]]) -> Iterator[Proposal]:
        w, y = points[0]
        own: Any = self.engine.own
        # an answer of all rows has multipliers, which are made again where the rows are
        steps, reach = own.trail if self._has_all and own is not None and own.trail else ((), self._first_reach(w))
        (view,) = self.problem.envelopes(w, (steps, reach))
        yield from self._rounds(view, Answer(w, self.problem.penalised(w), y), reach, steps)

    def _first_reach(self, w: Vector) -> float:
        """From which some share of the sample is within reach of a kink at w."""
        problem, part, terms = self.problem, self.curvature.part, self.curvature.terms
        offset, target, weight = terms.offset(part), terms.target(part), terms.weight(part)
        scores = terms.scores(part, problem.seen_by_rows(w))
        scores = scores + offset if offset.size else scores
        weight = weight if weight.size else np.ones(target.size)
        size = float(np.abs(scores).max(initial=0.0) + np.abs(target).max(initial=0.0)) or 1.0
        none = np.zeros(target.size)
        for power in range(30, -30, -1):
            reach = 2.0**power / size
            bend = moved(terms, none, reach, scores, target, weight, bend=True)[1]
            if weight @ (bend > 0.5 * reach) >= ZONE * weight.sum():
                return reach
        return 1.0 / size

    def _rounds(self, view: EnvelopeView, answer: Answer, reach: float, steps: Steps) -> Iterator[Proposal]:
        problem, goal, idle, accuracy = self.problem, self.goal, 0, ACCURACY
        ahead: EnvelopeView | None = None
        farthest, best, lowest, used = FARTHEST * reach, math.inf, math.inf, 0
        next_reach = reach
        made = self._certificate(view, answer.y)
        self.engine.trail = steps, reach
        yield self._proposal(view, answer, made)
        for number in range(ROUNDS_CHEAP):
            if self._over():
                return
            H = self._curvature(view, reach)
            answer = self._solve(Model(view.w, view.gradient, H), answer, accuracy)
            made = self._certificate(view, answer.y, ask=number % 8 == 7)
            self.engine.trail = steps, reach
            if goal.reached(made):
                yield self._proposal(view, answer, made)
                return
            d = answer.v - view.w
            promised = self._promised(view, answer, H, d)
            solved = promised <= max(LIVELY * view.moved, SETTLED * goal.allowed(made.primal)) or not d.any()
            if ahead is not None and solved:
                steps, reach = (*steps, (view.w, reach)), next_reach
                view, ahead, used = ahead, None, 0
                continue
            used += 1
            next_reach = min(reach * self._longer(view, answer, reach, used), farthest)
            new, ahead_new = problem.envelopes(answer.v, (steps, reach), ((*steps, (answer.v, reach)), next_reach))
            gained = self._height(view) - self._height(new)
            taken = gained >= ARMIJO * max(promised, 0.0) - BALANCED * abs(self._height(view))
            made = self._certificate(new, answer.y)
            yield self._proposal(new, answer, made)
            better = made.gap < 0.9 * best or made.primal < lowest - 1e-3 * goal.allowed(made.primal)
            idle, best, lowest = 0 if better else idle + 1, min(best, made.gap), min(lowest, made.primal)
            accuracy = max(0.3 * accuracy, FINEST) if not better else accuracy
            if idle > IDLE_CHEAP:
                return
            self._adapt(taken, gained, promised)
            if taken and gained > 1.2 * promised:  # nothing bends that way as much as the model says
                self.mu, self.least = 0.2 * self.mu, 0.2 * self.least
            if taken:
                view, ahead = new, ahead_new
                self.engine.known = view.w, answer.y.copy()
            else:
                answer = Answer(view.w, problem.penalised(view.w), answer.y)

    def _longer(self, view: EnvelopeView, answer: Answer, reach: float, used: int) -> float:
        """What the reach is multiplied by when the multipliers move: as much as leaves enough rows within it. Few may
        have to do where the penalty bends, or where the answer is a corner; so it grows where that is easy, too."""
        at_work = float(min(np.count_nonzero(answer.v), np.count_nonzero(answer.u) + self.problem._free_count))
        rows = view.bend * self.problem.visits / reach
        return float(np.clip(rows / (FEW * max(at_work, 1.0)), 1.0 if used > 1 else SLOW, GROWTH))

    def _height(self, view: EnvelopeView) -> float:
        """What a round brings down: the envelopes and the penalty."""
        return view.envelope + self.problem.penalty_value(self.problem.penalised(view.w))

    def _curvature(self, view: EnvelopeView, reach: float) -> Matrix:
        """The Gram matrix, and something for columns that the rows in reach say little of."""
        problem, H = self.problem, view.gram.copy()
        squares = np.tile(np.append(problem.data.mean_squares, 1.0), problem.vectors)
        share = max(view.bend / reach, LEAST)  # of the rows that are within reach
        own = np.maximum(reach * share * squares, 1e-12 * reach * float(squares.max(initial=1.0)))
        H[np.diag_indices_from(H)] += (self.mu + LEAST) * own
        return H
