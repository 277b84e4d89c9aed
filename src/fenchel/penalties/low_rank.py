"""The trace norm, and matrices and tensors of low rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from .._validate import Array, SparseMatrix, _count, finite_vector
from ..foundation.numerics import ROUNDING
from ..maps import Selection
from .base import Penalty, Sum
from .outputs import _features_of, _outputs
from .shorthand import Shorthand


class TraceNorm(Penalty):
    r"""The sum of singular values of u as a matrix of the given shape, C-ordered.

    Notes
    -----
    Prox: soft threshold of the singular values. Conjugate: 0 where the largest is at most 1.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        shape = tuple(np.atleast_1d(shape).tolist())
        if len(shape) != 2 or min(shape) < 1:
            raise ValueError(f"shape is {shape}; it must be two positive numbers")
        self.shape = tuple(_count("shape", s) for s in shape)

    def size(self) -> int:
        return self.shape[0] * self.shape[1]

    def value(self, u: Array) -> float:
        return float(np.linalg.svd(np.reshape(u, self.shape), compute_uv=False).sum())

    def prox(self, u: Array, step: float | Array) -> Array:
        left, s, right = np.linalg.svd(np.reshape(u, self.shape), full_matrices=False)
        s = np.maximum(s - np.ravel(step)[0], 0.0)
        out: Array = ((left * s) @ right).ravel()
        return out

    def conjugate(self, y: Array) -> float:
        return 0.0 if self.gauge(y) <= 1 + ROUNDING else np.inf

    def gauge(self, y: Array) -> float:
        return float(np.linalg.norm(np.reshape(y, self.shape), 2))

    def prox_jacobian(self, u: Array, step: float | Array) -> Array | SparseMatrix:
        r"""In the bases of the singular vectors it couples the entries (i, j) and (j, i) alone.

        With :math:`f = (s - t)_+` the symmetric part of such a pair is multiplied by
        :math:`(f_i - f_j) / (s_i - s_j)` and the other one by :math:`(f_i + f_j) / (s_i + s_j)`.
        """
        rows, columns = self.shape
        left, s, right = np.linalg.svd(np.reshape(u, self.shape))
        short = min(rows, columns)
        size, kept = np.zeros(max(rows, columns)), np.zeros(max(rows, columns))
        size[:short], kept[:short] = s, np.maximum(s - np.ravel(step)[0], 0.0)
        a, b = size[:rows, None], size[None, :columns]
        low, high = kept[:rows, None], kept[None, :columns]
        apart, both = a - b, a + b
        near = np.abs(apart) <= 1e-9 * both
        even = np.where(near, (np.minimum(low, high) > 0) + 0.0, (low - high) / np.where(near, 1.0, apart))
        odd = np.where(both > 0, (low + high) / np.where(both > 0, both, 1.0), 0.0)
        own, swapped = 0.5 * (even + odd), 0.5 * (even - odd)
        i, j = np.nonzero(own)
        # entry (i, j) of the bases as a vector of the length of u
        basis = (left[:, i][:, None, :] * right.T[:, j][None, :, :]).reshape(rows * columns, -1)
        images = basis * own[i, j]
        square = np.flatnonzero((i < short) & (j < short) & (swapped[i, j] != 0))
        if square.size:
            there = np.full((rows, columns), -1)
            there[i, j] = np.arange(i.size)
            images[:, square] += basis[:, there[j[square], i[square]]] * swapped[i, j][square]
        return images @ basis.T

    def for_outputs(self, outputs: int, p: int) -> Penalty:
        _refuse_transposed(self, self.shape, outputs, p)
        made: Penalty = super().for_outputs(outputs, p)
        return made

    def restore(self, at: Array, u: Array) -> Array:
        left, s, _ = np.linalg.svd(np.reshape(u, self.shape), full_matrices=False)
        rank = np.count_nonzero(s > 1e-13 * s[0])
        if rank == len(s):
            return at
        left = left[:, :rank]
        out: Array = (left @ (left.T @ np.reshape(at, self.shape))).ravel()
        return out

    def kept_directions(self, u: Array) -> Array | None:
        """The matrices with the same spaces of rows and columns."""
        left, s, right = np.linalg.svd(np.reshape(u, self.shape), full_matrices=False)
        rank = np.count_nonzero(s > 1e-9 * s[0]) if s[0] > 0 else 0
        return None if rank == len(s) else np.kron(left[:, :rank], right[:rank].T)

    def __repr__(self) -> str:
        return f"TraceNorm({self.shape})"


class LowRank(Shorthand):
    r"""Coefficients as a matrix of low rank: the sum of its singular values (trace norm).

    Parameters
    ----------
    shape : (rows, columns), C-ordered

    Notes
    -----
    Prox: soft threshold of the singular values. Conjugate: 0 where the largest is at most 1.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        TraceNorm(shape)
        self.shape = shape

    def for_outputs(self, outputs: int, p: int) -> Penalty:
        _refuse_transposed(self, self.shape, outputs, p)
        made: Penalty = super().for_outputs(outputs, p)
        return made

    def build(self, p: int | None) -> Penalty:
        return TraceNorm(self.shape)


def _refuse_transposed(penalty: Penalty, shape: Sequence[int], outputs: int, p: int) -> None:
    """Coefficients are (outputs, features); a shape the other way round has as many numbers, and mixes them up."""
    if 1 < outputs != p and tuple(shape) == (p, outputs):
        raise ValueError(
            f"{penalty!r} is the wrong way round: the coefficients are a matrix (outputs, features), here "
            f"{(outputs, p)}; fenchel.MultiTaskLowRank() knows both numbers by itself"
        )


class TensorTraceNorm(Shorthand):
    r"""Coefficients as a tensor of low rank in every mode: :math:`\sum_k \omega_k \|w_{(k)}\|_*` over its unfoldings.

    Parameters
    ----------
    shape : tuple of int, C-ordered
    weights : vector, optional
        One per mode; 1 by default.

    Notes
    -----
    Prox: soft threshold of the singular values of each unfolding. Conjugate: 0 where the largest of each is at most
    :math:`\omega_k` (Tomioka, Hayashi and Kashima, 2010).
    """

    weights_per = ("term",)

    def __init__(self, shape: Sequence[int], weights: npt.ArrayLike | None = None) -> None:
        if np.ndim(shape) != 1 or len(shape) < 2:
            raise ValueError(f"shape is {shape!r}; it must be two numbers or more")
        for size in shape:
            _count("shape", size)
        self.shape, self.weights = shape, weights

    def build(self, p: int | None) -> Penalty:
        modes = len(self.shape)
        weights = np.ones(modes) if self.weights is None else finite_vector("weights", self.weights, modes, minimum=0)
        number = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        if p not in (None, number.size):
            raise ValueError(f"{self!r} acts on {number.size} coefficients, but there are {p}")
        parts = []
        for mode, size in enumerate(self.shape):
            unfolding = np.moveaxis(number, mode, 0).ravel()
            norm = TraceNorm((size, number.size // size)) @ Selection(unfolding, number.size)
            parts.append(weights[mode] * norm)
        return Sum(*parts)


class MultiTaskLowRank(Shorthand):
    r"""Outputs share a few directions: the trace norm of the outputs x features matrix of coefficients.

    Parameters
    ----------
    n_outputs : int
        Outputs, classes or tasks; the coefficients of one stand together.

    Notes
    -----
    Prox: soft threshold of the singular values. Conjugate: 0 where the largest is at most 1.
    """

    def __init__(self, n_outputs: int | None = None) -> None:
        self.n_outputs = _outputs(n_outputs)

    def build(self, p: int | None) -> Penalty:
        features = _features_of(p, self.n_outputs, "MultiTaskLowRank")
        return TraceNorm((cast(int, self.n_outputs), features))
