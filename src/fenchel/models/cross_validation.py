"""Cross-validation along a path: its folds are the same problem with other weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from .._validate import Array, Frame, Ints, MatrixLike
from ..foundation.html import Shown, drawing, table
from ..problem.pooled import PooledProblem
from .columns import on_other_columns
from .paths import Path, _as_alphas, _as_problem, _follow, alpha_grid, split_limit, until_from
from .pooled import fold_paths
from .progress import Bar

if TYPE_CHECKING:
    from ..problem.problem import Problem
    from .folds import Answers

FOLD_TOL = 1e-5  # relative gap of a fold's fit: moves scores by less than .04 standard errors (8 kinds of problems)


class CrossValidation(Shown):
    """Scores of every alpha on held-out rows, and what they say.

    Attributes
    ----------
    alphas : array (k,), from large to small
    scores : array (k, folds); larger is better. By default minus the mean loss of the held-out rows
    mean, standard_error : arrays (k,), over the folds
    relative_gaps, epochs : arrays (k, folds); every point of every fold has its own certificate
    converged : array (k, folds)
    """

    def __init__(self, alphas: Array, scores: list[list[float]], paths: list[Path]) -> None:
        """`scores` and `paths` are those of the folds; one that ran out of time is shorter, and has no score there."""
        self.alphas = alphas
        count = len(alphas)
        self.scores = np.column_stack([_padded(one, count, np.nan) for one in scores])
        self.relative_gaps = np.column_stack([_padded(one.relative_gaps, count, np.inf) for one in paths])
        self.epochs = np.column_stack([_padded(one.epochs, count, 0) for one in paths])
        self.converged = np.column_stack([_padded(one.converged, count, False) for one in paths])
        self.mean = self.scores.mean(axis=1)
        folds = self.scores.shape[1]
        self.standard_error = self.scores.std(axis=1, ddof=1) / np.sqrt(folds) if folds > 1 else np.zeros(len(alphas))

    def select(self, rule: str = "min") -> int:
        """The index of an alpha.

        Parameters
        ----------
        rule : {"min", "1se"}
            The best mean score (the smallest mean loss), or the largest alpha whose mean score is within one standard
            error of the best: the simplest model that the data cannot tell from the best.
        """
        if rule not in ("min", "1se"):
            raise ValueError(f"selection is {rule!r}; it must be 'min' or '1se'")
        if not np.isfinite(self.mean).any():
            raise ValueError("no alpha has a finite mean score; look at the scores of the folds")
        best = int(np.nanargmax(np.where(np.isfinite(self.mean), self.mean, -np.inf)))
        if rule == "min":
            return best
        return int(np.flatnonzero(self.mean >= self.mean[best] - self.standard_error[best])[0])

    @property
    def best_alpha(self) -> float:
        """The alpha of the best mean score."""
        return float(self.alphas[self.select("min")])

    @property
    def alpha_1se(self) -> float:
        """The alpha of the one-standard-error rule."""
        return float(self.alphas[self.select("1se")])

    def to_frame(self) -> Frame:
        """A data frame with a row per alpha: mean score, its standard error, and the largest gap of the folds."""
        import pandas

        columns = {
            "mean": self.mean, "standard_error": self.standard_error, "relative_gap": self.relative_gaps.max(axis=1)
        }  # fmt: skip
        return pandas.DataFrame(columns, index=pandas.Index(self.alphas, name="alpha"))

    def _html_title(self) -> str:
        return repr(self)

    def _html_more(self) -> list[str]:
        chosen = {"best": self.select("min"), "one standard error": self.select("1se")}
        rows = [(name, f"{self.alphas[k]:.4g}", f"{self.mean[k]:.6g} \u00b1 {self.standard_error[k]:.2g}")
                for name, k in chosen.items()]  # fmt: skip
        marks = [(float(self.alphas[k]), name) for name, k in chosen.items()]
        picture = drawing(
            self.alphas, self.mean, across="alpha", up="mean score of the held-out rows, larger is better",
            falling=True, band=self.standard_error, marks=marks,
        )  # fmt: skip
        return [picture, table(["", "alpha", "score"], rows)]

    def __repr__(self) -> str:
        return (
            f"CrossValidation({len(self.alphas)} alphas, {self.scores.shape[1]} folds, best {self.best_alpha:.3g}, "
            f"one standard error {self.alpha_1se:.3g}, largest relative gap {self.relative_gaps.max():.1e})"
        )


def _padded(values: Any, count: int, fill: Any) -> Any:
    values = np.asarray(values)
    return np.concatenate([values, np.full(count - len(values), fill, dtype=values.dtype if len(values) else None)])


def cross_validate_path(
    problem: Problem | MatrixLike,
    y: npt.ArrayLike | None = None,
    *,
    cv: Any = 5,
    groups: npt.ArrayLike | None = None,
    score: Callable[..., Any] | None = None,
    standardize: bool = False,
    alphas: npt.ArrayLike | None = None,
    n_alphas: int = 50,
    eps: float | None = None,
    tol: float = FOLD_TOL,
    max_epochs: int = 10_000,
    time_limit: float | None = None,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    solver_options: Mapping[str, Any] | None = None,
    together: int = 1,
    verbose: bool = False,
    **data: Any,
) -> CrossValidation:
    """Paths on the training rows of every fold, judged on the rows held out.

    The rows of a fold are left out by giving them no weight. Folds that work on dense rows in compiled loops copy their
    own, on data of up to 64 MiB.

    Parameters
    ----------
    problem, y, data
        A Problem, or what makes one, as in :func:`path`.
    cv : int, splitter, or list of (training rows, held-out rows)
        A whole number means as many folds, stratified for classification, in the order of the rows. Rows in a pool
        take a number; their folds are drawn at random, and all of them are served by the same passes.
    groups : vector of n labels, optional
        For splitters that keep groups together, such as ``GroupKFold()``.
    score : callable, optional
        Called with (coef, intercept, rows), the rows held out; returns a number, larger is better. By default minus
        their mean loss, weighted by the sample weights.
    standardize : bool
        Bring the columns to unit deviation within every fold, on its training rows alone. Coefficients that `score`
        receives are in the data's units.
    alphas, n_alphas, eps, max_epochs, random_state, solver_options, together
        As in :func:`path`; all folds share the alphas.
    tol : float
        Relative gap of every fit. By default no smaller than a choice needs: scores then move by a few hundredths of
        their standard error at the most.
    time_limit : float, optional
        Seconds for all folds together; it divides itself among them, and among the alphas of each. Alphas that some
        fold did not come to have no score.
    n_jobs : int, optional
        Folds at a time, by joblib, in threads: the kernels release the interpreter.
    verbose : bool
        Show one live bar over folds and alphas.

    Returns
    -------
    CrossValidation
    """
    from .folds import split
    from .run_folds import run_folds

    problem, scaling = _as_problem(problem, y, data), None
    if not standardize:
        problem, scaling = on_other_columns(problem)
    alphas = alpha_grid(problem, n_alphas, eps) if alphas is None else _as_alphas(alphas)
    if problem.pooled:
        if score is not None or standardize or groups is not None:
            raise ValueError(
                "score, standardize and groups are for rows in memory; rows in a pool are judged by their mean loss"
            )

        def whole_path(part: Problem) -> Path:
            results = _follow(part, alphas, tol, max_epochs, random_state, solver_options, together=together)
            return Path(alphas, results, tol)

        paths, scores = fold_paths(cast(PooledProblem, problem), cv, alphas, whole_path, random_state)
        return CrossValidation(alphas, scores, paths)
    if together != 1:
        raise ValueError(f"together is {together!r}; it is for rows in a pool, and these are in memory: leave it out")
    target = problem.target.reshape(problem.n, -1)
    if problem.loss.coupled or target.shape[1] == 1:
        target = target.argmax(axis=1) if problem.loss.coupled else target[:, 0]  # the class that has most
    rows = split(problem, cv, target, groups)
    limit, options = split_limit(time_limit, solver_options)
    with Bar(len(rows) * len(alphas), verbose) as bar:
        return run_folds(
            problem, rows, alphas, score=score, standardize=standardize, n_jobs=n_jobs, until=until_from(limit),
            bar=bar, scaling=scaling, tol=tol, max_epochs=max_epochs, random_state=random_state, solver_options=options,
        )[0]  # fmt: skip


def _training(problem: Problem, number: int, rows: Ints) -> Problem:
    """The problem on some rows; the others get weight 0."""
    weight = np.zeros(problem.n)
    weight[rows] = problem.weight[rows] if problem.weight.size else 1.0
    if weight.sum() <= 0:
        raise ValueError(f"the training rows of fold {number} have no weight")
    if problem.loss.across_rows:
        try:
            problem.loss.check_targets(problem.target[weight > 0])
        except ValueError as error:
            raise ValueError(f"the training rows of fold {number}: {error}; use fewer folds") from None
    if problem.loss.classification:
        labels = problem.target.reshape(problem.n, -1)[weight > 0]
        single = np.flatnonzero(np.all(labels == labels[0], axis=0))
        missing = np.flatnonzero(~labels.any(axis=0))
        if problem.loss.coupled and missing.size:
            raise ValueError(
                f"class {missing[0]} does not occur in the training rows of fold {number}; use fewer folds or "
                "stratified ones, or leave the class out"
            )
        if single.size and not problem.loss.coupled:
            output = f" of output {single[0]}" if labels.shape[1] > 1 else ""
            raise ValueError(
                f"the training rows of fold {number} hold one class only{output}; use fewer folds or stratified ones"
            )
    return problem.with_weights(weight)


def _held_out_losses(problem: Problem, rows: Ints, path: Path | Answers) -> list[float]:
    """Minus the weighted mean loss on these rows, for every point of a path."""
    outputs = problem.layout[0]
    visits = (np.asarray(rows)[:, None] * outputs + np.arange(outputs)).ravel()
    target = problem.target[visits]
    weight = np.repeat(problem.weight[rows], outputs) if problem.weight.size else np.ones(len(visits))
    some = weight > 0
    if not some.any():
        return [np.nan] * len(path)
    if problem.loss.across_rows:
        return _added_losses(problem, rows, path, float(weight.sum()))
    # several outputs count as rows of their own, unless the loss is one of all of them
    weight = weight[some] / weight.sum() * (outputs if problem.loss.coupled else 1)
    known = problem.offset[visits][some] if problem.offset.size else 0.0
    return [
        -float(weight @ problem.loss.value(scores[some] + known, target[some]))
        for scores in _held_out_scores(problem, rows, visits, path)
    ]


def _added_losses(problem: Problem, rows: Ints, path: Path | Answers, weight: float) -> list[float]:
    """The same for a loss of all scores at once: what these rows add to the loss of the others, each for its weight.

    (Held-out rows of a partial likelihood are few to compare with one another; so they are compared with all, as
    Verweij and van Houwelingen do, Statistics in Medicine 12, 1993.)
    """
    everyone, loss = np.arange(problem.n), cast(Any, problem.loss)
    return [
        -float(loss.held_out(problem.seen(scores), problem.target, problem.weight, rows)) / weight
        for scores in _held_out_scores(problem, everyone, everyone, path)
    ]


def _held_out_scores(problem: Problem, rows: Ints, visits: Ints, path: Path | Answers) -> Iterator[Array]:
    """The scores of these rows, for one point of a path after another."""
    if not problem.single:
        for coef, intercept in zip(path.coefs, path.intercepts, strict=True):
            yield problem.scores(problem.pack(coef, intercept))[visits]
        return
    # features that no point uses play no part, and one product serves all points
    used = np.flatnonzero(path.coefs.any(axis=0))
    part = problem.data.rows(rows)[:, used]
    yield from (part @ path.coefs[:, used].T + path.intercepts).T
