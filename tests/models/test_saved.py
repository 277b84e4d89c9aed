"""What version 0.2.0 saved still loads."""

import pathlib

import numpy as np

import fenchel as fl
from fenchel.models import Model

SAVED = pathlib.Path(__file__).parent / "saved"


def test_a_result_of_0_2_0_loads_and_warms():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 5))
    y = np.sign(X[:, 0] + 0.1 * rng.standard_normal(30))
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.FusedLasso(0.5), alpha=0.05, fit_intercept=True)
    saved = fl.Result.load(SAVED / "result-0.2.0.npz")
    assert saved.status == fl.Status.CONVERGED and saved.relative_gap <= 1e-6
    assert saved.dual <= problem.primal(saved.coef, saved.intercept) <= saved.primal * (1 + 1e-12)
    again = fl.solve(problem, tol=1e-9, warm_start=saved)
    assert again.relative_gap <= 1e-9


def test_a_model_of_0_2_0_loads_and_predicts():
    model = Model.load(SAVED / "model-0.2.0.json")
    assert model.features == ["a", "b", "c", "d", "e"]
    np.testing.assert_array_equal(np.flatnonzero(model.coef), [0])
    np.testing.assert_array_equal(model.predict(np.array([[1.0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0]])), [1, -1])
