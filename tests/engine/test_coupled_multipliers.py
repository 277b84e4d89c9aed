"""The method of multipliers for Cox's model: many features behind maps that join them."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine.attempts.coupled_multipliers import CoupledMultipliers
from fenchel.engine.coupled import CoupledModels
from fenchel.engine.registry import fitting
from fenchel.prices import PRICES

N, P = 30, 20
PENALTIES = {
    "overlapping groups": fl.GroupL2([np.arange(k, k + 6) for k in range(0, 15, 4)]),
    "sparse overlapping groups": fl.L1() + fl.GroupL2([np.arange(k, k + 6) for k in range(0, 15, 4)]),
    "chain": fl.FusedLasso(0.2),
    "trend": fl.TrendFilter(2),
    "exclusive": fl.ExclusiveLasso([np.arange(10), np.arange(8, 20)]),
}


def lives(penalty=None, alpha=0.0, sparse=False, weighted=False, ties="breslow"):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.5) * 10.0 ** rng.uniform(-1, 1, P)
    time = np.ceil(5 * rng.exponential(np.exp(-X[:, 0] / 3)))
    y = np.column_stack([time, rng.random(N) < 0.7, rng.integers(0, 2, N)])
    weight = rng.random(N) * (rng.random(N) < 0.9) if weighted else None
    return fl.Problem(sp.csr_array(X) if sparse else X, y, loss=fl.Cox(ties=ties), penalty=penalty, alpha=alpha,
                      sample_weight=weight)  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_the_curvature_is_that_of_the_loss(ties, sparse):
    problem = lives(fl.Ridge(), 0.1, sparse, True, ties)
    method, rng = CoupledMultipliers(problem), np.random.default_rng(0)
    w = np.append(0.1 * rng.standard_normal(P), 0.0)
    _, bend = method._rows(problem.scores(w), bend=True)
    found = np.zeros((P + 1, P + 1))
    method._add_loss_curvature(bend, found)
    for j, direction in enumerate(np.eye(P + 1)[:P]):
        ahead, behind = (problem.slopes_at(problem.scores(w + sign * 1e-6 * direction)) for sign in (1, -1))
        change = problem.gradient_sum(ahead - behind) / 2e-6
        np.testing.assert_allclose(found[:P, j], change[:P], atol=1e-6 * np.abs(found).max())
    assert not found[P].any()


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_answer_is_found_without_other_models(penalty, sparse):
    problem = lives(PENALTIES[penalty], sparse=sparse, weighted=True)
    problem = problem.with_alpha(0.02 * min(problem.alpha_max(), 5.0))
    assert isinstance(fitting(problem), CoupledModels)
    result = fl.solve(problem, tol=1e-9)
    assert result.status is fl.Status.CONVERGED
    assert {record.by for record in result.history} == {"zero", CoupledModels.name}
    other = fl.solve(problem, method="reweighted-squares", tol=1e-5)
    assert other.dual <= result.primal
    assert other.primal >= result.dual


def test_along_a_path_an_answer_begins_at_the_last_one():
    path = fl.path(lives(PENALTIES["chain"]), n_alphas=6, tol=1e-7)
    assert all(result.status is fl.Status.CONVERGED for result in path.results)


def test_why_it_does_not_fit():
    engine = CoupledModels(PRICES)
    assert "is a sum over rows" in engine.unfit(fl.Problem(np.eye(3), np.ones(3), loss="squared"))
    assert engine.unfit(lives()) == "there is no penalty"
