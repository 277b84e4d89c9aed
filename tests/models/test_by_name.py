"""From a data frame to a model: structure by name, made at every fit, and what goes wrong with other columns."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import fenchel as fl

TOWNS = ["Ulm", "Bern", "Oslo"]


@pytest.fixture
def insurance():
    """A frame with two factors, one of which has a level that stands in one row alone."""
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame({
        "town": rng.choice(TOWNS, n), "car": rng.choice(["van", "bus"], n), "age": rng.uniform(20, 80, n)
    })  # fmt: skip
    frame.loc[7, "town"] = "Rome"
    y = frame["age"] / 30 + (frame["town"] == "Ulm") + 0.1 * rng.standard_normal(n)
    return frame, y


def encoder(frame):
    return make_column_transformer(
        (OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["town", "car"]),
        (StandardScaler(), ["age"]),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")


@pytest.mark.parametrize(
    "penalty",
    [
        fl.GroupLasso(by="_"),
        fl.GroupLasso(by=["town", "car", "age"]),
        fl.GroupLasso(by=lambda name: name.split("_")[0]),
        fl.GroupLasso({"town": [f"town_{t}" for t in (*TOWNS, "Rome")], "car": ["car_van", "car_bus"], "age": ["age"]}),
        fl.GroupMax(by={f"town_{t}": "town" for t in (*TOWNS, "Rome")}, rest="alone"),
        fl.SparseGroupLasso(by="_"),
        fl.LatentGroupLasso(by="_"),
        fl.TreeGroups([["town_Ulm", "town_Rome"], ["town_Ulm"], ["age"], ["car_van", "car_bus", "town_Oslo"]]),
        fl.GraphFused([("town_Ulm", "town_Rome"), ("town_Ulm", "town_Bern"), ("car_van", "car_bus")]),
        fl.Unpenalised(fl.GroupLasso(by="_"), ["age"]),
        0.5 * fl.GroupLasso(by="_") + fl.Ridge(),
    ],
    ids=lambda penalty: type(penalty).__name__,
)
def test_a_fold_without_a_rare_level_is_scored(insurance, penalty):
    frame, y = insurance
    pipe = make_pipeline(encoder(frame), fl.StructuredRegressor(penalty=penalty, alpha=0.01))
    with warnings.catch_warnings():
        warnings.simplefilter("error", category=UserWarning)
        warnings.filterwarnings("ignore", "(groups|by|edges) names a feature that X does not have")
        scores = cross_val_score(pipe, frame, y, cv=KFold(5), error_score="raise")
    assert np.isfinite(scores).all() and scores.mean() > 0.5


def test_groups_follow_the_levels_of_each_fold(insurance):
    """With as many columns but other levels, groups by number would be wrong without a word."""
    frame, y = insurance
    found = []
    for level in ("Rome", "Bern"):
        some = frame[frame["town"] != level]
        table = encoder(frame).fit_transform(some)
        model = fl.StructuredRegressor(penalty=fl.GroupLasso(by="_"), alpha=0.01).fit(table, y[some.index])
        found.append(model.active_groups().loc["town", "size"])
        assert {name for name in table if name.startswith("town_")} == {
            model.feature_names_in_[j] for j in model.penalty_.groups["town"]
        }
    assert found == [3, 3]


def test_structure_of_other_columns_is_refused(insurance):
    frame, y = insurance
    table = encoder(frame).fit_transform(frame)
    groups = fl.Groups.from_columns(table)
    model = fl.StructuredRegressor(penalty=fl.GroupLasso(groups))
    model.fit(table, y)
    with pytest.raises(ValueError, match="made for 7 columns, but X has 6: X lacks 'town_Rome'; make it with"):
        model.fit(table.drop(columns="town_Rome"), y)
    with pytest.raises(ValueError, match=r"knows feature 0 as 'town_Bern', but that column of X is 'age'.*by="):
        model.fit(table[table.columns[::-1]], y)
    with pytest.raises(ValueError, match=r"by='_'.*knows features by name, and the data has no names: fit to a data"):
        fl.StructuredRegressor(penalty=fl.GroupLasso(by="_")).fit(table.to_numpy(), y)
    with pytest.raises(ValueError, match="joins features by name, and the data has no names"):
        fl.StructuredRegressor(penalty=fl.GraphFused([("town_Ulm", "town_Rome")])).fit(table.to_numpy(), y)
    with pytest.raises(ValueError, match="groups names 'a', 'b', none of which are among the 7 columns of X"):
        fl.StructuredRegressor(penalty=fl.GroupLasso({"r": ["a", "b"]})).fit(table, y)
    with pytest.raises(ValueError, match="needs groups, or by"):
        fl.GroupLasso()
    with pytest.raises(ValueError, match=r"needs groups, or by.*both are given"):
        fl.GroupLasso([[0]], by="_")


def test_a_problem_knows_the_names_of_a_frame(insurance):
    frame, y = insurance
    table = encoder(frame).fit_transform(frame)
    by_name = fl.Problem(table, y, loss="squared", penalty=fl.GroupLasso(by="_"))
    by_number = fl.Problem(table, y, loss="squared", penalty=fl.GroupLasso(fl.Groups.from_columns(table)))
    assert by_name.alpha_max() == by_number.alpha_max()


# -- features in no group ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [fl.GroupLasso, fl.GroupMax, fl.LatentGroupLasso, fl.ExclusiveLasso])
def test_features_in_no_group_are_told_of(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    y = X[:, 0] + X[:, 5] + 0.1 * rng.standard_normal(30)

    def fit(penalty):
        return fl.StructuredRegressor(penalty=penalty, alpha=0.3).fit(X, y)

    with pytest.warns(UserWarning, match=r"2 features of 6 in no group.*groups.complete\(\).*rest='unpenalised'"):
        plain = fit(kind([[0, 1], [2, 3]]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meant = fit(kind([[0, 1], [2, 3]], rest="unpenalised"))
        alone = fit(kind([[0, 1], [2, 3]], rest="alone", weights=[1.0, 1.0]))
        same = fit(kind(fl.Groups([[0, 1], [2, 3]], p=6).complete(), weights=np.ones(4)))
    assert np.array_equal(plain.coef_, meant.coef_)
    assert np.allclose(alone.coef_, same.coef_, atol=1e-6) and not np.allclose(alone.coef_, meant.coef_, atol=1e-3)
    with pytest.raises(ValueError, match="rest is 'free'; it must be"):
        kind([[0]], rest="free")


def test_sparse_groups_leave_nothing_free():
    X = np.random.default_rng(0).standard_normal((20, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fl.Problem(X, X[:, 0], loss="squared", penalty=fl.SparseGroupLasso([[0, 1]]))


# -- latent groups ----------------------------------------------------------------------------------


def overlapping(p=60, seed=0):
    rng = np.random.default_rng(seed)
    return fl.Groups([np.sort(rng.choice(p, 8, replace=False)) for _ in range(40)], p=p).complete()


def test_active_groups_of_latent_groups_are_those_with_a_part():
    """The model of one group that shares each of its features with others is one group, not all that touch it."""
    groups, rng = overlapping(), np.random.default_rng(1)
    X = rng.standard_normal((100, groups.p))
    y = X[:, groups[3]].sum(axis=1) + 0.05 * rng.standard_normal(100)
    penalty = fl.LatentGroupLasso(groups)
    model = fl.StructuredRegressor(penalty=penalty, alpha=0.5).fit(X, y)
    assert model.active_groups().index.tolist() == [groups.names[3]]
    assert len(model.active_groups(groups)) > 20  # that touch it
    assert model.active_groups()["norm"].iloc[0] == pytest.approx(np.linalg.norm(model.coef_))
    assert fl.active_groups(model.coef_, penalty).equals(model.active_groups())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_parts_add_up_and_prove_the_norm(seed, share):
    groups, rng = overlapping(seed=seed), np.random.default_rng(seed)
    X = rng.standard_normal((80, groups.p))
    y = X[:, groups[0]].sum(axis=1) + X[:, groups[1]].sum(axis=1) + rng.standard_normal(80)
    penalty = fl.LatentGroupLasso(groups)
    problem = fl.Problem(X, y, loss="squared", penalty=penalty)
    coef = fl.solve(problem.with_alpha(share * problem.alpha_max())).coef
    _, parts = penalty.grouped(coef[None])
    together = np.zeros(groups.p)
    for group, part in zip(groups, parts, strict=True):
        together[group] += part[0]
    cost = np.sqrt(groups.sizes) @ [np.linalg.norm(part) for part in parts]
    assert np.allclose(together, coef, rtol=0, atol=1e-12 * np.abs(coef).max())
    assert cost == pytest.approx(penalty.value(coef), rel=2e-6)
    # groups that leave their dual ball untouched have no part: the gradient of the loss says which can have one
    gradient = X.T @ (X @ coef - y) / len(y) / (share * problem.alpha_max())
    lengths = np.array([np.linalg.norm(gradient[group]) for group in groups]) / np.sqrt(groups.sizes)
    assert all(lengths[k] > 0.99 for k, part in enumerate(parts) if part.any())


def test_parts_of_several_outputs_and_free_groups():
    groups = fl.Groups([[0, 1], [1, 2], [3]], p=4)
    coef = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 2.0, 0.0]])
    table = fl.active_groups(coef, fl.PerOutput(fl.LatentGroupLasso(groups, weights=[1.0, 1.0, 0.0]), 2))
    assert table["norm"].to_dict() == pytest.approx({"group 0": np.sqrt(2), "group 1": 2.0})
    free = fl.active_groups(coef[0], fl.LatentGroupLasso(groups, weights=[0.0, 1.0, 1.0]))
    assert free.index.tolist() == ["group 0"]
    assert fl.active_groups(np.zeros(4), fl.LatentGroupLasso(groups)).empty
    with pytest.raises(ValueError, match="has no groups"):
        fl.active_groups(coef, fl.L1())
