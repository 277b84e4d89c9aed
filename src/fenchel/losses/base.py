"""Losses f(u; t): value, gradient, conjugate, dual step, and the targets they take.

A loss is convex in the score u = z'w. The solver works on the conjugate f*, one variable per row; what
it asks of a loss is the *dual step*

    argmin_x  s f*(x / s; t) + C/2 (x - v)^2

for a row of weight s. The built-in losses name a compiled function for it (`kernel`); a loss of your own
may instead override :meth:`Loss.dual_step` in plain Python, or set `scalar_step` to a numba function.
`fenchel.testing.check_loss` proves any of them.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .._validate import Array
from ..foundation.numerics import DIFFERENCE, LARGEST, UNIT

if TYPE_CHECKING:
    pass

_TINY = 4 * UNIT  # rounding of a weight times the end of a domain, relative to it; an end at zero has none


@functools.cache
def _definer(cls: type[Any], name: str) -> type[Any]:
    """The class that an attribute is inherited from."""
    return next(one for one in cls.__mro__ if name in vars(one))


class Loss:
    """A convex loss of the score, with its conjugate.

    Subclasses define `value`, `gradient`, `conjugate` and `domain`, and one of `kernel` (the name of a
    compiled function and its `params`), `scalar_step` (a numba function of point, curvature and target)
    or `dual_step` (plain Python over arrays).
    """

    classification = False
    coupled = False  # whether it sees several scores of a row together; see `several.py`
    kernel: str | None = None
    scalar_step = None
    smoothness: float | None = None  # L: the gradient is L-Lipschitz; None where it is not
    quadratic = False  # whether the curvature is 1 everywhere
    of_residual = False  # whether f(u; t) depends on u - t alone, so that an offset may as well be in the target
    closed_step = True  # whether the dual step has a closed form; where it has none a visit to a row takes longer
    gradient_kernel: str | None = None  # the name of a compiled gradient in ``kernels/gradients.py``
    deviance = False  # whether the loss is half a deviance, up to a constant of the target: D^2 judges predictions
    likelihood = False  # whether the loss is minus the logarithm of a probability, which `probability` gives
    across_rows = False  # whether it is one function of all scores, and no sum over rows; see losses/coupled.py
    attained = True  # whether some score has the least value
    least: float | None = (
        None  # inf f, where it is the same for every target; defined beside `conjugate`, or not at all
    )

    @property
    def knows_least(self) -> bool:
        """Whether `least` may be believed: whoever redefines the conjugate, -inf f at 0, has not inherited it."""
        kind: Any = type(self)
        return self.least is not None and _definer(kind, "least") is _definer(kind, "conjugate")

    def value_terms(self, target: Array) -> tuple[Any, Any]:
        """How large the terms are that a value is made of, beside the value itself: a and b, numbers or one of each for
        every row, where none is larger than f + a + b |u|. Rounding is measured by that."""
        return 0.0, (0.0 if self.knows_least else np.abs(target))

    def falls_towards(self, target: Array) -> Array:
        """The side to which f falls for ever without reaching its least value: 1, -1, or 0 where it does reach it."""
        falls = self.classification and not self.attained
        return np.asarray(target, dtype=float) if falls else np.zeros(np.shape(target))

    def small_form(self) -> tuple[str, float] | None:
        """Its name among the losses of the compiled path (``kernels/small_losses.py``), and its parameter there."""
        return None

    @property
    def kinked(self) -> bool:
        """Whether the loss has points without a slope."""
        return self.smoothness is None

    @property
    def params(self) -> Array:
        return np.zeros(1)

    def value(self, score: Array, target: Array) -> Array:
        """f(u; t), elementwise."""
        raise TypeError(f"{type(self).__name__} must define value(score, target)")

    def gradient(self, score: Array, target: Array) -> Array:
        """A (sub)gradient in u, elementwise."""
        raise TypeError(f"{type(self).__name__} must define gradient(score, target)")

    def mean(self, score: Array) -> Array:
        """What a score predicts: the expected target, where that is not the score itself."""
        return score

    def probability(self, score: Array) -> Array:
        """The probability of the label +1, elementwise; only where there is a `likelihood`."""
        raise TypeError(f"{type(self).__name__} is not minus the logarithm of a probability")

    def curvature(self, score: Array, target: Array) -> Array:
        """The second derivative in u, elementwise; by differences where a loss does not define it. Newton's steps take
        it, so that it need not be exact."""
        score = np.asarray(score, dtype=float)
        h = DIFFERENCE * np.maximum(np.abs(score), 1.0)
        return np.maximum(self.gradient(score + h, target) - self.gradient(score - h, target), 0.0) / (2 * h)

    def sums(self, score: Array, target: Array, weight: Array) -> tuple[float, Array, Array]:
        """The weighted sum of f over vectors, with weighted slopes and curvatures; an empty `weight` counts as ones."""
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope = self.value(score, target), self.gradient(score, target)
            bend = self.curvature(score, target)
        if not weight.size:
            return float(np.sum(value)), np.asarray(slope, dtype=float), np.asarray(bend, dtype=float)
        some = weight > 0  # elsewhere the loss may overflow
        value, slope, bend = (weight * np.where(some, part, 0.0) for part in (value, slope, bend))
        return float(np.sum(value)), slope, bend

    def total(self, score: Array, target: Array, weight: Array) -> float:
        """The weighted sum of f over all rows; an empty `weight` counts as ones."""
        return self.sums(score, target, weight)[0]

    def total_conjugate(self, dual: Array, target: Array, weight: Array) -> float:
        """The conjugate of `total`; infinite outside the domain."""
        if not weight.size:
            return float(np.sum(self.conjugate(dual, target)))
        some = weight > 0
        if np.any(dual[~some] != 0):
            return np.inf
        return float(weight[some] @ self.conjugate(dual[some] / weight[some], target[some]))

    def for_classes(self) -> Loss | None:
        """The loss that sees the scores of several classes together and is this one for two; None where none does."""
        return None

    def for_proportions(self) -> Loss | None:
        """The loss that is this one for labels, with targets in [0, 1] in place of them; None where none is."""
        return None

    def for_outputs(self, outputs: int) -> Loss:
        """The loss of rows with so many scores; itself where it sees each of them alone."""
        return self

    def bent(self, h: Array, scores: Array) -> Array:
        """The change of the slopes, to first order, that goes with a change of the scores, where `sums` gave h."""
        return h * scores

    def inside(self, dual: Array, target: Array) -> Array:
        """A point of the domain of f* near x."""
        return np.clip(dual, *self.domain(target))

    def conjugate(self, dual: Array, target: Array) -> Array:
        """f*(x; t), elementwise; infinite outside the domain."""
        raise TypeError(f"{type(self).__name__} must define conjugate(dual, target)")

    def domain(self, target: Array) -> tuple[Array, Array]:
        """Lower and upper end of the domain of f*, elementwise."""
        raise TypeError(f"{type(self).__name__} must define domain(target)")

    def dual_step(self, point: Array, curvature: Array, target: Array) -> Array:
        """Prox of f*/curvature at point, elementwise."""
        if self.kernel is None and self.scalar_step is None:
            raise TypeError(f"{type(self).__name__} must define dual_step, scalar_step or kernel")
        point, curvature, target = (np.array(a, dtype=float) for a in np.broadcast_arrays(point, curvature, target))
        out, weight, params = np.zeros_like(point), np.ones_like(point), self.params
        self.compiled().ctypes(point.size, *(_pointer(a) for a in (out, point, curvature, target, weight, params)))
        return out

    def compiled(self) -> Any:
        """The dual step as a C function."""
        from ..kernels import compiled, losses

        if self.kernel is not None:
            return compiled.compile_step(getattr(losses, self.kernel) if isinstance(self.kernel, str) else self.kernel)
        if self.scalar_step is not None:
            return compiled.numba_step(inspect.getattr_static(self, "scalar_step"))
        return compiled.python_step(self._weighted_step)

    def compiled_gradient(self) -> Any:
        """The gradient as a C function of the same form, or a callback into Python."""
        from ..kernels import compiled, gradients

        if self.kernel is not None and self.gradient_kernel is not None:
            return compiled.compile_step(getattr(gradients, self.gradient_kernel))

        def gradient(score: Array, curvature: Array, target: Array, weight: Array) -> Array:
            return np.where(weight > 0, weight * self.gradient(score, target), 0.0)

        return compiled.python_step(gradient)

    def _weighted_step(self, point: Array, curvature: Array, target: Array, weight: Array) -> Array:
        out = np.zeros_like(point)
        some = weight > 0
        s = weight[some]
        out[some] = s * self.dual_step(point[some] / s, curvature[some] * s, target[some])
        return out

    def fold_labels(self, target: Array) -> Array | None:
        """What every fold of a cross-validation should hold in equal shares; None where nothing is."""
        return target if self.classification else None

    def target_size(self, target: Array) -> float:
        """How large slopes may be that are rounding, beside the largest target."""
        return float(np.abs(target).max(initial=0.0))

    def check_targets(self, target: npt.ArrayLike) -> Array:
        """The targets as a float array, or a ValueError that names the first one this loss cannot take."""
        target = np.asarray(target)
        if target.dtype.kind not in "biuf":
            raise ValueError(
                f"y has dtype {target.dtype}; {type(self).__name__} takes numbers (fenchel.StructuredClassifier takes "
                "classes by their names)"
            )
        target = np.ascontiguousarray(target, dtype=float)
        good = np.isfinite(target)
        if not good.all():
            bad = np.flatnonzero(~good)
            raise ValueError(f"y[{_where(bad[0], target)}] is {target.flat[bad[0]]}; y must be finite")
        # squares are added: for the objective, or for what rounding may do to it
        most = LARGEST if self.quadratic else float(np.sqrt(np.finfo(float).max / (4 * max(target.size, 1))))
        if target.size and max(-target.min(), target.max()) > most:
            place = int(np.argmax(np.abs(target)))
            raise ValueError(
                f"y[{_where(place, target)}] is {target.flat[place]:g}; the squares of numbers above {most:.3g} are "
                "too large to be summed: give y a larger unit"
            )
        if self.classification:
            good = np.abs(target) == 1
            if not good.all():
                bad, other = np.flatnonzero(~good), "for 0/1 labels pass 2 * y - 1"
                if self.for_proportions() is not None:
                    other = "or proportions, all of them from 0 to 1"
                    outside = np.flatnonzero((target < 0) | (target > 1))
                    inside = ((target > 0) & (target < 1)).any()  # where they are proportions, but for some
                    bad = outside if inside and outside.size else bad
                raise ValueError(
                    f"y[{_where(bad[0], target)}] is {target.flat[bad[0]]:g}; {type(self).__name__} takes labels -1 "
                    f"and +1 ({other})"
                )
            columns = target.reshape(len(target), -1)
            for j in range(columns.shape[1]):
                if len(target) and (columns[:, j] == columns[0, j]).all():
                    raise ValueError(
                        f"y holds one class only ({columns[0, j]:+g}); {type(self).__name__} needs both -1 and +1"
                    )
        return target

    def __repr__(self) -> str:
        inner = ", ".join(f"{key}={value:g}" for key, value in vars(self).items() if isinstance(value, (int, float)))
        return f"{type(self).__name__}({inner})"


def _where(flat: int, array: Array) -> str:
    return ", ".join(str(i) for i in np.unravel_index(flat, array.shape))


def _pointer(array: Array) -> Any:
    import ctypes

    return array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))


def _number(
    name: str, value: float, low: float, high: float = np.inf, *, open_low: bool = False, open_high: bool = False
) -> float:
    """A finite number in an interval, or a ValueError."""
    try:
        value = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; it must be a number") from None
    inside = (low < value if open_low else low <= value) and (value < high if open_high else value <= high)
    if not inside or not np.isfinite(value):
        left, right = "(" if open_low else "[", ")" if open_high or high == np.inf else "]"
        raise ValueError(f"{name} is {value:g}; it must lie in {left}{low:g}, {high:g}{right}")
    return value
