"""Columns of a round, and their Gram matrix: products with weights and means, columns that join and leave."""

from __future__ import annotations

import cases
import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data import Rows
from fenchel.engine.curvatures.gram import LaggedGram
from fenchel.engine.restrictions.columns import DenseColumns, SparseColumns, WholeDense
from fenchel.engine.restrictions.working_set import WorkingSet
from fenchel.engine.units import units_of

N, P = 60, 9
LAYOUTS = {
    "C": np.ascontiguousarray, "Fortran": np.asfortranarray, "CSR": sp.csr_array, "CSC": sp.csc_array,
}  # fmt: skip


def matrix(seed=0, sparse=False, n=N, p=P):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 3.0
    X[:, 4] = 0.0
    if sparse:
        X[rng.random((n, p)) < 0.6] = 0.0
    return X


def columns_of(layout, dtype=np.float64, seed=0):
    X = matrix(seed, layout in ("CSR", "CSC")).astype(dtype)
    data = Rows(LAYOUTS[layout](X))
    return (SparseColumns if data.sparse else DenseColumns)(data), X.astype(float)


def centred_gram(X, weight, means):
    X = X if means is None else X - means
    return X.T @ (X if weight is None else weight[:, None] * X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products(layout, dtype):
    part, X = columns_of(layout, dtype)
    rng = np.random.default_rng(1)
    chosen = [6, 1, 4]
    part.add(np.array([6, 1]))
    part.add(np.array([4]))
    x, v, weight = rng.standard_normal(N), rng.standard_normal(3), rng.random(N)
    assert part.count == 3
    np.testing.assert_allclose(part.scores(v), X[:, chosen] @ v, rtol=1e-12)
    np.testing.assert_allclose(part.slopes(x), X[:, chosen].T @ x, atol=1e-11)
    np.testing.assert_allclose(part.centre(weight, 1), (X[:, chosen].T @ weight)[1:])
    np.testing.assert_allclose(part.centre(None, 0), X[:, chosen].sum(axis=0))
    part.keep(np.array([0, 2]))
    np.testing.assert_allclose(part.slopes(x), X[:, [6, 4]].T @ x, atol=1e-11)
    part.add(np.array([0, 3]))
    np.testing.assert_allclose(part.scores(np.ones(4)), X[:, [6, 4, 0, 3]].sum(axis=1), rtol=1e-12)


@pytest.mark.parametrize("with_means", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gram(layout, weighted, with_means):
    """All of it, and rows that are added to what is there."""
    part, X = columns_of(layout)
    chosen = np.array([6, 1, 4, 0, 8])
    part.add(chosen)
    weight = np.random.default_rng(2).random(N) if weighted else None
    means = None
    if with_means:
        means = part.centre(weight, 0) / (N if weight is None else weight.sum())
    expected = centred_gram(X[:, chosen], weight, means)
    whole = np.full((7, 7), np.nan)
    part.gram(weight, means, 0, whole, True)
    np.testing.assert_allclose(whole[:5, :5], expected, atol=1e-10)
    grown = np.full((7, 7), np.nan)
    grown[:2, :2] = 77.0  # what is there stays
    part.gram(weight, means, 2, grown, True)
    np.testing.assert_allclose(grown[2:5, :5], expected[2:], atol=1e-10)
    np.testing.assert_allclose(grown[:2, 2:5], expected[:2, 2:], atol=1e-10)
    np.testing.assert_array_equal(grown[:2, :2], 77.0)


@pytest.mark.parametrize("order", [None, np.array([3, 0, 8, 1, 2, 4, 7, 5, 6])])
@pytest.mark.parametrize("layout", ["C", "Fortran"])
def test_all_columns_as_they_are(layout, order):
    _, X = columns_of(layout)
    data = Rows(LAYOUTS[layout](X))
    part, ordered = WholeDense(data, order), X if order is None else X[:, order]
    rng = np.random.default_rng(3)
    x, v, weight = rng.standard_normal(N), rng.standard_normal(P), rng.random(N)
    np.testing.assert_allclose(part.scores(v), ordered @ v)
    np.testing.assert_allclose(part.slopes(x), ordered.T @ x, atol=1e-11)
    means = part.centre(weight, 0) / weight.sum()
    for dtype, exact in ((np.float64, 1e-10), (np.float32, 1e-3)):
        out = np.zeros((P, P), dtype=dtype)
        part.gram(weight, means, 0, out, True)
        np.testing.assert_allclose(out, centred_gram(ordered, weight, means), atol=exact)
    for change in (part.add, part.keep):
        with pytest.raises(ValueError, match="all columns"):
            change(np.array([0]))


# -- the matrix that lags ---------------------------------------------------------------------------


def lagged(X, curvature, ridge, intercept):
    h = curvature / N
    G = X.T @ (h[:, None] * X)
    if intercept:
        G -= np.outer(h @ X, h @ X) / h.sum()
    return G + np.diag(ridge)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_appended_is_what_is_made_afresh(layout, intercept):
    part, X = columns_of(layout)
    rng = np.random.default_rng(4)
    curvature, ridge = rng.random((1, N)), rng.random(6)
    gram, chosen = LaggedGram(N, intercept, False), [5, 0, 7]
    part.add(np.array(chosen))
    assert gram.extend([part], [np.arange(3)], curvature, ridge[:3])
    np.testing.assert_allclose(
        gram.matrix[:3, :3], lagged(X[:, chosen], curvature[0], ridge[:3], intercept), atol=1e-10
    )
    chosen += [2, 8, 1]
    part.add(np.array(chosen[3:]))
    # at the curvature of the others
    assert not gram.extend([part], [np.arange(6)], rng.random((1, N)), ridge)
    np.testing.assert_allclose(gram.matrix[:6, :6], lagged(X[:, chosen], curvature[0], ridge, intercept), atol=1e-10)
    np.testing.assert_allclose(gram.matrix[:6, :6], gram.matrix[:6, :6].T, atol=1e-12)
    kept = np.array([0, 2, 3, 5])
    part.keep(kept)
    gram.keep(kept)
    chosen = [chosen[k] for k in kept]
    ridge = 2.0 * ridge[kept]
    assert not gram.extend([part], [np.arange(4)], curvature, ridge)
    np.testing.assert_allclose(gram.matrix[:4, :4], lagged(X[:, chosen], curvature[0], ridge, intercept), atol=1e-10)
    assert gram.change(curvature) == 0.0
    other = rng.random((1, N))
    assert gram.change(other) == pytest.approx(np.abs(other - curvature).sum() / curvature.sum())
    gram.forget()
    assert gram.extend([part], [np.arange(4)], other, ridge)
    np.testing.assert_allclose(gram.matrix[:4, :4], lagged(X[:, chosen], other[0], ridge, intercept), atol=1e-10)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_several_outputs_do_not_meet(layout, intercept):
    _, X = columns_of(layout)
    Y = np.random.default_rng(5).standard_normal((N, 2))
    groups = [[j, j + P] for j in range(P)]
    problem = fl.Problem(LAYOUTS[layout](X), Y, loss="squared", penalty=fl.GroupL2(groups), fit_intercept=intercept)
    units, working = units_of(problem), WorkingSet(problem.data, 2)
    curvature = np.random.default_rng(6).random((2, N))
    gram = LaggedGram(N, intercept, False)

    def check():
        gram.extend(working.columns, working.where, curvature, np.full(working.size, 0.5))
        expected = np.zeros((working.size, working.size))
        for k in range(2):
            own = np.flatnonzero(working.coefs // P == k)
            part = X[:, working.coefs[own] % P]
            expected[np.ix_(own, own)] = lagged(part, curvature[k], np.full(own.size, 0.5), intercept)
        np.testing.assert_allclose(gram.matrix[: working.size, : working.size], expected, atol=1e-10)

    working.add(units, np.array([3, 1]))
    check()
    working.add(units, np.array([0, 8]))
    check()
    gram.keep(working.keep(units, np.array([1, 2])))
    check()
    working.add(units, np.array([5]))
    check()
    assert list(working.coefs) == [1, 1 + P, 0, P, 5, 5 + P]
    x = np.random.default_rng(7).standard_normal((2, N))
    expected = [X[:, c % P] @ x[c // P] / N for c in working.coefs]
    np.testing.assert_allclose(working.slopes(x), expected, atol=1e-12)
    v = np.arange(1.0, 7.0)
    both = np.array([sum(v[k] * X[:, c % P] for k, c in enumerate(working.coefs) if c // P == out) for out in (0, 1)])
    np.testing.assert_allclose(working.scores(v, np.array([0.5, -1.0])), both + np.array([[0.5], [-1.0]]))


def test_constant_columns_have_no_curvature_beside_an_intercept():
    for make in (np.ascontiguousarray, sp.csr_array):
        X = matrix()
        X[:, 2] = 0.1
        data = Rows(make(X))
        part = (SparseColumns if data.sparse else DenseColumns)(data)
        gram = LaggedGram(N, True, False)
        for count in (3, 6):
            part.add(np.arange(count - 3, count))
            gram.extend([part], [np.arange(count)], np.random.default_rng(8).random((1, N)), np.zeros(count))
        assert gram.matrix[2, 2] == 0.0
        assert np.all(gram.matrix[[0, 1, 3, 5], [0, 1, 3, 5]] > 0)


def test_candidates_are_the_hardest_pullers():
    X, y, _ = cases.data(cases.losses()["squared"], n=30)
    working = WorkingSet(fl.Problem(X, y, loss="squared", penalty=fl.L1()).data, 1)
    scores = np.concatenate([np.full(500, 0.5), np.linspace(1.1, 2.0, 100)])
    found = working.candidates(scores, 20, 1.0, 5)
    assert found.size < 100 and np.all(np.diff(found) > 0)
    assert found.max() == 599 and np.all(scores[found] >= np.sort(scores)[-found.size])
    assert working.candidates(scores, 20, 0.4, 5).size == 600  # a strong rule takes all
    assert working.candidates(np.zeros(600), 0, 1.0, 5).size == 0


def test_columns_far_from_zero_are_appended_without_loss():
    """Means of a million deviations: the rows that are added are as good as those made at once."""
    rng = np.random.default_rng(9)
    X = 1e-3 * rng.standard_normal((N, 6)) + 1e3 * rng.standard_normal(6)
    data, curvature = Rows(X), rng.random((1, N))
    part, gram = DenseColumns(data), LaggedGram(N, True, False)
    for count in (3, 6):
        part.add(np.arange(count - 3, count))
        gram.extend([part], [np.arange(count)], curvature, np.zeros(count))
    centred = X - np.average(X, axis=0, weights=curvature[0])
    expected = centred.T @ (curvature[0][:, None] * centred) / N
    np.testing.assert_allclose(gram.matrix[:6, :6], expected, atol=1e-6 * expected.max())
