"""The squared loss with penalties that fall into units: what working sets find is what epochs find, for all data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine import registry, rounds

P = 12
PENALTIES = {
    "l1": fl.L1(),
    "weighted l1": fl.L1(weights=np.linspace(0.2, 2.0, P)),
    "elastic net": fl.L1() + 0.3 * fl.Ridge(),
    "ridge": fl.Ridge(),
    "groups": fl.GroupL2(np.arange(P).reshape(-1, 3)),
    "scattered groups": fl.GroupL2([[0, 5, 7], [11, 1], [2, 3, 4, 6, 8, 9, 10]], weights=[1.0, 0.5, 2.0]),
    "groups + ridge": fl.GroupL2(np.arange(P).reshape(-1, 4)) + 0.2 * fl.Ridge(),
    "non-negative": fl.L1() + fl.NonNegative(),
    "box": 0.5 * fl.L1() + fl.Box(-0.2, 0.3),
    "scaled": fl.L1() @ fl.Matrix(np.diag(np.linspace(0.5, 3.0, P))[::-1]),
}
SCALED_GROUPS = fl.GroupL2(np.arange(P).reshape(-1, 3)) @ fl.Matrix(np.diag(np.linspace(0.5, 3.0, P)))


def make(penalty, *, n=150, dtype=float, sparse=False, weighted=False, fit_intercept=False, far=0.0, loss="squared"):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, P)) * np.linspace(0.5, 2.0, P) + far
    if sparse:
        X *= rng.random((n, P)) < 0.4
    y = X @ np.where(np.arange(P) % 3, 0.0, 1.0) + rng.standard_normal(n) + far
    data = sp.csr_array(X.astype(dtype)) if sparse else X.astype(dtype)
    weight = rng.random(n) if weighted else None
    return fl.Problem(data, y, loss=loss, penalty=penalty, alpha=0.1, sample_weight=weight, fit_intercept=fit_intercept)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", PENALTIES)
def test_finds_what_epochs_find(name, fit_intercept):
    problem = make(PENALTIES[name], fit_intercept=fit_intercept, weighted=name in ("l1", "groups"))
    assert registry.fitting(problem) is not None
    found = fl.solve(problem, tol=1e-10)
    assert (found.status, found.state["epoch"]) == (fl.Status.CONVERGED, 0)
    assert found.primal == pytest.approx(problem.primal(found.coef, found.intercept), rel=1e-12)
    slow = fl.solve(problem, tol=1e-10, newton=False, max_epochs=20_000)
    assert found.primal == pytest.approx(slow.primal, rel=3e-10)
    np.testing.assert_allclose(found.coef, slow.coef, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("far", [0.0, 30.0, 1000.0])
def test_kinds_of_data(dtype, sparse, far):
    problem = make(PENALTIES["scattered groups"], dtype=dtype, sparse=sparse, far=far, fit_intercept=True)
    found = fl.solve(problem, tol=1e-9)
    assert found.status is fl.Status.CONVERGED
    assert found.gap <= 1e-9 * abs(found.primal)


# -- what is left to epochs and Newton's method between them --------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_newton_finishes_where_the_engine_gives_up(monkeypatch, loss):
    monkeypatch.setattr(rounds, "ROUNDS", 1)
    found = fl.solve(make(PENALTIES["weighted l1"], n=600, loss=loss), tol=1e-9)
    assert (found.status, found.state["epoch"]) == (fl.Status.CONVERGED, 0)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_newton_finishes_where_no_engine_fits(monkeypatch, loss):
    problem = make(SCALED_GROUPS, n=600, loss=loss)
    monkeypatch.setattr(registry, "ENGINES", [])
    assert registry.fitting(problem) is None
    found = fl.solve(problem, tol=1e-9)
    assert found.status is fl.Status.CONVERGED
    assert found.primal == pytest.approx(fl.solve(problem, tol=1e-9, newton=False, max_epochs=20_000).primal, rel=3e-9)
