"""What the loop asks of a method, declared."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from .._validate import Array
from ..engine.roles import Iterate
from ..problem import Problem


@dataclasses.dataclass
class PrimalIterate:
    """What a method without dual variables of the rows knows: w, and y and u of the penalty."""

    w: Array
    y: Array
    u: Array


@dataclasses.dataclass(frozen=True)
class EpochReport:
    """The share of the rows that an epoch visited, and a guess at the relative gap, infinite where there is none."""

    share: float = 1.0
    guess: float = math.inf


class State(Protocol):
    """Whatever a method keeps from epoch to epoch; plain arrays and numbers."""

    epoch: int

    def as_dict(self) -> dict[str, Any]: ...


class Method(Protocol):
    """An algorithm that advances by epochs. It knows nothing of certificates, limits, attempts and turns.

    Attributes
    ----------
    name : str
    snaps : bool
        Whether the structure of the penalty's point is made exact before a certificate.
    averages : bool
        Whether there is a second point worth a certificate; known after `start`.
    foreseeable : bool
        Whether its gap falls at a rate from which the end can be foreseen.
    attempts : bool
        Whether other ways may be tried between its epochs.
    continues : bool
        Whether it can go on from the answer at another alpha.
    engines : bool
        Whether an engine may find the answer before its first epoch.
    across_rows : bool
        Whether the loss may be one function of all scores; False where it is missing.
    whole_rows : bool
        Whether it visits all scores of a row together, as losses of several scores per row ask for.
    """

    name: str
    snaps: bool
    averages: bool
    foreseeable: bool
    attempts: bool
    continues: bool
    engines: bool
    whole_rows: bool

    def supports(self, problem: Problem) -> str | None:
        """Why the method does not fit the problem; None where it does."""
        ...

    def start(self, problem: Problem, rng: np.random.Generator, warm: Mapping[str, Any] | None = None) -> Any:
        """Prepare everything that stays fixed, and the state (zero, or a warm start's)."""
        ...

    def epoch(self, state: Any) -> EpochReport:
        """One pass over the rows, or over those that need it."""
        ...

    def iterate(self, state: Any) -> Iterate | PrimalIterate:
        """The point of a state; its arrays are the state's own."""
        ...

    def adopt(self, state: Any, iterate: Iterate, gap: float = math.inf) -> None:
        """Go on from a point that somebody proposed, with its relative gap if that is known."""
        ...

    def alternative(self, state: Any) -> Iterate | None:
        """A second point worth a certificate, or None."""
        ...

    def consider_restart(self, state: Any, gap: float, other_gap: float) -> None:
        """The gaps of iterate and alternative were found: start again from the better one if it earned it."""
        ...

    def learn(self, state: Any, gap: float, before: float) -> None:
        """A certificate on schedule found this relative gap, after another one."""
        ...

    def step_size(self, state: Any) -> float:
        """rho, for the record; nan where a method has none."""
        ...
