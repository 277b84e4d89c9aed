"""Cox's partial likelihood against its definition, and the laws of its conjugate and its curvature."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fenchel as fl
from fenchel.losses import COUPLED_LOSSES
from fenchel.losses.cox import survival_records
from fenchel.testing import check_loss

TIES = ("breslow", "efron")


def definition(u, y, weight, ties):
    """The deviance by the book, over all sets at risk; c is what the terms of a time are at the least."""
    time, event, strata = y.T
    total = 0.0
    for stratum, at in {(s, t) for s, t, e, w in zip(strata, time, event, weight, strict=True) if e and w > 0}:
        dead = (strata == stratum) & (time == at) & (event == 1) & (weight > 0)
        risk = (strata == stratum) & (time >= at)
        mass, own = weight[dead].sum(), weight[dead] @ np.exp(u[dead])
        terms = dead.sum() if ties == "efron" else 1
        for r in range(terms):
            total += mass / terms * math.log(weight[risk] @ np.exp(u[risk]) - r / terms * own)
        total -= weight[dead] @ u[dead] + mass / terms * (terms * math.log(mass / terms) + math.lgamma(terms + 1))
    return total


@pytest.mark.parametrize("name", COUPLED_LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_laws_of_every_coupled_loss(name, seed):
    check_loss(COUPLED_LOSSES[name](), rng=seed)


@pytest.mark.parametrize("seed", range(4))
def test_laws_under_the_rule_of_efron(seed):
    check_loss(fl.Cox("efron"), rng=seed)


@pytest.mark.parametrize("ties", TIES)
def test_value_is_the_definition(ties):
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 40):
        y = np.column_stack([rng.integers(1, 9, n), rng.random(n) < 0.6, rng.integers(0, 2, n)]).astype(float)
        y[0, 1] = 1
        weight = rng.integers(0, 3, n) + 0.5
        weight[1:][rng.random(n - 1) < 0.2] = 0.0
        loss, u = fl.Cox(ties), rng.standard_normal(n)
        target = loss.check_targets(y)
        assert loss.total(u, target, weight) == pytest.approx(definition(u, y, weight, ties), abs=1e-12)
        assert loss.total(u, target, np.zeros(0)) == pytest.approx(definition(u, y, np.ones(n), ties), abs=1e-12)


def test_the_rules_for_ties_agree_without_ties_and_weights_are_repetitions():
    rng = np.random.default_rng(1)
    y = np.column_stack([rng.permutation(30) + 1.0, rng.random(30) < 0.7])
    u = rng.standard_normal(30)
    values = [fl.Cox(ties).total(u, fl.Cox().check_targets(y), np.zeros(0)) for ties in TIES]
    assert values[0] == pytest.approx(values[1], rel=1e-14)
    count = rng.integers(1, 4, 30)
    loss, often = fl.Cox(), np.repeat(np.arange(30), count)
    single = loss.sums(u, loss.check_targets(y), count.astype(float))
    several = loss.sums(u[often], loss.check_targets(y[often]), np.zeros(0))
    assert single[0] == pytest.approx(several[0], rel=1e-13)
    np.testing.assert_allclose(single[1], np.bincount(often, several[1]), atol=1e-12)


@pytest.mark.parametrize("ties", TIES)
def test_nothing_overflows(ties):
    loss = fl.Cox(ties)
    y = np.column_stack([[1, 2, 2, 3, 4, 5], [1, 1, 1, 0, 1, 1]]).astype(float)
    for u in (np.array([-800, 900, 3, -5000, 1e5, 0.0]), np.array([1e8, 1e8 + 1, 1e8 - 2, 1e8, 1e8, 1e8])):
        total, x, h = loss.sums(u, loss.check_targets(y), np.zeros(0))
        assert np.isfinite(total) and total >= 0 and np.isfinite(x).all() and (h >= 0).all()
        assert abs(x.sum()) <= 1e-9


def test_forms_of_targets_are_one():
    time, event = np.array([3.0, 1.0, 2.0]), np.array([True, False, True])
    structured = np.array(list(zip(event, time, strict=True)), dtype=[("cens", "?"), ("days", "f8")])
    pandas = pytest.importorskip("pandas")
    forms = [
        structured, structured[["days", "cens"]], np.column_stack([time, event]), survival_records(structured),
        pandas.DataFrame({"died": event, "days": time}), pandas.DataFrame({"days": time, "died": event.astype(int)}),
    ]  # fmt: skip
    for form in forms:
        np.testing.assert_array_equal(survival_records(form), survival_records(structured))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0, 2.0], r"shape \(2,\); survival times need two columns"),
        ([[1.0, 1], [0.0, 1]], "time 0 in row 1; times must be positive"),
        ([[1.0, 1], [np.nan, 1]], "time nan in row 1; times must be finite"),
        ([[1.0, 1], [2.0, 0.5]], "event 0.5 in row 1; it must be 0"),
        ([[1, 1.5], [0, 2.5]], "are the columns time and event in this order"),
        ([[1.0, 0], [2.0, 0]], "no event"),
        ([["1", "1"], ["2", "yes"]], "y has 'yes' in row 1; .* an event 0 .censored. or 1"),
        ([[1.0, 1, 0.5], [2.0, 0, 1]], "third column"),
    ],
)
def test_bad_targets(y, message):
    with pytest.raises(ValueError, match=message):
        survival_records(np.array(y))
    with pytest.raises(ValueError, match="ties is 'exact'"):
        fl.Cox("exact")
    with pytest.raises(TypeError, match="no sum over rows"):
        fl.Cox().value(np.zeros(2), np.zeros(2))


@pytest.mark.parametrize(
    ("strata", "message"),
    [
        ([1.0, np.nan], "strata is nan in row 1; every row needs a label"),
        (np.array(["a", None], dtype=object), r"several kinds \(NoneType, str\)"),
        ([1.0], r"strata has shape \(1,\)"),
    ],
)
def test_bad_strata(strata, message):
    with pytest.raises(ValueError, match=message):
        survival_records(np.array([[1.0, 1], [2.0, 0]]), strata)
