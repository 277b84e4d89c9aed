"""The catalogue: every entry against a conic solver, certified, its structure exact; laws, parameters, bad input."""

from __future__ import annotations

import itertools

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.model_selection import GridSearchCV

import fenchel as fl
from fenchel.penalties import catalogue as cat
from fenchel.penalties import compile_penalty, run_prox
from fenchel.structure import Graph, Grid, Groups, Tree
from fenchel.testing import check_penalty

P = 12
OVERLAP = [[0, 1, 2, 3], [2, 3, 4, 9], [5, 6], [7, 8, 10, 11], [0, 11, 6]]
APART = [[0, 4, 8, 5], [1, 2, 10], [3, 11, 6]]  # 7 and 9 stand in none
EDGES = [(0, 1), (1, 2), (2, 5), (5, 7), (7, 9), (3, 11), (4, 11), (6, 8)]
SIGNED = Graph(EDGES, P, [1, -2, 0.5, 1, -1, 3, 0, 1])
TREE = Tree([-1, 0, 0, 1, 1, 1, 2, 2, 2, 8, 8, 8, 0, -1, 13, 13, 13])  # 12 leaves under two roots
MASK = np.array([[1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1], [1, 1, 0, 0]], dtype=bool)
WEIGHTS = np.array([1, 0, 2, 1, 0.5, 0, 1, 1, 3, 1, 1, 0.2])
BY_FEATURE = np.sqrt(WEIGHTS)


# -- every entry, written again for the conic solver --------------------------------------------------


def l1(w, weights=1.0):
    return cp.norm1(cp.multiply(weights * np.ones(w.size), w))


def groups_of(groups, weights=None, norm=cp.norm2):
    weights = [np.sqrt(len(g)) for g in groups] if weights is None else weights
    return lambda w: sum(k * norm(w[np.asarray(g)]) for g, k in zip(groups, weights, strict=True))


def latent(groups, weights=None):
    weights = [np.sqrt(len(g)) for g in groups] if weights is None else weights

    def expression(w):
        total, cost = 0, 0
        for group, weight in zip(groups, weights, strict=True):
            part = cp.Variable(len(group))
            total += np.eye(w.size)[:, group] @ part
            cost += weight * cp.norm2(part)
        free = np.setdiff1d(np.arange(w.size), np.concatenate(groups))
        return cost, [w == total + np.eye(w.size)[:, free] @ cp.Variable(free.size) if free.size else w == total]

    return expression


def fused(order, ratio=0.0):
    return lambda w: ratio * cp.norm1(w) + (1 - ratio) * cp.norm1(cp.diff(w, order))


def signed(w):
    ends = zip(SIGNED.edges, SIGNED.weights, strict=True)
    return sum(abs(a) * cp.abs(w[i] - np.sign(a) * w[j]) for (i, j), a in ends)


def variation(grid, isotropic=True):
    def expression(w):
        cells = {}
        for i, j in grid.edges:
            cells.setdefault(i, []).append(w[j] - w[i])
        norm = cp.norm2 if isotropic else cp.norm1
        return sum(norm(cp.hstack(differences)) for differences in cells.values())

    return expression


def trace(shape):
    return lambda w: cp.normNuc(cp.reshape(w, shape, order="C"))


def unfoldings(shape):
    def expression(w):
        number = np.arange(w.size).reshape(shape)
        modes = [np.moveaxis(number, mode, 0).reshape(size, -1) for mode, size in enumerate(shape)]
        return sum(cp.normNuc(cp.vstack([w[row] for row in mode])) for mode in modes)

    return expression


def slope(weights):
    # sum_largest is convex, and the sorted norm is a sum of them
    steps = -np.diff(np.append(weights, 0.0))
    return lambda w: sum(step * cp.sum_largest(cp.abs(w), k + 1) for k, step in enumerate(steps) if step > 0)


def oscar(a, b):
    return lambda w: (
        a * cp.norm1(w)
        + b * sum(cp.maximum(cp.abs(w[i]), cp.abs(w[j])) for i, j in itertools.combinations(range(w.size), 2))
    )


def exclusive(groups, weights=None):
    weights = np.ones(len(groups)) if weights is None else weights
    return lambda w: 0.5 * sum(k * cp.square(cp.norm1(w[g])) for g, k in zip(groups, weights, strict=True))


def tree(w):
    below = TREE.groups()
    return sum(np.sqrt(len(group)) * cp.norm2(w[group]) for group in below)


def columns(w, outputs=1, weights=None):
    matrix = cp.reshape(w, (outputs, w.size // outputs), order="C")
    norms = cp.norm2(matrix, axis=0)
    return cp.sum(norms if weights is None else cp.multiply(weights, norms))


# -- what is zero where the structure is there --------------------------------------------------------


def zeros(w):
    return w


def differences(edges, signs=None, sparse=False):
    edges = np.asarray(edges)
    signs = np.ones(len(edges)) if signs is None else np.sign(signs)
    return lambda w: np.concatenate([w[edges[:, 0]] - signs * w[edges[:, 1]], w if sparse else []])


LINE = [(j, j + 1) for j in range(P - 1)]


def sizes(w):
    """Differences of the sorted absolute values, and the values."""
    return np.concatenate([np.diff(np.sort(np.abs(w))), w])


def tops(w):
    """What each entry of a group stays below the largest."""
    return np.concatenate([np.abs(w[g]).max() - np.sort(np.abs(w[g]))[:-1] for g in OVERLAP])


def singular(shape):
    return lambda w: np.linalg.svd(w.reshape(shape), compute_uv=False)


def singular_of_unfoldings(w, shape=(2, 3, 2)):
    w = w.reshape(shape)
    modes = [np.moveaxis(w, mode, 0).reshape(size, -1) for mode, size in enumerate(shape)]
    return np.concatenate([np.linalg.svd(mode, compute_uv=False) for mode in modes])


# name: penalty, alpha, the same for the conic solver, what is zero where the structure is there, outputs
ENTRIES = {
    "lasso": (cat.Lasso(), 0.15, l1, zeros),
    "lasso, weights": (cat.Lasso(WEIGHTS), 0.2, lambda w: l1(w, WEIGHTS), zeros),
    "elastic net": (cat.ElasticNet(0.7), 0.15, lambda w: 0.7 * l1(w) + 0.15 * cp.sum_squares(w), zeros),
    "elastic net, weights": (
        cat.ElasticNet(0.4, WEIGHTS),
        0.4,
        lambda w: 0.4 * l1(w, WEIGHTS) + 0.3 * cp.sum_squares(cp.multiply(np.sqrt(WEIGHTS), w)),
        zeros,
    ),
    "groups": (cat.GroupLasso(APART), 0.52, groups_of(APART), zeros),
    "groups, weights": (cat.GroupLasso(APART, [1, 0, 2]), 0.46, groups_of(APART, [1, 0, 2]), zeros),
    "groups that overlap": (cat.GroupLasso(Groups(OVERLAP, p=P)), 0.1, groups_of(OVERLAP), zeros),
    "latent groups": (cat.LatentGroupLasso(OVERLAP), 0.2, latent(OVERLAP), zeros),
    "latent groups, weights": (
        cat.LatentGroupLasso(OVERLAP[:4], [1, 2, 0, 1.5]),
        0.4,
        latent([[0, 1, 2, 3], [2, 3, 4, 9], [7, 8, 10, 11]], [1, 2, 1.5]),
        zeros,
    ),
    "sparse groups": (cat.SparseGroupLasso(APART, 0.4), 0.2, lambda w: 0.4 * l1(w) + 0.6 * groups_of(APART)(w), zeros),
    "sparse groups, weights": (
        cat.SparseGroupLasso(APART, 0.4, [0, 1, 2], WEIGHTS),
        0.2,
        lambda w: 0.4 * l1(w, WEIGHTS) + 0.6 * groups_of(APART, [0, 1, 2])(w),
        zeros,
    ),
    "sparse groups that overlap": (
        cat.SparseGroupLasso(OVERLAP, 0.5),
        0.1,
        lambda w: 0.5 * l1(w) + 0.5 * groups_of(OVERLAP)(w),
        zeros,
    ),
    "tree": (cat.TreeGroups(TREE), 0.1, tree, zeros),
    "group maximum": (cat.GroupMax(OVERLAP), 0.1, groups_of(OVERLAP, norm=cp.norm_inf), tops),
    "exclusive": (cat.ExclusiveLasso(APART), 0.3, exclusive(APART), zeros),
    "exclusive, overlap": (
        cat.ExclusiveLasso(OVERLAP, [1, 0, 2, 0.5, 1]),
        0.2,
        exclusive(OVERLAP, [1, 0, 2, 0.5, 1]),
        zeros,
    ),
    "fused lasso": (cat.FusedLasso(0.4), 0.15, fused(1, 0.4), differences(LINE, sparse=True)),
    "sparse and piecewise linear": (cat.FusedLasso(0.3, order=2), 0.3, fused(2, 0.3), lambda w: np.diff(w, 2)),
    "trend 1": (cat.TrendFilter(1), 0.15, fused(1), differences(LINE)),
    "trend 2": (cat.TrendFilter(), 0.15, fused(2), lambda w: np.diff(w, 2)),
    "trend 3": (cat.TrendFilter(3), 0.15, fused(3), lambda w: np.diff(w, 3)),
    "line": (cat.TotalVariation(P), 0.15, fused(1), differences(LINE)),
    "image": (cat.TotalVariation((3, 4)), 0.3, variation(Grid((3, 4))), differences(Grid((3, 4)).edges)),
    "image, anisotropic": (
        cat.TotalVariation((3, 4), isotropic=False),
        0.1,
        variation(Grid((3, 4)), False),
        differences(Grid((3, 4)).edges),
    ),
    "volume, sparse": (
        cat.TotalVariation((2, 3, 2), l1_ratio=0.3, weights=WEIGHTS),
        0.2,
        lambda w: 0.3 * l1(w, WEIGHTS) + 0.7 * variation(Grid((2, 3, 2)))(w),
        differences(Grid((2, 3, 2)).edges, sparse=True),
    ),
    "masked": (
        cat.TotalVariation(Grid((4, 4), MASK)),
        0.2,
        variation(Grid((4, 4), MASK)),
        differences(Grid((4, 4), MASK).edges),
    ),
    "graph": (
        cat.GraphFused(EDGES, 0.3),
        0.15,
        lambda w: 0.3 * l1(w) + 0.7 * sum(cp.abs(w[i] - w[j]) for i, j in EDGES),
        differences(EDGES, sparse=True),
    ),
    "signed graph": (
        cat.GraphFused(SIGNED, 0.2),
        0.2,
        lambda w: 0.2 * l1(w) + 0.8 * signed(w),
        differences(SIGNED.edges, SIGNED.weights, sparse=True),
    ),
    "low rank": (cat.LowRank((3, 4)), 0.44, trace((3, 4)), singular((3, 4))),
    "tensor": (cat.TensorTraceNorm((2, 3, 2)), 0.2, unfoldings((2, 3, 2)), singular_of_unfoldings),
    "slope": (cat.Slope(q=0.3), 0.15, slope(norm.isf(0.3 * np.arange(1, P + 1) / (2 * P))), sizes),
    "slope, weights": (cat.Slope(np.arange(P, 0, -1.0) // 3), 0.05, slope(np.arange(P, 0, -1.0) // 3), sizes),
    "oscar": (cat.Oscar(0.5, 0.2), 0.08, oscar(0.5, 0.2), sizes),
    "increasing": (cat.Monotone(), 1.0, lambda w: (0, [cp.diff(w) >= 0]), differences(LINE)),
    "decreasing": (cat.Monotone(False), 1.0, lambda w: (0, [cp.diff(w) <= 0]), differences(LINE)),
    "unpenalised": (
        cat.Unpenalised(cat.LowRank((2, 5)), [3, 7]),
        1.0,
        lambda w: trace((2, 5))(w[[0, 1, 2, 4, 5, 6, 8, 9, 10, 11]]),
        lambda w: singular((2, 5))(np.delete(w, [3, 7])),
    ),
    "several outputs": (cat.MultiTaskLasso(3), 1.05, lambda w: columns(w, 3), zeros, 3),
    "several outputs, groups": (
        cat.MultiTaskLasso(3, [[0, 1], [2, 3]], [0.5, 3]),
        0.78,
        groups_of([[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]], [0.5, 3]),
        zeros,
        3,
    ),
    "several outputs of low rank": (cat.MultiTaskLowRank(3), 0.345, trace((3, 4)), singular((3, 4)), 3),
    "each output": (
        cat.PerOutput(cat.FusedLasso(0.5), 3),
        0.2,
        lambda w: sum(fused(1, 0.5)(w[k : k + 4]) for k in (0, 4, 8)),
        differences([(j, j + 1) for j in range(P - 1) if j % 4 != 3], sparse=True),
        3,
    ),
}
# these cannot be zero in every bit
ROUNDED = {"sparse and piecewise linear", "trend 2", "trend 3", "low rank", "tensor", "unpenalised",
           "several outputs of low rank"}  # fmt: skip


def reference(X, Y, penalty, alpha):
    """Optimal value and coefficients of the squared loss by an interior point method."""
    n, outputs = Y.shape
    w = cp.Variable(X.shape[1] * outputs)
    value = penalty(w)
    value, constraints = value if isinstance(value, tuple) else (value, [])
    scores = X @ cp.reshape(w, (X.shape[1], outputs), order="F")
    problem = cp.Problem(cp.Minimize(cp.sum_squares(scores - Y) / (2 * n) + alpha * value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value, w.value


def data(name="", outputs=1):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, P // outputs))
    truth = [1, 1, 1, 0, 0, 0, 0, 0.5, 0.5, 0.5, -1, 1.5]
    if name == "tensor":
        truth = np.multiply.outer([1, -1], np.multiply.outer([1, 2, 0], [1, 0.5]))
    return X, X @ np.reshape(truth, (outputs, -1)).T + 0.5 * rng.standard_normal((60, outputs))


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("name", ENTRIES)
def test_agrees_with_a_conic_solver_and_has_its_structure(name):
    penalty, alpha, expression, atoms, *outputs = ENTRIES[name]
    X, Y = data(name, *outputs)
    optimum, w = reference(X, Y, expression, alpha)
    problem = fl.Problem(X, Y if outputs else Y[:, 0], loss="squared", penalty=penalty, alpha=alpha)
    result = fl.solve(problem, tol=1e-9, check_every=5, max_epochs=3000)
    assert result.status is fl.Status.CONVERGED
    assert result.relative_gap <= 1e-9
    assert abs(result.primal - optimum) <= 1e-6 * optimum
    # dual <= optimum <= primal, up to the reference's own accuracy
    assert result.dual <= optimum * (1 + 1e-8) and result.primal >= optimum * (1 - 1e-8)
    coef = np.ravel(result.coef)
    assert alpha * penalty.value(coef) == pytest.approx(problem.penalty_value(problem.map @ coef), rel=1e-12)
    expected, found = atoms(w), atoms(coef)
    there, absent = np.abs(expected) < 1e-6, np.abs(expected) > 1e-4
    assert there.any() and absent.any() and np.all(there | absent), np.sort(np.abs(expected))
    assert np.all(np.abs(found[there]) <= (4e-15 if name in ROUNDED else 0.0)), found[there]
    assert np.all(found[absent] != 0)


@pytest.mark.parametrize(
    "penalty",
    [
        cat.LatentGroupLasso(OVERLAP),
        cat.TreeGroups(TREE),
        cat.Slope(),
        cat.SparseGroupLasso(APART, 0.3),
        cat.ExclusiveLasso(APART),
        cat.Unpenalised(cat.TotalVariation((2, 5)), [0, 6]),
    ],
    ids=repr,
)
def test_classification_with_an_intercept_is_certified(penalty):
    X, Y = data()
    problem = fl.Problem(X, np.sign(Y[:, 0]), loss="logistic", penalty=penalty, alpha=0.05, fit_intercept=True)
    result = fl.solve(problem, tol=1e-8)
    assert result.status is fl.Status.CONVERGED and result.relative_gap <= 1e-8


NO_LARGEST_ALPHA = ("exclusive", "exclusive, overlap", "increasing", "decreasing")


@pytest.mark.parametrize("name", ENTRIES)
def test_alpha_max_is_the_threshold(name):
    """Nothing above it, something two per cent below; squares and constraints have none."""
    penalty, _, _, _, *outputs = ENTRIES[name]
    X, Y = data(name, *outputs)
    problem = fl.Problem(X, Y if outputs else Y[:, 0], loss="squared", penalty=penalty)
    largest = problem.alpha_max()
    if name in NO_LARGEST_ALPHA:
        assert largest == np.inf
        return
    above, below = (
        np.abs(problem.map @ np.ravel(fl.solve(problem.with_alpha(share * largest), tol=1e-9).coef)).max()
        for share in (1.001, 0.98)
    )
    assert below > 1e-4 and above < 1e-3 * below


def test_no_alpha_makes_a_square_zero():
    X, Y = data()
    assert fl.Problem(X, Y[:, 0], loss="squared", penalty=cat.ExclusiveLasso(APART)).alpha_max() == np.inf


def test_entries_add_and_multiply():
    X, Y = data()
    parts = [0.5 * cat.SparseGroupLasso(APART, 0.3), 2 * cat.FusedLasso(0.2), fl.NonNegative(), 0.1 * fl.Ridge()]
    penalty = fl.penalties.Sum(*parts)
    w = np.abs(np.random.default_rng(0).standard_normal(P))
    blocks = compile_penalty(penalty, P, 1.0)
    together = sum(block.value(block.matrix @ w) for block in blocks)
    apart = 0.5 * parts[0].part.value(w) + 2 * parts[1].part.value(w) + 0.05 * w @ w
    assert together == pytest.approx(apart, rel=1e-13)
    result = fl.solve(fl.Problem(X, Y[:, 0], loss="squared", penalty=penalty, alpha=0.05), tol=1e-8)
    assert result.status is fl.Status.CONVERGED and np.all(result.coef >= 0)


@pytest.mark.parametrize(
    "penalty", [cat.SparseGroupLasso([[3, 1], [0, 2]]), cat.LatentGroupLasso([[2, 0], [1, 3]]), cat.LowRank((2, 2))]
)
def test_a_quadratic_costs_no_rows(penalty):
    """A penalty that only reorders the features carries the quadratic with it."""
    (block,) = compile_penalty(penalty + 0.3 * fl.Ridge(), 4, 1.0)
    assert block.ridge == 0.3


# -- the penalties with a prox of their own ---------------------------------------------------------


def leaf(penalty, p):
    """The one simple function of an entry, and the features it acts on."""
    ((scale, function, map_),) = penalty.terms(p)
    assert scale == 1
    return function, map_.matrix(p).indices


LEAVES = [
    (cat.Slope(), 6),
    (cat.Slope([3, 3, 1, 1, 0, 0]), 6),
    (cat.Oscar(1, 0.5), 5),
    (cat.Oscar(0, 1), 4),
    (cat.TreeGroups([[0, 1, 2, 3, 4], [0, 1], [2, 3], [1], [5, 6]]), 8),
    (cat.TreeGroups([[0, 1, 2, 3], [0, 1, 2, 3], [1]], [1, 2, 0.3]), 4),
    (cat.SparseGroupLasso([[0, 1, 2], [3, 4]], 0.4), 6),
    (cat.LatentGroupLasso([[0, 1, 2], [2, 3], [3, 4, 0]]), 5),
    (cat.LatentGroupLasso([[0, 1], [1, 2], [2, 3], [4, 5], [5]], [1, 2, 0.5, 1, 0.9]), 7),
    (cat.LatentGroupLasso([[0, 1, 2], [0, 1, 2], [1]]), 3),
    (cat.ExclusiveLasso([[0, 1, 2], [3, 4]]), 5),
    (cat.ExclusiveLasso([[0, 1, 2], [2, 3, 4]], [0.3, 2]), 5),
]


@pytest.mark.parametrize(("penalty", "p"), LEAVES, ids=repr)
def test_laws(penalty, p):
    function, features = leaf(penalty, p)
    check_penalty(function, len(features))


def on_features(penalty, u, step):
    """The compiled prox on all features; those without penalty stay."""
    function, features = leaf(penalty, len(u))
    out = np.array(u)
    out[features] = run_prox(function, out[features], step)
    return out


def shrink(u, threshold):
    length = np.linalg.norm(u)
    return u * max(1 - threshold / length, 0) if length > 0 else u


def slow_slope(u, weights):
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(-np.abs(u), kind="stable")
    level = isotonic_regression(np.abs(u)[order] - weights, increasing=False)
    out = np.empty_like(u)
    out[order] = np.maximum(level, 0)
    return np.sign(u) * out


def slow_overlap(u, groups, weights):
    """Overlapping groups through the dual: u minus parts in the balls, each projected in turn."""
    parts = [np.zeros(len(g)) for g in groups]
    left = u.copy()
    for _ in range(2000):
        moved = 0.0
        for k, group in enumerate(groups):
            at = left[group] + parts[k]
            new = at - shrink(at, weights[k])
            moved = max(moved, np.abs(new - parts[k]).max())
            left[group] += parts[k] - new
            parts[k] = new
        if moved <= 1e-15 * np.abs(u).max():
            break
    return left


def slow_latent(u, groups, weights):
    """Parts v_g by block coordinate descent."""
    parts = [np.zeros(len(g)) for g in groups]
    left = u.copy()
    for _ in range(2000):
        moved = 0.0
        for k, group in enumerate(groups):
            new = shrink(left[group] + parts[k], weights[k])
            moved = max(moved, np.abs(new - parts[k]).max())
            left[group] += parts[k] - new
            parts[k] = new
        if moved <= 1e-15 * np.abs(u).max():
            break
    return u - left


def slow_exclusive(u, weight):
    low, high = 0.0, weight * np.abs(u).sum()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if weight * np.maximum(np.abs(u) - middle, 0).sum() > middle else (low, middle)
    return np.sign(u) * np.maximum(np.abs(u) - high, 0)


law = settings(derandomize=True, deadline=None, max_examples=60)
vectors = st.lists(st.floats(-100, 100, allow_subnormal=False).map(lambda v: round(v, 3)), min_size=7, max_size=7)
powers = st.floats(-2, 2).map(lambda power: 10.0**power)


@law
@given(vectors, st.lists(st.floats(0, 10), min_size=7, max_size=7), powers)
def test_slope_is_isotonic_regression(u, weights, step):
    u, weights = np.array(u), np.sort(weights)[::-1] + 1e-3
    found = on_features(cat.Slope(weights), u, step)
    np.testing.assert_allclose(found, slow_slope(u, step * weights), atol=1e-12 * (1 + np.abs(u).max()))
    assert np.unique(np.abs(found)).size <= np.unique(np.abs(u)).size  # equal stays equal, bit for bit


NESTED = [[0, 1, 2, 3, 4, 5], [0, 1], [2, 3, 4], [3, 4], [6], [5]]


@law
@given(vectors, st.lists(st.floats(0.01, 5), min_size=6, max_size=6), powers)
def test_tree_prox_is_the_prox(u, weights, step):
    u = np.array(u)
    found = on_features(cat.TreeGroups(NESTED, weights), u, step)
    expected = slow_overlap(u, NESTED, step * np.array(weights))
    np.testing.assert_allclose(found, expected, atol=1e-9 * (1 + np.abs(u).max()))


CROSSING = [[0, 1, 2], [2, 3, 4], [4, 5, 0], [6], [1, 3, 5]]


@law
@given(vectors, st.lists(st.floats(0.1, 5), min_size=5, max_size=5), powers)
def test_latent_prox_is_the_prox(u, weights, step):
    """Optimal to rounding: what is taken off lies in all balls, and its inner product with the prox is the norm."""
    u, weights = np.array(u), np.array(weights)
    penalty = cat.LatentGroupLasso(CROSSING, weights)
    found = on_features(penalty, u, step)
    off, blur = (u - found) / step, 1e-14 * np.abs(u).max() / step
    assert max(np.linalg.norm(off[g]) / k for g, k in zip(CROSSING, weights, strict=True)) <= 1 + 1e-12 + 10 * blur
    slack = 1e-12 + 10 * blur * np.linalg.norm(found)
    assert penalty.value(found) == pytest.approx(found @ off, rel=1e-11, abs=slack)


@pytest.mark.parametrize("seed", range(5))
def test_latent_prox_by_block_coordinate_descent(seed):
    rng = np.random.default_rng(seed)
    u, weights = 3 * rng.standard_normal(7), rng.uniform(0.5, 2, 5)
    found = on_features(cat.LatentGroupLasso(CROSSING, weights), u, 1.0)
    np.testing.assert_allclose(found, slow_latent(u, CROSSING, weights), atol=1e-10)


@law
@given(vectors, st.floats(0.01, 5), powers)
def test_exclusive_prox_is_the_prox(u, weight, step):
    u = np.array(u)
    found = on_features(cat.ExclusiveLasso([[0, 2, 4, 6], [1, 3]], [weight, 1]), u, step)
    np.testing.assert_allclose(found[::2], slow_exclusive(u[::2], step * weight), atol=1e-10 * (1 + np.abs(u).max()))
    np.testing.assert_allclose(found[[1, 3]], slow_exclusive(u[[1, 3]], step), atol=1e-10 * (1 + np.abs(u).max()))
    assert found[5] == u[5]


@pytest.mark.parametrize(("p", "count", "size"), [(40, 12, 8), (60, 60, 20), (200, 30, 30)])
@pytest.mark.parametrize("scale", [0.5, 2.0, 50.0])
def test_latent_prox_of_many_overlaps(p, count, size, scale):
    rng = np.random.default_rng(p + count)
    groups = [rng.choice(p, size, replace=False) for _ in range(count)]
    function, features = leaf(cat.LatentGroupLasso(groups), p)
    u = scale * rng.standard_normal(len(features))
    x = run_prox(function, u, 1.0)
    assert function.gauge(u - x) <= 1 + 1e-12
    assert function.value(x) == pytest.approx(x @ (u - x), rel=1e-10, abs=1e-10)
    # the support is a union of groups
    live = np.zeros(p, dtype=bool)
    live[features] = x != 0
    held = np.zeros(p, dtype=bool)
    for group in groups:
        held[group] |= live[group].all()
    np.testing.assert_array_equal(live, held)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e100])
def test_latent_norm_of_any_scale(scale):
    function, _ = leaf(cat.LatentGroupLasso([[0, 1], [1, 2], [2, 3]]), 4)
    u = np.array([1.0, -2.0, 0.0, 1e-3])
    assert function.value(scale * u) == pytest.approx(scale * function.value(u), rel=1e-13)
    assert function.value(0 * u) == 0
    assert np.isnan(function.value(np.array([1.0, np.nan, 0.0, 0.0])))
    np.testing.assert_allclose(
        run_prox(function, scale * u, 0.3 * scale), scale * run_prox(function, u, 0.3), rtol=1e-12
    )


def test_prox_of_an_entry():
    u = np.array([3.0, -1.0, 0.2, 0.25, 2.0])
    np.testing.assert_allclose(cat.Lasso().prox(u, 0.5), [2.5, -0.5, 0, 0, 1.5])
    fused = cat.FusedLasso(0).prox(u, 1.5)
    assert fused[1] == fused[2] == fused[3]


# -- parameters -------------------------------------------------------------------------------------


EVERY = [
    cat.Lasso([1, 2]), cat.ElasticNet(0.3), cat.GroupLasso(APART), cat.LatentGroupLasso(OVERLAP, np.ones(5)),
    cat.SparseGroupLasso(Groups(APART), 0.1), cat.TreeGroups(TREE), cat.GroupMax(APART), cat.ExclusiveLasso(APART),
    cat.FusedLasso(0.2, 2), cat.TrendFilter(3), cat.TotalVariation(Grid((4, 4), MASK)), cat.GraphFused(SIGNED),
    cat.LowRank((3, 4)), cat.TensorTraceNorm((2, 3, 2)), cat.MultiTaskLasso(3), cat.MultiTaskLowRank(3),
    cat.Slope(q=0.2), cat.Oscar(1, 2), cat.Monotone(False), cat.PerOutput(cat.ElasticNet(0.1), 2),
    cat.Unpenalised(cat.Lasso(), [1]),
]  # fmt: skip


def test_every_entry_is_tried():
    assert {type(penalty) for penalty in EVERY} == set(cat.CATALOGUE.values())
    assert {type(entry[0]) for entry in ENTRIES.values()} == set(cat.CATALOGUE.values())


@pytest.mark.parametrize("penalty", EVERY, ids=repr)
def test_parameters_as_scikit_learn_wants_them(penalty):
    copy = clone(penalty)
    assert copy is not penalty and type(copy) is type(penalty)
    params = penalty.get_params(deep=False)
    assert params.keys() == copy.get_params(deep=False).keys()
    again = type(penalty)(**params)
    for name, value in params.items():
        assert getattr(again, name) is value or getattr(again, name) == value
    assert repr(again) == repr(penalty) and repr(penalty).startswith(type(penalty).__name__)
    with pytest.raises(ValueError, match="no parameter 'unheard'"):
        penalty.set_params(unheard=1)


def test_set_params_reaches_inside():
    penalty = cat.PerOutput(cat.Unpenalised(cat.ElasticNet(0.1), [0]), 2)
    assert penalty.get_params()["penalty__penalty__l1_ratio"] == 0.1
    copy = clone(penalty).set_params(penalty__penalty__l1_ratio=0.9, n_outputs=3)
    assert copy.penalty.penalty.l1_ratio == 0.9 and copy.n_outputs == 3
    assert penalty.penalty.penalty.l1_ratio == 0.1
    with pytest.raises(ValueError, match="l1_ratio is 2"):
        copy.set_params(penalty__penalty__l1_ratio=2)


def test_set_params_reaches_the_parts_of_a_sum():
    penalty = cat.ElasticNet(0.1) + (0.5 * cat.Slope()) @ fl.Selection([0, 1], 3) + fl.Ridge()
    params = penalty.get_params()
    assert params["part0__l1_ratio"] == 0.1 and params["part1__part__scale"] == 0.5
    copy = clone(penalty).set_params(part0__l1_ratio=0.9, part1__part__scale=3)
    assert repr(copy.parts[0]) == "ElasticNet(l1_ratio=0.9)" and copy.parts[1].part.scale == 3
    assert params["part0__l1_ratio"] == penalty.parts[0].l1_ratio == 0.1
    assert repr(copy.set_params(part1=fl.L1()).parts[1]) == "L1()"
    assert fl.Ridge().get_params() == fl.NonNegative().get_params() == {}
    for wrong in ("part3", "part2__scale", "part0__alpha"):
        with pytest.raises(ValueError, match="no parameter"):
            penalty.set_params(**{wrong: 1})


class Model(BaseEstimator, RegressorMixin):
    def __init__(self, penalty=None, alpha=0.1):
        self.penalty, self.alpha = penalty, alpha

    def fit(self, X, y):
        problem = fl.Problem(X, y, loss="squared", penalty=self.penalty, alpha=self.alpha)
        self.coef_ = fl.solve(problem, tol=1e-4).coef
        return self

    def predict(self, X):
        return X @ self.coef_


def test_grid_search():
    X, Y = data()
    grid = {"penalty__l1_ratio": [0.1, 0.9], "alpha": [0.01, 0.1]}
    search = GridSearchCV(Model(cat.SparseGroupLasso(Groups(APART, p=P))), grid, cv=3).fit(X, Y[:, 0])
    assert search.best_params_["alpha"] == 0.01
    assert search.best_estimator_.penalty.l1_ratio == search.best_params_["penalty__l1_ratio"]


# -- structure or plain lists; weights by name ------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "plain"),
    [
        (cat.GroupLasso(Groups(OVERLAP, p=P)), cat.GroupLasso(OVERLAP)),
        (cat.GroupLasso([0, 0, 1, 1] * 3), cat.GroupLasso([[0, 1, 4, 5, 8, 9], [2, 3, 6, 7, 10, 11]])),
        (cat.LatentGroupLasso(dict(enumerate(map(tuple, OVERLAP)))), cat.LatentGroupLasso(OVERLAP)),
        (cat.TreeGroups(TREE), cat.TreeGroups(TREE.groups().members)),
        (cat.GraphFused(Graph(EDGES, P)), cat.GraphFused(np.array(EDGES))),
        (cat.GraphFused(SIGNED), cat.GraphFused([(*e, w) for e, w in zip(EDGES, SIGNED.weights, strict=True)])),
        (cat.TotalVariation(Grid((3, 4))), cat.TotalVariation((3, 4))),
        (cat.GroupLasso(Groups(APART, list("abc")), {"b": 0}), cat.GroupLasso(APART, [2, 0, np.sqrt(3)])),
        (cat.ExclusiveLasso(Groups(APART, list("abc")), {"b": 0}), cat.ExclusiveLasso(APART, [1, 0, 1])),
        (cat.MultiTaskLasso(2), cat.MultiTaskLasso(2, [[j] for j in range(6)], np.ones(6))),
        (
            cat.Unpenalised(cat.Slope(), ["c"], names=list("abcdefghijkl")),
            cat.Unpenalised(cat.Slope(), [2]),
        ),
    ],
    ids=repr,
)
def test_structure_or_plain_lists(named, plain):
    for first, second in zip(compile_penalty(named, P, 1.0), compile_penalty(plain, P, 1.0), strict=True):
        assert type(first.function) is type(second.function)
        assert abs(first.matrix - second.matrix).max() == 0
        np.testing.assert_array_equal(first.function.params, second.function.params)


@pytest.mark.parametrize("kind", [cat.LatentGroupLasso, cat.TreeGroups, cat.ExclusiveLasso, cat.GroupLasso])
def test_nothing_penalised(kind):
    assert compile_penalty(kind([[0, 1], [2]], [0, 0]), 4, 1.0) == []


# -- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cat.GroupLasso([[0], []]), "group 'group 1' is empty"),
        (lambda: cat.GroupLasso([[0, 0]]), "group 'group 0' holds feature 0 twice"),
        (
            lambda: cat.GroupLasso([[0, 12]]).terms(P),
            "group 'group 0' holds feature 12; features are numbered from 0 to 11",
        ),
        (lambda: cat.GroupLasso(Groups(OVERLAP, p=13)).terms(P), "describes 13 features, but the penalty acts on 12"),
        (lambda: cat.GroupLasso(APART, [1, 2]).terms(P), "weights has 2 entries; expected 3"),
        (lambda: cat.GroupMax(APART, [1, -2, 0]).terms(P), r"weights\[1\] is -2"),
        (lambda: cat.GroupLasso(APART, {"nobody": 1}).terms(P), "weights names the group 'nobody'"),
        (lambda: cat.GroupLasso(APART, {"group 1": np.nan}).terms(P), r"weights\['group 1'\] is nan"),
        (
            lambda: cat.TreeGroups(Groups(OVERLAP, list("abcde"))).terms(P),
            "groups 'b' and 'a' overlap, and neither",
        ),
        (lambda: cat.TreeGroups(TREE).terms(13), "describes 12 features, but the penalty acts on 13"),
        (lambda: cat.Lasso([1, 2]).terms(3), "weights has 2 entries; expected 3"),
        (lambda: cat.ElasticNet(1.5), "l1_ratio is 1.5"),
        (lambda: cat.ElasticNet("much"), "l1_ratio is 'much'"),
        (lambda: cat.FusedLasso(order=0), "order is 0"),
        (lambda: cat.TrendFilter(4).terms(4), "order is 4, but there are only 4 features"),
        (lambda: cat.TrendFilter(1, [1, 1]).terms(4), "difference_weights has 2 entries; expected 3"),
        (lambda: cat.TotalVariation((3, 5)).terms(P), r"Grid\(3 x 5\) describes 15 features"),
        (lambda: cat.TotalVariation(1).terms(1), "no neighbouring cells"),
        (lambda: cat.GraphFused([(0, 12)]).terms(P), r"edge 0, \(0, 12\), joins 12"),
        (lambda: cat.GraphFused(SIGNED).terms(11), "describes 12 features"),
        (lambda: cat.LowRank((3, 4)).terms(P) and compile_penalty(cat.LowRank((3, 4)), 13, 1.0), "acts on 12"),
        (lambda: cat.LowRank((3,)), "shape is"),
        (lambda: cat.TensorTraceNorm((2, 0, 3)), "shape is 0"),
        (lambda: cat.TensorTraceNorm(5), "two numbers or more"),
        (lambda: cat.TensorTraceNorm((2, 3, 2)).terms(13), "acts on 12 coefficients, but there are 13"),
        (lambda: cat.MultiTaskLasso().terms(P), "does not know the number of outputs"),
        (lambda: cat.MultiTaskLowRank(5).terms(P), "n_outputs = 5, which does not divide the 12"),
        (lambda: cat.MultiTaskLasso(0), "n_outputs is 0"),
        (lambda: cat.PerOutput("lasso", 2), "penalty is 'lasso'"),
        (lambda: cat.Unpenalised(cat.Lasso(), [12]).terms(P), r"features\[0\] is 12"),
        (lambda: cat.Unpenalised(cat.Lasso(), ["z"], list("abc")).terms(3), "'z', which is not among the 3 names"),
        (lambda: cat.Unpenalised(cat.Lasso(), range(3)).terms(3), "holds every feature"),
        (lambda: cat.Slope([1, 2]).terms(2), r"weights\[1\] is 2, above weights\[0\] = 1"),
        (lambda: cat.Slope([0, 0]).terms(2), "the first must be positive"),
        (lambda: cat.Slope(q=0), "q is 0"),
        (lambda: cat.Oscar(-1, 1), "a is -1"),
        (lambda: cat.Oscar(0, 0), "both 0"),
        (lambda: cat.FusedLasso().terms(), "needs the number of features"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()
