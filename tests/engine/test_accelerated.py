"""Accelerated proximal gradients: the answer, its proof, and when it is not tried."""

import numpy as np
import pytest

import fenchel as fl
from fenchel.engine.attempts.accelerated import Accelerated, applies
from fenchel.engine.attempts.manifold import Finisher

EDGES = {
    "fused": lambda: fl.L1() + 2 * (fl.L1() @ fl.Difference(30)),
    "grid": lambda: fl.TotalVariation((5, 6), l1_ratio=0.2),
    "graph": lambda: fl.L1() @ fl.Incidence([(i, (7 * i + 3) % 30) for i in range(30) if i != (7 * i + 3) % 30], 30),
    "fused with a quadratic": lambda: fl.L1() @ fl.Difference(30) + 0.1 * fl.Ridge(),
}


def make(loss, penalty, **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 30))
    truth = np.repeat([0.0, 1.0, 0.0, -1.0, 0.0], 6)
    y = X @ truth + 0.5 * rng.standard_normal(80)
    if loss in ("logistic", "smoothed-hinge"):
        y = np.where(y > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss=loss, penalty=EDGES[penalty](), **options)
    largest = problem.alpha_max()
    return problem.with_alpha(0.05 * largest if np.isfinite(largest) else 0.05)


@pytest.mark.parametrize("penalty", EDGES)
@pytest.mark.parametrize("loss", ["logistic", "squared", "smoothed-hinge", "huber"])
def test_finds_the_answer_and_proves_it(loss, penalty):
    problem = make(loss, penalty, fit_intercept=penalty == "grid")
    assert applies(problem)
    optimum = fl.solve(problem, tol=1e-10, max_epochs=50_000)
    assert optimum.status is fl.Status.CONVERGED
    start = np.zeros(problem.size), np.zeros(problem.d)
    point = Accelerated(problem).run(*start, tol=1e-6, gap=1.0, budget=1e12)
    assert point.made.relative_gap <= 1e-6
    slack = 1e-12 * abs(optimum.primal)
    assert optimum.dual - slack <= point.primal <= optimum.primal * (1 + 1e-6)
    assert point.made.dual <= optimum.primal + slack
    again = problem.certificate(point, fresh=True)
    assert again.primal == pytest.approx(point.primal, rel=1e-12)
    assert again.relative_gap <= 1.1e-6


def test_stops_where_the_goal_is_out_of_sight():
    problem = make("logistic", "grid")
    method = Accelerated(problem)
    start = np.zeros(problem.size), np.zeros(problem.d)
    point = method.run(*start, tol=0.0, gap=1.0, budget=31 * method.step_nanoseconds)
    assert 0 < point.passes < 150  # three or four certificates, and no more
    assert np.isfinite(point.made.gap)


def test_not_tried_where_the_budget_is_small():
    problem = make("logistic", "grid")
    start = np.zeros(problem.size), np.zeros(problem.d)
    assert Accelerated(problem).run(*start, tol=1e-6, gap=1.0, budget=1e3) is None


def test_ends_at_the_deadline_with_what_it_has():
    problem = make("logistic", "grid")
    method = Accelerated(problem)
    method.deadline = 0.0
    point = method.run(np.zeros(problem.size), np.zeros(problem.d), tol=1e-6, gap=1.0, budget=1e12)
    assert point.passes == 2.0  # one step and its certificate
    assert problem.certificate(point).primal == pytest.approx(point.primal, rel=1e-12)


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [("hinge", EDGES["grid"]), ("logistic", fl.L1), ("logistic", lambda: fl.L1() @ fl.Difference(30, order=2))],
)
def test_applies_to_smooth_losses_and_pairs_of_features(loss, penalty):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((20, 30)), np.where(np.arange(20) % 2, 1.0, -1.0)
    assert not applies(fl.Problem(X, y, loss=loss, penalty=penalty()))


def test_newton_takes_over_on_a_grid():
    """The structure of a prox is good enough for Newton's method, and that closes the proof."""
    rng = np.random.default_rng(0)
    side, n = 16, 400
    smooth = rng.standard_normal((n, side, side)).cumsum(axis=1).cumsum(axis=2)
    X = smooth.reshape(n, -1) / side
    truth = np.zeros((side, side))
    truth[3:8, 3:8], truth[9:14, 6:12] = 1.0, -1.0
    y = np.where(X @ truth.ravel() + rng.standard_normal(n) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.TotalVariation((side, side)), fit_intercept=True)
    problem = problem.with_alpha(0.02 * problem.alpha_max())
    method = Accelerated(problem)
    point = method.run(np.zeros(problem.size), np.zeros(problem.d), tol=3e-5, gap=1.0, budget=1e12)
    assert 1e-9 < point.made.relative_gap <= 3e-5
    sharp = method.sharpened(point)
    assert sharp.made.relative_gap <= point.made.relative_gap
    finished = Finisher(problem).run(sharp.w, sharp.u, sharp.y, tol=1e-9)
    made = problem.certificate(finished, fresh=True)
    assert made.relative_gap <= 1e-9
    assert made.primal <= point.primal


@pytest.mark.parametrize("penalty", ["fused", "grid"])
def test_single_precision_is_left_for_the_last_digits(penalty):
    problem = make("logistic", penalty)
    method = Accelerated(problem)
    assert problem.data.single[0].dtype == np.float32
    point = method.run(np.zeros(problem.size), np.zeros(problem.d), tol=1e-10, gap=1.0, budget=1e12)
    assert point.made.relative_gap <= 1e-10
    assert point.primal == problem.primal_at(point.w)
