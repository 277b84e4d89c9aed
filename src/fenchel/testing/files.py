"""Damaged files for every reader: each must be read, or refused by a ValueError that names the file.

    python -m fenchel.testing.files --mutations 20000 --seed 0

prints a table and exits with 1 if a reader raised anything else, did not name the file, read what cannot be, took more
than 200 MB, or brought the process down. The work is done in a process of its own, which is replaced if it dies; a case
is known by its number: ``--only NUMBER`` does that one alone and shows what happened.
"""

from __future__ import annotations

import argparse
import collections
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..foundation.files import BEYOND
from .mutations import mutated
from .readers import Reader, make_readers

_SLOW = 10.0  # seconds of processor time for the same; more: slow readers pass
_STEPS = ("read", "refused", "raw", "crash")


class Case(NamedTuple):
    """What became of a damaged file: read, refused, raw (an exception of the wrong kind, a wrong answer) or crash."""

    number: int
    reader: str
    outcome: str
    what: str = ""


def check_files(mutations: int, seed: int = 0, folder: str | os.PathLike[str] | None = None) -> list[Case]:
    """Try so many damaged files in this process, and return what became of each."""
    with tempfile.TemporaryDirectory() as made:
        return list(_cases(range(mutations), seed, Path(folder or made)))


def _cases(numbers: range, seed: int, folder: Path) -> Iterator[Case]:
    readers = make_readers(folder)
    names = list(readers)
    for number in numbers:
        name = names[number % len(names)]
        yield Case(number, name, *_try(readers[name], number, seed, folder))


def _try(reader: Reader, number: int, seed: int, folder: Path) -> tuple[str, str]:
    content = mutated(reader.content, reader.file, np.random.default_rng([seed, number]))
    path = folder / reader.file
    path.write_bytes(content)
    before, began = _peak(), time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            reader.read(str(path))
        outcome = "read", ""
    except ValueError as error:
        outcome = ("refused", "") if reader.file in str(error) else ("raw", f"no name of the file: {error!r}")
    except Exception as error:
        outcome = "raw", repr(error)
    if _peak() - before > BEYOND:
        outcome = "raw", f"took {(_peak() - before) / 1e6:.0f} MB"
    if time.process_time() - began > _SLOW:
        outcome = "raw", f"took {time.process_time() - began:.1f} s"
    return outcome


def _peak() -> float:
    """Bytes that this process has had at most."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0)


# -- in processes that may die --------------------------------------------------------------------------


def in_processes(mutations: int, seed: int) -> Iterator[Case]:
    """The same, with the crashes too."""
    done = 0
    while done < mutations:
        command = [sys.executable, "-m", __spec__.name, "--worker", str(done), "--mutations", str(mutations)]
        with subprocess.Popen([*command, "--seed", str(seed)], stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            for line in worker.stdout:
                number, reader, outcome, what = line.rstrip("\n").split("\t", 3)
                yield Case(int(number), reader, outcome, what)
                done = int(number) + 1
        if done < mutations:
            code = worker.returncode
            how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            yield Case(done, "?", "crash", how)
            done += 1


def _work(first: int, mutations: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for case in _cases(range(first, mutations), seed, Path(folder)):
            what = " ".join(case.what.split())[:300]
            print(case.number, case.reader, case.outcome, what, sep="\t", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fenchel.testing.files", description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one case, which is shown")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker is not None:
        _work(given.worker, given.mutations, given.seed)
        return 0
    if given.only is not None:
        return _show(given.only, given.seed)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    wrong: list[Case] = []
    for case in in_processes(given.mutations, given.seed):
        counts[case.reader, case.outcome] += 1
        if case.outcome not in ("read", "refused"):
            wrong.append(case)
    print(f"{'reader':24}" + "".join(f"{step:>10}" for step in _STEPS))
    for name in sorted({reader for reader, _ in counts}):
        print(f"{name:24}" + "".join(f"{counts[name, step]:>10,}" for step in _STEPS))
    for case in wrong:
        print(f"case {case.number} ({case.reader}): {case.outcome}: {case.what}")
    print(f"{given.mutations:,} damaged files, seed {given.seed}: {len(wrong)} raw exceptions or crashes")
    return 1 if wrong else 0


def _show(number: int, seed: int) -> int:
    with tempfile.TemporaryDirectory() as folder:
        readers = make_readers(folder)
        reader = list(readers.values())[number % len(readers)]
        path = Path(folder) / reader.file
        path.write_bytes(mutated(reader.content, reader.file, np.random.default_rng([seed, number])))
        print(path.read_bytes()[:2000])
        try:
            reader.read(str(path))
        except Exception:
            traceback.print_exc()
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
