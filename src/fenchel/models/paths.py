"""Regularisation paths, each point warm-started from the last and certified.

A path goes from the largest alpha to the smallest, and every point of it through the solver's loop. The start of each
point is predicted from the two before it (between kinks the answer is nearly linear in alpha). Where the loss is
smooth, Newton's method carries the prediction to the answer (see :mod:`fenchel.engine`); otherwise, and where it does
not get there, epochs do. Either way the point is accepted by the problem's certificate alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from .._validate import Array, Flags, Frame, Ints, MatrixLike
from ..engine.roles import Iterate
from ..foundation.html import Shown, drawing, table
from ..problem import Problem
from ..problem.alpha_max import zero_answer
from ..problem.pooled import PooledProblem
from ..solver.entry import follow
from ..solver.result import Status
from .columns import on_other_columns
from .parameters import is_number
from .pooled import side_by_side
from .progress import Bar

if TYPE_CHECKING:
    from ..problem.alpha_max import ZeroAnswer
    from ..solver.result import Result


class Path(Shown):
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
    interrupted : bool, whether Ctrl-C ended the path before its last alpha
    """

    def __init__(self, alphas: Array, results: Iterable[Result], tol: float, interrupted: bool = False) -> None:
        self.alphas = np.asarray(alphas, dtype=float)
        self.results = list(results)
        self.tol = tol
        self.interrupted = interrupted
        self.coefs = np.array([result.coef for result in self.results])
        self.intercepts = np.array([result.intercept for result in self.results])
        self.primals, self.duals, self.gaps, self.relative_gaps = (
            np.array([getattr(result, name) for result in self.results])
            for name in ("primal", "dual", "gap", "relative_gap")
        )
        self.epochs = np.array([result.epochs for result in self.results])
        self.seconds = np.array([result.seconds for result in self.results])

    @property
    def converged(self) -> Flags:
        """Whether each point reached the tolerance."""
        return np.array([result.status is Status.CONVERGED for result in self.results])

    @property
    def nonzeros(self) -> Ints:
        """The number of non-zero coefficients of each point."""
        out: Ints = np.count_nonzero(self.coefs.reshape(len(self), -1), axis=1)
        return out

    def to_frame(self) -> Frame:
        """A data frame with a row per alpha: objective, gap, non-zero coefficients, cost and status."""
        import pandas

        columns = {
            "primal": self.primals, "relative_gap": self.relative_gaps, "nonzeros": self.nonzeros,
            "epochs": self.epochs, "seconds": self.seconds, "status": [str(r.status) for r in self.results],
        }  # fmt: skip
        return pandas.DataFrame(columns, index=pandas.Index(self.alphas, name="alpha"))

    def _html_title(self) -> str:
        return repr(self)

    def _html_more(self) -> list[str]:
        some: Ints = np.unique(np.linspace(0, len(self) - 1, min(len(self), 8)).astype(int))
        rows = [(f"{self.alphas[k]:.4g}", int(self.nonzeros[k]), f"{self.primals[k]:.6g}",
                 f"{self.relative_gaps[k]:.1e}", str(self.results[k].status)) for k in some]  # fmt: skip
        curves = self.coefs.reshape(len(self), -1).T
        picture = drawing(self.alphas, curves[curves.any(axis=1)], across="alpha", up="coefficients", falling=True)
        return [picture, table(["alpha", "not zero", "objective", "relative gap", "status"], rows)]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> Result:
        return self.results[index]

    def __repr__(self) -> str:
        return (
            f"Path({len(self)} alphas from {self.alphas[0]:.3g} to {self.alphas[-1]:.3g}, "
            f"{np.count_nonzero(self.converged)} converged, largest relative gap {self.relative_gaps.max():.1e}, "
            f"{self.epochs.sum()} epochs, {self.seconds.sum():.2f} s{', interrupted' if self.interrupted else ''})"
        )


def path(
    problem: Problem | MatrixLike,
    y: npt.ArrayLike | None = None,
    *,
    alphas: npt.ArrayLike | None = None,
    n_alphas: int = 50,
    eps: float | None = None,
    early_stop: bool = False,
    tol: float = 1e-6,
    max_epochs: int = 10_000,
    time_limit: float | None = None,
    callback: Callable[..., Any] | None = None,
    random_state: int | None = 0,
    solver_options: Mapping[str, Any] | None = None,
    together: int = 1,
    verbose: bool = False,
    **data: Any,
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
    eps : float, optional
        A hundredth by default where there are more features than rows, otherwise a thousandth.
    early_stop : bool
        End where the loss that is explained hardly grows any more, as glmnet does: at 99.9 per cent of it, or where a
        point adds less than a hundred-thousandth (after the first five).
    time_limit : float, optional
        Seconds for the whole path. Each point gets its share of what is left, and what it does not use goes to those
        after it; the path ends when the time is over.
    tol, max_epochs, random_state
        As in :func:`fenchel.solve`, for every point.
    callback : callable, optional
        Called with (alpha, Result) after every point; a true return value ends the path there.
    solver_options : dict, optional
        Further options of :func:`fenchel.solve`. With any of them every point is left to that.
    together : int
        For rows in a pool: so many neighbouring alphas share every pass over the data, and each is certified for
        itself. The data are read less often, and the kernels work more in every pass, because each point then starts
        from an answer that is so many alphas away; they share the pool's memory for samples, too. It may also stand
        among `solver_options`, where estimators look for it.
    verbose : bool
        Show a live bar on a terminal and in a notebook; a line a minute, and one at the end, elsewhere.

    Returns
    -------
    Path
        After Ctrl-C the points that were finished, and `interrupted` is true.

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
    problem, scaling = on_other_columns(_as_problem(problem, y, data))
    first = None
    if alphas is None:
        first = zero_answer(problem)
        alphas = _grid(problem, first.alpha, n_alphas, eps)
    else:
        alphas, known = _as_alphas(alphas), problem.zero_answer
        if known is not None and alphas[0] > 0 and known.alpha <= alphas[0] * (1 + 1e-12):
            first = known
    results: list[Result] = []
    limit, options = split_limit(time_limit, solver_options)
    explained = Explained(problem) if early_stop else None
    until, interrupted = until_from(limit), False
    with Bar(len(alphas), verbose, "alphas") as bar:
        try:
            for found in _follow(problem, alphas, tol, max_epochs, random_state, options, first, until, together):
                alpha = alphas[len(results)]
                result = found if scaling is None else scaling.moved_back(found)
                results.append(result)
                bar.step(f"alpha {alpha:.4e}   {result!r}")
                if callback is not None and callback(alpha, result):
                    break
                if explained is not None and explained.saturated(alpha, found):
                    break
        except KeyboardInterrupt:
            if not results:
                raise
            interrupted = len(results) < len(alphas)
    return Path(alphas[: len(results)], results, tol, interrupted)


def split_limit(
    time_limit: float | None, solver_options: Mapping[str, Any] | None
) -> tuple[float | None, dict[str, Any]]:
    """The seconds for a whole path, which may stand among the solver's options, and the other options."""
    options = dict(solver_options or {})
    within = options.pop("time_limit", None)
    limit = within if time_limit is None else time_limit
    if limit is not None and not (is_number(limit) and limit >= 0):
        raise ValueError(f"time_limit is {limit!r}; it must be a number of seconds, not negative")
    return limit, options


def until_from(limit: float | None) -> float:
    """The time of the clock when so many seconds are over."""
    return math.inf if limit is None else time.perf_counter() + limit


class Explained:
    """The share of the loss that is explained along a path: 0 at its first point, 1 where no loss is left."""

    _MOST, _GAIN, _LEAST = 0.999, 1e-5, 5  # glmnet's devmax, fdev and mnlam

    def __init__(self, problem: Problem) -> None:
        self.problem, self.first, self.before, self.count = problem, math.nan, 0.0, 0
        self.least = -problem.mean_conjugate(np.zeros(problem.visits))  # no scores have a smaller loss

    def saturated(self, alpha: float, result: Result) -> bool:
        """Whether the next point will hardly explain more than this one."""
        at = self.problem.with_alpha(alpha)
        loss = result.primal - at.penalty_value(at.penalised(at.pack(result.coef, result.intercept)))
        self.count += 1
        if self.count == 1:
            self.first = loss
        if not (math.isfinite(self.least) and self.first > self.least):
            return False
        share, before = (self.first - loss) / (self.first - self.least), self.before
        self.before = share
        # a loss with kinks has answers that stay as they are for a while, and then go on
        slow = self.count > self._LEAST and share > 0 and share - before < self._GAIN * share
        slow = slow and not self.problem.loss.kinked
        return share >= self._MOST or slow


def _follow(
    problem: Problem,
    alphas: Array,
    tol: float,
    max_epochs: int,
    random_state: Any,
    solver_options: Mapping[str, Any] | None,
    first: ZeroAnswer | None = None,
    until: float = math.inf,
    together: int = 1,
) -> Iterator[Result]:
    """The result of every alpha, one after another, without the solver's state; they end when the time is over."""
    known = None
    if first is not None:
        known = Iterate(first.w, first.x, first.y, problem.gradient_sum(first.x), np.zeros(first.y.size))
    options = dict(solver_options or {})
    together = _as_together(options.pop("together", together), problem)

    def walk(part: Problem, own: Array) -> Iterator[Result]:
        for result in follow(
            part, cast(Sequence[float], own), known=known if own[0] == alphas[0] else None, correct=not options,
            until=until, tol=tol, max_epochs=max_epochs, random_state=random_state, **options,
        ):  # fmt: skip
            if result.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            yield result
            if time.perf_counter() >= until:
                return

    if together == 1:
        return walk(problem, alphas)
    return side_by_side(cast(PooledProblem, problem), alphas, together, walk)


def _as_together(together: Any, problem: Problem) -> int:
    if isinstance(together, bool) or not isinstance(together, (int, np.integer)) or together < 1:
        raise ValueError(f"together is {together!r}; it must be a whole number, at least 1")
    if together > 1 and not problem.pooled:
        raise ValueError(
            f"together is {together}, but the rows are in memory, where nothing is to be shared; leave it out"
        )
    return int(together)


def _as_problem(problem: Problem | MatrixLike, y: npt.ArrayLike | None, data: Mapping[str, Any]) -> Problem:
    if not isinstance(problem, Problem):
        if "loss" not in data:
            raise ValueError("loss is missing; give loss='squared' for numbers, or loss='logistic' for labels -1 and 1")
        return Problem(problem, cast(npt.ArrayLike, y), **data)
    if y is not None or data:
        extra = "y" if y is not None else sorted(data)[0]
        raise ValueError(f"{extra} was given beside a Problem, which has its own; pass X and y, or a Problem")
    return problem


def alpha_grid(problem: Problem, n_alphas: int = 50, eps: float | None = None) -> Array:
    """`n_alphas` values from ``problem.alpha_max()`` down to `eps` times that, evenly spaced in the logarithm.

    By default `eps` is a hundredth where there are more features than rows (beyond, the model follows the noise), and
    otherwise a thousandth.
    """
    return _grid(problem, problem.alpha_max(), n_alphas, eps)


def _grid(problem: Problem, top: float, n_alphas: int, eps: float | None) -> Array:
    eps = (1e-2 if problem.p > problem.n else 1e-3) if eps is None else eps
    if isinstance(n_alphas, bool) or int(n_alphas) != n_alphas or n_alphas < 1:
        raise ValueError(f"n_alphas is {n_alphas!r}; it must be a whole number, at least 1")
    if not (is_number(eps) and 0 < eps < 1):
        raise ValueError(f"eps is {eps!r}; it must lie between 0 and 1")
    if not np.isfinite(top):
        raise ValueError(
            f"no alpha makes {problem.penalty!r} vanish at the answer (alpha_max is infinite); give alphas"
        )
    # data that say nothing (a constant target, say) leave rounding here; any alpha will do
    floor = 1e-12 * np.sqrt(problem.data.mean_squares.max(initial=0.0)) * problem.largest_target
    top = top if top > max(floor, 1e-200) else 1.0
    return np.geomspace(top, eps * top, int(n_alphas)) if n_alphas > 1 else np.array([top])


def _as_alphas(alphas: npt.ArrayLike) -> Array:
    alphas = np.asarray(alphas)
    if alphas.ndim != 1 or alphas.size == 0 or alphas.dtype.kind not in "iuf":
        raise ValueError(
            f"alphas has dtype {alphas.dtype} and shape {alphas.shape}; it must be a vector of numbers, one at least"
        )
    bad = np.flatnonzero(~(np.isfinite(alphas) & (alphas >= 0)))
    if bad.size:
        raise ValueError(f"alphas[{bad[0]}] is {alphas[bad[0]]:g}; it must be finite and not negative")
    return np.sort(alphas.astype(float))[::-1]
