"""Every loss with every penalty against an interior point method, and the certificate against the truth."""

from __future__ import annotations

import cases
import numpy as np
import pytest
from reference import reference

import fenchel as fl

# every pair of loss and penalty, the four switches spread over them so that all of their pairs occur
COMBINATIONS = [
    (loss, penalty, bool(k & 1), bool(k & 2), bool(k & 4))
    for k, (loss, penalty) in enumerate((loss, penalty) for penalty in cases.penalties() for loss in cases.losses())
]


@pytest.mark.parametrize(("loss_name", "penalty_name", "sparse", "weighted", "intercept"), COMBINATIONS)
def test_agrees_with_conic_solver(loss_name, penalty_name, sparse, weighted, intercept):
    loss = cases.losses()[loss_name]
    penalty, alpha = cases.penalties()[penalty_name]
    X, y, weight = cases.data(loss, sparse=sparse, weighted=weighted, seed=len(loss_name) + len(penalty_name))
    optimum, _, _ = reference(X, y, loss, penalty, alpha, weight, intercept)
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, alpha=alpha, sample_weight=weight, fit_intercept=intercept)
    result = fl.solve(problem, tol=2e-7, max_epochs=20000)
    scale = max(abs(optimum), 1e-3)
    assert result.status is fl.Status.CONVERGED, (result, result.history.rho[-5:], result.history.residual[-5:])
    assert abs(result.primal - optimum) <= 1e-6 * scale
    # dual <= optimum <= primal, up to the reference's own accuracy
    assert result.dual <= optimum + 1e-8 * scale
    assert result.primal >= optimum - 1e-8 * scale
    assert result.primal == pytest.approx(problem.primal(result.coef, result.intercept), rel=1e-12, abs=1e-15)
    assert np.isfinite(result.gap)
