"""Fits and paths in compiled loops: bounds that hold, by rows and by covariances; zeros, bits, resumed runs, folds."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import fenchel as fl
from fenchel.engine import compiled, rounds
from fenchel.engine.compiled import CompiledPath, is_compiled, on_covariances
from fenchel.engine.covariances import covariances
from fenchel.engine.roles import Goal, Iterate, Proposal
from fenchel.engine.units import units_of
from fenchel.kernels.small_losses import KINDS
from fenchel.kernels.tiny_fit import fit
from fenchel.prices import PRICES
from fenchel.solver.convergence import Convergence
from fenchel.solver.result import Status

LOSSES = {
    "squared": fl.Squared(), "logistic": fl.Logistic(), "smoothed-hinge": fl.SmoothedHinge(0.5),
    "squared-hinge": fl.SquaredHinge(), "huber": fl.Huber(0.4), "poisson": fl.Poisson(),
}  # fmt: skip
LAYOUTS = ("C", "F", "float32", "csr", "csc")


def penalties(p):
    weights = np.random.default_rng(p).uniform(0.3, 1.5, p)
    some = weights.copy()
    some[1::3] = np.inf
    return {
        "l1": fl.L1(),
        "weighted": fl.L1(weights),
        "nearly ridge": 0.01 * fl.L1() + 0.99 * fl.Ridge(),
        "elastic net": 0.5 * fl.L1() + 0.5 * fl.Ridge(),
        "nearly l1": 0.95 * fl.L1() + 0.05 * fl.Ridge(),
        "non-negative": fl.L1() + fl.NonNegative(),
        "box": fl.L1() + fl.Box(-0.05, 0.1),
        "infinite weights": fl.L1(some),
    }


PENALTIES = tuple(penalties(4))


def targets(loss, score, rng, noise=0.5):
    if loss.classification:
        y = np.where(score + noise * rng.standard_normal(score.size) > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        return y
    if isinstance(loss, fl.Poisson):
        return rng.poisson(np.exp(np.clip(score, -3, 2))).astype(float)
    return score + noise * rng.standard_normal(score.size)


def laid_out(X, layout):
    if layout in ("csr", "csc"):
        return sp.csr_array(X) if layout == "csr" else sp.csc_array(X)
    return (
        np.asfortranarray(X) if layout == "F" else np.ascontiguousarray(X, np.float32 if layout == "float32" else None)
    )


def make(loss, penalty, n=40, p=12, *, layout="C", intercept=True, weighted=False, seed=0, holes=0.3):
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    X[rng.random((n, p)) < holes] = 0.0
    of = LOSSES[loss]
    y = targets(of, X[:, :4] @ np.array([1.0, -0.8, 0.6, 0.5]) + 0.3, rng)
    weight = None
    if weighted:
        weight = rng.uniform(0.2, 2.0, n)
        weight[2 + rng.permutation(n - 2)[: n // 4]] = 0.0
    return fl.Problem(
        laid_out(X, layout), y, loss=of, penalty=penalties(p)[penalty], sample_weight=weight, fit_intercept=intercept,
        alpha=1.0,
    )  # fmt: skip


def of(problem, alphas, tol, way):
    """The answers of one of the ways, whichever would be chosen."""
    units = units_of(problem.with_alpha(1.0))
    path = CompiledPath.__new__(CompiledPath)
    path._plan(alphas)
    if way == "tiny":
        for alpha in alphas:
            path._all_at_once(problem.with_alpha(alpha), units, tol)
    elif way == "rows":
        path._on_rows(problem, units, tol, bool(np.any(problem.weight == 0)))
    elif way == "weights":
        path._on_rows(problem, units, tol, False)
    else:
        known = covariances(problem)
        assert known is not None
        path._on_covariances(problem, known, units, tol)
    path.has(float(alphas[-1]))
    return path.answers


def independent(problem, tol=1e-11):
    """An upper bound of the optimum, by epochs alone."""
    return fl.solve(problem, tol=tol, newton=False, max_epochs=1500)


def check(problem, answers, alphas, tol, *, known=None, rel=1e-12):
    """All bounds are true, and as near to each other as was asked for; `known` are other answers by alpha."""
    assert set(answers) == {float(alpha) for alpha in alphas}
    for alpha, found in answers.items():
        one = problem.with_alpha(alpha)
        primal, dual = found.proven.primal, found.proven.dual
        size = abs(primal)
        assert abs(one.primal_at(found.w) - primal) <= rel * size
        assert dual <= primal + rel * size
        assert primal - dual <= tol * size + 1e-12 * size
        units = units_of(one)
        np.testing.assert_array_equal(found.w[:-1], np.clip(found.w[:-1], units.lower, units.upper))
        if known is not None and alpha in known:
            assert dual <= known[alpha].primal + rel * size
            assert primal >= known[alpha].dual - rel * size


# -- the bounds are true ----------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_are_true(loss, penalty):
    for number, layout in enumerate(LAYOUTS):
        intercept, weighted = (number + len(penalty)) % 2 == 0, (number + len(loss)) % 3 == 0
        problem = make(loss, penalty, layout=layout, intercept=intercept, weighted=weighted, seed=number)
        alphas = problem.alpha_max() * np.array([1.1, 0.3, 0.03])
        known = {alphas[1]: independent(problem.with_alpha(alphas[1]))} if number < 2 else {}
        check(problem, of(problem, alphas, 1e-8, "rows"), alphas, 1e-8, known=known)
        check(problem, of(problem, alphas, 1e-8, "tiny"), alphas, 1e-8, known=known)
        if loss == "squared":
            check(problem, of(problem, alphas, 1e-8, "covariances"), alphas, 1e-8, known=known)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_are_true_with_more_features_than_rows(loss, penalty):
    problem = make(loss, penalty, 25, 60, weighted=len(penalty) % 2 == 0, intercept=len(loss) % 2 == 0)
    alphas = problem.alpha_max() * np.array([0.5, 0.1])
    known = {alphas[1]: independent(problem.with_alpha(alphas[1]), 1e-9)}
    ways = ("rows", "tiny", "covariances") if loss == "squared" else ("rows", "tiny")
    for way in ways:
        check(problem, of(problem, alphas, 1e-7, way), alphas, 1e-7, known=known)


@pytest.mark.parametrize("penalty", ["weighted", "elastic net", "box", "infinite weights"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_a_conic_solver(loss, penalty):
    from reference import reference

    problem = make(loss, penalty, 30, 8, weighted=True, seed=3)
    alpha = 0.1 * problem.alpha_max()
    weight = problem.weight
    value, _, _ = reference(
        problem.data.filled(), problem.target, problem.loss, problem.penalty, alpha, weight, fit_intercept=True
    )
    for way in ("rows", "tiny"):
        proven = of(problem, [alpha], 1e-9, way)[alpha].proven
        assert proven.dual <= value + 1e-7 * abs(value)
        assert proven.primal >= value - 1e-7 * abs(value)
        assert proven.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_x_of_an_answer_lies_in_its_domain(loss):
    problem = make(loss, "elastic net", weighted=True)
    alphas = problem.alpha_max() * np.array([0.3, 0.05])
    for way in ("rows", "tiny"):
        for alpha, found in of(problem, alphas, 1e-8, way).items():
            one = problem.with_alpha(alpha)
            (low, high), at = one._domain(), found.iterate(one)
            assert np.all(at.x >= low - 1e-12) and np.all(at.x <= high + 1e-12)
            assert abs(at.x.sum()) <= 1e-9 * np.abs(at.x).sum()
            bound = one.dual_bound(at.x, at.y)
            assert bound >= found.proven.primal - 1e-5 * abs(found.proven.primal)


def test_a_tiny_fit_leaves_what_it_cannot_do():
    problem = make("poisson", "l1")
    units = units_of(problem)
    columns = np.ascontiguousarray(problem.data.filled().T)
    columns[0] *= 1e200
    problem = problem.with_alpha(1e-9)
    answer = fit(
        columns, problem.target, np.ones(problem.n), KINDS["poisson"], 0.0, 1e-9, units.l1, units.ridge, units.lower,
        units.upper, True, 1e-6,
    )  # fmt: skip
    if answer is not None:  # whatever comes back is proven
        _, primal, dual, _, _ = answer
        assert np.isfinite(primal) and primal - dual <= 1e-6 * abs(primal)


@pytest.mark.parametrize("tol", [1e-3, 1e-10, 1e-14, 0.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_coefficients_intercept_and_bounds_belong_together(loss, tol):
    """Also where the goal is beyond what rounding allows."""
    for seed in range(4):
        problem = make(loss, "elastic net", seed=seed)
        problem = problem.with_alpha(0.05 * problem.alpha_max())
        for way in ("tiny", "rows"):
            for found in of(problem, [problem.alpha], tol, way).values():
                assert found.proven.primal == pytest.approx(problem.primal_at(found.w), rel=1e-13)
                assert found.proven.gap <= max(tol, 1e-13) * abs(found.proven.primal) + found.proven.rounding


# -- by covariances ---------------------------------------------------------------------------------


def exact_objective(problem, w):
    """The objective of the squared loss in extended precision."""
    X, w = problem.data.filled().astype(np.longdouble), w.astype(np.longdouble)
    weight = problem.weight.astype(np.longdouble) if problem.weight.size else np.ones(problem.n, np.longdouble)
    units = units_of(problem)
    v = w[:-1]
    loss = weight @ np.square(X @ v + w[-1] - problem.target) / (2 * problem.n)
    return loss + units.l1 @ np.abs(v) + (units.ridge * v) @ v / 2


def squared(X, y, penalty=None, **kwargs):
    return fl.Problem(X, y, loss="squared", penalty=penalty or fl.L1(), alpha=1.0, **kwargs)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("penalty", ["l1", "elastic net", "box"])
def test_covariances_give_the_answers_of_rows(penalty, layout):
    for (n, p), intercept, weighted in itertools.product(((60, 10), (20, 30)), (False, True), (False, True)):
        problem = make("squared", penalty, n, p, layout=layout, intercept=intercept, weighted=weighted)
        alphas = problem.alpha_max() * np.geomspace(1.0, 0.05, 5)
        rows, other = of(problem, alphas, 1e-11, "rows"), of(problem, alphas, 1e-11, "covariances")
        for alpha in alphas:
            assert other[alpha].proven.primal == pytest.approx(rows[alpha].proven.primal, rel=1e-10)
            np.testing.assert_allclose(other[alpha].w, rows[alpha].w, atol=2e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("far", [1e3, 1e5, 1e6])
def test_columns_far_from_zero(far, weighted):
    """The deviations of dense columns are taken before they lose their digits."""
    rng = np.random.default_rng(4)
    n, p = 80, 12
    X = rng.standard_normal((n, p)) + far
    y = (X[:, :3] - far) @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal(n) + 7.0
    weight = rng.integers(0, 3, n).astype(float) if weighted else None
    problem = squared(X, y, fit_intercept=True, sample_weight=weight)
    alphas = problem.alpha_max() * np.array([0.3, 0.01, 1e-4])
    best = of(squared(X - far, y, fit_intercept=True, sample_weight=weight), alphas, 1e-12, "rows")
    for alpha, found in of(problem, alphas, 1e-9, "covariances").items():
        one = problem.with_alpha(alpha)
        # the intercept itself, about `far` times as large as w, has no more digits than this
        true, optimum = exact_objective(one, found.w), best[alpha].proven.primal
        assert abs(float(true) - found.proven.primal) <= 1e-12 * found.proven.primal
        assert found.proven.dual <= optimum * (1 + 1e-14 * far**0.5)
        assert found.proven.gap <= 1e-9 * found.proven.primal


def test_covariances_of_columns_far_from_zero_have_their_digits():
    rng = np.random.default_rng(5)
    Z, y = rng.integers(-8, 9, (200, 6)) / 8, rng.standard_normal(200)
    near, far = (covariances(squared(X, y, fit_intercept=True)) for X in (Z, Z + 2.0**20))
    np.testing.assert_allclose(far.gram, near.gram, rtol=0, atol=1e-14)
    np.testing.assert_allclose(far.with_target, near.with_target, rtol=0, atol=1e-14)


def test_sparse_columns_far_from_zero_are_refused():
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((50, 4)), rng.standard_normal(50)
    assert covariances(squared(sp.csr_array(X), y, fit_intercept=True)) is not None
    X[:, 2] += 1e3
    for layout in (sp.csr_array, sp.csc_array):
        assert covariances(squared(layout(X), y, fit_intercept=True)) is None
        assert covariances(squared(layout(X), y)) is not None  # nothing is taken off
    X[:, 2] = 1.0
    assert covariances(squared(sp.csr_array(X), y, fit_intercept=True)) is None


def test_only_rows_with_a_weight_tell_whether_columns_are_far_from_zero():
    rng = np.random.default_rng(7)
    X, y, weight = rng.standard_normal((50, 4)), rng.standard_normal(50), np.ones(50)
    X[:, 1] += 1e3
    X[40:, 1] *= 100  # the mean square of all rows is far larger than the square of the mean of the first
    weight[40:] = 0.0
    assert covariances(squared(sp.csr_array(X), y, fit_intercept=True, sample_weight=weight)) is None


def test_sparse_data_that_covariances_refuse_is_not_filled_in(monkeypatch):
    rng = np.random.default_rng(8)
    X = sp.csr_array(rng.standard_normal((300, 5)) + 1e3)
    problem = squared(X, X @ np.ones(5) + rng.standard_normal(300), fit_intercept=True)
    alphas = list(problem.alpha_max() * np.geomspace(1.0, 0.1, 30))
    monkeypatch.setattr(compiled, "FILLED", 1000)
    monkeypatch.setattr(compiled, "on_covariances", lambda *_: True)
    assert is_compiled(problem, alphas, PRICES)
    assert not CompiledPath(problem, alphas, 1e-6, PRICES).answers
    assert fl.path(problem, alphas=alphas).converged.all()


@pytest.mark.parametrize("noise", [1e-4, 1e-6, 0.0])
def test_targets_that_are_nearly_explained(noise):
    """The objective is a small difference of large numbers: bounds are true, however near they are."""
    for n, p in ((150, 10), (50, 70)):
        rng = np.random.default_rng(9)
        X = rng.standard_normal((n, p))
        y = X[:, :5] @ np.array([1, -2, 3, 1, 0.5]) + noise * rng.standard_normal(n) + 2
        problem = squared(X, y, fit_intercept=True)
        alphas = problem.alpha_max() * np.array([1e-3, 1e-5, 1e-7, 1e-9])
        answers = of(problem, alphas, 1e-6, "covariances")
        for alpha, found in answers.items():
            one = problem.with_alpha(alpha)
            made = fl.solve(one, tol=1e-6)
            assert made.status is Status.CONVERGED
            points = [found.w, one.pack(made.coef, made.intercept)]
            points += [other.w for other in of(one, [alpha], 1e-11, "rows").values()]
            best = min(exact_objective(one, w) for w in points)
            assert found.proven.primal == pytest.approx(one.primal_at(found.w), rel=1e-12)
            assert found.proven.dual <= best and made.dual <= best * (1 + 1e-12)
        assert fl.path(problem, alphas=alphas).converged.all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_columns_that_are_equal_constant_or_empty(layout):
    rng = np.random.default_rng(10)
    X = rng.standard_normal((40, 9))
    X[:, 3], X[:, 4], X[:, 5], X[:, 6] = X[:, 0], -X[:, 1], 0.0, 2.0 * X[:, 0]
    if layout not in ("csr", "csc"):
        X[:, 7] = 3.0  # sparse data like that is refused, see above
    problem = squared(laid_out(X, layout), X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(40), fit_intercept=True)
    alphas = problem.alpha_max() * np.array([0.5, 0.05, 0.001])
    known = {alpha: independent(problem.with_alpha(alpha)) for alpha in alphas[:2]}
    for way in ("covariances", "rows", "tiny"):
        answers = of(problem, alphas, 1e-8, way)
        check(problem, answers, alphas, 1e-8, known=known)
        assert all(found.w[5] == 0.0 and (layout in ("csr", "csc") or found.w[7] == 0.0) for found in answers.values())


def test_which_problems_go_by_covariances():
    tall = make("squared", "l1", 2000, 10, holes=0.0)
    many = list(tall.alpha_max() * np.geomspace(1.0, 0.01, 60))
    assert on_covariances(tall, many, PRICES)
    assert not on_covariances(make("squared", "l1", 20, 400), many[:3], PRICES)
    assert not on_covariances(make("logistic", "l1", 2000, 10), many, PRICES)
    free = squared(tall.data.filled(), tall.target, fl.L1(np.r_[0.0, np.ones(9)]))
    assert not on_covariances(free, many, PRICES)  # x would have to be balanced
    path = fl.path(tall, alphas=many)
    assert path.converged.all()
    rows = of(tall, many, 1e-6, "rows")
    np.testing.assert_allclose(path.primals, [rows[alpha].proven.primal for alpha in many], rtol=2e-6)


def test_which_problems_are_compiled():
    assert is_compiled(make("logistic", "l1"), [0.1], PRICES)
    assert is_compiled(make("logistic", "l1", layout="csr"), [0.1, 0.05], PRICES)
    assert not is_compiled(make("logistic", "l1"), [0.1, 0.0], PRICES)
    assert is_compiled(make("huber", "l1", 20, 40), [0.1], PRICES)
    X, y = np.ones((4, 4)), np.array([1.0, -1.0, 1.0, 1.0])
    assert is_compiled(squared(X, y, fl.GroupL2([[0, 1], [2, 3]])), [0.1], PRICES)
    assert not is_compiled(fl.Problem(X, y, loss=fl.Logistic(), penalty=fl.L1() @ fl.Difference(4)), [0.1], PRICES)


# -- folds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_scores_of_folds_are_those_of_fits_by_hand(loss, layout, weighted):
    problem = make(loss, "elastic net", 60, 10, layout=layout, weighted=weighted)
    alphas = problem.alpha_max() * np.array([0.5, 0.1, 0.02])
    rng = np.random.default_rng(1)
    parts = np.array_split(rng.permutation(60), 3)
    folds = [(np.setdiff1d(np.arange(60), test), test) for test in parts]
    made = fl.cross_validate_path(problem, cv=folds, alphas=alphas, tol=1e-10)
    X = problem.data.filled().astype(float)
    weight = problem.weight if problem.weight.size else np.ones(60)
    for k, (train, test) in enumerate(folds):
        for a, alpha in enumerate(alphas):
            part = fl.Problem(
                X[train], problem.target[train], loss=problem.loss, penalty=problem.penalty, alpha=alpha,
                sample_weight=weight[train], fit_intercept=True,
            )  # fmt: skip
            by_hand = fl.solve(part, tol=1e-11)
            losses = problem.loss.value(X[test] @ by_hand.coef + by_hand.intercept, problem.target[test])
            assert made.scores[a, k] == pytest.approx(-weight[test] @ losses / weight[test].sum(), rel=1e-4, abs=1e-5)
    assert made.converged.all() and (made.relative_gaps <= 1e-10).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_fold_by_its_weights_is_the_fold_by_its_rows(loss):
    problem = make(loss, "l1", weighted=True)
    alphas = problem.alpha_max() * np.array([0.5, 0.2, 0.05])
    by_rows, by_weights = (of(problem, alphas, 1e-8, way) for way in ("rows", "weights"))
    check(problem, by_weights, alphas, 1e-8)
    for alpha in map(float, alphas):
        one, other = by_rows[alpha], by_weights[alpha]
        assert one.proven.dual <= other.proven.primal and other.proven.dual <= one.proven.primal
        np.testing.assert_allclose(one.w, other.w, atol=2e-3)


def test_scores_of_folds_with_several_outputs():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 6))
    Y = X[:, :2] @ rng.standard_normal((2, 3)) + 0.3 * rng.standard_normal((60, 3))
    weight = rng.uniform(0.0, 2.0, 60)
    problem = fl.Problem(X, Y, loss="squared", penalty=fl.L1(), alpha=1.0, fit_intercept=True, sample_weight=weight)
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(40), np.arange(40, 60))]
    alphas = problem.alpha_max() * np.array([0.4, 0.05])
    made = fl.cross_validate_path(problem, cv=folds, alphas=alphas, tol=1e-9)
    for (a, alpha), (k, (train, test)) in itertools.product(enumerate(alphas), enumerate(folds)):
        part = fl.Problem(
            X[train], Y[train], loss="squared", penalty=fl.L1(), alpha=alpha, fit_intercept=True,
            sample_weight=weight[train],
        )  # fmt: skip
        one = fl.solve(part, tol=1e-10)
        residual = X[test] @ one.coef.reshape(3, -1).T + one.intercept - Y[test]
        score = -(weight[test] @ (0.5 * residual**2)).sum() / (3 * weight[test].sum())
        assert made.scores[a, k] == pytest.approx(score, rel=1e-4)


# -- as part of a run -------------------------------------------------------------------------------


@pytest.fixture
def compiled_only(monkeypatch):
    """Rounds of working sets in Python are an error."""

    def fail(*args):
        raise AssertionError("the compiled loops left an alpha")

    monkeypatch.setattr(rounds._Fit, "rounds", fail)


def same_bits(first, second):
    return first.coef.tobytes() == second.coef.tobytes() and (first.primal, first.dual) == (second.primal, second.dual)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_zeros_are_exact_and_bits_the_same(loss, layout, compiled_only):
    problem = make(loss, "l1", 60, 20, layout=layout)
    problem = problem.with_alpha(0.2 * problem.alpha_max())
    first, second = fl.solve(problem), fl.solve(problem)
    assert first.status is Status.CONVERGED and same_bits(first, second)
    assert 0 < np.count_nonzero(first.coef) < 20
    alphas = problem.alpha_max() * np.array([0.9, 0.2])
    paths = [fl.path(problem, alphas=alphas) for _ in range(2)]
    assert all(same_bits(*both) for both in zip(*(path.results for path in paths), strict=True))
    np.testing.assert_array_equal(paths[0].coefs[1] != 0, first.coef != 0)


@pytest.mark.parametrize("tol", [1e-3, 1e-10])
@pytest.mark.parametrize("loss", LOSSES)
def test_paths_with_alphas_above_the_largest_and_far_apart(loss, tol, compiled_only):
    problem = make(loss, "weighted", 50, 15)
    top = problem.alpha_max()
    one = fl.path(problem, alphas=[1.5 * top], tol=tol)
    assert one.converged.all() and not one.coefs.any()
    apart = fl.path(problem, alphas=top * np.array([2.0, 1e-1, 1e-3]), tol=tol)
    assert apart.converged.all() and (apart.relative_gaps <= tol).all()
    for alpha, result in zip(apart.alphas, apart.results, strict=True):
        single = fl.solve(problem.with_alpha(alpha), tol=1e-9)
        slack = 1e-12 * abs(single.primal)
        assert result.dual <= single.primal + slack and single.dual <= result.primal + slack


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_a_saved_result_is_continued(loss, tmp_path):
    problem = make(loss, "elastic net", 60, 20)
    problem = problem.with_alpha(0.05 * problem.alpha_max())
    rough = fl.solve(problem, tol=1e-2)
    rough.save(tmp_path / "run.npz")
    loaded = fl.Result.load(tmp_path / "run.npz")
    for key in ("w", "x", "y", "u"):
        np.testing.assert_array_equal(loaded.state[key], rough.state[key])
    fine = fl.solve(problem, tol=1e-9, warm_start=loaded)
    assert fine.status is Status.CONVERGED and fine.primal <= rough.primal * (1 + 1e-14)
    assert fine.primal == pytest.approx(fl.solve(problem, tol=1e-10).primal, rel=2e-9)
    assert len(fine.history) > len(rough.history)


@pytest.mark.parametrize("loss", ["squared", "logistic", "huber"])
def test_a_warm_start_from_a_neighbour(loss):
    problem = make(loss, "l1", 60, 20)
    top = problem.alpha_max()
    neighbour = fl.solve(problem.with_alpha(0.1 * top))
    warm = fl.solve(problem.with_alpha(0.09 * top), tol=1e-8, warm_start=neighbour)
    cold = fl.solve(problem.with_alpha(0.09 * top), tol=1e-8)
    assert warm.status is Status.CONVERGED and warm.primal == pytest.approx(cold.primal, rel=2e-8)
    again = fl.solve(problem.with_alpha(0.09 * top), tol=1e-8, warm_start=cold)
    assert again.status is Status.CONVERGED and again.primal <= cold.primal * (1 + 1e-14)


def test_no_time_and_a_callback():
    problem = make("logistic", "l1", 60, 20)
    problem = problem.with_alpha(0.05 * problem.alpha_max())
    none = fl.solve(problem, time_limit=0)
    assert none.status is Status.TIME_LIMIT and none.dual <= none.primal
    np.testing.assert_array_equal(none.coef, 0.0)
    seen = []
    stopped = fl.solve(problem, callback=lambda snapshot: seen.append(snapshot) or True)
    assert stopped.status is Status.CALLBACK and len(seen) == 1
    fl.solve(problem, callback=seen.append)
    assert seen[-1].gap <= 1e-6 * seen[-1].primal and seen[-1].coef.shape == (20,)


def test_alphas_are_solved_some_at_a_time(monkeypatch):
    """Limits and Ctrl-C are heard between them, and the answers are the same bits as in one go."""
    problem = make("logistic", "l1", 60, 20)
    alphas = [float(alpha) for alpha in problem.alpha_max() * np.geomspace(0.9, 0.01, 40)]
    path = CompiledPath(problem, alphas, 1e-6, PRICES)
    assert not path.answers
    assert path.has(alphas[0]) and len(path.answers) == compiled.CHUNK
    assert path.has(alphas[-1]) and len(path.answers) == 40
    monkeypatch.setattr(compiled, "CHUNK", 40)
    whole = CompiledPath(problem, alphas, 1e-6, PRICES)
    assert whole.has(alphas[0]) and len(whole.answers) == 40
    assert all(np.array_equal(whole.answers[alpha].w, path.answers[alpha].w) for alpha in alphas)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_single_fit_knows_the_sums_of_its_dual_variables(loss, weighted):
    problem = make(loss, "elastic net", 60, 20, weighted=weighted)
    alpha = 0.1 * problem.alpha_max()
    one = problem.with_alpha(alpha)
    found = of(problem, [alpha], 1e-8, "rows")[float(alpha)]
    at = found.iterate(one)
    np.testing.assert_allclose(at.zx[:-1], one.gradient_sum(at.x)[:-1], rtol=0, atol=1e-10 * np.abs(at.x).sum())


def test_dual_variables_are_made_for_whom_they_are_asked():
    problem = make("squared", "l1", 60, 20)
    alphas = [float(alpha) for alpha in problem.alpha_max() * np.array([0.3, 0.1])]
    path = CompiledPath(problem, alphas, 1e-6, PRICES)
    one = problem.with_alpha(alphas[1])
    goal = Goal(1e-6, np.inf, np.inf, Convergence.of(one, 1e-6).allowed)
    proposal = path.proposal(one, goal)
    assert not isinstance(proposal._iterate, Iterate)
    np.testing.assert_array_equal(proposal.w, proposal.iterate.w)
    assert isinstance(proposal._iterate, Iterate)
    made = one.certificate(proposal.iterate)
    assert made.gap <= 1e-5 * made.primal
    # bounds that are not near enough are made again, on the data
    stricter = path.proposal(one, dataclasses.replace(goal, allowed=lambda primal: 0.0))
    assert isinstance(stricter._iterate, Iterate) and stricter.certificate.dual <= stricter.primal * (1 + 1e-14)


def test_a_proposal_with_its_iterate_knows_its_point():
    problem = make("squared", "l1")
    iterate = Iterate.zero(problem)
    assert Proposal(iterate, 1.0, 0.0, "somebody").w is iterate.w


@pytest.mark.parametrize("layout", LAYOUTS)
def test_data_filled_in_and_some_of_its_rows(layout):
    problem = make("squared", "l1", layout=layout)
    X = problem.data.filled()
    np.testing.assert_array_equal(problem.data.rows([3, 1, 1]) @ np.eye(12), X[[3, 1, 1]])
    assert problem.data.rows(np.arange(2)).dtype == np.float64


# -- anything ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**31), loss=st.sampled_from(sorted(LOSSES)), penalty=st.sampled_from(PENALTIES),
    n=st.integers(4, 40), p=st.integers(1, 30), intercept=st.booleans(), weighted=st.booleans(), heavy=st.booleans(),
    equal=st.booleans(), decades=st.sampled_from([0.0, 2.0, 4.0]), share=st.floats(-4, 0.08),
    tol=st.sampled_from([1e-3, 1e-6, 1e-9]),
)  # fmt: skip
def test_whatever_comes_the_bounds_are_true(
    seed, loss, penalty, n, p, intercept, weighted, heavy, equal, decades, share, tol
):
    rng = np.random.default_rng(seed)
    X = rng.standard_t(1.5, (n, p)) if heavy else rng.standard_normal((n, p))
    score = X[:, : min(p, 3)].sum(axis=1)
    if equal and p > 1:
        X[:, rng.integers(p)] = X[:, 0]
    X *= 10.0 ** rng.uniform(-decades, decades, p)
    y = targets(LOSSES[loss], score, rng)
    weight = rng.integers(0, 3, n) + 1.0 * (np.arange(n) < 2) if weighted else None
    problem = fl.Problem(
        X, y, loss=LOSSES[loss], penalty=penalties(p)[penalty], sample_weight=weight, fit_intercept=intercept, alpha=1.0
    )
    top = problem.alpha_max()
    if not 1e-200 < top < np.inf:
        return
    problem = problem.with_alpha(float(10.0**share * top))
    with np.errstate(all="ignore"):
        other = independent(problem)
    result = fl.solve(problem, tol=tol)
    w = problem.pack(result.coef, result.intercept)
    size = abs(result.primal)
    best = min(other.primal, fl.solve(problem, tol=1e-12).primal)
    assert result.primal == pytest.approx(problem.primal_at(w), rel=1e-12)
    assert result.dual <= best + 1e-12 * size and result.primal >= other.dual - 1e-12 * size
    assert result.status is Status.CONVERGED or result.gap > tol * size
    ways = ("rows", "tiny", "covariances") if loss == "squared" else ("rows", "tiny")
    for way in ways:
        for found in of(problem, [problem.alpha], tol, way).values():
            assert found.proven.primal == pytest.approx(problem.primal_at(found.w), rel=1e-12)
            assert found.proven.dual <= best + 1e-12 * size
            assert found.proven.primal >= other.dual - 1e-12 * size
