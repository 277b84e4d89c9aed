"""Likelihoods in the estimators: scikit-learn's answers, D^2, means, saved models and the command line."""

import numpy as np
import pytest
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor

import fenchel as fl
from fenchel.models import Model

rng = np.random.default_rng(4)
X = rng.standard_normal((150, 5))
MEAN = np.exp(X @ [0.5, -0.4, 0.3, 0.0, 0.0] + 0.4)
WEIGHT = rng.uniform(0.5, 2.0, 150)
COUNTS = rng.poisson(MEAN).astype(float)
AMOUNTS = rng.gamma(2.0, MEAN / 2.0)
TOTALS = COUNTS * rng.gamma(2.0, 0.5, 150)


@pytest.mark.parametrize(
    ("loss", "y", "theirs"),
    [
        ("poisson", COUNTS, PoissonRegressor()),
        ("gamma", AMOUNTS, GammaRegressor()),
        (fl.Tweedie(1.4), TOTALS, TweedieRegressor(power=1.4, link="log")),
    ],
    ids=["poisson", "gamma", "tweedie"],
)
def test_ridge_as_in_scikit_learn(loss, y, theirs):
    theirs.set_params(alpha=0.1, tol=1e-10, max_iter=10_000).fit(X, y, sample_weight=WEIGHT)
    ours = fl.StructuredRegressor(loss, fl.Ridge(), alpha=0.1, tol=1e-10).fit(X, y, sample_weight=WEIGHT)
    assert np.allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-5)
    assert np.allclose(ours.predict(X), theirs.predict(X), rtol=1e-4)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-6)
    assert ours.score(X, y, sample_weight=WEIGHT) == pytest.approx(theirs.score(X, y, sample_weight=WEIGHT), abs=1e-6)


def test_negative_binomial_between_poisson_and_its_own(tmp_path):
    """With a large theta it is Poisson's; with a small one large counts weigh less."""
    poisson = fl.StructuredRegressor("poisson", alpha=0.02, tol=1e-9).fit(X, COUNTS)
    close = fl.StructuredRegressor(fl.NegativeBinomial(1e9), alpha=0.02, tol=1e-9).fit(X, COUNTS)
    far = fl.StructuredRegressor(fl.NegativeBinomial(0.5), alpha=0.02, tol=1e-9).fit(X, COUNTS)
    assert np.allclose(close.coef_, poisson.coef_, atol=1e-4)
    assert close.score(X, COUNTS) == pytest.approx(poisson.score(X, COUNTS), abs=1e-5)
    assert not np.allclose(far.coef_, poisson.coef_, atol=1e-2)


def test_the_constant_of_d2_keeps_the_offset():
    """A model that knows nothing but the exposure explains nothing."""
    exposure = rng.uniform(0.1, 5.0, 150)
    y = rng.poisson(exposure).astype(float)
    model = fl.StructuredRegressor("poisson", alpha=10.0).fit(X, y, offset=np.log(exposure))
    assert not model.coef_.any()
    assert model.score(X, y, offset=np.log(exposure)) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("loss", [fl.Gamma(), fl.Tweedie(1.3), fl.NegativeBinomial(2.0)], ids=repr)
def test_saved_models(tmp_path, loss):
    y = AMOUNTS if isinstance(loss, fl.Gamma) else COUNTS
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1(), alpha=0.05, fit_intercept=True)
    result = fl.solve(problem)
    Model.from_result(result, problem, tol=1e-6).save(tmp_path / "model.json")
    again = Model.load(tmp_path / "model.json")
    assert np.array_equal(again.predict(X), np.exp(X @ result.coef + result.intercept))
    name, value = again.score(again.predict(X), y, again.decision(X))
    assert name == "D^2" and 0 < value < 1


@pytest.mark.parametrize("loss", ["gamma", "tweedie", "negative-binomial"])
def test_paths_and_cross_validation(loss):
    y = AMOUNTS if loss == "gamma" else TOTALS if loss == "tweedie" else COUNTS
    model = fl.StructuredRegressorCV(loss, fl.GroupLasso([[0, 1, 2], [3, 4]]), n_alphas=8, cv=3).fit(X, y)
    assert model.cv_results_.converged.all() and model.score(X, y) > 0.2
    sparse = fl.StructuredRegressor(loss, fl.FusedLasso(), alpha=0.01).fit(X, y)
    assert sparse.status_ is fl.Status.CONVERGED


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        ("gamma", COUNTS, r"y\[\d+\] is 0; Gamma takes numbers above 0"),
        ("tweedie", -AMOUNTS, r"y\[0\] is -.*Tweedie takes numbers not below 0"),
        ("negative-binomial", -AMOUNTS, "NegativeBinomial takes counts"),
        ("inverse-gaussian", AMOUNTS, r"not convex .* take Gamma"),
        ("gama", AMOUNTS, "did you mean 'gamma'"),
    ],
)
def test_bad_input(loss, y, message):
    with pytest.raises(ValueError, match=message):
        fl.StructuredRegressor(loss).fit(X, y)


def test_command_line(tmp_path, monkeypatch):
    testing = pytest.importorskip("typer.testing", reason="the command line needs typer (fenchel[cli])")
    pd = pytest.importorskip("pandas", reason="this test writes a CSV file with pandas (fenchel[io])")
    from fenchel import cli

    def run(*args):
        return testing.CliRunner().invoke(cli.make_app(), [str(arg) for arg in args])

    monkeypatch.chdir(tmp_path)
    pd.DataFrame(X, columns=list("abcde")).assign(total=TOTALS).to_csv("claims.csv", index=False)
    found = run("fit", "claims.csv", "-o", "model.json", "--loss", "tweedie", "--power", 1.4, "--alpha", 0.02)
    assert found.exit_code == 0, found.stderr
    assert Model.load("model.json").loss_params == {"power": 1.4}
    assert "D^2 0." in run("predict", "model.json", "claims.csv").stderr
    found = run("fit", "claims.csv", "--loss", "gamma")
    assert found.exit_code == 2 and "Gamma takes numbers above 0" in found.stderr
    found = run("fit", "claims.csv", "--loss", "tweedie", "--power", 3)
    assert found.exit_code == 2 and "not convex" in found.stderr
    found = run("fit", "claims.csv", "--loss", "poisson", "--theta", 3)
    assert found.exit_code == 2 and "--theta does not go with the loss 'poisson'" in found.stderr


def test_the_logistic_loss_takes_proportions():
    """Shares of trials count as so many rows with a label each."""
    rng = np.random.default_rng(8)
    trials = rng.integers(1, 6, 150)
    successes = rng.binomial(trials, 1 / (1 + np.exp(-X[:, 0])))
    share, weight = fl.proportions(successes, trials)
    repeated = np.repeat(X, trials, axis=0)
    labels = np.concatenate([[1.0] * k + [-1.0] * (n - k) for k, n in zip(successes, trials, strict=True)])
    theirs = fl.solve(fl.Problem(repeated, labels, loss="logistic", penalty=fl.L1(), alpha=0.02), tol=1e-10)
    ours = fl.solve(
        fl.Problem(X, share, loss=fl.Logistic(), penalty=fl.L1(), alpha=0.02, sample_weight=weight), tol=1e-10
    )
    assert np.allclose(ours.coef, theirs.coef, atol=1e-5)
    model = fl.StructuredRegressor("logistic", fl.L1(), alpha=0.02, tol=1e-10, fit_intercept=False)
    model.fit(X, share, sample_weight=weight)
    assert np.allclose(model.coef_, theirs.coef, atol=1e-5)
    assert np.all((model.predict(X) > 0) & (model.predict(X) < 1)) and 0 < model.score(X, share) < 1
    for wrong in (1.3, -0.2):
        share[7] = wrong
        with pytest.raises(ValueError, match=rf"y\[7\] is {wrong}; .*or proportions, all of them from 0 to 1"):
            fl.Problem(X, share, loss="logistic")
        with pytest.raises(ValueError, match=rf"y\[7\] is {wrong}; Binomial takes proportions from 0 to 1"):
            model.fit(X, share)


def test_proportions_on_the_command_line(tmp_path):
    testing = pytest.importorskip("typer.testing", reason="the command line needs typer (fenchel[cli])")
    from fenchel import cli

    share = 1 / (1 + np.exp(-X[:, 0]))
    np.savetxt(tmp_path / "rate.csv", np.column_stack([X, share]), delimiter=",", header="a,b,c,d,e,y", comments="")
    args = ["fit", tmp_path / "rate.csv", "--target", "y", "--loss", "logistic", "--alpha", "0.01", "-o"]
    done = testing.CliRunner().invoke(cli.make_app(), [str(arg) for arg in [*args, tmp_path / "model.json"]])
    assert done.exit_code == 0 and "Binomial()" in done.output
    predicted = Model.load(tmp_path / "model.json").predict(X)
    assert np.corrcoef(predicted, share)[0, 1] > 0.99 and predicted.max() < 1
