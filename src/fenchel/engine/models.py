r"""Proximal Newton rounds for any map: all coefficients in one quadratic model of the loss, a proof in every round."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np

from ..problem import Certificate, Problem
from ..solver.prices import Prices
from .curvatures.whole_gram import WholeGram
from .inner.admm import Admm
from .parts import Answer, Model, Vector
from .repair import Repair
from .roles import Goal, Iterate, Proposal
from .whole import WholePoint

ROUNDS = 60
STALE = 0.35  # share of the gradient's change that H may miss before it is made anew
PROMISE = 1e-4  # of the decrease that the model promises: what a step must bring
SHRINK, SHORTEST = 0.3, 1e-2  # of a step that brings less, again and again; shorter ones are refused
ACCURACY, FINE = 1e-2, 1e-3
MOST = 1100  # features
NAME = "quadratic models"

DEBUG = False


class QuadraticModels:
    """The engine for any penalty and smooth losses, where models with all coefficients are affordable."""

    name = NAME

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self._fit: _Fit | None = None

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if problem.p > MOST:
            return f"{problem.p} features are too many for a model of all of them"
        return WholeGram.unfit(problem) or Admm.unfit(problem)

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        self._fit = None

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, until somebody stops asking or nothing is gained."""
        if self._fit is None:
            self._fit = _Fit(problem, self.prices)
        yield from self._fit.rounds(problem, start, goal)


class _Fit:
    def __init__(self, problem: Problem, prices: Prices) -> None:
        self.gram = WholeGram(problem, prices)
        self.inner = Admm(problem, prices)
        self.problem = problem

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        gram, inner = self.gram, self.inner
        repair = Repair(problem, gram)
        point = WholePoint(problem, np.zeros(problem.size) if start is None else start.w)
        gram.begin(point.h)
        y = np.zeros(problem.d) if start is None else start.y / problem.n
        answer = Answer(point.w, point.at.copy(), y)
        passes, accuracy = point.passes, ACCURACY
        for number in range(ROUNDS):
            if gram.matrix is None:
                gram.make(point.h)
                passes += 1.0
            assert gram.matrix is not None
            answer = inner.solve(Model(point.w, point.g, gram.matrix), answer, accuracy)
            d = answer.v - point.w
            foreseen = gram.times(d)
            new = WholePoint(problem, answer.v)
            promised = -(float(point.g @ d) + 0.5 * float(d @ foreseen) + new.penalty - point.penalty)
            share = 1.0
            while not new.primal <= point.primal - PROMISE * share * max(promised, 0.0) + 1e-13 * abs(point.primal):
                share *= SHRINK
                if share < SHORTEST:
                    break
                scores = point.scores + share * (new.scores - point.scores) if share == SHRINK else point.scores + SHRINK * (new.scores - point.scores)
                new = WholePoint(problem, point.w + share * d, scores)
            passes += 0.5
            if share < SHORTEST:
                gram.refuse()
                gram.matrix = None
                if DEBUG: print("  refused", promised)
                continue
            if share < 1.0:
                d, foreseen = share * d, share * foreseen
            change = new.g - point.g
            passes += 0.5
            miss = math.sqrt(float(np.sum((change - foreseen) ** 2)) / max(float(foreseen @ foreseen), 1e-300))
            if not d.any(): miss = 0.0
            gained = point.primal - new.primal
            point = new
            promise = repair.foresee(point.g, answer.y, point.at, point.penalty)
            allowed = goal.allowed(point.primal)
            if DEBUG: print(f"  {number} F {point.primal:.9g} gained {gained:.1e} promised {promised:.1e} share {share:.2g} miss {miss:.2f} est {promise.gap/abs(point.primal) if promise else -1:.1e} its {inner.rounds} facs {inner.factors} solved {answer.solved} floor {gram.floor:.2g}")
            if promise is not None and promise.gap <= 1.0 * allowed:
                iterate, made = repair.prove(point, answer.u, promise, point.primal - allowed)
                if DEBUG: print("     proven", made.relative_gap)
                yield Proposal(iterate, point.primal, passes + repair.passes, NAME, made)
                passes = repair.passes = 0.0
            accuracy = ACCURACY if promise is None or promise.gap > 1e-3 * abs(point.primal) else FINE
            if gained <= 1e-14 * abs(point.primal): accuracy = 1e-5
            if problem.loss.quadratic: accuracy = 1e-4; continue
            if gram.floor and share == 1.0 and miss < 1.0:
                gram.trust()
            if miss > STALE:
                gram.matrix = None
            elif d.any():
                learnt = gram.learn(d, change, foreseen)
                if learnt is not None:
                    inner.learn(gram.matrix, *learnt)
