"""Products with all of the data from inside compiled kernels.

`stored` is what :class:`fenchel.data.Rows` holds: (lines,) for dense data, where a line is a row, or a column of data
that is stored by columns; (values, places, ends) for sparse data likewise. Dense lines in double precision go to
SciPy's BLAS, called by the address that comes with the data of each process (see ``lapack.py``).
"""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic, overload

from .caching import WITHIN, njit
from .rows import LEAN
from .sparse_columns import rows_times, sum_rows

_i8, _i32, _double = ir.IntType(8), ir.IntType(32), ir.DoubleType()
_bytes, _ints, _doubles = _i8.as_pointer(), _i32.as_pointer(), _double.as_pointer()


@functools.cache
def gemv() -> int:
    """The address of BLAS's product of a matrix and a vector in this process."""
    return int(get_cython_function_address("scipy.linalg.cython_blas", "dgemv"))


def _product(letter: str) -> Any:
    """What calls it: "T" for the product of every line with the vector, "N" for the sum of the lines, times it."""

    @intrinsic
    def call(typingctx: Any, address: Any, lines: Any, vector: Any, out: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            array = context.make_array(sig.args[1])(context, builder, args[1])
            count, length = (builder.extract_value(array.shape, k) for k in range(2))
            start, end = (context.make_array(sig.args[k])(context, builder, args[k]).data for k in (2, 3))

            def whole(value: Any) -> Any:
                return cgutils.alloca_once_value(builder, builder.trunc(value, _i32))

            def number(value: float) -> Any:
                return cgutils.alloca_once_value(builder, ir.Constant(_double, value))

            kinds = [_bytes, _ints, _ints, _doubles, _doubles, _ints, _doubles, _ints, _doubles, _doubles, _ints]
            function = builder.inttoptr(args[0], ir.FunctionType(ir.VoidType(), kinds).as_pointer())
            step = cgutils.alloca_once_value(builder, _i32(1))
            width = whole(length)
            builder.call(function, [cgutils.alloca_once_value(builder, _i8(ord(letter))), width, whole(count),
                                    number(1.0), array.data, width, start, step, number(0.0), end, step])  # fmt: skip
            return context.get_dummy_value()

        return types.void(types.int64, lines, vector, out), codegen

    return call


_by_line, _summed = _product("T"), _product("N")


def lines_times(stored, blas, vector, out):
    """out_i = line i times the vector."""


def sum_lines(stored, blas, factor, out):
    """out = the sum of the lines, times their factors."""


def _exact(stored):
    return len(stored) == 1 and stored[0].dtype == types.float64


@overload(lines_times, jit_options=LEAN)
def _lines_times(stored, blas, vector, out):
    if _exact(stored):
        return lambda stored, blas, vector, out: _by_line(blas, stored[0], vector, out)
    if len(stored) == 3:
        return lambda stored, blas, vector, out: rows_times(stored[0], stored[1], stored[2], vector, out)

    def single(stored, blas, vector, out):
        for i in range(out.size):
            line, total = stored[0][i], 0.0
            for j in range(line.size):
                total += line[j] * vector[j]
            out[i] = total

    return single


@overload(sum_lines, jit_options=LEAN)
def _sum_lines(stored, blas, factor, out):
    if _exact(stored):
        return lambda stored, blas, factor, out: _summed(blas, stored[0], factor, out)
    if len(stored) == 3:
        return lambda stored, blas, factor, out: sum_rows(stored[0], stored[1], stored[2], factor, out)

    def single(stored, blas, factor, out):
        out[:] = 0.0
        for i in range(factor.size):
            line, f = stored[0][i], factor[i]
            for j in range(line.size):
                out[j] += f * line[j]

    return single


@njit(cache=True, **LEAN, **WITHIN)
def scores_of(data, w, out):
    """out = Z'w; the last entry of w is the intercept's, zero where there is none."""
    stored, by_column, blas, _ = data
    p = w.size - 1
    if by_column:
        sum_lines(stored, blas, w[:p], out)
    else:
        lines_times(stored, blas, w[:p], out)
    if w[p] != 0.0:
        for i in range(out.size):
            out[i] += w[p]


@njit(cache=True, **LEAN, **WITHIN)
def mean_of(data, x, out):
    """out = Z x / n; the last entry is the intercept's, zero where there is none."""
    stored, by_column, blas, intercept = data
    p = out.size - 1
    if by_column:
        lines_times(stored, blas, x, out[:p])
    else:
        sum_lines(stored, blas, x, out[:p])
    total = 0.0
    if intercept:
        for i in range(x.size):
            total += x[i]
    out[p] = total
    for j in range(out.size):
        out[j] /= x.size


def as_data(problem: Any) -> Any:
    """What these kernels take of a problem."""
    return problem.data._stored, problem.data.by_column, gemv(), problem.fit_intercept
