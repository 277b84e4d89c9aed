"""Whether a problem has an answer: a loss that never reaches its least value may ask for infinite coefficients."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from ..problem import Problem

SEPARABLE = "the data are separable by directions that carry no penalty: the infimum is not attained"
_MOST = 2_000_000  # entries of the linear program; more: it would take longer than the run that failed
_ROUNDING = 1e-7  # of the largest margin: how far a row may be on the wrong side


def unattained(problem: Problem) -> str:
    """Why no point attains the infimum; empty where none of that is seen.

    Looks for a direction along which the penalty does not grow and no row of a classifier is pushed to its wrong side,
    but some are pushed to the right one: along it the objective falls for ever.
    """
    loss, parts = problem.loss, cast(Any, problem)
    if problem.pooled or loss.attained or not loss.classification or problem.visits * problem.size > _MOST:
        return ""
    weight = np.broadcast_to(np.asarray(parts._weights(), dtype=float), (problem.visits,))
    some = np.greater(weight, 0)
    identity = np.eye(problem.size)
    rows = np.column_stack([problem.scores(column) for column in identity])[some] * problem.target[some, None]
    size = np.abs(rows).max(axis=0)
    rows = rows / np.where(size > 0, size, 1.0)  # the units of columns do not matter to a direction
    low, high = np.zeros(problem.d), np.zeros(problem.d)
    for block, first, last in problem._parts():
        weights = block.function.entry_weights(block.d)
        if weights is not None and block.ridge == 0:
            lower, upper = block.function.limits(block.d) or (np.full(block.d, -np.inf), np.full(block.d, np.inf))
            low[first:last] = np.where((weights == 0) & np.isinf(lower), -np.inf, 0.0)
            high[first:last] = np.where((weights == 0) & np.isinf(upper), np.inf, 0.0)
    B = problem.map_slots @ sp.diags_array(1.0 / np.where(size > 0, size, 1.0))
    limits = [scipy.optimize.LinearConstraint(sp.csr_array(rows), 0.0, 1.0)]
    if problem.d:
        limits.append(scipy.optimize.LinearConstraint(sp.csr_array(B), low, high))
    reach = np.full(problem.size, np.inf)
    if not problem.fit_intercept:
        reach[problem.intercept_slots] = 0.0
    found = scipy.optimize.milp(
        -rows.sum(axis=0), constraints=limits, bounds=scipy.optimize.Bounds(-reach, reach), options={"time_limit": 1.0}
    )
    if found.x is None:
        return ""
    margins = rows @ found.x
    return SEPARABLE if margins.max() > 0.5 and margins.min() >= -_ROUNDING * margins.max() else ""
