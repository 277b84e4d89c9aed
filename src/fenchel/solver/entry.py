"""The entry to the solver: arguments are checked here, and the loop does the rest."""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..engine.roles import Iterate
from ..methods import make_method
from ..problem import Problem
from . import loop
from .result import Result, Snapshot
from .settings import Settings


def solve(
    problem: Problem,
    method: str = "auto",
    *,
    tol: float = 1e-6,
    max_epochs: int = 10_000,
    time_limit: float | None = None,
    callback: Callable[[Snapshot], object] | None = None,
    random_state: int | None = 0,
    warm_start: Result | None = None,
    check_every: int | None = None,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Result:
    """Solve a problem to a certified relative gap.

    Where there is an intercept and some columns of dense data lie more than ten deviations from zero, ``"auto"`` works
    on a copy with centred columns, unless its engine sees to that itself or the data is mapped from a file. Answer,
    callbacks, state and certificate are those of the problem as it stands.

    Parameters
    ----------
    problem : Problem
    method : str
        ``"auto"``: an engine, where one fits, in turns with epochs of SDCA-ADMM; ``history.work()`` of the result
        tells who did what, and what it cost. ``"sdca-admm"``: its epochs alone. Or one of the methods it is compared
        with (``fenchel.methods.METHODS``). Options are passed on (see
        :class:`fenchel.methods.sdca_admm.SDCAADMM`).
    tol : float
        Stop when gap <= tol * |primal|. 0 runs to the limit.
    max_epochs : int
        Passes over the data, in this call; an epoch in which rows rest counts for the rows it reads. An attempt of
        Newton's method that has begun is finished, which may take some passes more; with fewer than 8 there is none.
    time_limit : float, optional
        Seconds.
    callback : callable, optional
        Called with a :class:`fenchel.solver.result.Snapshot` (epoch, seconds, primal, dual, gap, …, and the
        iterate's coef and intercept) after every certificate; a true return value stops.
    random_state : int
        Same seed, same bits.
    warm_start : Result, optional
        Continue from it: the same run resumed, or a neighbouring problem of the same shape. Epochs that are resumed go
        the way of an uninterrupted run, bit for bit; rounds of an engine begin anew at the point that was reached.
    check_every : int, optional
        Epochs between certificates. By default they are spaced to cost less than 15 % of the run.
    progress : bool
        Show a live line.
    checkpoint : path, optional
        For rows in a pool: a file that the run is saved to after every round, and goes on from where it is there. It
        holds a few vectors of the coefficients' length, and may be resumed with other workers, or with none.
    **options
        Of the method; for ``"auto"`` and ``"sdca-admm"`` for instance ``n_jobs=2`` (threads, for wide dense data).
        None needs to be set.

    Returns
    -------
    Result
        Also after Ctrl-C, with the best answer so far and its status.
    """
    settings = _settings(
        problem, method, options, tol=tol, max_epochs=max_epochs, time_limit=time_limit, callback=callback,
        random_state=random_state, check_every=check_every, progress=progress,
    )  # fmt: skip
    if warm_start is not None and not isinstance(warm_start, Result):
        raise ValueError(f"warm_start is {type(warm_start).__name__}; it must be a fenchel.Result")
    if checkpoint is not None:
        settings = dataclasses.replace(settings, checkpoint=os.fspath(checkpoint))
        warm_start = _resumed(problem, settings.checkpoint, warm_start)
    return loop.fit(problem, settings, warm_start)


def _resumed(problem: Problem, path: str | None, warm_start: Result | None) -> Result | None:
    """What a checkpoint holds, if it is there; a ValueError where it is one of another problem."""
    if not problem.pooled:
        raise ValueError(
            "checkpoint is for rows in a pool; save the result of a run in memory, and pass it as warm_start"
        )
    if path is None or not os.path.exists(path):
        return warm_start
    found = Result.load(path)
    if found.state.get("problem") != problem.fingerprint:
        raise ValueError(f"checkpoint {path} is of another problem; remove it, or name another file")
    return found


def follow(
    problem: Problem,
    alphas: Sequence[float],
    method: str = "auto",
    *,
    known: Iterate | None = None,
    correct: bool = True,
    tol: float = 1e-6,
    max_epochs: int = 10_000,
    time_limit: float | None = None,
    callback: Callable[[Snapshot], object] | None = None,
    random_state: int | None = 0,
    check_every: int | None = None,
    progress: bool = False,
    until: float = math.inf,
    **options: Any,
) -> Iterator[Result]:
    """The results for falling alphas, each from the ones before; see :func:`solve` for the arguments, which hold for
    every alpha. `known` is the answer at the first, if somebody knows it; `correct` lets Newton's method carry a
    prediction to the next answer, where no engine does. `until` is the time of the clock (perf_counter) by which all
    must be done: each alpha gets its share of what is left, and what it does not use goes to those after it.

    The results come without the method's state; after Ctrl-C the last one has that status.
    """
    settings = _settings(
        problem, method, options, tol=tol, max_epochs=max_epochs, time_limit=time_limit, callback=callback,
        random_state=random_state, check_every=check_every, progress=progress,
    )  # fmt: skip
    settings = dataclasses.replace(settings, until=until)
    return loop.follow(problem, alphas, settings, known, correct=correct)


def _settings(
    problem: Problem, method: str, options: dict[str, Any], *, tol: float, max_epochs: int, time_limit: float | None,
    callback: Callable[[Snapshot], object] | None, random_state: int | None, check_every: int | None, progress: bool,
) -> Settings:  # fmt: skip
    """The arguments, checked; an error names what is wrong."""
    if not isinstance(problem, Problem):
        shown = f"of type {type(problem).__name__}" if hasattr(problem, "shape") else repr(problem)
        raise ValueError(
            f"problem is {shown}; it must be a fenchel.Problem, e.g. fenchel.Problem(X, y, loss='squared', "
            "penalty=fenchel.L1(), alpha=0.1)"
        )
    if not (_real(tol) and np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol is {tol!r}; it must be a finite number, not negative")
    if not (_real(max_epochs) and np.isfinite(max_epochs) and max_epochs == np.floor(max_epochs) and max_epochs >= 0):
        raise ValueError(f"max_epochs is {max_epochs!r}; it must be a whole number, not negative")
    if time_limit is not None and not (_real(time_limit) and time_limit >= 0):
        raise ValueError(f"time_limit is {time_limit!r}; it must be a number of seconds, not negative")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback is {callback!r}; it must be a function of one argument")
    if check_every is not None and not (_real(check_every) and check_every >= 1 and check_every == int(check_every)):
        raise ValueError(f"check_every is {check_every!r}; it must be a whole number, at least 1")
    across = problem.loss.across_rows
    algorithm = make_method(method, options, across)
    why_not = algorithm.supports(problem)
    if across and not getattr(algorithm, "across_rows", False):
        why_not = f"it visits single rows, and {type(problem.loss).__name__} is no sum over rows; use method='auto'"
    if problem.loss.coupled and not algorithm.whole_rows:
        why_not = f"{type(problem.loss).__name__} sees all scores of a row together; use sdca-admm, or leave it out"
    if why_not:
        raise ValueError(f"{method} does not fit this problem: {why_not}")
    return Settings(
        functools.partial(make_method, method, options, across), algorithm.engines, tol, int(max_epochs), time_limit,
        callback, random_state, 1 if across and check_every is None else check_every, progress,
    )  # fmt: skip


def _real(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)
