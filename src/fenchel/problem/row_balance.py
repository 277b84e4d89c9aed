r"""Free directions and losses of several scores per row: Newton's steps along them.

Along a direction that carries no penalty (an intercept, say) dual variables must add up to zero. For losses over the
simplex (``losses/several.py``) the probabilities v = x + t of every row are tilted towards that,

.. math:: v_k(c) \propto v_k e^{(A c)_k}, \qquad
          c = \operatorname{argmin} \sum_i s_i \Bigl(\log \sum_k v_{ik} e^{(A c)_{ik}} - t_i^\top (A c)_i\Bigr),

which is convex and smooth in c, keeps every row inside its domain, and has the slope A's(v(c) - t): zero where the sums
are. From the v of w = 0 the same steps find the best answer along these directions.

Symbols: A the data along the directions; c coefficients; x dual variables; h curvatures (see ``losses/several.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array, Ints
from ..foundation.numerics import BALANCED, DIGITS, NEWTON_STEPS
from .bounds import NoCertificate
from .least_squares import least_squares
from .unpenalised import GROWTH

if TYPE_CHECKING:
    from .certificate import Certifying

_MIXED = (0.0, 1e-6, 1e-2)  # of the shares of the classes, mixed into v where that has zeros in the way
MOST_FREE = 1000  # directions that are repaired; more: gigabytes of columns for a bound

Evaluate = Callable[[Array], tuple[float, Array, Array]]


class Intercepts:
    """The directions of the intercepts alone, one for each class."""

    def __init__(self, m: int) -> None:
        self.count = self.m = m

    def extent(self, n: int) -> float:
        """The squared length of a direction, over all rows."""
        return float(n)

    def along(self, c: Array, n: int) -> Array:
        """A c, (n, m)."""
        return np.broadcast_to(c, (n, self.m))

    def sums(self, x: Array) -> Array:
        """A'x."""
        return np.asarray(x.sum(axis=0))

    def sizes(self, x: Array) -> Array:
        """|A|'|x|, what the sums are made of."""
        return np.asarray(np.abs(x).sum(axis=0))

    def gram(self, h: Array) -> Array:
        """A'HA."""
        total = h.sum(axis=1, keepdims=True)
        return np.asarray(np.diag(h.sum(axis=0)) - (h / np.where(total > 0, total, 1.0)).T @ h)


class Directions:
    """Any directions, by the data along them (visits, count), each in units of its own length."""

    def __init__(self, columns: Array, m: int) -> None:
        lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns))
        self.lengths = np.where(lengths > 0, lengths, 1.0)
        self.columns, self.m, self.count = columns / self.lengths, m, columns.shape[1]

    def extent(self, n: int) -> float:
        return 1.0

    def along(self, c: Array, n: int) -> Array:
        return np.asarray(self.columns @ c).reshape(n, self.m)

    def sums(self, x: Array) -> Array:
        return np.asarray(self.columns.T @ x.ravel())

    def sizes(self, x: Array) -> Array:
        return np.asarray(np.abs(self.columns).T @ np.abs(x).ravel())

    def gram(self, h: Array) -> Array:
        total = h.sum(axis=1, keepdims=True)
        bent = h.reshape(-1, 1) * self.columns
        rows = bent.reshape(*h.shape, self.count).sum(axis=1) / np.sqrt(np.where(total > 0, total, 1.0))
        return np.asarray(self.columns.T @ bent - rows.T @ rows)


def balanced(problem: Certifying, x: Array, zx: Array, y: Array | None, zeroed: Ints) -> tuple[Array, Array]:
    """x tilted so that unpenalised directions (and y on `zeroed`) carry no gradient; see ``Certifying._balance``."""
    if not (problem._free_count or len(zeroed)):
        return x, zx
    from ..kernels.simplex import softmax_tilt

    free, goal = _directions(problem, x, y, zeroed)
    n, m = problem.n, problem.layout[0]
    loss: Any = problem.loss
    weight = problem.weight[:, None] if problem.weight.size else np.ones((n, 1))
    target = problem.target.reshape(n, m)
    scale = free.sizes(x.reshape(n, m))
    if np.all(np.abs(free.sums(x.reshape(n, m)) - goal) <= BALANCED * scale):
        return x, zx
    v = np.maximum(np.where(weight > 0, x.reshape(n, m) / np.where(weight > 0, weight, 1.0), 0.0) + target, 0.0)
    shares = (weight * target).sum(axis=0) / weight.sum()
    steepest = 0.5 * float(weight.max()) * free.extent(n)
    for mixed in _MIXED:
        start = (1 - mixed) * v + mixed * shares
        logs = np.log(np.maximum(start, 1e-300))
        logs[start <= 0] = -np.inf

        def evaluate(c: Array, logs: Array = logs) -> tuple[float, Array, Array]:
            move, slope, bend = np.ascontiguousarray(free.along(c, n)), np.empty((n, m)), np.empty((n, m))
            value = softmax_tilt(logs, move, target, weight, slope, bend)
            return float(value) - float(goal @ c), slope, bend

        tilted = newton(free, evaluate, np.zeros(free.count), steepest, goal)[1]
        if np.all(np.abs(free.sums(tilted) - goal) <= BALANCED * np.maximum(scale, free.sizes(tilted))):
            out = np.ascontiguousarray(tilted).ravel()
            return out, problem.gradient_sum(out)
    raise NoCertificate(
        f"no dual feasible point close by: unpenalised directions of the {type(loss).__name__} loss carry a gradient"
    )


def _directions(problem: Certifying, x: Array, y: Array | None, zeroed: Ints) -> tuple[Any, Array]:
    """The free directions, and what the sums along them have to be."""
    m = problem.layout[0]
    if problem._free_count == m and problem.fit_intercept and not len(zeroed):
        return Intercepts(m), np.zeros(m)
    along, goal = problem._free[1], np.zeros(problem._free_count)
    if y is None or not len(zeroed):
        return Directions(along, m), goal
    if len(zeroed) > MOST_FREE:
        raise NoCertificate(f"{len(zeroed)} dual variables have the wrong sign; at most {MOST_FREE} can be mended")
    extra = problem._along(problem._lifted(zeroed))
    made = Directions(np.column_stack([along, extra]), m)
    # a move of x by so much along these takes y to zero there
    return made, np.concatenate([goal, extra.T @ x + y[zeroed]]) / made.lengths


def best_free(problem: Certifying) -> tuple[Array, Array, Array]:
    """The best w that the penalty does not see, its scores and its dual variables."""
    n, m = problem.n, problem.layout[0]
    loss: Any = problem.loss
    alone = problem._free_count == m and problem.fit_intercept
    free: Any = Intercepts(m) if alone else Directions(problem._free[1], m)
    weight = np.repeat(problem.weight, m) if problem.weight.size else np.ones(n * m)
    c = np.zeros(free.count)
    if not loss.kinked:

        def evaluate(c: Array) -> tuple[float, Array, Array]:
            score = np.ascontiguousarray(free.along(c, n)).ravel()
            total, x, h = loss.sums(problem.seen(score), problem.target, weight)
            return total, x.reshape(n, m), h.reshape(n, m)

        c, x = newton(free, evaluate, c, loss.smoothness * float(weight.max()) * free.extent(n))
    else:
        c, x = _over_kinks(problem, free, weight)
    w = np.zeros(problem.size)
    if alone:
        w[problem.intercept_slots] = c
    else:
        w = problem._free[0] @ (c / free.lengths)
    return w, np.ascontiguousarray(free.along(c, n)).ravel(), x.ravel()


def _over_kinks(problem: Certifying, free: Any, weight: Array) -> tuple[Array, Array]:
    """The augmented Lagrangian of the dual problem, as in ``unpenalised.py``."""
    n, m = problem.n, problem.layout[0]
    loss: Any = problem.loss
    target = problem.target
    c, x, sigma = np.zeros(free.count), np.zeros(n * m), float(np.mean(weight))
    for _ in range(NEWTON_STEPS):
        centre, width = x, sigma

        def evaluate(c: Array, centre: Array = centre, sigma: float = width) -> tuple[float, Array, Array]:
            score = np.ascontiguousarray(free.along(c, n)).ravel()
            new = loss._weighted_step(centre + sigma * problem.seen(score), np.full(n * m, 1.0 / sigma), target, weight)
            away = new - centre
            value = float(new @ score) - n * problem.mean_conjugate(new) - float(away @ away) / (2 * sigma)
            moves = np.where(new + weight * target > 0, sigma, 0.0)  # classes whose share is not held at zero
            return value, new.reshape(n, m), moves.reshape(n, m)

        c, made = newton(free, evaluate, c, sigma * free.extent(n))
        x = np.ascontiguousarray(made).ravel()
        primal = n * problem.mean_loss(np.ascontiguousarray(free.along(c, n)).ravel())
        if primal + n * problem.mean_conjugate(x) <= DIGITS * abs(primal):
            break
        sigma *= GROWTH
    return c, x


def newton(free: Any, evaluate: Evaluate, c: Array, steepest: float, goal: Array | None = None) -> tuple[Array, Array]:
    """The c that makes a convex function small, and its slopes by rows there; `goal` is what their sums are to be.

    Damping grows until the function falls, in units of the largest curvature that it can have.
    """
    wanted = np.zeros(free.count) if goal is None else goal
    value, x, h = evaluate(c)
    gradient, damping = free.sums(x) - wanted, 0.0
    for _ in range(NEWTON_STEPS):
        if np.all(np.abs(gradient) <= 0.5 * BALANCED * free.sizes(x)):
            break
        taken = False
        while damping < 1e3:
            matrix = free.gram(h)
            matrix[np.diag_indices(free.count)] += damping * steepest
            move = -least_squares(matrix, gradient, 1e-13)
            foreseen = -float(gradient @ move)
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                made = evaluate(c + move)
            slope = free.sums(made[1]) - wanted
            # where rounding hides the fall of the function its slope tells; a model that is flat along the slope
            # foresees no fall either, and wants damping
            if foreseen <= 1e-12 * abs(value):
                fell = np.linalg.norm(slope) < 0.9 * np.linalg.norm(gradient)
            else:
                fell = made[0] <= value - 1e-4 * foreseen
            if fell:
                c, (value, x, h), gradient, taken = c + move, made, slope, True
                damping = 0.0 if damping < 1e-10 else 0.1 * damping
                break
            damping = max(10 * damping, 1e-10)
        if not taken:
            break
    return c, x
