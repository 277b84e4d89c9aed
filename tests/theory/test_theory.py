"""Theorem 1: the constants by dense linear algebra, and the rate they promise against what is measured."""

import dataclasses
import math
import pathlib

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import fenchel as fl
from fenchel import theory
from fenchel.methods import SDCAADMM

N, P = 40, 6


def _data(seed=0, n=N, p=P):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    target = X @ np.linspace(1.0, -0.5, p) + 0.3 * rng.standard_normal(n)
    return X, target


def _make(name):
    X, target = _data()
    labels = np.where(target > 0, 1.0, -1.0)
    rows_and_columns = [[0, 1, 2], [3, 4, 5], [0, 3], [1, 4], [2, 5]]
    every_copy = fl.Copies([0, 1, 2, 2, 3, 4, 4, 5, 0], P)
    weights = np.linspace(0.5, 2.0, N)
    return {
        "l1": lambda: fl.Problem(X, target, loss=fl.Squared(), penalty=fl.L1() + fl.Ridge(), alpha=0.3),
        "groups": lambda: fl.Problem(
            X, labels, loss=fl.SmoothedHinge(), penalty=fl.GroupL2([[0, 1], [2, 3], [4, 5]]) + fl.Ridge(), alpha=0.1
        ),
        "weighted": lambda: fl.Problem(
            X, target, loss=fl.Huber(1.0), penalty=0.2 * fl.L1() + fl.Ridge(), alpha=0.2, sample_weight=weights
        ),
        "overlap": lambda: fl.Problem(
            X, labels, loss=fl.SmoothedHinge(0.5), penalty=fl.GroupL2(rows_and_columns) + fl.Ridge(), alpha=0.02
        ),
        "chain": lambda: fl.Problem(
            X, target, loss=fl.Squared(), alpha=0.05,
            penalty=fl.GroupL2([[0, 1, 2], [2, 3, 4], [4, 5, 0]]) + 0.5 * (fl.Ridge() @ every_copy),
        ),
        "fused": lambda: fl.Problem(
            X, target, loss=fl.Squared(), penalty=fl.Ridge() + 2.0 * (fl.Ridge() @ fl.Difference(P)), alpha=0.1
        ),
    }[name]()  # fmt: skip


PROBLEMS = ["l1", "groups", "weighted", "overlap", "chain", "fused"]
_solved = {}


def _solve(name):
    """The problem and its solution to rounding, once per session."""
    if name not in _solved:
        problem = _make(name)
        result = fl.solve(problem, tol=1e-15, max_epochs=5000, newton=False)  # to the last bit of every variable
        assert result.relative_gap < 1e-13
        _solved[name] = problem, result
    return _solved[name]


class _Pick:
    """In place of a generator: the method visits this one block."""

    def __init__(self, block):
        self.block = block

    def integers(self, low, high, count):
        return np.array([self.block])


def _at(method, problem, x, y, w):
    """A state of the method at this point."""
    state = method.start(problem, np.random.default_rng(0))
    state.x[:], state.y[:], state.w[:] = x, y, w
    state.zx[:], state.by[:] = problem.combine(x), problem.map_slots.T @ y
    return state


def _visited(method, state, block):
    arrays = {key: getattr(state, key).copy() for key in ("x", "y", "w", "zx", "by", "u")}
    state = dataclasses.replace(state, rng=_Pick(block), **arrays)
    method.epoch(state)
    return state


# -- the constants ------------------------------------------------------------------------------------


def test_constants_by_hand():
    X = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0], [1.0, 1.0], [0.5, 0.0]])
    target = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    weight = np.array([1.0, 2.0, 1.0, 0.5, 0.5])
    penalty = fl.Ridge() @ fl.Matrix(np.array([[1.0, 0.0], [1.0, 2.0], [0.0, 1.0]]))
    problem = fl.Problem(X, target, loss=fl.SquaredHinge(), penalty=penalty, alpha=0.3, sample_weight=weight)
    found = theory.constants(problem, rho=0.2, block_size=2)

    n, K, rho, gamma, h = 5, 3, 0.2, 1 / 20, 0.3
    v = 1 / (2.0 * 2.0)  # SquaredHinge is 2-smooth, the heaviest row weighs 2
    factor = 1.01 * (1 + 0.5 * (1 - 1 / K))
    blocks = [np.linalg.eigvalsh(part @ part.T)[-1] for part in (X[:2], X[2:4], X[4:])]
    B = np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
    low, high = np.linalg.eigvalsh(B @ B.T)
    sigma_Z = np.linalg.eigvalsh(X.T @ X)[-1]
    Q = rho * (1.01 * high * np.eye(3) - B.T @ B)
    sigma_Q = np.linalg.eigvalsh(Q)[-1]
    H = scipy.linalg.block_diag(*(rho * factor * s * np.eye(k) for s, k in zip(blocks, (2, 2, 1), strict=True)))
    sigma_H = np.linalg.eigvalsh(H)[-1]

    assert (found.n, found.K, found.rho) == (n, K, rho)
    assert list(found.bounds) == [0, 2, 4, 5]
    assert found.gamma == pytest.approx(gamma)
    assert (found.v, found.h, found.v_psi) == pytest.approx((v, h, 1 / h))
    assert found.sigma_blocks == pytest.approx(blocks, rel=1e-12)
    assert found.eta_Z == pytest.approx(factor * np.array(blocks), rel=2e-4)
    assert found.sigma_H == pytest.approx(sigma_H, rel=2e-4)
    assert (found.sigma_Z, found.sigma_B_min, found.sigma_B_max) == pytest.approx((sigma_Z, low, high), rel=1e-10)
    assert found.eta_B == pytest.approx(1.01 * high, rel=1e-6)
    assert found.sigma_Q == pytest.approx(sigma_Q, rel=1e-6)
    terms = {
        "x": v / 4 / (v + sigma_H),
        "w": rho * low / 4 / (1 / (n * h) + rho * high + sigma_Q / (2 * K - 1)),
        "y_kernel": K / n / h / 4 / sigma_Q,
        "y_range": K * rho * v * low / 4 / sigma_Q / (rho * sigma_Z + 4 * v),
    }
    assert found.terms == pytest.approx(terms, rel=2e-4)
    assert found.mu == pytest.approx(min(terms.values()), rel=2e-4)
    assert found.limiting == min(terms, key=terms.get)
    assert found.contraction == pytest.approx(1 - found.mu / K)
    assert found.per_epoch == pytest.approx((1 - found.mu / K) ** K)
    steps = found.iterations(1e-3)
    assert found.contraction**steps <= 1e-3 < found.contraction ** (steps - 1)
    assert found.epochs(1e-3) == steps / K
    assert found.limiting in found.summary().split("<-")[0].splitlines()[-1]


def test_distance_by_hand():
    problem, solution = _solve("overlap")
    found = theory.constants(problem, rho=0.2, block_size=7, solution=solution)
    method = SDCAADMM("theory", rho=0.2, block_size=7)
    state = method.start(problem, np.random.default_rng(0))
    for _ in range(3):
        method.epoch(state)
    X, n, K, rho, gamma = problem.data.arrays[0], N, 6, 0.2, 1 / (4 * N)
    Z, B = X.T, problem.map.toarray().T
    star = {key: solution.state[key] for key in "xyw"}
    dx, dy, dw = state.x - star["x"], state.y - star["y"], (state.w - star["w"])[:P]

    def F(x, y):
        smooth = problem.target @ x / n + 0.5 * problem.loss.smoothing * x @ x / n
        return smooth + problem.penalty_conjugate(y / n) - star["w"][:P] @ (Z @ x + B @ y) / n

    H = rho * np.repeat(method.eta[method.bounds[:-1]], np.diff(method.bounds))
    Q = rho * (method.c[0] * np.eye(problem.d) - B.T @ B)
    r = Z @ state.x + B @ state.y
    expected = (
        F(state.x, state.y) - F(star["x"], star["y"]) + dw @ dw / (2 * n**2 * gamma * rho)
        + rho * (1 - gamma * n / K) / (2 * n) * r @ r + np.sum((found.v + H) * dx**2) / (2 * n)
        + dy @ Q @ dy / (2 * n * K)
    )  # fmt: skip
    assert theory.distance(problem, found, state, solution) == pytest.approx(expected, rel=1e-10)
    assert theory.distance(problem, found, solution, solution) == pytest.approx(0.0, abs=1e-25)


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("block_size", [1, 5, N])
def test_mu_lies_in_its_range(name, block_size):
    problem, solution = _solve(name)
    for rho in (1e-3, 0.1, 10.0):
        found = theory.constants(problem, rho=rho, block_size=block_size, solution=solution)
        assert found.applies, found.reasons
        assert 0 < found.mu <= found.mu_local * (1 + 1e-12) <= 0.25 * (1 + 1e-12)
        assert 0 < found.contraction < 1
        assert found.printed_terms["x"] == found.terms["x"]


def test_scaling_rows_and_map_together_changes_nothing():
    X, target = _data()
    terms = []
    for scale in (1.0, 3.0):
        penalty = fl.L1() @ fl.Matrix(scale * np.eye(P)) + fl.Ridge() @ fl.Matrix(scale * np.eye(P))
        problem = fl.Problem(scale * X, target, loss=fl.Squared(), penalty=penalty, alpha=0.1)
        terms.append(theory.constants(problem, rho=0.1 / scale**2, block_size=5).terms)
    assert terms[0] == pytest.approx(terms[1], rel=1e-6)


def test_scaling_moduli():
    X, target = _data()
    problem = _make("l1")
    base = theory.constants(problem)
    assert theory.constants(problem.with_alpha(0.6)).h == pytest.approx(2 * base.h)
    smooth = [
        theory.constants(fl.Problem(X, np.sign(target), loss=fl.SmoothedHinge(s), penalty=fl.Ridge())).v
        for s in (0.5, 2.0)
    ]
    assert smooth == pytest.approx([0.5, 2.0])
    assert theory.constants(fl.Problem(X, np.sign(target), loss=fl.Logistic(), penalty=fl.Ridge())).v == 4.0
    faster = theory.constants(problem, gamma=1 / (2 * N))
    assert faster.terms["w"] == pytest.approx(2 * base.terms["w"])


def test_local_modulus_is_the_curvature():
    """v_psi at the solution: no direction has less of the conjugate's growth along Ker(B), and one has that."""
    problem, solution = _solve("overlap")
    v_psi = theory.constants(problem, solution=solution).v_psi
    y, u = solution.state["y"] / N, problem.map_slots @ solution.state["w"]
    kernel = scipy.linalg.null_space(problem.map.toarray().T)
    project = kernel @ kernel.T
    rng = np.random.default_rng(0)
    size = 1e-4

    def growth(move):
        rise = problem.penalty_conjugate(y + move) + problem.penalty_conjugate(y - move)
        return rise - 2 * problem.penalty_conjugate(y), np.sum((project @ move) ** 2)

    assert problem.penalty_conjugate(y) == pytest.approx(u @ y - problem.penalty_value(u), abs=1e-12)
    hessian = np.zeros((problem.d, problem.d))
    basis = size * np.eye(problem.d)
    for i in range(problem.d):
        for j in range(problem.d):
            hessian[i, j] = (growth(basis[i] + basis[j])[0] - growth(basis[i] - basis[j])[0]) / (4 * size**2)
    exact = 1 / scipy.linalg.eigh(project, hessian, eigvals_only=True)[-1]
    assert v_psi == pytest.approx(exact, rel=1e-3)
    for _ in range(50):
        rise, along = growth(size * rng.standard_normal(problem.d))
        assert rise >= 0.999 * v_psi * along


@pytest.mark.parametrize("kind", ["dense", "csr", "float32", "outputs", "tasks", "intercept"])
def test_spectra_of_every_layout(kind, monkeypatch):
    X, target = _data()
    options = {"loss": fl.Squared(), "penalty": fl.Ridge()}
    Z = X.T
    if kind == "csr":
        X[np.abs(X) < 0.7] = 0.0
        problem = fl.Problem(sp.csr_array(X), target, **options)
        Z = X.T
    elif kind == "float32":
        problem = fl.Problem(X.astype(np.float32), target, **options)
        Z = X.astype(np.float32).astype(float).T
    elif kind == "outputs":
        problem = fl.Problem(X, np.column_stack([target, -target]), **options)
        Z = np.zeros((2 * P, 2 * N))
        Z[:P, 0::2], Z[P:, 1::2] = X.T, X.T
    elif kind == "tasks":
        task = np.arange(N) % 3
        problem = fl.Problem(X, target, task=task, **options)
        Z = np.zeros((3 * P, N))
        for i in range(N):
            Z[task[i] * P : (task[i] + 1) * P, i] = X[i]
    elif kind == "intercept":
        problem = fl.Problem(X, target, fit_intercept=True, **options)
        Z = np.column_stack([X, np.ones(N)]).T
    else:
        problem = fl.Problem(X, target, **options)
    sizes = [1, 7] if kind != "outputs" else [1, 7, 2 * N]
    for block_size in sizes:
        found = theory.constants(problem, block_size=block_size)
        exact = [np.linalg.norm(Z[:, i:j], 2) ** 2 for i, j in zip(found.bounds[:-1], found.bounds[1:], strict=True)]
        assert found.sigma_blocks == pytest.approx(exact, rel=1e-6)
        assert found.sigma_Z == pytest.approx(np.linalg.norm(Z, 2) ** 2, rel=1e-6)
    monkeypatch.setattr(theory.rate, "DENSE", 2)  # the way of large problems: Lanczos, chunk by chunk
    monkeypatch.setattr(theory.rate, "AT_ONCE", 20)
    again = theory.constants(problem, block_size=7)
    assert again.sigma_Z == pytest.approx(found.sigma_Z, rel=1e-8)


def test_spectrum_of_a_large_map(monkeypatch):
    X, target = _data()
    penalty = fl.Ridge() + 0.3 * (fl.Ridge() @ fl.Difference(P))
    problem = fl.Problem(X, target, loss=fl.Squared(), penalty=penalty)
    exact = theory.constants(problem)
    monkeypatch.setattr(theory.rate, "DENSE", 3)
    found = theory.constants(problem)
    assert found.sigma_B_min == pytest.approx(exact.sigma_B_min, rel=1e-8)
    assert exact.sigma_B_max * (1 - 1e-9) <= found.sigma_B_max <= 1.02 * exact.sigma_B_max


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"fit_intercept": True}, "intercept"),
        ({"penalty": None}, "not injective"),
        ({"penalty": fl.Ridge() @ fl.Difference(P)}, "not injective"),
        ({"alpha": 0.0}, "not injective"),
        ({"loss": fl.Quantile()}, "v = 0"),
        ({"penalty": fl.L1()}, "h = 0"),
        ({"penalty": fl.GroupL2([[0, 1, 2], [2, 3, 4, 5]])}, "h = 0"),
        ({"penalty": fl.GroupL2([list(range(P)), list(range(P))]) + fl.Ridge()}, "pass solution="),
        ({"penalty": fl.GroupLinf([list(range(P)), list(range(P))]) + fl.Ridge()}, "not known for GroupLinf"),
    ],
)
def test_where_the_theorem_is_silent_it_says_why(change, word):
    X, target = _data()
    problem = fl.Problem(X, target, **({"loss": fl.Squared(), "penalty": fl.Ridge()} | change))
    solution = fl.solve(problem, tol=1e-8) if "Linf" in word else None
    found = theory.constants(problem, solution=solution)
    assert not found.applies and found.mu == 0.0 and found.mu_local == 0.0
    assert found.contraction == found.per_epoch == 1.0
    assert math.isinf(found.iterations(0.1)) and math.isinf(found.epochs(0.1))
    assert any(word in reason for reason in found.reasons)
    assert word in found.summary()


def test_parameters_outside_the_theorem_are_named():
    problem = _make("l1")
    assert any("gamma" in reason for reason in theory.constants(problem, gamma=1 / N).reasons)
    assert any("eta_Z" in reason for reason in theory.constants(problem, eta_z=1.1, block_size=5).reasons)
    with pytest.raises(ValueError, match=r"eta_b is 0\.9; it must exceed"):
        theory.constants(problem, eta_b=0.9)
    overlap, solution = _solve("overlap")
    assert any("eta_B" in reason for reason in theory.constants(overlap, eta_b=1.999, solution=solution).reasons)
    with pytest.raises(ValueError, match="epsilon is 2"):
        theory.constants(problem).iterations(2)


# -- the preset satisfies the theorem ------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("block_size", [1, 5, N])
def test_preset_satisfies_the_conditions(name, block_size):
    problem = _make(name)
    method = SDCAADMM("theory", block_size=block_size)
    method.start(problem, np.random.default_rng(0))
    X, K = problem.data.arrays[0], method.blocks
    assert method.gamma_n == 0.25 and method.order == "random" and not method.sequential
    assert np.all(method.metric[problem.feature_slots] == 1)
    for first, last in zip(method.bounds[:-1], method.bounds[1:], strict=True):
        eta = method.eta[first:last]
        assert np.all(eta == eta[0])
        assert eta[0] > (1 + 0.5 * (1 - 1 / K)) * np.linalg.norm(X[first:last], 2) ** 2
    assert np.all(method.c == method.c[0])
    assert method.c[0] > np.linalg.norm(problem.map.toarray(), 2) ** 2


@pytest.mark.parametrize("seed", [594, 690, 997])
def test_preset_satisfies_the_conditions_on_awkward_blocks(seed):
    """Blocks whose first power iterations look converged at a smaller eigenvalue."""
    rng = np.random.default_rng(seed)
    X, target = rng.standard_normal((20, 3)), rng.standard_normal(20)
    problem = fl.Problem(X, target, loss=fl.Squared(), penalty=fl.Ridge(), alpha=1e-3)
    assert theory.constants(problem, block_size=2).applies
    result = fl.solve(problem, preset="theory", block_size=2, rho=1.0, tol=1e-6, max_epochs=1000)
    assert result.status is fl.Status.CONVERGED


# -- the rate -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("block_size", [1, 5])
def test_mean_distance_stays_below_the_bound(name, block_size):
    """E R_D <= (1 - mu/K)^T C_1 at every epoch, over independent seeds."""
    problem, solution = _solve(name)
    found = theory.constants(problem, rho=0.1, block_size=block_size, solution=solution)
    method = SDCAADMM("theory", rho=0.1, block_size=block_size)
    epochs, seeds = 30, 40
    distances = np.empty((seeds, epochs + 1))
    for seed in range(seeds):
        state = method.start(problem, np.random.default_rng(seed))
        distances[seed, 0] = theory.distance(problem, found, state, solution)
        for epoch in range(epochs):
            method.epoch(state)
            distances[seed, epoch + 1] = theory.distance(problem, found, state, solution)
    mean = distances.mean(axis=0)
    assert found.mu > 0
    assert np.all(distances > 0)
    assert np.all(mean <= found.per_epoch ** np.arange(epochs + 1) * mean[0] * (1 + 1e-12))
    measured = (mean[-1] / mean[0]) ** (1 / epochs)
    assert measured <= found.per_epoch


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(("block_size", "rho"), [(1, 0.1), (5, 0.01), (5, 10.0), (N, 0.1)])
def test_one_iteration_contracts_in_exact_expectation(name, block_size, rho):
    """All K outcomes of an iteration averaged: no sampling error. From states far and near, in all directions."""
    problem, solution = _solve(name)
    found = theory.constants(problem, rho=rho, block_size=block_size, solution=solution)
    method = SDCAADMM("theory", rho=rho, block_size=block_size)
    low, high = problem._domain()
    rng = np.random.default_rng(1)
    for size in (10.0, 0.1, 1e-3):
        for mask in ((1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 1)):
            moved = []
            for key, on in zip("xyw", mask, strict=True):
                star = solution.state[key]
                moved.append(star + on * size * (np.abs(star).mean() + 0.1) * rng.standard_normal(len(star)))
            x, y, w = moved
            w[problem.intercept_slots] = 0.0
            state = _at(method, problem, np.clip(x, low, high), y, w)
            before = theory.distance(problem, found, state, solution)
            after = [
                theory.distance(problem, found, _visited(method, state, k), solution) for k in range(method.blocks)
            ]
            assert np.mean(after) <= found.contraction * before * (1 + 1e-12)


def _worst(problem, options):
    """The constants, and the worst contraction of one iteration over all states of a quadratic problem.

    There an iteration is affine and the distance a quadratic form: the worst state is an eigenvector.
    """
    n, p = problem.n, problem.p
    solution = fl.solve(problem, tol=1e-15, max_epochs=5000)
    found = theory.constants(problem, **options)
    method = SDCAADMM("theory", **options)
    star = np.concatenate([solution.state["x"], solution.state["y"], solution.state["w"][:p]])
    basis = np.eye(star.size)

    def state_at(point):
        return _at(method, problem, point[:n], point[n:-p], np.append(point[-p:], 0.0))

    def gather(state):
        return np.concatenate([state.x, state.y, state.w[:p]])

    def form(move):
        return theory.distance(problem, found, state_at(star + move), solution)

    weigh = np.array([[(form(a + b) - form(a - b)) / 4 for a in basis] for b in basis])
    later = np.zeros_like(weigh)
    for k in range(method.blocks):
        step = np.column_stack([gather(_visited(method, state_at(star + a), k)) - star for a in basis])
        later += step.T @ weigh @ step / method.blocks
    return found, scipy.linalg.eigh(later, weigh, eigvals_only=True)[-1]


@pytest.mark.parametrize(
    ("block_size", "rho", "gamma_n"), [(1, 0.1, 0.25), (3, 2.0, 0.25), (9, 0.02, 0.25), (3, 0.1, 0.5)]
)
@pytest.mark.parametrize("copies", [1, 2])
def test_worst_state_of_a_quadratic_problem(block_size, rho, gamma_n, copies):
    n, p = 9, 2
    X, target = _data(3, n, p)
    penalty = fl.Ridge() @ fl.Copies(list(range(p)) * copies, p)
    problem = fl.Problem(X, target, loss=fl.Squared(), penalty=penalty, alpha=0.2)
    found, worst = _worst(problem, {"rho": rho, "block_size": block_size, "gamma": gamma_n / n})
    assert 0 < found.mu <= 0.25
    assert worst <= found.contraction + 1e-9


def test_the_w_term_is_sharp():
    """One block, one feature: the worst state contracts as promised, to three digits and more."""
    X, target = _data(3, 4, 1)
    problem = fl.Problem(0.1 * X, target, loss=fl.Squared(), penalty=fl.Ridge(), alpha=1.0)
    found, worst = _worst(problem, {"rho": 0.1, "block_size": 4})
    assert found.limiting == "w"
    assert found.mu <= 1 - worst <= 1.001 * found.mu


def test_rate_near_a_sparse_solution_with_overlap():
    """Where idle copies make v_psi = 0, the joint term still gives a rate, and it holds near the solution."""
    X, _ = _data()
    rng = np.random.default_rng(5)
    target = X @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.0]) + 0.3 * rng.standard_normal(N)
    penalty = fl.GroupL2([[0, 1, 2], [3, 4, 5], [0, 3], [1, 4], [2, 5]]) + fl.Ridge()
    problem = fl.Problem(X, target, loss=fl.Squared(), penalty=penalty, alpha=0.25)
    solution = fl.solve(problem, tol=1e-15, max_epochs=5000)
    assert np.count_nonzero(solution.coef) == 3
    for block_size in (1, 5):
        found = theory.constants(problem, rho=0.1, block_size=block_size, solution=solution)
        assert found.v_psi == 0 and found.mu == 0 < found.mu_local
        assert "near the solution" in found.summary()
        method = SDCAADMM("theory", rho=0.1, block_size=block_size)
        for _ in range(5):
            x, y, w = (solution.state[key] + 1e-4 * rng.standard_normal(len(solution.state[key])) for key in "xyw")
            w[problem.intercept_slots] = 0.0
            state = _at(method, problem, x, y, w)
            before = theory.distance(problem, found, state, solution)
            after = [
                theory.distance(problem, found, _visited(method, state, k), solution) for k in range(method.blocks)
            ]
            assert np.mean(after) <= (1 - found.mu_local / found.K) * before


def test_the_printed_rate_is_too_fast():
    """Blocks of many rows: along Ker(B) the printed third term promises n/K times what the method does."""
    n = 20
    X, target = _data(0, n, 2)
    problem = fl.Problem(X, target, loss=fl.Squared(), penalty=fl.Ridge() @ fl.Copies([0, 1, 0, 1], 2), alpha=4.0)
    solution = fl.solve(problem, tol=1e-15)
    options = {"rho": 1.0, "block_size": n, "eta_b": 50.0}
    found = theory.constants(problem, **options)
    method = SDCAADMM("theory", **options)
    along_kernel = np.array([1.0, 0.0, -1.0, 0.0])
    state = _at(method, problem, solution.state["x"], solution.state["y"] + along_kernel, solution.state["w"])
    first = theory.distance(problem, found, state, solution)
    for _ in range(300):
        method.epoch(state)
    fallen = theory.distance(problem, found, state, solution) / first
    assert found.contraction**300 > fallen  # the corrected bound holds
    assert (1 - min(found.printed_terms.values())) ** 300 < fallen  # the printed one does not


def test_the_printed_distance_can_grow():
    """With the paper's weight of w, 1/(2 n gamma rho), one iteration from w = w*, x = 0 raises the distance."""
    problem, solution = _solve("l1")
    found = theory.constants(problem, block_size=5)
    method = SDCAADMM("theory", block_size=5)
    extra = (1 - 1 / N) / (2 * N * found.gamma * found.rho)

    def printed(state):
        return theory.distance(problem, found, state, solution) + extra * np.sum((state.w - solution.state["w"]) ** 2)

    state = _at(method, problem, np.zeros(N), solution.state["y"], solution.state["w"])
    after = np.mean([printed(_visited(method, state, k)) for k in range(method.blocks)])
    assert after > 2 * printed(state)


def test_the_page_runs():
    page = pathlib.Path(__file__).parents[2] / "docs" / "theory.md"
    code = [part.split("```")[0] for part in page.read_text().split("```python\n")[1:]]
    assert code
    names = {}
    for part in code:
        exec(compile(part, str(page), "exec"), names)
