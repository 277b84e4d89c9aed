"""Compiled loops over sparse columns: their bounds against the problem's own certificate, on many kinds of problems."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine import compiled
from fenchel.engine.compiled import CompiledPath, is_compiled, on_columns
from fenchel.engine.units import shared_units, units_of
from fenchel.prices import PRICES

LOSSES = ("squared", "logistic", "poisson", "huber", "smoothed-hinge", "squared-hinge")


def _problem(
    seed, loss, *, n=150, p=60, density=0.08, intercept=True, weighted=False, penalty=None, share=0.1, by="csr"
):
    """Columns of scales from 1e-3 to 1e3, an empty one, and one that stands there twice."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, p, density, format="lil", random_state=rng, data_rvs=rng.standard_normal)
    X[:, 3] = 0.0
    X[:, 5] = X[:, 4]
    X = sp.csr_array(X @ sp.diags(10.0 ** rng.uniform(-3, 3, p)))
    X.eliminate_zeros()
    score = np.asarray(
        X @ (rng.standard_normal(p) * (rng.random(p) < 0.2) / np.maximum(abs(X).max(axis=0).toarray(), 1e-9).ravel())
    )
    if loss in ("logistic", "smoothed-hinge", "squared-hinge"):
        y = np.where(score + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(score, -2, 2))).astype(float)
    else:
        y = score + 0.3 * rng.standard_normal(n)
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    problem = fl.Problem(
        X.asformat(by), y, loss=loss, penalty=fl.L1() if penalty is None else penalty(rng, p), fit_intercept=intercept,
        sample_weight=weight,
    )  # fmt: skip
    return problem.with_alpha(share * problem.alpha_max())


def _check(problem, result, tol):
    """Both bounds, by the certificate of a tight answer that another way found."""
    assert result.status.name == "CONVERGED"
    value = problem.primal_at(problem.pack(result.coef, result.intercept))
    assert value == pytest.approx(result.primal, rel=1e-9, abs=1e-12)
    assert result.dual <= result.primal + 1e-12 * abs(result.primal)
    tight = fl.solve(problem, tol=1e-10, max_epochs=20_000)
    slack = 1e-9 * max(abs(tight.primal), 1e-12)
    assert result.dual <= tight.primal + slack
    assert result.primal >= tight.dual - slack
    assert result.primal - tight.dual <= tol * abs(result.primal) + (tight.primal - tight.dual) + slack


PENALTIES = {
    "l1": None,
    "weights": lambda rng, p: fl.L1(rng.uniform(0.2, 3.0, p)),
    "elastic net": lambda rng, p: fl.ElasticNet(0.5),
    "nonnegative": lambda rng, p: fl.L1() + fl.NonNegative(),
}


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold(loss, penalty):
    for seed, intercept, weighted in ((0, False, False), (1, True, False), (2, True, True)):
        problem = _problem(seed, loss, intercept=intercept, weighted=weighted, penalty=PENALTIES[penalty])
        assert is_compiled(problem, [problem.alpha], PRICES)
        _check(problem, fl.solve(problem, tol=1e-6), 1e-6)


BOUNDED = {
    **PENALTIES,
    "box": lambda rng, p: fl.L1() + fl.Box(-0.05, 0.02),
    "upper bound": lambda rng, p: fl.L1() + fl.Box(-np.inf, 0.1),
}


@pytest.mark.parametrize("penalty", BOUNDED)
@pytest.mark.parametrize("loss", ("squared", "logistic", "huber"))
def test_bounds_agree_with_epochs_alone(loss, penalty):
    """Epochs know nothing of these loops: the intervals that both prove must meet."""
    rng = np.random.default_rng([20, len(penalty)])
    for seed, n, p in ((0, 80, 40), (1, 60, 120)):
        X = sp.random(n, p, 0.1, format="csr", random_state=rng, data_rvs=rng.standard_normal)
        y = np.asarray(X @ rng.standard_normal(p)) + 0.3 * rng.standard_normal(n)
        y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
        kind = BOUNDED[penalty]
        problem = fl.Problem(X, y, loss=loss, penalty=fl.L1() if kind is None else kind(rng, p), fit_intercept=seed > 0)
        problem = problem.with_alpha(0.1 * problem.alpha_max())
        path = CompiledPath(problem, [problem.alpha], 1e-8, PRICES)
        path._on_columns(problem, shared_units(problem)[1], 1e-8, PRICES)  # whatever was chosen
        assert path.has(problem.alpha)
        proven = path.answers[problem.alpha].proven
        assert proven.gap <= 1e-8 * abs(proven.primal)
        slow = fl.solve(problem, tol=1e-5, newton=False, max_epochs=20_000)
        assert slow.status.name == "CONVERGED"
        assert proven.dual <= slow.primal * (1 + 1e-12)
        assert slow.dual <= proven.primal * (1 + 1e-12)


@pytest.mark.parametrize("loss", ("squared", "logistic"))
def test_loops_find_the_answer_themselves(loss):
    problem = _problem(7, loss)
    path = CompiledPath(problem, [problem.alpha], 1e-8, PRICES)
    assert path.has(problem.alpha)
    found = path.answers[problem.alpha]
    made = problem.certificate(found.iterate(problem))
    assert made.certified
    assert made.dual == pytest.approx(found.proven.dual, rel=1e-9)
    assert problem.primal_at(found.w) == pytest.approx(found.proven.primal, rel=1e-12)
    assert found.proven.gap <= 1e-8 * abs(found.proven.primal)


@pytest.mark.parametrize("loss", ("squared", "logistic", "huber"))
@pytest.mark.parametrize("n, p", [(40, 300), (400, 40)])
def test_rows_columns_and_filled_in_data_agree(loss, n, p):
    answers = []
    for by in ("csr", "csc"):
        problem = _problem(3, loss, n=n, p=p, by=by, share=0.2)
        answers.append(fl.solve(problem, tol=1e-9))
    dense = fl.Problem(problem.data.filled(), problem.target, loss=loss, penalty=fl.L1(), fit_intercept=True)
    answers.append(fl.solve(dense.with_alpha(problem.alpha), tol=1e-9))
    for result in answers:
        assert result.status.name == "CONVERGED"
        assert result.primal == pytest.approx(answers[0].primal, rel=1e-8)
    np.testing.assert_allclose(answers[0].coef, answers[1].coef, rtol=1e-9)  # the alphas differ by rounding


def test_zeros_are_exact_and_the_same_bits_come_again():
    problem = _problem(4, "logistic", n=300, p=100)
    first, second = (fl.solve(problem, tol=1e-6) for _ in range(2))
    assert np.count_nonzero(first.coef) < 50
    np.testing.assert_array_equal(first.coef, second.coef)
    assert first.dual == second.dual


@pytest.mark.parametrize("loss", ("squared", "logistic"))
def test_paths_are_certified(loss):
    problem = _problem(5, loss, n=300, p=80)
    path = fl.path(problem, n_alphas=20, tol=1e-6)
    assert path.converged.all()
    for k in (0, 7, 19):
        _check(problem.with_alpha(path.alphas[k]), path[k], 1e-6)


def test_infinite_weights_keep_features_out():
    problem = _problem(6, "logistic", penalty=lambda rng, p: fl.L1(np.where(np.arange(p) % 3 == 0, np.inf, 1.0)))
    result = fl.solve(problem, tol=1e-6)
    assert result.status.name == "CONVERGED"
    assert not result.coef[::3].any()


def test_features_without_a_penalty_go_elsewhere():
    problem = _problem(6, "logistic", penalty=lambda rng, p: fl.L1(np.where(np.arange(p) == 1, 0.0, 1.0)))
    units = units_of(problem)
    assert not on_columns(problem, units, [problem.alpha], PRICES)
    assert fl.solve(problem, tol=1e-6).status.name == "CONVERGED"


def test_warm_starts_and_limits_are_heard():
    problem = _problem(8, "logistic", n=300, p=100)
    result = fl.solve(problem, tol=1e-6)
    again = fl.solve(problem.with_alpha(0.9 * problem.alpha), tol=1e-6, warm_start=result)
    assert again.status.name == "CONVERGED"
    seen = []
    stopped = fl.solve(problem, tol=1e-6, callback=lambda snapshot: seen.append(snapshot) or True)
    assert seen and stopped.status.name in ("CALLBACK", "CONVERGED")
    assert fl.solve(problem, tol=1e-6, time_limit=0.0).status.name in ("TIME_LIMIT", "CONVERGED")


def test_rounds_go_on_where_the_loops_give_up(monkeypatch):
    monkeypatch.setattr(compiled, "LONGEST", 1.0)  # one nanosecond: every alpha is given up
    problem = _problem(9, "logistic", n=300, p=100)
    path = CompiledPath(problem, [problem.alpha], 1e-6, PRICES)
    assert not path.has(problem.alpha)
    _check(problem, fl.solve(problem, tol=1e-6), 1e-6)
