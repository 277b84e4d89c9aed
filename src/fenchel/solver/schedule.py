"""Who may try what next: attempts of other ways, before and between the epochs of a method.

Every attempt has a price, by a model of what it costs in nanoseconds, and is tried where the epochs that seem to be
left cost more. Nothing that comes of it is believed: the loop makes a certificate and takes the point if that is
better.
"""

from __future__ import annotations

import math

import numpy as np

from ..engine.accuracy import BEYOND
from ..engine.attempts import Faces, Multiplied, NothingPenalised, Rounds
from ..engine.roles import Goal, Iterate, Proposal
from ..penalties import Block
from ..prices import epoch_nanoseconds
from ..problem import Certificate, Problem
from .progress import Progress
from .turns import RATIO

_MADE = 0.4  # of the epochs so far: what an attempt may cost at any rate
_PATIENCE = 4.0  # times the epochs so far, what an attempt may cost, whatever seems to be left
_SAME = 0.01  # change of the number of active coordinates per epoch, where structure is settled
_FACES = 12  # that an attempt from the structure of an epoch may take, along edges
_CLEAR = 3e-3  # relative gap from which the structure of a point that rounds led to is worth a Newton step
_NEWTON = 1e7  # nanoseconds of epochs before Newton's method is tried, which takes about as long at the least
_VISITS = 2e5  # of rows: what comes before it at any rate, unless these are more than 4 epochs
_LATEST = 64  # epochs before the first attempt, at the most


class Schedule:
    """The attempts that fit a problem; see :meth:`propose`. What it counts is the run's progress."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.epoch = problem, epoch_nanoseconds(problem)
        self.nothing = NothingPenalised(problem)
        self.rounds = Rounds(problem) if Rounds.unfit(problem) is None else None
        self.faces = Faces(problem) if Faces.unfit(problem) is None else None
        # which have no more coefficients than there are rows
        self.faces_first = self.faces is not None and problem.n < problem.p
        self.edges = problem.widest == 2  # features in pairs
        self.multipliers = Multiplied(problem) if Multiplied.unfit(problem) is None else None

    def first_due(self) -> int:
        """The epoch of the first attempt."""
        wait = _NEWTON
        if self.rounds is not None and not self.faces_first:
            wait = self.rounds.price(Iterate.zero(self.problem)) / BEYOND
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
        ways = [self._rounds, self._faces, self._multipliers]
        if self.faces_first:
            ways = [self._faces, self._rounds, self._multipliers]
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
            return min(max(_MADE * epoch, RATIO * progress.epochs_left(goal.tol)), _PATIENCE * epoch)
        if not (settled and guess < 1.0 and goal.tol > 0):
            return float(epoch)
        rate = math.log(1 / max(guess, 1e-300)) / epoch
        left = RATIO * math.log(max(guess / goal.tol, 1.0)) / rate
        return min(max(epoch, left), _PATIENCE * epoch)

    def _settled(self, start: Iterate, progress: Progress) -> bool:
        """Whether u has nearly as many zeros as at the last look, and little else can change: the loss has no flat
        parts, and there are no edges."""
        before, epochs = progress.active, progress.epoch - progress.looked
        progress.active, progress.looked = int(np.count_nonzero(start.u)), progress.epoch
        if self.faces is None or self.edges or not self.faces.bends_everywhere:
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

    def _rounds(self, start: Iterate, progress: Progress, goal: Goal, left: float) -> Proposal | None:
        """Of quadratic models, and Newton's method on the structure that they lead to. Every attempt in vain makes the
        next one careful."""
        if self.rounds is None:
            return None
        budget = progress.share * self.epoch * left / 2**progress.attempts_in_vain
        point = self.rounds.run(start, goal, budget)
        if point is None or self.faces is None or not goal.tol < self._certified(point).relative_gap <= _CLEAR:
            return point
        finished = self.faces.run(point.iterate, goal, max(budget, point.nanoseconds))
        return self._better(point, finished, point.passes + self.faces.passes)

    def _faces(self, start: Iterate, progress: Progress, goal: Goal, left: float) -> Proposal | None:
        """Newton's method on the structure of the iterate; along edges that takes several faces to mend."""
        if self.faces is None:
            return None
        budget = progress.share * self.epoch * left / 2**progress.attempts_in_vain
        return self.faces.run(start, goal, budget, _FACES if self.edges else 1)

    def _multipliers(self, start: Iterate, progress: Progress, goal: Goal, left: float) -> Proposal | None:
        if self.multipliers is None:
            return None
        return self.multipliers.run(start, goal, left * progress.share * self.epoch)

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
