"""Sparse rows larger than memory: a graph over the features, smoothed hinge, certified 1e-6.

    python benchmarks/scale/csr.py --gb 20 --memory 1GB

Rows are written as a LIBSVM-like set of npz files (CSR), and converted once to shards.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from common import arguments, report, run_apart

import fenchel as fl

ROWS = 100_000  # of a file
EACH = 40  # entries of a row


def files(folder: Path, gigabytes: float, p: int) -> Path:
    """Binary features of very different frequencies; the label depends on a stretch of neighbours."""
    own = folder / f"sparse-{gigabytes:g}-{p}"
    if (own / "done").exists():
        return own
    own.mkdir(parents=True, exist_ok=True)
    rng, often = np.random.default_rng(0), 1.0 / np.arange(1, p + 1) ** 0.6
    ends = np.cumsum(often / often.sum())
    column = np.searchsorted(ends, (np.arange(1 << 16) + 0.5) / (1 << 16)).astype(np.int32)  # of a random word
    truth = np.zeros(p)
    truth[: p // 10] = 0.5
    for k in range(max(1, round(gigabytes * 1e9 / (8 * EACH * ROWS)))):
        columns = np.sort(column[rng.integers(0, 1 << 16, (ROWS, EACH), dtype=np.uint16)], axis=1)
        X = sp.csr_array(
            (np.ones(columns.size, np.float32), columns.ravel(), np.arange(0, columns.size + 1, EACH, np.int32)),
            shape=(ROWS, p),
        )
        X.sum_duplicates()
        chance = 1 / (1 + np.exp(2.0 - X @ truth))
        y = np.where(rng.random(ROWS) < chance, 1, -1)
        np.savez(own / f"{k:05d}.npz", data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape, y=y)
    (own / "done").touch()
    return own


def main() -> None:
    parser = arguments(__doc__.splitlines()[0], gb=1.0, memory="1GB")
    parser.add_argument("--features", type=int, default=2000)
    given = parser.parse_args()
    if not given.child:
        given.folder = given.folder.resolve()
        files(given.folder, given.gb, given.features)
        sizes = ["--gb", str(given.gb), "--features", str(given.features)]
        found = run_apart(__file__, *sizes, "--folder", str(given.folder), "--memory", given.memory)
        print(json.dumps(found, indent=1))
        return
    own = files(Path(given.folder), given.gb, given.features)
    rows = fl.open_data(str(own / "*.npz"), memory=given.memory, cache_dir=Path(given.folder) / "cache")
    p = given.features
    penalty = fl.L1() + fl.L1() @ fl.Incidence([(j, j + 1) for j in range(p - 1)], p)
    problem = fl.Problem(rows, loss="smoothed-hinge", penalty=penalty, alpha=1e-4, fit_intercept=True)
    report(problem, fl.solve(problem), gigabytes=rows.nbytes / 1e9)


if __name__ == "__main__":
    main()
