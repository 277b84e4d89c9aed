"""Cox's model with an l1 penalty: fenchel and its peers on generated data, at one objective, in one run.

    python benchmarks/survival.py                       # 5,000 rows, 2,000 features
    python benchmarks/survival.py --rows 1000 --features 500 --ratio 0.05

Peers run in an environment of their own (made on first use, see `environments.py`), one after another, on one thread.
Each is given tolerances from loose to tight, and what counts is the processor time of the first run whose objective is
within `--gap` of fenchel's proven lower bound; the second of two runs, so that nobody pays for compiling. Coxnet may
also come down a path of ten alphas, which is its own way of warming up; the faster of the two counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

STOPS = tuple(10.0**-k for k in range(3, 13))  # tolerances that peers are given
PATH = 10  # alphas on the way down, of a peer that comes down a path
SPREAD, CENSORED = 0.6, 1.5  # of the coefficients that are not zero; and the mean of the times of censoring


def generate(rows: int, features: int, active: int, correlation: float, seed: int):
    """Exponential times whose logarithm of the hazard is linear in few of the features; about half are censored."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((rows, 1))
    X = np.sqrt(1 - correlation) * rng.standard_normal((rows, features)) + np.sqrt(correlation) * common
    coef = np.zeros(features)
    coef[rng.choice(features, active, replace=False)] = SPREAD * rng.standard_normal(active)
    life, censored = rng.exponential(np.exp(-X @ coef)), rng.exponential(CENSORED, rows)
    return X, np.minimum(life, censored), life <= censored


# -- the runners, each in its own process -----------------------------------------------------------


class Fenchel:
    name, environment, requirements, python = "fenchel", None, (), None
    stops = (1e-3, 1e-4, 1e-5, 1e-6, 1e-8)

    def prepare(self, X, time, event, alpha):
        self.X, self.y, self.alpha = X, np.column_stack([time, event]), alpha

    def run(self, stop):
        import fenchel as fl

        return fl.CoxRegressor(alpha=self.alpha, tol=stop).fit(self.X, self.y).coef_


class Coxnet:
    name, environment, requirements, python = "scikit-survival Coxnet", "survival", ("scikit-survival",), None
    stops = STOPS
    path = False

    def prepare(self, X, time, event, alpha):
        from sksurv.util import Surv

        self.X, self.y, self.alpha = np.asfortranarray(X), Surv.from_arrays(event, time), alpha

    def run(self, stop):
        from sksurv.linear_model import CoxnetSurvivalAnalysis

        alphas = self.alpha * np.geomspace(PATH, 1.0, PATH) if self.path else np.array([self.alpha])
        model = CoxnetSurvivalAnalysis(l1_ratio=1.0, alphas=alphas, tol=stop, max_iter=1_000_000)
        return model.fit(self.X, self.y).coef_[:, -1]


class CoxnetPath(Coxnet):
    name, path = "scikit-survival Coxnet, path", True


class Skglm:
    name, environment, requirements, python = "skglm", "survival", ("skglm",), None
    stops = STOPS

    def prepare(self, X, time, event, alpha):
        self.X, self.y, self.alpha = np.asfortranarray(X), np.column_stack([time, event]).astype(float), alpha

    def run(self, stop):
        from skglm.datafits import Cox
        from skglm.penalties import L1
        from skglm.solvers import ProxNewton

        solver = ProxNewton(fit_intercept=False, tol=stop, max_iter=200)
        return solver.solve(self.X, self.y, Cox(), L1(self.alpha))[0]


RUNNERS = {runner.name: runner for runner in (Fenchel, Coxnet, CoxnetPath, Skglm)}


def work(name: str, folder: Path, limit: float) -> None:
    """Run one of them at all tolerances, until a run takes longer than the limit."""
    import warnings

    warnings.simplefilter("ignore")
    runner, data = RUNNERS[name](), np.load(folder / "data.npz")
    runner.prepare(data["X"], data["time"], data["event"], float(data["alpha"]))
    runs = []
    runner.run(runner.stops[0])  # compiles
    for number, stop in enumerate(runner.stops):
        began = time.process_time()
        coef = runner.run(stop)
        runs.append({"stop": stop, "seconds": time.process_time() - began})
        np.save(folder / f"coef-{number}.npy", coef)
        if runs[-1]["seconds"] > limit:
            break
    (folder / "runs.json").write_text(json.dumps(runs))


# -- the judge --------------------------------------------------------------------------------------


def compare(args) -> list[dict]:
    from environments import CannotInstall, Environments, cache_folder

    import fenchel as fl

    X, times, event = generate(args.rows, args.features, args.active, args.correlation, args.seed)
    problem = fl.Problem(X, np.column_stack([times, event]), loss="cox", penalty=fl.L1(), alpha=1.0)
    alpha = args.ratio * problem.alpha_max()
    problem = problem.with_alpha(alpha)
    bound = fl.solve(problem, tol=1e-9).dual
    runners = [runner() for name, runner in RUNNERS.items() if not args.only or name.startswith("fenchel") or
               any(one in name for one in args.only)]  # fmt: skip
    interpreters, rows = Environments(args.environments or cache_folder(), runners), []
    for runner in runners:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            np.savez(folder / "data.npz", X=X, time=times, event=event, alpha=alpha)
            command = [str(Path(__file__).resolve()), "--worker", runner.name, str(folder), "--limit", str(args.limit)]
            try:
                done = subprocess.run([interpreters.interpreter(runner), *command], capture_output=True, text=True)
            except CannotInstall as why:
                rows.append({"name": runner.name, "why": str(why)})
                continue
            if done.returncode:
                rows.append({"name": runner.name, "why": (done.stderr.strip().splitlines() or ["failed"])[-1]})
                continue
            for number, run in enumerate(json.loads((folder / "runs.json").read_text())):
                coef = np.load(folder / f"coef-{number}.npy")
                excess = problem.primal(coef) / bound - 1.0
                rows.append({"name": runner.name, **run, "excess": excess, "nonzero": int(np.count_nonzero(coef))})
    return rows


def report(rows: list[dict], gap: float) -> None:
    best = {}
    for row in rows:
        if "why" in row:
            print(f"{row['name']}: {row['why']}")
            continue
        print(f"{row['name']:32} tol {row['stop']:.0e}  {row['seconds']:8.3f} s  objective {row['excess']:+.1e} of the "
              f"bound, {row['nonzero']} coefficients")  # fmt: skip
        if row["excess"] <= gap and row["seconds"] < best.get(row["name"], np.inf):
            best[row["name"]] = row["seconds"]
    own = best.get("fenchel")
    print(f"\nto an objective within {gap:g} of the proven bound, processor seconds:")
    for name in dict.fromkeys(row["name"] for row in rows):
        found = best.get(name)
        ratio = "" if own is None or found is None else f"  {found / own:7.1f} times fenchel"
        print(f"  {name:32}" + (f"{found:8.3f} s{ratio}" if found is not None else "  did not get there"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=2000)
    parser.add_argument("--active", type=int, default=50, help="coefficients that are not zero in truth")
    parser.add_argument("--correlation", type=float, default=0.2, help="of any two features")
    parser.add_argument("--ratio", type=float, default=0.1, help="alpha as a share of the largest useful one")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--gap", type=float, default=1e-6)
    parser.add_argument("--limit", type=float, default=60.0, help="processor seconds of a run after which a peer ends")
    parser.add_argument("--only", action="append", help="a peer, by a part of its name; may be repeated")
    parser.add_argument("--environments", type=Path, help="where the environments of the peers are")
    parser.add_argument("--worker", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker[0], Path(args.worker[1]), args.limit)
        return
    report(compare(args), args.gap)


if __name__ == "__main__":
    main()
