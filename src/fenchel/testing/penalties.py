"""Proofs by example that a penalty is what it says."""

from __future__ import annotations

import numpy as np

from .._validate import Array
from ..penalties import Block, Penalty, compile_penalty, compiled_prox
from .base import TRIED, _require


def check_penalty(penalty: Penalty, d: int, rng: int | np.random.Generator = 0) -> None:
    """Prove a penalty on d coordinates: value, prox, conjugate, gauge, units.

    A penalty with its own prox is checked as it is, and then as the solver sees it; a sum, a multiple, a
    penalty behind a map and overlapping groups only as the solver sees them, in blocks.

    Parameters
    ----------
    penalty : Penalty
    d : int
        The number of coordinates to try it on.
    rng : int or numpy Generator

    Raises
    ------
    AssertionError
        Names the law, the place and the numbers.
    """
    rng = np.random.default_rng(rng)
    blocks = compile_penalty(penalty, d, 1.0)
    if penalty.is_leaf:
        own = [block for block in blocks if block.function is penalty]
        if not own:
            _check_function(_Leaf(penalty, d), rng)
        _check_python_prox(penalty, d, own, rng)
        for u in _vectors(d, rng):
            total = sum(block.value(block.matrix @ u) for block in blocks)
            value = penalty.value(u)
            _require(_near(total, value, 1e-12), penalty, "the blocks add up to the value", value=value, blocks=total)
    for block in blocks:
        _check_function(_BlockFunction(block), rng)


class _Leaf:
    """A penalty on its own coordinates, as called from Python."""

    def __init__(self, penalty: Penalty, d: int) -> None:
        self.penalty, self.d = penalty, d
        self.value, self.conjugate, self.gauge = penalty.value, penalty.conjugate, penalty.gauge
        self.units = np.asarray(penalty.units(d))

    def prox(self, u: Array, step: float | Array) -> Array:
        return np.asarray(self.penalty.prox(u.copy(), step), dtype=float)


class _BlockFunction:
    """scale * function + ridge/2 |.|^2 of a compiled block, its prox as the solver takes it."""

    def __init__(self, block: Block) -> None:
        self.penalty, self.d = block.function, block.d
        self.value, self.conjugate, self.gauge = block.value, block.conjugate, block.gauge
        self.units = np.asarray(block.function.units(block.d))
        self._block, self._prox = block, _Prox(block.function)

    def prox(self, u: Array, step: float | Array) -> Array:
        shrink = 1.0 / (1.0 + np.broadcast_to(step, u.shape) * self._block.ridge)
        return self._prox(u * shrink, step * self._block.scale * shrink)


class _Prox:
    def __init__(self, function: Penalty) -> None:
        self._compiled, self._params, self._index = compiled_prox(function), function.params, function.index

    def __call__(self, u: Array, step: Array) -> Array:
        import ctypes

        from ..kernels.calls import PROX_CTYPE
        from ..kernels.compiled import raise_errors
        from ..losses.base import _pointer

        u, step = np.array(u, dtype=float), np.array(step, dtype=float)
        index = self._index.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        PROX_CTYPE(self._compiled.address)(u.size, _pointer(u), _pointer(step), _pointer(self._params), index)
        raise_errors(self._compiled)
        return u


def _near(a: float, b: float, tolerance: float) -> bool:
    return a == b or bool(np.abs(a - b) <= tolerance * (1 + np.abs(a) + np.abs(b)))


def _vectors(d: int, rng: np.random.Generator) -> list[Array]:
    """Vectors of every size, with zeros, with ties, and zero itself."""
    out = [np.zeros(d), np.ones(d), -np.ones(d)]
    for size in (1e-3, 0.3, 1.0, 5.0, 1e3):
        out.append(size * rng.standard_normal(d))
        out.append(size * rng.standard_normal(d) * (rng.random(d) < 0.4))
    out.append(rng.integers(-2, 3, d).astype(float))
    return out


def _check_function(function: _BlockFunction | _Leaf, rng: np.random.Generator) -> None:
    """All laws of one convex function on its own coordinates."""
    penalty, d = function.penalty, function.d
    _require(function.units.shape == (d,), penalty, "one unit label per coordinate", labels=function.units.size, d=d)
    pairs = []
    for u in _vectors(d, rng):
        for step in TRIED.steps:
            x = function.prox(u, step)
            _require(np.isfinite(x), penalty, "the prox is finite", coordinate=np.arange(d), u=u, step=step, prox=x)
            at_prox = {"u": u, "prox": x}
            _require(np.isfinite(function.value(x)), penalty, "the value is finite at the prox", at_prox, step=step)
            pairs.append((u, step, x))
    feasible = [u for u in _vectors(d, rng) if np.isfinite(function.value(u))] + [x for _, _, x in pairs[::7]]
    value = [_value(function, z) for z in feasible]
    _check_convex(function, feasible, value, rng)
    _check_prox(function, pairs, feasible, value, rng)
    duals = _check_duality(function, pairs, feasible, value)
    _check_gauge(function, duals, rng)
    _check_units(function, rng)


def _value(function: _BlockFunction | _Leaf, u: Array) -> float:
    value = function.value(u)
    _require(value > -np.inf, function.penalty, "the value is a number, or infinite", {"u": u}, value=value)
    return float(value)


def _check_convex(
    function: _BlockFunction | _Leaf, feasible: list[Array], value: list[float], rng: np.random.Generator
) -> None:
    for _ in range(60):
        i, j = rng.integers(0, len(feasible), 2)
        share = rng.random()
        between = _value(function, share * feasible[i] + (1 - share) * feasible[j])
        chord = share * value[i] + (1 - share) * value[j]
        _require(
            between <= chord + 1e-12 * (1 + abs(chord)),
            function.penalty,
            "the value is convex",
            vectors={"u": feasible[i], "v": feasible[j]},
            share=share,
            value=between,
            chord=chord,
        )


def _check_prox(
    function: _BlockFunction | _Leaf,
    pairs: list[tuple[Array, float, Array]],
    feasible: list[Array],
    value: list[float],
    rng: np.random.Generator,
) -> None:
    penalty = function.penalty
    others, at_others = np.array(feasible), np.array(value)
    for u, step, x in pairs:
        near = x + 10.0 ** rng.uniform(-7, 0, (8, 1)) * (1e-3 + np.abs(x)) * rng.standard_normal((8, function.d))
        # points next to x that a constraint may forbid are brought back into the domain by a prox
        near = np.vstack([near, [function.prox(z, 1e-6) for z in near[:4]], 0.999 * x, 1.001 * x])
        z = np.vstack([others, near])
        at_z = np.concatenate([at_others, [_value(function, v) for v in near]])
        at_x = function.value(x)
        excess = step * (at_z - at_x) + (z - x) @ (x - u)
        size = np.linalg.norm(z - x, axis=1) * (np.linalg.norm(x) + np.linalg.norm(u))
        # a constraint may call a point feasible that breaks it by rounding, hence the last term
        slack = 1e-11 * (step * (np.abs(at_z) + np.abs(at_x)) + size + 1e-6 + np.linalg.norm(x - u))
        _require(
            excess >= -slack,
            penalty,
            "the prox minimises step psi(z) + |z - u|^2 / 2",
            vectors={"u": u, "prox": x},
            step=step,
            excess=excess,
            value=at_x,
            other=at_z,
            distance=np.linalg.norm(z - x, axis=1),
        )
    for (u, step, x), (v, same_step, z) in zip(pairs[len(TRIED.steps) :], pairs, strict=False):
        change, slack = x - z, 1e-12 * (u @ u + v @ v)
        _require(
            change @ change <= change @ (u - v) + slack and step == same_step,
            penalty,
            "the prox is firmly non-expansive",
            vectors={"u": u, "other_u": v, "change": change},
            step=step,
        )


def _check_duality(
    function: _BlockFunction | _Leaf, pairs: list[tuple[Array, float, Array]], feasible: list[Array], value: list[float]
) -> list[Array]:
    """Moreau and Fenchel-Young; returns points of the domain of the conjugate."""
    penalty = function.penalty
    others, at_others = np.array(feasible), np.array(value)
    blurs, duals, at_duals = [], [np.zeros(function.d)], [float(function.conjugate(np.zeros(function.d)))]
    _require(np.isfinite(at_duals), penalty, "the conjugate is finite at 0 (psi is bounded below)")
    for u, step, x in pairs:
        y = (u - x) / step
        size = np.linalg.norm(y)
        # y carries the rounding of u and x, and may stand outside by the gauge of that
        blur = function.gauge(1e-15 * np.abs(u) / step * np.sign(y))
        blur = 1e-12 + (blur if np.isfinite(blur) else 0.0)
        gauge = function.gauge(y)
        law = "Moreau: (u - prox) / step lies in the domain of the conjugate"
        _require(gauge <= 1 + 10 * blur, penalty, law, {"u": u, "prox": x}, step=step, gauge=gauge)
        y = y * (1 - 20 * blur)
        at_y, at_x, inner = function.conjugate(y), function.value(x), x @ y
        slack = (1e-11 + 100 * blur) * (1e-3 + abs(at_x) + abs(inner) + np.linalg.norm(x) * size)
        _require(
            abs(at_x + at_y - inner) <= slack,
            penalty,
            "Fenchel-Young is an equality at the prox",
            vectors={"u": u, "prox": x},
            step=step,
            value=at_x,
            conjugate=at_y,
            inner=inner,
        )
        blurs.append(blur)
        duals.append(y)
        at_duals.append(at_y)
    left = at_others[:, None] + np.array(at_duals)
    right = others @ np.array(duals).T
    slack = 1e-11 * (1 + np.abs(at_others)[:, None] + np.abs(at_duals) + np.abs(others) @ np.abs(np.array(duals)).T)
    _require(left >= right - slack, penalty, "Fenchel-Young: psi(u) + psi*(y) >= u'y", left=left, right=right)
    # the other half of Moreau: y is the prox of psi*/step at u/step
    for (_, step, x), blur, y, at_y in list(zip(pairs, blurs, duals[1:], at_duals[1:], strict=True))[::3]:
        away = np.array(duals) - y
        above = np.array(at_duals) - at_y - away @ x
        slack = 1e-11 * (1 + np.abs(at_duals) + abs(at_y) + np.abs(away) @ np.abs(x))
        slack = slack + 50 * blur * np.abs(x) @ np.abs(y)
        law = "Moreau: (u - prox) / step is the prox of the conjugate"
        _require(above >= -slack, penalty, law, {"prox": x, "dual": y}, step=step, above=above)
    return duals


def _check_gauge(function: _BlockFunction | _Leaf, duals: list[Array], rng: np.random.Generator) -> None:
    penalty = function.penalty
    _require(function.gauge(np.zeros(function.d)) == 0, penalty, "the gauge is 0 at 0")
    candidates = [*_vectors(function.d, rng), *(-abs(v) for v in _vectors(function.d, rng)), *duals[1::9]]
    for y in candidates:
        gauge = function.gauge(y)
        _require(gauge >= 0, penalty, "the gauge is not negative", {"y": y}, gauge=gauge)
        for factor in (1e-3, 2.0):
            law, multiple = "the gauge of a multiple is the multiple of the gauge", function.gauge(factor * y)
            ok = _near(multiple, factor * gauge, 1e-10)
            _require(ok, penalty, law, {"y": y}, factor=factor, gauge=gauge, gauge_of_multiple=multiple)
        if gauge == 0:
            law = "gauge 0: the conjugate is finite along the whole ray"
            for factor in (1e-3, 1.0, 1e3):
                _require(np.isfinite(function.conjugate(factor * y)), penalty, law, {"y": y}, factor=factor)
                _check_bounded(function, factor * y)
        elif np.isinf(gauge):
            law = "gauge infinite: the conjugate is infinite along the whole ray"
            for factor in (1e-6, 1.0):
                _require(function.conjugate(factor * y) == np.inf, penalty, law, {"y": y}, factor=factor)
            _check_unbounded(function, y / np.linalg.norm(y))
        else:
            edge = y / gauge
            law = "the conjugate is finite where the gauge is below 1"
            _require(np.isfinite(function.conjugate((1 - 1e-9) * edge)), penalty, law, {"y": y}, gauge=gauge)
            _check_bounded(function, 0.99 * edge)
            law = "the conjugate is infinite where the gauge is above 1"
            _require(function.conjugate((1 + 1e-9) * edge) == np.inf, penalty, law, {"y": y}, gauge=gauge)
            _check_unbounded(function, 1.5 * edge)


def _check_bounded(function: _BlockFunction | _Leaf, y: Array) -> None:
    """Inside the domain the conjugate bounds u'y - psi(u), tried far out in the direction of y."""
    bound = function.conjugate(y)
    for s in (1.0, 1e6):
        x = function.prox(s * y, s)
        inner, value = x @ y, function.value(x)
        ok = inner - value <= bound + 1e-11 * (1 + abs(bound) + abs(value) + np.abs(x) @ np.abs(y))
        law = "Fenchel-Young: psi(u) + psi*(y) >= u'y, far out"
        _require(ok, function.penalty, law, {"y": y, "u": x}, value=value, conjugate=bound, inner=inner)


def _check_unbounded(function: _BlockFunction | _Leaf, y: Array) -> None:
    """Outside the domain u'y - psi(u) grows without bound along the prox of s y."""
    low, high = (x @ y - function.value(x) for x in (function.prox(s * y, s) for s in (1e6, 1e10)))
    _require(
        high >= 100 * abs(low) > 0,
        function.penalty,
        "outside the domain u'y - psi(u) grows without bound",
        vectors={"y": y},
        at_a_million=low,
        at_ten_billion=high,
    )


def _check_units(function: _BlockFunction | _Leaf, rng: np.random.Generator) -> None:
    """Units do not see each other: neither the value, nor a prox with a step for each."""
    penalty, units = function.penalty, function.units
    labels, unit = np.unique(units, return_inverse=True)
    for size in (0.3, 3.0, 100.0):
        steps = np.array([0.05, 1.0, 8.0])
        own = rng.integers(0, 3, labels.size)[unit]
        u = size * rng.standard_normal(function.d)
        mixed = function.prox(u, steps[own])
        each = np.array([function.prox(u, step) for step in steps])[own, np.arange(function.d)]
        _require(
            np.abs(mixed - each) <= 1e-12 * (1 + np.abs(u)),
            penalty,
            "a step per unit is the prox unit by unit",
            coordinate=np.arange(function.d),
            unit=units,
            step=steps[own],
            prox=mixed,
            alone=each,
        )
        a, b = function.prox(u, 0.5), function.prox(size * rng.standard_normal(function.d), 0.5)
        swap = rng.integers(0, 2, labels.size)[unit] == 1
        together = function.value(a) + function.value(b)
        swapped = function.value(np.where(swap, a, b)) + function.value(np.where(swap, b, a))
        _require(
            _near(together, swapped, 1e-11),
            penalty,
            "the value is a sum over units",
            together=together,
            swapped=swapped,
        )


def _check_python_prox(penalty: Penalty, d: int, blocks: list[Block], rng: np.random.Generator) -> None:
    """The prox as called from Python, against the compiled one that the solver calls."""
    functions = [_BlockFunction(block) for block in blocks]
    coordinate = np.arange(d)
    for size in (0.1, 1.0, 100.0):
        u = size * rng.standard_normal(d)
        kept = u.copy()
        prox = np.asarray(penalty.prox(u, 0.7))
        _require(u == kept, penalty, "the prox leaves its argument alone", coordinate=coordinate, before=kept, after=u)
        for function in functions:
            compiled = function.prox(u, 0.7)
            ok = np.abs(prox - compiled) <= 1e-13 * size
            _require(ok, penalty, "the compiled prox is the prox", coordinate=coordinate, prox=prox, compiled=compiled)
