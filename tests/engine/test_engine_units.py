"""Penalties as units: value, scores, scaling and conjugate are those of the Problem's own blocks."""

from __future__ import annotations

import cases
import numpy as np
import pytest

import fenchel as fl
from fenchel.engine.roles import Iterate
from fenchel.engine.rounds import WorkingSets
from fenchel.engine.units import Units, dual_variables, units_of
from fenchel.prices import PRICES

P = cases.P
OUT = np.where(np.arange(P) % 5 == 1, np.inf, 1.0)
SIGNS = fl.Box(np.where(np.arange(P) % 3 == 0, 0.0, -np.inf), np.where(np.arange(P) % 4 == 1, 0.0, np.inf))
GROUPS = [[0, 1, 2, 3], [4, 5], [6, 7, 8], [9, 10, 11]]
SCATTERED = [[0, 5, 9], [1, 11], [2, 3, 10, 7], [4, 6, 8]]
PENALTIES = {
    "l1": fl.L1(),
    "weighted": fl.L1(np.linspace(0.0, 2.0, P)),
    "infinite weights": fl.L1(OUT),
    "elastic net": fl.L1() + 0.3 * fl.Ridge(),
    "weighted elastic net": fl.ElasticNet(0.4, np.linspace(0.0, 2.0, P)),
    "non-negative": fl.NonNegative(),
    "non-negative l1": fl.L1() + fl.NonNegative(),
    "box": fl.Box(-0.3, 0.4),
    "box and l1": 0.5 * fl.L1() + fl.Box(-0.3, 0.4),
    "ridge": fl.Ridge(),
    "groups": fl.GroupL2(GROUPS),
    "scattered groups": fl.GroupL2(SCATTERED, [1.0, 0.5, 2.0, 1.5]),
    "groups that leave features out": fl.GroupL2(cases.APART),
    "groups, ridge": fl.GroupL2(SCATTERED) + 0.2 * fl.Ridge(),
    "groups that leave features out, ridge": fl.GroupL2(cases.APART) + 0.2 * fl.Ridge(),
    "sparse groups": 0.5 * fl.L1() + 0.5 * fl.GroupL2(SCATTERED),
    "sparse groups, ridge": 0.5 * fl.L1() + 0.5 * fl.GroupL2(SCATTERED) + 0.2 * fl.Ridge(),
    "groups with signs": fl.GroupL2(SCATTERED) + SIGNS,
    "sparse groups with signs": fl.GroupL2(SCATTERED) + 0.3 * fl.L1() + SIGNS,
    "scaled features": (fl.L1() + fl.Box(-1.0, 2.0)) @ fl.Matrix(np.diag(np.linspace(-2.0, 2.0, P))),
    "several blocks of bounds": fl.L1() @ fl.Matrix(np.diag(np.linspace(1.0, 2.0, P))) + fl.Box(-0.5, 0.5),
}
REFUSED = {
    "combinations of features": fl.L1() @ fl.Difference(P),
    "several places": fl.GroupL2(cases.OVERLAP),
    "groups overlap": fl.GroupL2([[0, 1], [2, 3]]) + fl.GroupL2([[1, 2]]),
    "does not fall into single coefficients": fl.TraceNorm((3, 4)),
    "zero is out of bounds": fl.Box(0.1, 1.0),
    "bounds other than zero inside a group": fl.GroupL2(GROUPS) + fl.Box(-1.0, 1.0),
    "different scales": fl.GroupL2(GROUPS) @ fl.Matrix(np.diag(np.linspace(1.0, 2.0, P))),
    "differs inside a group": fl.GroupL2([[0, 1], [2, 3]]) + fl.Ridge() @ fl.Selection([0, 2, 4], P),
}


def make(penalty, *, alpha=0.1, loss="squared", n=30, fit_intercept=False):
    X, y, _ = cases.data(cases.losses()[loss], n=n)
    return fl.Problem(X, y, loss=loss, penalty=penalty, alpha=alpha, fit_intercept=fit_intercept)


def units_and(penalty, **options) -> tuple[Units, fl.Problem]:
    problem = make(penalty, **options)
    units = units_of(problem)
    assert isinstance(units, Units), units
    return units, problem


def points(units, seed=0):
    """Some coefficients within the bounds, with zeros."""
    rng = np.random.default_rng(seed)
    for scale in (0.05, 0.5, 3.0):
        w = scale * rng.standard_normal(units.l1.size) * (rng.random(units.l1.size) < 0.7)
        yield np.clip(w, units.lower, units.upper)


@pytest.mark.parametrize("name", PENALTIES)
def test_the_value_is_that_of_the_blocks(name):
    units, problem = units_and(PENALTIES[name])
    for w in points(units):
        own = units.value(w) + 0.5 * units.ridge @ w**2
        assert own == pytest.approx(problem.penalty_value(problem.map @ w), rel=1e-12)
        doubled = units.times(2.0)
        assert doubled.value(w) + 0.5 * doubled.ridge @ w**2 == pytest.approx(2 * own, rel=1e-12)
    assert np.all(units.members[np.argsort(units.members)] == np.arange(P))
    assert np.all(units.label[units.members] == np.repeat(np.arange(units.count), np.diff(units.start)))


@pytest.mark.parametrize("name", PENALTIES)
def test_units_alone_are_a_part_of_all(name):
    units, _ = units_and(PENALTIES[name])
    some = np.arange(units.count)[::-2]
    local, (members, _) = units.local(some), units.of_coefficients(some)
    for w in points(units):
        only = np.zeros(P)
        only[members] = w[members]
        assert local.value(w[members]) == pytest.approx(units.value(only), rel=1e-12)
        np.testing.assert_allclose(local.sizes(w[members]), units.sizes(w)[some])
        np.testing.assert_allclose(local.scores(w[members]), units.scores(w)[some])


@pytest.mark.parametrize("name", PENALTIES)
def test_fenchel_young(name):
    """value + conjugate is at least the product, at any slope that the penalty can hold, and equal at a slope of it."""
    units, _ = units_and(PENALTIES[name])
    rng = np.random.default_rng(1)
    for w in points(units):
        own = units.value(w) + 0.5 * units.ridge @ w**2
        for size in (0.01, 0.1, 1.0):
            slope = size * rng.standard_normal(P)
            slope[units.unheld(slope) != 0] = 0.0
            slope *= units.scaling(slope)
            assert own + units.conjugate(slope) >= w @ slope - 1e-12
        slope = units.l1 * np.sign(w) + units.ridge * w
        length = units.sizes(w)[units.label]
        with np.errstate(divide="ignore", invalid="ignore"):
            slope += np.where(length > 0, units.norm[units.label] * w / length, 0.0)
        assert units.scaling(slope) >= 1 - 1e-12
        assert own + units.conjugate(slope) == pytest.approx(w @ slope, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", PENALTIES)
def test_dual_variables(name, fit_intercept):
    """Z x + B y = 0 up to rounding, and the certificate made of it is the best that a multiple of x allows."""
    units, problem = units_and(PENALTIES[name], fit_intercept=fit_intercept)
    rng = np.random.default_rng(2)
    for size in (0.02, 0.3, 2.0):
        x = problem.centred(size * rng.standard_normal(problem.n))
        zx = problem.gradient_sum(x)
        y = dual_variables(problem, units, zx)
        slope = -zx[problem.feature_slots] / problem.n
        np.testing.assert_allclose(problem.adjoint @ y, -np.where(looked_at(problem), zx, 0.0), atol=1e-13)
        if units.unheld(slope).any():
            continue  # free features: x has to move
        share = units.scaling(slope)
        expected = -problem.mean_conjugate(x, share) - units.conjugate(share * slope)
        made = problem.certificate(Iterate(np.zeros(problem.size), x, y, zx, np.zeros(problem.d)), fresh=False)
        assert made.certified
        assert made.dual >= expected - 1e-9 * abs(expected)
        assert problem.gauge(share * y / problem.n) <= 1 + 1e-9


def looked_at(problem):
    """Slots of coefficients that some block looks at."""
    mask = np.zeros(problem.size, dtype=bool)
    mask[problem.feature_slots[np.unique(problem.map.indices)]] = True
    return mask


@pytest.mark.parametrize("name", PENALTIES)
def test_scores_say_who_leaves_zero(name):
    """Above 1 a unit leaves zero along the slopes."""
    units, _ = units_and(PENALTIES[name])
    rng = np.random.default_rng(3)
    slope = 0.15 * rng.standard_normal(P)
    scores = units.scores(slope)
    # a step of the prox from zero along the slopes, unit by unit
    u = np.sign(slope) * np.maximum(np.abs(slope) - units.l1, 0.0)
    u = np.clip(u, np.where(units.lower == 0, 0.0, -np.inf), np.where(units.upper == 0, 0.0, np.inf))
    np.testing.assert_array_equal(scores > 1, u != 0 if units.alone else units.sizes(u) > units.norm)


@pytest.mark.parametrize("reason", REFUSED)
def test_what_does_not_fall_into_units(reason):
    problem = make(REFUSED[reason])
    assert reason in units_of(problem)
    assert reason in WorkingSets(PRICES).unfit(problem)
    assert fl.solve(problem, tol=1e-5).status is fl.Status.CONVERGED


def test_other_reasons():
    X, y, _ = cases.data(fl.Hinge(), n=30)
    assert "kinks" in WorkingSets(PRICES).unfit(fl.Problem(X, y, loss="hinge", penalty=fl.L1()))
    X = np.random.default_rng(5).standard_normal((5, 400))
    wide = fl.Problem(X, X[:, 0], loss="squared", penalty=fl.Ridge())
    assert "more than the rows" in WorkingSets(PRICES).unfit(wide)
    assert fl.solve(wide).status is fl.Status.CONVERGED


def test_sparse_groups_share_as_well_as_they_can():
    """The weights' share is as long as the certificate's scale, so that no shorter one is needed."""
    units, problem = units_and(0.5 * fl.L1() + 0.5 * fl.GroupL2(SCATTERED))
    x = np.random.default_rng(4).standard_normal(problem.n)
    zx = problem.gradient_sum(x)
    share = units.scaling(-zx[problem.feature_slots] / problem.n)
    assert 0 < share < 1
    y = dual_variables(problem, units, zx) / problem.n
    assert problem.gauge(share * y) == pytest.approx(1.0, rel=1e-9)
    grown = 1.001 * share * zx[problem.feature_slots] / problem.n
    assert np.any(units.sizes(units.beyond(-grown)) > units.norm)
