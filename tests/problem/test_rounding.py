"""Bounds allow for rounding: they are true where sums lose their digits, and say so where nothing can be proven."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel import Status
from fenchel.data.partitions import partitioned
from fenchel.data.pools import Inline
from fenchel.engine.covariances import covariances
from fenchel.engine.moments import moments
from fenchel.foundation.numerics import UNIT
from fenchel.maps.gram import Gram, is_full
from fenchel.penalties import snapping
from fenchel.prices import PRICES
from fenchel.problem import Certificate, Point
from fenchel.problem.convergence import Convergence
from fenchel.problem.least_squares import least_squares
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


@pytest.mark.parametrize("loss", [fl.Huber(), fl.Quantile(), fl.EpsilonInsensitive(), fl.Poisson(), fl.Gamma(),
                                  fl.Tweedie(), fl.NegativeBinomial()])  # fmt: skip
def test_targets_too_large_for_bounds(loss):
    with pytest.raises(ValueError, match=r"y\[2\] is 1e\+154.*larger unit"):
        fl.Problem(np.eye(3), [1.0, 2.0, 1e154], loss=loss)


@pytest.mark.parametrize("unit", [1e50, 1e100])
def test_slopes_of_huge_residuals_are_bounded(unit):
    """What rounding may do is no more than the slopes of the loss, which end, times the sizes of the scores."""
    result = fl.solve(fl.Problem(X, unit * Y, loss=fl.Huber(unit), penalty=fl.L1(), alpha=0.1 * unit))
    assert result.status is Status.CONVERGED
    steep = fl.solve(fl.Problem(X, unit * Y, loss=fl.Huber(1.0), penalty=fl.L1(), alpha=0.1))
    assert np.isfinite(steep.dual) and steep.history[-1].dual > -steep.primal


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


def test_after_the_deadline_no_system_is_solved(monkeypatch):
    """Zeros behind rows of many entries take a factor to make exact, which may take minutes."""

    def late(*given):
        raise AssertionError("a system was solved after the deadline")

    B = np.random.default_rng(1).standard_normal((8, 6))
    problem = fl.Problem(X, Y, loss="squared", penalty=fl.L1() @ fl.Matrix(B) + fl.L1(), alpha=1.0)
    u = np.zeros(problem.d)
    with monkeypatch.context() as patch:
        patch.setattr(snapping.Snapping, "_without", late)
        list(problem.snaps(np.ones(problem.size), u, brief=True))
        with pytest.raises(AssertionError):
            list(problem.snaps(np.ones(problem.size), u))
    brief_or_not = []
    monkeypatch.setattr(type(problem), "snaps", lambda self, w, u, *, brief=False: brief_or_not.append(brief) or [])
    fl.solve(problem, method="sdca-admm", time_limit=1e-9)
    assert brief_or_not == [True]


@pytest.mark.parametrize("full", [True, False])
def test_products_of_full_and_empty_maps(full):
    rng = np.random.default_rng(0)
    B = rng.standard_normal((300, 410)) * (rng.random((300, 410)) < (1.0 if full else 0.01))
    gram = Gram(sp.csr_array(B))
    assert is_full(sp.csr_array(B)) == full
    right = B.T @ rng.standard_normal(300)
    np.testing.assert_allclose(B.T @ (B @ gram.solve(right)), right, atol=1e-8 * np.abs(right).max())


def test_values_that_cancel_are_wrong_by_their_terms():
    """Deviances next to zero are what is left of larger numbers."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 3))
    amounts = rng.gamma(2.0, size=5)
    for loss, y in (
        (fl.Binomial(), rng.uniform(0.2, 0.8, 5)),
        (fl.Gamma(), amounts),
        (fl.Tweedie(1.3), amounts),
        (fl.NegativeBinomial(3.0), np.arange(1.0, 6.0)),
    ):
        link = np.log(y / (1 - y)) if isinstance(loss, fl.Binomial) else np.log(y)
        problem = fl.Problem(X, y, loss=loss, offset=link * (1 + 1e-9), fit_intercept=True)
        w = np.array([1e-9, 0.0, 0.0, 0.0])
        value = problem.primal_at(w)
        assert abs(float(objective(problem, w)) - value) <= problem.primal_rounding(w, value) < 1e-12


def test_events_whose_order_can_be_told_have_no_answer():
    y = np.column_stack([np.arange(1.0, 41.0), np.ones(40)])
    told = np.column_stack([-y[:, 0], X])  # who dies first has the largest
    problem = fl.Problem(told, y, loss="cox", penalty=fl.L1(np.r_[0.0, np.ones(6)]), alpha=0.1)
    result = fl.solve(problem)
    assert result.status is Status.NO_ANSWER and "order of the events" in result.reason
    assert result.dual <= 0.0
    other = fl.Problem(X, y, loss="cox", penalty=fl.L1(), alpha=0.01)
    assert fl.solve(other).status is Status.CONVERGED


def test_intercepts_of_many_classes_under_kinks():
    """Where a model is flat along the slope, Newton's method takes damping, and does not stand still."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(5), rng.integers(0, 5, 75)])
    weight = rng.exponential(size=80) * (rng.random(80) < 0.8)
    for seed in range(4):
        X = np.random.default_rng(seed).standard_normal((80, 3))
        problem = fl.Problem(X, y, loss="multiclass-hinge", penalty=fl.L1(), alpha=1.0, sample_weight=weight,
                             fit_intercept=True)  # fmt: skip
        largest = problem.alpha_max()
        result = fl.solve(problem.with_alpha(1.01 * largest))
        assert result.status is Status.CONVERGED and not result.coef.any()


def test_pools_allow_for_rounding():
    y = 1e6 + Y
    pooled = fl.Problem(Inline(partitioned(X, y, rows=16)), loss="squared", penalty=fl.L1(), alpha=0.1)
    result = fl.solve(pooled, tol=1e-13)
    assert result.history[-1].dual <= objective(fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.1),
                                                np.append(result.coef, 0.0))  # fmt: skip
    made = pooled.certificate(Point(pooled.pack(result.coef)))
    assert made.rounding >= 1e-16 * result.primal


def test_least_squares_end_on_whatever_they_are_given():
    full = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(least_squares(full, full @ [1.0, -2.0], 1e-13), [1.0, -2.0])
    np.testing.assert_allclose(least_squares(np.ones((2, 2)), np.ones(2), 1e-13), [0.5, 0.5])
    assert np.isnan(least_squares(np.full((2, 2), np.nan), np.ones(2), 1e-13)).all()


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_a_cox_point_that_is_outside_by_rounding_is_paid_for(ties):
    rng = np.random.default_rng(0)
    loss = fl.Cox(ties)
    target = loss.check_targets(np.column_stack([rng.integers(1, 9, 20), rng.random(20) < 0.7]).astype(float))
    x = loss.sums(rng.standard_normal(20), target, np.zeros(0))[1]
    inside, off = loss.total_conjugate(x, target, np.zeros(0)), 1e-13
    for sign in (1.0, -1.0):
        outside = x + sign * off * (np.arange(20) == np.argmax(target["time"]))
        assert loss.total_conjugate(outside, target, np.zeros(0)) >= inside + 500 * off
    outside = x + 1e-6 * (np.arange(20) == np.argmax(target["time"]))
    assert loss.total_conjugate(outside, target, np.zeros(0)) == np.inf


@pytest.mark.parametrize("constant", [0.1, 1 / 3, 0.7, 1e5 / 3])
def test_rounding_of_equal_terms_adds_up(constant):
    """Errors of a sum over rows are not independent: where the terms are equal, so are the errors, and sums of n terms
    are off by more than some roots of n."""
    n, p = 20_000, 3
    signs = np.where(np.random.default_rng(0).random((n, p)) < 0.5, -1.0, 1.0)
    problem = fl.Problem(signs * constant, signs[:, 0] / 3, loss="squared", penalty=fl.L1(), alpha=0.1)
    size, third = Fraction(constant), Fraction(1 / 3)
    with_target = [float(size * third * int(one) / n) for one in signs.T @ signs[:, 0]]
    known, plain = covariances(problem), moments(problem, PRICES)
    lengths = constant * (1 / 3)
    for found in (known.with_target, plain.with_target[0]):
        assert np.abs(found - with_target).max() <= known._error * lengths
    off, variance = abs(Fraction(known.variance) - third * third), (1 / 3) ** 2
    assert off <= known._error * variance
    of_loss, of_slopes = plain.spread(np.zeros((1, p)))
    assert of_loss >= 0.9 * n * UNIT * variance and np.all(of_slopes >= 0.9 * n * UNIT * lengths)


def test_sums_of_sparse_columns_round_by_their_own_entries():
    """A column with three entries among many rows adds three terms, and the allowance still covers the sum."""
    rng = np.random.default_rng(4)
    X = sp.random_array((4000, 30), density=1e-3, rng=rng, format="csr") + sp.csr_array(np.eye(4000, 30))
    y = np.where(rng.random(4000) < 0.5, 1.0, -1.0)
    few = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), alpha=1e-3)
    same = fl.Problem(X.toarray(), y, loss="logistic", penalty=fl.L1(), alpha=1e-3)
    x = -y * rng.random(4000)
    few_error, same_error = (one.slope_error(x, one.gradient_sum(x)) for one in (few, same))
    assert np.all(few_error < 0.02 * same_error)
    long = X.toarray().astype(np.longdouble).T @ x.astype(np.longdouble)
    assert np.all(np.abs(few.gradient_sum(x)[few.feature_slots] - long) <= few_error)
