"""Groups in compiled loops: bounds that hold, exact zeros of whole groups, the answers of the working sets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from test_compiled import LOSSES, check, independent, targets

import fenchel as fl
from fenchel.engine import rounds
from fenchel.engine.compiled import CompiledPath, _sparse_prices, is_compiled, on_group_columns
from fenchel.engine.units import units_of
from fenchel.kernels import group_path
from fenchel.prices import PRICES

GROUPS = [[0, 5, 9], [1, 11], [2, 3, 10, 7], [4, 6, 8], [12], [13, 14, 15, 16, 17, 18, 19]]
PENALTIES = {
    "groups": fl.GroupL2(GROUPS),
    "weighted groups": fl.GroupL2(GROUPS, np.linspace(0.5, 2.0, len(GROUPS))),
    "sparse groups": 0.4 * fl.L1() + 0.6 * fl.GroupL2(GROUPS),
}


def make(loss, penalty, n=60, p=20, *, intercept=True, weighted=False, seed=0, layout=None):
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    y = targets(LOSSES[loss], X[:, :4] @ np.array([1.0, -0.8, 0.6, 0.5]) + 0.3, rng)
    weight = None
    if weighted:
        weight = rng.uniform(0.2, 2.0, n)
        weight[2 + rng.permutation(n - 2)[: n // 4]] = 0.0
    X = X if layout is None else layout(X)
    return fl.Problem(
        X, y, loss=LOSSES[loss], penalty=penalty, sample_weight=weight, fit_intercept=intercept, alpha=1.0
    )


def found_by_loops(problem, alphas, tol, *, by_columns=False):
    path = CompiledPath.__new__(CompiledPath)
    path._plan(alphas)
    columns = (problem.data.columns, problem.data.pairs, _sparse_prices(PRICES)) if by_columns else None
    some = not by_columns and bool(np.any(problem.weight == 0))
    path._on_rows(problem, units_of(problem.with_alpha(1.0)), tol, some, columns)
    path.has(float(alphas[-1]))
    return path.answers


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_are_true(loss, penalty, intercept, weighted):
    problem = make(loss, PENALTIES[penalty], intercept=intercept, weighted=weighted)
    alphas = problem.alpha_max() * np.array([1.01, 0.6, 0.3, 0.1, 0.03])
    answers = found_by_loops(problem, alphas, 1e-8)
    known = {float(alphas[k]): independent(problem.with_alpha(alphas[k])) for k in (1, 3)}
    check(problem, answers, alphas, 1e-8, known=known)
    assert not answers[float(alphas[0])].w[:-1].any()
    for alpha in alphas[1:3]:  # groups are zero as a whole, where nothing else acts on single features
        w = answers[float(alpha)].w
        if penalty != "sparse groups":
            assert all(np.all(w[group] == 0) or np.all(w[group] != 0) for group in GROUPS)


@pytest.mark.parametrize("room", [512, 2])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_columns(monkeypatch, loss, penalty, intercept, room):
    """With a Gram matrix of the set where that pays, or without room for one."""
    monkeypatch.setattr(group_path, "LARGEST_SUPPORT", room)
    layouts = {"dense": lambda X: np.where(np.abs(X) > 0.8, X, 0.0)}
    layouts["sparse"] = lambda X: sp.csr_array(layouts["dense"](X))
    makers = {name: make(loss, PENALTIES[penalty], intercept=intercept, weighted=True, layout=layouts[name])
              for name in layouts}  # fmt: skip
    problem = makers["sparse"]
    alphas = problem.alpha_max() * np.array([1.01, 0.6, 0.3, 0.1])
    answers = found_by_loops(problem, alphas, 1e-7, by_columns=True)
    check(problem, answers, alphas, 1e-7, known={float(a): independent(problem.with_alpha(a)) for a in alphas[1:3]})
    assert not answers[float(alphas[0])].w[:-1].any()
    others = found_by_loops(makers["dense"], alphas, 1e-7)
    for alpha in map(float, alphas):
        assert answers[alpha].proven.primal == pytest.approx(others[alpha].proven.primal, rel=1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_path_takes_sparse_columns(loss, monkeypatch):
    rng = np.random.default_rng(5)
    X = sp.random_array(
        (700, 1600), density=0.02, format="csr", rng=rng, data_sampler=lambda size: rng.uniform(1, 2, size)
    )
    y = targets(LOSSES[loss], X[:, :8] @ rng.standard_normal(8), rng)
    groups = [list(range(k, k + 5)) for k in range(0, 1600, 5)]
    problem = fl.Problem(X, y, loss=LOSSES[loss], penalty=fl.GroupLasso(groups), alpha=1.0)
    alphas = problem.alpha_max() * np.geomspace(0.9, 0.05, 12)
    assert on_group_columns(problem, units_of(problem), alphas, PRICES)
    path = fl.path(problem, alphas=alphas, tol=1e-7)
    assert path.converged.all()
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)
    for k in (3, 11):
        other = fl.solve(problem.with_alpha(alphas[k]), tol=1e-8)
        assert other.dual <= path[k].primal * (1 + 1e-12) and path[k].dual <= other.primal * (1 + 1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_more_features_than_rows(loss):
    rng = np.random.default_rng(3)
    groups = np.array_split(rng.permutation(400), 90)
    problem = make(loss, fl.GroupLasso([sorted(map(int, group)) for group in groups]), n=40, p=400)
    alphas = problem.alpha_max() * np.geomspace(0.9, 0.02, 12)
    assert is_compiled(problem, alphas, PRICES)
    path = fl.path(problem, alphas=alphas, tol=1e-7)
    assert path.converged.all()
    for k in (3, 11):
        other = fl.solve(problem.with_alpha(alphas[k]), tol=1e-9)
        assert other.dual <= path[k].primal * (1 + 1e-12) and path[k].dual <= other.primal * (1 + 1e-12)


@pytest.mark.parametrize("shares", [(0.0, 1.0), (0.3, 0.7)])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_descent_on_columns(loss, shares, monkeypatch):
    """Large supports beside few rows: answers and bounds are those of working sets."""
    groups = [list(range(k, k + 5)) for k in range(0, 1500, 5)]
    penalty = shares[0] * fl.L1() + shares[1] * fl.GroupL2(groups) if shares[0] else fl.GroupL2(groups)
    problem = make(loss, penalty, n=150, p=1500, weighted=loss == "logistic", intercept=loss != "squared")
    alphas = problem.alpha_max() * np.geomspace(0.5, 0.02, 6)
    answers = found_by_loops(problem, alphas, 1e-8)
    check(problem, answers, alphas, 1e-8)
    assert max(np.count_nonzero(found.w) for found in answers.values()) > 100
    again = found_by_loops(problem, alphas, 1e-8)
    assert all(np.array_equal(answers[alpha].w, again[alpha].w) for alpha in answers)
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)
    for alpha in alphas[[2, 5]]:
        other, found = fl.solve(problem.with_alpha(alpha), tol=1e-7), answers[float(alpha)].proven
        slack = 1e-12 * abs(other.primal)
        assert other.dual <= found.primal + slack and found.dual <= other.primal + slack


def test_compiled_loops_and_working_sets_agree(monkeypatch):
    problem = make("logistic", PENALTIES["groups"], n=200)
    alphas = problem.alpha_max() * np.geomspace(0.9, 0.01, 10)
    ours = fl.path(problem, alphas=alphas, tol=1e-9)
    monkeypatch.setattr(rounds, "is_compiled", lambda *_: False)
    theirs = fl.path(problem, alphas=alphas, tol=1e-9)
    np.testing.assert_allclose(ours.coefs, theirs.coefs, atol=1e-4)
    assert np.array_equal(ours.coefs == 0, theirs.coefs == 0)


def test_what_is_too_large_is_left_to_working_sets(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((600, 580)), rng.standard_normal(600)
    groups = [range(k, k + 4) for k in range(0, 580, 4)]
    problem = fl.Problem(X, y, loss="squared", penalty=fl.GroupLasso(groups), alpha=1.0)
    result = fl.solve(problem.with_alpha(0.003 * problem.alpha_max()), tol=1e-6)
    assert result.status is fl.Status.CONVERGED and np.count_nonzero(result.coef) > 512


@pytest.mark.parametrize("layout", [np.asfortranarray, sp.csr_array, sp.csc_array, np.float32])
def test_every_layout(layout):
    problem, plain = (make("squared", PENALTIES["sparse groups"], layout=one) for one in (layout, None))
    alphas = plain.alpha_max() * np.array([0.5, 0.1])
    found, expected = (fl.path(one, alphas=alphas, tol=1e-9) for one in (problem, plain))
    np.testing.assert_allclose(found.coefs, expected.coefs, atol=1e-4)


def test_same_bits_and_folds():
    problem = make("logistic", PENALTIES["groups"], n=120)
    alphas = problem.alpha_max() * np.geomspace(0.8, 0.05, 6)
    one, other = (fl.path(problem, alphas=alphas) for _ in range(2))
    assert np.array_equal(one.coefs, other.coefs)
    judged = fl.cross_validate_path(problem, cv=3, alphas=alphas)
    assert judged.converged.all() and np.isfinite(judged.scores).all()


def test_penalties_with_more_than_norms_are_left_to_working_sets():
    for extra in (fl.Ridge(), fl.NonNegative()):
        problem = make("squared", PENALTIES["groups"] + 0.1 * extra)
        assert not is_compiled(problem, [0.1, 0.05], PRICES)
    assert is_compiled(make("squared", PENALTIES["groups"]), [0.1], PRICES)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.sampled_from(sorted(LOSSES)), st.sampled_from(sorted(PENALTIES)), st.integers(0, 10_000), st.floats(-4, 0.1),
    st.booleans(), st.sampled_from(["plain", "scaled", "equal", "constant", "heavy"]),
)  # fmt: skip
def test_hostile_problems(loss, penalty, seed, depth, intercept, kind):
    rng = np.random.default_rng(seed)
    problem = make(loss, PENALTIES[penalty], n=int(rng.integers(5, 60)), intercept=intercept, seed=seed)
    X = problem.data.dense.copy()
    if kind == "scaled":
        X *= 10.0 ** rng.uniform(-3, 1, X.shape[1])
    elif kind == "equal":
        X[:, 5], X[:, 11], X[:, 3] = X[:, 0], X[:, 0], -2 * X[:, 2]
    elif kind == "constant":
        X[:, 1], X[:, 4] = 1.0, 0.0
    elif kind == "heavy":
        X *= np.minimum(np.abs(rng.standard_cauchy((len(X), 1))), 20.0 if loss != "poisson" else 2.0)
    problem = fl.Problem(
        X, problem.target, loss=LOSSES[loss], penalty=PENALTIES[penalty], fit_intercept=intercept, alpha=1.0
    )
    alpha = 10.0**depth * problem.alpha_max()
    if not (np.isfinite(alpha) and alpha > 0):
        return
    one = problem.with_alpha(alpha)
    for a, found in found_by_loops(problem, [alpha], 1e-6).items():
        at = problem.with_alpha(a)
        size = abs(found.proven.primal)
        assert abs(at.primal_at(found.w) - found.proven.primal) <= 1e-10 * size
        other = fl.solve(one, tol=1e-8, newton=False, max_epochs=3000)
        assert found.proven.dual <= other.primal + 1e-10 * size
        assert other.dual <= found.proven.primal + 1e-10 * size


@pytest.mark.parametrize("share", [0.3, 1e-4])
def test_single_fits_on_sparse_columns_unless_all_groups_count(share):
    rng = np.random.default_rng(8)
    X = sp.random_array((900, 60), density=0.1, format="csc", rng=rng)
    problem = fl.Problem(
        X, np.sign(X[:, :5].sum(axis=1) + rng.standard_normal(900)), loss="logistic", alpha=1.0,
        penalty=fl.GroupLasso(np.arange(60).reshape(20, 3).tolist()),
    )  # fmt: skip
    alpha = share * problem.alpha_max()
    answers = found_by_loops(problem, [alpha], 1e-7, by_columns=True)
    assert (alpha in answers) == (share == 0.3)
    assert fl.solve(problem.with_alpha(alpha), tol=1e-6).relative_gap <= 1e-6
