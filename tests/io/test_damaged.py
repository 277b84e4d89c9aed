"""Files that are damaged, or say more of themselves than they hold: refused with their name, before memory is taken."""

import gzip
import io
import json
import os
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.foundation import files
from fenchel.io import read_data, read_groups, read_weights
from fenchel.models import Model

pd = pytest.importorskip("pandas", reason="the samples need pandas and pyarrow (fenchel[io])")
pytest.importorskip("pyarrow")


def test_damaged_files_are_read_or_refused_by_name():
    from fenchel.testing.files import check_files

    wrong = [case for case in check_files(740, seed=5) if case.outcome not in ("read", "refused")]
    assert not wrong, wrong[:3]


@pytest.mark.skipif(sys.platform == "win32", reason="signals differ on Windows")
def test_killed_processes_leave_whole_files_and_go_on_to_the_same_bits():
    from fenchel.testing.kills import killed, tasks

    rng = np.random.default_rng(0)
    assert [line for task in tasks(quick=True) for line in killed(task, 3, rng)] == []


# -- memory ------------------------------------------------------------------------------------------


def test_a_wrong_index_does_not_take_all_memory(tmp_path):
    path = tmp_path / "d.svm"
    path.write_text("1 1:1 2147483647:1\n0 1:2\n")
    with pytest.raises(ValueError, match=r"d\.svm has 3 entries in 2,147,483,647 columns.*--max-features 2147483647"):
        read_data(path)
    path.write_text("1 1:1 1500000:1\n0 1:2\n")
    assert read_data(path, max_features=1_500_000).X.shape == (2, 1_500_000)
    with pytest.raises(ValueError, match="more than 1,000,000"):
        read_data(path)
    made = sp.csr_array(([1.0], [0], [0, 1, 1]), shape=(2, 3_000_000))
    parts = {name: getattr(made, name) for name in ("data", "indices", "indptr")}
    np.savez(tmp_path / "d.npz", shape=made.shape, y=[0, 1], **parts)
    with pytest.raises(ValueError, match=r"d\.npz has 1 entries in 3,000,000 columns"):
        read_data(tmp_path / "d.npz")


def test_packed_files_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BEYOND", 20_000_000)  # a tenth, to be quick
    with gzip.open(tmp_path / "b.gmt.gz", "wb", compresslevel=1) as file:
        for _ in range(3):
            file.write(10_000_000 * b"A")  # one line of 30 MB in a file of a tenth
    with pytest.raises(ValueError, match=r"b\.gmt\.gz has [\d,]+ bytes, but would take .* unpack it first"):
        read_groups(tmp_path / "b.gmt.gz", 2, ["a", "b"])
    head = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": (10**9, 1000)}
    np.lib.format.write_array_header_1_0(head, about)
    with zipfile.ZipFile(tmp_path / "short.npz", "w") as archive:
        archive.writestr("X.npy", head.getvalue())
    with pytest.raises(
        ValueError, match=r"short\.npz, array 'X'.*\(1000000000, 1000\), for which the file is too short"
    ):
        read_data(tmp_path / "short.npz")
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(40_000_000))
    with pytest.raises(ValueError, match=r"bomb\.npz has .* would take 40,000,000"):
        read_data(tmp_path / "bomb.npz")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there are no such files")
def test_what_never_ends_is_not_read(tmp_path):
    with pytest.raises(ValueError, match="not a regular file"):
        read_data("/dev/zero")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(ValueError, match="not a regular file"):
        read_data(tmp_path / "pipe.csv")


# -- saved models and runs ---------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 3)), rng.standard_normal(30)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.01)
    result = fl.solve(problem, "sdca-admm", max_epochs=3, tol=0)
    Model.from_result(result, problem, tol=1e-6, features=["a", "b", "c"]).save(tmp_path / "model.json")
    result.save(tmp_path / "run.npz")
    return problem, tmp_path


@pytest.mark.parametrize(
    "change, match",
    [
        ({"alpha": "0.1"}, "its alpha is '0.1'; it must be a finite number"),
        ({"alpha": -1}, "must not be negative"),
        ({"features": [1, 2, 3]}, "entry 0 of its features is 1"),
        ({"features": "abc"}, "its features are 'abc'; they must be a list"),
        ({"penalty": None}, "its penalty is None; it must be text"),
        ({"first_index": 7}, "its first_index is 7"),
        ({"coef": [1e400, 0, 0]}, "finite"),
        ({"coef": [10**400, 0, 0]}, "too large"),
        ({"loss": []}, r"its loss is \[\]"),
        ({"certificate": {"primal": "x"}}, "certificate's primal is 'x'"),
        ({"scaling": {"scale": [1, 0, 1], "center": None}}, "scale must be above 0"),
        ({"scaling": {"scale": [1, 1], "center": None}}, "it must be 3 finite numbers"),
    ],
)
def test_a_model_with_a_wrong_part_is_refused_by_name(saved, change, match):
    _, folder = saved
    content = json.loads((folder / "model.json").read_text()) | change
    text = json.dumps(content).replace("Infinity", "1e999")
    (folder / "model.json").write_text(text)
    with pytest.raises(ValueError, match=rf"model\.json.*{match}"):
        Model.load(folder / "model.json")


def test_json_that_is_nested_without_end_or_holds_no_numbers(tmp_path):
    path = tmp_path / "w.json"
    for text, match in (
        ("[" * 100_000, r"w\.json is not JSON: its brackets are nested too deeply"),
        ('{"a": NaN}', r"w\.json is not JSON: it holds NaN"),
        ('{"a": 1' + 400 * "0" + "}", r"w\.json, entry a: the weight 1000"),
        ('{"a": 1' + 5000 * "0" + "}", r"w\.json is not JSON"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=match):
            read_weights(path)


@pytest.mark.parametrize("key", ["x", "y", "w", "zx", "by", "u", "rho", "idle", "rng"])
def test_a_run_whose_state_is_damaged_is_not_resumed(saved, key):
    """A vector that is too short would be read, and written, past its end."""
    problem, folder = saved
    run = fl.Result.load(folder / "run.npz")
    state = dict(run.state)
    state[key] = state[key][:2] if isinstance(state[key], np.ndarray) else {"rng": {"state": 1}, "rho": "x"}[key]
    run.state = state
    with pytest.raises(ValueError, match="warm_start"):
        fl.solve(problem, "sdca-admm", max_epochs=1, warm_start=run)


# -- wide tables -------------------------------------------------------------------------------------


def test_a_wide_table_is_read_as_any_other(tmp_path):
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((6, 1500)), 6)
    names = [f"gene_{j}" for j in range(1500)]
    labels = ["sick", "well"] * 3
    frame = pd.DataFrame(X, columns=names).assign(label=labels)
    frame.to_csv(tmp_path / "wide.csv", index=False)
    data = read_data(tmp_path / "wide.csv")
    assert np.array_equal(data.X, X) and data.y.tolist() == labels and data.features == names
    numbers = read_data(tmp_path / "wide.csv", target="gene_7", drop=["label"])
    assert np.array_equal(numbers.y, X[:, 7]) and numbers.X.shape == (6, 1499)
    pd.DataFrame(X, columns=names).assign(y=[0, 1] * 3).to_csv(tmp_path / "whole.csv", index=False)
    assert read_data(tmp_path / "whole.csv").y.tolist() == [0, 1] * 3
    text = (tmp_path / "wide.csv").read_text().splitlines()
    cells = text[3].split(",")
    for cell, match in (("", "has no value"), ("abc", "holds abc, which is not a finite number"), ("inf", "holds inf")):
        cells[5] = cell
        (tmp_path / "bad.csv").write_text("\n".join([*text[:3], ",".join(cells), *text[4:]]) + "\n")
        with pytest.raises(ValueError, match=rf"bad\.csv, line 4: column 'gene_5' {match}"):
            read_data(tmp_path / "bad.csv")
    (tmp_path / "long.csv").write_text("\n".join([*text[:3], text[3] + ",1"]) + "\n")
    with pytest.raises(ValueError, match=r"long\.csv, line 4: 1502 cells, but the first line has 1501"):
        read_data(tmp_path / "long.csv")
