"""The paper's data: the artificial problem, and loaders for the real files (which are not shipped).

The loaders look in the folder of the environment variable ``FENCHEL_DATA``, else in the user's cache:
``fenchel`` in ``XDG_CACHE_HOME``, which is ``~/.cache`` where it is not set.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import Array, Index, SparseMatrix
from ..maps import Incidence
from ..penalties import L1, Penalty, Ridge

_SOURCES = {
    "a9a": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
    "a9a.t": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
    "20news_w100.mat": "https://cs.nyu.edu/~roweis/data.html",
    "p53.npz": "pathway.dat of the R package grpregOverlap, as arrays X, y, members, starts, genes, pathways",
}


def data_folder() -> Path | None:
    """The folder of the data files: FENCHEL_DATA, else the cache if it is there, else None."""
    named = os.environ.get("FENCHEL_DATA")
    if named:
        return Path(named)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fenchel"
    return cache if cache.is_dir() else None


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


def load_a9a(split: str = "train") -> tuple[SparseMatrix, Array]:
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
    X, y = load_svmlight_file(_find(files[split]), n_features=123)
    return X, y


def load_20news() -> tuple[SparseMatrix, Array]:
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


def load_p53() -> tuple[Array, Array, list[Index], list[str], list[str]]:
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


def graph_penalty(edges: npt.ArrayLike, p: int) -> Penalty:
    """The paper's graph-guided penalty for C1 = 1; multiply by alpha = C1 = 0.01 / sqrt(n).

    Notes
    -----
    C2 = C1 |E| / p, and the paper's 0.01 u^2 has no 1/2: it is 0.02 times Ridge.
    """
    edges = np.asarray(edges)
    each = L1() + 0.02 * Ridge()
    return each + (len(edges) / p) * (each @ Incidence(edges, p))
