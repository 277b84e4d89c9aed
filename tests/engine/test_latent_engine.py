"""Latent groups with more features than rows: solved with a copy of each column for each of its groups, and proven as
they are."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine.latent import LatentGroups
from fenchel.engine.registry import fitting


def _problem(loss="squared", seed=0, n=25, p=60, intercept=True, sparse=False, weights=None, **given):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.4 if sparse else 1.0)
    groups = [np.sort(rng.choice(p, size, replace=False)) for size in rng.integers(3, 12, 14)]
    groups += [np.setdiff1d(np.arange(p), np.concatenate(groups))]
    score = X[:, groups[0]].sum(axis=1)
    y = {
        "squared": score + 2.0,
        "logistic": np.where(score + rng.standard_normal(n) > 0, 1.0, -1.0),
        "huber": score,
        "poisson": rng.poisson(np.exp(np.clip(0.3 * score, -3, 3))).astype(float),
    }[loss]
    penalty = fl.LatentGroupLasso(groups, weights=weights)
    data = sp.csr_array(X) if sparse else X
    problem = fl.Problem(data, y, loss=loss, penalty=penalty, fit_intercept=intercept, **given)
    return problem.with_alpha(problem.alpha_max() / 6)


def _meet(one, other):
    """Both intervals hold the one optimum."""
    rounding = 1e-12 * abs(one.primal)
    assert one.dual <= other.primal + rounding and other.dual <= one.primal + rounding


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber", "poisson"])
@pytest.mark.parametrize("intercept", [False, True])
def test_finds_what_epochs_find(loss, intercept):
    problem = _problem(loss, intercept=intercept)
    assert isinstance(fitting(problem), LatentGroups)
    found = fl.solve(problem, tol=1e-8)
    assert found.status is fl.Status.CONVERGED and found.history.records[-1].by == "latent groups"
    other = fl.solve(problem, method="sdca-admm", tol=1e-7)
    assert other.status is fl.Status.CONVERGED
    _meet(found, other)
    assert found.primal == pytest.approx(problem.primal(found.coef, found.intercept), rel=1e-12)


@pytest.mark.parametrize("given", [{"sparse": True}, {"weights": np.linspace(1.0, 3.0, 15)}, {"weighted": True}])
def test_sparse_data_and_weights(given):
    given = dict(given)
    if given.pop("weighted", False):
        given["sample_weight"] = np.random.default_rng(1).uniform(0.2, 2.0, 25)
    problem = _problem(**given)
    found = fl.solve(problem, tol=1e-8)
    assert found.status is fl.Status.CONVERGED and found.history.records[-1].by == "latent groups"
    other = fl.solve(problem, method="sdca-admm", tol=1e-7)
    _meet(found, other)


def test_zeros_are_those_of_groups_that_are_out():
    problem = _problem()
    found = fl.solve(problem, tol=1e-9)
    assert 0 < np.count_nonzero(found.coef) < problem.p
    other = fl.solve(problem, method="sdca-admm", tol=1e-9)
    assert np.array_equal(found.coef != 0, other.coef != 0)
    assert np.allclose(found.coef, other.coef, atol=1e-3 * np.abs(other.coef).max())


def test_paths_and_runs_that_go_on():
    problem = _problem("logistic")
    path = fl.path(problem, n_alphas=6, eps=0.1, tol=1e-6)
    for alpha, result in zip(path.alphas, path.results, strict=True):
        assert result.status is fl.Status.CONVERGED
        alone = fl.solve(problem.with_alpha(alpha), tol=1e-7)
        _meet(alone, result)
    rough = fl.solve(problem, tol=1e-2)
    assert fl.solve(problem, tol=1e-7, warm_start=rough).status is fl.Status.CONVERGED


def test_leaves_other_problems_alone(monkeypatch):
    engine = LatentGroups(None)
    X, y = np.ones((30, 4)), np.arange(30.0)
    latent = fl.LatentGroupLasso([[0, 1], [1, 2, 3]])
    assert "rows" in engine.unfit(fl.Problem(X, y, loss="squared", penalty=latent))
    assert "more than one" in engine.unfit(fl.Problem(X[:2], y[:2], loss="squared", penalty=latent + fl.L1()))
    few = fl.Problem(X[:2], y[:2], loss="squared", penalty=latent)
    assert engine.unfit(few) is None
    with monkeypatch.context() as little:
        little.setattr(
            "fenchel.engine.latent.MEMORY", 8 * 2 * 5 - 1
        )  # bytes: two rows of five copied columns take more
        assert "memory" in engine.unfit(few)
    assert "kinks" in engine.unfit(fl.Problem(X[:2], np.array([1.0, -1.0]), loss="hinge", penalty=latent))
