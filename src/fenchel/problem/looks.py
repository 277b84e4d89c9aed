"""What one pass over rows in a pool tells of a point: sums, and nothing that belongs to a single row."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._validate import AnyArray, Array, Flags
from ..data.jobs import Look
from ..data.pools import Facts, Outcome
from ..losses import Loss

GRID = (0.0, 0.5, 0.9, 0.99, 0.999, 1 - 1e-4, 1 - 1e-5, 1 - 1e-6, 1 - 1e-8, 1.0)  # scales; more: time for every row


@dataclasses.dataclass(frozen=True)
class Slopes:
    """The slopes of all rows at w, as far as sums tell of them.

    Attributes
    ----------
    sums : array (groups, size)
        Z x over rows whose slope is positive, and over the others; or over all.
    conjugates : array (groups, outputs, grid)
    factors : array (groups, outputs)
        What the slopes are multiplied by.
    squares : float
        The sum of x^2.
    terms : tuple
        What the values of the loss are made of, in the mean: by themselves, and for every unit of a score.
    directions, moves
        Along which they were moved, and how; see :class:`fenchel.data.jobs.Look`.
    gram, sizes
        Of the directions, with rows weighted by their room; and of the terms of their sums.
    job
        That saw them: another look at them is one of its kind.
    """

    w: Array
    sums: Array
    conjugates: Array
    factors: Array
    squares: float
    directions: Array
    moves: tuple[Array, ...]
    gram: Array
    sizes: Array
    job: Look
    terms: tuple[float, float] = (0.0, 0.0)

    @property
    def total(self) -> Array:
        """Z x."""
        groups, outputs = self.factors.shape
        each = self.sums.reshape(groups, outputs, -1) * self.factors[:, :, None]
        return np.asarray(each.sum(axis=0)).ravel()

    def conjugate(self, scale: float) -> float:
        """A bound from above on the sum of (s f)*(scale x): the chords of a convex function."""
        groups, outputs = self.factors.shape
        return float(sum(
            np.interp(scale * self.factors[k, j], GRID, self.conjugates[k, j])
            for k in range(groups) for j in range(outputs)
        ))  # fmt: skip


@dataclasses.dataclass(frozen=True)
class View:
    """What a look at w found: the mean loss, its gradient, the diagonal of its curvature, and the slopes."""

    w: Array
    loss: float
    gradient: Array
    diagonal: Array
    bend: float  # the mean curvature of a row
    slopes: Slopes


@dataclasses.dataclass(frozen=True)
class EnvelopeView(View):
    """The same of the envelopes of a loss with kinks, whose gradient and curvature these are; `loss` is that of w."""

    envelope: float  # the mean of them
    moved: float  # how far the multipliers go, in the same units
    gram: Array  # the curvature


class PoolData:
    """What is known of all rows; see :class:`fenchel.data.RowData`. No row can be had."""

    by_column = False
    single = None
    halves = copied = False

    def __init__(self, facts: Facts, columns: Array) -> None:
        self.n, self.p, self.sparse, self.dtype = facts.n, facts.p, facts.sparse, facts.dtype
        self.stored, self.nbytes = facts.stored, facts.nbytes
        self.mean_squares = facts.mean_squares * np.square(columns) if columns.size else facts.mean_squares


class Passes:
    """Over the data so far, and the mean curvature of a row that was seen last."""

    def __init__(self, count: int = 0) -> None:
        self.count, self.bend = count, 0.0
        self.told = 0  # of them
        self.sample: Outcome | None = None  # until somebody asks for it
        self.drawn = False
        self.may_balance = True  # whether a certificate may take passes of its own


def class_codes(loss: Loss, facts: Facts, labels: Any) -> AnyArray | None:
    """The labels of the classes: as they are given, or class numbers where a loss sees all classes together."""
    if labels is not None:
        return np.asarray(labels)
    if not loss.coupled or facts.outputs > 1:
        return None  # of more than one column, each is a class
    found, name = facts.labels, type(loss).__name__
    if found is None or found.dtype.kind not in "biuf" or not np.array_equal(found, np.arange(found.size)):
        seen = "many different targets" if found is None else f"targets {', '.join(map(str, found[:4]))}"
        raise ValueError(f"the rows have {seen}; {name} takes class numbers 0, 1, 2, ... (estimators take any labels)")
    if found.size < 2:
        raise ValueError(f"the rows hold one class only; {name} needs two or more")
    return found


def check_targets(loss: Loss, facts: Facts) -> None:
    """Of a classifier: labels -1 and +1."""
    if not loss.classification or loss.coupled:
        return
    labels: Any = facts.labels
    good: Flags = np.zeros(1, dtype=bool) if labels is None else np.isin(labels, (-1, 1))
    if not good.all():
        found = "many different targets" if labels is None else f"targets {', '.join(map(str, labels[:4]))}"
        raise ValueError(
            f"the rows have {found}; {type(loss).__name__} takes labels -1 and +1 (an estimator takes any two classes)"
        )
    if labels.size < 2:
        raise ValueError(f"the rows hold one class only ({labels[0]}); {type(loss).__name__} needs both -1 and +1")


def inverse(values: Array) -> Array:
    """One over each, and 0 where they are not positive."""
    return np.divide(1.0, values, out=np.zeros(values.size), where=values > 0)


def whole_only(loss: Loss, home: str) -> str:
    """Why a loss of all rows at once does not go with rows in parts, and the way out."""
    return (
        f"loss is {loss!r}: the slope of a row depends on the scores of all others, and rows in {home} are in parts "
        "that know nothing of one another. Read them into memory by fenchel.io.read_data, or a sample of them"
    )
