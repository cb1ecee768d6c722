"""Sentences: what would have to be different, in the words that the schema declares."""

import numpy as np
import pandas as pd
import pytest

from countervail import Column, Phrases, Schema
from countervail.core.cells import cell_text, fits, number_text, range_text
from countervail.core.phrase import one_of, sentence


def span(low, high):
    return pd.Interval(low, high, closed="both")


AGE = Column("age", "numeric")
OLDER = Column("age", "numeric", unit="years", phrases=Phrases("{} years older", "{} years younger"))
PAY = Column("net_pay", "numeric", unit="${}K")
EARN = Column("pay", "numeric", unit="${}K", phrases=Phrases("earned {} more", "earned {} less"))
FLOOR = Column("floor", "numeric", phrases=Phrases(is_="lived on floor {}"))
LEVEL = Column("level", "ordinal", levels=("low", "mid", "high"))
CITY = Column("city", phrases=Phrases(is_="lived in {}"))
JOB = Column("job")


@pytest.mark.parametrize(
    ("column", "value", "cell", "words"),
    [
        (AGE, 21, 24, "your age were 3 higher"),
        (AGE, 24, 21, "your age were 3 lower"),
        (AGE, 21, span(24, 27), "your age were 3-6 higher"),
        (AGE, 30, span(24, 27), "your age were 3-6 lower"),
        (AGE, 0.1, 0.3, "your age were 0.2 higher"),
        (AGE, np.nan, 24, "your age were 24"),
        (AGE, 24, None, "your age were missing"),
        (AGE, 30, frozenset([span(24, 27), None]), "your age were 24-27 or missing"),
        (OLDER, 21, 24, "you were 3 years older"),
        (OLDER, 24, span(20, 22), "you were 2-4 years younger"),
        (OLDER, np.nan, 24, "your age were 24 years"),
        (PAY, 50, 60, "your net pay were $10K higher"),
        (EARN, 50, 60, "you earned $10K more"),
        (EARN, 50, span(20, 30), "you earned $20-30K less"),
        (FLOOR, 1, span(2, 3), "you lived on floor 2-3"),
        (LEVEL, "mid", "high", "your level were high"),
        (LEVEL, "high", frozenset(["mid", "low"]), "your level were low or mid"),
        (LEVEL, None, "low", "your level were low"),
        (CITY, "Ghent", "Lier", "you lived in Lier"),
        (CITY, "Ghent", frozenset(["Lier", "Bruges", "Aalst"]), "you lived in Aalst, Bruges or Lier"),
        (JOB, "clerk", None, "your job were missing"),
        (JOB, None, "clerk", "your job were clerk"),
        (JOB, True, False, "your job were False"),
    ],
)
def test_one_change_reads(column, value, cell, words):
    schema = Schema((column,))
    assert (
        sentence({column.name: value}, {column.name: cell}, schema, "yes") == f"If {words}, the decision would be yes."
    )


@pytest.mark.parametrize(
    ("column", "value", "cell"),
    [
        (AGE, 24, 24.0),
        (AGE, 25, span(24, 27)),
        (AGE, 24, span(24, 27)),
        (AGE, 25, frozenset([span(24, 27), None])),
        (AGE, np.nan, frozenset([span(24, 27), None])),
        (AGE, np.nan, None),
        (LEVEL, "mid", frozenset(["mid", "high"])),
        (JOB, None, np.nan),
        (JOB, pd.NA, None),
        (JOB, pd.NA, frozenset(["clerk", None])),
    ],
)
def test_a_value_that_fits_needs_no_change(column, value, cell):
    text = sentence({column.name: value}, {column.name: cell}, Schema((column,)), "yes")
    assert text == "Nothing would have to change: people with these values get the decision yes."
    assert fits(value, cell)


@pytest.mark.parametrize("cell", [24, span(24, 27), None, frozenset(), frozenset([23, None])])
@pytest.mark.parametrize("value", [99, pd.NA])
def test_a_value_outside_does_not_fit(value, cell):
    wants_missing = cell is None or (isinstance(cell, frozenset) and None in cell)
    assert fits(value, cell) is (value is pd.NA and wants_missing)


def test_clauses_are_joined_and_a_repeated_subject_is_said_once():
    schema = Schema((OLDER, CITY, EARN, JOB))
    before = {"age": 21, "city": "Ghent", "pay": 50, "job": "clerk"}
    after = {"age": 24, "city": "Lier", "pay": 60, "job": "cook"}
    assert sentence(before, after, schema, "yes") == (
        "If you were 3 years older, lived in Lier, earned $10K more and your job were cook, the decision would be yes."
    )


def test_alternatives_read():
    assert [one_of(list(v)) for v in ("a", "ab", "abc")] == ["a", "a or b", "a, b or c"]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (2.5, "2.5"),
        (3.0, "3"),
        (np.float64(0.1) + 0.2, "0.3"),
        (span(-3, 4), "-3 to 4"),
        (span(3, 3), "3"),
        (frozenset(), "{}"),
        (frozenset(["b", "a", None]), "{a, b, missing}"),
        (pd.NA, "missing"),
        (pd.NaT, "missing"),
    ],
)
def test_cells_read(cell, words):
    assert cell_text(cell) == words


def test_numbers_read_without_idle_decimals():
    assert [number_text(v) for v in (1e6, 0.25, -2.0)] == ["1000000", "0.25", "-2"]
    assert range_text(0.5, 2) == "0.5-2"
