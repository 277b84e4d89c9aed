"""Softmax with l1 on generated data: fenchel to a certified gap, scikit-learn's saga to its default tolerance.

    python benchmarks/softmax.py                                  26 classes, 20,000 rows, 500 features
    python benchmarks/softmax.py --rows 2000 --features 50 --classes 5

Every class has 15 features that count (all, where there are fewer); labels are drawn from the softmax. Both run one
after the other in one process, in processor seconds of one thread, and the line at the end is their ratio. saga proves
nothing: its objective is shown beside the interval that fenchel proves for the optimum.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import time
import warnings

import numpy as np

import fenchel as fl

COUNT = 15  # features that a class is made of
WARM = 300  # rows of a run before the clock, for which kernels are loaded


def generated(rows: int, features: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """X and class numbers."""
    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((rows, features)), np.zeros((features, classes))
    count = min(COUNT, features)
    for k in range(classes):
        W[rng.choice(features, count, replace=False), k] = rng.standard_normal(count)
    return X, (X @ W + rng.gumbel(size=(rows, classes))).argmax(axis=1)


def own(X: np.ndarray, y: np.ndarray, alpha: float, tol: float) -> tuple[float, fl.Result]:
    """Processor seconds of fenchel, and its result; making the problem counts."""
    began = time.process_time()
    penalty = fl.PerOutput(fl.L1(), int(y.max()) + 1)
    problem = fl.Problem(X, y, loss="multinomial", penalty=penalty, alpha=alpha, fit_intercept=True)
    result = fl.solve(problem, tol=tol)
    return time.process_time() - began, result


def saga(X: np.ndarray, y: np.ndarray, alpha: float) -> tuple[float, float, int]:
    """Processor seconds of scikit-learn's saga, its objective, and its passes."""
    from sklearn.linear_model import LogisticRegression

    # scikit-learn 1.8 says it by l1_ratio, and warns of what came before
    warnings.simplefilter("ignore")
    began = time.process_time()
    model = LogisticRegression(penalty="l1", C=1 / (len(y) * alpha), solver="saga", random_state=0).fit(X, y)
    seconds = time.process_time() - began
    loss = fl.Multinomial(len(model.classes_))
    losses = loss.value(model.decision_function(X), np.eye(len(model.classes_))[y])
    return seconds, float(losses.sum()) / len(y) + alpha * float(np.abs(model.coef_).sum()), int(model.n_iter_[0])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=500)
    parser.add_argument("--classes", type=int, default=26)
    parser.add_argument("--alpha", type=float, default=1e-3)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args(arguments)
    X, y = generated(chosen.rows, chosen.features, chosen.classes, chosen.seed)
    own(X[:WARM], np.unique(y[:WARM], return_inverse=True)[1], 0.1, 1e-2)
    mine, result = own(X, y, chosen.alpha, chosen.tol)
    theirs, objective, passes = saga(X, y, chosen.alpha)
    print(f"fenchel  {mine:8.2f} s  objective {result.primal:.9g}, optimum at least {result.dual:.9g} (relative gap "
          f"{result.relative_gap:.1e}), {result.epochs} epochs, {result.status}")  # fmt: skip
    print(f"saga     {theirs:8.2f} s  objective {objective:.9g}, {passes} epochs, nothing proven")
    print(f"ratio    {mine / theirs:8.2f}    of fenchel's time to saga's")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
