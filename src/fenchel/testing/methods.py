"""Proofs by example that a method and an engine do what the loop expects of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._validate import Array
from ..engine.roles import Engine, Goal, Iterate
from ..foundation.numerics import NOTHING
from ..methods import METHODS
from ..methods.roles import Method
from ..prices import PRICES
from ..problem import Problem
from ..problem.convergence import Convergence
from ..solver import solve
from .base import _require
from .problems import small_problems


def check_method(
    kind: Callable[..., Method], problems: Iterable[Problem] | None = None, *, tol: float = 1e-4, max_epochs: int = 5000
) -> None:
    """Prove a registered method: it says what it fits, it can be saved and resumed, and it gets to certified answers.

    Parameters
    ----------
    kind : class of a method, entered by ``fenchel.methods.register``
    problems : problems to try it on, optional
        Small ones of several kinds by default; at least one must fit.
    tol : float
        Relative gap that it must reach in `max_epochs` wherever it fits.

    Raises
    ------
    AssertionError
        Names the law, the problem and the numbers.
    """
    name = next((name for name, known in METHODS.items() if known is kind), None)
    _require(name is not None, kind, "the method is registered")
    fits = 0
    for problem in _chosen(problems):
        reason = kind().supports(problem)
        _check_reason(kind, reason)
        if reason is None:
            fits += 1
            _check_epochs(kind, problem)
            _check_resumed(kind, str(name), problem)
            result = solve(problem, method=str(name), tol=tol, max_epochs=max_epochs)
            _check_answer(kind, problem, result, tol)
        else:
            refused = ""
            try:
                solve(problem, method=str(name), max_epochs=1)
            except ValueError as error:
                refused = str(error)
            _require(reason in refused, kind, "a problem that does not fit is refused with the reason")
    _require(fits > 0, kind, "some problem fits", problems=fits)


def check_engine(kind: Callable[..., Engine], problems: Iterable[Problem] | None = None, *, tol: float = 1e-6) -> None:
    """Prove an engine: it says what it fits, believes no bound that is not proven, and gets to certified answers.

    Parameters
    ----------
    kind : class of an engine
    problems : problems to try it on, optional
        Small ones of several kinds by default; at least one must fit.
    tol : float
        Relative gap that its proposals must reach wherever it fits.

    Raises
    ------
    AssertionError
        Names the law, the problem and the numbers.
    """
    fits = 0
    for problem in _chosen(problems):
        reason = kind(PRICES).unfit(problem)
        _check_reason(kind, reason)
        if reason is None:
            fits += 1
            first, second = (_check_rounds(kind, problem, tol) for _ in range(2))
            _require(np.array_equal(first, second), kind, "the same problem has the same answer, bit by bit")
    _require(fits > 0, kind, "some problem fits", problems=fits)


def _chosen(problems: Iterable[Problem] | None) -> list[Problem]:
    return list(small_problems().values()) if problems is None else list(problems)


def _check_reason(kind: Any, reason: str | None) -> None:
    sentence = reason is None or (isinstance(reason, str) and len(reason.split()) > 2)
    _require(sentence, kind, "what does not fit says why, in a sentence")


def _check_epochs(kind: Callable[..., Method], problem: Problem) -> None:
    """A few epochs: arrays of the right sizes, and the same bits for the same seed."""
    runs = []
    for _ in range(2):
        method = kind()
        state = method.start(problem, np.random.default_rng(1))
        for count in (1, 2, 3):
            report = method.epoch(state)
            _require(0 < report.share <= 1, kind, "an epoch visits a share of the rows", share=report.share)
            _require(state.epoch == count, kind, "a state counts its epochs", epoch=state.epoch, expected=count)
        runs.append((method, state))
    (method, state), (_, again) = runs
    at, same = method.iterate(state), method.iterate(again)
    for array, size in ((at.w, problem.size), (at.y, problem.d), (at.u, problem.d)):
        _require(array.shape == (size,) and np.isfinite(array).all(), kind, "an iterate has finite arrays of its sizes")
    _require(np.array_equal(at.w, same.w), kind, "the same seed has the same bits")


def _check_resumed(kind: Any, name: str, problem: Problem) -> None:
    """A run that is stopped, saved and resumed goes the way of one that was not."""
    whole = solve(problem, method=name, tol=0.0, max_epochs=6)
    part = solve(problem, method=name, tol=0.0, max_epochs=3)
    resumed = solve(problem, method=name, tol=0.0, max_epochs=3, warm_start=part)
    law = "a run that is saved and resumed goes the way of one that was not"
    _require(np.array_equal(whole.state["w"], resumed.state["w"]), kind, law)


def _check_answer(kind: Any, problem: Problem, result: Any, tol: float) -> None:
    reference = solve(problem, tol=NOTHING)
    law = "it reaches the gap that is asked for, proven"
    _require(result.certified and result.relative_gap <= tol, kind, law, gap=result.relative_gap, tol=tol)
    slack = 1e-12 * abs(reference.primal)
    law = "bounds hold the optimum between them"
    between = result.dual <= reference.primal + slack and reference.dual <= result.primal + slack
    _require(between, kind, law, dual=result.dual, optimum=reference.primal, primal=result.primal)


def _check_rounds(kind: Callable[..., Engine], problem: Problem, tol: float) -> Array:
    """The answer of an engine that is asked as the loop asks it."""
    reference = solve(problem, tol=NOTHING, method="sdca-admm", max_epochs=20_000)
    engine, rule = kind(PRICES), Convergence.of(problem, tol)
    goal = Goal(tol, math.inf, math.inf, rule.allowed)
    engine.begin(problem, [problem.alpha], tol)
    slack = 1e-10 * (abs(reference.primal) + abs(problem.objective_at_zero()))
    w, reached = np.zeros(problem.size), False
    for proposal in engine.rounds(problem, None, goal):
        iterate, w = proposal.iterate, proposal.w
        _require(isinstance(iterate, Iterate), kind, "a proposal has an Iterate")
        primal = problem.primal_at(w)
        law = "a proposal knows its objective"
        _require(abs(primal - proposal.primal) <= slack, kind, law, told=proposal.primal, true=primal)
        made = proposal.certificate or problem.certificate(iterate, fresh=False, primal=proposal.primal)
        law = "a certificate never passes the optimum"
        _require(made.dual <= reference.primal + slack, kind, law, dual=made.dual, optimum=reference.primal)
        fresh = problem.certificate(iterate)
        reached = rule.reached(made) and fresh.relative_gap <= 2 * tol
        if reached:
            break
    _require(reached, kind, "its rounds reach the gap that is asked for, proven", tol=tol)
    return w
