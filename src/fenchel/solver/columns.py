"""Other columns for the same problem, on which a solver gets there sooner, at times by orders of magnitude.

Columns far from zero are centred: an intercept makes up for where they lie, and nothing else changes. Behind a full
map that can be inverted the coordinates of the map take the place of the features.
"""

from __future__ import annotations

import dataclasses
import mmap
import time
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg

from .._validate import Array, MatrixLike, SparseMatrix
from ..engine.registry import fitting
from ..engine.roles import Engine
from ..engine.rounds import WorkingSets
from ..engine.tasks import BlockModels
from ..foundation.numerics import AT_ONCE, COPY, LITTLE, ROUNDING, SPACE
from ..maps.gram import is_full
from ..problem import Problem
from .engines import HANDFUL, Engines
from .progress import Progress
from .result import Result, Snapshot, Status
from .run import Run
from .settings import Settings
from .starts import Start

_Move: TypeAlias = Callable[[Array, float | Array], tuple[Array, float | Array]]  # of coefficients and intercept
_FAR = 10.0  # standard deviations between a column's mean and zero; larger: slow fits on raw columns
_NEAR = 1.0  # the same, where a copy of the data takes little room: a mean beyond it is most of a column's square


class Moving:
    """Between a problem and the same on other columns."""

    def undo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        """Coefficients and intercept for the columns as they stand in the data."""
        raise NotImplementedError

    def redo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        """What `undo` undoes."""
        raise NotImplementedError

    def moved_back(self, result: Result) -> Result:
        """The result for the columns as they stand in the data; its bounds are those of the problem that was solved."""
        coef, intercept = self.undo(result.coef, result.intercept)
        return dataclasses.replace(result, coef=coef + 0.0, intercept=intercept)


@dataclasses.dataclass
class Scaling(Moving):
    """Columns brought to mean 0 (if `center` is not None) and standard deviation 1 before the fit."""

    scale: Array
    center: Array | None = None

    def undo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        coef = coef / self.scale
        return coef, intercept if self.center is None else intercept - coef @ self.center

    def redo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        return coef * self.scale, intercept if self.center is None else intercept + coef @ self.center


@dataclasses.dataclass
class Coordinates(Moving):
    """Features in the coordinates v = B w of an invertible map, in which the penalty stands alone."""

    matrix: SparseMatrix
    factor: tuple[Array, Array]

    def undo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        return scipy.linalg.lu_solve(self.factor, coef), intercept

    def redo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        return self.matrix @ coef, intercept


def in_coordinates(problem: Problem) -> tuple[Problem, Coordinates] | None:
    """The problem on the columns X B^-1 without its map B, where that is square, joins most features (a transform, such
    as that to cosines or wavelets) and is well inverted.

    The penalty falls into units again, if it did before the map, and products with a full map are what takes longest
    otherwise.
    """
    if problem.vectors != 1 or problem.pooled or 8.0 * problem.n * problem.p > SPACE:
        return None
    found = None if problem.penalty is None else problem.penalty.behind(problem.p)
    if found is None or found[1].shape[0] != found[1].shape[1] or not is_full(found[1]):
        return None
    penalty, matrix = found
    dense = matrix.toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # of a matrix that is singular
        factor = scipy.linalg.lu_factor(dense)
    inverted = scipy.linalg.lapack.dgecon(factor[0], np.abs(dense).sum(axis=0).max())[0]
    if not problem.p * inverted > LITTLE:  # coefficients would lose digits; lengths by columns are up to p times as far
        return None
    X = np.asarray(problem.data.filled() if problem.data.sparse else problem.data.dense, dtype=float)
    columns = np.ascontiguousarray(scipy.linalg.lu_solve(factor, X.T, trans=1).T)
    return problem.with_data(columns).with_penalty(penalty), Coordinates(matrix, factor)


@dataclasses.dataclass
class Chain(Moving):
    """One change of the columns after another."""

    first: Moving
    then: Moving

    def undo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        return self.first.undo(*self.then.undo(coef, intercept))

    def redo(self, coef: Array, intercept: Array | float) -> tuple[Array, Array | float]:
        return self.then.redo(*self.first.redo(coef, intercept))


@np.errstate(over="ignore", invalid="ignore")  # what overflows is refused later, with its place
def centred(X: MatrixLike) -> tuple[MatrixLike, Scaling | None]:
    """X and None; or a copy of dense X with its columns centred, where some lie far from zero.

    With an intercept this changes nothing but the intercept, and the solver gets there sooner, at times by orders of
    magnitude.
    """
    if not isinstance(X, np.ndarray):
        return X, None
    parts = chunks(X)
    mean = sum(X[rows].sum(axis=0, dtype=float) for rows in parts) / len(X)
    spread = np.sqrt(sum(((X[rows] - mean) ** 2).sum(axis=0) for rows in parts) / len(X))
    far = _NEAR if X.nbytes <= COPY and X.dtype == np.float64 else _FAR  # single precision would lose digits
    if not np.any((np.abs(mean) > far * spread) & (spread > ROUNDING * np.abs(mean))):
        return X, None
    out = np.empty_like(X)
    for rows in parts:
        out[rows] = X[rows] - mean
    return out, Scaling(np.ones(X.shape[1]), mean)


def on_other_columns(problem: Problem) -> tuple[Problem, Moving | None]:
    """The problem on centred columns or in the coordinates of its map, and how to undo it; the problem itself and None
    where that would change nothing.

    Some engines see to their columns themselves. Others and epochs need many times the passes where columns lie
    far from zero and an intercept has to make up for it.
    """
    moved = in_coordinates(problem)
    if moved is not None:
        return moved
    if not problem.fit_intercept or problem.pooled or problem.data.sparse:
        return problem, None
    if _sees_to_columns(fitting(problem), problem):
        return problem, None
    X, scaling = centred(problem.data.dense)
    return (problem, None) if scaling is None else (problem.with_data(X), scaling)


def begun_on_other_columns(
    problem: Problem, settings: Settings, engines: Engines, warm_start: Result | None
) -> tuple[Result, Settings] | None:
    """Where a run on other columns ended, as a result of the problem itself, and the settings with what is left of the
    limits: whoever goes on from it proves what it is worth for the columns as they stand, and improves on it where that
    is not enough. None where the columns are well as they stand."""
    if not settings.engines or settings.max_epochs < HANDFUL:
        return None
    started = time.perf_counter()
    other: tuple[Problem, Moving] | None = in_coordinates(problem) or _on_centred(problem, engines)
    if other is None:
        return None
    at, moved = other[0], _Moved(problem, other[1])
    start, before = warm_start, 0
    if warm_start is not None:
        resumed = warm_start.state.get("problem") == problem.fingerprint
        start, before = moved.there(warm_start, at, resumed), warm_start.epochs if resumed else 0
    own = dataclasses.replace(settings, callback=moved.callback(settings.callback))
    found = Run(at, own, Engines(at, own, [at.alpha])).go(Start.of(at, start))
    left = max(settings.max_epochs - (found.epochs - before), 0)
    if found.status in (Status.CALLBACK, Status.INTERRUPTED):
        left = 0
    seconds = settings.time_limit
    if seconds is not None:
        seconds = max(seconds - (time.perf_counter() - started), 0.0)
    return moved.back(found), dataclasses.replace(settings, max_epochs=left, time_limit=seconds)


def _on_centred(problem: Problem, engines: Engines) -> tuple[Problem, Moving] | None:
    """The problem on centred columns, where some lie far from zero and the engine does not see to them."""
    if not _may_be_centred(problem, engines):
        return None
    data = problem.data
    mean = data.transposed_times(np.ones(data.n)) / data.n
    if not np.any(mean**2 > _FAR**2 * np.maximum(data.mean_squares - mean**2, 0.0)):
        return None
    X, scaling = centred(data.dense)
    return None if scaling is None else (problem.with_data(X), scaling)


def _may_be_centred(problem: Problem, engines: Engines) -> bool:
    """Whether there is an intercept, room for a copy, and no engine that sees to the columns itself."""
    if not problem.fit_intercept or problem.pooled or problem.data.sparse or _in_a_file(problem.data.dense):
        return False
    return not _sees_to_columns(engines.engine, problem)


def _sees_to_columns(engine: Engine | None, problem: Problem) -> bool:
    """Whether an engine takes columns from their means itself: working sets, and moments of tasks and outputs, which
    also prove that way. (A proof for the columns as they stand costs many times such a fit.)"""
    if engine is None:
        return False
    return engine.name == WorkingSets.name or (engine.name == BlockModels.name and problem.loss.quadratic)


def _in_a_file(X: Any) -> bool:
    """Whether an array is mapped from a file, and may be larger than memory."""
    while X is not None and not isinstance(X, mmap.mmap):
        X = getattr(X, "base", None)
    return X is not None


@dataclasses.dataclass
class _Moved:
    """Snapshots and results of a problem, and those of the same on other columns."""

    problem: Problem
    moving: Moving

    def callback(self, tell: Callable[[Snapshot], object] | None) -> Callable[[Snapshot], object] | None:
        """What is to be told of points on other columns, told of the same points of the problem."""
        if tell is None:
            return None
        return lambda seen: tell(Snapshot(seen.record, self.problem, self._vector(seen._w, self.moving.undo)))

    def back(self, found: Result) -> Result:
        """A result on other columns as one of the problem."""
        return self._as_result(found, self.problem, self.moving.undo, True)

    def there(self, given: Result, at: Problem, resumed: bool) -> Result:
        """A result of the problem, or of another one, as one on other columns."""
        return self._as_result(given, at, self.moving.redo, resumed)

    def _as_result(self, given: Result, at: Problem, move: _Move, same: bool) -> Result:
        """The point with its dual variables and how far the run was; sums over the columns are made anew."""
        known = given.state
        kept: dict[str, Any] = {"epoch": 0} | {name: known[name] for name in ("x", "y", "u", "rho") if name in known}
        if np.shape(known.get("w", ())) == (at.size,):
            kept["w"] = self._vector(known["w"], move)
        if same:
            kept |= Progress.from_dict(known).as_dict() | {"problem": at.fingerprint}
        if np.shape(given.coef)[-1] != at.p:  # whoever starts from it says so
            return given
        coef, intercept = move(given.coef, given.intercept)
        return Result.remembered(
            coef,
            intercept,
            status=given.status,
            history=given.history,
            epochs=given.epochs,
            seconds=given.seconds,
            state=kept,
        )

    def _vector(self, w: Array, move: _Move) -> Array:
        return self.problem.pack(*move(*self.problem.unpack(w)))


def chunks(X: Array) -> list[slice]:
    """Rows that are dealt with at a time."""
    step = max(1, AT_ONCE // X.shape[1])
    return [slice(first, first + step) for first in range(0, len(X), step)]
