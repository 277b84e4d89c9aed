r"""What it costs to make a dual point feasible to the last digit, where no scaling does.

The sums :math:`a_j^\top x` along directions without a penalty must be zero, and so must dual variables that a limit of
zero on one side holds, or a weight that rounding loses. In doubles they are so up to some :math:`|g_j| \le r_j`. A
point :math:`x + \delta` close by meets them exactly; nobody makes it, but what it has is bounded:

.. math:: D(x + \delta) \ge D(x) - \mathit{price}, \qquad \|\delta\| / \sqrt n \le \mathit{shift},

and the shift adds to what the other sums :math:`Z x` may be wrong by.

*Levels* (the intercepts alone). The heavier sign of x is shrunk by :math:`\tau = |g| / \sum |x_i|_{\text{heavy}} \le 2
|g| / \sum |x_i|`, which stays in every domain, since x = 0 is a point of it. Conjugates are convex: they rise by
:math:`\tau \sum (f_i^*(0) - f_i^*(x_i))` at the most, and that is at most :math:`\tau \sum (f_i(0) - \inf f_i)` by
Fenchel and Young. Losses over the simplex are mixed with the shares of the classes instead.

*Rooms* (any directions). Let h_i be at most half of what is left between x_i and the ends of its domain, and
:math:`G = A^\top H^2 A`. Then :math:`\delta = -H^2 A G^{-1} g` meets the sums, with

.. math:: \sum_i (\delta_i / h_i)^2 = g^\top G^{-1} g \le \theta^2,

so that it stays inside where :math:`\theta \le 1`. With :math:`u_i` the slopes of the conjugates at x, the price is
:math:`u^\top \delta` and what convex functions that begin flat may rise by, of which their values at
:math:`x_i \pm \kappa h_i` tell: :math:`f(t) \le |t| \max f(\pm 1)`.

With theta alone the sums :math:`Z_j^\top \delta` are bounded by :math:`\theta \|H Z_j\|`. They are known better: with
:math:`G = V \Lambda V^\top` and :math:`M_j = |Z_j^\top H^2 A V \Lambda^{-1} V^\top|`, the sizes of the coefficients of
Z_j by least squares on the directions,

.. math:: |Z_j^\top \delta| \le M_j \, r + \epsilon \, \|\Lambda^{-1} |V|^\top r\|
          (c + \lambda_{\min}^{-1/2}) \max h \, \|Z_j\|, \qquad |g| \le r,

so that a column along which sums are met moves by no more than they were off. Here :math:`V^\top G V = \Lambda + E`
with :math:`\|E\| \le \epsilon`: the true coefficients differ from the ones above by :math:`(\Lambda + E)^{-1} E
\Lambda^{-1} V^\top g`, whose length in the metric of G is at most :math:`\epsilon \lambda_{\min}^{-1/2} \|\Lambda^{-1}
V^\top g\|`; the product with Z_j, as computed, is wrong by the other term.

Where intercepts are among them, the others are taken less their means m (by the weights :math:`h^2`; any number would
do): :math:`(a - m 1)^\top x = g_a - m g_1`, which is off by no more than :math:`r_a + |m| r_1`, and the directions span
the same. Columns far from zero are not dependent then.

Directions that are dependent up to rounding, so that G has no inverse that could be trusted, are left over: whoever
asks is told what remains of them. That is no more than rounding leaves of sums; where it is more than half of their
digits, rows have no room to mend them, and nothing is proven.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._validate import Array, Ints
from ..foundation.numerics import HALF
from ..penalties.block_sum import _NONE
from .rounding import MOST_EXACT, SCORE, STEPS, UNIT
from .row_balance import MOST_FREE, Directions

if TYPE_CHECKING:
    from .certificate import Certifying


class Correction(NamedTuple):
    """The price of a feasible point, in units of the objective, and its distance, as a root of a mean square; `left` is
    what it costs along directions that are dependent up to rounding if coefficients are those at hand; `sums` bounds
    the change of Z x feature by feature, where more is known than the distance tells."""

    price: float = 0.0
    shift: float = 0.0
    left: float = 0.0
    sums: Array | None = None

    def reach(self, problem: Certifying) -> Array:
        """What Z x may change by, feature by feature."""
        far = problem.n * self.shift * problem.column_lengths
        return far if self.sums is None else np.fmin(far, self.sums)


def of_levels(problem: Certifying, x: Array, zx: Array, exact: bool) -> Correction:
    """The intercepts alone."""
    sizes = problem.level_sizes(x)
    off = np.abs(zx[problem.intercept_slots])
    off = off * (1 + 2 * UNIT) if exact else off + UNIT * (problem._added + SCORE) * sizes
    if not off.any():
        return Correction()
    if problem.loss.coupled:
        shares = problem.shared("shares of classes", lambda: _shares(problem))
        with np.errstate(divide="ignore", invalid="ignore"):
            part = float(np.max(np.where(off > 0, off / (problem.n * shares), 0.0)))
        if not part <= 1:
            return Correction(math.inf)
        return Correction(part * _at_stake(problem), part * (problem._rms(x) + _simplex_length(problem)))
    part = min(1.0, 2 * float(np.max(np.divide(off, sizes, out=np.zeros_like(off), where=sizes > 0))))
    stake = problem._loss_at_zero + problem._conjugate_at_zero
    if problem.loss.of_residual:  # the least of f is at the target, which is the slope of f* at zero
        stake = min(stake, problem._rms(x) * problem._target_size)
    return Correction(part * stake, part * problem._rms(x))


def of_rooms(
    problem: Certifying, x: Array, along: Array, off: Array, sizes: Array, levels: Ints = _NONE, held: int = 0
) -> Correction:
    """Any directions, by the data along them (visits, k); `off` is what the sums along them may be, `sizes` those of
    the coefficients at hand, `levels` which of the directions are intercepts; along the last, so many as are `held`,
    sums need not be zero."""
    both = np.vstack([off, np.abs(along).T @ np.abs(x)])  # and what the sums are made of
    if levels.size:
        along, both, sizes = _less_their_means(_movable(problem, x), along, both, sizes, levels)
    off, terms = both
    rooms = (_SimplexRooms if problem.loss.coupled else _Rooms)(problem, x, along)
    count, known = off.size, off / rooms.lengths
    if not np.isfinite(rooms.gram).all():
        return Correction(math.inf)
    values, vectors = np.linalg.eigh(rooms.gram)
    # rounding of G and of its decomposition takes no more than this from an eigenvalue
    lost = UNIT * (problem.visits + count + STEPS) * count
    slack = lost * max(float(values[-1]), 0.0)
    safe = values - slack
    over, squares = np.abs(vectors).T @ known, np.full(count, np.inf)
    np.divide(over**2, safe, out=squares, where=safe > 0)
    squares[::-1] = np.cumsum(squares[::-1])  # the largest eigenvalues first
    good = squares < 1
    each = over * (np.abs(vectors).T @ (rooms.lengths * sizes)) / problem.n
    theta = math.sqrt(float(np.max(squares, where=good, initial=0.0)))
    # sums that are not zero by more than rounding: the direction has a length, but where rows have no room
    sums, rest = along.T @ x, off.copy()
    sums[count - held :], rest[: count - held] = 0.0, 0.0
    wanting = np.abs(vectors.T @ (sums / rooms.lengths)) + np.abs(vectors).T @ (rest / rooms.lengths)
    beyond = wanting > HALF * (np.abs(vectors).T @ (terms / rooms.lengths))
    if np.any(beyond & ~good):
        return Correction(math.inf)
    if theta == 0:
        return Correction(left=float(each[~good].sum()))
    kappa = max(math.sqrt(theta), rooms.farthest(float(np.linalg.norm(over[good] / safe[good]))))
    if not kappa <= 1:
        return Correction(math.inf if beyond.any() else 0.0, left=float(each.sum()))
    own = vectors[:, good]
    pulled, rise = rooms.slopes(kappa)
    pull = own @ ((own.T @ pulled) / values[good])
    price = (float(known @ np.abs(pull)) + theta / kappa * rise) / problem.n
    shift = theta * rooms.largest / math.sqrt(problem.n)
    made = Correction(price if math.isfinite(price) else math.inf, shift, float(each[~good].sum()))
    if problem.data.stored * own.shape[1] > MOST_EXACT:
        return made
    pushes = np.column_stack([problem.gradient_sum(rooms.moves(one))[problem.feature_slots] for one in own.T])
    coefficients = np.abs((pushes / values[good]) @ own.T)
    length = float(np.linalg.norm(over[good] / values[good]))
    wrong = length * (lost * rooms.extent + slack / math.sqrt(float(safe[good].min())))
    reach = wrong * rooms.largest * math.sqrt(problem.n) * problem.column_lengths
    return made._replace(sums=coefficients @ known + reach)


def _less_their_means(
    weight: Array, along: Array, off: Array, sizes: Array, levels: Ints
) -> tuple[Array, Array, Array]:
    """Directions without what intercepts, which no row has two of, make of them; and what becomes of the others."""
    others = np.setdiff1d(np.arange(sizes.size), levels)
    if not others.size:
        return along, off, sizes
    weighted = weight[:, None] * along[:, levels]
    total = np.einsum("ij,ij->j", weighted, along[:, levels])
    mean = np.divide(weighted.T @ along[:, others], total[:, None], out=np.zeros((levels.size, others.size)),
                     where=total[:, None] > 0)  # fmt: skip
    along, off, sizes = along.copy(), off.copy(), sizes.copy()
    along[:, others] -= along[:, levels] @ mean
    off[:, others] += off[:, levels] @ np.abs(mean)
    sizes[levels] += np.abs(mean) @ sizes[others]
    return along, off, sizes


def _room(problem: Certifying, x: Array) -> Array:
    """How far every row may move."""
    low, high = problem._domain()
    return np.maximum(np.minimum(0.5 * np.minimum(x - low, high - x), problem._rms(x)), 0.0)


def _movable(problem: Certifying, x: Array) -> Array:
    """How much rows count for the means of directions. The classes of a row count the same: what they have in common
    moves nothing, and has no part in what intercepts have in common if all take the same from it."""
    if problem.loss.coupled:
        v, weight = _shares_of_rows(problem, x)
        return np.repeat(weight[:, 0] * np.maximum(1 - np.square(v).sum(axis=1), 0.0), v.shape[1])
    return np.square(_room(problem, x))


class _Rooms:
    """Rows that move by themselves.

    Attributes
    ----------
    gram, lengths : G, for directions of unit length, and what their lengths were
    largest : the most that a row may move by
    extent : twice the length of what moves along a direction of unit length are made of, in units of `largest`
    """

    extent = 2.0

    def __init__(self, problem: Certifying, x: Array, along: Array) -> None:
        self.problem, self.x, self.room = problem, x, _room(problem, x)
        scaled = self.room[:, None] * along
        lengths = np.sqrt(np.einsum("ij,ij->j", scaled, scaled))
        self.lengths, self.largest = np.where(lengths > 0, lengths, 1.0), float(self.room.max(initial=0.0))
        self.scaled = scaled / self.lengths
        self.gram = self.scaled.T @ self.scaled

    def moves(self, coefficients: Array) -> Array:
        """The moves of the rows along such a direction."""
        return np.asarray(self.room * (self.scaled @ coefficients))

    def farthest(self, coefficients: float) -> float:
        """The largest part of its room by which a row moves for coefficients of this length, beyond theta."""
        return 0.0

    def slopes(self, kappa: float) -> tuple[Array, float]:
        """A'H^2 u, of the slopes u of the conjugates by differences over that part of the rooms; and the length of what
        conjugates rise by beyond their slopes, in units of the moves."""
        h = kappa * self.room
        up, at, down = (self.problem.row_conjugates(self.x + side * h) for side in (1.0, 0.0, -1.0))
        moves = h > 0
        with np.errstate(invalid="ignore"):  # outside their domain conjugates are infinite, and nothing moves
            slope = np.divide(up - down, 2 * h, out=np.zeros_like(h), where=moves)
            rise = np.where(moves, np.maximum(0.5 * (up + down) - at, 0.0), 0.0)
        return self.scaled.T @ (self.room * slope), _length(rise)


class _SimplexRooms:
    """Rows whose classes move by shares of what they have, v, so that they still add up to one:
    delta = s v (a - v'a) for a = A c."""

    def __init__(self, problem: Certifying, x: Array, along: Array) -> None:
        self.free, self.problem = Directions(along, problem.layout[0]), problem
        self.v, self.weight = _shares_of_rows(problem, x)
        self.v = np.maximum(self.v, 0.0)
        self.lengths, self.gram = self.free.lengths, self.free.gram(self.weight * self.v)
        self.largest = math.sqrt(float((self.weight * self.v).max(initial=0.0)))
        self.extent = 4 * self.largest

    def moves(self, coefficients: Array) -> Array:
        a = self.free.along(coefficients, self.problem.n)
        return np.asarray(self.weight * self.v * (a - (self.v * a).sum(axis=1, keepdims=True))).ravel()

    def farthest(self, coefficients: float) -> float:
        longest = float(np.einsum("ij,ij->i", self.free.columns, self.free.columns).max(initial=0.0))
        return 2 * coefficients * math.sqrt(longest)

    def slopes(self, kappa: float) -> tuple[Array, float]:
        problem, v = self.problem, self.v
        loss: Any = problem.loss
        target = problem.target.reshape(v.shape)
        up, at, down = (loss.potential((1 + side * kappa) * v, target).reshape(v.shape) for side in (1.0, 0.0, -1.0))
        slope = np.divide(up - down, 2 * kappa * v, out=np.zeros_like(v), where=v > 0)
        if problem.offset.size:
            slope = slope - problem.offset.reshape(v.shape)
        rise = np.maximum(0.5 * (up + down) - at, 0.0)
        rise = np.divide(rise * np.sqrt(self.weight), np.sqrt(v), out=np.zeros_like(v), where=v > 0)
        centred = slope - (v * slope).sum(axis=1, keepdims=True)
        return self.free.sums(self.weight * v * centred), _length(rise)


def _length(values: Array) -> float:
    """The Euclidean norm, of numbers whose squares may overflow."""
    largest = float(values.max(initial=0.0))
    return largest * float(np.linalg.norm(values / largest)) if 0 < largest < math.inf else largest


def of_rows(problem: Certifying, x: Array) -> Correction:
    """Rows whose shares of the classes do not add up to one, or are below zero, by rounding."""
    if not problem.loss.coupled:
        return Correction()
    if problem.pooled:  # shares were normalised and moved by as many roundings; no root of a mean square is larger
        m = problem.layout[0]
        each = 2 * (m + SCORE) * UNIT
        return Correction(2 * each * (1 + math.log(m) + problem._offset_size), 2 * each * math.sqrt(problem.n))
    v, weight = _shares_of_rows(problem, x)
    outside = np.abs(v.sum(axis=1) - 1) - 2 * np.minimum(v, 0.0).sum(axis=1)
    outside = weight[:, 0] * (outside + UNIT * v.shape[1])
    far = 1 + math.log(v.shape[1])
    if problem.offset.size:
        far = far + np.abs(problem.offset).reshape(v.shape).max(axis=1)
    price = 2 * float(np.mean(outside * far))
    return Correction(price, problem._mean_length(2 * outside))


def _shares_of_rows(problem: Certifying, x: Array) -> tuple[Array, Array]:
    """v = x / s + t of a loss over the simplex (n, m), and the weights s of the rows (n, 1)."""
    n, m = problem.n, problem.layout[0]
    weight = problem.weight[:, None] if problem.weight.size else np.ones((n, 1))
    x = np.divide(x.reshape(n, m), weight, out=np.zeros((n, m)), where=weight > 0)
    return x + problem.target.reshape(n, m), weight


def _shares(problem: Certifying) -> Array:
    """Of the classes, by the weights of the rows."""
    if problem.pooled:  # at zero every class has one probability, less the share it has
        pooled: Any = problem
        gradient = pooled.look(np.zeros(problem.size)).gradient
        return np.asarray(1.0 / problem.layout[0] - gradient[problem.intercept_slots])
    weight = problem.weight[:, None] if problem.weight.size else np.ones((problem.n, 1))
    return np.asarray((weight * problem.target.reshape(problem.n, -1)).sum(axis=0) / problem.n)


def _at_stake(problem: Certifying) -> float:
    """How far the conjugates at two points of the simplex may be apart, in the mean: they are convex, and none is below
    minus the loss at zero."""

    def highest() -> float:
        if problem.pooled:  # of the softmax, whose conjugate is zero at every corner
            return math.sqrt(2.0) * problem._offset_size
        n, m = problem.n, problem.layout[0]
        loss, target = problem.loss, problem.target.reshape(n, m)
        ends = [loss.conjugate((np.eye(m)[k] - target).ravel(), problem.target).reshape(n, m) for k in range(m)]
        weight = problem.weight if problem.weight.size else np.ones(n)
        top = np.max([end.sum(axis=1) for end in ends], axis=0)
        return float(weight @ top) / n + math.sqrt(2.0) * problem._offset_size

    top: float = problem.shared("top of conjugates", highest)
    return max(top + problem._loss_at_zero, 0.0)


def _simplex_length(problem: Certifying) -> float:
    """The largest distance of two points of the simplex, as a root of a mean square over the rows."""
    if problem.pooled:  # of weights the sum alone is known
        return math.sqrt(2.0 * problem.n)
    return math.sqrt(2.0) * (problem._mean_length(problem.weight) if problem.weight.size else 1.0)


def may_be_priced(problem: Certifying, count: int) -> bool:
    """Whether so many directions are few enough, and the loss a sum over rows that are at hand."""
    return problem.rows_at_hand and not problem.loss.across_rows and 0 < count <= MOST_FREE
