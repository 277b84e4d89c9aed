"""Rounds of working sets: true bounds, exact zeros, the same answers from every layout and every way there."""

from __future__ import annotations

import cases
import numpy as np
import pytest
import reference
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine import rounds
from fenchel.engine.compiled import is_compiled
from fenchel.engine.registry import fitting
from fenchel.engine.roles import Goal
from fenchel.engine.units import units_of
from fenchel.losses import LOSSES
from fenchel.prices import PRICES

P = cases.P
SMOOTH = [name for name, kind in LOSSES.items() if not kind().kinked]
SCATTERED = [[0, 5, 9], [1, 11], [2, 3, 10, 7], [4, 6, 8]]
PENALTIES = {
    "l1": (fl.L1(), 0.05),
    "weighted, some free": (fl.L1(np.linspace(0.0, 2.0, P)), 0.05),
    "infinite weights": (fl.L1(np.where(np.arange(P) % 3 == 1, np.inf, 1.0)), 0.05),
    "elastic net": (fl.L1(np.linspace(0.5, 2.0, P)) + 0.3 * fl.Ridge(), 0.05),
    "non-negative l1": (fl.L1() + fl.NonNegative(), 0.03),
    "non-negative": (fl.NonNegative(), 0.05),
    "box and l1": (0.5 * fl.L1() + fl.Box(-0.1, 0.2), 0.03),
    "box": (fl.Box(-0.1, 0.2), 0.05),
    "groups": (fl.GroupL2(SCATTERED), 0.03),
    "groups that leave features out": (fl.GroupL2(cases.APART), 0.03),
    "sparse groups": (0.5 * fl.L1() + 0.5 * fl.GroupL2(SCATTERED), 0.03),
    "groups, ridge": (fl.GroupL2(SCATTERED) + 0.2 * fl.Ridge(), 0.03),
    "groups, non-negative": (fl.GroupL2(SCATTERED) + fl.NonNegative(), 0.03),
    "ridge": (fl.Ridge(), 0.05),
}
LAYOUTS = {
    "Fortran": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array,
    "single": lambda X: X.astype(np.float32), "Fortran, single": lambda X: np.asfortranarray(X.astype(np.float32)),
    "CSC, single": lambda X: sp.csc_array(X.astype(np.float32)),
}  # fmt: skip


def make(loss="logistic", penalty=None, alpha=0.05, *, n=60, weighted=False, layout=None, **options):
    X, y, weight = cases.data(cases.losses()[loss], n=n, weighted=weighted)
    X = X if layout is None else LAYOUTS[layout](X)
    options = {"sample_weight": weight, "fit_intercept": True} | options
    return fl.Problem(X, y, loss=loss, penalty=fl.L1() if penalty is None else penalty, alpha=alpha, **options)


def wide(loss="squared", n=40, p=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    return X, cases.targets(cases.losses()[loss], X[:, :6] @ np.array([2.0, -1.5, 1.0, 1.0, -0.8, 0.5]), rng)


def agree(one, other):
    """Both say the truth about one optimum."""
    rounding = 1e-12 * max(abs(one.primal), abs(other.primal))
    assert one.dual <= other.primal + rounding and other.dual <= one.primal + rounding


def proposals(problem, tol=1e-9, most=30):
    """What an engine proposes, one after another, until it is good enough."""
    engine = fitting(problem)
    assert engine is not None and engine.unfit(problem) is None
    engine.begin(problem, [problem.alpha], tol)
    goal = Goal(tol, np.inf, np.inf, lambda primal: tol * abs(primal))
    found = []
    for proposal in engine.rounds(problem, None, goal):
        found.append(proposal)
        if goal.reached(proposal.certificate) or len(found) == most:
            break
    return found, engine


# -- answers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("loss", SMOOTH)
def test_the_optimum_is_within_the_bounds(loss, name):
    penalty, alpha = PENALTIES[name]
    problem = make(loss, penalty, alpha, weighted=name in ("l1", "groups", "box and l1"))
    assert fitting(problem) is not None
    found, plain = fl.solve(problem, tol=1e-9), fl.solve(problem, tol=1e-9, newton=False)
    assert found.status is plain.status is fl.Status.CONVERGED
    agree(found, plain)
    assert problem.primal(found.coef, found.intercept) == pytest.approx(found.primal, rel=1e-12)
    assert found.epochs < 100
    again = fl.solve(problem, tol=1e-9)
    assert again.coef.tobytes() == found.coef.tobytes() and again.epochs == found.epochs
    if name == "infinite weights":
        assert not found.coef[1::3].any() and not plain.coef[1::3].any()
    if "box" in name or "negative" in name:
        bounds = problem.blocks[-1].function if "groups" in name else problem.blocks[0].function
        assert np.all(found.coef >= np.min(bounds.lower)) and np.all(found.coef <= np.max(bounds.upper))


@pytest.mark.parametrize("name", ["infinite weights", "non-negative l1", "groups, non-negative", "sparse groups"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_the_optimum_is_that_of_another_solver(loss, name):
    penalty, alpha = PENALTIES[name]
    problem = make(loss, penalty, alpha, weighted=True)
    X, y, weight = cases.data(cases.losses()[loss], n=60, weighted=True)
    optimum, _, _ = reference.reference(X, y, cases.losses()[loss], penalty, alpha, weight, True)
    found = fl.solve(problem, tol=1e-8)
    assert found.dual - 1e-7 <= optimum <= found.primal + 1e-7


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("kind", ["l1", "groups", "sparse groups"])
def test_more_features_than_rows(loss, kind):
    """Zeros are exact, and what is zero may be so: its slope is within the penalty."""
    X, y = wide(loss)
    groups = np.random.default_rng(1).permutation(300).reshape(-1, 5).tolist()
    penalty = {"l1": fl.L1(), "groups": fl.GroupL2(groups), "sparse groups": 0.5 * fl.L1() + 0.5 * fl.GroupL2(groups)}
    problem = fl.Problem(X, y, loss=loss, penalty=penalty[kind], fit_intercept=True)
    problem = problem.with_alpha(0.2 * problem.alpha_max())
    found = fl.solve(problem, tol=1e-8)
    assert found.status is fl.Status.CONVERGED
    assert 0 < np.count_nonzero(found.coef) < 200
    slope = -problem.gradient_sum(problem.slopes_at(problem.scores(problem.pack(found.coef, found.intercept)))) / 40
    units = units_of(problem)
    scores, zero = units.scores(slope[:-1]), units.sizes(found.coef) == 0
    assert np.all(scores[zero] <= 1 + 1e-2)


def test_several_outputs():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 30))
    Y = X[:, :3] @ rng.standard_normal((3, 4)) + 0.1 * rng.standard_normal((50, 4))
    across = fl.GroupL2([[j + 30 * k for k in range(4)] for j in range(30)])
    for penalty in (fl.L1(), across, across + 0.1 * fl.Ridge()):
        for made in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X)):
            problem = fl.Problem(made, Y, loss="squared", penalty=penalty, alpha=0.1, fit_intercept=True)
            assert fitting(problem) is not None
            found = fl.solve(problem, tol=1e-9)
            assert found.status is fl.Status.CONVERGED and found.coef.shape == (4, 30)
        plain = fl.solve(problem, tol=1e-9, newton=False)
        agree(found, plain)
        if penalty is across:
            alike = (found.coef != 0).sum(axis=0)
            assert set(alike) <= {0, 4} and 0 in alike


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("kind", ["l1", "groups"])
def test_odd_columns(kind, scale):
    """Constants, copies, empty columns, columns far from zero, and columns of other sizes inside a group."""
    X, y, _ = cases.data(fl.Squared(), n=50)
    X[:, 1], X[:, 2], X[:, 3] = 1.0, 0.0, X[:, 0]
    X[:, 5] += 1e3
    X[:, 4] *= scale
    penalty = fl.L1() if kind == "l1" else fl.GroupL2(SCATTERED)
    for made in (X, np.asfortranarray(X), sp.csr_array(X), sp.csc_array(X), X.astype(np.float32)):
        problem = fl.Problem(made, y, loss="huber", penalty=penalty, fit_intercept=True)
        problem = problem.with_alpha(0.01 * problem.alpha_max())
        found = fl.solve(problem, tol=1e-7)
        assert found.status is fl.Status.CONVERGED
        assert found.epochs < 300


@pytest.mark.parametrize(("n", "p"), [(1, 5), (1, 1), (20, 1), (2, 3)])
def test_tiny_problems(n, p):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    for penalty in (fl.L1(), fl.GroupL2([list(range(p))]), fl.L1() + fl.Ridge()):
        for fit_intercept in (False, True):
            problem = fl.Problem(X, y, loss="squared", penalty=penalty, alpha=0.05, fit_intercept=fit_intercept)
            assert fl.solve(problem, tol=1e-8).status is fl.Status.CONVERGED


def test_rows_without_curvature_that_appear_on_the_way():
    """The squared hinge has none where margins are large, which is nowhere at zero: steps stay bounded all the same."""
    X, y = wide("squared-hinge", n=30, p=200)
    problem = fl.Problem(X, y, loss="squared-hinge", penalty=fl.L1() + 0.1 * fl.Ridge(), fit_intercept=True)
    problem = problem.with_alpha(0.01 * problem.alpha_max())
    found = fl.solve(problem, tol=1e-8)
    assert found.status is fl.Status.CONVERGED and found.epochs < 200


# -- what is surely zero ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["l1", "weighted, some free", "elastic net", "groups", "sparse groups", "groups, ridge"]
)
@pytest.mark.parametrize("loss", ["squared", "logistic", "smoothed-hinge"])
def test_elimination_never_removes_a_unit_of_the_answer(loss, name, monkeypatch):
    penalty, alpha = PENALTIES[name]
    problem = make(loss, penalty, 3 * alpha, weighted=True)
    answer = fl.solve(problem, tol=1e-11, newton=False)
    units, seen = units_of(problem), []
    before = rounds._Fit._eliminate

    def eliminate(fit, *args):
        before(fit, *args)
        seen.append(fit.out.copy())

    monkeypatch.setattr(rounds._Fit, "_eliminate", eliminate)
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)
    proposals(problem, tol=1e-12)
    alive = units.sizes(np.ravel(answer.coef)) > 1e-6
    assert not any(np.any(out & alive) for out in seen)
    if loss == "logistic" and name in ("l1", "groups"):
        assert seen and seen[-1].any()  # it does something


# -- paths --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["l1", "groups", "elastic net"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_every_point_of_a_path_is_certified_and_that_of_a_single_fit(loss, kind):
    X, y = wide(loss, n=60, p=200)
    penalty = {"l1": fl.L1(), "groups": fl.GroupL2(np.arange(200).reshape(-1, 4)), "elastic net": fl.ElasticNet(0.7)}
    problem = fl.Problem(X, y, loss=loss, penalty=penalty[kind], fit_intercept=True)
    path = fl.path(problem, n_alphas=20, eps=0.02, tol=1e-7)
    assert path.converged.all() and np.all(path.relative_gaps <= 1e-7)
    for k in (0, 5, 13, 19):
        one = problem.with_alpha(path.alphas[k])
        single = fl.solve(one, tol=1e-8)
        agree(path[k], single)
        assert one.primal(path.coefs[k], path.intercepts[k]) == pytest.approx(path.primals[k], rel=1e-12)
    assert path.nonzeros[0] == 0 < path.nonzeros[-1] < 200


@pytest.mark.parametrize("layout", ["Fortran", "CSR", "CSC"])
@pytest.mark.parametrize("name", ["box and l1", "non-negative l1", "groups, non-negative", "infinite weights"])
def test_predictions_along_a_path_stay_within_bounds(name, layout, monkeypatch):
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)
    penalty, _ = PENALTIES[name]
    problem = make("squared-hinge", penalty, layout=layout)
    path = fl.path(problem, n_alphas=15, eps=0.01, tol=1e-7)
    assert path.converged.all()
    for k, alpha in enumerate(path.alphas):
        one = problem.with_alpha(alpha)
        assert one.primal(path.coefs[k], path.intercepts[k]) == pytest.approx(path.primals[k], rel=1e-12)
        assert path.duals[k] <= path.primals[k] * (1 + 1e-12)


def test_paths_of_columns_far_from_zero(monkeypatch):
    """A prediction whose intercept does not fit would lead far away; it is not taken."""
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)
    X, y = wide("logistic", n=40, p=100)
    X += 1e3 * np.random.default_rng(5).standard_normal(100)
    path = fl.path(X, y, loss="logistic", penalty=fl.L1(), fit_intercept=True, n_alphas=15, eps=0.02, tol=1e-5)
    assert path.converged.all() and path.epochs.sum() < 500


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_compiled_paths_and_working_sets_agree(loss, monkeypatch):
    X, y = wide(loss, n=50, p=120)
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1(), fit_intercept=True)
    alphas = problem.alpha_max() * np.geomspace(0.9, 0.05, 10)
    assert is_compiled(problem, alphas, PRICES)
    compiled = fl.path(problem, alphas=alphas, tol=1e-8)
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)
    plain = fl.path(problem, alphas=alphas, tol=1e-8)
    assert compiled.converged.all() and plain.converged.all()
    assert np.all(compiled.duals <= plain.primals + 1e-12 * np.abs(plain.primals))
    assert np.all(plain.duals <= compiled.primals + 1e-12 * np.abs(plain.primals))
    np.testing.assert_allclose(compiled.coefs, plain.coefs, atol=1e-2)


@pytest.mark.parametrize("kind", ["l1", "groups"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_folds_by_weights_are_folds_by_rows(loss, kind):
    X, y = wide(loss, n=60, p=40)
    penalty = fl.L1() if kind == "l1" else fl.GroupL2(np.arange(40).reshape(-1, 4))
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=True)
    alphas = problem.alpha_max() * np.geomspace(0.8, 0.05, 5)
    held = np.arange(60) % 3 == 1
    folds = [(np.flatnonzero(~held), np.flatnonzero(held))]
    found = fl.cross_validate_path(problem, cv=folds, alphas=alphas, tol=1e-9)
    assert found.converged.all()
    training = fl.Problem(X[~held], y[~held], loss=loss, penalty=penalty, fit_intercept=True)
    path = fl.path(training, alphas=alphas, tol=1e-9)
    judged = [
        -np.mean(problem.loss.value(X[held] @ w + b, y[held])) for w, b in zip(path.coefs, path.intercepts, strict=True)
    ]
    np.testing.assert_allclose(found.scores[:, 0], judged, rtol=1e-3)


# -- data by columns ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["l1", "groups", "weighted, some free"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_same_answer_from_every_layout(loss, name, layout):
    penalty, alpha = PENALTIES[name]
    problem, plain = make(loss, penalty, alpha, layout=layout), make(loss, penalty, alpha)
    found, expected = fl.solve(problem, tol=1e-9), fl.solve(plain, tol=1e-9)
    assert found.status is fl.Status.CONVERGED
    close = 1e-5 if "single" in layout else 1e-8
    assert found.primal == pytest.approx(expected.primal, rel=close)
    if problem.data.by_column and name != "weighted, some free":
        assert "_rows" not in vars(problem.data)  # nobody had to make them
        path = fl.path(problem, n_alphas=5, tol=1e-6)
        assert path.converged.all() and "_rows" not in vars(problem.data)
    assert np.array_equal(found.coef == 0, expected.coef == 0)


def test_columns_are_not_copied():
    X = np.asfortranarray(np.random.default_rng(4).standard_normal((50, 20)))
    problem = fl.Problem(X, X[:, 0], loss="squared", penalty=fl.L1(), alpha=0.1)
    assert np.shares_memory(problem.data.dense, X) and problem.data.by_column
    fl.solve(problem)
    assert "_rows" not in vars(problem.data)
    X_sparse = sp.csc_array(X)
    assert np.shares_memory(fl.Problem(X_sparse, X[:, 0], loss="squared").data._stored[0], X_sparse.data)
    np.testing.assert_array_equal(problem.data.arrays[0], X)  # rows, for those who ask


# -- ways there ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_run_that_was_stopped_is_resumed(loss, monkeypatch):
    """It converges, its bounds hold the optimum, history and seconds continue, and no pass is lost."""
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)  # compiled loops have nothing between start and end
    X, y = wide(loss, n=80, p=400)
    problem = fl.Problem(X, y, loss=loss, penalty=fl.GroupL2(np.arange(400).reshape(-1, 4)), fit_intercept=True)
    problem = problem.with_alpha(0.05 * problem.alpha_max())
    problem.zero_answer = None
    fresh, calls = fl.solve(problem, tol=1e-8), []

    def stop(snapshot):
        calls.append(snapshot.relative_gap)
        return len(calls) == 2  # zero is the first

    part = fl.solve(problem, tol=1e-8, callback=stop)
    assert part.status is fl.Status.CALLBACK and part.relative_gap > 1e-8
    resumed = fl.solve(problem, tol=1e-8, warm_start=part)
    assert resumed.status is fl.Status.CONVERGED
    agree(resumed, fresh)
    assert list(resumed.history)[: len(part.history)] == list(part.history)
    assert len(resumed.history) > len(part.history) and resumed.seconds > part.seconds
    assert resumed.epochs >= part.epochs
    assert resumed.epochs - part.epochs <= fresh.epochs


def test_a_run_that_was_stopped_at_zero_is_resumed():
    problem = make()
    part = fl.solve(problem, callback=lambda _: True)
    assert part.status is fl.Status.CALLBACK and not part.coef.any()
    assert fl.solve(problem, warm_start=part).status is fl.Status.CONVERGED


@pytest.mark.parametrize("name", PENALTIES)
def test_a_neighbour_is_a_start(name):
    penalty, alpha = PENALTIES[name]
    problem = make("logistic", penalty, alpha)
    start = fl.solve(problem, tol=1e-6)
    near = problem.with_alpha(0.8 * alpha)
    found, expected = fl.solve(near, tol=1e-9, warm_start=start), fl.solve(near, tol=1e-9)
    assert found.status is fl.Status.CONVERGED
    agree(found, expected)


def test_limits():
    X, y = wide("logistic", n=80, p=400)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), alpha=1e-3, fit_intercept=True)
    late = fl.solve(problem, tol=1e-9, time_limit=0)
    assert late.status is fl.Status.TIME_LIMIT and late.dual <= late.primal
    exact = fl.Problem(X, X[:, 0], loss="squared", penalty=fl.L1(), alpha=1e-3)
    assert fl.solve(exact, time_limit=0).status is fl.Status.TIME_LIMIT  # not even one round
    few = fl.solve(problem, tol=1e-9, max_epochs=8)
    assert few.status in (fl.Status.EPOCH_LIMIT, fl.Status.CONVERGED)
    assert fl.solve(problem, tol=1e-9, max_epochs=3).status is fl.Status.EPOCH_LIMIT
    optimum = fl.solve(problem, tol=1e-9)
    for part in (late, few):
        agree(part, optimum)


class Own(fl.Loss):
    """A loss of one's own, in plain Python: log cosh, by its value, gradient, conjugate, domain and dual step."""

    smoothness = 1.0

    def value(self, score, target):
        size = np.abs(np.asarray(score) - target)
        return size + np.log1p(np.exp(-2 * size)) - np.log(2.0)

    def gradient(self, score, target):
        return np.tanh(np.asarray(score) - target)

    def conjugate(self, dual, target):
        x = np.asarray(dual, dtype=float)
        inside = np.abs(x) <= 1 + 1e-12
        a, b = np.clip(1 + x, 1e-300, 2.0), np.clip(1 - x, 1e-300, 2.0)
        return np.where(inside, x * target + 0.5 * (a * np.log(a) + b * np.log(b)), np.inf)

    def domain(self, target):
        return np.full(np.shape(target), -1.0), np.full(np.shape(target), 1.0)

    def dual_step(self, point, curvature, target):
        # x with artanh(x) + target = curvature (point - x), by bisection
        low, high = np.full(np.shape(point), -1.0), np.full(np.shape(point), 1.0)
        for _ in range(60):
            x = 0.5 * (low + high)
            with np.errstate(divide="ignore"):
                above = np.arctanh(x) + target - curvature * (point - x) > 0
            low, high = np.where(above, low, x), np.where(above, x, high)
        return 0.5 * (low + high)


@pytest.mark.parametrize("penalty", [fl.L1(), fl.GroupL2(SCATTERED)], ids=repr)
def test_a_loss_of_ones_own(penalty):
    X, y, weight = cases.data(fl.Squared(), n=60, weighted=True)
    problem = fl.Problem(X, y, loss=Own(), penalty=penalty, alpha=0.05, sample_weight=weight, fit_intercept=True)
    assert fitting(problem) is not None
    found, plain = fl.solve(problem, tol=1e-8), fl.solve(problem, tol=1e-6, newton=False)
    assert found.status is plain.status is fl.Status.CONVERGED
    agree(found, plain)
    assert found.epochs < 60


# -- infinite weights ---------------------------------------------------------------------------------


def test_infinite_weights_keep_features_out():
    weights = np.ones(P)
    weights[[2, 7]] = np.inf
    leaf = fl.L1(weights)
    u = np.ones(P)
    assert leaf.value(u) == np.inf
    u[[2, 7]] = 0.0
    assert leaf.value(u) == P - 2
    np.testing.assert_array_equal(leaf.prox(np.full(P, 3.0), 1.0), np.where(np.isinf(weights), 0.0, 2.0))
    assert leaf.conjugate(np.where(np.isinf(weights), 1e6, 0.5)) == 0.0
    assert leaf.gauge(np.where(np.isinf(weights), 1e6, 0.5)) == 0.5
    fl.testing.check_penalty(leaf, P)
    X, y, _ = cases.data(fl.Squared(), n=60)
    kept = np.isfinite(weights)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.Lasso(weights), fit_intercept=True)
    without = fl.Problem(X[:, kept], y, loss="squared", penalty=fl.L1(), fit_intercept=True)
    assert problem.alpha_max() == pytest.approx(without.alpha_max(), rel=1e-9)
    path, expected = fl.path(problem, n_alphas=8, tol=1e-9), fl.path(without, n_alphas=8, tol=1e-9)
    assert path.converged.all() and not path.coefs[:, ~kept].any()
    np.testing.assert_allclose(path.primals, expected.primals, rtol=1e-8)
    model = fl.StructuredRegressor(penalty=fl.Lasso(weights), alpha=0.05).fit(X, y)
    assert not model.coef_[~kept].any() and model.coef_[kept].any()


@pytest.mark.parametrize("bad", [-1.0, np.nan, -np.inf])
def test_other_weights_are_refused(bad):
    with pytest.raises(ValueError, match=r"weights\[1\] is .*; it must be at least 0, or infinite"):
        fl.L1([1.0, bad, np.inf])
    with pytest.raises(ValueError, match=r"weights\[1\] is .*; it must be at least 0, or infinite"):
        fl.Problem(np.eye(3), np.ones(3), loss="squared", penalty=fl.Lasso([1.0, bad, np.inf]))


def test_epochs_that_get_nowhere_are_followed_by_working_sets():
    """Where epochs seem cheaper than Gram matrices they go first. The engine names its price, without a bound, and its
    turn comes when they have cost as much, or will."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((800, 700))
    for j in range(1, 700):
        X[:, j] = 0.9 * X[:, j - 1] + np.sqrt(0.19) * X[:, j]
    y = np.where(X[:, :40] @ rng.standard_normal(40) + rng.standard_normal(800) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), alpha=1.0)
    problem = problem.with_alpha(3e-4 * problem.alpha_max())
    engine, goal = rounds.WorkingSets(PRICES), Goal(1e-6, np.inf, 1e9, lambda primal: 1e-6 * primal)
    engine.begin(problem, [problem.alpha], 1e-6)
    found = engine.rounds(problem, None, goal)
    first = next(found)
    assert first.nanoseconds > 0 and first.certificate.dual == -np.inf and not first.w.any()
    assert any(goal.reached(proposal.certificate) for proposal in found)
    result = fl.solve(problem)
    who = [record.by for record in result.history]
    assert str(result.status) == "converged" and who[-1] == "working sets" and "sdca-admm" in who


def test_sparse_groups_leave_their_columns_for_a_gram_matrix(monkeypatch):
    """Groups of more coefficients than rows do without conjugate gradients: passes go on for as long as a Gram matrix
    would take, then that is made."""
    from fenchel.engine.inner import columns

    rng = np.random.default_rng(4)
    X = sp.random(60, 1200, 0.05, "csr", random_state=rng, data_rvs=lambda k: np.abs(rng.standard_normal(k)) + 0.1)
    y = X[:, :30] @ rng.standard_normal(30) + rng.standard_normal(60)
    used = []
    descend = columns.SupportProducts.descend
    monkeypatch.setattr(columns.SupportProducts, "descend", lambda self, *a: used.append(1) or descend(self, *a))
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)
    for penalty, expected in ((fl.GroupLasso(np.repeat(np.arange(300), 4)), False), (fl.L1(), True)):
        used.clear()
        problem = fl.Problem(X, y, loss="squared", penalty=penalty, alpha=1.0)
        result = fl.solve(problem.with_alpha(1e-2 * problem.alpha_max()))
        assert str(result.status) == "converged" and bool(used) == expected
        assert [record.by for record in result.history][-1] == "working sets"
