"""Penalties psi: value, prox, conjugate; the algebra c * psi, psi @ map, psi + psi.

A penalty is written without knowing the data; ``penalty_blocks.py`` compiles it for p features.

A penalty of your own defines `value`, `prox`, `conjugate` and `gauge`, in plain Python or with `numba_prox`; see
:class:`Penalty`. `fenchel.testing.check_penalty` proves any of them.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import itertools

import numpy as np
import scipy.sparse as sp

from ._validate import _count, finite_vector, index_array, repeated, weight_vector
from .maps import Copies, Identity, MadeMap, Map, Matrix

_TINY = 1e-12  # rounding slack of a dual constraint, relative to its radius
_DIFFERENCE = 1e-6  # of the largest coordinate, for a derivative that nobody told


@dataclasses.dataclass(frozen=True)
class UnitForm:
    """A penalty that falls into units: sum_j weights_j |u_j| on lower <= u <= upper, plus norms_g |u_g|_2 for groups.

    `labels` numbers the group of every coordinate, groups one after another; None where there are no groups. `bounded`
    tells whether there may be a finite bound.
    """

    weights: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    labels: np.ndarray | None = None
    norms: np.ndarray | None = None
    bounded: bool = True


class Penalty:
    """A convex function of u with a cheap prox, and its algebra.

    Attributes
    ----------
    kernel : str, function or None
        A prox to compile, by its name in ``kernels/penalties.py`` or as a static method of the same form;
        `params` and `index` are its arrays. None: `prox` is called.
    numba_prox : numba function (u, step) or None
        Overwrites u with the prox; `step` has one entry per coordinate, equal on each unit.
    nonnegative : bool
        Whether it is surely nowhere below zero.
    """

    kernel: str | None = None
    numba_prox = None
    nonnegative = False

    # -- the function itself, on its own coordinates u ------------------------------------------------

    def value(self, u) -> float:
        """psi(u)."""
        raise TypeError(f"{type(self).__name__} must define value(u)")

    def prox(self, u, step):
        """argmin over z of step psi(z) + |z - u|^2 / 2; `step` is a number or constant on each unit."""
        if self.kernel is None and self.numba_prox is None:
            raise TypeError(f"{type(self).__name__} must define prox(u, step), numba_prox or kernel")
        return run_prox(self.sized(len(u)), u, step)

    def conjugate(self, y) -> float:
        """psi*(y); infinite outside its domain, up to rounding."""
        raise TypeError(f"{type(self).__name__} must define conjugate(y)")

    def gauge(self, y) -> float:
        """The smallest t >= 0 with y in t times the domain of psi*; infinite where no t will do."""
        raise TypeError(f"{type(self).__name__} must define gauge(y)")

    def zero_gauge(self, y) -> float:
        """The smallest t >= 0 with y in t times the subdifferential at 0; of a norm it is the domain of psi*."""
        return self.gauge(y)

    def units(self, d: int) -> np.ndarray:
        """Labels of the d coordinates; the prox's step must agree on coordinates of one label."""
        return np.zeros(d, dtype=np.int64)

    def size(self) -> int | None:
        """The number of coordinates it needs, or None for any."""
        return None

    def sized(self, d: int) -> Penalty:
        """This function on d coordinates, ready for its kernel."""
        return self

    @property
    def params(self) -> np.ndarray:
        return np.zeros(1)

    @property
    def index(self) -> np.ndarray:
        return np.zeros(1, dtype=np.int64)

    def bound_violations(self, y) -> np.ndarray:
        """Coordinates where y breaks a one-sided dual bound of zero, which no scaling mends."""
        return np.zeros(0, dtype=np.int64)

    # -- structure that an answer should carry exactly ------------------------------------------------

    def local(self, u):
        """Slope and curvature at u: (slope, diagonal, direction), each of the length of u; None where it has none.

        On units that are zero all three are zero. On the others the curvature is ``diag(diagonal)`` less, for every
        unit, ``diagonal * direction direction'`` (`diagonal` is constant on a unit).
        """
        return None

    def prox_slope(self, u, step):
        """The slope of the prox at u: (diagonal, direction), each of the length of u; None where it is not known.

        The derivative is ``diag(diagonal)`` plus, for every unit, ``direction direction'``.
        """
        return None

    def prox_jacobian(self, u, step):
        """The derivative of the prox at u, a symmetric matrix (sparse or not) with eigenvalues from 0 to 1.

        Where it has none, one of a point close by. By differences where a penalty knows neither this nor its
        `prox_slope`; that takes as many proxes as the largest unit has coordinates.
        """
        slope = self.prox_slope(u, step)
        if slope is None:
            return _jacobian_by_differences(self, u, step)
        diagonal, direction = slope
        out = sp.diags_array(diagonal)
        if direction.any():
            across = sp.csr_array((direction, (np.arange(len(u)), self.units(len(u)))))
            out = out + across @ across.T
        return sp.csr_array(out)

    def ties(self, u):
        """Coordinates that u, a prox, holds equal or opposite: i, j and the sign with u_i = sign u_j. Zeros apart."""
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)

    def restore(self, at, u):
        """A point close to `at` with the structure of u, a prox, beyond zeros and ties; `at` itself if none is."""
        return at

    def value_at_zero(self, d: int) -> float:
        """The value at d zeros."""
        return self.value(np.zeros(d))

    def unit_form(self, d: int) -> UnitForm | None:
        """The function as a sum over single coordinates and groups of them; None where it is no such sum."""
        return None

    # -- parameters, as scikit-learn wants them ------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict:
        """The constructor's arguments by name; `deep` adds those of penalties among them, as ``name__inner``."""
        params = self._own_params()
        for name, value in list(params.items()):
            if deep and isinstance(value, Penalty):
                params |= {f"{name}__{inner}": one for inner, one in value.get_params().items()}
        return params

    def set_params(self, **params):
        """Construct again with some arguments replaced, and pass ``name__inner`` on; returns self."""
        known = self._own_params()
        inner: dict[str, dict] = {}
        for name in list(params):
            head, _, rest = name.partition("__")
            if head not in known or (rest and not isinstance(params.get(head, known[head]), Penalty)):
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known) or 'none'}"
                )
            if rest:
                inner.setdefault(head, {})[rest] = params.pop(name)
        if params:
            self._construct(known | params)
        for head, some in inner.items():
            self._own_params()[head].set_params(**some)
        return self

    def _own_params(self) -> dict:
        return {name: getattr(self, name) for name in _arguments(type(self))}

    def _construct(self, params) -> None:
        self.__init__(**params)

    def __sklearn_clone__(self):
        return copy.deepcopy(self)

    # -- algebra ------------------------------------------------------------------------------------

    def build(self, p: int | None) -> Penalty:
        """This penalty on p features, for those that are shorthand for an expression of others."""
        return self

    def terms(self, p: int | None = None):
        """The sum as a list of (scale, leaf, map); the map of a bare penalty is the identity."""
        built = self.build(p)
        return [(1.0, self, Identity())] if built is self else built.terms(p)

    def __add__(self, other):
        return Sum(self, other) if isinstance(other, Penalty) else NotImplemented

    def __mul__(self, scale):
        return Scaled(scale, self) if np.isscalar(scale) else NotImplemented

    __rmul__ = __mul__

    def __matmul__(self, map_):
        if isinstance(map_, np.ndarray) or sp.issparse(map_):
            map_ = Matrix(map_)
        return Mapped(self, map_) if isinstance(map_, Map) else NotImplemented

    def __repr__(self):
        return f"{type(self).__name__}()"


def _jacobian_by_differences(function: Penalty, u, step):
    """The derivative of a prox: the k-th coordinates of all units are moved together."""
    d, out = len(u), sp.lil_array((len(u), len(u)))
    _, labels = np.unique(function.units(d), return_inverse=True)
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(labels.max(initial=-1) + 2))
    parts = [order[first:last] for first, last in itertools.pairwise(bounds.tolist())]
    h = _DIFFERENCE * (np.abs(u).max(initial=0.0) + np.max(step) + 1e-300)
    columns = np.zeros((d, max(map(len, parts), default=0)))
    for k in range(columns.shape[1]):
        move = np.zeros(d)
        move[[part[k] for part in parts if len(part) > k]] = h
        columns[:, k] = (function.prox(u + move, step) - function.prox(u - move, step)) / (2 * h)
    for part in parts:
        own = columns[np.ix_(part, np.arange(len(part)))]
        values, vectors = np.linalg.eigh((own + own.T) / 2)
        out[np.ix_(part, part)] = (vectors * np.clip(values, 0.0, 1.0)) @ vectors.T
    return sp.csr_array(out)


@functools.cache
def _arguments(kind):
    """The names of a constructor's arguments."""
    return tuple(inspect.signature(kind).parameters)


class Sum(Penalty):
    def __init__(self, *parts):
        self.parts = tuple(one for part in parts for one in (part.parts if isinstance(part, Sum) else [part]))

    def _own_params(self):
        return {f"part{k}": part for k, part in enumerate(self.parts)}

    def _construct(self, params):
        self.parts = tuple(params.values())

    def terms(self, p=None):
        return [term for part in self.parts for term in part.terms(p)]

    def __repr__(self):
        return " + ".join(map(repr, self.parts))


class Scaled(Penalty):
    def __init__(self, scale, part):
        scale = float(scale)
        if not (np.isfinite(scale) and scale >= 0):
            raise ValueError(f"a penalty was multiplied by {scale:g}; the factor must be finite and not negative")
        self.scale, self.part = scale, part

    def terms(self, p=None):
        return [(self.scale * scale, leaf, map_) for scale, leaf, map_ in self.part.terms(p)]

    def __repr__(self):
        return f"{self.scale:g} * ({self.part!r})"


class Mapped(Penalty):
    def __init__(self, part, map):
        self.part, self.map = part, map

    def terms(self, p=None):
        if p is None:
            return [(scale, leaf, inner @ self.map) for scale, leaf, inner in self.part.terms(None)]
        map_ = MadeMap(self.map.matrix(p))
        return [(scale, leaf, inner @ map_) for scale, leaf, inner in self.part.terms(map_.made.shape[0])]

    def __repr__(self):
        return f"({self.part!r}) @ {self.map!r}"


# -- separable functions ----------------------------------------------------------------------------


class Separable(Penalty):
    """sum_j weight_j |u_j| on lower_j <= u_j <= upper_j: what l1, bounds and their sums become."""

    kernel = "separable"
    nonnegative = True

    def __init__(self, weights, lower, upper):
        self.weights, self.lower, self.upper = weights, lower, upper

    def times(self, factor) -> Separable:
        """Its weights multiplied; bounds stay where they are, and what is known of them."""
        out = Separable(factor * self.weights, self.lower, self.upper)
        out._unbounded = self._unbounded
        if factor > 0 and self._weighs_all:
            # a product may still be too small for a number
            out._weighs_all = bool(out.weights.min(initial=1.0) > 0)
        return out

    def size(self):
        return len(self.weights)

    @property
    def params(self):
        return np.concatenate([self.weights, self.lower, self.upper])

    @property
    def index(self):
        return np.array([self._unbounded], dtype=np.int64)

    def units(self, d):
        return np.arange(d)

    @functools.cached_property
    def _unbounded(self):
        return not (np.isfinite(self.lower).any() or np.isfinite(self.upper).any())

    @functools.cached_property
    def _weighs_all(self):
        return bool((self.weights > 0).all())

    def value(self, u):
        if self._unbounded:
            return float(self.weights @ np.abs(u))
        slack = _TINY * (1 + np.abs(u))
        if np.any(u < self.lower - slack) or np.any(u > self.upper + slack):
            return np.inf
        return float(self.weights @ np.abs(u))

    def value_at_zero(self, d):
        return 0.0 if self._unbounded else self.value(np.zeros(d))

    def conjugate(self, y):
        if self._unbounded and (np.abs(y) <= self.weights).all():
            return 0.0
        # the supremum of u y - w|u| over an interval is at 0 (clipped to it) or at an end
        if np.any(self._excess(y) > _TINY):
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

    def _excess(self, y):
        """By how much |y| passes the weight on a side without a bound, relative to the scale of y."""
        if self._unbounded:
            over = np.abs(y) - self.weights
        else:
            over = np.maximum(
                np.where(np.isinf(self.upper), y - self.weights, -np.inf),
                np.where(np.isinf(self.lower), -y - self.weights, -np.inf),
            )
        return over / np.maximum(np.abs(y), self.weights + 1e-300)

    def gauge(self, y):
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

    def local(self, u):
        if not self._unbounded and (
            np.any((u != 0) & ((u <= self.lower) | (u >= self.upper))) or np.any((self.lower > 0) | (self.upper < 0))
        ):
            return None  # held by a bound
        return self.weights * np.sign(u), np.zeros_like(u), np.zeros_like(u)

    def prox_slope(self, u, step):
        soft = np.sign(u) * np.maximum(np.abs(u) - step * self.weights, 0.0)
        free = ((soft != 0) | (self.weights == 0)) & (soft > self.lower) & (soft < self.upper)
        return free.astype(float), np.zeros_like(u)

    def zero_gauge(self, y):
        at_zero = self.at_zero()
        return np.inf if at_zero is None else at_zero.gauge(y)

    def at_zero(self):
        """The function as it looks from 0: bounds elsewhere play no part; None where 0 is out of bounds."""
        if np.any(self.lower > 0) or np.any(self.upper < 0):
            return None
        lower, upper = unbounded(len(self.weights))
        return Separable(self.weights, np.where(self.lower == 0, 0.0, lower), np.where(self.upper == 0, 0.0, upper))

    def bound_violations(self, y):
        if self._unbounded:
            return np.zeros(0, dtype=np.int64)
        side = np.where(np.isinf(self.upper), y, 0.0) + np.where(np.isinf(self.lower), -y, 0.0)
        return np.flatnonzero((self.weights == 0) & (side > 0))

    def unit_form(self, d):
        return UnitForm(self.weights, self.lower, self.upper, bounded=not self._unbounded)

    def keep(self, some):
        return Separable(self.weights[some], self.lower[some], self.upper[some])

    def __add__(self, other):
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

    def separable(self, d, scale=1.0) -> Separable:
        raise NotImplementedError

    def value(self, u):
        u = np.asarray(u, dtype=float)
        return self.separable(len(u)).value(u)

    def prox(self, u, step):
        return run_prox(self.separable(len(u)), u, step)

    def conjugate(self, y):
        y = np.asarray(y, dtype=float)
        return self.separable(len(y)).conjugate(y)

    def gauge(self, y):
        y = np.asarray(y, dtype=float)
        return self.separable(len(y)).gauge(y)

    def units(self, d):
        return np.arange(d)


def unbounded(d):
    """Bounds that are none."""
    return np.full(d, -np.inf), np.full(d, np.inf)


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

    def __init__(self, weights=None):
        self.weights = None if weights is None else weight_vector("weights", weights, np.size(weights))

    def size(self):
        return None if self.weights is None else len(self.weights)

    def separable(self, d, scale=1.0):
        weights = np.ones(d) if self.weights is None else self.weights
        if len(weights) != d:
            raise ValueError(f"weights has {len(weights)} entries; expected {d}")
        lower, upper = unbounded(d)
        out = np.isinf(weights)
        if out.any():  # bounds hold such a coordinate; any finite weight will do
            weights = np.where(out, 1.0, weights)
            lower[out] = upper[out] = 0.0
        return Separable(scale * weights, lower, upper)


class NonNegative(_SeparableLeaf):
    r"""The constraint :math:`u \ge 0`. Prox: the positive part. Conjugate: 0 on :math:`y \le 0`."""

    def separable(self, d, scale=1.0):
        return Separable(np.zeros(d), np.zeros(d), np.full(d, np.inf))


class Box(_SeparableLeaf):
    r"""The constraint :math:`\ell \le u \le h`; numbers or vectors.

    Notes
    -----
    Prox: the clip. Conjugate: :math:`\sum_j \max(\ell_j y_j, h_j y_j)`.
    """

    def __init__(self, lower, upper):
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

    def size(self):
        return self._size

    def separable(self, d, scale=1.0):
        return Separable(np.zeros(d), np.broadcast_to(self.lower, d).copy(), np.broadcast_to(self.upper, d).copy())


class Ridge(Penalty):
    r"""The quadratic :math:`\tfrac12 \|u\|^2`; merges into a block with the same map.

    Notes
    -----
    Prox: :math:`u / (1 + s)`. Conjugate: :math:`\tfrac12 \|y\|^2`.
    """

    def value(self, u):
        return 0.5 * float(np.dot(u, u))

    def prox(self, u, step):
        return np.asarray(u) / (1.0 + np.asarray(step))

    def conjugate(self, y):
        return 0.5 * float(np.dot(y, y))

    def gauge(self, y):
        return 0.0

    def units(self, d):
        return np.arange(d)


# -- groups -----------------------------------------------------------------------------------------


class _Groups(Penalty):
    """A sum over groups; on its own coordinates the groups stand one after another."""

    nonnegative = True

    def __init__(self, groups, weights=None):
        self.copies, self.bounds = _members(groups)
        self._default_weights = weights is None
        weights = np.sqrt(np.diff(self.bounds)) if weights is None else weights
        self.weights = finite_vector("weights", weights, len(self), minimum=0)
        self._local = False

    @classmethod
    def of_ranges(cls, bounds, weights):
        """Groups that stand one after another; nothing is checked, so that there may be millions."""
        return cls.of_flat(np.arange(bounds[-1]), np.asarray(bounds, dtype=np.int64), weights)

    @classmethod
    def of_flat(cls, copies, bounds, weights):
        """Groups whose features stand one group after another in `copies`, and that were checked by others."""
        out = cls.__new__(cls)
        out.copies, out.bounds = copies, bounds
        out.weights, out._default_weights, out._local = np.asarray(weights, dtype=float), False, False
        return out

    def __len__(self):
        return len(self.bounds) - 1

    @property
    def groups(self) -> list[np.ndarray]:
        """The features of every group."""
        return [self.copies[first:last] for first, last in itertools.pairwise(self.bounds.tolist())]

    def _own_params(self):
        # default weights follow the groups when those are replaced
        return {"groups": self.groups, "weights": None if self._default_weights else self.weights}

    def localised(self, keep=None):
        """The same function on the copies themselves; `keep` selects groups."""
        out = copy.copy(self)
        if keep is not None:
            out.bounds = np.concatenate([[0], np.cumsum(np.diff(self.bounds)[keep])]).astype(np.int64)
            out.weights, out._default_weights = self.weights[keep], False
        out.copies, out._local = np.arange(out.bounds[-1]), True
        return out

    def copies_map(self, p) -> Map:
        outside = np.flatnonzero(self.copies >= p)
        if outside.size:
            k = np.searchsorted(self.bounds, outside[0], side="right") - 1
            index_array(f"groups[{k}]", self.copies[self.bounds[k] : self.bounds[k + 1]], p)
        return Copies(self.copies, p)

    def _norms(self, u):
        raise NotImplementedError

    def _dual_norms(self, y):
        raise NotImplementedError

    def _split(self, u):
        """u in group order; u is given on features unless this is the localised form."""
        u = np.asarray(u, dtype=float)
        return u if self._local else u[self.copies]

    @property
    def params(self):
        return np.asarray(self.weights, dtype=float)

    @property
    def index(self):
        return np.concatenate([[len(self)], self.bounds]).astype(np.int64)

    def units(self, d):
        own = np.repeat(np.arange(len(self)), np.diff(self.bounds))
        if self._local:
            return own
        # on features: what no group holds is a unit of its own
        labels = len(self) + np.arange(d)
        labels[self.copies] = own
        return labels

    def size(self):
        return int(self.bounds[-1]) if self._local else None

    def value(self, u):
        return float(self.weights @ self._norms(self._split(u)))

    def prox(self, u, step):
        if not self._local:
            order = self.copies
            if len(np.unique(order)) < len(order):
                raise ValueError("the prox of overlapping groups has no closed form; solve a Problem instead")
            u = np.array(u, dtype=float)
            u[order] = run_prox(self.localised(), u[order], np.broadcast_to(step, u.shape)[order])
            return u
        return run_prox(self, u, step)

    def conjugate(self, y):
        return 0.0 if self.gauge(y) <= 1 + _TINY else np.inf

    def gauge(self, y):
        if not self._local and (len(np.unique(self.copies)) < len(self.copies)):
            raise ValueError("the conjugate of overlapping groups has no closed form; ask the Problem")
        y = np.asarray(y, dtype=float)
        size = self._dual_norms(self._split(y))
        if np.any(size[self.weights == 0] > _TINY * np.abs(y).max(initial=0.0)):
            return np.inf
        gauge = float(np.divide(size, self.weights, out=np.zeros_like(size), where=self.weights > 0).max(initial=0.0))
        if not self._local:
            left_out = np.ones(len(y), dtype=bool)
            left_out[self.copies] = False
            if np.any(np.abs(y[left_out]) > _TINY * np.abs(y).max(initial=0.0)):
                return np.inf
        return gauge

    def __repr__(self):
        return f"{type(self).__name__}({len(self)} groups)"


def _members(groups):
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
        One per group, not negative; the square root of the group's size by default.

    Notes
    -----
    Prox: :math:`u_g (1 - s \omega_g / \|u_g\|)_+`. Conjugate: 0 on :math:`\|y_g\| \le \omega_g`.
    Overlap is split by copies of the features, so that the prox stays closed.
    """

    kernel = "group_l2"

    def _norms(self, u):
        return np.sqrt(np.add.reduceat(u * u, self.bounds[:-1]))

    _dual_norms = _norms

    def unit_form(self, d):
        if not self._local:
            return None
        return UnitForm(np.zeros(d), *unbounded(d), labels=self.units(d), norms=np.asarray(self.weights, dtype=float),
                        bounded=False)  # fmt: skip

    def local(self, u):
        if not self._local:
            return None
        sizes = np.diff(self.bounds)
        norms = self._norms(u)
        inverse = np.repeat(np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0), sizes)
        weights, direction = np.repeat(self.weights, sizes), u * inverse
        return weights * direction, weights * inverse, direction

    def prox_slope(self, u, step):
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

    kernel = "group_linf"

    def _norms(self, u):
        return np.maximum.reduceat(np.abs(u), self.bounds[:-1])

    def ties(self, u):
        size = np.abs(u)
        group = self.units(len(u))
        top = np.flatnonzero((size > 0) & (size == np.maximum.reduceat(size, self.bounds[:-1])[group]))
        i, j = top[:-1], top[1:]
        same = group[i] == group[j]
        return i[same], j[same], np.sign(u[i] * u[j])[same]

    def prox_slope(self, u, step):
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

    def _dual_norms(self, y):
        return np.add.reduceat(np.abs(y), self.bounds[:-1])


class TraceNorm(Penalty):
    r"""The sum of singular values of u as a matrix of the given shape, C-ordered.

    Notes
    -----
    Prox: soft threshold of the singular values. Conjugate: 0 where the largest is at most 1.
    """

    def __init__(self, shape):
        shape = tuple(np.atleast_1d(shape).tolist())
        if len(shape) != 2 or min(shape) < 1:
            raise ValueError(f"shape is {shape}; it must be two positive numbers")
        self.shape = tuple(_count("shape", s) for s in shape)

    def size(self):
        return self.shape[0] * self.shape[1]

    def value(self, u):
        return float(np.linalg.svd(np.reshape(u, self.shape), compute_uv=False).sum())

    def prox(self, u, step):
        left, s, right = np.linalg.svd(np.reshape(u, self.shape), full_matrices=False)
        s = np.maximum(s - np.ravel(step)[0], 0.0)
        return ((left * s) @ right).ravel()

    def conjugate(self, y):
        return 0.0 if self.gauge(y) <= 1 + _TINY else np.inf

    def gauge(self, y):
        return float(np.linalg.norm(np.reshape(y, self.shape), 2))

    def prox_jacobian(self, u, step):
        r"""In the bases of the singular vectors it couples the entries (i, j) and (j, i) alone.

        With :math:`f = (s - t)_+` the symmetric part of such a pair is multiplied by
        :math:`(f_i - f_j) / (s_i - s_j)` and the other one by :math:`(f_i + f_j) / (s_i + s_j)`.
        """
        rows, columns = self.shape
        left, s, right = np.linalg.svd(np.reshape(u, self.shape))
        short = min(rows, columns)
        size, kept = np.zeros(max(rows, columns)), np.zeros(max(rows, columns))
        size[:short], kept[:short] = s, np.maximum(s - np.ravel(step)[0], 0.0)
        a, b = size[:rows, None], size[None, :columns]
        low, high = kept[:rows, None], kept[None, :columns]
        apart, both = a - b, a + b
        near = np.abs(apart) <= 1e-9 * both
        even = np.where(near, (np.minimum(low, high) > 0) + 0.0, (low - high) / np.where(near, 1.0, apart))
        odd = np.where(both > 0, (low + high) / np.where(both > 0, both, 1.0), 0.0)
        own, swapped = 0.5 * (even + odd), 0.5 * (even - odd)
        i, j = np.nonzero(own)
        # entry (i, j) of the bases as a vector of the length of u
        basis = (left[:, i][:, None, :] * right.T[:, j][None, :, :]).reshape(rows * columns, -1)
        images = basis * own[i, j]
        square = np.flatnonzero((i < short) & (j < short) & (swapped[i, j] != 0))
        if square.size:
            there = np.full((rows, columns), -1)
            there[i, j] = np.arange(i.size)
            images[:, square] += basis[:, there[j[square], i[square]]] * swapped[i, j][square]
        return images @ basis.T

    def restore(self, at, u):
        left, s, _ = np.linalg.svd(np.reshape(u, self.shape), full_matrices=False)
        rank = np.count_nonzero(s > 1e-13 * s[0])
        if rank == len(s):
            return at
        left = left[:, :rank]
        return (left @ (left.T @ np.reshape(at, self.shape))).ravel()

    def __repr__(self):
        return f"TraceNorm({self.shape})"


# -- the compiled prox ------------------------------------------------------------------------------


def run_prox(function: Penalty, u, step):
    """The compiled prox of a sized penalty, from Python."""
    u = np.array(u, dtype=float)
    if function.size() not in (None, len(u)):
        raise ValueError(f"{function!r} acts on {function.size()} coordinates, but there are {len(u)}")
    step = np.asarray(step, dtype=float)
    step = np.ascontiguousarray(step if step.shape == u.shape else np.broadcast_to(step, u.shape))
    arrays = u, step, function.params, function.index
    _by_address(compiled_prox(function).address)(len(u), *(array.ctypes.data for array in arrays))
    return u


@functools.cache
def _by_address(address):
    """A prox that takes the addresses of its arrays: to make typed pointers takes longer than most proxes do."""
    import ctypes

    return ctypes.CFUNCTYPE(None, ctypes.c_int64, *4 * [ctypes.c_void_p])(address)


def compiled_prox(function: Penalty):
    """The prox as a C function (or a callback into Python, which has `check`)."""
    from .kernels import compiled, penalties

    if function.kernel is not None:
        kernel = function.kernel
        return compiled.compile_prox(getattr(penalties, kernel) if isinstance(kernel, str) else kernel)
    if function.numba_prox is not None:
        return compiled.numba_prox(inspect.getattr_static(function, "numba_prox"))
    return compiled.python_prox(function.prox)


PENALTIES = {
    "l1": L1,
    "ridge": Ridge,
    "group-l2": GroupL2,
    "group-linf": GroupLinf,
    "trace-norm": TraceNorm,
    "non-negative": NonNegative,
    "box": Box,
}
