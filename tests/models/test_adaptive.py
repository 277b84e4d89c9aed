"""Adaptive weights from a first fit: for features, groups and edges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fenchel as fl

FIRST = np.array([2.0, 2.0, 0.0, -1.0])
DEAR = np.array([1.0, 1.0, 1000.0, 2.0])


@pytest.mark.parametrize("kind", [fl.L1, fl.Lasso, fl.ElasticNet])
def test_features(kind):
    np.testing.assert_allclose(fl.adaptive(kind(), FIRST).weights, DEAR)
    usual = np.array([1.0, 3.0, 1.0, 0.5])
    np.testing.assert_allclose(fl.adaptive(kind(weights=usual), FIRST, gamma=2).weights, usual * DEAR**2)
    np.testing.assert_allclose(fl.adaptive(kind(), FIRST, gamma=0).weights, np.ones(4))
    np.testing.assert_allclose(fl.adaptive(kind(), np.zeros(4)).weights, np.ones(4))


@pytest.mark.parametrize("kind", [fl.GroupLasso, fl.GroupMax, fl.LatentGroupLasso, fl.SparseGroupLasso])
def test_groups(kind):
    found = fl.adaptive(kind({"a": [0, 1], "b": [2, 3]}), FIRST)
    root = np.sqrt(2)
    assert found.weights == pytest.approx({"a": root, "b": root * 2 / np.sqrt(0.5)})
    if kind is fl.SparseGroupLasso:
        np.testing.assert_allclose(found.feature_weights, DEAR)


def test_edges_and_differences():
    found = fl.adaptive(fl.GraphFused([[0, 1], [1, 2], [2, 3]]), FIRST)
    np.testing.assert_allclose(found.graph.weights, [1000.0, 1.0, 2.0])
    fused = fl.adaptive(fl.FusedLasso(), FIRST)
    np.testing.assert_allclose(fused.difference_weights, [1000.0, 1.0, 2.0])
    np.testing.assert_allclose(fl.adaptive(fl.TrendFilter(1), FIRST).weights, [1000.0, 1.0, 2.0])


def test_sums_outputs_and_what_has_no_weights():
    found = fl.adaptive(2.0 * fl.L1() + fl.Ridge(), FIRST)
    np.testing.assert_allclose(found.parts[0].part.weights, DEAR)
    two = np.array([[3.0, 0.0], [4.0, 1.0]])
    np.testing.assert_allclose(fl.adaptive(fl.MultiTaskLasso(2), two).weights, [1.0, 5.0])
    free = fl.adaptive(fl.Unpenalised(fl.L1(), [0]), FIRST)
    np.testing.assert_allclose(free.penalty.weights, DEAR[1:])
    with pytest.raises(ValueError, match="has no weights to adapt"):
        fl.adaptive(fl.LowRank((2, 2)), FIRST)
    with pytest.raises(ValueError, match="gamma is -1"):
        fl.adaptive(fl.L1(), FIRST, gamma=-1)
    with pytest.raises(ValueError, match="penalty is 'l1'"):
        fl.adaptive("l1", FIRST)


def test_an_adaptive_fit_leaves_out_more_and_shrinks_less():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.standard_normal((200, 20)) * rng.uniform(0.1, 10, 20)).add_prefix("x_")
    scaled = frame / frame.std(ddof=0)
    y = scaled["x_0"] * 2 - scaled["x_1"] * 2 + rng.standard_normal(200)
    first = fl.StructuredRegressor(penalty=fl.Ridge(), alpha=0.01, standardize=True).fit(frame, y)
    plain = fl.StructuredRegressorCV(standardize=True, n_alphas=20).fit(frame, y)
    model = fl.StructuredRegressorCV(penalty=fl.adaptive(fl.Lasso(), first), standardize=True, n_alphas=20).fit(
        frame, y
    )
    assert np.count_nonzero(model.coef_) < np.count_nonzero(plain.coef_)
    assert np.abs(model.coef_ * model.scale_)[:2].sum() > np.abs(plain.coef_ * plain.scale_)[:2].sum()
