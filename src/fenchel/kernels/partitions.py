"""Sums over the rows of a part of the data: a gradient and the diagonal of a curvature in one read."""

from __future__ import annotations

import numpy as np

from .caching import WITHIN, njit
from .rows import KERNEL, LEAN, locate


@njit(cache=True, **LEAN, **WITHIN)
def _four(r0, r1, r2, r3, x0, x1, x2, x3, b0, b1, b2, b3, slope, square):
    for j in range(r0.size):
        a, b, c, d = np.float64(r0[j]), np.float64(r1[j]), np.float64(r2[j]), np.float64(r3[j])
        slope[j] += x0 * a + x1 * b + x2 * c + x3 * d
        square[j] += b0 * a * a + b1 * b * b + b2 * c * c + b3 * d * d


@njit(cache=True, nogil=True, **KERNEL)
def dense_sums(X, layout, listed, x, bend, slope, square):
    """slope += sum x_i z_i and square += sum bend_i z_i^2 over the listed visits of dense rows."""
    outputs, _stride, offset, slot = layout
    p, done = X.shape[1], 0
    if outputs == 1 and offset.size == 0:
        done = listed.size // 4 * 4
        for k in range(0, done, 4):
            i0, i1, i2, i3 = listed[k], listed[k + 1], listed[k + 2], listed[k + 3]
            _four(
                X[i0], X[i1], X[i2], X[i3], x[i0], x[i1], x[i2], x[i3], bend[i0], bend[i1], bend[i2], bend[i3],
                slope[:p], square[:p],
            )  # fmt: skip
            slope[slot] += x[i0] + x[i1] + x[i2] + x[i3]
            square[slot] += bend[i0] + bend[i1] + bend[i2] + bend[i3]
    for k in range(done, listed.size):
        i = listed[k]
        row, start = locate(i, layout)
        z, a, b = X[row], slope[start : start + p], square[start : start + p]
        for j in range(p):
            value = np.float64(z[j])
            a[j] += x[i] * value
            b[j] += bend[i] * value * value
        slope[start + slot] += x[i]
        square[start + slot] += bend[i]


@njit(cache=True, nogil=True, **KERNEL)
def sparse_sums(data, indices, indptr, layout, listed, x, bend, slope, square):
    """The same for CSR rows."""
    slot = layout[3]
    for k in range(listed.size):
        i = listed[k]
        row, start = locate(i, layout)
        a, b = slope[start:], square[start:]
        for e in range(indptr[row], indptr[row + 1]):
            value, j = np.float64(data[e]), np.uint64(indices[e])
            a[j] += x[i] * value
            b[j] += bend[i] * value * value
        slope[start + slot] += x[i]
        square[start + slot] += bend[i]


@njit(cache=True, nogil=True, **KERNEL)
def dense_sizes(X, scale, out):
    """out_i = the sum of scale_j z_ij^2."""
    for i in range(X.shape[0]):
        row, total = X[i], 0.0
        for j in range(scale.size):
            value = np.float64(row[j])
            total += scale[j] * value * value
        out[i] = total


@njit(cache=True, nogil=True, **KERNEL)
def sparse_sizes(data, indices, indptr, scale, out):
    """The same for CSR rows."""
    for i in range(out.size):
        total = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[e])
            total += scale[np.uint64(indices[e])] * value * value
        out[i] = total
