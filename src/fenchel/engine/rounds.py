r"""Rounds of working sets: few features among many, single fits and whole paths.

A round chooses the units that pull hardest at zero, copies their columns, makes a quadratic model of the loss there (the
Gram matrix, with the intercept eliminated), solves it by coordinate descent and Newton's method, halves the step until
the true objective falls, and looks at all features again: the slopes there make the certificate, and tell which units
are missing. Where most units count, or the data are small, the round works on all of them at once.

Symbols: w coefficients, b intercepts, u scores, x slopes and h curvatures of the rows (weighted), c = X'x / n. Arrays
of rows are (outputs, n).
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .curvatures.gram import LaggedGram
from .inner.descent import LocalPenalty, ModelDescent
from .restrictions.columns import DenseColumns, SparseColumns, WholeDense
from .roles import Goal, Iterate, Proposal
from .units import Index, Units, Vector, dual_variables, units_of

if TYPE_CHECKING:
    from ..problem import Problem

ROUNDS = 100  # at the most for one alpha; more mean that something else should be tried
STEPS = 60  # at the most on one working set
SHARE = 0.2  # of the allowed gap: how accurate the answer on a working set is made; larger: more rounds
ROUGH, ROUGH_QUADRATIC = 0.1, 0.3  # of the present gap: the same while the goal is far
STRONG = 1.3  # ratio of neighbouring alphas up to which the sequential strong rule chooses the units
STAGE, STAGE_QUADRATIC = (
    3.0,
    1.7,
)  # ratio of alphas that a single fit goes through where there are more features than rows
TURNS = 12  # passes that a model usually takes, for the choice of how to solve it
FLAT = 0.25  # of the largest curvature: what every row counts for at first, where the loss has flat parts
BUDGET = 1 << 28  # bytes of the columns and their Gram matrix, unless the data are larger; more is left to others


class WorkingSets:
    """The engine for penalties that fall into units, and losses with a curvature.

    Parameters
    ----------
    prices : nanoseconds of the operations, see :mod:`fenchel.solver.prices`
    """

    name = "working sets"

    def __init__(self, prices: Any) -> None:
        self.prices = prices
        self._fit: _Fit | None = None

    def unfit(self, problem: Problem) -> str | None:
        if problem.loss.kinked:
            return f"{type(problem.loss).__name__} has kinks"
        if problem.layout[2].size:
            return "tasks have coefficients of their own"
        units = units_of(problem)
        if isinstance(units, str):
            return units
        if not units.count:
            return "there is nothing to choose from"
        return None

    def begin(self, problem: Problem, alphas: Vector, tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        self._fit = _Fit(problem, self.prices, several=len(alphas) > 1)

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, one a round, until somebody stops asking or nothing is gained."""
        if self._fit is None:
            self.begin(problem, np.array([problem.alpha]), goal.tol)
        assert self._fit is not None
        return self._fit.rounds(problem, start, goal)


@dataclasses.dataclass
class _Answer:
    """What a path remembers of an alpha."""

    alpha: float
    w: Vector
    b: Vector


class _Fit:
    """The memory of an engine: the point, the working set, its columns and its model."""

    def __init__(self, problem: Problem, prices: Any, several: bool) -> None:
        self.data, self.loss, self.n, self.p = problem.data, problem.loss, problem.n, problem.p
        self.prices, self.several = prices, several
        self.outputs, self.intercept = problem.vectors, problem.fit_intercept
        target = np.ascontiguousarray(problem.target.reshape(self.n, self.outputs).T)
        self.target = target.ravel()
        self.weight = np.tile(problem.weight, self.outputs) if problem.weight.size else np.zeros(0)
        self.inner = ModelDescent(prices)
        self.w = np.zeros(self.outputs * self.p)
        self.b = np.zeros(self.outputs)
        self.passes = 0.0
        self.alpha: float | None = None  # the last one
        self.answers: list[_Answer] = []  # the last two before it
        self.slope: Vector | None = None  # -c at the last certificate
        self.smooth = float(self.loss.smoothness or 1.0)
        self.floor = 0.0
        self._empty_set()

    # -- the point ----------------------------------------------------------------------------------

    def _look(self, u: Vector) -> tuple[float, Vector, Vector]:
        total, x, h = self.loss.sums(u.ravel(), self.target, self.weight)
        return total / self.n, x.reshape(u.shape), h.reshape(u.shape)

    def _move_to(self, u: Vector) -> None:
        self.u = u
        self.f, self.x, self.h = self._look(u)

    def _scores(self) -> Vector:
        """Of the present coefficients, from the columns of the working set."""
        u = np.empty((self.outputs, self.n))
        for k, (part, places) in enumerate(zip(self.columns, self.where, strict=True)):
            u[k] = part.scores(self.w[self.coefs[places]]) + self.b[k] if places.size else self.b[k]
        return u

    def _fit_intercept(self) -> None:
        """Newton's method in one dimension for every output, with a bound on the step."""
        if not self.intercept:
            return
        for _ in range(20):
            slope, bend = self.x.mean(axis=1), self.h.mean(axis=1)
            step = np.clip(-slope / np.maximum(bend, 1e-3 * self.smooth), -2.0 / self.smooth, 2.0 / self.smooth)
            if not self.loss.quadratic:
                step = np.clip(step, -4.0, 4.0) if self.smooth <= 1 else step
            else:
                step = -slope / np.maximum(bend, 1e-300)
            before = self.f
            u, b = self.u + step[:, None], self.b + step
            f, x, h = self._look(u)
            if not f < before:
                return
            self.u, self.b, self.f, self.x, self.h = u, b, f, x, h
            if before - f <= 1e-10 * abs(before):
                return

    def _slopes(self, x: Vector) -> Vector:
        """X'x / n for every coefficient: a pass over the data."""
        self.passes += 0.5
        if self.outputs == 1:
            return self.data.transposed_times(x[0]) / self.n
        return np.concatenate([self.data.transposed_times(part) for part in x]) / self.n

    # -- the working set ----------------------------------------------------------------------------

    def _empty_set(self) -> None:
        self.whole = False
        kind: Any = SparseColumns if self.data.sparse else DenseColumns
        self.columns: list[Any] = [kind(self.data) for _ in range(self.outputs)]
        self.where: list[Index] = [np.zeros(0, dtype=np.int64) for _ in range(self.outputs)]
        self.chosen = np.zeros(0, dtype=np.int64)
        self.coefs = np.zeros(0, dtype=np.int64)
        self.gram = LaggedGram(self.n, self.intercept, self.loss.quadratic)

    def _add(self, units: Units, new: Index) -> None:
        if not new.size:
            return
        coefs, _ = units.of_coefficients(new)
        before = self.coefs.size
        self.chosen, self.coefs = np.concatenate([self.chosen, new]), np.concatenate([self.coefs, coefs])
        for k in range(self.outputs):
            own = np.flatnonzero(coefs // self.p == k) if self.outputs > 1 else np.arange(coefs.size)
            if own.size:
                self.columns[k].add(coefs[own] % self.p)
                self.where[k] = np.concatenate([self.where[k], before + own])

    def _keep(self, units: Units, keep: Index) -> None:
        """Drop all units but these (places among the chosen)."""
        _, start = units.of_coefficients(self.chosen)
        sizes = np.diff(start)[keep]
        offset = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.repeat(start[keep] - offset[:-1], sizes) + np.arange(offset[-1])
        self.gram.keep(places)
        for k in range(self.outputs):
            own = np.flatnonzero(np.isin(self.where[k], places))
            self.columns[k].keep(own)
            self.where[k] = np.searchsorted(places, self.where[k][own])
        self.chosen, self.coefs = self.chosen[keep], self.coefs[places]

    def _take_all(self, units: Units) -> None:
        """Work on all coefficients, with a Gram matrix in single precision where that is enough."""
        self.whole = True
        self.chosen = np.arange(units.count)
        self.coefs = units.members
        self.where = [np.arange(self.coefs.size)]
        single = self.coefs.size >= 64
        natural = bool(np.array_equal(units.members, np.arange(units.members.size)))
        self.columns = [WholeDense(self.data, None if natural else units.members)]
        self.gram = LaggedGram(self.n, self.intercept, self.loss.quadratic, np.float32 if single else np.float64)

    def _fits(self, size: int) -> bool:
        """Whether a working set of that many coefficients stays within the budget of memory."""
        if self.data.sparse:
            return 8 * size * size <= max(BUDGET, self.data.nbytes)
        return 8 * size * (size + self.n) <= max(BUDGET, self.data.nbytes)

    # -- prices -------------------------------------------------------------------------------------

    @property
    def _pass_price(self) -> float:
        return self.data.stored * (self.prices.csr_pass if self.data.sparse else self.prices.gemv) * self.outputs

    def _whole_price(self) -> float:
        """The whole Gram matrix, as often as it is made, and some products with the data."""
        p, n, curved = self.p, self.n, not self.loss.quadratic
        gram = n * p * (self.prices.copy if curved else self.prices.cast) + n * p * p / 2 * self.prices.syrk32
        return (2 if curved else 1) * gram + (20 if curved else 6) * self._pass_price

    def _set_price(self, size: float, rounds: int) -> float:
        n, curved = self.n, not self.loss.quadratic
        size = min(self.p, 1.3 * size if n >= self.p else 2 * size)
        syrk = self.prices.syrk32 if curved else self.prices.syrk64
        gram = (2 if curved else 1) * n * size * size / 2 * syrk
        products = (24 if curved else 8) * n * size * self.prices.gemv
        return gram + 2 * n * size * self.prices.copy + rounds * self._pass_price + products

    def _may_be_whole(self, units: Units) -> bool:
        few = not self.several and self.outputs == 1 and not self.data.sparse
        return few and self.p <= 5000 and 4 * self.p * self.p <= max(BUDGET, self.data.nbytes)

    # -- rounds -------------------------------------------------------------------------------------

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        units = units_of(problem)
        assert isinstance(units, Units)
        if self.alpha is None:
            self._begin(problem, units, start)
        else:
            self.answers = [*self.answers[-1:], _Answer(self.alpha, self.w.copy(), self.b.copy())]
            self._predict(problem.alpha)
        self.alpha = problem.alpha
        self.out = np.zeros(units.count, dtype=bool)  # units that are surely zero at this alpha
        for factor in self._stages(units):
            if factor == 1.0:
                yield from self._final(problem, units, goal)
            else:
                self._rough(units.times(factor))
                if time.perf_counter() > goal.deadline:
                    yield from self._final(problem, units, goal)
                    return

    def _begin(self, problem: Problem, units: Units, start: Iterate | None) -> None:
        if start is not None and start.w.any():
            w = start.w.reshape(self.outputs, self.p + 1)
            self.w = np.clip(w[:, :-1].ravel(), units.lower, units.upper)
            self.b = w[:, -1].copy() if self.intercept else self.b
            self._add(units, np.unique(np.concatenate([units.label[np.flatnonzero(self.w)], units.free])))
            self._move_to(self._scores())
        else:
            self._add(units, units.free)
            self._move_to(np.zeros((self.outputs, self.n)))
            self._fit_intercept()
        if not self.loss.quadratic and np.any(self.h == 0):
            self.floor = FLAT
        self.first = True

    def _predict(self, alpha: float) -> None:
        """Go on along the line through the last two answers, in the logarithm of alpha; zeros and signs stay."""
        if len(self.answers) < 2 or not self.coefs.size:
            return
        before, last = self.answers
        across = math.log(last.alpha / before.alpha) if last.alpha > 0 and before.alpha > 0 else 0.0
        if not across or not alpha > 0:
            return
        ahead = min(math.log(alpha / last.alpha) / across, 2.0)
        now, then = self.w[self.coefs], before.w[self.coefs]
        step = np.where((now != 0) & (then != 0), ahead * (now - then), 0.0)
        step = np.where((now + step) * now < 0, -0.9 * now, step)
        shift = ahead * (last.b - before.b)
        if not step.any():
            return
        w, b = self.w.copy(), self.b
        self.w[self.coefs] += step
        self.b = b + shift
        u = self._scores()
        f, x, h = self._look(u)
        if not math.isfinite(f):
            self.w, self.b = w, b
            return
        self.u, self.f, self.x, self.h = u, f, x, h

    def _stages(self, units: Units) -> list[float]:
        """Multiples of the penalty that the fit goes through, falling to 1."""
        if self.several or not self.first or self.whole or self.coefs.size > units.free.size:
            return [1.0]
        self.slope = -self._slopes(self.x)
        top = float(np.max(units.scores(self.slope), initial=0.0, where=np.isfinite(units.scores(self.slope))))
        if self._may_be_whole(units):
            guess = 0.15 * self.p
            if self._whole_price() <= (1.6 if self.n >= 8 * self.p else 1.0) * self._set_price(guess, 6):
                self._take_all(units)
                return [1.0]
        step = STAGE_QUADRATIC if self.loss.quadratic else STAGE
        if self.p * self.outputs <= self.n or not step < top < np.inf:
            return [1.0]
        count = math.ceil(math.log(top) / math.log(step))
        return [float(top ** (k / count)) for k in range(count - 1, 0, -1)] + [1.0]

    def _rough(self, units: Units) -> None:
        """One round at a larger penalty, on the way to the goal."""
        if self.slope is None:
            self.slope = -self._slopes(self.x)
        gap = self._gap_estimate(units, self.slope, self.w)
        if gap > 1e-2 * self._objective(units):
            if not self._choose(units, self.slope, first=True):
                return
            self._solve_on_set(units, max(1e-2 * SHARE * self._objective(units), self._rate * gap), settled=False)
            self.slope = None

    @property
    def _rate(self) -> float:
        return ROUGH_QUADRATIC if self.loss.quadratic else ROUGH

    def _objective(self, units: Units) -> float:
        return self.f + units.value(self.w) + 0.5 * float(units.ridge @ np.square(self.w))

    def _final(self, problem: Problem, units: Units, goal: Goal) -> Iterator[Proposal]:
        """Rounds at the goal itself; a proposal after every look at all features."""
        best, idle = np.inf, 0
        for number in range(ROUNDS):
            first = number == 0 and self.first
            if number == 0 and self.several and not self.first and self._strong(problem, units):
                pass  # the last look tells which units may count: the next look comes after they were tried
            else:
                proposal, gap, allowed = self._certify(problem, units, goal)
                yield proposal
                idle = 0 if gap < 0.7 * best else idle + 1
                best = min(best, gap)
                if idle > 12 or not math.isfinite(self.f) or time.perf_counter() > goal.deadline:
                    return
                self._eliminate(problem, units, gap)
                closed = self._closed(units)
                limit = max(SHARE * allowed, 0.0 if closed or self.whole else self._rate * gap)
                self._reconsider(units, number)
                added = 0 if self.whole else self._choose(units, self.slope, first)
                if added < 0:
                    return
                if not self.coefs.size:
                    continue
                self._solve_on_set(units, limit, settled=self.whole or closed or added < 0.03 * self.coefs.size,
                                   goal=SHARE * allowed)  # fmt: skip
            self.first = False

    def _strong(self, problem: Problem, units: Units) -> bool:
        """The sequential strong rule: units whose slope at the last alpha may pass the new penalty."""
        if not self.answers or self.slope is None:
            return False
        ratio = self.answers[-1].alpha / problem.alpha if problem.alpha > 0 else np.inf
        if not 1.0 <= ratio < STRONG:
            return False
        level = 1.0 - 0.5 * (ratio - 1.0)
        if not self._choose(units, self.slope, True, level) >= 0:
            return False
        if self.coefs.size:
            allowed = SHARE * 1e-6 * self._objective(units)
            self._solve_on_set(units, self.path_limit(problem, allowed), settled=True)
        return True

    def path_limit(self, problem: Problem, otherwise: float) -> float:
        return self.allowed_share * self.f if self.allowed_share else otherwise

    allowed_share = 0.0

    def _certify(self, problem: Problem, units: Units, goal: Goal) -> tuple[Proposal, float, float]:
        """Look at all features, and prove what can be proven."""
        if self.coefs.size:
            self._move_to(self._scores())  # afresh: steps gather rounding errors
        w = np.zeros((self.outputs, self.p + 1))
        w[:, :-1] = self.w.reshape(self.outputs, self.p)
        w[:, -1] = self.b
        flat = w.ravel()
        x = problem.centred(np.ascontiguousarray(self.x.T).ravel())
        by_output = np.ascontiguousarray(x.reshape(self.n, self.outputs).T)
        c = self._slopes(by_output)
        self.slope = -c
        zx = np.zeros((self.outputs, self.p + 1))
        zx[:, :-1] = self.n * c.reshape(self.outputs, self.p)
        if self.intercept:
            zx[:, -1] = by_output.sum(axis=1)
        zx = zx.ravel()
        primal = self._objective(units)
        point = Iterate(flat, x, dual_variables(problem, units, zx), zx, problem.map_slots @ flat)
        allowed = goal.allowed(primal)
        made = problem.certificate(point, fresh=False, primal=primal, enough=primal - allowed)
        self.allowed_share = SHARE * allowed / self.f if self.f > 0 else 0.0
        passes, self.passes = self.passes, 0.0
        gap = made.gap if made.certified else np.inf
        if not made.certified:
            gap = self._gap_estimate(units, self.slope, self.w)
        return Proposal(point, primal, passes, WorkingSets.name, made), gap, allowed

    # -- which units --------------------------------------------------------------------------------

    def _eliminate(self, problem: Problem, units: Units, gap: float) -> None:
        """Units that are zero at every answer: their slope there differs by sqrt(2 L gap) |column| / sqrt(n) at most,
        because the dual objective is 1/(nL)-strongly concave (Gap Safe rules; Ndiaye et al., 2017)."""
        if self.loss.smoothness is None or self.slope is None or not math.isfinite(gap):
            return
        largest = float(self.weight.max()) if self.weight.size else 1.0
        squares = np.tile(self.data.mean_squares, self.outputs)
        reach = math.sqrt(2 * self.smooth * max(gap, 0.0) * largest)
        share = units.scaling(self.slope)
        if units.alone:
            self.out |= share * np.abs(self.slope) + reach * np.sqrt(squares) < units.l1
        else:
            beyond = units.sizes(units.beyond(share * self.slope))
            across = np.sqrt(np.add.reduceat(squares[units.members], units.start[:-1]))
            self.out |= beyond + reach * across < units.norm

    def _closed(self, units: Units) -> bool:
        """Whether every unit that may count is in the working set."""
        inside = self.out.copy()
        inside[self.chosen] = True
        return bool(inside.all())

    def _choose(self, units: Units, slope: Vector | None, first: bool, level: float = 1.0) -> int:
        """Add the units with the largest scores; how many coefficients were added, -1 if there is no room."""
        if slope is None:
            return 0
        scores = units.scores(slope)
        nonzero = int(np.count_nonzero(units.sizes(self.w))) if not units.alone else int(np.count_nonzero(self.w))
        if first and self.chosen.size > (2 if not self.loss.quadratic else 3) * nonzero + 32:
            live = units.sizes(self.w)[self.chosen] > 0
            keep = np.flatnonzero(live | (scores[self.chosen] > 0.9 * min(level, 1.0)))
            self._keep(units, keep)
        scores[self.chosen] = 0.0
        scores[self.out] = 0.0
        candidates = np.flatnonzero(scores > level)
        most = units.count
        if level == 1.0:
            start = max(10, min(40, int(2 * math.sqrt(units.count))))
            most = max(nonzero, start)
            if nonzero >= 0.9 * self.chosen.size and candidates.size > 8 * self.chosen.size:
                most = max(most, 2 * nonzero)
        if candidates.size > most:
            candidates = candidates[
                np.argpartition(scores[candidates], candidates.size - most)[candidates.size - most :]
            ]
        before = self.coefs.size
        coefs, _ = units.of_coefficients(candidates)
        if not self.data.sparse and not self._fits(before + coefs.size):
            return -1
        self._add(units, np.sort(candidates))
        return self.coefs.size - before

    def _reconsider(self, units: Units, number: int) -> None:
        """After some rounds the support tells more than the slopes at zero did: all columns may be cheaper."""
        if self.whole or not 2 <= number <= 6 or not self._may_be_whole(units) or self.slope is None:
            return
        nonzero = np.count_nonzero(self.w)
        outside = np.count_nonzero(units.scores(self.slope) > 1.0) - np.count_nonzero(
            units.scores(self.slope)[self.chosen] > 1.0
        )
        expected = min(nonzero + outside * (nonzero / max(self.coefs.size, 1)) ** 2, self.n)
        if self._whole_price() <= self._set_price(expected, 5):
            self._take_all(units)

    # -- the model ----------------------------------------------------------------------------------

    def _gap_estimate(self, units: Units, slope: Vector, v: Vector) -> float:
        """P - D at the slopes scaled into the dual's domain, the loss's conjugate to second order."""
        share = units.scaling(slope)
        rows = (
            float(np.sum(np.square(self.x) / np.where(self.h > 0, self.h, self.smooth))) / self.n if share < 1 else 0.0
        )
        quadratic = 0.5 * float(units.ridge @ np.square(v))
        own = units.value(v) + quadratic + units.conjugate(share * slope) - share * float(v @ slope)
        unheld = units.unheld(slope)
        loose = 0.0
        if unheld.any():
            bend = np.maximum(self.data.mean_squares[self._column_of(units)] * float(self.h.mean()), 1e-300)
            loose = 0.5 * float(np.sum(np.square(unheld) / bend))
        return max(own, 0.0) + 0.5 * (1 - share) ** 2 * rows + loose

    def _column_of(self, units: Units) -> Index:
        return (self.coefs if units.l1.size == self.coefs.size else np.arange(units.l1.size)) % self.p

    def _local_slopes(self) -> Vector:
        """X'x / n on the working set."""
        g = np.empty(self.coefs.size)
        for k, (part, places) in enumerate(zip(self.columns, self.where, strict=True)):
            if places.size:
                g[places] = part.slopes(self.x[k])
        self.passes += 0.5 * self.coefs.size / max(self.w.size, 1)
        return g / self.n

    def _solve_on_set(self, units: Units, limit: float, settled: bool, goal: float | None = None) -> None:
        """Newton steps on the working set until its own gap is within the limit."""
        local = units.local(self.chosen)
        v = self.w[self.coefs]
        none = np.zeros(0)
        penalty = LocalPenalty(local.l1, local.lower, local.upper, local.start if not local.alone else self.chosen[:0],
                               local.norm if not local.alone else none)  # fmt: skip
        before, refresh, fresh, stuck = np.inf, False, False, 0
        by_columns = self._without_gram()
        for step in range(STEPS):
            g = self._local_slopes()
            gap = self._gap_estimate(local, -g, v)
            push = self.x.mean(axis=1) if self.intercept else np.zeros(self.outputs)
            loose = 0.5 * float(np.sum(np.square(push) / np.maximum(self.h.mean(axis=1), 1e-300)))
            if step and gap + loose <= limit:
                break
            if by_columns:
                old = v.copy()
                self._descend_columns(local, penalty, v, g, push, self._target(limit, gap + loose, False))
                taken = self._line_search(local, old, v, g, push)
                v = v if taken == 1.0 else old + taken * (v - old)
                self.w[self.coefs] = v
                if taken == 0.0:
                    break
                self._learn(taken)
                continue
            exact = self.loss.quadratic and self.gram.dtype == np.float64
            if self.loss.quadratic and not exact and step and gap > 0.3 * before:
                self._double()  # single precision does not contract any more
            if not self.loss.quadratic and self.gram.count:
                refresh = refresh or self._worth_refreshing(
                    gap, before, fresh, limit, goal if settled and goal else limit, v
                )
            if refresh:
                self.gram.forget()
            fresh = self.gram.extend(self.columns, self.where, self._bend(), local.ridge)
            refresh = False
            q = g + local.ridge * v
            if self.intercept:
                for k, places in enumerate(self.where):
                    q[places] -= self.gram.centres[places] * (push[k] / self.gram.heights[k])
            old = v.copy()
            target = self._target(limit, gap + loose, exact)
            self.inner.solve(self.gram.matrix, q, v, penalty, target)
            taken = self._line_search(local, old, v, g, push)
            if taken < 1.0:
                v = old + taken * (v - old)
                refresh = True
                stuck += 1
                if stuck > 8 or (taken == 0.0 and fresh):
                    break
            self._learn(taken)
            before = gap
            self.w[self.coefs] = v
            if exact and taken == 1.0:
                break
        self.w[self.coefs] = v

    def _learn(self, taken: float) -> None:
        """Where the loss has flat parts: a shortened step asks for a more careful model, a whole one for less of it."""
        if self.floor:
            self.floor = max(0.3 * self.floor, 1e-4) if taken == 1.0 else min(1.0, max(10 * self.floor, 0.03))

    def _without_gram(self) -> bool:
        """Whether descent on sparse columns is cheaper than their Gram matrix and descent on that."""
        if not self.data.sparse or self.outputs > 1:
            return False
        part, size = self.columns[0], self.coefs.size
        active = max(20, 2 * int(np.count_nonzero(self.w)))
        gram = (
            part.pairs * self.prices.csr_gram
            + 2.0 * size * size
            + TURNS * size * min(size, active) * self.prices.descent
        )
        return bool(TURNS * 1.3 * part.stored * self.prices.csc_pass + 5 * part.stored < gram or not self._fits(size))

    def _descend_columns(self, local: Units, penalty: LocalPenalty, v: Vector, g: Vector, push: Vector,
                         target: float) -> None:  # fmt: skip
        """The model without its Gram matrix, by passes over the columns."""
        from ..kernels import sparse_columns as kernels

        part, start, weight = self.columns[0], v.copy(), self._bend()[0] / self.n
        values, places, ends = part.by_column
        bend = np.empty(v.size)
        kernels.rows_times(values * values, places, ends, weight, bend)
        self.gram.heights = np.array([max(float(weight.sum()), 1e-300)])
        centre = np.zeros(v.size)
        if self.intercept:
            kernels.rows_times(values, places, ends, weight, centre)
        self.gram.centres, self.gram.count = centre, 0
        total = float(self.gram.heights[0]) if self.intercept else 0.0
        bend += local.ridge
        if self.intercept:
            bend -= centre**2 / total
        slope = g + local.ridge * v - (centre * (push[0] / total) if self.intercept else 0.0)
        rest, sums, space = np.zeros(self.n), np.zeros(1), np.empty(v.size)
        shared = (values, places, ends, weight)
        model = (slope, local.ridge, centre, total, start, v, penalty.l1, penalty.lower, penalty.upper, rest, sums)
        if penalty.grouped:
            # the sum of a block's diagonal bounds its curvature; so does its size times the largest entry
            bend = np.add.reduceat(bend, penalty.start[:-1])
        for turn in range(200):
            active = turn % 4 != 0
            if penalty.grouped:
                left = kernels.descend_group_columns(*shared, bend, *model, active, penalty.start, penalty.norm, space)
            else:
                left = kernels.descend_columns(*shared, bend, *model, active)
            self.passes += 0.5 * self.coefs.size / self.w.size
            if not active and left <= target:
                break

    def _bend(self) -> Vector:
        """The curvature of the rows, with a floor where the loss has flat parts."""
        if not self.floor:
            return self.h
        least = self.floor * self.smooth
        if self.weight.size:
            return np.maximum(self.h, least * self.weight.reshape(self.h.shape))
        return np.maximum(self.h, least)

    def _target(self, limit: float, gap: float, exact: bool) -> float:
        """How accurately the model is solved."""
        if exact:
            return 0.5 * limit
        return max(0.3 * limit, (1e-3 if self.loss.quadratic else 0.05) * gap)

    def _double(self) -> None:
        self.gram = LaggedGram(self.n, self.intercept, self.loss.quadratic)

    def _worth_refreshing(self, gap: float, before: float, fresh: bool, limit: float, goal: float, v: Vector) -> bool:
        """Whether what is left, at the present rate, costs more than a new Gram matrix."""
        change = self.gram.change(self._bend())
        rate = max(change, 0.02) if fresh or not math.isfinite(before) else max(gap / max(before, 1e-300), 0.02)
        if rate > 0.9:
            return change > 1e-3
        size = self.coefs.size
        read = self.columns[0].stored if self.data.sparse and not self.whole else self.n * size
        pass_price = read * (self.prices.csr_pass if self.data.sparse else self.prices.gemv)
        active = max(10, int(np.count_nonzero(v)))
        turn = (
            2 * pass_price
            + self.n * self.prices.loss
            + 10 * size * active * self.prices.descent
            + 30 * self.prices.call
        )
        if self.data.sparse:
            price = self.columns[0].pairs * self.prices.csr_gram + 2.0 * size * size
        else:
            price = self.n * size * size / 2 * self.prices.syrk32 + self.n * size * self.prices.cast
        target = max(goal, 1e-300)
        left = math.log(max(gap / target, 1.0001)) / math.log(1 / min(rate, 0.97))
        need = 2 if gap > 100 * target else 1
        return left * turn > price + need * turn

    def _line_search(self, local: Units, old: Vector, v: Vector, g: Vector, push: Vector) -> float:
        """Halve the step until the objective falls as it should; the point moves, the share taken is returned."""
        change = v - old
        du = np.empty((self.outputs, self.n))
        shift = np.zeros(self.outputs)
        for k, (part, places) in enumerate(zip(self.columns, self.where, strict=True)):
            own = change[places]
            if self.intercept:
                shift[k] = -(push[k] + float(self.gram.centres[places] @ own)) / self.gram.heights[k]
            du[k] = part.scores(own) + shift[k] if places.size else shift[k]
        self.passes += 0.5 * self.coefs.size / max(self.w.size, 1)
        start = local.value(old) + 0.5 * float(local.ridge @ np.square(old))
        full = local.value(v) + 0.5 * float(local.ridge @ np.square(v))
        slope = float(g @ change) + float(push @ shift) + full - start
        begin, share = self.f + start, 1.0
        for _ in range(30):
            u = self.u + share * du
            f, x, h = self._look(u)
            if share == 1.0:
                value = full
            else:
                at = old + share * change
                value = local.value(at) + 0.5 * float(local.ridge @ np.square(at))
            if f + value <= begin + 0.01 * share * slope + 1e-15 * abs(begin):
                self.u, self.f, self.x, self.h = u, f, x, h
                self.b = self.b + share * shift
                return share
            share *= 0.5
        return 0.0
