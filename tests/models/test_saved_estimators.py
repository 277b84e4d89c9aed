"""Estimators saved and loaded, given to scikit-learn, and kept by skops."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

import fenchel as fl
from fenchel.models import Model
from fenchel.penalties.plain import from_plain, to_plain


def fitted():
    """Models of many kinds with the rows they know."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    groups = fl.Groups.from_columns(X, by=lambda name: name[0])
    yield "frame", fl.StructuredRegressor(penalty=fl.GroupLasso(groups), alpha=1.0).fit(X, y), X
    yield "by name", fl.StructuredRegressor(penalty=fl.GroupLasso(by="s"), alpha=1.0).fit(X, y), X
    model = fl.StructuredRegressor(penalty=0.5 * fl.L1() + fl.Ridge(), alpha=0.1, standardize=True)
    yield "sum", model.fit(X.to_numpy(), y), X.to_numpy()
    both = np.column_stack([y, -y])
    yield (
        "outputs",
        fl.StructuredRegressor(penalty=fl.MultiTaskLasso(), alpha=1.0).fit(X.to_numpy(), both),
        X.to_numpy(),
    )
    yield "counts", fl.StructuredRegressor("poisson", alpha=0.1).fit(X, y), X
    A, b = load_breast_cancer(return_X_y=True)
    A = StandardScaler().fit_transform(A)
    yield "labels", fl.StructuredClassifier(alpha=0.05).fit(A, np.array(["no", "yes"])[b]), A
    yield "hinge", fl.StructuredClassifier("smoothed-hinge", alpha=0.05).fit(A, b), A
    cv = fl.StructuredClassifierCV(n_alphas=4, cv=3, penalty=fl.FusedLasso(0.5))
    yield "cv", cv.fit(A, b), A
    Z, c = load_iris(return_X_y=True)
    yield "classes", fl.StructuredClassifier(alpha=0.01).fit(Z, c), Z


CASES = list(fitted())


@pytest.mark.filterwarnings("ignore:the smallest alpha")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_is_saved_comes_back(case, tmp_path):
    _, model, X = case
    file = tmp_path / "model.json"
    model.save(file)
    again = fl.load_model(file)
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert (again.gap_, again.status_, again.alpha_) == (model.gap_, model.status_, model.alpha_)
    assert again.support().equals(model.support())
    if getattr(model.penalty_, "groups", None) is not None:
        assert again.active_groups().equals(model.active_groups())
    if hasattr(model, "classes_"):
        assert again.classes_.tolist() == model.classes_.tolist()
    assert again.set_params(alpha=2.0).fit(X, again.predict(X)).alpha_ == 2.0, "it can be fitted again"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_scikit_learn_predicts_the_same(case):
    _, model, X = case
    theirs = model.to_sklearn()
    if model._classification:
        np.testing.assert_array_equal(theirs.predict(X), model.predict(X))
        np.testing.assert_allclose(theirs.decision_function(X), model.decision_function(X), atol=1e-9)
        if hasattr(model, "predict_proba"):
            np.testing.assert_allclose(theirs.predict_proba(X), model.predict_proba(X), atol=1e-9)
    else:
        np.testing.assert_allclose(theirs.predict(X), model.predict(X), rtol=1e-9)


def test_what_scikit_learn_does_not_know_is_refused():
    X, y = load_diabetes(return_X_y=True)
    tasks = fl.StructuredRegressor(penalty=fl.MultiTaskLasso()).fit(X, y, task=np.arange(len(y)) % 2)
    with pytest.raises(ValueError, match="was fitted with tasks, which scikit-learn's models do not have"):
        tasks.to_sklearn()
    shifted = fl.StructuredRegressor("poisson").fit(X, y, offset=np.zeros(len(y)))
    with pytest.raises(ValueError, match="was fitted with an offset"):
        shifted.to_sklearn()


@pytest.mark.parametrize(
    "penalty",
    [
        fl.Lasso([1.0, 2.0, 0.0]),
        fl.SparseGroupLasso({"a": [0, 1], "b": [2]}, 0.3, weights={"a": 2.0}),
        fl.GraphFused(fl.Graph([[0, 1], [1, 2]], 3, [1.0, -2.0])),
        fl.TotalVariation(fl.Grid((2, 3), np.array([[1, 1, 0], [0, 1, 0]], dtype=bool))),
        fl.TreeGroups(fl.Tree({"x": "r", "y": "r", "z": "q"})),
        fl.Unpenalised(fl.L1(), [0]) + 0.5 * fl.Ridge(),
        fl.Slope([3.0, 2.0, 1.0]),
    ],
    ids=repr,
)
def test_penalties_are_written_and_read(penalty):
    again = from_plain(json.loads(json.dumps(to_plain(penalty))))
    w = np.array([1.0, -2.0, 0.5])
    first, second = (fl.Problem(np.eye(3), w, loss="squared", penalty=one).penalty_value for one in (penalty, again))
    at = fl.Problem(np.eye(3), w, loss="squared", penalty=penalty)
    u = at.penalised(at.pack(w, 0.0))
    assert first(u) == second(u) and type(again) is type(penalty)


def test_what_no_file_holds_is_left_out(tmp_path):
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 3)), columns=["a_x", "a_y", "b"])
    model = fl.StructuredRegressor(penalty=fl.L1() @ fl.Difference(3), alpha=0.1).fit(X, X["b"])
    assert to_plain(model.penalty) is None
    model.save(tmp_path / "model.json")
    assert fl.load_model(tmp_path / "model.json").penalty is None


def test_skops_keeps_estimators():
    sio = pytest.importorskip("skops.io")
    _, model, X = CASES[0]
    kept = sio.dumps(model)
    again = sio.loads(kept, trusted=sio.get_untrusted_types(data=kept))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.status_ is model.status_ and again.result_.status is model.status_


@pytest.mark.parametrize("kind", ["ovr", "softmax", "multinomial", "multiclass-hinge"])
def test_several_classes_come_back_as_they_were_fitted(tmp_path, kind):
    """All together, or each against the rest: the same scores are other probabilities."""
    Z, c = load_iris(return_X_y=True)
    options = {"ovr": {"multi_class": "ovr"}, "softmax": {}}.get(kind, {"loss": kind})
    model = fl.StructuredClassifier(alpha=0.02, **options).fit(Z, c)
    model.save(tmp_path / "model.json")
    again = fl.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))
    if kind != "multiclass-hinge":
        np.testing.assert_array_equal(again.predict_proba(Z), model.predict_proba(Z))
        np.testing.assert_array_equal(Model.load(tmp_path / "model.json").probabilities(again.decision_function(Z)),
                                      model.predict_proba(Z))  # fmt: skip
    np.testing.assert_array_equal(again.fit(Z, c).coef_, model.coef_)


@pytest.mark.parametrize("strata", [None, "words", "numbers"])
def test_models_of_survival_come_back_with_their_curves(tmp_path, strata):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((80, 3)), columns=["a", "b", "c"])
    y = np.column_stack([rng.exponential(size=80) + 0.01, rng.random(80) < 0.6])
    labels = {None: None, "words": np.where(X["a"] > 0, "old", "new"), "numbers": (X["b"] > 0).to_numpy() + 1}[strata]
    model = fl.CoxRegressor(fl.Ridge(), 0.1, ties="efron").fit(X, y, strata=labels)
    model.save(tmp_path / "model.json")
    again = fl.load_model(tmp_path / "model.json")
    assert isinstance(again, fl.CoxRegressor) and again.ties == "efron" and again.gap_ == model.gap_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    given = {"strata": labels}
    np.testing.assert_array_equal(
        again.predict_survival_function(X, **given), model.predict_survival_function(X, **given)
    )
    assert again.score(X, y, **given) == model.score(X, y, **given)
    picked = fl.CoxRegressorCV(n_alphas=4, cv=3).fit(X, y, strata=labels)
    picked.save(tmp_path / "picked.json")
    np.testing.assert_array_equal(fl.load_model(tmp_path / "picked.json").predict(X), picked.predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": []}, "times are .*; they must be a list"),
        ({"log_hazards": [[0.0], [1.0]]}, "2 rows, which are not those of its strata"),
        ({"log_hazards": [[0.0]]}, r"it must hold \d+ numbers"),
        ({"strata": ["x", "y"]}, "1 rows"),
        ({"times": "soon"}, "must be a list"),
    ],
)
def test_broken_baselines_are_told(tmp_path, change, message):
    rng = np.random.default_rng(0)
    y = np.column_stack([rng.exponential(size=30) + 0.01, np.ones(30)])
    path = tmp_path / "model.json"
    fl.CoxRegressor(alpha=0.1).fit(rng.standard_normal((30, 2)), y).save(path)
    content = json.loads(path.read_text())
    content["baseline"] |= change
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=f"broken fenchel model: .*{message}"):
        fl.load_model(path)


def test_a_model_of_survival_from_the_command_line_has_no_curves(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 2)), np.column_stack([rng.exponential(size=30) + 0.01, np.ones(30)])
    path = tmp_path / "model.json"
    model = fl.CoxRegressor(alpha=0.1).fit(X, y)
    model.save(path)
    content = json.loads(path.read_text())
    del content["baseline"]
    path.write_text(json.dumps(content))
    again = fl.load_model(path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match="it predicts risks alone"):
        again.predict_survival_function(X)
