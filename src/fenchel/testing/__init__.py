"""Proofs by example that a loss, penalty, map, method or engine is what it says: the built-in ones, and yours.

    fenchel.testing.check_loss(MyLoss())
    fenchel.testing.check_penalty(MyPenalty(), d=12)
    fenchel.testing.check_map(MyMap(20))
    fenchel.testing.check_method(MyMethod)
    fenchel.testing.check_engine(MyEngine)

Each check tries many points, from 0.001 to 1000 in size, and raises an AssertionError that names the law
that fails, the place and the numbers. Nothing is taken from the formula under test where it can be had
from elsewhere: a conjugate is compared with a supremum found by search, a prox with the inequality that
only the minimiser satisfies, a norm with a dense singular value decomposition. `rng` is a seed or a numpy
generator; the same seed tries the same points.
"""

from __future__ import annotations

from .losses import check_loss
from .maps import check_map
from .methods import check_engine, check_method
from .penalties import check_penalty
from .problems import small_problems

__all__ = ["check_engine", "check_loss", "check_map", "check_method", "check_penalty", "small_problems"]
