"""The benchmark against the peers: its objective is fenchel's, its prox is right, and its runner runs."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl

FOLDER = pathlib.Path(__file__).parent.parent / "benchmarks"
MODULES = ("run", "objective", "solving", "worker", "results", "report", "environments", "composite_prox",
           "fenchel_model", "growth", "tuning", "breakdown")  # fmt: skip


@pytest.fixture(scope="module")
def bench():
    """The folder's modules; their names are plain, so they leave again."""
    sys.path.insert(0, str(FOLDER))
    before = set(sys.modules)
    try:
        yield {name: __import__(name) for name in MODULES if name != "worker"}  # worker.py sets the environment
    finally:
        sys.path.remove(str(FOLDER))
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
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_runner(tmp_path):
    """Two solvers in turns, one that is not installed, a page; and the same command again has nothing left to do."""
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
