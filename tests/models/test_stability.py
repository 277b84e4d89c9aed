"""Stability selection: probabilities of features, groups and edges, and the bound on false selections."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import fenchel as fl
from fenchel.models.stability import _halves


def data(n=120, p=15, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, 0] + X[:, 1] + X[:, 2] + 0.5 * rng.standard_normal(n)


@parametrize_with_checks([fl.StabilitySelection(fl.StructuredRegressor(alpha=0.1), n_pairs=2)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_halves_are_complementary_and_keep_the_labels():
    X, y = data()
    problem = fl.Problem(X, np.sign(y), loss="logistic", penalty=fl.L1())
    first, second = _halves(problem, np.random.default_rng(0))
    assert np.array_equal(np.sort(np.concatenate([first, second])), np.arange(120))
    assert abs(np.sum(np.sign(y)[first]) - np.sum(np.sign(y)[second])) <= 2


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_what_counts_is_stable(loss):
    X, y = data()
    frame = pd.DataFrame(X).add_prefix("x")
    kind = fl.StructuredRegressor if loss == "squared" else fl.StructuredClassifier
    model = kind(loss, alpha_ratio=0.4)
    y = y if loss == "squared" else y > 0
    found = fl.StabilitySelection(model, n_pairs=10).fit(frame, y)
    assert found.get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    assert found.transform(frame).shape == (120, 3)
    assert found.table().index[:3].isin(["x0", "x1", "x2"]).all()
    again = fl.StabilitySelection(model, n_pairs=10, n_jobs=2).fit(frame, y)
    np.testing.assert_array_equal(again.feature_probabilities_, found.feature_probabilities_)
    # each share is a number of fits out of twenty
    assert np.allclose(20 * found.feature_probabilities_, np.round(20 * found.feature_probabilities_))
    wider = fl.StabilitySelection(model, n_pairs=5, alphas=[0.5, 0.01]).fit(frame, y)
    assert wider.feature_probabilities_.sum() > found.feature_probabilities_.sum()


def test_groups_and_edges():
    X, y = data()
    groups = fl.Groups([np.arange(3 * k, 3 * k + 3) for k in range(5)], p=15)
    found = fl.StabilitySelection(fl.StructuredRegressor(penalty=fl.GroupLasso(groups), alpha_ratio=0.4), n_pairs=5)
    found.fit(X, y)
    assert found.table("groups")["stable"].tolist() == [True, False, False, False, False]
    assert found.table("groups").index[0] == "group 0"
    with pytest.raises(ValueError, match="has no edges"):
        found.table("edges")
    fused = fl.StabilitySelection(fl.StructuredRegressor(penalty=fl.FusedLasso(0.2), alpha_ratio=0.3), n_pairs=5)
    fused.fit(X, y)
    assert fused.table("edges").index[0] == "2 - 3" and fused.edge_probabilities_[2] == 1.0


def test_the_bound_is_that_of_the_paper():
    X, y = data(p=30)
    found = fl.StabilitySelection(fl.StructuredRegressor(alpha_ratio=0.4), n_pairs=50).fit(X, y)
    q, p = found.feature_probabilities_.sum(), 30
    assert found.expected_false(0.9, unimodal=False) == pytest.approx(q**2 / p / 0.8)
    assert found.expected_false(0.9) == pytest.approx(q**2 / p * 4 * (0.1 + 0.01) / 1.02)
    assert found.expected_false(0.7) == pytest.approx(q**2 / p / (2 * (0.4 - 0.01)))
    values = [found.expected_false(t) for t in (0.6, 0.7, 0.8, 0.9, 1.0)]
    assert values == sorted(values, reverse=True)


def test_the_bound_holds_on_noise():
    """Nothing counts, and all features are alike: what is chosen is false, and its mean is below the bound."""
    chosen, bounds = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 20)), rng.standard_normal(60)
        found = fl.StabilitySelection(fl.StructuredRegressor(alpha_ratio=0.5), n_pairs=10, threshold=0.7).fit(X, y)
        chosen.append(found.get_support().sum())
        bounds.append(found.expected_false(unimodal=False))
    assert np.mean(chosen) <= np.mean(bounds)


def test_in_a_pipeline_drawn_and_refused():
    X, y = data()
    first = fl.StabilitySelection(fl.StructuredRegressor(alpha_ratio=0.4), n_pairs=5)
    pipe = make_pipeline(first, fl.StructuredRegressor())
    assert pipe.fit(X, y).score(X, y) > 0.8
    ax = fl.plotting.stability(pipe[0])
    assert "3 of 15 features are stable" in ax.get_title(loc="left") + "".join(text.get_text() for text in ax.texts)
    for params, words in (({"threshold": 0.4}, "threshold is 0.4"), ({"n_pairs": 0}, "n_pairs is 0")):
        with pytest.raises(ValueError, match=words):
            fl.StabilitySelection(fl.StructuredRegressor(), **params).fit(X, y)
    with pytest.raises(ValueError, match="units is 'rows'"):
        pipe[0].table("rows")
