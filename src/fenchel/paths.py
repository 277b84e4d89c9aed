"""Regularisation paths, each point warm-started from the last and certified; cross-validation over them.

A path goes from the largest alpha to the smallest. The start of each point is predicted from the two before it (between
kinks the answer is nearly linear in alpha). Where there are few coefficients and the loss is smooth, proximal Newton
steps carry the prediction to the answer (see :mod:`fenchel.newton`); otherwise, and where these do not get there,
:func:`fenchel.solve` does. Either way the point is accepted by the problem's certificate alone.
"""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import scipy.sparse as sp

from .methods.sdca_admm import SDCAADMM, State
from .newton import Newton, worthwhile
from .problem import Problem
from .result import History, Result, Status
from .solver import solve


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
    max_epochs: int = 1000,
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
        Further options of :func:`fenchel.solve`. With any of them Newton steps are left out.
    verbose : bool
        Print a line per point to the standard error.

    Returns
    -------
    Path

    Notes
    -----
    An epoch is a pass over the data: one of the solver's, a Newton step, or a new curvature for those.

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
    if isinstance(problem, Problem):
        if y is not None or data:
            extra = "y" if y is not None else sorted(data)[0]
            raise ValueError(f"{extra} was given beside a Problem, which has its own; pass X and y, or a Problem")
    else:
        problem = Problem(problem, y, **data)
    alphas = alpha_grid(problem, n_alphas, eps) if alphas is None else _as_alphas(alphas)
    follow = _Follower(problem, tol, max_epochs, random_state, solver_options or {})
    results = []
    for alpha in alphas:
        result = follow.to(alpha)
        results.append(dataclasses.replace(result, state={}))
        if verbose:
            print(f"alpha {alpha:.4e}   {result!r}", file=sys.stderr)
        if callback is not None and callback(alpha, results[-1]):
            break
    return Path(alphas[: len(results)], results, tol)


def alpha_grid(problem: Problem, n_alphas: int = 50, eps: float = 1e-3) -> np.ndarray:
    """`n_alphas` values from ``problem.alpha_max()`` down to `eps` times that, evenly spaced in the logarithm."""
    if isinstance(n_alphas, bool) or int(n_alphas) != n_alphas or n_alphas < 1:
        raise ValueError(f"n_alphas is {n_alphas!r}; it must be a whole number, at least 1")
    if not 0 < eps < 1:
        raise ValueError(f"eps is {eps!r}; it must lie between 0 and 1")
    top = problem.alpha_max()
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


class _Follower:
    """Goes from one alpha to the next; remembers the last two answers."""

    def __init__(self, problem, tol, max_epochs, random_state, options):
        self.problem, self.tol, self.max_epochs, self.seed = problem, tol, max_epochs, random_state
        self.options = options
        self.newton = Newton() if not options and worthwhile(problem) else None
        self.points = []  # (alpha, state), at most two
        self.rho = None

    def to(self, alpha) -> Result:
        problem = self.problem.with_alpha(alpha)
        if self.options.get("method", SDCAADMM.name) != SDCAADMM.name:
            return solve(problem, **self._limits(), **self.options)
        start, spent = self._predict(problem, alpha), None
        if self.newton is not None:
            w, _, y = start
            spent = self.newton.correct(problem, w, y, tol=self.tol, steps=min(10, self.max_epochs))
            start = tuple(spent.state[key] for key in ("w", "x", "y"))
        if spent is not None and spent.status is Status.CONVERGED:
            result = spent
        else:
            warm = self._warm(problem, *start) if self.points else None
            result = solve(problem, warm_start=warm, **self._limits(), **self.options)
            self.rho = result.state["rho"]
            if spent is not None:
                result.epochs += spent.epochs
                result.seconds += spent.seconds
        self.points = [*self.points[-1:], (alpha, result.state)]
        return result

    def _limits(self):
        return {"tol": self.tol, "max_epochs": self.max_epochs, "random_state": self.seed}

    def _predict(self, problem, alpha):
        """w, x and y on the line through the last two answers."""
        if not self.points:
            return np.zeros(problem.size), np.zeros(problem.visits), np.zeros(problem.d)
        (before, first), (last, second) = self.points[0], self.points[-1]
        ahead = (alpha - last) / (last - before) if last != before else 0.0
        w, x, y = (second[key] + ahead * (second[key] - first[key]) for key in ("w", "x", "y"))
        return w, np.clip(x, *problem._domain()), y

    def _warm(self, problem, w, x, y):
        """A result to start from; the count of epochs, which damps rho, begins anew."""
        rng = np.random.default_rng(self.seed)
        if self.rho is None:
            self.rho = SDCAADMM(**self.options).start(problem, rng).rho
        state = State(x=x, y=y, w=w, zx=problem.combine(x), by=problem.adjoint @ y, u=problem.map_slots @ w,
                      rho=self.rho, epoch=0, rng=rng)  # fmt: skip
        coef, intercept = problem.unpack(w)
        return Result(coef, intercept, np.inf, -np.inf, Status.EPOCH_LIMIT, History(), 0, 0.0, state.as_dict())
