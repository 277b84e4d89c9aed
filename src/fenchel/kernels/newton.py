"""Curvatures of the loss: sums of weighted outer products of rows, and products with them."""

from __future__ import annotations

import numpy as np

from .caching import njit
from .rows import KERNEL, LEAN, four_add, four_products, four_width, locate, row_add, row_dot


@njit(cache=True, nogil=True, **LEAN)
def sparse_curvature(data, indices, indptr, layout, bend, out):
    """out += the sum over visits of bend_i z_i z_i' for CSR rows, each pair of different entries in one place only."""
    outputs, stride, offset, slot = layout
    for i in range(bend.size):
        if bend[i] == 0.0:
            continue
        row = i // outputs
        start = (i - row * outputs) * stride
        if offset.size > 0:
            start += offset[row]
        value, column = data[indptr[row] : indptr[row + 1]], indices[indptr[row] : indptr[row + 1]]
        ones = out[start + slot, start:]
        for a in range(value.size):
            weight = bend[i] * value[a]
            line = out[start + column[a], start:]
            for b in range(a + 1):
                line[np.uint64(column[b])] += weight * value[b]
            ones[np.uint64(column[a])] += weight
        ones[slot] += bend[i]


@njit(cache=True, nogil=True, **KERNEL)
def curvature_product(rows, layout, listed, bend, v, out):
    """out += the sum over the listed visits of bend_i z_i z_i'v, in one pass over their rows.

    Dense rows of one output by fours, as in :func:`combine`.
    """
    outputs, _stride, offset, slot = layout
    p, done = four_width(rows), 0
    if p > 0 and outputs == 1 and offset.size == 0:
        products, pull = np.empty(4), np.empty(4)
        done = listed.size // 4 * 4
        for begin in range(0, done, 4):
            four_products(rows, listed[begin : begin + 4], 0, v[:p], products)
            for a in range(4):
                pull[a] = bend[listed[begin + a]] * (products[a] + v[slot])
                out[slot] += pull[a]
            four_add(rows, listed[begin : begin + 4], pull, out)
    for at in range(done, listed.size):
        i = listed[at]
        row, start = locate(i, layout)
        more = bend[i] * (row_dot(rows, row, v, start) + v[start + slot])
        row_add(rows, row, more, out, start)
        out[start + slot] += more


@njit(cache=True, nogil=True, **LEAN)
def reduce_dense(X, first, feature, column, side, out):
    """out[r] = N'z for the dense rows from `first` on; feature j stands in column[j] with the sign side[j]."""
    for r in range(out.shape[0]):
        row, line = X[first + r], out[r]
        line[:] = 0.0
        for j in range(feature.size):
            line[column[j]] += side[j] * row[feature[j]]


@njit(cache=True, nogil=True, **KERNEL)
def merge_columns(rows, n, stride, old, new, side, count):
    """Column new[j] of n rows in place: the sum of side[j] times column old[j]. Row r begins at r * stride."""
    line = np.empty(count)
    for r in range(n):
        row = rows[r * stride : (r + 1) * stride]
        line[:] = 0.0
        for j in range(old.size):
            line[new[j]] += side[j] * row[old[j]]
        row[:count] = line


@njit(cache=True, nogil=True, **LEAN)
def reduce_sparse(data, indices, indptr, first, column, side, out):
    """The same for CSR rows; column[j] is negative where feature j plays no part."""
    for r in range(out.shape[0]):
        line = out[r]
        line[:] = 0.0
        for k in range(indptr[first + r], indptr[first + r + 1]):
            j = indices[k]
            if column[j] >= 0:
                line[column[j]] += side[j] * data[k]


@njit(cache=True, nogil=True, **KERNEL)
def reduced_sparse_curvature(data, indices, indptr, bend, column, side, ones, out):
    """out += the sum of bend_i N'z_i z_i'N for CSR rows; `ones` is the intercept's column, or negative."""
    widest = 0
    for i in range(bend.size):
        widest = max(widest, indptr[i + 1] - indptr[i])
    where, value = np.empty(widest + 1, np.int64), np.empty(widest + 1)
    for i in range(bend.size):
        if bend[i] == 0.0:
            continue
        count = 0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if column[j] >= 0:
                where[count], value[count] = column[j], side[j] * data[k]
                count += 1
        if ones >= 0:
            where[count], value[count] = ones, 1.0
            count += 1
        for a in range(count):
            line, pull = out[where[a]], bend[i] * value[a]
            for b in range(count):
                line[where[b]] += pull * value[b]
