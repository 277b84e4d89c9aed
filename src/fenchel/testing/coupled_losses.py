"""Proofs by example that a loss of all scores at once is what it says."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validate import AnyArray, Array
from ..foundation.numerics import DIFFERENCE
from ..losses import CoupledLoss
from .base import TRIED, _require


def check_coupled_loss(loss: CoupledLoss, targets: Any, rng: np.random.Generator) -> None:
    """Prove slopes, curvature, its bounds and factor, conjugate and inverse, with weights and without.

    See :func:`check_loss`; `targets` are those of all rows, by default random times and events.
    """
    for given in [_times(rng, n) for n in (2, 9, 30)] if targets is None else [targets]:
        target = loss.check_targets(given)
        n = len(target)
        weighted = rng.integers(0, 4, n) * rng.random(n)
        weighted[np.argmax(np.asarray(loss.fold_labels(target), dtype=float))] = 1.0
        for weight in (np.zeros(0), weighted):
            for spread in TRIED.spreads:
                _check_at(loss, target, weight, spread * rng.standard_normal((2, n)))


def _times(rng: np.random.Generator, n: int) -> Array:
    """Times with ties, events and strata."""
    event = rng.random(n) < 0.6
    event[0] = True
    return np.column_stack([rng.integers(1, 2 + n // 2, n), event, rng.integers(0, 3, n)]).astype(float)


def _check_at(loss: CoupledLoss, target: AnyArray, weight: Array, scores: Array) -> None:
    """The laws at one point, with another one to compare with."""
    u, other = scores
    total, x, bound = loss.sums(u, target, weight)
    size = max(abs(total), float(np.abs(x) @ np.abs(u)), 1.0)
    eye, h = np.eye(u.size), DIFFERENCE
    slopes = [(loss.total(u + h * e, target, weight) - loss.total(u - h * e, target, weight)) / (2 * h)
              for e in eye]  # fmt: skip
    _require(np.abs(slopes - x) <= 1e-6 * size, loss, "x is the slope of the total", given=x, found=np.array(slopes))
    curved = loss.curvature_at(u, target, weight)
    H = np.array([curved.times(e) for e in eye])
    change = [(loss.sums(u + h * e, target, weight)[1] - loss.sums(u - h * e, target, weight)[1]) / (2 * h)
              for e in eye]  # fmt: skip
    _require(np.abs(change - H) <= 1e-5 * size, loss, "H is the change of x", given=H, found=np.array(change))
    lowered = curved.down_rows(eye)
    factored = lowered.T @ (curved.squares[:, None] * lowered)
    for law, above in (("H <= diag(bound)", np.diag(bound)), ("H <= L' diag(squares) L", factored)):
        _require(np.linalg.eigvalsh(above - H).min() >= -1e-10 * size, loss, law)
    _require(np.abs(curved.down(eye) - lowered.T) <= 1e-12, loss, "down is L")
    _require(np.abs(curved.up(curved.solve_up(x)) - x) <= 1e-12 * size, loss, "solve_up inverts up")
    product = np.array([curved.up(curved.squares * column) for column in lowered.T])
    _require(np.abs(product - factored) <= 1e-12 * size, loss, "up is L'")
    conjugate = loss.total_conjugate(x, target, weight)
    _require(abs(total + conjugate - x @ u) <= 1e-11 * size, loss, "F(u) + F*(x) = x'u", gap=total + conjugate - x @ u)
    far = loss.total(other, target, weight)
    for share in (1.0, 0.6, 0.0):
        left = far + loss.total_conjugate(share * x, target, weight) - share * float(x @ other)
        _require(0.0 <= left + 1e-11 * max(size, abs(far)) < np.inf, loss, "F(v) + F*(sx) >= s x'v", s=share, left=left)
    between = 0.5 * (x + loss.sums(other, target, weight)[1])
    back = loss.sums(loss.scores_of(between, target, weight), target, weight)[1]
    _require(np.abs(back - between) <= 1e-8 * size, loss, "scores_of inverts the slopes", given=between, found=back)
    some = weight > 0 if weight.size else np.ones(u.size, dtype=bool)
    outside = x - (2 * bound + 1.0) * (np.arange(u.size) == np.argmax(some))
    _require(loss.total_conjugate(outside, target, weight) == np.inf, loss, "F* is infinite outside its domain")
