"""A fit for the alpha, and the parameters of the penalty, that cross-validation picks."""

from __future__ import annotations

import copy
import dataclasses
import difflib
import inspect
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import ParameterGrid

from .._validate import Array, Ints, MatrixLike, warn_user
from ..penalties import L1, Penalty
from ..solver.polish import polish
from . import preparation as helpers
from .cross_validation import FOLD_TOL, CrossValidation, cross_validate_path
from .fitting import Hooks, Structured
from .folds import split
from .paths import Path, path, split_limit, until_from
from .progress import Bar
from .relaxed import shares_of
from .run_folds import run_folds

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..problem import Problem
    from ..solver.result import Result


@dataclasses.dataclass
class Variant:
    """One choice of the penalty's parameters and of the share of a refit, with its scores.

    Attributes
    ----------
    params : dict, of the penalty
    relax : float
    cv : CrossValidation
    path : Path, on all rows
    """

    params: dict[str, Any]
    relax: float
    cv: CrossValidation
    path: Path
    penalty: Penalty | None

    @property
    def best(self) -> float:
        """The best mean score; minus infinity where no alpha has one."""
        finite = self.cv.mean[np.isfinite(self.cv.mean)]
        return float(finite.max()) if finite.size else -math.inf


class GroupedFolds:
    """A fit with groups of rows that stay together in folds."""

    def fit(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        task: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
        groups: npt.ArrayLike | None = None,
    ) -> Self:
        """Find alpha by cross-validation, and fit the model on all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
        y : vector of n labels or targets, or (n, outputs)
        sample_weight : vector of n weights, optional
        task : vector of n task names or numbers, optional
        offset : vector of n numbers, optional
            Known parts of the scores.
        groups : vector of n labels, optional
            For a `cv` that keeps groups of rows together, such as ``GroupKFold()``.

        Returns
        -------
        self
        """
        self._groups_of_rows = groups
        try:
            out: Self = super().fit(X, y, sample_weight=sample_weight, task=task, offset=offset)  # type: ignore[misc]
        finally:
            del self._groups_of_rows
        return out


class CrossValidated(Structured):
    """A fit for the alpha that cross-validation picks."""

    _groups_of_rows: npt.ArrayLike | None = None
    cv_results_: CrossValidation
    path_: Path

    def _solve(self, problem: Problem, y: npt.ArrayLike | None, seed: int, hooks: Hooks) -> Result:
        if self.selection not in ("min", "1se"):
            raise ValueError(f"selection is {self.selection!r}; it must be 'min' or '1se'")
        if problem.pooled:
            return self._solve_pooled(problem, seed)
        rows = split(problem, self.cv, np.asarray(y), self._groups_of_rows)
        if problem.loss.coupled:
            helpers.check_folds(rows, np.asarray(y), self.classes_, problem.weight if problem.weight.size else None)
        grid = list(ParameterGrid(self.penalty_grid)) if self.penalty_grid is not None else [{}]
        limit, options = split_limit(self.time_limit, self.solver_options)
        until, score = until_from(limit), self._score_function(hooks.given)
        limits = {"solver_options": options, **self._limits(seed)}
        most = len(np.ravel(self.alphas)) if self.alphas is not None else self.n_alphas
        self.grid_results_: list[Variant] = []
        problems: list[Problem] = []
        with Bar(len(grid) * (len(rows) + 1) * most, bool(self.verbose)) as bar:
            for k, params in enumerate(grid):
                now = time.perf_counter()
                own = now + max(until - now, 0.0) / (len(grid) - k)  # what one does not use goes to those after it
                penalty, at = self._with_params(problem, params)
                found = self._variants(at, params, rows, score, own, limits, bar, hooks)
                self.grid_results_ += [dataclasses.replace(one, penalty=penalty) for one in found]
                problems += [at] * len(found)
        best = int(np.argmax([one.best for one in self.grid_results_]))
        chosen = self.grid_results_[best]
        self.cv_results_, self.path_, self.alphas_ = chosen.cv, chosen.path, chosen.cv.alphas
        self.best_params_, self.relax_, self.penalty_ = chosen.params, chosen.relax, chosen.penalty
        index = chosen.cv.select(self.selection)
        self.alpha_ = float(self.alphas_[index])
        self._warn_of_folds(chosen, index)
        last = polish(problems[best].with_alpha(self.alpha_), self.path_[index])
        self._move_path_back()
        return last

    def _move_path_back(self) -> None:
        """Coefficients of the path for the columns as they stand in the data."""
        if self._scaling is not None:
            results = [self._scaling.moved_back(result) for result in self.path_]
            self.path_ = Path(self.path_.alphas, results, self.path_.tol, self.path_.interrupted)

    def _solve_pooled(self, problem: Problem, seed: int) -> Result:
        """The same for rows in a pool, whose folds share their passes."""
        if self.penalty_grid is not None or self.scoring is not None:
            raise ValueError("penalty_grid and scoring are for rows in memory; a pool's folds are judged by their loss")
        _, options = split_limit(self.time_limit, self.solver_options)
        shared = {"solver_options": options, **self._limits(seed)}
        found = cross_validate_path(
            problem, cv=self.cv, alphas=self.alphas, n_alphas=self.n_alphas, eps=self.eps, **shared
        )  # fmt: skip
        self.cv_results_, self.alphas_, self.best_params_, self.relax_ = found, found.alphas, {}, 0.0
        index = found.select(self.selection)
        self.alpha_ = float(self.alphas_[index])
        self.path_ = path(problem, alphas=self.alphas_[: index + 1], **shared)
        self.grid_results_ = [Variant({}, 0.0, found, self.path_, self.penalty_)]
        self._warn_of_folds(self.grid_results_[0], index)
        last = self.path_[-1]
        self._move_path_back()
        return last

    def _with_params(self, problem: Problem, params: dict[str, Any]) -> tuple[Penalty | None, Problem]:
        """The penalty with these parameters, and the problem with it; data and what is known of it are shared."""
        if not params:
            return self.penalty_, problem
        penalty: Penalty = copy.deepcopy(L1() if self.penalty is None else self.penalty).set_params(**params)
        names = getattr(self, "feature_names_in_", None)
        penalty = penalty if names is None else penalty.for_columns(names)
        return penalty, problem.with_penalty(helpers.for_outputs(penalty, problem.vectors, problem.p))

    def _variants(
        self,
        problem: Problem,
        params: dict[str, Any],
        rows: list[tuple[Ints, Ints]],
        score: Callable[..., float] | None,
        until: float,
        limits: dict[str, Any],
        bar: Bar,
        hooks: Hooks,
    ) -> list[Variant]:
        """The paths on all rows and on every fold, for one choice of parameters; once for each share of a refit."""

        def tell(alpha: float, result: Result) -> bool:
            bar.step(f"all rows, alpha {alpha:.4g}")
            return hooks.wanted and hooks.subtask("alpha", result.coef, result.intercept)

        now = time.perf_counter()
        share = None if until == math.inf else max(until - now, 0.0) / (len(rows) + 1)
        whole = path(
            problem, alphas=self.alphas, n_alphas=self.n_alphas, eps=self.eps, early_stop=self.alphas is None,
            time_limit=share, callback=tell, **limits,
        )  # fmt: skip
        missed = (len(rows) + 1) * ((bar.total // ((len(rows) + 1) * self._grid_size)) - len(whole))
        bar.fewer(missed)
        found = run_folds(
            problem, rows, whole.alphas, score=score, standardize=bool(self.standardize), n_jobs=self.n_jobs,
            until=until, bar=bar, X=hooks.given["X"], scaling=self._scaling, relax=shares_of(self.relax),
            **{**limits, "tol": max(self.tol, FOLD_TOL)},
        )  # fmt: skip
        return [
            Variant(params, share, one, whole, None) for share, one in zip(shares_of(self.relax), found, strict=True)
        ]

    @property
    def _grid_size(self) -> int:
        return 1 if self.penalty_grid is None else len(ParameterGrid(self.penalty_grid))

    def _warn_of_folds(self, chosen: Variant, index: int) -> None:
        """Say where fits of folds are not proven, and where the grid ends too early to tell the best alpha."""
        reached, count = chosen.cv.converged, len(self.alphas_)
        if not reached.all():
            helpers.warn(
                f"{np.count_nonzero(~reached)} of {reached.size} fits of the folds stopped before tol = "
                f"{max(self.tol, FOLD_TOL):g} (largest relative gap {chosen.cv.relative_gaps.max():.1e}); raise "
                "max_epochs, time_limit, tol or eps"
            )
        best = chosen.cv.select("min")
        if count > 1 and best == count - 1 and (self.alphas is not None or count == self.n_alphas):
            warn_user(
                f"the smallest alpha, {self.alphas_[-1]:.3g}, has the best score; a smaller one may be better still: "
                f"{'give smaller alphas' if self.alphas is not None else 'lower eps'}",
                UserWarning,
            )
        elif count > 1 and best == 0 and self.alphas is not None:
            warn_user(
                f"the largest alpha, {self.alphas_[0]:.3g}, has the best score; a larger one may be better still: give "
                "larger alphas",
                UserWarning,
            )

    def _score_function(self, given: dict[str, Any]) -> Callable[..., float] | None:
        """The scorer as a function of coefficients, intercept and held-out rows; None for the mean loss."""
        if self.scoring is None:
            return None
        if hasattr(self, "tasks_"):
            raise ValueError("scoring does not go with tasks; leave it out to score by the mean loss")
        if isinstance(self.scoring, str) and self.scoring not in get_scorer_names():
            near = difflib.get_close_matches(self.scoring, get_scorer_names(), 1)
            known = f"did you mean {near[0]!r}?" if near else "sklearn.metrics.get_scorer_names() lists what there is"
            raise ValueError(f"scoring is {self.scoring!r}; {known}")
        scorer = check_scoring(self, scoring=self.scoring)
        X, y, weight = given["X"], given["y"], (given["metadata"] or {}).get("sample_weight")
        takes_weight = "sample_weight" in inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
        offset = (given["metadata"] or {}).get("offset")
        offset = None if offset is None else np.asarray(offset)
        held: dict[int, Any] = {}  # the rows of one fold, for all its alphas

        def score(coef: Array, intercept: float, rows: Ints) -> float:
            if id(rows) not in held:
                held.clear()
                held[id(rows)] = X[rows], y[rows]
            if not np.isfinite(coef).all():  # no refit
                return math.nan
            model = copy.copy(self)
            model._scaling = None  # coefficients come in the data's units
            if hasattr(model, "feature_names_in_"):
                del model.feature_names_in_  # what is scored are arrays, as they were when X was checked
            for name, value in self._shaped_plainly(coef, intercept).items():
                setattr(model, name, value)
            model._held_offset = None if offset is None else offset[rows]
            weighted = {"sample_weight": weight[rows]} if weight is not None and takes_weight else {}
            out: float = scorer(model, *held[id(rows)], **weighted)
            return out

        return score
