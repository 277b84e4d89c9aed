"""Rounds for rows in a pool with many features: models of a sample on the few features that count.

A round looks at w, chooses the units that are not zero or pull hard enough at zero, models the loss on their
coefficients (see ``curvatures/sampled.py``), and minimises the model there. The exact gradient of the next pass, which
comes with it for all features, tells which units are missing. So the driver's work goes by the features at work, and
not by how many there are.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..foundation.numerics import NOTHING
from ..kernels.rules import LARGEST
from ..problem import Problem
from ..problem.looks import View
from ..problem.pooled import PooledProblem
from .curvatures.sampled import SampledCurvature, add_pair
from .inner.descent import ModelDescent
from .inner.local import LocalPenalty
from .lower_gram import lower_gram
from .parts import Answer, Matrix, Model, Vector
from .roles import Goal
from .sampled import ACCURACY, Fit, SampledModels
from .units import Index, Units, dual_variables, units_of

NEAR = 0.9  # of what holds a unit at zero: slopes beyond let it in
SHARE = 0.01  # of the gap that is wanted in the end: how far from its minimum a model may be left
BEGINNING, GROWTH = 500, 2.0  # coefficients of the first set, and of the next ones for each that is not zero


class SampledWorkingSets(SampledModels):
    """The engine for rows in a pool, smooth losses, and penalties that fall into units, where features are many."""

    name = "sampled models of working sets"

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if not problem.pooled:
            return "the rows are in memory"
        if problem.loss.kinked:
            return f"{type(problem.loss).__name__} has kinks"
        if problem.size <= LARGEST:
            return "a model of all coefficients will do"
        if problem.layout[2].size:
            return "tasks have coefficients of their own"
        units = units_of(problem)
        if isinstance(units, str):
            return units
        if units.unheld_count > LARGEST:
            return f"{units.unheld_count} coefficients have no penalty; at most {LARGEST}"
        return None

    def _fit(self, problem: PooledProblem, goal: Goal) -> Fit:
        return _SetFit(self, problem, goal)

    def _curvature(self, problem: PooledProblem) -> SampledCurvature:
        return SetCurvature(problem)

    def _solver(self, problem: PooledProblem) -> Any:
        return None


@dataclasses.dataclass
class SetMatrix:
    """The curvature on some places of w; elsewhere nothing moves."""

    places: Index
    matrix: Matrix

    def __matmul__(self, d: Vector) -> Vector:
        out = np.zeros(d.size)
        out[self.places] = self.matrix @ d[self.places]
        return out


class SetCurvature(SampledCurvature):
    """The model's curvature on a working set."""

    def on(self, places: Index, view: View, floor: float, mu: float, more: float) -> SetMatrix:
        """At a point that was looked at; `places` are those of coefficients, output after output, and intercepts."""
        problem, terms = self.problem, self.terms
        bend = self.bends(view, floor, more)
        H = np.zeros((places.size, places.size))
        stride, slot = problem.p + 1, problem.p
        for k in range(terms.outputs):
            own = np.flatnonzero(places // stride == k)
            columns = places[own] - k * stride
            H[np.ix_(own, own)] = self._weighted(columns, slot, np.ascontiguousarray(bend[k :: terms.outputs]))
        if problem.columns.size:
            scale = problem.seen_by_rows(np.ones(problem.size))[places]
            H *= scale[:, None]
            H *= scale
        squares = np.tile(np.append(problem.data.mean_squares, 1.0), problem.vectors)
        diagonal, there = (view.diagonal + more * squares)[places], np.diag(H).copy()
        mean = float(diagonal.mean())
        change = np.sqrt(np.divide(diagonal, there, out=np.zeros_like(there), where=there > 0))
        H *= change[:, None]
        H *= change
        H[np.diag_indices_from(H)] = (1.0 + mu + NOTHING) * np.where(diagonal > 0, diagonal, mean) + 1e-300
        outside = np.ones(problem.size, dtype=bool)
        outside[places] = False
        for d, changed in self.pairs:
            if not d[outside].any():  # what moved elsewhere is in the change, too
                add_pair(H, d[places], changed[places])
        return SetMatrix(places, H)

    def _weighted(self, columns: Index, slot: int, bend: Vector) -> Matrix:
        """The Gram matrix of some columns of the sample, of which `slot` stands for ones."""
        real = np.flatnonzero(columns != slot)
        some, out = columns[real], np.empty((columns.size, columns.size))
        X = self._by_column[:, some]
        if sp.issparse(X):
            block = (X.T @ sp.diags_array(bend) @ X).toarray()
        else:
            lower = lower_gram(np.ascontiguousarray(X), bend, np.zeros((some.size, some.size), order="F"))
            block = np.tril(lower) + np.tril(lower, -1).T
        out[np.ix_(real, real)] = block
        ones = np.flatnonzero(columns == slot)
        if ones.size:
            out[ones[0], real] = out[real, ones[0]] = X.T @ bend
            out[ones[0], ones[0]] = bend.sum()
        return out

    def use(self, outcome: Any) -> None:
        super().use(outcome)
        X = self.part.matrix()
        self._by_column: Any = X.tocsc() if sp.issparse(X) else X


class _SetFit(Fit):
    """One alpha."""

    curvature: SetCurvature

    @property
    def units(self) -> Units:
        found = units_of(self.problem)
        assert isinstance(found, Units)
        return found

    def _model(self, view: View) -> Any:
        return self.curvature.on(self._places(view), view, self.problem.floor, self.mu, self._extra(view))

    def _places(self, view: View) -> Index:
        """Of the units that are not zero, that nothing holds, or that pull hardest; and of intercepts."""
        problem, units = self.problem, self.units
        slots = problem.feature_slots
        live = np.union1d(units.label[np.flatnonzero(view.w[slots])], units.free)
        scores = units.scores(-view.gradient[slots])
        scores[live] = -1.0
        pulling = np.flatnonzero(scores > NEAR)
        size = units.of_coefficients(live)[0].size
        room = min(max(BEGINNING, GROWTH * size), LARGEST - size)
        hardest = pulling[np.argsort(-scores[pulling], kind="stable")]
        sizes = np.ones(hardest.size) if units.alone else np.diff(units.start)[hardest]
        self.chosen = np.sort(np.concatenate([live, hardest[np.cumsum(sizes) <= room]])).astype(np.int64)
        self.coefs = units.of_coefficients(self.chosen)[0]
        ends = problem.intercept_slots if problem.fit_intercept else problem.intercept_slots[:0]
        return np.concatenate([slots[self.coefs], ends]).astype(np.int64)

    def _solve(self, model: Model, start: Answer, accuracy: float) -> Answer:
        """The minimum over the set: the intercepts follow the coefficients."""
        problem, units, H = self.problem, self.units, model.H
        assert isinstance(H, SetMatrix)
        local, k = units.local(self.chosen), self.coefs.size
        old, g = model.w[H.places], model.g[H.places]
        G, q = H.matrix[:k, :k].copy(), g[:k].copy()
        if k < H.places.size:
            across, own = H.matrix[:k, k:], H.matrix[k:, k:]
            follow = np.linalg.solve(own, np.column_stack([across.T, g[k:]]))
            G -= across @ follow[:, :-1]
            q -= across @ follow[:, -1]
        ridge = local.ridge
        G[np.diag_indices(k)] += ridge
        q += ridge * old[:k]
        v = old[:k].copy()
        if k:
            aim = SHARE * accuracy / ACCURACY * self.goal.allowed(self.lowest)
            ModelDescent(self.engine.prices).solve(np.ascontiguousarray(G), q, v, LocalPenalty.of(local), aim)
        w = model.w.copy()
        w[H.places[:k]] = v
        if k < H.places.size:
            w[H.places[k:]] = old[k:] - follow[:, -1] - follow[:, :-1] @ (v - old[:k])
        gradient = model.g + H @ (w - model.w)
        y = dual_variables(problem, units, problem.n * gradient) / problem.n
        return Answer(w, problem.penalised(w), y)
