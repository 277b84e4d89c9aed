"""Means and deviations of the columns of a pool, as standardised columns ask for."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from .._validate import Array
from .partitions import Partition
from .roles import RowPool


@dataclasses.dataclass(frozen=True)
class Moments:
    """Weighted sums of the columns and of their squares, both around a centre."""

    centre: Array
    name = "moments"

    def __call__(self, part: Partition) -> tuple[Array, Any]:
        weight = part.weight if part.weight.size else np.ones(part.n)
        total, p = float(weight.sum()), part.p
        sums = np.empty((2, p))
        if part.sparse:
            values, columns, ends = part.arrays
            own, centre = np.repeat(weight, np.diff(ends)), self.centre[columns]
            sums[0] = np.bincount(columns, own * values, minlength=p) - total * self.centre
            # what is not stored lies at zero, as far from the centre as zero is
            stored = np.bincount(columns, own * ((values - centre) ** 2 - centre**2), minlength=p)
            sums[1] = stored + total * self.centre**2
        else:
            away = part.arrays[0] - self.centre
            sums[0], sums[1] = weight @ away, weight @ np.square(away)
        return sums.ravel(), None


def deviations(pool: RowPool) -> Array:
    """The weighted standard deviation of every column, and 1 where a column is constant: two passes.

    The second pass goes around the mean that the first one found, so that columns far from zero lose no digits.
    """
    p, total = pool.facts.p, pool.facts.positive_weight
    found = pool.run([Moments(np.zeros(p))])[0].sums
    mean = found[:p] / total
    found = pool.run([Moments(mean)])[0].sums
    rest, squares = found[:p] / total, found[p:] / total
    variance = np.maximum(squares - rest**2, 0.0)
    # what rounding of the mean leaves of a constant column is no deviation
    rounding = np.finfo(float).eps * pool.facts.n
    constant = variance <= rounding * variance + (rounding * mean) ** 2
    return np.where(constant, 1.0, np.sqrt(variance))
