"""Conditions of several nominal values: the slow twin's rules, what they are for, and what is refused."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules_twin import Rows, decision_tables, imprecise, ours, plain, supported, unions

import countervail as cv
from countervail.rules import Inducer
from countervail.rules.induce import SEMANTICS, mark_inside
from countervail.rules.value_sets import add_value_sets

TABLES = st.one_of(decision_tables(), decision_tables(sets=True))


@given(TABLES, st.integers(2, 3), st.sampled_from(SEMANTICS))
def test_kernels_find_the_rules_of_the_slow_twin(table, most, semantics):
    rows, inducer = Rows(table, most), Inducer(add_value_sets(table, most, "test"), semantics)
    assert ours(inducer.precise()) == plain(unions(rows, 1, semantics), table.attributes)
    assert ours(inducer.imprecise()) == plain(imprecise(rows, semantics), table.attributes)


@given(TABLES, st.integers(2, 3), st.integers(2, 4))
def test_supported_rules_are_those_of_the_slow_twin(table, most, k):
    found = Inducer(add_value_sets(table, most, "test")).supported(k)
    assert ours(found) == plain(supported(Rows(table, most), k), table.attributes)


@given(decision_tables(), st.integers(1, 4))
def test_a_condition_names_no_more_values_than_asked_for_and_no_rule_is_wrong(table, most):
    wider = add_value_sets(table, most, "test")
    rules = Inducer(wider).imprecise()
    for r in range(len(rules)):
        met = wider.decisions[mark_inside(rules, r, wider)]
        assert len(met) and not (met & ~rules.conclusions[r]).any()
        for member, named in zip(rules.members, rules.named[r]):
            assert member is None or not named or member[r].sum() <= most


def test_one_value_is_the_published_way():
    table = cv.load("toy_evaluation")
    assert cv.LERS(k=2).fit(table).rules_.to_text() == cv.LERS(k=2, max_values=1).fit(table).rules_.to_text()


def test_a_rule_of_several_values_says_what_single_values_have_too_few_people_for():
    frame = pd.DataFrame({"city": list("aabbcc"), "y": list("uuuuvw")})
    table = cv.Table.from_frame(frame, target="y")
    assert [r.sentence for r in cv.LERS(k=4, max_values=2).fit(table).rules_] == ["If city is a or b then y is u."]
    assert not len(cv.LERS(k=4).fit(table).rules_)


def test_the_worked_example_has_the_paper_s_condition_on_two_cities():
    """Table 6 of Inuiguchi, Ichida, Torra (2019) names "domicile = (Tokyo or Osaka)", for low or high."""
    table = cv.load("toy_evaluation")
    by_city = cv.LERS(k=4, max_values=2).fit(table.features[["domicile"]], table.target).rules_
    assert [r.sentence for r in by_city] == ["If domicile is Osaka or Tokyo then evaluation is high or low."]
    assert not len(cv.LERS(k=4).fit(table.features[["domicile"]], table.target).rules_)


def test_patterns_can_be_made_of_such_rules():
    table = cv.load("toy_evaluation")
    rules = cv.LERS(k=3, max_values=2).fit(table).rules_
    release = cv.KCommonPatterns(3, rules=rules, random_state=0).fit(table).protect(table)
    assert (release.regions.count(table.frame) >= 3).all()


@pytest.mark.parametrize("most", [0, 1.5, True, "2"])
def test_a_number_of_values_that_is_none_is_refused(most):
    with pytest.raises(cv.ParameterError, match="'max_values' parameter of MLEM2 must be a whole number of at least 1"):
        cv.MLEM2(max_values=most).fit(cv.load("toy_evaluation"))


def test_too_many_sets_are_refused_with_the_column():
    frame = pd.DataFrame({"street": [f"s{i}" for i in range(60)], "y": list("uv") * 30})
    with pytest.raises(cv.ParameterError, match="Column 'street' has 60 values: merge some, or lower it"):
        cv.LERS(max_values=2).fit(cv.Table.from_frame(frame, target="y"))
