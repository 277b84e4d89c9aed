"""The folds of `fenchel cv`: which rows they hold out, and how these are judged."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..models.progress import Bar
from .common import hint

if TYPE_CHECKING:
    from .._validate import AnyArray, Array, Ints
    from ..models.cross_validation import CrossValidation
    from .problem import Setup


def check_scoring(name: str | None) -> None:
    """A ValueError for a score that scikit-learn does not have."""
    if name is None:
        return
    from sklearn.metrics import get_scorer_names

    if name not in get_scorer_names():
        known = get_scorer_names()
        near = hint(name, known)
        raise ValueError(
            f"--scoring is {name!r}; {near if near.startswith('did') else 'it must be a score of scikit-learn, such '}"
            f"{'' if near.startswith('did') else 'as accuracy, roc_auc, neg_log_loss, r2 or neg_mean_absolute_error'}"
        )


def cross_validated(
    setup: Setup, alphas: Array, folds: int, shuffle: bool, scoring: str | None, jobs: int, limits: dict[str, Any]
) -> CrossValidation:
    """The scores of every alpha on the rows that each fold holds out."""
    from ..models import cross_validate_path
    from ..models.cross_validation import FOLD_TOL
    from ..models.run_folds import run_folds

    if setup.problem.pooled:
        if scoring is not None:
            raise ValueError("--scoring reads all rows at once, and does not go with --memory or --scheduler")
        return cross_validate_path(setup.problem, cv=folds, alphas=alphas, **limits)
    rows = _splits(setup, folds, shuffle)
    score = None if scoring is None else _score_function(setup, scoring)
    with Bar(len(rows) * len(alphas), not setup.options.quiet, last=False) as bar:
        return run_folds(
            setup.problem, rows, alphas, score=score, standardize=setup.options.standardize, n_jobs=jobs,
            until=math.inf, bar=bar, solver_options={}, X=setup.data.X, scaling=setup.scaling,
            **{**limits, "tol": max(limits["tol"], FOLD_TOL)},
        )[0]  # fmt: skip


def _splits(setup: Setup, folds: int, shuffle: bool) -> list[tuple[Ints, Ints]]:
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    n, together = setup.problem.n, setup.data.together
    if folds > n:
        raise ValueError(f"--folds is {folds}, but {setup.file} has {n} rows")
    y = cast("AnyArray", setup.data.y)  # without targets nothing is read
    across, stratified = setup.problem.loss.across_rows, setup.classes is not None
    if across:
        y, stratified = np.asarray(setup.problem.loss.fold_labels(setup.problem.target)), True
    if stratified:
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < folds:
            label = labels[counts.argmin()].item()
            have = f"are {'events' if label else 'censored'}" if across else f"have the label {label!r}"
            raise ValueError(f"--folds is {folds}, but only {counts.min()} rows {have}")
    if together is not None and len(np.unique(together)) < folds:
        raise ValueError(f"--folds is {folds}, but --cv-groups has {len(np.unique(together))} labels only")
    kind: Any = StratifiedKFold if stratified else KFold
    if together is not None:
        kind = StratifiedGroupKFold if stratified else GroupKFold
    chosen = {"shuffle": True, "random_state": setup.options.seed} if shuffle else {}
    return list(kind(folds, **chosen).split(np.zeros((n, 1)), y, together))


def _score_function(setup: Setup, scoring: str) -> Callable[..., float]:
    """The score as a function of coefficients, intercept and held-out rows."""
    from sklearn.metrics import get_scorer

    from ..models.estimators import StructuredClassifier, StructuredRegressor

    if setup.tasks is not None or setup.problem.loss.across_rows or setup.data.offset is not None:
        raise ValueError("--scoring goes with labels or numbers, without --task, --offset or survival times")
    X, y, weight = setup.data.X, cast("AnyArray", setup.data.y), setup.problem.weight
    kind: Any = StructuredRegressor if setup.classes is None else StructuredClassifier
    multi_class = setup.options.multi_class
    shell = kind(**({"multi_class": multi_class} if setup.classes is not None else {}), loss=setup.problem.loss)
    shell.n_features_in_, shell._with_offset, shell.scale_ = X.shape[1], False, None
    if setup.classes is not None:
        shell.classes_ = np.array(setup.classes)
    scorer = get_scorer(scoring)

    def score(coef: Array, intercept: Array | float, rows: Ints) -> float:
        model = copy.copy(shell)
        for name, value in model._shaped_plainly(coef, intercept).items():
            setattr(model, name, value)
        try:
            given = {"sample_weight": weight[rows]} if weight.size else {}
            return float(scorer(model, X[rows], y[rows], **given))
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"--scoring {scoring} does not go with {setup.file}: {error}") from None

    return score
