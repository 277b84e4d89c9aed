"""The last digits of an answer, on small data."""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from ..engine.attempts.manifold import correct
from ..problem import Problem
from .result import Result, Status

_SMALL = 50_000  # entries of the data up to which an answer is polished; more: fits that take noticeably longer
_TOL = 1e-13  # relative gap: rounding
_DONE = 1e-12  # relative gap of an answer that has its last digits already


def polish(problem: Problem, result: Result) -> Result:
    """The result with its last digits, on data so small that this costs some milliseconds; otherwise as it is.

    Afterwards the answer no longer depends on the order of the rows or on the seed, up to rounding.
    """
    small = not problem.pooled and problem.data.stored * problem.layout[0] <= _SMALL
    if result.status is not Status.CONVERGED or not small or result.relative_gap <= _DONE:
        return result
    clock = time.perf_counter()
    w = problem.pack(result.coef, result.intercept)
    point = correct(problem, w, problem.penalised(w), result.state.get("y", np.zeros(problem.d)), tol=_TOL)
    if point is None or point.made is None or not point.made.gap < result.gap:
        return result
    coef, intercept = problem.unpack(point.w)
    state = {"w": point.w, "x": point.x, "y": point.y, "zx": point.zx, "u": point.u, "by": problem.spread(point.y)}
    return dataclasses.replace(
        result, coef=coef + 0.0, intercept=intercept, primal=point.made.primal, dual=point.made.dual,
        seconds=result.seconds + time.perf_counter() - clock, state=result.state | state,
    )  # fmt: skip
