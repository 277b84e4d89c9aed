"""What a penalty looks like where it falls into units that share no feature.

A *unit* is one coefficient or a group of them. Its part of the penalty is

    norm |w_g|_2 + sum_j l1_j |w_j| + ridge_j w_j^2 / 2      on  lower <= w <= upper

which covers the l1 norm with weights, elastic nets, disjoint groups, sparse groups, bounds, and features without a
penalty. Coefficients are numbered output after output, as in ``Problem.unpack``.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..foundation.lazy import lazy

if TYPE_CHECKING:
    from ..penalties import UnitForm
    from ..problem import Problem

Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_FLAGS = "_bounded", "_unweighted", "_ridged"
_NONE, _NO_NORMS = np.zeros(0, np.int64), np.zeros(0)


@dataclasses.dataclass(frozen=True)
class Units:
    """The penalty of a problem, unit by unit; alpha is in the weights.

    Attributes
    ----------
    l1, ridge, lower, upper : vectors, one entry per coefficient
    norm : vector, one entry per unit; 0 where the unit has no norm of its own
    members, start : the coefficients of unit k are members[start[k]:start[k + 1]]
    label : the unit of every coefficient
    alone : whether every unit is one coefficient without a norm
    free : units whose coefficients have neither penalty nor bound
    """

    l1: Vector
    ridge: Vector
    lower: Vector
    upper: Vector
    norm: Vector
    members: Index
    start: Index
    label: Index
    alone: bool
    free: Index

    @property
    def count(self) -> int:
        return int(self.norm.size)

    def times(self, factor: float) -> Units:
        """The penalty multiplied; bounds stay where they are."""
        if factor == 1.0:
            return self
        return Units(factor * self.l1, factor * self.ridge, self.lower, self.upper, factor * self.norm, self.members,
                     self.start, self.label, self.alone, self.free)  # fmt: skip

    def of_coefficients(self, units: Index) -> tuple[Index, Index]:
        """The coefficients of these units one after another, and where each begins."""
        if self.alone:
            return units, np.arange(units.size + 1)
        sizes = np.diff(self.start)[units]
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.repeat(self.start[units] - start[:-1], sizes) + np.arange(start[-1])
        return self.members[places], start

    def local(self, units: Index) -> Units:
        """These units alone, in this order, with coefficients numbered anew."""
        members, start = self.of_coefficients(units)
        each = np.arange(members.size)
        label = each if self.alone else np.repeat(np.arange(units.size), np.diff(start))
        free = np.flatnonzero(np.isin(units, self.free)) if self.free.size else self.free
        found = Units(self.l1[members], self.ridge[members], self.lower[members], self.upper[members], self.norm[units],
                      each, start, label, self.alone, free)  # fmt: skip
        # what none of the units has, no part of them has
        found.__dict__.update((name, False) for name in _FLAGS if self.__dict__.get(name) is False)
        return found

    def value(self, w: Vector) -> float:
        """The penalty without its quadratic, inside the bounds."""
        if self.alone:
            return float(self.l1 @ np.abs(w))
        total = float(self.norm @ self.sizes(w))
        return total if self._no_l1 else total + float(self.l1 @ np.abs(w))

    def values(self, W: Vector) -> Vector:
        """The same for every row of W."""
        total = np.abs(W) @ self.l1
        if not self.alone:
            total = total + np.sqrt(np.add.reduceat(np.square(W[:, self.members]), self.start[:-1], axis=1)) @ self.norm
        return np.asarray(total)

    def quadratic(self, w: Vector) -> float:
        """The quadratic of the penalty."""
        return 0.5 * float(self.ridge @ np.square(w)) if self._ridged else 0.0

    def prox(self, v: Vector, step: float) -> Vector:
        """The w with the least |w - v|^2 / 2 and `step` times the penalty, quadratic and bounds included."""
        if self._no_l1:
            w = v.copy()
        else:
            hold = step * self.l1
            w = v - np.minimum(np.maximum(v, -hold), hold)
        if self._ridged:
            w /= 1 + step * self.ridge
        if self._bounded:
            w = np.minimum(np.maximum(w, self.lower), self.upper)
        if self.alone:
            return w
        norm, sizes = step * self.norm, self.sizes(w)
        if self._ridged:  # units with a norm have one quadratic
            norm /= 1 + step * self.ridge[self.members[self.start[:-1]]]
        left = np.divide(sizes - norm, sizes, out=np.zeros(sizes.size), where=sizes > norm)
        w *= left[self.label]
        return w

    def sizes(self, w: Vector) -> Vector:
        """The Euclidean norm of every unit."""
        if self.alone:
            return np.abs(w)
        squares = np.square(w) if self._natural else np.square(w[self.members])
        return np.asarray(np.sqrt(np.add.reduceat(squares, self.start[:-1])))

    def beyond(self, slope: Vector) -> Vector:
        """What the l1 weights, and bounds of zero, leave of the slopes -c: what a unit's norm has to hold."""
        pull = self._pull(slope)
        return pull if self._no_l1 else np.maximum(pull - self.l1, 0.0)

    def _pull(self, slope: Vector) -> Vector:
        """The size of the slopes, none where a bound of zero is in the way."""
        pull = np.abs(slope)
        if self._bounded:
            pull[((slope > 0) & (self.upper <= 0)) | ((slope < 0) & (self.lower >= 0))] = 0.0
        return pull

    def scores(self, slope: Vector) -> Vector:
        """How hard the slopes pull at units that are zero; above 1 such a unit leaves zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.alone:
                pull = self._pull(slope)
                scores = pull / self.l1
                return np.where(pull > 0, scores, 0.0) if self._unweighted else scores
            if self._normed:
                return self.sizes(self.beyond(slope)) / self.norm
            first = self.members[self.start[:-1]]
            pull = self._pull(slope)[first]
            single = np.where(pull > 0, pull / self.l1[first], 0.0)
            return np.where(self.norm > 0, self.sizes(self.beyond(slope)) / self.norm, single)

    @lazy
    def unheld_count(self) -> int:
        """Coefficients that nothing holds at zero."""
        if self._normed or not self._unweighted:
            return 0
        return int(np.count_nonzero(~self._weighed & np.isinf(self.lower) & np.isinf(self.upper)))

    @lazy
    def held(self) -> bool:
        """Whether a weight, a quadratic or the lack of room holds every coefficient in both directions, norms apart."""
        return not self._unweighted or bool(((self.l1 > 0) | (self.ridge > 0) | (self.lower == self.upper)).all())

    @lazy
    def plain_groups(self) -> bool:
        """Whether every unit is a group with a norm, or a single feature with a weight, and there is nothing else."""
        if self._bounded or self._ridged or not (self._no_l1 or np.isfinite(self.l1).all()):
            return False
        single = np.diff(self.start) == 1
        return self._normed or bool(((self.norm > 0) | (single & (self.l1[self.members[self.start[:-1]]] > 0))).all())

    @lazy
    def _bounded(self) -> bool:
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @lazy
    def _unweighted(self) -> bool:
        return not self.l1.all()

    @lazy
    def _ridged(self) -> bool:
        return bool(self.ridge.any())

    # penalties of many groups are asked for the same sums again and again: what they have not need not be looked at

    @lazy
    def _no_l1(self) -> bool:
        return not self.l1.any()

    @lazy
    def _normed(self) -> bool:
        """Whether every unit has a norm of its own."""
        return not self.alone and bool(np.all(self.norm > 0))

    @lazy
    def _natural(self) -> bool:
        """Whether the units stand one after another."""
        return np.array_equal(self.members, _counted(self.members.size))

    def scaling(self, slope: Vector) -> float:
        """The largest share s <= 1 of the slopes that the penalty can hold (its gauge is at most 1), quadratics and
        finite bounds left out."""
        hold = self._held(slope)
        if self.alone:
            share = np.divide(self.l1, hold, out=np.ones(hold.size), where=hold > self.l1)
            return float(share.min(initial=1.0))
        sizes = self.sizes(hold if self._no_l1 else np.maximum(hold - self.l1, 0.0))
        far = np.flatnonzero(sizes > self.norm)
        return self._largest_share(hold, far, sizes[far]) if far.size else 1.0

    def gauge_bound(self, sizes: Vector) -> float:
        """An upper bound of the share of slopes up to these sizes that weights and norms cannot hold: they would have
        to be so many times as large. Neither a weight nor a norm alone holds less than both together."""
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(sizes > 0, sizes / self.l1, 0.0)
            if self.alone:
                return float(np.max(each, initial=0.0, where=self.l1 > 0))
            by_weights = np.maximum.reduceat(each[self.members], self.start[:-1])
            return float(np.max(np.fmin(by_weights, self.sizes(sizes) / self.norm), initial=0.0))

    def _largest_share(self, hold: Vector, far: Index, sizes: Vector) -> float:
        """The largest s with |(s hold - l1)_+| <= norm on these groups, whose `sizes` are those at s = 1."""
        members, start = self.of_coefficients(far)
        some, weights, norms = hold[members], self.l1[members], self.norm[far]
        if not weights.any():
            return float((norms / sizes).min())
        from ..kernels.unit_groups import largest_share

        return float(largest_share(some, weights, norms, start))

    def _held(self, slope: Vector) -> Vector:
        """The size of the slopes where only weights hold them: no quadratic, and no bound on that side."""
        if (self._normed or (self.alone and not self._unweighted)) and not self._bounded and not self._ridged:
            return np.abs(slope)
        open_side = np.where(slope > 0, np.isinf(self.upper), np.isinf(self.lower))
        return np.where(open_side & (self.ridge == 0) & self._weighed, np.abs(slope), 0.0)

    @lazy
    def _weighed(self) -> npt.NDArray[np.bool_]:
        """Coefficients whose slope some weight can hold."""
        return (self.l1 > 0) | (self.norm[self.label] > 0)

    def share_of_weights(self, sizes: Vector) -> float:
        """The most that slopes of these sizes are of the weights that alone hold them: what they may add to a gauge."""
        if self.alone and not (self._unweighted or self._bounded or self._ridged):
            return float((sizes / self.l1).max())
        if self._normed and not (self._bounded or self._ridged):
            return float((self.sizes(sizes) / self.norm).max())
        some = np.where((self.ridge == 0) & self._weighed & (self.lower < self.upper), sizes, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.alone:
                share = some / self.l1
            else:
                single = (some / self.l1)[self.members[self.start[:-1]]]
                share = np.where(self.norm > 0, self.sizes(some) / self.norm, single)
        return float(np.max(share, initial=0.0, where=~np.isnan(share)))

    def unheld(self, slope: Vector) -> Vector:
        """The slopes that nothing holds, neither a weight, a quadratic nor a bound: zero at an answer."""
        if self._normed or not self._unweighted:
            return np.zeros(slope.size)
        open_side = np.where(slope > 0, np.isinf(self.upper), np.isinf(self.lower))
        return np.where(open_side & (self.ridge == 0) & ~self._weighed, slope, 0.0)

    def conjugate(self, slope: Vector) -> float:
        """The conjugate at slopes that the penalty can hold, quadratics and finite bounds included."""
        if not (self._ridged or self._bounded):
            return 0.0
        left = np.maximum(np.abs(slope) - self.l1, 0.0)
        if not left.any():
            return 0.0
        total = 0.0
        bound = np.where(slope > 0, self.upper, -self.lower)
        sure = (left > 0) & ((self.ridge > 0) | np.isfinite(bound))
        if self.alone:
            with np.errstate(divide="ignore", invalid="ignore"):
                far = np.minimum(np.where(self.ridge > 0, left / self.ridge, np.inf), bound)[sure]
            return float(np.sum(far * (left[sure] - 0.5 * self.ridge[sure] * far)))
        left[~sure] = 0.0
        left[bound <= 0] = 0.0
        size = self.sizes(left)
        over = np.flatnonzero(size > self.norm)
        ridge = self.ridge[self.members[self.start[over]]]
        beyond = size[over] - self.norm[over]
        with np.errstate(divide="ignore", invalid="ignore"):
            total = float(np.sum(np.where(ridge > 0, 0.5 * beyond**2 / ridge, 0.0)))
        return total


def units_of(problem: Problem) -> Units | str:
    """The units of a problem's penalty, or the reason why it does not fall into units; found once for a problem."""

    def make() -> Units | str:
        alpha, found = shared_units(problem)
        return found if isinstance(found, str) or alpha == problem.alpha else found.times(problem.alpha / alpha)

    units: Units | str = problem.remembered("units of the penalty", make)
    return units


def shared_units(problem: Problem) -> tuple[float, Units | str]:
    """An alpha, and the units of the penalty there: problems that differ in alpha alone share them."""
    found: tuple[float, Units | str]
    found = problem.shared("units of the penalty", lambda: (problem.alpha, _units_of(problem)))
    return found if found[0] > 0 else (problem.alpha, _units_of(problem))  # no multiple of zero is anything else


def _units_of(problem: Problem) -> Units | str:
    if problem.is_plain:  # nothing has to be put together
        (block,) = problem.blocks
        form = block.function.unit_form(block.d)
        if form is not None:
            if form.bounded and ((form.lower > 0).any() or (form.upper < 0).any()):
                return "zero is out of bounds"
            ridge = np.full(block.d, block.ridge) if block.ridge else np.zeros(block.d)
            weights = form.weights if block.scale == 1.0 else block.scale * form.weights
            group: Any = _NONE
            sizes = _NO_NORMS
            if form.labels is not None and form.norms is not None:
                group, sizes = form.labels, block.scale * form.norms
            found = _assembled(weights, ridge, form.lower, form.upper, group, sizes, form.bounded)
            if isinstance(found, Units):
                found.__dict__["_ridged"] = block.ridge > 0
                if not form.bounded:
                    found.__dict__["_bounded"] = False
            return found
    count = problem.vectors * problem.p
    l1, ridge = np.zeros(count), np.zeros(count)
    lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
    group, norms = np.full(count, -1, dtype=np.int64), [np.zeros(0)]
    known, bounded, renames = 0, False, problem.renames
    for block, first, last in problem._parts():
        form = block.function.unit_form(block.d)
        if form is None:
            return f"{type(block.function).__name__} does not fall into single coefficients and groups of them"
        rows = slice(problem.map.indptr[first], problem.map.indptr[last])
        if not renames and np.any(np.diff(problem.map.indptr[first : last + 1]) != 1):
            return "the penalty looks at combinations of features"
        feature, entry = problem.map.indices[rows].astype(np.int64), problem.map.data[rows]
        if not renames and (np.any(entry == 0) or np.bincount(feature, minlength=1).max() > 1):
            return "a feature stands in several places of one part of the penalty"
        size = np.abs(entry)
        l1[feature] += block.scale * size * form.weights
        if block.ridge:
            ridge[feature] += block.ridge * entry**2
        if form.bounded and (np.isfinite(form.lower).any() or np.isfinite(form.upper).any()):
            bounded = True
            ends = np.sort(np.array([form.lower / entry, form.upper / entry]), axis=0)
            lower[feature] = np.maximum(lower[feature], ends[0])
            upper[feature] = np.minimum(upper[feature], ends[1])
        if form.labels is not None and form.norms is not None:
            if np.any(group[feature] >= 0):
                return "groups overlap"
            widths = np.bincount(form.labels)
            first_of = np.cumsum(widths) - widths
            if np.any(size != size[first_of[form.labels]]):
                return "features of one group have different scales"
            group[feature] = known + form.labels
            norms.append(block.scale * size[first_of] * form.norms)
            known += form.norms.size
    if bounded and ((lower > 0).any() or (upper < 0).any()):
        return "zero is out of bounds"
    return _assembled(l1, ridge, lower, upper, group, np.concatenate(norms), bounded)


@functools.lru_cache(maxsize=4)
def _counted(count: int) -> Index:
    """0, 1, 2, ..., which nobody may change."""
    numbers = np.arange(count)
    numbers.flags.writeable = False
    return numbers


def _assembled(
    l1: Vector, ridge: Vector, lower: Vector, upper: Vector, group: Index, norms: Vector, bounded: bool
) -> Units | str:
    count, weighed = l1.size, bool(l1.all())
    if not norms.size:
        start, free = _counted(count + 1), _NONE
        if not weighed:
            free = np.flatnonzero((l1 == 0) & (ridge == 0) & np.isinf(lower) & np.isinf(upper))
        found = Units(l1, ridge, lower, upper, np.zeros(count), start[:-1], start, start[:-1], True, free)
        found.__dict__["_unweighted"] = not weighed
        return found
    inside = group >= 0
    every = bool(inside.all())
    if bounded and (inside & ((np.isfinite(lower) & (lower != 0)) | (np.isfinite(upper) & (upper != 0)))).any():
        return "bounds other than zero inside a group"
    if every:
        label, norm = group, norms
    else:
        label = np.where(inside, group, norms.size + np.cumsum(~inside) - 1)
        norm = np.concatenate([norms, np.zeros(count - np.count_nonzero(inside))])
    sizes = np.bincount(label, minlength=norm.size)
    if not sizes.all():  # groups without features
        used, label = np.unique(label, return_inverse=True)
        norm, sizes, label = norm[used], sizes[used], label.astype(np.int64)
    members = _counted(count) if (label[1:] >= label[:-1]).all() else np.argsort(label, kind="stable")
    start = np.zeros(norm.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=start[1:])
    first = members[start[:-1]]
    if ridge.any() and np.any(ridge[members] != np.repeat(ridge[first], sizes)):
        return "a quadratic that differs inside a group"
    free = _NONE
    if not norm.all():
        bare = (l1 == 0) & (ridge == 0) & np.isinf(lower) & np.isinf(upper)
        free = np.flatnonzero((norm == 0) & bare[first])
    return Units(l1, ridge, lower, upper, norm, members, start, label, False, free)


def dual_variables(problem: Problem, units: Units, zx: Vector) -> Vector:
    """y with Z x + B y = 0, split between the blocks so that as long a part of it as possible is feasible.

    `zx` is Z x on all slots. Where several blocks look at a coefficient, each takes what its weights, norms and bounds
    of zero hold, at the length to which the certificate will scale, and a quadratic or another bound takes the rest.
    """
    left = -zx[problem.feature_slots] / problem.n
    if len(problem.blocks) == 1:
        return np.asarray(problem.n * left[problem.map.indices] / problem.map.data)
    y = np.zeros(problem.d)
    parts: list[tuple[Any, slice, Index, Vector]] = []
    shared = np.zeros(left.size, dtype=np.int64)
    for block, first, last in problem._parts():
        rows = slice(problem.map.indptr[first], problem.map.indptr[last])
        feature = problem.map.indices[rows].astype(np.int64)
        shared[feature] += 1
        parts.append((block, slice(first, last), feature, problem.map.data[rows]))
    several = bool(np.any(shared > 1))
    length = 1.0 / max(units.scaling(left), 1e-300) if several else 1.0
    # blocks of single coefficients take what they hold first, groups of what is left
    for block, place, feature, entry in sorted(parts, key=lambda part: _form(part[0]).labels is not None):
        slope = left[feature] / entry
        if several:
            held = _held_by(_form(block), slope, length * block.scale, units.ridge[feature] > 0)
            slope = np.where(shared[feature] > 1, held, slope)
        y[place] = problem.n * slope
        left[feature] -= slope * entry
    if several:
        left[shared < 2] = 0.0
        for block, place, feature, entry in sorted(parts, key=lambda part: _reluctance(part[0])):
            slope, form = left[feature] / entry, _form(block)
            if block.ridge == 0 and form.labels is None and not np.any(form.weights):
                # mere bounds hold a slope on their own side alone
                slope = np.where(np.isfinite(np.where(slope > 0, form.upper, form.lower)), slope, 0.0)
            y[place] += problem.n * slope
            left[feature] -= slope * entry
    return y


def _form(block: Any) -> UnitForm:
    form: UnitForm = block.function.unit_form(block.d)
    return form


def _held_by(form: UnitForm, slope: Vector, length: float, bent: npt.NDArray[np.bool_]) -> Vector:
    """What a block holds of the slopes for nothing; what is beyond the norm of a group stays with it unless a quadratic
    of another block takes it (`bent`)."""
    if form.labels is None or form.norms is None:
        most = length * form.weights
        low, high = np.where(form.lower == 0, -np.inf, -most), np.where(form.upper == 0, np.inf, most)
        return np.asarray(np.clip(slope, low, high))
    size = np.sqrt(np.bincount(form.labels, slope**2, minlength=form.norms.size))
    share = np.minimum(1.0, length * form.norms / np.maximum(size, 1e-300))
    return np.where(bent, share[form.labels] * slope, slope)


def _reluctance(block: Any) -> int:
    """A quadratic holds any slope, at a price, and so does a bound; others are the last to be asked."""
    form = _form(block)
    if block.ridge > 0:
        return 0
    if np.isfinite(form.lower).any() or np.isfinite(form.upper).any():
        return 1
    return 2 if form.labels is not None else 3
