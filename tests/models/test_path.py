"""Paths: a certificate at every point, far cheaper than cold fits; cross-validation; Newton steps."""

from __future__ import annotations

import pickle

import cases
import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine import registry
from fenchel.engine.attempts import Correction
from fenchel.engine.models import _Fit as Fit
from fenchel.foundation.numerics import DENSE
from fenchel.models import alpha_grid, cross_validate_path, path
from fenchel.solver.polish import polish

LOSSES = ["logistic", "smoothed-hinge", "squared-hinge", "squared", "huber"]


def make(loss="logistic", penalty=None, *, n=120, sparse=False, weighted=False, fit_intercept=True, alpha=0.02, **data):
    loss = cases.losses()[loss]
    X, y, weight = cases.data(loss, n=n, sparse=sparse, weighted=weighted)
    penalty = fl.L1() if penalty is None else penalty
    return fl.Problem(X, y, loss=loss, penalty=penalty, alpha=alpha, sample_weight=weight, fit_intercept=fit_intercept,
                      **data)  # fmt: skip


def several(kind, joint, loss="squared", alpha=1.0):
    """Three outputs, or three tasks, with or without a penalty that couples them."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((90, 5))
    W = np.zeros((3, 5))
    W[:, :2] = rng.standard_normal((3, 2))
    Y = X @ W.T + 0.3 * rng.standard_normal((90, 3))
    Y = np.where(Y > 0, 1.0, -1.0) if loss == "logistic" else Y
    penalty = fl.GroupL2(np.arange(15).reshape(3, 5).T) if joint else fl.L1()
    same = {"loss": loss, "penalty": penalty, "alpha": alpha, "fit_intercept": True}
    if kind == "outputs":
        return fl.Problem(X, Y, **same)
    task = rng.integers(0, 3, 90)
    return fl.Problem(X, Y[np.arange(90), task], **same, task=task)


def check(problem, answer, *, tol=1e-6):
    """Every point is what it says it is, and agrees with a cold fit of the same problem."""
    assert answer.converged.all()
    assert np.all(answer.relative_gaps <= tol)
    for alpha, result in zip(answer.alphas, answer, strict=True):
        there = problem.with_alpha(alpha)
        assert result.primal == pytest.approx(there.primal(result.coef, result.intercept), rel=1e-12)
        cold = fl.solve(there, tol=1e-8, max_epochs=20_000)
        assert cold.certified
        # the two proven intervals are of one optimum
        assert result.dual <= cold.primal * (1 + 1e-12)
        assert cold.dual <= result.primal * (1 + 1e-12)


# -- every point ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_losses(loss, sparse):
    problem = make(loss, fl.GroupL2(cases.OVERLAP), sparse=sparse, weighted=True)
    answer = path(problem, n_alphas=8, eps=0.01)
    check(problem, answer)
    assert answer.nonzeros[0] == 0
    assert answer.nonzeros[-1] > 0


@pytest.mark.parametrize("name", cases.penalties())
def test_penalties(name):
    penalty, alpha = cases.penalties()[name]
    problem = make("squared", penalty, alpha=alpha)
    check(problem, path(problem, alphas=alpha * np.geomspace(4, 0.25, 4)))


@pytest.mark.parametrize("loss", ["hinge", "quantile", "poisson"])
def test_losses_without_curvature_bounds(loss):
    problem = make(loss, fl.L1() + 0.1 * fl.Ridge(), n=60)
    assert (Correction.unfit(problem) is None) == (loss == "poisson")
    answer = path(problem, n_alphas=6, eps=0.05, tol=1e-4, max_epochs=5000)
    check(problem, answer, tol=1e-4)


@pytest.mark.parametrize("kind", ["outputs", "tasks"])
@pytest.mark.parametrize("joint", [False, True], ids=["apart", "joint"])
def test_several_outputs(kind, joint):
    problem = several(kind, joint)
    answer = path(problem, n_alphas=8, eps=0.01)
    check(problem, answer)
    assert answer.coefs.shape == (8, 3, 5)
    assert answer.intercepts.shape == (8, 3)
    if joint:
        zero = answer.coefs == 0
        assert np.all(zero.all(axis=1) == zero.any(axis=1))  # a feature is in or out for all
        assert zero.all(axis=1).any()


def test_structure_is_exact():
    problem = make("logistic", fl.L1() + 2.0 * (fl.L1() @ fl.Incidence(cases.EDGES, cases.P)))
    answer = path(problem, n_alphas=10, eps=0.01)
    distinct = [np.unique(coef).size for coef in answer.coefs]
    assert distinct[0] == 1  # all zero
    assert any(1 < count < cases.P for count in distinct)
    ranks = [
        np.linalg.matrix_rank(c.reshape(3, 4)) for c in path(make("squared", fl.TraceNorm((3, 4))), n_alphas=9).coefs
    ]
    assert ranks[0] == 0
    assert 1 in ranks


def test_weights_are_repetitions():
    rng = np.random.default_rng(1)
    X, y, _ = cases.data(fl.Logistic(), n=50)
    weight = rng.integers(0, 4, 50)
    options = {"loss": "logistic", "penalty": fl.L1(), "fit_intercept": True, "n_alphas": 6, "eps": 0.05, "tol": 1e-11}
    weighted = path(X, y, sample_weight=weight, **options)
    repeated = path(np.repeat(X, weight, axis=0), np.repeat(y, weight), **options)
    np.testing.assert_allclose(weighted.alphas, repeated.alphas, rtol=1e-6)
    np.testing.assert_allclose(weighted.coefs, repeated.coefs, atol=1e-5)


def test_same_seed_same_bits():
    for loss in ("logistic", "hinge"):
        problem = make(loss, n=60)
        first, second = (path(problem, n_alphas=4, eps=0.1, tol=1e-4) for _ in range(2))
        np.testing.assert_array_equal(first.coefs, second.coefs)


# -- cost -------------------------------------------------------------------------------------------


def test_costs_far_less_than_cold_fits():
    problem = make("logistic", fl.L1() @ fl.Difference(cases.P) + 0.1 * fl.L1(), n=200)
    answer = path(problem, n_alphas=20)
    cold, plain = (
        sum(fl.solve(problem.with_alpha(alpha), check_every=1, newton=newton).epochs for alpha in answer.alphas)
        for newton in (True, False)
    )
    assert answer.epochs.sum() < 0.5 * cold
    assert answer.epochs.sum() < 0.3 * plain
    # and without Newton steps still less
    warm = path(problem, alphas=answer.alphas, solver_options={"check_every": 1})
    assert warm.converged.all()
    assert warm.epochs.sum() < 0.8 * cold


def test_a9a_within_six_single_fits():
    """In passes over the data: 50 alphas for six times what SDCA-ADMM takes at the smallest."""
    from fenchel.datasets import graph_edges, graph_penalty, load_a9a

    try:
        X, y = load_a9a()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    problem = fl.Problem(X, y, loss="smoothed-hinge", penalty=graph_penalty(graph_edges(X), X.shape[1]))
    answer = path(problem)
    assert len(answer) == 50
    assert answer.converged.all()
    single = fl.solve(problem.with_alpha(answer.alphas[-1]), newton=False)
    assert answer.epochs.sum() <= 6 * single.epochs
    assert answer.epochs.sum() <= 12 * fl.solve(problem.with_alpha(answer.alphas[-1])).epochs
    assert answer[-1].primal == pytest.approx(single.primal, rel=2e-6)


# -- the grid ---------------------------------------------------------------------------------------


def test_grid():
    problem = make()
    grid = alpha_grid(problem, 7, 1e-2)
    assert grid[0] == pytest.approx(problem.alpha_max())
    assert grid[-1] == pytest.approx(0.01 * grid[0])
    assert np.all(np.diff(grid) < 0)
    np.testing.assert_allclose(np.diff(np.log(grid)), np.log(grid[1] / grid[0]))
    assert alpha_grid(problem, 1) == pytest.approx([problem.alpha_max()])
    answer = path(problem, alphas=[0.01, 0.1, 0.03])
    np.testing.assert_array_equal(answer.alphas, [0.1, 0.03, 0.01])


def test_zero_and_repeated_alphas():
    problem = make("squared")
    answer = path(problem, alphas=[0.1, 0.1, 0.0])
    assert answer.converged.all()
    np.testing.assert_allclose(answer.coefs[0], answer.coefs[1], atol=1e-6)
    X, y, _ = cases.data(fl.Squared(), n=120)
    least, *_ = np.linalg.lstsq(np.column_stack([X, np.ones(120)]), y, rcond=None)
    np.testing.assert_allclose(answer.coefs[2], least[:-1], atol=1e-4)


def test_targets_that_say_nothing():
    X = np.random.default_rng(0).standard_normal((30, 4))
    answer = path(X, np.full(30, 2.5), loss="squared", penalty=fl.L1(), fit_intercept=True, n_alphas=3)
    assert not answer.coefs.any()
    np.testing.assert_allclose(answer.intercepts, 2.5)
    zero = path(X, np.zeros(30), loss="squared", penalty=fl.L1(), n_alphas=3)
    assert zero.converged.all()


def test_a_constraint_has_no_largest_alpha():
    problem = make("squared", fl.NonNegative())
    with pytest.raises(ValueError, match=r"NonNegative.* give alphas"):
        path(problem)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alphas": []}, "alphas has dtype"),
        ({"alphas": [0.1, -1]}, r"alphas\[1\] is -1"),
        ({"alphas": [0.1, np.nan]}, r"alphas\[1\] is nan"),
        ({"alphas": ["a"]}, "alphas has dtype"),
        ({"n_alphas": 0}, "n_alphas is 0"),
        ({"n_alphas": 2.5}, "n_alphas is 2.5"),
        ({"eps": 1.0}, "eps is 1.0"),
        ({"eps": 0}, "eps is 0"),
        ({"loss": "squared"}, "loss was given beside a Problem"),
        ({"y": np.ones(3)}, "y was given beside a Problem"),
        ({"tol": -1}, "tol is -1"),
        ({"solver_options": {"method": "nonsense"}}, "method is 'nonsense'"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        path(make(), **options)


# -- the object -------------------------------------------------------------------------------------


def test_the_path_answers(capsys):
    seen = []
    answer = path(make(), n_alphas=5, verbose=True, callback=lambda alpha, result: seen.append((alpha, result)))
    assert len(answer) == len(seen) == 5
    assert answer[2] is answer.results[2] is seen[2][1]
    assert [alpha for alpha, _ in seen] == answer.alphas.tolist()
    said = capsys.readouterr().err
    assert said.startswith("5 of 5 alphas") and said.count("\n") == 1  # a pipe gets a line a minute, and the last
    frame = answer.to_frame()
    assert frame.index.name == "alpha"
    assert frame["nonzeros"].tolist() == answer.nonzeros.tolist()
    assert "5 converged" in repr(answer)
    assert not any(result.state for result in answer)  # states are as large as the data
    again = pickle.loads(pickle.dumps(answer))
    np.testing.assert_array_equal(again.coefs, answer.coefs)


def test_a_callback_ends_the_path():
    answer = path(make(), n_alphas=9, callback=lambda alpha, result: np.count_nonzero(result.coef) >= 3)
    assert len(answer) < 9
    assert answer.nonzeros[-1] >= 3
    assert len(answer.alphas) == len(answer.coefs) == len(answer)


def test_an_interrupt_keeps_what_is_done():
    def interrupt(alpha, result):
        if result.coef.any():
            raise KeyboardInterrupt

    assert 1 <= len(path(make(), n_alphas=9, callback=interrupt)) < 9


def test_limits_are_told():
    answer = path(make("hinge"), n_alphas=3, eps=1e-3, tol=1e-10, max_epochs=2)
    assert not answer.converged[-1]
    assert answer[-1].status is fl.Status.EPOCH_LIMIT


def test_other_methods_can_be_asked_for():
    answer = path(make(), n_alphas=3, eps=0.1, tol=1e-2, solver_options={"method": "batch-admm"})
    assert answer.converged.all()


# -- Newton steps -----------------------------------------------------------------------------------


def test_a_path_survives_newton_steps_that_fail(monkeypatch):
    monkeypatch.setattr(registry, "ENGINES", [])
    monkeypatch.setattr(Fit, "rounds", lambda self, problem, start, goal: iter(()))
    for n in (120, 5000):
        problem = make(n=n)
        check(problem, path(problem, n_alphas=4, eps=0.05))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_without_an_engine_is_carried_by_models(monkeypatch, loss):
    """They keep their curvature from alpha to alpha, and epochs have little to do."""
    monkeypatch.setattr(registry, "ENGINES", [])
    problem = make(loss, fl.GroupL2(cases.OVERLAP), weighted=True)
    answer = path(problem, n_alphas=6, eps=0.05, tol=1e-8)
    check(problem, answer)
    carried = [result.history.records[-1].by == Correction.name for result in answer]
    assert sum(carried) >= 4


def test_a_correction_where_models_do_not_fit_takes_faces():
    X, y = np.random.default_rng(0).standard_normal((20, DENSE + 1)), np.arange(20.0)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.1)
    assert Correction.unfit(problem) is None and Correction(problem).fit is None
    assert Correction(make()).fit is not None
    assert isinstance(Correction.unfit(make("hinge")), str)


def test_given_alphas_begin_with_the_known_zero():
    problem = make("squared", fl.GroupL2(cases.OVERLAP))
    largest = problem.alpha_max()
    answer = path(problem, alphas=largest * np.array([1.0, 0.5]))
    assert answer.nonzeros[0] == 0 and answer.nonzeros[1] > 0
    check(problem, answer)


def test_polish_finds_the_last_digits():
    problem = make("logistic", fl.GroupL2(cases.OVERLAP))
    rough = fl.solve(problem, tol=1e-3, check_every=1)
    fine = polish(problem, rough)
    assert fine.gap < 1e-10 < rough.gap
    assert fine.status is fl.Status.CONVERGED
    assert fine.primal == pytest.approx(problem.primal(fine.coef, fine.intercept), rel=1e-14)  # sums of another order
    stopped = fl.solve(problem, tol=0, max_epochs=3)
    assert polish(problem, stopped) is stopped
    kinked = make("hinge")
    assert polish(kinked, result := fl.solve(kinked, tol=1e-3)) is result


def test_badly_scaled_and_dead_columns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6)) * np.array([1e4, 1, 1e-3, 1, 0, 1])
    y = np.where(X[:, 1] + X[:, 0] / 1e4 + rng.standard_normal(80) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), fit_intercept=True)
    answer = path(problem, n_alphas=6, eps=1e-4, max_epochs=20_000)
    assert answer.converged.all()
    assert not answer.coefs[:, 4].any()


# -- cross-validation -------------------------------------------------------------------------------


def sparse_truth(n=200, p=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    w = np.zeros(p)
    w[:3] = [1.5, -1.0, 0.8]
    return X, X @ w + 0.7 * rng.standard_normal(n), w


def test_cross_validation_picks_a_sensible_alpha():
    X, y, w = sparse_truth()
    options = {"loss": "squared", "penalty": fl.L1(), "fit_intercept": True}
    cv = cross_validate_path(X, y, n_alphas=25, **options)
    assert 0 < cv.select("min") < 24
    assert cv.select("1se") <= cv.select("min")
    assert cv.alpha_1se >= cv.best_alpha
    assert np.all(cv.relative_gaps <= 1e-6)
    assert cv.converged.all()
    assert cv.scores.shape == cv.epochs.shape == (25, 5)
    best = fl.solve(fl.Problem(X, y, alpha=cv.best_alpha, **options)).coef
    assert np.linalg.norm(best - w) < 0.3
    simple = fl.solve(fl.Problem(X, y, alpha=cv.alpha_1se, **options)).coef
    assert set(np.flatnonzero(simple)) == {0, 1, 2}
    assert "folds, best" in repr(cv)
    assert cv.to_frame()["mean"].idxmax() == pytest.approx(cv.best_alpha)


def test_folds_are_fits_of_the_training_rows():
    X, y, _ = sparse_truth(60, 6)
    weight = np.random.default_rng(5).integers(1, 4, 60).astype(float)
    train, test = np.arange(40), np.arange(40, 60)
    options = {"loss": "squared", "penalty": fl.L1(), "fit_intercept": True}
    alphas = [0.3, 0.1]
    cv = cross_validate_path(X, y, cv=[(train, test)], alphas=alphas, sample_weight=weight, tol=1e-12, **options)
    own = path(X[train], y[train], alphas=alphas, sample_weight=weight[train], tol=1e-12, **options)
    for k in range(2):
        error = 0.5 * (X[test] @ own.coefs[k] + own.intercepts[k] - y[test]) ** 2
        assert cv.scores[k, 0] == pytest.approx(-np.average(error, weights=weight[test]), rel=1e-7)
    assert cv.standard_error.tolist() == [0.0, 0.0]


def test_folds_of_sparse_data_outputs_and_tasks():
    X, y, _ = cases.data(fl.Logistic(), n=60)
    options = {"loss": "logistic", "penalty": fl.L1(), "n_alphas": 4, "cv": 3, "eps": 0.05, "tol": 1e-9}
    dense, csr = (cross_validate_path(data, y, **options) for data in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.scores, csr.scores, rtol=1e-4)
    for kind in ("outputs", "tasks"):
        cv = cross_validate_path(several(kind, True), n_alphas=5, cv=4)
        assert cv.converged.all()
        assert cv.select() > 0


def test_parallel_folds_give_the_same_bits():
    problem = make(n=80)
    one, two = (cross_validate_path(problem, n_alphas=4, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(one.scores, two.scores)


def test_a_score_of_ones_own():
    X, y, _ = sparse_truth(80, 5)

    def sparsity(coef, intercept, rows):
        assert rows.size == 16
        return -np.count_nonzero(coef)

    cv = cross_validate_path(X, y, loss="squared", penalty=fl.L1(), n_alphas=4, score=sparsity)
    assert cv.select("min") == 0
    with pytest.raises(ValueError, match="finite mean score"):
        cross_validate_path(
            X, y, loss="squared", penalty=fl.L1(), n_alphas=2, score=lambda coef, intercept, rows: np.nan
        ).select()


def test_folds_that_cannot_be():
    X, y, _ = cases.data(fl.Logistic(), n=40)
    options = {"loss": "logistic", "penalty": fl.L1(), "n_alphas": 2}
    positive = np.flatnonzero(y > 0)
    with pytest.raises(ValueError, match="fold 0 hold one class only"):
        cross_validate_path(X, y, cv=[(positive, np.arange(40))], **options)
    with pytest.raises(ValueError, match="fold 0 have no weight"):
        cross_validate_path(X, y, cv=[(positive, np.arange(40))], sample_weight=(y < 0).astype(float), **options)
    with pytest.raises(ValueError, match="no folds"):
        cross_validate_path(X, y, cv=[], **options)
    cv = cross_validate_path(X, y, **options)
    with pytest.raises(ValueError, match="selection is 'best'"):
        cv.select("best")


# -- columns far from zero --------------------------------------------------------------------------


@pytest.mark.parametrize("loss, penalty", [("squared", fl.Slope()), ("hinge", fl.L1()), ("logistic", fl.FusedLasso())])
def test_columns_far_from_zero_cost_nothing(loss, penalty):
    """Years and positions: an intercept takes up where the columns lie, and the path is that of centred ones."""
    rng = np.random.default_rng(0)
    near = rng.standard_normal((60, 20))
    near -= near.mean(axis=0)
    away = rng.uniform(-1000, 1000, 20)
    score = near[:, 0] - near[:, 1] + 0.3 * rng.standard_normal(60)
    y = score if loss == "squared" else np.sign(score)
    both = [
        path(X, y, loss=loss, penalty=penalty, fit_intercept=True, n_alphas=5, eps=0.1, tol=1e-5)
        for X in (near, near + away)
    ]
    assert both[1].converged.all()
    np.testing.assert_allclose(both[0].primals, both[1].primals, rtol=2e-5)
    for result in both[1]:  # coefficients and intercept are for the columns as they stand
        at = fl.Problem(near + away, y, loss=loss, fit_intercept=True)
        moved = result.intercept + away @ result.coef
        plain = fl.Problem(near, y, loss=loss, fit_intercept=True)
        assert plain.primal(result.coef, moved) == pytest.approx(at.primal(result.coef, result.intercept), 1e-8)
    scores = [
        fl.cross_validate_path(X, y, loss=loss, penalty=penalty, fit_intercept=True, alphas=both[0].alphas, cv=3)
        for X in (near, near + away)
    ]
    np.testing.assert_allclose(scores[0].mean, scores[1].mean, rtol=1e-3)


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_a_path_of_a_problem_without_alpha(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 8))
    problem = fl.Problem(X, np.sign(X[:, 0]), loss=loss, penalty=fl.FusedLasso(0.2), alpha=0.0)
    path = fl.path(problem, n_alphas=4)
    assert all(result.status is fl.Status.CONVERGED for result in path.results)
