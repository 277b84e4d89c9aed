"""Penalties that are a sum over the entries: L1, limits, squares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .._validate import Array, Flags, Index, Ints, weight_vector
from ..foundation.lazy import lazy
from ..foundation.numerics import ROUNDING
from .base import Penalty, UnitForm, unbounded
from .run import run_prox


class Separable(Penalty):
    """sum_j weight_j |u_j| on lower_j <= u_j <= upper_j: what l1, bounds and their sums become."""

    kernel = value_kernel = "separable"
    nonnegative = True
    restrictable = True

    def __init__(self, weights: Array, lower: Array, upper: Array) -> None:
        self.weights, self.lower, self.upper = weights, lower, upper

    def times(self, factor: float) -> Separable:
        """Its weights multiplied; bounds stay where they are, and what is known of them."""
        out = Separable(factor * self.weights, self.lower, self.upper)
        out._unbounded = self._unbounded
        if factor > 0 and self._weighs_all:
            # a product may still be too small for a number
            out._weighs_all = bool(out.weights.min(initial=1.0) > 0)
        return out

    def size(self) -> int:
        return len(self.weights)

    @property
    def params(self) -> Array:
        return np.concatenate([self.weights, self.lower, self.upper])

    @property
    def index(self) -> Index:
        return np.array([self._unbounded], dtype=np.int64)

    def units(self, d: int) -> Ints:
        return np.arange(d)

    @lazy
    def _unbounded(self) -> bool:
        return not (np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @lazy
    def _weighs_all(self) -> bool:
        return bool((self.weights > 0).all())

    def value(self, u: Array) -> float:
        if self._unbounded:
            return float(self.weights @ np.abs(u))
        if np.any(u < self.lower) or np.any(u > self.upper):
            return np.inf
        return float(self.weights @ np.abs(u))

    def value_at_zero(self, d: int) -> float:
        return 0.0 if self._unbounded else self.value(np.zeros(d))

    def conjugate(self, y: Array) -> float:
        if self._unbounded and (np.abs(y) <= self.weights).all():
            return 0.0
        # the supremum of u y - w|u| over an interval is at 0 (clipped to it) or at an end
        if np.any(self._excess(y) > ROUNDING):
            return np.inf
        if self._unbounded:
            return float(np.sum(0.0 * y))  # what is no number stays none
        zero = np.clip(0.0, self.lower, self.upper)
        best = zero * y - self.weights * np.abs(zero)
        for end in (self.lower, self.upper):
            finite = np.isfinite(end)
            at = np.where(finite, end, 0.0)
            best = np.where(finite, np.maximum(best, at * y - self.weights * np.abs(at)), best)
        return float(best.sum())

    def _excess(self, y: Array) -> Array:
        """By how much |y| passes the weight on a side without a bound, relative to the scale of y."""
        if self._unbounded:
            over = np.abs(y) - self.weights
        else:
            over = np.maximum(
                np.where(np.isinf(self.upper), y - self.weights, -np.inf),
                np.where(np.isinf(self.lower), -y - self.weights, -np.inf),
            )
        return over / np.maximum(np.abs(y), self.weights + 1e-300)

    def gauge(self, y: Array) -> float:
        if self._unbounded:
            over = np.abs(y)
        else:
            over = np.maximum(np.where(np.isinf(self.upper), y, 0.0), np.where(np.isinf(self.lower), -y, 0.0))
            over = np.maximum(over, 0.0)
        if self._weighs_all:
            return float((over / self.weights).max(initial=0.0))
        if np.any(over[self.weights == 0] > 0):
            return np.inf
        ratio = np.divide(over, self.weights, out=np.zeros_like(over), where=self.weights > 0)
        return float(ratio.max(initial=0.0))

    def rounding(self, y: Array, moved: Array, at: Array) -> tuple[float, float]:
        if self._unbounded:
            return self.gauge(moved), 0.0
        # a slope beyond a finite limit grows by that limit; where there is neither limit nor weight, by the answer
        ends = [np.where(np.isfinite(end), np.abs(end), 0.0) for end in (self.lower, self.upper)]
        bare = (self.weights == 0) & (np.isinf(self.lower) | np.isinf(self.upper))
        rise = np.maximum(*ends) + np.where(bare, np.abs(at), 0.0)
        open_ended = (self.weights > 0) & (np.isinf(self.lower) | np.isinf(self.upper))
        held = np.divide(moved, self.weights, out=np.zeros_like(moved), where=open_ended)
        return float(held.max(initial=0.0)), float(moved @ rise)

    def growth(self, sizes: Array) -> float:
        return float(self.weights @ sizes)

    def local(self, u: Array) -> tuple[Array, Array, Array] | None:
        if not self._unbounded and (
            np.any((u != 0) & ((u <= self.lower) | (u >= self.upper))) or np.any((self.lower > 0) | (self.upper < 0))
        ):
            return None  # held by a bound
        return self.weights * np.sign(u), np.zeros_like(u), np.zeros_like(u)

    def prox_slope(self, u: Array, step: float | Array) -> tuple[Array, Array]:
        soft = np.sign(u) * np.maximum(np.abs(u) - step * self.weights, 0.0)
        free = ((soft != 0) | (self.weights == 0)) & (soft > self.lower) & (soft < self.upper)
        return free.astype(float), np.zeros_like(u)

    def zero_gauge(self, y: Array) -> float:
        at_zero = self.at_zero()
        return np.inf if at_zero is None else at_zero.gauge(y)

    @property
    def homogeneous(self) -> bool:
        """Where every limit is zero or none."""
        return bool(
            np.all((self.lower == 0) | np.isinf(self.lower)) and np.all((self.upper == 0) | np.isinf(self.upper))
        )

    def limits(self, d: int) -> tuple[Array, Array] | None:
        return None if self._unbounded else (self.lower, self.upper)

    def entry_weights(self, d: int) -> Array | None:
        return self.weights

    def radius(self, d: int) -> Array:
        return np.where(self.weights > 0, self.weights, self.weights.mean() or 1.0)

    def dual_balls(self, d: int) -> Array:
        return np.where(np.isinf(self.lower) & np.isinf(self.upper), self.weights, 0.0)

    def pulled_at_zero(self, d: int) -> Flags:
        return (self.weights > 0) | np.isfinite(self.lower) | np.isfinite(self.upper)

    def conjugate_curvature(self, u: Array, scale: float, ridge: float) -> Array | None:
        kinked = (self.weights > 0) & (u == 0)
        inside = (u > self.lower) & (u < self.upper)
        return np.diag(np.where(inside & ~kinked, 1 / ridge, 0.0))

    def at_zero(self) -> Separable | None:
        if np.any(self.lower > 0) or np.any(self.upper < 0):
            return None
        lower, upper = unbounded(len(self.weights))
        return Separable(self.weights, np.where(self.lower == 0, 0.0, lower), np.where(self.upper == 0, 0.0, upper))

    def bound_violations(self, y: Array) -> Ints:
        if self._unbounded:
            return np.zeros(0, dtype=np.int64)
        side = np.where(np.isinf(self.upper), y, 0.0) + np.where(np.isinf(self.lower), -y, 0.0)
        return np.flatnonzero((self.weights == 0) & (side > 0))

    def unit_form(self, d: int) -> UnitForm:
        return UnitForm(self.weights, self.lower, self.upper, bounded=not self._unbounded)

    def restricted(self, keep: Any) -> Penalty:
        return Separable(self.weights[keep], self.lower[keep], self.upper[keep])

    def __add__(self, other: Penalty) -> Penalty:
        if not isinstance(other, Separable):
            return super().__add__(other)
        lower, upper = np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper)
        bad = np.flatnonzero(lower > upper)
        if bad.size:
            raise ValueError(
                f"the bounds on coordinate {bad[0]} exclude each other: {lower[bad[0]]:g} > {upper[bad[0]]:g}"
            )
        return Separable(self.weights + other.weights, lower, upper)


class _SeparableLeaf(Penalty):
    """A public penalty that becomes a Separable of d coordinates."""

    def separable(self, d: int, scale: float = 1.0) -> Separable:
        raise NotImplementedError

    def value(self, u: Array) -> float:
        u = np.asarray(u, dtype=float)
        return self.separable(len(u)).value(u)

    def prox(self, u: Array, step: float | Array) -> Array:
        return run_prox(self.separable(len(u)), u, step)

    def conjugate(self, y: Array) -> float:
        y = np.asarray(y, dtype=float)
        return self.separable(len(y)).conjugate(y)

    def gauge(self, y: Array) -> float:
        y = np.asarray(y, dtype=float)
        return self.separable(len(y)).gauge(y)

    def units(self, d: int) -> Ints:
        return np.arange(d)


class L1(_SeparableLeaf):
    r"""The l1 norm, :math:`\sum_j \omega_j |u_j|`.

    Parameters
    ----------
    weights : vector, optional
        One per coordinate, not negative; 0 leaves a coordinate without penalty, infinity keeps it at 0.

    Notes
    -----
    Prox: soft threshold at :math:`s \omega_j`. Conjugate: 0 on :math:`|y_j| \le \omega_j`.
    """

    def __init__(self, weights: npt.ArrayLike | None = None) -> None:
        self.weights = None if weights is None else weight_vector("weights", weights, np.size(weights))

    def adapted(self, coef: Array, dearer: Callable[[Array], Array]) -> Penalty:
        usual = np.ones(coef.shape[1]) if self.weights is None else np.asarray(self.weights, dtype=float)
        return L1(usual * dearer(np.linalg.norm(coef, axis=0)))

    def size(self) -> int | None:
        return None if self.weights is None else len(self.weights)

    def separable(self, d: int, scale: float = 1.0) -> Separable:
        lower, upper = unbounded(d)
        if self.weights is None:
            made = Separable(np.full(d, scale), lower, upper)
            made._unbounded, made._weighs_all = True, scale > 0
            return made
        weights = self.weights
        if len(weights) != d:
            raise ValueError(f"weights has {len(weights)} entries; expected {d}")
        out = np.isinf(weights)
        if out.any():  # bounds hold such a coordinate; any finite weight will do
            weights = np.where(out, 1.0, weights)
            lower, upper = np.where(out, 0.0, lower), np.where(out, 0.0, upper)
        return Separable(scale * weights, lower, upper)


class NonNegative(_SeparableLeaf):
    r"""The constraint :math:`u \ge 0`. Prox: the positive part. Conjugate: 0 on :math:`y \le 0`."""

    has_strength = False

    def separable(self, d: int, scale: float = 1.0) -> Separable:
        return Separable(np.zeros(d), np.zeros(d), np.full(d, np.inf))


class Box(_SeparableLeaf):
    r"""The constraint :math:`\ell \le u \le h`; numbers or vectors.

    Notes
    -----
    Prox: the clip. Conjugate: :math:`\sum_j \max(\ell_j y_j, h_j y_j)`.
    """

    has_strength = False
    lower: Array
    upper: Array

    def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        for name, bound, never in (("lower", lower, np.inf), ("upper", upper, -np.inf)):
            bound = np.asarray(bound)
            if bound.dtype.kind not in "biuf" or bound.ndim > 1:
                raise ValueError(
                    f"{name} has dtype {bound.dtype}, shape {bound.shape}; it must be a number or a vector"
                )
            bad = np.flatnonzero(np.isnan(bound) | (bound == never))
            if bad.size:
                raise ValueError(f"{name}[{bad[0]}] is {np.ravel(bound)[bad[0]]:g}; it must not be NaN or {never:g}")
            setattr(self, name, bound.astype(float))
        try:
            low, high = np.broadcast_arrays(self.lower, self.upper)
        except ValueError:
            raise ValueError(f"lower has {self.lower.size} entries and upper {self.upper.size}") from None
        bad = np.flatnonzero(np.ravel(low > high))
        if bad.size:
            raise ValueError(
                f"lower[{bad[0]}] is {np.ravel(low)[bad[0]]:g}, above upper[{bad[0]}] = {np.ravel(high)[bad[0]]:g}"
            )
        self._size = None if low.ndim == 0 else low.size

    def size(self) -> int | None:
        return self._size

    def separable(self, d: int, scale: float = 1.0) -> Separable:
        return Separable(np.zeros(d), np.broadcast_to(self.lower, d).copy(), np.broadcast_to(self.upper, d).copy())


class Ridge(Penalty):
    r"""The quadratic :math:`\tfrac12 \|u\|^2`; merges into a block with the same map.

    Notes
    -----
    Prox: :math:`u / (1 + s)`. Conjugate: :math:`\tfrac12 \|y\|^2`.
    """

    def value(self, u: Array) -> float:
        return 0.5 * float(np.dot(u, u))

    def prox(self, u: Array, step: float | Array) -> Array:
        return np.asarray(u) / (1.0 + np.asarray(step))

    def conjugate(self, y: Array) -> float:
        return 0.5 * float(np.dot(y, y))

    def gauge(self, y: Array) -> float:
        return 0.0

    def units(self, d: int) -> Ints:
        return np.arange(d)
