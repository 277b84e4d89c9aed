"""Who may try what next: attempts of other ways, between the epochs of a method.

Every attempt has a price, by a model of what it costs in nanoseconds, and is tried where the epochs that seem to be
left cost more. Nothing that comes of it is believed: the loop makes a certificate and takes the point if that is
better.
"""

from __future__ import annotations

import math

import numpy as np

from ..engine.attempts import Faces, Multiplied, NothingPenalised
from ..engine.roles import Goal, Iterate, Proposal
from ..penalties import Block
from ..prices import epoch_nanoseconds
from ..problem import Problem
from .progress import Progress

_HASTE = 1.5  # times the epochs that seem to be left: what an attempt may cost (of 1, 1.5, 2 and 3)
_MADE = 0.4  # of the epochs so far: what an attempt may cost at any rate
_FORESIGHT = 4.0  # times the epochs so far, what a guess may foresee
_PATIENCE = 4.0  # times the epochs so far, what an attempt other than on a face may cost
_SAME = 0.01  # change of the number of active coordinates per epoch, where structure is settled
_NEWTON = 1e7  # nanoseconds of epochs before Newton's method is tried, which takes about as long at the least
_VISITS = 2e5  # of rows: what comes before it at any rate, unless these are more than 4 epochs
_LATEST = 64  # epochs before the first attempt, at the most


class Schedule:
    """The attempts that fit a problem; see :meth:`propose`. What it counts is the run's progress."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.epoch = problem, epoch_nanoseconds(problem)
        self.nothing = NothingPenalised(problem)
        self.faces = Faces(problem) if Faces.unfit(problem) is None else None
        self.multipliers = Multiplied(problem) if Multiplied.unfit(problem) is None else None

    def first_due(self) -> int:
        """The epoch of the first attempt."""
        least = min(max(math.ceil(_VISITS / self.problem.visits), 1), 4)
        return int(np.clip(_NEWTON / self.epoch, least, _LATEST))

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
        ways = [self._newton, self._multipliers]
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
        parts."""
        before, epochs = progress.active, progress.epoch - progress.looked
        progress.active, progress.looked = int(np.count_nonzero(start.u)), progress.epoch
        if self.faces is None or not self.faces.bends_everywhere:
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
        """On the structure of the iterate; every attempt in vain makes the next one careful."""
        if self.faces is None:
            return None
        return self.faces.run(start, goal, progress.share * self.epoch * left / 2**progress.attempts_in_vain)

    def _multipliers(self, start: Iterate, progress: Progress, goal: Goal, left: float) -> Proposal | None:
        if self.multipliers is None:
            return None
        epochs = min(left, _PATIENCE * progress.epoch)
        return self.multipliers.run(start, goal, epochs * progress.share * self.epoch)


def _pulls_nowhere(block: Block) -> bool:
    """Whether a block has no slope at zero: it is a quadratic, perhaps within limits."""
    weights = block.function.entry_weights(block.d)
    return weights is not None and not weights.any()
