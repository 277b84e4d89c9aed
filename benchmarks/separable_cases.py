"""What `separable.py` measures: single fits, whole paths, cross-validation and tiny problems, from either half.

The half "choose" has the real data and seeds on which constants may be chosen, "report" those that the page shows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
import real_data
from families import REPORT as FIRST_REPORT_SEED
from families import make
from separable_problem import Separable, with_penalty

ALPHAS = 50  # of a path
FOLDS = 5
_RANDOM_PATHS, _RANDOM_CV = 6, 3  # of the seeds, those whose loss and penalty the peers have paths for


@dataclasses.dataclass
class Case:
    """One task on one problem; `task` is "fit", "path", "cv" or "tiny"."""

    name: str
    task: str
    problem: Separable

    def alphas(self) -> np.ndarray:
        whole = self.task in ("path", "cv")
        return self.problem.alphas(ALPHAS) if whole else np.array([self.problem.alpha])


def cases(half: str, seeds: int, folder, tell=print) -> Iterator[Case]:
    """All cases of a half: tiny ones first, then the real data, then the seeds."""
    yield from tiny(half)
    if folder is None:
        tell("real data: left out, there is no data folder (set FENCHEL_DATA)")
    else:
        for problem in real_data.sets(getattr(real_data, half.upper()), folder, tell):
            for share in real_data.shares(problem.name):
                fit = real_data.at_share(problem, share)
                yield Case(fit.name, "fit", fit)
            if not problem.name.startswith("bodyfat"):
                # an intercept, as one would have it; without one for the logistic lasso of few rows, so that all
                # peers can take part there
                few = problem.loss == "logistic" and problem.n < problem.p
                whole = dataclasses.replace(problem, intercept=not few)
                yield Case(f"{problem.name}-path", "path", whole)
                if whole.penalty == "l1" and whole.n * whole.p < 1_000_000:
                    yield Case(f"{problem.name}-cv", "cv", whole)
    paths = cvs = 0
    for seed in range(FIRST_REPORT_SEED if half == "report" else 0, 10**9)[:seeds]:
        problem = make(seed).problem
        yield Case(problem.name, "fit", problem)
        known = problem.loss in ("squared", "logistic") and problem.penalty in ("l1", "elastic net", "groups")
        if known and paths < _RANDOM_PATHS:
            paths += 1
            yield Case(f"{problem.name}-path", "path", problem)
        if known and problem.penalty != "groups" and cvs < _RANDOM_CV:
            cvs += 1
            yield Case(f"{problem.name}-cv", "cv", problem)


def tiny(half: str) -> Iterator[Case]:
    """100 rows of 20 features: what counts is what surrounds the arithmetic."""
    kinds = (("squared", "l1"), ("logistic", "l1"), ("squared", "elastic net"), ("squared", "groups"))
    for number, (loss, penalty) in enumerate(kinds):
        rng = np.random.default_rng([number, half == "report"])
        X = rng.standard_normal((100, 20))
        score = X[:, :4].sum(axis=1) + rng.standard_normal(100)
        y = score if loss == "squared" else np.where(score > 0, 1.0, -1.0)
        problem = with_penalty(X, y, loss, penalty, name=f"tiny-{loss}-{penalty.replace(' ', '-')}")
        yield Case(problem.name, "tiny", dataclasses.replace(problem, alpha=0.1 * problem.alpha_max()))
