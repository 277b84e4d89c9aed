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
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validate import AnyArray, Array, MatrixLike, sound
from ..data import Pool, check_numeric
from . import preparation as helpers
from .fitting import OneAlpha, with_callbacks
from .judging import deviance_explained
from .pooled import seen_rows

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
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
            float32 is kept as it is. Dense data is copied where neither rows nor columns are contiguous, or where a
            column lies far from zero (more than ten standard deviations) and there is an intercept: the copy is then
            centred. Or rows that :func:`fenchel.open_data` opened, which have their own y, weights and tasks.
        y : vector of n labels
        sample_weight : vector of n weights, optional
        task : vector of n task names or numbers, optional
            Rows of one task have coefficients of their own; a penalty may couple them. For two classes.
        offset : vector of n numbers, optional
            Added to the scores: what is known of a row beforehand. The predictions ask for it, too.

        Returns
        -------
        self
        """
        if isinstance(X, Pool):
            found: Self = self._fit_pool(X, y=y, sample_weight=sample_weight, task=task, offset=offset)
            return found
        check_numeric(X)
        with helpers.gaps_named(X, y):
            X, y = validate_data(self, sound("X", X), y, **_ACCEPTED)
        X = helpers.contiguous(X)
        check_classification_targets(y)
        weight = helpers.row_weights(sample_weight, self.class_weight, y, X)
        self.classes_, code = helpers.encode_classes(y, weight)
        target = helpers.class_targets(code, len(self.classes_), self._loss_in_use())
        out: Self = self._fit(X, y, target, weight, task, offset)
        return out

    def _shaped(self, coef: Array, intercept: Array | float) -> dict[str, Any]:
        """Losses of all classes together do not see what all intercepts share: their mean is made zero."""
        shaped: dict[str, Any] = super()._shaped(coef, intercept)
        if self._loss_in_use().coupled:
            shaped["intercept_"] = shaped["intercept_"] - shaped["intercept_"].mean()
        return shaped

    def _loss_in_use(self) -> Loss:
        loss = helpers.as_loss(self.loss, True)
        return helpers.loss_of_classes(loss, self.multi_class, len(self.classes_))

    def decision_function(
        self, X: MatrixLike, task: npt.ArrayLike | None = None, offset: npt.ArrayLike | None = None
    ) -> Array:
        """Scores: (n,) for two classes, positive for the second; otherwise (n, classes)."""
        out: Array = self._scores(X, task, offset)
        return out

    def predict(
        self, X: MatrixLike, task: npt.ArrayLike | None = None, offset: npt.ArrayLike | None = None
    ) -> AnyArray:
        """The label of every row. X may also be rows that :func:`fenchel.open_data` opened: they are read once."""
        return self._labels_of(self._scores(X, task, offset))

    def _labels_of(self, scores: Array) -> AnyArray:
        out: AnyArray = self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]
        return out

    @available_if(helpers.has_likelihood)  # type: ignore[untyped-decorator]  # of scikit-learn, which has no types
    def predict_proba(
        self, X: MatrixLike, task: npt.ArrayLike | None = None, offset: npt.ArrayLike | None = None
    ) -> Array:
        """Probabilities (n, classes), for the logistic and the multinomial loss: the softmax of the scores. With
        ``multi_class="ovr"`` those of each class against the rest, normalised."""
        scores = self._scores(X, task, offset)
        return helpers.class_probabilities(self._loss_in_use(), scores)

    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> float:
        """The share of rows that are labelled rightly. Rows in a pool have targets and weights of their own."""
        if isinstance(X, Pool):
            check_is_fitted(self)
            seen = seen_rows(self, X, y=y, sample_weight=sample_weight, task=task, offset=offset)
            share: float = accuracy_score(seen.target, self._labels_of(seen.scores), sample_weight=seen.weight)
            return share
        helpers.check_target_given(self, y)
        out: float = accuracy_score(y, self.predict(X, task, offset), sample_weight=sample_weight)
        return out


class _Regresses(RegressorMixin):  # type: ignore[misc]  # scikit-learn has no types
    """Numbers: in, and out."""

    _classification = False

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
            float32 is kept as it is. Dense data is copied where neither rows nor columns are contiguous, or where a
            column lies far from zero (more than ten standard deviations) and there is an intercept: the copy is then
            centred. Or rows that :func:`fenchel.open_data` opened, which have their own y, weights and tasks.
        y : vector of n targets, or (n, outputs)
        sample_weight : vector of n weights, optional
        task : vector of n task names or numbers, optional
            Rows of one task have coefficients of their own; a penalty may couple them. For one output.
        offset : vector of n numbers, optional
            Added to the scores: what is known of a row beforehand, for counts the logarithm of the exposure. The
            predictions ask for it, too.

        Returns
        -------
        self
        """
        if isinstance(X, Pool):
            found: Self = self._fit_pool(X, y=y, sample_weight=sample_weight, task=task, offset=offset)
            return found
        check_numeric(X)
        helpers.check_numbers_of(y)
        with helpers.gaps_named(X, y):
            X, y = validate_data(self, sound("X", X), y, multi_output=True, y_numeric=True, **_ACCEPTED)
        X = helpers.contiguous(X)
        weight = helpers.row_weights(sample_weight, None, y, X)
        out: Self = self._fit(X, y, y, weight, task, offset)
        return out

    def predict(self, X: MatrixLike, task: npt.ArrayLike | None = None, offset: npt.ArrayLike | None = None) -> Array:
        """The target of every row: (n,) or (n, outputs); with the log link (Poisson, Gamma, …) its mean. X may also be
        rows that :func:`fenchel.open_data` opened: they are read once."""
        scores = self._scores(X, task, offset)
        return helpers.as_loss(self.loss, False).mean(scores)

    def score(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> float:
        """The coefficient of determination, R^2; for a likelihood such as Poisson's or Gamma's D^2, the share of the
        deviance that is explained (with an offset: compared with the best constant beside it). Rows in a pool have
        targets and weights of their own."""
        loss = helpers.as_loss(self.loss, False)
        if isinstance(X, Pool):
            check_is_fitted(self)
            seen = seen_rows(self, X, y=y, sample_weight=sample_weight, task=task, offset=offset)
            if loss.deviance:
                return deviance_explained(loss, seen.scores, seen.target.astype(float), seen.weight, seen.offset)
            share: float = r2_score(seen.target, loss.mean(seen.scores), sample_weight=seen.weight)
            return share
        helpers.check_target_given(self, y)
        if loss.deviance:
            known = self._held_offset if offset is None else offset
            scores = self._scores(X, task, known)
            return deviance_explained(loss, scores, np.asarray(y, dtype=float), sample_weight, known)
        out: float = r2_score(y, self.predict(X, task, offset), sample_weight=sample_weight)
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
    alpha_ratio : float, optional
        In place of `alpha`, the share of the alpha from which on the penalised part of the answer is zero.
    standardize : bool
        The penalty acts on columns of unit deviation, as in glmnet. Coefficients are in the data's units; `segments`
        and `active_groups` look at those that the penalty saw. Sparse data is not filled.
    relax : float
        The share of a refit without penalty that has the structure found: the same zeros, ties and ranks. 1 is that
        refit alone, 0 none of it; it is 1 less the gamma of glmnet.
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
    time_limit : float, optional
        Seconds.
    verbose : bool
        Show a live line.
    solver_options : dict, optional
        Further options of :func:`fenchel.solve`, such as ``{"n_jobs": -1}``.

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
        With the history of the run; the solver's state only with `warm_start`. Always the penalised answer.
    alpha_ : float
        What multiplied the penalty.
    penalty_ : Penalty
        With its structure for the columns of this fit.
    scale_ : array of p deviations, or None
        Of the columns, if they were standardised.
    refit_ : fenchel.Result, if `relax` is not 0
        Of the refit, with its own certificate.
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
        alpha_ratio: float | None = None,
        standardize: bool = False,
        relax: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
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
        self.alpha_ratio = alpha_ratio
        self.standardize = standardize
        self.relax = relax
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
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
        "squared", "huber", "quantile", "epsilon-insensitive"; with the log link "poisson", "gamma", "tweedie",
        "negative-binomial"; or a loss object such as ``fenchel.Quantile(0.9)`` or ``fenchel.Tweedie(1.5)``. The squared
        loss has a factor 1/2, as scikit-learn's Lasso.
    penalty, alpha, alpha_ratio, standardize, relax, fit_intercept, tol, max_epochs, time_limit, warm_start
        As in :class:`StructuredClassifier`.
    random_state, verbose, solver_options
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
        alpha_ratio: float | None = None,
        standardize: bool = False,
        relax: float = 0.0,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        warm_start: bool = False,
        random_state: Any = 0,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.alpha_ratio = alpha_ratio
        self.standardize = standardize
        self.relax = relax
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options
