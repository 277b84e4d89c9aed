"""One row interface for dense and CSR data, and the two products with the data matrix.

`rows` is a tuple: (X,) for a dense C-ordered array, (data, indices, indptr) for CSR. Numba specialises
each kernel for the kind it is given; nothing else in the package is written twice.

`layout` is (outputs, stride, offset, slot). A *visit* is one row seen by one output: visit i reads row
i // outputs and the part of w that starts at (i % outputs) * stride, plus offset[row] where tasks have
their own coefficients (offset is empty otherwise). The intercept stands at `slot` of that part.

The loops run over slices with plain indices, and CSR columns are read as unsigned: otherwise numba tests
every index for being negative and LLVM does not vectorise (measured: a factor of two).
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.core.cpu import CPUTargetOptions
from numba.extending import overload

from .caching import WITHIN, njit
from .calls import fetch

FAST = {"reassoc", "contract", "nsz", "arcp"}  # sums may be reordered; NaN and infinity keep their meaning
# Options of all kernels. A division by zero gives infinity: to look out for it everywhere would take long.
KERNEL = {"fastmath": FAST, "error_model": "numpy"}
# Kernels that allocate nothing need not count who refers to which array. They make views by the thousand, and counting
# these took longer than the work on rows of up to 200 columns (measured; numba has no public name for the option).
LEAN = KERNEL | ({"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {})
# Small functions inside the loops over rows: a call would pass some dozens of numbers (each array is seven).
INLINE = LEAN | {"forceinline": True}


def row_dot(rows, i, v, start):
    """Inner product of row i with v[start : start + p]."""


def row_dot_fresh(rows, i, v, start):
    """The same where v has just been written to: each product waits for its own store alone."""


def row_add(rows, i, scale, v, start):
    """v[start : start + p] += scale * row i."""


def row_add_scaled(rows, i, scale, v, metric, start):
    """v[start : start + p] += scale * metric * row i."""


def row_clear(rows, i, v, start):
    """v = 0 wherever row i has an entry."""


def row_square(rows, i, metric, start):
    """Sum of metric * (row i)^2."""


def four_width(rows):
    """Columns of dense rows."""


def four_size(rows):
    """Bytes of dense rows."""


def four_products(rows, which, low, v, out):
    """The products of four dense rows with v, from column `low` on: out[:4]."""


def four_all_products(rows, which, low, v, metric, out):
    """The same, and the products of the pairs of the four rows in the metric: out[4:]."""


def four_subtract(rows, which, low, change, v, metric):
    """v -= metric * (the four rows, times their changes), from column `low` on."""


def four_ahead(rows, i, low, high):
    """Ask for dense row i from column `low` to `high`, which is read soon."""


def four_add(rows, which, scale, v):
    """v += the four dense rows, times their scales."""


def _dense(rows):
    return isinstance(rows, types.BaseTuple) and len(rows) == 1


@overload(row_dot, jit_options=INLINE)
def _row_dot(rows, i, v, start):
    if _dense(rows):

        def dense(rows, i, v, start):
            row = rows[0][i]
            part = v[start : start + row.size]
            total = 0.0
            for j in range(row.size):
                total += row[j] * part[j]
            return total

        return dense

    def csr(rows, i, v, start):
        data, indices, indptr = rows
        value, column = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        part = v[start:]
        total = 0.0
        for k in range(value.size):
            total += value[k] * part[np.uint64(column[k])]
        return total

    return csr


@overload(row_dot_fresh, jit_options=INLINE)
def _row_dot_fresh(rows, i, v, start):
    if _dense(rows):
        return lambda rows, i, v, start: row_dot(rows, i, v, start)

    def csr(rows, i, v, start):
        # Four sums, and what is left over in halves. LLVM makes gathers of a loop over one sum: the faster way over a v
        # that is at rest, but here a visit takes a quarter longer by it (measured on rows of 14 entries).
        data, indices, indptr = rows
        value, column = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        part = v[start:]
        a = b = c = d = 0.0
        k = value.size // 4 * 4
        for m in range(0, k, 4):
            a += value[m] * part[np.uint64(column[m])]
            b += value[m + 1] * part[np.uint64(column[m + 1])]
            c += value[m + 2] * part[np.uint64(column[m + 2])]
            d += value[m + 3] * part[np.uint64(column[m + 3])]
        if value.size - k >= 2:
            a += value[k] * part[np.uint64(column[k])]
            b += value[k + 1] * part[np.uint64(column[k + 1])]
            k += 2
        if value.size > k:
            c += value[k] * part[np.uint64(column[k])]
        return (a + b) + (c + d)

    return csr


@overload(row_add, jit_options=INLINE)
def _row_add(rows, i, scale, v, start):
    if _dense(rows):

        def dense(rows, i, scale, v, start):
            row = rows[0][i]
            part = v[start : start + row.size]
            for j in range(row.size):
                part[j] += scale * row[j]

        return dense

    def csr(rows, i, scale, v, start):
        data, indices, indptr = rows
        value, column = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        part = v[start:]
        for k in range(value.size):
            part[np.uint64(column[k])] += scale * value[k]

    return csr


@overload(row_add_scaled, jit_options=INLINE)
def _row_add_scaled(rows, i, scale, v, metric, start):
    if _dense(rows):

        def dense(rows, i, scale, v, metric, start):
            row = rows[0][i]
            part, weight = v[start : start + row.size], metric[start : start + row.size]
            for j in range(row.size):
                part[j] += scale * weight[j] * row[j]

        return dense

    def csr(rows, i, scale, v, metric, start):
        data, indices, indptr = rows
        value, column = data[indptr[i] : indptr[i + 1]], indices[indptr[i] : indptr[i + 1]]
        part, weight = v[start:], metric[start:]
        for k in range(value.size):
            j = np.uint64(column[k])
            part[j] += scale * weight[j] * value[k]

    return csr


# Rows by fours are for dense data; the kernel that asks for them is compiled for sparse data too, where it must not.


@overload(four_width, jit_options=LEAN)
def _four_width(rows):
    if _dense(rows):
        return lambda rows: rows[0].shape[1]
    return lambda rows: 0


@overload(four_size, jit_options=LEAN)
def _four_size(rows):
    if _dense(rows):
        return lambda rows: rows[0].size * rows[0].itemsize
    return lambda rows: 0


@overload(four_products, jit_options=LEAN)
def _four_products(rows, which, low, v, out):
    if not _dense(rows):
        return lambda rows, which, low, v, out: None

    def dense(rows, which, low, v, out):
        X, high = rows[0], low + v.size
        _products(
            X[which[0], low:high], X[which[1], low:high], X[which[2], low:high], X[which[3], low:high], v, out
        )  # fmt: skip

    return dense


@njit(cache=True, **LEAN, **WITHIN)
def _products(r0, r1, r2, r3, v, out):
    s0 = s1 = s2 = s3 = 0.0
    for j in range(v.size):
        s0 += r0[j] * v[j]
        s1 += r1[j] * v[j]
        s2 += r2[j] * v[j]
        s3 += r3[j] * v[j]
    out[0], out[1], out[2], out[3] = s0, s1, s2, s3


@overload(four_all_products, jit_options=LEAN)
def _four_all_products(rows, which, low, v, metric, out):
    if not _dense(rows):
        return lambda rows, which, low, v, metric, out: None

    def dense(rows, which, low, v, metric, out):
        X, high = rows[0], low + v.size
        _all_products(
            X[which[0], low:high], X[which[1], low:high], X[which[2], low:high], X[which[3], low:high], v, metric, out
        )  # fmt: skip

    return dense


@njit(cache=True, **LEAN, **WITHIN)
def _all_products(r0, r1, r2, r3, v, metric, out):
    s0 = s1 = s2 = s3 = 0.0
    g10 = g20 = g21 = g30 = g31 = g32 = 0.0
    for j in range(v.size):
        a, b, c, d = float(r0[j]), float(r1[j]), float(r2[j]), float(r3[j])
        s0 += a * v[j]
        s1 += b * v[j]
        s2 += c * v[j]
        s3 += d * v[j]
        a *= metric[j]
        g10 += a * b
        g20 += a * c
        g30 += a * d
        b *= metric[j]
        g21 += b * c
        g31 += b * d
        g32 += metric[j] * c * d
    out[0], out[1], out[2], out[3] = s0, s1, s2, s3
    out[4], out[5], out[6], out[7], out[8], out[9] = g10, g20, g21, g30, g31, g32


@overload(four_subtract, jit_options=LEAN)
def _four_subtract(rows, which, low, change, v, metric):
    if not _dense(rows):
        return lambda rows, which, low, change, v, metric: None

    def dense(rows, which, low, change, v, metric):
        X, high = rows[0], low + v.size
        _subtract(
            X[which[0], low:high], X[which[1], low:high], X[which[2], low:high], X[which[3], low:high],
            change, v, metric,
        )  # fmt: skip

    return dense


@njit(cache=True, **LEAN, **WITHIN)
def _subtract(r0, r1, r2, r3, change, v, metric):
    a, b, c, d = change[0], change[1], change[2], change[3]
    for j in range(v.size):
        v[j] -= metric[j] * (a * r0[j] + b * r1[j] + c * r2[j] + d * r3[j])


@overload(four_ahead, jit_options=INLINE)
def _four_ahead(rows, i, low, high):
    if not _dense(rows):
        return lambda rows, i, low, high: None

    def dense(rows, i, low, high):
        row = rows[0][i]
        for j in range(low, high, 64 // row.itemsize):
            fetch(row, j)

    return dense


@overload(four_add, jit_options=LEAN)
def _four_add(rows, which, scale, v):
    if not _dense(rows):
        return lambda rows, which, scale, v: None

    def dense(rows, which, scale, v):
        X = rows[0]
        _add(X[which[0]], X[which[1]], X[which[2]], X[which[3]], scale, v[: X.shape[1]])

    return dense


@njit(cache=True, **LEAN, **WITHIN)
def _add(r0, r1, r2, r3, scale, v):
    a, b, c, d = scale[0], scale[1], scale[2], scale[3]
    for j in range(v.size):
        v[j] += a * r0[j] + b * r1[j] + c * r2[j] + d * r3[j]


@overload(row_clear, jit_options=INLINE)
def _row_clear(rows, i, v, start):
    if _dense(rows):

        def dense(rows, i, v, start):
            v[start : start + rows[0].shape[1]] = 0.0

        return dense

    def csr(rows, i, v, start):
        _, indices, indptr = rows
        part = v[start:]
        for k in range(indptr[i], indptr[i + 1]):
            part[np.uint64(indices[k])] = 0.0

    return csr


@overload(row_square, jit_options=INLINE)
def _row_square(rows, i, metric, start):
    if _dense(rows):

        def dense(rows, i, metric, start):
            row = rows[0][i]
            weight = metric[start : start + row.size]
            total = 0.0
            for j in range(row.size):
                value = float(row[j])
                total += weight[j] * value * value
            return total

        return dense

    def csr(rows, i, metric, start):
        data, indices, indptr = rows
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            value = float(data[k])
            total += metric[start + indices[k]] * value * value
        return total

    return csr


@njit(cache=True, **INLINE)
def locate(i, layout):
    """Row and start in w of visit i."""
    outputs, stride, offset, _slot = layout
    row = i // outputs
    start = (i - row * outputs) * stride
    if offset.size > 0:
        start += offset[row]
    return row, start


@njit(cache=True, nogil=True, **LEAN)
def scores(rows, layout, w, out):
    """out[i] = row . w + intercept for every visit: the product with X."""
    slot = layout[3]
    if layout[0] == 1 and layout[2].size == 0:  # nothing to locate, which takes as long as a short row
        for i in range(out.size):
            out[i] = row_dot(rows, i, w, 0) + w[slot]
        return
    for i in range(out.size):
        row, start = locate(i, layout)
        out[i] = row_dot(rows, row, w, start) + w[start + slot]


@njit(cache=True, nogil=True, **KERNEL)
def combine(rows, layout, x, out):
    """out += sum_i x_i row_i (and x_i in the intercept's slot): the product with X'."""
    nothing = np.empty(0)
    sweep(rows, layout, x, out, nothing, nothing)


@njit(cache=True, nogil=True, **KERNEL)
def sweep(rows, layout, x, out, w, product):
    """out += sum_i x_i row_i (and x_i in the intercept's slot), the product with X'; and :func:`scores` of w into
    `product` if it is not empty: both for one read of the data.

    Dense rows of one output are added by fours, which spares most of the traffic with `out`.
    """
    outputs, _stride, offset, slot = layout
    asked, done = product.size > 0, 0
    if four_width(rows) > 0 and outputs == 1 and offset.size == 0:
        which, scale, count = np.zeros(4, dtype=np.int64), np.zeros(4), 0
        for i in range(x.size):
            if asked:
                product[i] = row_dot(rows, i, w, 0) + w[slot]
            if x[i] != 0.0:
                which[count], scale[count] = i, x[i]
                out[slot] += x[i]
                count += 1
                if count == 4:
                    four_add(rows, which, scale, out)
                    count = 0
        for a in range(count):
            row_add(rows, which[a], scale[a], out, 0)
        done = x.size
    for i in range(done, x.size):
        row, start = locate(i, layout)
        if asked:
            product[i] = row_dot(rows, row, w, start) + w[start + slot]
        if x[i] != 0.0:
            row_add(rows, row, x[i], out, start)
            out[start + slot] += x[i]


@njit(cache=True, nogil=True, **LEAN)
def dense_column_squares(X, out):
    """out += the sum of squares of every column."""
    done = X.shape[0] // 4 * 4
    for i in range(0, done, 4):
        _add_squares(X[i], X[i + 1], X[i + 2], X[i + 3], out)
    for i in range(done, X.shape[0]):
        row = X[i]
        for j in range(out.size):
            value = np.float64(row[j])  # float() would leave single precision what it is
            out[j] += value * value


@njit(cache=True, **LEAN, **WITHIN)
def _add_squares(r0, r1, r2, r3, out):
    for j in range(out.size):
        a, b, c, d = np.float64(r0[j]), np.float64(r1[j]), np.float64(r2[j]), np.float64(r3[j])
        out[j] += a * a + b * b + c * c + d * d


@njit(cache=True, nogil=True, **LEAN)
def sparse_column_squares(data, indices, out):
    """The same for CSR data."""
    for k in range(data.size):
        value = np.float64(data[k])
        out[np.uint64(indices[k])] += value * value


@njit(cache=True, nogil=True, **LEAN)
def squares(rows, layout, metric, out):
    """out[i] = sum of metric times the squares of the visit's row, intercept included."""
    slot = layout[3]
    for i in range(out.size):
        row, start = locate(i, layout)
        out[i] = row_square(rows, row, metric, start) + metric[start + slot]
