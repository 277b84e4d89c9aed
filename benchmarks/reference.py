"""The reference optimum of a problem: fenchel to a relative gap of 1e-12, with its proof.

    python reference.py PROBLEM.npz SECONDS

Prints one line of JSON: the objective as the judge has it, and the certified lower bound.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import json
import sys

from fenchel_model import problem
from objective import Objective

import fenchel as fl


def main(path, seconds):
    objective = Objective.load(path)
    result = fl.solve(problem(objective), tol=1e-12, max_epochs=1_000_000, time_limit=seconds)
    print(json.dumps({"value": objective.value(result.coef), "bound": result.dual, "status": str(result.status),
                      "epochs": result.epochs, "seconds": result.seconds}))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
