"""How far a model's step goes: shortened until the true objective falls by a share of what the model promises."""

from __future__ import annotations

from ..foundation.numerics import ARMIJO, DIGITS
from .parts import Answer, Taken, Vector
from .whole import WholePoint

SHRINK, SHORTEST = 0.3, 1e-2  # of a step that brings less, again and again; shorter ones are refused


def shortened(point: WholePoint, answer: Answer, foreseen: Vector) -> Taken:
    """The way from a point towards a model's answer; `foreseen` is H times that way."""
    d = answer.v - point.w
    end = new = WholePoint(point.problem, answer.v)
    passes, end.passes = end.passes, 0.0
    promised = -(float(point.g @ d) + 0.5 * float(d @ foreseen) + end.penalty - point.penalty)
    share, start = 1.0, point.primal
    while not new.primal <= start - ARMIJO * share * max(promised, 0.0) + DIGITS * abs(start):
        share *= SHRINK
        if share < SHORTEST:
            return Taken(None, 0.0, passes)
        new = WholePoint(point.problem, point.w + share * d, point.scores + share * (end.scores - point.scores))
    return Taken(new, share, passes)
