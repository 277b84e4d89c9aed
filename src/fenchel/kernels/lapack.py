"""BLAS and LAPACK from inside compiled kernels: SciPy's own, called by their addresses.

What numba calls by itself (np.dot, np.linalg) takes seconds to compile. A call by address costs nothing to compile,
and a kernel that holds one can be cached, because the addresses come with the data of each process.

Matrices are row-major: `matrix[i, j]` stands at ``i * stride + j``.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

GEMM, POTRF, POTRS = range(3)

_i8, _i32, _double, _nothing = ir.IntType(8), ir.IntType(32), ir.DoubleType(), ir.VoidType()
_bytes, _ints, _doubles = _i8.as_pointer(), _i32.as_pointer(), _double.as_pointer()


@functools.cache
def addresses() -> Any:
    """Where the functions are in this process: entry GEMM of the vector, and so on."""
    names = (("cython_blas", "dgemm"), ("cython_lapack", "dpotrf"), ("cython_lapack", "dpotrs"))
    return np.array([get_cython_function_address(f"scipy.linalg.{module}", name) for module, name in names], np.int64)


def _call(builder: Any, address: Any, kinds: list[Any], arguments: list[Any]) -> None:
    function = builder.inttoptr(address, ir.FunctionType(_nothing, kinds).as_pointer())
    builder.call(function, arguments)


def _letter(builder: Any, letter: str) -> Any:
    return cgutils.alloca_once_value(builder, _i8(ord(letter)))


def _whole(builder: Any, value: Any) -> Any:
    return cgutils.alloca_once_value(builder, builder.trunc(value, _i32))


def _start(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.make_array(kind)(context, builder, value).data


@intrinsic
def add_products(
    typingctx: Any, address: Any, a: Any, first_a: Any, rows: Any, b: Any, others: Any, length: Any, c: Any,
    first_c: Any,
) -> Any:  # fmt: skip
    """c[first_c + i, j] += sum over k of a[first_a + i, k] b[j, k], for i < rows, j < others and k < length."""
    signature = types.void(
        types.int64, a, types.int64, types.int64, b, types.int64, types.int64, c, types.int64
    )  # fmt: skip

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        where, a_value, first_a, rows, b_value, others, length, c_value, first_c = args
        a_kind, b_kind, c_kind = sig.args[1], sig.args[4], sig.args[7]

        def place(kind: Any, value: Any, first: Any) -> tuple[Any, Any]:
            stride = builder.extract_value(context.make_array(kind)(context, builder, value).shape, 1)
            return builder.gep(_start(context, builder, kind, value), [builder.mul(first, stride)]), stride

        zero = ir.Constant(ir.IntType(64), 0)
        a_start, a_stride = place(a_kind, a_value, first_a)
        b_start, b_stride = place(b_kind, b_value, zero)
        c_start, c_stride = place(c_kind, c_value, first_c)
        one = cgutils.alloca_once_value(builder, ir.Constant(_double, 1.0))
        kinds = [_bytes, _bytes, _ints, _ints, _ints, _doubles, _doubles, _ints, _doubles, _ints, _doubles, _doubles,
                 _ints]  # fmt: skip
        _call(builder, where, kinds, [
            _letter(builder, "T"), _letter(builder, "N"), _whole(builder, others), _whole(builder, rows),
            _whole(builder, length), one, b_start, _whole(builder, b_stride), a_start, _whole(builder, a_stride), one,
            c_start, _whole(builder, c_stride),
        ])  # fmt: skip
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def factorise(typingctx: Any, address: Any, matrix: Any, size: Any) -> Any:
    """The Cholesky factor in place of the lower triangle of the first `size` rows; 0 where there is one."""
    signature = types.int64(types.int64, matrix, types.int64)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[1])(context, builder, args[1])
        stride = builder.extract_value(array.shape, 1)
        info = cgutils.alloca_once_value(builder, _i32(0))
        _call(builder, args[0], [_bytes, _ints, _doubles, _ints, _ints],
              [_letter(builder, "U"), _whole(builder, args[2]), array.data, _whole(builder, stride), info])  # fmt: skip
        return builder.sext(builder.load(info), ir.IntType(64))

    return signature, codegen


@intrinsic
def solve_factored(typingctx: Any, address: Any, matrix: Any, size: Any, right: Any) -> Any:
    """right <- the solution of the system whose Cholesky factor `factorise` made."""
    signature = types.void(types.int64, matrix, types.int64, right)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[1])(context, builder, args[1])
        stride = builder.extract_value(array.shape, 1)
        info = cgutils.alloca_once_value(builder, _i32(0))
        size = _whole(builder, args[2])
        _call(builder, args[0], [_bytes, _ints, _ints, _doubles, _ints, _doubles, _ints, _ints], [
            _letter(builder, "U"), size, cgutils.alloca_once_value(builder, _i32(1)), array.data,
            _whole(builder, stride), _start(context, builder, sig.args[3], args[3]), size, info,
        ])  # fmt: skip
        return context.get_dummy_value()

    return signature, codegen
