"""The paper's data: the artificial problem, and loaders for the real files (which are not shipped).

The loaders look in the folder of the environment variable ``FENCHEL_DATA``, else in ``../shared/data``
beside the repository or the current directory.
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from .losses import SmoothedHinge
from .maps import Incidence
from .penalties import L1, GroupL2, Penalty, Ridge
from .problem import Problem

_SOURCES = {
    "a9a": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
    "a9a.t": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
    "20news_w100.mat": "https://cs.nyu.edu/~roweis/data.html",
    "p53.npz": "pathway.dat of the R package grpregOverlap, as arrays X, y, members, starts, genes, pathways",
}


# -- the artificial problem -------------------------------------------------------------------------


def artificial(n: int = 5120, side: int = 32, noise: float = 0.1, seed: int = 0):
    """The paper's artificial data: a weight matrix of which only the first column counts.

    Parameters
    ----------
    n : int
        Rows.
    side : int
        The weights form a side x side matrix, so there are side * side features.
    noise : float
        Standard deviation of the noise inside the sign.
    seed : int
        Same seed, same data.

    Returns
    -------
    X : array (n, side * side)
        Standard normal.
    y : array (n,)
        sign(X w + noise * eps), +1 and -1.
    true_w : array (side * side,)
        The weight matrix vectorised column by column: ``true_w.reshape(side, side, order="F")``.
    """
    n, side = _whole("n", n), _whole("side", side)
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise is {noise!r}; it must be a finite number, not negative")
    rng = np.random.default_rng(seed)
    true_w = np.zeros(side * side)
    true_w[:side] = rng.standard_normal(side)
    X = rng.standard_normal((n, side * side))
    score = X @ true_w + noise * rng.standard_normal(n)
    return X, np.where(score >= 0, 1.0, -1.0), true_w


def artificial_groups(side: int = 32) -> list[np.ndarray]:
    """The columns, then the rows, of a side x side matrix vectorised column by column.

    Every feature stands in two groups: its column and its row.
    """
    index = np.arange(_whole("side", side) ** 2).reshape(side, side, order="F")
    return [*index.T.copy(), *index.copy()]


def artificial_problem(n: int = 5120, side: int = 32, seed: int = 0) -> Problem:
    """The paper's artificial problem: smoothed hinge, column and row norms, and a small quadratic."""
    X, y, _ = artificial(n, side, seed=seed)
    return artificial_problem_of(X, y, side)


def artificial_problem_of(X, y, side: int) -> Problem:
    """The loss, penalty and alpha of the artificial problem on data that you hold already."""
    groups = artificial_groups(side)
    penalty = GroupL2(groups, weights=np.ones(len(groups))) + 0.01 * Ridge()
    return Problem(X, y, loss=SmoothedHinge(), penalty=penalty, alpha=0.1 / np.sqrt(len(y)))


def _whole(name, value):
    if isinstance(value, (bool, np.bool_)) or int(value) != value or value < 1:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
    return int(value)


# -- real data --------------------------------------------------------------------------------------


def data_folder() -> Path | None:
    """The folder of the data files: FENCHEL_DATA, else ../shared/data if it is there, else None."""
    named = os.environ.get("FENCHEL_DATA")
    if named:
        return Path(named)
    repository = Path(__file__).resolve().parents[2]
    for root in (repository, Path.cwd()):
        folder = root.parent / "shared" / "data"
        if folder.is_dir():
            return folder
    return None


def _find(name: str) -> Path:
    """The path of a data file, or a FileNotFoundError that says what to put where."""
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError(
            f"{name} was not found: there is no data folder. Put {name} (from {_SOURCES[name]}) into a folder and "
            "set the environment variable FENCHEL_DATA to it"
        )
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing. Put {name} (from {_SOURCES[name]}) into {folder}, or set the environment variable "
            "FENCHEL_DATA to the folder that holds it"
        )
    return path


def load_a9a(split: str = "train"):
    """LIBSVM's a9a (the Adult census, binarised): 32,561 or 16,281 rows of 123 features.

    Parameters
    ----------
    split : {"train", "test"}

    Returns
    -------
    X : CSR matrix
    y : array of +1 and -1
    """
    from sklearn.datasets import load_svmlight_file

    files = {"train": "a9a", "test": "a9a.t"}
    if split not in files:
        raise ValueError(f"split is {split!r}; it must be 'train' or 'test'")
    # the test file's largest index is 122, so the number of features must be said
    return load_svmlight_file(_find(files[split]), n_features=123)


def load_20news():
    """S. Roweis's 20 Newsgroups: 16,242 documents of 100 binary words, classes {1, 2} against {3, 4}.

    Returns
    -------
    X : CSR array
    y : array, +1 for newsgroups 1 and 2, -1 for 3 and 4
    """
    from scipy.io import loadmat

    content = loadmat(_find("20news_w100.mat"))
    X = sp.csr_array(content["documents"].T, dtype=float)
    return X, np.where(content["newsgroups"].ravel() <= 2, 1.0, -1.0)


def load_p53():
    """p53 mutation status from gene expression, with 308 overlapping pathways.

    Returns
    -------
    X : array (50, 4301)
    y : array of +1 (mutated) and -1
    groups : list of index arrays, one per pathway
    genes, pathways : lists of names
    """
    with np.load(_find("p53.npz"), allow_pickle=False) as content:
        parts = {key: content[key] for key in content.files}
    groups = np.split(parts["members"].astype(np.int64), parts["starts"][1:-1])
    X = np.ascontiguousarray(parts["X"], dtype=float)
    return X, parts["y"].astype(float), groups, parts["genes"].tolist(), parts["pathways"].tolist()


# -- graphs -----------------------------------------------------------------------------------------


def graph_edges(X, alpha: float = 0.005, tol: float = 1e-3) -> np.ndarray:
    """Pairs of features that the graphical lasso joins.

    Parameters
    ----------
    X : dense or sparse matrix (n, p)
    alpha : float
        Penalty of the graphical lasso; a larger one leaves fewer edges.
    tol : float
        Its dual gap. A few entries of the precision matrix stand at the border of zero, so the number
        of edges depends on it: on a9a 411 at 1e-3 (the graph used throughout), 415 in the exact solution.

    Returns
    -------
    edges : array (m, 2)
        Pairs i < j with a non-zero entry in the precision matrix, in order.
    """
    from sklearn.covariance import graphical_lasso
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        # the inner coordinate descent is cut short in early passes, and warns; the outer gap decides
        warnings.filterwarnings("ignore", message="Objective did not converge", category=ConvergenceWarning)
        _, precision = graphical_lasso(_covariance(X), alpha, tol=tol, enet_tol=0.1 * tol, max_iter=200)
    return np.argwhere(np.triu(precision != 0, 1))


def _covariance(X) -> np.ndarray:
    """The covariance of the columns, divided by n, without making a sparse X dense."""
    if not sp.issparse(X):
        return np.cov(np.asarray(X, dtype=float), rowvar=False, bias=True).reshape(np.shape(X)[1], -1)
    mean = np.asarray(X.mean(axis=0), dtype=float).ravel()
    return (X.T @ X).toarray() / X.shape[0] - np.outer(mean, mean)


def graph_penalty(edges, p: int) -> Penalty:
    """The paper's graph-guided penalty for C1 = 1; multiply by alpha = C1 = 0.01 / sqrt(n).

    Notes
    -----
    C2 = C1 |E| / p, and the paper's 0.01 u^2 has no 1/2: it is 0.02 times Ridge.
    """
    edges = np.asarray(edges)
    each = L1() + 0.02 * Ridge()
    return each + (len(edges) / p) * (each @ Incidence(edges, p))
