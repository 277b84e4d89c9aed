"""Rows that stay on the disk."""

import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data import streamed
from fenchel.data.pools import Inline
from fenchel.io.opening import as_bytes

N, P = 2000, 8
SETTINGS = {"loss": "logistic", "penalty": fl.L1(), "alpha": 0.02, "fit_intercept": True}


@pytest.fixture(autouse=True)
def small_partitions(monkeypatch, tmp_path):
    monkeypatch.setattr(streamed, "PARTITION", 1 << 14)
    monkeypatch.setenv("FENCHEL_CACHE", str(tmp_path / "cache"))


def rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P))
    y = np.where(X[:, 0] - X[:, 1] + rng.standard_normal(N) > 0, 1, -1)
    return X, y, rng.uniform(0.5, 2.0, N)


def write(kind, folder):
    """The same rows in a file of every kind; the path, and what opens it."""
    X, y, weight = rows()
    if kind == "npy":
        for name, array in (("X", X), ("y", y), ("w", weight)):
            np.save(folder / f"{name}.npy", array)
        return folder / "X.npy", {"target": str(folder / "y.npy"), "weights": str(folder / "w.npy")}
    if kind == "npy by columns":
        write("npy", folder)
        np.save(folder / "F.npy", np.asfortranarray(X))
        return folder / "F.npy", {"target": str(folder / "y.npy"), "weights": str(folder / "w.npy")}
    if kind == "npz":
        np.savez(folder / "a.npz", X=X, y=y, w=weight)
        return folder / "a.npz", {"weights": "w"}
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(P)]).assign(w=weight, y=y)
    if kind == "csv":
        frame.to_csv(folder / "a.csv", index=False)
        return folder / "a.csv", {"target": "y", "weights": "w"}
    for k in range(2):
        frame.iloc[k * N // 2 : (k + 1) * N // 2].to_parquet(folder / f"part{k}.parquet")
    return folder / "*.parquet", {"target": "y", "weights": "w"}


@pytest.mark.parametrize("kind", ["npy", "npy by columns", "npz", "csv", "parquet"])
def test_every_format_gives_the_answer_of_the_rows_in_memory(kind, tmp_path):
    path, how = write(kind, tmp_path)
    X, y, weight = rows()
    known = fl.solve(fl.Problem(X, y, sample_weight=weight, **SETTINGS), tol=1e-9)
    pool = fl.open_data(path, memory="60MB", **how)
    assert pool.count > 2
    found = fl.solve(fl.Problem(pool, **SETTINGS), tol=1e-8)
    assert found.status is fl.Status.CONVERGED and found.primal == pytest.approx(known.primal, rel=2e-8)
    if kind in ("csv", "parquet"):
        assert pool.names == [f"f{j}" for j in range(P)] and pool.target == "y"
        again = fl.open_data(path, memory="60MB", **how)  # from its shards
        assert again.names == pool.names
        assert fl.solve(fl.Problem(again, **SETTINGS), tol=1e-8).coef.tobytes() == found.coef.tobytes()


def test_sparse_files_and_where_they_begin_to_count(tmp_path):
    from sklearn.datasets import dump_svmlight_file

    X, y, _ = rows()
    X = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    known = fl.solve(fl.Problem(X, y, **SETTINGS), tol=1e-9)
    for first in (0, 1):
        path = tmp_path / f"rows{first}.svm"
        dump_svmlight_file(X, y, str(path), zero_based=first == 0)
        pool = fl.open_data(path)
        assert pool.first_index == first and pool.facts.p == P and pool.facts.sparse
        assert fl.solve(fl.Problem(pool, **SETTINGS), tol=1e-8).primal == pytest.approx(known.primal, rel=2e-8)
    np.savez(tmp_path / "s.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    found = fl.solve(fl.Problem(fl.open_data(tmp_path / "s.npz"), **SETTINGS), tol=1e-8)
    assert found.primal == pytest.approx(known.primal, rel=2e-8)


@pytest.mark.parametrize("kind", ["npy", "npz", "csr", "single"])
def test_rows_on_a_disk_give_the_bits_of_the_same_partitions_in_memory(kind, tmp_path, monkeypatch):
    import fenchel.problem.pooled as module

    monkeypatch.setattr(module, "FEWEST", 300)
    X, y, weight = rows()
    targets = np.column_stack([y, -y + X[:, 0], X[:, 2]])  # several outputs
    if kind == "csr":
        S = sp.csr_array(np.where(np.abs(X) > 1, X, 0.0))
        np.savez(
            tmp_path / "a.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=targets, w=weight
        )
    elif kind == "npz":
        np.savez(tmp_path / "a.npz", X=X, y=targets, w=weight)
    else:
        for name, array in (("X", X.astype(np.float32) if kind == "single" else X), ("y", targets), ("w", weight)):
            np.save(tmp_path / f"{name}.npy", array)
    path, how = (
        (tmp_path / "a.npz", {"weights": "w"}) if kind in ("csr", "npz") else
        (tmp_path / "X.npy", {"target": str(tmp_path / "y.npy"), "weights": str(tmp_path / "w.npy")})
    )  # fmt: skip
    opened = fl.open_data(path, **how)
    opened.memory = 1.0  # read anew for every round
    held = Inline([reader() for reader in opened.readers][::-1])
    held.memory = opened.memory
    assert opened.count > 3 and held.parts[0].arrays[0].dtype == (np.float32 if kind == "single" else np.float64)
    settings = {"loss": "huber", "penalty": fl.MultiTaskLasso(3), "alpha": 0.02, "fit_intercept": True}
    found, other = (fl.solve(fl.Problem(pool, **settings)) for pool in (opened, held))
    assert found.status is fl.Status.CONVERGED and found.coef.any()
    assert found.coef.tobytes() == other.coef.tobytes() and found.intercept.tobytes() == other.intercept.tobytes()


def test_shards_are_made_anew_where_a_file_has_changed_and_never_used_half_written(tmp_path, monkeypatch):
    path, how = write("csv", tmp_path)
    first = fl.open_data(path, **how)
    home = os.path.dirname(first.readers[0].path)
    os.truncate(first.readers[1].path, 10)  # a part of a shard is gone
    assert fl.open_data(path, **how).facts.n == N
    text = path.read_text().splitlines()
    path.write_text("\n".join(text[:-5]) + "\n")
    other = fl.open_data(path, **how)
    assert other.facts.n == N - 5 and os.path.dirname(other.readers[0].path) != home
    # a conversion that ends in the middle leaves nothing
    os.utime(path, ns=(1, 1))
    written = []

    def fail(*given):
        written.append(given)
        if len(written) == 3:
            raise OSError(28, "No space left on device")
        return streamed.write_shard(*given)

    monkeypatch.setattr("fenchel.io.shards.write_shard", fail)
    before = set(os.listdir(tmp_path / "cache"))
    with pytest.raises(OSError, match=r"disk of .* is full"):
        fl.open_data(path, **how)
    assert set(os.listdir(tmp_path / "cache")) == before
    # and a real one: numpy tells of a write that was cut short without a number
    monkeypatch.undo()
    resource = pytest.importorskip("resource", reason="limits of files are not everywhere")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 12, limits[1]))
    try:
        with pytest.raises(OSError, match=r"disk of .* is full.* FENCHEL_CACHE"):
            fl.open_data(path, **how)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert set(os.listdir(tmp_path / "cache")) == before


def test_a_file_that_changes_while_it_is_read_is_noticed(tmp_path):
    path, how = write("npy", tmp_path)
    pool = fl.open_data(path, **how)
    problem = fl.Problem(pool, **SETTINGS)
    np.save(path, rows(1)[0][:-1])
    with pytest.raises(ValueError, match=r"X\.npy has changed"):
        fl.solve(problem)
    path.unlink()
    with pytest.raises(ValueError, match=r"X\.npy is gone"):
        pool.readers[0]()


def test_faults_are_named_with_file_and_row(tmp_path):
    path, how = write("csv", tmp_path)
    text = path.read_text().splitlines()
    text[1500] = text[1500].replace(",", ",x", 1)
    path.write_text("\n".join(text))
    with pytest.raises(ValueError, match=r"a\.csv, line 1501: column 'f1' holds x") as error:
        fl.open_data(path, **how)
    assert str(error.value).endswith("; --drop f1 leaves this one out")  # words are coded where all rows are at hand
    text[1500] = re.sub(",[^,]*", ",", text[1500], count=1)
    path.write_text("\n".join(text))
    with pytest.raises(ValueError, match="line 1501: column 'f1' has no value; fill it or leave its row out of the"):
        fl.open_data(path, **how)
    bad = tmp_path / "bad.svm"
    bad.write_text("1 1:2\n" * 900 + "1 2:3 1:x\n")
    with pytest.raises(ValueError, match=r"bad\.svm, line 901"):
        fl.open_data(bad)
    X, y, _ = rows()
    np.savez(tmp_path / "torn.npz", X=X, y=y)
    torn = bytearray((tmp_path / "torn.npz").read_bytes())
    torn[60_000:60_004] = b"torn"
    (tmp_path / "torn.npz").write_bytes(torn)
    with pytest.raises(ValueError, match=r"torn\.npz cannot be read beyond row \d+ \(Bad CRC"):
        fl.open_data(tmp_path / "torn.npz")
    large = X.copy()
    large[5, 2] = 1e200
    np.savez(tmp_path / "large.npz", X=large, y=y)
    with pytest.raises(ValueError, match=r"large\.npz has numbers in column 2 whose squares overflow"):
        fl.Problem(fl.open_data(tmp_path / "large.npz"), **SETTINGS)
    X[777, 3] = np.inf
    np.save(tmp_path / "inf.npy", X)
    np.save(tmp_path / "t.npy", y)
    with pytest.raises(ValueError, match=r"inf\.npy, row 777, column 3 is inf"):
        fl.Problem(fl.open_data(tmp_path / "inf.npy", target=str(tmp_path / "t.npy")), **SETTINGS)


def test_arguments_are_checked(tmp_path):
    path, how = write("npy", tmp_path)
    for wrong, message in (
        ({"memory": "1MB"}, "at least"), ({"memory": "much"}, "such as '2GB'"), ({"dtype": "int8"}, "dtype is"),
        ({"target": "zzz"}, "neither a file nor"), ({"drop": ["a"]}, "drop is for"), ({"target": 99}, "columns 0 to 7"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            fl.open_data(path, **how | wrong)
    with pytest.raises(ValueError, match="no file matches"):
        fl.open_data(tmp_path / "*.nothing")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fl.open_data(tmp_path / "nothing.npy")
    assert as_bytes("2GB") == 2e9 and as_bytes("500m") == 5e8 and as_bytes(12.0) == 12.0


def test_memory_stays_below_what_is_allowed(tmp_path):
    """A process that streams 160 MB of rows, with 60 MB for them beside what the package itself takes."""
    code = textwrap.dedent(f"""
        import resource, numpy as np, fenchel as fl
        from pathlib import Path
        def peak():
            return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
        rng = np.random.default_rng(0)
        X = np.lib.format.open_memmap(r"{tmp_path}/X.npy", mode="w+", dtype=np.float32, shape=(400_000, 100))
        y = np.empty(400_000)
        for k in range(0, 400_000, 20_000):
            X[k : k + 20_000] = part = rng.standard_normal((20_000, 100), dtype=np.float32)
            y[k : k + 20_000] = part[:, 0] + rng.standard_normal(20_000)
        np.save(r"{tmp_path}/y.npy", y)
    """)
    run = textwrap.dedent(f"""
        from pathlib import Path
        import numpy as np, fenchel as fl
        def peak():
            return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
        small = fl.open_data(r"{tmp_path}/X.npy", target=r"{tmp_path}/y.npy", memory="60MB")
        small.readers = small.readers[:1]
        settings = dict(loss="squared", penalty=fl.L1(), alpha=0.1)
        fl.solve(fl.Problem(small, **settings))
        before = peak()
        rows = fl.open_data(r"{tmp_path}/X.npy", target=r"{tmp_path}/y.npy", memory="60MB")
        result = fl.solve(fl.Problem(rows, **settings))
        print(result.relative_gap, peak() - before)
    """)
    if not os.path.exists("/proc/self/status"):
        pytest.skip("no /proc on this system")
    for script in (code, run):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    gap, more = (float(word) for word in done.stdout.split())
    assert gap <= 1e-6 and more < 60e6
