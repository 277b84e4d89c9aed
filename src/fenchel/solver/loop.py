"""The one loop: for one alpha or a falling sequence of them; epochs, certificates, limits, callbacks, status.

Every answer goes through it, a path's and a fold's too, and nobody else makes a Result. For every alpha the order is:
what is known or predicted, and then rounds of an engine if one fits (along a path without one, Newton's method from the
prediction) and epochs of the method with attempts between them, in turns (``solver/turns.py``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..engine.attempts import Correction
from ..engine.roles import Iterate
from ..foundation.interrupts import interrupts_noticed
from ..problem import Problem
from .columns import begun_on_other_columns
from .engines import Engines
from .result import Result, Status
from .run import Run
from .settings import Settings
from .starts import Start, Track, warm_state


def fit(problem: Problem, settings: Settings, warm_start: Result | None = None) -> Result:
    """The answer at one alpha, from zero or from another result."""
    engines, known = Engines(problem, settings, [problem.alpha]), None
    if warm_start is None and engines.engine is not None:
        known = _nothing_penalised(problem)
    begun = None if known is not None else begun_on_other_columns(problem, settings, engines, warm_start)
    if begun is not None:
        return _gone_on(problem, *begun)
    start = Start.of(problem, warm_start)
    start.known = known
    return Run(problem, settings, engines).go(start)


def _gone_on(problem: Problem, begun: Result, settings: Settings) -> Result:
    """The answer for the columns as they stand, from where a run on centred ones ended: what that is worth is proven
    for them, and with what is left of the limits it is improved where that is not enough."""
    ended = begun.status in (Status.CALLBACK, Status.INTERRUPTED)
    if ended:
        settings = dataclasses.replace(settings, callback=None)
    found = Run(problem, settings, Engines(problem, settings, [problem.alpha])).go(Start.of(problem, begun))
    return dataclasses.replace(found, status=begun.status) if ended else found


def _nothing_penalised(problem: Problem) -> Iterate | None:
    """The answer whose penalised part is zero, where somebody knows it and alpha is large enough for it."""
    found = problem.zero_answer
    if found is None or not found.alpha <= problem.alpha * (1 + 1e-12) or found.y.size != problem.d:
        return None
    return Iterate(found.w, found.x, found.y, problem.gradient_sum(found.x), np.zeros(problem.d))


def follow(
    problem: Problem, alphas: Sequence[float], settings: Settings, known: Iterate | None = None, *, correct: bool = True
) -> Iterator[Result]:
    """The answers for falling alphas, one after another, without the method's state.

    `known` is the answer at the first of them, if somebody knows it; `correct` lets Newton's method carry a prediction
    to the next answer, where no engine does. After Ctrl-C the last result has that status.
    """
    problem = problem.with_alpha(max(alphas, default=problem.alpha))  # without a penalty another engine would fit
    engines, track = Engines(problem, settings, alphas), Track()
    correction = None
    if correct and engines.engine is None and settings.max_epochs > 0 and Correction.unfit(problem) is None:
        correction = Correction(problem)
    problem.zero_certificate()  # what it knows of zero is shared by all alphas
    with interrupts_noticed() as caught:
        for k, alpha in enumerate(alphas):
            at = problem.with_alpha(alpha)
            run = Run(at, settings.sharing(len(alphas) - k), engines, caught)
            if correction is not None:
                correction.move_to(at)
            # an engine predicts for itself
            start = Start(known=known, keep=False) if engines.engine is not None else track.start(at, known)
            result = run.go(start, correction)
            known = None
            if engines.engine is None and run.method.continues:
                end = run.end()
                if isinstance(end, Iterate):
                    track.add(alpha, end, run.rho)
            yield result
            if result.status is Status.INTERRUPTED:
                return


def warm_from(problem: Problem, state: Mapping[str, Any]) -> Result | None:
    """What `solve` needs to start from a point: a dict with w, x and y, and rho if it is known.

    None where the point is of another shape. The problem may be another one; x is brought into its domain.
    """
    sizes = {"w": problem.size, "x": problem.visits, "y": problem.d}
    if any(np.shape(state.get(key, ())) != (size,) for key, size in sizes.items()):
        return None
    coef, intercept = problem.unpack(state["w"])
    point = warm_state(problem, state["w"], state["x"], state["y"], state.get("rho"))
    return Result.remembered(coef, intercept, state=point)
