"""Hostile problems from the command line.

python -m fenchel.testing.hostile --cases 10000 --seed 1
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import sys  # noqa: E402

from .command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
