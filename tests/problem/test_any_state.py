"""A certificate believes nobody: whatever state it is given, its lower bound is below the objective of any answer."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

import fenchel as fl
from fenchel.problem import Point
from fenchel.solver.entry import solve
from fenchel.testing import hostile
from fenchel.testing.hostile import problems
from fenchel.testing.hostile.exact import Broken, objective
from fenchel.testing.hostile.exact_losses import NotJudged


def least_known(problem, result):
    """The objective of an answer, and of zero where that is one, with sixty digits."""
    found = []
    for w in (problem.pack(result.coef, result.intercept), np.zeros(problem.size)):
        try:
            found.append(objective(problem, w))
        except (Broken, NotJudged):
            continue
    return min(found, default=None)


def spoilt(problem, state, rng):
    """A state with noise of any size, points at the ends of domains, sums that are off, and a w that says nothing."""
    w, x, y = (np.array(state[name]) for name in ("w", "x", "y"))
    noise, how = 10.0 ** rng.uniform(-16, 1), rng.integers(0, 5)
    if how <= 1:
        x = x * (1 + noise * rng.standard_normal(x.size))
    if how == 1:
        y = y * (1 + noise * rng.standard_normal(y.size))
    if how == 2:
        w = w * rng.choice([0.0, 1.0, 1e-3, 1e3], w.size)
        x = None if rng.random() < 0.5 else x
    if how == 3:
        x = x + noise * np.abs(x).mean()
    if how == 4:
        x, y = x * (1 + 1e-15), np.zeros_like(y)
    if x is not None and not problem.loss.across_rows and rng.random() < 0.5:
        x = problem.inside(x)
    w = np.zeros_like(w) if rng.random() < 0.3 else w
    return Point(w, x, None if rng.random() < 0.3 else y)


@pytest.mark.parametrize("part", range(6))
def test_bounds_of_spoilt_states_are_true(part, monkeypatch):
    monkeypatch.setattr(problems, "DRAWS", problems.Draws(most=12))
    judged = 0
    for seed in range(1000 + 12 * part, 1000 + 12 * (part + 1)):
        problem = hostile.make(seed).problem
        result = solve(problem, tol=1e-10, max_epochs=300)
        best = least_known(problem, result)
        if best is None:
            continue
        rng = np.random.default_rng(seed)
        for k in range(8):
            made = problem.certificate(spoilt(problem, result.state, rng), exact=k == 0)
            assert not np.isnan(made.dual)
            if np.isfinite(made.dual):
                judged += 1
                assert Decimal(made.dual) <= best + Decimal(10) ** -50 * (abs(best) + 1), (seed, k)
    assert judged >= 40


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "quantile", "poisson", "multinomial"])
def test_so_they_are_where_columns_are_far_from_zero(loss):
    """What mends the sums there is known from deviations from means alone."""
    rng, judged = np.random.default_rng(3), 0
    penalties = [fl.FusedLasso(), fl.NonNegative() + fl.L1(), fl.L1(np.r_[0.0, 0.0, np.ones(4)]), None]
    for penalty in penalties:
        near = rng.standard_normal((25, 6))
        score = near[:, 0] - near[:, 1] + 0.5 * rng.standard_normal(25)
        y = np.sign(score) if loss in ("logistic", "hinge") else score
        y = rng.poisson(np.exp(0.3 * score)).astype(float) if loss == "poisson" else y
        if loss == "multinomial":
            y, penalty = np.digitize(score, [-0.5, 0.5]), penalty and fl.PerOutput(penalty, 3)
        X = near + 10.0 ** rng.uniform(2, 5, 6) * rng.choice([-1, 1], 6)
        problem = fl.Problem(X, y, loss=loss, penalty=penalty, alpha=0.02, fit_intercept=True)
        result = solve(problem, tol=1e-9, max_epochs=2000)
        best = least_known(problem, result)
        for k in range(8):
            made = problem.certificate(spoilt(problem, result.state, rng) if k else result.state, exact=k == 1)
            if np.isfinite(made.dual):
                judged += 1
                assert Decimal(made.dual) <= best + Decimal(10) ** -50 * (abs(best) + 1), k
    assert judged >= 12


def test_the_sum_of_least_losses_rounds_too():
    """Counts have a least loss each, and their sum is no number of a bound that x = 0 gives for nothing."""
    for count in np.random.default_rng(0).uniform(1, 100, 50):
        problem = fl.Problem(np.ones((1, 1)), [count], loss="poisson", fit_intercept=True)
        t = Decimal(count)
        assert Decimal(problem.certificate(Point(np.zeros(2), x=np.zeros(1))).dual) <= t - t * t.ln()
