"""The objective with sixty digits, from formulas of its own: what doubles say of it is judged by that.

Losses and penalties are written down once more, term by term of the algebra and without a word of the code that they
judge. Numbers are those of :mod:`decimal`, which hold every double exactly.
"""

from __future__ import annotations

import decimal
import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from ...problem import Problem

DIGITS = 60
MOST = 30_000  # products with the data, up to which a problem is judged
_SWEEPS = 60  # of Jacobi's rotations; some ten suffice
_ROUNDING = 2.0**-52  # of the terms of a row of B': what a limit behind a map may be passed by

Numbers = Sequence[Decimal]
ZERO, ONE, TWO = Decimal(0), Decimal(1), Decimal(2)


class NotJudged(Exception):
    """The problem is too large, or of a kind that nobody has written down here."""


def exactly(values: Any) -> list[Decimal]:
    """Doubles as they are."""
    return [Decimal(value) for value in np.ravel(values).astype(float).tolist()]


# -- losses -----------------------------------------------------------------------------------------


def _softplus(m: Decimal) -> Decimal:
    """log(1 + exp(m))."""
    if m > 200:
        return m
    return (ONE + m.exp()).ln() if m > -200 else m.exp()


def _smoothed_hinge(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    s, short = Decimal(loss.smoothing), ONE - t * u
    if short <= 0:
        return ZERO
    return short - s / 2 if short >= s else short * short / (2 * s)


def _huber(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    delta, r = Decimal(loss.delta), abs(u - t)
    return r * r / 2 if r <= delta else delta * (r - delta / 2)


def _quantile(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    q, r = Decimal(loss.quantile), u - t
    return -q * r if r < 0 else Decimal(1.0 - loss.quantile) * r


def _poisson(loss: Any, u: Decimal, t: Decimal) -> Decimal:
    if u > 2000:
        raise NotJudged("a count beyond all numbers")
    return u.exp() - t * u


LOSSES: dict[str, Callable[[Any, Decimal, Decimal], Decimal]] = {
    "Squared": lambda loss, u, t: (u - t) ** 2 / 2,
    "SquaredHinge": lambda loss, u, t: max(ONE - t * u, ZERO) ** 2,
    "Hinge": lambda loss, u, t: max(ONE - t * u, ZERO),
    "Logistic": lambda loss, u, t: _softplus(-t * u),
    "SmoothedHinge": _smoothed_hinge,
    "Huber": _huber,
    "Quantile": _quantile,
    "EpsilonInsensitive": lambda loss, u, t: max(abs(u - t) - Decimal(loss.epsilon), ZERO),
    "Poisson": _poisson,
}


# -- penalties, on their own coordinates ------------------------------------------------------------


def _length(u: Numbers) -> Decimal:
    return sum((one * one for one in u), start=ZERO).sqrt()


def _l1(leaf: Any, u: Numbers) -> Decimal:
    weights = [1.0] * len(u) if leaf.weights is None else leaf.weights.tolist()
    return sum((Decimal(k) * abs(one) for k, one in zip(weights, u, strict=True) if k < np.inf), start=ZERO)


def _groups(norm: Callable[[Numbers], Decimal]) -> Callable[[Any, Numbers], Decimal]:
    def value(leaf: Any, u: Numbers) -> Decimal:
        pairs = zip(leaf.weights.tolist(), leaf.groups, strict=True)
        return sum((Decimal(k) * norm([u[j] for j in group]) for k, group in pairs), start=ZERO)

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
    for _ in range(_SWEEPS):
        turned = False
        for a, b in itertools.combinations(range(len(table)), 2):
            left, right = table[a], table[b]
            alpha, beta = sum((x * x for x in left), start=ZERO), sum((x * x for x in right), start=ZERO)
            cross = sum((x * y for x, y in zip(left, right, strict=True)), start=ZERO)
            if cross * cross <= small * small * alpha * beta:
                continue
            turned, zeta = True, (beta - alpha) / (2 * cross)
            tangent = (ONE if zeta >= 0 else -ONE) / (abs(zeta) + (ONE + zeta * zeta).sqrt())
            cosine = ONE / (ONE + tangent * tangent).sqrt()
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
    if kind == "L1" and leaf.weights is not None and np.isinf(leaf.weights).any():
        out = np.isinf(leaf.weights)
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
    kind = LOSSES.get(type(problem.loss).__name__)
    X = problem.data.filled()
    outputs, stride, offset, _ = problem.layout
    if kind is None or X.size * outputs > MOST:
        raise NotJudged("the loss, or the size")
    table = [exactly(line) for line in np.reshape(w, (problem.vectors, stride))]
    target = exactly(problem.target)
    weight = exactly(problem.weight) if problem.weight.size else [ONE] * problem.n
    task = (offset // stride).tolist() if offset.size else []
    total = ZERO
    for i in range(problem.n):
        if not weight[i]:
            continue
        row = exactly(X[i])
        for k in range(outputs):
            own = table[task[i] if task else k]
            u = sum((z * c for z, c in zip(row, own, strict=False) if c and z), start=own[-1])
            total += weight[i] * kind(problem.loss, u, target[i * outputs + k])
    return total / problem.n


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
        slack = size * Decimal(_ROUNDING)
        if one < Decimal(low) - slack or one > Decimal(high) + slack:
            raise Broken(f"a limit is broken: {one:.20e} is not between {low} and {high}")


class Broken(Exception):
    """The point is not feasible."""
