r"""What rounding may do to the two bounds of a certificate, so that what is left of them is true.

A sum of m products :math:`a_i b_i` in doubles is wrong by at most :math:`m u \sum |a_i b_i| \le m u \|a\| \|b\|`, in
whatever order it is made (u is half the distance of 1 to the next number). Everything follows from that, and from the
lengths of the columns, which are known: no look at the data is needed.

==========  ====================  ===============================================================================
Symbol      Name here             Meaning
==========  ====================  ===============================================================================
S(w)        reach                 :math:`\sum_j |w_j| \|Z_j\| / \sqrt n`, what the scores are made of
R           steepness             root of the mean square of the slopes of the loss
rho         error                 what the sums Z x + B y may be wrong by, feature by feature
s           moved                 :math:`B s = \rho`: y - s is feasible where y seems to be
==========  ====================  ===============================================================================

The objective at w is wrong by at most u R S(w) per term of a score, and by u per term of its own sum.

The dual point is feasible up to rho alone. Some s with B s = rho makes it feasible, and the gauge is sublinear, so that
y - s stays in the domain of psi* where the point is scaled by 1 / (gauge(y) + gauge(s)): the cost is in the scaling.
Where psi* is finite it may rise by what s moves it. Directions that no penalty holds, and limits of zero on one side,
know no such scaling, and neither do weights that are lost in rounding: there x can be moved so that they are met, see
``corrections.py``. Where that is not known it costs rho'w to first order, with the w of the answer at hand, or what it
takes to explain the targets where that is more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .._validate import Array, Ints
from ..foundation.lazy import lazy
from ..foundation.numerics import AT_ONCE
from ..foundation.numerics import UNIT as UNIT  # part of what this module offers
from ..penalties.block_sum import _once_per_map
from .objective import Objective

# operations with single numbers in every term: losses, conjugates, norms; smaller: bounds that rounding breaks
STEPS = 16
FEW = 4  # of them in one conjugate; smaller: the same
SCORE = 3  # with a score before its loss is made; smaller: the same
MOST_EXACT = 1 << 24  # numbers that are gone through with more digits, or a hundred times, in less than a second
_SIGNS = 4  # patterns of signs that tell how far the map spreads rounding where no row of B' has one entry
_SPREAD = 3.0  # times the largest of these, what other patterns may do; larger: less is proven


class Rounding(Objective):
    """An objective that knows what its own rounding may be."""

    rows_at_hand = True  # whether single dual variables can be had

    @property
    def column_lengths(self) -> Array:
        """|Z_j| / sqrt(n) of every feature of every output."""
        out: Array = np.tile(np.sqrt(self.data.mean_squares), self.vectors)
        return out

    @property
    def can_be_exact(self) -> bool:
        """Whether products with the data may be made with more digits: the machine has them, the data are not many."""
        return bool(np.finfo(np.longdouble).eps < UNIT / 64) and self.data.stored <= MOST_EXACT

    def exact_products(self, w: Array, x: Array) -> tuple[Array, Array]:
        """`scores` of w and `gradient_sum` of x, right but for their last digit."""
        long, (outputs, stride, offset, _) = np.longdouble, self.layout
        W, X = w.reshape(self.vectors, stride).astype(long), x.reshape(self.n, outputs).astype(long)
        scores, sums = np.zeros((self.n, outputs), dtype=long), np.zeros((self.vectors, stride), dtype=long)
        step = max(1, AT_ONCE * self.n // max(self.data.stored, 1))
        for first in range(0, self.n, step):
            part = slice(first, min(first + step, self.n))
            rows: Any = self.data.rows(np.arange(part.start, part.stop))
            rows = rows.astype(long)
            for k in range(self.vectors):
                own: Any = slice(None)
                column = k
                if offset.size:
                    own, column = np.flatnonzero(offset[part] == k * stride), 0
                some, at = rows[own], np.arange(part.start, part.stop)[own]
                scores[at, column] = some @ W[k, :-1] + W[k, -1]
                sums[k, :-1] += some.T @ X[at, column]
                sums[k, -1] += X[at, column].sum()
        return scores.astype(float).ravel(), self._mask(sums.astype(float).ravel())

    def reach(self, w: Array) -> float:
        """S(w): at least the root of the mean square, over the rows, of sum_j |z_ij w_j|."""
        parts = np.abs(w).reshape(self.vectors, self.p + 1)
        return float((parts[:, :-1] @ np.sqrt(self.data.mean_squares)).sum() + parts[:, -1].sum())

    def level_sizes(self, x: Array) -> Array:
        """What the sums of x are made of that intercepts ask for, one for each of them."""
        (outputs, stride, first, _), size = self.layout, np.abs(x)
        if first.size:
            return np.bincount(first // stride, size, self.vectors).astype(float, copy=False)
        return np.asarray(size.reshape(self.n, outputs).sum(axis=0))

    def row_conjugates(self, x: Array) -> Array:
        """(s_i f)*(x_i) of every visit, with its offset; infinite outside the domain."""
        if not self.weight.size:
            out = self.loss.conjugate(x, self.target)
        else:
            weight, out = self._weights(), np.zeros_like(x)
            some = weight > 0
            out[some] = weight[some] * self.loss.conjugate(x[some] / weight[some], self.target[some])
        return np.asarray(out - self.offset * x if self.offset.size else out)

    def steepness(self, primal: float, reach: float, x: Array | None = None) -> float:
        """R where the objective is `primal` and S(w) is `reach`, from what the loss says of itself; from x where it
        says nothing."""
        smoothness = self.loss.smoothness
        if smoothness is not None and self.loss.knows_least:
            # a smooth function that is at least zero is at least |slope|^2 / 2L
            heaviest = float(self.weight.max()) if self.weight.size else 1.0
            return math.sqrt(max(2 * smoothness * heaviest * primal, 0.0))
        if math.isfinite(self._steepest):
            return self._steepest
        if x is not None:
            return 2 * self._mean_length(x)
        # exponentials are terms of the values, and no larger than their sum
        own, each = self._value_terms
        return math.sqrt(self.visits) * (abs(primal) + own + each * (reach + self._offset_size)) + self._target_size

    def steepest_near(self, primal: float, reach: float, far: float, x: Array | None = None) -> float:
        """R where scores may be wrong by `far`; of a residual without bounds no more than the loss can have at all."""
        found = self.steepness(primal, reach, x) + self.steepening(far)
        return min(found, self._steepest) if self.loss.of_residual and not self.loss.quadratic else found

    def steepening(self, far: float) -> float:
        """What R may grow by where scores move by so much."""
        heaviest = float(self.weight.max()) if self.weight.size else 1.0
        return heaviest * (self.loss.smoothness or 0.0) * far

    @property
    def _added(self) -> int:
        """How many rows are added in plain sums."""
        return self.n

    @property
    def _added_slopes(self) -> Array:
        """How many terms the sum of a feature has, for every feature of every output: those of sparse rows are few."""
        out: Array = np.tile(self.data.terms, self.vectors)
        return out

    def _length(self, x: Array) -> float:
        """|x|."""
        return math.sqrt(float(x.dot(x)))

    def _rms(self, x: Array) -> float:
        """|x| / sqrt(n), of dual variables or of what stands for them."""
        return self._length(x) / math.sqrt(self.n)

    def _mean_length(self, x: Array) -> float:
        return math.sqrt(float(x.dot(x)) / self.n)  # np.linalg.norm takes longer than a small product

    @property
    def _steepest(self) -> float:
        """The largest R that the domain of the conjugate allows."""
        known: float = self.remembered("steepest", self._find_steepest)
        return known

    def _find_steepest(self) -> float:
        largest = np.maximum(*np.abs(self._domain()))
        return self._mean_length(largest) if np.isfinite(largest).all() else math.inf

    @property
    def _target_size(self) -> float:
        """Root of the mean square of targets and offsets, which stand in the same sums."""
        known: float = self.shared("target size", self._find_target_size)
        return known

    def _find_target_size(self) -> float:
        own = self.loss.target_size(self.target) if self.loss.across_rows else self._mean_length(self.target)
        return own + self._offset_size

    @property
    def _offset_size(self) -> float:
        return self._mean_length(self.offset) if self.offset.size else 0.0

    @property
    def _value_terms(self) -> tuple[float, float]:
        """What the values of the loss are made of beside themselves, in the mean, and for every unit of a score; see
        :meth:`fenchel.losses.Loss.value_terms`."""
        known: tuple[float, float] = self.remembered("value terms", self._find_value_terms)
        return known

    def _find_value_terms(self) -> tuple[float, float]:
        own, each = self.loss.value_terms(self.target)
        if type(own) is type(each) is float and not (own or each):
            return 0.0, 0.0
        weight = 1.0 if self.loss.across_rows else self._weights()
        both = np.broadcast_to(weight * own, self.visits), np.broadcast_to(weight * each, self.visits)
        return float(np.abs(both[0]).mean()), self._mean_length(both[1])

    @lazy
    def _conjugate_at_zero(self) -> float:
        return (
            -self.loss.least
            if self.loss.knows_least and self.loss.least is not None
            else self.mean_conjugate(np.zeros(self.visits))
        )

    def zero_rounding(self, value: float) -> float:
        """What the dual objective at x = 0 may have too much, which is minus the sum of the least losses."""
        if self.loss.knows_least or not math.isfinite(value):
            return 0.0
        own, each = self._value_terms
        return UNIT * (self.visits + STEPS) * (abs(value) + 2 * (own + each))

    def primal_rounding(self, w: Array, primal: float, x: Array | None = None, *, exact: bool = False) -> float:
        """What an objective that was computed at w may lack; `exact` where the scores are right but for their last
        digit, and sums were made in pairs."""
        if not math.isfinite(primal):
            return 0.0
        return self._rounding_at(primal, self.reach(w), int(np.count_nonzero(w)), self._map_rounding(w), x, exact)

    def _rounding_at(
        self, primal: float, reach: float, count: int, mapped: float, x: Array | None = None, exact: bool = False
    ) -> float:
        """The same for `count` coefficients and intercepts with this S(w), whose map rounds by so many u."""
        terms = SCORE if exact else count + SCORE
        sums = STEPS if exact else self.visits + count * (self.d // self.size + 1) + STEPS
        far = reach + self._target_size
        first = terms * self.steepest_near(primal, reach, UNIT * terms * far, x) * far
        return UNIT * float(first + sums * abs(primal) + self.within_values(reach) + mapped)

    def within_values(self, reach: float) -> float:
        """What the terms that values are made of may lose, in units of u, where S(w) is `reach`: a few digits of each
        row; all sums of them, where values have either sign."""
        own, each = self._value_terms
        terms = STEPS if self.loss.knows_least else self.visits + STEPS
        return terms * (own + each * (reach + self._offset_size))

    def _map_rounding(self, w: Array) -> float:
        """What rounding of B'w does to the penalty, in units of u; nothing where a row of B' has one entry."""
        if self._picks:
            return 0.0
        row, size = self.entries
        width: int = self.widest + 1
        parts = np.bincount(row, size * np.abs(w)[self.entry_slots], self.d).astype(float, copy=False)
        return width * sum((block.steepest_at(parts[i:j]) for block, i, j in self._parts()), start=0.0)

    # -- the dual bound ------------------------------------------------------------------------------

    def slope_error(self, x: Array, zx: Array, *, exact: bool = False) -> Array:
        """What Z x may be wrong by, feature by feature."""
        out: Array
        if exact:
            out = 2 * UNIT * np.abs(zx[self.feature_slots])
            return out
        out = UNIT * (self._added_slopes + SCORE) * self.n * self._rms(x) * self.column_lengths
        return out

    def moved(self, error: Array, y: Array, left: Array | None) -> Array:
        """|s| for every coordinate of B'w: what y may have to move by to be feasible. `left` is what Z x + B y is as
        computed, None where y was made from Z x by divisions."""
        if self.renames:
            out: Array = error[self.map.indices] / np.abs(self.map.data) + 2 * UNIT * np.abs(y)
            return out
        width = self.widest + 2
        error = error + UNIT * width * self._sums_of_sizes(y) + (0.0 if left is None else np.abs(left))
        if self.pins:
            alone, feature, share = self._pinned
            out = np.zeros(self.d)
            out[alone] = share * error[feature]
            return out
        if self.gram.is_diagonal:
            return np.asarray(abs(self.map) @ self.gram.solve(error))
        return self._stretched(error)

    @_once_per_map
    def _pinned(self) -> tuple[Ints, Ints, Array]:
        """What leaves what a feature lacks to the rows of B' that have it alone: these, their features and shares."""
        alone = np.flatnonzero(self.widths == 1)
        entry = self.map.indptr[alone]
        feature, size = self.map.indices[entry], np.abs(self.map.data[entry])
        total = np.bincount(feature, size**2, self.map.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(total[feature] > 0, size / total[feature], 0.0)
        return alone, feature, share

    def _stretched(self, error: Array) -> Array:
        """The same where the map spreads it: no bound for all signs that an error may have, but three times the largest
        of some patterns."""
        rng = np.random.default_rng(0)
        out = np.zeros(self.d)
        for _ in range(_SIGNS):
            sign = rng.choice([-1.0, 1.0], error.size)
            np.maximum(out, np.abs(self.map @ self.gram.solve(sign * error)), out=out)
        return _SPREAD * out

    def _sums_of_sizes(self, y: Array) -> Array:
        """What the sums B y are made of."""
        row, size = self.entries
        return np.bincount(self.map.indices, size * np.abs(y)[row], self.map.shape[1]).astype(float, copy=False)

    def conjugate_rounding(self, x: Array, w: Array, *, exact: bool = False) -> float:
        """What the sum of the conjugates may be wrong by."""
        terms = FEW if exact else self.visits + STEPS
        length, (own, _) = self._rms(x), self._value_terms
        size = length * (self._target_size + self.reach(w) + length + own)
        # a loss of all scores has sums of sums, which cancel
        size = size + own if self.loss.across_rows else size
        return UNIT * terms * size + self.zero_rounding(self._conjugate_at_zero)
