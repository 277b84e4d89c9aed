"""Quadratic models of all coefficients: the engine for any map, and its parts."""

from __future__ import annotations

import cases
import numpy as np
import pytest
import reference
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine import models
from fenchel.engine.curvatures.step_length import StepLength
from fenchel.engine.curvatures.whole_gram import WholeGram
from fenchel.engine.inner.admm import Admm
from fenchel.engine.models import QuadraticModels
from fenchel.engine.parts import Answer, Curvature, InnerSolver, Model
from fenchel.engine.registry import fitting
from fenchel.engine.repair import Repair
from fenchel.engine.roles import Goal, Iterate
from fenchel.engine.whole import Maps, Products, WholePoint
from fenchel.prices import PRICES
from fenchel.solver.convergence import Convergence

SMOOTH = [name for name, loss in cases.losses().items() if not loss.kinked]
CONSTRAINED = ("monotone", "box", "non-negative", "non-negative l1")


def make(loss, penalty, alpha=0.03, *, n=60, sparse=False, weighted=False, intercept=True, seed=0):
    kind = cases.losses()[loss]
    X, y, weight = cases.data(kind, n=n, sparse=sparse, weighted=weighted, seed=seed)
    return fl.Problem(X, y, loss=kind, penalty=penalty, alpha=alpha, sample_weight=weight, fit_intercept=intercept)


def wide(loss="logistic", n=400, p=90, seed=1, **options):
    """Data on which several models are needed."""
    kind = cases.losses()[loss]
    X, y, _ = cases.data(kind, n=n, p=p, seed=seed)
    return fl.Problem(X, y, loss=kind, penalty=fl.L1() @ fl.Difference(p) + 0.1 * fl.L1(), alpha=1e-3, **options)


def goal_of(problem, tol):
    return Goal(tol, np.inf, np.inf, Convergence.of(problem, tol).allowed)


def answer_of(problem, tol=1e-7, start=None, engine=None):
    """The first proposal that is good enough; the last one where none is."""
    engine = QuadraticModels(PRICES) if engine is None else engine
    engine.begin(problem, [problem.alpha], tol)
    goal, last = goal_of(problem, tol), None
    for proposal in engine.rounds(problem, start, goal):
        last = proposal
        assert proposal.certificate.primal == pytest.approx(problem.primal_at(proposal.w), rel=1e-10)
        if goal.reached(proposal.certificate):
            break
    return last


# -- answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in cases.penalties() if name not in CONSTRAINED])
@pytest.mark.parametrize("loss", SMOOTH)
def test_certified_for_every_loss_and_penalty(loss, name):
    penalty, alpha = cases.penalties()[name]
    problem = make(loss, penalty, alpha)
    found = answer_of(problem)
    assert found.certificate.certified
    assert found.certificate.relative_gap <= 1e-7
    fresh = problem.certificate(found.iterate)  # nothing that the engine knows is believed
    assert fresh.relative_gap <= 2e-7


@pytest.mark.parametrize(
    "name", ["overlapping groups", "graph", "trend", "isotropic grid", "total variation", "matrix"]
)
@pytest.mark.parametrize("loss", ["logistic", "huber", "squared"])
def test_agrees_with_a_conic_solver(loss, name):
    penalty, alpha = cases.penalties()[name]
    kind = cases.losses()[loss]
    X, y, weight = cases.data(kind, n=60, weighted=True)
    problem = fl.Problem(X, y, loss=kind, penalty=penalty, alpha=alpha, sample_weight=weight, fit_intercept=True)
    optimum = reference.reference(X, y, kind, penalty, alpha, weight, True)[0]
    made = answer_of(problem, 1e-9).certificate
    size = abs(optimum)
    assert made.dual <= optimum + 1e-6 * size
    assert made.primal == pytest.approx(optimum, rel=2e-6)


def test_bounds_of_single_features_are_met():
    problem = make("logistic", fl.L1() @ fl.Difference(cases.P) + fl.Box(-0.2, 0.3), 0.01)
    found = answer_of(problem)
    assert found.certificate.relative_gap <= 1e-7
    assert -0.2 <= found.w[:-1].min() <= found.w[:-1].max() <= 0.3


@pytest.mark.parametrize("kind", ["csr", "csc", "fortran", "single"])
def test_any_layout_of_the_data(kind):
    X, y, _ = cases.data(fl.Logistic(), n=80)
    other = {"csr": sp.csr_array, "csc": sp.csc_array, "fortran": np.asfortranarray, "single": np.float32}[kind](X)
    penalty = fl.L1() @ fl.Difference(cases.P) + 0.1 * fl.L1()
    plain, turned = (
        fl.solve(fl.Problem(data, y, loss="logistic", penalty=penalty, alpha=0.02, fit_intercept=True), tol=1e-9)
        for data in (X, other)
    )
    assert turned.status is fl.Status.CONVERGED
    np.testing.assert_allclose(turned.coef, plain.coef, atol=1e-3 if kind == "single" else 1e-4)


@pytest.mark.parametrize("loss", ["logistic", "smoothed-hinge", "poisson", "squared"])
def test_zeros_and_ties_are_exact_at_the_end(loss):
    problem = make(loss, fl.L1() @ fl.Difference(cases.P) + fl.L1(), 0.05, n=200)
    result = fl.solve(problem, tol=1e-9)
    assert result.status is fl.Status.CONVERGED
    steps = np.diff(result.coef)
    assert not np.any((np.abs(steps) > 0) & (np.abs(steps) < 1e-9))
    assert np.any(steps == 0)


def test_same_bits_every_time():
    first, second = (fl.solve(wide(fit_intercept=True), tol=1e-8) for _ in range(2))
    assert np.array_equal(first.coef, second.coef)
    assert first.intercept == second.intercept
    assert np.array_equal(first.history.dual, second.history.dual)


# -- who is asked -----------------------------------------------------------------------------------------------------


def test_separable_penalties_stay_with_working_sets():
    assert fitting(make("logistic", fl.L1())).name == "working sets"
    assert fitting(make("logistic", fl.L1() @ fl.Difference(cases.P))).name == QuadraticModels.name


def in_other_units(loss, **options):
    """A chain whose differences are so large beside the features that steps of one length do not suit both."""
    return make(
        loss, fl.L1() @ (1e3 * np.asarray(fl.Difference(cases.P).matrix(cases.P).todense())) + fl.L1(), **options
    )


@pytest.mark.parametrize(
    ("problem", "why"),
    [
        (lambda: make("hinge", fl.L1() @ fl.Difference(cases.P)), "kinks"),
        (lambda: in_other_units("smoothed-hinge", sparse=True), "without curvature"),
        (lambda: in_other_units("smoothed-hinge", n=20), "without curvature"),
        (lambda: make("logistic", fl.L1() @ fl.Difference(cases.P), 0.0), "no penalty"),
        (lambda: make("logistic", fl.NonNegative() @ fl.Difference(cases.P) + 0.1 * fl.Ridge()), "bounds on sums"),
    ],
)
def test_declines_with_a_reason(problem, why):
    assert why in QuadraticModels(PRICES).unfit(problem())


@pytest.mark.parametrize(
    "problem",
    [
        lambda: make("smoothed-hinge", fl.L1() @ fl.Difference(cases.P), sparse=True),
        lambda: make("huber", fl.L1() @ fl.Difference(cases.P), sparse=True),
        lambda: make("smoothed-hinge", fl.L1() @ fl.Difference(cases.P), n=20),
        lambda: make("logistic", fl.GroupL2(cases.OVERLAP), n=8),
    ],
)
@pytest.mark.parametrize("several", [False, True])
def test_steps_alone_where_models_change_too_much(problem, several, monkeypatch):
    monkeypatch.setattr(WholeGram, "make", None)  # nobody asks for a curvature
    problem, engine = problem(), QuadraticModels(PRICES)
    assert engine.unfit(problem) is None
    engine.begin(problem, [2 * problem.alpha, problem.alpha] if several else [problem.alpha], 1e-6)
    goal = goal_of(problem, 1e-6)
    assert any(goal.reached(proposal.certificate) for proposal in engine.rounds(problem, None, goal))


def test_steps_alone_end_early_where_epochs_cost_less(monkeypatch):
    problem = make("logistic", fl.GroupL2(cases.OVERLAP), alpha=1e-4, n=8)
    monkeypatch.setattr(StepLength, "steps_left", lambda self, wanted: 1e3)
    monkeypatch.setattr(models, "epoch_nanoseconds", lambda problem: 1e12)
    assert goal_of(problem, 1e-6).reached(answer_of(problem, 1e-6).certificate)
    monkeypatch.setattr(models, "epoch_nanoseconds", lambda problem: 1e3)
    assert answer_of(problem, 1e-6) is None


def test_declines_several_outputs_and_many_features(monkeypatch):
    X, y, _ = cases.data(fl.Squared(), n=30)
    several = fl.Problem(X, np.column_stack([y, y]), loss="squared", penalty=fl.L1() @ fl.Difference(2 * cases.P))
    assert "outputs" in QuadraticModels(PRICES).unfit(several)
    monkeypatch.setattr(models, "MOST", 5)
    assert "too many" in QuadraticModels(PRICES).unfit(make("logistic", fl.L1() @ fl.Difference(cases.P)))


def test_epochs_take_over_where_it_gives_up(monkeypatch):
    monkeypatch.setattr(models, "ROUNDS", 1)
    monkeypatch.setattr(models, "PREPARE", np.inf)  # no accelerated steps
    problem = wide()
    result = fl.solve(problem, tol=1e-6)
    assert result.status is fl.Status.CONVERGED
    assert result.state["epoch"] > 0


# -- limits, warm starts, paths ---------------------------------------------------------------------------------------


def test_limits_hold():
    problem = wide()
    late = fl.solve(problem, tol=1e-9, time_limit=0.0)
    assert late.status is fl.Status.TIME_LIMIT
    few = fl.solve(problem, tol=0.0, max_epochs=12)
    assert few.status in (fl.Status.EPOCH_LIMIT, fl.Status.CONVERGED, fl.Status.STALLED)
    assert few.primal - few.dual >= 0


def test_a_callback_can_stop_it():
    seen = []

    def stop(snapshot):
        seen.append(snapshot)
        return len(seen) == 2

    problem = wide()
    result = fl.solve(problem, tol=0.0, callback=stop)
    assert result.status is fl.Status.CALLBACK
    assert problem.primal(seen[-1].coef, seen[-1].intercept) == pytest.approx(seen[-1].current, rel=1e-12)


def test_goes_on_from_another_result():
    problem = wide(fit_intercept=True)
    rough = fl.solve(problem, tol=1e-3)
    fine = fl.solve(problem, tol=1e-9, warm_start=rough)
    cold = fl.solve(problem, tol=1e-9)
    assert fine.status is cold.status is fl.Status.CONVERGED
    assert fine.primal == pytest.approx(cold.primal, rel=2e-9)
    again = fl.solve(problem, tol=1e-9, warm_start=fine)
    assert again.epochs <= fine.epochs + 2


@pytest.mark.parametrize("loss", ["logistic", "huber", "squared", "poisson"])
def test_path_is_certified_and_keeps_its_curvature(loss, monkeypatch):
    made = []
    plain = WholeGram.make
    monkeypatch.setattr(WholeGram, "make", lambda self, *args, **more: (made.append(1), plain(self, *args, **more))[1])
    problem = wide(loss, fit_intercept=True)
    answers = fl.path(problem, n_alphas=15, eps=0.03, tol=1e-6)
    assert answers.converged.all()
    assert (answers.relative_gaps <= 1e-6).all()
    assert len(made) <= (1 if loss == "squared" else 30)
    single = fl.solve(problem.with_alpha(answers.alphas[-1]), tol=1e-6)
    assert abs(single.primal - answers.primals[-1]) <= 3e-6 * abs(single.primal)


# -- curvature --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_gram_is_the_curvature_of_the_loss(sparse, intercept):
    problem = make("logistic", fl.L1() @ fl.Difference(cases.P), sparse=sparse, weighted=True, intercept=intercept)
    point = WholePoint(problem, np.linspace(-1, 1, problem.size) * (1.0 if intercept else np.arange(13) < 12))
    gram = WholeGram(problem, PRICES)
    gram.make(point.h)
    X = problem.data.filled()
    Z = np.column_stack([X, np.ones(problem.n) if intercept else np.zeros(problem.n)])
    expected = Z.T @ (gram.h[:, None] * Z) / problem.n
    size = problem.p + (1 if intercept else 0)
    np.testing.assert_allclose(gram.matrix[:size, :size], expected[:size, :size], rtol=1e-6, atol=1e-9)
    assert np.linalg.eigvalsh(gram.matrix).min() > 0


def test_secants_foresee_what_was_seen():
    problem = wide()
    point, other = (WholePoint(problem, problem.pack(np.full(problem.p, size))) for size in (0.0, 0.02))
    gram = WholeGram(problem, PRICES)
    gram.make(point.h)
    d, change = other.w - point.w, other.g - point.g
    slopes = gram.along(d, other.scores - point.scores)
    products = Products(problem)
    np.testing.assert_allclose(products.sums(slopes), gram.times(d), rtol=1e-6, atol=1e-10)
    gram.learn(d, change, gram.times(d), other.x - point.x, slopes)
    np.testing.assert_allclose(gram.times(d), change, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(products.sums(gram.along(d, other.scores - point.scores)), change, rtol=1e-5, atol=1e-9)


def test_refused_steps_make_rows_count_for_more():
    problem = make("smoothed-hinge", fl.L1() @ fl.Difference(cases.P))
    gram = WholeGram(problem, PRICES)
    gram.begin(WholePoint(problem, np.full(problem.size, 5.0)).h)
    first = gram.floor
    assert first > 0
    gram.refuse()
    assert gram.floor > first
    for _ in range(10):
        gram.trust()
    assert gram.floor == 0.0


def test_a_rough_curvature_is_near_the_exact_one_and_not_made_of_heavy_rows():
    problem = wide(n=3000, p=40)
    exact, rough = WholeGram(problem, PRICES), WholeGram(problem, PRICES)
    h = WholePoint(problem, np.zeros(problem.size)).h
    exact.make(h)
    rough.make(h, rough=True)
    assert rough.rough
    assert np.linalg.norm(rough.matrix - exact.matrix) < 0.7 * np.linalg.norm(exact.matrix)
    h = h.copy()
    h[0] *= 1e4
    rough.make(h, rough=True)
    assert not rough.rough


def test_the_parts_are_what_they_are_declared_to_be():
    problem = make("logistic", fl.L1() @ fl.Difference(cases.P))
    for kind, declared in ((WholeGram, Curvature), (Admm, InnerSolver)):
        made = kind(problem, PRICES)
        verbs = [name for name in vars(declared) if not name.startswith("_")]
        assert verbs
        assert all(callable(getattr(made, name)) for name in verbs)
        assert made.price() > 0


# -- inner solver, steps, proofs --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["overlapping groups", "graph", "trend", "isotropic grid", "trace norm and l1"])
def test_admm_solves_a_model(name):
    """With the squared loss the model is the problem."""
    penalty, alpha = cases.penalties()[name]
    problem = make("squared", penalty, alpha)
    gram, inner = WholeGram(problem, PRICES), Admm(problem, PRICES)
    point = WholePoint(problem, np.zeros(problem.size))
    gram.make(point.h)
    start = Answer(point.w, point.at.copy(), np.zeros(problem.d))
    answer = inner.solve(Model(point.w, point.g, gram.matrix), start, 1e-6)
    assert answer.solved
    best = fl.solve(problem, tol=1e-10).primal
    assert problem.primal_at(answer.v) == pytest.approx(best, rel=1e-6)
    assert problem.gauge(answer.y) <= 1 + 1e-9


def test_accelerated_steps_come_close_and_leave_a_dual_point():
    problem = wide("squared")
    steps = StepLength(problem, PRICES)
    steps.begin(np.zeros(problem.size), np.zeros(problem.n), np.zeros(problem.d))
    steps.go(0.0, 150)
    assert steps.count == 150 or steps.still
    u, y = steps.structure()
    primal = problem.primal_at(steps.w)
    assert steps.primal == pytest.approx(primal, rel=1e-12)
    assert primal == pytest.approx(fl.solve(problem, tol=1e-9).primal, rel=1e-4)
    at = Iterate(steps.w, steps.x, problem.n * y, np.zeros(problem.size), u)
    assert problem.certificate(at, primal=primal).relative_gap < 1e-6


def test_steps_that_leave_nothing_need_no_more(monkeypatch):
    problem = wide("squared")
    steps = StepLength(problem, PRICES)
    steps.begin(np.zeros(problem.size), np.zeros(problem.n), np.zeros(problem.d))
    steps.go(0.0, 20)
    for left, more in ((0.0, 0.0), (np.inf, steps.count)):
        monkeypatch.setattr(StepLength, "left", left)
        assert steps.steps_left(1e-6) == more


@pytest.mark.parametrize("layout", ["rows", "columns", "single", "csr", "csc"])
@pytest.mark.parametrize("name", ["chain", "grid", "overlapping groups"])
def test_steps_and_proofs_read_every_layout(layout, name):
    """One way through the data for dense and sparse rows and columns, and three for the prox."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 36)).round(2)
    y = np.where(X[:, :6].sum(axis=1) + rng.standard_normal(80) > 0, 1.0, -1.0)
    penalty = {
        "chain": fl.L1() @ fl.Difference(36) + 0.3 * fl.L1(),
        "grid": fl.L1() @ fl.Gradient((6, 6)),
        "overlapping groups": fl.GroupL2([np.arange(j, min(j + 5, 36)) for j in range(0, 35, 3)]),
    }[name]
    as_stored = {
        "rows": X, "columns": np.asfortranarray(X), "single": X.astype(np.float32),
        "csr": sp.csr_array(X), "csc": sp.csc_array(X),
    }  # fmt: skip
    problems = [
        fl.Problem(data, y, loss="logistic", penalty=penalty, alpha=0.02, fit_intercept=True)
        for data in (X, as_stored[layout])
    ]
    plain, other = (StepLength(problem, PRICES) for problem in problems)
    for steps, problem in ((plain, problems[0]), (other, problems[1])):
        steps.begin(np.zeros(problem.size), np.zeros(problem.n), np.zeros(problem.d))
        steps.go(0.0, 30)
    np.testing.assert_allclose(other.w, plain.w, rtol=1e-4, atol=1e-6)
    u, dual = other.structure()
    problem = problems[1]
    at = Iterate(other.w, other.x, problem.n * dual, np.zeros(problem.size), u, other.scores)
    proven = Repair(problem).prove_by_rounds(at, other.h.copy(), other.primal, 1e-2 * other.primal, 200)
    assert proven is not None
    assert proven[1].dual <= fl.solve(problem, tol=1e-8).primal * (1 + 1e-9)
    assert proven[1].gap <= 1e-2 * other.primal
    again = problem.certificate(proven[0])
    assert again.dual == pytest.approx(proven[1].dual, rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "squared", "poisson"])
@pytest.mark.parametrize("factored", [False, True])
def test_a_repair_is_feasible_and_of_second_order(loss, factored):
    """Near the answer a repaired dual point proves far more than y moved alone."""
    problem = wide(loss, n=600, p=40)
    exact = fl.solve(problem, tol=1e-11)
    rng = np.random.default_rng(0)
    w = problem.pack(exact.coef * (1 + 1e-3 * rng.standard_normal(problem.p)))
    point, y = WholePoint(problem, w), exact.state["y"]
    at = Iterate(w, point.x, y, problem.n * point.g, exact.state["u"], point.scores)
    plain = problem.certificate(at, fresh=False, primal=point.primal)
    repair = Repair(problem)
    if factored:
        gram = WholeGram(problem, PRICES)
        gram.make(point.h)
        assert repair.use(gram.exact)
    allowed = 1e-3 * (point.primal - exact.dual) + abs(point.primal) * 1e-3
    if factored:
        better, made = repair.prove(at, point.g, point.h, point.primal, 2 * (point.primal - exact.dual))
    else:
        enough = max(0.1 * plain.gap, allowed)
        better, made = repair.prove_by_rounds(at, point.h.copy(), point.primal, enough, 100)
    assert made.dual <= exact.primal + 1e-9 * abs(exact.primal)
    assert made.gap <= max(0.1 * plain.gap, allowed)
    left = problem.residual(better.x, better.y)
    assert np.linalg.norm(left) <= 1e-2 * np.linalg.norm(problem.residual(at.x, at.y)) + 1e-9


def test_maps_and_products_are_those_of_the_problem():
    rng = np.random.default_rng(3)
    for penalty, alpha in cases.penalties().values():
        problem = make("logistic", penalty, alpha)
        maps, w, y = Maps.of(problem), rng.standard_normal(problem.size), rng.standard_normal(problem.d)
        np.testing.assert_allclose(maps.down(w), problem.penalised(w), atol=1e-12)
        np.testing.assert_allclose(maps.up(y), problem.spread(y), atol=1e-12)
        products, x = Products(problem), rng.standard_normal(problem.n)
        np.testing.assert_allclose(products.scores(w), problem.scores(w), atol=1e-12)
        np.testing.assert_allclose(products.sums(x), problem.gradient_sum(x) / problem.n, atol=1e-12)


def test_a_column_of_zeros_alone():
    """Steps along it have no curvature to hold them, and are left; the intercept is found all the same."""
    y = np.where(np.arange(127) % 5 == 0, 1.0, -1.0)
    problem = fl.Problem(
        np.zeros((127, 1)), y, loss="squared-hinge", penalty=fl.ExclusiveLasso([[0]]), alpha=0.08, fit_intercept=True
    )
    result = fl.solve(problem, tol=1e-6)
    assert result.status is fl.Status.CONVERGED and result.coef[0] == 0.0
