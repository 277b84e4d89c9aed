"""The command line as a user meets it: real files, real processes, and one clear line for every error."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import Lasso

import fenchel as fl
from fenchel import cli
from fenchel.cli.penalty import SHORT, known_penalties
from fenchel.models import Model, encode_labels
from fenchel.penalties import CATALOGUE

testing = pytest.importorskip("typer.testing", reason="the command line needs typer (fenchel[cli])")
pd = pytest.importorskip("pandas", reason="these tests write CSV files with pandas (fenchel[io])")

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 12))
SCORE = X @ np.r_[2.0, -2.0, 1.0, np.zeros(9)] + 0.5 * rng.standard_normal(120)
LABELS = np.where(SCORE > 0, "yes", "no")
NAMES = [f"f{j}" for j in range(12)]


def run(*args):
    """The command in this process; its exit code, output and errors."""
    return testing.CliRunner().invoke(cli.make_app(), [str(arg) for arg in args])


def process(*args, **options):
    """The command in a process of its own."""
    return subprocess.run([sys.executable, "-m", "fenchel", *map(str, args)], capture_output=True, text=True, **options)


def refused(result, match):
    """One line on stderr, exit code 2, no traceback."""
    stderr = result.stderr
    code = result.exit_code if hasattr(result, "exit_code") else result.returncode
    assert code == 2, result.stdout + stderr
    assert stderr.startswith("fenchel: error: ") and stderr.count("\n") == 1, stderr
    assert re.search(match, stderr), stderr


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X, columns=NAMES)
    frame.assign(label=LABELS).to_csv("train.csv", index=False)
    frame.assign(score=SCORE).to_csv("numbers.csv", index=False)
    return tmp_path


def loaded(path="model.json"):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def endless():
    """A file and options that keep the solver busy: a kinked loss on noise, without a goal.

    It ends by itself after some minutes, and not as one that was interrupted: no test needs a clock to see that
    nobody listened.
    """
    rng = np.random.default_rng(1)
    np.savez("noise.npz", X=rng.standard_normal((4000, 60)), y=rng.integers(0, 2, 4000))
    return ["noise.npz", "--loss", "hinge", "--alpha", "1e-6", "--tol", "0", "--max-epochs", "200000"]


# -- the whole way, in real processes ---------------------------------------------------------------


def test_fit_and_predict_as_processes(folder):
    done = process("fit", "train.csv", "--alpha", "0.02")
    assert done.returncode == 0, done.stderr
    for word in ("Certificate", "relative gap", "converged", "coefficients not zero", "no is -1, yes is +1"):
        assert word in done.stdout
    # a cold cache is announced, and nothing else is said
    assert [line for line in done.stderr.splitlines() if "compiling its kernels" not in line] == []
    model = loaded()
    # the certificate is about these very numbers: recompute the objective from the file alone
    w, b = np.array(model["coef"]), model["intercept"]
    margin = np.where(LABELS == "yes", 1, -1) * (X @ w + b)
    objective = np.mean(np.logaddexp(0, -margin)) + 0.02 * np.abs(w).sum()
    assert objective == pytest.approx(model["certificate"]["primal"], rel=1e-12)
    assert model["certificate"]["gap"] <= 1e-6 * objective

    done = process("predict", "model.json", "train.csv", "--decision")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "prediction,decision" and len(lines) == 121
    label, value = lines[1].split(",")
    assert float(value) == pytest.approx(X[0] @ w + b, rel=1e-12)
    assert label == ("yes" if X[0] @ w + b > 0 else "no")
    accuracy = np.mean((X @ w + b > 0) == (LABELS == "yes"))
    assert f"accuracy {accuracy:.6g} on 120 rows" in done.stderr


def test_an_error_in_a_process_is_one_line(folder):
    refused(process("fit", "nope.csv"), "nope.csv does not exist")


def test_version():
    done = process("--version")
    assert done.returncode == 0 and done.stdout.strip() == f"fenchel {fl.__version__}"


def test_without_typer_the_extra_is_named():
    code = "import sys; sys.modules['typer'] = None; from fenchel.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    refused(done, r"pip install 'fenchel\[cli\]'")


def test_importing_stays_light():
    code = (
        "import sys, fenchel, fenchel.cli\n"
        "heavy = {'numba', 'numpy', 'scipy', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")
def test_ctrl_c_keeps_the_best_answer(folder):
    command = [sys.executable, "-m", "fenchel", "fit", *endless()]
    # a forced terminal shows the bar, which tells when the solver is at work
    environment = os.environ | {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell leaves it deaf
    ) as running:  # fmt: skip
        try:
            seen = b""
            while not re.search(rb"epoch +[1-9]", seen):
                chunk = os.read(running.stderr.fileno(), 4096)
                assert chunk, f"the solver stopped before it was interrupted: {seen!r}"
                seen += chunk
            running.send_signal(signal.SIGINT)
            _, rest = running.communicate()
        finally:
            running.kill()
    assert running.returncode == 130
    assert b"interrupted" in rest
    certificate = loaded()["certificate"]
    assert certificate["status"] == "interrupted" and np.isfinite(certificate["primal"])


def test_ctrl_c_before_the_solver_writes_nothing(folder, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("fenchel.cli.problem.read_data", interrupt)
    result = run("fit", "train.csv")
    assert result.exit_code == 130 and "nothing was written" in result.stderr
    assert not os.path.exists("model.json")


# -- fit: answers -----------------------------------------------------------------------------------


def test_lasso_agrees_with_scikit_learn(folder):
    assert run("fit", "numbers.csv", "--alpha", "0.1", "--tol", "1e-10").exit_code == 0
    model = loaded()
    reference = Lasso(alpha=0.1, tol=1e-12, max_iter=100_000).fit(X, SCORE)
    assert np.allclose(model["coef"], reference.coef_, atol=1e-6)
    assert model["intercept"] == pytest.approx(reference.intercept_, abs=1e-6)
    assert model["loss"] == {"name": "squared", "params": {}} and model["classes"] is None


GROUPS = {"first": [0, 1, 2, 3], "overlap": [3, 4, 5], "rest": [6, 7, 8, 9]}
APART = {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7], "c": [8, 9, 10, 11]}
EDGES = [(0, 1, -1.0), (1, 2, 0.5), (3, 4, 2.0)]
KIN = {**{f"f{j}": "low" if j < 5 else "high" for j in range(12)}, "low": "all", "high": "all"}
BY_FEATURE = np.linspace(0.5, 2, 12)
# options, and the penalty that they mean
CASES = {
    "lasso": (["--feature-weights", "w.csv"], lambda: fl.Lasso(BY_FEATURE)),
    "elastic-net": (["--l1-ratio", "0.7"], lambda: fl.ElasticNet(0.7)),
    "ridge": (["--alpha", "0.1"], lambda: fl.Ridge()),
    "group-lasso": (["--groups", "groups.json", "--group-weights", "gw.json"],
                    lambda: fl.GroupLasso(fl.Groups(GROUPS, p=12), weights={"overlap": 0.5})),
    "latent-group-lasso": (["--groups", "groups.json", "--complete-groups"],
                           lambda: fl.LatentGroupLasso(fl.Groups(GROUPS, p=12).complete())),
    "sparse-group-lasso": (["--groups", "apart.csv", "--l1-ratio", "0.3", "--feature-weights", "w.txt"],
                           lambda: fl.SparseGroupLasso(APART, 0.3, feature_weights=BY_FEATURE)),
    "tree-groups": (["--tree", "tree.csv"], lambda: fl.TreeGroups(fl.Tree(KIN, NAMES))),
    "group-max": (["--groups", "apart.csv"], lambda: fl.GroupMax(APART)),
    "exclusive-lasso": (["--groups", "apart.csv", "--alpha", "0.05"], lambda: fl.ExclusiveLasso(APART)),
    "fused-lasso": (["--l1-ratio", "0.4", "--order", "2", "--term-weights", "ten.txt"],
                    lambda: fl.FusedLasso(0.4, 2, difference_weights=np.arange(1.0, 11))),
    "trend-filter": (["--order", "3", "--alpha", "0.01"], lambda: fl.TrendFilter(3)),
    "total-variation": (["--shape", "3x4", "--anisotropic", "--l1-ratio", "0.2"],
                        lambda: fl.TotalVariation((3, 4), False, 0.2)),
    "graph-fused": (["--edges", "edges.csv", "--l1-ratio", "0.3"], lambda: fl.GraphFused(fl.Graph(EDGES, 12), 0.3)),
    "low-rank": (["--shape", "3x4"], lambda: fl.LowRank((3, 4))),
    "tensor-trace-norm": (["--shape", "2x3x2", "--term-weights", "three.txt"],
                          lambda: fl.TensorTraceNorm((2, 3, 2), [1.0, 2.0, 3.0])),
    "multi-task-lasso": ([], lambda: fl.MultiTaskLasso(1)),
    "multi-task-low-rank": ([], lambda: fl.MultiTaskLowRank(1)),
    "slope": (["--q", "0.2"], lambda: fl.Slope(q=0.2)),
    "oscar": (["--a", "0.5", "--b", "0.2"], lambda: fl.Oscar(0.5, 0.2)),
    "monotone": (["--decreasing", "--ridge", "0.1", "--alpha", "1"], lambda: fl.Monotone(False) + 0.1 * fl.Ridge()),
    "non-negative": (["--ridge", "0.1", "--alpha", "1"], lambda: fl.NonNegative() + 0.1 * fl.Ridge()),
    "box": (["--lower", "-0.3", "--upper", "0.4"], lambda: fl.Box(-0.3, 0.4)),
}  # fmt: skip


@pytest.fixture
def structured(folder):
    """Files of everything that can be said about features."""
    (folder / "groups.json").write_text(json.dumps({name: [f"f{j}" for j in group] for name, group in GROUPS.items()}))
    lines = [f"{name},f{j}" for name, group in APART.items() for j in group]
    (folder / "apart.csv").write_text("\n".join(["group,feature", *lines]))
    (folder / "edges.csv").write_text("i,j,weight\n" + "\n".join(f"f{i},{j},{w}" for i, j, w in EDGES))
    (folder / "tree.csv").write_text("child,parent\n" + "\n".join(f"{a},{b}" for a, b in KIN.items()))
    (folder / "gw.json").write_text('{"overlap": 0.5}')
    (folder / "w.csv").write_text(
        "feature,weight\n" + "\n".join(f"f{j},{w!r}" for j, w in enumerate(BY_FEATURE.tolist()))
    )
    (folder / "w.txt").write_text("\n".join(map(repr, BY_FEATURE.tolist())))
    (folder / "ten.txt").write_text("\n".join(map(str, range(1, 11))))
    (folder / "three.txt").write_text("1\n2\n3\n")
    return folder


def test_every_penalty_of_the_catalogue_is_reached():
    assert set(CASES) == set(known_penalties())
    assert set(CATALOGUE) - set(known_penalties()) == {
        "per-output",
        "unpenalised",
    }  # several targets, and --unpenalised
    assert set(SHORT.values()) <= set(known_penalties()) and not set(SHORT) & set(known_penalties())


def proven(model, X, y, penalty, loss="logistic", **more):
    """The certificate in the file is about these very numbers and this very penalty."""
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, alpha=model["alpha"], fit_intercept=True, **more)
    objective = problem.primal(np.array(model["coef"]), model["intercept"])
    assert objective == pytest.approx(model["certificate"]["primal"], rel=1e-10)
    assert model["certificate"]["certified"]
    assert model["certificate"]["relative_gap"] <= model["certificate"]["tol"]


@pytest.mark.parametrize("name", CASES)
def test_every_penalty_is_the_library_one_and_certified(structured, name):
    options, penalty = CASES[name]
    result = run("fit", "train.csv", "--penalty", name, "--tol", "1e-5", *options)
    assert result.exit_code == 0, result.stderr
    proven(loaded(), X, np.where(LABELS == "yes", 1.0, -1.0), penalty())


@pytest.mark.parametrize("short", SHORT)
def test_short_names(structured, short):
    options, _ = CASES[SHORT[short]]
    models = []
    for name in (short, SHORT[short]):
        assert (
            run(
                "fit",
                "train.csv",
                "--penalty",
                name,
                "--alpha",
                "0.02",
                *options[: 0 if "--alpha" in options else None],
            ).exit_code
            == 0
        )
        models.append(loaded()["coef"])
    assert models[0] == models[1]


def test_terms_and_bounds_beside_a_penalty(structured):
    args = ("--penalty", "group", "--groups", "groups.json", "--l1", "0.3", "--ridge", "0.1", "--upper", "0.9")
    assert run("fit", "numbers.csv", *args, "--alpha", "0.05").exit_code == 0
    model = loaded()
    penalty = fl.GroupLasso(fl.Groups(GROUPS, p=12)) + 0.3 * fl.L1() + 0.1 * fl.Ridge() + fl.Box(-np.inf, 0.9)
    proven(model, X, SCORE, penalty, "squared")
    assert max(model["coef"]) == pytest.approx(0.9)


# -- structure --------------------------------------------------------------------------------------


def test_groups_from_prefixes_and_gmt(folder):
    names = [f"{'ab'[j % 2]}_{j}" for j in range(11)] + ["age"]
    pd.DataFrame(X, columns=names).assign(y=SCORE).to_csv("d.csv", index=False)
    (folder / "paths.gmt").write_text(
        "even\tx\t" + "\t".join(names[:11:2]) + "\tunknown\nodd\tx\t" + "\t".join(names[1:11:2])
    )
    expected = fl.GroupLasso([range(0, 11, 2), range(1, 11, 2), [11]])
    for options in (["--groups-by", "_"], ["--groups", "paths.gmt", "--complete-groups"]):
        assert run("fit", "d.csv", "--penalty", "group-lasso", *options).exit_code == 0
        proven(loaded(), X, SCORE, expected, "squared")
    result = run("fit", "d.csv", "--penalty", "group-lasso", "--groups", "paths.gmt")
    assert "1 features, which carry no penalty" in " ".join(result.stdout.split())


def test_a_graph_from_the_data(folder):
    twin = X.copy()
    twin[:, 1] = twin[:, 0] + 0.1 * twin[:, 1]
    pd.DataFrame(twin, columns=NAMES).assign(y=SCORE).to_csv("twin.csv", index=False)
    assert run("fit", "twin.csv", "--penalty", "graph", "--edges", "correlation:0.9").exit_code == 0
    proven(loaded(), twin, SCORE, fl.GraphFused(fl.Graph([(0, 1)], 12)), "squared")
    refused(run("fit", "numbers.csv", "--penalty", "graph", "--edges", "correlation:0.99"), "joins no features")
    refused(run("fit", "numbers.csv", "--penalty", "graph", "--edges", "correlation:x"), "write it as correlation:0.5")


@pytest.mark.parametrize("kind", ["text", "npy"])
def test_a_mask(folder, kind):
    mask = np.ones((4, 4), dtype=bool)
    mask[[0, 0, 3, 3], [0, 3, 0, 3]] = False
    if kind == "npy":
        np.save("mask.npy", mask)
    else:
        np.savetxt("mask.txt", mask, "%d")
    name = "mask.npy" if kind == "npy" else "mask.txt"
    assert run("fit", "numbers.csv", "--penalty", "tv", "--shape", "4x4", "--mask", name).exit_code == 0
    proven(loaded(), X, SCORE, fl.TotalVariation(fl.Grid((4, 4), mask)), "squared")


def test_unpenalised_columns_leave_every_structure(structured):
    free = ["--unpenalised", "f3", "--unpenalised", "11"]
    kept = [j for j in range(12) if j not in (3, 11)]
    apart = [[kept.index(j) for j in group if j in kept] for group in APART.values()]
    graph = fl.Graph([(0, 1, -1.0), (1, 2, 0.5)], 10)  # the edge to f3 is gone
    tree = fl.Tree(KIN, [NAMES[j] for j in kept])
    for options, inner in (
        (["--penalty", "lasso", "--feature-weights", "w.txt"], fl.Lasso(BY_FEATURE[kept])),
        (["--penalty", "group-lasso", "--groups", "apart.csv"], fl.GroupLasso(apart)),
        (["--penalty", "graph-fused", "--edges", "edges.csv"], fl.GraphFused(graph)),
        (["--penalty", "tree-groups", "--tree", "tree.csv"], fl.TreeGroups(tree)),
        (["--penalty", "total-variation", "--shape", "2x5"], fl.TotalVariation((2, 5))),
    ):
        result = run("fit", "numbers.csv", "--alpha-ratio", "1.001", *options, *free)
        assert result.exit_code == 0, result.stderr
        model = loaded()
        proven(model, X, SCORE, fl.Unpenalised(inner, [3, 11]), "squared")
        assert np.all(np.array(model["coef"])[[3, 11]] != 0)


# -- several classes, targets, tasks ----------------------------------------------------------------

KINDS = np.array(["low", "mid", "top"])[np.digitize(SCORE, np.quantile(SCORE, [0.33, 0.66]))]
ONE_AGAINST_REST = np.where(KINDS[:, None] == np.array(["low", "mid", "top"]), 1.0, -1.0)


@pytest.mark.parametrize(
    ("options", "penalty"),
    [
        (["--penalty", "multi-task-lasso"], fl.MultiTaskLasso(3)),
        (["--penalty", "multi-task-low-rank"], fl.MultiTaskLowRank(3)),
        (["--penalty", "fused-lasso"], fl.PerOutput(fl.FusedLasso(), 3)),
        (["--penalty", "multi-task-lasso", "--groups", "g.json"], fl.MultiTaskLasso(3, [[1, 10, 11], [0, 2]])),
        (["--penalty", "multi-task-lasso", "--unpenalised", "f0"], fl.Unpenalised(fl.MultiTaskLasso(3), [0, 12, 24])),
    ],
)  # fmt: skip
def test_several_classes_are_one_problem(folder, options, penalty):
    pd.DataFrame(X, columns=NAMES).assign(kind=KINDS).to_csv("kinds.csv", index=False)
    (folder / "g.json").write_text('{"a": ["f1", "f10", "f11"], "b": ["f0", 2]}')
    result = run("fit", "kinds.csv", "--multi-class", "ovr", *options)
    assert result.exit_code == 0, result.stderr
    model = loaded()
    assert np.shape(model["coef"]) == (3, 12) and model["classes"] == ["low", "mid", "top"]
    proven(model, X, ONE_AGAINST_REST, penalty)
    scores = X @ np.array(model["coef"]).T + model["intercept"]
    result = run("predict", "model.json", "kinds.csv", "--decision", "--probability")
    table = pd.read_csv(io.StringIO(result.stdout))
    assert table.prediction.tolist() == np.array(model["classes"])[scores.argmax(axis=1)].tolist()
    assert np.allclose(table[["decision_low", "decision_mid", "decision_top"]], scores)
    assert np.allclose(table.filter(like="probability").sum(axis=1), 1)
    assert f"accuracy {np.mean(table.prediction == KINDS):.6g}" in result.stderr


def test_several_targets(folder):
    Y = np.column_stack([SCORE, -2 * SCORE + X[:, 5]])
    pd.DataFrame(X, columns=NAMES).assign(one=Y[:, 0], two=Y[:, 1]).to_csv("two.csv", index=False)
    args = ("--target", "one", "--target", "two", "--penalty", "multi-task-lasso")
    assert run("fit", "two.csv", *args, "-q").exit_code == 0
    model = loaded()
    assert model["target"] == ["one", "two"]
    proven(model, X, Y, fl.MultiTaskLasso(2), "squared")
    result = run("predict", "model.json", "two.csv")
    table = pd.read_csv(io.StringIO(result.stdout))
    expected = X @ np.array(model["coef"]).T + model["intercept"]
    assert np.allclose(table[["prediction_one", "prediction_two"]], expected)
    from sklearn.metrics import r2_score

    assert f"R^2 {r2_score(Y, expected):.6g}" in result.stderr
    np.savez("two.npz", X=X, y=Y)
    assert run("fit", "two.npz", "--penalty", "multi-task-lasso", "-q").exit_code == 0
    assert np.allclose(loaded()["coef"], model["coef"], atol=1e-5)
    refused(run("fit", "two.csv", *args, "--loss", "logistic"), "several targets need a loss for numbers")


def test_tasks(folder):
    site = np.array(["Lima", "Oslo", "Rome"])[np.arange(120) % 3]
    frame = pd.DataFrame(X, columns=NAMES).assign(site=site, y=SCORE)
    frame.to_csv("sites.csv", index=False)
    assert run("fit", "sites.csv", "--task", "site", "--penalty", "multi-task-lasso", "-q").exit_code == 0
    model = loaded()
    assert model["tasks"] == ["Lima", "Oslo", "Rome"] and model["task"] == "site"
    codes = np.arange(120) % 3
    proven(model, X, SCORE, fl.MultiTaskLasso(3), "squared", task=codes)
    result = run("predict", "model.json", "sites.csv")
    table = pd.read_csv(io.StringIO(result.stdout))
    own = np.array(model["coef"])[codes], np.array(model["intercept"])[codes]
    assert np.allclose(table.prediction, (X * own[0]).sum(axis=1) + own[1])
    frame.assign(site="Bonn").to_csv("other.csv", index=False)
    refused(run("predict", "model.json", "other.csv"), "task 'Bonn' is not among the 3 tasks")
    frame.drop(columns="site").to_csv("none.csv", index=False)
    refused(run("predict", "model.json", "none.csv"), "task is 'site', which is neither a column")


@pytest.mark.parametrize("options", [["balanced"], ["yes=3", "no=1"], ["yes=3"]])
def test_class_weights_are_weights_of_rows(folder, options):
    args = [word for option in options for word in ("--class-weight", option)]
    assert run("fit", "train.csv", "--alpha", "0.05", "--tol", "1e-9", *args).exit_code == 0
    weighted = loaded()["coef"]
    share = 120 / 2 / np.array([np.count_nonzero(label == LABELS) for label in ("no", "yes")])
    no, yes = share if options == ["balanced"] else (1.0, 3.0)
    np.savetxt("w.txt", np.where(LABELS == "yes", yes, no), "%.17g")
    assert run("fit", "train.csv", "--alpha", "0.05", "--tol", "1e-9", "--weights", "w.txt").exit_code == 0
    assert np.allclose(weighted, loaded()["coef"], atol=1e-6)


# -- standardised columns ---------------------------------------------------------------------------


def stretched():
    return X * 10.0 ** np.arange(-3, 9, 1)[:12] + 5.0


def test_a_standardised_model_takes_the_data_as_it_stands(folder):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    wild = stretched()
    pd.DataFrame(wild, columns=NAMES).assign(y=SCORE).to_csv("wild.csv", index=False)
    assert run("fit", "wild.csv", "--standardize", "--alpha", "0.1", "--tol", "1e-10").exit_code == 0
    reference = make_pipeline(StandardScaler(), Lasso(alpha=0.1, tol=1e-12, max_iter=100_000)).fit(wild, SCORE)
    table = pd.read_csv(io.StringIO(run("predict", "model.json", "wild.csv").stdout))
    assert np.allclose(table.prediction, reference.predict(wild), atol=1e-5)
    coef = np.array(loaded()["coef"])
    assert np.array_equal(coef == 0, reference[-1].coef_ == 0)
    # what is certified is the standardised problem, which the file lets one rebuild
    scaling = loaded()["scaling"]
    scaled = (wild - scaling["center"]) / scaling["scale"]
    problem = fl.Problem(scaled, SCORE, loss="squared", penalty=fl.L1(), alpha=0.1, fit_intercept=True)
    intercept = loaded()["intercept"] + np.dot(coef, scaling["center"])
    objective = problem.primal(coef * scaling["scale"], intercept)
    assert objective == pytest.approx(loaded()["certificate"]["primal"], rel=1e-8)


def test_standardised_sparse_data_stays_sparse(folder):
    sparse = np.where(np.abs(X) > 1, X, 0.0) * 1000
    dump_svmlight_file(sparse, np.where(LABELS == "yes", 1, -1), "s.svm", zero_based=False)
    np.savez("s.npz", X=sparse, y=np.where(LABELS == "yes", 1, -1))
    answers = []
    for name in ("s.svm", "s.npz"):
        assert run("fit", name, "--standardize", "--alpha", "0.05", "--tol", "1e-9").exit_code == 0
        answers.append(loaded())
    assert np.allclose(answers[0]["coef"], answers[1]["coef"], atol=1e-7)  # an intercept takes up the means
    assert answers[0]["scaling"]["center"] is None and answers[1]["scaling"]["center"] is not None


@pytest.mark.parametrize(
    ("options", "name", "params"),
    [
        (["--loss", "huber", "--delta", "0.7"], "huber", {"delta": 0.7}),
        (["--loss", "quantile", "--quantile", "0.8"], "quantile", {"quantile": 0.8}),
        (["--loss", "epsilon-insensitive", "--epsilon", "0.3"], "epsilon-insensitive", {"epsilon": 0.3}),
        (["--loss", "squared"], "squared", {}),
    ],
)
def test_regression_losses(folder, options, name, params):
    assert run("fit", "numbers.csv", "--tol", "1e-4", *options).exit_code == 0
    model = loaded()
    assert model["loss"] == {"name": name, "params": params}
    assert model["certificate"]["relative_gap"] <= 1e-4


@pytest.mark.parametrize("loss", ["smoothed-hinge", "hinge", "squared-hinge", "logistic"])
def test_classification_losses_remember_the_labels(folder, loss):
    assert run("fit", "train.csv", "--loss", loss, "--tol", "1e-4").exit_code == 0
    model = loaded()
    assert model["classes"] == ["no", "yes"] and model["certificate"]["relative_gap"] <= 1e-4


def test_poisson_predicts_counts(folder):
    counts = np.random.default_rng(2).poisson(np.exp(0.4 * X[:, 0]))
    pd.DataFrame(X, columns=NAMES).assign(count=counts).to_csv("counts.csv", index=False)
    assert run("fit", "counts.csv", "--loss", "poisson").exit_code == 0
    result = run("predict", "model.json", "counts.csv", "--decision")
    table = pd.read_csv(io.StringIO(result.stdout))
    assert np.allclose(table.prediction, np.exp(table.decision))


def test_all_formats_give_the_same_model(folder):
    y = np.where(LABELS == "yes", 1, -1)
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y)
    frame.to_parquet("d.parquet")
    frame.to_csv("d.tsv", sep="\t", index=False)
    np.savez("d.npz", X=X, y=y)
    dump_svmlight_file(X, y, "d.svm", zero_based=False)
    answers = []
    for name in ("d.parquet", "d.tsv", "d.npz", "d.svm"):
        assert run("fit", name, "--alpha", "0.05", "--tol", "1e-10", "-q").exit_code == 0
        answers.append(loaded()["coef"])
        assert loaded()["classes"] == [-1, 1]
    for answer in answers[1:]:
        assert np.allclose(answer, answers[0], atol=1e-7)


def test_weights_are_repetitions(folder):
    times = np.random.default_rng(3).integers(1, 4, 120)
    frame = pd.DataFrame(X, columns=NAMES)
    frame.assign(times=times, label=LABELS).to_csv("weighted.csv", index=False)
    repeated = np.repeat(np.arange(120), times)
    frame.iloc[repeated].assign(label=LABELS[repeated]).to_csv("repeated.csv", index=False)
    (folder / "times.txt").write_text("\n".join(map(str, times)))
    answers = []
    for args in (["weighted.csv", "--weights", "times"], ["train.csv", "--weights", "times.txt"], ["repeated.csv"]):
        assert run("fit", *args, "--alpha", "0.05", "--tol", "1e-10").exit_code == 0
        answers.append(loaded()["coef"])
    assert np.allclose(answers[0], answers[2], atol=1e-6) and np.allclose(answers[1], answers[2], atol=1e-6)


def test_no_intercept_alpha_ratio_and_seed(folder):
    args = ("fit", "train.csv", "--no-intercept", "--alpha-ratio", "1.01", "--seed", "3")
    assert run(*args).exit_code == 0
    model = loaded()
    assert model["intercept"] == 0 and not np.any(model["coef"])
    assert run("fit", "train.csv", "--alpha-ratio", "0.9").exit_code == 0
    assert np.any(loaded()["coef"])
    models = []
    for _ in range(2):
        assert run(*args).exit_code == 0
        models.append(loaded())
        models[-1]["certificate"].pop("seconds")
    assert models[0] == models[1]


def test_quiet_prints_nothing(folder):
    result = run("fit", "train.csv", "--quiet")
    assert result.exit_code == 0 and result.output == ""


def test_an_unconverged_fit_warns_with_its_gap_and_exits_0(folder):
    result = run("fit", "train.csv", "--tol", "1e-14", "--max-epochs", "2", "-q")
    assert result.exit_code == 0
    gap = loaded()["certificate"]["relative_gap"]
    assert f"warning: not converged (epoch limit): relative gap {gap:.2e}, goal 1e-14" in result.stderr
    assert loaded()["certificate"]["status"] == "epoch limit"


def test_a_time_limit_is_kept(folder):
    result = run("fit", *endless(), "--time-limit", "0.2", "-q")
    assert result.exit_code == 0 and "time limit" in result.stderr


# -- fit: errors ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["nope.csv"], "nope.csv does not exist"),
        (["train.csv", "--target", "lable"], "did you mean 'label'"),
        (["train.csv", "--target", "99"], "columns 0 to 12"),
        (["train.csv", "--penalty", "xyz"], "--penalty is 'xyz'; it must be one of lasso, elastic-net"),
        (["train.csv", "--penalty", "fused-laso"], "did you mean 'fused-lasso'"),
        (["train.csv", "--loss", "logit"], "--loss is 'logit'"),
        (["train.csv", "--loss", "squared"], "the target holds '(yes|no)'; the loss 'squared' takes numbers"),
        (["train.csv", "--loss", "huber", "--delta", "-1"], "delta is -1"),
        (["train.csv", "--delta", "1"], "--delta does not go with the loss 'logistic'"),
        (["numbers.csv", "--loss", "hinge"], "120 different values.*--loss squared"),
        (["three.csv"], "one class only \\(3\\).*--loss squared"),
        (["train.csv", "--class-weight", "yes:2"], "write balanced, or label=weight such as no=2"),
        (["train.csv", "--class-weight", "yep=2"], "--class-weight names 'yep'; did you mean 'yes'"),
        (["numbers.csv", "--class-weight", "balanced"], "goes with a loss for labels"),
        (["train.csv", "--penalty", "group"], "this penalty needs --groups"),
        (["train.csv", "--penalty", "group", "--groups", "nope.json"], "nope.json does not exist"),
        (["train.csv", "--penalty", "group", "--groups", "far.json"], "feature 12 does not exist.*0 to 11"),
        (["train.csv", "--groups", "far.json"], "--groups goes with the penalty group-lasso or latent-group-lasso or"),
        (["train.csv", "--penalty", "group", "--groups", "far.json", "--groups-by", "_"], "not both"),
        (["train.csv", "--penalty", "graph"], "this penalty needs --edges"),
        (["train.csv", "--penalty", "tree-groups"], "this penalty needs --tree"),
        (
            ["train.csv", "--penalty", "tree-groups", "--tree", "circle.csv"],
            "circle.csv: the tree goes round in a circle",
        ),
        (["train.csv", "--penalty", "tree-groups", "--tree", "small.csv"], "feature 'f1' is not a node of the tree"),
        (["train.csv", "--penalty", "tv", "--shape", "3x"], "write it as HxW"),
        (["train.csv", "--penalty", "tv", "--shape", "4x4", "--mask", "mask.txt"], "mask.txt has 3 cells"),
        (
            [
                "train.csv",
                "--penalty",
                "low-rank",
                "--shape",
                "12",
            ],
            "shape is",
        ),
        (["train.csv", "--isotropic"], "--isotropic goes with the penalty total-variation"),
        (["train.csv", "--l1-ratio", "2", "--penalty", "elastic-net"], "l1_ratio is 2"),
        (["train.csv", "--feature-weights", "three.txt"], "three.txt holds 3 weights, but the data has 12 features"),
        (["train.csv", "--feature-weights", "stray.csv"], "a weight to 'f99'"),
        (["train.csv", "--unpenalised", "g"], "--unpenalised: 'g' is neither a feature's name nor its number"),
        (["train.csv", "--l1", "-1"], "--l1 is -1"),
        (["train.csv", "--penalty", "tv", "--shape", "5x5"], "25 features, but the data has 12"),
        (["train.csv", "--penalty", "trend", "--order", "12"], "order is 12"),
        (["train.csv", "--penalty", "box"], "needs --lower, --upper or both"),
        (["train.csv", "--penalty", "ridge"], "alpha_max is inf .* give --alpha"),
        (["train.csv", "--alpha", "1", "--alpha-ratio", "1"], "not both"),
        (["train.csv", "--alpha", "-1"], "alpha is -1"),
        (["train.csv", "--alpha-ratio", "nan"], "--alpha-ratio is nan"),
        (["train.csv", "--tol", "-1"], "tol is -1"),
        (["train.csv", "--weights", "nothing"], "neither a column of train.csv nor a file"),
        (
            ["train.csv", "--weights", "three.txt"],
            "three.txt ends at line 3 with 3 weights, but train.csv has 120 rows",
        ),
        (["train.csv", "--weights", "minus.txt"], "minus.txt, line 2: the weight -1 is negative"),
        (
            ["train.csv", "--weights", "f0"],
            "train.csv, line [0-9]+: column 'f0' holds -.*a weight must not be negative",
        ),
        (["train.csv", "--task", "nothing"], "task is 'nothing', which is neither a column of train.csv nor a file"),
        (["train.csv", "--seed", "-1"], "'--seed'.*greater than or equal to 0|'--seed'.*not in the range"),
        (["train.csv", "--bogus"], "No such option: --bogus.*see fenchel fit --help"),
        (["train.csv", "--tol", "small"], "'--tol'"),
        ([], "Missing argument"),
        (["train.csv", "--report", "no/such/r.html"], "--report is 'no/such/r.html', but the folder"),
        (["train.csv", "--picture", "p.xyz"], "--picture is 'p.xyz'; its extension must be one of"),
        (["train.csv", "--report", "model.json"], "--output and --report are both 'model.json'"),
        (["train.csv", "--output", "no/such/model.json"], "no/such does not exist"),
        (["train.csv", "--output", "."], "is not a regular file"),
        (["train.csv", "--output", os.devnull], "is not a regular file"),
        (["one.csv"], "one class only"),
        (["gap.csv"], "gap.csv, line 3: column 'a' has no value"),
        (["empty.csv"], "empty.csv has no rows"),
        (["bad.svm"], "bad.svm, line 2"),
    ],
)
def test_a_bad_fit_is_one_line_and_leaves_the_old_model(folder, args, match):
    (folder / "far.json").write_text('{"a": [0, 12]}')
    (folder / "three.txt").write_text("1\n2\n3\n")
    (folder / "minus.txt").write_text("1\n-1\n3\n")
    (folder / "one.csv").write_text("a,y\n1,yes\n2,yes\n")
    (folder / "three.csv").write_text("a,y\n1,3\n2,3\n")
    (folder / "circle.csv").write_text("f0,a\na,b\nb,a\n")
    (folder / "small.csv").write_text("f0,a\n")
    (folder / "mask.txt").write_text("1 1 1 0\n0 0 0 0\n0 0 0 0\n0 0 0 0\n")
    (folder / "stray.csv").write_text("f0,1\nf99,2\n")
    (folder / "gap.csv").write_text("a,y\n1,yes\n,no\n")
    (folder / "empty.csv").write_text("a,y\n")
    (folder / "bad.svm").write_text("1 1:2\n-1 1:x\n")
    (folder / "model.json").write_text("the old model")
    refused(run("fit", *args), match)
    assert (folder / "model.json").read_text() == "the old model"
    assert not [name for name in os.listdir() if name.startswith(".fenchel")]


@pytest.mark.parametrize("args", [["nope"], ["--bogus"], ["predict"], ["path"], ["cv", "x.csv", "--folds", "1"]])
def test_usage_errors_are_one_line(args):
    refused(run(*args), "see fenchel")
    refused(process(*args), "see fenchel")


def test_without_a_command_there_is_help():
    done = process()
    assert done.returncode == 2 and "reproduce" in done.stdout + done.stderr


# -- predict ----------------------------------------------------------------------------------------


@pytest.fixture
def fitted(folder):
    assert run("fit", "train.csv", "--alpha", "0.02", "-q").exit_code == 0
    return folder


def test_columns_in_another_order_and_without_the_target(fitted):
    frame = pd.read_csv("train.csv")
    frame[frame.columns[::-1]].to_csv("reversed.csv", index=False)
    frame.drop(columns="label").to_csv("new.csv", index=False)
    straight = run("predict", "model.json", "train.csv")
    assert run("predict", "model.json", "reversed.csv").stdout == straight.stdout
    new = run("predict", "model.json", "new.csv")
    assert new.stdout == straight.stdout and new.stderr == ""


def test_predictions_go_to_a_file(fitted):
    result = run("predict", "model.json", "train.csv", "--output", "p.csv")
    assert result.exit_code == 0 and result.stdout == ""
    assert set(pd.read_csv("p.csv").prediction) == {"yes", "no"}


def test_numbers_report_r_squared(folder):
    assert run("fit", "numbers.csv", "--alpha", "0.01", "-q").exit_code == 0
    result = run("predict", "model.json", "numbers.csv")
    predicted = np.array([float(line) for line in result.stdout.split()[1:]])
    expected = 1 - np.sum((predicted - SCORE) ** 2) / np.sum((SCORE - SCORE.mean()) ** 2)
    assert f"R^2 {expected:.6g}" in result.stderr


def test_labels_the_model_does_not_know_are_said(fitted):
    frame = pd.read_csv("train.csv")
    frame.assign(label="maybe").to_csv("other.csv", index=False)
    result = run("predict", "model.json", "other.csv")
    assert result.exit_code == 0 and "y holds 'maybe'; the model knows 'no' and 'yes'" in result.stderr


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["nope.json", "train.csv"], "nope.json does not exist"),
        (["train.csv", "train.csv"], "train.csv, line 1: not a fenchel model"),
        (["foreign.json", "train.csv"], "foreign.json is not a fenchel model: it has no 'format'"),
        (["newer.json", "train.csv"], "format is 'fenchel model 9'"),
        (["broken.json", "train.csv"], "broken.json is a broken fenchel model: it has no 'coef'"),
        (["model.json", "few.csv"], "few.csv has 1 of the model's 12 features; missing: f1, f2"),
        (["model.json", "few.npz"], "few.npz has 3 features, but the model has 12"),
        (["model.json", "train.csv", "--target", "nothing"], "target is 'nothing'"),
        (["model.json", "hole.csv"], "hole.csv, line 2: column 'f3' has no value"),
    ],
)
def test_a_bad_prediction_is_one_line(fitted, args, match):
    (fitted / "foreign.json").write_text("{}")
    (fitted / "newer.json").write_text('{"format": "fenchel model 9"}')
    (fitted / "broken.json").write_text('{"format": "fenchel model 1"}')
    (fitted / "few.csv").write_text("f0,label\n1,yes\n")
    (fitted / "hole.csv").write_text(",".join(NAMES) + "\n1,2,3,,5,6,7,8,9,10,11,12\n")
    np.savez("few.npz", X=np.zeros((2, 3)))
    refused(run("predict", *args), match)


# -- the model file ---------------------------------------------------------------------------------


def test_a_model_round_trips_exactly(tmp_path):
    coef = np.random.default_rng(1).standard_normal(50) * 10.0 ** np.arange(-150, 150, 6)
    coef[:4] = [0.0, np.nextafter(1, 2), 5e-324, 1 / 3]
    certificate = {"primal": 0.1 + 0.2, "dual": -np.inf, "gap": np.inf, "relative_gap": np.inf, "certified": False,
                   "status": "epoch limit", "reason": "why", "epochs": 3, "seconds": 0.1, "tol": 1e-6}  # fmt: skip
    model = Model(coef, 1 / 7, "huber", {"delta": 1.1}, "L1()", 0.3, target="é", certificate=certificate)
    model.save(tmp_path / "m.json")
    again = Model.load(tmp_path / "m.json")
    assert np.array_equal(again.coef, coef) and again.intercept == 1 / 7 and again.alpha == 0.3
    assert again.certificate == certificate and again.target == "é" and again.loss_params == {"delta": 1.1}
    # other programs can read it: infinity is not JSON
    json.loads((tmp_path / "m.json").read_text(encoding="utf-8"), parse_constant=lambda word: pytest.fail(word))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"coef": [1.0, None]}, "broken"),
        ({"coef": [[[1.0]]]}, "finite numbers"),
        ({"coef": [[1.0]]}, "coefficients of shape"),
        ({"features": ["a"]}, "12 coefficients, but 1 feature names"),
        ({"loss": {"name": "zero-one", "params": {}}}, "its loss is 'zero-one'"),
        ({"classes": None}, "do not go with the loss"),
        ({"certificate": {}}, "it has no 'primal'"),
    ],
)
def test_a_damaged_model_is_refused(fitted, change, match):
    (fitted / "bad.json").write_text(json.dumps(loaded() | change))
    with pytest.raises(ValueError, match=match):
        Model.load("bad.json")


@pytest.mark.parametrize(
    ("y", "classes"),
    [([3, 8, 3], [3, 8]), ([0.5, 1.5], [0.5, 1.5]), ([True, False], [False, True]), (["b", "a"], ["a", "b"])],
)
def test_any_two_labels(y, classes):
    encoded, found = encode_labels(np.array(y))
    assert found == classes
    assert [classes[int(code > 0)] for code in encoded] == y


# -- demo -------------------------------------------------------------------------------------------


def test_demo_recovers_the_column_and_draws(folder):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib (fenchel[plot])")
    result = run("demo", "--n", "1000", "--side", "8", "--output", "demo.png")
    assert result.exit_code == 0, result.output
    assert re.search(r"column with most weight +1 of 8 \(the true one\)", result.stdout)
    assert float(re.search(r"correlation with the true column +([\d.]+)", result.stdout)[1]) > 0.95
    assert float(re.search(r"relative gap +(\S+)", result.stdout)[1]) <= 1e-6
    from matplotlib.image import imread

    picture = imread("demo.png")
    assert picture.shape[1] > 1.5 * picture.shape[0] and picture[..., :3].std() > 0.05


def test_demo_takes_presets_and_limits(folder):
    pytest.importorskip("matplotlib", reason="the picture needs matplotlib (fenchel[plot])")
    args = ("demo", "--n", "200", "--side", "4", "--max-epochs", "3", "--output", "d.svg", "--preset")
    result = run(*args, "paper")
    assert result.exit_code == 0 and "not converged (epoch limit)" in result.stderr and os.path.getsize("d.svg")
    refused(run(*args, "fast"), "preset is 'fast'")
    refused(run("demo", "--output", "d.xyz"), "its extension must be one of")


# -- npy --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["last", "y.npy", "y.txt"])
def test_npy_files(folder, target):
    np.save("new.npy", X)
    if target == "last":
        np.save("X.npy", np.column_stack([X, SCORE]))
        options = []
    else:
        np.save("X.npy", X)
        np.save("y.npy", SCORE)
        np.savetxt("y.txt", SCORE, "%.17g")
        options = ["--target", target]
    assert run("fit", "X.npy", "--alpha", "0.1", *options).exit_code == 0
    model = loaded()
    proven(model, X, SCORE, fl.L1(), "squared")
    result = run("predict", "model.json", "X.npy", *options)
    assert result.exit_code == 0 and "R^2" in result.stderr
    assert run("predict", "model.json", "new.npy").stdout == result.stdout


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["flat.npy"], "must be a numeric matrix"),
        (["words.npy"], "words.npy has dtype"),
        (["X.npy", "--target", "y.npy"], "y.npy is 'y.npy'|neither a file nor a column"),
        (["X.npy", "--target", "99"], "columns 0 to 11"),
        (["X.npy", "--target", "short.npy"], "short.npy holds 3 targets, but X.npy has 120 rows"),
        (["broken.npy"], "broken.npy is not an npy file"),
        (["hole.npy"], r"hole.npy: X\[2, 1\] is not a finite number"),
    ],
)
def test_bad_npy_files(folder, args, match):
    np.save("X.npy", X)
    np.save("flat.npy", SCORE)
    np.save("words.npy", LABELS)
    np.save("short.npy", SCORE[:3])
    hole = X.copy()
    hole[2, 1] = np.nan
    np.save("hole.npy", hole)
    (folder / "broken.npy").write_bytes(b"\x93NUMPY not really")
    refused(run("fit", *args), match)


# -- path -------------------------------------------------------------------------------------------


def test_path_writes_what_the_library_finds(structured):
    pytest.importorskip("matplotlib", reason="the pictures need matplotlib (fenchel[plot])")
    args = ("--penalty", "group-lasso", "--groups", "apart.csv", "--n-alphas", "12", "--eps", "0.01")
    done = process("path", "numbers.csv", *args, "--coefficients", "c.csv", "--picture", "p.png", "--report", "r.html")
    assert done.returncode == 0, done.stderr
    expected = fl.path(
        X, SCORE, loss="squared", penalty=fl.GroupLasso(APART), fit_intercept=True, n_alphas=12, eps=0.01
    )
    table = pd.read_csv("path.csv")
    assert table.columns[:5].tolist() == ["alpha", "objective", "lower_bound", "relative_gap", "nonzeros"]
    assert np.allclose(table.alpha, expected.alphas) and np.allclose(table.objective, expected.primals, rtol=2e-6)
    assert table.relative_gap.max() <= 1e-6 and set(table.status) == {"converged"}
    assert table.nonzeros.tolist() == expected.nonzeros.tolist()
    assert table.active_groups.tolist() == [sum(bool(w[g].any()) for g in APART.values()) for w in expected.coefs]
    coefs = pd.read_csv("c.csv")
    assert coefs.columns.tolist() == ["alpha", "(intercept)", *NAMES]
    problem = fl.Problem(X, SCORE, loss="squared", penalty=fl.GroupLasso(APART), fit_intercept=True)
    for (_, row), objective in zip(coefs.iterrows(), table.objective, strict=True):
        at = problem.with_alpha(row.iloc[0]).primal(row.iloc[2:].to_numpy(), row.iloc[1])
        assert at == pytest.approx(objective, rel=1e-12)
    assert os.path.getsize("p.png") > 5000 and "<img" in (structured / "r.html").read_text()


def test_path_of_several_outputs_as_npz(folder):
    pd.DataFrame(stretched(), columns=NAMES).assign(kind=KINDS).to_csv("kinds.csv", index=False)
    args = ("--penalty", "multi-task-lasso", "--standardize", "--n-alphas", "5", "-q", "--coefficients", "c.npz")
    assert run("path", "kinds.csv", *args).exit_code == 0
    with np.load("c.npz") as file:
        assert file["coef"].shape == (5, 3, 12) and file["intercept"].shape == (5, 3)
        assert file["outputs"].tolist() == ["low", "mid", "top"] and file["features"].tolist() == NAMES
        alpha, coef = file["alphas"][-1], file["coef"][-1]
    assert run("fit", "kinds.csv", "--penalty", "multi-task-lasso", "--standardize", "--alpha", alpha).exit_code == 0
    assert np.allclose(np.array(loaded()["coef"]) / coef, 1, atol=0.02)


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["--penalty", "ridge"], "alpha_max is inf .* give --alphas instead"),
        (["--penalty", "box", "--lower", "0"], "has no strength to vary; use fenchel fit"),
        (["--alphas", "1,x"], "write numbers separated by commas"),
        (["--alphas", "-1"], "must be finite and not negative"),
        (["--eps", "2"], "--eps is 2"),
        (["--coefficients", "c.txt"], "extension must be .csv or .npz"),
        (["--coefficients", "path.csv"], "both 'path.csv'"),
    ],
)
def test_a_bad_path_is_one_line(folder, args, match):
    refused(run("path", "train.csv", *args), match)
    assert not os.path.exists("path.csv")


def test_alphas_as_given_and_points_that_do_not_converge(folder):
    limits = ("--max-epochs", "2", "--tol", "1e-15")
    result = run("path", "train.csv", "--loss", "hinge", "--alphas", "0.001, 0.1,0.01", *limits)
    assert result.exit_code == 0 and "points not converged: largest relative gap" in result.stderr
    assert pd.read_csv("path.csv").alpha.tolist() == [0.1, 0.01, 0.001]


def test_ctrl_c_keeps_the_points_of_a_path(folder, monkeypatch):
    @contextlib.contextmanager
    def interrupted_at_three(total, options):
        points = []

        def show(alpha, result):
            points.append(alpha)
            if len(points) == 3:
                raise KeyboardInterrupt

        yield show

    monkeypatch.setattr("fenchel.cli.path.alpha_bar", interrupted_at_three)
    result = run("path", "train.csv", "--n-alphas", "9", "--coefficients", "c.csv")
    assert result.exit_code == 130 and "interrupted after 3 of 9 alphas" in result.stderr
    table = pd.read_csv("path.csv")
    assert table.status.tolist() == 3 * ["converged"] + 6 * ["interrupted"]  # what was not done is marked
    assert table.objective.notna().sum() == len(pd.read_csv("c.csv")) == 3 and table.alpha.notna().all()
    result = run("cv", "train.csv", "--n-alphas", "9")
    assert result.exit_code == 130 and "nothing was written" in result.stderr and not os.path.exists("model.json")


def test_a_terminal_gets_a_bar_that_counts(folder):
    environment = os.environ | {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}
    done = process("cv", "train.csv", "--n-alphas", "4", "--folds", "3", "--jobs", "2", env=environment)
    assert done.returncode == 0 and re.search(r"\d+/12", done.stderr)
    assert process("path", "train.csv", "--n-alphas", "4", "--quiet", env=environment).stderr == ""


# -- cv ---------------------------------------------------------------------------------------------


def test_cv_writes_the_chosen_model(structured):
    pytest.importorskip("matplotlib", reason="the pictures need matplotlib (fenchel[plot])")
    args = [
        "cv",
        "train.csv",
        "--penalty",
        "group-lasso",
        "--groups",
        "apart.csv",
        "--n-alphas",
        "15",
        "--table",
        "t.csv",
    ]
    chosen = {}
    for rule in ("min", "1se"):
        done = process(*args, "--rule", rule, "--jobs", "2", "--picture", "p.svg", "--report", "r.html")
        assert done.returncode == 0, done.stderr
        chosen[rule] = loaded()
    table = pd.read_csv("t.csv")
    losses = table.filter(like="fold_")
    assert losses.shape == (15, 5) and np.allclose(losses.mean(axis=1), table.mean_loss)
    assert np.allclose(losses.std(axis=1, ddof=1) / np.sqrt(5), table.standard_error)
    assert table.relative_gap.max() <= 1e-5  # what folds are fitted to: as much as a choice needs
    best = table.mean_loss.idxmin()
    within = table.mean_loss <= table.mean_loss[best] + table.standard_error[best]
    assert chosen["min"]["alpha"] == pytest.approx(table.alpha[best])
    assert chosen["1se"]["alpha"] == pytest.approx(table.alpha[within].max())
    for model in chosen.values():
        proven(model, X, np.where(LABELS == "yes", 1.0, -1.0), fl.GroupLasso(APART))
    assert os.path.getsize("p.svg") > 5000 and "Cross-validation" in (structured / "r.html").read_text()


def test_cv_tells_when_the_grid_is_too_short(folder):
    result = run("cv", "numbers.csv", "--n-alphas", "3", "--eps", "0.5", "-q")
    assert result.exit_code == 0 and "try a smaller --eps" in result.stderr


def test_cv_does_not_depend_on_jobs_and_shuffles_by_seed(folder):
    order = np.argsort(SCORE)  # rows in the order of their target: the worst case for folds of neighbours
    pd.DataFrame(X[order], columns=NAMES).assign(y=SCORE[order]).to_csv("sorted.csv", index=False)
    tables = []
    for options in (["--jobs", "1"], ["--jobs", "2"], ["--seed", "1"], ["--no-shuffle"]):
        assert (
            run("cv", "sorted.csv", "--n-alphas", "6", "--folds", "4", "--table", "t.csv", "-q", *options).exit_code
            == 0
        )
        tables.append(pd.read_csv("t.csv"))
    assert tables[0].equals(tables[1])
    assert not tables[0].fold_0.equals(tables[2].fold_0)
    rows = np.arange(30, 120)
    alone = fl.path(X[order][rows], SCORE[order][rows], loss="squared", penalty=fl.L1(), fit_intercept=True,
                    alphas=tables[3].alpha.to_numpy(), tol=1e-8)  # fmt: skip
    held = [
        np.mean((X[order][:30] @ w + b - SCORE[order][:30]) ** 2) / 2
        for w, b in zip(alone.coefs, alone.intercepts, strict=True)
    ]
    assert np.allclose(tables[3].fold_0, held, rtol=1e-3)


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["--rule", "best"], "--rule is 'best'; it must be min or 1se"),
        (["--folds", "121"], "--folds is 121, but train.csv has 120 rows|only [0-9]+ rows have the label"),
        (["--folds", "100"], "only [0-9]+ rows have the label"),
    ],
)
def test_a_bad_cv_is_one_line(folder, args, match):
    refused(run("cv", "train.csv", *args), match)
    assert not os.path.exists("model.json")


# -- the documentation ------------------------------------------------------------------------------

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "command-line.md")


def options_of(command):
    found = testing.CliRunner().invoke(
        cli.make_app(), [command, "--help"], env={"COLUMNS": "200", "TERMINAL_WIDTH": "200"}
    )
    assert found.exit_code == 0
    return set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", found.stdout))


def test_the_page_names_options_that_exist():
    with open(PAGE, encoding="utf-8") as file:
        page = file.read()
    known = {command: options_of(command) for command in ("demo", "fit", "path", "cv", "predict", "reproduce")}
    for option in set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page)):
        assert any(option in options for options in known.values()), option
    for name in known_penalties():
        assert f"`{name}`" in page, name


def test_the_examples_of_the_page_run(folder):
    """Every `fenchel` line of the page, on small files of the names that it uses."""
    pytest.importorskip("matplotlib", reason="the pictures need matplotlib (fenchel[plot])")
    write_examples(folder)
    with open(PAGE, encoding="utf-8") as file:
        blocks = re.findall(r"^```bash\n(.*?)^```", file.read(), re.S | re.M)
    lines = [
        line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.startswith("fenchel ")
    ]
    assert len(lines) >= 12
    import shlex

    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if words[0] in ("demo", "reproduce"):
            continue  # they have tests of their own
        result = run(*words)
        assert result.exit_code == 0, f"{line}\n{result.stderr}"


def write_examples(folder):
    rng = np.random.default_rng(5)
    columns = ["age", "income", "job_baker", "job_nurse", "town_Ulm", "town_Bern", "town_Graz", "height"]
    people = pd.DataFrame(rng.standard_normal((90, 8)), columns=columns)
    score = people.age - people.job_nurse + 0.3 * rng.standard_normal(90)
    site = np.array(["Oslo", "Rome", "Lima"])[np.arange(90) % 3]
    people.assign(bought=np.where(score > 0, "yes", "no")).to_csv("people.csv", index=False)
    people.assign(bought="no").to_csv("new.csv", index=False)
    town = np.array(["Oslo", "Rome", "Lima", "Bonn", "Kyiv", "Nice"])[np.arange(90) % 6]
    cars = people[["age", "income"]].assign(make=town, price=score)
    cars.loc[3, "age"] = np.nan
    cars.to_csv("cars.csv", index=False)
    people.assign(town=town, ill=np.where(score > 0, "yes", "no")).to_csv("clinics.csv", index=False)
    people.assign(site=site, price=score, rent=2 * score).to_csv("houses.csv", index=False)
    images = pd.DataFrame(rng.standard_normal((90, 48)))
    digit = np.array(["three", "eight", "nine"])[np.arange(90) % 3]
    images.assign(digit=digit).to_csv("images.csv", index=False)
    mask = np.ones((8, 8), dtype=int)
    mask[:2] = 0
    np.savetxt("mask.txt", mask, "%d")
    genes = [f"G{j}" for j in range(20)]
    pd.DataFrame(rng.standard_normal((60, 20)), columns=genes).assign(y=rng.standard_normal(60)).to_csv(
        "genes.csv", index=False
    )
    (folder / "pathways.gmt").write_text(
        "one\tx\t" + "\t".join(genes[:9]) + "\ntwo\tx\t" + "\t".join(genes[6:15]) + "\n"
    )
    (folder / "groups.json").write_text("[[0, 1, 2], [3, 4, 5, 6, 7]]")
    (folder / "edges.csv").write_text("\n".join(f"G{j},G{j + 1}" for j in range(19)))
    (folder / "tree.csv").write_text(
        "child,parent\n" + "\n".join(f"G{j},{'left' if j < 9 else 'right'}" for j in range(20))
    )
    dump_svmlight_file(people.to_numpy(), np.where(score > 0, 1, -1), "data.svm", zero_based=False)
