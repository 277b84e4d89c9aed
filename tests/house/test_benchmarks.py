"""The benchmark against the peers: its objective is fenchel's, its prox is right, and its runner runs."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl

FOLDER = pathlib.Path(__file__).parents[2] / "benchmarks"
MODULES = ("run", "objective", "solving", "worker", "results", "report", "environments", "composite_prox",
           "fenchel_model", "growth", "tuning", "breakdown", "compare", "separable", "separable_problem",
           "separable_report", "families", "real_data", "fenchel_separable", "specialist_worker",
           "calibrate", "rivals", "structured", "tasks", "softmax_families", "wide")  # fmt: skip


@pytest.fixture(scope="module")
def bench():
    """The folder's modules; their names are plain, so they leave again."""
    sys.path.insert(0, str(FOLDER))
    before, variables = set(sys.modules), dict(os.environ)
    try:
        yield {name: __import__(name) for name in MODULES if name != "worker"}  # worker.py sets the environment
    finally:
        sys.path.remove(str(FOLDER))
        os.environ.clear()
        os.environ.update(variables)  # some of them set the number of threads
        for name in set(sys.modules) - before:
            if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(FOLDER)):
                del sys.modules[name]


def examples(bench):
    """One small objective for each kind of term."""
    Objective, Term = bench["objective"].Objective, bench["objective"].Term
    grid = bench["run"].load(FOLDER / "datasets" / "total_variation.py").grid
    rng = np.random.default_rng(0)
    n, p = 30, 12
    X = rng.standard_normal((n, p))
    y = np.where(X[:, 0] + rng.standard_normal(n) >= 0, 1.0, -1.0)
    chain = np.column_stack([np.arange(p - 1), np.arange(1, p)])
    edges, cells = grid((3, 4))
    columns, rows = np.arange(p).reshape(3, 4), np.arange(p).reshape(3, 4).T
    overlapping = [np.arange(5), np.arange(3, 9), np.arange(8, 12)]
    some = [
        Objective(X, y, "smoothed-hinge", [Term(p, np.full(3, 0.05), list(columns), ridge=0.02),
                                           Term(p, np.full(4, 0.04), list(rows))]),
        Objective(sp.csr_matrix(X * (np.abs(X) > 0.7)), y, "logistic",
                  [Term(p, np.full(p, 0.02), ridge=0.01), Term(p, np.full(p - 1, 0.03), edges=chain, ridge=0.02)]),
        Objective(X, y, "squared", [Term(p, np.linspace(0.01, 0.1, 3), overlapping)]),
        Objective(X, y, "logistic", [Term(p, np.full(p, 0.01)),
                                     Term(p, np.full(len(cells), 0.02), cells, edges, grid=(3, 4))]),
        Objective(X, y, "logistic", [Term(p, rng.random(p))]),
        Objective(X, y, "logistic", [Term(p, 0.05 * rng.random(p)), Term(p, np.full(3, 0.05), list(columns))]),
    ]  # fmt: skip
    return some


@pytest.mark.parametrize("kind", range(6))
def test_objective_is_fenchels(bench, kind, tmp_path):
    """Value, gradient and file: the judge and fenchel mean the same problem."""
    objective = examples(bench)[kind]
    objective.save(tmp_path / "one.npz")
    loaded = bench["objective"].Objective.load(tmp_path / "one.npz")
    problem, rng = bench["fenchel_model"].problem(objective), np.random.default_rng(1)
    for _ in range(3):
        w, d = rng.standard_normal((2, objective.p))
        assert objective.value(w) == pytest.approx(problem.primal(w), rel=1e-12)
        assert loaded.value(w) == objective.value(w)
        value, gradient = objective.smooth(w)
        slope = (objective.smooth_value(w + 1e-6 * d) - objective.smooth_value(w - 1e-6 * d)) / 2e-6
        assert value == pytest.approx(objective.smooth_value(w)) and gradient @ d == pytest.approx(slope, rel=1e-6)
        bound = objective.lipschitz() * np.linalg.norm(1e-3 * d)
        assert np.linalg.norm(objective.smooth_gradient(w + 1e-3 * d) - gradient) <= bound


@pytest.mark.parametrize("kind", range(6))
def test_composite_prox(bench, kind):
    """The prox that peers are given is the minimiser, by the subgradient inequality in many directions."""
    objective, rng = examples(bench)[kind], np.random.default_rng(2)
    prox = bench["composite_prox"].CompositeProx(objective, share=0.0, most=20_000)

    def norms(w):
        return sum(float(term.weights @ term.norms(term.matrix @ w)) for term in objective.terms)

    for step in (3.0, 0.5):
        v = rng.standard_normal(objective.p)
        w = prox(v, step)

        def value(u, v=v, step=step):
            return 0.5 * np.sum((u - v) ** 2) + step * norms(u)

        for size in (1.0, 1e-2, 1e-4):
            others = w + size * rng.standard_normal((50, objective.p))
            # strongly convex: any other point is worse by half the squared distance
            assert all(value(u) >= value(w) + 0.5 * np.sum((u - w) ** 2) - 1e-10 for u in others)


def installed(solver):
    from importlib import metadata

    try:
        return bool(metadata.version(solver.package))
    except metadata.PackageNotFoundError:
        return False


@pytest.mark.parametrize("stem", sorted(path.stem for path in (FOLDER / "solvers").glob("*.py")))
def test_solvers(bench, stem):
    """Every solver that is installed finds the optimum of the examples that it takes."""
    solver = bench["run"].load(FOLDER / "solvers" / f"{stem}.py").Solver()
    assert solver.name and solver.package and solver.requirements and solver.sampling in ("callback", "tolerance")
    objectives = [one for one in examples(bench) if solver.skip(one) is None]
    reasons = [solver.skip(one) for one in examples(bench)]
    assert all(reason is None or reason.strip() for reason in reasons)
    if not installed(solver):
        pytest.skip(f"{solver.package} is not installed")
    import time

    for objective in objectives:
        best = fl.solve(bench["fenchel_model"].problem(objective), tol=1e-11, max_epochs=100_000).primal
        values = []
        solver.warm_up(objective)
        solver.set_objective(objective)
        if solver.sampling == "callback":
            record = bench["solving"].Recorder(
                objective, best, 20.0, time.perf_counter, lambda e, values=values: values.append(e["value"])
            )
            try:
                solver.run(record)
            except bench["solving"].Done:
                pass
        else:
            values += [objective.value(solver.run(stop)) for stop in solver.stops]
        assert min(values) <= best + 1e-6 * abs(best), objective.loss
        assert min(values) >= best - 1e-9 * abs(best)


def test_names(bench):
    """Names are told apart, and every problem has its line on the page."""
    solvers, problems = bench["run"].find_solvers(), bench["run"].find_problems()
    assert bench["results"].OURS in solvers
    assert len({solver.name for solver in solvers.values()}) == len(solvers)
    listed = {name for name, problem in problems.items() if not problem.hidden}
    assert listed == set(bench["report"].WHAT)
    assert any(problem.quick for problem in problems.values())


def run(folder, *arguments):
    places = ["--results", str(folder / "results"), "--cache", str(folder / "cache")]
    command = [sys.executable, str(FOLDER / "run.py"), "--current", "--limit", "10", *places, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_runner(tmp_path):
    """Two solvers in turns, one that is not installed, a page; and the same command again has nothing left to do."""
    pytest.importorskip("sklearn", minversion="1.8", reason="the peer's own environment has it at least")
    solvers = ["--solver", "sklearn_liblinear", "--solver", "adelie_grpnet"]
    command = ["--problem", "tiny-l1", "--repetitions", "2", "--page", str(tmp_path / "page.md"), *solvers]
    done = run(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "results" / "runs.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    by_solver = {stem: [r for r in runs if r["solver"] == stem] for stem in {r["solver"] for r in runs}}
    assert [r["repetition"] for r in by_solver["fenchel_default"]] == [0, 1]
    for one in by_solver["fenchel_default"]:
        assert one["status"] == "done"
        for tolerance, (seconds, gap, _) in one["certified"].items():
            assert gap <= float(tolerance) and seconds > 0
        assert set(one["certified"]) == {"0.001", "1e-06", "1e-09"}
    best = min(point[1] for one in runs for point in one["points"])
    assert min(point[1] for point in by_solver["sklearn_liblinear"][0]["points"]) <= best * (1 + 1e-6)
    (missing,) = by_solver["adelie_grpnet"] if len(by_solver["adelie_grpnet"]) == 1 else (None,)
    assert missing is None or "adelie" in missing["status"]  # its absence is written down, once

    page = (tmp_path / "page.md").read_text()
    assert "tiny-l1" in page and "fenchel, certified" in page
    pictures = sorted((tmp_path / "images").glob("*.png"))
    assert [p.name for p in pictures] == ["benchmarks-ratios.png", "benchmarks-tiny-l1.png"]
    assert all(p.stat().st_size < 200_000 for p in pictures)
    assert (tmp_path / "results" / "times.csv").read_text().count("tiny-l1") >= 9

    again = run(tmp_path, *command)
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "results" / "runs.jsonl").read_text().splitlines() == lines


def test_unknown_names(tmp_path):
    done = run(tmp_path, "--problem", "no-such")
    assert done.returncode != 0 and "'no-such' is unknown; there are" in done.stderr


# -- growth and tuning ------------------------------------------------------------------------------------------------


def test_growth(bench, tmp_path):
    """Points are measured in processes of their own and in this one alike; the page shows them all."""
    growth = bench["growth"]
    curves = {
        "dense-100": [{"n": 60, "p": 20}, {"n": 120, "p": 20}],
        "graph": [{"n": 80, "p": 100, "entries": 5, "repeats": 1}],
    }
    results = growth.run(curves, tmp_path / "growth.json", lambda point: growth.measure(**point))
    assert json.loads((tmp_path / "growth.json").read_text()) == results
    points = results["dense-100"] + results["graph"]
    assert all(q["gap"] <= growth.TOLERANCE and q["converged"] and q["passes"] > 0 for q in points)
    assert [q["d"] for q in points] == [80, 80, 400]
    again = growth.in_process(curves["graph"][0])
    assert again["passes"] == points[-1]["passes"]
    assert again["gap"] == pytest.approx(points[-1]["gap"], rel=1e-6)  # threads add up in another order

    command = ["--report", "--results", str(tmp_path / "growth.json"), "--page", str(tmp_path / "growth.md")]
    growth.main(command)
    page = (tmp_path / "growth.md").read_text()
    assert all(f"| {key} |" in page for key in ("60", "120", "100 / 300"))
    assert (tmp_path / "images" / "growth-curves.png").stat().st_size < 200_000


def test_growth_slope(bench):
    points = [{"n": n, "build": 0.0, "solve": 1e-6 * n**1.5} for n in (10, 100, 1000)]
    assert bench["growth"].slope(points) == pytest.approx(1.5)


def test_tuning(bench):
    """The best of a grid is no worse than the default, and its run can be repeated."""
    tuning = bench["tuning"]
    problem = tuning.make("overlapping-groups")
    row = tuning.compare(problem, 1e-6, newton=False, factors=(0.3, 1.0, 3.0), sizes=(10, 50)) | {"problem": "one"}
    assert row["ratio"] == row["passes"] / row["best_passes"] >= 1
    if row["best_rho"] is not None:
        options = {"newton": False, "rho": row["best_rho"], "block_size": row["best_block"]}
        assert tuning.run(problem, 1e-6, 1000, **options)[1] == row["best_passes"]
    assert str(row["passes"]) in tuning.line(row)
    assert set(tuning.QUICK) <= set(tuning.LISTED)
    problems = bench["run"].find_problems()
    assert {name for name in problems if not problems[name].hidden} <= set(tuning.LISTED)


def test_tuning_page(bench, tmp_path, monkeypatch):
    """A table that was written is read again as it was, and becomes a page."""
    tuning = bench["tuning"]
    made = dict.fromkeys(tuning.FIELDS)
    rows = {
        1e-3: made | {"tol": 1e-3, "passes": 20, "rho": 0.5, "block": 12, "best_passes": 20, "ratio": 1.0},
        1e-6: made | {"tol": 1e-6, "passes": 30, "rho": 0.5, "block": 12, "best_passes": 20, "best_rho": 1.0,
                      "best_block": 25, "ratio": 1.5, "best_block_alone": 25, "best_rho_alone": 28,
                      "time_ratio": 0.75, "plain_ratio": 1.1},
    }  # fmt: skip
    monkeypatch.setattr(tuning, "compare", lambda problem, tol, **same: rows[tol])
    where = ["--results", str(tmp_path / "t.csv"), "--page", str(tmp_path / "t.md")]
    tuning.main(["--problem", "overlapping-groups", "--tol", "1e-3", "--tol", "1e-6", *where])
    text = (tmp_path / "t.md").read_text(encoding="utf-8")
    assert "**1 of 2** cases" in text and "| **1.50** | 1.10 | 0.75 |" in text and "none is better" in text
    assert "in 1 of these 1 cases, and in none does it take more than 0.75 times" in text
    assert [row | {"problem": None} for row in tuning.read(tmp_path / "t.csv")] == list(rows.values())
    tuning.main(["--report", *where])
    assert (tmp_path / "t.md").read_text(encoding="utf-8") == text
    with pytest.raises(SystemExit, match="there is no table"):
        tuning.main(["--report", "--results", str(tmp_path / "none.csv")])


# -- where the time goes ----------------------------------------------------------------------------------------------


def test_breakdown(bench, tmp_path):
    """The parts add up to the whole, and the page has a line of them beside what the target leaves."""
    objective = examples(bench)[0]
    found = bench["breakdown"].measure(lambda: bench["fenchel_model"].problem(objective))
    parts = dict(found["parts"])
    assert set(parts) == {"problem", *bench["breakdown"].PARTS, "all else", "total"}
    assert found["passes"] > 0 and found["pair"] > 0 and found["floor"] > 0
    assert 1 < found["steps"] < 1000  # of an accelerated method, found without a certificate
    assert f"{found['passes']} passes" in bench["breakdown"].line("one", found)
    name = "digits-tv"
    (tmp_path / "breakdown.json").write_text(json.dumps({name: found}))
    results = bench["results"].Results(tmp_path)
    results.add_problem(name, {"n": 3, "p": 2, "limit": 1.0, "value": 1.0, "bound": 1.0})
    made = {"problem": name, "solver": "peer", "name": "a peer", "certified": {}}
    results.add(made | {"points": [[0.1, 1.0005], [0.25, 1.0]], "repetition": 0})
    results.add(made | {"points": [[0.2, 1.0005]], "repetition": 1})  # cut off once it was at 1e-3
    assert results.best_peer(name, 1e-3)[0] == pytest.approx(0.15)
    lines = list(bench["report"].breakdown(results))
    (line,) = [text for text in lines if text.startswith(f"| [{name}]")]
    assert line.count("|") == lines[2].count("|") == 14 and f"| {found['passes']} |" in line
    assert "| 50 |" in line  # milliseconds that a target of five leaves of a peer's 250
    assert not list(bench["report"].breakdown(bench["results"].Results(tmp_path / "elsewhere")))


# -- two commits side by side -----------------------------------------------------------------------------------------


def comparison(bench, base, head, statuses=("converged", "converged"), name="one"):
    sides = [
        [{"seconds": seconds, "passes": 5, "status": status} for seconds in times]
        for times, status in zip((base, head), statuses, strict=True)
    ]
    return bench["compare"].Comparison(name, *sides)


def test_compare_verdict(bench):
    """Slower takes a factor, some milliseconds, and both the median and the fastest run; a lost status counts alone."""
    verdict = bench["compare"].verdict
    same = comparison(bench, [0.1, 0.11, 0.12], [0.1, 0.11, 0.12])
    slower = comparison(bench, [0.1, 0.11, 0.12], [0.13, 0.14, 0.15])
    assert verdict([same])[0] == 0 and verdict([same, slower])[0] == 1
    assert not comparison(bench, [0.1, 0.11, 0.12], [0.1, 0.3, 0.4]).slower  # its fastest run is as fast: noise
    assert not comparison(bench, [0.001], [0.0025]).slower  # less than two milliseconds
    assert not comparison(bench, [0.1], [0.109]).slower  # less than a tenth
    slower.again = same
    assert slower.looks_slower and verdict([slower])[0] == 0  # fresh processes say otherwise
    slower.again = comparison(bench, [0.1], [0.2])
    assert verdict([slower]) == (1, ["slower: one, 1.27 and 2.00 times"])
    lost = comparison(bench, [0.1], [0.05], ("converged", "stalled"))
    code, reasons = verdict([lost])
    assert code == 1 and "converged -> stalled" in reasons[0] and not lost.slower
    gained = comparison(bench, [20.0], [30.0], ("time limit", "converged"))
    assert verdict([gained])[0] == 0 and not gained.comparable
    assert "looks slower" in bench["compare"].row(slower) and "WORSE" in bench["compare"].row(lost)


def test_compare_distribution(bench):
    found = [comparison(bench, [1.0], [2.0**k], name=f"p{k}") for k in (-2, 0, 1, 3)]
    found.append(comparison(bench, [1.0], [1.0], ("time limit", "converged"), "cut"))
    lines = bench["compare"].distribution(found)
    assert "over 4 problems: geometric mean 1.414, least 0.25" in lines[0] and "most 8.00" in lines[0]
    assert lines[2].split() == ["8.00", "p3"] and lines[-1].endswith("cut")
    assert bench["compare"].distribution(found[-1:]) == ["no problem whose times can be compared"]


def test_compare_turns(bench):
    """A B B A: the warm-up is not counted, and an answer that is not there is not asked for again and again."""
    asked = []

    class Side:
        def __init__(self, name, status="converged"):
            self.name, self.status = name, status

        def run(self, order):
            asked.append(self.name)
            return {"seconds": float(len(asked)), "passes": 1, "status": self.status}

    take_turns = bench["compare"].take_turns
    one = take_turns({"base": Side("A"), "head": Side("B")}, {"name": "x"}, 2)
    assert "".join(asked) == "AB" + "ABBA" and [run["seconds"] for run in one.base] == [3.0, 6.0]
    asked.clear()
    take_turns({"base": Side("A"), "head": Side("B", "stalled")}, {"name": "x"}, 3)
    assert "".join(asked) == "AB" + "AB"


# -- separable problems and their specialists -------------------------------------------------------------------------


def separable_problem(bench, loss, penalty, intercept, n=40, p=12):
    make = bench["separable_problem"].with_penalty
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, p))
    score = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(n) + 0.3
    y = np.where(score > 0, 1.0, -1.0) if loss in ("logistic", "smoothed-hinge") else score
    y = rng.poisson(np.exp(score / 2)).astype(float) if loss == "poisson" else y
    return make(X, y, loss, penalty, size=5, weights=np.linspace(0.5, 2, p), intercept=intercept)


@pytest.mark.parametrize("penalty", ["l1", "weighted l1", "elastic net", "groups", "sparse groups", "nonnegative"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "smoothed-hinge", "huber", "poisson"])
def test_separable_judge(bench, loss, penalty, tmp_path):
    """The judge and fenchel mean the same problem and the same alpha_max; a file holds all of it."""
    for intercept in (False, True):
        ours = separable_problem(bench, loss, penalty, intercept)
        words = bench["fenchel_separable"].penalty_of(ours)
        problem = fl.Problem(ours.X, ours.y, loss=loss, penalty=words, alpha=0.3, fit_intercept=intercept)
        assert ours.alpha_max() == pytest.approx(problem.alpha_max(), rel=1e-6)
        ours.alpha = 0.3
        ours.save(tmp_path / "one.npz")
        loaded, rng = type(ours).load(tmp_path / "one.npz"), np.random.default_rng(0)
        for _ in range(3):
            w, b = np.abs(rng.standard_normal(ours.p)), 0.7 * intercept
            assert ours.value(w, b) == pytest.approx(problem.primal(w, b), rel=1e-12)
            assert loaded.value(w, b) == ours.value(w, b)
        assert ours.value(np.full(ours.p, np.nan)) == np.inf  # no answer at all
    assert np.isinf(ours.value(-np.ones(ours.p))) == (penalty == "nonnegative")


def test_families(bench):
    """The same seed gives the same problem, another seed another one; alpha is within the largest."""
    make = bench["families"].make
    first, again, other = make(7), make(7), make(1013)
    assert str(first) == str(again) != str(other)
    a, b = first.problem, again.problem
    assert np.array_equal(a.y, b.y) and a.alpha == b.alpha and a.value(np.ones(a.p)) == b.value(np.ones(b.p))
    for drawn in (first, other):
        assert 1e-3 <= drawn.share <= 0.9
        assert drawn.problem.alpha == pytest.approx(drawn.share * drawn.problem.alpha_max())
        assert 0.005 < drawn.problem.n / drawn.problem.p < 200
    for among in (bench["families"].DATA, bench["families"].LOSSES, bench["families"].PENALTIES):
        assert sum(among.values()) == pytest.approx(1)


def test_real_data_halves(bench):
    """No data set is in both halves; those that are there give problems with names of their own."""
    real, folder = bench["real_data"], fl.datasets.data_folder()
    assert not set(real.CHOOSE) & set(real.REPORT)
    if folder is None or not (folder / "p53.npz").is_file():
        pytest.skip("the data sets are not there (FENCHEL_DATA)")
    plain, grouped = real.sets((real.p53,), folder)
    assert plain.name != grouped.name and plain.X.shape == grouped.X.shape
    assert grouped.bounds[0] == 0 and grouped.bounds[-1] == grouped.p and np.all(np.diff(grouped.bounds) > 0)
    fit = real.at_share(plain, 0.1)
    assert fit.alpha == pytest.approx(0.1 * plain.alpha_max()) and fit.name == "p53-l1-1/10"
    said = []
    assert list(real.sets((real.p53,), folder / "nowhere", said.append)) == [] and "left out" in said[0]


@pytest.mark.parametrize("stem", ["fenchel_fit", "fenchel_estimator", "sklearn_fit"])
def test_specialists(bench, stem, tmp_path):
    """Those that need nothing more: their answers are optimal by the judge, single ones, paths and folds."""
    worker = bench["specialist_worker"]
    session = worker.Session(worker.specialist_class(FOLDER / "specialists" / f"{stem}.py")())
    problem = separable_problem(bench, "squared", "l1", True)
    problem.alpha = 0.1 * problem.alpha_max()
    problem.save(tmp_path / "one.npz")
    loaded = fl.Problem(problem.X, problem.y, loss="squared", penalty=fl.L1(), fit_intercept=True)
    for task in ("tiny", "path", "cv"):
        alphas = problem.alphas(5) if task != "tiny" else np.array([problem.alpha])
        order = {"load": str(tmp_path / "one.npz"), "task": task, "alphas": alphas.tolist(), "folds": 4}
        answer = session.answer(order)
        if "skip" in answer:
            assert stem == "fenchel_estimator" and task != "tiny"
            continue
        assert answer["ready"] and answer["version"]
        best = [fl.solve(loaded.with_alpha(alpha), tol=1e-10).primal for alpha in alphas]
        for word in ("run", "judge"):
            found = session.answer({word: 1e-6 if stem.startswith("fenchel") else 1e-10})
            assert found["seconds"] > 0 and np.allclose(found["values"], best, rtol=2e-6)


def made_record(task="fit", n=50, p=200, support=10, ours=(0.01, 0.02, 0.03), peers=(), cut=None):
    """A record as separable.py writes it; a peer is (name, stop, seconds, value)."""
    runs = [{"solver": "fenchel_fit", "stop": 1e-9, "word": "judge", "seconds": 9.0, "values": [1.0], "gap": 1e-10,
             "support": support, "bounds": [1.0 - 1e-10]}]  # fmt: skip
    runs += [{"solver": "fenchel_fit", "stop": 1e-6, "word": "run", "seconds": seconds, "values": [1.0 + 1e-9],
              "gap": 5e-7, "support": support} for seconds in ours]  # fmt: skip
    runs += [{"solver": f"{name}_fit", "stop": stop, "word": "run", "seconds": seconds, "values": [value],
              "support": support} for name, stop, seconds, value in peers]  # fmt: skip
    return {"case": f"{task}-{n}-{p}", "task": task, "n": n, "p": p, "loss": "squared", "penalty": "l1",
            "sparse": False, "intercept": False, "runs": runs, "left": {}, "cut": cut or {},
            "versions": {"skglm_fit": "0.5"}}  # fmt: skip


def test_separable_ratio(bench):
    """The cheapest accurate tolerance counts, its median; inaccurate answers never do; a cut-off gives a bound."""
    report = bench["separable_report"]
    peers = [("skglm", 1e-2, 0.001, 1.1), ("skglm", 1e-4, 0.04, 1.0), ("skglm", 1e-4, 0.06, 1.0),
             ("skglm", 1e-4, 0.05, 1.0), ("celer", 1e-4, 0.01, 1.0 + 2e-6), ("celer", 1e-6, 0.2, 1.0)]  # fmt: skip
    record = made_record(peers=peers)
    assert report.seconds_of(record, "fenchel_fit") == 0.02  # the run to 1e-9 is the judge's
    assert report.best_peer(record) == (0.05, "skglm_fit") and report.ratio(record) == pytest.approx(2.5)
    assert report.kind(record) == report.FEW and report.doubt(record) == pytest.approx(1e-10, rel=1e-3)
    assert report.kind(made_record(support=25)) == report.kind(made_record(n=300)) == report.OTHERS
    assert report.accuracies([record])[("celer_fit", "fit")] == [pytest.approx(2e-6, rel=1e-3)]

    cut = made_record(peers=[("celer", 1e-4, 0.3, 1.1), ("skglm", 1e-4, 0.9, 1.0)], cut={"celer_fit": 0.3})
    assert report.ratio(cut) == pytest.approx(15) and report.is_bound(cut) and not report.is_bound(record)
    nobody = made_record(peers=[("celer", 1e-4, 0.3, 1.1)])
    assert np.isnan(report.ratio(nobody)) and np.isnan(report.ratio(made_record()))
    failed = made_record(peers=peers)
    failed["runs"][1]["gap"] = 1e-3
    assert report.ratio(failed) == 0.0  # no certificate is the worst of all


def test_separable_distribution(bench, tmp_path):
    """The page leads with the distribution, the worst first, and says what every package's tolerance was worth."""
    report = bench["separable_report"]
    found = report.distribution([0.5, 2.0, np.nan, 1.0, 4.0, 8.0])
    assert (found["count"], found["min"], found["median"], found["max"]) == (5, 0.5, 2.0, 8.0)
    assert report.distribution([np.nan]) == {"count": 0}
    records = [
        made_record(peers=[("skglm", 1e-4, seconds, 1.0)], p=100 + k) for k, seconds in enumerate((0.2, 0.01, 0.04))
    ]
    records += [made_record("path", peers=[("glmnet", 1e-7, 0.3, 1.0)]), made_record("cv")]
    assert [one["p"] for one in report.worst_first(records[:3])] == [101, 102, 100]
    report.write_page(records, tmp_path / "page.md", {"processor": "some"}, "report")
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert f"| {report.FEW} | 3 | 0.50 | 1.25 | 2.0 | 6.0 | 10.0 | 1 | 1, 3 |" in page
    assert page.index("## The distribution") < page.index("fit-50-101") < page.index("fit-50-100")
    assert page.endswith("Versions: skglm 0.5.\n")
    assert "- cv-50-200 (squared, l1): `fenchel` 20 ms" in page and "| glmnet | path | 1 |" in page
    assert (tmp_path / "images" / "benchmarks-separable.png").stat().st_size < 200_000


def test_separable_ladder(bench):
    """A peer climbs until it is accurate, or is cut off far behind; its own tolerance is always among those tried."""
    climb, asked = bench["separable"].climb, []

    class Peer:
        stops, default = (1e-2, 1e-4, 1e-6, 1e-8), 1e-4

    def run(seconds, values):
        def once(stem, stop, word="run"):
            asked.append(stop)
            one = {"solver": stem, "stop": stop, "word": word, "seconds": seconds, "values": [values[stop]]}
            record["runs"].append(one | {"support": 1})
            return one

        return once

    record = made_record()
    climb(record, "celer_fit", Peer, run(0.01, {1e-2: 1.0, 1e-4: 1.0}))
    assert asked == [1e-2, 1e-4] and not record["cut"]
    asked.clear()
    record = made_record()
    climb(record, "celer_fit", Peer, run(3.0, {1e-2: 1.1}))
    assert asked == [1e-2] and record["cut"] == {"celer_fit": 3.0}


# -- what arithmetic costs --------------------------------------------------------------------------------------------


def test_calibrate(bench):
    """Every name has a measurement and a unit; the text that is written can be read again, what is not measured too."""
    calibrate = bench["calibrate"]
    assert all(callable(getattr(calibrate, name)) for name in calibrate.UNITS)
    found = calibrate.measure(["call", "loss"])
    assert all(value > 0 for value in found.values())
    scope = {}
    exec(calibrate.source(found, "some processor", {"kept": 2.0}), scope)
    assert list(scope["MEASURED"]) == ["call", "loss", "kept"] and "some processor" in scope["__doc__"]
    assert scope["MEASURED"]["loss"] == pytest.approx(found["loss"], rel=1e-2)


def test_calibrated_file(bench):
    """The file has the names that the script measures, and positive prices."""
    calibrate = bench["calibrate"]
    prices = calibrate.written()
    if not prices:
        pytest.skip("there is no calibrated file yet")
    assert set(calibrate.UNITS) <= set(prices), "run benchmarks/calibrate.py"
    assert all(np.isfinite(value) and value > 0 for value in prices.values())


@pytest.mark.parametrize("script", ["structured", "tasks", "softmax_families", "wide"])
def test_a_seed_is_drawn_and_its_rivals_run(bench, script):
    """One easy goal on one problem; every rival gets there, or says that it did not."""
    module = bench[script]
    duel = module.duel(1)
    start = duel.make().objective_at_zero()
    for seconds in duel.rivals([1.01 * start]).values():
        assert len(seconds) == 1 and seconds[0] >= 0
    assert module.main is bench["rivals"].main


def test_the_runner_of_rivals(bench, tmp_path, capsys):
    """A line a problem, the numbers kept and compared with; a rival that never arrives counts with the limit."""
    rivals = bench["rivals"]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 8))
    y = X[:, 0] + 0.1 * rng.standard_normal(40)

    def draw(seed):
        def make():
            return fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.1 + 0.01 * seed)

        return rivals.Duel(
            f"problem {seed}", make, lambda goals: {"slow": [np.inf] * len(goals), "fast": [2.0, np.inf]}
        )

    command = ["--seeds", "3", "5", "--repetitions", "1", "--save", str(tmp_path / "kept.json")]
    rows = rivals.main("About.", draw, (1e-3, 1e-6), 9.0, argv=command)
    assert [row["seed"] for row in rows] == [3, 4] and json.loads((tmp_path / "kept.json").read_text()) == rows
    assert rows[0]["who"] == ["fast", "slow"] and rows[0]["peer"] == [2.0, np.inf] and rows[0]["say"] == ["", ""]
    lines = capsys.readouterr().out.splitlines()
    assert "problem 3" in lines[1] and "problem 4" in lines[2]
    assert lines[-1].startswith("FISTA's time / ours, 1e-06: median") and "of 2" in lines[-1]
    again = rivals.main("About.", draw, (1e-3, 1e-6), 9.0, argv=["--only", "4", "--no-peer", "--against", command[-1]])
    assert again[0]["peer"] == []
    assert "the other's time / ours, 0.001" in capsys.readouterr().out
