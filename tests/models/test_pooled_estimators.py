"""Estimators, cross-validation and the command line on rows in a pool."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data.partitions import partitioned
from fenchel.data.pools import Inline
from fenchel.models import Model, pooled

N, P = 1500, 8


def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    return X, X[:, 0] - X[:, 1] + rng.standard_normal(N)


@pytest.mark.parametrize("how", ["auto", "ovr"])
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_found_and_predicted(classes, how):
    X, score = rows()
    y = np.array(["a", "b", "c"])[np.digitize(score, [-0.5, 0.5])] if classes == 3 else np.where(score > 0, 7, 3)
    settings = {"penalty": fl.L1(), "alpha": 0.01, "tol": 1e-8, "multi_class": how}
    model = fl.StructuredClassifier(**settings).fit(Inline(partitioned(X, y, rows=200)))
    known = fl.StructuredClassifier(**settings).fit(X, y)
    assert model.classes_.tolist() == known.classes_.tolist() and model.coef_.shape == known.coef_.shape
    assert np.allclose(model.coef_, known.coef_, atol=1e-3)
    assert model.score(X, y) == pytest.approx(known.score(X, y), abs=0.01)
    assert np.allclose(model.predict_proba(X), known.predict_proba(X), atol=1e-3)


def test_folds_share_passes_and_are_judged_on_rows_left_out():
    X, y = rows()
    pool = Inline(partitioned(X, y, rows=200))
    runs, run = [], pool.run
    pool.run = lambda jobs: runs.append(len(jobs)) or run(jobs)
    model = fl.StructuredRegressorCV(n_alphas=5, eps=0.01, cv=4).fit(pool)
    assert model.cv_results_.converged.all() and max(runs) >= 4
    assert len(runs) < model.cv_results_.epochs.sum()
    known = fl.StructuredRegressorCV(alphas=model.alphas_, cv=4).fit(X, y)
    assert np.allclose(model.cv_results_.mean, known.cv_results_.mean, rtol=0.05)
    again = fl.StructuredRegressorCV(n_alphas=5, eps=0.01, cv=4).fit(Inline(partitioned(X, y, rows=200)[::-1]))
    assert again.coef_.tobytes() == model.coef_.tobytes()
    assert np.array_equal(again.cv_results_.scores, model.cv_results_.scores)


@pytest.mark.parametrize("case", ["squared", "poisson", "several", "two", "three", "tasks", "cv"])
def test_rows_of_a_pool_are_predicted_and_judged(case):
    X, score = rows()
    rng = np.random.default_rng(1)
    weight, offset, task = rng.random(N), None, None
    kind, settings = fl.StructuredRegressor, {"alpha": 0.01}
    if case == "poisson":
        y, settings, offset = rng.poisson(np.exp(0.3 * X[:, 0])).astype(float), {"loss": "poisson"}, rng.random(N)
    elif case == "several":
        y = np.column_stack([score, score + X[:, 2], -score])
    elif case in ("two", "three"):
        kind, y = (
            fl.StructuredClassifier,
            np.array(list("abc"))[np.digitize(score, [-0.5, 0.5] if case == "three" else [0.0])],
        )
    elif case == "tasks":
        y, task = score, rng.integers(0, 3, N)
    else:
        y = score
    if case == "cv":
        kind, settings = fl.StructuredRegressorCV, {"alphas": [0.1, 0.01], "cv": 2}
    model = kind(**settings).fit(Inline(partitioned(X, y, weight, offset=offset, task=task, rows=200)))
    parts = partitioned(X[:999], y[:999], weight[:999], offset=None if offset is None else offset[:999],
                        task=None if task is None else task[:999], rows=70)  # fmt: skip
    other, passes = Inline(parts[::-1]), []
    run = other.run
    other.run = lambda jobs: passes.append(len(jobs)) or run(jobs)
    beside = {name: one[:999] for name, one in (("offset", offset), ("task", task)) if one is not None}
    known = model.predict(X[:999], **beside)
    found = model.predict(other)
    assert passes == [1] and found.shape == known.shape
    if kind is fl.StructuredClassifier:
        assert np.array_equal(found, known)
        assert np.allclose(model.predict_proba(other), model.predict_proba(X[:999]), atol=1e-12)
    else:
        assert np.allclose(found, known, rtol=1e-12, atol=1e-12)
    known = model.score(X[:999], y[:999], sample_weight=weight[:999], **beside)
    assert model.score(other) == pytest.approx(known, rel=1e-9)


def test_rows_that_do_not_fit_the_model_are_named(tmp_path):
    X, y = rows()
    pool = Inline(partitioned(X, y, rows=200))
    model = fl.StructuredRegressor(alpha=0.1).fit(pool)
    with pytest.raises(ValueError, match="X has 7 features, but the model was fitted with 8"):
        model.predict(Inline(partitioned(X[:, :7].copy(), y)))
    with pytest.raises(ValueError, match="y was given beside rows in memory"):
        model.score(pool, y)
    with pytest.raises(ValueError, match="offset was given beside rows in memory"):
        model.predict(pool, offset=y)
    with pytest.raises(ValueError, match=r"StructuredRegressor\.score requires y"):
        model.score(X)
    broken = X.copy()
    broken[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"partition 0, row 3, column 2 is nan"):
        model.predict(Inline(partitioned(broken, y)))
    with pytest.raises(ValueError, match=r"row 0 has no task, but the model was fitted with tasks"):
        fl.StructuredRegressor().fit(Inline(partitioned(X, y, task=np.arange(N) % 2))).predict(pool)
    with_offset = fl.StructuredRegressor().fit(Inline(partitioned(X, y, offset=np.ones(N))))
    with pytest.raises(ValueError, match=r"fitted with an offset.*name it where they are opened"):
        with_offset.predict(pool)
    pool.names, other = list("abcdefgh"), Inline(partitioned(X, y))
    other.names = list("abdcefgh")
    with pytest.raises(ValueError, match="column 2 of the rows in memory is 'd', but StructuredRegressor"):
        fl.StructuredRegressor().fit(pool).predict(other)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    opened = fl.open_data(tmp_path / "X.npy", target=str(tmp_path / "y.npy"))
    assert np.allclose(model.predict(opened), model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("standardize", [False, True])
def test_weights_of_zero_are_named(standardize):
    X, y = rows()
    with pytest.raises(ValueError, match=r"sample_weight is zero in all 1500 rows.*above 0.*leave the weights out"):
        fl.StructuredRegressor(standardize=standardize).fit(Inline(partitioned(X, y, np.zeros(N), rows=200)))
    label = np.array(["a", "b", "c"])[np.digitize(y, [-0.5, 0.5])]
    for weight, told in ((label != "b", "all rows of class 'b' have weight 0"), (np.zeros(N), "sample_weight is zero")):
        with pytest.raises(ValueError, match=told):
            fl.StructuredClassifier().fit(Inline(partitioned(X, label, weight, rows=200)))
    some = np.where(label == "b", np.arange(N) < N // 2, True)  # some partitions count no row of it
    fitted = fl.StructuredClassifier().fit(Inline(partitioned(X, label, some, rows=200)))
    assert fitted.classes_.tolist() == ["a", "b", "c"] and fitted.result_.relative_gap <= 1e-6


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", ["balanced", {1: 5.0, 0: 0.25}])
def test_class_weights_of_a_pool_are_those_of_memory(classes, weighted, given, monkeypatch):
    from fenchel.problem import pooled as problem

    monkeypatch.setattr(problem, "SPACE", 1.0)  # every round reads the rows
    X, score = rows()
    y = np.digitize(score, [-1.5, 0.5][-classes + 1 :]).astype(float)
    weight = np.random.default_rng(2).random(N) if weighted else None
    settings = {"penalty": fl.L1(), "alpha": 0.01, "tol": 1e-8, "standardize": True, "class_weight": given}
    found = fl.StructuredClassifier(**settings).fit(Inline(partitioned(X, y, weight, rows=200)))
    known = fl.StructuredClassifier(**settings).fit(X, y, sample_weight=weight)
    assert found.result_.relative_gap <= 1e-8
    assert found.result_.primal == pytest.approx(known.result_.primal, rel=1e-7)
    assert np.allclose(found.coef_, known.coef_, atol=1e-3)
    plain = fl.StructuredClassifier(**{**settings, "class_weight": None}).fit(X, y, sample_weight=weight)
    assert abs(plain.result_.primal / known.result_.primal - 1) > 1e-3
    with pytest.raises(ValueError, match="all rows of class 1 have weight 0"):
        fl.StructuredClassifier(class_weight={1: 0.0}).fit(Inline(partitioned(X, y, weight, rows=200)))
    for data in ((Inline(partitioned(X, y, weight, rows=200)),), (X, y)):
        with pytest.raises(
            ValueError, match=r"class_weight of class 1(\.0)? is -2; it must be finite and not negative"
        ):
            fl.StructuredClassifier(class_weight={1: -2.0}).fit(*data)
    chosen = fl.StructuredClassifierCV(alphas=[0.1, 0.01], cv=2, class_weight=given)
    assert chosen.fit(Inline(partitioned(X, y, weight, rows=200))).cv_results_.converged.all()


def test_mistakes_are_told():
    X, score = rows()
    pool = Inline(partitioned(X, score, rows=200))
    with pytest.raises(ValueError, match=r"depends on the scores of all others.*read_data"):
        fl.CoxRegressor().fit(pool)
    with pytest.raises(ValueError, match="requires y"):
        fl.CoxRegressor().fit(X)
    for target, told in ((score, "continuous.*more than 1000 different"), (np.round(score, 1), "continuous.*fractions"),
                         (np.arange(N).astype(str), "words.*more than 1000")):  # fmt: skip
        with pytest.raises(ValueError, match=rf"Unknown label type: {told}.*a regressor takes them"):
            fl.StructuredClassifier().fit(Inline(partitioned(X, target, rows=200)))
    with pytest.raises(ValueError, match="y was given beside rows"):
        fl.StructuredRegressor().fit(pool, score)
    with pytest.raises(ValueError, match="number of folds"):
        fl.StructuredRegressorCV(cv=None, alphas=[0.1]).fit(pool)


def test_rows_that_fit_into_memory_are_said_to(monkeypatch, tmp_path):
    X, y = rows()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    opened = fl.open_data(tmp_path / "X.npy", target=str(tmp_path / "y.npy"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fl.StructuredRegressor(alpha=0.1).fit(opened)  # nobody waits for so few
    monkeypatch.setattr(pooled, "_FEWEST", 10.0)
    with pytest.warns(UserWarning, match="rounds over files cost about ten times that"):
        fl.StructuredRegressor(alpha=0.1).fit(opened)


def test_the_command_line(tmp_path, monkeypatch):
    testing = pytest.importorskip("typer.testing")
    pd = pytest.importorskip("pandas")
    from fenchel import cli

    monkeypatch.setenv("FENCHEL_CACHE", str(tmp_path / "cache"))
    X, score = rows()
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(P)]).assign(y=np.where(score > 0, "yes", "no"))
    for k in range(3):
        frame.iloc[k * 500 : (k + 1) * 500].to_parquet(tmp_path / f"part{k}.parquet")
    frame.to_parquet(tmp_path / "whole.parquet")

    def run(*given):
        return testing.CliRunner().invoke(cli.make_app(), [str(one) for one in given])

    pattern, model = tmp_path / "part*.parquet", tmp_path / "model.json"
    done = run("fit", pattern, "--target", "y", "--memory", "100MB", "--alpha", "0.01", "-o", model)
    assert done.exit_code == 0, done.output
    saved = json.loads(model.read_text())
    known = fl.StructuredClassifier(alpha=0.01).fit(X, frame["y"])
    assert "f0" in json.dumps(saved)
    assert np.allclose(np.ravel(Model.load(model).coef), known.coef_.ravel(), atol=1e-2)
    done = run("cv", pattern, "--target", "y", "--memory", "100MB", "--alphas", "0.1,0.01", "--folds", "2", "-o", model)
    assert done.exit_code == 0, done.output
    assert run("predict", model, tmp_path / "part0.parquet", "-o", tmp_path / "p.csv").exit_code == 0
    assert run("fit", pattern, "--target", "y", "--memory", "5MB", "-o", model).exit_code != 0
    options = ["--target", "y", "--standardize", "--alpha", "0.01", "-o", model]
    found = []
    for more in (["--memory", "100MB"], []):
        done = run("fit", pattern if more else tmp_path / "whole.parquet", *options, *more)
        assert done.exit_code == 0, done.output
        found.append(np.ravel(Model.load(model).coef))
    assert np.allclose(*found, atol=1e-3)


@pytest.mark.parametrize("sparse", [False, True])
def test_columns_of_a_pool_are_standardised(sparse):
    rng = np.random.default_rng(1)
    X, y = rows()
    X = np.where(rng.random(X.shape) < 0.3, X, 0.0) * 10.0 ** np.arange(-4, 4)
    X[:, 5] = 3.0 if not sparse else 0.0  # constant
    weight = rng.random(N)
    settings = {"penalty": fl.FusedLasso(), "alpha": 0.02, "tol": 1e-9, "standardize": True}
    given = sp.csr_array(X) if sparse else X
    known = fl.StructuredRegressor(**settings).fit(given, y, sample_weight=weight)
    found = fl.StructuredRegressor(**settings).fit(Inline(partitioned(given, y, weight, rows=200)))
    assert np.allclose(found.scale_, known.scale_, rtol=1e-10)
    assert found.result_.primal == pytest.approx(known.result_.primal, rel=1e-8)
    assert np.allclose(found.coef_ * found.scale_, known.coef_ * known.scale_, atol=1e-4)
    assert found.intercept_ == pytest.approx(known.intercept_, abs=1e-3)
    chosen = fl.StructuredRegressorCV(n_alphas=3, cv=2, standardize=True).fit(Inline(partitioned(given, y, rows=200)))
    assert np.allclose(chosen.coef_, chosen.path_[-1].coef)


def counted(X, y):
    """A pool, and a list with an entry for every pass over it."""
    pool = Inline(partitioned(X, y, rows=200))
    passes, run = [], pool.run
    pool.run = lambda jobs: passes.append(len(jobs)) or run(jobs)
    return pool, passes


@pytest.mark.parametrize(("loss", "penalty", "count", "tol"), [
    ("squared", fl.FusedLasso(), 8, 1e-8), ("logistic", fl.FusedLasso(), 8, 1e-8), ("quantile", fl.L1(), 4, 1e-3),
])  # fmt: skip
def test_alphas_side_by_side_share_passes_and_have_the_same_answers(loss, penalty, count, tol):
    X, y = rows()
    y = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y
    found, needed = [], []
    for together in (1, 4):
        pool, passes = counted(X, y)
        problem = fl.Problem(pool, loss=loss, penalty=penalty, fit_intercept=True)
        found.append(fl.path(problem, n_alphas=count, eps=0.01, tol=tol, together=together))
        needed.append(len(passes))
    alone, shared = found
    assert needed[1] < 0.7 * needed[0]
    assert shared.converged.all() and np.array_equal(shared.alphas, alone.alphas)
    assert np.allclose(shared.primals, alone.primals, rtol=tol)
    assert np.all(shared.duals <= alone.primals * (1 + 1e-12)) and np.all(alone.duals <= shared.primals * (1 + 1e-12))
    again = fl.path(problem, n_alphas=count, eps=0.01, tol=tol, together=4)
    assert again.coefs.tobytes() == shared.coefs.tobytes()


def test_folds_and_alphas_share_the_same_passes():
    X, y = rows()
    found, needed = [], []
    for options in ({}, {"together": 3}):
        pool, passes = counted(X, y)
        model = fl.StructuredRegressorCV(n_alphas=6, eps=0.01, cv=2, solver_options=options).fit(pool)
        found.append(model.cv_results_)
        needed.append(len(passes))
    assert needed[1] < needed[0] and max(passes) >= 6
    assert np.allclose(found[1].scores, found[0].scores, rtol=1e-3)


def test_a_path_side_by_side_ends_where_it_is_told_to():
    X, y = rows()
    pool, _ = counted(X, y)
    problem = fl.Problem(pool, loss="squared", penalty=fl.L1(), fit_intercept=True)
    seen = []
    path = fl.path(problem, n_alphas=9, together=3, callback=lambda alpha, result: seen.append(alpha) or len(seen) == 2)
    assert len(path) == 2 and seen == path.alphas.tolist()
    assert len(fl.path(problem, n_alphas=9, together=3, time_limit=0.0)) <= 3  # each of them has begun

    def broken(jobs):
        raise OSError("the disk is gone")

    pool.run = broken
    with pytest.raises(OSError, match="the disk is gone"):
        fl.path(problem, alphas=[0.3, 0.2, 0.1], together=3)
    with pytest.raises(ValueError, match="rows are in memory"):
        fl.path(X, y, loss="squared", penalty=fl.L1(), together=2)
    with pytest.raises(ValueError, match="these are in memory"):
        fl.cross_validate_path(X, y, loss="squared", penalty=fl.L1(), together=2)
    with pytest.raises(ValueError, match="together is 0"):
        fl.path(problem, alphas=[0.1], together=0)
