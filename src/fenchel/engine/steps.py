"""How far a step goes: halved until the true objective falls by a share of what the slopes promise (Armijo's rule)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..foundation.numerics import ARMIJO, HALVINGS
from .point import Point
from .set_parts import Restriction
from .units import Units, Vector


def halved(point: Point, working: Restriction, local: Units, old: Vector, new: Vector, slope: Vector, push: Vector,
           follow: Callable[[Vector], Vector]) -> float:  # fmt: skip
    """Move the point from the coefficients `old` of the set towards `new`; the share of the way that was taken.

    `slope` and `push` are the loss's slopes along the coefficients and the intercepts. The latter follow the former:
    `follow` tells their steps for a change of these.
    """
    change, shift = new - old, np.zeros(point.outputs)

    def penalty(v: Vector) -> float:
        return local.value(v) + local.quadratic(v)

    with np.errstate(over="ignore", invalid="ignore"):  # where the loss is nearly flat a model may lead anywhere
        if point.intercept:
            shift = follow(change)
        start, end = penalty(old), penalty(new)
        promised = float(slope @ change) + float(push @ shift) + end - start
    if not math.isfinite(promised):
        return 0.0
    along = working.scores(change, shift)
    begin, share = point.f + start, 1.0
    for _ in range(HALVINGS):
        u = point.u + share * along
        f, x, h = point.look(u)
        value = end if share == 1.0 else penalty(old + share * change)
        if f + value <= begin + ARMIJO * share * promised + 1e-15 * abs(begin):
            point.u, point.f, point.x, point.h = u, f, x, h
            point.b = point.b + share * shift
            return share
        share *= 0.5
    return 0.0
