"""The four parts of the engine of working sets, declared: restriction, curvature, inner solver, step.

A round restricts the problem to some units, models the loss there, solves the model with the penalty, and goes as far
as the true objective falls. ``rounds.py`` puts the parts together and knows them by these protocols alone; whether a
kind suits a problem is asked of the engine, and what it costs of ``choices.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from .inner.local import LocalPenalty
from .point import Point
from .restrictions.columns import Columns
from .units import Index, Units, Vector


class Restriction(Protocol):
    """The units that a round works on, and products with their columns.

    Attributes
    ----------
    chosen, coefs : the units, and their coefficients one unit after another
    where, columns : for every output the places of its coefficients among these, and their columns
    whole : whether all units are in
    """

    chosen: Index
    coefs: Index
    where: list[Index]
    columns: list[Any]
    whole: bool

    @property
    def size(self) -> int:
        """Coefficients."""
        ...

    def fits(self, size: int) -> bool:
        """Whether so many coefficients stay within the budget of memory."""
        ...

    def candidates(self, scores: Vector, support: int, level: float, few: int) -> Index:
        """The units to add, by how hard they pull."""
        ...

    def add(self, units: Units, new: Index) -> None:
        """Let units in."""
        ...

    def keep(self, units: Units, some: Index) -> Index:
        """Drop all units but some; the places that their coefficients had."""
        ...

    def take_all(self, units: Units) -> None:
        """Let all units in."""
        ...

    def scores(self, values: Vector, shift: Vector) -> Vector:
        """The rows' scores of these coefficients and intercepts."""
        ...

    def slopes(self, x: Vector) -> Vector:
        """X'x / n on the set."""
        ...


class Curvature(Protocol):
    """A quadratic model of the loss on the set, the intercepts eliminated.

    Attributes
    ----------
    matrix, count : the curvature of so many coefficients
    dtype, precise : of the matrix; whether single precision will no longer do
    """

    matrix: Any
    count: int
    dtype: type
    precise: bool

    def forget(self) -> None:
        """Have it made anew."""
        ...

    def keep(self, places: Index) -> None:
        """Drop all coefficients but these."""
        ...

    def extend(self, parts: list[Columns], where: list[Index], curvature: Vector, ridge: Vector) -> bool:
        """Make what is missing; whether that is all of it."""
        ...

    def lean(self, push: Vector, where: list[Index]) -> Vector:
        """What intercepts with slopes `push`, which follow the coefficients, take off the slopes of these."""
        ...

    def follow(self, change: Vector, push: Vector, where: list[Index]) -> Vector:
        """The steps of the intercepts that go with a change of the coefficients."""
        ...

    def change(self, curvature: Vector) -> float:
        """How far the rows' curvatures are from those that it was made of."""
        ...

    def roots(self, part: Any) -> Callable[[Index], Vector] | None:
        """What makes a factor of it from the columns, where that is possible."""
        ...


class InnerSolver(Protocol):
    """Solves a model with the penalty of the set; `prices` are nanoseconds of its operations."""

    prices: Any

    def solve(self, G: Any, q: Vector, v: Vector, penalty: LocalPenalty, target: float, most: int = ...,
              **groups: Any) -> float:  # fmt: skip
        """Bring v, and the model's slopes q with it, so far that its gap is at most `target`; what is left of it."""
        ...


class Step(Protocol):
    """Moves a point towards the model's answer, and says which share of the way."""

    def __call__(
        self, point: Point, working: Restriction, local: Units, old: Vector, new: Vector, slope: Vector, push: Vector,
        follow: Callable[[Vector], Vector],
    ) -> float:  # fmt: skip
        """`slope` and `push` are the loss's slopes along the coefficients and the intercepts, of which `follow` tells
        the steps that go with a change of the coefficients."""
        ...
