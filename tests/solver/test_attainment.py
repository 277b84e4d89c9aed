"""Whether the infimum is attained: a search along the directions that carry no penalty, and along no others."""

import numpy as np
import pytest
import scipy.optimize

import fenchel as fl
from fenchel.solver.attainment import SEPARABLE, unattained

RNG = np.random.default_rng(0)
X = RNG.standard_normal((40, 6))
Y = np.sign(X[:, :3].sum(axis=1))


def problem(penalty, y=Y, **given):
    return fl.Problem(X, y, loss="logistic", penalty=penalty, alpha=0.1, **given)


def test_where_every_direction_is_penalised_nothing_is_searched(monkeypatch):
    """The search has a variable for every direction; with the 1,500 features of a full map it took minutes."""
    monkeypatch.setattr(scipy.optimize, "milp", None)
    assert unattained(problem(fl.L1() @ fl.Matrix(RNG.standard_normal((8, 6))))) == ""
    assert unattained(problem(fl.Ridge())) == ""


@pytest.mark.parametrize(
    "penalty", [fl.L1() @ fl.Difference(6), fl.L1(weights=np.array([0, 0, 0, 1.0, 1, 1]))], ids=str
)
@pytest.mark.parametrize("free", [True, False])
def test_separable_along_directions_without_penalty(penalty, free):
    """Sums of all features are what differences do not see."""
    total = X.sum(axis=1) if "Difference" in repr(penalty) else X[:, :3].sum(axis=1)
    y = np.where(total > 0, 1.0, -1.0)
    assert unattained(problem(penalty, y)) == SEPARABLE
    y[np.abs(total).argsort()[-2:]] *= -1  # two rows far on the other side
    assert unattained(problem(penalty, y, fit_intercept=free)) == ""
