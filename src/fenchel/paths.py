"""Regularisation paths, each point warm-started from the last and certified; cross-validation over them.

A path goes from the largest alpha to the smallest, and every point of it through the solver's loop. The start of each
point is predicted from the two before it (between kinks the answer is nearly linear in alpha). Where the loss is
smooth, Newton's method carries the prediction to the answer (see :mod:`fenchel.engine`);
otherwise, and where it does not get there, epochs do. Either way the point is accepted by the problem's certificate
alone.
"""

from __future__ import annotations

import sys

import numpy as np

from .engine.roles import Iterate
from .problem import Problem
from .problem.alpha_max import zero_answer
from .result import Status
from .solver.entry import follow


class Path:
    """Answers for falling alpha, each with its own certificate.

    Attributes
    ----------
    alphas : array (k,), from large to small
    coefs : array (k, p), or (k, outputs, p)
    intercepts : array (k,), or (k, outputs)
    results : list of k Results, without the solver's state; ``path[i]`` is ``path.results[i]``
    primals, duals, gaps, relative_gaps : arrays (k,); dual <= optimum <= primal is proven at every alpha
    epochs, seconds : arrays (k,), the cost of every point
    tol : float
    """

    def __init__(self, alphas, results, tol):
        self.alphas = np.asarray(alphas, dtype=float)
        self.results = list(results)
        self.tol = tol
        self.coefs = np.array([result.coef for result in self.results])
        self.intercepts = np.array([result.intercept for result in self.results])
        for name in ("primal", "dual", "gap", "relative_gap"):
            setattr(self, f"{name}s", np.array([getattr(result, name) for result in self.results]))
        self.epochs = np.array([result.epochs for result in self.results])
        self.seconds = np.array([result.seconds for result in self.results])

    @property
    def converged(self) -> np.ndarray:
        """Whether each point reached the tolerance."""
        return np.array([result.status is Status.CONVERGED for result in self.results])

    @property
    def nonzeros(self) -> np.ndarray:
        """The number of non-zero coefficients of each point."""
        return np.count_nonzero(self.coefs.reshape(len(self), -1), axis=1)

    def to_frame(self):
        """A data frame with a row per alpha: objective, gap, non-zero coefficients, cost and status."""
        import pandas

        columns = {
            "primal": self.primals, "relative_gap": self.relative_gaps, "nonzeros": self.nonzeros,
            "epochs": self.epochs, "seconds": self.seconds, "status": [str(r.status) for r in self.results],
        }  # fmt: skip
        return pandas.DataFrame(columns, index=pandas.Index(self.alphas, name="alpha"))

    def __len__(self):
        return len(self.results)

    def __getitem__(self, index):
        return self.results[index]

    def __repr__(self):
        return (
            f"Path({len(self)} alphas from {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}, "
            f"{np.count_nonzero(self.converged)} converged, largest relative gap {self.relative_gaps.max():.1e}, "
            f"{self.epochs.sum()} epochs, {self.seconds.sum():.2f} s)"
        )


def path(
    problem,
    y=None,
    *,
    alphas=None,
    n_alphas: int = 50,
    eps: float = 1e-3,
    tol: float = 1e-6,
    max_epochs: int = 10_000,
    callback=None,
    random_state: int | None = 0,
    solver_options: dict | None = None,
    verbose: bool = False,
    **data,
) -> Path:
    """Solve a problem for a falling sequence of alphas, each to a certified relative gap.

    Parameters
    ----------
    problem : Problem, or the data X
        The alpha of a Problem is not used.
    y : targets
        Only with X; `data` are then the other arguments of :class:`fenchel.Problem` (loss, penalty, sample_weight, …).
    alphas : vector, optional
        Visited from large to small. By default `n_alphas` values, evenly spaced in the logarithm, from
        ``problem.alpha_max()`` to `eps` times that.
    n_alphas : int
    eps : float
    tol, max_epochs, random_state
        As in :func:`fenchel.solve`, for every point.
    callback : callable, optional
        Called with (alpha, Result) after every point; a true return value ends the path there.
    solver_options : dict, optional
        Further options of :func:`fenchel.solve`. With any of them every point is left to that.
    verbose : bool
        Print a line per point to the standard error.

    Returns
    -------
    Path
        After Ctrl-C the points that were finished.

    Notes
    -----
    An epoch is a pass over the data, by the solver or by Newton's method.

    Examples
    --------
    >>> import numpy as np, fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 8))
    >>> y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(100)
    >>> path = fl.path(X, y, loss="squared", penalty=fl.L1(), fit_intercept=True, n_alphas=10)
    >>> path.nonzeros[:4], bool(path.converged.all())
    (array([0, 2, 2, 2]), True)
    """
    problem, first = _as_problem(problem, y, data), None
    if alphas is None:
        first = zero_answer(problem)
        alphas = _grid(problem, first.alpha, n_alphas, eps)
    else:
        alphas, known = _as_alphas(alphas), problem.zero_answer
        if known is not None and alphas[0] > 0 and known.alpha <= alphas[0] * (1 + 1e-12):
            first = known
    results = []
    try:
        for result in _follow(problem, alphas, tol, max_epochs, random_state, solver_options, first):
            alpha = alphas[len(results)]
            results.append(result)
            if verbose:
                print(f"alpha {alpha:.4e}   {result!r}", file=sys.stderr)
            if callback is not None and callback(alpha, result):
                break
    except KeyboardInterrupt:
        if not results:
            raise
    return Path(alphas[: len(results)], results, tol)


def _follow(problem, alphas, tol, max_epochs, random_state, solver_options, first=None):
    """The result of every alpha, one after another, without the solver's state."""
    known = None
    if first is not None:
        known = Iterate(first.w, first.x, first.y, problem.gradient_sum(first.x), np.zeros(first.y.size))
    options = solver_options or {}
    limits = {"tol": tol, "max_epochs": max_epochs, "random_state": random_state}
    for result in follow(problem, alphas, known=known, correct=not options, **limits, **options):
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        yield result


def _as_problem(problem, y, data):
    if not isinstance(problem, Problem):
        return Problem(problem, y, **data)
    if y is not None or data:
        extra = "y" if y is not None else sorted(data)[0]
        raise ValueError(f"{extra} was given beside a Problem, which has its own; pass X and y, or a Problem")
    return problem


def alpha_grid(problem: Problem, n_alphas: int = 50, eps: float = 1e-3) -> np.ndarray:
    """`n_alphas` values from ``problem.alpha_max()`` down to `eps` times that, evenly spaced in the logarithm."""
    return _grid(problem, problem.alpha_max(), n_alphas, eps)


def _grid(problem, top, n_alphas, eps):
    if isinstance(n_alphas, bool) or int(n_alphas) != n_alphas or n_alphas < 1:
        raise ValueError(f"n_alphas is {n_alphas!r}; it must be a whole number, at least 1")
    if not 0 < eps < 1:
        raise ValueError(f"eps is {eps!r}; it must lie between 0 and 1")
    if not np.isfinite(top):
        raise ValueError(
            f"no alpha makes {problem.penalty!r} vanish at the answer (alpha_max is infinite); give alphas"
        )
    # data that say nothing (a constant target, say) leave rounding here; any alpha will do
    floor = 1e-12 * np.sqrt(problem.data.mean_squares.max(initial=0.0)) * np.abs(problem.target).max(initial=0.0)
    top = top if top > max(floor, 1e-200) else 1.0
    return np.geomspace(top, eps * top, int(n_alphas)) if n_alphas > 1 else np.array([top])


def _as_alphas(alphas):
    alphas = np.asarray(alphas)
    if alphas.ndim != 1 or alphas.size == 0 or alphas.dtype.kind not in "iuf":
        raise ValueError(f"alphas has dtype {alphas.dtype} and shape {alphas.shape}; it must be a vector of numbers")
    bad = np.flatnonzero(~(np.isfinite(alphas) & (alphas >= 0)))
    if bad.size:
        raise ValueError(f"alphas[{bad[0]}] is {alphas[bad[0]]:g}; it must be finite and not negative")
    return np.sort(alphas.astype(float))[::-1]


# -- cross-validation -------------------------------------------------------------------------------


class CrossValidation:
    """Scores of every alpha on held-out rows, and what they say.

    Attributes
    ----------
    alphas : array (k,), from large to small
    scores : array (k, folds); larger is better. By default minus the mean loss of the held-out rows
    mean, standard_error : arrays (k,), over the folds
    relative_gaps, epochs : arrays (k, folds); every point of every fold has its own certificate
    converged : array (k, folds)
    """

    def __init__(self, alphas, scores, paths):
        self.alphas = alphas
        self.scores = np.column_stack(scores)
        self.relative_gaps = np.column_stack([one.relative_gaps for one in paths])
        self.epochs = np.column_stack([one.epochs for one in paths])
        self.converged = np.column_stack([one.converged for one in paths])
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

    def to_frame(self):
        """A data frame with a row per alpha: mean score, its standard error, and the largest gap of the folds."""
        import pandas

        columns = {
            "mean": self.mean, "standard_error": self.standard_error, "relative_gap": self.relative_gaps.max(axis=1)
        }  # fmt: skip
        return pandas.DataFrame(columns, index=pandas.Index(self.alphas, name="alpha"))

    def __repr__(self):
        return (
            f"CrossValidation({len(self.alphas)} alphas, {self.scores.shape[1]} folds, best {self.best_alpha:.3g}, "
            f"one standard error {self.alpha_1se:.3g}, largest relative gap {self.relative_gaps.max():.1e})"
        )


def cross_validate_path(
    problem,
    y=None,
    *,
    cv=5,
    score=None,
    alphas=None,
    n_alphas: int = 50,
    eps: float = 1e-3,
    tol: float = 1e-6,
    max_epochs: int = 10_000,
    random_state: int | None = 0,
    n_jobs: int | None = None,
    solver_options: dict | None = None,
    **data,
) -> CrossValidation:
    """Paths on the training rows of every fold, judged on the rows held out.

    The rows of a fold are left out by giving them no weight. Folds that work on dense rows in compiled loops copy their
    own, on data of up to 64 MiB.

    Parameters
    ----------
    problem, y, data
        A Problem, or what makes one, as in :func:`path`.
    cv : int, splitter, or list of (training rows, held-out rows)
        A whole number means as many folds, stratified for classification, in the order of the rows.
    score : callable, optional
        Called with (coef, intercept, rows), the rows held out; returns a number, larger is better. By default minus
        their mean loss, weighted by the sample weights.
    alphas, n_alphas, eps, tol, max_epochs, random_state, solver_options
        As in :func:`path`; all folds share the alphas.
    n_jobs : int, optional
        Folds at a time, by joblib, in threads: the kernels release the interpreter.

    Returns
    -------
    CrossValidation
    """
    from joblib import Parallel, delayed

    problem = _as_problem(problem, y, data)
    alphas = alpha_grid(problem, n_alphas, eps) if alphas is None else _as_alphas(alphas)
    folds = _folds(problem, cv)
    training = [_training(problem, k, train) for k, (train, _) in enumerate(folds)]

    def whole_path(part):
        return Path(alphas, _follow(part, alphas, tol, max_epochs, random_state, solver_options), tol)

    paths = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(whole_path)(part) for part in training)
    scores = []
    for one, (_, test) in zip(paths, folds, strict=True):
        if score is None:
            scores.append(_held_out_losses(problem, test, one))
        else:
            scores.append([float(score(*answer, test)) for answer in zip(one.coefs, one.intercepts, strict=True)])
    return CrossValidation(alphas, scores, paths)


def _folds(problem, cv):
    from sklearn.model_selection import check_cv

    target = problem.target.reshape(problem.n, -1)
    target = target[:, 0] if target.shape[1] == 1 else target
    folds = list(check_cv(cv, target, classifier=problem.loss.classification).split(np.zeros((problem.n, 1)), target))
    if not folds:
        raise ValueError("cv gives no folds")
    return folds


def _training(problem, number, rows):
    """The problem on some rows; the others get weight 0."""
    weight = np.zeros(problem.n)
    weight[rows] = problem.weight[rows] if problem.weight.size else 1.0
    if weight.sum() <= 0:
        raise ValueError(f"the training rows of fold {number} have no weight")
    if problem.loss.classification:
        labels = problem.target.reshape(problem.n, -1)[weight > 0]
        single = np.flatnonzero(np.all(labels == labels[0], axis=0))
        if single.size:
            output = f" of output {single[0]}" if labels.shape[1] > 1 else ""
            raise ValueError(
                f"the training rows of fold {number} hold one class only{output}; use fewer folds or stratified ones"
            )
    return problem.with_weights(weight)


def _held_out_losses(problem, rows, path):
    """Minus the weighted mean loss on these rows, for every point of a path."""
    outputs = problem.layout[0]
    visits = (np.asarray(rows)[:, None] * outputs + np.arange(outputs)).ravel()
    target = problem.target[visits]
    weight = np.repeat(problem.weight[rows], outputs) if problem.weight.size else np.ones(len(visits))
    some = weight > 0
    if not some.any():
        return [np.nan] * len(path)
    weight = weight[some] / weight.sum()
    return [
        -float(weight @ problem.loss.value(scores[some], target[some]))
        for scores in _held_out_scores(problem, rows, visits, path)
    ]


def _held_out_scores(problem, rows, visits, path):
    """The scores of these rows, for one point of a path after another."""
    if not problem.single:
        for coef, intercept in zip(path.coefs, path.intercepts, strict=True):
            yield problem.scores(problem.pack(coef, intercept))[visits]
        return
    # features that no point uses play no part, and one product serves all points
    used = np.flatnonzero(path.coefs.any(axis=0))
    part = problem.data.rows(rows)[:, used]
    yield from (part @ path.coefs[:, used].T + path.intercepts).T
