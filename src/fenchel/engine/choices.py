"""What a round had better do, by the prices of the ways: all columns or a working set, a Gram matrix or none, a new one
or the old.

Counts of passes and rounds here are what such fits usually take. They only weigh one way against another: a wrong count
costs the difference between two ways that are about equally good.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.rules import HARD, LARGEST, MEMORY, TURNS
from .point import Point
from .restrictions.columns import SINGLE_FROM
from .set_parts import Restriction
from .units import Vector

if TYPE_CHECKING:
    from ..problem import Problem

PRODUCTS, PRODUCTS_QUADRATIC = 12, 4  # pairs of products with the set's columns that a fit takes
LOOKS = 6  # at all of the data, that a fit takes besides one for every alpha; larger: Gram matrices nobody needs
CALLS = 400  # of Python, that a round takes however small it is
FEWEST = 3  # units that a set begins with at least
EPOCHS = 28  # that SDCA-ADMM takes to a gap of 1e-6 where everything is active (measured on four problems: 21 to 28)
# Gram matrices that a curved loss takes where epochs to the same gap would be many (measured on four problems: 7 to 8);
# larger: epochs that get nowhere go on for longer.
GRAMS = 8
SPARE = 0.25  # of the price of a round: what a model may cost beyond its aim, if that saves one round in four or more
# Columns from which one Gram matrix of all, in single precision, beats those of growing sets if all of them count: two
# real problems with 256 columns were faster in growing sets, random ones with 375 and 781 slower. Larger: tall fits
# take longer.
WIDE = 320
SPREAD = 0.15  # of all columns: the support that is expected before anything is known


def expected_support(scores: Vector, n: int, count: int) -> float:
    """The support, of `count` coefficients, that the scores of units at the start foretell: where there are more rows
    than coefficients, about as many as are pulled much harder than zero holds them; otherwise nobody knows."""
    if n < count:
        return SPREAD * count
    return max(SPREAD, np.count_nonzero(scores > HARD) / max(scores.size, 1)) * count


def look_first(problem: Problem, prices: Any) -> bool:
    """Whether a look at all slopes may tell of a better way than working sets in compiled loops: not where features are
    more than rows, or where Gram matrices of all columns are made in no time."""
    if problem.data.sparse or problem.n < problem.p:
        return False
    gram = problem.n * problem.p**2 * prices.syrk32
    return bool(problem.p > WIDE or (not problem.loss.quadratic and gram > (EPOCHS - PRODUCTS) * prices.epoch_call))


class Choices:
    """Prices in nanoseconds, for one fit."""

    def __init__(self, point: Point, prices: Any) -> None:
        self.point, self.prices, self.data = point, prices, point.data
        self.entry = prices.csr_pass if self.data.sparse else prices.gemv
        self.curved = not point.loss.quadratic

    @property
    def pass_price(self) -> float:
        """A product with all of the data."""
        return float(self.data.stored * self.entry * self.point.outputs)

    def may_be_whole(self) -> bool:
        """Whether a Gram matrix of all columns is possible."""
        p = self.point.p
        if self.point.loss.across_rows:  # every new curvature makes all its columns anew, which is a copy of the data
            return False
        return self.point.outputs == 1 and p <= LARGEST and 8 * p * p <= max(MEMORY, self.data.nbytes)

    def first_size(self) -> int:
        """Coefficients that a set may begin with, so that its model costs no more than the look that chose them."""
        point, prices = self.point, self.prices
        most, size = self.pass_price + CALLS * prices.call, 10
        while size < point.w.size and self._model_price(2 * size) <= most:
            size *= 2
        return size

    def _model_price(self, size: float) -> float:
        """The columns of a set, their Gram matrix and descent on it, half of the coefficients being active."""
        n, prices = self.point.n, self.prices
        descent = TURNS * size * min(0.5 * size, n) * prices.descent + prices.copy * size * size
        if self.data.sparse:
            share = size / max(self.point.w.size, 1)
            return float(self.data.stored * prices.csr_pass + share**2 * self.data.pairs * prices.csr_gram + descent)
        return float(n * size * prices.copy + n * size * size / 2 * prices.syrk64 + descent)

    def whole_is_cheaper(self, support: float, rounds: int) -> bool:
        """Whether one Gram matrix of all columns costs less than rounds of working sets that end at this support."""
        n, p, prices = self.point.n, self.point.p, self.prices
        if self.data.sparse:
            made = self.data.pairs * prices.csr_gram + 2.0 * p * p
            return bool((2 if self.curved else 1) * made <= rounds * (2 * self.pass_price + CALLS * prices.call))
        copied = prices.copy if self.curved else prices.cast
        made = n * p * copied + n * p * p / 2 * prices.syrk32
        products = 2 * (PRODUCTS - 2 if self.curved else PRODUCTS_QUADRATIC - 1)
        whole = (2 if self.curved else 1) * made + products * self.pass_price
        size = min(p, 1.3 * support if n >= p else 2 * support)
        gram = n * size * size / 2 * (2 * prices.syrk32 if self.curved else prices.syrk64)
        products = 2 * (PRODUCTS if self.curved else PRODUCTS_QUADRATIC)
        some = gram + 2 * n * size * prices.copy + rounds * self.pass_price + products * n * size * prices.gemv
        return bool(whole <= some)

    def price_beside_epochs(self, support: float, epoch: Callable[[], float]) -> float:
        """Nanoseconds of a fit where epochs, of which `epoch` tells the price, are likely the better way: a curved loss
        on dense data whose Gram matrices for this support cost more than the epochs that the rest of a fit compares
        to. Otherwise 0."""
        if not self.curved or self.data.sparse or self.point.n < self.point.w.size or self.point.loss.across_rows:
            return 0.0
        gram, saved = self.point.n * support**2 / 2 * self.prices.syrk32, EPOCHS - PRODUCTS
        if 2 * gram <= saved * self.prices.epoch_call or 2 * gram <= saved * epoch():
            return 0.0
        return float(GRAMS * gram + PRODUCTS * epoch())

    def without_gram(self, working: Restriction, support: int, spent: float) -> bool:
        """Whether descent on sparse columns is cheaper than their Gram matrix and descent on that.

        Once descent has cost as much (`spent`) as the Gram matrix with a factor would, that is the better way: so both
        together cost at most about twice the better of the two.
        """
        if not self.data.sparse or self.point.outputs > 1:
            return False
        part, size, prices = working.columns[0], working.size, self.prices
        if not working.fits(size):
            return True
        if spent > self.gram_with_factor(working, support):
            return False
        gram = part.pairs * prices.csr_gram + prices.copy * size * size
        gram += TURNS * size * min(size, max(20, 2 * support)) * prices.descent
        return bool(TURNS * 1.3 * part.stored * prices.csc_pass + 5 * part.stored < gram)

    def gram_with_factor(self, working: Restriction, support: int) -> float:
        """What descent on sparse columns may cost before their Gram matrix is made; infinite where it has no room."""
        part, size, prices = working.columns[0], working.size, self.prices
        if not working.fits(size):
            return math.inf
        return float(part.pairs * prices.csr_gram + prices.copy * size * size + support**3 / 6 * prices.potrf)

    def column_pass_price(self, working: Restriction) -> float:
        """A pass of descent over the set's columns."""
        return float(1.3 * working.columns[0].stored * self.prices.csc_pass)

    def fresh_is_cheaper(self, known: int, size: int) -> bool:
        """Whether a Gram matrix in single precision costs less than the rows that are missing of the old one."""
        if not self.curved or self.data.sparse or not 0 < known < size:
            return False
        n, prices = self.point.n, self.prices
        made = n * size * size / 2 * (prices.syrk32 if size >= SINGLE_FROM else prices.syrk64) + n * size * prices.cast
        return bool(made < n * (size - known) * size * prices.syrk64)

    def spare(self, working: Restriction) -> float:
        """What may be spent on a better answer of an exact model, because it is little beside the round around it. (A
        model that is only near the loss is not worth it: what was gained is lost with the next one.)"""
        if self.curved:
            return 0.0
        read = sum(part.stored for part in working.columns) if self.data.sparse else self.point.n * working.size
        return float(SPARE * (2 * read * self.entry + self.pass_price + CALLS * self.prices.call))

    def _gram_price(self, working: Restriction) -> float:
        """A new Gram matrix of the set."""
        size, prices = working.size, self.prices
        if self.data.sparse:
            return float(sum(part.pairs for part in working.columns) * prices.csr_gram + 2.0 * size * size)
        return float(self.point.n * size * size / 2 * prices.syrk32 + self.point.n * size * prices.cast)

    def worth_a_gram(self, working: Restriction, gap: float, goal: float, rate: float, support: int) -> bool:
        """Whether what is left, at the present rate of a step, costs more than a new Gram matrix."""
        size, prices, n = working.size, self.prices, self.point.n
        sparse = self.data.sparse
        read = working.columns[0].stored if sparse else n * size
        turn = 2 * read * self.entry + n * prices.loss + 200 * prices.call
        turn += 10 * size * max(10, support) * prices.descent
        price = self._gram_price(working)
        goal = max(goal, 1e-300)
        left = math.log(max(gap / goal, 1.0001)) / math.log(1 / min(rate, 0.97))
        return bool(left * turn > price + (2 if gap > 100 * goal else 1) * turn)
