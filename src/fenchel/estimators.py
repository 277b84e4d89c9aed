"""scikit-learn estimators: linear models with a structured penalty, every fit with a certified duality gap."""

from __future__ import annotations

import copy
import dataclasses
import inspect

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, check_scoring, r2_score
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _estimator_data as helpers
from .losses import Poisson
from .newton import polish
from .paths import cross_validate_path, path, warm_from
from .problem import Problem
from .result import Status
from .solver import solve

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:
        """Stands in for scikit-learn's; without callbacks."""

    def with_callbacks(method):
        return method


_ACCEPTED = {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": "C"}


class _Hooks:
    """scikit-learn's callbacks around a fit: one task, with a subtask per certificate or per point of a path."""

    def __init__(self, model, X, y, sample_weight):
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.model, self.given = model, {"X": X, "y": y, "metadata": metadata}
        self.context = None
        if hasattr(model, "_init_callback_context"):
            self.context = model._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=model, **self.given)

    @property
    def wanted(self):
        return bool(getattr(self.model, "_skl_callbacks", None))

    def subtask(self, name, coef, intercept) -> bool:
        """Tell of one step; true where a callback asks to stop."""
        task = self.context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=self.model, **self.given)
        return task.call_on_fit_task_end(
            estimator=self.model,
            reconstruction_attributes=lambda: self.model._shaped(coef, intercept),
            **self.given,
        )

    def finish(self):
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.model, reconstruction_attributes={}, **self.given)


class _Structured(CallbackSupportMixin, BaseEstimator):
    """What the classifier and the regressor share, fitted once or cross-validated."""

    _classification: bool

    # -- fitting ------------------------------------------------------------------------------------

    def _fit(self, X, y, target, sample_weight, task):
        """Make the problem, solve it, keep the answer."""
        loss = helpers.as_loss(self.loss, self._classification)
        codes = None
        if hasattr(self, "tasks_"):
            del self.tasks_
        if task is not None:
            if target.ndim > 1:
                raise ValueError("task goes with one output or two classes; y has more")
            self.tasks_, codes = helpers.encode_tasks(task, len(target))
        outputs = len(self.tasks_) if task is not None else 1 if target.ndim == 1 else target.shape[1]
        problem = Problem(
            X, target, loss=loss, penalty=helpers.for_outputs(self.penalty, outputs, X.shape[1]), alpha=self._alpha(),
            sample_weight=sample_weight, fit_intercept=self.fit_intercept, task=codes,
        )  # fmt: skip
        hooks = _Hooks(self, X, y, sample_weight)
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        result = self._solve(problem, y, seed, hooks)
        for name, value in self._shaped(result.coef, result.intercept).items():
            setattr(self, name, value)
        self.n_iter_, self.gap_, self.status_, self.result_ = result.epochs, result.gap, result.status, result
        hooks.finish()
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        helpers.warn_unless_converged(type(self).__name__, result, self.tol)
        return self

    def _limits(self, seed):
        return {"tol": self.tol, "max_epochs": self.max_epochs, "random_state": seed}

    def _shaped(self, coef, intercept):
        """coef_ and intercept_ as scikit-learn has them: a row per class or output, a bare vector for one regression."""
        if self._classification:
            coef, intercept = np.atleast_2d(coef), np.atleast_1d(np.asarray(intercept, dtype=float))
        return {"coef_": coef, "intercept_": intercept}

    # -- prediction ---------------------------------------------------------------------------------

    def _scores(self, X, task):
        """X coef + intercept: (n,) for one output or with tasks, otherwise (n, outputs)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        if hasattr(self, "tasks_"):
            if task is None:
                raise ValueError(f"{type(self).__name__} was fitted with tasks; give the task of every row")
            _, codes = helpers.encode_tasks(task, X.shape[0], self.tasks_)
            scores = np.empty(X.shape[0])
            for k in np.unique(codes):
                rows = np.flatnonzero(codes == k)
                scores[rows] = safe_sparse_dot(X[rows], self.coef_[k]) + self.intercept_[k]
            return scores
        if task is not None:
            raise ValueError(f"{type(self).__name__} was fitted without tasks, but task was given")
        scores = safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_
        return scores[:, 0] if scores.ndim == 2 and self.coef_.shape[0] == 1 and self._classification else scores

    # -- structure ----------------------------------------------------------------------------------

    def support(self):
        """The features with a non-zero coefficient, by name; see :func:`fenchel.structure.support`.

        Returns
        -------
        pandas.DataFrame
        """
        from .structure import support

        check_is_fitted(self)
        return support(self._plain_coef(), getattr(self, "feature_names_in_", None))

    def active_groups(self, groups=None):
        """The groups with a non-zero coefficient; see :func:`fenchel.structure.active_groups`.

        Parameters
        ----------
        groups : Groups, or what makes one, optional
            By default the groups of the penalty.

        Returns
        -------
        pandas.DataFrame
        """
        from .structure import active_groups

        check_is_fitted(self)
        groups = helpers.find_groups(self.penalty) if groups is None else groups
        if groups is None:
            raise ValueError(f"{self.penalty!r} has no groups; give groups")
        coef = self._plain_coef()
        beyond = any(np.max(group, initial=0) >= self.n_features_in_ for group in groups if np.size(group) > 1)
        return active_groups(coef.ravel() if beyond and not np.isscalar(groups[0]) else coef, groups)

    def segments(self, structure=None):
        """Neighbouring features that share one value; see :func:`fenchel.structure.segments`.

        Parameters
        ----------
        structure : Graph, Grid, edges or "line", optional
            What joins the features. By default what the penalty holds.

        Returns
        -------
        pandas.DataFrame
        """
        from .structure import segments

        check_is_fitted(self)
        if structure is None:
            found = helpers.find_graph(self.penalty)
            if found is None:
                raise ValueError(f"{self.penalty!r} joins no features; give structure")
            structure = found[0]
        elif isinstance(structure, str) and structure == "line":
            structure = None
        return segments(self._plain_coef(), structure, getattr(self, "feature_names_in_", None))

    def _plain_coef(self):
        return self.coef_[0] if self.coef_.ndim == 2 and len(self.coef_) == 1 else self.coef_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _OneAlpha(_Structured):
    """A fit for one alpha."""

    def _alpha(self):
        return self.alpha

    def _solve(self, problem, y, seed, hooks):
        def tell(snapshot):
            return hooks.subtask("certificate", snapshot.coef, snapshot.intercept)

        warm = None
        if self.warm_start and hasattr(self, "result_"):
            warm = warm_from(problem, self.result_.state)
        result = solve(
            problem, warm_start=warm, callback=tell if hooks.wanted else None, progress=bool(self.verbose),
            **self._limits(seed), **(self.solver_options or {}),
        )  # fmt: skip
        result = polish(problem, result)
        return result if self.warm_start else dataclasses.replace(result, state={})


class _CrossValidated(_Structured):
    """A fit for the alpha that cross-validation picks."""

    def _alpha(self):
        return 1.0

    def _solve(self, problem, y, seed, hooks):
        if self.selection not in ("min", "1se"):
            raise ValueError(f"selection is {self.selection!r}; it must be 'min' or '1se'")
        shared = {"solver_options": self.solver_options, **self._limits(seed)}
        folds = list(check_cv(self.cv, y, classifier=self._classification).split(np.zeros((problem.n, 1)), y))
        self.cv_results_ = cross_validate_path(
            problem, cv=folds, score=self._score_function(hooks.given), n_jobs=self.n_jobs, alphas=self.alphas,
            n_alphas=self.n_alphas, eps=self.eps, **shared,
        )  # fmt: skip
        self.alphas_ = self.cv_results_.alphas
        index = self.cv_results_.select(self.selection)
        self.alpha_ = float(self.alphas_[index])

        def tell(alpha, result):
            return hooks.subtask("alpha", result.coef, result.intercept)

        self.path_ = path(
            problem, alphas=self.alphas_[: index + 1], verbose=bool(self.verbose),
            callback=tell if hooks.wanted else None, **shared,
        )  # fmt: skip
        reached = self.cv_results_.converged
        if not reached.all():
            worst = self.cv_results_.relative_gaps.max()
            helpers.warn(
                f"{np.count_nonzero(~reached)} of {reached.size} fits of the folds stopped before tol = {self.tol:g} "
                f"(largest relative gap {worst:.1e}); raise max_epochs, tol or eps"
            )
        last = self.path_[-1]
        return polish(problem.with_alpha(self.path_.alphas[-1]), last)

    def _score_function(self, given):
        """The scorer as a function of coefficients, intercept and held-out rows; None for the mean loss."""
        if self.scoring is None:
            return None
        if hasattr(self, "tasks_"):
            raise ValueError("scoring does not go with tasks; leave it out to score by the mean loss")
        scorer = check_scoring(self, scoring=self.scoring)
        X, y, weight = given["X"], given["y"], (given["metadata"] or {}).get("sample_weight")
        takes_weight = "sample_weight" in inspect.signature(getattr(scorer, "_score_func", scorer)).parameters

        def score(coef, intercept, rows):
            model = copy.copy(self)
            for name, value in self._shaped(coef, intercept).items():
                setattr(model, name, value)
            weighted = {"sample_weight": weight[rows]} if weight is not None and takes_weight else {}
            return scorer(model, X[rows], y[rows], **weighted)

        return score


class _Classifies(ClassifierMixin):
    """Labels: in, and out."""

    _classification = True

    @with_callbacks
    def fit(self, X, y, sample_weight=None, task=None):
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
            float32 is kept as it is; dense data that is not C-ordered is copied.
        y : vector of n labels
        sample_weight : vector of n weights, optional
        task : vector of n task names or numbers, optional
            Rows of one task have coefficients of their own; a penalty may couple them. For two classes.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, **_ACCEPTED)
        check_classification_targets(y)
        weight = helpers.row_weights(sample_weight, self.class_weight, y, X)
        self.classes_, target = helpers.encode_classes(y, weight)
        return self._fit(X, y, target, weight, task)

    def decision_function(self, X, task=None):
        """Scores: (n,) for two classes, positive for the second; otherwise (n, classes)."""
        return self._scores(X, task)

    def predict(self, X, task=None):
        """The label of every row."""
        scores = self._scores(X, task)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(lambda self: helpers.has_likelihood(self))
    def predict_proba(self, X, task=None):
        """Probabilities (n, classes), for the logistic loss; of several classes each against the rest, normalised."""
        scores = self._scores(X, task)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        shares = expit(scores)
        total = shares.sum(axis=1, keepdims=True)
        # far from all classes every share may underflow
        return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / shares.shape[1])

    def score(self, X, y, sample_weight=None, task=None):
        """The share of rows that are labelled rightly."""
        return accuracy_score(y, self.predict(X, task), sample_weight=sample_weight)


class _Regresses(RegressorMixin):
    """Numbers: in, and out."""

    _classification = False

    @with_callbacks
    def fit(self, X, y, sample_weight=None, task=None):
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
            float32 is kept as it is; dense data that is not C-ordered is copied.
        y : vector of n targets, or (n, outputs)
        sample_weight : vector of n weights, optional
        task : vector of n task names or numbers, optional
            Rows of one task have coefficients of their own; a penalty may couple them. For one output.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, multi_output=True, y_numeric=True, **_ACCEPTED)
        weight = helpers.row_weights(sample_weight, None, y, X)
        return self._fit(X, y, y, weight, task)

    def predict(self, X, task=None):
        """The target of every row: (n,) or (n, outputs); for the Poisson loss the expected count."""
        scores = self._scores(X, task)
        return np.exp(scores) if self.loss == "poisson" or isinstance(self.loss, Poisson) else scores

    def score(self, X, y, sample_weight=None, task=None):
        """The coefficient of determination, R^2."""
        return r2_score(y, self.predict(X, task), sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class StructuredClassifier(_Classifies, _OneAlpha):
    """A linear classifier with a structured penalty.

    Minimises the weighted mean of the loss plus ``alpha * penalty``. More than two classes are each set against the
    rest in one problem, so that a penalty can couple them (see Notes).

    Parameters
    ----------
    loss : str or Loss
        "logistic", "smoothed-hinge", "hinge", "squared-hinge", or a loss object.
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
    verbose : bool
        Show a live line.
    solver_options : dict, optional
        Further options of :func:`fenchel.solve`, such as ``{"time_limit": 60}``.

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
    `n_outputs` (which is filled in; ``fenchel.catalogue.MultiTaskLasso()`` takes a feature in or out for all), or an
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

    def __init__(self, loss="logistic", penalty=None, alpha=0.01, *, fit_intercept=True, tol=1e-6, max_epochs=1000,
                 warm_start=False, random_state=0, class_weight=None, verbose=False, solver_options=None):  # fmt: skip
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_epochs = max_epochs
        self.warm_start = warm_start
        self.random_state = random_state
        self.class_weight = class_weight
        self.verbose = verbose
        self.solver_options = solver_options


class StructuredRegressor(_Regresses, _OneAlpha):
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
    [10]
    """

    def __init__(self, loss="squared", penalty=None, alpha=0.01, *, fit_intercept=True, tol=1e-6, max_epochs=1000,
                 warm_start=False, random_state=0, verbose=False, solver_options=None):  # fmt: skip
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


class StructuredClassifierCV(_Classifies, _CrossValidated):
    """A structured classifier whose alpha is found by cross-validation over warm-started paths.

    Parameters
    ----------
    loss, penalty, fit_intercept, tol, max_epochs, random_state, class_weight, verbose, solver_options
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

    def __init__(self, loss="logistic", penalty=None, *, alphas=None, n_alphas=50, eps=1e-3, cv=5, scoring=None,
                 selection="min", n_jobs=None, fit_intercept=True, tol=1e-6, max_epochs=1000, random_state=0,
                 class_weight=None, verbose=False, solver_options=None):  # fmt: skip
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
        self.verbose = verbose
        self.solver_options = solver_options


class StructuredRegressorCV(_Regresses, _CrossValidated):
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

    def __init__(self, loss="squared", penalty=None, *, alphas=None, n_alphas=50, eps=1e-3, cv=5, scoring=None,
                 selection="min", n_jobs=None, fit_intercept=True, tol=1e-6, max_epochs=1000, random_state=0,
                 verbose=False, solver_options=None):  # fmt: skip
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
