"""Proofs by example that a map is what it says."""

from __future__ import annotations

import numpy as np

from .._validate import Array, SparseMatrix
from ..foundation.numerics import BESIDE
from ..maps import Identity, Map
from .base import _require


def check_map(map_: Map, p: int | None = None, rng: int | np.random.Generator = 0) -> None:
    """Prove a map: linearity, adjoint, norm, solve with B B', null space.

    Parameters
    ----------
    map_ : Map
    p : int, optional
        The number of features, for a map that takes any.
    rng : int or numpy Generator

    Raises
    ------
    AssertionError
        Names the law, the place and the numbers.
    """
    rng = np.random.default_rng(rng)
    if map_.p is None:
        if p is None:
            raise ValueError(f"p is needed: {type(map_).__name__} takes any number of features")
        map_ = map_ @ Identity(p)
    p = map_._size()
    matrix = map_.matrix(p).copy()
    d = matrix.shape[0]
    _require(matrix.shape[1] == p, map_, "the matrix has a column per feature", columns=matrix.shape[1], p=p)
    try:
        map_.matrix(p + 1)
    except ValueError:
        pass
    else:
        raise AssertionError(f"{type(map_).__name__} breaks the law 'a wrong number of features is refused': {p + 1}")
    _check_linear(map_, matrix, rng)
    singular = null = None
    if d * p <= BESIDE:
        _, singular, rows = np.linalg.svd(matrix.toarray(), full_matrices=True)
        small = np.finfo(float).eps * max(d, p) * singular.max(initial=0.0)
        null = rows[np.count_nonzero(singular > small) :].T
    _check_norm(map_, matrix, singular, rng)
    _check_null(map_, matrix, null)
    _check_gram(map_, matrix, null, rng)
    change = abs(map_.matrix(p) - matrix).max() if matrix.nnz else 0.0
    _require(change == 0, map_, "the matrix stays the same after use", largest_change=change)


def _check_linear(map_: Map, matrix: SparseMatrix, rng: np.random.Generator) -> None:
    d, p = matrix.shape
    for size in (1e-3, 1.0, 1e3):
        w, v, u = size * rng.standard_normal(p), rng.standard_normal(p), rng.standard_normal(d)
        a, b = rng.standard_normal(2)
        bound = abs(matrix) @ (np.abs(a * w) + np.abs(b * v)) + 1e-300
        mixed, apart = map_.apply(a * w + b * v), a * map_.apply(w) + b * map_.apply(v)
        row = np.arange(d)
        _require(np.abs(mixed - apart) <= 1e-13 * bound, map_, "linear", row=row, together=mixed, apart=apart)
        _require(np.abs(mixed - matrix @ (a * w + b * v)) <= 1e-13 * bound, map_, "apply is the matrix", row=row)
        left, right = map_.apply(w) @ u, w @ map_.adjoint(u)
        bound = np.abs(u) @ (abs(matrix) @ np.abs(w))
        _require(abs(left - right) <= 1e-13 * bound, map_, "adjoint: (B'w)'u = w'(B u)", left=left, right=right)


def _check_norm(map_: Map, matrix: SparseMatrix, singular: Array | None, rng: np.random.Generator) -> None:
    norm = map_.norm()
    if singular is not None:
        top = singular.max(initial=0.0)
        _require(norm >= top * (1 - 1e-12), map_, "the norm is an upper bound", norm=norm, largest_singular_value=top)
        _require(norm <= 1.015 * top + 1e-15, map_, "the norm is tight to 1.5 %", norm=norm, largest_singular_value=top)
        return
    w = rng.standard_normal(matrix.shape[1])
    for _ in range(100):
        w = matrix.T @ (matrix @ w)
        w /= np.linalg.norm(w)
    below = np.linalg.norm(matrix @ w)
    _require(bool(norm >= below * (1 - 1e-12)), map_, "the norm is an upper bound", norm=norm, reached=below)


def _check_null(map_: Map, matrix: SparseMatrix, null: Array | None) -> None:
    basis = map_.null_space()
    p = matrix.shape[1]
    _require(basis.shape[0] == p, map_, "the null space has a row per feature", rows=basis.shape[0], p=p)
    k = np.arange(basis.shape[1])
    gram = basis.T @ basis
    _require(np.abs(gram - np.eye(k.size)) <= 1e-10, map_, "the null space is orthonormal", inner=gram, vector=k)
    image = np.abs(matrix @ basis).max(axis=0, initial=0.0)
    bound = 1e-10 * (abs(matrix).max() if matrix.nnz else 0.0)
    _require(image <= bound, map_, "the map does not see its null space", vector=k, image=image, bound=bound)
    if null is not None:
        _require(k.size == null.shape[1], map_, "the null space is complete", found=k.size, dimension=null.shape[1])


def _check_gram(map_: Map, matrix: SparseMatrix, null: Array | None, rng: np.random.Generator) -> None:
    d, p = matrix.shape
    for _ in range(3):
        r = matrix.T @ rng.standard_normal(d)
        v = map_.gram_solve(r.copy())
        back = matrix.T @ (matrix @ v)
        bound = 1e-13 * np.sqrt(p) * (abs(matrix).T @ (abs(matrix) @ np.abs(v)) + np.abs(r)).max(initial=0.0)
        _require(
            np.abs(back - r) <= bound, map_, "the gram solve solves B B' v = r", feature=np.arange(p), r=r, back=back
        )
        if null is not None and null.shape[1]:
            along, size = np.abs(null.T @ v).max(), np.linalg.norm(v)
            _require(along <= 1e-7 * size, map_, "the gram solve has least norm", along_the_null_space=along, size=size)
