"""Descent on the curvature of the squared loss: the answers that epochs find, and true bounds where it finds none."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import fenchel as fl
from fenchel import descent
from fenchel.descent import Descent, applies
from fenchel.kernels.descent import bounds_of_units, mirror
from fenchel.manifold import Finisher
from fenchel.solver import schedule

P = 12
PENALTIES = {
    "l1": fl.L1(),
    "weighted l1": fl.L1(weights=np.linspace(0.2, 2.0, P)),
    "elastic net": fl.L1() + 0.3 * fl.Ridge(),
    "ridge": fl.Ridge(),
    "groups": fl.GroupL2(np.arange(P).reshape(-1, 3)),
    "scattered groups": fl.GroupL2([[0, 5, 7], [11, 1], [2, 3, 4, 6, 8, 9, 10]], weights=[1.0, 0.5, 2.0]),
    "groups + ridge": fl.GroupL2(np.arange(P).reshape(-1, 4)) + 0.2 * fl.Ridge(),
    "non-negative": fl.L1() + fl.NonNegative(),
    "box": 0.5 * fl.L1() + fl.Box(-0.2, 0.3),
    "scaled": fl.L1() @ fl.Matrix(np.diag(np.linspace(0.5, 3.0, P))[::-1]),
}


def make(penalty, *, n=150, dtype=float, sparse=False, weighted=False, fit_intercept=False, far=0.0, share=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * np.linspace(0.5, 2.0, P) + far
    if sparse:
        X *= rng.random((n, P)) < 0.4
    y = X @ np.where(np.arange(P) % 3, 0.0, 1.0) + rng.standard_normal(n) + far
    data = sp.csr_array(X.astype(dtype)) if sparse else X.astype(dtype)
    weight = rng.random(n) if weighted else None
    problem = fl.Problem(data, y, loss="squared", penalty=penalty, alpha=share, sample_weight=weight,
                         fit_intercept=fit_intercept)  # fmt: skip
    assert applies(problem)
    return problem


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", PENALTIES)
def test_finds_what_epochs_find(name, fit_intercept):
    problem = make(PENALTIES[name], fit_intercept=fit_intercept, weighted=name in ("l1", "groups"))
    point = Descent(problem).run(np.zeros(problem.size), tol=1e-10)
    assert point.made.relative_gap <= 1e-10
    assert point.primal == pytest.approx(problem.primal_at(point.w), rel=1e-12)
    fresh = problem.certificate(point, fresh=True)
    assert fresh.relative_gap <= 1.1e-10
    slow = fl.solve(problem, tol=1e-10, newton=False, max_epochs=20_000)
    assert point.primal == pytest.approx(slow.primal, rel=3e-10)
    np.testing.assert_allclose(problem.unpack(point.w)[0], slow.coef, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("far", [0.0, 30.0])
def test_kinds_of_data(dtype, sparse, far):
    problem = make(PENALTIES["scattered groups"], dtype=dtype, sparse=sparse, far=far, fit_intercept=True)
    point = Descent(problem).run(np.zeros(problem.size), tol=1e-9)
    assert problem.certificate(point, fresh=True).relative_gap <= 1e-9


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_single_precision_costs_no_digit(monkeypatch, fit_intercept):
    monkeypatch.setattr(descent, "_SINGLE", 1)
    made = []
    curvature = Descent._make_curvature
    monkeypatch.setattr(Descent, "_make_curvature", lambda self, dtype: made.append(dtype) or curvature(self, dtype))
    problem = make(PENALTIES["groups"], fit_intercept=fit_intercept)
    point = Descent(problem).run(np.zeros(problem.size), tol=1e-11)
    assert made == [np.float32]
    assert point.made.relative_gap <= 1e-11
    # columns far from zero are centred, which single precision could not bear
    problem = make(PENALTIES["groups"], fit_intercept=True, far=1000.0)
    assert Descent(problem).run(np.zeros(problem.size), tol=1e-9).made.relative_gap <= 1e-9
    assert made[1:] == [float]


def test_what_it_leaves_alone():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, P)), rng.standard_normal(100)
    groups = [range(k, k + 4) for k in range(0, P - 3, 2)]
    for options in (
        {"loss": "huber", "penalty": fl.L1()},
        {"loss": "squared", "penalty": fl.GroupL2(groups)},  # they overlap
        {"loss": "squared", "penalty": fl.L1() @ fl.Difference(P)},
        {"loss": "squared", "penalty": fl.GroupL2([range(5)])},  # features without a penalty
        {"loss": "squared", "penalty": fl.L1() + fl.GroupL2(np.arange(P).reshape(-1, 3))},
        {"loss": "squared", "penalty": fl.GroupLinf(np.arange(P).reshape(-1, 3))},
    ):
        assert not applies(fl.Problem(X, y, alpha=0.1, **options)), options
    assert not applies(fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.0))
    assert not applies(fl.Problem(X[:40], y[:40], loss="squared", penalty=fl.L1(), alpha=0.1))  # H beside few rows


def test_a_solve_needs_no_epoch_and_repeats_itself():
    problem = make(PENALTIES["groups"], n=3000, fit_intercept=True)
    first, second = (fl.solve(problem, tol=1e-9) for _ in range(2))
    assert first.status is fl.Status.CONVERGED
    assert first.state["epoch"] == 0
    assert 0 < first.epochs == second.epochs
    assert np.array_equal(first.coef, second.coef)
    other = problem.with_alpha(0.01)
    assert fl.solve(other, tol=1e-9).status is fl.Status.CONVERGED
    assert fl.solve(problem.with_alpha(0.0), tol=1e-9).status is fl.Status.CONVERGED


def test_the_second_look_after_an_epoch(monkeypatch):
    """Where it costs many epochs it waits for one, and for an iterate without zeros."""
    monkeypatch.setattr(schedule, "_CURVATURE", (0.0, np.inf))
    monkeypatch.setattr(schedule.Schedule, "_few_features", lambda *args: None)
    dense, few = make(PENALTIES["ridge"], n=400), make(PENALTIES["l1"], n=400, share=1.5)
    found = fl.solve(dense, tol=1e-9)
    assert (found.state["epoch"], found.status) == (1, fl.Status.CONVERGED)
    monkeypatch.setattr(Descent, "run", lambda *args, **options: pytest.fail("most features are zero"))
    assert fl.solve(few, tol=1e-9).status is fl.Status.CONVERGED


@pytest.mark.parametrize(("asked", "epochs"), [(1.0, 0), (0.6, 1)])
def test_no_epoch_is_waited_for_where_the_slopes_at_zero_ask_for_nearly_all(monkeypatch, asked, epochs):
    monkeypatch.setattr(schedule, "_CURVATURE", (0.0, np.inf))
    monkeypatch.setattr(
        schedule.Schedule, "_few_features", lambda self, *_: setattr(self.faces.finisher, "asked", asked)
    )
    found = fl.solve(make(PENALTIES["ridge"], n=400), tol=1e-9)
    assert (found.state["epoch"], found.status) == (epochs, fl.Status.CONVERGED)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_who_asks_at_zero(share):
    """Of two groups with twenty features each, only the one with a signal, or both, or none."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 40))
    y = X[:, :20].sum(axis=1) + (share == 1.0) * X[:, 20:].sum(axis=1)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.GroupL2([range(20), range(20, 40)]), alpha=1.0)
    problem = problem.with_alpha((2.0 if share == 0.0 else 0.5) * problem.alpha_max())
    finisher = Finisher(problem)
    finisher.run(np.zeros(problem.size), np.zeros(problem.d), np.zeros(problem.d), tol=1e-6)
    assert finisher.asked == share


@pytest.mark.parametrize("band", [(0.0, np.inf), (np.inf, np.inf)], ids=["after an epoch", "at once"])
def test_resumed_around_the_attempt(monkeypatch, band):
    """One attempt, which gives up early and takes so many passes that a run may end with it, and then epochs alone."""
    run, made = Descent.run, []

    def dear(self, w, *, tol):
        made.append(self)
        point = run(self, w, tol=tol)
        self.passes = point.passes = 9.0
        return point

    monkeypatch.setattr(schedule, "_CURVATURE", band)
    monkeypatch.setattr(Finisher, "run", lambda self, *args, **options: setattr(self, "passes", 0.0))
    for way in ("_newton", "_multipliers"):
        monkeypatch.setattr(schedule.Schedule, way, lambda *args: None)
    monkeypatch.setattr(Descent, "_rows", 30.0)
    monkeypatch.setattr(Descent, "run", dear)
    problem = make(PENALTIES["ridge"], n=400)
    whole = fl.solve(problem, tol=1e-12, max_epochs=200)
    assert whole.epochs > 20
    assert len(made) == 1
    for stop in range(8, 16):  # shorter runs try nothing
        part = fl.solve(problem, tol=1e-12, max_epochs=stop)
        assert part.status is fl.Status.EPOCH_LIMIT
        resumed = fl.solve(problem, tol=1e-12, max_epochs=200 - part.epochs, warm_start=part)
        assert resumed.epochs == whole.epochs, stop
        assert np.array_equal(resumed.state["w"], whole.state["w"]), stop


def test_slow_descent_is_given_up(monkeypatch):
    """The point is a true one all the same, and the epochs go on from it."""
    monkeypatch.setattr(Descent, "_rows", 3.0)
    problem = make(PENALTIES["l1"], n=400)
    run = Descent(problem)
    point = run.run(np.zeros(problem.size), tol=1e-9)
    assert run.slow
    assert point.made.relative_gap > 1e-9
    assert problem.certificate(point, fresh=True).relative_gap == pytest.approx(point.made.relative_gap)
    result = fl.solve(problem, tol=1e-9)
    assert result.status is fl.Status.CONVERGED
    assert result.primal == pytest.approx(fl.solve(problem, tol=1e-9, newton=False).primal, rel=3e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 150), st.integers(0, 2**32 - 1))
def test_bounds_of_units_are_bounds(size, seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((size + 5, size)) * np.exp(rng.standard_normal(size))
    H = np.triu(rows.T @ rows)
    mirror(H)
    np.testing.assert_allclose(H, rows.T @ rows)
    cuts = np.unique(np.r_[0, rng.integers(0, size + 1, 5), size]).astype(np.int64)
    out = np.empty(cuts.size - 1)
    bounds_of_units(H, cuts, out)
    for bound, first, last in zip(out, cuts[:-1], cuts[1:], strict=True):
        assert np.linalg.eigvalsh(H[first:last, first:last])[-1] <= bound * (1 + 1e-12)
