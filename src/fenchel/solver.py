"""The one loop: epochs, certificates, limits, callbacks and status."""

from __future__ import annotations

import contextlib
import math
import numbers
import signal
import threading
import time
import types

import numpy as np

from .costs import epoch_nanoseconds
from .methods import make_method
from .problem import Certificate, Problem
from .progress import make_progress
from .result import History, Record, Result, Snapshot, Status

_ZERO = 1e-10  # relative to the objective at w = 0, what counts as zero
_GOOD = 1e-2  # relative gap of a proposal that is taken where the iterate has none
_HANDFUL = 8  # passes that an attempt between epochs may well cost: where fewer are allowed in all there is none
_CLOSE = 1.5  # times tol: a guess at the gap that calls for a certificate
_SHARE = 0.07  # of the run for certificates on schedule; the last ones come on top


def solve(
    problem: Problem,
    method: str = "sdca-admm",
    *,
    tol: float = 1e-6,
    max_epochs: int = 10_000,
    time_limit: float | None = None,
    callback=None,
    random_state: int | None = 0,
    warm_start: Result | None = None,
    check_every: int | None = None,
    progress: bool = False,
    **options,
) -> Result:
    """Solve a problem to a certified relative gap.

    Parameters
    ----------
    problem : Problem
    method : str
        ``"sdca-admm"``, or one of the methods it is compared with (``fenchel.methods.METHODS``). Its options are
        passed on (see :class:`fenchel.methods.sdca_admm.SDCAADMM`).
    tol : float
        Stop when gap <= tol * |primal|. 0 runs to the limit.
    max_epochs : int
        Passes over the data, in this call; an epoch in which rows rest counts for the rows it reads. An attempt of
        Newton's method that has begun is finished, which may take some passes more; with fewer than 8 there is none.
    time_limit : float, optional
        Seconds.
    callback : callable, optional
        Called with a :class:`fenchel.result.Snapshot` (epoch, seconds, primal, dual, gap, …, and the
        iterate's coef and intercept) after every certificate; a true return value stops.
    random_state : int
        Same seed, same bits.
    warm_start : Result, optional
        Continue from it: the same run resumed, or a neighbouring problem of the same shape.
    check_every : int, optional
        Epochs between certificates. By default they are spaced to cost less than 15 % of the run.
    progress : bool
        Show a live line.
    **options
        Of the method; for ``"sdca-admm"`` for instance ``n_jobs=2`` (threads, for wide dense data) or
        ``newton=False``. None needs to be set.

    Returns
    -------
    Result
        Also after Ctrl-C, with the best answer so far and its status.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem is {problem!r}; it must be a fenchel.Problem")
    if not (_real(tol) and np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol is {tol!r}; it must be a finite number, not negative")
    if not (_real(max_epochs) and np.isfinite(max_epochs) and max_epochs == np.floor(max_epochs) and max_epochs >= 0):
        raise ValueError(f"max_epochs is {max_epochs!r}; it must be a whole number, not negative")
    if time_limit is not None and not (_real(time_limit) and time_limit >= 0):
        raise ValueError(f"time_limit is {time_limit!r}; it must be a number of seconds, not negative")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback is {callback!r}; it must be a function of one argument")
    if warm_start is not None and not isinstance(warm_start, Result):
        raise ValueError(f"warm_start is {type(warm_start).__name__}; it must be a fenchel.Result")
    if check_every is not None and not (_real(check_every) and check_every >= 1 and check_every == int(check_every)):
        raise ValueError(f"check_every is {check_every!r}; it must be a whole number, at least 1")
    algorithm = make_method(method, options)
    why_not = algorithm.supports(problem)
    if why_not:
        raise ValueError(f"{method} does not fit this problem: {why_not}")
    run = _Run(problem, algorithm, tol, int(max_epochs), time_limit, callback, check_every)
    with make_progress(progress, tol, max_epochs) as show, _interrupts() as run.interrupts:
        return run.go(np.random.default_rng(random_state), warm_start, show)


@contextlib.contextmanager
def _interrupts():
    """The interrupts so far. One that is raised where Python swallows it (in a destructor, say) is not lost."""
    own = threading.current_thread() is threading.main_thread()
    if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield []
        return
    caught = []

    def handler(number, frame):
        caught.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handler)
    try:
        yield caught
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _real(value):
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


class _Run:
    def __init__(self, problem, method, tol, max_epochs, time_limit, callback, check_every):
        self.problem, self.method, self.tol, self.callback = problem, method, tol, callback
        self.check_every, self.work = check_every, 0.0
        self.max_epochs, self.time_limit = max_epochs, time_limit
        self.best = Certificate(np.inf, -np.inf, np.inf, "no certificate was made")
        self.w = np.zeros(problem.size)
        self.interrupts = []

    def go(self, rng, warm_start, show):
        clock = time.perf_counter()

        def out_of_time():
            return self.time_limit is not None and time.perf_counter() - clock >= self.time_limit

        self.method.deadline = np.inf if self.time_limit is None else clock + self.time_limit
        zero = self.problem.zero_certificate()
        # an optimum of zero is one that can be reached
        self.at_zero = zero.primal if np.isfinite(zero.primal) and self.problem.loss.attained else 0.0
        # a run of this very problem is resumed; from any other only the point itself is taken
        resumed = warm_start is not None and warm_start.state.get("problem") == self.problem.fingerprint
        before = warm_start.seconds if resumed else 0.0
        self.history = History(warm_start.history if resumed else ())
        self.inherited = len(self.history)
        self.elapsed = lambda: before + time.perf_counter() - clock
        self.state = state = types.SimpleNamespace(epoch=0, u=None, as_dict=dict)  # until the method has made one
        status = None
        try:
            warm = None if warm_start is None else warm_start.state | {"resumed": resumed}
            self.state = state = self.method.start(self.problem, rng, warm)
            last, room = _spent(state) + self.max_epochs, self.max_epochs >= _HANDFUL
            spacing = self.check_every or _spacing(self.problem, self.method)
            if not getattr(state, "due", 0) > state.epoch:
                state.due = state.epoch + spacing - state.epoch % spacing
            if warm_start is not None:
                intercept = warm_start.intercept if self.problem.fit_intercept else 0.0
                self._offer(self.problem.pack(warm_start.coef, intercept))
                status = self._certify(show, on_schedule=False)
            else:
                status = self._judge(show, zero)
            # before all epochs, and where an attempt fell on the last epoch of the run that is resumed
            first = warm_start is None or (resumed and (state.epoch > 0 or not getattr(state, "newton_passes", 1)))
            if status is None and room and first and not out_of_time():
                status = self._ask(show)
            while status is None:
                if _spent(state) >= last:
                    status = Status.EPOCH_LIMIT
                    break
                if self.interrupts:
                    raise KeyboardInterrupt
                began = time.perf_counter()
                self.method.epoch(state)
                self.work += time.perf_counter() - began
                late = out_of_time()
                on_schedule = state.epoch >= state.due or self._seems_close()
                if on_schedule or _spent(state) >= last or late:
                    status = self._certify(show, on_schedule)
                if on_schedule:
                    state.due = state.epoch + self._wait(spacing)
                if status is None and room and not late and _spent(state) < last:
                    status = self._ask(show)
                if status is None and late:
                    status = Status.TIME_LIMIT
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if not len(self.history):
            self._judge(show, zero)
        self._snap()
        if not np.isfinite(self.best.primal):
            self.best.reason = self.best.reason or "no point within the constraints was found"
        if status in (Status.EPOCH_LIMIT, Status.TIME_LIMIT) and self._close():
            status = Status.CONVERGED  # exact zeros closed the rest of the gap
        coef, intercept = self.problem.unpack(self.w)
        return Result(
            coef=coef.copy(), intercept=intercept, primal=self.best.primal, dual=self.best.dual, status=status,
            history=self.history, epochs=_spent(state), seconds=self.elapsed(),
            state=state.as_dict() | {"problem": self.problem.fingerprint},
            reason=self.best.reason,
        )  # fmt: skip

    def _offer(self, w, primal=None, slack=0.0):
        """Keep w if it is the best so far (or within `slack` of it)."""
        primal = self.problem.primal_at(w) if primal is None else primal
        if primal <= self.best.primal + slack:
            self.best.primal, self.w = primal, w.copy()

    def _take(self, w, certificate):
        """Both bounds hold for the one optimum, so the best of each are kept apart."""
        self._offer(w, certificate.primal)
        self.best.dual = max(self.best.dual, certificate.dual)

    def _certify(self, show, on_schedule):
        """Make a certificate, record it, and say whether to stop.

        Off schedule (first, last, out of time) it must not touch the state, so that a run which is
        stopped and resumed goes the way of one that was not.
        """
        state, scores = self.state, None
        # the structure of u is nearer to the answer's than w is
        at = self.problem.within(self.problem.snap(state.w, state.u)) if self.method.snaps else state.w.copy()
        if on_schedule and getattr(state, "zx", None) is not None:
            # the running sum gathers rounding errors
            scores, state.zx[:] = self.problem.sweep(at, state.x)
        made = self.problem.certificate(state, fresh=not on_schedule, primal=self.problem.primal_at(at, scores))
        if on_schedule:
            self.method.learn(state, made.relative_gap)
        self._take(at, made)
        other = self.method.alternative(state)
        if other is not None:
            second = self.problem.certificate(other)
            self._take(other.w, second)
            if on_schedule:
                self.method.consider_restart(state, made.gap, other, second.gap)
        return self._judge(show, made, at)

    def _wait(self, spacing):
        """Epochs to the next certificate: more of them as the run grows long, fewer if the goal seems near."""
        if self.check_every:
            return spacing
        spacing = math.ceil(spacing / getattr(self.state, "share", 1.0))  # epochs in which rows rest are short
        left = self.method.epochs_left(self.state, self.tol)
        # no sooner than after what two certificates cost, unless the goal is surely reached by then
        least = min(math.ceil(0.15 * spacing), math.ceil(1.5 * left) + 1)
        return int(np.clip(math.ceil(0.7 * left), least, max(spacing, self.state.epoch // 12)))

    def _ask(self, show):
        """Certify a point that the method proposes; take it as the new state where it is worth more than the old."""
        began = time.perf_counter()
        proposal = self.method.proposal(self.state, self.tol)
        self.work += time.perf_counter() - began
        if proposal is None:
            return None
        made = proposal.made or self.problem.certificate(proposal, fresh=False, primal=proposal.primal)
        self._take(proposal.w, made)
        status = self._judge(show, made, proposal.w)
        done = status is Status.CONVERGED
        if status is None and self.state.epoch and self.state.gap == np.inf:
            status = self._certify(show, on_schedule=True)  # the iterate may be the better one
        if done or made.relative_gap < (self.state.gap if self.state.gap < np.inf else _GOOD):
            self.method.adopt(self.state, proposal, made.relative_gap)
        return status

    def _judge(self, show, made, at=None):
        """Record a certificate of the iterate `at` (zero by default) and say whether to stop."""
        state, best = self.state, self.best
        if at is None:
            at = np.zeros(self.problem.size)
            self._take(at, made)
        best.residual, best.reason = made.residual, made.reason
        rho = getattr(state, "rho", np.nan)
        record = Record(
            _spent(state), self.elapsed(), best.primal, best.dual, made.residual, rho, self.work, made.primal
        )
        self.history.records.append(record)
        show(record)
        stop = self.callback is not None and self.callback(Snapshot(record, self.problem, at))
        if self._close():
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        return Status.STALLED if self._stalled() else None

    def _close(self):
        """The gap is within tol of the objective (of a trace of its value at zero, where the optimum is zero)."""
        if not self.best.certified:
            return False
        return self.best.gap <= self.tol * max(abs(self.best.primal), _ZERO * abs(self.at_zero), 1e-300)

    def _seems_close(self):
        """Whether the goal may be reached before the first certificate is due."""
        guess = getattr(self.state, "guess", np.inf)
        return guess <= _CLOSE * self.tol and self.check_every is None and self.state.gap == np.inf

    def _stalled(self):
        """The gap has been at the level of rounding, without progress, for 12 certificates."""
        records = self.history.records
        last = records[max(self.inherited, len(records) - 13) :]
        return len(last) == 13 and last[0].relative_gap < 1e-12 and last[-1].relative_gap > 0.99 * last[0].relative_gap

    def _snap(self):
        """Prefer the answer whose zeros and ties are exact, if the proof still covers it."""
        if getattr(self.state, "u", None) is None:
            return
        for snapped in self.problem.snaps(self.state.w, self.state.u):
            if np.array_equal(snapped, self.w):
                continue
            slack = self.tol * abs(self.best.primal) - self.best.gap if self.best.certified else 0.0
            self._offer(snapped, slack=max(slack, 0.0))


def _spent(state) -> int:
    """Passes over the data so far."""
    return getattr(state, "passes", state.epoch)


def _spacing(problem, method) -> int:
    """Epochs between certificates, so that they cost a small share of the run (by a model, not by the clock)."""
    work = problem.data.stored * problem.layout[0]
    sparse = problem.data.sparse
    epoch = epoch_nanoseconds(problem)
    product = 2 * work if sparse else 0.35 * work
    certificate = 7e5 + product + 45 * problem.visits + 60 * problem.d
    certificate += product  # Z x afresh
    free = problem.constraint_count
    if free:
        certificate += product + problem.visits * (45 + free * (free + 30))
    if method.averages:
        certificate *= 2
    return max(1, math.ceil(certificate / (_SHARE * epoch)))
