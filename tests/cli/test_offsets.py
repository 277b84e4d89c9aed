"""Offsets on the command line: counts by exposure, from files of every kind."""

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
EXPOSURE = rng.uniform(0.1, 3.0, 120)
COUNTS = rng.poisson(EXPOSURE * np.exp(X @ [0.6, -0.4, 0.0, 0.0] - 0.3)).astype(float)


def run(*args):
    return testing.CliRunner().invoke(cli.make_app(), [str(arg) for arg in args])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=list("abcd")).assign(exposure=EXPOSURE, claims=COUNTS).to_csv("claims.csv", index=False)
    np.savez("claims.npz", X=X, y=COUNTS, exposure=EXPOSURE)
    np.savetxt("exposure.txt", EXPOSURE)
    with open("claims.svm", "w") as file:
        for row, count in zip(X.tolist(), COUNTS, strict=True):
            file.write(f"{count:g} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row)) + "\n")
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "npz", "svm"])
def test_from_fit_to_predictions(folder, kind):
    offset = "log(exposure.txt)" if kind == "svm" else "log(exposure)"
    data = f"claims.{kind}"
    assert run("fit", data, "-o", "model.json", "--loss", "poisson", "--offset", offset, "--alpha", 0.05).exit_code == 0
    model = Model.load("model.json")
    own = fl.StructuredRegressor("poisson", alpha=0.05).fit(X, COUNTS, offset=np.log(EXPOSURE))
    assert model.offset == offset and np.allclose(model.coef, own.coef_, atol=1e-4)
    printed = run("predict", "model.json", data).stdout.split()
    assert printed[0] == "prediction"
    assert np.allclose([float(cell) for cell in printed[1:]], own.predict(X, offset=np.log(EXPOSURE)), rtol=1e-3)
    with pytest.raises(ValueError, match="was fitted with the offset"):
        model.predict(X)
    assert np.allclose(model.predict(X, offset=0.0), own.predict(X, offset=0.0), rtol=1e-3)
    found = run("cv", data, "--loss", "poisson", "--offset", offset, "--folds", 3, "--n-alphas", 4)
    assert found.exit_code == 0, found.stderr


@pytest.mark.parametrize(
    ("offset", "message"),
    [
        (
            "log(exposure)",
            "line 4: column 'exposure' holds 0; an exposure must be above 0 .*; leave such rows out",
        ),
        ("claims", "offset names 'claims', which is the target"),
        ("log(expsure)", "'expsure' is neither a column of .* nor a file"),
    ],
)
def test_bad_offsets(folder, offset, message):
    frame = pd.read_csv("claims.csv")
    frame.loc[2, "exposure"] = 0.0
    frame.to_csv("claims.csv", index=False)
    found = run("fit", "claims.csv", "--loss", "poisson", "--offset", offset)
    assert found.exit_code == 2 and re.search(message, found.stderr), found.stderr


def test_new_rows_need_the_column(folder):
    assert run("fit", "claims.csv", "-o", "model.json", "--loss", "poisson", "--offset", "log(exposure)").exit_code == 0
    pd.read_csv("claims.csv").drop(columns="exposure").to_csv("new.csv", index=False)
    found = run("predict", "model.json", "new.csv")
    assert found.exit_code == 2 and "'exposure' is neither a column of new.csv nor a file" in found.stderr
    assert run("predict", "model.json", "new.csv", "--offset", "log(exposure.txt)").exit_code == 0
