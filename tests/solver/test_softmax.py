"""Losses of several scores per row, solved: against a conic solver, scikit-learn, and themselves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import fenchel as fl
from fenchel.losses import ROW_LOSSES


def iris():
    X, y = load_iris(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def penalties(cp, m, p):
    """Name: (penalty, the same for the conic solver, by W (m, p))."""
    groups = [[0, 1, 2], [1, 2, 3]]
    return {
        "l1": (fl.PerOutput(fl.L1(), m), lambda W: cp.sum(cp.abs(W))),
        "ridge": (fl.Ridge(), lambda W: cp.sum_squares(W) / 2),
        "features": (fl.MultiTaskLasso(m), lambda W: cp.sum(cp.norm(W, axis=0))),
        "low rank": (fl.MultiTaskLowRank(m), lambda W: cp.normNuc(W)),
        "fused": (fl.PerOutput(fl.L1() @ fl.Difference(p), m), lambda W: cp.sum(cp.abs(cp.diff(W, axis=1)))),
        "overlapping groups": (
            fl.PerOutput(fl.GroupLasso(groups, weights=[1.0, 1.0]), m),
            lambda W: sum(cp.norm(W[k, g]) for k in range(m) for g in groups),
        ),
    }


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("name", ["l1", "ridge", "features", "low rank", "fused", "overlapping groups"])
@pytest.mark.parametrize("loss", ROW_LOSSES)
def test_conic_twin(loss, name, intercept):
    cp = pytest.importorskip("cvxpy")
    X, y = iris()
    X, y = X[::3].copy(), y[::3]
    (n, p), m = X.shape, 3
    weight = np.linspace(0.2, 1.8, n)
    penalty, twin = penalties(cp, m, p)[name]
    problem = fl.Problem(
        X, y, loss=loss, penalty=penalty, alpha=0.05, sample_weight=weight, fit_intercept=intercept
    )  # fmt: skip
    result = fl.solve(problem, tol=1e-6)
    assert result.status is fl.Status.CONVERGED
    W, b = cp.Variable((m, p)), cp.Variable((1, m)) if intercept else np.zeros((1, m))
    U, T = X @ W.T + np.ones((n, 1)) @ b, np.eye(m)[y]
    top = cp.log_sum_exp(U, axis=1) if loss == "multinomial" else cp.max(U + 1 - T, axis=1)
    losses = top - cp.sum(cp.multiply(T, U), axis=1)
    share = weight / weight.sum()
    best = cp.Problem(cp.Minimize(share @ losses + 0.05 * twin(W))).solve(solver=cp.CLARABEL)
    assert result.dual - 1e-7 <= best <= result.primal + 1e-7


@pytest.mark.parametrize("intercept", [False, True])
def test_ridge_is_that_of_scikit_learn(intercept):
    X, y = iris()
    own = fl.Problem(X, y, loss="multinomial", penalty=fl.Ridge(), alpha=0.02, fit_intercept=intercept)
    result = fl.solve(own, tol=1e-12)
    other = LogisticRegression(C=1 / (len(y) * 0.02), fit_intercept=intercept, tol=1e-10, max_iter=10_000).fit(X, y)
    assert np.allclose(result.coef, other.coef_, atol=1e-5)
    if intercept:
        assert np.allclose(result.intercept - result.intercept.mean(), other.intercept_, atol=1e-5)


@pytest.mark.parametrize("loss", ROW_LOSSES)
def test_two_classes_are_the_loss_of_a_margin(loss):
    """With a norm that is the same for w and -w both classes share the coefficients: 2 psi(w / 2) = psi(w)."""
    X, y = iris()
    X, y = X[50:], y[50:] - 1
    scalar = "logistic" if loss == "multinomial" else "hinge"
    two = fl.solve(fl.Problem(X, y, loss=loss, penalty=fl.PerOutput(fl.L1(), 2), alpha=0.05, fit_intercept=True))
    one = fl.solve(fl.Problem(X, 2 * y - 1, loss=scalar, penalty=fl.L1(), alpha=0.05, fit_intercept=True))
    assert two.primal == pytest.approx(one.primal, rel=1e-5)


def test_shares_are_rows_with_weights():
    """A target of shares is the same as a row for each class with the share as its weight."""
    X, _ = iris()
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(3), len(X))
    kwargs = {"loss": "multinomial", "penalty": fl.PerOutput(fl.L1(), 3), "alpha": 0.002, "fit_intercept": True}
    by_shares = fl.solve(fl.Problem(X, shares, **kwargs), tol=1e-9)
    rows, code = np.repeat(X, 3, axis=0), np.tile(np.arange(3), len(X))
    repeated = fl.Problem(rows, code, sample_weight=shares.ravel(), **kwargs)
    assert by_shares.primal == pytest.approx(fl.solve(repeated, tol=1e-9).primal, rel=1e-8)


@pytest.mark.parametrize("loss", ROW_LOSSES)
@pytest.mark.parametrize("intercept", [False, True])
def test_any_point_is_bounded_from_below(loss, intercept):
    """Certificates hold wherever they are made: none is above an objective."""
    X, y = iris()
    problem = fl.Problem(X, y, loss=loss, penalty=fl.MultiTaskLasso(3), alpha=0.05, fit_intercept=intercept)
    best = fl.solve(problem).primal
    rng = np.random.default_rng(0)
    for size in (0.01, 0.1, 1.0, 10.0):
        w = size * rng.standard_normal(problem.size)
        w[problem.intercept_slots] *= intercept
        x = problem.inside(size * rng.standard_normal(problem.visits))
        made = problem.certificate(type("State", (), {"w": w, "x": x, "y": None, "zx": None})())
        assert made.dual <= best * (1 + 1e-9) and made.primal >= best * (1 - 1e-6)
        if loss == "multinomial":
            assert np.isfinite(made.dual)


def test_largest_alpha():
    X, y = iris()
    for penalty in (fl.PerOutput(fl.L1(), 3), fl.MultiTaskLasso(3)):
        problem = fl.Problem(X, y, loss="multinomial", penalty=penalty, fit_intercept=True)
        top = problem.alpha_max()
        assert not fl.solve(problem.with_alpha(1.001 * top)).coef.any()
        assert fl.solve(problem.with_alpha(0.99 * top), tol=1e-9).coef.any()
    hinge = fl.Problem(X, y, loss="multiclass-hinge", penalty=fl.PerOutput(fl.L1(), 3), fit_intercept=True)
    assert not fl.solve(hinge.with_alpha(1.001 * hinge.alpha_max())).coef.any()


def test_classes_that_can_be_separated_without_penalty_have_no_answer():
    X, _ = iris()
    result = fl.solve(fl.Problem(X[:100], np.arange(100) // 50, loss="multinomial", fit_intercept=True), max_epochs=200)
    assert result.status is fl.Status.NO_ANSWER and "separable" in result.reason


def test_a_method_that_visits_single_scores_is_refused():
    X, y = iris()
    problem = fl.Problem(X, y, loss="multinomial", penalty=fl.Ridge())
    with pytest.raises(ValueError, match="sees all scores of a row together"):
        fl.solve(problem, method="sag")


def test_a_loss_of_ones_own_in_plain_python():
    class Slow(fl.Multinomial):
        def compiled(self):
            from fenchel.kernels import compiled

            return compiled.python_step(self._weighted_step)

        def dual_step(self, point, curvature, target):
            return fl.Multinomial(self.n_classes).dual_step(point, curvature, target)

    X, y = iris()
    kwargs = {"penalty": fl.PerOutput(fl.L1(), 3), "alpha": 0.05, "fit_intercept": True}
    slow = fl.solve(fl.Problem(X, y, loss=Slow(), **kwargs), method="sdca-admm")
    fast = fl.solve(fl.Problem(X, y, loss="multinomial", **kwargs), method="sdca-admm")
    assert slow.status is fl.Status.CONVERGED and slow.primal == pytest.approx(fast.primal, rel=2e-6)


@pytest.mark.parametrize("preset", ["paper", "theory"])
def test_presets(preset):
    X, y = iris()
    problem = fl.Problem(X, y, loss="multinomial", penalty=fl.MultiTaskLasso(3), alpha=0.05)
    result = fl.solve(problem, method="sdca-admm", preset=preset, tol=1e-3, max_epochs=3000)
    assert result.status is fl.Status.CONVERGED


def test_the_same_seed_gives_the_same_bits():
    X, y = iris()
    problem = fl.Problem(X, y, loss="multinomial", penalty=fl.MultiTaskLasso(3), alpha=0.05, fit_intercept=True)
    assert np.array_equal(fl.solve(problem, random_state=3).coef, fl.solve(problem, random_state=3).coef)
