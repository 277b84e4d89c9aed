"""Offsets in the estimators: counts by exposure, from fit to predictions."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score

import fenchel as fl

N, P = 120, 4


@pytest.fixture(scope="module")
def claims():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    exposure = rng.uniform(0.1, 3.0, N)
    y = rng.poisson(exposure * np.exp(X @ [0.6, -0.4, 0.0, 0.0] - 0.3)).astype(float)
    return X, y, exposure


def test_counts_by_exposure_as_in_scikit_learn(claims):
    """Its rates, weighted by exposure, say the same; half the squares of the coefficients are its penalty."""
    X, y, exposure = claims
    theirs = PoissonRegressor(alpha=0.1, tol=1e-10, max_iter=1000).fit(X, y / exposure, sample_weight=exposure)
    ours = fl.StructuredRegressor("poisson", fl.Ridge(), alpha=0.1 * exposure.mean(), tol=1e-9)
    ours.fit(X, y, offset=np.log(exposure))
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
    assert np.allclose(ours.predict(X, offset=np.log(exposure)), exposure * theirs.predict(X), rtol=1e-4)
    assert np.allclose(ours.predict(X, offset=0.0), theirs.predict(X), rtol=1e-4)


def test_predictions_ask_for_the_offset(claims):
    X, y, exposure = claims
    model = fl.StructuredRegressor("poisson", alpha=0.05).fit(X, y, offset=np.log(exposure))
    for call in (model.predict, lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match="was fitted with an offset"):
            call(X)
    with pytest.raises(ValueError, match="offset has 3 entries, but X has 120 rows"):
        model.predict(X, offset=np.zeros(3))
    with pytest.raises(ValueError, match=r"offset\[2\] is -inf.*exposure of 0"), np.errstate(divide="ignore"):
        model.fit(X, y, offset=np.log(np.where(np.arange(N) == 2, 0.0, exposure)))
    assert np.allclose(model.fit(X, y).predict(X, offset=1.0), np.e * model.predict(X))


def test_classifier_and_several_classes(claims):
    X, y, exposure = claims
    offset = np.log(exposure)
    labels = np.minimum(y, 2)
    model = fl.StructuredClassifier(alpha=0.01).fit(X, labels == 0, offset=offset)
    assert np.allclose(
        model.decision_function(X, offset=offset), X @ model.coef_[0] + model.intercept_[0] + offset, atol=1e-12
    )
    chance = model.predict_proba(X, offset=offset)
    assert chance.shape == (N, 2) and np.allclose(chance.sum(axis=1), 1.0)
    several = fl.StructuredClassifier(alpha=0.01).fit(X, labels, offset=np.column_stack([offset, offset, -offset]))
    assert several.predict(X, offset=np.zeros((N, 3))).shape == (N,)


def test_cross_validated_with_a_scorer(claims):
    X, y, exposure = claims
    options = {"n_alphas": 5, "cv": 3}
    for scoring in (None, "neg_mean_poisson_deviance"):
        model = fl.StructuredRegressorCV("poisson", scoring=scoring, **options).fit(X, y, offset=np.log(exposure))
        assert np.isfinite(model.cv_results_.scores).all()


def test_routed_as_metadata(claims):
    X, y, exposure = claims
    offset = np.log(exposure)
    model = fl.StructuredRegressor("poisson")
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(offset=True).set_score_request(offset=True)
        scores = cross_val_score(model, X, y, cv=3, params={"offset": offset})
        assert np.isfinite(scores).all()
        search = GridSearchCV(model, {"alpha": [0.01, 0.1]}, cv=3).fit(X, y, offset=offset)
        assert search.best_estimator_.predict(X, offset=offset).shape == (N,)
