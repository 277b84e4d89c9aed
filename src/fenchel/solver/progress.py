"""How far a run has come: counted by the loop and saved with the state, so that a resumed run goes the same way."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from ..foundation.numerics import TINY

# fall of the logarithm of the gap per epoch, before anything is known and at the least; larger: slow runs seem near
# their end
_SLOWEST = 1e-3
_SHARE_OF_MEAN = 0.3  # of the mean rate so far: the least that the last certificates count for
_PAID = 0.1  # of the gap, what an attempt must leave at the most to count as a good one; larger: more attempts
_LATER = 1.25  # times the epochs so far: when attempts may be thought of again; larger: fewer attempts
_OLD_NAMES = {
    "attempt_passes": "newton_passes", "attempt_due": "newton_due", "attempts_in_vain": "newton_tries"
}  # of files that were saved before the loop owned them  # fmt: skip


@dataclasses.dataclass
class Progress:
    """Plain numbers. Gaps are relative; `epoch` counts whole epochs, whatever rows rested."""

    epoch: int = 0
    rested: float = 0.0  # passes that were saved by rows at rest
    share: float = 1.0  # of the rows, visited in the last epoch
    guess: float = math.inf  # at the gap: how far the last epoch went
    gap: float = math.inf  # at the last certificate on schedule
    gap_epoch: int = 0
    learnt: int = -1  # epoch of the last certificate that told a pace
    rate: float = _SLOWEST  # at which its logarithm fell, per epoch
    due: int = 0  # epoch of the next certificate
    engine_passes: float = 0.0  # over the data, by rounds of an engine
    engine_nanoseconds: float = 0.0  # by the price model, likewise
    epochs_nanoseconds: float = 0.0  # by epochs, and attempts between them
    engine_ended: bool = False  # whether it has given up, so that a resumed run does not ask it again
    attempt_passes: float = 0.0  # over the data, by attempts between epochs
    attempt_due: int = 4  # epoch of the next attempt
    attempts_in_vain: int = 0
    active: int = 0  # coordinates of B'w that were not zero when an attempt was last thought of
    looked: int = 0  # epoch of that
    refused: float = 0.0  # nanoseconds, what Newton's method on a face would have cost when that was last too much

    @property
    def passes(self) -> int:
        """Passes over the data, of all kinds."""
        return math.ceil(self.epoch + self.engine_passes + self.attempt_passes - self.rested)

    @property
    def nanoseconds(self) -> float:
        """Of all kinds, by the price model."""
        return float(self.engine_nanoseconds + self.epochs_nanoseconds)

    @property
    def paced(self) -> bool:
        """Whether a certificate after some epochs has told their pace."""
        return self.gap < 1.0 and self.learnt > 0

    def count_epoch(self, share: float, guess: float, nanoseconds: float = 0.0) -> None:
        """An epoch visited this share of the rows, and guesses at the gap; a whole one has this price."""
        self.epoch += 1
        self.share, self.guess = share, guess
        self.rested += 1 - share
        self.epochs_nanoseconds += share * nanoseconds

    def learn(self, gap: float) -> None:
        """A certificate on schedule found this gap."""
        gap = max(gap, TINY)
        before, at = (self.gap, self.gap_epoch) if self.gap < 1.0 else (1.0, 0)
        epochs = max(self.epoch - at, 1)
        self.rate = max(math.log(before / gap), _SLOWEST) / epochs if gap < math.inf else _SLOWEST
        self.gap, self.gap_epoch = gap, self.epoch
        self.learnt = self.epoch

    def adopted(self, gap: float) -> None:
        """The run goes on from a proposal of this gap."""
        if gap < _PAID * self.gap and self.attempts_in_vain:
            self.attempts_in_vain -= 1
            self.attempt_due = math.ceil(_LATER * self.epoch) + 1
        self.gap, self.gap_epoch = max(gap, TINY), self.epoch

    def attempted(self, passes: float | None) -> None:
        """An attempt came to a point for so many passes; None where none was made, or none came of it."""
        self.attempt_due = 2 * self.epoch if passes is not None else math.ceil(_LATER * self.epoch) + 1
        if passes is not None:
            self.attempt_passes += passes
            self.attempts_in_vain += 1

    def epochs_left(self, tol: float) -> float:
        """Epochs until the goal is reached, at the rate of the last certificates; many if it is not known.

        Now and then a certificate gains nothing: the rate is at least a third of what it has been all along.
        """
        if not (self.gap < 1.0 and tol > 0):
            return math.log(1 / TINY) / _SLOWEST  # through all numbers that there are
        rate = max(self.rate, _SHARE_OF_MEAN * math.log(1 / max(self.gap, TINY)) / max(self.epoch, 1))
        return math.log(max(self.gap / tol, 1.0)) / rate

    def as_dict(self) -> dict[str, Any]:
        """What a saved run needs."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Progress:
        """What :meth:`as_dict` gave, among other things; numbers that an older run did not count have their defaults.

        `epoch` must be there.
        """
        values = {}
        for field in dataclasses.fields(cls):
            old = _OLD_NAMES.get(field.name, field.name)
            if field.name in saved or old in saved:
                values[field.name] = saved[field.name] if field.name in saved else saved[old]
        return cls(**values)
