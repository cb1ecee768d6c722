"""The Mondrians of two papers: what each does otherwise than ours, and what it promises."""

import numpy as np
import pandas as pd
import pytest

import countervail as cv
from countervail.core.errors import ParameterError, SchemaError
from countervail.testing import small_table

BOTH = [cv.published.BasicMondrian, cv.published.EqualHalvesMondrian]


def ages(values):
    frame = pd.DataFrame({"age": values, "ill": ["x"] * len(values)})
    return cv.Table.from_frame(frame, quasi_identifiers=["age"], sensitive=["ill"])


def test_the_right_half_is_not_checked():
    """Left half of 1, 1, 1, 1, 2 only: a class of one is published, and nothing is promised."""
    table = ages([1, 1, 1, 1, 2])
    basic = cv.published.BasicMondrian(2).fit(table).protect(table)
    assert sorted(np.bincount(basic.groups).tolist()) == [1, 4]
    assert isinstance(basic.guarantee, cv.NoGuarantee)


@pytest.mark.parametrize("settings", [{}, {"k": 5}, {"k": 5, "l": 2, "sensitive": "ill"}])
def test_basic_mondrian_promises_nothing(settings):
    assert isinstance(cv.published.BasicMondrian(**settings).guarantee(), cv.NoGuarantee)


def test_equal_halves_promise_k_against_whoever_knows_the_code():
    assert cv.published.EqualHalvesMondrian(10).guarantee() == cv.KAnonymity(10, against="algorithm")
    assert isinstance(cv.published.EqualHalvesMondrian(1).guarantee(), cv.NoGuarantee)


def test_equal_halves_part_equal_rows():
    frame = pd.DataFrame({"q": [1] * 7 + [2], "s": list("abcdefgh")})
    table = cv.Table(frame, cv.Schema((cv.Column("q", "numeric", "quasi"), cv.Column("s"))))
    fitted = cv.published.EqualHalvesMondrian(k=2).fit(table)
    assert np.bincount(fitted.protect(table).groups).tolist() == [2, 2, 2, 2]
    assert not hasattr(fitted, "tree_")


def test_equal_halves_have_no_place_for_new_rows():
    table = small_table()
    fitted = cv.published.EqualHalvesMondrian(k=2).fit(table)
    with pytest.raises(ParameterError, match="'rows' parameter of EqualHalvesMondrian must be the fitted table itself"):
        fitted.protect(table.frame)


def test_basic_mondrian_sends_new_rows_down_its_tree():
    table = small_table()
    fitted = cv.published.BasicMondrian(k=3, random_state=0).fit(table)
    np.testing.assert_array_equal(fitted.tree_.cells(table.frame), fitted.cell_of_)
    assert any("sent to its nearest cells" in text for text in fitted.protect(table.frame).caveats)


def test_a_lot_says_that_a_second_one_would_tell_more():
    table = small_table()
    for by_class in (False, True):
        release = cv.published.EqualHalvesMondrian(k=3, by_class=by_class).fit(table).protect(table)
        assert any("by lot" in text for text in release.caveats)
        assert any("were cut one by one" in text for text in release.caveats) == by_class


@pytest.mark.parametrize("made", BOTH)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k": 0}, "'k' parameter of {} must be a whole number of at least 1"),
        ({"k": True}, "'k' parameter of {}"),
        ({"k": 61}, "'k' parameter of {} must be at most the number of rows, 60"),
        ({"k": 40, "by_class": True}, "'k' parameter of {} must be at most the number of rows of every class of"),
    ],
)
def test_bad_parameters_say_whose_they_are_and_what_must_be(made, settings, message):
    with pytest.raises(ParameterError, match=message.format(made.__name__)):
        made(**settings).fit(small_table())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": "loose"}, "'labels' parameter of BasicMondrian must be one of"),
        ({"l": 99, "sensitive": "ill"}, "'l' parameter of BasicMondrian must be a distinct diversity"),
        ({"t": 2}, "'t' parameter of BasicMondrian must be between 0 and 1"),
        ({"l": 2, "sensitive": "age"}, "'sensitive' parameter of BasicMondrian must be a column that is neither"),
    ],
)
def test_basic_mondrian_says_what_must_be(settings, message):
    with pytest.raises(ParameterError, match=message):
        cv.published.BasicMondrian(k=3, **settings).fit(small_table())


@pytest.mark.parametrize("made", BOTH)
def test_per_class_needs_a_target(made):
    with pytest.raises(SchemaError, match=f"{made.__name__}.by_class=True. .* no target"):
        made(k=3, by_class=True).fit(ages([1, 2, 3, 4]))


def test_equal_halves_take_a_ledger_or_nothing():
    with pytest.raises(ParameterError, match="'ledger' parameter of EqualHalvesMondrian"):
        cv.published.EqualHalvesMondrian(3, ledger="x").fit(small_table())


@pytest.mark.parametrize("made", [cv.Mondrian, *BOTH])
def test_no_mondrian_takes_what_belongs_to_another(made):
    """What the papers did are protectors of their own, not settings of ours."""
    assert not {"profile", "halves", "c"} & set(made().get_params())
