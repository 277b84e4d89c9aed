"""Losses of all scores at once: the second-order engine and reweighted squares, against a conic solver."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from cases import P, penalties
from reference import penalty_expression

import fenchel as fl
from fenchel.engine.coupled import CoupledModels
from fenchel.engine.registry import ENGINES
from fenchel.methods import METHODS
from fenchel.prices import PRICES

TIES = ("breslow", "efron")
PENALTIES = penalties()
FREE = {  # what leaves directions without penalty, or holds signs
    "clinical": fl.Unpenalised(fl.L1(), [0, 1]),
    "fused alone": fl.L1() @ fl.Difference(P),
    "monotone": fl.Monotone() + 0.5 * fl.L1(),
}


def survival(n=40, p=P, seed=0, strata=1, scale=1.0):
    """Times with ties that some features explain, about half of them censored."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    risk = X[:, : p // 2] @ rng.standard_normal(p // 2) * scale
    life, end = rng.exponential(np.exp(-risk)), rng.exponential(2.0, n)
    y = np.column_stack([np.ceil(4 * np.minimum(life, end)), life <= end, rng.integers(0, strata, n)])
    y[0, 1] = 1
    return X, y.astype(float)


def conic(X, y, penalty, alpha, weight=None, offset=0.0):
    """The optimum under Breslow's rule, by an interior point method; without the constant of the deviance."""
    n, p = X.shape
    weight = np.ones(n) if weight is None else weight * n / weight.sum()
    w = cp.Variable(p)
    score, total, least = X @ w + offset, 0, 0.0
    time, event, strata = y.T
    for stratum, at in sorted({(s, t) for t, e, s in y[weight > 0] if e}):
        dead = np.flatnonzero((strata == stratum) & (time == at) & (event == 1) & (weight > 0))
        risk = np.flatnonzero((strata == stratum) & (time >= at) & (weight > 0))
        mass = weight[dead].sum()
        total += mass * cp.log_sum_exp(score[risk] + np.log(weight[risk])) - weight[dead] @ score[dead]
        least += mass * np.log(mass)
    value, constraints = penalty_expression(penalty, w)
    problem = cp.Problem(cp.Minimize((total - least) / n + alpha * value), constraints)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL)
    return float(problem.value)


@pytest.mark.parametrize("name", ["l1", "overlapping groups", "total variation", "graph", "group maximum", "box"])
@pytest.mark.parametrize("method", ["auto", "reweighted-squares"])
def test_conic_twin(name, method):
    penalty, alpha = PENALTIES[name]
    X, y = survival(strata=2)
    rng = np.random.default_rng(3)
    weight, offset = rng.integers(0, 4, len(X)).astype(float), 0.5 * rng.standard_normal(len(X))
    weight[0] = 1.0
    problem = fl.Problem(X, y, loss="cox", penalty=penalty, alpha=alpha, sample_weight=weight, offset=offset)
    result = fl.solve(problem, method=method, tol=1e-8)
    optimum = conic(X, y, penalty, alpha, weight, offset)
    assert result.status is fl.Status.CONVERGED
    assert result.primal == pytest.approx(optimum, rel=1e-6)
    assert result.dual <= optimum + 1e-6 * abs(optimum)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", PENALTIES)
def test_both_ways_agree_behind_every_penalty(name, ties):
    penalty, alpha = PENALTIES[name]
    X, y = survival(strata=2, seed=1)
    problem = fl.Problem(X, y, loss=fl.Cox(ties), penalty=penalty, alpha=alpha)
    auto, squares = (fl.solve(problem, method=way, tol=1e-7) for way in ("auto", "reweighted-squares"))
    assert auto.status is squares.status is fl.Status.CONVERGED
    assert max(auto.dual, squares.dual) <= min(auto.primal, squares.primal) * (1 + 1e-12)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("name", FREE)
def test_directions_without_penalty(name, ties):
    X, y = survival(n=60, seed=2)
    problem = fl.Problem(X, y, loss=fl.Cox(ties), penalty=FREE[name], alpha=0.02)
    assert fl.solve(problem).status is fl.Status.CONVERGED
    largest = problem.alpha_max()
    if np.isfinite(largest):
        at = fl.solve(problem.with_alpha(1.001 * largest))
        assert at.status is fl.Status.CONVERGED
        assert np.abs(problem.penalised(problem.pack(at.coef, at.intercept))).max() <= 1e-6


def test_sparse_data_and_dense_agree():
    X, y = survival(n=80, p=30, seed=4)
    X[np.abs(X) < 0.8] = 0.0
    for penalty in (fl.L1(), fl.L1() @ fl.Difference(30) + fl.L1()):
        answers = [fl.solve(fl.Problem(kind(X), y, loss="cox", penalty=penalty, alpha=0.03), tol=1e-9)
                   for kind in (np.asarray, sp.csr_array, sp.csc_array, np.asfortranarray)]  # fmt: skip
        for other in answers:
            assert other.status is fl.Status.CONVERGED
            np.testing.assert_allclose(other.coef, answers[0].coef, atol=1e-4)


@pytest.mark.parametrize("seed", range(12))
def test_hostile_data(seed):
    """Columns of every size, far from zero or constant, separable times, one event, many ties: bounds stay bounds."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 40)), int(rng.integers(1, 60))
    X, y = survival(n, p, seed, strata=int(rng.integers(1, 4)), scale=float(rng.choice([0.0, 1.0, 30.0])))
    X *= 10.0 ** rng.uniform(-3, 3, p)
    X[:, rng.random(p) < 0.2] += 1e3
    X[:, rng.random(p) < 0.1] = 1.0
    if seed % 3 == 0:
        y[:, 0] = np.ceil(y[:, 0] / 5)
    if seed % 4 == 1:
        y[1:, 1] = 0
    penalty = [fl.L1(), fl.ElasticNet(), fl.GroupLasso([np.arange(p)[i::3] for i in range(min(3, p))])][seed % 3]
    problem = fl.Problem(X, y, loss=fl.Cox(TIES[seed % 2]), penalty=penalty, alpha=1.0)
    largest = problem.alpha_max()
    alpha = 0.05 * largest if 0 < largest < np.inf else 0.1
    result = fl.solve(problem.with_alpha(alpha), max_epochs=500)
    assert result.certified and result.dual <= result.primal * (1 + 1e-12)
    assert result.relative_gap <= 1e-4, result
    rougher = fl.solve(problem.with_alpha(alpha), method="reweighted-squares", tol=1e-3, max_epochs=100)
    assert rougher.dual <= result.primal * (1 + 1e-9)
    assert result.dual <= rougher.primal * (1 + 1e-9)


def test_a_path_and_a_run_that_is_continued():
    X, y = survival(n=60, seed=5)
    for penalty in (fl.L1(), fl.GroupLasso([range(0, 6), range(4, P)])):
        path = fl.path(X, y, loss="cox", penalty=penalty, n_alphas=6, eps=0.05)
        assert path.converged.all() and not path.coefs[0].any() and path.coefs[-1].any()
        problem = fl.Problem(X, y, loss="cox", penalty=penalty, alpha=path.alphas[-1])
        rough = fl.solve(problem, tol=1e-2)
        result = fl.solve(problem, warm_start=rough)
        assert result.status is fl.Status.CONVERGED
        np.testing.assert_allclose(result.primal, path.primals[-1], rtol=2e-6)
        again = fl.solve(problem)
        assert np.array_equal(again.coef, fl.solve(problem).coef)


def test_who_does_not_fit_says_so():
    X, y = survival()
    problem = fl.Problem(X, y, loss="cox", penalty=fl.L1(), alpha=0.1)
    for name in METHODS:
        with pytest.raises(ValueError, match="Cox is no sum over rows"):
            fl.solve(problem, method=name)
    with pytest.raises(ValueError, match="Squared is a sum over rows"):
        fl.solve(fl.Problem(X, X[:, 0], loss="squared", penalty=fl.L1()), method="reweighted-squares")
    behind = fl.Problem(X, y, loss="cox", penalty=fl.L1() @ fl.Difference(P), alpha=0.1)
    assert [kind for kind in ENGINES if kind(PRICES).unfit(behind) is None] == [CoupledModels]
    assert "no sum over rows" in next(kind for kind in ENGINES if kind.name == "quadratic models")(PRICES).unfit(behind)
    with pytest.raises(ValueError, match="fit_intercept is True, but Cox"):
        fl.Problem(X, y, loss="cox", penalty=fl.L1(), fit_intercept=True)
    with pytest.raises(ValueError, match="task is given, but Cox"):
        fl.Problem(X, y, loss="cox", penalty=fl.L1(), task=np.zeros(len(X), dtype=int))
