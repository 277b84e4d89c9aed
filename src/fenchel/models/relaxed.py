r"""Refits without penalty on the structure that a penalty has found: zeros stay zero, ties tied, ranks as they are.

A penalty chooses, and it shrinks what it has chosen. The answers w that have the structure of one answer form a linear
space: (B'w)_j = 0 wherever it is zero there, w_i = ±w_j for what is tied, and matrices with the same spaces of rows and
columns. With a basis E of it the loss of E v is minimised over v, within the limits that the penalty sets. As in glmnet
the answer may be a mixture of both, which has that structure again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from .._validate import Array, Flags, Ints
from ..foundation.numerics import DENSE, NOTHING
from ..penalties import Box, Penalty
from ..penalties.snapping import tied_features
from ..problem import Problem
from ..solver import solve
from ..solver.result import Status
from .folds import Answers

if TYPE_CHECKING:
    from ..solver.result import Result
    from .paths import Path

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the refit, that cross-validation tries: one minus glmnet's gammas


def shares_of(relax: Any) -> tuple[float, ...]:
    """The shares of the refit that are asked for: one, a list of them, or True for all that are usual."""
    if isinstance(relax, (bool, np.bool_)) or relax is None:
        return SHARES if relax else (0.0,)
    shares = tuple(np.atleast_1d(np.asarray(relax)).tolist())
    if not shares or not all(isinstance(one, (int, float)) and 0 <= one <= 1 for one in shares):
        raise ValueError(f"relax is {relax!r}; it must be the share of the refit, from 0 to 1, or a list of such")
    return tuple(float(one) for one in shares)


def mixed(plain: Answers, refit: Answers, share: float) -> Answers:
    """The mixture of penalised answers and their refits; NaN where there is no refit and one is asked for."""
    if share == 0:
        return plain
    return Answers(
        (1 - share) * plain.coefs + share * refit.coefs, (1 - share) * plain.intercepts + share * refit.intercepts
    )


def refitted(problem: Problem, path: Path) -> Answers:
    """The refits of all points of a path; NaN where there is none."""
    coefs, intercepts = np.full_like(path.coefs, np.nan), np.full_like(path.intercepts, np.nan)
    for k, (alpha, result) in enumerate(zip(path.alphas, path.results, strict=True)):
        found = refit(problem.with_alpha(alpha), result, path.tol)
        if found is not None:
            coefs[k], intercepts[k] = found[0], found[1]
    return Answers(coefs, intercepts)


def refit(problem: Problem, result: Result, tol: float = 1e-6) -> tuple[Array, Any, Result] | None:
    """Coefficients and intercept of the least loss with the structure of this answer, and the solver's result.

    None where there are as many free coefficients as rows, or no least loss (classes that can be told apart).
    """
    w = problem.pack(result.coef, result.intercept)
    basis = structure_basis(problem, w)
    rows = np.count_nonzero(problem.weight > 0) if problem.weight.size else problem.n
    free = basis.shape[1] + (problem.vectors if problem.fit_intercept else 0)
    if free >= rows * problem.layout[0]:
        return None
    design, weight = _design(problem, basis)
    several = problem.vectors > 1
    if design.shape[1] == 0:  # an empty model: the intercepts alone
        design = np.zeros((design.shape[0], 1))
        basis = np.zeros((basis.shape[0], 1))
    inner = Problem(
        design, problem.target, loss=problem.loss, penalty=_limits(problem, basis, design.shape[1]), alpha=1.0,
        sample_weight=weight, fit_intercept=problem.fit_intercept and not several,
        offset=problem.offset if problem.offset.size else None,
    )  # fmt: skip
    found = solve(inner, tol=tol)
    if found.status is not Status.CONVERGED:
        return None
    v = found.coef[: basis.shape[1]]
    coef = np.asarray(basis @ v, dtype=float).reshape(np.shape(result.coef))
    if not several:
        return coef, found.intercept, found
    extra = found.coef[basis.shape[1] :]
    intercept: Any = extra if problem.fit_intercept else np.zeros(problem.vectors)
    return coef, intercept, found


def structure_basis(problem: Problem, w: Array) -> Any:
    """A matrix whose columns span the coefficients with the structure of w: (outputs * p, directions)."""
    values, u = w[problem.feature_slots], problem.penalised(w)
    size = np.asarray(abs(problem.map) @ np.abs(values)).ravel()
    zero = (np.abs(u) <= np.where(np.diff(problem.map.indptr) > 2, NOTHING, 0.0) * size) & _structural(problem)
    (lone, feature), (pairs, left, right, between), others, alone = problem.links
    joined = np.flatnonzero(zero[pairs])
    a, b, sign = [left[joined]], [right[joined]], [between[joined]]
    spans: list[tuple[Ints, Array]] = []
    for (block, first, last), own in zip(problem._parts(), alone, strict=True):
        if not own:
            continue
        entries = slice(problem.map.indptr[first], problem.map.indptr[last])
        column, entry = problem.map.indices[entries], problem.map.data[entries]
        i, j, kind = block.function.ties(u[first:last])
        a.append(column[i])
        b.append(column[j])
        sign.append(kind * np.sign(entry[i] * entry[j]))
        span = block.function.kept_directions(u[first:last])
        if span is not None:
            spans.append((column, span / entry[:, None]))
    label, side, torn = tied_features(np.concatenate(a), np.concatenate(b), np.concatenate(sign), values.size)
    dead = np.zeros(label.max(initial=-1) + 1, dtype=bool)
    dead[label[torn]] = dead[label[feature[zero[lone]]]] = True
    number = np.cumsum(~dead) - 1
    live = np.flatnonzero(~dead[label])
    basis = sp.csr_array((side[live], (live, number[label[live]])), shape=(values.size, int((~dead).sum())))
    rows = [problem.map[np.flatnonzero(zero & others)], *(_across(*span, values.size) for span in spans)]
    rows = [part @ basis for part in rows if part.shape[0]]
    if not rows or basis.shape[1] == 0:
        return basis
    if basis.shape[1] > DENSE:
        raise ValueError(
            f"relax needs a dense matrix of {basis.shape[1]} directions for this penalty, and takes at most {DENSE}"
        )
    return basis @ scipy.linalg.null_space(sp.vstack(rows).toarray())


def _structural(problem: Problem) -> Flags:
    """Whether zero is a place where the penalty holds a coordinate of B'w, and no mere number."""
    out = []
    for block in problem.blocks:
        weights, limits = block.function.entry_weights(block.d), block.function.limits(block.d)
        held = np.ones(block.d, dtype=bool) if weights is None else weights > 0
        if limits is not None:
            held |= (limits[0] == 0) | (limits[1] == 0)
        out.append(held)
    return np.concatenate([np.zeros(0, dtype=bool), *out])


def _across(column: Ints, span: Array, size: int) -> Any:
    """Rows, of coefficients, that are zero on the span; its coordinates stand in the places `column`."""
    complement = scipy.linalg.null_space(span.T).T
    count = len(complement)
    places = np.tile(column, count)
    return sp.csr_array((complement.ravel(), (np.repeat(np.arange(count), len(column)), places)), shape=(count, size))


def _design(problem: Problem, basis: Any) -> tuple[Any, Array | None]:
    """The data times the basis, a row for every visit and with several outputs their intercepts, and row weights."""
    data, p = problem.data, problem.p
    X = sp.csr_array(data.arrays, shape=(problem.n, p)) if data.sparse else data.dense
    weight = problem.weight if problem.weight.size else None

    def times(part: Any) -> Array:
        product = X @ part
        return np.asarray(product.toarray() if sp.issparse(product) else product, dtype=float)

    if problem.vectors == 1:
        return times(basis), weight
    outputs, stride, offset, _ = problem.layout
    parts = [times(basis[k * p : (k + 1) * p]) for k in range(problem.vectors)]
    own = np.tile(np.arange(problem.vectors), problem.n) if outputs > 1 else offset // stride
    row = np.repeat(np.arange(problem.n), outputs)
    design = np.empty((row.size, basis.shape[1]))
    for k, part in enumerate(parts):
        design[own == k] = part[row[own == k]]
    if problem.fit_intercept:
        design = np.hstack([design, (own[:, None] == np.arange(problem.vectors)).astype(float)])
    return design, None if weight is None else np.repeat(weight, outputs)


def _limits(problem: Problem, basis: Any, width: int) -> Penalty | None:
    """The limits that the penalty sets, for the coefficients of the basis; None where there are none."""
    out: Penalty | None = None
    for block, first, last in problem._parts():
        limits = block.function.limits(block.d)
        if limits is None:
            continue
        rows = sp.csr_array(problem.map[first:last] @ basis)
        rows.resize((rows.shape[0], width))
        some = np.flatnonzero(np.diff(rows.indptr) > 0)
        if some.size:
            own: Penalty = Box(limits[0][some], limits[1][some]) @ rows[some]
            out = own if out is None else out + own
    return out
