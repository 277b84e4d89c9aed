"""Kernels of the engine: descent decreases its model to the least, products and sums are those of numpy and scipy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from numba import njit

import fenchel as fl
from fenchel.engine.inner.columns import ColumnDescent
from fenchel.engine.inner.descent import ModelDescent, _Single
from fenchel.engine.inner.groups import GroupModel
from fenchel.engine.inner.local import LocalPenalty
from fenchel.engine.inner.products import SupportProducts
from fenchel.engine.restrictions.columns import SparseColumns
from fenchel.kernels import lapack, loss_sums, sparse_columns, unit_groups, units
from fenchel.losses import LOSSES
from fenchel.prices import PRICES

M = 14
START = np.array([0, 3, 4, 8, 9, 14])


def model(seed=0, dtype=np.float64, rank=40):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rank, M)) * np.geomspace(0.3, 3.0, M)
    return (A.T @ A / rank).astype(dtype), rng.standard_normal(M), A


def penalty(kind):
    l1, lower, upper = np.full(M, 0.2), np.full(M, -np.inf), np.full(M, np.inf)
    none = np.zeros(0, dtype=np.int64), np.zeros(0)
    if kind == "weights":
        l1 = np.linspace(0.0, 0.6, M)
    elif kind == "bounds":
        lower[::2], upper[1::3] = 0.0, 0.3
    elif kind == "box":
        l1[:], lower[:], upper[:] = 0.0, -0.2, 0.3
    elif kind == "left out":
        lower[3:6] = upper[3:6] = 0.0
    elif kind in GROUPED:
        if kind != "sparse groups":
            l1[:] = 0.0
        if kind == "groups with signs":
            lower[::2] = 0.0
        none = START, np.array([0.4, 0.2, 0.5, 0.0 if kind == "a free unit" else 0.1, 0.3])
    return LocalPenalty(l1, lower, upper, *none)


SINGLE = ("l1", "weights", "bounds", "box", "left out")
GROUPED = ("groups", "sparse groups", "groups with signs", "a free unit")


def value(G, g, v, local):
    return g @ v + 0.5 * v @ G.astype(float) @ v + local.value(v)


def least(G, g, local):
    """The model's answer by many plain proximal steps."""
    G = G.astype(float)
    step, v = 1.0 / np.linalg.norm(G, 2), np.zeros(M)
    for _ in range(20_000):
        u = v - step * (g + G @ v)
        u = np.sign(u) * np.maximum(np.abs(u) - step * local.l1, 0.0)
        u = np.clip(u, local.lower, local.upper)
        if local.grouped:
            size = np.sqrt(np.add.reduceat(u * u, local.start[:-1]))
            with np.errstate(divide="ignore", invalid="ignore"):
                keep = np.where(size > 0, np.maximum(1 - step * local.norm / size, 0.0), 0.0)
            u *= np.repeat(keep, np.diff(local.start))
        if np.array_equal(u, v):
            break
        v = u
    return v


@pytest.mark.parametrize("kind", SINGLE + GROUPED)
def test_descent_and_newton_decrease_the_model(kind):
    G, g, _ = model()
    local, v, q = penalty(kind), np.zeros(M), g.copy()
    run = (GroupModel if local.grouped else _Single)(G, q, v, local)
    last = value(G, g, v, local)
    for turn in range(30):
        if turn % 3 == 2:
            run.newton()
        elif local.grouped:
            run.settle(0.0, 1)
        else:
            run.passes(1)
        now = value(G, g, v, local)
        assert now <= last + 1e-12
        np.testing.assert_allclose(q, g + G @ v, atol=1e-10)
        assert np.all(v >= local.lower) and np.all(v <= local.upper)
        last = now
    assert last == pytest.approx(value(G, g, least(G, g, local), local), rel=1e-8)
    assert run.gap() <= 1e-7


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", SINGLE + GROUPED)
def test_a_model_is_solved_to_its_target(kind, dtype):
    G, g, _ = model(1, dtype)
    local, v, q = penalty(kind), np.zeros(M), g.copy()
    left = ModelDescent(PRICES).solve(G, q, v, local, 1e-9)
    assert left <= 1e-9
    best = least(G, g, local)
    assert value(G, g, v, local) <= value(G, g, best, local) + 2e-9
    np.testing.assert_array_equal(v == 0, np.abs(best) < 1e-9)


def test_more_rows_of_the_matrix_than_coordinates():
    G, g, _ = model(2)
    wide = np.full((M + 3, M + 3), np.nan)
    wide[:M, :M] = G
    local, v, q = penalty("l1"), np.zeros(M), g.copy()
    assert ModelDescent(PRICES).solve(wide, q, v, local, 1e-10) <= 1e-10
    np.testing.assert_allclose(v, least(G, g, local), atol=1e-4)


@pytest.mark.parametrize("kind", SINGLE)
def test_large_supports_are_extrapolated(kind):
    """A hundred and more coefficients that count: the support in a matrix of its own, and Anderson's steps."""
    rng = np.random.default_rng(3)
    m = 400
    A = rng.standard_normal((300, m)) + rng.standard_normal((300, 1))
    G, g = A.T @ A / 300 + 0.01 * np.eye(m), rng.standard_normal(m)
    small = penalty(kind)
    some = np.arange(m) % M
    local = LocalPenalty(0.1 * small.l1[some], small.lower[some], small.upper[some], small.start, small.norm)
    v, q = np.zeros(m), g.copy()
    assert ModelDescent(PRICES).solve(G, q, v, local, 1e-8) <= 1e-8
    np.testing.assert_allclose(q, g + G @ v, atol=1e-8)
    slope = -q
    inside = (v > local.lower) & (v < local.upper) & (v != 0)
    np.testing.assert_allclose(slope[inside], (local.l1 * np.sign(v))[inside], atol=1e-3)
    resting = (v == 0) & (local.lower < 0) & (local.upper > 0)
    assert np.all(np.abs(slope[resting]) <= local.l1[resting] + 1e-3)


def test_block_bounds_are_bounds():
    G, _, _ = model(5)
    bend = np.empty(START.size - 1)
    unit_groups.block_bounds(G, START, bend)
    for k, (first, last) in enumerate(itertools.pairwise(START)):
        assert bend[k] >= np.linalg.norm(G[first:last, first:last], 2) - 1e-12


def test_newtons_system_has_the_curvature_of_the_norms():
    """The second derivative of the model, by differences of its slope."""
    rng = np.random.default_rng(6)
    G, g, _ = model(6)
    local = penalty("a free unit")
    v, place, H, slope = rng.standard_normal(M), np.empty(M, dtype=np.int64), np.zeros((M, M)), np.zeros(M)
    assert unit_groups.movable(v, local.l1, local.lower, local.upper, START, local.norm, place) == M
    largest = unit_groups.newton_system(
        G, g + G @ v, v, local.l1, START, local.norm, place, H, slope, np.empty(slope.size, np.int64)
    )
    assert largest == G.diagonal().max()

    def slopes(at):
        size = np.sqrt(np.add.reduceat(at * at, START[:-1]))
        return g + G @ at + np.repeat(local.norm / size, np.diff(START)) * at

    np.testing.assert_allclose(slope, slopes(v), atol=1e-12)
    full = np.tril(H) + np.tril(H, -1).T
    for j in range(M):
        step = np.zeros(M)
        step[j] = 1e-6
        np.testing.assert_allclose(full[j], (slopes(v + step) - slopes(v - step)) / 2e-6, atol=1e-6)


def test_a_step_is_tried_exactly():
    """What a step gains is what the model loses; coordinates stop at zero and at their bounds."""
    G, g, _ = model(7)
    local = penalty("sparse groups")
    rng = np.random.default_rng(7)
    v = rng.standard_normal(M) * (np.arange(M) % 3 > 0)
    v[START[2] : START[3]] = 0.0
    place, new, move = np.empty(M, dtype=np.int64), np.empty(M), np.empty(M)
    limits = local.l1, local.lower, local.upper, START, local.norm
    count = unit_groups.movable(v, *limits, place)
    np.testing.assert_array_equal(place >= 0, v != 0)
    step = 3.0 * rng.standard_normal(count)
    for share in (1.0, 0.1):
        gained = unit_groups.try_step(G, M, g + G @ v, v, *limits, place, step, share, new, move)
        assert gained == pytest.approx(value(G, g, v, local) - value(G, g, new, local), abs=1e-10)
        np.testing.assert_allclose(move, G @ (new - v), atol=1e-12)
        assert np.all(new * v >= 0)


# -- sparse columns -----------------------------------------------------------------------------------


def sparse_data(n=50, p=20, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.3)
    X[:, 7] = 0.0
    return X.astype(dtype)


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_kernels_against_scipy(layout, dtype, index):
    X = sparse_data(dtype=dtype)
    X_sparse = sp.csr_array(X) if layout == "csr" else sp.csc_array(X)
    X_sparse.indices, X_sparse.indptr = X_sparse.indices.astype(index), X_sparse.indptr.astype(index)
    data = fl.Problem(X_sparse, np.ones(50), loss="squared").data
    rng, columns = np.random.default_rng(1), np.array([13, 2, 7, 19, 0])
    values, places, ends = data.compact_rows(columns)
    compact = sp.csr_array((values[: ends[-1]], places[: ends[-1]], ends), shape=(50, 5))
    np.testing.assert_array_equal(compact.toarray(), X[:, columns].astype(float))
    turned = np.empty(ends[-1]), np.empty(ends[-1], np.int32), np.empty(6, np.int64)
    sparse_columns.turn(values, places, ends, *turned)
    np.testing.assert_array_equal(sp.csc_array(turned, shape=(50, 5)).toarray(), X[:, columns].astype(float))
    v, x, weight, out = rng.standard_normal(5), rng.standard_normal(50), rng.random(50), np.empty(50)
    sparse_columns.rows_times(values, places, ends, v, out)
    np.testing.assert_allclose(out, X[:, columns].astype(float) @ v)
    sums = np.empty(5)
    sparse_columns.sum_rows(values, places, ends, x, sums)
    np.testing.assert_allclose(sums, X[:, columns].astype(float).T @ x)
    G = np.full((5, 5), np.nan)
    sparse_columns.gram(values, places, ends, weight, G, 5)
    np.testing.assert_allclose(G, X[:, columns].astype(float).T @ (weight[:, None] * X[:, columns]), atol=1e-12)
    full = X.astype(float)
    np.testing.assert_allclose(data.times(rng.permutation(20.0 * np.ones(20))), full @ (20.0 * np.ones(20)))
    np.testing.assert_allclose(data.transposed_times(x), full.T @ x, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("kind", SINGLE + GROUPED)
def test_descent_on_sparse_columns_is_that_on_their_gram_matrix(kind, ridge, intercept):
    X = sparse_data(p=M, seed=2)
    X[:, 7] = 0.2  # a constant: the intercept's business
    rng = np.random.default_rng(3)
    weight, g, local = rng.random(50) / 50, rng.standard_normal(M), penalty(kind)
    g[7] = 1e-17
    columns = SparseColumns(fl.Problem(sp.csr_array(X), np.ones(50), loss="squared").data)
    columns.add(np.arange(M))
    solver = ColumnDescent(columns, weight, np.full(M, ridge), intercept)
    v = np.zeros(M)
    solver.solve(g, v, local, 1e-10)
    G = X.T @ (weight[:, None] * X) + ridge * np.eye(M)
    if intercept:
        G -= np.outer(weight @ X, weight @ X) / weight.sum()
    best = least(G, g, local)
    assert value(G, g, v, local) <= value(G, g, best, local) + 1e-7
    np.testing.assert_allclose(v, best, atol=1e-2)
    assert np.all(v >= local.lower) and np.all(v <= local.upper)
    assert solver.passes > 0


@pytest.mark.parametrize("kind", ["l1", *GROUPED])
def test_products_solve_an_ill_conditioned_model_on_its_support(kind):
    """Conjugate gradients from the signs of the answer, where a thousand passes of descent are far from it."""
    rng = np.random.default_rng(6)
    n = 2000
    X = np.outer(rng.standard_normal(n), np.ones(M)) + 1e-3 * rng.standard_normal((n, M))
    weight, local = np.full(n, 1 / n), penalty(kind)
    local = LocalPenalty(1e-4 * local.l1, local.lower, local.upper, local.start, 1e-4 * local.norm)
    columns = SparseColumns(fl.Problem(sp.csr_array(X), np.ones(n), loss="squared").data)
    columns.add(np.arange(M))
    model = ColumnDescent(columns, weight, np.zeros(M), False)
    G = X.T @ (weight[:, None] * X)
    g = -G @ rng.standard_normal(M)
    best = least(G, g, local)
    begin = np.where(best == 0.0, 0.0, np.sign(best) * np.maximum(np.abs(best), 1e-3) * rng.uniform(0.5, 2.0, M))
    begin = np.clip(begin, local.lower, local.upper)
    some = local.support(begin)
    v, start, rest, sums = begin.copy(), np.zeros(M), weight * (X @ begin), np.zeros(1)
    newton = SupportProducts(model, some, np.full(some.size, 1.0), local.part(some))
    assert newton.descend(g, start, v, rest, sums, 1e-10, 2000) <= 4000
    assert value(G, g, v, local) <= value(G, g, best, local) + 1e-8 * abs(value(G, g, best, local))
    np.testing.assert_allclose(rest, weight * (X @ v), atol=1e-10)
    assert np.all(v >= local.lower) and np.all(v <= local.upper)


def test_a_pass_at_rest_moves_nothing():
    """It judges v itself; a pass that moves sees less than that where its first columns do the work of all."""
    rng = np.random.default_rng(4)
    X = rng.standard_normal((5, 60))
    columns = SparseColumns(fl.Problem(sp.csr_array(X), np.ones(5), loss="squared").data)
    columns.add(np.arange(60))
    ridge, g, weight = np.full(60, 0.1), X.T @ rng.standard_normal(5), np.full(5, 0.2)
    bend = (X**2).T @ weight + ridge
    v, rest, sums, free = np.zeros(60), np.zeros(5), np.zeros(1), np.full(60, np.inf)

    def visit(moving):
        parts = *columns.by_column, weight, bend, g, ridge, np.zeros(60), 0.0, np.zeros(60), v
        return sparse_columns.descend_columns(*parts, np.zeros(60), -free, free, rest, sums, False, moving)

    at_rest = visit(False)
    assert not v.any() and not rest.any()
    assert at_rest == pytest.approx(np.sum(g**2 / (2 * ridge)))
    assert visit(True) < 0.5 * at_rest
    assert v.any()


# -- sums of losses -----------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["logistic", "squared", "huber", "smoothed-hinge", "squared-hinge", "poisson"])
def test_sums_are_value_gradient_and_curvature(name, weighted):
    rng = np.random.default_rng(7)
    loss = LOSSES[name]()
    n = 1100  # more than two tiles
    score = 3 * rng.standard_normal(n)
    target = np.where(rng.random(n) < 0.5, 1.0, -1.0) if loss.classification else np.round(np.abs(score))
    weight = np.where(rng.random(n) < 0.3, 0.0, rng.random(n)) if weighted else np.zeros(0)
    total, slope, bend = loss.sums(score, target, weight)
    s = weight if weighted else np.ones(n)
    assert total == pytest.approx(float(s @ loss.value(score, target)), rel=1e-12)
    np.testing.assert_allclose(slope, s * loss.gradient(score, target), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(bend, s * loss.curvature(score, target), rtol=1e-12, atol=1e-15)


def test_logistic_sums_far_out():
    margin = np.array([0.0, 1e-8, 1.0, 36.0, 40.0, 690.0, 800.0, 1e5])
    score, target = np.concatenate([margin, -margin]), np.ones(16)
    slope, bend = np.empty(16), np.empty(16)
    with np.errstate(all="raise"):
        total = loss_sums.logistic(score, target, np.zeros(0), slope, bend)
    loss = fl.Logistic()
    assert total == pytest.approx(float(loss.value(score, target).sum()), rel=1e-14)
    np.testing.assert_allclose(slope, loss.gradient(score, target), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(bend, loss.curvature(score, target), rtol=1e-12, atol=1e-300)
    assert np.all(bend > 0)


@njit
def _logistic_conjugate(dual, target, weight, scale):
    return loss_sums.logistic_conjugate(dual, target, weight, scale)


@pytest.mark.parametrize("copies", [1, 32])  # rows that are left over, and rows in vectors
def test_logistic_sums_are_accurate_to_rounding(copies):
    rng = np.random.default_rng(9)
    score = np.concatenate([np.linspace(-800, 800, 1601), rng.uniform(-40, 40, 500), 10.0 ** rng.uniform(-300, 0, 50)])
    wide = score.astype(np.longdouble)
    small = np.exp(-abs(wide))
    value, slope = np.log1p(small) + np.maximum(-wide, 0), -np.where(wide >= 0, small, 1) / (1 + small)
    bend = small / (1 + small) ** 2
    ones, x, h = np.ones(copies), np.empty(copies), np.empty(copies)
    for i, u in enumerate(score):
        for weight in (np.zeros(0), ones):
            total = loss_sums.logistic(np.full(copies, u), ones, weight, x, h)
            assert abs(total - copies * value[i]) <= 1e-15 * copies * value[i] + 1e-300
            assert np.all(abs(x - slope[i]) <= 1e-15 * abs(slope[i]) + 1e-300)
            assert np.all(abs(h - bend[i]) <= 1e-15 * bend[i] + 1e-300)


@pytest.mark.parametrize("copies", [1, 32])
def test_logistic_conjugates_are_accurate_to_rounding(copies):
    rng = np.random.default_rng(10)
    special = [1e-300, 1e-17, 2.0**-53, 0.5, np.sqrt(0.5), 1 - np.sqrt(0.5), 1 - 2.0**-53]
    share = np.concatenate(
        [special, 10.0 ** rng.uniform(-300, 0, 500), rng.random(1000), 1 - 10.0 ** rng.uniform(-16, 0, 300)]
    )
    wide = share.astype(np.longdouble)
    exact = wide * np.log(wide) + (1 - wide) * np.log1p(-wide)
    ones = np.ones(copies)
    for s, value in zip(share, exact, strict=True):
        if 0 < s < 1:
            assert abs(_logistic_conjugate(-s * ones, ones, ones, 1.0) - copies * value) <= -1e-15 * copies * value
    for s in (0.0, 1.0, -1e-16, 1 + 1e-15):  # the last two are outside by rounding
        assert _logistic_conjugate(-s * ones, ones, ones, 1.0) == 0.0
    # weights, signs and scales: s f*(scale x / s) where s > 0, and nothing elsewhere
    target, weight = np.where(rng.random(40) < 0.5, 1.0, -1.0), np.where(rng.random(40) < 0.3, 0.0, rng.random(40))
    dual, on = -target * weight * rng.random(40), weight > 0
    expected = weight[on] @ fl.Logistic().conjugate(0.7 * dual[on] / weight[on], target[on])
    assert _logistic_conjugate(dual, target, weight, 0.7) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("rows", [1, 32])
def test_logistic_sums_of_what_is_not_finite(rows):
    score, ones, x, h = np.zeros(rows), np.ones(rows), np.empty(rows), np.empty(rows)
    score[0] = np.nan
    assert np.isnan(loss_sums.logistic(score, ones, ones, x, h)) and np.isnan(x[0])
    score[0] = -np.inf
    assert loss_sums.logistic(score, ones, ones, x, h) == np.inf
    weight = np.where(score == 0, 1.0, 0.0)
    for bad in (np.nan, np.inf, -np.inf):  # rows without weight play no part
        score[0] = bad
        assert loss_sums.logistic(score, ones, weight, x, h) == pytest.approx((rows - 1) * np.log(2))
        assert x[0] == h[0] == 0.0


def test_rows_of_no_weight_may_overflow():
    loss, weight = fl.Poisson(), np.array([1.0, 0.0, 1.0])
    total, slope, bend = loss.sums(np.array([0.0, 1e4, 1.0]), np.array([1.0, 2.0, 0.0]), weight)
    assert total == pytest.approx(1.0 + np.e)
    assert slope[1] == bend[1] == 0.0


def test_small_helpers():
    rng = np.random.default_rng(8)
    G = rng.standard_normal((150, 150))
    some = np.array([3, 140, 7])
    out = np.zeros((3, 3))
    units.gather(G, some, out)
    np.testing.assert_array_equal(out, G[np.ix_(some, some)])
    out[:] = 0.0
    units.gather_lower(G, some, out)
    np.testing.assert_array_equal(out, np.tril(G[np.ix_(some, some)]))
    total = np.zeros(150)
    units.add_rows(G, some, np.array([1.0, 0.0, -2.0]), 100, total)
    np.testing.assert_allclose(total[:100], (G[3] - 2 * G[7])[:100])
    assert not total[100:].any()
    mirrored = G.copy()
    units.mirror(mirrored, 130)
    np.testing.assert_array_equal(mirrored[:130, :130], mirrored[:130, :130].T)
    np.testing.assert_array_equal(np.tril(mirrored), np.tril(G))
    taken = np.empty((5, 150))
    units.take_columns(G, some, taken, 1)
    np.testing.assert_array_equal(taken[1:4], G[:, some].T)


# -- BLAS and LAPACK by their addresses -------------------------------------------------------------


@njit
def _add_products(where, a, first_a, rows, b, others, length, c, first_c):
    lapack.add_products(where[lapack.GEMM], a, first_a, rows, b, others, length, c, first_c)


@njit
def _solve(where, matrix, size, right):
    failed = lapack.factorise(where[lapack.POTRF], matrix, size)
    if failed == 0:
        lapack.solve_factored(where[lapack.POTRS], matrix, size, right)
    return failed


@pytest.mark.parametrize("seed", range(8))
def test_products_by_address_are_those_of_numpy(seed):
    rng = np.random.default_rng(seed)
    rows, others, length, first_a, first_c = rng.integers(1, 30, 5)
    a = rng.standard_normal((first_a + rows + 2, length + rng.integers(0, 4)))
    b = rng.standard_normal((others + 3, length + rng.integers(0, 4)))
    c = rng.standard_normal((first_c + rows + 1, others + rng.integers(0, 4)))
    expected = c.copy()
    expected[first_c : first_c + rows, :others] += a[first_a : first_a + rows, :length] @ b[:others, :length].T
    _add_products(lapack.addresses(), a, first_a, rows, b, others, length, c, first_c)
    np.testing.assert_allclose(c, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("size", [1, 2, 3, 17, 40, 90])
def test_systems_by_address_are_those_of_numpy(size):
    rng = np.random.default_rng(size)
    A = rng.standard_normal((2 * size + 3, size))
    matrix = np.full((size + 2, size + 5), np.nan)  # what is beyond the system, and above its diagonal, plays no part
    matrix[:size, :size] = np.where(np.tri(size) > 0, A.T @ A, np.nan)
    right = rng.standard_normal(size)
    expected = np.linalg.solve(A.T @ A, right)
    assert _solve(lapack.addresses(), matrix, size, right) == 0
    np.testing.assert_allclose(right, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.tril(matrix[:size, :size]), np.linalg.cholesky(A.T @ A), rtol=1e-9, atol=1e-12)
    assert np.isnan(matrix[size:]).all() and np.isnan(matrix[:, size:]).all()


def test_a_matrix_without_a_factor_is_told():
    matrix, right = np.eye(30), np.ones(30)
    matrix[20, 20] = -1.0
    assert _solve(lapack.addresses(), matrix, 30, right) == 21  # the first minor that is not positive
    np.testing.assert_array_equal(right, 1.0)
