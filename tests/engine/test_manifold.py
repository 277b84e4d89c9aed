"""Newton's method on the structure of an iterate: right structure, right answer; wrong structure, true bounds."""

from __future__ import annotations

import cases
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fenchel as fl
from fenchel.engine.attempts import face_prices, faces, manifold
from fenchel.engine.attempts.manifold import Finisher, applies, correct
from fenchel.maps import Gram
from fenchel.methods import SDCAADMM
from fenchel.problem import tied_features

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
    made = []
    for entries in (1 << 22, 0):
        monkeypatch.setattr(faces, "BESIDE", entries)
        monkeypatch.setattr(faces, "_KEPT", 0.0)
        made.append(Finisher(problem)._face(state.u == 0))
    kept, read = (face.data for face in made)
    assert kept.kept is not None
    assert read.kept is None
    z, x, free = rng.standard_normal(made[0].count), rng.standard_normal(problem.visits), np.arange(problem.visits)
    np.testing.assert_allclose(kept.scores(z), read.scores(z), atol=1e-12)
    np.testing.assert_allclose(kept.gradient(x), read.gradient(x), atol=1e-10)
    matrix = np.tril(read.curvature(bend))
    np.testing.assert_allclose(np.tril(kept.curvature(bend)), matrix, atol=1e-9)
    matrix += np.tril(matrix, -1).T
    np.testing.assert_allclose(matrix @ z, kept.product(z, bend, free), atol=1e-9)
    np.testing.assert_allclose(matrix @ z, read.product(z, bend, free), atol=1e-9)


@pytest.mark.parametrize("wide", [False, True], ids=["kept", "scattered"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("penalty", ["weighted l1 + ridge", "sparse groups", "trend", "total variation"])
def test_the_matrix_and_the_products_are_of_one_curvature(monkeypatch, penalty, sparse, wide):
    """That of the data and that of the penalty, with its part along the directions of groups."""
    if wide:
        monkeypatch.setattr(faces, "BESIDE", 0)
        monkeypatch.setattr(faces, "_KEPT", 0.0)
    problem = make("logistic", penalty, sparse=sparse, share=0.05)
    state = after(problem, 60)
    finisher = Finisher(problem)
    face = finisher._face(state.u == 0)
    assert face.data.scattered == (sparse and wide)
    z = face.inside(state.w)
    bent = finisher._penalty(face.map @ z)
    own = faces.Curvature(face.map, bent.diagonal, *finisher._across(face, bent))
    bend = finisher._bend(face.data.scores(z))
    v = np.random.default_rng(0).standard_normal(face.count)
    product = face.data.product(v, bend, np.arange(problem.visits)) + own.product(v)
    for dtype, digits in ((float, 1e-6), (np.float32, 1e-2)):
        np.testing.assert_allclose(finisher._factored(face, bend, own, dtype)(product), v, atol=digits)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("penalty", ["l1", "fused", "graph", "sparse groups"])
def test_a_smaller_face_is_read_from_the_larger_one(penalty, sparse):
    problem = make("logistic", penalty, sparse=sparse, share=0.3)
    zero = after(problem, 60).u == 0
    rng = np.random.default_rng(1)
    finisher = Finisher(problem)
    some = zero & (rng.random(zero.size) < 0.4)
    larger = finisher._face(some)
    larger.data.keeps = True
    seen = larger.data.kept.copy()
    smaller = finisher._face(zero, None, larger)
    smaller.data.keeps = True
    z, x, bend = rng.standard_normal(smaller.count), rng.standard_normal(problem.n), rng.random(problem.n)
    np.testing.assert_allclose(seen @ larger.inside(smaller.lift(z)), problem.scores(smaller.lift(z)), atol=1e-12)
    np.testing.assert_allclose(smaller.data.scores(z), problem.scores(smaller.lift(z)), atol=1e-12)
    np.testing.assert_allclose(smaller.data.gradient(x), smaller.pull(problem.gradient_sum(x)), atol=1e-10)
    fresh = Finisher(problem)._face(zero)
    fresh.data.keeps = True
    np.testing.assert_allclose(smaller.data.curvature(bend), fresh.data.curvature(bend), atol=1e-9)


def test_ties_are_followed_through_signs():
    """A chain with signs, a triangle that asks for w = -w and one that does not, and a feature alone."""
    a = np.array([0, 1, 3, 4, 5, 6, 7, 8])
    b = np.array([1, 2, 4, 5, 3, 7, 8, 6])
    sign = np.array([-1.0, -1.0, 1.0, 1.0, -1.0, -1.0, 1.0, -1.0])
    label, side, torn = tied_features(a, b, sign, 10)
    groups = {frozenset(np.flatnonzero(label == k)) for k in np.unique(label)}
    assert groups == {frozenset(g) for g in ((0, 1, 2), (3, 4, 5), (6, 7, 8), (9,))}
    assert sorted(torn) == [3, 4, 5]
    sound = ~np.isin(a, torn)
    np.testing.assert_array_equal(side[a[sound]], sign[sound] * side[b[sound]])


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_ties_agree_with_linear_algebra(data):
    """The number of free values is the dimension of {w : w_a = sign w_b}, and torn features are zero in all of it."""
    count = data.draw(st.integers(2, 8))
    pair = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1), st.sampled_from([-1.0, 1.0]))
    pairs = [p for p in data.draw(st.lists(pair, max_size=10)) if p[0] != p[1]]
    a, b, sign = (np.array([p[i] for p in pairs], dtype=t) for i, t in enumerate((int, int, float)))
    label, side, torn = tied_features(a, b, sign, count)
    rows = np.zeros((len(pairs), count))
    rows[np.arange(len(pairs)), a] += 1
    rows[np.arange(len(pairs)), b] -= sign
    rank = np.linalg.matrix_rank(rows) if len(pairs) else 0
    alive = np.setdiff1d(np.arange(count), torn)
    assert np.unique(label[alive]).size == count - rank
    values = np.random.default_rng(0).standard_normal(count)
    w = side * values[label]
    w[torn] = 0.0
    np.testing.assert_allclose(rows @ w, 0.0, atol=1e-15)


@pytest.mark.parametrize("penalty", [fl.L1(), fl.L1() + 0.1 * fl.Ridge(), fl.L1() + fl.NonNegative()], ids=repr)
def test_few_features_need_no_epoch(penalty):
    """Where few features matter the answer is there before the first epoch, and it is the one epochs find."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((500, 300))
    y = np.sign(X[:, :4].sum(axis=1) + rng.standard_normal(500))
    problem = fl.Problem(X, y, loss="logistic", penalty=penalty, fit_intercept=True)
    problem = problem.with_alpha(0.5 * problem.alpha_max())
    found = fl.solve(problem, tol=1e-9)
    assert found.status is fl.Status.CONVERGED
    assert found.state["epoch"] == 0
    slow = fl.solve(problem, tol=1e-9, newton=False, max_epochs=5000)
    assert found.primal == pytest.approx(slow.primal, rel=2e-9)
    np.testing.assert_allclose(found.coef, slow.coef, atol=1e-3)


def test_conjugate_gradients_and_the_matrix_lead_to_one_answer(monkeypatch):
    problem = make("smoothed-hinge", "sparse groups")
    state = after(problem, 30)
    direct = Finisher(problem).run(state.w, state.u, state.y, tol=1e-10)
    monkeypatch.setattr(face_prices, "DENSE", 0)
    step_by_step = Finisher(problem).run(state.w, state.u, state.y, tol=1e-10)
    assert step_by_step.primal == pytest.approx(direct.primal, rel=1e-12)
    np.testing.assert_allclose(step_by_step.w, direct.w, atol=1e-6)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", [fl.Ridge() + fl.L1(), fl.GroupL2([range(k, k + 10) for k in range(0, 60, 10)])])
def test_a_matrix_in_single_precision_leads_to_the_same_digits(monkeypatch, penalty, fit_intercept):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 60)) * np.logspace(-1, 1, 60)
    y = np.sign(X[:, :8].sum(axis=1) + rng.standard_normal(400))
    problem = fl.Problem(X, y, loss="logistic", penalty=penalty, alpha=0.003, fit_intercept=fit_intercept)
    state = after(problem, 30)
    kinds, found = [], []
    curvature = faces._View.curvature
    monkeypatch.setattr(
        faces._View, "curvature", lambda self, bend, dtype=float: kinds.append(dtype) or curvature(self, bend, dtype)
    )
    for enough in (np.inf, -1.0):
        monkeypatch.setattr(face_prices, "_MAKES_UP", enough)
        found.append(Finisher(problem).run(state.w, state.u, state.y, tol=1e-12))
    assert kinds[0] is float
    assert kinds[-1] is np.float32
    double, single = found
    assert single.primal == pytest.approx(double.primal, rel=1e-13)
    np.testing.assert_allclose(single.w, double.w, atol=1e-7)
    assert problem.certificate(single, exact=True).relative_gap <= 1e-12


@pytest.fixture
def logistic():
    """Many rows, of which half are faint at the answer; some 60 of 120 features are kept."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 120))
    y = np.sign(X @ np.where(np.arange(120) < 40, 1.0, 0.0) + rng.standard_normal(1500))
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), fit_intercept=True)
    return problem.with_alpha(0.02 * problem.alpha_max())


def test_faint_rows_are_made_up_for(logistic, monkeypatch):
    """The direction is that of all rows, to the accuracy that was asked for."""
    optimum = fl.solve(logistic, tol=1e-10)
    w = logistic.pack(optimum.coef, optimum.intercept) * 1.01
    finisher = Finisher(logistic)
    finisher.run(w, logistic.map_slots @ w, np.zeros(logistic.d), tol=1e-6, budget=0.0)  # sets what a run goes by
    finisher.passes, finisher.fine = 0.0, (0.0, 1.0)
    face = finisher._face(logistic.map_slots @ w == 0)
    z = face.inside(w)
    scores = face.data.scores(z)
    bend, bent = finisher._bend(scores), finisher._penalty(face.map @ z)
    slope = face.data.gradient(logistic.slopes_at(scores)) / logistic.n + face.back @ bent.slope
    found = []
    for faint in (0.0, 0.3):
        monkeypatch.setattr(face_prices, "_FAINT", faint)
        monkeypatch.setattr(face_prices, "_MAKES_UP", -1.0 if faint else 4.0)
        finisher.factor = None
        strong = finisher._strong(face, bend)
        assert 0.95 * bend.sum() < strong.sum() <= bend.sum()
        found.append(finisher._direction(face, bend, bent, slope, 0.0))
    assert np.count_nonzero(strong) < 0.7 * logistic.n
    exact, mended = found
    miss = mended - exact
    curved = face.data.product(miss, bend, np.arange(logistic.n))
    assert miss @ curved <= 0.01 * abs(slope @ exact)


@pytest.mark.parametrize("fails", ["the factor", "the rounds"])
def test_where_single_precision_fails_there_is_double(monkeypatch, fails):
    problem = make("squared", "sparse groups")
    state = after(problem, 30)
    monkeypatch.setattr(face_prices, "_MAKES_UP", -1.0)
    definite, rounds = manifold.definite, Finisher._conjugate_gradients

    def no_factor(matrix):
        if matrix.dtype == np.float32:
            raise np.linalg.LinAlgError
        return definite(matrix)

    def too_few(self, *args):
        return None if args[-1] == manifold._MENDED else rounds(self, *args)

    if fails == "the factor":
        monkeypatch.setattr(manifold, "definite", no_factor)
    else:
        monkeypatch.setattr(Finisher, "_conjugate_gradients", too_few)
    finisher = Finisher(problem)
    point = finisher.run(state.w, state.u, state.y, tol=1e-9)
    assert not finisher.trust
    assert problem.certificate(point, fresh=True).relative_gap <= 1e-9


def test_a_budget_is_kept():
    problem = make()
    state = after(problem, 20)
    assert Finisher(problem).run(state.w, state.u, state.y, tol=1e-6, budget=0.0) is None


def test_a_price_that_was_too_high_is_remembered(monkeypatch):
    """A budget that is hardly larger is refused at once; one that may do is tried."""
    problem = make()
    state = fl.solve(problem, tol=1e-3, newton=False).state
    finisher, looks = Finisher(problem), []
    made = Finisher._face
    monkeypatch.setattr(Finisher, "_face", lambda self, *about: looks.append(1) or made(self, *about))
    first = finisher.least_nanoseconds * 1.01

    def run(budget):
        return finisher.run(state["w"], state["u"], state["y"], tol=1e-9, budget=budget)

    assert run(first) is None and len(looks) == 1 and finisher.refused > first
    assert run(0.5 * finisher.refused) is None and len(looks) == 1
    assert run(2.0 * finisher.refused) is not None and len(looks) > 1


def test_saves_most_of_the_epochs():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 300))
    y = np.where(X[:, :8].sum(axis=1) + rng.standard_normal(3000) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1())
    problem = problem.with_alpha(0.1 * problem.alpha_max())
    quick, plain = (fl.solve(problem, tol=1e-8, newton=newton) for newton in (True, False))
    assert quick.status is plain.status is fl.Status.CONVERGED
    assert quick.epochs < 0.5 * plain.epochs
    assert fl.solve(problem, tol=1e-8, preset="paper", max_epochs=5).state["attempt_passes"] == 0


def test_newton_is_an_option():
    with pytest.raises(ValueError, match="newton is 'yes'"):
        fl.solve(make(), newton="yes")


@pytest.mark.parametrize("penalty", ["overlapping groups", "sparse groups", "fused"])
def test_rounds_between_the_balance_and_the_ball(penalty):
    """The kernels against the method written down, on some of the coordinates."""
    problem = make(penalty=penalty)
    finisher, rng = Finisher(problem), np.random.default_rng(0)
    y = problem.n * rng.standard_normal(problem.d)
    rest = np.flatnonzero(rng.random(problem.d) < 0.8)
    matrix = problem.map[rest]
    gram, need = Gram(matrix), 0.1 * (matrix.T @ y[rest])
    expected, middle, last = y.copy(), y[rest], np.inf
    for _ in range(manifold.PROJECTIONS):
        balanced = middle - matrix @ gram.solve(matrix.T @ middle - need)
        expected[rest] = balanced
        inside = finisher._inside(expected)[rest]
        far = np.abs(inside - balanced).max()
        if far <= 1e-13 * np.abs(inside).max() or np.abs(last - balanced).max() <= 1e-4 * far:
            break
        last = balanced
        mirrored = y.copy()
        mirrored[rest] = 2 * balanced - middle
        middle = middle + finisher._inside(mirrored)[rest] - balanced
    found = finisher._between(rest, need, y.copy())
    np.testing.assert_array_equal(np.delete(found, rest), np.delete(y, rest))
    np.testing.assert_allclose(matrix.T @ found[rest], need, atol=1e-10 * np.abs(y).max())
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
    np.testing.assert_allclose(finisher._inside(finisher._inside(y)), finisher._inside(y), rtol=1e-12)


def test_a_resumed_run_remembers_the_price(monkeypatch):
    """Otherwise it would look again where the run that was not stopped does not."""
    problem, seen = make("smoothed-hinge", "overlapping groups"), []

    def refuse(self, *point, **limits):
        seen.append(self.refused)
        self.refused, self.passes = 5.0 + len(seen), 0.0

    monkeypatch.setattr(Finisher, "run", refuse)
    # nobody else gets there
    monkeypatch.setattr("fenchel.engine.registry.ENGINES", [])
    monkeypatch.setattr("fenchel.engine.attempts.multipliers_apply", lambda problem: False)
    first = fl.solve(problem, tol=0.0, max_epochs=100)
    assert first.state["refused"] == 5.0 + len(seen) > 5.0
    before = len(seen)
    fl.solve(problem, tol=0.0, max_epochs=400, warm_start=first)
    assert seen[before] == first.state["refused"]
    assert seen[1:] == [6.0 + k for k in range(len(seen) - 1)]
