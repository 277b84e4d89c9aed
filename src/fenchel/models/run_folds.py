"""Paths on the training rows of every fold, judged on the rows held out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import scipy.sparse as sp

from .._validate import Array, Ints, MatrixLike
from ..solver.columns import Chain, in_coordinates
from .cross_validation import CrossValidation, _held_out_losses
from .folds import Answers, Fold, make_fold
from .paths import Path, _follow
from .relaxed import mixed, refitted

if TYPE_CHECKING:
    from ..problem.problem import Problem
    from .columns import Moving
    from .progress import Bar


def run_folds(
    problem: Problem,
    rows: Sequence[tuple[Ints, Ints]],
    alphas: Array,
    *,
    score: Callable[..., Any] | None,
    standardize: bool,
    n_jobs: int | None,
    until: float,
    bar: Bar,
    tol: float,
    max_epochs: int,
    random_state: Any,
    solver_options: Mapping[str, Any],
    X: MatrixLike | None = None,
    scaling: Moving | None = None,
    relax: Sequence[float] = (0.0,),
) -> list[CrossValidation]:
    """The scores of every alpha and fold, once for every share of a refit in `relax`.

    `X` are the columns of the data where `problem` works on others, and `scaling` says what was done to those; without
    them a problem that is to be standardised has them itself. `until` is the time of the clock by which all must be
    done.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    raw = (_matrix(problem) if X is None else X) if standardize else None
    other = None if standardize else in_coordinates(problem)
    if other is not None:
        problem, scaling = other[0], other[1] if scaling is None else Chain(scaling, other[1])
    side_by_side = effective_n_jobs(n_jobs)

    def fold_path(number: int) -> tuple[Fold, Path, Answers | None]:
        fold = make_fold(problem, number, rows[number], raw, scaling)
        results = []
        for result in _follow(
            fold.problem, alphas, tol, max_epochs, random_state, solver_options, None, _share(number)
        ):
            results.append(result)
            bar.step(f"fold {number}, alpha {alphas[len(results) - 1]:.4g}")
        bar.step(count=len(alphas) - len(results))
        found = Path(alphas[: len(results)], results, tol)
        return fold, found, refitted(fold.problem, found) if any(relax) else None

    def _share(number: int) -> float:
        """The time of the clock by which a fold must be done: what is left, divided among the rounds of folds."""
        if until == math.inf:
            return math.inf
        now, rounds = time.perf_counter(), math.ceil((len(rows) - number) / side_by_side)
        return float(now + max(until - now, 0.0) / rounds)

    found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(fold_path)(k) for k in range(len(rows)))
    out = []
    for share in relax:
        scores = []
        for fold, one, refit in found:
            plain = Answers(one.coefs, one.intercepts)
            answers = (plain if refit is None else mixed(plain, refit, share)).scaled_back(fold.scaling)
            if score is None:
                scores.append(_held_out_losses(problem, fold.test, answers.scaled(scaling)))
            else:
                pairs = zip(answers.coefs, answers.intercepts, strict=True)
                scores.append([float(score(coef, intercept, fold.test)) for coef, intercept in pairs])
        out.append(CrossValidation(alphas, scores, [one for _, one, _ in found]))
    return out


def _matrix(problem: Problem) -> MatrixLike:
    """The data of a problem."""
    data = problem.data
    return sp.csr_array(data.arrays, shape=(data.n, data.p)) if data.sparse else data.dense
