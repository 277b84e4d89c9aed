"""The best point and the best bounds that a run has found so far, and what may still be made of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..engine.roles import Array, Iterate
from ..methods.roles import PrimalIterate
from ..problem import Certificate, Point, Problem
from .attainment import unattained
from .convergence import Convergence
from .result import Status

# of the objective at zero: where a loss without a least value may be on its way to infinity; larger: that is looked
# into in vain
_ALMOST = 1e-3
_SHARPER = 0.5  # of the gap at the last certificate with more digits: where another one is worth its time


class Best:
    """Both bounds hold for the one optimum, so the best of each are kept apart."""

    def __init__(self, problem: Problem, rule: Convergence) -> None:
        self.problem, self.rule = problem, rule
        self.certificate = Certificate(np.inf, -np.inf, np.inf, "no certificate was made")
        self.w: Array | None = None
        self.suspected = False  # whether the infimum may not be attained
        self.sharpened = math.inf  # the gap at the last certificate with more digits

    def offer(self, w: Array, primal: float | None = None, slack: float = 0.0) -> None:
        """Keep w, which nobody changes any more, if it is the best so far (or within `slack` of it)."""
        primal = self.problem.primal_at(w) if primal is None else primal
        if primal <= self.certificate.primal + slack:
            self.certificate.primal, self.w = primal, w

    def take(self, w: Array, certificate: Certificate) -> None:
        """Both bounds hold for the one optimum, so the best of each are kept apart."""
        self.offer(w, certificate.primal)
        self.certificate.dual = max(self.certificate.dual, certificate.dual)

    def leave_out_penalty(self) -> None:
        """Where the penalty is next to nothing of the objective, the optimum without it is as good a lower bound, and
        one that weights below all rounding do not spoil."""
        problem, best = self.problem, self.certificate
        if self.w is None or not problem.alpha > 0 or not math.isfinite(best.primal):
            return
        weak = problem.penalty_value(problem.penalised(self.w)) <= 0.5 * self.rule.allowed(best.primal)
        if weak and not self.rule.reached(best) and all(block.function.nonnegative for block in problem.blocks):
            best.dual = max(best.dual, problem.with_alpha(0.0).certificate(Point(self.w)).dual)

    def is_blurred(self, made: Certificate, at: Array, point: Callable[[], Iterate | PrimalIterate]) -> bool:
        """Whether rounding is all that keeps the goal from being proven, with as many digits as there are.

        Bounds allow for rounding in sums over all of the data. Where that decides, sums with more digits are made.
        """
        best, allowed = self.certificate, self.rule.allowed(self.certificate.primal)
        if not (best.certified and 0 < allowed < best.gap <= max(allowed, made.rounding) + made.rounding < math.inf):
            return False
        if made.gap > best.gap + made.rounding:
            return False  # a point far from the best, whose rounding says nothing of that
        if self.problem.can_be_exact and best.gap < _SHARPER * self.sharpened:
            self.sharpened, found = best.gap, point()
            dual = getattr(found, "x", None), getattr(found, "y", None)
            sharp = self.problem.certificate(Point(at, *dual), exact=True)
            self.take(at, sharp)
            made.rounding = sharp.rounding
        return allowed < best.gap <= 2 * made.rounding

    def unattained(self) -> Status | None:
        """Say so where no point attains the infimum. Then what rounding leaves of a gradient along directions on which
        the answer lies at infinity is no small thing: the bound of x = 0 is what is proven."""
        why, best = unattained(self.problem), self.certificate
        if not why:
            return None
        best.reason, best.dual = why, min(best.dual, self.problem._dual_at_zero)
        return Status.NO_ANSWER

    def seems_unattained(self, made: Certificate) -> bool:
        """Whether a loss that never reaches its least value is almost there, or directions without penalty cannot be
        balanced, as is so where it falls along them for ever; said once, for the proof takes time."""
        problem = self.problem
        if self.suspected or problem.pooled or not problem.loss.falls_towards(problem.target).any():
            return False
        at_zero, least = self.problem.objective_at_zero(), self.problem._dual_at_zero
        primal = self.certificate.primal
        almost = primal - least <= _ALMOST * (at_zero - least) < math.inf
        self.suspected = almost or (bool(made.reason) and math.isfinite(primal))
        return self.suspected
