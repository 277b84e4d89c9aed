"""Problems that the tests share: one penalty of every kind on 12 features, and data for every loss."""

from __future__ import annotations

import inspect

import numpy as np
import scipy.sparse as sp

import fenchel as fl
from fenchel.losses import LOSSES

# scipy 1.15 named the argument rng; before it was random_state
_RNG = "rng" if "rng" in inspect.signature(sp.random_array).parameters else "random_state"


def random_sparse(shape, density, rng, **options):
    """`scipy.sparse.random_array` by any version of scipy."""
    return sp.random_array(shape, density=density, **{_RNG: rng}, **options)


P = 12
EDGES = [(0, 1), (1, 2), (2, 5), (5, 7), (7, 9), (3, 11), (4, 11), (6, 8)]
OVERLAP = [[0, 1, 2, 3], [2, 3, 4, 9], [5, 6], [7, 8, 10, 11], [0, 11, 6]]
APART = [[0, 4, 8], [1, 2, 10], [3, 11]]  # leaves 5, 6, 7 and 9 without penalty
GRID = (3, 4)


def penalties():
    """Name -> (penalty, a sensible alpha)."""
    rng = np.random.default_rng(7)
    grid = fl.Gradient(GRID)
    return {
        "l1": (fl.L1(), 0.05),
        "weighted elastic net": (fl.L1(np.linspace(0, 2, P)) + 0.3 * fl.Ridge(), 0.05),
        "overlapping groups": (fl.GroupL2(OVERLAP), 0.03),
        "overlapping groups, ridge": (fl.GroupL2(OVERLAP, np.ones(5)) + 0.01 * fl.Ridge(), 0.05),
        "groups that leave features out": (fl.GroupL2(APART), 0.03),
        "group maximum": (fl.GroupLinf([list(range(0, P, 2)), list(range(1, P, 2)), [0, 1, 2]]), 0.04),
        "graph": (fl.L1() + 2.0 * (fl.L1() @ fl.Incidence(EDGES, P)), 0.03),
        "signed graph": (0.5 * fl.L1() + fl.L1() @ fl.Incidence(EDGES, P, np.linspace(-2, 2, 8)), 0.03),
        "total variation": (fl.L1() @ fl.Difference(P), 0.05),
        "trend": (fl.L1() @ fl.Difference(P, order=2), 0.05),
        "isotropic grid": (fl.GroupL2(grid.cells, np.ones(len(grid.cells))) @ grid + 0.2 * fl.L1(), 0.05),
        "trace norm": (fl.TraceNorm((3, 4)), 0.05),
        "trace norm and l1": (fl.TraceNorm((4, 3)) + 0.5 * fl.L1(), 0.03),
        "non-negative": (fl.NonNegative(), 0.05),
        "non-negative l1": (fl.NonNegative() + fl.L1(), 0.03),
        "monotone": (fl.NonNegative() @ fl.Difference(P) + 0.1 * fl.Ridge(), 0.05),
        "box": (fl.Box(-0.3, 0.4) + 0.5 * fl.L1(), 0.03),
        "ridge": (fl.Ridge(), 0.05),
        "matrix": (fl.L1() @ fl.Matrix(rng.standard_normal((15, P))), 0.02),
    }


def losses():
    return {name: kind() for name, kind in LOSSES.items()}


def targets(loss, score, rng):
    """Noisy targets of the kind that the loss takes."""
    if loss.classification:
        return np.where(score + 0.5 * rng.standard_normal(score.size) > 0, 1.0, -1.0)
    if loss.deviance:
        mean = np.exp(np.clip(0.5 * score, -3, 2))
        if isinstance(loss, fl.Binomial):
            return rng.binomial(4, 1 / (1 + np.exp(-score))) / 4.0
        if isinstance(loss, fl.Gamma):
            return rng.gamma(2.0, mean / 2.0)
        counts = rng.poisson(mean).astype(float)
        return counts * rng.gamma(2.0, 0.5, score.size) if isinstance(loss, fl.Tweedie) else counts
    return score + 0.3 * rng.standard_normal(score.size)


def data(loss, *, n=40, p=P, sparse=False, seed=0, weighted=False):
    """X, y and weights (None unless weighted; some are zero)."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    X[rng.random((n, p)) < 0.3] = 0.0
    w = np.where(rng.random(p) < 0.5, rng.standard_normal(p), 0.0)
    y = targets(loss, X @ w, rng)
    weight = rng.integers(0, 4, n).astype(float) if weighted else None
    return (sp.csr_array(X) if sparse else X), y, weight
