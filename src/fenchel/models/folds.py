"""Folds of a cross-validation: the same problem with other weights, standardised on its own rows if that is asked."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._validate import AnyArray, Array, Ints, MatrixLike
from .columns import Moving, prepared
from .cross_validation import _training

if TYPE_CHECKING:
    from ..problem.problem import Problem


@dataclasses.dataclass
class Answers:
    """The coefficients and intercepts of a whole path."""

    coefs: Array
    intercepts: Array

    def __len__(self) -> int:
        return len(self.coefs)

    def scaled_back(self, scaling: Moving | None) -> Answers:
        """For the columns as they stand in the data."""
        if scaling is None:
            return self
        moved = [scaling.undo(*one) for one in zip(self.coefs, self.intercepts, strict=True)]
        return Answers(np.array([coef for coef, _ in moved]), np.array([intercept for _, intercept in moved]))

    def scaled(self, scaling: Moving | None) -> Answers:
        """For columns that were scaled, from those of the data."""
        if scaling is None:
            return self
        moved = [scaling.redo(*one) for one in zip(self.coefs, self.intercepts, strict=True)]
        return Answers(np.array([coef for coef, _ in moved]), np.array([intercept for _, intercept in moved]))


@dataclasses.dataclass
class Fold:
    """The training rows of a fold as a problem (the others have no weight), and the rows that are held out."""

    problem: Problem
    test: Ints
    scaling: Moving | None = None


def split(problem: Problem, cv: Any, y: AnyArray, groups: npt.ArrayLike | None = None) -> list[tuple[Ints, Ints]]:
    """The (training, held-out) rows of every fold; `y` are the targets that a stratified splitter looks at."""
    from sklearn.model_selection import check_cv

    if groups is not None and len(np.asarray(groups)) != problem.n:
        count = len(np.asarray(groups))
        raise ValueError(f"groups has {count} entries; it must hold one for each of the {problem.n} rows")
    labels = problem.loss.fold_labels(y)
    y = y if labels is None else labels
    splitter = check_cv(cv, y, classifier=labels is not None)
    try:
        rows = list(splitter.split(np.zeros((problem.n, 1)), y, groups))
    except ValueError as error:
        if groups is None and "groups" in str(error):
            raise ValueError(f"cv is {cv!r}, which needs a label for every row: fit(X, y, groups=...)") from None
        raise
    if not rows:
        raise ValueError("cv gives no folds")
    return rows


def make_fold(
    problem: Problem, number: int, rows: tuple[Ints, Ints], X: MatrixLike | None, scaling: Moving | None
) -> Fold:
    """One fold. `X` is given where the columns are standardised on the training rows of each; otherwise all folds share
    the data of the problem, and its `scaling`."""
    train, test = rows
    part = _training(problem, number, train)
    if X is None:
        return Fold(part, test, scaling)
    columns, own = prepared(X, part.weight, problem.fit_intercept or problem.loss.across_rows, True)
    return Fold(part.with_data(columns), test, own)
