"""Penalties behind a map, on random data: fenchel (certified) against a lean FISTA with the best prox (not certified).

    python benchmarks/structured.py --seeds 0 40                     one line a problem, then the distribution
    python benchmarks/structured.py --seeds 0 40 --save here.json    keep the numbers
    python benchmarks/structured.py --seeds 0 40 --against here.json  compare with numbers that were kept

A seed draws rows and columns (n/p from 0.1 to 50), the kind of data, loss, penalty (chains, grids, graphs, overlapping
groups, trends) and alpha (1/3 to 1/300 of the largest). FISTA begins at zero with backtracking and restarts, is judged
by the true optimum (found beforehand, and kept in the cache folder), and pays neither for a proof nor for preparing
its prox. fenchel pays for everything. Times are processor seconds of one thread, medians.

Seeds below 1000 are for choosing constants; the others are for judging what was chosen.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import dataclasses
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).resolve().parent))

from environments import cache_folder
from rivals import Duel, main

import fenchel as fl
from fenchel.engine.curvatures.step_length import Steps
from fenchel.proximal import StructuredProx

GOALS = (1e-3, 1e-6)  # relative accuracy
EXACT = 1e-9  # relative gap of the answers that FISTA is judged by
ENTRIES = 2_000_000  # of the data, at the most; larger: a longer benchmark
LIMIT = 20.0  # seconds of one run
LOSSES = ("logistic", "squared", "smoothed-hinge", "huber", "poisson")
PENALTIES = ("chain", "grid", "isotropic grid", "graph", "overlapping groups", "trend")
DATA = ("plain", "correlated", "heavy-tailed", "sparse")
ROUNDS, ROUNDS_SWIFT = 30, 100  # of the prox in a step of FISTA, as many as serve it best; the latter on grids


@dataclasses.dataclass
class Drawn:
    """What a seed stands for; `make` makes a problem on which nothing was prepared."""

    seed: int
    X: object
    y: np.ndarray
    loss: str
    penalty: fl.Penalty
    intercept: bool
    alpha: float
    text: str

    def make(self) -> fl.Problem:
        return fl.Problem(
            self.X, self.y, loss=self.loss, penalty=self.penalty, fit_intercept=self.intercept, alpha=self.alpha
        )


def draw(seed: int) -> Drawn:
    """The problem of a seed."""
    rng = np.random.default_rng([7, seed])
    p = round(10 ** rng.uniform(1.5, 2.9))
    kind = str(rng.choice(PENALTIES))
    if "grid" in kind:
        p = max(round(math.sqrt(p)), 4) ** 2
    n = int(np.clip(p * 10 ** rng.uniform(-1, 1.7), 20, ENTRIES / p))
    data, loss = str(rng.choice(DATA)), str(rng.choice(LOSSES))
    X = rng.standard_normal((n, p))
    if data == "correlated":
        rho = rng.uniform(0.5, 0.95)
        for j in range(1, p):
            X[:, j] = rho * X[:, j - 1] + math.sqrt(1 - rho * rho) * X[:, j]
    elif data == "heavy-tailed":
        X *= np.exp(rng.standard_normal((n, 1)))
    elif data == "sparse":
        X *= rng.random((n, p)) < max(3 / p, 0.03)
    segments = np.repeat(rng.standard_normal(8) * (rng.random(8) < 0.6), math.ceil(p / 8))[:p]
    score = X @ segments
    score = score / max(score.std(), 1e-12)
    if loss in ("logistic", "smoothed-hinge"):
        y = np.where(score + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
    elif loss == "poisson":
        y = rng.poisson(np.exp(np.clip(score, -3, 3))).astype(float)
    else:
        y = score + 0.3 * rng.standard_normal(n)
    penalty, intercept = _penalty(kind, p, rng), bool(rng.random() < 0.3)
    share = 10 ** -rng.uniform(math.log10(3), math.log10(300))
    X = sp.csr_array(X) if data == "sparse" else X
    largest = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=intercept).alpha_max()
    what = f"{n} x {p} {data}, {loss}, {kind}, 1/{1 / share:.0f}{', intercept' if intercept else ''}"
    return Drawn(seed, X, y, loss, penalty, intercept, share * largest, what)


def _penalty(kind, p, rng):
    side = round(math.sqrt(p))
    if kind == "chain":
        return fl.L1() @ fl.Difference(p) + rng.choice([0.1, 1.0]) * fl.L1()
    if kind == "grid":
        return fl.L1() @ fl.Gradient((side, side)) + 0.2 * fl.L1()
    if kind == "isotropic grid":
        grid = fl.Gradient((side, side))
        return fl.GroupL2(grid.cells) @ grid + 0.2 * fl.L1()
    if kind == "graph":
        edges = np.sort(rng.integers(0, p, (2 * p, 2)), axis=1)
        edges = np.unique(edges[edges[:, 0] < edges[:, 1]], axis=0)
        return fl.L1() + fl.L1() @ fl.Incidence(edges, p)
    if kind == "trend":
        return fl.L1() @ fl.Difference(p, order=2) + 0.1 * fl.L1()
    size = int(rng.integers(5, 20))
    starts = range(0, max(p - 2, 1), max(size - size // 3, 1))
    return fl.GroupL2([np.arange(first, min(first + size, p)) for first in starts])


# -- FISTA ------------------------------------------------------------------------------------------------------------


class Fista:
    """Accelerated proximal gradients with backtracking and restarts (Beck and Teboulle, 2009; O'Donoghue and Candès,
    2015), with the whole prox of :mod:`fenchel.proximal`; what the prox needs is prepared
    before the clock starts."""

    def __init__(self, problem: fl.Problem) -> None:
        self.problem, self.steps = problem, Steps(problem)
        self.steps.prox = StructuredProx(problem)  # its rounds are fewer, and nobody pays for its preparation
        self.taken = 0  # steps, by the last run
        self.swift = self.steps.lattice is not None
        problem.map_slots, problem.entry_slots  # noqa: B018
        X = sp.csr_matrix(problem.data.arrays, problem.data.filled().shape) if problem.data.sparse else None
        self.X = problem.data.arrays[0] if X is None else X
        self.XT = self.X.T if X is None else X.T.tocsr()

    def run(self, goals, limit: float) -> list[float]:
        """Seconds until the objective is at most each of the goals, which fall; infinite beyond the limit."""
        problem, n, p, clock = self.problem, self.problem.n, self.problem.p, time.process_time
        target, weight, total = problem.target, problem.weight, problem.loss.sums
        began, found, looking = clock(), [], 0.0
        v = np.random.default_rng(0).standard_normal(p)
        for _ in range(8):
            v /= np.linalg.norm(v)
            v = self.XT @ (self.X @ v)
        curvature = 0.5 * (problem.loss.smoothness or 0.1) * float(np.linalg.norm(v)) / n
        w = ahead = np.zeros(p + 1)
        scores = ahead_scores = np.zeros(n)
        slope, theta, share, moved, info = np.zeros(problem.d), 1.0, 0.0, None, np.zeros(4)
        before, rounds = slope, ROUNDS_SWIFT if self.swift else ROUNDS
        self.taken = 0
        while len(found) < len(goals) and clock() - began - looking < limit:
            self.taken += 1
            value, x, _ = total(ahead_scores, target, weight)
            gradient = np.append(self.XT @ x, x.sum() if problem.fit_intercept else 0.0) / n
            start, before = slope + (share if self.swift else 0.0) * (slope - before), slope
            while True:
                slope = start.copy()
                new = self.steps.go(ahead - gradient / curvature, 1 / curvature, slope, moved, info, rounds)
                move = new - ahead
                new_scores = self.X @ new[:-1] + new[-1]
                reached, square = total(new_scores, target, weight)[0], float(move @ move)
                rise = (reached - value) / n - gradient @ move
                if rise <= 0.5 * curvature * square * (1 + 1e-9) + 1e-15 * abs(value) / n:
                    break
                curvature *= min(max(1.5, 2 * rise / (curvature * square)), 20.0)
            step = new - w
            moved = float(step @ step)
            if float((ahead - new) @ step) > 0:
                theta = 1.0
            following = 0.5 * (1 + math.sqrt(1 + 4 * theta * theta))
            share = (theta - 1) / following
            ahead, ahead_scores = new + share * step, new_scores + share * (new_scores - scores)
            w, scores, theta, curvature = new, new_scores, following, 0.98 * curvature
            look = clock()  # nobody pays for the judge
            objective = reached / n + problem.penalty_value(problem.penalised(w))
            while len(found) < len(goals) and objective <= goals[len(found)]:
                found.append(look - began - looking)
            looking += clock() - look
        return found + [math.inf] * (len(goals) - len(found))


# -- the judge --------------------------------------------------------------------------------------------------------


def exact(drawn: Drawn) -> float:
    """The optimum, from the cache folder if it was found before."""
    kept = cache_folder() / "structured" / f"{drawn.seed}.json"
    if kept.exists():
        known = json.loads(kept.read_text())
        if known["text"] == drawn.text:
            return known["optimum"]
    result = fl.solve(drawn.make(), tol=EXACT, time_limit=120.0)
    if result.relative_gap > 1e-7:
        print(f"seed {drawn.seed}: the optimum is known to {result.relative_gap:.1e} only", file=sys.stderr)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps({"text": drawn.text, "optimum": result.primal}))
    return result.primal


def duel(seed: int) -> Duel:
    """The problem of a seed, and FISTA on it, of which the first run compiles."""
    drawn = draw(seed)

    def fista(goals: Sequence[float]) -> dict[str, Sequence[float]]:
        return {"FISTA": np.median([Fista(drawn.make()).run(goals, LIMIT) for _ in range(4)][1:], axis=0).tolist()}

    return Duel(drawn.text, drawn.make, fista, lambda: exact(drawn))


if __name__ == "__main__":
    main(__doc__, duel, GOALS, LIMIT, seeds=(0, 30))
