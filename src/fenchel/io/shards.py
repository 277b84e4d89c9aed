"""Files that are not rows one after another are converted once: shards in a cache, keyed by all they depend on.

A folder of shards appears whole or not at all: it is written under another name, and renamed when its last file, which
lists the others, is there. What a crash leaves behind has that other name, and is never used.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..data.streamed import Chunk, FileState, ShardReader, write_shard

VERSION = 1  # of the shards; others are made anew
_LIST = "shards.json"


def cache_folder(given: str | os.PathLike[str] | None) -> Path:
    """Where shards are kept: as given, in FENCHEL_CACHE, or in the user's cache."""
    if given is not None:
        return Path(given)
    own = os.environ.get("FENCHEL_CACHE")
    if own:
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fenchel" / "shards"


def key_of(states: Sequence[FileState], settings: dict[str, Any]) -> str:
    """A name for these files, as they are now, read in this way."""
    head = {"version": VERSION, "files": [(s.path, s.size, s.time) for s in states], "settings": settings}
    return hashlib.sha256(json.dumps(head, sort_keys=True, default=str).encode()).hexdigest()[:32]


def sharded(
    folder: Path, key: str, make: Callable[[], Iterator[Chunk]], states: Sequence[FileState], libsvm: bool = False
) -> tuple[list[ShardReader], dict[str, Any]]:
    """Readers of the shards of that key, which are made where they are not there; and what is known of all."""
    home = folder / key
    if not (home / _LIST).is_file():
        _write(folder, home, make, states, libsvm)
    known = json.loads((home / _LIST).read_text())
    codes = None if known["tasks"] is None else np.array(known["codes"], dtype=np.int64)
    readers = [
        ShardReader(k, str(home / f"{k:06d}.shard"), known["p"], one, known["shift"], codes)
        for k, one in enumerate(known["shards"])
    ]
    for reader in readers:
        if not os.path.isfile(reader.path) or os.path.getsize(reader.path) != reader.nbytes:
            shutil.rmtree(home)  # somebody took a part of it away
            return sharded(folder, key, make, states, libsvm)
    return readers, known


def _write(
    folder: Path, home: Path, make: Callable[[], Iterator[Chunk]], states: Sequence[FileState], libsvm: bool
) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{home.name[:8]}-", dir=folder))
    except OSError as error:
        raise ValueError(
            f"shards cannot be written to {folder} ({error.strerror}); name another folder by cache_dir or "
            "FENCHEL_CACHE"
        ) from error
    try:
        known = _convert(temporary, make, libsvm)
        for state in states:
            state.check()
        (temporary / _LIST).write_text(json.dumps(known))
        try:
            os.replace(temporary, home)
        except OSError:
            if not (home / _LIST).is_file():  # else another process was faster, with the same
                raise
            shutil.rmtree(temporary)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if error.errno == errno.ENOSPC:
            size = sum(state.size for state in states) / 1e9
            raise OSError(
                errno.ENOSPC, f"the disk of {folder} is full; shards of these files ({size:.3g} GB) need about as much "
                "room, so name another folder by cache_dir or FENCHEL_CACHE"
            ) from error  # fmt: skip
        raise
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _convert(folder: Path, make: Callable[[], Iterator[Chunk]], libsvm: bool) -> dict[str, Any]:
    shards: list[dict[str, Any]] = []
    names: dict[str, int] = {}  # of tasks, in the order in which they come
    p, least = 0, None
    for chunk in make():
        codes = None
        if chunk.task is not None:
            own, inverse = np.unique(chunk.task, return_inverse=True)
            codes = np.array([names.setdefault(str(name), len(names)) for name in own], dtype=np.int64)[inverse]
        shards.append(write_shard(str(folder / f"{len(shards):06d}.shard"), chunk, codes))
        p = max(p, chunk.X.shape[1])
        if shards[-1]["sparse"] and chunk.X.indices.size:
            low = int(chunk.X.indices.min())
            least = low if least is None else min(least, low)
    if not shards:
        raise ValueError("there are no rows to learn from")
    order = sorted(names)
    shift = 1 if libsvm and least else 0  # the first feature is number 1, unless there is a 0
    return {
        "p": p - shift, "shift": shift, "shards": shards, "tasks": order or None,
        "codes": [order.index(name) for name in names],
    }  # fmt: skip
