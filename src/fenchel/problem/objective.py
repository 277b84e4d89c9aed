"""The objective and its dual: every term, written once, here.

    primal   P(w) = (1/n) sum_i s_i f(z_i'w; t_i) + psi(B'w)
    dual     D(x, y) = -(1/n) sum_i (s_i f)*(x_i) - psi*(y/n)   where  Z x + B y = 0

Weights s are scaled to mean 1, so the loss is always a weighted mean. `w` is one flat vector: for every
output (or task) its p features and then its intercept. See ``docs/mathematics.md``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..data import Rows, as_weights
from ..losses import LOSSES, Loss
from ..maps import Gram, is_shared_identity
from ..penalties import Block, Penalty, Separable, scale_blocks, unit_blocks

_CHUNK = 1 << 16  # visits looked at together
_NONE = np.zeros(0, dtype=np.int64)


def _once_per_map(method):
    """A property that is found once for all problems on the same data and map, whatever their alpha."""

    name = method.__name__

    def get(self):
        known = self._of_map
        if name not in known:
            known[name] = method(self)
        return known[name]

    get.__doc__ = method.__doc__
    return property(get)


class Objective:
    """The objective and its dual in all their terms; see :class:`fenchel.Problem`."""

    def __init__(self, X, y, *, loss, penalty: Penalty | None = None, alpha: float = 1.0, sample_weight=None,
                 fit_intercept: bool = False, task=None):  # fmt: skip
        self.loss = _as_loss(loss)
        if penalty is not None and not isinstance(penalty, Penalty):
            raise ValueError(f"penalty is {penalty!r}; it must be a fenchel penalty, e.g. fenchel.L1()")
        self.penalty = penalty
        self.alpha = _as_alpha(alpha)
        self.data = Rows(X)
        self.n, self.p = self.data.n, self.data.p
        target = y.to_numpy() if hasattr(y, "to_numpy") else y.toarray() if sp.issparse(y) else np.asarray(y)
        if isinstance(y, np.ma.MaskedArray):
            raise ValueError("y is a masked array; drop the rows whose target is masked")
        if target.ndim not in (1, 2):
            raise ValueError(f"y has shape {target.shape}; it must be (n,) or (n, outputs)")
        if len(target) != self.n:
            raise ValueError(f"y has {len(target)} entries, but X has {self.n} rows")
        target = self.loss.check_targets(target)
        self.single = target.ndim == 1 and task is None
        outputs = 1 if target.ndim == 1 else target.shape[1]
        if outputs == 0:
            raise ValueError("y has no columns")
        offset = np.zeros(0, dtype=np.int64)
        self.vectors = outputs
        if task is not None:
            if outputs > 1:
                raise ValueError("task and several outputs cannot be combined; repeat the rows, one task per output")
            offset = _as_tasks(task, self.n) * (self.p + 1)
            self.vectors = int(offset.max() // (self.p + 1)) + 1
        self.target = target.ravel()
        self.weight = as_weights(sample_weight, self.n)
        self.fit_intercept = bool(fit_intercept)
        # (outputs, stride, offset, slot): see kernels/rows.py
        self.layout = (outputs, self.p + 1, offset, self.p)
        self.size = self.vectors * (self.p + 1)
        self._unit_blocks = unit_blocks(penalty, self.vectors * self.p)
        self._set_blocks(scale_blocks(self._unit_blocks, self.alpha))

    def _set_blocks(self, blocks: list[Block]):
        self.blocks, features = blocks, self.vectors * self.p
        self._of_map: dict[str, object] = {}  # what follows from data and map alone; see `_once_per_map`
        self.map = _stacked([b.matrix for b in self.blocks], features)  # B' on the features alone
        ends = [0, *itertools.accumulate(b.d for b in self.blocks)]
        self.bounds, self._spans = np.array(ends, dtype=np.int64), list(itertools.pairwise(ends))

    @functools.cached_property
    def feature_slots(self) -> np.ndarray:
        """The places of the coefficients in w."""
        return np.arange(self.size).reshape(self.vectors, self.p + 1)[:, :-1].flatten()

    @functools.cached_property
    def intercept_slots(self) -> np.ndarray:
        """The places of the intercepts in w."""
        return np.arange(self.p, self.size, self.p + 1)

    @_once_per_map
    def map_slots(self) -> sp.csr_array:
        """B' on w with its intercept slots."""
        return sp.csr_array(
            (self.map.data.copy(), self.feature_slots[self.map.indices], self.map.indptr.copy()),
            shape=(self.map.shape[0], self.size),
        )

    @_once_per_map
    def adjoint(self) -> sp.csr_array:
        """B, with its intercept slots."""
        return self.map_slots.T.tocsr()

    @_once_per_map
    def entry_slots(self):
        """The slot of w that every entry of B' meets."""
        return self.feature_slots[self.map.indices]

    def penalised(self, w) -> np.ndarray:
        """B'w, what the penalty looks at."""
        w = _vector("w", w, self.size)
        if self._is_w:
            return w[: self.p].copy()
        # a matrix is made only where it does more than to pick numbers
        return self.map.data * w[self.entry_slots] if self._picks else self.map_slots @ w

    def spread(self, y) -> np.ndarray:
        """B y, on all slots of w."""
        y = _vector("y", y, self.d)
        return np.bincount(self.entry_slots, self.map.data * y, self.size) if self._picks else self.adjoint @ y

    @functools.cached_property
    def blocks(self) -> list[Block]:
        """The penalty, compiled: see ``penalties/compile.py``."""
        return scale_blocks(self._unit_blocks, self.alpha)

    def shared(self, what: str, make: Callable[[], Any]) -> Any:
        """What somebody derives from the data and the map alone, made once for all problems that share them."""
        if what not in self._of_map:
            self._of_map[what] = make()
        return self._of_map[what]

    def remembered(self, what: str, make: Callable[[], Any]) -> Any:
        """What somebody derives from this very problem, made once."""
        store = self.__dict__.setdefault("_remembered", {})
        if what not in store:
            store[what] = make()
        return store[what]

    @property
    def d(self) -> int:
        return self.map.shape[0]

    @property
    def visits(self) -> int:
        return self.target.size

    def pack(self, coef, intercept=0.0) -> np.ndarray:
        """One flat w from coefficients (p,) or (vectors, p) and intercepts."""
        w = np.zeros(self.size)
        coef = np.asarray(coef, dtype=float)
        if coef.size != self.vectors * self.p:
            raise ValueError(f"coef has shape {coef.shape}; expected {self.vectors} vector(s) of {self.p}")
        w[self.feature_slots] = coef.ravel()
        w[self.intercept_slots] = np.asarray(intercept, dtype=float)
        return w

    def unpack(self, w: np.ndarray) -> tuple[np.ndarray, float | np.ndarray]:
        """Coefficients and intercept, as (p,) and a number for one output."""
        if self.single:
            return w[: self.p].copy(), float(w[self.p])
        return w[self.feature_slots].reshape(self.vectors, self.p), w[self.intercept_slots]

    def scores(self, w) -> np.ndarray:
        """z_i'w for every visit."""
        w = _vector("w", w, self.size)
        if self._by_products:
            return self._products(w)
        from ..kernels import rows

        out = np.empty(self.visits)
        rows.scores(self.data.arrays, self.layout, w, out)
        return out

    @property
    def _by_products(self):
        """Whether the columns of the data are stored, so that single rows would have to be made from them."""
        return self.data.by_column and not self.layout[2].size

    def _products(self, w):
        """`scores` by products with all of the data."""
        out = np.empty((self.n, self.vectors))
        for k, part in enumerate(w.reshape(self.vectors, self.p + 1)):
            out[:, k] = self.data.times(part[:-1]) + part[-1]
        return out.ravel()

    def _sums(self, x):
        """`combine` by products with all of the data."""
        out = np.empty((self.vectors, self.p + 1))
        for k, part in enumerate(x.reshape(self.n, self.vectors).T):
            out[k, :-1], out[k, -1] = self.data.transposed_times(part), part.sum()
        return out.ravel()

    def combine(self, x) -> np.ndarray:
        """Z x, with the sum of x in the intercept slots."""
        x = _vector("x", x, self.visits)
        if self._by_products:
            return self._sums(x)
        from ..kernels import rows

        out = np.zeros(self.size)
        rows.combine(self.data.arrays, self.layout, x, out)
        return out

    def gradient_sum(self, x) -> np.ndarray:
        """Z x as the dual constraint has it: zero in the slot of an intercept that is switched off."""
        return self._mask(self.combine(x))

    def sweep(self, w, x) -> tuple[np.ndarray, np.ndarray]:
        """`scores` of w and `gradient_sum` of x, for one read of the data."""
        w, x = _vector("w", w, self.size), _vector("x", x, self.visits)
        if self._by_products:
            return self._products(w), self._mask(self._sums(x))
        from ..kernels import rows

        product, out = np.empty(self.visits), np.zeros(self.size)
        rows.sweep(self.data.arrays, self.layout, x, out, w, product)
        return product, self._mask(out)

    def _chunks(self):
        """Slices of the visits, whole rows each, so that temporaries stay small."""
        step = max(1, _CHUNK // self.layout[0]) * self.layout[0]
        return (slice(first, first + step) for first in range(0, self.visits, step))

    def _weights(self, part=slice(None)):
        """Row weights on a slice of the visits."""
        if not self.weight.size:
            return 1.0
        outputs = self.layout[0]
        if outputs == 1:
            return self.weight[part]
        first, last, _ = part.indices(self.visits)
        return np.repeat(self.weight[first // outputs : last // outputs], outputs)

    def mean_loss(self, scores) -> float:
        total = 0.0
        for part in self._chunks():
            weight = self._weights(part)
            values = self.loss.value(scores[part], self.target[part])
            if self.weight.size:
                values = np.where(weight > 0, weight * values, 0.0)
            total += float(np.sum(values))
        return total / self.n

    def penalty_value(self, u) -> float:
        """alpha psi at u = B'w."""
        return float(sum(b.value(u[first:last]) for b, first, last in self._parts()))

    @_once_per_map
    def units(self):
        """The unit that every coordinate of B'w belongs to, counted through all blocks, and how many there are."""
        labels, count = [], 0
        for block in self.blocks:
            own = _numbered(np.asarray(block.function.units(block.d), dtype=np.int64))
            labels.append(count + own)
            count += int(own.max(initial=-1)) + 1
        return np.concatenate(labels or [_NONE]), count

    def feature_units(self) -> np.ndarray:
        """The units in which the penalty measures every feature, relative to the others: in other units the numbers
        v = units * w, and the columns divided by them, would be the same.

        The largest entry of B' (times the weight of an l1 norm) that a feature meets; 1 where it meets none.
        """
        size = np.abs(self.map.data)
        for block, first, last in self._parts():
            some = slice(self.map.indptr[first], self.map.indptr[last])
            if isinstance(block.function, Separable) and block.function.weights.any():
                size[some] *= np.repeat(block.function.weights, np.diff(self.map.indptr[first : last + 1]))
            positive = size[some][size[some] > 0]
            size[some] /= np.exp(np.mean(np.log(positive))) if positive.size else 1.0  # every block counts alike
        units = np.zeros(self.map.shape[1])
        np.maximum.at(units, self.map.indices, size)
        return np.where(units > 0, units, 1.0)

    def _parts(self) -> Iterator[tuple[Block, int, int]]:
        return ((block, *span) for block, span in zip(self.blocks, self._spans, strict=True))

    def primal(self, coef, intercept=0.0) -> float:
        """The objective at these coefficients."""
        return self.primal_at(self.pack(coef, intercept))

    def primal_at(self, w, scores=None) -> float:
        """The objective at w, whose scores may be known."""
        scores = self.scores(w) if scores is None else scores
        return self.mean_loss(scores) + self.penalty_value(self.penalised(w))

    def mean_conjugate(self, x, scale=1.0) -> float:
        """(1/n) sum of (s_i f)*(scale x_i); infinite outside the domain."""
        total = 0.0
        for part in self._chunks():
            weight, dual, target = self._weights(part), scale * x[part], self.target[part]
            if self.weight.size:
                some = weight > 0
                if np.any(dual[~some] != 0):
                    return np.inf
                weight, dual, target = weight[some], dual[some], target[some]
                total += float((weight * self.loss.conjugate(dual / weight, target)).sum())
            else:
                total += float(np.sum(self.loss.conjugate(dual, target)))
        return total / self.n

    def penalty_conjugate(self, y) -> float:
        """psi*(y), for y already divided by n."""
        return float(sum(b.conjugate(y[first:last]) for b, first, last in self._parts()))

    def gauge(self, y) -> float:
        return max((b.gauge(y[first:last]) for b, first, last in self._parts()), default=0.0)

    def dual(self, x, y) -> float:
        """The dual objective; a bound on the optimum only where Z x + B y = 0."""
        return -self.mean_conjugate(x) - self.penalty_conjugate(y / self.n)

    def residual(self, x, y) -> np.ndarray:
        """Z x + B y; entries of a switched-off intercept are zero."""
        return self.gradient_sum(x) + self.spread(y)

    def _mask(self, vector):
        if not self.fit_intercept:
            vector[self.intercept_slots] = 0.0
        return vector

    @_once_per_map
    def gram(self) -> Gram:
        return Gram(self.map)

    @_once_per_map
    def entries(self):
        """The row and the size of every entry of B'."""
        return np.repeat(np.arange(self.d), np.diff(self.map.indptr)), np.abs(self.map.data)

    @_once_per_map
    def map_squares(self):
        """The squares of the entries of `map_slots`."""
        return self.map_slots.power(2)

    def _domain(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the domain of (s f)* for every visit."""
        low, high = self.loss.domain(self.target)
        if self.weight.size:
            weight = self._weights()
            with np.errstate(invalid="ignore"):
                low, high = np.where(weight > 0, weight * low, 0.0), np.where(weight > 0, weight * high, 0.0)
        return low, high

    @property
    def _is_w(self) -> bool:
        """Whether the penalty looks at the coefficients of one output as they are."""
        return self.vectors == 1 and is_shared_identity(self.map)

    @property
    def is_plain(self) -> bool:
        """Whether the penalty is one function of the coefficients of one output as they are."""
        return len(self.blocks) == 1 and self._is_w

    @_once_per_map
    def _picks(self):
        """Whether every row of B' is a multiple of one feature."""
        return self._is_w or bool((self.map.indptr[1:] - self.map.indptr[:-1] == 1).all())

    @_once_per_map
    def renames(self):
        """Whether B' only reorders and scales the features."""
        columns, matrix = self.map.shape[1], self.map
        if self._is_w:
            return True
        if not (self._picks and self.d == columns and np.square(matrix.data).all()):
            return False
        return bool((np.bincount(matrix.indices, minlength=columns) == 1).all())

    def gauge_without_ridge(self, y):
        return max((b.gauge_without_ridge(y[i:j]) for b, i, j in self._parts()), default=0.0)

    def slopes_at(self, scores) -> np.ndarray:
        """s_i f'(u_i): the dual variables that belong to these scores."""
        slope = self.loss.gradient(scores, self.target)
        return np.asarray(self._weights() * slope, dtype=float)


def _numbered(labels):
    """Labels numbered from 0 in their order, without gaps."""
    steps = np.diff(labels)
    if labels.size and labels[0] == 0 and steps.min(initial=0) >= 0 and steps.max(initial=0) <= 1:
        return labels
    return np.unique(labels, return_inverse=True)[1]


def _stacked(matrices, columns):
    """Matrices one under the other, each row in order and without duplicates."""
    if not matrices:
        return sp.csr_array((0, columns))
    if len(matrices) == 1 and _is_stacked(matrices[0]):
        return matrices[0]
    data, indices = (np.concatenate([getattr(matrix, name) for matrix in matrices]) for name in ("data", "indices"))
    ends = np.cumsum(np.concatenate([[0], *(np.diff(matrix.indptr) for matrix in matrices)]), dtype=indices.dtype)
    stacked = sp.csr_array((data, indices, ends), shape=(ends.size - 1, columns))
    stacked.sum_duplicates()
    return stacked


def _is_stacked(matrix):
    """Whether a matrix is such a stack by itself."""
    return type(matrix) is sp.csr_array and matrix.indices.dtype == np.int32 and bool(matrix.has_canonical_format)


def _as_loss(loss) -> Loss:
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ValueError(f"loss is {loss!r}; known losses: {', '.join(LOSSES)}")
        return LOSSES[loss]()
    if not isinstance(loss, Loss):
        raise ValueError(f"loss is {loss!r}; it must be a fenchel loss or one of {', '.join(LOSSES)}")
    return loss


def _vector(name, values, length):
    """A float vector of that length: a kernel would read past the end of a shorter one."""
    values = np.ascontiguousarray(values, dtype=float)
    if values.shape != (length,):
        raise ValueError(f"{name} has shape {values.shape}; expected ({length},)")
    return values


def _as_alpha(alpha) -> float:
    try:
        alpha = float(alpha)
    except (TypeError, ValueError):
        raise ValueError(f"alpha is {alpha!r}; it must be a number") from None
    if not (np.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha is {alpha:g}; it must be finite and not negative")
    return alpha


def _as_tasks(task, n):
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
