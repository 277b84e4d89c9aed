"""Dense rows larger than memory: overlapping groups, logistic loss, certified 1e-6.

    python benchmarks/scale/dense.py --gb 12 --memory 700MB

Prints passes, certified gap, processor time and peak memory (the kernel's cache of files aside). With `--tenth` the
in-memory solver fits a tenth of the rows, the rounds do so too, and the objectives are compared.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from common import arguments, dense_rows, overlapping, report, run_apart

import fenchel as fl


def main() -> None:
    parser = arguments(__doc__.splitlines()[0], gb=2.0, memory="700MB")
    parser.add_argument("--features", type=int, default=1024)
    parser.add_argument("--alpha", type=float, default=0.002)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--in-memory", action="store_true")
    parser.add_argument("--tenth", action="store_true", help="compare with the solver in memory on a tenth of the rows")
    given = parser.parse_args()
    if given.child:
        return fit(given)
    given.folder = given.folder.resolve()
    common = ["--folder", str(given.folder), "--memory", given.memory, "--features", str(given.features),
              "--alpha", str(given.alpha)]  # fmt: skip
    rows, _ = dense_rows(given.folder, given.gb, given.features)
    print(f"{rows}: {rows.stat().st_size / 1e9:.2f} GB")
    print(json.dumps(run_apart(__file__, "--gb", str(given.gb), "--tol", str(given.tol), *common), indent=1))
    if given.tenth:
        dense_rows(given.folder, given.gb / 10, given.features)
        tenth = ["--gb", str(given.gb / 10), "--tol", "1e-10", *common]
        rounds, memory = run_apart(__file__, *tenth), run_apart(__file__, *tenth, "--in-memory")
        apart = (rounds["primal"] - memory["primal"]) / abs(memory["primal"])
        print(json.dumps({"rounds": rounds, "in memory": memory, "relative difference": apart}, indent=1))


def fit(given: object) -> None:
    rows, labels = dense_rows(Path(given.folder), given.gb, given.features)
    settings = {"loss": "logistic", "penalty": fl.GroupLasso(overlapping(given.features)), "alpha": given.alpha}
    if given.in_memory:
        problem = fl.Problem(np.load(rows), np.load(labels).astype(float), **settings)
    else:
        problem = fl.Problem(fl.open_data(rows, target=str(labels), memory=given.memory), **settings)
    report(problem, fl.solve(problem, tol=given.tol))


if __name__ == "__main__":
    main()
