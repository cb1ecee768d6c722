"""Written ranges hold the people they stand for; a written number is that number."""

import re

import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from countervail.core.cells import cell_text

NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]\d+)?"
numbers = st.floats(allow_nan=False, allow_infinity=False)


def ends(text):
    """The two numbers of `24-27` or `-3 to 4`."""
    low, high = re.fullmatch(rf"({NUMBER})(?:-| to )({NUMBER})", text).groups()
    return float(low), float(high)


@given(numbers, numbers)
@example(0.1234564, 0.1234566)
@example(1_234_567.25, 1_234_567.75)
@example(-1_234_567.75, -0.000012345678)
@example(0.0, 5e-324)
def test_a_written_range_holds_both_its_ends(a, b):
    low, high = min(a, b), max(a, b)
    assume(low < high)
    left, right = ends(cell_text(pd.Interval(low, high, closed="both")))
    assert left <= low and high <= right


@given(numbers.map(lambda v: float(f"{v:.15g}")))  # the digits that a float surely holds
@example(0.1234567)
@example(1_234_567.25)
def test_a_written_number_is_the_number(value):
    assert float(cell_text(value)) == value
    assert float(cell_text(pd.Interval(value, value, closed="both"))) == value


@pytest.mark.parametrize(
    ("low", "high", "text"), [(24, 27, "24-27"), (-3, 4, "-3 to 4"), (0.5, 2.25, "0.5-2.25"), (30, 30, "30")]
)
def test_short_numbers_stay_as_they_are(low, high, text):
    assert cell_text(pd.Interval(low, high, closed="both")) == text
