"""Rows in chunks against dask-glm (the engine of dask-ml) and scikit-learn's `SGDClassifier.partial_fit`.

    python benchmarks/scale/peers.py --gb 0.2

dask-glm may live in an environment of its own, which need not have fenchel: `--peers fenchel sgd` in the one prints the
optimum, and `--peers dask-glm --optimum NUMBER` in the other goes by it.

Logistic loss with an l1 penalty, the one that all of them know, without an intercept. Everything runs in one process
and one thread, on the same chunks, and processor time is what counts. The answer that is certified to 1e-9 says how far
each of them is above the optimum when it ends.
"""

from __future__ import annotations

import json
import time
import warnings
from pathlib import Path

import numpy as np
from common import arguments, dense_rows

ALPHA = 0.005
CLOSE = (1e-2, 1e-3, 1e-6)  # above the optimum, relative to it


def main() -> None:
    parser = arguments(__doc__.splitlines()[0], gb=0.1, memory="1GB")
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time that each of the others may take")
    parser.add_argument("--peers", nargs="+", default=["fenchel", "sgd", "dask-glm"])
    parser.add_argument("--optimum", type=float, help="of the objective, as an earlier run has printed it")
    given = parser.parse_args()
    files = dense_rows(Path(given.folder).resolve(), given.gb, given.features)
    X, y = np.load(files[0]), np.load(files[1]).astype(float)
    best = optimum(X, y) if given.optimum is None else given.optimum

    def above(w: np.ndarray) -> float:
        loss = np.logaddexp(0.0, -y * (X @ np.asarray(w, dtype=float))).mean()
        return (loss + ALPHA * np.abs(w).sum()) / best - 1

    print(json.dumps({"rows": X.shape, "optimum": best}))
    if "fenchel" in given.peers:
        ours(files, given.memory, above)
    if "sgd" in given.peers:
        sgd(X, y, above, given.seconds)
    if "dask-glm" in given.peers:
        dask_glm(X, y, above, given.seconds)


def optimum(X: np.ndarray, y: np.ndarray) -> float:
    import fenchel as fl

    return float(fl.solve(fl.Problem(X, y, loss="logistic", penalty=fl.L1(), alpha=ALPHA), tol=1e-9).primal)


def ours(files: tuple[Path, Path], memory: str, above: object) -> None:
    """Rows that are read anew for every round, and rows that all fit."""
    import fenchel as fl

    for name, room in (("fenchel", "60MB"), (f"fenchel, {memory}", memory)):
        for tol in (CLOSE[0], *CLOSE):  # the first one compiles what is still to be compiled
            began = time.process_time()
            rows = fl.open_data(files[0], target=str(files[1]), memory=room)
            result = fl.solve(fl.Problem(rows, loss="logistic", penalty=fl.L1(), alpha=ALPHA), tol=tol)
            tell(name, tol, time.process_time() - began, above(result.coef), passes=result.epochs)


def tell(name: str, setting: object, seconds: float, above: float, **more: float) -> None:
    print(json.dumps({"what": name, "setting": setting, "seconds": round(seconds, 2), "above": float(f"{above:.2e}"),
                      **more}), flush=True)  # fmt: skip


def sgd(X: np.ndarray, y: np.ndarray, above: object, budget: float) -> None:
    """Passes over chunks until the time is over; the objective is not counted."""
    from sklearn.linear_model import SGDClassifier

    for averaged in (False, True):
        model = SGDClassifier(loss="log_loss", penalty="l1", alpha=ALPHA, fit_intercept=False, average=averaged,
                              random_state=0)  # fmt: skip
        spent, left, number = 0.0, list(CLOSE), 0
        while spent < budget and left:
            began = time.process_time()
            for first in range(0, len(X), 20_000):
                model.partial_fit(X[first : first + 20_000], y[first : first + 20_000], classes=[-1.0, 1.0])
            spent += time.process_time() - began
            number += 1
            far = above(model.coef_.ravel())
            while left and far <= left[0]:
                tell(f"SGD, averaged {averaged}", left.pop(0), spent, far, passes=number)
        if left:
            tell(f"SGD, averaged {averaged}", "time is over", spent, far, passes=number)


def dask_glm(X: np.ndarray, y: np.ndarray, above: object, budget: float) -> None:
    """ADMM and proximal gradients, for more and more iterations until the time is over."""
    import dask
    import dask.array as da
    from dask_glm import algorithms

    chunks = (max(len(X) // 16, 1), X.shape[1])
    rows, target = da.from_array(X, chunks=chunks), da.from_array((y > 0).astype(float), chunks=chunks[0])
    for name, options in (("admm", {"abstol": 1e-12, "reltol": 1e-12}), ("proximal_grad", {"tol": 1e-14})):
        spent, left, count = 0.0, list(CLOSE), 5
        while spent < budget and left:
            began = time.process_time()
            with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                w = getattr(algorithms, name)(rows, target, regularizer="l1", lamduh=len(X) * ALPHA, max_iter=count,
                                              **options)  # fmt: skip
            spent, far = time.process_time() - began, above(w)
            while left and far <= left[0]:
                tell(f"dask-glm {name}", left.pop(0), spent, far, iterations=count)
            count *= 3
        if left:
            tell(f"dask-glm {name}", "time is over", spent, far, iterations=count // 3)


if __name__ == "__main__":
    main()
