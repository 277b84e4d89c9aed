"""Blocks of rows: the order in which an epoch visits them, and their norms."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse.linalg as sla

from .._validate import Array, Ints
from ..foundation.numerics import LONGEST

if TYPE_CHECKING:
    from ..problem.problem import Problem


def epoch_parts(problem: Problem, order: str, blocks: int, rng: np.random.Generator) -> list[Ints]:
    """The blocks of one epoch in their order ("shuffle", "random" or "cyclic"), in parts of bearable length."""
    if order == "shuffle":
        sequence = rng.permutation(blocks)
    elif order == "random":
        sequence = rng.integers(0, blocks, blocks)
    else:
        sequence = np.arange(blocks)
    calls = max(1, math.ceil(problem.data.stored * problem.layout[0] / LONGEST))
    return [sequence] if calls == 1 else np.array_split(sequence, min(calls, blocks))


def block_norms(problem: Problem, bounds: Ints, metric: Array, scale: Array) -> Array:
    """sigma_max of S Z_I' M Z_I S for every block, M and S diagonal.

    Exact, from the small Gram matrix, for blocks of up to 300 visits; larger ones by Lanczos iterations, which
    approach it from below, with a margin of 1 %.
    """
    from ..kernels.sdca_admm import block_gram, block_product

    rows, layout = problem.data.arrays, problem.layout
    norms = np.zeros(len(bounds) - 1)
    buffer = np.zeros(metric.size)
    for k, (first, last) in enumerate(itertools.pairwise(bounds)):
        size = last - first
        if size <= 300:
            gram = np.empty((size, size))
            block_gram(rows, layout, first, last, metric, scale, buffer, gram)
            norms[k] = np.linalg.eigvalsh(gram)[-1]
        else:
            out = np.empty(size)

            def product(a: Array, first: int = first, last: int = last, out: Array = out) -> Array:
                block_product(rows, layout, first, last, metric, scale, np.ascontiguousarray(a.ravel()), buffer, out)
                return out.copy()

            operator = sla.LinearOperator((size, size), product, dtype=float)
            start = np.random.default_rng(k).standard_normal(size)
            found = sla.eigsh(operator, k=1, v0=start, tol=1e-3, return_eigenvectors=False)
            norms[k] = 1.01 * found[0]
    return norms
