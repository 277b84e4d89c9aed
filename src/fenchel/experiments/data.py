"""Problems and test functions: generated, from files, or downloaded where there is a network."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import os
import re
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.sparse as sp

from .. import datasets
from .._validate import AnyArray, Array, Ints, MatrixLike, SparseMatrix
from ..foundation.numerics import UNIT
from ..io import read_data, read_edges
from ..losses import Loss, SmoothedHinge
from ..models import encode_labels
from ..problem import Problem
from .settings import SETUP, TEST_ROWS, TRAIN_ROWS, DataSet

if TYPE_CHECKING:
    from ..io.contents import Data

KNOWN = ("20news", "a9a")
_TITLES = {"20news": "20 Newsgroups", "a9a": "a9a"}
_POSITIVE_ROWS = {"a9a": (7_841, 3_846)}  # in the training and the test file
_NEWS_GROUPS = ("comp.", "rec.", "sci.", "talk.")
_NEWS_WORDS = """
    aids baseball bible bmw cancer car card case children christian computer course data dealer disease disk display
    doctor dos drive driver earth email engine evidence fact fans files food format ftp games god government
    graphics gun health help hit hockey honda human image insurance israel jesus jews launch law league lunar mac
    mars medicine memory mission moon msg nasa nhl number oil orbit patients pc phone players power president
    problem program puck question religion research rights satellite science scsi season server shuttle software
    solar space state studies system team technology university version video vitamin war water win windows won
    world
"""


@dataclasses.dataclass(frozen=True)
class Instance:
    """A problem of one repetition.

    Attributes
    ----------
    problem : Problem
    test : callable
        From coefficients to the expected loss and the classification error on new data.
    about : dict
        Sizes, for the report.
    """

    problem: Problem
    test: Callable[[Array], tuple[float, float]]
    about: dict[str, Any]


@functools.lru_cache(maxsize=1)
def make_instance(data: DataSet, seed: int) -> Instance:
    """The problem of a data set for one seed."""
    if data.kind == "artificial":
        return _artificial(data, seed)
    X, y, X_test, y_test = _split(_read(data.kind, data.path), data, seed)
    edges = find_edges(data, X)
    p = X.shape[1]
    alpha = SETUP.graph_c / np.sqrt(len(y))
    problem = Problem(X, y, loss=SmoothedHinge(), penalty=datasets.graph_penalty(edges, p), alpha=alpha)
    about = {"rows": len(y), "features": p, "test rows": len(y_test), "edges": len(edges)}
    return Instance(problem, SampleTest(problem.loss, X_test, y_test), about)


# -- tests ------------------------------------------------------------------------------------------


class SampleTest:
    """Mean loss and error on test rows; a score of exactly zero counts as half an error."""

    def __init__(self, loss: Loss, X: MatrixLike, y: Array) -> None:
        self.loss, self.X, self.y = loss, X, y

    def __call__(self, coef: Array) -> tuple[float, float]:
        scores = self.X @ coef
        margin = self.y * scores
        error = np.mean(margin < 0) + 0.5 * np.mean(margin == 0)
        return float(np.mean(self.loss.value(scores, self.y))), float(error)


class GaussianTest:
    """The expectations themselves for rows z ~ N(0, I) and targets sign(z'w0 + noise eps).

    Notes
    -----
    With r the correlation of z'w and z'w0 + noise eps, the error is arccos(r) / pi, and the margin divided by |w|
    has density 2 phi(t) Phi(t r / sqrt(1 - r^2)): the expected loss is an integral in one dimension.
    """

    _END = math.sqrt(-2 * math.log(UNIT))  # beyond it a normal density is lost in rounding

    def __init__(self, loss: Loss, true_w: Array, noise: float) -> None:
        self.loss, self.true_w = loss, true_w
        self.scale = np.hypot(np.linalg.norm(true_w), noise)
        self.nodes, self.weights = np.polynomial.legendre.leggauss(80)

    def __call__(self, coef: Array) -> tuple[float, float]:
        from scipy.special import ndtr

        size = float(np.linalg.norm(coef))
        if not 0 < size < np.inf:
            return float(self.loss.value(np.zeros(1), np.ones(1))[0]), 0.5
        r = float(np.clip(coef @ self.true_w / (size * self.scale), -1, 1))
        slope = r / np.sqrt(max(1 - r * r, 1e-300))
        total = 0.0
        # pieces end where the smoothed hinge has a kink; it is zero beyond the last one
        for low, high in ((-self._END, 0.0), (0.0, min(1.0 / size, self._END))):
            t = 0.5 * (high - low) * (self.nodes + 1) + low
            density = 2 * np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi) * ndtr(slope * t)
            values = self.loss.value(size * t, np.ones_like(t))
            total += 0.5 * (high - low) * float(self.weights @ (density * values))
        return total, float(np.arccos(r) / np.pi)


def _artificial(data: DataSet, seed: int) -> Instance:
    X, y, true_w = datasets.artificial(data.rows, data.side, SETUP.noise, seed)
    problem = datasets.artificial_problem_of(X, y, data.side)
    about = {"rows": data.rows, "features": problem.p, "groups": 2 * data.side}
    return Instance(problem, GaussianTest(problem.loss, true_w, SETUP.noise), about)


# -- real data --------------------------------------------------------------------------------------


def describe(name: str, edges: str | None = None) -> dict[str, Any]:
    """Name, title, kind, paths and digest of a data set, which is read to make sure that it can be."""
    if name in KNOWN:
        if edges is not None:
            raise ValueError(f"edges go with a data file; {name} takes its graph from the graphical lasso")
        about = {"name": name, "title": _TITLES[name], "kind": name}
    elif os.path.exists(name):
        stem = re.sub(r"[^\w.-]+", "-", Path(name).stem)
        about = {"name": stem, "title": Path(name).name, "kind": "file", "path": name, "edges": edges or ""}
    else:
        raise ValueError(f"data set is {name!r}; known data sets: {', '.join(KNOWN)}, or the path of a data file")
    parts = _read(about["kind"], about.get("path", ""))
    digest = hashlib.sha256()
    for part in (*parts, Path(edges).read_bytes() if edges else b""):
        arrays = (part.data, part.indices, part.indptr) if sp.issparse(part) else (part,)
        for array in arrays:
            digest.update(array if isinstance(array, bytes) else np.ascontiguousarray(array).tobytes())
    if name == "20news" and len(parts[1]) != TRAIN_ROWS[name] + TEST_ROWS[name]:
        about["title"] += " (words counted anew)"
    return about | {"digest": digest.hexdigest()[:16]}


@functools.lru_cache(maxsize=2)
def _read(kind: str, path: str) -> tuple[Any, ...]:
    """X and y, and, where the data comes with test rows, these as well."""
    if kind == "a9a":
        return _a9a()
    if kind == "20news":
        return _news()
    content = _read_file(path)
    try:
        y, _ = encode_labels(cast(AnyArray, content.y))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    if len(y) < 10:
        raise ValueError(f"{path} has {len(y)} rows; at least 10 are needed to train and to test")
    return content.X, y


@functools.lru_cache(maxsize=1)
def _read_file(path: str) -> Data:
    return read_data(path)


def _split(parts: tuple[MatrixLike, Array], data: DataSet, seed: int) -> tuple[MatrixLike, Array, MatrixLike, Array]:
    """Training and test rows: as they come, or drawn by seed."""
    if len(parts) == 4:
        return parts
    X, y = parts
    train = TRAIN_ROWS.get(data.kind, 0)
    if train + TEST_ROWS.get(data.kind, 0) != len(y):
        train = round(0.8 * len(y))
    order = np.random.default_rng(seed).permutation(len(y))
    first, rest = np.sort(order[:train]), np.sort(order[train:])
    return X[first], y[first], X[rest], y[rest]


def find_edges(data: DataSet, X: MatrixLike) -> Ints:
    """The graph: from its file, or by the graphical lasso on the training rows."""
    if data.edges:
        content = _read_file(data.path)
        return read_edges(data.edges, X.shape[1], content.features if content.named else None)[0]
    try:
        edges = datasets.graph_edges(X)
    except (FloatingPointError, ValueError, np.linalg.LinAlgError) as error:
        raise ValueError(
            f"the graphical lasso failed on {data.title} ({error}); bring its columns to a common scale, or give the "
            "graph with --edges"
        ) from error
    if not len(edges):
        raise ValueError(f"the graphical lasso joins no two features of {data.title}; give the graph with --edges")
    return edges


def _a9a() -> tuple[Any, ...]:
    try:
        X, y = _checked_libsvm("train", "a9a", TRAIN_ROWS["a9a"])
        X_test, y_test = _checked_libsvm("test", "a9a.t", TEST_ROWS["a9a"])
    except FileNotFoundError as missing:
        return _download(_fetch_a9a, missing)
    return X, y, X_test, y_test


def _folder() -> Path:
    """Where a file was found that turned out to be no good."""
    return cast(Path, datasets.data_folder())


def _checked_libsvm(split: str, name: str, rows: int) -> Any:
    try:
        X, y = datasets.load_a9a(split)
    except FileNotFoundError:
        raise
    except (ValueError, OverflowError, IndexError):
        read_data(_folder() / name)  # says which line
        raise
    path = _folder() / name
    if X.shape[0] != rows:
        raise ValueError(f"{path} ends at line {X.shape[0]:,}, but {name} has {rows:,}: the file is cut short")
    return sp.csr_array(X), y


def _news() -> tuple[Any, ...]:
    try:
        X, y = datasets.load_20news()
    except FileNotFoundError as missing:
        return _download(_fetch_news, missing)
    except (ValueError, OSError, KeyError, TypeError, EOFError, NotImplementedError, zlib.error) as error:
        path = _folder() / "20news_w100.mat"
        raise ValueError(
            f"{path} is corrupt or cut short: not the MATLAB file of 100 words and 16,242 documents ({error})"
        ) from error
    if X.shape != (16_242, 100):
        path = _folder() / "20news_w100.mat"
        raise ValueError(f"{path} holds {X.shape[0]} documents of {X.shape[1]} words; expected 16242 of 100")
    return X, y


# -- downloads --------------------------------------------------------------------------------------


def _download(fetch: Callable[..., Any], missing: Exception) -> tuple[Any, ...]:
    """What `fetch` gets from the network; where there is none, the message about the missing file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that it tries again
            found: tuple[Any, ...] = fetch()
            return found
    except Exception as error:  # urllib, http, ssl and scikit-learn each have their own
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FileNotFoundError(f"{missing} (a download was tried and failed: {reason})") from error


def _fetch_a9a() -> tuple[SparseMatrix, Array, SparseMatrix, Array]:
    """OpenML's a9a, which holds the training rows and then the test rows."""
    from sklearn.datasets import fetch_openml

    content = fetch_openml("a9a", version=1, as_frame=False, parser="liac-arff")
    X = sp.csr_array(content.data, dtype=float)
    y = np.where(np.asarray(content.target, dtype=float) > 0, 1.0, -1.0)
    train = TRAIN_ROWS["a9a"]
    if X.shape != (train + TEST_ROWS["a9a"], 123):
        raise ValueError(f"OpenML's a9a has shape {X.shape}; expected 48842 rows of 123 features")
    if ((y[:train] > 0).sum(), (y[train:] > 0).sum()) != _POSITIVE_ROWS["a9a"]:
        raise ValueError("the rows of OpenML's a9a do not stand in LIBSVM's order")
    return X[:train], y[:train], X[train:], y[train:]


def _fetch_news() -> tuple[SparseMatrix, Array]:
    """The same hundred words, counted anew in the messages that scikit-learn downloads.

    Not quite the file that the paper used: that one was made from another collection of the messages.
    """
    from sklearn.datasets import fetch_20newsgroups
    from sklearn.feature_extraction.text import CountVectorizer

    content = fetch_20newsgroups(subset="all")
    names = np.asarray(content.target_names)[content.target]
    group = np.full(len(names), -1)
    for k, prefix in enumerate(_NEWS_GROUPS):
        group[np.char.startswith(names.astype(str), prefix)] = k
    X = sp.csr_array(CountVectorizer(vocabulary=_NEWS_WORDS.split(), binary=True).transform(content.data), dtype=float)
    use = np.flatnonzero((group >= 0) & (np.diff(X.indptr) > 0))
    return X[use], np.where(group[use] < 2, 1.0, -1.0)
