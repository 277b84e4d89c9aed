"""Proofs by example that a loss of several scores per row is what it says."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validate import Array
from .base import TRIED, _require


def check_row_loss(loss: Any, rng: np.random.Generator) -> None:
    """The laws of value, gradient, curvature, conjugate, domain, dual step and targets; see `check_loss`."""
    for m in TRIED.classes:
        bound = loss.for_outputs(m)
        targets = _targets(bound, m, rng)
        for size in TRIED.row_sizes:
            scores = size * rng.standard_normal(targets.shape)
            _check_slopes(bound, scores, targets)
            _check_pair(bound, scores, targets, rng)
            _check_step(bound, size, targets, rng)


def _sum(f: Any, *arrays: Array) -> Array:
    """A function of rows (n, m) that is told in m parts, called as the solver calls it: with flat arrays."""
    out = np.asarray(f(*(np.ascontiguousarray(a, dtype=float).ravel() for a in arrays)), dtype=float)
    total: Array = out.reshape(arrays[0].shape).sum(axis=1)
    return total


def _flat(f: Any, *arrays: Array) -> Array:
    return np.asarray(f(*(np.ascontiguousarray(a, dtype=float).ravel() for a in arrays))).reshape(arrays[0].shape)


def _targets(loss: Any, m: int, rng: np.random.Generator) -> Array:
    code = np.append(np.arange(m), rng.integers(0, m, TRIED.rows))
    unit = loss.check_targets(code)
    law = "class numbers are made unit vectors"
    _require(np.array_equal(unit, np.eye(m)[code]), loss, law, classes=m)
    _require(np.array_equal(loss.check_targets(unit), unit), loss, "unit vectors are accepted as they are", classes=m)
    try:
        loss.check_targets(np.append(code, np.nan))
    except ValueError:
        return np.asarray(unit)
    raise AssertionError(f"{type(loss).__name__} breaks the law 'targets are finite': check_targets accepts NaN")


def _check_slopes(loss: Any, scores: Array, targets: Array) -> None:
    """The gradient lies between the slopes to both sides, in every direction of a row; the curvature is its change."""
    value, slope = _sum(loss.value, scores, targets), _flat(loss.gradient, scores, targets)
    for k in range(scores.shape[1]):
        step = np.zeros_like(scores)
        step[:, k] = 1e-6 * (1 + np.abs(scores[:, k]))
        right = (_sum(loss.value, scores + step, targets) - value) / step[:, k]
        left = (value - _sum(loss.value, scores - step, targets)) / step[:, k]
        slack = 1e-13 * (1 + np.abs(value) + np.abs(scores).max(axis=1)) / step[:, k]
        law = "the gradient lies between the slopes to the left and to the right"
        good = (slope[:, k] <= right + slack) & (slope[:, k] >= left - slack)
        _require(good, loss, law, left=left, gradient=slope[:, k], right=right)
        if loss.kinked:
            continue
        bend = loss.bent(_flat(loss.curvature, scores, targets), np.sign(step))
        change = _flat(loss.gradient, scores + 50 * step, targets) - _flat(loss.gradient, scores - 50 * step, targets)
        error = np.abs(change / (100 * step[:, k])[:, None] - bend)
        law = "the curvature is the change of the gradient"
        _require(error <= 1e-5 * (1 + np.abs(bend)), loss, law, error=error, curvature=bend)


def _check_pair(loss: Any, scores: Array, targets: Array, rng: np.random.Generator) -> None:
    """Fenchel and Young: equality at the slopes, no less anywhere else, and infinite outside the domain."""
    value, slope = _sum(loss.value, scores, targets), _flat(loss.gradient, scores, targets)
    at_slope = _sum(loss.conjugate, slope, targets)
    slack = 1e-11 * (1 + np.abs(value) + np.abs(scores).max(axis=1))
    gap = value + at_slope - np.sum(slope * scores, axis=1)
    _require(np.abs(gap) <= slack, loss, "f(u) + f*(f'(u)) = u'f'(u)", gap=gap)
    for _ in range(10):
        dual = _flat(loss.inside, rng.standard_normal(scores.shape), targets)
        cost = _sum(loss.conjugate, dual, targets)
        _require(np.isfinite(cost), loss, "points that are brought inside are in the domain", conjugate=cost)
        _require(value + cost - np.sum(dual * scores, axis=1) >= -slack, loss, "f(u) + f*(x) >= u'x", conjugate=cost)
        shorter = _sum(loss.conjugate, rng.uniform() * dual, targets)
        _require(np.isfinite(shorter), loss, "a part of a point of the domain is in it", conjugate=shorter)
        moved = _flat(loss.tilted, dual, scores, targets)
        _require(np.isfinite(_sum(loss.conjugate, moved, targets)), loss, "tilted points are in the domain", dual=moved)
    outside = slope.copy()
    outside[:, 0] += 0.1
    law = "the conjugate is infinite outside the domain"
    _require(_sum(loss.conjugate, outside, targets) == np.inf, loss, law, dual=outside)


def _check_step(loss: Any, size: float, targets: Array, rng: np.random.Generator) -> None:
    """The inequality that only the minimiser satisfies, and a weight that counts as often as it says."""
    point = size * rng.standard_normal(targets.shape)
    bend = np.repeat(10.0 ** rng.uniform(-3, 3, (len(targets), 1)), targets.shape[1], axis=1)
    step = _flat(loss.dual_step, point, bend, targets)
    cost = _sum(loss.conjugate, step, targets)
    _require(np.isfinite(cost), loss, "a dual step leads into the domain", conjugate=cost)
    for other in (0.0, 0.5, 0.999, 0.999999):
        z = other * step + (1 - other) * _flat(loss.inside, rng.standard_normal(targets.shape), targets)
        rise = _sum(loss.conjugate, z, targets) - cost + np.sum(bend * (z - step) * (step - point), axis=1)
        slack = 1e-9 * (1 + np.abs(cost) + np.sum(np.abs(bend * (z - step) * (step - point)), axis=1))
        _require(rise >= -slack, loss, "the dual step minimises f*(x) + C/2 |x - v|^2", rise=rise)
    twice = loss._weighted_step(2 * point.ravel(), bend.ravel() / 2, targets.ravel(), np.full(targets.size, 2.0))
    law = "a weight of two is the step of twice the point, doubled"
    _require(np.abs(twice.reshape(step.shape) - 2 * step) <= 1e-8, loss, law, step=step)
    compiled, out = loss.compiled(), np.zeros(targets.size)
    if hasattr(compiled, "ctypes"):
        from ..losses.base import _pointer

        arrays = [out, point.ravel(), bend.ravel(), targets.ravel(), np.full(targets.size, 0.5), loss.params]
        arrays = [np.ascontiguousarray(a, dtype=float) for a in arrays]
        compiled.ctypes(targets.size, *(_pointer(a) for a in arrays))
        half = loss._weighted_step(arrays[1], arrays[2], arrays[3], arrays[4])
        _require(np.abs(arrays[0] - half) <= 1e-8, loss, "the compiled step knows weights", step=half)
