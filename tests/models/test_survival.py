"""CoxRegressor and CoxRegressorCV: against other packages, in pipelines, and with what newcomers get wrong."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fenchel as fl


def plain():
    """Data without random numbers, on which other packages were run; times have ties."""
    i = np.arange(60)
    X = np.column_stack([np.sin(1.7 * i + 1), np.cos(2.3 * i), np.sin(0.9 * i * i), ((i * 7) % 5 - 2) / 2.0])
    time = np.ceil(10 * np.exp(-X @ [0.9, -0.6, 0.0, 0.4]) * (0.2 + ((i * 37) % 60) / 60.0))
    y = np.column_stack([time, (i * 11) % 10 < 7]).astype(float)
    return X, y, i % 3, 0.5 + ((i * 13) % 7) / 4.0


# Of scikit-survival 0.28.0 (CoxPHSurvivalAnalysis with tol=1e-14, CoxnetSurvivalAnalysis with tol=1e-14), lifelines
# 0.30.3 (CoxPHFitter with precision=1e-12); sums of squares are divided by n in fenchel's objective.
PEERS = {
    "scikit-survival, breslow": (
        {"alpha": 0.0}, {}, [2.044134129363, -1.307621044617, -0.27740729586, 0.584074230885]
    ),
    "scikit-survival, efron": (
        {"alpha": 0.0, "ties": "efron"}, {}, [2.211403914603, -1.452886378172, -0.271111606749, 0.609463134142]
    ),
    "scikit-survival, ridge of 3": (
        {"alpha": 3 / 60, "penalty": fl.Ridge()}, {}, [1.383080349102, -0.868442652702, -0.185859219359, 0.368179015939]
    ),
    "scikit-survival, ridge of 3, efron": (
        {"alpha": 3 / 60, "penalty": fl.Ridge(), "ties": "efron"}, {},
        [1.472732505798, -0.944279897823, -0.174819322088, 0.378533748767],
    ),
    "Coxnet": ({"alpha": 0.05}, {}, [1.424392385613, -0.846423429977, -0.08388952354, 0.284736138801]),
    "Coxnet, l1_ratio 0.5": (
        {"alpha": 0.1, "penalty": fl.ElasticNet(0.5)}, {},
        [1.041781503465, -0.591808356476, -0.042958314884, 0.17722764511],
    ),
    "lifelines, strata": (
        {"alpha": 0.0, "ties": "efron"}, {"strata"},
        [2.214721663643, -1.439600633363, -0.261443001253, 0.454909262343],
    ),
    "lifelines, weights": (
        {"alpha": 0.0, "ties": "efron"}, {"sample_weight"},
        [2.12847875794, -1.436567294783, -0.230390131442, 0.683019849574],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PEERS)
def test_other_packages_agree(name):
    params, extra, coef = PEERS[name]
    X, y, strata, weight = plain()
    given = {key: value for key, value in (("strata", strata), ("sample_weight", weight)) if key in extra}
    model = fl.CoxRegressor(tol=1e-13, **params).fit(X, y, **given)
    np.testing.assert_allclose(model.coef_, coef, rtol=2e-5)


def test_curves_and_concordance_are_those_of_scikit_survival():
    X, y, _, _ = plain()
    model = fl.CoxRegressor(alpha=0.0, tol=1e-13).fit(X, y)
    curves = model.predict_survival_function(X[:2], [4, 11])
    np.testing.assert_allclose(curves, [[0.886285288114, 0.27863701888], [0.516722554957, 0.000921895104]], rtol=1e-5)
    ridge = fl.CoxRegressor(fl.Ridge(), 3 / 60, tol=1e-12).fit(X, y)
    assert ridge.score(X, y) == pytest.approx(0.8449014567266495)
    hazard = model.predict_cumulative_hazard_function(X[:3])
    assert hazard.shape == (3, model.event_times_.size)
    np.testing.assert_allclose(hazard, np.exp(model.predict(X[:3]))[:, None] * model.cumulative_baseline_hazard_)
    assert (np.diff(hazard) > 0).all()
    ends = model.predict_survival_function(X[:3], [0.0, 1e9])
    assert (ends[:, 0] == 1.0).all()
    np.testing.assert_allclose(ends[:, 1], np.exp(-hazard[:, -1]))


def test_concordance_by_counting():
    rng = np.random.default_rng(0)
    for _ in range(5):
        n = 40
        time, event = rng.integers(1, 12, n), rng.random(n) < 0.6
        risk, weight, strata = rng.integers(0, 8, n), rng.integers(0, 3, n), rng.integers(0, 2, n)
        pairs = right = 0.0
        for i in range(n):
            for j in range(n):
                later = time[j] > time[i] or (time[j] == time[i] and not event[j])
                if event[i] and later and strata[i] == strata[j]:
                    pairs += weight[i] * weight[j]
                    right += weight[i] * weight[j] * (float(risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
        found = fl.concordance(np.column_stack([time, event]), risk, weight, strata)
        assert found == pytest.approx(right / pairs)
    with pytest.raises(ValueError, match="nobody outlives an event"):
        fl.concordance([[2.0, 1], [2.0, 1]], [1, 2])
    with pytest.raises(ValueError, match="risk has shape"):
        fl.concordance([[2.0, 1], [1.0, 1]], [1])


def test_strata_and_offsets():
    X, y, strata, _ = plain()
    names = np.array(["north", "south", "west"])[strata]
    model = fl.CoxRegressor(alpha=0.02).fit(X, y, strata=names)
    assert model.cumulative_baseline_hazard_.shape == (3, model.event_times_.size)
    curves = model.predict_survival_function(X[:3], strata=names[:3])
    alone = fl.losses.Cox().baseline(X @ model.coef_, fl.Cox().check_targets(np.column_stack([y, strata])), np.zeros(0))
    last = [np.exp(hazard[-1]) for hazard in alone[1]]
    np.testing.assert_allclose(model.cumulative_baseline_hazard_[:, -1], last, rtol=1e-12)
    np.testing.assert_allclose(curves[:, -1], np.exp(-np.array(last)[strata[:3]] * np.exp(model.predict(X[:3]))))
    offset = 0.7 * X[:, 0]
    shifted = fl.CoxRegressor(alpha=0.0, tol=1e-12).fit(X[:, 1:], y, offset=offset)
    free = fl.Problem(X[:, 1:].copy(), y, loss="cox", offset=offset, penalty=fl.L1(), alpha=0.0)
    assert abs(free.combine(free.slopes_at(X[:, 1:] @ shifted.coef_))[:-1]).max() < 1e-4
    with pytest.raises(ValueError, match="fitted with an offset"):
        shifted.predict(X[:, 1:])
    with pytest.raises(ValueError, match="give the stratum"):
        model.predict_survival_function(X)
    with pytest.raises(ValueError, match="'east' in row 0, which was not among"):
        model.predict_survival_function(X[:1], strata=["east"])
    with pytest.raises(ValueError, match="fitted without strata"):
        shifted.predict_survival_function(X[:1, 1:], strata=["east"], offset=0)


def test_columns_far_from_zero_change_nothing():
    X, y, _, _ = plain()
    near = fl.CoxRegressor(alpha=0.02, tol=1e-10).fit(X, y)
    far = fl.CoxRegressor(alpha=0.02, tol=1e-10).fit(X + 1e5, y)
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-5)
    np.testing.assert_allclose(
        far.predict_survival_function(X[:4] + 1e5), near.predict_survival_function(X[:4]), atol=1e-3
    )


def test_cross_validation_is_by_what_rows_add():
    X, y, strata, weight = plain()
    penalty = fl.GroupLasso([[0, 1], [1, 2, 3]])
    model = fl.CoxRegressorCV(penalty, n_alphas=6, cv=3, ties="efron").fit(X, y, sample_weight=weight)
    assert model.status_ is fl.Status.CONVERGED and model.cv_results_.converged.all()
    folds = [(np.setdiff1d(np.arange(60), held), held) for held in np.array_split(np.arange(60), 3)]
    own = fl.CoxRegressorCV(fl.L1(), alphas=[0.05], cv=folds).fit(X, y)
    for k, (train, held) in enumerate(folds):
        part = fl.CoxRegressor(alpha=0.05, tol=1e-9).fit(X[train], y[train])
        loss, scores = fl.Cox(), X @ part.coef_
        added = loss.total(scores, loss.check_targets(y), np.zeros(0))
        added -= loss.total(scores[train], loss.check_targets(y[train]), np.zeros(0))
        assert own.cv_results_.scores[0, k] == pytest.approx(-added / len(held), rel=1e-3)
    by_order = fl.CoxRegressorCV(n_alphas=4, cv=3, scoring=lambda one, X, y: one.score(X, y)).fit(X, y, strata=strata)
    assert 0.6 < by_order.cv_results_.mean.max() <= 1.0
    events = y[:, 1].copy()
    events[:] = 0
    events[:2] = 1
    lonely = [(np.arange(2, 60), np.arange(2))]
    with pytest.raises(ValueError, match="training rows of fold 0: y holds no event"):
        fl.CoxRegressorCV(n_alphas=3, cv=lonely).fit(X, np.column_stack([y[:, 0], events]))


def test_it_is_an_estimator():
    X, y, _, _ = plain()
    structured = np.array([(bool(e), t) for t, e in y], dtype=[("event", "?"), ("time", "f8")])
    model = clone(fl.CoxRegressor(fl.L1(), 0.02)).fit(X, structured)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert model.support().shape[0] == np.count_nonzero(model.coef_)
    scores = cross_val_score(make_pipeline(StandardScaler(), fl.CoxRegressor()), X, structured, cv=KFold(3))
    assert (scores > 0.6).all()
    search = GridSearchCV(fl.CoxRegressor(), {"alpha": [0.01, 0.1], "ties": ["breslow", "efron"]}, cv=KFold(3))
    assert search.fit(X, structured).best_score_ > 0.6
    warm = fl.CoxRegressor(alpha=0.02, warm_start=True).fit(X, y)
    assert np.allclose(warm.fit(X, y).coef_, model.coef_, atol=1e-4)


def test_what_newcomers_get_wrong():
    X, y, strata, _ = plain()
    with pytest.raises(ValueError, match=r"use fenchel\.CoxRegressor"):
        fl.StructuredRegressor(loss="cox").fit(X, y)
    with pytest.raises(ValueError, match="two columns, time and event"):
        fl.CoxRegressor().fit(X, y[:, 0])
    with pytest.raises(ValueError, match="y has 60 rows, but X has 5"):
        fl.CoxRegressor().fit(X[:5], y)
    with pytest.raises(ValueError, match="column 1 has no value in row 2"):
        fl.CoxRegressor().fit(np.where(np.arange(X.size).reshape(X.shape) == 2 * X.shape[1] + 1, np.nan, X), y)
    with pytest.raises(ValueError, match="column 'sex' of X holds words"):
        fl.CoxRegressor().fit(pytest.importorskip("pandas").DataFrame(X).assign(sex="f"), y)
    with pytest.raises(ValueError, match="strata has shape"):
        fl.CoxRegressor().fit(X, y, strata=strata[:3])
    with pytest.raises(ValueError, match="all rows with an event have weight 0"):
        fl.CoxRegressor().fit(X, y, sample_weight=1 - y[:, 1])
    with pytest.raises(ValueError, match="ties is 'exact'"):
        fl.CoxRegressor(ties="exact").fit(X, y)
    with pytest.raises(ValueError, match="Sample weights must contain"):
        fl.CoxRegressor().fit(X, y, sample_weight=np.zeros(60))


def test_a_data_frame_has_names_and_raises_no_warning(recwarn):
    pandas = pytest.importorskip("pandas")
    X, y, _, _ = plain()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    times = pandas.DataFrame({"died": y[:, 1] == 1, "days": y[:, 0]})
    penalty = fl.Unpenalised(fl.L1(), ["a"])
    model = fl.CoxRegressorCV(penalty, n_alphas=3, eps=0.5, cv=3).fit(frame, times)
    assert model.coef_[0] != 0 and "a" in model.support().to_string()
    fl.CoxRegressor(alpha_ratio=0.3, standardize=True, relax=1.0).fit(frame, times).predict_survival_function(frame)
    assert not [one for one in recwarn if "feature names" in str(one.message)]
