"""The engines there are. The first one that suits a problem is used."""

from __future__ import annotations

from collections.abc import Callable

from ..prices import PRICES, Prices
from ..problem import Problem
from .models import QuadraticModels
from .roles import Engine
from .rounds import WorkingSets
from .tasks import BlockModels
from .wide import Faces

ENGINES: list[Callable[[Prices], Engine]] = [BlockModels, WorkingSets, Faces, QuadraticModels]


def fitting(problem: Problem) -> Engine | None:
    """A new engine for a problem and its neighbours along alpha; None where none fits."""
    for kind in ENGINES:
        engine = kind(PRICES)
        if engine.unfit(problem) is None:
            return engine
    return None
