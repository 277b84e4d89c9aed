"""The prox of every penalty against a conic solver, its laws, and its uses."""

from __future__ import annotations

import cases
import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import penalty_expression
from sklearn.exceptions import ConvergenceWarning

import fenchel as fl
from fenchel.kernels.prox import structured_prox
from fenchel.proximal import StructuredProx, prox

P = cases.P
PENALTIES = {name: penalty for name, (penalty, _) in cases.penalties().items()} | {
    "scaled features": fl.L1() @ fl.Matrix(np.diag(np.linspace(-2, 3, P))),
    "groups of scaled features": fl.GroupL2(cases.APART) @ fl.Matrix(np.diag(np.linspace(0.5, 3, P))),
    "groups, maxima and a quadratic": fl.GroupL2(cases.OVERLAP) + 0.3 * fl.GroupLinf(cases.APART) + 0.2 * fl.Ridge(),
    "groups and bounds": fl.GroupL2(cases.OVERLAP) + fl.NonNegative(),
    "quadratic of differences": fl.L1() + 3.0 * (fl.Ridge() @ fl.Difference(P)),
    "edges beside groups and bounds": fl.L1() @ fl.Difference(P) + fl.GroupL2(cases.APART) + fl.NonNegative(),
    "edges beside scaled features": fl.L1() @ fl.Difference(P) + fl.L1() @ fl.Matrix(np.diag(np.linspace(-2, 3, P))),
    "two differences": fl.L1() @ fl.Difference(P) + 0.5 * (fl.L1() @ fl.Difference(P, order=2)),
}
CLOSED = ("l1", "weighted elastic net", "groups that leave features out", "trace norm", "non-negative", "box", "ridge")


def objective(w, v, penalty, step):
    problem = fl.Problem(np.eye(len(v)), v, loss=fl.Squared(), penalty=penalty, alpha=step / len(v))
    return len(v) * problem.primal(w)


def reference_prox(v, penalty, step):
    w = cp.Variable(len(v))
    value, constraints = penalty_expression(penalty, w)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w - v) / 2 + step * value), constraints)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return w.value, problem.value


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
@pytest.mark.parametrize("step", [0.02, 0.4, 3.0])
@pytest.mark.parametrize("name", PENALTIES)
def test_agrees_with_conic_solver(name, step):
    penalty = PENALTIES[name]
    v = np.random.default_rng(len(name)).standard_normal(P)
    w, info = prox(v, penalty, step, return_info=True)
    expected, optimum = reference_prox(v, penalty, step)
    assert info.converged
    assert info.gap <= 1e-10
    value = objective(w, v, penalty, step)
    assert value <= optimum + 1e-8 * (1 + abs(optimum))
    # 1/2 |w - prox|^2 is at most what the objective is above the optimum, for either of the two
    np.testing.assert_allclose(w, expected, atol=1e-4)
    assert (info.iterations == 0) == (name in CLOSED or name in ("non-negative l1", "scaled features"))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PENALTIES)), st.floats(0.01, 10), st.integers(0, 10_000))
def test_firmly_nonexpansive(name, step, seed):
    a, b = np.random.default_rng(seed).standard_normal((2, P)) * 10 ** np.random.default_rng(seed).uniform(-1, 1)
    at_a, at_b = (prox(point, PENALTIES[name], step, max_iter=50_000) for point in (a, b))
    moved = at_a - at_b
    size = 1 + np.abs(a).max() + np.abs(b).max()
    assert moved @ moved <= moved @ (a - b) + 1e-4 * size**2


def test_simple_penalties_equal_their_own_prox():
    v = np.random.default_rng(0).standard_normal(P)
    for penalty in (
        fl.L1(),
        fl.Ridge(),
        fl.GroupL2(cases.APART),
        fl.NonNegative(),
        fl.Box(-0.2, 0.5),
        fl.TraceNorm((3, 4)),
    ):
        np.testing.assert_allclose(prox(v, penalty, 0.3), penalty.prox(v, 0.3), atol=1e-15)


def test_quadratic_of_differences_is_a_linear_system():
    v = np.random.default_rng(0).standard_normal(P)
    D = fl.Difference(P).matrix(P).toarray()
    np.testing.assert_allclose(
        prox(v, fl.Ridge() @ fl.Difference(P), 2.0, tol=1e-14), np.linalg.solve(np.eye(P) + 2.0 * D.T @ D, v), atol=1e-7
    )


def test_step_zero_and_no_effect():
    v = np.random.default_rng(0).standard_normal(P)
    np.testing.assert_array_equal(prox(v, fl.GroupL2(cases.OVERLAP), 0.0), v)
    np.testing.assert_array_equal(prox(v, 0.0 * fl.L1(), 1.0), v)
    np.testing.assert_array_equal(prox(np.zeros(P), fl.GroupL2(cases.OVERLAP), 1.0), 0.0)


# -- blocks that are simple in w, beside edges ---------------------------------------------------------


@pytest.mark.parametrize(
    ("penalty", "without"),
    [
        (fl.L1() + fl.L1() @ fl.Difference(P), [True, False]),
        (fl.L1() @ fl.Difference(P) + fl.NonNegative(), [False, True]),
        # of two on the same features one: the other has dual variables
        (fl.L1() + fl.GroupL2(cases.APART) + fl.L1() @ fl.Difference(P), [True, False, False]),
        # features in several groups, and rows that differ within a group
        (fl.GroupL2(cases.OVERLAP) + fl.L1() @ fl.Difference(P), [False, False]),
        (fl.GroupL2([range(P)]) @ fl.Matrix(np.diag(np.linspace(1, 2, P))) + fl.L1() @ fl.Difference(P), [False] * 2),
        # nothing joins features
        (fl.L1() + fl.GroupL2(cases.OVERLAP), [False, False]),
    ],
)
def test_blocks_without_dual_variables(penalty, without):
    v = np.random.default_rng(0).standard_normal(P)
    problem = fl.Problem(np.eye(P), v, loss=fl.Squared(), penalty=penalty, alpha=0.3 / P)
    structured = StructuredProx(problem)
    closed = np.isin(problem.bounds[:-1], structured.solver[8][0])
    assert closed.tolist() == without
    w, u, slope, info = np.zeros(problem.size), np.zeros(problem.d), np.zeros(problem.d), np.zeros(4)
    structured_prox(problem.pack(v), float(P), slope, w, u, structured.solver, (1e-14, 0.0, 100_000), info)
    # all blocks have their subgradients: v - w = B s, inside the balls
    np.testing.assert_allclose(P * (problem.adjoint @ slope)[:P], v - w[:P], atol=1e-6)
    assert problem.gauge(slope) <= 1 + 1e-6
    for block, first, last in problem._parts():
        pairing = slope[first:last] @ (problem.map_slots @ w)[first:last]
        assert pairing == pytest.approx(block.value(u[first:last]), abs=1e-6)


# -- groups that are surely zero ----------------------------------------------------------------------


def _groups(seed, ridge):
    rng = np.random.default_rng(seed)
    groups = [rng.choice(30, size, replace=False) for size in rng.integers(2, 9, 14)]
    return fl.GroupL2(groups) + ridge * fl.Ridge(), 0.6 * rng.standard_normal(30)


def _kernel_prox(penalty, v, step, *, screened):
    """The kernel itself, with or without its screen; returns w, the dual variable and B'."""
    problem = fl.Problem(np.eye(len(v)), v, loss=fl.Squared(), penalty=penalty, alpha=step / len(v))
    structured = StructuredProx(problem)
    solver = list(structured.solver)
    if not screened:
        solver[6] = tuple(part[:0] for part in solver[6])
    w, u, slope, info = np.zeros(problem.size), np.zeros(problem.d), np.zeros(problem.d), np.zeros(4)
    structured_prox(problem.pack(v), float(problem.n), slope, w, u, tuple(solver), (1e-15, 0.0, 100_000), info)
    return w, slope, structured


@pytest.mark.parametrize("ridge", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(6))
def test_screened_features_are_zero_without_the_screen(seed, ridge):
    penalty, v = _groups(seed, ridge)
    with_screen, slope, structured = _kernel_prox(penalty, v, 0.4, screened=True)
    without, _, _ = _kernel_prox(penalty, v, 0.4, screened=False)
    zero = with_screen[:-1] == 0
    assert 0 < zero.sum() < 30
    np.testing.assert_allclose(without, with_screen, atol=2e-7)
    # the dual variable of the screened groups is complete: v - w = B s, the quadratic included, inside the balls
    problem = structured.problem
    dual = structured.dual(slope, with_screen)
    np.testing.assert_allclose(problem.n * (problem.map_slots.T @ dual)[:-1], v - with_screen[:-1], atol=1e-12)
    assert problem.gauge_without_ridge(slope) <= 1 + 1e-9


def test_exact_zeros_and_ties():
    penalty, v = _groups(1, 0.0)
    w = prox(v, penalty, 0.3)
    expected, _ = reference_prox(v, penalty, 0.3)
    np.testing.assert_array_equal(w == 0, np.abs(expected) < 1e-6)
    signal = np.repeat([1.0, 3.0, -1.0], 20) + 0.2 * np.random.default_rng(0).standard_normal(60)
    assert len(np.unique(prox(signal, fl.L1() @ fl.Difference(60), 1.0))) <= 8


# -- uses -------------------------------------------------------------------------------------------


def test_denoising_a_signal():
    rng = np.random.default_rng(0)
    truth = np.repeat([0.0, 2.0, -1.0, 1.0], 50)
    noisy = truth + 0.4 * rng.standard_normal(200)
    clean = prox(noisy, fl.L1() @ fl.Difference(200), 2.0)
    assert np.mean((clean - truth) ** 2) < 0.2 * np.mean((noisy - truth) ** 2)
    # total variation keeps the mean, and far out only the mean is left
    assert clean.mean() == pytest.approx(noisy.mean(), abs=1e-6)
    np.testing.assert_allclose(prox(noisy, fl.L1() @ fl.Difference(200), 1e4), noisy.mean(), atol=1e-5)


def test_denoising_an_image_of_two_dimensions():
    rng = np.random.default_rng(0)
    truth = np.zeros((24, 20))
    truth[5:15, 6:14] = 1.0
    noisy = truth + 0.2 * rng.standard_normal(truth.shape)
    grid = fl.Gradient(truth.shape)
    isotropic = fl.GroupL2(grid.cells, np.ones(len(grid.cells))) @ grid
    clean, info = prox(noisy, isotropic, 0.3, tol=1e-7, return_info=True)
    assert clean.shape == truth.shape
    assert info.converged
    assert np.mean((clean - truth) ** 2) < 0.2 * np.mean((noisy - truth) ** 2)
    np.testing.assert_array_equal(clean.ravel(), prox(noisy.ravel(), isotropic, 0.3, tol=1e-7))


def test_isotonic_projection():
    from sklearn.isotonic import isotonic_regression

    v = np.random.default_rng(3).standard_normal(40).cumsum() * 0.2
    w = prox(v, fl.NonNegative() @ fl.Difference(40), tol=1e-12)
    np.testing.assert_allclose(w, isotonic_regression(v), atol=1e-5)
    assert np.all(np.diff(w) >= -1e-6)


def test_warm_start_saves_steps():
    v = np.random.default_rng(0).standard_normal(200).cumsum()
    penalty = fl.TotalVariation((10, 20))
    _, cold = prox(v, penalty, 2.0, return_info=True)
    w, warm = prox(v, penalty, 2.0, warm_start=cold.dual, return_info=True)
    assert warm.iterations < 0.2 * cold.iterations
    _, near = prox(v + 0.001, penalty, 2.1, warm_start=cold.dual, return_info=True)
    assert near.converged
    assert objective(w, v, penalty, 2.0) == pytest.approx(objective(prox(v, penalty, 2.0), v, penalty, 2.0), rel=1e-9)


class Squares(fl.Penalty):
    """|u|^2, in plain Python."""

    def value(self, u):
        return float(u @ u)

    def prox(self, u, step):
        return u / (1 + 2 * np.asarray(step))

    def conjugate(self, y):
        return float(y @ y) / 4

    def gauge(self, y):
        return 0.0

    def units(self, d):
        return np.arange(d)


def test_a_penalty_of_your_own():
    v = np.random.default_rng(0).standard_normal(P)
    for map_ in (fl.Identity(P), fl.Difference(P)):
        np.testing.assert_allclose(
            prox(v, Squares() @ map_ + fl.L1(), 0.7), prox(v, 2.0 * (fl.Ridge() @ map_) + fl.L1(), 0.7), atol=1e-5
        )

    class Broken(Squares):
        def prox(self, u, step):
            raise RuntimeError("broken on purpose")

    with pytest.raises(RuntimeError, match="broken on purpose"):
        prox(v, Broken() @ fl.Difference(P))


# -- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0, np.nan], fl.L1()), {}, r"v\[1\] is nan"),
        (([[1.0, 2.0], [np.inf, 0.0]], fl.L1()), {}, r"v\[1, 0\] is inf"),
        ((["a"], fl.L1()), {}, "v has dtype"),
        (([1j], fl.L1()), {}, "real"),
        (([], fl.L1()), {}, "must hold numbers"),
        (([1.0], "l1"), {}, "must be a fenchel penalty"),
        (([1.0], fl.L1(), -1.0), {}, "step is -1.0"),
        (([1.0], fl.L1()), {"tol": -1}, "tol is -1"),
        (([1.0], fl.L1()), {"max_iter": 0}, "max_iter is 0"),
        (([1.0, 2.0], fl.L1()), {"warm_start": [1.0]}, "warm_start has shape"),
        (([1.0, 2.0], fl.L1() @ fl.Difference(3)), {}, "3 features"),
    ],
)
def test_bad_input(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        prox(*arguments, **options)


def test_says_when_it_did_not_converge():
    v = np.random.default_rng(0).standard_normal(300).cumsum()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        _, info = prox(v, fl.L1() @ fl.Difference(300, order=2), 10.0, max_iter=5, return_info=True)
    assert not info.converged
    assert info.gap > 1e-10
