"""Fits and paths in compiled loops, where Python around small products is what would take the time.

The loops of ``kernels/small_path.py``, ``group_path.py``, ``sparse_path.py`` and ``tiny_fit.py`` prove every answer by
themselves. They work on the rows of dense data, on sparse columns, or, along paths of the squared loss, on the Gram
matrix of all features: once that is made nobody reads the data again. The working sets of ``rounds.py`` go on from the
first alpha that they leave.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..foundation.numerics import COPY, LONGEST
from ..problem import Certificate
from .choices import CALLS, LOOKS
from .covariances import Covariances, covariances, whole_pays
from .roles import Goal, Iterate, Proposal
from .unit_rounding import UnitRounding
from .units import Units, Vector, dual_variables, shared_units, units_of

if TYPE_CHECKING:
    from ..problem import Problem

NAME = "compiled path"
ROOM = 0.9  # of the tolerance, that the loops are asked for: the rest allows for rounding
ENTRIES = 1 << 25  # numbers of dense data; with more, Python between products takes no time that anybody notices
COPIED = COPY // 8  # numbers of dense data that is copied: a fold's rows, single precision
PAIRS = 1 << 34  # multiply-adds of the largest Gram matrix, about half a second that nobody can interrupt
CHUNK = 8  # alphas that are solved in one call, at first
SHORT = 0.05  # seconds of a call after which the next one may have twice as many; larger: limits are noticed later
FILLED = 1 << 20  # numbers of sparse data, zeros included, up to which it is filled in; larger: 8 MiB and more of zeros
# Share of sparse data that is not zero, from which a path fills in up to COPIED numbers: filled Gram matrices and
# products keep up with sparse ones there (nine random paths: 1.6 to 3.5 times as fast above it, .06 to .2 below .01).
FULL = 0.05
FILLED_ONCE = 1 << 18  # the same for a single fit, which has fewer calls of Python to save
TINY = 1 << 12  # numbers up to which a single fit takes all features at once, by loops that compile in half the time
NARROW = 64  # features up to which it does; larger: Gram matrices of features that nobody needs
ALWAYS = 100  # features that nothing holds at zero, beyond which the plain loops that balance x for them are slow
FLAT = ("huber", "smoothed-hinge", "squared-hinge")  # losses with parts that are straight
# Rows up to which sparse columns take these losses where features are more than rows: supports grow as large as that,
# and models on them are ill-conditioned (on five random problems below .2 to .7 times as long as rounds in Python, on
# three above 1.3 times, for models that were left halfway).
FEW_ROWS = 400
STORED = 1 << 22  # entries of sparse data up to which the loops take its columns; more make products that take longest
ROUNDS = 30  # in Python, that a fit takes: what columns that are made for it, or a model on them, may cost more


class CompiledPath:
    """The answers of all alphas, as far as the compiled loops get.

    They are found some at a time, so that limits, progress and Ctrl-C are heard between them.

    Attributes
    ----------
    answers : what was found, by alpha
    """

    def __init__(self, problem: Problem, alphas: Sequence[float], tol: float, prices: Any) -> None:
        alpha, units = shared_units(problem)
        assert isinstance(units, Units)
        self._plan(alphas, alpha)
        if _is_tiny(problem, alphas, units):
            self._all_at_once(problem, units, tol)
            return
        known = covariances(problem) if on_covariances(problem, alphas, prices) else None
        if known is not None:
            self._on_covariances(problem, known, units, tol)
        elif on_columns(problem, units, alphas, prices):
            self._on_columns(problem, units, tol, prices)
        elif on_group_columns(problem, units, alphas, prices):
            columns = problem.data.columns, problem.data.pairs, _sparse_prices(prices)
            self._on_rows(problem, units, tol, False, columns)
        elif _may_be_filled(problem, alphas):
            self._on_rows(problem, units, tol, _rows_pay(problem, len(self.alphas), prices))

    def _plan(self, alphas: Sequence[float], base: float = 1.0) -> None:
        """Nothing is found, and nobody knows how. The units are those of the alpha `base`."""
        self.alphas = [float(alpha) for alpha in alphas]
        self.base, self.multiples = base, np.array(self.alphas) / base
        self.answers: dict[float, _Found] = {}
        self._done, self._chunk = 0, CHUNK
        self._advance: Callable[[int, int], int] | None = None
        self._collect: Callable[[int], _Found] | None = None

    def has(self, alpha: float) -> bool:
        """Whether there is an answer for this alpha, once the loops have come so far."""
        while alpha not in self.answers and self._advance is not None and self._collect is not None:
            began, end = time.perf_counter(), min(self._done + self._chunk, len(self.alphas))
            now = self._advance(self._done, end)
            found = [self._collect(k) for k in range(self._done, now)]
            for one, multiple in zip(found, self.multiples[self._done : now].tolist(), strict=True):
                self._allow_for_rounding(one, multiple)
            self.answers.update(zip(self.alphas[self._done : now], found, strict=True))
            if now < end or now == len(self.alphas):
                self._advance = self._collect = None  # with all the memory that they hold
            elif time.perf_counter() - began < SHORT:
                self._chunk *= 2
            self._done = now
        return alpha in self.answers

    def _allow_for_rounding(self, found: _Found, multiple: float) -> None:
        """Lower the bound of this answer by what rounding may have done to it and to the objective."""
        if found.proven is not None and self.rounding is not None:
            made = found.proven
            made.rounding = self.rounding.of(found.w, made.primal, made.dual, multiple)
            made.dual -= made.rounding

    rounding: UnitRounding | None

    def _all_at_once(self, problem: Problem, units: Units, tol: float) -> None:
        self.rounding = UnitRounding(problem, units)
        from ..kernels.small_losses import KINDS
        from ..kernels.tiny_fit import fit

        form = problem.small_form
        assert form is not None
        weight = problem.weight if problem.weight.size else np.ones(problem.n)
        found = fit(
            problem.data.filled().T.astype(float, "C", copy=False), problem.target, weight, KINDS[form[0]], form[1],
            problem.alpha / self.base, units.l1, units.ridge, units.lower, units.upper, problem.fit_intercept,
            ROOM * tol,
        )  # fmt: skip
        if found is not None:
            w, primal, dual, x, models = found
            self.answers[problem.alpha] = one = _Found(w, x, models, Certificate(primal, dual, 0.0))
            self._allow_for_rounding(one, problem.alpha / self.base)

    def _on_covariances(self, problem: Problem, known: Covariances, units: Units, tol: float) -> None:
        self.rounding = None  # they know of theirs
        out = _Answers.room(len(self.alphas), problem.p, 0)
        longest = units.gauge_bound(known.sizes)
        self._advance = (_follower if units.alone else _group_follower)(
            known.gram, known.with_target, np.zeros(0), "covariances", known.variance, self.multiples, units,
            ROOM * tol, False, out, np.zeros(0),
        )  # fmt: skip

        def collect(k: int) -> _Found:
            w, value, passes = out.W[k], float(out.primal[k]), 1.0 if k == 0 else 0.0  # the Gram matrix is a pass
            coef = w[:-1]
            of_bound, of_loss, blurred = known.rounding(coef, longest / self.multiples[k], value)
            lower, w[-1] = float(out.dual[k]) - of_bound, known.mean - known.centre @ coef
            if blurred:  # targets that are nearly explained
                value, passes = problem.with_alpha(self.alphas[k]).primal_at(w), passes + 0.5
            else:
                lower -= of_loss  # the objective is wrong by as much
            return _Found(w, None, passes, Certificate(value, lower, 0.0))

        self._collect = collect

    def _on_rows(self, problem: Problem, units: Units, tol: float, some: bool, columns: Any = None) -> None:
        """On all rows, or on `some`: those of a fold alone; or, for groups, on sparse `columns`."""
        self.rounding = UnitRounding(problem, units)
        form = problem.small_form
        assert form is not None
        X: Any = None if columns else problem.data.filled()
        target, weight = problem.target, problem.weight
        rows = np.flatnonzero(weight > 0) if some else np.arange(0)
        if some:
            X, target, weight = X[rows], target[rows], weight[rows]
        X = X if columns else X.astype(float, copy=False)
        n, count = target.size, len(self.alphas)
        scale = problem.n / n  # weights have mean 1 over the rows that are left
        weight = weight / scale if weight.size else np.ones(n)
        careful = units.alone and not units.held  # nothing scales the slopes of such features
        # a path keeps no dual variables: whoever asks for them can make them from w
        out = _Answers.room(count, problem.p, n if careful or count == 1 else 0)
        length = np.sqrt(scale * problem.data.mean_squares)  # of the columns; those of fewer rows are no longer
        wanted = ROOM * tol
        given = X, target, weight, form[0], form[1], self.multiples, units, wanted, problem.fit_intercept, out, length
        filled = problem.data.sparse and columns is None
        self._advance = _follower(*given) if units.alone else _group_follower(*given, filled, columns)

        def collect(k: int) -> _Found:
            x = out.x[k] if out.x.size else None
            if some and x is not None:
                x = np.zeros(problem.n)
                x[rows] = scale * out.x[k]
            proven = None if careful else Certificate(float(out.primal[k]), float(out.dual[k]), 0.0)
            known = out.sums.size > 0 and not careful and math.isfinite(out.sums[k, 0])
            sums = scale * out.sums[k] if known else None
            out.W[k, -1] = out.b[k]
            return _Found(out.W[k], x, 0.5 * float(out.passes[k]), proven, sums)

        self._collect = collect

    def _on_columns(self, problem: Problem, units: Units, tol: float, prices: Any) -> None:
        self.rounding = UnitRounding(problem, units)
        from ..kernels.small_losses import KINDS
        from ..kernels.sparse_path import follower

        form = problem.small_form
        assert form is not None
        count = len(self.alphas)
        out = _Answers.room(count, problem.p, problem.n if count == 1 else 0)
        self._advance = follower(
            problem.data.columns, problem.data.pairs, problem.target,
            problem.weight if problem.weight.size else np.ones(problem.n), KINDS[form[0]], form[1],
            self.multiples, units.l1, units.ridge, units.lower, units.upper, ROOM * tol, problem.fit_intercept,
            _sparse_prices(prices), LONGEST, out,
        )  # fmt: skip

        def collect(k: int) -> _Found:
            known = out.sums.size > 0 and math.isfinite(out.sums[k, 0])
            out.W[k, -1] = out.b[k]
            return _Found(
                out.W[k], out.x[k] if out.x.size else None, 0.5 * float(out.passes[k]),
                Certificate(float(out.primal[k]), float(out.dual[k]), 0.0), out.sums[k] if known else None,
            )  # fmt: skip

        self._collect = collect

    def proposal(self, problem: Problem, goal: Goal) -> Proposal:
        """What was found for the problem's alpha, with its bounds; certified on all of its data where these alone are
        too few, or features without a penalty ask for more care."""
        self.has(problem.alpha)
        found = self.answers[problem.alpha]
        made = found.proven
        if made is not None and not goal.reached(made):
            made = self._allowed_by_slopes(problem, found, made)
        if made is not None and goal.reached(made):
            return Proposal(
                lambda: found.iterate(problem), made.primal, found.passes, NAME, made, exact=True, w=found.w
            )
        found.sums = None  # some of them may be of an earlier look
        iterate = found.iterate(problem)
        primal = problem.primal_at(found.w)
        made = problem.certificate(iterate, fresh=False, primal=primal, enough=primal - goal.allowed(primal))
        return Proposal(iterate, primal, found.passes + 1.0, NAME, made, exact=True)

    def _allowed_by_slopes(self, problem: Problem, found: _Found, made: Certificate) -> Certificate:
        """The bounds with an allowance for rounding that knows the slopes of the loss, which take half a pass."""
        if self.rounding is None or not made.rounding:
            return made
        x, dual = problem.slopes_at(problem.scores(found.w)), made.dual + made.rounding
        found.passes += 0.5
        less = self.rounding.of(found.w, made.primal, dual, problem.alpha / self.base, x)
        return Certificate(made.primal, dual - less, 0.0, rounding=less)


@dataclasses.dataclass
class _Found:
    """The answer for one alpha: w with its intercept, x if it is known, passes over the data, proven bounds, and X'x if
    that is known too, or nearly so where slopes are far from mattering."""

    w: Vector
    x: Vector | None
    passes: float
    proven: Certificate | None
    sums: Vector | None = None

    def iterate(self, problem: Problem) -> Iterate:
        """The answer with all of its dual variables, which take a pass over the data."""
        units = units_of(problem)
        assert isinstance(units, Units)
        x = problem.centred(problem.slopes_at(problem.scores(self.w))) if self.x is None else self.x
        sums = problem.data.transposed_times(x) if self.sums is None else self.sums
        zx = np.append(sums, x.sum() if problem.fit_intercept else 0.0)
        return Iterate(self.w, x, dual_variables(problem, units, zx), zx, problem.penalised(self.w))


class _Answers(NamedTuple):
    """What compiled loops fill in for every alpha: coefficients (with room for the intercept behind them), intercepts,
    both bounds, x, passes, and X'x where x is the only one."""

    W: Vector
    b: Vector
    primal: Vector
    dual: Vector
    x: Vector
    passes: Vector
    sums: Vector

    @classmethod
    def room(cls, count: int, p: int, n: int) -> _Answers:
        sums = np.zeros((count, p if count == 1 and n else 0))
        b, primal, dual, passes = np.zeros((4, count))
        return cls(np.zeros((count, p + 1)), b, primal, dual, np.zeros((count, n)), passes, sums)


def _follower(
    X: Any, target: Vector, weight: Vector, kind: str, parameter: float, alphas: Vector, units: Units, tol: float,
    intercept: bool, out: _Answers, length: Vector,
) -> Callable[[int, int], int]:  # fmt: skip
    """What solves for the alphas from one to another, and fills in `out`."""
    from ..kernels.small_losses import KINDS
    from ..kernels.small_path import follower

    return follower(
        X, target, weight, KINDS[kind], np.array([parameter]), alphas, units.l1, units.ridge, units.lower,
        units.upper, tol, intercept, *out, length,
    )  # fmt: skip


def _group_follower(
    X: Any, target: Vector, weight: Vector, kind: str, parameter: float, alphas: Vector, units: Units, tol: float,
    intercept: bool, out: _Answers, length: Vector, filled: bool = False, columns: Any = None,
) -> Callable[[int, int], int]:  # fmt: skip
    """As `_follower`, for units of several coefficients."""
    from ..kernels.group_path import follower
    from ..kernels.small_losses import KINDS

    return follower(
        X, target, weight, KINDS[kind], parameter, alphas, units.members, units.start, units.l1, units.norm,
        tol, intercept, *out, filled, columns,
    )  # fmt: skip


def _sparse_prices(prices: Any) -> Vector:
    """As kernels/sparse_layout.py has them."""
    made, rounds = (prices.csr_gram, prices.descent, prices.potrf), ROUNDS * CALLS * prices.call
    return np.array([prices.csc_pass, prices.copy, *made, prices.loss, rounds])


def is_compiled(problem: Problem, alphas: Sequence[float], prices: Any) -> bool:
    """Whether the compiled loops suit a problem: one output, and either covariances that are worth making, dense data,
    sparse columns, or sparse data of so few numbers that its zeros do no harm."""
    units, form = units_of(problem), problem.small_form
    if problem.vectors > 1 or form is None or isinstance(units, str):
        return False
    if not units.alone and not units.plain_groups:
        return False
    if min(alphas) <= 0 or units.unheld_count > ALWAYS:
        return False
    if on_columns(problem, units, alphas, prices) or on_group_columns(problem, units, alphas, prices):
        return True
    return _may_be_filled(problem, alphas) or on_covariances(problem, alphas, prices)


def on_columns(problem: Problem, units: Units, alphas: Sequence[float], prices: Any) -> bool:
    """Whether the loops over sparse columns suit a problem; where features are more than rows, and neither many nor
    sparse, their Gram matrices are made faster with the zeros filled in."""
    data, n, p = problem.data, problem.n, problem.p
    if not data.sparse or not units.alone or data.stored > STORED:
        return False
    if not np.all((units.l1 > 0) | (units.lower == units.upper)):  # features enter by their thresholds
        return False
    if _turning_is_dear(data, alphas, prices):
        return False
    form = problem.small_form
    if p > n and form is not None and form[0] in FLAT:
        return bool(n <= FEW_ROWS)
    return not (p > n and data.stored > FULL * n * p and _may_be_filled(problem, alphas))


def on_group_columns(problem: Problem, units: Units, alphas: Sequence[float], prices: Any) -> bool:
    """Whether the loops for groups suit sparse columns. Where features are more than rows, models of large supports are
    ill-conditioned: along paths, whose starts are good, those of the squared and logistic loss are still done sooner
    than rounds in Python, single fits are not always. Those of few numbers are filled in."""
    data, n, p, form = problem.data, problem.n, problem.p, problem.small_form
    if not data.sparse or units.alone or form is None or data.stored > STORED or _turning_is_dear(data, alphas, prices):
        return False
    return n >= p or bool(n * p > FILLED and len(alphas) > 1 and form[0] in ("squared", "logistic"))


def _turning_is_dear(data: Any, alphas: Sequence[float], prices: Any) -> bool:
    """Whether columns cost more, where rows are stored, than rounds in Python."""
    turned = 2 * prices.copy * data.stored  # numbers and their places, into columns
    return bool(not data.by_column and turned > ROUNDS * CALLS * prices.call * len(alphas))


def _may_be_filled(problem: Problem, alphas: Sequence[float]) -> bool:
    """Whether all rows, zeros included, are few enough numbers: for a copy, where they are not taken as they are, and
    for loops that nobody can interrupt."""
    data, n, p = problem.data, problem.n, problem.p
    if data.sparse:
        most = FILLED_ONCE if len(alphas) == 1 else COPIED if data.stored > FULL * n * p else FILLED
        return bool(n * p <= most)
    return bool(n * p <= (COPIED if data.dtype != np.float64 else ENTRIES) and n * p * min(n, p) <= PAIRS)


def _rows_pay(problem: Problem, alphas: int, prices: Any) -> bool:
    """Whether to copy the rows of a fold costs less than to read the others, whose weight is zero, at every look."""
    if not problem.weight.size or problem.n * problem.p > COPIED:
        return False
    kept = np.count_nonzero(problem.weight)
    return bool(kept < problem.n and kept * prices.cast <= (problem.n - kept) * (alphas + LOOKS) * prices.gemv)


def _is_tiny(problem: Problem, alphas: Sequence[float], units: Units) -> bool:
    small = units.alone and len(alphas) == 1 and problem.p <= NARROW and problem.n * problem.p <= TINY
    return small and units.held


def on_covariances(problem: Problem, alphas: Sequence[float], prices: Any) -> bool:
    """Whether the Gram matrix of all features costs less than looking at all of the data for every alpha."""
    (alpha, units), form = shared_units(problem), problem.small_form
    if form is None or form[0] != "squared" or isinstance(units, str) or not alpha > 0:
        return False
    if not (units.held if units.alone else units.plain_groups):
        return False
    if len(alphas) == 1 and (units.alone or problem.n < problem.p):
        return False  # a single answer needs the products of few features alone
    last = units.times(min(alphas) / alpha)
    filled = _may_be_filled(problem, alphas)
    known: bool = problem.remembered(
        f"whether covariances pay for {len(alphas)} alphas to {min(alphas)}",
        lambda: whole_pays(problem, last, len(alphas), filled, prices),
    )
    return known
