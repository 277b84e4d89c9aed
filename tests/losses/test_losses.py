"""Losses: every law of `fenchel.testing`, formulas from elsewhere, bad input, and losses of one's own."""

import ctypes

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.optimize import brentq
from scipy.special import expit, wrightomega, xlogy
from sklearn import metrics

import fenchel as fl
from fenchel.kernels import compiled, gradients
from fenchel.losses import LOSSES
from fenchel.testing import check_loss
from fenchel.testing.losses import _call_step

CASES = {
    "smoothed-hinge": [fl.SmoothedHinge(), fl.SmoothedHinge(1e-3), fl.SmoothedHinge(40.0)],
    "hinge": [fl.Hinge()],
    "squared-hinge": [fl.SquaredHinge()],
    "logistic": [fl.Logistic()],
    "squared": [fl.Squared()],
    "huber": [fl.Huber(), fl.Huber(1e-3), fl.Huber(500.0)],
    "quantile": [fl.Quantile(), fl.Quantile(0.01), fl.Quantile(0.9)],
    "epsilon-insensitive": [fl.EpsilonInsensitive(), fl.EpsilonInsensitive(0.0), fl.EpsilonInsensitive(5.0)],
    "poisson": [fl.Poisson()],
    "gamma": [fl.Gamma()],
    "tweedie": [fl.Tweedie(), fl.Tweedie(1.01), fl.Tweedie(1.2), fl.Tweedie(1.95)],
    "binomial": [fl.Binomial()],
    "negative-binomial": [fl.NegativeBinomial(), fl.NegativeBinomial(0.01), fl.NegativeBinomial(1e6)],
}
ALL = [loss for losses in CASES.values() for loss in losses]
every_loss = pytest.mark.parametrize("loss", ALL, ids=repr)


def valid_targets(loss, n, rng):
    if loss.classification:
        return np.where(np.arange(n) % 2, 1.0, -1.0)
    if isinstance(loss, fl.Gamma):
        return rng.gamma(2.0, 1.0, n)
    if isinstance(loss, fl.Binomial):
        return rng.integers(0, 5, n) / 4
    return rng.poisson(2.0, n).astype(float) if loss.deviance else rng.standard_normal(n)


def test_every_registered_loss_has_a_case():
    assert set(CASES) == set(LOSSES)
    for name, losses in CASES.items():
        assert all(type(loss) is LOSSES[name] for loss in losses)


@every_loss
@pytest.mark.parametrize("seed", [0, 1])
def test_laws(loss, seed):
    check_loss(loss, rng=seed)


@pytest.mark.parametrize(
    ("loss", "targets"),
    [
        (fl.Gamma(), [1e-6, 1e-3, 1e4]),
        (fl.Binomial(), [0, 1e-9, 0.5, 1 - 1e-9, 1]),
        (fl.Tweedie(1.3), [0, 1e-3, 1e4]),
        (fl.NegativeBinomial(3.0), [0, 1e-3, 1e4]),
        (fl.Poisson(), [0, 1e-3, 1e4]),
        (fl.Squared(), [1e4, -1e3]),
        (fl.EpsilonInsensitive(0.3), [300, 0]),
    ],
    ids=repr,
)
def test_laws_at_large_targets(loss, targets):
    check_loss(loss, targets)


# -- formulas from elsewhere ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "score", "target", "value", "gradient"),
    [
        (fl.SmoothedHinge(), 0.5, 1, 0.125, -0.5),
        (fl.SmoothedHinge(), -2.0, 1, 2.5, -1.0),
        (fl.SmoothedHinge(), -2.0, -1, 0.0, 0.0),
        (fl.SmoothedHinge(0.5), 0.5, 1, 0.25, -1.0),
        (fl.Hinge(), 0.25, 1, 0.75, -1.0),
        (fl.Hinge(), 0.25, -1, 1.25, 1.0),
        (fl.SquaredHinge(), 0.5, 1, 0.25, -1.0),
        (fl.SquaredHinge(), 2.0, -1, 9.0, 6.0),
        (fl.Logistic(), 0.0, -1, np.log(2), 0.5),
        (fl.Logistic(), 800.0, -1, 800.0, 1.0),
        (fl.Logistic(), -800.0, -1, 0.0, 0.0),
        (fl.Squared(), 3.0, 1, 2.0, 2.0),
        (fl.Huber(1.0), 0.5, 0, 0.125, 0.5),
        (fl.Huber(1.0), -3.0, 0, 2.5, -1.0),
        (fl.Quantile(0.9), 0.0, 1, 0.9, -0.9),
        (fl.Quantile(0.9), 2.0, 1, 0.1, 0.1),
        (fl.EpsilonInsensitive(0.5), 2.0, 1, 0.5, 1.0),
        (fl.EpsilonInsensitive(0.5), 1.4, 1, 0.0, 0.0),
        (fl.Poisson(), np.log(3.0), 2, 3 - 2 * np.log(3.0), 1.0),
        (fl.Gamma(), np.log(4.0), 2, np.log(2.0) - 0.5, 0.5),
        (fl.Gamma(), np.log(2.0), 2, 0.0, 0.0),
        (fl.Tweedie(1.5), np.log(4.0), 0, 4.0, 2.0),
        (fl.Tweedie(1.5), np.log(4.0), 4, 0.0, 0.0),
        (fl.Tweedie(1.5), np.log(4.0), 1, 1.0, 1.5),
        (fl.Binomial(), 0.0, 0.25, np.log(2.0) - 0.25 * np.log(4.0) - 0.75 * np.log(4.0 / 3.0), 0.25),
        (fl.Binomial(), 800.0, 0, 800.0, 1.0),
        (fl.NegativeBinomial(2.0), np.log(2.0), 0, 2 * np.log(2.0), 1.0),
        (fl.NegativeBinomial(2.0), np.log(3.0), 3, 0.0, 0.0),
    ],
)
def test_known_values(loss, score, target, value, gradient):
    assert loss.value(score, target) == pytest.approx(value, abs=1e-14)
    assert loss.gradient(score, target) == pytest.approx(gradient, abs=1e-14)


def entropy_step(v, C, t):
    """Root of logit(a) + C (a - b), by bracketing in logit(a)."""
    b = -t * v
    z = brentq(lambda z: z + C * (expit(z) - b), C * (b - 1) - 1, C * b + 1, xtol=1e-14, rtol=1e-15)
    return -t * expit(z)


def slope_step(f, v, C, t):
    """Moreau: the slope of f at the root of u + C (f'(u) - v), by bracketing."""

    def over(u):
        return u + C * (float(f.gradient(u, t)) - v)

    low = high = 0.0
    while over(low) > 0:
        low = 2 * low - 1
    while over(high) < 0:
        high = 2 * high + 1
    return float(f.gradient(brentq(over, low, high, xtol=1e-15, rtol=1e-15), t)) if low < high else v


# the prox of f*/C at v, written down without the compiled kernels
FORMULAS = {
    "smoothed-hinge": lambda f, v, C, t: t * np.clip((C * v * t - 1) / (C + f.smoothing), -1, 0),
    "hinge": lambda f, v, C, t: t * np.clip(v * t - 1 / C, -1, 0),
    "squared-hinge": lambda f, v, C, t: t * np.minimum((C * v * t - 1) / (C + 0.5), 0),
    "logistic": lambda f, v, C, t: np.vectorize(entropy_step)(v, C, t),
    "squared": lambda f, v, C, t: (C * v - t) / (C + 1),
    "huber": lambda f, v, C, t: np.clip((C * v - t) / (C + 1), -f.delta, f.delta),
    "quantile": lambda f, v, C, t: np.clip(v - t / C, -f.quantile, 1 - f.quantile),
    "epsilon-insensitive": lambda f, v, C, t: np.clip(
        np.sign(v - t / C) * np.maximum(np.abs(v - t / C) - f.epsilon / C, 0), -1, 1
    ),
    "poisson": lambda f, v, C, t: wrightomega(np.log(C) + C * (t + v)).real / C - t,
    "gamma": lambda f, v, C, t: 1 - wrightomega(np.log(C) + C * (1 - v) + np.log(t)).real / C,
    "tweedie": lambda f, v, C, t: np.vectorize(slope_step)(f, v, C, t),
    "binomial": lambda f, v, C, t: np.vectorize(slope_step)(f, v, C, t),
    "negative-binomial": lambda f, v, C, t: np.vectorize(slope_step)(f, v, C, t),
}


@pytest.mark.parametrize("name", LOSSES)
def test_compiled_step_is_the_formula(name):
    rng = np.random.default_rng(0)
    n = 400
    for loss in CASES[name]:
        target = valid_targets(loss, n, rng)
        v, C = 3 * rng.standard_normal(n), 10.0 ** rng.uniform(-2, 2, n)
        weight = rng.choice([0.0, 0.3, 1.0, 5.0], n)
        x = _call_step(loss, v, C, target, weight)
        s = np.where(weight > 0, weight, 1.0)
        expected = np.where(weight > 0, s * FORMULAS[name](loss, v / s, C * s, target), 0.0)
        np.testing.assert_allclose(x, expected, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(loss.dual_step(v, C, target), FORMULAS[name](loss, v, C, target), 1e-9, 1e-11)


@every_loss
def test_compiled_gradient_is_the_gradient(loss):
    rng = np.random.default_rng(1)
    sizes = np.array([0.0, 1e-3, 0.1, 0.5, 1.0, 1.35, 5.0, 40.0, 600.0])
    score, target = np.meshgrid(np.concatenate([-sizes, sizes]), valid_targets(loss, 6, rng), indexing="ij")
    score = np.concatenate([score, score + target]).ravel()
    target = np.concatenate([target, target]).ravel()
    weight = rng.choice([0.0, 0.3, 1.0, 5.0], score.size)
    step = compiled.compile_step(getattr(gradients, loss.kernel))
    out = np.empty_like(score)
    arrays = (out, score, np.ones_like(score), target, weight, loss.params)
    step.ctypes(score.size, *(a.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for a in arrays))
    np.testing.assert_allclose(out, weight * loss.gradient(score, target), rtol=1e-12, atol=1e-15)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    st.sampled_from(ALL),
    st.floats(-9, 9),
    st.floats(-1e6, 1e6),
    st.floats(0, 1e3),
    st.sampled_from([1e-6, 0.5, 1.0, 1e6]),
    st.floats(0, 1),
)
def test_dual_step_is_optimal_anywhere(loss, log_curvature, point, target, weight, share):
    """s f*(z/s) - s f*(x/s) + C (z - x)(x - v) >= 0 for every z, beyond the sizes that check_loss tries."""
    if loss.classification:
        target = 1.0 if target > 1 else -1.0
    elif isinstance(loss, fl.Gamma):
        target = max(target, 1e-6)
    elif isinstance(loss, fl.Binomial):
        target = min(target, 1.0)
    C = 10.0**log_curvature
    t = np.array([target])
    x = _call_step(loss, np.array([point]), np.array([C]), t, np.array([weight]))
    low, high = (weight * float(end[0]) for end in loss.domain(t))
    assert np.isfinite(x).all()
    assert low - 1e-12 * abs(low) <= x[0] <= high + 1e-12 * abs(high)
    ends = max(low, -abs(x[0]) - 10 * weight), min(high, abs(x[0]) + 10 * weight)
    z = np.clip(np.array([ends[0] + share * (ends[1] - ends[0]), x[0] + share, x[0] - share * weight]), low, high)
    at_z, at_x = weight * loss.conjugate(z / weight, target), weight * loss.conjugate(x / weight, target)
    excess = at_z - at_x + C * (z - x) * (x - point)
    slack = 1e-10 * (np.abs(at_z) + np.abs(at_x) + C * np.abs(z - x) * (np.abs(x) + abs(point))) + 1e-12 * weight
    assert np.all(excess >= -slack - 1e-14 * C * np.abs(x) * np.abs(x - point)), (excess, x, z)


@pytest.mark.parametrize("loss", [loss for loss in ALL if loss.smoothness is not None], ids=repr)
def test_smoothness_is_tight(loss):
    scores = np.linspace(-3, 3, 20001)
    slope = loss.gradient(scores, np.ones_like(scores))
    assert np.max(np.diff(slope) / np.diff(scores)) == pytest.approx(loss.smoothness, rel=0.01)


@every_loss
def test_weight_is_repetition_in_primal_and_dual(loss):
    rng = np.random.default_rng(3)
    X, y, count = rng.standard_normal((12, 3)), valid_targets(loss, 12, rng), rng.integers(1, 4, 12)
    weighted = fl.Problem(X, y, loss=loss, sample_weight=count)
    repeated = fl.Problem(np.repeat(X, count, axis=0), np.repeat(y, count), loss=loss)
    w = rng.standard_normal(3)
    assert weighted.primal(w) == pytest.approx(repeated.primal(w), rel=1e-12)
    # a dual variable of a row of weight s is s times that of one of its copies
    xi = loss.gradient(X @ w, y)
    assert weighted.mean_conjugate(xi * weighted.weight) == pytest.approx(
        repeated.mean_conjugate(np.repeat(xi, count)), rel=1e-9
    )


def test_lists_are_taken():
    for loss in ALL:
        for method in (loss.value, loss.gradient, loss.conjugate):
            assert np.shape(method([0.5, -2.0], [1.0, 1.0])) == (2,)
        assert np.shape(loss.dual_step([0.5, -2.0], 1.0, [1.0, 1.0])) == (2,)


def test_shapes_are_kept():
    for loss in ALL:
        for shape in ((), (3,), (2, 3)):
            score, target = np.full(shape, 0.5), np.ones(shape)
            assert np.shape(loss.dual_step(score, 1.0, target)) == shape
            for method in (loss.value, loss.gradient, loss.conjugate):
                assert np.shape(method(score, target)) == shape


# -- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fl.SmoothedHinge(0), r"smoothing is 0; it must lie in \(0, inf\)"),
        (lambda: fl.SmoothedHinge(np.nan), "smoothing is nan"),
        (lambda: fl.SmoothedHinge(np.inf), "smoothing is inf"),
        (lambda: fl.SmoothedHinge("wide"), "smoothing"),
        (lambda: fl.Huber(-1), r"delta is -1; it must lie in \(0, inf\)"),
        (lambda: fl.Huber(None), "delta"),
        (lambda: fl.Quantile(0), r"quantile is 0; it must lie in \(0, 1\)"),
        (lambda: fl.Quantile(1), r"quantile is 1; it must lie in \(0, 1\)"),
        (lambda: fl.EpsilonInsensitive(-1e-9), r"epsilon is -1e-09; it must lie in \[0, inf\)"),
    ],
)
def test_bad_parameters(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("loss", "target", "message"),
    [
        (fl.Squared(), [1.0, np.nan], r"y\[1\] is nan; y must be finite"),
        (fl.Squared(), [[1.0, 2.0], [3.0, -np.inf]], r"y\[1, 1\] is -inf; y must be finite"),
        (fl.Squared(), ["a", "b"], "y has dtype <U1; Squared takes numbers"),
        (fl.Squared(), np.array([1, None], dtype=object), "y has dtype object"),
        (fl.Squared(), np.array([1 + 1j, 2]), "y has dtype complex128"),
        (fl.Squared(), np.array(["2020-01-01"], dtype="datetime64[D]"), "y has dtype datetime64"),
        (fl.Hinge(), [1, 0, 1], r"y\[1\] is 0; Hinge takes labels -1 and \+1 \(for 0/1 labels pass 2 \* y - 1\)"),
        (fl.Logistic(), [1, 1, 1], r"y holds one class only \(\+1\); Logistic needs both -1 and \+1"),
        (fl.Logistic(), [[1, -1], [-1, -1]], "one class only"),
        (fl.Poisson(), [3, 0, -2], r"y\[2\] is -2; Poisson takes counts, not below 0"),
        (fl.Gamma(), [3, 0, -2], r"y\[1\] is 0; Gamma takes numbers above 0 \(Tweedie takes zeros"),
        (fl.Tweedie(), [3, 0, -2], r"y\[2\] is -2; Tweedie takes numbers not below 0"),
        (fl.Binomial(), [0.5, 3], r"y\[1\] is 3; Binomial takes proportions from 0 to 1 .*fenchel.proportions"),
        (fl.NegativeBinomial(), [3, -1], r"y\[1\] is -1; NegativeBinomial takes counts"),
    ],
)
def test_bad_targets(loss, target, message):
    with pytest.raises(ValueError, match=message):
        loss.check_targets(target)


def test_good_targets():
    assert fl.Hinge().check_targets(np.array([1, -1], dtype=np.int8)).dtype == float
    assert fl.Squared().check_targets([True, False]).tolist() == [1.0, 0.0]
    assert fl.Poisson().check_targets(np.arange(3, dtype=np.uint16)).tolist() == [0.0, 1.0, 2.0]


def test_an_abstract_loss_says_what_is_missing():
    class Empty(fl.Loss):
        pass

    for call in (Empty().value, Empty().gradient, Empty().conjugate):
        with pytest.raises(TypeError, match="Empty must define"):
            call(0.0, 1.0)
    with pytest.raises(TypeError, match="Empty must define domain"):
        Empty().domain(1.0)
    with pytest.raises(TypeError, match="Empty must define dual_step, scalar_step or kernel"):
        Empty().dual_step(0.0, 1.0, 1.0)


# -- a loss of one's own ----------------------------------------------------------------------------


class Mine(fl.Loss):
    """Smoothed hinge, written again."""

    classification = True
    smoothness = 1.0

    def value(self, score, target):
        short = np.maximum(1 - score * target, 0)
        return np.where(short < 1, short**2 / 2, short - 0.5)

    def gradient(self, score, target):
        return -target * np.clip(1 - score * target, 0, 1)

    def conjugate(self, dual, target):
        a = dual * target
        return np.where((a < -1 - 1e-12) | (a > 1e-12), np.inf, a + a * a / 2)

    def domain(self, target):
        return np.minimum(-target, 0), np.maximum(-target, 0)


class Python(Mine):
    def dual_step(self, point, curvature, target):
        return target * np.clip((curvature * point * target - 1) / (curvature + 1), -1, 0)


class Compiled(Mine):
    @njit
    def scalar_step(point, curvature, target):
        return target * min(max((curvature * point * target - 1) / (curvature + 1), -1.0), 0.0)


class CompiledForInstance(Mine):
    """The numba function closes over a parameter, so it belongs to the instance."""

    def __init__(self, end):
        self.end = end

        @njit
        def step(point, curvature, target):
            return target * min(max((curvature * point * target - 1) / (curvature + 1), -end), 0.0)

        self.scalar_step = step


own_losses = pytest.mark.parametrize(
    "make", [Python, Compiled, lambda: CompiledForInstance(1.0)], ids=["python", "numba", "numba-instance"]
)


@pytest.fixture(scope="module")
def small():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 4))
    y = np.sign(X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * rng.standard_normal(40))
    return X, y


@own_losses
def test_own_loss_passes_the_checks(make):
    check_loss(make())


@own_losses
@pytest.mark.parametrize("weighted", [False, True])
def test_own_loss_in_solve(make, weighted, small):
    X, y = small
    weight = np.arange(40) % 3 + 0.5 * (np.arange(40) % 3 > 0) if weighted else None
    common = {"penalty": fl.L1(), "alpha": 0.02, "sample_weight": weight}
    mine = fl.solve(fl.Problem(X, y, loss=make(), **common), tol=1e-9)
    built_in = fl.solve(fl.Problem(X, y, loss=fl.SmoothedHinge(), **common), tol=1e-9)
    assert mine.relative_gap <= 1e-9 and built_in.relative_gap <= 1e-9
    np.testing.assert_allclose(mine.coef, built_in.coef, atol=1e-4)
    assert mine.primal == pytest.approx(built_in.primal, rel=2e-9)


def test_exception_in_own_dual_step_surfaces(small):
    class Broken(Python):
        def dual_step(self, point, curvature, target):
            raise LookupError("inside my dual step")

    with pytest.raises(LookupError, match="inside my dual step"):
        fl.solve(fl.Problem(*small, loss=Broken(), penalty=fl.L1(), alpha=0.1), newton=False)


def test_own_loss_may_hold_any_attribute():
    class Table(Python):
        def __init__(self):
            self.table, self.name = np.arange(3.0), "mine"

    assert "Table" in repr(Table())


def test_numba_step_is_compiled_once():
    loss = Compiled()
    assert loss.compiled() is loss.compiled()


# -- the checks find what is wrong ------------------------------------------------------------------


def wrong(base, **methods):
    return type("Wrong", (base,), methods)()


def with_slope(factor):
    return lambda self, score, target: factor * Mine.gradient(self, score, target)


WRONG = {
    "gradient too steep": (wrong(Python, gradient=with_slope(1 + 1e-4)), "gradient lies between"),
    "gradient of the wrong sign": (wrong(Python, gradient=with_slope(-1)), "gradient lies between"),
    "value not convex": (
        wrong(Python, value=lambda self, u, t: np.minimum(Mine.value(self, u, t), 3.0)),
        "slopes|tangents",
    ),
    "value is NaN": (wrong(Python, value=lambda self, u, t: np.sqrt(u)), "value is a number"),
    "conjugate off by a constant": (
        wrong(Python, conjugate=lambda self, x, t: Mine.conjugate(self, x, t) + 1e-6),
        "Fenchel-Young|supremum",
    ),
    "conjugate too small": (
        wrong(Python, conjugate=lambda self, x, t: Mine.conjugate(self, x, t) - 1e-6),
        "Fenchel-Young",
    ),
    "conjugate finite everywhere": (
        wrong(Python, conjugate=lambda self, x, t: x * t + x * x / 2),
        "infinite outside the domain",
    ),
    "domain too large": (
        wrong(Python, domain=lambda self, t: (np.minimum(-1.1 * t, 0), np.maximum(-1.1 * t, 0))),
        "finite inside the domain",
    ),
    "domain too small": (
        wrong(Python, domain=lambda self, t: (np.minimum(-0.9 * t, 0), np.maximum(-0.9 * t, 0))),
        "infinite outside the domain",
    ),
    "domain without 0": (
        wrong(Python, domain=lambda self, t: (np.minimum(-t, 0.1), np.maximum(-t, 0.2))),
        "0 lies in the domain",
    ),
    "step slightly off": (
        wrong(Python, dual_step=lambda self, v, C, t: (1 - 1e-6) * Python.dual_step(self, v, C, t)),
        "dual step minimises",
    ),
    "step leaves the domain": (
        wrong(Python, dual_step=lambda self, v, C, t: (C * v - t) / (C + 1)),
        "ends in the domain",
    ),
    "step ignores the curvature": (
        wrong(Python, dual_step=lambda self, v, C, t: Python.dual_step(self, v, 0 * C + 1, t)),
        "dual step minimises",
    ),
    "step expands": (
        wrong(Python, dual_step=lambda self, v, C, t: t * np.clip(-2 * v * t, -1, 0)),
        "monotone and does not expand",
    ),
    "step is one number": (wrong(Python, dual_step=lambda self, v, C, t: np.zeros(1)), "gives one number for each"),
    "weights forgotten": (
        wrong(Python, _weighted_step=lambda self, v, C, t, s: (s > 0) * self.dual_step(v, C, t)),
        "weight is repetition",
    ),
    "weight 0 moves": (
        wrong(Python, _weighted_step=lambda self, v, C, t, s: self.dual_step(v, C, t)),
        "weight 0 has dual variable 0",
    ),
    "curvature of another loss": (
        wrong(Python, curvature=lambda self, u, t: np.ones_like(u)),
        "the curvature is the slope of the gradient",
    ),
    "smoothness too small": (wrong(Python, smoothness=0.9), "Lipschitz with the smoothness"),
    "targets refused": (
        wrong(Python, check_targets=lambda self, y: fl.Poisson().check_targets(y)),
        "valid targets are accepted",
    ),
    "NaN among the targets": (wrong(Python, check_targets=lambda self, y: np.asarray(y)), "targets are finite"),
}


@pytest.mark.parametrize("name", WRONG)
def test_check_loss_names_the_broken_law(name):
    loss, law = WRONG[name]
    with pytest.raises(AssertionError, match=f"Wrong breaks the law .*({law})"):
        check_loss(loss)


def test_entropy_formula_of_the_conjugate():
    a = np.linspace(0, 1, 11)
    np.testing.assert_allclose(fl.Logistic().conjugate(-a, np.ones(11)), xlogy(a, a) + xlogy(1 - a, 1 - a), atol=1e-15)


# -- half deviances ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "theirs"),
    [
        (fl.Gamma(), lambda y, mean: metrics.mean_gamma_deviance(y, mean)),
        (fl.Tweedie(1.3), lambda y, mean: metrics.mean_tweedie_deviance(y, mean, power=1.3)),
        (fl.NegativeBinomial(1e12), lambda y, mean: metrics.mean_poisson_deviance(y, mean)),
    ],
    ids=["gamma", "tweedie", "negative binomial"],
)
def test_half_the_deviance_of_scikit_learn(loss, theirs):
    rng = np.random.default_rng(2)
    y, score = rng.gamma(1.0, 2.0, 50), rng.normal(0, 2, 50)
    assert loss.value(score, y).mean() == pytest.approx(theirs(y, np.exp(score)) / 2, rel=1e-9)


@pytest.mark.parametrize("power", [1.001, 1.1, 1.5, 1.9, 1.999])
def test_the_conjugate_of_tweedie_is_never_too_small(power):
    """The certificate needs a bound from above: compared with a maximum found in longer numbers."""
    loss, rng = fl.Tweedie(power), np.random.default_rng(3)
    t = 10.0 ** rng.uniform(-6, 6, 400)
    x = rng.choice([-1.0, 1.0], 400) * 10.0 ** rng.uniform(-8, 8, 400)
    q, r = np.longdouble(loss.params[0]), np.longdouble(loss.params[1])
    long_t, long_x = t.astype(np.longdouble), x.astype(np.longdouble)
    far = np.log1p(np.abs(long_x) / long_t**q)
    u = np.log(long_t) + np.where(x > 0, far / q, -far / r)
    for _ in range(3000):  # halved steps: slow, and sure
        up, down = np.exp(q * u), long_t * np.exp(-r * u)
        u = u - np.clip((up - down - long_x) / (q * up + r * down), -0.5, 0.5)
    up, down = np.exp(q * u), long_t * np.exp(-r * u)
    terms = np.abs(long_x * u) + up / q + down / r + long_t**q / (q * r)
    exact = long_x * u - (up / q + down / r - long_t**q / (q * r))
    away = (loss.conjugate(x, t) - exact) / terms
    assert away.min() >= -2e-15 and away.max() <= 1e-14


@pytest.mark.parametrize(
    ("power", "message"),
    [(2, "power 2 is Gamma"), (1, "power 1 is Poisson"), (3, "not convex"), (0, "Squared"), ("a", "must be a number")],
)
def test_powers_that_have_no_proof(power, message):
    with pytest.raises(ValueError, match=message):
        fl.Tweedie(power)


def test_the_inverse_gaussian_says_why_not():
    for made in (
        lambda: fl.Problem(np.eye(3), np.ones(3), loss="inverse-gaussian"),
        lambda: fl.StructuredRegressor("inverse_gaussian").fit(np.eye(3), np.ones(3)),
    ):
        with pytest.raises(ValueError, match=r"not convex.*take Gamma"):
            made()
    with pytest.raises(ValueError, match="did you mean 'negative-binomial'"):
        fl.Problem(np.eye(3), np.ones(3), loss="negative_binomial")
