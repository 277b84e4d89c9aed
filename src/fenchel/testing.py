"""Proofs by example that a loss, a penalty or a map is what it says: the built-in ones, and yours.

    fenchel.testing.check_loss(MyLoss())
    fenchel.testing.check_penalty(MyPenalty(), d=12)
    fenchel.testing.check_map(MyMap(20))

Each check tries many points, from 0.001 to 1000 in size, and raises an AssertionError that names the law
that fails, the place and the numbers. Nothing is taken from the formula under test where it can be had
from elsewhere: a conjugate is compared with a supremum found by search, a prox with the inequality that
only the minimiser satisfies, a norm with a dense singular value decomposition. `rng` is a seed or a numpy
generator; the same seed tries the same points.
"""

from __future__ import annotations

import numpy as np

from .losses import Loss
from .maps import Identity, Map
from .penalties import Block, Mapped, Penalty, Scaled, Sum, compile_penalty, compiled_prox

_SIZES = 10.0 ** np.arange(-3, 4)
_STEPS = (1e-3, 0.1, 1.0, 20.0, 1e3)
_DENSE = 4_000_000  # entries of a map up to which it is compared with its dense singular values


def _require(ok, subject, law, vectors=None, **numbers):
    """Raise an AssertionError for the first place where `ok` is not true; `vectors` are shown whole."""
    ok = np.asarray(ok, dtype=bool)
    if ok.all():
        return
    ok, *arrays = np.broadcast_arrays(ok, *numbers.values())
    place = np.unravel_index(np.argmin(ok), ok.shape)
    shown = [f"{name} = {array[place]:.12g}" for name, array in zip(numbers, arrays, strict=True)]
    shown += [f"{name} = {np.array2string(np.asarray(v), threshold=20)}" for name, v in (vectors or {}).items()]
    raise AssertionError(f"{type(subject).__name__} breaks the law '{law}' at {', '.join(shown)}")


# -- losses -----------------------------------------------------------------------------------------


def check_loss(loss: Loss, targets=None, rng=0) -> None:
    r"""Prove a loss: value, gradient, curvature, conjugate, domain, dual step, smoothness, targets.

    Parameters
    ----------
    loss : Loss
    targets : vector, optional
        Targets to try; by default -1 and +1 for a classifier, else those of a list that the loss accepts.
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

    def __init__(self, loss):
        self.loss = loss

    def __getattr__(self, name):
        method = getattr(self.loss, name)

        def call(*arrays):
            arrays = np.broadcast_arrays(*arrays)
            out = np.asarray(method(*(np.array(a, dtype=float).ravel() for a in arrays)), dtype=float)
            law = f"{name} gives one number for each it is given"
            _require(out.shape == (arrays[0].size,), self.loss, law, given=arrays[0].size, got=out.size)
            return out.reshape(arrays[0].shape)

        return call


def _loss_targets(loss, targets):
    name = type(loss).__name__
    if targets is None:
        targets = [-1.0, 1.0] if loss.classification else _accepted(loss, [0, 1, 0.25, 3, 40, -0.5, -7])
        _require(len(targets) > 0, loss, "some of the targets 0, 1, 0.25, 3, 40, -0.5, -7 are valid", accepted=0)
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


def _accepted(loss, candidates):
    out = []
    for target in candidates:
        try:
            loss.check_targets(np.array([float(target)]))
        except ValueError:
            continue
        out.append(float(target))
    return out


def _scores(targets, rng):
    """Scores (m, targets): around 0, around the target, and where a margin or a residual is 1."""
    sizes = np.concatenate([_SIZES, rng.uniform(0, 3, 6)])
    steps = np.concatenate([-sizes, [0.0], sizes])
    return np.sort(np.concatenate([np.add.outer(steps, 0 * targets), np.add.outer(steps, targets)]), axis=0)


def _check_gradient(f, scores, targets):
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


def _check_curvature(f, scores, targets):
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


def _check_domain(f, targets):
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


def _inside(low, high, rng):
    """Points (m, targets) of the domains, both ends included where they are finite."""
    share = np.concatenate([[0, 1e-9, 1e-4, 0.02, 0.5, 0.98, 1 - 1e-4, 1], rng.uniform(0, 1, 16)])
    reach = np.concatenate([[0], _SIZES, 10.0 ** rng.uniform(-3, 3, 16)])
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


def _supremum(f, dual, target, reach):
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


def _check_conjugate(f, scores, duals, low, high, targets):
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


def _check_outside(f, low, high, targets):
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


def _points(rng):
    sizes = np.concatenate([_SIZES, rng.uniform(0, 2, 5)])
    return np.sort(np.concatenate([-sizes, [0.0], sizes]))


def _check_dual_step(f, duals, low, high, targets, rng):
    """Axes: point, curvature, target; and in front the point of the domain it is compared with."""
    loss = f.loss
    v, C, t = np.meshgrid(_points(rng), 10.0 ** np.arange(-6, 7), targets, indexing="ij")
    low, high = low + 0 * v, high + 0 * v
    x = f.dual_step(v, C, t)
    where = {"point": v, "curvature": C, "target": t, "step": x}
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


def _check_weights(f, duals, targets):
    """The compiled step of a weighted row: s f*(x / s) in place of f*, as if the row stood there s times."""
    loss = f.loss
    weights = np.array([0.0, 1.0, 2.0, 7.0, 1e-3, 1e3])
    v, C, t, s = np.meshgrid(
        [-30.0, -1.0, -0.02, 0.0, 0.4, 2.0, 500.0], [1e-4, 1.0, 50.0], targets, weights, indexing="ij"
    )
    x = _call_step(loss, v.ravel(), C.ravel(), t.ravel(), s.ravel()).reshape(v.shape)
    where = {"point": v, "curvature": C, "target": t, "weight": s, "step": x}
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


def _call_step(loss, point, curvature, target, weight):
    """The C function that the solver calls, on arrays."""
    from .kernels.calls import STEP_CTYPE
    from .losses.base import _pointer

    function, params, out = loss.compiled(), loss.params, np.zeros_like(point)
    STEP_CTYPE(function.address)(point.size, *(_pointer(a) for a in (out, point, curvature, target, weight, params)))
    if hasattr(function, "check"):
        function.check()
    return out


# -- penalties --------------------------------------------------------------------------------------


def check_penalty(penalty: Penalty, d: int, rng=0) -> None:
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
    if not isinstance(penalty, (Sum, Scaled, Mapped)) and not _overlaps(penalty):
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


def _overlaps(penalty):
    copies = getattr(penalty, "copies", np.zeros(0))
    return np.unique(copies).size < len(copies)


class _Leaf:
    """A penalty on its own coordinates, as called from Python."""

    def __init__(self, penalty, d):
        self.penalty, self.d = penalty, d
        self.value, self.conjugate, self.gauge = penalty.value, penalty.conjugate, penalty.gauge
        self.units = np.asarray(penalty.units(d))

    def prox(self, u, step):
        return np.asarray(self.penalty.prox(u.copy(), step), dtype=float)


class _BlockFunction:
    """scale * function + ridge/2 |.|^2 of a compiled block, its prox as the solver takes it."""

    def __init__(self, block: Block):
        self.penalty, self.d = block.function, block.d
        self.value, self.conjugate, self.gauge = block.value, block.conjugate, block.gauge
        self.units = np.asarray(block.function.units(block.d))
        self._block, self._prox = block, _Prox(block.function)

    def prox(self, u, step):
        shrink = 1.0 / (1.0 + np.broadcast_to(step, u.shape) * self._block.ridge)
        return self._prox(u * shrink, step * self._block.scale * shrink)


class _Prox:
    def __init__(self, function):
        self._compiled, self._params, self._index = compiled_prox(function), function.params, function.index

    def __call__(self, u, step):
        import ctypes

        from .kernels.calls import PROX_CTYPE
        from .losses.base import _pointer

        u, step = np.array(u, dtype=float), np.array(step, dtype=float)
        index = self._index.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        PROX_CTYPE(self._compiled.address)(u.size, _pointer(u), _pointer(step), _pointer(self._params), index)
        if hasattr(self._compiled, "check"):
            self._compiled.check()
        return u


def _near(a, b, tolerance):
    return a == b or bool(np.abs(a - b) <= tolerance * (1 + np.abs(a) + np.abs(b)))


def _vectors(d, rng):
    """Vectors of every size, with zeros, with ties, and zero itself."""
    out = [np.zeros(d), np.ones(d), -np.ones(d)]
    for size in (1e-3, 0.3, 1.0, 5.0, 1e3):
        out.append(size * rng.standard_normal(d))
        out.append(size * rng.standard_normal(d) * (rng.random(d) < 0.4))
    out.append(rng.integers(-2, 3, d).astype(float))
    return out


def _check_function(function, rng):
    """All laws of one convex function on its own coordinates."""
    penalty, d = function.penalty, function.d
    _require(function.units.shape == (d,), penalty, "one unit label per coordinate", labels=function.units.size, d=d)
    pairs = []
    for u in _vectors(d, rng):
        for step in _STEPS:
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


def _value(function, u):
    value = function.value(u)
    _require(value > -np.inf, function.penalty, "the value is a number, or infinite", {"u": u}, value=value)
    return float(value)


def _check_convex(function, feasible, value, rng):
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


def _check_prox(function, pairs, feasible, value, rng):
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
    for (u, step, x), (v, same_step, z) in zip(pairs[len(_STEPS) :], pairs, strict=False):
        change, slack = x - z, 1e-12 * (u @ u + v @ v)
        _require(
            change @ change <= change @ (u - v) + slack and step == same_step,
            penalty,
            "the prox is firmly non-expansive",
            vectors={"u": u, "other_u": v, "change": change},
            step=step,
        )


def _check_duality(function, pairs, feasible, value):
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


def _check_gauge(function, duals, rng):
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


def _check_bounded(function, y):
    """Inside the domain the conjugate bounds u'y - psi(u), tried far out in the direction of y."""
    bound = function.conjugate(y)
    for s in (1.0, 1e6):
        x = function.prox(s * y, s)
        inner, value = x @ y, function.value(x)
        ok = inner - value <= bound + 1e-11 * (1 + abs(bound) + abs(value) + np.abs(x) @ np.abs(y))
        law = "Fenchel-Young: psi(u) + psi*(y) >= u'y, far out"
        _require(ok, function.penalty, law, {"y": y, "u": x}, value=value, conjugate=bound, inner=inner)


def _check_unbounded(function, y):
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


def _check_units(function, rng):
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


def _check_python_prox(penalty, d, blocks, rng):
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


# -- maps -------------------------------------------------------------------------------------------


def check_map(map_: Map, p: int | None = None, rng=0) -> None:
    """Prove a map: linearity, adjoint, norm, solve with B B', null space.

    Parameters
    ----------
    map_ : Map
    p : int, optional
        The number of features, for a map that takes any.
    rng : int or numpy Generator

    Raises
    ------
    AssertionError
        Names the law, the place and the numbers.
    """
    rng = np.random.default_rng(rng)
    if map_.p is None:
        if p is None:
            raise ValueError(f"p is needed: {type(map_).__name__} takes any number of features")
        map_ = map_ @ Identity(p)
    p = map_.p
    matrix = map_.matrix(p).copy()
    d = matrix.shape[0]
    _require(matrix.shape[1] == p, map_, "the matrix has a column per feature", columns=matrix.shape[1], p=p)
    try:
        map_.matrix(p + 1)
    except ValueError:
        pass
    else:
        raise AssertionError(f"{type(map_).__name__} breaks the law 'a wrong number of features is refused': {p + 1}")
    _check_linear(map_, matrix, rng)
    singular = null = None
    if d * p <= _DENSE:
        _, singular, rows = np.linalg.svd(matrix.toarray(), full_matrices=True)
        small = np.finfo(float).eps * max(d, p) * singular.max(initial=0.0)
        null = rows[np.count_nonzero(singular > small) :].T
    _check_norm(map_, matrix, singular, rng)
    _check_null(map_, matrix, null)
    _check_gram(map_, matrix, null, rng)
    change = abs(map_.matrix(p) - matrix).max() if matrix.nnz else 0.0
    _require(change == 0, map_, "the matrix stays the same after use", largest_change=change)


def _check_linear(map_, matrix, rng):
    d, p = matrix.shape
    for size in (1e-3, 1.0, 1e3):
        w, v, u = size * rng.standard_normal(p), rng.standard_normal(p), rng.standard_normal(d)
        a, b = rng.standard_normal(2)
        bound = abs(matrix) @ (np.abs(a * w) + np.abs(b * v)) + 1e-300
        mixed, apart = map_.apply(a * w + b * v), a * map_.apply(w) + b * map_.apply(v)
        row = np.arange(d)
        _require(np.abs(mixed - apart) <= 1e-13 * bound, map_, "linear", row=row, together=mixed, apart=apart)
        _require(np.abs(mixed - matrix @ (a * w + b * v)) <= 1e-13 * bound, map_, "apply is the matrix", row=row)
        left, right = map_.apply(w) @ u, w @ map_.adjoint(u)
        bound = np.abs(u) @ (abs(matrix) @ np.abs(w))
        _require(abs(left - right) <= 1e-13 * bound, map_, "adjoint: (B'w)'u = w'(B u)", left=left, right=right)


def _check_norm(map_, matrix, singular, rng):
    norm = map_.norm()
    if singular is not None:
        top = singular.max(initial=0.0)
        _require(norm >= top * (1 - 1e-12), map_, "the norm is an upper bound", norm=norm, largest_singular_value=top)
        _require(norm <= 1.015 * top + 1e-15, map_, "the norm is tight to 1.5 %", norm=norm, largest_singular_value=top)
        return
    w = rng.standard_normal(matrix.shape[1])
    for _ in range(100):
        w = matrix.T @ (matrix @ w)
        w /= np.linalg.norm(w)
    below = np.linalg.norm(matrix @ w)
    _require(norm >= below * (1 - 1e-12), map_, "the norm is an upper bound", norm=norm, reached=below)


def _check_null(map_, matrix, null):
    basis = map_.null_space()
    p = matrix.shape[1]
    _require(basis.shape[0] == p, map_, "the null space has a row per feature", rows=basis.shape[0], p=p)
    k = np.arange(basis.shape[1])
    gram = basis.T @ basis
    _require(np.abs(gram - np.eye(k.size)) <= 1e-10, map_, "the null space is orthonormal", inner=gram, vector=k)
    image = np.abs(matrix @ basis).max(axis=0, initial=0.0)
    bound = 1e-10 * (abs(matrix).max() if matrix.nnz else 0.0)
    _require(image <= bound, map_, "the map does not see its null space", vector=k, image=image, bound=bound)
    if null is not None:
        _require(k.size == null.shape[1], map_, "the null space is complete", found=k.size, dimension=null.shape[1])


def _check_gram(map_, matrix, null, rng):
    d, p = matrix.shape
    for _ in range(3):
        r = matrix.T @ rng.standard_normal(d)
        v = map_.gram_solve(r.copy())
        back = matrix.T @ (matrix @ v)
        bound = 1e-13 * np.sqrt(p) * (abs(matrix).T @ (abs(matrix) @ np.abs(v)) + np.abs(r)).max(initial=0.0)
        _require(
            np.abs(back - r) <= bound, map_, "the gram solve solves B B' v = r", feature=np.arange(p), r=r, back=back
        )
        if null is not None and null.shape[1]:
            along, size = np.abs(null.T @ v).max(), np.linalg.norm(v)
            _require(along <= 1e-7 * size, map_, "the gram solve has least norm", along_the_null_space=along, size=size)
