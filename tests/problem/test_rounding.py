"""Bounds allow for rounding: they are true where sums lose their digits, and say so where nothing can be proven."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel as fl
from fenchel import Status
from fenchel.problem import Certificate, Point
from fenchel.problem.convergence import Convergence
from fenchel.solver.run import Run
from fenchel.testing import small_problems
from fenchel.testing.hostile.exact import objective

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 6))
Y = X @ [1.0, 0.5, 0.0, 0.0, -1.0, 2.0] + 0.1 * RNG.standard_normal(40)


def exactly(problem, result):
    """The objective with sixty digits; limits count up to the rounding of their own sum alone."""
    return objective(problem, problem.pack(result.coef, result.intercept))


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e8])
@pytest.mark.parametrize("penalty", ["monotone", "non-negative", "box", "matrix"])
def test_feasible_means_feasible(penalty, unit):
    B = np.random.default_rng(1).standard_normal((8, 6))
    kind = {
        "monotone": fl.Monotone(), "non-negative": fl.NonNegative(), "box": fl.Box(-0.2 * unit, 0.3 * unit),
        "matrix": fl.NonNegative() @ fl.Matrix(B),
    }[penalty]  # fmt: skip
    problem = fl.Problem(X, Y * unit, loss="squared", penalty=kind, alpha=1.0)
    result = fl.solve(problem, tol=1e-9)
    assert result.status is Status.CONVERGED
    if penalty == "monotone":
        assert np.all(np.diff(result.coef) >= 0)
    elif penalty == "non-negative":
        assert np.all(result.coef >= 0)
    elif penalty == "box":
        assert np.all(result.coef >= kind.lower) and np.all(result.coef <= kind.upper)
    value = exactly(problem, result)
    assert result.dual <= value
    assert abs(float(value) - result.primal) <= problem.primal_rounding(problem.pack(result.coef), result.primal)


@pytest.mark.parametrize("decades", [-12, -6, 6, 12])
@pytest.mark.parametrize(
    "penalty",
    [fl.FusedLasso(0.0), fl.FusedLasso(), fl.GraphFused([[0, 1], [1, 2], [4, 5]]), fl.Monotone(),
     fl.GroupLasso([[0, 1], [1, 2, 3], [3, 4, 5]])],
)  # fmt: skip
def test_tied_columns_in_units_that_differ(penalty, decades):
    units = np.ones(6)
    units[1] = 10.0**decades
    problem = fl.Problem(X * units, Y, loss="squared", penalty=penalty, alpha=1e-3)
    result = fl.solve(problem, tol=1e-8, max_epochs=2000)
    assert result.status is not Status.CONTRADICTION
    assert result.dual <= exactly(problem, result)
    assert (result.status is Status.CONVERGED) == (result.gap <= 1e-8 * result.primal)


def test_bounds_that_contradict_each_other_are_an_error_of_their_own(monkeypatch):
    monkeypatch.setattr(Run, "_certificate_of", lambda self, proposal: Certificate(1.0, 2.0, 0.0))
    result = fl.solve(fl.Problem(X, Y, loss="squared", penalty=fl.L1(), alpha=0.1))
    assert result.status is Status.CONTRADICTION
    assert result.gap == np.inf and not result.certified
    assert "report" in result.reason


@pytest.mark.parametrize("exact", [False, True])
def test_certificates_hold_with_sixty_digits(exact):
    """Dual bounds at answers to the last digit stay below objectives that are made with sixty."""
    seen = 0
    for problem in small_problems().values():
        result = fl.solve(problem, tol=1e-12, time_limit=2.0)
        if not result.certified:
            continue
        made = problem.certificate(Point(problem.pack(result.coef, result.intercept)), exact=exact)
        try:
            value = exactly(problem, result)
        except Exception:  # of a kind that has no formula with sixty digits
            continue
        seen += 1
        assert max(made.dual, result.dual) <= value
    assert seen >= 3


def test_more_digits_take_less_from_the_bound():
    problem = fl.Problem(X, Y, loss="squared", penalty=fl.L1(), alpha=0.1, fit_intercept=True)
    result = fl.solve(problem, tol=1e-12)
    plain, sharp = (problem.certificate(result.state, exact=exact) for exact in (False, True))
    if problem.can_be_exact:
        assert sharp.rounding < 0.3 * plain.rounding


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
def test_converged_means_one_thing(tol):
    """gap <= tol max(|primal|, 1e-10 P(0)), as docs/certificate.md says."""
    for alpha in (1e-14, 1e-6, 0.1):
        for target in (Y, X @ np.ones(6)):
            problem = fl.Problem(X, target, loss="squared", penalty=fl.L1(), alpha=alpha)
            result = fl.solve(problem, tol=tol)
            allowed = tol * max(abs(result.primal), 1e-10 * problem.objective_at_zero())
            assert Convergence.of(problem, tol).allowed(result.primal) == allowed
            assert (result.status is Status.CONVERGED) == (result.gap <= allowed)


def test_targets_too_large_for_squares():
    with pytest.raises(ValueError, match=r"y\[2\] is 1e\+155.*larger unit"):
        fl.Problem(np.eye(3), [1.0, 2.0, 1e155], loss="squared")
    problem = fl.Problem(X, 1e139 * Y / np.abs(Y).max(), loss="squared", penalty=fl.L1(), alpha=1e137)
    assert fl.solve(problem).status is Status.CONVERGED


@pytest.mark.parametrize("unit", [1.0, 1e6, 1e12, 1e150])
def test_quantiles_without_a_penalty_of_large_targets(unit):
    result = fl.solve(fl.Problem(X, unit * Y, loss="quantile", penalty=None))
    assert result.status is Status.CONVERGED


def test_weights_below_all_rounding():
    labels = np.where(Y + 2 * np.random.default_rng(3).standard_normal(40) > 0, 1.0, -1.0)
    free = fl.solve(fl.Problem(X, labels, loss="logistic", penalty=None))
    weak = fl.solve(fl.Problem(X, labels, loss="logistic", penalty=fl.L1(), alpha=1e-20))
    assert free.status is weak.status is Status.CONVERGED
    assert weak.epochs < 200
    assert weak.primal == pytest.approx(free.primal, rel=2e-6)  # both to the tolerance


@pytest.mark.parametrize("penalty", [None, fl.L1(), fl.NonNegative(), fl.Ridge(), fl.FusedLasso()])
def test_counts_of_zero(penalty):
    for fit_intercept in (False, True):
        result = fl.solve(fl.Problem(X, np.zeros(40), loss="poisson", penalty=penalty, fit_intercept=fit_intercept))
        if fit_intercept:
            assert result.status is Status.NO_ANSWER and "not attained" in result.reason
        else:
            assert result.status is Status.CONVERGED


@pytest.mark.parametrize("penalty", [fl.NonNegative(), fl.Monotone()])
def test_counts_within_limits(penalty):
    counts = np.random.default_rng(2).poisson(np.exp(0.3 * X[:, 0]))
    assert fl.solve(fl.Problem(X, counts, loss="poisson", penalty=penalty)).status is Status.CONVERGED


@pytest.mark.parametrize("rows", [np.zeros((3, 6)), np.vstack([np.eye(6)[:2], np.zeros(6)])])
def test_maps_with_empty_rows(rows):
    problem = fl.Problem(X, Y, loss="squared", penalty=fl.L1() @ fl.Matrix(rows), alpha=0.1)
    assert fl.solve(problem).status is Status.CONVERGED


def test_a_prox_that_is_no_number_is_reported():
    class Broken(fl.Penalty):
        def value(self, u):
            return float(np.abs(u).sum())

        def prox(self, u, step):
            return np.full_like(u, np.nan)

        def conjugate(self, y):
            return 0.0 if np.abs(y).max() <= 1 else np.inf

        def gauge(self, y):
            return float(np.abs(y).max())

    with pytest.raises(ValueError, match="prox of a penalty returned nan at coordinate 0"):
        fl.solve(fl.Problem(X, Y, loss="squared", penalty=Broken(), alpha=0.1))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_separable_labels_without_a_penalty_are_seen_at_once(fit_intercept):
    problem = fl.Problem(X, np.sign(X[:, 0]), loss="logistic", penalty=fl.L1(), alpha=0.0, fit_intercept=fit_intercept)
    result = fl.solve(problem)
    assert result.status is Status.NO_ANSWER and "separable" in result.reason
    assert result.epochs < 500
