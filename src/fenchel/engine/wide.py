r"""Many features behind a map: rounds on faces of the penalty, each with a proof over all features.

A prox of the whole penalty at a point, a step along the gradient of the loss, says which units of B'w are free. The
problem on their face has few coefficients (``restrictions/face.py``) and is solved by models of all of them
(``models.py``). Its answer is proven over all features, or the next prox sets more units free. A single fit begins at a
large multiple of alpha, where faces are small, and comes down in stages.

Symbols: m the multiple of alpha at a stage; eta step of the prox; others as in parts.py.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..kernels.rules import ROUNDS, STAGE_TOL, TIGHTER
from ..prices import Prices, certificate_nanoseconds
from ..problem import Certificate, Problem
from .accuracy import ROUNDS_CHEAP
from .attempts.manifold import correct
from .curvatures.step_length import Steps
from .curvatures.whole_gram import WholeGram
from .inner.admm import Admm
from .line_search import shortened
from .lone_rows import by_lone_rows, lone_rows
from .models import _Fit
from .parts import Answer, Model, Vector
from .restrictions import face
from .restrictions.face import FaceProblem, Flags
from .roles import Goal, Iterate, Proposal
from .whole import Maps, Products, WholePoint

NAME = "faces"
LEAST = 1000  # features from which faces are worth it; fewer: models of all of them
LONGEST, SHORTEST = 4.0, 1.1  # factor from one multiple of alpha to the next
BALANCE = 2.0  # times what a stage costs at any rate: what its face may cost; larger: fewer and larger faces
COORDINATE, OVERHEAD = 150.0, 3e6  # nanoseconds of a stage for each coordinate of B'w, and at any rate
MOST = 3000  # coordinates of a face; larger ones take too long, and others find the answer
MODELS = 3  # of a stage, at the most
INNER, FINEST = 0.03, 0.1  # of the gap: accuracy on a face; and of the one that is wanted, at the least


@dataclasses.dataclass
class Known:
    """The answer at an alpha: a point with the slopes of the rows that prove it."""

    alpha: float
    w: Vector
    x: Vector
    scores: Vector
    slope: Vector


class Faces:
    """The engine for many features behind a map, one output and smooth losses."""

    name = NAME

    def __init__(self, prices: Prices) -> None:
        self.prices = prices
        self._fit: _Wide | None = None
        self._declined = False

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if problem.loss.across_rows:
            return f"{type(problem.loss).__name__} is no sum over rows"
        if problem.p < LEAST:
            return "few features: models of all of them"
        if problem.vectors > 1 or problem.layout[2].size:
            return "several outputs or tasks"
        if problem.loss.kinked:
            return f"{type(problem.loss).__name__} has kinks"
        if not problem.d:
            return "there is no penalty"
        if problem.widest != 2:
            return "faces of other penalties than differences are not small"
        return face.unfit(problem)

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        self._fit = None
        # norms of several differences bend where they are not zero: on 11 of 11 random isotropic grids a single fit
        # was faster by accelerated steps, 1.6 to 3 times
        joining = problem.units[0][problem.widths == 2]
        self._declined = len(alphas) == 1 and np.unique(joining).size < joining.size

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, until somebody stops asking or nothing is gained."""
        if not problem.d or self._declined:
            return
        if self._fit is None or self._fit.problem.d != problem.d:
            self._fit = _Wide(problem, self.prices)
        yield from self._fit.rounds(problem, start, goal)


class _Wide:
    """The memory of the engine: the last answer."""

    def __init__(self, problem: Problem, prices: Prices) -> None:
        self.problem, self.prices = problem, prices
        self.products, self.maps = Products(problem), Maps.of(problem)
        self.units, self.unit_count = problem.units
        self.known: Known | None = None
        self.passes = self.read = 0.0
        self.eta, self.factor = 0.0, 2.0
        self.nanoseconds = 0.0  # by the price model, since the last proposal
        self.lone = lone_rows(problem)

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        self.problem, self.goal, self.read = problem, goal, 0.0
        self.steps: Any = Steps(problem)
        point = self._begin(start)
        if point is None:
            return
        multiple = 1.0
        if self.known is None and start is None:
            multiple = self._largest(point)
        gap, inner, before = 1.0, 1.0, None
        for number in range(ROUNDS):
            if multiple > 1.0:
                multiple, restricted, slope = self._next(point, multiple)
                # for whoever wants to stop here: a point, and nothing is proven; a reason would raise the suspicion
                # that there is no answer, whose proof takes long
                nothing = Certificate(point.primal, -math.inf, math.inf)
                at = Iterate(
                    point.w, point.x, problem.n * slope, problem.n * point.g, self.maps.down(point.w), point.scores
                )
                yield self._offered(at, nothing, True)
            else:
                _, u, slope = self._prox(point, multiple)
                restricted = FaceProblem(problem, self._zero(u) & self._zero(self.maps.down(point.w)))
                made, y = self._prove(point, slope)
                gap = made.relative_gap
                at = Iterate(point.w, point.x, y, problem.n * point.g, self.maps.down(point.w), point.scores)
                if goal.reached(made):
                    self.known = Known(problem.alpha, point.w, point.x, point.scores, slope)
                yield self._offered(at, made, number > 0)
            if self.read >= goal.passes or time.perf_counter() > goal.deadline:
                return
            if before is not None and np.array_equal(restricted.zero, before):
                inner *= TIGHTER
            else:
                inner = max(INNER * min(gap, 0.1), FINEST * goal.tol)
            before = restricted.zero if multiple == 1.0 else None
            if inner < 1e-13:
                return
            found = self._solve(point, restricted, slope, inner)
            if found is None:
                return
            point = found

    def _offered(self, at: Iterate, made: Certificate, exact: bool) -> Proposal:
        passes, nanoseconds, self.passes, self.nanoseconds = self.passes, self.nanoseconds, 0.0, 0.0
        return Proposal(at, made.primal, passes, NAME, made, exact=exact, nanoseconds=nanoseconds)

    def _next(self, point: _At, multiple: float) -> tuple[float, FaceProblem, Vector]:
        """The next multiple of alpha, the face there, and the dual variables.

        A longer way between stages saves some of them, and a larger face costs more; it should cost about as much as
        what every stage costs at any rate.
        """
        own, most = self._zero(self.maps.down(point.w)), BALANCE * self._stage_price()
        tried = 0
        while True:
            smaller = max(multiple / self.factor, 1.0)
            _, u, slope = self._prox(point, smaller)
            restricted = FaceProblem(self.problem, self._zero(u) & own, smaller)
            tried += 1
            if self._face_price(restricted.count) <= most or self.factor <= SHORTEST:
                break
            self.factor = max(math.sqrt(self.factor), SHORTEST)
        if tried == 1:
            self.factor = min(self.factor**1.5, LONGEST)
        return smaller, restricted, slope

    def _stage_price(self) -> float:
        """Nanoseconds of a stage without its face."""
        problem, prices = self.problem, self.prices
        entry = prices.csr_pass if problem.data.sparse else prices.gemv
        return entry * problem.data.stored + COORDINATE * problem.d + OVERHEAD

    def _face_price(self, k: int) -> float:
        """Nanoseconds of an answer on a face of so many coordinates."""
        prices = self.prices
        return prices.syrk64 * self.problem.n * k * k + prices.potrf * k**3 + 60 * prices.gemv * k * k

    # -- points ----------------------------------------------------------------------------------------

    def _begin(self, start: Iterate | None) -> _At | None:
        problem = self.problem
        if start is not None and start.w.any():
            scores = self.products.scores(start.w)
            self._count(0.5)
            return self._at(start.w, scores, None, start.y / problem.n)
        if self.known is not None:
            known = self.known
            return self._at(known.w, known.scores, known.x, known.slope)
        zero = np.ones(problem.d, dtype=bool)
        nothing = FaceProblem(problem, zero)
        z = np.zeros(nothing.count + 1)
        if nothing.alive.size or problem.fit_intercept:
            small = nothing.problem
            found = correct(small, np.zeros(small.size), np.zeros(0), np.zeros(0), tol=1e-10)
            if found is None:
                return None
            z = found.w
        w = nothing.lift(z)
        scores = nothing.problem.scores(z)
        return self._at(w, scores, None, np.zeros(problem.d))

    def _at(self, w: Vector, scores: Vector, x: Vector | None, slope: Vector) -> _At:
        problem = self.problem
        total, own, h = problem.loss.sums(problem.seen(scores), problem.target, problem.weight)
        x = own if x is None else x
        g = self.products.sums(x)
        self._count(0.5)
        self.nanoseconds += self._stage_price()
        primal = total / problem.n + problem.penalty_value(self.maps.down(w))
        return _At(w, scores, x, h, g, primal, slope)

    def _count(self, passes: float) -> None:
        self.passes += passes
        self.read += passes

    # -- which units are free ----------------------------------------------------------------------------

    def _zero(self, u: Vector) -> Flags:
        """The coordinates of units that are zero."""
        some = np.zeros(self.unit_count, dtype=bool)
        some[self.units[u != 0]] = True
        return np.asarray(~some[self.units])

    def _prox(self, point: _At, multiple: float) -> tuple[Vector, Vector, Vector]:
        """A step of the whole prox: where it leads, B'w there with exact zeros, and the dual variables divided by n."""
        steps = self.steps
        if not self.eta:
            mean = float(self.problem.data.mean_squares.sum()) * float(point.h.mean())
            self.eta = 4.0 / max(mean, 1e-300)
        eta, slope, info = self.eta * multiple, point.slope.copy(), np.zeros(4)
        self.nanoseconds += COORDINATE * self.problem.d
        moved = float(point.w @ point.w) * (1e-6 if multiple > 1.0 else 1e-12) or None
        v = steps.go(point.w - self.eta * point.g, eta, slope, moved, info, ROUNDS_CHEAP)
        u = steps.u if steps.lattice is None else steps.lattice.structure(slope)
        return v, u, slope

    def _largest(self, point: _At) -> float:
        """A multiple of alpha from which on nothing is free, about."""
        low, high = 1.0, 2.0
        while high < 1e6 and self._prox(point, high)[1].any():
            low, high = high, 4.0 * high
        while high > 1.3 * low:
            middle = math.sqrt(low * high)
            if self._prox(point, middle)[1].any():
                low = middle
            else:
                high = middle
        return high

    # -- a face ------------------------------------------------------------------------------------------

    def _solve(self, point: _At, restricted: FaceProblem, slope: Vector, inner: float) -> _At | None:
        """The answer on a face, to a relative gap of `inner`; at a multiple of alpha a rough one."""
        problem, goal, multiple = self.problem, self.goal, restricted.factor
        if restricted.count > MOST:
            return None
        small = restricted.problem
        self._count(0.5)
        if not small.d:
            return point
        z = restricted.inside(point.w)
        y = multiple * restricted.merged(slope)
        self._count(restricted.count / problem.p)
        self.nanoseconds += self._face_price(restricted.count)
        if multiple > 1.0:
            rough = self._rough(small, z, y)
            return self._at(restricted.lift(rough.w), rough.scores, None, slope)
        start = Iterate(z, np.zeros(0), problem.n * y, np.zeros(0), np.zeros(0))
        fit = _Fit(small, self.prices, True)
        within = Goal(inner, goal.deadline, 1e9, lambda primal: inner * abs(primal))
        best: Proposal | None = None
        for proposal in fit.rounds(small, start, within):
            best = proposal
            if proposal.certificate is not None and within.reached(proposal.certificate):
                break
        if best is None:
            return None
        at = best.iterate
        if fit.gram.exact is not None:
            self.eta = 1.0 / _top(fit.gram.exact)
        scores = at.scores if at.scores is not None else small.scores(at.w)
        return self._at(restricted.lift(at.w), scores, at.x, slope)

    def _rough(self, small: Problem, z: Vector, y: Vector) -> WholePoint:
        """A point near the answer on a face, for the next stage to begin at: some models, and no proof."""
        point, gram, inner = WholePoint(small, z), WholeGram(small, self.prices), Admm(small, self.prices)
        answer = Answer(point.w, point.at.copy(), y)
        gram.begin(point.h)
        for _ in range(MODELS):
            gram.make(point.h)
            assert gram.matrix is not None
            answer = inner.solve(Model(point.w, point.g, gram.matrix), answer, STAGE_TOL)
            taken = shortened(point, answer, gram.times(answer.v - point.w))
            if taken.point is None:
                gram.refuse()
                continue
            gained, point = point.primal - taken.point.primal, taken.point
            if taken.share == 1.0 and (small.loss.quadratic or gained <= STAGE_TOL * abs(point.primal)):
                break
        if gram.exact is not None:
            self.eta = 1.0 / _top(gram.exact)
        return point

    def _prove(self, point: _At, slope: Vector) -> tuple[Certificate, Vector]:
        problem = self.problem
        zx = problem.n * point.g
        y = problem.n * self.steps.prox.dual(slope, point.w)
        y = self.steps.balanced(zx, y) if self.lone is None else by_lone_rows(problem, self.lone, zx, y)
        at = Iterate(point.w, point.x, y, zx, np.zeros(0))
        enough = point.primal - self.goal.allowed(point.primal)
        made = problem.certificate(at, fresh=False, primal=point.primal, enough=enough)
        self.nanoseconds += certificate_nanoseconds(problem)
        return made, y


@dataclasses.dataclass
class _At:
    """A point: its slopes x may be those of a proof, g goes with them; slope is where its prox begins."""

    w: Vector
    scores: Vector
    x: Vector
    h: Vector
    g: Vector
    primal: float
    slope: Vector


def _top(H: Any) -> float:
    """The largest eigenvalue, about."""
    v = np.ones(len(H))
    size = 1.0
    for _ in range(8):
        v = H @ v
        size = float(np.linalg.norm(v))
        v /= max(size, 1e-300)
    return 1.05 * size
