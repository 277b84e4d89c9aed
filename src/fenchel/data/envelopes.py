r"""What partitions are asked for where the loss has kinks: its Moreau envelopes, around multipliers that are replayed.

A loss with kinks has no curvature. The method of multipliers takes its place, for every row, by

.. math:: e_i(u) = \max_x \; x u - (s f)^*(x) - \tfrac{1}{2r} (x - x_i)^2

whose slope x is the next multiplier. The multipliers are history, and nobody keeps them where the rows are: the driver
keeps the points and the r of all steps so far, a few of them, and every visit walks through them again.

Symbols as in ``jobs.py``; r the reach, one over the width in which a kink is rounded.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from .._validate import Array, Index
from .jobs import Look, Terms
from .partitions import Partition

DIFFERENCE = 1e-9  # of a dual step, for its slope; larger: rows near a kink count as if they were at it


@dataclasses.dataclass(frozen=True)
class Envelope(Look):
    """All that a round wants to know at w, of the envelopes of a loss with kinks.

    Attributes
    ----------
    steps : pairs (point, r)
        Of the multipliers, which are zero before the first.
    reach : float
        The r of now.
    vectors : int
        Of coefficients; each has a Gram matrix of its own.
    """

    steps: tuple[tuple[Array, float], ...] = ()
    reach: float = 1.0
    vectors: int = 1
    name = "envelope"

    def _seen(
        self, part: Partition, target: Array, weight: Array, offset: Array
    ) -> tuple[float, Array, Array, Array]:  # fmt: skip
        """The loss, the next multipliers and how they answer to the scores; and sums of the envelopes, of how far the
        multipliers go, and the Gram matrix of the rows that are within reach of a kink."""
        terms, loss, r = self.terms, self.terms.loss, self.reach
        full = weight if weight.size else np.ones(target.size)
        before = np.zeros(target.size)
        for w, reach in self.steps:
            before = moved(terms, before, reach, _scores(terms, part, w, offset), target, full)[0]
        scores = _scores(terms, part, self.w, offset)
        x, bend = moved(terms, before, r, scores, target, full, bend=True)
        some = full > 0
        share = np.where(some, x / np.where(some, full, 1.0), 0.0)
        conjugate = np.where(some, full * loss.conjugate(share, target), 0.0)
        away = 0.5 / r * float(np.sum((x - before) ** 2))
        total = float(np.where(some, full * loss.value(scores, target), 0.0).sum())
        gram = zone_gram(terms, part, bend, self.vectors)
        return total, x, bend, np.concatenate([[float(x @ scores - conjugate.sum()) - away, away], gram])


def _scores(terms: Terms, part: Partition, w: Array, offset: Array) -> Array:
    scores = terms.scores(part, w)
    return scores + offset if offset.size else scores


def moved(
    terms: Terms, x: Array, r: float, scores: Array, target: Array, weight: Array, *, bend: bool = False
) -> tuple[Array, Array]:  # fmt: skip
    """The multipliers after a step, and how they answer to the scores if asked for."""
    at = r * scores + x
    curvature = np.full(at.size, 1.0 / r)

    def step(at: Array) -> Array:
        return terms.loss._weighted_step(at, curvature, target, weight)

    new = step(at)
    if not bend:
        return new, np.zeros(0)
    h = DIFFERENCE * (np.abs(at) + np.abs(new).mean() + 1e-300)
    return new, r * np.clip((step(at + h) - step(at - h)) / (2 * h), 0.0, 1.0)


@functools.lru_cache(maxsize=4)
def lower(size: int) -> tuple[Index, Index]:
    """Where the lower triangle of a matrix is."""
    rows, columns = np.tril_indices(size)
    return rows, columns


@functools.cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def zone_gram(terms: Terms, part: Partition, bend: Array, vectors: int) -> Array:
    """The lower triangle of the sum of bend_i z_i z_i' for every vector of coefficients, one after another."""
    size = part.p + 1
    rows, columns = lower(size)
    out = np.zeros((vectors, rows.size))
    if part.sparse:
        from ..kernels.newton import sparse_curvature

        H = np.zeros((vectors * size, vectors * size))
        sparse_curvature(*part.arrays, terms.layout(part), bend, H)
        for k in range(vectors):
            block = H[k * size : (k + 1) * size, k * size : (k + 1) * size]
            out[k] = (block + np.tril(block.T, -1))[rows, columns]  # entries of a row may stand in any order
        return out.ravel()
    with _threads().limit(limits=1, user_api="blas"):  # several would make other bits
        for k in range(vectors):
            if part.task.size:
                some = np.flatnonzero((bend > 0) & (part.task == k))
                own = bend[some]
            else:
                mine = bend[k :: terms.outputs]
                some = np.flatnonzero(mine > 0)
                own = mine[some]
            Z = np.ones((some.size, size))
            Z[:, :-1] = part.arrays[0][some]
            out[k] = ((own[:, None] * Z).T @ Z)[rows, columns]
    return out.ravel()
