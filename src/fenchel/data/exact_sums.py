r"""Sums over parts of the data that do not depend on the order in which the parts are added.

Every number is cut into three limbs of 32 bits at places that are the same for all numbers: limb k holds the bits from
:math:`2^{32 (t - k)}` up, where t is the place of the leading bit. Limbs are whole numbers, so that adding them is
exact. Where a larger number comes in, t grows, and limbs that fall below the third are dropped. What a limb within the
final three holds is the sum of what the numbers have there, whoever was added first: a limb that counts in the end was
never dropped before, since t only grows. The end is one rounding of the same whole numbers, and so the same bits (the
idea of Demmel and Nguyen, 2015).

What is dropped is below :math:`2^{-64}` of the largest number that was added.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from .._validate import Array, Index

BITS = 32  # of a limb; 31 bits of room are left, so that 2^31 numbers may be added
LIMBS = math.ceil(np.finfo(float).nmant / BITS) + 1  # in which the 53 bits of a double lie, wherever they begin
_NOTHING: int = np.finfo(float).minexp * BITS  # the place of zero: below that of every number


class ExactSum:
    """A vector of sums so far.

    Attributes
    ----------
    place : array (m,), of the first limb
    limbs : array (3, m)
    odd : array (m,) or None
        Sums of what is not finite.
    """

    __slots__ = ("limbs", "odd", "place")

    def __init__(self, place: Index, limbs: Index, odd: Array | None = None) -> None:
        self.place, self.limbs, self.odd = place, limbs, odd

    @classmethod
    def of(cls, values: Array) -> ExactSum:
        """One vector of numbers, taken apart; nothing is lost."""
        values = np.asarray(values, dtype=float)
        finite = np.isfinite(values)
        odd = None
        if not finite.all():
            odd, values = np.where(finite, 0.0, values), np.where(finite, values, 0.0)
        exponent = np.frexp(values)[1].astype(np.int64)
        place = np.where(values != 0, exponent // BITS, _NOTHING)
        limbs = np.empty((LIMBS, values.size), dtype=np.int64)
        rest = _scaled(values, np.where(values != 0, -BITS * place, 0))
        for k in range(LIMBS):
            whole = np.trunc(rest)
            limbs[k] = whole
            rest = (rest - whole) * 2.0**BITS
        return cls(place, limbs, odd)

    def __add__(self, other: ExactSum) -> ExactSum:
        place = np.maximum(self.place, other.place)
        limbs = _lowered(self.limbs, place - self.place) + _lowered(other.limbs, place - other.place)
        odd = self.odd if other.odd is None else other.odd
        if self.odd is not None and other.odd is not None:
            with np.errstate(invalid="ignore"):
                odd = self.odd + other.odd
        return ExactSum(place, limbs, odd)

    def rounded(self) -> Array:
        """The sums as numbers."""
        first, second, third = self.limbs.copy()
        second += third >> BITS  # limbs may hold several bits too many, or be negative
        third &= (1 << BITS) - 1
        first += second >> BITS
        second &= (1 << BITS) - 1
        low = second.astype(float) * 2.0**BITS + third.astype(float)
        total = first.astype(float) + low * 2.0 ** (-2 * BITS)
        out = _scaled(total, np.where(self.place > _NOTHING, BITS * self.place, 0))
        return out if self.odd is None else np.where(self.odd != 0, self.odd, out)

    @property
    def nbytes(self) -> int:
        return self.place.nbytes + self.limbs.nbytes


def added(sums: Iterable[ExactSum]) -> ExactSum:
    """All of them in one."""
    total: ExactSum | None = None
    for one in sums:
        total = one if total is None else total + one
    if total is None:
        raise ValueError("there is nothing to add")
    return total


def _lowered(limbs: Index, steps: Index) -> Index:
    """The limbs as they are after the first place moved up by so many."""
    if not steps.any():
        return limbs
    out = np.where(steps == 0, limbs, 0)
    for step in range(1, LIMBS):
        moved = np.zeros_like(limbs)
        moved[step:] = limbs[:-step]
        out = np.where(steps == step, moved, out)
    return out


def _scaled(values: Array, exponents: Index) -> Array:
    """values * 2^exponents, in two steps: one alone may leave the range on the way."""
    half = exponents // 2
    out: Array = np.ldexp(np.ldexp(values, half), exponents - half)
    return out
