"""Newton's method on the structure of an iterate: right structure, right answer; wrong structure, true bounds."""

from __future__ import annotations

import cases
import numpy as np
import pytest

import fenchel as fl
from fenchel import manifold
from fenchel.manifold import Finisher, applies, correct
from fenchel.methods.sdca_admm import SDCAADMM

SMOOTH = ["smoothed-hinge", "squared-hinge", "logistic", "squared", "huber", "poisson"]
GRID = fl.Gradient((3, 4))
PENALTIES = {
    "l1": fl.L1(),
    "weighted l1 + ridge": fl.L1(weights=np.linspace(0.5, 2, cases.P)) + 0.1 * fl.Ridge(),
    "overlapping groups": fl.GroupL2(cases.OVERLAP),
    "sparse groups": fl.L1() + fl.GroupL2(np.arange(cases.P).reshape(-1, 3)),
    "fused": 0.3 * fl.L1() + fl.L1() @ fl.Difference(cases.P),
    "graph": 0.3 * fl.L1() + fl.L1() @ fl.Incidence(cases.EDGES, cases.P),
    "total variation": fl.GroupL2(GRID.cells) @ GRID + 0.1 * fl.L1(),
    "non-negative l1": fl.L1() + fl.NonNegative(),
    "trend": fl.L1() @ fl.Difference(cases.P, order=2) + 0.05 * fl.L1(),
    "uneven edges": 0.3 * fl.L1() + fl.L1() @ fl.Matrix([[1.0, -2.0] + 10 * [0.0], 4 * [0.0] + [1.0, 3.0] + 6 * [0.0]]),
}


def make(loss="logistic", penalty="l1", *, n=200, sparse=False, weighted=False, fit_intercept=True, share=0.1):
    loss = cases.losses()[loss]
    X, y, weight = cases.data(loss, n=n, sparse=sparse, weighted=weighted)
    problem = fl.Problem(X, y, loss=loss, penalty=PENALTIES[penalty], sample_weight=weight, fit_intercept=fit_intercept)
    return problem.with_alpha(share * problem.alpha_max())


def after(problem, epochs, seed=0):
    method = SDCAADMM()
    state = method.start(problem, np.random.default_rng(seed))
    for _ in range(epochs):
        method.epoch(state)
    return state


def check(problem, point, optimum):
    """The point is what it says, and its certificate holds."""
    assert point.primal == pytest.approx(problem.primal_at(point.w), rel=1e-12)
    np.testing.assert_allclose(point.zx, problem.gradient_sum(point.x), atol=1e-9 * np.abs(point.x).sum())
    made = problem.certificate(point, fresh=False, primal=point.primal)
    assert made.dual <= optimum.primal * (1 + 1e-12)
    assert point.primal >= optimum.dual * (1 - 1e-12)
    return made


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", SMOOTH)
def test_finds_the_last_digits(loss, penalty):
    problem = make(loss, penalty, weighted=loss == "logistic", sparse=loss in ("huber", "squared-hinge"))
    assert applies(problem)
    optimum = fl.solve(problem, tol=1e-11, max_epochs=20_000, newton=False)
    state = after(problem, 60)
    made = check(problem, Finisher(problem).run(state.w, state.u, state.y, tol=1e-9), optimum)
    assert made.relative_gap <= 1e-9


@pytest.mark.parametrize("epochs", [0, 1, 3, 8])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_bounds_hold_wherever_it_begins(penalty, epochs):
    problem = make("smoothed-hinge", penalty)
    optimum = fl.solve(problem, tol=1e-11, max_epochs=20_000, newton=False)
    state = after(problem, epochs)
    point = Finisher(problem).run(state.w, state.u, state.y, tol=1e-9)
    if point is None:  # w itself is still out of bounds
        assert not np.isfinite(problem.primal_at(problem.snap(state.w, state.u)))
        return
    check(problem, point, optimum)
    assert point.primal <= problem.primal_at(problem.snap(state.w, state.u)) * (1 + 1e-12)


def test_units_that_were_wrongly_zero_are_set_free():
    """From w = 0, where every feature is held at zero, the answer is found without a single epoch."""
    problem = make("logistic", "l1")
    point = Finisher(problem).run(np.zeros(problem.size), np.zeros(problem.d), np.zeros(problem.d), tol=1e-9)
    made = check(problem, point, fl.solve(problem, tol=1e-11, newton=False, max_epochs=20_000))
    assert np.count_nonzero(point.w) > 2
    assert made.relative_gap <= 1e-9


@pytest.mark.parametrize("penalty", ["fused", "graph", "overlapping groups", "non-negative l1"])
def test_structure_is_exact(penalty):
    problem = make("squared", penalty, share=0.3)
    result = fl.solve(problem, tol=1e-9)
    u = problem.map_slots @ problem.pack(result.coef, result.intercept)
    plain = fl.solve(problem, tol=1e-11, newton=False, max_epochs=20_000)
    v = problem.map_slots @ problem.pack(plain.coef, plain.intercept)
    np.testing.assert_array_equal(u == 0, v == 0)
    assert np.any(u == 0)
    np.testing.assert_allclose(result.coef, plain.coef, atol=1e-4)


@pytest.mark.parametrize("loss", ["hinge", "quantile", "epsilon-insensitive"])
def test_kinked_losses_are_left_alone(loss):
    loss = cases.losses()[loss]
    X, y, _ = cases.data(loss, n=40)
    assert not applies(fl.Problem(X, y, loss=loss, penalty=fl.L1(), alpha=0.1))


@pytest.mark.parametrize("penalty", [fl.GroupLinf([range(6), range(6, 12)]), fl.TraceNorm((3, 4)), fl.Box(0.1, 1)])
def test_other_penalties_are_left_alone(penalty):
    X, y, _ = cases.data(fl.Squared(), n=60)
    problem = fl.Problem(X, y, loss="squared", penalty=penalty, alpha=0.05)
    assert not applies(problem)
    assert correct(problem, np.zeros(problem.size), np.zeros(problem.d), np.zeros(problem.d), tol=1e-6) is None


def test_many_features_under_zeros_over_three_are_left_alone(monkeypatch):
    problem = make("squared", "trend")
    state = after(problem, 60)
    monkeypatch.setattr(manifold, "_MOST_TURNED", 3)
    assert Finisher(problem).run(state.w, state.u, state.y, tol=1e-6) is None
    assert fl.solve(problem, max_epochs=5000).status is fl.Status.CONVERGED


@pytest.mark.parametrize("kind", ["outputs", "tasks"])
def test_several_outputs(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 6))
    W = np.zeros((3, 6))
    W[:, :2] = rng.standard_normal((3, 2))
    Y = X @ W.T + 0.2 * rng.standard_normal((150, 3))
    joint = fl.GroupL2(np.arange(18).reshape(3, 6).T)
    task = rng.integers(0, 3, 150)
    if kind == "outputs":
        problem = fl.Problem(X, Y, loss="squared", penalty=joint, alpha=0.05, fit_intercept=True)
    else:
        y = Y[np.arange(150), task]
        problem = fl.Problem(X, y, loss="squared", penalty=joint, alpha=0.05, fit_intercept=True, task=task)
    state = after(problem, 40)
    point = Finisher(problem).run(state.w, state.u, state.y, tol=1e-9)
    made = check(problem, point, fl.solve(problem, tol=1e-11, newton=False, max_epochs=20_000))
    assert made.relative_gap <= 1e-9


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_rows_kept_or_read_give_one_curvature(monkeypatch, sparse):
    rng = np.random.default_rng(0)
    problem = make("logistic", "fused", sparse=sparse, weighted=True, share=0.6)
    state = after(problem, 60)
    bend = rng.random(problem.visits)
    faces = []
    for entries in (1 << 22, 0):
        monkeypatch.setattr(manifold, "_KEPT_ENTRIES", entries)
        monkeypatch.setattr(manifold, "_KEPT", 0.0)
        faces.append(Finisher(problem)._face(state.u == 0))
    kept, read = (face.data for face in faces)
    assert kept.kept is not None
    assert read.kept is None
    z, x, free = rng.standard_normal(faces[0].count), rng.standard_normal(problem.visits), np.arange(problem.visits)
    np.testing.assert_allclose(kept.scores(z), read.scores(z), atol=1e-12)
    np.testing.assert_allclose(kept.gradient(x), read.gradient(x), atol=1e-10)
    matrix = read.curvature(bend)
    np.testing.assert_allclose(kept.curvature(bend), matrix, atol=1e-9)
    np.testing.assert_allclose(matrix @ z, kept.product(z, bend, free), atol=1e-9)
    np.testing.assert_allclose(matrix @ z, read.product(z, bend, free), atol=1e-9)


def test_conjugate_gradients_and_the_matrix_lead_to_one_answer(monkeypatch):
    problem = make("smoothed-hinge", "sparse groups")
    state = after(problem, 30)
    direct = Finisher(problem).run(state.w, state.u, state.y, tol=1e-10)
    monkeypatch.setattr(manifold, "_MOST_DIRECT", 0)
    step_by_step = Finisher(problem).run(state.w, state.u, state.y, tol=1e-10)
    assert step_by_step.primal == pytest.approx(direct.primal, rel=1e-12)
    np.testing.assert_allclose(step_by_step.w, direct.w, atol=1e-6)


def test_a_budget_is_kept():
    problem = make()
    state = after(problem, 20)
    assert Finisher(problem).run(state.w, state.u, state.y, tol=1e-6, budget=0.0) is None


def test_saves_most_of_the_epochs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 300))
    y = np.where(X[:, :8].sum(axis=1) + rng.standard_normal(3000) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1())
    problem = problem.with_alpha(0.1 * problem.alpha_max())
    quick, plain = (fl.solve(problem, tol=1e-8, newton=newton) for newton in (True, False))
    assert quick.status is plain.status is fl.Status.CONVERGED
    assert quick.epochs < 0.5 * plain.epochs
    assert fl.solve(problem, tol=1e-8, preset="paper", max_epochs=5).state["newton_passes"] == 0


def test_newton_is_an_option():
    with pytest.raises(ValueError, match="newton is 'yes'"):
        fl.solve(make(), newton="yes")
