"""Hostile random problems: every loss with every penalty, on data that nobody would choose.

    python benchmarks/hostile.py --cases 500 --first 0
    python benchmarks/hostile.py --seeds 17 42 --judge 1

For every seed a loss, a penalty of the catalogue (or of what it is made of, with a map), a kind of data, a shape from
one row to p >> n and n >> p, weights with zeros, an intercept and alpha from 1e-4 to 10 times alpha_max are drawn. Each
problem is solved as a user would, within --seconds. The tables count by loss, penalty and data what did not converge,
what broke, and what warned; the worst come first. A share of the problems (--judge) is solved by a conic solver as
well, and both bounds are compared with its optimum.

A problem whose infimum no point attains cannot converge; where the result says so it is counted apart ("no answer").
So is one whose optimum is zero as far as rounding lets anybody see ("rounding": the run says that it stalled, and the
proven gap is below 1e-12 of the objective at zero).
The exit status is 1 where something broke, warned or had a false bound.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import argparse
import dataclasses
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import fenchel as fl
from fenchel.losses import LOSSES

DATA = ("plain", "correlated", "sparse", "heavy-tailed", "degenerate", "rare")
MOST = 300  # rows or columns
ENTRIES = 20_000  # of the data, at the most
COEFFICIENTS = 900  # of all outputs together, at the most
SHARES = 1e-4, 10.0  # of alpha_max
UNITS = 0.4  # share of the problems whose columns are in units from 1e-3 to 1e3
CONIC = 1e-5  # relative error of a conic solver on such problems, which it does not tell; smaller: false alarms
ROUNDING = 1e-12  # of the objective at zero: the gap of a run that may say that it stalled


@dataclasses.dataclass
class Hostile:
    """A problem and what was drawn for it; `share` is alpha in units of alpha_max."""

    seed: int
    data: str
    loss: str
    penalty: str
    share: float
    problem: fl.Problem

    def __str__(self) -> str:
        problem = self.problem
        more = [f"{problem.vectors} outputs"] if problem.vectors > 1 else []
        more += ["intercept"] * problem.fit_intercept + ["weights"] * bool(problem.weight.size)
        what = f"{problem.n} x {problem.p} {self.data}, {self.loss}, {self.penalty}, alpha {self.share:.1e}"
        return f"seed {self.seed}: " + ", ".join([what, *more])


# -- penalties --------------------------------------------------------------------------------------


def _sets(rng: np.random.Generator, p: int, *, overlap: bool, left_out: bool = False) -> list[np.ndarray]:
    """Groups of features in random order."""
    order = rng.permutation(p)
    count = int(rng.integers(1, max(2, p // 2) + 1)) if p > 1 else 1
    groups = [part for part in np.array_split(order, min(count, 60)) if part.size]
    if overlap:
        groups += [rng.choice(p, int(rng.integers(1, min(p, 12) + 1)), replace=False) for _ in range(len(groups) // 2)]
    if left_out and len(groups) > 1:
        groups = groups[1:]
    return [np.sort(group) for group in groups]


def _nested(rng: np.random.Generator, p: int) -> list[np.ndarray]:
    """Groups of which any two are nested or apart."""
    groups, stack = [], [np.arange(p)]
    while stack and len(groups) < 40:
        group = stack.pop(0)
        groups.append(group)
        if group.size > 1:
            parts = np.array_split(group, int(rng.integers(2, 4)))
            stack += [part for part in parts if part.size and rng.random() < 0.8]
    return groups


def _edges(rng: np.random.Generator, p: int) -> np.ndarray:
    """A random graph; some edges with weights below zero."""
    ends = np.sort(rng.integers(0, p, (2 * p + 1, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    if not len(ends):
        ends = np.array([[0, 1]])
    weights = np.where(rng.random(len(ends)) < 0.2, -1.0, 1.0) * rng.exponential(size=len(ends))
    return np.column_stack([ends, weights])


def _matrix(rng: np.random.Generator, p: int) -> np.ndarray:
    """A map with an empty row and rows of very different length."""
    rows = int(rng.integers(1, min(p, 40) + 2))
    B = rng.standard_normal((rows, p)) * (rng.random((rows, p)) < 0.3) * 10.0 ** rng.uniform(-2, 2, (rows, 1))
    B[rng.integers(0, rows)] = 0.0
    return B


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a penalty is drawn for p features (and, where it takes them, outputs); `factors` is how many sizes p has."""

    make: Callable[..., fl.Penalty]
    least: int = 1
    factors: int = 1
    outputs: bool = False


PENALTIES = {
    "lasso": Recipe(lambda rng, p: fl.Lasso()),
    "weighted lasso": Recipe(lambda rng, p: fl.Lasso(rng.choice([0.0, 1.0, 10.0, np.inf], p, p=[0.1, 0.7, 0.1, 0.1]))),
    "elastic-net": Recipe(lambda rng, p: fl.ElasticNet(float(rng.uniform(0, 1)))),
    "ridge": Recipe(lambda rng, p: fl.Ridge()),
    "group-lasso": Recipe(lambda rng, p: fl.GroupLasso(_sets(rng, p, overlap=False, left_out=rng.random() < 0.3))),
    "overlapping groups": Recipe(lambda rng, p: fl.GroupLasso(_sets(rng, p, overlap=True))),
    "latent-group-lasso": Recipe(lambda rng, p: fl.LatentGroupLasso(_sets(rng, p, overlap=True))),
    "sparse-group-lasso": Recipe(lambda rng, p: fl.SparseGroupLasso(_sets(rng, p, overlap=rng.random() < 0.5))),
    "tree-groups": Recipe(lambda rng, p: fl.TreeGroups(_nested(rng, p))),
    "group-max": Recipe(lambda rng, p: fl.GroupMax(_sets(rng, p, overlap=rng.random() < 0.5))),
    "exclusive-lasso": Recipe(lambda rng, p: fl.ExclusiveLasso(_sets(rng, p, overlap=rng.random() < 0.5))),
    "fused-lasso": Recipe(lambda rng, p: fl.FusedLasso(float(rng.choice([0.0, 0.1, 0.5]))), least=2),
    "trend-filter": Recipe(lambda rng, p: fl.TrendFilter(int(rng.integers(2, 4))), least=4),
    "total-variation": Recipe(
        lambda rng, p, shape: fl.TotalVariation(shape, isotropic=bool(rng.random() < 0.6), l1_ratio=0.2),
        least=2, factors=2,
    ),
    "graph-fused": Recipe(lambda rng, p: fl.GraphFused(_edges(rng, p), float(rng.choice([0.0, 0.5]))), least=2),
    "low-rank": Recipe(lambda rng, p, shape: fl.LowRank(shape), factors=2),
    "tensor-trace-norm": Recipe(lambda rng, p, shape: fl.TensorTraceNorm(shape), factors=3),
    "multi-task-lasso": Recipe(lambda rng, p, outputs: fl.MultiTaskLasso(outputs), outputs=True),
    "multi-task-low-rank": Recipe(lambda rng, p, outputs: fl.MultiTaskLowRank(outputs), outputs=True),
    "per-output": Recipe(
        lambda rng, p, outputs: fl.PerOutput(fl.FusedLasso(0.5) if p > 1 else fl.L1(), outputs), outputs=True
    ),
    "slope": Recipe(lambda rng, p: fl.Slope()),
    "oscar": Recipe(lambda rng, p: fl.Oscar(1.0, float(10.0 ** rng.uniform(-3, 0)))),
    "monotone": Recipe(lambda rng, p: fl.Monotone(bool(rng.random() < 0.5)), least=2),
    "non-negative": Recipe(lambda rng, p: fl.NonNegative() + float(rng.random() < 0.5) * fl.L1()),
    "box": Recipe(lambda rng, p: fl.Box(-rng.exponential(size=p), rng.exponential(size=p)) + fl.L1()),
    "unpenalised": Recipe(lambda rng, p: fl.Unpenalised(fl.L1(), [int(rng.integers(p))]), least=2),
    "matrix": Recipe(lambda rng, p: fl.L1() @ fl.Matrix(_matrix(rng, p)) + 0.1 * fl.L1(), least=2),
    "trace norm and l1": Recipe(lambda rng, p, shape: fl.LowRank(shape) + 0.5 * fl.L1(), factors=2),
}  # fmt: skip


# -- data -------------------------------------------------------------------------------------------


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    """Rows and columns, from one to many of each."""
    n, p = (round(float(np.exp(rng.uniform(0, np.log(MOST))))) for _ in range(2))
    if rng.random() < 0.5:  # tiny ones are few
        n, p = max(n, 12), max(p, 5)
    while n * p > ENTRIES:
        n, p = (n * 2 // 3, p) if n > p else (n, p * 2 // 3)
    return n, p


def _factors(rng: np.random.Generator, p: int, count: int) -> tuple[int, ...]:
    """So many whole numbers whose product is about p."""
    sizes, left = [], float(p)
    for k in range(count - 1):
        sizes.append(max(1, round(left ** (rng.uniform(0.5, 1.5) / (count - k)))))
        left /= sizes[-1]
    return (*sizes, max(1, round(left)))


def _design(rng: np.random.Generator, n: int, p: int, kind: str) -> np.ndarray:
    X = rng.standard_normal((n, p))
    if kind == "correlated":
        X = 0.05 * X + np.cumsum(rng.standard_normal((n, p)), axis=1) / np.sqrt(p) + rng.standard_normal((n, 1))
    elif kind == "sparse":
        X *= rng.random((n, p)) < max(2 / p, 0.05)
    elif kind == "heavy-tailed":
        X *= np.exp(1.5 * rng.standard_normal((n, 1))) * (1 + rng.standard_t(2, (n, p)) ** 2) ** 0.25
    elif kind == "degenerate":
        some = rng.random(p)
        X[:, some < 0.2] = 0.0
        X[:, some > 0.8] = rng.uniform(-2, 2)
        X[:, rng.random(p) < 0.3] = X[:, :1]
    return X


def _targets(rng: np.random.Generator, loss: str, score: np.ndarray, kind: str) -> np.ndarray:
    """Targets for scores of about unit size, (n,) or (n, outputs)."""
    noise = rng.standard_normal(score.shape)
    if LOSSES[loss].classification:
        y = np.where(score + rng.choice([0.0, 0.5]) * noise > (2.0 if kind == "rare" else 0.0), 1.0, -1.0)
        table = y.reshape(len(y), -1)
        for k in range(table.shape[1]):  # both classes are there
            if np.all(table[:, k] == table[0, k]):
                table[rng.integers(len(y)), k] *= -1
        return y
    if loss == "poisson":
        return rng.poisson(np.exp(np.clip(score - (3.0 if kind == "rare" else 0.0), -8, 3))).astype(float)
    y = score + 0.3 * noise
    if kind == "rare":
        y *= rng.random(y.shape) < 0.1
    if kind == "heavy-tailed":
        y = y * np.exp(rng.standard_normal(y.shape))
    return y


def make(seed: int, loss: str | None = None, penalty: str | None = None) -> Hostile:
    """The problem of a seed; loss and penalty may be chosen."""
    rng = np.random.default_rng([20, seed])
    loss = str(rng.choice(list(LOSSES))) if loss is None else loss
    penalty = str(rng.choice(list(PENALTIES))) if penalty is None else penalty
    kind, recipe = str(rng.choice(DATA)), PENALTIES[penalty]
    n, p = _shape(rng)
    n, p = max(n, 2 if LOSSES[loss].classification else 1), max(p, recipe.least)
    more: tuple = ()
    if recipe.factors > 1:
        shape = _factors(rng, p, recipe.factors)
        shape = (2, *shape[1:]) if np.prod(shape) < recipe.least else shape
        p, more = int(np.prod(shape)), (shape,)
    outputs, task = 1, None
    if recipe.outputs:
        outputs = int(rng.integers(2, 8))
        p = max(1, min(p, COEFFICIENTS // outputs))
        more = (outputs,)
        if n >= 2 * outputs and rng.random() < 0.5:
            task = np.concatenate([np.arange(outputs), rng.integers(0, outputs, n - outputs)])
    X = _design(rng, n, p, kind)
    if rng.random() < UNITS:
        # some of the columns are not centred either
        X = (X + (kind != "sparse") * (rng.random(p) < 0.3)) * 10.0 ** rng.uniform(-3, 3, p)
        kind += ", units"
    w = np.where(rng.random((p, outputs)) < 0.3, rng.standard_normal((p, outputs)), 0.0)
    size = np.sqrt(np.mean(X**2, axis=0))
    score = np.divide(X, size, out=np.zeros_like(X), where=size > 0) @ w
    score = score / max(float(score.std()), 1e-12)
    if task is not None:
        score = score[np.arange(n), task]
    y = _targets(rng, loss, score[:, 0] if score.ndim == 2 and outputs == 1 else score, kind.split(",")[0])
    weight = None
    if rng.random() < 0.3:
        weight = rng.exponential(size=n) * (rng.random(n) < 0.8)
        weight = weight if weight.any() else None
    X = X * (10.0 ** rng.uniform(-2, 2) if rng.random() < 0.5 else 1.0)
    rows = sp.csr_array(X) if kind.startswith("sparse") else X
    problem = fl.Problem(
        rows, y, loss=loss, penalty=recipe.make(rng, p, *more), sample_weight=weight, task=task,
        fit_intercept=bool(rng.random() < 0.5),
    )  # fmt: skip
    share = float(np.exp(rng.uniform(*np.log(SHARES))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            largest = problem.alpha_max()
        except ValueError:  # without an answer at zero there is none
            largest = np.inf
    if not (np.isfinite(largest) and largest > 0):
        largest = float(np.mean(X**2)) or 1.0
    return Hostile(seed, kind, loss, penalty, share, problem.with_alpha(share * largest))


# -- running and judging ----------------------------------------------------------------------------


@dataclasses.dataclass
class Outcome:
    """What became of a problem; `broke` is the traceback of an exception, `false` says which bound is not one."""

    drawn: Hostile | None
    seed: int
    status: str = ""
    gap: float = np.inf
    left: float = np.inf  # of the gap, as a share of the objective at zero
    seconds: float = 0.0
    passes: int = 0
    reason: str = ""
    broke: str = ""
    warned: str = ""
    false: str = ""

    @property
    def verdict(self) -> str:
        if self.broke:
            return "broke"
        if self.status == "converged":
            return "converged"
        if self.status == "stalled" and self.left <= ROUNDING:
            return "rounding"
        return "no answer" if self.status == "no answer" else "unconverged"


def run(seed: int, *, tol: float, seconds: float, judge: bool = False, **chosen: str | None) -> Outcome:
    """Solve the problem of a seed, and note all that is not as it should be."""
    out = Outcome(None, seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        try:
            out.drawn = drawn = make(seed, **chosen)
            began = time.perf_counter()
            result = fl.solve(drawn.problem, tol=tol, time_limit=seconds)
            out.status, out.gap, out.reason = str(result.status.value), result.relative_gap, result.reason
            out.passes = result.epochs
            if not (np.isfinite(result.coef).all() and np.isfinite(result.intercept).all()):
                out.false = "coefficients are not finite"
            size = abs(drawn.problem.objective_at_zero())
            out.left = result.gap / max(size, abs(result.primal), 1e-300)
            trace = 1e-14 * size if np.isfinite(size) else 0.0  # rounding, where the optimum is zero
            if result.dual > result.primal + 1e-12 * abs(result.primal) + trace:
                out.false = f"dual {result.dual!r} above primal {result.primal!r}"
            again = drawn.problem.primal(result.coef, result.intercept)
            if not (again == result.primal or abs(again - result.primal) <= 1e-9 * abs(again) + trace):
                out.false = f"primal {result.primal!r}, but the answer has {again!r}"
        except Exception:
            out.broke = traceback.format_exc()
        out.seconds = time.perf_counter() - began
    out.warned = "; ".join(sorted({f"{one.category.__name__}: {one.message}" for one in caught}))
    if judge and not out.broke and not out.false:
        out.false = judged(drawn.problem, result)
    return out


def judged(problem: fl.Problem, result: fl.Result) -> str:
    """What is false about the bounds by a conic solver's optimum; nothing where it has none (several outputs, penalties
    that ``tests/reference.py`` does not write down, no answer to its tolerance)."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    from reference import reference  # cvxpy takes seconds to import

    if problem.vectors > 1 or problem.penalty is None:
        return ""
    try:
        value = reference(
            problem.data.filled(), problem.target, problem.loss, problem.penalty, problem.alpha,
            problem.weight if problem.weight.size else None, problem.fit_intercept,
        )[0]  # fmt: skip
    except Exception:  # conic solvers fail in many ways, which say nothing of ours
        return ""
    slack = CONIC * max(abs(value), 1e-3 * abs(problem.objective_at_zero()))
    if result.dual > value + slack:
        return f"dual {result.dual!r} above the optimum {value!r}"
    if result.primal < value - slack:
        return f"primal {result.primal!r} below the optimum {value!r}"
    return ""


def table(outcomes: list[Outcome]) -> list[str]:
    """Counts by loss, penalty and data, the worst first."""
    verdicts = ("unconverged", "broke", "no answer", "rounding")
    lines = [
        f"{'':24}{'problems':>10}" + "".join(f"{name:>13}" for name in verdicts) + f"{'median s':>10}{'most s':>8}"
    ]
    drawn = [one for one in outcomes if one.drawn is not None]
    for key in ("loss", "penalty", "data", None):
        rows = []
        for kind in sorted({str(getattr(one.drawn, key)) for one in drawn}) if key else ["all"]:
            some = [one for one in drawn if key is None or getattr(one.drawn, key) == kind]
            counts = [sum(one.verdict == name for one in some) for name in verdicts]
            seconds = [one.seconds for one in some]
            line = f"{kind:24}{len(some):10d}" + "".join(f"{count:13d}" for count in counts)
            rows.append((-(counts[0] + counts[1]), line + f"{np.median(seconds):10.3f}{max(seconds):8.2f}"))
        lines += [line for _, line in sorted(rows)] + [""]
    return lines


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, nargs="+")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--judge", type=float, default=0.0, help="share of the problems that a conic solver checks")
    parser.add_argument("--loss", choices=list(LOSSES))
    parser.add_argument("--penalty", choices=list(PENALTIES))
    arguments = parser.parse_args(argv)
    seeds = arguments.seeds or range(arguments.first, arguments.first + arguments.cases)
    outcomes = []
    for seed in seeds:
        judge = np.random.default_rng([21, seed]).random() < arguments.judge
        one = run(seed, tol=arguments.tol, seconds=arguments.seconds, judge=judge, loss=arguments.loss,
                  penalty=arguments.penalty)  # fmt: skip
        outcomes.append(one)
        if one.verdict != "converged" or one.warned or one.false:
            say = f"{one.status}, gap {one.gap:.1e}, {one.passes} passes, {one.seconds:.1f} s {one.reason}"
            last = one.broke.strip().splitlines()[-1] if one.broke else ""
            print(f"{one.drawn or one.seed}: {say} {one.warned} {one.false} {last}".rstrip(), flush=True)
    print("\n".join(table(outcomes)))
    counted = [one for one in outcomes if one.verdict not in ("no answer", "rounding")]
    bad = sum(one.verdict == "unconverged" for one in counted)
    wrong = [one for one in outcomes if one.broke or one.warned or one.false]
    for broke in sorted({one.broke for one in wrong if one.broke}):
        print(f"\n{broke}")
    share = bad / max(len(counted), 1)
    print(f"{bad} of {len(counted)} problems with an answer in reach did not converge ({share:.1%}); "
          f"{len(wrong)} broke, warned or had a false bound")  # fmt: skip
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
