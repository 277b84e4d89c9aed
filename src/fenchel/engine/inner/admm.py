"""ADMM on a model with all coefficients: one factor serves many rounds, for any map and any simple penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import lapack

from ...prices import Prices
from ...problem import Problem
from ...proximal import CompiledPenalty
from ..parts import Answer, Matrix, Model, Vector
from ..restrictions.columns import SINGLE_FROM
from ..whole import CACHED, NEARBY, Maps
from .pace import Paced

TURNS, ROUNDS = 16, 25  # on one model, and rounds in a turn; more rounds: paces that are mended late
FLAT = 0.1  # of the mean curvature of a feature: none has less where the steps are chosen
BET = 100.0  # factor on the step for units that are zero, and its inverse for the others
# factors and rounds of a whole fit, medians over random problems: where the map joins features, and where it does not
USUAL, USUAL_APART = (5, 200), (2, 50)


class Admm(Paced):
    """See :class:`fenchel.engine.parts.InnerSolver`."""

    def __init__(self, problem: Problem, prices: Prices) -> None:
        self.prices = prices
        self.nanoseconds = 0.0  # of all models so far
        self.pace, self.fresh = 1.0, True
        self.inverse: Any = None  # in single or double precision
        self.H: Matrix | None = None
        self.single = problem.size >= SINGLE_FROM
        self.move_to(problem)
        labels, count = problem.units
        self.labels, self.sizes = labels, np.maximum(np.bincount(labels, minlength=count), 1)
        self.bet = np.ones(count)

    def move_to(self, problem: Problem) -> None:
        """Go on with another alpha."""
        self.problem, self.maps = problem, Maps.of(problem)
        self.penalty: Any = CompiledPenalty(problem)

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        return None if problem.d else "there is no penalty"

    @staticmethod
    def price_for(problem: Problem, prices: Prices) -> float:
        """Nanoseconds of all models of a fit, about, before anything was prepared."""
        joins, single = problem.widest > 1, problem.size >= SINGLE_FROM
        factors, rounds = USUAL if joins else USUAL_APART
        return factors * _factor_price(problem.size, single, prices) + rounds * _round_price(problem, single, prices)

    def price(self) -> float:
        return self.price_for(self.problem, self.prices)

    def _factor(self, H: Matrix, start: Answer) -> None:
        """The step of every coordinate from the curvature that it sees, and the inverse that goes with it."""
        from ...kernels.models import coupled, mirrored

        # a feature that the data hardly see takes its curvature from its neighbours
        diagonal = np.diag(H)
        seen = self.problem.map_squares @ (1.0 / np.maximum(diagonal, FLAT * diagonal.mean()))
        unit = np.bincount(self.labels, seen, self.sizes.size) / self.sizes
        if self.fresh:
            self._begin_pace((1.0 / np.maximum(unit, 1e-300))[self.labels], start.u, start.y)
        self.step = (self.pace * self.bet / np.maximum(unit, 1e-300))[self.labels]
        matrix = np.empty_like(H)
        coupled(H, self.penalty.map, self.step, matrix)
        self.inverse, self.H = None, H
        self.nanoseconds += _factor_price(self.problem.size, self.single, self.prices)
        if self.single:
            factor, failed = lapack.spotrf(matrix.T.astype(np.float32), lower=1, overwrite_a=1, clean=0)
            self.single = not failed
            if not failed:
                made = lapack.spotri(factor, lower=1, overwrite_c=1)[0]
                self.inverse = np.empty(H.shape, dtype=np.float32)
                mirrored(made, self.inverse)
        if self.inverse is None:
            factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1, clean=0)
            if failed:
                self.inverse = np.linalg.inv(matrix)
            else:
                made = lapack.dpotri(factor, lower=1, overwrite_c=1)[0]
                self.inverse = np.empty_like(H)
                mirrored(made, self.inverse)

    def solve(self, model: Model, start: Answer, accuracy: float) -> Answer:
        from ...kernels.models import admm_steps

        problem, penalty, info = self.problem, self.penalty, np.zeros(4)
        u, y = start.u, start.y
        v, at = np.empty_like(model.w), self.maps.down(model.w)
        if self.H is not model.H:
            self.inverse = None
        solved = False
        for turn in range(TURNS):
            if self.inverse is None:
                self._factor(model.H, start)
            admm_steps(self.inverse, model.g, model.w, at, v, u, y, self.step, penalty.scale, penalty.ridge,
                       penalty.map, penalty.blocks, accuracy, ROUNDS, info)  # fmt: skip
            penalty.check()
            self.nanoseconds += info[2] * _round_price(problem, self.single, self.prices)
            forces = float(np.sum(y * y / self.step))
            if max(info[0], info[1]) <= accuracy * accuracy * info[3] + 1e-22 * forces:
                solved = True
                break
            if turn > 1 and turn % 2 == 0:
                self._place_bets(u)
            else:
                self._set_pace(info[0] / max(info[1], 1e-100), forces / max(float(np.sum(self.step * u * u)), 1e-100))
        if not solved and self.single:
            self.single, self.inverse = False, None
        return Answer(problem.within(problem.snap(v, u)), u, y, solved)

    def _place_bets(self, u: Vector) -> None:
        """Long steps for units that are zero, short ones for the others: if they stay so, a few rounds are left."""
        zero = np.bincount(self.labels, u != 0, self.sizes.size) == 0
        bet = np.where(zero, BET, 1 / BET)
        if not np.array_equal(bet, self.bet):
            self.bet, self.inverse = bet, None

    def learn(self, H: Matrix, a: Vector, b: Vector) -> None:
        """H has changed by a a' - b b'."""
        from ...kernels.models import add_outer

        if self.inverse is None:
            return
        for q, sign in ((a, 1.0), (b, -1.0)):
            image = self.inverse @ q.astype(self.inverse.dtype)
            below = 1.0 + sign * float(q @ image)
            if below < 1e-3:
                self.inverse = None
                return
            add_outer(self.inverse, image, -sign / below)
        self.H = H


def _factor_price(size: int, single: bool, prices: Prices) -> float:
    """Nanoseconds of an inverse."""
    return prices.potrf * size**3 / 2 * (prices.syrk32 / prices.syrk64 if single else 1.0)


def _round_price(problem: Problem, single: bool, prices: Prices) -> float:
    """Nanoseconds of a round: a product with the inverse, and the penalty's prox."""
    entries, pair = problem.size**2, prices.gemv32 if single else prices.gemv
    near = NEARBY if (4 if single else 8) * entries <= CACHED else 1.0
    return near * pair * entries + prices.prox_coordinate * problem.d
