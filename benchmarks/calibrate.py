"""Measures what arithmetic costs on this machine, in nanoseconds, and writes it where the solver's prices are read.

    python benchmarks/calibrate.py               measure and write src/fenchel/prices/calibrated.py
    python benchmarks/calibrate.py --dry-run     measure and print only

Every number is the least of several timings, because noise only adds time, and the geometric mean over several sizes;
one thread, processor time. Only ratios of the numbers matter to the solver's choices, so a calibration of one machine
serves others that are not too different. Names in the file that this script does not measure are carried over as they
are, and marked.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.linalg import blas, lapack

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from results import machine

import fenchel as fl
from fenchel.kernels import sparse_columns, units

FILE = HERE.parent / "src" / "fenchel" / "prices" / "calibrated.py"
SHORTEST = 0.02  # seconds of one timing at least; larger: less noise, a longer run
TIMINGS = 7  # of which the least counts; larger: less noise, a longer run
BEYOND_CACHE = 8_000_000  # entries of data that no cache holds (64 MB); larger: more memory

UNITS = {
    "syrk64": "per multiply-add of the n k^2 / 2 of X'X, float64",
    "syrk32": "the same, float32",
    "gemv": "per entry of X in X'x, float64, X in C order and larger than the cache",
    "gemv32": "the same, float32",
    "copy": "per entry of columns gathered from a matrix in C order into a compact (k, n) array",
    "cast": "per entry, float64 to float32",
    "potrf": "per multiply-add of the a^3 / 6 of a Cholesky factor, float64",
    "descent": "per entry of the Gram matrix that a coordinate update reads (k of them), float64",
    "csr_pass": "per stored entry of one product X'x or Xw, mean of the two, CSR",
    "csc_pass": "the same, CSC",
    "csr_gram": "per multiply-add of the sum over the rows of (entries of the row)^2 / 2, CSR",
    "loss": "per row: value, slope and curvature of the logistic loss",
    "call": "one call of numpy on a tiny array from Python",
}


def nanoseconds(function, work) -> float:
    """Least nanoseconds of one unit, if a call of the function does `work` of them."""
    function()
    found = []
    for _ in range(TIMINGS):
        start, calls = time.process_time(), 0
        while True:
            function()
            calls += 1
            spent = time.process_time() - start
            if spent > SHORTEST:
                break
        found.append(1e9 * spent / calls / work)
    return min(found)


# -- one measurement each: pairs of (function, units of work), one pair for every size --------------------------------


def syrk(dtype, routine):
    for n, k in ((500, 200), (2000, 500), (6000, 300)):
        X = np.asfortranarray(np.random.default_rng(0).standard_normal((k, n)), dtype=dtype)
        yield lambda X=X: routine(1.0, X), n * k**2 / 2


def syrk64():
    return syrk(np.float64, blas.dsyrk)


def syrk32():
    return syrk(np.float32, blas.ssyrk)


def transposed_product(dtype):
    for n in (1000, 20_000):
        X = np.random.default_rng(0).standard_normal((n, BEYOND_CACHE // n), dtype=dtype)
        x = np.ones(n, dtype)
        yield lambda X=X, x=x: X.T @ x, X.size


def gemv():
    return transposed_product(np.float64)


def gemv32():
    return transposed_product(np.float32)


def copy():
    rng = np.random.default_rng(0)
    for n, p, k in ((200, 20_000, 100), (2000, 4000, 300)):
        X = rng.standard_normal((n, p))
        columns = np.sort(rng.choice(p, k, replace=False))
        out = np.empty((k, n))
        yield lambda X=X, columns=columns, out=out: units.take_columns(X, columns, out, 0), n * k


def cast():
    X = np.random.default_rng(0).standard_normal(BEYOND_CACHE // 4)
    yield lambda: X.astype(np.float32), X.size


def dense_gram(p):
    """A well-conditioned Gram matrix of p columns."""
    X = np.random.default_rng(0).standard_normal((4 * p, p))
    return X.T @ X / len(X)


def potrf():
    for size in (100, 300, 800):
        gram = np.asfortranarray(dense_gram(size))
        yield lambda gram=gram: lapack.dpotrf(gram), size**3 / 6


def descent():
    for size in (50, 300, 1000):
        gram = dense_gram(size)
        gradient, weight, end = (
            np.random.default_rng(1).standard_normal(size),
            np.full(size, 1e-9),
            np.full(size, np.inf),
        )

        def one_pass(gram=gram, gradient=gradient, weight=weight, end=end):
            # so small a weight that every coordinate moves
            units.descend(gram, len(gradient), gradient.copy(), np.zeros(len(gradient)), weight, -end, end, 1)

        yield one_pass, size**2


def sparse_rows(n=60_000, p=400, share=0.04):
    return sp.random(n, p, share, "csr", random_state=np.random.default_rng(0))


def both_products(X):
    """Of what is stored one after another with a vector, and of its sum: rows of CSR, columns of CSC."""
    lines, across = X.indptr.size - 1, sum(X.shape) - X.indptr.size + 1
    parts, each, out, sums = (X.data, X.indices, X.indptr), np.ones(across), np.empty(lines), np.empty(across)

    def both():
        sparse_columns.rows_times(*parts, each, out)
        sparse_columns.sum_rows(*parts, np.ones(lines), sums)

    yield both, 2 * X.nnz


def csr_pass():
    return both_products(sparse_rows())


def csc_pass():
    return both_products(sparse_rows().tocsc())


def csr_gram():
    for n, p, share in ((20_000, 150, 0.08), (20_000, 400, 0.04), (5000, 1000, 0.02)):
        X = sp.csr_array(sparse_rows(n, p, share))
        out, weights = np.zeros((p, p)), np.ones(n)
        work = float(np.sum(np.diff(X.indptr).astype(float) ** 2)) / 2
        yield (
            lambda X=X, out=out, weights=weights: sparse_columns.gram(
                X.data, X.indices, X.indptr, weights, out, len(out)
            ),
            work,
        )


def loss():
    for n in (1000, 50_000):
        score, target = np.random.default_rng(0).standard_normal(n), np.ones(n)
        yield lambda score=score, target=target: fl.Logistic().sums(score, target, np.zeros(0)), n


def call():
    small = np.ones(8)
    # a hundred at a time, so that reading the clock costs nothing
    yield lambda: [np.maximum(small, 0.5) for _ in range(100)], 100


def measure(names=UNITS) -> dict[str, float]:
    """Nanoseconds by name."""
    found = {}
    for name in names:
        prices = [nanoseconds(function, work) for function, work in globals()[name]()]
        found[name] = float(np.exp(np.mean(np.log(prices))))
    return found


def written(file: Path = FILE) -> dict[str, float]:
    """What the file holds now; empty if there is none."""
    scope: dict = {}
    if file.is_file():
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), scope)
    return scope.get("MEASURED", {})


def source(found: dict[str, float], processor: str, others: dict[str, float] | None = None) -> str:
    """The text of calibrated.py; `others` are names that are not measured here."""
    lines = [
        '"""What arithmetic costs, in nanoseconds: measured and written by ``benchmarks/calibrate.py``.',
        "",
        f"Processor: {processor}, one thread. Only the ratios of the numbers matter.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "MEASURED: dict[str, float] = {",
    ]
    lines += [f'    "{name}": {value:.3g},  # {UNITS[name]}' for name, value in found.items()]
    if others:
        lines += ["    # carried over: the script does not measure these"]
        lines += [f'    "{name}": {value!r},' for name, value in others.items()]
    return "\n".join([*lines, "}", ""])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="print what would be written")
    options = parser.parse_args(arguments)
    others = {name: value for name, value in written().items() if name not in UNITS}
    text = source(measure(), machine()["processor"], others)
    print(text)
    if not options.dry_run:
        if not FILE.parent.is_dir():
            sys.exit(f"{FILE.parent} is not there; --dry-run only prints")
        FILE.write_text(text, encoding="utf-8")
        print(f"wrote {FILE}")


if __name__ == "__main__":
    main()
