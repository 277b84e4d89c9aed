"""A hostile problem solved as a user would, and all that is not as it should be about the answer.

A bound is false where

- the objective of the coefficients, made with sixty digits, is another than the one that is reported, by more than the
  rounding that the certificate allows for; or the coefficients break a limit;
- the lower bound is above the objective, with sixty digits, of this answer or of a better one that is searched for;
- the optimum of a conic solver, which is reached by its own answer, is not between the bounds, by more than such a
  solver may be wrong.
"""

from __future__ import annotations

import dataclasses
import time
import traceback
import warnings
from decimal import Decimal
from typing import Any

import numpy as np

from ...foundation.numerics import ROUNDING
from ...problem import Problem
from ...solver.entry import solve
from ...solver.result import Result, Status
from .exact import DIGITS, Broken, objective
from .exact_losses import NotJudged
from .problems import Drawn, make

CONIC = 1e-5  # relative error of a conic solver on such problems, which it does not tell; smaller: false alarms
SECONDS = 1.0  # that the search for it may take; more: sharper judgements, longer trials


@dataclasses.dataclass
class Outcome:
    """What became of a problem; `broke` is the traceback of an exception, `false` says which bound is not one."""

    drawn: Drawn | None
    seed: int
    status: str = ""
    gap: float = np.inf
    left: float = np.inf  # of the gap, as a share of the objective at zero
    blurred: bool = False  # whether the rounding that the proof allows for is what is left of the gap
    seconds: float = 0.0
    passes: int = 0
    reason: str = ""
    broke: str = ""
    warned: str = ""
    false: str = ""
    exact: int = 0  # objectives that were made with sixty digits
    conic: int = 0  # comparisons with a conic solver

    @property
    def verdict(self) -> str:
        if self.broke:
            return "broke"
        if self.status == "converged":
            return "converged"
        if self.status == "stalled" and (self.left <= ROUNDING or self.blurred):
            return "rounding"
        return "no answer" if self.status == "no answer" else "unconverged"

    @property
    def wrong(self) -> bool:
        """Whether it must never happen."""
        return bool(self.broke or self.warned or self.false)


def run(
    seed: int, *, tol: float = 1e-6, seconds: float = 10.0, exact: bool = True, conic: bool = False,
    loss: str | None = None, penalty: str | None = None, well_scaled: bool = False,
) -> Outcome:  # fmt: skip
    """Solve the problem of a seed, and judge the answer."""
    out, result = Outcome(None, seed), None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            out.drawn = drawn = make(seed, loss, penalty, well_scaled=well_scaled)
            result, out.seconds = _solved(drawn.problem, tol, seconds)
            _note(out, drawn.problem, result)
            if exact and not out.false:
                out.false = _exactly(out, drawn.problem, result)
        except Exception:
            out.broke = traceback.format_exc()
    out.warned = "; ".join(sorted({f"{one.category.__name__}: {one.message}" for one in caught}))
    if conic and result is not None and not out.broke and not out.false:
        out.false = _by_cones(out, drawn.problem, result)
    return out


def _solved(problem: Problem, tol: float, seconds: float) -> tuple[Result, float]:
    """The answer, and the seconds of the processor that it took; the limit is one of these, which other work on the
    machine does not use up."""
    began = time.process_time()
    result = solve(problem, tol=tol, time_limit=seconds)
    while result.status is Status.TIME_LIMIT and time.process_time() - began < 0.9 * seconds:
        result = solve(problem, tol=tol, time_limit=seconds - (time.process_time() - began), warm_start=result)
    return result, time.process_time() - began


def _note(out: Outcome, problem: Problem, result: Result) -> None:
    out.status, out.gap, out.reason = str(result.status.value), result.relative_gap, result.reason
    out.passes = result.epochs
    numbers = [result.coef, result.intercept, result.primal, result.dual, *(result.history[-1].primal,)]
    if any(np.isnan(np.asarray(one)).any() for one in numbers) or not np.isfinite(result.coef).all():
        out.false = "there is NaN, or infinity, in the answer"
    elif result.status is Status.CONTRADICTION or result.dual > result.primal:
        out.false = f"dual {result.dual!r} above primal {result.primal!r}"
    size = abs(problem.objective_at_zero())
    out.left = result.gap / max(size if np.isfinite(size) else 0.0, abs(result.primal), 1e-300)
    if result.status is Status.STALLED:
        out.blurred = "allow for rounding" in result.reason


def _exactly(out: Outcome, problem: Problem, result: Result) -> str:
    """What is false by the objective with sixty digits."""
    w = problem.pack(result.coef, result.intercept)
    try:
        value = objective(problem, w)
    except NotJudged:
        return ""
    except Broken as why:
        return str(why) if np.isfinite(result.primal) else ""
    out.exact += 1
    if not np.isfinite(result.primal):
        return f"an answer without an objective, which is {value:.15e}"
    allowed = problem.primal_rounding(w, result.primal)
    if abs(value - Decimal(result.primal)) > Decimal(allowed):
        return f"primal {result.primal!r}, but the answer has {value:.20e}, which is not within {allowed:.1e}"
    return _above(out, problem, result, value)


def _above(out: Outcome, problem: Problem, result: Result, value: Decimal) -> str:
    """Whether the lower bound is above the objective of this answer, or of a better one."""
    duals: list[Any] = [result.dual]
    if result.certified and result.status is not Status.NO_ANSWER:
        closer = solve(problem, tol=ROUNDING, time_limit=SECONDS, warm_start=result)
        duals.append(closer.dual)
        if np.isfinite(closer.primal):
            try:
                value = min(value, objective(problem, problem.pack(closer.coef, closer.intercept)))
                out.exact += 1
            except (NotJudged, Broken):
                pass
    value += Decimal(10) ** (10 - DIGITS) * (abs(value) + 1)  # sixty digits round, too
    for dual in duals:
        if np.isfinite(dual) and Decimal(dual) > value:
            return f"dual {dual!r} above the objective {value:.20e} of an answer"
    return ""


def _by_cones(out: Outcome, problem: Problem, result: Result) -> str:
    """What is false about the bounds by a conic solver's optimum; nothing where it has none, or where its own answer
    does not have the objective that it says."""
    from .conic import optimum

    found = optimum(problem)
    if found is None:
        return ""
    value, coef, intercept = found
    slack = CONIC * max(abs(value), 1e-3 * abs(problem.objective_at_zero()))
    at = problem.primal_at(problem.within(problem.pack(coef, intercept)))
    if not abs(at - value) <= slack:
        return ""
    out.conic += 1
    if result.dual > value + slack:
        return f"dual {result.dual!r} above the optimum {value!r} of a conic solver"
    if result.primal < value - slack and not out.exact:  # an objective with sixty digits at a feasible point is no lie
        return f"primal {result.primal!r} below the optimum {value!r} of a conic solver"
    return ""


def table(outcomes: list[Outcome]) -> list[str]:
    """Counts by loss, penalty and data, the worst first."""
    verdicts = ("unconverged", "broke", "no answer", "rounding")
    lines = [
        f"{'':24}{'problems':>10}" + "".join(f"{name:>13}" for name in verdicts) + f"{'median s':>10}{'most s':>8}"
    ]
    drawn = [one for one in outcomes if one.drawn is not None]
    for key in ("loss", "penalty", "data", None):
        rows = []
        for kind in sorted({str(getattr(one.drawn, key)) for one in drawn}) if key else ["all"]:
            some = [one for one in drawn if key is None or getattr(one.drawn, key) == kind]
            counts = [sum(one.verdict == name for one in some) for name in verdicts]
            seconds = [one.seconds for one in some]
            line = f"{kind:24}{len(some):10d}" + "".join(f"{count:13d}" for count in counts)
            median = float(np.median(seconds)) if seconds else 0.0
            rows.append((-(counts[0] + counts[1]), line + f"{median:10.3f}{max(seconds, default=0.0):8.2f}"))
        lines += [line for _, line in sorted(rows)] + [""]
    return lines
