"""The parts of an engine whose models hold all coefficients, declared: curvature, inner solver, step.

A round is curvature (a quadratic model of the loss), inner solver (its minimum with the penalty), step (how far to go)
and a proof. There is no restriction: all coefficients are in the model. The parts know nothing of one another's kinds.

Symbols: w primal with its intercept slot; g gradient and H curvature of the mean loss at w; d a move of w; x slopes of
the rows; u = B'w as a prox leaves it; y dual variables of the penalty, divided by n.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from ..problem import Problem

if TYPE_CHECKING:
    from .whole import WholePoint

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@dataclasses.dataclass
class Model:
    """min over v of g'(v - w) + 1/2 (v - w)'H(v - w) + psi(B'v)."""

    w: Vector
    g: Vector
    H: Matrix


@dataclasses.dataclass
class Answer:
    """Of a model: v with the zeros and ties of u, and the multiplier y, which lies in the domain of psi*."""

    v: Vector
    u: Vector
    y: Vector
    solved: bool = True


@dataclasses.dataclass
class Taken:
    """Where a step ended, after which share of the way, and the passes over the data that it took; no point where the
    step is refused."""

    point: WholePoint | None
    share: float
    passes: float


class Curvature(Protocol):
    """A quadratic model of the loss, kept from round to round."""

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        ...

    def price(self) -> float:
        """Nanoseconds of making it once, by the model of :mod:`fenchel.prices`."""
        ...

    def make(self, curvature: Vector, rough: bool = False) -> None:
        """Make it from the curvatures of the rows; a rough one may do."""
        ...

    def times(self, d: Vector) -> Vector:
        """H d."""
        ...

    def along(self, d: Vector, scores: Vector) -> Vector:
        """The change of x that belongs to a move d with these scores: Z (it) / n = H d."""
        ...

    def refuse(self) -> None:
        """A step was no use: be more careful."""
        ...

    def trust(self) -> None:
        """A step was as foreseen: be less careful."""
        ...


class InnerSolver(Protocol):
    """Solves a model with the penalty; what it learns of one serves the next."""

    nanoseconds: float  # of all models so far, by the model of prices

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        ...

    def price(self) -> float:
        """Nanoseconds of one model, about."""
        ...

    def move_to(self, problem: Problem) -> None:
        """Go on with another alpha."""
        ...

    def solve(self, model: Model, start: Answer, accuracy: float) -> Answer:
        """The answer to an accuracy relative to the length of the step; `start` is overwritten."""
        ...

    def learn(self, H: Matrix, a: Vector, b: Vector) -> None:
        """H has become this by adding a a' - b b'."""
        ...


class Step(Protocol):
    """How far to go from a point towards a model's answer; `foreseen` is H times the way."""

    def __call__(self, point: WholePoint, answer: Answer, foreseen: Vector) -> Taken: ...
