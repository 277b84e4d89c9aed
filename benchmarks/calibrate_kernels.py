"""Compiled loops that `calibrate.py` times where numpy and scipy have none: swap them for fenchel's own here.

They do the arithmetic of a coordinate descent on a Gram matrix, of a Gram matrix of CSR rows and of gathering columns,
and nothing around it. Once `fenchel.kernels.units` has kernels of these names and signatures, those are taken.
"""

from __future__ import annotations

import importlib

import numba
import numpy as np


@numba.njit(cache=False)
def descend(gram, gradient, w, threshold):
    """One pass of coordinate descent on w'gram w / 2 + gradient'w + threshold |w|_1; the gradient follows w."""
    for j in range(w.size):
        old = w[j]
        point = old - gradient[j] / gram[j, j]
        size = abs(point) - threshold / gram[j, j]
        new = 0.0 if size <= 0.0 else (size if point > 0.0 else -size)
        if new != old:
            w[j] = new
            step = new - old
            for k in range(w.size):
                gradient[k] += step * gram[j, k]


@numba.njit(cache=False)
def csr_gram(data, indices, indptr, weights, out):
    """The upper triangle of X' diag(weights) X, row by row.

    The indices are sorted within a row and unsigned: numba then need not ask whether they count from the end.
    """
    for i in range(indptr.size - 1):
        for a in range(indptr[i], indptr[i + 1]):
            value, row = weights[i] * data[a], out[indices[a]]
            for b in range(a, indptr[i + 1]):
                row[indices[b]] += value * data[b]


@numba.njit(cache=False)
def gather(X, columns, out):
    """Columns of X, which is in C order, as the rows of out."""
    for i in range(X.shape[0]):
        for k in range(columns.size):
            out[k, i] = X[i, columns[k]]


def kernel(name):
    """fenchel's own, if it is there; else the loop of this file."""
    try:
        return getattr(importlib.import_module("fenchel.kernels.units"), name)
    except (ImportError, AttributeError):
        return {"descend": descend, "csr_gram": csr_gram, "gather": gather}[name]


def dense_gram(p, n=None, seed=0):
    """A well-conditioned Gram matrix of p columns."""
    X = np.random.default_rng(seed).standard_normal((n or 4 * p, p))
    return X.T @ X / len(X)
