"""Sums that do not depend on their order."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fenchel.data.exact_sums import ExactSum, added

numbers = st.floats(allow_nan=False, allow_infinity=False, width=64)


@settings(max_examples=150, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_every_order_and_grouping_gives_the_same_bits(values, random):
    parts = [ExactSum.of(np.array([value, -2 * value / 3, 1.0])) for value in values if abs(value) < 1e300]
    if not parts:
        return
    straight = added(parts).rounded()
    random.shuffle(parts)
    while len(parts) > 1:
        k = random.randrange(len(parts) - 1)
        parts[k : k + 2] = [parts[k] + parts[k + 1]]
    assert parts[0].rounded().tobytes() == straight.tobytes()


@settings(max_examples=150, deadline=None)
@given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=12))
def test_the_sum_is_as_good_as_its_largest_term_allows(values):
    total = added([ExactSum.of(np.array([value])) for value in values]).rounded()[0]
    true = sum(map(Fraction, values), Fraction(0))
    allowed = Fraction(2) ** -60 * Fraction(max(map(abs, values))) * len(values) + abs(true) * Fraction(2) ** -52
    assert abs(Fraction(float(total)) - true) <= allowed


@settings(max_examples=100, deadline=None)
@given(numbers)
def test_one_number_stays_what_it_is(value):
    assert ExactSum.of(np.array([value])).rounded()[0] == value


def test_what_is_not_finite_is_seen_in_any_order():
    one, other = ExactSum.of(np.array([np.inf, 1.0, np.inf])), ExactSum.of(np.array([2.0, 2.0, -np.inf]))
    for total in ((one + other).rounded(), (other + one).rounded()):
        assert total[0] == np.inf and total[1] == 3.0 and math.isnan(total[2])


def test_nothing_to_add_is_an_error():
    with pytest.raises(ValueError, match="nothing to add"):
        added([])
