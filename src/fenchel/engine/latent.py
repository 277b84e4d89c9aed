r"""Latent groups with more features than rows: disjoint groups of copied columns.

.. math:: \min_w f(Xw) + \min_{\sum_g v_g = w} \sum_g \omega_g \|v_g\|
          = \min_v f\Big(\sum_g X_g v_g\Big) + \sum_g \omega_g \|v_g\|

(Obozinski, Jacob and Vert, 2011). The right side has a column for every member of every group, and penalised units that
share none, for which working sets find the few groups that count. Both sides have one dual problem: the slopes of the
rows prove the left side as they prove the right one, and every proposal here is proven on the left.

Symbols: v coefficients of the copied columns; others as in parts.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..kernels.rules import MEMORY
from ..penalties.groups import GroupL2
from ..prices import Prices
from ..problem import Problem
from .parts import Vector
from .roles import Goal, Iterate, Proposal
from .rounds import WorkingSets


class LatentGroups:
    """The engine for one latent group norm."""

    name = "latent groups"

    def __init__(self, prices: Prices) -> None:
        self.inner = WorkingSets(prices)
        self._copied: Problem | None = None

    def unfit(self, problem: Problem) -> str | None:
        """Why it does not suit the problem; None where it does."""
        if problem.loss.across_rows:
            return f"{type(problem.loss).__name__} is no sum over rows"
        blocks = problem.blocks
        latent = blocks[0].function.latent_groups() if len(blocks) == 1 and blocks[0].ridge == 0 else None
        if latent is None:
            return "there is more than one latent group norm, or less"
        if problem.vectors > 1 or problem.loss.kinked:
            return "several outputs or tasks, or a loss with kinks"
        if problem.n >= problem.p or not problem.renames or np.any(problem.map.data != 1.0):
            return "rows are more than features, or some features are in no group"
        copies = sum(len(group) for group in latent[0]) * problem.data.stored // max(problem.p, 1)
        return "the copies of the columns take too much memory" if 8 * copies > MEMORY else None

    def begin(self, problem: Problem, alphas: Sequence[float], tol: float) -> None:
        """A falling sequence of alphas on the same data begins."""
        block, data = problem.blocks[0], problem.data
        latent = block.function.latent_groups()
        assert latent is not None
        members, weights = latent
        self.columns = problem.map.indices[np.concatenate(members)]
        X = sp.csr_array(data.arrays, shape=(problem.n, problem.p)) if data.sparse else data.dense
        groups = np.split(np.arange(self.columns.size), np.cumsum([len(group) for group in members])[:-1])
        scale = block.scale / problem.alpha if problem.alpha > 0 else 1.0
        made: Any = Problem
        norm: Any = GroupL2
        self._copied = made(
            X[:, self.columns], problem.target, loss=problem.loss, alpha=problem.alpha,
            penalty=norm(groups, scale * weights), fit_intercept=problem.fit_intercept,
            sample_weight=problem.weight if problem.weight.size else None,
            offset=problem.offset if problem.offset.size else None,
        )  # fmt: skip
        assert self._copied is not None
        self.inner.begin(self._copied, alphas, tol)

    def rounds(self, problem: Problem, start: Iterate | None, goal: Goal) -> Iterator[Proposal]:
        """Proposals with their certificates, until somebody stops asking or nothing is gained."""
        if self._copied is None or not problem.d:
            return
        copied = self._copied.with_alpha(problem.alpha)
        for found in self.inner.rounds(copied, None if start is None else self._split(copied, start), goal):
            yield self._proven(problem, found, goal)

    def _split(self, copied: Problem, start: Iterate) -> Iterate:
        """A point with every coefficient on the first copy of its column."""
        v = np.zeros(copied.size)
        first = np.unique(self.columns, return_index=True)[1]
        v[first], v[-1] = start.w[self.columns[first]], start.w[-1]
        return Iterate(v, start.x, np.zeros(copied.d), np.zeros(copied.size), np.zeros(copied.d))

    def _proven(self, problem: Problem, found: Proposal, goal: Goal) -> Proposal:
        """The sum over the groups, with its own certificate."""
        at = found.iterate
        w, zx = np.zeros(problem.size), np.zeros(problem.size)
        w[:-1] = np.bincount(self.columns, at.w[:-1], problem.p)
        w[-1], zx[-1] = at.w[-1], at.zx[-1]
        zx[self.columns] = at.zx[:-1]  # copies of a column have the same slope
        u: Vector = w[problem.map.indices]
        scores = problem.scores(w)
        iterate = Iterate(w, at.x, -zx[problem.map.indices], zx, u, scores)
        primal = problem.primal_at(w, scores)
        made = problem.certificate(iterate, fresh=False, primal=primal, enough=primal - goal.allowed(primal))
        return Proposal(iterate, primal, found.passes + 0.5, self.name, made, True, nanoseconds=found.nanoseconds)
