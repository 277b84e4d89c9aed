"""Compiled kernels kept on disk, in a way that cannot fail a fit.

numba keeps what it compiles beside the sources, or in the user's folder of caches. Where neither can be written to, a
file there is damaged, or the disk is full, it raises. Here such a cache gives way to one in the system's folder of
temporary files, and that to none: kernels are then compiled in every process. Either is said once.

What is kept carries a checksum and the name that it was kept under: code that was damaged must not be run.
"""

from __future__ import annotations

import atexit
import functools
import gc
import logging
import os
import pickle
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher

from ..foundation.display import Passing
from ..foundation.interrupts import interrupts_held

logger = logging.getLogger("fenchel")

# Kernels that other kernels alone call need no door to Python, which takes long to compile.
WITHIN = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def njit(
    *, cache: bool = False, stamp: Any = None, before: Callable[[], None] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """As numba's; with `cache` what is compiled is kept, if it can be. `stamp` tells what is out of date, where that
    is more than the file of the function; `before` brings in what a kept kernel needs."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if cache and isinstance(kernel, Dispatcher):
            kernel._cache = KernelCache(function, stamp, before)
        return kernel

    return decorate


def cfunc(signature: Any, *, cache: bool = False, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """As numba's, with the same cache."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = _HeldCFunc(function, numba.core.sigutils.normalize_signature(signature), locals={}, options=options)
        if cache:
            kernel._cache = KernelCache(function)
        kernel.compile()
        return kernel

    return decorate


class _HeldCFunc(CFunc):
    def compile(self) -> None:
        with interrupts_held():
            super().compile()


class _Compiling(event.Listener):
    """Say once that kernels are being compiled (a cold cache costs seconds that nobody should wonder at), and keep
    Ctrl-C back meanwhile: LLVM calls back into Python, where it would be lost and leave a kernel half made. Garbage
    waits, too: numba makes millions of objects that live on, and to look through them takes a sixth of the time."""

    def __init__(self) -> None:
        self.said, self.done, self.collects = False, 0, False
        self.count: Passing | None = None
        self.holding: list[interrupts_held] = []

    def on_start(self, record: Any) -> None:
        if not _is_ours(record):
            return
        if not self.said:
            self.said = True
            logger.warning("fenchel is compiling its kernels; this takes some seconds, once per machine")
            self.count = Passing()
        if not self.holding:  # the kernels that it calls are compiled meanwhile
            self.collects = gc.isenabled()
            gc.disable()
        self.holding.append(interrupts_held())
        self.holding[-1].__enter__()

    def on_end(self, record: Any) -> None:
        if _is_ours(record):
            self.holding.pop().__exit__()
            if not self.holding and self.collects:
                gc.enable()
            self.done += 1
            if self.count is not None:
                self.count.show(f"{self.done} kernels compiled")


def _is_ours(record: Any) -> bool:
    function = record.data.get("dispatcher")
    return (getattr(function, "__module__", None) or "").startswith("fenchel.")


event.register("numba:compile", _Compiling())


class KernelCache:
    """What numba asks of a cache, over one of its own that may fail."""

    def __init__(
        self, function: Callable[..., Any], stamp: Any = None, before: Callable[[], None] | None = None
    ) -> None:
        self._function, self._stamp, self._before = function, stamp, before
        self._temporary = False
        self._inner: Any = None
        try:
            self._inner = _with_checks(FunctionCache(function), stamp)
        except Exception as error:  # numba has several, and others may come: none is a reason to fail
            self._give_way(error)

    @property
    def cache_path(self) -> str | None:
        return None if self._inner is None else self._inner.cache_path

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled kernel, or None where there is none that can be trusted."""
        if self._inner is None:
            return None
        if self._before is not None:
            self._before()
        with interrupts_held():
            try:
                return self._inner.load_overload(signature, target_context)
            except Exception as error:
                logger.debug("a kept kernel is damaged and is compiled anew (%s)", error)
                try:
                    self._inner.flush()
                except Exception as why:
                    self._give_way(why)
                return None

    def save_overload(self, signature: Any, data: Any) -> None:
        with interrupts_held():
            while self._inner is not None:
                try:
                    self._inner.save_overload(signature, data)
                    return
                except Exception as error:
                    self._give_way(error)

    def flush(self) -> None:
        if self._inner is not None:
            self._inner.flush()

    def enable(self) -> None:
        if self._inner is not None:
            self._inner.enable()

    def disable(self) -> None:
        if self._inner is not None:
            self._inner.disable()

    def _give_way(self, error: Exception) -> None:
        """To a cache among temporary files, and from there to none."""
        first, self._temporary, self._inner = not self._temporary, True, None
        if first:
            folder = _temporary_folder()
            if folder is not None:
                try:
                    self._inner = _with_checks(_cache_in(folder, self._function), self._stamp)
                except Exception as why:
                    error = why
                else:
                    _say(f"in {folder}", error)
                    return
        _say("nowhere, and compiles them in every process", error)


class _CheckedFile(IndexDataCacheFile):
    """Kept kernels with a checksum, and the key that they were kept under."""

    def save(self, key: Any, data: Any) -> None:
        raw = self._dump((key, data))
        super().save(key, (zlib.crc32(raw), raw))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        if found is None:
            return None
        checksum, raw = found
        if zlib.crc32(raw) != checksum:
            raise ValueError("the checksum is wrong")
        kept_as, data = pickle.loads(raw)
        if kept_as != key:
            raise ValueError("the key is another one")
        return data


def _with_checks(cache: Any, stamp: Any) -> Any:
    """A cache of numba's whose files are checked."""
    cache._cache_file.__class__ = _CheckedFile
    if stamp is not None:
        cache._cache_file._source_stamp = stamp
    return cache


def _cache_in(folder: str, function: Callable[..., Any]) -> Any:
    """A cache in a folder; numba looks there while it is the one that the user has chosen."""
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = folder
    try:
        return FunctionCache(function)
    finally:
        numba.config.CACHE_DIR = before


@functools.cache
def _temporary_folder() -> str | None:
    """A folder of this user's alone, for kernels are code; or one for this process, or None."""
    try:
        user = os.getuid() if hasattr(os, "getuid") else 0
        folder = os.path.join(tempfile.gettempdir(), f"fenchel-kernels-{user}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
        private = not hasattr(os, "getuid") or (found.st_uid == user and not found.st_mode & 0o077)
        if stat.S_ISDIR(found.st_mode) and private and os.access(folder, os.W_OK):
            return folder
        folder = tempfile.mkdtemp(prefix="fenchel-kernels-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder
    except OSError:
        return None


_said: set[str] = set()


def _say(where: str, error: Exception) -> None:
    if where not in _said:
        _said.add(where)
        logger.warning(
            "fenchel keeps its compiled kernels %s, because the usual folder cannot be used (%s); NUMBA_CACHE_DIR "
            "names another one", where, str(error).splitlines()[0] if str(error) else type(error).__name__,
        )  # fmt: skip
