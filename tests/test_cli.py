"""The command line as a user meets it: real files, real processes, and one clear line for every error."""

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
from fenchel.model import Model, encode_labels

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
    return subprocess.run(
        [sys.executable, "-m", "fenchel", *map(str, args)], capture_output=True, text=True, timeout=120, **options
    )


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
    """A file and options that keep the solver busy for minutes: a kinked loss on noise, without a goal."""
    rng = np.random.default_rng(1)
    np.savez("noise.npz", X=rng.standard_normal((4000, 60)), y=rng.integers(0, 2, 4000))
    return ["noise.npz", "--loss", "hinge", "--alpha", "1e-6", "--tol", "0", "--max-epochs", "1000000000"]


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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    refused(done, r"pip install 'fenchel\[cli\]'")


def test_importing_stays_light():
    code = (
        "import sys, fenchel, fenchel.cli\n"
        "heavy = {'numba', 'numpy', 'scipy', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")
def test_ctrl_c_keeps_the_best_answer(folder):
    command = [sys.executable, "-m", "fenchel", "fit", *endless()]
    # a forced terminal shows the bar, which tells when the solver is at work
    environment = os.environ | {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as running:
        try:
            seen = b""
            while not re.search(rb"epoch +[1-9]", seen):
                chunk = os.read(running.stderr.fileno(), 4096)
                assert chunk, f"the solver stopped before it was interrupted: {seen!r}"
                seen += chunk
            running.send_signal(signal.SIGINT)
            _, rest = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 130
    assert b"interrupted" in rest
    certificate = loaded()["certificate"]
    assert certificate["status"] == "interrupted" and np.isfinite(certificate["primal"])


def test_ctrl_c_before_the_solver_writes_nothing(folder, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("fenchel.files.read_data", interrupt)
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


PENALTIES = {
    "l1": [],
    "ridge": ["--alpha", "0.1"],
    "elastic-net": ["--ridge", "0.5"],
    "group": ["--groups", "groups.json"],
    "group-linf": ["--groups", "groups.csv"],
    "graph": ["--edges", "edges.csv", "--l1", "0.5"],
    "fused": [],
    "trend": ["--order", "2", "--alpha", "0.01"],
    "tv": ["--shape", "3x4"],
    "trace": ["--shape", "3x4"],
    "non-negative": ["--ridge", "0.1", "--alpha", "1"],
    "box": ["--lower", "-0.3", "--upper", "0.4"],
}


def test_every_penalty_is_tried():
    assert set(PENALTIES) == set(cli._PENALTIES)


@pytest.mark.parametrize("name", PENALTIES)
def test_every_penalty_is_certified(folder, name):
    (folder / "groups.json").write_text('{"first": ["f0", "f1", "f2", 3], "overlap": [3, 4, 5], "rest": [6, 7, 8, 9]}')
    (folder / "groups.csv").write_text("group,feature\na,f0\na,f1\nb,f1\nb,f2\nc,3\n")
    (folder / "edges.csv").write_text("i,j,weight\nf0,f1,-1\nf1,f2,0.5\n3,4,2\n")
    result = run("fit", "train.csv", "--penalty", name, "--tol", "1e-5", *PENALTIES[name])
    assert result.exit_code == 0, result.stderr
    model = loaded()
    assert model["certificate"]["certified"] and model["certificate"]["relative_gap"] <= 1e-5, result.stdout
    if name == "box":
        assert min(model["coef"]) == pytest.approx(-0.3) and max(model["coef"]) == pytest.approx(0.4)
    if name == "non-negative":
        assert min(model["coef"]) >= 0


def test_group_penalty_is_the_library_one(folder):
    (folder / "g.json").write_text('{"a": ["f0", "f1"], "b": ["f1", 2]}')
    args = ("--penalty", "group", "--groups", "g.json", "--l1", "0.3", "--ridge", "0.1", "--alpha", "0.05")
    assert run("fit", "numbers.csv", *args).exit_code == 0
    model = loaded()
    penalty = fl.GroupL2([[0, 1], [1, 2]]) + 0.3 * fl.L1() + 0.1 * fl.Ridge()
    problem = fl.Problem(X, SCORE, loss="squared", penalty=penalty, alpha=0.05, fit_intercept=True)
    assert problem.primal(model["coef"], model["intercept"]) == pytest.approx(model["certificate"]["primal"], rel=1e-12)


@pytest.mark.parametrize(
    ("isotropic", "penalty"),
    [
        ("--isotropic", lambda g: fl.GroupL2(g.cells, weights=np.ones(len(g.cells))) @ g),
        ("--anisotropic", lambda g: fl.L1() @ g),
    ],
)
def test_total_variation_is_the_library_one(folder, isotropic, penalty):
    assert run("fit", "numbers.csv", "--penalty", "tv", "--shape", "3x4", isotropic, "--alpha", "0.1").exit_code == 0
    model = loaded()
    problem = fl.Problem(X, SCORE, loss="squared", penalty=penalty(fl.Gradient((3, 4))), alpha=0.1, fit_intercept=True)
    assert problem.primal(model["coef"], model["intercept"]) == pytest.approx(model["certificate"]["primal"], rel=1e-12)


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
        (["train.csv", "--penalty", "lasso"], "--penalty is 'lasso'; it must be one of l1, ridge"),
        (["train.csv", "--penalty", "fuse"], "did you mean 'fused'"),
        (["train.csv", "--loss", "logit"], "--loss is 'logit'"),
        (["train.csv", "--loss", "squared"], "the target holds '(yes|no)'; the loss 'squared' takes numbers"),
        (["train.csv", "--loss", "huber", "--delta", "-1"], "delta is -1"),
        (["train.csv", "--delta", "1"], "--delta does not go with the loss 'logistic'"),
        (["numbers.csv", "--loss", "hinge"], "120 different values"),
        (["train.csv", "--penalty", "group"], "this penalty needs --groups"),
        (["train.csv", "--penalty", "group", "--groups", "nope.json"], "nope.json does not exist"),
        (["train.csv", "--penalty", "group", "--groups", "far.json"], "feature 12 does not exist.*0 to 11"),
        (["train.csv", "--groups", "far.json"], "--groups goes with the penalty group or group-linf"),
        (["train.csv", "--penalty", "tv", "--shape", "12"], "write it as HxW"),
        (["train.csv", "--penalty", "tv", "--shape", "5x5"], "25 features, but the data has 12"),
        (["train.csv", "--penalty", "trend", "--order", "12"], "--order is 12"),
        (["train.csv", "--penalty", "box"], "needs --lower, --upper or both"),
        (["train.csv", "--penalty", "ridge"], "alpha_max is inf .* give --alpha"),
        (["train.csv", "--alpha", "1", "--alpha-ratio", "1"], "not both"),
        (["train.csv", "--alpha", "-1"], "alpha is -1"),
        (["train.csv", "--alpha-ratio", "nan"], "--alpha-ratio is nan"),
        (["train.csv", "--tol", "-1"], "tol is -1"),
        (["train.csv", "--weights", "nothing"], "neither a column of train.csv nor a file"),
        (["train.csv", "--weights", "three.txt"], "sample_weight has 3 entries, but X has 120 rows"),
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
    (folder / "one.csv").write_text("a,y\n1,yes\n2,yes\n")
    (folder / "gap.csv").write_text("a,y\n1,yes\n,no\n")
    (folder / "empty.csv").write_text("a,y\n")
    (folder / "bad.svm").write_text("1 1:2\n-1 1:x\n")
    (folder / "model.json").write_text("the old model")
    refused(run("fit", *args), match)
    assert (folder / "model.json").read_text() == "the old model"
    assert not [name for name in os.listdir() if name.startswith(".fenchel")]


def test_an_unknown_option_is_a_usage_error():
    assert run("fit", "x.csv", "--bogus").exit_code == 2


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
        (["train.csv", "train.csv"], "train.csv is not a fenchel model: line 1"),
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
        ({"coef": [[1.0]]}, "finite numbers"),
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
