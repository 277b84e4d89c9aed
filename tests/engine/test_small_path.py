"""Whole paths of small dense problems in one compiled call: true bounds, the answers of `solve`, exact zeros."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fenchel as fl
from fenchel.kernels import rooms, small_path, small_set
from fenchel.kernels.small_losses import KINDS
from fenchel.kernels.small_path import follow

LOSSES = {
    "squared": fl.Squared(), "logistic": fl.Logistic(), "smoothed-hinge": fl.SmoothedHinge(0.5),
    "squared-hinge": fl.SquaredHinge(), "huber": fl.Huber(0.4), "poisson": fl.Poisson(),
}  # fmt: skip
PENALTIES = ("l1", "weighted", "elastic net", "non-negative", "box", "left out", "free and one-sided")
TOL = 1e-7


@dataclasses.dataclass
class Penalty:
    """A penalty as the kernel and as a Problem takes it."""

    l1: np.ndarray
    ridge: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def public(self):
        ridge = self.ridge[0]
        assert np.all(self.ridge == ridge)
        penalty = fl.L1(self.l1) + fl.Box(self.lower, self.upper)
        return penalty + ridge * fl.Ridge() if ridge else penalty


def make_penalty(name, p):
    rng = np.random.default_rng(p)
    one = Penalty(np.ones(p), np.zeros(p), np.full(p, -np.inf), np.full(p, np.inf))
    if name == "weighted":
        one.l1 = rng.uniform(0.3, 1.5, p)
        one.l1[[1, p // 2]] = 0.0
    elif name == "elastic net":
        one.l1, one.ridge = np.full(p, 0.6), np.full(p, 0.4)
    elif name == "non-negative":
        one.lower = np.zeros(p)
    elif name == "box":
        one.lower, one.upper = np.full(p, -0.05), np.full(p, 0.1)
    elif name == "left out":
        some = rng.permutation(p)[: p // 3]
        one.lower[some] = one.upper[some] = 0.0
    elif name == "free and one-sided":
        one.l1[:4] = 0.0
        one.lower[:2] = 0.0
    return one


def make_data(loss, n, p, *, weighted=False, seed=0):
    rng = np.random.default_rng([seed, n, p])
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    score = X[:, :6] @ np.array([1.0, -0.8, 0.6, 0.5, -0.4, 0.3]) + 0.4
    if loss == "poisson":
        y = rng.poisson(np.exp(np.clip(score, -3, 2))).astype(float)
    elif LOSSES[loss].classification:
        y = np.where(score + 0.7 * rng.standard_normal(n) > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
    else:
        y = score + 0.5 * rng.standard_normal(n)
    weight = np.ones(n)
    if weighted:
        weight = rng.uniform(0.2, 2.0, n)
        weight[2 + rng.permutation(n - 2)[: n // 4]] = 0.0
        weight *= n / weight.sum()
    return X, y, weight


@dataclasses.dataclass
class Followed:
    done: int
    W: np.ndarray
    b: np.ndarray
    primal: np.ndarray
    dual: np.ndarray
    x: np.ndarray
    passes: np.ndarray


def run(X, y, weight, loss, alphas, penalty, *, fit_intercept, tol=TOL):
    (n, p), count, of = X.shape, len(alphas), LOSSES[loss]
    params = np.array([getattr(of, "smoothing", getattr(of, "delta", 0.0))])
    out = (np.zeros((count, p)), *(np.zeros(count) for _ in range(3)), np.zeros((count, n)), np.zeros(count))
    bounds = (penalty.l1, penalty.ridge, penalty.lower, penalty.upper)
    done = follow(X, y, weight, KINDS[loss], params, np.asarray(alphas, float), *bounds, tol, fit_intercept, *out)
    return Followed(done, *out)


def public_problem(X, y, weight, loss, penalty, fit_intercept):
    return fl.Problem(
        X, y, loss=LOSSES[loss], penalty=penalty.public(), sample_weight=weight, fit_intercept=fit_intercept
    )


def check(problem, alphas, found, *, tol=TOL):
    """Every point is proven by fenchel's own certificate, within its bounds, and has a small gap."""
    assert found.done == len(alphas)
    for k, alpha in enumerate(alphas):
        one = problem.with_alpha(alpha)
        w, size = one.pack(found.W[k], found.b[k]), abs(found.primal[k])
        assert one.primal_at(w) == pytest.approx(found.primal[k], rel=1e-9)
        assert one.dual_bound(found.x[k], np.zeros(one.d)) >= found.dual[k] - 1e-9 * size
        assert found.dual[k] <= found.primal[k] + 1e-12 * size
        assert found.primal[k] - found.dual[k] <= tol * size
        low, high = one._domain()
        assert np.all(found.x[k] >= low - 1e-12) and np.all(found.x[k] <= high + 1e-12)
        if one.fit_intercept:
            assert abs(found.x[k].sum()) <= 1e-9 * np.abs(found.x[k]).sum()


def usual_alphas(problem, shares):
    largest = problem.alpha_max()
    return (largest if np.isfinite(largest) and largest > 0 else 0.3) * np.asarray(shares)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_point_of_a_path_is_proven(loss, kind, fit_intercept):
    for n, p in ((60, 12), (30, 70)):
        X, y, weight = make_data(loss, n, p, weighted=kind in ("l1", "weighted", "box"))
        penalty = make_penalty(kind, p)
        problem = public_problem(X, y, weight, loss, penalty, fit_intercept)
        alphas = usual_alphas(problem, np.geomspace(1.05, 0.03, 9))
        found = run(X, y, weight, loss, alphas, penalty, fit_intercept=fit_intercept)
        check(problem, alphas, found)
        np.testing.assert_array_equal(found.W, np.clip(found.W, penalty.lower, penalty.upper))
        assert np.all(found.passes >= 0) and found.passes.sum() >= 1


@pytest.mark.parametrize("kind", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_solve(loss, kind):
    n, p = (50, 10) if kind in ("weighted", "box", "l1") else (25, 40)
    X, y, weight = make_data(loss, n, p, weighted=kind in ("box", "non-negative"), seed=1)
    penalty = make_penalty(kind, p)
    problem = public_problem(X, y, weight, loss, penalty, True)
    alphas = usual_alphas(problem, [0.2])
    found = run(X, y, weight, loss, alphas, penalty, fit_intercept=True)
    check(problem, alphas, found)
    known = fl.solve(problem.with_alpha(alphas[0]), tol=1e-10)
    size = abs(known.primal)
    assert found.primal[0] == pytest.approx(known.primal, rel=1e-6)
    assert found.dual[0] <= known.primal + 1e-9 * size
    assert found.primal[0] >= known.dual - 1e-9 * size


@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_agrees_with_single_fits(loss):
    X, y, weight = make_data(loss, 40, 90, seed=2)
    penalty = make_penalty("l1", 90)
    problem = public_problem(X, y, weight, loss, penalty, True)
    alphas = usual_alphas(problem, np.geomspace(0.9, 0.02, 12))
    found = run(X, y, weight, loss, alphas, penalty, fit_intercept=True)
    check(problem, alphas, found)
    for k in (3, 11):
        single = run(X, y, weight, loss, alphas[k : k + 1], penalty, fit_intercept=True)
        check(problem, alphas[k : k + 1], single)
        assert single.primal[0] == pytest.approx(found.primal[k], rel=2 * TOL)


def test_nothing_is_chosen_above_the_largest_alpha_and_zeros_are_exact():
    X, y, weight = make_data("logistic", 50, 80, seed=3)
    penalty = make_penalty("l1", 80)
    problem = public_problem(X, y, weight, "logistic", penalty, True)
    found = run(X, y, weight, "logistic", usual_alphas(problem, [1.001, 0.3]), penalty, fit_intercept=True)
    assert not found.W[0].any()
    assert 0 < np.count_nonzero(found.W[1]) < 50
    assert found.passes[0] == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_bits_again(loss):
    X, y, weight = make_data(loss, 40, 60, weighted=True, seed=4)
    penalty = make_penalty("elastic net", 60)
    alphas = [0.2, 0.1, 0.02]
    first, second = (run(X, y, weight, loss, alphas, penalty, fit_intercept=True) for _ in range(2))
    for name in ("W", "b", "primal", "dual", "x", "passes"):
        assert getattr(first, name).tobytes() == getattr(second, name).tobytes()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_of_weight_zero_play_no_part(loss, fit_intercept):
    X, y, weight = make_data(loss, 60, 30, seed=5)
    weight[1::5] = 0.0
    weight[:2] = 1.0
    weight *= len(weight) / weight.sum()
    kept = weight > 0
    penalty = make_penalty("weighted", 30)
    alphas = [0.2, 0.08, 0.03]
    X[~kept] *= 1e3  # as large as they are
    whole = run(X, y, weight, loss, alphas, penalty, fit_intercept=fit_intercept, tol=1e-9)
    part = run(X[kept], y[kept], np.ones(kept.sum()), loss, alphas, penalty, fit_intercept=fit_intercept, tol=1e-9)
    assert whole.done == part.done == 3
    np.testing.assert_allclose(whole.primal, part.primal, rtol=2e-9)
    np.testing.assert_allclose(whole.W, part.W, atol=1e-3)
    assert not whole.x[:, ~kept].any()


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_every_feature_without_threshold(ridge):
    X, y, weight = make_data("squared", 60, 8, seed=6)
    penalty = Penalty(np.zeros(8), np.full(8, ridge), np.full(8, -np.inf), np.full(8, np.inf))
    found = run(X, y, weight, "squared", [0.3], penalty, fit_intercept=False)
    expected = np.linalg.solve(X.T @ X / 60 + 0.3 * ridge * np.eye(8), X.T @ y / 60)
    assert found.done == 1
    np.testing.assert_allclose(found.W[0], expected, atol=1e-3)
    assert found.primal[0] - found.dual[0] <= TOL * found.primal[0]


def test_what_is_too_large_is_left_to_others(monkeypatch):
    monkeypatch.setattr(small_set, "MEMORY", 1 << 20)
    rng = np.random.default_rng(7)
    n, p = 300, 300
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    penalty = make_penalty("l1", p)
    problem = public_problem(X, y, np.ones(n), "squared", penalty, False)
    alphas = usual_alphas(problem, np.geomspace(1, 1e-3, 20))
    found = run(X, y, np.ones(n), "squared", alphas, penalty, fit_intercept=False, tol=1e-4)
    assert 0 < found.done < 20
    assert np.count_nonzero(found.W[: found.done], axis=1).max() <= small_set.largest_set(n, p) < p
    assert not found.W[found.done :].any()


def test_numbers_that_are_not_finite_are_refused():
    X, y, weight = make_data("squared", 30, 10, seed=8)
    X[3, 4] = np.nan
    penalty = make_penalty("l1", 10)
    assert run(X, y, weight, "squared", [0.1], penalty, fit_intercept=True).done == 0
    X[3, 4] = 0.0
    assert run(X, y, weight, "squared", [0.0], penalty, fit_intercept=True).done == 0
    assert run(X, y, weight, "squared", [], penalty, fit_intercept=True).done == 0


def test_data_that_must_not_be_written_to():
    X, y, weight = make_data("squared", 30, 10, seed=9)
    for array in (X, y, weight):
        array.setflags(write=False)
    assert run(X, y, weight, "squared", [0.1], make_penalty("l1", 10), fit_intercept=True).done == 1


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_of_very_different_size_and_copies(loss):
    X, y, weight = make_data(loss, 50, 20, seed=10)
    X[:, 7] = X[:, 3]
    X[:, 8] = 0.0
    X[:, 9] = 1.0
    X[:, 10] *= 1e-4
    X[:, 11] *= 30.0 if loss != "poisson" else 3.0
    penalty = make_penalty("l1", 20)
    problem = public_problem(X, y, weight, loss, penalty, True)
    alphas = usual_alphas(problem, [0.5, 0.1, 0.02])
    check(problem, alphas, run(X, y, weight, loss, alphas, penalty, fit_intercept=True))


def test_nothing_depends_on_what_memory_held_before():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 300))
    y = np.where(X[:, :3].sum(axis=1) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), fit_intercept=True)
    alphas = problem.alpha_max() * np.logspace(0, -2, 12)
    first = fl.path(problem, alphas=alphas)
    rooms._spare[:] = [np.full(1 << 20, np.nan)]
    second = fl.path(problem, alphas=alphas)
    assert rooms._spare and np.isfinite(rooms._spare[0][:1000]).any()  # it was used
    np.testing.assert_array_equal(first.coefs, second.coefs)
    np.testing.assert_array_equal(first.duals, second.duals)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson"])
def test_bounds_hold_where_most_features_are_not_looked_at(loss, order):
    """Slopes that cannot reach their thresholds are left out, and the bounds are true all the same."""
    rng = np.random.default_rng(8)
    n, p = 50, 2000
    X = np.asarray(rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-1, 1, p), order=order)
    score = X[:, :3] @ [1.0, -1.0, 0.5] / np.abs(X[:, :3]).mean()
    y = {"squared": score, "logistic": np.sign(score), "poisson": rng.poisson(np.exp(np.clip(score, -3, 2)))}[loss]
    problem = fl.Problem(X, y.astype(float), loss=loss, penalty=fl.L1())
    alphas = problem.alpha_max() * np.logspace(-0.1, -1, 20)
    W, (b, primal, dual, passes) = np.zeros((20, p)), np.zeros((4, 20))
    none, bounds = np.zeros((20, 0)), (np.ones(p), np.zeros(p), np.full(p, -np.inf), np.full(p, np.inf))
    done = follow(X, y.astype(float), np.ones(n), KINDS[loss], np.zeros(1), alphas, *bounds, 1e-8, False, W, b, primal,
                  dual, none, passes)  # fmt: skip
    assert done == 20
    assert passes.sum() < 20  # a look at all features for every alpha would be more
    for k in (3, 10, 19):
        at = problem.with_alpha(alphas[k])
        assert primal[k] == pytest.approx(at.primal_at(np.append(W[k], 0.0)), rel=1e-12)
        assert primal[k] - dual[k] <= 1e-8 * abs(primal[k])
        tight = fl.solve(at, tol=1e-10)
        assert dual[k] <= tight.primal + 1e-12 * abs(tight.primal)


def test_a_set_that_outgrows_its_first_room_is_solved_in_a_larger_one(monkeypatch):
    """A single fit begins in the memory of the fit before; the answer is the same, bit for bit, where that is small."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 90))
    y = X[:, :30].sum(axis=1) + 0.1 * rng.standard_normal(60)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=1e-3)
    whole = fl.solve(problem)
    assert np.count_nonzero(whole.coef) > 40 and whole.history[-1].by == "compiled path"
    monkeypatch.setattr(small_path, "_fitting", lambda rows, p, most: 31)
    again = fl.solve(problem.with_alpha(problem.alpha))
    assert again.history[-1].by == "compiled path"
    np.testing.assert_array_equal(again.coef, whole.coef)


def test_the_first_room_has_place_for_few_features():
    for rows, p in ((20, 50), (477, 1659), (1400, 1446), (5000, 6000), (50, 600_000)):
        most = small_path.largest_set(rows, p)
        fitting = small_path._fitting(rows, p, most)
        assert fitting == most or (
            2 * fitting > rows and small_path.work_numbers(rows, p, fitting) <= small_path.BESIDE
        )
