"""Many features behind a map: faces as smaller problems, and Newton directions in the space of the rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from cases import random_sparse

import fenchel as fl
from fenchel.engine.attempts.row_space import row_space_solve
from fenchel.engine.lone_rows import by_lone_rows, lone_rows
from fenchel.engine.registry import fitting
from fenchel.engine.restrictions.face import FaceProblem
from fenchel.maps import Gram

LOSSES = ("squared", "logistic", "huber", "poisson")


def _graph(p, rng):
    edges = np.sort(rng.integers(0, p, (p, 2)), axis=1)
    edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
    return fl.L1() + fl.L1() @ fl.Incidence(edges, p)


def _problem(loss, kind, seed, n=40, p=1100, intercept=True, raw=True):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n, p)).astype(float)
    X = X if raw else X - X.mean(axis=0)
    score = X[:, 20:40].sum(axis=1) - X[:, 300:310].sum(axis=1)
    score = (score - score.mean()) / score.std()
    y = {
        "squared": score + 3.0,
        "huber": score - 1.0,
        "logistic": np.where(score + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0),
        "poisson": rng.poisson(np.exp(0.5 * score)).astype(float),
    }[loss]
    penalty = fl.L1() @ fl.Difference(p) + 0.3 * fl.L1() if kind == "chain" else _graph(p, rng)
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=intercept)
    return problem.with_alpha(problem.alpha_max() / 8)


@pytest.mark.parametrize("kind", ["chain", "graph"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_answer_is_that_of_epochs_alone(loss, kind):
    problem = _problem(loss, kind, 3)
    assert fitting(problem).name == "faces"
    found = fl.solve(problem, tol=1e-7)
    assert found.relative_gap <= 1e-7
    others = fl.solve(problem, tol=1e-4, method="sdca-admm", newton=False, max_epochs=3000)
    size = abs(found.primal)
    assert found.primal <= others.primal + 1e-6 * size
    assert found.primal >= others.dual - 1e-9 * size


@pytest.mark.parametrize("raw", [True, False])
def test_zeros_and_ties_are_exact(raw):
    found = fl.solve(_problem("squared", "chain", 5, raw=raw), tol=1e-7)
    values = found.coef[found.coef != 0]
    assert 0 < values.size < 600
    assert np.unique(values).size <= 40 < values.size or values.size <= 40


def test_a_path_is_proven_at_every_alpha():
    problem = _problem("logistic", "chain", 7)
    alphas = problem.alpha_max() * np.geomspace(0.9, 0.1, 6)
    made = fl.path(problem, alphas=alphas, tol=1e-6)
    for alpha, result in zip(alphas, made.results, strict=True):
        assert result.relative_gap <= 1e-6
        alone = fl.solve(problem.with_alpha(alpha), tol=1e-6)
        assert result.primal == pytest.approx(alone.primal, rel=3e-6)


@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_a_face_is_the_same_problem(factor):
    rng = np.random.default_rng(0)
    problem = _problem("huber", "graph", 1)
    u = rng.standard_normal(problem.d) * (rng.random(problem.d) < 0.2)
    face = FaceProblem(problem, u == 0, factor)
    z = rng.standard_normal(face.count + 1)
    w = face.lift(z)
    small = face.problem
    assert np.allclose(small.scores(z), problem.scores(w))
    assert small.penalty_value(small.penalised(z)) == pytest.approx(
        factor * problem.penalty_value(problem.penalised(w))
    )
    assert np.allclose(face.inside(w), z)
    # what y does to the face is the same before and after rows are merged
    y = np.where(u == 0, 0.0, rng.standard_normal(problem.d))
    pull = np.bincount(face.column, face.side * problem.spread(y)[face.alive], face.count)
    assert np.allclose(small.spread(face.merged(y))[:-1], pull)


def test_groups_that_overlap_are_restricted_too():
    rng = np.random.default_rng(2)
    groups = [rng.choice(60, 8, replace=False) for _ in range(12)] + [np.arange(60)[k::3] for k in range(3)]
    problem = fl.Problem(rng.standard_normal((10, 60)), rng.standard_normal(10), loss="squared",
                         penalty=fl.GroupL2(groups), alpha=0.1)  # fmt: skip
    held = np.isin(problem.units[0], [0, 3, 5])
    face = FaceProblem(problem, held)
    z = rng.standard_normal(face.count + 1)
    w = face.lift(z)
    w[-1] = z[-1] = 0.0
    assert not problem.penalised(w)[held].any()
    small = face.problem
    assert small.penalty_value(small.penalised(z)) == pytest.approx(problem.penalty_value(problem.penalised(w)))


@pytest.mark.parametrize("units", [0, 7])
def test_a_solve_in_the_space_of_the_rows(units):
    rng = np.random.default_rng(4)
    n, k = 20, 90
    rows, bend, diagonal = rng.standard_normal((n, k)), rng.random(n) + 0.1, rng.random(k) + 0.5
    A = random_sparse((units, k), density=0.1, rng=rng, format="csr") if units else None
    S = 0.1 * rng.random(units)
    matrix = np.diag(diagonal) + rows.T @ (bend[:, None] * rows)
    if units:
        matrix -= A.T @ np.diag(S) @ A.toarray()
    right = rng.standard_normal(k)
    solve = row_space_solve(rows.copy(), bend, diagonal, A, S)
    assert np.allclose(matrix @ solve(right), right, atol=1e-9)


def test_overlapping_groups_with_many_active_features():
    rng = np.random.default_rng(6)
    n, p = 40, 2400
    groups = [rng.choice(p, 60, replace=False) for _ in range(60)] + [np.arange(p)[k::40] for k in range(40)]
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.GroupL2(groups))
    problem = problem.with_alpha(problem.alpha_max() / 20)
    found = fl.solve(problem, tol=1e-8)
    assert found.relative_gap <= 1e-8
    others = fl.solve(problem, tol=1e-5, newton=False, method="sdca-admm", max_epochs=20_000)
    assert others.dual - 1e-9 * others.primal <= found.primal <= others.primal * (1 + 1e-7)


def test_conjugate_gradients_replace_a_factor_that_fills_up():
    rng = np.random.default_rng(8)
    p = 1500
    edges = np.sort(rng.integers(0, p, (2 * p, 2)), axis=1)
    edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
    matrix = sp.csr_array(sp.vstack([sp.eye_array(p), fl.Incidence(edges, p).matrix(p)]))
    gram = Gram(matrix)
    assert gram._wide_band
    right = rng.standard_normal(p)
    assert np.allclose(matrix.T @ (matrix @ gram.solve(right)), right, atol=1e-10)


def test_lone_rows_balance_without_a_solve():
    rng = np.random.default_rng(3)
    problem = _problem("squared", "graph", 3)
    rows = lone_rows(problem)
    x = rng.standard_normal(problem.n)
    zx, y = problem.gradient_sum(x), rng.standard_normal(problem.d)
    balanced = by_lone_rows(problem, rows, zx, y.copy())
    left = (zx + problem.spread(balanced))[problem.feature_slots]
    assert np.abs(left).max() < 1e-11 * np.abs(zx).max()
    others = np.setdiff1d(np.arange(problem.d), rows)
    assert np.array_equal(balanced[others], y[others])
    chain = fl.Problem(rng.standard_normal((5, 9)), np.ones(5), loss="squared", penalty=fl.L1() @ fl.Difference(9))
    assert lone_rows(chain) is None
