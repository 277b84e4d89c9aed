"""The engines there are. The first one that suits a problem is used."""

from __future__ import annotations

from ..problem import Problem
from .roles import Engine

ENGINES: list[type[Engine]] = []


def fitting(problem: Problem) -> Engine | None:
    """A new engine for a problem and its neighbours along alpha; None where none fits."""
    for kind in ENGINES:
        engine = kind()
        if engine.unfit(problem) is None:
            return engine
    return None
