"""The small experiments: what blocks, order, the quadratic term and rho do to SDCA-ADMM.

Each returns rows with a `case` (what was set), the relative excess that had to be reached, and the epochs,
iterations and seconds that it took; infinite where the limit came first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import datasets
from ..losses import SmoothedHinge
from ..penalties import GroupL2
from ..problem import Problem
from .data import make_instance
from .measure import advance, certify, one_thread
from .settings import SETUP, Settings

_PAPER = {"preset": "paper", "rho": SETUP.rho}


def jobs(settings: Settings) -> list[tuple[str, int, float]]:
    """(study, repetition, seconds it is expected to take) of everything to be run."""
    studies = settings.studies
    cost = studies.rows * studies.side**2 / 65536
    each = [("blocks", 9 * cost), ("order", 5 * cost), ("quadratic", 1.0)]
    out = [(name, k, seconds) for k in range(studies.repetitions) for name, seconds in each]
    if studies.repetitions and studies.rho:
        out.append(("rho", 0, sum(8 * data.window for data in settings.data)))
    return out


def run_study(name: str, settings: Settings, repetition: int) -> list[dict[str, Any]]:
    """One repetition of the study of that name."""
    return {"blocks": _blocks, "order": _order, "quadratic": _quadratic, "rho": _rho}[name](settings, repetition)


def correlated_problem(n: int, side: int, correlation: float, seed: int) -> Problem:
    """The artificial problem with rows that share a direction: any two have this correlation."""
    rng = np.random.default_rng(seed)
    true_w = np.zeros(side * side)
    true_w[:side] = rng.standard_normal(side)
    common = rng.standard_normal(side * side)
    X = np.sqrt(1 - correlation) * rng.standard_normal((n, side * side)) + np.sqrt(correlation) * common
    score = X @ true_w + 0.1 * rng.standard_normal(n)
    return datasets.artificial_problem_of(X, np.where(score >= np.median(score), 1.0, -1.0), side)


def _blocks(settings: Settings, repetition: int) -> list[dict[str, Any]]:
    """Blocks of several sizes on rows that are nearly orthogonal, and on rows that are not."""
    studies = settings.studies
    rows = []
    for correlation in (0.0, studies.correlation):
        problem = correlated_problem(studies.rows, studies.side, correlation, repetition)
        best = _optimum(problem, settings)
        for size in studies.blocks:
            options = {**_PAPER, "block_size": size}
            effort = _effort(problem, best, "sdca-admm", options, studies.level, studies.max_epochs, repetition)
            effort["iterations"] = effort["epochs"] * -(-studies.rows // size)
            rows.append({"case": {"correlation": correlation, "block_size": size}, **effort})
    return rows


def _order(settings: Settings, repetition: int) -> list[dict[str, Any]]:
    """Blocks drawn at random, in random order, and in the order in which they stand."""
    studies = settings.studies
    rows = []
    for correlation in (0.0, studies.correlation):
        problem = correlated_problem(studies.rows, studies.side, correlation, repetition)
        best = _optimum(problem, settings)
        for order in ("random", "shuffle", "cyclic"):
            options = {**_PAPER, "block_size": studies.order_block, "order": order}
            effort = _effort(problem, best, "sdca-admm", options, studies.level, studies.max_epochs, repetition)
            rows.append({"case": {"correlation": correlation, "order": order}, **effort})
    return rows


def _quadratic(settings: Settings, repetition: int) -> list[dict[str, Any]]:
    """The artificial problem as it is, and without its quadratic term."""
    studies = settings.studies
    side = studies.quadratic_side
    X, y, _ = datasets.artificial(studies.quadratic_rows, side, seed=repetition)
    with_it = datasets.artificial_problem_of(X, y, side)
    groups = datasets.artificial_groups(side)
    norms = GroupL2(groups, weights=np.ones(len(groups)))
    without = Problem(X, y, loss=SmoothedHinge(), penalty=norms, alpha=with_it.alpha)
    rows = []
    for quadratic, problem in ((True, with_it), (False, without)):
        options = {**_PAPER, "block_size": SETUP.block_size}
        best = _optimum(problem, settings)
        effort = _effort(problem, best, "sdca-admm", options, studies.level, studies.max_epochs, repetition)
        rows.append({"case": {"quadratic": quadratic}, **effort})
    return rows


def _rho(settings: Settings, repetition: int) -> list[dict[str, Any]]:
    """SDCA-ADMM and Batch-ADMM, each with every rho of the grid, on the held-out seed of each data set."""
    rows = []
    for data in settings.data:
        instance = make_instance(data, settings.tuning.held_out)
        best = _optimum(instance.problem, settings)
        for method, options in (("sdca-admm", {"preset": "paper", "block_size": SETUP.block_size}), ("batch-admm", {})):
            for rho in settings.studies.rho:
                effort = _effort(
                    instance.problem, best, method, {**options, "rho": rho}, settings.studies.level,
                    settings.max_epochs, repetition, data.window,
                )  # fmt: skip
                rows.append({"case": {"dataset": data.name, "method": method, "rho": rho}, **effort})
    return rows


def _optimum(problem: Problem, settings: Settings) -> float:
    return certify(problem, settings.optimum_tol).primal


def _effort(
    problem: Problem,
    best: float,
    method: str,
    options: dict[str, Any],
    level: float,
    max_epochs: int,
    seed: int,
    window: float = np.inf,
) -> dict[str, Any]:
    """Epochs and seconds until the relative excess is `level`."""
    with one_thread():
        for epoch, seconds, w in advance(problem, method, options, seed):
            if problem.primal_at(w) - best <= level * abs(best):
                return {"level": level, "epochs": epoch, "seconds": seconds}
            if epoch >= max_epochs or seconds >= window:
                return {"level": level, "epochs": np.inf, "seconds": np.inf}
    raise AssertionError("a method advances without end")
