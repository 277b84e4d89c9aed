"""Survival times on the command line."""

import re

import numpy as np
import pytest

import fenchel as fl
from fenchel import cli
from fenchel.models import Model

testing = pytest.importorskip("typer.testing", reason="the command line needs typer (fenchel[cli])")
pd = pytest.importorskip("pandas", reason="these tests write CSV files with pandas (fenchel[io])")

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 4))
LIFE, END = rng.exponential(np.exp(-X @ [0.9, -0.5, 0.0, 0.0])), rng.exponential(2.0, 120)
Y = np.column_stack([np.minimum(LIFE, END), LIFE <= END])
SITE = rng.choice(["north", "south"], 120)


def run(*args):
    return testing.CliRunner().invoke(cli.make_app(), [str(arg) for arg in args])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pd.DataFrame(X, columns=list("abcd")).assign(site=SITE, died=Y[:, 1].astype(int), days=Y[:, 0])
    table.to_csv("study.csv", index=False)
    table.drop(columns="site").to_csv("plain.csv", index=False)
    return tmp_path


SURVIVAL = ("--time", "days", "--event", "died")


def test_from_fit_to_predictions(folder):
    found = run("fit", "study.csv", *SURVIVAL, "--strata", "site", "--ties", "efron", "--alpha", 0.02, "-o", "m.json",
                "--report", "page.html")  # fmt: skip
    assert found.exit_code == 0, found.stderr
    model = Model.load("m.json")
    own = fl.CoxRegressor(alpha=0.02, ties="efron").fit(X, Y, strata=SITE)
    np.testing.assert_allclose(model.coef, own.coef_, atol=1e-6)
    assert model.loss == "cox" and model.loss_params == {"ties": "efron"} and model.target == ["days", "died"]
    assert "Cox" in (folder / "page.html").read_text()
    printed = run("predict", "m.json", "study.csv")
    np.testing.assert_allclose([float(cell) for cell in printed.stdout.split()[1:]], X @ own.coef_, atol=1e-5)
    assert f"concordance {own.score(X, Y):.6g} on 120 rows" in printed.stderr


def test_paths_and_cross_validation(folder):
    assert run("path", "plain.csv", *SURVIVAL, "--n-alphas", 4, "--standardize", "--report", "p.html").exit_code == 0
    found = run("cv", "plain.csv", *SURVIVAL, "--n-alphas", 4, "--folds", 3, "-o", "m.json", "--report", "c.html")
    assert found.exit_code == 0, found.stderr
    assert Model.load("m.json").coef.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--loss", "cox"), "--loss cox needs --time and --event"),
        (("--time", "days"), "--time is given without --event"),
        (("--event", "died"), "--event is given without --time"),
        ((*SURVIVAL, "--target", "a"), "--target is 'a', but --time and --event are the target"),
        ((*SURVIVAL, "--loss", "logistic"), "--time does not go with the loss 'logistic'"),
        (("--strata", "a", "--target", "b", "--loss", "squared"), "--strata does not go with the loss 'squared'"),
        (("--time", "a", "--event", "died"), "plain.csv: y has the time .* in row .*; times must be positive"),
        (("--time", "days", "--event", "a"), "plain.csv: y has the event .* it must be 0"),
        ((*SURVIVAL, "--ties", "exact"), "ties is 'exact'"),
        ((*SURVIVAL, "--quantile", "0.5"), "--quantile does not go with the loss 'cox'"),
        ((*SURVIVAL, "--task", "a"), "--task does not go with the loss 'cox'"),
    ],
)
def test_what_newcomers_get_wrong(folder, options, message):
    found = run("fit", "plain.csv", *options)
    assert found.exit_code == 2 or found.exit_code == 1
    assert re.search(message, str(found.exception) + found.stderr), (found.exception, found.stderr)
