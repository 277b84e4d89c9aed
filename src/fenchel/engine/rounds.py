r"""Rounds of working sets: few features among many, single fits and whole paths.

A round chooses the units that pull hardest at zero, copies their columns, makes a quadratic model of the loss there
(its Gram matrix, with the intercept eliminated), solves it by coordinate descent and Newton's method, halves the step
until the true objective falls, and looks at all features again: the slopes there make the certificate, and tell which
units are missing. Where most units count, a round works on all of them at once.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..foundation.numerics import BALANCED
from ..kernels.rules import INNER, LOOSE, NEAR, PATIENCE, ROUNDS, SLOW, STAGE, STAGE_TOL
from ..prices import epoch_nanoseconds
from ..problem import Certificate
from .choices import FEWEST, WIDE, Choices, expected_support, look_first
from .compiled import CompiledPath, is_compiled
from .inner.descent import ModelDescent
from .point import Point
from .restrictions.class_set import ClassSet
from .restrictions.columns import SINGLE_FROM
from .restrictions.working_set import WorkingSet
from .roles import Goal, Iterate, Proposal
from .set_fit import SetFit
from .set_parts import Restriction
from .steps import halved
from .units import Units, Vector, dual_variables, units_of

if TYPE_CHECKING:
    from ..problem import Problem

ROUGH_QUADRATIC = 0.3  # of the present gap, while the goal is far (LOOSE with a curved loss); this has exact models
STAGE_GROUPS = 5.0  # the same for groups, whose rounds cost more; larger: sets that are chosen from farther away
HASTE = 0.3  # of the price of a factor: what descent may cost before it along a path, where supports are foreseen


class WorkingSets:
    """The engine for penalties that fall into units, and losses with a curvature.

    Parameters
    ----------
    prices : nanoseconds of the operations, see :mod:`fenchel.prices`
    """

    name = "working sets"

    def __init__(self, prices: Any) -> None:
        self.prices = prices
        self._fit: _Fit | None = None
        self._compiled: CompiledPath | None = None
        self._several = False

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if problem.loss.kinked:
            return f"{type(problem.loss).__name__} has kinks"
        if problem.layout[2].size:
            return "tasks have coefficients of their own"
        units = units_of(problem)
        if isinstance(units, str):
            return units
        if units.unheld_count > problem.vectors * problem.n:
            return "the features that nothing holds at zero are more than the rows"
        return None

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        self._fit, self._several = None, len(alphas) > 1
        suits = is_compiled(problem, alphas, self.prices)
        if suits and not self._several and look_first(problem, self.prices):
            fit, units = _Fit(problem, self.prices, False), units_of(problem)
            assert isinstance(units, Units)
            fit.stages = fit._begin(units, None)
            suits = not fit.price and not (fit.working.whole and problem.p > WIDE)
            self._fit = None if suits else fit  # it has looked at all slopes already
        self._compiled = CompiledPath(problem, alphas, tol, self.prices) if suits else None

    @property
    def begun(self) -> bool:
        """Whether it has answers of this sequence of alphas already."""
        return self._fit is not None

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, one a round, until somebody stops asking or nothing is gained."""
        if self._compiled is not None and self._compiled.has(problem.alpha):
            proposal = self._compiled.proposal(problem, goal)
            yield proposal
            start = proposal.iterate
        if self._fit is None:
            self._fit = _Fit(problem, self.prices, self._several)
        yield from self._fit.rounds(problem, start, goal)


@dataclasses.dataclass
class _Answer:
    """What a path remembers of an alpha."""

    alpha: float
    w: Vector
    b: Vector


class _Fit:
    """The memory of an engine: the point, the working set and its model."""

    def __init__(self, problem: Problem, prices: Any, several: bool) -> None:
        self.point, self.several = Point(problem), several
        self.choices = Choices(self.point, prices)
        self.loss, self.quadratic = problem.loss, problem.loss.quadratic
        self.rate = ROUGH_QUADRATIC if self.quadratic else LOOSE
        self.few = 0  # units that a set begins with, once they are known
        kind = ClassSet if self.loss.coupled else WorkingSet
        self.working: Restriction = kind(problem.data, self.point.outputs)
        inner = ModelDescent(prices, HASTE if several else 1.0)
        self.models = SetFit(self.point, self.working, self.choices, inner, halved)
        self.epoch = functools.partial(epoch_nanoseconds, problem)  # asked for where epochs may be the better way
        self.stages: list[float] | None = None  # the way to the goal, where somebody has begun
        self.price = 0.0  # nanoseconds of a fit, where epochs of the method are likely the better way
        self.alpha: float | None = None  # the last one
        self.answers: list[_Answer] = []  # the last two before it
        self.slope: Vector | None = None  # -X'x/n at the last look at all features
        self.looked: Vector | None = None  # that x

    # -- one alpha ------------------------------------------------------------------------------------

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        units = units_of(problem)
        assert isinstance(units, Units)
        if self.alpha is None:
            stages = self._begin(units, start) if self.stages is None or start is not None else self.stages
        else:
            stages = []
            self.answers = [*self.answers[-1:], _Answer(self.alpha, self.point.w.copy(), self.point.b.copy())]
            self._predict(problem.alpha, units)
        self.alpha, self.models.spent = problem.alpha, 0.0
        self.out = np.zeros(units.count, dtype=bool)  # units that are surely zero at this alpha
        for factor in stages:
            if time.perf_counter() > goal.deadline:
                break
            self._stage(units.times(factor), goal)
        if self.price:
            yield self._later(problem)
        yield from self._final(problem, units, goal)

    def _later(self, problem: Problem) -> Proposal:
        """Zero, with nothing proven, for the price of the rounds to come: the loop asks for them once the epochs have
        cost about as much. (Slopes at zero would be worse a start for these than none.)"""
        zero = Iterate.zero(problem)
        made = Certificate(self.point.f, -math.inf, 0.0)
        return Proposal(zero, self.point.f, 0.0, WorkingSets.name, made, nanoseconds=self.price)

    def _begin(self, units: Units, start: Iterate | None) -> list[float]:
        """Go to the start, and say through which multiples of the penalty the way to the goal leads."""
        point, working = self.point, self.working
        if start is not None and start.w.any():
            w = start.w.reshape(point.outputs, point.p + 1)
            point.w = np.clip(w[:, :-1].ravel(), units.lower, units.upper)
            point.b = w[:, -1].copy() if point.intercept else point.b
            known = np.union1d(units.label[np.flatnonzero(point.w)], units.free)
            if working.fits(units.of_coefficients(known)[0].size):
                working.add(units, known)
                point.move(working.scores(point.w[working.coefs], point.b))
                if self.choices.may_be_whole() and self.choices.whole_is_cheaper(known.size, 5) and not self.several:
                    self._take_all(units)
                return []
            point.w[:], point.b[:] = 0.0, 0.0
        working.add(units, units.free)
        point.fit_intercepts()
        if self.several:
            # sets of sparse columns are taken out of the rows anew whenever they change
            if point.data.sparse and self.choices.may_be_whole() and self.choices.whole_is_cheaper(0.0, 3):
                self._take_all(units)
            return []
        self._look(point.x)
        assert self.slope is not None
        scores = units.scores(self.slope)
        expected = expected_support(scores, point.n, units.l1.size)
        if self.choices.may_be_whole() and self.choices.whole_is_cheaper(expected, 6):
            self._take_all(units)
        self.price = self.choices.price_beside_epochs(expected, self.epoch)
        if self.working.whole or self.price:
            return []
        top = float(scores.max(initial=0.0, where=np.isfinite(scores)))
        stage = STAGE if units.alone else STAGE_GROUPS
        if units.l1.size <= point.n or not top > stage:
            return []
        count = math.ceil(math.log(top) / math.log(stage))
        return [float(top ** (k / count)) for k in range(count - 1, 0, -1)]

    def _look(self, x: Vector) -> None:
        """The slopes of all features at these slopes of the rows."""
        self.slope, self.looked = -self.point.slopes(x), x
        self.models.passes += 0.5

    def _predict(self, alpha: float, units: Units) -> None:
        """Go on along the line through the last two answers, in the logarithm of alpha, if that is lower; zeros, signs
        and bounds stay."""
        point, coefs = self.point, self.working.coefs
        if len(self.answers) < 2 or not coefs.size:
            return
        before, last = self.answers
        if not before.alpha > last.alpha > alpha > 0:
            return
        ahead = min(math.log(alpha / last.alpha) / math.log(last.alpha / before.alpha), 2.0)
        now, then = last.w[coefs], before.w[coefs]
        step = np.where((now != 0) & (then != 0), ahead * (now - then), 0.0)
        step = np.where((now + step) * now < 0, -0.9 * now, step)
        if not step.any():
            return
        b = last.b + ahead * (last.b - before.b)
        ahead_w = np.clip(now + step, units.lower[coefs], units.upper[coefs])
        u = self.working.scores(ahead_w, b)
        f, x, h = point.look(u)
        local = units.local(self.working.chosen)
        gained = local.value(now) - local.value(ahead_w)
        gained += 0.5 * float(local.ridge @ (np.square(now) - np.square(ahead_w)))
        # where columns are far from zero, an intercept that goes its own way spoils everything
        if f < point.f + gained:
            point.w[coefs], point.b = ahead_w, b
            point.u, point.f, point.x, point.h = u, f, x, h

    def _stage(self, units: Units, goal: Goal) -> None:
        """One round at a larger penalty, on the way to the goal."""
        point = self.point
        if self.slope is None:
            self._look(point.x)
        assert self.slope is not None
        gap, enough = point.gap(units, self.slope, point.w), STAGE_TOL * point.objective(units)
        if gap > enough and self._choose(units, self.slope, first=True) >= 0:
            self._solve(units, max(INNER * enough, self.rate * gap), goal)
            self.slope = None

    def _final(self, problem: Problem, units: Units, goal: Goal) -> Iterator[Proposal]:
        """Rounds at the goal itself; a proposal after every look at all features."""
        best, last, lowest, idle, point = np.inf, np.inf, np.inf, 0, self.point
        if self.several and self.answers:
            self._try_strong(problem, units, goal)
        for number in range(ROUNDS):
            if number == 0 and self.looked is point.x and self._pulled(units):
                # the slopes at the start are known, and it is no answer: nothing is to be proven there
                assert self.slope is not None
                primal, gap = point.objective(units), point.gap(units, self.slope, point.w)
            else:
                proposal, gap = self._certify(problem, units, goal)
                yield proposal
                primal = proposal.primal
                idle = 0 if gap < 0.7 * best else idle + 1
                best = min(best, gap)
                if idle > PATIENCE or not math.isfinite(point.f) or time.perf_counter() > goal.deadline:
                    return
                self._eliminate(problem, units, proposal)
            assert self.slope is not None
            if number and gap < SLOW * last and not self.quadratic and not self.working.whole and not units.alone:
                # a curved loss makes its next Gram matrix anew, and what the last round left at zero need not be in it
                self._drop_groups(units, units.scores(self.slope), units.sizes(point.w), 1.0, 0.9)
            self._reconsider(units, number)
            added = 0 if self.working.whole else self._choose(units, self.slope, first=number == 0 and not self.answers)
            if added < 0:
                return
            closed = self.working.whole or self._closed()
            if not added and self.quadratic and not units.alone:  # one step is a round
                self.models.judge_accuracy(gap, last, lowest - primal)
            last, lowest = gap, primal
            aim = INNER * goal.allowed(primal)
            # where no unit outside pulls, the set is likely the last one
            settled = closed or added < 0.03 * self.working.size
            self._solve(
                units, aim if closed or not added else max(aim, self.rate * gap), goal, aim if settled else None
            )

    def _solve(self, units: Units, limit: float, goal: Goal, aim: float | None = None) -> None:
        """Fit the working set."""
        known = self.slope if self.looked is self.point.x else None
        self.models.solve(units, limit, goal.deadline, known, aim)

    def _pulled(self, units: Units) -> bool:
        """Whether the slopes pull some unit away from zero, beyond rounding."""
        return self.slope is not None and bool((units.scores(self.slope) > 1.0 + 1e-9).any())

    def _try_strong(self, problem: Problem, units: Units, goal: Goal) -> None:
        """The sequential strong rule: try the units whose slope at the last alpha may pass the new penalty. The look at
        all features that follows tells whether some were missing."""
        ratio = self.answers[-1].alpha / problem.alpha if problem.alpha > 0 else np.inf
        if self.slope is None or not 1.0 <= ratio < NEAR:
            return
        if self._choose(units, self.slope, first=True, level=1.0 - 0.5 * (ratio - 1.0)) >= 0:
            self._solve(units, INNER * goal.allowed(self.point.objective(units)), goal)

    def _certify(self, problem: Problem, units: Units, goal: Goal) -> tuple[Proposal, float]:
        """Look at all features, and prove what can be proven; the gap is an estimate where nothing can."""
        point, shape = self.point, (self.point.outputs, self.point.p + 1)
        if self.working.size:  # afresh: steps gather rounding errors
            point.move(self.working.scores(point.w[self.working.coefs], point.b))
        w, zx = np.zeros(shape), np.zeros(shape)
        w[:, :-1], w[:, -1] = point.w.reshape(point.outputs, point.p), point.b
        x = problem.centred(np.ascontiguousarray(point.x.T).ravel())
        rows = np.ascontiguousarray(x.reshape(point.n, point.outputs).T) if point.intercept else point.x
        self._look(rows)
        assert self.slope is not None
        zx[:, :-1] = -point.n * self.slope.reshape(point.outputs, point.p)
        if point.intercept:
            zx[:, -1] = rows.sum(axis=1)
        primal, flat, sums = point.objective(units), w.ravel(), zx.ravel()
        iterate = Iterate(flat, x, dual_variables(problem, units, sums), sums, problem.penalised(flat))
        made = problem.certificate(iterate, fresh=False, primal=primal, enough=primal - goal.allowed(primal))
        passes, self.models.passes = self.models.passes, 0.0
        gap = made.gap if made.certified else point.gap(units, self.slope, point.w)
        return Proposal(iterate, primal, passes, WorkingSets.name, made, exact=True), gap

    # -- which units ----------------------------------------------------------------------------------

    def _eliminate(self, problem: Problem, units: Units, proposal: Proposal) -> None:
        """Units that are zero at every answer: their slope there differs by sqrt(2 L gap) |column| / sqrt(n) at most,
        because the dual objective is 1/(nL)-strongly concave (Gap Safe rules; Ndiaye et al., 2017)."""
        point, made = self.point, proposal.certificate
        assert made is not None and self.slope is not None
        if self.loss.smoothness is None or not made.certified or units.unheld(self.slope).any():
            return
        share = units.scaling(self.slope)
        slope, dual = share * self.slope, made.dual
        if units.ridge.any() or dual <= problem._dual_at_zero:
            # the proven bound may be that of another multiple of the slopes
            dual = -problem.mean_conjugate(proposal.iterate.x, share) - units.conjugate(slope)
        gap = max(proposal.primal - dual, BALANCED * abs(proposal.primal))
        if not math.isfinite(gap):
            return
        squares = np.tile(point.data.mean_squares, point.outputs)
        reach = math.sqrt(2 * point.smooth * gap * (float(point.weight.max()) if point.weight.size else 1.0))
        if units.alone:
            self.out |= np.abs(slope) + reach * np.sqrt(squares) < units.l1
        else:
            across = np.sqrt(np.add.reduceat(squares[units.members], units.start[:-1]))
            self.out |= units.sizes(units.beyond(slope)) + reach * across < units.norm

    def _closed(self) -> bool:
        """Whether every unit that may count is in the working set."""
        inside = self.out.copy()
        inside[self.working.chosen] = True
        return bool(inside.all())

    def _choose(self, units: Units, slope: Vector, first: bool, level: float = 1.0) -> int:
        """Add the units with the largest scores; how many coefficients were added, -1 if there is no room.

        At the `first` choice of an alpha zeros that do not pull leave, if they are many.
        """
        if self.working.whole:
            return 0
        working, scores, sizes = self.working, units.scores(slope), units.sizes(self.point.w)
        if not self.few:
            self.few = max(FEWEST, math.ceil(self.choices.first_size() * units.count / max(units.l1.size, 1)))
        support = int(np.count_nonzero(sizes))
        if first and not units.alone:
            self._drop_groups(units, scores, sizes, level)
        elif first and working.chosen.size > (3 if self.quadratic else 2) * support + 32:
            pulls = scores[working.chosen] > 0.9 * level
            self.models.gram.keep(working.keep(units, np.flatnonzero((sizes[working.chosen] > 0) | pulls)))
        scores[working.chosen] = 0.0
        scores[self.out] = 0.0
        new, before = working.candidates(scores, support, level, self.few), working.size
        # sparse columns can do without their Gram matrix
        if not self.point.data.sparse and not working.fits(before + units.of_coefficients(new)[0].size):
            return -1
        working.add(units, new)
        return working.size - before

    def _drop_groups(self, units: Units, scores: Vector, sizes: Vector, level: float, near: float = np.inf) -> None:
        """Groups that are zero stay only if they would be chosen now or their score is above `near`, once a third of
        the set would go: a set of groups has many coefficients, and its model costs the square of them. (What is
        dropped was added before, so that dropping costs no more than adding did.)"""
        working = self.working
        chosen = working.chosen
        live = sizes[chosen] > 0
        live[np.isin(chosen, units.free)] = True
        within = scores.copy()
        within[chosen[live]] = 0.0
        within[self.out] = 0.0
        wanted = np.zeros(units.count, dtype=bool)
        wanted[working.candidates(within, int(np.count_nonzero(live)), level, self.few)] = True
        stays = live | wanted[chosen] | (scores[chosen] > near)
        if 2 * np.count_nonzero(~stays) > np.count_nonzero(stays):
            self.models.gram.keep(working.keep(units, np.flatnonzero(stays)))

    def _take_all(self, units: Units) -> None:
        self.working.take_all(units)
        single = units.l1.size >= SINGLE_FROM and not self.point.data.sparse
        self.models.renew(np.float32 if single else np.float64)

    def _reconsider(self, units: Units, number: int) -> None:
        """After some rounds the support tells more than the slopes at zero did: all columns may be cheaper."""
        working = self.working
        if working.whole or self.several or not 2 <= number <= 6 or not self.choices.may_be_whole():
            return
        assert self.slope is not None
        pulls = units.scores(self.slope) > 1.0
        outside = np.count_nonzero(pulls) - np.count_nonzero(pulls[working.chosen])
        support = np.count_nonzero(self.point.w)
        expected = min(support + outside * (support / max(working.size, 1)) ** 2, self.point.n)
        if self.choices.whole_is_cheaper(expected, 5):
            self._take_all(units)
