"""The objective with sixty digits, from formulas of its own: what doubles say of it is judged by that.

Losses and penalties are written down once more, term by term of the algebra and without a word of the code that they
judge. Numbers are those of :mod:`decimal`, which hold every double exactly.
"""

from __future__ import annotations

import decimal
import itertools
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from ...foundation.numerics import NEWTON_STEPS, UNIT
from ...problem import Problem
from .exact_losses import COUPLED_LOSSES, LOSSES, ROW_LOSSES, ZERO, NotJudged, Numbers, exactly

DIGITS = 60  # of the judge's sums; more: slower, and doubles have 16
MOST = 30_000  # products with the data, up to which a problem is judged; more: minutes for a problem

# -- penalties, on their own coordinates ------------------------------------------------------------


def _length(u: Numbers) -> Decimal:
    return sum((one * one for one in u), start=ZERO).sqrt()


def _l1(leaf: Any, u: Numbers) -> Decimal:
    weights = [1.0] * len(u) if leaf.weights is None else leaf.weights.tolist()
    return sum((Decimal(k) * abs(one) for k, one in zip(weights, u, strict=True) if k < np.inf), start=ZERO)


def _groups(norm: Callable[[Numbers], Decimal]) -> Callable[[Any, Numbers], Decimal]:
    def value(leaf: Any, u: Numbers) -> Decimal:
        pairs = zip(leaf.weights.tolist(), leaf.groups, strict=True)
        return sum((Decimal(k) * norm([u[j] for j in group]) for k, group in pairs if k < np.inf), start=ZERO)

    return value


def _sorted_l1(leaf: Any, u: Numbers) -> Decimal:
    sizes = sorted(map(abs, u), reverse=True)
    return sum((Decimal(k) * one for k, one in zip(leaf.weights.tolist(), sizes, strict=True)), start=ZERO)


def _nested(leaf: Any, u: Numbers) -> Decimal:
    spans = zip(leaf.first.tolist(), leaf.last.tolist(), leaf.weights.tolist(), strict=True)
    return sum((Decimal(k) * _length(u[i:j]) for i, j, k in spans), start=ZERO)


def _exclusive(leaf: Any, u: Numbers) -> Decimal:
    ends = itertools.pairwise([0, *np.cumsum(leaf.sizes).tolist()])
    squares = [sum(map(abs, u[i:j]), start=ZERO) ** 2 for i, j in ends]
    return sum((Decimal(k) * one for k, one in zip(leaf.weights.tolist(), squares, strict=True)), start=ZERO) / 2


def _trace_norm(leaf: Any, u: Numbers) -> Decimal:
    """The sum of the singular values, by rotations of pairs of columns until all are orthogonal."""
    rows, columns = leaf.shape
    table = [[u[i * columns + j] for i in range(rows)] for j in range(columns)]
    if columns > rows:
        table = [list(line) for line in zip(*table, strict=True)]
    if len(table) > 12:
        raise NotJudged("the trace norm of a large matrix")
    small = Decimal(10) ** -(DIGITS - 10)
    for _ in range(NEWTON_STEPS):
        turned = False
        for a, b in itertools.combinations(range(len(table)), 2):
            left, right = table[a], table[b]
            alpha, beta = sum((x * x for x in left), start=ZERO), sum((x * x for x in right), start=ZERO)
            cross = sum((x * y for x, y in zip(left, right, strict=True)), start=ZERO)
            if cross * cross <= small * small * alpha * beta:
                continue
            turned, zeta = True, (beta - alpha) / (2 * cross)
            tangent = (1 if zeta >= 0 else -1) / (abs(zeta) + (1 + zeta * zeta).sqrt())
            cosine = 1 / (1 + tangent * tangent).sqrt()
            sine = cosine * tangent
            pairs = list(zip(left, right, strict=True))
            table[a] = [cosine * x - sine * y for x, y in pairs]
            table[b] = [sine * x + cosine * y for x, y in pairs]
        if not turned:
            break
    return sum(map(_length, table), start=ZERO)


PENALTIES: dict[str, Callable[[Any, Numbers], Decimal]] = {
    "L1": _l1,
    "Ridge": lambda leaf, u: sum((one * one for one in u), start=ZERO) / 2,
    "GroupL2": _groups(_length),
    "GroupLinf": _groups(lambda u: max(map(abs, u))),
    "SortedL1": _sorted_l1,
    "NestedL2": _nested,
    "ExclusiveL1": _exclusive,
    "TraceNorm": _trace_norm,
    "NonNegative": lambda leaf, u: ZERO,
    "Box": lambda leaf, u: ZERO,
}


def limits_of(leaf: Any, d: int) -> tuple[list[float], list[float]] | None:
    """The limits of a leaf's coordinates."""
    kind = type(leaf).__name__
    if kind == "NonNegative":
        return [0.0] * d, [np.inf] * d
    if kind == "Box":
        return np.broadcast_to(leaf.lower, d).tolist(), np.broadcast_to(leaf.upper, d).tolist()
    out = np.zeros(d, dtype=bool)  # an infinite weight keeps a coordinate out
    if kind == "L1" and leaf.weights is not None:
        out = np.isinf(leaf.weights)
    elif kind in ("GroupL2", "GroupLinf"):
        for k, group in zip(leaf.weights.tolist(), leaf.groups, strict=True):
            out[group] |= k == np.inf
    if out.any():
        return np.where(out, 0.0, -np.inf).tolist(), np.where(out, 0.0, np.inf).tolist()
    return None


# -- the objective ----------------------------------------------------------------------------------


def objective(problem: Problem, w: Any) -> Decimal:
    """The objective at w, infinite where a limit is broken by more than the rounding of its own sum."""
    with decimal.localcontext() as context:
        context.prec = DIGITS
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        return _mean_loss(problem, w) + Decimal(problem.alpha) * _penalty(problem, w)


def _mean_loss(problem: Problem, w: Any) -> Decimal:
    name, loss, X = type(problem.loss).__name__, problem.loss, problem.data.filled()
    outputs = problem.layout[0]
    if X.size * outputs > MOST:
        raise NotJudged("the size")
    weight = exactly(problem.weight) if problem.weight.size else exactly(np.ones(problem.n))
    u = _scores(problem, X, w, weight)
    if name in COUPLED_LOSSES:
        return COUPLED_LOSSES[name](loss, u, problem.target, weight) / problem.n
    target, total = exactly(problem.target), ZERO
    for i in range(problem.n):
        if not weight[i]:
            continue
        own = slice(i * outputs, (i + 1) * outputs)
        if name in ROW_LOSSES:
            value = ROW_LOSSES[name](loss, u[own], target[own])
        elif name in LOSSES:
            value = sum((LOSSES[name](loss, *pair) for pair in zip(u[own], target[own], strict=True)), start=ZERO)
        else:
            raise NotJudged("the loss")
        total += weight[i] * value
    return total / problem.n


def _scores(problem: Problem, X: Any, w: Any, weight: Numbers) -> list[Decimal]:
    """What the loss sees of every visit, with its offset; nothing is said of rows without weight."""
    outputs, stride, task, _ = problem.layout
    table = [exactly(line) for line in np.reshape(w, (problem.vectors, stride))]
    own = [[k] for k in (task // stride).tolist()] if task.size else [list(range(outputs))] * problem.n
    u = exactly(problem.offset) if problem.offset.size else [ZERO] * (problem.n * outputs)
    for i in range(problem.n):
        if weight[i]:
            row = exactly(X[i])
            for k, vector in enumerate(own[i]):
                w_k = table[vector]
                u[i * outputs + k] += sum((z * c for z, c in zip(row, w_k, strict=False) if c and z), start=w_k[-1])
    return u


def _penalty(problem: Problem, w: Any) -> Decimal:
    if problem.penalty is None:
        return ZERO
    features = exactly(np.asarray(w)[problem.feature_slots])
    total = ZERO
    for scale, leaf, map_ in problem.penalty.terms(len(features)):
        kind = PENALTIES.get(type(leaf).__name__)
        if kind is None:
            raise NotJudged(type(leaf).__name__)
        B = map_.matrix(len(features)).tocsr()
        u, terms = [], []
        for first, last in itertools.pairwise(B.indptr.tolist()):
            parts = [
                Decimal(float(b)) * features[j] for b, j in zip(B.data[first:last], B.indices[first:last], strict=True)
            ]
            u.append(sum(parts, start=ZERO))
            terms.append((last - first) * sum(map(abs, parts), start=ZERO))
        _check_limits(leaf, u, terms)
        total += Decimal(scale) * kind(leaf, u)
    return total


def _check_limits(leaf: Any, u: Numbers, terms: Numbers) -> None:
    limits = limits_of(leaf, len(u))
    if limits is None:
        return
    for one, size, low, high in zip(u, terms, *limits, strict=True):
        slack = size * Decimal(2 * UNIT)
        if one < Decimal(low) - slack or one > Decimal(high) + slack:
            raise Broken(f"a limit is broken: {one:.20e} is not between {low} and {high}")


class Broken(Exception):
    """The point is not feasible."""
