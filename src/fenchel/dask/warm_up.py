"""Kernels are compiled once per host, and not by all of its workers at the same time."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import locket
import numpy as np
import scipy.sparse as sp
from distributed import WorkerPlugin

from ..data.jobs import Look, Sample, Stats, Terms
from ..data.partitions import Partition
from ..losses import Logistic


class WarmUp(WorkerPlugin):  # type: ignore[misc]  # it has no types
    """A plugin of workers: compiles the kernels before the first task, on one worker of a host at a time, so that the
    others find them in the cache."""

    idempotent = True

    def __init__(self, dtype: str, sparse: bool) -> None:
        self.dtype, self.sparse = dtype, sparse
        self.name = f"fenchel-kernels-{dtype}-{sparse}"

    async def setup(self, worker: Any) -> None:
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, warm_up, self.dtype, self.sparse)


def warm_up(dtype: str, sparse: bool) -> None:
    """Run every job once on two rows."""
    X = np.ones((2, 2), dtype=dtype)
    part = Partition.of(0, sp.csr_array(X) if sparse else X, np.array([-1.0, 1.0]))
    terms, nothing = Terms(Logistic(), 1), np.zeros((3, 0))
    jobs = (
        Stats(), Sample(terms, np.ones(2), 1.0, 2.0, 0),
        Look(terms, np.ones(3), (0.0, 1.0), 0.0, True, nothing),
    )  # fmt: skip
    user = os.getuid() if hasattr(os, "getuid") else "all"
    with locket.lock_file(os.path.join(tempfile.gettempdir(), f"fenchel-kernels-{user}.lock")):
        for job in jobs:
            job(part)
