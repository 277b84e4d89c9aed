"""The method of multipliers for losses that see several classes together."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine.attempts.joint_multipliers import JointMultipliers
from fenchel.engine.attempts.multipliers import applies
from fenchel.penalties import MultiTaskLasso, MultiTaskLowRank

N, P, M = 40, 6, 3
EDGES = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [0, 5]]
PENALTIES = {
    "l1": fl.PerOutput(fl.L1(), M),
    "l2,1": MultiTaskLasso(M),
    "low rank": MultiTaskLowRank(M),
    "overlapping groups": fl.PerOutput(fl.GroupL2([[0, 1, 2], [2, 3, 4], [4, 5]]), M),
    "graph": fl.PerOutput(0.3 * fl.L1() + fl.L1() @ fl.Incidence(EDGES, P), M),
    "trend": fl.PerOutput(fl.TrendFilter(2), M),
    "across classes": fl.FusedLasso(0.5),
}


def drawn(loss, penalty=None, alpha=0.0, sparse=False, intercept=True):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.6)
    y = (X @ rng.standard_normal((P, M)) + rng.gumbel(size=(N, M))).argmax(axis=1)
    y[:M] = np.arange(M)
    weight = rng.random(N) * (rng.random(N) < 0.9)
    return fl.Problem(sp.csr_array(X) if sparse else X, y, loss=loss, penalty=penalty, alpha=alpha,
                      sample_weight=weight, fit_intercept=intercept)  # fmt: skip


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["multinomial", "multiclass-hinge"])
def test_the_curvature_is_that_of_the_envelopes(loss, sparse, intercept):
    problem = drawn(loss, fl.PerOutput(fl.Ridge(), M), 0.1, sparse, intercept)
    method, rng = JointMultipliers(problem), np.random.default_rng(0)
    method.r, method.x = 0.7, problem.inside(0.3 * rng.standard_normal(problem.visits))
    w = rng.standard_normal(problem.size) * (intercept | (np.arange(problem.size) % (P + 1) < P))
    _, bend = method._rows(problem.scores(w), bend=True)
    found = np.zeros((problem.size, problem.size))
    method._add_loss_curvature(bend, found)
    found = np.tril(found) + np.tril(found, -1).T
    step = 1e-6
    for j, direction in enumerate(np.eye(problem.size)):
        if not intercept and j % (P + 1) == P:
            assert not found[j].any()
            assert not found[:, j].any()
            continue
        ahead, behind = (method._rows(problem.scores(w + sign * step * direction)) for sign in (1, -1))
        change = problem.gradient_sum(ahead - behind) / (2 * step)
        np.testing.assert_allclose(found[:, j], change, atol=1e-6 * np.abs(found).max())


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", ["multinomial", "multiclass-hinge"])
def test_the_answer_is_found_and_proven(loss, penalty):
    problem = drawn(loss, PENALTIES[penalty], 0.02, sparse=penalty == "graph")
    assert applies(problem)
    zeros = np.zeros(problem.size), np.zeros(problem.visits), np.zeros(problem.d)
    point = JointMultipliers(problem).run(*zeros, tol=1e-8, steps=400)
    assert point.made.relative_gap <= 1e-8
    assert point.primal == pytest.approx(problem.primal_at(point.w), rel=1e-12)


@pytest.mark.parametrize("penalty", ["l1", "trend", "across classes"])
def test_the_hinge_of_several_classes_converges_where_epochs_alone_take_long(penalty):
    problem = drawn("multiclass-hinge", PENALTIES[penalty], 0.001)
    result = fl.solve(problem, tol=1e-9)
    assert result.status is fl.Status.CONVERGED
    alone = fl.solve(problem, tol=1e-9, newton=False, max_epochs=2 * result.epochs)
    assert alone.status is fl.Status.EPOCH_LIMIT
    assert alone.dual <= result.primal
    assert alone.primal >= result.dual


def test_runs_of_few_steps_get_there_since_each_goes_on_where_the_last_one_ended():
    problem = drawn("multiclass-hinge", PENALTIES["overlapping groups"], 0.02)
    method, zeros = JointMultipliers(problem), [np.zeros(size) for size in (problem.size, problem.visits, problem.d)]
    gaps = [method.run(*zeros, tol=1e-7, steps=12).made.relative_gap for _ in range(25)]
    assert min(gaps) <= 1e-7 < gaps[0]
