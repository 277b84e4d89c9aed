"""Real data in two halves: constants are chosen on CHOOSE, and REPORT is what the page shows.

The files are found through FENCHEL_DATA, else in the cache (see fenchel.datasets); what has no file is left out
with a word. Every set gives problems at two alphas, written as shares of alpha_max.
"""

from __future__ import annotations

import dataclasses
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from separable_problem import Separable, with_penalty

SHARES = (0.1, 0.01)  # of alpha_max
_MUSHROOM_BLOCKS = (6, 4, 10, 2, 9, 4, 3, 2, 12, 2, 7, 4, 4, 9, 9, 2, 4, 3, 8, 9, 6, 7)
_A9A_BLOCKS = (5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41)


def read(folder: Path, name: str):
    """The arrays of an npz file."""
    with np.load(folder / name, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def standardised(X):
    """Columns of mean 0 and variance 1; constant ones become zero."""
    X = np.asarray(X, dtype=float)
    X = X - X.mean(axis=0)
    return X / np.maximum(X.std(axis=0), 1e-12)


def leukemia(folder):
    a = read(folder, "leukemia.npz")
    yield with_penalty(a["X"].astype(float), a["y"], "logistic", "l1", name="leukemia-l1")


def mushrooms(folder):
    a = read(folder, "mushrooms.npz")
    X = sp.csr_matrix((np.ones(a["indices"].size), a["indices"], a["indptr"]), shape=tuple(a["shape"]))
    bounds = np.concatenate([[0], np.cumsum(_MUSHROOM_BLOCKS)])
    yield with_penalty(X, a["y"], "logistic", "l1", name="mushrooms-l1")
    yield with_penalty(X, a["y"], "logistic", "groups", bounds=bounds, name="mushrooms-groups")


def phoneme(folder):
    a = read(folder, "phoneme.npz")
    pair = np.isin(a["y"], ("aa", "ao"))
    y = np.where(a["y"][pair] == "aa", 1.0, -1.0)
    yield with_penalty(standardised(a["X"][pair]), y, "logistic", "l1", name="phoneme-l1")


def newsgroups(folder):
    from scipy.io import loadmat

    a = loadmat(folder / "20news_w100.mat")
    y = np.where(a["newsgroups"].ravel() <= 2, 1.0, -1.0)
    yield with_penalty(sp.csr_matrix(a["documents"].T, dtype=float), y, "logistic", "l1", name="20news-l1")


def bodyfat(folder, degree=7):
    """All monomials up to the degree: 116,280 columns that are almost copies of each other."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(folder / "bodyfat_scale"))
    X = X.toarray()
    previous = {(): np.ones(len(y))}
    columns = [previous[()]]
    for d in range(1, degree + 1):
        # each monomial is one of the degree below, times a feature whose number is not smaller
        previous = {
            key: previous[key[:-1]] * X[:, key[-1]] for key in combinations_with_replacement(range(X.shape[1]), d)
        }
        columns += previous.values()
    yield with_penalty(np.column_stack(columns), y, "squared", "l1", name="bodyfat-7-l1")


def p53(folder):
    """Plain l1, and disjoint groups: a gene belongs to the first pathway that holds it."""
    a = read(folder, "p53.npz")
    X = standardised(a["X"])
    yield with_penalty(X, a["y"], "logistic", "l1", name="p53-l1")
    label = np.full(X.shape[1], -1)
    for k, members in enumerate(np.split(a["members"].astype(int), a["starts"][1:-1])):
        label[members[label[members] < 0]] = k
    alone = label < 0
    label[alone] = label.max() + 1 + np.arange(alone.sum())  # a gene in no pathway is a group of its own
    order = np.argsort(label, kind="stable")
    bounds = np.append(np.flatnonzero(np.diff(label[order], prepend=-1)), X.shape[1])
    yield with_penalty(X[:, order], a["y"], "logistic", "groups", bounds=bounds, name="p53-groups")


def usps(folder):
    a = read(folder, "usps.npz")
    y = np.where(a["y"] == 3, 1.0, -1.0)
    yield with_penalty(a["X_thousandths"] / 1000.0, y, "logistic", "l1", name="usps-3-l1")


def a9a(folder):
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(folder / "a9a"), n_features=123)
    yield with_penalty(X, y, "logistic", "l1", name="a9a-l1")
    bounds = np.concatenate([[0], np.cumsum(_A9A_BLOCKS)])
    yield with_penalty(X, y, "logistic", "groups", bounds=bounds, name="a9a-groups")


def school(folder):
    a = read(folder, "school.npz")
    yield with_penalty(standardised(a["X"]), a["y"], "squared", "l1", intercept=True, name="school-l1")


CHOOSE = (leukemia, mushrooms, phoneme, newsgroups)
REPORT = (bodyfat, p53, usps, a9a, school)


def shares(name):
    """The expansion of bodyfat keeps two features at a thousandth, so its alphas are lower."""
    return tuple(0.01 * share for share in SHARES) if name.startswith("bodyfat") else SHARES


def sets(half, folder, tell=print):
    """The problems of a half with alpha 1, those whose file is there."""
    for source in half:
        try:
            yield from source(Path(folder))
        except FileNotFoundError as error:
            tell(f"{source.__name__}: left out, {error}")


def at_share(problem: Separable, share: float) -> Separable:
    """The problem at a share of alpha_max, and its name with it."""
    return dataclasses.replace(problem, alpha=share * problem.alpha_max(), name=f"{problem.name}-1/{1 / share:g}")
