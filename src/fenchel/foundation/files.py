"""Files as the package writes them: whole or not at all, and never in the place of something else.

A file is written beside its place under a name of its own, and takes its place in one step. Whoever writes such a file
holds a lock on it, so that the next process that writes into the folder can tell one whose writer was killed from one
that is being written, and removes it.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import secrets
import stat
import sys
import zlib
from collections.abc import Iterator
from typing import Any

_PREFIX, _SUFFIX = ".fenchel-", ".part"
_swept: set[str] = set()  # folders that were looked at for what killed processes left: once is enough

written: list[str] = []  # what this process has written so far, for whoever has to tell of it


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file so that it appears whole or not at all.

    A link is followed. A file that is there keeps its mode; a new one gets that of any other new file.
    """
    target = writable(path)
    folder = os.path.dirname(target)
    _sweep(folder)
    handle, temporary = _open_new(folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            _match_mode(handle, target)
            os.fsync(handle)  # else a loss of power may leave the name with nothing behind it
            if sys.platform != "win32":
                os.replace(temporary, target)  # still locked, so that nobody takes it for one that was left behind
        if sys.platform == "win32":  # where a file that is open cannot be moved
            os.replace(temporary, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # a full disk does not say where
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
    written.append(os.fspath(path))


def writable(path: str | os.PathLike[str], name: str | None = None) -> str:
    """The file that a path leads to, through links too; or a ValueError that says why it cannot be written.

    `name` is the argument that the message names.
    """
    path = os.fspath(path)
    what = f"{path}:" if name is None else f"{name} is {path!r}, but"
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.islink(target):
        raise ValueError(f"{what} it is a link that leads to itself")
    if not os.path.isdir(folder):
        raise ValueError(f"{what} the folder {folder} does not exist")
    if os.path.exists(target) and not os.path.isfile(target):
        # the new file takes the old one's place, which must never happen to a folder or a device
        raise ValueError(f"{what} that exists and is not a regular file")
    if os.path.exists(target) and not os.access(target, os.W_OK):
        raise ValueError(f"{what} that file is write-protected")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"{what} the folder {folder} cannot be written to")
    return target


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file, which need not be there yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


# -- files that are being written ---------------------------------------------------------------------


def _open_new(folder: str) -> tuple[int, str]:
    """A new file, locked, whose mode the system makes of the process's mask."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    while True:
        temporary = os.path.join(folder, f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}")
        handle = os.open(temporary, flags, 0o666)
        _lock(handle, wait=True)
        if _is_at(handle, temporary):
            return handle, temporary
        os.close(handle)  # somebody took it for a file that was left behind, before it was locked


def _sweep(folder: str) -> None:
    """Remove what processes left that were killed while they wrote into the folder."""
    if folder in _swept:
        return
    _swept.add(folder)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(_PREFIX) and entry.name.endswith(_SUFFIX)]
        for path in found:
            with contextlib.suppress(OSError):
                _remove_left(path)


def _remove_left(path: str) -> None:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0))
    try:
        left = _lock(handle, wait=False) and _is_at(handle, path)
        if left and sys.platform != "win32":
            os.unlink(path)
    finally:
        os.close(handle)
    if left and sys.platform == "win32":  # which refuses while anybody has it open
        os.unlink(path)


def _lock(handle: int, wait: bool) -> bool:
    """Whether nobody else has the file; where files have no locks nobody can tell, and nothing is removed."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _is_at(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def _match_mode(handle: int, target: str) -> None:
    """Give a new file the mode of the one whose place it takes."""
    if hasattr(os, "fchmod"):
        with contextlib.suppress(FileNotFoundError):
            os.fchmod(handle, stat.S_IMODE(os.stat(target).st_mode))


# -- JSON ---------------------------------------------------------------------------------------------


def read_json(path: str | os.PathLike[str], what: str = "JSON", *, repeats: bool = True) -> Any:
    """What a JSON file holds, or a ValueError that names the file, and the line where there is one.

    `what` the file should be, for the message. Without `repeats` an object must not name a thing twice.
    """
    path = os.fspath(path)
    try:
        with open_text(path) as file:
            return json.load(file, parse_constant=_no_constant, object_pairs_hook=None if repeats else _once)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not {what} ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not {what}: it is not text in UTF-8 (byte {error.start})") from error
    except RecursionError:
        raise ValueError(f"{path} is not {what}: its brackets are nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path} is not {what}: {error}") from error


@contextlib.contextmanager
def open_text(path: str | os.PathLike[str]) -> Iterator[Any]:
    """A text file to read, with the mark that some programs begin one with left out."""
    with open(regular(path), encoding="utf-8-sig") as file:
        yield file


def regular(path: str | os.PathLike[str]) -> str:
    """The path of a file that can be read, and ends; or an error that says why not."""
    path = os.fspath(path)
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder; give a file")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path} does not exist")
    if not os.path.isfile(path):
        raise ValueError(f"{path} is not a regular file; write what it gives to a file first")
    return path


def _no_constant(word: str) -> Any:
    raise ValueError(f"it holds {word}, which is not a number in JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for name, value in pairs:
        if name in content:
            raise ValueError(f"it names {name!r} twice")
        content[name] = value
    return content


# -- lines of text ------------------------------------------------------------------------------------


def text_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Number and content of every line, of a file packed by gzip (.gz) too; a ValueError names the first that is not
    text."""
    number, path = 0, regular(path)
    try:
        with _unpacked(path) if path.lower().endswith(".gz") else open_text(path) as file:
            for number, line in enumerate(file, 1):
                yield number, line
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, after line {number}: it is not text in UTF-8") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}, after line {number}: it is not whole, or not packed by gzip ({error})") from error


@contextlib.contextmanager
def _unpacked(path: str) -> Iterator[Any]:
    with gzip.open(path, "rb") as raw:
        yield io.TextIOWrapper(io.BufferedReader(_Bounded(raw, path)), encoding="utf-8-sig")


class _Bounded(io.RawIOBase):
    """What a packed file holds, until that is very much more than the file."""

    def __init__(self, raw: Any, path: str) -> None:
        self._raw, self._path, self._size = raw, path, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._raw.read(len(buffer))
        self._size += len(content)
        check_unpacked(self._path, self._size, "unpack it first", _TEXT)
        buffer[: len(content)] = content
        return len(content)


# -- packed files -------------------------------------------------------------------------------------

BEYOND = 200_000_000  # bytes that a file may unpack to whatever its size; more: a small file can take all memory
# times what a file holds, that it may ask for in memory; mostly zeros shrink a hundredfold, and a bomb a thousandfold;
# larger: bombs are unpacked
PACKED = 100
_TEXT = 20  # times the size of packed text, which shrinks tenfold; larger: the same


def check_unpacked(path: str | os.PathLike[str], size: int, way_out: str, times: int = PACKED) -> None:
    """Refuse a file that says of itself that it is very much larger than it is, before memory is taken for it."""
    own = os.path.getsize(path)
    if size > BEYOND + times * own:
        raise ValueError(
            f"{os.fspath(path)} has {own:,} bytes, but would take {size:,} in memory; if that is right, {way_out}"
        )


def read_npz(path: str | os.PathLike[str], what: str) -> dict[str, Any]:
    """The arrays of an npz file, or a ValueError that names the file and the array that is wrong.

    `what` the file should be, for the message.
    """
    import zipfile

    path = regular(path)
    where = path
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            size = sum(entry.file_size for entry in entries)
            check_unpacked(path, size, "save it with np.savez, which does not pack")
            arrays = {}
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                where = f"{path}, array {name!r}"
                arrays[name] = _read_entry(archive, entry)
            return arrays
    except Exception as error:  # those of zipfile, zlib, numpy and others
        if str(error).startswith(path):
            raise
        why = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ValueError(f"{where} is not {what} ({why})") from error


def _read_entry(archive: Any, entry: Any) -> Any:
    """An array, after a look at whether what it says of itself fits into the file."""
    import numpy as np

    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError("it is not an array of plain numbers or words")
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, kind = read(file)
    if kind.hasobject or kind.names is not None:
        raise ValueError("it holds objects, and not plain numbers or words")
    size = kind.itemsize
    for side in shape:
        size *= side
    if min(shape, default=0) < 0 or size > entry.file_size:
        raise ValueError(f"it says to have shape {shape}, for which the file is too short")
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)
