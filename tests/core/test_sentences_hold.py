"""Whatever a sentence says of a cell is so: its numbers are read back by a reader that knows the sentences only."""

import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from countervail import Column, Phrases, Schema
from countervail.core.cells import fits, visible
from countervail.core.phrase import sentence

NUMBER = {
    "en": (r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", ",", "."),
    "de": (r"-?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?", ".", ","),
    "fr": (r"-?(?:\d{1,3}(?:\u202f\d{3})+|\d+)(?:,\d+)?", "\u202f", ","),
    "nl": (r"-?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?", ".", ","),
}
# What is said beside the amount: now, then, "or more", "or less"; or both ends of a range, now.
MOVED = {
    "en": (r"\(from A?(N) to A?(N)( or more)?( or less)?\)", r"\(between (N) and (N) instead of A?(N)\)"),
    "de": (
        r"\(A?(?P<then>N)( oder mehr)?( oder weniger)? statt A?(?P<now>N)\)",
        r"\(zwischen (N) und (N) statt A?(N)\)",
    ),
    "fr": (
        r"\((?:de |d\u2019A)(N) à A?(N)( ou plus)?( ou moins)?\)",
        r"\(entre (N) et (N) au lieu (?:de |d\u2019A)(N)\)",
    ),
    "nl": (
        r"\(van A?(N) naar A?(N)( of meer)?( of minder)?\)",
        r"\(tussen (N) en (N) in plaats van A?(N)\)",
    ),
}
LEAST = {"en": "at least", "de": "mindestens", "fr": "au moins", "nl": "minstens"}
ABOUT = {"en": "about", "de": "etwa", "fr": "environ", "nl": "ongeveer"}
SPAN = {"en": r"(N) to (N) (?:higher|lower)", "de": r"um (N) bis (N) ", "fr": r"de (N) à (N) \(", "nl": r"(N) tot (N) "}

numbers = st.one_of(
    st.integers(-(10**6), 10**6),
    st.floats(-1e9, 1e9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=2).map(float),
)

ROLE = st.sampled_from(["quasi", "attribute"])


def read(text, language):
    """A written number, exactly."""
    _, thousands, decimal = NUMBER[language]
    return Fraction(text.replace(thousands, "").replace(decimal, "."))


def found(pattern, text, language):
    pattern = pattern.replace("A?", "A").replace("A", f"(?:{ABOUT[language]} )?")
    return re.search(pattern.replace("N", NUMBER[language][0]), text)


def same(written, number):
    """Equal but for the noise in a float's last digit."""
    return abs(written - Fraction(number)) <= 3 * Fraction(math.ulp(float(number)))


def roughly(written, number, language, text):
    """Equal, or near where the sentence says that it is about so much."""
    near = abs(written - Fraction(number)) <= abs(Fraction(number)) / 1000
    return same(written, number) or (near and ABOUT[language] in text.partition("(")[2])


def no_less(written, number):
    return written >= Fraction(number) or same(written, number)


def no_more(written, number):
    return written <= Fraction(number) or same(written, number)


def stated(text, language):
    """Now, and the ends of the range that is spoken of; None where there is no end."""
    if both := found(MOVED[language][1], text, language):
        low, high, now = (read(t, language) for t in both.groups())
        return now, low, high
    one = found(MOVED[language][0], text, language)
    if language == "de":
        then, more, less, now = one["then"], one[2], one[3], one["now"]
    else:
        now, then, more, less = one.groups()
    end = read(then, language)
    return read(now, language), None if less else end, None if more else end


def check_number(value, cell, column, language):
    text = sentence({"x": value}, {"x": cell}, Schema((column,)), "ok", language)
    assert visible(text) == text
    assert not re.search(r"\d[eE][+-]?\d|inf|nan", text)
    now, low, high = stated(text, language)
    left, right = (cell.left, cell.right) if isinstance(cell, pd.Interval) else (cell, cell)
    assert roughly(now, value, language, text)
    assert left <= value <= right or (low is not None and now < low) or (high is not None and now > high)
    now = now if same(now, value) else Fraction(str(value))
    if left == right and roughly(low, left, language, text):
        low = high = low if same(low, left) else Fraction(str(left))
    # The range that is said lies in the cell, and ends nowhere but at an end of the declared domain.
    if low is None:
        assert column.public is not None and left <= column.public[0]
    else:
        assert no_less(low, left)
    if high is None:
        assert column.public is not None and right >= column.public[1]
    else:
        assert no_more(high, right)
    assert low is None or high is None or low <= high
    if column.role == "quasi":
        assert (low is None or same(low, left)) and (high is None or same(high, right))
    check_amount(text.split("(")[0] + "(", now, low, high, language)


def check_amount(text, now, low, high, language):
    """Whoever changes by the amount that is said gets into the range that is said."""
    sign = -1 if low is None or low < now else 1
    if both := found(SPAN[language], text, language):
        ends = [now + sign * read(t, language) for t in both.groups()]
        assert all((low is None or low <= e) and (high is None or e <= high) for e in ends)
        return
    amount = read(found("(N)", text.split("x", 1)[1].replace("”", ""), language)[1], language)
    end = now + sign * amount
    if LEAST[language] in text:
        assert (low is None) != (high is None)
        assert end >= low if high is None else end <= high
    elif ABOUT[language] in text:
        assert low == high and abs(end - low) <= amount / 1000
    else:
        assert low == high and same(end, low)


@pytest.mark.parametrize("language", NUMBER)
@given(
    numbers,
    numbers,
    numbers,
    st.booleans(),
    st.sampled_from([None, "low", "high", "wide"]),
    st.sampled_from(["quasi", "attribute"]),
)
@example(0.35, 4.2428e-08, 4.2428e-08, True, None, "attribute")
@example(0.766126609, 0.286206563, 0.286206563, True, None, "attribute")
@example(0.28620661, 0.286206563, 0.286206563, True, None, "quasi")
@example(0.766126609, 0.9127736451, 0.99, False, None, "attribute")
@example(0.35, 1.802982129, 2.9876543219, False, None, "attribute")
@example(0.1, 0.30000000000000004, 0.9, False, "high", "attribute")
@example(0.0, 5e-324, 1.7e308, False, None, "attribute")
@example(999.5, 0.1234567891, 0.1234567892, False, "low", "attribute")
def test_what_is_said_of_a_number_holds(language, value, a, b, single, bound, role):
    low, high = min(a, b), max(a, b)
    cell = low if single or low == high else pd.Interval(low, high, closed="both")
    assume(not fits(value, cell))
    least, most = min(low, value) - 1, max(high, value) + 1
    outer = {"low": (low, most), "high": (least, high), "wide": (least, most)}.get(bound)
    assume(outer is None or (abs(outer[0]) < 1e300 and abs(outer[1]) < 1e300 and outer[0] < outer[1]))
    check_number(value, cell, Column("x", "numeric", role, outer), language)


words = st.text("abcdeÄ<= >4", min_size=1, max_size=6).filter(lambda t: t == t.strip())


@given(words, st.frozensets(words, min_size=1, max_size=8), st.booleans())
def test_what_is_said_of_a_set_is_all_of_it_and_nothing_else(value, others, labelled):
    others = others - {value}
    assume(others)
    labels = {v: f"[{v}]" for v in (*others, value)}
    column = Column("x", phrases=Phrases(labels=labels if labelled else {}))
    text = sentence({"x": value}, {"x": others}, Schema((column,)), "ok", "de")
    mark = r"\[(.*?)\]" if labelled else "„(.*?)“"
    before, after = text.split(" wäre (statt ")
    assert sorted(re.findall(mark, before.split("„x“", 1)[1])) == sorted(others)
    assert re.findall(mark, after)[0] == value


@given(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9))
def test_what_is_said_of_levels_is_all_of_them_and_nothing_else(value, a, b):
    levels = tuple("abcdefghij")
    cell = frozenset(levels[min(a, b) : max(a, b) + 1])
    assume(levels[value] not in cell)
    text = sentence({"x": levels[value]}, {"x": cell}, Schema((Column("x", "ordinal", levels=levels),)), "ok")
    said = text.split("were ", 1)[1].split(" (instead")[0]
    if ends := re.fullmatch("anything from (.) to (.)", said):
        assert set(levels[levels.index(ends[1]) : levels.index(ends[2]) + 1]) == cell
    else:
        assert set(re.findall(r"\b([a-j])\b", said.replace("one of", ""))) == cell


@given(st.integers(0, 9), st.sampled_from([None, np.nan, pd.NA]), st.booleans())
def test_missing_is_said_and_never_a_number(number, missing, gone):
    schema = Schema((Column("x", "numeric"),))
    before, after = ({"x": number}, {"x": missing}) if gone else ({"x": missing}, {"x": number})
    text = sentence(before, after, schema, "ok")
    assert text == (
        f"If your x were not stated (instead of {number}), the decision would be ok."
        if gone
        else f"If your x were {number} (not stated until now), the decision would be ok."
    )
