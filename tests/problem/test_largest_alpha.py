"""alpha_max: zero is the answer there and not much below, for every kind of penalty, loss and structure."""

from __future__ import annotations

import types

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_digits

import fenchel as fl
from fenchel.problem.alpha_max import zero_answer

NEVER = ("weighted elastic net", "non-negative", "monotone", "ridge")
FINITE = [name for name in cases.penalties() if name not in NEVER]
OVERLAP = [[0, 1, 2, 3], [2, 3, 4, 5], [5, 6, 7], [7, 8, 9]]


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def penalised(problem, alpha):
    """The largest entry of B'w."""
    result = fl.solve(problem.with_alpha(alpha), tol=1e-7, max_epochs=3000)
    return np.abs(problem.map @ np.ravel(result.coef)).max()


def check(problem, *, below=0.98):
    top = problem.alpha_max()
    assert 0 < top < np.inf
    there, less = penalised(problem, 1.001 * top), penalised(problem, below * top)
    assert less > 1e-4
    assert there < 1e-2 * less  # the solver's tolerance leaves traces


def proven(problem):
    """The answer at alpha_max comes with its proof."""
    answer = zero_answer(problem)
    made = problem.with_alpha(answer.alpha).certificate(answer)
    assert not np.abs(problem.map_slots @ answer.w).max() > 1e-12
    return made


# -- every kind -------------------------------------------------------------------------------------


@pytest.mark.parametrize("penalty_name", FINITE)
@pytest.mark.parametrize("loss_name", ["squared", "logistic"])
def test_zero_there_and_not_below(penalty_name, loss_name):
    loss = cases.losses()[loss_name]
    X, y, weight = cases.data(loss, weighted=True)
    penalty, _ = cases.penalties()[penalty_name]
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=True, sample_weight=weight)
    check(problem)
    assert proven(problem).relative_gap < 1e-10


@pytest.mark.parametrize("loss_name", [name for name, loss in cases.losses().items() if loss.kinked])
def test_losses_with_kinks(loss_name):
    """Their dual answer at zero need not be unique; few positive labels leave much room."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 12))
    loss = cases.losses()[loss_name]
    score = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(90)
    y = np.where(score > 1.5, 1.0, -1.0) if loss.classification else score
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1(), fit_intercept=True)
    check(problem)
    assert proven(problem).relative_gap <= 2e-6


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_elastic_nets_and_other_quadratics_play_no_part(share):
    X, y = diabetes()
    plain = fl.Problem(X, y, loss="squared", penalty=share * fl.L1()).alpha_max()
    assert fl.Problem(X, y, loss="squared", penalty=fl.ElasticNet(share)).alpha_max() == pytest.approx(plain, rel=1e-12)
    # a quadratic with a map of its own, which stands beside the norm
    overlap = fl.GroupL2(OVERLAP)
    for beside in (fl.Ridge(), fl.Ridge() @ fl.Difference(10), fl.ExclusiveLasso([[0, 1], [4, 5]])):
        check(fl.Problem(X, y, loss="squared", penalty=overlap + share * beside))
        bare, with_it = (
            fl.Problem(X, y, loss="squared", penalty=one).alpha_max() for one in (overlap, overlap + beside)
        )
        assert with_it == pytest.approx(bare, rel=1e-10)


@pytest.mark.parametrize(
    "penalty",
    [
        fl.Box(-0.1, 0.2) + fl.L1(),
        fl.Box(0, 1) + fl.L1(),
        fl.NonNegative() + fl.FusedLasso(),
        fl.Monotone() + fl.L1(),
        fl.Monotone(False) + fl.GroupL2(OVERLAP),
    ],
    ids=repr,
)
def test_bounds_beside_a_norm(penalty):
    X, y = diabetes()
    check(fl.Problem(X, y, loss="squared", penalty=penalty, fit_intercept=True))


@pytest.mark.parametrize(
    "penalty",
    [
        fl.Ridge(),
        fl.NonNegative(),
        fl.Box(-1, 1),
        fl.Box(1, 2) + fl.L1(),
        fl.Monotone(),
        fl.ExclusiveLasso([[0, 1, 2]]),
        fl.L1([0] * 5 + [1] * 5) + fl.Ridge(),
    ],
    ids=repr,
)
def test_where_no_alpha_will_do(penalty):
    X, y = diabetes()
    problem = fl.Problem(X, y, loss="squared", penalty=penalty, fit_intercept=True)
    assert problem.alpha_max() == np.inf


# -- tightness --------------------------------------------------------------------------------------


def images(penalty, loss="logistic"):
    X, y = load_digits(return_X_y=True)
    return fl.Problem(X[:400] / 16, np.where(y[:400] > 4, 1.0, -1.0), loss=loss, penalty=penalty, fit_intercept=True)


@pytest.mark.parametrize(
    "penalty",
    [
        fl.TotalVariation((8, 8)),
        fl.TotalVariation((8, 8), isotropic=False, l1_ratio=0.1),
        fl.FusedLasso(0.02),
        fl.FusedLasso(0.1, order=2),
        fl.GroupLasso([range(k, k + 16) for k in range(0, 49, 4)]),
        fl.GroupMax([range(k, k + 16) for k in range(0, 49, 4)]),
        fl.Unpenalised(fl.TotalVariation((9, 7)), [63]),
    ],
    ids=repr,
)
def test_the_bound_is_tight(penalty):
    """The least-squares split of the gradient is far off for these; what is found lies within 2 % of a lower bound."""
    problem = images(penalty)
    top = problem.alpha_max()
    # any w bounds it from below: here the answers not far below
    gradient = problem.combine(zero_answer(problem).x)[problem.feature_slots] / problem.n
    bounds = []
    for share in (0.98, 0.9):
        w = np.ravel(fl.solve(problem.with_alpha(share * top), tol=1e-6).coef)
        value = problem.with_alpha(1.0).penalty_value(problem.map @ w)
        bounds.append(-float(gradient @ w) / value if value > 1e-12 else 0.0)
    assert max(bounds) <= top * (1 + 1e-6)
    assert max(bounds) >= 0.98 * top


def test_the_search_ends_where_more_is_not_needed():
    """A bound known to lie above what was asked for is not brought down further."""
    problem = images(fl.TotalVariation((8, 8)))
    top = zero_answer(problem).alpha
    assert zero_answer(problem, enough=0.3 * top).alpha > top
    assert zero_answer(problem, enough=2 * top).alpha == top


def test_chains_and_trees_are_exact():
    X, y = diabetes()
    chain = fl.Problem(X, y, loss="squared", penalty=fl.TrendFilter(1), fit_intercept=True)
    flat = X.sum(axis=1) - X.sum(axis=1).mean()  # the best model whose coefficients are all equal
    slope = X.T @ (y - y.mean() - flat * (flat @ y) / (flat @ flat)) / len(y)
    assert chain.alpha_max() == pytest.approx(np.abs(np.cumsum(slope))[:-1].max(), rel=1e-9)
    check(fl.Problem(X, y, loss="squared", penalty=fl.TreeGroups([range(10), range(4), range(2)])), below=0.999)


def test_pathways():
    from fenchel.datasets import load_p53

    try:
        X, y, groups, _, _ = load_p53()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    X = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))
    groups = fl.Groups(groups, p=X.shape[1]).complete()
    for penalty in (fl.GroupLasso(groups), fl.SparseGroupLasso(groups), fl.GroupMax(groups) + 0.01 * fl.Ridge()):
        check(fl.Problem(X, y, loss="logistic", penalty=penalty, fit_intercept=True))


@pytest.mark.parametrize("kind", ["outputs", "tasks"])
def test_several_outputs(kind):
    rng = np.random.default_rng(3)
    X, Y = rng.standard_normal((90, 6)), rng.standard_normal((90, 3))
    penalty = fl.PerOutput(fl.FusedLasso(0.1), 3) + fl.MultiTaskLasso(3)
    if kind == "outputs":
        problem = fl.Problem(X, Y, loss="squared", penalty=penalty, fit_intercept=True)
    else:
        problem = fl.Problem(X, Y[:, 0], loss="squared", penalty=penalty, fit_intercept=True, task=np.arange(90) % 3)
    check(problem)


# -- unpenalised directions -------------------------------------------------------------------------


def test_many_unpenalised_directions():
    X, y = diabetes()
    problem = fl.Problem(sp.csr_array(X), y, loss="huber", penalty=fl.L1([0] * 4 + [1] * 6), fit_intercept=True)
    check(problem)
    assert np.count_nonzero(zero_answer(problem).w) == 5


def test_separable_covariates_have_none():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    problem = fl.Problem(X, np.sign(X[:, 0]), loss="logistic", penalty=fl.L1([0, 1, 1]), fit_intercept=True)
    with pytest.raises(ValueError, match=r"alpha_max could not be found .* choose alpha yourself"):
        problem.alpha_max()


# -- at the start of a path -------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_a_path_begins_at_exactly_zero(loss):
    problem = images(fl.TotalVariation((8, 8), l1_ratio=0.1), loss)
    answer = fl.path(problem, n_alphas=3, eps=0.9, tol=1e-5)
    assert not answer.coefs[0].any()
    assert answer.epochs[0] == 1  # the proof came with alpha_max
    assert answer.coefs[2].any()
    assert answer.converged.all()
    there = problem.with_alpha(answer.alphas[0])
    assert answer[0].primal == pytest.approx(there.primal(answer.coefs[0], answer.intercepts[0]), rel=1e-12)
    again = there.certificate(types.SimpleNamespace(w=problem.pack(answer.coefs[1], answer.intercepts[1])))
    assert again.primal >= answer[0].dual
