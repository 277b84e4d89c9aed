"""Rounds of the engine as an attempt between epochs: the answer, its proof, budgets, and what it does not suit."""

import math

import numpy as np
import pytest

import fenchel as fl
from fenchel.engine.accuracy import BEYOND
from fenchel.engine.attempts import Rounds
from fenchel.engine.attempts.manifold import Finisher
from fenchel.engine.curvatures.step_length import Steps
from fenchel.engine.roles import Goal, Iterate
from fenchel.foundation.numerics import DENSE
from fenchel.solver.convergence import Convergence

PENALTIES = {
    "fused": lambda: fl.L1() + 2 * (fl.L1() @ fl.Difference(30)),
    "grid": lambda: fl.TotalVariation((5, 6), l1_ratio=0.2),
    "graph": lambda: fl.L1() @ fl.Incidence([(i, (7 * i + 3) % 30) for i in range(30) if i != (7 * i + 3) % 30], 30),
    "fused with a quadratic": lambda: fl.L1() @ fl.Difference(30) + 0.1 * fl.Ridge(),
    "overlapping groups": lambda: fl.GroupL2([range(k, k + 8) for k in range(0, 24, 4)]) + 0.1 * fl.L1(),
    "slope": lambda: fl.Slope(),
}


def make(loss, penalty, n=80, **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 30))
    truth = np.repeat([0.0, 1.0, 0.0, -1.0, 0.0], 6)
    y = X @ truth + 0.5 * rng.standard_normal(n)
    if loss in ("logistic", "smoothed-hinge"):
        y = np.where(y > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss=loss, penalty=PENALTIES[penalty](), **options)
    largest = problem.alpha_max()
    return problem.with_alpha(0.05 * largest if np.isfinite(largest) else 0.05)


def goal(problem, tol=1e-6, deadline=math.inf, passes=math.inf):
    return Goal(tol, deadline, passes, Convergence.of(problem, tol).allowed)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed-hinge", "huber"])
@pytest.mark.parametrize("n", [80, 25])
def test_finds_the_answer_and_proves_it(loss, penalty, n):
    """With models alone, and, where rows are few, after accelerated steps."""
    problem = make(loss, penalty, n, fit_intercept=penalty == "grid")
    assert Rounds.unfit(problem) is None
    optimum = fl.solve(problem, tol=1e-10, max_epochs=50_000)
    assert optimum.status is fl.Status.CONVERGED
    found = Rounds(problem).run(Iterate.zero(problem), goal(problem), 1e12)
    assert found.certificate.relative_gap <= 1e-6
    slack = 1e-12 * abs(optimum.primal)
    assert optimum.dual - slack <= found.primal <= optimum.primal * (1 + 1e-6)
    assert found.certificate.dual <= optimum.primal + slack
    again = problem.certificate(found.iterate, fresh=True)
    assert again.primal == pytest.approx(found.primal, rel=1e-12)
    assert again.relative_gap <= 1.1e-6
    assert found.passes > 0 and found.nanoseconds > 0


@pytest.mark.parametrize("n", [80, 25])
def test_ends_when_the_budget_is_spent(n):
    """With what it has, and its certificate; the next attempt goes on with what this one learnt."""
    problem = make("logistic", "grid", n)
    attempt, zero = Rounds(problem), Iterate.zero(problem)
    price = attempt.price(zero)
    assert attempt.run(zero, goal(problem), 0.9 * price / BEYOND) is None
    cut = attempt.run(zero, goal(problem, tol=0.0), price / BEYOND)
    assert np.isfinite(cut.certificate.gap)
    assert cut.nanoseconds < 4 * price
    whole = attempt.run(cut.iterate, goal(problem), 1e12)
    assert whole.certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("n", [80, 25])
def test_ends_at_the_deadline_with_what_it_has(n):
    problem = make("logistic", "grid", n)
    found = Rounds(problem).run(Iterate.zero(problem), goal(problem, deadline=0.0), 1e12)
    assert found.passes <= 60  # a handful of steps, and a proof by conjugate gradients
    assert problem.certificate(found.iterate).primal == pytest.approx(found.primal, rel=1e-12)


def test_what_it_suits():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 30)), np.where(np.arange(20) % 2, 1.0, -1.0)
    wide = rng.standard_normal((20, DENSE + 1))
    assert "few rows" in Rounds.unfit(fl.Problem(wide, y, loss="logistic", penalty=fl.L1()))
    assert "kinks" in Rounds.unfit(fl.Problem(X, y, loss="hinge", penalty=PENALTIES["grid"]()))
    pairs = fl.Problem(wide, y, loss="logistic", penalty=fl.L1() @ fl.Difference(DENSE + 1))
    assert Rounds.unfit(pairs) is None and not Rounds(pairs).models


def test_accelerated_steps_alone_where_models_are_too_large():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, DENSE + 1))
    y = X[:, :40].sum(axis=1) + rng.standard_normal(30)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1() @ fl.Difference(DENSE + 1) + 0.1 * fl.L1())
    problem = problem.with_alpha(0.3 * problem.alpha_max())
    found = Rounds(problem).run(Iterate.zero(problem), goal(problem, 1e-4), 1e12)
    assert problem.certificate(found.iterate).relative_gap <= 1.1e-4


def test_newton_takes_over_on_a_grid():
    """The structure that rounds lead to is good enough for Newton's method, and that closes the proof."""
    rng = np.random.default_rng(0)
    side, n = 16, 400
    smooth = rng.standard_normal((n, side, side)).cumsum(axis=1).cumsum(axis=2)
    X = smooth.reshape(n, -1) / side
    truth = np.zeros((side, side))
    truth[3:8, 3:8], truth[9:14, 6:12] = 1.0, -1.0
    y = np.where(X @ truth.ravel() + rng.standard_normal(n) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.TotalVariation((side, side)), fit_intercept=True)
    problem = problem.with_alpha(0.02 * problem.alpha_max())
    found = Rounds(problem).run(Iterate.zero(problem), goal(problem, 3e-5), 1e12)
    assert 1e-12 < found.certificate.relative_gap <= 3e-5
    at = found.iterate
    finished = Finisher(problem).run(at.w, at.u, at.y, tol=1e-9)
    made = problem.certificate(finished, fresh=True)
    assert made.relative_gap <= 1e-9
    assert made.primal <= found.primal


@pytest.mark.parametrize("penalty", ["fused", "grid"])
def test_a_dual_point_is_brought_into_balance(penalty):
    problem = make("logistic", penalty)
    near = fl.solve(problem, tol=1e-9)
    zx = problem.gradient_sum(problem.slopes_at(problem.scores(near.state["w"])))
    y = Steps(problem).balanced(zx, near.state["y"])
    missed = (zx + problem.spread(y))[problem.feature_slots]
    assert np.abs(missed).max() <= 1e-9 * np.abs(zx).max()
    assert problem.gauge(y / problem.n) <= 1.01
