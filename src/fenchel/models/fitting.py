"""What the scikit-learn estimators share: fitting once or by cross-validation, scores, structure, callbacks."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validate import AnyArray, Array, Frame, Ints, MatrixLike, sound
from ..data import Pool
from ..penalties import Penalty
from ..penalties.group_lasso import GroupLasso
from ..problem import Problem
from ..solver import solve
from ..solver.loop import warm_from
from ..solver.polish import polish
from ..solver.result import Status
from . import preparation as helpers
from .columns import Scaling, prepared
from .parameters import check_parameters
from .paths import split_limit
from .pooled import pooled_problem, seen_rows
from .relaxed import refit, shares_of

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..formulas.design import Design
    from ..losses.base import Loss
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

    def __init__(self, model: Any, X: MatrixLike, y: npt.ArrayLike | None, **metadata: npt.ArrayLike | None) -> None:
        given = {name: value for name, value in metadata.items() if value is not None}
        self.model, self.given = model, {"X": X, "y": y, "metadata": given or None}
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
    penalty_: Penalty | None
    n_features_in_: int
    design_: Any
    scale_: Array | None
    _scaling: Scaling | None = None  # of the columns, while fitting to others
    _coupled = False  # whether its loss is one function of all scores
    _with_offset = False  # whether it was fitted with one, so that scores need theirs
    _held_offset: Array | None = None  # of the rows that a scorer asks about, who cannot give it

    # -- fitting ------------------------------------------------------------------------------------

    def _fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike,
        target: Array,
        sample_weight: Array | None,
        task: npt.ArrayLike | None,
        offset: npt.ArrayLike | None = None,
    ) -> Self:
        """Make the problem, solve it, keep the answer."""
        check_parameters(self)
        loss = self._loss_in_use()
        codes: Ints | None = None
        if hasattr(self, "tasks_"):
            del self.tasks_
        if task is not None:
            if target.ndim > 1:
                raise ValueError("task goes with one output or two classes; y has more")
            self.tasks_, codes = helpers.encode_tasks(task, len(target))
        outputs = len(self.tasks_) if task is not None else 1 if target.ndim == 1 else target.shape[1]
        self.penalty_ = self._named_penalty()
        penalty = helpers.for_outputs(self.penalty_, outputs, X.shape[1])
        rows, self._scaling = prepared(
            X, sample_weight, bool(self.fit_intercept) or self._coupled, bool(self.standardize)
        )
        problem = Problem(
            rows, target, loss=loss, penalty=penalty, alpha=1.0, sample_weight=sample_weight,
            fit_intercept=bool(self.fit_intercept), task=codes, offset=offset,
        )  # fmt: skip
        self._with_offset = offset is not None
        return self._answer(problem, X, y, sample_weight=sample_weight, offset=offset)

    def _fit_pool(self, pool: Pool, **given: Any) -> Self:
        """The same for rows in a pool."""
        check_parameters(self)
        if any(shares_of(self.relax)):
            raise ValueError(f"relax is {self.relax!r}; rows in {pool.home} are fitted without it")
        self.penalty_ = self._named_penalty()
        problem = pooled_problem(self, pool, **given)
        self._scaling = None if problem.scale is None else Scaling(problem.scale)
        self._with_offset = bool(pool.facts.offset)
        return self._answer(problem, pool, given["y"])

    def _answer(
        self, problem: Problem, X: MatrixLike, y: npt.ArrayLike | None, **metadata: npt.ArrayLike | None
    ) -> Self:
        """Solve a problem, and keep the answer."""
        hooks = Hooks(self, X, y, **metadata)
        seed = helpers.as_seed(self.random_state)
        try:
            result = self._solve(problem, y, seed, hooks)
            coef, intercept = result.coef, result.intercept
            if getattr(self, "relax_", 0.0):
                coef, intercept = self._relaxed(problem.with_alpha(self.alpha_), result)
            for name, value in self._shaped(coef, intercept).items():
                setattr(self, name, value)
            if self._scaling is not None:
                result = self._scaling.moved_back(result)
        finally:
            scaling = self._scaling
            del self._scaling
        self.scale_ = scaling.scale if scaling is not None and self.standardize else None
        self.n_iter_, self.gap_, self.status_, self.result_ = result.epochs, result.gap, result.status, result
        hooks.finish()
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        helpers.warn_unless_converged(type(self).__name__, result, self.tol)
        return self

    @classmethod
    def from_formula(cls, formula: str, frame: Frame, **options: Any) -> Self:
        """A model of a formula, fitted to a data frame; see :func:`fenchel.design`.

        Parameters
        ----------
        formula : str
            Such as ``"claims ~ C(region) + bs(age, 5) + bonus + offset(log(exposure))"``.
        frame : pandas.DataFrame
        options
            Parameters of the model, and `sample_weight`. By default the penalty is the group lasso of the terms: each
            is in or out as a whole.

        Returns
        -------
        model
            It predicts frames with the formula's columns; `design_` makes ``new = model.design_.of(frame)`` of other
            rows, for ``model.predict(new.X, offset=new.offset)``.
        """
        from ..formulas import design

        made = design(formula, frame)
        if made.y is None:
            raise ValueError(f"formula is {formula!r}; it needs a target, as in 'y ~ {formula.strip().lstrip('~')}'")
        weight = options.pop("sample_weight", None)
        options = {"penalty": GroupLasso(made.groups), "fit_intercept": made.fit_intercept, **options}
        model: Self = cls(**options).fit(made.X, made.y, sample_weight=weight, offset=made.offset)
        model.design_ = made
        return model

    def _loss_in_use(self) -> Loss:
        """The loss of the problem."""
        return helpers.as_loss(self.loss, self._classification, self._coupled)

    def _limits(self, seed: int) -> dict[str, Any]:
        return {"tol": self.tol, "max_epochs": self.max_epochs, "random_state": seed}

    def _shaped(self, coef: Array, intercept: Array | float) -> dict[str, Any]:
        """coef_ and intercept_ as scikit-learn has them: rows for classes and outputs, a vector for one regression."""
        coef = coef + 0.0  # no -0.0
        if self._scaling is not None:
            coef, intercept = self._scaling.undo(coef, intercept)
        return self._shaped_plainly(coef, intercept)

    def _shaped_plainly(self, coef: Array, intercept: Array | float) -> dict[str, Any]:
        """The same for coefficients in the data's units."""
        if self._classification:
            coef, intercept = np.atleast_2d(coef), np.atleast_1d(np.asarray(intercept, dtype=float))
        return {"coef_": coef, "intercept_": intercept}

    def _relaxed(self, problem: Problem, result: Result) -> tuple[Array, Any]:
        """The mixture of an answer and its refit without penalty; the answer itself, with a warning, if none exists."""
        found = refit(problem, result, self.tol)
        if found is None:
            helpers.warn(
                "relax: there is no refit without penalty on the structure found (as many free coefficients as rows, "
                "or classes that it tells apart); the penalised answer stands"
            )
            self.relax_ = 0.0
            return result.coef, result.intercept
        coef, intercept, self.refit_ = found
        share = self.relax_
        return (1 - share) * result.coef + share * coef, (1 - share) * result.intercept + share * intercept

    # -- files and others ----------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model as JSON, whole or not at all; :func:`fenchel.load_model` reads it.

        So does the command line. No code is stored or run. The history of the run is left out.
        """
        from .saved_estimator import to_model

        to_model(self).save(os.fspath(path))

    def to_sklearn(self) -> Any:
        """A fitted model of scikit-learn that predicts the same, for all that knows those: ONNX, explainers, servers.

        A ``LogisticRegression`` for the logistic loss (for several classes one of each, in a ``OneVsRestClassifier``),
        a ``LinearSVC`` for the other losses of labels, a ``LinearRegression`` for numbers, a ``PoissonRegressor`` where
        the link is the logarithm.
        """
        from .saved_estimator import to_sklearn

        return to_sklearn(self)

    def __getstate__(self) -> Any:
        """The status goes by its name: not all that saves estimators knows enums."""
        state = dict(super().__getstate__())
        if isinstance(state.get("status_"), Status):
            state["status_"] = state["status_"].name
        return state

    def __setstate__(self, state: Any) -> None:
        if isinstance(state.get("status_"), str):
            state = {**state, "status_": Status[state["status_"]]}
        super().__setstate__(state)

    # -- prediction ---------------------------------------------------------------------------------

    def _scores(self, X: MatrixLike, task: npt.ArrayLike | None, offset: npt.ArrayLike | None = None) -> Array:
        """X coef + intercept + offset: (n,) for one output or with tasks, otherwise (n, outputs)."""
        check_is_fitted(self)
        if isinstance(X, Pool):
            return seen_rows(self, X, task=task, offset=offset).scores
        made = self._by_formula(X)
        if made is not None:
            X, offset = made.X, made.offset if offset is None else offset
        offset = self._held_offset if offset is None else offset
        if offset is None and self._with_offset:
            raise ValueError(f"{type(self).__name__} was fitted with an offset; give that of these rows (or offset=0)")
        return helpers.shifted(self._products(X, task), offset)

    def _by_formula(self, X: Any) -> Design | None:
        """What the formula of the fit makes of a data frame as that had; None for features that were made already."""
        design: Design | None = getattr(self, "design_", None)
        if design is None or not hasattr(X, "columns") or set(design.X.columns) <= set(X.columns):
            return None
        return design.of(X)

    def _products(self, X: MatrixLike, task: npt.ArrayLike | None) -> Array:
        """The scores without offset."""
        sound("X", X)
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

        Of a latent group lasso these are the groups whose part in the coefficients is not zero, with that part's norm.

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
        coef = self._plain_coef(penalised=True)
        if groups is None:
            penalty = self.penalty_
            groups = helpers.find_groups(penalty, self.n_features_in_)
            if penalty is None or groups is None:
                raise ValueError(f"{self.penalty!r} has no groups; give groups")
            found = active_groups(coef, penalty)
        else:
            groups = as_groups(groups)
            # the groups may hold the coefficients of all outputs
            found = active_groups(coef.ravel() if groups.flat.max() >= self.n_features_in_ else coef, groups)
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
            structure = helpers.find_graph(self.penalty_, self.n_features_in_)
            if structure is None:
                raise ValueError(f"{self.penalty!r} joins no features; give structure")
        return segments(self._plain_coef(penalised=True), structure, self._feature_names(), self._output_names())

    def _named_penalty(self) -> Penalty | None:
        """The penalty for the columns of the data, which it may know by name."""
        names = getattr(self, "feature_names_in_", None)
        penalty: Penalty | None = self.penalty
        return penalty if names is None or not isinstance(penalty, Penalty) else penalty.for_columns(names)

    def _feature_names(self) -> Any:
        """Names of the features: those of the data frame, or those that the penalty's structure knows."""
        p = self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            return self.feature_names_in_
        for find in (helpers.find_groups, helpers.find_graph):
            names = getattr(find(self.penalty_, p), "features", None)
            if names is not None and len(names) == p:
                return names
        return None

    def _output_names(self) -> Any:
        return getattr(self, "tasks_", getattr(self, "classes_", None)) if len(np.atleast_2d(self.coef_)) > 1 else None

    def _plain_coef(self, penalised: bool = False) -> Array:
        """The coefficients, a vector for one output; as the penalty saw them if it acted on standardised columns."""
        coef = self.coef_[0] if self.coef_.ndim == 2 and len(self.coef_) == 1 else self.coef_
        return coef * self.scale_ if penalised and self.scale_ is not None else coef

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class OneAlpha(Structured):
    """A fit for one alpha."""

    def _solve(self, problem: Problem, y: npt.ArrayLike | None, seed: int, hooks: Hooks) -> Result:
        def tell(snapshot: Snapshot) -> bool:
            return hooks.subtask("certificate", snapshot.coef, snapshot.intercept)

        if self.alpha_ratio is None:
            self.alpha_ = float(self.alpha)
        else:
            self.alpha_ = self.alpha_ratio * helpers.largest_alpha(problem)
        problem, warm = problem.with_alpha(self.alpha_), None
        if self.warm_start and hasattr(self, "result_"):
            warm = self.result_ if problem.pooled else warm_from(problem, self.result_.state)
        limit, options = split_limit(self.time_limit, self.solver_options)
        result = solve(
            problem, warm_start=warm, callback=tell if hooks.wanted else None, progress=bool(self.verbose),
            time_limit=limit, **self._limits(seed), **options,
        )  # fmt: skip
        (self.relax_,) = shares_of(float(self.relax) if isinstance(self.relax, (bool, np.bool_)) else self.relax)
        result = polish(problem, result)
        return result if self.warm_start else dataclasses.replace(result, state={})
