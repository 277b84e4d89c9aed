"""Groups on covariances: the answers of rows, bounds that hold in extended precision, which problems go this way."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from test_compiled import LAYOUTS, check, independent, laid_out
from test_compiled_groups import GROUPS, PENALTIES, found_by_loops, make

import fenchel as fl
from fenchel.engine import compiled
from fenchel.engine.compiled import CompiledPath, is_compiled, on_covariances
from fenchel.engine.covariances import covariances
from fenchel.engine.units import units_of
from fenchel.prices import PRICES


def by_covariances(problem, alphas, tol):
    path = CompiledPath.__new__(CompiledPath)
    path._plan(alphas)
    known = covariances(problem)
    assert known is not None
    path._on_covariances(problem, known, units_of(problem.with_alpha(1.0)), tol)
    path.has(float(alphas[-1]))
    return path.answers


def exact_objective(problem, w):
    """The objective of the squared loss in extended precision."""
    X, w = problem.data.filled().astype(np.longdouble), w.astype(np.longdouble)
    weight = problem.weight.astype(np.longdouble) if problem.weight.size else np.ones(problem.n, np.longdouble)
    units, v = units_of(problem), w[:-1]
    loss = weight @ np.square(X @ v + w[-1] - problem.target) / (2 * problem.n)
    sizes = np.sqrt(np.add.reduceat(np.square(v[units.members]), units.start[:-1]))
    return loss + units.l1 @ np.abs(v) + units.norm @ sizes


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_answers_of_rows(penalty, layout):
    for n, intercept, weighted in ((60, True, False), (15, False, False), (40, True, True)):
        given = {"intercept": intercept, "weighted": weighted, "layout": lambda X: laid_out(X, layout)}
        problem = make("squared", PENALTIES[penalty], n, **given)
        alphas = problem.alpha_max() * np.array([1.01, 0.5, 0.2, 0.15, 0.03])
        found = by_covariances(problem, alphas, 1e-10)
        rows = found_by_loops(problem, alphas, 1e-10)
        check(problem, found, alphas, 1e-10, known={alpha: one.proven for alpha, one in rows.items()})
        assert not found[float(alphas[0])].w[:-1].any()
        for alpha in alphas:
            np.testing.assert_allclose(found[float(alpha)].w, rows[float(alpha)].w, atol=5e-4)
            one, other = found[float(alpha)].w, rows[float(alpha)].w
            assert np.array_equal(one == 0, other == 0)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_optimum_is_that_of_a_conic_solver(penalty):
    from reference import reference

    problem = make("squared", PENALTIES[penalty], 30, weighted=True, seed=3)
    alpha = 0.1 * problem.alpha_max()
    value, _, _ = reference(
        problem.data.filled(), problem.target, problem.loss, problem.penalty, alpha, problem.weight, fit_intercept=True
    )
    proven = by_covariances(problem, [alpha], 1e-9)[alpha].proven
    assert proven.dual <= value + 1e-7 * abs(value)
    assert proven.primal == pytest.approx(value, rel=1e-6)


def test_more_features_than_rows_and_large_supports():
    """Sets grow, and units leave them and come back."""
    rng = np.random.default_rng(3)
    groups = [sorted(map(int, group)) for group in np.array_split(rng.permutation(700), 160)]
    problem = make("squared", fl.GroupLasso(groups), n=60, p=700)
    alphas = problem.alpha_max() * np.array([0.9, 0.5, 0.1, 0.6, 0.05, 0.01, 1e-3])
    found = by_covariances(problem, alphas, 1e-8)
    known = {alpha: independent(problem.with_alpha(alpha), 1e-9) for alpha in alphas[1:4]}
    check(problem, found, alphas, 1e-8, known=known)
    assert max(np.count_nonzero(one.w) for one in found.values()) > 100


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("noise", [1e-4, 0.0])
def test_targets_that_are_nearly_explained(noise, penalty):
    rng = np.random.default_rng(9)
    for n in (150, 18):
        X = rng.standard_normal((n, 20))
        y = X[:, :5] @ np.array([1, -2, 3, 1, 0.5]) + noise * rng.standard_normal(n) + 2
        problem = fl.Problem(X, y, loss="squared", penalty=PENALTIES[penalty], alpha=1.0, fit_intercept=True)
        alphas = problem.alpha_max() * np.array([1e-3, 1e-5, 1e-7])
        for alpha, found in by_covariances(problem, alphas, 1e-6).items():
            one = problem.with_alpha(alpha)
            made = fl.solve(one, tol=1e-9)
            best = min(exact_objective(one, w) for w in (found.w, one.pack(made.coef, made.intercept)))
            assert found.proven.primal == pytest.approx(float(exact_objective(one, found.w)), rel=1e-11)
            assert found.proven.dual <= best
        assert fl.path(problem, alphas=alphas).converged.all()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(PENALTIES)), st.integers(0, 10_000), st.floats(-4, 0.1), st.booleans(),
    st.sampled_from(["plain", "scaled", "equal", "nearly equal", "constant", "far", "heavy"]),
)  # fmt: skip
def test_hostile_problems(penalty, seed, depth, intercept, kind):
    """No lower bound is above a value that somebody reaches, in extended precision."""
    rng = np.random.default_rng(seed)
    problem = make("squared", PENALTIES[penalty], n=int(rng.integers(5, 60)), intercept=intercept, seed=seed)
    X = problem.data.dense.copy()
    if kind == "scaled":
        X *= 10.0 ** rng.uniform(-3, 1, X.shape[1])
    elif kind == "equal":
        X[:, 5], X[:, 11], X[:, 3] = X[:, 0], X[:, 0], -2 * X[:, 2]
    elif kind == "nearly equal":
        X = X[:, :1] + 1e-6 * X
    elif kind == "constant":
        X[:, 1], X[:, 4] = 1.0, 0.0
    elif kind == "far":
        X += 1e5
    elif kind == "heavy":
        X *= np.minimum(np.abs(rng.standard_cauchy((len(X), 1))), 20.0)
    problem = fl.Problem(
        X, problem.target, loss="squared", penalty=PENALTIES[penalty], fit_intercept=intercept, alpha=1.0
    )
    alpha = 10.0**depth * problem.alpha_max()
    for found in by_covariances(problem, [alpha], 1e-8).values():
        one = problem.with_alpha(alpha)
        other = fl.solve(one, tol=1e-10)
        best = min(exact_objective(one, w) for w in (found.w, one.pack(other.coef, other.intercept)))
        assert found.proven.dual <= best
        far = 1e-9 if kind == "far" else 1e-11
        assert abs(float(exact_objective(one, found.w)) - found.proven.primal) <= far * found.proven.primal


def test_which_problems_go_by_covariances(monkeypatch):
    tall = make("squared", PENALTIES["sparse groups"], 2000)
    many = list(tall.alpha_max() * np.geomspace(1.0, 0.01, 40))
    assert on_covariances(tall, many, PRICES)
    assert not on_covariances(make("logistic", PENALTIES["groups"], 2000), many, PRICES)
    ridged = make("squared", PENALTIES["groups"] + 0.1 * fl.Ridge(), 2000)
    assert not on_covariances(ridged, many, PRICES) and not is_compiled(ridged, many, PRICES)
    monkeypatch.setattr(CompiledPath, "_on_rows", None)  # nobody reads the rows
    path = fl.path(tall, alphas=many)
    assert path.converged.all()
    sparse = fl.Problem(
        sp.csr_array(tall.data.filled()), tall.target, loss="squared", penalty=PENALTIES["sparse groups"], alpha=1.0,
        fit_intercept=True,
    )  # fmt: skip
    monkeypatch.setattr(compiled, "FILLED", 1000)  # sparse data that is not filled in
    np.testing.assert_allclose(fl.path(sparse, alphas=many).primals, path.primals, rtol=2e-6)
    judged = fl.cross_validate_path(tall, cv=3, alphas=many)
    assert judged.converged.all()
    one, other = (fl.path(tall, alphas=many).coefs for _ in range(2))
    assert np.array_equal(one, other)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_a_path_that_ends_with_most_features_goes_by_covariances(layout):
    """Its sets would make the same Gram matrix piece by piece; one that ends early would not."""
    rng = np.random.default_rng(3)
    X = np.zeros((400, 300))
    for first in range(0, 300, 5):
        X[np.arange(400), first + rng.integers(0, 5, 400)] = 1.0
    y = X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(400)
    groups = fl.GroupLasso(np.repeat(np.arange(60), 5))
    problem = fl.Problem(layout(X), y, loss="squared", penalty=groups, alpha=1.0)
    for depth, expected in ((0.5, False), (1e-2, True)):
        alphas = list(problem.alpha_max() * np.geomspace(1.0, depth, 50))
        assert on_covariances(problem, alphas, PRICES) == expected


@pytest.mark.parametrize("penalty", PENALTIES)
def test_sizes_that_a_penalty_cannot_hold(penalty):
    """The gauge of slopes is never above the bound of it."""
    rng = np.random.default_rng(5)
    units = units_of(make("squared", PENALTIES[penalty]))
    for _ in range(50):
        sizes = rng.exponential(1.0, 20) * rng.integers(0, 2, 20) * 10.0 ** rng.uniform(-2, 2)
        bound = units.gauge_bound(sizes)
        assert bound == 0.0 if not sizes.any() else units.scaling(sizes / bound) >= 1 - 1e-12
    assert len(units.norm) == len(GROUPS)


def test_slopes_beside_the_answer_prove_its_bound():
    """Correlated columns, where descent is slow: what slopes miss is mended by the curvature, and the bounds hold."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 60)) + 3.0 * rng.standard_normal((400, 1))
    y = X[:, :20] @ rng.standard_normal(20) + rng.standard_normal(400)
    problem = fl.Problem(X, y, penalty=fl.GroupLasso(np.arange(60) // 4), alpha=1.0, loss="squared")
    alphas = problem.alpha_max() * np.geomspace(0.9, 1e-3, 20)
    found = by_covariances(problem, alphas, 1e-6)
    rows = found_by_loops(problem, alphas, 1e-6)
    for alpha in alphas:
        one = problem.with_alpha(float(alpha))
        tight = independent(one, 1e-11)
        for answers in (found, rows):
            proven, w = answers[float(alpha)].proven, answers[float(alpha)].w
            assert proven.primal - proven.dual <= 1e-6 * proven.primal
            assert proven.dual <= tight.primal * (1 + 1e-14)
            assert proven.primal == pytest.approx(float(exact_objective(one, w)), rel=1e-12)
