"""The objective, its dual, the certificate and alpha_max; and what a Problem refuses."""

from __future__ import annotations

import types

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from cases import random_sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import reference

import fenchel as fl
from fenchel.maps import MadeMap
from fenchel.penalties import snapping
from fenchel.problem import NoCertificate


def build(penalty_name="graph", loss_name="logistic", **options):
    loss = cases.losses()[loss_name]
    penalty, alpha = cases.penalties()[penalty_name]
    weighted = options.pop("weighted", False)
    X, y, weight = cases.data(loss, weighted=weighted)
    return fl.Problem(X, y, loss=loss, penalty=penalty, alpha=alpha, sample_weight=weight, **options)


# -- values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_primal_is_what_it_says(weighted):
    problem = build(weighted=weighted, fit_intercept=True)
    X, y, weight = cases.data(fl.Logistic(), weighted=weighted)
    rng = np.random.default_rng(0)
    w, b = rng.standard_normal(cases.P), 0.7
    losses = np.log1p(np.exp(-y * (X @ w + b)))
    edges = sum(abs(w[i] - w[j]) for i, j in cases.EDGES)
    expected = np.average(losses, weights=weight) + problem.alpha * (np.abs(w).sum() + 2 * edges)
    assert problem.primal(w, b) == pytest.approx(expected, rel=1e-13)


@pytest.mark.filterwarnings("error")
def test_rows_of_weight_zero_may_have_an_infinite_loss():
    X = np.array([[1.0], [1e4]])
    problem = fl.Problem(X, np.ones(2), loss="poisson", penalty=fl.L1(), alpha=0.0, sample_weight=[1.0, 0.0])
    assert problem.primal([0.0]) == pytest.approx(problem.primal([1.0]) + 2.0 - np.e)


def test_primal_of_isotropic_total_variation():
    grid = fl.Gradient((3, 4))
    X = np.eye(12)
    penalty = fl.GroupL2(grid.cells, np.ones(len(grid.cells))) @ grid
    problem = fl.Problem(X, np.zeros(12), loss="squared", penalty=penalty, alpha=1.0)
    w = np.random.default_rng(1).standard_normal((3, 4))
    down = np.vstack([np.diff(w, axis=0), np.zeros((1, 4))])
    right = np.hstack([np.diff(w, axis=1), np.zeros((3, 1))])
    expected = np.sqrt(down**2 + right**2).sum() + 0.5 * np.mean(w**2)
    assert problem.primal(w.ravel()) == pytest.approx(expected, rel=1e-13)


def test_the_paper_splits_its_quadratic_over_the_copies():
    """C (sum of row norms + sum of column norms + 0.01 |W|^2 / 2): half of the quadratic on each copy."""
    from fenchel.datasets import artificial_problem

    problem = artificial_problem(64, side=8)
    w = np.random.default_rng(2).standard_normal(64)
    W = w.reshape(8, 8)
    expected = np.linalg.norm(W, axis=0).sum() + np.linalg.norm(W, axis=1).sum() + 0.005 * (w @ w)
    value = problem.primal(w) - problem.mean_loss(problem.scores(problem.pack(w)))
    assert value == pytest.approx(0.1 / 8 * expected, rel=1e-12)
    assert len(problem.blocks) == 1
    assert problem.blocks[0].ridge == pytest.approx(0.005 * 0.1 / 8)


# -- certificate ------------------------------------------------------------------------------------


@settings(max_examples=60, derandomize=True, deadline=None)
@given(
    loss_name=st.sampled_from(list(cases.losses())),
    penalty_name=st.sampled_from(list(cases.penalties())),
    weighted=st.booleans(),
    intercept=st.booleans(),
    size=st.floats(-6, 3),
    seed=st.integers(0, 10**6),
)
def test_dual_bound_never_passes_the_optimum(loss_name, penalty_name, weighted, intercept, size, seed):
    """Whatever (x, y) it is given: near the optimum, far away, or outside of every domain."""
    problem = build(penalty_name, loss_name, weighted=weighted, fit_intercept=intercept)
    result = fl.solve(problem, tol=1e-9, max_epochs=6000)
    rng = np.random.default_rng(seed)
    state = types.SimpleNamespace(w=result.state["w"], x=result.state["x"], y=result.state["y"])
    low, high = problem._domain()
    state.x = np.clip(state.x + 10.0**size * rng.standard_normal(problem.visits), low, high)
    state.y = state.y + 10.0**size * problem.n * rng.standard_normal(problem.d)
    certificate = problem.certificate(state)
    assert certificate.dual <= result.primal + 1e-10 * max(1, abs(result.primal))
    assert certificate.certified or certificate.reason


@pytest.mark.parametrize("penalty_name", list(cases.penalties()))
@pytest.mark.parametrize("loss_name", ["squared", "logistic", "hinge"])
def test_certificate_from_w_alone(loss_name, penalty_name):
    """Any w gives a true bound through the gradient of the loss, if a feasible point can be made at all."""
    problem = build(penalty_name, loss_name, fit_intercept=True)
    result = fl.solve(problem, tol=1e-8, max_epochs=20_000)
    certificate = problem.certificate(types.SimpleNamespace(w=problem.pack(result.coef, result.intercept)))
    assert certificate.primal == pytest.approx(result.primal)
    assert certificate.dual <= result.primal + 1e-10
    assert certificate.certified or certificate.reason


def test_points_outside_the_domain_prove_nothing():
    problem = build("l1", "hinge")
    state = types.SimpleNamespace(w=np.zeros(problem.size), x=np.full(problem.visits, 5.0), y=np.zeros(problem.d))
    assert problem.certificate(state).dual <= 0.0 + 1e-12


def test_no_certificate_says_why():
    """More unpenalised directions than can be repaired: only the bound of the start holds, and the reason is given."""
    rng = np.random.default_rng(0)
    X = random_sparse((30, 1500), density=0.05, rng=rng, format="csr")
    problem = fl.Problem(X, rng.standard_normal(30), loss="squared", penalty=fl.GroupL2([[0, 1]]), alpha=0.1)
    with pytest.raises(NoCertificate, match="1498 directions carry no penalty"):
        problem.dual_bound(np.zeros(30), np.zeros(2))
    result = fl.solve(problem, max_epochs=5)
    assert result.dual == problem.zero_certificate().dual
    assert "1498 directions" in result.reason
    assert "no newer certificate" in repr(result)
    assert not problem.certificate(types.SimpleNamespace(**result.state)).certified


def test_residual_vanishes_at_the_optimum():
    problem = build("overlapping groups", "squared", fit_intercept=True)
    result = fl.solve(problem, tol=1e-13, max_epochs=5000)
    r = problem.residual(result.state["x"], result.state["y"])
    assert np.linalg.norm(r) <= 1e-5 * np.linalg.norm(problem.combine(result.state["x"]))


# -- other alphas -----------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty_name", list(cases.penalties()))
def test_another_alpha_is_the_same_as_a_new_problem(penalty_name):
    """Bit for bit, whatever the alpha it came from; 0 takes the penalty away, and back."""
    loss = fl.Squared()
    X, y, weight = cases.data(loss, weighted=True)
    penalty, _ = cases.penalties()[penalty_name]

    def build(alpha):
        return fl.Problem(X, y, loss=loss, penalty=penalty, alpha=alpha, sample_weight=weight, fit_intercept=True)

    for start in (0.3, 0.0):
        moved = build(start)
        moved.gram, moved.fingerprint, moved.zero_certificate()  # what is remembered must not be carried over wrongly
        for alpha in (0.07, 0.0, 1 / 3, 1e-310):
            moved, new = moved.with_alpha(alpha), build(alpha)
            assert moved.fingerprint == new.fingerprint
            assert moved.alpha == new.alpha
            w = np.linspace(-1, 1, moved.size)
            assert moved.primal_at(w) == new.primal_at(w)
            assert vars(moved.zero_certificate()) == vars(new.zero_certificate())
            np.testing.assert_array_equal(moved.gram.diagonal, new.gram.diagonal)


def test_another_alpha_shares_the_map_and_its_factor():
    X, y, _ = cases.data(fl.Squared())
    problem = fl.Problem(X, y, loss="squared", penalty=cases.penalties()["graph"][0], alpha=0.1)
    other = problem.with_alpha(0.2)
    assert other.map is problem.map
    assert problem.with_alpha(0.3).gram is not None
    problem.gram.solve(np.ones(cases.P))
    assert problem.with_alpha(0.4).gram is problem.gram
    assert problem.with_alpha(0.0).map is not problem.map


@pytest.mark.parametrize("penalty_name", list(cases.penalties()))
def test_what_is_remembered_of_a_map_is_of_that_map(penalty_name):
    """Points are snapped alike, whatever was snapped before with another alpha; 0 takes the map away, and back."""
    X, y, _ = cases.data(fl.Squared())
    penalty, _ = cases.penalties()[penalty_name]
    moved = fl.Problem(X, y, loss="squared", penalty=penalty, alpha=0.3)
    rng = np.random.default_rng(0)
    for alpha in (0.3, 0.0, 0.1):
        moved, new = moved.with_alpha(alpha), fl.Problem(X, y, loss="squared", penalty=penalty, alpha=alpha)
        w = rng.standard_normal(new.size)
        u = np.where(rng.random(new.d) < 0.5, 0.0, new.map_slots @ w)
        for one, other in zip(moved.snaps(w, u), new.snaps(w, u), strict=True):
            np.testing.assert_array_equal(one, other)
        point = types.SimpleNamespace(w=w)
        assert vars(moved.certificate(point)) == vars(new.certificate(point))


# -- siblings ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss_name", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("penalty_name", list(cases.penalties()))
def test_a_second_fold_is_a_problem_of_its_own(penalty_name, loss_name):
    """Folds share data and map; what was found for the first one neither helps nor harms the second."""
    loss = cases.losses()[loss_name]
    penalty, alpha = cases.penalties()[penalty_name]
    X, y, _ = cases.data(loss)
    whole = fl.Problem(X, y, loss=loss, penalty=penalty, alpha=alpha, fit_intercept=True)
    folds = [np.where(np.arange(whole.n) % 3 == k, 0.0, 1.0) for k in range(2)]
    siblings = [fl.solve(whole.with_weights(weight), tol=1e-6, max_epochs=400) for weight in folds]
    for weight, found in zip(folds, siblings, strict=True):
        alone = fl.Problem(X, y, loss=loss, penalty=penalty, alpha=alpha, fit_intercept=True, sample_weight=weight)
        expected = fl.solve(alone, tol=1e-6, max_epochs=400)
        assert found.epochs == expected.epochs and found.primal == expected.primal and found.dual == expected.dual
        np.testing.assert_array_equal(found.coef, expected.coef)


@pytest.mark.parametrize("penalty_name", ["l1", "overlapping groups", "groups that leave features out", "trend"])
def test_shared_state_knows_no_weights(penalty_name):
    """All that siblings with other weights share is the same, whoever made it."""
    problem = build(penalty_name, fit_intercept=True)
    other = problem.with_weights(np.linspace(0.0, 2.0, problem.n))
    for one in (problem, other):
        fl.solve(one, tol=1e-6)
    fresh = build(penalty_name, fit_intercept=True)
    fl.solve(fresh, tol=1e-6)
    assert other._of_map is problem._of_map
    for name, known in problem._of_map.items():
        assert name in fresh._of_map or name not in vars(fresh), name
        if sp.issparse(known):
            np.testing.assert_array_equal(known.toarray(), fresh._of_map[name].toarray())
        elif isinstance(known, np.ndarray):
            np.testing.assert_array_equal(known, fresh._of_map[name])


def test_a_model_by_squares_has_targets_of_its_own():
    """Rounding of a bound counts by the size of the targets, which are others in a model of the loss."""
    problem = build("l1", "squared", fit_intercept=True)
    fl.solve(problem, tol=1e-6)
    model = problem.squares(1e3 * problem.target, np.ones(problem.n))
    anew = fl.Problem(
        problem.data.arrays[0], 1e3 * problem.target, loss="squared", penalty=fl.L1(), alpha=problem.alpha,
        fit_intercept=True,
    )  # fmt: skip
    assert model._target_size == anew._target_size > 100 * problem._target_size


def test_another_penalty_on_the_same_data():
    problem = build("graph", "squared", fit_intercept=True)
    penalty, alpha = cases.penalties()["overlapping groups"]
    other = problem.with_penalty(penalty, alpha)
    assert other.data is problem.data and problem.penalty is not penalty
    X, y, _ = cases.data(problem.loss)
    anew = fl.Problem(X, y, loss=problem.loss, penalty=penalty, alpha=alpha, fit_intercept=True)
    assert other.fingerprint == anew.fingerprint
    np.testing.assert_array_equal(fl.solve(other, tol=1e-8).coef, fl.solve(anew, tol=1e-8).coef)
    assert problem.with_penalty(None).d == 0
    with pytest.raises(ValueError, match="must be a fenchel penalty"):
        problem.with_penalty("l1")


@pytest.mark.parametrize("name", ["alpha", "weight", "penalty", "loss", "target"])
def test_problems_do_not_change(name):
    problem = build()
    with pytest.raises(AttributeError, match="with_alpha, with_weights or with_penalty"):
        setattr(problem, name, getattr(problem, name))


# -- the map ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("penalty_name", list(cases.penalties()))
def test_products_with_the_map_are_those_of_its_matrix(penalty_name, intercept):
    problem = build(penalty_name, "squared", fit_intercept=intercept)
    rng = np.random.default_rng(0)
    w, y = rng.standard_normal(problem.size), rng.standard_normal(problem.d)
    np.testing.assert_array_equal(problem.penalised(w), problem.map_slots @ w)
    np.testing.assert_array_equal(problem.spread(y), problem.adjoint @ y)


@pytest.mark.parametrize("scale", [1.0, 0.0, 1e-200])
def test_a_map_renames_only_what_the_penalty_sees(scale):
    """A feature whose entry is zero, or whose square is, has no penalty: its slope must be mended."""
    X, y, _ = cases.data(fl.Squared())
    entries = np.where(np.arange(cases.P) == 1, scale, 1.0)
    made = sp.csr_array((entries, np.arange(cases.P)[::-1].copy(), np.arange(cases.P + 1)), shape=(cases.P, cases.P))
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1() @ MadeMap(made), alpha=0.1)
    assert problem.renames == (scale == 1.0)
    assert problem._free_count == problem.gram.unseen.size + problem.gram.blind_count


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_fit_of_single_features_makes_no_matrix_of_their_map(loss):
    X, y, _ = cases.data(cases.losses()[loss])
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1() + fl.Ridge(), alpha=0.1, fit_intercept=True)
    assert fl.solve(problem).status is fl.Status.CONVERGED
    assert not {"map_slots", "adjoint", "gram"} & set(problem._of_map)


# -- alpha_max --------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss_name", ["squared", "logistic", "smoothed-hinge", "huber", "poisson"])
@pytest.mark.parametrize("penalty_name", ["l1", "groups that leave features out", "non-negative l1", "trace norm"])
def test_alpha_max_is_the_threshold_where_separable(penalty_name, loss_name, intercept):
    loss = cases.losses()[loss_name]
    penalty, _ = cases.penalties()[penalty_name]
    X, y, _ = cases.data(loss)
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=intercept)
    top = problem.alpha_max()
    penalised = lambda w: np.abs(problem.map @ w).max()  # noqa: E731
    at = reference(X, y, loss, penalty, 1.01 * top, None, intercept)[1]
    below = reference(X, y, loss, penalty, 0.97 * top, None, intercept)[1]
    assert penalised(at) < 1e-5
    assert penalised(below) > 1e-4


@pytest.mark.parametrize("penalty_name", ["overlapping groups", "graph", "total variation", "trend", "matrix"])
@pytest.mark.parametrize("loss_name", ["squared", "logistic", "hinge"])
def test_alpha_max_is_safe_otherwise(penalty_name, loss_name):
    loss = cases.losses()[loss_name]
    penalty, _ = cases.penalties()[penalty_name]
    X, y, _ = cases.data(loss)
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=True)
    top = problem.alpha_max()
    assert np.isfinite(top)
    _, w, _ = reference(X, y, loss, penalty, 1.001 * top, None, True)
    assert np.abs(problem.map @ w).max() < 1e-4


# -- answers whose structure is exact -----------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 3])
@pytest.mark.parametrize("banded", [True, False])
@pytest.mark.parametrize("p", [9, 80])
def test_zeros_of_a_trend_are_met_by_the_nearest_numbers(order, banded, p, monkeypatch):
    rng = np.random.default_rng(p)
    penalty = fl.L1() @ fl.Difference(p, order=order)
    problem = fl.Problem(rng.standard_normal((5, p)), np.ones(5), loss="squared", penalty=penalty)
    unused = "_by_pivots" if banded else "_by_band"  # neighbours share features, so that a band serves
    monkeypatch.setattr(snapping, unused, lambda *given: None)
    zero, values = np.flatnonzero(rng.random(problem.d) < 0.7), rng.standard_normal(p)
    found, rows = problem._without(zero, values), problem.map[zero].toarray()
    np.testing.assert_allclose(found, values - np.linalg.pinv(rows) @ (rows @ values), atol=1e-9)


def test_rows_that_depend_on_others_are_met_too():
    problem = build("graph")
    rows = np.vstack([problem.map.toarray()[:6], problem.map.toarray()[:2]])
    stacked = fl.Problem(GOOD_X[:, :1] * np.ones(cases.P), GOOD_Y, loss="squared", penalty=fl.L1() @ fl.Matrix(rows))
    values = np.linspace(-1, 2, cases.P)
    found = stacked._without(np.arange(len(rows)), values)
    np.testing.assert_allclose(found, values - np.linalg.pinv(rows) @ (rows @ values), atol=1e-6)


# -- what is refused --------------------------------------------------------------------------------

GOOD_X = np.random.default_rng(0).standard_normal((10, 3))
GOOD_Y = np.array([1.0, -1.0] * 5)


def nan_at(i, j, value=np.nan):
    X = GOOD_X.copy()
    X[i, j] = value
    return X


@pytest.mark.parametrize(
    ("X", "y", "options", "message"),
    [
        (nan_at(4, 1), GOOD_Y, {}, r"X\[4, 1\] is nan"),
        (nan_at(9, 2, -np.inf), GOOD_Y, {}, r"X\[9, 2\] is -inf"),
        (sp.csr_array(nan_at(4, 1)), GOOD_Y, {}, r"X\[4, 1\] is nan"),
        (GOOD_X.astype(object), GOOD_Y, {}, "X has dtype object"),
        (GOOD_X.astype(str), GOOD_Y, {}, "X has dtype <U"),
        (GOOD_X.astype(complex), GOOD_Y, {}, "X has dtype complex"),
        (GOOD_X[:, 0], GOOD_Y, {}, r"X has shape \(10,\)"),
        (np.zeros((0, 3)), np.zeros(0), {}, "there are no rows"),
        (GOOD_X, GOOD_Y[:9], {}, "y has 9 entries, but X has 10 rows"),
        (GOOD_X, np.where(np.arange(10) == 3, np.nan, GOOD_Y), {}, r"y\[3\] is nan"),
        (GOOD_X, np.where(np.arange(10) == 3, 2.0, GOOD_Y), {}, r"y\[3\] is 2; Logistic takes labels -1 and \+1"),
        (GOOD_X, np.ones(10), {}, r"one class only \(\+1\)"),
        (GOOD_X, np.array(["a", "b"] * 5), {}, "y has dtype <U1"),
        (GOOD_X, GOOD_Y, {"loss": "cubic"}, "loss is 'cubic'; known losses: smoothed-hinge"),
        (GOOD_X, GOOD_Y, {"loss": 3}, "loss is 3"),
        (GOOD_X, -np.arange(10.0), {"loss": "poisson"}, r"y\[1\] is -1; Poisson takes counts"),
        (GOOD_X, GOOD_Y, {"alpha": -0.1}, "alpha is -0.1"),
        (GOOD_X, GOOD_Y, {"alpha": np.nan}, "alpha is nan"),
        (GOOD_X, GOOD_Y, {"alpha": None}, "alpha is None"),
        (GOOD_X, GOOD_Y, {"task": np.full(10, 10**9)}, r"task\[0\] is 1000000000"),
        (GOOD_X, np.ma.masked_equal(GOOD_Y, 1), {}, "y is a masked array"),
        (GOOD_X, GOOD_Y, {"penalty": "l1"}, "penalty is 'l1'"),
        (GOOD_X, GOOD_Y, {"penalty": fl.GroupL2([[0, 3]])}, r"groups\[0\]\[1\] is 3; features are numbered 0 to 2"),
        (GOOD_X, GOOD_Y, {"penalty": fl.L1(np.ones(4))}, "4 coordinates, but here there are 3"),
        (GOOD_X, GOOD_Y, {"penalty": fl.L1() @ fl.Difference(5)}, "acts on 5 features, but there are 3"),
        (GOOD_X, GOOD_Y, {"penalty": fl.TraceNorm((2, 2))}, "acts on 4 coordinates"),
        (GOOD_X, GOOD_Y, {"sample_weight": np.ones(9)}, "sample_weight has 9 entries"),
        (GOOD_X, GOOD_Y, {"sample_weight": -np.ones(10)}, r"sample_weight\[0\] is -1"),
        (GOOD_X, GOOD_Y, {"sample_weight": np.zeros(10)}, "sample_weight is zero for every row"),
        (GOOD_X, GOOD_Y, {"sample_weight": np.full(10, np.inf)}, r"sample_weight\[0\] is inf"),
        (GOOD_X, GOOD_Y, {"task": np.zeros(3, dtype=int)}, "task has 3 entries"),
        (GOOD_X, GOOD_Y, {"task": -np.ones(10, dtype=int)}, r"task\[0\] is -1"),
        (GOOD_X, GOOD_Y, {"task": np.zeros(10)}, "task has dtype float64"),
    ],
)
def test_bad_input(X, y, options, message):
    with pytest.raises(ValueError, match=message):
        fl.Problem(X, y, **({"loss": "logistic", "penalty": fl.L1()} | options))


def test_vectors_of_another_length_are_refused():
    problem = build()
    for call in (lambda: problem.scores(np.zeros(2)), lambda: problem.combine(np.zeros(1000))):
        with pytest.raises(ValueError, match="has shape"):
            call()


def test_data_is_not_copied():
    for X in (GOOD_X, GOOD_X.astype(np.float32)):
        assert np.shares_memory(fl.Problem(X, GOOD_Y, loss="logistic").data.arrays[0], X)
    S = sp.csr_array(GOOD_X)
    assert np.shares_memory(fl.Problem(S, GOOD_Y, loss="logistic").data.arrays[0], S.data)


def test_frames_are_taken():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    plain = fl.solve(fl.Problem(GOOD_X, GOOD_Y, loss="logistic", penalty=fl.L1(), alpha=0.01))
    for frame in (pandas.DataFrame(GOOD_X), polars.DataFrame(GOOD_X)):
        series = type(frame)({"y": GOOD_Y})["y"]
        result = fl.solve(fl.Problem(frame, series, loss="logistic", penalty=fl.L1(), alpha=0.01))
        assert result.coef == pytest.approx(plain.coef)


def test_foreseen_slopes_stay_within_the_domain():
    X, y = np.random.default_rng(0).standard_normal((6, 2)), np.array([1.0, 1, 1, -1, -1, -1])
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1())
    x = -0.5 * y
    true = -0.7 * y
    np.testing.assert_array_equal(problem.foreseen(x, -0.1 * y, true), -0.6 * y)
    barely = np.where(np.arange(6) == 0, -0.501, 0.0) * y  # one row is outside by a trace
    np.testing.assert_allclose(problem.foreseen(x, barely, true), np.where(np.arange(6) == 0, -1.0, -0.5) * y)
    assert problem.foreseen(x, -5.0 * y, true) is None
