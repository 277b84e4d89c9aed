"""From a table with words and gaps to a model, as somebody does who has just got the file."""

import json

import numpy as np
import pytest

from fenchel.models import Model

pytest.importorskip("typer.testing", reason="the command line needs typer (fenchel[cli])")
pd = pytest.importorskip("pandas", reason="these tests write CSV files with pandas (fenchel[io])")

from test_cli import refused, run  # noqa: E402  # after what it needs


@pytest.fixture
def cars(tmp_path, monkeypatch):
    """Words, gaps, and drivers who come several times."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame({"town": rng.choice(["Ulm", "Bern", "Oslo"], n), "kind": rng.choice(["van", "bus"], n)})
    frame["age"], frame["driver"] = rng.uniform(0, 20, n).round(2), np.repeat([f"d{k}" for k in range(20)], n // 20)
    frame["cost"] = 3.0 * (frame["town"] == "Ulm") + 0.2 * frame["age"] + rng.standard_normal(n)
    frame.to_csv("cars.csv", index=False)
    frame.assign(cost=np.where(frame["cost"] > 2, "high", "low")).to_csv("labels.csv", index=False)
    frame.loc[3, "age"], frame.loc[7, "town"] = np.nan, None
    frame.to_csv("gaps.csv", index=False)
    return frame


def test_words_are_groups_and_the_model_reads_new_words(cars):
    done = run("fit", "gaps.csv", "--one-hot", "auto", "--missing", "mean", "--drop", "driver",
               "--penalty", "group-lasso", "--alpha", "0.05")  # fmt: skip
    assert done.exit_code == 0 and "columns of words" in done.stdout and "groups not zero" in done.stdout, done.stderr
    model = Model.load("model.json")
    assert model.features[:4] == ["town_(missing)", "town_Bern", "town_Oslo", "town_Ulm"]
    plain = cars.assign(town=cars["town"].fillna("(missing)"), age=cars["age"].fillna(cars["age"].mean()))
    made = np.column_stack([plain["town"] == word[5:] for word in model.features[:4]]
                           + [plain["kind"] == word for word in ("bus", "van")] + [plain["age"]])  # fmt: skip
    made = made.astype(float)
    done = run("predict", "model.json", "gaps.csv")
    answers = np.array([float(line) for line in done.stdout.splitlines()[1:]])
    np.testing.assert_allclose(answers, made @ model.coef + model.intercept, rtol=1e-12)
    cars.assign(town="Rom").to_csv("new.csv", index=False)
    done = run("predict", "model.json", "new.csv")
    assert done.exit_code == 0 and done.stderr.startswith(
        "fenchel: warning: new.csv, line 2: column 'town' holds 'Rom'"
    )


def test_rows_that_miss_something_are_left_out_and_counted(cars):
    done = run("fit", "gaps.csv", "--one-hot", "auto", "--missing", "drop", "--unpenalised", "town")
    assert done.exit_code == 0 and "2 of 200, which miss a value" in done.stdout, done.stderr
    model = Model.load("model.json")
    assert all(model.coef[model.features.index(f"town_{word}")] != 0 for word in ("Bern", "Ulm"))


def test_drivers_stay_in_one_fold_and_are_no_feature(cars):
    args = ["cv", "labels.csv", "--one-hot", "auto", "--cv-groups", "driver", "--scoring", "roc_auc", "--folds", "4",
            "--n-alphas", "5", "--standardize", "--table", "t.csv"]  # fmt: skip
    done = run(*args)
    assert done.exit_code == 0 and "held-out roc_auc" in done.stdout, done.stderr
    assert not any("driver" in name for name in Model.load("model.json").features)
    table = pd.read_csv("t.csv")
    # the same by hand: columns at the deviation of the training rows alone, drivers whole, areas under the curve
    from sklearn.model_selection import StratifiedGroupKFold

    import fenchel as fl

    made = pd.get_dummies(cars[["town", "kind"]].assign(town=pd.read_csv("labels.csv")["town"]), prefix_sep="_")
    X = np.column_stack([made.to_numpy(float), pd.read_csv("labels.csv")["age"]])
    y = pd.read_csv("labels.csv")["cost"].to_numpy()
    twin = fl.StructuredClassifierCV(
        alphas=table["alpha"], cv=StratifiedGroupKFold(4, shuffle=True, random_state=0), scoring="roc_auc",
        standardize=True,
    ).fit(X, y, groups=cars["driver"])  # fmt: skip
    np.testing.assert_allclose(table["mean_roc_auc"], twin.cv_results_.mean, rtol=1e-3)


def test_inspect_prints_the_model(cars):
    assert run("fit", "cars.csv", "--one-hot", "auto", "--drop", "driver", "--standardize").exit_code == 0
    done = run("inspect", "model.json")
    assert done.exit_code == 0, done.stderr
    for word in ("squared", "Lasso", "town (3)", "relative gap", "converged", "town_Ulm", "age", "standardised"):
        assert word in done.stdout
    refused(run("inspect", "cars.csv"), "not a fenchel model")
    refused(run("inspect", "nothing.json"), "nothing.json does not exist")


def test_a_coding_that_does_not_belong_to_the_model_is_refused(cars):
    assert run("fit", "cars.csv", "--one-hot", "auto", "--drop", "driver").exit_code == 0
    with open("model.json", encoding="utf-8") as file:
        content = json.load(file)
    for damaged in ({"columns": ["town"], "levels": {}, "means": {}}, [], {"columns": 3}, {
        "columns": content["coding"]["columns"], "levels": {"town": [1]}, "means": {}}):  # fmt: skip
        with open("broken.json", "w", encoding="utf-8") as file:
            json.dump({**content, "coding": damaged}, file)
        refused(run("predict", "broken.json", "cars.csv"), "broken fenchel model: .*coding|levels of 'town'")


@pytest.mark.parametrize(
    "args, message",
    [
        (["fit", "cars.csv"], "cars.csv, line 2: column 'town' holds .*--one-hot auto .*--drop town"),
        (["fit", "gaps.csv", "--one-hot", "auto"], "gaps.csv, line 9: column 'town' has no value; --missing mean"),
        (["cv", "cars.csv", "--scoring", "roc"], "--scoring is 'roc'; did you mean 'roc_auc'"),
        (["cv", "cars.csv", "--one-hot", "auto", "--scoring", "roc_auc"], "--scoring roc_auc does not go with"),
        (["cv", "cars.csv", "--one-hot", "auto", "--cv-groups", "drivr"], "--cv-groups is 'drivr', which is"),
        (["cv", "cars.csv", "--one-hot", "auto", "--cv-groups", "kind"], "--folds is 5, but --cv-groups has 2"),
        (["cv", "cars.csv", "--one-hot", "auto", "--cv-groups", "cost"], "--cv-groups names 'cost', .*target"),
        (["fit", "cars.csv", "--one-hot", "auto", "--memory", "1GB"], "--one-hot reads all rows at once"),
        (["fit", "cars.csv", "--penalty", "group-lasso", "--drop", "town", "--drop", "kind", "--drop", "driver"],
         "needs --groups, --groups-by, or --one-hot auto"),
    ],
)  # fmt: skip
def test_mistakes(cars, args, message):
    refused(run(*args), message)


def test_warm_up_compiles_what_is_asked_for():
    done = run("warmup", "lasso")
    assert done.exit_code == 0 and done.stdout.startswith("lasso: ") and done.stdout.count("\n") == 1
    refused(run("warmup", "imges"), "'imges' is nothing to warm up; did you mean 'images'")


def test_proportions_that_are_none_are_told_by_their_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.standard_normal(40), "share": rng.random(40)})
    frame.loc[5, "share"] = 1.5
    frame.to_csv("shares.csv", index=False)
    refused(run("fit", "shares.csv", "--loss", "logistic"), r"all must lie in \[0, 1\], and row 5 holds 1.5")
