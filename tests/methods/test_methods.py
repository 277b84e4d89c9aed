"""Every method against a conic solver, against each other where they must agree, and against the paper's equations."""

from __future__ import annotations

import functools
import itertools

import cases
import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from cases import random_sparse
from reference import penalty_expression, reference
from scipy.optimize import minimize

import fenchel as fl
from fenchel.kernels import baselines
from fenchel.methods import METHODS, blocks, make_method
from fenchel.methods.common import smoothness

P = cases.P
EVEN = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]  # BB' = 2 I
PENALTIES = {
    "simple": (fl.L1(np.linspace(0, 2, P)) + 0.3 * fl.Ridge(), 0.05),
    "overlap": (fl.GroupL2(EVEN, np.ones(7)) + 0.02 * fl.Ridge(), 0.05),
    "graph": (fl.L1() + 2.0 * (fl.L1() @ fl.Incidence(cases.EDGES, P)), 0.03),
}

# Relative excess of the reported iterate after 300 passes over blocks of 8 rows, with default step sizes: the linear
# methods are at the optimum, the online ones in the neighbourhood that steps falling like 1/sqrt(t) leave.
NEIGHBOURHOOD = [
    ("sdca-admm", {}, 1e-9),
    ("batch-admm", {"form": "dual", "rho": 0.1}, 1e-5),
    ("batch-admm", {"form": "exact", "rho": 0.1}, 1e-7),
    ("batch-admm", {"form": "primal", "rho": 1.0}, 1e-5),
    ("ol-admm", {}, 1e-2),
    ("ol-admm", {"report": "last"}, 5e-2),
    ("opg-admm", {}, 1e-2),
    ("opg-admm", {"report": "last"}, 5e-2),
    ("opg-admm", {"schedule": "strong"}, 5e-2),
    ("rda-admm", {}, 2e-2),
    ("rda-admm", {"report": "last"}, 5e-2),
    ("rda-admm", {"schedule": "linear"}, 5e-2),
    ("rda", {}, 2e-2),
    ("rda", {"report": "last"}, 2e-2),
    ("rda", {"schedule": "linear"}, 5e-2),
    ("fobos", {}, 1e-2),
    ("fobos", {"report": "last"}, 2e-2),
    ("fobos", {"schedule": "strong"}, 5e-2),
    ("sdca", {}, 1e-6),
    ("sag", {}, 1e-9),
    ("sag", {"variant": "saga"}, 1e-7),
    ("asdca", {}, 2e-2),
]


def make_problem(penalty_name, *, sparse=False, loss=None, dtype=float, n=40, penalty=None, **switches):
    penalty, alpha = PENALTIES[penalty_name] if penalty is None else penalty
    loss = loss or fl.SmoothedHinge()
    X, y, _ = cases.data(loss, n=n, sparse=sparse)
    return fl.Problem(X.astype(dtype), y, loss=loss, penalty=penalty, alpha=alpha, **switches)


@functools.cache
def optimum(penalty_name, sparse):
    penalty, alpha = PENALTIES[penalty_name]
    X, y, _ = cases.data(fl.SmoothedHinge(), sparse=sparse)
    return reference(X, y, fl.SmoothedHinge(), penalty, alpha)[0]


def run(problem, method, epochs, **options):
    """The state after some epochs, and the method."""
    algorithm = make_method(method, options)
    assert algorithm.supports(problem) is None
    state = algorithm.start(problem, np.random.default_rng(0))
    for _ in range(epochs):
        algorithm.epoch(state)
    return state, algorithm


def best(problem):
    """The optimal value to rounding, certified."""
    result = fl.solve(problem, tol=1e-14, max_epochs=3000)
    assert result.relative_gap < 1e-12
    return result.primal


# -- every method, every kind of rows -----------------------------------------------------------------


def test_every_method_has_a_neighbourhood():
    assert {name for name, _, _ in NEIGHBOURHOOD} == set(METHODS)


@pytest.mark.parametrize("penalty_name", PENALTIES)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize(("method", "options", "excess"), NEIGHBOURHOOD)
def test_reaches_its_neighbourhood(method, options, excess, sparse, penalty_name):
    problem = make_problem(penalty_name, sparse=sparse)
    blocks = {} if method == "batch-admm" else {"block_size": 8}
    if make_method(method, options).supports(problem):
        assert method in ("sdca", "asdca")
        assert penalty_name != "simple"
        return
    result = fl.solve(problem, method, tol=0, max_epochs=300, check_every=100, **options, **blocks)
    at_start, last = result.history.current[0], result.history.current[-1]
    lowest = optimum(penalty_name, sparse)
    assert lowest * (1 - 1e-8) <= last <= lowest * (1 + excess)
    assert last < at_start
    assert result.dual <= lowest * (1 + 1e-8)
    assert np.isfinite(result.gap)


@pytest.mark.parametrize("method", METHODS)
def test_float32_rows_and_memory_maps(method, tmp_path):
    """The kernels read float32 rows in place; the state is float64, so the run is that of the rounded data."""
    if method in ("sdca", "asdca"):
        problem = functools.partial(make_problem, "simple")
    else:
        problem = functools.partial(make_problem, "overlap")
    X, y, _ = cases.data(fl.SmoothedHinge())
    single = problem(dtype=np.float32)
    assert single.data.arrays[0].dtype == np.float32
    rounded, _ = run(single, method, 3)
    np.save(tmp_path / "X.npy", X.astype(np.float32).astype(float))
    mapped = fl.Problem(
        np.load(tmp_path / "X.npy", mmap_mode="r"), y, loss=single.loss, penalty=single.penalty, alpha=single.alpha
    )
    other, _ = run(mapped, method, 3)
    np.testing.assert_allclose(rounded.w, other.w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("sdca", "asdca")])
def test_intercept_weights_and_outputs(method):
    """Two outputs with an intercept each and weighted rows, coupled by the penalty."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 4))
    Y = np.where(X @ rng.standard_normal((4, 2)) + 0.4 > 0, 1.0, -1.0)
    weight = rng.integers(0, 3, 30).astype(float)
    penalty = fl.GroupL2([[j, 4 + j] for j in range(4)], np.ones(4)) + 0.1 * fl.Ridge()
    problem = fl.Problem(X, Y, loss=fl.Logistic(), penalty=penalty, alpha=0.1, sample_weight=weight, fit_intercept=True)
    result = fl.solve(problem, method, tol=0, max_epochs=400, check_every=100)
    assert result.coef.shape == (2, 4)
    assert result.history.current[-1] <= best(problem) * (1 + (1e-6 if method in ("sdca-admm", "sag") else 2e-2))
    without = fl.Problem(X, Y, loss=fl.Logistic(), penalty=penalty, alpha=0.1)
    state, _ = run(without, method, 3)
    np.testing.assert_array_equal(state.w[without.intercept_slots], 0.0)


def test_tasks_and_simple_dual_methods():
    rng = np.random.default_rng(1)
    X, task = rng.standard_normal((40, 3)), np.arange(40) % 2
    y = np.where(X[:, 0] + rng.standard_normal(40) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss=fl.Logistic(), penalty=fl.L1() + fl.Ridge(), alpha=0.1, task=task,
                         sample_weight=1.0 + task)  # fmt: skip
    for method in ("sdca", "asdca"):
        result = fl.solve(problem, method, tol=1e-8, max_epochs=3000, block_size=5)
        assert result.status is fl.Status.CONVERGED, method


# -- where methods must agree -------------------------------------------------------------------------


@pytest.mark.parametrize("penalty_name", PENALTIES)
@pytest.mark.parametrize("intercept", [False, True])
def test_batch_admm_is_sdca_admm_with_one_block(penalty_name, intercept):
    problem = make_problem(penalty_name, fit_intercept=intercept, sample_weight=np.arange(40) % 3 + 0.5)
    batch, other = make_method("batch-admm", {"rho": 0.3}), make_method(
        "sdca-admm", {"preset": "paper", "rho": 0.3, "gamma": 1 / 40, "eta_z": 1.1, "block_size": 40, "order": "cyclic",
                      "within": "joint", "column_power": 0},
    )  # fmt: skip
    a, b = (method.start(problem, np.random.default_rng(0)) for method in (batch, other))
    for _ in range(60):
        batch.epoch(a)
        other.epoch(b)
        for name in ("w", "x", "y", "u"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-12, atol=1e-12)
    assert np.abs(a.w).max() > 0.05


def smoothed_hinge_step(q, target, c):
    """prox(q | f*/c), as printed in the paper."""
    tau = (c * q * target - 1) / (1 + c)
    return np.where(tau < -1, -target, np.where(tau > 0, 0.0, (c * q - target) / (1 + c)))


def group_prox(q, step, groups, C, quadratic):
    """prox(q | step psi) of psi = C sum |q_g| + quadratic/2 |q|^2 on copies, group after group."""
    out, first = np.empty_like(q), 0
    for group in groups:
        part = q[first : first + len(group)]
        keep = max(1 - step * C / max(np.linalg.norm(part), 1e-300), 0)
        out[first : first + len(group)] = part * keep / (1 + step * quadratic)
        first += len(group)
    return out


def test_one_row_blocks_equal_the_papers_equations():
    """Algorithm 1 with K = n, in plain numpy, for 200 iterations in the same random order."""
    problem = make_problem("overlap")
    X, target = problem.data.arrays[0], problem.target
    n, p, rho, alpha = problem.n, problem.p, 0.1, problem.alpha
    Z = X.T
    B = np.zeros((p, sum(map(len, EVEN))))
    for column, feature in enumerate(itertools.chain.from_iterable(EVEN)):
        B[feature, column] = 1.0
    gamma, eta_b, eta_z = 1 / n, np.linalg.norm(B, 2) ** 2 + 1, 1.1 * (X**2).sum(axis=1)
    c = rho * eta_b
    x, y, w = np.zeros(n), np.zeros(B.shape[1]), np.zeros(p)
    rng = np.random.default_rng(3)

    method = make_method("sdca-admm", {"preset": "paper", "block_size": 1})
    state = method.start(problem, np.random.default_rng(3))
    for _ in range(200 // n):
        for i in rng.integers(0, n, n):
            r = Z @ x + B @ y
            q = y + B.T @ (w - rho * r) / c
            y = q - group_prox(c * q, n * c, EVEN, alpha, 0.01 * alpha) / c
            bend = rho * eta_z[i]
            x = x.copy()
            new = smoothed_hinge_step(x[i] + Z[:, i] @ (w - rho * (Z @ x + B @ y)) / bend, target[i], bend)
            x[i] = new
            w = w - gamma * rho * (n * (Z @ x + B @ y) - (n - 1) * r)
        method.epoch(state)
        np.testing.assert_allclose(state.w[:-1], w, atol=1e-10)
        np.testing.assert_allclose(state.x, x, atol=1e-10)
        np.testing.assert_allclose(state.y, y, atol=1e-10)
    assert np.abs(w).max() > 0.1


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("opg-admm", {"schedule": "constant", "rho": 1.0}),
        ("ol-admm", {"schedule": "constant", "rho": 1.0, "inner_tol": 1e-15}),
        ("rda-admm", {"schedule": "linear", "rho": 1.0}),
        ("fobos", {"schedule": "constant", "prox_tol": 1e-15}),
    ],
)
def test_one_block_and_a_constant_step_reach_the_optimum(method, options):
    problem = make_problem("overlap", penalty=(PENALTIES["overlap"][0] + fl.Ridge(), 0.05))
    eta0 = 1 / smoothness(problem, np.array([0, problem.n]))
    state, _ = run(problem, method, 3000, eta0=eta0, report="last", block_size=problem.n, **options)
    assert problem.primal_at(state.w) == pytest.approx(best(problem), rel=1e-12)


def test_opg_admm_with_the_full_gradient_is_the_primal_batch_form():
    problem = make_problem("graph")
    eta0 = 1 / smoothness(problem, np.array([0, problem.n]))
    a, _ = run(problem, "batch-admm", 50, form="primal", rho=0.5)
    b, _ = run(problem, "opg-admm", 50, rho=0.5, eta0=eta0, schedule="constant", report="last", block_size=problem.n)
    np.testing.assert_array_equal(a.w, b.w)
    np.testing.assert_array_equal(a.u, b.u)


def test_linearised_step_is_the_exact_one_where_bb_is_a_multiple_of_the_identity():
    """OPG-ADMM against stochastic ADMM of Ouyang et al., w+ = (I/eta + rho BB')^-1 (w/eta - g + B(lambda + rho u))."""
    problem = make_problem("overlap")
    B = problem.map.toarray().T
    np.testing.assert_array_equal(B @ B.T, 2 * np.eye(P))
    rho, eta0, n = 0.3, 0.2, problem.n
    method = make_method("opg-admm", {"rho": rho, "eta0": eta0, "block_size": 8, "order": "cyclic", "report": "last"})
    state = method.start(problem, np.random.default_rng(0))
    w, u, multiplier, t = np.zeros(P), np.zeros(B.shape[1]), np.zeros(B.shape[1]), 0
    X = problem.data.arrays[0]
    for _ in range(10):
        for first in range(0, n, 8):
            t += 1
            eta = eta0 / np.sqrt(t)
            rows = slice(first, first + 8)
            g = (5 / n) * X[rows].T @ problem.loss.gradient(X[rows] @ w, problem.target[rows])
            system = np.eye(P) / eta + rho * B @ B.T
            w = np.linalg.solve(system, w / eta - g + B @ (multiplier + rho * u))
            u = group_prox(B.T @ w - multiplier / rho, 1 / rho, EVEN, problem.alpha, 0.01 * problem.alpha)
            multiplier = multiplier - rho * (B.T @ w - u)
        method.epoch(state)
        np.testing.assert_allclose(state.w[:-1], w, atol=1e-13)
        np.testing.assert_allclose(state.dual, multiplier, atol=1e-13)


def test_exact_batch_admm_takes_the_papers_steps():
    """Both steps of the batch equations minimise the augmented Lagrangian, as a conic solver and the slope say."""
    problem = make_problem("graph", loss=fl.Logistic())
    rho, n = 2.0, problem.n
    method = make_method("batch-admm", {"form": "exact", "rho": rho, "inner_tol": 1e-14})
    state = method.start(problem, np.random.default_rng(0))
    for _ in range(4):
        method.epoch(state)
    w, zx, x = state.w[:-1].copy(), state.zx[:-1].copy(), state.x.copy()
    method.epoch(state)
    # the y-step in its primal form: h = w - rho (Z x + B y) minimises 1/2 |h - (w - rho Z x)|^2 + rho n psi(B'h)
    h = cp.Variable(P)
    value, _ = penalty_expression(problem.penalty, h)
    cp.Problem(cp.Minimize(cp.sum_squares(h - (w - rho * zx)) / 2 + rho * n * problem.alpha * value)).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12
    )
    # and the x-step in its: w+ minimises sum f_i(z_i'w) + |w - (h + rho Z x)|^2 / (2 rho), where the slope is zero
    X, new = problem.data.arrays[0], state.w[:-1]
    slope = X.T @ problem.loss.gradient(X @ new, problem.target)
    np.testing.assert_allclose(new + rho * slope, h.value + rho * (X.T @ x), atol=2e-6)
    assert state.sweeps > state.epoch


def test_ol_admm_solves_its_block():
    problem = make_problem("overlap", loss=fl.Logistic(), fit_intercept=True)
    eta0, rho = 3.0, 0.1
    state, method = run(problem, "ol-admm", 1, eta0=eta0, rho=rho, block_size=problem.n, inner_tol=1e-14, report="last")
    h = 1 / eta0 + rho * method.penalty.norm
    X = np.column_stack([problem.data.arrays[0], np.ones(problem.n)])

    def value(w):
        return problem.loss.value(X @ w, problem.target).mean() + h / 2 * w @ w

    def slope(w):
        return X.T @ problem.loss.gradient(X @ w, problem.target) / problem.n + h * w

    expected = minimize(value, np.zeros(P + 1), jac=slope, method="BFGS", options={"gtol": 1e-10}).x
    np.testing.assert_allclose(state.current, expected, atol=1e-7)


# -- every other method against its own formulas, in plain numpy ---------------------------------------


class Plain:
    """The elastic net problem with its formulas, in the notation of the methods' papers."""

    def __init__(self, problem):
        self.X, self.target, self.loss = problem.data.arrays[0], problem.target, problem.loss
        self.n, self.b = problem.n, 8
        self.K = -(-self.n // self.b)
        self.l1, self.mu = problem.alpha * np.linspace(0, 2, P), 0.3 * problem.alpha

    def rows(self, k):
        return slice(self.b * k, self.b * (k + 1))

    def slopes(self, w, k):
        rows = self.rows(k)
        return self.loss.gradient(self.X[rows] @ w, self.target[rows])

    def g(self, w, k):
        return self.K / self.n * self.X[self.rows(k)].T @ self.slopes(w, k)

    def prox(self, v, eta):
        return np.sign(v) * np.maximum(np.abs(v) - eta * self.l1, 0) / (1 + eta * self.mu)

    def conjugate_gradient(self, v):
        """argmin of psi(w) - v'w."""
        return np.sign(v) * np.maximum(np.abs(v) - self.l1, 0) / self.mu

    def norms(self):
        return [np.linalg.norm(self.X[self.rows(k)], 2) ** 2 for k in range(self.K)]


def plain_fobos(f, order):
    w = np.zeros(P)
    for t, k in enumerate(order, 1):
        w = f.prox(w - 0.2 / np.sqrt(t) * f.g(w, k), 0.2 / np.sqrt(t))
        yield w


def plain_rda(f, order):
    w, total = np.zeros(P), np.zeros(P)
    for t, k in enumerate(order, 1):
        total += f.g(w, k)
        w = f.prox(-0.2 * np.sqrt(t) * total / t, 0.2 * np.sqrt(t))
        yield w


def plain_sag(f, order, unbiased=False):
    w, a = np.zeros(P), np.zeros(f.n)
    eta = 1 / (max(f.norms()) * f.K / f.n) / (3 if unbiased else 1)
    for k in order:
        before = f.X.T @ a
        a[f.rows(k)] = f.slopes(w, k)
        after = f.X.T @ a
        w = f.prox(w - eta * ((f.K / f.n * (after - before) + before / f.n) if unbiased else after / f.n), eta)
        yield w


def plain_sdca(f, order):
    x, norms = np.zeros(f.n), f.norms()
    for k in order:
        w, c = f.conjugate_gradient(-f.X.T @ x / f.n), norms[k] / (f.n * f.mu)
        rows = f.rows(k)
        x[rows] = smoothed_hinge_step(x[rows] + f.X[rows] @ w / c, f.target[rows], c)
        yield f.conjugate_gradient(-f.X.T @ x / f.n)


def plain_asdca(f, order):
    x, w = np.zeros(f.n), np.zeros(P)
    kappa = f.n * f.mu / (f.X**2).sum(axis=1).max()
    theta = min(1, np.sqrt(kappa / f.b), kappa, kappa ** (2 / 3) / f.b ** (1 / 3)) / 4
    for k in order:
        between = (1 - theta) * w + theta * f.conjugate_gradient(-f.X.T @ x / f.n)
        x[f.rows(k)] = (1 - theta) * x[f.rows(k)] + theta * f.slopes(between, k)
        w = (1 - theta) * w + theta * f.conjugate_gradient(-f.X.T @ x / f.n)
        yield w


def plain_rda_admm(f, order):
    """B = I; rho = 0.3."""
    rho, w, u, multiplier = 0.3, np.zeros(P), np.zeros(P), np.zeros(P)
    past = []
    for t, k in enumerate(order, 1):
        past.append((f.g(w, k), w, u, multiplier))
        g, w_mean, u_mean, multiplier_mean = np.mean(past, axis=0)
        e = 1 / (1 / (0.2 * np.sqrt(t)) + rho / t)
        w = -e * (g - (multiplier_mean - rho * (w_mean - u_mean)))
        u = f.prox(w - multiplier / rho, 1 / rho)
        multiplier = multiplier - rho * (w - u)
        yield w


@pytest.mark.parametrize(
    ("method", "options", "plain"),
    [
        ("fobos", {"eta0": 0.2, "report": "last"}, plain_fobos),
        ("rda", {"eta0": 0.2, "report": "last"}, plain_rda),
        ("rda-admm", {"eta0": 0.2, "rho": 0.3, "report": "last"}, plain_rda_admm),
        ("sag", {}, plain_sag),
        ("sag", {"variant": "saga"}, functools.partial(plain_sag, unbiased=True)),
        ("sdca", {}, plain_sdca),
        ("asdca", {}, plain_asdca),
    ],
)
def test_equals_its_formulas(method, options, plain):
    problem = make_problem("", penalty=(fl.L1(np.linspace(0, 2, P)) + 0.3 * fl.Ridge(), 0.05), n=43)
    algorithm = make_method(method, options | {"block_size": 8})
    state = algorithm.start(problem, np.random.default_rng(5))
    rng = np.random.default_rng(5)
    orders = [rng.integers(0, algorithm.blocks, algorithm.blocks) for _ in range(15)]
    expected = list(plain(Plain(problem), np.concatenate(orders)))
    for epoch in range(15):
        algorithm.epoch(state)
        np.testing.assert_allclose(state.w[:-1], expected[algorithm.blocks * (epoch + 1) - 1], rtol=1e-8, atol=1e-12)
    assert np.abs(state.w).max() > 0.01


# -- pieces -------------------------------------------------------------------------------------------


def test_mini_batch_gradient_is_unbiased():
    """The mean over the blocks is the full gradient, also where the last block is short."""
    problem = make_problem("graph", n=43, sample_weight=np.arange(43) % 4 + 0.5, fit_intercept=True)
    _, method = run(problem, "opg-admm", 0, block_size=10)
    w, g = np.linspace(-1, 1, problem.size), np.empty(problem.size)
    space, total = baselines.buffers(method.bounds), np.zeros(problem.size)
    for k in range(method.blocks):
        baselines.gradient(method.data, method.loss, problem.n, k, w, g, space)
        total += g / method.blocks
    slopes = problem.weight * problem.loss.gradient(problem.scores(w), problem.target)
    np.testing.assert_allclose(total, problem.combine(slopes) / problem.n, rtol=1e-12)


@pytest.mark.parametrize("name", cases.losses())
def test_compiled_gradients(name):
    loss = cases.losses()[name]
    score, target = (a.ravel() for a in np.meshgrid(np.linspace(-40, 40, 33), [-1.0, 1.0]))
    target = np.clip(np.abs(target), 0, 1 if isinstance(loss, fl.Binomial) else None) if loss.deviance else target
    weight = np.linspace(0, 2, score.size)
    out = np.full(score.size, np.nan)
    params = loss.params

    def pointer(array):
        return fl.losses.base._pointer(array)

    loss.compiled_gradient().ctypes(score.size, *map(pointer, (out, score, score, target, weight, params)))
    np.testing.assert_allclose(out, weight * loss.gradient(score, target), rtol=1e-13)


def test_step_sizes():
    codes = baselines.STEP_SIZES
    t = 9
    expected = {"sqrt": 2 / 3, "strong": 1 / (1 / 2 + 0.1 * t), "constant": 2, "dual-sqrt": 6, "dual-linear": 18}
    assert {name: baselines.step_size(code, 2.0, 0.1, t) for name, code in codes.items()} == pytest.approx(expected)


def test_strong_convexity_of_the_penalty():
    penalty = fl.L1() + 0.2 * fl.Ridge() + 0.7 * (fl.Ridge() @ fl.Difference(P))
    _, method = run(make_problem("", penalty=(penalty, 0.5)), "fobos", 0)
    assert method.strength == pytest.approx(0.1)


def test_reports_the_mean_or_the_last_iterate():
    problem = make_problem("overlap")
    last, _ = run(problem, "fobos", 1, block_size=40, report="last")
    mean, _ = run(problem, "fobos", 1, block_size=40)
    np.testing.assert_array_equal(last.w, mean.w)
    iterates = [run(problem, "opg-admm", k, block_size=40, report="last")[0].w for k in range(1, 6)]
    mean, _ = run(problem, "opg-admm", 5, block_size=40)
    np.testing.assert_allclose(mean.w, np.mean(iterates, axis=0), atol=1e-14)


def test_exact_zeros_of_a_proximal_method():
    penalty = fl.GroupL2(EVEN, np.ones(7))
    problem = make_problem("overlap", penalty=(penalty, 0.12))
    result = fl.solve(problem, "sag", tol=1e-10, max_epochs=2000)
    expected = fl.solve(problem, tol=1e-10).coef
    assert result.status is fl.Status.CONVERGED
    assert 0 < np.count_nonzero(result.coef) < P
    np.testing.assert_array_equal(result.coef == 0, expected == 0)


@pytest.mark.parametrize("order", ["random", "shuffle", "cyclic"])
@pytest.mark.parametrize("method", [m for m in METHODS if m != "batch-admm"])
def test_long_epochs_in_several_calls(method, order, monkeypatch):
    """Data so large that an epoch is cut into pieces, for the sake of Ctrl-C, takes the same steps."""
    problem = make_problem("simple")
    whole, _ = run(problem, method, 3, block_size=8, order=order)
    monkeypatch.setattr(blocks, "LONGEST", 1)
    pieces, _ = run(problem, method, 3, block_size=8, order=order)
    np.testing.assert_allclose(pieces.w, whole.w, rtol=1e-12, atol=1e-14)


def test_overflow_starts_again_with_a_shorter_step():
    problem = make_problem("simple", loss=fl.Poisson())
    state, _ = run(problem, "fobos", 40, eta0=1e4, block_size=8)
    assert state.caution > 1
    assert np.isfinite(state.w).all()


# -- runs that go on ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_resumed_and_saved_runs_go_the_same_way(method, tmp_path):
    problem = make_problem("simple" if method in ("sdca", "asdca") else "overlap")
    options = {"tol": 0, "check_every": 1} | ({} if method == "batch-admm" else {"block_size": 8})
    whole = fl.solve(problem, method, max_epochs=6, **options)
    half = fl.solve(problem, method, max_epochs=3, **options)
    half.save(tmp_path / "half.npz")
    resumed = fl.solve(problem, method, max_epochs=3, warm_start=fl.Result.load(tmp_path / "half.npz"), **options)
    assert resumed.epochs == 6
    np.testing.assert_array_equal(resumed.state["w"], whole.state["w"])


@pytest.mark.parametrize("method", [m for m in METHODS if m != "sdca-admm"])
def test_foreign_warm_starts_are_refused(method):
    problem = make_problem("simple")
    own = fl.solve(problem, method, tol=0, max_epochs=1)
    foreign = fl.solve(problem, "sag" if method != "sag" else "fobos", tol=0, max_epochs=1)
    for other in (foreign, fl.solve(problem, tol=0, max_epochs=1)):
        with pytest.raises(ValueError, match="can only go on from a result of its own"):
            fl.solve(problem, method, max_epochs=1, warm_start=other)
    with pytest.raises(ValueError, match=r"warm_start has .* entries in"):
        fl.solve(make_problem("simple", penalty=(fl.Ridge(), 1.0), n=39, loss=fl.Logistic(), task=np.arange(39) % 2),
                 method, max_epochs=1, warm_start=own)  # fmt: skip


# -- what does not fit --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "switches", "why"),
    [
        ("sdca", {"penalty_name": "graph"}, "closed proximal operator"),
        ("asdca", {"penalty_name": "overlap"}, "closed proximal operator"),
        ("sdca", {"penalty_name": "simple", "fit_intercept": True}, "intercept"),
        ("sdca", {"penalty_name": "", "penalty": (fl.L1(), 1.0)}, "feature 0 has none"),
        ("asdca", {"penalty_name": "simple", "loss": fl.Hinge()}, "Hinge has none"),
        ("sag", {"penalty_name": "graph", "loss": fl.Hinge()}, "Lipschitz"),
        ("opg-admm", {"penalty_name": "", "penalty": (fl.NonNegative(), 1.0)}, "limit only"),
        ("rda", {"penalty_name": "", "penalty": (fl.NonNegative() @ fl.Difference(P), 1.0)}, "limit only"),
    ],
)
def test_says_why_it_does_not_fit(method, switches, why):
    problem = make_problem(**switches)
    assert why in make_method(method, {}).supports(problem)
    with pytest.raises(ValueError, match=f"{method} does not fit this problem: .*{why}"):
        fl.solve(problem, method)


@pytest.mark.parametrize("method", ["rda", "fobos", "sag", "sdca"])
def test_simple_constraints_fit_proximal_methods(method):
    problem = make_problem("", penalty=(fl.NonNegative() + 0.1 * fl.Ridge(), 0.5))
    result = fl.solve(problem, method, tol=0, max_epochs=100)
    assert np.all(result.coef >= 0)
    assert result.primal <= best(problem) * 1.02


def test_unknown_methods_and_options():
    problem = make_problem("simple")
    with pytest.raises(ValueError, match="known methods: auto, sdca-admm, batch-admm, ol-admm"):
        fl.solve(problem, "newton")
    for method in METHODS:
        with pytest.raises(ValueError, match=f"{method} has no option 'colour'; it has "):
            fl.solve(problem, method, colour="red")


@pytest.mark.parametrize(
    ("method", "options", "message"),
    [
        ("opg-admm", {"eta0": -1}, "eta0 is -1"),
        ("opg-admm", {"rho": "small"}, "rho is 'small'"),
        ("ol-admm", {"block_size": 1.5}, "block_size is 1.5"),
        ("ol-admm", {"inner_tol": 0}, "inner_tol is 0"),
        ("rda", {"schedule": "strong"}, "schedule is 'strong'; it must be 'sqrt' or 'linear'"),
        ("rda-admm", {"report": "best"}, "report is 'best'"),
        ("fobos", {"order": "sorted"}, "order is 'sorted'; it must be 'random', 'shuffle' or 'cyclic'"),
        ("fobos", {"prox_tol": np.nan}, "prox_tol is nan"),
        ("sag", {"variant": "svrg"}, "variant is 'svrg'"),
        ("asdca", {"theta": 2.0}, "theta is 2.0"),
        ("batch-admm", {"form": "mixed"}, "form is 'mixed'; it must be 'dual', 'exact' or 'primal'"),
        ("batch-admm", {"eta_b": 0.5}, r"eta_b is 0.5; it must exceed sigma_max\(BB'\)"),
    ],
)
def test_bad_options(method, options, message):
    with pytest.raises(ValueError, match=message):
        fl.solve(make_problem("overlap"), method, **options)


# -- functions of your own ----------------------------------------------------------------------------


class Cosh(fl.Loss):
    """log cosh(u - t), in plain Python: no compiled step, no compiled gradient."""

    smoothness = 1.0

    def value(self, score, target):
        return np.logaddexp(score - target, target - score) - np.log(2)

    def gradient(self, score, target):
        return np.tanh(score - target)

    def conjugate(self, dual, target):
        with np.errstate(invalid="ignore", divide="ignore"):
            value = 0.5 * ((1 + dual) * np.log1p(dual) + (1 - dual) * np.log1p(-dual)) + dual * target
        return np.where(np.abs(dual) < 1, value, np.inf)

    def domain(self, target):
        return np.full(np.shape(target), -1.0), np.ones(np.shape(target))

    def dual_step(self, point, curvature, target):
        low, high = np.full_like(point, -1.0), np.ones_like(point)
        for _ in range(60):
            middle = (low + high) / 2
            with np.errstate(divide="ignore"):
                right = np.arctanh(middle) + target + curvature * (middle - point) > 0
            low, high = np.where(right, low, middle), np.where(right, middle, high)
        return (low + high) / 2


@pytest.mark.parametrize("method", METHODS)
def test_a_loss_and_a_penalty_in_plain_python(method):
    X, y, _ = cases.data(fl.Squared(), n=20)
    X = sp.csr_array(X)
    penalty = fl.Ridge() if method in ("sdca", "asdca") else fl.TraceNorm((3, 4)) + fl.Ridge()
    problem = fl.Problem(X, y, loss=Cosh(), penalty=penalty, alpha=0.1)
    epochs = 400 if method == "asdca" else 60
    result = fl.solve(problem, method, tol=0, max_epochs=epochs, check_every=20)
    assert result.history.current[-1] <= best(problem) * 1.05


def test_an_error_inside_a_loss_reaches_the_caller():
    class Broken(Cosh):
        def gradient(self, score, target):
            if np.any(score):
                raise RuntimeError("broken on purpose")
            return super().gradient(score, target)

    X, y, _ = cases.data(fl.Squared(), n=20)
    problem = fl.Problem(X, y, loss=Broken(), penalty=fl.L1(), alpha=0.1)
    method = make_method("fobos", {"block_size": 5})
    state = method.start(problem, np.random.default_rng(0))
    with pytest.raises(RuntimeError, match="broken on purpose"):
        method.epoch(state)


@pytest.mark.parametrize(("p", "least", "most"), [(100, 40, 2000), (40_000, 4, 4)])
def test_large_graphs_have_fewer_blocks(p, least, most):
    """A step of the penalty on a large graph costs more than many rows."""
    rng = np.random.default_rng(0)
    X = random_sparse((2000, p), density=20 / p, rng=rng, format="csr")
    y = np.where(np.arange(2000) % 2, 1.0, -1.0)
    edges = np.column_stack([np.arange(p), (np.arange(p) + 1) % p])
    penalty = fl.L1() + fl.L1() @ fl.Incidence(edges, p)
    method = make_method("sdca-admm", {})
    method.start(fl.Problem(X, y, loss="smoothed-hinge", penalty=penalty, alpha=1e-4), np.random.default_rng(0))
    assert least <= method.blocks <= most
