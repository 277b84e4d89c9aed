"""A folder of Parquet files through the command line.

python benchmarks/scale/parquet.py --gb 8          # 10^7 rows of 100 columns
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
from common import arguments

COLUMNS, ROWS = 100, 250_000


def main() -> None:
    import pandas as pd

    given = arguments(__doc__.splitlines()[0], gb=1.0, memory="500MB").parse_args()
    own = given.folder.resolve() / f"parquet-{given.gb:g}"
    if not (own / "_done").exists():
        own.mkdir(parents=True, exist_ok=True)
        rng, truth = np.random.default_rng(0), np.zeros(COLUMNS)
        truth[:10] = 0.5
        for k in range(max(1, round(given.gb * 1e9 / (8 * COLUMNS * ROWS)))):
            X = rng.standard_normal((ROWS, COLUMNS))
            y = np.where(X @ truth + rng.logistic(size=ROWS) > 0, "yes", "no")
            frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(COLUMNS)]).assign(label=y)
            frame.to_parquet(own / f"{k:05d}.parquet")
        (own / "_done").touch()
    command = [sys.executable, "-m", "fenchel", "fit", str(own / "*.parquet"), "--target", "label", "--memory",
               given.memory, "--penalty", "fused", "-o", str(own / "_model.json")]  # fmt: skip
    for what in ("with conversion", "from shards"):
        began = time.perf_counter()
        subprocess.run(command, check=True)
        print(f"{what}: {time.perf_counter() - began:.1f} s")


if __name__ == "__main__":
    main()
