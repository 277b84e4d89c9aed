"""The certificate: a dual feasible point from any answer, by repair and scaling."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._validate import Array, Ints
from ..foundation.lazy import lazy
from ..foundation.numerics import BALANCED
from ..penalties.block_sum import _NONE, _once_per_map
from .bounds import Certificate, NoCertificate
from .corrections import Correction, may_be_priced, of_levels, of_rooms, of_rows
from .points import Point
from .rounding import MOST_EXACT, SCORE, STEPS, UNIT, Rounding
from .row_balance import MOST_FREE, balanced
from .unpenalised import projected

_ROUNDING = 1e-11  # relative to the terms of a sum: where a system counts as solved, and numbers near zero as zero
# of a model's error: how far what it foresees of x may be outside the domain of the loss; larger: weaker proofs are
# tried
_INSIDE = 0.5


class Certifying(Rounding):
    """An objective that proves how far an answer is from the optimum."""

    pooled: bool

    @np.errstate(over="ignore", invalid="ignore")  # numbers that overflow prove nothing
    def certificate(
        self,
        state: Any,
        *,
        fresh: bool = True,
        primal: float | None = None,
        enough: float = np.inf,
        hope: float = -np.inf,
        exact: bool = False,
    ) -> Certificate:
        """A proven interval for the optimum from any (w, x, y).

        Parameters
        ----------
        state : a Result's state, or an object with an array `w` and, where they are known, `x`, `y` and `zx`
            Without `x` and `y` they are taken from the gradient of the loss at w.
        fresh : bool
            Recompute Z x instead of trusting `state.zx`, which the solver updates incrementally.
        primal : float, optional
            The objective at w, if it is known; saves a pass over the data.
        enough, hope : float
            A dual bound that will do, and one so low that it is no use: no better one is searched for there.
        exact : bool
            Make the products with the data with more digits than doubles have, so that less is taken from the bounds
            for the sake of rounding; takes some ten times as long.
        """
        point = Point.of(state)
        x, y, zx = point.x, point.y, point.zx
        if exact:
            at = self.slopes_at(self.scores(point.w)) if x is None else x
            scores, zx = self.exact_products(point.w, at)
            x, fresh = at, False
            primal = self.mean_loss(scores, exact=True) + self.penalty_value(self.penalised(point.w))
        if primal is None or x is None:
            scores = self.scores(point.w)
            primal = self.mean_loss(scores) + self.penalty_value(self.penalised(point.w))
        if x is None:
            x, zx = self.slopes_at(scores), None
        y = np.zeros(self.d) if y is None else y
        zx = self._mask(self.combine(x) if fresh or zx is None else zx.copy())
        residual = np.linalg.norm(zx + self.spread(y)) / max(float(np.linalg.norm(zx)), 1e-300)
        more, less = self.primal_rounding(point.w, primal, x, exact=exact), 0.0
        try:
            dual, less = self._feasible_dual(x, y, zx, point.w, enough + more, hope, exact)
            dual, reason = dual - more, ""
        except NoCertificate as why:
            dual, reason = -np.inf, str(why)
        if np.isnan(dual):
            dual, reason = -np.inf, "the dual point holds numbers that overflow"
        if not np.isfinite(primal):
            reason = reason or "w breaks a constraint of the penalty"
        return Certificate(primal, dual, float(residual), reason, more + less)

    def zero_certificate(self) -> Certificate:
        """The certificate of w = 0, x = 0, y = 0, where every solve begins; it needs no pass over the data."""
        primal = self.objective_at_zero()
        more = self._rounding_at(primal, 0.0, 0, 0.0) if np.isfinite(primal) else 0.0  # sums without terms
        return Certificate(primal, self._dual_at_zero - more, 0.0, rounding=more)

    def objective_at_zero(self) -> float:
        """The objective at w = 0; infinite where that breaks a constraint."""
        return self._objective_at_zero

    def dual_bound(self, x: Array, y: Array, zx: Array | None = None, *, w: Array | None = None) -> float:
        """The dual objective at a feasible point made from (x, y): repair, then scale; less what rounding may have
        added to it. `w` is the answer that x and y belong to, if there is one.

        Raises NoCertificate where that is not possible.
        """
        zx = self.gradient_sum(x) if zx is None else zx
        return self._feasible_dual(x, y, zx, np.zeros(self.size) if w is None else w, np.inf, -np.inf, False)[0]

    def _feasible_dual(
        self, x: Array, y: Array, zx: Array, w: Array, enough: float, hope: float, exact: bool
    ) -> tuple[float, float]:
        """The dual bound, and about what was taken from it for the sake of rounding."""
        x, zx = self._balance(x, zx)
        y, violations = self._repair(x, y, zx)
        for _ in range(8):
            if not violations.size:
                break
            x, zx = self._balance(x, zx, y, violations)
            y, violations = self._repair(x, y, zx, violations)
        if exact and not violations.size:
            zx = self.exact_products(w, x)[1]
            y, violations = self._repair(x, y, zx)
        if violations.size:
            raise NoCertificate(f"the sign of {violations.size} dual variables could not be mended")
        gauge = self.gauge(y / self.n)
        if not np.isfinite(gauge):
            raise NoCertificate("the dual point leaves the domain of the penalty's conjugate in every scaling")
        share, beyond, less = self._dual_rounding(x, y, zx, w, exact)
        gauge = (self.gauge(share) + beyond) * (1 + 2 * STEPS * UNIT)
        largest = 1.0 if gauge <= 1 else 1 / gauge
        taken = less + beyond * self.penalty_size(w)

        def dual(scale: float) -> float:
            return -self.mean_conjugate(x, scale, exact) - self.penalty_conjugate(scale * share) - less

        at_largest = dual(largest)
        if at_largest >= enough:
            return at_largest, taken
        best = max(at_largest, self._dual_at_zero)
        if best < hope:
            return best, taken
        if any(b.ridge > 0 for b in self.blocks):
            # pure norms reach their best at the largest scale; a quadratic may prefer a smaller one
            unridged = self.gauge_without_ridge(share)
            if unridged > 1:
                best = max(best, _parabola(dual, 1.0 / unridged, largest, at_largest))
        return best, taken

    def penalty_size(self, w: Array) -> float:
        """The penalty of w within its limits."""
        at = np.abs(self.penalised(w))
        return float(sum(block.scale * block.function.growth(at[i:j]) for block, i, j in self._parts()))

    def _dual_rounding(self, x: Array, y: Array, zx: Array, w: Array, exact: bool) -> tuple[Array, float, float]:
        """y / n as rounding leaves it, what rounding may add to its gauge, and to the dual objective, of a point that
        seems feasible."""
        n, beyond = self.n, 0.0
        less = self.conjugate_rounding(x, w, exact=exact)
        error, left = self.slope_error(x, zx, exact=exact), None
        if not self.renames:
            left = (zx + self.spread(y))[self.feature_slots]
        for made in self._corrections(x, zx, exact):
            less, error = less + made.price, error + made.reach(self)
        moved, at = self.moved(error, y, left) / n, np.abs(self.penalised(w))
        y = y / n
        held = self._held(y, moved)
        if held.size or self._unlevel:
            made = self._held_feasible(x, zx, moved, held, at, w, exact)
            less += made.price + made.left
            y[held] = np.sign(y[held]) * np.maximum(np.abs(y[held]) - moved[held], 0.0)  # there they are held
            if made.shift:
                moved = self.moved(error + made.reach(self), y * n, left) / n
            moved[held] = 0.0
        for block, i, j in self._parts():
            over, rise = block.rounding(y[i:j], moved[i:j], at[i:j])
            beyond, less = max(beyond, over), less + rise
        return y, beyond, less

    @property
    def _unlevel(self) -> bool:
        """Whether there are unpenalised directions beside the intercepts."""
        return self._free_count > (self.vectors if self.fit_intercept else 0)

    def _corrections(self, x: Array, zx: Array, exact: bool) -> Iterator[Correction]:
        """What it costs to make rows, and intercepts where they are alone, feasible to the last digit."""
        if self.loss.coupled:
            yield of_rows(self, x)
        if self.fit_intercept and not self._unlevel:
            yield of_levels(self, x, zx, exact)

    def _held(self, y: Array, moved: Array) -> Ints:
        """The coordinates whose dual variable has to be what it is: where it moves, it may break a bound of zero; and
        weights that are lost in rounding hold nothing."""
        found = []
        for block, i, j in self._parts():
            if block.ridge == 0:
                own, part = y[i:j], moved[i:j]
                # of which rounding leaves less than half of the digits
                lost = np.flatnonzero(part > math.sqrt(UNIT) * block.scale * block.function.radius(block.d))
                found += [i + lost, i + block.bound_violations(own + part), i + block.bound_violations(own - part)]
        return np.unique(np.concatenate(found)) if found else _NONE

    def _held_feasible(
        self, x: Array, zx: Array, moved: Array, held: Ints, at: Array, w: Array, exact: bool
    ) -> Correction:
        """What it costs to meet these coordinates, and the directions without penalty, to the last digit."""
        directions = self._free[0] if self._unlevel or (held.size and self._free_count) else np.zeros((self.size, 0))
        sizes = np.zeros(self.size)
        sizes[self.feature_slots] = self.column_lengths
        sizes[self.intercept_slots] = 1.0
        error = UNIT * (SCORE if exact else self._added + SCORE) * self._rms(x) * (np.abs(directions).T @ sizes)
        off = np.concatenate([self.n * (np.abs(directions.T @ zx) / self.n + error), 2 * self.n * moved[held]])
        reach = np.concatenate([np.abs(directions.T @ w), at[held]])
        if may_be_priced(self, off.size) and self.visits * off.size <= MOST_EXACT:
            along = self._free[1] if directions.shape[1] else np.zeros((self.visits, 0))
            if held.size:
                along = np.column_stack([along, self._along(self._lifted(held))])
            levels = np.flatnonzero(directions[self.intercept_slots].any(axis=0))
            return of_rooms(self, x, along, off, reach, levels, held.size)
        alone = UNIT * (self._added + SCORE) * self._rms(x) * self._target_size
        return Correction(left=float(off @ reach) / self.n + alone * off.size)

    def _lifted(self, coordinates: Ints) -> Array:
        """The directions of w (size, k) along which these coordinates of B'w move: what x adds up to along them is what
        their dual variables change by."""
        lifted = np.zeros((self.size, len(coordinates)))
        for k, column in enumerate(self.map[coordinates].toarray()):
            lifted[self.feature_slots, k] = self.gram.solve(column)
        return lifted

    @_once_per_map
    def _row_sums(self) -> Array:
        """What the sums Z x are made of, for an x of length 1; the largest of the features that the penalty connects,
        since a solve with B B' spreads rounding over them."""
        scale = np.tile(np.sqrt(self.n * self.data.mean_squares), self.vectors)
        largest = np.zeros(self.gram.parts.max(initial=0) + 1)
        np.maximum.at(largest, self.gram.parts, scale)
        out: Array = largest[self.gram.parts]
        return out

    @lazy
    def _objective_at_zero(self) -> float:
        return self._loss_at_zero + self._penalty_at_zero

    @lazy
    def _penalty_at_zero(self) -> float:
        return float(sum(block.at_zero() for block in self.blocks))

    @lazy
    def _loss_at_zero(self) -> float:
        return self.mean_loss(np.zeros(self.visits))

    @lazy
    def _dual_at_zero(self) -> float:
        # where no value is below that at zero, zero, the conjugate at zero is zero
        least = self._penalty_at_zero == 0.0 and all(block.function.nonnegative for block in self.blocks)
        found = -self._conjugate_at_zero - (0.0 if least else self.penalty_conjugate(np.zeros(self.d)))
        return found - self.zero_rounding(found)

    def _repair(self, x: Array, y: Array, zx: Array, zeroed: Ints = _NONE) -> tuple[Array, Ints]:
        """y moved to Z x + B y = 0 by least squares, and the coordinates that break a zero bound.

        `zeroed` are coordinates that were just brought to zero, up to rounding.
        """
        # where every feature stands in one place there is one such y
        y = -zx[self.entry_slots] / self.map.data if self.renames else self._balanced_by_penalty(x, y, zx)
        if zeroed.size:
            largest = (self._row_sums * self._length(x)).max(initial=0.0)
            y[zeroed[np.abs(y[zeroed]) <= _ROUNDING * largest]] = 0.0
        found = [(first, b.bound_violations(y[first:last])) for b, first, last in self._parts()]
        bad = [first + own for first, own in found if own.size]
        return y, np.union1d(np.concatenate(bad).astype(np.int64), zeroed) if bad else _NONE

    def _balanced_by_penalty(self, x: Array, y: Array, zx: Array) -> Array:
        """The y closest to the given one with Z x + B y = 0."""
        # rounding is judged against what the sums are made of, which may cancel
        left = (zx + self.spread(y))[self.feature_slots]
        own = np.tile(np.sqrt(self.n * self.data.mean_squares), self.vectors) * self._length(x)
        if np.all(np.abs(left) <= BALANCED * (own + self._sums_of_sizes(y))):
            return y  # whoever brought it has balanced it
        scale = self._row_sums * self._length(x)
        for _ in range(3):
            if np.abs(left).max(initial=0.0) > 0:
                # B B' may be badly conditioned, but y is not large: a second solve mends the first
                y = y - self.map @ self.gram.solve(left)
                left = (zx + self.spread(y))[self.feature_slots]
            if np.all(np.abs(left) <= _ROUNDING * (scale + self._sums_of_sizes(y))):
                break
        return y  # what is left of the residual is paid for in the bound, feature by feature

    @property
    def constraint_count(self) -> int:
        """Equations that a certificate may have to mend: directions without penalty, and one-sided bounds of zero."""
        signs = sum(b.bound_violations(sign * np.ones(b.d)).size for b in self.blocks for sign in (1.0, -1.0))
        return self._free_count + signs

    @property
    def _free_count(self) -> int:
        """Unpenalised directions."""
        unseen = 0 if self.renames or self.pins else self.gram.unseen.size + self.gram.blind_count
        return unseen + (self.vectors if self.fit_intercept else 0)

    @_once_per_map
    def _free(self) -> tuple[Array, Array]:
        """Unpenalised directions of w (size, k), and the data along them (visits, k)."""
        directions = self._free_directions()
        return directions, self._along(directions)

    def _free_directions(self) -> Array:
        count = self._free_count
        if count > MOST_FREE:
            raise NoCertificate(f"{count} directions carry no penalty; at most {MOST_FREE} can be repaired")
        slots = self.intercept_slots if self.fit_intercept else _NONE
        if not (self.renames or self.pins):
            slots = np.concatenate([self.feature_slots[self.gram.unseen], slots])
        directions = np.zeros((self.size, count))
        directions[slots, np.arange(slots.size)] = 1.0
        if count > slots.size:
            directions[self.feature_slots, slots.size :] = self.gram.blind.toarray()
        return directions

    def _along(self, directions: Array) -> Array:
        if directions.shape[1] == self.layout[0] == 1 and not directions[:-1].any():
            return np.full((self.visits, 1), directions[-1, 0])  # an intercept alone
        columns = [self.scores(direction) for direction in directions.T]
        return np.column_stack(columns) if columns else np.zeros((self.visits, 0))

    def foreseen(self, x: Array, change: Array, true: Array) -> Array | None:
        """x + change, the slopes that a model of the loss foresees, within the domain of the conjugate.

        None where they are far outside, compared with what separates them from the true ones. (They balance the dual
        variables of the penalty where the true slopes do so to first order only.)
        """
        wanted = x + change
        if self.loss.across_rows:
            return wanted if np.isfinite(self.mean_conjugate(wanted)) else None
        inside = self.inside(wanted)
        near = np.linalg.norm(inside - wanted) <= _INSIDE * np.linalg.norm(true - wanted)
        return inside if near else None

    def centred(self, x: Array) -> Array:
        """x moved within its domain so that it sums to zero for every output, as an intercept asks for.

        Every row moves in proportion to its distance to the ends of its domain (1 at the most); where that does not
        suffice, the heavier sign is shrunk. Nothing is moved where there is no intercept.
        """
        if not self.fit_intercept:
            return x
        if self.loss.coupled:
            try:
                return balanced(self, x, np.zeros(0), None, _NONE)[0]
            except NoCertificate:  # there is no such x nearby, as the certificate will say
                return x
        outputs = self.layout[0]
        low, high = self._domain()
        open_ended = not self.weight.size and bool(np.isinf(low).all() and np.isinf(high).all())
        parts = []
        for k in range(outputs):
            part = x[k::outputs]
            parts.append(
                part - part.mean() if open_ended else _summing_to_zero(part, low[k::outputs], high[k::outputs])
            )
        return parts[0] if outputs == 1 else np.column_stack(parts).ravel()

    def _balance(
        self, x: Array, zx: Array, y: Array | None = None, zeroed: Ints = _NONE,
        limits: tuple[Array, Array] | None = None,
    ) -> tuple[Array, Array]:  # fmt: skip
        """x moved so that unpenalised directions (and y on `zeroed`) carry no gradient.

        The move is least squares with every row weighted by its distance to the ends of its domain (or to `limits`
        within it), so that rows at an end stay there.
        """
        if self.loss.coupled:
            return balanced(self, x, zx, y, zeroed)
        if not (self._free_count or len(zeroed)):
            return x, zx
        directions, along = self._free
        goal = -(directions.T @ zx)
        scale = np.abs(along).T @ np.abs(x)
        if y is not None and len(zeroed):
            if len(zeroed) > MOST_FREE:
                raise NoCertificate(
                    f"{len(zeroed)} dual variables have the wrong sign; at most {MOST_FREE} can be mended"
                )
            extra = self._along(self._lifted(zeroed))
            along = np.column_stack([along, extra])
            goal = np.concatenate([goal, y[zeroed]])
            scale = np.concatenate([scale, np.abs(extra).T @ np.abs(x)])
        if not goal.size or (np.abs(goal) <= BALANCED * scale).all():
            return x, zx
        if not np.isfinite(goal).all():
            raise NoCertificate("the dual point holds numbers that overflow")
        if self.loss.across_rows:
            return self._balance_all(x, along, goal, scale)
        # columns in units of their own: what is small in one must not drown in what is large in another
        sizes = np.sqrt(np.einsum("ij,ij->j", along, along))
        sizes = np.where(sizes > 0, sizes, 1.0)
        along, goal, scale = along / sizes, goal / sizes, scale / sizes
        low, high = self._domain() if limits is None else limits
        wanted = along.T @ x + goal
        moved = self._within_rooms(x, along, goal, scale, low, high)
        if moved is None and along.shape[1] == 1 and self.fit_intercept and not len(zeroed) and limits is None:
            return self._shrink(x)
        if moved is None and (self.visits + goal.size) * goal.size**2 <= MOST_EXACT:
            # rows at an end of their domain have no room, but may have to leave it
            x = projected(x, along, wanted, low, high)
            scale = np.maximum(scale, np.abs(along).T @ np.abs(x))
            moved = self._within_rooms(x, along, wanted - along.T @ x, scale, low, high)
        if moved is None:
            raise NoCertificate("no dual feasible point close by: unpenalised directions still carry a gradient")
        return moved, self.gradient_sum(moved)

    def _within_rooms(
        self, x: Array, along: Array, goal: Array, scale: Array, low: Array, high: Array
    ) -> Array | None:  # fmt: skip
        """x moved by what the sums along directions lack, rows in proportion to their room; None where that does not
        suffice. `scale` is what these sums are made of."""
        size = np.where(scale > 0, scale, 1.0)  # an empty column asks for nothing
        for _ in range(30):
            if np.all(np.abs(goal) <= BALANCED * scale):
                return x
            room = np.maximum(np.minimum(np.minimum(x - low, high - x), 1.0), 0.0)
            gram = sum(along[part].T @ (room[part, None] * along[part]) for part in self._chunks())
            move = room * (along @ np.linalg.lstsq(gram, goal, rcond=1e-14)[0])
            moved = np.clip(x + move, low, high)
            left = goal - along.T @ (moved - x)
            if np.linalg.norm(left / size) > 0.9 * np.linalg.norm(goal / size):
                return None
            x, goal = moved, left
        return None

    def _balance_all(self, x: Array, along: Array, goal: Array, scale: Array) -> tuple[Array, Array]:
        """The same for a loss of all scores at once: x as the slopes at other scores, which stay in their domain."""
        loss: Any = self.loss
        wanted = along.T @ x + goal
        start = loss.scores_of(x, self.target, self.weight)
        _, moved = loss.along(along, start, self.target, self.weight, wanted)
        if not np.all(np.abs(along.T @ moved - wanted) <= _ROUNDING * scale):
            raise NoCertificate("no dual feasible point close by: unpenalised directions still carry a gradient")
        return moved, self.gradient_sum(moved)

    def _shrink(self, x: Array) -> tuple[Array, Array]:
        """Both signs of x brought to the same sum, by shrinking the heavier: feasible for an intercept."""
        up, down = x[x > 0].sum(), -x[x < 0].sum()
        x = np.where(x > 0, x * min(1.0, down / up if up else 1.0), x * min(1.0, up / down if down else 1.0))
        return x, self.gradient_sum(x)


def _summing_to_zero(x: Array, low: Array, high: Array) -> Array:
    """See :meth:`Problem.centred`."""
    start, scale = x, np.abs(x).sum()
    for _ in range(30):
        total = x.sum()
        if abs(total) <= BALANCED * scale:
            return x
        room = np.maximum(np.minimum(np.minimum(x - low, high - x), 1.0), 0.0)
        across = room.sum()
        moved = np.minimum(np.maximum(x - room * (total / across), low), high) if across > 0 else x
        if abs(moved.sum()) > 0.9 * abs(total):
            break
        x = moved
    up, down = start[start > 0].sum(), -start[start < 0].sum()
    if not (up and down):
        return np.zeros_like(start)
    out: Array = np.where(start > 0, start * min(1.0, down / up), start * min(1.0, up / down))
    return out


def _parabola(function: Callable[..., Any], low: float, high: float, at_high: float, rounds: int = 2) -> float:
    """A large value of a concave function on an interval: tops of parabolas through three points."""
    points = [(low, function(low)), (0.5 * (low + high), function(0.5 * (low + high))), (high, at_high)]
    for _ in range(rounds):
        (a, fa), (b, fb), (c, fc) = sorted(sorted(points, key=lambda point: -point[1])[:3])
        bottom = (b - a) * (fb - fc) - (b - c) * (fb - fa)
        if not np.isfinite(bottom) or bottom == 0:
            break
        top = b - 0.5 * ((b - a) ** 2 * (fb - fc) - (b - c) ** 2 * (fb - fa)) / bottom
        if not low < top < high or any(top == t for t, _ in points):
            break
        points.append((top, function(top)))
    out: float = max(value for _, value in points)
    return out
