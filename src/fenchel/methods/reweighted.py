r"""Losses of all scores at once, behind any penalty and map: squares of new rows, again and again.

With slopes x at scores u and the curvature :math:`L^\top \mathrm{diag}(\omega) L` of ``losses/coupled.py``, the model

.. math:: F(u) + x^\top (u' - u) + \tfrac12 \|L (u' - u)\|_\omega^2 = \tfrac12 \|L u' - t\|_\omega^2 + \text{const},
   \qquad t = L u - z / \omega, \quad L^\top z = x

is a weighted sum of squares of the rows L X: whatever solves such problems solves the model, an engine where one fits
and epochs of SDCA-ADMM where none does. (L would fill sparse data. Their models have the diagonal bound h of the
curvature instead, with an intercept, which a loss that does not change along a constant has for nothing.) The step is
halved until the true objective falls.

The dual variables of the model, the slopes that it foresees and y, balance each other over the features; the former
differ from the true slopes to second order, so that they are what is certified.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._validate import Array
from ..engine.registry import fitting
from ..engine.roles import Goal, Iterate
from ..foundation.numerics import ARMIJO, DIGITS, HALVINGS, LITTLE, NOTHING
from ..kernels.rules import LOOK, LOOSE
from ..losses import CoupledCurvature
from ..problem import Problem
from .common import DualState, Method
from .roles import EpochReport
from .sdca_admm.method import SDCAADMM

EPOCHS = 2000  # for a model where no engine fits, at the most; more: longer before it is given up


@dataclasses.dataclass(kw_only=True)
class ModelState(DualState):
    """With what the last step gained."""

    gained: float = math.inf


class ReweightedSquares(Method):
    """Weighted least squares with the penalty, again and again; for losses that are no sum over rows.

    Parameters
    ----------
    engine : bool
        Whether an engine may find the answer first, where one fits the loss itself. ``method="auto"`` lets it.
    """

    name = "reweighted-squares"
    OPTIONS = ("engine",)
    snaps = continues = across_rows = True
    state_type = ModelState

    def __init__(self, engine: bool = False) -> None:
        if engine not in (True, False):
            raise ValueError(f"engine is {engine!r}; it must be True or False")
        self.engines = bool(engine)

    def supports(self, problem: Problem) -> str | None:
        """Why the method does not fit the problem; None where it does."""
        if not problem.loss.across_rows:
            return f"it is for losses of all scores at once, and {type(problem.loss).__name__} is a sum over rows"
        return None

    def start(self, problem: Problem, rng: np.random.Generator, warm: Mapping[str, Any] | None = None) -> ModelState:
        """The models' problem, and the state: zero, or a warm start's."""
        self.problem, self.squares = problem, problem
        state = ModelState.fresh(self.name, problem, rng)
        assert isinstance(state, ModelState)
        if warm is not None:
            for key, own in (("w", state.w), ("y", state.y), ("u", state.u)):
                if len(warm.get(key, ())) != own.size:
                    raise ValueError(
                        f"warm_start has {len(warm.get(key, ()))} entries in {key}; this problem has {own.size}"
                    )
                own[:] = warm[key]
            if warm.get("resumed") and "gained" in warm:
                state.gained, state.epoch = float(warm["gained"]), int(warm["epoch"])
            if "x" in warm:
                state.x[:] = warm["x"]
            if not math.isfinite(problem.mean_conjugate(state.x)):
                state.x[:] = problem.slopes_at(problem.scores(state.w))
            state.zx[:] = problem.gradient_sum(state.x)
        return state

    def adopt(self, state: Any, iterate: Iterate, gap: float = math.inf) -> None:
        """Go on from a point that an engine has proposed."""
        iterate.copy_to(state.w, state.x, state.y, state.zx, state.u)
        state.gained = math.inf

    def epoch(self, state: Any) -> EpochReport:
        """One model, and a step towards its answer."""
        problem, loss = self.problem, self.problem.loss
        u = problem.scores(state.w)
        total, x, h = loss.sums(problem.seen(u), problem.target, problem.weight)
        if not h.any():  # nothing is left to be gained along any score
            state.x[:], state.zx[:] = x, problem.gradient_sum(x)
            state.epoch += 1
            return EpochReport()
        penalty = problem.penalty_value(problem.penalised(state.w))
        value = total / problem.n + penalty
        aim = LOOSE * state.gained if math.isfinite(state.gained) else LITTLE * abs(value)
        model = self._model(u, x, h)
        answer, foreseen = model.solve(state, max(aim, DIGITS * abs(value)))
        new = answer.w.copy()
        new[problem.intercept_slots] = 0.0
        end = problem.scores(new)
        end_penalty = problem.penalty_value(problem.penalised(new))
        promised = float(x @ (end - u)) / problem.n + end_penalty - penalty
        share, before = 1.0, value
        for _ in range(HALVINGS):
            w = new if share == 1.0 else state.w + share * (new - state.w)
            scores = end if share == 1.0 else u + share * (end - u)
            own = end_penalty if share == 1.0 else problem.penalty_value(problem.penalised(w))
            value = loss.total(problem.seen(scores), problem.target, problem.weight) / problem.n + own
            if value <= before + ARMIJO * share * min(promised, 0.0) + 1e-15 * abs(before):
                break
            share *= 0.5
        else:
            w, scores, value = state.w, u, before
        state.w[:], state.y[:], state.u[:] = w, answer.y, answer.u
        state.x[:] = self._dual(foreseen, scores)
        state.zx[:] = problem.gradient_sum(state.x)
        state.gained = max(before - value, 0.0)
        state.epoch += 1
        return EpochReport()

    def _dual(self, foreseen: Array, scores: Array) -> Array:
        """The slopes that the model foresees, where they are in the domain of the conjugate; else the true ones."""
        if math.isfinite(self.problem.mean_conjugate(foreseen)):
            return foreseen
        return self.problem.slopes_at(scores)

    def _model(self, u: Array, x: Array, h: Array) -> _Model:
        """The model at scores u, where the loss has the slopes x and the diagonal bound h of its curvature."""
        problem = self.problem
        if problem.data.sparse:
            self.squares = self.squares.squares(np.where(h > 0, u - x / np.where(h > 0, h, 1.0), u), h)
            return _Model(self.squares, float(h.mean()), problem.alpha, None)
        loss: Any = problem.loss
        curved: CoupledCurvature = loss.curvature_at(problem.seen(u), problem.target, problem.weight)
        weight = np.where(h > 0, np.maximum(curved.squares, NOTHING * float(h.mean())), 0.0)
        z = curved.solve_up(x)
        target = curved.down(u[None])[0] - z / np.where(weight > 0, weight, 1.0)
        rows = np.ascontiguousarray(problem.data.dense)
        self.squares = self.squares.squares(target, weight, curved.down_rows(rows))
        return _Model(self.squares, float(weight.mean()), problem.alpha, curved)


class _Model:
    """Squares that stand for the loss, in units of their mean weight, `height`, and how to solve them."""

    def __init__(self, squares: Problem, height: float, alpha: float, curved: CoupledCurvature | None) -> None:
        self.problem, self.height, self.curved = squares.with_alpha(alpha / height), height, curved

    def solve(self, state: Any, allowed: float) -> tuple[Iterate, Array]:
        """The answer to a gap of `allowed`, and the slopes of the loss that it foresees."""
        height = self.height
        start = Iterate(state.w.copy(), state.x / height, state.y / height, state.zx / height, state.u.copy())
        if self.curved is not None:
            start.x = self.curved.solve_up(start.x)
        found = self._answer(start, Goal(0.0, math.inf, math.inf, lambda primal: allowed / height))
        x = height * found.x
        if self.curved is not None:
            x = self.curved.up(x)
        return Iterate(found.w, x, height * found.y, found.zx, found.u), x

    def _answer(self, start: Iterate, goal: Goal) -> Iterate:
        model = self.problem
        engine, best, gap = fitting(model), start, math.inf
        if engine is not None:
            engine.begin(model, [model.alpha], 0.0)
            for proposal in engine.rounds(model, start, goal):
                made = proposal.certificate or model.certificate(proposal.iterate, fresh=False)
                if made.gap < gap:
                    best, gap = proposal.iterate, made.gap
                if goal.reached(made):
                    return best
        return self._by_epochs(best, goal)

    def _by_epochs(self, start: Iterate, goal: Goal) -> Iterate:
        """The same by epochs of SDCA-ADMM."""
        model, method = self.problem, SDCAADMM(newton=False)
        warm = {"w": start.w, "x": start.x, "y": start.y, "u": start.u, "epoch": 0}
        inner = method.start(model, np.random.default_rng(0), warm)
        at = start
        for number in range(1, EPOCHS + 1):
            method.epoch(inner)
            if number % LOOK == 0:
                found = method.iterate(inner)
                w = model.within(model.snap(found.w, found.u))
                at = Iterate(w, found.x, found.y, found.zx, found.u)
                if goal.reached(model.certificate(at, primal=model.primal_at(w))):
                    break
        return at
