r"""A problem whose rows live in a pool: on a disk, on a cluster, or in memory but in parts.

Nothing that belongs to a single row is kept. The slopes x of the rows are a function of w, so that a *look* at w, one
pass over the data that returns sums, tells all that a certificate needs: the loss, G = Z x, and the sum of conjugates
C(tau) of tau x on a fixed grid of scales. C is convex, so that the chords of the grid lie above it: the dual objective
with them is a true bound, whatever scale the penalty asks for.

An intercept asks for slopes that sum to zero. Sums are told apart by the sign of x, and the heavier side is shrunk;
that takes no further pass. Other directions without penalty, and dual variables of the wrong sign, take some: slopes
are then moved as :meth:`Certifying._balance` does, and the moves are repeated where the rows are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

import numpy as np
import numpy.typing as npt

from .._validate import Array, Ints
from ..data.envelopes import Envelope, lower
from ..data.jobs import Fold, Look, Newton, Sample, Terms, Weighed
from ..data.pools import Outcome
from ..data.roles import Job, RowPool
from ..foundation.lazy import lazy
from ..foundation.numerics import BALANCED, NOTHING, SPACE
from ..kernels.rules import LEAST
from ..losses import Loss
from ..penalties import Penalty
from ..penalties.block_sum import _NONE, _once_per_map, _vector
from .bounds import Certificate, NoCertificate
from .fingerprint import Fingerprint
from .looks import GRID, EnvelopeView, Passes, PoolData, Slopes, View, check_targets, class_codes, inverse, whole_only
from .objective import _as_alpha, _as_loss, _as_penalty
from .points import Point
from .pooled_kinks import PASSES, best_with_kinks
from .pooled_rounding import PooledRounding
from .problem import Problem
from .row_balance import MOST_FREE

Steps: TypeAlias = tuple[tuple[Array, float], ...]  # points, and the reach of the multipliers there

ROWS = 50  # for each feature in a sample; fewer: more rounds
FEWEST = 2000  # rows of a sample, if there are so many
ROOM = 0.25  # of the memory that may be taken: for the rows of a sample
_KNOWN = 4  # looks that are remembered
_LITTLE = 1e-6  # of the largest curvature: what every row counts for in a model, if that is more than LEAST


class PooledProblem(PooledRounding, Problem):
    """See :class:`fenchel.Problem`, which makes one where a pool of rows stands in place of X."""

    pooled = True
    rounding_at_zero = 0.0

    def __init__(
        self,
        X: RowPool,
        y: npt.ArrayLike | None = None,
        *,
        loss: Loss | str,
        penalty: Penalty | None = None,
        alpha: float = 1.0,
        sample_weight: npt.ArrayLike | None = None,
        fit_intercept: bool = False,
        task: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        scale: npt.ArrayLike | None = None,
    ) -> None:
        for name, given in (("y", y), ("sample_weight", sample_weight), ("task", task), ("offset", offset)):
            if given is not None:
                raise ValueError(
                    f"{name} was given beside rows in {X.home}, which have their own; name the {name} where they are "
                    "opened"
                )
        kind = _as_loss(loss)
        if kind.across_rows:
            raise ValueError(whole_only(kind, X.home))
        if kind.coupled and kind.kinked:
            raise ValueError(
                f"{type(kind).__name__} sees all scores of a row together and has kinks, whose multipliers nobody "
                "keeps in a pool; take Multinomial, or a hinge of each class against the rest"
            )
        penalty, alpha = _as_penalty(penalty), _as_alpha(alpha)
        self.passes = Passes(0 if "facts" in vars(X) else 1)
        self.pool, facts = X, X.facts
        self.scale = None if scale is None else _vector("scale", np.asarray(scale, dtype=float), facts.p)
        self.columns = np.zeros(0) if self.scale is None else 1.0 / self.scale
        self.data: Any = PoolData(facts, self.columns)
        self.n, p = facts.n, facts.p
        codes = class_codes(kind, facts, labels)
        if codes is None:
            check_targets(kind, facts)
        outputs = facts.outputs if codes is None or (codes.size == 2 and not kind.coupled) else codes.size
        self.loss = kind.for_outputs(outputs)
        if facts.tasks and outputs > 1:
            raise ValueError("tasks and several outputs cannot be combined; repeat the rows, one task per output")
        single = facts.outputs == 1 and outputs == 1 and not facts.tasks
        self.weight, self.offset, self.fit_intercept = np.zeros(0), np.zeros(0), bool(fit_intercept)
        self.layout = (outputs, p + 1, np.zeros(1 if facts.tasks else 0, dtype=np.int64), p)
        unit = facts.n / facts.positive_weight if facts.weighted else 1.0
        if not np.isfinite(unit):
            raise ValueError(
                f"sample_weight sums to {facts.weight_sum:g} over {facts.n} rows, which is too little to divide by; "
                "multiply all weights by one number, which changes no answer"
            )
        self.terms = Terms(self.loss, outputs, unit, codes)
        self._looks: dict[bytes, View] = {}
        self._compile(penalty, alpha, p, facts.tasks or outputs, single)

    # -- what rows are asked for ------------------------------------------------------------------------

    @property
    def visits(self) -> int:
        return self.n * self.layout[0]

    @property
    def largest_target(self) -> float:
        return self.pool.facts.largest if self.terms.labels is None else 1.0

    def run(self, *jobs: Job) -> list[Outcome]:
        """Jobs on all partitions: one pass."""
        self.passes.count += 1
        return self.pool.run(jobs)

    def watch(self, tell: Callable[..., None] | None) -> None:
        self.pool.watch = tell

    def look_job(self, w: Array) -> Look:
        """What a round asks at w."""
        return Look(self.terms, self.seen_by_rows(w), GRID, self.floor, self._split, self._along_rows(self._directions))

    def seen_by_rows(self, w: Array) -> Array:
        """The coefficients of columns as they stand in the data, where the problem has them on another scale."""
        return w * self._slot_scale if self.columns.size else w

    def _along_rows(self, directions: Array) -> Array:
        return directions * self._slot_scale[:, None] if self.columns.size else directions

    @lazy
    def _slot_scale(self) -> Array:
        """What multiplies every entry of w before rows see it."""
        return np.tile(np.append(self.columns, 1.0), self.vectors)

    @property
    def floor(self) -> float:
        """The least curvature that a row counts for, from the mean that was seen last."""
        smoothness = self.loss.smoothness or 0.0
        return max(LEAST * self.passes.bend, _LITTLE * smoothness)

    def look(self, w: Array) -> View:
        """All sums at w: a pass, unless it was looked at lately. The first one draws a sample of the rows beside."""
        w = _vector("w", w, self.size)
        known = self.known(w)
        if known is not None:
            return known
        if self.passes.drawn:
            return self.noted(w, self.run(self.look_job(w))[0].sums)
        looked, self.passes.sample = self.run(self.look_job(w), self._sample_job())
        self.passes.drawn = True
        return self.noted(w, looked.sums)

    def look_and_draw(self, w: Array, at: View) -> tuple[View, Outcome]:
        """A look at w, and in the same pass a new sample: rows by their share in the curvature at another point."""
        diagonal = at.diagonal.reshape(self.vectors, self.p + 1)[:, :-1].mean(axis=0)
        bent = inverse(diagonal) / (2 * max(int((diagonal > 0).sum()), 1) * self.n)
        if self.columns.size:  # rows are drawn by their columns as they stand there
            bent = bent * np.square(self.columns)
        job = dataclasses.replace(self._sample_job(), w=self.seen_by_rows(at.w), bent=bent, seed=self.passes.count)
        looked, drawn = self.run(self.look_job(w), job)
        return self.noted(w, looked.sums), drawn

    def sample(self) -> Outcome:
        """Rows drawn at random; see :class:`fenchel.data.jobs.Sample`. Whoever asks owns them: they are not kept."""
        if self.passes.sample is None:
            looked, self.passes.sample = self.run(self.look_job(np.zeros(self.size)), self._sample_job())
            self.noted(np.zeros(self.size), looked.sums)
        drawn, self.passes.sample, self.passes.drawn = self.passes.sample, None, True
        return drawn

    def _sample_job(self) -> Sample:
        """Which rows to draw: as many as help, and as memory allows."""
        facts, pool = self.pool.facts, self.pool
        per_row = max(facts.stored / facts.n, 1.0) * (facts.dtype.itemsize + (4 if facts.sparse else 0))
        room = np.inf if pool.held else ROOM * (SPACE if pool.memory is None else pool.memory) / per_row
        # rows that all fit are read once, and not once a round
        most = facts.n if facts.n <= room < np.inf else min(max(min(ROWS * facts.p, room), FEWEST), facts.n)
        scale = inverse(facts.mean_squares)
        total = facts.n * max(int((scale > 0).sum()), 1)  # of the sizes of all rows
        whole = most >= facts.n
        return Sample(self.terms, scale / (2 * total), 1.0 if whole else 0.5 * most / facts.n, most, 0)

    def known(self, w: Array) -> View | None:
        """What was seen at w, if that is remembered."""
        return self._looks.get(self._key(w))

    def _key(self, w: Array) -> bytes:
        key: bytes = w.tobytes() + bytes([self._split]) + self._directions.tobytes()
        return key

    def noted(self, w: Array, sums: Array) -> View:
        """The sums of a look, with their names."""
        view = self._view(w, self.look_job(w), sums)[0]
        self.passes.bend = view.bend
        self._looks[self._key(w)] = view
        while len(self._looks) > _KNOWN:
            self._looks.pop(next(iter(self._looks)))
        return view

    def envelopes(self, w: Array, *settings: tuple[Steps, float]) -> list[EnvelopeView]:
        """What envelopes of a loss with kinks look like at w, for several (steps so far, reach), in one pass."""
        jobs = [self._envelope_job(w, steps, reach) for steps, reach in settings]
        found = []
        for job, outcome in zip(jobs, self.run(*jobs), strict=True):
            seen, more = self._view(w, job, outcome.sums)
            height, moved, gram = more[0] / self.n, more[1] / self.n, self._whole(more[2:]) / self.n
            found.append(EnvelopeView(**vars(seen), envelope=height, moved=moved, gram=gram))
        return found

    def _envelope_job(self, w: Array, steps: Steps, reach: float) -> Envelope:
        known = tuple((self.seen_by_rows(point), r) for point, r in steps)
        return Envelope(self.terms, self.seen_by_rows(w), GRID, 0.0, self._split, self._along_rows(self._directions),
                        (), known, reach, self.vectors)  # fmt: skip

    def _whole(self, triangles: Array) -> Array:
        """Lower triangles, one for every vector of coefficients, as a matrix of all coefficients."""
        size, out = self.p + 1, np.zeros((self.size, self.size))
        rows, columns = lower(size)
        for k, triangle in enumerate(triangles.reshape(self.vectors, -1)):
            block = out[k * size : (k + 1) * size, k * size : (k + 1) * size]
            block[rows, columns] = block[columns, rows] = triangle
        if self.columns.size:
            out *= self._slot_scale[:, None]
            out *= self._slot_scale
        if not self.fit_intercept:
            out[self.intercept_slots] = 0.0
            out[:, self.intercept_slots] = 0.0
        return out

    def _view(self, w: Array, job: Look, sums: Array) -> tuple[View, Array]:
        """What a view begins with, and what else a look has summed."""
        slopes, diagonal, more = self._slopes(w, job, self._directions, sums)
        gradient = self._mask(slopes.total) / self.n
        bend = float(sums[1]) / self.visits
        return View(w, float(sums[0]) / self.n, gradient, diagonal / self.n, bend, slopes), more

    def _slopes(self, w: Array, job: Look, directions: Array, sums: Array) -> tuple[Slopes, Array, Array]:
        groups, outputs, k = 2 if job.split else 1, self.layout[0], directions.shape[1]
        shapes = ((groups, outputs, len(GRID)), (groups, self.size), (self.size,), (k, k), (k,))
        parts, at = [], 5
        for shape in shapes:
            size = int(np.prod(shape))
            parts.append(sums[at : at + size].reshape(shape))
            at += size
        conjugates, slopes, diagonal, gram, sizes = parts
        if self.columns.size:
            slopes, diagonal = slopes * self._slot_scale, diagonal * np.square(self._slot_scale)
        factors = np.ones((groups, outputs if groups > 1 else 1))
        if groups == 1:  # there is nothing to be told apart
            conjugates = conjugates.sum(axis=1, keepdims=True)
        terms = float(sums[3]) / self.n, float(np.sqrt(sums[4] / self.n))
        seen = Slopes(w, slopes, conjugates, factors, float(sums[2]), directions, job.moves, gram, sizes, job, terms)
        return seen, diagonal, sums[at:]

    # -- the objective ----------------------------------------------------------------------------------

    def primal_at(self, w: Array, scores: Array | None = None) -> float:
        return self.look(w).loss + self.penalty_value(self.penalised(w))

    def mean_conjugate(self, x: Any, scale: float = 1.0, exact: bool = False) -> float:
        """A bound from above on (1/n) sum of (s_i f)*(scale x_i); sums of a pool are exact at any rate."""
        return float(x.conjugate(scale)) / self.n

    def gradient_sum(self, x: Any) -> Array:
        return self._mask(x.total)

    @lazy
    def _loss_at_zero(self) -> float:
        view = self.look(np.zeros(self.size))
        self.rounding_at_zero = self._rounding_of(view, view.loss)  # alike, for all alphas
        return view.loss

    @lazy
    def _conjugate_at_zero(self) -> float:
        if self.loss.knows_least and self.loss.least is not None:
            return -self.loss.least
        return self.look(np.zeros(self.size)).slopes.conjugate(0.0) / self.n

    # -- the certificate --------------------------------------------------------------------------------

    def certificate(
        self, state: Any, *, fresh: bool = True, primal: float | None = None, enough: float = np.inf,
        hope: float = -np.inf, exact: bool = False,
    ) -> Certificate:  # fmt: skip
        """See :meth:`fenchel.Problem.certificate`. The dual variables of the rows are the slopes at w, whatever x is
        given."""
        point = Point.of(state)
        return self.certified(self.look(point.w), np.zeros(self.d) if point.y is None else point.y, enough=enough)

    def certified(self, view: View, y: Array, enough: float = np.inf) -> Certificate:
        """The certificate of a point that was looked at, with these dual variables of the penalty."""
        primal = view.loss + self.penalty_value(self.penalised(view.w))
        zx = self.gradient_sum(view.slopes)
        residual = np.linalg.norm(zx + self.spread(y)) / max(float(np.linalg.norm(zx)), 1e-300)
        more, less = self._rounding_of(view, primal), 0.0
        try:
            slopes: Any = view.slopes  # they stand for x, which nobody has
            dual, less = self._feasible_dual(slopes, y, zx, view.w, enough + more, -np.inf, False)
            dual, reason = dual - more, ""
        except NoCertificate as why:
            dual, reason = -np.inf, str(why)
        if not np.isfinite(primal):
            reason = reason or "w breaks a constraint of the penalty"
        return Certificate(primal, dual, float(residual), reason, more + less)

    def zero_certificate(self) -> Certificate:
        """The certificate of w = 0, x = 0, y = 0."""
        primal = self.objective_at_zero()
        return Certificate(primal, self._dual_at_zero - self.rounding_at_zero, 0.0, rounding=self.rounding_at_zero)

    @_once_per_map
    def _split(self) -> bool:
        """Whether intercepts are all that has no penalty, and each has an output of its own."""
        own = self.fit_intercept and not self.layout[2].size and not self.loss.coupled
        return bool(own and self._free_count == self.vectors)

    @_once_per_map
    def _free(self) -> tuple[Array, Array]:
        return self._free_directions(), np.zeros((0, 0))

    @_once_per_map
    def _directions(self) -> Array:
        """Along which slopes are balanced by moves."""
        if self._split or not self._free_count:
            return np.zeros((self.size, 0))
        free: Array = self._free[0]
        return free

    def _balance(
        self, x: Any, zx: Array, y: Array | None = None, zeroed: Ints = _NONE, limits: Any = None
    ) -> tuple[Any, Array]:
        if not len(zeroed):
            return self._shrunk(x) if self._split else self._moved(x, -(x.directions.T @ zx), zx)
        if len(zeroed) > MOST_FREE:
            raise NoCertificate(f"{len(zeroed)} dual variables have the wrong sign; at most {MOST_FREE} can be mended")
        assert y is not None
        free = self._free[0]
        lifted = self._lifted(zeroed)
        self._ask_to_balance()
        # anew from the slopes at w: these directions were not known when they were looked at
        x = self._look_along(x, np.column_stack([free, lifted]), ())
        zx = self.gradient_sum(x)
        y, _ = self._repair(x, y, zx)
        return self._moved(x, np.concatenate([-(free.T @ zx), y[zeroed]]), zx)

    def _ask_to_balance(self) -> None:
        if not self.passes.may_balance:
            raise NoCertificate("the slopes are not balanced, which takes passes of its own")

    def promise(self, view: View, y: Array) -> float:
        """The gap that a certificate would prove if balancing the slopes, which takes passes, changed little."""
        free = self._free[0]
        x: Any = view.slopes
        zx = self.gradient_sum(x)
        if self._split:
            x, zx = self._shrunk(x)
        elif free.shape[1]:
            zx = zx - free @ np.linalg.lstsq(free, zx, rcond=None)[0]
        try:
            y, violations = self._repair(x, y, zx)
        except NoCertificate:
            return np.inf
        y[violations] = 0.0
        gauge = self.gauge(y / self.n)
        if not np.isfinite(gauge):
            return np.inf
        scale = 1.0 if gauge <= 1 else (1 - 1e-15) / gauge
        dual = -self.mean_conjugate(x, scale) - self.penalty_conjugate(scale * y / self.n)
        return view.loss + self.penalty_value(self.penalised(view.w)) - dual

    def _look_along(self, x: Slopes, directions: Array, moves: tuple[Array, ...]) -> Slopes:
        job = dataclasses.replace(x.job, split=False, directions=self._along_rows(directions), moves=moves)
        return self._slopes(x.w, job, directions, self.run(job)[0].sums)[0]

    def _moved(self, x: Slopes, goal: Array, zx: Array) -> tuple[Slopes, Array]:
        """The slopes moved along their directions until the sums there have changed by the goal."""
        for _ in range(PASSES):
            if not goal.size or (np.abs(goal) <= BALANCED * x.sizes).all():
                return x, zx
            self._ask_to_balance()
            if not np.isfinite(np.append(goal, x.gram)).all():
                break
            scale = 1.0 / np.sqrt(np.maximum(np.diag(x.gram), 1e-300))
            move = scale * np.linalg.lstsq(scale[:, None] * x.gram * scale, scale * goal, rcond=1e-14)[0]
            moved = self._look_along(x, x.directions, (*x.moves, move))
            new = self.gradient_sum(moved)
            left = goal - x.directions.T @ (new - zx)
            size = np.where(moved.sizes > 0, moved.sizes, 1.0)
            # a sum of so many terms is balanced where rounding is all that is left of it
            if (np.abs(left) <= 10 * BALANCED * moved.sizes).all():
                return moved, new
            if np.linalg.norm(left / size) > 0.9 * np.linalg.norm(goal / size):
                break
            goal, x, zx = left, moved, new
        raise NoCertificate("no dual feasible point close by: unpenalised directions still carry a gradient")

    def _shrunk(self, x: Slopes) -> tuple[Slopes, Array]:
        """Both signs of the slopes brought to one sum for every output, by shrinking the heavier."""
        up, down = (np.abs(part.reshape(self.vectors, -1)[:, -1]) for part in x.sums)
        both = np.minimum(up, down)
        factors = np.stack([both / np.where(up > 0, up, 1.0), both / np.where(down > 0, down, 1.0)])
        x = dataclasses.replace(x, factors=np.minimum(factors, 1.0))
        return x, self.gradient_sum(x)

    # -- neighbours -------------------------------------------------------------------------------------

    def with_pool(self, pool: RowPool) -> PooledProblem:
        """The same rows, read by somebody else."""
        other: Any = self._sibling(pool=pool, _looks={}, passes=Passes())
        out: PooledProblem = other
        return out

    def with_fold(self, fold: Fold) -> PooledProblem:
        """The same problem with the rows of a fold left out; takes a pass."""
        terms = dataclasses.replace(self.terms, fold=fold)
        total = float(self.run(Weighed(terms))[0].sums[0])
        if total <= 0:
            raise ValueError(f"no row is left where fold {fold.left_out} of {fold.count} is left out; take fewer folds")
        terms = dataclasses.replace(terms, unit=self.n / total)
        other: Any = self._sibling("_conjugate_at_zero", "_loss_at_zero", terms=terms, _looks={}, passes=Passes())
        out: PooledProblem = other
        return out

    def with_weights(self, sample_weight: npt.ArrayLike | None) -> NoReturn:
        raise ValueError(
            f"rows in {self.pool.home} have their own weights; name them where the rows are opened, or leave out a "
            "fold by with_fold"
        )

    def unpenalised_answer(self) -> tuple[Array, Array, Slopes]:
        """The best w that the penalty does not see, and its slopes; the scores are nobody's."""
        directions = self._free[0]
        w, c = np.zeros(self.size), np.zeros(directions.shape[1])
        if c.size and self.loss.kinked:
            w, slopes = best_with_kinks(self, directions)
            return w, np.zeros(0), slopes
        if c.size:
            value, slope, bend, terms = self._newton(directions, w)
            for _ in range(PASSES):
                if np.all(np.abs(slope) <= NOTHING * terms):
                    break
                move = -np.linalg.lstsq(bend, slope, rcond=1e-12)[0]
                share = 1.0
                while share > 1e-6:
                    found = self._newton(directions, directions @ (c + share * move))
                    if found[0] <= value + 1e-4 * share * float(slope @ move) + 1e-14 * abs(value):
                        break
                    share *= 0.25
                else:
                    break
                c = c + share * move
                value, slope, bend, terms = found
            w = directions @ c
        view = self.look(w)
        if not self.loss.attained and c.size and view.loss <= 1e-6 * self._loss_at_zero:
            raise NoCertificate("the columns without penalty separate the rows, so that there is no best answer")
        return w, np.zeros(0), self._balance(view.slopes, self.gradient_sum(view.slopes))[0]

    def _newton(self, directions: Array, w: Array) -> tuple[float, Array, Array, Array]:
        """The loss at w, its slope and curvature along directions, and the terms of the slope."""
        job = Newton(self.terms, self.seen_by_rows(w), self._along_rows(directions))
        sums, k = self.run(job)[0].sums, directions.shape[1]
        return float(sums[0]), sums[1 : k + 1], sums[2 * k + 1 :].reshape(k, k), sums[k + 1 : 2 * k + 1]

    @lazy
    def fingerprint(self) -> Fingerprint:
        facts, loss = self.pool.facts, self.loss
        labels = None if self.terms.labels is None else tuple(self.terms.labels.tolist())
        head = (type(loss).__name__, facts.n, facts.p, facts.dtype.name, facts.sparse, self.layout[0],
                self.fit_intercept, labels, self.terms.fold, self.columns.tobytes())  # fmt: skip
        arrays = (loss.params, facts.mean_squares, np.array([facts.weight_sum]), self.map.data, self.map.indices,
                  self.map.indptr)  # fmt: skip
        return Fingerprint(head, arrays, self.blocks)

    # -- what only rows in memory have --------------------------------------------------------------------

    def _no_rows(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise TypeError(
            f"these rows live in {self.pool.home} and are not held here; `look(w)` makes a pass over them and returns "
            "sums (a Problem of arrays has the rest)"
        )

    scores = combine = sweep = mean_loss = slopes_at = centred = foreseen = _domain = _no_rows
