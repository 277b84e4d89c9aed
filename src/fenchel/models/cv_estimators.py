"""The estimators that find alpha by cross-validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from .cross_validated import CrossValidated, GroupedFolds
from .estimators import _Classifies, _Regresses

if TYPE_CHECKING:
    from ..losses.base import Loss
    from ..penalties.base import Penalty


class StructuredClassifierCV(GroupedFolds, _Classifies, CrossValidated):
    """A structured classifier whose alpha is found by cross-validation over warm-started paths.

    Parameters
    ----------
    loss, penalty, standardize, fit_intercept, tol, max_epochs, random_state, class_weight, multi_class,
    solver_options
        As in :class:`StructuredClassifier`. Columns are standardised within every fold. Fits of folds have a tolerance
        of at least 1e-5, which is as much as a choice needs.
    alphas, n_alphas, eps
        As in :func:`fenchel.path`: the values to try, or how many, and down to which share of the largest useful one.
        Without `alphas` the path ends where the loss that is explained hardly grows any more.
    penalty_grid : dict, optional
        Parameters of the penalty and the values to try, as in ``GridSearchCV``: ``{"l1_ratio": [0.1, 0.5, 0.9]}``. All
        of them share the folds.
    relax : float, list of such, or True
        Shares of a refit without penalty to try, as in :class:`StructuredClassifier`; True for 0, 1/4, 1/2, 3/4 and 1.
    cv : int, splitter, or list of (training rows, held-out rows)
        Folds; stratified for a number. A splitter such as ``GroupKFold()`` takes the `groups` of `fit`.
    time_limit : float, optional
        Seconds for everything: it divides itself among parameters, folds and alphas. Alphas that some fold did not
        come to are not picked.
    verbose : bool
        Show one live bar over folds and alphas, with the time left; a line a minute where nothing can be drawn.
    scoring : str or callable, optional
        A scikit-learn scorer. By default (minus) the mean loss of the held-out rows.
    selection : {"min", "1se"}
        The best mean score, or the largest alpha within one standard error of it.
    n_jobs : int, optional
        Folds at a time, in threads.

    Attributes
    ----------
    alpha_ : float
        What was picked.
    alphas_ : array, from large to small
    cv_results_ : fenchel.CrossValidation
        Scores of every alpha and fold, each fit with its certificate.
    path_ : fenchel.Path
        On all rows, over all alphas.
    best_params_ : dict
        What was picked of `penalty_grid`.
    relax_ : float
        What was picked of `relax`.
    grid_results_ : list
        An entry for each choice of parameters and refit: `params`, `relax`, `cv` and `path`.
    coef_, intercept_, classes_, tasks_, gap_, status_, n_iter_, result_, n_features_in_, feature_names_in_
        As in :class:`StructuredClassifier`.
    """

    def __init__(
        self,
        loss: Loss | str = "logistic",
        penalty: Penalty | str | None = None,
        *,
        alphas: npt.ArrayLike | None = None,
        n_alphas: int = 50,
        eps: float | None = None,
        penalty_grid: Mapping[str, Any] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        standardize: bool = False,
        relax: Any = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        random_state: Any = 0,
        class_weight: Mapping[Any, float] | str | None = None,
        multi_class: str = "auto",
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.penalty_grid = penalty_grid
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.relax = relax
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.random_state = random_state
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.verbose = verbose
        self.solver_options = solver_options


class StructuredRegressorCV(GroupedFolds, _Regresses, CrossValidated):
    """A structured regression whose alpha is found by cross-validation over warm-started paths.

    Parameters
    ----------
    loss, penalty, fit_intercept, tol, max_epochs, random_state, solver_options
        As in :class:`StructuredRegressor`.
    alphas, n_alphas, eps, penalty_grid, cv, scoring, selection, n_jobs, standardize, relax, time_limit, verbose
        As in :class:`StructuredClassifierCV`.

    Attributes
    ----------
    alpha_, alphas_, cv_results_, path_, best_params_, relax_, grid_results_
        As in :class:`StructuredClassifierCV`.
    coef_, intercept_, tasks_, gap_, status_, n_iter_, result_, n_features_in_, feature_names_in_
        As in :class:`StructuredRegressor`.
    """

    def __init__(
        self,
        loss: Loss | str = "squared",
        penalty: Penalty | str | None = None,
        *,
        alphas: npt.ArrayLike | None = None,
        n_alphas: int = 50,
        eps: float | None = None,
        penalty_grid: Mapping[str, Any] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        standardize: bool = False,
        relax: Any = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        random_state: Any = 0,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.penalty_grid = penalty_grid
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.relax = relax
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options
