"""Losses of several scores per row: their laws, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp

import fenchel as fl
from fenchel.losses import COUPLED_LOSSES, LOSSES, ROW_LOSSES, known_losses
from fenchel.testing import check_loss


@pytest.mark.parametrize("name", ROW_LOSSES)
def test_laws(name):
    check_loss(ROW_LOSSES[name]())


def test_names_are_told_apart():
    kinds = [*LOSSES, *ROW_LOSSES, *COUPLED_LOSSES]
    assert len(set(kinds)) == len(kinds) and set(known_losses()) == set(kinds)


def test_a_wrong_conjugate_is_found():
    class Wrong(fl.Multinomial):
        def potential(self, v, target):
            return 1.1 * super().potential(v, target)

    with pytest.raises(AssertionError, match="Wrong breaks the law"):
        check_loss(Wrong())


def test_softmax_of_two_classes_is_the_logistic_loss():
    rng = np.random.default_rng(0)
    u, y = 5 * rng.standard_normal(40), rng.integers(0, 2, 40)
    scores, unit = np.column_stack([np.zeros(40), u]), np.eye(2)[y]
    two, one = fl.Multinomial(2), fl.Logistic()
    assert np.allclose(two.value(scores, unit).sum(axis=1), one.value(u, 2.0 * y - 1), rtol=1e-13)
    assert np.allclose(two.gradient(scores, unit)[:, 1], one.gradient(u, 2.0 * y - 1), atol=1e-15)


def test_values_against_scipy_and_extreme_scores():
    rng = np.random.default_rng(1)
    u, t = 3 * rng.standard_normal((20, 5)), np.eye(5)[rng.integers(0, 5, 20)]
    loss = fl.Multinomial(5)
    assert np.allclose(loss.value(u, t).sum(axis=1), logsumexp(u, axis=1) - np.sum(t * u, axis=1))
    far = np.array([[0.0, -800.0], [800.0, 0.0], [0.0, -40.0]])
    unit = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    assert np.allclose(fl.Multinomial(2).value(far, unit).sum(axis=1), [0.0, 800.0, np.exp(-40.0)], rtol=1e-12, atol=0)
    total, slope, h = loss.sums(u.ravel(), t.ravel(), np.zeros(0))
    assert total == pytest.approx(loss.value(u, t).sum(), rel=1e-13)
    assert np.allclose(slope.reshape(u.shape), loss.gradient(u, t))
    assert np.allclose(h.reshape(u.shape), loss.probability(u))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 3, 3], "class 2 does not occur"),
        ([0, 0.5, 1, 1], r"y\[1\] is 0.5; Multinomial takes class numbers"),
        ([-1, 0, 1, 1], r"y\[0\] is -1"),
        (["a", "b", "c", "c"], "takes class numbers"),
        ([[0.5, 0.4], [1, 0], [0, 1], [0, 1]], "row 0 of y is .* shares that add up to 1"),
        ([0, 0, 0, 0], "one class only"),
        ([0, np.nan, 1, 1], r"y\[1\] is nan"),
        ([0, 1, 2, 1e9], "class numbers below"),
    ],
)
def test_targets_that_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        fl.Problem(np.ones((4, 2)), np.array(y), loss="multinomial")


def test_the_hinge_takes_no_shares():
    with pytest.raises(ValueError, match="one 1 and zeros"):
        fl.MulticlassHinge().check_targets(np.array([[0.5, 0.5], [1.0, 0.0]]))


def test_number_of_classes():
    with pytest.raises(ValueError, match="n_classes is 4, but the targets are those of 3 classes"):
        fl.Problem(np.ones((3, 2)), np.eye(3), loss=fl.Multinomial(4))
    with pytest.raises(ValueError, match="give n_classes"):
        fl.Multinomial().value(np.zeros(6), np.zeros(6))
