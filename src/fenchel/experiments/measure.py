"""One method on one problem: objective and test values against the CPU seconds of its epochs.

The method is advanced here and not by `fenchel.solve`, which certifies as it goes: a curve needs no certificates,
only the CPU time of the epochs themselves and an evaluation from time to time, which is not counted.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import time
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from .._validate import Array
from ..engine.roles import Goal, Iterate
from ..foundation.numerics import BALANCED, NOTHING
from ..methods import make_method
from ..problem import Problem
from ..solver import solve
from ..solver.convergence import Convergence
from ..solver.progress import Progress
from ..solver.result import Result, Status
from ..solver.schedule import Schedule
from .data import Instance
from .traces import Optimum


@dataclasses.dataclass(frozen=True)
class Looking:
    """When a method is looked at, and when it has ended.

    Attributes
    ----------
    first : int
        Epochs that are all evaluated.
    still : int
        Evaluations without a change, after which a method has nothing left to do.
    diverged : float
        Times the objective at zero, which a method that diverges is above.
    """

    first: int = 10
    still: int = 25
    diverged: float = 1e3


LOOKING = Looking()


@contextlib.contextmanager
def one_thread() -> Iterator[Any]:
    """Linear algebra on one thread, and no warnings from methods that diverge with a step too long."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), np.errstate(all="ignore"):
        yield


def certify(problem: Problem, tol: float) -> Result:
    """Solve to rounding; the certificate tells how far that is."""
    with one_thread():
        result = solve(problem, tol=tol, max_epochs=20_000)
    if result.status is Status.INTERRUPTED:  # `solve` turns Ctrl-C into an answer; here half an answer is none
        raise KeyboardInterrupt
    if not result.relative_gap <= NOTHING:
        raise ValueError(f"the optimum could not be certified: its relative gap is {result.relative_gap:.1e}")
    return result


def find_optimum(instance: Instance, tol: float) -> Optimum:
    """The certified optimum of a problem and its test values."""
    result = certify(instance.problem, tol)
    return Optimum(result.primal, result.dual, *instance.test(result.coef))


def advance(problem: Problem, method: str, options: dict[str, Any], seed: int) -> Iterator[tuple[int, float, Array]]:
    """Passes over the data, CPU seconds of them all, and w, from the start on and after every epoch.

    What a method prepares before its first epoch (norms of blocks, factors) is not counted.
    """
    algorithm = make_method(method, options)
    state = algorithm.start(problem, np.random.default_rng(seed))
    algorithm.epoch(copy.deepcopy(state))  # compiles and loads what is needed
    schedule = Schedule(problem) if algorithm.attempts else None
    progress = Progress(attempt_due=0 if schedule is None else schedule.first_due())
    goal = Goal(NOTHING, math.inf, math.inf, Convergence.of(problem, NOTHING).allowed)
    seconds = 0.0
    while True:
        yield progress.passes, seconds, state.w
        began = time.thread_time()
        report = algorithm.epoch(state)
        progress.count_epoch(report.share, report.guess)
        found = None if schedule is None else schedule.propose(cast(Iterate, algorithm.iterate(state)), progress, goal)
        seconds += time.thread_time() - began
        if found is not None and found.primal < problem.primal_at(state.w):  # the solver asks its certificate
            algorithm.adopt(state, found.iterate)


def run_method(
    instance: Instance, method: str, options: dict[str, Any], *, seed: int, window: float, points: int, max_epochs: int
) -> dict[str, Any]:
    """Run a method until its window is used up.

    Parameters
    ----------
    instance : Instance
    method, options
        As for :func:`fenchel.solve`.
    seed : int
        Of the method.
    window : float
        CPU seconds of the method's epochs.
    points : int
        About how many evaluations.
    max_epochs : int

    Returns
    -------
    dict
        Lists epoch, seconds, objective, test_loss, test_error; and whether it ended `still`, with rounding all
        that moved.
    """
    problem, rows, due, still = instance.problem, [], 0.0, False
    with one_thread():
        for epoch, seconds, w in advance(problem, method, options, seed):
            last = seconds >= window or epoch >= max_epochs
            if not (last or epoch <= LOOKING.first or seconds >= due):
                continue
            due = seconds + window / points
            objective = problem.primal_at(w)
            rows.append((epoch, seconds, objective, *instance.test(problem.unpack(w)[0])))
            still = _is_still([row[2] for row in rows[-LOOKING.still :]])
            if last or still or not objective <= LOOKING.diverged * rows[0][2]:
                break
    names = ("epoch", "seconds", "objective", "test_loss", "test_error")
    columns = {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
    return columns | {"still": still}


def _is_still(objectives: list[float]) -> bool:
    """Rounding is all that moves."""
    return len(objectives) == LOOKING.still and max(objectives) - min(objectives) <= BALANCED * abs(objectives[-1])
