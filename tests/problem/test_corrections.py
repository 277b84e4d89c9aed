"""What no scaling makes feasible is paid for: bounds are true where w at hand says nothing of the optimum."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import fenchel as fl
from fenchel.foundation.numerics import BALANCED
from fenchel.problem import Point
from fenchel.problem.corrections import of_levels, of_rooms, of_rows
from fenchel.problem.unpenalised import projected
from fenchel.testing.hostile.exact import objective

RNG = np.random.default_rng(0)
N, P = 40, 3
X = RNG.standard_normal((N, P))
SCORE = X @ [1.0, -0.5, 0.2]
CLASSES = np.argmax(X + RNG.standard_normal((N, P)), axis=1)
TARGETS = {
    "squared": SCORE + 0.3 * RNG.standard_normal(N),
    "huber": SCORE + RNG.standard_t(2, N),
    "quantile": SCORE + RNG.standard_normal(N),
    "epsilon-insensitive": SCORE + RNG.standard_normal(N),
    "logistic": np.sign(SCORE + 2 * RNG.standard_normal(N)),
    "hinge": np.sign(SCORE + 2 * RNG.standard_normal(N)),
    "squared-hinge": np.sign(SCORE + 2 * RNG.standard_normal(N)),
    "smoothed-hinge": np.sign(SCORE + 2 * RNG.standard_normal(N)),
    "poisson": RNG.poisson(np.exp(0.5 * SCORE)).astype(float),
    "gamma": np.exp(SCORE) * RNG.gamma(2.0, size=N),
    "tweedie": np.exp(SCORE) * RNG.gamma(2.0, size=N),
    "binomial": RNG.uniform(0.1, 0.9, N),
    "negative-binomial": RNG.poisson(np.exp(0.5 * SCORE)).astype(float),
}
COUPLED = {"multinomial": CLASSES.astype(float), "multiclass-hinge": CLASSES.astype(float)}


def free_problem(loss, *, fit_intercept=False, weighted=False, offset=False):
    rng = np.random.default_rng(1)
    return fl.Problem(
        X, (TARGETS | COUPLED)[loss], loss=loss, penalty=None, fit_intercept=fit_intercept,
        sample_weight=rng.exponential(size=N) * (rng.random(N) < 0.9) if weighted else None,
        offset=0.3 * rng.standard_normal(N) if offset else None,
    )  # fmt: skip


def inner_point(problem, rng):
    """Dual variables whose sums along the free directions are not zero by a part in a million."""
    x = fl.solve(problem, tol=1e-4).state["x"]
    return (1 - 1e-6) * x + 1e-6 * problem.slopes_at(0.3 * rng.standard_normal(problem.visits))


def unbalanced(problem, x):
    along = problem._free[1]
    return along, along.T @ x


@pytest.mark.parametrize("extra", [{}, {"weighted": True}, {"offset": True}])
@pytest.mark.parametrize("loss", TARGETS)
def test_a_point_that_meets_the_sums_has_no_lower_bound_than_promised(loss, extra):
    problem, rng = free_problem(loss, **extra), np.random.default_rng(2)
    x = inner_point(problem, rng)
    along, g = unbalanced(problem, x)
    made = of_rooms(problem, x, along, np.abs(g), np.ones(g.size))
    assert made.left == 0.0 and 0 < made.price < np.inf
    low, high = problem._domain()
    room = np.maximum(np.minimum(0.5 * np.minimum(x - low, high - x), problem._rms(x)), 0.0)
    scaled = room[:, None] * along
    delta = -room * (scaled @ np.linalg.solve(scaled.T @ scaled, g))
    assert np.abs(along.T @ (x + delta)).max() <= 1e-9 * np.abs(g).max()
    assert problem.mean_conjugate(x + delta) - problem.mean_conjugate(x) <= made.price * (1 + 1e-9) + 1e-15
    assert np.linalg.norm(delta) / np.sqrt(N) <= made.shift * (1 + 1e-9)
    assert np.all(np.abs(problem.gradient_sum(delta)[problem.feature_slots]) <= made.sums * (1 + 1e-9))
    assert np.all(made.sums <= np.abs(g) * (1 + 1e-6))  # these are the columns themselves


AWAY = np.array([1e4, -2e4, 1e3])


def far_and_near(loss):
    """Problems whose first two columns have no weight, a point inside, and what the sums along them may be off: those
    of ones are known with more digits."""
    penalty = fl.L1(np.tile([0.0, 0.0, 1.0], P) if loss in COUPLED else np.array([0.0, 0.0, 1.0]))
    rng, found = np.random.default_rng(4), []
    for data in (X, X + AWAY):
        problem = fl.Problem(data, (TARGETS | COUPLED)[loss], loss=loss, penalty=penalty, alpha=0.1, fit_intercept=True)
        free = problem._free[0]
        levels = np.flatnonzero(free[problem.intercept_slots].any(axis=0))
        off = np.where(np.isin(np.arange(free.shape[1]), levels), 1e-16, 1e-12)
        found.append((problem, levels, off))
    near = found[0][0]
    if loss in COUPLED:
        return found, (rng.dirichlet(np.ones(P), N) - near.target.reshape(N, P)).ravel()
    low, high = near._domain()
    with np.errstate(invalid="ignore"):
        between = low + rng.uniform(0.2, 0.8, N) * (high - low)
    return found, np.where(np.isfinite(between), between, near.slopes_at(0.3 * rng.standard_normal(N)))


@pytest.mark.parametrize("loss", [*TARGETS, *COUPLED])
def test_columns_far_from_zero_move_by_what_their_sums_are_off(loss):
    """Beside an intercept only deviations from means tell what it takes to mend the sums."""
    found, x = far_and_near(loss)
    made = [of_rooms(problem, x, problem._free[1], off, np.ones(off.size), levels) for problem, levels, off in found]
    near, far = (one.reach(problem) for one, (problem, _, _) in zip(made, found, strict=True))
    assert np.all(far <= 20 * near.max())
    assert np.all(far <= 1e-2 * found[1][0].n * made[1].shift * found[1][0].column_lengths)
    assert loss in COUPLED or made[1].left == 0.0  # what all classes have in common is dependent
    assert made[1].price <= 10 * made[0].price + 1e-12


@pytest.mark.parametrize("loss", TARGETS)
def test_no_sums_that_are_off_by_as_much_move_a_column_further(loss):
    """The moves are made exactly, from columns near zero: (a + m 1)'x is off by g, so that a'x is off by g - m g_1."""
    (_, (far, levels, off)), x = far_and_near(loss)
    reach = of_rooms(far, x, far._free[1], off, np.ones(off.size), levels).reach(far)
    low, high = far._domain()
    room = np.maximum(np.minimum(0.5 * np.minimum(x - low, high - x), far._rms(x)), 0.0)
    basis, means = np.column_stack([X[:, :2], np.ones(N)]), np.append(AWAY[:2], 0.0)
    scaled, largest = room[:, None] * basis, np.zeros(P)
    for signs in np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T:
        g = signs * off
        delta = -room * (scaled @ np.linalg.solve(scaled.T @ scaled, g - means * g[-1]))
        largest = np.maximum(largest, np.abs(X.T @ delta - AWAY * g[-1]))
    assert np.all(largest <= reach * (1 + 1e-6))
    assert np.all(reach <= 100 * largest + 1e-12)


@pytest.mark.parametrize("loss", COUPLED)
def test_so_do_tilted_rows_of_classes(loss):
    problem, rng = free_problem(loss), np.random.default_rng(2)
    v = rng.dirichlet(np.ones(P), N)
    x = (v - problem.target.reshape(N, P)).ravel()
    x, _ = problem._balance(x, problem.gradient_sum(x))
    other = (rng.dirichlet(np.ones(P), N) - problem.target.reshape(N, P)).ravel()
    x = (1 - 1e-6) * x + 1e-6 * other
    along, g = unbalanced(problem, x)
    made = of_rooms(problem, x, along, np.abs(g), np.ones(g.size))
    assert 0 < made.price < np.inf
    v, A = x.reshape(N, P) + problem.target.reshape(N, P), along.reshape(N, P, -1)
    tilt = v[:, :, None] * (A - np.einsum("ik,ikc->ic", v, A)[:, None, :])
    # the shares of classes keep their sum along the columns' null directions: the common move of all classes
    c = np.linalg.lstsq(np.einsum("ikb,ikc->bc", A, tilt), g, rcond=1e-10)[0]
    delta = -(tilt @ c).ravel()
    assert np.abs(along.T @ (x + delta)).max() <= 1e-6 * np.abs(g).max()
    assert problem.mean_conjugate(x + delta) - problem.mean_conjugate(x) <= made.price * (1 + 1e-9)
    assert np.linalg.norm(delta) / np.sqrt(N) <= made.shift * (1 + 1e-9)
    assert np.all(np.abs(problem.gradient_sum(delta)[problem.feature_slots]) <= made.sums * (1 + 1e-6))


@pytest.mark.parametrize("loss", TARGETS)
def test_shrinking_a_sign_has_no_lower_bound_than_promised(loss):
    problem = fl.Problem(X, TARGETS[loss], loss=loss, penalty=fl.L1(), alpha=0.1, fit_intercept=True)
    x = inner_point(problem, np.random.default_rng(3))
    g = x.sum()
    made = of_levels(problem, x, problem.gradient_sum(x), exact=False)
    heavy = x > 0 if g > 0 else x < 0
    shrunk = np.where(heavy, x * (1 - abs(g) / np.abs(x[heavy]).sum()), x)
    assert abs(shrunk.sum()) <= 1e-14 * np.abs(x).sum()
    assert problem.mean_conjugate(shrunk) - problem.mean_conjugate(x) <= made.price
    assert np.linalg.norm(shrunk - x) / np.sqrt(N) <= made.shift


def test_directions_that_are_dependent_are_left_over():
    twice = np.column_stack([X, X[:, 0]])
    problem = fl.Problem(twice, TARGETS["squared"], loss="squared", penalty=None)
    x = inner_point(problem, np.random.default_rng(0))
    along, g = unbalanced(problem, x)
    made = of_rooms(problem, x, along, np.abs(g), np.ones(4))
    assert made.price > 0 and made.left > 0
    result = fl.solve(problem, tol=1e-9)
    assert result.status is fl.Status.CONVERGED


def least_squares_exactly(A, t):
    """The least mean of half the squares, in fractions."""
    A, t = [[Fraction(one) for one in row] for row in A.tolist()], [Fraction(one) for one in t.tolist()]
    k, n = len(A[0]), len(A)
    system = [[sum(row[i] * row[j] for row in A) for j in range(k)] for i in range(k)]
    for i in range(k):
        system[i].append(sum(row[i] * one for row, one in zip(A, t, strict=True)))
    for i in range(k):
        for j in range(k):
            if j != i:
                part = system[j][i] / system[i][i]
                system[j] = [a - part * b for a, b in zip(system[j], system[i], strict=True)]
    w = [system[i][k] / system[i][i] for i in range(k)]
    left = [one - sum(a * b for a, b in zip(row, w, strict=True)) for row, one in zip(A, t, strict=True)]
    return sum(one * one for one in left) / (2 * n)


@pytest.mark.parametrize("columns", [0, 2])
@pytest.mark.parametrize("level", [1.0, 1e6, 1e9])
def test_a_start_at_zero_says_nothing_of_a_far_level(columns, level):
    """Sums that count as zero, times a level that w = 0 knows nothing of: a bound that took w's word would be false."""
    A = np.ascontiguousarray(X[:, :columns])
    t = level + TARGETS["squared"]
    problem = fl.Problem(A if columns else np.zeros((N, 1)), t, loss="squared", penalty=None if columns else fl.L1(),
                         fit_intercept=True)  # fmt: skip
    least = least_squares_exactly(np.column_stack([A, np.ones(N)]), t)
    best = np.linalg.lstsq(np.column_stack([A, np.ones(N)]), t, rcond=None)[0]
    x = np.column_stack([A, np.ones(N)]) @ best - t
    for side in (1.0, -1.0):
        moved = x - x.mean() - side * 0.9 * BALANCED * np.abs(x).mean()
        found = problem.certificate(Point(np.zeros(problem.size), x=moved), primal=1.0).dual
        assert Fraction(found) <= least
        assert float(least) - found <= 1e-11 * level  # not by taking more than that is worth


@pytest.mark.parametrize("loss", COUPLED)
def test_rows_that_do_not_add_up_are_paid_for(loss):
    """Shares of classes that are off by what a conjugate allows, where scores have a far level of their own."""
    offset = np.full((N, P), 1e6)
    problem = fl.Problem(X, COUPLED[loss], loss=loss, penalty=fl.L1(), alpha=10.0, offset=offset)
    x = problem.slopes_at(np.zeros(problem.visits))
    value = objective(problem, np.zeros(problem.size))
    for off in (-3e-13, 3e-13):
        assert Decimal(problem.certificate(Point(np.zeros(problem.size), x=x + off)).dual) <= value
    assert of_rows(problem, x + 3e-13).price > of_rows(problem, x).price


@pytest.mark.parametrize("loss", [*TARGETS, *COUPLED])
@pytest.mark.parametrize("penalty", [None, fl.NonNegative(), fl.L1(np.r_[0.0, 1.0, 1.0]), fl.FusedLasso(0.0)])
def test_bounds_without_weights_are_true_and_close(loss, penalty):
    if loss in COUPLED and penalty is not None and penalty.size() is not None:
        penalty = fl.L1(np.tile([0.0, 1.0, 1.0], P))
    for alpha in (0.05, 1e-20):
        problem = fl.Problem(X, (TARGETS | COUPLED)[loss], loss=loss, penalty=penalty, alpha=alpha, fit_intercept=True)
        result = fl.solve(problem, tol=1e-9)
        assert result.status is fl.Status.CONVERGED
        assert Decimal(result.dual) <= objective(problem, problem.pack(result.coef, result.intercept))


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e100])
@pytest.mark.parametrize("loss", ["quantile", "epsilon-insensitive", "huber"])
def test_rows_that_are_all_at_an_end_of_their_domain(loss, unit):
    """Without an intercept every residual may have one sign: no row has room, but centred columns still ask for sums
    of zero that rounding has taken from them."""
    rng = np.random.default_rng(0)
    raw = 1e3 + rng.standard_normal((200, 6)) * 10.0 ** rng.uniform(-2, 2, 6)
    A = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    result = fl.solve(fl.Problem(A, unit * (30 + A @ np.ones(6)), loss=loss, penalty=None), tol=1e-6)
    assert result.status is fl.Status.CONVERGED


def test_the_closest_point_of_a_box_with_given_sums():
    rng = np.random.default_rng(0)
    A, low, high = rng.standard_normal((30, 4)), np.full(30, -1.0), np.full(30, 0.5)
    for x in (rng.uniform(-2, 2, 30), high, low):
        wanted = A.T @ np.clip(rng.standard_normal(30), -0.9, 0.4)
        found = projected(x, A, wanted, low, high)
        np.testing.assert_allclose(A.T @ found, wanted, atol=1e-12)
        assert np.all((found >= low) & (found <= high))
        # no move between rows inside, or away from an end, brings it closer and keeps the sums
        inner, away = (found > low) & (found < high), x - found
        c = np.linalg.lstsq(A[inner], -away[inner], rcond=None)[0]
        left = away + A @ c
        assert np.abs(left[inner]).max() <= 1e-9
        assert np.all(left[found == high] >= -1e-9) and np.all(left[found == low] <= 1e-9)


def test_sums_that_no_point_of_a_box_has():
    A = np.ones((5, 1))
    found = projected(np.zeros(5), A, np.array([7.0]), np.zeros(5), np.ones(5))
    np.testing.assert_allclose(found, 1.0)
