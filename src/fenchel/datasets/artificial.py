"""The paper's artificial problem."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._validate import Array, Index, MatrixLike
from ..losses import SmoothedHinge
from ..penalties import GroupL2, Ridge
from ..problem import Problem


def artificial(n: int = 5120, side: int = 32, noise: float = 0.1, seed: int = 0) -> tuple[Array, Array, Array]:
    """The paper's artificial data: a weight matrix of which only the first column counts.

    Parameters
    ----------
    n : int
        Rows.
    side : int
        The weights form a side x side matrix, so there are side * side features.
    noise : float
        Standard deviation of the noise inside the sign.
    seed : int
        Same seed, same data.

    Returns
    -------
    X : array (n, side * side)
        Standard normal.
    y : array (n,)
        sign(X w + noise * eps), +1 and -1.
    true_w : array (side * side,)
        The weight matrix vectorised column by column: ``true_w.reshape(side, side, order="F")``.
    """
    n, side = _whole("n", n), _whole("side", side)
    if not (np.isfinite(noise) and noise >= 0):
        raise ValueError(f"noise is {noise!r}; it must be a finite number, not negative")
    rng = np.random.default_rng(seed)
    true_w = np.zeros(side * side)
    true_w[:side] = rng.standard_normal(side)
    X = rng.standard_normal((n, side * side))
    score = X @ true_w + noise * rng.standard_normal(n)
    return X, np.where(score >= 0, 1.0, -1.0), true_w


def artificial_groups(side: int = 32) -> list[Index]:
    """The columns, then the rows, of a side x side matrix vectorised column by column.

    Every feature stands in two groups: its column and its row.
    """
    index = np.arange(_whole("side", side) ** 2).reshape(side, side, order="F")
    return [*index.T.copy(), *index.copy()]


def artificial_problem(n: int = 5120, side: int = 32, seed: int = 0) -> Problem:
    """The paper's artificial problem: smoothed hinge, column and row norms, and a small quadratic."""
    X, y, _ = artificial(n, side, seed=seed)
    return artificial_problem_of(X, y, side)


def artificial_problem_of(X: MatrixLike, y: npt.ArrayLike, side: int) -> Problem:
    """The loss, penalty and alpha of the artificial problem on data that you hold already."""
    groups = artificial_groups(side)
    penalty = GroupL2(groups, weights=np.ones(len(groups))) + 0.01 * Ridge()
    return Problem(X, y, loss=SmoothedHinge(), penalty=penalty, alpha=0.1 / np.sqrt(len(np.asarray(y))))


def _whole(name: str, value: float) -> int:
    if isinstance(value, (bool, np.bool_)) or int(value) != value or value < 1:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
    return int(value)
