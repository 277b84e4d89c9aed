"""Norms of groups of features."""

from __future__ import annotations

import itertools
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from .._validate import Array, Flags, Index, Ints, SparseMatrix, index_array, repeated, weight_vector
from ..foundation.numerics import ROUNDING
from ..maps import Copies, Identity, Map
from .base import Penalty, UnitForm, unbounded
from .run import run_prox


class _Groups(Penalty):
    """A sum over groups; on its own coordinates the groups stand one after another."""

    nonnegative = True

    def __init__(self, groups: Any, weights: npt.ArrayLike | None = None) -> None:
        self.copies, self.bounds = _members(groups)
        self._default_weights = weights is None
        weights = np.sqrt(np.diff(self.bounds)) if weights is None else weights
        self.weights = weight_vector("weights", weights, len(self))
        self._local = False

    @classmethod
    def of_ranges(cls, bounds: Ints, weights: Array) -> Penalty:
        """Groups that stand one after another; nothing is checked, so that there may be millions."""
        return cls.of_flat(np.arange(bounds[-1]), np.asarray(bounds, dtype=np.int64), weights)

    @classmethod
    def of_flat(cls, copies: Ints, bounds: Ints, weights: Array) -> Penalty:
        """Groups whose features stand one group after another in `copies`, and that were checked by others."""
        out = cls.__new__(cls)
        out.copies, out.bounds = copies, bounds
        out.weights, out._default_weights, out._local = np.asarray(weights, dtype=float), False, False
        return out

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def groups(self) -> list[Ints]:
        """The features of every group."""
        return [self.copies[first:last] for first, last in itertools.pairwise(self.bounds.tolist())]

    def _own_params(self) -> dict[str, Any]:
        # default weights follow the groups when those are replaced
        return {"groups": self.groups, "weights": None if self._default_weights else self.weights}

    def localised(self, keep: Any = None) -> Penalty:
        """The same function on the copies themselves; `keep` selects groups."""
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        if keep is not None:
            out.bounds = np.concatenate([[0], np.cumsum(np.diff(self.bounds)[keep])]).astype(np.int64)
            out.weights, out._default_weights = self.weights[keep], False
        out.copies, out._local = np.arange(out.bounds[-1]), True
        return out

    def copies_map(self, p: int) -> Map:
        outside = np.flatnonzero(self.copies >= p)
        if outside.size:
            k = np.searchsorted(self.bounds, outside[0], side="right") - 1
            index_array(f"groups[{k}]", self.copies[self.bounds[k] : self.bounds[k + 1]], p)
        return Copies(self.copies, p)

    def copies_matrix(self, p: int) -> SparseMatrix:
        """The matrix of :meth:`copies_map`; the identity that everybody shares where groups stand one after another."""
        if self.copies.size == p and (self.copies == np.arange(p)).all():
            return Identity().shared(p)
        return self.copies_map(p).matrix(p)

    def _norms(self, u: Array) -> Array:
        raise NotImplementedError

    def _dual_norms(self, y: Array) -> Array:
        raise NotImplementedError

    def _split(self, u: Array) -> Array:
        """u in group order; u is given on features unless this is the localised form."""
        u = np.asarray(u, dtype=float)
        return u if self._local else u[self.copies]

    @property
    def params(self) -> Array:
        return np.asarray(self.weights, dtype=float)

    @property
    def index(self) -> Index:
        return np.concatenate([[len(self)], self.bounds]).astype(np.int64)

    def units(self, d: int) -> Ints:
        own = np.repeat(np.arange(len(self)), np.diff(self.bounds))
        if self._local:
            return own
        # on features: what no group holds is a unit of its own
        labels = len(self) + np.arange(d)
        labels[self.copies] = own
        return labels

    def size(self) -> int | None:
        return int(self.bounds[-1]) if self._local else None

    @property
    def is_leaf(self) -> bool:  # type: ignore[override]  # groups may overlap or not
        """Overlapping groups are a function behind copies of the features."""
        return self._local or np.unique(self.copies).size == len(self.copies)

    @property
    def restrictable(self) -> bool:  # type: ignore[override]  # groups may overlap or not
        return self._local

    def restricted(self, keep: Any) -> Penalty:
        groups, sizes = np.unique(self.units(self.bounds[-1])[keep], return_counts=True)
        out = object.__new__(type(self))
        out.__dict__.update(self.__dict__)
        out.bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        out.weights, out._default_weights = np.asarray(self.weights)[groups], False
        out.copies = np.arange(out.bounds[-1])
        return out

    def limits(self, d: int) -> tuple[Array, Array] | None:
        return None

    def entry_weights(self, d: int) -> Array | None:
        return None

    def radius(self, d: int) -> Array:
        sizes = np.diff(self.bounds)
        return np.repeat(self.weights / np.sqrt(sizes), sizes)

    def held(self, p: int) -> Flags | None:
        """The features that a weight of infinity keeps at zero; None where there is none."""
        out = np.isinf(self.weights)
        if not out.any():
            return None
        flags = np.zeros(p, dtype=bool)
        flags[self.copies[np.repeat(out, np.diff(self.bounds))]] = True
        return flags

    def without_held(self) -> _Groups | None:
        """The groups of finite weights; None where there is none of them."""
        kept = np.isfinite(self.weights)
        sizes = np.diff(self.bounds)
        if not kept.any():
            return None
        bounds = np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64)
        return cast("_Groups", self.of_flat(self.copies[np.repeat(kept, sizes)], bounds, self.weights[kept]))

    def value(self, u: Array) -> float:
        norms = self._norms(self._split(u))
        return float(np.sum(np.multiply(self.weights, norms, out=np.zeros_like(norms), where=norms > 0)))

    def value_at_zero(self, d: int) -> float:
        return 0.0

    def prox(self, u: Array, step: float | Array) -> Array:
        if not self._local:
            order = self.copies
            if len(np.unique(order)) < len(order):
                raise ValueError("the prox of overlapping groups has no closed form; solve a Problem instead")
            u = np.array(u, dtype=float)
            u[order] = run_prox(self.localised(), u[order], np.broadcast_to(step, u.shape)[order])
            return u
        return run_prox(self, u, step)

    def conjugate(self, y: Array) -> float:
        return 0.0 if self.gauge(y) <= 1 + ROUNDING else np.inf

    def gauge(self, y: Array) -> float:
        if not self._local and (len(np.unique(self.copies)) < len(self.copies)):
            raise ValueError("the conjugate of overlapping groups has no closed form; ask the Problem")
        y = np.asarray(y, dtype=float)
        size = self._dual_norms(self._split(y))
        if np.any(size[self.weights == 0] > ROUNDING * np.abs(y).max(initial=0.0)):
            return np.inf
        gauge = float(np.divide(size, self.weights, out=np.zeros_like(size), where=self.weights > 0).max(initial=0.0))
        if not self._local:
            left_out = np.ones(len(y), dtype=bool)
            left_out[self.copies] = False
            if np.any(np.abs(y[left_out]) > ROUNDING * np.abs(y).max(initial=0.0)):
                return np.inf
        return gauge

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} groups)"


def _members(groups: Any) -> tuple[Ints, Ints]:
    """The features of all groups one after another, and the bounds of the groups: many groups are looked at at once."""
    if isinstance(groups, np.ndarray) and groups.ndim == 2 and groups.size:
        sizes, kinds = np.full(len(groups), groups.shape[1]), groups
    else:
        groups = [np.asarray(group) for group in groups]
        if not groups:
            raise ValueError("groups is empty; give at least one group of feature indices")
        for k, group in enumerate(groups):
            if group.ndim != 1 or (group.size and group.dtype.kind not in "iu"):
                raise ValueError(
                    f"groups[{k}] has dtype {group.dtype} and shape {group.shape}; it must be a list of feature indices"
                )
            if group.size == 0:
                raise ValueError(f"groups[{k}] is empty; drop it or give it features")
        sizes, kinds = np.array([len(group) for group in groups]), np.concatenate(groups)
    if kinds.dtype.kind not in "iu":
        raise ValueError(f"groups has dtype {kinds.dtype}; it must hold feature indices")
    flat, bounds = kinds.ravel().astype(np.int64), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    below = np.flatnonzero(flat < 0)
    if below.size:
        k = np.searchsorted(bounds, below[0], side="right") - 1
        raise ValueError(f"groups[{k}] holds {flat[below[0]]}; features are numbered from 0")
    twice = repeated(flat, bounds)
    if twice is not None:
        raise ValueError(f"groups[{twice[0]}] names feature {twice[1]} twice")
    return flat, bounds


class GroupL2(_Groups):
    r"""The group lasso, :math:`\sum_g \omega_g \|u_g\|_2`.

    Parameters
    ----------
    groups : list of index lists
        They may overlap, be non-contiguous and leave features out.
    weights : vector, optional
        One per group, not negative; the square root of the group's size by default. 0 leaves a group without penalty,
        infinity keeps it at 0.

    Notes
    -----
    Prox: :math:`u_g (1 - s \omega_g / \|u_g\|)_+`. Conjugate: 0 on :math:`\|y_g\| \le \omega_g`.
    Overlap is split by copies of the features, so that the prox stays closed.
    """

    kernel = value_kernel = "group_l2"

    def _norms(self, u: Array) -> Array:
        return np.sqrt(np.add.reduceat(u * u, self.bounds[:-1]))

    def _dual_norms(self, y: Array) -> Array:
        return self._norms(y)

    def dual_balls(self, d: int) -> Array:
        return np.repeat(self.weights, np.diff(self.bounds)) if self._local else np.zeros(d)

    def unit_form(self, d: int) -> UnitForm | None:
        if not self._local:
            return None
        lower, upper = unbounded(d)
        return UnitForm(np.zeros(d), lower, upper, labels=self.units(d), norms=np.asarray(self.weights, dtype=float),
                        bounded=False)  # fmt: skip

    def conjugate_curvature(self, u: Array, scale: float, ridge: float) -> Array | None:
        out = np.zeros((len(u), len(u)))
        for weight, i, j in zip(self.weights, self.bounds[:-1], self.bounds[1:], strict=True):
            size = np.linalg.norm(u[i:j])
            if size > 0 or weight == 0:
                # across u the norm bends by weight/|u|, along it not at all
                along = np.outer(u[i:j], u[i:j]) / size**2 if size > 0 else np.zeros((j - i, j - i))
                bend = scale * weight / size if weight > 0 else 0.0
                out[i:j, i:j] = along / ridge + (np.eye(j - i) - along) / (ridge + bend)
        return out

    def local(self, u: Array) -> tuple[Array, Array, Array] | None:
        if not self._local:
            return None
        sizes = np.diff(self.bounds)
        norms = self._norms(u)
        inverse = np.repeat(np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0), sizes)
        weights, direction = np.repeat(self.weights, sizes), u * inverse
        return weights * direction, weights * inverse, direction

    def prox_slope(self, u: Array, step: float | Array) -> tuple[Array, Array] | None:
        if not self._local:
            return None
        sizes = np.diff(self.bounds)
        norms = np.repeat(self._norms(u), sizes)
        short = np.repeat(self.weights, sizes) * step  # by how much the prox shortens a group
        some = norms > short
        share = np.divide(short, norms, out=np.ones_like(u), where=some)
        direction = np.divide(u, norms, out=np.zeros_like(u), where=some)
        return np.where(some, 1.0 - share, 0.0), np.sqrt(share) * direction


class GroupLinf(_Groups):
    r"""Groups by their largest entry, :math:`\sum_g \omega_g \|u_g\|_\infty`; parameters as in GroupL2.

    Notes
    -----
    Prox: u minus its projection on the l1 ball of radius :math:`s \omega_g`. Conjugate: 0 on
    :math:`\|y_g\|_1 \le \omega_g`.
    """

    kernel = value_kernel = "group_linf"

    def _norms(self, u: Array) -> Array:
        return np.maximum.reduceat(np.abs(u), self.bounds[:-1])

    def ties(self, u: Array) -> tuple[Ints, Ints, Array]:
        size = np.abs(u)
        group = self.units(len(u))
        top = np.flatnonzero((size > 0) & (size == np.maximum.reduceat(size, self.bounds[:-1])[group]))
        i, j = top[:-1], top[1:]
        same = group[i] == group[j]
        return i[same], j[same], np.sign(u[i] * u[j])[same]

    def prox_slope(self, u: Array, step: float | Array) -> tuple[Array, Array] | None:
        if not self._local:
            return None
        # what the prox leaves alone keeps its slope; the largest entries, cut to one size, move together
        size = np.abs(run_prox(self, u, step))
        group = self.units(len(u))
        most = np.maximum.reduceat(size, self.bounds[:-1])[group]
        top = (size == most) & (most > 0)
        count = np.bincount(group, top, len(self))[group]
        direction = np.divide(np.sign(u), np.sqrt(count), out=np.zeros_like(u), where=top)
        return ((most > 0) & ~top).astype(float), direction

    def _dual_norms(self, y: Array) -> Array:
        return np.add.reduceat(np.abs(y), self.bounds[:-1])
