"""Tasks and outputs: models in blocks, their proofs, and what the squared loss proves without the data."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.engine.curvatures.blocks import BlockGram
from fenchel.engine.moments import moments
from fenchel.engine.registry import fitting
from fenchel.engine.tasks import BlockModels
from fenchel.penalties import MultiTaskLasso, MultiTaskLowRank, PerOutput
from fenchel.prices import PRICES

V, P = 4, 6


def data(kind, loss, seed=0, n=120):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * 10.0 ** rng.uniform(-1, 1, P) + 0.3
    W = rng.standard_normal((V, P)) * (rng.random(P) < 0.6) / X.std(axis=0)
    task = rng.permutation(np.arange(n) % V) if kind == "tasks" else None
    score = np.einsum("ij,ij->i", X, W[task]) if kind == "tasks" else X @ W.T
    score = score + 0.5 * rng.standard_normal(score.shape)
    if loss in ("logistic", "smoothed-hinge"):
        y = np.where(score > 0, 1.0, -1.0)
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(score, -2, 2))).astype(float)
    else:
        y = score
    return X, y, task


def problem(kind="outputs", loss="squared", penalty=None, share=0.1, intercept=True, weights=False, sparse=False):
    X, y, task = data(kind, loss)
    weight = np.random.default_rng(1).integers(0, 3, len(X)).astype(float) if weights else None
    X = sp.csr_array(np.where(np.abs(X) > np.median(np.abs(X)), X, 0.0)) if sparse else X
    made = fl.Problem(X, y, loss=loss, penalty=penalty or MultiTaskLasso(V), fit_intercept=intercept, task=task,
                      sample_weight=weight)  # fmt: skip
    return made.with_alpha(share * made.alpha_max())


def chain_over_vectors():
    """Neighbouring vectors differ in few coefficients."""
    rows = np.arange((V - 1) * P)
    matrix = sp.csr_array(
        (np.tile([-1.0, 1.0], rows.size), (np.repeat(rows, 2), np.column_stack([rows, rows + P]).ravel())),
        shape=(rows.size, V * P),
    )
    return fl.L1() @ fl.Matrix(matrix) + 0.5 * fl.L1()


PENALTIES = {
    "l21": MultiTaskLasso(V),
    "trace": MultiTaskLowRank(V),
    "sum": MultiTaskLasso(V) + 0.5 * MultiTaskLowRank(V),
    "ridge": MultiTaskLasso(V) + 0.3 * fl.Ridge(),
    "per output": PerOutput(fl.L1(), V),
}


PENALTIES["chain over vectors"] = chain_over_vectors()


def check(made, tol=1e-7):
    """The engine's answer is proven by the data, and no worse than that of epochs alone."""
    assert isinstance(fitting(made), BlockModels)
    result = fl.solve(made, tol=tol, max_epochs=400)
    assert result.status.value == "converged"
    w = made.pack(result.coef, result.intercept)
    assert made.primal_at(w) == pytest.approx(result.primal, rel=1e-11)
    again = made.certificate(type("Point", (), {"w": w, "x": result.state["x"], "y": result.state["y"]}))
    assert again.dual <= result.primal * (1 + 1e-12)
    other = fl.solve(made, tol=1e-6, newton=False, max_epochs=20000, time_limit=10.0)
    assert result.primal <= other.primal * (1 + 2 * tol)
    assert result.dual <= other.primal * (1 + 1e-12)
    assert other.dual <= result.primal * (1 + 1e-12)


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("kind", ["outputs", "tasks"])
def test_squared(kind, name):
    check(problem(kind, penalty=PENALTIES[name]))


@pytest.mark.parametrize("loss", ["logistic", "huber", "poisson"])
@pytest.mark.parametrize("kind", ["outputs", "tasks"])
def test_curved(kind, loss):
    check(problem(kind, loss), 1e-6)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("kind", ["outputs", "tasks"])
def test_weights_and_sparse_rows(kind, loss):
    check(problem(kind, loss, weights=True), 1e-6)
    check(problem(kind, loss, sparse=True), 1e-6)
    check(problem(kind, loss, intercept=False), 1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", ["outputs", "tasks"])
def test_blocks_are_the_curvature(kind, sparse):
    made = problem(kind, "logistic", sparse=sparse, weights=True)
    h = np.random.default_rng(2).uniform(0.1, 1.0, made.visits)
    gram = BlockGram(made, PRICES)
    gram.make(h)
    d = np.random.default_rng(3).standard_normal(made.size)
    expected = made.gradient_sum(gram.h * made.scores(d)) / made.n
    np.testing.assert_allclose(gram.times(d), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("kind", ["outputs", "tasks"])
def test_moments_are_the_squared_loss(kind):
    made = problem(kind, weights=True)
    found = moments(made, PRICES)
    each = np.random.default_rng(4).standard_normal((V, P))
    w, slope = found.with_intercepts(each), found.gradient(each)
    scores = made.scores(w)
    assert found.loss(each, slope) == pytest.approx(made.mean_loss(scores), rel=1e-12)
    sums = made.gradient_sum(made.slopes_at(scores)).reshape(V, -1) / made.n
    np.testing.assert_allclose(sums[:, :-1], slope, rtol=1e-9, atol=1e-11 * np.abs(slope).max())
    np.testing.assert_allclose(sums[:, -1], 0.0, atol=1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_paths_are_certified(loss):
    made = problem("tasks", loss)
    path = fl.path(made, n_alphas=8, eps=1e-2, tol=1e-6)
    assert path.converged.all()
    for alpha, result in zip(path.alphas[1::3], path.results[1::3], strict=True):
        single = fl.solve(made.with_alpha(alpha), tol=1e-8)
        assert single.dual <= result.primal * (1 + 1e-12)
        assert result.dual <= single.primal * (1 + 1e-12)
