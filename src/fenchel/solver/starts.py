"""Where a run begins: at zero, where another one ended, or where the answers at larger alphas point to."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..engine.roles import Array, Iterate
from ..problem import Problem
from .result import Record, Result


@dataclasses.dataclass
class Start:
    """All fields empty means zero.

    Attributes
    ----------
    saved : dict, optional
        The state of another result, which the method goes on from.
    answer : (coefficients, intercept), optional
        That result's. The method looks first whether its shape fits.
    resumed : bool
        Whether it was a run of this very problem; from any other only the point itself is taken.
    history, seconds
        Of the run that is resumed.
    predicted : Iterate, optional
        A point near the answer, perhaps with x outside its domain.
    rho : float, optional
        The step that served the last alpha.
    known : Iterate, optional
        What somebody believes to be the answer.
    keep : bool
        Whether the result keeps the method's state.
    """

    saved: dict[str, Any] | None = None
    answer: tuple[Array, float | Array] | None = None
    resumed: bool = False
    history: Sequence[Record] = ()
    seconds: float = 0.0
    predicted: Iterate | None = None
    rho: float | None = None
    known: Iterate | None = None
    keep: bool = True

    @property
    def is_zero(self) -> bool:
        """Whether nothing is known to begin with."""
        return self.saved is None and self.predicted is None and self.known is None

    def packed(self, problem: Problem) -> Array | None:
        """The answer as one vector."""
        try:
            return None if self.answer is None else problem.pack(*self.answer)
        except ValueError as error:
            raise ValueError(f"warm_start does not fit this problem: {error}") from error

    @classmethod
    def of(cls, problem: Problem, result: Result | None) -> Start:
        """Where a result ended, or zero."""
        if result is None:
            return cls()
        answer = result.coef, result.intercept if problem.fit_intercept else 0.0
        if problem.pooled:
            return cls._of_pool(problem, result, answer)
        if result.state.get("problem") != problem.fingerprint:
            return cls(saved=result.state, answer=answer)
        return cls(result.state, answer, True, result.history.records, result.seconds)

    @classmethod
    def _of_pool(cls, problem: Problem, result: Result, answer: tuple[Array, float | Array]) -> Start:
        """Where a result ended, for rows that nobody holds: their dual variables follow from w."""
        w, y = problem.pack(*answer), np.asarray(result.state.get("y", ()))
        y = y if y.size == problem.d else np.zeros(problem.d)
        at = Iterate(w, np.zeros(0), y, np.zeros(problem.size), problem.penalised(w))
        if result.state.get("problem") != problem.fingerprint:
            return cls(predicted=at)
        return cls(predicted=at, resumed=True, history=result.history.records, seconds=result.seconds)


def warm_state(problem: Problem, w: Array, x: Array, y: Array, rho: float | None) -> dict[str, Any]:
    """A state for SDCA-ADMM to begin at, with x brought into its domain; rho is found anew where it is not known."""
    step = {} if rho is None else {"rho": rho}
    return {"w": w, "x": problem.inside(x), "y": y, "u": problem.penalised(w), "epoch": 0} | step


class Track:
    """The last two answers along a path, and what they predict: between kinks the answer is nearly linear in alpha."""

    def __init__(self) -> None:
        self.points: list[tuple[float, Iterate]] = []  # at most two
        self.rho: float | None = None

    def add(self, alpha: float, end: Iterate, rho: float | None) -> None:
        """A run ended there; rho is None where it had no epochs."""
        self.points = [*self.points[-1:], (alpha, end)]
        self.rho = self.rho if rho is None else rho

    def start(self, problem: Problem, known: Iterate | None) -> Start:
        """Where to begin with the next alpha."""
        return Start(predicted=self._predicted(problem), rho=self.rho, known=known, keep=False)

    def _predicted(self, problem: Problem) -> Iterate | None:
        """w, x and y on the line through the last two answers; u the last one's."""
        if not self.points:
            return None
        (before, first), (last, second) = self.points[0], self.points[-1]
        ahead = (problem.alpha - last) / (last - before) if last != before else 0.0
        w, x, scores = second.w + ahead * (second.w - first.w), second.x + ahead * (second.x - first.x), None
        if first.scores is not None and second.scores is not None:
            scores = second.scores + ahead * (second.scores - first.scores)
        if second.y.size != problem.d or first.y.size != problem.d:  # alpha = 0 has no penalty
            return Iterate(w, x, np.zeros(problem.d), second.zx, np.zeros(problem.d), scores)
        return Iterate(w, x, second.y + ahead * (second.y - first.y), second.zx, second.u, scores)
