"""What the solvers of a model share: the penalty on its coefficients, and the factor of Newton's method."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf

from ...foundation.numerics import NOTHING
from ..curvatures.whole_gram import LIFT_SINGLE
from ..units import Index, Units, Vector

ROOM = 1.4  # times the support: a larger model is solved on the support first; larger: smaller matrices are copied less
NESTED = 60  # turns on one support at the most, before all units are looked at again; more are in vain if it is wrong
JITTER = {"float64": NOTHING, "float32": LIFT_SINGLE}  # of the largest diagonal entry: what makes a factor exist


@dataclasses.dataclass
class Layout:
    """What block descent knows of the units beforehand.

    Attributes
    ----------
    sizes : of the units
    plain : for every unit whether its penalty is its norm alone
    places : where what is known of its block begins in an array for all of them
    room : the size of that array
    widest : coefficients of the largest unit
    """

    sizes: Index
    plain: npt.NDArray[np.bool_]
    places: Index
    room: int
    widest: int

    @classmethod
    def of(cls, penalty: LocalPenalty) -> Layout:
        sizes = np.diff(penalty.start)
        other = (penalty.l1 > 0) | np.isfinite(penalty.lower) | np.isfinite(penalty.upper)
        plain = (penalty.norm > 0) & ~np.logical_or.reduceat(other, penalty.start[:-1])
        ends = np.cumsum(sizes * (sizes + 2))
        return cls(sizes, plain, ends - sizes * (sizes + 2), int(ends[-1]), int(sizes.max()))


@dataclasses.dataclass
class LocalPenalty:
    """The penalty on the coefficients of a model; `start` and `norm` are empty where every unit is one coefficient."""

    l1: Vector
    lower: Vector
    upper: Vector
    start: Index
    norm: Vector

    @classmethod
    def of(cls, units: Units) -> LocalPenalty:
        """Of units that stand one after another."""
        none = units.start[:0], units.norm[:0]
        return cls(units.l1, units.lower, units.upper, *(none if units.alone else (units.start, units.norm)))

    @functools.cached_property
    def layout(self) -> Layout:
        return Layout.of(self)

    @property
    def grouped(self) -> bool:
        return bool(self.norm.size)

    @functools.cached_property
    def bounded(self) -> bool:
        return not bool(np.isinf(self.lower).all() and np.isinf(self.upper).all())

    def value(self, v: Vector) -> float:
        total = float(self.l1 @ np.abs(v))
        if self.grouped:
            total += float(self.norm @ np.sqrt(np.add.reduceat(v * v, self.start[:-1])))
        return total

    def support(self, v: Vector) -> Index:
        """The coefficients of the units that are not zero."""
        if not self.grouped:
            return np.flatnonzero(v)
        live = np.add.reduceat(v * v, self.start[:-1]) > 0
        return np.flatnonzero(np.repeat(live, np.diff(self.start)))

    def part(self, some: Index) -> LocalPenalty:
        """On some of the coefficients: whole units of them."""
        limits = self.l1[some], self.lower[some], self.upper[some]
        if not self.grouped:
            return LocalPenalty(*limits, self.start[:0], self.norm[:0])
        units = np.searchsorted(self.start, some, side="right") - 1
        first = np.flatnonzero(np.diff(units, prepend=-1))
        return LocalPenalty(*limits, np.append(first, some.size), self.norm[units[first]])

    def of_units(self, units: Index, v: Vector, q: Vector) -> tuple[LocalPenalty, Index]:
        """On some units that are not zero, with the layout that the whole has; and their coefficients.

        Where single coefficients have weights, those that are zero and that the slope -q does not pull are left out.
        """
        known = self.layout
        sizes = known.sizes[units]
        start = np.zeros(units.size + 1, dtype=np.int64)
        np.cumsum(sizes, out=start[1:])
        some = np.repeat(self.start[units] - start[:-1], sizes) + np.arange(start[-1])
        plain = known.plain[units]
        if not plain.all():
            stays = (v[some] != 0) | (np.abs(q[some]) > 0.999 * self.l1[some]) | np.repeat(plain, sizes)
            sizes = np.add.reduceat(stays, start[:-1], dtype=np.int64)
            np.cumsum(sizes, out=start[1:])
            some = some[stays]
        part = LocalPenalty(self.l1[some], self.lower[some], self.upper[some], start, self.norm[units])
        part.layout = Layout(sizes, plain, known.places[units], known.room, known.widest)
        return part, some


def factor_of(H: Any, jitter: float) -> Any:
    """The Cholesky factor of a symmetric matrix given by its lower triangle in C's order; None where there is none."""
    diagonal = np.arange(len(H))
    for _ in range(4):
        H[diagonal, diagonal] += jitter
        factor, info = dpotrf(H.T, lower=0, clean=0, overwrite_a=0)
        if info == 0:
            return factor
        jitter *= 1000
    return None
