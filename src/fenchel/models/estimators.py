"""scikit-learn estimators: linear models with a structured penalty, every fit with a certified duality gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from .._validate import AnyArray, Array, MatrixLike
from . import preparation as helpers
from .fitting import CrossValidated, OneAlpha, with_callbacks

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..losses.base import Loss
    from ..penalties.base import Penalty


_ACCEPTED = {"accept_sparse": ["csr", "csc"], "dtype": [np.float64, np.float32]}


class _Classifies(ClassifierMixin):  # type: ignore[misc]  # scikit-learn has no types
    """Labels: in, and out."""

    _classification = True

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
            float32 is kept as it is. Dense data is copied where neither rows nor columns are contiguous, or where a
            column lies far from zero (more than ten standard deviations) and there is an intercept: the copy is then
            centred.
        y : vector of n labels
        sample_weight : vector of n weights, optional
        task : vector of n task names or numbers, optional
            Rows of one task have coefficients of their own; a penalty may couple them. For two classes.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, **_ACCEPTED)
        X = helpers.contiguous(X)
        check_classification_targets(y)
        weight = helpers.row_weights(sample_weight, self.class_weight, y, X)
        self.classes_, code = helpers.encode_classes(y, weight)
        target = helpers.class_targets(code, len(self.classes_), self._loss_in_use())
        out: Self = self._fit(X, y, target, weight, task)
        return out

    def _loss_in_use(self) -> Loss:
        loss = helpers.as_loss(self.loss, True)
        return helpers.loss_of_classes(loss, self.multi_class, len(self.classes_))

    def decision_function(self, X: MatrixLike, task: npt.ArrayLike | None = None) -> Array:
        """Scores: (n,) for two classes, positive for the second; otherwise (n, classes)."""
        out: Array = self._scores(X, task)
        return out

    def predict(self, X: MatrixLike, task: npt.ArrayLike | None = None) -> AnyArray:
        """The label of every row."""
        scores = self._scores(X, task)
        out: AnyArray = self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
        return out

    @available_if(helpers.has_likelihood)  # type: ignore[untyped-decorator]  # of scikit-learn, which has no types
    def predict_proba(self, X: MatrixLike, task: npt.ArrayLike | None = None) -> Array:
        """Probabilities (n, classes), for the logistic and the multinomial loss: the softmax of the scores. With
        ``multi_class="ovr"`` those of each class against the rest, normalised."""
        scores = self._scores(X, task)
        return helpers.class_probabilities(self._loss_in_use(), scores)

    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
    ) -> float:
        """The share of rows that are labelled rightly."""
        out: float = accuracy_score(y, self.predict(X, task), sample_weight=sample_weight)
        return out


class _Regresses(RegressorMixin):  # type: ignore[misc]  # scikit-learn has no types
    """Numbers: in, and out."""

    _classification = False

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
            float32 is kept as it is. Dense data is copied where neither rows nor columns are contiguous, or where a
            column lies far from zero (more than ten standard deviations) and there is an intercept: the copy is then
            centred.
        y : vector of n targets, or (n, outputs)
        sample_weight : vector of n weights, optional
        task : vector of n task names or numbers, optional
            Rows of one task have coefficients of their own; a penalty may couple them. For one output.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, **_ACCEPTED)
        X = helpers.contiguous(X)
        weight = helpers.row_weights(sample_weight, None, y, X)
        out: Self = self._fit(X, y, y, weight, task)
        return out

    def predict(self, X: MatrixLike, task: npt.ArrayLike | None = None) -> Array:
        """The target of every row: (n,) or (n, outputs); for the Poisson loss the expected count."""
        scores = self._scores(X, task)
        return helpers.as_loss(self.loss, False).mean(scores)

    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
    ) -> float:
        """The coefficient of determination, R^2."""
        out: float = r2_score(y, self.predict(X, task), sample_weight=sample_weight)
        return out

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class StructuredClassifier(_Classifies, OneAlpha):
    """A linear classifier with a structured penalty.

    Minimises the weighted mean of the loss plus ``alpha * penalty``. More than two classes form one problem, so that a
    penalty can couple them (see Notes): by the softmax for the logistic loss, otherwise each against the rest.

    Parameters
    ----------
    loss : str or Loss
        "logistic", "smoothed-hinge", "hinge", "squared-hinge"; "multinomial" and "multiclass-hinge", which see all
        classes together; or a loss object.
    penalty : Penalty, optional
        ``fenchel.L1()`` by default. Its parameters are reached as ``penalty__name``.
    alpha : float
        Multiplies the penalty.
    fit_intercept : bool
        An intercept without penalty.
    tol : float
        Relative duality gap to reach. On small data (up to 50,000 numbers) a smooth loss is solved to its last digits.
    max_epochs : int
        Passes over the data.
    warm_start : bool
        Begin at the last fit's answer, if the data has the same shape.
    random_state : int, RandomState or None
        Order of the passes; the same seed gives the same bits.
    class_weight : dict, "balanced" or None
        Multiplies the weights of the rows of a class.
    multi_class : {"auto", "multinomial", "ovr"}
        What three classes or more are fitted by, for the logistic loss: "multinomial", the softmax loss of all of them
        together, which "auto" takes; or "ovr", each class against the rest. Other losses set each against the rest.
    verbose : bool
        Show a live line.
    solver_options : dict, optional
        Further options of :func:`fenchel.solve`, such as ``{"time_limit": 60}`` or ``{"n_jobs": -1}``.

    Attributes
    ----------
    coef_ : array (1, p), (classes, p) or (tasks, p)
    intercept_ : array (1,), (classes,) or (tasks,)
    classes_ : array
    tasks_ : array, if it was fitted with tasks
    gap_ : float
        The proven distance of the objective from its optimum.
    status_ : fenchel.Status
    n_iter_ : int
        Epochs.
    result_ : fenchel.Result
        With the history of the run; the solver's state only with `warm_start`.
    n_features_in_, feature_names_in_

    Notes
    -----
    With several classes, outputs or tasks, each part of the penalty's sum is applied to the p coefficients of each of
    them for itself. It is applied to all coefficients at once, one output's p after the other's, if it has a parameter
    `n_outputs` (which is filled in; ``fenchel.MultiTaskLasso()`` takes a feature in or out for all), or an
    attribute ``joint = True``, or does not fit p coefficients but all of them (``fenchel.TraceNorm((classes, p))``).

    Ctrl-C ends a fit with a KeyboardInterrupt; the model then holds the best answer so far.

    Examples
    --------
    >>> import fenchel as fl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = fl.StructuredClassifier(alpha=0.01).fit(X, y)
    >>> model.coef_.shape, bool(model.gap_ < 1e-6)
    ((3, 4), True)
    """

    def __init__(
        self,
        loss: Loss | str = "logistic",
        penalty: Penalty | str | None = None,
        alpha: float = 0.01,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        warm_start: bool = False,
        random_state: Any = 0,
        class_weight: Mapping[Any, float] | str | None = None,
        multi_class: str = "auto",
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.warm_start = warm_start
        self.random_state = random_state
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.verbose = verbose
        self.solver_options = solver_options


class StructuredRegressor(_Regresses, OneAlpha):
    """A linear regression with a structured penalty.

    Minimises the weighted mean of the loss plus ``alpha * penalty``. Several outputs, or tasks with rows of their own,
    form one problem, so that a penalty can couple them.

    Parameters
    ----------
    loss : str or Loss
        "squared", "huber", "quantile", "epsilon-insensitive", "poisson" (with the log link), or a loss object such as
        ``fenchel.Quantile(0.9)``. The squared loss has a factor 1/2, as scikit-learn's Lasso.
    penalty, alpha, fit_intercept, tol, max_epochs, warm_start, random_state, verbose, solver_options
        As in :class:`StructuredClassifier`.

    Attributes
    ----------
    coef_ : array (p,), (outputs, p) or (tasks, p)
    intercept_ : float, or array (outputs,) or (tasks,)
    tasks_, gap_, status_, n_iter_, result_, n_features_in_, feature_names_in_
        As in :class:`StructuredClassifier`, whose notes on several outputs hold here too.

    Examples
    --------
    >>> import fenchel as fl
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = fl.StructuredRegressor(penalty=fl.L1() @ fl.Difference(10), alpha=1).fit(X, y)
    >>> model.segments()["size"].tolist()
    [7, 3]
    """

    def __init__(
        self,
        loss: Loss | str = "squared",
        penalty: Penalty | str | None = None,
        alpha: float = 0.01,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        warm_start: bool = False,
        random_state: Any = 0,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options


class StructuredClassifierCV(_Classifies, CrossValidated):
    """A structured classifier whose alpha is found by cross-validation over warm-started paths.

    Parameters
    ----------
    loss, penalty, fit_intercept, tol, max_epochs, random_state, class_weight, multi_class, verbose, solver_options
        As in :class:`StructuredClassifier`.
    alphas, n_alphas, eps
        As in :func:`fenchel.path`: the values to try, or how many, and down to which share of the largest useful one.
    cv : int, splitter, or list of (training rows, held-out rows)
        Folds; stratified for a number.
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
        On all rows, down to the alpha picked.
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
        eps: float = 1e-3,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
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
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.random_state = random_state
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.verbose = verbose
        self.solver_options = solver_options


class StructuredRegressorCV(_Regresses, CrossValidated):
    """A structured regression whose alpha is found by cross-validation over warm-started paths.

    Parameters
    ----------
    loss, penalty, fit_intercept, tol, max_epochs, random_state, verbose, solver_options
        As in :class:`StructuredRegressor`.
    alphas, n_alphas, eps, cv, scoring, selection, n_jobs
        As in :class:`StructuredClassifierCV`.

    Attributes
    ----------
    alpha_, alphas_, cv_results_, path_
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
        eps: float = 1e-3,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        random_state: Any = 0,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options
