"""Several classes that the loss sees together: accelerated steps, working sets, and their curvature."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine.classes import RowClasses
from fenchel.engine.curvatures.several_gram import SeveralGram
from fenchel.engine.point import Point
from fenchel.engine.registry import fitting
from fenchel.engine.restrictions.class_set import ClassSet
from fenchel.engine.roles import Goal
from fenchel.engine.rounds import WorkingSets
from fenchel.engine.units import units_of
from fenchel.kernels.prox import structured_prox
from fenchel.kernels.simplex import softmax_tilt
from fenchel.penalties import MultiTaskLasso, MultiTaskLowRank
from fenchel.prices import PRICES
from fenchel.proximal import StructuredProx

PENALTIES = {
    "l1": lambda m: fl.PerOutput(fl.L1(), m),
    "l2,1": MultiTaskLasso,
    "elastic net": lambda m: fl.PerOutput(fl.L1() + 0.1 * fl.Ridge(), m),
    "groups": lambda m: fl.PerOutput(fl.GroupL2([[0, 1, 2], [3, 4]]) + 0.3 * fl.L1(), m),
    "bounds": lambda m: fl.PerOutput(fl.L1() + fl.Box(-0.3, 0.3), m),
}


def drawn(n=80, p=12, m=4, sparse=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2 * rng.standard_normal(p)
    if sparse:
        X = X * (rng.random((n, p)) < 0.4)
    y = (X @ (rng.standard_normal((p, m)) * (rng.random((p, 1)) < 0.4)) + rng.gumbel(size=(n, m))).argmax(axis=1)
    y[:m] = np.arange(m)
    return (sp.csr_array(X) if sparse else X), y


def problem(penalty="l1", share=0.1, intercept=True, **given):
    m = given.get("m", 4)
    X, y = drawn(**given)
    weight = np.random.default_rng(1).random(len(y)) + 0.1
    out = fl.Problem(X, y, loss="multinomial", penalty=PENALTIES[penalty](m), fit_intercept=intercept,
                     sample_weight=weight)  # fmt: skip
    return out.with_alpha(share * out.alpha_max())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_gram_matrix_is_the_curvature_of_the_loss(sparse, intercept):
    made = problem(n=60, p=7, m=3, sparse=sparse, intercept=intercept)
    rng, point, working = np.random.default_rng(2), Point(made), ClassSet(made.data, 3)
    gram, chosen = SeveralGram(60, intercept, 3), rng.permutation(21)[:17]
    u = rng.standard_normal((3, 60))
    point.move(u)
    bend, push = point.bend(), point.push()
    for some in (chosen[:9], chosen[9:]):  # columns that join are added
        working.add(units_of(made), some)
        gram.extend(working.columns, working.where, bend, np.zeros(working.size))
    places = working.keep(units_of(made), np.arange(2, 17))
    gram.keep(places)
    size, h = working.size, 1e-6

    def slopes(v, b):
        point.move(u + working.scores(v, b))
        return np.concatenate([working.slopes(point.x), point.push()])

    steps = h * np.eye(size + 3)
    H = np.array([slopes(s[:size], s[size:]) - slopes(-s[:size], -s[size:]) for s in steps]).T / (2 * h)
    G = H[:size, :size]
    if intercept:
        M, C = np.linalg.pinv(H[size:, size:], rcond=1e-6), H[:size, size:]
        G = G - C @ M @ C.T
        change = rng.standard_normal(size)
        np.testing.assert_allclose(gram.lean(push, working.where), C @ M @ push, atol=1e-7)
        away = gram.follow(change, push, working.where) + M @ (push + change @ C)
        np.testing.assert_allclose(away, away.mean(), atol=1e-6)  # what all share changes nothing
    np.testing.assert_allclose(gram.matrix[:size, :size], G, atol=1e-7 * np.abs(G).max())


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", [(80, 12), (30, 60)])
def test_the_answer_is_that_of_epochs(penalty, shape):
    made = problem(penalty, n=shape[0], p=shape[1])
    found = fl.solve(made, tol=1e-8)
    assert found.relative_gap <= 1e-8
    assert {record.by for record in found.history} & {"accelerated steps", "working sets"}
    other = fl.solve(made, tol=1e-6, method="sdca-admm", max_epochs=3000)
    assert found.dual <= other.primal * (1 + 1e-12) and other.dual <= found.primal * (1 + 1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_working_sets_alone(sparse):
    made = problem(n=90, p=40, sparse=sparse, share=0.05)
    engine = WorkingSets(PRICES)
    engine.begin(made, [made.alpha], 1e-7)
    goal = Goal(1e-7, np.inf, np.inf, lambda primal: 1e-7 * primal)
    assert any(goal.reached(one.certificate) for one in engine.rounds(made, None, goal))


def test_paths_and_weights_of_zero():
    made = problem(n=70, p=15)
    alphas = made.alpha_max() * np.array([0.5, 0.2, 0.1, 0.05])
    results = fl.path(made, alphas=alphas)
    assert all(result.relative_gap <= 1e-6 for result in results)
    held = np.ones(70)
    held[5:15] = 0.0
    some = made.with_weights(held)
    found = fl.solve(some, tol=1e-7)
    X, y = drawn(n=70, p=15)
    rest = fl.Problem(X[held > 0], y[held > 0], loss="multinomial", penalty=PENALTIES["l1"](4), alpha=some.alpha,
                      fit_intercept=True)  # fmt: skip
    assert found.primal == pytest.approx(fl.solve(rest, tol=1e-7).primal, rel=3e-7)


def test_a_path_goes_on_from_the_answer_before():
    """Also where that was good enough, so that nobody asked for more."""
    made, engine = problem(n=70, p=15), RowClasses(PRICES)
    engine.begin(made, [made.alpha, 0.9999 * made.alpha], 1e-9)
    goal = Goal(1e-9, np.inf, np.inf, lambda primal: 1e-9 * primal)
    first = next(engine.rounds(made, None, goal))
    second = next(engine.rounds(made.with_alpha(0.9999 * made.alpha), None, goal))
    least = fl.solve(made, tol=1e-8).primal
    assert second.primal - least < 0.7 * (first.primal - least)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_the_prox_of_units_is_that_of_the_penalty(penalty):
    made, step = problem(penalty), 3.0
    v = (np.random.default_rng(3).standard_normal((4, 13)) * np.geomspace(0.01, 3.0, 13)).ravel()
    w, u, slope, info = np.empty(made.size), np.zeros(made.d), np.zeros(made.d), np.zeros(4)
    structured_prox(v, step, slope, w, u, StructuredProx(made).solver, (1e-16, 0.0, 5000), info)
    found, wanted = (one.reshape(4, 13)[:, :-1] for one in (v, w))
    found = units_of(made).prox(found.ravel(), step)
    assert found.any() and not found.all()
    np.testing.assert_allclose(found, wanted.ravel(), atol=1e-7)


def test_the_sum_of_the_softmax_alone():
    rng, loss = np.random.default_rng(5), fl.Multinomial(5)
    score, target, weight = 30 * rng.standard_normal(200), rng.dirichlet(np.ones(5), 40).ravel(), rng.random(200)
    weight = np.repeat(weight[:40] * (weight[:40] > 0.3), 5)
    for one in (weight, np.zeros(0)):
        assert loss.total(score, target, one) == pytest.approx(loss.sums(score, target, one)[0], rel=1e-13)


def test_tilted_shares():
    """The sums that balance the intercepts, against plain formulas, with shares of zero and rows that do not count."""
    rng = np.random.default_rng(7)
    v, move = rng.dirichlet(np.ones(4), 30) * (rng.random((30, 4)) < 0.7) + 1e-9 * np.eye(4)[[0] * 30], rng.random(4)
    logs, move = np.log(np.maximum(v, 1e-300)), np.tile(move, (30, 1))
    logs[v == 0] = -np.inf
    target, weight = np.eye(4)[rng.integers(0, 4, 30)], np.maximum(rng.random((30, 1)) - 0.2, 0.0)
    slope, bend = np.empty((30, 4)), np.empty((30, 4))
    total = softmax_tilt(logs, move, target, weight, slope, bend)
    sums = (v * np.exp(move)).sum(axis=1, keepdims=True)
    pi = v * np.exp(move) / sums
    assert total == pytest.approx(float((weight * (np.log(sums) - (target * move).sum(axis=1)[:, None])).sum()))
    np.testing.assert_allclose(slope, weight * (pi - target), atol=1e-14)
    np.testing.assert_allclose(bend, weight * pi, atol=1e-14)


def test_who_takes_what():
    X, y = drawn()
    for loss, penalty, own in [
        ("multinomial", MultiTaskLasso(4), True),
        ("multinomial", MultiTaskLowRank(4), False),
        ("multiclass-hinge", MultiTaskLasso(4), False),
    ]:
        engine = fitting(fl.Problem(X, y, loss=loss, penalty=penalty, alpha=0.1))
        assert isinstance(engine, RowClasses) == own
