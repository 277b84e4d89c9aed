"""What is tried between epochs: Newton's method and its kin, from where the epochs have come to.

Every one has a price, by a model of what it costs in nanoseconds, and is tried where the epochs that seem to be left
cost more. Nothing that comes of it is believed: the solver makes a certificate and takes the point if that is better.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ..accelerated import Accelerated
from ..accelerated import applies as accelerated_applies
from ..costs import epoch_nanoseconds
from ..descent import Descent
from ..descent import applies as descent_applies
from ..manifold import Finisher, Point, applies
from ..multipliers import Multipliers, step_nanoseconds
from ..multipliers import applies as multipliers_apply
from ..newton import Newton, newton_nanoseconds, worthwhile
from ..penalties import Separable
from ..problem import Problem

HASTE = 1.5  # times the epochs that seem to be left: what an attempt may cost (of 1, 1.5, 2 and 3)
_PATIENCE = 4.0  # times the epochs so far, what an attempt other than on a face may cost
_FEWEST_STEPS, _MOST_STEPS = 30, 400  # of the method of multipliers, in an attempt
_FEWEST, _MOST = 8, 20  # proximal Newton steps in an attempt
_OVERHEAD = 5e5  # nanoseconds of such a step, however small the problem is
_SAME = 0.01  # change of the number of active coordinates per epoch, where structure is settled
_FACES = 12  # that an attempt from the structure of an epoch may take, along edges
_SETTLED = 3e-5  # relative gap from which the structure of a prox is worth a Newton step
_CLEAR = 3e-3  # the same where the prox is exact
_AGAIN = 2.0  # times what the structure has cost, what may be spent on it
_DEEP = 1e-2  # of that: a goal above it the prox's own steps reach as fast
_WARM, _WARMER = 4, 6  # epochs before steps that cost less than an epoch: with an exact prox, and without
_WORTH = 60.0  # of these steps, that may be made before anything is known
_EARLY = 4.0  # epochs that an attempt before all epochs may cost
_CURVATURE = 10.0, 30.0  # epochs that descent with the squared loss may cost: at first, and where most units matter
_NEARLY_ALL = 0.9  # of the units, whose slopes at zero say so; otherwise an epoch has to
_NEWTON = 1e7  # nanoseconds of epochs before Newton's method is tried, which takes about as long at the least
_VISITS = 2e5  # of rows: what comes before it at any rate, unless these are more than 4 epochs
_STEPS = 1.5  # proximal Newton steps, with a curvature each, that the epochs before the first of them may cost


class Proposals:
    """The attempts that fit a problem; see :meth:`make`.

    They keep their count in the state of the method: passes over the data (`newton_passes`), attempts (`newton_tries`,
    from which the method takes those back that paid), the epoch of the next one (`newton_due`), and the price of a face
    that was last too high (`refused`).
    """

    def __init__(self, problem: Problem):
        self.problem, self.epoch = problem, epoch_nanoseconds(problem)
        self.largest = problem.zero_answer  # with the largest useful alpha, once somebody asked
        self.few = worthwhile(problem)  # coefficients, for proximal Newton steps
        self.finisher = Finisher(problem) if applies(problem) else None
        self.accelerated = Accelerated(problem) if accelerated_applies(problem) else None
        self.descent = Descent(problem) if descent_applies(problem) else None
        self.multiplies = multipliers_apply(problem)
        if self.multiplies and np.diff(problem.map.indptr).max(initial=0) > 2:
            self.finisher = None  # zeros that join more than two features make faces on which it is slow

    def _settled(self, state):
        """Whether u has nearly as many zeros as at the last look, and little else can change: the loss has no flat
        parts, and there are no edges."""
        before, epochs = state.active, state.epoch - state.looked
        state.active, state.looked = int(np.count_nonzero(state.u)), state.epoch
        if self.finisher is None or self.accelerated is not None or not self.finisher.bends_everywhere:
            return False
        return abs(state.active - before) <= _SAME * epochs * state.active

    @functools.cached_property
    def multipliers(self):
        return Multipliers(self.problem)

    def first_due(self) -> int:
        """The epoch of the first attempt."""
        wait = _STEPS * sum(newton_nanoseconds(self.problem)) if self.few else _NEWTON
        least = 4 if self.descent is not None else min(max(math.ceil(_VISITS / self.problem.visits), 1), 4)
        return int(np.clip(wait / self.epoch, least, 64))

    def make(self, state, tol: float, left, deadline: float = math.inf) -> Point | None:
        """A point worth a certificate, now and then. `left` tells the epochs that it may cost, from state, tol and
        whether the structure is settled; at the deadline (by the clock of time.perf_counter) an attempt ends with what
        it has."""
        if self.finisher is not None:
            self.finisher.refused = state.refused
        point = self._attempt(state, tol, left, deadline)
        if self.finisher is not None:
            state.refused = self.finisher.refused
        return point

    def _attempt(self, state, tol, left, deadline):
        self.deadline = deadline
        for attempt in (self.finisher, self.accelerated, self.descent):
            if attempt is not None:
                attempt.deadline = deadline
        doubled = state.epoch & (state.epoch - 1) == 0
        if (state.epoch == 0 and self.largest is not None) or (state.epoch and doubled and self._seems_zero(state)):
            point = self._nothing_penalised()
            if point is not None:
                return point
        if state.epoch == 0:
            return self._from_nothing(state, tol)
        point = None
        # an attempt at epoch 1 leaves a due epoch below 4: a run that is resumed there does not try again
        if state.epoch == 1 and state.newton_due > 3 and self.descent is not None and self.descent.many(state.u):
            point = self._descend(state, tol, *_CURVATURE)
        if point is None and state.epoch < state.newton_due:
            return None
        left = left(state, tol, self._settled(state))
        ways = [self._newton, self._accelerated, self._multipliers]
        if state.newton_tries % 2:  # they take turns at being the first
            ways.reverse()
        for way in ways if point is None else ():
            point = way(state, tol, left)
            if point is not None:
                break
        state.newton_due = 2 * state.epoch if point is not None else math.ceil(1.25 * state.epoch) + 1
        if point is not None:
            state.newton_passes += point.passes
            state.newton_tries += 1
        return point

    def _seems_zero(self, state):
        """Whether u is zero wherever the penalty could make it so (a quadratic alone never does)."""
        parts = [
            state.u[first:last]
            for block, first, last in self.problem._parts()
            if not (isinstance(block.function, Separable) and not block.function.weights.any() and block.ridge > 0)
        ]
        return bool(parts) and not any(part.any() for part in parts)

    def _nothing_penalised(self):
        """The answer with B'w = 0, where alpha is so large that it is one; None elsewhere."""
        from ..largest_alpha import zero_answer

        problem = self.problem
        if self.largest is None:
            try:
                self.largest = zero_answer(problem, refine=False, enough=problem.alpha)
            except ValueError:
                return None
        found = self.largest
        if not found.alpha <= problem.alpha * (1 + 1e-12) or found.y.size != problem.d:  # alpha = 0 has no penalty
            return None
        primal = problem.primal_at(found.w)
        return Point(found.w, found.x, found.y, problem.gradient_sum(found.x), np.zeros(problem.d), primal)

    def _from_nothing(self, state, tol):
        """What may find the answer before the first epoch: where few features seem to matter and each of them stands in
        one place of B'w, Newton's method from zero; with the squared loss, descent on its curvature."""
        point = self._few_features(state, tol)
        if point is not None and point.made is not None and point.made.relative_gap <= tol:
            return point
        most = _CURVATURE[1] if self._nearly_all_matter() else _CURVATURE[0]
        found = self._descend(state, tol, 0.0, most)
        if found is None:
            return point
        state.newton_due = 3  # not again after the first epoch
        state.newton_passes += found.passes
        return self._better(found, point, found.passes)

    def _nearly_all_matter(self):
        """Whether the slopes at zero, if somebody has looked at them, ask for nearly all units."""
        return self.finisher is not None and self.finisher.asked >= _NEARLY_ALL

    def _descend(self, state, tol, least, most):
        """Descent with the squared loss, where it costs so many epochs."""
        if self.descent is None or not least < self.descent.nanoseconds / self.epoch <= most:
            return None
        point = self.descent.run(state.w, tol=tol)
        if point is None or point.made.relative_gap <= tol or self.finisher is None:
            return point
        # where columns are much alike descent is slow at the end, and has long found the zeros
        finished = self.finisher.run(point.w, point.u, point.y, tol=tol, budget=2 * self.descent.nanoseconds)
        return self._better(point, finished, self.descent.passes + self.finisher.passes)

    def _better(self, point, other, passes):
        """The one of the two with the smaller gap; the other may be missing, or without its certificate."""
        if other is not None:
            other.made = other.made or self.problem.certificate(other, fresh=False, primal=other.primal)
            if other.made.relative_gap < point.made.relative_gap:
                point = other
        point.passes = passes
        return point

    def _few_features(self, state, tol):
        if self.finisher is None or not (self.finisher.alone and self.problem.single):
            return None
        budget = max(_EARLY * self.epoch, 0.5 * _NEWTON)
        point = self.finisher.run(state.w, state.u, state.y, tol=tol, budget=budget)
        state.newton_passes += self.finisher.passes
        return point if point is not None and (point.w.any() or point.made) else None

    def _newton(self, state, tol, left):
        """Proximal where there are few coefficients, otherwise on the structure of the iterate.

        Every attempt in vain makes the next one careful, and where both kinds apply they take turns.
        """
        budget = state.share * self.epoch * left / 2**state.newton_tries
        if self.few and (self.finisher is None or state.newton_tries % 2 == 0):
            price = newton_nanoseconds(self.problem)[1] + _OVERHEAD
            steps = int(np.clip(budget / price, _FEWEST, _MOST))
            newton = Newton()
            newton.deadline = self.deadline
            return newton.propose(self.problem, state.w, state.y, tol=tol, steps=steps)
        if self.finisher is not None:
            # along edges, the structure that epochs show takes several faces to mend
            faces = _FACES if self.accelerated is not None else 1
            return self.finisher.run(state.w, state.u, state.y, tol=tol, budget=budget, faces=faces)
        return None

    def _accelerated(self, state, tol, left):
        if self.accelerated is None:
            return None
        epoch = state.share * self.epoch
        budget = epoch * min(left / HASTE, _PATIENCE * state.epoch)  # steps that grow slow at the end deserve no haste
        if not state.gap < 1.0:
            if self.few or not self.accelerated.swift or state.epoch < (_WARM if self.accelerated.exact else _WARMER):
                return None
            budget = _WORTH * self.accelerated.step_nanoseconds
        sharp = self.accelerated.exact
        settled = _CLEAR if sharp else _SETTLED
        goal = tol
        if self.finisher is not None and tol <= (1.0 if sharp else _DEEP * _SETTLED):
            goal = max(tol, min(settled, 0.1 * min(state.gap, 1.0)))
        point = self.accelerated.run(state.w, state.y, tol=goal, gap=min(state.gap, 1.0), budget=budget)
        if point is None or not tol < point.made.relative_gap <= settled or self.finisher is None:
            return point
        # by now the structure of the prox is nearly that of the answer
        best = fine = point
        if not sharp:
            fine = self.accelerated.sharpened(point) or point
            best = min(point, fine, key=lambda p: p.made.relative_gap)
        price = max(epoch * left, _AGAIN * self.accelerated.spent)
        finished = self.finisher.run(fine.w, fine.u, fine.y, tol=tol, budget=price)
        return self._better(best, finished, self.accelerated.passes + self.finisher.passes)

    def _multipliers(self, state, tol, left):
        if not self.multiplies:
            return None
        epochs = min(left, _PATIENCE * state.epoch)
        steps = epochs * state.share * self.epoch / step_nanoseconds(self.problem)
        if steps < _FEWEST_STEPS:
            return None
        self.multipliers.deadline = self.deadline
        return self.multipliers.run(state.w, state.x, state.y, tol=tol, steps=int(min(steps, _MOST_STEPS)))
