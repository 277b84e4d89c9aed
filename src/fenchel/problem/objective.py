"""The objective and its dual: every term, written once, here.

    primal   P(w) = (1/n) sum_i s_i f(z_i'w + o_i; t_i) + psi(B'w)
    dual     D(x, y) = -(1/n) sum_i [(s_i f)*(x_i) - o_i x_i] - psi*(y/n)   where  Z x + B y = 0

`scores` are the products z_i'w, everywhere. Offsets o are added where a loss is asked about them (`seen`), and
nowhere else; the conjugate of f(. + o) is f*(x) - o x.

Weights s are scaled to mean 1, so the loss is always a weighted mean. `w` is one flat vector: for every
output (or task) its p features and then its intercept. See ``docs/mathematics.md``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import AnyArray, Array, Index, MatrixLike, sound
from ..data import RowData, Rows, as_offset, as_weights, check_numeric
from ..foundation.numerics import AT_ONCE
from ..losses import Loss, are_proportions, known_losses, why_unknown
from ..penalties import Penalty, why_no_penalty
from ..penalties.block_sum import _NONE, BlockSum, _vector


class Objective(BlockSum):
    """The objective and its dual in all their terms; see :class:`fenchel.Problem`."""

    data: RowData

    def __init__(
        self,
        X: MatrixLike,
        y: npt.ArrayLike | None = None,
        *,
        loss: Loss | str,
        penalty: Penalty | None = None,
        alpha: float = 1.0,
        sample_weight: npt.ArrayLike | None = None,
        fit_intercept: bool = False,
        task: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> None:
        loss = _as_loss(loss)
        penalty, alpha = _as_penalty(penalty), _as_alpha(alpha)
        if penalty is not None and hasattr(X, "columns"):
            penalty = penalty.for_columns([str(name) for name in X.columns])
        check_numeric(X, "fenchel.Problem(design.X, y, …)")
        self.data = Rows(X)
        self.n, p = self.data.n, self.data.p
        if y is None:
            raise ValueError("y is missing: the target of every row")
        target = y if type(y) is np.ndarray else _as_target(y)
        if target.ndim not in (1, 2):
            raise ValueError(f"y has shape {target.shape}; it must be (n,) or (n, outputs)")
        if len(target) != self.n:
            raise ValueError(f"y has {len(target)} entries, but X has {self.n} rows")
        proportional = loss.for_proportions()
        loss = proportional if proportional is not None and are_proportions(target) else loss
        target = loss.check_targets(target)
        single = target.ndim == 1 and task is None
        outputs = 1 if target.ndim == 1 else target.shape[1]
        if outputs == 0:
            raise ValueError("y has no columns")
        self.loss = loss.for_outputs(outputs)
        first = _NONE
        vectors = outputs
        if task is not None:
            if outputs > 1:
                raise ValueError("task and several outputs cannot be combined; repeat the rows, one task per output")
            first = _as_tasks(task, self.n) * (p + 1)
            vectors = int(first.max() // (p + 1)) + 1
        target, known = target.ravel(), as_offset(offset, self.n, outputs)
        if known.size and self.loss.of_residual:
            target, known = target - known, as_offset(None, self.n, outputs)
        self.target, self.offset = target, known
        self.weight = as_weights(sample_weight, self.n)
        self.fit_intercept = bool(fit_intercept)
        if self.loss.across_rows:
            _check_coupled(self.loss, self.fit_intercept, task)
        # (outputs, stride, first entries of w, slot): see kernels/rows.py
        self.layout = (outputs, p + 1, first, p)
        self._compile(penalty, alpha, p, vectors, single)

    @property
    def visits(self) -> int:
        return self.target.size

    @property
    def largest_target(self) -> float:
        """The largest size of a target."""
        return self.loss.target_size(self.target)

    def scores(self, w: Array) -> Array:
        """z_i'w for every visit."""
        w = _vector("w", w, self.size)
        if self._by_products:
            return self._products(w)
        from ..kernels import rows

        out = np.empty(self.visits)
        rows.scores(self.data.arrays, self.layout, w, out)
        return out

    @property
    def _by_products(self) -> bool:
        """Whether products with all of the data serve: columns are stored, so that single rows would have to be made
        from them; or the data are dense and small, where numpy takes as long as a kernel of ours, which would have to
        be compiled first."""
        data = self.data
        small = not data.sparse and data.dtype == np.float64 and self.n * self.p <= AT_ONCE
        return (data.by_column or small) and not self.layout[2].size

    def _products(self, w: Array) -> Array:
        """`scores` by products with all of the data."""
        out = np.empty((self.n, self.vectors))
        for k, part in enumerate(w.reshape(self.vectors, self.p + 1)):
            out[:, k] = self.data.times(part[:-1]) + part[-1]
        return out.ravel()

    def _sums(self, x: Array) -> Array:
        """`combine` by products with all of the data."""
        out = np.empty((self.vectors, self.p + 1))
        for k, part in enumerate(x.reshape(self.n, self.vectors).T):
            out[k, :-1], out[k, -1] = self.data.transposed_times(part), part.sum()
        return out.ravel()

    def combine(self, x: Array) -> Array:
        """Z x, with the sum of x in the intercept slots."""
        x = _vector("x", x, self.visits)
        if self._by_products:
            return self._sums(x)
        from ..kernels import rows

        out = np.zeros(self.size)
        rows.combine(self.data.arrays, self.layout, x, out)
        return out

    def gradient_sum(self, x: Array) -> Array:
        """Z x as the dual constraint has it: zero in the slot of an intercept that is switched off."""
        return self._mask(self.combine(x))

    def sweep(self, w: Array, x: Array) -> tuple[Array, Array]:
        """`scores` of w and `gradient_sum` of x, for one read of the data."""
        w, x = _vector("w", w, self.size), _vector("x", x, self.visits)
        if self._by_products:
            return self._products(w), self._mask(self._sums(x))
        from ..kernels import rows

        product, out = np.empty(self.visits), np.zeros(self.size)
        rows.sweep(self.data.arrays, self.layout, x, out, w, product)
        return product, self._mask(out)

    def _chunks(self) -> Iterator[slice]:
        """Slices of the visits, whole rows each, so that temporaries stay small."""
        step = max(1, AT_ONCE // self.layout[0]) * self.layout[0]
        return (slice(first, first + step) for first in range(0, self.visits, step))

    def _weights(self, part: slice = slice(None)) -> Any:
        """Row weights on a slice of the visits."""
        if not self.weight.size:
            return 1.0
        outputs = self.layout[0]
        if outputs == 1:
            return self.weight[part]
        first, last, _ = part.indices(self.visits)
        return np.repeat(self.weight[first // outputs : last // outputs], outputs)

    def seen(self, scores: Array, part: slice = slice(None)) -> Array:
        """What the loss sees of these scores of a slice of the visits: with their offsets."""
        return scores + self.offset[part] if self.offset.size else scores

    @property
    def small_form(self) -> tuple[str, float] | None:
        """The loss's name among those of the compiled loops; None where it has none, or rows have offsets, which
        these loops do not know."""
        return None if self.offset.size else self.loss.small_form()

    def mean_loss(self, scores: Array, exact: bool = False) -> float:
        """The weighted mean of the loss; `exact` sums with more digits, where the machine has them."""
        scores = self.seen(scores)
        if self.loss.across_rows:
            return self.loss.total(scores, self.target, self.weight) / self.n
        if exact:
            values = self._weights() * self.loss.value(scores, self.target).astype(np.longdouble)
            return float(np.sum(values, where=np.broadcast_to(self._weights() > 0, values.shape)) / self.n)
        if scores.size <= AT_ONCE and not self.weight.size:
            return float(np.sum(self.loss.value(scores, self.target))) / self.n
        total = 0.0
        for part in self._chunks():
            weight = self._weights(part)
            values = self.loss.value(scores[part], self.target[part])
            if self.weight.size:  # what is infinite for a row that does not count does not count
                values = np.multiply(weight, values, out=np.zeros_like(values), where=weight > 0)
            total += float(np.sum(values))
        return total / self.n

    def primal(self, coef: Array, intercept: Array | float = 0.0) -> float:
        """The objective at these coefficients."""
        return self.primal_at(self.pack(coef, intercept))

    def primal_at(self, w: Array, scores: Array | None = None) -> float:
        """The objective at w, whose scores may be known."""
        scores = self.scores(w) if scores is None else scores
        return self.mean_loss(scores) + self.penalty_value(self.penalised(w))

    def mean_conjugate(self, x: Array, scale: float = 1.0, exact: bool = False) -> float:
        """(1/n) sum of (s_i f)*(scale x_i); infinite outside the domain. `exact` sums with more digits."""
        shift = -scale * float(self.offset @ x) if self.offset.size else 0.0
        total = np.longdouble(shift) if exact else shift
        if self.loss.across_rows:
            return (shift + self.loss.total_conjugate(scale * x, self.target, self.weight)) / self.n
        for part in self._chunks():
            weight, dual, target = self._weights(part), scale * x[part], self.target[part]
            if self.weight.size:
                some = weight > 0
                if np.any(dual[~some] != 0):
                    return np.inf
                weight, dual, target = weight[some], dual[some], target[some]
                values = weight * self.loss.conjugate(dual / weight, target)
            else:
                values = self.loss.conjugate(dual, target)
            total += np.sum(values, dtype=type(total))
        return float(total / self.n)

    def dual(self, x: Array, y: Array) -> float:
        """The dual objective; a bound on the optimum only where Z x + B y = 0."""
        return -self.mean_conjugate(x) - self.penalty_conjugate(y / self.n)

    def residual(self, x: Array, y: Array) -> Array:
        """Z x + B y; entries of a switched-off intercept are zero."""
        return self.gradient_sum(x) + self.spread(y)

    def _mask(self, vector: Array) -> Array:
        if not self.fit_intercept:
            vector[self.intercept_slots] = 0.0
        return vector

    def _domain(self) -> tuple[Array, Array]:
        """Ends of the domain of (s f)* for every visit."""
        low, high = self.loss.domain(self.target)
        if self.weight.size:
            weight = self._weights()
            with np.errstate(invalid="ignore"):
                low, high = np.where(weight > 0, weight * low, 0.0), np.where(weight > 0, weight * high, 0.0)
        return low, high

    def inside(self, x: Array) -> Array:
        """A point of the domain of the losses' conjugates near x."""
        if not self.weight.size:
            return self.loss.inside(x, self.target)
        weight, out = self._weights(), np.zeros_like(x)
        some = weight > 0
        out[some] = weight[some] * self.loss.inside(x[some] / weight[some], self.target[some])
        return out

    def slopes_at(self, scores: Array) -> Array:
        """s_i f'(u_i): the dual variables that belong to these scores."""
        if self.loss.across_rows:
            return self.loss.sums(self.seen(scores), self.target, self.weight)[1]
        slope = self.loss.gradient(self.seen(scores), self.target)
        return np.asarray(self._weights() * slope, dtype=float)


def _as_loss(loss: Loss | str) -> Loss:
    if isinstance(loss, str):
        if loss not in known_losses():
            raise ValueError(f"loss is {loss!r}; {why_unknown(loss)}")
        out: Loss = known_losses()[loss]()
        return out
    if not isinstance(loss, Loss):
        raise ValueError(f"loss is {loss!r}; it must be a fenchel loss or one of {', '.join(known_losses())}")
    return loss


def _check_coupled(loss: Loss, fit_intercept: bool, task: npt.ArrayLike | None) -> None:
    """A loss of all scores at once has no levels of its own, and one vector of coefficients."""
    name = type(loss).__name__
    if fit_intercept:
        raise ValueError(f"fit_intercept is True, but {name} does not see an intercept; leave it out")
    if task is not None:
        raise ValueError(f"task is given, but {name} takes one vector of coefficients; leave it out")


def _as_target(y: Any) -> AnyArray:
    """Targets of any kind as an array."""
    if isinstance(y, np.ma.MaskedArray):
        raise ValueError("y is a masked array; drop the rows whose target is masked")
    out: AnyArray = (
        y.to_numpy() if hasattr(y, "to_numpy") else sound("y", y).toarray() if sp.issparse(y) else np.asarray(y)
    )
    return out


def _as_penalty(penalty: Any) -> Penalty | None:
    if penalty is not None and not isinstance(penalty, Penalty):
        raise ValueError(f"penalty is {penalty!r}; {why_no_penalty(penalty)}")
    return penalty


def _as_alpha(alpha: float) -> float:
    if isinstance(alpha, (str, bytes, bool, np.bool_)) or np.ndim(alpha) > 0 or alpha is None:
        raise ValueError(f"alpha is {alpha!r}; it must be a number")
    alpha = float(alpha)
    if not 0 <= alpha < np.inf:
        raise ValueError(f"alpha is {alpha:g}; it must be finite and not negative")
    return alpha


def _as_tasks(task: npt.ArrayLike, n: int) -> Index:
    task = np.asarray(task)
    if task.ndim != 1 or not np.issubdtype(task.dtype, np.integer):
        raise ValueError(f"task has dtype {task.dtype} and shape {task.shape}; it must be a vector of whole numbers")
    if len(task) != n:
        raise ValueError(f"task has {len(task)} entries, but X has {n} rows")
    if task.min() < 0:
        place = int(np.flatnonzero(task < 0)[0])
        raise ValueError(f"task[{place}] is {task[place]}; tasks are numbered from 0")
    if task.max() >= n:
        place = int(np.flatnonzero(task >= n)[0])
        raise ValueError(f"task[{place}] is {task[place]}; number the tasks from 0 without gaps")
    return task.astype(np.int64)
