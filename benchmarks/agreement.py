"""The likelihoods against the packages that have them, without a penalty or with one of theirs: the same coefficients.

    python benchmarks/agreement.py                      those that are installed; others are named and left out
    python benchmarks/agreement.py --only statsmodels

Packages: statsmodels, glum, scikit-survival, lifelines, skglm, scikit-learn. Each is asked for its tightest tolerance;
fenchel's gap is 1e-13 of the objective, so that coefficients differ by the root of that at the most, times the
condition of the problem. A difference above 1e-5 is an error (exit status 1).
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import fenchel as fl

MOST, TOL = 1e-5, 1e-13
Row = tuple[str, Any, Any]


class Data:
    """Rows with a Poisson rate, an exposure, classes and times."""

    def __init__(self, rows: int = 300, features: int = 6, seed: int = 5) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.X = X = rng.standard_normal((rows, features))
        self.offset = np.log(rng.random(rows) + 0.2)
        self.mean = np.exp(self.offset + 0.3 * X @ rng.standard_normal(features) - 0.2)
        self.counts = rng.poisson(self.mean).astype(float)
        self.claims = self.mean * rng.gamma(3, 1 / 3, rows) + 1e-9
        self.some = self.claims * (rng.random(rows) < 0.7)
        self.trials = rng.integers(1, 9, rows)
        self.successes = rng.binomial(self.trials, 1 / (1 + np.exp(-X[:, 0])))
        self.classes = (X @ rng.standard_normal((features, 3)) + rng.gumbel(size=(rows, 3))).argmax(axis=1)
        self.times, self.events = rng.exponential(np.exp(-X[:, 0])), rng.random(rows) < 0.6


def fitted(data: Data, loss: Any, y: Any, penalty: Any = None, alpha: float = 0.0, **given: Any) -> Any:
    model = fl.StructuredRegressor(loss, fl.L1() if penalty is None else penalty, alpha=alpha, tol=TOL)
    model.fit(data.X, y, **given)
    return np.append(model.coef_, model.intercept_)


def cox(data: Data, times: Any, alpha: float = 0.0, **given: Any) -> Any:
    return fl.CoxRegressor(alpha=alpha, tol=TOL, **given).fit(data.X, np.column_stack([times, data.events])).coef_


def statsmodels(data: Data) -> Iterator[Row]:
    api: Any = importlib.import_module("statsmodels.api")
    families, Z = api.families, api.add_constant(data.X)
    log = families.links.Log()
    for what, family, loss, y in (
        ("Poisson", families.Poisson(log), "poisson", data.counts),
        ("gamma", families.Gamma(log), "gamma", data.claims),
        ("Tweedie", families.Tweedie(log, var_power=1.5), fl.Tweedie(1.5), data.some),
        ("negative binomial", families.NegativeBinomial(log, alpha=0.5), fl.NegativeBinomial(2.0), data.counts),
    ):
        theirs = api.GLM(y, Z, family=family, offset=data.offset).fit(tol=1e-14, maxiter=300).params
        yield f"{what}, offset", fitted(data, loss, y, offset=data.offset), np.roll(theirs, -1)
    share, weight = fl.proportions(data.successes, data.trials)
    pairs = np.column_stack([data.successes, data.trials - data.successes])
    theirs = api.GLM(pairs, Z, family=families.Binomial()).fit(tol=1e-14).params
    yield "binomial counts", fitted(data, "logistic", share, sample_weight=weight), np.roll(theirs, -1)
    model = fl.StructuredClassifier(penalty=fl.L1(), alpha=0.0, tol=TOL).fit(data.X, data.classes)
    theirs = api.MNLogit(data.classes, Z).fit(disp=0, maxiter=300, gtol=1e-12).predict(Z)
    yield "softmax, probabilities", model.predict_proba(data.X), theirs
    times = np.ceil(10 * data.times)
    for ties in ("breslow", "efron"):
        theirs = api.PHReg(times, data.X, status=data.events.astype(int), ties=ties).fit().params
        yield f"Cox, {ties}", cox(data, times, ties=ties), theirs


def glum(data: Data) -> Iterator[Row]:
    package: Any = importlib.import_module("glum")
    for what, family, loss, y, offset in (
        ("Poisson, offset", "poisson", "poisson", data.counts, data.offset),
        ("gamma", "gamma", "gamma", data.claims, None),
        ("Tweedie", package.TweedieDistribution(1.5), fl.Tweedie(1.5), data.some, None),
    ):
        for share in (1.0, 0.5):
            given = {"link": "log", "alpha": 0.05, "l1_ratio": share, "gradient_tol": 1e-11}
            made = package.GeneralizedLinearRegressor(family=family, **given).fit(data.X, y, offset=offset)
            ours = fitted(data, loss, y, fl.ElasticNet(share), 0.05, offset=offset)
            yield f"{what}, l1_ratio {share}", ours, np.append(made.coef_, made.intercept_)


def sksurv(data: Data) -> Iterator[Row]:
    linear: Any = importlib.import_module("sksurv.linear_model")
    lives = importlib.import_module("sksurv.util").Surv.from_arrays(data.events, data.times)
    made = linear.CoxnetSurvivalAnalysis(l1_ratio=1.0, alphas=[0.03], tol=1e-14, max_iter=1_000_000)
    yield "Coxnet", cox(data, data.times, 0.03), made.fit(data.X, lives).coef_[:, 0]


def lifelines(data: Data) -> Iterator[Row]:
    import pandas as pd

    package: Any = importlib.import_module("lifelines")
    frame = pd.DataFrame(data.X).add_prefix("feature ").assign(time=data.times, event=data.events.astype(int))
    made = package.CoxPHFitter().fit(frame, "time", "event", fit_options={"precision": 1e-13})
    yield "Cox, efron", cox(data, data.times, ties="efron"), made.params_.to_numpy()


def skglm(data: Data) -> Iterator[Row]:
    datafits, penalties, solvers = (importlib.import_module(f"skglm.{name}") for name in _SKGLM)
    y = np.column_stack([data.times, data.events]).astype(float)
    solver: Any = solvers.ProxNewton(fit_intercept=False, tol=1e-12, max_iter=300)
    found = solver.solve(np.asfortranarray(data.X), y, datafits.Cox(), penalties.L1(0.03))[0]
    yield "Cox, l1", cox(data, data.times, 0.03), found


def sklearn(data: Data) -> Iterator[Row]:
    linear: Any = importlib.import_module("sklearn.linear_model")
    for what, kind, loss, y in (
        ("Poisson", linear.PoissonRegressor, "poisson", data.counts),
        ("gamma", linear.GammaRegressor, "gamma", data.claims),
    ):
        made = kind(alpha=0.1, tol=1e-12, max_iter=5000, solver="newton-cholesky").fit(data.X, y)
        yield f"{what}, ridge", fitted(data, loss, y, fl.Ridge(), 0.1), np.append(made.coef_, made.intercept_)
    made = linear.LogisticRegression(C=1 / (0.1 * len(data.X)), tol=1e-12, max_iter=10_000, solver="newton-cg")
    ours = fl.StructuredClassifier(penalty=fl.Ridge(), alpha=0.1, tol=TOL).fit(data.X, data.classes)
    theirs = made.fit(data.X, data.classes)
    yield "softmax, ridge, probabilities", ours.predict_proba(data.X), theirs.predict_proba(data.X)


_SKGLM = ("datafits", "penalties", "solvers")
PEERS = {function.__name__: function for function in (statsmodels, glum, sksurv, lifelines, skglm, sklearn)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=list(PEERS), action="append")
    options, worst = parser.parse_args(), 0.0
    warnings.simplefilter("ignore")
    for name in options.only or PEERS:
        try:
            for what, ours, theirs in PEERS[name](Data()):
                apart = float(np.abs(np.asarray(ours) - np.asarray(theirs)).max())
                worst = max(worst, apart)
                print(f"{name:12} {what:32} largest difference {apart:.1e}", flush=True)
        except ImportError as why:
            print(f"{name:12} left out: {why}")
    return int(not worst <= MOST)


if __name__ == "__main__":
    sys.exit(main())
