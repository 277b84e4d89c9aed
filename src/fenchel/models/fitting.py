"""What the scikit-learn estimators share: fitting once or by cross-validation, scores, structure, callbacks."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validate import AnyArray, Array, Frame, Ints, MatrixLike
from ..problem import Problem
from ..solver import solve
from ..solver.loop import warm_from
from ..solver.polish import polish
from ..solver.result import Status
from . import columns
from . import preparation as helpers
from .cross_validation import cross_validate_path
from .paths import Path, path

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..losses.base import Loss
    from ..penalties.base import Penalty
    from ..solver.result import Result, Snapshot


if TYPE_CHECKING:  # scikit-learn's have no types, and would take those of what they decorate
    _Decorated = TypeVar("_Decorated", bound=Callable[..., Any])

    class CallbackSupportMixin: ...

    def with_callbacks(method: _Decorated) -> _Decorated: ...

else:
    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # before scikit-learn 1.9

        class CallbackSupportMixin:
            """Stands in for scikit-learn's; without callbacks."""

        def with_callbacks(method):
            return method


class Hooks:
    """scikit-learn's callbacks around a fit: one task, with a subtask per certificate or per point of a path."""

    def __init__(self, model: Any, X: MatrixLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> None:
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self.model, self.given = model, {"X": X, "y": y, "metadata": metadata}
        self.context: Any = None
        if hasattr(model, "_init_callback_context"):
            self.context = model._init_callback_context(max_subtasks=None)
            self.context.call_on_fit_task_begin(estimator=model, **self.given)

    @property
    def wanted(self) -> bool:
        return bool(getattr(self.model, "_skl_callbacks", None))

    def subtask(self, name: str, coef: Array, intercept: Array | float) -> bool:
        """Tell of one step; true where a callback asks to stop."""
        task = self.context.subcontext(task_name=name)
        task.call_on_fit_task_begin(estimator=self.model, **self.given)
        out: bool = task.call_on_fit_task_end(
            estimator=self.model,
            reconstruction_attributes=lambda: self.model._shaped(coef, intercept),
            **self.given,
        )
        return out

    def finish(self) -> None:
        if self.context is not None:
            self.context.call_on_fit_task_end(estimator=self.model, reconstruction_attributes={}, **self.given)


class Structured(CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """What the classifier and the regressor share, fitted once or cross-validated."""

    _classification: bool
    coef_: Array
    intercept_: Any  # a number, or one for every output
    result_: Result
    tasks_: AnyArray
    n_features_in_: int
    _mean: Array | None = None  # of the columns, while fitting to centred ones

    # -- fitting ------------------------------------------------------------------------------------

    def _fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        target: Array,
        sample_weight: npt.ArrayLike | None,
        task: npt.ArrayLike | None,
    ) -> Self:
        """Make the problem, solve it, keep the answer."""
        loss = self._loss_in_use()
        codes: Ints | None = None
        if hasattr(self, "tasks_"):
            del self.tasks_
        if task is not None:
            if target.ndim > 1:
                raise ValueError("task goes with one output or two classes; y has more")
            self.tasks_, codes = helpers.encode_tasks(task, len(target))
        outputs = len(self.tasks_) if task is not None else 1 if target.ndim == 1 else target.shape[1]
        if not isinstance(self.fit_intercept, (bool, np.bool_)):
            raise ValueError(f"fit_intercept is {self.fit_intercept!r}; it must be True or False")
        penalty = helpers.for_outputs(self._named_penalty(), outputs, X.shape[1])
        rows, self._mean = columns.centred(X) if self.fit_intercept else (X, None)
        problem = Problem(
            rows, target, loss=loss, penalty=penalty, alpha=self._alpha(), sample_weight=sample_weight,
            fit_intercept=bool(self.fit_intercept), task=codes,
        )  # fmt: skip
        hooks = Hooks(self, X, y, sample_weight)
        seed = helpers.as_seed(self.random_state)
        try:
            result = self._solve(problem, y, seed, hooks)
            for name, value in self._shaped(result.coef, result.intercept).items():
                setattr(self, name, value)
            if self._mean is not None:
                result = columns.moved_back(result, self._mean)
        finally:
            del self._mean
        self.n_iter_, self.gap_, self.status_, self.result_ = result.epochs, result.gap, result.status, result
        hooks.finish()
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        helpers.warn_unless_converged(type(self).__name__, result, self.tol)
        return self

    def _loss_in_use(self) -> Loss:
        """The loss of the problem."""
        return helpers.as_loss(self.loss, self._classification)

    def _limits(self, seed: int) -> dict[str, Any]:
        return {"tol": self.tol, "max_epochs": self.max_epochs, "random_state": seed}

    def _shaped(self, coef: Array, intercept: Array | float) -> dict[str, Any]:
        """coef_ and intercept_ as scikit-learn has them: rows for classes and outputs, a vector for one regression."""
        coef = coef + 0.0  # no -0.0
        if self._mean is not None:
            intercept = intercept - coef @ self._mean
        if self._classification:
            coef, intercept = np.atleast_2d(coef), np.atleast_1d(np.asarray(intercept, dtype=float))
        return {"coef_": coef, "intercept_": intercept}

    # -- prediction ---------------------------------------------------------------------------------

    def _scores(self, X: MatrixLike, task: npt.ArrayLike | None) -> Array:
        """X coef + intercept: (n,) for one output or with tasks, otherwise (n, outputs)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32], reset=False)
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
        out: Array = scores[:, 0] if scores.ndim == 2 and self.coef_.shape[0] == 1 and self._classification else scores
        return out

    # -- structure ----------------------------------------------------------------------------------

    def support(self) -> Frame:
        """The features with a non-zero coefficient, by name; see :func:`fenchel.structure.support`.

        Names are those of the data frame in `fit`, or those that the penalty's structure knows. Several outputs are
        told apart by the class or the task.

        Returns
        -------
        pandas.DataFrame
        """
        from ..structure import support

        check_is_fitted(self)
        return support(self._plain_coef(), self._feature_names(), self._output_names())

    def active_groups(self, groups: Any = None) -> Frame:
        """The groups with a non-zero coefficient; see :func:`fenchel.structure.active_groups`.

        Parameters
        ----------
        groups : Groups, or what makes one, optional
            By default the groups of the penalty.

        Returns
        -------
        pandas.DataFrame
        """
        from ..structure import active_groups, as_groups

        check_is_fitted(self)
        if groups is None:
            groups = helpers.find_groups(self._named_penalty(), self.n_features_in_)
        if groups is None:
            raise ValueError(f"{self.penalty!r} has no groups; give groups")
        coef, groups = self._plain_coef(), as_groups(groups)
        # the groups of a joint penalty may hold the coefficients of all outputs
        last = max(group.max() for group in groups.members)
        found = active_groups(coef.ravel() if last >= self.n_features_in_ else coef, groups)
        names = self._feature_names()
        if names is not None and len(groups) == self.n_features_in_ and groups.names[-1] == str(len(groups) - 1):
            found.index = found.index.map(lambda number: names[int(number)])  # single features
        return found

    def segments(self, structure: Any = None) -> Frame:
        """Neighbouring features that share one value; see :func:`fenchel.structure.segments`.

        Parameters
        ----------
        structure : Graph, Grid, edges, "line" or "sizes", optional
            What joins the features; "sizes" joins those of one absolute value. By default what the penalty holds.

        Returns
        -------
        pandas.DataFrame
        """
        from ..structure import segments

        check_is_fitted(self)
        if structure is None:
            structure = helpers.find_graph(self._named_penalty(), self.n_features_in_)
            if structure is None:
                raise ValueError(f"{self.penalty!r} joins no features; give structure")
        return segments(self._plain_coef(), structure, self._feature_names(), self._output_names())

    def _named_penalty(self) -> Penalty | None:
        """The penalty, which speaks of the features by the names that the data has, if it has any."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            out: Penalty | None = self.penalty
            return out
        penalty = helpers.with_names(self.penalty, names)
        helpers.check_names(penalty, names)
        return penalty

    def _feature_names(self) -> Any:
        """Names of the features: those of the data frame, or those that the penalty's structure knows."""
        p = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            return self.feature_names_in_
        for find in (helpers.find_groups, helpers.find_graph):
            names = getattr(find(self.penalty, p), "features", None)
            if names is not None and len(names) == p:
                return names
        return None

    def _output_names(self) -> Any:
        return getattr(self, "tasks_", getattr(self, "classes_", None)) if len(np.atleast_2d(self.coef_)) > 1 else None

    def _plain_coef(self) -> Array:
        return self.coef_[0] if self.coef_.ndim == 2 and len(self.coef_) == 1 else self.coef_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OneAlpha(Structured):
    """A fit for one alpha."""

    def _alpha(self) -> float:
        out: float = self.alpha
        return out

    def _solve(self, problem: Problem, y: npt.ArrayLike, seed: int, hooks: Hooks) -> Result:
        def tell(snapshot: Snapshot) -> bool:
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


class CrossValidated(Structured):
    """A fit for the alpha that cross-validation picks."""

    def _alpha(self) -> float:
        return 1.0

    def _solve(self, problem: Problem, y: npt.ArrayLike, seed: int, hooks: Hooks) -> Result:
        if self.selection not in ("min", "1se"):
            raise ValueError(f"selection is {self.selection!r}; it must be 'min' or '1se'")
        shared = {"solver_options": self.solver_options, **self._limits(seed)}
        folds = list(check_cv(self.cv, y, classifier=self._classification).split(np.zeros((problem.n, 1)), y))
        if problem.loss.coupled:
            helpers.check_folds(folds, y, self.classes_, problem.weight if problem.weight.size else None)
        self.cv_results_ = cross_validate_path(
            problem, cv=folds, score=self._score_function(hooks.given), n_jobs=self.n_jobs, alphas=self.alphas,
            n_alphas=self.n_alphas, eps=self.eps, **shared,
        )  # fmt: skip
        self.alphas_ = self.cv_results_.alphas
        index = self.cv_results_.select(self.selection)
        self.alpha_ = float(self.alphas_[index])

        def tell(alpha: float, result: Result) -> bool:
            return hooks.subtask("alpha", result.coef, result.intercept)

        self.path_ = path(
            problem, alphas=self.alphas_[: index + 1], verbose=bool(self.verbose),
            callback=tell if hooks.wanted else None, **shared,
        )  # fmt: skip
        if len(self.path_) <= index and not hooks.wanted:
            raise KeyboardInterrupt
        reached = self.cv_results_.converged
        if not reached.all():
            worst = self.cv_results_.relative_gaps.max()
            helpers.warn(
                f"{np.count_nonzero(~reached)} of {reached.size} fits of the folds stopped before tol = {self.tol:g} "
                f"(largest relative gap {worst:.1e}); raise max_epochs, tol or eps"
            )
        last = polish(problem.with_alpha(self.path_.alphas[-1]), self.path_[-1])
        if self._mean is not None:
            results = [columns.moved_back(result, self._mean) for result in self.path_]
            self.path_ = Path(self.path_.alphas, results, self.path_.tol)
        return last

    def _score_function(self, given: dict[str, Any]) -> Callable[..., float] | None:
        """The scorer as a function of coefficients, intercept and held-out rows; None for the mean loss."""
        if self.scoring is None:
            return None
        if hasattr(self, "tasks_"):
            raise ValueError("scoring does not go with tasks; leave it out to score by the mean loss")
        scorer = check_scoring(self, scoring=self.scoring)
        X, y, weight = given["X"], given["y"], (given["metadata"] or {}).get("sample_weight")
        takes_weight = "sample_weight" in inspect.signature(getattr(scorer, "_score_func", scorer)).parameters

        def score(coef: Array, intercept: float, rows: Ints) -> float:
            model = copy.copy(self)
            for name, value in self._shaped(coef, intercept).items():
                setattr(model, name, value)
            weighted = {"sample_weight": weight[rows]} if weight is not None and takes_weight else {}
            out: float = scorer(model, X[rows], y[rows], **weighted)
            return out

        return score
