"""What the scripts of this folder share: generated rows, and runs in processes of their own that are measured."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import fenchel as fl


def overlapping(p: int, size: int = 16, step: int = 12) -> list[list[int]]:
    """Groups of neighbours, each sharing some with the next."""
    return [list(range(first, min(first + size, p))) for first in range(0, p, step)]


def dense_rows(folder: Path, gigabytes: float, p: int, seed: int = 0) -> tuple[Path, Path]:
    """Gaussian rows of float32 with correlated neighbours, and labels of a logistic model with few active groups; made
    chunk by chunk, and kept for the next run."""
    n = int(gigabytes * 1e9 / (4 * p))
    rows, labels = folder / f"dense-{n}-{p}.npy", folder / f"dense-{n}-{p}-y.npy"
    if rows.exists() and labels.exists():
        return rows, labels
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    truth = np.zeros(p)
    for first in rng.choice(p // 16, max(p // 128, 1), replace=False):
        truth[16 * first : 16 * first + 16] = rng.standard_normal(16) / 4
    X = np.lib.format.open_memmap(str(rows) + ".part", mode="w+", dtype=np.float32, shape=(n, p))
    y = np.empty(n, dtype=np.int8)
    for first in range(0, n, 20_000):
        part = rng.standard_normal((min(20_000, n - first), p), dtype=np.float32)
        part[:, 1:] = 0.6 * part[:, :-1] + 0.8 * part[:, 1:]
        X[first : first + len(part)] = part
        chance = 1 / (1 + np.exp(-(part @ truth)))
        y[first : first + len(part)] = np.where(rng.random(len(part)) < chance, 1, -1)
    X.flush()
    del X
    np.save(labels, y)
    Path(str(rows) + ".part").rename(rows)
    return rows, labels


def run_apart(script: str, *arguments: str) -> dict[str, float]:
    """A script's `--child` in a process of its own; what it prints as JSON, with its processor time and peak memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run([sys.executable, script, "--child", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    return found | {
        "seconds": time.perf_counter() - began,
        "processor_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def peak_bytes() -> int:
    """The most memory that this process has held; the kernel's cache of files is not in it."""
    try:  # what `getrusage` tells is inherited from the process that started this one
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def report(problem: fl.Problem, result: fl.Result, **more: float) -> None:
    """One line of JSON."""
    print(json.dumps({
        "status": str(result.status), "primal": result.primal, "relative_gap": result.relative_gap,
        "passes": result.epochs, "n": problem.n, "p": problem.p, "nonzeros": int(np.count_nonzero(result.coef)),
        "peak_bytes": peak_bytes(), **more,
    }))  # fmt: skip


def arguments(description: str, **defaults: object) -> argparse.ArgumentParser:
    """Sizes and places, which every script takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--gb", type=float, default=defaults.get("gb", 1.0), help="gigabytes of rows")
    parser.add_argument("--folder", type=Path, default=Path("scale-data"), help="where generated rows are kept")
    parser.add_argument("--memory", default=defaults.get("memory", "1GB"))
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return parser
