"""Offsets: what is known of the scores beforehand goes through objective, certificate, methods, engines and paths."""

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from reference import reference

import fenchel as fl
from fenchel.losses import LOSSES
from fenchel.methods import METHODS

PENALTIES = {
    "l1": (fl.L1(), 0.05),
    "groups": (fl.GroupL2(cases.APART), 0.05),
    "overlapping groups": (fl.GroupL2(cases.OVERLAP), 0.04),
    "total variation": (fl.L1() @ fl.Difference(cases.P) + 0.2 * fl.L1(), 0.05),
    "trace norm": (fl.TraceNorm((3, 4)), 0.05),
}


def offset_data(loss, seed=1, n=40, weighted=False):
    X, y, weight = cases.data(loss, seed=seed, n=n, weighted=weighted)
    return X, y, weight, np.random.default_rng(seed + 100).normal(0.3, 0.8, n)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_conic_twin(loss, name):
    loss, (penalty, alpha) = LOSSES[loss](), PENALTIES[name]
    X, y, weight, offset = offset_data(loss, weighted=name == "l1")
    problem = fl.Problem(
        X, y, loss=loss, penalty=penalty, alpha=alpha, fit_intercept=True, offset=offset, sample_weight=weight
    )
    result = fl.solve(problem, tol=1e-7)
    optimum, _, _ = reference(X, y, loss, penalty, alpha, weight, True, offset)
    assert result.status is fl.Status.CONVERGED
    size = max(abs(optimum), 1e-3)
    assert result.dual - 1e-7 * size <= optimum <= result.primal + 1e-7 * size
    assert problem.primal(result.coef, result.intercept) == pytest.approx(result.primal, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge"])
def test_every_method_sees_the_offset(method, loss):
    X, y, _, offset = offset_data(LOSSES[loss]())
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1() + 0.1 * fl.Ridge(), alpha=0.1, offset=offset)
    best = fl.solve(problem, tol=1e-8).primal
    plain = fl.solve(fl.Problem(X, y, loss=loss, penalty=fl.L1() + 0.1 * fl.Ridge(), alpha=0.1), tol=1e-8)
    away = problem.primal(plain.coef) - best
    result = fl.solve(problem, method=method, tol=1e-4, max_epochs=2000)
    assert result.dual <= best * (1 + 1e-8)
    assert 0 <= result.primal - best + 1e-9 <= 0.2 * away  # the answer without the offset is far from it


@pytest.mark.parametrize("loss", ["logistic", "poisson", "hinge"])
def test_alpha_max_path_and_weights(loss):
    X, y, _, offset = offset_data(LOSSES[loss](), n=60)
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1(), fit_intercept=True, offset=offset)
    largest = problem.alpha_max()
    below, above = (fl.solve(problem.with_alpha(share * largest), tol=1e-9) for share in (0.9, 1.01))
    assert np.any(below.coef) and not np.any(above.coef)
    weight = np.repeat([0.0, 1.0], 30)
    half = problem.with_weights(weight).with_alpha(0.3 * largest)
    own = fl.Problem(
        X[30:], y[30:], loss=loss, penalty=fl.L1(), alpha=0.3 * largest, fit_intercept=True, offset=offset[30:]
    )
    assert fl.solve(half, tol=1e-9).primal == pytest.approx(fl.solve(own, tol=1e-9).primal, rel=1e-7)
    points = fl.path(problem, n_alphas=6, eps=0.05, tol=1e-7)
    for alpha, result in zip(points.alphas, points, strict=True):
        assert result.status is fl.Status.CONVERGED
        assert result.primal == pytest.approx(fl.solve(problem.with_alpha(alpha), tol=1e-7).primal, rel=3e-7)


def test_cross_validation_scores_with_the_offset():
    X, y, _, offset = offset_data(fl.Poisson(), n=60)
    folds = [(np.arange(40), np.arange(40, 60))]
    problem = fl.Problem(X, y, loss="poisson", penalty=fl.L1(), offset=offset, fit_intercept=True)
    found = fl.cross_validate_path(problem, cv=folds, alphas=[0.1], tol=1e-9)
    own = fl.solve(
        fl.Problem(X[:40], y[:40], loss="poisson", penalty=fl.L1(), alpha=0.1, offset=offset[:40], fit_intercept=True),
        tol=1e-9,
    )
    scores = X[40:] @ own.coef + own.intercept + offset[40:]
    assert found.scores[0, 0] == pytest.approx(-fl.Poisson().value(scores, y[40:]).mean(), rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_outputs_and_tasks(loss):
    rng = np.random.default_rng(3)
    X, score = rng.standard_normal((50, 5)), rng.standard_normal((50, 2))
    y = np.where(score > 0, 1.0, -1.0) if loss == "logistic" else score
    offset = rng.standard_normal((50, 2))
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1(), alpha=0.02, offset=offset, fit_intercept=True)
    both = fl.solve(problem, tol=1e-9)
    for k in range(2):
        one = fl.Problem(X, y[:, k], loss=loss, penalty=fl.L1(), alpha=0.02, offset=offset[:, k], fit_intercept=True)
        assert np.allclose(both.coef[k], fl.solve(one, tol=1e-9).coef, atol=2e-4)
    task = np.repeat([0, 1], 50)
    stacked = fl.Problem(
        np.vstack([X, X]), y.T.ravel(), loss=loss, penalty=fl.L1(), alpha=0.01, task=task, offset=offset.T.ravel(),
        fit_intercept=True,
    )  # fmt: skip
    assert 2 * fl.solve(stacked, tol=1e-8).primal == pytest.approx(both.primal, rel=1e-5)


def test_exposure_is_weight_and_rate():
    """exp(u + o) - t u, weighted, is the same loss of the rate t e^-o at weight e^o: two ways to say one thing."""
    X, y, _, offset = offset_data(fl.Poisson(), n=80)
    exposure = np.exp(offset)
    alpha = 0.03
    known = fl.Problem(X, y, loss="poisson", penalty=fl.L1(), alpha=alpha, offset=offset, fit_intercept=True)
    rate = fl.Problem(
        X, y / exposure, loss="poisson", penalty=fl.L1(), alpha=alpha / exposure.mean(), sample_weight=exposure,
        fit_intercept=True,
    )  # fmt: skip
    first, second = fl.solve(known, tol=1e-10), fl.solve(rate, tol=1e-10)
    assert np.allclose(first.coef, second.coef, atol=1e-5)
    assert first.intercept == pytest.approx(second.intercept, abs=1e-5)


def test_runs_are_told_apart_and_go_on():
    X, y, _, offset = offset_data(fl.Logistic())
    weight = np.abs(offset) + 0.1
    made = [
        fl.Problem(X, y, loss="logistic", penalty=fl.L1(), **given)
        for given in ({}, {"offset": offset}, {"offset": 2 * offset}, {"sample_weight": weight}, {"offset": 0 * offset})
    ]
    digests = [str(one.fingerprint) for one in made]
    assert len(set(digests)) == 4 and digests[0] == digests[4]
    first = fl.solve(made[1], max_epochs=3, tol=1e-12, method="sdca-admm")
    again = fl.solve(made[1], warm_start=first, tol=1e-7)
    assert again.status is fl.Status.CONVERGED


@pytest.mark.parametrize("kind", ["dense", "sparse", "wide"])
def test_kinds_of_data(kind):
    rng = np.random.default_rng(5)
    n, p = (30, 200) if kind == "wide" else (200, 12)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.3)
    y, offset = np.where(rng.random(n) < 0.5, 1.0, -1.0), rng.standard_normal(n)
    given = sp.csc_array(X) if kind == "sparse" else X
    for penalty in (fl.L1(), fl.L1() @ fl.Difference(p)):
        problem = fl.Problem(given, y, loss="logistic", penalty=penalty, alpha=0.02, offset=offset, fit_intercept=True)
        result = fl.solve(problem, tol=1e-7)
        optimum, _, _ = reference(X, y, fl.Logistic(), penalty, 0.02, None, True, offset)
        assert result.dual - 1e-7 <= optimum <= result.primal + 1e-7
        assert result.status is fl.Status.CONVERGED


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (np.zeros(3), "offset has 3 entries, but X has 40 rows"),
        (np.where(np.arange(40) == 7, -np.inf, 0.0), r"offset\[7\] is -inf.*exposure of 0"),
        (np.where(np.arange(40) == 7, np.nan, 0.0), r"offset\[7\] is nan"),
        (np.zeros((40, 2)), "offset has 2 columns"),
        (np.full(40, "a"), "offset has dtype"),
    ],
)
def test_bad_offsets(offset, message):
    X, y, _ = cases.data(fl.Poisson())
    with pytest.raises(ValueError, match=message):
        fl.Problem(X, y, loss="poisson", offset=offset)
