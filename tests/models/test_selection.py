"""Paths and cross-validation as statisticians know them: standardised columns, grids, groups, refits, limits."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel as fl
from fenchel.models.relaxed import refit, structure_basis


def patients(n=90, p=12, seed=0):
    """Rows in groups, columns in raw units."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, p)) + rng.uniform(-1, 1, p)) * 10.0 ** rng.integers(-2, 3, p)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    y = scaled[:, 0] - 2 * scaled[:, 1] + 0.5 * rng.standard_normal(n)
    return X, y, np.repeat(np.arange(n // 3), 3)


# -- groups of rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [fl.StructuredRegressorCV, fl.StructuredClassifierCV])
def test_groups_of_rows_stay_together(kind):
    X, y, who = patients()
    y = y if kind is fl.StructuredRegressorCV else y > 0
    X = StandardScaler().fit_transform(X)
    model = kind(cv=GroupKFold(3), n_alphas=4, eps=0.1).fit(X, y, groups=who)
    folds = list(GroupKFold(3).split(X, y, who))
    same = clone(model).set_params(cv=folds).fit(X, y)
    np.testing.assert_array_equal(model.cv_results_.scores, same.cv_results_.scores)
    with pytest.raises(ValueError, match="groups"):
        kind(cv=GroupKFold(3)).fit(X, y)
    with pytest.raises(ValueError, match="groups has 3 entries; it must hold one for each of the 90 rows"):
        kind(cv=GroupKFold(3)).fit(X, y, groups=[1, 2, 3])
    found = fl.cross_validate_path(
        X, y if y.dtype == float else 2.0 * y - 1, loss="squared" if y.dtype == float else "logistic",
        penalty=fl.L1(), fit_intercept=True, cv=GroupKFold(3), groups=who, alphas=model.alphas_,
    )  # fmt: skip
    np.testing.assert_allclose(found.scores, same.cv_results_.scores, rtol=1e-6)


def test_groups_are_routed():
    X, y, who = patients()
    with sklearn.config_context(enable_metadata_routing=True):
        inner = fl.StructuredRegressorCV(cv=GroupKFold(3), n_alphas=4, eps=0.1).set_fit_request(groups=True)
        pipe = make_pipeline(StandardScaler(), inner)
        found = cross_validate(pipe, X, y, cv=GroupKFold(3), params={"groups": who}, error_score="raise")
    assert found["test_score"].min() > 0.5


# -- standardised columns ---------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_standardize_is_a_penalty_on_columns_of_unit_deviation(intercept, weighted):
    X, y, _ = patients()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y)) if weighted else None
    scaler = StandardScaler(with_mean=intercept).fit(X, sample_weight=weight)
    theirs = Lasso(alpha=0.1, fit_intercept=intercept, tol=1e-12, max_iter=100_000)
    theirs.fit(scaler.transform(X), y, sample_weight=weight)
    model = fl.StructuredRegressor(alpha=0.1, standardize=True, fit_intercept=intercept, tol=1e-12)
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_ * scaler.scale_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(model.predict(X), theirs.predict(scaler.transform(X)), atol=1e-5)
    np.testing.assert_allclose(model.scale_, scaler.scale_)
    for other in (sp.csr_array(X), sp.csc_array(X), np.asfortranarray(X), pd.DataFrame(X)):
        again = clone(model).fit(other, y, sample_weight=weight)
        np.testing.assert_allclose(again.coef_ * scaler.scale_, theirs.coef_, atol=1e-5)
        np.testing.assert_allclose(again.predict(other), model.predict(X), atol=1e-5)


def test_ties_are_those_that_the_penalty_saw():
    X, y, _ = patients()
    model = fl.StructuredRegressor(penalty=fl.FusedLasso(0.1), alpha=0.5, standardize=True).fit(X, y)
    assert model.segments()["size"].max() > 1
    assert len(np.unique(model.coef_)) > len(np.unique((model.coef_ * model.scale_).round(9)))


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_are_standardised_within_folds(kind):
    X, y, _ = patients()
    folds = list(KFold(3).split(X))
    model = fl.StructuredRegressorCV(alphas=[1.0, 0.1, 0.01], cv=folds, standardize=True, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(kind(X), y)
    for k, (train, test) in enumerate(folds):
        for a, alpha in enumerate(model.alphas_):
            part = fl.StructuredRegressor(alpha=alpha, standardize=True, tol=1e-9).fit(kind(X)[train], y[train])
            loss = 0.5 * np.mean((part.predict(kind(X)[test]) - y[test]) ** 2)
            assert -model.cv_results_.scores[a, k] == pytest.approx(loss, rel=2e-3)
    by_function = fl.cross_validate_path(
        kind(X), y, loss="squared", penalty=fl.L1(), fit_intercept=True, cv=folds, alphas=model.alphas_,
        standardize=True,
    )  # fmt: skip
    np.testing.assert_allclose(by_function.scores, model.cv_results_.scores, rtol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scored = clone(model).set_params(scoring="neg_mean_squared_error").fit(kind(X), y)
    np.testing.assert_allclose(scored.cv_results_.scores, 2 * model.cv_results_.scores, rtol=1e-6)


def test_alpha_ratio_is_a_share_of_the_largest_useful_alpha():
    X, y, _ = patients()
    X = StandardScaler().fit_transform(X)
    largest = np.abs(X.T @ (y - y.mean())).max() / len(y)
    assert not fl.StructuredRegressor(alpha_ratio=1.0).fit(X, y).coef_.any()
    model = fl.StructuredRegressor(alpha_ratio=0.1).fit(X, y)
    assert model.alpha_ == pytest.approx(0.1 * largest, rel=1e-9)
    np.testing.assert_allclose(model.coef_, fl.StructuredRegressor(alpha=0.1 * largest).fit(X, y).coef_, atol=1e-6)
    with pytest.raises(ValueError, match=r"alpha_ratio is 1.5; it must be"):
        fl.StructuredRegressor(alpha_ratio=1.5).fit(X, y)
    with pytest.raises(ValueError, match="has none; give alpha instead"):
        fl.StructuredRegressor(alpha_ratio=0.5, penalty=fl.Ridge()).fit(X, y)


# -- wrong types ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"alpha": "0.1"}, "alpha is '0.1'; it must be a number"),
        ({"alpha": True}, "alpha is True; it must be a number"),
        ({"tol": "small"}, "tol is 'small'"),
        ({"fit_intercept": 1}, "fit_intercept is 1; it must be True or False"),
        ({"standardize": "yes"}, "standardize is 'yes'"),
        ({"warm_start": None}, "warm_start is None"),
        ({"solver_options": "fast"}, "solver_options is 'fast'; it must be a dict"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"verbose": "loud"}, "verbose is 'loud'"),
        ({"relax": 2.0}, "relax is 2.0; it must be the share of the refit"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_parameters_of_the_wrong_type_are_refused(params, words):
    X, y, _ = patients()
    with pytest.raises(ValueError, match=words):
        fl.StructuredRegressor(**params).fit(X, y)


def test_a_problem_refuses_an_alpha_that_is_no_number():
    X, y, _ = patients()
    for alpha in ("0.1", None, [0.1]):
        with pytest.raises(ValueError, match=r"alpha is .*; it must be a number"):
            fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=alpha)
    assert fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=np.float32(0.5)).alpha == 0.5


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (lambda X, y: fl.StructuredRegressor().fit(X, y[:50]), r"y has 50 entries, but X has \d+ rows"),
        (lambda X, y: fl.StructuredClassifier().fit(X, y[:50] > 0), r"y has 50 entries, but X has \d+ rows"),
        (lambda X, y: fl.StructuredRegressor().fit(X, np.r_[np.nan, y[1:]]), "y contains NaN: entry 0 has no value"),
        (lambda X, y: fl.StructuredRegressor().fit(pd.DataFrame(X).assign(day=pd.Timestamp("2026-01-01")), y),
         "column 'day' of X holds dates or times"),
        (lambda X, y: fl.solve(pd.DataFrame(X), y), "problem is of type DataFrame; it must be a fenchel.Problem"),
        (lambda X, y: fl.StructuredRegressorCV(alphas=[]).fit(X, y), "alphas has .*; it must be a vector of .* one at"),
        (lambda X, y: fl.StructuredRegressorCV(penalty=fl.ElasticNet(), penalty_grid=[0.1]).fit(X, y),
         "penalty_grid holds 0.1; it must be a dict"),
        (lambda X, y: fl.StructuredRegressorCV(penalty=fl.ElasticNet(), penalty_grid={"l1_ratio": 0.5}).fit(X, y),
         r"penalty_grid\['l1_ratio'\] is 0.5; it must be a list of values"),
        (lambda X, y: fl.StabilitySelection(fl.StructuredRegressor).fit(X, y), "model is .*; it must be an estimator"),
        (lambda X, y: fl.StabilitySelection(3).fit(X, y), "model is 3; it must be an estimator of fenchel, e.g."),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_the_way_out(attempt, words):
    X, y, _ = patients()
    with pytest.raises(ValueError, match=words):
        attempt(X, y)


@pytest.mark.parametrize("penalty", [fl.TraceNorm, fl.LowRank])
def test_a_matrix_of_coefficients_is_outputs_by_features(penalty):
    rng = np.random.default_rng(0)
    X, task = rng.standard_normal((90, 4)), np.arange(90) % 3
    y = X @ rng.standard_normal(4) * (1 + task)
    right = fl.StructuredRegressor(penalty=penalty((3, 4)), alpha=0.1).fit(X, y, task=task)
    known = fl.StructuredRegressor(penalty=fl.MultiTaskLowRank(), alpha=0.1).fit(X, y, task=task)
    np.testing.assert_allclose(right.coef_, known.coef_, atol=1e-6)
    with pytest.raises(ValueError, match=r"the wrong way round.*\(3, 4\); fenchel.MultiTaskLowRank\(\)"):
        fl.StructuredRegressor(penalty=penalty((4, 3)), alpha=0.1).fit(X, y, task=task)


def test_names_of_scikit_learn_lead_to_the_estimators():
    for name in ("LassoCV", "LogisticRegression", "LinearRegression"):
        with pytest.raises(AttributeError, match="StructuredRegressor, StructuredClassifier"):
            getattr(fl, name)


def test_a_separator_that_separates_nothing_is_told():
    X, y, _ = patients()
    frame = pd.DataFrame(X).rename(columns=lambda k: f"a.{k}")
    with pytest.warns(UserWarning, match="by='_' separates no name of the .* columns"):
        fl.StructuredRegressor(penalty=fl.GroupLasso(by="_")).fit(frame, y)


def test_public_names_alone_are_listed():
    assert {name for name in dir(fl) if name.startswith("_")} == {"__version__"}
    assert set(fl.__all__) <= set(dir(fl)) and not {"Any", "importlib", "annotations"} & set(dir(fl))


def test_a_mask_is_a_grid():
    mask = np.random.default_rng(0).uniform(size=(30, 40)) > 0.5
    assert fl.Grid(mask).p == mask.sum() == fl.Grid(mask.shape, mask).p
    with pytest.raises(ValueError) as caught:
        fl.Grid(mask, mask)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss", "accuracy"])
def test_scorers_take_frames_without_a_word(scoring):
    X, y, _ = patients()
    frame = pd.DataFrame(StandardScaler().fit_transform(X)).add_prefix("x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "the (smallest|largest) alpha")
        fl.StructuredClassifierCV(scoring=scoring, alphas=[0.2, 0.05]).fit(frame, y > 0)


# -- the grid ---------------------------------------------------------------------------------------


def test_the_grid_ends_at_a_hundredth_with_more_features_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 30)), rng.standard_normal(20)
    wide = fl.path(X, y, loss="squared", penalty=fl.L1())
    assert wide.alphas[-1] == pytest.approx(1e-2 * wide.alphas[0])
    tall = fl.path(X[:, :10].copy(), y, loss="squared", penalty=fl.L1())
    assert tall.alphas[-1] == pytest.approx(1e-3 * tall.alphas[0])


@pytest.mark.parametrize("loss", ["squared", "logistic", "smoothed-hinge"])
def test_a_path_ends_where_nothing_more_is_explained(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 5))
    y = X[:, 0] + 0.3 * rng.standard_normal(60)
    y = y if loss == "squared" else np.sign(y)
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1(), fit_intercept=True)
    whole = fl.path(problem, n_alphas=40, eps=1e-5)
    short = fl.path(problem, n_alphas=40, eps=1e-5, early_stop=True)
    assert 5 < len(short) < len(whole)
    losses = [problem.mean_loss(problem.scores(problem.pack(r.coef, r.intercept))) for r in whole]
    left = losses[len(short) - 1] - min(losses)
    assert left < 1e-2 * (losses[0] - min(losses)), "what the rest of the path would have explained"


def test_the_best_alpha_at_the_edge_is_told():
    X, y, _ = patients()
    X = StandardScaler().fit_transform(X)
    with pytest.warns(UserWarning, match=r"the smallest alpha.*may be better still: lower eps"):
        fl.StructuredRegressorCV(n_alphas=3, eps=0.5).fit(X, y)
    with pytest.warns(UserWarning, match=r"the smallest alpha.*give smaller alphas"):
        fl.StructuredRegressorCV(alphas=[1.0, 0.9]).fit(X, y)
    noise = np.random.default_rng(0).standard_normal(len(y))
    with pytest.warns(UserWarning, match=r"the largest alpha.*give larger alphas"):
        fl.StructuredRegressorCV(alphas=[0.02, 0.01]).fit(X, noise)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fl.StructuredRegressorCV(n_alphas=30).fit(X, y)
    assert model.path_.alphas[-1] < model.alpha_ and len(model.path_) == len(model.alphas_)


# -- alpha and other parameters ---------------------------------------------------------------------


def test_parameters_of_the_penalty_are_searched_with_alpha():
    X, y, _ = patients()
    X = StandardScaler().fit_transform(X)
    grid = {"l1_ratio": [0.1, 0.5, 0.9]}
    alphas, folds = [0.5, 0.1, 0.02], list(KFold(3).split(X))
    model = fl.StructuredRegressorCV(penalty=fl.ElasticNet(), penalty_grid=grid, alphas=alphas, cv=folds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y)
    one = fl.StructuredRegressor(penalty=fl.ElasticNet())
    search = GridSearchCV(
        one, {"alpha": alphas, "penalty__l1_ratio": grid["l1_ratio"]}, cv=folds, scoring="neg_mean_squared_error"
    )
    search.fit(X, y)
    assert model.best_params_ == {"l1_ratio": search.best_params_["penalty__l1_ratio"]}
    assert model.alpha_ == search.best_params_["alpha"]
    assert model.penalty_.l1_ratio == model.best_params_["l1_ratio"] and model.penalty.l1_ratio == 0.5
    assert [one.params["l1_ratio"] for one in model.grid_results_] == grid["l1_ratio"]
    np.testing.assert_allclose(model.coef_, search.best_estimator_.coef_, atol=1e-5)
    with pytest.raises(ValueError, match="ElasticNet has no parameter 'ratio'"):
        clone(model).set_params(penalty_grid={"ratio": [1]}).fit(X, y)


# -- refits -----------------------------------------------------------------------------------------


def refit_problems():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 12))
    w = np.repeat([0.0, 1.0, -1.0], 4)
    y = X @ w + 0.3 * rng.standard_normal(80)
    groups = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    yield "lasso", fl.L1(), X, y, "squared"
    yield "groups", fl.GroupLasso(groups), X, y, "squared"
    yield "latent", fl.LatentGroupLasso([[0, 1, 2, 3, 4], [4, 5, 6, 7], [7, 8, 9, 10, 11]]), X, y, "squared"
    yield "sparse groups", fl.SparseGroupLasso(groups), X, y, "squared"
    yield "fused", fl.FusedLasso(0.3), X, y, "squared"
    yield "graph", fl.GraphFused([[0, 1], [4, 5], [5, 6], [8, 11]]), X, y, "squared"
    yield "oscar", fl.Oscar(), X, y, "squared"
    yield "trend", fl.TrendFilter(2), X, y, "squared"
    yield "rank", fl.LowRank((3, 4)), X, y, "squared"
    yield "limits", fl.L1() + fl.NonNegative(), X, y, "squared"
    yield "monotone", 0.01 * fl.L1() + fl.Monotone(), X, y, "squared"
    yield "logistic", fl.L1(), X, np.sign(y + 4 * rng.standard_normal(80)), "logistic"
    yield "outputs", fl.MultiTaskLasso(2), X, np.column_stack([y, -y]), "squared"


@pytest.mark.parametrize("case", refit_problems(), ids=lambda case: case[0])
def test_a_refit_has_the_structure_and_the_least_loss(case):
    _, penalty, X, y, loss = case
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=True)
    largest = problem.alpha_max()
    problem = problem.with_alpha(0.4 * largest if np.isfinite(largest) else 1.0)
    result = fl.solve(problem, tol=1e-9)
    w = problem.pack(result.coef, result.intercept)
    basis = structure_basis(problem, w)
    basis = basis.toarray() if sp.issparse(basis) else basis
    flat = np.ravel(result.coef)
    # the answer itself has the structure
    np.testing.assert_allclose(basis @ np.linalg.lstsq(basis, flat, rcond=None)[0], flat, atol=1e-7)
    coef, intercept, found = refit(problem, result)
    assert found.certified and basis.shape[1] < flat.size
    value = problem.mean_loss(problem.scores(problem.pack(coef, intercept)))
    assert value <= problem.mean_loss(problem.scores(w)) + 1e-9
    zero = flat == 0
    assert not np.ravel(coef)[zero].any()
    if loss == "squared" and y.ndim == 1 and case[0] not in ("limits", "monotone"):
        ols = LinearRegression().fit(X @ basis, y)
        np.testing.assert_allclose(X @ coef + intercept, ols.predict(X @ basis), atol=1e-3)
    if case[0] == "limits":
        assert coef.min() >= -1e-9
    if case[0] == "monotone":
        assert np.diff(coef).min() >= -1e-7
    if case[0] == "rank":
        ranks = [np.linalg.matrix_rank(np.reshape(one, (3, 4)), tol=1e-6) for one in (coef, result.coef)]
        assert ranks[0] <= ranks[1] < 3


def test_relax_mixes_the_refit_with_the_answer():
    X, y, _ = patients()
    X = StandardScaler().fit_transform(X)
    plain, half, whole = (fl.StructuredRegressor(alpha=0.3, relax=r, tol=1e-10).fit(X, y) for r in (0.0, 0.5, 1.0))
    some = np.flatnonzero(plain.coef_)
    ols = LinearRegression().fit(X[:, some], y)
    np.testing.assert_allclose(whole.coef_[some], ols.coef_, atol=1e-5)
    np.testing.assert_allclose(half.coef_, 0.5 * (plain.coef_ + whole.coef_), atol=1e-8)
    assert half.refit_.certified and half.gap_ == plain.gap_
    assert np.array_equal(np.flatnonzero(whole.coef_), some)


def test_relax_in_cross_validation_picks_the_share():
    """A strong penalty finds the few that count; the refit takes its shrinkage away."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 60))
    y = 3 * X[:, 0] - 3 * X[:, 1] + rng.standard_normal(100)
    model = fl.StructuredRegressorCV(relax=True, n_alphas=15).fit(X, y)
    assert model.relax_ > 0.4
    plain = fl.StructuredRegressorCV(n_alphas=15).fit(X, y)
    assert np.count_nonzero(model.coef_) < np.count_nonzero(plain.coef_)
    assert model.cv_results_.mean.max() > plain.cv_results_.mean.max()
    assert sorted({one.relax for one in model.grid_results_}) == [0.0, 0.25, 0.5, 0.75, 1.0]
    scored = fl.StructuredRegressorCV(relax=[0.0, 1.0], n_alphas=8, scoring="r2", standardize=True).fit(X, y)
    assert scored.relax_ == 1.0


def test_relax_says_so_where_there_is_no_refit():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 30)), rng.standard_normal(10)
    with pytest.warns(UserWarning, match="relax: there is no refit"):
        model = fl.StructuredRegressor(alpha=1e-4, relax=1.0).fit(X, y)
    assert model.relax_ == 0.0


def test_folds_are_fitted_no_tighter_than_a_choice_needs():
    """Held-out scores move by far less than their error; the answer itself is as tight as it was asked for."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 10))
    y = np.sign(X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(80))
    model = fl.StructuredClassifierCV("hinge", fl.L1(), n_alphas=8, cv=3, tol=1e-9).fit(X, y)
    assert 1e-8 < model.cv_results_.relative_gaps.max() <= 1e-5
    assert model.result_.relative_gap <= 1e-9 and model.path_.relative_gaps.max() <= 1e-9


# -- kinds of data ----------------------------------------------------------------------------------


def test_frames_lists_and_orders_are_taken_everywhere():
    X, y, _ = patients()
    X = StandardScaler().fit_transform(X)
    options = {"loss": "squared", "penalty": fl.L1()}
    times = np.column_stack([np.exp(-y), np.ones(len(y))])
    answers = []

    def part(X):  # of a larger array, as X_train = frame.to_numpy()[:300] is
        return np.hstack([X, X])[:, : X.shape[1]]

    for kind in (np.ascontiguousarray, np.asfortranarray, pd.DataFrame, np.ndarray.tolist, part):
        given, target = kind(X), y if kind is np.ascontiguousarray else pd.Series(y)
        weight = np.ones(len(y)) if kind is np.ascontiguousarray else pd.Series(np.ones(len(y)))
        stable = fl.StabilitySelection(fl.StructuredRegressor(alpha=0.2), n_pairs=2)
        answers.append(
            [
                fl.solve(fl.Problem(given, target, alpha=0.1, sample_weight=weight, offset=weight, **options)).coef,
                fl.path(given, target, n_alphas=3, **options).coefs[-1],
                fl.cross_validate_path(given, target, n_alphas=3, cv=3, **options).mean,
                stable.fit(given, target).feature_probabilities_,
                fl.CoxRegressor(alpha=0.1).fit(given, times).coef_,
            ]
        )
    for other in answers[1:]:
        for one, same in zip(answers[0], other, strict=True):
            np.testing.assert_allclose(np.ravel(one), np.ravel(same), atol=1e-5)


# -- limits -----------------------------------------------------------------------------------------


def slow():
    """A problem that takes its time: a loss with kinks, a penalty of all features, and a tolerance out of reach."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 40))
    return X, np.sign(X[:, 0] + rng.standard_normal(300))


def test_a_time_limit_holds_for_a_whole_path():
    X, y = slow()
    options = {"loss": "hinge", "penalty": fl.Oscar(), "fit_intercept": True, "n_alphas": 20, "tol": 1e-15}
    began = time.perf_counter()
    found = fl.path(X, y, time_limit=0.5, **options)
    assert time.perf_counter() - began < 20.0, "by far less than 20 points of half a second and what they overrun"
    assert fl.Status.TIME_LIMIT in {result.status for result in found}
    assert np.isfinite(found.relative_gaps).all() and len(found) >= 1
    assert sum(result.seconds for result in found) < 5.0
    same = fl.path(X, y, solver_options={"time_limit": 0.0}, **options)
    assert len(same) == 1
    with pytest.raises(ValueError, match="time_limit is 'long'"):
        fl.path(X, y, time_limit="long", **options)


def test_a_time_limit_holds_for_a_whole_cross_validation():
    X, y = slow()
    model = fl.StructuredClassifierCV(
        "hinge", fl.Oscar(), n_alphas=10, tol=1e-15, time_limit=0.6, penalty_grid={"low": [1.0, 0.5]}
    )
    model.set_params(penalty_grid=None)
    with pytest.warns(UserWarning, match="fits of the folds stopped before|stopped before tol"):
        model.fit(X, y)
    assert model.alpha_ in model.alphas_ and np.isfinite(model.gap_)
    assert np.isfinite(model.cv_results_.mean[list(model.alphas_).index(model.alpha_)])


def test_progress_is_one_line_at_the_end_of_a_pipe(capsys):
    X, y, _ = patients()
    fl.StructuredRegressorCV(verbose=True, n_alphas=6, cv=3).fit(StandardScaler().fit_transform(X), y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and "fits" in lines[0] and "left" not in lines[0]  # nothing is
    done, total = lines[0].split(" fits")[0].split(" of ")
    assert int(done) == int(total)


def test_a_limit_holds_for_several_classes_that_share_their_features():
    """However large the joint problem, there is an answer at the end of the time, with the gap that is proven."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 10)), rng.integers(0, 4, 60)
    model = fl.StructuredClassifierCV(penalty=fl.MultiTaskLasso(), alphas=[0.01, 0.005], cv=3, time_limit=0)
    with pytest.warns(UserWarning, match="3 of 3 fits of the folds stopped before|time limit.*a relative gap of"):
        model.fit(X, y)
    assert model.coef_.shape == (4, 10) and model.alpha_ in model.alphas_ and model.status_ is fl.Status.TIME_LIMIT
    assert 0 < model.gap_ < model.result_.primal and np.isfinite(model.cv_results_.mean).any()
