"""A full map that can be inverted: the fit is made in its coordinates, and proven for the features."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

import fenchel as fl
from fenchel.solver.columns import in_coordinates

N, P = 40, 420  # more features than the least for which products of full maps count
RNG = np.random.default_rng(3)
X = RNG.standard_normal((N, P))
WAVES = scipy.fft.dct(np.eye(P), norm="ortho", axis=0)
SCORE = X @ scipy.fft.idct(np.bincount([3, 7, 20], [3.0, -2.0, 1.5], minlength=P), norm="ortho")
Y = SCORE + 0.1 * RNG.standard_normal(N)


def cosines() -> LinearOperator:
    return LinearOperator(
        (P, P), dtype=float, matvec=lambda w: scipy.fft.dct(np.ravel(w), norm="ortho"),
        rmatvec=lambda u: scipy.fft.idct(np.ravel(u), norm="ortho"),
    )  # fmt: skip


def problem(penalty: fl.Penalty, loss: str = "squared", **options: object) -> fl.Problem:
    target = np.sign(SCORE) if loss in ("logistic", "hinge") else Y
    return fl.Problem(options.pop("X", X), target, loss=loss, penalty=penalty, alpha=0.1, fit_intercept=True, **options)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge", "quantile"])
@pytest.mark.parametrize("penalty", ["operator", "matrix", "scaled", "groups"])
def test_a_fit_behind_a_transform(penalty, loss):
    made = {
        "operator": fl.L1() @ cosines(), "matrix": fl.L1() @ WAVES, "scaled": 0.5 * (fl.L1() @ WAVES),
        "groups": fl.GroupL2([range(k, k + 3) for k in range(0, P, 3)]) @ WAVES,
    }  # fmt: skip
    inner = fl.GroupL2([range(k, k + 3) for k in range(0, P, 3)]) if penalty == "groups" else fl.L1()
    behind = problem(made[penalty], loss)
    result = fl.solve(behind)
    plain = problem((0.5 if penalty == "scaled" else 1.0) * inner, loss, X=X @ WAVES.T)
    assert result.status == fl.Status.CONVERGED
    assert result.primal == pytest.approx(fl.solve(plain).primal, rel=2e-6)
    assert behind.primal(result.coef, result.intercept) == pytest.approx(result.primal, rel=1e-12)
    assert behind.certificate(result.state).relative_gap <= 1e-5  # bounds of other points are not in it


@pytest.mark.parametrize("data", ["float32", "sparse", "Fortran"])
def test_any_data(data):
    given = {"float32": X.astype(np.float32), "sparse": sp.csr_array(X), "Fortran": np.asfortranarray(X)}[data]
    result = fl.solve(problem(fl.L1() @ WAVES, X=given))
    assert result.status == fl.Status.CONVERGED
    assert result.primal == pytest.approx(fl.solve(problem(fl.L1() @ WAVES)).primal, rel=1e-5)


def test_a_start_and_what_callbacks_see():
    behind, seen = problem(fl.L1() @ WAVES), []
    first = fl.solve(behind, tol=1e-2)
    again = fl.solve(behind, tol=1e-8, warm_start=first, callback=lambda one: seen.append(one.coef))
    assert again.status == fl.Status.CONVERGED
    assert all(coef.shape == (P,) for coef in seen)
    assert behind.primal(seen[-1], again.intercept) == pytest.approx(again.primal, rel=1e-3)


def test_paths_and_folds():
    plain = fl.path(X @ WAVES.T, Y, loss="squared", penalty=fl.L1(), fit_intercept=True, n_alphas=5)
    behind = fl.path(X, Y, loss="squared", penalty=fl.L1() @ cosines(), fit_intercept=True, n_alphas=5)
    np.testing.assert_allclose(behind.alphas, plain.alphas)
    assert behind.converged.all()
    np.testing.assert_allclose(behind.coefs @ WAVES.T, plain.coefs, atol=1e-4)
    options = {"loss": "squared", "fit_intercept": True, "n_alphas": 4, "cv": 3}
    scores = [
        fl.cross_validate_path(data, Y, penalty=penalty, **options).mean
        for data, penalty in ((X @ WAVES.T, fl.L1()), (X, fl.L1() @ WAVES))
    ]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-4)


def test_estimators_that_choose_alpha():
    """Both ways to columns in the data's units: from those of the fold, and from the coordinates of the map."""
    far = X + 100.0  # so that columns are centred as well
    options = {"n_alphas": 4, "cv": 3}
    plain = fl.StructuredRegressorCV(penalty=fl.L1(), **options).fit(far @ WAVES.T, Y)
    behind = fl.StructuredRegressorCV(penalty=fl.L1() @ cosines(), **options).fit(far, Y)
    assert behind.alpha_ == pytest.approx(plain.alpha_)
    np.testing.assert_allclose(behind.cv_results_.mean, plain.cv_results_.mean, rtol=1e-4)
    np.testing.assert_allclose(behind.predict(far), plain.predict(far @ WAVES.T), rtol=1e-3)


def test_maps_for_which_there_are_no_such_coordinates():
    singular = WAVES.copy()
    singular[5] = singular[6]
    assert in_coordinates(problem(fl.L1() @ singular)) is None
    assert in_coordinates(problem(fl.L1() @ WAVES[:-1])) is None
    assert in_coordinates(problem(fl.L1() @ sp.eye_array(P, format="csr"))) is None
    assert in_coordinates(problem(fl.L1())) is None
    assert in_coordinates(problem(fl.L1() @ WAVES)) is not None
