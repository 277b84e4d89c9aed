"""The fit of a working set: models of the loss there, and steps along their answers.

A model's Gram matrix is kept while it is good enough. The squared loss has an exact one; that of another loss is made
anew once what is left, at the present rate, costs more.
"""

from __future__ import annotations

import functools
import math
import time
from typing import Any

import numpy as np

from ..foundation.numerics import BALANCED, LITTLE
from ..kernels.rules import LOOSE, PATIENCE, ROUNDS
from .choices import Choices
from .curvatures.coupled_gram import CoupledGram
from .curvatures.gram import LaggedGram
from .curvatures.several_gram import SeveralGram
from .inner.columns import ColumnDescent
from .inner.local import LocalPenalty
from .point import CARELESS, Point
from .set_parts import Curvature, InnerSolver, Restriction, Step
from .units import Units, Vector


class SetFit:
    """Fits the working set of a point.

    Attributes
    ----------
    gram : the curvature in use, of coefficients in the order of the working set
    passes : over the data, since somebody set it to zero
    spent : nanoseconds of descent on sparse columns, likewise
    care : of the usual accuracy, that of models
    """

    gram: Curvature

    def __init__(self, point: Point, working: Restriction, choices: Choices, inner: InnerSolver, step: Step) -> None:
        self.point, self.working, self.choices, self.inner, self.step = point, working, choices, inner, step
        self.quadratic = point.loss.quadratic
        self.passes = self.spent = 0.0
        self.care = 1.0
        self.renew(np.float64)

    def renew(self, dtype: type) -> None:
        """Have all of the curvature made anew, in this precision."""
        point = self.point
        if point.loss.across_rows:
            self.gram = CoupledGram(point, dtype)
        elif point.loss.coupled:
            self.gram = SeveralGram(point.n, point.intercept, point.outputs)
        else:
            self.gram = LaggedGram(point.n, point.intercept, self.quadratic, dtype)

    def solve(
        self, units: Units, limit: float, deadline: float, slope: Vector | None = None, aim: float | None = None
    ) -> None:
        """Steps on the working set until its own gap is within the limit; `aim` is the limit of the last round, where
        the set seems to be settled, and `slope` has the slopes of all features with the sign turned, where they are
        known."""
        point, working = self.point, self.working
        if not working.size:
            return
        local = units.local(working.chosen)
        penalty = LocalPenalty.of(local)
        v, columns = point.w[working.coefs], working.coefs % point.p
        share = working.size / max(point.w.size, 1)
        before, fresh, refresh, cuts, slow, least = np.inf, False, False, 0, 0, np.inf
        value = np.inf
        for step in range(ROUNDS):
            if step == 0 and slope is not None:
                g, push = -slope[working.coefs], point.push()
            else:
                g, push = working.slopes(point.x), point.push()
                self.passes += 0.5 * share
            self.passes += 0.5 * share
            gap = point.gap(local, -g, v, columns)
            if point.intercept:
                gap += 0.5 * float(push @ point.intercept_steps(push))
            if step and (gap <= limit or time.perf_counter() > deadline):
                break
            slow, least = (0, gap) if gap < 0.7 * least else (slow + 1, least)
            if slow > PATIENCE:
                break
            value, last = point.f + local.value(v) + local.quadratic(v), value
            if step and not refresh and not local.alone:
                self.judge_accuracy(gap, before, last - value)
            bare = self.choices.without_gram(working, int(np.count_nonzero(v)), self.spent)
            if bare:
                weight, centred = point.bend()[0] / point.n, point.intercept or point.loss.across_rows
                model = ColumnDescent(working.columns[0], weight, local.ridge, centred)
                new, follow = v.copy(), model.follow(push)
                along = g + local.ridge * v - model.centres * (push[0] / model.height)
                most = math.inf
                if not local.alone:  # conjugate gradients are slow on groups of more coefficients than there are rows
                    most = self.choices.gram_with_factor(working, int(np.count_nonzero(v))) - self.spent
                    most /= self.choices.column_pass_price(working)
                model.solve(along, new, penalty, self._accuracy(limit, gap, False, local.alone), most)
                self.passes += 0.5 * share * model.passes
                self.spent += model.passes * self.choices.column_pass_price(working)
                exact = False
            else:
                exact = self._make_model(local, limit, gap, before, fresh, refresh, aim, v)
                fresh = self.gram.extend(working.columns, working.where, point.bend(), local.ridge)
                new, follow = v.copy(), functools.partial(self.gram.follow, push=push, where=working.where)
                along = g + local.ridge * v
                if point.intercept:
                    along -= self.gram.lean(push, working.where)
                accuracy = self._accuracy(limit, gap, exact, local.alone)
                wishes = {} if local.alone else self._wishes(accuracy)
                self.inner.solve(self.gram.matrix, along, new, penalty, accuracy, **wishes)
            taken = self.step(point, working, local, v, new, g, push, follow)
            refresh = taken < 1.0
            cuts += refresh
            still = gap >= before and np.array_equal(new, v)
            v = new if taken == 1.0 else v + taken * (new - v)
            point.w[working.coefs] = v
            point.learn(taken)
            if (exact and taken == 1.0) or still or cuts > 8 or (taken == 0.0 and (bare or fresh)):
                break
            before = gap

    def _wishes(self, accuracy: float) -> dict[str, Any]:
        """What else a model with groups is told."""
        working = self.working
        roots = self.gram.roots(working.columns[0]) if len(working.columns) == 1 else None
        return {"spare": self.choices.spare(working), "finer": LITTLE * accuracy, "roots": roots, "rank": self.point.n}

    def _accuracy(self, limit: float, gap: float, exact: bool, alone: bool) -> float:
        """How accurately a model is solved: no more than the model itself is."""
        least = BALANCED * abs(self.point.f)
        if exact:
            return max(self.care * 0.5 * limit, least)
        near = LITTLE if self.quadratic else LOOSE
        return max(self.care * max(0.3 * limit, near * gap), least)

    def judge_accuracy(self, gap: float, before: float, gained: float) -> None:
        """Whole steps that gain nothing were too short: a model's own estimate of its gap can be far too small, where
        columns of one group have very different sizes. (Models that are careful about flat parts of the loss have short
        steps by themselves; the estimate for single coefficients is a bound.)"""
        if gap > 0.9 * before and gained < 0.01 * gap and self.point.floor <= CARELESS:
            self.care = max(0.01 * self.care, 1e-8)
        elif gap < 0.3 * before:
            self.care = min(10 * self.care, 1.0)

    def _make_model(self, local: Units, limit: float, gap: float, before: float, fresh: bool, refresh: bool,
                    aim: float | None, v: Vector) -> bool:  # fmt: skip
        """Keep the Gram matrix, or have it made anew; returns whether it is the loss's own curvature."""
        gram, point = self.gram, self.point
        if self.quadratic:
            if gram.dtype is np.float32 and gap > 0.3 * before:
                self._use_double()
            return self.gram.dtype is np.float64
        if not local.alone and not gram.precise:
            refresh = refresh or self.choices.fresh_is_cheaper(gram.count, self.working.size)
        if gram.count and not refresh:
            change = gram.change(point.bend())
            rate = max(change if fresh or not math.isfinite(before) else gap / max(before, 1e-300), 0.02)
            if rate > 0.9:
                refresh = change > 1e-3 or not gram.precise
                if change <= 1e-3:
                    self._use_double()
            else:
                support = int(np.count_nonzero(v))
                refresh = self.choices.worth_a_gram(self.working, gap, aim or limit, rate, support)
        if refresh:
            self.gram.forget()
        return False

    def _use_double(self) -> None:
        """Models that are right to single precision do not contract any more."""
        if self.gram.dtype is np.float32:
            self.renew(np.float64)
        self.gram.precise = True
