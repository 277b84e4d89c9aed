r"""What rounding may do to bounds that are made of sums over rows in a pool; see ``rounding.py``.

Sums over partitions are exact (``data/exact_sums.py``), but within a partition of m rows they are plain: a sum is wrong
by at most (m + 3) u times what it is made of, and by one rounding in the end. What is asked of a row (targets, offsets)
is known by its largest value alone; slopes and what values are made of are summed in every look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array
from .rounding import SCORE, STEPS, UNIT, Rounding

if TYPE_CHECKING:
    from ..data.roles import RowPool
    from .looks import View


class PooledRounding(Rounding):
    """An objective over rows in a pool that knows what its own rounding may be; `x` are slopes as looks tell them."""

    pool: RowPool
    rows_at_hand = False

    def _rounding_of(self, view: View, primal: float) -> float:
        """What an objective that was computed at w may lack, see ``rounding.py``: the slopes there are known."""
        if not np.isfinite(primal):
            return 0.0
        w, (own, each) = view.w, view.slopes.terms
        reach, count, far = self.reach(w), int(np.count_nonzero(w)), self._target_size
        within = own + each * (reach + self._offset_size)
        first = (count + SCORE) * self._rms(view.slopes) * (reach + far)
        sums = (self._added + count + STEPS) * (abs(primal) + within) + STEPS * within
        return float(UNIT * (first + sums + self._map_rounding(w)))

    def conjugate_rounding(self, x: Any, w: Array, *, exact: bool = False) -> float:
        """See :class:`fenchel.problem.rounding.Rounding`; chords lie above a convex function, and cost nothing."""
        length = self._rms(x)
        size = length * (self._target_size + self.reach(w) + length + x.terms[0])
        out: float = UNIT * (self._added + STEPS) * size + self.zero_rounding(self._conjugate_at_zero)
        return out

    def zero_rounding(self, value: float) -> float:
        """See :class:`fenchel.problem.rounding.Rounding`; the terms are those of the targets."""
        size = abs(value) + 2 * self._target_size
        return 0.0 if self.loss.knows_least or not np.isfinite(value) else float(UNIT * (self._added + STEPS) * size)

    def level_sizes(self, x: Any) -> Array:
        """See :class:`fenchel.problem.rounding.Rounding`."""
        if len(x.factors) == 1:  # looked at along the intercepts
            return np.asarray(x.sizes)
        each = np.abs(x.sums.reshape(2, self.vectors, -1)[:, :, -1])
        return np.asarray((each * x.factors).sum(axis=0))

    @property
    def _added(self) -> int:
        """Rows of the largest partition: sums over partitions are exact."""
        out: int = self.pool.facts.together
        return out

    @property
    def _added_slopes(self) -> Array:
        return np.asarray(float(self._added))

    @property
    def _target_size(self) -> float:
        out: float = self.largest_target + self._offset_size
        return out

    @property
    def _offset_size(self) -> float:
        out: float = self.pool.facts.offset
        return out

    def _length(self, x: Any) -> float:
        return float(np.sqrt(x.squares))

    def _rms(self, x: Any) -> float:
        out: float = self._length(x) / float(np.sqrt(self.n))
        return out
