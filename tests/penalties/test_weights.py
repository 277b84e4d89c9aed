"""Weights of zero and infinity: what carries no penalty, and what must stay out."""

import numpy as np
import pytest
from reference import reference

import fenchel as fl

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 6))
Y = X @ [1.0, 2.0, 3.0, 0.0, 0.0, 1.0] + 0.1 * rng.standard_normal(60)
LABELS = np.where(Y + 2.0 * rng.standard_normal(60) > 0, 1.0, -1.0)
GROUPS, OVERLAP, INF = [[0, 1], [2, 3], [4, 5]], [[0, 1, 2], [2, 3], [3, 4, 5]], np.inf

# a penalty, the features that it holds at zero, and what is left of it
PENALTIES = {
    "l1": (fl.L1([1, INF, 0, 1, 1, 1]), [1], fl.L1([1, 0, 0, 1, 1, 1])),
    "groups": (fl.GroupL2(GROUPS, [1, INF, 0]), [2, 3], fl.GroupL2([[0, 1]], [1])),
    "group maximum": (fl.GroupLinf(GROUPS, [1, INF, 0]), [2, 3], fl.GroupLinf([[0, 1]], [1])),
    "overlap": (fl.GroupL2(OVERLAP, [1, INF, 2]), [2, 3], fl.GroupL2([OVERLAP[0], OVERLAP[2]], [1, 2])),
    "group lasso": (fl.GroupLasso(GROUPS, [1, INF, 1]), [2, 3], fl.GroupL2([[0, 1], [4, 5]], [1, 1])),
    "sparse groups": (
        fl.SparseGroupLasso(GROUPS, 0.5, [1, INF, 0], [INF, 1, 1, 1, 1, 0]), [0, 2, 3],
        0.5 * fl.L1([0, 1, 0, 0, 1, 0]) + 0.5 * fl.GroupL2([[0, 1]], [1]),
    ),
    "all out": (fl.GroupL2(GROUPS, [INF, INF, INF]), [0, 1, 2, 3, 4, 5], fl.L1(np.zeros(6))),
}  # fmt: skip


@pytest.mark.parametrize("loss", [fl.Squared(), fl.Logistic()], ids=repr)
@pytest.mark.parametrize("name", PENALTIES)
def test_held_features_are_zero_and_the_rest_is_best(name, loss):
    penalty, held, rest = PENALTIES[name]
    y = LABELS if loss.classification else Y
    result = fl.solve(fl.Problem(X, y, loss=loss, penalty=penalty, alpha=0.1, fit_intercept=True), tol=1e-8)
    assert result.status is fl.Status.CONVERGED and not result.coef[held].any()
    upper = np.where(np.isin(np.arange(6), held), 0.0, 1e3)
    optimum, _, _ = reference(X, y, loss, rest + fl.Box(-upper, upper), 0.1, None, True)
    assert result.dual - 1e-7 <= optimum <= result.primal + 1e-7


def test_behind_a_map():
    penalty = fl.GroupL2([[0, 1], [2, 3]], [1, INF]) @ fl.Difference(6)
    result = fl.solve(fl.Problem(X, Y, loss="squared", penalty=penalty, alpha=0.1), tol=1e-8)
    assert result.status is fl.Status.CONVERGED and result.coef[2] == result.coef[3] == result.coef[4]


def test_values_and_paths():
    penalty = fl.GroupL2(GROUPS, [1, INF, 0])
    assert penalty.value(np.array([3.0, 4.0, 0.0, 0.0, 9.0, 9.0])) == 5.0
    assert penalty.value(np.ones(6)) == np.inf
    found = fl.path(X, Y, loss="squared", penalty=penalty, n_alphas=5, eps=0.01)
    assert found.converged.all() and not found.coefs[:, 2:4].any() and found.coefs[:, 4:].all()
    assert not found.coefs[0, :2].any() and found.coefs[-1, :2].all()


@pytest.mark.parametrize("weights", [[1, -1, 1], [1, np.nan, 1], [1, 1]])
def test_bad_weights(weights):
    with pytest.raises(ValueError, match=r"weights(\[1\] is| has 2 entries)"):
        fl.GroupL2(GROUPS, weights)
