"""Rounds for rows in a pool with many features that a map joins: models of a sample on faces of the penalty.

The curvature of the sample is never made for all features: it is an operator. A prox of the whole penalty after a step
along the model's gradient says which units of B'w are free; on their face, w = N z with few coefficients z (see
``restrictions/face.py``), the model is a small matrix, and its minimum is found as always. A step from there says
whether further units are free, until none are. All of that is the driver's work and takes no pass; a pass then tells
what the model was worth.

The dual variables of the certificate come from the same prox, at the point that was looked at.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..foundation.numerics import NOTHING
from ..kernels.rules import LARGEST, LOOK
from ..prices import PRICES
from ..problem import Certificate, Problem
from ..problem.looks import View
from ..problem.pooled import PooledProblem
from .accuracy import ROUNDS_CHEAP
from .curvatures.sampled import SampledCurvature
from .curvatures.step_length import Steps
from .inner.admm import Admm
from .lower_gram import lower_gram
from .parts import Answer, Matrix, Model, Vector
from .restrictions import face
from .restrictions.face import FaceProblem
from .roles import Goal
from .sampled import Fit, SampledModels
from .wide import MOST as WIDEST


class SampledFaces(SampledModels):
    """The engine for rows in a pool, smooth losses, and differences or overlapping units over many features."""

    name = "sampled models on faces"

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if not problem.pooled:
            return "the rows are in memory"
        if problem.loss.kinked:
            return f"{type(problem.loss).__name__} has kinks"
        if problem.size <= LARGEST:
            return "a model of all coefficients will do"
        if problem.vectors > 1 or problem.layout[2].size:
            return "several outputs or tasks"
        if int(np.diff(problem.map.indptr).max(initial=0)) > 2:
            return "faces of penalties that join more than two features at once are not small"
        return face.unfit(problem)

    def _fit(self, problem: PooledProblem, goal: Goal) -> Fit:
        return _FaceFit(self, problem, goal)

    def _curvature(self, problem: PooledProblem) -> SampledCurvature:
        return FaceCurvature(problem)

    def _solver(self, problem: PooledProblem) -> Any:
        return None


class FaceCurvature(SampledCurvature):
    """The model's curvature as an operator, and as a matrix on a face."""

    def make(self, view: View, floor: float, mu: float, more: float) -> Any:
        """At a point that was looked at; see :class:`fenchel.engine.curvatures.sampled.SampledCurvature`."""
        problem, X = self.problem, self.part.matrix()
        bend = self.bends(view, floor, more)
        scale = problem.seen_by_rows(np.ones(problem.size))
        own = np.append(_column_squares(X, bend), bend.sum()) * np.square(scale)
        diagonal = view.diagonal + more * np.append(problem.data.mean_squares, 1.0)
        if not problem.fit_intercept:
            diagonal[-1] = own[-1] = scale[-1] = 0.0
        mean = float(diagonal.mean())
        scale *= np.sqrt(np.divide(diagonal, own, out=np.zeros(own.size), where=own > 0))
        # nothing is known of columns without entries: any curvature will do
        diagonal = np.where(diagonal > 0, diagonal, mean)
        alone = (mu + NOTHING + (own <= 0)) * diagonal + 1e-3 * NOTHING * mean + 1e-300
        H = Operator(X, bend, scale, alone)
        for d, change in self.pairs:
            H.add_pair(d, change)
        return H


@dataclasses.dataclass
class Operator:
    """sum of bend_i z_i z_i', with columns of Z scaled, a diagonal, and secants."""

    X: Any
    bend: Vector
    scale: Vector
    alone: Vector
    more: list[Vector] = dataclasses.field(default_factory=list)
    less: list[Vector] = dataclasses.field(default_factory=list)

    def __matmul__(self, v: Vector) -> Vector:
        at = self.scale * v
        scores = self.X @ at[:-1].astype(self.X.dtype) + at[-1]
        pull = self.bend * scores
        out = self.scale * np.append(self.X.T @ pull.astype(self.X.dtype), pull.sum()) + self.alone * v
        for a, b in zip(self.more, self.less, strict=True):
            out += a * float(a @ v) - b * float(b @ v)
        return np.asarray(out)

    def add_pair(self, d: Vector, change: Vector) -> None:
        """See :func:`fenchel.engine.curvatures.sampled.add_pair`."""
        foreseen = self @ d
        curved, expected = float(d @ change), float(d @ foreseen)
        if curved > 0 and expected > 0:
            self.more.append(change / math.sqrt(curved))
            self.less.append(foreseen / math.sqrt(expected))

    def on(self, restricted: FaceProblem) -> Matrix:
        """N'HN, with the intercept."""
        k, p = restricted.count, self.X.shape[1]
        N = sp.csr_array(
            (restricted.side * self.scale[restricted.alive], (restricted.alive, restricted.column)), shape=(p, k)
        )
        rows = np.empty((self.X.shape[0], k))
        step = max(1, (1 << 22) // p)
        for first in range(0, len(rows), step):
            part = self.X[first : first + step] @ N
            rows[first : first + step] = part.toarray() if sp.issparse(part) else part
        lower = lower_gram(rows, self.bend, np.zeros((k, k), order="F"))
        H = np.zeros((k + 1, k + 1))
        H[:k, :k] = np.tril(lower) + np.tril(lower, -1).T
        H[:k, k] = H[k, :k] = self.scale[-1] * (self.bend @ rows)
        H[k, k] = self.scale[-1] ** 2 * self.bend.sum()
        places = np.bincount(restricted.column, self.alone[restricted.alive], k)
        H[np.diag_indices_from(H)] += np.append(np.where(places > 0, places, self.alone.mean()), self.alone[-1])
        for a, b in zip(self.more, self.less, strict=True):
            a, b = merged(restricted, a), merged(restricted, b)
            H += np.outer(a, a) - np.outer(b, b)
        return H

    def top(self) -> float:
        """The largest eigenvalue, about."""
        v, size = self.alone + np.square(self.scale), 1.0
        for _ in range(8):
            v = self @ (v / max(float(np.linalg.norm(v)), 1e-300))
            size = float(np.linalg.norm(v))
        return 1.05 * size


def _column_squares(X: Any, bend: Vector) -> Vector:
    """Sums of bend_i x_ij^2."""
    if sp.issparse(X):
        return np.asarray(X.power(2).T @ bend)
    out, step = np.zeros(X.shape[1]), max(1, (1 << 22) // X.shape[1])
    for first in range(0, len(X), step):
        out += bend[first : first + step] @ np.square(X[first : first + step])
    return out


def merged(restricted: FaceProblem, v: Vector) -> Vector:
    """N'v, with the intercept."""
    return np.append(np.bincount(restricted.column, restricted.side * v[restricted.alive], restricted.count), v[-1])


class _FaceFit(Fit):
    """One alpha."""

    def __init__(self, engine: SampledModels, problem: PooledProblem, goal: Goal) -> None:
        super().__init__(engine, problem, goal)
        self.steps = Steps(problem)
        self.units, self.unit_count = problem.units
        self.slope, self.eta = np.zeros(problem.d), 0.0
        self.seen: View | None = None  # the point that the dual variables belong to
        self.dual = np.zeros(problem.d)

    def _zero(self, u: Vector) -> Any:
        """The coordinates of units that are zero."""
        some = np.zeros(self.unit_count, dtype=bool)
        some[self.units[u != 0]] = True
        # a ridge that the prox takes into its metric leaves nothing in u
        return ~some[self.units] & (self.steps.prox.folded == 0)

    def _prox(self, v: Vector, push: Vector) -> tuple[Vector, Vector]:
        """A step of the whole prox against a slope: where it leads, and B'w there with exact zeros."""
        steps, info = self.steps, np.zeros(4)
        moved = float(v @ v) * 1e-12 or None
        new = steps.go(v - self.eta * push, self.eta, self.slope, moved, info, ROUNDS_CHEAP)
        return new, steps.u if steps.lattice is None else steps.lattice.structure(self.slope)

    def _solve(self, model: Model, start: Answer, accuracy: float) -> Answer:
        problem, H, v = self.problem, model.H, model.w.copy()
        self.eta = 1.0 / H.top()  # type: ignore[attr-defined]
        before: Any = None  # the face of the last step
        ahead, theta, solved, steps = v, 1.0, False, 0
        for _ in range(ROUNDS_CHEAP):
            near, u = self._prox(ahead, model.g + H @ (ahead - model.w))
            zero = self._zero(u)
            still = before is not None and np.array_equal(zero, before)
            if solved and (still or np.linalg.norm(near - v) <= accuracy * np.linalg.norm(v - model.w)):
                break
            before, steps, solved = zero, steps + 1, False
            # accelerated steps, until they stay on a face or have gone far enough to be near one
            if still or steps >= LOOK:
                restricted, steps = FaceProblem(problem, zero), 0
                near = restricted.lift(restricted.inside(near))
                if not problem.fit_intercept:
                    near[-1] = 0.0
                if restricted.count <= WIDEST:
                    v, theta, solved = self._on_face(model, restricted, near, accuracy), 1.0, True
                    ahead = v
                    if self._over():
                        break
                    continue
            turned = float((ahead - near) @ (near - v)) > 0
            following = 1.0 if turned else 0.5 * (1 + math.sqrt(1 + 4 * theta * theta))
            share = 0.0 if turned else (theta - 1) / following
            ahead, v, theta = near + share * (near - v), near, following
        return Answer(v, problem.penalised(v), start.y)

    def _on_face(self, model: Model, restricted: FaceProblem, near: Vector, accuracy: float) -> Vector:
        """The model's minimum on a face."""
        problem, k = self.problem, restricted.count
        restricted._restrict_map()
        small: Any = Problem(np.zeros((1, k)), np.zeros(1), loss="squared", fit_intercept=problem.fit_intercept)
        small._set_blocks(restricted.blocks)
        z = restricted.inside(near)
        H = model.H.on(restricted)  # type: ignore[attr-defined]
        g = merged(restricted, model.g + model.H @ (near - model.w))
        if not small.d:
            used = slice(None) if problem.fit_intercept else slice(k)
            z[used] -= np.linalg.lstsq(H[used, used], g[used], rcond=1e-12)[0]
            return restricted.lift(z)
        start = Answer(z, small.penalised(z), restricted.merged(self.steps.prox.dual(self.slope, near)))
        found = Admm(small, PRICES).solve(Model(z, g, H), start, accuracy)
        return restricted.lift(found.v)

    def _certificate(self, view: View, y: Vector, ask: bool = False) -> Certificate:
        """The dual variables of the penalty are those of a step of the prox from the point itself."""
        if view is not self.seen:
            self.seen, n = view, self.problem.n
            if not self.eta:
                H = self._model(view)
                self.eta = 1.0 / H.top()
            self._prox(view.w, view.gradient)
            self.dual = self.steps.balanced(n * view.gradient, n * self.steps.prox.dual(self.slope, view.w)) / n
        return super()._certificate(view, self.dual, ask)
