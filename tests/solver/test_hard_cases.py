"""Bad input and hard problems: every solve ends, and its status is true."""

from __future__ import annotations

import importlib.util
import pathlib
import warnings

import cases
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import fenchel as fl
from fenchel import Status
from fenchel.engine.attempts.multipliers import Multipliers, applies
from fenchel.methods import SDCAADMM
from fenchel.solver.attainment import SEPARABLE, unattained

CLASSIFIERS = ["logistic", "smoothed-hinge", "hinge", "squared-hinge"]
LOSSES = list(cases.losses())
N, P = 80, 12


def random_problems():
    path = pathlib.Path(__file__).parents[2] / "benchmarks" / "random_problems.py"
    spec = importlib.util.spec_from_file_location("random_problems", path)
    module = importlib.util.module_from_spec(spec)
    # a dataclass looks its module up
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "random_problems", module)
        spec.loader.exec_module(module)
    return module


def design(loss, p=P, n=N, seed=0):
    loss = cases.losses()[loss]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    w = np.where(np.arange(p) < 4, [1.0, -2.0, 0.5, 1.5] * (p // 4) + [0.0] * (p % 4), 0.0)
    return X, cases.targets(loss, X @ w, rng)


def solved(X, y, loss, penalty=None, alpha=0.02, tol=1e-6, **more):
    """The result, whose bounds are true and whose status says what the gap is."""
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1() if penalty is None else penalty, alpha=alpha, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fl.solve(problem, tol=tol)
    assert result.primal == pytest.approx(problem.primal(result.coef, result.intercept), rel=1e-9, abs=1e-12)
    assert result.dual <= result.primal + 1e-12 * abs(result.primal)
    if result.status is Status.CONVERGED:
        assert result.gap <= tol * max(abs(result.primal), 1e-10)
    return result


# -- columns ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_duplicated_columns(loss):
    X, y = design(loss)
    alone, twice = (solved(Z, y, loss, fit_intercept=True) for Z in (X, np.hstack([X, X])))
    assert alone.status is twice.status is Status.CONVERGED
    assert twice.primal == pytest.approx(alone.primal, rel=3e-6)


@pytest.mark.parametrize("alone", [False, True], ids=["beside others", "alone"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_column_of_1e8_beside_one_of_1e_minus_8(loss, alone):
    X, y = design(loss)
    scale = np.ones(P)
    scale[0], scale[5] = 1e8, 1e-8
    some = [0, 5] if alone else list(range(P))
    result = solved(np.ascontiguousarray((X * scale)[:, some]), y, loss, fit_intercept=True)
    assert result.status is Status.CONVERGED
    # the large column is as good as free, the small one as good as not there
    X = np.delete(X, 5, axis=1) if not alone else X[:, :1]
    weights = (np.arange(X.shape[1]) > 0).astype(float)
    limit = solved(np.ascontiguousarray(X), y, loss, penalty=fl.L1(weights), fit_intercept=True)
    assert result.primal == pytest.approx(limit.primal, rel=3e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_that_are_constant_or_empty(loss):
    X, y = design(loss)
    X[:, 2], X[:, 7] = 3.0, 0.0
    result = solved(X, y, loss, fit_intercept=True)
    assert result.status is Status.CONVERGED
    assert result.coef[2] == result.coef[7] == 0  # the intercept does it for nothing
    assert solved(0 * X, y, loss, fit_intercept=True).status is Status.CONVERGED


@pytest.mark.parametrize("size", [1.0, 1e8, 1e12])
@pytest.mark.parametrize("newton", [False, True])
def test_a_map_with_an_empty_row(size, newton):
    """Its coordinate is always zero, and changes nothing in any unit."""
    X, y = design("smoothed-hinge")
    B = sp.csr_array(np.vstack([np.eye(P), np.zeros((1, P)), np.eye(P)[:3] - np.eye(P)[3:6]]))
    with_it, without = (
        fl.Problem(size * X, y, loss="smoothed-hinge", penalty=fl.L1() @ rows, alpha=0.02 * size)
        for rows in (B, B[np.diff(B.indptr) > 0])
    )
    result = fl.solve(with_it, tol=1e-8, newton=newton)
    assert result.status is Status.CONVERGED
    assert np.isfinite(result.state["y"]).all()
    assert result.primal == pytest.approx(fl.solve(without, tol=1e-8).primal, rel=2e-8)


@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
def test_units_change_nothing(loss):
    """Columns in other units, and a penalty in the same units: the same epochs lead to the same answer."""
    X, y = design(loss, p=40, n=120)
    units = 10.0 ** np.random.default_rng(1).uniform(-3, 3, 40)
    groups = [np.arange(j, min(j + 7, 40)) for j in range(0, 40, 5)]
    for plain, scaled in (
        (fl.L1(), fl.L1(units)),
        (fl.GroupL2(groups), fl.GroupL2(groups) @ fl.Matrix(np.diag(units))),
    ):
        first, second = solved(X, y, loss, plain), solved(X * units, y, loss, scaled)
        assert first.status is second.status is Status.CONVERGED
        assert second.epochs <= 2 * first.epochs
        assert second.primal == pytest.approx(first.primal, rel=2e-6)
        np.testing.assert_allclose(second.coef * units, first.coef, atol=5e-3)


# -- alpha ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["", "intercept"])
def test_no_penalty_at_all_is_least_squares(fit_intercept):
    X, y = design("squared")
    result = solved(X, y, "squared", alpha=0.0, tol=1e-10, fit_intercept=fit_intercept)
    full = np.column_stack([X, np.ones(N)]) if fit_intercept else X
    best = np.linalg.lstsq(full, y)[0]
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.coef, best[:P], atol=1e-5)
    assert result.primal == pytest.approx(0.5 * np.mean((y - full @ best) ** 2), rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_no_penalty_with_one_answer(loss):
    X, y = design(loss, n=300)  # so many rows that no hyperplane separates them
    assert solved(X, y, loss, alpha=0.0, fit_intercept=True).status is Status.CONVERGED


def test_without_penalty_separable_labels_have_no_answer():
    X, _ = design("logistic")
    result = solved(X, np.sign(X[:, 0]), "logistic", alpha=0.0, fit_intercept=True)
    assert result.status is not Status.CONVERGED  # the infimum, zero, is not attained
    assert 0 < result.primal < 1e-2
    assert result.dual <= 0
    assert "not attained" in result.reason


def test_labels_that_nothing_separates_are_not_called_separable():
    X, y = design("logistic", n=300)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), alpha=0.0, fit_intercept=True)
    assert fl.solve(problem, tol=0.0, max_epochs=3).reason != SEPARABLE
    # and with a penalty on all directions there is always an answer
    penalised = fl.Problem(X, np.sign(X[:, 0]), loss="logistic", penalty=fl.L1(), alpha=0.1)
    assert unattained(penalised) == ""


class NoNumber(fl.TraceNorm):
    def prox(self, u, step):
        return np.full(len(u), np.nan)


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_a_prox_that_returns_no_number_is_reported(loss):
    X, y = design(loss)
    problem = fl.Problem(X, y, loss=loss, penalty=NoNumber((3, 4)), alpha=0.01)
    with pytest.raises(ValueError, match="prox of a penalty returned nan"):
        fl.solve(problem, time_limit=20)


def test_the_augmented_lagrangian_starts_where_the_loss_is_flat():
    """At zero the smoothed hinge has no curvature at all."""
    X, y = design("smoothed-hinge")
    problem = fl.Problem(X, y, loss="smoothed-hinge", penalty=fl.Oscar(1.0, 0.1), alpha=0.002, fit_intercept=True)
    zeros = np.zeros(problem.size), np.zeros(problem.visits), np.zeros(problem.d)
    assert Multipliers(problem).run(*zeros, tol=1e-7, steps=200).made.relative_gap <= 1e-7


@pytest.mark.parametrize("alpha", [1e-3, 1e-6])
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_separable_labels_with_a_tiny_alpha(loss, alpha):
    X, _ = design(loss)
    result = solved(X, np.sign(X[:, 0]), loss, alpha=alpha, fit_intercept=True)
    assert result.status is Status.CONVERGED
    assert np.all(np.sign(X @ result.coef + result.intercept) == np.sign(X[:, 0]))


@pytest.mark.parametrize("fit_intercept", [False, True], ids=["", "intercept"])
@pytest.mark.parametrize("name", cases.penalties())
def test_alpha_above_the_largest_useful_one(name, fit_intercept):
    """Zero at once, and exactly."""
    penalty, _ = cases.penalties()[name]
    for loss in ("logistic", "huber"):
        X, y = design(loss, p=cases.P)
        problem = fl.Problem(X, y, loss=loss, penalty=penalty, fit_intercept=fit_intercept)
        largest = problem.alpha_max()
        for factor in (1.0, 1.01, 100.0) if np.isfinite(largest) else ():
            result = fl.solve(problem.with_alpha(factor * largest))
            assert result.status is Status.CONVERGED
            assert result.epochs <= 2
            np.testing.assert_allclose(problem.map @ result.coef, 0.0, atol=1e-15)
            if not problem.gram.unseen.size and not problem.gram.blind.size:
                assert not np.any(result.coef)


# -- rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-2, 1e-4])
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_all_labels_but_one_equal(loss, alpha):
    X, y = design(loss)
    y[:] = -1.0
    y[3] = 1.0
    assert solved(X, y, loss, alpha=alpha, fit_intercept=True).status is Status.CONVERGED


def test_one_row():
    """0.5 (x'w - t)^2 + alpha |w|_1: only the largest entry of x is used."""
    x, t, alpha = np.array([[0.5, -2.0, 1.0]]), 3.0, 0.4
    result = solved(x, np.array([t]), "squared", alpha=alpha, tol=1e-10)
    assert result.status is Status.CONVERGED
    np.testing.assert_allclose(result.coef, [0.0, -(t - alpha / 2) / 2, 0.0], atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_one_column(loss):
    X, y = design(loss)
    X = np.ascontiguousarray(X[:, :1])
    result = solved(X, y, loss, fit_intercept=False)
    best = scipy.optimize.minimize_scalar(
        lambda w: float(np.mean(cases.losses()[loss].value(X[:, 0] * w, y))) + 0.02 * abs(w), tol=1e-12
    )
    assert result.status is Status.CONVERGED
    assert result.primal == pytest.approx(best.fun, rel=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_weight_zero_are_not_there(loss):
    X, y = design(loss)
    weight = (np.arange(N) < 40).astype(float)
    with_zeros = solved(X, y, loss, sample_weight=weight, fit_intercept=True)
    without = solved(X[:40], y[:40], loss, fit_intercept=True)
    assert with_zeros.status is without.status is Status.CONVERGED
    assert with_zeros.primal == pytest.approx(without.primal, rel=3e-6)


@pytest.mark.parametrize("size", [1e-8, 1e8])
@pytest.mark.parametrize("loss", ["squared", "quantile"])
def test_targets_of_any_size(loss, size):
    """Both are homogeneous, so that the answer has the size of the targets."""
    X, y = design(loss)
    shares = {"squared": size, "quantile": 1.0}
    plain = solved(X, y, loss, fit_intercept=True)
    large = solved(X, size * y, loss, alpha=0.02 * shares[loss], fit_intercept=True)
    assert plain.status is large.status is Status.CONVERGED
    assert large.primal == pytest.approx(plain.primal * size * shares[loss], rel=3e-6)


# -- estimators -------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile", "epsilon-insensitive"])
def test_targets_far_from_zero_without_a_penalty(loss):
    """A first point for which nothing can be proven, however many digits there are, was taken for the last word."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 20))
    y = 1e6 + 1e3 * (X[:, 0] + 0.1 * rng.standard_normal(60))
    result = fl.solve(fl.Problem(X, y, loss=loss, penalty=fl.L1(), alpha=0.0, fit_intercept=True))
    assert result.status == fl.Status.CONVERGED and result.relative_gap <= 1e-6


def test_estimators_say_what_the_solver_says():
    X, y = design("logistic")
    groups = fl.GroupL2([range(6), range(6, 24)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = fl.StructuredClassifier(loss="logistic", penalty=groups, alpha=0.02).fit(np.hstack([X, X]), y)
    assert fitted.status_ is Status.CONVERGED
    fitted = fl.StructuredClassifier(loss="logistic", penalty=fl.L1(), alpha=0.0, max_epochs=50)
    with pytest.warns(ConvergenceWarning, match="gap"):
        fitted.fit(X, np.sign(X[:, 0]))
    assert fitted.status_ is not Status.CONVERGED


# -- random problems --------------------------------------------------------------------------------

# kinked losses (14, 98, 128, 130, 156, 173, 194), group maxima (40, 46, 102, 174), trends (78, 151), and others
SEEDS = [14, 40, 46, 78, 98, 102, 115, 128, 130, 137, 138, 151, 156, 173, 174, 194]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_problems_converge(seed):
    drawn = random_problems().make(seed)
    result = fl.solve(drawn.problem)
    assert result.status is Status.CONVERGED, str(drawn)
    assert drawn.problem.primal(result.coef, result.intercept) == pytest.approx(result.primal, rel=1e-12)


@pytest.mark.parametrize("newton", [False, True])
def test_bounds_away_from_zero_on_a_grid(newton):
    """No iterate is inside the bounds by itself: w has them only in the limit."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 144))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(80)
    penalty = fl.TotalVariation((12, 12)) + fl.Box(0.01, 0.8)
    result = fl.solve(fl.Problem(X, y, loss="squared", penalty=penalty, alpha=0.1), tol=1e-4, newton=newton)
    assert result.status is Status.CONVERGED
    assert result.coef.min() >= 0.01 and result.coef.max() <= 0.8


# -- attempts between epochs --------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [1, 3, 10])
def test_newton_does_not_run_away_where_there_is_no_minimum(columns):
    """Separable, without penalty: every step gains, and none is the last. That is seen, and said."""
    X = np.random.default_rng(0).standard_normal((200, columns))
    problem = fl.Problem(X, np.sign(X[:, 0]), loss="logistic", penalty=fl.L1(), alpha=0.0, fit_intercept=True)
    result = fl.solve(problem, max_epochs=100)
    assert result.status is Status.NO_ANSWER
    assert result.epochs <= 130
    assert "not attained" in result.reason


def test_a_perfect_fit_that_is_asked_for_rounding():
    rng = np.random.default_rng(0)
    X, w = rng.standard_normal((200, 5)), rng.standard_normal(5)
    result = fl.solve(fl.Problem(X, X @ w, loss="squared", penalty=fl.L1(), alpha=1e-12), tol=0, max_epochs=100)
    assert result.epochs <= 130
    np.testing.assert_allclose(result.coef, w, atol=1e-9)


def test_more_columns_than_rows_with_a_row_that_does_not_count():
    X, y = np.random.default_rng(2).standard_normal((3, 50)), np.array([1.0, -1.0, 1.0])
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), alpha=0.01, fit_intercept=True,
                         sample_weight=np.array([1.0, 0.0, 1.0]))  # fmt: skip
    assert fl.solve(problem, tol=1e-8, max_epochs=60).epochs <= 90


@pytest.mark.parametrize("intercept", [False, True], ids=["without", "with intercept"])
def test_no_penalty_after_the_largest_alpha_is_known(intercept):
    """Targets that say nothing: the largest useful alpha is zero, and at zero there is no penalty."""
    X = np.random.default_rng(0).standard_normal((30, 3))
    y = np.full(30, float(intercept))
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1(), fit_intercept=intercept)
    assert problem.alpha_max() == pytest.approx(0.0, abs=1e-12)
    assert fl.solve(problem.with_alpha(0.0)).primal == pytest.approx(0.0, abs=1e-12)
    assert fl.path(problem, alphas=[0.0]).primals[0] == pytest.approx(0.0, abs=1e-12)


def test_a_start_beyond_all_margins():
    """x is zero, and so is what rho is measured by."""
    from fenchel.solver.loop import warm_from

    X = np.random.default_rng(0).standard_normal((40, 3))
    penalty = fl.Ridge() + fl.L1()
    problem = fl.Problem(X, np.sign(X[:, 0]), loss="squared-hinge", penalty=penalty, alpha=1e-8)
    w = np.zeros(problem.size)
    w[0] = 1e6
    start = warm_from(problem, {"w": w, "x": np.zeros(40), "y": np.zeros(problem.d), "rho": 1e-3})
    assert np.isfinite(fl.solve(problem, warm_start=start, max_epochs=40, newton=False).primal)


@pytest.mark.parametrize("loss", ["hinge", "quantile", "epsilon-insensitive"])
def test_columns_without_penalty_may_be_in_any_units(loss):
    """Kinks, and free columns whose units differ by 10^6: the proof balances each of them exactly."""
    X, y = design(loss)
    X = X * np.where(np.arange(P) < 4, 10.0 ** np.array([-3, 3, 0, -2] + [0] * (P - 4)), 1.0)
    penalty = fl.Lasso(np.where(np.arange(P) < 4, 0.0, 1.0))
    result = solved(X, y, loss, penalty=penalty, alpha=0.05, fit_intercept=True)
    assert result.status is Status.CONVERGED
    assert result.relative_gap <= 1e-6


def test_a_constant_column_beside_an_intercept_is_never_needed():
    """What the intercept leaves of its slope is rounding, and so is the largest useful alpha."""
    y = np.where(np.arange(50) < 20, 1.0, -1.0)
    problem = fl.Problem(np.full((50, 1), 0.3), y, loss="hinge", penalty=fl.L1(), fit_intercept=True)
    assert problem.alpha_max() == 0.0


def test_an_objective_next_to_zero_is_not_what_a_sum_says_that_was_carried_along():
    """Trends that explain all labels: B'w is zero but for rounding, which the objective must show."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((12, 6)) * 10.0 ** rng.uniform(-3, 3, 6)
    y = np.where(X @ (np.arange(6) - 2.5) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="squared-hinge", penalty=fl.TrendFilter(2), alpha=30.0, fit_intercept=True)
    result = fl.solve(problem, time_limit=20)
    assert result.primal == pytest.approx(problem.primal(result.coef, result.intercept), rel=1e-9, abs=1e-14)
    assert result.gap <= 1e-9


def test_outputs_whose_rows_are_all_beyond_the_margin():
    """No row has curvature there; models are made all the same, in numbers that single precision holds."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2, 108))
    y = np.array([[1.0, -1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, 1.0]])
    problem = fl.Problem(X, y, loss="squared-hinge", penalty=fl.MultiTaskLowRank(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = fl.solve(problem.with_alpha(2e-4 * problem.alpha_max()), time_limit=20)
    assert result.status is Status.CONVERGED


def test_separable_labels_are_seen_at_once():
    X, _ = design("logistic")
    problem = fl.Problem(X, np.sign(X[:, 0]), loss="logistic", penalty=fl.Lasso(np.arange(P) > 0), alpha=0.1)
    result = fl.solve(problem)
    assert result.status is Status.NO_ANSWER
    assert result.reason == SEPARABLE
    assert result.epochs < 500


# -- the method of multipliers ------------------------------------------------------------------------


MULTIPLIER_PENALTIES = {name: penalty for name, (penalty, _) in cases.penalties().items() if "trace" not in name} | {
    "box away from zero": fl.Box(0.1, 0.6)
}


@pytest.mark.parametrize("penalty", MULTIPLIER_PENALTIES)
@pytest.mark.parametrize("loss", ["logistic", "hinge", "quantile", "epsilon-insensitive", "poisson"])
def test_multipliers_find_the_answer(loss, penalty):
    kind = cases.losses()[loss]
    sparse, weighted = loss in ("poisson", "hinge"), loss in ("logistic", "quantile")
    X, y, weight = cases.data(kind, n=60, sparse=sparse, weighted=weighted)
    problem = fl.Problem(X, y, loss=kind, penalty=MULTIPLIER_PENALTIES[penalty], alpha=0.03, sample_weight=weight)
    assert applies(problem)
    method = SDCAADMM()
    state = method.start(problem, np.random.default_rng(0))
    for _ in range(4):
        method.epoch(state)
    point = Multipliers(problem).run(state.w, state.x, state.y, tol=1e-7, steps=400)
    assert point.made.relative_gap <= 1e-7
    assert point.primal == pytest.approx(problem.primal_at(point.w), rel=1e-12)


def test_multipliers_read_rows_in_any_order():
    X, y = design("logistic")
    ordered = sp.csr_array(X)
    shuffled = ordered.copy()
    for i in range(N):
        some = slice(ordered.indptr[i], ordered.indptr[i + 1])
        turn = np.random.default_rng(i).permutation(P)
        shuffled.indices[some], shuffled.data[some] = ordered.indices[some][turn], ordered.data[some][turn]
    ends = []
    for Z in (ordered, shuffled):
        problem = fl.Problem(Z, y, loss="logistic", penalty=fl.L1(), alpha=0.02, fit_intercept=True)
        run = Multipliers(problem).run(np.zeros(problem.size), np.zeros(N), np.zeros(P), tol=1e-9, steps=100)
        assert run.made.relative_gap <= 1e-9
        ends.append(run.w)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-8)


class Unknown(fl.TraceNorm):
    """A penalty that does not know the derivative of its prox."""

    prox_jacobian = fl.Penalty.prox_jacobian


def test_multipliers_find_the_derivative_of_a_prox_by_themselves():
    X, y = design("quantile")
    problem = fl.Problem(X, y, loss="quantile", penalty=Unknown((3, 4)), alpha=0.02, fit_intercept=True)
    assert applies(problem)
    zeros = np.zeros(problem.size), np.zeros(problem.visits), np.zeros(problem.d)
    point = Multipliers(problem).run(*zeros, tol=1e-7, steps=400)
    assert point.made.relative_gap <= 1e-7


def test_multipliers_leave_long_differences_and_many_coefficients_alone(monkeypatch):
    X, y = design("squared")
    monkeypatch.setattr("fenchel.engine.attempts.multipliers._MOVES", 5)
    assert not applies(fl.Problem(X, y, loss="squared", penalty=Unknown((3, 4)), alpha=0.1))
    assert applies(fl.Problem(X, y, loss="squared", penalty=fl.TraceNorm((3, 4)), alpha=0.1))
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.1)
    assert applies(problem)
    monkeypatch.setattr("fenchel.engine.attempts.multipliers.DENSE", 5)
    assert not applies(problem)


def test_few_steps_still_give_true_bounds():
    drawn = random_problems().make(130)
    problem = drawn.problem
    zeros = np.zeros(problem.size), np.zeros(problem.visits), np.zeros(problem.d)
    optimum = fl.solve(problem, tol=1e-8)
    for steps in (1, 5, 30):
        point = Multipliers(problem).run(*zeros, tol=1e-6, steps=steps)
        assert point.made.dual <= optimum.primal
        assert point.made.primal >= optimum.dual
