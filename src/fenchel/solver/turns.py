"""Whose turn it is: an engine's, or the epochs' of the method.

Both are paid in nanoseconds of the price model (:mod:`fenchel.prices`), never by the clock, so that the same problem
goes the same way everywhere. The engine may spend up to 3/2 of what the epochs will surely cost; beyond that they
catch up. Let E and S be what engine and epochs would cost alone. If the epochs get there, the engine has spent at most
3/2 S; if the engine does, they have spent at most 2/3 E. Either way the whole costs at most 5/2 of the better one, and
a last round. What the epochs will surely cost is

- before the first of them: log(1 / tol) of them, for an epoch closes the gap by less than a factor of e nearly always;
  3 sqrt(p / n) times as many behind a map with fewer rows than features (on ten random problems, p / n from 1 to 84, a
  factor of e took .96 to 2.5 times that);
- later what they have cost, and half of what seems to be left at their own pace.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..foundation.numerics import ROUNDING
from ..problem import Problem
from .progress import Progress

RATIO = 1.5  # of what the epochs surely cost: the engine's share; larger: the bound above is 1 + this
SURELY = 0.5  # of what seems to be left; larger: a pace that improves makes the bound untrue
FEW_ROWS = 3.0  # times sqrt(p / n): epochs for a factor of e behind a map with few rows; larger: the bound is untrue


def fold_of(problem: Problem) -> float:
    """Epochs that a factor of e takes, at the least; an engine for a loss of all scores at once goes to its end."""
    if problem.loss.across_rows:
        return math.inf
    if problem.n >= problem.p or problem.renames:
        return 1.0
    return FEW_ROWS * math.sqrt(problem.p / problem.n)


class Turns:
    """One alpha's; `epoch` tells the price of an epoch, once it matters, and `fold` how many of them a factor of e
    takes at the least."""

    def __init__(self, epoch: Callable[[], float], tol: float, fold: float = 1.0) -> None:
        self.epoch, self.tol, self.fold = epoch, max(tol, ROUNDING), fold

    def engine_goes(self, progress: Progress) -> bool:
        """Whether the next turn is the engine's."""
        if not progress.engine_nanoseconds:
            return True
        epoch, least = self.epoch(), self.fold * max(math.log(1 / self.tol), 1.0)
        left = progress.epochs_left(self.tol) if progress.paced else 0.0
        spent = progress.epochs_nanoseconds
        surely = max(least * epoch, spent + SURELY * left * progress.share * epoch)
        return progress.engine_nanoseconds <= RATIO * surely
