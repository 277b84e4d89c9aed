"""The parts of an engine whose models hold all coefficients, declared: curvature, inner solver, step.

A round is curvature (a quadratic model of the loss), inner solver (its minimum with the penalty), step (how far to go)
and a proof. The parts know nothing of one another's kinds.

Symbols: w primal with its intercept slots; g gradient and H curvature of the mean loss at w; u = B'w as a prox leaves
it; y dual variables of the penalty, divided by n.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..problem import Problem

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


class Curvature(Protocol):
    """A quadratic model of the loss, kept from round to round."""

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        ...

    def price(self) -> float:
        """Nanoseconds of making it once, by the model of ``solver/prices.py``."""
        ...

    def make(self, curvature: Vector) -> None:
        """Make it from the curvatures of the rows."""
        ...

    def times(self, d: Vector) -> Vector:
        """H d."""
        ...


class InnerSolver(Protocol):
    """Solves a model with the penalty; what it learns of one serves the next."""

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        ...

    def price(self) -> float:
        """Nanoseconds of one model, about."""
        ...

    def solve(self, model: Model, start: Answer, accuracy: float) -> Answer:
        """The answer to an accuracy relative to the length of the step; `start` is overwritten."""
        ...
