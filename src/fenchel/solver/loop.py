"""The one loop: for one alpha or a falling sequence of them; epochs, certificates, limits, callbacks, status.

Every answer goes through it, a path's and a fold's too, and nobody else makes a Result. For every alpha the order is:
what is known or predicted, and then rounds of an engine if one fits (along a path without one, Newton's method from the
prediction) and epochs of the method with attempts between them, in turns (``solver/turns.py``).
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..engine.attempts import Correction
from ..engine.registry import fitting
from ..engine.roles import Array, Engine, Goal, Iterate, Proposal
from ..foundation.interrupts import interrupts_noticed
from ..methods.roles import PrimalIterate, State
from ..problem import Certificate, Point, Problem
from .attainment import unattained
from .convergence import NOTHING, Convergence, stalled
from .epochs import HANDFUL, Epochs
from .live import make_progress
from .progress import Progress
from .result import History, Record, Result, Snapshot, Status
from .schedule import Schedule
from .settings import Settings
from .starts import Start, Track
from .turns import Turns, fold_of

_GOOD = 1e-2  # relative gap of a proposal that is taken where the iterate has none; larger: worse points are taken
_ALMOST = 1e-3  # of the objective at zero: where a loss without a least value may be on its way to infinity
_SHARPER = 0.5  # of the gap at the last certificate with more digits: where another one is worth its time
_RELAXED = (4, 16, 64)  # certificates after which the bound without a penalty is tried, which takes one of its own


def fit(problem: Problem, settings: Settings, warm_start: Result | None = None) -> Result:
    """The answer at one alpha, from zero or from another result."""
    run = _Run(problem, settings, _Engines(problem, settings, [problem.alpha]))
    start = Start.of(problem, warm_start)
    if warm_start is None and run.engines.engine is not None:
        start.known = _nothing_penalised(problem)
    return run.go(start)


def _nothing_penalised(problem: Problem) -> Iterate | None:
    """The answer whose penalised part is zero, where somebody knows it and alpha is large enough for it."""
    found = problem.zero_answer
    if found is None or not found.alpha <= problem.alpha * (1 + 1e-12) or found.y.size != problem.d:
        return None
    return Iterate(found.w, found.x, found.y, problem.gradient_sum(found.x), np.zeros(problem.d))


def follow(
    problem: Problem, alphas: Sequence[float], settings: Settings, known: Iterate | None = None, *, correct: bool = True
) -> Iterator[Result]:
    """The answers for falling alphas, one after another, without the method's state.

    `known` is the answer at the first of them, if somebody knows it; `correct` lets Newton's method carry a prediction
    to the next answer, where no engine does. After Ctrl-C the last result has that status.
    """
    engines, track = _Engines(problem, settings, alphas), Track()
    correction = None
    if correct and engines.engine is None and settings.max_epochs > 0 and Correction.unfit(problem) is None:
        correction = Correction(problem)
    problem.zero_certificate()  # what it knows of zero is shared by all alphas
    with interrupts_noticed() as caught:
        for k, alpha in enumerate(alphas):
            at = problem.with_alpha(alpha)
            run = _Run(at, settings.sharing(len(alphas) - k), engines, caught)
            if correction is not None:
                correction.move_to(at)
            # an engine predicts for itself
            start = Start(known=known, keep=False) if engines.engine is not None else track.start(at, known)
            result = run.go(start, correction)
            known = None
            if engines.engine is None and run.method.continues:
                end = run.end()
                if isinstance(end, Iterate):
                    track.add(alpha, end, run.rho)
            yield result
            if result.status is Status.INTERRUPTED:
                return


class _Engines:
    """The engine that fits, for a whole sequence of alphas; None where the method or its options do not allow one."""

    def __init__(self, problem: Problem, settings: Settings, alphas: Sequence[float]) -> None:
        allowed = problem.pooled or (settings.engines and settings.max_epochs >= HANDFUL)
        self.engine: Engine | None = fitting(problem) if allowed else None
        self.alphas, self.tol, self.begun = alphas, settings.tol, False

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """What the engine proposes; it is told of all alphas before its first round."""
        if self.engine is not None:
            if not self.begun:
                self.begun = True
                self.engine.begin(problem, self.alphas, self.tol)
            yield from self.engine.rounds(problem, start, goal)


class _Run(Epochs):
    """One alpha."""

    def __init__(
        self, problem: Problem, settings: Settings, engines: _Engines, caught: list[int] | None = None
    ) -> None:
        """`caught` are the interrupts so far, where somebody notices them for several alphas."""
        self.problem, self.settings, self.engines = problem, settings, engines
        self.noticing = interrupts_noticed() if caught is None else contextlib.nullcontext(caught)
        self.tol, self.max_epochs = settings.tol, settings.max_epochs
        self.best = Certificate(np.inf, -np.inf, np.inf, "no certificate was made")
        self.w: Array | None = None  # the best one so far
        self.progress, self.work = Progress(), 0.0
        self.state: State | None = None  # until the method has made one
        self.schedule: Schedule | None = None
        self.proposal: Proposal | None = None  # the best one before the method has begun
        self.gap = math.inf  # relative, of the first certificate
        self.last = self.max_epochs  # passes at which the run ends
        self.begun = False  # whether the method has had a turn
        self.interrupts: list[int] = []
        self.suspected = False  # whether the infimum may not be attained
        self.sharpened = math.inf  # the gap at the last certificate with more digits

    def go(self, start: Start, correction: Correction | None = None) -> Result:
        self.clock = time.perf_counter()
        limit = self.settings.time_limit
        self.deadline = math.inf if limit is None else self.clock + limit
        self.rule = Convergence.of(self.problem, self.tol)
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
        coef, intercept = self.problem.unpack(np.zeros(self.problem.size) if self.w is None else self.w)
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
        self._leave_out_penalty()
        if status in (Status.EPOCH_LIMIT, Status.TIME_LIMIT, Status.STALLED) and self.rule.reached(self.best):
            return Status.CONVERGED  # exact zeros closed the rest of the gap
        if status in (Status.EPOCH_LIMIT, Status.TIME_LIMIT, Status.STALLED):
            why = unattained(self.problem)
            if why:
                status, self.best.reason = Status.NO_ANSWER, why
        return status

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
                self._offer(answer)
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
        self._take(proposal.w if self.engines.engine is not None else proposal.w.copy(), made)
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
        self._take(proposal.iterate.w.copy(), made)
        status = self._judge(made, proposal.iterate.w, proposal.by, lambda: proposal.iterate)
        done = status is Status.CONVERGED
        if status is None and progress.epoch and progress.gap == math.inf:
            status = self._certify(on_schedule=True)  # the iterate may be the better one
        if done or made.relative_gap < (progress.gap if progress.gap < math.inf else _GOOD):
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
        self._take(at, made)
        other = method.alternative(state)
        if other is not None:
            second = problem.certificate(other)
            self._take(other.w.copy(), second)
            if on_schedule:
                method.consider_restart(state, made.gap, second.gap)
        return self._judge(made, at, method.name, lambda: iterate)

    def _judge(
        self, made: Certificate, at: Array, by: str, point: Callable[[], Iterate | PrimalIterate] | None = None
    ) -> Status | None:
        """Record a certificate of a point that somebody found, and say whether to stop; `point` gives it with its dual
        variables."""
        best, settings, records, rho = self.best, self.settings, self.history.records, self.rho
        blurred = point is not None and self._is_blurred(made, at, point)
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
            self._leave_out_penalty()
        if self.rule.reached(best):
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        if blurred:
            best.reason = f"{made.rounding:.1e} of the gap allow for rounding: no smaller one can be proven"
            return Status.STALLED
        if self._seems_unattained(made):
            best.reason = unattained(self.problem)
            if best.reason:
                return Status.NO_ANSWER
        return Status.STALLED if stalled(records, self.inherited, self.rule.at_zero) else None

    def _leave_out_penalty(self) -> None:
        """Where the penalty is next to nothing of the objective, the optimum without it is as good a lower bound, and
        one that weights below all rounding do not spoil."""
        problem, best = self.problem, self.best
        if self.w is None or not problem.alpha > 0 or not math.isfinite(best.primal):
            return
        weak = problem.penalty_value(problem.penalised(self.w)) <= 0.5 * self.rule.allowed(best.primal)
        if weak and not self.rule.reached(best) and all(block.function.nonnegative for block in problem.blocks):
            best.dual = max(best.dual, problem.with_alpha(0.0).certificate(Point(self.w)).dual)

    def _is_blurred(self, made: Certificate, at: Array, point: Callable[[], Iterate | PrimalIterate]) -> bool:
        """Whether rounding is all that keeps the goal from being proven, with as many digits as there are.

        Bounds allow for rounding in sums over all of the data. Where that decides, sums with more digits are made.
        """
        best, allowed = self.best, self.rule.allowed(self.best.primal)
        if not (best.certified and 0 < allowed < best.gap <= max(allowed, made.rounding) + made.rounding):
            return False
        if self.problem.can_be_exact and best.gap < _SHARPER * self.sharpened:
            self.sharpened, found = best.gap, point()
            dual = getattr(found, "x", None), getattr(found, "y", None)
            sharp = self.problem.certificate(Point(at, *dual), exact=True)
            self._take(at, sharp)
            made.rounding = sharp.rounding
        return allowed < best.gap <= 2 * made.rounding

    def _seems_unattained(self, made: Certificate) -> bool:
        """Whether a loss that never reaches its least value is almost there, or directions without penalty cannot be
        balanced, as is so where it falls along them for ever; said once, for the proof takes time."""
        problem = self.problem
        if self.suspected or problem.pooled or not problem.loss.falls_towards(problem.target).any():
            return False
        at_zero, least = self.problem.objective_at_zero(), self.problem._dual_at_zero
        almost = self.best.primal - least <= _ALMOST * (at_zero - least) < math.inf
        self.suspected = almost or (bool(made.reason) and math.isfinite(self.best.primal))
        return self.suspected

    def _judge_zero(self) -> Status | None:
        made, at = self.problem.zero_certificate(), np.zeros(self.problem.size)
        self._take(at, made)
        return self._judge(made, at, "zero")

    def _offer(self, w: Array, primal: float | None = None, slack: float = 0.0) -> None:
        """Keep w, which nobody changes any more, if it is the best so far (or within `slack` of it)."""
        primal = self.problem.primal_at(w) if primal is None else primal
        if primal <= self.best.primal + slack:
            self.best.primal, self.w = primal, w

    def _take(self, w: Array, certificate: Certificate) -> None:
        """Both bounds hold for the one optimum, so the best of each are kept apart."""
        self._offer(w, certificate.primal)
        self.best.dual = max(self.best.dual, certificate.dual)

    def _snap(self) -> None:
        """Prefer the answer whose zeros and ties are exact, if the proof still covers it."""
        if self.state is None and (self.proposal is None or self.proposal.exact):
            return
        at = self.end()
        for snapped in self.problem.snaps(at.w, at.u):
            if self.w is not None and np.array_equal(snapped, self.w):
                continue
            slack = self.tol * abs(self.best.primal) - self.best.gap if self.best.certified else 0.0
            self._offer(snapped, slack=max(slack, 0.0))

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


def _once(correction: Correction, start: Iterate, goal: Goal) -> Iterator[Proposal]:
    """The one proposal of an attempt, if there is one."""
    found = correction.run(start, goal, math.inf)
    if found is not None:
        yield found
