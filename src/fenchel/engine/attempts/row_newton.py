"""The last digits of an answer for losses that see several scores of a row together: Newton's method on its support.

Where the zeros of an answer are known, the objective is smooth on the other coefficients, and a few Newton steps with
the curvature as a matrix find its minimum to rounding. This is for small data, and for penalties of the coefficients as
they stand (weights, squares and norms of groups); ``manifold.py`` has more, for losses of one score.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ...foundation.numerics import BALANCED, NEWTON_STEPS
from ...problem import Problem
from ..inner.groups import HALVINGS
from ..parts import Vector
from ..roles import Iterate, Proposal

_MOST = 20_000_000  # numbers of the rows along the support; more: it would take longer than epochs do


def finished(problem: Problem, w: Vector) -> Proposal | None:
    """The best point with the zeros of w, with its certificate; None where this does not suit."""
    u = problem.penalised(w)
    labels, count = problem.units
    active = np.flatnonzero((np.bincount(labels, u != 0, minlength=count) > 0)[labels])
    free = problem.vectors if problem.fit_intercept else 0
    if problem.loss.kinked or not problem.renames or problem.visits * (active.size + free) > _MOST:
        return None
    entry, slots = problem.map.data[active], problem.entry_slots[active]
    if problem.fit_intercept:
        slots = np.append(slots, problem.intercept_slots)
    if not slots.size:
        return None
    A = _columns(problem, slots)
    weight = np.repeat(problem.weight, problem.layout[0]) if problem.weight.size else problem.weight
    at, value = w.copy(), problem.primal_at(w)
    for _ in range(NEWTON_STEPS):
        _, x, h = problem.loss.sums(problem.seen(problem.scores(at)), problem.target, weight)
        found = _penalty(problem, problem.penalised(at), labels, active)
        if found is None:
            return None
        slope, curvature = found
        gradient, H = A.T @ x / problem.n, A.T @ _bent(problem, h, A) / problem.n
        size = np.abs(A).T @ np.abs(x) / problem.n
        k = active.size
        gradient[:k] += entry * slope
        size[:k] += np.abs(entry * slope)
        H[:k, :k] += entry[:, None] * curvature * entry
        if np.all(np.abs(gradient) <= BALANCED * size):
            break
        move = np.asarray(-np.linalg.lstsq(H, gradient, rcond=1e-13)[0], dtype=float)
        moved = _shortened(problem, at, value, slots, move, u, active)
        if moved is None:
            break
        at, value = moved
    x = problem.slopes_at(problem.scores(at))
    iterate = Iterate(at, x, np.zeros(problem.d), problem.gradient_sum(x), problem.penalised(at))
    made = problem.certificate(iterate, fresh=False)
    return Proposal(iterate, made.primal, 0.0, "newton on the support", made)


def _columns(problem: Problem, slots: Any) -> Vector:
    """The visits along these slots (visits, slots)."""
    m, stride = problem.layout[0], problem.layout[1]
    out = np.zeros((problem.n, m, slots.size))
    feature, output = slots % stride, slots // stride
    some = np.unique(feature[feature < problem.p])
    columns = cast(Any, problem.data.rows(slice(None)))[:, some]
    columns = columns.toarray() if problem.data.sparse else columns
    for k in range(slots.size):
        j = feature[k]
        out[:, output[k], k] = 1.0 if j == problem.p else columns[:, np.searchsorted(some, j)]
    return out.reshape(problem.visits, slots.size)


def _bent(problem: Problem, h: Vector, A: Vector) -> Vector:
    """The curvature of all rows times every column."""
    return np.column_stack([problem.loss.bent(h, column) for column in A.T])


def _penalty(problem: Problem, at: Vector, labels: Any, active: Any) -> tuple[Vector, Vector] | None:
    """Slope and curvature of the penalty on the active coordinates; None where it has none."""
    slope, own, across = np.zeros(at.size), np.zeros(at.size), np.zeros(at.size)
    ridge = np.zeros(at.size)
    for block, first, last in problem._parts():
        found = block.function.local(at[first:last])
        if found is None:
            return None
        slope[first:last] = block.scale * found[0] + block.ridge * at[first:last]
        own[first:last], across[first:last] = block.scale * found[1], found[2]
        ridge[first:last] = block.ridge
    same = labels[active][:, None] == labels[active]
    curvature = np.diag((own + ridge)[active])
    curvature -= np.where(same, own[active][:, None] * across[active][:, None] * across[active], 0.0)
    return slope[active], curvature


def _shortened(
    problem: Problem, at: Vector, value: float, slots: Any, move: Vector, u: Vector, active: Any
) -> tuple[Vector, float] | None:
    """A step as far as the objective falls and no coefficient that stands alone crosses zero."""
    labels, count = problem.units
    single = (np.bincount(labels, minlength=count) == 1)[labels[active]]
    for half in range(HALVINGS):
        new = at.copy()
        new[slots] += 0.5**half * move
        there = problem.penalised(new)
        if np.all(np.sign(there[active])[single] == np.sign(u[active])[single]):
            reached = problem.primal_at(new)
            if reached <= value + 1e-15 * abs(value):
                return new, reached
    return None
