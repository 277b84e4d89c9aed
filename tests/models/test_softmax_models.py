"""Several classes by the softmax: estimators, cross-validation, saved models, the command line."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import fenchel as fl
from fenchel.cli import make_app
from fenchel.models import Model


def iris():
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_the_softmax_is_the_default_for_three_classes():
    X, y = iris()
    model = fl.StructuredClassifier(penalty=fl.Ridge(), alpha=0.02).fit(X, y)
    other = LogisticRegression(C=1 / (150 * 0.02), tol=1e-10, max_iter=10_000).fit(X, y)
    assert model.coef_.shape == (3, 4)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X), atol=1e-5)
    same = fl.StructuredClassifier(loss="multinomial", penalty=fl.Ridge(), alpha=0.02).fit(X, y)
    assert np.array_equal(model.coef_, same.coef_)
    rest = fl.StructuredClassifier(alpha=0.005, multi_class="ovr").fit(X, y)
    together = fl.StructuredClassifier(alpha=0.005).fit(X, y)
    assert log_loss(y, together.predict_proba(X)) < log_loss(y, rest.predict_proba(X))


def test_two_classes_stay_as_they_were():
    X, y = iris()
    plain = fl.StructuredClassifier(alpha=0.02).fit(X[50:], y[50:])
    other = fl.StructuredClassifier(alpha=0.02, multi_class="multinomial").fit(X[50:], y[50:])
    assert np.array_equal(plain.coef_, other.coef_) and plain.coef_.shape == (1, 4)
    two = fl.StructuredClassifier(loss="multinomial", alpha=0.02).fit(X[50:], y[50:])
    assert two.coef_.shape == (2, 4)
    np.testing.assert_allclose(two.predict_proba(X), plain.predict_proba(X), atol=1e-3)


def test_bad_arguments():
    X, y = iris()
    with pytest.raises(ValueError, match="multi_class is 'softmax'; it must be 'auto'"):
        fl.StructuredClassifier(multi_class="softmax").fit(X, y)
    with pytest.raises(ValueError, match="goes with the loss 'logistic'"):
        fl.StructuredClassifier(loss="hinge", multi_class="multinomial").fit(X, y)
    with pytest.raises(ValueError, match="sees all classes together"):
        fl.StructuredClassifier(loss="multinomial", multi_class="ovr").fit(X, y)
    with pytest.raises(ValueError, match="a loss for regression"):
        fl.StructuredRegressor(loss="multinomial").fit(X, y)
    with pytest.raises(AttributeError, match=r"has no attribute .predict_proba"):
        fl.StructuredClassifier(loss="multiclass-hinge").fit(X, y).predict_proba(X)


def test_cross_validation():
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = fl.StructuredClassifierCV(penalty=fl.MultiTaskLasso(), n_alphas=5, eps=0.01, cv=3).fit(X, names)
    assert model.cv_results_.converged.all() and model.score(X, names) > 0.95
    # the score is minus the log-loss of the held-out rows, whatever the number of classes
    assert -0.7 < model.cv_results_.mean[-1] < 0 and model.cv_results_.mean[0] == pytest.approx(-np.log(3), rel=0.05)
    problem = fl.Problem(X, y, loss="multinomial", penalty=fl.MultiTaskLasso(3), fit_intercept=True)
    found = fl.cross_validate_path(problem, cv=3, alphas=model.alphas_)
    assert found.mean == pytest.approx(model.cv_results_.mean, abs=1e-4)


def test_a_class_that_does_not_occur_in_a_fold():
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    folds = [(np.arange(100), np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]
    with pytest.raises(ValueError, match=r"class .*'virginica'.* does not occur in the training rows of fold 0"):
        fl.StructuredClassifierCV(cv=folds).fit(X, names)
    problem = fl.Problem(X, y, loss="multinomial", penalty=fl.MultiTaskLasso(3))
    with pytest.raises(ValueError, match="class 2 does not occur in the training rows of fold 0"):
        fl.cross_validate_path(problem, cv=folds)


def test_path():
    X, y = iris()
    for loss in ("multinomial", "multiclass-hinge"):
        found = fl.path(X, y, loss=loss, penalty=fl.MultiTaskLasso(3), fit_intercept=True, n_alphas=6, eps=0.01)
        assert found.converged.all() and found.coefs.shape == (6, 3, 4)
        assert found.nonzeros[0] == 0 and np.all(np.diff(found.primals) < 0)


@pytest.mark.parametrize("loss", ["multinomial", "multiclass-hinge"])
def test_command_line_and_saved_model(tmp_path, loss):
    from typer.testing import CliRunner

    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    lines = [",".join([*(f"{value:.6f}" for value in row), name]) for row, name in zip(X, names, strict=True)]
    data = tmp_path / "iris.csv"
    data.write_text("a,b,c,d,kind\n" + "\n".join(lines) + "\n")
    runner, model, app = CliRunner(), tmp_path / "model.json", make_app()
    arguments = [] if loss == "multinomial" else ["--loss", loss]
    made = runner.invoke(app, ["fit", str(data), "--target", "kind", "--alpha", "0.02", "-o", str(model), *arguments])
    assert made.exit_code == 0, made.output
    saved = Model.load(model)
    assert saved.loss == loss and saved.coef.shape == (3, 4) and saved.classes == ["setosa", "versicolor", "virginica"]
    same = fl.StructuredClassifier(loss=loss, alpha=0.02).fit(np.loadtxt(lines, delimiter=",", usecols=range(4)), names)
    assert saved.certificate["primal"] == pytest.approx(same.result_.primal, rel=2e-6)
    assert np.mean(saved.predict(X) == names) > 0.93
    wanted = ["--probability"] if loss == "multinomial" else []
    told = runner.invoke(app, ["predict", str(model), str(data), *wanted])
    assert told.exit_code == 0, told.output
    assert ("probability_setosa" in told.output) == bool(wanted)
    if loss == "multinomial":
        np.testing.assert_allclose(saved.probabilities(saved.decision(X)).sum(axis=1), 1.0)
        rest = ["fit", str(data), "--target", "kind", "--alpha", "0.02", "-o", str(model), "--multi-class", "ovr"]
        assert runner.invoke(app, rest).exit_code == 0 and Model.load(model).loss == "logistic"
    wrong = runner.invoke(app, ["fit", str(data), "--target", "kind", "--multi-class", "rest"])
    assert "--multi-class is 'rest'" in wrong.stderr
    assert wrong.exit_code != 0
