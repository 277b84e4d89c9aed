"""The objective, its dual, and the certificate: written once, here.

    primal   P(w) = (1/n) sum_i s_i f(z_i'w; t_i) + psi(B'w)
    dual     D(x, y) = -(1/n) sum_i (s_i f)*(x_i) - psi*(y/n)   where  Z x + B y = 0

Weights s are scaled to mean 1, so the loss is always a weighted mean. `w` is one flat vector: for every
output (or task) its p features and then its intercept. See ``docs/mathematics.md``.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from .data import Rows, as_weights
from .losses import LOSSES, Loss
from .maps import Gram, is_shared_identity
from .penalties import Penalty, Separable
from .penalty_blocks import Block, scale_blocks, unit_blocks

_CHUNK = 1 << 16  # visits looked at together
_ROUNDING = 1e-11  # relative to the terms of a sum
_BALANCED = 1e-14  # of the terms of a sum over all rows: what counts as a sum of zero
_NONE = np.zeros(0, dtype=np.int64)
_INSIDE = 0.5  # of a model's error: how far what it foresees of x may be outside the domain of the loss
_PLAIN = 1e-100  # products of numbers that are not smaller are never too small for a number
_MOST_FREE = 1000  # unpenalised directions that a certificate will repair


class Bounds:
    """dual <= optimum <= primal, for whatever carries the two."""

    primal: float
    dual: float

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    @property
    def relative_gap(self) -> float:
        return self.gap / max(abs(self.primal), 1e-300)

    @property
    def certified(self) -> bool:
        return math.isfinite(self.gap)


@dataclasses.dataclass
class Certificate(Bounds):
    """What is proven about an answer: dual <= optimum <= primal.

    `dual` is -inf, and `gap` infinite, where no dual feasible point could be made; `reason` then says why.
    """

    primal: float
    dual: float
    residual: float
    reason: str = ""


class Fingerprint:
    """A digest of a problem, made when somebody asks for it: most answers are never continued.

    It keeps the small arrays of the problem and not its data. Fingerprints are equal if their digests are; so are a
    fingerprint and a digest that was saved.
    """

    def __init__(self, head: tuple, arrays: tuple, blocks: list[Block]) -> None:
        self._parts: tuple | None = (head, arrays, blocks)

    @functools.cached_property
    def digest(self) -> str:
        assert self._parts is not None
        (head, arrays, blocks), self._parts = self._parts, None
        digest = hashlib.sha256()
        digest.update(repr(head).encode())
        for array in arrays:
            digest.update(np.ascontiguousarray(array).tobytes())
        for block in blocks:
            digest.update(repr((type(block.function).__name__, block.d, block.scale, block.ridge)).encode())
            digest.update(block.function.params.tobytes() + block.function.index.tobytes())
        return digest.hexdigest()[:32]

    def __str__(self) -> str:
        return self.digest

    def __repr__(self) -> str:
        return f"Fingerprint({self.digest!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fingerprint | str) and (self is other or self.digest == str(other))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple:
        return str, (self.digest,)


class NoCertificate(Exception):
    """No dual feasible point near the given one; the message says why."""


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


class Problem:
    """min over w of the weighted mean loss of X w plus alpha * penalty(w).

    Parameters
    ----------
    X : array, CSR or CSC matrix, memmap or data frame, shape (n, p)
        Dense data is float32 or float64 in C or Fortran order and is not copied. What visits single rows (epochs do,
        working sets do not) makes a copy by rows of data that is stored by columns.
    y : array of n targets, or (n, m) for m outputs
    loss : Loss or its name
    penalty : Penalty, optional
        With m outputs or tasks it acts on the m * p coefficients, output after output.
    alpha : float
        Multiplies the penalty.
    sample_weight : vector of n weights, optional
    fit_intercept : bool
        An unpenalised intercept for each output.
    task : vector of n integers, optional
        Rows of task k use coefficients of their own; a penalty may couple them.
    """

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

    zero_answer = None  # the largest useful alpha with its answer, once it was asked for

    def with_alpha(self, alpha: float) -> Problem:
        """The same data with another alpha; nothing is checked, compiled or copied again."""
        alpha = _as_alpha(alpha)
        if min(alpha, self.alpha) >= _PLAIN and self._stays_whole:
            other = self._sibling("blocks")  # they are made when somebody asks
        else:
            other = self._with_blocks(scale_blocks(self._unit_blocks, alpha))
        other.alpha, other.zero_answer = alpha, self.zero_answer
        if self.__dict__.get("_penalty_at_zero") == 0.0 < alpha:
            other._penalty_at_zero = 0.0
        return other

    @_once_per_map
    def _stays_whole(self) -> bool:
        """Whether every multiple of the penalty, down to a tiny one, has the same blocks."""
        return all(
            block.matrix is own.matrix and block.smallest() >= _PLAIN
            for block, own in zip(self._unit_blocks, self.blocks, strict=False)
        ) and len(self.blocks) == len(self._unit_blocks)

    @functools.cached_property
    def blocks(self) -> list[Block]:
        """The penalty, compiled: see ``penalty_blocks.py``."""
        return scale_blocks(self._unit_blocks, self.alpha)

    def with_weights(self, sample_weight: np.ndarray | None) -> Problem:
        """The same data and penalty with other weights of the rows; what does not depend on these is shared."""
        other = self._sibling("_conjugate_at_zero", "_loss_at_zero")
        other.weight = as_weights(sample_weight, self.n)
        return other

    def _sibling(self, *changed: str) -> Problem:
        """A copy that shares everything but what is known of this very problem, and what is named as `changed`."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for known in (
            "_dual_at_zero",
            "_objective_at_zero",
            "_penalty_at_zero",
            "fingerprint",
            "zero_answer",
            "_remembered",
            *changed,
        ):
            other.__dict__.pop(known, None)
        return other

    def _with_blocks(self, blocks: list[Block]) -> Problem:
        """The same data with other blocks; the map and what follows from it are shared where they stay the same."""
        other = self._sibling()
        if len(blocks) == len(self.blocks) and all(
            new.matrix is old.matrix for new, old in zip(blocks, self.blocks, strict=True)
        ):
            other.blocks = blocks
        else:
            other._set_blocks(blocks)
        return other

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

    # -- coefficients -------------------------------------------------------------------------------

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

    # -- products with the data ---------------------------------------------------------------------

    def scores(self, w) -> np.ndarray:
        """z_i'w for every visit."""
        w = _vector("w", w, self.size)
        if self._by_products:
            return self._products(w)
        from .kernels import rows

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
        from .kernels import rows

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
        from .kernels import rows

        product, out = np.empty(self.visits), np.zeros(self.size)
        rows.sweep(self.data.arrays, self.layout, x, out, w, product)
        return product, self._mask(out)

    # -- objectives ---------------------------------------------------------------------------------

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

    # -- certificate --------------------------------------------------------------------------------

    @_once_per_map
    def gram(self) -> Gram:
        return Gram(self.map)

    def certificate(
        self, state, *, fresh: bool = True, primal: float | None = None, enough: float = np.inf, hope: float = -np.inf
    ) -> Certificate:
        """A proven interval for the optimum from any (w, x, y).

        Parameters
        ----------
        state : object with arrays `w`, `x`, `y` (a Result's state, or your own)
            Without `x` and `y` they are taken from the gradient of the loss at w.
        fresh : bool
            Recompute Z x instead of trusting `state.zx`, which the solver updates incrementally.
        primal : float, optional
            The objective at w, if it is known; saves a pass over the data.
        enough, hope : float
            A dual bound that will do, and one so low that it is no use: no better one is searched for there.
        """
        x, y, zx = (getattr(state, name, None) for name in ("x", "y", "zx"))
        if primal is None or x is None:
            scores = self.scores(state.w)
            primal = self.mean_loss(scores) + self.penalty_value(self.penalised(state.w))
        if x is None:
            x, zx = self.slopes_at(scores), None
        y = np.zeros(self.d) if y is None else y
        zx = self._mask(self.combine(x) if fresh or zx is None else zx.copy())
        residual = np.linalg.norm(zx + self.spread(y)) / max(np.linalg.norm(zx), 1e-300)
        try:
            dual, reason = self.dual_bound(x, y, zx, enough=enough, hope=hope), ""
        except NoCertificate as why:
            dual, reason = -np.inf, str(why)
        if not np.isfinite(primal):
            reason = reason or "w breaks a constraint of the penalty"
        return Certificate(primal, dual, float(residual), reason)

    def zero_certificate(self) -> Certificate:
        """The certificate of w = 0, x = 0, y = 0, where every solve begins; it needs no pass over the data."""
        return Certificate(self.objective_at_zero(), self._dual_at_zero, 0.0)

    def objective_at_zero(self) -> float:
        """The objective at w = 0; infinite where that breaks a constraint."""
        return self._objective_at_zero

    def dual_bound(self, x, y, zx=None, *, enough: float = np.inf, hope: float = -np.inf) -> float:
        """The dual objective at a feasible point made from (x, y): repair, then scale.

        Raises NoCertificate where that is not possible.
        """
        if zx is None:
            zx = self.gradient_sum(x)
        x, zx = self._balance(x, zx)
        y, violations = self._repair(x, y, zx)
        for _ in range(8):
            if not violations.size:
                break
            x, zx = self._balance(x, zx, y, violations)
            y, violations = self._repair(x, y, zx, violations)
        if violations.size:
            raise NoCertificate(f"the sign of {violations.size} dual variables could not be mended")
        gauge = self.gauge(y / self.n)
        if not np.isfinite(gauge):
            raise NoCertificate("the dual point leaves the domain of the penalty's conjugate in every scaling")
        largest = 1.0 if gauge <= 1 else (1 - 1e-15) / gauge

        def dual(scale):
            return -self.mean_conjugate(x, scale) - self.penalty_conjugate(scale * y / self.n)

        at_largest = dual(largest)
        if at_largest >= enough:
            return at_largest
        best = max(at_largest, self._dual_at_zero)
        if best < hope:
            return best
        if any(b.ridge > 0 for b in self.blocks):
            # pure norms reach their best at the largest scale; a quadratic may prefer a smaller one
            unridged = self.gauge_without_ridge(y / self.n)
            if unridged > 1:
                best = max(best, _parabola(dual, 1.0 / unridged, largest, at_largest))
        return best

    @_once_per_map
    def entries(self):
        """The row and the size of every entry of B'."""
        return np.repeat(np.arange(self.d), np.diff(self.map.indptr)), np.abs(self.map.data)

    def _sums_of_sizes(self, y):
        """What the sums B y are made of."""
        row, size = self.entries
        return np.bincount(self.map.indices, size * np.abs(y)[row], self.map.shape[1])

    @_once_per_map
    def _row_sums(self):
        """What the sums Z x are made of, for an x of length 1; the largest of the features that the penalty connects,
        since a solve with B B' spreads rounding over them."""
        scale = np.tile(np.sqrt(self.n * self.data.mean_squares), self.vectors)
        largest = np.zeros(self.gram.parts.max(initial=0) + 1)
        np.maximum.at(largest, self.gram.parts, scale)
        return largest[self.gram.parts]

    @_once_per_map
    def map_squares(self):
        """The squares of the entries of `map_slots`."""
        return self.map_slots.power(2)

    @functools.cached_property
    def _objective_at_zero(self) -> float:
        return self._loss_at_zero + self._penalty_at_zero

    @functools.cached_property
    def _penalty_at_zero(self) -> float:
        return float(sum(block.at_zero() for block in self.blocks))

    @functools.cached_property
    def _loss_at_zero(self) -> float:
        return self.mean_loss(np.zeros(self.visits))

    @functools.cached_property
    def _dual_at_zero(self) -> float:
        # where no value is below that at zero, zero, the conjugate at zero is zero
        least = self._penalty_at_zero == 0.0 and all(block.function.nonnegative for block in self.blocks)
        return -self._conjugate_at_zero - (0.0 if least else self.penalty_conjugate(np.zeros(self.d)))

    @functools.cached_property
    def _conjugate_at_zero(self) -> float:
        return -self.loss.least if self.loss.knows_least else self.mean_conjugate(np.zeros(self.visits))

    def _repair(self, x, y, zx, zeroed=_NONE):
        """y moved to Z x + B y = 0 by least squares, and the coordinates that break a zero bound.

        `zeroed` are coordinates that were just brought to zero, up to rounding.
        """
        # where every feature stands in one place there is one such y
        y = -zx[self.entry_slots] / self.map.data if self.renames else self._balanced_by_penalty(x, y, zx)
        if zeroed.size:
            largest = (self._row_sums * np.linalg.norm(x)).max(initial=0.0)
            y[zeroed[np.abs(y[zeroed]) <= _ROUNDING * largest]] = 0.0
        found = [(first, b.bound_violations(y[first:last])) for b, first, last in self._parts()]
        bad = [first + own for first, own in found if own.size]
        return y, np.union1d(np.concatenate(bad).astype(np.int64), zeroed) if bad else _NONE

    def _balanced_by_penalty(self, x, y, zx):
        """The y closest to the given one with Z x + B y = 0."""
        # rounding is judged against what the sums are made of, which may cancel
        scale = self._row_sums * np.linalg.norm(x)
        left = (zx + self.adjoint @ y)[self.feature_slots]
        for _ in range(3):
            if np.abs(left).max(initial=0.0) > 0:
                # B B' may be badly conditioned, but y is not large: a second solve mends the first
                y = y - self.map @ self.gram.solve(left)
                left = (zx + self.adjoint @ y)[self.feature_slots]
            if np.all(np.abs(left) <= _ROUNDING * (scale + self._sums_of_sizes(y))):
                return y
        raise NoCertificate("the system B B' could not be solved to rounding")

    @property
    def constraint_count(self) -> int:
        """Equations that a certificate may have to mend: directions without penalty, and one-sided bounds of zero."""
        signs = sum(b.bound_violations(sign * np.ones(b.d)).size for b in self.blocks for sign in (1.0, -1.0))
        return self._free_count + signs

    @property
    def _free_count(self):
        """Unpenalised directions."""
        unseen = 0 if self.renames else self.gram.unseen.size + self.gram.blind_count
        return unseen + (self.vectors if self.fit_intercept else 0)

    @functools.cached_property
    def fingerprint(self) -> Fingerprint:
        """What tells whether a saved run was one of this very problem."""
        loss, data = self.loss, self.data
        dtype = data.dtype.type.__name__
        head = (type(loss).__name__, data.n, data.p, dtype, data.sparse, self.layout[0], self.fit_intercept)
        # the targets may be the caller's own array, which may change
        arrays = (loss.params, data.mean_squares, self.target.copy(), self.weight, self.layout[2], self.map.data,
                  self.map.indices, self.map.indptr)  # fmt: skip
        return Fingerprint(head, arrays, self.blocks)

    @_once_per_map
    def _free(self):
        """Unpenalised directions of w (size, k), and the data along them (visits, k)."""
        count = self._free_count
        if count > _MOST_FREE:
            raise NoCertificate(f"{count} directions carry no penalty; at most {_MOST_FREE} can be repaired")
        slots = self.intercept_slots if self.fit_intercept else _NONE
        if not self.renames:
            slots = np.concatenate([self.feature_slots[self.gram.unseen], slots])
        directions = np.zeros((self.size, count))
        directions[slots, np.arange(slots.size)] = 1.0
        if count > slots.size:
            directions[self.feature_slots, slots.size :] = self.gram.blind.toarray()
        return directions, self._along(directions)

    def _along(self, directions):
        if directions.shape[1] == self.layout[0] == 1 and not directions[:-1].any():
            return np.full((self.visits, 1), directions[-1, 0])  # an intercept alone
        columns = [self.scores(direction) for direction in directions.T]
        return np.column_stack(columns) if columns else np.zeros((self.visits, 0))

    def _domain(self) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the domain of (s f)* for every visit."""
        low, high = self.loss.domain(self.target)
        if self.weight.size:
            weight = self._weights()
            with np.errstate(invalid="ignore"):
                low, high = np.where(weight > 0, weight * low, 0.0), np.where(weight > 0, weight * high, 0.0)
        return low, high

    def foreseen(self, x, change, true):
        """x + change, the slopes that a model of the loss foresees, within the domain of the conjugate.

        None where they are far outside, compared with what separates them from the true ones. (See
        :mod:`fenchel.newton` for what they are good for.)
        """
        wanted = x + change
        inside = np.clip(wanted, *self._domain())
        near = np.linalg.norm(inside - wanted) <= _INSIDE * np.linalg.norm(true - wanted)
        return inside if near else None

    def centred(self, x) -> np.ndarray:
        """x moved within its domain so that it sums to zero for every output, as an intercept asks for.

        Every row moves in proportion to its distance to the ends of its domain (1 at the most); where that does not
        suffice, the heavier sign is shrunk. Nothing is moved where there is no intercept.
        """
        if not self.fit_intercept:
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

    def _balance(self, x, zx, y=None, zeroed=_NONE):
        """x moved so that unpenalised directions (and y on `zeroed`) carry no gradient.

        The move is least squares with every row weighted by its distance to the ends of its domain, so
        that rows at an end stay there.
        """
        if not (self._free_count or len(zeroed)):
            return x, zx
        directions, along = self._free
        goal = -(directions.T @ zx)
        scale = np.abs(along).T @ np.abs(x)
        if len(zeroed):
            if len(zeroed) > _MOST_FREE:
                raise NoCertificate(
                    f"{len(zeroed)} dual variables have the wrong sign; at most {_MOST_FREE} can be mended"
                )
            columns = self.map[zeroed].toarray().T
            lifted = np.zeros((self.size, len(zeroed)))
            for k, column in enumerate(columns.T):
                lifted[self.feature_slots, k] = self.gram.solve(column)
            extra = self._along(lifted)
            along = np.column_stack([along, extra])
            goal = np.concatenate([goal, y[zeroed]])
            scale = np.concatenate([scale, np.abs(extra).T @ np.abs(x)])
        if not goal.size or (np.abs(goal) <= _BALANCED * scale).all():
            return x, zx
        # columns in units of their own: what is small in one must not drown in what is large in another
        sizes = np.sqrt(np.einsum("ij,ij->j", along, along))
        sizes = np.where(sizes > 0, sizes, 1.0)
        along, goal, scale = along / sizes, goal / sizes, scale / sizes
        low, high = self._domain()
        start = x
        for _ in range(30):
            room = np.minimum(np.minimum(x - low, high - x), 1.0)
            room = np.maximum(room, 0.0)
            gram = sum(along[part].T @ (room[part, None] * along[part]) for part in self._chunks())
            move = room * (along @ np.linalg.lstsq(gram, goal, rcond=1e-14)[0])
            moved = np.clip(x + move, low, high)
            left = goal - along.T @ (moved - x)
            x = moved
            if np.all(np.abs(left) <= _BALANCED * scale):
                return x, self.gradient_sum(x)
            size = np.where(scale > 0, scale, 1.0)  # an empty column asks for nothing
            if np.linalg.norm(left / size) > 0.9 * np.linalg.norm(goal / size):
                break
            goal = left
        if along.shape[1] == 1 and self.fit_intercept and not len(zeroed):
            return self._shrink(start)
        raise NoCertificate("no dual feasible point close by: unpenalised directions still carry a gradient")

    def _shrink(self, x):
        """Both signs of x brought to the same sum, by shrinking the heavier: feasible for an intercept."""
        up, down = x[x > 0].sum(), -x[x < 0].sum()
        x = np.where(x > 0, x * min(1.0, down / up if up else 1.0), x * min(1.0, up / down if down else 1.0))
        return x, self.gradient_sum(x)

    # -- structure ----------------------------------------------------------------------------------

    def snaps(self, w: np.ndarray, u: np.ndarray) -> Iterator[np.ndarray]:
        """Answers close to w in which the structure of u = prox(...) is exact, the plainest first."""
        yield self.snap(w, u)
        yield from self.restored(w, u)

    def restored(self, w, u):
        """Answers close to w in which that structure is exact beyond zeros and ties."""
        if self.renames:
            # u is w itself: whatever a penalty does to it is exact
            exact = w.copy()
            exact[self.entry_slots] = u / self.map.data
            yield exact
        restored = self._restore(w, u)
        if restored is not w:
            yield self.snap(restored, u)

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

    @_once_per_map
    def links(self):
        """What zeros of B'w say of features: rows with one entry, and its feature; rows that join two features by
        entries of one size, these, and the sign between them; whether a row says anything else; and per block whether
        all its rows have one entry."""
        counts, start = np.diff(self.map.indptr), self.map.indptr[:-1]
        lone, pairs = np.flatnonzero(counts == 1), np.flatnonzero(counts == 2)
        left, right = self.map.data[start[pairs]], self.map.data[start[pairs] + 1]
        even = np.abs(left) == np.abs(right)
        others = counts > 1
        others[pairs[even]] = False
        pairs, first = pairs[even], start[pairs[even]]
        sign = -np.sign(left[even] * right[even])
        alone = [last > first and bool(np.all(counts[first:last] == 1)) for _, first, last in self._parts()]
        joined = pairs, self.map.indices[first], self.map.indices[first + 1], sign
        return (lone, self.map.indices[start[lone]]), joined, others, alone

    def _restore(self, w, u):
        """w moved to the ranks of u and, where zero rows of B' join more than two features, to its zeros."""
        values, counts, changed = w[self.feature_slots], np.diff(self.map.indptr), False
        for block, first, last in self._parts():
            if np.all(counts[first:last] == 1):
                entries = slice(self.map.indptr[first], self.map.indptr[last])
                column, entry = self.map.indices[entries], self.map.data[entries]
                at = entry * values[column]
                restored = block.function.restore(at, u[first:last])
                if restored is not at:
                    values[column], changed = restored / entry, True
        zero = np.flatnonzero((u == 0) & (counts > 0))  # an empty row asks for nothing
        if np.any(counts[zero] > 2):
            rows, changed = self.map[zero], True
            length = np.sqrt(np.asarray(rows.power(2).sum(axis=1)).ravel())
            rows = sp.csr_array(sp.diags_array(1.0 / length) @ rows)
            gram = sp.csc_array(rows @ rows.T)
            solve = sla.splu(sp.csc_array(gram + sp.diags_array(np.full(zero.size, 1e-14)))).solve
            for _ in range(3):
                values = values - rows.T @ solve(rows @ values)
        if not changed:
            return w
        w = w.copy()
        w[self.feature_slots] = values
        return w

    def snap(self, w, u) -> np.ndarray:
        """w with the zeros and ties of u = prox(...) made exact: zero features are 0.0, equal ones equal bits."""
        zero = u == 0
        (lone, feature), (pairs, left, right, between), _, alone = self.links
        joined = np.flatnonzero(zero[pairs])
        a, b, sign = [left[joined]], [right[joined]], [between[joined]]
        # and the ties that a penalty finds among its own
        for (block, first, last), own in zip(self._parts(), alone, strict=True):
            i, j, kind = block.function.ties(u[first:last]) if own else (_NONE, _NONE, _NONE)
            if i.size:
                entries = slice(self.map.indptr[first], self.map.indptr[last])
                entry, column = self.map.data[entries], self.map.indices[entries]
                even = np.abs(entry[i]) == np.abs(entry[j])
                a.append(column[i[even]])
                b.append(column[j[even]])
                sign.append((kind * np.sign(entry[i] * entry[j]))[even])
        values, gone = w[self.feature_slots], feature[zero[lone]]
        if joined.size or len(a) > 1:
            label, side, torn = tied_features(np.concatenate(a), np.concatenate(b), np.concatenate(sign), values.size)
            total, size = np.bincount(label, side * values), np.bincount(label)
            tied = size[label] > 1
            values[tied] = (side * (total / np.maximum(size, 1))[label])[tied]
            dead = np.zeros(size.size, dtype=bool)
            dead[label[torn]] = True
            dead[label[gone]] = True
            gone = dead[label]
        values[gone] = 0.0
        w = w.copy()
        w[self.feature_slots] = values
        return w

    def within(self, w) -> np.ndarray:
        """w with single features brought inside the bounds that the penalty sets them; it is changed in place."""
        for block, first in zip(self.blocks, self.bounds, strict=False):
            function = block.function
            if isinstance(function, Separable) and (np.isfinite(function.lower) | np.isfinite(function.upper)).any():
                rows = self.map_slots[first : first + block.d]
                if np.all(np.diff(rows.indptr) == 1):
                    w[rows.indices] = np.clip(rows.data * w[rows.indices], function.lower, function.upper) / rows.data
        return w

    # -- the largest useful alpha --------------------------------------------------------------------

    def alpha_max(self) -> float:
        """An alpha from which on the penalised part of the answer is zero: B'w = 0.

        The smallest such alpha where the loss is smooth and B is injective (no feature in two places; chains, trees);
        otherwise an upper bound, usually within a per cent of it. Infinite where no alpha will do.
        """
        from .largest_alpha import zero_answer

        if self.zero_answer is None:
            self.zero_answer = zero_answer(self)
        return self.zero_answer.alpha

    def gauge_without_ridge(self, y):
        return max((b.gauge_without_ridge(y[i:j]) for b, i, j in self._parts()), default=0.0)

    def slopes_at(self, scores) -> np.ndarray:
        """s_i f'(u_i): the dual variables that belong to these scores."""
        slope = self.loss.gradient(scores, self.target)
        return np.asarray(self._weights() * slope, dtype=float)


def _summing_to_zero(x, low, high):
    """See :meth:`Problem.centred`."""
    start, scale = x, np.abs(x).sum()
    for _ in range(30):
        total = x.sum()
        if abs(total) <= _BALANCED * scale:
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
    return np.where(start > 0, start * min(1.0, down / up), start * min(1.0, up / down))


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


def tied_features(a, b, sign, count):
    """Components of features joined by w_a = sign w_b: their labels, each feature's side (1 or -1), and the features
    of components that ask for w = -w."""
    if not a.size:
        return np.arange(count), np.ones(count), np.zeros(0, dtype=np.int64)
    from .kernels.ties import join

    label, side, torn = join(a.astype(np.int64), b.astype(np.int64), sign, count)
    return label, side, np.flatnonzero(torn[label])


def _parabola(function, low, high, at_high, rounds=2):
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
    return max(value for _, value in points)


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
