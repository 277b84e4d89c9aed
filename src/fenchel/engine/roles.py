"""The roles of whatever proposes answers to the loop, declared.

Symbols: w primal; x and y dual variables of rows and penalty; zx = Z x; u = B'w as the penalty's prox leaves it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ..problem import Certificate, Problem

Array = npt.NDArray[np.float64]


@dataclasses.dataclass
class Iterate:
    """A point with its dual variables; `scores` are Z'w, where somebody knows them."""

    w: Array
    x: Array
    y: Array
    zx: Array
    u: Array
    scores: Array | None = None

    @classmethod
    def zero(cls, problem: Problem) -> Iterate:
        """w = 0 and all dual variables 0."""
        visits, size, d = problem.visits, problem.size, problem.d
        return cls(np.zeros(size), np.zeros(visits), np.zeros(d), np.zeros(size), np.zeros(d))

    def copy(self) -> Iterate:
        """With arrays of its own."""
        scores = None if self.scores is None else self.scores.copy()
        return Iterate(self.w.copy(), self.x.copy(), self.y.copy(), self.zx.copy(), self.u.copy(), scores)

    def copy_to(self, w: Array, x: Array, y: Array, zx: Array, u: Array) -> None:
        """Overwrite the arrays of somebody who goes on from here."""
        w[:], x[:], y[:], zx[:], u[:] = self.w, self.x, self.y, self.zx, self.u


class Proposal:
    """A point that somebody offers to the loop, which believes nothing but its certificate.

    Parameters
    ----------
    iterate : Iterate, or a function that makes it
        Dual variables of a whole path are made for those points alone that somebody goes on from; `w` is then given.
    primal : float
        The objective at its w.
    passes : float
        Over the data, that it cost since the proposal before.
    by : str
        Who made it.
    certificate : Certificate, optional
        As the problem made it; the loop makes one where it is missing.
    exact : bool
        Whether the zeros and ties of the answer are exact in it already.
    w : array, optional
        The point itself, where the iterate is still to be made.
    nanoseconds : float
        By the model of :mod:`fenchel.prices`, that it cost since the proposal before; the schedule goes by it.
    """

    def __init__(
        self, iterate: Iterate | Callable[[], Iterate], primal: float, passes: float, by: str,
        certificate: Certificate | None = None, exact: bool = False, w: Array | None = None, nanoseconds: float = 0.0,
    ) -> None:  # fmt: skip
        self._iterate, self._w = iterate, w
        self.primal, self.passes, self.by, self.certificate, self.exact = primal, passes, by, certificate, exact
        self.nanoseconds = nanoseconds

    @property
    def iterate(self) -> Iterate:
        if not isinstance(self._iterate, Iterate):
            self._iterate = self._iterate()
        return self._iterate

    @property
    def w(self) -> Array:
        return self.iterate.w if self._w is None else self._w


@dataclasses.dataclass(frozen=True)
class Goal:
    """What is wanted, and what it may take.

    Attributes
    ----------
    tol : float
        Relative gap to reach.
    deadline : float
        By the clock of time.perf_counter; whoever is at work then ends with what it has.
    passes : float
        Over the data, that are left.
    allowed : callable
        The largest gap, in units of the objective, of an answer with the objective that it is given: the one rule of
        ``solver/convergence.py``.
    nanoseconds : float
        By the model of :mod:`fenchel.prices`, that may be spent; whoever is at work then ends with what it has.
    """

    tol: float
    deadline: float
    passes: float
    allowed: Callable[[float], float]
    nanoseconds: float = math.inf

    def reached(self, certificate: Certificate) -> bool:
        """Whether a certificate proves a good enough answer."""
        return certificate.certified and certificate.gap <= self.allowed(certificate.primal)


class Attempt(Protocol):
    """Something that is tried once, from where the epochs are, and either has a point to propose or not.

    It is made for one problem, and what it learns of that problem is its own memory.
    """

    name: str

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        ...

    def price(self, start: Iterate) -> float:
        """Nanoseconds, by the model of :mod:`fenchel.prices`, of the least that a run from here takes."""
        ...

    def run(self, start: Iterate, goal: Goal, budget: float) -> Proposal | None:
        """A point, for about `budget` nanoseconds; None where that is too little, or nothing came of it."""
        ...


class Engine(Protocol):
    """Something that finds answers by itself, round after round, along a falling sequence of alphas.

    One object serves a whole path, so that it may remember what the alphas share.
    """

    name: str

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        ...

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """Told once, before the first alpha: all of them, from large to small. It may look ahead."""
        ...

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals for the problem at one alpha, each with its certificate as ``problem.certificate`` made it.

        `start` is the answer of a run that is continued, or of a neighbour; None means from zero, and along a path from
        what the engine remembers. The rounds end where the
        engine gives up. The loop leaves them where an answer is good enough, or somebody wants to stop.
        """
        ...
