"""The engines there are. The first one that suits a problem is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from ..prices import PRICES, Prices
from ..problem import Problem
from .classes import RowClasses
from .coupled import CoupledModels
from .latent import LatentGroups
from .models import QuadraticModels
from .pooled_multipliers import PooledMultipliers
from .roles import Engine
from .rounds import WorkingSets
from .sampled import SampledModels
from .sampled_faces import SampledFaces
from .sampled_sets import SampledWorkingSets
from .tasks import BlockModels
from .wide import Faces

Kind = TypeVar("Kind")
ENGINES: list[Callable[[Prices], Engine]] = [
    BlockModels,
    RowClasses,
    WorkingSets,
    LatentGroups,
    CoupledModels,
    Faces,
    QuadraticModels,
]

# for rows that nobody holds: others want to see them
POOLED: list[Callable[[Prices], Engine]] = [SampledModels, SampledWorkingSets, SampledFaces, PooledMultipliers]


def register(kind: type[Kind]) -> type[Kind]:
    """A decorator that enters an engine of your own: it is asked before the others whether it fits a problem."""
    if kind in ENGINES:
        raise ValueError(f"{kind.__name__} is among the engines already")
    ENGINES.insert(0, cast(Any, kind))
    return kind


def fitting(problem: Problem) -> Engine | None:
    """A new engine for a problem and its neighbours along alpha; None where none fits and epochs have to do. There are
    none over rows in a pool: a ValueError then says what stands in the way."""
    reasons = []
    for kind in POOLED if problem.pooled else ENGINES:
        engine = kind(PRICES)
        reason = engine.unfit(problem)
        if reason is None:
            return engine
        reasons.append(f"{engine.name}: {reason}")
    if problem.pooled:
        raise ValueError(
            f"no way to solve this problem with rows in a pool ({'; '.join(reasons)}). Read the rows into memory, or "
            "take fewer features"
        )
    return None
