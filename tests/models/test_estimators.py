"""The estimators: scikit-learn's own checks, agreement with its models, several outputs, tasks, structure, warnings."""

from __future__ import annotations

import io
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context, datasets, linear_model
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import fenchel as fl
from fenchel.models import StructuredClassifier, StructuredClassifierCV, StructuredRegressor, StructuredRegressorCV
from fenchel.models import fitting as _estimator_base
from fenchel.models.preparation import for_outputs

QUICK = {"n_alphas": 5, "cv": 3, "eps": 0.01}
MODELS = [
    StructuredClassifier(),
    StructuredRegressor(),
    StructuredClassifierCV(**QUICK),
    StructuredRegressorCV(**QUICK),
]
by_name = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
one_alpha = pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: type(model).__name__)


@pytest.fixture
def array_api(monkeypatch):
    """One of scikit-learn's checks is skipped without it."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@pytest.mark.usefixtures("array_api")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(MODELS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def iris():
    X, y = datasets.load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def cancer():
    X, y = datasets.load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:, :10], y


def diabetes():
    X, y = datasets.load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def data_for(model):
    return cancer() if hasattr(model, "predict_proba") else diabetes()


# -- scikit-learn's company ---------------------------------------------------------------------------


@by_name
def test_clone_pickle_joblib(model, tmp_path):
    X, y = data_for(model)
    model = clone(model).set_params(penalty=fl.ElasticNet(l1_ratio=0.7), random_state=3)
    again = clone(model)
    assert again is not model
    assert again.penalty is not model.penalty
    assert again.get_params()["penalty__l1_ratio"] == 0.7
    model.fit(X, y)
    file = tmp_path / "model.joblib"
    joblib.dump(model, file)
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.status_ is fl.Status.CONVERGED
        assert copy.result_.gap == model.gap_
    assert len(pickle.dumps(model)) < 40_000  # not the size of the data
    np.testing.assert_array_equal(again.fit(X, y).coef_, model.coef_)  # same seed, same bits


@by_name
def test_pipeline_cross_validate_and_grid_search(model):
    X, y = data_for(model)
    X, y = X[:150], y[:150]
    pipe = make_pipeline(StandardScaler(), clone(model).set_params(penalty=fl.ElasticNet()))
    scores = cross_validate(pipe, X, y, cv=3)["test_score"]
    assert scores.mean() > 0.3
    name = pipe.steps[-1][0]
    search = GridSearchCV(pipe, {f"{name}__penalty__l1_ratio": [0.2, 0.9]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_params_[f"{name}__penalty__l1_ratio"] in (0.2, 0.9)
    assert search.best_estimator_[-1].penalty.l1_ratio == search.best_params_[f"{name}__penalty__l1_ratio"]
    assert pipe[-1].penalty.l1_ratio == 0.5  # the search worked on clones


@one_alpha
def test_grid_search_over_weights_of_a_penalty(model):
    X, y = data_for(model)
    free, full = np.zeros(10), np.ones(10)
    model = clone(model).set_params(penalty=fl.L1(np.ones(10)), alpha=0.1)
    search = GridSearchCV(model, {"penalty__weights": [free, full], "alpha": [1.0]}, cv=3).fit(X, y)
    np.testing.assert_array_equal(search.best_params_["penalty__weights"], free)
    assert not model.set_params(penalty__weights=full, alpha=10).fit(X, y).coef_.any()


def test_grid_search_inside_a_sum():
    X, y = diabetes()
    model = StructuredRegressor(penalty=fl.GroupLasso([[0, 1, 2], [3, 4], [5, 6, 7, 8, 9]]) + 0.1 * fl.L1())
    search = GridSearchCV(model, {"penalty__part1__scale": [0.0, 100.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"penalty__part1__scale": 0.0}
    assert search.best_score_ > 0.3
    assert model.penalty.get_params()["part1__scale"] == 0.1


@pytest.mark.parametrize("model", [StructuredClassifier(), StructuredRegressorCV(**QUICK)], ids=["one", "cv"])
def test_metadata_routing(model):
    X, y = data_for(model)
    X, y = X[:120], y[:120]
    weight = np.random.default_rng(0).random(120)
    with config_context(enable_metadata_routing=True):
        model = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipe = make_pipeline(scaler, model)
        pipe.fit(X, y, sample_weight=weight)
        plain = clone(model).fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
        np.testing.assert_array_equal(pipe[-1].coef_, plain.coef_)
        search = GridSearchCV(model, {"tol": [1e-4, 1e-6]}, cv=2).fit(X, y, sample_weight=weight)
        expected = clone(model).set_params(**search.best_params_).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(search.best_estimator_.coef_, expected.coef_)
        # without a request the weights are refused instead of being lost
        quiet = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), clone(MODELS[0]))
        with pytest.raises(ValueError, match="sample_weight"):
            quiet.fit(X, y > np.median(y), sample_weight=weight)


def test_tasks_are_routed():
    X, y, where = tasks()
    weight = np.random.default_rng(1).random(200)
    with config_context(enable_metadata_routing=True):
        model = StructuredRegressor(penalty=fl.MultiTaskLasso(), alpha=0.05)
        model.set_fit_request(task=True, sample_weight=True).set_score_request(task=True, sample_weight=True)
        scores = cross_validate(model, X, y, params={"task": where, "sample_weight": weight}, cv=3)["test_score"]
        assert scores.min() > 0.8
        search = GridSearchCV(model, {"alpha": [0.05, 5.0]}, cv=3).fit(X, y, task=where, sample_weight=weight)
        assert search.best_params_ == {"alpha": 0.05}
        expected = clone(model).fit(X, y, task=where, sample_weight=weight).coef_
        np.testing.assert_array_equal(search.best_estimator_.coef_, expected)


def test_other_company():
    """Meta-estimators that ask for more than fit and predict."""
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401
    from sklearn.feature_selection import SelectFromModel
    from sklearn.model_selection import HalvingGridSearchCV

    X, y = cancer()
    X, y = X[:200], y[:200]
    calibrated = CalibratedClassifierCV(StructuredClassifier("smoothed-hinge"), cv=3).fit(X, y)
    assert log_loss(y, calibrated.predict_proba(X)) < 0.4
    grid = {"penalty__l1_ratio": [0.1, 0.9], "alpha": [0.01, 0.3]}
    search = HalvingGridSearchCV(StructuredClassifier(penalty=fl.ElasticNet()), grid, cv=3, random_state=0).fit(X, y)
    assert search.best_params_["alpha"] == 0.01
    assert 0 < SelectFromModel(StructuredClassifier(alpha=0.05)).fit(X, y).transform(X).shape[1] < 10


@by_name
def test_read_only_data(model, tmp_path):
    """As joblib hands it to its workers."""
    X, y = data_for(model)
    weight = np.linspace(1, 2, len(y))
    expected = clone(model).fit(X, y, sample_weight=weight).coef_
    joblib.dump((X, y, weight), tmp_path / "data")
    mapped = joblib.load(tmp_path / "data", mmap_mode="r")
    assert not mapped[0].flags.writeable
    np.testing.assert_array_equal(clone(model).fit(*mapped[:2], sample_weight=mapped[2]).coef_, expected)
    csr = sp.csr_array(X)
    for array in (csr.data, csr.indices, csr.indptr):
        array.flags.writeable = False
    np.testing.assert_allclose(clone(model).fit(csr, y, sample_weight=weight).coef_, expected, atol=1e-4)


@by_name
def test_columns_far_from_zero(model):
    """Years, temperatures in kelvin: with an intercept only the intercept changes."""
    X, y = data_for(model)
    away = 1000.0 * np.arange(1, 11)
    exact = clone(model).set_params(tol=1e-12)  # what is compared below are coefficients, not objectives
    near, far = clone(exact).fit(X, y), clone(exact).fit(X + away, y)
    assert far.status_ is fl.Status.CONVERGED
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
    np.testing.assert_allclose(far.predict(X + away), near.predict(X), atol=1e-5)
    assert far.result_.intercept == pytest.approx(float(np.ravel(far.intercept_)[0]))
    if hasattr(far, "path_"):
        assert far.alpha_ == pytest.approx(near.alpha_, rel=1e-6)
        assert far.path_.intercepts[-1] == pytest.approx(far.result_.intercept, rel=1e-6)
        by_score = clone(model).set_params(scoring="accuracy" if hasattr(model, "predict_proba") else "r2")
        assert by_score.fit(X + away, y).cv_results_.scores.max() > 0.3
    single = clone(model).fit((X + away).astype(np.float32), y)
    np.testing.assert_allclose(single.coef_, near.coef_, atol=1e-2)


def test_columns_far_from_zero_with_tasks_and_outputs():
    X, y, where = tasks()
    near = StructuredRegressor(penalty=fl.MultiTaskLasso(), alpha=0.05).fit(X, y, task=where)
    far = StructuredRegressor(penalty=fl.MultiTaskLasso(), alpha=0.05).fit(X + 500, y, task=where)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-6)
    np.testing.assert_allclose(far.predict(X + 500, task=where), near.predict(X, task=where), atol=1e-6)
    Y = np.column_stack([y, X[:, 0]])
    near, far = StructuredRegressor().fit(X, Y), StructuredRegressor().fit(X + 500, Y)
    np.testing.assert_allclose(far.intercept_, near.intercept_ - near.coef_.sum(axis=1) * 500, atol=1e-4)


@by_name
def test_data_frames_keep_names(model):
    X, y = data_for(model)
    frame = pd.DataFrame(X, columns=[f"feature {j}" for j in range(10)])
    model = clone(model).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.n_features_in_ == 10
    expected = clone(model).fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(frame), expected, rtol=1e-8, atol=1e-10)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.iloc[:, ::-1])
    assert set(model.support()["feature"]) <= set(frame.columns)


def test_polars_frames():
    polars = pytest.importorskip("polars")
    X, y = diabetes()
    frame = polars.DataFrame({f"f{j}": X[:, j] for j in range(10)})
    model = StructuredRegressor().fit(frame, polars.Series(y))
    np.testing.assert_allclose(model.coef_, StructuredRegressor().fit(X, y).coef_, atol=1e-8)
    if hasattr(model, "feature_names_in_"):  # scikit-learn's part, which early versions do not play for polars
        assert model.feature_names_in_[3] == "f3"


@pytest.fixture
def seen(monkeypatch):
    """The X of every problem that an estimator makes."""
    arrays = []

    class Spy(fl.Problem):
        def __init__(self, X, *args, **kwargs):
            arrays.append(X)
            super().__init__(X, *args, **kwargs)

    monkeypatch.setattr(_estimator_base, "Problem", Spy)
    return arrays


def test_data_is_not_copied(seen):
    X, y = diabetes()
    for given in (np.ascontiguousarray(X, dtype=np.float32), np.ascontiguousarray(X)):
        for model in (StructuredRegressor(), StructuredRegressorCV(**QUICK)):
            model.fit(given, y)
            assert seen[-1].dtype == given.dtype
            assert np.shares_memory(seen[-1], given)
    csr = sp.csr_array(X.astype(np.float32))
    StructuredRegressor().fit(csr, y)
    assert np.shares_memory(seen[-1].data, csr.data)


def test_other_orders_and_formats_are_converted():
    X, y = diabetes()
    expected = StructuredRegressor().fit(np.ascontiguousarray(X), y).coef_
    for given in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1][::-1], sp.csc_array(X), X.tolist()):
        np.testing.assert_allclose(StructuredRegressor().fit(given, y).coef_, expected, atol=1e-10)
    single = StructuredRegressor().fit(X.astype(np.float32), y).coef_
    np.testing.assert_allclose(single, expected, atol=1e-5)


# -- agreement with scikit-learn ----------------------------------------------------------------------


def test_agrees_with_lasso_and_elastic_net():
    X, y = diabetes()
    ours = StructuredRegressor(alpha=0.05).fit(X, y)
    theirs = linear_model.Lasso(alpha=0.05, tol=1e-12, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    np.testing.assert_array_equal(ours.coef_ == 0, theirs.coef_ == 0)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-8)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))
    ours = StructuredRegressor(alpha=0.2, penalty=fl.ElasticNet(l1_ratio=0.3)).fit(X, y)
    theirs = linear_model.ElasticNet(alpha=0.2, l1_ratio=0.3, tol=1e-12, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)


def test_agrees_with_logistic_regression():
    X, y = cancer()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    scale = weight.sum()  # the loss is a mean, scikit-learn's a sum
    theirs = linear_model.LogisticRegression(C=1 / (0.1 * scale), tol=1e-12, max_iter=10**5)
    theirs.fit(X, y, sample_weight=weight)
    ours = StructuredClassifier(alpha=0.1, penalty=fl.Ridge()).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_agrees_with_other_models():
    X, y = diabetes()
    counts = np.random.default_rng(0).poisson(np.exp(0.5 * X[:, 0]))
    ours = StructuredRegressor("poisson", fl.Ridge(), alpha=0.1, tol=1e-10).fit(X, counts)
    theirs = linear_model.PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=10**4).fit(X, counts)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-3)
    ours = StructuredRegressor(fl.Quantile(0.7), alpha=0.05, max_epochs=5000).fit(X, y)
    theirs = linear_model.QuantileRegressor(quantile=0.7, alpha=0.05).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    Y = np.column_stack([y, X[:, 0] - X[:, 3], y - X[:, 1]])
    theirs = linear_model.MultiTaskLasso(alpha=0.1, tol=1e-12, max_iter=10**5).fit(X, Y)
    ours = StructuredRegressor(alpha=0.1, penalty=fl.MultiTaskLasso()).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y))


def test_class_weights():
    X, y = cancer()
    balanced = StructuredClassifier(class_weight="balanced").fit(X, y)
    share = len(y) / (2 * np.bincount(y))
    by_hand = StructuredClassifier(class_weight={0: share[0], 1: share[1]}).fit(X, y)
    as_weights = StructuredClassifier().fit(X, y, sample_weight=share[y])
    for other in (by_hand, as_weights):
        np.testing.assert_allclose(other.coef_, balanced.coef_, atol=1e-8)
    both = StructuredClassifier(class_weight={0: 1.0, 1: 2.0}).fit(X, y, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_allclose(both.coef_, StructuredClassifier().fit(X, y, sample_weight=1 + y).coef_, atol=1e-8)


# -- several classes, outputs and tasks ---------------------------------------------------------------


def test_classes_against_the_rest_are_one_problem():
    X, y = iris()
    model = StructuredClassifier(alpha=0.02, multi_class="ovr").fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.decision_function(X).shape == (150, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.9
    for k in range(3):  # a penalty that does not couple gives what three separate models give
        alone = StructuredClassifier(alpha=0.02).fit(X, y == k)
        np.testing.assert_allclose(alone.coef_[0], model.coef_[k], atol=1e-6)


def test_a_feature_is_in_or_out_for_all_classes():
    rng = np.random.default_rng(0)
    X, y = iris()
    X = np.column_stack([X, rng.standard_normal((150, 6))])
    joint = StructuredClassifier(penalty=fl.MultiTaskLasso(), alpha=0.05).fit(X, y)
    zero = joint.coef_ == 0.0
    assert not np.signbit(joint.coef_[zero]).any()
    np.testing.assert_array_equal(zero.any(axis=0), zero.all(axis=0))
    assert 0 < zero.all(axis=0).sum() < 10
    assert joint.penalty.n_outputs is None  # the user's object is left alone
    apart = StructuredClassifier(penalty=fl.L1(), alpha=0.05).fit(X, y).coef_ == 0.0
    assert np.any(apart.any(axis=0) != apart.all(axis=0))


def test_string_labels():
    X, y = iris()
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    model = StructuredClassifier().fit(X, names)
    assert model.classes_.tolist() == ["setosa", "versicolor", "virginica"]
    assert model.score(X, names) > 0.9
    two = StructuredClassifier().fit(X[y < 2], names[y < 2])
    assert set(two.predict(X)) == {"setosa", "versicolor"}


def test_outputs():
    X, y = diabetes()
    Y = np.column_stack([y, X[:, 0]])
    model = StructuredRegressor(alpha=0.1).fit(X, Y)
    assert model.coef_.shape == (2, 10)
    assert model.intercept_.shape == (2,)
    np.testing.assert_allclose(StructuredRegressor(alpha=0.1).fit(X, y).coef_, model.coef_[0], atol=1e-6)
    assert StructuredRegressor().fit(X, y[:, None]).predict(X).shape == (442, 1)


class Joint(fl.L1):
    joint = True


@pytest.mark.parametrize(
    ("penalty", "groups"),
    [
        (fl.GroupL2([[0, 1], [2, 3]]), 6),  # of features: for each output
        (fl.GroupL2([[0, 4, 8], [1, 2, 3, 5]]), 2),  # numbers beyond the features: of all coefficients
    ],
    ids=["apart", "joint"],
)
def test_groups_apply_where_they_fit(penalty, groups):
    blocks = fl.Problem(np.eye(5, 4), np.eye(5, 3), loss="squared", penalty=for_outputs(penalty, 3, 4)).blocks
    assert sum(len(block.function.groups) for block in blocks) == groups


def test_penalties_on_several_outputs():
    p, outputs = 4, 3

    def value(penalty, coef):
        problem = fl.Problem(np.eye(5, p), np.eye(5, outputs), loss="squared", penalty=for_outputs(penalty, outputs, p))
        return problem.penalty_value(problem.map @ np.ravel(coef))

    coef = np.arange(12.0).reshape(outputs, p) - 5
    l1, tv = np.abs(coef).sum(), np.abs(np.diff(coef, axis=1)).sum()
    assert value(None, coef) == value(fl.L1(), coef) == value(Joint(np.ones(12)), coef) == l1
    assert value(fl.L1([1, 0, 0, 0]), coef) == np.abs(coef[:, 0]).sum()
    assert value(fl.L1() @ fl.Difference(p), coef) == value(fl.FusedLasso(l1_ratio=0), coef) == tv
    trace = np.linalg.svd(coef, compute_uv=False).sum()
    columns = np.linalg.norm(coef, axis=0).sum()
    assert value(fl.TraceNorm((outputs, p)), coef) == pytest.approx(trace)
    assert value(fl.MultiTaskLowRank(), coef) == pytest.approx(trace)
    assert value(fl.MultiTaskLasso(), coef) == pytest.approx(columns)
    # each part of a sum for itself
    assert value(fl.L1() + 2 * fl.MultiTaskLasso() + fl.Ridge(), coef) == pytest.approx(
        l1 + 2 * columns + 0.5 * np.sum(coef**2)
    )
    with pytest.raises(ValueError, match="has weights for 7 coordinates"):
        for_outputs(fl.L1(np.ones(7)), outputs, p)


def tasks():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6))
    where = rng.choice(["north", "south", "west"], 200)
    W = {"north": [1, 0, 0, 0, 0, 0], "south": [1, -1, 0, 0, 0, 0], "west": [2, 1, 0, 0, 0, 0]}
    y = np.array([row @ W[name] for row, name in zip(X, where, strict=True)]) + 0.3 * rng.standard_normal(200)
    return X, y, where


def test_tasks_have_coefficients_of_their_own():
    X, y, where = tasks()
    model = StructuredRegressor(alpha=0.05).fit(X, y, task=where)
    assert model.tasks_.tolist() == ["north", "south", "west"]
    assert model.coef_.shape == (3, 6)
    for k, name in enumerate(model.tasks_):
        rows = where == name
        alone = linear_model.Lasso(alpha=0.05 * 200 / rows.sum(), tol=1e-12).fit(X[rows], y[rows])
        np.testing.assert_allclose(model.coef_[k], alone.coef_, atol=1e-6)
        np.testing.assert_allclose(model.predict(X[rows], task=where[rows]), alone.predict(X[rows]), atol=1e-6)
    assert model.score(X, y, task=where) > 0.8
    joint = StructuredRegressor(alpha=0.1, penalty=fl.MultiTaskLasso()).fit(X, y, task=where)
    zero = joint.coef_ == 0
    np.testing.assert_array_equal(zero.any(axis=0), zero.all(axis=0))
    assert zero.any()
    with pytest.raises(ValueError, match="give the task of every row"):
        model.predict(X)
    with pytest.raises(ValueError, match="task 'east' was not among"):
        model.predict(X[:1], task=["east"])
    with pytest.raises(ValueError, match=r"task has shape \(3,\)"):
        model.fit(X, y, task=[1, 2, 3])
    model.fit(X, y)
    assert not hasattr(model, "tasks_")
    with pytest.raises(ValueError, match="fitted without tasks"):
        model.predict(X, task=where)


def test_tasks_of_a_classifier():
    X, y, where = tasks()
    model = StructuredClassifier(alpha=0.01).fit(X, y > 0, task=where)
    assert model.decision_function(X, task=where).shape == (200,)
    assert model.predict_proba(X, task=where).shape == (200, 2)
    assert model.score(X, y > 0, task=where) > 0.85
    cv = StructuredClassifierCV(penalty=fl.MultiTaskLasso(), **QUICK).fit(X, y > 0, task=where)
    assert cv.score(X, y > 0, task=where) > 0.85
    with pytest.raises(ValueError, match="two classes"):
        model.fit(X, np.arange(200) % 3, task=where)
    with pytest.raises(ValueError, match="scoring does not go with tasks"):
        StructuredClassifierCV(scoring="accuracy", **QUICK).fit(X, y > 0, task=where)


# -- probabilities ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["smoothed-hinge", "hinge", "squared-hinge", fl.SmoothedHinge(0.5)], ids=str)
def test_probabilities_need_a_likelihood(loss):
    X, y = cancer()
    model = StructuredClassifier(loss, tol=1e-3).fit(X, y)
    assert model.score(X, y) > 0.85
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError):
        model.predict_proba(X)


def test_probabilities_are_sound():
    X, y = iris()
    model = StructuredClassifier(fl.Logistic(), alpha=0.001).fit(X, y)
    assert log_loss(y, model.predict_proba(X)) < 0.4
    far = model.predict_proba(1e6 * X[:3])
    assert np.isfinite(far).all()
    np.testing.assert_allclose(far.sum(axis=1), 1.0)


# -- convergence, warm starts, callbacks --------------------------------------------------------------


@one_alpha
def test_stopping_early_warns_with_the_gap(model):
    X, y = data_for(model)
    stopped = clone(model).set_params(max_epochs=2, tol=1e-9)
    with pytest.warns(
        ConvergenceWarning, match=r"epoch limit, 2 epochs.*relative gap of .* raise max_epochs"
    ) as caught:
        stopped.fit(X, y)
    assert caught[0].filename == __file__
    assert stopped.status_ is fl.Status.EPOCH_LIMIT
    assert f"{stopped.result_.relative_gap:.1e}" in str(caught[0].message)
    assert stopped.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="raise the time limit"):
        clone(model).set_params(tol=1e-14, max_epochs=10**8, solver_options={"time_limit": 0.0}).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clone(model).fit(X, y).gap_ < 1e-6


@pytest.mark.filterwarnings("ignore:StructuredClassifierCV stopped")
def test_cross_validation_warns_of_folds():
    X, y = cancer()
    model = StructuredClassifierCV("hinge", max_epochs=3, n_alphas=3, cv=2)
    with pytest.warns(ConvergenceWarning, match=r"fits of the folds stopped before tol .* raise max_epochs"):
        model.fit(X, y)


@one_alpha
def test_warm_start(model):
    X, y = data_for(model)
    X = np.tile(X, (12, 1))  # too large for polishing
    y = np.tile(y, 12)
    options = {
        "solver_options": {"check_every": 1, "newton": False},
        "alpha": 0.01,
    }
    cold = clone(model).set_params(**options).fit(X, y)
    assert not cold.result_.state
    warm = clone(model).set_params(warm_start=True, **options).fit(X, y)
    assert warm.n_iter_ == cold.n_iter_
    warm.set_params(alpha=0.0095).fit(X, y)
    assert warm.status_ is fl.Status.CONVERGED
    assert warm.n_iter_ < clone(model).set_params(**options).set_params(alpha=0.0095).fit(X, y).n_iter_
    warm.fit(X[:300], y[:300])  # other rows: from the beginning
    np.testing.assert_allclose(warm.coef_, clone(model).set_params(alpha=0.0095).fit(X[:300], y[:300]).coef_, atol=1e-3)


def test_warm_start_with_other_labels():
    X, y = cancer()
    model = StructuredClassifier(warm_start=True).fit(X, y)
    np.testing.assert_allclose(model.fit(X, 1 - y).coef_, -StructuredClassifier().fit(X, y).coef_, atol=1e-6)


def test_an_interrupt_leaves_the_best_answer(monkeypatch):
    import dataclasses

    def interrupted(problem, **options):
        return dataclasses.replace(fl.solve(problem), status=fl.Status.INTERRUPTED)

    monkeypatch.setattr(_estimator_base, "solve", interrupted)
    X, y = cancer()
    model = StructuredClassifier()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ is fl.Status.INTERRUPTED
    assert model.score(X, y) > 0.9


class Recorder:
    """A callback of scikit-learn's protocol."""

    def __init__(self, stop_after=10**9):
        self.events, self.scores, self.stop_after = [], [], stop_after

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None, metadata=None):
        self.events.append(context.task_name)
        self.scores.append(fitted_estimator.score(X, y))
        return len(self.scores) >= self.stop_after


@by_name
def test_scikit_learn_callbacks(model):
    pytest.importorskip("sklearn.callback")
    X, y = data_for(model)
    callback = Recorder()
    model = clone(model).set_callbacks(callback).fit(X, y)
    step = "alpha" if hasattr(model, "alphas_") else "certificate"
    assert callback.events[0] == "setup"
    assert callback.events[-2:] == ["fit", "teardown"]
    assert set(callback.events[1:-2]) == {step}
    assert callback.scores[-1] == model.score(X, y)
    stopped = clone(model).set_callbacks(Recorder(stop_after=1)).fit(X, y)
    assert stopped.score(X, y) <= callback.scores[-1]
    if step == "certificate":
        assert stopped.status_ is fl.Status.CALLBACK


def test_callbacks_reach_through_a_search():
    pytest.importorskip("sklearn.callback")
    from sklearn.callback import ScoringMonitor

    X, y = cancer()
    monitor = ScoringMonitor(scoring="accuracy")
    StructuredClassifier().set_callbacks(monitor).fit(X, y)
    assert monitor.get_logs().data[0]["task_name"] in ("fit", "certificate")
    pipe = make_pipeline(StandardScaler(), StructuredClassifier())
    GridSearchCV(pipe, {"structuredclassifier__alpha": [0.1, 0.01]}, cv=2).fit(X, y)


# -- cross-validation ---------------------------------------------------------------------------------


def test_cross_validated_models_pick_a_sensible_alpha():
    X, y = cancer()
    model = StructuredClassifierCV(n_alphas=15).fit(X, y)
    assert model.alpha_ in model.alphas_
    assert model.alphas_[0] > model.alpha_
    assert model.score(X, y) > 0.9
    assert np.all(model.cv_results_.relative_gaps <= 1e-5)  # as a choice needs it
    assert np.all(model.path_.relative_gaps <= 1e-6)
    assert model.alpha_ in model.path_.alphas
    assert model.path_.alphas[-1] == model.alphas_[-1]
    simple = clone(model).set_params(selection="1se").fit(X, y)
    assert simple.alpha_ > model.alpha_
    assert np.count_nonzero(simple.coef_) <= np.count_nonzero(model.coef_)
    plain = StructuredClassifier(alpha=model.alpha_).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)


def test_cross_validation_agrees_with_lasso_cv():
    X, y = diabetes()
    ours = StructuredRegressorCV(n_alphas=20).fit(X, y)
    largest = np.abs(X.T @ (y - y.mean())).max() / len(y)
    alphas = np.geomspace(largest, 1e-3 * largest, 20)
    theirs = linear_model.LassoCV(alphas=alphas, cv=5, tol=1e-10, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(ours.alphas_, theirs.alphas_, rtol=1e-9)
    np.testing.assert_allclose(-2 * ours.cv_results_.scores, theirs.mse_path_, rtol=1e-4)
    assert ours.alpha_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_scorers_and_splitters():
    X, y = cancer()
    by_accuracy = StructuredClassifierCV(n_alphas=6, scoring="accuracy", n_jobs=2).fit(X, y)
    assert np.all((by_accuracy.cv_results_.scores >= 0) & (by_accuracy.cv_results_.scores <= 1))
    own = StructuredClassifierCV(n_alphas=6, scoring=make_scorer(accuracy_score)).fit(X, y)
    np.testing.assert_array_equal(own.cv_results_.scores, by_accuracy.cv_results_.scores)
    assert own.cv_results_.mean[own.cv_results_.select()] > 0.9
    groups = np.arange(len(y)) % 7
    splits = list(GroupKFold(7).split(X, y, groups))
    weighted = StructuredClassifierCV(n_alphas=3, cv=splits, scoring="accuracy")
    assert weighted.fit(X, y, sample_weight=1.0 + y).cv_results_.scores.shape == (3, 7)
    X, y = iris()
    assert cross_val_score(StructuredClassifierCV(penalty=fl.MultiTaskLasso(), **QUICK), X, y, cv=3).mean() > 0.9


# -- structure ----------------------------------------------------------------------------------------


def test_structure_by_name():
    X, y = diabetes()
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    groups = {"first": [0, 1, 2, 3], "second": [4, 5, 6], "third": [7, 8, 9]}
    model = StructuredRegressor(penalty=fl.GroupLasso(groups) + 0.01 * fl.Ridge(), alpha=0.2).fit(frame, y)
    active = model.active_groups()
    assert set(active.index) < set(groups)
    live = {name for name, members in groups.items() if model.coef_[members].any()}
    assert set(active.index) == live
    pairs = {f"pair {k}": [2 * k, 2 * k + 1] for k in range(5)}
    assert set(model.active_groups(pairs).index) <= set(pairs)
    line = StructuredRegressor(penalty=0.1 * fl.L1() + fl.L1() @ fl.Difference(10), alpha=0.1).fit(frame, y)
    parts = line.segments()
    assert parts["size"].sum() == 10
    assert len(parts) == np.count_nonzero(np.diff(line.coef_)) + 1
    assert [name for names in parts["features"] for name in names] == list(frame.columns)
    edges = [(0, 1), (1, 2), (4, 5)]
    for penalty in (fl.L1() @ fl.Incidence(edges, 10), fl.GraphFused(fl.Graph(edges, 10))):
        fused = StructuredRegressor(penalty=penalty, alpha=0.3).fit(frame, y)
        assert fused.segments()["size"].max() > 1
    assert StructuredRegressor(penalty=fl.FusedLasso(), alpha=0.1).fit(X, y).segments()["size"].sum() == 10
    image = StructuredRegressor(penalty=fl.TotalVariation((2, 5)), alpha=0.1).fit(X, y)
    assert image.segments()["size"].sum() == 10
    assert len(line.segments("line")) == len(parts)
    assert len(line.support()) == np.count_nonzero(line.coef_)


def test_structure_beside_covariates_without_penalty():
    """Groups and graphs inside Unpenalised speak of the other features, the answer of all."""
    X, y = diabetes()
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    groups = fl.GroupLasso({"first": [0, 1, 2, 3], "second": [4, 5, 6, 7]}, weights={"second": 100.0})
    model = StructuredRegressor(penalty=fl.Unpenalised(groups, ["a", "j"], names=frame), alpha=0.1).fit(frame, y)
    active = model.active_groups()
    assert active.index.tolist() == ["first"]  # features 1 to 4 of the frame
    assert not model.coef_[5:9].any()
    assert active.loc["first", "norm"] == pytest.approx(np.linalg.norm(model.coef_[1:5]))
    assert {"a", "j"} <= set(model.support()["feature"])
    line = StructuredRegressor(penalty=fl.Unpenalised(fl.TrendFilter(1), [4]), alpha=0.2).fit(frame, y)
    assert len(line.segments()) == np.count_nonzero(np.diff(np.delete(line.coef_, 4))) + 2
    graph = fl.Unpenalised(fl.GraphFused([(0, 1), (7, 8)], l1_ratio=0), [1])
    fused = StructuredRegressor(penalty=graph, alpha=5.0).fit(frame, y)
    assert ["a", "c"] in fused.segments()["features"].tolist()
    assert ["i", "j"] in fused.segments()["features"].tolist()


def test_unpenalised_features_are_named_as_in_the_data_frame():
    X, y = diabetes()
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    penalty = fl.Unpenalised(fl.GroupLasso([[0, 1, 2], [3, 4]]), ["b", "j"]) + 0.1 * fl.Ridge()
    by_name = StructuredRegressor(penalty=penalty, alpha=0.3).fit(frame, y)
    by_number = StructuredRegressor(
        penalty=fl.Unpenalised(fl.GroupLasso([[0, 1, 2], [3, 4]]), [1, 9]) + 0.1 * fl.Ridge()
    )
    np.testing.assert_array_equal(by_name.coef_, by_number.set_params(alpha=0.3).fit(frame, y).coef_)
    assert by_name.active_groups().equals(by_number.active_groups())
    assert penalty.parts[0].names is None  # the user's object is left alone
    with pytest.raises(ValueError, match="features holds 'b'; names need names="):
        by_name.fit(X, y)
    with pytest.raises(ValueError, match="features holds 'z', which is not among the 10 names"):
        StructuredRegressor(penalty=fl.Unpenalised(fl.L1(), ["a", "z"])).fit(frame, y)


@pytest.mark.parametrize(
    "penalty",
    [
        fl.GroupLasso(fl.Groups([[0, 1], [2, 3]], features=list("abdc"))),
        0.5 * fl.L1() + 2.0 * fl.GraphFused(fl.Graph([(0, 1)], features=list("abdc"))),
        fl.TreeGroups(fl.Tree({"a": "x", "b": "x", "c": "y", "d": "y"}, features=list("abdc"))),
        fl.Unpenalised(fl.GroupLasso(fl.Groups([[0, 1]], features=list("adc"))), ["b"]),
        fl.PerOutput(fl.GroupLasso(fl.Groups([[0, 1]], features=list("abdc")))),
    ],
    ids=["groups", "graph", "tree", "some features", "each output"],
)
def test_structure_with_the_columns_in_another_order_is_refused(penalty):
    """It would be applied to the wrong features in silence."""
    X, y = diabetes()
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    with pytest.raises(
        ValueError, match=r"knows feature \d as 'd', but that column of X is 'c'; make it with features=X"
    ):
        StructuredRegressor(penalty=penalty).fit(frame, y)
    model = StructuredRegressor(penalty=penalty)
    assert model.fit(frame[["a", "b", "d", "c"]], y).status_ is fl.Status.CONVERGED


def test_segments_of_other_penalties():
    X, y = diabetes()
    rising = StructuredRegressor(penalty=fl.Monotone(), alpha=1.0).fit(X, y)
    assert len(rising.segments()) == np.unique(rising.coef_).size < 10
    sizes = StructuredRegressor(penalty=fl.Oscar(b=1.0), alpha=0.01).fit(X, y)
    assert sizes.segments()["size"].tolist() == sizes.segments("sizes")["size"].tolist()
    assert len(sizes.segments()) == np.unique(np.abs(sizes.coef_)).size < 10


def test_names_come_from_the_structure_without_a_data_frame():
    X, y = diabetes()
    groups = fl.Groups.from_columns([f"{kind}_{k}" for kind in ("gene", "protein") for k in range(5)])
    model = StructuredRegressor(penalty=fl.GroupLasso(groups), alpha=0.01).fit(X, y)
    assert set(model.support()["feature"]) <= set(groups.features)
    graph = fl.Graph([("a", "b")], features=list("abcdefghij"))
    assert StructuredRegressor(penalty=fl.GraphFused(graph)).fit(X, y).support()["feature"].isin(graph.features).all()


def test_structure_of_several_outputs():
    X, y = iris()
    joint = StructuredClassifier(penalty=fl.MultiTaskLasso(groups=[[0, 1], [2, 3]]), alpha=0.1).fit(X, y)
    assert len(joint.active_groups()) <= 2
    beyond = StructuredClassifier(penalty=fl.GroupL2([[0, 4, 8], [3, 7, 11]]) + fl.Ridge(), alpha=0.01).fit(X, y)
    assert len(beyond.active_groups()) <= 2
    named = StructuredClassifier(alpha=0.001).fit(X, np.array(["setosa", "versicolor", "virginica"])[y])
    assert set(named.support()["output"]) == {"setosa", "versicolor", "virginica"}
    assert set(named.segments("line")["output"]) == set(named.classes_)
    frame = pd.DataFrame(X, columns=list("abcd"))
    assert set(StructuredClassifier(penalty=fl.MultiTaskLasso()).fit(frame, y).active_groups().index) <= set("abcd")
    X, y, where = tasks()
    assert set(StructuredRegressor().fit(X, y, task=where).support()["output"]) == {"north", "south", "west"}
    X, y = iris()
    with pytest.raises(ValueError, match="has no groups"):
        StructuredClassifier().fit(X, y).active_groups()
    with pytest.raises(ValueError, match="joins no features"):
        StructuredClassifier().fit(X, y).segments()
    with pytest.raises(NotFittedError):
        StructuredClassifier().support()


# -- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (StructuredClassifier("squared"), "loss is .*Squared.* for classification: smoothed-hinge"),
        (StructuredRegressor("logistic"), "Binomial takes proportions from 0 to 1"),
        (StructuredRegressor("nonsense"), "loss is 'nonsense'"),
        (StructuredRegressor(penalty="l1"), "penalty is 'l1'"),
        (StructuredRegressor(penalty=fl.L1(np.ones(3))), "weights has 3|has weights for 3"),
        (StructuredRegressor(penalty=fl.GroupL2([[0, 99]])), "99"),
        (StructuredRegressor(fit_intercept="no"), "fit_intercept is 'no'"),
        (StructuredRegressor(alpha=-1), "alpha is -1"),
        (StructuredRegressor(alpha="a"), "alpha is 'a'"),
        (StructuredRegressor(tol=-1), "tol is -1"),
        (StructuredRegressor(max_epochs=1.5), "max_epochs is 1.5"),
        (StructuredRegressor(solver_options={"nonsense": 1}), "no option 'nonsense'"),
        (StructuredRegressorCV(selection="best"), "selection is 'best'"),
        (StructuredRegressorCV(alphas=[-1.0]), r"alphas\[0\] is -1"),
        (StructuredRegressorCV(cv=1), "cv|fold"),
        (StructuredRegressorCV(scoring="nonsense"), "nonsense"),
    ],
)
def test_bad_parameters(model, message):
    X, y = diabetes()
    if hasattr(model, "decision_function"):
        y = y > 0
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_bad_targets_and_weights():
    X, y = cancer()
    with pytest.raises(ValueError, match="one class only"):
        StructuredClassifier().fit(X, np.zeros(len(y)))
    with pytest.raises(ValueError, match="one class only of positive weight"):
        StructuredClassifier().fit(X, y, sample_weight=y)
    three = np.arange(len(y)) % 3
    with pytest.raises(ValueError, match="class 2 have weight 0"):
        StructuredClassifier().fit(X, three, sample_weight=(three < 2).astype(float))
    with pytest.raises(ValueError, match="Poisson takes counts"):
        StructuredRegressor("poisson").fit(X, -1.0 - y)


def test_verbose_shows_progress(capsys):
    X, y = diabetes()
    StructuredRegressor(verbose=True).fit(X, y)
    assert "relative gap" in capsys.readouterr().err
    StructuredRegressorCV(verbose=True, **QUICK).fit(X, y)
    assert "fits" in capsys.readouterr().err


def test_representation():
    buffer = io.StringIO()
    print(StructuredClassifier(penalty=fl.L1() + 0.1 * fl.Ridge(), alpha=0.5), file=buffer)
    assert "StructuredClassifier(alpha=0.5, penalty=" in buffer.getvalue()
    assert StructuredClassifier()._repr_html_()


# -- mistakes of somebody who begins ----------------------------------------------------------------


def _gap(X):
    X = X.copy()
    X.iloc[3, 1] = np.nan
    return X


WORDS = np.array(["good", "bad", "bad"] * 10)


@pytest.mark.parametrize(
    "mistake, message",
    [
        (lambda X, y: StructuredRegressor().fit(_gap(X), y), r"column 'b' has no value in row 3 .*SimpleImputer"),
        (lambda X, y: StructuredRegressor().fit(_gap(X).to_numpy(), y), "contains NaN: column 1 has no value in row 3"),
        (lambda X, y: StructuredClassifier().fit(_gap(X), y > 0), "column 'b' has no value in row 3"),
        (lambda X, y: StructuredClassifier().fit(X, np.full(len(y), "p")), "y holds one class only, 'p'"),
        (lambda X, y: StructuredRegressor().fit(X, WORDS), "y holds words, such as 'good', .*StructuredClassifier"),
        (lambda X, y: StructuredRegressorCV().fit(X, list(WORDS)), "y holds words, .*StructuredClassifierCV"),
        (lambda X, y: fl.Problem(X, WORDS, loss="logistic"), "Logistic takes numbers .*StructuredClassifier takes"),
        (lambda X, y: StructuredRegressor(alpha=0.1, alpha_ratio=0.5).fit(X, y), "alpha is 0.1 and alpha_ratio is 0.5"),
        (
            lambda X, y: StructuredClassifier(alpha=1, alpha_ratio=1.0).fit(X, y > 0),
            "alpha is 1 and alpha_ratio is 1.0",
        ),
        (lambda X, y: StructuredRegressor(penalty="l1").fit(X, y), r"did you mean fenchel.L1\(\)\? .*GroupLasso\(\)"),
        (lambda X, y: StructuredRegressorCV(penalty="group_lasso").fit(X, y), r"did you mean fenchel.GroupLasso\(\)"),
        (lambda X, y: StructuredRegressor(penalty="?").fit(X, y), r"there are fenchel.Lasso\(\), .*fenchel.L1\(\)"),
        (lambda X, y: fl.Problem(X, y, loss="squared", penalty="fl.L1()"), r"did you mean fenchel.L1\(\)"),
        (lambda X, y: StructuredRegressor(penalty=fl.L1).fit(X, y), r"not its class: fenchel.L1\(\)"),
        (lambda X, y: fl.path(X, y), "loss is missing; give loss='squared'"),
        (lambda X, y: fl.adaptive(fl.Lasso(), StructuredRegressor()), "not fitted yet"),
        (lambda X, y: StructuredRegressorCV(scoring="roc").fit(X, y), "scoring is 'roc'; did you mean 'roc_auc'"),
        (lambda X, y: StructuredRegressorCV(cv=GroupKFold(3)).fit(X, y), r"cv is GroupKFold.*fit\(X, y, groups="),
    ],
)
def test_a_mistake_is_told_in_one_line_with_the_way_out(mistake, message):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.random.default_rng(0).standard_normal((30, 3)), columns=list("abc"))
    with pytest.raises(ValueError, match=message) as caught:
        mistake(X, X["a"].to_numpy())
    assert "\n" not in str(caught.value)


def test_numbers_in_strings_are_numbers():
    """As scikit-learn has it: a target that was read as text."""
    X, y = np.eye(6), np.arange(6.0)
    both = [StructuredRegressor(alpha=0.1).fit(X, target).coef_ for target in (y, y.astype(str).astype(object))]
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize(
    "name, message", [("InverseGaussian", "not convex .*take Gamma"), ("Laso", "did you mean 'Lasso'"), ("qqqq", "'$")]
)
def test_a_name_that_does_not_exist_is_told_why(name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(fl, name)
