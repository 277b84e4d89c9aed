"""Calling a C function by its address from inside a compiled kernel, and asking for memory ahead of time.

A kernel must not be recompiled for every loss and penalty. Passing numba functions as arguments does
just that (their type is the function itself), so the kernels receive plain addresses of C functions.
One compiled kernel then serves every loss, any number of penalty blocks, and a function written in
plain Python (through a ctypes callback). The price is an indirect call, about 2 ns, once per mini-batch.
"""

from __future__ import annotations

import ctypes

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_float_pointer = types.CPointer(types.float64)
_int_pointer = types.CPointer(types.int64)

# step(n, x, point, curvature, target, weight, params): x[i] becomes argmin of
# weight f*(x / weight) + curvature/2 (x - point)^2 for n rows; before, it is a guess. params are the loss's own.
STEP_SIGNATURE = types.void(
    types.int64, _float_pointer, _float_pointer, _float_pointer, _float_pointer, _float_pointer, _float_pointer
)
# prox(d, u, step, params, index): u becomes the prox of step * psi at u, in place; step is per coordinate.
PROX_SIGNATURE = types.void(types.int64, _float_pointer, _float_pointer, _float_pointer, _int_pointer)

_C_DOUBLES = ctypes.POINTER(ctypes.c_double)
_C_LONGS = ctypes.POINTER(ctypes.c_int64)
STEP_CTYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_int64, _C_DOUBLES, _C_DOUBLES, _C_DOUBLES, _C_DOUBLES, _C_DOUBLES, _C_DOUBLES
)
PROX_CTYPE = ctypes.CFUNCTYPE(None, ctypes.c_int64, _C_DOUBLES, _C_DOUBLES, _C_DOUBLES, _C_LONGS)

_i64, _double = ir.IntType(64), ir.DoubleType()
_doubles, _longs = _double.as_pointer(), _i64.as_pointer()
_i32, _bytes = ir.IntType(32), ir.IntType(8).as_pointer()


def _data(context, builder, array_type, value):
    return context.make_array(array_type)(context, builder, value).data


@intrinsic
def call_step(typingctx, address, n, x, point, curvature, target, weight, params):
    """Call the loss's dual step at `address` on the first n entries of the buffers."""
    signature = types.void(types.int64, types.int64, x, point, curvature, target, weight, types.int64)

    def codegen(context, builder, sig, args):
        kind = ir.FunctionType(ir.VoidType(), [_i64] + 6 * [_doubles])
        function = builder.inttoptr(args[0], kind.as_pointer())
        arrays = [_data(context, builder, array, value) for array, value in zip(sig.args[2:7], args[2:7], strict=False)]
        builder.call(function, [args[1], *arrays, builder.inttoptr(args[7], _doubles)])
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def call_prox(typingctx, address, n, first, u, step, params, index):
    """Call the penalty's prox at `address` on u[first : first + n]."""
    signature = types.void(types.int64, types.int64, types.int64, u, step, types.int64, types.int64)

    def codegen(context, builder, sig, args):
        kind = ir.FunctionType(ir.VoidType(), [_i64, _doubles, _doubles, _doubles, _longs])
        function = builder.inttoptr(args[0], kind.as_pointer())
        u_data = builder.gep(_data(context, builder, sig.args[3], args[3]), [args[2]])
        step_data = builder.gep(_data(context, builder, sig.args[4], args[4]), [args[2]])
        builder.call(
            function,
            [args[1], u_data, step_data, builder.inttoptr(args[5], _doubles), builder.inttoptr(args[6], _longs)],
        )
        return context.get_dummy_value()

    return signature, codegen


@intrinsic
def fetch(typingctx, array, index):
    """Ask for the line of memory with array[index], into the second cache: it is read soon."""
    signature = types.void(array, types.int64)

    def codegen(context, builder, sig, args):
        at = builder.bitcast(builder.gep(_data(context, builder, sig.args[0], args[0]), [args[1]]), _bytes)
        kind = ir.FunctionType(ir.VoidType(), [_bytes, _i32, _i32, _i32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_bytes], kind)
        builder.call(function, [at, _i32(0), _i32(2), _i32(1)])  # to read, the second cache, data
        return context.get_dummy_value()

    return signature, codegen
