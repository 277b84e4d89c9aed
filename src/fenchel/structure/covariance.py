"""Edges of a graph between features from a sparse inverse covariance."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Ints, MatrixLike, sound


def graph_edges(X: MatrixLike, alpha: float = 0.005, tol: float = 1e-3) -> Ints:
    """Pairs of features that the graphical lasso joins.

    Parameters
    ----------
    X : dense or sparse matrix (n, p)
    alpha : float
        Penalty of the graphical lasso; a larger one leaves fewer edges.
    tol : float
        Its dual gap. A few entries of the precision matrix stand at the border of zero, so the number
        of edges depends on it: on a9a 411 at 1e-3 (407 before scikit-learn 1.7 or so), 415 in the exact solution.

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


def _covariance(X: MatrixLike) -> Array:
    """The covariance of the columns, divided by n, without making a sparse X dense."""
    if not sp.issparse(X):
        return np.cov(np.asarray(X, dtype=float), rowvar=False, bias=True).reshape(np.shape(X)[1], -1)
    mean = np.asarray(sound("X", X).mean(axis=0), dtype=float).ravel()
    out: Array = (X.T @ X).toarray() / X.shape[0] - np.outer(mean, mean)
    return out
