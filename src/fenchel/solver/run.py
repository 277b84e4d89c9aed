"""One alpha: certificates, rounds of an engine and epochs of the method in turns, limits, callbacks, status.

Nobody else makes a Result.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..engine.attempts import Correction
from ..engine.roles import Array, Goal, Iterate, Proposal
from ..foundation.interrupts import interrupts_noticed
from ..foundation.lazy import lazy
from ..foundation.numerics import NOTHING
from ..methods.roles import Method, PrimalIterate, State
from ..prices import accelerated_nanoseconds, certificate_nanoseconds, epoch_nanoseconds
from ..problem import Certificate, Problem
from .best import Best
from .convergence import Convergence, stalled
from .engines import HANDFUL, Engines
from .live import make_progress
from .progress import Progress
from .result import History, Record, Result, Snapshot, Status
from .schedule import Schedule
from .settings import Settings
from .starts import Start, warm_state
from .turns import Turns, fold_of

# of the run for certificates on schedule; the last ones come on top; larger: more time on proofs, less beyond the
# goal
_SHARE = 0.07
_RELAXED = (4, 16, 64)  # certificates after which the bound without a penalty is tried, which takes one of its own


class Run:
    """One alpha."""

    def __init__(self, problem: Problem, settings: Settings, engines: Engines, caught: list[int] | None = None) -> None:
        """`caught` are the interrupts so far, where somebody notices them for several alphas."""
        self.problem, self.settings, self.engines = problem, settings, engines
        self.noticing = interrupts_noticed() if caught is None else contextlib.nullcontext(caught)
        self.tol, self.max_epochs = settings.tol, settings.max_epochs
        self.progress, self.work = Progress(), 0.0
        self.state: State | None = None  # until the method has made one
        self.schedule: Schedule | None = None
        self.proposal: Proposal | None = None  # the best one before the method has begun
        self.gap = math.inf  # relative, of the first certificate
        self.last = self.max_epochs  # passes at which the run ends
        self.begun = False  # whether the method has had a turn
        self.interrupts: list[int] = []

    def go(self, start: Start, correction: Correction | None = None) -> Result:
        self.clock = time.perf_counter()
        limit = self.settings.time_limit
        self.deadline = math.inf if limit is None else self.clock + limit
        self.rule = Convergence.of(self.problem, self.tol)
        self.known = Best(self.problem, self.rule)
        self.best = self.known.certificate
        self.before, self.history = start.seconds, History(start.history)
        self.inherited = len(self.history)
        status: Status | None = None
        with make_progress(self.settings.show, self.tol) as self.show, self.noticing as self.interrupts:
            if self.settings.show:
                self.problem.watch(self.show.reading)
            try:
                if start.is_zero and not self._has_rounds(correction):
                    self._start_method(None, False)
                status = self._open(start) or self._take_turns(start, correction)
            except KeyboardInterrupt:
                status = Status.INTERRUPTED
            if not len(self.history):
                self._judge_zero()
        self._snap()
        if status is not Status.CONVERGED:
            status = self._explained(status)
        return self._result(status, start.keep)

    def _result(self, status: Status, keep: bool) -> Result:
        """What is known so far."""
        coef, intercept = self.problem.unpack(np.zeros(self.problem.size) if self.known.w is None else self.known.w)
        coef += 0.0  # no zero has a sign
        return Result(
            coef=coef, intercept=intercept, primal=self.best.primal, dual=self.best.dual, status=status,
            history=self.history, epochs=self.progress.passes, seconds=self._elapsed(),
            state=self._saved() if keep else {}, reason=self.best.reason,
        )  # fmt: skip

    def _explained(self, status: Status) -> Status:
        """Why a run ended before its goal, or that it got there in the end."""
        if not math.isfinite(self.best.primal):
            self.best.reason = self.best.reason or "no point within the constraints was found"
        self.known.leave_out_penalty()
        if status in (Status.EPOCH_LIMIT, Status.TIME_LIMIT, Status.STALLED) and self.rule.reached(self.best):
            return Status.CONVERGED  # exact zeros closed the rest of the gap
        if status in (Status.EPOCH_LIMIT, Status.TIME_LIMIT, Status.STALLED):
            status = self.known.unattained() or status
        return status

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

    def end(self) -> Iterate | PrimalIterate:
        """Where the run has come to, with its dual variables."""
        if self.state is not None:
            return self.method.iterate(self.state)
        return Iterate.zero(self.problem) if self.proposal is None else self.proposal.iterate

    # -- before the first epoch ------------------------------------------------------------------------

    def _open(self, start: Start) -> Status | None:
        """The first certificate: of another result, of zero, or none where a prediction has none worth making."""
        if start.saved is not None and not self.problem.pooled:
            self._start_method(start.saved, start.resumed)
            answer = start.packed(self.problem)
            if answer is not None:
                self.known.offer(answer)
            return self._certify(on_schedule=False)
        status = None
        # along a path an engine starts warm
        if start.predicted is None and (start.keep or self.engines.engine is None):
            status = self._judge_zero()
        if status is None and start.known is not None:
            status = self._consider(self._as_known(start.known))
        return status

    def _as_known(self, iterate: Iterate) -> Proposal:
        """An answer that somebody knows, as a proposal: its certificate takes a pass over the data."""
        made = self.problem.certificate(iterate)
        return Proposal(iterate, made.primal, 1.0, "known answer", made)

    # -- turns -----------------------------------------------------------------------------------------

    def _take_turns(self, start: Start, correction: Correction | None) -> Status:
        """Rounds of an engine, or Newton's method from a prediction, and epochs, until one of them gets there."""
        source, turns = self._source(start, correction), self._turns()
        # the epochs see to the limits where there is but one proposal
        status, going = None if correction is not None or source is None else self._limit(), False
        while status is None:
            if self.interrupts:
                raise KeyboardInterrupt
            if self.problem.pooled and source is None:
                return Status.STALLED  # there are no epochs over rows that nobody holds
            if source is not None and (self.problem.pooled or turns.engine_goes(self.progress)):
                going, proposal = False, self._next(source)
                if proposal is None:
                    source, self.progress.engine_ended = None, True
                    continue
                status = self._consider(proposal) or (self._limit() if correction is None else None)
                if status is not None:
                    self._go_on_from_proposal()
            elif self.state is None:
                status = self._begin(start)
            elif not going:
                going, status = True, self._resume_epochs(start)
            else:
                status = self._epoch()
        return status

    def _turns(self) -> Turns:
        return Turns(lambda: self.epoch_price, self.tol, fold_of(self.problem))

    def _source(self, start: Start, correction: Correction | None) -> Iterator[Proposal] | None:
        """Who proposes points beside the epochs, if anybody does."""
        if self.progress.engine_ended or not self._has_rounds(correction):
            return None
        at = self._around(start)
        goal = Goal(self.tol, self.deadline, self.last - self.progress.passes, self.rule.allowed)
        if correction is not None:
            return _once(correction, at or Iterate.zero(self.problem), goal)
        return self.engines.rounds(self.problem, at, goal)

    def _next(self, source: Iterator[Proposal]) -> Proposal | None:
        began = time.perf_counter()
        proposal = next(source, None)
        self.work += time.perf_counter() - began
        return proposal

    def _go_on_from_proposal(self) -> None:
        """Let the method, if it has begun, go on from the best proposal so far, if that is better than its iterate."""
        if self.state is None or self.proposal is None:
            return
        gap = self.progress.gap if self.progress.gap < math.inf else self.gap
        if self._certificate_of(self.proposal).relative_gap < gap:
            self._adopt(self.proposal)

    def _has_rounds(self, correction: Correction | None) -> bool:
        """Whether something may find the answer before the method has to start."""
        return self.engines.engine is not None or correction is not None

    def _around(self, start: Start) -> Iterate | None:
        """The point that rounds begin at: of the result that is continued (a copy, for the method goes on), or
        predicted."""
        if self.state is None:
            return start.predicted
        at = self.method.iterate(self.state)
        return at.copy() if isinstance(at, Iterate) else None

    def _consider(self, proposal: Proposal) -> Status | None:
        """Judge a proposal before the first epoch, and remember it if it is the best."""
        made = self._checked(proposal)
        self.progress.engine_passes += proposal.passes
        self.progress.engine_nanoseconds += proposal.nanoseconds or proposal.passes * self._pass_price
        # an engine leaves alone what it has proposed; epochs may go on in the arrays of others
        self.known.take(proposal.w if self.engines.engine is not None else proposal.w.copy(), made)
        before = self.proposal
        if before is None or made.relative_gap < self._certificate_of(before).relative_gap:
            self.proposal = proposal
        status = self._judge(made, proposal.w, proposal.by, lambda: proposal.iterate)
        if self.settings.checkpoint is not None:
            self._result(Status.INTERRUPTED if status is None else status, True).save(self.settings.checkpoint)
        return status

    def _limit(self) -> Status | None:
        """The limit that is reached, if one is."""
        if time.perf_counter() >= self.deadline:
            return Status.TIME_LIMIT
        return Status.EPOCH_LIMIT if self.progress.passes >= self.last else None

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
            self.known.offer(warm["w"].copy())
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

    # -- epochs ----------------------------------------------------------------------------------------

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

    def _ask(self) -> Status | None:
        """Certify a point that somebody proposes; take it as the new state where it is worth more than the old."""
        at = None if self.state is None else self.method.iterate(self.state)
        if self.schedule is None or not isinstance(at, Iterate):
            return None
        progress, began = self.progress, time.perf_counter()
        goal = Goal(self.tol, self.deadline, self.last - progress.passes, self.rule.allowed)
        before = progress.attempt_passes
        proposal = self.schedule.propose(at, progress, goal)
        progress.epochs_nanoseconds += (progress.attempt_passes - before) * self._pass_price
        self.work += time.perf_counter() - began
        if proposal is None:
            return None
        made = self._checked(proposal)
        self.known.take(proposal.iterate.w.copy(), made)
        status = self._judge(made, proposal.iterate.w, proposal.by, lambda: proposal.iterate)
        done = status is Status.CONVERGED
        if status is None and progress.epoch and progress.gap == math.inf:
            status = self._certify(on_schedule=True)  # the iterate may be the better one
        if done or made.relative_gap < min(progress.gap, 1.0):
            self._adopt(proposal)
        return status

    def _adopt(self, proposal: Proposal) -> None:
        gap = self._certificate_of(proposal).relative_gap
        self.progress.adopted(gap)
        self.method.adopt(self.state, proposal.iterate, gap)

    # -- certificates ----------------------------------------------------------------------------------

    def _certificate_of(self, proposal: Proposal) -> Certificate:
        if proposal.certificate is None:
            proposal.certificate = self.problem.certificate(proposal.iterate, fresh=False, primal=proposal.primal)
        return proposal.certificate

    def _checked(self, proposal: Proposal) -> Certificate:
        """The certificate of a new proposal. Where its objective is next to nothing, the sums that were carried along
        on the way there are rounding, and it is made anew."""
        made = self._certificate_of(proposal)
        if made.primal <= NOTHING * self.problem.objective_at_zero() < math.inf:
            made.primal = proposal.primal = self.problem.primal_at(proposal.w)
        return made

    def _certify(self, on_schedule: bool) -> Status | None:
        """Make a certificate of the iterate, record it, and say whether to stop.

        Off schedule (first, last, out of time) it must not touch the state, so that a run which is
        stopped and resumed goes the way of one that was not.
        """
        problem, method, state, scores = self.problem, self.method, self.state, None
        iterate = method.iterate(state)
        # the structure of u is nearer to the answer's than w is
        at = problem.within(problem.snap(iterate.w, iterate.u)) if method.snaps else iterate.w.copy()
        if on_schedule and isinstance(iterate, Iterate):
            # the running sum gathers rounding errors
            scores, iterate.zx[:] = problem.sweep(at, iterate.x)
        made = problem.certificate(iterate, fresh=not on_schedule, primal=problem.primal_at(at, scores))
        if on_schedule:
            method.learn(state, made.relative_gap, self.progress.gap)
            if method.foreseeable:
                self.progress.learn(made.relative_gap)
        self.known.take(at, made)
        other = method.alternative(state)
        if other is not None:
            second = problem.certificate(other)
            self.known.take(other.w.copy(), second)
            if on_schedule:
                method.consider_restart(state, made.gap, second.gap)
        return self._judge(made, at, method.name, lambda: iterate)

    def _judge(
        self, made: Certificate, at: Array, by: str, point: Callable[[], Iterate | PrimalIterate] | None = None
    ) -> Status | None:
        """Record a certificate of a point that somebody found, and say whether to stop; `point` gives it with its dual
        variables."""
        best, settings, records, rho = self.best, self.settings, self.history.records, self.rho
        blurred = point is not None and self.known.is_blurred(made, at, point)
        if len(records) == self.inherited:
            self.gap = made.relative_gap
        best.residual, best.reason = made.residual, made.reason
        record = Record(
            self.progress.passes, self._elapsed(), best.primal, best.dual, made.residual,
            math.nan if rho is None else rho, self.work, made.primal, by, self.progress.nanoseconds,
        )  # fmt: skip
        records.append(record)
        self.show(record)
        stop = settings.callback is not None and settings.callback(Snapshot(record, self.problem, at))
        if best.contradictory:
            best.reason = f"the lower bound {best.dual!r} is above the upper one {best.primal!r}: please report this"
            return Status.CONTRADICTION
        if len(records) - self.inherited in _RELAXED:
            self.known.leave_out_penalty()
        if self.rule.reached(best):
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        if blurred:
            best.reason = f"{made.rounding:.1e} of the gap allow for rounding: no smaller one can be proven"
            return Status.STALLED
        if self.known.seems_unattained(made):
            without_answer = self.known.unattained()
            if without_answer is not None:
                return without_answer
        at_zero = self.problem.objective_at_zero()
        return Status.STALLED if stalled(records, self.inherited, at_zero if at_zero < math.inf else 0.0) else None

    def _judge_zero(self) -> Status | None:
        made, at = self.problem.zero_certificate(), np.zeros(self.problem.size)
        self.known.take(at, made)
        return self._judge(made, at, "zero")

    def _wait(self, spacing: int) -> int:
        """Epochs to the next certificate: fewer of them if the goal seems near."""
        if self.settings.check_every:
            return spacing
        progress = self.progress
        spacing = math.ceil(spacing / progress.share)  # epochs in which rows rest are short
        return max(1, min(math.ceil(progress.epochs_left(self.tol)), spacing))

    def _seems_close(self) -> bool:
        """Whether the goal may be reached before the first certificate is due, of a run or since it went on from a
        proposal."""
        progress = self.progress
        close = progress.guess <= self.tol
        unseen = progress.gap == math.inf or progress.learnt < progress.gap_epoch
        return close and self.settings.check_every is None and unseen

    def _snap(self) -> None:
        """Prefer the answer whose zeros and ties are exact, if the proof still covers it."""
        if self.state is None and (self.proposal is None or self.proposal.exact):
            return
        at = self.end()
        for snapped in self.problem.snaps(at.w, at.u, brief=time.perf_counter() >= self.deadline):
            if self.known.w is not None and np.array_equal(snapped, self.known.w):
                continue
            slack = self.tol * abs(self.best.primal) - self.best.gap if self.best.certified else 0.0
            self.known.offer(snapped, slack=max(slack, 0.0))

    # -- what is kept ----------------------------------------------------------------------------------

    def _elapsed(self) -> float:
        return self.before + time.perf_counter() - self.clock

    def _saved(self) -> dict[str, Any] | Callable[[], dict[str, Any]]:
        """What a warm start and a resumed run need; a function that makes it where the method has not begun."""
        problem, progress, proposal = self.problem, self.progress, self.proposal
        if self.state is not None:
            return self.state.as_dict() | progress.as_dict() | {"problem": problem.fingerprint}

        def made() -> dict[str, Any]:
            at = vars(Iterate.zero(problem) if proposal is None else proposal.iterate)
            own = {key: at[key].copy() for key in ("w", "x", "y", "u")}  # whoever goes on makes the sums anew
            return own | progress.as_dict() | {"problem": problem.fingerprint}

        return made


def spacing(problem: Problem, *, twice: bool = False) -> int:
    """Epochs between certificates, of which each is made `twice` or not, by the prices of both."""
    price = certificate_nanoseconds(problem) * (2 if twice else 1)
    return max(1, math.ceil(price / (_SHARE * epoch_nanoseconds(problem))))


def _once(correction: Correction, start: Iterate, goal: Goal) -> Iterator[Proposal]:
    """The one proposal of an attempt, if there is one."""
    found = correction.run(start, goal, math.inf)
    if found is not None:
        yield found
