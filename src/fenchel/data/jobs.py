"""What partitions are asked for. A job is sent to where the rows are; sums come back, and nothing stays there.

Symbols: w primal; u = z'w + offset the scores; x = s f'(u) the slopes; b = s f''(u) the curvatures, both times the
weights s; G = Z x; C(tau) = sum of (s f)*(tau x).
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from .._validate import AnyArray, Array, Flags, Index, MatrixLike
from ..foundation.numerics import ROUNDING
from ..losses import Loss
from .partitions import Partition

MOST_LABELS = 1000  # different targets that count as classes; more: numbers
_SAMPLE, _FOLD = range(1, 3)  # streams of the hash
_Bits: TypeAlias = npt.NDArray[np.uint64]


def uniform(number: int, rows: int, seed: int, stream: int = _SAMPLE) -> Array:
    """A number in [0, 1) for every row of a partition, which depends on nothing but these four: a hash and no generator
    (the finaliser of SplitMix64; Steele, Lea and Flood, 2014)."""
    with np.errstate(over="ignore"):
        start = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(stream)
        start = _mixed(np.array([start]))[0] + np.uint64(number) * np.uint64(0xD1342543DE82EF95)
        z = _mixed(_mixed(np.array([start]))[0] + np.arange(rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return (z >> np.uint64(11)).astype(float) * 2.0**-53


def _mixed(z: _Bits) -> _Bits:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@dataclasses.dataclass(frozen=True)
class Fold:
    """Rows that are left out, drawn by a hash of their place: `kept` tells whether the others or these count."""

    count: int
    left_out: int
    seed: int
    kept: bool = True

    def mask(self, part: Partition) -> Flags:
        drawn = (uniform(part.number, part.n, self.seed, _FOLD) * self.count).astype(np.int64)
        return np.asarray(drawn != self.left_out if self.kept else drawn == self.left_out)


@dataclasses.dataclass(frozen=True)
class Terms:
    """The loss of a partition's rows.

    Attributes
    ----------
    unit : float
        What weights are multiplied by, so that their mean is 1.
    labels : array, optional
        Classes: the second of two is +1; of more, each is set against the rest.
    fold : Fold, optional
        Rows that count for nothing.
    """

    loss: Loss
    outputs: int
    unit: float = 1.0
    labels: AnyArray | None = None
    fold: Fold | None = None

    def target(self, part: Partition) -> Array:
        """Of every visit."""
        if self.labels is None:
            return np.ascontiguousarray(part.target, dtype=float).ravel()
        if self.loss.coupled:
            return np.where(part.target[:, None] == self.labels[None, :], 1.0, 0.0).ravel()
        if self.labels.size == 2:
            return np.where(part.target == self.labels[1], 1.0, -1.0)
        return np.where(part.target[:, None] == self.labels[None, :], 1.0, -1.0).ravel()

    def weight(self, part: Partition) -> Array:
        """Of every visit; empty where all are 1."""
        if not part.weight.size and self.fold is None:
            return np.zeros(0)
        weight = self.unit * (part.weight if part.weight.size else np.ones(part.n))
        if self.fold is not None:
            weight = np.where(self.fold.mask(part), weight, 0.0)
        return np.repeat(weight, self.outputs) if self.outputs > 1 else weight

    def layout(self, part: Partition) -> tuple[int, int, Index, int]:
        """See ``kernels/rows.py``."""
        return self.outputs, part.p + 1, part.task * (part.p + 1), part.p

    def offset(self, part: Partition) -> Array:
        return np.repeat(part.offset, self.outputs) if self.outputs > 1 else part.offset

    def scores(self, part: Partition, w: Array) -> Array:
        """z'w, without the offset."""
        from ..kernels import rows

        out = np.empty(part.n * self.outputs)
        if w.any():
            rows.scores(part.arrays, self.layout(part), w, out)
        else:
            out[:] = 0.0
        return out


@dataclasses.dataclass(frozen=True)
class Look:
    """All that a round wants to know at w.

    Attributes
    ----------
    w : array (size,)
    grid : scales tau at which the sum of conjugates is wanted
    floor : float
        The least curvature that a row counts for, times its weight.
    split : bool
        Whether sums over positive and negative slopes are told apart, as an intercept asks for.
    directions : array (size, k)
        Along which slopes are moved to balance them; k is 0 where there is nothing to balance.
    moves : arrays (k,)
        By which they were moved already; nobody keeps them where the rows are.
    """

    terms: Terms
    w: Array
    grid: tuple[float, ...]
    floor: float
    split: bool
    directions: Array
    moves: tuple[Array, ...] = ()
    name = "look"

    def __call__(self, part: Partition) -> tuple[Array, None]:
        terms, loss = self.terms, self.terms.loss
        target, weight, layout, offset = terms.target(part), terms.weight(part), terms.layout(part), terms.offset(part)
        total, x, bend, more = self._seen(part, target, weight, offset)
        along = self._along(part)
        gram = np.zeros((along.shape[1], along.shape[1]))
        if along.shape[1]:
            x, gram = (self._tilted if loss.coupled else self._moved)(x, target, weight, along)
        sign = x > 0
        groups = [sign, ~sign] if self.split else [np.ones(x.size, dtype=bool)]
        slopes, squares = np.zeros((len(groups), self.w.size)), np.zeros(self.w.size)
        bends = float(bend.sum())
        if self.floor > 0:
            bend = np.maximum(bend, self.floor * (weight if weight.size else 1.0))
        conjugates = np.zeros((len(groups), terms.outputs, len(self.grid)))
        for k, group in enumerate(groups):
            listed = np.flatnonzero(group)
            self._add(part, layout, listed, x, bend, slopes[k], squares)
            for t, tau in enumerate(self.grid):
                if tau == 0.0 and loss.knows_least and loss.least == 0.0:
                    continue  # minus the least value
                conjugates[k, :, t] = self._conjugates(tau, x, target, weight, offset, group)
        sizes = np.abs(along).T @ np.abs(x)
        head = [total, bends, float(x @ x), *_value_terms(loss, target, weight)]
        return np.concatenate([head, conjugates.ravel(), slopes.ravel(), squares, gram.ravel(), sizes, more]), None

    def _seen(
        self, part: Partition, target: Array, weight: Array, offset: Array
    ) -> tuple[float, Array, Array, Array]:  # fmt: skip
        """The loss of the rows, their slopes and curvatures, and what else is summed."""
        scores = self.terms.scores(part, self.w)
        seen = scores + offset if offset.size else scores
        total, x, bend = self.terms.loss.sums(seen, target, weight)
        return total, x, alone(self.terms.loss, bend), np.zeros(0)

    def _along(self, part: Partition) -> Array:
        columns = [self.terms.scores(part, np.ascontiguousarray(column)) for column in self.directions.T]
        return np.column_stack(columns) if columns else np.zeros((part.n * self.terms.outputs, 0))

    def _moved(self, x: Array, target: Array, weight: Array, along: Array) -> tuple[Array, Array]:
        """The slopes after all moves so far, and how their sums answer to a move: by the room that each has to the ends
        of its domain (1 at the most)."""
        low, high = self.terms.loss.domain(target)
        if weight.size:
            with np.errstate(invalid="ignore"):
                low, high = np.where(weight > 0, weight * low, 0.0), np.where(weight > 0, weight * high, 0.0)
        room = _room(x, low, high)
        for move in self.moves:
            x = np.clip(x + room * (along @ move), low, high)
            room = _room(x, low, high)
        return x, along.T @ (room[:, None] * along)

    def _tilted(self, x: Array, target: Array, weight: Array, along: Array) -> tuple[Array, Array]:
        """The same for the probabilities of a row, which are tilted and stay a row of the simplex."""
        loss: Any = self.terms.loss
        full = weight if weight.size else np.ones(x.size)
        share = np.divide(x, full, out=np.zeros(x.size), where=full > 0)
        for move in self.moves:
            share = loss.tilted(share, along @ move, target)
        bent = np.column_stack([loss.bent(full * np.maximum(share + target, 0.0), column) for column in along.T])
        return full * share, along.T @ bent

    def _add(
        self, part: Partition, layout: Any, listed: Index, x: Array, bend: Array, slope: Array, square: Array
    ) -> None:
        from ..kernels import partitions

        kernel = partitions.sparse_sums if part.sparse else partitions.dense_sums
        kernel(*part.arrays, layout, listed, x, bend, slope, square)

    def _conjugates(
        self, tau: float, x: Array, target: Array, weight: Array, offset: Array, group: Flags
    ) -> Array:  # fmt: skip
        """Sums of (s f)*(tau x) over a group of visits, for every output."""
        loss = self.terms.loss
        if weight.size:
            some = weight > 0
            share = np.where(some, x / np.where(some, weight, 1.0), 0.0)
            values = np.where(some, weight * loss.conjugate(tau * share, target), 0.0)
        else:
            values = loss.conjugate(tau * x, target)
        if offset.size:
            values = values - tau * offset * x
        values = np.where(group, values, 0.0)
        return np.asarray(values.reshape(-1, self.terms.outputs).sum(axis=0))


@dataclasses.dataclass(frozen=True)
class Newton:
    """The loss at w, with its slope and curvature along a few directions, and the sizes of the slope's terms."""

    terms: Terms
    w: Array
    directions: Array
    name = "unpenalised"

    def __call__(self, part: Partition) -> tuple[Array, None]:
        terms, offset = self.terms, self.terms.offset(part)
        scores = terms.scores(part, self.w)
        scores = scores + offset if offset.size else scores
        total, x, bend = terms.loss.sums(scores, terms.target(part), terms.weight(part))
        columns = [terms.scores(part, np.ascontiguousarray(column)) for column in self.directions.T]
        along = np.column_stack(columns)
        loss: Any = terms.loss
        pulls = [loss.bent(bend, column) for column in along.T] if loss.coupled else list((bend[:, None] * along).T)
        curved = along.T @ np.column_stack(pulls)
        return np.concatenate([[total], along.T @ x, np.abs(along).T @ np.abs(x), curved.ravel()]), None


def _value_terms(loss: Loss, target: Array, weight: Array) -> tuple[float, float]:
    """The sum of what values are made of beside themselves, and that of the squares of what a unit of a score adds; see
    :meth:`fenchel.losses.Loss.value_terms`."""
    own, each = (np.broadcast_to(np.abs(one), target.shape) for one in loss.value_terms(target))
    own, each = (weight * own, weight * each) if weight.size else (own, each)
    return float(own.sum()), float((each**2).sum())


def alone(loss: Loss, bend: Array) -> Array:
    """The curvature along every score by itself, where the loss sees those of a row together, too."""
    if not loss.coupled:
        return bend
    rows = np.asarray(cast(Any, loss).rows(bend))
    total = rows.sum(axis=1, keepdims=True)
    return np.asarray((rows - np.square(rows) / np.where(total > 0, total, 1.0)).ravel())


def _room(x: Array, low: Array, high: Array) -> Array:
    return np.maximum(np.minimum(np.minimum(x - low, high - x), 1.0), 0.0)


@dataclasses.dataclass(frozen=True)
class Stats:
    """What is known of the data before a loss is chosen."""

    name = "stats"

    def __call__(self, part: Partition) -> tuple[Array, dict[str, Any]]:
        from ..kernels import rows

        squares = np.zeros(part.p)
        if part.sparse:
            rows.sparse_column_squares(*part.arrays[:2], squares)
        else:
            rows.dense_column_squares(part.arrays[0], squares)
        weighed = float(part.weight.sum()) if part.weight.size else float(part.n)
        finite = np.isfinite(squares)
        part.check(finite=bool(finite.all()))
        if not finite.all():
            raise ValueError(
                f"{part.source or f'partition {part.number}'} has numbers in column {int(np.argmin(finite))} whose "
                "squares overflow (about 1e154 and more); give that column another unit"
            )
        labels = _labels(part.target)
        counted = _labels(part.target[part.weight > 0]) if labels is not None and part.weight.size else labels
        known = {
            "n": part.n, "p": part.p, "sparse": part.sparse, "dtype": part.arrays[0].dtype.name,
            "outputs": 1 if part.target.ndim == 1 else part.target.shape[1], "stored": part.arrays[0].size,
            "bytes": part.nbytes, "labels": labels, "counted": counted, "weighted": bool(part.weight.size),
            "offset": float(np.abs(part.offset).max(initial=0.0)),
            "tasks": int(part.task.max(initial=-1)) + 1,
            "largest": float(np.abs(part.target).max(initial=0.0)) if part.target.dtype.kind in "biuf" else 0.0,
        }  # fmt: skip
        return np.concatenate([[float(part.n), weighed], squares]), known


def _labels(target: AnyArray) -> AnyArray | None:
    """The different targets, in order; None where they are many."""
    some = np.unique(target[:100_000])
    if some.size > MOST_LABELS:
        return None
    found = np.unique(target)
    return found if found.size <= MOST_LABELS else None


@dataclasses.dataclass(frozen=True)
class Sample:
    r"""Rows drawn with probability :math:`\pi_i = \min(1, m (1/2n + q_i / 2 \sum q))`, where q_i is the sum over
    columns of :math:`z_{ij}^2` divided by its mean: large rows, and rows with rare features, count for more.

    Where `w` is given, half of that goes by :math:`b_i \\sum_j z_{ij}^2 / d_j` instead, the share that a row has in the
    curvature there.
    """

    terms: Terms
    scale: Array  # 1 / (2 sum q), times 1 / mean square of every column
    share: float  # m / 2n
    most: float  # m
    seed: int
    w: Array | None = None
    bent: Array | None = None  # 1 / (2 p n), times 1 / d_j
    name = "sample"

    def __call__(self, part: Partition) -> tuple[None, dict[str, Any]]:
        from ..kernels import partitions

        self._check(part)
        sizes = np.empty(part.n)
        (partitions.sparse_sizes if part.sparse else partitions.dense_sizes)(*part.arrays, self.scale, sizes)
        share = self.share + self.most * sizes
        if self.w is not None and self.bent is not None:
            share = 0.5 * share + self.most * self._bends(part)
        share = np.minimum(share, 1.0)
        drawn = np.flatnonzero(uniform(part.number, part.n, self.seed) < share)
        target, weight = self.terms.target(part), self.terms.weight(part)
        outputs = self.terms.outputs
        own: MatrixLike = part.matrix() if drawn.size == part.n else part.matrix()[drawn]
        return None, {
            "X": own, "target": target.reshape(part.n, outputs)[drawn], "share": share[drawn],
            "weight": weight[::outputs][drawn] if weight.size else np.ones(drawn.size),
            "offset": part.offset[drawn] if part.offset.size else part.offset,
            "task": part.task[drawn] if part.task.size else part.task,
        }  # fmt: skip

    def _bends(self, part: Partition) -> Array:
        """The share of every row in the curvature at w."""
        from ..kernels import partitions

        assert self.w is not None
        terms, sizes = self.terms, np.empty(part.n)
        (partitions.sparse_sizes if part.sparse else partitions.dense_sizes)(*part.arrays, self.bent, sizes)
        scores, offset = terms.scores(part, self.w), terms.offset(part)
        bend = terms.loss.sums(scores + offset if offset.size else scores, terms.target(part), terms.weight(part))[2]
        bend = alone(terms.loss, bend)
        return np.asarray(bend.reshape(part.n, terms.outputs).mean(axis=1) * sizes)

    def _check(self, part: Partition) -> None:
        """Targets that the loss does not take."""
        if self.terms.labels is not None or not part.n:
            return
        target = self.terms.target(part)
        if self.terms.loss.coupled:
            shares = target.reshape(part.n, self.terms.outputs)
            bad = np.flatnonzero((shares < 0).any(axis=1) | (np.abs(shares.sum(axis=1) - 1.0) > ROUNDING))
            if bad.size:
                raise ValueError(
                    f"{part.place(int(bad[0]))}: the target is {shares[bad[0]].tolist()}; "
                    f"{type(self.terms.loss).__name__} takes shares that add up to 1, or class numbers"
                )
            return
        try:
            # of both classes, for one partition may have rows of a single one
            both = np.array([-1.0, 1.0]) if self.terms.loss.classification else np.zeros(0)
            self.terms.loss.check_targets(np.concatenate([target, both]))
        except ValueError as error:
            found = re.match(r"y\[(\d+)\] (.*)", str(error))
            if found is None:
                raise
            raise ValueError(f"{part.place(int(found[1]) // self.terms.outputs)}: the target {found[2]}") from None


@dataclasses.dataclass(frozen=True)
class Weighed:
    """The sum of the weights of the rows that count."""

    terms: Terms
    name = "weights"

    def __call__(self, part: Partition) -> tuple[Array, None]:
        weight = dataclasses.replace(self.terms, unit=1.0, outputs=1).weight(part)
        return np.array([weight.sum() if weight.size else float(part.n)]), None


@dataclasses.dataclass(frozen=True)
class Losses:
    """The sum of losses at several points, for one read."""

    terms: Terms
    points: tuple[Array, ...]
    name = "losses"

    def __call__(self, part: Partition) -> tuple[Array, None]:
        target, weight, offset = self.terms.target(part), self.terms.weight(part), self.terms.offset(part)
        found = []
        for w in self.points:
            scores = self.terms.scores(part, w)
            values = self.terms.loss.value(scores + offset if offset.size else scores, target)
            found.append(float(np.where(weight > 0, weight * values, 0.0).sum() if weight.size else values.sum()))
        return np.array(found), None


@dataclasses.dataclass(frozen=True)
class Scored:
    """The scores of all rows, with their targets, weights and offsets: what predictions are made of.

    Attributes
    ----------
    coef, intercept : arrays (vectors, p) and (vectors,)
    codes : array, optional
        Which vector a task has; without it a row has a score for every vector.
    """

    coef: Array
    intercept: Array
    codes: Index | None = None
    name = "scores"

    def __call__(self, part: Partition) -> tuple[None, tuple[Array, AnyArray, Array, Array] | None]:
        if not part.n:
            return None, None
        if part.p != self.coef.shape[1]:
            raise ValueError(
                f"X has {part.p} features, but the model was fitted with {self.coef.shape[1]}; "
                f"{part.place(0)} is the first row that shows it"
            )
        scores = np.asarray(part.matrix() @ self.coef.T) + self.intercept
        if self.codes is not None:
            scores = scores[np.arange(part.n), self._vectors(part, self.codes)][:, None]
        if not np.isfinite(scores).all():
            part.check()  # which tells the place
        if part.offset.size:
            scores = scores + part.offset.reshape(part.n, -1)
        return None, (scores, part.target, part.weight, part.offset)

    def _vectors(self, part: Partition, codes: Index) -> Index:
        if not part.task.size:
            raise ValueError(f"{part.place(0)} has no task, but the model was fitted with tasks; name them where the "
                             "rows are opened")  # fmt: skip
        bad = np.flatnonzero(part.task >= codes.size)
        if bad.size:
            raise ValueError(
                f"{part.place(int(bad[0]))}: task {part.task[bad[0]]} was not among the {codes.size} tasks of fit"
            )
        return codes[part.task]
