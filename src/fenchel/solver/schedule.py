"""Who may try what next: attempts of other ways, before and between the epochs of a method.

Every attempt has a price, by a model of what it costs in nanoseconds, and is tried where the epochs that seem to be
left cost more. Nothing that comes of it is believed: the loop makes a certificate and takes the point if that is
better.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from ..engine.attempts import AcceleratedGradients, Faces, Multiplied, NothingPenalised, ProximalNewton
from ..engine.roles import Goal, Iterate, Proposal
from ..penalties import Block
from ..prices import epoch_nanoseconds, newton_nanoseconds
from ..problem import Certificate, Problem
from .progress import Progress

_HASTE = 1.5  # times the epochs that seem to be left: what an attempt may cost (of 1, 1.5, 2 and 3)
_MADE = 0.4  # of the epochs so far: what an attempt may cost at any rate
_FORESIGHT = 4.0  # times the epochs so far, what a guess may foresee
_PATIENCE = 4.0  # times the epochs so far, what an attempt other than on a face may cost
_SAME = 0.01  # change of the number of active coordinates per epoch, where structure is settled
_FACES = 12  # that an attempt from the structure of an epoch may take, along edges
_SETTLED = 3e-5  # relative gap from which the structure of a prox is worth a Newton step
_CLEAR = 3e-3  # the same where the prox is exact
_AGAIN = 2.0  # times what the structure has cost, what may be spent on it
_DEEP = 1e-2  # of that: a goal above it the prox's own steps reach as fast
_WARM, _WARMER = 4, 6  # epochs before steps that cost less than an epoch: with an exact prox, and without
_WORTH = 60.0  # of these steps, that may be made before anything is known
_NEWTON = 1e7  # nanoseconds of epochs before Newton's method is tried, which takes about as long at the least
_VISITS = 2e5  # of rows: what comes before it at any rate, unless these are more than 4 epochs
_STEPS = 1.5  # proximal Newton steps, with a curvature each, that the epochs before the first of them may cost
_LATEST = 64  # epochs before the first attempt, at the most


class Schedule:
    """The attempts that fit a problem; see :meth:`propose`. What it counts is the run's progress."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.epoch = problem, epoch_nanoseconds(problem)
        self.nothing = NothingPenalised(problem)
        self.proximal = ProximalNewton(problem) if ProximalNewton.unfit(problem) is None else None
        self.faces = Faces(problem) if Faces.unfit(problem) is None else None
        self.accelerated = AcceleratedGradients(problem) if AcceleratedGradients.unfit(problem) is None else None
        self.multipliers = Multiplied(problem) if Multiplied.unfit(problem) is None else None

    def first_due(self) -> int:
        """The epoch of the first attempt."""
        wait = _STEPS * sum(newton_nanoseconds(self.problem)) if self.proximal is not None else _NEWTON
        least = min(max(math.ceil(_VISITS / self.problem.visits), 1), 4)
        return int(np.clip(wait / self.epoch, least, _LATEST))

    def propose(self, start: Iterate, progress: Progress, goal: Goal) -> Proposal | None:
        """A point worth a certificate, now and then."""
        if self.faces is not None:
            self.faces.refused = progress.refused
        found = self._attempt(start, progress, goal)
        if self.faces is not None:
            progress.refused = self.faces.refused
        return found

    def _attempt(self, start: Iterate, progress: Progress, goal: Goal) -> Proposal | None:
        epoch = progress.epoch
        doubled = epoch & (epoch - 1) == 0
        if (epoch == 0 and self.nothing.largest is not None) or (epoch and doubled and self._seems_zero(start)):
            found = self.nothing.run(start, goal, math.inf)
            if found is not None:
                return found
        if epoch == 0 or epoch < progress.attempt_due:
            return None
        left = self._left(progress, goal, self._settled(start, progress))
        ways = [self._newton, self._accelerated, self._multipliers]
        if progress.attempts_in_vain % 2:  # they take turns at being the first
            ways.reverse()
        for way in ways:
            found = way(start, progress, goal, left)
            if found is not None:
                break
        progress.attempted(None if found is None else found.passes)
        return found

    def _left(self, progress: Progress, goal: Goal, settled: bool) -> float:
        """Epochs that Newton's method may cost: somewhat more than seem to be left, for it has a way of arriving, and
        some share of those made at any rate.

        Before the first certificate, as many as were made; more by a guess, where the structure seems to be settled.
        """
        epoch, guess = progress.epoch, progress.guess
        if progress.gap < 1.0:
            return max(_MADE * epoch, _HASTE * progress.epochs_left(goal.tol))
        if not (settled and guess < 1.0 and goal.tol > 0):
            return float(epoch)
        rate = math.log(1 / max(guess, 1e-300)) / epoch
        left = _HASTE * math.log(max(guess / goal.tol, 1.0)) / rate
        return min(max(epoch, left), _FORESIGHT * epoch)

    def _settled(self, start: Iterate, progress: Progress) -> bool:
        """Whether u has nearly as many zeros as at the last look, and little else can change: the loss has no flat
        parts, and there are no edges."""
        before, epochs = progress.active, progress.epoch - progress.looked
        progress.active, progress.looked = int(np.count_nonzero(start.u)), progress.epoch
        if self.faces is None or self.accelerated is not None or not self.faces.bends_everywhere:
            return False
        return abs(progress.active - before) <= _SAME * epochs * progress.active

    def _seems_zero(self, start: Iterate) -> bool:
        """Whether u is zero wherever the penalty could make it so (a quadratic alone never does)."""
        parts = [
            start.u[first:last]
            for block, first, last in self.problem._parts()
            if not (block.ridge > 0 and _pulls_nowhere(block))
        ]
        return bool(parts) and not any(part.any() for part in parts)

    # -- between epochs ------------------------------------------------------------------------------

    def _newton(self, start: Iterate, progress: Progress, goal: Goal, left: float) -> Proposal | None:
        """Proximal where there are few coefficients, otherwise on the structure of the iterate.

        Every attempt in vain makes the next one careful, and where both kinds apply they take turns.
        """
        budget = progress.share * self.epoch * left / 2**progress.attempts_in_vain
        if self.proximal is not None and (self.faces is None or progress.attempts_in_vain % 2 == 0):
            return self.proximal.run(start, goal, budget)
        if self.faces is not None:
            # along edges, the structure that epochs show takes several faces to mend
            return self.faces.run(start, goal, budget, _FACES if self.accelerated is not None else 1)
        return None

    def _accelerated(self, start: Iterate, progress: Progress, goal: Goal, left: float) -> Proposal | None:
        if self.accelerated is None:
            return None
        epoch, sharp = progress.share * self.epoch, self.accelerated.exact
        # steps that grow slow at the end deserve no haste
        budget = epoch * min(left / _HASTE, _PATIENCE * progress.epoch)
        if not progress.gap < 1.0:
            early = progress.epoch < (_WARM if sharp else _WARMER)
            if self.proximal is not None or not self.accelerated.swift or early:
                return None
            budget = _WORTH * self.accelerated.price(start)
        settled, gap, tol = _CLEAR if sharp else _SETTLED, min(progress.gap, 1.0), goal.tol
        if self.faces is not None and tol <= (1.0 if sharp else _DEEP * _SETTLED):
            tol = max(tol, min(settled, 0.1 * gap))
        point = self.accelerated.run(start, dataclasses.replace(goal, tol=tol), budget, gap)
        if point is None or self.faces is None or not goal.tol < self._certified(point).relative_gap <= settled:
            return point
        # by now the structure of the prox is nearly that of the answer
        best = fine = point
        if not sharp:
            fine = self.accelerated.sharpened(point) or point
            best = min(point, fine, key=lambda one: self._certified(one).relative_gap)
        price = max(epoch * left, _AGAIN * self.accelerated.spent)
        finished = self.faces.run(fine.iterate, goal, price)
        return self._better(best, finished, self.accelerated.passes + self.faces.passes)

    def _multipliers(self, start: Iterate, progress: Progress, goal: Goal, left: float) -> Proposal | None:
        if self.multipliers is None:
            return None
        epochs = min(left, _PATIENCE * progress.epoch)
        return self.multipliers.run(start, goal, epochs * progress.share * self.epoch)

    def _certified(self, point: Proposal) -> Certificate:
        """The certificate of a proposal, made if it is missing."""
        if point.certificate is None:
            point.certificate = self.problem.certificate(point.iterate, fresh=False, primal=point.primal)
        return point.certificate

    def _better(self, point: Proposal, other: Proposal | None, passes: float) -> Proposal:
        """The one of the two with the smaller gap, for the passes of both; the other may be missing."""
        if other is not None and self._certified(other).relative_gap < self._certified(point).relative_gap:
            point = other
        point.passes = passes
        return point


def _pulls_nowhere(block: Block) -> bool:
    """Whether a block has no slope at zero: it is a quadratic, perhaps within limits."""
    weights = block.function.entry_weights(block.d)
    return weights is not None and not weights.any()
