r"""The curvature of a sample of the rows, corrected by what every pass over all rows tells: the exact diagonal, and
secants of exact gradients.

.. math:: H_0 = T H_S T, \quad T = \operatorname{diag}\sqrt{d_j / H_{S,jj}}, \quad
    H = \text{BFGS updates of } H_0 + \mu \operatorname{diag}(d) \text{ by pairs } (\Delta w, \Delta g)

A bad sample costs rounds and nothing else: with enough of :math:`\mu d` every step is a proximal gradient step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...data.jobs import Terms, alone
from ...data.partitions import Partition
from ...data.pools import Outcome
from ...foundation.numerics import NOTHING, ROUNDING
from ...problem.looks import View
from ...problem.pooled import PooledProblem
from ..lower_gram import lower_gram
from ..parts import Matrix, Vector

PAIRS = 30  # secants that are kept; more: old ones, of places far away


class SampledCurvature:
    """H for all coefficients; see above."""

    def __init__(self, problem: PooledProblem) -> None:
        self.problem = problem
        self.pairs: list[tuple[Vector, Vector]] = []
        self.terms = Terms(problem.loss, problem.layout[0])
        self.together: Vector | None = None  # the curvatures of scores that a loss sees together, over n
        self.use(problem.sample())

    def use(self, outcome: Outcome) -> None:
        """Go on with these rows."""
        facts, drawn = self.problem.pool.facts, outcome.kept
        kept = [one for one in drawn if one["target"].shape[0]] or drawn[:1]
        X = sp.vstack([one["X"] for one in kept]) if facts.sparse and len(kept) > 1 else _stacked(kept)
        target, weight, share, offset, task = (
            np.concatenate([one[key] for one in kept]) for key in ("target", "weight", "share", "offset", "task")
        )
        self.rows = target.shape[0]
        self.weight = weight  # of the rows, without what they were drawn with
        self.part = Partition.of(0, X, target, weight / share, offset, task)

    def make(self, view: View, floor: float, mu: float, more: float) -> Matrix:
        """H at a point that was looked at. `more` is what every row counts for beside its own curvature."""
        problem = self.problem
        H = self._gram(self.bends(view, floor, more))
        if problem.columns.size:
            H *= problem.seen_by_rows(np.ones(problem.size))[:, None]
            H *= problem.seen_by_rows(np.ones(problem.size))
        squares = np.append(problem.data.mean_squares, 1.0)
        self._correct(H, view.diagonal + more * np.tile(squares, problem.vectors), mu)
        for d, change in self.pairs:
            add_pair(H, d, change)
        return H

    def bends(self, view: View, floor: float, more: float) -> Vector:
        """The curvature of every visit to a row of the sample, over n."""
        problem, part, terms = self.problem, self.part, self.terms
        w, offset, weight = problem.seen_by_rows(view.w), terms.offset(part), terms.weight(part)
        scores = terms.scores(part, w)
        scores = scores + offset if offset.size else scores
        bend = terms.loss.sums(scores, terms.target(part), weight)[2]
        self.together = bend / problem.n if terms.loss.coupled else None
        return np.asarray((np.maximum(alone(terms.loss, bend), floor * weight) + more * weight) / problem.n)

    def _correct(self, H: Matrix, diagonal: Vector, mu: float) -> None:
        """H with the diagonal of all rows, in place."""
        problem, own = self.problem, np.diag(H).copy()
        if not problem.fit_intercept:
            diagonal[problem.intercept_slots] = own[problem.intercept_slots] = 0.0
        mean = float(diagonal.mean())
        scale = np.sqrt(np.divide(diagonal, own, out=np.zeros_like(own), where=own > 0))
        H *= scale[:, None]
        H *= scale
        places = np.arange(problem.size)
        # nothing is known of columns without entries: any curvature will do
        H[places, places] = (
            (1.0 + mu + NOTHING) * np.where(diagonal > 0, diagonal, mean) + 1e-3 * NOTHING * mean + 1e-300
        )

    def _gram(self, bend: Vector) -> Matrix:
        """The weighted Gram matrix of the sample, block by block."""
        from ...kernels.models import mirrored
        from ...kernels.newton import sparse_curvature

        part, outputs, p = self.part, self.terms.outputs, self.problem.p
        H = np.zeros((self.problem.size, self.problem.size))
        if part.sparse:
            sparse_curvature(*part.arrays, self.terms.layout(part), bend, H)
            H += H.T
            H[np.diag_indices_from(H)] /= 2
            self._add_shared(H)
            return H
        groups = [np.arange(part.n)] * outputs
        if part.task.size:
            groups = [np.flatnonzero(part.task == k) for k in range(self.problem.vectors)]
        for k, rows in enumerate(groups):
            at = k * (p + 1)
            X = part.arrays[0] if rows.size == part.n else part.arrays[0][rows]
            h = bend[rows] if part.task.size else np.ascontiguousarray(bend[k::outputs])
            block = np.zeros((p, p), order="F")
            mirrored(lower_gram(X, h, block), H[at : at + p, at : at + p])
            H[at + p, at : at + p] = H[at : at + p, at + p] = h @ X
            H[at + p, at + p] = h.sum()
        self._add_shared(H)
        return H

    def _add_shared(self, H: Matrix) -> None:
        """The curvature between the scores of a row, where a loss sees them together: -h h' / sum(h)."""
        if self.together is None:
            return
        X, size = self.part.matrix(), self.problem.p + 1
        h = self.together.reshape(-1, self.terms.outputs)
        total = h.sum(axis=1)
        block = np.empty((size, size))
        for k in range(h.shape[1]):
            for other in range(k):
                own = -h[:, k] * h[:, other] / np.where(total > 0, total, 1.0)
                pull = X.T @ own
                if self.part.sparse:
                    block[:-1, :-1] = (X.T @ sp.diags_array(own) @ X).toarray()
                else:
                    block[:-1, :-1] = (X.T * own) @ X
                block[-1, :-1] = block[:-1, -1] = pull
                block[-1, -1] = own.sum()
                H[k * size : (k + 1) * size, other * size : (other + 1) * size] = block
                H[other * size : (other + 1) * size, k * size : (k + 1) * size] = block

    def learn(self, d: Vector, change: Vector) -> bool:
        """A secant: the gradient changed so along d."""
        size = float(np.linalg.norm(d) * np.linalg.norm(change))
        if not (math.isfinite(size) and float(d @ change) > ROUNDING * size):
            return False
        self.pairs = [*self.pairs[1 - PAIRS :], (d, change)]
        return True

    def forget(self) -> None:
        """All secants."""
        self.pairs = []


def _stacked(kept: list[dict[str, Any]]) -> Any:
    """Dense rows in one array; what was copied is let go, so that memory holds little more than one copy."""
    if len(kept) == 1:
        return kept[0]["X"]
    first = kept[0]["X"]
    out, at = np.empty((sum(one["X"].shape[0] for one in kept), first.shape[1]), first.dtype), 0
    for one in kept:
        rows = one.pop("X")
        out[at : at + len(rows)] = rows
        at += len(rows)
    return out


def add_pair(H: Matrix, d: Vector, change: Vector) -> None:
    """The update of Broyden, Fletcher, Goldfarb and Shanno: afterwards H d is the change."""
    from ...kernels.models import add_secant

    foreseen = H @ d
    curved, expected = float(d @ change), float(d @ foreseen)
    if curved > 0 and expected > 0:
        add_secant(H, change / math.sqrt(curved), foreseen / math.sqrt(expected))
