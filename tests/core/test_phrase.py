"""Sentences: what would have to be different, in the words that the schema declares."""

import numpy as np
import pandas as pd
import pytest

from countervail import Column, Phrases, Schema
from countervail.core.cells import cell_text, fits, number_text, range_text
from countervail.core.phrase import ColumnWords, sentence
from countervail.core.words.catalogue import catalogue


def span(low, high):
    return pd.Interval(low, high, closed="both")


AGE = Column("age", "numeric")
OLDER = Column("age", "numeric", unit="years", phrases=Phrases("{} year|years older", "{} year|years younger"))
YEARS = Column("job_age", "numeric", unit="years")
PAY = Column("net_pay", "numeric", unit="${}K")
PUBLIC = Column("income", "numeric", domain=(0, 10_000))
EARN = Column("pay", "numeric", unit="${}K", phrases=Phrases("earned {} more", "earned {} less"))
FLOOR = Column("floor", "numeric", phrases=Phrases(is_="lived on floor {}"))
BORN = Column("born", "numeric", phrases=Phrases(subject="your year of birth", numbers="plain"))
RATIO = Column("DebtRatio", "numeric")
SPECIAL = Column("trades", "numeric", phrases=Phrases(labels={"-9": "not on record"}))
LEVEL = Column("level", "ordinal", levels=("low", "mid", "high"))
GRADE = Column("grade", "ordinal", levels=tuple("abcdefgh"))
JOBS = Column(
    "employment",
    "ordinal",
    levels=("none", "<1", "1<=X<4"),
    phrases=Phrases(is_="had been in your job for {}", labels={"<1": "less than a year", "1<=X<4": "1 to 4 years"}),
)
PHONE = Column("phone", phrases=Phrases(is_="{}", labels={"true": "had a telephone", "false": "had no telephone"}))
CITY = Column("city", phrases=Phrases(is_="lived in {}"))
YOU = Column("town", phrases=Phrases(is_="you lived in {}"))
JOB = Column("job")


@pytest.mark.parametrize(
    ("column", "value", "cell", "words"),
    [
        (AGE, 21, 24, "your age were 3 higher (from 21 to 24)"),
        (AGE, 24, 21, "your age were 3 lower (from 24 to 21)"),
        (AGE, 21, span(24, 27), "your age were 3 to 6 higher (between 24 and 27 instead of 21)"),
        (AGE, 30, span(24, 27), "your age were 3 to 6 lower (between 24 and 27 instead of 30)"),
        (AGE, 21, span(24, 24), "your age were 3 higher (from 21 to 24)"),
        (AGE, 21, frozenset([span(24, 24)]), "your age were 3 higher (from 21 to 24)"),
        (AGE, 0.1, 0.3, "your age were 0.2 higher (from 0.1 to 0.3)"),
        (AGE, 0.1, 0.1 + 0.2, "your age were 0.2 higher (from 0.1 to 0.3)"),
        (AGE, np.float32(0.1), np.float32(0.3), "your age were 0.2 higher (from 0.1 to 0.3)"),
        (AGE, -2, 3, "your age were 5 higher (from -2 to 3)"),
        (AGE, np.nan, 24, "your age were 24 (not stated until now)"),
        (AGE, 24, None, "your age were not stated (instead of 24)"),
        (AGE, 30, frozenset([span(24, 27), None]), "your age were between 24 and 27 or not stated (instead of 30)"),
        (OLDER, 21, 24, "you were 3 years older (from 21 to 24)"),
        (OLDER, 21, 22, "you were 1 year older (from 21 to 22)"),
        (OLDER, 24, span(20, 22), "you were 2 to 4 years younger (between 20 and 22 instead of 24)"),
        (OLDER, np.nan, 24, "your age were 24 years (not stated until now)"),
        (YEARS, 2, 1, "your job age were 1 year lower (from 2 to 1)"),
        (YEARS, 2, span(3, 5), "your job age were 1 to 3 years higher (between 3 and 5 instead of 2)"),
        (PAY, 50, 60, "your net pay were $10K higher (from $50K to $60K)"),
        (PUBLIC, 2100, span(6000, 10_000), "your income were at least 3,900 higher (from 2,100 to 6,000 or more)"),
        (PUBLIC, 2100, span(0, 900), "your income were at least 1,200 lower (from 2,100 to 900 or less)"),
        (
            PUBLIC,
            2100,
            span(6000, 9_999),
            "your income were 3,900 to 7,899 higher (between 6,000 and 9,999 instead of 2,100)",
        ),
        (PUBLIC, 2100, span(6000, np.inf), "your income were at least 3,900 higher (from 2,100 to 6,000 or more)"),
        (PUBLIC, np.nan, span(0, 10_000), "your income were between 0 and 10,000 (not stated until now)"),
        (PUBLIC, np.nan, span(6000, 10_000), "your income were 6,000 or more (not stated until now)"),
        (EARN, 50, 60, "you earned $10K more (from $50K to $60K)"),
        (EARN, 50, span(20, 30), "you earned $20K to $30K less (between $20K and $30K instead of $50K)"),
        (FLOOR, 1, span(2, 3), "you lived on floor between 2 and 3 (instead of 1)"),
        (BORN, 1984, 1979, "your year of birth were 5 lower (from 1984 to 1979)"),
        (RATIO, 0.35, 0.802982129, "your debt ratio were about 0.453 higher (from 0.35 to about 0.803)"),
        (RATIO, 0.35, 4.2428e-08, "your debt ratio were about 0.35 lower (from 0.35 to 0.000000042428)"),
        (
            RATIO,
            0.25,
            span(0.5123456789, 0.9876543219),
            "your debt ratio were 0.263 to 0.737 higher (between 0.513 and 0.987 instead of 0.25)",
        ),
        (
            RATIO,
            0.25,
            span(0.512345678, 0.512345679),
            "your debt ratio were 0.262345678 to 0.262345679 higher "
            "(between 0.512345678 and 0.512345679 instead of 0.25)",
        ),
        (SPECIAL, 3, -9, "your trades were not on record (instead of 3)"),
        (SPECIAL, -9, 3, "your trades were 3 (instead of not on record)"),
        (LEVEL, "mid", "high", "your level were high (instead of mid)"),
        (LEVEL, "high", frozenset(["mid", "low"]), "your level were low or mid (instead of high)"),
        (LEVEL, None, "low", "your level were low (not stated until now)"),
        (GRADE, "a", frozenset("bcdefg"), "your grade were anything from b to g (instead of a)"),
        (GRADE, "a", frozenset("bcdefh"), "your grade were one of b, c, d, e, f or h (instead of a)"),
        (GRADE, "a", frozenset("bcd"), "your grade were one of b, c or d (instead of a)"),
        (JOBS, "<1", "1<=X<4", "you had been in your job for 1 to 4 years (instead of less than a year)"),
        (
            JOBS,
            "none",
            frozenset(["1<=X<4", "<1"]),
            "you had been in your job for less than a year or 1 to 4 years (instead of none)",
        ),
        (PHONE, False, True, "you had a telephone"),
        (PHONE, np.True_, np.False_, "you had no telephone"),
        (PHONE, None, frozenset(["a", "b", "c"]), "you a, b or c"),
        (CITY, "Ghent", "Lier", "you lived in Lier (instead of Ghent)"),
        (
            CITY,
            "Ghent",
            frozenset(["Lier", "Bruges", "Aalst"]),
            "you lived in one of Aalst, Bruges or Lier (instead of Ghent)",
        ),
        (YOU, "Ghent", "Lier", "you lived in Lier (instead of Ghent)"),
        (JOB, "clerk", None, "your job were not stated (instead of clerk)"),
        (JOB, None, "clerk", "your job were clerk (not stated until now)"),
        (JOB, True, False, "your job were no (instead of yes)"),
        (JOB, "clerk", frozenset(), "your job were no value at all (instead of clerk)"),
        (Column("your_job"), "clerk", "cook", "your job were cook (instead of clerk)"),
        (Column("NumSatisfactoryTrades", "numeric"), 1, 2, "your num satisfactory trades were 1 higher (from 1 to 2)"),
        (Column("PAY_0", "numeric"), 1, 2, "your pay 0 were 1 higher (from 1 to 2)"),
        (
            Column("capital-gain", "numeric"),
            0,
            1e16,
            f"your capital gain were {10**16:,} higher (from 0 to {10**16:,})",
        ),
    ],
)
def test_one_change_reads(column, value, cell, words):
    schema = Schema((column,))
    assert (
        sentence({column.name: value}, {column.name: cell}, schema, "yes") == f"If {words}, the decision would be yes."
    )


@pytest.mark.parametrize("role", ["quasi", "attribute"])
def test_a_range_of_others_is_never_said_shorter_than_it_is(role):
    column = Column("ratio", "numeric", role)
    text = sentence({"ratio": 0.25}, {"ratio": span(0.5123456789, 0.9876543219)}, Schema((column,)), "yes")
    assert ("between 0.5123456789 and 0.9876543219" in text) is (role == "quasi")


def test_a_domain_that_was_read_off_the_rows_bounds_nothing():
    read = Column("income", "numeric", domain=(0, 10_000), read=True)
    text = sentence({"income": 2100}, {"income": span(6000, 10_000)}, Schema((read,)), "yes")
    assert "between 6,000 and 10,000" in text and "or more" not in text


def test_the_target_says_what_the_decision_would_be():
    target = Column(
        "ok",
        role="target",
        phrases=Phrases(is_="your application would be {}", labels={"yes": "approved", "true": "granted"}),
    )
    schema = Schema((AGE, target))
    assert sentence({"age": 1}, {"age": 2}, schema, "yes").endswith(", your application would be approved.")
    assert sentence({"age": 1}, {"age": 2}, schema, True).endswith(", your application would be granted.")
    assert sentence({"age": 1}, {"age": 2}, schema, 1).endswith(", your application would be 1.")


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
        "If you were 3 years older (from 21 to 24), lived in Lier (instead of Ghent), earned $10K more (from $50K to "
        "$60K) and your job were cook (instead of clerk), the decision would be yes."
    )


def test_alternatives_read():
    assert [catalogue("en").one_of(list(v)) for v in ("a", "ab", "abc")] == ["a", "a or b", "one of a, b or c"]


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


@pytest.mark.parametrize(
    ("name", "english", "german"),
    [
        ("Kredithöhe", "your kredithöhe", "der Wert für „Kredithöhe“"),
        ("Laufzeit_Monate", "your laufzeit monate", "der Wert für „Laufzeit Monate“"),
        ("Beschäftigt seit", "your beschäftigt seit", "der Wert für „Beschäftigt seit“"),
        ("creditAmount", "your credit amount", "der Wert für „credit Amount“"),
        ("AGE", "your age", "der Wert für „AGE“"),
    ],
)
def test_names_of_columns_keep_their_capitals_where_words_have_them(name, english, german):
    said = [ColumnWords.of(Column(name, "numeric"), language).name for language in ("en", "de")]
    assert said == [english, german]
