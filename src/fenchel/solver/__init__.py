"""The solver: its entry, the one loop, who may try what next, what counts as converged, and what things cost.

The public name is loaded on first use: methods and engines ask this package for prices, and the loop asks for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .entry import solve as solve

__all__ = ["solve"]


def __getattr__(name: str) -> object:
    if name != "solve":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .entry import solve

    globals()[name] = solve
    return solve
