"""Penalties psi: value, prox, conjugate; the algebra c * psi, psi @ map, psi + psi.

A penalty is written without knowing the data; ``compile.py`` compiles it for p features.

A penalty of your own defines `value`, `prox`, `conjugate` and `gauge`, in plain Python or with `numba_prox`; see
:class:`Penalty`. `fenchel.testing.check_penalty` proves any of them.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validate import Array, Flags, Index, Ints, MatrixLike, SparseMatrix
from ..foundation.numerics import AT_ONCE, ROUNDING
from ..maps import Identity, MadeMap, Map, Matrix, Operator
from .run import jacobian_by_differences, run_prox
from .written import Written


@dataclasses.dataclass(frozen=True)
class UnitForm:
    """A penalty that falls into units: sum_j weights_j |u_j| on lower <= u <= upper, plus norms_g |u_g|_2 for groups.

    `labels` numbers the group of every coordinate, groups one after another; None where there are no groups. `bounded`
    tells whether there may be a finite bound.
    """

    weights: Array
    lower: Array
    upper: Array
    labels: Ints | None = None
    norms: Array | None = None
    bounded: bool = True


class Penalty(Written):
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
    value_kernel: str | None = None  # the name of a compiled value in ``kernels/values.py``, with the same arrays
    numba_prox = None
    nonnegative = False
    is_leaf = True  # whether it is one function, and no sum, multiple or map of others
    has_strength = True  # whether a multiple of it differs from it; limits alone have none
    restrictable = False  # whether `restricted` is there
    weights_per: tuple[str, ...] = ("feature",)  # what its parameter `weights` counts: feature, group or term

    # -- the function itself, on its own coordinates u ------------------------------------------------

    def value(self, u: Array) -> float:
        """psi(u)."""
        raise TypeError(f"{type(self).__name__} must define value(u)")

    def prox(self, u: Array, step: float | Array) -> Array:
        """argmin over z of step psi(z) + |z - u|^2 / 2; `step` is a number or constant on each unit."""
        if self.kernel is None and self.numba_prox is None:
            raise TypeError(f"{type(self).__name__} must define prox(u, step), numba_prox or kernel")
        return run_prox(self.sized(len(u)), u, step)

    def conjugate(self, y: Array) -> float:
        """psi*(y); infinite outside its domain, up to rounding."""
        raise TypeError(f"{type(self).__name__} must define conjugate(y)")

    def gauge(self, y: Array) -> float:
        """The smallest t >= 0 with y in t times the domain of psi*; infinite where no t will do."""
        raise TypeError(f"{type(self).__name__} must define gauge(y)")

    def zero_gauge(self, y: Array) -> float:
        """The smallest t >= 0 with y in t times the subdifferential at 0; of a norm it is the domain of psi*."""
        return self.gauge(y)

    def units(self, d: int) -> Ints:
        """Labels of the d coordinates; the prox's step must agree on coordinates of one label."""
        return np.zeros(d, dtype=np.int64)

    def size(self) -> int | None:
        """The number of coordinates it needs, or None for any."""
        return None

    def sized(self, d: int) -> Penalty:
        """This function on d coordinates, ready for its kernel."""
        return self

    @property
    def params(self) -> Array:
        return np.zeros(1)

    @property
    def index(self) -> Index:
        return np.zeros(1, dtype=np.int64)

    def bound_violations(self, y: Array) -> Ints:
        """Coordinates where y breaks a one-sided dual bound of zero, which no scaling mends."""
        return np.zeros(0, dtype=np.int64)

    # -- what rounding may do to a dual bound; see ``problem/rounding.py`` -------------------------------

    def rounding(self, y: Array, moved: Array, at: Array) -> tuple[float, float]:
        """What a move of y by at most `moved` in every coordinate may add to the gauge, and to the conjugate within its
        domain; `at` is close to the maximiser of u'y - psi(u). By the values at coordinates of the largest size, as is
        right where signs do not matter."""
        held = max(self.gauge(moved), self.gauge(-moved)) if moved.any() else 0.0
        size = np.abs(y)
        if held > 0 or not moved.any() or not np.isfinite(self.conjugate(size)):
            return held, 0.0
        return 0.0, max(self.conjugate(size + moved) - self.conjugate(size), 0.0)

    def growth(self, sizes: Array) -> float:
        """At least what psi grows by where every coordinate moves by its size."""
        value = self.value(sizes)
        return value if np.isfinite(value) else float(self.radius(len(sizes)) @ sizes)

    # -- structure that an answer should carry exactly ------------------------------------------------

    def local(self, u: Array) -> tuple[Array, Array, Array] | None:
        """Slope and curvature at u: (slope, diagonal, direction), each of the length of u; None where it has none.

        On units that are zero all three are zero. On the others the curvature is ``diag(diagonal)`` less, for every
        unit, ``diagonal * direction direction'`` (`diagonal` is constant on a unit).
        """
        return None

    def prox_slope(self, u: Array, step: float | Array) -> tuple[Array, Array] | None:
        """The slope of the prox at u: (diagonal, direction), each of the length of u; None where it is not known.

        The derivative is ``diag(diagonal)`` plus, for every unit, ``direction direction'``.
        """
        return None

    def prox_jacobian(self, u: Array, step: float | Array) -> Array | SparseMatrix:
        """The derivative of the prox at u, a symmetric matrix (sparse or not) with eigenvalues from 0 to 1.

        Where it has none, one of a point close by. By differences where a penalty knows neither this nor its
        `prox_slope`; that takes as many proxes as the largest unit has coordinates.
        """
        slope = self.prox_slope(u, step)
        if slope is None:
            return jacobian_by_differences(self, u, step)
        diagonal, direction = slope
        out = sp.diags_array(diagonal)
        if direction.any():
            across = sp.csr_array((direction, (np.arange(len(u)), self.units(len(u)))))
            out = out + across @ across.T
        return sp.csr_array(out)

    def ties(self, u: Array) -> tuple[Ints, Ints, Array]:
        """Coordinates that u, a prox, holds equal or opposite: i, j and the sign with u_i = sign u_j. Zeros apart."""
        none = np.zeros(0, dtype=np.int64)
        return none, none, np.zeros(0)

    def restore(self, at: Array, u: Array) -> Array:
        """A point close to `at` with the structure of u, a prox, beyond zeros and ties; `at` itself if none is."""
        return at

    def kept_directions(self, u: Array) -> Array | None:
        """A basis (d, k) of the space in which the structure of u stays beyond zeros and ties; None where none does."""
        return None

    def value_at_zero(self, d: int) -> float:
        """The value at d zeros."""
        return self.value(np.zeros(d))

    def unit_form(self, d: int) -> UnitForm | None:
        """The function as a sum over single coordinates and groups of them; None where it is no such sum."""
        return None

    # -- what others ask of it; a penalty that does not know says so, and they do without --------------

    def limits(self, d: int) -> tuple[Array, Array] | None:
        """The lower and the upper limit of every coordinate; None where none of them is finite."""
        form = self.unit_form(d)
        return None if form is None or not form.bounded else (form.lower, form.upper)

    def entry_weights(self, d: int) -> Array | None:
        """omega, where the function is the sum of omega_j |u_j| within its limits; None where it is something else."""
        form = self.unit_form(d)
        return None if form is None or form.labels is not None else form.weights

    def vanishes(self, d: int) -> bool:
        """Whether it is surely zero everywhere, so that a block holds nothing but a quadratic."""
        weights = self.entry_weights(d)
        return weights is not None and not weights.any() and self.limits(d) is None

    def radius(self, d: int) -> Array:
        """The typical size of the entries of the subdifferential at 0: positive, and the same on each unit."""
        return np.ones(d)

    def dual_balls(self, d: int) -> Array:
        """The radius of the Euclidean ball that the dual variables of every coordinate's unit fill, 0 where they have
        no such domain."""
        return np.zeros(d)

    def latent_groups(self) -> tuple[list[Ints], Array] | None:
        """The groups whose parts add up to u, and their weights, where the penalty is a sum of norms of such parts."""
        return None

    def at_zero(self) -> Penalty | None:
        """The function as it looks from 0: limits elsewhere play no part; None where 0 is out of them."""
        return self

    def pulled_at_zero(self, d: int) -> Flags:
        """For every coordinate whether some y but 0 lies in the subdifferential at 0; a square has none there."""
        return np.full(d, self.zero_gauge(np.ones(d)) < np.inf)

    @property
    def homogeneous(self) -> bool:
        """Whether psi(t u) = t psi(u), so that the domain of psi* is the subdifferential at 0."""
        return type(self).zero_gauge is Penalty.zero_gauge

    def restricted(self, keep: Any) -> Penalty:
        """The function of some of the coordinates, the others zero; only where it is `restrictable`."""
        raise TypeError(f"{type(self).__name__} is not a sum over units that may be dropped")

    def conjugate_curvature(self, u: Array, scale: float, ridge: float) -> Array | None:
        """The second derivative (d, d) of the conjugate of ``scale psi + ridge/2 |.|^2`` at its slope in u.

        Units that are zero count as strictly inside their dual ball. None where it is not known.
        """
        return None

    def adapted(self, coef: Array, dearer: Callable[[Array], Array]) -> Penalty:
        """This penalty with its weights multiplied by ``dearer(sizes)``, the sizes of what they weigh in `coef`
        (outputs, p)."""
        raise ValueError(f"{self!r} has no weights to adapt")

    # -- parameters, as scikit-learn wants them ------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments by name; `deep` adds those of penalties among them, as ``name__inner``."""
        params = self._own_params()
        for name, value in list(params.items()):
            if deep and isinstance(value, Penalty):
                params |= {f"{name}__{inner}": one for inner, one in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Penalty:
        """Construct again with some arguments replaced, and pass ``name__inner`` on; returns self."""
        known = self._own_params()
        inner: dict[str, dict[str, Any]] = {}
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

    def _own_params(self) -> dict[str, Any]:
        kind: Any = type(self)
        return {name: getattr(self, name) for name in _arguments(kind)}

    def _construct(self, params: dict[str, Any]) -> None:
        type(self).__init__(self, **params)

    def __sklearn_clone__(self) -> Penalty:
        return copy.deepcopy(self)

    # -- algebra ------------------------------------------------------------------------------------

    def build(self, p: int | None) -> Penalty:
        """This penalty on p features, for those that are shorthand for an expression of others."""
        return self

    def terms(self, p: int | None = None) -> list[tuple[float, Penalty, Map]]:
        """The sum as a list of (scale, leaf, map); the map of a bare penalty is the identity."""
        built = self.build(p)
        return [(1.0, self, Identity())] if built is self else built.terms(p)

    def __add__(self, other: Penalty) -> Penalty:
        return Sum(self, other) if isinstance(other, Penalty) else NotImplemented

    def __mul__(self, scale: float) -> Penalty:
        number = bool(np.isscalar(scale))
        return Scaled(scale, self) if number else NotImplemented

    __rmul__ = __mul__

    def behind(self, p: int) -> tuple[Penalty, SparseMatrix] | None:
        """The penalty and the map that it stands behind as a whole, where there is one; else None."""
        return None

    def __matmul__(self, map_: Map | MatrixLike) -> Penalty:
        map_ = map_.to_numpy() if hasattr(map_, "to_numpy") else map_
        if isinstance(map_, np.ndarray) or sp.issparse(map_):
            map_ = Matrix(map_)
        elif hasattr(map_, "matvec") and not isinstance(map_, Map):
            map_ = Operator(map_)
        return Mapped(self, map_) if isinstance(map_, Map) else NotImplemented

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@functools.cache
def _arguments(kind: Any) -> tuple[str, ...]:
    """The names of a constructor's arguments."""
    return tuple(inspect.signature(kind).parameters)


class Sum(Penalty):
    """The sum of penalties."""

    is_leaf = False

    def __init__(self, *parts: Penalty) -> None:
        self.parts: tuple[Penalty, ...] = tuple(
            one for part in parts for one in (part.parts if isinstance(part, Sum) else [part])
        )

    def _own_params(self) -> dict[str, Any]:
        return {f"part{k}": part for k, part in enumerate(self.parts)}

    def _construct(self, params: dict[str, Any]) -> None:
        self.parts = tuple(params.values())

    def terms(self, p: int | None = None) -> list[tuple[float, Penalty, Map]]:
        return [term for part in self.parts for term in part.terms(p)]

    def written_parts(self, places: Ints | None, p: int) -> Iterator[tuple[Penalty, Ints | None]]:
        for part in self.parts:
            yield from part.written_parts(places, p)

    def adapted(self, coef: Array, dearer: Callable[[Array], Array]) -> Penalty:
        """Every part that has weights, for itself; squares, limits and the like stay as they are."""
        parts, some = [], False
        for part in self.parts:
            try:
                parts.append(part.adapted(coef, dearer))
                some = True
            except ValueError:
                parts.append(part)
        return Sum(*parts) if some else super().adapted(coef, dearer)

    def for_outputs(self, outputs: int, p: int) -> Penalty:
        return Sum(*(part.for_outputs(outputs, p) for part in self.parts))

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


class Scaled(Penalty):
    """A multiple of a penalty."""

    is_leaf = False

    def __init__(self, scale: float, part: Penalty) -> None:
        scale = float(scale)
        if not (np.isfinite(scale) and scale >= 0):
            raise ValueError(f"a penalty was multiplied by {scale:g}; the factor must be finite and not negative")
        self.scale, self.part = scale, part

    def terms(self, p: int | None = None) -> list[tuple[float, Penalty, Map]]:
        return [(self.scale * scale, leaf, map_) for scale, leaf, map_ in self.part.terms(p)]

    def written_parts(self, places: Ints | None, p: int) -> Iterator[tuple[Penalty, Ints | None]]:
        return self.part.written_parts(places, p)

    def adapted(self, coef: Array, dearer: Callable[[Array], Array]) -> Penalty:
        out: Penalty = self.scale * self.part.adapted(coef, dearer)
        return out

    def for_outputs(self, outputs: int, p: int) -> Penalty:
        out: Penalty = self.scale * self.part.for_outputs(outputs, p)
        return out

    def behind(self, p: int) -> tuple[Penalty, SparseMatrix] | None:
        found = self.part.behind(p)
        return None if found is None else (self.scale * found[0], found[1])

    def __repr__(self) -> str:
        return f"{self.scale:g} * ({self.part!r})"


class Mapped(Penalty):
    """A penalty behind a map."""

    is_leaf = False

    def __init__(self, part: Penalty, map: Map) -> None:
        self.part, self.map = part, map

    def terms(self, p: int | None = None) -> list[tuple[float, Penalty, Map]]:
        if p is None:
            return [(scale, leaf, inner @ self.map) for scale, leaf, inner in self.part.terms(None)]
        map_ = MadeMap(self.map.matrix(p))
        return [(scale, leaf, inner @ map_) for scale, leaf, inner in self.part.terms(map_.made.shape[0])]

    def behind(self, p: int) -> tuple[Penalty, SparseMatrix] | None:
        return self.part, self.map.matrix(p)

    def written_parts(self, places: Ints | None, p: int) -> Iterator[tuple[Penalty, Ints | None]]:
        chosen = self.map.selected()
        if chosen is None:
            return super().written_parts(places, p)
        return self.part.written_parts(chosen if places is None else places[chosen], p)

    def with_feature_names(self, names: Any) -> Any:
        chosen = self.map.selected()
        if chosen is None:  # what it acts on are no features
            return self
        own = self.part.with_feature_names([names[place] for place in chosen])
        return self if own is self.part else Mapped(own, self.map)

    def feature_graph(self, size: int) -> Any:
        from ..structure import Graph, Grid

        shape, joined = self.map.grid_shape(), self.map.neighbours()
        if shape is not None:
            return Grid(shape)
        return None if joined is None else Graph(joined[0], self.map.p or size, joined[1])

    def feature_shape(self, size: int) -> Any:
        return size if self.map.along_line else self.map.grid_shape()

    def __repr__(self) -> str:
        return f"({self.part!r}) @ {self.map!r}"


def unbounded(d: int) -> tuple[Array, Array]:
    """Bounds that are none, which nobody may change."""
    return _kept_unbounded(d) if d <= AT_ONCE else _unbounded(d)


def _unbounded(d: int) -> tuple[Array, Array]:
    bounds = np.full(d, -np.inf), np.full(d, np.inf)
    for bound in bounds:
        bound.flags.writeable = False
    return bounds


_kept_unbounded = functools.lru_cache(maxsize=4)(_unbounded)


class _Norm(Penalty):
    """A norm, through the gauge of its dual ball."""

    def conjugate(self, y: Array) -> float:
        return 0.0 if self.gauge(y) <= 1 + ROUNDING else np.inf

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.size()})"
