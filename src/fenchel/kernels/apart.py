"""Kernels that are compiled one by one, and called by a name that the process resolves.

numba links what a kernel calls into it, and optimises all of it again, level by level: half of the time that nested
kernels took to compile. A kernel that is compiled `apart` is only declared where it is called; the address behind its
name is told to LLVM when it is loaded. It is compiled once and cached on its own, so that kernels for l1, for groups
and for tiny problems share it. A call costs what an array passed by value costs (seven words each), some nanoseconds.

Tuples of many arrays go by `Reference`: a pointer, behind which an attribute is read where it is used.

A kernel from the cache must find the names that it was compiled with: ``load`` brings all of them in first, and a
change of any file here makes what is cached out of date, signatures of other files being part of every kernel.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import types as python_types
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from numba import float64, int64, types
from numba.core import cgutils, imputils, typing
from numba.core.datamodel import models
from numba.core.dispatcher import Dispatcher
from numba.core.imputils import lower_cast, lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, register_model

from ..foundation import numerics
from ..foundation.interrupts import interrupts_held
from .caching import WITHIN, njit
from .rows import LEAN

VECTOR, MATRIX, LIST, TABLE = float64[::1], float64[:, ::1], int64[::1], int64[:, ::1]
READ, READ2 = types.Array(float64, 1, "C", readonly=True), types.Array(float64, 2, "C", readonly=True)
READ_LIST = types.Array(int64, 1, "C", readonly=True)

# Most kernels' loops take no time, so that nothing is gained by reordering their sums and vectorising them; to do so
# costs seconds of compiling. HOT ones are the few that take the time.
PLAIN = {**LEAN, "fastmath": False}
HOT = LEAN
OWNING = {key: True if key == "_nrt" else value for key, value in PLAIN.items()}  # of those that make arrays
INSIDE = {**PLAIN, **WITHIN}  # of small functions that are compiled with those that call them
INLINE = {**INSIDE, "forceinline": True}


class Apart:
    """A kernel that is compiled on its own."""

    def __init__(self, signature: Any, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.signature, self.function, self.options = signature, function, options
        tag = hashlib.sha256(str(signature).encode()).hexdigest()[:16]
        self.symbol = f"fenchel.{function.__module__}.{function.__qualname__}.{tag}"
        self.address = 0

    def load(self) -> int:
        """Its address; compiled, or taken from the cache, with all that it calls."""
        if not self.address:
            load_called(self.function)
            kernel = _cached(self.function, {**INSIDE, **self.options})
            kernel.compile(self.signature)
            made = kernel.overloads[tuple(self.signature.args)]
            with interrupts_held():  # LLVM calls back into Python
                self.address = made.library.get_pointer_to_function(made.fndesc.llvm_func_name)
            self._kernel = kernel  # whose code must not be freed
            llvm.add_symbol(self.symbol, self.address)
        return self.address


_aparts: dict[Any, Apart] = {}


def apart(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Mark a function of other kernels as one that is compiled on its own, for one signature. Arguments are converted
    to it: literals to numbers, arrays to arrays that nobody may write to."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = Apart(signature, function, options)
        stub = _stub(kernel)
        _aparts[stub] = kernel
        return stub

    return decorate


def _stub(kernel: Apart) -> Any:
    """What stands for a kernel in the kernels that call it."""

    def definition(typingctx: Any, *arguments: Any) -> Any:
        kernel.load()

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            convention = context.call_conv
            kind = convention.get_function_type(sig.return_type, sig.args)
            function = cgutils.get_or_insert_function(builder.module, kind, kernel.symbol)
            # these kernels raise nothing
            _status, value = convention.call_function(builder, function, sig.return_type, sig.args, args)
            return imputils.impl_ret_borrowed(context, builder, sig.return_type, value)

        return typing.signature(kernel.signature.return_type, *kernel.signature.args), codegen

    first = inspect.Parameter("typingctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    others = inspect.signature(kernel.function).parameters.values()
    definition.__signature__ = inspect.Signature([first, *others])  # type: ignore[attr-defined]
    definition.__name__ = kernel.function.__name__
    return intrinsic(definition)


def called_at(signature: Any) -> Any:
    """What an intrinsic returns that calls a kernel of this signature at an address, its first argument. No name has to
    be known when such a caller comes from the cache, so that callers may be specialised for whatever they are given."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        convention, kinds = context.call_conv, sig.args[1:]
        kind = convention.get_function_type(sig.return_type, kinds)
        function = builder.inttoptr(args[0], kind.as_pointer())
        status, value = convention.call_function(builder, function, sig.return_type, kinds, args[1:])
        with cgutils.if_unlikely(builder, status.is_error):  # there may be no memory left
            convention.return_status_propagate(builder, status)
        return imputils.impl_ret_borrowed(context, builder, sig.return_type, value)

    return typing.signature(signature.return_type, types.int64, *signature.args), codegen


def address_of(stub: Any) -> int:
    """Where a kernel that was marked `apart` is in this process."""
    return _aparts[stub].load()


def opened(stub: Any) -> Any:
    """A kernel that was marked `apart` as one that Python can call: for tests."""
    kernel = _aparts[stub]
    load_called(kernel.function)
    return njit(**{**PLAIN, **kernel.options})(kernel.function)


def door(signature: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A kernel that Python calls, for one signature, compiled or loaded at once."""

    def decorate(function: Callable[..., Any]) -> Any:
        load_called(function)
        kernel = _cached(function, {**PLAIN, **options, "nogil": True})
        kernel.compile(signature)
        kernel.disable_compile()
        return kernel

    return decorate


def specialised(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A kernel that is compiled for whatever it is given, and calls others apart."""

    def decorate(function: Callable[..., Any]) -> Any:
        def before() -> None:
            load_called(function)

        return njit(**options, cache=True, stamp=_stamp(), before=before)(function)

    return decorate


def load_called(function: Callable[..., Any], seen: set[int] | None = None) -> None:
    """Load every kernel apart that a function names, or that the kernels it names do."""
    seen = set() if seen is None else seen
    if id(function) in seen:
        return
    seen.add(id(function))
    names = function.__code__.co_names
    spaces = [function.__globals__.get(name) for name in names]
    modules = [space for space in spaces if isinstance(space, python_types.ModuleType)]
    for value in spaces + [getattr(module, name, None) for module in modules for name in names]:
        if isinstance(value, Dispatcher):
            load_called(value.py_func, seen)
        elif getattr(value, "__hash__", None) is not None and value in _aparts:
            _aparts[value].load()


def _cached(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """A kernel whose cache looks at the newest of all files here, not at its own alone."""
    return njit(**options, cache=True, stamp=_stamp())(function)


@functools.cache
def _stamp() -> tuple[float, int]:
    """When a file here, or the numbers of all rooms, was changed last, and the size of all."""
    here = os.path.dirname(__file__)
    states = [entry.stat() for entry in os.scandir(here) if entry.name.endswith(".py")] + [os.stat(numerics.__file__)]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


# -- tuples by reference ------------------------------------------------------------------------------


class Reference(types.Type):
    """A pointer to a named tuple that stands in the frame of a caller, which is `fresh` where that is the function
    itself. Others may count on it that the tuple does not change, and read it once outside of a loop."""

    def __init__(self, to: types.NamedTuple, fresh: bool = False) -> None:
        self.to, self.fresh = to, fresh
        super().__init__(name=f"{'FreshReference' if fresh else 'Reference'}({to})")


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, dmm.lookup(fe_type.to).get_data_type().as_pointer())


@infer_getattr
class _ReferenceAttribute(AttributeTemplate):
    key = Reference

    def generic_resolve(self, reference: Any, name: str) -> Any:
        fields = reference.to.fields
        return reference.to[fields.index(name)] if name in fields else None


@lower_getattr_generic(Reference)
def _read_attribute(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    index = kind.to.fields.index(name)
    field, before = kind.to[index], len(builder.block.instructions)
    found = context.unpack_value(builder, field, cgutils.gep_inbounds(builder, value, 0, index))
    for instruction in builder.block.instructions[before:]:
        if instruction.opname == "load" and not kind.fresh:
            instruction.set_metadata("invariant.load", builder.module.add_metadata([]))
    return imputils.impl_ret_borrowed(context, builder, field, found)


@lower_cast(Reference, Reference)
def _pass_on(context: Any, builder: Any, before: Any, after: Any, value: Any) -> Any:
    return value


@intrinsic
def refer(typingctx: Any, values: Any) -> Any:
    """A reference to a named tuple, which lives as long as the function that makes it."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = cgutils.alloca_once(builder, context.get_data_type(sig.args[0]))
        context.pack_value(builder, sig.args[0], args[0], place)
        return place

    return Reference(values, fresh=True)(values), codegen
