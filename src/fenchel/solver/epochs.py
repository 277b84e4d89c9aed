"""The turn of the method within a run: its epochs, and when a certificate of them is due.

What certificates say, and when the run ends, is the matter of ``loop.py``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..engine.roles import Array, Proposal
from ..foundation.lazy import lazy
from ..methods.roles import Method, State
from ..prices import accelerated_nanoseconds, certificate_nanoseconds, epoch_nanoseconds
from ..problem import Certificate, Problem
from .progress import Progress
from .result import Status
from .schedule import Schedule
from .settings import Settings
from .starts import Start, warm_state

HANDFUL = 8  # passes that an attempt between epochs may well cost: where fewer are allowed in all there is none
_CLOSE = 1.5  # times tol: a guess at the gap that calls for a certificate
_SHARE = 0.07  # of the run for certificates on schedule; the last ones come on top
_TWO = 0.15  # of the wait between certificates: the shortest, which is what two of them cost
_LEFT, _SURELY = 0.7, 1.5  # of the epochs that seem to be left: when to look, and when the goal is surely reached
_GROWTH = 12  # certificates, that a long run may go without in the end, as a part of it


class Epochs:
    """The part of a run that makes epochs; the other one, in ``loop.py``, judges what they find."""

    problem: Problem
    settings: Settings
    tol: float
    max_epochs: int
    progress: Progress
    work: float  # seconds in epochs
    state: State | None
    schedule: Schedule | None
    proposal: Proposal | None
    last: int
    begun: bool
    deadline: float

    def _certify(self, on_schedule: bool) -> Status | None:
        raise NotImplementedError

    def _certificate_of(self, proposal: Proposal) -> Certificate:
        raise NotImplementedError

    def _ask(self) -> Status | None:
        raise NotImplementedError

    def _go_on_from_proposal(self) -> None:
        raise NotImplementedError

    def _offer(self, w: Array, primal: float | None = None, slack: float = 0.0) -> None:
        raise NotImplementedError

    @lazy
    def method(self) -> Method:
        """The method; an answer that an engine finds does without one."""
        return self.settings.make()

    @lazy
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.settings.seed)

    @property
    def rho(self) -> float | None:
        """The method's step, once it has begun."""
        return None if self.state is None else self.method.step_size(self.state)

    def _begin(self, start: Start) -> Status | None:
        """Start the method: from what is predicted or was found on the way there, or from zero."""
        predicted = start.predicted
        if predicted is not None and self.proposal is not None and self._certificate_of(self.proposal).certified:
            predicted = self.proposal.iterate
        spent, warm = self.progress, None
        if predicted is not None:
            warm = warm_state(self.problem, predicted.w, predicted.x, predicted.y, start.rho)
        self._start_method(warm, False)
        for name in ("engine_passes", "engine_ended", "engine_nanoseconds"):
            setattr(self.progress, name, getattr(spent, name))
        if warm is not None:
            self._offer(warm["w"].copy())
            return self._certify(on_schedule=False)
        return None

    def _start_method(self, warm: Mapping[str, Any] | None, resumed: bool) -> None:
        saved = None if warm is None else dict(warm) | {"resumed": resumed}
        self.state = state = self.method.start(self.problem, self.rng, saved)
        self.schedule = Schedule(self.problem) if self.method.attempts else None
        if resumed and warm is not None:
            self.progress = Progress.from_dict(warm)
        else:
            # a neighbour's answer has structure to begin with
            due = 1 if warm is not None else 0 if self.schedule is None else self.schedule.first_due()
            self.progress = Progress(epoch=state.epoch, attempt_due=due)
        self.last = self.progress.passes + self.max_epochs

    def _resume_epochs(self, start: Start) -> Status | None:
        """The method's turn begins: it goes on from the best proposal, and attempts may come before its first epoch."""
        progress = self.progress
        if start.predicted is None or progress.epoch:
            self._go_on_from_proposal()
        if not progress.due > progress.epoch:
            spacing = self.spacing
            progress.due = progress.epoch + spacing - progress.epoch % spacing
        if self.begun:
            return None
        self.begun = True
        # before all epochs, and where an attempt fell on the last epoch of the run that is resumed
        resumed = start.resumed and (progress.epoch > 0 or not progress.attempt_passes)
        cold = start.saved is None and start.predicted is None
        return self._ask() if self._has_room and (cold or resumed) and not self._late() else None

    def _epoch(self) -> Status | None:
        """One epoch, and what is due after it: a certificate, an attempt of another way."""
        state, progress = self.state, self.progress
        if progress.passes >= self.last:
            return Status.EPOCH_LIMIT
        began, status = time.perf_counter(), None
        report = self.method.epoch(state)
        progress.count_epoch(report.share, report.guess, self.epoch_price)
        self.work += time.perf_counter() - began
        late = self._late()
        on_schedule = progress.epoch >= progress.due or self._seems_close()
        if on_schedule or progress.passes >= self.last or late:
            status = self._certify(on_schedule)
        if on_schedule:
            progress.due = progress.epoch + self._wait(self.spacing)
        if status is None and self._has_room and not late and progress.passes < self.last:
            status = self._ask()
        return Status.TIME_LIMIT if status is None and late else status

    @lazy
    def epoch_price(self) -> float:
        return epoch_nanoseconds(self.problem)

    @lazy
    def _pass_price(self) -> float:
        """Nanoseconds of a pass over the data, where nobody says what a proposal cost."""
        return accelerated_nanoseconds(self.problem)

    @lazy
    def spacing(self) -> int:
        """Epochs between certificates, so that they cost a small share of the run (by a model, not by the clock)."""
        return self.settings.check_every or spacing(self.problem, twice=self.method.averages)

    @property
    def _has_room(self) -> bool:
        """Whether passes are left for an attempt."""
        return self.max_epochs >= HANDFUL

    def _late(self) -> bool:
        return time.perf_counter() >= self.deadline

    def _wait(self, spacing: int) -> int:
        """Epochs to the next certificate: more of them as the run grows long, fewer if the goal seems near."""
        if self.settings.check_every:
            return spacing
        progress = self.progress
        spacing = math.ceil(spacing / progress.share)  # epochs in which rows rest are short
        left = progress.epochs_left(self.tol)
        # no sooner than after what two certificates cost, unless the goal is surely reached by then
        least = min(math.ceil(_TWO * spacing), math.ceil(_SURELY * left) + 1)
        return int(np.clip(math.ceil(_LEFT * left), least, max(spacing, progress.epoch // _GROWTH)))

    def _seems_close(self) -> bool:
        """Whether the goal may be reached before the first certificate is due, of a run or since it went on from a
        proposal."""
        progress = self.progress
        close = progress.guess <= _CLOSE * self.tol
        unseen = progress.gap == math.inf or progress.learnt < progress.gap_epoch
        return close and self.settings.check_every is None and unseen


def spacing(problem: Problem, *, twice: bool = False) -> int:
    """Epochs between certificates, of which each is made `twice` or not, by the prices of both."""
    price = certificate_nanoseconds(problem) * (2 if twice else 1)
    return max(1, math.ceil(price / (_SHARE * epoch_nanoseconds(problem))))
