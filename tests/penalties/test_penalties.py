"""Penalties: every law of `fenchel.testing`, an independent conic solver, the algebra, bad input, one's own."""

import ctypes

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import fenchel as fl
from fenchel.kernels import compiled, values
from fenchel.penalties import PENALTIES, Separable, compile_penalty, run_prox
from fenchel.testing import check_penalty

INF = np.inf
# (penalty, coordinates)
CASES = {
    "l1": [(fl.L1(), 5), (fl.L1(), 1), (fl.L1([1, 0, 2, 1e-3]), 4)],
    "ridge": [(fl.Ridge(), 4)],
    "group-l2": [
        (fl.GroupL2([[0, 1], [2, 3, 4]]), 5),
        (fl.GroupL2([[0], [1], [2]]), 3),
        (fl.GroupL2([[3, 0], [1, 2]]), 4),
        (fl.GroupL2([[0, 3], [1]]), 5),
        (fl.GroupL2([[0, 1], [2, 3, 4]], [0, 2]), 5),
        (fl.GroupL2([[0, 1], [1, 2, 3]]), 4),
    ],
    "group-linf": [
        (fl.GroupLinf([[0, 1], [2, 3, 4]]), 5),
        (fl.GroupLinf([range(7)], [0.3]), 7),
        (fl.GroupLinf([[3, 0], [1, 2]], [10, 0.01]), 4),
        (fl.GroupLinf([[0, 1], [1, 2, 3]]), 4),
    ],
    "trace-norm": [(fl.TraceNorm((3, 4)), 12), (fl.TraceNorm((3, 3)), 9), (fl.TraceNorm((1, 4)), 4)],
    "non-negative": [(fl.NonNegative(), 4)],
    "box": [
        (fl.Box(-1, 2), 4),
        (fl.Box(1, 2), 3),
        (fl.Box(-3, -1), 3),
        (fl.Box([-1, -INF, 0, 1], [INF, 3, 0, INF]), 4),
    ],
}
LEAVES = [case for cases in CASES.values() for case in cases]


def name_of(case):
    penalty, d = case
    return f"{penalty!r}-{d}"


def test_every_registered_penalty_has_a_case():
    assert set(CASES) == set(PENALTIES)
    for name, cases in CASES.items():
        assert all(type(penalty) is PENALTIES[name] for penalty, _ in cases)


@pytest.mark.parametrize("case", LEAVES, ids=name_of)
def test_laws(case):
    check_penalty(*case)


@pytest.mark.parametrize(
    "case",
    [
        (2.5 * fl.L1(), 4),
        (0.3 * fl.GroupLinf([[0, 1], [2, 3]]) + 0.1 * fl.Ridge(), 4),
        (fl.L1([1, 0.5, 0]) + fl.Box([-1, -INF, 0], [INF, 3, 0]) + 0.1 * fl.Ridge(), 3),
        (fl.L1() + fl.NonNegative(), 3),
        (fl.L1() + fl.Box(0.5, 2), 3),
        (fl.GroupL2([[0, 1], [1, 2], [0, 2]]) + 0.3 * fl.Ridge(), 3),
        (fl.GroupL2([[0, 1], [2, 3, 4]]) @ fl.Difference(6) + fl.L1(), 6),
        (0.5 * fl.TraceNorm((2, 3)) + 2 * fl.Ridge(), 6),
        (fl.Box(1, 2) + fl.Ridge(), 3),
        (fl.NonNegative() + 1e-3 * fl.Ridge(), 3),
    ],
    ids=name_of,
)
def test_laws_of_the_compiled_blocks(case):
    check_penalty(*case)


# -- formulas from elsewhere ------------------------------------------------------------------------


def soft(u, threshold):
    return np.sign(u) * np.maximum(np.abs(u) - threshold, 0)


def project_l1_ball(u, radius):
    """By bisection on the threshold."""
    if np.abs(u).sum() <= radius:
        return u
    low, high = 0.0, np.abs(u).max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if soft(u, middle).__abs__().sum() > radius else (low, middle)
    return soft(u, high)


vectors = st.lists(st.floats(-1e3, 1e3), min_size=6, max_size=6).map(np.array)
steps = st.floats(-4, 4).map(lambda power: 10.0**power)
law = settings(derandomize=True, deadline=None, max_examples=60)


@law
@given(vectors, steps)
def test_compiled_prox_of_separable_is_the_formula(u, step):
    weights, low, high = (
        np.array([0, 1, 2, 0.1, 1, 0]),
        np.array([-INF, -INF, -1, 0, 2, -3]),
        np.array([INF, 5, 1, INF, 9, -1]),
    )
    expected = np.clip(soft(u, step * weights), low, high)
    np.testing.assert_allclose(run_prox(Separable(weights, low, high), u, step), expected, rtol=1e-14, atol=1e-300)


@law
@given(vectors, steps)
def test_compiled_prox_of_groups_is_the_formula(u, step):
    groups, weights = [[0, 1, 2], [3], [4, 5]], np.array([1.0, 0.0, 3.0])
    euclid = u.copy()
    largest = u.copy()
    for group, weight in zip(groups, weights, strict=True):
        norm = np.linalg.norm(u[group])
        euclid[group] = u[group] * max(1 - step * weight / norm, 0) if norm > 0 else 0
        largest[group] = u[group] - project_l1_ball(u[group], step * weight)
    slack = 1e-12 * (1 + np.abs(u).max())
    np.testing.assert_allclose(fl.GroupL2(groups, weights).prox(u, step), euclid, atol=slack)
    np.testing.assert_allclose(fl.GroupLinf(groups, weights).prox(u, step), largest, atol=slack)


@law
@given(vectors)
def test_compiled_value_is_the_value(u):
    box = Separable(np.array([0, 1, 2, 0.1, 1, 0]), np.full(6, -500.0), np.array([INF, 900, 900, INF, 900, INF]))
    groups = [[0, 1, 2], [3], [4, 5]]
    for function in (box, fl.GroupL2(groups, [1, 0, 3]).localised(), fl.GroupLinf(groups, [1, 0, 3]).localised()):
        out, params, index = np.empty(1), function.params, function.index
        doubles, longs = ctypes.POINTER(ctypes.c_double), ctypes.POINTER(ctypes.c_int64)
        compiled.compile_prox(getattr(values, function.kernel)).ctypes(
            6, *(a.ctypes.data_as(doubles) for a in (u, out, params)), index.ctypes.data_as(longs)
        )
        assert out[0] == pytest.approx(function.value(u), rel=1e-13)


@law
@given(st.permutations(range(6)), vectors, steps)
def test_groups_may_stand_anywhere(order, u, step):
    """The prox of permuted groups is the permuted prox."""
    order = np.array(order)
    straight, placed = fl.GroupLinf([[0, 1, 2], [3, 4]]), fl.GroupLinf([order[:3], order[3:5]])
    moved = np.empty(6)
    moved[order] = u
    np.testing.assert_array_equal(placed.prox(moved, step)[order], straight.prox(u, step))
    assert placed.value(moved) == pytest.approx(straight.value(u), rel=1e-14)


@pytest.mark.parametrize(
    "penalty", [fl.GroupLinf([[0, 1, 2], [3, 4, 5]]), fl.TraceNorm((2, 3)), fl.GroupL2([range(6)])], ids=repr
)
def test_prox_and_conjugate_against_a_conic_solver(penalty):
    cvxpy = pytest.importorskip("cvxpy")
    rng = np.random.default_rng(0)
    z, centre = cvxpy.Variable(6), cvxpy.Parameter(6)

    def model(v):
        if isinstance(penalty, fl.TraceNorm):
            return cvxpy.normNuc(cvxpy.reshape(v, penalty.shape, order="C"))
        kind = 2 if isinstance(penalty, fl.GroupL2) else "inf"
        return sum(w * cvxpy.norm(v[g], kind) for g, w in zip(penalty.groups, penalty.weights, strict=True))

    step = 0.8
    prox = cvxpy.Problem(cvxpy.Minimize(step * model(z) + cvxpy.sum_squares(z - centre) / 2))
    support = cvxpy.Problem(cvxpy.Maximize(centre @ z), [model(z) <= 1])
    for _ in range(3):
        u = 2 * rng.standard_normal(6)
        assert penalty.value(u) == pytest.approx(float(model(cvxpy.Constant(u)).value), rel=1e-9)
        centre.value = u
        prox.solve(solver="CLARABEL")
        np.testing.assert_allclose(penalty.prox(u, step), z.value, atol=1e-4)
        # of a norm, the gauge of the conjugate's domain is the dual norm
        support.solve(solver="CLARABEL")
        assert penalty.gauge(u) == pytest.approx(support.value, rel=1e-6)


# -- the algebra ------------------------------------------------------------------------------------


def value(penalty, w, alpha=1.0):
    return sum(block.value(block.matrix @ w) for block in compile_penalty(penalty, len(w), alpha))


@pytest.mark.parametrize("seed", range(3))
def test_algebra_is_arithmetic(seed):
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(6)
    M, difference = fl.Matrix(rng.standard_normal((5, 6))), fl.Difference(5)
    groups = fl.GroupL2([[0, 1], [1, 4]], [1.0, 2.0])
    Mw = M.matrix(6) @ w
    l1, l2 = np.abs(w).sum(), 0.5 * w @ w
    assert value(2 * fl.L1(), w) == pytest.approx(2 * l1)
    assert value(fl.L1() * 2, w) == pytest.approx(2 * l1)
    assert value(np.float64(2) * (fl.L1() + 3 * fl.Ridge()), w, 0.5) == pytest.approx(l1 + 3 * l2)
    assert value(fl.L1() @ M, w) == pytest.approx(np.abs(Mw).sum())
    assert value((fl.L1() @ difference) @ M, w) == pytest.approx(np.abs(np.diff(Mw)).sum())
    assert value(fl.L1() @ (difference @ M), w) == pytest.approx(np.abs(np.diff(Mw)).sum())
    both = (fl.L1() + 3 * fl.Ridge() @ difference) @ M
    assert value(2 * both, w) == pytest.approx(2 * np.abs(Mw).sum() + 3 * np.diff(Mw) @ np.diff(Mw))
    on_groups = np.hypot(Mw[0], Mw[1]) + 2 * np.hypot(Mw[1], Mw[4])
    assert value(groups @ M + fl.Ridge(), w) == pytest.approx(on_groups + l2)
    assert value(None, w) == 0
    assert sum([fl.L1(), fl.Ridge()], start=0 * fl.L1()).terms()


def test_what_cannot_be_combined():
    for make in (lambda: fl.L1() + 1, lambda: fl.L1() * fl.Ridge(), lambda: fl.L1() @ 3, lambda: fl.L1() * [1, 2]):
        with pytest.raises(TypeError):
            make()
    for factor in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match="a penalty was multiplied by"):
            factor * fl.L1()


def test_separable_penalties_merge_into_one_block():
    penalty = 2 * fl.L1() + fl.NonNegative() + fl.Box(-1, [4, 5, 6]) + fl.L1([1, 0, 3])
    (block,) = compile_penalty(penalty, 3, 0.5)
    np.testing.assert_allclose(block.function.weights, [1.5, 1.0, 2.5])
    np.testing.assert_array_equal(block.function.lower, [0, 0, 0])
    np.testing.assert_array_equal(block.function.upper, [4, 5, 6])
    assert block.ridge == 0


def test_separable_penalties_behind_different_maps_stay_apart():
    penalty = fl.L1() + fl.L1() @ fl.Difference(3) + fl.NonNegative() @ fl.Difference(3) + fl.Box(0, 1)
    features, differences = compile_penalty(penalty, 3, 1.0)
    assert features.d == 3 and differences.d == 2
    np.testing.assert_array_equal(differences.function.lower, [0, 0])
    np.testing.assert_array_equal(features.function.upper, [1, 1, 1])


@pytest.mark.parametrize(
    ("penalty", "p", "ridge"),
    [
        (fl.L1() + 0.5 * fl.Ridge(), 4, 0.5),
        (0.5 * fl.Ridge() + fl.L1(), 4, 0.5),
        (fl.L1() + 0.5 * fl.Ridge() + 0.25 * fl.Ridge(), 4, 0.75),
        (0.5 * fl.Ridge() + 0.5 * fl.Ridge(), 4, 1.0),
        (fl.TraceNorm((2, 2)) + 0.5 * fl.Ridge(), 4, 0.5),
        ((fl.L1() + 0.5 * fl.Ridge()) @ fl.Difference(4), 4, 0.5),
        (fl.GroupL2([[2, 0], [1, 3]]) + 0.5 * fl.Ridge(), 4, 0.5),
        (fl.GroupL2([[0, 1], [1, 2], [2, 3], [3, 0]]) + 0.5 * fl.Ridge(), 4, 0.25),
        (fl.GroupLinf([[0, 1, 2], [0, 1], [2]]) @ fl.Difference(4) + 0.5 * fl.Ridge() @ fl.Difference(4), 4, 0.25),
    ],
    ids=repr,
)
def test_ridge_merges(penalty, p, ridge):
    (block,) = compile_penalty(penalty, p, 2.0)
    assert block.ridge == pytest.approx(2 * ridge)
    w = np.random.default_rng(0).standard_normal(p)
    parts = sum(2 * scale * leaf.value(map_.matrix(p) @ w) for scale, leaf, map_ in penalty.terms())
    assert value(penalty, w, 2.0) == pytest.approx(parts, rel=1e-12)


@pytest.mark.parametrize(
    "penalty",
    [
        fl.GroupL2([[0, 1], [1, 2], [2, 3]]) + fl.Ridge(),  # features 1 and 2 have two copies, 0 and 3 one
        fl.GroupL2([[0, 1], [2]]) + fl.Ridge(),  # feature 3 has none
        fl.L1() @ fl.Difference(4) + fl.Ridge(),
    ],
    ids=repr,
)
def test_ridge_that_cannot_merge_has_its_own_block(penalty):
    _, ridge = compile_penalty(penalty, 4, 2.0)
    assert ridge.ridge == 2.0 and ridge.d == 4
    w = np.random.default_rng(0).standard_normal(4)
    parts = sum(2 * leaf.value(map_.matrix(4) @ w) for _, leaf, map_ in penalty.terms())
    assert value(penalty, w, 2.0) == pytest.approx(parts, rel=1e-12)


def test_what_has_no_weight_is_pruned():
    assert compile_penalty(0 * fl.L1() + 0 * fl.Ridge() + 0 * fl.TraceNorm((1, 3)), 3, 1.0) == []
    assert compile_penalty(fl.L1() + fl.GroupL2([[0, 1]]) + fl.Ridge(), 3, 0.0) == []
    assert compile_penalty(fl.L1([0, 0, 0]), 3, 1.0) == []
    assert compile_penalty(fl.L1() @ fl.Difference(1), 1, 1.0) == []
    assert compile_penalty(fl.Ridge() @ fl.Difference(1), 1, 1.0) == []
    (block,) = compile_penalty(fl.L1([0, 2, 0]), 3, 1.0)
    assert block.matrix.toarray().tolist() == [[0, 1, 0]] and block.function.weights.tolist() == [2]
    (block,) = compile_penalty(fl.GroupL2([[0, 1], [2], [1, 2]], [1, 0, 2]), 3, 1.0)
    np.testing.assert_array_equal(block.matrix.toarray(), np.eye(3)[[0, 1, 1, 2]])
    assert block.function.weights.tolist() == [1, 2]
    (block,) = compile_penalty(fl.Box([-INF, 0], [INF, 1]), 2, 1.0)
    assert block.matrix.toarray().tolist() == [[0, 1]]
    w = np.array([1.0, -2.0, 3.0])
    assert value(fl.GroupL2([[0, 1], [2], [1, 2]], [1, 0, 2]), w) == pytest.approx(5**0.5 + 2 * 13**0.5)


def test_a_constraint_is_not_scaled_away():
    for alpha in (0.0, 0.3):
        (block,) = compile_penalty(fl.NonNegative(), 2, alpha)
        assert block.value(np.array([-1.0, 0.0])) == INF and block.value(np.ones(2)) == 0


# -- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fl.L1([1, -2, 3]), r"weights\[1\] is -2; it must be at least 0, or infinite"),
        (lambda: fl.L1([1, np.nan]), r"weights\[1\] is nan"),
        (lambda: fl.L1([-INF]), r"weights\[0\] is -inf"),
        (lambda: fl.L1(2.0), r"weights has dtype float64 and shape \(\)"),
        (lambda: fl.L1([[1.0]]), r"weights has dtype float64 and shape \(1, 1\)"),
        (lambda: fl.L1(np.array([None])), "weights has dtype object"),
        (lambda: fl.L1(["a"]), "weights has dtype <U1"),
        (lambda: fl.L1(np.array([1 + 1j])), "weights has dtype complex128"),
        (lambda: fl.Box(1, 0), r"lower\[0\] is 1, above upper\[0\] = 0"),
        (lambda: fl.Box([0, 0, 3], [1, 1, 2]), r"lower\[2\] is 3, above upper\[2\] = 2"),
        (lambda: fl.Box(0, [1, -1]), r"lower\[1\] is 0, above upper\[1\] = -1"),
        (lambda: fl.Box(np.nan, 1), "lower.* (nan|NaN)"),
        (lambda: fl.Box(0, [1, np.nan]), "upper.* (nan|NaN)"),
        (lambda: fl.Box([[0]], 1), r"lower has .*shape \(1, 1\)"),
        (lambda: fl.Box([0, 0], [1, 1, 1]), "lower has 2 entries and upper 3"),
        (lambda: fl.Box(INF, INF), "lower"),
        (lambda: fl.Box([0, -INF], [1, -INF]), r"upper"),
        (lambda: fl.Box("a", 1), "lower"),
        (lambda: fl.TraceNorm((3,)), r"shape is \(3,\); it must be two positive numbers"),
        (lambda: fl.TraceNorm((3, 0)), r"shape is \(3, 0\)"),
        (lambda: fl.TraceNorm((2.5, 3)), "shape"),
        (lambda: fl.TraceNorm(5), "shape"),
    ],
)
def test_bad_constructor(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("kind", [fl.GroupL2, fl.GroupLinf])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([],), "groups is empty"),
        (([[0, 1], []],), r"groups\[1\] is empty; drop it or give it features"),
        (([[0], [1, -2]],), r"groups\[1\] holds -2; features are numbered from 0"),
        (([[0], [1, 2, 1]],), r"groups\[1\] names feature 1 twice"),
        (([[0], [1.5]],), r"groups\[1\] has dtype float64"),
        (([[0], ["a"]],), r"groups\[1\] has dtype <U1"),
        (([[0], [[1, 2]]],), r"groups\[1\] has dtype int64 and shape \(1, 2\)"),
        (([[0], np.array([True, False])],), r"groups\[1\] has dtype bool"),
        (([0, 1],), r"groups\[0\] has dtype int64 and shape \(\)"),
        (([[0], [1]], [1.0]), "weights has 1 entries; expected 2"),
        (([[0], [1]], [1.0, -1.0]), r"weights\[1\] is -1"),
        (([[0], [1]], [np.nan, 1.0]), r"weights\[0\] is nan"),
    ],
)
def test_bad_groups(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(*arguments)


@pytest.mark.parametrize(
    ("penalty", "message"),
    [
        (fl.GroupL2([[0], [1, 5]]), r"groups\[1\]\[1\] is 5; features are numbered 0 to 3"),
        (fl.L1([1, 2, 3]), "has weights for 3 coordinates, but here there are 4"),
        (fl.L1([1, 2, 3, 4]) @ fl.Difference(4), "4 coordinates, but here there are 3"),
        (fl.Box([0, 0], 1), "acts on 2 coordinates, but here there are 4"),
        (fl.TraceNorm((2, 3)), r"TraceNorm\(\(2, 3\)\) acts on 6 coordinates, but here there are 4"),
        (fl.L1() @ fl.Difference(5), "acts on 5 features, but there are 4"),
        (fl.Box(2, 3) + fl.Box(0, [4, 4, 1, 4]), "the bounds on coordinate 2 exclude each other: 2 > 1"),
        (fl.Box(-3, -1) + fl.NonNegative(), "the bounds on coordinate 0 exclude each other"),
    ],
    ids=repr,
)
def test_penalty_that_does_not_fit_the_features(penalty, message):
    with pytest.raises(ValueError, match=message):
        fl.Problem(np.eye(4), np.ones(4), loss="squared", penalty=penalty)


def test_wrong_length_is_refused_and_not_read_past_the_end():
    for penalty, u in (
        (fl.L1([1.0]), np.ones(5)),
        (fl.L1([1.0, 2.0]), np.ones(1)),
        (fl.Box([0, 0], 1), np.ones(3)),
        (fl.TraceNorm((2, 2)), np.ones(5)),
        (fl.GroupL2([[0, 4]]), np.ones(3)),
    ):
        for method in (lambda v, q=penalty: q.prox(v, 1.0), penalty.value, penalty.conjugate, penalty.gauge):
            with pytest.raises((ValueError, IndexError)):
                method(u)


def test_overlapping_groups_say_why_they_have_no_prox():
    overlap = fl.GroupL2([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="overlapping groups has no closed form"):
        overlap.prox(np.ones(3), 1.0)
    with pytest.raises(ValueError, match="overlapping groups has no closed form"):
        overlap.conjugate(np.ones(3))


def test_an_abstract_penalty_says_what_is_missing():
    class Empty(fl.Penalty):
        pass

    for call in (Empty().value, Empty().conjugate, Empty().gauge, lambda u: Empty().prox(u, 1.0)):
        with pytest.raises(TypeError, match="Empty must define"):
            call(np.ones(2))


def test_lists_are_taken():
    for penalty, d in LEAVES:
        overlaps = "copies" in dir(penalty) and len(set(penalty.copies)) < len(penalty.copies)
        u = [0.5] * d
        assert np.isfinite(penalty.value(u)) or isinstance(penalty, fl.Box)
        if not overlaps:
            assert penalty.prox(u, 1.0).shape == (d,)
            assert penalty.gauge(u) >= 0
            assert penalty.conjugate([0.0] * d) <= 3


@pytest.mark.parametrize("slack", [1e-14, 1e-6])
def test_gauge_and_conjugate_agree_on_a_constraint(slack):
    """A sign broken by rounding, or by more: either both call the point feasible, or neither."""
    penalty, y = fl.NonNegative(), np.array([-1.0, slack])
    assert np.isfinite(penalty.conjugate(y)) == (penalty.gauge(y) <= 1)


# -- a penalty of one's own -------------------------------------------------------------------------


class Mine(fl.Penalty):
    """The l1 norm, written again."""

    def value(self, u):
        return float(np.abs(u).sum())

    def conjugate(self, y):
        return 0.0 if self.gauge(y) <= 1 + 1e-12 else INF

    def gauge(self, y):
        return float(np.abs(y).max(initial=0.0))

    def units(self, d):
        return np.arange(d)


class Python(Mine):
    def prox(self, u, step):
        return soft(u, step)


class Compiled(Mine):
    @njit
    def numba_prox(u, step):
        for j in range(u.size):
            u[j] = np.sign(u[j]) * max(abs(u[j]) - step[j], 0.0)


class CompiledForInstance(Mine):
    """scale times the l1 norm; the numba function closes over the scale, so it belongs to the instance."""

    def __init__(self, scale):
        self.scale = scale

        @njit
        def prox(u, step):
            for j in range(u.size):
                u[j] = np.sign(u[j]) * max(abs(u[j]) - scale * step[j], 0.0)

        self.numba_prox = prox

    def value(self, u):
        return self.scale * Mine.value(self, u)

    def gauge(self, y):
        return Mine.gauge(self, y) / self.scale


class Euclidean(fl.Penalty):
    """The euclidean norm of all coordinates: one unit."""

    def value(self, u):
        return float(np.linalg.norm(u))

    def prox(self, u, step):
        norm = np.linalg.norm(u)
        return u * max(1 - np.ravel(step)[0] / norm, 0) if norm > 0 else u

    def conjugate(self, y):
        return 0.0 if self.gauge(y) <= 1 + 1e-12 else INF

    def gauge(self, y):
        return float(np.linalg.norm(y))


OWN = {
    "python": (Python, fl.L1),
    "numba": (Compiled, fl.L1),
    "numba-instance": (lambda: CompiledForInstance(2.0), lambda: 2 * fl.L1()),
    "one unit": (Euclidean, lambda: fl.GroupL2([range(5)], [1.0])),
}


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(7)
    X = rng.standard_normal((50, 5))
    return X, X @ [2.0, 0.0, -1.0, 0.0, 0.5] + 0.3 * rng.standard_normal(50)


@pytest.mark.parametrize("name", OWN)
def test_own_penalty_passes_the_checks(name):
    check_penalty(OWN[name][0](), 5)


@pytest.mark.parametrize("form", ["plain", "scaled and ridge", "mapped"])
@pytest.mark.parametrize("name", OWN)
def test_own_penalty_in_solve(name, form, small):
    M = fl.Matrix(np.triu(np.ones((5, 5))))

    def build(penalty):
        return {"plain": penalty, "scaled and ridge": 0.5 * penalty + 0.1 * fl.Ridge(), "mapped": penalty @ M}[form]

    mine, built_in = (
        fl.solve(fl.Problem(*small, loss="squared", penalty=build(make()), alpha=0.1), tol=1e-9) for make in OWN[name]
    )
    assert mine.relative_gap <= 1e-9 and built_in.relative_gap <= 1e-9
    np.testing.assert_allclose(mine.coef, built_in.coef, atol=1e-4)
    assert mine.primal == pytest.approx(built_in.primal, rel=2e-9)


@pytest.mark.parametrize("first_good", [0, 3])
def test_exception_in_own_prox_surfaces(first_good, small):
    class Broken(Python):
        calls = 0

        def prox(self, u, step):
            Broken.calls += 1
            if Broken.calls > first_good:
                raise LookupError("inside my prox")
            return super().prox(u, step)

    with pytest.raises(LookupError, match="inside my prox"):
        fl.solve(fl.Problem(*small, loss="squared", penalty=Broken(), alpha=0.1))


def test_own_prox_of_the_wrong_shape_surfaces(small):
    class Short(Python):
        def prox(self, u, step):
            return soft(u, step)[:-1]

    with pytest.raises(ValueError, match="broadcast"):
        fl.solve(fl.Problem(*small, loss="squared", penalty=Short(), alpha=0.1))


def test_numba_prox_is_compiled_once():
    from fenchel.penalties import compiled_prox

    penalty = Compiled()
    assert compiled_prox(penalty) is compiled_prox(penalty)


# -- the checks find what is wrong ------------------------------------------------------------------


def wrong(base, **methods):
    return type("Wrong", (base,), methods)()


WRONG = {
    "value not convex": (wrong(Python, value=lambda self, u: float(np.sqrt(np.abs(u)).sum())), "convex"),
    "value is NaN": (wrong(Python, value=lambda self, u: float(np.log(u).sum())), "value"),
    "threshold too small": (wrong(Python, prox=lambda self, u, step: soft(u, 0.999999 * step)), "prox minimises"),
    "threshold squared": (wrong(Python, prox=lambda self, u, step: soft(u, step**2)), "prox minimises"),
    "hard threshold": (wrong(Python, prox=lambda self, u, step: u * (np.abs(u) > step)), "prox minimises"),
    "identity": (wrong(Python, prox=lambda self, u, step: u), "prox minimises"),
    "shared memory": (wrong(Python, prox=lambda self, u, step: np.multiply(u, 0, out=u) + 0.0), "prox"),
    "one step for all": (wrong(Python, prox=lambda self, u, step: soft(u, np.ravel(step)[0])), "unit by unit"),
    "units of a joint norm": (wrong(Euclidean, units=lambda self, d: np.arange(d)), "unit by unit|sum over units"),
    "labels missing": (wrong(Python, units=lambda self, d: np.zeros(1, dtype=int)), "one unit label per coordinate"),
    "conjugate of a ball too large": (
        wrong(Python, conjugate=lambda self, y: 0.0 if self.gauge(y) <= 1.001 else INF),
        "infinite where the gauge is above 1",
    ),
    "gauge too small": (
        wrong(
            Python,
            gauge=lambda self, y: 0.99 * Mine.gauge(self, y),
            conjugate=lambda self, y: 0.0 if Mine.gauge(self, y) <= 1 + 1e-12 else INF,
        ),
        "gauge is below 1",
    ),
    "ball too large": (wrong(Python, gauge=lambda self, y: 0.5 * Mine.gauge(self, y)), "Fenchel-Young|without bound"),
    "ball too small": (wrong(Python, gauge=lambda self, y: 2 * Mine.gauge(self, y)), "Moreau"),
    "wrong dual norm": (wrong(Python, gauge=lambda self, y: float(np.abs(y).sum())), "Moreau"),
    "gauge of a square": (wrong(Python, gauge=lambda self, y: Mine.gauge(self, y) ** 2), "multiple"),
    "conjugate below": (wrong(Python, conjugate=lambda self, y: Mine.conjugate(self, y) - 1e-6), "Fenchel-Young"),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_check_penalty_names_the_broken_law(name):
    penalty, law_name = WRONG[name]
    with pytest.raises(AssertionError, match=f"Wrong breaks the law .*({law_name})"):
        check_penalty(penalty, 4)


def test_a_block_keeps_its_matrix_sparse():
    (block,) = compile_penalty(fl.GroupL2([[0, 1], [1, 2]]) @ fl.Difference(4), 4, 1.0)
    assert isinstance(block.matrix, sp.csr_array) and block.matrix.shape == (4, 4)


def test_default_group_weights_follow_the_groups():
    penalty = fl.GroupL2([[0, 1], [2]])
    penalty.set_params(groups=[[0, 1, 2, 3]])
    assert penalty.weights == pytest.approx([2.0])
    fixed = fl.GroupL2([[0, 1], [2]], weights=[3.0, 1.0])
    assert fixed.get_params()["weights"] == pytest.approx([3.0, 1.0])


# -- many groups, and many alphas -------------------------------------------------------------------


@pytest.mark.parametrize("kind", [fl.GroupL2, fl.GroupLinf])
def test_groups_from_a_matrix_lists_and_arrays_are_the_same(kind):
    table = np.random.default_rng(0).permutation(300).reshape(100, 3)
    u = np.random.default_rng(1).standard_normal(300)
    (first,) = compile_penalty(kind(table), 300, 0.7)
    for groups in (table.tolist(), list(table), [tuple(row) for row in table.astype(np.uint16)]):
        (other,) = compile_penalty(kind(groups), 300, 0.7)
        assert (first.matrix != other.matrix).nnz == 0
        assert other.value(other.matrix @ u) == first.value(first.matrix @ u)
        np.testing.assert_array_equal(other.function.index, first.function.index)
    assert [group.tolist() for group in kind(table).groups] == table.tolist()


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([[0, 1]] * 5000 + [[2, 2]], r"groups\[5000\] names feature 2 twice"),
        ([[0, 1]] * 5000 + [[2, -3]], r"groups\[5000\] holds -3"),
        ([[0, 1]] * 5000 + [[]], r"groups\[5000\] is empty"),
        ([[0, 1]] * 5000 + [[0.5]], r"groups\[5000\] has dtype float64"),
        (np.ones((2, 2)), "dtype float64"),
        (np.zeros((0, 2), dtype=int), "groups is empty"),
        (np.zeros((2, 0), dtype=int), r"groups\[0\] is empty"),
    ],
)
def test_one_wrong_group_among_many_is_named(groups, message):
    with pytest.raises(ValueError, match=message):
        fl.GroupL2(groups)


def test_a_group_beyond_the_features_is_named():
    with pytest.raises(ValueError, match=r"groups\[5000\]\[1\] is 9; features are numbered 0 to 7"):
        compile_penalty(fl.GroupL2([[0, 1]] * 5000 + [[2, 9]]), 8, 1.0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_behind_a_plain_matrix(kind):
    M = np.array([[1.0, -1.0, 0.0], [0.0, 2.0, 1.0]])
    w = np.array([1.0, 3.0, -4.0])
    problem = fl.Problem(np.zeros((1, 3)), np.zeros(1), loss="squared", penalty=fl.L1() @ kind(M), alpha=1.0)
    assert problem.primal(w) == 4.0
    with pytest.raises(ValueError, match=r"M has dtype .* and shape \(3,\); it must be a real matrix"):
        fl.L1() @ w
    with pytest.raises(TypeError):
        fl.L1() @ "M"
