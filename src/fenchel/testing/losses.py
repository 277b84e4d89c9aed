"""Proofs by example that a loss is what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._validate import Array
from ..losses import Loss
from .base import TRIED, _require
from .coupled_losses import check_coupled_loss
from .row_losses import check_row_loss


def check_loss(loss: Loss, targets: npt.ArrayLike | None = None, rng: int | np.random.Generator = 0) -> None:
    r"""Prove a loss: value, gradient, curvature, conjugate, domain, dual step, smoothness, targets.

    Parameters
    ----------
    loss : Loss
    targets : vector, optional
        Targets to try; by default -1 and +1 for a classifier, else those of a list that the loss accepts. A
        loss of all scores at once is tried with those of all rows, by default with random times and events. Losses of
        several scores per row are tried with their own.
    rng : int or numpy Generator

    Raises
    ------
    AssertionError
        Names the law, the place and the numbers.

    Notes
    -----
    With :math:`x = \operatorname{prox}_{f^*/C}(v)` the minimiser's inequality
    :math:`f^*(z) + \tfrac C2 (z - v)^2 \ge f^*(x) + \tfrac C2 (x - v)^2 + \tfrac C2 (z - x)^2` is checked in
    the form :math:`f^*(z) - f^*(x) + C (z - x)(x - v) \ge 0`, which is the same and does not cancel.
    """
    rng = np.random.default_rng(rng)
    with np.errstate(all="ignore"):
        if loss.across_rows:
            coupled: Any = loss
            check_coupled_loss(coupled, targets, rng)
            return
        if loss.coupled:
            check_row_loss(loss, rng)
            return
        targets = _loss_targets(loss, targets)
        f = _Elementwise(loss)
        scores = _scores(targets, rng)
        _check_gradient(f, scores, targets)
        _check_curvature(f, scores, targets)
        low, high = _check_domain(f, targets)
        duals = _inside(low, high, rng)
        _check_conjugate(f, scores, duals, low, high, targets)
        _check_outside(f, low, high, targets)
        _check_dual_step(f, duals, low, high, targets, rng)
        _check_weights(f, duals, targets)


class _Elementwise:
    """A loss called as the solver calls it: flat arrays of one length in, the same out."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.loss, name)

        def call(*arrays: Any) -> Array:
            arrays = np.broadcast_arrays(*arrays)
            out = np.asarray(method(*(np.array(a, dtype=float).ravel() for a in arrays)), dtype=float)
            law = f"{name} gives one number for each it is given"
            _require(out.shape == (arrays[0].size,), self.loss, law, given=arrays[0].size, got=out.size)
            return out.reshape(arrays[0].shape)

        return call


def _loss_targets(loss: Loss, targets: npt.ArrayLike | None) -> Array:
    name = type(loss).__name__
    if targets is None:
        candidates = [-1.0, 1.0] if loss.classification else _accepted(loss, [0, 1, 0.25, 3, 40, -0.5, -7])
        _require(len(candidates) > 0, loss, "some of the targets 0, 1, 0.25, 3, 40, -0.5, -7 are valid", accepted=0)
        targets = candidates
    targets = np.asarray(targets, dtype=float)
    try:
        checked = loss.check_targets(targets)
    except ValueError as error:
        raise AssertionError(f"{name} breaks the law 'valid targets are accepted': {error}") from error
    _require(np.asarray(checked) == targets, loss, "valid targets are accepted as they are", target=targets)
    try:
        loss.check_targets(np.append(targets, np.nan))
    except ValueError:
        return np.unique(targets)
    raise AssertionError(f"{name} breaks the law 'targets are finite': check_targets accepts NaN")


def _accepted(loss: Loss, candidates: Sequence[float]) -> list[float]:
    out = []
    for target in candidates:
        try:
            loss.check_targets(np.array([float(target)]))
        except ValueError:
            continue
        out.append(float(target))
    return out


def _scores(targets: Array, rng: np.random.Generator) -> Array:
    """Scores (m, targets): around 0, around the target, and where a margin or a residual is 1."""
    sizes = np.concatenate([TRIED.sizes, rng.uniform(0, 3, 6)])
    steps = np.concatenate([-sizes, [0.0], sizes])
    return np.sort(np.concatenate([np.add.outer(steps, 0 * targets), np.add.outer(steps, targets)]), axis=0)


def _check_gradient(f: _Elementwise, scores: Array, targets: Array) -> None:
    loss = f.loss
    value, slope = f.value(scores, targets), f.gradient(scores, targets)
    _require(~np.isnan(value) & (value > -np.inf), loss, "the value is a number", score=scores, target=targets)
    _require(~np.isnan(slope), loss, "the gradient is a number", score=scores, target=targets)
    known = np.isfinite(value) & np.isfinite(slope)
    # a secant to the right lies above every subgradient and one to the left below; where f is smooth they meet
    for relative in (1e-2, 1e-4, 1e-6):
        step = relative * (1 + np.abs(scores))
        right = (f.value(scores + step, targets) - value) / step
        left = (value - f.value(scores - step, targets)) / step
        slack = 1e-14 * (1 + np.abs(value) + np.abs(scores * slope)) / step
        ok = ~known | ((slope <= right + slack) & (slope >= left - slack))
        law = "the gradient lies between the slopes to the left and to the right"
        _require(ok, loss, law, score=scores, target=targets, left=left, gradient=slope, right=right)
    away = scores[:, None, :] - scores[None, :, :]
    above = value[:, None, :] - value[None, :, :] - slope[None, :, :] * away
    slack = 1e-12 * (1 + np.abs(value[:, None, :]) + np.abs(value[None, :, :]) + np.abs(slope[None, :, :] * away))
    _require(
        (above >= -slack) | ~known[None, :, :],
        loss,
        "f lies above its tangents",
        target=targets,
        tangent_at=scores[None, :, :],
        score=scores[:, None, :],
        above=above,
    )
    if loss.smoothness is not None:
        change, move = np.diff(slope, axis=0), np.diff(scores, axis=0)
        bound = loss.smoothness * move
        slack = 1e-9 * bound + 1e-13 * (1 + np.abs(slope[1:]))
        _require(
            change <= bound + slack,
            loss,
            "the gradient is Lipschitz with the smoothness",
            target=targets,
            score=scores[:-1],
            next_score=scores[1:],
            change=change,
            bound=bound,
        )


def _check_curvature(f: _Elementwise, scores: Array, targets: Array) -> None:
    if f.loss.kinked:  # nobody asks for it
        return
    bend, slope = f.curvature(scores, targets), f.gradient(scores, targets)
    step = 1e-6 * (1 + np.abs(scores))
    right = (f.gradient(scores + step, targets) - slope) / step
    left = (slope - f.gradient(scores - step, targets)) / step
    rounding = 1e-13 * (1 + np.abs(slope)) / step
    # where the slopes to both sides differ there may be a kink of the gradient
    known = np.isfinite(left) & np.isfinite(right) & (np.abs(right - left) <= 0.01 * np.maximum(left, right) + rounding)
    ok = (bend >= 0) & (~known | (np.abs(bend - (left + right) / 2) <= 0.01 * bend + 2 * rounding))
    law = "the curvature is the slope of the gradient"
    _require(ok, f.loss, law, score=scores, target=targets, left=left, curvature=bend, right=right)


def _check_domain(f: _Elementwise, targets: Array) -> tuple[Array, Array]:
    low, high = (np.broadcast_to(np.asarray(end, dtype=float), targets.shape) for end in f.loss.domain(targets))
    _require(
        (low <= 0) & (high >= 0) & (low < high),
        f.loss,
        "0 lies in the domain of the conjugate",
        target=targets,
        low=low,
        high=high,
    )
    return low, high


def _inside(low: Array, high: Array, rng: np.random.Generator) -> Array:
    """Points (m, targets) of the domains, both ends included where they are finite."""
    share = np.concatenate([[0, 1e-9, 1e-4, 0.02, 0.5, 0.98, 1 - 1e-4, 1], rng.uniform(0, 1, 16)])
    reach = np.concatenate([[0], TRIED.sizes, 10.0 ** rng.uniform(-3, 3, 16)])
    columns = []
    for a, b in zip(low, high, strict=True):
        if np.isfinite(a) and np.isfinite(b):
            points = a + share * (b - a)
        elif np.isfinite(a) or np.isfinite(b):
            points = a + reach if np.isfinite(a) else b - reach
        else:
            points = np.concatenate([-reach[1:13], reach[:12]])
        columns.append(np.clip(points, a, b))
    return np.column_stack(columns)


def _supremum(f: _Elementwise, dual: Array, target: Array, reach: float) -> Array:
    """sup of u x - f(u) over |u| <= reach by search: a concave function, so the best of a grid is refined."""
    sizes = np.geomspace(1e-6, reach, 60)
    grid = np.concatenate([-sizes[::-1], [0.0], sizes])[:, None] + 0 * dual.ravel()
    dual, target = dual.ravel(), np.broadcast_to(target, dual.shape).ravel()
    each = np.arange(dual.size)
    best = np.full(dual.size, -np.inf)
    for _ in range(14):
        value = grid * dual - f.value(grid, target)
        value = np.where(np.isnan(value), -np.inf, value)
        top = np.argmax(value, axis=0)
        best = np.maximum(best, value[top, each])
        left, right = grid[np.maximum(top - 1, 0), each], grid[np.minimum(top + 1, len(grid) - 1), each]
        grid = left + np.linspace(0, 1, 33)[:, None] * (right - left)
    return best


def _check_conjugate(f: _Elementwise, scores: Array, duals: Array, low: Array, high: Array, targets: Array) -> None:
    loss = f.loss
    conjugate = f.conjugate(duals, targets)
    ends = (duals == low) | (duals == high)
    _require(
        ~np.isnan(conjugate) & (conjugate > -np.inf) & (np.isfinite(conjugate) | ends),
        loss,
        "the conjugate is finite inside the domain",
        target=targets,
        dual=duals,
        conjugate=conjugate,
    )
    _require(
        np.isfinite(f.conjugate(0 * targets, targets)),
        loss,
        "the conjugate is finite at 0 (f is bounded below)",
        target=targets,
    )

    value, slope = f.value(scores, targets), f.gradient(scores, targets)
    known = np.isfinite(value) & np.isfinite(slope)
    left = value[:, None, :] + conjugate[None, :, :]
    right = scores[:, None, :] * duals[None, :, :]
    slack = 1e-12 * (1 + np.abs(value[:, None, :]) + np.abs(conjugate[None, :, :]) + np.abs(right))
    _require(
        (left >= right - slack) | ~known[:, None, :],
        loss,
        "Fenchel-Young: f(u) + f*(x) >= u x",
        target=targets,
        score=scores[:, None, :],
        dual=duals[None, :, :],
        left=left,
        right=right,
    )

    # one ulp of the gradient may cost the conjugate a multiple of u in units of that ulp
    at_slope = f.conjugate(slope, targets)
    left, right = value + at_slope, scores * slope
    slack = 1e-10 * (1 + np.abs(value) + np.abs(right))
    _require(
        (np.abs(left - right) <= slack) | ~known,
        loss,
        "Fenchel-Young is an equality at the gradient",
        target=targets,
        score=scores,
        gradient=slope,
        left=left,
        right=right,
    )

    reach = 1e6
    best = _supremum(f, duals, targets, reach).reshape(duals.shape)
    slack = 1e-8 * (1 + np.abs(conjugate))
    _require(
        (np.abs(conjugate - best) <= slack) | ~np.isfinite(conjugate),
        loss,
        "the conjugate is the supremum of u x - f(u)",
        target=targets,
        dual=duals,
        conjugate=conjugate,
        supremum=best,
    )


def _check_outside(f: _Elementwise, low: Array, high: Array, targets: Array) -> None:
    reach = 1e9
    width = np.where(np.isfinite(high - low), high - low, np.maximum(1.0, np.abs(targets)))
    for end, side in ((low, -1.0), (high, 1.0)):
        beyond = np.array([[1e-6], [1e-3], [1.0], [1e3]]) * width
        dual = end + side * beyond
        finite = np.isfinite(dual)
        dual = np.where(finite, dual, 0.0)
        conjugate = f.conjugate(dual, targets)
        _require(
            (conjugate == np.inf) | ~finite,
            f.loss,
            "the conjugate is infinite outside the domain",
            target=targets,
            dual=dual,
            end=end,
            conjugate=conjugate,
        )
        best = _supremum(f, dual, targets, reach).reshape(dual.shape)
        _require(
            (best >= 0.4 * beyond * reach) | ~finite | (beyond < 1e-4),
            f.loss,
            "outside the domain u x - f(u) grows without bound",
            target=targets,
            dual=dual,
            end=end,
            supremum=best,
        )


def _points(rng: np.random.Generator) -> Array:
    sizes = np.concatenate([TRIED.sizes, rng.uniform(0, 2, 5)])
    return np.sort(np.concatenate([-sizes, [0.0], sizes]))


def _check_dual_step(
    f: _Elementwise, duals: Array, low: Array, high: Array, targets: Array, rng: np.random.Generator
) -> None:
    """Axes: point, curvature, target; and in front the point of the domain it is compared with."""
    loss = f.loss
    v, C, t = np.meshgrid(_points(rng), 10.0 ** np.arange(-6, 7), targets, indexing="ij")
    low, high = low + 0 * v, high + 0 * v
    x = f.dual_step(v, C, t)
    where: dict[str, Any] = {"point": v, "curvature": C, "target": t, "step": x}
    inside = (x >= low - 1e-12 * np.abs(low)) & (x <= high + 1e-12 * np.abs(high)) & np.isfinite(x)
    at_x = f.conjugate(x, t)
    _require(inside & np.isfinite(at_x), loss, "the dual step ends in the domain", low=low, high=high, **where)

    change, move = np.diff(x, axis=0), np.diff(v, axis=0)
    slack = 1e-12 * (np.abs(v[1:]) + np.abs(x[1:]) + np.abs(t[1:]))
    law = "the dual step is monotone and does not expand"
    _require(
        (change >= -slack) & (change <= move + slack),
        loss,
        law,
        point=v[:-1],
        next_point=v[1:],
        curvature=C[1:],
        target=t[1:],
        change=change,
    )

    distance = np.concatenate([-(10.0 ** np.arange(-8, 4)), 10.0 ** np.arange(-8, 4)])
    others = [duals[:, None, None, :] + 0 * v, x + distance[:, None, None, None]]
    z = np.clip(np.concatenate(others), low, high)
    at_z = f.conjugate(z, t + 0 * z)
    pull = C * (z - x) * (x - v)
    excess = at_z - at_x + pull
    slack = 1e-11 * (np.abs(at_z) + np.abs(at_x) + C * np.abs(z - x) * (np.abs(x) + np.abs(v)) + 1e-3 * np.abs(z - x))
    slack = slack + 1e-14 + 1e-15 * np.abs(x) * C * np.abs(x - v)  # the last digit of x
    _require(excess >= -slack, loss, "the dual step minimises f*(z) + C/2 (z - v)^2", other=z, excess=excess, **where)

    # Moreau: u = C (v - x) is the prox of C f at C v, so that x is a subgradient of f there
    u = C * (v - x)
    at_u, slope = f.value(u, t), f.gradient(u, t)
    blur = 1e-14 * C * (np.abs(v) + np.abs(x) + np.abs(t))
    scores = np.concatenate([u + distance[:, None, None, None], _scores(targets, rng)[:, None, None, :] + 0 * v])
    at_score = f.value(scores, t + 0 * scores)
    above = at_score - at_u - x * (scores - u)
    slack = 1e-11 * (1 + np.abs(at_score) + np.abs(at_u) + np.abs(x * (scores - u)))
    slack = slack + blur * (np.abs(slope) + np.abs(x)) + np.abs(f.value(u + blur, t) - at_u)
    _require(
        (above >= -slack) | ~np.isfinite(at_u),
        loss,
        "Moreau: C (v - step) is the prox of C f at C v",
        score=scores,
        prox=u,
        above=above,
        **where,
    )


def _check_weights(f: _Elementwise, duals: Array, targets: Array) -> None:
    """The compiled step of a weighted row: s f*(x / s) in place of f*, as if the row stood there s times."""
    loss = f.loss
    weights = np.array([0.0, 1.0, 2.0, 7.0, 1e-3, 1e3])
    v, C, t, s = np.meshgrid(
        [-30.0, -1.0, -0.02, 0.0, 0.4, 2.0, 500.0], [1e-4, 1.0, 50.0], targets, weights, indexing="ij"
    )
    x = _call_step(loss, v.ravel(), C.ravel(), t.ravel(), s.ravel()).reshape(v.shape)
    where: dict[str, Any] = {"point": v, "curvature": C, "target": t, "weight": s, "step": x}
    _require((x == 0) | (s != 0), loss, "a row of weight 0 has dual variable 0", **where)
    once = np.where(s == 0, 1.0, s)
    plain = once * f.dual_step(v / once, C * once, t)
    slack = 1e-9 * (np.abs(plain) + np.abs(v) + once * np.abs(t))
    _require((np.abs(x - plain) <= slack) | (s == 0), loss, "weight is repetition", unweighted=plain, **where)
    at_x = once * f.conjugate(x / once, t)
    z = duals[:, None, None, :, None] * once
    at_z = once * f.conjugate(z / once, t + 0 * z)
    excess = at_z - at_x + C * (z - x) * (x - v)
    slack = 1e-10 * (1 + np.abs(at_z) + np.abs(at_x) + C * np.abs(z - x) * (np.abs(x) + np.abs(v)))
    _require(
        (excess >= -slack) | (s == 0),
        loss,
        "the weighted step minimises s f*(z / s) + C/2 (z - v)^2",
        other=z,
        excess=excess,
        **where,
    )


def _call_step(loss: Loss, point: Array, curvature: Array, target: Array, weight: Array) -> Array:
    """The C function that the solver calls, on arrays."""
    from ..kernels.calls import STEP_CTYPE
    from ..kernels.compiled import raise_errors
    from ..losses.base import _pointer

    function, params, out = loss.compiled(), loss.params, np.zeros_like(point)
    STEP_CTYPE(function.address)(point.size, *(_pointer(a) for a in (out, point, curvature, target, weight, params)))
    raise_errors(function)
    return out
