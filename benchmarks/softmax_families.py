"""Softmax with structure on random data: fenchel (certified) against FISTA and scikit-learn's saga (not certified).

    python benchmarks/softmax_families.py --seeds 0 20                      one line a problem, then the distribution
    python benchmarks/softmax_families.py --seeds 0 20 --save here.json     keep the numbers
    python benchmarks/softmax_families.py --seeds 0 20 --against here.json  compare with numbers that were kept

A seed draws classes (3 to 30), rows and columns (n/p from 0.1 to 50), the kind of data, penalty (l1, l2,1 across the
classes, overlapping groups or a graph of features within each class) and alpha (1/3 to 1/100 of the largest). FISTA
has backtracking, restarts and the best prox, is judged by the true optimum and pays for no proof; saga, for l1 alone,
comes to the goal as the better of several tolerances. fenchel pays for everything. Times are processor seconds of one
thread, medians. Seeds below 1000 are for choosing constants.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import math
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rivals import Duel, main

import fenchel as fl
from fenchel.penalties import MultiTaskLasso

GOALS = (1e-3, 1e-6)
LIMIT = 30.0  # seconds of one run
ENTRIES = 3_000_000  # of the data times the classes, at the most; larger: a longer benchmark
KINDS = ("l1", "l2,1", "overlapping groups", "graph")
STOPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # tolerances that saga is given


def draw(seed: int):
    """A function that makes the problem of a seed anew, the kind of its penalty, and what it is."""
    rng = np.random.default_rng([23, seed])
    classes, kind = round(10 ** rng.uniform(math.log10(3), math.log10(30))), KINDS[seed % len(KINDS)]
    p = round(10 ** rng.uniform(1.0, 2.7))
    n = int(np.clip(p * 10 ** rng.uniform(-1, 1.7), 10 * classes, max(ENTRIES / p / classes, 10 * classes)))
    data = str(rng.choice(["plain", "correlated", "units", "sparse"]))
    X = rng.standard_normal((n, p))
    if data == "correlated":
        rho = rng.uniform(0.5, 0.95)
        for j in range(1, p):
            X[:, j] = rho * X[:, j - 1] + math.sqrt(1 - rho * rho) * X[:, j]
    elif data == "units":
        X = X * 10 ** rng.uniform(-0.5, 0.5, p) + rng.standard_normal(p)
    elif data == "sparse":
        X *= rng.random((n, p)) < max(3 / p, 0.05)
    W = rng.standard_normal((p, classes)) * (rng.random((p, 1)) < max(0.1, 3 / p))
    score = X @ W
    score *= rng.choice([1.0, 3.0]) / max(score.std(), 1e-12)
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    y[:classes] = np.arange(classes)
    penalty = _penalty(kind, p, classes, rng)
    given = {"loss": "multinomial", "penalty": penalty, "fit_intercept": bool(rng.random() < 0.5)}
    share = 10 ** -rng.uniform(math.log10(3), 2)
    alpha = share * fl.Problem(X, y, **given).alpha_max()
    what = f"{n} x {p} {data}, {classes} classes, {kind}, 1/{1 / share:.0f}"
    return (
        (lambda: fl.Problem(X, y, alpha=alpha, **given)),
        kind,
        what + (", intercept" if given["fit_intercept"] else ""),
    )


def _penalty(kind: str, p: int, classes: int, rng) -> fl.Penalty:
    if kind == "l1":
        return fl.PerOutput(fl.L1(), classes)
    if kind == "l2,1":
        return MultiTaskLasso(classes)
    if kind == "graph":
        edges = np.sort(rng.integers(0, p, (2 * p, 2)), axis=1)
        edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
        return fl.PerOutput(0.3 * fl.L1() + fl.L1() @ fl.Incidence(edges, p), classes)
    size = int(rng.integers(4, 12))
    starts = range(0, max(p - 2, 1), max(size - size // 3, 1))
    return fl.PerOutput(fl.GroupL2([np.arange(first, min(first + size, p)) for first in starts]), classes)


def fista(problem: fl.Problem, goals, limit: float) -> list[float]:
    """Seconds until the objective is at most each of the goals; infinite beyond the limit."""
    from fenchel.engine.whole import Products
    from fenchel.kernels.prox import structured_prox
    from fenchel.proximal import StructuredProx

    prox, info, products, clock = StructuredProx(problem), np.zeros(4), Products(problem), time.process_time
    began, found, looking, n = clock(), [], 0.0, problem.n
    L = 0.05 * float((problem.data.mean_squares).sum() + 1.0)
    w = ahead = np.zeros(problem.size)
    scores = ahead_scores = np.zeros(problem.visits)
    theta, u, slope, none = 1.0, np.zeros(problem.d), np.zeros(problem.d), np.zeros(0)
    while len(found) < len(goals) and clock() - began - looking < limit:
        value, x, _ = problem.loss.sums(ahead_scores, problem.target, none)
        g = products.sums(x)
        while True:
            new = np.empty_like(w)
            structured_prox(ahead - g / L, 1 / L, slope, new, u, prox.solver, (1e-10, 0.0, 30), info)
            move, new_scores = new - ahead, products.scores(new)
            reached = problem.loss.sums(new_scores, problem.target, none)[0]
            if (reached - value) / n <= g @ move + 0.5 * L * (move @ move) + 1e-14 * abs(value) / n:
                break
            L *= 2
        step = new - w
        theta = 1.0 if float((ahead - new) @ step) > 0 else theta
        following = 0.5 * (1 + math.sqrt(1 + 4 * theta * theta))
        share = (theta - 1) / following
        ahead, ahead_scores = new + share * step, new_scores + share * (new_scores - scores)
        w, scores, theta, L = new, new_scores, following, 0.98 * L
        look = clock()  # nobody pays for the judge
        objective = reached / n + problem.penalty_value(problem.penalised(w))
        while len(found) < len(goals) and objective <= goals[len(found)]:
            found.append(look - began - looking)
        looking += clock() - look
    return found + [math.inf] * (len(goals) - len(found))


def saga(problem: fl.Problem, goals, limit: float) -> list[float]:
    """The same for scikit-learn's saga, as the fastest run that gets there."""
    from sklearn.linear_model import LogisticRegression

    warnings.simplefilter("ignore")
    X, y = problem.data.dense, problem.target.reshape(problem.n, -1).argmax(axis=1)
    found = [math.inf] * len(goals)
    for stop in STOPS:
        began = time.process_time()
        model = LogisticRegression(
            penalty="l1", C=1 / (problem.n * problem.alpha), solver="saga", tol=stop, max_iter=20_000, random_state=0,
            fit_intercept=problem.fit_intercept,
        ).fit(X, y)  # fmt: skip
        seconds = time.process_time() - began
        coef, intercept = model.coef_, model.intercept_
        if len(coef) == 1:
            coef, intercept = np.vstack([-coef, coef]) / 2, np.array([-intercept[0], intercept[0]]) / 2
        objective = problem.primal_at(np.column_stack([coef, intercept]).ravel())
        found = [min(best, seconds) if objective <= goal else best for best, goal in zip(found, goals, strict=True)]
        if math.isfinite(found[-1]) or seconds > limit:
            break
    return found


def duel(seed: int) -> Duel:
    make, kind, what = draw(seed)

    def rivals(goals: Sequence[float]) -> dict[str, Sequence[float]]:
        runs = {"FISTA": fista(make(), goals, LIMIT)}
        return runs | ({"saga": saga(make(), goals, LIMIT)} if kind == "l1" else {})

    return Duel(what, make, rivals)


if __name__ == "__main__":
    main(__doc__, duel, GOALS, LIMIT, rival="best peer", seeds=(0, 20), repetitions=2)
