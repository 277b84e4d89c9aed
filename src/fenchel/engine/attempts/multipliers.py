r"""The method of multipliers with Newton steps: for problems of moderate size that epochs find hard.

With copies :math:`t = Z^\top w` of the scores (where the loss has kinks) and :math:`u = B^\top w`, the multipliers of
the copies are the dual variables x and y. A round minimises the augmented Lagrangian over t, u and w together, that is

.. math:: \phi(w) = \sum_i e_i(z_i^\top w) + E(B^\top w) + \tfrac12 \|w - w_k\|_S^2,

in which e and E are the Moreau envelopes of loss and penalty (times n), with steps 1/r and 1/q and shifted by x and y,
and S is small; the slopes of the envelopes at the minimum are the next x and y. A loss without kinks stands for itself.
:math:`\phi` is smooth and its curvature piecewise so, therefore Newton steps with a line search find the minimum; and
where everything is piecewise linear or quadratic, finitely many rounds find the answer. This is the semismooth Newton
augmented Lagrangian method (Li, Sun and Toh, 2018) in the proximal form of Rockafellar (1976). What it asks of a
penalty is the derivative of its prox (:meth:`fenchel.penalties.Penalty.prox_jacobian`); nothing has to be guessed about
which rows are at a kink and which coefficients are zero or tied.

Nothing here is believed: every round ends with the problem's certificate.
"""

from __future__ import annotations

import math
import time

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ...data.envelopes import DIFFERENCE
from ...foundation.numerics import DENSE, DIGITS
from ...kernels.rules import LOOSE
from ...penalties import Penalty
from ...problem import Certificate, Problem
from ...problem.convergence import Convergence
from ...proximal import compiled_map
from ..inner.admm import FLAT
from ..lower_gram import lower_gram
from .manifold import Point

_MOVES = 200  # proxes that the derivative of one may take
_LIVELY = 30  # Newton steps of a round: after fewer, longer steps are taken in the next, in proportion
STEPS = 40  # Newton steps in a round before S is raised
_NEAR = 1e-3  # S in the first round, in units of the loss's curvature
_LEAST = 0.05  # of the mean square of a typical column, what a column counts for at the least
_SEEN = 1e-2  # of tol: relative error of dual variables that the longest steps may make; larger: bounds get worse


def applies(problem: Problem) -> bool:
    """Whether the curvature may be a matrix, and the derivative of every prox is known or cheap to find."""
    return problem.size <= DENSE and all(_is_known(block.function, block.d) for block in problem.blocks)


def _is_known(function: Penalty, d: int) -> bool:
    """Whether the derivative of a prox is known, or takes few proxes to find."""
    if type(function).prox_jacobian is not Penalty.prox_jacobian:
        return True
    if function.prox_slope(np.zeros(d), np.ones(d)) is not None:
        return True
    return int(np.bincount(np.unique(function.units(d), return_inverse=True)[1]).max(initial=0)) <= _MOVES


def _compiled_step(loss):
    """The dual step of a loss by the addresses of its arrays, several times as fast on few rows; None where it is
    written in Python."""
    from ...kernels.compiled import STEP_BY_ADDRESS, calls_python

    step = loss.compiled()
    return None if calls_python(step) else STEP_BY_ADDRESS(step.address)


class Multipliers:
    """The method for one problem; see :meth:`run`."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.deadline = math.inf  # by the clock of time.perf_counter
        self.weights = np.broadcast_to(np.asarray(problem._weights(), dtype=float), (problem.visits,)).copy()
        self.step = _compiled_step(problem.loss) if self.weights.all() else None
        self.units, self.unit_count = problem.units
        sizes = np.diff(problem.bounds)
        self.scale = problem.n * np.repeat([block.scale for block in problem.blocks], sizes).astype(float)
        self.ridge = problem.n * np.repeat([block.ridge for block in problem.blocks], sizes).astype(float)
        # columns in units in which the penalty weighs features alike
        self.unit = np.ones(problem.size)
        self.unit[problem.feature_slots] = problem.feature_units()
        squares = np.ones(problem.size)
        squares[problem.feature_slots] = np.tile(problem.data.mean_squares, problem.vectors)
        seen = squares / self.unit**2
        # a column without penalty is in units of its own, and its coefficient may be as large as it likes
        free = problem.feature_slots[problem.gram.unseen]
        held = np.setdiff1d(problem.feature_slots, free)
        held = held if seen[held].any() else problem.feature_slots
        typical = float(np.quantile(seen[held][seen[held] > 0], 0.75)) if seen[held].any() else 1.0
        self.unit[free] = np.sqrt(np.where(squares[free] > 0, squares[free] / typical, 1.0))
        self.squares = problem.n * np.maximum(squares / self.unit**2, _LEAST * typical)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def run(self, w, x, y, *, tol: float, steps: int) -> Point:
        """Rounds from (w, x, y) until the relative gap is at most tol, or so many Newton steps.

        Where not a single round came to its end, the point has the dual variables it began with.
        """
        problem, rule = self.problem, Convergence.of(self.problem, tol)
        self.w, self.x, self.y = w.copy(), x.copy(), y.copy()
        self.scores, self.at = problem.scores(self.w), problem.penalised(self.w)
        self._first_steps()
        self.left, self.passes = steps, 1.0
        accuracy, point = 1.0, None
        best = Certificate(problem.mean_loss(self.scores) + problem.penalty_value(self.at), -np.inf, np.inf)
        answer, centre, before = self.w, self.w, np.inf
        while self.left > 0 and time.perf_counter() < self.deadline:
            size = problem.n * abs(best.primal if np.isfinite(best.primal) else problem.mean_loss(self.scores))
            size = max(size, 1e-300)
            found = self._minimise(centre, max(accuracy, 1e-4), tol, size)
            if not (np.isfinite(self.w).all() and np.isfinite(self.scores).all()):
                found, self.w = None, centre
            centre = self.w
            self.scores, self.at = problem.scores(centre), problem.penalised(centre)  # sums gather rounding errors
            if found is None:
                self.r, self.q, self.near = 0.1 * self.r, 0.1 * self.q, 10.0 * self.near
                continue
            x, y, u, moved, used = found
            self.x, self.y = x, y
            w = problem.within(problem.snap(self.w, u))
            point = Point(w, x, y, problem.gradient_sum(x), u, problem.primal_at(w))
            made = problem.certificate(point, fresh=False, primal=point.primal)
            self.passes += 1.5
            if point.primal < best.primal or not np.isfinite(best.primal):
                best.primal, answer = point.primal, w
            best.dual, best.residual = max(best.dual, made.dual), made.residual
            best.reason = "" if np.isfinite(best.dual) else made.reason
            if rule.reached(best):
                break
            slow, before = moved > 0.1 * before, moved
            if moved <= 1e-2 * tol * size:
                accuracy *= 0.1
                if not slow:
                    continue  # the multipliers are about to stand still: what is missing is accuracy
            grow = max(_LIVELY / (1 + used), 1.0)
            self.near /= grow
            self.r *= min(grow, max(self._room(self.r * self.scores, self.x, tol), 0.1))
            self.q = self.q * min(grow, max(self._room(self.q * self.at, self.y, tol), 0.1))
        if point is None:
            point = Point(answer, x, y, problem.gradient_sum(x), self.at, best.primal)
        return Point(answer, point.x, point.y, point.zx, point.u, best.primal, self.passes, best)

    def _room(self, steps, forces, tol):
        """How much longer steps may become before their rounding is all that is seen of the dual variables."""
        rounding = np.finfo(float).eps * float(np.linalg.norm(steps))
        return _SEEN * tol * float(np.linalg.norm(forces)) / rounding if rounding > 0 else np.inf

    def _first_steps(self):
        """r, q and S from the sizes of scores and coefficients, and of their dual variables."""
        problem = self.problem
        self.r = 1.0
        if problem.loss.kinked:  # others stand for themselves
            low, high = problem._domain()
            width = np.subtract(high, low)
            forces = np.linalg.norm(self.x) or 0.5 * np.linalg.norm(width[np.isfinite(width)])
            size = max(np.linalg.norm(self.scores), np.linalg.norm(problem.target))
            self.r = float(forces / size) if forces > 0 and size > 0 else 1.0
        seen = problem.map_squares @ (self.squares**-0.5 / self.unit**2)
        if seen.size:
            seen = (np.bincount(self.units, seen) / np.bincount(self.units))[self.units]
        some = seen > 0  # an empty row of B' sees nothing
        self.q = 1.0 / np.where(some, seen, seen[some].mean() if some.any() else 1.0)
        forces, size = np.sum(self.y**2 / self.q), np.sum(self.q * self.at**2)
        if forces > 0 and size > 0:
            self.q *= math.sqrt(forces / size)
        bend = self._rows(self.scores, bend=True)[1]
        least = 1e-3 * bend.max()
        # the rows may all be on flat parts
        if problem.loss.kinked:
            least = max(least, FLAT * self.r)
        elif problem.loss.smoothness is not None:
            least = max(least, FLAT * problem.loss.smoothness * self.weights.mean())
        self.near = _NEAR * self.unit**2 * self.squares * max(bend.mean(), least, 1e-300)

    # -- one round ----------------------------------------------------------------------------------

    def _minimise(self, centre, accuracy, tol, size):
        """Newton steps to the minimum of phi: x, y and u there, how far they are from the last ones, and steps taken.

        None where too many steps were needed. `size` is n times the objective.
        """
        problem, last = self.problem, np.inf
        for step in range(STEPS):
            x, bend = self._rows(self.scores, bend=True)
            y, u, point, length = self._penalty(self.at)
            zx = problem.gradient_sum(x)
            slope = zx + problem.spread(y) + self.near * (self.w - centre)
            move = self._direction(slope, bend, point, length)
            self.left -= 1
            self.passes += 1.0 + np.count_nonzero(bend) / bend.size
            if move is None:
                return None
            gain = -float(slope @ move)
            moved = np.sum(self.q * (u - self.at) ** 2) + self.near @ (self.w - centre) ** 2
            if problem.loss.kinked:
                moved += np.sum((x - self.x) ** 2) / self.r
            forces = np.abs(y).max(initial=0.0) or np.abs(zx / self.unit).max()
            unbalanced = np.abs(slope / self.unit).max() / max(forces, 1e-300)
            low = gain <= accuracy * max(1e-2 * moved, 1e-3 * tol * size)
            rounding = gain <= 1e-15 * size and step > 3 and gain >= 0.1 * last
            if (low and unbalanced <= max(0.1 * accuracy * math.sqrt(moved / size), 0.1 * tol)) or rounding:
                return x, y, u, moved, step
            last = gain
            if self.left <= 0 or time.perf_counter() > self.deadline:
                return None
            if not self._search(move, centre):
                return x, y, u, moved, step
        return None

    def _direction(self, slope, bend, point, length):
        """The Newton direction; None where rounding has made the curvature indefinite."""
        matrix = self._curvature(bend, point, length)
        try:
            factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        move = scipy.linalg.cho_solve(factor, -slope, check_finite=False)
        return move if np.isfinite(move).all() else None

    def _search(self, move, centre):
        """Go along the move to where phi is lowest: the root of its slope, which only grows; False if it is here."""
        problem = self.problem
        along, ahead = problem.scores(move), problem.penalised(move)
        start, rise = float(self.near * (self.w - centre) @ move), float(self.near * move @ move)

        def slope(share):
            x, y = self._rows(self.scores + share * along), self._penalty(self.at + share * ahead)[0]
            value = float(x @ along + y @ ahead) + start + share * rise
            return value if value == value else np.inf

        below = slope(0.0)
        if not below < 0:
            return False
        flat = LOOSE * abs(below)
        low, share, high, above = 0.0, 1.0, np.inf, np.inf
        for _ in range(60):
            there = slope(share)
            if abs(there) <= flat or share >= 1e6:
                break
            if there < 0:
                low, below = share, there
            else:
                high, above = share, there
            if high == np.inf:
                share *= 4
            else:
                ratio = below / (below - above) if below < above else 0.5
                share = low + (high - low) * min(max(ratio, 0.05), 0.95)
        self.w = self.w + share * move
        self.scores, self.at = self.scores + share * along, self.at + share * ahead
        return True

    # -- loss and penalty ---------------------------------------------------------------------------

    def _rows(self, scores, *, bend=False):
        """x at these scores, and how fast it grows with them if asked for."""
        problem = self.problem
        if not problem.loss.kinked:
            x = problem.slopes_at(scores)
            if not bend:
                return x
            return x, self.weights * problem.loss.curvature(problem.seen(scores), problem.target)
        at = self.r * problem.seen(scores) + self.x
        x = self._dual_step(at)
        if not bend:
            return x
        h = DIFFERENCE * (np.abs(at) + np.abs(x).mean() + 1e-300)
        return x, self.r * np.clip((self._dual_step(at + h) - self._dual_step(at - h)) / (2 * h), 0.0, 1.0)

    def _dual_step(self, at):
        curvature, target = np.full(at.size, 1.0 / self.r), self.problem.target
        if self.step is None:
            return self.problem.loss._weighted_step(at, curvature, target, self.weights)
        out, params = np.empty(at.size), self.problem.loss.params
        self.step(at.size, *(array.ctypes.data for array in (out, at, curvature, target, self.weights, params)))
        return out

    def _penalty(self, at):
        """y and u at B'w, and the point and the step of the prox that gave them."""
        pull, total = self.q * at + self.y, self.q + self.ridge
        point, length, u = pull / total, self.scale / total, np.empty_like(at)
        for block, first, last in self.problem._parts():
            u[first:last] = block.prox(point[first:last], length[first:last])
        return pull - self.q * u, u, point, length

    def _curvature(self, bend, point, length):
        """The curvature of phi, of which the lower triangle counts."""
        problem = self.problem
        matrix = np.zeros((problem.size, problem.size))
        self._add_loss_curvature(bend, matrix)
        if not problem.fit_intercept:
            matrix[problem.intercept_slots] = 0.0
        self._add_penalty_curvature(point, length, matrix)
        own = np.diag(matrix).copy()
        matrix[np.diag_indices_from(matrix)] += self.near + DIGITS * own + 1e-300
        return matrix

    def _add_loss_curvature(self, bend, matrix):
        """Add Z diag(bend) Z'."""
        problem = self.problem
        if problem.data.sparse:
            from ...kernels.newton import sparse_curvature

            sparse_curvature(*problem.data.arrays, problem.layout, bend, matrix)
            matrix += np.triu(matrix, 1).T  # where the entries of a row do not stand in order
        else:
            _add_dense_curvature(problem, bend, matrix)

    def _add_penalty_curvature(self, point, length, matrix):
        """Add B J B', where J = q - q^2 / (q + ridge) times the derivative of the prox."""
        from ...kernels.models import coupled

        problem, d = self.problem, self.problem.d
        share = self.q**2 / (self.q + self.ridge)
        diagonal, direction = np.zeros(d), np.zeros(d)
        for block, first, last in problem._parts():
            some = slice(first, last)
            slope = block.function.prox_slope(point[some], length[some])
            if slope is not None:
                diagonal[some], direction[some] = slope
                continue
            root = np.sqrt(share[some])
            jacobian = block.function.prox_jacobian(point[some], length[some])
            if sp.issparse(jacobian):
                scaled = sp.diags_array(root) @ problem.map_slots[some]
                _subtract(matrix, scaled.T @ (jacobian @ scaled))
            else:
                _subtract_within(matrix, problem.map_slots[some], root[:, None] * jacobian * root)
        if d:
            B = problem.map_slots
            coupled(matrix, compiled_map(problem), self.q - share * diagonal, matrix)
            if direction.any():
                entries = np.sqrt(share) * direction, (self.units, np.arange(d))
                across = sp.csr_array(entries, shape=(self.unit_count, d)) @ B
                _subtract(matrix, across.T @ across)


def _subtract(matrix, part):
    """Subtract a sparse matrix from the lower triangle of one that is not."""
    part = sp.coo_array(part)
    part.sum_duplicates()
    lower = part.row >= part.col
    matrix[part.row[lower], part.col[lower]] -= part.data[lower]


def _subtract_within(matrix, rows, middle):
    """Subtract B M B' for a dense M, where `rows` are those of B'."""
    if np.all(np.diff(rows.indptr) == 1) and np.unique(rows.indices).size == rows.indices.size:
        matrix[np.ix_(rows.indices, rows.indices)] -= rows.data[:, None] * middle * rows.data
    else:
        matrix -= rows.T @ (rows.T @ middle.T).T


def _add_dense_curvature(problem, bend, H):
    """H += sum of bend_i z_i z_i' for dense rows, each pair of different entries in one place only.

    An intercept that is switched off is left out.
    """
    outputs, stride, offset, slot = problem.layout
    X, p = problem.data.arrays[0], problem.p
    bend = bend.reshape(problem.n, outputs)
    for k in range(problem.vectors):
        start = k * stride
        weight = bend[:, k] if offset.size == 0 else np.where(offset == start, bend[:, 0], 0.0)
        H[start : start + p, start : start + p] += lower_gram(X, weight)
        if problem.fit_intercept:
            H[start + slot, start : start + p] += weight @ X
            H[start + slot, start + slot] += weight.sum()
