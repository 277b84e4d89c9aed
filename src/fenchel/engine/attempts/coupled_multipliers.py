"""The method of multipliers for losses of all scores at once; see ``multipliers.py`` and ``losses/coupled.py``.

Newton's matrix is made of the true curvature, a product with every column: with a bound on it, near as that may be,
the rounds of the method took many more steps on small data, or did not end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._validate import Array
from ...losses import CoupledCurvature
from ...problem import Problem
from .multipliers import Multipliers


class CoupledMultipliers(Multipliers):
    """The method for one problem with such a loss; every run goes on with the steps of the last one."""

    curved: CoupledCurvature
    begun = False

    def __init__(self, problem: Problem) -> None:
        made: Any = super()
        made.__init__(problem)
        data = problem.data
        self.columns = sp.csr_array(data.arrays, shape=(data.n, data.p)).toarray() if data.sparse else data.dense
        self.columns = np.ascontiguousarray(self.columns.T, dtype=float)

    def _first_steps(self) -> None:
        if not self.begun:
            made: Any = super()
            made._first_steps()
            self.begun = True

    def _rows(self, scores: Array, *, bend: bool = False) -> Any:
        problem: Any = self.problem
        if not bend:
            return problem.slopes_at(scores)
        seen, loss = problem.seen(scores), problem.loss
        self.curved = loss.curvature_at(seen, problem.target, problem.weight)
        return problem.slopes_at(scores), self.curved.bound

    def _add_loss_curvature(self, bend: Array, matrix: Array) -> None:
        p = self.problem.p
        bent = np.empty_like(self.columns)
        for column, out in zip(self.columns, bent, strict=True):
            out[:] = self.curved.times(column)
        matrix[:p, :p] += bent @ self.columns.T
