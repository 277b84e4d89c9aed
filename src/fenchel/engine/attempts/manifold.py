r"""Newton's method on the structure that an iterate shows.

Once the zeros, ties and groups of the answer are known, what is left is smooth: w moves in the linear set
:math:`w = N z` on which the zeros of :math:`u = B^\top w` stay zero, and there the loss and the other parts of the
penalty have curvature. A few Newton steps find the best z to rounding, where epochs would still be gaining half a digit
each. The dual variables follow: x is the slope of the loss at the answer, y the slope of the penalty where it has one,
and where it has none y is moved to :math:`Zx + By = 0` inside the ball that the penalty leaves it.

Nothing here is believed: the point goes through the problem's certificate like any other. If the structure was wrong,
the certificate says so, and the epochs go on from a better point.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time

import numpy as np
import scipy.sparse as sp

from ... import prices
from ...foundation.numerics import NOTHING
from ...maps import Gram, row_width
from ...problem import Certificate, Problem, tied_features
from ...problem.convergence import Convergence
from ...proximal import CompiledPenalty
from ..accuracy import BEYOND, PROJECTIONS
from .face_prices import REUSES, FacePrices
from .faces import DENSE, Bent, Curvature, Face, definite
from .row_space import row_space_solve

_TURNS, _STEPS = 12, 15  # faces, and steps on each
_CHEAPER = 0.9  # of a price that was too high: to find out whether it has fallen further costs time, too
_MERGED = 0.4  # of the price of a face, where it is read from a larger one
_GRACE = 2e7  # nanoseconds beyond its budget: what an attempt may take in the end, if that is more than BEYOND
_LAST, _LEAST = 0.1, 1e-9  # of tol, and at any rate: relative gain of a step that is the last one on a face
_BALANCE, _EXTRA = 0.02, 2  # of tol: the slope that the end may have, relatively, and steps for that alone
_NEARLY = 1e5  # times that: one step more will do, if it is made that well
_WORST = 0.01  # of the largest violation, what else is set free with it
_MOST_TURNED = 800  # coefficients up to which zeros that join more than two features are followed
_MENDED = 1e-8  # what may be left of the residual's square: in flat directions little is much


@dataclasses.dataclass
class Point:
    """Where Newton's method ended: w with its scores' x, the y found for it, the cost in passes over the data, the
    certificate if it was made, and the scores if they are known."""

    w: np.ndarray
    x: np.ndarray
    y: np.ndarray
    zx: np.ndarray
    u: np.ndarray
    primal: float
    passes: float = 0.0
    made: Certificate | None = None
    scores: np.ndarray | None = None


def applies(problem: Problem) -> bool:
    """Whether loss and penalty are smooth once the structure is fixed."""
    zeros = np.zeros
    smooth = not (problem.loss.kinked or problem.loss.across_rows or problem.loss.coupled)
    return smooth and all(block.function.local(zeros(block.d)) is not None for block in problem.blocks)


def correct(problem: Problem, w: np.ndarray, u: np.ndarray, y: np.ndarray, *, tol: float,
            deadline: float = math.inf) -> Point | None:  # fmt: skip
    """Newton's method from a point near the answer, with its certificate; None where it does not apply."""
    if not applies(problem):
        return None
    finisher = Finisher(problem)
    finisher.deadline = deadline
    point = finisher.run(w, u, y, tol=tol)
    if point is not None and point.made is None:
        point.made = problem.certificate(point, fresh=False, primal=point.primal)
    return point


class Finisher(FacePrices):
    """Newton's method for one problem; see :meth:`run`."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.deadline = math.inf  # by the clock of time.perf_counter
        self.refused = 0.0  # nanoseconds, the price that was last too high
        self.rooms = {}  # memory by its use: fresh memory costs more than the numbers that are written there
        self.entries = problem.entries[0], problem.entry_slots, problem.map.data

    @functools.cached_property
    def starts(self):
        """Where the units begin."""
        return np.flatnonzero(np.diff(self.units, prepend=-1))

    @functools.cached_property
    def compiled(self):
        return CompiledPenalty(self.problem)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")
    def run(self, w, u, y, *, tol: float, budget: float = np.inf, faces: int = 1) -> Point | None:
        """Newton steps from w within the structure of u = prox(...); None where that structure is not of the kind.

        `budget` is what the steps may be expected to cost, in nanoseconds by a model, on so many `faces`; otherwise
        None, too.

        Where the dual variables that result ask for more than their ball allows, the units they belong to are set
        free, and the steps go on, as long as the objective falls.
        """
        rule = Convergence.of(self.problem, tol)
        self.budget, self.faces, self.spent, self.fresh, self.rough = budget, faces, 0.0, True, True
        self.limit = max(BEYOND * budget, budget + _GRACE)
        self.last, self.balance = max(_LAST * tol, _LEAST), max(_BALANCE * tol, 1e-12)
        self.factor = None  # of the curvature on a face, for the steps after it
        self.trust = True  # in single precision
        self.goal, self.passes, self.first_slope = max((0.01 * tol) ** 2, 1e-28), 0.0, 0.0
        balancing = PROJECTIONS * prices.gram_solve_nanoseconds(self.problem.gram)
        least = max(self.least_nanoseconds, balancing, _CHEAPER * self.refused)
        if least > budget:
            return None
        self.passes = 1.0
        face = self._face(u == 0)
        best = None
        for _ in range(_TURNS):
            self.spent += prices.PRICES.face_call
            if face is None or self.spent > self.limit or self._late():
                break
            point, face = self._descend(face, w, y)
            if point is not None and self.rough and not self._outside(point).any():
                point.made = self.problem.certificate(point, fresh=False, primal=point.primal)
                if rule.reached(point.made):
                    best = point
                    break
                self.rough, self.last = False, 0.0  # the structure seems to be right: now all digits
                point, face = self._descend(face, point.w, point.y)
            if point is None or (
                best is not None and not point.primal < best.primal * (1 - 1e-13 * np.sign(best.primal))
            ):
                break
            best, w, y = point, point.w, point.y
            outside = self._outside(point)
            if not outside.any():
                break
            face = self._face(face.zero & ~outside[self.units], np.where(outside[self.units], y, 0.0))
        if best is not None:
            best.passes = self.passes
        return best

    def _descend(self, face, w, y):
        """The best point of a face (it may lose dimensions on the way), and the face it ended on."""
        problem = self.problem
        z = face.inside(w)
        if self.fresh and not self._affordable(face, z):
            return None, face
        scores = face.data.scores(z)
        value = self._value(scores, face, z)
        if not np.isfinite(value):
            return None, face
        last_gain, extra = np.inf, 0
        for _ in range(_STEPS):
            bent = self._penalty(self._leaning(face, face.map @ z))
            if bent is None:
                return None, face
            x = problem.slopes_at(scores)
            pull = face.data.gradient(x) / problem.n
            slope = pull + face.back @ bent.slope
            self.passes += 2 * face.data.cost
            if not z.size:
                break
            if (self.rough and self.spent > self.limit) or self._late():
                break
            # what is left of the slope may cost the objective nothing and the proof a lot
            far = np.linalg.norm(slope) / max(self.balance * np.linalg.norm(pull), 1e-300)
            if far <= 1.0:
                break
            goal = self.goal * abs(value) if self.rough else 0.0
            bend = self._bend(scores)
            move = self._direction(face, bend, bent, slope, goal, far)
            gain = -float(slope @ move)
            if not gain > self.goal * abs(value):
                extra += 1
                if self.rough or extra > _EXTRA:
                    break
            taken = self._search(face, z, move, scores, value, gain)
            if taken is None:
                break
            face, z, scores, new = taken
            stuck = gain > 0.5 * last_gain and gain < 1e-13 * abs(value)  # rounding
            value, last_gain = new, gain
            if stuck or gain <= self.last * abs(value):
                break
        w = face.lift(z)
        x = problem.slopes_at(scores)
        zx = problem.gradient_sum(x)
        self.passes += 0.5
        y = self._complete(face.map @ z, zx, y)
        u = problem.penalised(w)
        u[face.zero] = 0.0
        return Point(w, x, y, zx, u, value), face

    def _affordable(self, face, z):
        """Whether the steps are within the budget; asked before anything is made of the rows, until they are."""
        bent = self._penalty(self._leaning(face, face.map @ z))
        price = 0.0 if bent is None else self._foresee(face, z, bent)
        if bent is None or price > self.budget:
            self.refused = price if price < np.inf else 0.0
            return False
        self.fresh = bool(face.zero.all())  # then the next face is the first that means something
        return True

    def _late(self):
        return time.perf_counter() > self.deadline

    def _outside(self, point):
        """Units at zero whose dual variables are outside their ball, by unit."""
        zero = np.bincount(self.units, point.u * point.u, self.unit_count) == 0
        beyond = point.y - self._inside(point.y)
        size = np.bincount(self.units, point.y**2, self.unit_count)
        far = np.sqrt(np.bincount(self.units, beyond**2, self.unit_count) / np.maximum(size, 1e-300))
        far[~zero] = 0.0
        return far > max(1e-9, _WORST * far.max(initial=0.0))

    @staticmethod
    def _leaning(face, at):
        """B'w where units that were just set free lean the way their dual variables point."""
        return at if face.lean is None else np.where(at == 0, face.lean, at)

    # -- the structure ------------------------------------------------------------------------------

    def _face(self, zero, lean=None, larger=None):
        """The linear set on which these coordinates of B'w are zero; None where it cannot be told.

        It is read from a `larger` one that contains it, where that saves time.
        """
        problem = self.problem
        (lone, feature), (pairs, left, right, between), others, _ = problem.links
        tied, others = zero[pairs], zero & others
        label, side, torn = tied_features(left[tied], right[tied], between[tied], problem.map.shape[1])
        dead = np.zeros(label.max(initial=-1) + 1, dtype=bool)
        dead[label[torn]] = True
        dead[label[feature[zero[lone]]]] = True
        alive = np.flatnonzero(~dead[label])
        slots, number = problem.feature_slots[alive], np.zeros(dead.size, dtype=np.int64)
        number[label[alive]] = 1
        columns = np.cumsum(number)[label[alive]] - 1
        signs, count = side[alive], int(number.sum())
        if problem.fit_intercept:
            own = problem.intercept_slots
            slots, columns = np.append(slots, own), np.append(columns, count + np.arange(own.size))
            signs, count = np.append(signs, np.ones(own.size)), count + own.size
        if others.any() and count > _MOST_TURNED:
            return None
        return Face(problem, zero, slots, columns, signs, count, self.entries, lean, others, self.rooms, larger)

    def _value(self, scores, face, z):
        return self.problem.mean_loss(scores) + self.problem.penalty_value(face.map @ z)

    def _penalty(self, at):
        """Slope and curvature of the penalty where it has them."""
        problem, size = self.problem, at.size
        slope, diagonal, direction = np.zeros(size), np.zeros(size), np.zeros(size)
        strength = np.zeros(self.unit_count)
        for block, first, last in problem._parts():
            found = block.function.local(at[first:last])
            if found is None:
                return None
            own_slope, own_diagonal, own_direction = found
            slope[first:last] = block.scale * own_slope + block.ridge * at[first:last]
            diagonal[first:last] = block.scale * own_diagonal
            strength[self.units[first:last]] = diagonal[first:last]
            diagonal[first:last] += block.ridge
            direction[first:last] = own_direction
        return Bent(slope, diagonal, direction, strength)

    # -- one step -----------------------------------------------------------------------------------

    def _direction(self, face, bend, bent, slope, goal, far=np.inf):
        """The Newton direction in z; the slope is `far` times what it may be in the end."""
        problem = self.problem
        free = np.flatnonzero(bend)
        own = Curvature(face.map, bent.diagonal, *self._across(face, bent))
        product = self._product_price(face, free.size)
        self.spent += prices.face_step_nanoseconds(problem, face.count, product)
        strong = self._strong(face, bend)
        rows = np.count_nonzero(strong)
        if self._direct(face, rows):
            if self.factor is not None and self.factor[0] is not face:
                self.factor = None
            least = max(0.1 / far**2, _MENDED) if far < _NEARLY and not self.rough else 0.01
            if self.factor is not None:
                move = self._conjugate_gradients(face, bend, free, own, slope, goal, self.factor[1], least)
                if move is not None:
                    return move
            thin = rows < free.size
            single = self._single(face, rows, thin)
            for dtype in (np.float32, float) if single else (float,):
                price = self._matrix_price(face, rows, dtype)
                self.spent += price
                self.passes += face.data.cost * rows / problem.visits
                # where the matrix is dear, its factor serves the next steps too
                round_price = product + prices.face_solve_nanoseconds(face.count)
                worth = price > 0.5 * REUSES * round_price
                try:
                    lost = bend.sum() - strong.sum()
                    if self._row_space_price(face, rows) < self._whole_price(face, rows, dtype):
                        solve, thin = self._row_space(face, strong, own), True
                    else:
                        solve = self._factored(face, strong, own, dtype, lost)
                except np.linalg.LinAlgError:
                    self.trust = self.trust and dtype is float
                    continue
                self.factor = (face, solve) if worth else None
                if dtype is float and not thin:
                    return solve(-slope)
                least = least if rows < free.size else _MENDED
                move = self._conjugate_gradients(face, bend, free, own, slope, goal, solve, least)
                if move is not None:
                    return move
                self.trust = False
        return self._conjugate_gradients(face, bend, free, own, slope, goal)

    def _factored(self, face, bend, own, dtype, lost=0.0):
        """The solve with the curvature on a face, as a matrix of this precision; `lost` is the sum of bends that are
        not in it."""
        self.factor = None  # its memory is used again
        matrix = face.data.curvature(bend, dtype)
        if lost > 0:
            matrix[np.diag_indices_from(matrix)] += self._row_diagonal(face, lost)
        # a unit that was just set free bends the penalty so much that its part must not set the scale of the lift
        lift = NOTHING * np.diag(matrix)  # makes it definite
        own.add_to(matrix)
        matrix[np.diag_indices_from(matrix)] += lift + 1e-14 * np.diag(matrix)
        return definite(matrix)

    def _row_space(self, face, bend, own):
        """The solve with the curvature on a face in the space of the rows."""
        self.factor = None
        some = np.flatnonzero(bend)
        rows = face.data.kept.copy() if face.data.kept is not None else face.data.made()
        rows = rows if some.size == bend.size else rows[some]
        solve = None if own.alone is None else row_space_solve(rows, bend[some], own.alone, own.A, own.S)
        if solve is None:
            raise np.linalg.LinAlgError
        return solve

    def _across(self, face, bent):
        """The directions of units as z sees them, with their strengths; None where no unit has one."""
        turned = bent.direction != 0
        if not turned.any():
            return None, bent.strength
        if not sp.issparse(face.map):
            return np.add.reduceat(bent.direction[:, None] * face.map, self.starts, axis=0), bent.strength
        some = np.zeros(self.unit_count, dtype=bool)
        some[self.units[turned]] = True
        number, count = np.cumsum(some) - 1, np.count_nonzero(some)
        row, column, value = face.triplets
        kept = turned[row]
        row, column = row[kept], column[kept]
        where, value = number[self.units[row]], bent.direction[row] * value[kept]
        if count * face.count <= DENSE:
            across = np.bincount(where * face.count + column, value, count * face.count).reshape(count, -1)
        else:
            across = sp.csr_array((value, (where, column)), shape=(count, face.count))
        return across, bent.strength[some]

    def _row_diagonal(self, face, total):
        """The diagonal of the curvature of rows whose bends have this sum, if they are rows like any."""
        problem = self.problem
        squares = np.zeros(problem.size)
        squares[problem.feature_slots] = np.tile(problem.data.mean_squares, problem.vectors)
        squares[problem.intercept_slots] = 1.0
        return face.diagonal(total / problem.vectors * squares)

    def _conjugate_gradients(self, face, bend, free, own, slope, goal, factor=None, least=0.01):
        """An inexact Newton direction: the residual is brought down by `least`, or by more as the gradient falls.

        With a `factor` of the curvature somewhere near, only a few rounds; None where they do not suffice.
        """
        problem = self.problem
        product = self._product_price(face, free.size)
        diagonal = self._row_diagonal(face, bend.sum()) + own.diagonal()
        diagonal = np.maximum(diagonal, 1e-12 * diagonal.max())

        def scale(vector):
            if factor is None:
                return vector / diagonal
            return factor(vector)

        move, left = np.zeros(slope.size), -slope
        scaled = scale(left)
        size = before = float(left @ scaled)
        if not before > 0:
            return move
        self.first_slope = max(self.first_slope, before)
        enough = max(min(least, np.sqrt(before / self.first_slope)) * before, 0.01 * goal)
        along = scaled
        for _ in range(250 if factor is None else REUSES):
            bent = face.data.product(along, bend, free) + own.product(along)
            self.spent += product
            self.passes += face.data.cost * free.size / problem.visits
            curvature = float(along @ bent)
            if not curvature > 0 or self._late():
                break
            move = move + size / curvature * along
            left = left - size / curvature * bent
            scaled = scale(left)
            size, last = float(left @ scaled), size
            if size <= enough:
                return move
            along = scaled + size / last * along
        return move if factor is None or size <= enough else None

    def _search(self, face, z, move, scores, value, gain):
        """A point on the way from z to z + move where the objective is lower; what turns its sign is zero from then on.

        Its face, z, scores and objective.

        The whole way and a third of it are tried first; then the place where the first unit turns, and halves of that.
        """
        at, ahead = self._leaning(face, face.map @ z), face.map @ move
        along = face.data.scores(move)
        size = np.bincount(self.units, at * at, self.unit_count)
        slope = np.bincount(self.units, at * ahead, self.unit_count)
        turn = np.divide(-size, slope, out=np.full(self.unit_count, np.inf), where=(size > 0) & (slope < 0))
        first = float(turn.min(initial=np.inf))
        steps = [step for step in (1.0, 0.3) if step >= first]
        steps += [first] if first <= 1.0 else []
        steps += list(min(first * 0.999, 1.0) * 0.5 ** np.arange(14))
        for step in steps:
            turned = turn <= step
            if turned.any():
                joined = prices.PRICES.face_coordinate * self.problem.d + _MERGED * self._face_price(face)
                self.spent += prices.PRICES.face_call + joined
                smaller = self._face(face.zero | turned[self.units], face.lean, face)
                if smaller is None:
                    continue
                point = smaller.inside(face.lift(z + step * move))
                there = face.data.scores(face.inside(smaller.lift(point)))
                reached = self._value(there, smaller, point)
                if reached <= value:
                    return smaller, point, there, reached
            else:
                there, point = scores + step * along, z + step * move
                reached = self._value(there, face, point)
                if reached <= value - 1e-4 * step * gain + 1e-14 * abs(value):
                    return face, point, there, reached
        return None

    # -- the dual variables of the penalty ----------------------------------------------------------

    def _complete(self, at, zx, y):
        """y at an answer: the penalty's slope where it has one, elsewhere what Zx + By = 0 asks for."""
        problem = self.problem
        some = (np.bincount(self.units, at * at, self.unit_count) > 0)[self.units]
        y = np.where(some, problem.n * self._penalty(at).slope, y)
        rest = np.flatnonzero(~some)
        if not rest.size:
            return y
        self.spent += prices.face_dual_nanoseconds(problem, self._dual_rounds)
        need = -(zx + problem.spread(np.where(some, y, 0.0)))[problem.feature_slots]
        if self.alone:
            entry = problem.map.indptr[rest]
            y[rest] = need[problem.map.indices[entry]] / problem.map.data[entry]
            return y
        return self._between(rest, need, y)

    def _between(self, rest, need, y):
        """y whose coordinates `rest` are in balance and, if there is such a point, inside."""
        from ...kernels.balance import balance, pulled, reflect

        # Douglas and Rachford's way between the balance and the ball. If they meet, it ends there; if not, y ends where
        # they are closest, and what keeps them apart shows which units are wrongly held at zero
        problem, matrix = self.problem, self.problem.map[rest]
        gram, lone = Gram(matrix), row_width(matrix) == 1
        B = matrix.indptr, matrix.indices.astype(np.uint64), matrix.data
        ball = self.compiled.blocks, self.compiled.scale, problem.n, np.empty((2, y.size))
        middle, balanced, mirrored = y[rest], np.full(rest.size, np.inf), y.copy()
        for _ in range(PROJECTIONS):
            v = gram.solve(pulled(B, lone, middle, need))
            moved, far, size = balance(B, lone, rest, middle, v, balanced, y, *ball)
            self.compiled.check()
            if far <= 1e-13 * size or moved <= 1e-4 * far:
                break
            reflect(rest, middle, balanced, mirrored, *ball)
            self.compiled.check()
        return y

    def _inside(self, y):
        """y brought to where the conjugate of the penalty (without its quadratic) is finite."""
        from ...kernels.balance import bring_inside

        space = np.empty((2, y.size))
        bring_inside(y, self.compiled.blocks, self.compiled.scale, self.problem.n, space)
        self.compiled.check()
        return space[1]
