"""The derivative of every prox, against differences; and problems that need it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.penalties import compile_penalty
from fenchel.penalties.run import jacobian_by_differences
from fenchel.structure import Tree

P = 12
OVERLAP = [[0, 1, 2, 3], [2, 3, 4, 9], [5, 6], [7, 8, 10, 11], [0, 11, 6]]
APART = [[0, 4, 8, 5], [1, 2, 10], [3, 11, 6]]
TREE = Tree([-1, 0, 0, 1, 1, 1, 2, 2, 2, 8, 8, 8, 0, -1, 13, 13, 13])
PENALTIES = {
    "l1": fl.L1(),
    "box": fl.Box(-0.3, 0.4) + fl.L1(),
    "groups": fl.GroupL2(OVERLAP),
    "group maximum": fl.GroupLinf(APART),
    "sparse groups": fl.SparseGroupLasso(APART),
    "tree": fl.TreeGroups(TREE),
    "latent groups": fl.LatentGroupLasso(OVERLAP),
    "exclusive": fl.ExclusiveLasso(APART),
    "trace norm, wide": fl.TraceNorm((3, 4)),
    "trace norm, tall": fl.TraceNorm((6, 2)),
    "slope": fl.Slope(),
    "oscar": fl.Oscar(0.5, 0.1),
}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", PENALTIES)
def test_the_derivative_of_a_prox(name, seed):
    rng = np.random.default_rng(seed)
    (block,) = compile_penalty(PENALTIES[name], P, 1.0)
    u = 10.0 ** rng.uniform(-1, 1) * rng.standard_normal(block.d)
    step = np.full(block.d, 10.0 ** rng.uniform(-1.5, 0.5))
    found = block.function.prox_jacobian(u, step)
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, found.T, atol=1e-14)
    values = np.linalg.eigvalsh(found)
    assert values.min() >= -1e-12 and values.max() <= 1 + 1e-12
    np.testing.assert_allclose(found, jacobian_by_differences(block.function, u, step).toarray(), atol=1e-7)


KINKED = [fl.Hinge(), fl.Quantile(0.3), fl.EpsilonInsensitive(0.1)]
UNITS = ["sparse groups", "tree", "latent groups", "exclusive", "trace norm, wide", "slope", "oscar"]


@pytest.mark.parametrize("loss", KINKED, ids=repr)
@pytest.mark.parametrize("name", UNITS)
def test_losses_with_kinks_where_units_of_columns_differ(name, loss):
    """Epochs alone do not get anywhere on these."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, P))
    score = X @ np.where(rng.random(P) < 0.5, rng.standard_normal(P), 0.0)
    y = np.where(score > 0, 1.0, -1.0) if loss.classification else score + 0.3 * rng.standard_normal(60)
    X *= 10.0 ** rng.uniform(-3, 3, P)
    problem = fl.Problem(X, y, loss=loss, penalty=PENALTIES[name], fit_intercept=True)
    problem = problem.with_alpha(0.01 * (problem.alpha_max() if name != "exclusive" else 1.0))
    result = fl.solve(problem, tol=1e-6, max_epochs=2000)
    assert result.status is fl.Status.CONVERGED
    assert result.primal == pytest.approx(problem.primal(result.coef, result.intercept), rel=1e-9)
