"""The parts that latent groups have in coefficients."""

from __future__ import annotations

import numpy as np

from .._validate import Array, Ints

_SAME = 1e-6  # of the norm: what a fit of the usual tolerance does not tell apart; larger would lose groups that count


def latent_parts(u: Array, members: list[Ints], weights: Array) -> list[Array]:
    r"""The v_g of least :math:`\sum_g \omega_g \|v_g\|` that add up to u, each on the features of its group.

    Coefficients are known up to the tolerance of their fit, and the best parts of a point close by give a trace to
    groups that have nothing to do with it. So the groups of the smallest parts are left out, as many as can be without
    making the norm larger by a millionth; what is left is exact. Features of a group of weight 0 are free, and
    belong to that group alone.
    """
    out = [np.zeros(len(group)) for group in members]
    free = np.unique(np.concatenate([np.zeros(0, int), *(members[k] for k in np.flatnonzero(weights == 0))]))
    for k in np.flatnonzero(weights == 0):
        out[k] = np.array(u[members[k]], dtype=float)
    bound = np.array(u, dtype=float)
    bound[free] = 0.0
    alive = np.array([k for k, group in enumerate(members) if weights[k] > 0 and bound[group].any()], dtype=np.int64)
    if not alive.size:
        return out
    support = np.flatnonzero(bound)
    place = np.full(len(u), -1)
    place[support] = np.arange(support.size)
    held = [(members[k], place[members[k]] >= 0) for k in alive]
    inside = [place[group[some]] for group, some in held]
    reached = np.zeros(support.size, dtype=bool)
    reached[np.concatenate(inside)] = True
    values = np.where(reached, bound[support], 0.0)  # of a feature in no group there is no part
    parts, costs = _best(values, inside, weights[alive])
    order, total = np.argsort(-costs, kind="stable"), costs.sum()
    few, many = 1, len(order)  # with `many` groups the norm is as it should be
    while few < many:
        middle = (few + many) // 2
        kept = order[:middle]
        covered = np.zeros(support.size, dtype=bool)
        covered[np.concatenate([inside[k] for k in kept])] = True
        enough = bool(covered[reached].all())
        if enough:
            _, trial = _best(values, [inside[k] for k in kept], weights[alive[kept]])
            enough = trial.sum() <= (1 + _SAME) * total
        few, many = (few, middle) if enough else (middle + 1, many)
    kept = np.sort(order[:many])
    parts, _ = _best(values, [inside[k] for k in kept], weights[alive[kept]])
    for k, part in zip(kept, parts, strict=True):
        out[alive[k]][held[k][1]] = part
    return out


def _best(values: Array, inside: list[Ints], weights: Array) -> tuple[list[Array], Array]:
    """The parts of all groups, which hold values between them, and their costs."""
    from ..kernels.catalogue import latent_multipliers

    scale = np.abs(values).max()
    bounds = np.concatenate([[0], np.cumsum([len(group) for group in inside])]).astype(np.int64)
    flat, multiplier = np.concatenate(inside).astype(np.int64), np.zeros(len(inside))
    total = latent_multipliers(values / scale, np.array(weights, dtype=float), bounds, flat, 0, 0.0, multiplier)
    share = np.divide(values, total, out=np.zeros(values.size), where=total > 0)
    parts = [factor * share[group] for factor, group in zip(multiplier, inside, strict=True)]
    return parts, weights * np.array([np.linalg.norm(part) for part in parts])
