"""What the parts of an epoch cost, and the size of blocks that follows.

By a model in nanoseconds (measured once, see ``benchmarks/engine.py``) and not by the clock, so that the same seed
always takes the same way.
"""

from __future__ import annotations

import math

import numpy as np


def visit_nanoseconds(problem) -> float:
    """A row, seen by one output."""
    width = problem.data.stored / problem.n
    loss = 150 if problem.loss.kernel in ("logistic", "poisson") else 20  # no closed form
    if problem.data.sparse:
        return loss + 2.2 * width + 15
    return loss + 30 + (0.29 if problem.data.dtype == np.float32 else 0.48) * width


def penalty_nanoseconds(problem) -> float:
    """One step of the penalty, and of w."""
    return 1000 + 2.5 * problem.d + 1.5 * problem.map.nnz + 1.5 * problem.size


def epoch_nanoseconds(problem) -> float:
    """All rows, in blocks as :func:`block_size` makes them.

    This is what certificates and attempts of other methods are spaced by. It does not ask for the blocks that somebody
    has chosen: runs with other blocks are to differ in these alone.
    """
    blocks = math.ceil(problem.visits / block_size(problem))
    return 5e4 + problem.visits * visit_nanoseconds(problem) + blocks * penalty_nanoseconds(problem)


def block_size(problem, threads: int = 1) -> int:
    """Rows that cost some times as much as one step of the penalty, within 12 and 200 (or as many bytes, if they are
    dense and in single precision: 400).

    Along edges the penalty's steps carry news from feature to feature, so that there they must be many: once, and
    at least 40 blocks. Elsewhere 12 times, and 10 blocks. Threads wait during these steps. Where a step costs
    more than 400 rows (large graphs), half as many rows as it costs and down to 4 blocks: the passes become a few
    more, and each of them much cheaper.
    """
    cost = penalty_nanoseconds(problem) / visit_nanoseconds(problem)
    edges = np.any(np.diff(problem.map.indptr) > 1)
    rows = (1 if edges else 12) * threads * cost
    blocks = min(max(16_000 / cost, 4), 40 if edges else 10)
    most = 400 if problem.data.dtype == np.float32 and not problem.data.sparse else 200
    return int(min(np.clip(rows, 12, max(most, cost / 2)), np.ceil(problem.visits / blocks)))
