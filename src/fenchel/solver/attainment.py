"""Whether a problem has an answer: a loss that never reaches its least value may ask for infinite coefficients."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.sparse as sp

from ..foundation.numerics import BESIDE
from ..problem import Problem
from ..problem.row_balance import MOST_FREE

SEPARABLE = "the data are separable by directions that carry no penalty: the infimum is not attained"
ORDERED = "directions that carry no penalty tell the order of the events: the infimum is not attained"
ZEROS = "rows whose count is zero can be told apart by directions that carry no penalty: the infimum is not attained"
# of the largest margin: how far a row may be on the wrong side; larger: rows that are not apart count as such
_ROUNDING = 1e-7


def unattained(problem: Problem) -> str:
    """Why no point attains the infimum; empty where none of that is seen.

    Looks for a direction along which the penalty does not grow and no row is pushed to its wrong side (rows of count
    losses whose count is not zero to neither), but some are pushed to the right one: along it the objective falls for
    ever.
    """
    loss, parts = problem.loss, cast(Any, problem)
    if problem.pooled or problem.visits * problem.size > BESIDE:
        return ""
    side = np.zeros(problem.visits) if loss.coupled else loss.falls_towards(problem.target)
    if not (side.any() or (loss.coupled and not loss.attained)):
        return ""
    low, high = _room(problem)
    penalised = not (low.any() or high.any()) and problem._free_count <= MOST_FREE
    if not penalised and problem.map.nnz > BESIDE:
        return ""
    # where every row of B' counts, a direction without penalty is one that B' does not see, and there are few
    directions = problem._free_directions() if penalised else np.eye(problem.size)
    if not directions.size:
        return ""
    weight = np.broadcast_to(np.asarray(parts._weights(), dtype=float), (problem.visits,))
    some = np.greater(weight, 0)
    scores = np.column_stack([problem.scores(column) for column in directions.T])
    if loss.across_rows:
        if problem.n**2 * problem.size > BESIDE:
            return ""
        ahead_of, behind = cast(Any, loss).ordered(problem.target, problem.weight)
        held, rows = scores[:0], scores[ahead_of] - scores[behind]
    elif loss.coupled:  # how far the row's own class is ahead of every other one
        each, t = scores.reshape(problem.n, -1, directions.shape[1]), problem.target.reshape(problem.n, -1)
        if not np.all((t == 0) | (t == 1)):
            return ""  # shares of several classes hold the scores together
        ahead = np.take_along_axis(each, t.argmax(axis=1)[:, None, None], axis=1) - each
        held, rows = scores[:0], ahead.reshape(scores.shape)[some & (problem.target == 0)]
    else:
        held, rows = scores[some & (side == 0)], (scores * side[:, None])[some & (side != 0)]
    if not rows.size:
        return ""
    size = np.abs(rows).max(axis=0)
    rows = rows / np.where(size > 0, size, 1.0)  # the units of columns do not matter to a direction
    import scipy.optimize  # takes as long to import as a first fit: only who asks waits for it

    limits = [scipy.optimize.LinearConstraint(sp.csr_array(rows), 0.0, 1.0)]
    if held.size:
        held = held / np.where(size > 0, size, 1.0)
        limits.append(scipy.optimize.LinearConstraint(sp.csr_array(held), 0.0, 0.0))
    if problem.d and not penalised:
        B = problem.map_slots @ sp.diags_array(1.0 / np.where(size > 0, size, 1.0))
        limits.append(scipy.optimize.LinearConstraint(sp.csr_array(B), low, high))
    reach = np.full(directions.shape[1], np.inf)
    if not (problem.fit_intercept or penalised):
        reach[problem.intercept_slots] = 0.0
    found = scipy.optimize.milp(
        -rows.sum(axis=0), constraints=limits, bounds=scipy.optimize.Bounds(-reach, reach), options={"time_limit": 1.0}
    )
    if found.x is None:
        return ""
    margins = rows @ found.x
    if not (margins.max() > 0.5 and margins.min() >= -_ROUNDING * margins.max()):
        return ""
    if loss.across_rows:
        return ORDERED
    return SEPARABLE if loss.classification else ZEROS


def _room(problem: Problem) -> tuple[Any, Any]:
    """Between what B'w may lie along a direction that carries no penalty."""
    low, high = np.zeros(problem.d), np.zeros(problem.d)
    for block, first, last in problem._parts():
        weights = block.function.entry_weights(block.d)
        if weights is not None and block.ridge == 0:
            lower, upper = block.function.limits(block.d) or (np.full(block.d, -np.inf), np.full(block.d, np.inf))
            low[first:last] = np.where((weights == 0) & np.isinf(lower), -np.inf, 0.0)
            high[first:last] = np.where((weights == 0) & np.isinf(upper), np.inf, 0.0)
    return low, high
