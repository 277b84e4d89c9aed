"""Last digits of answers whose coefficients stand alone: what Newton's method on faces finds, in a part of its time."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel as fl
from fenchel.engine.attempts.last_digits import last_digits
from fenchel.engine.attempts.manifold import correct
from fenchel.foundation.numerics import ROUNDING

PENALTIES = {
    "l1": fl.L1(),
    "weights of zero": fl.L1(np.r_[0.0, 0.5, np.ones(10)]),
    "elastic net": fl.ElasticNet(0.7),
    "nonnegative": fl.L1() + fl.NonNegative(),
}


def problem_of(loss, penalty, intercept, weighted, share=0.1):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 12))
    score = X[:, :4].sum(axis=1) + rng.standard_normal(80)
    y = {"logistic": np.where(score > 0, 1.0, -1.0), "poisson": rng.poisson(np.exp(0.3 * score)).astype(float)}
    weight = rng.integers(0, 3, 80).astype(float) if weighted else None
    problem = fl.Problem(
        X, y.get(loss, score), loss=loss, penalty=penalty, alpha=1.0, fit_intercept=intercept, sample_weight=weight
    )
    return problem.with_alpha(share * problem.alpha_max())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_the_answer_of_faces(loss, penalty, intercept, weighted):
    problem = problem_of(loss, PENALTIES[penalty], intercept, weighted)
    result = fl.solve(problem, tol=1e-5)
    w = problem.pack(result.coef, result.intercept)
    found = last_digits(problem, w, ROUNDING)
    assert found is not None
    point, made = found
    assert made.gap - made.rounding <= ROUNDING * abs(made.primal)
    known = correct(problem, w, problem.penalised(w), result.state["y"], tol=ROUNDING)
    np.testing.assert_allclose(point.w, known.w, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(point.w == 0, w == 0)


def test_zeros_that_are_not_those_of_the_answer_are_refused():
    problem = problem_of("logistic", fl.L1(), True, False, share=0.01)
    few = np.zeros(problem.size)
    few[0] = 1.0  # one feature of many
    assert last_digits(problem, few, ROUNDING) is None
    few[0] = -1.0  # of the wrong sign
    assert last_digits(problem, few, ROUNDING) is None


def test_what_it_does_not_suit():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((30, 6)), rng.standard_normal(30)
    groups = fl.Problem(X, y, loss="squared", penalty=fl.GroupLasso(np.arange(6) // 2), alpha=0.01)
    kinked = fl.Problem(X, np.sign(y), loss="hinge", penalty=fl.L1(), alpha=0.01)
    for problem in (groups, kinked):
        assert last_digits(problem, np.ones(problem.size), ROUNDING) is None
