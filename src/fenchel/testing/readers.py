"""A small whole file for every reader of the package, and how to read it."""

from __future__ import annotations

import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..io import read_data, read_edges, read_groups, read_like, read_mask, read_tree, read_vector, read_weights
from ..models.saved_model import Model
from ..penalties import L1
from ..problem import Problem
from ..solver import solve
from ..solver.result import Result

_NAMES = ["alpha", "beta", "gamma", "delta"]


class Reader(NamedTuple):
    """A file's name (its ending tells the format), what it holds, and what reads it and looks at what was read."""

    file: str
    content: bytes
    read: Callable[[str], Any]


def make_readers(folder: str | os.PathLike[str]) -> dict[str, Reader]:
    """All of them, by name; `folder` is for files that are read beside a damaged one."""
    folder = Path(folder)
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((12, 4)), 3)
    X[rng.random(X.shape) < 0.3] = 0.0
    y = rng.integers(0, 2, 12)
    plain = folder / "plain.npy"
    np.save(plain, X)
    readers = [*_tables(X, y), *_matrices(X, y), *_beside(plain, y), *_structures(), *_saved(X, y)]
    return {f"{k:02d} {reader.file}": reader for k, reader in enumerate(readers)}


def _data(path: str, **options: Any) -> None:
    data = read_data(path, **options)
    values = data.X.data if sp.issparse(data.X) else data.X
    rows, columns = data.X.shape
    _hold(path, np.isfinite(values).all(), "a number is not finite")
    _hold(path, data.y is not None and len(data.y) == rows, "targets and rows differ in number")
    _hold(path, data.features is None or len(data.features) == columns, "names and columns differ in number")


def _hold(path: str, ok: Any, what: str) -> None:
    if not ok:
        raise AssertionError(f"{path} was read, but {what}")


def _tables(X: np.ndarray, y: np.ndarray) -> list[Reader]:
    import pandas as pd

    frame = pd.DataFrame(X, columns=_NAMES).assign(y=y)
    words = frame.assign(y=np.where(y, "yes", "no"), task=np.where(X[:, 0] > 0, "north", "south"), weight=1.5)
    like: dict[str, Any] = {"n_features": 4, "features": _NAMES, "target": "y"}
    parquet = io.BytesIO()
    words.to_parquet(parquet)
    return [
        Reader("table.csv", frame.to_csv(index=False).encode(), _data),
        Reader("bare.csv", frame.to_csv(index=False, header=False).encode(), _data),
        Reader("semicolons.csv", frame.to_csv(index=False, sep=";").encode(), lambda path: read_like(path, **like)),
        Reader("words.tsv", words.to_csv(index=False, sep="\t").encode(),
               lambda path: _data(path, target="y", weights="weight", task="task")),
        Reader("table.parquet", parquet.getvalue(),
               lambda path: _data(path, target="y", weights="weight", task="task")),
    ]  # fmt: skip


def _matrices(X: np.ndarray, y: np.ndarray) -> list[Reader]:
    lines = [
        " ".join([str(label), *(f"{j + 1}:{value!r}" for j, value in enumerate(row.tolist()) if value)])
        for row, label in zip(X, y, strict=True)
    ]
    text = ("# a comment\n" + "\n".join(lines) + "\n").encode()
    array = io.BytesIO()
    np.save(array, np.column_stack([X, y]))
    out = [
        Reader("rows.svm", text, _data),
        Reader("rows", text, _data),
        Reader("some.svm", text, lambda path: read_like(path, n_features=4, first_index=1)),
        Reader("matrix.npy", array.getvalue(), _data),
        Reader("dense.npz", _npz(X=X, y=y, w=np.ones(12), feature_names=np.array(_NAMES)),
               lambda path: _data(path, weights="w")),
        Reader("words.npz", _npz(X=X.astype(np.float32), y=np.where(y, "yes", "no"), t=y),
               lambda path: _data(path, task="t")),
    ]  # fmt: skip
    for kind in ("csr", "csc", "bsr", "coo", "dia"):
        made = sp.csr_array(X).asformat(kind)
        names = {"coo": ("row", "col"), "dia": ("offsets",)}.get(kind, ("indices", "indptr"))
        parts = {name: getattr(made, name) for name in names}
        content = _npz(data=made.data, shape=np.array(X.shape), format=kind.encode(), y=y, **parts)
        out.append(Reader(f"{kind}.npz", content, _data))
    return out


def _beside(plain: Path, y: np.ndarray) -> list[Reader]:
    numbers = "\n".join(map(str, y.tolist())).encode()
    return [
        Reader("targets.txt", numbers, lambda path: read_data(plain, target=path)),
        Reader("weights.txt", b"\n".join([b"1.5"] * 12), lambda path: read_data(plain, weights=path)),
        Reader("tasks.txt", b"\n".join([b"north", b"south"] * 6), lambda path: read_data(plain, task=path)),
        Reader("offset.txt", b"\n".join([b"0.5"] * 12), lambda path: read_data(plain, offset=path)),
        Reader("vector.txt", numbers, read_vector),
    ]


def _structures() -> list[Reader]:
    gmt = b"\n".join(b"\t".join(words) for words in ((b"one", b"-", b"alpha", b"beta"), (b"two", b"-", b"gamma", b"x")))
    mask = io.BytesIO()
    np.save(mask, np.array([[1, 0], [1, 1]]))

    def groups(path: str) -> Any:
        return read_groups(path, 4, _NAMES)

    def edges(path: str) -> Any:
        return read_edges(path, 4, _NAMES)

    return [
        Reader("groups.json", json.dumps({"one": ["alpha", 1], "two": [2, "delta"]}).encode(), groups),
        Reader("groups.csv", b"group,feature\none,alpha\none,1\ntwo,gamma\n", groups),
        Reader("groups.gmt", gmt, groups),
        Reader("groups.gmt.gz", gzip.compress(gmt, mtime=0), groups),
        Reader("edges.json", json.dumps([[0, 1, 0.5], ["alpha", "delta", 2]]).encode(), edges),
        Reader("edges.csv", b"i,j\n0,1\nalpha,delta\n", edges),
        Reader("tree.json", json.dumps({"alpha": "root", "beta": "root", "root": None}).encode(), read_tree),
        Reader("tree.csv", b"child,parent\nalpha,root\nbeta,root\n", read_tree),
        Reader("mask.npy", mask.getvalue(), lambda path: read_mask(path, (2, 2))),
        Reader("mask.txt", b"1 0\n1 1\n", lambda path: read_mask(path, (2, 2))),
        Reader("weights.json", json.dumps({"alpha": 2, "beta": 0.5}).encode(), lambda path: read_weights(path, _NAMES)),
        Reader("weights.csv", b"name,weight\nalpha,2\nbeta,0.5\n", lambda path: read_weights(path, _NAMES)),
        Reader("numbers.csv", b"1\n2\n0.5\n", read_weights),
    ]


def _saved(X: np.ndarray, y: np.ndarray) -> list[Reader]:
    problem = Problem(X, np.where(y, 1.0, -1.0), loss="logistic", penalty=L1(), alpha=0.01, fit_intercept=True)
    result = solve(problem, "sdca-admm", max_epochs=3, tol=0)
    about: dict[str, Any] = {"features": _NAMES, "classes": ["no", "yes"], "target": "y"}
    model = Model.from_result(result, problem, tol=1e-6, **about)

    def use(path: str) -> None:
        loaded = Model.load(path)
        scores = loaded.decision(np.zeros((2, loaded.n_features)), ["x", "y"] if loaded.tasks else None)
        _hold(path, np.isfinite(scores).all(), "its scores are not finite")
        loaded.from_decision(scores)

    def resume(path: str) -> None:
        loaded = Result.load(path)
        try:
            again = solve(problem, "sdca-admm", max_epochs=1, tol=0, warm_start=loaded)
        except ValueError as error:  # the solver has not seen the file, and names its argument
            raise ValueError(f"{path}: {error}" if "warm_start" in str(error) else str(error)) from error
        _hold(path, again.dual <= again.primal, "the run that it began has a false bound")

    return [
        Reader("model.json", _written(model.save), use),
        Reader("result.npz", _written(result.save), Result.load),
        Reader("state.npz", _written(result.save), resume),
    ]


def _npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _written(save: Callable[[str], Any]) -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        save(path)
        return Path(path).read_bytes()
