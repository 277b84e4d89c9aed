"""One method on one problem: objective and test values against seconds inside the method."""

from __future__ import annotations

import contextlib

import numpy as np

from ..result import Status
from ..solve import solve
from .data import Instance
from .traces import Optimum

_WARM_UP = 2  # epochs
_DIVERGED = 1e3  # times the objective at zero


@contextlib.contextmanager
def one_thread():
    """Linear algebra on one thread, and no warnings from methods that diverge with a step too long."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), np.errstate(all="ignore"):
        yield


def find_optimum(instance: Instance, tol: float) -> Optimum:
    """Solve to rounding; the certificate tells how far that is."""
    with one_thread():
        result = solve(instance.problem, tol=tol, max_epochs=20_000)
        check_interrupted(result)
        if not result.relative_gap <= 1e-9:
            # rows of a block updated together are slower, and safe where rows are strongly correlated
            result = solve(instance.problem, tol=tol, max_epochs=50_000, preset="paper", block_size=1)
            check_interrupted(result)
        if not result.relative_gap <= 1e-9:
            raise ValueError(f"the optimum could not be certified: relative gap {result.relative_gap:.1e}")
        return Optimum(result.primal, result.dual, *instance.test(result.coef))


def run_method(
    instance: Instance, method: str, options: dict, *, seed: int, window: float, points: int, max_epochs: int
) -> dict:
    """Run a method until its window is used up.

    Parameters
    ----------
    instance : Instance
    method, options
        As for :func:`fenchel.solve`.
    seed : int
        Of the method.
    window : float
        Seconds inside the method. What it prepares (norms of blocks, factors) is reported apart, evaluations are
        not counted.
    points : int
        About how many evaluations.
    max_epochs : int

    Returns
    -------
    dict
        Lists epoch, seconds, objective, test_loss, test_error; the number setup.
    """
    rows: list[tuple] = []
    setup = [0.0]

    def watch(now):
        if now.epoch == 0:
            setup[0] = now.seconds
        rows.append((now.epoch, now.work, now.current, *instance.test(now.coef)))
        lost = not np.isfinite(now.current) or now.current > _DIVERGED * rows[0][2]
        return lost or now.work >= window

    with one_thread():
        # the first epochs compile, load and fault in pages; they also tell what an epoch costs
        first = solve(
            instance.problem, method, tol=0.0, max_epochs=_WARM_UP, check_every=1, random_state=seed, **options
        )
        check_interrupted(first)
        work = first.history.work
        spacing = max(1, int(window / max(work[-1] - work[-2], 1e-9) / points))
        result = solve(
            instance.problem, method, tol=0.0, max_epochs=max_epochs, check_every=spacing, callback=watch,
            random_state=seed, **options,
        )  # fmt: skip
    check_interrupted(result)
    names = ("epoch", "seconds", "objective", "test_loss", "test_error")
    columns = dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))
    return columns | {"setup": setup[0], "status": str(result.status)}


def check_interrupted(result):
    """`solve` turns Ctrl-C into an answer; here half an answer is none."""
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
