"""Problems that are meant to go wrong: every loss with every penalty, on data that nobody would choose.

For every seed a loss and its parameters, a penalty of the catalogue (or of what it is made of, with a map), a kind of
data, a shape from one row to p >> n and n >> p, the way it is stored, weights with zeros, offsets, an intercept, and
alpha from 0 to 10 times alpha_max are drawn. Columns may be constant, equal, empty, and in units that differ by 16
decades; rows may have heavy tails, and a class or count may be rare.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from ..._validate import AnyArray, Array, Ints
from ...losses import Loss
from ...maps import Gradient, Matrix, Operator, Stack
from ...penalties import (
    L1,
    Box,
    ElasticNet,
    ExclusiveLasso,
    FusedLasso,
    GraphFused,
    GroupL2,
    GroupLasso,
    GroupMax,
    Lasso,
    LatentGroupLasso,
    LowRank,
    Monotone,
    MultiTaskLasso,
    MultiTaskLowRank,
    NonNegative,
    Oscar,
    Penalty,
    PerOutput,
    Ridge,
    Slope,
    SparseGroupLasso,
    TensorTraceNorm,
    TotalVariation,
    TreeGroups,
    TrendFilter,
    Unpenalised,
)  # fmt: skip
from ...problem import Problem
from .targets import DRAWN, drawn_loss, offsets_of, targets_of

DATA = ("plain", "correlated", "sparse", "heavy-tailed", "degenerate", "rare")
WELL_SCALED = ("plain", "correlated", "sparse")  # data of problems that nobody would call hostile


@dataclasses.dataclass(frozen=True)
class Draws:
    """How large problems are, and how often what happens to them.

    Attributes
    ----------
    most : int
        Rows or columns.
    entries, coefficients : int
        Of the data, and of all outputs together, at the most.
    shares : tuple of float
        Of alpha_max, from and to.
    none, trace : float
        Shares of the problems whose alpha is 0, and a trace of what it would be.
    units : float
        Share of the problems whose columns are in units of their own.
    decades : tuple of float
        That these reach up and down, for three in four of these problems and for the others.
    """

    most: int = 300
    entries: int = 20_000
    coefficients: int = 900
    shares: tuple[float, float] = (1e-4, 10.0)
    none: float = 0.03
    trace: float = 0.03
    units: float = 0.4
    decades: tuple[float, float] = (3.0, 8.0)


DRAWS = Draws()


@dataclasses.dataclass
class Drawn:
    """A problem and what was drawn for it; `share` is alpha in units of alpha_max."""

    seed: int
    data: str
    loss: str
    penalty: str
    share: float
    problem: Problem

    def __str__(self) -> str:
        problem = self.problem
        more = [f"{problem.vectors} outputs"] if problem.vectors > 1 else []
        more += ["intercept"] * problem.fit_intercept + ["weights"] * bool(problem.weight.size)
        more += ["offsets"] * bool(problem.offset.size)
        what = f"{problem.n} x {problem.p} {self.data}, {self.loss}, {self.penalty}, alpha {self.share:.1e}"
        return f"seed {self.seed}: " + ", ".join([what, *more])


# -- penalties --------------------------------------------------------------------------------------


def _sets(rng: np.random.Generator, p: int, *, overlap: bool, left_out: bool = False) -> list[Ints]:
    """Groups of features in random order."""
    order = rng.permutation(p)
    count = int(rng.integers(1, max(2, p // 2) + 1)) if p > 1 else 1
    groups = [part for part in np.array_split(order, min(count, 60)) if part.size]
    if overlap:
        groups += [rng.choice(p, int(rng.integers(1, min(p, 12) + 1)), replace=False) for _ in range(len(groups) // 2)]
    if left_out and len(groups) > 1:
        groups = groups[1:]
    return [np.sort(group) for group in groups]


def _nested(rng: np.random.Generator, p: int) -> list[Ints]:
    """Groups of which any two are nested or apart."""
    groups: list[Ints] = []
    stack = [np.arange(p)]
    while stack and len(groups) < 40:
        group = stack.pop(0)
        groups.append(group)
        if group.size > 1:
            parts = np.array_split(group, int(rng.integers(2, 4)))
            stack += [part for part in parts if part.size and rng.random() < 0.8]
    return groups


def _edges(rng: np.random.Generator, p: int) -> Array:
    """A random graph; some edges with weights below zero."""
    ends = np.sort(rng.integers(0, p, (2 * p + 1, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    if not len(ends):
        ends = np.array([[0, 1]])
    weights = np.where(rng.random(len(ends)) < 0.2, -1.0, 1.0) * rng.exponential(size=len(ends))
    return np.column_stack([ends, weights])


def _matrix(rng: np.random.Generator, p: int) -> Array:
    """A map with an empty row and rows of very different length."""
    rows = int(rng.integers(1, min(p, 40) + 2))
    B = rng.standard_normal((rows, p)) * (rng.random((rows, p)) < 0.3) * 10.0 ** rng.uniform(-2, 2, (rows, 1))
    B[rng.integers(0, rows)] = 0.0
    return B


def _operator(rng: np.random.Generator, p: int) -> Operator:
    """A map that is given by its products: differences around a circle, sums from the left, or anything."""
    kind, step = int(rng.integers(3)), int(rng.integers(1, p))
    B = _matrix(rng, p)
    forth, back = (
        (lambda w: w - np.roll(w, step), lambda u: u - np.roll(u, -step)),
        (lambda w: np.cumsum(w) / p, lambda u: np.cumsum(u[::-1])[::-1] / p),
        (lambda w: B @ w, lambda u: B.T @ u),
    )[kind]
    return Operator(sla.LinearOperator((len(B) if kind == 2 else p, p), matvec=forth, rmatvec=back, dtype=float))


def _extreme(rng: np.random.Generator, count: int) -> Array:
    """Weights of which some are zero, and some infinite."""
    out: Array = rng.choice([0.0, 1.0, 10.0, np.inf], count, p=[0.1, 0.7, 0.1, 0.1])
    return out


def _weighted_groups(rng: np.random.Generator, p: int) -> Penalty:
    groups = _sets(rng, p, overlap=bool(rng.random() < 0.3))
    kind: Any = (GroupLasso, GroupMax, SparseGroupLasso)[int(rng.integers(3))]
    out: Penalty = kind(groups, weights=_extreme(rng, len(groups)), rest="unpenalised")
    return out


def _stacked(rng: np.random.Generator, p: int, shape: tuple[int, ...]) -> Penalty:
    """Groups of the rows of two maps, one under the other, of which most stand in none; and what every feature has."""
    map_ = Stack(Gradient(shape), Matrix(_matrix(rng, p)))
    d = map_.matrix(p).shape[0]
    return GroupL2([[0, 1], [d - 2, d - 1]]) @ map_ + 0.1 * L1()


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How a penalty is drawn for p features (and, where it takes them, outputs); `factors` is how many sizes p has."""

    make: Callable[..., Penalty | None]
    least: int = 1
    factors: int = 1
    outputs: bool = False


PENALTIES = {
    "lasso": Recipe(lambda rng, p: Lasso()),
    "none": Recipe(lambda rng, p: None),
    "weighted lasso": Recipe(lambda rng, p: Lasso(_extreme(rng, p))),
    "weighted groups": Recipe(_weighted_groups),
    "elastic-net": Recipe(lambda rng, p: ElasticNet(float(rng.uniform(0, 1)))),
    "ridge": Recipe(lambda rng, p: Ridge()),
    "group-lasso": Recipe(
        lambda rng, p: GroupLasso(_sets(rng, p, overlap=False, left_out=rng.random() < 0.3), rest="unpenalised")
    ),
    "overlapping groups": Recipe(lambda rng, p: GroupLasso(_sets(rng, p, overlap=True))),
    "latent-group-lasso": Recipe(lambda rng, p: LatentGroupLasso(_sets(rng, p, overlap=True))),
    "sparse-group-lasso": Recipe(lambda rng, p: SparseGroupLasso(_sets(rng, p, overlap=rng.random() < 0.5))),
    "tree-groups": Recipe(lambda rng, p: TreeGroups(_nested(rng, p))),
    "group-max": Recipe(lambda rng, p: GroupMax(_sets(rng, p, overlap=rng.random() < 0.5))),
    "exclusive-lasso": Recipe(lambda rng, p: ExclusiveLasso(_sets(rng, p, overlap=rng.random() < 0.5))),
    "fused-lasso": Recipe(lambda rng, p: FusedLasso(float(rng.choice([0.0, 0.1, 0.5]))), least=2),
    "trend-filter": Recipe(lambda rng, p: TrendFilter(int(rng.integers(2, 4))), least=4),
    "total-variation": Recipe(
        lambda rng, p, shape: TotalVariation(shape, isotropic=bool(rng.random() < 0.6), l1_ratio=0.2),
        least=2, factors=2,
    ),
    "graph-fused": Recipe(lambda rng, p: GraphFused(_edges(rng, p), float(rng.choice([0.0, 0.5]))), least=2),
    "low-rank": Recipe(lambda rng, p, shape: LowRank(shape), factors=2),
    "tensor-trace-norm": Recipe(lambda rng, p, shape: TensorTraceNorm(shape), factors=3),
    "multi-task-lasso": Recipe(lambda rng, p, outputs: MultiTaskLasso(outputs), outputs=True),
    "multi-task-low-rank": Recipe(lambda rng, p, outputs: MultiTaskLowRank(outputs), outputs=True),
    "per-output": Recipe(
        lambda rng, p, outputs: PerOutput(FusedLasso(0.5) if p > 1 else L1(), outputs), outputs=True
    ),
    "slope": Recipe(lambda rng, p: Slope()),
    "oscar": Recipe(lambda rng, p: Oscar(1.0, float(10.0 ** rng.uniform(-3, 0)))),
    "monotone": Recipe(lambda rng, p: Monotone(bool(rng.random() < 0.5)), least=2),
    "non-negative": Recipe(lambda rng, p: NonNegative() + float(rng.random() < 0.5) * L1()),
    "box": Recipe(lambda rng, p: Box(-rng.exponential(size=p), rng.exponential(size=p)) + L1()),
    "unpenalised": Recipe(lambda rng, p: Unpenalised(L1(), [int(rng.integers(p))]), least=2),
    "matrix": Recipe(lambda rng, p: L1() @ Matrix(_matrix(rng, p)) + 0.1 * L1(), least=2),
    "operator": Recipe(lambda rng, p: L1() @ _operator(rng, p) + float(rng.choice([0.0, 0.1])) * L1(), least=2),
    "stack": Recipe(_stacked, least=4, factors=2),
    "trace norm and l1": Recipe(lambda rng, p, shape: LowRank(shape) + 0.5 * L1(), factors=2),
}  # fmt: skip


# -- data -------------------------------------------------------------------------------------------


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    """Rows and columns, from one to many of each."""
    n, p = (round(float(np.exp(rng.uniform(0, np.log(DRAWS.most))))) for _ in range(2))
    if rng.random() < 0.5:  # tiny ones are few
        n, p = max(n, 12), max(p, 5)
    while n * p > DRAWS.entries:
        n, p = (n * 2 // 3, p) if n > p else (n, p * 2 // 3)
    return n, p


def _factors(rng: np.random.Generator, p: int, count: int) -> tuple[int, ...]:
    """So many whole numbers whose product is about p."""
    sizes, left = [], float(p)
    for k in range(count - 1):
        sizes.append(max(1, round(left ** (rng.uniform(0.5, 1.5) / (count - k)))))
        left /= sizes[-1]
    return (*sizes, max(1, round(left)))


def _design(rng: np.random.Generator, n: int, p: int, kind: str) -> Array:
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


def _stored(rng: np.random.Generator, X: Array, kind: str) -> Any:
    """The data in one of the ways that data come in."""
    if kind.startswith("sparse"):
        return sp.csr_array(X) if rng.random() < 0.7 else sp.csc_array(X)
    way = rng.random()
    if way < 0.2:
        return np.asfortranarray(X)
    small = np.abs(X[X != 0]).min(initial=1.0) > 1e-30 and np.abs(X).max(initial=0.0) < 1e30
    return X.astype(np.float32) if way < 0.3 and small else X


def _units(rng: np.random.Generator, X: Array, kind: str) -> Array:
    """Columns in units of their own; some of them are not centred either."""
    reach = DRAWS.decades[int(rng.random() < 0.25)]
    moved = (kind != "sparse") * (rng.random(X.shape[1]) < 0.3)
    out: Array = (X + moved) * 10.0 ** rng.uniform(-reach, reach, X.shape[1])
    return out


def _weights(rng: np.random.Generator, n: int, loss: Loss, y: AnyArray) -> Array | None:
    """Weights with zeros among them; some event of a life must count."""
    if rng.random() >= 0.3:
        return None
    weight: Array = rng.exponential(size=n) * (rng.random(n) < 0.8)
    return weight if np.any(weight[y[:, 1] > 0] if loss.across_rows else weight) else None


def _share(rng: np.random.Generator, well_scaled: bool) -> float:
    low, high = np.log(DRAWS.shares)
    if well_scaled:
        return float(np.exp(rng.uniform(np.log(1e-3), 0.0)))
    share, kind = float(np.exp(rng.uniform(low, high))), rng.random()
    return (
        0.0 if kind < DRAWS.none else share * 10.0 ** rng.uniform(-12, -4) if kind < DRAWS.none + DRAWS.trace else share
    )


def make(seed: int, loss: str | None = None, penalty: str | None = None, *, well_scaled: bool = False) -> Drawn:
    """The problem of a seed; loss and penalty may be chosen, and data as people have them."""
    rng = np.random.default_rng([22, seed])
    loss = str(rng.choice(DRAWN)) if loss is None else loss
    penalty = str(rng.choice(list(PENALTIES))) if penalty is None else penalty
    family, recipe = drawn_loss(rng, loss), PENALTIES[penalty]
    kind = str(rng.choice(WELL_SCALED if well_scaled else DATA))
    n, p = _shape(rng)
    n, p = max(n, 2 if family.classification else 1), max(p, recipe.least)
    if well_scaled:
        n, p = max(n, 20), max(p, 5)
    outputs, task, alone = 1, None, family.coupled or family.across_rows
    if family.coupled or (recipe.outputs and not family.across_rows):
        outputs = int(rng.integers(2, 8))
    if family.coupled:
        n = max(n, outputs)
    if outputs > 1:
        p = max(-(-recipe.least // outputs), min(p, DRAWS.coefficients // outputs))
    p, more = _sizes(rng, p, outputs, recipe)
    if outputs > 1 and not alone and n >= 2 * outputs and rng.random() < 0.5:
        task = np.concatenate([np.arange(outputs), rng.integers(0, outputs, n - outputs)])
    X = _design(rng, n, p, kind)
    if not well_scaled and rng.random() < DRAWS.units:
        X, kind = _units(rng, X, kind), f"{kind}, units"
    y = targets_of(rng, family, _scores(rng, X, outputs, task), kind.split(",")[0])
    weight = _weights(rng, n, family, y)
    if not well_scaled and rng.random() < 0.5:
        X = X * 10.0 ** rng.uniform(-2, 2)
    problem = Problem(
        _stored(rng, X, kind), y, loss=family, penalty=recipe.make(rng, p if recipe.outputs else p * outputs, *more),
        sample_weight=weight, task=task, fit_intercept=bool(rng.random() < 0.5) and not family.across_rows,
        offset=offsets_of(rng, n),
    )  # fmt: skip
    share = _share(rng, well_scaled)
    return Drawn(seed, kind, loss, penalty, share, problem.with_alpha(share * _largest_alpha(problem, X)))


def _sizes(rng: np.random.Generator, p: int, outputs: int, recipe: Recipe) -> tuple[int, tuple[Any, ...]]:
    """The number of features, and what else the penalty is told: the shape of all coefficients, or the outputs."""
    if recipe.outputs:
        return p, (outputs,)
    if recipe.factors == 1:
        return p, ()
    shape = _factors(rng, p, recipe.factors)
    shape = tuple(max(2, size) for size in shape) if np.prod(shape) * outputs < recipe.least else shape
    return int(np.prod(shape)), ((outputs * shape[0], *shape[1:]),)


def _scores(rng: np.random.Generator, X: Array, outputs: int, task: Ints | None) -> Array:
    """Scores of about unit size, (n,) or (n, outputs), of a few features in their own units."""
    n, p = X.shape
    w = np.where(rng.random((p, outputs)) < 0.3, rng.standard_normal((p, outputs)), 0.0)
    size = np.sqrt(np.mean(X**2, axis=0))
    score = np.divide(X, size, out=np.zeros_like(X), where=size > 0) @ w
    score = score / max(float(score.std()), 1e-12)
    if task is not None:
        score = score[np.arange(n), task]
    out: Array = score[:, 0] if score.ndim == 2 and outputs == 1 else score
    return out


def _largest_alpha(problem: Problem, X: Array) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            largest = problem.alpha_max()
        except ValueError:  # without an answer at zero there is none
            largest = np.inf
    return largest if np.isfinite(largest) and largest > 0 else float(np.mean(X**2)) or 1.0
