"""The last digits of an answer, on small data."""

from __future__ import annotations

import dataclasses
import time
from typing import Any

import numpy as np

from ..engine.attempts.last_digits import last_digits
from ..engine.attempts.manifold import correct
from ..engine.attempts.row_newton import finished
from ..engine.roles import Array, Iterate
from ..foundation.numerics import AT_ONCE, DIGITS, ROUNDING
from ..problem import Certificate, Problem
from .columns import in_coordinates
from .result import Result, Status


def polish(problem: Problem, result: Result) -> Result:
    """The result with its last digits, on data so small that this costs some milliseconds; otherwise as it is.

    Afterwards the answer no longer depends on the order of the rows or on the seed, up to rounding.
    """
    if problem.loss.across_rows:
        return result
    small = not problem.pooled and problem.data.stored * problem.layout[0] <= AT_ONCE
    if result.status is not Status.CONVERGED or not small or result.relative_gap <= ROUNDING:
        return result
    clock = time.perf_counter()
    w = problem.pack(result.coef, result.intercept)
    found = _by_rows(problem, w) if problem.loss.coupled else _by_faces(problem, w, result)
    if found is None or not found[1].gap < result.gap:
        return result
    point, made = found
    coef, intercept = problem.unpack(point.w)
    state = {"w": point.w, "x": point.x, "y": point.y, "zx": point.zx, "u": point.u, "by": problem.spread(point.y)}
    return dataclasses.replace(
        result, coef=coef + 0.0, intercept=intercept, primal=made.primal, dual=made.dual,
        seconds=result.seconds + time.perf_counter() - clock, state=result.state | state,
    )  # fmt: skip


def _by_faces(problem: Problem, w: Array, result: Result) -> tuple[Any, Certificate] | None:
    moved = in_coordinates(problem)
    if moved is not None:
        other, moving = moved
        found = _by_faces(other, other.pack(*moving.redo(*problem.unpack(w))), result)
        if found is None:
            return None
        w, x = problem.pack(*moving.undo(*other.unpack(found[0].w))), found[0].x
        at = Iterate(w, x, found[0].y, problem.gradient_sum(x), problem.penalised(w))
        return at, problem.certificate(at)
    quickly = last_digits(problem, w, ROUNDING)
    if quickly is not None:
        return quickly
    point = correct(problem, w, problem.penalised(w), result.state.get("y", np.zeros(problem.d)), tol=DIGITS)
    return None if point is None or point.made is None else (point, point.made)


def _by_rows(problem: Problem, w: Array) -> tuple[Iterate, Certificate] | None:
    found = finished(problem, w)
    return None if found is None or found.certificate is None else (found.iterate, found.certificate)
