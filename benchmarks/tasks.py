"""Tasks and outputs on random data: fenchel (certified) against a lean FISTA (not certified).

    python benchmarks/tasks.py --seeds 0 20                      one line a problem, then the distribution
    python benchmarks/tasks.py --seeds 0 20 --save here.json     keep the numbers
    python benchmarks/tasks.py --seeds 0 20 --against here.json  compare with numbers that were kept

A seed draws tasks or outputs, rows, columns (perhaps in units that differ), loss, penalty and alpha (1/3 to 1/300 of
the largest). With the squared loss FISTA works on Gram matrices, for which it pays; otherwise on the data. It has the
largest curvature for free, restarts, is judged by the true optimum, and pays for no proof. fenchel pays for everything.
Times are processor seconds of one thread, medians. Seeds below 1000 are for choosing constants.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rivals import Duel, main

import fenchel as fl
from fenchel.penalties import MultiTaskLasso, MultiTaskLowRank

GOALS = (1e-3, 1e-6)
LIMIT = 10.0  # seconds of one run
LOSSES = ("squared", "squared", "logistic", "huber", "poisson")
ENTRIES = 1_000_000  # of the data times the outputs, at the most
AGAIN = 100_000  # added to the seed of a problem that has no answer: another is drawn


def draw(seed: int):
    """A function that makes the problem of a seed anew, and what it is."""
    rng = np.random.default_rng([11, seed])
    tasks, loss = bool(rng.random() < 0.5), str(rng.choice(LOSSES))
    penalty = str(rng.choice(["l2,1", "l2,1", "trace", "both"]))
    vectors = int(10 ** rng.uniform(0.5, 2.0 if tasks else 1.3))
    p = int(10 ** rng.uniform(0.8, 1.8 if tasks else 2.3))
    n = int(min(p * 10 ** rng.uniform(0.0, 1.5) * (vectors if tasks else 1), ENTRIES / p / (1 if tasks else vectors)))
    n = max(n, 4 * vectors, 20)
    X = rng.standard_normal((n, p))
    data = str(rng.choice(["plain", "correlated", "units"]))
    if data == "correlated":
        rho = rng.uniform(0.5, 0.95)
        for j in range(1, p):
            X[:, j] = rho * X[:, j - 1] + math.sqrt(1 - rho * rho) * X[:, j]
    elif data == "units":
        X = X * 10 ** rng.uniform(-1, 1, p) + rng.standard_normal(p)
    W = rng.standard_normal((vectors, 3)) @ rng.standard_normal((3, p)) * (rng.random(p) < 0.3) / np.sqrt(X.var(axis=0))
    task = np.sort(rng.integers(0, vectors, n)) if tasks else None
    if tasks:
        task[:vectors] = np.arange(vectors)
    score = np.einsum("ij,ij->i", X, W[task]) if tasks else X @ W.T
    score = score / max(score.std(), 1e-12)
    noise = rng.standard_normal(score.shape)
    if loss == "logistic":
        y = np.where(score + 0.5 * noise > 0, 1.0, -1.0)
        y[:2] = (1.0, -1.0) if tasks else np.array([[1.0], [-1.0]])
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(score, -3, 3))).astype(float)
    else:
        y = score + 0.5 * noise
    parts = {"l2,1": MultiTaskLasso(vectors), "trace": MultiTaskLowRank(vectors)}
    function = parts[penalty] if penalty in parts else parts["l2,1"] + 0.3 * parts["trace"]
    given = {"loss": loss, "penalty": function, "fit_intercept": bool(rng.random() < 0.3), "task": task}
    if tasks and given["fit_intercept"] and loss in ("logistic", "poisson"):
        seen = np.bincount(2 * task + (y > 0), minlength=2 * vectors).reshape(-1, 2)
        needed = seen if loss == "logistic" else seen[:, 1:]
        if not needed.all():  # for one class, or counts of zero, no intercept is best
            return draw(seed + AGAIN)
    share = 10 ** -rng.uniform(math.log10(3), math.log10(300))
    alpha = share * fl.Problem(X, y, **given).alpha_max()
    what = f"{n} x {p} {data}, {vectors} {'tasks' if tasks else 'outputs'}, {loss}, {penalty}, 1/{1 / share:.0f}"
    return (lambda: fl.Problem(X, y, alpha=alpha, **given)), what + (", intercept" if given["fit_intercept"] else "")


def fista(problem: fl.Problem, goals, limit: float) -> list[float]:
    """Seconds until the objective is at most each of the goals; infinite beyond the limit."""
    from fenchel.engine.curvatures.blocks import BlockGram
    from fenchel.engine.moments import moments
    from fenchel.engine.whole import Products, visit_weights
    from fenchel.kernels.prox import structured_prox
    from fenchel.prices import PRICES
    from fenchel.proximal import StructuredProx

    prox, info, quadratic = StructuredProx(problem), np.zeros(4), problem.loss.quadratic
    probe = BlockGram(problem, PRICES)
    probe.precise = True
    bend = 1.0 if problem.loss.smoothness is None else problem.loss.smoothness
    probe.make(np.repeat(problem.weight if problem.weight.size else np.ones(problem.n), problem.layout[0]))
    largest = max(float(np.linalg.eigvalsh(matrix)[-1]) for matrix in probe.matrices)
    centre = float(np.max(np.sum(probe.centre**2, axis=1))) if problem.fit_intercept else 0.0
    L, V = bend * (largest if quadratic else largest + centre), problem.vectors
    products, clock = Products(problem), time.process_time
    began, found, looking = clock(), [], 0.0
    made = moments(problem, PRICES) if quadratic else None
    w = ahead = np.zeros(problem.size)
    theta, u = 1.0, np.zeros(problem.d)
    slope = np.zeros(problem.d)
    while len(found) < len(goals) and clock() - began - looking < limit:
        g = np.zeros((V, problem.p + 1))
        if quadratic:
            g[:, :-1] = made.gradient(ahead.reshape(V, -1)[:, :-1])
        else:
            scores = products.scores(ahead)
            value, x, _ = problem.loss.sums(scores, problem.target, visit_weights(problem))
            g = products.sums(x).reshape(V, -1)
        while True:
            new = np.empty_like(w)
            structured_prox(ahead - g.ravel() / L, 1 / L, slope, new, u, prox.solver, (1e-10, 0.0, 30), info)
            if problem.loss.smoothness is not None:
                break
            move = new - ahead  # a loss without a bound on its curvature
            reached = problem.loss.sums(products.scores(new), problem.target, visit_weights(problem))[0]
            if (reached - value) / problem.n <= g.ravel() @ move + 0.5 * L * move @ move + 1e-14 * abs(value):
                break
            L *= 2
        step = new - w
        theta = 1.0 if float((ahead - new) @ step) > 0 else theta
        following = 0.5 * (1 + math.sqrt(1 + 4 * theta * theta))
        ahead, w, theta = new + (theta - 1) / following * step, new, following
        look = clock()  # nobody pays for the judge
        full = made.with_intercepts(w.reshape(V, -1)[:, :-1]) if quadratic else w
        objective = problem.primal_at(full)
        while len(found) < len(goals) and objective <= goals[len(found)]:
            found.append(look - began - looking)
        looking += clock() - look
    return found + [math.inf] * (len(goals) - len(found))


def duel(seed: int) -> Duel:
    make, what = draw(seed)

    def rival(goals: Sequence[float]) -> dict[str, Sequence[float]]:
        return {"FISTA": np.median([fista(make(), goals, LIMIT) for _ in range(2)], axis=0).tolist()}

    return Duel(what, make, rival)


if __name__ == "__main__":
    main(__doc__, duel, GOALS, LIMIT, seeds=(0, 20))
